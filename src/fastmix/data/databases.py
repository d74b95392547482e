"""Queries of databases, read once as an Arrow stream: one statement sees one state of the data.

An address may hold a password.  It is kept out of names, messages and representations; what a
driver says is never passed on, because it may quote the address, the query or a value.
"""

import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

from fastmix.data.stored import package, without_values
from fastmix.data.streams import Stream, reader_of
from fastmix.errors import DataError

_POSTGRES = ("postgresql://", "postgres://")
_DUCKDB = "duckdb:"
#: An address of PostgreSQL: user, perhaps with a password, hosts and ports, name, options.
_HOST = r"(?:[\w.%-]*|\[[\w:.%]*\])(?::[0-9]*)?"
_ADDRESS = re.compile(
    r"postgres(?:ql)?://(?:(?P<user>[^:@/?#]*@)|[^@/?#]*@)?"
    rf"(?P<host>{_HOST}(?:,{_HOST})*)(?:/(?P<name>[^@/?#]*))?(?:\?[^@#]*)?"
)

#: What is wrong, by the beginning of the SQLSTATE that PostgreSQL gives: public, as the query is.
_REASONS = {
    "42601": "the query is not valid SQL",
    "42P01": "a table of the query does not exist, or its schema is not in the search path",
    "42703": "a column of the query does not exist",
    "42501": "the user may not read a table of the query",
    "25006": "the query changes data; fastmix reads only",
    "42": "the query does not fit the tables of the database",
    "57014": "the server cancelled the query",
}
#: The same by the names of DuckDB's errors.
_DUCK_REASONS = {
    "ParserException": _REASONS["42601"],
    "CatalogException": _REASONS["42P01"],
    "BinderException": _REASONS["42703"],
    "InvalidInputException": _REASONS["25006"],
    "IOException": "the file is not a DuckDB database, or another program has it open",
}


class Secret:
    """A text that no message and no traceback shows."""

    def __init__(self, text: str) -> None:
        self.reveal: Callable[[], str] = lambda: text

    def __repr__(self) -> str:
        return "..."


class Query(Stream):
    """The records that a query of a database gives."""

    def __init__(self, address: str, query: str | None = None) -> None:
        self._address, self.query = Secret(address), query
        self._driver = _postgres if address.startswith(_POSTGRES) else _duckdb
        if self._driver is _duckdb:
            path = Path(address.removeprefix(_DUCKDB))
            self.files, name, self._shown = (path,), path.name, f"{_DUCKDB}{path}"
        else:
            name, self._shown = _without_password(address)
        super().__init__(
            name, lambda: self._driver(self._address, self.query or ""), again=True, ordered=False
        )

    def __str__(self) -> str:
        return self._shown

    def __repr__(self) -> str:
        return f"Query({self._shown!r})"

    def asked(self, query: str | None, memory: int) -> "Query":
        """Take the query, which a database needs, and the memory for its records."""
        if not (query or "").strip():
            raise ValueError(
                'query must say which records to read from a database, as in --query "select age, '
                'income from people"; got none.'
            )
        self.query, self._memory = query, memory
        return self

    def _reading(self) -> AbstractContextManager[None]:
        return without_values(lambda error: f"{self.name} could not be read: {_reason(error)}.")


def is_database(address: str) -> bool:
    """Tell whether a text is the address of a database."""
    return address.startswith((*_POSTGRES, _DUCKDB))


@contextmanager
def _postgres(address: Secret, query: str) -> Iterator[Any]:
    driver = package("adbc_driver_postgresql.dbapi", "PostgreSQL databases", "postgresql")
    with driver.connect(address.reveal()) as connection, connection.cursor() as cursor:
        cursor.execute("set transaction isolation level repeatable read read only")
        cursor.execute(query.strip().rstrip(";"))
        yield cursor.fetch_record_batch()


@contextmanager
def _duckdb(address: Secret, query: str) -> Iterator[Any]:
    driver = package("duckdb", "DuckDB files", "duckdb")
    path = Path(address.reveal().removeprefix(_DUCKDB))
    if not path.is_file():
        raise DataError(f"There is no file {str(path)!r}.")
    with driver.connect(str(path), read_only=True) as connection:
        yield reader_of(connection.sql(query))


def _reason(error: Exception) -> str:
    """Say what went wrong, by codes that depend on no value."""
    state = getattr(error, "sqlstate", None)
    if state is None and type(error).__module__.startswith("adbc"):
        return (
            "no connection to the server; check its address and port, the name of the database, "
            "user and password, and that the server runs"
        )
    known = [said for code, said in _REASONS.items() if (state or "").startswith(code)]
    return (known or [_DUCK_REASONS.get(type(error).__name__, "the query failed")])[0]


def _without_password(address: str) -> tuple[str, str]:
    """Return the name of a database, and its address without options and password.

    A user goes with a password; without one it stays, so that a shown command works as it is.

    Neither is shown of an address in which a password may begin or end elsewhere, because it has
    one of the characters @ / ? # as it is.
    """
    found = _ADDRESS.fullmatch(address)
    if found is None:
        return "postgresql", "postgresql://"
    user, host, name = (found[part] or "" for part in ("user", "host", "name"))
    return name or "postgresql", f"postgresql://{user}{host}{name and f'/{name}'}"
