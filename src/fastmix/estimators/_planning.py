"""The plan of an estimator's fit, from its parameters and public sizes."""

import warnings
from dataclasses import replace
from typing import Any

from fastmix._validation import check_integer, value_error
from fastmix.accounting import PrivacySpent
from fastmix.engine import Method, Plan, Sizes, Target
from fastmix.engine.fit import default_delta, plan_fit
from fastmix.engine.forecast import concerns
from fastmix.engine.population import Population
from fastmix.errors import caller_level
from fastmix.estimators.parameters import Parameters
from fastmix.schema.categories import dummy_columns


class Planning(Parameters):
    """Plans fits, and warns of useless ones."""

    def account(
        self,
        n_samples: int,
        n_features: int,
        *,
        max_rows_per_group: int | None = None,
        weighted: bool = False,
        categories: Any = None,
    ) -> PrivacySpent:
        """Return the account of a fit of this size, as it would be charged; reads no data.

        Parameters
        ----------
        n_samples, n_features : int
            Shape of the data; with ``max_rows_per_group`` the first is the number of persons.
        max_rows_per_group : int, default=None
            The public number of rows of a person that count at most, for a fit with groups.
        weighted : bool, default=False
            Whether the fit has sample weights.
        categories : list of lists of int, default=None
            Places of the columns of dummies, one list per category; see `fit`.

        Returns
        -------
        fastmix.accounting.PrivacySpent
            The events of the fit with their epsilon and delta.
        """
        grouped = max_rows_per_group is not None
        fitting = self._fitting(self._counting(grouped, weighted, max_rows_per_group, 1.0))
        n = check_integer("n_samples", n_samples, at_least=1)
        d = check_integer("n_features", n_features, at_least=1)
        fitting._dummies = () if categories is None else dummy_columns(categories, d)
        spent: PrivacySpent = fitting._planned(n, d)[1].spent
        return spent

    def _counting(
        self, grouped: bool, weighted: bool, max_rows_per_group: Any, max_weight: Any
    ) -> Population:
        """Return the population of a fit, or raise an error that names a wrong argument."""
        return Population.given(
            groups=grouped,
            sample_weight=weighted,
            max_rows_per_group=max_rows_per_group,
            max_weight=max_weight,
            public_rows=self.public_rows,
        )

    def _fitting(self, population: Population, categories: Any = None) -> Any:
        """Return a copy to fit, whose parameters are checked for a population."""
        if self.bounds is not None and categories is not None:
            raise value_error("categories", "be None when bounds are given", categories)
        fitting = object.__new__(type(self))
        fitting.__dict__.update(self.__dict__)
        fitting.__dict__.pop("_dummies", None)  # of an earlier fit
        fitting._population, fitting._given = population, categories
        fitting._check_parameters()
        return fitting

    def _planned(self, n: int, d: int) -> tuple[Method, Plan]:
        """Return the method and its plan for n rows, or persons, and d features.

        The plan is calibrated for the budget of the fit (`engine.choice`); for a budget that pays
        for a list of fits, it is the plan on the list.
        """
        budget, method, target = self._budget(), self._resolve(), self._target(n)

        def planned(order: float | None) -> Plan:
            return plan_fit(
                method,
                self._sizes(n, d),
                target._replace(order=order),
                inference=self.inference,
                score_share=float(self.score_share),
                min_listed=float(self.min_listed),
            )

        plan = planned(None if budget is None else budget.order)
        if budget is not None and plan.budget_order is not None and not budget.lists(plan.spent):
            plan = planned(None)
        return method, plan

    def _sizes(self, n: int, d: int) -> Sizes:
        """Return the public sizes; n counts persons if there are groups."""
        return Sizes.of(
            n,
            d,
            intercept=self.fit_intercept,
            bounds_X=self.bounds_X,
            data_norm=self.data_norm,
            population=replace(self._population, hidden=not self.public_rows),
            categories=tuple(map(len, self._categories or self._dummies)),
        )

    def _target(self, n: int) -> Target:
        return Target(float(self.epsilon), default_delta(self.delta, n))

    def _advise(self, method: Method, plan: Plan, n: int, d: int) -> None:
        """Warn of a weak guarantee or a useless fit."""
        for category, message in concerns(method, plan, self._sizes(n, d), self._target(n)):
            warnings.warn(message, category, stacklevel=caller_level())
