"""The mixing mechanisms: a small Gaussian sketch of the data, or of a fast sketch, with noise.

`mix` releases sketches at a level that whoever has read the private bounds on the spectrum
(`fastmix.releases.bounds`) chooses; the others do all at one fixed level, as in the paper.
"""

from dataclasses import dataclass
from itertools import cycle
from typing import Any

import numpy as np
import numpy.typing as npt

from fastmix._validation import check_choice, check_integer, check_real, type_error
from fastmix.accounting import ComposedEvent, PrivacyEvent, SketchEvent
from fastmix.data import Rows
from fastmix.releases import sampling
from fastmix.releases.bounds import Source, Spectrum, fast_bounds, gauss_bounds
from fastmix.releases.checks import anything
from fastmix.releases.noise import Noise, RandomNoise, as_noise
from fastmix.releases.release import Public, Release
from fastmix.releases.sampling import PrivateGram
from fastmix.sketches import Sketch, SketchDraw

#: Keeps the likelihood of a covariance without noise, part of the rare event, a number.
_TINY = 1e-9


@dataclass(frozen=True, eq=False, kw_only=True)
class _Sketches(Release):
    """Gaussian sketches of sources in turn, in rows or as Gram matrices, with noise ``eta``."""

    def charged(self, given: dict[str, Any]) -> tuple[PrivacyEvent, ...]:
        """Return the events of ``count`` sketches of k rows; for the sharp curve, one per source.

        The exact account holds for the rows of one fast sketch (docs/proofs/fast_account.md).
        """
        curve, gamma, k, count = (given[name] for name in ("curve", "gamma", "k", "count"))
        turns = given["sources"] if curve == "fast_mix_sharp" else 1
        shares = [len(range(turn, count, turns)) for turn in range(min(turns, count))]
        return tuple(SketchEvent(curve, gamma, k * share) for share in shares)

    def draw(
        self, noise: Noise, rows: tuple[Source, ...], public: Public, given: dict[str, Any]
    ) -> tuple[Any, ...]:
        k, eta, gram = given["k"], given["eta"], given["form"] == "gram"
        roots = [None if s.blocks else sampling.covariance_root(s.gram_hat, eta) for s in rows]

        def drawn(source: Source, root: Any) -> Any:
            if source.blocks is not None:
                formed = sampling.literal_rows(source.blocks(), k, eta, noise.rng)
                return PrivateGram((formed,)) if gram else formed
            draw: Any = sampling.gaussian_gram if gram else sampling.gaussian_rows
            return draw(root, k, noise.rng)

        turns = zip(range(given["count"]), cycle(zip(rows, roots, strict=True)), strict=False)
        return tuple(drawn(*turn) for _, turn in turns)

    def density(
        self, value: Any, rows: tuple[Source, ...], public: Public, given: dict[str, Any]
    ) -> float:
        """Return the log-density of Gram matrices of rows N(0, Z'Z + eta^2 I), added up."""
        total = 0.0
        for sketch, source in zip(value, cycle(rows), strict=False):
            gram = sketch.matrix() if isinstance(sketch, PrivateGram) else sketch.T @ sketch
            values, vectors = np.linalg.eigh(source.gram_hat)
            variances = np.maximum(values, 0.0) + given["eta"] ** 2 + _TINY
            energies = np.einsum("ji,jk,ki->i", vectors, gram, vectors)
            total -= 0.5 * float(np.sum(given["k"] * np.log(variances) + energies / variances))
        return total


#: Gaussian sketches :math:`S_{G,t} Z_t + \\eta \\xi_t` of k rows each at a level ``gamma``.
SKETCHES = _Sketches(
    name="sketches",
    statement="random combinations of the rows, with noise",
    proof="Proposition 2; Theorem 1; docs/proofs/exact_sampling.md",
    given=dict.fromkeys(("k", "gamma", "eta", "count", "form", "curve", "sources"), anything),
)


@dataclass(frozen=True)
class MixRelease:
    """Sketches with the bounds before them; every field is private."""

    sketches: tuple[Any, ...]  #: Arrays of k x d rows, or the `PrivateGram` of such rows.
    eta: float
    m_tilde: tuple[float, ...]
    lambda_tilde: tuple[float, ...]
    level: float  #: The gamma that the bounds reach without noise in every sketch.
    event: PrivacyEvent  #: That of all releases.

    @property
    def sketch(self) -> Any:
        """The first sketch."""
        return self.sketches[0]


