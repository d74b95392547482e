"""Laws of Gram matrices with symmetric noise: of the rows, with their moments, of fast sketches."""

from collections.abc import Sequence
from functools import cache

import numpy as np

from fastmix._types import FloatArray
from fastmix.audit.densities import Known, Parts, gaussian_vector, one_sided, seen_by, stacked
from fastmix.audit.transcript import Release


def symmetric_law(difference: FloatArray) -> float:
    """Return the log density of symmetric noise: off the diagonal the variance is half as large."""
    on, above = np.diag_indices(len(difference)), np.triu_indices(len(difference), 1)
    return float(-0.5 * (difference[on] ** 2).sum() - (difference[above] ** 2).sum())


def gram_law(releases: Sequence[Release], known: Known) -> Parts:
    """Return the law of `noisy_gram`: rows have norm 1."""
    A, sigma = known.data.X, stacked(releases, "sigma")
    noise = [(each.out.gram - A.T @ A) / s for each, s in zip(releases, sigma, strict=True)]
    return {"gram": np.array([symmetric_law(each) for each in noise])}


def moments_law(releases: Sequence[Release], known: Known) -> Parts:
    """Return the law of `noisy_moments`: rows have norm 1, and targets are in [-1, 1]."""
    moments = np.array([release.out.moment for release in releases])
    exact, sigma = known.data.X.T @ known.data.y, stacked(releases, "sigma")[:, None]
    return {"moments": gaussian_vector(moments, exact, sigma) + gram_law(releases, known)["gram"]}


def sketched_gram_law(releases: Sequence[Release], known: Known) -> Parts:
    """Return the law of `noisy_sketched_gram` (docs/proofs/symmetric_noise.md, Section 2)."""
    rows = known.rows(releases)
    seen_once = cache(lambda draw, at: seen_by(draw, rows[at]))
    grams, bounds = np.zeros(len(releases)), np.zeros(len(releases))
    for fit, release in enumerate(releases):
        given, m = release.arguments, release.out.m_tilde
        seen = seen_once(release.draws[0], fit % len(rows))
        scale = given["sigma"] * seen.length * (seen.length + 2.0 * m)
        grams[fit] = symmetric_law((release.out.gram - seen.gram) / scale)
        scale = given["omega"] * seen.length * seen.coherence
        if seen.coherence > 1e-12:  # otherwise nothing is released about the distortion
            location = seen.m_hat + scale * given["tau"]
            bounds[fit] = one_sided(np.array([m]), location, scale, "gaussian")[0]
    return {"distortion": bounds, "gram": grams}
