"""Persons with several rows: which rows count, and with which weight.

Ids are hashed with a secret key where they lie, and only the hashes are compared.  Rows beyond the
cap are left out by a random choice inside the person, which depends on the key, the person's own
id and the number of the person's own rows, and on nothing about anybody else: a stream of random
numbers that all persons share would let one person change the rows of another
(docs/proofs/people.md, Section 5).
"""

import hashlib
import secrets
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from numbers import Integral, Real
from typing import Any

import numpy as np
import numpy.typing as npt

from fastmix._types import BoolArray, FloatArray
from fastmix.data.weights import on_grid
from fastmix.errors import DataError

#: Bytes of a hash of an id: two persons share one with probability 1e-26 among a million.
_BYTES = 16

#: The one sentence about bad ids: neither a value nor a place.
_MESSAGE = (
    "groups must hold an id in every row, and all ids must be integers, or all must be text that "
    "is not empty."
)


class InvalidGroupError(DataError):
    """Ids of persons that cannot be told apart surely; the message quotes none of them."""

    def __init__(self) -> None:
        super().__init__(_MESSAGE)


def new_key() -> bytes:
    """Return a fresh secret key."""
    return secrets.token_bytes(32)


@dataclass(frozen=True)
class Hashed:
    """Hashed ids of consecutive rows, and whether they are "integers" or "text"."""

    kind: str
    hashes: npt.NDArray[Any]


def hash_ids(ids: Any, key: bytes) -> Hashed:
    """Return ids as keyed hashes; refuse missing ids and mixed kinds without quoting them."""
    try:
        # NumPy would make text of numbers that stand beside text in a list.
        array = np.asarray(ids, dtype=object if isinstance(ids, (list, tuple)) else None)
    except Exception:
        array = None
    if array is None or array.ndim != 1 or np.ma.is_masked(ids):
        raise InvalidGroupError
    if array.dtype.kind in "iu":
        distinct, places = np.unique(array, return_inverse=True)
        names, kind = [str(int(each)) for each in distinct], "integers"
    elif array.dtype.kind == "f":
        # What pandas makes of integers beside missing ones.
        whole = np.isfinite(array) & (np.abs(np.nan_to_num(array)) < _exact(array.dtype))
        if not whole.all() or not (array == np.rint(array)).all():
            raise InvalidGroupError
        distinct, places = np.unique(array.astype(np.int64), return_inverse=True)
        names, kind = [str(int(each)) for each in distinct], "integers"
    elif array.dtype.kind in "UTO":
        try:
            return _hash_objects(array.tolist(), key)
        except Exception:  # an object whose hash or comparison fails
            raise InvalidGroupError from None
    else:
        raise InvalidGroupError
    return Hashed(kind, _hashes(names, kind, key)[places])


def joined(parts: Sequence[Hashed]) -> Hashed:
    """Return the hashes of consecutive parts as one."""
    full = [part for part in parts if len(part.hashes)]
    if not full:
        return Hashed("integers", np.empty(0, dtype=f"V{_BYTES}"))
    if len({part.kind for part in full}) > 1:
        raise InvalidGroupError
    return Hashed(full[0].kind, np.concatenate([part.hashes for part in full]))


def _hash_objects(ids: Sequence[Any], key: bytes) -> Hashed:
    """Return text, or integers that lie among objects, as keyed hashes."""
    kinds = set(map(type, ids))
    names: dict[Any, str] = {}
    if not kinds:
        return joined([])
    if all(issubclass(kind, str) for kind in kinds):
        kind, names = "text", {each: str(each) for each in set(ids)}
        if any(not name.strip() for name in names.values()):
            raise InvalidGroupError
    elif all(map(_is_number, kinds)):
        kind = "integers"
        # Of each type: a set of all takes numbers that are equal for one, whatever their types.
        if not all(map(_is_whole, set(zip(map(type, ids), ids, strict=True)))):
            raise InvalidGroupError
        names = {each: str(int(each)) for each in set(ids)}
    else:
        raise InvalidGroupError
    distinct = {each: i for i, each in enumerate(names)}
    places = np.fromiter((distinct[each] for each in ids), np.int64, len(ids))
    return Hashed(kind, _hashes(list(names.values()), kind, key)[places])


def _is_number(kind: type) -> bool:
    number = issubclass(kind, (Integral, Real, Decimal))
    return number and not issubclass(kind, (bool, np.bool_, np.timedelta64))


