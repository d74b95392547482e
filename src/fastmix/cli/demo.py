"""The demonstration: a private fit of real flights beside the non-private one."""

import time
from typing import Any

import numpy as np
from sklearn.linear_model import LinearRegression
from sklearn.metrics import r2_score

from fastmix.cli import _options as options
from fastmix.cli._console import print_json, print_table, print_text, working
from fastmix.datasets import load_nycflights13
from fastmix.estimators import PrivateLinearRegression

EXAMPLES = ("fastmix demo", "fastmix demo --epsilon 0.1 --method adassp")


def run_demo(epsilon: float = 1.0, method: str = "auto") -> dict[str, Any]:
    """Fit the flights privately and not, and return both."""
    model = PrivateLinearRegression(epsilon=epsilon, method=method)
    model._check_parameters()  # before half a second of loading
    table = load_nycflights13()
    X, y = table.X, table.y
    started = time.perf_counter()
    private = model.set_params(bounds_X=table.bounds_X, bounds_y=table.bounds_y).fit(X, y)
    seconds = time.perf_counter() - started
    # The fair comparison: least squares on the same data, moved into the same public bounds.
    X, y = np.clip(X, *table.bounds_X), np.clip(y, *table.bounds_y)
    ordinary = LinearRegression().fit(X, y)
    columns = [each.tolist() for each in (*table.bounds_X, private.coef_, ordinary.coef_)]
    return {
        "n": len(y),
        "features": [
            {"name": name, "bounds": [low, high], "private": p, "non_private": o}
            for name, low, high, p, o in zip(table.feature_names, *columns, strict=True)
        ],
        "intercept": {"private": private.intercept_, "non_private": float(ordinary.intercept_)},
        "r2_not_private": {
            "private": r2_score(y, private.predict(X)),
            "non_private": r2_score(y, ordinary.predict(X)),
        },
        "method": private.method_,
        "steps": private.n_steps_,
        "seconds": seconds,
        "epsilon": private.privacy_.epsilon,
        "delta": private.privacy_.delta,
        "parts": [
            {name: getattr(part, name) for name in ("name", "epsilon", "delta")}
            for part in private.privacy_.parts
        ],
    }


def command(
    epsilon: options.Epsilon = 1.0,
    method: options.MethodName = "auto",
    json: options.Json = False,
) -> None:
    """Fit a private regression to 327,346 real flights, and compare it with least squares."""
    with working("fitting"):
        found = run_demo(epsilon, method)
    if json:
        print_json(found)
        return
    print_text(f"Arrival delay of {found['n']:,} flights out of New York in 2013, in minutes.", "")
    rows = [
        (each["name"], "{:g} to {:g}".format(*each["bounds"]), each) for each in found["features"]
    ]
    rows += [("intercept", "", found["intercept"]), ("R² *", "", found["r2_not_private"])]
    print_table(
        ["feature", "public bounds", "private", "non-private"],
        [[*words, f"{pair['private']:.4f}", f"{pair['non_private']:.4f}"] for *words, pair in rows],
    )
    parts = found["parts"] if len(found["parts"]) > 1 else []
    print_text(
        "",
        f"Method: {found['method']}, {found['steps']} steps, {found['seconds']:.2f} s.",
        f"Privacy spent: epsilon = {found['epsilon']:.6g}, delta = {found['delta']:.3g} "
        "(one flight removed; n is public).",
        *(
            f"  {part['name']:<28} epsilon {part['epsilon']:<10.4g} delta {part['delta']:.3g}"
            for part in parts
        ),
        "",
        "* on the same flights within the public bounds, for this demonstration only: not private.",
    )
