"""Transcripts: recorded only when asked for, complete, and judged by the right laws."""

import pickle
import sys
import types
import warnings

import numpy as np
import pytest
from scipy.stats import multivariate_normal

import fastmix
from fastmix import IHM, AdaSSP, DPGradientDescent, FastIHM, LinearMixing, mechanisms
from fastmix.audit import audit, estimator_case
from fastmix.audit import case as pairs
from fastmix.audit.case import Data
from fastmix.audit.densities import Known
from fastmix.audit.laws import LAWS, log_likelihoods
from fastmix.audit.transcript import (
    RELEASES,
    IncompleteTranscriptError,
    Release,
    recording,
    replaying,
)
from fastmix.data import ArrayRows, RowMap
from fastmix.methods import METHODS, AdaptiveStatistics, gradient_descent, newton
from fastmix.sketches import SRHT

BOUNDS = {"data_norm": 1.0, "bounds_y": (-1.0, 1.0), "epsilon": 3.0, "delta": 0.05}
PLAIN = {**BOUNDS, "fit_intercept": False}

rng = np.random.default_rng(0)
X = rng.normal(size=(16, 2)) / 4.0
Y = rng.uniform(-1.0, 1.0, 16)


def fit(model, X=X, y=Y, seed=1):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.set_params(random_state=seed).fit(X, y)


MODELS = [
    (AdaSSP(**PLAIN, inference=True), ["noisy_moments", "noisy_residual_counts"]),
    (AdaSSP(**PLAIN, variant="paper"), ["noisy_statistics"]),
    (DPGradientDescent(**PLAIN, n_steps=3), ["noisy_gradient"] * 3),
    (IHM(**PLAIN, n_steps=2), ["noisy_gram", "noisy_gradient", "noisy_gradient"]),
    (
        IHM(**PLAIN, n_steps=4),
        ["noisy_gram", "noisy_gradient", "noisy_residual_counts", *["noisy_gradient"] * 3],
    ),
    (
        IHM(**PLAIN, n_steps=2, variant="joint"),
        ["gauss_bounds", "mix", "noisy_gradient", "noisy_gradient"],
    ),
    (LinearMixing(**PLAIN), ["gauss_bounds", "mix"]),
    (
        FastIHM(**BOUNDS, bounds_X=(-1, 1), n_steps=1, sketch_size=8),
        ["noisy_mean", "noisy_sketched_gram", "noisy_gradient"],
    ),
    (
        FastIHM(**BOUNDS, bounds_X=(-1, 1), n_steps=1, sketch_size=16, variant="joint"),
        ["noisy_mean", "fast_bounds", "mix", "noisy_gradient"],
    ),
]


@pytest.mark.parametrize(("model", "names"), MODELS, ids=lambda m: type(m).__name__)
def test_every_release_of_a_fit_is_recorded(model, names):
    with recording() as transcript:
        fit(model)
    assert [release.mechanism for release in transcript] == names
    for release in transcript:
        assert (
            not {"X", "noise", "rng", "rows", "sketch_rng", "spectrum"} & release.arguments.keys()
        )


@pytest.mark.parametrize(("model", "names"), MODELS, ids=lambda m: type(m).__name__)
def test_recording_changes_no_fit_and_leaves_nothing_behind(model, names):
    before = fit(model).coef_
    with recording() as transcript:
        during = fit(model).coef_
    recorded = len(transcript)
    after = fit(model).coef_
    assert np.array_equal(before, during)
    assert np.array_equal(before, after)
    assert len(transcript) == recorded == len(names)
    # Nothing that a fitted model refers to, however deep, belongs to an audit.
    assert b"fastmix.estimators" in pickle.dumps(model)
    assert b"audit" not in pickle.dumps(model)


def test_blocks_that_end_out_of_turn_leave_nothing_wrapped():
    before = newton.noisy_gradient
    first, second = recording(), recording()
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert newton.noisy_gradient is not before
    second.__exit__(None, None, None)
    assert newton.noisy_gradient is before


