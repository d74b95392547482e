"""The page says what the results say, and a browser shows it without help from outside."""

import csv
import re
import shutil
from types import SimpleNamespace

import pytest

from reproduction.command import main
from reproduction.report import write_docs
from reproduction.report.page import _rough, _wanted


def test_the_page_holds_claims_tables_commands_and_machine(world, page):
    assert page == world / "report.html"
    text = page.read_text()
    assert text.count("<svg") == 4
    assert text.count("Does not hold") == 1  # lambda_max of Rossman
    assert "python -m reproduction all" in text
    assert "95% band over 3 trials" in text
    assert "40022.54" not in text  # Black Friday's statistics were not computed
    (absent,) = re.findall(r"Not run, because the files are not there: ([^<]*)\.</p>", text)
    assert "Beijing" in absent
    assert not re.search("Synthetic|NYC", absent)  # these need no file
    assert (
        "hold in this quick run with 3 trials, 1 do not, with the reasons" in text
    )  # where it counts what holds
    assert text.count("python -m reproduction all") == 1
    assert "1.95" in text  # the paper's ratio for Black Friday, r = 100
    assert not re.search(r'(src|href)="(?!#|data:)', text)
    assert len(list((world / "figures").glob("*.svg"))) == 4


def test_sets_that_are_not_looked_for_are_not_called_absent():
    sets = [{"set": name} for name in ("airline", "flights_2001", "nycflights13")]
    looked = SimpleNamespace(config={"airline": sets, "trials": 5}, risk={"airline": {}})
    assert list(_wanted(looked, "airline")) == ["airline", "flights_2001", "nycflights13"]
    looked.risk["airline"]["flights_2001"] = {}
    assert list(_wanted(looked, "airline")) == ["airline", "flights_2001"]


def test_a_quick_run_without_trials_says_so_too():
    assert _rough(SimpleNamespace(config={"trials": 5}, risk={})) == " in this quick run"
    assert _rough(SimpleNamespace(config={"trials": 30}, risk={})) == ""


def test_command_line(world, drawn_once, tmp_path, capsys):
    assert main(["report", str(world), "--out", str(tmp_path / "page.html"), "--force"]) == 0
    assert (tmp_path / "page.html").exists()
    assert "page.html" in capsys.readouterr().out
    assert main(["report", str(tmp_path / "nothing")]) == 3
    assert "run python -m reproduction first" in capsys.readouterr().err


def test_markdown_has_figures_tables_and_claims(world, drawn_once, tmp_path):
    page = write_docs(world, tmp_path)
    text = page.read_text()
    images = re.findall(r"!\[[^]]+\]\((.*)\)", text)
    assert len(images) == 4
    assert all((tmp_path / name).stat().st_size > 5000 for name in images)
    assert text.count("**Does not hold in this quick run with 3 trials.**") == 1
    assert "**Holds.**" not in text
    assert "| data | statistic |" in text
    for name in ("figure1", "speed", "datasets", "runs", "risk"):
        assert (tmp_path / "reproduction" / f"{name}.csv").exists()
    with (tmp_path / "reproduction" / "risk.csv").open() as file:
        rows = list(csv.DictReader(file))
    (row,) = [r for r in rows if (r["set"], r["method"]) == ("sphere", "fast_ihs")]
    assert float(row["excess_risk"]) == pytest.approx(3e-5)
    assert row["trials"] == "3"
    (row,) = [r for r in rows if r["method"] == "ihm_paper" and r["set"] == "sphere"][:1]
    assert float(row["eta"]) == 0.0  # what the claim on the noise of sketches is asked of
    assert re.search(r"ε = 1 \(commit \S+; 20\d\d-\d\d-\d\d; load \d+; 3 fits each\)", text)


@pytest.fixture(scope="module")
def browser():
    api = pytest.importorskip("playwright.sync_api", reason="the page is opened with playwright")
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        pytest.skip("no chromium to open the page with; `make browser` installs it")
    with api.sync_playwright() as started:
        opened = started.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        yield opened
        opened.close()


#: Every figure is drawn: it has a size, lines, and its text lies inside it.
DRAWN = """
[...document.querySelectorAll('figure svg')].map(svg => {
  const box = svg.getBoundingClientRect();
  const texts = [...svg.querySelectorAll('text')];
  return {
    width: box.width, height: box.height,
    paths: svg.querySelectorAll('path').length,
    texts: texts.length,
    smallest: Math.min(...texts.map(t => t.getBoundingClientRect().height)),
    outside: texts.filter(t => {
      const b = t.getBoundingClientRect();
      return b.left < box.left - 2 || b.right > box.right + 2 || b.bottom > box.bottom + 2;
    }).length,
  };
})
"""


@pytest.mark.parametrize(
    ("width", "scheme", "media"),
    [(1280, "light", "screen"), (390, "dark", "screen"), (800, "dark", "print")],
)
def test_a_browser_shows_it(browser, page, width, scheme, media):
    opened = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
    opened.emulate_media(media=media, color_scheme=scheme)
    messages, requests = [], []
    opened.on("console", lambda message: messages.append(message.text))
    opened.on("pageerror", lambda error: messages.append(str(error)))
    opened.on("request", lambda request: requests.append(request.url))
    opened.goto(page.as_uri())
    opened.wait_for_load_state("networkidle")
    assert messages == []
    assert requests == [page.as_uri()]
    assert opened.evaluate("document.documentElement.scrollWidth") <= width
    cut = "[...document.querySelectorAll('.scroll')].filter(e => e.scrollWidth > e.clientWidth)"
    assert opened.evaluate(f"{cut}.length") == 0
    figures = opened.evaluate(DRAWN)
    assert len(figures) == 4
    for figure in figures:
        assert figure["width"] > 250
        assert figure["height"] > 250
        assert figure["paths"] > 20
        assert figure["texts"] > 10
        assert figure["outside"] == 0
        assert figure["smallest"] > 7.0
    ink, paper = opened.evaluate(
        "[getComputedStyle(document.querySelector('figure text')).fill,"
        " getComputedStyle(document.body).backgroundColor]"
    )
    dark = scheme == "dark" and media == "screen"
    light = [sum(map(int, re.findall(r"\d+", colour)[:3])) > 384 for colour in (ink, paper)]
    assert light == [dark, not dark]
