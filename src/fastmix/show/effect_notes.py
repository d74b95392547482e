"""Notes below a table of effects: reference levels, levels with few rows, hidden effects."""

import math
from collections.abc import Sequence

from fastmix._text import visible
from fastmix.show.html import HIDDEN

#: Message where no coefficient is identified, with advice.
NOTHING_IDENTIFIED = (
    f"{HIDDEN} The model uses them together, and may still predict well. "
    "More rows or a larger epsilon can separate them; without intervals (--no-intervals, in "
    "Python inference=False) the whole budget goes to the predictions. "
    "Labels or categories that do not match their lists are a common cause, too: 'fastmix check' "
    "shows them."
)
#: Names that a note lists at most.
_MOST_NAMES = 8


def _listed(names: Sequence[str]) -> str:
    """Return names in words, eight of them at most."""
    shown = ", ".join(visible(name) for name in names[:_MOST_NAMES])
    return shown + (f" and {len(names) - _MOST_NAMES:,} more" if len(names) > _MOST_NAMES else "")


def level_notes(
    references: dict[str, str], pooled: Sequence[str], *, counted: bool = True
) -> list[str]:
    """Return notes on reference levels, and on levels with too few rows for an effect."""
    said = []
    if references:
        kind = "most frequent" if counted else "first"
        levels = _listed([f"{name}={level}" for name, level in references.items()])
        said.append(
            f"Levels are compared with the {kind} one of their category, and the intercept is for "
            f"rows with these: {levels}."
        )
    if len(pooled) == 1:
        said.append(f"1 level with few rows is close to its category's mean: {pooled[0]}.")
    elif pooled:
        many = f"{len(pooled):,} levels with few rows share their category's mean"
        said.append(f"{many}: {_listed(pooled)}.")
    return said


def advice(hidden: Sequence[str], effects: int, pooled: Sequence[str], epsilon: float) -> list[str]:
    """Return notes on effects that noise hides, and advice on how to see more."""
    said = []
    if hidden:
        verb = "is" if len(hidden) == 1 else "are"
        said.append(
            f"{len(hidden):,} of {effects:,} effects {verb} hidden by noise, though the model uses "
            f"them: {_listed(hidden)}."
        )
    if hidden or pooled:
        larger = f"epsilon {2.0 * epsilon:.3g}" if math.isfinite(epsilon) else "a larger epsilon"
        merge = (
            ", or rare levels merged into one" if pooled or any("=" in e for e in hidden) else ""
        )
        said.append(f"To see more effects, try more rows, {larger}{merge}.")
    return said
