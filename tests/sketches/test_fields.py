import numpy as np
import pytest

from fastmix.sketches._forms import BinaryField

# Numbers of monic irreducible polynomials of degree 1, 2, ... over F_2 (Gauss's formula).
IRREDUCIBLE = [2, 1, 2, 3, 6, 9, 18, 30, 56, 99]


def carryless(a, b):
    product = 0
    while b:
        product ^= a * (b & 1)
        a, b = a << 1, b >> 1
    return product


@pytest.mark.parametrize("degree", range(1, 11))
def test_modulus_is_the_least_irreducible_polynomial(degree):
    # A sieve: what is no product of two polynomials of lower degree is irreducible.
    products = {
        carryless(f, g)
        for k in range(1, degree // 2 + 1)
        for f in range(1 << k, 2 << k)
        for g in range(1 << (degree - k), 2 << (degree - k))
    }
    irreducible = [f for f in range(1 << degree, 2 << degree) if f not in products]
    assert len(irreducible) == IRREDUCIBLE[degree - 1]
    assert BinaryField(degree).modulus == irreducible[0]


def reduced(a, f):
    while a.bit_length() >= f.bit_length():
        a ^= f << (a.bit_length() - f.bit_length())
    return a


def is_irreducible(f):
    """Ben-Or's test: x^(2^k) - x is the product of all irreducible polynomials of degrees k / j."""
    power = reduced(2, f)
    for _ in range((f.bit_length() - 1) // 2):
        power = reduced(carryless(power, power), f)
        a, b = f, power ^ reduced(2, f)
        while b:
            a, b = b, reduced(a, b)
        if a != 1:
            return False
    return True


@pytest.mark.parametrize("degree", range(1, 32))
def test_modulus_is_the_first_that_passes_the_test_of_ben_or(degree):
    first = next(f for f in range(1 << degree, 2 << degree) if is_irreducible(f))
    assert BinaryField(degree).modulus == first


@pytest.mark.parametrize("degree", [1, 2, 3, 4, 5, 7])
def test_field_axioms(degree):
    field = BinaryField(degree)
    a = np.arange(1 << degree, dtype=np.uint64)
    table = field.multiply(a[:, None], a)
    np.testing.assert_array_equal(table, table.T)
    np.testing.assert_array_equal(table[1], a)
    # Every row but that of 0 is a permutation, so every element but 0 has an inverse.
    assert (np.sort(table[1:], axis=1) == a).all()
    b, c = a[:, None, None] % 32, a[:, None] % 32
    np.testing.assert_array_equal(
        field.multiply(field.multiply(b, c), a), field.multiply(b, field.multiply(c, a))
    )
    np.testing.assert_array_equal(
        field.multiply(b, c ^ a), field.multiply(b, c) ^ field.multiply(b, a)
    )


@pytest.mark.parametrize("degree", [1, 2, 3, 8, 13, 31])
def test_powers_and_trace(degree):
    field = BinaryField(degree)
    rng = np.random.default_rng(0)
    powers = field.powers_of_x(70)
    np.testing.assert_array_equal(field.multiply(powers[:-1], powers[1]), powers[1:])
    a, b = rng.integers(0, 1 << degree, (2, 300), dtype=np.uint64)
    conjugate, total = a, np.zeros_like(a)
    for _ in range(degree):
        total ^= conjugate
        conjugate = field.multiply(conjugate, conjugate)
    np.testing.assert_array_equal(conjugate, a)
    np.testing.assert_array_equal(field.trace(a), total)
    np.testing.assert_array_equal(field.trace(a) ^ field.trace(b), field.trace(a ^ b))
    np.testing.assert_array_equal(field.trace(field.multiply(a, a)), field.trace(a))
    assert field.trace(1) == degree % 2


@pytest.mark.parametrize("bad", [0, 32])
def test_degrees_outside_the_range_are_refused(bad):
    with pytest.raises(ValueError, match="degree must be at"):
        BinaryField(bad)
