"""Numbers that the paper prints, to stand beside ours."""

from __future__ import annotations

__all__ = ["DATASETS", "SPEED", "STATISTICS"]

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
