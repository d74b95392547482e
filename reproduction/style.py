"""The look of the figures: one colour per method, and names at the ends of lines."""

from typing import Any

#: One colour per method, in every figure of the documentation.
COLOURS = {
    "default": "#c2185b",
    "ObjectivePerturbation": "#1b7f3b",
    "IHM": "#0b5fa5",
    "IHM, paper": "#6aa9dc",
    "FastIHM": "#b3450b",
    "FastIHM, paper": "#e0925c",
    "AdaSSP": "#5f6368",
    "boosted AdaSSP": "#7b52ab",
    "DPGradientDescent": "#9c8900",
    "diffprivlib": "#00838f",
    "private mean": "#111111",
}


def label_lines(ax: Any, *, size: float = 10.0) -> None:
    """Write the name of each line of ``ax`` at its right end, one above the other."""
    figure = ax.figure
    figure.canvas.draw()
    low, high = ax.transAxes.transform([(0, 0), (0, 1)])[:, 1]
    apart = 1.25 * size * figure.dpi / 72.0 / (high - low)
    ends = []
    for line in ax.lines:
        if not line.get_label().startswith("_"):
            x, y = line.get_xydata()[-1]
            ends.append(
                (ax.transAxes.inverted().transform(ax.transData.transform((x, y)))[1], line)
            )
    ends.sort(key=lambda end: end[0])
    places: list[float] = []
    for at, _ in ends:
        places.append(max([at, *(place + apart for place in places[-1:])]))
    for number in reversed(range(len(ends))):  # none above the top
        places[number] = min(places[number], 1.0 - apart * (len(ends) - 1 - number))
    for place, (_, line) in zip(places, ends, strict=True):
        ax.annotate(
            line.get_label(),
            (line.get_xdata()[-1], line.get_ydata()[-1]),
            (1.02, place),
            xycoords="data",
            textcoords=ax.transAxes,
            color=line.get_color(),
            fontsize=size,
            va="center",
            annotation_clip=False,
        )
