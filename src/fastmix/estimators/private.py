"""The front door: one estimator, any method."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np

from fastmix._validation import check_choice
from fastmix.estimators._base import Plan, PrivateRegressor, Solution, estimator
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

#: From this many columns on one Gram matrix costs more than a fast sketch.
_WIDE = 500


@estimator
class PrivateLinearRegression(PrivateRegressor):
    """Private linear regression: the front door.

    Neighbouring relation: zero-out (one record replaced by zeros, n public).

    Parameters
    ----------
    {parameters}
    method : {"auto", "adassp", "dp_gd", "fast_ihm", "ihm", "linear_mixing"}, default="auto"
        "auto" takes `IHM` below 500 columns, where one Gram matrix is both faster and more
        accurate, and `FastIHM` from there on. The choice depends on public quantities only.

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

    def fit(self, X: Any, y: Any) -> Any:
        """Fit the model privately.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Records, one a row.
        y : array-like of shape (n_samples,)
            Targets.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        check_choice("method", self.method, ("auto", *_METHODS))
        super().fit(X, y)
        self.method_ = self.privacy_.parameters.get("method_", self.method)
        return self

    def _chosen(self, d: int) -> PrivateRegressor:
        name = self.method if self.method != "auto" else "ihm" if d < _WIDE else "fast_ihm"
        common = {f.name: getattr(self, f.name) for f in fields(PrivateRegressor)}
        return _METHODS[name](**common)

    def _plan(self, n: int, d: int, delta: float, varrho: float) -> Plan:
        method = self._chosen(d)
        plan = method._plan(n, d, delta, varrho)
        name = next(name for name, cls in _METHODS.items() if isinstance(method, cls))
        return Plan(plan.spent, {**plan.parameters, "method_": name})

    def _solve(self, rows: Rows, plan: Plan, clip: float, rng: np.random.Generator) -> Solution:
        return self._chosen(rows.d)._solve(rows, plan, clip, rng)
