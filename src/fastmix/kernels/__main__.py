"""Check the compiled kernels of this machine: ``python -m fastmix.kernels``.

The exit code is 1 if a compiled kernel differs from NumPy, or if there are no compiled kernels.
"""

import sys
import warnings

from fastmix.errors import KernelWarning
from fastmix.kernels._trust import KERNELS, kernel, kernels_used, native, processor


def main() -> int:
    """Print the outcome of the self-check, one line per kernel."""
    print(f"processor: {processor()}")
    if native is None:
        print("kernels: NumPy (compiled kernels are not installed, or FASTMIX_NO_NATIVE is set)")
        return 1
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", KernelWarning)  # the lines below say the same
        used = kernels_used()
    print(f"compiler: {used['compiler']}")
    print(f"instruction set: {used['instruction_set']} of {', '.join(native.instruction_sets())}")
    for name in KERNELS:
        state = "right" if kernel(name) else "not compiled"
        print(f"{name:>20}: {'WRONG, NumPy is used' if name in used['numpy'] else state}")
    print(f"check: {used['check']}")
    return int(used["check"] != "passed")


if __name__ == "__main__":
    sys.exit(main())
