"""The audit command: every claim of the package, put to the test."""

import sys
from collections.abc import Iterable, Iterator, Sequence
from json import dumps
from pathlib import Path
from typing import Annotated

import typer

from fastmix.audit import AuditResult, audit_all, full_only, plot_histograms, registry
from fastmix.cli import _options as options
from fastmix.cli._files import check_output
from fastmix.cli.main import ExitCode

#: Claims above what their neighbours can show by more than this are named in the summary.
_LOOSE = 0.95

EXAMPLES = ("fastmix audit --quick",)


def command(
    all_: Annotated[
        bool, typer.Option("--all", help="Many releases, strong bounds: minutes.")
    ] = False,
    quick: Annotated[
        bool, typer.Option("--quick", help="Few releases: half a minute. The default.")
    ] = False,
    plot: Annotated[Path | None, typer.Option(help="Draw the histograms of all scores.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace a plot that exists.")] = False,
    json: options.Json = False,
    seed: Annotated[
        int,
        typer.Option(
            help="Seed of the audit. Cases with exact noise cannot be seeded: they differ in "
            "every run."
        ),
    ] = 0,
) -> None:
    """Put every claim to the test: lower bounds on epsilon by experiment."""
    if plot is not None:
        check_output(plot, force=force)
    if all_ and quick:
        raise ValueError("all and quick exclude each other.")
    results: list[AuditResult] = []

    def kept() -> Iterator[AuditResult]:
        for result in audit_all(quick=not all_, seed=seed):
            results.append(result)
            yield result

    if json:
        print(dumps([result.to_dict() for result in kept()], indent=2))
    else:
        for line in _table(kept()):
            print(line, flush=True)
        if not all_ and (left := full_only & registry.keys()):
            print(f"{len(left)} more cases need more releases: fastmix audit --all.")
    if plot is not None:
        plot_histograms(results, plot)
        print(f"wrote {plot}", file=sys.stderr)
    if not all(result.passed for result in results):
        raise typer.Exit(ExitCode.CHECK_FAILED)


def _table(results: Iterable[AuditResult]) -> Iterator[str]:
    """Yield the lines of the table as their audits end."""
    yield (
        f"{'audited':<36} {'claimed':>8} {'delta':>6} {'at least':>9} {'share':>6} "
        f"{'releases':>10}  {'':<7}  neighbours"
    )
    seen = []
    for r in results:
        seen.append(r)
        yield (
            f"{r.name:<36} {r.epsilon:>8.3f} {r.delta:>6.0e} {r.lower:>9.3f} {r.share:>6.0%} "
            f"{r.trials:>10,}  {'ok' if r.passed else 'REFUTED':<7}  {r.pair}"
        )
    yield ""
    yield from summary(seen)


def summary(results: Sequence[AuditResult]) -> Iterator[str]:
    """Yield what the audit found and how strong it was."""
    count = len(results)
    yield (
        f"{sum(r.passed for r in results)} of {count} claims survived. 'at least' is a lower bound "
        "on epsilon with confidence 99%; it must not exceed the claim."
    )
    for r in results:
        if not r.sealed:
            yield f"{r.name} publishes something that does not follow from its releases."
    half, quarter = (sum(r.share >= share for r in results) for share in (0.5, 0.25))
    weakest = min(results, key=lambda r: r.share)
    yield (
        f"Strength: {half} of {count} claims were tested to at least half of their epsilon, "
        f"{quarter} to at least a quarter; the weakest test is that of {weakest.name}, to "
        f"{weakest.share:.0%}."
    )
    for r in results:
        if r.attainable < _LOOSE * r.epsilon:
            yield (
                f"{r.name} claims {r.epsilon:.2f}, but no test on these neighbours can show more "
                f"than {r.attainable:.2f}: this one reached {r.reached:.0%} of that."
            )
    yield (
        f"A release that costs about twice its claim would have been refuted in {half} cases, one "
        f"that costs four times its claim in {quarter}; smaller flaws can go unseen."
    )
