"""Draw test R² against the rows per person, from the table of the page on persons.

python docs/people_picture.py
"""

import re
from pathlib import Path

import matplotlib.pyplot as plt

HERE = Path(__file__).parent
COLOURS = {"persons": "#1f5fa8", "naive": "#b35900", "rows": "#666666"}
LABELS = {"persons": "weights per person", "naive": "naive: ε/k", "rows": "single rows only"}


def measured() -> dict[str, list[tuple[int, float, float, float]]]:
    """Return k and the three R² at epsilon 3, by set."""
    found: dict[str, list[tuple[int, float, float, float]]] = {}
    name = ""
    for line in (HERE / "people.md").read_text().splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) == 6 and re.fullmatch(r"[0-9.]+", cells[1]):
            name = cells[0].split(",")[0] or name
            if cells[1] == "3":
                values = tuple(float(cell) for cell in cells[3:])
                found.setdefault(name, []).append((int(cells[2]), *values))
    return found


def main() -> None:
    """Draw and save."""
    sets = measured()
    figure, panels = plt.subplots(1, len(sets), figsize=(8, 3.4), constrained_layout=True)
    for panel, (name, rows) in zip(panels, sets.items(), strict=True):
        ks = [row[0] for row in rows]
        for j, kind in enumerate(("persons", "naive", "rows"), start=1):
            values = [row[j] for row in rows]
            panel.plot(ks, values, "o-", color=COLOURS[kind], lw=2)
            panel.annotate(
                LABELS[kind], (ks[-1], values[-1]), xytext=(6, 0), textcoords="offset points",
                va="center", color=COLOURS[kind], fontsize=9, annotation_clip=False,
            )  # fmt: skip
        panel.set_xscale("log")
        middle = rows[0][3]
        panel.set_ylim(middle - 0.05, middle + 0.03)  # of one height, so that both compare
        panel.set_xticks(ks, [str(k) for k in ks])
        panel.minorticks_off()
        panel.set_xlim(0.8, 9000)
        panel.set_title(name, fontsize=10)
        panel.set_xlabel("rows of a person that count, k")
        panel.spines[["top", "right"]].set_visible(False)
    panels[0].set_ylabel("test R² at epsilon 3")
    figure.suptitle(
        "At epsilon 3, more rows per person help with weights, and hardly with ε/k", fontsize=11
    )
    figure.savefig(HERE / "people_k.png", dpi=130)


if __name__ == "__main__":
    main()
