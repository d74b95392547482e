"""How a fitted estimator looks in a notebook."""

from typing import Any

from fastmix.certificate.explain import headline
from fastmix.show import fit_card


class NotebookCard:
    """A card with coefficients and guarantee once fitted; scikit-learn's diagram before."""

    def _repr_html_inner(self) -> str:
        if not hasattr(self, "privacy_"):
            return str(super()._repr_html_inner())  # type: ignore[misc]
        return self._card()

    def _repr_mimebundle_(self, **options: Any) -> dict[str, str]:
        bundle: dict[str, str] = super()._repr_mimebundle_(**options)  # type: ignore[misc]
        if hasattr(self, "privacy_") and "text/html" in bundle:
            bundle["text/html"] = self._card()
        return bundle

    def _card(self) -> str:
        fit: Any = self
        names = getattr(fit, "feature_names_in_", [f"x{j}" for j in range(len(fit.coef_))])
        stds = getattr(fit, "coef_std_", [None] * len(fit.coef_))
        rows = [
            (str(name), float(value), None if std is None else float(std))
            for name, value, std in zip(names, fit.coef_, stds, strict=True)
        ]
        if fit.fit_intercept:
            rows.append(("intercept", float(fit.intercept_), getattr(fit, "intercept_std_", None)))
        name = " ".join(repr(fit).split())
        return fit_card(name, headline(fit.privacy_), fit.privacy_.private, rows)
