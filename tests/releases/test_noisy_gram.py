"""Noisy Gram matrices: sensitivities on hostile rows, the law of the noise, refusals."""

import math

import numpy as np
import pytest

from fastmix.accounting import GaussianEvent
from fastmix.data import ArrayRows, RowMap
from fastmix.releases import GRAM, Noise, sketched_gram, sketched_gram_events
from fastmix.releases.sensitivity import sketched_gram_sensitivity
from fastmix.sketches import SRHT, KerdockSketch, SubsampledDCT

N, BOUND = 64, 1.3
SKETCHES = [SRHT(16, N), KerdockSketch(16, N), SubsampledDCT(24, N)]


def rows_of(X):
    return ArrayRows(X, RowMap(BOUND), np.zeros(len(X)))


def drawn(seed=0):
    X = np.random.default_rng(seed).standard_normal((N, 3))
    return BOUND * X / np.linalg.norm(X, axis=1)[:, None]


@pytest.mark.parametrize("sketch", SKETCHES, ids=lambda s: type(s).__name__)
def test_no_row_moves_a_sketched_gram_matrix_by_more_than_its_sensitivity(sketch):
    """In Frobenius norm, with the distortion of either neighbour; some row comes close."""
    closest = 0.0
    for seed in range(20):
        draw = sketch.sample(seed)
        S = draw.to_dense()
        i, X = seed % N, drawn(seed)
        if seed % 2:  # all rows lean towards one
            U = S / np.maximum(np.linalg.norm(S, axis=0), 1e-12)
            X = np.sign(U.T @ U[:, i] + 1e-9)[:, None] * np.array([BOUND, 0.0, 0.0])
        absent = X.copy()
        absent[i] = 0.0
        bound = BOUND * draw.largest_norm
        moved = np.linalg.norm((S @ X).T @ (S @ X) - (S @ absent).T @ (S @ absent))
        for data in (X, absent):
            _, m_hat = rows_of(data).sketch(draw)
            most = sketched_gram_sensitivity(m_hat, bound)
            assert moved <= most * (1.0 + 1e-9)
            closest = max(closest, moved / most)
    assert closest > 0.8


def standardized(difference):
    above = np.triu_indices(len(difference), 1)
    return np.concatenate((np.diag(difference), math.sqrt(2.0) * difference[above]))


def test_noise_is_symmetric_with_half_the_variance_off_the_diagonal():
    """Means and variances of 3,000 draws at 6 standard errors: false alarms below 1e-7."""
    X, noise = drawn(), Noise(np.random.default_rng(0))
    rows, draw, seen = rows_of(X), SKETCHES[0].sample(0), {"gram": [], "sketch": []}
    Z = draw.apply(X)
    for _ in range(3000):
        out = noise.release(GRAM, rows, sigma=0.7)
        assert out.scale == pytest.approx(0.7 * BOUND**2)
        seen["gram"].append(standardized(out.gram - X.T @ X) / out.scale)
        out = sketched_gram(
            rows, sketch=draw, sigma=0.7, tau=3.0, omega=2.0, noise=noise, public=None
        )
        bound = BOUND * draw.largest_norm
        assert out.scale == pytest.approx(0.7 * bound * (bound + 2.0 * out.m_tilde))
        seen["sketch"].append(standardized(out.gram - Z.T @ Z) / out.scale)
    for each in map(np.array, seen.values()):
        assert (np.abs(each.mean(axis=0)) < 6.0 / math.sqrt(3000)).all()
        assert (np.abs(each.var(axis=0) - 1.0) < 6.0 * math.sqrt(2.0 / 3000)).all()
    assert (
        noise.drawn
        == [GRAM.event(0.7), *sketched_gram_events(sigma=0.7, tau=3.0, omega=2.0)] * 3000
    )


def test_the_bound_on_the_distortion_is_charged_with_its_tail():
    first, tail, second = sketched_gram_events(sigma=0.7, tau=3.0, omega=2.0)
    assert (first, second) == (GaussianEvent(2.0), GaussianEvent(0.7))
    assert tail.probability == pytest.approx(1.349898e-3, rel=1e-6)


@pytest.mark.parametrize(
    "given", [{"sigma": 0.0}, {"omega": -1.0}, {"tau": -1.0}, {"sketch": SRHT(8, 32)}]
)
def test_errors_draw_nothing(given):
    rng = np.random.default_rng(0)
    before = rng.bit_generator.state
    levels = {"sigma": 1.0, "tau": 3.0, "omega": 1.0, "sketch": SKETCHES[0], **given}
    with pytest.raises(ValueError, match=f"{next(iter(given))} must"):
        sketched_gram(rows_of(drawn()), **levels, noise=Noise(rng), public=None)
    assert rng.bit_generator.state == before
