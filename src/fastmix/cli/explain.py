"""``fastmix explain``: a certificate in plain words, and its verification."""

from __future__ import annotations

import json as _json
from pathlib import Path
from typing import Annotated, Any

import typer

from fastmix.cli._console import print_json, print_text
from fastmix.cli.main import ExitCode
from fastmix.errors import DataError
from fastmix.estimators import PrivacyCertificate
from fastmix.estimators.explanation import explain
from fastmix.estimators.verification import same_version, verify_certificate
from fastmix.tables import PublicBounds

__all__ = ["command"]

EXAMPLES = (
    "fastmix explain model/certificate.json",
    "fastmix explain model/certificate.json --verify",
)


def command(
    certificate: Annotated[
        Path, typer.Argument(help="Certificate, or the folder that 'fastmix fit' wrote.")
    ],
    verify: Annotated[
        bool, typer.Option("--verify", help="Recompute the account from its events.")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Say in plain words what a certificate guarantees, and check that it adds up.

    A certificate is a statement of whoever made the fit, not a signature: it shows that the
    account is right for the releases it lists, not that these were all.
    """
    file = certificate / "certificate.json" if certificate.is_dir() else certificate
    text = file.read_text(encoding="utf-8")
    try:
        read = PrivacyCertificate.from_json(text)
        said, data = explain(read), _json.loads(text)
        current = same_version(data)
    except (AttributeError, KeyError, TypeError, ValueError):
        raise DataError(f"{file.name} is not a complete certificate.") from None
    wrong = [*verify_certificate(text), *_bounds_file(data)] if verify else []
    if json:
        verified = {"verified": not wrong, "complaints": wrong} if verify else {}
        print_json({"explanation": said, **verified, "certificate": data})
    else:
        print_text(said[0], style="bold" if read.private else "bold red")
        print_text("", *said[1:])
        if verify:
            print_text("", *_verdict(wrong, current))
    if wrong:
        raise typer.Exit(ExitCode.CHECK_FAILED)


def _bounds_file(data: dict[str, Any]) -> list[str]:
    """Compare the bounds file that a certificate of 'fastmix fit' holds with its bounds."""
    facts = data["data"]
    if "encoding" not in facts:
        return []
    differs = ["its bounds are not those of the bounds file that it holds"]
    try:
        public = PublicBounds.from_dict(facts["encoding"])
        columns = public.feature_bounds(data["parameters"]["fit_intercept"])
        same = (
            [side.tolist() for side in columns] == facts["bounds_X"]
            and [public.target.lower, public.target.upper] == facts["bounds_y"]
            and public.missing == facts["missing"]
        )
    except (AttributeError, KeyError, TypeError, ValueError):
        return differs
    return [] if same else differs


def _verdict(wrong: list[str], current: bool) -> list[str]:
    if wrong:
        return ["NOT VERIFIED:", *(f"- {complaint}" for complaint in wrong)]
    if current:
        return [
            "Verified: the account was recomputed from the events and agrees, and the events are "
            "those that the settings call for."
        ]
    return [
        "Verified: the account was recomputed from the events and agrees. Another version of "
        "fastmix made the certificate, so the events were not compared with the settings."
    ]
