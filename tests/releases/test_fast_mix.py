"""Algorithms 1 and 3: both engines, both forms, scaling, clipping, rare events, errors.

Statistical comparisons are seeded.  Each Kolmogorov-Smirnov test rejects below 1e-6 and each
frequency at 5.5 standard errors, so the false-alarm rate of the file, over seeds, is below 1e-4.
"""

import dataclasses
import itertools
import math

import numpy as np
import pytest
from randomgen import AESCounter
from scipy import stats

from fastmix.accounting import (
    ComposedEvent,
    Part,
    PrivacySpent,
    RdpAccountant,
    SketchEvent,
    rdp_fast_mix,
    rdp_to_epsilon,
)
from fastmix.data import ArrayRows, RowMap
from fastmix.errors import InvalidValueError
from fastmix.releases import Noise, fast_bounds, fast_mix, mix, spectral_events
from fastmix.releases import noise as noises
from fastmix.sketches import SRHT, KerdockSketch, Sketch, SubsampledDCT
from tests.floats import FloatNoise
from tests.releases.events import fast_mix_event

P_VALUE = 1e-6
ERRORS = 5.5
SETTINGS = {"k1": 4, "gamma": 5.0, "tau": 3.0, "omega": 0.5}


@pytest.fixture(scope="module")
def X():
    rows = np.random.default_rng(0).standard_normal((13, 3)) * [1.0, 0.4, 2.0]
    return rows / np.maximum(1.0, np.linalg.norm(rows, axis=1))[:, None]


def sketches(n):
    return [SRHT(5, n).sample(1), SubsampledDCT(5, n).sample(2), KerdockSketch(8, n).sample(3)]


def true_values(draw, X, c_x=1.0):
    """Return m-hat, lambda-hat and the row bound after the repair to unit columns, densely."""
    S = draw.to_dense()
    norms = np.linalg.norm(S, axis=0)
    U, scaled = S / norms, norms[:, None] * X
    m = np.linalg.norm(U.T @ (U @ scaled) - scaled, axis=1).max()
    return m, np.linalg.eigvalsh((S @ X).T @ (S @ X))[0], c_x * norms.max()


# Distribution ------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["rows", "gram"])
def test_engines_agree_in_distribution(X, form):
    """Jointly with eta: statistics of the sketch alone, and of the sketch measured in eta."""
    draw, n_draws = SRHT(5, 13).sample(1), 1500
    seen = {}
    for seed, literal in enumerate((False, True)):
        rng = np.random.default_rng(seed)
        settings = {**SETTINGS, "tau": 1.2, "form": form, "literal": literal, "n_steps": 2}
        releases = [fast_mix(X, sketch=draw, rng=rng, **settings) for _ in range(n_draws)]
        A = np.array([release.sketches for release in releases])
        eta = np.array([release.eta for release in releases])
        assert A.shape == (n_draws, 2, *((4, 3) if form == "rows" else (3, 3)))
        seen[literal] = [
            eta,
            A[:, 0, 0, 0],
            A[:, 1, -1] @ [1.0, -2.0, 0.5],
            A[:, 0, 0, 0] / eta,
            np.trace(np.swapaxes(A[:, 0], 1, 2) @ A[:, 0], axis1=1, axis2=2) / eta**2,
            (A[:, 0] * A[:, 1]).sum(axis=(1, 2)) / eta**2,
        ]
    for first, second in zip(*seen.values(), strict=True):
        assert stats.ks_2samp(first, second, method="asymp").pvalue > P_VALUE
        assert stats.ks_2samp(2.0 * first + 1.0, second, method="asymp").pvalue < P_VALUE


@pytest.mark.parametrize("literal", [False, True])
def test_rows_have_the_covariance_of_algorithm_1(X, literal):
    """Many rows of one release, so that eta is fixed: covariance Z'Z + eta^2 I at 6 errors."""
    for draw in sketches(13):
        k1 = 40_000
        release = fast_mix(X, sketch=draw, literal=literal, rng=7, **{**SETTINGS, "k1": k1})
        Z = draw.to_dense() @ X
        sigma = Z.T @ Z + release.eta**2 * np.eye(3)
        error = np.sqrt((np.outer(np.diag(sigma), np.diag(sigma)) + sigma**2) / k1)
        sample = release.sketch.T @ release.sketch / k1
        assert (np.abs(sample - sigma) <= 6.0 * error).all()
        assert (np.abs(release.sketch.mean(axis=0)) <= 6.0 * np.sqrt(np.diag(sigma) / k1)).all()


