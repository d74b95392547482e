"""``fastmix explain``: a certificate in plain words, and its verification."""

from __future__ import annotations

import json as _json
from pathlib import Path
from typing import Annotated

import typer

from fastmix.cli._console import print_json, print_text
from fastmix.cli.main import ExitCode
from fastmix.errors import DataError
from fastmix.estimators import PrivacyCertificate
from fastmix.estimators.explanation import explain
from fastmix.estimators.verification import verify_certificate

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
    wrong = verify_certificate(text) if verify else []
    try:
        said = explain(PrivacyCertificate.from_json(text))
    except (AttributeError, KeyError, TypeError, ValueError):
        raise DataError(f"{file.name} is not a complete certificate.") from None
    if json:
        verified = {"verified": not wrong, "complaints": wrong} if verify else {}
        print_json({"explanation": said, **verified, "certificate": _json.loads(text)})
    else:
        private = PrivacyCertificate.from_json(text).private
        print_text(said[0], style="bold" if private else "bold red")
        print_text("", *said[1:])
        if verify:
            print_text("", *_verdict(wrong))
    if wrong:
        raise typer.Exit(ExitCode.CHECK_FAILED)


def _verdict(wrong: list[str]) -> list[str]:
    if not wrong:
        return ["Verified: the account was recomputed from the events and agrees."]
    return ["NOT VERIFIED:", *(f"- {complaint}" for complaint in wrong)]
