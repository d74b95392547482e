"""``explain --verify``: a change of any field shows, or the field is listed as not checked."""

from __future__ import annotations

import copy
import json
import re
import shutil
from pathlib import Path

import numpy as np
import pytest

import fastmix
from fastmix.certificate.documents import digest
from fastmix.certificate.verify import NOT_CHECKED, verify_certificate
from fastmix.cli.main import ExitCode
from fastmix.estimators.saving import OUTSIDE

FIT = (
    "fit people.csv --target income --bounds bounds.toml --delta 1e-6 --method adassp "
    "--no-intervals"
)
EVALUATE = "evaluate model people.csv --epsilon 1 --delta 1e-6"
#: Fields that the list of what was not checked names.
LISTED = [field for line in NOT_CHECKED for field in line.partition(":")[0].split(", ")]


def leaves(node, path=()):
    """Yield the paths of all values of a JSON document."""
    if isinstance(node, (dict, list)) and node:
        for key, value in node.items() if isinstance(node, dict) else enumerate(node):
            yield from leaves(value, (*path, key))
    else:
        yield path


def changed(data, path):
    """Return a copy of a document with another value, of the same kind, in one place."""
    data = copy.deepcopy(data)
    at = data
    for key in path[:-1]:
        at = at[key]
    old = at[path[-1]]
    other = {bool: not old, int: 7 if old != 7 else 8, float: 0.9, str: f"{old}x"}
    at[path[-1]] = other.get(type(old), 3)
    return data


def sealed(data):
    """Return a certificate with a digest that fits, as whoever forges it would."""
    return {**data, "digest": digest(data, without=("digest",))}


def is_listed(path):
    dotted = ".".join(map(str, path))
    return any(dotted == field or dotted.startswith(f"{field}.") for field in LISTED)


@pytest.fixture
def model(folder, run):
    assert run(FIT)[0] == 0
    return Path("model")


@pytest.mark.parametrize("file", ["certificate.json", "model.json"])
def test_every_change_in_a_folder_shows(model, run, file):
    """One value, one name or one entry more: certificate and model bind each other."""
    text = (model / file).read_text()
    data = json.loads(text)
    changes = [changed(data, path) for path in leaves(data)]
    changes += [{**data, "more": 1}, dict(list(data.items())[:-1]), dict(reversed(data.items()))]
    assert len(changes) > 25
    for each in changes:
        assert each != data or list(each) != list(data)
        (model / file).write_text(json.dumps(each))
        code, out, _ = run("explain model --verify")
        assert code in (ExitCode.CHECK_FAILED, ExitCode.DATA), each
        assert "Verified" not in out
    (model / file).write_text(text)
    assert run("explain model --verify")[0] == 0


def test_a_forged_certificate_shows_or_the_field_is_listed(folder, run):
    """With a digest that fits and no model beside it."""
    rng = np.random.default_rng(0)
    X, y = rng.uniform(-1, 1, (80, 2)), rng.uniform(-1, 1, 80)
    for estimator in (
        fastmix.AdaSSP(bounds_X=(-1, 1), bounds_y=(-1, 1)),
        fastmix.DPGradientDescent(bounds_X=(-1, 1), bounds_y=(-1, 1)),
        fastmix.LinearMixing(bounds_X=(-1, 1), bounds_y=(-1, 1), delta=1e-6),
    ):
        data = json.loads(estimator.fit(X, y).privacy_.to_json())
        unseen = []
        for path in leaves(data):
            forged = sealed(changed(data, path))
            if path != ("digest",) and verify_certificate(json.dumps(forged)).verified:
                unseen.append(path)
        assert [path for path in unseen if not is_listed(path)] == []
        assert unseen  # versions, at least: a certificate is not a signature


@pytest.mark.slow
def test_a_forged_certificate_of_the_default_method_shows_or_the_field_is_listed(folder, run):
    assert run("fit people.csv --target income --bounds bounds.toml")[0] == 0
    data = json.loads(Path("model/certificate.json").read_text())
    for path in leaves(data):
        Path("forged.json").write_text(json.dumps(sealed(changed(data, path))))
        if path != ("digest",) and run("explain forged.json --verify")[0] == 0:
            assert is_listed(path), path


def test_the_attacks_of_the_report(model, run):
    """Another model's certificate, other rows, other versions, and noise levels times 1000."""
    assert run(f"{FIT} --out other")[0] == 0
    kept = (model / "certificate.json").read_text()
    shutil.copy("other/certificate.json", model / "certificate.json")
    code, out, _ = run("explain model --verify --json")
    assert code == ExitCode.CHECK_FAILED
    assert "model.json does not match the certificate" in out
    data = json.loads(kept)

    def attack(change):
        forged = copy.deepcopy(data)
        change(forged)
        (model / "certificate.json").write_text(json.dumps(sealed(forged)))
        code, out, _ = run("explain model --verify --json")
        found = json.loads(out)
        assert code == ExitCode.CHECK_FAILED
        assert found["verified"] is False
        return found["complaints"]

    said = attack(lambda d: d["data"].update(n_samples=9))
    assert "the certificate in model.json differs in data, digest" in said
    assert attack(lambda d: d["versions"].update(numpy="9.9"))

    def louder(forged):
        forged["versions"]["fastmix"] = "0.0.1"
        forged["parameters"]["sigma"] *= 1000

    assert "sigma" in data["parameters"]
    assert any("its parameters.sigma is" in text for text in attack(louder))
    # The same where no model is beside it.
    Path("alone.json").write_text((model / "certificate.json").read_text())
    assert run("explain alone.json --verify")[0] == ExitCode.CHECK_FAILED


