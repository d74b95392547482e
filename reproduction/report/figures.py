"""Figures from results, one per panel, so that a phone shows them one below the other."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import matplotlib

from reproduction.experiments.figure1 import CURVES
from reproduction.experiments.methods import label, order
from reproduction.experiments.problems import TITLES
from reproduction.report.conclusions import converged
from reproduction.report.panels import INK, SETTINGS, panel, run_ticks, svg
from reproduction.report.summary import Curve, Summary
from reproduction.report.theory_figures import draw_theory
from reproduction.style import COLOURS

__all__ = ["draw_figures", "inline_svg", "save_figures"]

#: How far below all private methods the line of FastIHS is still drawn.
_FAR = 30.0
#: Of FastIHM of the paper, from few to many rows of the sketch.
_SHADES = ("#edb98f", "#e6a374", COLOURS["FastIHM, paper"], "#cb7a42", "#a5561f")
_STYLES: dict[str, dict[str, Any]] = {
    "ihm_paper": {"color": COLOURS["IHM, paper"], "marker": "s"},
    "fast_ihs": {"color": INK, "linestyle": "--"},
    "default": {"color": COLOURS["default"], "marker": "o"},
    "upadhyay": {"color": INK},
    "fast_mix_unbounded": {"color": "#9a5fc0", "marker": "p"},
    "fast_mix": {"color": "#3c8bd9", "marker": "o"},
    "gauss_mix": {"color": "#e0531f", "marker": "*"},
    "fast_mix_sharp": {"color": "#c2509a", "marker": "D", "linestyle": ":"},
}


def draw_figures(summary: Summary) -> dict[str, str]:
    """Draw every figure that the results allow.

    Parameters
    ----------
    summary : Summary
        Results.

    Returns
    -------
    dict
        Name of the figure to its SVG, in a colour that `inline_svg` or `save_figures` settles.
    """
    drawn = {}
    with matplotlib.rc_context(SETTINGS):
        for n, curves in sorted(summary.figure1.items()):
            drawn[f"figure1-{n}"] = _figure1(n, curves, summary.origins.get(("figure1", ""), ""))
        for experiment, sets in summary.risk.items():
            for name, methods in sets.items():
                size = summary.sizes[experiment][name]
                origin = _origin(summary, experiment, name, methods)
                # A baseline that has not converged is no line to hold others against.
                kept = converged(summary, experiment, name)
                shown = {m: c for m, c in methods.items() if kept or m[0] != "fast_ihs"}
                drawn[f"{experiment}-{name}"] = _risk(name, size, shown, origin)
        for name, methods in summary.risk["airline"].items():
            if name in summary.seconds["airline"]:
                times = summary.seconds["airline"][name]
                origin = _origin(summary, "airline", name, methods)
                drawn[f"tradeoff-{name}"] = _tradeoff(name, methods, times, origin)
        drawn |= draw_theory(summary)
    return drawn


def _origin(
    summary: Summary, experiment: str, name: str, methods: dict[tuple[str, int | None], Curve]
) -> str:
    """Return commit, day and trials of a figure, from the record of its runs."""
    counts = {mean.trials for curve in methods.values() for mean in curve.values()}
    trials = " to ".join(str(count) for count in sorted({min(counts), max(counts)}))
    return f"{summary.origins.get((experiment, name), '')}; {trials} trials"


def save_figures(drawn: dict[str, str], folder: Path) -> None:
    """Write figures as SVG files with black text on white.

    Parameters
    ----------
    drawn : dict
        Figures of `draw_figures`.
    folder : Path
        Where they go.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for name, drawing in drawn.items():
        white = '<rect width="100%" height="100%" fill="#ffffff"/>'
        text = re.sub(r"(<svg\b[^>]*>)", rf"\1{white}", drawing, count=1).replace(INK, "#111111")
        (folder / f"{name}.svg").write_text(text)


