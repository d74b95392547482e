"""Exact samples of the discrete Laplace and Gaussian distributions, by integers only.

The sampler of Canonne, Kamath and Steinke (*The Discrete Gaussian for Differential Privacy*, 2020)
for scales that are whole numbers. The compiled kernel and the Python version draw the same numbers
from the same bits (docs/proofs/exact_noise.md).
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from fastmix._validation import check_choice, check_integer
from fastmix.kernels._trust import kernel

__all__ = ["LARGEST_SCALE", "draw_discrete"]

#: Scales up to this leave room for every draw in 64 bits.
LARGEST_SCALE = 2**40


def draw_discrete(
    law: str, scale: int, size: int, rng: np.random.Generator
) -> npt.NDArray[np.int64]:
    """Draw ``size`` integers of the discrete "gaussian" or "laplace" distribution.

    Their probabilities are proportional to ``exp(-x**2 / (2 * scale**2))``, or to
    ``exp(-abs(x) / scale)``: exactly, if the bits of the generator are uniform and independent.
    """
    check_choice("law", law, ("gaussian", "laplace"))
    scale = check_integer("scale", scale, at_least=1, at_most=LARGEST_SCALE)
    out = np.empty(size, dtype=np.int64)
    compiled, bits = kernel("discrete"), rng.bit_generator
    with bits.lock:
        if compiled is not None:
            compiled(bits.capsule, law == "gaussian", scale, out)
        else:
            sampler = Sampler(rng)
            out[:] = [getattr(sampler, law)(scale) for _ in range(size)]
    return out


class Sampler:
    """The sampler in Python, one number at a time; the caller holds the generator's lock."""

    def __init__(self, rng: np.random.Generator) -> None:
        self._rng = rng  # which owns the memory of the state
        bits: Any = rng.bit_generator.ctypes
        self._next, self._state = bits.next_uint64, bits.state

    def laplace(self, t: int) -> int:
        """Return x with a probability proportional to exp(-|x| / t)."""
        while True:
            u = self._below(t)
            if not self._exp_minus(u, t):
                continue
            v = 0
            while self._exp_minus(1, 1):
                v += 1
            x, negative = u + t * v, self._below(2) == 1
            if not negative:
                return x
            if x:
                return -x

    def gaussian(self, t: int) -> int:
        """Return x with a probability proportional to exp(-x^2 / (2 t^2))."""
        while True:
            y = self.laplace(t)
            if self._exp_minus_half_square(abs(abs(y) - t), t):
                return y

    def _below(self, m: int) -> int:
        """Return a uniform integer in [0, m)."""
        if m == 1:
            return 0
        shift = 64 - (m - 1).bit_length()
        while (r := int(self._next(self._state)) >> shift) >= m:
            pass
        return r

    def _coin(self, a: int, b: int) -> bool:
        return self._below(b) < a

    def _exp_minus(self, a: int, b: int) -> bool:
        """Return True with the probability exp(-a / b), for a <= b.

        The number of successes in a row of coins a / (b k), k = 1, 2, ..., is then even.
        """
        k = 1
        while self._coin(a, b) and self._coin(1, k):
            k += 1
        return k % 2 == 1

    def _exp_minus_half_square(self, a: int, t: int) -> bool:
        """Return True with the probability exp(-a^2 / (2 t^2)).

        With a = q t + r the exponent is q^2 times 1/2, plus q times r / t, plus r^2 / (2 t^2).
        """
        q, r = divmod(a, t)
        if not all(self._exp_minus(1, 2) for _ in range(q * q)):
            return False
        if not all(self._exp_minus(r, t) for _ in range(q)):
            return False
        k = 1
        while self._coin(r, t) and self._coin(r, t) and self._coin(1, 2 * k):
            k += 1
        return k % 2 == 1
