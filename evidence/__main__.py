"""Run the steps that are stale, list them, or fill the pages again.

python -m evidence --data-dir DATA
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from datetime import date
from pathlib import Path

from evidence import pages, records
from evidence.behaviour import ROOT
from evidence.run import NoDataError, run
from evidence.steps import STEPS


def make_parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    parser = argparse.ArgumentParser(prog="python -m evidence", description=__doc__.split("\n")[0])
    option = parser.add_argument
    option("steps", nargs="*", metavar="STEP", help="names of steps; by default all but hours")
    option("--list", action="store_true", help="show state, age, duration and pages of steps")
    option("--mark", action="store_true", help="fill the pages again; mark what is not today's")
    option("--quick", action="store_true", help="few small fits of every step, nothing replaced")
    option("--force", action="store_true", help="run steps that are today's, too")
    folder = os.environ.get("FASTMIX_DATA")
    option("--data-dir", type=Path, default=Path(folder) if folder else None)
    return parser


def main() -> int:
    """Run what the arguments ask for; the exit code is 1 if a step failed."""
    parser = make_parser()
    asked = parser.parse_args()
    if unknown := set(asked.steps) - set(STEPS):
        parser.error(f"no step {', '.join(sorted(unknown))}; there are {', '.join(STEPS)}")
    names = asked.steps or list(STEPS)
    if asked.list:
        return _list(names)
    if not (asked.steps or asked.quick):
        names = [name for name in names if not STEPS[name].separate]
    if asked.mark:
        for page in pages.write():
            print(f"filled {page.relative_to(ROOT)}")
        return 0
    return _run(names, asked)


def _list(names: list[str]) -> int:
    known = records.read()
    print(f"{'step':<17}{'state':<9}{'days':>4}{'minutes':>9}{'fits':>8}  pages")
    for name in names:
        step, record = STEPS[name], known.get(name, {})
        found = [page.name for page in pages.pages_of(step)]
        days = (date.today() - date.fromisoformat(record["date"])).days if record else ""
        seconds, fits = record.get("seconds"), record.get("fits")
        minutes = f"{seconds / 60:.1f}" if seconds else ""
        words = f"{name:<17}{records.state(step):<9}{days:>4}{minutes:>9}{fits or '':>8}"
        print(f"{words}  {', '.join(found)}")
    print("\nunknown: no record tells whether today's fits differ; docs/evidence.md says more.")
    return 0


def _run(names: list[str], asked: argparse.Namespace) -> int:
    failed, started = [], time.perf_counter()
    for name in names:
        step = STEPS[name]
        if not (asked.quick or asked.force) and records.state(step) == "today's":
            print(f"{name}: of today's code")
            continue
        try:
            seconds = run(step, asked.data_dir, quick=asked.quick)
        except (NoDataError, RuntimeError) as error:
            failed.append(name)
            print(f"{name}: {error}", file=sys.stderr, flush=True)
        else:
            print(f"{name}: {seconds:.0f} s", flush=True)
    print(f"{time.perf_counter() - started:.0f} s in all")
    if failed:
        print(f"failed: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
