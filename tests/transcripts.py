"""Record the releases of whatever runs in a block, and replay them to what runs in another."""

from contextlib import contextmanager
from unittest import mock

import numpy as np

from fastmix.audit.transcript import judging
from fastmix.releases import Noise


@contextmanager
def recording():
    """Yield the transcript of all noise that is made in the block, in one list."""
    entries, real = [], Noise.__init__

    def shared(self, rng):
        real(self, rng)
        self.transcript = entries

    with mock.patch.object(Noise, "__init__", shared):
        yield entries


@contextmanager
def replaying(transcript):
    """Hand recorded releases to the fit in the block, which must ask for these and no others."""
    follower = judging(Noise)[1](np.random.default_rng(0)).follow(transcript, strict=True)
    patch = mock.patch.multiple(
        Noise,
        _value=lambda self, *given: follower._value(*given),
        _choice=lambda self, choose: follower._choice(choose),
    )
    with patch:
        yield
    follower.finished()


def names(transcript):
    """Return the names of the releases in a transcript."""
    return [entry.release.name for entry in transcript if entry.release is not None]
