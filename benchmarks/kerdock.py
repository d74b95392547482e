"""Time of the Kerdock sketch with its distortion as a multiple of the SRHT's, side by side.

Rounds of both alternate, and the best round of each counts: on a shared machine the best is the
least disturbed. The ratio aimed at is at most 1 at equal k2.
"""

from __future__ import annotations

import argparse
import os
import time

import numpy as np

from fastmix.kernels import NATIVE, kerdock, mapped
from fastmix.sketches import SRHT, KerdockSketch

# rows, columns, log2 of k2
SHAPES = [(2**17, 90, 14), (2**19, 32, 14), (2**22, 4, 13), (2**16, 1024, 13)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--dtype", default="float64", choices=["float64", "float32"])
    parser.add_argument("--mapped", action="store_true", help="through a full map of the rows")
    args = parser.parse_args()
    os.environ["FASTMIX_NUM_THREADS"] = str(args.threads)

    print(f"{'native' if NATIVE else 'NumPy'} kernels, {args.threads} thread(s), {args.dtype}")
    print(f"{'input':>22} {'k2':>6}  srht ms kerdock ms  ratio  coherence of both, times sqrt(k2)")
    rng = np.random.default_rng(0)
    for n, d, m in SHAPES:
        X = rng.standard_normal((n, d)).astype(args.dtype)
        bounds = (-np.ones(d), np.ones(d), rng.random(d), 0.5 + rng.random(d))
        factors = rng.random(n)
        srht, draw = SRHT(2**m, n).sample(1), KerdockSketch(2**m, n).sample(1)
        for order in "CF":
            A = mapped.Mapped(np.asarray(X, order=order))
            if args.mapped:
                A = mapped.Mapped(A.X, *bounds, factors=factors, constant=1.0)
            actions = (
                lambda A=A, s=srht: mapped.srht(A, s.signs, s.rows, s.n_pad),
                lambda A=A, s=draw: kerdock.sketch_and_distortion(A, s.signs, s._forms),
            )
            best = [float("inf")] * 2
            for _ in range(args.rounds):
                for k, action in enumerate(actions):
                    start = time.perf_counter()
                    action()
                    best[k] = min(best[k], time.perf_counter() - start)
            gain = [s.coherence * 2 ** (m / 2) for s in (srht, draw)]
            print(
                f"{f'{n} x {d} {order}':>22} {2**m:>6} {best[0] * 1e3:8.1f} {best[1] * 1e3:10.1f}"
                f" {best[1] / best[0]:6.2f}  {gain[0]:.2f} {gain[1]:.2f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
