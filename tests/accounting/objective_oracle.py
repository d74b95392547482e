r"""The privacy of objective perturbation by integration; imports nothing of the package.

The minimiser of ``sum_i w_i f(x_i't; y_i) + sum_j ridge_j (t_j - c_j)^2 / 2 + b't`` with
``b ~ N(0, scale^2 I)`` satisfies ``b = B(t) = sum_i w_i s_i x_i - ridge (t - c)``, ``s = -f'`` the
slope in the residual, so its density is ``phi(B(t) / scale) det J(t) / scale^d`` with
``J = sum_i w_i f'' x_i x_i' + diag(ridge)``. Two independent ways lead from there to the
hockey-stick divergence of two neighbours:

``by_density``
    Gauss-Legendre sums of the densities: in one dimension over theta, with panels that end where
    a curvature jumps; in two over b, which takes any number of rows per person. With Gaussian
    releases beside it the profile ``delta_{mu_G}(eps - loss)`` is integrated instead.
``by_intervals``
    For one row per person. The part of b that is orthogonal to the row is the same function of
    theta for both neighbours; given it, the laws of theta are laws on a curve whose distribution
    functions are normal ones. The best event is a union of intervals, and its probabilities are
    differences of normal distribution functions. Every set of intervals gives a lower bound, so a
    value above a certificate is a violation, whatever the grid.

Numerical error, as the tests assert it: on a line densities integrate to 1 within 1e-10 and the two
ways agree within 1e-7 relative. In the plane they agree within 2e-2, and ``by_density`` integrates
to 1 within 2e-3: its grid does not follow the kinks. Noise beyond ``REACH`` standard deviations is
left out, which takes at most 2e-30 off a delta; in the plane, ``by_intervals`` leaves out 1e-15 of
the orthogonal noise, and its coarsest sum over it, 3 panels, has weights that add up to 1 - 5e-8.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from itertools import pairwise

import numpy as np
from scipy.special import expit, log_ndtr, ndtr, roots_legendre

#: Standard deviations of noise that are integrated over.
REACH = 11.5


# --- profiles -----------------------------------------------------------------------------------


def gaussian_profile(mu, epsilon):
    """Return the hockey-stick divergence of N(mu, 1) and N(0, 1); epsilon may be negative."""
    epsilon = np.asarray(epsilon, dtype=float)
    if mu == 0.0:
        return np.maximum(-np.expm1(epsilon), 0.0)
    first = log_ndtr(mu / 2.0 - epsilon / mu)
    second = epsilon + log_ndtr(-mu / 2.0 - epsilon / mu)
    return np.exp(first) * -np.expm1(np.minimum(second - first, 0.0))


def bound_first(epsilon, mu, eps_c):
    """Return E (1 - exp(epsilon - max(eps_c, mu Z + mu^2/2)))_+."""
    if epsilon >= eps_c:
        return float(gaussian_profile(mu, epsilon))
    at = eps_c / mu - mu / 2.0
    flat = -math.expm1(epsilon - eps_c) * ndtr(at)
    return float(flat + ndtr(-at) - math.exp(epsilon + log_ndtr(-at - mu)))


def bound_second(epsilon, mu):
    """Return E (1 - exp(epsilon - mu |Z| - mu^2/2))_+."""
    if epsilon >= mu**2 / 2.0:
        return 2.0 * float(gaussian_profile(mu, epsilon))
    return float(1.0 - 2.0 * math.exp(epsilon + log_ndtr(-mu)))


def bound_person(epsilon, mu, eps_c, count):
    """Return E (1 - exp(epsilon - W))_+, W = max(eps_c, mu M + mu^2/2), P(M > z) = 2 k Phi(-z)."""
    start = max(epsilon, eps_c)
    reach = max((start - mu**2 / 2.0) / mu, 0.0)
    z, w = _panels(reach + np.linspace(0.0, 12.0, 61), 10)
    tail = np.minimum(1.0, 2.0 * count * ndtr(-z)) * np.exp(epsilon - mu * z - mu**2 / 2.0)
    # Below ``reach`` the loss is at least ``mu^2/2`` in any case.
    sure = max(-math.expm1(epsilon - max(start, mu * reach + mu**2 / 2.0)), 0.0)
    return float(sure + mu * (w @ tail))


def published(pair, epsilon, first, error, noise, sign=1.0):
    """Return the divergence of theta + error + N(0, noise^2), the errors in opposite directions.

    In one dimension. ``error`` may be a number or a function of theta with values in a public
    interval; the two data sets get it with opposite signs.
    """
    loss, p, theta = pair.losses(first, 60)
    theta = theta[:, 0]
    q, shift = p * np.exp(-loss), sign * (error(theta) if callable(error) else error)
    keep = (p > 1e-17) | (q > 1e-17)
    theta, p, q = theta[keep], p[keep], q[keep]
    shift = shift[keep] if np.ndim(shift) else shift
    low, high = theta.min() - 10.0 * noise, theta.max() + 10.0 * noise
    at = np.linspace(low, high, int(min(max(8.0 * (high - low) / noise, 300), 1200)))
    total = 0.0
    for part in np.array_split(at, max(1, len(at) // 400)):
        near_p = np.exp(-(((part[:, None] - theta - shift) / noise) ** 2) / 2.0) @ p
        near_q = np.exp(-(((part[:, None] - theta + shift) / noise) ** 2) / 2.0) @ q
        total += np.maximum(near_p - math.exp(epsilon) * near_q, 0.0).sum()
    return float(total * (at[1] - at[0]) / (noise * math.sqrt(2.0 * math.pi)))


# --- losses -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Residual:
    """A loss of y - x't; ``kinks`` are the residuals where its curvature is not smooth."""

    of_slope: object
    of_curvature: object
    lipschitz: float
    kinks: tuple = ()
    one_sided: bool = False

    def parts(self, t, y, shift=0.0):
        """Return the slope in the residual and the curvature, where x't is t + shift."""
        u = (y - shift) - t
        return self.of_slope(u), self.of_curvature(u)

    def breaks(self, y, shift=0.0):
        """Return the values of t where the curvature is not smooth."""
        return [(y - shift) - kink for kink in self.kinks]


