"""The noise levels of an adaptive fit."""

from dataclasses import dataclass
from typing import Any

from fastmix.engine.plan import Plan


@dataclass(frozen=True, kw_only=True)
class AdaptivePlan(Plan):
    """Noise levels of all releases, and how many rounds of second moments there are."""

    mu: float
    eps_c: float
    mu_output: float
    n_rounds: int
    moment_sigma: float | None
    count_sigma: float | None
    mean_sigma: float | None
    line_sigma: float | None
    preconditioner: str
    curvature_sigma: float | None = None
    square_sigma: float | None = None
    #: Noise of the mean of the columns, and of steps, where a table has categories.
    level_sigma: float | None = None
    step_sigma: float | None = None

    @property
    def settings(self) -> dict[str, Any]:
        """Sizes and noise levels by name; those of intervals if there are any."""
        settings = super().settings
        for first, second in (("curvature_sigma", "square_sigma"), ("level_sigma", "step_sigma")):
            if settings[first] is None:
                del settings[first], settings[second]
        return settings
