"""Theorem 1 evaluated, and the noise of Algorithm 2 for a target.

`calibrate_fast_mix` gives the noise of Algorithm 1.
"""

import math

from fastmix._validation import check_integer, check_probability, check_real
from fastmix.engine.plan import Sizes, Target
from fastmix.paper.fast_ihm import FastIHMPlan, FastIterativeHessianMixing


def theorem_1(omega: float, gamma: float, k1: int, delta: float) -> float:
    r"""Return the epsilon that Theorem 1 prints for Algorithm 1.

    With :math:`r = 25 k_1/(32\gamma^2)` and :math:`L = \log(3/\delta)` it is
    :math:`2/\omega + r + 2\sqrt{rL}` if :math:`L \le (8\gamma/25 - 1)^2 r`, otherwise
    :math:`2/\omega + k_1/(4\gamma) + 25L/(8\gamma - 25)`.

    Parameters
    ----------
    omega, gamma : float
        Laplace scale and level.
    k1 : int
        Rows of the Gaussian sketch.
    delta : float
        The target's; the theorem is for :math:`\tau \ge \log(3/(2\delta))`.

    Returns
    -------
    float
        Epsilon; infinity unless gamma is above 25/8.

    Notes
    -----
    Paper: Theorem 1.1, for sketches with unit columns (docs/corrections.md, 1). The account of a
    run, `Mixed.epsilon`, composes the same releases more tightly.
    """
    check_real("omega", omega, above=0.0)
    check_real("gamma", gamma, above=0.0)
    k1 = check_integer("k1", k1, at_least=1)
    check_probability("delta", delta)
    if not gamma > 25.0 / 8.0:
        return math.inf
    r, log_term = 25.0 * k1 / (32.0 * gamma**2), math.log(3.0 / delta)
    if log_term <= (8.0 * gamma / 25.0 - 1.0) ** 2 * r:
        return 2.0 / omega + r + 2.0 * math.sqrt(r * log_term)
    return 2.0 / omega + k1 / (4.0 * gamma) + 25.0 * log_term / (8.0 * gamma - 25.0)


def calibrate_fast_ihm(
    epsilon: float,
    delta: float,
    *,
    n: int,
    d: int,
    steps: int = 4,
    k1: int | None = None,
    k2: int | None = None,
    varrho: float | None = None,
) -> FastIHMPlan:
    r"""Noise parameters and sizes for which Algorithm 2 is (epsilon, delta)-DP.

    Sizes that are not given are those of the paper's experiments,
    :math:`k_1 = 6 \max\{d, \log(4T/\varrho)\}`, and 200 times that maximum for k2.

    Parameters
    ----------
    epsilon, delta : float
        The target; a third of each for the bounds, for the sketches and for the gradients.
    n, d : int
        Rows and columns of the data.
    steps : int, default 4
        T.
    k1, k2 : int, optional
        Rows of the Gaussian sketch and of the SRHT.
    varrho : float, optional
        Probability with which accuracy may fail, by default ``delta / 10``; it does not enter the
        account.

    Returns
    -------
    FastIHMPlan
        ``gamma``, ``tau``, ``sigma`` (for residuals clipped at 1), ``omega``, ``k1``, ``k2``,
        ``steps`` and the account ``spent``.

    Notes
    -----
    Paper: Appendices E and H; the conversions are numerical, not the closed forms.
    """
    check_real("epsilon", epsilon, above=0.0)
    check_probability("delta", delta)
    sizes = {"n": n, "d": d, "steps": steps, "k1": k1, "k2": k2}
    for name, size in sizes.items():
        if size is not None:
            check_integer(name, size, at_least=1)
    if k2 is not None:
        check_integer("k2", k2, at_most=1 << (n - 1).bit_length())  # rows of the Hadamard matrix
    if varrho is not None:
        check_probability("varrho", varrho)
    method = FastIterativeHessianMixing(
        variant="paper",
        sketch="srht",
        n_steps=steps,
        gaussian_size=k1,
        sketch_size=k2,
        failure_probability=varrho,
    )
    plan = method.plan(Sizes(n=n, d=d), Target(epsilon=epsilon, delta=delta))
    assert isinstance(plan, FastIHMPlan)
    return plan
