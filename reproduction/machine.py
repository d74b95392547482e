"""Versions and machine, as they stand beside every result."""

from __future__ import annotations

import os
import platform
import subprocess
from importlib.metadata import version
from pathlib import Path

from fastmix.kernels import NATIVE

__all__ = ["available_cores", "commit", "machine"]


def available_cores() -> int:
    """Return the number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def machine() -> dict[str, str]:
    """Return versions of packages, what the machine is, and how busy."""
    processor = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        names = [x for x in info.read_text().splitlines() if x.startswith("model name")]
        processor = names[0].split(":", 1)[1].strip() if names else processor
    packages = ("fastmix", "numpy", "scipy", "scikit-learn")
    return {
        **{name: version(name) for name in packages},
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "processor": processor,
        "cores": str(available_cores()),
        "load": f"{os.getloadavg()[0]:.0f}" if hasattr(os, "getloadavg") else "not known",
        "kernels": "compiled" if NATIVE else "NumPy",
        "commit": commit(),
    }


def commit() -> str:
    """Return the commit that this code was checked out from, marked where files were changed."""
    folder = Path(__file__).parent
    command = ["git", "-C", str(folder), "describe", "--always", "--abbrev=10", "--exclude=*"]
    found = subprocess.run([*command, "--dirty=+"], capture_output=True, text=True, check=False)
    return found.stdout.strip() or "unknown"
