"""Time of each kernel as a multiple of one copy of its input, measured side by side in one run.

Rounds of copy and kernel alternate, and the best round of each counts: on a shared machine the
best is the least disturbed.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import numpy as np

from fastmix.kernels import NATIVE, fwht

# rows, columns, order, dtype, greatest ratio aimed at (None: shown for interest)
CASES = [
    (2**17, 90, "F", "float64", 2.5),
    (2**17, 90, "C", "float64", 4.0),
    (2**22, 4, "F", "float64", 5.0),
    (2**22, 4, "C", "float64", 5.0),
    (2**17, 90, "F", "float32", None),
    (2**17, 90, "C", "float32", None),
    (2**22, 1, "C", "float64", None),
    (2**20, 7, "C", "float64", None),
    (2**10, 9000, "C", "float64", None),
    (2**12, 1, "C", "float64", None),
]


def best(actions: list[Callable[[], object]], rounds: int, repeats: int) -> list[float]:
    """Return the least time of each action over rounds that run all of them in turn."""
    least = [float("inf")] * len(actions)
    for _ in range(rounds):
        for k, action in enumerate(actions):
            start = time.perf_counter()
            for _ in range(repeats):
                action()
            least[k] = min(least[k], (time.perf_counter() - start) / repeats)
    return least


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=15)
    args = parser.parse_args()

    print(f"fwht, {'native' if NATIVE else 'NumPy'} kernel, {args.threads} thread(s)")
    print("         shape order    dtype   copy ms   fwht ms  ratio target")
    rng = np.random.default_rng(0)
    for n, d, order, dtype, target in CASES:
        x = np.asarray(rng.standard_normal((n, d)), dtype=dtype, order=order)
        out = np.zeros_like(x)
        repeats = max(1, 2**20 // x.size)
        copy, kernel = best(
            [
                lambda x=x, out=out: np.copyto(out, x),
                lambda x=x, out=out: fwht(x, out=out, n_threads=args.threads),
            ],
            args.rounds,
            repeats,
        )
        note = "" if target is None else f"<= {target:g}"
        print(
            f"{f'{n} x {d}':>14} {order:>5} {dtype:>8} {copy * 1e3:9.3f} {kernel * 1e3:9.3f}"
            f" {kernel / copy:6.2f} {note}"
        )


if __name__ == "__main__":
    main()
