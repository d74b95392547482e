"""Private scores of a fitted estimator on any rows, charged to a budget."""

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.utils import validation
from sklearn.utils.validation import check_is_fitted

from fastmix._types import FloatArray
from fastmix._validation import check_probability, check_real, unchained
from fastmix.accounting import BudgetAccountant, PrivacySpent, gaussian_sigma
from fastmix.data import Chunks, Report
from fastmix.data.dask import dask_chunks, is_dask
from fastmix.data.scaling import PublicScaling
from fastmix.engine.fit import default_delta
from fastmix.engine.plan import joint
from fastmix.engine.scores import Bin, Score
from fastmix.estimators._frames import Table
from fastmix.estimators._input import Arrays, InChunks, Source
from fastmix.estimators.parameters import LARGEST_EPSILON, SMALLEST_EPSILON
from fastmix.random import RandomState, is_seeded, warn_seeded
from fastmix.releases import make_noise
from fastmix.show.html import card, number, table
from fastmix.show.progress import progress
from fastmix.show.svg import calibration_chart

#: What scores are called in summaries and reports.
NAMES = {
    "r2": "R-squared",
    "mse": "Mean squared error",
    "mae": "Mean absolute error",
    "below": "Share below",
    "pinball": "Pinball loss",
    "accuracy": "Accuracy",
    "log_loss": "Log-loss",
    "auc": "AUC",
}
#: Coefficients beyond this are not evaluated: predictions could overflow.
LARGEST_COEFFICIENT = 1e100


