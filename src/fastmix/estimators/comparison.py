"""Several feature sets under one budget, the best refitted with what is left."""

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import clone

from fastmix._validation import type_error, unchained, usual_arithmetic, value_error
from fastmix.accounting import PrivacySpent, noted
from fastmix.accounting.notes import current_notes
from fastmix.engine import Draws, Plan
from fastmix.engine.compare import Ranking, comparing_method, comparing_plan, ranked
from fastmix.engine.fit import PLANNED_ROWS, solve_fit, with_weight
from fastmix.engine.population import Population
from fastmix.estimators._fitting import SOME_ROWS
from fastmix.estimators._found import found_like
from fastmix.estimators._input import Arrays
from fastmix.estimators.classification import PrivateLogisticRegression
from fastmix.estimators.parameters import reasons_for_leaks
from fastmix.estimators.regression import PrivateLinearRegression
from fastmix.schema.values import column_labels
from fastmix.show.html import number, table
from fastmix.show.progress import Bar, progress

#: What a model must be, so that rough linear fits can rank columns for it.
_RANKED = "be a PrivateLinearRegression or PrivateLogisticRegression"


@dataclass(frozen=True)
class Comparison:
    """A private ranking of feature sets, and the best of them, fitted.

    Parameters
    ----------
    best : str
        Name of the feature set that ranks first.
    model : PrivateLinearRegression or PrivateLogisticRegression
        The model of that set, fitted to its columns alone.
    features : dict of str to list
        The columns of every set.
    excess : dict of str to float
        Mean squared error of a first, rough linear fit of every set beyond that of the best, in
        the squared units of the target, best first. A label counts as 1 or 0; of more than two
        classes the errors of all add up.
    std : float
        Standard error of the difference of two such excesses, by noise.
    """

    best: str
    model: PrivateLinearRegression | PrivateLogisticRegression
    features: dict[str, list[Any]]
    excess: dict[str, float]
    std: float

    @property
    def spent(self) -> PrivacySpent:
        """The account of the ranking and the refit together."""
        return self.model.privacy_.spent

    def predict(self, X: Any) -> Any:
        """Predict with the best model, from all columns or from its own.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Records with the columns that were compared, or those of the best set.

        Returns
        -------
        ndarray of shape (n_samples,)
            Predicted targets or classes.
        """
        columns = self.features[self.best]
        if hasattr(X, "columns"):
            return self.model.predict(X[columns])
        X = np.asarray(X)
        if X.shape[1] == len(columns) != self._width:
            return self.model.predict(X)
        return self.model.predict(X[:, columns])

    @property
    def _width(self) -> int:
        return 1 + max(
            (c for columns in self.features.values() for c in columns if isinstance(c, int)),
            default=0,
        )

    def rows(self) -> list[list[str]]:
        """Return name, number of columns and excess error of each feature set, best first."""
        return [
            [name, str(len(self.features[name])), number(value)]
            for name, value in self.excess.items()
        ]

    def __str__(self) -> str:
        lines = [["set", "columns", "excess MSE"], *self.rows()]
        width = max(len(line[0]) for line in lines)
        said = [f"{a:<{width}}  {b:>7}  {c:>12}" for a, b, c in lines]
        return "\n".join([*said, f"Standard error of a difference: {number(self.std, 2)}."])

    def _repr_html_(self) -> str:
        return table(["set", "columns", "excess MSE"], self.rows())