@dataclass(frozen=True)
class Logistic:
    """The logistic loss of x't for labels 0 and 1."""

    lipschitz: float = 1.0
    kinks: tuple = (-3.0, 3.0)
    one_sided: bool = True

    def parts(self, t, y, shift=0.0):
        up, down = expit(t + shift), expit(-t - shift)
        return np.where(y > 0.5, down, -up), up * down

    def breaks(self, y, shift=0.0):
        return [-3.0 - shift, -shift, 3.0 - shift]


def huber(lipschitz, curvature=1.0):
    """Return the plain Huber loss, whose curvature jumps to 0."""
    edge = lipschitz / curvature
    return Residual(
        lambda u: np.clip(curvature * u, -lipschitz, lipschitz),
        lambda u: np.where(np.abs(u) < edge, curvature, 0.0),
        lipschitz,
        (-edge, edge),
    )


def allowed(slope, lipschitz, ridge, eps_c):
    """Return the largest curvature that the theorem allows at a slope."""
    return ridge * np.expm1(eps_c * (1.0 - np.abs(slope) / lipschitz))


def steepest(lipschitz, ridge, eps_c, top=math.inf):
    """Return the loss whose curvature is what the theorem allows, but at most ``top``."""
    half = _Half([(lipschitz, "allowed", top)], lipschitz, ridge, eps_c)
    return _Halves(half, half, lipschitz)


