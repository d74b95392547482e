"""Mechanisms: the only layer that sees raw data and noise together."""

from fastmix.mechanisms.bounds import Spectrum, fast_bounds, gauss_bounds, spectral_events
from fastmix.mechanisms.curvature import CurvatureRelease, curvature_events, noisy_curvatures
from fastmix.mechanisms.first_stage import (
    line_event,
    noisy_gradient_counts,
    noisy_line,
    noisy_second_moments,
    noisy_target_mean,
    second_moment_event,
    target_mean_event,
)
from fastmix.mechanisms.mix import (
    MixRelease,
    fast_mix,
    fast_mix_event,
    gauss_mix,
    gauss_mix_event,
    mix,
)
from fastmix.mechanisms.noise import Noise, make_noise
from fastmix.mechanisms.objective import noisy_minimiser, objective_events
from fastmix.mechanisms.sampling import PrivateGram, symmetric_solve
from fastmix.mechanisms.scores import noisy_contrasts, noisy_score_sum, score_event
from fastmix.mechanisms.statistics import (
    StatisticsRelease,
    gradient_events,
    mean_event,
    moments_event,
    noisy_gradient,
    noisy_mean,
    noisy_moments,
    noisy_residual_counts,
    noisy_statistics,
    residual_event,
    statistics_event,
)

__all__ = [
    "CurvatureRelease",
    "MixRelease",
    "Noise",
    "PrivateGram",
    "Spectrum",
    "StatisticsRelease",
    "curvature_events",
    "fast_bounds",
    "fast_mix",
    "fast_mix_event",
    "gauss_bounds",
    "gauss_mix",
    "gauss_mix_event",
    "gradient_events",
    "line_event",
    "make_noise",
    "mean_event",
    "mix",
    "moments_event",
    "noisy_contrasts",
    "noisy_curvatures",
    "noisy_gradient",
    "noisy_gradient_counts",
    "noisy_line",
    "noisy_mean",
    "noisy_minimiser",
    "noisy_moments",
    "noisy_residual_counts",
    "noisy_score_sum",
    "noisy_second_moments",
    "noisy_statistics",
    "noisy_target_mean",
    "objective_events",
    "residual_event",
    "score_event",
    "second_moment_event",
    "spectral_events",
    "statistics_event",
    "symmetric_solve",
    "target_mean_event",
]
