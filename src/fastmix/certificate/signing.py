"""Signed folders of fits: the digests of their files, signed with an institution's Ed25519 key.

``SHA256SUMS`` has the form that ``sha256sum --check`` reads; ``SHA256SUMS.sig`` is the signature of
its bytes. `docs/certificates.md` shows how to check both without fastmix.
"""

import getpass
import hashlib
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from fastmix.errors import DataError

SUMS, SIGNATURE = "SHA256SUMS", "SHA256SUMS.sig"
#: Files of a fit; a signature covers those that the folder has.
SIGNED = ("model.json", "certificate.json", "report.html")

_LINE = re.compile(r"([0-9a-f]{64})  (\S+)")


@dataclass(frozen=True)
class Signer:
    """A private key, and the fingerprint of its public key."""

    key: Any
    fingerprint: str

    def files(self, contents: Mapping[str, bytes]) -> dict[str, bytes]:
        """Return the digests of files and their signature, by the names of the two files."""
        lines = [f"{hashlib.sha256(each).hexdigest()}  {name}\n" for name, each in contents.items()]
        sums = "".join(lines).encode()
        return {SUMS: sums, SIGNATURE: self.key.sign(sums)}


def read_signer(path: Path) -> Signer:
    """Read a private Ed25519 key, a PEM file; an encrypted one asks for its passphrase."""
    tools, data = _tools(), path.read_bytes()
    try:
        key = tools.load_pem_private_key(data, password=None)
    except TypeError:
        secret = getpass.getpass(f"Passphrase of {path.name}: ").encode()
        try:
            key = tools.load_pem_private_key(data, password=secret)
        except ValueError:
            raise ValueError(f"The passphrase of {path.name} is wrong.") from None
    except ValueError:
        raise _no_key(path, "private") from None
    if not hasattr(key, "sign") or type(key.public_key()).__name__ != "Ed25519PublicKey":
        raise _no_key(path, "private")
    return Signer(key, _fingerprint(key.public_key()))


def read_public_key(path: Path) -> Any:
    """Read a public Ed25519 key, a PEM file."""
    try:
        key = _tools().load_pem_public_key(path.read_bytes())
    except ValueError:
        raise _no_key(path, "public") from None
    if type(key).__name__ != "Ed25519PublicKey":
        raise _no_key(path, "public")
    return key


def new_keys(passphrase: str | None = None) -> tuple[bytes, bytes, str]:
    """Return a new private and public key as PEM, and the fingerprint of the public one."""
    tools = _tools()
    key = import_module(
        "cryptography.hazmat.primitives.asymmetric.ed25519"
    ).Ed25519PrivateKey.generate()
    lock = (
        tools.BestAvailableEncryption(passphrase.encode()) if passphrase else tools.NoEncryption()
    )
    secret = key.private_bytes(tools.Encoding.PEM, tools.PrivateFormat.PKCS8, lock)
    public = key.public_key().public_bytes(
        tools.Encoding.PEM, tools.PublicFormat.SubjectPublicKeyInfo
    )
    return secret, public, _fingerprint(key.public_key())


def signature_complaints(file: Path, stated: str | None, key: Path | None = None) -> list[str]:
    """Return what is wrong with the signature of a file and of its folder; nothing if it is right.

    ``stated`` is the fingerprint that the certificate states. Without a ``key``, the files are only
    compared with their digests, which whoever changes all of them can compute anew. A file under
    another name is not signed, whatever the folder around it says.
    """
    folder = file.parent
    sums, signature = folder / SUMS, folder / SIGNATURE
    if not sums.is_file() or not signature.is_file():
        if stated is None and key is None:
            return []
        return [f"the folder has no {SUMS} and {SIGNATURE}, so it is not signed"]
    wrong = _changed(folder, sums.read_bytes())
    if file.name not in SIGNED:
        wrong.append(f"{file.name} is not among the signed files")
    if stated is None:
        wrong.append("the certificate names no key, so the signature is not of this fit")
    if key is not None:
        public = read_public_key(key)
        if stated != _fingerprint(public):
            wrong.append(f"it is signed with another key than {key.name}")
        invalid = import_module("cryptography.exceptions").InvalidSignature
        try:
            public.verify(signature.read_bytes(), sums.read_bytes())
        except invalid:
            wrong.append(f"its signature is not one of the key {key.name}")
    return wrong


def check_signature(file: Path, stated: str | None, key: Path | None = None) -> None:
    """Refuse a file that was not signed, or whose folder was changed after it was signed."""
    if wrong := signature_complaints(file, stated, key):
        raise DataError(
            f"The model cannot be trusted: {'; '.join(wrong)}. Use the folder as the fit wrote it."
        )


def _changed(folder: Path, sums: bytes) -> list[str]:
    """Return complaints about files that do not have the digests that were signed."""
    lines = [_LINE.fullmatch(line) for line in sums.decode("ascii", "replace").splitlines()]
    listed = {line[2]: line[1] for line in lines if line is not None}
    there = [name for name in SIGNED if (folder / name).exists()]
    if None in lines or set(listed) - set(SIGNED) or "model.json" not in listed:
        return [f"{SUMS} is not as a fit wrote it"]
    wrong = [f"{name} is missing" for name in listed if name not in there]
    wrong += [f"{name} is not among the signed files" for name in there if name not in listed]
    return wrong + [
        f"{name} was changed after it was signed"
        for name in there
        if name in listed
        and hashlib.sha256((folder / name).read_bytes()).hexdigest() != listed[name]
    ]


def _fingerprint(public: Any) -> str:
    return f"sha256:{hashlib.sha256(public.public_bytes_raw()).hexdigest()}"


def _no_key(path: Path, kind: str) -> ValueError:
    return ValueError(
        f"{path.name} must be a {kind} Ed25519 key in PEM form; make a pair with 'fastmix key'."
    )


def _tools() -> Any:
    try:
        return import_module("cryptography.hazmat.primitives.serialization")
    except ImportError:
        raise ImportError('signatures need cryptography: pip install "fastmix[papers]".') from None


def write_secret(path: Path, content: bytes) -> None:
    """Write a new file that only its owner can read."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
