"""Count fits that diverge: excess risk beyond that of predicting the centre of the target's bounds.

python benchmarks/accuracy/stability.py --data-dir DATA --fits 200
"""

from __future__ import annotations

import argparse
import math
from pathlib import Path

import numpy as np
import sets
from joblib import Parallel, delayed
from run import Problem, run


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data-dir", type=Path)
    parser.add_argument("--sets", nargs="*", default=list(sets.NAMES))
    parser.add_argument("--methods", nargs="*", default=["default", "IHM", "FastIHM"])
    parser.add_argument("--fits", type=int, default=200)
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    for data in sets.load(options.sets, options.data_dir, quick=False):
        problem = Problem(data)
        centre = float(np.mean(data.bounds["bounds_y"]))
        useless = problem.row(
            "centre", math.inf, 0, lambda X, centre=centre: np.full(len(X), centre), 0.0
        ).excess_risk
        for method in options.methods:
            for epsilon in (1.0, 10.0):
                seeds = np.array_split(np.arange(options.fits), 4 * options.jobs)
                work = Parallel(n_jobs=options.jobs)(
                    delayed(run)(problem, [(method, epsilon, int(s)) for s in part], math.inf)
                    for part in seeds
                )
                risks = np.array([row.excess_risk for rows in work for row in rows])
                print(
                    f"{data.name:<14} {method:<8} epsilon {epsilon:<4g} "
                    f"diverged {np.count_nonzero(~(risks < useless)):>3} of {len(risks)}  "
                    f"median {np.median(risks):.1e}  worst {risks.max():.1e}  zero {useless:.1e}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
