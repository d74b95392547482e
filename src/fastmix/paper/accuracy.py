r"""Theorem 2 and the lemmas behind it, evaluated.

The theorem is of the order :math:`\tilde O(\cdot)`: its functions here have every hidden constant
and logarithm set to 1, so they say how the risk scales, not how large it is. The quantities of the
lemmas (`embedding_error`, `distortions`) are exact for the sketch at hand. They are computed from
data and are NOT private; nothing that is released depends on them.
"""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from fastmix._types import FloatArray
from fastmix._validation import (
    check_integer,
    check_matrix,
    check_probability,
    check_real,
    type_error,
)
from fastmix.sketches import SketchDraw


@dataclass(frozen=True)
class AccuracyTheorem:
    r"""The terms of Theorem 2 for a problem with rows and targets of norm at most 1.

    Parameters
    ----------
    epsilon, delta : float
        Privacy.
    d : int
        Columns.
    lambda_min, lambda_max : float
        Extreme eigenvalues of :math:`X^\top X`.
    theta_squared : float
        :math:`\|\theta^*\|^2`.
    chi : float
        Accuracy of the fast sketch. The theorem is stated for (0, 1/4]; larger ones, as measured
        for small sketches, show how the terms grow.
    varrho : float
        Probability with which the bound may fail, in (0, 1].

    Notes
    -----
    Paper: Theorem 2 and eq. for :math:`g^X, C_f^2, \overline m, \gamma_f`.
    Sensitive inputs: the eigenvalues and the coefficients.
    """

    epsilon: float
    delta: float
    d: int
    lambda_min: float
    lambda_max: float
    theta_squared: float
    chi: float
    varrho: float

    def __post_init__(self) -> None:
        check_real("epsilon", self.epsilon, above=0.0)
        check_probability("delta", self.delta)
        check_real("varrho", self.varrho, above=0.0, at_most=1.0)
        check_integer("d", self.d, at_least=1)
        check_real("lambda_min", self.lambda_min, at_least=0.0)
        check_real("lambda_max", self.lambda_max, at_least=self.lambda_min)
        check_real("theta_squared", self.theta_squared, at_least=0.0)
        check_real("chi", self.chi, at_least=0.0)

    @property
    def g(self) -> float:
        r""":math:`(\epsilon d (\lambda_{\max}-\lambda_{\min})/\sqrt{\log(1/\delta)})^{2/3}`."""
        spread = self.epsilon * self.d * (self.lambda_max - self.lambda_min)
        return math.pow(spread / math.sqrt(math.log(1.0 / self.delta)), 2.0 / 3.0)

    @property
    def m_bar(self) -> float:
        r""":math:`\overline m = \chi (\sqrt{\lambda_{\max}} + \log(1/\delta)/\epsilon)`."""
        return self.chi * (math.sqrt(self.lambda_max) + math.log(1.0 / self.delta) / self.epsilon)

    @property
    def gamma_f(self) -> float:
        r""":math:`\sqrt{\max\{d, \log(1/\varrho), g\} \log(1/\delta)} (1+\overline m)/\epsilon`."""
        size = max(self.d, math.log(1.0 / self.varrho), self.g)
        return math.sqrt(size * math.log(1.0 / self.delta)) * (1.0 + self.m_bar) / self.epsilon

    @property
    def c_f_squared(self) -> float:
        r""":math:`C_f^2 = C_Y^2 + \|\theta^*\|^2` with :math:`C_Y = 1`."""
        return 1.0 + self.theta_squared

    @property
    def well_conditioned(self) -> bool:
        r"""Whether :math:`\lambda_{\min} > \gamma_f`: the second regime, without added noise."""
        return bool(self.lambda_min > self.gamma_f)

    @property
    def excess_risk(self) -> float:
        r"""The bound on :math:`\|Y-X\hat\theta\|^2 - \|Y-X\theta^*\|^2`, constants set to 1.

        :math:`C_f^2 (\gamma_f (1+\overline m) - \lambda_{\min})` in the first regime and
        :math:`C_f^2 \gamma_f^2 / (\lambda_{\min} (1+\overline m)^2)` in the second.
        """
        if self.well_conditioned:
            return self.c_f_squared * (self.gamma_f / (1.0 + self.m_bar)) ** 2 / self.lambda_min
        return self.c_f_squared * (self.gamma_f * (1.0 + self.m_bar) - self.lambda_min)


def fast_sketch_rows(
    chi: float, varrho: float, *, n: int, rank: int, polylog: bool = True, constant: float = 1.0
) -> int:
    r"""Return the rows k2 of a fast sketch for accuracy chi, except with probability varrho.

    It is the least :math:`k_2` for which :math:`k_2 \chi^2 / c` is at least
    :math:`\log^4(n) \max\{rank, \log(1/\varrho)\}` and
    :math:`\log(n^2/(\chi\varrho)) \log(n^2/\varrho)`. It is not capped: where it exceeds n, use no
    fast sketch.

    Parameters
    ----------
    chi, varrho : float
        Accuracy and failure probability, in (0, 1].
    n, rank : int
        Rows of the data, and (a bound on) their rank: public.
    polylog : bool, default True
        As the paper says; False leaves out :math:`\log^4(n)` and one logarithm, which is what the
        sketches of this library need when measured (docs/reproduction.md), and no theorem.
    constant : float, default 1.0
        The universal constants c, which no theorem gives.

    Returns
    -------
    int
        Rows of the sketch.

    Notes
    -----
    Paper: Section 3, "Choosing k2"; Lemmas 9 and 10. Privacy does not depend on the choice.
    """
    for name, value in (("chi", chi), ("varrho", varrho)):
        check_real(name, value, above=0.0, at_most=1.0)
    n = check_integer("n", n, at_least=2)
    rank = check_integer("rank", rank, at_least=1)
    check_real("constant", constant, above=0.0)
    spectrum = max(rank, math.log(1.0 / varrho))
    coherence = math.log(n**2 / varrho)
    if polylog:
        spectrum *= math.log(n) ** 4
        coherence *= math.log(n**2 / (chi * varrho))
    return math.ceil(constant * max(spectrum, coherence) / chi**2)


