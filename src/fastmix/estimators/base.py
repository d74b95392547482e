"""What all estimators share: parameters, public scaling, the ledger, and the order of a fit.

The order is fixed, so that nothing is spent in vain and nothing is released unpaid: the budget is
asked before any value of the data is read, and charged before any noise is drawn.
"""

import math
import sys
from collections.abc import Iterable, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from fastmix._types import FloatArray
from fastmix._validation import check_integer, check_probability, unchained, value_error
from fastmix.accounting import BudgetAccountant, PrivacySpent
from fastmix.certificate import PrivacyCertificate, headline, jsonable
from fastmix.data import Chunks, Report
from fastmix.data.arrow import file_chunks
from fastmix.data.dask import Cluster, dask_chunks, is_dask
from fastmix.data.scaling import PublicScaling
from fastmix.estimators._documentation import estimator
from fastmix.estimators._input import ArrayInput, ChunkInput, Input, features_to_predict
from fastmix.estimators.intervals import ConfidenceIntervals
from fastmix.estimators.parameters import check_parameters, reasons_for_leaks
from fastmix.estimators.scores import Evaluated, PrivateScores, in_units
from fastmix.mechanisms import make_noise
from fastmix.methods import Draws, Method, Plan, Sizes, Solution, Target
from fastmix.methods.fit import default_delta, plan_fit, solve_fit
from fastmix.methods.forecast import advise
from fastmix.random import RandomState, is_seeded, public_generator, warn_seeded
from fastmix.show import RegressionSummary, fit_card, summarise
from fastmix.show.html import effects, number

__all__ = ["PrivateModel", "PrivateRegressor", "estimator"]


def summary_facts(
    epsilon: float, delta: float, n: int, model: Any = None, method: str = ""
) -> list[tuple[str, str]]:
    """Return what stands above a table of coefficients."""
    facts = [
        ("Method", method or getattr(model, "method_", type(model).__name__)),
        ("No. observations", f"{n:,}"),
        ("Epsilon", f"{epsilon:.4g}"),
        ("Delta", f"{delta:.3g}"),
    ]
    if (spread := getattr(model, "residual_std_", None)) is not None:
        facts.append(("Residual std", number(spread)))
    if (scores := getattr(model, "scores_", None)) is not None:
        low, high = scores.interval("r2")
        facts.append(("R-squared (private)", f"{scores['r2']:.3f} ({low:.3f} to {high:.3f})"))
    return facts


def summary_notes(private: bool) -> list[str]:
    """Return what stands below it."""
    counted = "Standard errors count privacy noise and the sampling of records."
    return [counted] if private else ["The fit is NOT PRIVATE.", counted]


