"""The clipped residual gradient with Gaussian noise."""

from collections import Counter
from collections.abc import Iterable

from fastmix._types import FloatArray
from fastmix._validation import check_real
from fastmix.accounting import GaussianEvent, PrivacyEvent
from fastmix.data import Rows
from fastmix.mechanisms._input import check_point
from fastmix.mechanisms.noise import Noise
from fastmix.mechanisms.sensitivity import gradient_sensitivity


def gradient_events(sigmas: Iterable[float]) -> list[PrivacyEvent]:
    """Return the events of `noisy_gradient` on rows of norm 1 with one noise level per step.

    Levels are in units of the clipping level, which is the sensitivity; equal ones are counted.
    """
    return [
        GaussianEvent(sigma, gradient_sensitivity(1.0), count)
        for sigma, count in Counter(sigmas).items()
    ]


def noisy_gradient(
    rows: Rows, theta: FloatArray, *, clip: float, sigma: float, noise: Noise
) -> FloatArray:
    r"""Release :math:`X^\top \mathrm{clip}_C(y - X\theta) + \sigma C \zeta` for rows with targets.

    ``theta`` must be public or already released, ``clip`` is the residual clipping level C, and
    ``sigma`` the noise in units of the sensitivity.

    Paper: Algorithm 2, line 6, without the term :math:`-\eta^2\theta`, which is not sensitive.
    Sensitive inputs: rows.
    """
    clip = check_real("clip", clip, above=0.0)
    sigma = check_real("sigma", sigma, above=0.0)
    check_point(rows, theta)
    sensitivity = gradient_sensitivity(clip, rows.bound)
    return noise.gaussian(rows.gradient(theta, clip), sensitivity=sensitivity, ratio=sigma)
