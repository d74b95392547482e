"""The report of a fit: one page that stands alone, from public and released values only."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fastmix.accounting import PrivacySpent
from fastmix.show.html import badge, definition_list, escape, number, page, paragraphs, table
from fastmix.show.svg import Interval, curve_chart, interval_chart


@dataclass(frozen=True)
class Effect:
    """A coefficient: its column, public range in words, width of that range, and its errors."""

    name: str
    bounds: str
    width: float
    value: float
    std: float | None = None
    noise: float | None = None


@dataclass(frozen=True)
class FitFacts:
    """Everything that the report of a fit says; nothing else goes into it.

    ``explanation`` is the certificate in plain words, the guarantee first, ``certificate`` the same
    as JSON. Effects are in the user's units; what a fit does not have is None.
    """

    target: str
    target_bounds: tuple[float, float]
    private: bool
    explanation: Sequence[str]
    effects: Sequence[Effect]
    intercept: Effect | None
    residual_std: float | None
    residual_clip: float | None
    spent: PrivacySpent
    n: int
    method: str
    plan: dict[str, Any]
    seconds: float
    certificate: str


def fit_report(facts: FitFacts) -> str:
    """Return the report of a fit as an HTML page."""
    certificate = "\n".join(map(escape, facts.certificate.split("\n")))
    body = [
        badge(facts.private),
        f"<h1>Private regression of {escape(facts.target)}</h1>",
        f"<p>{escape(facts.explanation[0])}</p>",
        definition_list(
            [
                ("epsilon", f"{facts.spent.epsilon:.6g}"),
                ("delta", f"{facts.spent.delta:.3g}"),
                ("rows", f"{facts.n:,}"),
                ("columns", f"{len(facts.effects):,}"),
                ("method", facts.method),
                ("duration", minutes_in_words(facts.seconds)),
            ]
        ),
        "<h2>Coefficients</h2>",
        *_coefficients(facts),
        "<h2>Noise against signal</h2>",
        *_noise(facts),
        "<h2>Privacy spent</h2>",
        *_privacy(facts),
        "<h2>What was clipped</h2>",
        *_clipping(facts),
        "<h2>What the guarantee says</h2>",
        paragraphs(facts.explanation[1:]),
        "<h2>Plan</h2>",
        table(["setting", "value"], plan_settings(facts.plan)),
        "<h2>Certificate</h2>",
        "<p>Check it with <code>fastmix explain certificate.json --verify</code>.</p>",
        f"<details><summary>Show</summary><pre>{certificate}</pre></details>",
        '<p class="soft">Made by fastmix from public and released values. The report rounds the '
        "fitting time up to minutes, because exact times can leak information.</p>",
    ]
    return page(f"Private regression of {facts.target}", "\n".join(body))


def privacy_curve(spent: PrivacySpent, count: int = 13) -> list[tuple[float, float]]:
    """Return points (delta, epsilon) of the joint account, four decades around its delta."""
    if not spent.delta > 0.0:
        return []
    middle = math.log10(spent.delta)
    powers = np.linspace(middle - 4.0, min(middle + 4.0, -1.0), count)
    return [(10.0**p, spent.joint_epsilon(10.0**p)) for p in powers.tolist()]


def _coefficients(facts: FitFacts) -> list[str]:
    rows = []
    for effect in (*facts.effects, *([] if facts.intercept is None else [facts.intercept])):
        row = [effect.name, number(effect.value)]
        if effect.std is not None:
            low, high = effect.value - 1.96 * effect.std, effect.value + 1.96 * effect.std
            row += [number(effect.std, 3), f"{number(low)} to {number(high)}"]
        rows.append([*row, effect.bounds])
    errors = facts.effects[0].std is not None
    header = ["column", "coefficient", *(["std. error", "95% interval"] if errors else [])]
    chart = interval_chart(
        [
            Interval(
                e.name,
                e.value * e.width,
                *(None if error is None else error * e.width for error in (e.std, e.noise)),
            )
            for e in facts.effects[:40]
        ],
        axis=f"change in {facts.target} across the public range of the feature",
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


def _noise(facts: FitFacts) -> list[str]:
    if facts.effects[0].noise is None or facts.residual_std is None:
        return ["<p>Not known for this fit: it was made without intervals.</p>"]
    rows = []
    for e in facts.effects:
        noise, std = e.noise or 0.0, e.std or 0.0
        share = f"{100.0 * (noise / std) ** 2:.0f}%" if std > 0.0 and math.isfinite(std) else ""
        ratio = f"{abs(e.value) / std:.1f}" if std > 0.0 else ""
        rows.append([e.name, ratio, share, number(noise, 3)])
    header = ["column", "signal / error", "of the error, privacy noise", "noise std. error"]
    return [
        f"<p>The errors of {escape(facts.target)} around the fit have a standard deviation of "
        f"about {number(facts.residual_std, 3)}, by a private estimate.</p>",
        table(header, rows),
        '<p class="soft">A coefficient whose signal is below about 2 errors cannot be told from '
        "zero. More rows help in proportion to n while privacy noise dominates.</p>",
    ]


def _privacy(facts: FitFacts) -> list[str]:
    points = privacy_curve(facts.spent)
    if not any(math.isfinite(epsilon) for _, epsilon in points):
        return ["<p>The method adds no noise: nothing is guaranteed.</p>"]
    chart = curve_chart(
        points,
        mark=(facts.spent.delta, facts.spent.epsilon),
        x_axis="delta, the probability with which the guarantee may fail",
        y_axis="epsilon",
    )
    rows = [[p.name, f"{p.epsilon:.4g}", f"{p.delta:.3g}"] for p in facts.spent.parts]
    return [
        f"<figure>{chart}</figure>",
        '<p class="soft">Every point of the curve holds at once: the same releases, read at '
        "another delta.</p>",
        table(["part", "epsilon", "delta"], rows),
    ]


def _clipping(facts: FitFacts) -> list[str]:
    low, high = facts.target_bounds
    rows = [[facts.target, f"{low:g} to {high:g}", "target"]]
    rows += [[e.name, e.bounds, "feature"] for e in facts.effects]
    clip = facts.residual_clip
    if clip is not None:
        rows.append(["residuals", f"{-clip:g} to {clip:g}", "every step"])
    return [
        "<p>Values outside these public bounds were moved to the nearer one. The number of clipped "
        "values is not reported, because it is not private.</p>",
        table(["column", "public bound", "what"], rows),
    ]


def minutes(seconds: float) -> int:
    """Return a duration rounded up to minutes, because exact times can leak information."""
    return max(1, math.ceil(seconds / 60.0))


def minutes_in_words(seconds: float) -> str:
    """Return a duration in words, rounded up to minutes."""
    whole = minutes(seconds)
    return "under a minute" if whole == 1 else f"under {whole} minutes"


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
    "sigma": "noise",
    "eigenvalue_shift": "safety margin of the smallest eigenvalue",
    "ridge_level": "largest ridge",
    "method_": "method",
}


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
