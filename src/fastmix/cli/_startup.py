"""A start without packages that others import and the command does not use.

scikit-learn imports ``scipy.stats`` for one function, and pandas if it is installed; so does
pyarrow.  They take 0.7 s to load.
"""

import sys
from importlib import import_module
from importlib.abc import MetaPathFinder
from types import ModuleType
from typing import Any


class _NoPandas(MetaPathFinder):
    """A finder that makes pandas look as if it were not installed."""

    def find_spec(self, name: str, path: object, target: object = None) -> None:
        if name == "pandas":
            raise ModuleNotFoundError("The command does not use pandas.", name=name)


def leave_out_slow_packages() -> None:
    """Load ``scipy.stats`` on first use only, and no pandas; for a process that runs a command."""
    sys.modules.setdefault("scipy.stats", _later("scipy.stats"))
    sys.meta_path.insert(0, _NoPandas())


def allow_pandas() -> None:
    """Let pandas be imported again."""
    sys.meta_path[:] = [finder for finder in sys.meta_path if not isinstance(finder, _NoPandas)]


def _later(name: str) -> ModuleType:
    """Return a module that gives way to the one called ``name`` when an attribute is first used."""
    module = ModuleType(name)

    def load(attribute: str) -> Any:
        if sys.modules.get(name) is module:
            del sys.modules[name]
        return getattr(import_module(name), attribute)

    module.__getattr__ = load  # type: ignore[method-assign]
    return module
