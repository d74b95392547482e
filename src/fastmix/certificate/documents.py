"""Certificates and models as JSON documents: written in full, read strictly, known by a digest."""

import hashlib
import json
import math
from dataclasses import asdict, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np

from fastmix.errors import DataError


def jsonable(value: Any) -> Any:
    """Replace infinities, which JSON has no word for, by strings."""
    if is_dataclass(value) and not isinstance(value, type):
        return jsonable(asdict(value))
    if isinstance(value, dict):
        return {key: jsonable(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [jsonable(item) for item in value]
    if isinstance(value, np.generic):
        return jsonable(value.item())
    if isinstance(value, float) and not math.isfinite(value):
        return repr(value)
    return value


def write_document(data: dict[str, Any], indent: int | None = 2) -> str:
    """Return a document as JSON; every float is written in full."""
    return json.dumps(jsonable(data), indent=indent, allow_nan=False)


def read_text(file: Path) -> str:
    """Read a file of text."""
    try:
        return file.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise DataError(f"{file.name} must be text in UTF-8.") from None


def read_document(text: str) -> dict[str, Any]:
    """Return the entries of a JSON object.

    A document that names an entry twice is refused, because two readers could see two documents.
    """
    try:
        data = json.loads(text, object_pairs_hook=_entries, parse_constant=_no_constant)
    except RecursionError:
        raise ValueError("the document must not be nested so deeply.") from None
    if not isinstance(data, dict):
        raise ValueError("the document must be a JSON object.")
    return data


def digest(data: dict[str, Any], *, without: tuple[str, ...] = ()) -> str:
    """Return "sha256:" and the SHA-256 of a document, whatever its spaces and line ends.

    The order of its entries counts: it is that of the columns.
    """
    kept = {key: value for key, value in data.items() if key not in without}
    compact = json.dumps(jsonable(kept), separators=(",", ":"), allow_nan=False)
    return f"sha256:{hashlib.sha256(compact.encode('ascii')).hexdigest()}"


def _entries(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    entries = dict(pairs)
    if len(entries) != len(pairs):
        raise ValueError("the document must name every entry once.")
    return entries


def _no_constant(word: str) -> Any:
    raise ValueError(f"the document must hold finite numbers; it has {word}.")
