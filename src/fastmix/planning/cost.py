"""What a fit costs in seconds, predicted from public sizes."""

import math
from collections.abc import Iterable
from dataclasses import astuple, dataclass, fields

import numpy as np
from scipy.optimize import nnls

from fastmix._validation import check_choice, check_integer

#: Methods whose cost is modelled.
METHODS = (
    "adassp",
    "fast_ihm_paper",
    "fast_ihm_shared",
    "ihm",
    "objective_gram",
    "objective_sketch",
)


@dataclass(frozen=True)
class Problem:
    """Public sizes of a fit: rows, columns, rows of the fast sketch, steps."""

    n: int
    d: int
    k2: int = 1
    n_steps: int = 4

    def __post_init__(self) -> None:
        for name in ("n", "d", "k2", "n_steps"):
            check_integer(name, getattr(self, name), at_least=1)


@dataclass(frozen=True)
class Measurement:
    """Seconds that a method took on a problem."""

    method: str
    problem: Problem
    seconds: float


@dataclass(frozen=True)
class CostModel:
    """Seconds for each unit of work; the defaults were measured by ``make bench``."""

    call: float = 2.1e-3  #: A fit: calibration, validation, certificate.
    step: float = 2.3e-4  #: One step of an iterative method, twice that with a sketch of its own.
    entry: float = 8.1e-10  #: One read of an entry of X, as in a norm or a gradient.
    product: float = 3.0e-11  #: One multiply-add of a Gram matrix (half of it is computed).
    butterfly: float = 2.5e-10  #: An entry through a level of the Hadamard transform and back.
    cubic: float = 0.0  #: One multiply-add of the d x d linear algebra.

    def predict(self, method: str, problem: Problem) -> float:
        """Return the predicted seconds of a fit."""
        return float(np.dot(astuple(self), _work(method, problem)))

    def crossover(self, n: int, k2_per_column: float = 16.0, largest: int = 8192) -> int | None:
        """Return the least d at which `FastIHM` beats `IHM`, or None if there is none."""
        for d in sorted({round(2 ** (step / 8)) for step in range(8, 8 * 14)}):
            problem = Problem(n, d, max(1, round(k2_per_column * d)))
            if d > largest or problem.k2 > n:
                return None
            if self.predict("fast_ihm_shared", problem) < self.predict("ihm", problem):
                return d
        return None


def _work(method: str, problem: Problem) -> list[float]:
    """Return the units of work of a fit, in the order of the fields of `CostModel`."""
    n, d, k2, steps = problem.n, problem.d, problem.k2, problem.n_steps
    n_pad = 1 << (n - 1).bit_length()
    sketch = n_pad * d * math.log2(2 * n_pad)
    fixed, passes, gram, sketches, cubes = {
        "adassp": (0, 2, n * d**2, 0, 1),
        "objective_gram": (0, 4, n * d**2, 0, 1),
        # A sketch without its distortion is one transform of the two, and many passes follow.
        "objective_sketch": (0, 25, 4 * d**3, 0.5, 1),
        "ihm": (steps, 1 + steps, n * d**2, 0, 1),
        "fast_ihm_shared": (steps, 1 + steps, k2 * d**2, 1, 1),
        "fast_ihm_paper": (2 * steps, 1 + steps, steps * k2 * d**2, steps, steps),
    }[check_choice("method", method, METHODS)]
    return [1.0, fixed, passes * n * d, gram, sketches * sketch, cubes * d**3]


def fit_cost_model(measurements: Iterable[Measurement]) -> CostModel:
    """Fit a cost model to measured times, by least squares on relative errors."""
    measured = list(measurements)
    work = np.array([_work(m.method, m.problem) for m in measured])
    seconds = np.array([m.seconds for m in measured])
    scale = work.max(axis=0)
    weights, _ = nnls(work / scale / seconds[:, None], np.ones(len(measured)))
    names = [field.name for field in fields(CostModel)]
    return CostModel(**dict(zip(names, (weights / scale).tolist(), strict=True)))