def smoothed_quantile(level, width, eps_c):
    """Return a quantile loss smoothed by a logistic law, and the least ridge that allows it."""
    lipschitz = max(level, 1.0 - level)

    def slope(u):
        return np.where(u > 0, level - expit(-u / width), expit(u / width) - (1.0 - level))

    def curvature(u):
        return expit(u / width) * expit(-u / width) / width

    u = width * np.linspace(-30.0, 30.0, 6001)
    ridge = float(np.max(curvature(u) / allowed(slope(u), lipschitz, 1.0, eps_c)))
    # Towards the ends the quotient has the limit L / (width eps_c).
    ridge = max(ridge, lipschitz / (width * eps_c)) * (1.0 + 1e-6)
    ends = (-3.0 * width, 3.0 * width)
    return Residual(slope, curvature, lipschitz, ends), ridge


class _Half:
    """A loss for residuals of one sign: pieces of slope, each flat, straight or as allowed.

    A piece is (slope where it ends, kind, number): "flat" keeps the slope for that length,
    "straight" has that curvature, "allowed" the allowed one, but at most that number.
    """

    def __init__(self, pieces, lipschitz, ridge, eps_c):
        self.constants = lipschitz, ridge, eps_c
        self.start, self.slopes, self.rates = [0.0], [0.0], []
        for end, kind, number in pieces:
            if kind == "flat":
                self._add(number, self.slopes[-1], 0.0)
            elif kind == "straight":
                self._add((end - self.slopes[-1]) / number, end, number)
            else:
                # Where the allowed curvature is above the number, a straight piece.
                cut = min(end, lipschitz * (1.0 - math.log1p(number / ridge) / eps_c))
                if math.isfinite(number) and cut > self.slopes[-1]:
                    self._add((cut - self.slopes[-1]) / number, cut, number)
                if end > self.slopes[-1]:
                    length = math.inf
                    if end < lipschitz:
                        rate = ridge * eps_c / lipschitz
                        length = (self._room(end) - self._room(self.slopes[-1])) / rate
                    self._add(length, end, math.nan)
        if math.isfinite(self.start[-1]):
            self.rates.append(0.0)
        else:
            self.start.pop()
            self.slopes.pop()
        self.start, self.slopes, self.rates = map(np.array, (self.start, self.slopes, self.rates))
        self.room = -np.expm1(-eps_c * (1.0 - self.slopes / lipschitz))
        self.rest = np.exp(-eps_c * (1.0 - self.slopes / lipschitz))

    def _room(self, slope):
        lipschitz, _, eps_c = self.constants
        return -math.log(-math.expm1(-eps_c * (1.0 - slope / lipschitz)))

    def _add(self, length, end, rate):
        self.start.append(self.start[-1] + length)
        self.slopes.append(end)
        self.rates.append(rate)

    def parts(self, u):
        """Return the slope and the curvature at u >= 0."""
        lipschitz, ridge, eps_c = self.constants
        at = np.searchsorted(self.start, u, side="right") - 1
        ahead, slope, rate = u - self.start[at], self.slopes[at], self.rates[at]
        # As allowed: 1 - exp(-eps_c (1 - s/L)) falls exponentially. What it leaves of 1 is formed
        # without cancellation: for a large eps_c it is as small as exp(-eps_c).
        gone = -ridge * eps_c / lipschitz * ahead
        left = self.room[at] * np.exp(gone)
        rest = self.rest[at] - self.room[at] * np.expm1(gone)
        bent = np.isnan(rate)
        straight = np.where(bent, 0.0, rate)
        return (
            np.where(bent, lipschitz + lipschitz / eps_c * np.log(rest), slope + straight * ahead),
            np.where(bent, ridge * left / rest, straight),
        )


@dataclass(frozen=True)
class _Halves:
    """A loss of y - x't with a half for either sign."""

    right: _Half
    left: _Half
    lipschitz: float
    one_sided: bool = False

    def parts(self, t, y, shift=0.0):
        u = (y - shift) - t
        size = np.abs(u)
        right = self.right.parts(size)
        if self.left is self.right:
            return np.copysign(right[0], u), right[1]
        left = self.left.parts(size)
        return np.where(u >= 0, right[0], -left[0]), np.where(u >= 0, right[1], left[1])

    def breaks(self, y, shift=0.0):
        return [(y - shift) - kink for kink in (*(-self.left.start), *self.right.start)]


