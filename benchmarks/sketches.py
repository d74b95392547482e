"""Times of sketches beside the Gram matrix, and of FastIHM beside IHM, side by side.

    python benchmarks/sketches.py --out sketches.csv [--rounds 3] [--shapes 65536x1024 131072x512]

All numbers are processor time of one thread: other load on the machine does not count, although it
takes its share of memory and caches. The methods of a round follow each other, and a table shows
the median over rounds, in seconds or as a ratio within the same round, with the least and the
largest. The last table fits a linear model to other draws of the kinds of data its constants were
chosen on, and shows the excess risk. Tables that the file has are skipped.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

for name in ("FASTMIX_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ[name] = "1"

import numpy as np  # noqa: E402
import pandas as pd  # noqa: E402

from fastmix import IHM, FastIHM  # noqa: E402
from fastmix.datasets import make_correlated, make_sphere  # noqa: E402
from fastmix.kernels.mapped import Mapped, gram  # noqa: E402
from fastmix.sketches import KerdockSketch, SparseSketch  # noqa: E402

SHAPES = ["131072x128", "131072x256", "131072x512", "65536x1024"]
RISKS = [(2**15, 300, 1.0), (2**15, 300, 8.0), (2**16, 512, 3.0)]
MODEL: dict[str, Any] = {"data_norm": 1.0, "bounds_y": (-1, 1), "fit_intercept": False}


def medians(rounds: int, actions: dict[str, Callable[[], object]]) -> dict[str, list[float]]:
    """Return the times of all rounds of each action, taken in turn."""
    times: dict[str, list[float]] = {name: [] for name in actions}
    for _ in range(rounds):
        for name, action in actions.items():
            start = time.thread_time()
            action()
            times[name].append(time.thread_time() - start)
    return times


def line(name: str, found: list[float], **more: Any) -> dict[str, Any]:
    """Return a line of the file, from what the rounds found."""
    ends = {"low": min(found), "high": max(found)}
    return {**more, "name": name, "value": statistics.median(found), **ends, "rounds": len(found)}


def sketches(n: int, d: int, rounds: int) -> Iterator[dict[str, Any]]:
    """Yield the seconds of sketches, without and with their distortion."""
    X, _ = make_sphere(n, d, random_state=0)
    A, k2 = Mapped(X, factors=np.full(n, 0.5)), 1 << (8 * d - 1).bit_length()
    one, four = SparseSketch(k2, n, 1).sample(0), SparseSketch(k2, n, 4).sample(0)
    kerdock = KerdockSketch(k2, n).sample(0)
    times = medians(rounds, {
        "read": X.sum,
        "copy": X.copy,
        "Gram matrix": lambda: gram(A),
        "sparse, 1 entry": lambda: one.apply(A),
        "sparse, 1 entry, distortion": lambda: one.sketch_and_distortion(A),
        "sparse, 4 entries": lambda: four.apply(A),
        "sparse, 4 entries, distortion": lambda: four.sketch_and_distortion(A),
        "Kerdock": lambda: kerdock.apply(A),
        "Kerdock, distortion": lambda: kerdock.sketch_and_distortion(A),
    })  # fmt: skip
    yield from (line(name, own) for name, own in times.items())


def fits(n: int, d: int, rounds: int) -> Iterator[dict[str, Any]]:
    """Yield the time of IHM over that of each variant of FastIHM, round by round."""
    X, y = make_sphere(n, d, random_state=0)
    models = {
        "IHM": IHM(**MODEL),
        "FastIHM": FastIHM(**MODEL),
        "FastIHM, Kerdock": FastIHM(sketch="kerdock", **MODEL),
        "FastIHM, 32 steps": FastIHM(n_steps=32, **MODEL),
    }
    times = medians(rounds, {name: lambda m=m: m.fit(X, y) for name, m in models.items()})
    for name, own in times.items():
        yield line(name, [a / b for a, b in zip(times["IHM"], own, strict=True)])


def risks(make: Any, n: int, d: int, epsilon: float, rounds: int) -> Iterator[dict[str, Any]]:
    """Yield the excess risk over the variance, with either sketch; the mean is its value."""
    X, y = make(n, d, random_state=1)
    best = X @ np.linalg.lstsq(X.T @ X, X.T @ y, rcond=None)[0]
    for sketch in ("sparse", "kerdock"):
        # The Kerdock sketch has the steps and the rows it had as a default.
        own = {"n_steps": 32} if sketch == "kerdock" else {}
        size = 1 << (n // 8).bit_length() - 1 if sketch == "kerdock" else None
        model = FastIHM(epsilon=epsilon, sketch=sketch, sketch_size=size, **MODEL, **own)
        found = [
            float(np.mean((model.fit(X, y).predict(X) - best) ** 2) / np.var(best))
            for _ in range(rounds)
        ]
        yield {**line(sketch, found), "value": statistics.mean(found)}


def tables(shapes: list[tuple[int, int]]) -> Iterator[tuple[dict[str, Any], Callable[[int], Any]]]:
    """Yield what names a table, and the function that measures it."""
    for part, measure in (("sketches", sketches), ("fits", fits)):
        for n, d in shapes:
            # With 128 columns FastIHM is IHM.
            if part == "sketches" or d >= 200:
                key = {"part": part, "data": "sphere", "n": n, "d": d, "epsilon": 1.0}
                yield key, partial(measure, n, d)
    for data, make in (("sphere", make_sphere), ("correlated", make_correlated)):
        for n, d, epsilon in RISKS:
            key = {"part": "risks", "data": data, "n": n, "d": d, "epsilon": epsilon}
            yield key, partial(risks, make, n, d, epsilon)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--shapes", nargs="*", default=SHAPES, help="rows x columns")
    parser.add_argument("--only", nargs="*", default=["sketches", "fits", "risks"])
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    shapes = [tuple(map(int, shape.split("x"))) for shape in options.shapes]
    for key, measure in tables(shapes):
        if key["part"] not in options.only or _has(options.out, key):
            continue
        found = [{**key, **each} for each in measure(rounds=options.rounds)]
        fresh = not options.out.exists()
        pd.DataFrame(found).to_csv(options.out, mode="a", header=fresh, index=False)
        print(key, flush=True)


def _has(path: Path, key: dict[str, Any]) -> bool:
    if not path.exists():
        return False
    known = pd.read_csv(path)[list(key)].itertuples(index=False, name=None)
    return tuple(key.values()) in set(known)


if __name__ == "__main__":
    main()
