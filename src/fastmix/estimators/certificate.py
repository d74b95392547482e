"""The privacy certificate: what a fit spent, and everything needed to check it."""

from __future__ import annotations

import json
import math
import os
import platform
from dataclasses import asdict, dataclass, is_dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from fastmix.accounting import Part, PrivacyEvent, PrivacySpent, RenyiCurve
from fastmix.accounting._ledger import write_atomically
from fastmix.accounting.spent import ORDERS
from fastmix.render import certificate_card

__all__ = ["FORMAT", "PrivacyCertificate", "jsonable"]

FORMAT = "fastmix-certificate-1"


@dataclass(frozen=True)
class PrivacyCertificate:
    """What a fit has spent, and how: the account with the public facts behind it.

    Neighbouring relation: zero-out (one record absent: its scaled row and target are zeros; n is
    public).

    Parameters
    ----------
    spent : PrivacySpent
        The account of the fit.
    mechanism : str
        Name of the estimator.
    parameters : dict
        Every parameter of the estimator and every size and noise level derived from them.
    data : dict
        Public facts about the data: n, d, bounds and clipping.
    noise : str
        Where the noise came from.
    leaks : tuple of str
        Reasons why the guarantee does not hold; empty if it does.
    """

    spent: PrivacySpent
    mechanism: str
    parameters: dict[str, Any]
    data: dict[str, Any]
    noise: str
    leaks: tuple[str, ...] = ()

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
    def neighboring_relation(self) -> str:
        """The neighbouring relation of the guarantee."""
        return self.spent.neighboring_relation

    @property
    def parts(self) -> tuple[Part, ...]:
        """The parts of the account."""
        return self.spent.parts

    @property
    def events(self) -> tuple[PrivacyEvent, ...]:
        """All privacy events of the fit."""
        return self.spent.events

    def rdp(self, orders: npt.ArrayLike) -> Any:
        """Return the Rényi-DP curve of the fit, which holds outside its rare events."""
        return self.spent.rdp(orders)

    def to_dp_accounting(self, orders: npt.ArrayLike = ORDERS) -> RenyiCurve:
        """Return ``(orders, rdp, tail)`` for ``dp_accounting.rdp.compute_epsilon``."""
        return self.spent.to_dp_accounting(orders)

    def to_dict(self) -> dict[str, Any]:
        """Return the certificate as plain JSON types."""
        return {
            "format": FORMAT,
            "private": self.private,
            "leaks": list(self.leaks),
            "mechanism": self.mechanism,
            "account": self.spent.to_dict(),
            "parameters": self.parameters,
            "data": self.data,
            "noise": self.noise,
            "versions": {
                "fastmix": version("fastmix"),
                "numpy": version("numpy"),
                "scipy": version("scipy"),
                "scikit-learn": version("scikit-learn"),
                "python": platform.python_version(),
            },
        }

    def to_json(self, indent: int | None = 2) -> str:
        """Return the certificate as a JSON document."""
        return json.dumps(jsonable(self.to_dict()), indent=indent, allow_nan=False)

    def _repr_html_(self) -> str:
        from fastmix.estimators.explanation import explain  # it reads certificates

        return certificate_card(explain(self), self.private)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the certificate to a file, as a whole or not at all."""
        write_atomically(Path(path).resolve(), (self.to_json() + "\n").encode())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> PrivacyCertificate:
        """Read a certificate that `save` wrote."""
        return cls.from_json(Path(path).read_text())

    @classmethod
    def from_json(cls, text: str) -> PrivacyCertificate:
        """Rebuild a certificate; its epsilon is recomputed from the events, not read."""
        data = json.loads(text)
        return cls(
            spent=PrivacySpent.from_dict(data["account"]),
            mechanism=data["mechanism"],
            parameters=data["parameters"],
            data=data["data"],
            noise=data["noise"],
            leaks=tuple(data["leaks"]),
        )


def jsonable(value: Any) -> Any:
    """Replace infinities, which JSON has no word for, by strings."""
    if is_dataclass(value) and not isinstance(value, type):
        return jsonable(asdict(value))
    if isinstance(value, dict):
        return {key: jsonable(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [jsonable(item) for item in value]
    if isinstance(value, np.generic):
        return jsonable(value.item())
    if isinstance(value, float) and not math.isfinite(value):
        return repr(value)
    return value
