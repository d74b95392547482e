"""The Gaussian mixing mechanism.

Statistical comparisons are seeded; each rejects below 1e-6, so the false-alarm rate of the file,
over seeds, is below 1e-4.
"""

import math

import numpy as np
import pytest
from scipy import stats

from fastmix.accounting import GaussianEvent, RdpAccountant, SketchEvent, TailEvent
from fastmix.data import ArrayRows, RowMap
from fastmix.kernels import reference
from fastmix.releases import gauss_bounds, gauss_mix, mix
from tests.releases.events import gauss_mix_event

P_VALUE = 1e-6
SETTINGS = {"k": 4, "gamma": 5.0, "tau": 3.0, "omega": 0.5}


@pytest.fixture(scope="module")
def X():
    rows = np.random.default_rng(1).standard_normal((30, 3)) * [1.0, 0.4, 2.0]
    return rows / np.maximum(1.0, np.linalg.norm(rows, axis=1))[:, None]


@pytest.mark.parametrize("form", ["rows", "gram"])
def test_engines_agree_in_distribution(X, form):
    seen = {}
    for seed, literal in enumerate((False, True)):
        rng = np.random.default_rng(seed)
        settings = {**SETTINGS, "tau": 0.5, "n_steps": 2, "form": form, "literal": literal}
        releases = [gauss_mix(X, rng=rng, **settings) for _ in range(1500)]
        A = np.array([release.sketches for release in releases])
        eta = np.array([release.eta for release in releases])
        seen[literal] = [
            eta,
            A[:, 0, 0, 0],
            A[:, 1, -1] @ [1.0, -2.0, 0.5],
            A[:, 0, 0, 0] / (1.0 + eta),
            np.trace(np.swapaxes(A[:, 0], 1, 2) @ A[:, 0], axis1=1, axis2=2),
            (A[:, 0] * A[:, 1]).sum(axis=(1, 2)),
        ]
    for first, second in zip(*seen.values(), strict=True):
        assert stats.ks_2samp(first, second, method="asymp").pvalue > P_VALUE
        assert stats.ks_2samp(2.0 * first + 1.0, second, method="asymp").pvalue < P_VALUE


@pytest.mark.parametrize("block_rows", [1, 8, 2048])
@pytest.mark.parametrize("literal", [False, True])
def test_rows_have_the_covariance_of_the_mechanism(X, literal, block_rows, monkeypatch):
    """Also when the data come in blocks: a block that is left out, or read twice, shows."""
    monkeypatch.setattr(reference, "block_rows", lambda p: block_rows)
    k = 40_000
    release = gauss_mix(X, literal=literal, rng=7, **{**SETTINGS, "k": k})
    sigma = X.T @ X + release.eta**2 * np.eye(3)
    error = np.sqrt((np.outer(np.diag(sigma), np.diag(sigma)) + sigma**2) / k)
    assert (np.abs(release.sketch.T @ release.sketch / k - sigma) <= 6.0 * error).all()
    assert (np.abs(release.sketch.mean(axis=0)) <= 6.0 * np.sqrt(np.diag(sigma) / k)).all()


@pytest.mark.parametrize("c_x", [1.0, 3.7])
def test_eta_and_one_sidedness(X, c_x):
    """eta^2 = gamma c^2 - lambda~, lambda~ > lambda^ as often as the event says."""
    lambda_hat = np.linalg.eigvalsh(X.T @ X)[0] * c_x**2
    tau, n_draws = 0.5, 2000
    rng = np.random.default_rng(3)
    settings = {**SETTINGS, "tau": tau, "gamma": 9.0, "c_x": c_x}
    outs = [gauss_mix(c_x * X, rng=rng, **settings) for _ in range(n_draws)]
    for out in outs:
        level = max(0.0, 9.0 * c_x**2 - out.lambda_tilde[0])
        assert out.eta == pytest.approx(math.sqrt(level), rel=1e-12)
    high = np.array([out.lambda_tilde[0] > lambda_hat for out in outs])
    tail = float(stats.norm.sf(tau))
    assert abs(high.mean() - tail) <= 5.5 * math.sqrt(tail * (1 - tail) / n_draws)
    assert outs[0].event.tail == pytest.approx(tail)
    reached = np.array([lambda_hat + out.eta**2 for out in outs]) >= 9.0 * c_x**2 * (1.0 - 1e-12)
    assert reached[~high].all()
    assert not reached.all()


def test_scaling_data_and_bound_scales_the_release(X, float_noise):
    for literal in (False, True):
        plain = gauss_mix(X, rng=5, literal=literal, **SETTINGS)
        for c in (4.0, 3.7, 1e6):
            scaled = gauss_mix(c * X, c_x=c, rng=5, literal=literal, **SETTINGS)
            # The released eigenvalue lies on a grid of powers of two.
            rel = 1e-9 if c == 4.0 else 1e-4
            assert scaled.sketch == pytest.approx(c * plain.sketch, rel=rel, abs=0.1 * rel * c)
            assert scaled.eta == pytest.approx(c * plain.eta, rel=rel)
            assert scaled.lambda_tilde == pytest.approx((c**2 * plain.lambda_tilde[0],), rel=rel)


