"""Arrow streams: the one form in which databases, query engines and data frames hand over records.

A stream is read once, and its records are kept, so that all passes of a fit read the same records
in the same order.  Beyond a public limit of memory, only a stream that can be opened anew is read
in passes, and each pass must give what the first one gave.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any

from fastmix.data.arrow import column_kind, distinct, pyarrow
from fastmix.data.chunks import KEPT_BYTES
from fastmix.data.delimited import TextFormat
from fastmix.data.frames import is_lazy
from fastmix.data.stored import Stored, without_values
from fastmix.errors import DataError


class Stream(Stored):
    """Records of an Arrow stream; ``open`` gives a reader of them, as often as asked if ``again``.

    A stream that is not ``ordered`` may give its records in another order when it is opened again.
    """

    def __init__(
        self,
        name: str,
        open: Callable[[], AbstractContextManager[Any]],
        *,
        again: bool = False,
        ordered: bool = True,
        memory: int = KEPT_BYTES,
    ) -> None:
        self.name, self._open, self._memory = name, open, memory
        self._again, self._ordered = again, ordered
        self._kept: list[Any] | None = None

    def fields(self, text: TextFormat) -> dict[str, str]:
        schema = self._schema()
        distinct(self.name, schema.names)
        return {field.name: column_kind(field.type) for field in schema}

    def batches(self, numbers: list[str], texts: list[str], text: TextFormat) -> Iterator[Any]:
        names = [*numbers, *texts]
        if self._kept is None and not self.reopened:
            self._keep()
        if self._kept is not None:
            yield from (batch.select(names) for batch in self._kept)
            return
        with self._reading(), self._open() as reader:
            for batch in reader:
                yield plain(batch).select(names)

    def _schema(self) -> Any:
        if self._kept is None and self._again:
            with self._reading(), self._open() as reader:
                return plain(reader.schema.empty_table()).schema
        if self._kept is None:
            self._keep()
        return self._kept[0].schema  # type: ignore[index]

    def _keep(self) -> None:
        """Read all records, once, if they fit the memory that is public."""
        taken = 0
        with self._reading(), self._open() as reader:
            kept = [plain(reader.schema.empty_table())]
            for batch in reader:
                taken += batch.nbytes
                if taken > self._memory:
                    break
                kept.append(plain(batch))
        if taken <= self._memory:
            self._kept, self.rows = kept, sum(batch.num_rows for batch in kept)
        elif self._again and self._ordered:
            self.reopened = True
        else:
            raise DataError(
                f"{self.name} must fit {self._memory / 2**30:.3g} GiB of memory, because it is "
                "read once, so that all passes see the same records. Select fewer columns, give "
                "more memory (--memory), or write the records to a Parquet file and fit that."
            )

    def _reading(self) -> AbstractContextManager[None]:
        return without_values(f"The records of {self.name} could not be read.")


def is_stream(value: Any) -> bool:
    """Tell whether an object gives records as an Arrow stream, or opens one."""
    if hasattr(value, "get_columns") or hasattr(value, "iloc") or hasattr(value, "itercolumns"):
        return False  # a table in memory
    return (
        hasattr(value, "__arrow_c_stream__")
        or hasattr(value, "fetch_record_batch")
        or hasattr(value, "scanner")
        or hasattr(value, "to_reader")
        or is_lazy(value)
        or callable(value)
    )


def stream_of(value: Any) -> Stream:
    """Return the records of a stream; a callable or a dataset can be opened for each pass."""
    again = callable(value) or hasattr(value, "scanner")
    return Stream("X", lambda: reader_of(value() if callable(value) else value), again=again)


def reader_of(value: Any) -> Any:
    """Return a reader of record batches."""
    pa = pyarrow()
    if hasattr(value, "iloc"):  # Arrow would infer the types of its objects from all values
        raise DataError("X must open an Arrow stream. Pass a data frame of pandas as it is.")
    if hasattr(value, "scanner"):  # a dataset of Arrow
        value = value.scanner()
    if hasattr(value, "to_reader"):  # its scanner, or a table
        return value.to_reader()
    if is_lazy(value) and not hasattr(value, "__arrow_c_stream__"):
        value = value.collect()
    if hasattr(value, "__arrow_c_stream__"):
        return pa.RecordBatchReader.from_stream(value)
    if hasattr(value, "fetch_record_batch"):  # a cursor
        return value.fetch_record_batch()
    raise DataError("X must be an Arrow stream, or a callable that opens one.")


def plain(batch: Any) -> Any:
    """Return records in types of Arrow itself: what extensions of a database hold, by its type."""
    pa = pyarrow()
    for at, field in enumerate(batch.schema):
        column, padded = batch.column(at), (field.metadata or {}).get(b"POSTGRESQL:type")
        if isinstance(field.type, pa.BaseExtensionType):
            column = _storage(column)
            if getattr(field.type, "type_name", "") == "numeric":
                column = column.cast(pa.float64())
            elif pa.types.is_fixed_size_binary(column.type):  # an id
                hexes = [None if each is None else each.hex() for each in column.to_pylist()]
                column = pa.array(hexes, pa.string())
        elif padded == b"bpchar":  # spaces at its end mean nothing
            column = pa.compute.utf8_rtrim_whitespace(column)
        else:
            continue
        batch = batch.set_column(at, field.name, column)
    return batch


def _storage(column: Any) -> Any:
    """Return what a column of an extension type consists of."""
    if not hasattr(column, "chunks"):
        return column.storage
    parts = [part.storage for part in column.chunks]
    return pyarrow().chunked_array(parts, column.type.storage_type)
