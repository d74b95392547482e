"""A module imports only from its own package or from lower layers."""

import ast
from pathlib import Path

import pytest

import fastmix

ROOT = Path(fastmix.__file__).parent

#: Packages and modules by layer; equal layers see each other only as `ALLOWED` says.
LAYERS = {
    "errors": 0,
    "_text": 0,
    "_validation": 0,
    "random": 0,
    "kernels": 1,
    "sketches": 2,
    "accounting": 2,
    "rows": 3,
    "render": 3,
    "mechanisms": 4,
    "estimators": 5,
    "datasets": 5,
    "tables": 5,
    "planning": 6,
    "audit": 6,
    "plot": 6,
    "saved": 6,
    "cli": 7,
    "__main__": 8,
}
ALLOWED_SIDEWAYS = {("random", "_validation"), ("random", "errors")}


def imports(path):
    """Yield the fastmix packages that a file imports."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            names = [node.module]
            if node.module == "fastmix":
                names = [f"fastmix.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        else:
            continue
        for name in names:
            parts = name.split(".")
            if parts[0] == "fastmix" and len(parts) > 1:
                yield parts[1]


def owner(path):
    relative = path.relative_to(ROOT)
    return relative.parts[0].removesuffix(".py")


FILES = sorted(path for path in ROOT.rglob("*.py") if path != ROOT / "__init__.py")


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_imports_only_lower_layers(path):
    me = owner(path)
    assert me in LAYERS, f"{me} has no layer: add it to LAYERS and to the architecture"
    for other in imports(path):
        if other == me or (me, other) in ALLOWED_SIDEWAYS:
            continue
        assert other in LAYERS, f"{path} imports unknown fastmix.{other}"
        assert LAYERS[other] < LAYERS[me], f"{me} (layer {LAYERS[me]}) imports {other}"


def test_accounting_and_sketches_are_strangers():
    for path in FILES:
        if owner(path) == "accounting":
            assert "sketches" not in set(imports(path))
        if owner(path) == "sketches":
            assert "accounting" not in set(imports(path))


def test_only_mechanisms_and_below_draw_secret_noise():
    """Estimators make the generator and hand it on; they never draw from it themselves."""
    draws = {"standard_normal", "laplace", "chisquare", "normal", "integers", "random"}
    for path in (ROOT / "estimators").glob("*.py"):
        if path.name == "ihs.py":  # not private: its Gaussian sketch is no noise
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                assert node.func.attr not in draws, f"{path.name} draws {node.func.attr}"


def test_generators_are_made_in_one_place():
    for path in FILES:
        if owner(path) in {"random"}:
            continue
        text = path.read_text()
        assert "default_rng" not in text, path
        assert "np.random.seed" not in text, path
