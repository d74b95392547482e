"""Docstrings are numpydoc, and functions that carry a formula say where it is from."""

import doctest
import importlib
import inspect
import pkgutil

import pytest
from numpydoc.validate import validate

import fastmix
import reproduction

MODULES = [
    info.name
    for package in (fastmix, reproduction)
    for info in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
    if not info.name.endswith("_native")
]

#: Errors of numpydoc that are checked: missing or misnamed parameters and returns, no summary.
CHECKED = {"GL08", "PR01", "PR02", "PR03", "PR04", "PR07", "RT01", "RT03", "SS01", "SS03"}


def public_objects():
    seen = set()
    for name in MODULES:
        module = importlib.import_module(name)
        for symbol in getattr(module, "__all__", ()):
            thing = getattr(module, symbol)
            where = getattr(thing, "__module__", "")
            if (
                where.startswith(("fastmix", "reproduction"))
                and callable(thing)
                and thing not in seen
            ):
                seen.add(thing)
                yield f"{thing.__module__}.{thing.__qualname__}"


@pytest.mark.parametrize("name", sorted(public_objects()))
def test_docstring_is_numpydoc(name):
    found = validate(name)
    parameters_documented = "Parameters\n" in (found["docstring"] or "")
    wanted = CHECKED if parameters_documented else {"GL08", "SS01", "SS03"}
    # An estimator documents several attributes and parameters on one line where they go together.
    errors = [(code, text) for code, text in found["errors"] if code in wanted]
    assert not errors, errors


@pytest.mark.parametrize("layer", ["accounting", "mechanisms", "sketches"])
def test_formulas_cite_their_source(layer):
    """A Notes section that names the paper also names deviations and sensitive inputs."""
    package = importlib.import_module(f"fastmix.{layer}")
    cited = 0
    for info in pkgutil.iter_modules(package.__path__, f"fastmix.{layer}."):
        module = importlib.import_module(info.name)
        for _, thing in inspect.getmembers(module, callable):
            if getattr(thing, "__module__", None) != info.name:
                continue
            doc = inspect.getdoc(thing) or ""
            if "Paper:" in doc:
                cited += 1
                assert "Deviation:" in doc, f"{info.name}.{thing.__name__}"
                assert "Sensitive inputs:" in doc, f"{info.name}.{thing.__name__}"
    assert cited >= 5


@pytest.mark.parametrize("name", MODULES)
def test_examples_run(name):
    result = doctest.testmod(importlib.import_module(name))
    assert result.failed == 0
