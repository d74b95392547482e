"""Time of each kernel as a multiple of one copy of its input, measured side by side in one run.

Rounds of copy and kernels alternate, and the best round of each counts: on a shared machine the
best is the least disturbed. Where threads have to share processors with other programs, ``cpu`` is
the better guide: processor time of the kernel divided by its threads, over that of the copy.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable
from functools import partial

import numpy as np

from fastmix.kernels import NATIVE, fwht, mapped, measured

# rows, columns, order, dtype, greatest ratio aimed at (None: shown for interest)
TRANSFORMS = [
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

# rows, columns, order, dtype, mapped, greatest ratio aimed at for each pass
PASSES = [
    (2**17, 90, "C", "float64", False, {"srht": 4.0, "gradient": 1.0, "norms": 0.7}),
    (2**17, 90, "F", "float64", False, {"srht": 4.0, "gradient": 1.0, "norms": 0.7}),
    (2**17, 90, "C", "float64", True, {}),
    (2**17, 90, "F", "float64", True, {}),
    (2**17, 90, "C", "float32", False, {}),
    (2**22, 4, "C", "float64", False, {"srht": 10.0, "gram": 1.0}),
    (2**22, 4, "F", "float64", False, {"srht": 10.0, "gram": 1.0}),
    (2**19, 32, "C", "float64", False, {}),
    (2**19, 32, "F", "float64", False, {}),
    (2**16, 1024, "C", "float64", False, {}),
]


def compare(
    case: str,
    name: str,
    copy: Callable[[], object],
    kernel: Callable[[], object],
    target: float | None,
    args: argparse.Namespace,
    repeats: int = 1,
) -> None:
    """Run copy and kernel in turn and print the ratio of their least times."""
    wall, cpu = [float("inf")] * 2, [float("inf")] * 2
    for _ in range(args.rounds):
        for k, action in enumerate((copy, kernel)):
            start, used = time.perf_counter(), time.process_time()
            for _ in range(repeats):
                action()
            wall[k] = min(wall[k], (time.perf_counter() - start) / repeats)
            cpu[k] = min(cpu[k], (time.process_time() - used) / repeats)
    note = "" if target is None else f"<= {target:g}"
    print(
        f"{case:>32} {name:>9} {wall[0] * 1e3:8.3f} {wall[1] * 1e3:9.3f} {wall[1] / wall[0]:6.2f}"
        f" {cpu[1] / args.threads / cpu[0]:6.2f} {note}",
        flush=True,
    )


def run_transforms(args: argparse.Namespace) -> None:
    rng = np.random.default_rng(0)
    for n, d, order, dtype, target in TRANSFORMS:
        x = np.asarray(rng.standard_normal((n, d)), dtype=dtype, order=order)
        out = np.zeros_like(x)
        copy = partial(np.copyto, out, x)
        kernel = partial(fwht, x, out=out)
        case = f"{n} x {d} {order} {dtype}"
        compare(case, "fwht", copy, kernel, target, args, max(1, 2**20 // x.size))


def run_passes(args: argparse.Namespace) -> None:
    rng = np.random.default_rng(0)
    for n, d, order, dtype, full, targets in PASSES:
        X = np.asarray(rng.standard_normal((n, d)), dtype=dtype, order=order)
        A = mapped.Mapped(X)
        if full:
            bounds = (-np.ones(d), np.ones(d), rng.random(d), 0.5 + rng.random(d))
            A = mapped.Mapped(X, *bounds, factors=rng.random(n), constant=1.0)
        rows = np.sort(rng.choice(n, 2**14, replace=False))
        signs = 2 * rng.integers(0, 2, size=n, dtype=np.int8) - 1
        y = mapped.Targets(rng.standard_normal(n))
        theta = rng.standard_normal(A.shape[1])
        transform = np.triu(rng.standard_normal((A.shape[1] + 1,) * 2))
        copy = partial(np.copyto, np.zeros_like(X), X)
        case = f"{n} x {d} {order} {dtype}{' mapped' if full else ''}"
        # Last the Gram matrix: threads of BLAS go on spinning for a while.
        for name, kernel in {
            "srht": partial(mapped.srht, A, signs, rows, n),
            "gradient": partial(mapped.gradient, A, y, theta, 0.5),
            "norms": partial(mapped.squared_norms, A),
            "lengths": partial(measured.row_lengths, A, transform, 0.0, targets=y),
            "single": partial(measured.row_lengths, A, transform, 0.0, targets=y, single=True),
            "gram": partial(mapped.gram, A),
        }.items():
            compare(case, name, copy, kernel, targets.get(name), args)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--only", choices=["fwht", "passes"])
    args = parser.parse_args()
    os.environ["FASTMIX_NUM_THREADS"] = str(args.threads)

    print(f"{'native' if NATIVE else 'NumPy'} kernels, {args.threads} thread(s)")
    print(f"{'input':>32}    kernel  copy ms kernel ms  ratio    cpu target")
    if args.only != "passes":
        run_transforms(args)
    if args.only != "fwht":
        run_passes(args)


if __name__ == "__main__":
    main()
