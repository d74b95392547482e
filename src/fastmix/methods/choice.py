"""Which method a fit uses if none is asked for, from public sizes."""

#: From this many columns on a fast sketch is clearly cheaper than one Gram matrix.
_WIDE = 500


def choose_method(d: int) -> tuple[str, str]:
    """Return the method for d columns, the intercept included, and why."""
    if d < _WIDE:
        return "ihm", (
            f"ihm: with {d} columns (counting the intercept) one Gram matrix is cheap, and on "
            "most data ihm adds the least error."
        )
    return "fast_ihm", (
        f"fast_ihm: with {d} columns, {_WIDE} or more, a Gram matrix of all rows is the "
        "larger part of a fit, and a fast sketch replaces it."
    )
