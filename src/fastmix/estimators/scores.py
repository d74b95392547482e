"""Private scores of a fitted estimator on any rows, charged to a budget."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils import validation
from sklearn.utils.validation import check_is_fitted

from fastmix._types import FloatArray
from fastmix._validation import check_probability, check_real, unchained
from fastmix.accounting import BudgetAccountant, PrivacySpent, gaussian_sigma
from fastmix.data import Chunks
from fastmix.data.dask import dask_chunks, is_dask
from fastmix.data.scaling import PublicScaling
from fastmix.estimators._frames import table_input
from fastmix.estimators._input import ArrayInput, ChunkInput, Input
from fastmix.estimators.parameters import LARGEST_EPSILON, SMALLEST_EPSILON
from fastmix.mechanisms import make_noise
from fastmix.methods.fit import default_delta
from fastmix.methods.plan import joint
from fastmix.methods.scores import (
    METRICS,
    Score,
    checked_metrics,
    private_scores,
    score_events,
)
from fastmix.random import RandomState, is_seeded, warn_seeded
from fastmix.show.html import number, table


@dataclass(frozen=True)
class PrivateScores:
    """Private scores with intervals, and what they cost.

    Parameters
    ----------
    scores : dict of str to Score
        The scores by name: value, standard error by noise, and the size, in the units of the
        target, at which residuals were clipped.
    spent : fastmix.accounting.PrivacySpent or None
        What was charged; None if it is part of the account of a fit.
    n : int
        Number of rows.
    """

    scores: dict[str, Score]
    spent: PrivacySpent | None
    n: int

    def __getitem__(self, name: str) -> float:
        return self.scores[name].value

    def interval(self, name: str, level: float = 0.95) -> tuple[float, float]:
        """Return an interval for a score of the same rows without privacy.

        Parameters
        ----------
        name : str
            The metric.
        level : float, default=0.95
            Probability with which the interval covers, if few residuals were clipped.

        Returns
        -------
        tuple of float
            Lower and upper end.
        """
        return self.scores[name].interval(check_probability("level", level))

    def to_dict(self) -> dict[str, Any]:
        """Return the scores as plain types.

        Returns
        -------
        dict
            For each metric its value, standard error, 95% interval, and the clipping level.
        """
        return {
            name: {
                "value": each.value,
                "std": each.std,
                "low": each.interval()[0],
                "high": each.interval()[1],
                "residuals_clipped_at": each.clip,
            }
            for name, each in self.scores.items()
        }

    def rows(self) -> list[list[str]]:
        """Return one line of words per metric: name, value, standard error and interval.

        Returns
        -------
        list of list of str
            What `str` and notebooks show.
        """
        return [
            [name, number(each.value), number(each.std, 2), " to ".join(map(number, ends))]
            for name, each in self.scores.items()
            for ends in [each.interval()]
        ]

    def __str__(self) -> str:
        lines = [["", "value", "std err", "95% interval"], *self.rows()]
        return "\n".join(f"{a:<6}{b:>12}{c:>12}   {d}" for a, b, c, d in lines)

    def _repr_html_(self) -> str:
        return table(["", "value", "std err", "95% interval"], self.rows())


def in_units(scores: dict[str, Score], scale: float) -> dict[str, Score]:
    """Return scores in the units of the target."""
    factors = {"r2": 1.0, "mse": scale**2, "mae": scale}
    return {name: each.times(factors[name], scale) for name, each in scores.items()}


def scaled_coefficients(scaling: PublicScaling, coef: FloatArray, intercept: float) -> FloatArray:
    """Return coefficients in scaled units, from those in the user's."""
    d = len(coef)
    size = d + (scaling.row_map.constant > 0.0)
    base = scaling.coefficients(np.zeros(size), d)[1]
    J = scaling.jacobian(d)
    wanted = np.append(coef, intercept - base)
    return np.asarray(np.linalg.lstsq(J, wanted, rcond=None)[0])


class Evaluated:
    """The part of the estimators that gives private scores."""

    def evaluate(
        self,
        X: Any,
        y: Any = None,
        metrics: str | Iterable[str] = METRICS,
        *,
        epsilon: float,
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
        metrics : str or iterable of str, default=("r2", "mse", "mae")
            Which scores; they share the budget, so fewer are more precise.
        epsilon : float
            Privacy budget of the scores, beyond that of the fit.
        delta : float, default=None
            Probability with which the guarantee may fail; None means ``1 / n**2``.
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
        Paper: beyond it; docs/proofs/scores.md. Large residuals are clipped, at a level that is
        chosen from released counts and stated: heavy tails make scores too good.
        """
        check_is_fitted(self)
        if hasattr(self, "classes_"):
            raise ValueError("scores must be of a regression; this model predicts classes.")
        if getattr(self, "max_rows_per_group", None) is not None:
            raise ValueError(
                "scores must be of a model that protects single rows: they do, and this model "
                "protects persons with several rows."
            )
        if not getattr(self, "public_rows", True):
            raise ValueError(
                "scores must be of a model with public_rows=True: they show the number of rows."
            )
        names = checked_metrics(metrics)
        check_real("epsilon", epsilon, at_least=SMALLEST_EPSILON, at_most=LARGEST_EPSILON)
        with unchained():
            data: Input
            schema = getattr(self, "schema_", None)
            if isinstance(X, Chunks):
                data = ChunkInput(X)
            elif schema is not None:
                model: Any = self
                data = table_input(model, X, y, schema, None)
            else:
                validation._check_feature_names(self, X, reset=False)
                data = ChunkInput(dask_chunks(X, y)) if is_dask(X) else ArrayInput(X, y)
            return self._evaluate(data, names, float(epsilon), delta, accountant, random_state)

    def _evaluate(
        self,
        data: Input,
        names: tuple[str, ...],
        epsilon: float,
        delta: float | None,
        accountant: BudgetAccountant | None,
        random_state: RandomState,
    ) -> PrivateScores:
        model: Any = self
        if accountant is None:
            accountant = model.accountant
        if accountant is None:
            accountant = BudgetAccountant.current()
        d = data.check(model)
        if d != model.n_features_in_:
            raise ValueError(f"X must have {model.n_features_in_} features; got {d}.")
        scaling = data.scaling(
            bounds_X=model.bounds_X_,
            bounds_y=model.bounds_y_,
            data_norm=model.schema_.data_norm if hasattr(model, "schema_") else model.data_norm,
            fit_intercept=model.fit_intercept,
            warn=False,
        )
        rows = data.rows(scaling, lambda name, part: None, in_blocks=True)
        theta = scaled_coefficients(scaling, model.coef_, model.intercept_)
        given = default_delta(delta, rows.n)
        check_probability("delta", given)
        sigma = gaussian_sigma(epsilon, given) * (1.0 + 1e-9)
        spent = joint(list(score_events(names, sigma)), given)
        said = model.privacy_.leaks if hasattr(model, "privacy_") else model.from_data_
        leaks = [each for each in said if "taken from the data" in each]
        if is_seeded(random_state):
            warn_seeded(stacklevel=4)
            leaks.append("the noise was seeded by the caller")
        noise = make_noise("float", random_state, warn=False)
        if accountant is not None:
            accountant.spend(spent, label=f"scores of {type(self).__name__}", leaks=leaks)
        found = private_scores(rows, theta, names, sigma, noise)
        return PrivateScores(in_units(found, scaling.target_map.scale), spent, rows.n)