def _exact(kind: Any) -> float:
    """Return where integers begin that a type of floats rounds: ids beyond it may be merged."""
    return min(2.0 ** (np.finfo(kind).nmant + 1), 2.0**53)


def _is_whole(typed: tuple[type, Any]) -> bool:
    """Tell whether a number of a type is an integer, and not one that the type may have rounded."""
    kind, number = typed
    try:
        most = _exact(kind) if issubclass(kind, (float, np.floating)) else 2**63
        return bool(abs(number) < most) and bool(number == int(number))
    except Exception:  # NaN, in some types
        return False


def _hashes(names: Sequence[str], kind: str, key: bytes) -> npt.NDArray[Any]:
    digests = (
        hashlib.blake2b(
            f"{kind}:{name}".encode(errors="surrogatepass"), key=key, digest_size=_BYTES
        )
        for name in names
    )
    return np.frombuffer(b"".join(each.digest() for each in digests), dtype=f"V{_BYTES}")


@dataclass(frozen=True)
class Persons:
    """How many persons there are, and the weight of each row: those of a person add up to 1.

    ``rows`` is the public number of rows, also of those that do not count and have no weight here,
    ``most_rows`` how many of a person count at most. ``codes`` number the person of each row; they
    are None where each row is a person of its own, as rows with sample weights are.
    """

    count: int
    weights: FloatArray
    rows: int | None = None
    most_rows: int = 1
    codes: npt.NDArray[np.int64] | None = None

    def of_rows(self, chosen: slice | BoolArray) -> "Persons":
        """Return the weights and persons of some rows."""
        codes = None if self.codes is None else self.codes[chosen]
        return replace(self, weights=self.weights[chosen], codes=codes)


def person_weights(
    parts: Iterable[Hashed], most_rows: int, key: bytes, *, public: bool = False
) -> Persons:
    """Return the weights of the rows of all parts together, at most ``most_rows`` per person.

    A person of m rows keeps min(m, k) of them, each with the weight 1/min(m, k). If the number of
    persons is ``public``, sums of weights are exact whatever it is.
    """
    hashes = joined(list(parts)).hashes
    if not len(hashes):
        raise DataError("the data must have at least one row to fit.")
    pairs = np.ascontiguousarray(hashes).view(np.uint64).reshape(-1, 2)
    # By person, and within a person in the order of the table.
    order = np.lexsort((pairs[:, 1], pairs[:, 0]))
    changes = np.flatnonzero((pairs[order[1:]] != pairs[order[:-1]]).any(axis=1)) + 1
    starts = np.concatenate(([0], changes))
    sizes = np.diff(np.concatenate((starts, [len(order)])))
    kept = np.minimum(sizes, most_rows)
    # A hair less than their share, so that the weights of a person add up to at most 1.
    shares = (1.0 - (kept + 2.0) * 2.0**-52) / kept
    weights = np.zeros(len(order))
    grid = on_grid(shares, most_rows, len(starts) if public else 1)
    weights[order] = np.repeat(grid, sizes)
    for start, size in zip(starts[sizes > most_rows], sizes[sizes > most_rows], strict=True):
        rows = order[start : start + size]
        out = _left_out(hashes[rows[0]].tobytes(), int(size), most_rows, key)
        weights[rows[out]] = 0.0
    codes = np.empty(len(order), dtype=np.int64)
    codes[order] = np.repeat(np.arange(len(starts)), sizes)
    return Persons(len(starts), weights, len(weights), most_rows, codes)


def counted_weights(
    rows: int,
    hashed: Sequence[Hashed] | None,
    most_rows: int | None,
    weights: FloatArray | None,
    key: bytes,
) -> Persons:
    """Return how much rows count: by persons, by sample weights in [0, 1], or by their product."""
    persons = Persons(rows, np.ones(rows), rows, 1 if hashed is None else most_rows or 1)
    if hashed is not None and rows:  # an empty table has no persons
        persons = person_weights(hashed, most_rows or 1, key)
    if weights is None:
        return persons
    return replace(persons, weights=on_grid(persons.weights * weights, most_rows or 1))


def _left_out(person: bytes, size: int, most_rows: int, key: bytes) -> npt.NDArray[np.int64]:
    """Return which of a person's rows are left out, from the key and what is the person's own."""
    seed = hashlib.blake2b(b"rows:" + person, key=key, digest_size=32).digest()
    draw = np.frombuffer(hashlib.shake_256(seed).digest(8 * size), dtype=np.uint64)
    return np.argsort(draw, kind="stable")[most_rows:]
