"""The iterative Hessian sketch, without privacy."""

from __future__ import annotations

import math

import numpy as np

from fastmix._validation import check_choice
from fastmix.accounting import NonPrivateEvent, Part, PrivacySpent
from fastmix.estimators._base import PrivateRegressor, estimator
from fastmix.estimators._newton import newton_steps
from fastmix.estimators._plan import Plan, Solution, Streams, Target
from fastmix.mechanisms import PrivateGram
from fastmix.rows import Rows
from fastmix.sketches import SRHT

__all__ = ["IHS"]

#: Keeps a sketched Hessian invertible.
_RIDGE = 1e-5


@estimator
class IHS(PrivateRegressor):
    """Iterative Hessian sketch: NOT private, the line that private methods approach.

    Parameters
    ----------
    {parameters}
    sketch : {"srht", "gaussian"}, default="srht"
        "srht" is the paper's FastIHS.

    Attributes
    ----------
    {attributes}

    Notes
    -----
    Paper: FastIHS of Appendix H; exact gradients, a fresh sketch each step, a ridge of 1e-5.
    Deviation: none.
    Sensitive inputs: the data given to `fit`; nothing here is private, whatever epsilon says.
    """

    sketch: str = "srht"

    def _ignored(self, columns: int | None = None) -> tuple[str, ...]:
        unused = ("gaussian_size", "residual_clip", "shrinkage", "engine", "noise")
        return unused if self.sketch_size is None else (*unused, "failure_probability")

    def _plan(self, n: int, d: int, target: Target) -> Plan:
        check_choice("sketch", self.sketch, ("srht", "gaussian"))
        steps = self.n_steps or 4
        k = self.sketch_size or math.ceil(6.0 * max(d, math.log(4.0 * steps / target.varrho)))
        spent = PrivacySpent([Part("no privacy", [NonPrivateEvent()], 0.0)])
        return Plan(spent, {"n_steps_": steps, "k": k})

    def _works_in_blocks(self, columns: int) -> bool:
        return False

    def _solve(self, rows: Rows, plan: Plan, clip: float, streams: Streams) -> Solution:
        theta = newton_steps(
            (self._hessian(rows, plan["k"], streams.public) for _ in range(plan["n_steps_"])),
            lambda _, theta: rows.gradient(theta, np.inf),
            scales=(1.0,) * plan["n_steps_"],
            d=rows.d,
            progress=self._progress,
        )
        return Solution(theta, NonPrivateEvent())

    def _hessian(self, rows: Rows, k: int, rng: np.random.Generator) -> PrivateGram:
        if self.sketch == "srht":
            largest = 1 << (rows.n - 1).bit_length()
            Z = rows.apply(SRHT(min(k, largest), rows.n).sample(rng))
        else:
            Z = np.zeros((k, rows.d))
            for A, _ in rows.blocks():
                Z += rng.standard_normal((k, len(A))) @ A / math.sqrt(k)
        return PrivateGram((np.vstack((Z, math.sqrt(_RIDGE) * np.eye(rows.d))),))
