"""The plan of a fit from public sizes and the parameters of its estimator."""

from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from fastmix._validation import check_choice, check_integer, check_real, value_error
from fastmix.estimators import FAMILIES
from fastmix.estimators.regression import with_method
from fastmix.planning.cost import CostModel
from fastmix.planning.fit_plan import FitPlan, places
from fastmix.planning.rehearsal import R2


def plan(
    n: int,
    d: int,
    epsilon: float = 1.0,
    delta: float | None = None,
    *,
    family: str = "linear",
    persons: int | None = None,
    target: str = "the target",
    unit: str = "",
    categories: Iterable[int] = (),
    spread: float | None = None,
    r2: float = R2,
    eigenvalues: npt.ArrayLike | None = None,
    theta_norm: float = 1.0,
    cost: CostModel | None = None,
    **parameters: Any,
) -> FitPlan:
    """Plan a fit from public sizes: its method, and the error, seconds and memory to expect.

    Parameters
    ----------
    n, d : int
        Rows and features, after encoding.
    epsilon : float, default 1.0
        Target epsilon.
    delta : float, optional
        Target delta; ``1 / n**2`` by default, ``1 / persons**2`` with persons.
    family : {"linear", "logistic", "quantile", "huber"}, default "linear"
        What is fitted. Errors of a logistic regression are excess log-loss, those of a quantile
        excess pinball loss, those of the others root mean squares.
    persons : int, optional
        Persons whose rows they are, for a fit that protects persons: each counts as one record.
        ``max_rows_per_group`` is the number of rows that persons have on average by default.
    target, unit : str
        Name and unit of the target, for messages.
    categories : iterable of int, optional
        Numbers of levels of the categories among the features, each of which has a column less
        than levels. The plan then rehearses the fit on a made-up table of the same sizes, and also
        says how many effects will have an interval.
    spread : float, optional
        For a table with categories, a public guess at the root mean square of residuals without
        privacy, in the units of the target; a tenth of the width of its bounds by default.
    r2 : float, default 0.5
        For a table with categories, a public guess at R^2.
    eigenvalues : array_like, optional
        Public guess at the eigenvalues of the Gram matrix of the scaled rows, whose norm is at
        most 1. With it errors range over a factor of 3 in both directions; without it, from
        easy to hard data.
    theta_norm : float, default 1.0
        With ``eigenvalues``, a public guess at the norm of the coefficients of scaled rows and
        targets.
    cost : CostModel, optional
        Seconds for each unit of work; by default those that were measured for the documentation.
    **parameters
        Parameters of the estimator of the family, such as ``bounds_y``, ``method``, ``quantile``,
        ``classes``, ``inference``, ``score_share``, ``max_weight`` and ``public_rows``. Without
        ``bounds_y`` errors are for a target with the bounds [-1, 1].

    Returns
    -------
    FitPlan
        The plan; print it for a table, or write its ``page()`` to a file.

    Examples
    --------
    >>> from fastmix import plan
    >>> found = plan(100_000, 20, bounds_y=(0, 200_000), target="income", unit="EUR")
    >>> found.method
    'adaptive'
    >>> found.asked.low < found.asked.typical < found.asked.high
    True
    """
    kind = FAMILIES[check_choice("family", family, tuple(FAMILIES))]
    method = parameters.pop("method", "auto") if family == "linear" else "auto"
    most_rows = parameters.pop("max_rows_per_group", None)
    most_weight = parameters.pop("max_weight", None)
    known = kind().get_params()
    for name, value in parameters.items():
        if name not in known:
            raise value_error(name, f"be left out of a plan of {kind.__name__}", value)
    if persons is not None and most_rows is None:
        most_rows = -(-n // max(persons, 1))
    model = kind(epsilon=epsilon, delta=delta, **parameters)
    model._population = model._counting(
        persons is not None,
        most_weight is not None,
        most_rows,
        1.0 if most_weight is None else most_weight,
    )
    if method != "auto":
        model = with_method(model, method)
    spectrum = None
    if eigenvalues is not None:
        columns = d + bool(model.fit_intercept)
        values = np.sort(np.asarray(eigenvalues, dtype=np.float64))
        if values.shape != (columns,) or not (np.isfinite(values) & (values >= 0.0)).all():
            raise value_error("eigenvalues", f"be {columns} finite numbers, none negative", values)
        square = check_real("theta_norm", theta_norm, at_least=0.0) ** 2
        spectrum = values, np.full(columns, square / columns)
    sizes = [check_integer("categories", each, at_least=2) - 1 for each in categories]
    if sum(sizes) > d:
        raise value_error("categories", f"have at most {d} columns together", sum(sizes))
    model._dummies = places(sizes)
    guesses: Any = {"spectrum": spectrum, "spread": spread, "r2": r2}
    return FitPlan(model, n, d, persons, target, unit, **guesses, cost=cost or CostModel())
