"""Noise: what is added to a value before it is released, and the grid that it is released on.

Floating-point noise has holes: which doubles can come out depends on what the noise was added to,
so the last bits of a sum can betray it (Mironov, 2012).  `FloatNoise` rounds what it releases to a
grid of 2^-20 of the noise scale, which throws those bits away.  It narrows the leak and does not
close it (docs/limitations.md); `ExactNoise` does.

`ExactNoise` rounds a value to a grid of 2^-32 of the noise scale, and adds an integer that has
exactly the discrete distribution (`fastmix.kernels.discrete`).  Rounding moves neighbours apart by
at most one grid step per coordinate; sensitivity and noise grow by that, so that their ratio, which
the account carries, is the one asked for.  What discrete noise costs beyond continuous noise is an
event of its own (docs/proofs/exact_noise.md).
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from fastmix._types import FloatArray
from fastmix._validation import check_choice, check_integer, check_real, value_error
from fastmix.accounting import LaplaceEvent, PrivacyEvent
from fastmix.kernels.discrete import draw_discrete
from fastmix.random import RandomState, secret_generator
from fastmix.releases.release import Public, Release

#: Grids are powers of two in (2^-(bits + 1), 2^-bits] of the noise scale.
FLOAT_BITS, EXACT_BITS = 20, 32
#: Discrete noise in excess of the ratio asked for: the Rényi curve of the discrete Laplace
#: distribution lies a little above that of the continuous one.
EXCESS = 2.0**-30
#: Epsilon for each coordinate of discrete Gaussian noise, by which it differs from rounded noise.
SLACK = 67.0 * 2.0**-64
#: Grid points beyond this are moved to it before noise is added: a contraction, so it is free.
_LARGEST = 2.0**62


@dataclass(frozen=True)
class Entry:
    """One line of a transcript: a release, what it was given, its noisy value and its events.

    Everything in it is public or released. A public choice, such as a drawn sketch, has no release.
    """

    release: Release | None
    given: dict[str, Any]
    value: Any
    events: tuple[PrivacyEvent, ...] = ()


class Noise(ABC):
    """Secret noise. `release` draws; ``transcript`` has all releases, ``drawn`` their events."""

    #: Where the noise comes from, as a certificate says it.
    source: ClassVar[str]

    def __init__(self, rng: np.random.Generator) -> None:
        self.rng = rng
        self.drawn: list[PrivacyEvent] = []
        self.transcript: list[Entry] = []
        #: How many coordinates of discrete noise were drawn.
        self.coordinates = 0

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

    @abstractmethod
    def _gaussian(self, values: FloatArray, sensitivity: float, ratio: float) -> FloatArray:
        """Return values on a grid with noise of ``ratio`` times their l2 ``sensitivity``.

        Only a `Release` calls this and the next two methods: they charge nothing.
        """

    @abstractmethod
    def _perturbation(self, size: int, scale: float) -> tuple[FloatArray, float]:
        """Return the noise of an objective: secret, only the minimiser leaves.

        The second number bounds the distance to exact Gaussian noise, in the l2 norm.
        """

    @abstractmethod
    def _bound(
        self, value: float, above: bool, sensitivity: float, ratio: float, tau: float, law: str
    ) -> float:
        """Return a bound from above or below, at least 0, that fails as rarely as ``tau`` says."""

    @staticmethod
    def cost(size: int) -> tuple[PrivacyEvent, ...]:
        """Return what ``size`` coordinates of noise cost beyond continuous noise."""
        return ()


#: What a function of noise takes: a `Noise`, or what makes one.
RandomNoise = RandomState | Noise


class FloatNoise(Noise):
    """Floating-point noise from the secret generator, released on a coarse grid."""

    source = "AES-128-CTR keyed by the OS"

    def _gaussian(self, values: FloatArray, sensitivity: float, ratio: float) -> FloatArray:
        scale = ratio * sensitivity
        step = grid_step(scale)
        noisy = values + scale * self.rng.standard_normal(values.shape)
        return np.asarray(np.rint(noisy / step) * step)

    def _perturbation(self, size: int, scale: float) -> tuple[FloatArray, float]:
        noise = scale * self.rng.standard_normal(size)
        return noise, 2.0**-48 * scale * math.sqrt(size)

    def _bound(
        self, value: float, above: bool, sensitivity: float, ratio: float, tau: float, law: str
    ) -> float:
        """Release a bound, rounded to its safe side."""
        scale = ratio * sensitivity
        step = grid_step(scale)
        shift = scale * (tau - self._draw(law))
        if above:
            return math.ceil(max(0.0, value + shift) / step) * step
        return math.floor(max(0.0, value - shift) / step) * step

    def _draw(self, law: str) -> float:
        return float(self.rng.laplace() if law == "laplace" else self.rng.standard_normal())


class ExactNoise(Noise):
    """Discrete noise, drawn by integers only; sketches alone are in floating point."""

    source = "discrete, from AES-128-CTR keyed by the OS; in floating point for sketches only"

    def _gaussian(self, values: FloatArray, sensitivity: float, ratio: float) -> FloatArray:
        step, scale = _level(sensitivity, ratio, values.size)
        points = np.rint(_in_steps(values.ravel(), step)).astype(np.int64)
        noisy = points + self._discrete("gaussian", scale, values.size)
        return np.reshape(noisy.astype(np.float64), values.shape) * step

    def _perturbation(self, size: int, scale: float) -> tuple[FloatArray, float]:
        step = grid_step(scale, EXACT_BITS)
        drawn = self._discrete("gaussian", math.ceil(scale / step), size)
        # Discrete noise is that of a rounded Gaussian but for the event of `cost`.
        return drawn.astype(np.float64) * step, math.sqrt(size) * step

    def _bound(
        self, value: float, above: bool, sensitivity: float, ratio: float, tau: float, law: str
    ) -> float:
        """Release a bound: rounded to its safe side before noise, its shift by at least a step."""
        step, scale = _level(sensitivity, ratio, 1)
        (point,) = _in_steps([value], step)
        noisy = math.ceil(point) if above else math.floor(point)
        noisy += int(self._discrete(law, scale, 1)[0])
        shift = math.ceil(tau * scale) + 1
        return float(max(0, noisy + shift if above else noisy - shift) * step)

    def _discrete(self, law: str, scale: int, size: int) -> npt.NDArray[np.int64]:
        """Draw discrete noise of a scale in grid steps."""
        self.coordinates += size
        return draw_discrete(law, scale, size, self.rng)

    @staticmethod
    def cost(size: int) -> tuple[PrivacyEvent, ...]:
        r"""Return :math:`N (1/8 + 40^2/24) / t^2` as an event (docs/proofs/exact_noise.md)."""
        return (LaplaceEvent(1.0, SLACK * check_integer("size", size, at_least=1)),)


#: The kinds of noise, by the name of the parameter ``noise``.
NOISES: dict[str, type[Noise]] = {"float": FloatNoise, "exact": ExactNoise}


def check_noise(kind: str, random_state: RandomState) -> None:
    """Refuse what `make_noise` would refuse; leaves the state of a generator alone."""
    check_choice("noise", kind, tuple(NOISES))
    if not isinstance(random_state, np.random.RandomState):  # which gives its draws to a seed
        secret_generator(random_state, warn=False)


def make_noise(kind: str, random_state: RandomState = None, *, warn: bool = True) -> Noise:
    """Return "float" or "exact" noise; any seed voids the guarantee."""
    made = NOISES[check_choice("noise", kind, tuple(NOISES))]
    return made(secret_generator(random_state, warn=warn))


def as_noise(rng: RandomNoise) -> Noise:
    """Return noise as it is, or floating-point noise from a ``random_state``."""
    return rng if isinstance(rng, Noise) else make_noise("float", rng)


def grid_step(scale: float, bits: int = FLOAT_BITS) -> float:
    """Return the power of two in (2^-(bits + 1), 2^-bits] of the noise scale."""
    if not 1e-250 < scale < 1e250:
        raise value_error("scale", "lie between 1e-250 and 1e250", scale)
    return math.ldexp(1.0, math.frexp(scale)[1] - 1 - bits)


def enlarged_sensitivity(sensitivity: float, step: float, size: int) -> float:
    r"""Return :math:`\Delta + g\sqrt{N}`, the l2 sensitivity of N coordinates on a grid of g."""
    return sensitivity + math.sqrt(size) * step


def _level(sensitivity: float, ratio: float, size: int) -> tuple[float, int]:
    """Return the grid step and the noise scale in steps; from public quantities only.

    The scale is rounded up, to the safe side.
    """
    check_real("sensitivity", sensitivity, above=0.0)
    step = grid_step(ratio * sensitivity, EXACT_BITS)
    enlarged = enlarged_sensitivity(sensitivity, step, size)
    scale = ratio * sensitivity / step * (enlarged / sensitivity) * (1.0 + EXCESS)
    return step, math.ceil(scale)


def _in_steps(values: npt.ArrayLike, step: float) -> FloatArray:
    """Return values in grid steps; exact, because a step is a power of two."""
    return np.clip(values, -_LARGEST * step, _LARGEST * step) / step
