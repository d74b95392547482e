"""The law of every release, given the data and everything that was released before it.

The formulas are written from the paper and the proof pages, not from the code that is audited.  A
law takes the same release of many fits at once and returns its log-likelihood in each of them,
part by part, up to terms that both data sets share.  By the lemma of Neyman and Pearson no score
separates two data sets better than the difference of their log-likelihoods.  An estimator whose
mechanisms are all here is audited by its whole transcript; a new one needs a law and nothing else.
"""

import itertools
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np
from scipy.stats import norm

from fastmix._types import FloatArray
from fastmix.audit.case import Data
from fastmix.audit.densities import (
    Known,
    Parts,
    gaussian_vector,
    one_sided,
    outs,
    seen_by,
    sketch_gram,
    stacked,
)
from fastmix.audit.gram_laws import (
    gram_law,
    moments_law,
    sketched_gram_law,
    symmetric_law,
)
from fastmix.audit.score_laws import (
    class_hits_law,
    contrasts_law,
    label_counts_law,
    log_loss_law,
    quantile_sum_law,
    score_sum_law,
    signed_counts_law,
)
from fastmix.audit.size_laws import person_law, size, total_weight
from fastmix.audit.transcript import Release
from fastmix.kernels.losses import CalibratedHuber
from fastmix.kernels.person_losses import LinearHuber
from fastmix.kernels.sigmoids import Logistic

#: Edges of the bins of residuals, in units of the clipping level: half octaves up to 1.
_EDGES = [2.0 ** (j / 2.0) for j in range(-40, 1)]


