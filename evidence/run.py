"""Run the benchmark of a step, and put its table, figures and record where they belong."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pandas as pd

from evidence import pages, records
from evidence.behaviour import ROOT, files
from evidence.step import Step

WORK, DOCS = ROOT / "build" / "evidence", ROOT / "docs"


class NoDataError(Exception):
    """A step needs the folder with the data sets."""


def run(step: Step, data: Path | None, *, quick: bool) -> float:
    """Measure a step and return the seconds it took; a quick run changes no tracked file."""
    folder = WORK / "quick" / step.name if quick else WORK / step.name
    commands = step.quick if quick else step.whole
    if data is None and any("{data}" in each for each in commands):
        raise NoDataError(f"{step.name} needs --data-dir, or FASTMIX_DATA")
    before = _begun(step, folder, fresh=quick)
    docs = folder if quick else DOCS
    out, busy, code = folder / f"{step.name}.csv", records.load(), _written()
    started = time.perf_counter()
    try:
        for each in commands:
            _call(each.format(out=out, data=data, work=folder, docs=docs), folder / "log.txt")
    finally:
        before["seconds"] += time.perf_counter() - started
        (folder / "begun.json").write_text(json.dumps(before))
    if _written() != code:
        raise RuntimeError(f"{step.name}: the code was changed during the run; run it again")
    if step.own:
        frame = pd.read_csv(docs / step.table)
    else:
        frame = step.summary(out) if step.summary else pd.read_csv(out)
        frame.to_csv(docs / step.table, index=False, float_format="%.6g")
    if step.figures:
        step.figures(pd.read_csv(docs / step.table), docs)
    record = records.record(step, before["seconds"], int(step.count(frame)), busy)
    if "commit" in frame:  # results of several days: each line names its own
        record["commit"] = ", ".join(dict.fromkeys(frame["commit"]))
    texts = pages.of_table(step, docs / step.table, record)
    if quick:
        (folder / "page.md").write_text("\n\n".join(texts.values()) + "\n", encoding="utf-8")
        return before["seconds"]
    records.write(step.name, record)
    pages.write()
    shutil.rmtree(folder)
    return before["seconds"]


def _written() -> float:
    """Return when the newest source file was written."""
    return max(file.stat().st_mtime for folder in records.CODE for file in files(folder))


def _begun(step: Step, folder: Path, *, fresh: bool) -> dict[str, object]:
    """Return the state of a run that was interrupted with today's code, or begin a new one."""
    note = folder / "begun.json"
    if note.exists() and not fresh:
        begun = json.loads(note.read_text())
        if not records.differing(step, begun["digest"]):
            return begun
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    begun = {"digest": records.digest(step), "seconds": 0.0}
    note.write_text(json.dumps(begun))
    if step.kept and step.path.exists():
        step.kept(pd.read_csv(step.path)).to_csv(folder / f"{step.name}.csv", index=False)
    return begun


def _call(command: str, log: Path) -> None:
    """Run one command of a benchmark from the root, with this Python."""
    words = shlex.split(command)
    if words[0] == "python":
        words[0] = sys.executable
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with log.open("a", encoding="utf-8") as file:
        print(f"$ {command}", file=file, flush=True)
        done = subprocess.run(
            words, cwd=ROOT, env=environment, stdout=file, stderr=file, check=False
        )
    if done.returncode:
        tail = "\n".join(log.read_text(encoding="utf-8").splitlines()[-15:])
        raise RuntimeError(f"{command}\nended with code {done.returncode}; {log} ends with\n{tail}")
