"""A module imports only from its own package or from lower layers."""

import ast
from collections import Counter
from pathlib import Path

import fastmix

ROOT = Path(fastmix.__file__).parent

#: Packages and modules by layer; equal layers see each other only as `ALLOWED` says.
LAYERS = {
    "errors": 0,
    "_system": 0,
    "_text": 0,
    "_types": 0,
    "_validation": 0,
    "random": 0,
    "kernels": 1,
    "sketches": 2,
    "accounting": 2,
    "schema": 3,
    "show": 3,
    "data": 4,
    "releases": 5,
    "engine": 6,
    "paper": 7,
    "certificate": 8,
    "estimators": 9,
    "datasets": 9,
    "files": 10,
    "planning": 10,
    "audit": 10,
    "cli": 11,
    "__main__": 12,
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


def test_imports_only_lower_layers():
    for path in FILES:
        me = owner(path)
        assert me in LAYERS, f"{me} has no layer: add it to LAYERS and to the architecture"
        for other in imports(path):
            if other == me or (me, other) in ALLOWED_SIDEWAYS:
                continue
            assert other in LAYERS, f"{path} imports unknown fastmix.{other}"
            assert LAYERS[other] < LAYERS[me], f"{path} (layer {LAYERS[me]}) imports {other}"


def modules(path):
    """Yield the full names of the fastmix modules that a file imports, or imports from."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            yield from (node.module, *(f"{node.module}.{alias.name}" for alias in node.names))
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


def test_private_modules_stay_in_their_package():
    for path in FILES:
        for name in modules(path):
            parts = name.split(".")
            if parts[0] != "fastmix" or len(parts) < 3 or parts[1] == owner(path):
                continue
            private = [part for part in parts[2:] if part.startswith("_")]
            assert not private, f"{path} imports {name}"


def test_accounting_and_sketches_are_strangers():
    for path in FILES:
        if owner(path) == "accounting":
            assert "sketches" not in set(imports(path))
        if owner(path) == "sketches":
            assert "accounting" not in set(imports(path))


def test_only_releases_and_below_draw_secret_noise():
    """Estimators make the noise, methods hand it on; neither draws from it."""
    draws = {"standard_normal", "laplace", "chisquare", "normal", "integers", "random"}
    paths = [
        *(ROOT / "estimators").glob("*.py"),
        *(ROOT / "engine").glob("*.py"),
        *(ROOT / "paper").glob("*.py"),
    ]
    for path in paths:
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


#: Names of two modules or classes that mean the same thing at two layers, or are to be renamed.
SAME_MODULES = {"bounds", "columns", "kerdock", "objective", "scores", "sparse"}
SAME_CLASSES = {"Case", "Columns", "Known", "Look", "Spread"}


def test_a_name_means_one_thing():
    """Commands are apart: the module of a command has its name."""
    paths = [path for path in ROOT.rglob("*.py") if path.parent != ROOT / "cli"]
    modules = Counter(path.stem for path in paths if not path.stem.startswith("_"))
    nodes = (node for path in paths for node in ast.parse(path.read_text()).body)
    classes = Counter(node.name for node in nodes if isinstance(node, ast.ClassDef))
    assert {name for name, count in modules.items() if count > 1} <= SAME_MODULES
    assert {name for name, count in classes.items() if count > 1} <= SAME_CLASSES
