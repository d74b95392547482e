"""What all estimators share: parameters, public scaling, the ledger, and the order of a fit.

A fit has a fixed order, so that nothing is spent in vain and nothing is released unpaid:

1. parameters are checked and the plan is made, from public quantities only;
2. the budget is asked whether it covers the plan, before any value of the data is read;
3. the data are checked and scaled by public bounds;
4. the plan is charged;
5. mechanisms draw noise; their events must be exactly those of the plan.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from fastmix._validation import check_integer, unchained, value_error
from fastmix.accounting import (
    BudgetAccountant,
    NonPrivateEvent,
    Part,
    PrivacySpent,
)
from fastmix.estimators._advice import advise
from fastmix.estimators._data import Arrays, Data, Table, features_to_predict
from fastmix.estimators._display import NotebookCard
from fastmix.estimators._documentation import estimator
from fastmix.estimators._intervals import ConfidenceIntervals
from fastmix.estimators._least_squares import least_squares
from fastmix.estimators._parameters import check_parameters, reasons_for_leaks
from fastmix.estimators._plan import Plan, Solution, Streams, Target
from fastmix.estimators._residuals import plan_residuals, release_residuals
from fastmix.estimators._scaling import PublicScaling
from fastmix.estimators.certificate import PrivacyCertificate, jsonable
from fastmix.mechanisms.exact_noise import exact_event, exact_source
from fastmix.random import (
    RandomState,
    is_seeded,
    public_generator,
    secret_generator,
    warn_seeded,
)
from fastmix.rows import Chunks, Report, Rows
from fastmix.rows.dask import Cluster, dask_chunks, is_dask
from fastmix.rows.files import file_chunks

__all__ = ["PrivateRegressor", "estimator"]

FloatArray = npt.NDArray[np.float64]


@estimator
class PrivateRegressor(NotebookCard, ConfidenceIntervals, RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """Base class of the regressors: a method gives `_plan` and `_solve`, the rest is here.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    {attributes}
    """

    epsilon: float = 1.0
    delta: float | None = None
    bounds_X: Any = None
    bounds_y: Any = None
    data_norm: float | None = None
    fit_intercept: bool = True
    n_steps: int | None = None
    gaussian_size: int | None = None
    sketch_size: int | None = None
    failure_probability: float | None = None
    residual_clip: float | None = None
    shrinkage: bool = False
    inference: bool = False
    engine: str = "auto"
    noise: str = "float"
    accountant: BudgetAccountant | None = None
    random_state: RandomState = None
    verbose: bool = False

    #: Whether the method can say how its coefficients came about.
    _infers: ClassVar[bool] = False

    def fit(self, X: Any, y: Any) -> Any:
        """Fit the model privately.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Records, one a row; a Dask array or dataframe is read by its cluster, block by block,
            and so is a NumPy memory map, here.
        y : array-like of shape (n_samples,)
            Targets.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        with unchained():
            return self._fit(Table(dask_chunks(X, y)) if is_dask(X) else Arrays(X, y))

    def fit_parquet(
        self,
        path: str | Path | Iterable[str | Path],
        target: str = "y",
        features: Sequence[str] | None = None,
        *,
        client: Any = None,
    ) -> Any:
        """Fit the model privately to Parquet or Arrow files of any size, read block by block.

        Parameters
        ----------
        path : path, or iterable of paths
            Files, or folders that hold them, all with the same columns of numbers.
        target : str, default="y"
            Column to predict.
        features : sequence of str, default=None
            Columns to use; None means all others.
        client : distributed.Client, default=None
            A Dask cluster whose workers read the files; None reads them on this machine.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        executor = None if client is None else Cluster(client)
        with unchained():
            table = file_chunks(path, target, features, executor)
        return self.fit_chunks(table)

    def fit_chunks(self, table: Chunks, *, report: Report | None = None) -> Any:
        """Fit the model privately to a table in chunks.

        Parameters
        ----------
        table : fastmix.rows.Chunks
            The records, and where they are read.
        report : callable, default=None
            Is told the name of each pass over the data and how much of it is done, from 0 to 1.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        with unchained():
            return self._fit(Table(table), report)

    def _fit(self, data: Data, report: Report | None = None) -> Any:
        self._check_parameters()
        rng = secret_generator(self.random_state, warn=False)
        accountant = self.accountant if self.accountant is not None else BudgetAccountant.current()
        shape = data.shape
        plan = None if shape is None else self._make_plan(*shape)
        if accountant is not None and plan is not None:
            accountant.check(plan.spent, leaks=reasons_for_leaks(self, plan))
        d = data.check(self)
        scaling = data.scaling(
            bounds_X=self.bounds_X,
            bounds_y=self.bounds_y,
            data_norm=self.data_norm,
            fit_intercept=self.fit_intercept,
            warn=plan is None or plan.is_private,
        )
        in_blocks = self._works_in_blocks(d + bool(self.fit_intercept))
        rows = data.rows(scaling, report or self._report, in_blocks=in_blocks)
        n = rows.n
        if plan is None or shape != (n, d):
            plan = self._make_plan(n, d)
        self._advise(plan, n, d)
        if plan.is_private and is_seeded(self.random_state):
            warn_seeded(stacklevel=4)
        clip = scaling.clipping(self.residual_clip)
        if accountant is not None:
            accountant.spend(
                plan.spent, label=type(self).__name__, leaks=reasons_for_leaks(self, plan)
            )
        if math.isinf(self.epsilon):
            solution = Solution(least_squares(rows, scaling), NonPrivateEvent())
        else:
            # Public choices leave the secret stream alone, unless the caller seeds everything.
            public = rng if is_seeded(self.random_state) else public_generator()
            solution = self._solve(rows, plan, clip, Streams(rng, public, self.noise))
            if self.inference:
                solution = release_residuals(solution, rows, plan, clip, rng)
        if not plan.covers(solution.event):
            raise RuntimeError("the releases differ from the plan that was charged.")
        # On a copy that takes the model's place in one step: a model is the old one or the new one.
        fitted = object.__new__(type(self))
        fitted.__dict__.update(self.__dict__)
        data.describe_to(fitted)
        fitted._store(solution, plan, scaling, n, clip)
        self.__dict__ = fitted.__dict__
        return self

    def predict(self, X: Any) -> FloatArray:
        """Predict targets.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Records, one a row.

        Returns
        -------
        ndarray of shape (n_samples,)
            Predicted targets, in the user's units.
        """
        check_is_fitted(self)
        if is_dask(X):
            return X @ self.coef_ + self.intercept_  # type: ignore[no-any-return]
        with unchained():
            X = features_to_predict(self, X)
        return np.asarray(X @ self.coef_ + self.intercept_)

    def account(self, n_samples: int, n_features: int) -> PrivacySpent:
        """Return the account of a fit of this size, as it would be charged; reads no data.

        Parameters
        ----------
        n_samples, n_features : int
            Shape of the data.

        Returns
        -------
        fastmix.accounting.PrivacySpent
            The events of the fit with their epsilon and delta.
        """
        self._check_parameters()
        n = check_integer("n_samples", n_samples, at_least=1)
        return self._make_plan(n, check_integer("n_features", n_features, at_least=1)).spent

    def __getstate__(self) -> dict[str, Any]:
        # A copy that is sent away from inside a budget's block is charged where it is fitted.
        state: dict[str, Any] = super().__getstate__()
        if state.get("accountant") is None:
            state = {**state, "accountant": BudgetAccountant.current()}
        return state

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        # Privacy noise swamps the signal on the few hundred rows of a unit test.
        tags.regressor_tags.poor_score = True
        return tags

    def _plan(self, n: int, d: int, target: Target) -> Plan:
        """Plan a fit of n rows and d columns (intercept included) from public quantities only."""
        raise AttributeError(f"{type(self).__name__} has no plan; use one of its subclasses.")

    def _solve(self, rows: Rows, plan: Plan, clip: float, streams: Streams) -> Solution:
        """Run the planned mechanisms on rows of norm 1 and targets in [-1, 1]."""
        raise AttributeError(f"{type(self).__name__} has no solver; use one of its subclasses.")

    def _make_plan(self, n: int, d: int) -> Plan:
        if math.isinf(self.epsilon):
            return Plan(PrivacySpent([Part("no privacy", [NonPrivateEvent()], 0.0)]), {})
        delta = 1.0 / max(n, 2) ** 2 if self.delta is None else float(self.delta)
        given = self.failure_probability
        target = Target(float(self.epsilon), delta, delta / 10.0 if given is None else float(given))
        columns = d + bool(self.fit_intercept)

        def planned(epsilon: float, delta: float) -> Plan:
            return self._plan(n, columns, Target(epsilon, delta, target.varrho))

        if self.inference and not self._infers:
            raise value_error("inference", f"be False for {type(self).__name__}", self.inference)
        if self.noise == "float":
            if not self.inference:
                return planned(target.epsilon, target.delta)
            return plan_residuals(planned, target.epsilon, target.delta)
        # As many coordinates as any method draws: statistics, or bounds, a mean and gradients.
        extra = exact_event((columns + 1) ** 2 + 2 * ((self.n_steps or 100) + 2) * (columns + 2))
        exact = planned(target.epsilon - extra.pure_epsilon, target.delta)
        parts = [*exact.spent.parts, Part("discrete noise", [extra], 0.0)]
        return Plan(PrivacySpent(parts), exact.parameters, (extra,))

    def _check_parameters(self) -> None:
        check_parameters(self)

    def _advise(self, plan: Plan, n: int, d: int) -> None:
        advise(self, plan, n, d)

    def _ignored(self, columns: int | None = None) -> tuple[str, ...]:
        """Return the parameters without effect on a fit of so many columns, None if not known."""
        return ()

    def _works_in_blocks(self, columns: int) -> bool:
        """Whether passes over blocks of rows are all that the method needs."""
        return self.engine != "literal"

    def _store(
        self, solution: Solution, plan: Plan, scaling: PublicScaling, n: int, clip: float
    ) -> None:
        d: int = self.n_features_in_
        self.coef_, self.intercept_ = scaling.coefficients(solution.theta, d)
        self.n_steps_ = plan.parameters.get("n_steps_", 0)
        self.gamma_, self.eta_ = solution.gamma, solution.eta
        self.gradient_noise_ = solution.gradient_noise
        self.bounds_X_, self.bounds_y_ = scaling.bounds_X, scaling.bounds_y
        self._store_intervals(
            solution.theta, solution.trace, solution.residuals, scaling, plan, clip=clip, n=n
        )
        skipped = ("accountant", "bounds_X", "bounds_y", "random_state")
        given = {f.name: getattr(self, f.name) for f in fields(self) if f.name not in skipped}
        clipping = {"residuals_clipped_at": clip * scaling.target_map.scale}
        clips = "residual_clip" not in self._ignored(d + bool(self.fit_intercept))
        self.privacy_ = PrivacyCertificate(
            spent=plan.spent,
            mechanism=type(self).__name__,
            parameters={**given, **jsonable(plan.parameters)},
            data={
                "n_samples": n,
                "n_features": d,
                **scaling.describe(),
                **(clipping if clips and not math.isinf(self.epsilon) else {}),
            },
            noise=self._noise_source(),
            leaks=reasons_for_leaks(self, plan),
        )

    def _noise_source(self) -> str:
        if is_seeded(self.random_state):
            return "seeded"
        source = "AES-128-CTR keyed by the OS"
        return source if self.noise == "float" else f"{exact_source()}; for sketches {source}"

    def _progress(self, step: int, total: int) -> None:
        if self.verbose:
            print(f"[{type(self).__name__}] step {step} of {total}", file=sys.stderr)

    def _report(self, name: str, part: float) -> None:
        if self.verbose:
            print(f"[{type(self).__name__}] {name}: {part:.0%}", file=sys.stderr)

    def _engine(self) -> str:
        return "literal" if self.engine == "literal" else "cholesky"
