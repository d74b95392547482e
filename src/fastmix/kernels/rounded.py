"""Gaussian and Laplace noise added to a number and rounded down, exactly, by integers only.

What is drawn is ``floor(f + t z)`` for a continuous z: the sampler makes the digits of a real
number, and as many of them as its choices need. Its coins are those of Canonne, Kamath and Steinke
(*The Discrete Gaussian for Differential Privacy*, 2020), for real numbers in the manner of Karney
(*Sampling exactly from the normal distribution*, 2016). The compiled kernel and the Python version
draw the same numbers from the same bits (docs/proofs/exact_noise.md).
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from fastmix._types import FloatArray
from fastmix._validation import check_choice, check_integer, value_error
from fastmix.kernels._trust import kernel

__all__ = ["LARGEST_SCALE", "draw_rounded"]

#: Scales up to this leave room for every draw in 64 bits.
LARGEST_SCALE = 2**40


def draw_rounded(
    law: str, scale: int, fractions: FloatArray, rng: np.random.Generator
) -> npt.NDArray[np.int64]:
    """Draw ``floor(f + scale * z)`` for each of the fractions f, which lie in (-1, 1).

    The z are independent, of the "gaussian" or "laplace" distribution of scale 1. The law is
    exactly this one, if the bits of the generator are uniform and independent.
    """
    check_choice("law", law, ("gaussian", "laplace"))
    scale = check_integer("scale", scale, at_least=1, at_most=LARGEST_SCALE)
    fractions = np.ascontiguousarray(fractions, dtype=np.float64)
    if not (np.abs(fractions) < 1.0).all():
        raise value_error("fractions", "lie in (-1, 1)", "others")
    out = np.empty(fractions.shape, dtype=np.int64)
    compiled, bits = kernel("rounded"), rng.bit_generator
    with bits.lock:
        if compiled is not None:
            compiled(bits.capsule, law == "gaussian", scale, fractions.ravel(), out.reshape(-1))
        else:
            draw = getattr(Sampler(rng, scale), law)
            out[...] = np.reshape([draw(f) for f in fractions.flat], out.shape)
    return out


class Sampler:
    """The sampler in Python, one number at a time; the caller holds the generator's lock.

    A real draw is t (v + x) with x = (u + w) / t: whole numbers v and u < t, and a fraction w whose
    digits of 64 bits are drawn when a choice needs them.
    """

    def __init__(self, rng: np.random.Generator, t: int) -> None:
        self._rng = rng  # which owns the memory of the state
        bits: Any = rng.bit_generator.ctypes
        self._next, self._state = bits.next_uint64, bits.state
        self._t, self._u = t, 0
        self._digits: list[int] = []

    def laplace(self, f: float) -> int:
        """Return floor(f + t z) for z of the Laplace distribution."""
        return self._floored(self._magnitude(), f)

    def gaussian(self, f: float) -> int:
        """Return the same for z of the normal distribution."""
        while not self._kept(v := self._magnitude()):
            pass
        return self._floored(v, f)

    def _magnitude(self) -> int:
        """Draw v and x such that v + x has the exponential distribution; return v."""
        while True:
            self._u, self._digits = self._below(self._t), []
            if self._exp_minus_x():
                break
        v = 0
        while self._exp_minus_one_over(1):
            v += 1
        return v

    def _below(self, m: int) -> int:
        """Return a uniform integer in [0, m)."""
        if m == 1:
            return 0
        shift = 64 - (m - 1).bit_length()
        while (r := self._word() >> shift) >= m:
            pass
        return r

    def _word(self) -> int:
        return int(self._next(self._state))

    def _digit(self, i: int) -> int:
        if i == len(self._digits):
            self._digits.append(self._word())
        return self._digits[i]

    def _less_than_x(self) -> bool:
        """Return True with the probability x: a uniform number is smaller."""
        u, i = self._below(self._t), 0
        if u != self._u:
            return u < self._u
        while (own := self._digit(i)) == (other := self._word()):
            i += 1
        return other < own

    def _exp_minus_x(self) -> bool:
        """Return True with the probability exp(-x).

        The number of successes in a row of coins x / k, k = 1, 2, ..., is then even.
        """
        k = 1
        while self._less_than_x() and self._below(k) == 0:
            k += 1
        return k % 2 == 1

    def _exp_minus_one_over(self, m: int) -> bool:
        """Return True with the probability exp(-1 / m)."""
        k = 1
        while self._below(m) == 0 and self._below(k) == 0:
            k += 1
        return k % 2 == 1

    def _kept(self, v: int) -> bool:
        """Return True with the probability exp(-(v + x - 1)^2 / 2).

        For v >= 1 the exponent is the sum of q^2 times 1/2, q times x, and x^2 / 2, with q = v - 1;
        for v = 0 it is (1 - x)^2 / 2.
        """
        q = max(0, v - 1)
        if not all(self._exp_minus_one_over(2) for _ in range(q * q)):
            return False
        if not all(self._exp_minus_x() for _ in range(q)):
            return False
        inside, k = v != 0, 1
        while (
            self._less_than_x() == inside
            and self._less_than_x() == inside
            and self._below(2 * k) == 0
        ):
            k += 1
        return k % 2 == 1

    def _floored(self, v: int, f: float) -> int:
        """Return floor(f + s (N + w)) for N = t v + u and a random sign s."""
        whole = self._u + self._t * v
        if self._below(2) == 0:
            return whole - (not self._exceeds(-f)) if f < 0.0 else whole + self._carries(f)
        return -whole - 1 - self._carries(-f) if f < 0.0 else -whole - self._exceeds(f)

    def _carries(self, f: float) -> bool:
        """Whether w + f >= 1."""
        i = 0
        while True:
            left = 2**64 - 1 - self._digit(i)
            own, f = divmod(f * 2.0**64, 1.0)
            if own != left:
                return own > left
            i += 1

    def _exceeds(self, f: float) -> bool:
        """Whether w > f."""
        i = 0
        while True:
            drawn = self._digit(i)
            own, f = divmod(f * 2.0**64, 1.0)
            if drawn != own:
                return drawn > own
            i += 1
