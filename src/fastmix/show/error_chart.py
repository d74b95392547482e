"""A chart of expected error against epsilon, as inline SVG."""

import math
from collections.abc import Callable, Sequence

from fastmix.show.html import escape, number
from fastmix.show.svg import dot, frame, level_line, lines, soft_text

#: Least distance of two labels, in percent of the height.
_APART = 8.0


def error_chart(
    points: Sequence[tuple[float, float, float, float]],
    *,
    mark: tuple[float, float],
    limit: float,
    unit: str,
    what: str = "error",
) -> str:
    """Return epsilon, low, typical and high errors on logarithmic axes, with one marked point.

    ``limit`` is the error of a fit that is of no use, drawn as a line across.
    """
    lows = [math.log10(low) for _, low, _, _ in points]
    highs = [math.log10(high) for *_, high in points]
    xs = [math.log10(epsilon) for epsilon, *_ in points]
    y0, y1 = min(*lows, math.log10(limit)) - 0.1, max(*highs, math.log10(limit)) + 0.1
    x0, x1 = xs[0], max(xs[-1], xs[0] + 1e-9)

    def x(epsilon: float) -> float:
        return 100.0 * (math.log10(epsilon) - x0) / (x1 - x0)

    def y(error: float) -> float:
        return 100.0 - 100.0 * (math.log10(error) - y0) / (y1 - y0)

    step = max(1, math.ceil((y1 - y0) / 7.0))
    powers = [10.0**power for power in range(math.ceil(y0), math.floor(y1) + 1, step)]
    upper = [(x(e), y(high)) for e, _, _, high in points]
    lower = [(x(e), y(low)) for e, low, _, _ in reversed(points)]
    at_x, at_y = x(mark[0]), y(mark[1])
    shown = number(float(f"{mark[1]:.2g}"), 2)
    places, last = [], 100.0 + _APART
    for error in points[-1][1:]:
        last = min(y(error), last - _APART)
        places.append(f"{last:.2f}%")
    at_limit = y(limit)
    parts = [
        *(level_line(y(p), number(p, 1)) for p in powers),
        *(soft_text(f"{x(e):.2f}%", "100%", f"{e:g}", dy=20) for e in _spaced(points, x)),
        lines([*upper, *lower], "polygon"),
        lines([(x(e), y(typical)) for e, _, typical, _ in points]),
        f'<line x1="0" x2="100%" y1="{at_limit:.2f}%" y2="{at_limit:.2f}%" '
        'stroke="var(--red)" stroke-dasharray="5 4"/>',
        soft_text("0", f"{at_limit:.2f}%", "above this line: no use", "start", dx=6, dy=-6),
        *(
            soft_text("100%", place, name, "start", dx=6, dy=4)
            for place, name in zip(places, ("easy data", "typical", "hard data"), strict=True)
        ),
        dot(at_x, at_y),
        f'<text x="{at_x:.2f}%" y="{at_y:.2f}%" dx="8" dy="-9">{escape(shown)}</text>',
    ]
    named = f"{what} that privacy adds{f', {unit}' if unit else ''}"
    return frame(parts, x_axis="epsilon", y_axis=named, wide=True)


def _spaced(points: Sequence[tuple[float, ...]], x: Callable[[float], float]) -> list[float]:
    """Return the epsilons whose labels have room beside each other."""
    kept: list[float] = []
    for epsilon, *_ in points:
        if not kept or x(epsilon) - x(kept[-1]) >= _APART:
            kept.append(epsilon)
    return kept