class Distortions(NamedTuple):
    """What a drawn sketch S does to data X, each number 0 for an isometry; sensitive."""

    lambda_min: float  #: ``1 - lambda_min(SX) / lambda_min(X)``; nan where X is singular.
    lambda_max: float  #: ``|1 - lambda_max(SX) / lambda_max(X)|``.
    row: float  #: ``m-hat / ||X||_op``.
    coherence: float  #: ``Delta-hat``.
    embedding: float  #: `embedding_error` of S X.

    @property
    def chi(self) -> float:
        """The least chi for which Lemmas 9 and 10 and the coherence bound hold for this draw."""
        return float(np.nanmax([abs(self.lambda_min), self.lambda_max, self.row, self.coherence]))


def distortions(draw: SketchDraw, X: FloatArray) -> Distortions:
    r"""Measure the statements of Lemmas 9 and 10 for one draw.

    They are :math:`|\lambda_{\min}(SX) - \lambda_{\min}(X)| \le \chi\lambda_{\min}(X)`, the same
    for the largest eigenvalue, :math:`\hat m \le \chi \|X\|_{op}` and :math:`\hat\Delta \le \chi`.

    Paper: Lemmas 9 and 10; Section 3, "Choosing k2".
    Sensitive inputs: X.
    """
    if not isinstance(draw, SketchDraw):
        raise type_error("draw", "be a drawn sketch such as SRHT(k2, n).sample(0)", draw)
    X = check_matrix("X", X).astype(np.float64, copy=False)
    Z, m_hat = draw.sketch_and_distortion(X)
    before, after = (np.linalg.eigvalsh(A.T @ A) for A in (X, Z))
    singular = before[0] <= 1e-9 * before[-1]
    return Distortions(
        lambda_min=math.nan if singular else float(1.0 - after[0] / before[0]),
        lambda_max=float(abs(1.0 - after[-1] / before[-1])),
        row=m_hat / math.sqrt(before[-1]),
        coherence=draw.coherence,
        embedding=embedding_error(Z, X),
    )


def embedding_error(sketched: FloatArray, A: FloatArray) -> float:
    r"""Return :math:`\sup_{u,v} |u^\top A^\top (B^\top B - I) A v| / (\|Au\| \|Av\|)`.

    ``sketched`` is B A, with the factor :math:`1/\sqrt{k}` of a Gaussian B included. The event
    :math:`\mathcal C(A, \chi, k)` of Lemma 8 is that this is at most :math:`\chi/2`. Directions
    that A does not reach are left out.

    Paper: Lemmas 8, 12, 13 and 14.
    Sensitive inputs: A.
    """
    values, vectors = np.linalg.eigh(A.T @ A)
    kept = values > 1e-12 * max(float(values[-1]), 1e-300)
    whitened = sketched @ (vectors[:, kept] / np.sqrt(values[kept]))
    spectrum = np.linalg.eigvalsh(whitened.T @ whitened)
    return float(max(1.0 - spectrum[0], spectrum[-1] - 1.0))


def gaussian_norm_bound(d: int, varrho: float) -> float:
    r"""Return :math:`\sqrt{2d} + \sqrt{4\log(1/\varrho)}`, exceeded at most with :math:`\varrho^2`.

    Paper: Lemma 11, for the norm of a standard normal vector of length d.
    """
    check_integer("d", d, at_least=1)
    check_real("varrho", varrho, above=0.0, at_most=1.0)
    return math.sqrt(2.0 * d) + math.sqrt(4.0 * math.log(1.0 / varrho))


def residual_bound(
    step: int, *, chi: float, kappa: float, lambda_min: float, theta_norm: float, noise: float
) -> float:
    r"""Return the bound on residuals :math:`\|Y - X\hat\theta_t\|_\infty` before step t, C_Y = 1.

    Parameters
    ----------
    step : int
        t.
    chi, kappa : float
        Every sketch has an embedding error of at most chi/2, and
        :math:`\chi\sqrt\kappa < 2 - \chi` for the condition number kappa.
    lambda_min, theta_norm : float
        Smallest eigenvalue, and :math:`\|\theta^*\|`.
    noise : float
        Largest norm of the noise of a gradient; the paper has :math:`\sigma` times
        ``gaussian_norm_bound(d, varrho / (8 * T))``.

    Returns
    -------
    float
        The bound.

    Notes
    -----
    Paper: Lemma 14: no residual is clipped if this is at most the clipping level.
    """
    check_real("lambda_min", lambda_min, above=0.0)
    contraction = chi * math.sqrt(kappa) / (2.0 - chi)
    left = 2.0 - chi * (1.0 + math.sqrt(kappa))
    check_real("2 - chi (1 + sqrt(kappa))", left, above=0.0)
    return 1.0 + (1.0 + contraction**step) * theta_norm + 2.0 * noise / (left * lambda_min)
