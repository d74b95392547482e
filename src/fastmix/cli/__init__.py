"""The command line: parse, call, print; no mathematics."""

from fastmix.cli.main import main

__all__ = ["main"]
