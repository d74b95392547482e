"""Deliberately broken releases, for tests only: an audit must catch each of them.

Most mutants are releases with a damaged statistic, sensitivity or noise, which a damaged `Noise`
draws in place of the real ones. Flaws that sit elsewhere, in the clipping of rows or in a plan,
change the class that has them. The events that are charged stay what they are, unless they are the
flaw.
"""

from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, replace
from importlib import import_module

import numpy as np

from fastmix.accounting import Part, PrivacySpent, SketchEvent
from fastmix.data import ArrayRows, AugmentedRows, RowMap
from fastmix.paper import GradientDescent
from fastmix.releases import (
    DISTORTION,
    EIGENVALUE,
    GRADIENT,
    GRAM,
    MEAN,
    MINIMISER,
    MOMENTS,
    RESIDUAL_COUNTS,
    SIGNED_COUNTS,
    SKETCHED_EIGENVALUE,
    SKETCHED_GRAM,
    SKETCHES,
    SLOPES,
    SPARSE_GRAM,
    STATISTICS,
    Noise,
)
from fastmix.sketches.kerdock import KerdockDraw


@dataclass(frozen=True)
class Mutant:
    """A flaw, the case that must show it, how many releases that takes, and at which delta.

    ``break_it(patch)`` damages a class, or returns a damaged kind of noise.
    """

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


def wrap(patch, where, name, around):
    """Replace a method of a class by ``around(real, *args, **kwargs)``."""
    real = getattr(where, name)
    patch.setattr(where, name, lambda *args, **kwargs: around(real, *args, **kwargs))


def broken(release, **damage):
    """Return noise that draws a damaged release in place of a real one."""
    swapped = {release: replace(release, **damage)}

    class Broken(Noise):
        def release(self, release, rows, **given):
            return super().release(swapped.get(release, release), rows, **given)

    return Broken


def weaker(*releases, share=0.5, every=1):
    """Return noise of less than was asked for in some releases, whose events stay what they are.

    With ``every`` it is less in one release of so many.
    """
    count = []

    class Weaker(Noise):
        less = 1.0

        def release(self, release, rows, **given):
            count.append(release in releases)
            drawn = sum(count)
            self.less = share if count[-1] and drawn % every == 0 else 1.0
            return super().release(release, rows, **given)

        def _gaussian(self, values, sensitivity, ratio):
            return super()._gaussian(values, sensitivity, self.less * ratio)

        def _bound(self, value, above, sensitivity, ratio, tau, law):
            return super()._bound(value, above, sensitivity, self.less * ratio, tau, law)

        def _perturbation(self, size, scale):
            return super()._perturbation(size, self.less * scale)

    return Weaker


def shifted(*releases, tau=0.0):
    """Return noise that shifts bounds by less than was asked for."""

    class Shifted(Noise):
        def _bound(self, value, above, sensitivity, ratio, asked, law):
            return super()._bound(value, above, sensitivity, ratio, tau, law)

    return Shifted


def silent(*releases):
    """Return noise that releases some bounds without noise, on their shift."""
    return weaker(*releases, share=1e-9)


def sketching(eta):
    """Return noise whose sketches have other noise than they say: ``eta(given)``."""

    class Sketching(type(SKETCHES)):
        def draw(self, noise, rows, public, given):
            return super().draw(noise, rows, public, {**given, "eta": eta(given)})

    return broken_by(SKETCHES, Sketching)


def broken_by(release, kind):
    """Return noise that draws a release of another kind with the same fields."""
    swapped = {release: kind(**vars(release))}

    class Broken(Noise):
        def release(self, release, rows, **given):
            return super().release(swapped.get(release, release), rows, **given)

    return Broken


def charging(change):
    """Return noise that charges other events than those of its releases: ``change(events)``."""

    class Charging(Noise):
        def release(self, release, rows, **given):
            before = len(self.drawn)
            released = super().release(release, rows, **given)
            self.drawn[before:] = change(self.drawn[before:])
            return released

    return Charging


def halved(real):
    return lambda *args, **given: real(*args, **given) / 2.0


# --- noise -----------------------------------------------------------------------------------


@mutant("Gaussian step", 12_000)
def gradient_noise_halved(patch):
    return weaker(GRADIENT)


@mutant("Gaussian statistics", 12_000, slow=True)
def statistics_noise_halved(patch):
    return weaker(STATISTICS)


@mutant("Gaussian moments", 12_000, slow=True)
def moments_noise_halved(patch):
    return weaker(MOMENTS)


@mutant("Gaussian mean", 12_000)
def mean_noise_halved(patch):
    return weaker(MEAN)


@mutant("Gaussian counts of residuals", 12_000)
def residual_counts_noise_halved(patch):
    return weaker(RESIDUAL_COUNTS)


@mutant("Gaussian counts of signed residuals", 12_000, slow=True)
def signed_counts_noise_halved(patch):
    return weaker(SIGNED_COUNTS)


@mutant("DPGradientDescent", 2_000)
def gradient_noise_of_the_estimator_halved(patch):
    return weaker(GRADIENT)


