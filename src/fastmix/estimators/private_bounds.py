"""Bounds of features and target, found privately."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any
from uuid import uuid4

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import check_array, validation

from fastmix._types import FloatArray
from fastmix._validation import (
    check_integer,
    check_probability,
    check_real,
    type_error,
    unchained,
    usual_arithmetic,
    value_error,
)
from fastmix.accounting import BudgetAccountant, noted
from fastmix.accounting.notes import current_notes
from fastmix.certificate import PrivacyCertificate
from fastmix.data.persons import Persons, hash_ids, new_key, person_weights
from fastmix.engine import default_delta
from fastmix.engine.population import Population
from fastmix.engine.ranges import (
    LARGEST,
    SMALLEST,
    Range,
    RangePlan,
    find_ranges,
    octave_edges,
    plan_ranges,
)
from fastmix.errors import InvalidValueError
from fastmix.estimators._found import BoundsRelease, FoundBounds
from fastmix.estimators._pipelines import warn_of_fitted_steps
from fastmix.estimators.parameters import LARGEST_EPSILON, SMALLEST_EPSILON
from fastmix.random import RandomState, is_seeded
from fastmix.releases import make_noise
from fastmix.schema.values import as_reals, column_labels

#: Name of the target among the columns.
_TARGET = "the target"


class PrivateBounds(BaseEstimator):  # type: ignore[misc]
    """Find bounds of features and target privately, for a small part of a budget.

    Noisy counts of each column on a public grid of signed powers of two show in which octaves its
    values lie; noisy counts in equal bins of these octaves trim a range that is mostly empty. All
    columns share one Gaussian release for each kind of count. Give ``bounds_X_`` and ``bounds_y_``
    to a fit, which clips values outside, as with any bounds.

    Neighbouring relation: zero-out (one record absent: it counts in no bin; n is public).

    Parameters
    ----------
    epsilon : float, default=0.1
        Privacy budget of the bounds, beside that of the fit.
    delta : float, default=None
        Probability with which the guarantee may fail; None means ``1 / n**2`` (n at least 2).
    coverage : float, default=0.999
        Share of the rows that should lie inside the bounds of a column. Where noise hides the
        remaining rows, the bounds leave out more, at most a few times the noise of a count.
    limits : dict, default=None
        Public knowledge: pairs (lower, upper), by the name of a column, or by its number if the
        columns have no names. The bounds found lie inside.
    grid : tuple of (float, float), default=(2**-20, 2**40)
        Smallest and largest size that the grid tells apart. Smaller values count as 0, larger ones
        as the largest.
    max_rows_per_group : int, default=None
        With ``groups`` in `fit`, the public number of rows of a person that count at most; then the
        bounds protect persons, and n counts them.
    accountant : BudgetAccountant, default=None
        Budget that the bounds are charged to; None means the active one, if there is one.
    random_state : int, RandomState or Generator, default=None
        None draws cryptographic noise. Anything else voids the guarantee: for tests only.

    Attributes
    ----------
    bounds_X_ : tuple of ndarray
        Lower and upper bounds of the features. A column in which nothing was found above the noise,
        such as an empty one, has bounds (0, 0), by which a fit leaves it out.
    bounds_y_ : tuple of float
        Bounds of the target, if there is one; None if nothing was found.
    outside_ : ndarray of shape (n_features,)
        Share of rows that may lie outside the bounds of each feature, by released counts; 1 where
        nothing was found.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the features, when X has names that are all strings.
    privacy_ : PrivacyCertificate
        The privacy that the bounds spent.

    Notes
    -----
    Paper: beyond it; docs/proofs/bounds.md.

    Examples
    --------
    >>> from fastmix import PrivateBounds
    >>> from fastmix.datasets import make_sphere
    >>> X, y = make_sphere(n=20_000, d=4, random_state=0)
    >>> found = PrivateBounds(epsilon=1.0).fit(100 * X, y)
    >>> bool(found.bounds_X_[1].max() <= 256)
    True
    """

    bounds_X_: tuple[FloatArray, FloatArray]
    bounds_y_: tuple[float, float] | None

    def __init__(
        self,
        *,
        epsilon: float = 0.1,
        delta: float | None = None,
        coverage: float = 0.999,
        limits: Mapping[Any, tuple[float, float]] | None = None,
        grid: tuple[float, float] = (SMALLEST, LARGEST),
        max_rows_per_group: int | None = None,
        accountant: BudgetAccountant | None = None,
        random_state: RandomState = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.coverage = coverage
        self.limits = limits
        self.grid = grid
        self.max_rows_per_group = max_rows_per_group
        self.accountant = accountant
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None, groups: Any = None) -> PrivateBounds:
        """Find bounds of the features, and of the target if it is given.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Records, one per row; NaN is a missing value.
        y : array-like of shape (n_samples,), default=None
            Targets.
        groups : array-like of shape (n_samples,), default=None
            Who each row belongs to: ids, all integers or all text.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        with unchained(), usual_arithmetic():
            return self._fit(X, y, groups)

    def persons(self, *groups: Any) -> Persons | None:
        """Return the weights of rows by the ids of their persons; None for single rows."""
        most = self.max_rows_per_group
        parts = [each for each in groups if each is not None]
        if bool(parts) != (most is not None):
            raise value_error("max_rows_per_group", "be given with groups, and only then", most)
        if most is None:
            return None
        key, most = new_key(), check_integer("max_rows_per_group", most, at_least=1)
        return person_weights([hash_ids(each, key) for each in parts], most, key, public=True)

    def _fit(self, X: Any, y: Any, groups: Any) -> PrivateBounds:
        warn_of_fitted_steps(self)
        names, labels = validation._get_feature_names(X), column_labels(X)
        features = check_array(
            as_reals("X", X), dtype=np.float64, ensure_all_finite=False, estimator="PrivateBounds"
        )
        n, d = features.shape
        columns: dict[Any, FloatArray] = {j: features[:, j] for j in range(d)}
        if y is not None:
            target = np.asarray(as_reals("y", y), dtype=np.float64)
            if target.shape != (n,):
                raise value_error("y", f"have shape {(n,)}", target)
            columns[_TARGET] = target
        for values in columns.values():
            if np.isinf(values).any():
                raise InvalidValueError
        given = dict(self.limits or {})
        known = {label: j for j, label in enumerate(labels or range(d))}
        strange = [name for name in given if name not in known]
        if strange:
            raise value_error("limits", "be for columns of X", strange)
        limits = {known[name]: (float(low), float(high)) for name, (low, high) in given.items()}
        persons = self.persons(groups)
        if persons is not None and len(persons.weights) != n:
            raise value_error("groups", f"have {n} entries, as X has rows", len(persons.weights))
        found, _, privacy = self.find(columns, {}, n, limits, persons)
        # A fit replaces all attributes or none.
        self.n_features_in_ = d
        self.__dict__.pop("feature_names_in_", None)
        if names is not None:
            self.feature_names_in_ = names
        ranges = [found[j] or Range(0.0, 0.0, 1.0) for j in range(d)]
        name = uuid4().hex  # of the release, for clones of the bounds
        epsilon = privacy.epsilon if privacy.private else math.inf  # of noise that was seeded
        release = BoundsRelease(epsilon, privacy.delta, self.max_rows_per_group, name)
        lower, upper = (np.array([getattr(r, end) for r in ranges]) for end in ("lower", "upper"))
        self.bounds_X_ = FoundBounds(lower, upper, release)
        self.outside_ = np.array([one.outside for one in ranges])
        target_range = found.get(_TARGET)
        self.bounds_y_ = None
        if target_range is not None:
            self.bounds_y_ = FoundBounds(target_range.lower, target_range.upper, release)
        self.privacy_ = privacy
        return self

    def find(
        self,
        numbers: Mapping[Any, FloatArray],
        levels: Mapping[str, Mapping[str, float]],
        n: int,
        limits: Mapping[Any, tuple[float, float]],
        persons: Persons | None = None,
    ) -> tuple[dict[Any, Range | None], dict[str, tuple[str, ...]], PrivacyCertificate]:
        """Release ranges of columns of numbers and lists of levels of categories, by name.

        ``numbers`` may have NaN for missing values, ``levels`` says how often each level of a
        category occurs, weighted if there are ``persons``, and ``limits`` are public ends of some
        columns. A range is None where nothing was found. The certificate comes last.
        """
        facts = {"n_samples": n, "numbers": len(numbers), "categories": len(levels)}
        if persons is not None:
            n = persons.count
            facts |= {"n_persons": n, "max_rows_per_person": int(self.max_rows_per_group or 1)}
        plan = self.plan(n, len(numbers), len(levels))
        for low, high in limits.values():
            check_real("limits", low)
            check_real("limits", high)
            if not low < high:
                raise value_error("limits", "increase", (low, high))
        seeded = is_seeded(self.random_state)
        leaks = ("the noise was seeded by the caller",) if seeded else ()
        accountant = self.accountant if self.accountant is not None else BudgetAccountant.current()
        noise = make_noise(self.random_state)
        if accountant is not None:
            population = Population(n, self.max_rows_per_group)
            label = population.charged(current_notes().get("label", type(self).__name__))
            with noted(label=label):  # which says who is protected, also after a user's own name
                accountant.spend(
                    plan.spent,
                    label=label,
                    leaks=leaks,
                    rows_per_person=self.max_rows_per_group,
                )
        found, chosen = find_ranges(
            numbers,
            levels,
            plan,
            n,
            noise,
            coverage=float(self.coverage),
            limits=limits,
            grid=self.grid,
            weights=None if persons is None else persons.weights,
        )
        certificate = PrivacyCertificate(
            spent=plan.spent,
            mechanism=type(self).__name__,
            parameters={
                "epsilon": self.epsilon,
                "delta": self.delta,
                "coverage": self.coverage,
                "grid": list(self.grid),
                "sigma": plan.sigma,
                "fine_sigma": plan.fine_sigma,
                "threshold": plan.threshold,
            },
            data=facts,
            noise="seeded" if seeded else noise.source,
            leaks=leaks,
        )
        return found, chosen, certificate

    def plan(self, n: int, numbers: int, categories: int = 0) -> RangePlan:
        """Return the account and the noise for n rows or persons; reads no data.

        ``numbers`` and ``categories`` count columns, the target among the first.
        """
        epsilon = check_real(
            "epsilon", self.epsilon, at_least=SMALLEST_EPSILON, at_most=LARGEST_EPSILON
        )
        if self.delta is not None:
            check_probability("delta", self.delta)
        coverage = check_real("coverage", self.coverage, at_least=0.5)
        if not coverage < 1.0:
            raise value_error("coverage", "be below 1", self.coverage)
        if self.accountant is not None and not isinstance(self.accountant, BudgetAccountant):
            raise type_error("accountant", "be a BudgetAccountant or None", self.accountant)
        octave_edges(None, self.grid)  # refuses a grid that is none, before a charge
        delta, most = default_delta(self.delta, n), self.max_rows_per_group
        rows = 1 if most is None else check_integer("max_rows_per_group", most, at_least=1)
        return plan_ranges(epsilon, delta, numbers, categories, rows_per_person=rows)
