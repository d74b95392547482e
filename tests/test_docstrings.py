"""Docstrings are numpydoc, and functions that carry a formula say where it is from."""

import ast
import doctest
import importlib
import inspect
import pkgutil
import re
from pathlib import Path

import pytest
from numpydoc.validate import validate

import fastmix
import reproduction

ROOT = Path(__file__).parents[1]
MODULES = [
    info.name
    for package in (fastmix, reproduction)
    for info in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
    if not info.name.endswith("_native")
]

#: Errors of numpydoc that are checked: missing or misnamed parameters and returns, no summary.
CHECKED = {"GL08", "PR01", "PR02", "PR03", "PR04", "PR07", "RT01", "RT03", "SS01", "SS03"}


def docstrings():
    """Return the places and texts of all docstrings, those of private things included."""
    for folder in ("src/fastmix", "reproduction"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, (ast.ClassDef, ast.FunctionDef)):
                    where = f"{path.relative_to(ROOT)}:{node.lineno}:{node.name}"
                    yield where, ast.get_docstring(node) or ""


DOCSTRINGS = list(docstrings())
NOTES = [each for each in DOCSTRINGS if re.search("Notes\n|Paper:|Deviation|Sensitive", each[1])]


def public_names(module):
    """Return what a module exports: by its list, or else all that it defines without underscore."""
    own = (
        symbol
        for symbol, thing in vars(module).items()
        if not symbol.startswith("_") and getattr(thing, "__module__", "") == module.__name__
    )
    return getattr(module, "__all__", own)


def public_objects():
    seen = set()
    for name in MODULES:
        module = importlib.import_module(name)
        for symbol in public_names(module):
            thing = getattr(module, symbol)
            where = getattr(thing, "__module__", "")
            if (
                where.startswith(("fastmix", "reproduction"))
                and callable(thing)
                and thing not in seen
            ):
                seen.add(thing)
                yield f"{thing.__module__}.{thing.__qualname__}"


def test_docstrings_are_numpydoc():
    wrong = {}
    for name in sorted(public_objects()):
        found = validate(name)
        parameters_documented = "Parameters\n" in (found["docstring"] or "")
        wanted = CHECKED if parameters_documented else {"GL08", "SS01", "SS03"}
        # An estimator documents several attributes and parameters on one line where they go
        # together.
        if errors := [(code, text) for code, text in found["errors"] if code in wanted]:
            wrong[name] = errors
    assert not wrong


def public_methods():
    for name in MODULES:
        for symbol, thing in vars(importlib.import_module(name)).items():
            if inspect.isclass(thing) and thing.__module__ == name and not symbol.startswith("_"):
                given = getattr(thing, "__dataclass_fields__", {})
                for method, value in vars(thing).items():
                    kind = inspect.isfunction(value) or isinstance(value, (property, classmethod))
                    if kind and not method.startswith("_") and method not in given:
                        yield thing, method


def test_public_methods_have_a_docstring_or_inherit_one():
    methods = list(public_methods())
    assert len(methods) > 500
    bare = [(cls, name) for cls, name in methods if not inspect.getdoc(getattr(cls, name))]
    assert not bare


#: Modules that are formulas throughout: everything public in them says where it is from.
FORMULAS = [
    "fastmix.accounting.conversion",
    "fastmix.accounting.gaussian",
    "fastmix.accounting.rdp",
    "fastmix.releases.sensitivity",
]


@pytest.mark.parametrize("name", FORMULAS)
def test_formulas_cite_their_source(name):
    module = importlib.import_module(name)
    functions = [getattr(module, symbol) for symbol in public_names(module)]
    functions = [thing for thing in functions if inspect.isfunction(thing)]
    assert functions
    for function in functions:
        assert re.search(r"^Paper: \S", inspect.getdoc(function) or "", re.MULTILINE), function


@pytest.mark.parametrize("layer", ["accounting", "releases", "paper", "sketches"])
def test_every_layer_of_the_mathematics_cites_the_paper(layer):
    docs = [doc for name, doc in DOCSTRINGS if name.startswith(f"src/fastmix/{layer}/")]
    cited = [doc for doc in docs if "Paper:" in doc]
    assert len(cited) >= 5


def test_notes_say_something():
    """`Paper:` where a formula of the paper is carried; the other two only where there is one."""
    assert len(NOTES) > 100
    cited = r"\b(Algorithm|Appendix|Definition|Lemma|Proposition|Theorem) [A-Z0-9]"
    for name, doc in NOTES:
        notes = doc.partition("Notes\n-----\n")[2]
        empty = re.search(r"\b(Deviations?|Sensitive inputs):\s*(none|no|nothing)\b", doc, re.I)
        assert not empty, name
        if re.search(cited, notes):
            assert re.search(r"^Paper: \S", notes, re.MULTILINE), name
        if "Deviation:" in doc:
            assert "Paper:" in doc, f"{name}: a deviation from what?"
        for line in ("Paper:", "Deviation:", "Sensitive inputs:"):
            lines = re.findall(rf"^{line} \S", doc, re.MULTILINE)
            assert doc.count(line) == len(lines) <= 1, (name, line)


def test_examples_run():
    results = {name: doctest.testmod(importlib.import_module(name)) for name in MODULES}
    assert [name for name, result in results.items() if result.failed] == []
    assert sum(result.attempted for result in results.values()) > 50
