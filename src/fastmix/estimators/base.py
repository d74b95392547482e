"""What all estimators share: parameters, public scaling, the ledger, and the order of a fit.

The order is fixed, so that nothing is spent in vain and nothing is released unpaid: the budget is
asked before any value of the data is read, and charged before any noise is drawn.
"""

from collections.abc import Iterable, Sequence
from dataclasses import fields
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from fastmix._types import FloatArray
from fastmix._validation import unchained
from fastmix.accounting import BudgetAccountant, PrivacySpent
from fastmix.data import Chunks, Report, Rows
from fastmix.data.arrow import file_chunks
from fastmix.data.dask import Cluster, dask_chunks, is_dask
from fastmix.engine import Draws, Method, Plan
from fastmix.engine.fit import sized, solve_fit
from fastmix.estimators._documentation import estimator
from fastmix.estimators._frames import encoded, fit_files, fit_table
from fastmix.estimators._input import Arrays, InChunks, Source, features_to_predict
from fastmix.estimators._pipelines import warn_of_fitted_steps
from fastmix.estimators._plans import Planned
from fastmix.estimators._results import Results
from fastmix.estimators.parameters import reasons_for_leaks
from fastmix.estimators.scores import Evaluated
from fastmix.estimators.summaries import Shown
from fastmix.random import RandomState, is_seeded, public_generator, warn_seeded
from fastmix.releases import Noise, make_noise
from fastmix.schema.categories import Categories
from fastmix.show.progress import progress

#: A number of rows that stands for the one that is not known before it is paid for, and numbers
#: of all sizes.
_SOME_ROWS = 10_000
_ANY_ROWS = tuple(10**k for k in range(11))

__all__ = ["PrivateModel", "PrivateRegressor", "estimator"]


