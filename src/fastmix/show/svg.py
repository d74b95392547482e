"""Charts as inline SVG and HTML: places are percentages, so that text keeps its size."""

import math
from collections.abc import Callable, Iterable, Sequence

import numpy as np
from scipy.special import ndtri

from fastmix.show.html import Interval, breakable, escape, number

#: Height of the drawing of one interval, in pixels.
_ROW = 26
#: Values have an axis of their own if they are more than this many times as large as all others,
#: and if they are at most so many.
_GAP, _MOST_LARGE = 5.0, 3
#: Half the width of a 95% interval, in standard errors.
_REACH = 1.96
#: Least distance of two labels, in percent.
_APART = 8.0


def clear(interval: Interval, reach: float = _REACH) -> bool:
    """Whether an interval excludes zero."""
    return interval.std is not None and bool(abs(interval.value) > reach * interval.std)


def large_ones(values: Sequence[float]) -> int:
    """Return how many of the first values, by falling size, would squeeze the others on an axis."""
    for count in range(1, min(_MOST_LARGE, len(values) - 2) + 1):
        if abs(values[count - 1]) > _GAP * abs(values[count]):
            return count
    return 0


def chart_span(intervals: Sequence[Interval]) -> tuple[float, float]:
    """Return the ends of an axis that shows values that stand out from noise.

    Values stand out if they would among as many that are zero. Without such values the axis shows
    intervals of middle length; what is longer ends in an arrow.
    """
    ends = [0.0]
    known = [i for i in intervals if i.std is not None and math.isfinite(i.std)]
    level = max(_REACH, float(-ndtri(0.025 / max(len(known), 1))))
    for i in intervals:
        if i.std is None:
            ends.append(i.value)
        elif clear(i, level):
            ends += [i.value - _REACH * i.std, i.value + _REACH * i.std]
    if len(ends) == 1 and known:
        middle = 2.0 * _REACH * float(np.median([i.std for i in known if i.std is not None]))
        ends += [-middle, middle]
    return min(ends), max(ends)


def interval_chart(
    intervals: Sequence[Interval], *, axis: str, span: tuple[float, float] | None = None
) -> str:
    """Return dots with error bars, each with the two parts of its error.

    Above the line is privacy noise, below it sampling error. What is longer than the axis, which
    has the ends ``span``, ends in an arrow.
    """
    low, high = chart_span(intervals) if span is None else span
    ticks = _ticks(low, high, 4)
    low, high = min(low, ticks[0]), max(high, ticks[-1])

    def x(value: float) -> float:
        return 100.0 * (min(max(value, low), high) - low) / (high - low)

    grid = "".join(
        f'<line x1="{x(t):.2f}%" x2="{x(t):.2f}%" y1="0" y2="{_ROW}" stroke="var(--line)" '
        f'stroke-width="{2 if t == 0 else 1}"/>'
        for t in ticks
    )
    rows = []
    for i in intervals:
        shown = number(i.value, 3)
        if i.std is not None and math.isfinite(i.std):
            shown = _with_error(i.value, _REACH * i.std)
        drawn = grid + "".join(_marks(i, x, (low, high)))
        rows.append(
            f'<div class="effect"><span class="name">{breakable(i.name)}</span>'
            f'<svg height="{_ROW}" aria-hidden="true">{drawn}</svg>'
            f'<span class="value">{shown}{_shares(i)}</span></div>'
        )
    named = zip(ticks, tick_labels(ticks), strict=True)
    labels = "".join(soft_text(f"{x(t):.2f}%", 14, label) for t, label in named)
    return (
        f'<div class="effects" role="img" aria-label="{escape(axis)}">{"".join(rows)}'
        f'<div class="effect axis"><span class="name"></span><svg height="18" aria-hidden="true">'
        f'{labels}</svg><span class="value"></span></div><p class="soft">{escape(axis)}</p></div>'
    )


def _with_error(value: float, error: float) -> str:
    """Return a value with its error, without digits before the point that the error hides."""
    if error >= 100.0:
        hidden = 1 - math.floor(math.log10(error))
        value, error = round(value, hidden), round(error, hidden)
    return f"{number(value, 3)} ± {number(error, 2)}"


def _shares(i: Interval) -> str:
    """Return a bar with the shares of noise and sampling in a squared standard error."""
    if i.noise is None or i.std is None or not 0.0 < i.std < math.inf:
        return ""
    share = 100.0 * min(i.noise / i.std, 1.0) ** 2
    return (
        f'<svg height="8"><title>privacy noise makes {share:.0f}% of the error</title>'
        f'<rect class="noise" width="{share:.1f}%" height="8"/>'
        f'<rect class="sampling" x="{share:.1f}%" width="{100.0 - share:.1f}%" height="8"/></svg>'
    )


