"""What fit and summary print of wide tables, and of fits that identify nothing."""

from __future__ import annotations

import json
import re

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest

from fastmix.cli import fit

COLUMNS = 40


@pytest.fixture
def wide(tmp_path, monkeypatch):
    """A table of too few rows for its columns, the last of which has the widest range."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 1, (300, COLUMNS))
    columns = {"y": X[:, 0], **{f"c{j}": X[:, j] for j in range(COLUMNS)}}
    pyarrow.parquet.write_table(pyarrow.table(columns), "t.parquet")
    ends = [f"c{j} = [0, {10**9 if j == COLUMNS - 1 else 1}]" for j in range(COLUMNS)]
    (tmp_path / "b.toml").write_text("\n".join(["[target]", "y = [0, 1]", "[features]", *ends]))
    return "fit t.parquet --target y --bounds b.toml --epsilon 0.5 --delta 1e-6"


@pytest.fixture
def hidden(monkeypatch):
    """Fits that identify nothing, whatever their noise is."""
    original = fit._fit

    def replacement(model, *given):
        original(model, *given)
        model.coef_std_[:], model.intercept_std_ = np.inf, np.inf
        model.coef_identified_[:] = False

    monkeypatch.setattr(fit, "_fit", replacement)


def shown(out):
    return re.findall(r"^(c\d+|intercept) ", out, re.MULTILINE)


def test_a_fit_that_identifies_nothing_prints_no_noise(wide, hidden, run):
    code, out, err = run(wide)
    assert code == 0, err
    assert shown(out) == []  # without numbers that are noise
    assert "inf" not in out.replace("inference", "")
    assert "Noise is too large to separate" in out
    assert "--no-intervals" in out
    assert "'fastmix check' shows them" in " ".join(out.split())

    code, out, err = run("summary model")
    assert code == 0, err
    assert shown(out) == []
    assert "Noise is too large to separate" in out
    assert "hidden by noise" not in out
    told = json.loads(run("summary model --json")[1])
    assert told["coefficients"] == []
    assert told["hidden"] == [*(f"c{j}" for j in range(COLUMNS)), "intercept"]


def test_largest_effects_come_first(wide, run):
    code, out, err = run(f"{wide} --no-intervals")
    assert code == 0, err
    told = json.loads(run("summary model --json")[1])["coefficients"][:-1]
    sizes = {e["name"]: abs(e["coef"]) * (1e9 if e["name"] == "c39" else 1.0) for e in told}
    assert shown(out)[:-1] == sorted(sizes, key=lambda name: -sizes[name])[:30]
    assert "too large to separate" not in out
    assert "and 10 more; 'fastmix summary model --all' shows them" in out
    code, out, err = run("summary model")
    assert code == 0, err
    assert len(shown(out)) == 31
    assert "and 10 more; --all shows them" in out
    assert len(shown(run("summary model --all")[1])) == COLUMNS + 1
