"""Effects of a fit as a chart; effects that the data do not identify are listed by name."""

import math
from collections.abc import Collection, Sequence

from fastmix.show.effect_notes import NOTHING_IDENTIFIED
from fastmix.show.html import LONGEST, Interval, Safe, render
from fastmix.show.svg import chart_span, clear, interval_chart, large_ones

_CLEAR = "Clear effects"


def effects_part(
    found: Sequence[Interval],
    widths: Sequence[float],
    *,
    axis: str,
    unit: str = "columns",
    outside: Sequence[bool] | None = None,
) -> Safe:
    """Return the effects of columns across their public ranges, whose widths are given.

    Effects with an interval that excludes zero come first, then the others, by size. Effects beyond
    30 rows are folded away, and so are those that the data do not identify. Each kind has an axis
    of its own. Without intervals, columns of values ``outside`` the public lists come at the end.
    """
    sized = [e.times(width) for e, width in zip(found, widths, strict=True)]
    unsaid = bool(sized) and not any(map(_identified, sized))
    if unsaid:  # drawn as without intervals
        sized = [Interval(e.name, e.value) for e in sized]
    marked = [*zip(sized, [False] * len(sized) if outside is None else outside, strict=True)]
    beyond = [e for e, out in marked if out and e.std is None]
    known = [e for e, out in marked if _identified(e) and not (out and e.std is None)]
    known.sort(key=lambda e: (not clear(e), -abs(e.value)))
    beyond.sort(key=lambda e: -abs(e.value))
    largest = {e.name for group in _kinds(known).values() for e in _apart(group)}
    spans = {kind: _span(kind, group) for kind, group in _kinds(known, largest).items()}

    def chart(effects: Sequence[Interval]) -> Safe:
        """Return a chart for each kind of effects."""
        charts = []
        for kind, group in _kinds(effects, largest).items():
            span = _span(kind, group) if effects is beyond else spans[kind]
            title = f"<h3>{kind}</h3>" if kind else ""
            charts.append(title + interval_chart(group, axis=axis, span=span))
        return Safe(f"<figure>{''.join(charts)}</figure>" if charts else "")

    made = render(
        "effects.html",
        chart=chart,
        longest=LONGEST,
        unsaid=NOTHING_IDENTIFIED if unsaid else "",
        words=_words(sized, unit),
        unit=unit,
        known=known,
        beyond=beyond,
        hidden=[] if unsaid else [f"- {e.name}" for e in found if not _identified(e)],
        total=len(sized),
        no_errors=any(e.std is None for e in (*known, *beyond)),
    )
    return Safe(made)


def _identified(effect: Interval) -> bool:
    """Whether the data identify an effect; without standard errors all count as identified."""
    return effect.std is None or math.isfinite(effect.std)


def _words(sized: Sequence[Interval], unit: str) -> str:
    """Return how many effects are clear; nothing without standard errors."""
    known = [e for e in sized if e.std is not None and math.isfinite(e.std)]
    if not known:
        return ""
    sure = [e for e in known if clear(e)]
    said = f"{len(sure):,} of {len(sized):,} {unit} have a clear effect"
    if not sure:
        return f"{said}: every 95% interval includes zero."
    largest = max(sure, key=lambda e: abs(e.value)).name
    said += f": a 95% interval that does not include zero. The largest is that of {largest}."
    if len(known) > 20:
        chance = f"about {0.05 * len(known):.0f} would seem clear by chance"
        said += f" If no column had any effect, {chance}."
    return said


def _kinds(effects: Sequence[Interval], largest: Collection[str] = ()) -> dict[str, list[Interval]]:
    """Return effects by their kind, whose name is empty without intervals.

    Those whose names are among the ``largest`` are a kind of their own, as are the others then.
    """
    groups: dict[str, list[Interval]] = {}
    for e in effects:
        kind = "" if e.std is None else _CLEAR if clear(e) else "Effects that may be zero"
        if largest and kind in ("", _CLEAR):
            kind = f"{kind or 'Effects'}, {'the largest' if e.name in largest else 'the others'}"
        groups.setdefault(kind, []).append(e)
    return groups


def _apart(group: Sequence[Interval]) -> Sequence[Interval]:
    """Return the few effects of a kind on whose axis the others would look like zero."""
    ranked = sorted(group, key=lambda e: -abs(e.value))
    if ranked and ranked[0].std is not None and not clear(ranked[0]):
        return ()
    return ranked[: large_ones([e.value for e in ranked])]


def _span(kind: str, group: Sequence[Interval]) -> tuple[float, float]:
    """Return the ends of the axis of a kind: 0 is on it, and so is every clear effect."""
    values = [e.value for e in group if kind.startswith(_CLEAR)]
    low, high = chart_span(group)
    return min([low, *values]), max([high, *values])
