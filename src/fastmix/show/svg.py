"""Charts as inline SVG: intervals on a line, a curve, and calibration."""

import math
from collections.abc import Sequence

from fastmix.show.html import Interval, escape


def interval_chart(intervals: Sequence[Interval], *, axis: str, reach: float = 1.96) -> str:
    """Return dots with error bars, one line each; the thick part of a bar is privacy noise."""
    width, left, row, top = 720.0, 190.0, 26.0, 8.0
    height = top + row * len(intervals) + 44.0
    ends = [0.0]
    for i in intervals:
        far = reach * i.std if i.std is not None and math.isfinite(i.std) else 0.0
        ends += [i.value - far, i.value + far]
    ticks = _ticks(min(ends), max(ends))
    low, high = min(ends[0], ticks[0], *ends), max(ticks[-1], *ends)

    def x(value: float) -> float:
        return left + (width - left - 34.0) * (min(max(value, low), high) - low) / (high - low)

    bottom = top + row * len(intervals)
    parts = [
        f'<line x1="{x(t):.1f}" x2="{x(t):.1f}" y1="{top}" y2="{bottom}" stroke="var(--line)" '
        f'stroke-width="{2 if t == 0 else 1}"/>' + soft_text(x(t), bottom + 17, f"{t:,g}")
        for t in ticks
    ]
    for n, i in enumerate(intervals):
        y = top + row * (n + 0.5)
        name = escape(i.name if len(i.name) <= 24 else i.name[:23] + "…")
        parts.append(f'<text x="{left - 12}" y="{y + 4.5:.1f}" text-anchor="end">{name}</text>')
        for std, thick in ((i.std, 2.0), (i.noise, 6.0)):
            if std is not None and math.isfinite(std):
                a, b = x(i.value - reach * std), x(i.value + reach * std)
                parts.append(
                    f'<line x1="{a:.1f}" x2="{b:.1f}" y1="{y}" y2="{y}" stroke="var(--blue)" '
                    f'stroke-width="{thick}" stroke-opacity="{0.35 if thick > 2 else 1}"/>'
                )
        parts.append(f'<circle cx="{x(i.value):.1f}" cy="{y}" r="4.5" fill="var(--blue)"/>')
    parts.append(soft_text((left + width) / 2, height - 6, axis))
    return svg(width, height, axis, parts)


def curve_chart(
    points: Sequence[tuple[float, float]], *, mark: tuple[float, float], x_axis: str, y_axis: str
) -> str:
    """Return a curve over a logarithmic axis with one marked point."""
    width, height, left, right, top, base = 720.0, 300.0, 62.0, 18.0, 26.0, 252.0
    curve = [(math.log10(delta), epsilon) for delta, epsilon in points]
    spot = (math.log10(mark[0]), mark[1])
    xs = [a for a, _ in (*curve, spot)]
    ticks = _ticks(0.0, max(b for _, b in (*curve, spot)))
    x0, x1, y1 = min(xs), max(max(xs), min(xs) + 1.0), ticks[-1]

    def x(value: float) -> float:
        return left + (width - left - right) * (value - x0) / (x1 - x0)

    def y(value: float) -> float:
        return base - (base - top) * value / y1

    parts = [
        f'<line x1="{left}" x2="{width - right}" y1="{y(t):.1f}" y2="{y(t):.1f}" '
        'stroke="var(--line)"/>' + soft_text(left - 8, y(t) + 4.5, f"{t:g}", "end")
        for t in ticks
    ]
    step = max(1, math.ceil((x1 - x0) / 8.0))
    powers = range(math.ceil(x0), math.floor(x1) + 1, step)
    line = " ".join(f"{x(a):.1f},{y(b):.1f}" for a, b in curve)
    at_x, at_y = x(spot[0]), y(spot[1])
    parts += [
        *(soft_text(x(power), base + 20, f"1e{power}") for power in powers),
        f'<polyline points="{line}" fill="none" stroke="var(--blue)" stroke-width="2.5"/>',
        f'<circle cx="{at_x:.1f}" cy="{at_y:.1f}" r="5.5" fill="var(--amber)"/>',
        f'<text x="{min(at_x + 10, width - 190):.1f}" y="{max(at_y - 9, 14):.1f}">'
        f"({mark[1]:.3g}, {mark[0]:.2g}) is certified</text>",
        soft_text((left + width) / 2, height - 8, x_axis),
        soft_text(left - 8, 14, y_axis, "end"),
    ]
    return svg(width, height, f"{y_axis} against {x_axis}", parts)


def calibration_chart(points: Sequence[tuple[float, float, float]], *, reach: float = 1.96) -> str:
    """Return observed shares with error bars over predicted probabilities, and the diagonal."""
    width, height, left, top, side = 420.0, 380.0, 62.0, 16.0, 310.0

    def x(value: float) -> float:
        return left + side * min(max(value, 0.0), 1.0)

    def y(value: float) -> float:
        return top + side * (1.0 - min(max(value, 0.0), 1.0))

    parts = []
    for t in (0.0, 0.25, 0.5, 0.75, 1.0):
        parts += [
            f'<line x1="{left}" x2="{left + side}" y1="{y(t):.1f}" y2="{y(t):.1f}" '
            'stroke="var(--line)"/>' + soft_text(left - 8, y(t) + 4.5, f"{t:g}", "end"),
            soft_text(x(t), top + side + 18, f"{t:g}"),
        ]
    parts.append(
        f'<line x1="{x(0):.1f}" y1="{y(0):.1f}" x2="{x(1):.1f}" y2="{y(1):.1f}" '
        'stroke="var(--amber)" stroke-dasharray="5 4"/>'
    )
    for predicted, observed, std in points:
        a, b = y(observed - reach * std), y(observed + reach * std)
        parts += [
            f'<line x1="{x(predicted):.1f}" x2="{x(predicted):.1f}" y1="{a:.1f}" y2="{b:.1f}" '
            'stroke="var(--blue)" stroke-width="2"/>',
            f'<circle cx="{x(predicted):.1f}" cy="{y(observed):.1f}" r="4.5" fill="var(--blue)"/>',
        ]
    parts.append(soft_text(left + side / 2, height - 8, "predicted probability"))
    return svg(width, height, "observed share against predicted probability", parts)


def soft_text(x: float, y: float, text: str, anchor: str = "middle") -> str:
    """Return a label in the soft colour."""
    place = f'x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"'
    return f'<text class="soft" {place}>{escape(text)}</text>'


def svg(width: float, height: float, label: str, parts: Sequence[str]) -> str:
    """Return a drawing that fills the width of its page."""
    return (
        f'<svg viewBox="0 0 {width:.0f} {height:.0f}" role="img" aria-label="{escape(label)}">'
        f"{''.join(parts)}</svg>"
    )


def _ticks(low: float, high: float, about: int = 6) -> list[float]:
    """Return round numbers that span a range."""
    if not high > low:
        high = low + 1.0
    raw = (high - low) / about
    unit = 10.0 ** math.floor(math.log10(raw))
    step = unit * next(m for m in (1, 2, 5, 10) if m * unit >= raw)
    first, last = math.floor(low / step), math.ceil(high / step)
    return [round(n * step, 12) for n in range(first, last + 1)]