@pytest.mark.parametrize("literal", [False, True])
@pytest.mark.parametrize("k1", [2, 20_000])
def test_gram_form_has_the_scale_of_the_rows(X, literal, k1):
    draw = SRHT(5, 13).sample(1)
    settings = {**SETTINGS, "k1": k1, "form": "gram", "literal": literal, "n_steps": 1}
    release = fast_mix(X, sketch=draw, rng=3, **settings)
    gram = np.asarray(release.sketches[0])
    assert gram.shape == (3, 3)
    assert (gram == gram.T).all()
    assert np.linalg.matrix_rank(gram, tol=1e-8) == min(k1, 3)
    if k1 > 3:
        Z = draw.to_dense() @ X
        sigma = Z.T @ Z + release.eta**2 * np.eye(3)
        error = np.sqrt((np.outer(np.diag(sigma), np.diag(sigma)) + sigma**2) / k1)
        assert (np.abs(gram / k1 - sigma) <= 6.0 * error).all()


def test_steps_and_seeds_are_fresh(X):
    """No row is repeated in one release, in the next one, or under another seed."""
    draw = SRHT(5, 13).sample(1)
    for literal in (False, True):
        settings = {**SETTINGS, "sketch": draw, "literal": literal, "n_steps": 3}
        releases = [fast_mix(X, rng=seed, **settings) for seed in (None, None, 1, 2)]
        rows = np.vstack([np.vstack(release.sketches) for release in releases])
        assert len(np.unique(rows, axis=0)) == len(rows) == 4 * 3 * 4
        again = fast_mix(X, rng=2, **settings)
        assert np.vstack(again.sketches) == pytest.approx(np.vstack(releases[-1].sketches), abs=0)


# The noise level ----------------------------------------------------------------------------


@pytest.mark.parametrize("law", ["laplace", "gaussian"])
@pytest.mark.parametrize("c_x", [1.0, 3.7])
def test_eta_is_the_level_of_algorithm_3(X, law, c_x):
    for draw, seed in itertools.product(sketches(13), range(20)):
        out = fast_mix(c_x * X, sketch=draw, n_steps=3, c_x=c_x, law=law, rng=seed, **SETTINGS)
        bound = c_x * draw.column_norms.max()
        levels = [
            SETTINGS["gamma"] * bound * (bound + 2.0 * m) - lam
            for m, lam in zip(out.m_tilde, out.lambda_tilde, strict=True)
        ]
        assert out.eta == pytest.approx(math.sqrt(max(0.0, *levels)), rel=1e-12)


