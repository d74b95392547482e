"""The methods that are compared: the paper's, and the fit that fastmix makes by default."""

from __future__ import annotations

import math
from pathlib import Path
from time import process_time
from typing import Any

from fastmix import IHM, IHS, FastIHM, PrivateLinearRegression
from fastmix.sketches import SRHT, KerdockSketch, Sketch, SparseSketch
from reproduction.checks import check_one_of
from reproduction.experiments.problems import Problem, open_problem

__all__ = [
    "DEFAULT",
    "LABELS",
    "base_size",
    "label",
    "make_method",
    "order",
    "sketch_rows",
    "timed_fit",
]

#: Names in figures and tables.
LABELS = {
    "fast_ihm_paper": "FastIHM, paper",
    "ihm_paper": "IHM, paper",
    "fast_ihs": "FastIHS (not private)",
    "default": "fastmix by default",
}
#: What `PrivateLinearRegression` runs, with its intervals.
DEFAULT = "default"


def label(method: str, ratio: int | None) -> str:
    """Return the name of a method with its ratio."""
    return LABELS[method] if ratio is None else f"{LABELS[method]}, r = {ratio}"


def order(method: tuple[str, int | None]) -> tuple[int, int]:
    """Return the place of a method and ratio in figures and tables."""
    return list(LABELS).index(method[0]), method[1] or 0


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
    """
    return max(float(d), math.log(40.0 * steps * float(n) ** 2))


def sketch_rows(ratio: int, n: int, d: int, steps: int, kind: type[Sketch] = SRHT) -> int:
    """Return the rows k2 of the fast sketch for a ratio of the paper, at most the padded n.

    Kerdock sketches have the next power of two, and sparse ones the next multiple of four.
    """
    k2 = min(math.ceil(ratio * base_size(n, d, steps)), 1 << (n - 1).bit_length())
    if kind is KerdockSketch:
        return max(1 << (k2 - 1).bit_length(), KerdockSketch.least_size(n))
    return -(-k2 // 4) * 4 if kind is SparseSketch else k2


def make_method(
    method: str,
    *,
    ratio: int | None,
    epsilon: float,
    n: int,
    d: int,
    steps: int,
    seed: int | None,
    literal: bool = False,
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
        Steps of the paper's methods; those of fastmix choose their own.
    seed : int or None
        Seed of the noise; None as in production.
    literal : bool, default False
        Do the work that the paper counts.

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
    paper = {**common, "n_steps": steps, "literal": literal}
    check_one_of("method", method, LABELS)
    if method == "fast_ihm_paper":
        k2 = sketch_rows(int(ratio or 0), n, d, steps)
        return FastIHM(**paper, variant="paper", sketch="srht", sketch_size=k2)
    if method == "ihm_paper":
        return IHM(**paper, variant="paper")
    if method == "fast_ihs":
        return IHS(**common, n_steps=steps)
    return PrivateLinearRegression(**common)


def timed_fit(folder: Path, method: str, **settings: Any) -> tuple[Problem, Any, float]:
    """Fit a method to a saved problem.

    Parameters
    ----------
    folder : Path
        Folder of the problem.
    method : str
        A key of `LABELS`.
    **settings
        Further arguments of `make_method`, without the sizes.

    Returns
    -------
    problem : Problem
        The problem.
    model : estimator
        The fitted method.
    seconds : float
        Processor time of the fit, which other work on the machine does not lengthen.
    """
    problem = open_problem(folder)
    n, d = problem.X.shape
    model = make_method(method, n=n, d=d, **settings)
    start = process_time()
    model.fit(problem.X, problem.y)
    return problem, model, process_time() - start
