"""A Poisson-sampled Gram matrix beside FastIHM's sketch and the whole matrix, at equal privacy.

    python benchmarks/sampled_gram.py --data-dir DATA --out sampled.csv

Each row is kept with probability q. The Gram matrix of the kept rows has symmetric noise and is
divided by q; the steps after it are those of IHM. A kept row moves the matrix by at most 1, and a
row that is replaced by zeros is in the sample with probability q: the pair is
(1 - q) N(0, s^2) + q N(1, s^2) against N(0, s^2), in both directions. dp-accounting composes it
with the Gaussian releases of the steps; s is the least for which the sum costs (epsilon, delta).

Seconds are the processor time of the Gram stage: the matrix, the sketch with its matrix, or the
sample with its matrix. By default q is such that the sample costs what the sketch costs.
"""

from __future__ import annotations

import argparse
import csv
import math
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from dp_accounting.pld import privacy_loss_distribution as pld
from threadpoolctl import threadpool_limits

sys.path.insert(0, str(Path(__file__).parent / "accuracy"))
import run
import sets

from fastmix import IHM, FastIHM
from fastmix.data import ArrayRows
from fastmix.paper import fast_ihm
from fastmix.paper.averaging import GRAM_SHARE
from fastmix.random import secret_generator
from fastmix.releases import GRAM, GramRelease, Release, sketched_gram
from fastmix.releases.noise import FloatNoise

SETS = ("blog_feedback", "mnist", "flights_onehot")
EPSILONS = (0.3, 1.0, 3.0)
#: Step of the discretised privacy loss, whose rounding is on the safe side.
STEP = 1e-4


@lru_cache
def sampled_sigma(q: float, sigma: float, epsilon: float, delta: float) -> float:
    """Return the noise of a sampled matrix that costs what noise sigma on the whole one does.

    The other releases have the rest of mu^2, of which the matrix has `GRAM_SHARE`.
    """
    others = sigma * math.sqrt(GRAM_SHARE / (1.0 - GRAM_SHARE))
    rest = pld.from_gaussian_mechanism(others, value_discretization_interval=STEP)

    def cost(noise: float) -> float:
        sample = pld.from_gaussian_mechanism(
            noise, sampling_prob=q, value_discretization_interval=STEP
        )
        return float(rest.compose(sample).get_delta_for_epsilon(epsilon))

    low, high = 0.1 * q * sigma, 1.1 * sigma
    while high > 1.003 * low:
        middle = math.sqrt(low * high)
        low, high = (middle, high) if cost(middle) > delta else (low, middle)
    return high


class Timed(FloatNoise):
    """Noise that keeps the processor time of a Gram matrix and the scale of its noise.

    With a share ``q`` it releases the Gram matrix of a sample of the rows in place of that of all.
    The fit checks that it draws what it planned, so the matrix is brought to the planned noise,
    and back; the account of the sample is that of `sampled_sigma`.
    """

    def __init__(self, seed: int, noise_of: Callable[[float], float], q: float | None) -> None:
        super().__init__(secret_generator(seed, warn=False))
        self.seed, self.noise_of, self.q = seed, noise_of, q
        self.seconds = self.scale = math.nan

    def release(self, release: Release, rows: Any, **given: Any) -> Any:
        """Draw a release, a Gram matrix on the clock."""
        if release is not GRAM:
            return super().release(release, rows, **given)
        started = time.process_time()
        found = self._sampled(rows, **given) if self.q else super().release(GRAM, rows, **given)
        self.seconds, self.scale = time.process_time() - started, found.scale
        return found

    def _sampled(self, rows: Any, sigma: float) -> GramRelease:
        kept = np.flatnonzero(np.random.default_rng(self.seed).random(rows.n) < self.q)
        unit = sigma / self.noise_of(sigma)
        kept_rows = ArrayRows(rows._X[kept], rows._row_map)
        release = replace(GRAM, statistic=lambda rows: unit * rows.gram())
        gram = super().release(release, kept_rows, sigma=sigma).gram
        return GramRelease(gram / (unit * self.q), sigma / (unit * self.q))


def equal_time(n: int, d: int) -> float:
    """Return the share of rows whose Gram matrix costs what sketch and sketched matrix cost."""
    power = math.floor(math.log2(fast_ihm.affordable_rows(n, d)))
    return min(1.0, 2.0 * 2.0**power / n)


def trial(problem: run.Problem, kind: str, q: float, epsilon: float, seed: int) -> dict[str, Any]:
    """Fit once, and return excess risk, seconds and noise of the Gram stage."""
    n, unit = len(problem.y), problem.unit
    options = {**problem.data.bounds, "fit_intercept": problem.data.fit_intercept}
    make = FastIHM if kind == "FastIHM" else IHM

    def noise_of(sigma: float) -> float:
        return sampled_sigma(q, sigma, epsilon, 1.0 / n**2)

    if kind == "sampled":
        noise_of(IHM(epsilon=epsilon, **options)._planned(n, problem.X.shape[1])[1].gram_sigma)
    noise = Timed(seed, noise_of, q if kind == "sampled" else None)

    def sketched(*given: Any, **named: Any) -> GramRelease:
        started = time.process_time()
        found = sketched_gram(*given, **named)
        noise.seconds, noise.scale = time.process_time() - started, found.scale
        return found

    fast_ihm.sketched_gram = sketched
    model = make(epsilon=epsilon, random_state=seed, **options)
    model._make_noise = lambda: noise
    try:
        model.fit(problem.X, problem.y)
    finally:
        fast_ihm.sketched_gram = sketched_gram
    error = (model.predict(problem.X) - problem.fitted) / unit
    return {
        "data": problem.data.name,
        "method": kind,
        "q": q,
        "epsilon": epsilon,
        "seed": seed,
        "excess_risk": float(np.mean(error**2)),
        "gram_noise": noise.scale,
        "gram_seconds": noise.seconds,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data-dir", type=Path, required=True)
    parser.add_argument("--out", type=Path, default=Path("sampled.csv"))
    parser.add_argument("--sets", nargs="*", default=list(SETS))
    parser.add_argument("--shares", nargs="*", type=float, default=[0.1], help="beside equal time")
    parser.add_argument("--trials", type=int, default=3)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    writer = None
    with options.out.open("w", newline="") as file, threadpool_limits(1):
        for data in sets.load(options.sets, options.data_dir, quick=False):
            problem = run.Problem(data)
            q = equal_time(len(problem.y), len(problem.best))
            kinds = [("IHM", 1.0), ("FastIHM", 1.0)]
            kinds += [("sampled", share) for share in sorted({q, *options.shares}) if share < 1.0]
            for seed in range(options.trials):
                for epsilon in EPSILONS:
                    for kind, share in kinds:
                        row = trial(problem, kind, share, epsilon, seed)
                        if writer is None:
                            writer = csv.DictWriter(file, list(row))
                            writer.writeheader()
                        writer.writerow(row)
                        file.flush()


if __name__ == "__main__":
    main()
