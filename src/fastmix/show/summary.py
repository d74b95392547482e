"""The table of a regression in the form that statisticians know, from released values only."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from scipy.special import ndtr, ndtri

from fastmix._text import visible
from fastmix.show.html import (
    LONGEST,
    Interval,
    card,
    definition_list,
    escape,
    number,
    paragraphs,
    table,
)

_NOT_IDENTIFIED = "not identified"
#: What is said where no coefficient is identified, and what to do then.
NOTHING_IDENTIFIED = (
    "No column's effect is told apart from the others: privacy noise hides how the columns vary. "
    "The model uses them together, and may still predict well. "
    "More rows or a larger epsilon can tell them apart; without intervals (--no-intervals, in "
    "Python inference=False) the whole budget goes to the predictions. "
    "Labels or categories that do not match their lists are a common cause, too: 'fastmix check' "
    "shows them."
)
#: Width of a column of numbers, and of the widest name.
_WIDTH, _LONGEST = 11, 32


@dataclass(frozen=True)
class Line:
    """One coefficient: standard error, z, p-value and interval; None without standard errors.

    The standard error of a coefficient that the data do not identify is infinite.
    """

    name: str
    coef: float
    std_err: float | None
    z: float | None
    p_value: float | None
    low: float | None
    high: float | None

    @property
    def identified(self) -> bool:
        """Whether the data identify the coefficient."""
        return self.std_err is None or math.isfinite(self.std_err)


@dataclass(frozen=True)
class RegressionSummary:
    """Coefficients with standard errors, z, p-values and intervals, as statsmodels prints them.

    Print it for text; a notebook shows it as HTML; `to_frame` gives a data frame.

    Parameters
    ----------
    title : str
        What stands above.
    facts : tuple of (str, str)
        Names and values that stand above the table.
    lines : tuple of Line
        The coefficients, the intercept last.
    level : float
        Level of the intervals.
    notes : tuple of str
        What stands below.
    odds : bool, default=False
        Whether coefficients are of log-odds: the table has odds ratios, too.
    """

    title: str
    facts: tuple[tuple[str, str], ...]
    lines: tuple[Line, ...]
    level: float
    notes: tuple[str, ...]
    odds: bool = False

    @property
    def header(self) -> list[str]:
        """Names of the columns, that of the coefficients first."""
        tail = (1.0 - self.level) / 2.0
        ends = [f"[{tail:.4g}", f"{1.0 - tail:.4g}]"]
        if not self.has_errors:
            return ["coef", *(["odds ratio"] if self.odds else [])]
        ratio = ["odds ratio", *(f"OR {end}" for end in ends)] if self.odds else []
        return ["coef", "std err", "z", "P>|z|", *ends, *ratio]

    @property
    def _blocks(self) -> list[slice]:
        """The columns of each table: odds ratios with their ends have one of their own."""
        split = 6 if self.has_errors else len(self.header)
        return [slice(split), *([slice(split, None)] if self.header[split:] else [])]

    @property
    def has_errors(self) -> bool:
        """Whether the fit released what standard errors need."""
        return any(line.std_err is not None for line in self.lines)

    def to_frame(self) -> Any:
        """Return a pandas data frame with a row per coefficient.

        Returns
        -------
        pandas.DataFrame
            Columns as in the table; ``identified`` says whether the data identify a coefficient.
        """
        pandas = import_module("pandas")
        values = [self._values(line) for line in self.lines]
        frame = pandas.DataFrame(
            values, index=[line.name for line in self.lines], columns=self.header
        )
        if self.has_errors:
            frame["identified"] = [line.identified for line in self.lines]
        return frame

    def to_dict(self) -> dict[str, Any]:
        """Return the summary as plain types.

        Returns
        -------
        dict
            Title, facts, level, notes, and one entry per coefficient.
        """
        return {
            "title": self.title,
            "facts": dict(self.facts),
            "level": self.level,
            "coefficients": [
                {**vars(line), "identified": line.identified, **self._ratios(line)}
                for line in self.lines
            ],
            "notes": list(self.notes),
        }

    def __str__(self) -> str:
        names = [visible(line.name)[:_LONGEST] for line in self.lines]
        width = max(12, *map(len, names))
        total = width + _WIDTH * max(5, *(len(self.header[block]) for block in self._blocks))
        facts = [f"{name}: {value}" for name, value in self.facts]
        half = max(total // 2, 2 + max(map(len, facts[::2]), default=0))
        pairs = [
            f"{left:<{half}}{right}".rstrip()
            for left, right in zip(facts[::2], [*facts[1::2], ""], strict=False)
        ]
        lines = [visible(self.title).center(total).rstrip(), "=" * total, *pairs, "=" * total]
        for block in self._blocks:
            head = " " * width + "".join(f"{name:>{_WIDTH}}" for name in self.header[block])
            rows = [
                f"{name:<{width}}" + _joined(cells[block])
                for name, cells in zip(names, self._cells(), strict=True)
            ]
            lines += [head, "-" * total, *rows, "=" * total]
        return "\n".join([*lines, *self.notes])

    def _repr_html_(self) -> str:
        title = f"<p><b>{escape(self.title)}</b></p>"
        return card(f"{title}{definition_list(self.facts)}{self.html_table()}")

    def html_table(self, longest: int | None = LONGEST) -> str:
        """Return the table alone, with its notes, as HTML.

        Parameters
        ----------
        longest : int or None, default=30
            Rows that are shown at once; the others are folded away.

        Returns
        -------
        str
            A table, a second one for odds ratios with intervals, and paragraphs.
        """
        rows = [*zip(self.lines, self._cells(), strict=True)]
        tables = [
            table(
                ["", *self.header[block]],
                [[line.name, *cells[block]] for line, cells in rows],
                longest,
            )
            for block in self._blocks
        ]
        return "".join(tables) + paragraphs(self.notes)

    def _cells(self) -> Iterable[list[str]]:
        for line in self.lines:
            ratios = [_ratio(each) for each in (line.coef, line.low, line.high) if self.odds]
            if not self.has_errors:
                yield [number(line.coef), *ratios[:1]]
            elif not line.identified or line.std_err is None:
                own = [number(line.coef), _NOT_IDENTIFIED, *[""] * 4]
                yield own + (["", _NOT_IDENTIFIED, ""] if self.odds else [])
            else:
                assert line.z is not None
                assert line.p_value is not None
                assert line.low is not None
                assert line.high is not None
                yield [
                    number(line.coef),
                    number(line.std_err, 3),
                    f"{line.z:.3f}",
                    f"{line.p_value:.3f}",
                    number(line.low),
                    number(line.high),
                    *ratios,
                ]

    def _values(self, line: Line) -> list[float | None]:
        """Return the numbers of a line, as many as the header has names."""
        own = [line.coef, line.std_err, line.z, line.p_value, line.low, line.high]
        return [*own[: 6 if self.has_errors else 1], *self._ratios(line).values()]

    def _ratios(self, line: Line) -> dict[str, float | None]:
        """Return the odds ratio of a line and its ends, by name; nothing if there are none."""
        if not self.odds:
            return {}
        found = {"odds_ratio": _exponential(line.coef)}
        if self.has_errors:
            found |= {"odds_low": _exponential(line.low), "odds_high": _exponential(line.high)}
        return found


def _exponential(value: float | None) -> float | None:
    """Return e to a power; infinite where that is beyond numbers."""
    if value is None:
        return None
    return math.exp(value) if value < 700.0 else math.inf


def _ratio(log_odds: float | None) -> str:
    """Return an odds ratio with four digits of what it differs from 1 by."""
    if log_odds is None:
        return ""
    more = math.expm1(log_odds) if log_odds < 700.0 else math.inf
    if more == 0.0 or abs(more) >= 0.1:
        return number(1.0 + more)
    if abs(more) < 1e-5:
        return f"1{more:+.2e}"
    return f"{1.0 + more:.{3 - math.floor(math.log10(abs(more)))}f}"


def _joined(cells: Sequence[str]) -> str:
    """Return cells aligned to the right; long words use the empty cell beside them."""
    line = f"{cells[0]:>{_WIDTH}}"
    if cells[1:] and cells[1] == _NOT_IDENTIFIED:
        return line + f"{_NOT_IDENTIFIED:>{2 * _WIDTH}}"
    return line + "".join(f"{cell:>{_WIDTH}}" for cell in cells[1:])


def summarise(
    effects: Sequence[Interval],
    *,
    title: str,
    facts: Sequence[tuple[str, str]],
    level: float = 0.95,
    notes: Sequence[str] = (),
    odds: bool = False,
) -> RegressionSummary:
    """Make the table of coefficients, the intercept last."""
    reach = float(ndtri(0.5 + level / 2.0))
    lines = []
    for name, value, std, _ in effects:
        if std is None:
            lines.append(Line(name, float(value), None, None, None, None, None))
            continue
        std = float(std)
        z = float(value) / std if std > 0.0 else math.copysign(math.inf, float(value))
        ends = float(value) - reach * std, float(value) + reach * std
        lines.append(Line(name, float(value), std, z, 2.0 * float(ndtr(-abs(z))), *ends))
    hidden = [line.name for line in lines if not line.identified]
    said = list(notes)
    if lines and {line.name for line in lines} <= {*hidden, "intercept"} and hidden:
        said.append(NOTHING_IDENTIFIED)
    elif hidden:
        shown = ", ".join(hidden[:8]) + (f" and {len(hidden) - 8} more" if len(hidden) > 8 else "")
        said.append(
            f"Not identified: {shown}. Privacy noise hides how the data vary in a direction that "
            "these coefficients share, so this fit has no estimate of each one alone."
        )
    if lines and lines[0].std_err is None:
        said.append("This fit released nothing that standard errors could be computed from.")
    return RegressionSummary(title, tuple(facts), tuple(lines), level, tuple(said), odds)
