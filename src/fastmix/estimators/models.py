"""The base classes of all estimators, and what their models offer.

`Parameters` has what all of them share, `Planning` their plans, and `Fitting` the order of a fit.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_is_fitted

from fastmix._types import FloatArray
from fastmix._validation import check_bool
from fastmix.accounting import BudgetAccountant
from fastmix.certificate import headline
from fastmix.data import Chunks, Report
from fastmix.data.dask import is_dask
from fastmix.engine.population import Population
from fastmix.estimators import summaries
from fastmix.estimators._documentation import estimator
from fastmix.estimators._fitting import Fitting
from fastmix.estimators.evaluation import Evaluation, PrivateScores, evaluate
from fastmix.estimators.intervals import confidence_intervals
from fastmix.random import RandomState
from fastmix.show import RegressionSummary, fit_card

Model = TypeVar("Model", bound="PrivateModel")


def fixing(kind: type[Model], **parameters: Any) -> type[Model]:
    """Return an estimator whose method has other fixed parameters, for audits and experiments."""
    return type(kind.__name__, (kind,), {"_fixed": {**kind._fixed, **parameters}})


@estimator
class PrivateModel(Fitting):
    """Base class of regressors and classifiers; a subclass names its method."""

    def fit(self, X: Any, y: Any = None) -> Any:
        """Fit the model privately.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Records, one per row; a Dask array or dataframe is read by its cluster, block by block,
            and a NumPy memory map is read here in blocks. With ``bounds``, a pandas, Polars or
            Arrow table.
        y : array-like of shape (n_samples,), default=None
            Targets; with ``bounds``, None takes the column of X that is the target.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        return self._fit_arrays(Population(), X, y)

    def fit_parquet(
        self,
        path: str | Path | Iterable[str | Path],
        target: str = "y",
        features: Sequence[str] | None = None,
        *,
        groups: str | None = None,
        sample_weight: str | None = None,
        max_rows_per_group: int | None = None,
        max_weight: float = 1.0,
        client: Any = None,
        categories: Any = None,
    ) -> Any:
        """Fit the model privately to Parquet or Arrow files of any size, read block by block.

        Parameters
        ----------
        path : path, or iterable of paths
            Files, or folders that hold them, all with the same columns of numbers.
        target : str, default="y"
            Column to predict; ``bounds``, if given, name the target.
        features : sequence of str, default=None
            Columns to use; None means all others, or those that the ``bounds`` name.
        groups, sample_weight : str, default=None
            Columns of ids, which say whose row it is, and of weights; see `fit`.
        max_rows_per_group, max_weight : int, float
            Public bounds on the rows of a person and on the weight of a row; see `fit`.
        client : distributed.Client, default=None
            A Dask cluster whose workers read the files; None reads them on this machine.
        categories : list of lists of str, default=None
            Columns of dummies, one list per category; see `fit`.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        bounds = max_rows_per_group, max_weight
        population = self._counting(groups is not None, sample_weight is not None, *bounds)
        columns = groups, sample_weight, categories
        return self._fit_files(population, path, target, features, client, *columns)

    def fit_chunks(
        self,
        table: Chunks,
        *,
        max_rows_per_group: int | None = None,
        max_weight: float = 1.0,
        report: Report | None = None,
        categories: Any = None,
    ) -> Any:
        """Fit the model privately to a table in chunks.

        Parameters
        ----------
        table : fastmix.data.Chunks
            The records, and where they are read.
        max_rows_per_group, max_weight : int, float
            Public bounds on the rows of a person and on the weight of a row; see `fit`.
        report : callable, default=None
            Called with the name of each pass over the data and its share done, from 0 to 1.
        categories : list of lists of int or str, default=None
            Columns of dummies, one list per category; see `fit`.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        limits = table.grouped, table.weighted, max_rows_per_group, max_weight
        return self._fit_table(self._counting(*limits), table, report, categories)

    def conf_int(self, level: float = 0.95, *, intercept: bool = False) -> FloatArray:
        """Return confidence intervals of the coefficients, from released values only.

        Parameters
        ----------
        level : float, default=0.95
            Probability with which an interval covers the coefficient of the population, when no
            value is clipped.
        intercept : bool, default=False
            Put the interval of the intercept at the end.

        Returns
        -------
        ndarray of shape (n_features, 2) or (n_features + 1, 2)
            Lower and upper ends, in the user's units; with more than two classes, one such array
            per class.

        Notes
        -----
        Needs ``inference=True``. Intervals account for privacy noise and the sampling of records,
        not for bias from clipping (docs/inference.md). A coefficient that the data do not identify
        has an infinite interval.
        """
        return confidence_intervals(self, level, intercept=intercept)

    def summary(self, level: float = 0.95) -> RegressionSummary:
        """Return the coefficients in the form that statisticians know.

        Parameters
        ----------
        level : float, default=0.95
            Level of the intervals.

        Returns
        -------
        fastmix.show.RegressionSummary
            A table; print it, show it in a notebook, or take its ``to_frame()``. With
            ``inference=True`` it has standard errors, z, p-values and intervals, from released
            values only; odds ratios where coefficients are of log-odds.
        """
        return summaries.summary(self, level)

    def evaluate(
        self,
        X: Any,
        y: Any = None,
        metrics: str | Iterable[str] | None = None,
        *,
        epsilon: float,
        groups: Any = None,
        sample_weight: Any = None,
        max_rows_per_group: int | None = None,
        max_weight: float | None = None,
        delta: float | None = None,
        accountant: BudgetAccountant | None = None,
        random_state: RandomState = None,
    ) -> PrivateScores:
        """Return private scores of the model on any rows, training rows or others.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or fastmix.data.Chunks
            Records, clipped to the bounds of the fit; a table in chunks has its target in it. After
            a fit with ``bounds``, a pandas, Polars or Arrow table.
        y : array-like of shape (n_samples,), default=None
            Targets, clipped to the bounds of the fit; after a fit with ``bounds``, None takes the
            column of X that is the target.
        metrics : str or iterable of str, default=None
            Names of the scores. They share the budget, so fewer are more precise. None means all:
            "r2", "mse" and "mae"; of a classifier "accuracy", "log_loss" and, for two classes,
            "auc", which brings the calibration; of a quantile, the share of targets "below" it and
            its "pinball" loss.
        epsilon : float
            Privacy budget of the scores, beyond that of the fit.
        groups, sample_weight : array-like of shape (n_samples,), default=None
            Whose rows they are, and how much each counts, as in `fit`. With groups, scores protect
            persons, and each person counts as one. A model that protects persons needs them.
        max_rows_per_group, max_weight : int, float, default=None
            Public bounds, as in `fit`; None means those of the fit, and 1 for weights without one.
        delta : float, default=None
            Probability with which the guarantee may fail; None means ``1 / n**2``, n counting
            persons if there are groups. A model with ``public_rows=False`` needs it.
        accountant : BudgetAccountant, default=None
            Budget to charge; None means that of the estimator, or the active one.
        random_state : int, RandomState or Generator, default=None
            None draws cryptographic noise; anything else voids the guarantee.

        Returns
        -------
        PrivateScores
            Scores with standard errors, by noise alone, and intervals.

        Notes
        -----
        Paper: beyond it; docs/proofs/scores.md. The scores are those of these rows, with
        predictions clipped to the bounds of the target. In the log-loss, probabilities of the label
        below 0.0001 count as 0.0001. Intervals contain the score without privacy in at least 95% of
        the evaluations, whatever the tails. A value leaves out the part of the largest residuals or
        losses that noise hides. A label outside the public list counts nowhere, and adds 0 to the
        log-loss.
        """
        check_is_fitted(self)
        asked = Evaluation(metrics, epsilon, delta, accountant, random_state)
        return evaluate(self, X, y, groups, sample_weight, (max_rows_per_group, max_weight), asked)

    def _repr_html_inner(self) -> str:
        """Return a card with coefficients and guarantee; scikit-learn's diagram before a fit."""
        if not hasattr(self, "privacy_"):
            return str(super()._repr_html_inner())
        return fit_card(self, headline(self.privacy_))

    def _repr_mimebundle_(self, **options: Any) -> dict[str, str]:
        bundle: dict[str, str] = super()._repr_mimebundle_(**options)
        if "text/html" in bundle:
            bundle["text/html"] = self._repr_html_inner()
        return bundle


