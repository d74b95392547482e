"""Which method a fit uses if none is asked for, from public quantities."""

#: From this many columns on a fast sketch is clearly cheaper than one Gram matrix.
_WIDE = 500


def choose_method(d: int, *, inference: bool = False) -> tuple[str, str]:
    """Return the method for d columns, the intercept included, and why."""
    if not inference:
        return "adaptive", (
            "adaptive: the minimiser of a perturbed objective, whose coordinates, clipping and "
            "ridge come from a small first release, adds the least error on most data."
        )
    if d < _WIDE:
        return "ihm", (
            f"ihm: it gives intervals, and with {d} columns (counting the intercept) one Gram "
            "matrix is cheap."
        )
    return "fast_ihm", (
        f"fast_ihm: it gives intervals, and with {d} columns, {_WIDE} or more, a Gram matrix of "
        "all rows is the larger part of a fit, which a fast sketch replaces."
    )
