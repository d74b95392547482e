"""Signed fits, and papers for data-protection officers and the public registry."""

from __future__ import annotations

import datetime
import json
import os
import re
import stat
import subprocess

import pytest
import yaml

import fastmix
from fastmix.certificate import signing
from fastmix.certificate.documents import digest
from fastmix.errors import DataError
from fastmix.estimators.saving import OUTSIDE

PAPERS = """
title = "Income by age: a model"
curator = ["Office of Ulm", "Land"]
purpose = "Planning of services"
region = "Germany"
sector = "Government"
reason = "The board decided on epsilon 1."
preparation = "None."
"""
FIT = "fit people.csv --target income --bounds bounds.toml --delta 1e-7"


@pytest.fixture
def signed(folder, run):
    """A folder with keys and a signed model."""
    (folder / "papers.toml").write_text(PAPERS)
    assert run("key office")[0] == 0
    code, out, err = run(f"{FIT} --score-share 0.1 --papers papers.toml --sign office.key")
    assert code == 0, err
    assert "signed" in out
    return folder


def test_keys_are_never_replaced_and_the_secret_one_is_secret(folder, run):
    assert run("key office --json")[0] == 0
    if os.name == "posix":
        assert stat.S_IMODE((folder / "office.key").stat().st_mode) == 0o600
    before = (folder / "office.key").read_bytes()
    code, _, err = run("key office")
    assert (code, "never replaced" in err) == (2, True)
    assert (folder / "office.key").read_bytes() == before


def test_a_signed_fit_verifies_here_and_with_other_tools(signed, run):
    code, out, _ = run("explain model --verify --key office.pub")
    assert code == 0
    assert "The files are signed with office.pub." in out
    assert run("predict model people.csv --key office.pub")[0] == 0
    sums = ["sha256sum", "--check", "--strict", "SHA256SUMS"]
    subprocess.run(sums, cwd=signed / "model", check=True, capture_output=True)
    line = "openssl pkeyutl -verify -pubin -inkey ../office.pub -rawin -in SHA256SUMS"
    line += " -sigfile SHA256SUMS.sig"
    subprocess.run(line.split(), cwd=signed / "model", check=True, capture_output=True)


@pytest.mark.parametrize("name", ["model.json", "certificate.json", "report.html"])
def test_a_changed_file_is_refused_with_and_without_the_key(name, signed, run):
    """One more space is no change of a JSON document, but of the signed file."""
    file = signed / "model" / name
    file.write_bytes(file.read_bytes() + b" ")
    for key in ("", " --key office.pub"):
        code, _, err = run(f"predict model people.csv --force{key}")
        assert (code, f"{name} was changed" in err) == (3, True)
        code, out, _ = run(f"explain model --verify{key}")
        assert (code, f"{name} was changed" in out) == (1, True)


def test_forged_signatures_are_refused(signed, run):
    """Another key signs, the signature or a file goes, the sums name less: none passes."""
    model = signed / "model"
    assert run("key forger")[0] == 0
    forger = signing.read_signer(signed / "forger.key")
    contents = {name: (model / name).read_bytes() for name in signing.SIGNED}
    genuine = {name: (model / name).read_bytes() for name in (signing.SUMS, signing.SIGNATURE)}

    def refused(key="office.pub"):
        return run(f"predict model people.csv --force --key {key}")[0] == 3

    for name, content in forger.files(contents).items():
        (model / name).write_bytes(content)
    assert refused()
    assert refused("forger.pub")  # the certificate names the other key
    less = {name: contents[name] for name in signing.SIGNED[:2]}
    for name, content in forger.files(less).items():
        (model / name).write_bytes(content)
    assert run("predict model people.csv --force")[0] == 3
    for name, content in genuine.items():
        (model / name).write_bytes(content)
    assert not refused()
    (model / signing.SIGNATURE).unlink()
    assert refused()
    assert run("predict model people.csv --force")[0] == 3
    (model / signing.SUMS).unlink()
    with pytest.raises(DataError, match="not signed"):
        fastmix.load(model)


