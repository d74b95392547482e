"""The minimiser of a perturbed objective."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from fastmix._types import FloatArray
from fastmix._validation import check_real, value_error
from fastmix.accounting import GaussianEvent, ObjectiveEvent, PrivacyEvent
from fastmix.data import Rows, TransformedRows
from fastmix.releases.distance import Frame, Objective, least_tolerance
from fastmix.releases.minimise import minimise
from fastmix.releases.noise import Noise
from fastmix.releases.release import Public, Release

#: Noise on the minimiser, in units of what the noise of the objective does at least to it.
_OUTPUT_NOISE = 0.1
#: Standard deviations, beside 4 mu, by which b is longer than their root mean square so rarely
#: that no delta shows it, even times exp(epsilon).
_LONG = 80.0
#: The longest centre and transformation: their squares, times any number of rows, are finite.
_LARGEST = 1e30


@dataclass(frozen=True, eq=False, kw_only=True)
class _Minimiser(Release):
    r"""The minimiser of a perturbed objective, with noise that hides that it is inexact.

    The objective is :math:`\sum_i f(y_i - x_i^\top\theta) + \frac\lambda2 \|\theta - c\|^2 +
    b^\top\theta`. It takes rows with targets, of norm at most 1, and is given

    - ``loss``: a convex loss f, calibrated for this ridge and ``eps_c``;
    - ``ridge``: the ridge :math:`\lambda`;
    - ``mu``, ``eps_c``: the noise b has scale L/mu; the curvature of f is within what ``eps_c``
      allows;
    - ``mu_output``: the ratio of sensitivity to noise of the computed minimiser;
    - ``center``, optional: where the ridge shrinks to; zero by default;
    - ``transform``, optional: an invertible matrix T. The objective is that of :math:`\phi` with
      :math:`\theta = c + T\phi`: noise and ridge belong to :math:`\phi`, and the loss of a row is
      that for the length of :math:`T^\top x`, which needs no bound;
    - ``least``: the length that every transformed row counts with at least;
    - ``sketch_rng``, optional: a public generator of a fast sketch, which then preconditions the
      solver; by default the Gram matrix does;
    - ``rows_per_person``: rows that a person has at most, with weights that add up to at most 1;
      for more than one the loss must obey the linear bound on its curvature.
    """

    optional: Mapping[str, Any] = field(
        default_factory=lambda: {
            "center": None,
            "transform": None,
            "least": 1.0,
            "sketch_rng": None,
            "rows_per_person": 1,
        }
    )

    def events(
        self,
        mu: float,
        eps_c: float,
        mu_output: float,
        *,
        one_sided: bool = False,
        rows_per_person: int = 1,
    ) -> list[PrivacyEvent]:
        """Return the events of a release: the minimiser, and the noise on it."""
        objective = ObjectiveEvent(mu, eps_c, one_sided, rows_per_person)
        return [objective, GaussianEvent(1.0 / mu_output)]

    def charged(self, given: dict[str, Any]) -> tuple[PrivacyEvent, ...]:
        levels = given["mu"], given["eps_c"], given["mu_output"]
        form = {"one_sided": given["loss"].one_sided, "rows_per_person": given["rows_per_person"]}
        return tuple(self.events(*levels, **form))

    def checked(self, public: Public, given: dict[str, Any]) -> dict[str, Any]:
        given = {**self.optional, **given}
        loss, eps_c, persons = given["loss"], given["eps_c"], given["rows_per_person"]
        given["ridge"] = ridge = check_real("ridge", given["ridge"], above=0.0)
        if not loss.is_calibrated(ridge, eps_c):
            raise value_error(
                "loss", f"be calibrated for ridge={ridge:g} and eps_c={eps_c:g}", loss
            )
        if persons > 1 and not getattr(loss, "linear", False):
            raise value_error("loss", "obey the bound for persons of several rows", loss)
        if persons > 1 and not public.weighted:
            raise value_error("rows", "have weights for persons of several rows", persons)
        if not public.bound <= 1.0:
            raise value_error("rows", "have norms of at most 1", public.bound)
        if given["center"] is None:
            given["center"] = np.zeros(public.d)
        if given["transform"] is not None:
            given["least"] = check_real("least", given["least"], above=0.0)
        for name, length in _lengths(given).items():
            if not length <= _LARGEST:
                raise value_error(name, f"have lengths of at most {_LARGEST:g}", given[name])
        return given

    def draw(self, noise: Noise, rows: Rows, public: Public, given: dict[str, Any]) -> FloatArray:
        loss, ridge, mu, center = given["loss"], given["ridge"], given["mu"], given["center"]
        seen, frame = _seen(rows, given), None
        if given["transform"] is not None:
            stretch = float(np.linalg.norm(given["transform"]))
            squeeze = float(np.linalg.norm(np.linalg.inv(given["transform"])))
            frame = Frame(stretch, squeeze, float(np.linalg.norm(center)), given["least"])
        b, inexact = noise._perturbation(rows.d, loss.lipschitz / mu)
        start = np.zeros(rows.d) if frame else center
        objective = Objective(loss, ridge, start, b, frame, rows.persons is not None)
        # From here to the noise on the minimiser only public quantities decide on the tolerance.
        spread = loss.lipschitz / mu * math.sqrt(rows.d)  # of b, about its length
        longest = loss.lipschitz / mu * (math.sqrt(rows.d) + 4.0 * mu + _LONG)
        least = least_tolerance(objective, rows.most, longest) + 2.0 * inexact / ridge
        wanted = _OUTPUT_NOISE * spread / (rows.n + ridge)
        if frame:  # where every eigenvalue is about n
            wanted /= math.sqrt(rows.d)
        distance = max(least, 0.5 * given["mu_output"] * wanted)
        tolerance = distance - inexact / ridge
        sketch = given["sketch_rng"]
        found_hat = minimise(
            seen, objective, tolerance=tolerance, sketch=sketch is not None, public=sketch
        )
        return noise._gaussian(found_hat, 2.0 * distance, 1.0 / given["mu_output"])

    def density(
        self, value: FloatArray, rows: Rows, public: Public, given: dict[str, Any]
    ) -> float:
        """Return the log-density of b at the minimiser, and the determinant of the change to it.

        The noise on the minimiser is too small to matter.
        """
        loss, ridge, seen = given["loss"], given["ridge"], _seen(rows, given)
        start = np.zeros(public.d) if isinstance(seen, TransformedRows) else given["center"]
        b = seen.slopes(value, loss)[0].sum(axis=0) - ridge * (value - start)
        curved = [seen.curved(value, loss, each) for each in np.eye(public.d)]
        _, volume = np.linalg.slogdet(np.array(curved) + ridge * np.eye(public.d))
        return float(volume - 0.5 * (b @ b) * (given["mu"] / loss.lipschitz) ** 2)


def _lengths(given: dict[str, Any]) -> dict[str, float]:
    """Return how long the centre is, and the transformation or its inverse, whichever is longer."""
    lengths = {"center": float(np.linalg.norm(given["center"]))}
    if given["transform"] is not None:
        try:
            inverse = float(np.linalg.norm(np.linalg.inv(given["transform"])))
        except np.linalg.LinAlgError:
            inverse = math.inf
        lengths["transform"] = max(float(np.linalg.norm(given["transform"])), inverse)
        lengths["least"] = 1.0 / given["least"]
    return lengths


def _seen(rows: Rows, given: dict[str, Any]) -> Rows | TransformedRows:
    """Return the rows in the coordinates of the objective."""
    if given["transform"] is None:
        return rows
    return TransformedRows(rows, given["transform"], given["center"], given["least"])


def _coefficients(
    value: FloatArray, public: Public, *, transform: FloatArray | None, center: Any, **given: Any
) -> FloatArray:
    """Return released coordinates as coefficients of the rows as they are."""
    return value.copy() if transform is None else center + transform @ value


#: The minimiser of a perturbed objective: private coefficients.
MINIMISER = _Minimiser(
    name="minimiser",
    statement="the coefficients that minimise the loss, a ridge and secret noise",
    proof="docs/proofs/objective.md, Theorems 1 to 5; docs/proofs/people.md",
    finish=_coefficients,
)
