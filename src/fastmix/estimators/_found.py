"""Bounds that remember that they were found privately, and what that cost."""

from typing import Any, NamedTuple


class Release(NamedTuple):
    """What a release that found bounds cost, and the rows of a person that it protects.

    ``name`` tells releases of the same cost apart.
    """

    epsilon: float
    delta: float
    rows_per_person: int | None
    name: str


class FoundBounds(tuple[Any, Any]):
    """Lower and upper bounds, as a tuple, with the release that found them."""

    release: Release

    def __new__(cls, lower: Any, upper: Any, release: Release) -> "FoundBounds":
        made = super().__new__(cls, (lower, upper))
        made.release = release
        return made

    def __reduce__(self) -> Any:
        return type(self), (*self, self.release)


class FoundNorm(float):
    """Longest row of a table that was encoded by found bounds, with their release."""

    release: Release

    def __new__(cls, norm: float, release: Release) -> "FoundNorm":
        made = super().__new__(cls, norm)
        made.release = release
        return made

    def __reduce__(self) -> Any:
        return type(self), (float(self), self.release)


def found_like(given: Any, lower: Any, upper: Any) -> tuple[Any, Any]:
    """Return bounds that were found as the given ones were, if these were found."""
    if isinstance(given, FoundBounds):
        return FoundBounds(lower, upper, given.release)
    return lower, upper


def found_releases(model: object) -> list[Release]:
    """Return the releases that found bounds of a model, each of them once."""
    given = (getattr(model, name, None) for name in ("bounds_X", "bounds_y", "data_norm"))
    found = (each.release for each in given if isinstance(each, (FoundBounds, FoundNorm)))
    return list(dict.fromkeys(found))


def check_found(found: list[Release], *, persons: bool, public_rows: bool) -> None:
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
