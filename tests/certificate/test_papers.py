"""Entries that only the data office knows, and the identity of the code."""

from __future__ import annotations

import re
import shutil

import numpy as np
import pytest

from fastmix import PrivacyCertificate, PrivateLinearRegression
from fastmix.certificate import build as build_module
from fastmix.certificate.build import build
from fastmix.certificate.explain import explain
from fastmix.certificate.papers import ENTRIES, check_papers, read_papers
from fastmix.certificate.verify import verify_certificate

GIVEN = {"purpose": " Planning. ", "curator": "Office", "published": "2026-03-01"}


def test_entries_become_texts_and_lists():
    assert check_papers(GIVEN) == {
        "curator": ["Office"],
        "purpose": "Planning.",
        "published": "2026-03-01",
    }
    assert [*check_papers(dict.fromkeys(ENTRIES, "x") | GIVEN | {"sector": "Energy"})] == [*ENTRIES]


@pytest.mark.parametrize(
    ("entry", "value"),
    [
        ("epsilon", "1"),
        ("purpose", 3),
        ("purpose", " "),
        ("purpose", "x" * 5000),
        ("curator", []),
        ("authors", ["a", 1]),
        ("published", "1/1/2026"),
        ("sector", "Sports"),
    ],
)
def test_other_entries_are_rejected(entry, value):
    with pytest.raises(ValueError, match=entry):
        check_papers({entry: value})


def test_a_file_that_is_not_toml_names_itself(tmp_path):
    file = tmp_path / "papers.toml"
    file.write_text("purpose = ")
    with pytest.raises(ValueError, match=r"papers\.toml"):
        read_papers(file)
    file.write_text("published = 2026-03-01\n")
    assert read_papers(file) == {"published": "2026-03-01"}


def test_a_certificate_states_them_and_is_verified():
    rng = np.random.default_rng(0)
    X, y = rng.uniform(-1, 1, (100, 2)), rng.uniform(-1, 1, 100)
    model = PrivateLinearRegression(bounds_X=(-1, 1), bounds_y=(-1, 1)).fit(X, y)
    stated = model.privacy_.with_papers(GIVEN)
    assert stated.digest != model.privacy_.digest
    assert "Purpose, as stated: Planning." in explain(stated)
    text = stated.to_json()
    assert verify_certificate(text).verified
    assert PrivacyCertificate.from_json(text) == stated
    assert not verify_certificate(text.replace('"purpose"', '"porpoise"')).verified
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", stated.date)


def test_the_build_is_known_by_its_sources(tmp_path, monkeypatch):
    """One changed character, or a file that moved, is another build; line ends are not."""
    own = build()
    assert re.fullmatch("sha256:[0-9a-f]{64}", own["source"])
    root = tmp_path / "fastmix"
    shutil.copytree(build_module._ROOT, root)
    monkeypatch.setattr(build_module, "_ROOT", root)
    found = {"same": build.__wrapped__()["source"]}
    file = root / "errors.py"
    file.write_bytes(file.read_bytes().replace(b"\n", b"\r\n"))
    found["line ends"] = build.__wrapped__()["source"]
    file.write_bytes(file.read_bytes() + b"#")
    found["changed"] = build.__wrapped__()["source"]
    assert found["same"] == found["line ends"] == own["source"] != found["changed"]
