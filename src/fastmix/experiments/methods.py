"""The methods that are compared: the paper's, and the package's own defaults."""

from __future__ import annotations

import math
from typing import Any

from fastmix._validation import check_choice
from fastmix.estimators import IHM, IHS, FastIHM, PrivateLinearRegression

__all__ = ["LABELS", "OURS", "base_size", "label", "make_method", "sketch_rows"]

#: Names in figures and tables.
LABELS = {
    "fast_ihm_paper": "FastIHM, paper",
    "ihm_paper": "IHM, paper",
    "fast_ihs": "FastIHS (not private)",
    "ihm": "IHM, fastmix default",
    "fast_ihm": "FastIHM, fastmix default",
    "auto": "fastmix, automatic choice",
}
#: What the package does unless told otherwise.
OURS = ("ihm", "fast_ihm", "auto")


def label(method: str, ratio: int | None) -> str:
    """Return the name of a method with its ratio."""
    return LABELS[method] if ratio is None else f"{LABELS[method]}, r = {ratio}"


def base_size(n: int, d: int, steps: int) -> float:
    r"""Return :math:`\max\{d, \log(4T/\varrho)\}` with :math:`\varrho = 1/(10 n^2)`.

    Parameters
    ----------
    n, d : int
        Rows and columns of the data.
    steps : int
        Number of steps T.

    Returns
    -------
    float
        The size that all sketch sizes are multiples of.

    Notes
    -----
    Paper: Appendix H, :math:`\delta = 1/n^2` and :math:`\varrho = \delta/10`.
    Deviation: the legends of Figure 2 write 4T/varrho for its logarithm (docs/corrections.md).
    Sensitive inputs: none.
    """
    return max(float(d), math.log(40.0 * steps * float(n) ** 2))


def sketch_rows(ratio: int, n: int, d: int, steps: int) -> int:
    """Return the rows k2 of the fast sketch for a ratio of the paper, at most the padded n."""
    return min(math.ceil(ratio * base_size(n, d, steps)), 1 << (n - 1).bit_length())


def make_method(
    method: str,
    *,
    ratio: int | None,
    epsilon: float,
    n: int,
    d: int,
    steps: int,
    seed: int | None,
    engine: str = "auto",
) -> Any:
    """Return an estimator set up for the scaled problem.

    Parameters
    ----------
    method : str
        A key of `LABELS`.
    ratio : int or None
        Ratio of k2 to its base size, for the paper's FastIHM.
    epsilon : float
        Privacy budget.
    n, d : int
        Rows and columns of the data.
    steps : int
        Steps of the paper's methods; the package's defaults choose their own.
    seed : int or None
        Seed of the noise; None as in production.
    engine : {"auto", "literal"}
        "literal" does the work that the paper counts.

    Returns
    -------
    estimator
        With ``delta = 1/n^2`` and ``varrho = delta/10``, as everywhere in the paper.
    """
    common: dict[str, Any] = {
        "epsilon": epsilon,
        "data_norm": 1.0,
        "bounds_y": (-1.0, 1.0),
        "fit_intercept": False,
        "random_state": seed,
    }
    paper = {**common, "n_steps": steps, "engine": engine}
    check_choice("method", method, tuple(LABELS))
    if method == "fast_ihm_paper":
        k2 = sketch_rows(int(ratio or 0), n, d, steps)
        return FastIHM(**paper, variant="paper", sketch="srht", sketch_size=k2)
    if method == "ihm_paper":
        return IHM(**paper, variant="paper")
    if method == "fast_ihs":
        return IHS(**common, n_steps=steps)
    ours = {"ihm": IHM, "fast_ihm": FastIHM, "auto": PrivateLinearRegression}
    return ours[method](**common)