def test_nothing_is_wrapped_by_default_nor_after_an_error():
    assert newton.noisy_gradient is mechanisms.noisy_gradient
    with recording():
        assert newton.noisy_gradient is not mechanisms.noisy_gradient
        # Mechanisms that are called by themselves are left alone.
        assert mechanisms.statistics.noisy_gradient is mechanisms.noisy_gradient
    with pytest.raises(ZeroDivisionError), recording():
        1 / 0  # noqa: B018
    assert newton.noisy_gradient is gradient_descent.noisy_gradient is mechanisms.noisy_gradient


@pytest.mark.parametrize(("model", "_"), MODELS, ids=lambda m: type(m).__name__)
def test_other_data_with_the_same_releases_give_the_same_model(model, _):
    """So a model holds nothing of its data but its releases."""
    with recording() as transcript:
        first = fit(model).coef_
    with replaying(transcript):
        second = fit(model, -X, Y[::-1], seed=2).coef_
    assert np.array_equal(first, second)
    assert not np.array_equal(first, fit(model, -X, Y[::-1], seed=2).coef_)


def test_a_fit_that_asks_for_other_releases_is_noticed():
    model = DPGradientDescent(**PLAIN, n_steps=2)
    with recording() as transcript:
        fit(model)
    for wrong in (transcript[:1], [*transcript, transcript[0]], transcript[::-1]):
        with pytest.raises(IncompleteTranscriptError), replaying(wrong):
            fit(model)


def test_what_leaves_outside_the_transcript_refutes_a_claim(monkeypatch):
    """One part in a billion of a sum over the records in the coefficients: no score shows it."""
    solve = AdaptiveStatistics.solve

    def leaky(self, rows, *plan):
        solution = solve(self, rows, *plan)
        solution.theta[:] += 1e-9 * rows.total()
        return solution

    case = estimator_case(AdaSSP(**PLAIN), pair=pairs.lone_row(4))
    assert audit(case, trials=80, rng=0).sealed
    monkeypatch.setattr(AdaptiveStatistics, "solve", leaky)
    found = audit(estimator_case(AdaSSP(**PLAIN), pair=pairs.lone_row(4)), trials=80, rng=0)
    assert found.lower <= found.epsilon
    assert not found.sealed
    assert not found.passed


def test_every_release_that_an_estimator_can_make_has_a_law():
    """A mechanism without a law could not be audited. The paper's algorithms are made of these."""
    assert set(RELEASES) - {"fast_mix"} == set(LAWS)
    for name in mechanisms.__all__:
        released = name in RELEASES
        kinds = ("_event", "_events", "Release", "Gram", "Noise", "_noise", "Spectrum")
        helper = name.endswith(kinds) or "solve" in name
        assert released != helper, name


def test_every_private_estimator_is_audited():
    from fastmix.audit.estimators import ESTIMATORS, LONG

    names = {name for name in fastmix.__all__ if hasattr(getattr(fastmix, name), "fit")}
    names -= {"IHS", "PublicEncoder"}  # neither adds noise
    assert names <= set(ESTIMATORS) - LONG
    assert any("exact noise" in name for name in set(ESTIMATORS) - LONG)
    assert any("standard errors" in name for name in set(ESTIMATORS) - LONG)


# --- laws, against densities of scipy --------------------------------------------------------


def ratios(transcripts, first, second):
    """Return log-likelihood ratios by part."""
    one, other = (log_likelihoods(transcripts, records) for records in (first, second))
    return {part: one[part] - other[part] for part in one}


def neighbours():
    A = rng.normal(size=(5, 2)) / 3.0
    y = rng.uniform(-1.0, 1.0, 5)
    B, z = A.copy(), y.copy()
    B[0], z[0] = 0.0, 0.0
    return Data(A, y), Data(B, z)


def normal(values, mean, covariance):
    return multivariate_normal(mean, covariance).logpdf(values)


def test_law_of_a_gradient():
    both, theta, out = neighbours(), np.array([0.3, -2.0]), np.array([0.1, 0.4])
    release = Release("noisy_gradient", {"theta": theta, "clip": 0.2, "sigma": 0.7}, out)
    # The noise is in units of the sensitivity, which is the clipping level.
    covariance = (0.7 * 0.2) ** 2 * np.eye(2)
    exact = [normal(out, d.X.T @ np.clip(d.y - d.X @ theta, -0.2, 0.2), covariance) for d in both]
    found = ratios([[release, release]] * 3, *both)
    assert found["gradients"] == pytest.approx(np.full(3, 2.0 * (exact[0] - exact[1])))


