"""The audit command: every claim of the package, put to the test."""

import sys
from collections.abc import Iterator, Sequence
from json import dumps
from pathlib import Path
from typing import Annotated, Any

import typer

from fastmix.audit import AuditResult, audit_all, full_only, plot_histograms, registry
from fastmix.certificate.build import build
from fastmix.cli import _options as options
from fastmix.cli._files import check_output
from fastmix.cli._papers import AUDIT
from fastmix.cli.main import ExitCode
from fastmix.show.progress import progress

#: Claims above what their neighbours can show by more than this are named in the summary.
_LOOSE = 0.95

EXAMPLES = ("fastmix audit --quick", "fastmix audit --json > audit.json")


def command(
    all_: Annotated[
        bool, typer.Option("--all", help="Many releases and strong bounds; takes minutes.")
    ] = False,
    quick: Annotated[
        bool, typer.Option("--quick", help="Few releases; takes one to two minutes. The default.")
    ] = False,
    plot: Annotated[Path | None, typer.Option(help="Draw the histograms of all scores.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing plot.")] = False,
    json: options.Json = False,
    seed: Annotated[int, typer.Option(help="Seed of the audit.")] = 0,
) -> None:
    """Test every privacy claim by experiment, with lower bounds on epsilon."""
    if plot is not None:
        check_output(plot, force=force)
    if all_ and quick:
        raise ValueError("Pass --all or --quick, not both.")
    results: list[AuditResult] = []
    if not json:
        print(
            _line("audited", "claimed", "delta", "at least", "share", "releases", "", "neighbours")
        )
    cases = len(registry if all_ else registry.keys() - full_only)
    with progress("auditing") as bar:
        for r in audit_all(quick=not all_, seed=seed):
            results.append(r)
            bar.say(f"{len(results)} of {cases} claims", len(results), cases)
            if not json:
                cells = f"{r.epsilon:.3f}", f"{r.delta:.0e}", f"{r.lower:.3f}", f"{r.share:.0%}"
                verdict = "ok" if r.passed else "REFUTED"
                print(_line(r.name, *cells, f"{r.trials:,}", verdict, r.pair), flush=True)
    if json:
        print(dumps(findings(results), indent=2))
    else:
        print("", *summary(results), sep="\n")
        if not all_ and (left := full_only & registry.keys()):
            print(f"{len(left)} more cases need more releases: fastmix audit --all.")
    if plot is not None:
        plot_histograms(results, plot)
        print(f"wrote {plot}", file=sys.stderr)
    if not all(result.passed for result in results):
        raise typer.Exit(ExitCode.CHECK_FAILED)


def findings(results: Sequence[AuditResult]) -> dict[str, Any]:
    """Return the findings about this version as plain types, for `fastmix fit --audit`."""
    return {
        "format": AUDIT,
        "build": build(),
        "claims": len(results),
        "survived": sum(result.passed and result.sealed for result in results),
        "releases": sum(result.trials for result in results),
        "confidence": min(result.confidence for result in results),
        "results": [result.to_dict() for result in results],
    }


def _line(*cells: str) -> str:
    return "{:<36} {:>8} {:>6} {:>9} {:>6} {:>10}  {:<7}  {}".format(*cells)


def summary(results: Sequence[AuditResult]) -> Iterator[str]:
    """Yield the findings of the audit and its strength."""
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
