"""Tables in databases: a real PostgreSQL server and a real DuckDB file."""

from __future__ import annotations

import json
import re

import adbc_driver_postgresql.dbapi as adbc
import duckdb
import numpy as np
import pyarrow as pa
import pytest

import fastmix
from fastmix.data.databases import Query
from fastmix.data.read import read_columns
from fastmix.errors import DataError
from tests.servers import PASSWORD, USER, postgresql

BOUNDS = """
[target]
income = [0, 100000]
[features]
age = [0, 120]
city = ["Ulm", "Bonn", "Kiel"]
joined = [2010-01-01, 2025-12-31]
[missing]
markers = { age = [999] }
"""
SQL = "select person, age, city, joined, income from people"


def people(n=3000):
    rng = np.random.default_rng(5)
    age = rng.integers(18, 90, n)
    age[:9] = 999
    return pa.table({
        "person": rng.integers(0, 900, n),
        "age": age,
        "city": rng.choice(["Ulm", "Bonn", "Kiel"], n),
        "joined": (np.datetime64("2015-01-01") + rng.integers(0, 3000, n)).astype("M8[D]"),
        "income": np.round(20_000.0 + 300 * age + rng.normal(0, 2_000, n), 2),
    })  # fmt: skip


@pytest.fixture(scope="module")
def server():
    with postgresql() as address:
        with adbc.connect(address) as connection, connection.cursor() as cursor:
            cursor.adbc_ingest("people", people())
            cursor.execute("alter table people alter income type numeric(12, 2)")
            cursor.execute("alter table people alter city type char(6)")
            cursor.execute("create table odd (name text, u uuid, n numeric)")
            cursor.execute("insert into odd values ('x', gen_random_uuid(), 'NaN'), ('y', null, 1)")
            connection.commit()
        yield address


@pytest.fixture
def here(tmp_path, monkeypatch):
    (tmp_path / "bounds.toml").write_text(BOUNDS)
    with duckdb.connect(str(tmp_path / "people.db")) as connection:
        connection.register("made", people())
        connection.execute("create table people as select * from made")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def fit(address, *more, query=SQL):
    asked = ["--target", "income", "--bounds", "bounds.toml", "--query", query]
    return ["fit", address, *asked, *more]


def read(table):
    return read_columns(table, ["age", "income"], {"city": ("Ulm", "Bonn", "Kiel")})


def asked(address, query=SQL, memory=1 << 30):
    return Query(address).asked(query, memory)


def test_both_databases_hold_the_same_records(server, here):
    one, two = read(asked(server)), read(asked("duckdb:people.db"))
    for name in ("age", "income"):
        np.testing.assert_array_equal(one.numbers[name], two.numbers[name])
    np.testing.assert_array_equal(one.codes["city"], two.codes["city"])
    np.testing.assert_array_equal(one.numbers["income"], people()["income"].to_numpy())


@pytest.mark.parametrize("persons", [(), ("--person", "person", "--max-rows", "4")])
def test_commands_read_a_server(server, here, run, persons):
    assert run([*fit(server), "--out", "m", *persons])[0] == 0
    said = json.loads((here / "m" / "certificate.json").read_text())
    assert said["data"]["encoding"]["missing"]["markers"] == {"age": ["999"]}
    for line in (
        ["check", server, "--bounds", "bounds.toml", "--query", SQL],
        ["evaluate", "m", server, "--epsilon", "1", "--query", SQL, *persons],
        ["predict", "m", server, "--query", SQL, "--out", "p.csv"],
    ):
        code, out, err = run(line)
        assert code == 0, err
        assert PASSWORD not in out
    assert len((here / "p.csv").read_text().splitlines()) == 3001


def test_a_duckdb_file_is_fitted_and_kept(here, run):
    assert run([*fit("duckdb:people.db"), "--out", "m"])[0] == 0
    code, _, err = run(["bounds", "duckdb:people.db", "--target", "age", "--query", SQL,
                        "--out", "people.db", "--force"])  # fmt: skip
    assert code != 0
    assert "people.db" in err
    assert len(read(asked("duckdb:people.db")).numbers["age"]) == 3000


def test_no_password_is_written_or_said(server, here, run):
    assert run("ledger new l.jsonl --epsilon 5 --delta 1e-5")[0] == 0
    said = []
    for line in (
        ["bounds", server, "--target", "income", "--query", SQL, "--out", "b.toml"],
        [*fit(server), "--out", "m", "--ledger", "l.jsonl", "--delta", "1e-7"],
        [*fit(server.replace(PASSWORD, PASSWORD + "x")), "--out", "no"],
        [*fit(server.replace("@127.0.0.1", "@127.0.0.1:1,127.0.0.1")), "--out", "no"],
        [*fit(server.replace("/postgres", "/nothing")), "--out", "no"],
        [*fit(server, query="select nothing from people"), "--out", "no"],
        [*fit(server + f"?password={PASSWORD}&nonsense=1"), "--out", "no"],
        ["fit", "people.csv", server, "--target", "income"],
        ["fit", server, "--target", "income", "--bounds", "bounds.toml"],
        ["fit", server, "--target", "income", "--bounds", server, "--query", SQL],
        ["check", server, "--bounds", "bounds.toml", "--query", "selec"],
    ):
        said += run(line)[1:]
    files = [path.read_text() for path in here.rglob("*") if path.suffix not in (".db", "")]
    for text in (*said, *files, repr(asked(server)), str(asked(server)), repr(vars(asked(server)))):
        assert PASSWORD not in text
        assert USER not in text
    assert any("m" in text and '"file": "postgres"' in text for text in files)


