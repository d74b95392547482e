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
    panel.annotate("95% wanted", (0.0, 95.4), color="#666666", fontsize=9, va="bottom")
    for column, by_persons in measured().items():
        colour, label = LINES[column]
        for points in by_persons.values():
            panel.plot(*zip(*points, strict=True), "o-", color=colour, lw=2, ms=4, alpha=0.8)
        last = [points[-1][1] for points in by_persons.values()]
        above = column == min(LINES)
        panel.annotate(
            label, (0.7, max(last) if above else min(last)), xytext=(0, 12 if above else -16),
            textcoords="offset points", ha="right", color=colour, fontsize=10, weight="bold",
        )  # fmt: skip
    panel.set_ylim(70, 100)
    panel.set_xticks([0.0, 0.3, 0.7])
    panel.set_xlabel("correlation of a person's errors", fontsize=10)
    panel.set_ylabel("intervals with the truth, %", fontsize=10)
    panel.spines[["top", "right"]].set_visible(False)
    panel.set_title("Ignoring persons makes\nintervals too narrow", fontsize=12, loc="left")
    figure.savefig(HERE / "people.png", dpi=200)


if __name__ == "__main__":
    main()
