"""Families of quadratic forms over F_2 whose sums have the largest possible rank.

A form on m bits is a row of m integers: bit i of entry i is ``Q(e_i)`` and bit j < i of it is
``B(e_i, e_j)``, with ``B(x, y) = Q(x + y) + Q(x) + Q(y)``. Then ``Q(x + e_i) = Q(x) + Q(e_i) +
B(x, e_i)`` gives all values of Q, which is how the kernels make them.

An element of the field of 2^r elements is an unsigned integer whose bits are its coordinates in the
basis ``1, x, x^2, ...``; addition is exclusive or, products are taken modulo a polynomial.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from fastmix._validation import check_integer
from fastmix.kernels.reference_kerdock import Forms

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


def family_size(m: int) -> int:
    """Return how many forms on m bits `forms` has: 2^(m-1) for even m > 0, 2^m for odd m."""
    return 1 << (m - 1 if m and m % 2 == 0 else m)


def forms(m: int, count: int, start: int = 0) -> Forms:
    """Return ``count`` forms of the family on m bits, from ``start`` on, of shape (count, m).

    For even m, a Kerdock set: with ``x = (t, u)``, t in the field of 2^r elements, r = m - 1, u in
    F_2 the highest bit, and ``f(z) = sum_{j=1}^{(r-1)/2} Tr(z^(1+2^j))``, the form of a is
    ``f(a t) + u Tr(a t)``; any two differ by a form of rank m. For odd m, Gold functions:
    ``Tr(a x^3)`` on the field of 2^m elements; any two differ by a form of rank m - 1. The form of
    block b is that of the element ``a = b`` (docs/proofs/kerdock.md).
    """
    elements = np.arange(start, start + count, dtype=np.uint64)[:, None]
    if m == 0:
        return np.empty((count, 0), dtype=np.uint32)
    return _kerdock(m, elements) if m % 2 == 0 else _gold(m, elements)


def _kerdock(m: int, a: Elements) -> Forms:
    r = m - 1
    field = BinaryField(r)
    z = field.multiply(a, field.powers_of_x(r))
    trace = field.trace(z)
    # f(z) + f(w) + f(z + w) = Tr(z) Tr(w) + Tr(z w), and z w = a^2 x^(i+j).
    products = field.trace(field.multiply(field.multiply(a, a), field.powers_of_x(2 * r - 1)))
    values = np.zeros_like(z)
    conjugate = z
    for _ in range((r - 1) // 2):
        conjugate = field.multiply(conjugate, conjugate)
        values ^= field.trace(field.multiply(z, conjugate))
    columns = [
        _pack(trace[:, i, None] * trace[:, :i] ^ products[:, i : 2 * i], values[:, i])
        for i in range(r)
    ]
    return np.stack([*columns, _pack(trace, np.zeros_like(a[:, 0]))], axis=1)


def _gold(m: int, a: Elements) -> Forms:
    field = BinaryField(m)
    # Tr(a (x + y)^3) + Tr(a x^3) + Tr(a y^3) = Tr(a (x^2 y + x y^2)).
    trace = field.trace(field.multiply(a, field.powers_of_x(3 * m - 2)))
    columns = [
        _pack(trace[:, 2 * i : 3 * i] ^ trace[:, i : 3 * i : 2], trace[:, 3 * i]) for i in range(m)
    ]
    return np.stack(columns, axis=1)


def _pack(below: Elements, diagonal: Elements) -> Forms:
    """Return one entry of each form from its bits below the diagonal and on it."""
    bits = np.column_stack([below, diagonal])
    weights = np.left_shift(np.uint64(1), np.arange(bits.shape[1], dtype=np.uint64))
    return np.asarray(bits @ weights, dtype=np.uint32)
