"""The events of the mixing mechanisms, written down from their sizes alone."""

from fastmix.accounting import ComposedEvent, SketchEvent
from fastmix.releases import spectral_events


def gauss_mix_event(*, k, gamma, tau, omega, n_steps=1):
    """Return the event of `gauss_mix`: one eigenvalue, and the rows of all sketches."""
    bounds = spectral_events("gaussian", tau=tau, omega=omega, count=1)
    return ComposedEvent([*bounds, SketchEvent("gauss_mix", gamma, k * n_steps)])


def fast_mix_event(*, k1, gamma, tau, omega, n_steps=1, law="laplace"):
    """Return the event of `fast_mix`: two bounds for each step, and the rows of all sketches."""
    bounds = spectral_events(law, tau=tau, omega=omega, count=2 * n_steps)
    return ComposedEvent([*bounds, SketchEvent("fast_mix", gamma, k1 * n_steps)])
