"""``fastmix explain``: a certificate in plain words, and its verification."""

from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated, Any

import typer

from fastmix.certificate.documents import read_document, read_text, write_document
from fastmix.certificate.explain import explain
from fastmix.certificate.verify import INCOMPLETE, Verification, verify_certificate
from fastmix.cli import _options as options
from fastmix.cli._console import print_json, print_text
from fastmix.cli.main import ExitCode
from fastmix.errors import DataError
from fastmix.estimators import PrivacyCertificate
from fastmix.files.loading import read_model, verify_pair
from fastmix.files.report import fit_report
from fastmix.schema import PublicBounds

EXAMPLES = (
    "fastmix explain model/certificate.json",
    "fastmix explain model/certificate.json --verify",
)

_VERIFIED = (
    "Verified: the account was recomputed from the events and agrees, and the events are those "
    "that the settings call for."
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
        print_text("", *(["NOT VERIFIED:", *wrong] if wrong else [_verified(file)]), "")
        print_text("Not checked:")
        print_text(*(f"- {field}" for field in found.not_checked))
    if not found.verified:
        raise typer.Exit(ExitCode.CHECK_FAILED)


def _beside(file: Path, name: str) -> Path | None:
    """Return another file of the same fit, if it exists.

    A fit writes one folder; a certificate under another name stands alone.
    """
    found = file.with_name(name)
    return found if file.name == "certificate.json" and found.is_file() else None


def _verified(file: Path) -> str:
    """Return a sentence about everything that was verified."""
    said = [_VERIFIED]
    if _beside(file, "model.json"):
        said.append("model.json belongs to this certificate.")
    if _beside(file, "report.html"):
        said.append("report.html was written again from both and is the same.")
    return " ".join(said)


def _verify(file: Path, text: str, data: dict[str, Any]) -> Verification:
    """Verify a certificate alone, then against its bounds file and the files in its folder."""
    found = verify_certificate(text)
    model, report = _beside(file, "model.json"), _beside(file, "report.html")
    wrong = [*found.complaints]
    missing = []
    if "encoding" in data["data"]:
        wrong += _bounds_file(data)
    if model is not None:
        try:
            wrong += verify_pair(data, read_text(model))
        except INCOMPLETE:
            wrong.append("model.json is incomplete and cannot be compared with the certificate")
    else:
        missing.append(
            "model: there is no model.json in the same folder to compare the certificate with"
        )
    if report is not None and not _reproduced(report, model, text):
        wrong.append(
            "report.html is not the report of this model and this certificate: one of them was "
            "changed, is missing, or comes from another fit or another version of fastmix"
        )
    return replace(found, complaints=tuple(wrong), not_checked=(*missing, *found.not_checked))


def _reproduced(report: Path, model: Path | None, text: str) -> bool:
    """Whether model and certificate give the same report once more."""
    with suppress(*INCOMPLETE):
        if model is not None:
            document = write_document(read_document(text))
            return fit_report(read_model(read_text(model)), document) == read_text(report)
    return False


def _bounds_file(data: dict[str, Any]) -> list[str]:
    """Compare the bounds file inside a certificate with the bounds of the certificate."""
    facts = data["data"]
    with suppress(*INCOMPLETE):
        public = PublicBounds.from_dict(facts["encoding"])
        columns = public.feature_bounds(data["parameters"]["fit_intercept"])
        if (
            [side.tolist() for side in columns] == facts["bounds_X"]
            and [*public.ends] == facts.get("classes", facts["bounds_y"])
            and public.missing == facts["missing"]
            and public.to_dict() == facts["encoding"]
            and facts["categories"]
            in ([], [*map(len, facts.get("dummies", ()))], [*map(len, public.categories())])
        ):
            return []
    return ["its bounds are not those of the bounds file that it holds"]
