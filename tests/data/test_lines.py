"""Lines of CSV files: what a record becomes depends on its own line, or the file is refused."""

from __future__ import annotations

import gzip
import subprocess
import sys

import numpy as np
import pytest

from fastmix.data import delimited
from fastmix.data.delimited import TextFormat
from fastmix.data.encode import encode, needed, table_chunks
from fastmix.data.lines import CSV_BYTES
from fastmix.data.read import read_columns
from fastmix.errors import DataError
from fastmix.schema import Category, Number, PublicBounds
from fastmix.schema.elements import MISSING, UNLISTED

REFUSED = "t.csv: every line must be one record"

BOUNDS = PublicBounds(
    Number("y", 0, 10), (Number("x", 0, 10), Category("city", ('a "b"', "u, v", "w")))
)


def matrix(path, text=None, bounds=BOUNDS):
    columns = read_columns(path, *needed(bounds), text or TextFormat())
    return np.column_stack(encode(columns, bounds))


def in_blocks(path, text=None, bounds=BOUNDS):
    (chunk,) = table_chunks(path, bounds, text=text).chunks
    return np.vstack([np.column_stack(block) for block in chunk.read()])


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ('1,2,"w"', 2),
        ('1,2,"a ""b"""', 0),
        ('1,2,a "b"', 0),
        ('"1","2","u, v"', 1),
        ('1,2,"w"\r', 2),
        ("1,2,\0", UNLISTED),
        ("1,2,w\u2028\x0b\x0c\x85", UNLISTED),
        ("1,2,'w", UNLISTED),
        ("1,2,", MISSING),
    ],
)
def test_a_line_is_a_record(tmp_path, line, code):
    path = tmp_path / "t.csv"
    path.write_bytes(f"y,x,city\n3,4,w\n{line}\n5,6,w\n".encode())
    found = read_columns(path, *needed(BOUNDS))
    assert found.numbers["y"].tolist() == [3, 1, 5]
    assert found.codes["city"].tolist() == [2, code, 2]


@pytest.mark.parametrize(
    "line",
    [
        '1,2,"w',
        '1,"2,w',
        '"1,2,w',
        '1,2,"w"x',
        '1,2,"w""',
        '1,2,"w" ',
        '1,2,"',
        '1,2,"u\nv"',
        '1,2,"u\rv"',
        "1,2,w\r5,6,w",
        "1,2,w\r\r",
        "\r1,2,w",
        "",
        "\r",
    ],
)
@pytest.mark.parametrize("place", ["first", "middle", "last", "end"])
def test_a_line_that_is_not_a_record_is_refused_wherever_it_is(tmp_path, monkeypatch, line, place):
    monkeypatch.setattr(delimited, "CSV_BYTES", 64)
    others = ["3,4,w\n"] * 40
    lines = [*others]
    lines.insert({"first": 0, "middle": 20}.get(place, 40), line + "\n" * (place != "end"))
    if place == "end" and not line:
        return  # nothing after the last line feed
    path = tmp_path / "t.csv"
    path.write_bytes(b"y,x,city\n" + "".join(lines).encode())
    for read in (matrix, in_blocks):
        with pytest.raises(DataError, match=REFUSED) as raised:
            read(path)
        assert raised.value.__suppress_context__ or raised.value.__context__ is None


def test_one_stray_quote_removes_no_other_record(tmp_path):
    """Read as one field up to the next quote, it removed 19,000 records without a word."""
    lines = ["5,0.5,w\n"] * 20_000
    lines[19_000] = '5,0.5,"w"\n'
    path = tmp_path / "t.csv"
    path.write_text("y,x,city\n" + "".join(lines))
    assert len(matrix(path)) == 20_000
    lines[7] = '5,0.5,"w\n'
    path.write_text("y,x,city\n" + "".join(lines))
    with pytest.raises(DataError, match=REFUSED):
        matrix(path)


