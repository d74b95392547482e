"""Load packages that few commands use when they are first used.

scikit-learn imports ``scipy.stats`` and pandas at its start, which takes about 0.5 s; fastmix needs
neither. Both stay importable: the standard library's `LazyLoader` loads each of them as a whole as
soon as another package reads an attribute of it or imports it again. pyarrow does that with pandas,
where pandas is installed, when it turns a column into an array.
"""

import sys
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import LazyLoader
from typing import Any

_SLOW = ("pandas", "scipy.stats")


class _LoadLater(MetaPathFinder):
    """Find the slow packages as Python does, and load them on first use."""

    def find_spec(self, name: str, path: Any, target: Any = None) -> ModuleSpec | None:
        spec = PathFinder.find_spec(name, path, target) if name in _SLOW else None
        if spec is not None and spec.loader is not None:
            spec.loader = LazyLoader(spec.loader)
        return spec


def load_slow_packages_later() -> None:
    """Delay slow imports, in a process that runs one command."""
    sys.meta_path.insert(0, _LoadLater())
