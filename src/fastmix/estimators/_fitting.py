"""The order of a fit: it checks before it charges, and charges before it draws noise."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from fastmix._validation import unchained, usual_arithmetic
from fastmix.accounting import BudgetAccountant, PrivacySpent, noted
from fastmix.accounting.charge import NOTHING_CHARGED
from fastmix.accounting.notes import current_notes
from fastmix.data import Chunks, Report
from fastmix.data.arrow import file_chunks
from fastmix.data.dask import Cluster, dask_chunks, is_dask
from fastmix.data.scaling import PublicScaling
from fastmix.engine import Draws, Plan
from fastmix.engine.fit import COUNTED, LISTED, PLANNED_ROWS, check_labels, sized, solve_fit
from fastmix.engine.population import Population
from fastmix.errors import BudgetError, caller_level
from fastmix.estimators._frames import encoded, fit_files, fit_table
from fastmix.estimators._input import Arrays, InChunks, Source, features_to_predict
from fastmix.estimators._pipelines import declared_dummies, warn_of_fitted_steps
from fastmix.estimators._planning import Planning
from fastmix.estimators._results import Results
from fastmix.estimators.parameters import reasons_for_leaks
from fastmix.random import is_seeded, public_generator, warn_seeded
from fastmix.releases import Noise, make_noise
from fastmix.schema.categories import Categories
from fastmix.show.progress import progress

#: A number of rows for plans that are made before the hidden number is released.
SOME_ROWS = 10_000

#: Parts of an account that are charged before the fit, and their names in a refusal.
_FIRST = {COUNTED: "the number of rows", LISTED: "the check of labels"}


def _charges(
    plan: Plan, budget: BudgetAccountant | None, leaks: Sequence[str]
) -> list[PrivacySpent]:
    """Return the charges of a plan, after that of a hidden number of rows.

    The check of labels has its own, because the fit may stop there, if the budget covers both: one
    charge may use a whole budget, two may not, and a list of declared fits has each as a whole.
    """
    parts = plan.spent.parts[0 if plan.size_scale is None else 1 :]
    if plan.label_scale is None:
        return [PrivacySpent(parts)]
    both = [PrivacySpent(parts[:1]), PrivacySpent(parts[1:])]
    if budget is not None:
        try:
            budget.check(*both, leaks=leaks)
        except BudgetError:
            return [PrivacySpent(parts)]
    return both


class Fitting(Results, Planning):
    """Fits a copy of the estimator to data of any source, and takes over what it found."""

    def _fit_arrays(
        self,
        population: Population,
        X: Any,
        y: Any,
        groups: Any = None,
        weights: Any = None,
        categories: Any = None,
    ) -> Any:
        """Fit data in memory, or Dask collections."""
        with unchained(), usual_arithmetic():
            fitting = self._fitting(population, categories)
            if self.bounds is not None:
                fit_table(fitting, X, y, groups, weights)
            elif is_dask(X):
                fitting._fit(InChunks(dask_chunks(X, y, None, groups, weights)))
            else:
                fitting._fit(Arrays(X, y, groups, weights))
            return self._become(fitting)

    def _fit_files(
        self,
        population: Population,
        path: Any,
        target: str,
        features: Sequence[str] | None,
        client: Any,
        groups: str | None = None,
        weights: str | None = None,
        categories: Any = None,
    ) -> Any:
        """Fit Parquet or Arrow files."""
        executor = None if client is None else Cluster(client)
        with unchained(), usual_arithmetic():
            fitting = self._fitting(population, categories)
            if self.bounds is not None:
                fit_files(fitting, path, executor, target, features, groups, weights)
            else:
                table = file_chunks(path, target, features, executor, groups, weights)
                fitting._fit(InChunks(table))
            return self._become(fitting)

    def _fit_table(
        self, population: Population, table: Chunks, report: Report | None, categories: Any = None
    ) -> Any:
        """Fit a table in chunks."""
        if self.bounds is not None:
            raise ValueError(
                "bounds must be None for a table in chunks, whose columns are encoded already. "
                f"Pass bounds_X and {self._ends}."
            )
        with unchained(), usual_arithmetic():
            fitting = self._fitting(population, categories)
            fitting._fit(InChunks(table), report)
            return self._become(fitting)

    def _become(self, fitted: Any) -> Any:
        """Take over the attributes of the fitted copy in one step: no fit is half stored."""
        self.__dict__ = fitted.__dict__
        if (late := self.__dict__.pop("_late", None)) is not None:
            self._advise(*late)
        return self

    def _fit(self, data: Source, report: Report | None = None) -> None:
        self._check_parameters()
        warn_of_fitted_steps(self)
        found = declared_dummies(self.__dict__.pop("_given", None), data.columns)
        if found and not self._categories:
            self._dummies = found
        hidden = self._population.hidden
        accountant = self._budget()
        shape = None if hidden else data.shape
        planned = None if shape is None else self._planned(*shape)
        if accountant is not None and planned is not None:
            accountant.check(planned[1].spent, leaks=reasons_for_leaks(self, planned[1]))
        if hidden:
            data.check_shapes()
        d = data.check(self)
        scaling = self._scaling(data, warn=planned is None or planned[1].is_private)
        method = self._resolve()
        clip = scaling.clipping(getattr(method, "residual_clip", None))
        with progress(type(self).__name__, verbose=False) as bar:
            report = report or (bar.passed if hidden else bar.passing)
            rows = data.rows(scaling, report, in_blocks=method.in_blocks())
            if (known := self._categories or self._dummies) and method.tables:
                unit = 1.0 / scaling.row_map.divisor
                rows.categories = Categories(known, unit, self._unlisted)
            if planned is None or shape != (rows.n, d):
                planned = self._planned(SOME_ROWS if hidden else rows.n, d)
            if not hidden:
                self._advise(*planned, rows.n, d)
            noise, public = self._randomness(warn=planned[1].is_private)
            if hidden:
                counting = planned[1], noise, accountant
                rows = self._sized(rows, *counting, lambda n: self._planned(n, d)[1])
                planned = self._planned(rows.n, d)
            method, plan = planned
            self._pay(accountant, plan, rows, noise)
            draws = Draws(noise, public, partial(bar.step, last=method.last_step))
            solution = solve_fit(method, rows, plan, scaling, clip, draws)
        self._name_columns(d, data.names)
        table_rows = rows.n if hidden else data.table_rows
        self._store(method, plan, solution, scaling, rows.n, clip, noise.source, table_rows)
        if hidden:  # advice needs the released number, and a warning can be an error
            self._late = method, plan, rows.n, d

    def _scaling(self, data: Source, *, warn: bool = True) -> PublicScaling:
        """Return the public scaling of data by the bounds of the estimator."""
        return data.scaling(
            bounds_X=self.bounds_X,
            bounds_y=self._bounds_y(),
            data_norm=self.data_norm,
            fit_intercept=self.fit_intercept,
            warn=warn,
            dummies=self._dummies,
        )

    def _randomness(self, *, warn: bool = True) -> tuple[Noise, np.random.Generator]:
        """Return the secret noise of a fit, and the generator of its public choices.

        Public choices leave the secret stream alone, unless the caller seeds everything.
        """
        seeded = is_seeded(self.random_state)
        if seeded and warn:
            warn_seeded(stacklevel=caller_level() + 1)
        noise = self._make_noise()
        return noise, noise.rng if seeded else public_generator()

    def _name_columns(self, d: int, names: Any) -> None:
        """Store the number of features and their names, in place of those of an earlier fit."""
        self.n_features_in_ = d
        for name in ("feature_names_in_", "schema_"):
            self.__dict__.pop(name, None)
        if names is not None:
            self.feature_names_in_ = names

    def _sized(
        self,
        rows: Any,
        plan: Plan,
        noise: Noise,
        accountant: BudgetAccountant | None,
        planned: Callable[[int], Plan],
    ) -> Any:
        """Charge and release the number of rows, after every other check.

        The releases of the fit follow from the released number, so the budget must cover both
        charges for every number that a plan can be made for, by ``planned``.
        """
        if accountant is not None:
            for each in {planned(n).spent for n in PLANNED_ROWS}:
                both = PrivacySpent(each.parts[:1]), PrivacySpent(each.parts[1:])
                accountant.check(*both, leaks=reasons_for_leaks(self, plan))
        self._charge(accountant, plan, PrivacySpent(plan.spent.parts[:1]))
        return sized(rows, plan, noise)

    def _pay(
        self, accountant: BudgetAccountant | None, plan: Plan, rows: Any, noise: Noise
    ) -> None:
        """Charge a plan, after a hidden number of rows; check labels once their check is paid."""
        before = [] if plan.size_scale is None else [COUNTED]
        first, *later = _charges(plan, accountant, reasons_for_leaks(self, plan))
        self._charge(accountant, plan, first, before)
        if plan.label_scale is not None:
            check_labels(rows, plan, float(self.min_listed), noise, whole=not later)
        for spent in later:
            self._charge(accountant, plan, spent, [*before, LISTED])

    def _charge(
        self,
        accountant: BudgetAccountant | None,
        plan: Plan,
        spent: PrivacySpent,
        before: Sequence[str] = (),
    ) -> None:
        """Charge a part of a plan, if there is a budget; other parts were charged ``before``."""
        if accountant is None:
            return
        population = self._population
        label = population.charged(current_notes().get("label", type(self).__name__))
        names = [part.name for part in spent.parts]
        if names in ([COUNTED], [LISTED]):
            label += f", {names[0]}"
        with noted(label=label):  # the label says who is protected, also after a user's own name
            try:
                accountant.spend(
                    spent,
                    label=label,
                    leaks=reasons_for_leaks(self, plan),
                    rows_per_person=population.rows_per_person,
                    public_rows=not population.hidden,
                )
            except BudgetError as error:
                if not before:
                    raise
                said = str(error).removesuffix(NOTHING_CHARGED).rstrip()
                paid = " and ".join(_FIRST[name] for name in before)
                verb = "was" if len(before) == 1 else "were"
                told = f"{paid[0].upper()}{paid[1:]} {verb} charged and released before"
                raise BudgetError(f"{said} {told}; the fit was not.") from None

    def _features(self, X: Any) -> Any:
        """Return records as the columns of the coefficients; Dask collections stay as they are."""
        with unchained():
            if hasattr(self, "schema_"):
                return encoded(self, X)
            return X if is_dask(X) else features_to_predict(self, X)

    def _make_noise(self) -> Noise:
        """Return the secret noise of a fit."""
        return make_noise(self.random_state, warn=False)
