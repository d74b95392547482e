"""The reproduction uses the public interface of fastmix only."""

import ast
import importlib
from pathlib import Path

import pytest

import reproduction

ROOT = Path(reproduction.__file__).parent
FILES = sorted(ROOT.rglob("*.py"))


def imported(tree):
    """Yield (module, name) for everything that is imported; the name is None for a whole module."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            yield from ((node.module, alias.name) for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from ((alias.name, None) for alias in node.names)


def private(tree):
    """Return what a file takes from fastmix that fastmix does not offer."""
    found = []
    for module, name in imported(tree):
        if module.split(".")[0] == "fastmix":
            # A module without `__all__` is not for users.
            offered = getattr(importlib.import_module(module), "__all__", ())
            if any(part.startswith("_") for part in module.split(".")) or name not in offered:
                found.append(f"{module}.{name}")
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr.startswith("_"):
            own = isinstance(node.value, ast.Name) and node.value.id == "self"
            if not own and not node.attr.startswith("__") and node.attr != "_asdict":
                found.append(node.attr)
    return found


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_only_what_fastmix_offers_is_used(path):
    assert private(ast.parse(path.read_text())) == []


@pytest.mark.parametrize(
    "code",
    [
        "from fastmix._validation import check_real",
        "from fastmix.planning.fit_plan import _seconds",
        "import fastmix._text",
        "model._check_parameters()",
        "from fastmix import FastIHM, no_such_name",
    ],
)
def test_the_check_sees_private_names(code):
    assert private(ast.parse(code))
