"""The report of a fit: one page that stands alone, from public and released values only."""

import math
from dataclasses import fields, replace
from typing import Any

from fastmix._text import label_text
from fastmix.accounting import PrivacySpent
from fastmix.certificate import PrivacyCertificate
from fastmix.certificate.explain import explain, odds_factor
from fastmix.engine.forecast import weak_guarantee
from fastmix.engine.scores import Score
from fastmix.estimators import EngineModel, PrivateModel
from fastmix.estimators.contrasts import model_effects, public_range
from fastmix.estimators.evaluation import PrivateScores
from fastmix.estimators.saving import public_schema
from fastmix.estimators.summaries import residual_spread
from fastmix.files.doubts import doubts
from fastmix.paper import METHODS
from fastmix.schema.bounds import PublicBounds
from fastmix.schema.features import OTHER, Category, Term
from fastmix.show import RegressionSummary, html, summary_title
from fastmix.show.effect_notes import NOTHING_IDENTIFIED, level_notes
from fastmix.show.effects import effects_part
from fastmix.show.html import number, percent, render
from fastmix.show.plot import privacy_curve
from fastmix.show.svg import calibration_chart, curve_chart

#: Width of the interval of a private R^2 up to which a title shows it.
WIDEST_R2 = 0.3
#: Names of the settings of a plan in words; other settings keep their names.
_SETTINGS = {
    "fast_sketches": "fast sketches",
    "k": "rows of the sketch",
    "k1": "rows of the Gaussian sketch",
    "k2": "rows of the fast sketch",
    "family": "fast sketch",
    "levels": "options of the sketch",
    "tau": "safety margin of the bounds, in units of their noise",
    "omega": "noise of the released bounds",
    "law": "law of that noise",
    "mean_sigma": "noise of the mean",
    "residual_sigma": "noise of the counts of residuals",
    "curvature_sigma": "noise of the curvature, for intervals",
    "square_sigma": "noise of the squares of gradients, for intervals",
    "intervals_hidden": "intervals left out, because noise would hide them",
    "sigma": "noise",
    "eigenvalue_shift": "safety margin of the smallest eigenvalue",
    "ridge_level": "largest ridge",
    "score_sigma": "noise of the score",
    "method_": "method",
}


def model_title(model: PrivateModel) -> str:
    """Return the title of a fit."""
    scores: PrivateScores | None = getattr(model, "scores_", None)
    r2 = None if scores is None else scores.scores.get("r2")
    if r2 is not None and _hidden(r2):
        r2 = None  # which the table of scores shows with its interval
    family = METHODS[model.privacy_.parameters["method_"]].family
    given = {"quantile": getattr(model, "quantile", None), "r2": None if r2 is None else r2.value}
    return summary_title(family, public_schema(model).target.name, **given)


def fit_report(model: PrivateModel, document: str | None = None) -> str:
    """Return the report of a fit of a table as an HTML page.

    ``document`` is the certificate as it was read from a file, if it was: its numbers are shown in
    full, and another machine may round them differently.
    """
    certificate, bounds = model.privacy_, model.schema_
    intercept = bool(model.fit_intercept)
    effects, made = model_effects(model), model_summary(model)
    scores: PrivateScores | None = getattr(model, "scores_", None)
    levels = level_notes(effects.references, effects.pooled, counted=effects.counted)
    notes = [note for note in made.notes if note not in (*levels, NOTHING_IDENTIFIED)]
    several = len(model.classes_) if _several(model) else model._resolve().outputs
    columns = len(bounds.columns(intercept)) * several
    guarantee, *explanation = explain(certificate)
    title = f"Private {'classification' if _binary(model) else 'regression'} of "
    title += bounds.target.name
    body = render(
        "report.html",
        title=title,
        private=certificate.private,
        lead=lead(model, bounds),
        facts=[
            *_score(scores),
            ("epsilon", f"{certificate.epsilon:.6g}"),
            ("delta", f"{certificate.delta:.3g}"),
            *_size(certificate),
            ("columns", f"{len(bounds.features):,}"),
            ("coefficients", f"{columns:,}{_and_intercepts(several) if intercept else ''}"),
            ("method", made.facts[0][1]),
        ],
        doubts=doubts(model),
        guarantee=guarantee,
        effects=effects_part(
            effects.found[: len(effects.widths)],
            effects.widths,
            axis=_axis(model, bounds.target.name),
            unit="columns" if columns == len(bounds.features) else "effects",
            outside=None if effects.counted else _outside(bounds, intercept) * several,
        ),
        levels=levels,
        coefficients=len(effects.found),
        summary=replace(made, notes=tuple(notes)).html_table(None),
        calibration=_calibration(scores),
        curve=_curve(certificate.spent),
        parts=[[p.name, f"{p.epsilon:.4g}", f"{p.delta:.3g}"] for p in certificate.parts],
        explanation=explanation,
        clipped=_clipped(bounds, intercept, certificate.data.get("residuals_clipped_at")),
        plan=plan_settings(_derived(certificate)),
        document=(certificate.to_json() if document is None else document).split("\n"),
    )
    return html.page(title, body)


