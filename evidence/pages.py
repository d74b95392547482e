"""Marked blocks of pages, filled from the tables by the templates of the steps.

A page has ``<!-- evidence: STEP BLOCK -->``, text, and ``<!-- end -->``: the text is what the block
of this name in ``templates/STEP.md`` gives. A block is a paragraph or more if a new line follows
its mark, or a few words inside a sentence. The step ``evidence`` is the list of all records.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jinja2
import numpy as np
import pandas as pd

from evidence import records
from evidence.behaviour import ROOT
from evidence.step import Step
from evidence.steps import STEPS

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"(<!-- evidence: (\w+) (\w+) -->)(.*?)(<!-- end -->)", re.DOTALL)
#: The name that the list of records has instead of a step.
RECORDS = "evidence"
TEMPLATES = jinja2.Environment(
    loader=jinja2.FileSystemLoader(Path(__file__).parent / "templates"),
    undefined=jinja2.StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
TEMPLATES.globals["median"] = np.median
TEMPLATES.filters |= {
    "comma": lambda value: f"{value:,.0f}",
    "g": lambda value: f"{value:g}",
    "f1": lambda value: f"{value:.1f}",
    "f2": lambda value: f"{value:.2f}",
    "f3": lambda value: f"{value:.3f}",
    "percent": lambda value, digits=0: f"{100 * value:.{digits}f}%",
}


def blocks(text: str) -> Iterator[re.Match[str]]:
    """Yield the marked blocks of a page."""
    return BLOCK.finditer(text)


def pages_of(step: Step) -> list[Path]:
    """Return the pages with a block of this step, or those that its benchmark writes."""
    own = [ROOT / "docs" / name for name in step.own[1:]]
    return own or [p for p in PAGES if any(b[2] == step.name for b in blocks(p.read_text()))]


def rendered(name: str, values: dict[str, Any]) -> dict[str, str]:
    """Return the text of every block of a template."""
    template = TEMPLATES.get_template(f"{name}.md")
    # A block alone does not see the macros of its template.
    context = template.new_context({**values, **vars(template.make_module(values))})
    return {part: "".join(block(context)).strip() for part, block in template.blocks.items()}


def of_table(step: Step, table: Path, record: dict[str, Any]) -> dict[str, str]:
    """Return the text of every block of a step, from a table and its record."""
    return rendered(step.name, {**step.view(pd.read_csv(table)), "record": record})


def of_records() -> dict[str, str]:
    """Return the list of all records."""
    found = [
        {
            **record,
            "name": name,
            "about": STEPS[name].about,
            "pages": [page.name for page in pages_of(STEPS[name])],
            "state": records.state(STEPS[name]),
        }
        for name, record in records.read().items()
        if name in STEPS
    ]
    return rendered(RECORDS, {"steps": found})


def mark(step: Step, record: dict[str, Any], *, inline: bool) -> str:
    """Return the words that say that a block is not of today's code."""
    what = "the code has changed since" if step.sources else "today's fits differ"
    if record["digest"] is None:
        what = "no record tells whether today's fits differ"
    if inline:
        return f" (measured with commit {record['commit']}; {what})"
    return f"\n\n*Measured with commit {record['commit']} on {record['date']}; {what}.*"


def filled(page: str) -> str:
    """Return a page with every block as it must be today."""
    texts: dict[str, dict[str, str]] = {}
    marks: dict[tuple[str, bool], str] = {}
    for name in {block[2] for block in blocks(page)}:
        if name == RECORDS:
            texts[name] = of_records()
        elif (step := STEPS[name]).path.exists():
            record = records.read()[name]
            texts[name] = of_table(step, step.path, record)
            if records.state(step) != "today's":
                marks |= {(name, each): mark(step, record, inline=each) for each in (True, False)}
    # A few words have no mark of their own if a paragraph of the page has it.
    for name in {block[2] for block in blocks(page) if block[4].startswith("\n")}:
        marks.pop((name, True), None)

    def fill(block: re.Match[str]) -> str:
        start, name, part, old, end = block.groups()
        if name not in texts:
            return block[0]
        inline = not old.startswith("\n")
        text = texts[name][part] + marks.get((name, inline), "")
        return f"{start}{text}{end}" if inline else f"{start}\n\n{text}\n\n{end}"

    return BLOCK.sub(fill, page)


def write() -> list[Path]:
    """Fill all pages, and return those that changed."""
    changed = []
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        if (new := filled(text)) != text:
            page.write_text(new, encoding="utf-8")
            changed.append(page)
    return changed
