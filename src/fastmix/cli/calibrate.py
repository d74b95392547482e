"""``fastmix calibrate``: noise levels of a fit, from public sizes only."""

from __future__ import annotations

from typing import Annotated

import typer

from fastmix.certificate import jsonable
from fastmix.certificate.explain import explain_events
from fastmix.cli._console import print_json, print_table, print_text
from fastmix.cli._sizes import Columns, Rows, check_epsilon
from fastmix.estimators import PrivateLinearRegression
from fastmix.show.report import plan_settings

EXAMPLES = ("fastmix calibrate --rows 100000 --columns 10 --epsilon 1 --delta 1e-6 --method ihm",)


def command(
    rows: Rows,
    columns: Columns,
    epsilon: Annotated[float, typer.Option(help="Privacy budget.")] = 1.0,
    delta: Annotated[
        float | None, typer.Option(help="Failure probability; 1/n^2 by default.")
    ] = None,
    method: Annotated[
        str, typer.Option(help="auto, adassp, dp_gd, fast_ihm, ihm, linear_mixing or objective.")
    ] = "auto",
    intercept: Annotated[bool, typer.Option(help="With an intercept.")] = True,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Show the noise levels that meet a privacy budget, before any data is touched."""
    check_epsilon(epsilon)
    model = PrivateLinearRegression(
        epsilon=epsilon, delta=delta, method=method, fit_intercept=intercept
    )
    model._check_parameters()
    chosen, plan = model._planned(rows, columns)
    settings = {"method_": chosen.name, **plan.settings}
    if json:
        print_json({**settings, "account": plan.spent.to_dict()})
        return
    print_table(["setting", "value"], plan_settings(jsonable(settings)))
    print_text(
        "",
        f"Spends epsilon {plan.spent.epsilon:.6g} at delta {plan.spent.delta:.3g}, by:",
        *(f"- {phrase}" for phrase in explain_events(plan.spent.events)),
    )
