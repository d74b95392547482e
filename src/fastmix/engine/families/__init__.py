"""The families of losses that the engine fits, one file each."""

from fastmix.engine.families.huber import HuberObjective
from fastmix.engine.families.logistic import LogisticObjective
from fastmix.engine.families.quantile import QuantileObjective
from fastmix.engine.families.squares import AdaptiveObjective

__all__ = ["AdaptiveObjective", "HuberObjective", "LogisticObjective", "QuantileObjective"]
