"""The privacy certificate: enough to check a fit, and nothing that depends on the data."""

from __future__ import annotations

import json
import math
import platform
import resource
import signal
import subprocess
import sys
import textwrap
from dataclasses import asdict
from importlib.metadata import version

import dp_accounting
import numpy as np
import pytest
from sklearn.base import clone

import fastmix
from fastmix import IHM, PrivacyCertificate
from fastmix.accounting import ObjectiveEvent, PrivacySpent
from fastmix.certificate.explain import _choices, explain_event
from fastmix.estimators.intervals import _STORED
from fastmix.estimators.models import fixing
from fastmix.kernels import kernels_used

BOUNDS = {"bounds_X": (-1, 1), "bounds_y": (-2, 1)}
MODELS = {
    "AdaSSP": fastmix.AdaSSP(),
    "AdaSSP published": fastmix.AdaSSP(variant="paper", calibration="published"),
    "DPGradientDescent": fastmix.DPGradientDescent(n_steps=7),
    "FastIHM": fastmix.FastIHM(),
    "FastIHM dct": fastmix.FastIHM(sketch="dct"),
    "IHM": fastmix.IHM(),
    "LinearMixing": fastmix.LinearMixing(),
    "LinearMixing fast": fastmix.LinearMixing(fast=True),
    "ObjectivePerturbation": fastmix.ObjectivePerturbation(),
    "PrivateLinearRegression rounds": fixing(fastmix.PrivateLinearRegression, rounds=2)(),
    "ObjectivePerturbation sketch": fastmix.ObjectivePerturbation(solver="sketch"),
    "PrivateLinearRegression": fastmix.PrivateLinearRegression(),
}


def problem(n=70, d=3, seed=0):
    rng = np.random.default_rng(seed)
    return rng.uniform(-1, 1, (n, d)), rng.uniform(-1, 1, n)


@pytest.fixture(scope="module")
def fits():
    X, y = problem()
    return {
        name: clone(model).set_params(epsilon=2.0, delta=1e-6, **BOUNDS).fit(X, y)
        for name, model in MODELS.items()
    }


@pytest.mark.parametrize("name", MODELS)
def test_it_holds_the_account(name, fits):
    certificate = fits[name].privacy_
    assert isinstance(certificate, PrivacyCertificate)
    assert 0.0 < certificate.epsilon <= 2.0
    assert certificate.delta == pytest.approx(1e-6, rel=1e-12)
    assert certificate.spent.neighboring_relation == "zero-out"
    assert certificate.events
    assert certificate.private
    assert certificate.leaks == ()
    orders = np.array([1.5, 2.0, 8.0])
    assert (certificate.spent.rdp(orders) > 0.0).all()
    assert (np.diff(certificate.spent.rdp(orders)) > 0.0).all()


@pytest.mark.parametrize("name", MODELS)
def test_other_accountants_confirm_it(name, fits):
    """The tabulated curve, put into dp_accounting, certifies what the joint account does."""
    certificate = fits[name].privacy_
    orders, rdp, tail = certificate.spent.to_dp_accounting()
    assert all(type(value) is float for value in (*orders, *rdp, tail))
    assert 0.0 <= tail < 1e-6
    epsilon, _ = dp_accounting.rdp.compute_epsilon(orders, rdp, 1e-6 - tail)
    joint = certificate.spent.joint_epsilon(1e-6)
    # The joint account may use better conversions; a table of orders can only be worse.
    assert joint <= epsilon * (1 + 1e-9)
    assert epsilon < 1.35 * joint
    assert joint <= certificate.epsilon * (1 + 1e-9)


@pytest.mark.parametrize("name", MODELS)
def test_json_round_trip_recomputes_epsilon(name, fits):
    certificate = fits[name].privacy_
    text = certificate.to_json()
    again = PrivacyCertificate.from_json(text)
    assert again.spent == certificate.spent
    assert again.epsilon == certificate.epsilon
    assert again.delta == certificate.delta
    assert again.to_json() == text
    # A forged epsilon does not survive.
    data = json.loads(text)
    data["account"]["epsilon"] = 1e-9
    for part in data["account"]["parts"]:
        part["epsilon"] = 0.0
    assert PrivacyCertificate.from_json(json.dumps(data)).epsilon == certificate.epsilon
    # A weaker mechanism shows.
    for part in data["account"]["parts"]:
        for event in part["events"]:
            for noise in ("sigma", "scale"):
                if noise in event:
                    event[noise] /= 2.0
    assert PrivacyCertificate.from_json(json.dumps(data)).epsilon > certificate.epsilon


