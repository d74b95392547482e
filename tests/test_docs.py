"""Every code block of the documentation runs, and every link leads somewhere."""

from __future__ import annotations

import re
import shlex
import tomllib
from pathlib import Path

import pytest
from typer.main import get_command

from evidence.__main__ import make_parser as evidence_parser
from fastmix.cli import main
from fastmix.cli.app import make_app
from fastmix.schema import PublicBounds
from reproduction.command import make_parser as reproduction_parser

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
#: Modules that take minutes or hours: their commands are parsed only.
PARSERS = {"evidence": evidence_parser, "reproduction": reproduction_parser}
#: Commands of the shell that set up an environment; everything else must be `fastmix`, or one of
#: the modules above.
SETUP = ("pip install ", "make ", "git clone ", "cd ")
#: Commands that take minutes or other people's data, and have tests of their own: parsed only.
LONG = ("fastmix audit",)
#: Languages whose blocks are not run: directives of the documentation, and listings.
#: R has its own test, `test_r.py`.
NOT_CODE = ("{toctree}", "{eval-rst}", "{include} ../SECURITY.md", "text", "json", "bibtex", "r")


def name(page):
    return str(page.relative_to(ROOT))


def blocks(page):
    """Return (language, code) of the fenced blocks of a page, in order."""
    return re.findall(r"^```([^\n]*)\n(.*?)^```", page.read_text(), flags=re.DOTALL | re.MULTILINE)


def with_code(*languages):
    return [page for page in PAGES if any(lang in languages for lang, _ in blocks(page))]


def parse(arguments):
    """Parse a command without running it; an unknown option or a wrong value raises."""
    group = get_command(make_app())
    with group.make_context("fastmix", list(arguments)) as context:
        name, command, rest = group.resolve_command(context, list(arguments))
        command.make_context(name, list(rest), parent=context)


def test_blocks_say_what_they_are():
    known = {"python", "sh", "toml", "toml papers", *NOT_CODE}
    for page in PAGES:
        for language, _ in blocks(page):
            assert language in known, (name(page), language)


@pytest.mark.parametrize("page", with_code("python", "sh"), ids=name)
@pytest.mark.filterwarnings("ignore:FigureCanvasAgg is non-interactive")
def test_code_runs_in_order(page, folder, capsys):
    """A page is one session, in a folder with people.csv and bounds.toml."""
    import matplotlib.pyplot as plt

    plt.switch_backend("Agg")
    names: dict[str, object] = {"__name__": "page"}
    for language, code in blocks(page):
        if language == "toml papers":
            (folder / "papers.toml").write_text(code)
        elif language == "python":
            exec(compile(code, name(page), "exec", dont_inherit=True), names)
        elif language == "sh":
            for line in code.replace("\\\n", " ").splitlines():
                command = shlex.split(line, comments=True)
                if not command or line.startswith(SETUP):
                    continue
                if command[:2] == ["python", "-m"]:
                    PARSERS[command[2]]().parse_args(command[3:])
                    continue
                assert command[0] == "fastmix", line
                if line.startswith(LONG):
                    parse(command[1:])
                    continue
                assert main(command[1:]) == 0, (line, capsys.readouterr().err)
                if command[1] == "bounds":  # now the reader fills it in
                    filled = (folder / "bounds.toml").read_text()
                    (folder / command[command.index("--out") + 1]).write_text(filled)
    plt.close("all")
    if page.name == "README.md":
        assert names["model"].privacy_.private
        assert "differentially private" in capsys.readouterr().out


@pytest.mark.parametrize("page", with_code("toml"), ids=name)
def test_bounds_files_are_valid(page):
    for language, code in blocks(page):
        if language == "toml":
            assert PublicBounds.from_dict(tomllib.loads(code)).features


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#\s]+)\)", page.read_text()):
        if not target.startswith("https://"):
            assert (page.parent / target).exists(), target


@pytest.mark.parametrize("page", [*PAGES, ROOT / "CONTRIBUTING.md"], ids=name)
def test_tests_that_are_named_exist(page):
    for path in re.findall(r"\btests/[a-z0-9_/]+\.py\b", page.read_text()):
        assert (ROOT / path).exists(), path
