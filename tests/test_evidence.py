"""Numbers on pages are those of the tracked tables, and of today's code or marked as older."""

import re
import shutil

import pandas as pd
import pytest

from evidence import behaviour, pages, records, run
from evidence.steps import STEPS, Step

MARKED = [page for page in pages.PAGES if "<!-- evidence:" in page.read_text()]


#: Pages whose measured numbers all stand in blocks. On the page of inference the reasons why labels
#: are missed are of simulations that no step makes.
FILLED = ["README.md"] + [
    f"docs/{name}.md"
    for name in (
        *("accuracy", "audit", "budget", "classification", "dependencies", "forecasts"),
        *("losses", "people", "performance"),
    )
]
#: Shares and factors that are settings, definitions or arithmetic.
NOT_MEASURED = (
    *(r"\d+% of its budget", r"\d+% of the budget", r"\d+% of epsilon", "15% of its delta"),
    *("95% interval", "confidence of 99%", "confidence 99%", "in at least 95%", "middle 90%"),
    *("23% for a table", "5% for", "second moments: 12%", "counts of residuals: 3%", "bike at 10%"),
    *("probability below 1%", r"1\.345 times the spread", "at least 1% of the target's"),
    *("300 times its noise scale", "30 times that", r"deviation of a coverage is about [\d to]+%"),
    *(r"noise grows by 0\.1% at epsilon 1 and by 0\.2%", "at most 52%, 73% or 95% sure"),
    *(r"at most 1\.25 times", r"1\.2 times for a logistic"),
)


def name(page):
    return str(page.relative_to(behaviour.ROOT))


@pytest.mark.parametrize("page", MARKED, ids=name)
def test_blocks_are_what_the_tables_give(page):
    text = page.read_text(encoding="utf-8")
    now, must = ([b[0] for b in pages.blocks(each)] for each in (text, pages.filled(text)))
    for block, expected in zip(now, must, strict=True):
        found = re.match(r"<!-- evidence: (\w+)", block)[1]
        if found == pages.RECORDS:
            assert block == expected, "docs/evidence.md: run `python -m evidence --mark`."
            continue
        step = STEPS[found]
        differ = records.differing(step, records.read()[step.name]["digest"])
        reason = f"fits that changed: {', '.join(differ)}. " if differ else ""
        assert block == expected, (
            f"{name(page)}: a block of step {step.name} is not what docs/{step.table} gives. "
            f"{reason}Run `make evidence STEP={step.name}`, or `python -m evidence --mark` if "
            f"there is no time for it. The words are in evidence/templates/{step.name}.md."
        )


@pytest.mark.parametrize("page", MARKED, ids=name)
def test_every_mark_is_closed_and_known(page):
    text = page.read_text(encoding="utf-8")
    found = [(b[2], b[3]) for b in pages.blocks(text)]
    assert len(found) == text.count("<!-- evidence:") == text.count("<!-- end -->")
    for step, block in found:
        assert block in pages.TEMPLATES.get_template(f"{step}.md").blocks


def typed(text):
    """Return shares, factors and times outside blocks, code and formulas, with words before."""
    text = re.sub(r"<!-- evidence: .*?<!-- end -->|```.*?```|!\[.*?\]", "", text, flags=re.DOTALL)
    text = " ".join(re.sub(r"`[^`]*`|\$[^$]*\$", "", text).split())
    text = re.sub("|".join(NOT_MEASURED), "", text)
    return re.findall(r".{0,40}\d[\d.,]*(?:%| times\b| s\b| seconds\b| minutes\b)", text)


@pytest.mark.parametrize("page", FILLED)
def test_no_measured_share_or_factor_is_typed(page):
    assert typed((behaviour.ROOT / page).read_text(encoding="utf-8")) == []


def test_typed_numbers_are_found():
    for words in ("It covers 97% of them.", "It is 3.5 times as fast.", "It takes 0.2 s."):
        assert len(typed(words)) == 1
    assert (
        typed("<!-- evidence: a b -->97%<!-- end --> of `5%` and $9%$ for 12% of the budget") == []
    )


