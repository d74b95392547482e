"""Checks of what the user of the reproduction may choose, in the words of fastmix's own errors."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

__all__ = ["check_new", "check_one_of", "require"]


def require(name: str, condition: str, met: bool, value: object) -> None:
    """Raise ``ValueError`` unless a condition on a named value is met.

    Parameters
    ----------
    name : str
        Name of the value.
    condition : str
        What must hold, to follow "must".
    met : bool
        Whether it holds.
    value : object
        The value.
    """
    if not met:
        raise ValueError(f"{name} must {condition}; got {name}={value!r}.")


def check_one_of(name: str, value: str, choices: Iterable[str]) -> str:
    """Return a value that must be one of the choices."""
    choices = tuple(choices)
    require(name, f"be one of {', '.join(map(repr, choices))}", value in choices, value)
    return value


def check_new(*paths: Path, force: bool) -> None:
    """Refuse to replace files and folders that exist, unless asked to, before any work is done."""
    for path in paths:
        if path.exists() and not force:
            raise ValueError(
                f"{str(path)!r} already exists. Choose another name, or pass --force to replace it."
            )
