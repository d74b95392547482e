"""The table of a regression in the form that statisticians know, from released values only."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

from scipy.special import ndtr, ndtri

from fastmix._text import visible
from fastmix.show.broom import Tidy
from fastmix.show.effect_notes import NOTHING_IDENTIFIED, advice, level_notes
from fastmix.show.html import (
    LONGEST,
    Interval,
    Safe,
    card,
    definition_list,
    escape,
    number,
    paragraphs,
    percent,
    ratio,
    table,
)

#: Width of a column of numbers, and of the widest name.
_WIDTH, _LONGEST = 11, 32


@dataclass(frozen=True)
class Line:
    """One effect: standard error, z, p-value and interval; None without standard errors.

    The standard error of an effect that the data do not identify is infinite. ``over_range`` is the
    effect across the whole public range of its column, None where no range is known.
    """

    name: str
    coef: float
    std_err: float | None
    z: float | None
    p_value: float | None
    low: float | None
    high: float | None
    over_range: float | None = None

    @property
    def is_intercept(self) -> bool:
        """Whether this is an intercept, perhaps that of a class."""
        return self.name.split(": ")[-1] == "intercept"

    @property
    def width(self) -> float:
        """Width of the public range of the column, 1 where it is not known."""
        return 1.0 if self.over_range is None or not self.coef else self.over_range / self.coef

    @property
    def identified(self) -> bool:
        """Whether the data identify the coefficient."""
        return self.std_err is None or math.isfinite(self.std_err)


@dataclass(frozen=True)
class RegressionSummary(Tidy):
    """Coefficients with standard errors, z, p-values and intervals, as statsmodels prints them.

    Print it for text; a notebook shows it as HTML; `to_frame` gives a data frame.

    Parameters
    ----------
    title : str
        Title above the table.
    facts : tuple of (str, str)
        Names and values above the table.
    lines : tuple of Line
        The effects in the order of the columns, the intercept last. Text and HTML show those that
        the data identify, the largest across its public range first.
    level : float
        Level of the intervals.
    notes : tuple of str
        Notes below the table.
    odds : bool, default=False
        Whether coefficients are of log-odds: the table has odds ratios, too.
    references : dict, default={}
        For each category the level that the others are compared with.
    pooled : tuple of str, default=()
        Levels with too few rows for an effect of their own.
    several : int, default=1
        Number of classes that have effects of their own, each against the rest.
    """

    title: str
    facts: tuple[tuple[str, str], ...]
    lines: tuple[Line, ...]
    level: float
    notes: tuple[str, ...]
    odds: bool = False
    references: dict[str, str] = field(default_factory=dict)
    pooled: tuple[str, ...] = ()
    several: int = 1

    @property
    def shown(self) -> tuple[Line, ...]:
        """The identified effects, the largest across its public range first; the intercept last.

        With several classes, those of one class after the other.
        """
        return self.largest(None)

    def largest(self, longest: int | None) -> tuple[Line, ...]:
        """Return the first of `shown`: at most ``longest`` effects, as many for each class."""
        slopes = [line for line in self.lines if not line.is_intercept]
        others = [line for line in self.lines if line.is_intercept]
        size, found = len(slopes) // self.several, list[Line]()
        most = None if longest is None else max(1, longest // self.several)
        for k in range(self.several):
            own = [line for line in slopes[k * size : (k + 1) * size] if line.identified]
            if all(line.over_range is not None for line in own):
                own.sort(key=lambda line: -abs(line.over_range or 0.0))
            found += [*own[:most], *(line for line in others[k : k + 1] if line.identified)]
        return tuple(found)

    @property
    def has_ranges(self) -> bool:
        """Whether public ranges are known."""
        return any(line.over_range is not None for line in self.lines)

    @property
    def header(self) -> list[str]:
        """Names of the columns; the first is that of the coefficients."""
        tail = (1.0 - self.level) / 2.0
        ends = [f"[{tail:.4g}", f"{1.0 - tail:.4g}]"]
        across = ["over range"] if self.has_ranges else []
        if not self.has_errors:
            return ["coef", *across, *(["odds ratio"] if self.odds else [])]
        ratio = ["odds ratio", *(f"OR {end}" for end in ends)] if self.odds else []
        return ["coef", "std err", "z", "P>|z|", *ends, *across, *ratio]

    @property
    def _blocks(self) -> list[slice]:
        """The columns of each table: odds ratios with their ends have one of their own."""
        split = 6 + self.has_ranges if self.has_errors else len(self.header)
        return [slice(split), *([slice(split, None)] if self.header[split:] else [])]

    @property
    def has_errors(self) -> bool:
        """Whether the fit has standard errors."""
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
            Title, facts, level, notes, one entry per effect that the data identify, the largest
            first, and the names of the hidden ones, whose numbers would be noise.
        """
        return {
            "title": self.title,
            "facts": dict(self.facts),
            "level": self.level,
            "coefficients": [{**vars(line), **self._ratios(line)} for line in self.shown],
            "hidden": [line.name for line in self.lines if not line.identified],
            "references": self.references,
            "pooled": list(self.pooled),
            "notes": list(self.notes),
        }

    def __str__(self) -> str:
        return self.text()

    def text(self, longest: int | None = None) -> str:
        """Return the summary as text.

        Parameters
        ----------
        longest : int or None, default=None
            Effects that are shown at most, without intercepts; None shows all.

        Returns
        -------
        str
            Facts, the table, and notes.
        """
        known = self.largest(longest)
        rest = len(self.shown) - len(known)
        more = (f"and {rest:,} more; --all shows them", "") if rest else ()
        names = [_cut(visible(line.name)) for line in known]
        width = max(12, *map(len, names), 0)
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
                f"{name:<{width}}" + "".join(f"{cell:>{_WIDTH}}" for cell in cells[block])
                for name, cells in zip(names, self._cells(known), strict=True)
            ]
            lines += [head, "-" * total, *rows, "=" * total]
        return "\n".join([*lines, *more, *self.notes])

    def _repr_html_(self) -> str:
        title = f"<p><b>{escape(self.title)}</b></p>"
        return card(f"{title}{definition_list(self.facts)}{self.html_table()}")

    def html_table(self, longest: int | None = LONGEST) -> Safe:
        """Return the table and its notes as HTML; rows beyond the ``longest`` are folded away."""
        rows = [*zip(self.shown, self._cells(self.shown), strict=True)]
        tables = [
            table(
                ["", *self.header[block]],
                [[line.name, *cells[block]] for line, cells in rows],
                longest,
            )
            for block in self._blocks
        ]
        return Safe("".join(tables) + paragraphs(self.notes))

    def _cells(self, lines: Iterable[Line]) -> Iterable[list[str]]:
        for line in lines:
            ratios = [ratio(each) for each in (line.coef, line.low, line.high) if self.odds]
            across = [number(line.over_range)] if self.has_ranges else []
            if not self.has_errors:
                yield [number(line.coef), *across, *ratios[:1]]
            else:
                yield [
                    number(line.coef),
                    number(line.std_err, 3),
                    f"{line.z:.3f}",
                    f"{line.p_value:.3f}",
                    number(line.low),
                    number(line.high),
                    *across,
                    *ratios,
                ]

    def _values(self, line: Line) -> list[float | None]:
        """Return the numbers of a line, as many as the header has names."""
        own = [line.coef, line.std_err, line.z, line.p_value, line.low, line.high]
        across = [line.over_range] if self.has_ranges else []
        return [*own[: 6 if self.has_errors else 1], *across, *self._ratios(line).values()]

    def _ratios(self, line: Line) -> dict[str, float | None]:
        """Return the odds ratio of a line and its ends, by name; nothing if there are none."""
        if not self.odds:
            return {}
        found = {"odds_ratio": _exponential(line.coef)}
        if self.has_errors:
            found |= {"odds_low": _exponential(line.low), "odds_high": _exponential(line.high)}
        return found


