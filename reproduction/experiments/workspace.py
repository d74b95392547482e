"""What one run of the experiments shares: configuration, results, data, processes."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from reproduction.experiments.config import Config, SetConfig
from reproduction.experiments.problems import load_problem
from reproduction.experiments.results import Results

__all__ = ["Workspace"]


@dataclass
class Workspace:
    """What one run of the experiments shares.

    Parameters
    ----------
    config : Config
        What is run.
    results : Results
        Where results go.
    scratch : Path
        Folder for scaled data, which worker processes map into memory.
    data_dir : path, optional
        Folder with data files.
    download : bool
        Fetch from OpenML what is there.
    jobs : int
        Processes.
    say : callable
        Where messages go.
    """

    config: Config
    results: Results
    scratch: Path
    data_dir: str | os.PathLike[str] | None = None
    download: bool = False
    jobs: int = 1
    say: Callable[[str], None] = print
    _absent: set[str] = field(init=False, default_factory=set)

    def problems(self, experiment: str) -> Iterator[tuple[SetConfig, Path]]:
        """Yield the sets of an experiment that are there, with their folders; of airline, one."""
        for chosen in getattr(self.config, experiment):
            folder = self.problem(chosen)
            if folder is not None:
                yield chosen, folder
                if experiment == "airline":
                    return

    def problem(self, chosen: SetConfig) -> Path | None:
        """Return the folder of a scaled problem, or None with a line that says what is missing."""
        folder = self.scratch / str(chosen.n) / chosen.set
        if chosen.set in self._absent or (folder / "optimum.npy").exists():
            return None if chosen.set in self._absent else folder
        try:
            problem = load_problem(
                chosen, self.config.seed, data_dir=self.data_dir, download=self.download
            )
        except (FileNotFoundError, ImportError) as error:
            self._absent.add(chosen.set)
            self.say(f"skipped {error}")
            return None
        return problem.save(folder)
