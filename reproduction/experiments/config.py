"""What is run: sizes, trials and ratios, from TOML."""

from __future__ import annotations

import math
import tomllib
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from reproduction.checks import require

__all__ = ["Config", "SetConfig", "load_config"]


@dataclass(frozen=True)
class SetConfig:
    """One data set of an experiment: its name, sampled rows, and ratios of k2."""

    set: str
    n: int
    ratios: tuple[int, ...]


@dataclass(frozen=True)
class Config:
    """All experiments.

    Parameters
    ----------
    seed : int
        Seed of data and noise; every trial derives its own from it.
    trials : int
        Trials for each method and epsilon.
    steps : int
        Steps T of the paper's methods.
    timing_repeats : int
        Timed fits for each method.
    full_statistics : bool
        Compute the statistics of data sets at the paper's sizes, whatever the sizes below are.
    epsilons : tuple of float
        Privacy budgets of Figure 2 and of the Airline appendix.
    figure1 : dict
        Rows ``n``, columns ``d`` and ``epsilons`` of Figure 1.
    figure2, airline, hessians : tuple of SetConfig
        Data sets; of ``airline`` the first one that is there is used.
    draws : int
        Drawn sketches for each set, kind and size.
    synthetic_draws : int
        Draws of each synthetic set, to see how its statistics vary.
    orders : dict
        Sizes ``n`` and ``d``, and ``k1_per_column`` and ``k2_per_column``, of timed algorithms.
    crossover : dict
        Rows ``n``, columns ``d``, and the ``literal_d`` at which methods also do all the work that
        the paper counts.
    """

    seed: int
    trials: int
    steps: int
    timing_repeats: int
    full_statistics: bool
    epsilons: tuple[float, ...]
    figure1: dict[str, Any]
    figure2: tuple[SetConfig, ...]
    airline: tuple[SetConfig, ...]
    hessians: tuple[SetConfig, ...]
    draws: int
    synthetic_draws: int
    orders: dict[str, Any]
    crossover: dict[str, Any]

    def identity(self) -> dict[str, Any]:
        """Return what results must agree in to be continued; more trials may always be added."""
        kept = asdict(self)
        for name in ("trials", "timing_repeats", "full_statistics", "draws", "synthetic_draws"):
            del kept[name]
        for name in ("hessians", "orders", "crossover"):  # every row of these has its sizes
            del kept[name]
        return kept


def load_config(path: str | Path | None = None, *, quick: bool = False) -> Config:
    """Read a configuration.

    Parameters
    ----------
    path : path, optional
        A TOML file; by default ``paper.toml`` beside this module, the paper's set-up.
    quick : bool, default False
        Read ``quick.toml`` instead, the small set-up.

    Returns
    -------
    Config
        The checked configuration.
    """
    if path is None:
        path = Path(__file__).with_name("quick.toml" if quick else "paper.toml")
    raw = tomllib.loads(Path(path).read_text())
    keys = Config.__dataclass_fields__
    require("config", f"have the keys {', '.join(keys)}", set(raw) == set(keys), sorted(raw))
    for name in ("seed", "trials", "steps", "timing_repeats", "draws", "synthetic_draws"):
        least, value = (0 if name == "seed" else 1), raw[name]
        whole = isinstance(value, int) and not isinstance(value, bool)
        require(name, f"be an integer of at least {least}", whole and value >= least, value)
    for epsilon in raw["epsilons"]:
        require("epsilons", "be greater than 0", 0.0 < epsilon < math.inf, epsilon)
    sets = {
        part: tuple(SetConfig(s["set"], s["n"], tuple(s["ratios"])) for s in raw[part])
        for part in ("figure2", "airline", "hessians")
    }
    return Config(**{**raw, **sets, "epsilons": tuple(map(float, raw["epsilons"]))})
