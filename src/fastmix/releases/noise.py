"""Noise: what is added to a value before it is released, and the grid that it is released on.

Floating-point noise has holes: which doubles can come out depends on what the noise was added to,
so the last bits of a sum can betray it (Mironov, 2012). Here nothing is floating point: a value v
with noise of scale s is released as ``floor((v + s z) / g) * g`` for continuous noise z and a grid
of g, 2^-32 to 2^-33 of s, and the integer is drawn with exactly this law, by integers only
(`fastmix.kernels.rounded`). So a release is a function of what the theorems are about, the value
with continuous noise, and costs what they say (docs/proofs/exact_noise.md).
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from fastmix._types import FloatArray
from fastmix._validation import check_real, value_error
from fastmix.accounting import PrivacyEvent
from fastmix.kernels.rounded import draw_rounded
from fastmix.random import RandomState, secret_generator
from fastmix.releases.release import Public, Release

#: The grid of a release is the power of two in (2^-33, 2^-32] of the noise scale.
_BITS = 32
#: Values beyond this many steps are moved to it before noise is added: a contraction, so it is
#: free, and no overflow can follow.
_LARGEST = 2.0**100


@dataclass(frozen=True)
class Entry:
    """One line of a transcript: a release, what it was given, its noisy value and its events.

    Everything in it is public or released. A public choice, such as a drawn sketch, has no release.
    """

    release: Release | None
    given: dict[str, Any]
    value: Any
    events: tuple[PrivacyEvent, ...] = ()


class Noise:
    """Secret noise. `release` draws; ``transcript`` has all releases, ``drawn`` their events."""

    #: Where the noise comes from, as a certificate says it.
    source: ClassVar[str] = (
        "exact, by integers from AES-128-CTR keyed by the OS; in floating point for sketches only"
    )

    def __init__(self, rng: np.random.Generator) -> None:
        self.rng = rng
        self.drawn: list[PrivacyEvent] = []
        self.transcript: list[Entry] = []

    def __reduce__(self) -> Any:
        raise TypeError("Noise must not be copied: two copies would draw the same noise.")

    def release(self, release: Release, rows: Any, **given: Any) -> Any:
        """Draw a release of rows; the given values must be public or already released.

        They are checked first, and the events are on record before anything is drawn. The
        transcript gets the noisy value, and the caller what `Release.finish` makes of it.

        Sensitive inputs: rows.
        """
        public = Public.of(rows)
        given = release.checked(public, given)
        events = release.charged(given)
        self.drawn.extend(events)
        value = self._value(release, rows, public, given)
        self.transcript.append(Entry(release, given, value, events))
        return release.finish(value, public, **given)

    def skip(self, release: Release, **given: Any) -> None:
        """Charge a release that is the same for all data and needs no noise."""
        self.drawn.extend(release.charged(given))

    def public(self, choose: Callable[[], Any]) -> Any:
        """Make a public random choice, such as a sketch, and record it in the transcript."""
        chosen = self._choice(choose)
        self.transcript.append(Entry(None, {}, chosen))
        return chosen

    def _value(self, release: Release, rows: Any, public: Public, given: dict[str, Any]) -> Any:
        return release.draw(self, rows, public, given)

    def _choice(self, choose: Callable[[], Any]) -> Any:
        return choose()

    def _gaussian(self, values: FloatArray, sensitivity: float, ratio: float) -> FloatArray:
        """Return values on a grid with noise of ``ratio`` times their l2 ``sensitivity``.

        Only a `Release` calls this and the next two methods: they charge nothing.
        """
        step, scale = _level(sensitivity, ratio)
        whole, drawn = self._floored("gaussian", values, step, scale)
        return np.asarray((whole + drawn) * step)

    def _perturbation(self, size: int, scale: float) -> tuple[FloatArray, float]:
        """Return the noise of an objective: secret, only the minimiser leaves.

        It is continuous noise rounded to a grid. The second number bounds the distance between the
        two, in the l2 norm.
        """
        step, steps = _level(1.0, scale)
        _, drawn = self._floored("gaussian", np.zeros(size), step, steps)
        return np.asarray(drawn * step), math.sqrt(size) * step

    def _bound(
        self, value: float, above: bool, sensitivity: float, ratio: float, tau: float, law: str
    ) -> float:
        """Return a bound from above or below, at least 0, that fails as rarely as ``tau`` says.

        It is rounded to its safe side, and so is its shift.
        """
        step, scale = _level(sensitivity, ratio)
        whole, drawn = self._floored(law, np.array([value]), step, scale)
        noisy = int(whole[0]) + int(drawn[0])
        shift = math.ceil(tau * scale) + 1
        return float(max(0, noisy + 1 + shift if above else noisy - shift) * step)

    def _floored(
        self, law: str, values: FloatArray, step: float, scale: int
    ) -> tuple[FloatArray, npt.NDArray[np.int64]]:
        """Draw ``floor(v / step + scale * z)`` for each value v and continuous noise z.

        The two arrays have whole numbers and add up to it. Both parts of ``v / step`` are exact,
        because a step is a power of two; a sum in floating point is the exact one, rounded once.
        """
        points = np.clip(values, -_LARGEST * step, _LARGEST * step) / step
        whole = np.trunc(points)
        return whole, draw_rounded(law, scale, points - whole, self.rng)


#: What a function of noise takes: a `Noise`, or what makes one.
RandomNoise = RandomState | Noise


def check_random_state(random_state: RandomState) -> None:
    """Refuse what `make_noise` would refuse; leaves the state of a generator alone."""
    if not isinstance(random_state, np.random.RandomState):  # which gives its draws to a seed
        secret_generator(random_state, warn=False)


def make_noise(random_state: RandomState = None, *, warn: bool = True) -> Noise:
    """Return noise from a fresh secret generator; any seed voids the guarantee."""
    return Noise(secret_generator(random_state, warn=warn))


def as_noise(rng: RandomNoise) -> Noise:
    """Return noise as it is, or noise from a ``random_state``."""
    return rng if isinstance(rng, Noise) else make_noise(rng)


def grid_step(scale: float) -> float:
    """Return the power of two in (2^-33, 2^-32] of the noise scale."""
    if not 1e-250 < scale < 1e250:
        raise value_error("scale", "lie between 1e-250 and 1e250", scale)
    return math.ldexp(1.0, math.frexp(scale)[1] - 1 - _BITS)


def _level(sensitivity: float, ratio: float) -> tuple[float, int]:
    """Return the grid step and the noise scale in steps, from public quantities only.

    The scale is that of the next whole number of steps, which also covers rounding errors of the
    product.
    """
    scale = ratio * check_real("sensitivity", sensitivity, above=0.0)
    step = grid_step(scale)
    return step, math.floor(scale / step) + 1
