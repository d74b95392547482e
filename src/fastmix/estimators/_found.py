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
        return type(self), (*self, self.epsilon, self.delta, self.rows_per_person)


def found_bounds(model: object) -> FoundBounds | None:
    """Return bounds of a model that were found privately, if there are any."""
    given = (getattr(model, name, None) for name in ("bounds_X", "bounds_y"))
    return next((each for each in given if isinstance(each, FoundBounds)), None)


def check_found(found: FoundBounds | None, *, persons: bool, public_rows: bool) -> None:
    """Refuse bounds whose release protects less than the fit."""
    if found is None:
        return
    if not public_rows:
        raise ValueError(
            "public_rows must be True with bounds that were found privately, because the number of "
            "rows is public then. Take bounds from public knowledge."
        )
    if persons and found.rows_per_person is None:
        raise ValueError(
            "bounds that were found privately must protect persons if the fit does: find them "
            "with groups, or take public ones."
        )
