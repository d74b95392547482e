"""Pages and notebook cards: HTML from public and released values, with no dependency."""

from fastmix.show.html import certificate_card, fit_card
from fastmix.show.report import FitFacts, fit_report
from fastmix.show.svg import Interval, curve_chart, interval_chart

__all__ = [
    "FitFacts",
    "Interval",
    "certificate_card",
    "curve_chart",
    "fit_card",
    "fit_report",
    "interval_chart",
]
