"""Summaries as tables with the names of R's broom, for tools that expect them."""

from importlib import import_module
from typing import Any


class Tidy:
    """Gives a summary the tables ``tidy`` and ``glance``."""

    title: str
    facts: tuple[tuple[str, str], ...]
    lines: tuple[Any, ...]
    level: float

    def tidy(self) -> Any:
        """Return one row per coefficient.

        Returns
        -------
        pandas.DataFrame, or list of dict without pandas
            Columns term, estimate, std.error, statistic, p.value, conf.low and conf.high. A
            coefficient that the data do not identify has an infinite standard error.
        """
        return _framed(
            {
                "term": line.name,
                "estimate": line.coef,
                "std.error": line.std_err,
                "statistic": line.z,
                "p.value": line.p_value,
                "conf.low": line.low,
                "conf.high": line.high,
            }
            for line in self.lines
        )

    def glance(self) -> Any:
        """Return one row about the whole fit.

        Returns
        -------
        pandas.DataFrame, or list of one dict without pandas
            The title, the facts above the table, how many coefficients there are, how many of them
            the data identify, and the level of the intervals.
        """
        slopes = [line for line in self.lines if not line.is_intercept]
        known = sum(line.identified for line in slopes)
        counts = {"coefficients": len(slopes), "identified": known, "conf.level": self.level}
        return _framed([{"title": self.title, **dict(self.facts), **counts}])


def _framed(rows: Any) -> Any:
    """Return rows as a data frame if pandas is installed, and as a list if not."""
    try:
        return import_module("pandas").DataFrame(rows)
    except ImportError:
        return list(rows)
