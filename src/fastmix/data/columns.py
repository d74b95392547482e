"""Conversion of columns to numbers and to places in public lists, one value at a time.

A column has a declared type, and is converted as a whole, or it holds objects, which are converted
one by one.  Types are never taken from the values.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from fastmix._types import FloatArray
from fastmix.data.arrow import decoded, float_values, parts_of, pyarrow
from fastmix.schema.elements import DAY, MISSING, UNLISTED, PublicList, days, real

if TYPE_CHECKING:
    from fastmix.data.delimited import TextFormat

Codes = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Columns:
    """Columns of a table: numbers, NaN where missing, and codes of categories."""

    n: int
    numbers: dict[str, FloatArray]
    codes: dict[str, Codes]


@dataclass(frozen=True)
class Objects:
    """A column of objects; ``at``, if given, is the place of each row among them, -1 if missing."""

    values: Sequence[Any]
    at: npt.NDArray[np.integer[Any]] | None = None

    def __len__(self) -> int:
        return len(self.values if self.at is None else self.at)


def arrow_array(array: npt.NDArray[Any]) -> Any:
    """Return a NumPy array of numbers, booleans, dates or text as an Arrow array."""
    kind = array.dtype.kind
    if kind in "UST":
        return text_array(array if kind == "U" else array.tolist())
    if kind == "M":
        array = array.astype("M8[s]")  # rounds down
    elif kind == "f" and array.dtype.itemsize > 8:
        with np.errstate(over="ignore"):
            array = array.astype(np.float64)
    return pyarrow().array(array.astype(array.dtype.newbyteorder("="), copy=False))


def text_array(values: Any) -> Any:
    """Return text as an Arrow array; other objects are missing, and no character is refused."""
    pa = pyarrow()
    try:
        return pa.array(values, pa.large_string(), from_pandas=True)
    except (UnicodeError, pa.ArrowException):
        return pa.array(map(_readable, values), pa.large_string())


def _readable(value: Any) -> str | None:
    """Return text with a mark for each part that is not valid Unicode."""
    if isinstance(value, bytes):
        return bytes(value).decode(errors="replace")
    if not isinstance(value, str):
        return None
    return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def columns_of(
    table: Any,
    numbers: Iterable[str],
    categories: Mapping[str, Sequence[str]],
    text: "TextFormat",
) -> Columns:
    """Return columns of an Arrow table or record batch, or of a dict of columns.

    ``text`` says which numbers are dates, by which objects are converted, and how missing values
    are spelled.
    """
    dates, markers = dict(text.dates), dict(text.markers)
    n = table.num_rows if hasattr(table, "num_rows") else len(next(iter(table.values()), ()))
    return Columns(
        n,
        {
            name: _marked(table[name], _numbers(table[name], name in dates), markers.get(name))
            for name in numbers
        },
        {
            name: _marked(
                table[name], _codes(table[name], PublicList.of(levels)), markers.get(name)
            )
            for name, levels in categories.items()
        },
    )


def _marked(column: Any, values: Any, markers: Sequence[str] | None) -> Any:
    """Return values with the missing ones that public markers spell."""
    if not markers:
        return values
    missing = MISSING if values.dtype == np.int64 else np.nan
    return np.where(_codes(column, PublicList.of(markers)) >= 0, missing, values)


def _numbers(column: Any, date: bool) -> FloatArray:
    """Return a column as numbers, dates in days since 1970, and NaN for missing values."""
    if isinstance(column, Objects):
        with np.errstate(all="ignore"):
            values = np.fromiter(map(days if date else real, column.values), np.float64)
        return values if column.at is None else np.append(values, np.nan)[column.at]
    pa, column = pyarrow(), decoded(column)
    if pa.types.is_temporal(column.type):
        if pa.types.is_timestamp(column.type):  # a count has no time zone
            column = column.cast(pa.timestamp(column.type.unit))
            column = pa.compute.floor_temporal(column, unit="second")
        column = column.cast(pa.timestamp("s"), safe=False).cast(pa.int64())
        return float_values(column) / DAY
    return float_values(column)


def _codes(column: Any, listed: PublicList) -> Codes:
    """Return a column as places in a public list."""
    if isinstance(column, Objects):
        with np.errstate(all="ignore"):
            codes = np.fromiter(map(listed.place, column.values), np.int64)
        return codes if column.at is None else np.append(codes, MISSING)[column.at]
    parts = [_array_codes(part, listed) for part in parts_of(column)]
    return np.concatenate([np.empty(0, np.int64), *parts])


def _array_codes(array: Any, listed: PublicList) -> Codes:
    pa = pyarrow()
    types, kind = pa.types, array.type
    if types.is_decimal(kind):
        wide = kind if kind.bit_width >= 128 else pa.decimal128(kind.precision, kind.scale)
        array = array.cast(wide).dictionary_encode()
        kind = array.type
    if types.is_dictionary(kind):
        inner = array.dictionary
        if types.is_decimal(kind.value_type):
            inner = Objects(inner.to_pylist())
        own = _codes(inner, listed)
        return np.append(own, MISSING)[_places(array.indices)]
    if types.is_null(kind):
        return np.full(len(array), MISSING)
    keys: Mapping[Any, int] = listed.numbers
    if types.is_boolean(kind):
        array, keys = array.cast(pa.string()), listed.texts
    elif types.is_integer(kind):
        low, high = (0, 2**kind.bit_width - 1)
        if types.is_signed_integer(kind):
            low, high = -(2 ** (kind.bit_width - 1)), 2 ** (kind.bit_width - 1) - 1
        whole = {key: at for key, at in keys.items() if isinstance(key, int)}
        keys = {key: at for key, at in whole.items() if low <= key <= high}
    elif types.is_floating(kind):
        # Zero has no sign here, and an integer that float64 does not hold matches nothing.
        array = pa.compute.add(array.cast(pa.float64()), 0.0)
        keys = {key: at for key, at in keys.items() if _is_double(key)}
    else:
        array, keys = array.cast(pa.large_string()), listed.texts
    found = pa.compute.index_in(array, value_set=pa.array([*keys], array.type))
    places = np.append(np.fromiter(keys.values(), np.int64, len(keys)), UNLISTED)
    codes = places[_places(found)]
    empty = _empty(array).to_numpy(zero_copy_only=False).astype(bool)
    return np.where(empty & (codes < 0), MISSING, codes)


def _places(indices: Any) -> Codes:
    """Return places as integers, -1 for null."""
    places = indices.cast(pyarrow().int64()).fill_null(-1).to_numpy(zero_copy_only=False)
    return np.asarray(places, dtype=np.int64)


def _is_double(key: int | float) -> bool:
    try:
        return float(key) == key
    except OverflowError:
        return False


def _empty(array: Any) -> Any:
    """Return which entries are null, NaN or empty text."""
    pa = pyarrow()
    if pa.types.is_large_string(array.type) or pa.types.is_string(array.type):
        return pa.compute.fill_null(pa.compute.equal(array, ""), True)
    return array.is_null(nan_is_null=True)
