"""Lower bounds on the epsilon of every private estimator, as ``fastmix audit`` finds them.

    python benchmarks/audits.py --out audit.csv
    python benchmarks/audits.py --quick --cases AdaSSP --out audit.csv

Cases that the file has are skipped, so a run can be continued.
"""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path

import pandas as pd
from joblib import Parallel, delayed

from fastmix.audit import AuditResult, audit_all, full_only, registry


def audited(name: str, quick: bool) -> AuditResult:
    """Audit one case; its seed does not depend on which cases are left."""
    warnings.simplefilter("ignore")
    seed = 1000 * list(registry).index(name)
    return next(iter(audit_all([name], quick=quick, seed=seed, workers=1)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="few releases")
    parser.add_argument("--cases", nargs="*", default=list(registry))
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--out", type=Path, required=True)
    asked = parser.parse_args()
    done = set(pd.read_csv(asked.out)["name"]) if asked.out.exists() else set()
    left = full_only if asked.quick else set()
    names = [name for name in asked.cases if name not in done | left]
    audits = [delayed(audited)(name, asked.quick) for name in names]
    for result in Parallel(asked.workers, return_as="generator")(audits):
        fresh, line = not asked.out.exists(), pd.DataFrame([result.to_dict()])
        line.to_csv(asked.out, mode="a", header=fresh, index=False, float_format="%.6g")
        print(f"{result.name}: {result.lower:.3f} of {result.epsilon:.3f}", flush=True)


if __name__ == "__main__":
    main()
