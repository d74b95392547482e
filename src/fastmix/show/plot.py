"""Plots with matplotlib of public and released values: ``pip install "fastmix[plot]"``."""

import math
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from fastmix._validation import value_error
from fastmix.accounting import BudgetAccountant, PrivacySpent
from fastmix.accounting.account import joint_delta
from fastmix.accounting.charge import total_of
from fastmix.show.html import number
from fastmix.show.svg import large_ones

__all__ = [
    "budget",
    "coefficients",
    "plot_histograms",
    "privacy",
    "privacy_curve",
]


def privacy_curve(spent: PrivacySpent) -> list[tuple[float, float]]:
    """Return points (delta, epsilon) of the joint account, about four decades around its delta."""
    if not (spent.delta > 0.0 and math.isfinite(spent.epsilon)):
        return []

    # Delta at an epsilon takes one evaluation of the account, epsilon at a delta a search.
    def delta(share: float) -> float:
        return joint_delta(spent.events, share * spent.epsilon)

    growth = math.log(max(delta(0.97) / spent.delta, 1.01))
    low = max(0.35, 1.0 - 0.03 * math.log(1e4) / growth)
    shares = (1.3, 1.2, 1.1, *np.linspace(1.0, low, 5).tolist())
    points = [(delta(share), share * spent.epsilon) for share in shares]
    return [point for point in points if point[0] >= 1e-4 * spent.delta]


def privacy(account: Any, *, ax: Any = None) -> Any:
    """Draw epsilon against delta of a certificate or an account: every point holds at once.

    Draws on ``ax`` or on a new figure, and returns the axes.
    """
    spent = account if isinstance(account, PrivacySpent) else account.spent
    points = privacy_curve(spent)
    if not points:
        raise value_error("account", "hold a release with noise", account)
    ax = _axes(ax)
    ax.plot(*zip(*points, strict=True), color="C0")
    ax.plot([spent.delta], [spent.epsilon], "o", color="C1", label="certified")
    ax.set(xscale="log", xlabel="delta", ylabel="epsilon", ylim=(0, None))
    ax.legend()
    ax.grid(alpha=0.3)
    return ax


def coefficients(model: Any, *, level: float = 0.95, largest: int = 30, ax: Any = None) -> Any:
    """Draw the largest effects of a fitted model, with intervals if it has ``inference=True``.

    They are those of `summary`: levels against the most frequent one, without effects that noise
    hides, the largest across its public range first. ``level`` is that of the intervals. Draws on
    ``ax`` or on a new figure, and returns the axes.
    """
    made = model.summary(level)
    lines = [line for line in made.shown if line.over_range is not None or not made.has_ranges]
    lines = [line for line in lines if not line.is_intercept][:largest]
    at = np.arange(len(lines))
    ax = _axes(ax)
    scale = np.array([line.width for line in lines])
    values = scale * [line.coef for line in lines]
    reach = None
    if made.has_errors:
        reach = np.abs(scale * [line.coef - (line.low or 0.0) for line in lines])
    ax.errorbar(values, at, xerr=reach, fmt="o", color="C0", capsize=3)
    ax.axvline(0.0, color="0.6", linewidth=1)
    ax.set_yticks(at, [line.name for line in lines])
    ax.margins(0.08)
    ax.invert_yaxis()
    if beyond := large_ones(values):  # an arrow with the value, so that the others can be seen
        rest = values[beyond:], 0.0 if reach is None else reach[beyond:]
        low, high = min(0.0, *(rest[0] - rest[1])), max(0.0, *(rest[0] + rest[1]))
        ax.set_xlim(low - 0.1 * (high - low), high + 0.1 * (high - low))
        for y, value in zip(at, values[:beyond], strict=False):
            side = 0.98 if value > 0.0 else 0.02
            arrow = f"{number(value, 3)} →" if value > 0.0 else f"← {number(value, 3)}"
            place = {"ha": "right" if value > 0.0 else "left", "va": "center"}
            ax.text(side, y, arrow, transform=ax.get_yaxis_transform(), **place)
    what = "effect across the public range" if made.has_ranges else "coefficient"
    ax.set_xlabel(what if reach is None else f"{what}, {100 * level:g}% interval")
    return ax


def budget(accountant: BudgetAccountant, *, ax: Any = None) -> Any:
    """Draw the epsilon that a budget has spent after each of its charges.

    Draws on ``ax`` or on a new figure, and returns the axes.
    """
    ax = _axes(ax)
    charges = accountant.charges
    totals = [total_of(accountant._filter, charges[:count]) for count in range(len(charges) + 1)]
    ax.plot(range(len(totals)), totals, "o-", color="C0", label="spent together")
    sums = np.cumsum([0.0, *(charge.spent.epsilon for charge in charges)])
    ax.plot(range(len(sums)), sums, "o:", color="0.6", label="plain sum")
    if np.isfinite(accountant.epsilon):
        ax.axhline(accountant.epsilon, color="C3", ls="--", label="budget")
    ax.set(xlabel="fits", ylabel=f"epsilon at delta = {accountant.delta:g}", ylim=(0, None))
    ax.xaxis.get_major_locator().set_params(integer=True)
    ax.legend()
    ax.grid(alpha=0.3)
    return ax


def plot_histograms(results: Sequence[Any], path: str | Path) -> None:
    """Draw the scores with and without the record, one panel per audit."""
    columns = min(3, len(results))
    rows = math.ceil(len(results) / columns)
    size = (4.6 * columns, 3.1 * rows)
    figure = _matplotlib("figure").Figure(figsize=size, layout="constrained")
    axes = np.ravel(figure.subplots(rows, columns, squeeze=False))
    for axis, result in zip(axes, results, strict=False):
        with_, without, edges = result.histogram()
        for counts, label, colour in (
            (without, "record absent", "tab:blue"),
            (with_, "record present", "tab:orange"),
        ):
            shares = counts / len(result.present)
            axis.stairs(shares, edges, fill=True, alpha=0.45, color=colour, label=label)
        axis.axvline(result.event.threshold, color="black", linewidth=1.0, linestyle="--")
        axis.set_yscale("log")
        axis.set_title(f"{result.name}\n{result.lower:.2f} of {result.epsilon:.2f}", fontsize=10)
        axis.tick_params(labelsize=8)
    for axis in axes[len(results) :]:
        axis.set_axis_off()
    axes[0].legend(fontsize=8, loc="lower center")
    figure.supxlabel("score of a release", fontsize=10)
    figure.supylabel("share of releases", fontsize=10)
    figure.savefig(path, dpi=80)


def _axes(ax: Any) -> Any:
    if ax is not None:
        return ax
    return _matplotlib("pyplot").subplots(figsize=(6.4, 3.8), constrained_layout=True)[1]


def _matplotlib(part: str) -> Any:
    try:
        return import_module(f"matplotlib.{part}")
    except ImportError:
        raise ImportError('plots need matplotlib: pip install "fastmix[plot]".') from None
