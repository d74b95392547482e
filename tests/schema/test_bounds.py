"""The bounds file: what it may say, and what is refused."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest

from fastmix.files.template import bounds_template
from fastmix.schema import Category, Number, PublicBounds, read_bounds

GOOD = """
[target]
income = [0, 1000]
[features]
age = [0, 120]
"home town" = ["Ulm", "Bonn"]
[missing]
values = { age = 40 }
"""


def test_it_says_what_is_public(tmp_path):
    path = tmp_path / "bounds.toml"
    path.write_text(GOOD)
    bounds = read_bounds(path)
    assert bounds.target == Number("income", 0.0, 1000.0)
    assert bounds.features == (
        Number("age", 0.0, 120.0, 40.0),
        Category("home town", ("Ulm", "Bonn")),
    )
    assert bounds.missing == "impute"
    assert bounds.columns() == ("age", "home town=Bonn", "home town=other")
    assert bounds.columns(False) == ("age", "home town=Ulm", "home town=Bonn", "home town=other")
    assert PublicBounds.from_dict(bounds.to_dict()) == bounds


def test_rows_within_the_bounds_are_never_shortened():
    """A category adds at most 1 to the squared norm, however many values it has."""
    bounds = PublicBounds(
        Number("y", 0, 1), (Number("a", 0, 1), Category("c", tuple("pqrstuv")), Number("b", -2, 2))
    )
    lower, upper = bounds.feature_bounds()
    center, scale = (lower + upper) / 2, (upper - lower) / 2
    longest = 0.0
    for j in range(8):
        row = np.array([1.0, *np.eye(8)[j][1:], 2.0])
        longest = max(longest, float(np.linalg.norm((row - center) / scale)))
    assert longest == pytest.approx(bounds.data_norm) == pytest.approx(math.sqrt(3))


def test_a_category_named_other_takes_the_rest():
    category = Category("c", ("x", "other"))
    assert category.levels == ("x", "other")
    assert category.columns(True) == ("c=other",)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("[target]\ny = []\n[features]\na = [0, 1]", "y has no bounds yet"),
        ("[target]\ny = [0, 1]\n[features]\na = []", "a has no bounds yet"),
        ("[target]\ny = ['a']\n[features]\na = [0, 1]", "be at least two different ones"),
        ("[target]\ny = ['a', 'a']\n[features]\na = [0, 1]", "be at least two different ones"),
        ("[target]\ny = {labels = ['a', 1.5]}\n[features]\na = [0, 1]", "be strings or integers"),
        ("[target]\ny = {labels = [1, 2], unit = 'm'}\n[features]\na = [0, 1]", "hold note only"),
        ("[target]\ny = [0, 1, 2]\n[features]\na = [0, 1]", "be [lower, upper]"),
        ("[target]\ny = [0, 1]", "at least one column"),
        ("[target]\ny = [0, 1]\nz = [0, 1]\n[features]\na = [0, 1]", "name one column"),
        ("[target]\ny = [0, 1]\n[features]\ny = [0, 1]", "without the target"),
        ("[target]\ny = [0, 1]\n[features]\na = [1, 0]", "increase"),
        ("[target]\ny = [0, 1]\n[features]\na = [0, inf]", "finite"),
        ("[target]\ny = [0, 1]\n[features]\na = [0, 1, 2]", "lower, upper"),
        ("[target]\ny = [0, 1]\n[features]\na = ['u', 'u']", "different strings"),
        ("[target]\ny = [0, 1]\n[features]\na = ['other']", "more than other"),
        ("[target]\ny = [0, 1]\n[features]\na = [0, 1]\n[missing]\nrule = 'x'", "impute"),
        ("[target]\ny = [0, 1]\n[features]\na = [0, 1]\n[missing]\nvalues = {a = 2}", "at most 1"),
        ("[target]\ny = [0, 1]\n[features]\na = [0, 1]\n[missing]\nvalues = {b = 2}", "named"),
        ("[target]\ny = [0, 1]\n[features]\na = [0, 1]\n[extra]\n", "tables must be"),
        ("[target\n", "must be a TOML file"),
    ],
)
def test_what_is_refused(tmp_path, text, complaint):
    path = tmp_path / "bounds.toml"
    path.write_text(text)
    with pytest.raises(ValueError, match=re.escape(complaint)) as raised:
        read_bounds(path)
    assert str(raised.value).startswith("bounds.toml")


def test_the_template_is_refused_until_it_is_filled_in(tmp_path):
    fields = {"a b": "number", "flag": "bool", "c": "text", "d": "unknown"}
    fields |= {"when": "timestamp[ns]", "many": "list<item: int64>"}
    text = bounds_template({**fields, "y": "number"}, "y")
    path = tmp_path / "bounds.toml"
    path.write_text(text)
    with pytest.raises(ValueError, match="y, a b, c, d and when have no bounds yet"):
        read_bounds(path)
    text = text.replace("y = []", "y = [0, 1]").replace('"a b" = []', '"a b" = [0, 2]')
    path.write_text(text.replace("c = []", 'c = ["u", "v"]').replace("d = []", "d = [0, 1]"))
    with pytest.raises(ValueError, match="when has no bounds yet"):
        read_bounds(path)
    path.write_text(path.read_text().replace("when = []", "when = [2000-01-01, 2001-01-01]"))
    names = [feature.name for feature in read_bounds(path).features]
    assert names == ["a b", "flag", "c", "d", "when"]


@pytest.mark.parametrize(
    ("kind", "hint", "filled"),
    [
        ("bool", "{ labels = [false, true] }", ("false", "true")),
        ("text", '["no", "yes"]', ("no", "yes")),
        ("unknown", '["no", "yes"]', ("no", "yes")),
    ],
)
def test_the_template_says_how_labels_are_written(tmp_path, kind, hint, filled):
    text = bounds_template({"a": "bool", "y": kind}, "y")
    (line,) = [line for line in text.splitlines() if line.startswith("y = ")]
    assert "--family logistic" in line
    assert line.endswith(f": {hint}")
    path = tmp_path / "bounds.toml"
    path.write_text(text.replace("y = []", f"y = {hint}"))
    assert read_bounds(path).target.labels == filled


def test_true_and_false_alone_are_labels(tmp_path):
    path = tmp_path / "bounds.toml"
    path.write_text("[target]\ny = [false, true]\n[features]\na = [0, 1]\n")
    assert read_bounds(path).target.labels == ("false", "true")


def test_selecting_features():
    bounds = PublicBounds(Number("y", 0, 1), (Number("a", 0, 1), Number("b", 0, 1)))
    assert bounds.select(["b"]).columns() == ("b",)
    with pytest.raises(ValueError, match="features must be among"):
        bounds.select(["z"])
