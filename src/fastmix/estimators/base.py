"""The base classes of all estimators: parameters, the order of a fit, and what a model offers.

A fit checks before it charges, and charges before it draws noise.
"""

import math
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import fields, replace
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from fastmix._types import FloatArray
from fastmix._validation import check_bool, check_integer, unchained
from fastmix.accounting import BudgetAccountant, Part, PrivacySpent, noted
from fastmix.accounting.budget import NOTHING_CHARGED
from fastmix.accounting.notes import current_notes
from fastmix.data import Chunks, Report
from fastmix.data.arrow import file_chunks
from fastmix.data.dask import Cluster, dask_chunks, is_dask
from fastmix.data.scaling import PublicScaling
from fastmix.engine import METHODS, Draws, Method, Plan, Sizes, Target
from fastmix.engine.fit import COUNTED, default_delta, plan_fit, sized, solve_fit
from fastmix.engine.forecast import concerns
from fastmix.engine.population import Population
from fastmix.errors import BudgetError, caller_level
from fastmix.estimators import summaries
from fastmix.estimators._documentation import estimator
from fastmix.estimators._found import found_releases
from fastmix.estimators._frames import encoded, fit_files, fit_table
from fastmix.estimators._input import Arrays, InChunks, Source, features_to_predict
from fastmix.estimators._labels import Codec, NumberCodec
from fastmix.estimators._pipelines import warn_of_fitted_steps
from fastmix.estimators._results import Results
from fastmix.estimators.intervals import confidence_intervals
from fastmix.estimators.parameters import check_parameters, reasons_for_leaks
from fastmix.estimators.scores import Asked, PrivateScores, evaluate, scaled_coefficients
from fastmix.random import RandomState, is_seeded, public_generator, warn_seeded
from fastmix.releases import Noise, make_noise
from fastmix.schema.bounds import check_protection
from fastmix.schema.categories import Categories
from fastmix.show import RegressionSummary
from fastmix.show.progress import progress

#: A number of rows for plans that are made before the hidden number is released, and numbers of
#: all sizes.
SOME_ROWS = 10_000
_ANY_ROWS = tuple(10**k for k in range(11))

#: The end of a refusal by the budget after the number of rows was charged.
_BEFORE = "The number of rows was charged and released before; the fit was not."

__all__ = ["EngineModel", "EngineRegressor", "PrivateModel", "PrivateRegressor", "fixing"]

Model = TypeVar("Model", bound="PrivateModel")


def fixing(kind: type[Model], **parameters: Any) -> type[Model]:
    """Return an estimator whose method has other fixed parameters, for audits and experiments."""
    return type(kind.__name__, (kind,), {"_fixed": {**kind._fixed, **parameters}})