@pytest.mark.parametrize("at", [0, 150_000, 299_999])
def test_a_quoted_line_break_is_refused_in_files_of_every_size(tmp_path, at):
    lines = ["5,0.5,w\n"] * 300_000
    lines[at] = '5,0.5,"u\nv"\n'
    path = tmp_path / "t.csv"
    for kept in (lines[at : at + 1], lines):
        path.write_text("y,x,city\n" + "".join(kept))
        with pytest.raises(DataError, match=REFUSED):
            matrix(path)


@pytest.mark.parametrize("rows", [0, 1, 2, 3, 50])
def test_the_longest_line_does_not_depend_on_its_place(tmp_path, monkeypatch, rows):
    monkeypatch.setattr(delimited, "CSV_BYTES", 64)
    path = tmp_path / "t.csv"
    for length, fits in ((64, True), (65, False)):
        line = f"1,2,{'z' * (length - 5)}\n"
        path.write_text("y,x,city\n" + "3,4,w\n" * rows + line + "5,6,w\n")
        if fits:
            assert len(matrix(path)) == len(in_blocks(path)) == rows + 2
            continue
        for read in (matrix, in_blocks):
            with pytest.raises(DataError, match=REFUSED):
                read(path)


def test_a_header_is_one_line(tmp_path):
    path = tmp_path / "t.csv"
    for header in ('y,x,"city', 'y,"x,city', "y,x\r,city", 'y,x,"ci\nty"', "y,x,city\r3,4,w\r"):
        path.write_bytes(header.encode() + b'\n3,4,w\n5,6,"w"\n')
        with pytest.raises(DataError, match=REFUSED):
            matrix(path)


@pytest.mark.parametrize("mark", [True, False])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16-le", "utf-16-be", "utf-32-le"])
def test_a_mark_does_not_hide_a_quote(tmp_path, mark, encoding):
    path = tmp_path / "t.csv"
    text = TextFormat(encoding=encoding)
    start = "\ufeff" if mark else ""
    path.write_bytes((start + '"y","x","city"\n1,2,w\n').encode(encoding))
    assert matrix(path, text).tolist() == [[2, 0, 1, 0, 1]]
    path.write_bytes((start + '"y,x,city\n1,2,w\n3,4,"w"\n').encode(encoding))
    with pytest.raises(DataError, match=REFUSED):
        matrix(path, text)


