"""The part of the estimators that shows a fit: its coefficients, and a card for notebooks."""

import math
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from fastmix._validation import check_probability
from fastmix.accounting import GaussianEvent
from fastmix.accounting.events import ObjectiveEvent
from fastmix.certificate import PrivacyCertificate, headline
from fastmix.schema.features import Category
from fastmix.show import RegressionSummary, fit_card, summarise
from fastmix.show.html import effects, number


def summary_facts(
    method: str,
    spent: tuple[float, float],
    n: int,
    *,
    public_rows: bool,
    max_rows: int | None,
    n_persons: int | None = None,
    model: Any = None,
) -> list[tuple[str, str]]:
    """Return what stands above a table of coefficients.

    A hidden number of rows is one released with noise, that of persons where they are protected.
    """
    counted = "No. observations" if public_rows or max_rows is None else "No. persons"
    facts = [
        ("Method", method),
        (counted, f"{n:,}" if public_rows else f"about {n:,}"),
        ("Epsilon", f"{spent[0]:.4g}"),
        ("Delta", f"{spent[1]:.3g}"),
    ]
    if max_rows is not None:
        many = f"{n_persons:,} " if public_rows and n_persons is not None else ""
        rows = "1 row" if max_rows == 1 else f"{max_rows:,} rows"
        facts.append(("Protects", f"{many}persons with up to {rows}"))
    if (spread := residual_spread(model)) is not None:
        facts.append(("Residual std", number(spread)))
    if (scores := getattr(model, "scores_", None)) is not None:
        facts += [(f"{name} (private)", words) for name, words in scores.in_words()]
    return facts


def residual_spread(model: Any) -> float | None:
    """Return the spread of the errors of a fit, unless privacy noise may hide it."""
    return model.residual_std_ if getattr(model, "residual_std_identified_", False) else None


def interval_share(certificate: PrivacyCertificate) -> float | None:
    """Return the share of the budget that intervals took, None where it is not plain."""
    asked, events = certificate.parameters, [*certificate.spent.events]
    names = ("curvature_sigma", "square_sigma", "residual_sigma")
    noise = [asked[name] for name in names if asked.get(name) is not None]
    known = GaussianEvent, ObjectiveEvent
    if not noise or not all(isinstance(each, known) for each in events):
        return None
    squares = [each.mu_squared if isinstance(each, GaussianEvent) else 0.0 for each in events]
    total = math.fsum([*squares, asked.get("mu", 0.0) ** 2])
    return math.fsum(1.0 / each**2 for each in noise) / total


def summary_notes(private: bool, share: float | None = None) -> list[str]:
    """Return what stands below it: what standard errors count, and what they cost."""
    counted = "Standard errors count privacy noise and the sampling of records."
    if share is not None:
        counted += f" They took {share:.0%} of the privacy budget."
    return [counted] if private else ["The fit is NOT PRIVATE.", counted]


class Shown(BaseEstimator):  # type: ignore[misc]
    """Summary of a fit, and what notebooks show of it."""

    inference: bool
    privacy_: PrivacyCertificate
    #: What stands above the table, and whether it has odds ratios.
    _title: ClassVar[str] = "Private linear regression"
    _odds: ClassVar[bool] = False

    def summary(self, level: float = 0.95) -> RegressionSummary:
        """Return the coefficients in the form that statisticians know.

        Parameters
        ----------
        level : float, default=0.95
            Level of the intervals.

        Returns
        -------
        fastmix.show.RegressionSummary
            A table; print it, show it in a notebook, or take its ``to_frame()``. With
            ``inference=True`` it has standard errors, z, p-values and intervals, from released
            values only; odds ratios where coefficients are of log-odds.
        """
        check_is_fitted(self)
        check_probability("level", level)
        private = self.privacy_
        return summarise(
            **self._effects(),
            title=f"{self._title} ({type(self).__name__})",
            facts=summary_facts(
                getattr(self, "method_", private.parameters["method_"]),
                (private.epsilon, private.delta),
                private.data["n_samples"],
                public_rows=private.parameters.get("public_rows", True),
                max_rows=private.data.get("max_rows_per_person"),
                n_persons=private.data.get("n_persons"),
                model=self,
            ),
            level=level,
            notes=summary_notes(private.private, interval_share(private)) if self.inference else [],
            odds=self._odds,
            epsilon=private.epsilon,
        )

    @property
    def level_counts_(self) -> dict[str, dict[str, float]]:
        """Released numbers of rows of each level of each category."""
        counts, schema = getattr(self, "_level_counts", None), getattr(self, "schema_", None)
        if counts is None or schema is None:
            raise AttributeError("level_counts_ needs a fit with bounds that counts levels.")
        categories = [each for each in schema.features if isinstance(each, Category)]
        return {
            each.name: dict(zip(each.levels, map(float, own), strict=True))
            for each, own in zip(categories, counts, strict=True)
        }

    def _effects(self) -> dict[str, Any]:
        """Return the effects of the columns as a summary takes them."""
        from fastmix.estimators import contrasts  # which only tables need

        model: Any = self
        if hasattr(self, "schema_"):
            return contrasts.table_effects(self).given
        ends = model.bounds_X_
        widths = None if ends is None else np.ravel(ends[1]) - np.ravel(ends[0])
        rows = len(np.atleast_2d(model.coef_))
        return {"effects": effects(self), "widths": None if widths is None else [*widths] * rows}

    def _repr_html_inner(self) -> str:
        """Return a card with coefficients and guarantee; scikit-learn's diagram before a fit."""
        if not hasattr(self, "privacy_"):
            return str(super()._repr_html_inner())
        return fit_card(self, headline(self.privacy_))

    def _repr_mimebundle_(self, **options: Any) -> dict[str, str]:
        bundle: dict[str, str] = super()._repr_mimebundle_(**options)
        if "text/html" in bundle:
            bundle["text/html"] = self._repr_html_inner()
        return bundle