def summary_title(
    family: str, target: str, *, quantile: Any = None, r2: float | None = None
) -> str:
    """Return the title of a summary: family, target, and the private R^2 if it was released."""
    kind = "robust" if family == "huber" else family
    level = "" if quantile is None else f" ({percent(quantile)})"
    score = "" if r2 is None else f", private R² {r2:.2f}"
    return f"Private {kind} regression of {target}{level}{score}"


def _cut(name: str) -> str:
    """Return a name that is short enough for a column; its end tells levels apart."""
    return name if len(name) <= _LONGEST else f"{name[:11]}…{name[12 - _LONGEST :]}"


def _exponential(value: float | None) -> float | None:
    """Return e to a power; infinity on overflow."""
    if value is None:
        return None
    return math.exp(value) if value < 700.0 else math.inf


def summarise(
    effects: Sequence[Interval],
    *,
    title: str,
    facts: Sequence[tuple[str, str]],
    level: float = 0.95,
    notes: Sequence[str] = (),
    odds: bool = False,
    widths: Sequence[float] | None = None,
    references: dict[str, str] | None = None,
    pooled: Sequence[str] = (),
    counted: bool = False,
    epsilon: float = math.inf,
    several: int = 1,
) -> RegressionSummary:
    """Make the table of effects, the intercepts last; ``several`` classes have effects each.

    ``widths`` are those of the public ranges of all effects but the intercepts; ``counted`` says
    whether counts of levels chose the ``references``.
    """
    reach = float(ndtri(0.5 + level / 2.0))
    lines = []
    ranges = [*(widths or ()), *[None] * len(effects)]
    for (name, value, std, _), width in zip(effects, ranges, strict=False):
        across = None if width is None else float(value) * width
        if std is None:
            lines.append(Line(name, float(value), None, None, None, None, None, across))
            continue
        std = float(std)
        z = float(value) / std if std > 0.0 else math.copysign(math.inf, float(value))
        ends = float(value) - reach * std, float(value) + reach * std
        lines.append(Line(name, float(value), std, z, 2.0 * float(ndtr(-abs(z))), *ends, across))
    hidden = [line.name for line in lines if not (line.identified or line.is_intercept)]
    slopes = [line for line in lines if not line.is_intercept]
    said = level_notes(references or {}, pooled, counted=counted)
    if slopes and len(hidden) == len(slopes):
        said = [NOTHING_IDENTIFIED]  # no level is shown that another would be compared with
    elif slopes and slopes[0].std_err is not None:
        said += advice(hidden, len(slopes), pooled, epsilon)
    said += notes
    if lines and lines[0].std_err is None:
        said.append("This fit released nothing that standard errors could be computed from.")
    given = tuple(facts), tuple(lines), level, tuple(said), odds
    return RegressionSummary(title, *given, references or {}, tuple(pooled), several)
