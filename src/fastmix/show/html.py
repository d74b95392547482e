"""Pieces of HTML, and cards for notebooks; every text is escaped on its way in."""

import math
from collections.abc import Iterable, Sequence
from functools import cache
from html import escape as _escape
from importlib import import_module
from itertools import repeat
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from fastmix._text import label_text, visible

#: Rows of a table or chart that are shown at once; the others are folded away.
LONGEST = 30

#: Message where noise hides all effects.
HIDDEN = "Noise is too large to separate the effects of the columns."

STYLE = Path(__file__).with_name("style.css").read_text(encoding="utf-8")


class Safe(str):
    """HTML whose texts are escaped already; templates insert it as it is."""

    __slots__ = ()

    def __html__(self) -> str:
        return self


@cache
def templates() -> Any:
    """Return the templates of pages; fail where jinja2 is missing or a template is damaged."""
    try:
        jinja2 = import_module("jinja2")
    except ImportError:
        raise ImportError('reports need jinja2: pip install "fastmix[cli]".') from None
    made = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).with_name("templates")),
        autoescape=True,
        finalize=lambda value: value if hasattr(value, "__html__") else visible(str(value)),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    pieces = (badge, definition_list, folded, folded_if_long, paragraphs, table)
    made.globals.update({piece.__name__: piece for piece in pieces})
    for name in made.list_templates():
        made.get_template(name)
    return made


def render(template: str, **values: Any) -> str:
    """Return a template with values; every text among them is escaped."""
    return str(templates().get_template(template).render(values))


def escape(text: str) -> str:
    """Return text with markup, control characters and direction marks escaped."""
    return _escape(visible(text))


def breakable(name: str) -> str:
    """Return an escaped name that a browser may break behind ``=`` and ``_``, not inside words."""
    return escape(name).replace("=", "=<wbr>").replace("_", "_<wbr>")


def page(title: str, body: str) -> str:
    """Return a page that loads nothing from elsewhere."""
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<link rel="icon" href="data:,">\n'
        f"<title>{escape(title)}</title>\n<style>body {{ margin: 0; }}{STYLE}</style>\n</head>\n"
        f'<body class="fastmix">\n<main>\n{body}\n</main>\n</body>\n</html>\n'
    )


def number(value: float | None, digits: int = 4) -> str:
    """Return a number with this many digits; very large and small ones with an exponent."""
    if value is None:
        return ""
    if value == 0.0 or not 1e-4 <= abs(value) < 1e7:
        return f"{value:.{digits}g}"
    places = max(0, digits - 1 - math.floor(math.log10(abs(value))))
    return f"{value:,.{places}f}"


def table(
    header: Sequence[str], rows: Iterable[Sequence[str]], longest: int | None = LONGEST
) -> Safe:
    """Return a table that scrolls sideways where it is too wide, and folds most rows away."""
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in header)
    lines = []
    for first, *others in rows:
        cells = [breakable(first), *map(escape, others)]
        lines.append(f"<tr>{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>")

    def part(some: Sequence[str]) -> str:
        return (
            f'<div class="scroll"><table><thead><tr>{head}</tr></thead>'
            f"<tbody>{''.join(some)}</tbody></table></div>"
        )

    if longest is None or len(lines) <= longest:
        return Safe(part(lines))
    rest = lines[longest:]
    return Safe(part(lines[:longest]) + folded(f"{len(rest):,} more rows", part(rest)))


def folded(name: str, body: str) -> Safe:
    """Return a part of a page that its reader unfolds."""
    return Safe(f"<details><summary>{escape(name)}</summary>{body}</details>")


def folded_if_long(name: str, rows: int, body: str) -> Safe:
    """Return a table, folded away if it has many rows."""
    return Safe(body) if rows <= LONGEST else folded(f"Show all {rows:,} {name}", body)


def definition_list(facts: Iterable[tuple[str, str]]) -> Safe:
    """Return facts as a grid of names and values."""
    cells = [f"<div><dt>{escape(k)}</dt><dd>{escape(v)}</dd></div>" for k, v in facts]
    return Safe(f'<dl class="facts">{"".join(cells)}</dl>')


def badge(private: bool) -> Safe:
    """Return a mark that says whether a fit is private."""
    kind, text = ("badge", "private") if private else ("badge bad", "NOT PRIVATE")
    return Safe(f'<span class="{kind}">{text}</span>')


