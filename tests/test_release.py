"""A release needs a tag, a version, a citation and a section of the changelog that agree."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from tests.release import disagreements

ROOT = Path(__file__).parents[1]


@pytest.fixture
def root(tmp_path):
    (tmp_path / "pyproject.toml").write_text('[project]\nversion = "1.2.3"\n')
    (tmp_path / "CITATION.cff").write_text("title: x\nversion: 1.2.3\nlicense: y\n")
    (tmp_path / "CHANGELOG.md").write_text("# Changelog\n\n## 1.2.3 (2026-12-01)\n")
    return tmp_path


def test_a_release_that_agrees(root):
    assert disagreements("v1.2.3", root) == []


@pytest.mark.parametrize("tag", ["v1.2.4", "1.2.3", "v1.2.3rc1"])
def test_another_tag(root, tag):
    assert disagreements(tag, root)


@pytest.mark.parametrize("name", ["CITATION.cff", "CHANGELOG.md", "pyproject.toml"])
def test_a_file_of_another_version(root, name):
    file = root / name
    file.write_text(file.read_text().replace("1.2.3", "1.2.2"))
    assert len(disagreements("v1.2.3", root)) == 1


def test_workflows_keep_their_permissions_small():
    """Only the job that publishes may write, and it builds nothing itself."""
    for path in (ROOT / ".github" / "workflows").glob("*.yml"):
        flow = yaml.safe_load(path.read_text())
        assert flow["permissions"] in ({"contents": "read"}, "read-all"), path.name
        for name, job in flow["jobs"].items():
            rights = job.get("permissions", {})
            writes = {right for right, kind in rights.items() if kind == "write"}
            if (path.stem, name) == ("release", "publish"):
                assert job["environment"] == "pypi"
                assert not any("checkout" in step.get("uses", "") for step in job["steps"])
            elif path.stem == "scorecard":
                assert writes == {"security-events", "id-token"}
            else:
                assert not writes, (path.name, name)


def test_archives_and_citations_can_be_read():
    assert json.loads((ROOT / ".zenodo.json").read_text())["license"] == "Apache-2.0"
    assert yaml.safe_load((ROOT / "CITATION.cff").read_text())["title"] == "fastmix"
