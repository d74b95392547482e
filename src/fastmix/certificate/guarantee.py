"""The guarantee of a certificate in the terms of a data office: unit, neighbours, limits."""

import math
from typing import Any

from fastmix.accounting import PrivacySpent, SketchEvent, TailEvent
from fastmix.engine.population import Population

#: Numbers of records, or persons, for which a certificate converts its guarantee.
TOGETHER = (2, 5, 10)

TRUST = (
    "central: whoever runs the fit sees the data and is trusted with them; nobody else is trusted, "
    "even if they see every released file, know the code and all settings, and know all records "
    "but one"
)
POST_PROCESSING = (
    "intervals, summaries, predictions, reports and these papers follow from released values and "
    "public settings, and cost no privacy"
)
#: Why a fit is not private whose bounds were found with seeded noise, for an infinite epsilon.
FOUND_OPENLY = "the bounds were found from the data without privacy"
FLOATING_POINT = (
    "the guarantee is for the numbers that the computer released: noise is drawn by integer "
    "arithmetic, exactly from the distribution that the account is for, and it also hides the "
    "largest rounding error of a sum"
)
SKETCHED = (
    "; this fit also used a random sketch of the data, whose rounding errors the account leaves out"
)


def together(epsilon: float, delta: float, count: int) -> dict[str, float]:
    r"""Return the guarantee for several records at once, by group privacy.

    A chain of ``count`` neighbours, each $(\varepsilon, \delta)$, gives $k\varepsilon$ and
    $\delta \sum_{i<k} e^{i\varepsilon}$, which is at most 1.
    """
    if delta == 0.0:
        return {"epsilon": count * epsilon, "delta": 0.0}
    if (count - 1) * epsilon > 700.0:
        return {"epsilon": count * epsilon, "delta": 1.0}
    factor = math.fsum(math.exp(i * epsilon) for i in range(count))
    return {"epsilon": count * epsilon, "delta": min(1.0, delta * factor)}


def bounds_found(data: dict[str, Any]) -> dict[str, float] | None:
    """Return what finding the bounds of a fit cost, None if they are public."""
    found = data.get("encoding", {}).get("found") or data.get("bounds_found")
    return None if not found else {name: float(found[name]) for name in ("epsilon", "delta")}


def total(spent: PrivacySpent, data: dict[str, Any]) -> dict[str, float]:
    """Return the cost of a fit and of finding its bounds, by basic composition."""
    found = bounds_found(data) or {"epsilon": 0.0, "delta": 0.0}
    return {name: getattr(spent, name) + found[name] for name in ("epsilon", "delta")}


def guarantee(
    spent: PrivacySpent, data: dict[str, Any], parameters: dict[str, Any]
) -> dict[str, Any]:
    """Return the entry ``guarantee`` of a certificate; it follows from the other entries."""
    population, cost = Population.certified(data, parameters), total(spent, data)
    return {
        "unit": unit(population),
        "neighbours": neighbours(population),
        "total": cost,
        "bounds_found": bounds_found(data),
        "one_replaced": together(**cost, count=2),
        "together": {str(k): together(**cost, count=k) for k in TOGETHER},
        "trust_model": TRUST,
        "not_protected": not_protected(population),
        "floating_point": FLOATING_POINT + (SKETCHED if is_sketched(spent) else ""),
        "post_processing": POST_PROCESSING,
    }


def is_sketched(spent: PrivacySpent) -> bool:
    """Whether a fit released a sketch, or bounds on one, which only their events have."""
    return any(isinstance(event, (SketchEvent, TailEvent)) for event in spent.events)


def unit(population: Population) -> str:
    """Return whom or what the guarantee protects."""
    if population.rows_per_person is None:
        return "one row of the table; a person with several rows has the guarantee for as many rows"
    rows = population.rows_per_person
    return (
        "one person: all rows with the same id, of which at most "
        f"{rows:,} {'counts' if rows == 1 else 'count'}"
    )


def neighbours(population: Population) -> str:
    """Return the neighbouring relation in words."""
    one = population.unit
    if population.hidden:
        return f"two tables, one of which has one {one} more than the other (add or remove)"
    rows = "its rows count" if population.persons else "it counts"
    return (
        f"two tables with the same number of {population.units}, which is public; one {one} is "
        f"present in one table and absent in the other, where {rows} as zeros after scaling "
        "(zero-out)"
    )


def not_protected(population: Population) -> list[str]:
    """Return what the guarantee does not cover."""
    rows = f"the number of rows{' and of persons' if population.persons else ''}"
    return [
        *([] if population.hidden else [rows]),
        "names of columns, bounds, lists of categories and labels, and all settings",
        "how long the fit took and how much memory it used",
        "how the data were prepared, and whatever was looked at before the fit",
        "scores, residuals and plots that are made from the raw data",
        "facts about people in general, which also hold for people who are not in the table",
    ]
