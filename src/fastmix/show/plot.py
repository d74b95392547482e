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
from fastmix.show.html import effects

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


def coefficients(
    model: Any, names: Sequence[str] | None = None, *, level: float = 0.95, ax: Any = None
) -> Any:
    """Draw the coefficients of a fitted model, with intervals if it has ``inference=True``.

    ``names`` are those of the features, ``level`` that of the intervals. Draws on ``ax`` or on a
    new figure, and returns the axes.
    """
    ax = _axes(ax)
    columns, coef = np.shape(model.coef_)[-1], np.ravel(model.coef_)
    if names is not None and len(names) != columns:
        raise value_error("names", f"have {columns} entries", list(names))
    at = np.arange(len(coef))
    reach = None
    if hasattr(model, "coef_std_"):
        reach = np.ravel(model.conf_int(level)[..., 1]) - coef
    ax.errorbar(coef, at, xerr=reach, fmt="o", color="C0", capsize=3)
    ax.axvline(0.0, color="0.6", linewidth=1)
    ax.set_yticks(at, [each.name for each in effects(model, names)[: len(at)]])
    ax.margins(0.08)
    ax.invert_yaxis()
    ax.set_xlabel("coefficient" if reach is None else f"coefficient, {100 * level:g}% interval")
    return ax


def budget(accountant: BudgetAccountant, *, ax: Any = None) -> Any:
    """Draw the epsilon that a budget has spent after each of its charges.

    Draws on ``ax`` or on a new figure, and returns the axes.
    """
    ax = _axes(ax)
    charges = accountant.charges
    totals = [accountant._total(charges[:count]) for count in range(len(charges) + 1)]
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
