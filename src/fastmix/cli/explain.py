"""``fastmix explain``: a certificate in plain words, and its verification."""

from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated, Any

import typer

from fastmix.certificate.documents import read_document, read_text
from fastmix.certificate.explain import explain
from fastmix.certificate.verify import INCOMPLETE, Verification, verify_certificate
from fastmix.cli import _options as options
from fastmix.cli._console import print_json, print_text
from fastmix.cli.main import ExitCode
from fastmix.errors import DataError
from fastmix.estimators import PrivacyCertificate
from fastmix.tables import PublicBounds
from fastmix.tables.saving import verify_pair

EXAMPLES = (
    "fastmix explain model/certificate.json",
    "fastmix explain model/certificate.json --verify",
)

_VERIFIED = (
    "Verified: the account was recomputed from the events and agrees, and the events are those "
    "that the settings call for. A model.json or report.html in the same folder belongs to this "
    "certificate."
)


def command(
    certificate: Annotated[
        Path, typer.Argument(help="Certificate, or the folder that 'fastmix fit' wrote.")
    ],
    verify: Annotated[
        bool,
        typer.Option(
            "--verify",
            help="Recompute the account from its events, and compare the certificate with the "
            "model and the report beside it.",
        ),
    ] = False,
    json: options.Json = False,
) -> None:
    """Explain in plain words what a certificate guarantees, and verify it.

    A certificate is a statement of the person who made the fit, not a signature: it shows that
    the account is right for the releases it lists, not that these were all.
    """
    file = certificate / "certificate.json" if certificate.is_dir() else certificate
    text = read_text(file)
    try:
        read, data = PrivacyCertificate.from_json(text), read_document(text)
        said = explain(read)
    except INCOMPLETE:
        raise DataError(f"{file.name} is not a complete certificate.") from None
    found = _verify(file, text, data) if verify else Verification(())
    if json:
        verified = {"verified": found.verified, **asdict(found)} if verify else {}
        print_json({"explanation": said, **verified, "certificate": data})
    else:
        print_text(said[0], style="bold" if read.private else "bold red")
        print_text("", *said[1:])
    if verify and not json:
        wrong = [f"- {complaint}" for complaint in found.complaints]
        print_text("", *(["NOT VERIFIED:", *wrong] if wrong else [_VERIFIED]), "", "Not checked:")
        print_text(*(f"- {field}" for field in found.not_checked))
    if not found.verified:
        raise typer.Exit(ExitCode.CHECK_FAILED)


def _verify(file: Path, text: str, data: dict[str, Any]) -> Verification:
    """Verify a certificate alone, then against its bounds file and what lies beside it."""
    found = verify_certificate(text)
    model, report = file.with_name("model.json"), file.with_name("report.html")
    # What a fit wrote is one folder; a certificate under another name stands alone.
    beside = file.name == "certificate.json"
    wrong = [*found.complaints]
    missing = []
    if "encoding" in data["data"]:
        wrong += _bounds_file(data)
    if beside and model.is_file():
        try:
            wrong += verify_pair(data, read_text(model))
        except INCOMPLETE:
            wrong.append("model.json is incomplete and cannot be compared with the certificate")
    else:
        missing.append(
            "model: there is no model.json in the same folder to compare the certificate with"
        )
    if beside and report.is_file():
        if str(data.get("digest")) not in read_text(report):
            wrong.append("report.html is the report of another fit, or one of them was changed")
        missing.append("report.html: only the digest of the certificate in it was compared")
    return replace(found, complaints=tuple(wrong), not_checked=(*missing, *found.not_checked))


def _bounds_file(data: dict[str, Any]) -> list[str]:
    """Compare the bounds file that a certificate of 'fastmix fit' holds with its bounds."""
    facts = data["data"]
    with suppress(*INCOMPLETE):
        public = PublicBounds.from_dict(facts["encoding"])
        columns = public.feature_bounds(data["parameters"]["fit_intercept"])
        if (
            [side.tolist() for side in columns] == facts["bounds_X"]
            and [*public.ends] == facts.get("classes", facts["bounds_y"])
            and public.missing == facts["missing"]
            and public.to_dict() == facts["encoding"]
        ):
            return []
    return ["its bounds are not those of the bounds file that it holds"]