def test_law_of_sketches_with_and_without_a_fast_one():
    both = neighbours()
    rows = rng.normal(size=(7, 3))

    class Out:
        eta, lambda_tilde, m_tilde = 1.5, (0.0,), (0.4,)
        sketches = (mechanisms.PrivateGram((rows,)),)

    # With the target as a column, of the norm bound sqrt(2).
    joint = [np.column_stack((d.X, d.y)) for d in both]
    gauss = Release("gauss_bounds", {"tau": 1.0, "omega": 2.0}, Out, (), True)
    mixed = Release("mix", {"k": 7}, Out)
    exact = [normal(rows, np.zeros(3), A.T @ A + 2.25 * np.eye(3)).sum() for A in joint]
    assert ratios([[gauss, mixed]], *both)["sketches"] == pytest.approx(
        exact[0] - exact[1], abs=1e-6
    )

    draw = SRHT(4, 5).sample(0)
    arguments = {"tau": 1.0, "omega": 2.0, "law": "gaussian"}
    fast = Release("fast_bounds", arguments, Out, (draw,), True)
    found = ratios([[fast, mixed]], *both)
    sketched = [draw.apply(A) for A in joint]
    exact = [normal(rows, np.zeros(3), Z.T @ Z + 2.25 * np.eye(3)).sum() for Z in sketched]
    assert found["sketches"] == pytest.approx(exact[0] - exact[1], abs=1e-6)
    scale = 2.0 * draw.coherence * np.sqrt(2.0) * draw.largest_norm
    m_hat = [draw.sketch_and_distortion(A)[1] for A in joint]
    exact = [normal(0.4, m + scale, scale**2) for m in m_hat]
    assert found["distortion"] == pytest.approx(exact[0] - exact[1])


def test_laws_of_statistics_mean_and_residuals():
    both, theta = neighbours(), np.array([0.3, -2.0])

    class Statistics:
        gram, moment, eigenvalue = np.eye(2), np.array([0.2, 0.1]), 0.3

    values = np.array([1.0, 0.0, 1.0, 0.2, 0.1, 0.3])
    exact = [
        normal(
            values,
            [*(d.X.T @ d.X)[np.triu_indices(2)], *d.X.T @ d.y, np.linalg.eigvalsh(d.X.T @ d.X)[0]],
            0.25 * np.eye(6),
        )
        for d in both
    ]
    found = ratios([[Release("noisy_statistics", {"sigma": 0.5}, Statistics)]], *both)
    assert found["statistics"] == pytest.approx(exact[0] - exact[1])

    # Off the diagonal the noise has half the variance.
    values, covariance = np.array([1.0, 0.0, 1.0, 0.2, 0.1]), 0.25 * np.diag([1, 0.5, 1, 1, 1])
    exact = [
        normal(values, [*(d.X.T @ d.X)[np.triu_indices(2)], *d.X.T @ d.y], covariance) for d in both
    ]
    found = ratios([[Release("noisy_moments", {"sigma": 0.5}, Statistics)]], *both)
    assert found["moments"] == pytest.approx(exact[0] - exact[1])

    mean = np.array([0.2, -0.1])
    exact = [normal(5 * mean, d.X.sum(axis=0), 0.25 * np.eye(2)) for d in both]
    found = ratios([[Release("noisy_mean", {"sigma": 0.5}, mean)]], *both)
    assert found["mean"] == pytest.approx(exact[0] - exact[1])

    out = np.zeros(40)
    release = Release("noisy_residual_counts", {"theta": theta, "clip": 0.5, "sigma": 2.0}, out)
    # The record is in one bin or another of those that hold c records without it.
    residual = min(abs(both[0].y[0] - both[0].X[0] @ theta) / 0.5, 1.0)
    others = np.minimum(np.abs(both[1].y - both[1].X @ theta)[1:] / 0.5, 1.0)
    edges = 2.0 ** (np.arange(-40, 1) / 2.0)
    bins = np.searchsorted(edges, others), np.searchsorted(edges, residual)
    c = (bins[0] == bins[1]).sum()
    found = ratios([[release]], *both)["residuals"]
    assert found == pytest.approx(-0.5 * ((c + 1) ** 2 - c**2) / 4.0)


