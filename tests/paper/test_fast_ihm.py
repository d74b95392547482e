"""FastIHM against Algorithms 2 and 3 and Appendices E and H, recomputed here."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from fastmix import BudgetAccountant, FastIHM
from fastmix.data import ArrayRows, RowMap
from fastmix.datasets import make_sphere
from fastmix.engine import Draws, Sizes, Target
from fastmix.paper import FastIterativeHessianMixing, fast_ihm
from fastmix.planning.cost import CostModel
from fastmix.releases import GramRelease, Noise

PAPER = {"data_norm": 1.0, "bounds_y": (-1, 1), "fit_intercept": False}

#: epsilon, delta, n, d, T
GRID = [
    (1.0, 1e-6, 64, 3, 4),
    pytest.param(0.1, None, 50, 2, 1, marks=pytest.mark.slow),
    (0.3, 1e-9, 128, 5, 3),
    pytest.param(3.0, 1e-5, 33, 1, 7, marks=pytest.mark.slow),
    pytest.param(10.0, 1e-3, 200, 40, 4, marks=pytest.mark.slow),
    (1e-4, 1e-6, 16, 2, 2),
    pytest.param(100.0, 1e-8, 64, 3, 4, marks=pytest.mark.slow),
    (1.0, 0.1, 1, 1, 1),
]


def fitted(epsilon, delta, n, d, steps, **options):
    X, y = make_sphere(n=n, d=d, random_state=1)
    model = FastIHM(
        epsilon=epsilon,
        delta=delta,
        n_steps=steps,
        random_state=0,
        **PAPER,
        **{"variant": "paper", **options},
    )
    return model.fit(X, y)


def expected_sizes(n, d, steps, varrho):
    base = max(d, math.log(4 * steps / varrho))
    return math.ceil(6 * base), min(1 << (n - 1).bit_length(), math.ceil(200 * base))


@pytest.mark.parametrize(("epsilon", "delta", "n", "d", "steps"), GRID)
@pytest.mark.filterwarnings("ignore::fastmix.errors.WeakPrivacyWarning")
def test_numerical_noise_levels_and_account(epsilon, delta, n, d, steps, oracle):
    model = fitted(epsilon, delta, n, d, steps, variant="paper")
    delta = 1.0 / max(n, 2) ** 2 if delta is None else delta
    varrho = delta / 10
    k1, k2 = expected_sizes(n, d, steps, varrho)
    plan = model.privacy_.parameters
    assert (plan["k1"], plan["k2"]) == (k1, k2)
    # Thirds of the budget, each level from its own third.
    gamma = oracle.fast_gamma(epsilon / 3, delta / 3, k1 * steps)
    sigma = math.sqrt(steps) * oracle.gaussian_sigma(epsilon / 3, delta / 3)
    assert model.gamma_ == pytest.approx(gamma, rel=2e-7)
    assert model.gradient_noise_ == pytest.approx(sigma, rel=2e-7)
    assert plan["omega"] == pytest.approx(6 * steps / epsilon, rel=1e-14)
    tau = max(math.log(3 * steps / delta), math.log(16 * steps / varrho))
    assert plan["tau"] == pytest.approx(tau, rel=1e-11)

    # The account of what was released, recomputed.
    spent = 2 * steps / plan["omega"]
    spent += oracle.sketch_epsilon(oracle.phi_bar, model.gamma_, k1 * steps, delta / 3)
    spent += oracle.gaussian_epsilon(math.sqrt(steps) / model.gradient_noise_, delta / 3)
    assert spent == pytest.approx(epsilon, rel=1e-6)
    assert spent <= epsilon * (1 + 1e-9)
    assert steps * math.exp(-plan["tau"]) <= delta / 3  # 2T tails of exp(-tau)/2

    assert model.privacy_.epsilon == pytest.approx(epsilon, rel=1e-6)
    assert model.privacy_.epsilon <= epsilon
    assert model.privacy_.delta == pytest.approx(delta, rel=1e-12)


@pytest.mark.parametrize("varrho", [1e-12, 1e-6, 5e-6])
def test_failure_probability_only_raises_tau(varrho):
    plain = fitted(1.0, 1e-6, 64, 3, 4, gaussian_size=60)
    other = fitted(1.0, 1e-6, 64, 3, 4, gaussian_size=60, failure_probability=varrho)
    expected = max(math.log(12 / 1e-6), math.log(64 / varrho))
    assert other.privacy_.parameters["tau"] == pytest.approx(expected, rel=1e-11)
    assert (other.gamma_, other.gradient_noise_) == (plain.gamma_, plain.gradient_noise_)
    assert other.privacy_.epsilon <= 1.0


def test_sizes_can_be_given_and_are_paid_for(oracle):
    for k1 in (1, 2, 500):
        model = fitted(1.0, 1e-6, 64, 3, 2, gaussian_size=k1, sketch_size=17)
        assert model.privacy_.parameters["k1"] == k1
        assert model.privacy_.parameters["k2"] == 17
        assert model.gamma_ == pytest.approx(oracle.fast_gamma(1 / 3, 1e-6 / 3, 2 * k1), rel=2e-7)
        assert model.privacy_.epsilon <= 1.0
        (sketch,) = [e for e in model.privacy_.events if e.kind == "sketch"]
        assert sketch.rows == 2 * k1


def algorithm_2(X, y, oracle, *, k1, k2, gamma, tau, omega, sigma, clip, steps, shrinkage, seed):
    """Algorithms 2 and 3, line by line; only the order of the draws is the library's."""
    rng = np.random.default_rng(seed)
    n, d = X.shape
    eta, sketched = 0.0, []
    for _ in range(steps):
        S = oracle.srht(rng, k2, n)
        Z = S @ X
        m_hat = np.linalg.norm(Z.T @ S - X.T, axis=0).max()
        gram = np.abs(S.T @ S)
        coherence = (gram - np.diag(np.diag(gram))).max()
        lambda_hat = np.linalg.eigvalsh(Z.T @ Z)[0]
        m = max(0.0, m_hat + omega * coherence * (tau + rng.laplace()))
        lam = max(0.0, lambda_hat - omega * (1 + 2 * m) * (tau - rng.laplace()))
        eta = max(eta, math.sqrt(max(0.0, gamma * (1 + 2 * m) - lam)))
        sketched.append(Z)
    mixed = []
    for Z in sketched:
        xi = rng.standard_normal((k1, d))
        S_G = rng.standard_normal((k1, k2))
        mixed.append(S_G @ Z + eta * xi)
    theta = np.zeros(d)
    for X_t in mixed:
        zeta = rng.standard_normal(d)
        residual = np.clip(y - X @ theta, -clip, clip)
        G = X.T @ residual - (eta**2 * theta if shrinkage else 0.0) + sigma * zeta
        theta = theta + np.linalg.solve(X_t.T @ X_t / k1, G)
    return theta, eta