def compare(
    candidates: Mapping[str, Sequence[Any]] | Iterable[Sequence[Any]],
    X: Any,
    y: Any,
    *,
    model: PrivateLinearRegression | PrivateLogisticRegression,
    groups: Any = None,
    sample_weight: Any = None,
    max_rows_per_group: int | None = None,
    max_weight: float = 1.0,
) -> Comparison:
    """Rank feature sets privately under one budget, and fit the best with what is left.

    Parameters
    ----------
    candidates : mapping of str to sequence, or iterable of sequences
        Feature sets: names of columns, or their numbers if X has no names. All sets are charged
        as one, because they are declared together.
    X : array-like of shape (n_samples, n_features)
        Records with all columns.
    y : array-like of shape (n_samples,)
        Targets, or labels.
    model : PrivateLinearRegression or PrivateLogisticRegression
        The model, not fitted: its epsilon and delta cover the ranking and the refit, and its
        bounds are those of all columns. A classifier must have its ``classes``.
    groups : array-like of shape (n_samples,), default=None
        Whose rows they are: ids as in `fit`. Ranking and refit then protect persons, and each
        person counts as one.
    sample_weight : array-like of shape (n_samples,), default=None
        How much each row counts.
    max_rows_per_group : int, default=None
        With ``groups``, the public number of rows of a person that count at most.
    max_weight : float, default=1.0
        With ``sample_weight``, the public bound on the weight of a row.

    Returns
    -------
    Comparison
        The ranking and the best model. 30% of the budget pays for the ranking.

    Notes
    -----
    Paper: beyond it; docs/proofs/scores.md.

    Examples
    --------
    >>> from fastmix import PrivateLinearRegression, compare
    >>> from fastmix.datasets import make_sphere
    >>> X, y = make_sphere(n=8192, d=4, random_state=0)
    >>> model = PrivateLinearRegression(epsilon=3.0, bounds_X=(-1, 1), bounds_y=(-1, 1))
    >>> found = compare({"all": [0, 1, 2, 3], "last": [3]}, X, y, model=model)
    >>> found.spent.epsilon <= 3.0
    True
    """
    if not isinstance(model, (PrivateLinearRegression, PrivateLogisticRegression)):
        raise type_error("model", _RANKED, model)
    if isinstance(model, PrivateLogisticRegression) and model.classes is None:
        raise value_error("classes", "be given in a comparison", None)
    limits = max_rows_per_group, max_weight
    population = model._counting(groups is not None, sample_weight is not None, *limits)
    with unchained(), usual_arithmetic(), progress("comparing", verbose=False) as bar:
        fitting = _checked(model, population)
        data = Arrays(X, y, groups, sample_weight)
        return _compare(*_declared(candidates, X), data, fitting, bar)


def _compare(
    sets: dict[str, list[Any]],
    columns: list[list[int]],
    data: Arrays,
    model: Any,
    bar: Bar,
) -> Comparison:
    population, labels = model._population, isinstance(model, PrivateLogisticRegression)
    if population.hidden:
        data.check_shapes()
    d = data.check(model)
    if max(max(each) for each in columns) >= d:
        raise value_error("candidates", f"name columns below {d}", list(sets.values()))
    scaling = model._scaling(data)
    report = bar.passed if population.hidden else bar.passing
    rows = data.rows(scaling, report, in_blocks=True)
    planned = partial(_planned, model, d)
    plan = planned(SOME_ROWS if population.hidden else rows.n)[1]
    leaks = reasons_for_leaks(model, plan)
    noise, public = model._randomness()
    accountant = model._budget()
    with noted(label=current_notes().get("label", f"comparison of {len(sets)} feature sets")):
        if population.hidden:
            rows = model._sized(rows, plan, noise, accountant, lambda n: planned(n)[1])
        method, plan, ranking = planned(rows.n)
        model._pay(accountant, plan, rows, noise)
    draws = Draws(noise, public, partial(bar.step, last=method.last_step))
    counted, weights = rows, {}
    if plan.weight_sigma is not None:
        counted, total = with_weight(rows, plan.weight_sigma, noise)
        weights = {"mean_weight": total / rows.n}
    errors, std = ranked(counted, columns, ranking, draws)
    order = np.argsort(errors, kind="stable")
    winner = columns[int(order[0])]
    fitted = clone(model)
    fitted._population = population
    bounds = scaling.bounds_X
    if bounds is not None:
        fitted.bounds_X = found_like(model.bounds_X, *(side[winner] for side in bounds))
    if scaling.bounds_y is not None and not labels:
        fitted.bounds_y = found_like(model.bounds_y, *scaling.bounds_y)
    part = data.chosen(winner)
    own = fitted._scaling(part, warn=False)
    chosen = part.rows(own, report, in_blocks=True)
    if plan.size_scale is not None:
        chosen = chosen.counted(rows.n, rows.most)
    if plan.weight_sigma is not None:
        chosen = chosen.counted(counted.n)
    # The total weight was released before the ranking.
    rest = replace(plan, weight_sigma=None)
    solution = solve_fit(method, chosen, rest, own, own.clipping(None), draws)
    solution = replace(solution, chosen={**(solution.chosen or {}), **weights})
    fitted._name_columns(len(winner), None if data.names is None else data.names[winner])
    table_rows = rows.n if population.hidden else data.table_rows
    clip, source = own.clipping(None), noise.source
    fitted._store(method, plan, solution, own, rows.n, clip, source, table_rows)
    certificate = fitted.privacy_
    parameters = {**certificate.parameters, "compared": len(sets)}
    fitted.privacy_ = replace(certificate, parameters=parameters, leaks=leaks)
    names, unit = list(sets), scaling.target_map.scale**2
    excess = {names[int(k)]: float(errors[k] - errors[order[0]]) * unit for k in order}
    best = names[int(order[0])]
    return Comparison(best, fitted, sets, excess, float(np.sqrt(2.0) * std * unit))


