"""Arithmetic in the fields of 2^r elements, on arrays.

An element is an unsigned integer below 2^r whose bits are its coordinates in the basis
``1, x, x^2, ...``; addition is exclusive or, and products are taken modulo `BinaryField.modulus`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np
import numpy.typing as npt

from fastmix._validation import check_integer

Elements = npt.NDArray[np.uint64]


@dataclass(frozen=True)
class BinaryField:
    """The field of ``2**degree`` elements.

    The degree is at most 31, so that a product fits in 64 bits before it is reduced.
    """

    degree: int

    def __post_init__(self) -> None:
        check_integer("degree", self.degree, at_least=1, at_most=31)

    @property
    def modulus(self) -> int:
        """The least irreducible polynomial of this degree, as bits."""
        return _least_irreducible(self.degree)

    def multiply(self, a: npt.ArrayLike, b: npt.ArrayLike) -> Elements:
        """Return the products of two arrays of elements, broadcast against each other."""
        left, right = np.asarray(a, dtype=np.uint64), np.asarray(b, dtype=np.uint64)
        zero = np.uint64(0)
        product = np.zeros(np.broadcast_shapes(left.shape, right.shape), dtype=np.uint64)
        for k in range(self.degree):
            product ^= np.where(right >> np.uint64(k) & np.uint64(1), left << np.uint64(k), zero)
        for k in range(2 * self.degree - 2, self.degree - 1, -1):
            excess = np.uint64(self.modulus << (k - self.degree))
            product ^= np.where(product >> np.uint64(k) & np.uint64(1), excess, zero)
        return product

    def powers_of_x(self, count: int) -> Elements:
        """Return ``1, x, ..., x^(count - 1)``, x being the class of the polynomial x."""
        powers, element = [], _reduce(1, self.modulus)
        for _ in range(count):
            powers.append(element)
            element = _reduce(element << 1, self.modulus)
        return np.array(powers, dtype=np.uint64)

    def trace(self, a: npt.ArrayLike) -> Elements:
        """Return the traces ``a + a^2 + a^4 + ... + a^(2^(r-1))``, each 0 or 1."""
        bits = np.bitwise_count(np.asarray(a, dtype=np.uint64) & self._trace_mask)
        return np.asarray(bits & 1, dtype=np.uint64)

    @cached_property
    def _trace_mask(self) -> np.uint64:
        """Coordinates whose sum is the trace: those of the basis elements of trace 1."""
        conjugate = self.powers_of_x(self.degree)
        total = np.zeros_like(conjugate)
        for _ in range(self.degree):
            total ^= conjugate
            conjugate = self.multiply(conjugate, conjugate)
        return np.uint64(sum(int(bit) << i for i, bit in enumerate(total)))


@cache
def _least_irreducible(degree: int) -> int:
    """Return the least irreducible polynomial of a degree, by Ben-Or's test."""
    return next(f for f in range(1 << degree, 2 << degree) if _is_irreducible(f, degree))


def _is_irreducible(f: int, degree: int) -> bool:
    """Tell whether f has no factor of a degree up to half of its own.

    ``x^(2^k) - x`` is the product of all irreducible polynomials whose degree divides k.
    """
    power = _reduce(2, f)
    for _ in range(degree // 2):
        power = _reduce(_carryless(power, power), f)
        if _gcd(f, power ^ _reduce(2, f)) != 1:
            return False
    return True


def _carryless(a: int, b: int) -> int:
    """Return the product of two polynomials."""
    product = 0
    for k in range(b.bit_length()):
        if b >> k & 1:
            product ^= a << k
    return product


def _reduce(a: int, f: int) -> int:
    """Return a polynomial modulo another."""
    while a.bit_length() >= f.bit_length():
        a ^= f << (a.bit_length() - f.bit_length())
    return a


def _gcd(a: int, b: int) -> int:
    """Return the greatest common divisor of two polynomials."""
    while b:
        a, b = b, _reduce(a, b)
    return a
