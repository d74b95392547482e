"""Levels of a column as they are counted for bounds that are found privately."""

import pyarrow as pa
import pytest

from fastmix.data.levels import text_counts


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string()])
def test_what_is_no_text_does_not_count(kind):
    """It raises no error, which would quote it, and no two such levels become one."""
    raw = pa.binary() if kind == pa.string() else pa.large_binary()
    values = [b"Ulm", b"\xff", b"", None, b"Ulm", b"\xfe", "Köln".encode()]
    column = pa.chunked_array([pa.array(values, raw).view(kind)])
    assert text_counts(column) == {"Ulm": 2.0, "Köln": 1.0}
