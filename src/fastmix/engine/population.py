"""Who a fit protects: rows or persons, weighted or not, and a number that is public or released.

A `Population` owns every sentence about the people in a table, and the table of what methods
support. Estimators, certificates and the command line ask it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from fastmix._validation import check_integer, check_real, value_error

if TYPE_CHECKING:
    from fastmix.engine.plan import Method

#: Largest ``max_rows_per_group``, and the range of ``max_weight``.
_MOST_ROWS = 10**9
_LEAST_WEIGHT, _MOST_WEIGHT = 1e-100, 1e100


class Support(NamedTuple):
    """A kind of population that only some methods support."""

    parameter: str  #: What an estimator is given.
    option: str  #: What the command line is given.
    flag: str  #: The attribute of `Method` that says whether a method supports it.
    why: str  #: What the other methods do.


#: What a fit may ask for beside single rows of a public number that all count alike.
GROUPS = Support("groups", "--person", "persons", "protects single rows only")
WEIGHTS = Support("sample_weight", "--weight", "weights", "counts all rows alike")
HIDDEN = Support("public_rows=False", "--private-rows", "weights", "shows the number of rows")


@dataclass(frozen=True)
class Population:
    """The people or rows that a fit protects."""

    #: Number of persons, or of rows where no persons are protected; None before they are counted.
    n: int | None = None
    #: Rows of a person that count at most; None protects single rows.
    rows_per_person: int | None = None
    #: Public bound on the sample weights; None counts all rows alike.
    max_weight: float | None = None
    #: Whether n is released with noise, not public.
    hidden: bool = False

    @classmethod
    def given(
        cls,
        *,
        groups: bool,
        sample_weight: bool,
        max_rows_per_group: Any,
        max_weight: Any,
        public_rows: Any,
    ) -> Population:
        """Return the population that the arguments of a fit describe, after checking them."""
        if groups and max_rows_per_group is None:
            raise value_error("max_rows_per_group", "be given with groups", None)
        if not groups and max_rows_per_group is not None:
            raise value_error("max_rows_per_group", "be None without groups", max_rows_per_group)
        if groups:
            name = "max_rows_per_group"
            max_rows_per_group = check_integer(
                name, max_rows_per_group, at_least=1, at_most=_MOST_ROWS
            )
        most = check_real("max_weight", max_weight, at_least=_LEAST_WEIGHT, at_most=_MOST_WEIGHT)
        if not sample_weight and most != 1.0:
            raise value_error("max_weight", "be 1 without sample_weight", max_weight)
        weight = most if sample_weight else None
        return cls(None, max_rows_per_group, weight, not public_rows)

    @classmethod
    def certified(cls, data: dict[str, Any], parameters: dict[str, Any]) -> Population:
        """Return the population of a fit from its certificate."""
        n = data.get("n_persons", data["n_samples"])
        hidden = not parameters.get("public_rows", True)
        return cls(n, data.get("max_rows_per_person"), data.get("max_weight"), hidden)

    @property
    def persons(self) -> bool:
        """Whether persons are protected, not single rows."""
        return self.rows_per_person is not None

    @property
    def weighted(self) -> bool:
        """Whether rows have sample weights."""
        return self.max_weight is not None

    @property
    def unit(self) -> str:
        """Who is protected, in the singular: a row or a person."""
        return "person" if self.persons else "row"

    @property
    def units(self) -> str:
        """Who is protected, in the plural."""
        return f"{self.unit}s"

    @property
    def neighbour(self) -> str:
        """What is present in one of two neighbouring tables and absent in the other."""
        if self.rows_per_person is None:
            return "record"
        return f"person (of whom at most {self.rows_per_person:,} rows count)"

    @property
    def protected(self) -> str:
        """Who is protected, for a summary."""
        rows = "1 row" if self.rows_per_person == 1 else f"{self.rows_per_person or 1:,} rows"
        return f"persons with up to {rows}"

    def charged(self, label: str) -> str:
        """Return the label of a charge, which says whether it protects persons."""
        if self.rows_per_person is None:
            return label
        return f"{label}, per person of up to {self.rows_per_person} rows"

    def size(self, rows: int | None = None) -> str:
        """Return the number of rows and persons, as far as it is public or was released."""
        if self.hidden:
            return f"about {self.n:,} {self.units} (released with noise)"
        return f"{rows:,} rows of {self.n:,} persons" if self.persons else f"{self.n:,} rows"

    def needs(self) -> list[Support]:
        """Return what a method must support to fit this population."""
        asked = {GROUPS: self.persons, WEIGHTS: self.weighted, HIDDEN: self.hidden}
        return [support for support, holds in asked.items() if holds]

    def unsupported(self, method: Method | type[Method]) -> Support | None:
        """Return what a method does not support, None if it can fit this population."""
        return next((each for each in self.needs() if not getattr(method, each.flag)), None)

    def check(self, method: Method, *, epsilon: float, inference: bool, score_share: float) -> None:
        """Reject a fit that the method, or any method, does not offer for this population."""
        if (missing := self.unsupported(method)) is not None:
            how = "be True" if missing is HIDDEN else "not be given"
            raise ValueError(
                f"{missing.parameter.split('=')[0]} must {how} for method {method.name!r}, which "
                f"{missing.why}. Use 'adaptive' or 'objective'."
            )
        for each in self.needs():
            if math.isinf(epsilon):
                raise value_error("epsilon", f"be finite with {each.parameter}", epsilon)
        if score_share and not method.reserves:
            raise value_error("score_share", f"be 0 for method {method.name!r}", score_share)
        if inference and not method.infers:
            raise value_error("inference", f"be False for method {method.name!r}", inference)

    def of_scores(
        self, *, groups: bool, sample_weight: bool, max_rows_per_group: Any, max_weight: Any
    ) -> Population:
        """Return the population of scores of a model; bounds that are not given are the fit's."""
        if self.persons and not groups:
            raise ValueError(
                "groups must be given: this model protects persons, and scores without groups "
                "would protect single rows only. Pass the id of the person of each row; if each "
                "row is a person of its own, pass a different id for each row."
            )
        if groups and max_rows_per_group is None:
            max_rows_per_group = self.rows_per_person
        if max_weight is None:
            max_weight = self.max_weight if sample_weight and self.weighted else 1.0
        return Population.given(
            groups=groups,
            sample_weight=sample_weight,
            max_rows_per_group=max_rows_per_group,
            max_weight=max_weight,
            public_rows=not self.hidden,
        )

    @property
    def present(self) -> str:
        """The neighbours of a release, for the end of a sentence."""
        one = self.neighbour if self.persons else "row"
        return f"one {one} {'added or removed' if self.hidden else 'present or absent'}"