@estimator
class PrivateModel(ConfidenceIntervals, Evaluated, BaseEstimator):  # type: ignore[misc]
    """Base class of regressors and classifiers, which tell how targets are bounded."""

    epsilon: float = 1.0
    delta: float | None = None
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

    #: The algorithm, whose parameters are those that an estimator adds to the common ones.
    _method: ClassVar[type[Method]]
    #: What targets are made arrays, or chunks, by.
    _arrays: ClassVar[type[ArrayInput]] = ArrayInput
    _chunks: ClassVar[type[ChunkInput]] = ChunkInput

    def fit(self, X: Any, y: Any, groups: Any = None) -> Any:
        """Fit the model privately.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Records, one per row; a Dask array or dataframe is read by its cluster, block by block,
            and so is a NumPy memory map, here.
        y : array-like of shape (n_samples,)
            Targets.
        groups : array-like of shape (n_samples,), default=None
            Who each row belongs to: ids, all integers or all text. With them the fit protects
            persons instead of rows, and ``max_rows_per_group`` says how many rows of a person count
            at most.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        with unchained():
            self._check_groups(groups is not None)
            if is_dask(X):
                table = dask_chunks(X, y, groups=groups)
                return self._fit(self._chunks(table, self.max_rows_per_group))
            return self._fit(self._arrays(X, y, groups, self.max_rows_per_group))

    def fit_parquet(
        self,
        path: str | Path | Iterable[str | Path],
        target: str = "y",
        features: Sequence[str] | None = None,
        *,
        groups: str | None = None,
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
        groups : str, default=None
            Column of ids, integers or text, that tells who a row belongs to; see `fit`.
        client : distributed.Client, default=None
            A Dask cluster whose workers read the files; None reads them on this machine.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        executor = None if client is None else Cluster(client)
        with unchained():
            table = file_chunks(path, target, features, executor, groups)
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
        with unchained():
            self._check_groups(table.grouped)
            return self._fit(self._chunks(table, self.max_rows_per_group), report)

    def _fit(self, data: Input, report: Report | None = None) -> Any:
        self._check_parameters()
        accountant = self.accountant if self.accountant is not None else BudgetAccountant.current()
        shape = data.shape
        planned = None if shape is None else self._planned(*shape)
        if accountant is not None and planned is not None:
            accountant.check(planned[1].spent, leaks=reasons_for_leaks(self, planned[1]))
        d = data.check(self)
        scaling = data.scaling(
            bounds_X=self.bounds_X,
            bounds_y=self._bounds_y(),
            data_norm=self.data_norm,
            fit_intercept=self.fit_intercept,
            warn=planned is None or planned[1].is_private,
        )
        method = self._resolve(d + bool(self.fit_intercept))
        report = report or (lambda name, part: self._say(f"{name}: {part:.0%}"))
        rows = data.rows(scaling, report, in_blocks=method.in_blocks())
        n = rows.n
        if planned is None or shape != (n, d):
            planned = self._planned(n, d)
        method, plan = planned
        self._advise(method, plan, n, d)
        if plan.is_private and is_seeded(self.random_state):
            warn_seeded(stacklevel=4)
        clip = scaling.clipping(getattr(method, "residual_clip", None))
        noise = make_noise(self.noise, self.random_state, warn=False)
        # Public choices leave the secret stream alone, unless the caller seeds everything.
        public = noise.rng if is_seeded(self.random_state) else public_generator()
        if accountant is not None:
            label = type(self).__name__
            if plan.rows_per_person is not None:
                label += f", per person of up to {plan.rows_per_person} rows"
            accountant.spend(plan.spent, label=label, leaks=reasons_for_leaks(self, plan))
        draws = Draws(noise, public, lambda at, total: self._say(f"step {at} of {total}"))
        solution = solve_fit(method, rows, plan, scaling, clip, draws)
        # On a copy that takes the model's place in one step: a model is the old one or the new one.
        fitted = object.__new__(type(self))
        fitted.__dict__.update(self.__dict__)
        fitted.n_features_in_ = d
        fitted.__dict__.pop("feature_names_in_", None)
        if data.names is not None:
            fitted.feature_names_in_ = data.names
        fitted._table_rows = data.table_rows
        fitted._store(method, plan, solution, scaling, n, clip, noise.source)
        del fitted._table_rows
        self.__dict__ = fitted.__dict__
        return self

    def account(self, n_samples: int, n_features: int) -> PrivacySpent:
        """Return the account of a fit of this size, as it would be charged; reads no data.

        Parameters
        ----------
        n_samples, n_features : int
            Shape of the data; with ``max_rows_per_group`` the first is the number of persons.

        Returns
        -------
        fastmix.accounting.PrivacySpent
            The events of the fit with their epsilon and delta.
        """
        self._check_parameters()
        n = check_integer("n_samples", n_samples, at_least=1)
        d = check_integer("n_features", n_features, at_least=1)
        return self._planned(n, d)[1].spent

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
            values only.
        """
        check_is_fitted(self)
        check_probability("level", level)
        found, private = effects(self), self.privacy_
        return summarise(
            found,
            title=f"Private linear regression ({type(self).__name__})",
            facts=[*summary_facts(private.epsilon, private.delta, private.data["n_samples"], self)],
            level=level,
            notes=summary_notes(private.private) if self.inference else [],
        )

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
        return fit_card(self, headline(self.privacy_))

    def _repr_mimebundle_(self, **options: Any) -> dict[str, str]:
        bundle: dict[str, str] = super()._repr_mimebundle_(**options)
        if "text/html" in bundle:
            bundle["text/html"] = self._repr_html_inner()
        return bundle

    def _resolve(self, columns: int | None = None) -> Method:
        """Return the algorithm with its parameters, for so many columns with the intercept."""
        return self._method(**{f.name: getattr(self, f.name) for f in fields(self._method)})

    def _check_parameters(self) -> None:
        check_parameters(self)
        self._resolve().check()

    def _bounds_y(self) -> Any:
        """Return the public bounds of the target, None if there are none."""
        return None

    def _check_groups(self, given: bool) -> None:
        """Refuse ids without a cap, and a cap without ids."""
        self._check_parameters()
        if given and self.max_rows_per_group is None:
            raise value_error("max_rows_per_group", "be given with groups", None)
        if not given and self.max_rows_per_group is not None:
            most = self.max_rows_per_group
            raise value_error("max_rows_per_group", "be None without groups", most)

    def _sizes(self, n: int, d: int) -> Sizes:
        """Return the public sizes; n counts persons if there are groups."""
        given: dict[str, Any] = {"bounds_X": self.bounds_X, "data_norm": self.data_norm}
        given["rows_per_person"] = self.max_rows_per_group
        return Sizes.of(n, d, intercept=self.fit_intercept, **given)

    def _target(self, n: int) -> Target:
        return Target(float(self.epsilon), default_delta(self.delta, n))

    def _planned(self, n: int, d: int) -> tuple[Method, Plan]:
        """Return the algorithm and its plan for n rows and d features."""
        sizes = self._sizes(n, d)
        method = self._resolve(sizes.d)
        plan = plan_fit(
            method,
            sizes,
            self._target(n),
            inference=self.inference,
            noise=self.noise,
            score_share=float(self.score_share),
        )
        return method, plan

    def _advise(self, method: Method, plan: Plan, n: int, d: int) -> None:
        advise(method, plan, self._sizes(n, d), self._target(n))

    def _store(
        self,
        method: Method,
        plan: Plan,
        solution: Solution,
        scaling: PublicScaling,
        n: int,
        clip: float,
        source: str,
    ) -> None:
        d: int = self.n_features_in_
        self._store_coefficients(solution.theta, scaling)
        self.n_steps_ = plan.steps
        self.gamma_, self.eta_ = solution.gamma, solution.eta
        self.gradient_noise_ = solution.gradient_noise
        self.bounds_X_, self.bounds_y_ = scaling.bounds_X, scaling.bounds_y
        self._store_intervals(solution, plan, scaling, clip=clip, n=n)
        self.__dict__.pop("scores_", None)
        if solution.scores is not None:
            self.scores_ = PrivateScores(
                in_units(solution.scores, scaling.target_map.scale), None, n
            )
        facts = {"n_samples": n, "n_features": d, **scaling.describe(), **self._facts()}
        if plan.rows_per_person is not None:
            facts["n_samples"] = self._table_rows
            facts |= {"n_persons": n, "max_rows_per_person": plan.rows_per_person}
        if solution.chosen is not None:
            self.chosen_ = facts["chosen"] = solution.chosen
        if (method.clips or plan.residual_sigma is not None) and not math.isinf(self.epsilon):
            facts["residuals_clipped_at"] = clip * scaling.target_map.scale
        self.privacy_ = PrivacyCertificate(
            spent=plan.spent,
            mechanism=type(self).__name__,
            parameters={
                **self._stated(method),
                **{f.name: getattr(method, f.name) for f in fields(method)},
                **jsonable(plan.settings),
                "method_": method.name,
            },
            data=facts,
            noise="seeded" if is_seeded(self.random_state) else source,
            leaks=reasons_for_leaks(self, plan),
        )

    def _stated(self, method: Method) -> dict[str, Any]:
        """Return the parameters that a certificate states beside those of the method."""
        skipped = ("accountant", "bounds_X", "bounds_y", "random_state")
        names = [f.name for f in fields(PrivateModel) if f.name not in skipped]
        if not self.score_share:
            names.remove("score_share")
        return {name: getattr(self, name) for name in names}

    def _store_coefficients(self, theta: FloatArray, scaling: PublicScaling) -> None:
        """Store coefficients in the user's units."""
        self.coef_, self.intercept_ = scaling.coefficients(theta, self.n_features_in_)

    def _facts(self) -> dict[str, Any]:
        """Return what a certificate says of the data beside their bounds."""
        return {}

    def _say(self, progress: str) -> None:
        if self.verbose:
            print(f"[{type(self).__name__}] {progress}", file=sys.stderr)


@estimator
class PrivateRegressor(RegressorMixin, PrivateModel):  # type: ignore[misc]
    """Base class of the regressors: a subclass names its method and its parameters."""

    bounds_y: Any = None

    def predict(self, X: Any) -> FloatArray:
        """Predict targets.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Records, one per row.

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

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        # Privacy noise swamps the signal on the few hundred rows of a unit test.
        tags.regressor_tags.poor_score = True
        return tags

    def _bounds_y(self) -> Any:
        return self.bounds_y
