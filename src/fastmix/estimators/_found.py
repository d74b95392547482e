"""Bounds that remember the release that found them."""

from typing import Any, NamedTuple


class BoundsRelease(NamedTuple):
    """Cost of a release that found bounds, and the rows per person that it protects.

    ``name`` distinguishes releases of the same cost.
    """

    epsilon: float
    delta: float
    rows_per_person: int | None
    name: str


class FoundBounds(tuple[Any, Any]):
    """Lower and upper bounds, as a tuple, with the release that found them."""

    release: BoundsRelease

    def __new__(cls, lower: Any, upper: Any, release: BoundsRelease) -> "FoundBounds":
        made = super().__new__(cls, (lower, upper))
        made.release = release
        return made

    def __reduce__(self) -> Any:
        return type(self), (*self, self.release)


class FoundNorm(float):
    """Length of the longest row of a table encoded by found bounds, with their release."""

    release: BoundsRelease

    def __new__(cls, norm: float, release: BoundsRelease) -> "FoundNorm":
        made = super().__new__(cls, norm)
        made.release = release
        return made

    def __reduce__(self) -> Any:
        return type(self), (float(self), self.release)


def found_like(given: Any, lower: Any, upper: Any) -> tuple[Any, Any]:
    """Return bounds with the release of the given bounds, if a release found those."""
    if isinstance(given, FoundBounds):
        return FoundBounds(lower, upper, given.release)
    return lower, upper


def found_releases(model: object) -> list[BoundsRelease]:
    """Return the releases that found the bounds of a model, each once."""
    given = (getattr(model, name, None) for name in ("bounds_X", "bounds_y", "data_norm"))
    found = (each.release for each in given if isinstance(each, (FoundBounds, FoundNorm)))
    return list(dict.fromkeys(found))
