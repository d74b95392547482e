"""Private scores of a fitted estimator on any rows, charged to a budget."""

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.utils import validation

from fastmix._types import FloatArray
from fastmix._validation import check_probability, check_real, unchained
from fastmix.accounting import BudgetAccountant, PrivacySpent, gaussian_sigma
from fastmix.data import Chunks, Report
from fastmix.data.dask import dask_chunks, is_dask
from fastmix.data.scaling import PublicScaling
from fastmix.engine.fit import default_delta
from fastmix.engine.plan import joint
from fastmix.engine.scores import Bin, Score
from fastmix.errors import caller_level
from fastmix.estimators._frames import Table
from fastmix.estimators._input import Arrays, InChunks, Source
from fastmix.estimators.parameters import LARGEST_EPSILON, SMALLEST_EPSILON
from fastmix.random import RandomState, is_seeded, warn_seeded
from fastmix.releases import make_noise
from fastmix.show.html import card, number, table
from fastmix.show.progress import progress
from fastmix.show.svg import calibration_chart

#: Names of the scores in summaries and reports.
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
    """Private scores with intervals, and their cost.

    Parameters
    ----------
    scores : dict of str to Score
        The scores by name: value, standard error by noise, limits, and the size, in the units of
        the target or of the loss, beyond which noise hides the share of residuals or losses.
    spent : fastmix.accounting.PrivacySpent or None
        The charge of the scores; None if the account of a fit contains it.
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
        """The accuracy of always predicting the more frequent of two labels, as text."""
        known = [each.baseline for each in self.scores.values() if each.baseline is not None]
        said = "always predicting the more frequent label would be right for about"
        return f"{said} {known[0]:.0%}" if known else ""

    @property
    def calibration(self) -> tuple[Bin, ...]:
        """Observed shares of the second label beside its predicted probabilities.

        The area under the curve brings the calibration: bins of rows, each with the mean predicted
        probability, the observed share, its standard error by noise, and its share of the rows.
        """
        return next((each.bins for each in self.scores.values() if each.bins), ())

    def rows(self) -> list[list[str]]:
        """Return one row of text per metric: name, value, standard error and interval.

        Returns
        -------
        list of list of str
            The rows that `str` and notebooks show.
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
            The pairs that summaries and reports show.
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
    """Return coefficients in scaled units, given coefficients in the user's units."""
    d = len(coef)
    size = d + (scaling.row_map.constant > 0.0)
    base = scaling.coefficients(np.zeros(size), d)[1]
    J = scaling.jacobian(d)
    wanted = np.append(coef, intercept - base)
    return np.asarray(np.linalg.lstsq(J, wanted, rcond=None)[0])


def evaluate(
    fitted: Any,
    X: Any,
    y: Any,
    metrics: str | Iterable[str] | None,
    epsilon: float,
    delta: float | None,
    accountant: BudgetAccountant | None,
    random_state: RandomState,
) -> PrivateScores:
    """Return private scores of a fitted model; `PrivateModel.evaluate` describes the arguments."""
    fitted._population.check_scores()
    model = fitted._as_fitted()
    names = model._resolve().scoring().checked(metrics)
    check_real("epsilon", epsilon, at_least=SMALLEST_EPSILON, at_most=LARGEST_EPSILON)
    with unchained(), progress("evaluating", verbose=False) as bar:
        data: Source
        schema = getattr(fitted, "schema_", None)
        if isinstance(X, Chunks):
            data = InChunks(replace(X, grouped=False, weighted=False))  # single rows count
        elif schema is not None:
            data = Table(schema, bool(model.fit_intercept), X, y, None, None)
        else:
            validation._check_feature_names(fitted, X, reset=False)
            data = InChunks(dask_chunks(X, y)) if is_dask(X) else Arrays(X, y)
        asked = names, float(epsilon), delta, accountant, random_state
        return _evaluate(model, data, *asked, bar.passing)


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
        dummies=model._dummies,
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
        warn_seeded(stacklevel=caller_level() + 1)
        leaks.append("the noise was seeded by the caller")
    noise = make_noise("float", random_state, warn=False)
    if accountant is not None:
        accountant.spend(spent, label=f"scores of {type(model).__name__}", leaks=leaks)
    found = scoring.release(rows, theta, names, sigma, noise)
    return PrivateScores(scoring.in_units(found, scaling.target_map.scale), spent, rows.n)
