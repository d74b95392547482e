"""The private mean: noise, sensitivity, and what is known without noise.

Distributions are compared by Kolmogorov-Smirnov tests at 1e-6.
"""

import numpy as np
import pytest
from scipy import stats

from fastmix.accounting import GaussianEvent
from fastmix.data import ArrayRows, AugmentedRows, RowMap
from fastmix.releases import MEAN, Noise
from fastmix.releases.sensitivity import total_sensitivity


def rows_of(X, constant=0.0):
    d = X.shape[1]
    ones = np.ones(d)
    row_map = RowMap(
        row_norm=np.sqrt(d),
        lower=-ones,
        upper=ones,
        center=0.0 * ones,
        scale=ones,
        constant=constant,
        divisor=float(np.hypot(np.sqrt(d), constant)),
    )
    return ArrayRows(X, row_map)


@pytest.fixture
def X():
    return np.random.default_rng(0).uniform(-1.0, 1.0, (500, 3))


def test_noise_is_that_of_the_event(X):
    rows = rows_of(X)
    draws = [Noise(np.random.default_rng(s)).release(MEAN, rows, sigma=0.7) for s in range(2000)]
    noise = (np.array(draws) * rows.n - rows.total()) / 0.7
    assert stats.kstest(noise.ravel(), "norm").pvalue > 1e-6
    assert MEAN.event(0.7) == GaussianEvent(0.7, 1.0, 1)


def test_one_record_moves_the_sum_by_its_norm(X):
    X = X / np.linalg.norm(X, axis=1, keepdims=True)
    rows = ArrayRows(X, RowMap(row_norm=1.0))
    absent = X.copy()
    absent[7] = 0.0
    gap = rows.total() - ArrayRows(absent, RowMap(row_norm=1.0)).total()
    assert np.linalg.norm(gap) == pytest.approx(total_sensitivity(1.0), rel=1e-12)


def test_total_of_blocks_and_of_arrays_agree(X):
    from fastmix.data.rows import Rows

    rows = rows_of(X, constant=0.5)
    assert rows.total() == pytest.approx(Rows.total(rows), rel=1e-12)


def test_the_constant_is_public_and_the_mean_no_longer_than_a_row(X):
    rows = rows_of(X, constant=0.5)
    for sigma in (1e-3, 1e6):
        mean = Noise(np.random.default_rng(0)).release(MEAN, rows, sigma=sigma)
        assert mean[-1] == rows.constant == pytest.approx(0.5 / np.hypot(np.sqrt(3), 0.5))
        assert np.linalg.norm(mean) <= rows.bound * (1.0 + 1e-12)


def test_centred_rows_are_the_features_minus_the_mean(X):
    rows = rows_of(X, constant=0.5)
    mean = Noise(np.random.default_rng(0)).release(MEAN, rows, sigma=1e-3)
    full = np.concatenate([A for A, _ in rows.blocks()])
    centred = np.concatenate([A for A, _ in rows.centred(mean).blocks()])
    assert centred == pytest.approx(full[:, :-1] - mean[:-1], abs=1e-12)
    # A far mean makes long rows, which are shortened to the same bound.
    far = np.array([5.0, -5.0, 5.0, 0.5])
    short = np.concatenate([A for A, _ in rows.centred(far).blocks()])
    norms = np.linalg.norm(short, axis=1)
    assert norms.max() <= rows.bound
    assert norms.min() > 0.99 * rows.bound


def test_only_bounded_features_can_be_centred(X):
    with pytest.raises(ValueError, match="center must be given"):
        ArrayRows(X, RowMap(row_norm=1.0)).centred(np.zeros(3))
    with pytest.raises(ValueError, match="rows must have a public centre"):
        AugmentedRows(rows_of(X)).centred(np.zeros(4))
