"""The front door: one estimator, any method."""

from __future__ import annotations

from dataclasses import fields

from fastmix._validation import check_choice
from fastmix.estimators._base import PrivateRegressor, estimator
from fastmix.estimators._parameters import check_ignored
from fastmix.estimators._plan import Plan, Solution, Streams, Target
from fastmix.estimators._scaling import PublicScaling
from fastmix.estimators.adassp import AdaSSP
from fastmix.estimators.dp_gd import DPGradientDescent
from fastmix.estimators.fast_ihm import FastIHM
from fastmix.estimators.ihm import IHM
from fastmix.estimators.linear_mixing import LinearMixing
from fastmix.rows import Rows

__all__ = ["PrivateLinearRegression"]

_METHODS: dict[str, type[PrivateRegressor]] = {
    "adassp": AdaSSP,
    "dp_gd": DPGradientDescent,
    "fast_ihm": FastIHM,
    "ihm": IHM,
    "linear_mixing": LinearMixing,
}

#: From this many columns on a fast sketch is clearly cheaper than one Gram matrix.
_WIDE = 500


@estimator
class PrivateLinearRegression(PrivateRegressor):
    """Private linear regression: the front door.

    Neighbouring relation: zero-out (one record absent: its scaled row and target are zeros; n is
    public).

    Parameters
    ----------
    {parameters}
    method : {"auto", "adassp", "dp_gd", "fast_ihm", "ihm", "linear_mixing"}, default="auto"
        "auto" takes `IHM`, the more accurate one, below 500 columns, and `FastIHM`, the faster
        one for wide data, from there on. The choice depends on public quantities only.

    Attributes
    ----------
    {attributes}
    method_ : str
        The method that was used.

    Notes
    -----
    Paper: Section 4.
    Deviation: none.
    Sensitive inputs: the data given to `fit`.

    Examples
    --------
    >>> from fastmix import PrivateLinearRegression
    >>> from fastmix.datasets import make_sphere
    >>> X, y = make_sphere(n=4096, d=4, random_state=0)
    >>> model = PrivateLinearRegression(
    ...     epsilon=1.0, data_norm=1.0, bounds_y=(-1, 1), fit_intercept=False
    ... )
    >>> model.fit(X, y).privacy_.epsilon <= 1.0
    True
    """

    method: str = "auto"

    def _check_parameters(self) -> None:
        check_choice("method", self.method, ("auto", *_METHODS))
        super()._check_parameters()

    def _ignored(self, columns: int | None = None) -> tuple[str, ...]:
        if columns is None and self.method == "auto":
            return ()  # known when the method is
        ignored = self._chosen(columns or 1)[1]._ignored(columns)
        return tuple(name for name in ignored if hasattr(self, name))

    @property
    def _infers(self) -> bool:  # type: ignore[override]
        return self.method == "auto" or _METHODS[self.method]._infers

    def _choose(self, d: int) -> tuple[str, str]:
        """Return the method for d columns, and why."""
        if self.method != "auto":
            return self.method, f"{self.method}: asked for."
        if d < _WIDE:
            return "ihm", (
                f"ihm: with {d} columns (counting the intercept) one Gram matrix is cheap, and on "
                "most data ihm adds the least error."
            )
        return "fast_ihm", (
            f"fast_ihm: with {d} columns, {_WIDE} or more, a Gram matrix of all rows is the "
            "larger part of a fit, and a fast sketch replaces it."
        )

    def _chosen(self, d: int) -> tuple[str, PrivateRegressor]:
        name, _ = self._choose(d)
        common = {f.name: getattr(self, f.name) for f in fields(PrivateRegressor)}
        return name, _METHODS[name](**common)

    def _plan(self, n: int, d: int, target: Target) -> Plan:
        name, method = self._chosen(d)
        check_ignored(self, f"method {name!r}", d)
        plan = method._plan(n, d, target)
        return Plan(plan.spent, {**plan.parameters, "method_": name})

    def _works_in_blocks(self, columns: int) -> bool:
        return self._chosen(columns)[1]._works_in_blocks(columns)

    def _solve(self, rows: Rows, plan: Plan, clip: float, streams: Streams) -> Solution:
        return self._chosen(rows.d)[1]._solve(rows, plan, clip, streams)

    def _store(
        self, solution: Solution, plan: Plan, scaling: PublicScaling, n: int, clip: float
    ) -> None:
        super()._store(solution, plan, scaling, n, clip)
        self.method_ = plan.parameters.get("method_", "least_squares")
