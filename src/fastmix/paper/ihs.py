"""The iterative Hessian sketch, without privacy."""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fastmix.accounting import NonPrivateEvent, Part, PrivacySpent
from fastmix.data import Rows
from fastmix.engine.plan import Draws, Method, Plan, Sizes, Solution, Target
from fastmix.paper.newton import newton_steps
from fastmix.releases import PrivateGram
from fastmix.sketches import SRHT

#: Keeps a sketched Hessian invertible.
_RIDGE = 1e-5


@dataclass(frozen=True, kw_only=True)
class IHSPlan(Plan):
    """Rows of the sketch of each step."""

    k: int


@dataclass(frozen=True, kw_only=True)
class IterativeHessianSketch(Method):
    """IHS: NOT private, the line that private methods approach (FastIHS of Appendix H)."""

    sketch: str = "srht"
    n_steps: int | None = None
    sketch_size: int | None = None
    failure_probability: float | None = None

    name: ClassVar[str] = "ihs"
    estimator: ClassVar[str] = "IHS"
    choices: ClassVar = {"sketch": ("srht", "gaussian")}

    def ignored(self) -> tuple[str, ...]:
        return () if self.sketch_size is None else ("failure_probability",)

    def in_blocks(self) -> bool:
        return False  # the Hadamard transform needs the whole

    def plan(self, sizes: Sizes, target: Target) -> IHSPlan:
        steps = self.n_steps or 4
        base = max(sizes.d, math.log(4.0 * steps / self.varrho(target)))
        spent = PrivacySpent([Part("no privacy", [NonPrivateEvent()], 0.0)])
        return IHSPlan(spent=spent, steps=steps, k=self.sketch_size or math.ceil(6.0 * base))

    def solve(self, rows: Rows, plan: IHSPlan, clip: float, draws: Draws) -> Solution:
        theta = newton_steps(
            (self._hessian(rows, plan.k, draws.public) for _ in range(plan.steps)),
            lambda theta: rows.gradient(theta, np.inf),
            scale=1.0,
            steps=plan.steps,
            d=rows.d,
            progress=draws.progress,
        )
        return Solution(theta)

    def _hessian(self, rows: Rows, k: int, rng: np.random.Generator) -> PrivateGram:
        if self.sketch == "srht":
            largest = 1 << (rows.n - 1).bit_length()
            Z = rows.apply(SRHT(min(k, largest), rows.n).sample(rng))
        else:
            Z = np.zeros((k, rows.d))
            for A, _ in rows.blocks():
                Z += rng.standard_normal((k, len(A))) @ A / math.sqrt(k)
        return PrivateGram((np.vstack((Z, math.sqrt(_RIDGE) * np.eye(rows.d))),))