@pytest.mark.parametrize(
    ("law", "c_x"),
    [
        ("laplace", 3.7),
        pytest.param("laplace", 1.0, marks=pytest.mark.slow),
        pytest.param("gaussian", 3.7, marks=pytest.mark.slow),
        pytest.param("gaussian", 1.0, marks=pytest.mark.slow),
    ],
)
def test_noise_of_the_bounds_is_in_units_of_their_sensitivities(X, law, c_x):
    """Of m~: c coherence. Of lambda~: c (c + 2 m~), with the released m~ and not with m^."""
    tau, omega, exact = 1.0, 5e-4, {"laplace": stats.laplace, "gaussian": stats.norm}[law]
    for kind, seed in ((SRHT, 1), (SubsampledDCT, 2), (KerdockSketch, 3)):
        draw = kind(8, 13).sample(seed)
        m_hat, lambda_hat, bound = true_values(draw, c_x * X, c_x)
        rng = np.random.default_rng(3)
        settings = {"k1": 1, "gamma": 5.0, "tau": tau, "omega": omega, "sketch": draw}
        outs = [fast_mix(c_x * X, c_x=c_x, law=law, rng=rng, **settings) for _ in range(800)]

        def noises(outs, m_hat=m_hat, lambda_hat=lambda_hat, bound=bound, draw=draw):
            m, lam = (
                np.array([getattr(o, name)[0] for o in outs])
                for name in ("m_tilde", "lambda_tilde")
            )
            assert (lam > 0.0).all()
            first = tau - (m - m_hat) / (omega * bound * draw.coherence)
            return first, tau - (lambda_hat - lam) / (omega * bound * (bound + 2.0 * m))

        first, second = noises(outs)
        for noise in (first, second):
            assert stats.kstest(noise, exact.cdf).pvalue > P_VALUE
            assert stats.kstest(2.0 * noise, exact.cdf).pvalue < P_VALUE
        assert abs(np.corrcoef(first, second)[0, 1]) < 6.0 / math.sqrt(800)
        # Exactly that scale: with m^ for m~ the noise would not have been independent of m~.
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Noise, "_floored", FloatNoise._floored)
            out = fast_mix(c_x * X, c_x=c_x, law=law, rng=np.random.default_rng(3), **settings)
        rng = np.random.default_rng(3)
        replay = getattr(rng, "laplace" if law == "laplace" else "standard_normal")
        z = [-replay(), replay()]
        assert np.ravel(noises([out])) == pytest.approx(z, rel=1e-6, abs=1e-6)


def test_rare_events_are_as_rare_as_accounted(X):
    """m~ < m^ and lambda~ > lambda^ each with the probability of z > tau; otherwise one-sided."""
    tau, n_draws = 0.5, 1500
    probability = 0.5 * math.exp(-tau)
    error = ERRORS * math.sqrt(probability * (1 - probability) / n_draws)
    for draw, seed in zip(sketches(13), (1, 2, 3), strict=True):
        m_hat, lambda_hat, bound = true_values(draw, X)
        rng = np.random.default_rng(seed)
        outs = [
            fast_mix(X, sketch=draw, rng=rng, **{**SETTINGS, "tau": tau}) for _ in range(n_draws)
        ]
        low = np.array([out.m_tilde[0] < m_hat for out in outs])
        high = np.array([out.lambda_tilde[0] > lambda_hat for out in outs])
        assert abs(low.mean() - probability) <= error
        assert abs(high.mean() - probability) <= error
        union = 1.0 - (1.0 - probability) ** 2
        assert abs((low | high).mean() - union) <= error
        assert (low | high).mean() <= outs[0].event.tail + error
        level = SETTINGS["gamma"] * bound * (bound + 2.0 * m_hat)
        reached = np.array([lambda_hat + out.eta**2 for out in outs]) >= level * (1.0 - 1e-12)
        assert reached[~(low | high)].all()
        assert not reached.all()


def test_every_step_reaches_the_level_when_none_fails(X):
    """One eta for all steps is large enough for each of their fast sketches."""
    drawn = []

    class Recorder(Sketch):
        def sample(self, rng=None):
            drawn.append(SRHT(4, self.n).sample(rng))
            return drawn[-1]

    for seed in range(40):
        drawn.clear()
        out = fast_mix(X, sketch=Recorder(4, 13), n_steps=4, rng=seed, **{**SETTINGS, "tau": 12.0})
        assert len({draw.rows.tobytes() + draw.signs.tobytes() for draw in drawn}) == 4
        for draw in drawn:
            m_hat, lambda_hat, bound = true_values(draw, X)
            level = SETTINGS["gamma"] * bound * (bound + 2.0 * m_hat)
            assert lambda_hat + out.eta**2 >= level * (1.0 - 1e-12)


def test_more_features_than_sketch_rows(X):
    """lambda_min is 0, so the noise alone must reach the level."""
    draw = SRHT(2, 13).sample(0)
    m_hat, lambda_hat, _ = true_values(draw, X)
    assert lambda_hat == pytest.approx(0.0, abs=1e-12)
    for seed in range(20):
        out = fast_mix(X, sketch=draw, rng=seed, **{**SETTINGS, "tau": 12.0})
        assert out.eta**2 >= SETTINGS["gamma"] * (1.0 + 2.0 * m_hat) * (1.0 - 1e-12)
        assert np.isfinite(out.sketch).all()


