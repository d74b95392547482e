"""The noise of Algorithm 2 for a target; `calibrate_fast_mix` is that of Algorithm 1."""

from fastmix._validation import check_integer, check_probability, check_real
from fastmix.engine.plan import Sizes, Target
from fastmix.paper.fast_ihm import FastIHMPlan, FastIterativeHessianMixing


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
