"""The one place where a NumPy ``Generator`` is made.

Two kinds of randomness are kept apart.

*Secret* noise carries the guarantee.  Unless the caller seeds it, it comes from AES-128
in counter mode, keyed by the operating system, freshly for every request: no state is
shared between calls, threads, forks or pickled copies, so noise is never repeated.

*Public* randomness chooses sketches.  The guarantee does not depend on it; it may be
published, so a fast generator is enough.
"""

from __future__ import annotations

import secrets
from typing import TypeAlias

import numpy as np
from randomgen import AESCounter

from fastmix._validation import type_error, value_error

__all__ = ["RandomState", "is_seeded", "public_generator", "secret_generator"]

RandomState: TypeAlias = int | np.integer | np.random.RandomState | np.random.Generator | None


def secret_generator(random_state: RandomState = None) -> np.random.Generator:
    """Return the generator for draws that the privacy guarantee depends on.

    Parameters
    ----------
    random_state : None, int, RandomState or Generator
        ``None`` gives a cryptographic generator keyed by the operating system. Anything else
        makes the noise reproducible, which voids the guarantee: for tests and experiments only.

    Returns
    -------
    numpy.random.Generator
        A fresh generator; a ``Generator`` passed in is returned as it is.
    """
    if random_state is None:
        return np.random.Generator(AESCounter(key=secrets.randbits(128)))
    return _seeded(random_state)


def public_generator(random_state: RandomState = None) -> np.random.Generator:
    """Return the generator for public choices, such as the rows of a sketch.

    Parameters
    ----------
    random_state : None, int, RandomState or Generator
        As in `secret_generator`; ``None`` seeds a fast generator from the operating system.

    Returns
    -------
    numpy.random.Generator
        A fresh generator; a ``Generator`` passed in is returned as it is.
    """
    if random_state is None:
        return np.random.default_rng()
    return _seeded(random_state)


def is_seeded(random_state: RandomState) -> bool:
    """Tell whether noise drawn with this ``random_state`` could be reproduced by its owner."""
    return random_state is not None


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
