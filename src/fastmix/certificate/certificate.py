"""The privacy certificate: what a fit spent, and everything needed to check it."""

import os
import platform
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, fields, replace
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any, Self

from fastmix.accounting import BudgetAccountant, Part, PrivacyEvent, PrivacySpent
from fastmix.accounting.ledger import write_atomically
from fastmix.certificate.build import build
from fastmix.certificate.documents import digest, read_document, write_document
from fastmix.certificate.guarantee import guarantee
from fastmix.certificate.papers import check_papers
from fastmix.kernels import kernels_used
from fastmix.show import certificate_card

FORMAT = "fastmix-certificate-5"


@cache
def _versions() -> dict[str, str]:
    packages = ("fastmix", "numpy", "scipy", "scikit-learn")
    return {**{name: version(name) for name in packages}, "python": platform.python_version()}


def today() -> str:
    """Return the day, in UTC."""
    return datetime.now(UTC).date().isoformat()


def ledger_reference(budget: Any) -> dict[str, Any] | None:
    """Return which budget paid for a fit, and what all its charges so far cost together.

    A paid fit is not lost with a ledger that cannot be read any more: its charges are None then.
    """
    if not isinstance(budget, BudgetAccountant):  # no budget, or that of an audit
        return None
    charges, spent = None, None
    with suppress(OSError, ValueError):
        charges, spent = len(budget), budget.total()._asdict()
    return {
        "id": budget.identity,
        "rule": budget.rule,
        "charges": charges,
        "spent": spent,
        "budget": {"epsilon": budget.epsilon, "delta": budget.delta},
    }


@dataclass(frozen=True, repr=False)
class PrivacyCertificate:
    """The privacy account of a fit, ``spent``, with the public facts behind it.

    Neighbouring relation: zero-out (one record absent: its scaled row and target are zeros; n is
    public).

    ``parameters`` holds every parameter of the estimator (``mechanism``) and every size and noise
    level derived from them, ``data`` the public facts: n, d, bounds and clipping. ``leaks`` are the
    reasons why the guarantee does not hold, none if it does; ``model`` is the digest of the saved
    model that the certificate is about, as ``fastmix fit`` writes it. ``kernels`` tells which
    kernels computed: instruction set, compiler and outcome of the self-check, or NumPy. ``build``
    identifies the code, ``ledger`` the budget that paid, with everything that it paid so far.
    ``papers`` is what the data office adds (`with_papers`), ``audit`` what ``fastmix audit`` found
    for the same code, and ``signer`` the fingerprint of the key that signed the fit.
    """

    spent: PrivacySpent
    mechanism: str
    parameters: dict[str, Any]
    data: dict[str, Any]
    noise: str
    leaks: tuple[str, ...] = ()
    model: str | None = None
    versions: dict[str, str] = field(default_factory=lambda: dict(_versions()))
    kernels: dict[str, Any] = field(default_factory=kernels_used)
    date: str = field(default_factory=today)
    build: dict[str, str | None] = field(default_factory=lambda: dict(build()))
    ledger: dict[str, Any] | None = None
    papers: dict[str, Any] = field(default_factory=dict)
    audit: dict[str, Any] | None = None
    signer: str | None = None

    @property
    def private(self) -> bool:
        """Whether the guarantee holds."""
        return not self.leaks

    @property
    def epsilon(self) -> float:
        """Epsilon of the fit, as accounted."""
        return self.spent.epsilon

    @property
    def delta(self) -> float:
        """Delta of the fit."""
        return self.spent.delta

    @property
    def parts(self) -> tuple[Part, ...]:
        """The parts of the account."""
        return self.spent.parts

    @property
    def events(self) -> tuple[PrivacyEvent, ...]:
        """All privacy events of the fit."""
        return self.spent.events

    @property
    def digest(self) -> str:
        """SHA-256 of everything that the certificate says, the digest of its model included."""
        return str(self.to_dict()["digest"])

    @property
    def guarantee(self) -> dict[str, Any]:
        """Unit, neighbours, total cost, conversions and limits of the guarantee."""
        return guarantee(self.spent, self.data, self.parameters)

    def with_papers(self, papers: Mapping[str, Any]) -> Self:
        """Return the certificate with what the data office knows: curator, purpose, reasons.

        Parameters
        ----------
        papers : mapping
            Entries by name: "title", "curator", "contact", "purpose", "region", "sector",
            "published", "reason", "bounds", "preparation", "access", "releases", "sources" and
            "authors", all optional.

        Returns
        -------
        PrivacyCertificate
            A certificate that states them.
        """
        return replace(self, papers=check_papers(papers))

    def to_dict(self) -> dict[str, Any]:
        """Return the certificate as plain JSON types."""
        said = {
            "format": FORMAT,
            "private": self.private,
            "leaks": list(self.leaks),
            "mechanism": self.mechanism,
            "guarantee": self.guarantee,
            "account": self.spent.to_dict(),
            "parameters": self.parameters,
            "data": self.data,
            "noise": self.noise,
            "versions": self.versions,
            "kernels": self.kernels,
            "date": self.date,
            "build": self.build,
            "ledger": self.ledger,
            "papers": self.papers,
            "audit": self.audit,
            "signer": self.signer,
            "model": self.model,
        }
        return {**said, "digest": digest(said)}

    def to_json(self, indent: int | None = 2) -> str:
        """Return the certificate as a JSON document."""
        return write_document(self.to_dict(), indent)

    def __repr__(self) -> str:
        """Return the guarantee and the sizes in one line; `to_json` has everything."""
        leaks = "" if self.private else f", leaks={list(self.leaks)!r}"
        return (
            f"PrivacyCertificate(private={self.private}, epsilon={self.epsilon:.6g}, "
            f"delta={self.delta:.3g}, mechanism={self.mechanism!r}, "
            f"n_samples={self.data.get('n_samples')}, events={len(self.events)}{leaks})"
        )

    def _repr_html_(self) -> str:
        from fastmix.certificate.explain import explain  # it reads certificates

        return certificate_card(explain(self), self.private)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the certificate to a file, as a whole or not at all."""
        write_atomically(Path(path).resolve(), (self.to_json() + "\n").encode())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a certificate that `save` wrote."""
        return cls.from_json(Path(path).read_text(encoding="utf-8"))

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Rebuild a certificate; its epsilon is recomputed from the events, not read."""
        data = read_document(text)
        own = {each.name for each in fields(cls)} - {"spent", "leaks"}
        return cls(
            spent=PrivacySpent.from_dict(data["account"]),
            leaks=tuple(data["leaks"]),
            **{name: data[name] for name in own},
        )
