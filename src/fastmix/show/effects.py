"""What a fit learned: its effects as a chart, those that the data do not identify apart."""

import math
from collections.abc import Sequence

from fastmix.show.html import LONGEST, Interval, escape, folded, paragraphs
from fastmix.show.notes import NOTHING_IDENTIFIED
from fastmix.show.svg import chart_span, clear, interval_chart

_CLEAR = "Clear effects"
#: What the parts of an interval look like.
_KEY = (
    '<p class="key soft"><span><svg height="8"><rect class="noise" width="100%" height="7"/></svg> '
    'privacy noise</span> <span><svg height="8"><rect class="sampling" width="100%" height="7"/>'
    '</svg> sampling error</span> <span><svg height="8"><line x1="0" x2="100%" y1="4" y2="4" '
    'stroke="var(--ink)" stroke-width="1.5"/></svg> both: 95% interval</span></p>'
)


def effects_part(
    found: Sequence[Interval],
    widths: Sequence[float],
    *,
    axis: str,
    unit: str = "columns",
    outside: Sequence[bool] | None = None,
) -> str:
    """Return the effects of columns across their public ranges, whose widths are given.

    Those that an interval tells from zero come first, then the others, by size; what is beyond 30
    rows is folded away, and so is what the data do not identify. Each kind has an axis of its own.
    Without intervals, columns of values ``outside`` the public lists are folded away at the end.
    """
    sized = [e.times(width) for e, width in zip(found, widths, strict=True)]
    unsaid = bool(sized) and not any(map(_identified, sized))
    if unsaid:  # drawn as without intervals
        sized = [Interval(e.name, e.value) for e in sized]
    marked = [*zip(sized, [False] * len(sized) if outside is None else outside, strict=True)]
    beyond = [e for e, out in marked if out and e.std is None]
    known = [e for e, out in marked if _identified(e) and not (out and e.std is None)]
    known.sort(key=lambda e: (not clear(e), -abs(e.value)))
    spans = {kind: _span(kind, group) for kind, group in _kinds(known).items()}
    parts = [f"<p>{NOTHING_IDENTIFIED}</p>" if unsaid else _words(sized, unit)]
    parts.append(_chart(known[:LONGEST], axis, spans))
    if rest := known[LONGEST:]:
        more = f"Show the other {len(rest):,} {unit}"
        parts.append(folded(more, _chart(rest, axis, spans)))
    if beyond:
        beyond.sort(key=lambda e: -abs(e.value))
        parts += [
            "<h3>Values outside the lists</h3>",
            "<p>If no row has such a value, this number is noise.</p>",
            folded("Show them", _chart(beyond, axis, {"": _span("", beyond)})),
        ]
    hidden = [f"- {e.name}" for e in found if not _identified(e)]
    if hidden and not unsaid:
        parts += [
            f"<h3>Hidden by noise: {len(hidden):,} of {len(sized):,} {unit}</h3>",
            "<p>Noise hides how the data vary in a direction that these columns take part in. The "
            "model uses them together; this fit has no estimate of one of them alone.</p>",
            folded("Show their names", paragraphs(hidden)),
        ]
    note = "An effect is a coefficient times the width of the public range of its column. "
    if unsaid:
        note += "These are the values that the model predicts with; none has an interval."
    elif any(e.std is None for e in (*known, *beyond)):
        note += "This fit released nothing that standard errors could be computed from."
    elif known:
        note += (
            "The two parts of an error add up as squares; the bars at the right show their shares. "
            "Bias from clipping is not in the intervals. An arrow marks an interval that goes "
            "beyond the axis."
        )
    return "\n".join([*parts, f'<p class="soft">{note}</p>' if known or beyond else ""])


def _identified(effect: Interval) -> bool:
    """Whether the data identify an effect; without standard errors all count as identified."""
    return effect.std is None or math.isfinite(effect.std)


def _words(sized: Sequence[Interval], unit: str) -> str:
    """Return how many effects are clear, and what the parts of their intervals look like."""
    known = [e for e in sized if e.std is not None and math.isfinite(e.std)]
    if not known:
        return ""
    sure = [e for e in known if clear(e)]
    said = f"{len(sure):,} of {len(sized):,} {unit} have a clear effect"
    if not sure:
        return f"<p>{said}: every 95% interval includes zero.</p>{_KEY}"
    largest = escape(max(sure, key=lambda e: abs(e.value)).name)
    said += f": a 95% interval that does not include zero. The largest is that of {largest}."
    if len(known) > 20:
        said += (
            f" If no column had any effect, about {0.05 * len(known):.0f} would seem clear by "
            "chance."
        )
    return f"<p>{said}</p>{_KEY}"


def _kinds(effects: Sequence[Interval]) -> dict[str, list[Interval]]:
    """Return effects by their kind, whose name is empty without intervals."""
    groups: dict[str, list[Interval]] = {}
    for e in effects:
        kind = "" if e.std is None else _CLEAR if clear(e) else "Effects that may be zero"
        groups.setdefault(kind, []).append(e)
    return groups


def _span(kind: str, group: Sequence[Interval]) -> tuple[float, float]:
    """Return the ends of the axis of a kind: 0 is on it, and so is every clear effect."""
    values = [e.value for e in group if kind == _CLEAR]
    low, high = chart_span(group)
    return min([low, *values]), max([high, *values])


def _chart(effects: Sequence[Interval], axis: str, spans: dict[str, tuple[float, float]]) -> str:
    """Return a chart for each kind of effects that is there."""
    charts = [
        (f"<h3>{kind}</h3>" if kind else "") + interval_chart(group, axis=axis, span=spans[kind])
        for kind, group in _kinds(effects).items()
    ]
    return f"<figure>{''.join(charts)}</figure>" if charts else ""