def test_one_column_may_have_empty_lines(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("y\n1\n\n2\n\n")
    found = read_columns(path, ["y"], {}).numbers["y"]
    np.testing.assert_array_equal(found, [1, np.nan, 2, np.nan])


@pytest.mark.parametrize(
    "encoding", ["utf-7", "iso2022_jp", "hz", "unicode_escape", "raw_unicode_escape", "punycode"]
)
def test_an_encoding_must_write_every_line_by_itself(encoding):
    with pytest.raises(ValueError, match="encoding must be one such as"):
        TextFormat(encoding=encoding)


def test_a_file_of_two_byte_characters_must_not_end_in_half_of_one(tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes("y,x,city\n1,2,w\n3,4,w\n".encode("utf-16") + b"5")
    with pytest.raises(DataError, match="is not text in utf-16"):
        matrix(path)


#: Ways to write a file: line ends, separator, encoding, options, ending.
FORMS = [
    ("\n", ",", "utf-8", {}, ".csv"),
    ("\r\n", ",", "utf-8-sig", {}, ".csv"),
    ("\r\n", ";", "cp1252", {"encoding": "cp1252"}, ".csv"),
    ("\n", ";", "utf-8", {"thousands": "."}, ".csv.gz"),
    ("\n", "\t", "latin-1", {"encoding": "latin-1"}, ".tsv"),
    ("\r\n", "|", "utf-16", {"decimal": ","}, ".csv"),
    ("\n", ",", "shift_jis", {"encoding": "shift_jis"}, ".csv"),
]

#: Pieces that mean something to some reader.
PIECES = ['"', '""', "\r", ",", ";", "\t", "|", "w", "1", "2.5", "2,5", " ", "'", "\\", "\\n", "\0"]
PIECES += ['"w"', '"u, v"', "\u2028", "\x85", "\x1a", "é", "#", "nan", "", "1e999"]


def fields(rng, sep):
    city = rng.choice(["w", '"w"', '"u, v"', '"a ""b"""', "other", "", '"u;v|w"'])
    if sep == "," or "," not in city:
        return [str(rng.integers(10)), str(rng.integers(10)), city]
    return [str(rng.integers(10)), f'"{rng.integers(10)}"', city]


def changed(rng, sep):
    """Return one line of anything but a line feed: pieces, a record with a piece, or bytes."""
    kind = rng.integers(5)
    if kind == 0:
        return sep.join(rng.choice(PIECES, rng.integers(1, 6)))
    if kind == 1:
        return sep.join([*fields(rng, sep)[:2], "".join(rng.choice(PIECES, 2))])
    if kind < 4:
        line = sep.join(fields(rng, sep))
        at, to = sorted(rng.integers(len(line) + 1, size=2))
        return line[:at] + str(rng.choice(PIECES)) + line[to if rng.random() < 0.5 else at :]
    return rng.integers(256, size=rng.integers(12), dtype=np.uint8).tobytes().replace(b"\n", b"")


def one_change(path, rng, form):
    """Change one line of a table; return whether the file is read, after comparing the rest."""
    end, sep, encoding, options, _ = form
    text, rows = TextFormat(**options), int(rng.integers(2, 30))
    lines = [sep.join(fields(rng, sep)) for _ in range(rows)]
    at = int(rng.integers(rows))

    def written(line):
        head = end.join([sep.join(["y", "x", "city"]), *lines[:at]]) + end
        # An empty line is one if something ends it.
        ended = not line or rng.random() < 0.7
        tail = end.join(["", *lines[at + 1 :], *([""] if ended else [])])
        # A mark comes once, at the start.
        inner = {"utf-16": "utf-16-le", "utf-8-sig": "utf-8"}.get(encoding, encoding)
        middle = line if isinstance(line, bytes) else line.encode(inner, "replace")
        if inner == "utf-16-le":
            middle = middle.replace(b"\n\0", b"")
        content = head.encode(encoding) + middle + tail.encode(inner)
        path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)

    written(lines[at])
    expected = np.delete(matrix(path, text), at, axis=0)
    written(changed(rng, sep))
    read = True
    for reader in (matrix, in_blocks):
        try:
            found = reader(path, text)
        except DataError:
            read = False
            continue
        assert len(found) == rows
        np.testing.assert_array_equal(np.delete(found, at, axis=0), expected)
    return read


@pytest.mark.parametrize("count", [200, pytest.param(20_000, marks=pytest.mark.slow)])
def test_a_changed_line_changes_no_other_record(tmp_path, monkeypatch, count):
    """Neither the others' values nor how many they are, in every format and with any line."""
    monkeypatch.setattr(delimited, "CSV_BYTES", 128)
    rng = np.random.default_rng(20)
    read = 0
    for k in range(count):
        form = FORMS[k % len(FORMS)]
        read += one_change(tmp_path / f"t{form[-1]}", rng, form)
    assert 0.1 < read / count < 0.9  # both answers are tried


def test_a_process_ends_after_refused_files(tmp_path):
    """An error in a thread of Arrow, which reads ahead, kept it from ending."""
    (tmp_path / "t.csv").write_text("y,x\n" + "1,2\n" * 200 + '1,"2\n' + "1,2\n" * 200)
    code = """
import pathlib
from fastmix.errors import DataError
from fastmix.data import delimited
from fastmix.data.read import read_columns
from fastmix.data.read import csv_batches
delimited.CSV_BYTES = 128
path, names, refused = pathlib.Path("t.csv"), ["y", "x"], 0
for _ in range(100):
    for read in (lambda: read_columns(path, names, {}), lambda: list(csv_batches(path, names, []))):
        try:
            read()
        except DataError:
            refused += 1
print(refused)
"""
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, timeout=300
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "200\n", "")


def test_the_longest_line_is_a_block():
    assert delimited.CSV_BYTES == CSV_BYTES == 1 << 24