@pytest.mark.parametrize("norm", [1.5, 1e6, 1e150])
def test_long_rows_are_clipped(X, norm):
    unit = X / np.linalg.norm(X, axis=1)[:, None]
    for literal in (False, True):
        settings = {**SETTINGS, "literal": literal, "rng": 2}
        out, expected = gauss_mix(norm * unit, **settings), gauss_mix(unit, **settings)
        assert out.sketch == pytest.approx(expected.sketch, rel=1e-9, abs=1e-11)
        assert out.lambda_tilde == pytest.approx(expected.lambda_tilde, rel=1e-9)


def test_rows_bring_their_own_bound(X):
    out = gauss_mix(ArrayRows(X, RowMap(2.0)), c_x=1.0, rng=0, **SETTINGS)
    assert out.eta**2 + out.lambda_tilde[0] == pytest.approx(SETTINGS["gamma"] * 4.0)


def test_rank_deficient_data_without_noise():
    """eta = 0 happens in the rare event only, and must not crash on a singular matrix."""
    X = np.outer(np.ones(40), [1.0, 0.0])
    settings = {**SETTINGS, "gamma": 1.1, "tau": 0.0, "omega": 5.0}
    outs = [gauss_mix(X, rng=seed, literal=False, **settings) for seed in range(30)]
    assert any(out.eta == 0.0 for out in outs)
    assert all(np.isfinite(out.sketch).all() for out in outs)


def test_event(X):
    out = gauss_mix(X, n_steps=3, rng=0, **SETTINGS)
    assert out.event == gauss_mix_event(n_steps=3, **SETTINGS)
    noise, tail, sketch = out.event.events
    assert noise == GaussianEvent(0.5, 1.0, 1)
    assert isinstance(tail, TailEvent)
    assert tail.probability == pytest.approx(stats.norm.sf(3.0))
    assert sketch == SketchEvent("gauss_mix", 5.0, 12)
    assert math.isfinite(RdpAccountant([out.event]).get_epsilon(0.01))
    assert RdpAccountant([out.event]).get_epsilon(0.001) == math.inf
    assert out.sketch is out.sketches[0]
    assert set(vars(out)) == {"sketches", "eta", "m_tilde", "lambda_tilde", "level", "event"}
    assert out.m_tilde == (0.0,)


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"k": 0}, ValueError),
        ({"k": 1.0}, TypeError),
        ({"gamma": 1.0}, ValueError),
        ({"gamma": math.nan}, ValueError),
        ({"tau": math.nan}, ValueError),
        ({"tau": "3"}, TypeError),
        ({"omega": 0.0}, ValueError),
        ({"omega": math.inf}, ValueError),
        ({"n_steps": 0}, ValueError),
        ({"c_x": 0.0}, ValueError),
        ({"form": "x"}, ValueError),
        ({"engine": "literal"}, TypeError),
        ({"X": [[1.0, math.nan]]}, ValueError),
        ({"X": [[1.0, math.inf]]}, ValueError),
        ({"X": [1.0, 2.0]}, ValueError),
        ({"X": np.empty((0, 2))}, ValueError),
        ({"X": [["0.777"]]}, TypeError),
        ({"X": [[0.777j]]}, TypeError),
    ],
)
def test_errors_draw_nothing_and_show_no_data(change, error):
    rng = np.random.default_rng(0)
    before = rng.bit_generator.state
    settings = {"X": [[0.777, 0.777]], **SETTINGS, **change}
    with pytest.raises(error) as info:
        gauss_mix(settings.pop("X"), rng=rng, **settings)
    assert rng.bit_generator.state == before
    assert "0.777" not in str(info.value)


def test_data_are_neither_modified_nor_given_out(X):
    for data in (50.0 * X, np.asfortranarray(X), X.astype(np.float32)):
        before = data.copy()
        for literal in (False, True):
            out = gauss_mix(data, literal=literal, rng=None, **SETTINGS)
            assert not np.shares_memory(out.sketch, data)
        assert (data == before).all()


def test_unseeded_releases_differ(X):
    first, second = (gauss_mix(X, n_steps=2, **SETTINGS) for _ in range(2))
    rows = np.vstack([*first.sketches, *second.sketches])
    assert len(np.unique(rows, axis=0)) == len(rows)


def test_level_may_be_chosen_from_what_was_released(X):
    bounds = {name: SETTINGS[name] for name in ("tau", "omega")}
    rng = np.random.default_rng(0)
    spectrum = gauss_bounds(X, rng=rng, **bounds)
    assert (spectrum.level,) == spectrum.lambda_tilde
    chosen = 7.0 if spectrum.level > 2.0 else 3.0
    out = mix(spectrum, k=4, gamma=chosen, rng=rng)
    assert out.level == spectrum.level
    assert out.lambda_tilde == spectrum.lambda_tilde
    assert out.event == gauss_mix_event(**{**SETTINGS, "gamma": chosen})
    assert out.lambda_tilde[0] + out.eta**2 >= chosen * (1.0 - 1e-12)
    # The choice itself draws nothing: a fixed level gives the same release.
    fixed = gauss_mix(X, rng=0, **{**SETTINGS, "gamma": chosen})
    assert np.array_equal(fixed.sketch, out.sketch)
    before = rng.bit_generator.state
    with pytest.raises(ValueError, match="gamma must be greater than 1"):
        mix(spectrum, k=4, gamma=0.5, rng=rng)
    assert rng.bit_generator.state == before


def test_a_spectrum_does_not_show_what_it_is_of(X):
    """The sources are raw: they must not come out where a spectrum is printed."""
    spectrum = gauss_bounds(X, tau=3.0, omega=0.5, rng=0)
    assert "sources" not in repr(spectrum)
    assert "gram_hat" not in repr(spectrum)
