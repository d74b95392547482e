"""What is run: sizes, trials and ratios, from TOML."""

from __future__ import annotations

import tomllib
from dataclasses import asdict, dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from fastmix._validation import check_integer, check_real, value_error

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
    figure2, airline : tuple of SetConfig
        Data sets; of ``airline`` the first one that is there is used.
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

    def identity(self) -> dict[str, Any]:
        """Return what results must agree in to be continued; more trials may always be added."""
        kept = asdict(self)
        for name in ("trials", "timing_repeats", "full_statistics"):
            del kept[name]
        return kept


def load_config(path: str | Path | None = None, *, quick: bool = False) -> Config:
    """Read a configuration.

    Parameters
    ----------
    path : path, optional
        A TOML file; by default the paper's set-up that comes with the package.
    quick : bool, default False
        The small set-up that comes with the package.

    Returns
    -------
    Config
        The checked configuration.
    """
    if path is None:
        text = (files("fastmix.experiments") / f"{'quick' if quick else 'paper'}.toml").read_text()
    else:
        text = Path(path).read_text()
    raw = tomllib.loads(text)
    unknown = sorted(set(raw) - set(Config.__dataclass_fields__))
    missing = sorted(set(Config.__dataclass_fields__) - set(raw))
    if unknown or missing:
        raise value_error(
            "config", f"have the keys {', '.join(Config.__dataclass_fields__)}", unknown or missing
        )
    for name in ("seed", "trials", "steps", "timing_repeats"):
        check_integer(name, raw[name], at_least=0 if name == "seed" else 1)
    for epsilon in raw["epsilons"]:
        check_real("epsilons", epsilon, above=0.0)
    sets = {
        part: tuple(SetConfig(s["set"], s["n"], tuple(s["ratios"])) for s in raw[part])
        for part in ("figure2", "airline")
    }
    return Config(**{**raw, **sets, "epsilons": tuple(map(float, raw["epsilons"]))})