@mutant("Laplace release of m", 4_000)
def laplace_noise_halved(patch):
    return weaker(DISTORTION)


@mutant("GaussMix, sketch alone", 4_000)
def sketch_noise_halved(patch):
    return sketching(lambda given: given["eta"] / 2.0)


@mutant("FastMix, sketch alone", 4_000)
def fast_sketch_noise_halved(patch):
    return sketching(lambda given: given["eta"] / 2.0)


@mutant("GaussMix")
def lambda_not_noised_in_gauss_mix(patch):
    return silent(EIGENVALUE)


@mutant("FastMix, full-size sketch")
def lambda_not_noised_in_fast_mix(patch):
    return silent(SKETCHED_EIGENVALUE)


@mutant("FastMix, lone row")
def m_not_noised(patch):
    return silent(DISTORTION)


@mutant("Gaussian steps, two")
def noise_reused_for_two_releases(patch):
    class Reused(Noise):
        def _gaussian(self, values, sensitivity, ratio):
            if len(self.transcript) == 0:
                self.first = deepcopy(self.rng)
                self.rng.standard_normal()
            fresh, self.rng = self.rng, deepcopy(self.first)
            noisy = super()._gaussian(values, sensitivity, ratio)
            self.rng = fresh
            return noisy

    return Reused


@mutant("Gaussian counts of residuals", 4_000)
def one_draw_of_noise_for_all_counts(patch):
    class Same(Noise):
        def _gaussian(self, values, sensitivity, ratio):
            return values + sensitivity * ratio * self.rng.standard_normal()

    return Same


@mutant("IHM, paper", 400)
def spectral_bounds_released_as_they_are(patch):
    class Bare(Noise):
        def _bound(self, value, *given):
            return value

    return Bare


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
    return broken(GRADIENT, statistic=lambda rows, theta, clip: rows.gradient(theta, np.inf))


@mutant("DPGradientDescent", 400)
def clipping_off_in_the_estimator(patch):
    _rows_unclipped(patch)


# --- shifts and sensitivities ----------------------------------------------------------------


@mutant("GaussMix, lone row", 8_000)
def tail_shift_off_in_gauss_mix(patch):
    return shifted(EIGENVALUE)


@mutant("FastMix, lone row", 5_000)
def tail_shift_off_in_fast_mix(patch):
    return shifted(DISTORTION, SKETCHED_EIGENVALUE)


@mutant("Laplace release of m", 4_000)
def sensitivity_of_m_halved(patch):
    return broken(DISTORTION, sensitivity=halved(DISTORTION.sensitivity))


@mutant("Laplace release of lambda", 4_000)
def sensitivity_of_lambda_halved(patch):
    return broken(SKETCHED_EIGENVALUE, sensitivity=halved(SKETCHED_EIGENVALUE.sensitivity))


@mutant("Laplace release of lambda", 4_000)
def sensitivity_of_lambda_without_m(patch):
    return broken(SKETCHED_EIGENVALUE, sensitivity=lambda public, m: public.bound**2)


@mutant("Gaussian mean", 12_000)
def sensitivity_of_the_sum_halved(patch):
    return broken(MEAN, sensitivity=halved(MEAN.sensitivity))


@mutant("FastMix")
def m_left_out(patch):
    return broken(DISTORTION, finish=lambda value, public, **given: 0.0)


@mutant("Gram matrix of a sparse sketch", 12_000)
def sensitivity_of_the_sparse_gram_matrix_halved(patch):
    return broken(SPARSE_GRAM, sensitivity=halved(SPARSE_GRAM.sensitivity))


@mutant("FastMix, Kerdock sketch")
def distortion_of_each_block_alone(patch):
    """Columns of one block are orthogonal; what distorts is the sketch of the other blocks."""

    def alone(real, self, X):
        return real(self, X)[0], 0.0

    wrap(patch, KerdockDraw, "sketch_and_distortion", alone)


@mutant("FastMix", 2_400)
def eta_not_raised_to_the_row_bound(patch):
    """The noise is set for rows of norm 1 and not for C^2 = 1 + 2 m."""
    real = SKETCHES.draw

    class Low(type(SKETCHES)):
        def draw(self, noise, rows, public, given):
            (m,) = (each.value for each in noise.transcript if each.release is DISTORTION)
            square = given["eta"] ** 2 - 2.0 * given["gamma"] * m
            return real(noise, rows, public, {**given, "eta": max(0.0, square) ** 0.5})

    return broken_by(SKETCHES, Low)


# --- accounts --------------------------------------------------------------------------------