@pytest.mark.parametrize("shrinkage", [False, True])
@pytest.mark.parametrize(
    ("n", "d", "k2", "clip", "epsilon", "steps"),
    [(256, 3, 32, None, 2.0, 4), (100, 2, 50, 0.3, 1.0, 3), (512, 4, 100, None, 500.0, 5)],
)
@pytest.mark.filterwarnings("ignore::fastmix.errors.WeakPrivacyWarning")
def test_as_written_it_is_algorithm_2(
    n, d, k2, clip, epsilon, steps, shrinkage, oracle, float_noise
):
    X, y = make_sphere(n=n, d=d, random_state=2)
    X = X * (1.0 - 1e-12)
    model = FastIHM(
        variant="paper",
        epsilon=epsilon,
        delta=1e-5,
        n_steps=steps,
        sketch_size=k2,
        residual_clip=clip,
        shrinkage=shrinkage,
        literal=True,
        random_state=11,
        **PAPER,
    ).fit(X, y)
    plan = model.privacy_.parameters
    theta, eta = algorithm_2(
        X,
        y,
        oracle,
        k1=plan["k1"],
        k2=k2,
        gamma=model.gamma_,
        tau=plan["tau"],
        omega=plan["omega"],
        sigma=model.gradient_noise_,
        clip=clip or 1.0,
        steps=steps,
        shrinkage=shrinkage,
        seed=11,
    )
    # Released values lie on a grid of about 1e-6 of their noise.
    assert model.eta_ == pytest.approx(eta, rel=1e-5)
    np.testing.assert_allclose(model.coef_, theta, rtol=1e-3, atol=1e-5)
    assert model.intercept_ == 0.0


