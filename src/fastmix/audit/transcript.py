"""The transcript of a fit: everything that its mechanisms release, in order.

A fit is a chain of releases; coefficients, standard errors and later releases are functions of
what was released before.  `recording` watches the mechanisms of real fits, and only inside its
``with`` block: outside of it nothing is wrapped, and a model never refers to a transcript.
`replaying` checks that a transcript is complete: a fit on other data that is handed the recorded
releases must ask for the same releases and publish the same numbers.
"""

import inspect
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from fastmix import mechanisms
from fastmix.accounting import PrivacyEvent
from fastmix.data import AugmentedRows
from fastmix.mechanisms import Noise
from fastmix.methods import METHODS
from fastmix.random import RandomState
from fastmix.sketches import Sketch, SketchDraw

#: The functions that release something, by the names under which methods call them.
RELEASES = tuple(
    name
    for name in mechanisms.__all__
    if inspect.isfunction(getattr(mechanisms, name))
    and not name.endswith(("_event", "_events"))
    and name not in ("make_noise", "symmetric_solve")
)

_SIGNATURES = {name: inspect.signature(getattr(mechanisms, name)) for name in RELEASES}

#: Arguments that are sensitive, or sources of randomness: not part of a transcript.
_NOT_PUBLIC = frozenset({"X", "noise", "public", "rng", "rows", "sketch_rng", "spectrum"})

#: Makes the wrapper of a mechanism, from its name and itself.
Watch = Callable[[str, Callable[..., Any]], Callable[..., Any]]

#: Open blocks, outermost first; the mechanisms without them, by namespace and name.
_LAYERS: list[Watch] = []
_REAL: list[tuple[dict[str, Any], str, Callable[..., Any]]] = []
_LOCK = threading.RLock()


class IncompleteTranscriptError(RuntimeError):
    """A fit depends on its data in another way than through its releases."""


@dataclass(frozen=True)
class Release:
    """One release of a fit: the mechanism, its public arguments, what came out, public sketches."""

    mechanism: str
    arguments: dict[str, Any]
    out: Any
    draws: tuple[SketchDraw, ...] = ()
    with_target: bool = False
    events: tuple[PrivacyEvent, ...] = ()


@contextmanager
def recording() -> Iterator[list[Release]]:
    """Record what fits inside the ``with`` block release, in a list that grows with each."""
    transcript: list[Release] = []

    def watch(name: str, mechanism: Callable[..., Any]) -> Callable[..., Any]:
        def watched(*args: Any, **kwargs: Any) -> Any:
            transcript.append(_recorded(name, mechanism, args, kwargs))
            return transcript[-1].out

        return watched

    with _wrapped(watch):
        yield transcript


def released(name: str, of: Any, noise: Noise, **kwargs: Any) -> Release:
    """Call a mechanism by its name and return what it released."""
    kwargs["noise" if "noise" in _SIGNATURES[name].parameters else "rng"] = noise
    return _recorded(name, getattr(mechanisms, name), (of,), kwargs)


def _recorded(
    name: str, mechanism: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Release:
    arguments = _SIGNATURES[name].bind(*args, **kwargs).arguments
    draws: list[SketchDraw] = []
    if isinstance(sketch := arguments.get("sketch"), Sketch):
        kwargs["sketch"] = _WatchedSketch(sketch.k2, sketch.n, sketch, draws)
    elif isinstance(sketch, SketchDraw):
        draws = [sketch] * arguments.get("count", 1)
    drawn = _drawn(arguments)
    before = len(drawn)
    out = mechanism(*args, **kwargs)
    joined = isinstance(next(iter(arguments.values())), AugmentedRows)
    public = {key: each for key, each in arguments.items() if key not in _NOT_PUBLIC}
    return Release(name, public, out, tuple(draws), joined, tuple(drawn[before:]))


@contextmanager
def replaying(transcript: Sequence[Release]) -> Iterator[None]:
    """Hand recorded releases to the fit inside the ``with`` block, which must ask for no others."""
    left = list(transcript)

    def watch(name: str, mechanism: Callable[..., Any]) -> Callable[..., Any]:
        def replayed(*args: Any, **kwargs: Any) -> Any:
            arguments = _SIGNATURES[name].bind(*args, **kwargs).arguments
            release = left.pop(0) if left else None
            if release is None or release.mechanism != name:
                raise IncompleteTranscriptError(f"{name} must be called as on the other data.")
            for key, value in release.arguments.items():
                if not _same(arguments.get(key), value):
                    raise IncompleteTranscriptError(
                        f"{key} of {name} must be a function of earlier releases."
                    )
            _drawn(arguments).extend(release.events)
            return release.out

        return replayed

    with _wrapped(watch):
        yield
    if left:
        raise IncompleteTranscriptError(f"{left[0].mechanism} must be called as on the other data.")


def _drawn(arguments: dict[str, Any]) -> list[PrivacyEvent]:
    """Return the list in which the noise of a call keeps its events."""
    return next((each.drawn for each in arguments.values() if isinstance(each, Noise)), [])


@contextmanager
def _wrapped(watch: Watch) -> Iterator[None]:
    """Wrap the mechanisms in all modules of the methods; blocks may end in any order."""
    try:
        with _LOCK:
            if not _LAYERS:
                _REAL[:] = _mechanisms()
            _LAYERS.append(watch)
            _install()
        yield
    finally:
        with _LOCK:
            _LAYERS[:] = [layer for layer in _LAYERS if layer is not watch]
            _install()


def _mechanisms() -> list[tuple[dict[str, Any], str, Callable[..., Any]]]:
    """Return every namespace of the methods, the users' own too, with the mechanisms it calls."""
    own = {method.__module__ for method in METHODS.values()}
    found = [method.solve.__globals__ for method in METHODS.values()]
    found += [
        vars(module)
        for path, module in list(sys.modules.items())
        if path.startswith("fastmix.methods.") or path in own
    ]
    spaces = {id(space): space for space in found}.values()
    return [(space, name, space[name]) for space in spaces for name in RELEASES if name in space]


def _install() -> None:
    """Put the mechanisms in their places, inside the wrappers of all blocks that are open."""
    for space, name, mechanism in _REAL:
        for layer in _LAYERS:
            mechanism = layer(name, mechanism)
        space[name] = mechanism


@dataclass(frozen=True)
class _WatchedSketch(Sketch):
    """A sketch that keeps what is drawn from it."""

    of: Sketch
    draws: list[SketchDraw]

    def sample(self, rng: RandomState = None) -> SketchDraw:
        self.draws.append(self.of.sample(rng))
        return self.draws[-1]


def _same(first: Any, second: Any) -> bool:
    if isinstance(first, np.ndarray) or isinstance(second, np.ndarray):
        return np.array_equal(first, second)
    return bool(first == second)
