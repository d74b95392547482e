"""Private scores of a fitted estimator on any rows, charged to a budget."""

import math
from collections.abc import Iterable
from copy import copy
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils import validation

from fastmix._types import FloatArray
from fastmix._validation import (
    check_probability,
    check_real,
    unchained,
    usual_arithmetic,
    value_error,
)
from fastmix.accounting import (
    BudgetAccountant,
    Part,
    PrivacyEvent,
    PrivacySpent,
    gaussian_sigma,
)
from fastmix.data import Chunks, Report
from fastmix.data.dask import dask_chunks, is_dask
from fastmix.data.scaling import PublicScaling
from fastmix.engine.fit import (
    COUNTED,
    SIZE_SHARE,
    count_of,
    default_delta,
    with_size,
    with_weight,
)
from fastmix.engine.objective import WEIGHT_SHARE
from fastmix.engine.plan import joint
from fastmix.engine.population import Population
from fastmix.engine.scores import Bin, Score, Scoring
from fastmix.errors import caller_level
from fastmix.estimators._frames import FrameSource
from fastmix.estimators._input import Arrays, InChunks, Source
from fastmix.estimators.parameters import LARGEST_EPSILON, SMALLEST_EPSILON
from fastmix.random import RandomState, is_seeded, warn_seeded
from fastmix.releases import SIZE, TOTAL_WEIGHT, make_noise
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
        Number of rows, or of persons where they are protected; released with noise where it is
        not public.
    population : fastmix.engine.population.Population
        Who the scores protect.
    """

    scores: dict[str, Score]
    spent: PrivacySpent | None
    n: int
    population: Population = Population()  # noqa: RUF009 (it is frozen)

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
                "high": high if math.isfinite(high) else None,
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
        """Return one row of text per metric: name, value, standard error and interval."""
        return [
            [name, number(each.value), number(each.std, 2), " to ".join(map(number, ends))]
            for name, each in self.scores.items()
            for ends in [each.interval()]
        ]

    def in_words(self) -> list[tuple[str, str]]:
        """Return the names of the scores, each with its value and 95% interval as text."""
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
        bins = [each[:3] for each in self.calibration]
        return card(made + (calibration_chart(bins) if bins else ""))


def scaled_coefficients(scaling: PublicScaling, coef: FloatArray, intercept: float) -> FloatArray:
    """Return coefficients in scaled units, given coefficients in the user's units."""
    d = len(coef)
    size = d + (scaling.row_map.constant > 0.0)
    base = scaling.coefficients(np.zeros(size), d)[1]
    J = scaling.jacobian(d)
    wanted = np.append(coef, intercept - base)
    return np.asarray(np.linalg.lstsq(J, wanted, rcond=None)[0])


class Evaluation(NamedTuple):
    """The arguments of an evaluation beside the data."""

    metrics: str | Iterable[str] | None
    epsilon: float
    delta: float | None
    accountant: BudgetAccountant | None
    random_state: RandomState


class ScoreNoise(NamedTuple):
    """Noise of an evaluation: of the scores, and of the numbers that they are divided by."""

    sigma: float
    size_scale: float | None
    weight_sigma: float | None
    spent: PrivacySpent


def evaluate(
    fitted: Any, X: Any, y: Any, groups: Any, sample_weight: Any, limits: Any, asked: Evaluation
) -> PrivateScores:
    """Return private scores of a fitted model; `PrivateModel.evaluate` describes the arguments.

    ``limits`` are ``max_rows_per_group`` and ``max_weight``.
    """
    in_chunks = isinstance(X, Chunks)
    model = copy(fitted._as_fitted())
    model._population = fitted._population.of_scores(
        groups=X.grouped if in_chunks else groups is not None,
        sample_weight=X.weighted if in_chunks else sample_weight is not None,
        max_rows_per_group=limits[0],
        max_weight=limits[1],
    )
    check_real("epsilon", asked.epsilon, at_least=SMALLEST_EPSILON, at_most=LARGEST_EPSILON)
    if model._population.hidden and asked.delta is None:
        raise value_error("delta", "be given where the number of rows is not public", None)
    names = model._resolve().scoring().checked(asked.metrics)
    with unchained(), usual_arithmetic(), progress("evaluating", verbose=False) as bar:
        data: Source
        schema = getattr(fitted, "schema_", None)
        if in_chunks:
            data = InChunks(X)
        elif schema is not None:
            data = FrameSource(schema, bool(model.fit_intercept), X, y, groups, sample_weight)
        else:
            validation._check_feature_names(fitted, X, reset=False)
            whose = groups, sample_weight
            data = InChunks(dask_chunks(X, y, None, *whose)) if is_dask(X) else Arrays(X, y, *whose)
        hidden = model._population.hidden
        return _evaluate(model, data, names, asked, bar.passed if hidden else bar.passing)


def _evaluate(
    model: Any, data: Source, names: tuple[str, ...], asked: Evaluation, report: Report
) -> PrivateScores:
    """Check and plan, charge, and release the scores."""
    population: Population = model._population
    accountant = model._budget() if asked.accountant is None else asked.accountant
    if population.hidden:
        data.check_shapes()
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
    given = default_delta(asked.delta, rows.n)
    check_probability("delta", given)
    scoring = model._resolve().scoring()
    levels = _levels(scoring, names, population, float(asked.epsilon), given)
    # These may be the rows of the fit, and the theorem needs private coefficients.
    leaks = list(model.privacy_.leaks)
    if is_seeded(asked.random_state):
        warn_seeded(stacklevel=caller_level() + 1)
        leaks.append("the noise was seeded by the caller")
    noise = make_noise(asked.random_state, warn=False)
    if accountant is not None:
        accountant.spend(
            levels.spent,
            label=population.charged(f"scores of {type(model).__name__}"),
            leaks=leaks,
            rows_per_person=population.rows_per_person,
            public_rows=not population.hidden,
        )
    if levels.size_scale is not None:
        rows = with_size(rows, levels.size_scale, noise)
    n = rows.n
    if levels.weight_sigma is not None:
        rows, _ = with_weight(rows, levels.weight_sigma, noise)
    found = scoring.release(rows, theta, names, levels.sigma, noise)
    found = scoring.counted(found, count_of(rows, levels.size_scale, levels.weight_sigma))
    found = scoring.in_units(found, scaling.target_map.scale)
    return PrivateScores(found, levels.spent, n, replace(population, n=n))


def _levels(
    scoring: Scoring, names: tuple[str, ...], population: Population, epsilon: float, delta: float
) -> ScoreNoise:
    """Return the noise that meets epsilon and delta, as far as possible for the scores."""
    scale, weight, parts = None, None, []
    if population.hidden:
        scale = (1.0 + 1e-9) / (SIZE_SHARE * epsilon)
        parts.append(Part(COUNTED, [SIZE.event(scale)], 0.0))
        epsilon *= 1.0 - SIZE_SHARE
    sigma = gaussian_sigma(epsilon, delta) * (1.0 + 1e-9)
    events: list[PrivacyEvent] = []
    if population.weighted:
        weight = sigma / math.sqrt(WEIGHT_SHARE)
        events.append(TOTAL_WEIGHT.event(weight))
        sigma /= math.sqrt(1.0 - WEIGHT_SHARE)
    events += scoring.events(names, sigma)
    spent = PrivacySpent([*parts, *joint(events, delta).parts])
    return ScoreNoise(sigma, scale, weight, spent)