@dataclass(frozen=True)
class PrivateScores:
    """Private scores with intervals, and what they cost.

    Parameters
    ----------
    scores : dict of str to Score
        The scores by name: value, standard error by noise, limits, and the size of residuals, in
        the units of the target, or of losses, beyond which noise hides what they add to the value.
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
            Probability with which the interval covers, at least, whatever the tails.

        Returns
        -------
        tuple of float
            Lower and upper end; the lower one of R^2 is ``-inf`` where noise hides the variance of
            the target.
        """
        return self.scores[name].interval(check_probability("level", level))

    def to_dict(self) -> dict[str, Any]:
        """Return the scores as plain types.

        Returns
        -------
        dict
            For each metric its value, standard error, 95% interval (None for an end at infinity),
            and the size beyond which noise hides residuals or losses, or None; for the accuracy of
            two labels also that of always predicting the more frequent one.
        """
        return {
            name: {
                "value": each.value,
                "std": each.std,
                "low": low if math.isfinite(low) else None,
                "high": high,
                "clipped_at": each.clip,
                **({} if each.baseline is None else {"baseline": each.baseline}),
            }
            for name, each in self.scores.items()
            for low, high in [each.interval()]
        }

    @property
    def baseline(self) -> str:
        """How often always predicting the more frequent of two labels is right, in words."""
        known = [each.baseline for each in self.scores.values() if each.baseline is not None]
        said = "always predicting the more frequent label would be right for about"
        return f"{said} {known[0]:.0%}" if known else ""

    @property
    def calibration(self) -> tuple[Bin, ...]:
        """How often the second label is right, beside its predicted probability.

        It comes with the area under the curve: bins of rows, each with the mean predicted
        probability, the observed share, its standard error by noise, and its share of the rows.
        """
        return next((each.bins for each in self.scores.values() if each.bins), ())

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

    def in_words(self) -> list[tuple[str, str]]:
        """Return names of the scores, and values with 95% intervals.

        Returns
        -------
        list of tuple of str
            What summaries and reports show.
        """
        return [
            (NAMES[name], f"{each.value:.3f} ({low:.3f} to {high:.3f})")
            for name, each in self.scores.items()
            for low, high in [each.interval()]
        ]

    def __str__(self) -> str:
        lines = [["", "value", "std err", "95% interval"], *self.rows()]
        return "\n".join(f"{a:<9}{b:>12}{c:>12}   {d}" for a, b, c, d in lines)

    def _repr_html_(self) -> str:
        made = table(["", "value", "std err", "95% interval"], self.rows())
        return card(made + (self._chart() if self.calibration else ""))

    def _chart(self) -> str:
        """Return a drawing of the calibration."""
        return calibration_chart([each[:3] for each in self.calibration])


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
        metrics: str | Iterable[str] | None = None,
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
        metrics : str or iterable of str, default=None
            Which scores; they share the budget, so fewer are more precise. None means all: "r2",
            "mse" and "mae"; of a classifier "accuracy", "log_loss" and, for two classes, "auc",
            which brings the calibration; of a quantile, the share of targets "below" it and its
            "pinball" loss.
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
        Paper: beyond it; docs/proofs/scores.md. The scores are those of these rows, with
        predictions clipped to the bounds of the target. In the log-loss, probabilities of the label
        below 0.0001 count as 0.0001. Intervals contain the score without privacy in at least 95% of
        the evaluations, whatever the tails. A value leaves out what noise hides of the largest
        residuals or losses. A label outside the public list counts nowhere, and adds 0 to the
        log-loss.
        """
        check_is_fitted(self)
        if getattr(self, "max_rows_per_group", None) is not None:
            raise ValueError(
                "scores must be of a model that protects single rows: their noise hides one row, "
                "and this model protects persons with several rows. There are no private scores "
                "for persons yet. Compare predictions with rows of persons who are not in the fit "
                "by hand; what you see there is not private."
            )
        if not getattr(self, "public_rows", True):
            raise ValueError(
                "scores must be of a model with a public number of rows: they show the number of "
                "rows, and this model hides it."
            )
        model = self._as_fitted()
        names = model._resolve().scoring().checked(metrics)
        check_real("epsilon", epsilon, at_least=SMALLEST_EPSILON, at_most=LARGEST_EPSILON)
        with unchained(), progress("evaluating", verbose=model.verbose, lines=True) as bar:
            data: Source
            schema = getattr(self, "schema_", None)
            if isinstance(X, Chunks):
                data = InChunks(replace(X, grouped=False, weighted=False))  # single rows count
            elif schema is not None:
                data = Table(schema, bool(model.fit_intercept), X, y, None, None)
            else:
                validation._check_feature_names(self, X, reset=False)
                data = InChunks(dask_chunks(X, y)) if is_dask(X) else Arrays(X, y)
            asked = names, float(epsilon), delta, accountant, random_state
            return _evaluate(model, data, *asked, bar.passing)

    def _as_fitted(self) -> Any:
        """Return the model with all that was found in the fit as parameters."""
        return self

    def _scaled(self, scaling: PublicScaling) -> FloatArray:
        """Return the coefficients in scaled units."""
        model: Any = self
        return scaled_coefficients(scaling, model.coef_, model.intercept_)


def _evaluate(
    model: Any,
    data: Source,
    names: tuple[str, ...],
    epsilon: float,
    delta: float | None,
    accountant: BudgetAccountant | None,
    random_state: RandomState,
    report: Report,
) -> PrivateScores:
    """Check and plan, charge, and release the scores."""
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
    rows = data.rows(scaling, report, in_blocks=True)
    theta = model._scaled(scaling)
    if not np.abs(theta).max() <= LARGEST_COEFFICIENT:
        raise ValueError("the coefficients must be at most 1e100 in scaled units to be evaluated.")
    given = default_delta(delta, rows.n)
    check_probability("delta", given)
    sigma = gaussian_sigma(epsilon, given) * (1.0 + 1e-9)
    scoring = model._resolve().scoring()
    spent = joint(list(scoring.events(names, sigma)), given)
    leaks = [each for each in model.privacy_.leaks if "taken from the data" in each]
    if is_seeded(random_state):
        warn_seeded(stacklevel=4)
        leaks.append("the noise was seeded by the caller")
    noise = make_noise("float", random_state, warn=False)
    if accountant is not None:
        accountant.spend(spent, label=f"scores of {type(model).__name__}", leaks=leaks)
    found = scoring.release(rows, theta, names, sigma, noise)
    return PrivateScores(scoring.in_units(found, scaling.target_map.scale), spent, rows.n)