def test_shrinkage_changes_the_answer_and_not_the_price():
    X, y = make_sphere(n=256, d=3, random_state=2)
    fits = [
        FastIHM(variant="paper", epsilon=1.0, shrinkage=keep, random_state=0, **PAPER).fit(X, y)
        for keep in (False, True)
    ]
    assert fits[0].eta_ == fits[1].eta_ > 0.0
    assert not np.allclose(fits[0].coef_, fits[1].coef_)
    assert fits[0].privacy_.spent == fits[1].privacy_.spent


@pytest.mark.parametrize("sketch", ["srht", "dct"])
def test_both_ways_of_drawing_have_one_distribution(sketch):
    """Kolmogorov-Smirnov on three coordinates and eta, 300 draws each; false alarms below 4e-4."""
    X, y = make_sphere(n=48, d=3, random_state=3)
    rows = ArrayRows(X, RowMap(1.0), y)
    draws = {}
    for literal, seed in ((False, 1), (True, 2)):
        method = FastIterativeHessianMixing(
            variant="paper", n_steps=2, sketch_size=24, literal=literal, sketch=sketch
        )
        plan = method.plan(Sizes(48, 3), Target(30.0, 1e-3, 1e-4))
        rng = np.random.default_rng(seed)
        source = Draws(Noise(rng), rng)
        solutions = [method.solve(rows, plan, 1.0, source) for _ in range(300)]
        draws[literal] = np.array([[*s.theta, s.eta] for s in solutions])
    for short, literal in zip(draws[False].T, draws[True].T, strict=True):
        assert np.ptp(short) > 0.0
        assert stats.ks_2samp(short, literal).pvalue > 1e-4


def test_a_fresh_sketch_is_drawn_each_step(monkeypatch):
    from fastmix.sketches import SRHT

    drawn = []
    sample = SRHT.sample
    monkeypatch.setattr(
        SRHT, "sample", lambda self, rng=None: drawn.append(sample(self, rng)) or drawn[-1]
    )
    fitted(1.0, 1e-6, 64, 3, 4, sketch_size=20)
    assert len(drawn) == 4
    assert len({draw.rows.tobytes() for draw in drawn}) == 4


def test_dct_sketch_pays_for_its_columns():
    X, y = make_sphere(n=100, d=3, random_state=4)
    model = FastIHM(epsilon=2.0, sketch="dct", random_state=0, **PAPER).fit(X, y)
    assert model.privacy_.parameters["k2"] == 100
    assert model.privacy_.epsilon <= 2.0
    assert np.isfinite(model.coef_).all()


def test_the_mean_is_released_with_an_intercept_and_bounds_only():
    X, y = problem_with_mean()
    kinds = {}
    for name, options in {
        "centred": {"bounds_X": (0, 1), "sketch_size": 2**12},
        "no sketch": {"bounds_X": (0, 1)},
        "no intercept": {"bounds_X": (0, 1), "fit_intercept": False, "sketch_size": 2**12},
        "no bounds": {"data_norm": 2.0, "sketch_size": 2**12},
        "paper": {"bounds_X": (0, 1), "variant": "paper"},
    }.items():
        model = FastIHM(bounds_y=(-1, 1), random_state=0, **options).fit(X, y)
        kinds[name] = model.privacy_.parameters.get("centre_sigma") is not None
        assert model.privacy_.epsilon <= 1.0
    released = {name for name, is_released in kinds.items() if is_released}
    assert released == {"centred"}


