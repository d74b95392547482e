"""The lines of a CSV file: one record per line, so that no record can change another.

A reader that lets quoted fields span lines reads everything up to the next quote as one field: a
stray quote in one record removes the records after it.  Here a line feed always ends a record.  A
line that other readers might join with the next, or split, is refused.
"""

import codecs
import io
import re
from functools import partial
from typing import Any

from fastmix.errors import DataError

#: Bytes of a file that are read at a time, and of its longest line.
CSV_BYTES = 16 << 20

#: Encodings in which a line is read by what stands in the lines before it, or may spell a line
#: feed in other characters.
_ACROSS_LINES = ("hz", "idna", "iso2022", "punycode", "raw-unicode", "unicode-", "utf-7")


def by_line(encoding: str) -> bool:
    """Tell whether an encoding decodes every line independently of the other lines."""
    return not codecs.lookup(encoding).name.startswith(_ACROSS_LINES)


def record_lines(sep: str, columns: int) -> "re.Pattern[bytes]":
    """Return the pattern of lines that are records, as bytes in UTF-8 with line feeds.

    A field that begins with a quote ends with one on the same line, and quotes inside it are
    doubled; in another field a quote is a character like others. Only in a table of one column may
    a line be empty: its value is missing.
    """
    mark = re.escape(sep.encode())
    field = rb'(?:"(?:[^"\r\n]++|"")*+"|[^"\r\n%b][^\r\n%b]*+|)' % (mark, mark)
    line = (b"" if columns == 1 else rb"(?!\n|\Z)") + field + rb"(?:%b%b)*+" % (mark, field)
    return re.compile(rb"(?:%b\n)*+(?:%b)?+" % (line, line))


def misread(name: str) -> DataError:
    """Build the error for a line that is not a record, without saying which."""
    return DataError(
        f"{name}: every line must be one record. A line must not be empty or longer than "
        f"{CSV_BYTES >> 20} MiB; a quote that opens a field must close it on the same line, with "
        "quotes inside it doubled; a carriage return must come right before a line feed. Correct "
        "the file, or save the table as Parquet, where values may contain line breaks."
    )


class Lines(io.RawIOBase):
    """A text file in UTF-8 that returns whole lines, after checking that each is a record."""

    def __init__(self, file: Any, name: str, sep: str, columns: int, encoding: str) -> None:
        self._more = file.read
        if codecs.lookup(encoding).name not in ("utf-8", "utf-8-sig"):
            self._more = partial(_decoded, file, codecs.getincrementaldecoder(encoding)())
        self.failure: Exception | None = None
        self._name, self._rest, self._ended = name, b"", False
        self._columns, self._records = columns, record_lines(sep, columns)

    def readable(self) -> bool:
        """Return True, for Arrow."""
        return True

    def read(self, size: int = -1) -> bytes:
        """Return whole lines of at most ``size`` bytes; empty at the end, and after an error.

        Arrow reads in threads of its own, where an error can keep the process from ending. The
        error is kept in ``failure``, for whoever opened the file.
        """
        if self.failure is not None:
            return b""
        try:
            return self._lines(size)
        except Exception as error:
            self.failure = error
            return b""

    def _lines(self, size: int) -> bytes:
        size = CSV_BYTES if size < 0 else size
        while len(self._rest) <= size and not self._ended:
            more = self._more(size)
            self._ended = more is None or len(more) == 0
            self._rest += more or b""
        end = len(self._rest) if len(self._rest) <= size else self._rest.rfind(b"\n", 0, size) + 1
        block, self._rest = self._rest[:end], self._rest[end:]
        if self._rest and not block:
            raise misread(self._name)
        self._check(block.replace(b"\r\n", b"\n") if b"\r" in block else block)
        return block

    def _check(self, block: bytes) -> None:
        """Refuse lines that are not records; look closer only where quotes or empty lines occur."""
        empty = self._columns > 1 and (block.startswith(b"\n") or b"\n\n" in block)
        if (empty or b'"' in block or b"\r" in block) and not self._records.fullmatch(block):
            raise misread(self._name)


def _decoded(file: Any, decoder: codecs.IncrementalDecoder, size: int) -> bytes | None:
    """Return the next characters of a file in UTF-8, None at its end."""
    while content := file.read(size):
        if text := decoder.decode(content):
            return text.encode()
    return decoder.decode(b"", final=True).encode() or None
