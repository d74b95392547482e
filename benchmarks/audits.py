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

from fastmix.audit import audit_all, full_only, registry

SEED = 0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="few releases")
    parser.add_argument("--cases", nargs="*", default=list(registry))
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--out", type=Path, required=True)
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    done = set(pd.read_csv(asked.out)["name"]) if asked.out.exists() else set()
    left = full_only if asked.quick else set()
    names = [name for name in asked.cases if name not in done | left]
    given = {"quick": asked.quick, "seed": SEED, "workers": asked.workers}
    for result in audit_all(names, **given) if names else ():
        fresh, line = not asked.out.exists(), pd.DataFrame([result.to_dict()])
        line.to_csv(asked.out, mode="a", header=fresh, index=False, float_format="%.6g")
        print(f"{result.name}: {result.lower:.3f} of {result.epsilon:.3f}", flush=True)


if __name__ == "__main__":
    main()
