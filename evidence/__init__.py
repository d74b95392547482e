"""Where the numbers of the documentation come from: benchmark, table, figure, page.

``python -m evidence --list`` shows every step; docs/evidence.md says how to run them.
"""
