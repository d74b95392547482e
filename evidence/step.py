"""A step: which benchmark writes which table, and what its numbers depend on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evidence.behaviour import ROOT


@dataclass(frozen=True)
class Step:
    """A benchmark, the table in docs/ that it writes, and how pages show the table."""

    name: str
    about: str
    whole: tuple[str, ...]
    quick: tuple[str, ...]
    #: From the table to what the template of this step shows.
    view: Callable[[Any], dict[str, Any]]
    #: Names of the seeded fits that the numbers depend on, or for times the sources.
    fits: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    #: From the file of the benchmark to the table; by default the file is the table.
    summary: Callable[[Path], Any] | None = None
    #: Lines of the former table that do not depend on this code, which a new run begins with.
    kept: Callable[[Any], Any] | None = None
    #: Draws the figures of a table into a folder.
    figures: Callable[[Any, Path], None] | None = None
    #: Counts the fits of a table.
    count: Callable[[Any], float] = len
    #: What the table counts, such as lines of code, which must be exact.
    exact: Callable[[], dict[str, int]] | None = None
    #: Takes hours, so it runs only if it is named.
    separate: bool = False

    #: The table and the pages of a benchmark that writes them itself, in {docs}.
    own: tuple[str, ...] = ()

    @property
    def table(self) -> str:
        """Name of the table in docs/."""
        return self.own[0] if self.own else f"{self.name}.csv"

    @property
    def path(self) -> Path:
        """The tracked table."""
        return ROOT / "docs" / self.table
