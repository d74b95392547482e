"""``fastmix report``: figures and one HTML page from results."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fastmix.cli._files import check_output

__all__ = ["command", "run_report"]

EXAMPLES = ("fastmix report results --force",)


def command(
    results: Annotated[Path, typer.Argument(help="Folder that fastmix reproduce wrote.")] = Path(
        "results"
    ),
    out: Annotated[
        Path | None, typer.Option(help="The page; report.html in that folder by default.")
    ] = None,
    docs: Annotated[Path | None, typer.Option(help="Folder for a Markdown page as well.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace files that exist.")] = False,
) -> None:
    """Write one HTML page, with all figures, from results of fastmix reproduce."""
    page = results / "report.html" if out is None else out
    if results.is_dir():
        check_output(page, force=force)
    if docs is not None and docs.is_dir():
        check_output(docs / "reproduction.md", force=force)
    if (results / "figures").exists() and not force:
        raise ValueError(
            f"The folder {str(results / 'figures')!r} already exists. Pass --force to replace the "
            f"figures in it."
        )
    run_report(results, out=out, docs=docs)


def run_report(
    results: Path = Path("results"), *, out: Path | None = None, docs: Path | None = None
) -> None:
    """Draw figures and write the page from the results in a folder.

    Parameters
    ----------
    results : Path, default "results"
        Folder that ``fastmix reproduce`` wrote.
    out : Path, optional
        The page; by default ``report.html`` in that folder.
    docs : Path, optional
        Folder for a Markdown page as well, with figures and small tables beside it.
    """
    from fastmix.report import write_docs, write_report

    page = write_report(results, out)
    print(f"wrote {page} and {results / 'figures'}")
    if docs is not None:
        print(f"wrote {write_docs(results, docs)}")
