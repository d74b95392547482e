"""Decides, once, whether the compiled kernels are used."""

from __future__ import annotations

import os
from types import ModuleType

__all__ = ["NATIVE", "native"]

native: ModuleType | None = None
if os.environ.get("FASTMIX_NO_NATIVE", "0") in ("", "0"):
    try:
        from fastmix.kernels import _native as native
    except ImportError:
        native = None

NATIVE: bool = native is not None
