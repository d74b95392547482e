"""Figures of the theorems, of the lemmas and of our own changes."""

from __future__ import annotations

import math

from reproduction.experiments.hessians import VARIANTS
from reproduction.experiments.problems import TITLES
from reproduction.report.panels import INK, panel, round_ticks, run_ticks, svg
from reproduction.report.summary import Summary
from reproduction.report.theory import bounds, crossover_seconds, fit_orders
from reproduction.style import COLOURS

__all__ = ["draw_theory"]

#: One colour per kind of sketch, and per variant of the private Hessian.
_COLOURS = ("#b3450b", "#0b5fa5", "#1b7f3b", "#7b52ab", "#9c8900", "#00838f")


def draw_theory(summary: Summary) -> dict[str, str]:
    """Draw the figures that belong to `reproduction.report.theory`.

    Parameters
    ----------
    summary : Summary
        Results.

    Returns
    -------
    dict
        Name of the figure to its SVG.
    """
    drawn = {}
    for name in dict.fromkeys(row["set"] for row in summary.sketches):
        drawn[f"sketches-{name}"] = _sketches(summary, name)
    for name in summary.risk["figure2"]:
        if bounds(summary, name):
            drawn[f"theorem2-{name}"] = _theorem2(summary, name)
    for name in summary.hessians:
        drawn[f"hessians-{name}"] = _hessians(summary, name)
    for algorithm in (1, 2):
        if fit_orders(summary, algorithm) is not None:
            drawn[f"orders-{algorithm}"] = _orders(summary, algorithm)
    if summary.crossover:
        drawn["crossover-columns"] = _crossover(summary)
    return drawn


def _sketches(summary: Summary, name: str) -> str:
    rows = [row for row in summary.sketches if row["set"] == name]
    draws = len({row["draw"] for row in rows})
    origin = f"{summary.origins['sketches', name]}; {draws} draws"
    title = f"{TITLES[name]}: distortion falls like 1/√k₂"
    figure, axis = panel(title, "largest m̂ / ‖X‖", "rows k₂ of the sketch", origin)
    for colour, kind in zip(_COLOURS, dict.fromkeys(row["sketch"] for row in rows), strict=False):
        largest: dict[float, float] = {}
        for row in rows:
            if row["sketch"] == kind:
                largest[row["k2"]] = max(largest.get(row["k2"], 0.0), row["row"])
        at = sorted(largest)
        axis.plot(at, [largest[k] for k in at], marker="o", color=colour, label=kind)
    k2 = sorted({row["k2"] for row in rows})
    axis.plot(k2, [(math.log(rows[0]["n"]) / k) ** 0.5 for k in k2], ":", color=INK,
              label="√(log n / k₂)")  # fmt: skip
    return svg(figure, f"sketches-{name}")


def _theorem2(summary: Summary, name: str) -> str:
    methods, found = summary.risk["figure2"][name], bounds(summary, name)
    trials = {mean.trials for curve in methods.values() for mean in curve.values()}
    origin = f"{summary.origins['figure2', name]}; {min(trials)} trials or more"
    figure, axis = panel(
        f"{TITLES[name]}: Theorem 2, constants 1", "excess empirical risk", origin=origin
    )
    for colour, ratio in zip(_COLOURS, sorted(found), strict=False):
        at = list(found[ratio])
        measured = [methods["fast_ihm_paper", ratio][e].value for e in at]
        axis.plot(at, measured, marker="o", color=colour, label=f"measured, r = {ratio}")
        bound = [found[ratio][e] for e in at]
        axis.plot(at, bound, "--", color=colour, label=f"bound, r = {ratio}")
    run_ticks(axis, sorted({e for by_epsilon in found.values() for e in by_epsilon}))
    return svg(figure, f"theorem2-{name}")


def _hessians(summary: Summary, name: str) -> str:
    methods = summary.hessians[name]
    ratio = max(r for _, r in methods if r)
    trials = {mean.trials for curve in methods.values() for mean in curve.values()}
    origin = f"{summary.origins['hessians', name]}; {min(trials)} trials or more"
    figure, axis = panel(f"{TITLES[name]}, r = {ratio}", "excess empirical risk", origin=origin)
    for colour, (variant, (words, *_)) in zip(_COLOURS, VARIANTS.items(), strict=False):
        curve = methods[variant, ratio]
        at = [e for e in curve if e is not None]
        axis.plot(at, [curve[e].value for e in at], marker="o", color=colour, label=words)
    run_ticks(axis, at)
    return svg(figure, f"hessians-{name}")


def _orders(summary: Summary, algorithm: int) -> str:
    fit = fit_orders(summary, algorithm)
    assert fit is not None
    title = f"Algorithm {algorithm}: the fitted order explains the time"
    origin = f"{summary.origins['orders', '']}; {len(fit.rows)} sizes"
    figure, axis = panel(title, "fitted seconds", "measured seconds", origin)
    measured, fitted = zip(*fit.rows, strict=True)
    axis.plot(measured, fitted, "o", color=COLOURS["FastIHM, paper"], label="one size")
    ends = [min(measured), max(measured)]
    axis.plot(ends, ends, color=INK, label="equal")
    round_ticks(axis, *ends)
    return svg(figure, f"orders-{algorithm}")


def _crossover(summary: Summary) -> str:
    times = crossover_seconds(summary)
    size = f"n = {int(summary.crossover[0]['n']):,}"
    origin = f"{summary.origins['crossover', '']}; {size}"
    figure, axis = panel("Seconds of one fit, ε = 1", "seconds", "columns d", origin)
    colours = dict(zip(dict.fromkeys(method for method, _ in times), _COLOURS, strict=False))
    for (method, literal), by_d in times.items():
        words = "IHM" if method == "ihm" else f"FastIHM, {method}"
        at, seconds = list(by_d), list(by_d.values())
        if literal:
            axis.plot(at, seconds, "x", color=colours[method], label=f"{words}, as written")
        else:
            axis.plot(at, seconds, marker="o", color=colours[method], label=words)
    run_ticks(axis, sorted({row["d"] for row in summary.crossover}))
    return svg(figure, "crossover")
