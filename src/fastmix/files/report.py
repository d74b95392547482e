"""The report of a fit: one page that stands alone, from public and released values only."""

import math
from dataclasses import fields, replace
from typing import Any

from fastmix._text import label_text
from fastmix.accounting import PrivacySpent
from fastmix.certificate.explain import explain
from fastmix.engine.forecast import weak_guarantee
from fastmix.estimators import EngineModel, PrivateModel
from fastmix.estimators.contrasts import public_range, table_effects
from fastmix.estimators.saving import public_schema
from fastmix.estimators.summaries import residual_spread
from fastmix.paper import METHODS
from fastmix.schema.bounds import PublicBounds
from fastmix.schema.features import OTHER, Category, Feature, Term
from fastmix.show import RegressionSummary, html
from fastmix.show.effects import effects_part
from fastmix.show.html import escape, number, table
from fastmix.show.notes import NOTHING_IDENTIFIED, level_notes
from fastmix.show.plot import privacy_curve
from fastmix.show.svg import calibration_chart, curve_chart

#: What the settings of a plan are called for people; others keep their names.
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
    "sigma": "noise",
    "eigenvalue_shift": "safety margin of the smallest eigenvalue",
    "ridge_level": "largest ridge",
    "score_sigma": "noise of the score",
    "method_": "method",
}


def model_title(model: PrivateModel) -> str:
    """Return the title of a fit."""
    kind = "logistic regression" if _binary(model) else "regression"
    return f"Private {kind} of {public_schema(model).target.name}"


def fit_report(model: PrivateModel, document: str | None = None) -> str:
    """Return the report of a fit of a table as an HTML page.

    ``document`` is the certificate as it was read from a file, if it was: its numbers are shown in
    full, and another machine may round them differently.
    """
    certificate, bounds = model.privacy_, model.schema_
    target = bounds.target.name
    document = certificate.to_json() if document is None else document
    spent, facts = certificate.spent, certificate.data
    intercept = bool(model.fit_intercept)
    effects, made = table_effects(model), model_summary(model)
    levels = level_notes(effects.references, effects.pooled, counted=effects.counted)
    rest = [note for note in made.notes if note not in (*levels, NOTHING_IDENTIFIED)]
    several = len(model.classes_) if _several(model) else 1
    columns = len(bounds.columns(intercept)) * several
    outside = [out for each in bounds.features for out in _outside(each, intercept)] * several
    guarantee, *said = explain(certificate)
    method = METHODS[certificate.parameters["method_"]]
    given = {
        "max_rows_per_group",
        "max_weight",
        "method_",
        *(f.name for f in (*fields(EngineModel), *fields(method))),
    }
    plan = {k: v for k, v in certificate.parameters.items() if k not in given}
    title = f"Private {'classification' if _binary(model) else 'regression'} of {target}"
    body = [
        html.badge(certificate.private),
        f"<h1>{escape(title)}</h1>",
        f'<p class="lead">{escape(lead(model, bounds))}</p>',
        html.definition_list(
            [
                *_score(model),
                ("epsilon", f"{spent.epsilon:.6g}"),
                ("delta", f"{spent.delta:.3g}"),
                *_size(facts, hidden=not certificate.parameters.get("public_rows", True)),
                ("columns", f"{len(bounds.features):,}"),
                ("coefficients", f"{columns:,}{_and_intercepts(several) if intercept else ''}"),
                ("method", made.facts[0][1]),
            ]
        ),
        f"<p>{escape(guarantee)}</p>",
        "<h2>What was learned</h2>",
        effects_part(
            effects.found[: len(effects.widths)],
            effects.widths,
            axis=_axis(model, bounds.target.name),
            unit="columns" if columns == len(bounds.features) else "effects",
            outside=None if effects.counted else outside,
        ),
        html.paragraphs(levels),
        "<h2>Regression table</h2>",
        _folded_if_long(
            "coefficients",
            len(effects.found),
            replace(made, notes=tuple(rest)).html_table(None),
        ),
        *_calibration(model),
        "<h2>Privacy spent</h2>",
        *_privacy(spent),
        "<h2>What the guarantee says</h2>",
        html.paragraphs(said),
        "<h2>What was clipped</h2>",
        "<p>Values outside these public bounds were moved to the nearer one. The number of clipped "
        "values is not reported, because it is not private.</p>",
        _clipping(bounds, intercept, facts.get("residuals_clipped_at")),
        "<h2>Plan</h2>",
        html.folded("Show the settings", table(["setting", "value"], plan_settings(plan))),
        "<h2>Certificate</h2>",
        "<p>Check it with <code>fastmix explain certificate.json --verify</code>.</p>",
        "<details><summary>Show the certificate</summary><pre>",
        *map(escape, document.split("\n")),
        "</pre></details>",
        '<p class="soft">Made by fastmix from public and released values.</p>',
    ]
    return html.page(title, "\n".join(body))


def model_summary(model: PrivateModel, level: float = 0.95) -> RegressionSummary:
    """Return the summary of a fit of a table under its title."""
    return replace(model.summary(level), title=model_title(model))


