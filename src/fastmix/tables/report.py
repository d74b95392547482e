"""The report of a fit: one page that stands alone, from public and released values only."""

import math
from collections.abc import Sequence
from dataclasses import fields
from typing import Any

from fastmix.accounting import PrivacySpent
from fastmix.certificate.explain import explain
from fastmix.estimators import PrivateModel
from fastmix.methods import METHODS
from fastmix.show import html, summarise
from fastmix.show.html import escape, number, table
from fastmix.show.plot import privacy_curve
from fastmix.show.svg import curve_chart, interval_chart
from fastmix.tables.features import Feature, Number, Term
from fastmix.tables.schema import PublicBounds

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


def fit_report(model: PrivateModel, bounds: PublicBounds, seconds: float) -> str:
    """Return the report of a fit of a table as an HTML page."""
    certificate, target = model.privacy_, bounds.target.name
    spent, facts = certificate.spent, certificate.data
    intercept = bool(model.fit_intercept)
    found = html.effects(model, bounds.columns(intercept))
    ranges = [_range(feature) for feature in bounds.features for _ in feature.columns(intercept)]
    guarantee, *said = explain(certificate)
    method = METHODS[certificate.parameters["method_"]]
    given = {"method", "method_", *(f.name for f in (*fields(PrivateModel), *fields(method)))}
    plan = {k: v for k, v in certificate.parameters.items() if k not in given}
    body = [
        html.badge(certificate.private),
        f"<h1>Private regression of {escape(target)}</h1>",
        f"<p>{escape(guarantee)}</p>",
        html.definition_list(
            [
                *_score(model),
                ("epsilon", f"{spent.epsilon:.6g}"),
                ("delta", f"{spent.delta:.3g}"),
                *_size(facts, hidden=not certificate.parameters.get("public_rows", True)),
                ("columns", f"{len(ranges):,}"),
                ("method", getattr(model, "method_", method.name)),
                ("duration", minutes_in_words(seconds)),
            ]
        ),
        "<h2>Coefficients</h2>",
        *_coefficients(target, found, ranges),
        "<h2>Regression table</h2>",
        summarise(found, title="", facts=[]).html_table(),
        "<h2>Noise against signal</h2>",
        *_noise(target, found[: len(ranges)], getattr(model, "residual_std_", None)),
        "<h2>Privacy spent</h2>",
        *_privacy(spent),
        "<h2>What was clipped</h2>",
        "<p>Values outside these public bounds were moved to the nearer one. The number of clipped "
        "values is not reported, because it is not private.</p>",
        _clipping(bounds, intercept, facts.get("residuals_clipped_at")),
        "<h2>What the guarantee says</h2>",
        html.paragraphs(said),
        "<h2>Plan</h2>",
        table(["setting", "value"], plan_settings(plan)),
        "<h2>Certificate</h2>",
        "<p>Check it with <code>fastmix explain certificate.json --verify</code>.</p>",
        "<details><summary>Show</summary><pre>",
        *map(escape, certificate.to_json().split("\n")),
        "</pre></details>",
        '<p class="soft">Made by fastmix from public and released values. The report rounds the '
        "fitting time up to minutes, because exact times can leak information.</p>",
    ]
    return html.page(f"Private regression of {target}", "\n".join(body))


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
    """Return the private R^2 of the training rows, if the fit released it."""
    scores = getattr(model, "scores_", None)
    if scores is None:
        return []
    low, high = scores.interval("r2")
    return [("private R² (training rows)", f"{scores['r2']:.3f} ({low:.3f} to {high:.3f})")]


def _coefficients(
    target: str, found: Sequence[html.Interval], ranges: Sequence[tuple[str, float]]
) -> list[str]:
    errors = found[0].std is not None
    rows = []
    for e, (words, _) in zip(found, (*ranges, ("", 1.0)), strict=False):
        row = [e.name, number(e.value)]
        if e.std is not None:
            low, high = number(e.value - 1.96 * e.std), number(e.value + 1.96 * e.std)
            row += [number(e.std, 3), f"{low} to {high}"]
        rows.append([*row, words])
    header = ["column", "coefficient", *(["std. error", "95% interval"] if errors else [])]
    chart = interval_chart(
        [e.times(width) for e, (_, width) in zip(found, ranges[:40], strict=False)],
        axis=f"change in {target} across the public range of the feature",
    )
    note = (
        "Bars are 95% intervals computed from released values: privacy noise (the thick part) and "
        "the sampling of records. Bias from clipping is not in them."
        if errors
        else "This fit released nothing that standard errors could be computed from."
    )
    return [
        f"<figure>{chart}</figure>",
        f'<p class="soft">{note}</p>',
        table([*header, "public range"], rows),
    ]


def _noise(target: str, found: Sequence[html.Interval], residual_std: float | None) -> list[str]:
    if residual_std is None:
        return ["<p>Not known for this fit: it was made without intervals.</p>"]
    rows = []
    for e in found:
        noise, std = e.noise or 0.0, e.std or 0.0
        share = f"{100.0 * (noise / std) ** 2:.0f}%" if std > 0.0 and math.isfinite(std) else ""
        ratio = f"{abs(e.value) / std:.1f}" if std > 0.0 else ""
        rows.append([e.name, ratio, share, number(noise, 3)])
    header = ["column", "signal / error", "of the error, privacy noise", "noise std. error"]
    return [
        f"<p>The errors of {escape(target)} around the fit have a standard deviation of "
        f"about {number(residual_std, 3)}, by a private estimate.</p>",
        table(header, rows),
        '<p class="soft">A coefficient whose signal is below about 2 errors cannot be told from '
        "zero. More rows help in proportion to n while privacy noise dominates.</p>",
    ]


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
    rows = [[bounds.target.name, _range(bounds.target)[0], "target"]]
    for feature in bounds.features:
        rows += [[name, _range(feature)[0], "feature"] for name in feature.columns(intercept)]
    if clip is not None:
        rows.append(["residuals", f"{-clip:g} to {clip:g}", "every step"])
    return table(["column", "public bound", "what"], rows)


def _range(feature: Feature) -> tuple[str, float]:
    """Return the public range of a feature in words, and its width."""
    if isinstance(feature, Number):
        return feature.words, feature.upper - feature.lower
    if isinstance(feature, Term):
        return feature.words, feature.range[1] - feature.range[0]
    return "0 or 1", 1.0


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