def model_summary(model: PrivateModel, level: float = 0.95) -> RegressionSummary:
    """Return the summary of a fit of a table under its title."""
    return replace(model.summary(level), title=model_title(model))


def lead(model: PrivateModel, bounds: PublicBounds) -> str:
    """Return a summary of model, quality and guarantee in two sentences."""
    certificate, target = model.privacy_, bounds.target.name
    facts, columns = certificate.data, len(bounds.features)
    what = f"the {_quantiles(model)} of {target}" if _quantile(model) else target
    public = certificate.parameters.get("public_rows", True)
    unit = "rows" if public or "n_persons" not in facts else "persons"
    learned = (
        f"From {'' if public else 'about '}{facts['n_samples']:,} {unit} this model learned to "
        f"predict {what} from {columns:,} {'column' if columns == 1 else 'columns'}:"
    )
    scores, spread = getattr(model, "scores_", None), residual_spread(model)
    known = {} if scores is None else scores.scores
    if "r2" in known and _hidden(known["r2"]):
        quality = "noise hides how much of the variance it explains"
    elif "r2" in known:
        quality = f"it explains about {max(0.0, known['r2'].value):.0%} of the variance"
    elif scores is not None and "accuracy" in known:
        quality = f"it is right for about {min(known['accuracy'].value, 1.0):.0%} of the rows"
        quality += f" ({scores.baseline})" if scores.baseline else ""
    elif "below" in known:
        share = min(max(0.0, known["below"].value), 1.0)
        quality = f"about {share:.0%} of them lie below its predictions"
    elif spread is not None:
        unit = f" {bounds.target.unit}" if bounds.target.unit else ""
        quality = f"its predictions are typically off by about {number(spread, 2)}{unit}"
    else:
        learned, quality = f"{learned[:-1]};", "how well it predicts was not released"
    who = "person" if "n_persons" in facts else "row"
    n = facts.get("n_persons", facts["n_samples"])
    if not certificate.private:
        return f"{learned} {quality}, and it is NOT PRIVATE, so do not publish it."
    cost = certificate.guarantee["total"]
    weak = weak_guarantee(cost["epsilon"], cost["delta"], n)
    seen = "The guarantee is weak: seeing the model" if weak else "Seeing the model"
    return (
        f"{learned} {quality}. {seen} changes the odds that any one {who} was in the data by a "
        f"factor of at most {odds_factor(cost['epsilon'])}, except with probability "
        f"{cost['delta']:.2g}."
    )


def _hidden(r2: Score) -> bool:
    """Whether the interval of a private R^2 is too wide for a number in a sentence."""
    low, high = r2.interval()
    return high - low > WIDEST_R2


def _binary(model: PrivateModel) -> bool:
    """Whether a model predicts classes."""
    return hasattr(model, "classes_")


def _several(model: PrivateModel) -> bool:
    """Whether a model predicts more than two classes, each against the rest."""
    return _binary(model) and len(model.classes_) > 2


def _and_intercepts(several: int) -> str:
    return " and the intercept" if several == 1 else f" and {several:,} intercepts"


def _quantile(model: PrivateModel) -> bool:
    """Whether a model predicts a quantile."""
    return hasattr(model, "quantile")


def _quantiles(model: Any) -> str:
    """Return which quantiles a model predicts."""
    count = model._resolve().outputs
    return f"{percent(model.quantile)} quantile{'' if count == 1 else 's'}"


