"""Mechanisms: the only layer that sees raw data and noise together."""

from fastmix.mechanisms.fast_mix import (
    FastMixRelease,
    MultipleFastMixRelease,
    fast_mix,
    fast_mix_event,
    multiple_fast_mix,
)
from fastmix.mechanisms.gauss_mix import GaussMixRelease, gauss_mix, gauss_mix_event
from fastmix.mechanisms.gradient import gradient_events, noisy_gradient
from fastmix.mechanisms.gram import PrivateGram, symmetric_solve
from fastmix.mechanisms.mean import mean_event, noisy_mean
from fastmix.mechanisms.residuals import noisy_residual_counts, residual_event
from fastmix.mechanisms.statistics import StatisticsRelease, noisy_statistics, statistics_event

__all__ = [
    "FastMixRelease",
    "GaussMixRelease",
    "MultipleFastMixRelease",
    "PrivateGram",
    "StatisticsRelease",
    "fast_mix",
    "fast_mix_event",
    "gauss_mix",
    "gauss_mix_event",
    "gradient_events",
    "mean_event",
    "multiple_fast_mix",
    "noisy_gradient",
    "noisy_mean",
    "noisy_residual_counts",
    "noisy_statistics",
    "residual_event",
    "statistics_event",
    "symmetric_solve",
]
