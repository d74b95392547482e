"""The release of a minimiser: its law, its noise, its events, and what it refuses."""

import math

import numpy as np
import pytest
from scipy import stats

from fastmix.accounting import GaussianEvent, ObjectiveEvent, objective_split
from fastmix.data import ArrayRows
from fastmix.data.maps import RowMap, TargetMap
from fastmix.kernels.losses import CalibratedHuber
from fastmix.releases import MINIMISER, make_noise
from fastmix.releases import objective as mechanism
from fastmix.releases.distance import rounding_distance
from fastmix.releases.minimise import minimise

MU, EPS_C, MU_OUTPUT = objective_split(1.0, 1e-6, 0.0025)
RIDGE = 2.0


def rows_of(X, y):
    return ArrayRows(np.asarray(X, dtype=np.float64), RowMap(1.0), np.asarray(y), TargetMap())


SETTINGS = {
    "loss": CalibratedHuber(1.0, RIDGE, EPS_C), "ridge": RIDGE, "mu": MU, "eps_c": EPS_C,
    "mu_output": MU_OUTPUT,
}  # fmt: skip


def release(rows, seed=0, **changes):
    noise = make_noise(seed, warn=False)
    return noise.release(MINIMISER, rows, **{**SETTINGS, **changes}), noise


@pytest.fixture
def rows():
    rng = np.random.default_rng(0)
    return rows_of(rng.uniform(-0.5, 0.5, (500, 3)), rng.uniform(-1, 1, 500))


def test_events_are_those_of_the_plan(rows):
    _, noise = release(rows)
    assert noise.drawn == MINIMISER.events(MU, EPS_C, MU_OUTPUT)
    assert noise.drawn == [ObjectiveEvent(MU, EPS_C), GaussianEvent(1.0 / MU_OUTPUT)]


def test_law_of_the_minimiser():
    """Without rows theta is -b/ridge: normal, of scale L/(mu ridge); 1e-3 false alarms."""
    rows = rows_of(np.zeros((50, 4)), np.zeros(50))
    drawn = np.concatenate([release(rows, seed)[0] for seed in range(500)])
    assert stats.kstest(drawn * RIDGE * MU, "norm").pvalue > 1e-3


@pytest.mark.usefixtures("float_noise")
def test_minimiser_of_squares(float_noise):
    """Far inside the zone it is (X'X + ridge)^-1 (X'y + ridge c - b), up to the noise on it."""
    rng = np.random.default_rng(0)
    X, y = rng.uniform(-0.5, 0.5, (4_000, 3)), rng.uniform(-0.1, 0.1, 4_000)
    center = np.array([0.3, -0.2, 0.1])
    rows = rows_of(X, y)
    theta, _ = release(rows, seed=5, center=center)
    b = np.random.default_rng(5).standard_normal(3) / MU
    gram, moment = rows.moments()
    want = np.linalg.solve(gram + RIDGE * np.eye(3), moment + RIDGE * center - b)
    scale = 0.1 * math.sqrt(3) / MU / (4_000 + RIDGE)
    assert np.abs(theta - want).max() < 6.0 * scale
    assert np.abs(theta - want).max() > 0.0


def test_noise_covers_the_distance(rows, monkeypatch):
    """The noise on the minimiser is 2 a / mu_output for the distance a that the solver is given."""
    seen = {}

    def watched(*args, tolerance, **kwargs):
        seen["tolerance"] = tolerance
        return np.zeros(3)

    monkeypatch.setattr(mechanism, "minimise", watched)
    drawn = np.concatenate([release(rows, seed)[0] for seed in range(400)])
    scale = 2.0 * seen["tolerance"] / MU_OUTPUT
    assert stats.kstest(drawn / scale, "norm").pvalue > 1e-3


def test_tolerance_depends_on_public_sizes_only(monkeypatch):
    """The same for all data of a size: zeros, ones, noise; and not below what rounding does."""
    tolerances = []

    def watched(*args, tolerance, **kwargs):
        tolerances.append(tolerance)
        return np.zeros(3)

    monkeypatch.setattr(mechanism, "minimise", watched)
    rng = np.random.default_rng(0)
    for X, y in (
        (np.zeros((500, 3)), np.zeros(500)),
        (np.ones((500, 3)), np.ones(500)),
        (rng.standard_normal((500, 3)), rng.uniform(-1, 1, 500)),
    ):
        release(rows_of(X, y), seed=len(tolerances))
    assert len(set(tolerances)) == 1


def test_rounding_takes_at_most_half_of_the_tolerance(monkeypatch):
    """Also where the coefficients are as long as data can make them, at a large epsilon."""
    seen = []

    def watched(rows, objective, *, tolerance, **kwargs):
        theta = minimise(rows, objective, tolerance=tolerance, **kwargs)
        rounding = rounding_distance(objective, rows.most, float(np.linalg.norm(theta)))
        seen.append(rounding / tolerance)
        return theta

    monkeypatch.setattr(mechanism, "minimise", watched)
    for n in (50, 20_000):
        x = math.sqrt(RIDGE / n) * np.array([0.6, 0.8, 0.0])
        release(rows_of(np.tile(x, (n, 1)), np.ones(n)), mu=1e6)
    assert 0.0 < max(seen) <= 0.5


def test_sketch_gives_the_same(rows):
    gram, _ = release(rows, seed=3)
    sketch, _ = release(rows, seed=3, sketch_rng=np.random.default_rng(1))
    assert sketch == pytest.approx(gram, abs=1e-4)


def test_a_loss_for_another_ridge_is_refused(rows):
    """The condition of the proof is checked before anything is drawn."""
    for changes in ({"ridge": 0.99 * RIDGE}, {"eps_c": 0.99 * EPS_C}, {"ridge": math.nan}):
        with pytest.raises(ValueError, match=r"ridge|loss"):
            release(rows, **changes)


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("center", {"center": np.full(3, 1e80)}),
        ("transform", {"transform": 1e80 * np.eye(3)}),
        ("transform", {"transform": 1e-80 * np.eye(3)}),
        ("transform", {"transform": np.ones((3, 3))}),
        ("transform", {"transform": np.full((3, 3), np.nan)}),
        ("least", {"transform": np.eye(3), "least": 1e-80}),
    ],
)
def test_lengths_that_no_sum_can_hold_draw_nothing(rows, name, given):
    noise = make_noise(0, warn=False)
    with pytest.raises(ValueError, match=f"{name} must have lengths"):
        noise.release(MINIMISER, rows, **SETTINGS, **given)
    assert noise.drawn == []


def test_longer_rows_are_refused():
    rows = ArrayRows(np.ones((5, 2)), RowMap(1.5), np.ones(5), TargetMap())
    with pytest.raises(ValueError, match="norms of at most 1"):
        release(rows)