def steepest_of_persons(lipschitz, ridge, eps_c, top=math.inf):
    """Return the loss with curvature ridge eps_c (1 - |f'|/L), but at most ``top``."""
    rate = ridge * eps_c
    edge = max(0.0, 1.0 - top / rate)
    zone = edge * lipschitz / top if math.isfinite(top) else 0.0

    def left(u):
        return (1.0 - edge) * np.exp(-rate / lipschitz * np.maximum(np.abs(u) - zone, 0.0))

    def slope(u):
        straight = top * np.abs(u) if zone else 0.0
        return np.copysign(np.where(np.abs(u) < zone, straight, lipschitz * (1.0 - left(u))), u)

    def curvature(u):
        return np.where(np.abs(u) < zone, top, rate * left(u))

    step = lipschitz / rate
    kinks = (-zone - step, -zone, 0.0, zone, zone + step)
    return Residual(slope, curvature, lipschitz, tuple(sorted(set(kinks))))


def random_loss(rng, lipschitz, ridge, eps_c):
    """Return a random convex loss that meets the condition, with equality on parts of it."""

    def half():
        ends = np.sort(rng.uniform(0.0, lipschitz, rng.integers(0, 4)))
        last = lipschitz if rng.random() < 0.7 else lipschitz * rng.uniform(0.3, 1.0)
        ends = [*(end for end in ends if end < last), last]
        pieces, before = [], 0.0
        for end in ends:
            if rng.random() < 0.25:
                size = lipschitz / ridge * 10.0 ** rng.uniform(-2.0, 1.0)
                pieces.append((before, "flat", size))
            least = float(allowed(end, lipschitz, ridge, eps_c))
            if rng.random() < 0.5 or least < 1e-3 * ridge:
                pieces.append((end, "allowed", math.inf))
            else:
                pieces.append((end, "straight", least * rng.choice([1.0, rng.uniform(0.05, 1.0)])))
            before = end
        return _Half(pieces, lipschitz, ridge, eps_c)

    return _Halves(half(), half(), lipschitz)


# --- a pair of neighbours -----------------------------------------------------------------------