def mix(
    spectrum: Spectrum,
    *,
    k: int,
    gamma: float,
    count: int | None = None,
    form: str = "rows",
    rng: RandomNoise = None,
) -> MixRelease:
    r"""Release Gaussian sketches :math:`S_{G,t} Z_t + \eta \xi_t` at a level gamma.

    Parameters
    ----------
    spectrum : Spectrum
        Released bounds on the :math:`Z_t`: the data themselves, or fast sketches of them.
    k : int
        Rows of each Gaussian sketch.
    gamma : float
        Level that :math:`(\lambda_{\min} + \eta^2)/C^2` must reach in every sketch: public, or
        chosen from the released bounds. Above 1, and above 5/4 for the paper's curve.
    count : int, optional
        Number of sketches; the :math:`Z_t` are used in turn. By default one of each.
    form : {"rows", "gram"}
        Give out k x d sketches, or their Gram matrices only.
    rng : None, int, RandomState, Generator or Noise
        ``None`` draws cryptographic noise; a seed voids the guarantee.

    Returns
    -------
    MixRelease
        Sketches, ``eta``, the bounds, and the event of all releases.

    Notes
    -----
    Paper: Proposition 2; Algorithm 1, lines 4-5; Algorithm 2, line 5.
    Deviation: several sketches of one :math:`Z` are beyond the paper
    (docs/proofs/rare_events.md, Variants). Sketches are drawn from an equal distribution, or as
    written where the spectrum was made for that (docs/proofs/exact_sampling.md).
    Sensitive inputs: spectrum.
    """
    if not isinstance(spectrum, Spectrum):
        raise type_error("spectrum", "be a Spectrum", spectrum)
    k = check_integer("k", k, at_least=1)
    least = 5.0 / 4.0 if spectrum.curve == "fast_mix" else 1.0
    gamma = check_real("gamma", gamma, above=least)
    count = check_integer("count", len(spectrum.sources) if count is None else count, at_least=1)
    check_choice("form", form, ("rows", "gram"))
    noise, eta = as_noise(rng), spectrum.eta(gamma)
    given = {"curve": spectrum.curve, "sources": len(spectrum.sources), "count": count}
    given |= {"k": k, "gamma": gamma, "eta": eta, "form": form}
    sketches = noise.release(SKETCHES, spectrum.sources, **given)
    event = ComposedEvent([spectrum.event, ComposedEvent(SKETCHES.charged(given))])
    return MixRelease(sketches, eta, spectrum.m_tilde, spectrum.lambda_tilde, spectrum.level, event)


def _check_sizes(form: str, **sizes: int) -> None:
    """Refuse sizes under the names that the caller knows, before anything is drawn."""
    check_choice("form", form, ("rows", "gram"))
    for name, value in sizes.items():
        check_integer(name, value, at_least=1)


def gauss_mix(
    X: Rows | npt.ArrayLike,
    *,
    k: int,
    gamma: float,
    tau: float,
    omega: float,
    n_steps: int = 1,
    c_x: float = 1.0,
    form: str = "rows",
    literal: bool = False,
    rng: RandomNoise = None,
) -> MixRelease:
    r"""Release ``n_steps`` Gaussian sketches :math:`S_t X + \eta \xi_t` of k rows each.

    They have one private eigenvalue and one :math:`\eta`, by which
    :math:`(\lambda_{\min}(X^\top X) + \eta^2)/C^2` reaches gamma, above 1. Parameters are those of
    `gauss_bounds` and `mix`; a ``literal`` sketch is formed as written instead of drawn from an
    equal distribution.

    Paper: Proposition 2, with the private eigenvalue of Lev et al. (2025).
    Sensitive inputs: X.
    """
    _check_sizes(form, k=k, n_steps=n_steps)
    check_real("gamma", gamma, above=1.0)
    noise = as_noise(rng)
    spectrum = gauss_bounds(X, tau=tau, omega=omega, c_x=c_x, literal=literal, rng=noise)
    return mix(spectrum, k=k, gamma=gamma, count=n_steps, form=form, rng=noise)


def fast_mix(
    X: Rows | npt.ArrayLike,
    *,
    k1: int,
    gamma: float,
    tau: float,
    omega: float,
    sketch: Sketch | SketchDraw,
    n_steps: int = 1,
    c_x: float = 1.0,
    law: str = "laplace",
    form: str = "rows",
    literal: bool = False,
    rng: RandomNoise = None,
) -> MixRelease:
    r"""Release :math:`S_{G,t} S_{f,t} X + \eta \xi_t` for ``n_steps`` steps with one :math:`\eta`.

    Parameters are those of `fast_bounds` and `mix`, with ``k1`` rows in each Gaussian sketch and a
    ``gamma`` above 5/4. Each step draws its own fast sketch from a distribution; the level is
    reached in every step. The sketched data of Algorithm 3 are not private and are never given out
    without their Gaussian sketch and noise.

    Paper: Algorithm 1, with the scaling by C_X of Algorithm 3, for one step; Algorithm 3 followed
    by line 5 of Algorithm 2 for several.
    Deviation: sketches are brought to unit columns first (docs/corrections.md).
    Sensitive inputs: X.
    """
    _check_sizes(form, k1=k1, n_steps=n_steps)
    check_real("gamma", gamma, above=5.0 / 4.0)
    noise = as_noise(rng)
    spectrum = fast_bounds(
        X,
        tau=tau,
        omega=omega,
        sketch=sketch,
        count=n_steps,
        c_x=c_x,
        law=law,
        literal=literal,
        rng=noise,
        sketch_rng=noise.rng if rng is not None and rng is not noise else None,
    )
    return mix(spectrum, k=k1, gamma=gamma, form=form, rng=noise)
