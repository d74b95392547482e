"""A certificate verifies, and one that was tampered with does not."""

from __future__ import annotations

import json

import numpy as np
import pytest
from sklearn.base import clone

import fastmix
from fastmix.certificate.documents import digest
from fastmix.certificate.explain import explain, explain_events, headline
from fastmix.certificate.verify import verify_certificate
from fastmix.estimators.models import fixing

MODELS = {
    "AdaSSP": fastmix.AdaSSP(),
    "DPGradientDescent": fastmix.DPGradientDescent(n_steps=7),
    "FastIHM": fastmix.FastIHM(),
    "FastIHM paper": fastmix.FastIHM(variant="paper"),
    "IHM": fastmix.IHM(),
    "IHM paper": fastmix.IHM(variant="paper"),
    "LinearMixing fast": fastmix.LinearMixing(fast=True),
    "ObjectivePerturbation": fastmix.ObjectivePerturbation(ridge=4.0),
    "PrivateLinearRegression": fastmix.PrivateLinearRegression(),
    "PrivateLinearRegression rounds": fixing(fastmix.PrivateLinearRegression, rounds=2)(),
    "no privacy": fastmix.PrivateLinearRegression(epsilon=float("inf")),
}


@pytest.fixture(scope="module")
def certificates():
    rng = np.random.default_rng(0)
    X, y = rng.uniform(-1, 1, (80, 3)), rng.uniform(-1, 1, 80)
    public = {"bounds_X": (-1, 1), "bounds_y": (-1, 1)}
    return {k: clone(m).set_params(**public).fit(X, y).privacy_ for k, m in MODELS.items()}


@pytest.mark.parametrize("name", MODELS)
def test_a_certificate_verifies(name, certificates):
    found = verify_certificate(certificates[name].to_json())
    assert found.complaints == ()
    assert found.verified


def tampered(certificate, change):
    data = json.loads(certificate.to_json())
    change(data)
    return verify_certificate(json.dumps(data)).complaints


def test_tampering_shows(certificates):
    one = certificates["DPGradientDescent"]

    def lower_epsilon(data):
        data["account"]["epsilon"] *= 0.99

    def lower_part(data):
        data["account"]["parts"][0]["epsilon"] = 0.1

    def less_noise(data):
        data["account"]["parts"][0]["events"][0]["sigma"] *= 0.5

    def other_rows(data):
        data["data"]["n_samples"] += 1

    def asked_less(data):
        data["parameters"]["epsilon"] = 0.5

    def from_data(data):
        data["data"]["taken_from_data"] = ["bounds_y"]

    def hidden_leak(data):
        data["leaks"] = ["the noise was seeded by the caller"]

    def other_relation(data):
        data["account"]["neighboring_relation"] = "replace-one"

    def other_clipping(data):
        data["data"]["residuals_clipped_at"] = 2.0

    def other_target(data):
        data["data"]["bounds_y"] = [-2.0, 2.0]

    def other_rows_bound(data):
        data["data"]["row_norm"] *= 0.5

    def other_size(data):
        data["parameters"]["sigma"] += 1

    def other_noise(data):
        data["noise"] = "random.random"

    def other_format(data):
        data["format"] = "x"

    for change, complaint in (
        (lower_epsilon, "its account.epsilon is 0.98"),
        (lower_part, "its account.parts[0].epsilon is 0.1"),
        (less_noise, "its account.parts[0].events[0].sigma is"),
        (other_rows, "its other entries call for"),
        (asked_less, "its account.epsilon is 0.99"),
        (from_data, "its private is True; its other entries call for False"),
        (hidden_leak, "its leaks is ["),
        (other_relation, "its account.neighboring_relation is 'replace-one'"),
        (other_clipping, "its data.residuals_clipped_at is 2.0"),
        (other_target, "its data.residuals_clipped_at is"),
        (other_rows_bound, "its data.row_norm is"),
        (other_size, "its parameters.sigma is"),
        (other_noise, "source of noise"),
        (other_format, "its format"),
    ):
        wrong = tampered(one, change)
        assert any(complaint in text for text in wrong), (change.__name__, wrong)


def test_what_is_not_a_certificate():
    for text in (
        "",
        "{}",
        "[1]",
        '{"format": "fastmix-certificate-2"}',
        '{"format": "fastmix-certificate-5"}',
    ):
        assert not verify_certificate(text).verified


@pytest.mark.parametrize("name", MODELS)
def test_plain_words(name, certificates):
    certificate = certificates[name]
    said = explain(certificate)
    assert said[0] == headline(certificate)
    assert certificate.private == ("NOT PRIVATE" not in said[0])
    assert all(text and "None" not in text for text in said)
    assert "80 rows and 3 columns" in " ".join(said)
    assert len(explain_events(certificate.events)) <= 6


@pytest.mark.parametrize(
    ("parameter", "value"),
    [("fit_intercept", 1), ("inference", 0), ("epsilon", "1.0")],
)
@pytest.mark.parametrize("name", ["IHM", "no privacy"])
def test_a_parameter_of_another_kind_shows_under_a_new_digest(name, parameter, value, certificates):
    data = json.loads(certificates[name].to_json())
    data["parameters"][parameter] = value
    data["digest"] = digest(data, without=("digest",))
    found = verify_certificate(json.dumps(data))
    assert not found.verified
    told = (f"its parameters.{parameter} is", "it is not a complete certificate")
    assert any(text.startswith(told) for text in found.complaints), found.complaints


@pytest.mark.parametrize(
    ("parameter", "value"),
    [("min_listed", 1.5), ("min_listed", "0.1"), ("min_listed", True), ("compared", 1)],
)
def test_a_share_of_labels_or_a_number_of_sets_that_no_fit_has_shows(parameter, value):
    rng = np.random.default_rng(0)
    X, y = rng.uniform(-1, 1, (300, 2)), rng.integers(0, 2, 300)
    model = fastmix.PrivateLogisticRegression(bounds_X=(-1, 1), classes=(0, 1), min_listed=0.1)
    data = json.loads(fastmix.compare([[0], [1]], X, y, model=model).model.privacy_.to_json())
    assert verify_certificate(json.dumps(data)).verified
    data["parameters"][parameter] = value
    data["digest"] = digest(data, without=("digest",))
    assert "min_listed" in str(verify_certificate(json.dumps(data)).complaints)


@pytest.mark.parametrize("place", [(), ("data",), ("parameters",), ("account",), ("versions",)])
def test_an_entry_more_or_less_shows_under_a_new_digest(place, certificates):
    text = certificates["IHM"].to_json()
    for change in ("more", "less"):
        data = json.loads(text)
        part = data
        for key in place:
            part = part[key]
        if change == "more":
            part["x"] = 1
        else:
            part.pop(next(name for name in reversed(part) if name != "digest"))
        data["digest"] = digest(data, without=("digest",))
        assert not verify_certificate(json.dumps(data)).verified, (place, change)


def test_a_true_certificate_of_a_fit_that_is_not_private_verifies_as_such():
    model = fastmix.IHS(bounds_X=(-1, 1), bounds_y=(-1, 1))
    rng = np.random.default_rng(0)
    model.fit(rng.uniform(-1, 1, (50, 2)), rng.uniform(-1, 1, 50))
    assert not model.privacy_.private
    assert verify_certificate(model.privacy_.to_json()).verified