@dataclass(frozen=True)
class Pair:
    """Rows that both data sets hold, and those of the one person whom only one of them holds.

    Below, theta is measured from the centre, so that a centre far away costs no digits.
    """

    loss: object
    scale: float
    ridge: object
    rows: np.ndarray
    targets: np.ndarray
    weights: np.ndarray
    own_rows: np.ndarray
    own_targets: np.ndarray
    own_weights: np.ndarray = field(default_factory=lambda: np.ones(1))
    centre: object = 0.0

    @property
    def dimension(self):
        return self.own_rows.shape[1]

    def _shift(self, rows):
        return rows @ np.broadcast_to(np.asarray(self.centre, dtype=float), (self.dimension,))

    def _sums(self, theta, rows, targets, weights):
        """Return sum w s x and sum w f'' x x' at every theta."""
        t = theta @ rows.T
        outer = (rows[:, :, None] * rows[:, None, :]).reshape(len(rows), self.dimension**2)
        slope, curvature = self.loss.parts(t, targets, self._shift(rows))
        return (slope * weights) @ rows, (curvature * weights) @ outer

    def field(self, theta, present):
        """Return B and J (flat) at every theta, with or without the person."""
        d = self.dimension
        b, jac = self._sums(theta, self.rows, self.targets, self.weights)
        ridge = np.broadcast_to(np.asarray(self.ridge, dtype=float), (d,))
        b = b - ridge * theta
        jac = jac + np.diag(ridge).ravel()
        if present:
            own, more = self._sums(theta, self.own_rows, self.own_targets, self.own_weights)
            b, jac = b + own, jac + more
        return b, jac

    def both(self, theta, first):
        """Return B of the first data set, B of the second, log det J of the first, and the loss.

        ``first`` says whether the person is in the first data set. Differences are formed from
        the person's own terms, so that nothing cancels.
        """
        b, jac = self.field(theta, False)
        own, more = self._sums(theta, self.own_rows, self.own_targets, self.own_weights)
        if self.dimension == 1:
            det, gain = jac[:, 0], more[:, 0] / jac[:, 0]
        else:
            det = jac[:, 0] * jac[:, 3] - jac[:, 1] * jac[:, 2]
            trace = jac[:, 3] * more[:, 0] + jac[:, 0] * more[:, 3] - 2.0 * jac[:, 1] * more[:, 1]
            gain = (trace + more[:, 0] * more[:, 3] - more[:, 1] * more[:, 2]) / det
        gain = np.log1p(np.maximum(gain, 0.0))
        loss = gain - ((2.0 * b + own) * own).sum(axis=1) / (2.0 * self.scale**2)
        if first:
            return b + own, b, np.log(det) + gain, loss
        return b, b + own, np.log(det), -loss

    # --- solving for theta ----------------------------------------------------------------------

    def _reach(self):
        total = (self.weights @ np.abs(self.rows) if len(self.rows) else 0.0) + (
            self.own_weights @ np.abs(self.own_rows)
        )
        return float(np.max(total)) * self.loss.lipschitz

    @property
    def _enough(self):
        """Return the error in B that counts as none."""
        return 1e-12 * self.scale + 1e-14 * self._reach()

    def solve(self, b, present):
        """Return theta with B(theta) = b, for every row of b."""
        ridge = np.broadcast_to(np.asarray(self.ridge, dtype=float), b.shape)
        radius = (self._reach() + np.abs(b)) / ridge
        if self.dimension == 1:

            def along(t, at):
                value, jac = self.field(t[:, None], present)
                return value[:, 0] - b[at, 0], -jac[:, 0]

            start = -b[:, 0] / ridge[:, 0]
            return _falling_root(along, -radius[:, 0], radius[:, 0], start, self._enough)[:, None]
        theta, good = self._newton(b, present, -b / ridge)
        if not good.all():
            part = ~good
            theta[part] = self._nested(b[part], present, theta[part], radius[part])
        return theta

    def _newton(self, b, present, theta):
        theta = theta.copy()
        value, jac = self.field(theta, present)
        value = value - b
        size = np.abs(value).max(axis=1)
        enough = self._enough
        for _ in range(40):
            go = size > enough
            if not go.any():
                break
            j, v = jac[go], value[go]
            det = j[:, 0] * j[:, 3] - j[:, 1] * j[:, 2]
            step = np.stack(
                [
                    (j[:, 3] * v[:, 0] - j[:, 1] * v[:, 1]) / det,
                    (j[:, 0] * v[:, 1] - j[:, 2] * v[:, 0]) / det,
                ],
                axis=1,
            )
            best = (theta[go], v, j, size[go])
            for share in (1.0, 0.5, 0.2, 0.05):
                tried = theta[go] + share * step
                now, there = self.field(tried, present)
                now = now - b[go]
                far = np.abs(now).max(axis=1)
                less = far < best[3]
                best = tuple(
                    np.where(less if old.ndim == 1 else less[:, None], new, old)
                    for new, old in zip((tried, now, there, far), best, strict=True)
                )
                if less.all():
                    break
            theta[go], value[go], jac[go], size[go] = best
        return theta, size <= enough

    def _nested(self, b, present, theta, radius):
        """Return the same by bisection within bisection: slow and sure."""
        other = theta[:, 1].copy()

        def inner(t, at):
            def along(v, some):
                value, jac = self.field(np.stack([t[some], v], axis=1), present)
                return value[:, 1] - b[at[some], 1], -jac[:, 3]

            return _falling_root(along, -radius[at, 1], radius[at, 1], other[at], self._enough)

        def outer(t, at):
            v = inner(t, at)
            value, jac = self.field(np.stack([t, v], axis=1), present)
            return value[:, 0] - b[at, 0], -(jac[:, 0] - jac[:, 1] * jac[:, 2] / jac[:, 3])

        t = _falling_root(outer, -radius[:, 0], radius[:, 0], theta[:, 0], self._enough)
        return np.stack([t, inner(t, np.arange(len(t)))], axis=1)

    # --- hockey-stick divergences ---------------------------------------------------------------

    def by_density(self, epsilon, first, mu_gaussian=0.0, panels=None):
        """Return the divergence as a sum of densities, and the two densities' integrals.

        ``panels`` is their number or, in the plane, their ends for each entry of the noise.
        """
        loss, p, _ = self.losses(first, panels, epsilon)
        with np.errstate(under="ignore"):
            q = p * np.exp(-loss)
        return float(p @ gaussian_profile(mu_gaussian, epsilon - loss)), p.sum(), q.sum()

    def losses(self, first, panels=None, epsilon=None):
        """Return values of the privacy loss, their probabilities in the first data set, theta.

        On a line, panels end where the loss is epsilon.
        """
        theta, weights = self._nodes(first, panels, epsilon)
        b, _, logdet, loss = self.both(theta, first)
        norm = logdet - self.dimension * math.log(self.scale * math.sqrt(2.0 * math.pi))
        return loss, weights * np.exp(norm - (b**2).sum(axis=1) / (2.0 * self.scale**2)), theta

    def _nodes(self, first, panels, epsilon):
        """Return nodes in theta and their weights."""
        if self.dimension == 1:
            return self._nodes_on_a_line(panels or 300, first, epsilon)
        ends = panels if np.ndim(panels) else np.linspace(-REACH, REACH, (panels or 60) + 1)
        x, w = _panels(ends, 4)
        z = np.stack([each.ravel() for each in np.meshgrid(x, x, indexing="ij")], axis=1)
        theta = self.solve(z * self.scale, first)
        # The weights are those of b; divided by det J they are weights of theta.
        jac = self.field(theta, first)[1]
        det = jac[:, 0] * jac[:, 3] - jac[:, 1] * jac[:, 2]
        return theta, np.outer(w, w).ravel() * self.scale**2 / det

    def _nodes_on_a_line(self, panels, first, epsilon):
        """Return nodes for both data sets: panels equal in b, ends where curvatures jump."""
        grid = np.linspace(-REACH, REACH, panels // 2 + 1)[:, None] * self.scale
        ends = [self.solve(grid, present)[:, 0] for present in (False, True)]
        low, high = min(map(np.min, ends)), max(map(np.max, ends))
        for rows, targets in ((self.rows, self.targets), (self.own_rows, self.own_targets)):
            for x, y, shift in zip(rows[:, 0], targets, self._shift(rows), strict=True):
                if x != 0.0:
                    kinks = np.array(self.loss.breaks(y, shift)) / x
                    ends.append(kinks)
                    ends.append(self._around(kinks, x))
        ends = np.unique(np.clip(np.concatenate(ends), low, high))
        x, w = _panels(ends, 10)
        if epsilon is not None:
            above = self.both(x[:, None], first)[3] > epsilon
            at = np.nonzero(above[1:] != above[:-1])[0]
            before, after = x[at], x[at + 1]
            for _ in range(50):
                middle = (before + after) / 2.0
                left = (self.both(middle[:, None], first)[3] > epsilon) == above[at]
                before, after = np.where(left, middle, before), np.where(left, after, middle)
            x, w = _panels(np.unique(np.concatenate([ends, before])), 10)
        return x[:, None], w

    def _around(self, kinks, x):
        """Return points between kinks, and around them on every scale that a slope can have."""
        kinks = np.sort(kinks)
        scales = self.loss.lipschitz / np.max(self.ridge) / abs(x) * 5.0 ** np.arange(-20, 2)
        around = kinks[:, None] + np.concatenate([-scales, scales])
        between = [np.linspace(a, b, 9) for a, b in pairwise(kinks)]
        return np.concatenate([*between, around.ravel()])

    def by_intervals(self, epsilons, first, cells=60, across=4):
        """Return the divergence at every epsilon from normal distribution functions.

        ``cells`` is the size of the grid along the row, ``across`` the number of panels for what
        is orthogonal to it. The values are never above the exact ones by more than rounding and,
        in two dimensions, the outer sum.
        """
        epsilons = np.atleast_1d(np.asarray(epsilons, dtype=float))
        if len(self.own_rows) != 1 or not np.any(self.own_rows):
            assert self.dimension == 1 or not np.any(self.own_rows)
        if self.dimension == 1:
            z = np.linspace(-REACH, REACH, cells + 1)[:, None] * self.scale
            return self._curve(self.solve(z, first)[:, None, :], None, epsilons, first)[0]
        pair, w = self._turned(), _panels(np.linspace(-8.0, 8.0, across + 1), 10)
        z = np.linspace(-REACH, REACH, cells + 1)
        grid = np.stack([g.ravel() for g in np.meshgrid(z, w[0], indexing="ij")], axis=1)
        theta = pair.solve(grid * self.scale, first).reshape(len(z), len(w[0]), 2)
        deltas = pair._curve(theta, w[0] * self.scale, epsilons, first)
        return (w[1] * np.exp(-(w[0] ** 2) / 2.0) / math.sqrt(2.0 * math.pi)) @ deltas

    def _turned(self):
        """Return the same pair in axes of which the first is the person's row."""
        x = self.own_rows[0] / np.linalg.norm(self.own_rows[0])
        turn = np.array([x, [-x[1], x[0]]])
        assert np.ptp(np.broadcast_to(np.asarray(self.ridge, dtype=float), (2,))) == 0.0
        centre = turn @ np.broadcast_to(np.asarray(self.centre, dtype=float), (2,))
        own = np.array([[np.linalg.norm(self.own_rows[0]), 0.0]])
        return replace(self, rows=self.rows @ turn.T, own_rows=own, centre=centre)

    def _on_curve(self, t, across, start):
        """Return theta on the curves where the second entry of B is ``across``."""
        if across is None:
            return t[:, None]
        ridge = float(np.max(np.asarray(self.ridge, dtype=float)))
        radius = (self._reach() + np.abs(across)) / ridge

        def along(v, at):
            value, jac = self.field(np.stack([t[at], v], axis=1), False)
            return value[:, 1] - across[at], -jac[:, 3]

        v = _falling_root(along, -radius, radius, start, self._enough)
        return np.stack([t, v], axis=1)

    def _curve(self, theta, across, epsilons, first):
        """Return deltas (curves x epsilons); theta is (nodes, curves, d), along growing noise."""
        curves = theta.shape[1]
        t = theta[:, :, 0]
        between = [t[1:] * share + t[:-1] * (1.0 - share) for share in (0.25, 0.5, 0.75)]
        t = np.concatenate([t, *between, self._own_nodes(t)])
        order = np.argsort(t, axis=0)
        t = np.take_along_axis(t, order, axis=0)
        if across is None:
            points = t.reshape(-1, 1)
            levels = None
        else:
            start = np.stack(
                [np.interp(t[:, k], theta[::-1, k, 0], theta[::-1, k, 1]) for k in range(curves)],
                axis=1,
            )
            levels = np.broadcast_to(across, t.shape)
            points = self._on_curve(t.ravel(), levels.ravel(), start.ravel())
        b, other, _, loss = self.both(points, first)
        shape = t.shape
        if levels is not None:
            assert np.abs(b[:, 1] - levels.ravel()).max() <= 1e-6 * self.scale
        zp, zq = b[:, 0].reshape(shape), other[:, 0].reshape(shape)
        loss = loss.reshape(shape)
        v = points[:, -1].reshape(shape)
        # A node on a jump of the curvature has one of two losses: cells end on it all the same.
        result = np.zeros((curves, len(epsilons)))
        for k, epsilon in enumerate(epsilons):
            above = loss > epsilon
            change = above[1:] != above[:-1]
            result[:, k] += self._whole_cells(zp, zq, above[1:] & above[:-1], epsilon)
            at = np.nonzero(change)
            if len(at[0]):
                low, high = t[:-1][at], t[1:][at]
                up = above[1:][at]
                level = None if levels is None else levels[:-1][at]
                near = v[:-1][at]
                for _ in range(26):
                    middle = (low + high) / 2.0
                    here = self._on_curve(middle, level, near)
                    b, other, _, value = self.both(here, first)
                    near = here[:, -1]
                    right = (value > epsilon) == up
                    low, high = np.where(right, low, middle), np.where(right, middle, high)
                # The event is the part of the cell beyond (up) or before the root.
                ends = np.where(up, zp[1:][at], zp[:-1][at]), np.where(up, zq[1:][at], zq[:-1][at])
                gain = _mass(b[:, 0], ends[0], self.scale)
                gain -= math.exp(epsilon) * _mass(other[:, 0], ends[1], self.scale)
                np.add.at(result[:, k], at[1], np.maximum(gain, 0.0))
        return result

    def _whole_cells(self, zp, zq, inside, epsilon):
        gain = _mass(zp[1:], zp[:-1], self.scale)
        gain -= math.exp(epsilon) * _mass(zq[1:], zq[:-1], self.scale)
        return np.where(inside, gain, 0.0).sum(axis=0)

    def _own_nodes(self, t):
        """Return points on every curve where the person's own curvature is not smooth."""
        nodes = []
        shifts = self._shift(self.own_rows)
        for x, y, shift in zip(self.own_rows[:, 0], self.own_targets, shifts, strict=True):
            if x != 0.0:
                kinks = np.array(self.loss.breaks(y, shift)) / x
                nodes += [kinks * (1.0 - 1e-12), kinks * (1.0 + 1e-12), self._around(kinks, x)]
        nodes = np.concatenate(nodes) if nodes else np.zeros(0)
        return np.clip(np.broadcast_to(nodes[:, None], (len(nodes), t.shape[1])), t[-1], t[0])


def _mass(first, second, scale):
    """Return the normal probability between pairs of points, from the nearer tail."""
    low, high = np.minimum(first, second) / scale, np.maximum(first, second) / scale
    turned = low > 0.0
    low, high = np.where(turned, -high, low), np.where(turned, -low, high)
    return ndtr(high) - ndtr(low)


def _panels(ends, count):
    """Return Gauss-Legendre nodes and weights on the panels between the ends."""
    x, w = roots_legendre(count)
    middle, half = (ends[1:] + ends[:-1]) / 2.0, np.diff(ends) / 2.0
    return (middle[:, None] + half[:, None] * x).ravel(), (half[:, None] * w).ravel()


def _falling_root(function, low, high, start, enough):
    """Return roots of falling functions in brackets: Newton where it helps, else halving.

    ``function(x, at)`` returns values and derivatives of those functions that ``at`` selects.
    """
    low, high = low.copy(), high.copy()
    x = np.clip(start, low, high)
    at, last = np.arange(len(x)), np.full(len(x), np.inf)
    for _ in range(200):
        here = x[at]
        value, slope = function(here, at)
        lower = np.where(value >= 0.0, here, low[at])
        upper = np.where(value <= 0.0, here, high[at])
        low[at], high[at] = lower, upper
        new = here - value / slope
        # Newton only while it stays inside and halves the residual: it cycles around kinks.
        slow = np.abs(value) > 0.5 * last[at]
        bad = slow | ~((new >= lower) & (new <= upper))
        # Done, or as good as rounding allows.
        done = np.abs(value) <= enough
        done |= upper - lower <= 4e-16 * np.maximum(np.abs(lower), np.abs(upper))
        x[at] = np.where(done, here, np.where(bad, (lower + upper) / 2.0, new))
        last[at] = np.abs(value)
        at = at[~done]
        if not len(at):
            break
    return x