def test_a_forged_file_beside_a_signed_one_is_refused(signed, run):
    """The signature of a folder is none of a file that was put beside the signed ones."""
    folder = signed / "model"
    model = json.loads((folder / "model.json").read_text())
    own = model["certificate"]
    model["fitted"]["intercept_"] += 1.0
    own["papers"]["curator"] = ["Nobody"]
    own["model"] = model["digest"] = digest(model, without=OUTSIDE)
    own["digest"] = digest(own, without=("digest",))
    (folder / "other.json").write_text(json.dumps(model))
    (folder / "paper.json").write_text(json.dumps(own))
    code, _, err = run("predict model/other.json people.csv --key office.pub")
    assert (code, "other.json is not among the signed files" in err) == (3, True)
    with pytest.raises(DataError, match="not among the signed"):
        fastmix.load(folder / "other.json")
    code, out, _ = run("explain model/paper.json --verify --key office.pub")
    assert (code, "paper.json is not among the signed files" in out) == (1, True)


def test_an_unsigned_fit_is_refused_with_a_key(folder, run):
    assert run("key office")[0] == 0
    assert run(f"{FIT} --out plain")[0] == 0
    assert run("explain plain --verify")[0] == 0
    assert run("explain plain --key office.pub")[0] == 1
    assert run("predict plain people.csv --key office.pub")[0] == 3


def test_a_signed_folder_is_replaced_as_a_whole(signed, run):
    assert run(f"{FIT} --force")[0] == 0
    assert sorted(os.listdir("model")) == ["certificate.json", "model.json", "report.html"]
    assert run("explain model --verify")[0] == 0


@pytest.mark.parametrize("option", ["--sign people.csv", "--sign office.pub", "--papers none.toml"])
def test_bad_papers_stop_a_fit_before_the_charge(option, folder, run):
    assert run("key office")[0] == 0
    assert run("ledger new b.jsonl --epsilon 5 --delta 1e-5")[0] == 0
    assert run(f"{FIT} --ledger b.jsonl {option}")[0] in (2, 3)
    assert json.loads(run("ledger show b.jsonl --json")[1])["charges"] == []


def test_an_encrypted_key_asks_for_its_passphrase(folder, monkeypatch):
    secret, _public, fingerprint = signing.new_keys("correct horse")
    (folder / "office.key").write_bytes(secret)
    assert b"ENCRYPTED" in secret
    monkeypatch.setattr("getpass.getpass", lambda prompt: "correct horse")
    assert signing.read_signer(folder / "office.key").fingerprint == fingerprint
    monkeypatch.setattr("getpass.getpass", lambda prompt: "wrong")
    with pytest.raises(ValueError, match="passphrase"):
        signing.read_signer(folder / "office.key")


def test_python_signs_and_checks(signed, run, tmp_path):
    model = fastmix.load("model", key="office.pub")
    model.save("again", sign="office.key")
    assert fastmix.load("again", key="office.pub").privacy_.signer == model.privacy_.signer
    model.save("plain")
    assert fastmix.load("plain").privacy_.signer is None
    model.save("again", replace=True)
    assert fastmix.load("again").privacy_.signer is None


def test_the_registry_takes_the_record(signed, run):
    """What the registry's schema and its checks ask for, as of 2026, in our words."""
    code, _, err = run("explain model --registry release.yaml")
    assert code == 0, err
    text = (signed / "release.yaml").read_text()
    record = yaml.safe_load(text)
    assert [*record] == ["url_slug", "status", "tier", "deployment"]
    assert (record["status"], record["tier"]) == ("Draft", 3)
    assert record["url_slug"] == f"income-by-age-a-model-office-of-ulm-land-{_year()}"
    parts = record["deployment"]
    assert {name: {*part} for name, part in parts.items()} == {
        "basic": {
            *("name", "data_curators", "description", "intended_use", "data_product_type"),
            *("data_product_region", "publication_date", "data_product_sector"),
        },
        "dp_variant": {"variant_name", "data_domain", "unprotected_quantities"},
        "privacy_loss": {
            *("privacy_unit", "privacy_unit_details"),
            *("privacy_parameters", "privacy_parameters_details"),
        },
        "deployment_model": {
            *("model_name", "model_name_details", "actors", "release_type"),
            *("release_type_details", "data_source_type", "data_source_type_details"),
            *("access_type", "access_type_details"),
        },
        "accounting": {"post_processing", "composition"},
        "implementation": {
            *("preprocessing_and_hyperparameter_tuning", "mechanisms", "justification"),
        },
        "administrative": {"notes", "registry_authors"},
    }
    basic, loss = parts["basic"], parts["privacy_loss"]
    assert basic["data_curators"] == ["Office of Ulm", "Land"]
    assert basic["data_product_type"] == "Machine learning model"
    assert datetime.date.fromisoformat(basic["publication_date"])  # a text, not a date
    assert loss["privacy_parameters"] == {"epsilon": 1.0, "delta": 1e-7}
    assert parts["dp_variant"]["variant_name"] == "Approximate DP"
    chosen = [parts["deployment_model"][k] for k in ("model_name", "release_type", "access_type")]
    assert chosen == ["Central", "One release", "Non-interactive"]
    leaves = [leaf for part in parts.values() for leaf in part.values()]
    assert all(leaf for leaf in leaves)
    assert "&" not in text.split("\n", 1)[0]
    assert not re.search(r": [>&*]", text)  # no folded text, no alias


