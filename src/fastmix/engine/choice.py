"""Which method a fit uses if none is asked for."""


def choose_method(d: int, *, inference: bool = False) -> tuple[str, str]:
    """Return the method for d columns, the intercept included, and why."""
    reason = (
        "adaptive: the minimiser of a perturbed objective, whose coordinates, clipping and "
        "ridge come from a small first release, adds the least error on most data"
    )
    return "adaptive", reason + (", and it has intervals." if inference else ".")
