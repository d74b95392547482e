"""Results on disk: one CSV file per experiment, one line per trial, appended as it ends."""

from __future__ import annotations

import csv
import io
import json
import os
import time
import uuid
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from reproduction.experiments.config import Config
from reproduction.machine import machine

__all__ = ["ResultTable", "Results", "as_text"]


class ResultTable:
    """A CSV file that grows by whole lines.

    Parameters
    ----------
    path : Path
        The file; its folder exists.
    columns : sequence of str
        Columns, the key first.
    key : int
        How many leading columns name a trial.
    """

    def __init__(self, path: Path, columns: tuple[str, ...], key: int) -> None:
        self.path, self.columns, self.key = path, columns, key
        text = path.read_text() if path.exists() else ""
        whole = text[: text.rfind("\n") + 1]
        if whole != text:  # a crash in the middle of a line
            path.write_text(whole)
        if not whole:
            self._append(self.columns)
        elif whole.splitlines()[0].split(",") != list(columns):
            raise ValueError(f"{path} has other columns; use another folder for results.")

    def rows(self) -> list[dict[str, str]]:
        """Return all lines."""
        with self.path.open(newline="") as file:
            return list(csv.DictReader(file))

    def done(self) -> set[tuple[str, ...]]:
        """Return the keys of finished trials."""
        names = self.columns[: self.key]
        return {tuple(row[name] for name in names) for row in self.rows()}

    def add(self, row: Mapping[str, Any]) -> None:
        """Append a line; it is on disk when this returns."""
        self._append([as_text(row[name]) for name in self.columns])

    def _append(self, values: Iterable[str]) -> None:
        line = io.StringIO()
        csv.writer(line, lineterminator="\n").writerow(values)
        # One write to a file opened for appending: a line is there wholly or not at all.
        file = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        try:
            os.write(file, line.getvalue().encode())
            os.fsync(file)
        finally:
            os.close(file)


class Results:
    """A folder of results of one configuration, with a record of every run.

    Parameters
    ----------
    folder : Path
        Where results go.
    config : Config
        What is run; a folder with results of another configuration is refused.
    command : str
        The command that was given.
    """

    def __init__(self, folder: Path, config: Config, command: str) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        identity = json.dumps(config.identity(), indent=1, sort_keys=True)
        kept = folder / "config.json"
        if kept.exists() and kept.read_text() != identity:
            raise ValueError(
                f"{folder} holds results of another configuration; "
                "use another folder, or remove it."
            )
        kept.write_text(identity)
        facts = machine()
        start = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        # Names the run in every line of its results.
        self.run = uuid.uuid4().hex[:8]
        runs = ResultTable(folder / "runs.csv", ("run", "start", "command", *facts), 1)
        runs.add({"run": self.run, "start": start, "command": command, **facts})

    def forget(self, methods: tuple[str, ...]) -> None:
        """Remove the results of some methods, as after a change of them."""
        for name in ("figure2", "airline", "speed"):
            path = self.folder / f"{name}.csv"
            if not path.exists():
                continue
            with path.open(newline="") as file:
                reader = csv.DictReader(file)
                columns = reader.fieldnames or ()
                kept = [row for row in reader if row["method"] not in methods]
            new = path.with_suffix(".new")
            with new.open("w", newline="") as file:
                writer = csv.DictWriter(file, columns, lineterminator="\n")
                writer.writeheader()
                writer.writerows(kept)
            os.replace(new, path)

    def table(self, name: str, columns: tuple[str, ...], key: int) -> ResultTable:
        """Open the results of an experiment; every line ends with its run."""
        return ResultTable(self.folder / f"{name}.csv", (*columns, "run"), key)


def as_text(value: Any) -> str:
    """Return a value as it stands in a file of results."""
    return "" if value is None else f"{value:.8g}" if isinstance(value, float) else str(value)