def log_likelihoods(transcripts: Sequence[Sequence[Release]], *data: Data) -> Parts:
    """Return the log-likelihoods of transcripts, one per fit, by kind of release; they add up.

    Given several data sets, as many equal parts of a transcript are of one after the other.
    """
    total: Parts = {}
    steps = list(zip(*transcripts, strict=True))
    size = len(steps) // len(data)
    for at, releases in enumerate(steps):
        if at % size == 0:
            known = Known(data[at // size])
        for part, values in LAWS[releases[0].mechanism](releases, known).items():
            total[part] = total.get(part, 0.0) + values
    return total


def scored(
    transcripts: Sequence[Sequence[Release]],
    present: Data,
    absent: Data,
    shown: Any,
    classes: Sequence[float] = (),
) -> FloatArray:
    """Return the log-likelihood ratio of each transcript, its parts, and what else is shown.

    With ``classes`` a transcript is that of fits of one class against the rest, in turn.
    """
    one, other = (
        log_likelihoods(transcripts, *([data.against(each) for each in classes] or [data]))
        for data in (present, absent)
    )
    ratios = [one[part] - other[part] for part in one]
    return np.column_stack([sum(ratios), *ratios, np.asarray(shown)])


def _gradient(releases: Sequence[Release], known: Known) -> Parts:
    A, clip = known.data.X, stacked(releases, "clip")[:, None]
    residuals = np.clip(known.data.y - stacked(releases, "theta") @ A.T, -clip, clip)
    sigma = stacked(releases, "sigma")[:, None] * clip
    return {"gradients": gaussian_vector(outs(releases), residuals @ A, sigma)}


def _minimiser(releases: Sequence[Release], known: Known) -> Parts:
    """Return the density of the minimiser: that of b, times a determinant.

    The noise on it is too small to matter.
    """
    return {"minimiser": np.array([_minimiser_density(each, known.data) for each in releases])}


def _minimiser_density(release: Release, data: Data) -> float:
    """Return the log-density of one minimiser, in its own coordinates."""
    given = release.arguments
    transform, center, loss = given.get("transform"), given.get("center"), given["loss"]
    ridge = given["ridge"]
    phi = release.out if center is None else release.out - center
    rows, lengths = data.X, np.ones(len(data.X))
    if transform is not None:
        rows, phi = rows @ transform, np.linalg.solve(transform, phi)
        lengths = np.maximum(np.linalg.norm(rows, axis=1), given["least"])
    laws = {CalibratedHuber: _square_law, LinearHuber: person_law}
    law = laws.get(type(loss), _sigmoid_law)
    slopes, curvatures = law(loss, ridge, given["eps_c"], data.X @ release.out, data.y, lengths)
    b = (data.counts * slopes) @ rows - ridge * phi
    hessian = ((data.counts * curvatures)[:, None] * rows).T @ rows + ridge * np.eye(len(b))
    density = -0.5 * (b @ b) * (given["mu"] / loss.lipschitz) ** 2
    return float(density + np.linalg.slogdet(hessian)[1])


def _square_law(
    loss: Any, ridge: float, eps_c: float, fitted: FloatArray, y: FloatArray, lengths: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return slopes and curvatures of the calibrated Huber loss (Sections 3 and 7)."""
    longest = loss.longest if (lengths != 1.0).any() else 1.0
    weights = np.minimum(1.0, longest / lengths)
    lengths = np.minimum(lengths, longest)
    residuals = weights * (y - fitted)
    most, own = loss.lipschitz / lengths, ridge / lengths**2
    zone = most * (1.0 - np.log1p(1.0 / own) / eps_c)
    tail = np.exp(-eps_c * own * np.maximum(np.abs(residuals) - zone, 0.0) / most) / (1.0 + own)
    inside = np.abs(residuals) <= zone
    slopes = most * (1.0 + np.log1p(-tail) / eps_c)
    slopes = weights * np.where(inside, residuals, np.copysign(slopes, residuals))
    return slopes, weights**2 * np.where(inside, 1.0, own * tail / (1.0 - tail))


def _sigmoid_law(
    loss: Any, ridge: float, eps_c: float, fitted: FloatArray, y: FloatArray, lengths: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return slopes and curvatures of the logistic and the quantile loss (Section 8)."""
    bound, room = loss.lipschitz / lengths, ridge * eps_c / lengths**2
    if isinstance(loss, Logistic):
        weight, sign, width, level = np.abs(y), np.where(y < 0.0, -1.0, 1.0), np.ones_like(y), 0.0
        at = -sign * fitted
    else:
        q, weight = loss.quantile, np.ones_like(y)
        width = np.maximum(loss.width, q * (1.0 - q) / room)
        sign = np.where((y - fitted) / width < np.log((1.0 - q) / q), -1.0, 1.0)
        level, at = np.where(sign > 0.0, 1.0 - q, q), sign * (y - fitted)
    with np.errstate(all="ignore"):
        s = 1.0 / (1.0 + np.exp(-at / width))
        c, top = width * room / bound, bound / weight + level
        first = (1.0 + c - np.sqrt((1.0 + c) ** 2 - 4.0 * c * top)) / 2.0
        limited = (level < (1.0 + c) / 2.0) & (first < s)  # False without a root
        end, start = np.minimum(bound, weight * (1.0 - level)), weight * (first - level)
        gone = at - width * np.log(first / (1.0 - first))
        left = (end - start) * np.exp(-room / end * gone)
    slopes = np.where(limited, end - left, weight * (s - level))
    curvatures = np.where(limited, room * left / end, weight * s * (1.0 - s) / width)
    return sign * slopes, curvatures


def _second_moments(releases: Sequence[Release], known: Known) -> Parts:
    joined, total = np.column_stack((known.data.X, known.data.y)), []
    for release in releases:
        rows = joined @ release.arguments["transform"]
        rows /= np.maximum(1.0, np.linalg.norm(rows, axis=1))[:, None]
        exact = (known.data.counts[:, None] * rows).T @ rows
        difference = (release.out - exact) / release.arguments["sigma"]
        total.append(symmetric_law(difference))
    return {"second moments": np.array(total)}


def _curvatures(releases: Sequence[Release], known: Known) -> Parts:
    first, second = [], []
    for release in releases:
        given, loss = release.arguments, release.arguments["loss"]
        Z = known.data.X @ given["transform"]
        lengths = np.maximum(np.linalg.norm(Z, axis=1), given["least"])
        residuals = known.data.y - known.data.X @ given["theta"]
        weights = np.minimum(loss.curvature(residuals, lengths), given["square"] / lengths**2)
        slopes = loss.slope(residuals, lengths)[:, None] * Z
        curvature, squares = release.out
        scale = given["square"] * given["curvature_sigma"]
        first.append(symmetric_law((curvature - (Z * weights[:, None]).T @ Z) / scale))
        scale = loss.lipschitz**2 * given["square_sigma"]
        second.append(symmetric_law((squares - slopes.T @ slopes) / scale))
    return {"curvature": np.array(first), "squares of gradients": np.array(second)}


def _target_mean(releases: Sequence[Release], known: Known) -> Parts:
    total, sigma, n = known.data.counts @ known.data.y, stacked(releases, "sigma"), known.n
    values = outs(releases) * n
    inside = norm.logpdf(values, total, sigma)
    low, high = norm.logcdf(-n, total, sigma), norm.logsf(n, total, sigma)
    ends = np.where(values < 0.0, low, high)
    return {"mean": np.where(np.abs(values) < n, inside, ends)}


def _line(releases: Sequence[Release], known: Known) -> Parts:
    exact = []
    for given in (release.arguments for release in releases):
        adds, misses = known.data.X @ given["move"], known.data.y - known.data.X @ given["center"]
        p, r, e = (
            np.clip(each, -1.0, 1.0)
            for each in (adds / given["widths"][0], misses / given["widths"][1], misses - adds)
        )
        exact.append(known.data.counts @ np.column_stack((p, e, p * r, p * p)))
    sigma = 2.0 * stacked(releases, "sigma")[:, None]
    sums = outs(releases) * np.reshape(known.n, (-1, 1))
    return {"line": gaussian_vector(sums, np.array(exact), sigma)}


def _gradient_counts(releases: Sequence[Release], known: Known) -> Parts:
    total = []
    for release in releases:
        given, edges = release.arguments, release.arguments["edges"]
        lengths = np.linalg.norm(known.data.X @ given["transform"], axis=1)
        lengths = np.maximum(lengths, given["least"])
        fitted, y = known.data.X @ given["theta"], known.data.y
        sizes = np.abs(y - fitted)
        if given.get("loss") is not None:
            sizes = np.abs(y) / (1.0 + np.exp(np.where(y < 0.0, -1.0, 1.0) * fitted))
        sizes = sizes * np.minimum(lengths, given["longest"] ** 2 / lengths)
        sizes = np.minimum(sizes, edges[-1])
        counts = [
            known.data.counts @ ((low < sizes) & (sizes <= high))
            for low, high in itertools.pairwise(edges)
        ]
        total.append(-0.5 * (((release.out - counts) / given["sigma"]) ** 2).sum())
    return {"gradient counts": np.array(total)}


def _residual_counts(releases: Sequence[Release], known: Known) -> Parts:
    residuals = np.abs(known.data.y - stacked(releases, "theta") @ known.data.X.T)
    sizes = np.minimum(residuals / stacked(releases, "clip")[:, None], 1.0)
    counts = [
        ((low < sizes) & (sizes <= high)).sum(axis=1) for low, high in itertools.pairwise(_EDGES)
    ]
    sigma = stacked(releases, "sigma")[:, None]
    return {"residuals": gaussian_vector(outs(releases), np.stack(counts, axis=1), sigma)}


def _statistics(releases: Sequence[Release], known: Known) -> Parts:
    A, sigma = known.data.X, stacked(releases, "sigma")[:, None]
    gram, moment = A.T @ A, A.T @ known.data.y
    upper = np.triu_indices(len(gram))
    exact = np.concatenate((gram[upper], moment, np.linalg.eigvalsh(gram)[:1]))
    values = [[*r.out.gram[upper], *r.out.moment, r.out.eigenvalue] for r in releases]
    return {"statistics": gaussian_vector(np.array(values), exact, sigma)}


def _mean(releases: Sequence[Release], known: Known) -> Parts:
    known.means = [release.out for release in releases]
    # The constant column is public, and so is the number of rows.
    features = known.data.X[:, : known.data.X.shape[1] - known.data.constant]
    values = outs(releases)[:, : features.shape[1]]
    sigma = stacked(releases, "sigma")[:, None]
    return {"mean": gaussian_vector(len(features) * values, features.sum(axis=0), sigma)}


def _gauss_bounds(releases: Sequence[Release], known: Known) -> Parts:
    (A,) = known.rows(releases)
    gram, square = A.T @ A, 1.0 + releases[0].with_target
    known.grams = [gram]
    scale = stacked(releases, "omega") * square
    centre = np.linalg.eigvalsh(gram)[0] - scale * stacked(releases, "tau")
    bounds = np.array([release.out.lambda_tilde[0] for release in releases])
    return {"eigenvalue": one_sided(bounds, centre, scale, "gaussian")}


def _fast_bounds(releases: Sequence[Release], known: Known) -> Parts:
    noise, square = releases[0].arguments["law"], 1.0 + releases[0].with_target
    omega, tau = stacked(releases, "omega")[:, None], stacked(releases, "tau")[:, None]
    rows = known.rows(releases)
    seen_once = cache(lambda draw, at: seen_by(draw, rows[at]))
    seen = [
        [seen_once(draw, fit % len(rows)) for draw in release.draws]
        for fit, release in enumerate(releases)
    ]
    lengths, coherences, distortions, eigenvalues = np.array(
        [[each[:4] for each in fit] for fit in seen]
    ).transpose(2, 0, 1)
    m, lam = (
        np.array([getattr(release.out, name) for release in releases])
        for name in ("m_tilde", "lambda_tilde")
    )
    known.grams = [np.array([fit[step].gram for fit in seen]) for step in range(len(seen[0]))]
    bound = lengths * np.sqrt(square)
    scale = omega * bound * (bound + 2.0 * m)
    parts = {"eigenvalue": one_sided(lam, eigenvalues - scale * tau, scale, noise).sum(axis=1)}
    # A sketch with orthogonal columns distorts nothing, and nothing is released about it.
    if (coherences > 1e-12).all():
        scale = omega * bound * coherences
        parts["distortion"] = one_sided(m, distortions + scale * tau, scale, noise).sum(axis=1)
    return parts


def _mix(releases: Sequence[Release], known: Known) -> Parts:
    eta = np.array([release.out.eta for release in releases])
    rows = int(releases[0].arguments["k"])
    total = np.zeros(len(releases))
    for step, gram in zip(range(len(releases[0].out.sketches)), itertools.cycle(known.grams)):
        drawn = np.array([release.out.sketches[step].matrix() for release in releases])
        total += sketch_gram(drawn, rows, gram, eta)
    return {"sketches": total}


def _gauss_mix(releases: Sequence[Release], known: Known) -> Parts:
    return {**_gauss_bounds(releases, known), **_mix(releases, known)}


#: The law of each mechanism by its name.
LAWS: dict[str, Callable[[Sequence[Release], Known], Parts]] = {
    "fast_bounds": _fast_bounds,
    "gauss_bounds": _gauss_bounds,
    "gauss_mix": _gauss_mix,
    "mix": _mix,
    "noisy_class_hits": class_hits_law,
    "noisy_contrasts": contrasts_law,
    "noisy_curvatures": _curvatures,
    "noisy_gradient": _gradient,
    "noisy_gradient_counts": _gradient_counts,
    "noisy_gram": gram_law,
    "noisy_label_counts": label_counts_law,
    "noisy_line": _line,
    "noisy_log_loss": log_loss_law,
    "noisy_mean": _mean,
    "noisy_minimiser": _minimiser,
    "noisy_moments": moments_law,
    "noisy_quantile_sum": quantile_sum_law,
    "noisy_residual_counts": _residual_counts,
    "noisy_score_sum": score_sum_law,
    "noisy_second_moments": _second_moments,
    "noisy_signed_counts": signed_counts_law,
    "noisy_size": size,
    "noisy_sketched_gram": sketched_gram_law,
    "noisy_statistics": _statistics,
    "noisy_target_mean": _target_mean,
    "noisy_total_weight": total_weight,
}
