"""Figures and one self-contained HTML page, from results only."""

from reproduction.report.page import write_docs, write_report

__all__ = ["write_docs", "write_report"]
