"""Arithmetic in the fields of 2^r elements, on arrays.

An element is an unsigned integer below 2^r whose bits are its coordinates in the basis
``1, x, x^2, ...``; addition is exclusive or, and products are taken modulo `BinaryField.modulus`.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from fastmix._validation import check_integer

Elements = npt.NDArray[np.uint64]

#: The least irreducible polynomials of degrees 1 to 31 without their leading terms, as bits.
_TAILS = bytes.fromhex(
    "00 03 03 03 05 03 03 1b 03 09 05 09 1b 21 03 2b 09 09 27 09 05 03 21 1b 09 1b 27 03 05 03 09"
)


@dataclass(frozen=True)
class BinaryField:
    """The field of ``2**degree`` elements, degree 1 to 31: products fit in 64 bits."""

    degree: int

    def __post_init__(self) -> None:
        check_integer("degree", self.degree, at_least=1, at_most=31)

    @property
    def modulus(self) -> int:
        """The least irreducible polynomial of this degree, as bits."""
        return 1 << self.degree | _TAILS[self.degree - 1]

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
        powers, element = [], 1
        for _ in range(count):
            powers.append(element)
            element <<= 1
            if element >> self.degree:
                element ^= self.modulus
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