@estimator
class EngineModel(PrivateModel):
    """Base class of the estimators that support persons, sample weights and hidden numbers."""

    score_share: float = 0.0
    public_rows: bool = True

    def fit(
        self,
        X: Any,
        y: Any = None,
        groups: Any = None,
        sample_weight: Any = None,
        *,
        max_rows_per_group: int | None = None,
        max_weight: float = 1.0,
        categories: Any = None,
    ) -> Any:
        """Fit the model privately.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Records, one per row; a Dask array or dataframe is read by its cluster, block by block,
            and a NumPy memory map is read here in blocks. With ``bounds``, a pandas, Polars or
            Arrow table.
        y : array-like of shape (n_samples,), default=None
            Targets; with ``bounds``, None takes the column of X that is the target. Classes of a
            logistic regression; for Dask collections these are numbers.
        groups : array-like of shape (n_samples,), default=None
            Whose rows they are: ids, all integers or all text. The fit then protects persons
            instead of rows.
        sample_weight : array-like of shape (n_samples,), default=None
            How much each row counts, such as survey weights; clipped to ``max_weight``. The weight
            of a record is protected as its other values are.
        max_rows_per_group : int, default=None
            With ``groups``, the public number of rows of a person that count at most; the fit
            leaves out others at random. The rows of a person count as one record together.
        max_weight : float, default=1.0
            With ``sample_weight``, the public bound on the weight of a row; weights above it count
            as if they were equal to it. Choose it from public knowledge of the weights.
        categories : list of lists of int or str, default=None
            Columns of dummies, by place or name, one list per category, with or without a dropped
            level. In each list the largest entry of a row counts as 1 if it is at least 0.5, and
            all others as 0. None takes them from a `PublicEncoder`, or from a ``OneHotEncoder``
            with given categories, right in front of the model in a ``Pipeline``.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        bounds = max_rows_per_group, max_weight
        population = self._counting(groups is not None, sample_weight is not None, *bounds)
        return self._fit_arrays(population, X, y, groups, sample_weight, categories)


@estimator
class PrivateRegressor(RegressorMixin, PrivateModel):  # type: ignore[misc]
    """Base class of the regressors."""

    bounds_y: Any = None

    def predict(self, X: Any, *, clip: bool = True) -> FloatArray:
        """Predict targets.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Records, one per row; a table with named columns if the model was fitted to one with
            ``bounds``.
        clip : bool, default=True
            Move predictions outside the bounds of the target to the nearer bound; pass False to
            extrapolate.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_quantiles)
            Predicted targets, in the user's units. Several quantiles of a record are sorted, so
            that they never cross.
        """
        check_is_fitted(self)
        check_bool("clip", clip)
        values = self._features(X) @ self.coef_.T + self.intercept_
        if clip:
            values = values.clip(*self.bounds_y_)
        return values if is_dask(values) else np.asarray(values)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        # Privacy noise swamps the signal on the few hundred rows of a unit test.
        tags.regressor_tags.poor_score = True
        return tags

    def _bounds_y(self) -> Any:
        return self.bounds_y


@estimator
class EngineRegressor(PrivateRegressor, EngineModel):
    """Base class of the regressors that support persons, sample weights and hidden numbers."""
