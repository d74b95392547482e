"""The demonstration: a private fit of real flights beside the non-private one."""

import time
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from sklearn.linear_model import LinearRegression
from sklearn.metrics import r2_score

from fastmix.cli import _options as options
from fastmix.cli._console import print_json, print_table, print_text
from fastmix.cli._folder import model_folder
from fastmix.cli._papers import Papers
from fastmix.datasets import Table, load_nycflights13
from fastmix.estimators import PrivateLinearRegression
from fastmix.estimators.regression import with_method
from fastmix.paper import METHODS
from fastmix.schema import Number, PublicBounds
from fastmix.show.progress import progress

EXAMPLES = ("fastmix demo", "fastmix demo --epsilon 0.1 --method adassp")

#: Share of the budget that pays for a private R^2.
_SCORE_SHARE = 0.1


def run_demo(
    epsilon: float = 1.0, method: str = "auto", out: Path = Path("fastmix-demo")
) -> dict[str, Any]:
    """Fit the flights with and without privacy, write the private fit, and compare both."""
    scored = method == "auto" or (method in METHODS and METHODS[method].reserves)
    wanted = PrivateLinearRegression(
        epsilon=epsilon,
        inference=method in options.INFERRING,
        score_share=_SCORE_SHARE if scored else 0.0,
    )
    model = with_method(wanted, method)
    model._check_parameters()  # before half a second of loading
    table = load_nycflights13()
    X, y = table.X, table.y
    with model_folder(out, force=True) as publish:
        started = time.perf_counter()
        private = model.set_params(bounds_X=table.bounds_X, bounds_y=table.bounds_y).fit(X, y)
        seconds = time.perf_counter() - started
        private.schema_ = _public(table)
        Papers().publish(private, publish)
    # The fair comparison: least squares on the same data, moved into the same public bounds.
    X, y = np.clip(X, *table.bounds_X), np.clip(y, *table.bounds_y)
    ordinary = LinearRegression().fit(X, y)
    columns = [each.tolist() for each in (*table.bounds_X, private.coef_, ordinary.coef_)]
    ends = private.conf_int().tolist() if private.inference else [None] * len(private.coef_)
    return {
        "n": len(y),
        "features": [
            {"name": name, "bounds": [low, high], "private": p, "non_private": o, "interval": i}
            for name, low, high, p, o, i in zip(table.feature_names, *columns, ends, strict=True)
        ],
        "intercept": {"private": private.intercept_, "non_private": float(ordinary.intercept_)},
        "r2_private": private.scores_.to_dict()["r2"] if scored else None,
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
        "report": str(out / "report.html"),
    }


def _public(table: Table) -> PublicBounds:
    """Return the public bounds of the flights as those of a table."""
    target = Number(table.target_name, *table.bounds_y, unit="minutes")
    ends = (side.tolist() for side in table.bounds_X)
    features = zip(table.feature_names, *ends, strict=True)
    return PublicBounds(target, tuple(Number(*each) for each in features))


def command(
    epsilon: options.Epsilon = 1.0,
    method: options.MethodName = "auto",
    out: Annotated[Path, typer.Option(help="Folder for model, certificate and report.")] = Path(
        "fastmix-demo"
    ),
    json: options.Json = False,
) -> None:
    """Fit a private regression to 327,346 real flights, and compare it with least squares."""
    with progress("fitting"):
        found = run_demo(epsilon, method, out)
    if json:
        print_json(found)
        return
    print_text(f"Arrival delay of {found['n']:,} flights out of New York in 2013, in minutes.", "")
    rows = [
        (each["name"], "{:g} to {:g}".format(*each["bounds"]), each) for each in found["features"]
    ]
    rows += [("intercept", "", found["intercept"]), ("R² *", "", found["r2_not_private"])]
    print_table(
        ["feature", "public bounds", "private", "95% interval", "non-private"],
        [
            [*words, f"{one['private']:.4f}", _interval(one), f"{one['non_private']:.4f}"]
            for *words, one in rows
        ],
    )
    parts = found["parts"] if len(found["parts"]) > 1 else []
    r2 = found["r2_private"]
    score = "Private R²: {value:.3f}, 95% interval {low} to {high:.3f}"
    low = {"low": "-inf" if r2 is None or r2["low"] is None else f"{r2['low']:.3f}"}
    print_text(
        "",
        *(
            []
            if r2 is None
            else [f"{score.format(**r2 | low)} ({_SCORE_SHARE:.0%} of the budget)."]
        ),
        f"Method: {found['method']}, fitted in {found['seconds']:.2f} seconds.",
        f"Privacy spent: epsilon = {found['epsilon']:.6g}, delta = {found['delta']:.3g} "
        "(one flight removed; n is public).",
        *(
            f"  {part['name']:<28} epsilon {part['epsilon']:<10.4g} delta {part['delta']:.3g}"
            for part in parts
        ),
        f"Report: open {found['report']} in a browser.",
        "",
        "* on the same flights within the public bounds, for this demonstration only: not private.",
    )


def _interval(found: dict[str, Any]) -> str:
    """Return the interval of a coefficient, if it has one."""
    ends = found.get("interval")
    return "" if ends is None else "{:.4f} to {:.4f}".format(*ends)
