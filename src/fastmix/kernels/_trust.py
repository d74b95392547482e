"""Decides which compiled kernels are used: those that agree with NumPy on this machine.

Compilers make mistakes, and a kernel that is wrong on one processor can be right on all that it was
tested on. So each process compares every compiled kernel with its NumPy version before the first
use, on small fixed inputs (`fastmix.kernels._selfcheck`). NumPy takes over for kernels that differ.
"""

import os
import platform
import threading
import warnings
from collections.abc import Callable, Collection
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from fastmix._validation import value_error
from fastmix.errors import KernelWarning

Kernel = Callable[..., Any]

_PASSES = (
    *("map_rows", "squared_norms", "gram", "moments", "gradient", "slopes", "curved", "lengths"),
    *("second_moments", "slope_counts", "residuals", "terms"),
)
_SPARSE = ("sparse_sketch", "sparse_distortion")
_SKETCHES = ("srht", "kerdock", "kerdock_sketch", "kerdock_distortion", *_SPARSE)
#: Every compiled kernel; compilers without vector types give the first two only.
KERNELS = ("rounded", "fwht", *_PASSES, *_SKETCHES)
#: Kernels that run the code of others: what is wrong in these may be wrong in those, on inputs that
#: the self-check does not try.
_SHARED = (
    (("fwht",), _SKETCHES[:4]),
    (_PASSES, (*_PASSES, *_SKETCHES)),
    *((these, these) for these in (_SKETCHES[1:4], _SPARSE)),
)


class _Trial(threading.local):
    """Whether this thread runs the self-check, which needs the kernels before they are trusted."""

    runs = False


def _load() -> ModuleType | None:
    """Import the compiled kernels, if they are there and wanted; choose the instruction set."""
    if os.environ.get("FASTMIX_NO_NATIVE", "") not in ("", "0"):
        return None
    try:
        module = import_module("fastmix.kernels._native")
    except ImportError:
        return None
    wanted = os.environ.get("FASTMIX_ISA", "")
    if wanted:
        possible = module.instruction_sets()
        if wanted not in possible:
            condition = f"name an instruction set of this processor ({', '.join(possible)})"
            raise value_error("FASTMIX_ISA", condition, wanted)
        module.choose(wanted)
    return module


native = _load()
#: Whether compiled kernels were found.
NATIVE: bool = native is not None

_compiled: dict[str, Kernel] = {
    name: getattr(native, name) for name in KERNELS if hasattr(native, name)
}
_trial = _Trial()
_lock = threading.Lock()
_trusted: dict[str, Kernel] | None = None


def kernel(name: str) -> Kernel | None:
    """Return a compiled kernel that passed the self-check of this process; None means NumPy."""
    return (_check() if _trusted is None else _trusted).get(name)


def kernels_used() -> dict[str, Any]:
    """Return what a certificate states about the kernels of this process.

    ``numpy`` lists kernels for which NumPy takes over: those that failed the self-check, and those
    that share code with them.
    """
    if native is None:
        return {"compiled": False}
    trusted = _check() if _trusted is None else _trusted
    return {
        "compiled": True,
        "instruction_set": native.chosen(),
        "compiler": native.compiler,
        "check": "passed" if len(trusted) == len(_compiled) else "failed",
        "numpy": [name for name in _compiled if name not in trusted],
    }


def _check() -> dict[str, Kernel]:
    """Compare all kernels with NumPy, once per process; warn once of those that differ."""
    global _trusted
    if _trial.runs:
        return _compiled
    failed: Collection[str] = ()
    with _lock:
        if _trusted is None:
            if _compiled:
                _trial.runs = True
                try:
                    failed = import_module("fastmix.kernels._selfcheck").failures(_compiled)
                finally:
                    _trial.runs = False
            doubtful = {*failed}
            for these, those in _SHARED:
                if not {*failed}.isdisjoint(these):
                    doubtful.update(those)
            _trusted = {name: f for name, f in _compiled.items() if name not in doubtful}
        trusted = _trusted
    if failed:
        warnings.warn(_message(failed), KernelWarning, stacklevel=3)
    return trusted


def _message(failed: Collection[str]) -> str:
    assert native is not None
    return (
        f"Compiled kernels give wrong results on this machine: {', '.join(failed)} "
        f"(processor {processor()}, instruction set {native.chosen()}, compiler "
        f"{native.compiler}). fastmix uses NumPy for them and for kernels that share code "
        f"with them: results are right, but slower. "
        f"Reinstall fastmix with another compiler, or set FASTMIX_ISA=baseline, and run "
        f"'python -m fastmix.kernels' to check again. Please report this message."
    )


def processor() -> str:
    """Return the name of the processor, as far as the system tells it."""
    with suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def _new_lock() -> None:
    """Forget a lock that another thread of the parent process may hold."""
    global _lock
    _lock = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_new_lock)
