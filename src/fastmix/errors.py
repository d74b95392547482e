"""Exceptions and warnings of fastmix."""

import sys
import warnings
from typing import ClassVar

__all__ = [
    "BudgetError",
    "CalibrationError",
    "DataError",
    "InvalidValueError",
    "KernelWarning",
    "LowAccuracyWarning",
    "MixedUnitsWarning",
    "PrivacyLeakWarning",
    "ReproducibleNoiseWarning",
    "WeakPrivacyWarning",
    "caller_level",
]


class CalibrationError(ValueError):
    """No parameter on the private side of the target was found."""


class BudgetError(ValueError):
    """A release would exceed the privacy budget; raised before any noise is drawn."""


class DataError(ValueError):
    """A table cannot be read or does not match its bounds file; the message quotes no value."""


class InvalidValueError(DataError, TypeError):
    """A value of the data is missing, infinite or not a number.

    Class and message are the same whatever the value is and wherever it is: the error says no more
    than that there is one.
    """

    MESSAGE: ClassVar[str] = (
        "each data argument must be free of missing values, NaN, infinity, strings, dates and "
        "everything else that is not a finite real number. Remove or replace such values first, "
        "by a rule that looks at one record at a time. This message does not name the value or "
        "its place, because that could reveal data."
    )

    def __init__(self, message: str = MESSAGE) -> None:
        super().__init__(message)


class KernelWarning(RuntimeWarning):
    """Compiled kernels differ from NumPy on this machine: NumPy takes over, results are right."""


class LowAccuracyWarning(RuntimeWarning):
    """Public sizes say that privacy will cost most of what there is to learn; nothing is spent."""


class MixedUnitsWarning(RuntimeWarning):
    """A ledger charges fits of single rows and fits of persons for the same table."""


class PrivacyLeakWarning(RuntimeWarning):
    """A quantity that must be public was computed from the data: the guarantee does not hold."""


class ReproducibleNoiseWarning(RuntimeWarning):
    """Noise came from a seed: whoever knows or guesses it can subtract the noise."""


class WeakPrivacyWarning(RuntimeWarning):
    """Epsilon or delta is so large that the guarantee says little; nothing is spent yet."""


# Shown at every fit, not once a location; filters that a user sets come first and win.
warnings.filterwarnings("always", category=PrivacyLeakWarning, append=True)


def caller_level() -> int:
    """Return the ``stacklevel`` with which a warning points at the code that called fastmix."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and _inside(frame.f_globals.get("__name__", "")):
        level, frame = level + 1, frame.f_back
    return level


def _inside(module: str) -> bool:
    return module == "fastmix" or module.startswith("fastmix.")