@pytest.mark.parametrize("name", MODELS)
def test_it_names_the_mechanism_and_every_parameter(name, fits):
    model = fits[name]
    data = json.loads(model.privacy_.to_json())
    assert data["format"] == "fastmix-certificate-5"
    assert data["mechanism"] == type(model).__name__
    method = model._resolve()
    skipped = ("accountant", "random_state", "bounds", "bounds_X", "bounds_y", "score_share")
    skipped += ("public_rows",)  # stated where it is given
    stated = {key: value for key, value in model.get_params().items() if key not in skipped}
    for parameter, value in {**stated, **asdict(method), "method_": method.name}.items():
        assert data["parameters"][parameter] == value
    assert data["data"]["bounds_X"] == [[-1.0] * 3, [1.0] * 3]
    assert data["data"]["bounds_y"] == [-2.0, 1.0]
    assert data["data"]["row_norm"] == pytest.approx(math.sqrt(3.0))
    assert data["data"]["intercept_column"] == pytest.approx(1.0)
    assert (data["data"]["n_samples"], data["data"]["n_features"]) == (70, 3)
    assert data["account"]["neighboring_relation"] == "zero-out"
    assert data["versions"] == {
        "fastmix": version("fastmix"),
        "numpy": version("numpy"),
        "scipy": version("scipy"),
        "scikit-learn": version("scikit-learn"),
        "python": platform.python_version(),
    }
    assert data["kernels"] == kernels_used()
    assert data["noise"].startswith("exact, by integers from AES-128-CTR keyed by the OS")
    if "sigma" in data["parameters"]:
        assert data["parameters"]["sigma"] > 0.0


@pytest.mark.parametrize("seed", [0, np.random.RandomState(0), np.random.default_rng(0)])
def test_seeded_noise_is_not_private(seed):
    X, y = problem()
    certificate = IHM(random_state=seed, **BOUNDS).fit(X, y).privacy_
    assert certificate.noise == "seeded"
    assert not certificate.private
    assert any("seeded" in leak for leak in certificate.leaks)


def test_json_has_no_infinities():
    X, y = problem()
    model = IHM(epsilon=math.inf, **BOUNDS).fit(X, y)
    text = model.privacy_.to_json()
    json.loads(text, parse_constant=lambda word: pytest.fail(word))
    assert PrivacyCertificate.from_json(text).epsilon == math.inf


def flat(value):
    """Everything that a fitted attribute shows, as one string."""
    if isinstance(value, PrivacyCertificate):
        document = json.loads(value.to_json())
        if "chosen" in document["data"]:  # from released values
            document["data"]["chosen"] = sorted(document["data"]["chosen"])
            del document["digest"]
        return json.dumps(document) + repr(value)
    if isinstance(value, tuple):
        return "|".join(flat(item) for item in value)
    if isinstance(value, np.ndarray):
        return f"{value.dtype}{value.shape}{value.tobytes().hex()}"
    return repr(value)


@pytest.mark.parametrize("name", MODELS)
def test_only_released_values_depend_on_the_data(name):
    X, y = problem()
    neighbour_X, neighbour_y = X.copy(), y.copy()
    neighbour_X[13], neighbour_y[13] = 0.0, 0.0
    other_X, other_y = problem(seed=1)
    shown = []
    for data in ((X, y), (neighbour_X, neighbour_y), (1e6 * other_X, -1e6 * other_y)):
        model = clone(MODELS[name]).set_params(epsilon=2.0, delta=1e-6, random_state=4, **BOUNDS)
        model.fit(*data)
        shown.append({key: flat(value) for key, value in vars(model).items()})
    released = {"coef_", "intercept_", "eta_"}
    if "chosen_" in shown[0]:
        released |= {"chosen_", "gradient_noise_"}
    if "coef_std_" in shown[0]:  # functions of released values: see engine/test_adaptive.py
        released |= set(_STORED)
    for other in shown[1:]:
        assert other.keys() == shown[0].keys()
        assert {key for key in shown[0] if shown[0][key] != other[key]} <= released
        assert shown[0]["coef_"] != other["coef_"]


@pytest.mark.parametrize("name", MODELS)
def test_no_raw_value_is_stored(name):
    """Mark the data with a number that nothing public contains, and look for it."""
    X, y = problem()
    X[5, 1], y[5] = 0.123456789, 0.987654321
    model = clone(MODELS[name]).set_params(epsilon=2.0, delta=1e-6, **BOUNDS).fit(X, y)
    text = " ".join(flat(value) for value in vars(model).values())
    for mark in (0.123456789, 0.987654321):
        assert repr(mark) not in text
        assert np.float64(mark).tobytes().hex() not in text