def _checked(model: Any, population: Population) -> Any:
    """Return a copy of the model to fit, or raise an error that names a parameter."""
    model = model._fitting(population)
    if model.bounds is not None:
        raise ValueError(
            "bounds must be None in a comparison, whose columns are encoded already. Pass bounds_X "
            "and bounds_y, as PublicEncoder gives them."
        )
    if model.score_share:
        raise value_error("score_share", "be 0 in a comparison", model.score_share)
    if model.epsilon == float("inf"):
        raise value_error("epsilon", "be finite in a comparison", model.epsilon)
    return model


def _planned(model: Any, d: int, n: int) -> tuple[Any, Plan, Ranking]:
    """Return the method of the refit, the plan of the comparison, and its ranking."""
    sizes, target, budget = model._sizes(n, d), model._target(n), model._budget()
    if budget is not None:
        target = target._replace(order=budget.order)
    if sizes.hidden:  # the rounds, too, are those of a number that the budget is checked for
        sizes = sizes._replace(n=PLANNED_ROWS[bisect_right(PLANNED_ROWS, n) - 1])
    method = comparing_method(model._resolve(), sizes, target)
    asked = {"inference": model.inference, "min_listed": float(model.min_listed)}
    return method, *comparing_plan(method, sizes, target, **asked)


def _declared(candidates: Any, X: Any) -> tuple[dict[str, list[Any]], list[list[int]]]:
    """Return the feature sets by name, as given and as numbers of columns."""
    if not isinstance(candidates, Mapping):
        if isinstance(candidates, str) or not isinstance(candidates, Iterable):
            raise type_error("candidates", "be a list of feature sets", candidates)
        candidates = {f"set {k + 1}": each for k, each in enumerate(candidates)}
    labels = column_labels(X)
    places = {} if labels is None else {label: k for k, label in enumerate(labels)}
    sets: dict[str, list[Any]] = {}
    columns: list[list[int]] = []
    for name, given in candidates.items():
        each = list(given)
        if not each or isinstance(given, str) or len(set(each)) != len(each):
            raise value_error("candidates", "have columns, each once", given)
        if places:
            unknown = [label for label in each if label not in places]
            if unknown:
                raise value_error("candidates", "name columns of X", unknown)
            columns.append([places[label] for label in each])
        else:
            if any(type(c) is bool or not isinstance(c, (int, np.integer)) for c in each):
                raise type_error("candidates", "hold numbers of columns", each)
            each = [int(c) for c in each]
            if min(each) < 0:
                raise value_error("candidates", "hold numbers of columns", each)
            columns.append(each)
        if str(name) in sets:
            raise value_error("candidates", "have a different name for each set", str(name))
        sets[str(name)] = each
    if len(sets) < 2:
        raise value_error("candidates", "be two feature sets or more", candidates)
    return sets, columns
