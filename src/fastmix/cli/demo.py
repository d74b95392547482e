"""The demonstration: a private fit of real flights beside the non-private one."""

from __future__ import annotations

import time

import numpy as np
from sklearn.linear_model import LinearRegression
from sklearn.metrics import r2_score

from fastmix.datasets import load_nycflights13
from fastmix.estimators import PrivateLinearRegression

__all__ = ["run_demo"]


def run_demo(epsilon: float = 1.0, method: str = "auto") -> str:
    """Fit the flights privately and not, and return the comparison as text.

    Parameters
    ----------
    epsilon : float, default 1.0
        Privacy budget.
    method : str, default "auto"
        As in `PrivateLinearRegression`.

    Returns
    -------
    str
        The report.
    """
    table = load_nycflights13()
    X, y = table.X, table.y
    started = time.perf_counter()
    private = PrivateLinearRegression(
        epsilon=epsilon, bounds_X=table.bounds_X, bounds_y=table.bounds_y, method=method
    ).fit(X, y)
    seconds = time.perf_counter() - started
    # The fair comparison: least squares on the same data, moved into the same public bounds.
    ordinary = LinearRegression().fit(np.clip(X, *table.bounds_X), np.clip(y, *table.bounds_y))

    lower, upper = table.bounds_X
    lines = [
        f"Arrival delay of {len(y):,} flights out of New York in 2013, in minutes.",
        "",
        f"{'feature':<12} {'public bounds':>18} {'private':>12} {'non-private':>12}",
    ]
    for j, name in enumerate(table.feature_names):
        bounds = f"[{lower[j]:g}, {upper[j]:g}]"
        lines.append(
            f"{name:<12} {bounds:>18} {private.coef_[j]:>12.4f} {ordinary.coef_[j]:>12.4f}"
        )
    lines += [
        f"{'intercept':<12} {'':>18} {private.intercept_:>12.4f} {ordinary.intercept_:>12.4f}",
        f"{'R2 *':<12} {'':>18} {r2_score(y, private.predict(X)):>12.4f} "
        f"{r2_score(y, ordinary.predict(X)):>12.4f}",
        "",
        f"Method: {private.method_}, {private.n_steps_} steps, {seconds:.2f} s.",
        f"Privacy spent: epsilon = {private.privacy_.epsilon:.6g}, "
        f"delta = {private.privacy_.delta:.3g} (one flight removed; n is public).",
    ]
    lines += [
        f"  {part.name:<28} epsilon {part.epsilon:<10.4g} delta {part.delta:.3g}"
        for part in private.privacy_.parts
    ]
    lines += ["", "* computed on the raw data, for this demonstration only: it is not private."]
    return "\n".join(lines)
