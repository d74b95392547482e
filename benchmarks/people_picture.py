"""Draw the coverage of intervals with and without persons, from docs/people.csv."""

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt

#: Column of the table, colour and label of each line.
LINES = {"covered": ("#1f5fa8", "fit with groups"), "ignoring": ("#b35900", "persons ignored")}
EPSILON = 3.0


def draw(frame, folder):
    """Draw and save, for a page of 390 pixels."""
    frame = frame[(frame["set"] == "panel") & (frame["epsilon"] == EPSILON)]
    figure, panel = plt.subplots(figsize=(3.9, 3.3), constrained_layout=True)
    panel.axhline(95, color="#999999", lw=1, ls=":")
    for column, (colour, label) in LINES.items():
        points = 100.0 * frame.set_index("correlation")[column]
        panel.plot(points.index, points, "o", color=colour, ms=4, alpha=0.5)
        mean = points.groupby(level=0).mean()
        panel.plot(mean.index, mean, "-", color=colour, lw=2.5)
        panel.annotate(
            label, (mean.index[-1], mean.iloc[-1]), xytext=(0, 14 if column == "covered" else -34),
            textcoords="offset points", ha="right", color=colour, fontsize=11, weight="bold",
        )  # fmt: skip
    panel.set_ylim(70, 101)
    panel.set_yticks([70, 75, 80, 85, 90, 95, 100])
    panel.set_xticks([0.0, 0.3, 0.7])
    panel.set_xlabel("correlation of a person's errors", fontsize=10)
    panel.set_ylabel("intervals that cover, %", fontsize=10)
    panel.spines[["top", "right"]].set_visible(False)
    panel.set_title(
        "95% intervals of a fit that ignores\npersons are too narrow", fontsize=11, loc="left"
    )
    figure.savefig(folder / "people.png", dpi=200)
    plt.close(figure)
