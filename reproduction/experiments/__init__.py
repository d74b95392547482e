"""The experiments of the paper: configuration in TOML, results in CSV, one line per trial."""

from reproduction.experiments.config import Config, SetConfig, load_config
from reproduction.experiments.reproduce import EXPERIMENTS, reproduce

__all__ = ["EXPERIMENTS", "Config", "SetConfig", "load_config", "reproduce"]