@estimator
class PrivateModel(Planned, Results, Shown, Evaluated, BaseEstimator):  # type: ignore[misc]
    """Base class of regressors and classifiers, which tell how targets are bounded."""

    epsilon: float = 1.0
    delta: float | None = None
    bounds: Any = None
    bounds_X: Any = None
    data_norm: float | None = None
    fit_intercept: bool = True
    inference: bool = False
    noise: str = "float"
    accountant: BudgetAccountant | None = None
    random_state: RandomState = None
    verbose: bool = False
    max_rows_per_group: int | None = None
    score_share: float = 0.0
    max_weight: float | None = None
    public_rows: bool = True

    #: The parameter that tells the ends of the target, which ``bounds`` may name instead.
    _ends: ClassVar[str] = "bounds_y"

    def fit(self, X: Any, y: Any = None, groups: Any = None, sample_weight: Any = None) -> Any:
        """Fit the model privately.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Records, one per row; a Dask array or dataframe is read by its cluster, block by block,
            and so is a NumPy memory map, here. With ``bounds``, a pandas, Polars or Arrow table.
        y : array-like of shape (n_samples,), default=None
            Targets; with ``bounds``, None takes the column of X that is the target.
        groups : array-like of shape (n_samples,), default=None
            Who each row belongs to: ids, all integers or all text. With them the fit protects
            persons instead of rows, and ``max_rows_per_group`` says how many rows of a person count
            at most.
        sample_weight : array-like of shape (n_samples,), default=None
            How much each row counts, such as survey weights; clipped to ``max_weight``, which is
            public. The weight of a record is protected as its other values are.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        with unchained():
            self._check_counting(groups is not None, sample_weight is not None)
            if self.bounds is not None:
                fit_table(self, X, y, groups, sample_weight)
            elif is_dask(X):
                self._fit(InChunks(dask_chunks(X, y, None, groups, sample_weight)))
            else:
                self._fit(Arrays(X, y, groups, sample_weight))
            return self._advise_late()

    def fit_parquet(
        self,
        path: str | Path | Iterable[str | Path],
        target: str = "y",
        features: Sequence[str] | None = None,
        *,
        groups: str | None = None,
        sample_weight: str | None = None,
        client: Any = None,
    ) -> Any:
        """Fit the model privately to Parquet or Arrow files of any size, read block by block.

        Parameters
        ----------
        path : path, or iterable of paths
            Files, or folders that hold them, all with the same columns of numbers.
        target : str, default="y"
            Column to predict; with ``bounds``, these name it.
        features : sequence of str, default=None
            Columns to use; None means all others, or those that the ``bounds`` name.
        groups : str, default=None
            Column of ids, integers or text, that tells who a row belongs to; see `fit`.
        sample_weight : str, default=None
            Column of weights, which tell how much a row counts; see `fit`.
        client : distributed.Client, default=None
            A Dask cluster whose workers read the files; None reads them on this machine.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        executor = None if client is None else Cluster(client)
        with unchained():
            if self.bounds is not None:
                self._check_counting(groups is not None, sample_weight is not None)
                fit_files(self, path, executor, target, features, groups, sample_weight)
                return self._advise_late()
            table = file_chunks(path, target, features, executor, groups, sample_weight)
        return self.fit_chunks(table)

    def fit_chunks(self, table: Chunks, *, report: Report | None = None) -> Any:
        """Fit the model privately to a table in chunks.

        Parameters
        ----------
        table : fastmix.data.Chunks
            The records, and where they are read.
        report : callable, default=None
            Called with the name of each pass over the data and its share done, from 0 to 1.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        if self.bounds is not None:
            raise ValueError(
                "bounds must be None for a table in chunks, whose columns are encoded already. "
                f"Pass bounds_X and {self._ends}."
            )
        with unchained():
            self._check_counting(table.grouped, table.weighted)
            self._fit(InChunks(table), report)
            return self._advise_late()

    def _fit(self, data: Source, report: Report | None = None) -> Any:
        self._check_parameters()
        warn_of_fitted_steps(self)
        accountant = self.accountant if self.accountant is not None else BudgetAccountant.current()
        shape = data.shape if self.public_rows else None
        planned = None if shape is None else self._planned(*shape)
        if accountant is not None and planned is not None:
            accountant.check(planned[1].spent, leaks=reasons_for_leaks(self, planned[1]))
        if not self.public_rows:
            data.check_shapes()
        d = data.check(self)
        scaling = data.scaling(
            bounds_X=self.bounds_X,
            bounds_y=self._bounds_y(),
            data_norm=self.data_norm,
            fit_intercept=self.fit_intercept,
            warn=planned is None or planned[1].is_private,
        )
        method = self._resolve(d + bool(self.fit_intercept))
        clip = scaling.clipping(getattr(method, "residual_clip", None))
        with progress(type(self).__name__, verbose=self.verbose, lines=True) as bar:
            report = report or (bar.passing if self.public_rows else bar.passed)
            rows = data.rows(scaling, report, in_blocks=method.in_blocks())
            if self._categories and method.tables:
                rows.categories = Categories(self._categories, 1.0 / scaling.row_map.divisor)
            if planned is None or shape != (rows.n, d):
                planned = self._planned(rows.n if self.public_rows else _SOME_ROWS, d)
            if self.public_rows:
                self._advise(*planned, rows.n, d)
            if planned[1].is_private and is_seeded(self.random_state):
                warn_seeded(stacklevel=4)
            noise = self._make_noise()
            # Public choices leave the secret stream alone, unless the caller seeds everything.
            public = noise.rng if is_seeded(self.random_state) else public_generator()
            if not self.public_rows:
                rows = self._sized(rows, planned[1], noise, accountant)
                planned = self._planned(rows.n, d)
            (method, plan), n = planned, rows.n
            self._charge(accountant, plan, plan.spent.parts[0 if self.public_rows else 1 :])
            draws = Draws(noise, public, partial(bar.step, last=method.last_step))
            solution = solve_fit(method, rows, plan, scaling, clip, draws)
        # On a copy that takes the model's place in one step: a model is the old one or the new one.
        fitted = object.__new__(type(self))
        fitted.__dict__.update(self.__dict__)
        fitted.n_features_in_ = d
        for name in ("feature_names_in_", "schema_"):
            fitted.__dict__.pop(name, None)
        if data.names is not None:
            fitted.feature_names_in_ = data.names
        fitted._table_rows = data.table_rows if self.public_rows else n
        fitted._store(method, plan, solution, scaling, n, clip, noise.source)
        del fitted._table_rows
        if not self.public_rows:  # advice needs the released number, and a warning can be an error
            fitted._late = method, plan, n, d
        self.__dict__ = fitted.__dict__
        return self

    def __getstate__(self) -> dict[str, Any]:
        # A copy that is sent away from inside a budget's block is charged where it is fitted.
        state: dict[str, Any] = super().__getstate__()
        if state.get("accountant") is None:
            state = {**state, "accountant": BudgetAccountant.current()}
        return state

    def _make_noise(self) -> Noise:
        """Return the secret noise of a fit."""
        return make_noise(self.noise, self.random_state, warn=False)

    def _bounds_y(self) -> Any:
        """Return the public bounds of the target, None if there are none."""
        return None

    def _features(self, X: Any) -> Any:
        """Return records as the columns of the coefficients; Dask collections stay as they are."""
        with unchained():
            if hasattr(self, "schema_"):
                return encoded(self, X)
            return X if is_dask(X) else features_to_predict(self, X)

    def _sized(
        self, rows: Rows, plan: Plan, noise: Noise, accountant: BudgetAccountant | None
    ) -> Rows:
        """Charge and release the number of rows; whatever can be refused is refused before.

        Which releases the fit makes follows from the released number, so the budget must cover
        both charges for a number of any size.
        """
        if accountant is not None:
            d = rows.d - bool(self.fit_intercept)
            for each in {self._planned(n, d)[1].spent for n in _ANY_ROWS}:
                both = PrivacySpent(each.parts[:1]), PrivacySpent(each.parts[1:])
                accountant.check(*both, leaks=reasons_for_leaks(self, plan))
        self._charge(accountant, plan, plan.spent.parts[:1])
        return sized(rows, plan, noise)

    def _stated(self, method: Method) -> dict[str, Any]:
        """Return the parameters that a certificate states beside those of the method."""
        skipped = ("accountant", "bounds", "bounds_X", "bounds_y", "random_state")
        names = [f.name for f in fields(PrivateModel) if f.name not in skipped]
        unused = {"score_share": not self.score_share, "max_weight": self.max_weight is None}
        unused["public_rows"] = bool(self.public_rows)
        return {name: getattr(self, name) for name in names if not unused.get(name)}


@estimator
class PrivateRegressor(RegressorMixin, PrivateModel):  # type: ignore[misc]
    """Base class of the regressors: a subclass names its method and its parameters."""

    bounds_y: Any = None
    clip_predictions: bool = True

    def predict(self, X: Any) -> FloatArray:
        """Predict targets.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Records, one per row; a table with named columns if the model was fitted to one with
            ``bounds``.

        Returns
        -------
        ndarray of shape (n_samples,)
            Predicted targets, in the user's units; inside the bounds of the target unless
            ``clip_predictions`` is False.
        """
        check_is_fitted(self)
        values = self._features(X) @ self.coef_ + self.intercept_
        if self.clip_predictions:
            values = values.clip(*self.bounds_y_)
        return values if is_dask(values) else np.asarray(values)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        # Privacy noise swamps the signal on the few hundred rows of a unit test.
        tags.regressor_tags.poor_score = True
        return tags

    def _bounds_y(self) -> Any:
        return self.bounds_y
