"""Draw docs/privacy.png: one record, with and without privacy.

``python docs/privacy_picture.py`` fits the same data 4,000 times with one person's record and 4,000
times without it.  The data are simulated; the fits are the library's own.
"""

from __future__ import annotations

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LinearRegression

from fastmix import AdaSSP

EPSILON, FITS = 1.0, 4000
BLUE, ORANGE, GREY = "#2f6f9f", "#d9822b", "#555555"


def main() -> None:
    """Fit, draw and save."""
    rng = np.random.default_rng(1)
    age = rng.uniform(20, 80, 400)
    hours = np.clip(2.0 + 0.05 * age + rng.normal(size=400), 0, 10)
    age[0], hours[0] = 80.0, 0.0  # the one person
    bounds = {"bounds_X": (20, 80), "bounds_y": (0, 10)}

    def data(present: bool) -> tuple[np.ndarray, np.ndarray]:
        # In place of the person a record in the middle of the bounds, which says nothing.
        X, y = age.copy(), hours.copy()
        if not present:
            X[0], y[0] = 50.0, 5.0
        return X[:, None], y

    model = AdaSSP(epsilon=EPSILON, delta=1e-6, **bounds)
    slopes = {
        present: np.array([model.fit(*data(present)).coef_[0] for _ in range(FITS)])
        for present in (True, False)
    }
    plain = {present: LinearRegression().fit(*data(present)).coef_[0] for present in (True, False)}

    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.6), layout="constrained")
    low, high = np.quantile(np.concatenate(list(slopes.values())), [0.002, 0.998])
    for present, colour, name in ((True, BLUE, "with"), (False, ORANGE, "without")):
        left.axvline(plain[present], color=colour, lw=2.5, label=f"{name} this person")
        right.hist(
            slopes[present], np.linspace(low, high, 45), color=colour, alpha=0.55,
            label=f"{name} this person",
        )  # fmt: skip
    middle, apart = sum(plain.values()) / 2, abs(plain[True] - plain[False])
    left.set_xlim(middle - 3 * apart, middle + 3 * apart)
    left.set_title("ordinary least squares", color=GREY)
    left.annotate(
        "one look tells\nwhich it was", (plain[True], 0.5), (middle - 2.7 * apart, 0.62),
        color=GREY, arrowprops={"arrowstyle": "->", "color": GREY},
    )  # fmt: skip
    right.set_title(f"fastmix, epsilon = {EPSILON:g}: {FITS:,} fits each", color=GREY)
    for axes in (left, right):
        axes.set_yticks([])
        axes.set_xlabel("slope: hours of care per year of age")
        axes.spines[["left", "top", "right"]].set_visible(False)
        axes.legend(frameon=False, loc="upper right")
    figure.savefig(Path(__file__).with_name("privacy.png"), dpi=110)


if __name__ == "__main__":
    main()
