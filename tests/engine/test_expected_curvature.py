"""The curvature of a logistic model in a table, from shares of levels and coefficients alone."""

import numpy as np
import pytest
from scipy.special import expit

from fastmix.engine.expected_curvature import Squares, expected_logistic
from fastmix.engine.geometry import geometry, level_codes
from fastmix.kernels.sigmoids import Logistic, UpperLogistic
from fastmix.schema.categories import Categories

SHARES = (np.array([0.5, 0.3, 0.15, 0.05]), np.array([0.6, 0.4]))
CATEGORIES = Categories(columns=((2, 3, 4), (5,)), unit=1.0)


def coordinates(numbers):
    moments = np.eye(numbers + 1)
    columns = tuple(tuple(j - 2 + numbers for j in each) for each in CATEGORIES.columns)
    categories = Categories(columns=columns, unit=1.0)
    return geometry(categories, SHARES, moments, 1.0, numbers + 5)


def drawn(numbers, count, seed=0):
    """Return rows of a table with independent columns, in its coordinates."""
    rng = np.random.default_rng(seed)
    parts = [rng.standard_normal((count, numbers))]
    parts += [level_codes(p)[rng.choice(len(p), count, p=p)] for p in SHARES]
    return np.column_stack([*parts, np.ones(count)])


@pytest.mark.parametrize("numbers", [0, 2])
@pytest.mark.parametrize("limited", [False, True])
def test_it_is_the_mean_over_many_rows(numbers, limited):
    made, rng = coordinates(numbers), np.random.default_rng(3)
    phi = 0.7 * rng.standard_normal(len(made.transform))
    theta = made.transform @ phi
    Z = drawn(numbers, 400_000)
    s = Z @ phi
    p, lengths = expit(s), np.linalg.norm(Z, axis=1)
    loss = Logistic(1.5, 3.0, 1.0) if limited else None
    if loss is None:
        bent = p * (1.0 - p)
    else:
        one = np.ones_like(s)
        bent = p * loss.curvature(1.0 - s, lengths, one)
        bent += (1.0 - p) * loss.curvature(-1.0 - s, lengths, -one)
    exact = (Z * bent[:, None]).T @ Z / len(Z)
    found = expected_logistic(made, theta, loss)
    # Lengths vary around the mean given a level, and without numbers the rest is not normal.
    room = (0.12 if limited else 0.05) if numbers else 0.2
    scale = np.sqrt(np.outer(np.diag(exact), np.diag(exact)))
    assert np.abs(found - exact).max() / scale.max() < room
    np.testing.assert_allclose(np.diag(found), np.diag(exact), rtol=2.5 * room)
    np.testing.assert_allclose(found, found.T)


def test_rows_of_a_level_have_the_log_odds_that_go_with_it():
    """A number whose mean depends on the level moves the curvature of the level's rows."""
    made, rng = coordinates(1), np.random.default_rng(5)
    first = level_codes(SHARES[0])[rng.choice(4, 200_000, p=SHARES[0])]
    other = level_codes(SHARES[1])[rng.choice(2, 200_000, p=SHARES[1])]
    number = 0.8 * first[:, 0] + 0.6 * rng.standard_normal(len(first))
    Z = np.column_stack([number, first, other, np.ones(len(first))])
    phi = np.array([2.0, 1.0, 0.2, -0.4, 0.3, 0.5])
    bent = expit(Z @ phi) * expit(-Z @ phi)
    exact = (Z * bent[:, None]).T @ Z / len(Z)
    theta, moments = made.transform @ phi, Z.T @ Z / len(Z)
    levels = slice(1, 4)
    near, far = (
        np.diag(expected_logistic(made, theta, None, known))[levels] for known in (moments, None)
    )
    np.testing.assert_allclose(near, np.diag(exact)[levels], rtol=0.05)
    assert np.abs(far / np.diag(exact)[levels] - 1.0).max() > 0.15


def test_coefficients_of_zero_have_a_quarter():
    made = coordinates(2)
    found = expected_logistic(made, np.zeros(len(made.transform)))
    np.testing.assert_allclose(found, 0.25 * made.expected, atol=1e-9)


def test_the_largest_curvature_does_not_depend_on_label_or_place():
    u = np.linspace(-5.0, 5.0, 11)
    loss = UpperLogistic(2.0, 5.0, 1.0)
    for sign in (-1.0, 1.0):
        np.testing.assert_array_equal(loss.curvature(u, None, sign * np.full(11, 0.6)), 0.15)
    assert loss.curvature(u, None, np.zeros(11)).max() == 0.0  # an absent record
    np.testing.assert_array_equal(loss.slope(u), Logistic(2.0, 5.0, 1.0).slope(u))


@pytest.mark.parametrize("numbers", [0, 2])
def test_squares_of_slopes_have_the_curvature_as_mean_where_nothing_limits_them(numbers):
    made = coordinates(numbers)
    theta = made.transform @ np.random.default_rng(3).standard_normal(len(made.transform))
    found = expected_logistic(made, theta, Squares(1e6))
    np.testing.assert_allclose(found, expected_logistic(made, theta), atol=1e-12)
    limited = expected_logistic(made, theta, Squares(1.0))
    assert np.trace(limited) < 0.95 * np.trace(found)


def test_squares_of_limited_slopes_are_the_mean_over_many_labels():
    made = coordinates(2)
    theta = made.transform @ (0.7 * np.random.default_rng(3).standard_normal(7))
    Z = drawn(2, 400_000)
    p, lengths = expit(Z @ np.linalg.solve(made.transform, theta)), np.linalg.norm(Z, axis=1)
    label = np.random.default_rng(4).random(len(Z)) < p
    squares = np.minimum(np.abs(label - p), 1.5 / lengths) ** 2
    exact = np.sum(squares * lengths**2) / len(Z)
    found = np.trace(expected_logistic(made, theta, Squares(1.5)))
    assert found == pytest.approx(exact, rel=0.05)