@pytest.mark.parametrize("literal", [False, True])
def test_one_record(literal):
    for sketch in (SRHT(1, 1), SubsampledDCT(1, 1), KerdockSketch(1, 1)):
        out = fast_mix([[0.3, 0.4]], sketch=sketch, literal=literal, rng=0, **SETTINGS)
        assert out.m_tilde == (0.0,)
        assert out.eta**2 + out.lambda_tilde[0] == pytest.approx(SETTINGS["gamma"])


def test_full_size_sketch_releases_no_distortion(X):
    """k2 = n_pad: m^ is 0 whatever the data, and m~ must not depend on them either."""
    for seed in range(10):
        for sketch in (SRHT(16, 13), KerdockSketch(16, 13)):
            out = fast_mix(X, sketch=sketch, rng=seed, **SETTINGS)
            assert out.m_tilde == (0.0,)


# Scaling and clipping ------------------------------------------------------------------------


@pytest.mark.parametrize("literal", [False, True])
@pytest.mark.parametrize("form", ["rows", "gram"])
@pytest.mark.parametrize("c", [4.0, 2.0**-20, 3.7, 1e6])
def test_scaling_data_and_bound_scales_the_release(X, literal, form, c, request):
    # Released bounds lie on a grid of powers of two, which only such a c scales exactly; exact
    # noise of another scale takes other bits.
    rel = 1e-9
    if not math.log2(c).is_integer():
        rel = 1e-4
        request.getfixturevalue("float_noise")
    for draw in sketches(13):
        settings = {**SETTINGS, "sketch": draw, "literal": literal, "form": form, "n_steps": 2}
        plain = fast_mix(X, rng=5, **settings)
        scaled = fast_mix(c * X, c_x=c, rng=5, **settings)
        power = 1 if form == "rows" else 2
        for first, second in zip(plain.sketches, scaled.sketches, strict=True):
            expected = c**power * np.asarray(first)
            assert np.asarray(second) == pytest.approx(expected, rel=rel, abs=0.1 * rel * c**power)
        assert scaled.eta == pytest.approx(c * plain.eta, rel=rel)
        assert scaled.m_tilde == pytest.approx(c * np.array(plain.m_tilde), rel=rel)
        assert scaled.lambda_tilde == pytest.approx(c**2 * np.array(plain.lambda_tilde), rel=rel)
        assert scaled.event == plain.event


@pytest.mark.parametrize("norm", [1.5, 1e6, 1e100, 1e150])
@pytest.mark.parametrize("c_x", [1.0, 0.25])
def test_long_rows_are_clipped(X, norm, c_x):
    lengths = np.linalg.norm(X, axis=1)[:, None]
    long, short = norm * X / lengths, c_x * X / lengths
    for draw in sketches(13):
        settings = {**SETTINGS, "sketch": draw, "c_x": c_x}
        out, expected = fast_mix(long, rng=2, **settings), fast_mix(short, rng=2, **settings)
        assert out.sketch == pytest.approx(expected.sketch, rel=1e-9, abs=1e-11)
        assert out.m_tilde == pytest.approx(expected.m_tilde, rel=1e-9)
        assert out.lambda_tilde == pytest.approx(expected.lambda_tilde, rel=1e-9, abs=1e-11)


def test_one_enormous_row_changes_no_more_than_a_row_may(X):
    """A row of any finite size moves the covariance of the sketch as little as a bounded one."""
    draw = SRHT(16, 13).sample(0)
    k1 = 20_000
    settings = {**SETTINGS, "k1": k1, "sketch": draw}
    base = fast_mix(X, rng=1, **settings)
    for size in (1e6, 1e160, 1e300, 1.7e308):
        Y = X.copy()
        Y[0] = size
        out = fast_mix(Y, rng=1, **settings)
        assert np.isfinite(out.sketch).all()
        change = out.sketch.T @ out.sketch / k1 - out.eta**2 * np.eye(3)
        change -= base.sketch.T @ base.sketch / k1 - base.eta**2 * np.eye(3)
        assert np.linalg.norm(change, 2) <= 2.0 + 1.0


