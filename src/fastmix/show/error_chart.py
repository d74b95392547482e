"""A chart of expected error against epsilon, as inline SVG."""

import math
from collections.abc import Sequence

from fastmix.show.html import escape, number
from fastmix.show.svg import soft_text, svg


def error_chart(
    points: Sequence[tuple[float, float, float, float]],
    *,
    mark: tuple[float, float],
    limit: float,
    unit: str,
) -> str:
    """Return epsilon, low, typical and high errors on logarithmic axes, with one marked point.

    ``limit`` is the error of a fit that is of no use, drawn as a line across.
    """
    width, height, left, right, top, base = 720.0, 340.0, 74.0, 96.0, 18.0, 286.0
    lows = [math.log10(low) for _, low, _, _ in points]
    highs = [math.log10(high) for *_, high in points]
    xs = [math.log10(epsilon) for epsilon, *_ in points]
    y0, y1 = min(*lows, math.log10(limit)) - 0.1, max(*highs, math.log10(limit)) + 0.1
    x0, x1 = xs[0], max(xs[-1], xs[0] + 1e-9)

    def x(epsilon: float) -> float:
        return left + (width - left - right) * (math.log10(epsilon) - x0) / (x1 - x0)

    def y(error: float) -> float:
        return base - (base - top) * (math.log10(error) - y0) / (y1 - y0)

    step = max(1, math.ceil((y1 - y0) / 7.0))
    powers = [10.0**power for power in range(math.ceil(y0), math.floor(y1) + 1, step)]
    up = " ".join(f"{x(e):.1f},{y(high):.1f}" for e, _, _, high in points)
    down = " ".join(f"{x(e):.1f},{y(low):.1f}" for e, low, _, _ in reversed(points))
    line = " ".join(f"{x(e):.1f},{y(typical):.1f}" for e, _, typical, _ in points)
    end = points[-1]
    at_x, at_y = x(mark[0]), y(mark[1])
    shown = number(float(f"{mark[1]:.2g}"), 2)
    parts = [
        *(
            f'<line x1="{left}" x2="{width - right}" y1="{y(p):.1f}" y2="{y(p):.1f}" '
            'stroke="var(--line)"/>' + soft_text(left - 8, y(p) + 4.5, number(p, 1), "end")
            for p in powers
        ),
        *(soft_text(x(e), base + 20, f"{e:g}") for e, *_ in points),
        f'<polygon points="{up} {down}" fill="var(--blue)" opacity="0.15"/>',
        f'<polyline points="{line}" fill="none" stroke="var(--blue)" stroke-width="2.5"/>',
        f'<line x1="{left}" x2="{width - right}" y1="{y(limit):.1f}" y2="{y(limit):.1f}" '
        'stroke="var(--red)" stroke-dasharray="5 4"/>',
        soft_text(left + 6, y(limit) - 6, "above this line: no use", "start"),
        soft_text(width - right + 6, y(end[3]) + 4.5, "hard data", "start"),
        soft_text(width - right + 6, y(end[2]) + 4.5, "typical data", "start"),
        soft_text(width - right + 6, y(end[1]) + 4.5, "easy data", "start"),
        f'<circle cx="{at_x:.1f}" cy="{at_y:.1f}" r="5.5" fill="var(--amber)"/>',
        f'<text x="{at_x + 8:.1f}" y="{at_y - 9:.1f}">{escape(shown)}</text>',
        soft_text((left + width - right) / 2, height - 10, "epsilon"),
        soft_text(6, 12, f"error that privacy adds{f', {unit}' if unit else ''}", "start"),
    ]
    return svg(width, height, "error that privacy adds, against epsilon", parts)
