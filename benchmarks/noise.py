"""Time of one draw of noise: exact noise beside noise of floating-point numbers, side by side.

Both use the secret generator. Rounds alternate, and the best round of each counts. Floating-point
noise is that of NumPy's samplers, rounded to a grid; nothing is proved about it. OpenDP's discrete
noise is shown where OpenDP is installed.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import numpy as np

from fastmix.kernels.rounded import draw_rounded
from fastmix.random import secret_generator

SCALES = (1, 2**16, 2**32, 2**33 - 1)


def samplers(law: str, scale: int, size: int) -> dict[str, tuple[int, Callable[[], object]]]:
    """Return samplers by name, each with the number of its draws."""
    rng, fractions = secret_generator(), np.full(size, 0.25)
    floats = rng.standard_normal if law == "gaussian" else rng.laplace

    def rounded() -> object:
        return np.floor(fractions + scale * floats(size=size))

    made: dict[str, tuple[int, Callable[[], object]]] = {
        "exact": (size, lambda: draw_rounded(law, scale, fractions, rng)),
        "floating point": (size, rounded),
    }
    try:
        import opendp.prelude as dp
    except ImportError:
        return made
    dp.enable_features("contrib")
    few = max(size // 100, 1)
    domain = dp.vector_domain(dp.atom_domain(T="i64"))
    if law == "gaussian":
        theirs = dp.m.make_gaussian(domain, dp.l2_distance(T="f64"), scale=float(scale))
    else:
        theirs = dp.m.make_laplace(domain, dp.l1_distance(T="i64"), scale=float(scale))
    made["OpenDP, discrete"] = few, lambda: theirs([0] * few)
    return made


def main() -> None:
    """Print nanoseconds per draw."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=int, default=20_000)
    parser.add_argument("--rounds", type=int, default=15)
    args = parser.parse_args()
    for law in ("gaussian", "laplace"):
        for scale in SCALES:
            made = samplers(law, scale, args.size)
            best = dict.fromkeys(made, float("inf"))
            for _ in range(args.rounds):
                for name, (draws, sampler) in made.items():
                    start = time.perf_counter()
                    sampler()
                    best[name] = min(best[name], (time.perf_counter() - start) / draws)
            told = "  ".join(f"{name} {1e9 * took:,.0f} ns" for name, took in best.items())
            print(f"{law:8} scale {scale:>13,}  {told}", flush=True)


if __name__ == "__main__":
    main()