def test_denormal_rows_are_kept_as_they_are(X):
    Y = X.copy()
    Y[3:] = 5e-324
    draw = SRHT(5, 13).sample(1)
    zero = np.where(Y == 5e-324, 0.0, Y)
    out, expected = (fast_mix(A, sketch=draw, rng=1, **SETTINGS) for A in (Y, zero))
    assert out.sketch == pytest.approx(expected.sketch, rel=1e-12)


def test_rows_bring_their_own_bound(X):
    rows = ArrayRows(X, RowMap(2.0))
    out = fast_mix(rows, sketch=SRHT(16, 13), c_x=1.0, rng=0, **SETTINGS)
    assert out.eta**2 + out.lambda_tilde[0] == pytest.approx(SETTINGS["gamma"] * 2.0**2)


# Events --------------------------------------------------------------------------------------


@pytest.mark.parametrize("law", ["laplace", "gaussian"])
def test_event_is_known_before_the_data(X, law):
    out = fast_mix(X, sketch=SRHT(5, 13), n_steps=3, law=law, rng=0, **SETTINGS)
    assert out.event == fast_mix_event(n_steps=3, law=law, **SETTINGS)
    assert out.event == ComposedEvent(
        [
            *spectral_events(law, tau=3.0, omega=0.5, count=6),
            SketchEvent("fast_mix", 5.0, 12),
        ]
    )
    single = fast_mix(X, sketch=SRHT(5, 13), rng=0, **SETTINGS)
    assert single.event == fast_mix_event(**SETTINGS)


@pytest.mark.parametrize("delta", [1e-3, 1e-6, 1e-10])
@pytest.mark.parametrize("k1", [1, 40])
def test_event_costs_what_theorem_1_says(delta, k1):
    """The split of Theorem 1: 2/omega for the Laplace releases, delta/3 for each of three."""
    gamma, omega, tau = 60.0, 7.0, math.log(3.0 / (2.0 * delta))
    event = fast_mix_event(k1=k1, gamma=gamma, tau=tau, omega=omega)
    noise, tail, sketch = event.events
    assert tail.tail == pytest.approx(2.0 * delta / 3.0, rel=1e-12)
    rows = rdp_to_epsilon(lambda alpha: k1 * rdp_fast_mix(alpha, gamma), delta / 3.0)
    epsilon = 2.0 / omega + rows
    parts = [Part("bounds", [noise], 0.0), Part("sketch", [sketch], delta / 3.0)]
    assert PrivacySpent(parts).epsilon == pytest.approx(epsilon, rel=1e-9)
    joint = RdpAccountant([event]).get_epsilon(delta)
    assert joint <= epsilon * (1.0 + 1e-9)
    # Forgetting the tail or a Laplace release would show.
    assert RdpAccountant([event]).get_epsilon(0.6 * delta) == math.inf
    assert joint > RdpAccountant([sketch]).get_epsilon(delta)


# Bounds first, sketches later ----------------------------------------------------------------


def test_three_steps_are_the_mechanism(X):
    """Bounds, a level that was read off them, sketches: what a fixed level gives in one call."""
    rng = np.random.default_rng(0)
    bounds = {"tau": 3.0, "omega": 0.5, "sketch": SRHT(5, 13).sample(1)}
    spectrum = fast_bounds(X, count=2, rng=rng, **bounds)
    gamma = 5.0 if spectrum.level < 5.0 else 7.0
    ours = mix(spectrum, k=4, gamma=gamma, rng=rng)
    expected = fast_mix(X, k1=4, gamma=gamma, n_steps=2, rng=0, **bounds)
    assert ours.event == expected.event
    assert (ours.m_tilde, ours.lambda_tilde) == (expected.m_tilde, expected.lambda_tilde)
    assert all(map(np.array_equal, ours.sketches, expected.sketches))
    c = spectrum.sources[0].bound
    reached = zip(spectrum.m_tilde, spectrum.lambda_tilde, strict=True)
    assert spectrum.level == min(lam / (c * (c + 2.0 * m)) for m, lam in reached)
    assert "gram_hat" not in repr(spectrum)