def _size(certificate: PrivacyCertificate) -> list[tuple[str, str]]:
    """Return how many rows there are, whom the fit protects, and how rows count."""
    facts, hidden = certificate.data, not certificate.parameters.get("public_rows", True)
    said, noisy = [], " (released with noise)" if hidden else ""
    if "n_persons" not in facts or not hidden:
        said.append(("rows", f"{facts['n_samples']:,}{noisy}"))
    if "n_persons" in facts:
        said.append(("persons", f"{facts['n_persons']:,}{noisy}"))
        said.append(("rows of a person that count, at most", f"{facts['max_rows_per_person']:,}"))
    if "max_weight" in facts:
        said.append(("survey or sample weights, clipped at", f"{facts['max_weight']:g}"))
    return said


def _score(scores: PrivateScores | None) -> list[tuple[str, str]]:
    """Return the private scores of the training rows, if the fit released some."""
    words = [] if scores is None else scores.in_words()
    words = [(name.replace("R-squared", "R²"), value) for name, value in words]
    return [
        (f"private {name if name.isupper() else name[0].lower() + name[1:]} (training rows)", value)
        for name, value in words
    ]


def _calibration(scores: PrivateScores | None) -> html.Safe:
    """Return predicted beside observed probabilities, if the fit released counts of them."""
    bins = () if scores is None else scores.calibration
    return html.Safe(calibration_chart([each[:3] for each in bins]) if bins else "")


def _axis(model: PrivateModel, target: str) -> str:
    """Return the label of the axis of a chart of effects."""
    what = f"change in {target}"
    if _several(model):
        what = f"change in the log-odds of a label of {target} against the others"
    elif _binary(model):
        what = f"change in the log-odds of {target} = {label_text(model.classes_[-1])}"
    elif _quantile(model):
        what = f"change in the {_quantiles(model)} of {target}"
    return f"{what} across the public range of the column"


def _curve(spent: PrivacySpent) -> html.Safe:
    """Return epsilon against delta; nothing for a method that adds no noise."""
    points = privacy_curve(spent)
    if not points:
        return html.Safe("")
    chart = curve_chart(
        points,
        mark=(spent.delta, spent.epsilon),
        x_axis="delta, the probability with which the guarantee may fail",
        y_axis="epsilon",
    )
    return html.Safe(chart)


def _clipped(bounds: PublicBounds, intercept: bool, clip: float | None) -> list[list[str]]:
    """Return the public bound of every column, and of residuals if they were clipped."""
    rows = [[bounds.target.name, public_range(bounds.target)[0], "target"]]
    for feature in bounds.features:
        rows += [[name, public_range(feature)[0], "feature"] for name in feature.columns(intercept)]
    if clip is not None:
        rows.append(["residuals", f"{-clip:g} to {clip:g}", "every step"])
    return rows


def _outside(bounds: PublicBounds, intercept: bool) -> list[bool]:
    """Return which columns are for values that the public list of a category does not name."""
    found: list[bool] = []
    for feature in bounds.features:
        category = feature.category if isinstance(feature, Term) else feature
        unlisted = isinstance(category, Category) and OTHER not in category.categories
        count = len(feature.columns(intercept))
        found += [unlisted and j == count - 1 for j in range(count)]
    return found


def _derived(certificate: PrivacyCertificate) -> dict[str, Any]:
    """Return the sizes and noise levels that the plan derived from the parameters."""
    method = METHODS[certificate.parameters["method_"]]
    stated = ("max_rows_per_group", "max_weight", "method_")
    given = {*stated, *(each.name for each in (*fields(EngineModel), *fields(method)))}
    return {name: value for name, value in certificate.parameters.items() if name not in given}


def minutes(seconds: float) -> int:
    """Return a duration rounded up to minutes, because exact times can leak information."""
    return max(1, math.ceil(seconds / 60.0))


def minutes_in_words(seconds: float) -> str:
    """Return a duration in words, rounded up to minutes."""
    whole = minutes(seconds)
    return "under a minute" if whole == 1 else f"under {whole} minutes"


def plan_settings(plan: dict[str, Any]) -> list[tuple[str, str]]:
    """Return the settings of a plan, given as plain JSON types, with their values in words."""
    rows = [(_SETTINGS.get(name, name), _show(value)) for name, value in plan.items()]
    return [row for row in rows if row[1]]


def _show(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, (list, tuple)):
        return ", ".join(_show(item) for item in value)
    if isinstance(value, dict):  # one of several options, known by its level
        return f"level {value['gamma']:.5g}" if "gamma" in value else ""
    return f"{value:.5g}" if isinstance(value, float) else str(value)
