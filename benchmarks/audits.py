"""Lower bounds on the epsilon of every private estimator, as ``fastmix audit --all`` finds them.

    python benchmarks/audits.py --out audit.csv
    python benchmarks/audits.py --most-trials 640 --cases AdaSSP --out audit.csv

Cases that the file has are skipped, so a run can be continued.
"""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path

import pandas as pd
from joblib import Parallel, delayed

from fastmix.audit import AuditResult, audit, registry


def audited(name: str, most: int | None) -> AuditResult:
    """Audit one case; its seed does not depend on which cases are left."""
    warnings.simplefilter("ignore")
    case = registry[name]()
    trials = case.trials if most is None else min(case.trials, most)
    return audit(case, trials=trials, rng=1000 * list(registry).index(name))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--most-trials", type=int, help="fits on each data set at most")
    parser.add_argument("--cases", nargs="*", default=list(registry))
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--out", type=Path, required=True)
    asked = parser.parse_args()
    done = set(pd.read_csv(asked.out)["name"]) if asked.out.exists() else set()
    names = [name for name in asked.cases if name not in done]
    audits = [delayed(audited)(name, asked.most_trials) for name in names]
    for result in Parallel(asked.workers, return_as="generator")(audits):
        fresh, line = not asked.out.exists(), pd.DataFrame([result.to_dict()])
        line.to_csv(asked.out, mode="a", header=fresh, index=False, float_format="%.6g")
        print(f"{result.name}: {result.lower:.3f} of {result.epsilon:.3f}", flush=True)


if __name__ == "__main__":
    main()
