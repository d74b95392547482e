"""Summaries of fitted estimators: tables of coefficients, and a card for notebooks."""

import math
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from fastmix._validation import check_probability
from fastmix.accounting import GaussianEvent
from fastmix.accounting.events import ObjectiveEvent
from fastmix.certificate import PrivacyCertificate
from fastmix.engine.population import Population
from fastmix.show import RegressionSummary, summarise
from fastmix.show.html import number

#: Standard errors by which clipping may move coefficients before a summary says so.
CLIPPING = 1.0 / 3.0
#: What coefficients of more than two classes mean.
AGAINST_THE_REST = (
    "Each class is compared with all others together, in a logistic regression of its own; a "
    "difference of two classes' coefficients is no log-odds ratio of these two."
)


def summary_facts(
    method: str,
    spent: tuple[float, float],
    n: int,
    *,
    population: Population,
    model: Any = None,
) -> list[tuple[str, str]]:
    """Return the facts above a table of coefficients; n counts rows unless their number is hidden.

    A hidden number was released with noise; it counts persons where they are protected.
    """
    hidden = population.hidden
    facts = [
        ("Method", method),
        ("No. persons" if hidden and population.persons else "No. observations", f"{n:,}"),
        ("Epsilon", f"{spent[0]:.4g}"),
        ("Delta", f"{spent[1]:.3g}"),
    ]
    if hidden:
        facts[1] = (facts[1][0], f"about {n:,}")
    if population.persons:
        many = "" if hidden or population.n is None else f"{population.n:,} "
        facts.append(("Protects", f"{many}{population.protected}"))
    if (spread := residual_spread(model)) is not None:
        facts.append(("Residual std", number(spread)))
    if (scores := getattr(model, "scores_", None)) is not None:
        facts += [(f"{name} (private)", words) for name, words in scores.in_words()]
    return facts


def residual_spread(model: Any) -> float | None:
    """Return the spread of the errors of a fit, unless privacy noise may hide it."""
    return model.residual_std_ if getattr(model, "residual_std_identified_", False) else None


def interval_share(certificate: PrivacyCertificate) -> float | None:
    """Return the share of the budget that intervals took, None where it is not plain."""
    asked, events = certificate.parameters, [*certificate.spent.events]
    names = ["curvature_sigma", "square_sigma", "residual_sigma"]
    names += ["count_sigma"] if asked["method_"] == "quantile" and asked["inference"] else []
    noise = [asked[name] for name in names if asked.get(name) is not None]
    known = GaussianEvent, ObjectiveEvent
    if not noise or not all(isinstance(each, known) for each in events):
        return None
    squares = [each.mu_squared if isinstance(each, GaussianEvent) else 0.0 for each in events]
    # Several quantiles have a minimiser, and what intervals need, for each.
    fits = max(1, sum(isinstance(each, ObjectiveEvent) for each in events))
    total = math.fsum([*squares, fits * asked.get("mu", 0.0) ** 2])
    # The curvature may be released in several rounds.
    sigma, gaussian = noise[0], [each for each in events if isinstance(each, GaussianEvent)]
    if asked.get("curvature_sigma") == sigma:
        rounds = sum(each.count for each in gaussian if each.sigma == sigma) // fits
        noise += max(0, rounds - 1) * [sigma]
    return fits * math.fsum(1.0 / each**2 for each in noise) / total


def summary_notes(private: bool, share: float | None, population: Population) -> list[str]:
    """Return the notes below a table: what standard errors account for, and what they cost."""
    counted = "Standard errors count privacy noise and the sampling of records."
    if population.persons:
        counted = (
            "Standard errors count privacy noise and the sampling of persons, whose rows may "
            "depend on each other (cluster-robust)."
        )
    if population.weighted:
        counted += " They are those of a weighted regression, by linearisation."
    if share is not None:
        counted += f" They took {share:.0%} of the privacy budget."
    return [counted] if private else ["The fit is NOT PRIVATE.", counted]


def clipping_notes(facts: dict[str, Any]) -> list[str]:
    """Return a note on clipped rows if they may move coefficients by `CLIPPING` standard errors."""
    chosen, n = facts.get("chosen", {}), facts.get("n_persons", facts["n_samples"])
    if not np.max(chosen.get("clipping_bias", 0.0)) > CLIPPING:  # one number per class
        return []
    clipped = n * float(np.max(chosen["clipped"]))
    return [
        f"The fit clipped about {clipped:,.0f} of {n:,} records with large residuals. Coefficients "
        "that few records decide are nearer to those of the other records than they would be "
        "without privacy, perhaps by more than their intervals tell."
    ]


def summary(model: Any, level: float) -> RegressionSummary:
    """Return the table of the coefficients of a fitted model."""
    from fastmix.estimators.contrasts import model_effects  # which only summaries need

    check_is_fitted(model)
    check_probability("level", level)
    private = model.privacy_
    population = Population.certified(private.data, private.parameters)
    share, several = interval_share(private), len(np.atleast_2d(model.coef_))
    return summarise(
        **model_effects(model).given,
        title=f"{model._title} ({type(model).__name__})",
        facts=summary_facts(
            model.method_,
            (private.epsilon, private.delta),
            private.data["n_samples"],
            population=population,
            model=model,
        ),
        level=level,
        notes=[
            *(summary_notes(private.private, share, population) if model.inference else []),
            *([AGAINST_THE_REST] if several > 1 else []),
            *clipping_notes(private.data),
        ],
        odds=model._odds,
        epsilon=private.epsilon,
        several=several,
    )