def _marks(i: Interval, x: Callable[[float], float], ends: tuple[float, float]) -> Iterable[str]:
    """Return the drawing of one interval: its two parts, the whole, and the value."""
    middle = _ROW / 2
    if i.std is not None and math.isfinite(i.std):
        noise = min(i.noise or 0.0, i.std)
        parts = (noise, "noise", middle - 7), (math.sqrt(i.std**2 - noise**2), "sampling", middle)
        for std, name, y in parts if i.noise is not None else ():
            a, b = x(i.value - _REACH * std), x(i.value + _REACH * std)
            yield f'<rect class="{name}" x="{a:.2f}%" width="{b - a:.2f}%" y="{y}" height="7"/>'
        low, high = i.value - _REACH * i.std, i.value + _REACH * i.std
        a, b = x(low), x(high)
        yield (
            f'<line x1="{a:.2f}%" x2="{b:.2f}%" y1="{middle}" y2="{middle}" '
            'stroke="var(--ink)" stroke-width="1.5"/>'
        )
        if low < ends[0]:
            yield f'<path d="M0 {middle} l7 -5 v10 z" fill="var(--ink)"/>'
        if high > ends[1]:
            yield (
                f'<svg x="100%" overflow="visible"><path d="M0 {middle} l-7 -5 v10 z" '
                'fill="var(--ink)"/></svg>'
            )
    if ends[0] <= i.value <= ends[1]:
        yield f'<circle cx="{x(i.value):.2f}%" cy="{middle}" r="4" fill="var(--ink)"/>'


def curve_chart(
    points: Sequence[tuple[float, float]], *, mark: tuple[float, float], x_axis: str, y_axis: str
) -> str:
    """Return a curve over a logarithmic axis with one marked point."""
    curve = [(math.log10(delta), epsilon) for delta, epsilon in points]
    spot = (math.log10(mark[0]), mark[1])
    xs = [a for a, _ in (*curve, spot)]
    ticks = _ticks(0.0, max(b for _, b in (*curve, spot)), 4)
    x0, x1, y1 = min(xs), max(max(xs), min(xs) + 1.0), ticks[-1]

    def x(value: float) -> float:
        return 100.0 * (value - x0) / (x1 - x0)

    def y(value: float) -> float:
        return 100.0 - 100.0 * value / y1

    step = max(1, math.ceil((x1 - x0) / 5.0))
    powers = range(math.ceil(x0), math.floor(x1) + 1, step)
    at_x, at_y = x(spot[0]), y(spot[1])
    # The curve falls, so that there is room above it at the right and below it at the left.
    anchor, above = ("start", -10) if at_x < 60.0 else ("end", 20)
    parts = [
        *(level_line(y(t), label) for t, label in zip(ticks, tick_labels(ticks), strict=True)),
        *(soft_text(f"{x(power):.2f}%", "100%", f"1e{power}", dy=20) for power in powers),
        lines([(x(a), y(b)) for a, b in curve]),
        dot(at_x, at_y),
        f'<text x="{at_x:.2f}%" y="{at_y:.2f}%" dy="{above}" '
        f'text-anchor="{anchor}">({mark[1]:.3g}, {mark[0]:.2g}) is certified</text>',
    ]
    return frame(parts, x_axis=x_axis, y_axis=y_axis)


def range_chart(
    points: Sequence[tuple[float, float, float, float]],
    *,
    mark: tuple[float, float],
    limit: tuple[float, str],
    x_axis: str,
    y_axis: str,
) -> str:
    """Return x, low, typical and high values on logarithmic axes, with one marked point.

    ``limit`` is a value, drawn as a line across, and its label.
    """
    xs = [math.log10(each[0]) for each in points]
    ends = [math.log10(value) for _, low, _, high in points for value in (low, high, limit[0])]
    x0, x1 = xs[0], max(xs[-1], xs[0] + 1e-9)
    y0, y1 = min(ends) - 0.1, max(ends) + 0.1

    def x(value: float) -> float:
        return 100.0 * (math.log10(value) - x0) / (x1 - x0)

    def y(value: float) -> float:
        return 100.0 - 100.0 * (math.log10(value) - y0) / (y1 - y0)

    step = max(1, math.ceil((y1 - y0) / 7.0))
    powers = [10.0**power for power in range(math.ceil(y0), math.floor(y1) + 1, step)]
    spaced: list[float] = []  # labels with room beside each other
    for each in points:
        if not spaced or x(each[0]) - x(spaced[-1]) >= _APART:
            spaced.append(each[0])
    places = [100.0 + _APART]
    for value in points[-1][1:]:
        places.append(min(y(value), places[-1] - _APART))
    area = [(x(e), y(high)) for e, _, _, high in points]
    area += [(x(e), y(low)) for e, low, _, _ in reversed(points)]
    at_x, at_y, across = x(mark[0]), y(mark[1]), f"{y(limit[0]):.2f}%"
    shown = number(float(f"{mark[1]:.2g}"), 2)
    parts = [
        *(level_line(y(p), number(p, 1)) for p in powers),
        *(soft_text(f"{x(e):.2f}%", "100%", f"{e:g}", dy=20) for e in spaced),
        lines(area, "polygon"),
        lines([(x(e), y(typical)) for e, _, typical, _ in points]),
        f'<line x1="0" x2="100%" y1="{across}" y2="{across}" stroke="var(--red)" '
        'stroke-dasharray="5 4"/>',
        soft_text("0", across, limit[1], "start", dx=6, dy=-6),
        *(
            soft_text("100%", f"{place:.2f}%", name, "start", dx=6, dy=4)
            for place, name in zip(places[1:], ("easy data", "typical", "hard data"), strict=True)
        ),
        dot(at_x, at_y),
        f'<text x="{at_x:.2f}%" y="{at_y:.2f}%" dx="8" dy="-9">{escape(shown)}</text>',
    ]
    return frame(parts, x_axis=x_axis, y_axis=y_axis, wide=True)


