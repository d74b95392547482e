"""The experiments of the paper: configuration in TOML, results in CSV, one line a trial."""

from fastmix.experiments.config import Config, SetConfig, load_config
from fastmix.experiments.reproduce import EXPERIMENTS, reproduce

__all__ = ["EXPERIMENTS", "Config", "SetConfig", "load_config", "reproduce"]
