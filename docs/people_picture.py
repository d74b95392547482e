"""Draw the coverage of intervals with and without persons, from the table of the page on persons.

python docs/people_picture.py
"""

import re
from pathlib import Path

import matplotlib.pyplot as plt

HERE = Path(__file__).parent
#: Column of the table, colour and label of each line.
LINES = {4: ("#1f5fa8", "fit with groups"), 5: ("#b35900", "persons ignored")}
EPSILON = "3"


def measured() -> dict[int, dict[int, list[tuple[float, float]]]]:
    """Return correlation and coverage in percent, by column and number of persons."""
    found: dict[int, dict[int, list[tuple[float, float]]]] = {}
    for line in (HERE / "people.md").read_text().splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) == 6 and re.fullmatch(r"[0-9,]+", cells[0]) and cells[2] == EPSILON:
            persons, correlation = int(cells[0].replace(",", "")), float(cells[1])
            for column in LINES:
                own = found.setdefault(column, {}).setdefault(persons, [])
                own.append((correlation, float(cells[column].rstrip("%"))))
    return found


def main() -> None:
    """Draw and save, for a page of 390 pixels."""
    figure, panel = plt.subplots(figsize=(3.9, 3.3), constrained_layout=True)
    panel.axhline(95, color="#999999", lw=1, ls=":")
    for column, by_persons in measured().items():
        colour, label = LINES[column]
        for points in by_persons.values():
            panel.plot(*zip(*points, strict=True), "o", color=colour, ms=4, alpha=0.5)
        same = [[*zip(*each, strict=True)] for each in zip(*by_persons.values(), strict=True)]
        mean = [(xs[0], sum(ys) / len(ys)) for xs, ys in same]
        panel.plot(*zip(*mean, strict=True), "-", color=colour, lw=2.5)
        panel.annotate(
            label, mean[-1], xytext=(0, 14 if column == min(LINES) else -34),
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
    figure.savefig(HERE / "people.png", dpi=200)


if __name__ == "__main__":
    main()
