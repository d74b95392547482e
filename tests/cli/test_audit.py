"""The audit command as a stranger would use it."""

import json
from dataclasses import replace

import pytest

from fastmix.audit import Claim, registry
from fastmix.cli import main


def test_quick_audit_of_everything_refutes_nothing(capsys, tmp_path):
    """Seeded. Without a seed an exact claim would fail in one run of a hundred."""
    assert main(["audit", "--quick", "--plot", str(tmp_path / "audit.png")]) == 0
    out = capsys.readouterr().out
    lines = out.splitlines()
    assert lines[0].startswith("audited")
    assert len(lines) == len(registry) + 3
    for name, line in zip(registry, lines[1:], strict=False):
        assert line.startswith(name)
        claimed, lower = float(line[36:45]), float(line[53:62])
        assert 0.0 <= lower <= claimed
        assert " ok " in line
    assert lines[-1].startswith(f"{len(registry)} of {len(registry)} claims survived")
    assert (tmp_path / "audit.png").stat().st_size > 10_000


def test_a_refuted_claim_is_exit_code_1(capsys, monkeypatch):
    name = "Laplace release of m"
    case = registry[name]()
    for other in [other for other in registry if other != name]:
        monkeypatch.delitem(registry, other)
    monkeypatch.setitem(registry, name, lambda: replace(case, claim=Claim(0.5, 0.0)))
    assert main(["audit"]) == 1
    out = capsys.readouterr().out
    assert "REFUTED" in out
    assert "0 of 1 claims survived" in out
    assert main(["audit", "--json"]) == 1
    (row,) = json.loads(capsys.readouterr().out)
    assert row["passed"] is False
    assert row["lower"] > row["epsilon"] == 0.5


def test_all_and_quick_exclude_each_other(capsys):
    assert main(["audit", "--all", "--quick"]) == 2
    assert "exclude each other" in capsys.readouterr().err


@pytest.mark.slow
def test_full_audit_is_strong(capsys):
    """At least 60% of the claimed epsilon is shown for GaussMix and for the Gaussian step."""
    assert main(["audit", "--all", "--json"]) == 0
    found = {row["name"]: row for row in json.loads(capsys.readouterr().out)}
    assert list(found) == list(registry)
    for name in ("GaussMix", "GaussMix, sketch alone", "Gaussian step"):
        assert found[name]["share"] >= 0.6, found[name]
