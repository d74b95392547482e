"""The one place where a NumPy ``Generator`` is made.

*Secret* noise carries the guarantee.  Unless the caller seeds it, for tests and experiments, it
comes from AES-128 in counter mode, keyed by the operating system, freshly for every request: no
state is shared between calls, threads, forks or pickled copies, so noise is never repeated.
*Public* randomness chooses sketches: it may be published, so a fast generator is enough.
"""

import secrets
import warnings
from typing import TypeAlias

import numpy as np
from randomgen import AESCounter

from fastmix._validation import type_error, value_error
from fastmix.errors import ReproducibleNoiseWarning

__all__ = [
    "RandomState",
    "is_seeded",
    "public_generator",
    "secret_generator",
    "warn_seeded",
]

#: Whether this process has been told that its noise is seeded.
_told = False

RandomState: TypeAlias = int | np.integer | np.random.RandomState | np.random.Generator | None


def secret_generator(random_state: RandomState = None, *, warn: bool = True) -> np.random.Generator:
    """Return the generator for draws that the privacy guarantee depends on."""
    if random_state is None:
        return np.random.Generator(AESCounter(key=secrets.randbits(128)))
    generator = _seeded(random_state)
    if warn and generator is not random_state:
        warn_seeded(stacklevel=4)
    return generator


def public_generator(random_state: RandomState = None) -> np.random.Generator:
    """Return the generator for public choices, such as the rows of a sketch."""
    return np.random.default_rng() if random_state is None else _seeded(random_state)


def is_seeded(random_state: RandomState) -> bool:
    """Tell whether noise drawn with this ``random_state`` could be reproduced by its owner."""
    return random_state is not None


def warn_seeded(*, stacklevel: int = 3) -> None:
    """Tell the user that the noise is reproducible, once per process.

    Python's own "once" forgets what it has shown whenever any library touches the filters.
    """
    global _told
    if not _told:
        message = (
            "the noise is seeded, so whoever knows the seed can remove it and the result is NOT "
            "private. Leave random_state=None for real data."
        )
        warnings.warn(message, ReproducibleNoiseWarning, stacklevel=stacklevel)
        _told = True


def _seeded(random_state: RandomState) -> np.random.Generator:
    if isinstance(random_state, np.random.Generator):
        return random_state
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(0, 2**32, size=8, dtype=np.uint64))
    if isinstance(random_state, (int, np.integer)) and not isinstance(random_state, bool):
        if random_state < 0:
            raise value_error("random_state", "not be negative", random_state)
        return np.random.default_rng(int(random_state))
    raise type_error("random_state", "be None, an int, a RandomState or a Generator", random_state)