def calibration_chart(points: Sequence[tuple[float, float, float]]) -> str:
    """Return observed shares with error bars over predicted probabilities, and the diagonal."""

    def place(value: float) -> float:
        return 100.0 * min(max(value, 0.0), 1.0)

    shares = (0.0, 0.25, 0.5, 0.75, 1.0)
    parts = [
        *(level_line(100.0 - place(t), f"{t:g}") for t in shares),
        *(soft_text(f"{place(t):.2f}%", "100%", f"{t:g}", dy=20) for t in shares),
        '<line x1="0" y1="100%" x2="100%" y2="0" stroke="var(--amber)" stroke-dasharray="5 4"/>',
    ]
    for predicted, observed, std in points:
        x, low, high = map(place, (predicted, observed - _REACH * std, observed + _REACH * std))
        parts += [
            f'<line x1="{x:.2f}%" x2="{x:.2f}%" y1="{100 - low:.2f}%" y2="{100 - high:.2f}%" '
            'stroke="var(--blue)" stroke-width="2"/>',
            f'<circle cx="{x:.2f}%" cy="{100 - place(observed):.2f}%" r="4.5" fill="var(--blue)"/>',
        ]
    return frame(parts, x_axis="predicted probability", y_axis="observed share")


def frame(parts: Sequence[str], *, x_axis: str, y_axis: str, wide: bool = False) -> str:
    """Return a drawing with names of its axes; ``wide`` leaves room for labels at its right."""
    label = escape(f"{y_axis} against {x_axis}")
    kind = "plot labelled" if wide else "plot"
    return (
        f'<div class="{kind}"><p class="soft">{escape(y_axis)}</p><svg height="230" role="img" '
        f'aria-label="{label}">{"".join(parts)}</svg><p class="soft">{escape(x_axis)}</p></div>'
    )


def level_line(y: float, label: str) -> str:
    """Return a line across at a height, with its label."""
    line = f'<line x1="0" x2="100%" y1="{y:.2f}%" y2="{y:.2f}%" stroke="var(--line)"/>'
    return line + soft_text("0", f"{y:.2f}%", label, "end", dx=-8, dy=4)


def lines(points: Sequence[tuple[float, float]], shape: str = "polyline") -> str:
    """Return a curve through points, or the area inside them (``shape="polygon"``)."""
    joined = " ".join(f"{x:.2f},{y:.2f}" for x, y in points)
    look = 'fill="none" stroke="var(--blue)" stroke-width="2.5"'
    if shape == "polygon":
        look = 'fill="var(--blue)" opacity="0.15"'
    return (
        '<svg viewBox="0 0 100 100" preserveAspectRatio="none">'
        f'<{shape} points="{joined}" {look} vector-effect="non-scaling-stroke"/></svg>'
    )


def dot(x: float, y: float) -> str:
    """Return a marked point."""
    return f'<circle cx="{x:.2f}%" cy="{y:.2f}%" r="5.5" fill="var(--amber)"/>'


def soft_text(
    x: str, y: float | str, text: str, anchor: str = "middle", *, dx: float = 0, dy: float = 0
) -> str:
    """Return a label in the soft colour."""
    place = f'x="{x}" y="{y}" dx="{dx}" dy="{dy}" text-anchor="{anchor}"'
    return f'<text class="soft" {place}>{escape(text)}</text>'


def _ticks(low: float, high: float, about: int = 6) -> list[float]:
    """Return round numbers that span a range."""
    if not high > low:
        high = low + 1.0
    raw = (high - low) / about
    unit = 10.0 ** math.floor(math.log10(raw))
    step = unit * next(m for m in (1, 2, 5, 10) if m * unit >= raw)
    first, last = math.floor(low / step), math.ceil(high / step)
    return [round(n * step, 12) for n in range(first, last + 1)]


def tick_labels(ticks: Sequence[float]) -> list[str]:
    """Return labels of one form for the ticks of an axis: all plain, in millions, or powers."""
    largest, step = max(map(abs, ticks)), ticks[1] - ticks[0]
    if 1e6 <= largest < 1e9:
        return [f"{t / 1e6:g}M" if t else "0" for t in ticks]
    if largest < 1e6 and step >= 0.99e-4:
        places = max(0, -math.floor(math.log10(step * 1.01)))
        return [f"{t:,.{places}f}" for t in ticks]
    digits = max(0, math.floor(math.log10(largest)) - math.floor(math.log10(step * 1.01)))
    return [f"{t:.{digits}e}" if t else "0" for t in ticks]
