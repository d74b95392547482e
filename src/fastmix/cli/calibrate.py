"""``fastmix calibrate``: noise levels of a fit, from public sizes only."""

from fastmix.certificate import jsonable
from fastmix.certificate.explain import explain_events
from fastmix.cli import _options as options
from fastmix.cli._console import print_json, print_table, print_text
from fastmix.estimators.regression import PrivateLinearRegression, with_method
from fastmix.files.report import plan_settings

EXAMPLES = ("fastmix calibrate --rows 100000 --columns 10 --epsilon 1 --delta 1e-6 --method ihm",)


def command(
    rows: options.Rows,
    columns: options.Columns,
    epsilon: options.Epsilon = 1.0,
    delta: options.Delta = None,
    method: options.MethodName = "auto",
    intercept: options.Intercept = True,
    json: options.Json = False,
) -> None:
    """Show the noise levels that meet a privacy budget, without data."""
    wanted = PrivateLinearRegression(
        epsilon=epsilon,
        delta=delta,
        fit_intercept=intercept,
        inference=method in options.INFERRING,  # as "fastmix fit" does by default
    )
    model = with_method(wanted, method)
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
