"""Decides, once, whether the compiled kernels are used."""

from __future__ import annotations

import os
from importlib import import_module
from types import ModuleType

__all__ = ["NATIVE", "native"]


def _load() -> ModuleType | None:
    if os.environ.get("FASTMIX_NO_NATIVE", "") not in ("", "0"):
        return None
    try:
        return import_module("fastmix.kernels._native")
    except ImportError:
        return None


native = _load()
NATIVE: bool = native is not None
