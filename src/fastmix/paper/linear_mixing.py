"""Sketch and solve: one private sketch of (X, y)."""

import math
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import ClassVar

from scipy.special import ndtri

from fastmix._validation import check_integer, check_probability, check_real
from fastmix.accounting import Part, PrivacySpent, SketchEvent, calibrate
from fastmix.data import AugmentedRows, Rows
from fastmix.engine.plan import Draws, Method, Plan, Sizes, Solution, Target, joint
from fastmix.errors import CalibrationError
from fastmix.paper.fast_ihm import TAIL, fast_mix_gamma, rounded_up
from fastmix.paper.ihm import gauss_mix_gamma, gauss_mix_parts
from fastmix.paper.newton import released_bounds
from fastmix.releases import mix, spectral_events, symmetric_solve
from fastmix.sketches import SRHT

#: Share of rho for the spectral bounds of a joint account.
_SPECTRAL_SHARE = 0.1


@dataclass(frozen=True, kw_only=True)
class LinearMixingPlan(Plan):
    """Rows of the sketches, level of the Gaussian one, and noise of the spectral bounds."""

    k: int
    gamma: float
    tau: float
    omega: float
    law: str = "gaussian"
    k2: int | None = None


@dataclass(frozen=True, kw_only=True)
class SketchAndSolve(Method):
    """Linear mixing: least squares on one private sketch of features and target together."""

    fast: bool = False
    calibration: str = "joint"
    gaussian_size: int | None = None
    sketch_size: int | None = None
    failure_probability: float | None = None
    literal: bool = False

    name: ClassVar[str] = "linear_mixing"
    estimator: ClassVar[str] = "LinearMixing"
    choices: ClassVar = {"calibration": ("joint", "published")}

    def ignored(self) -> tuple[str, ...]:
        unused = () if self.fast else ("sketch_size",)
        if self.gaussian_size is not None and (self.sketch_size is not None or not self.fast):
            return (*unused, "failure_probability")
        return unused

    def in_blocks(self) -> bool:
        return not self.literal and not self.fast  # the Hadamard transform needs the whole

    def plan(self, sizes: Sizes, target: Target) -> LinearMixingPlan:
        base = max(sizes.d, math.log(2.0 / self.varrho(target)))
        k, k2 = self.gaussian_size or math.ceil(2.5 * base), None
        if self.fast:
            largest = 1 << (sizes.n - 1).bit_length()
            k2 = self.sketch_size or min(largest, math.ceil(200.0 * base))
            check_integer("sketch_size", k2, at_most=largest)
        epsilon, delta = target.epsilon, target.delta
        if self.calibration == "joint":
            plan = _joint(epsilon, delta, k, bool(self.fast))
        else:
            plan = (calibrate_fast_mix if self.fast else calibrate_gauss_mix)(epsilon, delta, k)
        return replace(plan, k2=k2)

    def solve(self, rows: Rows, plan: LinearMixingPlan, clip: float, draws: Draws) -> Solution:
        draws.progress(1, 1)
        both = AugmentedRows(rows)
        sketch = None if plan.k2 is None else SRHT(plan.k2, rows.n)
        spectrum = released_bounds(both, plan, draws, sketch, literal=self.literal)
        release = mix(spectrum, k=plan.k, gamma=plan.gamma, form="gram", rng=draws.noise)
        gram = release.sketch.matrix()
        theta = symmetric_solve(gram[:-1, :-1], gram[:-1, -1])
        return Solution(theta, gamma=plan.gamma, eta=release.eta)


@lru_cache(maxsize=64)
def _joint(epsilon: float, delta: float, k: int, fast: bool) -> LinearMixingPlan:
    """Plan one sketch and its spectral bounds, under one account (docs/proofs/rare_events.md)."""
    curve, count = ("fast_mix_sharp", 2) if fast else ("gauss_mix", 1)
    tau = -float(ndtri(TAIL * delta / count))

    def gamma(rho: float) -> float:
        return math.sqrt(k / (2.0 * (1.0 - _SPECTRAL_SHARE) * rho))

    def planned(rho: float) -> LinearMixingPlan:
        omega = math.sqrt(count / (2.0 * _SPECTRAL_SHARE * rho))
        bounds = spectral_events("gaussian", tau=tau, omega=omega, count=count)
        spent = joint([*bounds, SketchEvent(curve, gamma(rho), k)], delta)
        return LinearMixingPlan(spent=spent, k=k, gamma=gamma(rho), tau=tau, omega=omega)

    def spent(rho: float) -> PrivacySpent | None:
        return planned(rho).spent if gamma(rho) > 1.0 else None

    return planned(calibrate(spent, epsilon, delta))


