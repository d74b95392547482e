"""The cost model of `fastmix.planning`, fitted to measured times."""

from collections.abc import Iterable
from dataclasses import dataclass, fields

import numpy as np
from scipy.optimize import nnls

from fastmix.planning import CostModel, Problem, work


@dataclass(frozen=True)
class Measurement:
    """Seconds that a method took on a problem."""

    method: str
    problem: Problem
    seconds: float


def fit_cost_model(measurements: Iterable[Measurement]) -> CostModel:
    """Fit a cost model to measured times, by least squares on relative errors."""
    measured = list(measurements)
    units = np.array([work(m.method, m.problem) for m in measured])
    seconds = np.array([m.seconds for m in measured])
    scale = units.max(axis=0)
    weights, _ = nnls(units / scale / seconds[:, None], np.ones(len(measured)))
    names = [field.name for field in fields(CostModel)]
    return CostModel(**dict(zip(names, (weights / scale).tolist(), strict=True)))
