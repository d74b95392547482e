"""Refuse a release whose tag, version, citation and changelog do not agree.

python tests/release.py v0.1.0
"""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]


def disagreements(tag: str, root: Path = ROOT) -> list[str]:
    """Return what does not belong to the release of a tag."""
    version = tag.removeprefix("v")
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    citation = (root / "CITATION.cff").read_text(encoding="utf-8")
    changes = (root / "CHANGELOG.md").read_text(encoding="utf-8")
    said = {
        "the tag is not v and three numbers": not re.fullmatch(r"v\d+\.\d+\.\d+", tag),
        f"pyproject.toml has version {project['version']}": project["version"] != version,
        "CITATION.cff has another version": f"\nversion: {version}\n" not in citation,
        "CHANGELOG.md has no section of this version": not re.search(
            rf"^## {re.escape(version)} \(\d{{4}}-\d\d-\d\d\)$", changes, flags=re.MULTILINE
        ),
    }
    return [each for each, wrong in said.items() if wrong]


if __name__ == "__main__":
    found = disagreements(sys.argv[1])
    print(*found or [f"{sys.argv[1]} may be released."], sep="\n")
    sys.exit(bool(found))
