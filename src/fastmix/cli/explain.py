"""``fastmix explain``: a certificate in plain words, and its verification."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated, Any

import typer

from fastmix.certificate.documents import read_document, read_text, write_document
from fastmix.certificate.explain import explain
from fastmix.certificate.papers import read_papers
from fastmix.certificate.signing import signature_complaints
from fastmix.certificate.verify import INCOMPLETE, Verification, verify_certificate
from fastmix.cli import _options as options
from fastmix.cli._console import print_json, print_text
from fastmix.cli._files import check_output, writing
from fastmix.cli.main import ExitCode
from fastmix.errors import DataError
from fastmix.estimators import PrivacyCertificate
from fastmix.estimators.saving import public_schema
from fastmix.files.loading import load, read_model, verify_pair
from fastmix.files.registry import registry_yaml
from fastmix.files.report import fit_report
from fastmix.files.statement import card_text, statement_page
from fastmix.schema import PublicBounds

EXAMPLES = (
    "fastmix explain model/certificate.json",
    "fastmix explain model/certificate.json --verify",
    "fastmix explain model --verify --key institution.pub",
    "fastmix explain model --statement statement.html --card card.md --registry release.yaml",
)

_PAPERS = options.panel("Papers")

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
    key: options.Key = None,
    statement: Annotated[
        Path | None, _PAPERS("Write a page for a data-protection officer to this HTML file.")
    ] = None,
    card: Annotated[Path | None, _PAPERS("Write a model card to this Markdown file.")] = None,
    registry: Annotated[
        Path | None, _PAPERS("Write a record for the public registry to this YAML file.")
    ] = None,
    papers: options.Papers = None,
    force: options.Force = False,
    json: options.Json = False,
) -> None:
    """Explain in plain words what a certificate guarantees, and verify it.

    A certificate is a statement of the person who made the fit: it shows that the account is right
    for the releases it lists, not that these were all. --key checks who signed it.
    """
    file = certificate / "certificate.json" if certificate.is_dir() else certificate
    verify = verify or key is not None
    writers = {statement_page: statement, card_text: card, registry_yaml: registry}
    if any(writers.values()):
        _write_papers(file, {make: out for make, out in writers.items() if out}, papers, key, force)
        return
    text = read_text(file)
    try:
        read, data = PrivacyCertificate.from_json(text), read_document(text)
        said = explain(read)
    except INCOMPLETE:
        raise DataError(f"{file.name} is not a complete certificate.") from None
    found = _verify(file, text, data, key) if verify else Verification(())
    if json:
        verified = {"verified": found.verified, **asdict(found)} if verify else {}
        print_json({"explanation": said, **verified, "certificate": data})
    else:
        print_text(said[0], style="bold" if read.private else "bold red")
        print_text("", *said[1:])
    if verify and not json:
        wrong = [f"- {complaint}" for complaint in found.complaints]
        print_text("", *(["NOT VERIFIED:", *wrong] if wrong else [_verified(file, key)]), "")
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


def _verified(file: Path, key: Path | None) -> str:
    """Return a sentence about everything that was verified."""
    said = [_VERIFIED]
    if _beside(file, "model.json"):
        said.append("model.json belongs to this certificate.")
    if _beside(file, "report.html"):
        said.append("report.html was written again from both and is the same.")
    if key is not None:
        said.append(f"The files are signed with {key.name}.")
    return " ".join(said)


def _write_papers(
    file: Path,
    writers: dict[Callable[[Any], str], Path],
    stated: Path | None,
    key: Path | None,
    force: bool,
) -> None:
    """Write papers about the model beside a certificate, each to its own file."""
    inputs = [file, file.with_name("model.json"), *([] if stated is None else [stated])]
    for out in writers.values():
        check_output(out, force=force, inputs=inputs)
    model: Any = load(file.with_name("model.json"), key=key)
    if wrong := verify_certificate(model.privacy_.to_json()).complaints:
        raise DataError(
            f"No papers were written, because the certificate does not verify: {wrong[0]}. "
            "--verify lists all that is wrong."
        )
    model.schema_ = public_schema(model)
    if stated is not None:  # entries that the certificate does not have
        added = {**read_papers(stated), **model.privacy_.papers}
        model.privacy_ = model.privacy_.with_papers(added)
    for text, out in {make(model): out for make, out in writers.items()}.items():
        with writing(out, force=force) as temporary:
            temporary.write_text(text, encoding="utf-8")
        print_text(f"Wrote {out}.")


def _verify(file: Path, text: str, data: dict[str, Any], key: Path | None = None) -> Verification:
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
    if file.name == "certificate.json" or key is not None:
        wrong += signature_complaints(file, data["signer"], key)
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
