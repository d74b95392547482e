"""Numbers that the paper prints, and how ours compare."""

from __future__ import annotations

import math

__all__ = ["DATASETS", "SPEED", "STATISTICS", "compared", "relative_difference", "within"]

#: Relative difference from a number of the paper that counts as none.
_TOLERANCE = 0.01

STATISTICS = ("n", "d", "lambda_min", "lambda_max", "ols_mse", "mean_y2", "n_over_d")

#: The table of data statistics as printed: text, so that the number of digits is known.
#: ``lambda_min`` is None where the paper prints "< 1e-3".
DATASETS: dict[str, dict[str, str | None]] = {
    name: dict(zip(STATISTICS, values, strict=True))
    for name, values in {
        "beijing": ("16384", "9", None, "4435.30", "0.0006", "0.015", "1310.7"),
        "year_msd": ("131072", "90", None, "464.78", "0.004", "0.988", "1456.3"),
        "black_friday": ("131072", "81", None, "40022.54", "0.022", "0.281", "1618.2"),
        "sphere": ("524288", "32", "16166.42", "16637.76", "0.034", "0.045", "16384"),
        "correlated": ("524288", "32", "3.27", "18723.40", "0.0006", "0.039", "16384"),
        "rossman": ("524288", "28", None, "8390.50", "0.0249", "0.265", "18724.5"),
        "airline": ("4194304", "4", "0.685", "356246.3", "0.005", "0.006", "1048576"),
    }.items()
}

#: The table under Figure 2 and that of the Airline appendix: literal IHM's time over a method's,
#: for FastIHS (ratio None) and FastIHM at each ratio.
SPEED: dict[str, dict[int | None, float]] = {
    "black_friday": {None: 4.22, 4: 2.44, 100: 1.95, 200: 1.61},
    "beijing": {None: 6.89, 4: 3.12, 100: 2.38, 200: 1.94},
    "year_msd": {None: 7.10, 4: 2.51, 100: 1.70, 200: 1.53},
    "correlated": {None: 4.31, 4: 2.33, 400: 2.14, 800: 1.91},
    "rossman": {None: 5.13, 4: 3.01, 400: 2.63, 800: 2.40},
    "sphere": {None: 5.0, 4: 2.52, 400: 2.26, 800: 2.06},
    "airline": {None: 41.95, 4: 16.71, 600: 15.26, 1200: 14.18},
}


def relative_difference(name: str, statistic: str, value: float) -> float | None:
    """Return our number over the paper's, less 1; None where the paper prints no number."""
    printed = DATASETS.get(name, {}).get(statistic)
    return None if printed is None else value / float(printed) - 1.0


def within(name: str, statistic: str, value: float, tolerance: float = _TOLERANCE) -> bool:
    """Tell whether ours is within a tolerance of the paper's, or within its last printed digit.

    Parameters
    ----------
    name : str
        Data set.
    statistic : str
        One of `STATISTICS`.
    value : float
        Our number.
    tolerance : float, default 0.01
        Relative tolerance.

    Returns
    -------
    bool
        Whether the two agree; where the paper prints "< 1e-3", whether ours is below it.
    """
    printed = DATASETS[name][statistic]
    if printed is None:
        return value < 1e-3
    digits = len(printed.partition(".")[2])
    gap = abs(value - float(printed))
    return gap <= tolerance * float(printed) or gap <= 10.0**-digits * (digits > 0)


def compared(name: str, statistic: str, value: float) -> str:
    """Return ours beside the paper's as text, with a note where the paper cuts off digits."""
    printed, gap = DATASETS[name][statistic], relative_difference(name, statistic, value)
    if printed is None or gap is None:
        return f"{statistic} {value:.6g} against less than 0.001"
    unit = 10.0 ** len(printed.partition(".")[2])
    cut = abs(gap) > _TOLERANCE and math.floor(value * unit) == round(float(printed) * unit)
    note = ", the same when cut to its digits" if cut else ""
    return f"{statistic} {value:.6g} against {printed} ({gap:+.2%}{note})"
