"""The number of records, where it is not public."""

from fastmix.accounting import LaplaceEvent
from fastmix.data import Rows
from fastmix.mechanisms.noise import Noise
from fastmix.mechanisms.sensitivity import size_sensitivity


def size_event(*, scale: float) -> LaplaceEvent:
    """Return the event of `noisy_size`."""
    return LaplaceEvent(scale, size_sensitivity())


def noisy_size(rows: Rows, *, scale: float, noise: Noise) -> int:
    """Release the number of records, or of persons, with Laplace noise; at least 1.

    Paper: beyond it; docs/proofs/rows.md.
    Sensitive inputs: rows.
    """
    law: dict[str, float] = {"sensitivity": size_sensitivity(), "ratio": scale, "tau": 0.0}
    return max(1, round(noise.bound(float(rows.n), above=True, law="laplace", **law)))
