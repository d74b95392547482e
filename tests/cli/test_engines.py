"""``fastmix fit`` where the data are: in memory, block by block, on a cluster."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fastmix.cli import _options as options
from fastmix.cli import fit as fit_module
from fastmix.cli.main import ExitCode
from fastmix.data.encode import encode, needed, table_bytes, table_chunks
from fastmix.data.read import read_columns
from fastmix.schema import read_bounds

FIT = "fit {} --target income --bounds bounds.toml --epsilon 1 --delta 1e-6 --json"


@pytest.fixture
def parts(folder):
    """A folder of files with the people of people.parquet."""
    table = pq.read_table(folder / "people.parquet")
    (folder / "parts").mkdir()
    half = table.num_rows // 2
    pq.write_table(table[:half], folder / "parts" / "a.parquet", row_group_size=100)
    pq.write_table(table[half:], folder / "parts" / "b.parquet")
    return folder / "parts"


@pytest.mark.parametrize("name", ["people.csv", "people.parquet", "parts"])
@pytest.mark.parametrize("rule", ["impute", "drop"])
@pytest.mark.parametrize("intercept", [True, False])
def test_chunks_of_a_table_are_its_encoding(name, rule, intercept, folder, parts, monkeypatch):
    monkeypatch.setattr("fastmix.data.arrow.BLOCK_BYTES", 1000)
    bounds = read_bounds(folder / "bounds.toml")
    bounds = type(bounds)(bounds.target, bounds.features, rule)
    X, y = encode(
        read_columns(folder / "people.parquet", *needed(bounds)), bounds, intercept=intercept
    )
    table = table_chunks(folder / name, bounds, intercept=intercept)
    read = [records for chunk in table.chunks for records in chunk.read()]
    np.testing.assert_array_equal(np.concatenate([part for part, _ in read]), X)
    np.testing.assert_array_equal(np.concatenate([part for _, part in read]), y)
    assert table.d == X.shape[1]
    assert table.n in (None, len(y))
    assert (table.n is None) == (rule == "drop" or name == "people.csv")


@pytest.mark.parametrize(
    "arguments",
    [
        ["people.csv", "--engine", "stream"],
        ["people.parquet", "--engine", "stream"],
        ["parts"],
        ["parts", "--engine", "dask"],
    ],
    ids=" ".join,
)
def test_engines(arguments, folder, parts, run):
    code, out, err = run([*FIT.format(arguments[0]).split(), *arguments[1:]])
    assert code == 0, err
    told = json.loads(out)
    assert told["n"] == pq.read_metadata(folder / "people.parquet").num_rows
    assert told["private"]
    code, out, _ = run("explain model --verify")
    assert code == 0


def test_large_tables_are_streamed_by_themselves(folder, run, monkeypatch):
    bounds = read_bounds(folder / "bounds.toml")
    rows = pq.read_metadata(folder / "people.parquet").num_rows
    width = len(bounds.columns()) + 1
    assert table_bytes(folder / "people.parquet", bounds) == 8 * rows * width
    assert table_bytes(folder / "people.csv", bounds) == (folder / "people.csv").stat().st_size
    streamed = []
    real = options.table_chunks

    def spy(*args, **kwargs):
        streamed.append(args[0].name)
        return real(*args, **kwargs)

    monkeypatch.setattr(options, "table_chunks", spy)
    assert run(FIT.format("people.parquet"))[0] == 0
    monkeypatch.setattr(fit_module, "_LARGE", 8 * rows * width - 1)
    assert run([*FIT.format("people.parquet").split(), "--force"])[0] == 0
    assert streamed == ["people.parquet"]


def test_engines_that_cannot_be(folder, run):
    code, _, err = run(FIT.format("people.csv") + " --engine spark")
    assert code == ExitCode.USAGE
    assert "engine must be one of" in err
    code, _, err = run(FIT.format("people.csv") + " --scheduler tcp://127.0.0.1:1")
    assert code == ExitCode.USAGE
    assert "scheduler must be given with --engine dask" in err
    code, _, err = run(
        "fit people.csv --target income --unsafe-bounds-from-data --engine stream --json"
    )
    assert code == ExitCode.USAGE
    assert "engine must be memory when bounds are taken from the data" in err
    assert not (folder / "model").exists()


def test_a_damaged_part_is_named(folder, parts, run):
    content = (parts / "b.parquet").read_bytes()
    (parts / "b.parquet").write_bytes(content[: len(content) // 2])
    code, _, err = run(FIT.format("parts"))
    assert code == ExitCode.DATA
    assert "b.parquet is damaged, or not what its name says." in err
    assert not (folder / "model").exists()


def test_a_folder_of_files_from_bounds_to_predictions(tmp_path, monkeypatch, run):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    whole = pa.table({"y": np.linspace(0, 9, 400), "a": np.linspace(0, 1, 400)})
    pq.write_table(whole.slice(0, 100), "folder/1.parquet")
    pq.write_table(whole.slice(100), "folder/2.parquet")
    pq.write_table(whole, "whole.parquet")
    code, out, err = run("bounds folder --target y")
    assert (code, err) == (0, "")
    assert out == run("bounds whole.parquet --target y")[1]
    (tmp_path / "b.toml").write_text("[target]\ny = [0, 9]\n[features]\na = [0, 1]\n")
    assert run("fit folder --target y --bounds b.toml")[0] == 0
    for data, out in (("folder", "one.csv"), ("whole.parquet", "two.csv")):
        code, _, err = run(f"predict model {data} --out {out}")
        assert (code, err) == (0, "")
    assert (tmp_path / "one.csv").read_text() == (tmp_path / "two.csv").read_text()
    code, _, err = run("predict model folder --out folder/2.parquet --force")
    assert (code, "must not be a file that the command reads" in err) == (2, True)