def inline_svg(name: str, svg: str, title: str) -> str:
    """Return a figure as an element of an HTML page: its text has the colour of the page's.

    Parameters
    ----------
    name : str
        Name of the figure; identifiers inside are made its own.
    svg : str
        Figure of `draw_figures`.
    title : str
        What it shows, for those who cannot see it.

    Returns
    -------
    str
        The element.
    """
    body = svg[svg.index("<svg") :].replace(INK, "currentColor")
    for pattern in (r'\bid="', r'\bhref="#', r"\burl\(#"):
        body = re.sub(pattern, lambda found: f"{found.group(0)}{name}-", body)
    body = re.sub(r"<metadata>.*?</metadata>", "", body, flags=re.DOTALL)
    root = re.search(r"<svg\b[^>]*>", body)
    assert root is not None
    box = re.search(r'viewBox="[^"]*"', root.group(0))
    assert box is not None
    opening = (
        f'<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" '
        f'{box.group(0)} role="img" aria-label="{title}">'
    )
    return body.replace(root.group(0), opening, 1)


def _figure1(n: int, curves: dict[str, dict[float, float]], origin: str) -> str:
    figure, axis = panel(f"n = {n:,} (d, k and δ are our choices)", "noise σ", origin=origin)
    for curve, points in curves.items():
        at = sorted(points)
        values = [points[e] or float("nan") for e in at]
        axis.plot(at, values, label=CURVES[curve], **_STYLES[curve])
    run_ticks(axis, sorted(next(iter(curves.values()))))
    return svg(figure, f"figure1-{n}")


def _style(method: str, ratio: int | None, ratios: list[int]) -> dict[str, Any]:
    if ratio is None:
        return _STYLES[method]
    at = ratios.index(ratio)
    spread = _SHADES[:: 2 if len(ratios) <= 3 else 1]
    return {"color": spread[at % len(spread)], "marker": "+x^v2"[at % 5], "ms": 7}


def _risk(
    name: str, size: tuple[int, int], methods: dict[tuple[str, int | None], Curve], origin: str
) -> str:
    title = f"{TITLES[name]} (n = {size[0]:,}, d = {size[1]})"
    figure, axis = panel(title, "excess empirical risk", origin=origin)
    ratios = sorted({ratio for _, ratio in methods if ratio is not None})
    private = (m.value for curve in methods.values() for e, m in curve.items() if e is not None)
    lowest = min(private, default=0.0)
    epsilons: list[float] = []
    for method, ratio in sorted(methods, key=order):
        curve = methods[method, ratio]
        style = _style(method, ratio, ratios)
        if None in curve:
            line = curve[None].value
            if line >= lowest / _FAR:
                axis.axhline(line, label=label(method, ratio), **style)
            else:  # named only: drawn, it would squeeze the others together
                axis.plot([], label=f"{label(method, ratio)}: {line:.0e}", **style)
            continue
        at = [e for e in curve if e is not None]
        epsilons = sorted({*epsilons, *at})
        means = [curve[e] for e in at]
        axis.plot(at, [m.value for m in means], label=label(method, ratio), **style)
        if any(m.trials < 2 for m in means):
            continue
        low = [max(m.low, m.value / 100.0) for m in means]
        axis.fill_between(at, low, [m.high for m in means], color=style["color"], alpha=0.2, lw=0)
    run_ticks(axis, epsilons)
    return svg(figure, f"risk-{name}")


def _tradeoff(
    name: str,
    methods: dict[tuple[str, int | None], Curve],
    seconds: dict[tuple[str, int | None], float],
    origin: str,
) -> str:
    title = f"{TITLES[name]}: accuracy against runtime, ε = 1"
    figure, axis = panel(title, "excess empirical risk", "seconds", origin)
    ratios = sorted({ratio for _, ratio in methods if ratio is not None})
    for method, ratio in sorted(methods, key=order):
        curve = methods[method, ratio]
        point = curve.get(1.0)
        if point is None or (method, ratio) not in seconds:
            continue
        style = {**_style(method, ratio, ratios), "linestyle": "", "ms": 10}
        axis.plot([seconds[method, ratio]], [point.value], label=label(method, ratio), **style)
    return svg(figure, f"tradeoff-{name}")
