"""Families of quadratic forms over F_2 whose sums have the largest possible rank.

A form on m bits is a row of m integers: bit i of entry i is ``Q(e_i)`` and bit j < i of it is
``B(e_i, e_j)``, with ``B(x, y) = Q(x + y) + Q(x) + Q(y)``. Then ``Q(x + e_i) = Q(x) + Q(e_i) +
B(x, e_i)`` gives all values of Q, which is how the kernels make them.
"""

import numpy as np
import numpy.typing as npt

from fastmix.sketches._fields import BinaryField, Elements

Forms = npt.NDArray[np.uint32]


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