@pytest.mark.parametrize("literal", [False, True])
def test_one_fast_sketch_for_several_steps(X, literal):
    """One pair of bounds is charged; every Gaussian sketch has the covariance of that draw."""
    draw, k = SRHT(5, 13).sample(1), 40_000
    spectrum = fast_bounds(X, tau=3.0, omega=0.5, sketch=draw, literal=literal, rng=1)
    out = mix(spectrum, k=k, gamma=5.0, count=3, rng=2)
    assert out.event == ComposedEvent(
        [
            *spectral_events("laplace", tau=3.0, omega=0.5, count=2),
            SketchEvent("fast_mix", 5.0, 3 * k),
        ]
    )
    Z = draw.to_dense() @ X
    sigma = Z.T @ Z + out.eta**2 * np.eye(3)
    error = np.sqrt((np.outer(np.diag(sigma), np.diag(sigma)) + sigma**2) / k)
    assert len(out.sketches) == 3
    for sketch in out.sketches:
        assert (np.abs(sketch.T @ sketch / k - sigma) <= 6.0 * error).all()
    rows = np.vstack(out.sketches)
    assert len(np.unique(rows, axis=0)) == len(rows)


def test_the_sharper_curve_is_charged_and_needs_no_more(X):
    """The event names the curve; the level is the lesser of two, and gamma may be below 5/4."""
    for draw, seed, gamma in itertools.product(sketches(13), range(5), (1.1, 5.0, 60.0)):
        bounds = {"tau": 3.0, "omega": 0.5, "sketch": draw, "rng": seed}
        sharp, paper = (fast_bounds(X, sharp=sharp, **bounds) for sharp in (True, False))
        out = mix(sharp, k=4, gamma=gamma, rng=0)
        assert out.event.events[-1] == SketchEvent("fast_mix_sharp", gamma, 4)
        c, m, lam = draw.column_norms.max(), out.m_tilde[0], out.lambda_tilde[0]
        kappa = (gamma + math.sqrt(gamma**2 - gamma)) ** 2
        needed = min(gamma * c * (c + 2.0 * m), kappa * c**2)
        assert out.eta**2 == pytest.approx(max(0.0, needed - lam), rel=1e-9, abs=1e-12)
        if gamma > 1.25:
            assert out.eta <= mix(paper, k=4, gamma=gamma, rng=0).eta
        else:
            with pytest.raises(ValueError, match=r"gamma must be greater than 1\.25"):
                mix(paper, k=4, gamma=gamma, rng=0)


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"k": 0}, ValueError),
        ({"k": True}, TypeError),
        ({"gamma": 1.25}, ValueError),
        ({"gamma": math.inf}, ValueError),
        ({"count": 0}, ValueError),
        ({"form": "column"}, ValueError),
        ({"spectrum": None}, TypeError),
    ],
)
def test_sketches_are_refused_before_any_draw(X, change, error):
    spectrum = fast_bounds(X, tau=3.0, omega=0.5, sketch=SRHT(5, 13), rng=0)
    rng = np.random.default_rng(0)
    before = rng.bit_generator.state
    with pytest.raises(error):
        mix(**{"spectrum": spectrum, "k": 4, "gamma": 5.0, "rng": rng, **change})
    assert rng.bit_generator.state == before


# What must not happen ------------------------------------------------------------------------


def bad_data():
    good = np.ones((13, 3))
    for value in (np.nan, np.inf, -np.inf):
        bad = good.copy()
        bad[4, 1] = value
        yield bad, ValueError
    yield np.ones(13), ValueError
    yield np.ones((13, 3, 1)), ValueError
    yield np.float64(3.0), ValueError
    yield np.empty((0, 3)), ValueError
    yield np.empty((13, 0)), ValueError
    yield good + 1j, TypeError
    yield good.astype(object), TypeError
    yield good.astype(str), TypeError
    yield np.full((13, 3), np.datetime64("2020-01-01")), TypeError
    yield None, TypeError