@mutant("MultipleFastMix, 10 steps, shared", 6_000)
def budget_charged_once_for_all_sketches(patch):
    return charging(
        lambda events: [
            replace(each, rows=each.rows // 10) if isinstance(each, SketchEvent) else each
            for each in events
        ]
    )


def _fewer_steps(real, self, sizes, target, steps):
    """Return the plan of all steps with the account of the first ones."""
    plan = real(self, sizes, target)
    (part,) = plan.spent.parts
    charged = Part(part.name, GRADIENT.events([plan.sigma] * steps), part.delta)
    return replace(plan, spent=PrivacySpent([charged]))


@mutant("DPGradientDescent", 2_000)
def budget_charged_once_for_all_steps(patch):
    wrap(patch, GradientDescent, "plan", lambda *given: _fewer_steps(*given, steps=1))


@mutant("Gaussian statistics", 60_000, slow=True)
def eigenvalue_and_moment_not_charged(patch):
    return charging(lambda events: events[:1])


@mutant("GaussMix of (X, y)", 24_000)
def target_left_out_of_the_row_bound(patch):
    real = AugmentedRows.__init__

    def forgetful(self, rows):
        real(self, rows)
        self.bound = rows.bound

    patch.setattr(AugmentedRows, "__init__", forgetful)


# --- complete estimators, by their transcripts -----------------------------------------------


@mutant("DPGradientDescent", 8_000, slow=True, delta=0.4)
def noise_of_every_second_step_quartered(patch):
    return weaker(GRADIENT, share=0.25, every=2)


@mutant("DPGradientDescent", 8_000, slow=True, delta=0.4)
def one_step_in_five_not_charged(patch):
    wrap(patch, GradientDescent, "plan", lambda *given: _fewer_steps(*given, steps=4))


@mutant("AdaSSP", 6_000, slow=True, delta=0.4)
def noise_of_the_gram_matrix_times_seven_tenths(patch):
    gram, moment = MOMENTS.parts
    less = replace(gram, sensitivity=lambda public: 0.7 * gram.sensitivity(public))
    return broken(MOMENTS, parts=(less, moment))


@mutant("AdaSSP, standard errors", 1_000, delta=0.3)
def counts_of_residuals_with_a_tenth_of_their_noise(patch):
    return weaker(RESIDUAL_COUNTS, share=0.1)


@mutant("DPGradientDescent", 200)
def residuals_unclipped_in_the_first_step(patch):
    def unclipped(rows, theta, clip):
        return rows.gradient(theta, clip if theta.any() else np.inf)

    return broken(GRADIENT, statistic=unclipped)


@mutant("LinearMixing", 1_000, delta=0.3)
def eta_times_seven_tenths(patch):
    return sketching(lambda given: 0.7 * given["eta"])


@mutant("LinearMixing, four rows", 3_200)
def tail_shift_off_in_the_estimator(patch):
    return shifted(EIGENVALUE)


@mutant("FastIHM", 4_000, slow=True)
def gradient_noise_of_fast_ihm_halved(patch):
    return weaker(SLOPES)


@mutant("IHM", 4_000, slow=True)
def gradient_noise_of_ihm_halved(patch):
    return weaker(SLOPES)


@mutant("Gram matrix", 12_000)
def noise_of_the_gram_matrix_halved(patch):
    return weaker(GRAM)


@mutant("Gram matrix of a fast sketch", 2_000)
def distortion_left_out_of_the_noise_of_a_gram_matrix(patch):
    real = SKETCHED_GRAM.sensitivity
    return broken(SKETCHED_GRAM, sensitivity=lambda public, m: real(public, 0.0))


@mutant("ObjectivePerturbation", 1_500)
def noise_of_the_objective_times_two_fifths(patch):
    return weaker(MINIMISER, share=0.4)


@mutant("ObjectivePerturbation", 200)
def slope_without_bound(patch):
    """The plain squared loss, whatever the slope bound says."""

    def steep(real, self, theta, loss, **options):
        return real(self, theta, replace(loss, lipschitz=1e3), **options)

    wrap(patch, ArrayRows, "slopes", steep)


# --- other losses --------------------------------------------------------------------------------


@mutant("PrivateLogisticRegression", 1_500, slow=True)
def noise_of_the_logistic_objective_times_a_fifth(patch):
    return weaker(MINIMISER, share=0.2)


@mutant("PrivateQuantileRegressor", 1_500)
def noise_of_the_quantile_objective_times_two_fifths(patch):
    return weaker(MINIMISER, share=0.4)


@mutant("PrivateHuberRegressor", 1_500, slow=True)
def noise_of_the_robust_objective_times_two_fifths(patch):
    return weaker(MINIMISER, share=0.4)


@mutant("PrivateLogisticRegression, three classes", 1_500, slow=True)
def noise_of_three_objectives_times_a_tenth(patch):
    return weaker(MINIMISER, share=0.1)


@mutant("PrivateLogisticRegression, three classes", 6_000, slow=True)
def one_class_of_three_charged(patch):
    """The noise of one class for each, and the account of one."""

    def around(real, self, sizes, target):
        return real(replace(self, n_classes=2), sizes, target)

    wrap(patch, module("engine.families.logistic").LogisticObjective, "plan", around)


def _steep(real, self, theta, loss, **options):
    return real(self, theta, replace(loss, lipschitz=50.0 * loss.lipschitz), **options)


@mutant("PrivateLogisticRegression", 1_000)
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