@pytest.mark.parametrize("step", STEPS.values(), ids=lambda step: step.name)
def test_every_step_has_a_record_and_every_block_a_page(step):
    kept = {"commit", "date", "processor", "instruction_set", "cores", "load", "fits", "seconds"}
    assert records.read()[step.name].keys() == {*kept, "digest"}
    assert step.path.exists()
    assert step.whole
    assert step.quick
    assert step.sources or set(step.fits) <= set(behaviour.FITS)
    used = {b[3] for page in MARKED for b in pages.blocks(page.read_text()) if b[2] == step.name}
    assert used == set(pages.TEMPLATES.get_template(f"{step.name}.md").blocks)


def test_fits_differ_when_behaviour_does():
    stored = behaviour.observed("numbers")
    assert behaviour.same(stored, [x and x * (1.0 + 1e-8) for x in stored])
    assert not behaviour.same(stored, [x and x * (1.0 + 1e-4) for x in stored])
    assert not behaviour.same(stored, stored[:-1])
    assert not behaviour.same(stored, [1.0 if x is None else x for x in stored])
    few = behaviour.numbers_of(behaviour.of_numbers(behaviour.LINEAR, 1.0))
    less = behaviour.numbers_of(behaviour.of_numbers(behaviour.LINEAR, 1.0 + 1e-5))
    assert not behaviour.same(few, less)


def test_source_is_the_same_without_comments_and_docstrings(tmp_path):
    plain = "def f(x):\n    return x + 1\n"
    said = '"""About."""\n\n\ndef f(x):\n    """Return."""\n    # one more\n    return (x + 1)\n'
    assert behaviour.python(plain) == behaviour.python(said)
    assert behaviour.python(plain) != behaviour.python(plain.replace("1", "2"))
    assert behaviour.compiled("int a; // one\n/* two */ int b;") == "int a; int b;"


def test_counted_lines_are_exact_and_growth_comes_last(monkeypatch):
    step = STEPS["growth"]
    assert list(STEPS)[-1] == "growth"
    assert step.exact().items() <= records.digest(step).items()
    found = records.digest(step)
    assert records.differing(step, found) == []
    assert records.differing(step, {**found, "test_lines": found["test_lines"] + 1}) == [
        "test_lines"
    ]
    # Filled pages are in none of the folders whose lines count.
    assert not any("docs" in folder for folder in (*records.CODE, *step.sources))
    if records.state(step) == "today's":
        last = pd.read_csv(step.path).iloc[-1]
        assert {name: last[name] for name in step.exact()} == step.exact()


@pytest.fixture
def small(tmp_path, monkeypatch):
    """A step of its own, with records, pages and work in a temporary folder."""
    (tmp_path / "docs").mkdir()
    (tmp_path / "templates").mkdir()
    (tmp_path / "templates" / "small.md").write_text(
        "{% block words %}{{ n }} lines{% endblock %}{% block rest %}in {{ n }}{% endblock %}"
    )
    page = tmp_path / "docs" / "page.md"
    page.write_text(
        "<!-- evidence: small words -->\n\nold\n\n<!-- end -->\n\n"
        "It was <!-- evidence: small rest -->old<!-- end -->.\n"
    )
    source = tmp_path / "benchmark.py"
    source.write_text(
        "import sys\nwith open(sys.argv[1], 'a') as file:\n"
        "    file.write('a\\n' if file.tell() == 0 else '')\n"
        "    file.write('1\\n')\n"
        "sys.exit(int(sys.argv[2]))\n"
    )
    call = f"python {source} {{out}} "
    step = Step("small", "a test", (call + "0",), (call + "0",), lambda t: {"n": len(t)},
                fits=("AdaSSP",))  # fmt: skip
    monkeypatch.setattr(Step, "path", property(lambda self: tmp_path / "docs" / self.table))
    monkeypatch.setitem(STEPS, "small", step)
    for module, key, value in (
        (records, "PATH", tmp_path / "docs" / "evidence.json"),
        (pages, "PAGES", [page]),
        (run, "WORK", tmp_path / "work"),
        (run, "DOCS", tmp_path / "docs"),
    ):
        monkeypatch.setattr(module, key, value)
    loader = pages.jinja2.FileSystemLoader(tmp_path / "templates")
    monkeypatch.setattr(pages, "TEMPLATES", pages.TEMPLATES.overlay(loader=loader, cache_size=0))
    return step, page


