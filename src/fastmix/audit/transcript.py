"""Noise that judges what it draws: the log-density of every release, on two data sets.

A fit is a chain of releases; coefficients, standard errors and later releases are functions of
what was released before. Its noise keeps the transcript. `Listening` adds up the log-densities of
the releases on the data that they were drawn from. `Replaying` hands the same releases to a fit on
other data, which gives their log-densities there. By the lemma of Neyman and Pearson no score
separates two data sets better than the difference. A replay also tells whether a transcript is
complete: a fit on other data must ask for the same releases and publish the same numbers.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fastmix._types import FloatArray
from fastmix.kernels.measured import Spiked
from fastmix.releases import Entry, Noise, PrivateGram, Release
from fastmix.releases.release import Public


class IncompleteTranscriptError(RuntimeError):
    """A fit depends on its data in another way than through its releases."""


class Judging(Noise):
    """Noise with the log-densities of its releases, added up by their names."""

    def __init__(self, rng: np.random.Generator) -> None:
        super().__init__(rng)
        self.likelihoods: dict[str, float] = {}

    def _judge(self, entry: Entry, rows: Any) -> None:
        release = entry.release
        assert release is not None
        density = release.density(entry.value, rows, Public.of(rows), entry.given)
        self.likelihoods[release.name] = self.likelihoods.get(release.name, 0.0) + density


class Listening(Judging):
    """Noise that judges what it draws."""

    def _value(self, release: Release, rows: Any, public: Public, given: dict[str, Any]) -> Any:
        value = super()._value(release, rows, public, given)
        self._judge(Entry(release, given, value), rows)
        return value


class Replaying(Judging):
    """No noise: it hands out the releases of a transcript, and judges them.

    With ``strict``, each release must get the given values of the transcript; these are then
    functions of earlier releases.
    """

    strict = False

    def follow(self, transcript: Sequence[Entry], *, strict: bool) -> "Replaying":
        """Return this noise, set to the start of a transcript."""
        self._left, self.strict = list(transcript), strict
        return self

    def finished(self) -> None:
        """Refuse a transcript whose last releases were not asked for."""
        if self._left:
            self._next(None)

    def _next(self, release: Release | None) -> Entry:
        entry = self._left.pop(0) if self._left else None
        if entry is None or entry.release is not release:
            name = getattr(release or getattr(entry, "release", None), "name", "a public choice")
            raise IncompleteTranscriptError(f"{name!r} must be released as on the other data.")
        return entry

    def _value(self, release: Release, rows: Any, public: Public, given: dict[str, Any]) -> Any:
        entry = self._next(release)
        for name, value in entry.given.items():
            if self.strict and not _same(given[name], value):
                raise IncompleteTranscriptError(
                    f"{name} of {release.name!r} must be a function of earlier releases."
                )
        self._judge(entry, rows)
        return entry.value

    def _choice(self, choose: Callable[[], Any]) -> Any:
        return self._next(None).value


def judging(kind: type[Noise]) -> tuple[type[Listening], type[Replaying]]:
    """Return the classes of noise that listen to, and that replay, noise of some kind."""
    listening = type("Listening" + kind.__name__, (Listening, kind), {})
    return listening, type("Replaying" + kind.__name__, (Replaying, kind), {})


def ratios(
    own: Sequence[dict[str, float]], other: Sequence[dict[str, float]], sign: float
) -> FloatArray:
    """Return log-likelihood ratios, one row per transcript: of all releases, then by name.

    A release that a transcript lacks, as earlier ones decided, adds nothing to it.
    """
    names = list(dict.fromkeys(name for each in own for name in each))
    both = zip(own, other, strict=True)
    parts = np.array([[a.get(name, 0.0) - b.get(name, 0.0) for name in names] for a, b in both])
    return sign * np.column_stack((parts.sum(axis=1), parts))


def numbers(transcript: Sequence[Entry]) -> FloatArray:
    """Return everything that was released as one vector."""
    released = [entry.value for entry in transcript if entry.release is not None]
    return np.concatenate([np.zeros(0), *(_flat(value) for value in released)])


def _flat(value: Any) -> FloatArray:
    if isinstance(value, PrivateGram):
        value = value.matrix()
    if isinstance(value, (tuple, list)):
        return np.concatenate([np.zeros(0), *(_flat(each) for each in value)])
    return np.ravel(np.asarray(value, dtype=np.float64))


def _same(first: Any, second: Any) -> bool:
    if isinstance(first, np.random.Generator):  # public randomness, whose state may differ
        return isinstance(second, np.random.Generator)
    if isinstance(first, np.ndarray | Spiked) or isinstance(second, np.ndarray | Spiked):
        return np.array_equal(first, second)
    return bool(first == second)
