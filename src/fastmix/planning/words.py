"""A plan in words: as text, and as HTML."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING

from fastmix.engine.families.bounded import TYPICAL
from fastmix.engine.families.quantile import DENSITY
from fastmix.planning.rehearsal import SPREAD
from fastmix.show import html
from fastmix.show.svg import range_chart

if TYPE_CHECKING:
    from fastmix.planning.fit_plan import Error, FitPlan

#: The loss in which forecasts of a family are stated; root mean squares for the others.
_LOSSES = {"logistic": "log-loss", "quantile": "pinball loss"}

_EASY_AND_HARD = (
    "Easy data have uncorrelated features that fill their bounds. Hard data have strongly "
    "correlated features, or bounds far wider than the values. Tighter bounds of features "
    "move a table towards easy data; by how much depends on the data, so it is not forecast."
)


def _rehearsed(plan: FitPlan) -> str:
    """Return what the plan rehearsed, and which public guesses it used."""
    said = (
        f"The plan rehearsed the fit on a made-up table with these sizes and an R^2 of {plan.r2:g}"
    )
    guesses = "r2"
    if plan.family != "logistic":
        spread = SPREAD * plan.half_width if plan.spread is None else plan.spread
        said += f", whose predictions without privacy are off by {amount(plan, spread)} (root mean "
        said, guesses = f"{said}square)", "r2 and spread"
    return f"{said}. If you know better from public sources, pass {guesses}."


def size(plan: FitPlan) -> str:
    """Return the sizes of a fit and its guarantee."""
    persons = "" if plan.n_persons is None else f" of {plan.n_persons:,} persons"
    beside = ", with intervals" if plan.model.inference else ""
    guarantee = f"epsilon {plan.epsilon:g}, delta {plan.delta:.2g}{beside}"
    features = "1 feature" if plan.d == 1 else f"{plan.d:,} features"
    if many := len(plan.categories):
        features += f" ({many:,} {'category' if many == 1 else 'categories'})"
    return f"{plan.n:,} rows{persons}, {features}, {guarantee}"


def headline(plan: FitPlan) -> str:
    """Return the expected error in one sentence."""
    e = plan.asked
    low, typical, high = (amount(plan, each) for each in (e.low, e.typical, e.high))
    added = f"an error of about {typical} to"
    if loss := _LOSSES.get(plan.family):
        added = f"about {typical} to the mean {loss} of"
    said = f"At epsilon {plan.epsilon:g}, privacy is expected to add {added} predictions of "
    if e.effects is None:
        return f"{said}{plan.target}: between {low} for easy data and {high} for hard data."
    said += f"{plan.target}, on most tables between {low} and {high}."
    return f"{said} {intervals(e)}".rstrip()


def intervals(e: Error) -> str:
    """Return how many effects are expected to have an interval; nothing without intervals."""
    if e.known is None or e.effects is None:
        return ""
    if not e.known:
        return f"Noise is expected to hide all {e.effects:,} effects: none will have an interval."
    return f"About {e.known:,} of {e.effects:,} effects are expected to have an interval."


def notes(plan: FitPlan) -> list[str]:
    """Return notes on how to read the numbers, and the warnings of the fit."""
    useless = amount(plan, plan.useless)
    where = "on typical data" if plan.rehearsal is None else "on the made-up table"
    best = f"the best predictions vary by {useless} (root mean squares)"
    if plan.family in _LOSSES:
        best = f"a model without features has {useless} more than the best one"
    reference = "least squares" if plan.family == "linear" else "the fit without privacy"
    found = [
        f"Privacy adds this {_LOSSES.get(plan.family, 'error')} to that of {reference}. To "
        f"compare: {where}, {best}. Where privacy adds as much, the fit is of no use; here "
        f"privacy costs about {plan.outlook.lost:.2g} of what a model could explain.",
        *_in_points(plan.family, plan.outlook.typical),
        _EASY_AND_HARD if plan.rehearsal is None else _rehearsed(plan),
    ]
    if plan.family != "logistic" and plan.model._bounds_y() is None:
        found.append("Errors are for a target with the bounds [-1, 1].")
    if plan.model._population.weighted:
        found.append("The plan assumes that all rows have the largest weight.")
    return [*found, *(f"Warning: {warning}" for warning in plan.warnings)]


def _in_points(family: str, risk: float) -> list[str]:
    r"""Return by how many percentage points shares or probabilities are off.

    Of probabilities p and q, Pinsker's inequality says that the excess log-loss is at least
    :math:`2(p - q)^2`; this is for two classes. A quantile that is off by :math:`\Delta` has an
    excess pinball loss of :math:`f \Delta^2/2` for the density f of residuals, and
    :math:`f \Delta` more or fewer rows below.
    """
    square = risk / 2.0 if family == "logistic" else 2.0 * risk * DENSITY / TYPICAL
    off = f"off by at most {100.0 * min(1.0, math.sqrt(square)):.2g} percentage points"
    said = {
        "logistic": f"Predicted probabilities are {off} (root mean square, if the logistic model "
        "is right), and accuracy falls by at most twice as many, usually by far less.",
        "quantile": f"The share of rows below the fitted quantile is {off}.",
    }
    return [said[family]] if family in said else []


def amount(plan: FitPlan, error: float) -> str:
    """Return an error with its unit."""
    return f"{_rounded(error)} {plan.unit}".rstrip()


def _rounded(error: float) -> str:
    """Return an error with the two digits that a forecast has at most."""
    return html.number(float(f"{error:.2g}"), 2)


def errors(plan: FitPlan, of: Iterable[Error]) -> list[list[str]]:
    """Return a table of errors, its header first."""
    header = ["", f"typical{f', {plan.unit}' if plan.unit else ''}", "easy data", "hard data"]
    rows = [(e, [e.what, *map(_rounded, (e.typical, e.low, e.high))]) for e in of]
    if plan.rehearsal is None:
        return [header, *(cells for _, cells in rows)]
    if plan.rehearsal.known is None:
        return [[*header[:2], "from", "to"], *(cells for _, cells in rows)]
    told = (
        [*cells, "" if e.known is None else f"{e.known:,} of {e.effects:,}"] for e, cells in rows
    )
    return [[*header[:2], "from", "to", "with interval"], *told]


def tables(plan: FitPlan) -> tuple[list[list[str]], list[list[str]]]:
    """Return the errors of other choices, and those of other methods."""
    methods = errors(plan, (each.error(each.method) for each in plan.methods))
    beside = [[f"{row['seconds']:.3g}", f"{row['memory_mib']:.0f}"] for row in plan.table()]
    pairs = zip(methods, [["seconds", "MiB"], *beside], strict=True)
    choices = errors(plan, (*plan.by_epsilon, *plan.others))
    return choices, [[*left, *right] for left, right in pairs]


def text(plan: FitPlan) -> str:
    """Return a plan as text."""
    lines = []
    for rows in tables(plan):
        form = "{:<38}" + " {:>12}" * (len(rows[0]) - 1)
        lines += [*(form.format(*row) for row in rows), ""]
    return "\n".join([size(plan), plan.reason, "", headline(plan), "", *lines, *notes(plan)])


def fragment(plan: FitPlan, chart: str = "") -> str:
    """Return a plan as HTML, for a page or a notebook."""
    choices, methods = (html.table(header, rows) for header, *rows in tables(plan))
    said = html.paragraphs([headline(plan), f"{size(plan)}. {plan.reason}"])
    return said + chart + choices + methods + html.paragraphs(notes(plan))


def page(plan: FitPlan) -> str:
    """Return a plan as an HTML page that stands alone, with its errors against epsilon."""
    loss = _LOSSES.get(plan.family, "error")
    chart = range_chart(
        [each[1:5] for each in plan.by_epsilon],
        mark=(plan.epsilon, plan.asked.typical),
        limit=(plan.useless, "above this line: no use"),
        x_axis="epsilon",
        y_axis=f"{loss} that privacy adds{f', {plan.unit}' if plan.unit else ''}",
    )
    title = f"Plan: a private fit of {plan.target}"
    body = fragment(plan, f"<figure>{chart}</figure>")
    foot = '<p class="soft">Made by fastmix from public sizes and bounds.</p>'
    return html.page(title, f"<h1>{html.escape(title)}</h1>{body}{foot}")
