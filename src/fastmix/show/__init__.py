"""Pages and notebook cards: HTML from public and released values, with no dependency."""

from fastmix.show.html import Interval, certificate_card, fit_card
from fastmix.show.summary import RegressionSummary, summarise, summary_title
from fastmix.show.svg import curve_chart, interval_chart

__all__ = [
    "Interval",
    "RegressionSummary",
    "certificate_card",
    "curve_chart",
    "fit_card",
    "interval_chart",
    "summarise",
    "summary_title",
]