def _year():
    return datetime.datetime.now(datetime.UTC).year


def test_a_record_needs_papers_and_takes_them_later(folder, run):
    assert run(FIT)[0] == 0
    code, _, err = run("explain model --registry release.yaml")
    assert (code, "curator, purpose, region" in err) == (2, True)
    (folder / "papers.toml").write_text(PAPERS)
    assert run("explain model --registry release.yaml --papers papers.toml")[0] == 0
    assert run("explain model --registry release.yaml --papers papers.toml")[0] == 2  # exists


def test_no_papers_are_written_of_a_certificate_that_does_not_verify(folder, run):
    """Digests can be computed anew, but the events must be those that the settings call for."""
    assert run(FIT)[0] == 0
    model = json.loads((folder / "model" / "model.json").read_text())
    certificate = model["certificate"]
    for part in certificate["account"]["parts"]:
        for event in part["events"]:
            event |= {"sigma": 100 * event["sigma"]} if "sigma" in event else {"mu": 0.001}
    certificate["digest"] = digest(certificate, without=("digest",))
    (folder / "model" / "model.json").write_text(json.dumps(model))
    (folder / "model" / "certificate.json").write_text(json.dumps(certificate))
    assert fastmix.load(folder / "model").privacy_.epsilon < 0.5  # of 1
    code, _, err = run("explain model --statement page.html --card card.md")
    assert (code, "does not verify" in err) == (3, True)
    assert not list(folder.glob("*.html"))
    assert not list(folder.glob("card.md"))


def test_statement_and_card_answer_every_question(signed, run):
    code, _, err = run("explain model --statement page.html --card card.md --key office.pub")
    assert code == 0, err
    page, card = (signed / "page.html").read_text(), (signed / "card.md").read_text()
    for question in (
        *("Privacy loss", "Who is protected", "Neighbouring tables", "Several at once"),
        *("Reason for these values", "Other releases", "Algorithm", "Audit of this version"),
        *("Floating point", "Bounds", "Accuracy", "Groups of people", "Trust model"),
        *("Not protected", "Preparation", "Access to the raw data", "Software", "Signed with"),
    ):
        assert question in page
        assert question in card
    assert "The board decided on epsilon 1." in page
    assert "R-squared" in card
    assert "http" not in page


def test_an_audit_of_other_code_is_refused(folder, run):
    found = {"format": "fastmix-audit-1", "build": {"source": "sha256:0"}, "claims": 2}
    found |= {"survived": 2, "releases": 100, "confidence": 0.99, "results": []}
    audit = folder / "audit.json"
    audit.write_text(json.dumps(found))
    code, _, err = run(f"{FIT} --audit audit.json")
    assert (code, "another version" in err) == (3, True)
    found["build"] = fastmix.certificate.build.build()
    audit.write_text(json.dumps(found))
    assert run(f"{FIT} --audit audit.json")[0] == 0
    assert "2 of 2 claims survived" in run("explain model --verify")[1]
    audit.write_text("[]")
    assert run(f"{FIT} --audit audit.json --force")[0] == 3