def test_the_repr_of_a_fit_shows_parameters_only():
    X, y = problem()
    model = IHM(**BOUNDS).fit(X, y)
    assert repr(model) == repr(clone(model))


@pytest.mark.parametrize("name", MODELS)
def test_it_prints_in_one_line(name, fits):
    certificate = fits[name].privacy_
    assert str(certificate) == repr(certificate)
    assert len(repr(certificate)) < 200
    assert len(repr(certificate.spent)) < 500
    assert "\n" not in repr(certificate)
    assert f"epsilon={certificate.epsilon:.6g}" in repr(certificate)
    assert "private=True" in repr(certificate)


def test_it_keeps_the_versions_that_made_the_fit(fits):
    """A certificate that is read and written again does not change hands."""
    data = json.loads(fits["AdaSSP"].privacy_.to_json())
    data["versions"]["numpy"] = "1.0"
    again = PrivacyCertificate.from_json(json.dumps(data))
    assert again.to_dict()["versions"]["numpy"] == "1.0"
    assert again.digest != data["digest"]


def test_spent_is_a_value():
    X, y = problem()
    certificate = IHM(delta=1e-6, **BOUNDS).fit(X, y).privacy_
    assert PrivacySpent.from_dict(certificate.spent.to_dict()) == certificate.spent
    assert sum(part.delta for part in certificate.parts) == pytest.approx(1e-6)
    assert sum(part.epsilon for part in certificate.parts) == pytest.approx(certificate.epsilon)


def test_a_saved_certificate_is_replaced_as_a_whole_or_not_at_all(tmp_path):
    """The file may grow no further than each of many lengths; the previous one survives."""
    X, y = problem()
    path = tmp_path / "certificate.json"
    first = IHM(delta=1e-6, **BOUNDS).fit(X, y).privacy_
    first.save(path)
    assert PrivacyCertificate.load(path) == first
    before = path.read_bytes()
    second = fastmix.AdaSSP(delta=1e-6, **BOUNDS).fit(X, y).privacy_
    hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        for room in range(0, len(second.to_json()), 97):
            resource.setrlimit(resource.RLIMIT_FSIZE, (room, hard))
            try:
                with pytest.raises(OSError, match="File too large"):
                    second.save(path)
            finally:
                resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
            assert path.read_bytes() == before
            assert [file.name for file in tmp_path.iterdir()] == ["certificate.json"]
    finally:
        signal.signal(signal.SIGXFSZ, handler)
    second.save(path)
    assert PrivacyCertificate.load(path) == second


def test_a_kill_while_saving_keeps_the_previous_certificate(tmp_path):
    """A child dies by SIGKILL after writing part of the file, and just before the replacement."""
    X, y = problem()
    path = tmp_path / "certificate.json"
    first = IHM(delta=1e-6, **BOUNDS).fit(X, y).privacy_
    first.save(path)
    program = """
        import os, signal, sys
        from fastmix import PrivacyCertificate
        certificate = PrivacyCertificate.load(sys.argv[1])
        write, replace = os.pwrite, os.replace
        def die(*arguments):
            os.kill(os.getpid(), signal.SIGKILL)
        for moment in ("write", "replace"):
            if os.fork() == 0:
                if moment == "write":
                    os.pwrite = lambda fd, data, at: die(write(fd, data[: len(data) // 2], at))
                else:
                    os.replace = die
                certificate.save(sys.argv[1])
            assert os.wait()[1] == signal.SIGKILL
    """
    before = path.read_bytes()
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program), str(path)], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert path.read_bytes() == before
    assert len(list(tmp_path.glob(".certificate.json.*"))) == 2  # what the dead left behind


def test_an_objective_and_shrinkage_in_words():
    said = explain_event(ObjectiveEvent(0.25, 0.1), "person")
    assert said == (
        "the minimiser of an objective whose slope has Gaussian noise of 4 times what one person "
        "can change"
    )
    chosen = {"rounds": 1, "residual_spread": 0.1, "residual_clip": 1.0, "ridge": 0.5}
    assert "shrank the coefficients to 62%" in _choices({**chosen, "kept": 0.62})
    assert _choices({**chosen, "kept": 0.998}).endswith("a ridge of 0.5.")


def test_a_logistic_fit_of_few_rows_in_words():
    chosen = {"rounds": 0, "slope_spread": 0.5, "gradient_clip": 1.4, "ridge": 13.6, "kept": 1.0}
    said = _choices(chosen)
    assert "assumed that labels are off their probabilities by 0.5 on average." in said
    assert said.endswith("a clipping level of 1.4 for gradients and a ridge of 13.6.")