def lead(model: PrivateModel, bounds: PublicBounds) -> str:
    """Return in one sentence what was learned, how well, and what is guaranteed."""
    certificate, target = model.privacy_, bounds.target.name
    facts, columns = certificate.data, len(bounds.features)
    what = f"the {100 * model.quantile:g}% quantile of {target}" if _quantile(model) else target
    public = certificate.parameters.get("public_rows", True)
    unit = "rows" if public or "n_persons" not in facts else "persons"
    learned = (
        f"From {'' if public else 'about '}{facts['n_samples']:,} {unit} this model learned to "
        f"predict {what} from {columns:,} {'column' if columns == 1 else 'columns'}"
    )
    scores, spread = getattr(model, "scores_", None), residual_spread(model)
    known = {} if scores is None else scores.scores
    if "r2" in known:
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
        quality = "how well it predicts was not released"
    who = "person" if "n_persons" in facts else "row"
    n = facts.get("n_persons", facts["n_samples"])
    weak = weak_guarantee(certificate.epsilon, certificate.delta, n)
    promise = (
        "it is NOT PRIVATE, so do not publish it"
        if not certificate.private
        else f"what it reveals about any one {who} is limited only weakly"
        if weak
        else f"it reveals almost nothing about any one {who}"
    )
    return f"{learned}: {quality}, and {promise}."


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


def _size(facts: dict[str, Any], *, hidden: bool) -> list[tuple[str, str]]:
    """Return how many rows there are, whom the fit protects, and how rows count."""
    said, noisy = [], " (released with noise)" if hidden else ""
    if "n_persons" not in facts or not hidden:
        said.append(("rows", f"{facts['n_samples']:,}{noisy}"))
    if "n_persons" in facts:
        said.append(("persons", f"{facts['n_persons']:,}{noisy}"))
        said.append(("rows of a person that count, at most", f"{facts['max_rows_per_person']:,}"))
    if "max_weight" in facts:
        said.append(("survey or sample weights, clipped at", f"{facts['max_weight']:g}"))
    return said


def _score(model: PrivateModel) -> list[tuple[str, str]]:
    """Return the private scores of the training rows, if the fit released some."""
    scores = getattr(model, "scores_", None)
    if scores is None:
        return []
    words = [(name.replace("R-squared", "R²"), value) for name, value in scores.in_words()]
    return [(f"private {name} (training rows)", value) for name, value in words]


def _calibration(model: PrivateModel) -> list[str]:
    """Return predicted beside observed probabilities, if the fit released counts of them."""
    scores = getattr(model, "scores_", None)
    if scores is None or not scores.calibration:
        return []
    chart = calibration_chart([each[:3] for each in scores.calibration])
    return [
        "<h2>Calibration</h2>",
        f'<figure style="max-width: 26rem">{chart}</figure>',
        '<p class="soft">Points show how often the second label is right among rows of about the '
        "same predicted probability, from private counts; a calibrated model has them on the "
        "dashed line. Bars are 95% intervals for the noise.</p>",
    ]


def _axis(model: PrivateModel, target: str) -> str:
    """Return what a chart of effects shows."""
    what = f"change in {target}"
    if _several(model):
        what = f"change in the log-odds of a label of {target} against the others"
    elif _binary(model):
        what = f"change in the log-odds of {target} = {label_text(model.classes_[-1])}"
    elif _quantile(model):
        what = f"change in the {100 * model.quantile:g}% quantile of {target}"
    return f"{what} across the public range of the column"


def _privacy(spent: PrivacySpent) -> list[str]:
    points = privacy_curve(spent)
    if not points:
        return ["<p>The method adds no noise: nothing is guaranteed.</p>"]
    chart = curve_chart(
        points,
        mark=(spent.delta, spent.epsilon),
        x_axis="delta, the probability with which the guarantee may fail",
        y_axis="epsilon",
    )
    rows = [[p.name, f"{p.epsilon:.4g}", f"{p.delta:.3g}"] for p in spent.parts]
    return [
        f"<figure>{chart}</figure>",
        '<p class="soft">Every point of the curve holds at once: the same releases, read at '
        "another delta.</p>",
        table(["part", "epsilon", "delta"], rows),
    ]


def _clipping(bounds: PublicBounds, intercept: bool, clip: float | None) -> str:
    rows = [[bounds.target.name, public_range(bounds.target)[0], "target"]]
    for feature in bounds.features:
        rows += [[name, public_range(feature)[0], "feature"] for name in feature.columns(intercept)]
    if clip is not None:
        rows.append(["residuals", f"{-clip:g} to {clip:g}", "every step"])
    whole = table(["column", "public bound", "what"], rows, None)
    return _folded_if_long("bounds", len(rows), whole)


def _folded_if_long(name: str, rows: int, body: str) -> str:
    """Return a table, which is folded away if it is a long one."""
    return body if rows <= html.LONGEST else html.folded(f"Show all {rows:,} {name}", body)


def _outside(feature: Feature, intercept: bool) -> list[bool]:
    """Return which columns of a feature are for values that its public list does not name."""
    category = feature.category if isinstance(feature, Term) else feature
    unlisted = isinstance(category, Category) and OTHER not in category.categories
    count = len(feature.columns(intercept))
    return [unlisted and j == count - 1 for j in range(count)]


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
