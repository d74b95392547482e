"""Deliberately broken mechanisms, for tests only: an audit must catch each of them.

A mutant changes the real code where it runs, in the one place where such a flaw would sit, and
leaves the rest alone, the events that are charged above all.
"""

from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, replace
from importlib import import_module

import numpy as np

from fastmix.data import ArrayRows, AugmentedRows, RowMap
from fastmix.mechanisms.noise import FloatNoise
from fastmix.sketches.kerdock import KerdockDraw


@dataclass(frozen=True)
class Mutant:
    """A flaw, the case that must show it, how many releases that takes, and at which delta."""

    name: str
    case: str
    trials: int
    slow: bool
    delta: float | None
    break_it: Callable

    def __str__(self):
        return f"{self.name} ({self.case})"


MUTANTS = []


def mutant(case, trials=1_000, slow=False, delta=None):
    def register(break_it):
        name = break_it.__name__.replace("_", " ").strip()
        MUTANTS.append(Mutant(name, case, trials, slow, delta, break_it))
        return break_it

    return register


def module(name):
    """Return a module, also where a function of the same name hides it."""
    return import_module(f"fastmix.{name}")


class Silent:
    """A generator whose noise is 0."""

    def laplace(self):
        return 0.0

    def standard_normal(self):
        return 0.0


class Same:
    """A generator whose normal numbers are all one."""

    def __init__(self, rng):
        self.rng = rng

    def standard_normal(self, size):
        return np.full(size, self.rng.standard_normal())


def wrap(patch, where, name, around):
    """Replace a function by ``around(real, *args, **kwargs)``."""
    real = getattr(where, name)
    patch.setattr(where, name, lambda *args, **kwargs: around(real, *args, **kwargs))


# --- noise -----------------------------------------------------------------------------------


def _half_sigma(real, *args, sigma, **kwargs):
    return real(*args, sigma=sigma / 2.0, **kwargs)


@mutant("Gaussian step", 12_000)
def gradient_noise_halved(patch):
    wrap(patch, module("mechanisms"), "noisy_gradient", _half_sigma)


@mutant("Gaussian statistics", 12_000, slow=True)
def statistics_noise_halved(patch):
    wrap(patch, module("mechanisms"), "noisy_statistics", _half_sigma)


@mutant("Gaussian moments", 12_000, slow=True)
def moments_noise_halved(patch):
    wrap(patch, module("mechanisms"), "noisy_moments", _half_sigma)


@mutant("Gaussian mean", 12_000)
def mean_noise_halved(patch):
    wrap(patch, module("mechanisms"), "noisy_mean", _half_sigma)


@mutant("Gaussian counts of residuals", 12_000)
def residual_counts_noise_halved(patch):
    wrap(patch, module("mechanisms"), "noisy_residual_counts", _half_sigma)


@mutant("Gaussian counts of signed residuals", 12_000, slow=True)
def signed_counts_noise_halved(patch):
    wrap(patch, module("mechanisms"), "noisy_signed_counts", _half_sigma)


@mutant("DPGradientDescent", 1_000)
def gradient_noise_of_the_estimator_halved(patch):
    wrap(patch, module("methods.gradient_descent"), "noisy_gradient", _half_sigma)


@mutant("Laplace release of m", 4_000)
def laplace_noise_halved(patch):
    wrap(patch, FloatNoise, "_draw", lambda real, *a: real(*a) / 2.0)


def _half_eta(real, gram, eta):
    return real(gram, eta / 2.0)


@mutant("GaussMix, sketch alone", 4_000)
def sketch_noise_halved(patch):
    wrap(patch, module("mechanisms.sampling"), "covariance_root", _half_eta)


@mutant("FastMix, sketch alone", 4_000)
def fast_sketch_noise_halved(patch):
    wrap(patch, module("mechanisms.sampling"), "covariance_root", _half_eta)


@mutant("GaussMix")
def lambda_not_noised_in_gauss_mix(patch):
    def silent(real, noise, *args, **kwargs):
        return real(FloatNoise(Silent()), *args, **kwargs)

    wrap(patch, FloatNoise, "bound", silent)


@mutant("FastMix, full-size sketch")
def lambda_not_noised_in_fast_mix(patch):
    def silent(real, *args, noise, **kwargs):
        return real(*args, noise=FloatNoise(Silent()), **kwargs)

    wrap(patch, module("mechanisms.bounds"), "release_sketched_eigenvalue", silent)


