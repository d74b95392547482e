"""Which code made a fit: the commit if it is known, and a digest of the installed sources."""

import hashlib
import json
from functools import cache
from importlib.metadata import distribution
from pathlib import Path

_ROOT = Path(__file__).parents[1]


@cache
def build() -> dict[str, str | None]:
    """Return the identity of the installed package.

    ``source`` is the SHA-256 of the Python sources and templates, the same on every system;
    ``commit`` is known where pip installed fastmix from a repository.
    """
    found = hashlib.sha256()
    kinds = (".py", ".html", ".css", ".toml")
    for path in sorted(file for file in _ROOT.rglob("*") if file.suffix in kinds):
        content = path.read_bytes().replace(b"\r\n", b"\n")
        name = path.relative_to(_ROOT).as_posix()
        found.update(f"{name}\0{len(content)}\0".encode() + content)
    return {"source": f"sha256:{found.hexdigest()}", "commit": _commit()}


def _commit() -> str | None:
    text = distribution("fastmix").read_text("direct_url.json")
    commit = json.loads(text).get("vcs_info", {}).get("commit_id") if text else None
    return None if commit is None else str(commit)
