"""What a fit costs, predicted from public sizes: seconds and memory."""

import math
from dataclasses import astuple, dataclass

import numpy as np

from fastmix._validation import check_choice, check_integer
from fastmix.engine import Method, Plan

#: Methods whose cost is modelled.
COSTED = ("adassp", "fast_ihm", "fast_ihm_paper", "ihm",
           "objective_gram", "objective_sigmoid", "objective_sketch")  # fmt: skip
#: Names in `COSTED` of methods and solvers that have another name there.
_NAMES = {
    "gram": "objective_gram",
    "sketch": "objective_sketch",
    "logistic": "objective_sigmoid",
    "quantile": "objective_sigmoid",
}


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
        return float(np.dot(astuple(self), work(method, problem)))


def work(method: str, problem: Problem) -> list[float]:
    """Return the units of work of a fit, in the order of the fields of `CostModel`."""
    n, d, k2, steps = problem.n, problem.d, problem.k2, problem.n_steps
    n_pad = 1 << (n - 1).bit_length()
    sketch = n_pad * d * math.log2(2 * n_pad)
    fixed, passes, gram, sketches, cubes = {
        "adassp": (0, 2, n * d**2, 0, 1),
        "objective_gram": (0, 4, n * d**2, 0, 1),
        # Newton's steps, with exponentials for every row.
        "objective_sigmoid": (0, 20, n * d**2, 0, 1),
        # A sparse sketch takes about as long as eight passes, and many follow.
        "objective_sketch": (0, 33, 8 * d**3, 0, 1),
        "ihm": (steps, 1 + steps, n * d**2, 0, 1),
        # A sparse sketch takes about as long as two passes.
        "fast_ihm": (steps, 3 + steps, min(k2, n) * d**2, 0, 1),
        "fast_ihm_paper": (2 * steps, 1 + steps, steps * k2 * d**2, steps, steps),
    }[check_choice("method", method, COSTED)]
    return [1.0, fixed, passes * n * d, gram, sketches * sketch, cubes * d**3]


def seconds(method: Method, plan: Plan, n: int, columns: int, model: CostModel) -> float:
    """Return the predicted seconds of a planned fit."""
    settings, classes = plan.settings, max(getattr(method, "n_classes", 2), method.outputs)
    name = method.name if method.name in _NAMES else settings.get("preconditioner", method.name)
    problem = Problem(n, columns, settings.get("k2", 1), plan.steps)
    return model.predict(_NAMES.get(name, name), problem) * (classes if classes > 2 else 1)


def memory(method: Method, plan: Plan, n: int, columns: int) -> float:
    """Return bytes beyond the data: norms, one block or sketch, a few Gram matrices."""
    used = min(n * columns * 8, 64 << 20) if columns > 128 else 0
    if method.name == "fast_ihm":
        used = plan.settings.get("k2", 0) * columns * 8
    return 16.0 * n + used + 5.0 * 8.0 * columns**2