@mutant("FastMix, lone row")
def m_not_noised(patch):
    def silent(real, *args, noise, **kwargs):
        return real(*args, noise=FloatNoise(Silent()), **kwargs)

    wrap(patch, module("mechanisms.bounds"), "release_distortion", silent)


@mutant("Gaussian steps, two")
def noise_reused_for_two_releases(patch):
    first = {}

    def again(real, rows, theta, *, noise, **kwargs):
        if not first or first["used"] == 2:
            first.update(rng=deepcopy(noise.rng), used=0)
        first["used"] += 1
        noise.rng.standard_normal()
        return real(rows, theta, noise=FloatNoise(deepcopy(first["rng"])), **kwargs)

    wrap(patch, module("mechanisms"), "noisy_gradient", again)


@mutant("Gaussian counts of residuals", 4_000)
def one_draw_of_noise_for_all_counts(patch):
    def again(real, *args, noise, **kwargs):
        return real(*args, noise=FloatNoise(Same(noise.rng)), **kwargs)

    wrap(patch, module("mechanisms"), "noisy_residual_counts", again)


@mutant("FastIHM, with intercept", 400)
def spectral_bounds_released_as_they_are(patch):
    for name in ("release_distortion", "release_sketched_eigenvalue"):
        wrap(patch, module("mechanisms.bounds"), name, lambda real, value, *a, **k: value)


# --- clipping --------------------------------------------------------------------------------


def _rows_unclipped(patch):
    patch.setattr(RowMap, "_shrink", lambda self, plain, squares, largest: None)


@mutant("GaussMix, sketch alone")
def clipping_off_in_gauss_mix(patch):
    _rows_unclipped(patch)


@mutant("FastMix, sketch alone", 2_000)
def clipping_off_in_fast_mix(patch):
    _rows_unclipped(patch)


@mutant("Gaussian step", 2_000)
def clipping_of_rows_off_in_the_gradient(patch):
    _rows_unclipped(patch)


@mutant("Gaussian mean", 2_000)
def clipping_off_in_the_mean(patch):
    _rows_unclipped(patch)


@mutant("Gaussian step", 2_000)
def clipping_of_residuals_off(patch):
    wrap(patch, ArrayRows, "gradient", lambda real, self, theta, clip: real(self, theta, np.inf))


@mutant("DPGradientDescent", 400)
def clipping_off_in_the_estimator(patch):
    _rows_unclipped(patch)


# --- shifts and sensitivities ----------------------------------------------------------------


def _no_shift(real, *args, tau, **kwargs):
    return real(*args, tau=0.0, **kwargs)


@mutant("GaussMix, lone row", 4_000)
def tail_shift_off_in_gauss_mix(patch):
    wrap(patch, FloatNoise, "bound", _no_shift)


@mutant("FastMix, lone row", 5_000)
def tail_shift_off_in_fast_mix(patch):
    for name in ("release_distortion", "release_sketched_eigenvalue"):
        wrap(patch, module("mechanisms.bounds"), name, _no_shift)


def _half_sensitivity(real, *args):
    return real(*args) / 2.0


@mutant("Laplace release of m", 4_000)
def sensitivity_of_m_halved(patch):
    where = module("mechanisms.bounds")
    wrap(patch, where, "distortion_sensitivity", _half_sensitivity)


@mutant("Laplace release of lambda", 4_000)
def sensitivity_of_lambda_halved(patch):
    where = module("mechanisms.bounds")
    wrap(patch, where, "sketched_eigenvalue_sensitivity", _half_sensitivity)


@mutant("Laplace release of lambda", 4_000)
def sensitivity_of_lambda_without_m(patch):
    where = module("mechanisms.bounds")
    wrap(patch, where, "sketched_eigenvalue_sensitivity", lambda real, m, c_x: c_x**2)


@mutant("Gaussian mean", 12_000)
def sensitivity_of_the_sum_halved(patch):
    wrap(patch, module("mechanisms.statistics"), "total_sensitivity", _half_sensitivity)


@mutant("FastMix")
def m_left_out(patch):
    wrap(patch, module("mechanisms.bounds"), "release_distortion", lambda real, *a, **k: 0.0)


@mutant("FastMix, Kerdock sketch")
def distortion_of_each_block_alone(patch):
    """Columns of one block are orthogonal; what distorts is the sketch of the other blocks."""

    def alone(real, self, X):
        return real(self, X)[0], 0.0

    wrap(patch, KerdockDraw, "sketch_and_distortion", alone)