def test_a_step_runs_and_fills_its_page(small):
    step, page = small
    assert records.state(step) == "missing"
    run.run(step, None, quick=True)
    assert not step.path.exists()
    assert records.read() == {}
    run.run(step, None, quick=False)
    assert records.state(step) == "today's"
    assert records.read()["small"]["fits"] == len(pd.read_csv(step.path)) == 1
    assert "\n\n1 lines\n\n" in page.read_text()
    assert "It was <!-- evidence: small rest -->in 1<!-- end -->." in page.read_text()


def test_a_step_of_other_code_is_marked_on_its_page(small):
    step, page = small
    run.run(step, None, quick=False)
    record = records.read()["small"]
    record["digest"]["AdaSSP"][0] += 1e-3
    records.write("small", record)
    assert records.state(step) == "stale"
    assert pages.write() == [page]
    line = (
        f"\n\n*Measured with commit {record['commit']} on {record['date']}; today's fits differ.*"
    )
    assert line in page.read_text()
    assert page.read_text().count("today's fits differ") == 1
    assert pages.write() == []


def test_an_interrupted_step_goes_on_with_the_same_code_only(small):
    step, _ = small
    broken = Step(**{**vars(step), "whole": (step.whole[0][:-1] + "3",)})
    with pytest.raises(RuntimeError, match="ended with code 3"):
        run.run(broken, None, quick=False)
    run.run(step, None, quick=False)
    assert len(pd.read_csv(step.path)) == 2
    with pytest.raises(RuntimeError, match="ended with code 3"):
        run.run(broken, None, quick=False)
    note = run.WORK / "small" / "begun.json"
    note.write_text(note.read_text().replace("AdaSSP", "IHM"))
    run.run(step, None, quick=False)
    assert len(pd.read_csv(step.path)) == 1
    shutil.rmtree(run.WORK)


def test_lines_of_peers_are_kept_and_own_tables_left_as_written(small):
    step, page = small
    run.run(step, None, quick=False)
    keeping = Step(**{**vars(step), "kept": lambda frame: frame[frame["a"] > 0]})
    run.run(keeping, None, quick=False)
    assert len(pd.read_csv(step.path)) == 2
    call = step.whole[0].replace("{out}", "{docs}/mine.csv")
    writing = Step(**{**vars(step), "whole": (call,), "own": ("mine.csv", "page.md")})
    run.run(writing, None, quick=False)
    assert (page.parent / "mine.csv").read_text() == "a\n1\n"
    assert [each.name for each in pages.pages_of(writing)] == ["page.md"]
    (page.parent / "mine.csv").write_text("commit\naaa\nbbb\naaa\n")
    said = Step(**{**vars(writing), "whole": (f"cp {page.parent}/mine.csv {{out}}",)})
    run.run(said, None, quick=False)
    assert records.read()["small"]["commit"] == "aaa, bbb"


def test_a_table_without_a_digest_is_of_unknown_code(small):
    step, page = small
    run.run(step, None, quick=False)
    records.write("small", {**records.read()["small"], "digest": None})
    assert records.state(step) == "unknown"
    assert pages.write() == [page]
    assert page.read_text().count("no record tells whether today's fits differ.*") == 1


def test_a_step_that_needs_data_says_so(small):
    step, _ = small
    needing = Step(**{**vars(step), "whole": (step.whole[0] + " {data}",)})
    with pytest.raises(run.NoDataError, match="FASTMIX_DATA"):
        run.run(needing, None, quick=False)
