"""The part of the estimators that plans a fit: from parameters and public sizes, without data."""

import warnings
from collections.abc import Sequence
from dataclasses import fields
from typing import Any, ClassVar

from fastmix._validation import check_integer, value_error
from fastmix.accounting import BudgetAccountant, Part, PrivacySpent, noted
from fastmix.accounting.budget import NOTHING_CHARGED
from fastmix.accounting.notes import current_notes
from fastmix.engine import Method, Plan, Sizes, Target
from fastmix.engine.fit import COUNTED, default_delta, plan_fit
from fastmix.engine.forecast import concerns
from fastmix.errors import BudgetError
from fastmix.estimators._found import found_releases
from fastmix.estimators._labels import Codec, NumberCodec
from fastmix.estimators.parameters import check_parameters, reasons_for_leaks
from fastmix.schema.bounds import check_protection

#: What a refusal says after the number of rows was paid for.
_BEFORE = "The number of rows was charged and released before; the fit was not."


class Planned:
    """Parameters as they are checked, and the plan that follows from them."""

    epsilon: float
    delta: float | None
    bounds_X: Any
    data_norm: float | None
    fit_intercept: bool
    inference: bool
    noise: str
    max_rows_per_group: int | None
    score_share: float
    max_weight: float | None
    public_rows: bool

    #: Encoded columns of each category of a table, without its first level.
    _categories: tuple[tuple[int, ...], ...] = ()
    #: The algorithm, whose parameters are those that an estimator adds to the common ones.
    _method: ClassVar[type[Method]]

    def account(self, n_samples: int, n_features: int) -> PrivacySpent:
        """Return the account of a fit of this size, as it would be charged; reads no data.

        Parameters
        ----------
        n_samples, n_features : int
            Shape of the data; with ``max_rows_per_group`` the first is the number of persons.

        Returns
        -------
        fastmix.accounting.PrivacySpent
            The events of the fit with their epsilon and delta.
        """
        self._check_parameters()
        n = check_integer("n_samples", n_samples, at_least=1)
        d = check_integer("n_features", n_features, at_least=1)
        return self._planned(n, d)[1].spent

    def _resolve(self, columns: int | None = None) -> Method:
        """Return the algorithm with its parameters, for so many columns with the intercept."""
        names = [field.name for field in fields(self._method) if hasattr(self, field.name)]
        return self._method(**{name: getattr(self, name) for name in names})

    def _check_parameters(self) -> None:
        check_parameters(self)
        self._resolve().check()

    def _check_counting(self, grouped: bool, weighted: bool) -> None:
        """Refuse ids or weights without their public bound, and a bound without them."""
        self._check_parameters()
        found = [each.rows_per_person for each in found_releases(self)]
        check_protection(found, persons=grouped, public_rows=self.public_rows)
        for name, bound, given in (
            ("groups", "max_rows_per_group", grouped),
            ("sample_weight", "max_weight", weighted),
        ):
            if given and getattr(self, bound) is None:
                raise value_error(bound, f"be given with {name}", None)
            if not given and getattr(self, bound) is not None:
                raise value_error(bound, f"be None without {name}", getattr(self, bound))

    def _codec(self) -> Codec:
        """Return the map of targets to [-1, 1]."""
        return NumberCodec()

    def _sizes(self, n: int, d: int) -> Sizes:
        """Return the public sizes; n counts persons if there are groups."""
        given: dict[str, Any] = {"bounds_X": self.bounds_X, "data_norm": self.data_norm}
        given["rows_per_person"] = self.max_rows_per_group
        given |= {"weighted": self.max_weight is not None, "hidden": not self.public_rows}
        given["categories"] = tuple(map(len, self._categories))
        return Sizes.of(n, d, intercept=self.fit_intercept, **given)

    def _target(self, n: int) -> Target:
        return Target(float(self.epsilon), default_delta(self.delta, n))

    def _planned(self, n: int, d: int) -> tuple[Method, Plan]:
        """Return the algorithm and its plan for n rows and d features."""
        sizes = self._sizes(n, d)
        method = self._resolve(sizes.d)
        plan = plan_fit(
            method,
            sizes,
            self._target(n),
            inference=self.inference,
            noise=self.noise,
            score_share=float(self.score_share),
        )
        return method, plan

    def _charge(
        self, accountant: BudgetAccountant | None, plan: Plan, parts: Sequence[Part]
    ) -> None:
        """Charge parts of a plan, if there is a budget."""
        if accountant is None:
            return
        label = current_notes().get("label", type(self).__name__)
        if plan.rows_per_person is not None:
            label += f", per person of up to {plan.rows_per_person} rows"
        if [part.name for part in parts] == [COUNTED]:
            label += ", number of rows"
        with noted(label=label):  # who is protected is told beside a name of the user's, too
            try:
                accountant.spend(
                    PrivacySpent(parts),
                    label=label,
                    leaks=reasons_for_leaks(self, plan),
                    rows_per_person=plan.rows_per_person,
                    public_rows=self.public_rows,
                )
            except BudgetError as error:
                if plan.size_scale is None or parts[0].name == COUNTED:
                    raise
                said = str(error).removesuffix(NOTHING_CHARGED).rstrip()
                raise BudgetError(f"{said} {_BEFORE}") from None

    def _advise_late(self) -> Any:
        """Give the advice on a fit that has released its number of rows: the model is stored."""
        late = self.__dict__.pop("_late", None)
        if late is not None:
            self._advise(*late)
        return self

    def _advise(self, method: Method, plan: Plan, n: int, d: int) -> None:
        """Warn of a weak guarantee or a useless fit, before anything is charged."""
        for category, message in concerns(method, plan, self._sizes(n, d), self._target(n)):
            warnings.warn(message, category, stacklevel=4)  # the caller of `fit`