@pytest.mark.parametrize(
    "address",
    [
        "postgresql://me:12#Sesam@host/db",
        "postgresql://me:12?Sesam@host/db",
        "postgresql://me:12/Sesam@host/db",
        "postgresql://me:12@Sesam@host/db",
        "postgresql://host/db?user=me&password=12@Sesam",
        "postgresql://me:Sesam@host:5432/db?password=Sesam",
        "postgresql://me:Sesam",
        "postgresql://me:Sesam/db",
    ],
)
def test_characters_that_end_an_address_do_not_show_a_password(address):
    """Other readers end user and password at other characters, and take the rest for a name."""
    table = Query(address)
    for text in (table.name, str(table), repr(table)):
        assert not re.search("Sesam|12|me:", text)
    assert str(Query("postgresql://me:Sesam@host:5432/db")) == "postgresql://host:5432/db"
    assert str(Query("postgresql://me@host/db?sslmode=require")) == "postgresql://me@host/db"


@pytest.mark.parametrize(
    "address",
    [
        "mysql://me:Sesam@host",
        "postgresql+psycopg2://me:Sesam@host",
        "POSTGRESQL://me:Sesam@host",
        "postgresql:/me:Sesam@host",
        "host=db password=Sesam",
    ],
)
def test_no_message_quotes_an_address_that_is_not_read(address, here, run):
    asked = ["--target", "income", "--bounds", "bounds.toml"]
    for line in (["fit", address, *asked], ["check", address, *asked[2:]]):
        code, out, err = run(line)
        assert code != 0
        assert "Sesam" not in out + err
    with pytest.raises(DataError) as raised:
        fastmix.PrivateLinearRegression().fit_parquet(address)
    assert "Sesam" not in str(raised.value)


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("selec", "not valid SQL"),
        ("select * from nothing", "does not exist"),
        ("select nothing from people", "a column of the query"),
        ("delete from people returning *", "reads only"),
        ("select 1 / (age - 999) as x from people", "the query failed"),
        ("select city::int as x from people", "the query failed"),
    ],
)
def test_errors_of_a_server_quote_nothing(server, query, said):
    with pytest.raises(DataError, match=said) as raised:
        read_columns(asked(server, query), ["x"], {})
    assert raised.value.__context__ is None
    assert all(word not in str(raised.value) for word in ("Ulm", "999", USER, "127.0.0.1"))


def test_a_query_is_read_once(server, here):
    """Records that others write between passes do not count: one statement sees one state."""
    table = asked(server, "select age, city, income from people")
    first = read(table)
    with adbc.connect(server) as connection, connection.cursor() as cursor:
        cursor.execute("insert into people values (1, 20, 'Ulm', '2020-01-01', 1.5)")
        connection.commit()
        again = read(table)
        cursor.execute("delete from people where income = 1.5")
        connection.commit()
    np.testing.assert_array_equal(first.numbers["income"], again.numbers["income"])


def test_what_does_not_fit_the_memory_is_refused_before_a_charge(server, here, run):
    run("ledger new l.jsonl --epsilon 5 --delta 1e-5")
    code, _, err = run([*fit(server), "--memory", "0.00001", "--ledger", "l.jsonl"])
    assert code == 3
    assert "GiB of memory" in err
    assert run("ledger show l.jsonl --json")[1].count("PrivateLinearRegression") == 0


def test_types_of_the_server(server):
    table = asked(server, "select * from odd order by name")
    found = read_columns(table, ["n"], {"name": ("x", "y")})
    np.testing.assert_array_equal(found.numbers["n"], [np.nan, 1.0])
    np.testing.assert_array_equal(found.codes["name"], [0, 1])


def test_streams_of_databases_fit(server, here):
    bounds = {"target": {"income": (0, 100_000)}, "features": {"age": (0, 120)}}
    given = {"epsilon": 1.0, "delta": 1e-6, "bounds": bounds, "random_state": 0}
    with duckdb.connect("people.db", read_only=True) as connection:
        one = fastmix.PrivateLinearRegression(**given).fit(connection.sql(SQL))
    with adbc.connect(server) as connection, connection.cursor() as cursor:
        cursor.execute(SQL)
        two = fastmix.PrivateLinearRegression(**given).fit(cursor)
    np.testing.assert_array_equal(one.coef_, two.coef_)