@mutant("FastMix", 2_400)
def eta_not_raised_to_the_row_bound(patch):
    """The noise is set for rows of norm 1 and not for C^2 = 1 + 2 m."""
    where, seen = module("mechanisms.bounds"), {}

    def remember(real, *args, **kwargs):
        seen["m"] = real(*args, **kwargs)
        return seen["m"]

    gamma = 40.0  # that of the case
    wrap(patch, where, "release_distortion", remember)
    wrap(patch, where, "noise_level", lambda real, square: real(square - 2.0 * gamma * seen["m"]))


# --- accounts --------------------------------------------------------------------------------


@mutant("MultipleFastMix, 10 steps, shared", 6_000)
def budget_charged_once_for_all_sketches(patch):
    k = 100_000 // 10  # that of the case

    def once(real, curve, gamma, rows):
        return real(curve, gamma, k)

    wrap(patch, module("mechanisms.mix"), "SketchEvent", once)


@mutant("DPGradientDescent", 1_000)
def budget_charged_once_for_all_steps(patch):
    where = module("methods.gradient_descent")
    wrap(patch, where, "gradient_events", lambda real, sigmas: real(list(sigmas)[:1]))


@mutant("Gaussian statistics", 60_000, slow=True)
def eigenvalue_and_moment_not_charged(patch):
    events = module("accounting")
    for where in ("mechanisms", "mechanisms.statistics"):
        wrap(
            patch,
            module(where),
            "statistics_event",
            lambda real, *, sigma: events.GaussianEvent(sigma),
        )


@mutant("GaussMix of (X, y)", 24_000)
def target_left_out_of_the_row_bound(patch):
    real = AugmentedRows.__init__

    def forgetful(self, rows):
        real(self, rows)
        self.bound = rows.bound

    patch.setattr(AugmentedRows, "__init__", forgetful)


# --- complete estimators, by their transcripts -----------------------------------------------


@mutant("DPGradientDescent", 8_000, slow=True, delta=0.4)
def noise_of_one_step_in_five_halved(patch):
    calls = []

    def weaker(real, *args, sigma, **kwargs):
        calls.append(1)
        return real(*args, sigma=sigma * (0.5 if len(calls) % 5 == 0 else 1.0), **kwargs)

    wrap(patch, module("methods.gradient_descent"), "noisy_gradient", weaker)


@mutant("DPGradientDescent", 8_000, slow=True, delta=0.4)
def one_step_in_five_not_charged(patch):
    where = module("methods.gradient_descent")
    wrap(patch, where, "gradient_events", lambda real, sigmas: real(list(sigmas)[:-1]))


@mutant("AdaSSP", 6_000, slow=True, delta=0.4)
def noise_of_the_gram_matrix_times_seven_tenths(patch):
    wrap(patch, module("mechanisms.statistics"), "gram_sensitivity", lambda real, c: 0.7 * real(c))


@mutant("AdaSSP, exact noise", 3_000, slow=True, delta=0.4)
def exact_noise_times_seven_tenths(patch):
    def weaker(real, *args):
        step, scale = real(*args)
        return step, 0.7 * scale

    wrap(patch, module("mechanisms.noise"), "_level", weaker)


@mutant("AdaSSP, standard errors", 1_000, delta=0.3)
def counts_of_residuals_with_a_tenth_of_their_noise(patch):
    def weaker(real, *args, sigma, **kwargs):
        return real(*args, sigma=sigma / 10.0, **kwargs)

    wrap(patch, module("methods.fit"), "noisy_residual_counts", weaker)


@mutant("IHM", 200)
def residuals_unclipped_in_the_first_step(patch):
    def unclipped(real, self, theta, clip):
        return real(self, theta, clip if theta.any() else np.inf)

    wrap(patch, ArrayRows, "gradient", unclipped)


@mutant("LinearMixing", 1_000, delta=0.3)
def eta_times_seven_tenths(patch):
    wrap(
        patch,
        module("mechanisms.sampling"),
        "covariance_root",
        lambda real, gram, eta: real(gram, 0.7 * eta),
    )


@mutant("LinearMixing, four rows", 1_600)
def tail_shift_off_in_the_estimator(patch):
    wrap(patch, FloatNoise, "bound", _no_shift)


@mutant("FastIHM, joint", 4_000, slow=True)
def gradient_noise_of_fast_ihm_halved(patch):
    wrap(patch, module("methods.newton"), "noisy_gradient", _half_sigma)