BAD_SETTINGS = [
    ({"k1": 0}, ValueError),
    ({"k1": -3}, ValueError),
    ({"k1": 2.0}, TypeError),
    ({"k1": True}, TypeError),
    ({"gamma": 1.25}, ValueError),
    ({"gamma": 0.0}, ValueError),
    ({"gamma": math.nan}, ValueError),
    ({"gamma": math.inf}, ValueError),
    ({"gamma": "5"}, TypeError),
    ({"tau": math.nan}, ValueError),
    ({"tau": math.inf}, ValueError),
    ({"tau": -1.0}, ValueError),
    ({"omega": 0.0}, ValueError),
    ({"omega": -1.0}, ValueError),
    ({"omega": math.nan}, ValueError),
    ({"n_steps": 0}, ValueError),
    ({"n_steps": 1.5}, TypeError),
    ({"c_x": 0.0}, ValueError),
    ({"c_x": -1.0}, ValueError),
    ({"c_x": math.nan}, ValueError),
    ({"c_x": math.inf}, ValueError),
    ({"law": "cauchy"}, ValueError),
    ({"law": None}, ValueError),
    ({"form": "column"}, ValueError),
    ({"release": "gaussian"}, TypeError),
    ({"engine": "literal"}, TypeError),
    ({"sketch": SRHT(4, 12)}, ValueError),
    ({"sketch": SRHT(4, 16).sample(0)}, ValueError),
    ({"sketch": "srht"}, TypeError),
    ({"sketch": np.ones((4, 13))}, TypeError),
    ({"sketch": None}, TypeError),
    ({"sketch": SRHT}, TypeError),
]


def assert_refused(error, data, settings):
    """The call raises, draws nothing, and its message shows no value of the data."""
    rng = np.random.default_rng(0)
    before = rng.bit_generator.state
    with pytest.raises(error) as info:
        fast_mix(data, rng=rng, **settings)
    assert rng.bit_generator.state == before
    return str(info.value)


@pytest.mark.parametrize(("data", "error"), list(bad_data()))
def test_bad_data_are_refused_before_any_draw(data, error):
    settings = {**SETTINGS, "sketch": SRHT(4, 13), "n_steps": 1}
    message = assert_refused(error, data, settings)
    assert message.startswith(("X must", InvalidValueError.MESSAGE))


@pytest.mark.parametrize(("change", "error"), BAD_SETTINGS)
def test_bad_settings_are_refused_before_any_draw(change, error):
    secret = np.full((13, 3), 0.123456789)
    settings = {**SETTINGS, "sketch": SRHT(4, 13), "n_steps": 1, **change}
    message = assert_refused(error, secret, settings)
    assert "0.1234" not in message
    if "n_steps" not in change:
        single = {name: value for name, value in settings.items() if name != "n_steps"}
        with pytest.raises(error):
            fast_mix(secret, rng=0, **single)


def test_bad_seed_is_refused(X):
    for rng in ("seed", 1.5, True, [1, 2]):
        with pytest.raises(TypeError, match="random_state"):
            fast_mix(X, sketch=SRHT(4, 13), rng=rng, **SETTINGS)


def test_a_sketch_has_at_most_n_pad_rows():
    with pytest.raises(ValueError, match="k2"):
        SRHT(17, 13)
    with pytest.raises(ValueError, match="k2"):
        SubsampledDCT(14, 13)


def test_messages_hide_the_data():
    """Data that cannot be used are described by shape and dtype, not shown."""
    settings = {**SETTINGS, "sketch": SRHT(2, 2), "n_steps": 1}
    for row in (["4.321", "secret"], [4.321, math.nan], 4.321, [4.321j]):
        with pytest.raises((TypeError, ValueError)) as info:
            fast_mix([row, row], rng=0, **settings)
        assert "4.321" not in str(info.value)
        assert "secret" not in str(info.value)