def paragraphs(lines: Iterable[str]) -> Safe:
    """Return lines as paragraphs; those that begin with a dash as a list."""
    parts: list[str] = []
    listed = False
    for line in lines:
        item = line.startswith("- ")
        if item != listed:
            parts.append("<ul>" if item else "</ul>")
            listed = item
        parts.append(f"<li>{escape(line[2:])}</li>" if item else f"<p>{escape(line)}</p>")
    if listed:
        parts.append("</ul>")
    return Safe("\n".join(parts))


class Interval(NamedTuple):
    """A value with a standard error, and the part of it that is privacy noise."""

    name: str
    value: float
    std: float | None = None
    noise: float | None = None

    def times(self, factor: float) -> "Interval":
        """Return the interval in another unit."""
        errors = (None if each is None else each * factor for each in (self.std, self.noise))
        return Interval(self.name, self.value * factor, *errors)


def effects(model: Any, names: Iterable[str] | None = None) -> list[Interval]:
    """Return the coefficients of a fitted estimator, then its intercept if it has one."""
    coef = np.atleast_2d(model.coef_)
    if names is None:
        names = getattr(model, "feature_names_in_", [f"x{j}" for j in range(coef.shape[1])])
    known = (getattr(model, name, None) for name in ("coef_std_", "coef_noise_std_"))
    errors = (repeat(None) if each is None else np.ravel(each) for each in known)
    labels = class_prefixes(model)
    called = [f"{label}{name}" for names in [[*names]] for label in labels for name in names]
    found = [Interval(*each) for each in zip(called, np.ravel(coef), *errors, strict=False)]
    if model.fit_intercept:
        std = getattr(model, "intercept_std_", None)
        stds = repeat(None) if std is None else map(float, np.ravel(std))
        found += [
            Interval(f"{label}intercept", float(each), own)
            for label, each, own in zip(labels, np.ravel(model.intercept_), stds, strict=False)
        ]
    return found


def class_prefixes(model: Any) -> list[str]:
    """Return what names of effects begin with, for several classes or quantiles: each of them."""
    if len(np.atleast_2d(model.coef_)) == 1:
        return [""]
    if hasattr(model, "classes_"):
        return [f"{label_text(each)}: " for each in model.classes_]
    return [f"{percent(each)}: " for each in model.quantile]


def ratio(log_odds: float | None) -> str:
    """Return an odds ratio; its difference from 1 has four digits."""
    if log_odds is None:
        return ""
    more = math.expm1(log_odds) if log_odds < 700.0 else math.inf
    if more == 0.0 or abs(more) >= 0.1:
        return number(1.0 + more)
    if abs(more) < 1e-5:
        return f"1{more:+.2e}"
    return f"{1.0 + more:.{3 - math.floor(math.log10(abs(more)))}f}"


def percent(quantile: Any) -> str:
    """Return a quantile, or a list of them, in percent."""
    *first, last = [f"{100 * each:g}%" for each in np.atleast_1d(quantile)]
    return f"{', '.join(first)} and {last}" if first else last


def fit_card(model: Any, guarantee: str, longest: int = 12) -> str:
    """Return a fitted estimator as HTML."""
    made = model.summary()
    cells = []
    for line in made.shown[:longest]:
        reach = [] if line.std_err is None else [f"± {number(1.96 * line.std_err, 3)}"]
        cells.append([line.name, number(line.coef), *reach])
    header = ["", "coefficient", *(["95%"] if made.has_errors else [])]
    more = len(made.lines) - len(cells)
    body = table(header, cells) if cells else f"<p>{HIDDEN}</p>"
    rest = f'<p class="soft">and {more:,} more</p>' if more > 0 and cells else ""
    return card(
        f"<b>{escape(' '.join(repr(model).split()))}</b> {badge(model.privacy_.private)}"
        f"<p>{escape(guarantee)}</p>{body}{rest}"
    )


def certificate_card(explanation: Sequence[str], private: bool) -> str:
    """Return a certificate in plain words as HTML."""
    return card(f"<b>{escape(explanation[0])}</b> {badge(private)}{paragraphs(explanation[1:])}")


def card(body: str) -> str:
    """Return a part of a notebook with its own style."""
    return (
        f"<style>{STYLE}</style>"
        '<div class="fastmix" style="padding: .8rem 1rem; max-width: 46rem; border: 1px solid '
        f'var(--line); border-radius: .5rem; font-size: 14px">{body}</div>'
    )