@mutant("IHM", 4_000, slow=True)
def gradient_noise_of_ihm_halved(patch):
    wrap(patch, module("methods.averaging"), "noisy_gradient", _half_sigma)


@mutant("Gram matrix", 12_000)
def noise_of_the_gram_matrix_halved(patch):
    wrap(patch, module("mechanisms"), "noisy_gram", _half_sigma)


@mutant("Gram matrix of a fast sketch", 2_000)
def distortion_left_out_of_the_noise_of_a_gram_matrix(patch):
    wrap(
        patch,
        module("mechanisms.gram"),
        "sketched_gram_sensitivity",
        lambda real, m, c: real(0.0, c),
    )


@mutant("ObjectivePerturbation", 1_500)
def noise_of_the_objective_times_two_fifths(patch):
    def weaker(real, self, size, scale):
        return real(self, size, 0.4 * scale)

    wrap(patch, FloatNoise, "_perturbation", weaker)


@mutant("ObjectivePerturbation", 200)
def slope_without_bound(patch):
    """The plain squared loss, whatever the slope bound says."""

    def steep(real, self, theta, loss, **options):
        return real(self, theta, replace(loss, lipschitz=1e3), **options)

    wrap(patch, ArrayRows, "slopes", steep)


# --- other losses --------------------------------------------------------------------------------


def _weaker(real, self, size, scale):
    return real(self, size, 0.4 * scale)


@mutant("PrivateLogisticRegression", 1_500, slow=True)
def noise_of_the_logistic_objective_times_two_fifths(patch):
    wrap(patch, FloatNoise, "_perturbation", _weaker)


@mutant("PrivateQuantileRegressor", 1_500)
def noise_of_the_quantile_objective_times_two_fifths(patch):
    wrap(patch, FloatNoise, "_perturbation", _weaker)


@mutant("PrivateHuberRegressor", 1_500, slow=True)
def noise_of_the_robust_objective_times_two_fifths(patch):
    wrap(patch, FloatNoise, "_perturbation", _weaker)


@mutant("PrivateLogisticRegression, three classes", 1_500, slow=True)
def noise_of_three_objectives_times_a_fifth(patch):
    wrap(patch, FloatNoise, "_perturbation", lambda real, self, n, s: real(self, n, 0.2 * s))


@mutant("PrivateLogisticRegression, three classes", 6_000, slow=True)
def one_class_of_three_charged(patch):
    """The noise of one class for each, and the account of one."""

    def around(real, self, sizes, target):
        return real(replace(self, n_classes=2), sizes, target)

    wrap(patch, module("methods.logistic").LogisticObjective, "plan", around)


def _steep(real, self, theta, loss, **options):
    return real(self, theta, replace(loss, lipschitz=50.0 * loss.lipschitz), **options)


@mutant("PrivateLogisticRegression", 500)
def logistic_slope_without_bound(patch):
    wrap(patch, ArrayRows, "slopes", _steep)


@mutant("PrivateHuberRegressor", 500)
def robust_slope_without_bound(patch):
    wrap(patch, ArrayRows, "slopes", _steep)


# --- persons and weights -------------------------------------------------------------------------


@mutant("ObjectivePerturbation, persons", trials=480)
def weights_of_persons_off(patch):
    """Every row that counts counts fully."""

    def around(real, *args):
        persons = real(*args)
        return replace(persons, weights=(persons.weights > 0.0).astype(float))

    wrap(patch, module("data.persons"), "person_weights", around)


@mutant("ObjectivePerturbation, persons", trials=480)
def cap_of_persons_off(patch):
    """All rows of a person count, with the weights of as many as should."""

    def around(real, *args):
        persons = real(*args)
        return replace(
            persons, weights=np.where(args[0][0].hashes == args[0][0].hashes[0], 1 / 4, 1.0)
        )

    wrap(patch, module("data.persons"), "person_weights", around)


@mutant("ObjectivePerturbation, persons", trials=480, slow=True)
def ids_ignored_in_one_block(patch):
    """Rows whose ids are not known are persons of their own."""

    def around(real, ids, key):
        return real(np.where(np.arange(len(ids)) < 6, 1000 + np.arange(len(ids)), ids), key)

    wrap(patch, module("estimators._input"), "hash_ids", around)


@mutant("ObjectivePerturbation, weights", trials=480, slow=True)
def bound_of_weights_off(patch):
    """Weights above their bound count as they are."""
    patch.setattr(module("estimators._input"), "row_weights", lambda values, most: values / most)
