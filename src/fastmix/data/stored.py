"""Tables that are read as a whole: sheets, statistical files, queries, streams.

The bounds file decides how a column is read, or the type that the table declares; values never do.
"""

import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

from fastmix._validation import unchained
from fastmix.data.chunks import CHANGED
from fastmix.data.delimited import TextFormat
from fastmix.errors import DataError

#: Records that are converted at a time.
RECORDS = 1 << 16


class Stored(ABC):
    """A table that is read as a whole."""

    name: str  #: What messages, ledgers and certificates call it: no address, no password.
    rows: int | None = None  #: Number of records if it is known before they are read.
    #: Whether each pass opens the table anew, because it is too large for memory.
    reopened: bool = False
    files: tuple[Path, ...] = ()  #: Files that no command may replace.

    @abstractmethod
    def fields(self, text: TextFormat) -> dict[str, str]:
        """Return the kinds of the columns by name, as `table_fields` does."""

    def check_same(self, digest: bytes) -> None:
        """Refuse a pass whose records are not those of the first pass, in the same order."""
        first = self.__dict__.setdefault("_first_pass", digest)
        if first != digest:
            raise DataError(CHANGED)

    @abstractmethod
    def batches(self, numbers: list[str], texts: list[str], text: TextFormat) -> Iterator[Any]:
        """Yield some columns as Arrow tables or batches; there is one at least."""


class StoredFile(Stored):
    """A file that is read as a whole."""

    def __init__(self, path: Path) -> None:
        self.path, self.name, self.files = path, path.name, (path,)

    def _reading(self) -> AbstractContextManager[None]:
        return without_values(f"{self.name} is damaged, or not what its name says.")


@contextmanager
def without_values(said: str | Callable[[Exception], str]) -> Iterator[None]:
    """Replace the errors of readers, which may quote values, and silence their warnings."""
    with unchained(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            yield
        except (DataError, ImportError, MemoryError):
            raise
        except Exception as error:
            raise DataError(said if isinstance(said, str) else said(error)) from None


def package(name: str, what: str, extra: str) -> Any:
    """Return a package that an extra installs."""
    try:
        return import_module(name)
    except ImportError:
        message = f'{what} need the package {name}: pip install "fastmix[{extra}]".'
        raise ImportError(message) from None
