"""Bounds that remember that they were found privately, and what that cost."""

from typing import Any


class FoundBounds(tuple[Any, Any]):
    """Lower and upper bounds, as a tuple, with the account of the release that found them."""

    epsilon: float
    delta: float
    rows_per_person: int | None

    def __new__(
        cls, lower: Any, upper: Any, epsilon: float, delta: float, rows_per_person: int | None
    ) -> "FoundBounds":
        made = super().__new__(cls, (lower, upper))
        made.epsilon, made.delta, made.rows_per_person = epsilon, delta, rows_per_person
        return made

    def __reduce__(self) -> Any:
        return type(self), (*self, *self.release)

    @property
    def release(self) -> tuple[float, float, int | None]:
        """What the release that found them cost, and the rows of a person that it protects."""
        return self.epsilon, self.delta, self.rows_per_person


def found_like(given: Any, lower: Any, upper: Any) -> tuple[Any, Any]:
    """Return bounds that were found as the given ones were, if these were found."""
    if isinstance(given, FoundBounds):
        return FoundBounds(lower, upper, *given.release)
    return lower, upper


def found_bounds(model: object) -> list[FoundBounds]:
    """Return bounds of a model that were found privately, one of each release."""
    given = (getattr(model, name, None) for name in ("bounds_X", "bounds_y"))
    found = {each.release: each for each in given if isinstance(each, FoundBounds)}
    return list(found.values())


def check_found(found: list[FoundBounds], *, persons: bool, public_rows: bool) -> None:
    """Refuse bounds whose release protects less than the fit."""
    if found and not public_rows:
        raise ValueError(
            "public_rows must be True with bounds that were found privately, because the number of "
            "rows is public then. Take bounds from public knowledge."
        )
    if persons and any(each.rows_per_person is None for each in found):
        raise ValueError(
            "bounds that were found privately must protect persons if the fit does: find them "
            "with groups, or take public ones."
        )
