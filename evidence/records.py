"""The record of every table, in docs/evidence.json: when, where and with which code it was made."""

from __future__ import annotations

import json
import os
import re
import subprocess
from datetime import date
from typing import Any

from evidence.behaviour import ROOT, observed, same, source
from evidence.step import Step
from fastmix.kernels import kernels_used
from reproduction.machine import machine

PATH = ROOT / "docs" / "evidence.json"
#: A machine whose load is below this when a step starts is quiet.
QUIET = 0.5
#: A table is that of the last commit that changed one of these.
CODE = ("src", "native")


def read() -> dict[str, Any]:
    """Return the records by step."""
    return json.loads(PATH.read_text(encoding="utf-8")) if PATH.exists() else {}


def write(name: str, record: dict[str, Any]) -> None:
    """Store the record of a step."""
    records = dict(sorted({**read(), name: record}.items()))
    text = json.dumps(records, indent=1)
    # Numbers of a fit share a line, so that a change is a line of the comparison.
    text = re.sub(r"\[[^][]*\]", lambda found: " ".join(found[0].split()), text)
    PATH.write_text(text + "\n", encoding="utf-8")


def digest(step: Step) -> dict[str, Any]:
    """Return what the numbers of a step depend on, with today's code."""
    if step.sources:
        return {"source": source(step.sources), **(step.exact() if step.exact else {})}
    return {name: observed(name) for name in step.fits}


def differing(step: Step, stored: dict[str, Any] | None) -> list[str]:
    """Return the names of fits, or of sources, that differ from those of a record."""
    if stored is None:
        return ["no record"]
    today = digest(step)
    names = dict.fromkeys([*stored, *today])
    return [name for name in names if not _agree(stored.get(name), today.get(name))]


def _agree(stored: Any, found: Any) -> bool:
    if isinstance(stored, list) and isinstance(found, list):
        return same(stored, found)
    return bool(stored == found)


def state(step: Step) -> str:
    """Return whether the table of a step is today's, stale, missing, or of unknown code."""
    if step.name not in (known := read()) or not step.path.exists():
        return "missing"
    if (stored := known[step.name]["digest"]) is None:
        return "unknown"
    return "stale" if differing(step, stored) else "today's"


def commit() -> str:
    """Return the last commit that changed the code, marked where files were changed since."""

    def git(*words: str) -> str:
        command = ["git", "-C", str(ROOT), *words, "--", *CODE]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()

    last = git("log", "-1", "--format=%h", "--abbrev=10")
    return last + ("+" if git("status", "--porcelain") else "")


def load() -> str:
    """Return how busy the machine is, before a step starts."""
    busy = os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0
    return "quiet" if busy < QUIET else f"{busy:.1f}"


def record(step: Step, seconds: float, fits: int, busy: str) -> dict[str, Any]:
    """Return the record of a table that was measured just now."""
    facts = machine()
    return {
        "commit": commit(),
        "date": date.today().isoformat(),
        "processor": facts["processor"],
        "instruction_set": kernels_used().get("instruction_set", "NumPy"),
        "cores": int(facts["cores"]),
        "load": busy,
        "fits": fits,
        "seconds": round(seconds),
        "digest": digest(step),
    }