def test_both_outputs_say_what_was_not_checked(model, run):
    code, out, _ = run("explain model --verify --json")
    found = json.loads(out)
    assert code == 0
    assert found["verified"] is True
    assert set(NOT_CHECKED) == set(found["not_checked"])
    code, text, _ = run("explain model --verify")
    assert code == 0
    assert text.index("Verified") < text.index("Not checked:")
    for line in found["not_checked"]:
        assert f"- {line}" in text
    shutil.copy(model / "certificate.json", "alone.json")
    code, text, _ = run("explain alone.json --verify")
    assert code == 0
    assert "- model: there is no model.json in the same folder" in text


def test_a_report_of_another_fit_shows(model, run):
    assert run(f"{FIT} --out other")[0] == 0
    shutil.copy("other/report.html", model / "report.html")
    code, out, _ = run("explain model --verify")
    assert code == ExitCode.CHECK_FAILED
    assert "report.html is not the report of this model and this certificate" in out


def test_a_name_that_is_there_twice_is_refused(model, run):
    text = (model / "certificate.json").read_text()
    assert text.startswith("{")
    (model / "certificate.json").write_text('{"private": true,' + text[1:])
    assert run("explain model --verify")[0] == ExitCode.DATA


def test_other_versions_that_plan_alike_verify_alone(folder, run):
    assert run(FIT)[0] == 0
    data = json.loads(Path("model/certificate.json").read_text())
    data["versions"]["fastmix"] = "0.0.9"
    Path("alone.json").write_text(json.dumps(sealed(data)))
    code, out, _ = run("explain alone.json --verify")
    assert code == 0
    assert "- versions: " in out


@pytest.mark.parametrize(
    "asked",
    [
        "fit people.csv --target income --bounds bounds.toml --score-share 0.1 --delta 1e-6",
        "fit people.csv --target income --bounds bounds.toml --private-rows --delta 1e-6",
        "fit people.csv --target income --bounds bounds.toml --family quantile --score-share 0.1",
        "fit people.csv --target income --bounds bounds.toml --family huber --intervals",
        "fit people.csv --target city --bounds bounds.toml --family logistic --score-share 0.1",
        "fit people.csv --target income --unsafe-bounds-from-data",
        "compare people.csv --target income --bounds bounds.toml --set age --set age,city",
    ],
)
def test_a_report_is_written_again_and_compared(folder, run, asked):
    """From model and certificate alone, for every family; a change of any number shows."""
    bounds = Path("bounds.toml").read_text()
    labels = "[target]\ncity = ['Ulm', 'Bonn']\n[features]\nage = [18, 90]\n"
    Path("bounds.toml").write_text(labels if "logistic" in asked else bounds)
    code, _, err = run(asked)
    assert code == 0, err
    code, out, _ = run("explain model --verify")
    assert code == 0, out
    assert "report.html was written again from both and is the same" in out
    report, saved = Path("model/report.html"), json.loads(Path("model/model.json").read_text())
    page = report.read_text()
    assert ("scores_" in saved["fitted"]) == ("--score-share" in asked)
    body = page[page.index("<body") : page.index("<h2>Certificate</h2>")]
    numbers = set(re.findall(r"(?<=[>( ])-?\d+\.\d+", body))
    assert len(numbers) > 5
    for number in sorted(numbers)[:: max(1, len(numbers) // 8)]:
        forged = number[:-1] + ("1" if number[-1] != "1" else "2")
        report.write_text(page.replace(number, forged, 1))
        code, out, _ = run("explain model --verify")
        assert code == ExitCode.CHECK_FAILED
        assert "Verified" not in out
        assert "report.html is not the report of this model and this certificate" in out
    report.write_text(page)
    Path("model/model.json").rename("kept.json")
    assert run("explain model --verify")[0] == ExitCode.CHECK_FAILED


@pytest.mark.parametrize("line", ["predict model people.csv", "summary model", EVALUATE])
def test_no_command_uses_a_changed_model(model, run, line):
    data = json.loads((model / "model.json").read_text())
    more = {**data["fitted"], "coef_": [each + 1.0 for each in data["fitted"]["coef_"]]}
    for change in ({"fitted": more}, {"fitted": {**data["fitted"], "n_steps_": 99}}):
        (model / "model.json").write_text(json.dumps({**data, **change}))
        code, out, err = run(line)
        assert (code, out) == (ExitCode.DATA, "")
        assert "the model was changed after it was written" in err
        forged = {**data, **change}
        forged["digest"] = digest(forged, without=OUTSIDE)
        forged["certificate"] = sealed({**data["certificate"], "model": forged["digest"]})
        (model / "model.json").write_text(json.dumps(forged))
        code, out, err = run(line)
        assert (code, out) == (ExitCode.DATA, "")
        assert "does not match certificate.json in the same folder" in err
    (model / "model.json").write_text(json.dumps(data))
    assert run(line)[0] == 0