def test_release_holds_private_values_only(X):
    """A new field must be thought about: this list is what the privacy proof covers."""
    names = {"sketches", "eta", "m_tilde", "lambda_tilde", "level", "event"}
    for literal in (False, True):
        out = fast_mix(X, sketch=SRHT(16, 13), literal=literal, rng=0, **SETTINGS)
        assert {field.name for field in dataclasses.fields(out)} == names == set(vars(out))
        assert not np.shares_memory(out.sketch, X)
        many = fast_mix(X, sketch=SRHT(16, 13), literal=literal, n_steps=2, rng=0, **SETTINGS)
        assert set(vars(many)) == names
        assert not any(name.endswith("_hat") for name in dir(out) + dir(many))
        assert all(each.base is None for each in many.sketches)


def test_input_is_not_modified(X):
    for data in (X.copy(), 50.0 * X, np.asfortranarray(X)):
        before = data.copy()
        for literal in (False, True):
            fast_mix(data, sketch=SRHT(4, 13), literal=literal, rng=0, **SETTINGS)
        assert (data == before).all()


def test_layouts_and_dtypes(X):
    X32 = X.astype(np.float32)
    settings = {**SETTINGS, "sketch": SRHT(4, 13).sample(0)}
    expected = fast_mix(X32.astype(np.float64), rng=1, **settings).sketch
    wide = np.zeros((26, 9), dtype=np.float32)
    wide[::2, ::3] = X32
    read_only = X32.copy()
    read_only.setflags(write=False)
    swapped = X32.astype(X32.dtype.newbyteorder())
    for data in (
        X32,
        np.asfortranarray(X32),
        wide[::2, ::3],
        X32[::-1][::-1],
        read_only,
        swapped,
        X32.astype(np.longdouble),
        X32.tolist(),
    ):
        for literal in (False, True):
            out = fast_mix(data, rng=1, literal=literal, **settings)
            if not literal:
                assert out.sketch == pytest.approx(expected, rel=1e-12)
            assert out.sketch.dtype == np.float64
    whole = np.arange(39).reshape(13, 3) % 2
    expected = fast_mix(whole.astype(float), rng=1, **settings).sketch
    for dtype in (np.int8, np.uint64, np.int64, bool, np.float16):
        assert fast_mix(whole.astype(dtype), rng=1, **settings).sketch == pytest.approx(expected)


def test_no_global_state_is_touched(X):
    before = np.random.get_state()  # noqa: NPY002
    for seed in (None, 0, np.random.RandomState(0)):
        fast_mix(X, sketch=SRHT(4, 13), n_steps=2, rng=seed, **SETTINGS)
    after = np.random.get_state()  # noqa: NPY002
    assert before[0] == after[0]
    assert before[2:] == after[2:]
    assert (before[1] == after[1]).all()


def test_fast_sketch_never_sees_the_secret_stream(X, monkeypatch):
    """Unseeded, the sketch is drawn from a public generator and leaves the secret one alone."""
    secret, given = [], []
    make = noises.secret_generator

    def recording(rng, **options):
        secret.append(make(rng, **options))
        return secret[-1]

    class Recorder(Sketch):
        def sample(self, rng=None):
            given.append(rng)
            rng.standard_normal(100)
            return SRHT(4, 13).sample(0)

    monkeypatch.setattr(noises, "secret_generator", recording)
    fast_mix(X, sketch=Recorder(4, 13), n_steps=2, rng=None, **SETTINGS)
    assert len(secret) == 1
    assert isinstance(secret[0].bit_generator, AESCounter)
    assert len(given) == 2
    assert all(rng is not secret[0] for rng in given)
    assert all(not isinstance(rng.bit_generator, AESCounter) for rng in given)

    # The same secret stream gives the same release whether or not the sketch had to be drawn.
    monkeypatch.setattr(noises, "secret_generator", lambda rng, **_: np.random.default_rng(9))
    drawn = fast_mix(X, sketch=Recorder(4, 13), rng=None, **SETTINGS)
    fixed = fast_mix(X, sketch=SRHT(4, 13).sample(0), rng=None, **SETTINGS)
    assert (drawn.sketch == fixed.sketch).all()
    assert drawn.m_tilde == fixed.m_tilde