@estimator
class PrivateModel(Results, BaseEstimator):  # type: ignore[misc]
    """Base class of regressors and classifiers; a subclass names its method."""

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

    # Constants here, parameters of `EngineModel`.
    score_share = 0.0
    public_rows = True

    #: The algorithm. An estimator's parameters of the same names are the method's.
    _method: ClassVar[type[Method]]
    #: Values of the method's parameters that are no parameters of the estimator.
    _fixed: ClassVar[dict[str, Any]] = {}
    #: The parameter with the ends of the target, which ``bounds`` may state instead.
    _ends: ClassVar[str] = "bounds_y"
    #: The title of the summary, and whether the summary has odds ratios.
    _title: ClassVar[str] = "Private linear regression"
    _odds: ClassVar[bool] = False

    #: Who the fit protects.
    _population = Population()
    #: Encoded columns of each category of a table, without its first level.
    _categories = tuple[tuple[int, ...], ...]()

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
        groups : str, default=None
            Column of ids, integers or text, that says whose row it is; see `fit`.
        sample_weight : str, default=None
            Column of weights, which say how much a row counts; see `fit`.
        max_rows_per_group : int, default=None
            The public number of rows of a person that count at most; see `fit`.
        max_weight : float, default=1.0
            The public bound on the weight of a row; see `fit`.
        client : distributed.Client, default=None
            A Dask cluster whose workers read the files; None reads them on this machine.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        bounds = max_rows_per_group, max_weight
        population = self._counting(groups is not None, sample_weight is not None, *bounds)
        columns = groups, sample_weight
        return self._fit_files(population, path, target, features, client, *columns)

    def fit_chunks(
        self,
        table: Chunks,
        *,
        max_rows_per_group: int | None = None,
        max_weight: float = 1.0,
        report: Report | None = None,
    ) -> Any:
        """Fit the model privately to a table in chunks.

        Parameters
        ----------
        table : fastmix.data.Chunks
            The records, and where they are read.
        max_rows_per_group : int, default=None
            The public number of rows of a person that count at most; see `fit`.
        max_weight : float, default=1.0
            The public bound on the weight of a row; see `fit`.
        report : callable, default=None
            Called with the name of each pass over the data and its share done, from 0 to 1.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        bounds = max_rows_per_group, max_weight
        population = self._counting(table.grouped, table.weighted, *bounds)
        return self._fit_table(population, table, report)

    def account(
        self,
        n_samples: int,
        n_features: int,
        *,
        max_rows_per_group: int | None = None,
        weighted: bool = False,
    ) -> PrivacySpent:
        """Return the account of a fit of this size, as it would be charged; reads no data.

        Parameters
        ----------
        n_samples, n_features : int
            Shape of the data; with ``max_rows_per_group`` the first is the number of persons.
        max_rows_per_group : int, default=None
            The public number of rows of a person that count at most, for a fit with groups.
        weighted : bool, default=False
            Whether the fit has sample weights.

        Returns
        -------
        fastmix.accounting.PrivacySpent
            The events of the fit with their epsilon and delta.
        """
        grouped = max_rows_per_group is not None
        fitting = self._fitting(self._counting(grouped, weighted, max_rows_per_group, 1.0))
        n = check_integer("n_samples", n_samples, at_least=1)
        d = check_integer("n_features", n_features, at_least=1)
        spent: PrivacySpent = fitting._planned(n, d)[1].spent
        return spent

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

    @property
    def method_(self) -> str:
        """Name of the method of the fit; "least_squares" for a linear fit without privacy."""
        name: str = self.privacy_.parameters["method_"]
        plain = math.isinf(self.epsilon) and METHODS[name].family == "linear"
        return "least_squares" if plain else name

    @property
    def level_counts_(self) -> dict[str, dict[str, float]]:
        """Released numbers of rows of each level of each category."""
        return summaries.level_counts(self)

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
        groups : array-like of shape (n_samples,), default=None
            Whose rows they are: ids as in `fit`. Scores then protect persons, and each person
            counts as one. A model that protects persons needs them.
        sample_weight : array-like of shape (n_samples,), default=None
            How much each row counts.
        max_rows_per_group : int, default=None
            With ``groups``, the public number of rows of a person that count at most; None means
            that of the fit.
        max_weight : float, default=None
            With ``sample_weight``, the public bound on the weight of a row; None means that of the
            fit, or 1.
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
        asked = Asked(metrics, epsilon, delta, accountant, random_state)
        limits = max_rows_per_group, max_weight
        return evaluate(self, X, y, groups, sample_weight, limits, asked)

    def _counting(
        self, grouped: bool, weighted: bool, max_rows_per_group: Any, max_weight: Any
    ) -> Population:
        """Return the population of a fit, or raise an error that names a wrong argument."""
        return Population.given(
            groups=grouped,
            sample_weight=weighted,
            max_rows_per_group=max_rows_per_group,
            max_weight=max_weight,
            public_rows=self.public_rows,
        )

    def _fit_arrays(
        self, population: Population, X: Any, y: Any, groups: Any = None, weights: Any = None
    ) -> Any:
        """Fit data in memory, or Dask collections."""
        with unchained():
            fitting = self._fitting(population)
            if self.bounds is not None:
                fit_table(fitting, X, y, groups, weights)
            elif is_dask(X):
                fitting._fit(InChunks(dask_chunks(X, y, None, groups, weights)))
            else:
                fitting._fit(Arrays(X, y, groups, weights))
            return self._become(fitting)

    def _fit_files(
        self,
        population: Population,
        path: Any,
        target: str,
        features: Sequence[str] | None,
        client: Any,
        groups: str | None = None,
        weights: str | None = None,
    ) -> Any:
        """Fit Parquet or Arrow files."""
        executor = None if client is None else Cluster(client)
        with unchained():
            fitting = self._fitting(population)
            if self.bounds is not None:
                fit_files(fitting, path, executor, target, features, groups, weights)
            else:
                table = file_chunks(path, target, features, executor, groups, weights)
                fitting._fit(InChunks(table))
            return self._become(fitting)

    def _fit_table(self, population: Population, table: Chunks, report: Report | None) -> Any:
        """Fit a table in chunks."""
        if self.bounds is not None:
            raise ValueError(
                "bounds must be None for a table in chunks, whose columns are encoded already. "
                f"Pass bounds_X and {self._ends}."
            )
        with unchained():
            fitting = self._fitting(population)
            fitting._fit(InChunks(table), report)
            return self._become(fitting)

    def _fitting(self, population: Population) -> Any:
        """Return a copy to fit, whose parameters are checked for a population."""
        fitting = object.__new__(type(self))
        fitting.__dict__.update(self.__dict__)
        fitting._population = population
        fitting._check_parameters()
        return fitting

    def _become(self, fitted: Any) -> Any:
        """Take over the attributes of the fitted copy in one step: no fit is half stored."""
        self.__dict__ = fitted.__dict__
        if (late := self.__dict__.pop("_late", None)) is not None:
            self._advise(*late)
        return self

    def _fit(self, data: Source, report: Report | None = None) -> None:
        self._check_parameters()
        warn_of_fitted_steps(self)
        hidden = self._population.hidden
        accountant = self.accountant if self.accountant is not None else BudgetAccountant.current()
        shape = None if hidden else data.shape
        planned = None if shape is None else self._planned(*shape)
        if accountant is not None and planned is not None:
            accountant.check(planned[1].spent, leaks=reasons_for_leaks(self, planned[1]))
        if hidden:
            data.check_shapes()
        d = data.check(self)
        scaling = data.scaling(
            bounds_X=self.bounds_X,
            bounds_y=self._bounds_y(),
            data_norm=self.data_norm,
            fit_intercept=self.fit_intercept,
            warn=planned is None or planned[1].is_private,
        )
        method = self._resolve()
        clip = scaling.clipping(getattr(method, "residual_clip", None))
        with progress(type(self).__name__, verbose=False) as bar:
            report = report or (bar.passed if hidden else bar.passing)
            rows = data.rows(scaling, report, in_blocks=method.in_blocks())
            if self._categories and method.tables:
                rows.categories = Categories(self._categories, 1.0 / scaling.row_map.divisor)
            if planned is None or shape != (rows.n, d):
                planned = self._planned(SOME_ROWS if hidden else rows.n, d)
            if not hidden:
                self._advise(*planned, rows.n, d)
            if planned[1].is_private and is_seeded(self.random_state):
                warn_seeded(stacklevel=caller_level() + 1)
            noise = self._make_noise()
            # Public choices leave the secret stream alone, unless the caller seeds everything.
            public = noise.rng if is_seeded(self.random_state) else public_generator()
            if hidden:
                counting = planned[1], noise, accountant
                rows = self._sized(rows, *counting, lambda n: self._planned(n, d)[1])
                planned = self._planned(rows.n, d)
            method, plan = planned
            self._charge(accountant, plan, plan.spent.parts[1 if hidden else 0 :])
            draws = Draws(noise, public, partial(bar.step, last=method.last_step))
            solution = solve_fit(method, rows, plan, scaling, clip, draws)
        self._name_columns(d, data.names)
        self._table_rows = rows.n if hidden else data.table_rows
        self._store(method, plan, solution, scaling, rows.n, clip, noise.source)
        del self._table_rows
        if hidden:  # advice needs the released number, and a warning can be an error
            self._late = method, plan, rows.n, d

    def _name_columns(self, d: int, names: Any) -> None:
        """Store the number of features and their names, in place of those of an earlier fit."""
        self.n_features_in_ = d
        for name in ("feature_names_in_", "schema_"):
            self.__dict__.pop(name, None)
        if names is not None:
            self.feature_names_in_ = names

    def _sized(
        self,
        rows: Any,
        plan: Plan,
        noise: Noise,
        accountant: BudgetAccountant | None,
        planned: Callable[[int], Plan],
    ) -> Any:
        """Charge and release the number of rows, after every other check.

        The releases of the fit follow from the released number, so the budget must cover both
        charges for a number of any size, for which ``planned`` makes the plan.
        """
        if accountant is not None:
            for each in {planned(n).spent for n in _ANY_ROWS}:
                both = PrivacySpent(each.parts[:1]), PrivacySpent(each.parts[1:])
                accountant.check(*both, leaks=reasons_for_leaks(self, plan))
        self._charge(accountant, plan, plan.spent.parts[:1])
        return sized(rows, plan, noise)

    def _charge(
        self, accountant: BudgetAccountant | None, plan: Plan, parts: Sequence[Part]
    ) -> None:
        """Charge parts of a plan, if there is a budget."""
        if accountant is None:
            return
        population = self._population
        label = population.charged(current_notes().get("label", type(self).__name__))
        counting = [part.name for part in parts] == [COUNTED]
        if counting:
            label += ", number of rows"
        with noted(label=label):  # the label says who is protected, also after a user's own name
            try:
                accountant.spend(
                    PrivacySpent(parts),
                    label=label,
                    leaks=reasons_for_leaks(self, plan),
                    rows_per_person=population.rows_per_person,
                    public_rows=not population.hidden,
                )
            except BudgetError as error:
                if counting or not population.hidden:
                    raise
                said = str(error).removesuffix(NOTHING_CHARGED).rstrip()
                raise BudgetError(f"{said} {_BEFORE}") from None

    def _advise(self, method: Method, plan: Plan, n: int, d: int) -> None:
        """Warn of a weak guarantee or a useless fit."""
        for category, message in concerns(method, plan, self._sizes(n, d), self._target(n)):
            warnings.warn(message, category, stacklevel=caller_level())

    def _planned(self, n: int, d: int) -> tuple[Method, Plan]:
        """Return the method and its plan for n rows, or persons, and d features."""
        method = self._resolve()
        plan = plan_fit(
            method,
            self._sizes(n, d),
            self._target(n),
            inference=self.inference,
            noise=self.noise,
            score_share=float(self.score_share),
        )
        return method, plan

    def _sizes(self, n: int, d: int) -> Sizes:
        """Return the public sizes; n counts persons if there are groups."""
        return Sizes.of(
            n,
            d,
            intercept=self.fit_intercept,
            bounds_X=self.bounds_X,
            data_norm=self.data_norm,
            population=replace(self._population, hidden=not self.public_rows),
            categories=tuple(map(len, self._categories)),
        )

    def _target(self, n: int) -> Target:
        return Target(float(self.epsilon), default_delta(self.delta, n))

    def _resolve(self) -> Method:
        """Return the method with its parameters."""
        own = {f.name: getattr(self, f.name) for f in fields(self._method) if hasattr(self, f.name)}
        return self._method(**own, **self._fixed)

    def _check_parameters(self) -> None:
        """Reject parameters out of their ranges, and fits that the population does not allow."""
        check_parameters(self)
        method, population = self._resolve(), self._population
        method.check()
        asked: Any = {"inference": self.inference, "score_share": self.score_share}
        population.check(method, epsilon=float(self.epsilon), **asked)
        found = [each.rows_per_person for each in found_releases(self)]
        check_protection(found, persons=population.persons, public_rows=not population.hidden)

    def _codec(self) -> Codec:
        """Return the map of targets to [-1, 1]."""
        return NumberCodec()

    def _features(self, X: Any) -> Any:
        """Return records as the columns of the coefficients; Dask collections stay as they are."""
        with unchained():
            if hasattr(self, "schema_"):
                return encoded(self, X)
            return X if is_dask(X) else features_to_predict(self, X)

    def _make_noise(self) -> Noise:
        """Return the secret noise of a fit."""
        return make_noise(self.noise, self.random_state, warn=False)

    def _bounds_y(self) -> Any:
        """Return the public bounds of the target, None if there are none."""
        return None

    def _as_fitted(self) -> Any:
        """Return the model with everything that the fit found as parameters."""
        return self

    def _scaled(self, scaling: PublicScaling) -> FloatArray:
        """Return the coefficients in scaled units."""
        return scaled_coefficients(scaling, self.coef_, self.intercept_)

    def _stated(self) -> dict[str, Any]:
        """Return the parameters that a certificate states beside those of the method."""
        names = ("epsilon", "delta", "data_norm", "fit_intercept", "inference", "noise")
        stated = {name: getattr(self, name) for name in names}
        stated["max_rows_per_group"] = self._population.rows_per_person
        if self.score_share:
            stated["score_share"] = self.score_share
        if self._population.weighted:
            stated["max_weight"] = self._population.max_weight
        if self._population.hidden:
            stated["public_rows"] = False
        return stated

    def __getstate__(self) -> dict[str, Any]:
        # A copy that is sent away from inside a budget's block is charged where it is fitted.
        state: dict[str, Any] = super().__getstate__()
        if state.get("accountant") is None:
            state = {**state, "accountant": BudgetAccountant.current()}
        return state

    def _repr_html_inner(self) -> str:
        """Return a card with coefficients and guarantee; scikit-learn's diagram before a fit."""
        if not hasattr(self, "privacy_"):
            return str(super()._repr_html_inner())
        return summaries.fitted_card(self)

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

        Returns
        -------
        self : object
            The fitted estimator.
        """
        bounds = max_rows_per_group, max_weight
        population = self._counting(groups is not None, sample_weight is not None, *bounds)
        return self._fit_arrays(population, X, y, groups, sample_weight)


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
        ndarray of shape (n_samples,)
            Predicted targets, in the user's units.
        """
        check_is_fitted(self)
        check_bool("clip", clip)
        values = self._features(X) @ self.coef_ + self.intercept_
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
