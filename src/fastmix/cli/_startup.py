"""Keep slow packages that a command does not need out of its process.

scikit-learn imports ``scipy.stats`` and pandas at its start, and pyarrow imports pandas to look for
its data frames; together that takes about 0.7 s. A command reads files itself and never meets a
data frame, so pandas is hidden: all of these packages work without it. ``scipy.stats`` is loaded by
the standard library's `LazyLoader` as soon as a package reads an attribute of it.
"""

import sys
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import LazyLoader
from typing import Any


class _Slow(MetaPathFinder):
    """Find no pandas, and ``scipy.stats`` as Python does, to be loaded on first use."""

    def find_spec(self, name: str, path: Any, target: Any = None) -> ModuleSpec | None:
        if name == "pandas":
            raise ModuleNotFoundError("a command of fastmix runs without pandas.", name=name)
        spec = PathFinder.find_spec(name, path, target) if name == "scipy.stats" else None
        if spec is not None and spec.loader is not None:
            spec.loader = LazyLoader(spec.loader)
        return spec


def leave_out_slow_packages() -> None:
    """Hide or delay slow packages, in a process that runs one command."""
    sys.meta_path.insert(0, _Slow())