def test_laws_of_scores_are_those_of_the_mechanisms():
    """The density is largest at what is released without noise, and falls by the noise's scale."""
    rng = np.random.default_rng(4)
    A = rng.uniform(-0.5, 0.5, (30, 2))
    y = np.concatenate(([0.0], rng.choice([-1.0, 1.0], 29)))
    A[0] = 0.0  # an absent record
    theta, thetas = rng.standard_normal(2), rng.standard_normal((2, 3))
    rows = ArrayRows(A, RowMap(row_norm=1.0), y)
    classes = np.where(y == 0.0, 0.0, rng.integers(1, 4, 30))
    several = [
        ArrayRows(A, RowMap(row_norm=1.0), np.where(y == 0.0, 0.0, np.sign((classes == k) - 0.5)))
        for k in (1, 2, 3)
    ]
    edges = np.array([-0.5, 0.0, 0.5])
    quantile = {"theta": theta, "quantile": 0.3, "level": 0.2, "sigma": 2.0}
    cases = [
        ("noisy_quantile_sum", rows, y, {**quantile, "kind": "below"}, 1.0),
        ("noisy_quantile_sum", rows, y, {**quantile, "kind": "pinball"}, 0.7 * 0.2),
        (
            "noisy_signed_counts",
            rows,
            y,
            {"theta": theta, "edges": np.array([0.0, 0.7, 1.1]), "sigma": 2.0},
            1.0,
        ),
        ("noisy_label_counts", rows, y, {"theta": theta, "edges": edges, "sigma": 2.0}, 1.0),
        ("noisy_class_hits", several, classes, {"thetas": thetas, "sigma": 2.0}, 1.0),
        *(
            ("noisy_log_loss", on, own, {"thetas": at, "level": 0.8, "sigma": 2.0}, 0.8)
            for on, own, at in (([rows], y, thetas[:, :1]), (several, classes, thetas))
        ),
    ]
    for name, on, own, given, sensitivity in cases:
        exact = getattr(mechanisms, name)(on, **given, noise=_Zero(np.random.default_rng(0)))
        step = np.zeros(np.shape(exact))
        step.flat[0] = 2.0 * sensitivity
        releases = [Release(name, given, out) for out in (exact, exact + step)]
        (found,) = LAWS[name](releases, Known(Data(A, own))).values()
        assert found == pytest.approx([0.0, -0.5], abs=1e-9), name


class _Zero(mechanisms.noise.FloatNoise):
    """No noise."""

    def _gaussian(self, values, sensitivity, ratio):
        return np.asarray(values, dtype=np.float64)


def test_centred_rows_of_present_records_only():
    A = np.array([[0.7, 0.7], [0.0, 0.0], [-0.7, 0.7]])
    centred = Data(A, np.zeros(3), constant=True).centred(np.array([0.6, 0.7]))
    assert centred[:, 0] == pytest.approx([0.1, 0.0, -1.0])


def test_a_method_of_ones_own_is_recorded_wherever_it_is_defined(monkeypatch):
    own = types.ModuleType("own_method")
    own.noisy_statistics = mechanisms.noisy_statistics
    monkeypatch.setitem(sys.modules, "own_method", own)
    method = type("Own", (AdaptiveStatistics,), {"name": "own", "__module__": "own_method"})
    try:
        with recording() as transcript:
            rows = ArrayRows(X, RowMap(row_norm=1.0), Y)
            own.noisy_statistics(rows, sigma=1.0, noise=mechanisms.make_noise("float"))
        assert [release.mechanism for release in transcript] == ["noisy_statistics"]
        assert own.noisy_statistics is mechanisms.noisy_statistics
    finally:
        del METHODS[method.name]
