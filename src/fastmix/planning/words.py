"""A plan in words: as text, and as HTML."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING

from fastmix.engine.families.bounded import TYPICAL
from fastmix.engine.families.quantile import DENSITY
from fastmix.show import html
from fastmix.show.svg import range_chart

if TYPE_CHECKING:
    from fastmix.planning.plan import Error, FitPlan

#: The loss that privacy adds to, where it is not the error of predictions.
_LOSSES = {"logistic": "log-loss", "quantile": "pinball loss"}


def size(plan: FitPlan) -> str:
    """Return the sizes of a fit and its guarantee."""
    persons = "" if plan.n_persons is None else f" of {plan.n_persons:,} persons"
    beside = ", with intervals" if plan.model._infers else ""
    guarantee = f"epsilon {plan.epsilon:g}, delta {plan.delta:.2g}{beside}"
    features = "1 feature" if plan.d == 1 else f"{plan.d:,} features"
    return f"{plan.n:,} rows{persons}, {features}, {guarantee}"


def headline(plan: FitPlan) -> str:
    """Return the expected error in one sentence."""
    e = plan.asked
    low, typical, high = (amount(plan, each) for each in (e.low, e.typical, e.high))
    added = f"an error of about {typical} to"
    if loss := _LOSSES.get(plan.family):
        added = f"about {typical} to the mean {loss} of"
    return (
        f"At epsilon {plan.epsilon:g}, privacy is expected to add {added} predictions of "
        f"{plan.target}: between {low} for easy data and {high} for hard data."
    )


def notes(plan: FitPlan) -> list[str]:
    """Return notes on how to read the numbers, and the warnings of the fit."""
    useless = amount(plan, plan.useless)
    best = f"the best predictions vary by {useless} (root mean squares)"
    if plan.family in _LOSSES:
        best = f"a model without features has {useless} more than the best one"
    reference = "least squares" if plan.family == "linear" else "the fit without privacy"
    found = [
        f"Privacy adds this {_LOSSES.get(plan.family, 'error')} to that of {reference}. To "
        f"compare: on typical data, {best}. Where privacy adds as much, the fit is of no use; here "
        f"privacy costs about {plan.outlook.lost:.2g} of what a model could explain.",
        *_in_points(plan.family, plan.outlook.typical),
        "Easy data have uncorrelated features that fill their bounds. Hard data have strongly "
        "correlated features, or bounds far wider than the values. Tighter bounds of features "
        "move a table towards easy data; by how much depends on the data, so it is not forecast.",
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
    return [header, *([e.what, *map(_rounded, (e.typical, e.low, e.high))] for e in of)]


def tables(plan: FitPlan) -> tuple[list[list[str]], list[list[str]]]:
    """Return the errors of other choices, and those of other methods."""
    methods = errors(plan, (each.error(each.method) for each in plan.methods))
    beside = [[f"{row['seconds']:.3g}", f"{row['memory_mib']:.0f}"] for row in plan.table()]
    pairs = zip(methods, [["seconds", "MiB"], *beside], strict=True)
    choices = errors(plan, (*plan.by_epsilon, *plan.others))
    return choices, [[*left, *right] for left, right in pairs]


def text(plan: FitPlan) -> str:
    """Return a plan as text."""
    form = "{:<38} {:>12} {:>12} {:>12}"
    choices, methods = tables(plan)
    lines = [form.format(*row) for row in choices] + [""]
    lines += [(form + " {:>9} {:>7}").format(*row) for row in methods]
    return "\n".join([size(plan), plan.reason, "", headline(plan), "", *lines, "", *notes(plan)])


def fragment(plan: FitPlan, chart: str = "") -> str:
    """Return a plan as HTML, for a page or a notebook."""
    choices, methods = (html.table(header, rows) for header, *rows in tables(plan))
    said = html.paragraphs([headline(plan), f"{size(plan)}. {plan.reason}"])
    return said + chart + choices + methods + html.paragraphs(notes(plan))


def page(plan: FitPlan) -> str:
    """Return a plan as an HTML page that stands alone, with its errors against epsilon."""
    loss = _LOSSES.get(plan.family, "error")
    chart = range_chart(
        [each[1:] for each in plan.by_epsilon],
        mark=(plan.epsilon, plan.asked.typical),
        limit=(plan.useless, "above this line: no use"),
        x_axis="epsilon",
        y_axis=f"{loss} that privacy adds{f', {plan.unit}' if plan.unit else ''}",
    )
    title = f"Plan: a private fit of {plan.target}"
    body = fragment(plan, f"<figure>{chart}</figure>")
    foot = '<p class="soft">Made by fastmix from public sizes and bounds.</p>'
    return html.page(title, f"<h1>{html.escape(title)}</h1>{body}{foot}")