def test_centring_lowers_the_noise_of_data_with_a_mean(monkeypatch):
    X, y = problem_with_mean()
    options = {"bounds_X": (0, 1), "bounds_y": (-1, 1), "random_state": 0, "epsilon": 3.0}
    scales = []
    release = fast_ihm.sketched_gram

    def watched(*given, **levels):
        released = release(*given, **levels)
        scales.append(released.scale)
        return released

    monkeypatch.setattr(fast_ihm, "sketched_gram", watched)
    FastIHM(sketch="kerdock", sketch_size=2**12, **options).fit(X, y)
    monkeypatch.setattr(
        FastIHM, "_sizes", lambda self, n, d: Sizes(n, d + 1, centred=False, intercept=True)
    )
    FastIHM(sketch="kerdock", sketch_size=2**12, **options).fit(X, y)
    assert scales[0] < 0.8 * scales[1]


def problem_with_mean():
    """Features of mean 0.8 in [0, 1], whose mean row carries most of the Gram matrix."""
    rng = np.random.default_rng(3)
    X = 1.0 - 0.4 * rng.uniform(size=(2**14, 6))
    y = np.clip(2.0 * (X - 0.8) @ rng.standard_normal(6) + 0.05 * rng.standard_normal(2**14), -1, 1)
    return X, y


def test_the_fast_sketch_is_chosen_by_sizes_and_variant():
    X, y = make_sphere(n=3000, d=3, random_state=0)
    options = {"data_norm": 1.0, "bounds_y": (-1, 1), "fit_intercept": False, "random_state": 0}

    def used(**more):
        plan = FastIHM(**options, **more).fit(X, y).privacy_.parameters
        return plan["family"], plan["k2"]

    assert used() == ("sparse", 3000)
    assert used(sketch_size=200) == ("sparse", 200)
    assert used(sketch="kerdock") == ("kerdock", 4096)
    assert used(variant="paper", sketch="sparse")[0] == "sparse"
    assert used(variant="paper")[0] == "srht"
    assert used(sketch="srht", sketch_size=256) == ("srht", 256)
    assert used(sketch="dct", sketch_size=256) == ("dct", 256)
    for size, message in ((200, "sketch_size must be a power of two"), (32, "n must be at most")):
        budget = BudgetAccountant(epsilon=float("inf"), delta=1e-3)
        with pytest.raises(ValueError, match=message):
            used(sketch="kerdock", sketch_size=size, accountant=budget)
        assert len(budget) == 0


@pytest.mark.parametrize("n", [2**14, 10**7])
def test_the_sketch_begins_at_the_columns_that_the_documentation_names(n):
    def rows(n, d):
        return FastIterativeHessianMixing().plan(Sizes(n, d), Target(1.0, 1e-8)).k2

    assert rows(n, 199) == n
    assert rows(n, 200) == n / 8
    assert rows(16 * 500, 500) == 1000
    assert rows(16 * 500 - 1, 500) == 16 * 500 - 1


def test_the_fast_sketch_costs_what_its_gram_matrix_does():
    """The constant is that of the fitted cost model, and sizes are powers of two below it."""
    cost = CostModel()
    assert pytest.approx(cost.product / cost.butterfly, rel=0.05) == fast_ihm._PRODUCT
    for n, d, k2 in (
        (2**16, 1024, 2**13),
        (2**17, 512, 2**15),
        (2**17, 256, 2**17),
        (2**17, 90, 2**17),
        (1000, 3, 1024),
    ):
        plan = FastIHM(**PAPER, sketch="kerdock")._planned(n, d)[1]
        assert plan.k2 == k2
        assert (plan.tau is None) == (k2 >= n)


def test_the_gram_matrix_of_a_sketch_gives_round_coordinates():
    rng = np.random.default_rng(0)
    half = rng.standard_normal((40, 4)) * [5.0, 2.0, 1.0, 0.5]
    gram = half.T @ half
    guess = fast_ihm.gram_guess(GramRelease(gram, 1e-9), 40)
    T, axes = np.asarray(guess.transform), guess.axes
    np.testing.assert_allclose(T.T @ gram @ T / 40, np.eye(4), atol=1e-5)
    # The axes are a rotation of the coordinates.
    np.testing.assert_allclose((axes @ T) @ (axes @ T).T, np.eye(4), atol=1e-9)
    assert guess.seen == pytest.approx(1.0, abs=1e-5)
    hidden = fast_ihm.gram_guess(GramRelease(0.0 * gram, 1.0), 40)
    assert (hidden.seen == 0.05).all()
