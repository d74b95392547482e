"""Files that commands write: nothing that exists is replaced unless it is asked for."""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
import pytest

from fastmix.cli._files import check_output, writing
from fastmix.cli.main import ExitCode

FIT = (
    "fit people.csv --target income --bounds bounds.toml --delta 1e-6 --method adassp "
    "--no-intervals"
)


def link(name):
    if name == "hard.csv":
        os.link("people.csv", name)
    elif name == "soft.csv":
        os.symlink("people.csv", name)
    elif name == "folder/people.csv":
        os.symlink(".", "folder")


@pytest.mark.parametrize(
    "name", ["people.csv", "./people.csv", "hard.csv", "soft.csv", "folder/people.csv"]
)
@pytest.mark.parametrize("force", ["", " --force"])
def test_predictions_never_replace_their_input(folder, run, name, force):
    assert run(FIT)[0] == 0
    link(name)
    before = Path("people.csv").read_bytes()
    code, _, err = run(f"predict model people.csv --out {name}{force}")
    assert code == ExitCode.USAGE
    assert "must not be a file that the command reads" in err
    assert Path("people.csv").read_bytes() == before


@pytest.mark.parametrize(
    "line",
    [
        "predict model people.csv --out kept.csv",
        "predict model people.parquet --out kept.parquet",
        "bounds people.csv --target income --out kept.toml",
        "audit --quick --plot kept.png",
        "ledger new kept.jsonl --epsilon 1 --delta 1e-6",
    ],
)
def test_a_file_that_exists_is_not_replaced(folder, run, line):
    if line.startswith("predict"):
        assert run(FIT)[0] == 0
    kept = [Path(f"kept.{ending}") for ending in ("csv", "parquet", "toml", "png", "jsonl")]
    for path in kept:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("mine")
    before = sorted(Path().rglob("*"))
    code, _, err = run(line)
    assert code == ExitCode.USAGE, err
    assert err.count("\n") == 1
    assert sorted(Path().rglob("*")) == before
    for path in kept:
        assert path.read_text() == "mine"


def test_with_force_a_file_is_replaced(folder, run):
    assert run(FIT)[0] == 0
    Path("p.csv").write_text("old")
    os.symlink("p.csv", "link.csv")
    assert run("predict model people.csv --out link.csv --force")[0] == 0
    assert Path("link.csv").is_symlink()
    assert Path("p.csv").read_text().startswith('"predicted_income"')
    Path("mine.toml").write_text("old")
    assert run("bounds people.csv --target income --out mine.toml --force")[0] == 0
    assert "[target]" in Path("mine.toml").read_text()
    assert list(Path().glob(".fastmix-*")) == []


@pytest.mark.parametrize(
    ("out", "said"),
    [
        ("nowhere/p.csv", "its folder does not exist"),
        ("model", "must end in"),
        ("p.xlsx", "must end in"),
        ("d.csv", "it is not a file"),
        ("people.csv/p.csv", "Not a directory"),
        ("x" * 300 + ".csv", "File name too long"),
    ],
)
def test_a_place_that_cannot_be_written_is_refused_at_once(folder, run, out, said):
    assert run(FIT)[0] == 0
    Path("d.csv").mkdir()
    code, _, err = run(f"predict model people.csv --out {out}")
    assert code in (ExitCode.USAGE, ExitCode.DATA)
    assert said in err


def test_a_capital_ending_keeps_its_name(folder, run):
    assert run(FIT)[0] == 0
    assert run("predict model people.csv --out P.PARQUET")[0] == 0
    assert pyarrow.parquet.read_table("P.PARQUET").num_rows == 4000
    assert not Path("P.PARQUET.parquet").exists()


def test_a_failure_leaves_what_was_there(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("old")

    def fail():
        with writing(path, force=True) as temporary:
            temporary.write_text("half")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert [(p.name, p.read_text()) for p in tmp_path.iterdir()] == [("a.txt", "old")]


def test_a_file_that_appears_meanwhile_is_not_replaced(tmp_path):
    path = tmp_path / "a.txt"
    check_output(path)

    def late():
        with writing(path) as temporary:
            temporary.write_text("new")
            path.write_text("mine")

    with pytest.raises(FileExistsError):
        late()
    assert path.read_text() == "mine"
    assert len(list(tmp_path.iterdir())) == 1


EVIL = "a\x1b[31m\u202e\nincome = [0, 1]"


def test_names_have_no_effect_on_the_terminal_the_page_or_the_bounds_file(folder, run):
    """Columns of a Parquet file with escape sequences, line ends and direction marks."""
    table = pyarrow.parquet.read_table("people.parquet")
    nested = pa.array([None] * table.num_rows, pa.struct([(EVIL, pa.int64())]))
    table = table.append_column(EVIL, table["age"]).append_column("nested", nested)
    pyarrow.parquet.write_table(table, "evil.parquet")
    code, out, _ = run("bounds evil.parquet --target income --features city")
    assert code == 0
    code, text, _ = run("bounds evil.parquet --target income")
    assert code == 0
    assert all(line.isprintable() for line in text.splitlines())
    assert text.count("\nincome = ") == 1
    filled = text.replace("= []  # a number", "= [0, 100000]  # a number")
    filled = filled.replace('= []  # a category: ["a", "b", ...]', '= ["Ulm", "Bonn\\u001b[2J"]')
    Path("evil.toml").write_text(filled)
    line = FIT.replace("people.csv", "evil.parquet").replace("bounds.toml", "evil.toml --out evil")
    code, out, err = run(line)
    assert code == 0, err
    code, more, err = run("explain evil --verify")
    assert code == 0
    code, again, failed = run(["fit", "evil.parquet", "--target", EVIL, "--bounds", "evil.toml"])
    assert code == ExitCode.USAGE
    page = Path("evil/report.html").read_text()
    for shown in (out, more, err, again, failed, page):
        assert all(part.isprintable() for part in shown.split("\n"))
    assert "\\x1b[31m\\u202e\\nincome" in out
    code, out, _ = run("ledger new b.jsonl --epsilon 9 --delta 1e-5 --json")
    assert out.isascii()


def test_a_certificate_has_no_effect_on_the_terminal(folder, run):
    assert run(FIT)[0] == 0
    path = Path("model/certificate.json")
    path.write_text(path.read_text().replace('"leaks": []', '"leaks": ["\\u001b[8m\\u202e"]'))
    code, out, _ = run("explain model --verify")
    assert code == ExitCode.CHECK_FAILED
    assert all(line.isprintable() for line in out.split("\n"))
    assert "\\x1b[8m\\u202e" in out
