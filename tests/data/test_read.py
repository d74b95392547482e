"""All formats give the same columns, and trouble is named without quoting the data."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet
import pytest

from fastmix.data.encode import encode
from fastmix.data.read import read_columns, table_fields, write_predictions
from fastmix.errors import DataError
from fastmix.files.template import bounds_template
from fastmix.schema import Category, Number, PublicBounds

BOUNDS = PublicBounds(
    Number("y", 0, 10), (Number("age", 0, 100, 30), Category("city", ("Ulm", "Bonn")))
)
Y = [1.0, 2.0, 30.0, None, 5.0]
AGE = [10.0, None, 50.0, 200.0, -5.0]
CITY = ["Ulm", "Bonn", "Rom", "", "Bonn"]
EXPECTED = np.array([[10, 0, 0], [30, 1, 0], [50, 0, 1], [100, 0, 1], [0, 1, 0.0]])


def table():
    return pa.table({"age": AGE, "city": CITY, "unused": [1] * 5, "y": Y})


def write(path):
    match path.suffix:
        case ".csv":
            pyarrow.csv.write_csv(table(), path)
        case ".parquet":
            pyarrow.parquet.write_table(table(), path)
        case ".feather":
            pyarrow.feather.write_feather(table(), path)
        case ".arrow":
            with pa.ipc.new_stream(str(path), table().schema) as writer:
                writer.write_table(table())
    return path


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".feather", ".arrow"])
@pytest.mark.parametrize("rule", ["impute", "drop"])
def test_every_format_gives_the_same_matrix(tmp_path, suffix, rule):
    path = write(tmp_path / f"t{suffix}")
    columns = read_columns(path, ["y", "age"], {"city": ("Ulm", "Bonn")})
    bounds = PublicBounds(BOUNDS.target, BOUNDS.features, rule)
    X, y = encode(columns, bounds)
    kept = slice(None) if rule == "impute" else [0, 2, 4]
    np.testing.assert_array_equal(X, EXPECTED[kept])
    np.testing.assert_array_equal(y, np.array([1, 2, 10, 5, 5.0])[kept])


def test_kinds_come_from_types_only(tmp_path):
    assert table_fields(write(tmp_path / "t.csv")) == dict.fromkeys(
        ["age", "city", "unused", "y"], "unknown"
    )
    expected = {"age": "number", "city": "text", "unused": "number", "y": "number"}
    assert table_fields(write(tmp_path / "t.parquet")) == expected


def test_codes_of_numbers_bools_and_dictionaries(tmp_path):
    path = tmp_path / "t.parquet"
    columns = {
        "i": pa.array([1, 2, None]),
        "b": pa.array([True, False, True]),
        "d": pa.array(["u", "v", None]).dictionary_encode(),
    }
    pyarrow.parquet.write_table(pa.table(columns), path)
    found = read_columns(path, ["b"], {"i": ["1", "2"], "d": ["v"]})
    assert found.numbers["b"].tolist() == [1.0, 0.0, 1.0]
    assert found.codes["i"].tolist() == [0, 1, -2]
    assert found.codes["d"].tolist() == [-1, 0, -2]


def test_encoding_without_an_intercept_has_every_category(tmp_path):
    columns = read_columns(write(tmp_path / "t.csv"), ["y", "age"], {"city": ("Ulm", "Bonn")})
    X, _ = encode(columns, BOUNDS, intercept=False)
    np.testing.assert_array_equal(X[:, 1:].sum(axis=1), 1.0)


def test_infinite_numbers_are_clipped(tmp_path):
    (tmp_path / "t.csv").write_text("y,age\ninf,-inf\n1,1e999\n")
    bounds = PublicBounds(Number("y", 0, 10), (Number("age", 0, 100),))
    X, y = encode(read_columns(tmp_path / "t.csv", ["y", "age"], {}), bounds)
    assert y.tolist() == [10.0, 1.0]
    assert X[:, 0].tolist() == [0.0, 100.0]


SECRET = "Rumpelstilzchen"


def broken(folder):
    """Yield files that cannot be read, all of which hold the secret."""
    (folder / "text.csv").write_text(f"y,age\n1,2\n3,{SECRET}\n")
    yield folder / "text.csv", "column 'age'"
    (folder / "ragged.csv").write_text(f"y,age\n1,2\n3,4,{SECRET}\n")
    yield folder / "ragged.csv", "as many fields"
    (folder / "latin.csv").write_bytes(b"y,age\xff\n" + SECRET.encode())
    yield folder / "latin.csv", "UTF-8"
    (folder / "twice.csv").write_text(f"y,age,age\n{SECRET},1,1\n")
    yield folder / "twice.csv", "different name"
    for suffix in ("parquet", "feather"):
        (folder / f"noise.{suffix}").write_text(SECRET * 100)
        yield folder / f"noise.{suffix}", "damaged"
    pyarrow.parquet.write_table(pa.table({"y": [1.0], "age": [SECRET]}), folder / "text.parquet")
    yield folder / "text.parquet", "must hold numbers"
    (folder / "missing.csv").write_text(f"y\n{SECRET}\n")
    yield folder / "missing.csv", "has no column 'age'"
    (folder / "table.ods").write_text(SECRET)
    yield folder / "table.ods", "must end in"
    yield folder / "nowhere.csv", "There is no file"


def test_trouble_is_named_without_quoting_the_data(tmp_path):
    for path, complaint in broken(tmp_path):
        with pytest.raises(DataError) as raised:
            read_columns(path, ["y", "age"], {})
        assert complaint in str(raised.value), path.name
        assert path.name in str(raised.value)
        assert SECRET not in str(raised.value)
        assert raised.value.__cause__ is None
        assert raised.value.__suppress_context__ or raised.value.__context__ is None


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".feather"])
def test_predictions_round_trip(tmp_path, suffix):
    values = np.array([1 / 3, -2e-17, 1e300])
    path = tmp_path / f"p{suffix}"
    write_predictions(path, "predicted", values)
    assert read_columns(path, ["predicted"], {}).numbers["predicted"].tolist() == values.tolist()


def test_predictions_need_a_known_format(tmp_path):
    with pytest.raises(DataError, match="must end in"):
        write_predictions(tmp_path / "p.txt", "predicted", np.zeros(2))


def test_the_first_line_of_a_text_file_is_not_quoted(tmp_path):
    """Without a header it is a record."""
    path = tmp_path / "a.csv"
    path.write_text("61.2345,Rumpelstilzchen\n1,2\n")
    with pytest.raises(DataError) as caught:
        read_columns(path, ["income"], {})
    assert str(caught.value) == (
        "a.csv has no column 'income' in its first line, which must name the columns, separated by "
        "commas."
    )
    with pytest.raises(DataError) as caught:
        bounds_template(table_fields(path), "income")
    assert "61.2345" not in str(caught.value)
    path.write_text("")
    with pytest.raises(DataError, match=r"a\.csv must have a first line that names the columns"):
        table_fields(path)


def test_missing_and_infinite_numbers_follow_the_public_rule(tmp_path):
    """In features and target alike: imputed or dropped, and infinity moved to the nearer bound."""
    path = tmp_path / "people.csv"
    path.write_text("age,y\n1,\n,2\nnan,3\ninf,-inf\n5,NaN\n7,8\n")
    numbers = Number("y", -10.0, 10.0), (Number("age", 0.0, 120.0),)
    for rule, expected in (
        ("impute", [[1, 0], [60, 2], [60, 3], [120, -10], [5, 0], [7, 8]]),
        ("drop", [[120, -10], [7, 8]]),
    ):
        bounds = PublicBounds(*numbers, rule)
        X, y = encode(read_columns(path, ["y", "age"], {}), bounds)
        np.testing.assert_array_equal(np.column_stack([X, y]), expected)