@lru_cache(maxsize=64)
def calibrate_fast_mix(
    epsilon: float, delta: float, k1: int, omega: float | None = None
) -> LinearMixingPlan:
    r"""Noise parameters for which Algorithm 1 is (epsilon, delta)-DP.

    Parameters
    ----------
    epsilon, delta : float
        The target; a third of delta for the sketch, and one for each tail.
    k1 : int
        Rows of the Gaussian sketch.
    omega : float, optional
        Laplace scale multiplier; by default ``3 / epsilon``, a third for each of the three
        releases. Must exceed ``2 / epsilon``.

    Returns
    -------
    LinearMixingPlan
        ``gamma``, ``tau``, ``omega`` and the account.

    Notes
    -----
    Paper: Theorem 1 and Appendix C.4, solved for gamma. The proof in the paper counts the tail of
    m twice; counting the joint rare event once gives the stated delta (docs/corrections.md).
    """
    epsilon = check_real("epsilon", epsilon, above=0.0)
    delta = check_probability("delta", delta)
    k1 = check_integer("k1", k1, at_least=1)
    omega = 3.0 / epsilon if omega is None else check_real("omega", omega, above=0.0)
    if not 2.0 / omega < epsilon:
        raise CalibrationError(
            f"omega must exceed 2 / epsilon = {2.0 / epsilon:g}; got omega={omega!r}."
        )
    share = math.nextafter(delta / 3.0, 0.0)
    tau = rounded_up(math.log(3.0 / (2.0 * delta)))
    laplace, tail = spectral_events("laplace", tau=tau, omega=omega, count=2)
    bounds = Part("spectral bounds", [laplace], 0.0)
    gamma = fast_mix_gamma(epsilon, delta / 3.0, k1, (bounds,))
    parts = [
        bounds,
        Part("spectral bounds fail", [tail], 2.0 * share),
        Part("sketch", [SketchEvent("fast_mix", gamma, k1)], share),
    ]
    return LinearMixingPlan(
        spent=PrivacySpent(parts), k=k1, gamma=gamma, tau=tau, omega=omega, law="laplace"
    )


@lru_cache(maxsize=64)
def calibrate_gauss_mix(epsilon: float, delta: float, k: int) -> LinearMixingPlan:
    r"""Noise parameters for which the Gaussian sketch is (epsilon, delta)-DP.

    Parameters
    ----------
    epsilon, delta : float
        The target; a third of delta each for the sketch, the smallest eigenvalue and its tail.
    k : int
        Rows of the sketch.

    Returns
    -------
    LinearMixingPlan
        ``gamma``, ``tau``, the noise ``omega`` :math:`= \gamma/\sqrt{k}` of the smallest
        eigenvalue, and the account.

    Notes
    -----
    Paper: Proposition 2, with the set-up of Lev et al. (2025).
    Deviation: the eigenvalue is charged by the analytic Gaussian mechanism; the classical
    formula is proved only below epsilon 1.
    """
    epsilon = check_real("epsilon", epsilon, above=0.0)
    delta = check_probability("delta", delta)
    k = check_integer("k", k, at_least=1)
    gamma = gauss_mix_gamma(epsilon, delta / 3.0, k)
    tau = rounded_up(float(-ndtri(delta / 3.0)))
    parts = gauss_mix_parts(gamma, math.nextafter(delta / 3.0, 0.0), tau, k)
    return LinearMixingPlan(
        spent=PrivacySpent(parts), k=k, gamma=gamma, tau=tau, omega=gamma / math.sqrt(k)
    )
