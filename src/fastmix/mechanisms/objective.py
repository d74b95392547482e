"""The minimiser of a perturbed objective."""

import math

import numpy as np

from fastmix._types import FloatArray
from fastmix._validation import check_real, value_error
from fastmix.accounting import GaussianEvent, ObjectiveEvent, PrivacyEvent
from fastmix.data import Rows, TransformedRows
from fastmix.kernels.losses import Loss
from fastmix.kernels.mapped import summation_error
from fastmix.mechanisms.minimise import Frame, Objective, minimise, rounding_distance
from fastmix.mechanisms.noise import Noise

#: Noise on the minimiser, in units of what the noise of the objective does at least to it.
_OUTPUT_NOISE = 0.1
#: Length of coefficients up to which rounding is allowed for, beside what noise alone makes.
_LENGTH = 30.0


def objective_events(
    mu: float, eps_c: float, mu_output: float, *, one_sided: bool = False, rows_per_person: int = 1
) -> list[PrivacyEvent]:
    """Return the events of `noisy_minimiser`: the minimiser, and the noise on it."""
    objective = ObjectiveEvent(mu, eps_c, one_sided, rows_per_person)
    return [objective, GaussianEvent(1.0 / mu_output)]


def noisy_minimiser(
    rows: Rows,
    *,
    loss: Loss,
    ridge: float,
    mu: float,
    eps_c: float,
    mu_output: float,
    noise: Noise,
    center: FloatArray | None = None,
    transform: FloatArray | None = None,
    least: float = 1.0,
    public: np.random.Generator | None = None,
    rows_per_person: int = 1,
) -> FloatArray:
    r"""Release the minimiser of a perturbed objective, with noise that hides that it is inexact.

    The objective is :math:`\sum_i f(y_i - x_i^\top\theta) + \frac\lambda2 \|\theta - c\|^2 +
    b^\top\theta`.

    Parameters
    ----------
    rows : Rows
        Data with targets, rows of norm at most 1.
    loss : Loss
        Convex loss f, calibrated for this ridge and ``eps_c``.
    ridge : float
        The ridge :math:`\lambda`.
    mu, eps_c : float
        The noise b has scale L/mu; the curvature of f is within what ``eps_c`` allows.
    mu_output : float
        Ratio of sensitivity to noise of the computed minimiser.
    noise : Noise
        Secret noise.
    center : numpy.ndarray of shape (d,), optional
        Where the ridge shrinks to: public or already released; zero by default.
    transform : numpy.ndarray of shape (d, d), optional
        Invertible matrix T, public or already released. The objective is that of :math:`\phi` with
        :math:`\theta = c + T\phi`: noise and ridge belong to :math:`\phi`, and the loss of a row is
        that for the length of :math:`T^\top x`, which needs no bound.
    least : float
        Length that every transformed row counts with at least.
    public : numpy.random.Generator, optional
        Public source of a fast sketch, which then preconditions the solver; by default the Gram
        matrix does.
    rows_per_person : int
        Rows that a person has at most, with weights that add up to at most 1; for more than one
        the loss must obey the linear bound on its curvature.

    Returns
    -------
    numpy.ndarray of shape (d,)
        Private coefficients.

    Notes
    -----
    Paper: beyond it; docs/proofs/objective.md, Theorems 1 to 3 and Section 7, and
    docs/proofs/people.md for persons.
    Sensitive inputs: rows. Raises `SolverError` if the minimum is not found to the tolerance,
    which is the only other thing that can be seen.
    """
    ridge = check_real("ridge", ridge, above=0.0)
    if not loss.is_calibrated(ridge, eps_c):
        raise value_error("loss", f"be calibrated for ridge={ridge:g} and eps_c={eps_c:g}", loss)
    if rows_per_person > 1 and not getattr(loss, "linear", False):
        raise value_error("loss", "obey the bound for persons of several rows", loss)
    if rows_per_person > 1 and rows.persons is None:
        raise value_error("rows", "have weights for persons of several rows", rows_per_person)
    if not rows.bound <= 1.0:
        raise value_error("rows", "have norms of at most 1", rows.bound)
    center = np.zeros(rows.d) if center is None else center
    seen: Rows | TransformedRows = rows
    frame = None
    if transform is not None:
        seen = TransformedRows(rows, transform, center, check_real("least", least, above=0.0))
        stretch = np.linalg.norm(transform)
        if not stretch <= 1e100:
            raise value_error("transform", "have a norm of at most 1e100", transform)
        offset = float(np.linalg.norm(center))
        squeeze = np.linalg.norm(np.linalg.inv(transform))
        frame = Frame(float(stretch), float(squeeze), offset, least)
    b, inexact = noise.perturbation(
        rows.d,
        slope=loss.lipschitz,
        mu=mu,
        eps_c=eps_c,
        one_sided=loss.one_sided,
        rows_per_person=rows_per_person,
    )
    summation = summation_error(weighted=rows.persons is not None)
    start = np.zeros(rows.d) if frame else center
    objective = Objective(loss, ridge, start, b, frame, summation)
    # From here to the noise on the minimiser only public quantities decide on the tolerance.
    spread = loss.lipschitz / mu * math.sqrt(rows.d)  # of b, about its length
    length = _LENGTH + 2.0 * spread / ridge
    least = 2.0 * (rounding_distance(objective, rows.most, length) + inexact / ridge)
    wanted = _OUTPUT_NOISE * spread / (rows.n + ridge)
    if frame:  # where every eigenvalue is about n
        wanted /= math.sqrt(rows.d)
    distance = max(least, 0.5 * mu_output * wanted)
    tolerance = distance - inexact / ridge
    found = minimise(seen, objective, tolerance=tolerance, sketch=public is not None, public=public)
    noisy = noise.gaussian(found, sensitivity=2.0 * distance, ratio=1.0 / mu_output)
    return seen.theta(noisy) if isinstance(seen, TransformedRows) else noisy
