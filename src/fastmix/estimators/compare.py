"""Several feature sets under one budget, the best refitted with what is left."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import clone

from fastmix._validation import check_choice, type_error, unchained, value_error
from fastmix.accounting import BudgetAccountant, PrivacySpent
from fastmix.engine import Draws
from fastmix.engine.compare import comparing_method, comparing_plan, ranked
from fastmix.engine.fit import solve_fit
from fastmix.engine.population import Population
from fastmix.errors import caller_level
from fastmix.estimators._found import found_like
from fastmix.estimators._input import Arrays
from fastmix.estimators.parameters import reasons_for_leaks
from fastmix.estimators.regression import PrivateLinearRegression
from fastmix.random import is_seeded, public_generator, warn_seeded
from fastmix.releases import make_noise
from fastmix.schema.values import column_labels
from fastmix.show.html import number, table
from fastmix.show.progress import Bar, progress


@dataclass(frozen=True)
class Comparison:
    """A private ranking of feature sets, and the best of them, fitted.

    Parameters
    ----------
    best : str
        Name of the feature set that ranks first.
    model : PrivateLinearRegression
        The model of that set, fitted to its columns alone.
    features : dict of str to list
        The columns of every set.
    excess : dict of str to float
        Mean squared error of a first, rough fit of every set beyond that of the best, in the
        squared units of the target, best first.
    std : float
        Standard error of the difference of two such excesses, by noise.
    """

    best: str
    model: PrivateLinearRegression
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
            Predicted targets.
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
        """Return one row of text per feature set, best first.

        Returns
        -------
        list of list of str
            Name, number of columns, and excess of the mean squared error.
        """
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
    model: PrivateLinearRegression,
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
        Targets.
    model : PrivateLinearRegression
        The model, not fitted: its epsilon and delta cover the ranking and the refit, and its
        bounds are those of all columns.

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
    if not isinstance(model, PrivateLinearRegression):
        raise type_error("model", "be a PrivateLinearRegression", model)
    with unchained(), progress("comparing", verbose=False) as bar:
        return _compare(candidates, X, y, model, bar)


def _compare(
    candidates: Any, X: Any, y: Any, model: PrivateLinearRegression, bar: Bar
) -> Comparison:
    model = model._fitting(Population())
    check_choice("noise", model.noise, ("float",))
    if model.bounds is not None:
        raise ValueError(
            "bounds must be None in a comparison, whose columns are encoded already. Pass bounds_X "
            "and bounds_y, as PublicEncoder gives them."
        )
    if not model.public_rows:
        raise value_error("public_rows", "be True in a comparison", model.public_rows)
    if model.score_share:
        raise value_error("score_share", "be 0 in a comparison", model.score_share)
    if model.epsilon == float("inf"):
        raise value_error("epsilon", "be finite in a comparison", model.epsilon)
    sets, columns = _declared(candidates, X)
    data = Arrays(X, y)
    d = data.check(model)
    if max(max(each) for each in columns) >= d:
        raise value_error("candidates", f"name columns below {d}", candidates)
    scaling = data.scaling(
        bounds_X=model.bounds_X,
        bounds_y=model.bounds_y,
        data_norm=model.data_norm,
        fit_intercept=model.fit_intercept,
    )
    rows = data.rows(scaling, bar.passing, in_blocks=True)
    sizes, target = model._sizes(rows.n, d), model._target(rows.n)
    method = comparing_method(sizes, target)
    plan, ranking = comparing_plan(method, sizes, target, inference=model._infers)
    leaks = reasons_for_leaks(model, plan)
    if is_seeded(model.random_state):
        warn_seeded(stacklevel=caller_level() + 1)
    noise = make_noise("float", model.random_state, warn=False)
    public = noise.rng if is_seeded(model.random_state) else public_generator()
    accountant = model.accountant if model.accountant is not None else BudgetAccountant.current()
    if accountant is not None:
        accountant.spend(plan.spent, label=f"comparison of {len(sets)} feature sets", leaks=leaks)
    draws = Draws(noise, public, partial(bar.step, last=method.last_step))
    errors, std = ranked(rows, columns, ranking, draws)
    order = np.argsort(errors, kind="stable")
    winner = columns[int(order[0])]
    fitted = clone(model)
    bounds = scaling.bounds_X
    if bounds is not None:
        fitted.bounds_X = found_like(model.bounds_X, *(side[winner] for side in bounds))
    if scaling.bounds_y is not None:
        fitted.bounds_y = found_like(model.bounds_y, *scaling.bounds_y)
    part = Arrays(data.X[:, winner], data.y)
    own = part.scaling(
        bounds_X=fitted.bounds_X,
        bounds_y=fitted.bounds_y,
        data_norm=fitted.data_norm,
        fit_intercept=fitted.fit_intercept,
        warn=False,
    )
    chosen = part.rows(own, bar.passing, in_blocks=True)
    solution = solve_fit(method, chosen, plan, own, own.clipping(None), draws)
    fitted.n_features_in_ = len(winner)
    if data.names is not None:
        fitted.feature_names_in_ = np.asarray(data.names)[winner]
    fitted._store(method, plan, solution, own, rows.n, own.clipping(None), noise.source)
    certificate = fitted.privacy_
    parameters = {**certificate.parameters, "compared": len(sets)}
    fitted.privacy_ = replace(certificate, parameters=parameters, leaks=leaks)
    names, unit = list(sets), scaling.target_map.scale**2
    excess = {names[int(k)]: float(errors[k] - errors[order[0]]) * unit for k in order}
    best = names[int(order[0])]
    return Comparison(best, fitted, sets, excess, float(np.sqrt(2.0) * std * unit))


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
