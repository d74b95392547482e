"""Papers of a fit on the command line: stated entries, an audit, a key."""

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import Any

from fastmix.certificate.build import build
from fastmix.certificate.documents import read_document, read_text, write_document
from fastmix.certificate.papers import read_papers
from fastmix.certificate.signing import Signer, read_signer
from fastmix.cli._asked import FitOptions
from fastmix.cli._folder import model_folder
from fastmix.data.read import table_paths
from fastmix.errors import DataError
from fastmix.estimators.saving import model_document
from fastmix.files.report import fit_report

#: Format of the findings of an audit.
AUDIT = "fastmix-audit-1"


class Papers:
    """What is added to the certificate of a fit; read before anything is charged."""

    def __init__(
        self, papers: Path | None = None, sign: Path | None = None, audit: Path | None = None
    ) -> None:
        self.stated = {} if papers is None else read_papers(papers)
        self.signer: Signer | None = None if sign is None else read_signer(sign)
        self.audit = None if audit is None else _read_audit(audit)
        self.inputs = papers, sign, audit

    def folder(
        self, asked: FitOptions, words: Iterable[str]
    ) -> AbstractContextManager[Callable[..., None]]:
        """Reserve the output folder of a fit whose files repeat these words; see `model_folder`."""
        return model_folder(
            asked.out,
            force=asked.force,
            words=[*words, *map(str, self.stated.values())],
            inputs=(*table_paths(asked.data), asked.bounds, *self.inputs),
            ledger=asked.ledger,
            signer=self.signer,
        )

    def publish(self, model: Any, publish: Callable[..., None]) -> None:
        """Add the papers to the certificate of a fitted model, and write its files."""
        model.privacy_ = replace(model.privacy_, papers=self.stated, audit=self.audit)
        document, model.privacy_ = model_document(model, self.signer)
        publish(write_document(document), model.privacy_.to_json(), fit_report(model))


def _read_audit(path: Path) -> dict[str, Any]:
    """Read the findings of an audit; refuse those of other code."""
    try:
        found = read_document(read_text(path))
        names = ("claims", "survived", "releases", "confidence")
        if found["format"] != AUDIT or not all(type(found[n]) in (int, float) for n in names):
            raise ValueError
        made = found["build"]["source"]
    except (LookupError, TypeError, ValueError):
        raise DataError(f"{path.name} must be what 'fastmix audit --json' wrote.") from None
    if made != build()["source"]:
        raise DataError(
            f"{path.name} is an audit of another version of fastmix. Run 'fastmix audit --json' "
            "with this one."
        )
    return {name: found[name] for name in names}
