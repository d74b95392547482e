"""The number of records, where it is not public."""

import math

from fastmix.accounting import LaplaceEvent
from fastmix.data import Rows
from fastmix.mechanisms.noise import Noise
from fastmix.mechanisms.sensitivity import size_sensitivity

#: The number of records is above the bound that goes with it with probability e^-64 / 2.
_SAFE = 64.0


def size_event(*, scale: float) -> LaplaceEvent:
    """Return the event of `noisy_size`."""
    return LaplaceEvent(scale, size_sensitivity())


def noisy_size(rows: Rows, *, scale: float, noise: Noise) -> Rows:
    r"""Release the number of records with Laplace noise, and return the rows as if it were theirs.

    The number is at least 1. What bounds rounding errors is the released number and 64 scales of
    noise, which the number of records exceeds with probability :math:`e^{-64}/2`.

    Paper: beyond it; docs/proofs/rows.md.
    Sensitive inputs: rows.
    """
    law: dict[str, float] = {"sensitivity": size_sensitivity(), "ratio": scale, "tau": 0.0}
    released = noise.bound(float(rows.n), above=True, law="laplace", **law)
    n = max(1, round(released))
    return rows.counted(n, n + math.ceil(_SAFE * scale))
