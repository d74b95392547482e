"""The audit command as a stranger would use it."""

import json
import re
from dataclasses import replace

import pytest

from fastmix.audit import Claim, audit, full_only, registry
from fastmix.audit.estimators import ESTIMATORS
from fastmix.cli import main
from fastmix.cli.audit import summary

#: What a test can wait for; `test_few_fits_show_a_quarter_of_epsilon` looks at every estimator.
FEW = ("DPGradientDescent", "AdaSSP", "IHM, paper")


@pytest.mark.parametrize("everything", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_quick_audit_refutes_nothing_and_says_how_strong_it_was(
    capsys, tmp_path, monkeypatch, everything
):
    for name in list(registry) if not everything else ():
        if name not in FEW:
            monkeypatch.delitem(registry, name)
    long = full_only & registry.keys()
    assert main(["audit", "--quick", "--plot", str(tmp_path / "audit.png")]) == 0
    out = capsys.readouterr().out
    lines = out.splitlines()
    names = [name for name in registry if name not in long]
    assert lines[0].startswith("audited")
    assert lines[len(names) + 1] == ""
    shares = {}
    for name, line in zip(names, lines[1:], strict=False):
        assert line.startswith(f"{name} ")
        claimed, _, lower, _, _, verdict, *_ = line.removeprefix(name).split()
        assert 0.0 <= float(lower) <= float(claimed)
        assert verdict == "ok"
        shares[name] = float(lower) / float(claimed)
    verdict, strength, *_, size, more = lines[len(names) + 2 :]
    assert verdict.startswith(f"{len(names)} of {len(names)} claims survived")
    found = shares.values()
    counts = [int(count) for count in re.findall(r"(\d+) (?:of \d+ claims|to at least)", strength)]
    for count, share in zip(counts, (0.5, 0.25), strict=True):  # the lines show three digits
        least, most = (sum(each >= share + off for each in found) for off in (1e-3, -1e-3))
        assert least <= count <= most
    assert counts[1] >= 0.75 * len(names)
    assert any(name in strength for name in names if shares[name] == min(shares.values()))
    assert "four times its claim" in size
    assert more.startswith(f"{len(long)} more cases")
    assert (tmp_path / "audit.png").stat().st_size > 10_000


def test_a_refuted_claim_is_exit_code_1(capsys, monkeypatch):
    name = "DPGradientDescent"
    case = registry[name]()
    for other in [other for other in registry if other != name]:
        monkeypatch.delitem(registry, other)
    monkeypatch.setitem(registry, name, lambda: replace(case, claim=Claim(0.5, 0.05)))
    assert main(["audit"]) == 1
    out = capsys.readouterr().out
    assert "REFUTED" in out
    assert "0 of 1 claims survived" in out
    assert main(["audit", "--json"]) == 1
    (row,) = json.loads(capsys.readouterr().out)["results"]
    assert row["passed"] is False
    assert row["lower"] > row["epsilon"] == 0.5


def test_all_and_quick_exclude_each_other(capsys):
    assert main(["audit", "--all", "--quick"]) == 2
    assert "Pass --all or --quick, not both" in capsys.readouterr().err


@pytest.mark.slow
def test_full_audit_is_strong(capsys):
    """Half of the claim, or, where parts of a budget are added up, of what can be shown at most.

    The sketch of four rows has noise for a smaller covariance than this pair has.
    """
    assert main(["audit", "--all", "--seed", "0", "--json"]) == 0
    found = {row["name"]: row for row in json.loads(capsys.readouterr().out)["results"]}
    assert list(found) == list(registry)
    for name in ESTIMATORS.keys() - {"LinearMixing, four rows"}:
        assert found[name]["reached"] >= 0.5, found[name]
        loose = "paper" in name
        assert loose == (found[name]["attainable"] < 0.95 * found[name]["epsilon"]), found[name]
        assert loose or found[name]["share"] >= 0.5, found[name]


def test_summary_names_claims_that_are_loose():
    found = audit("AdaSSP", trials=400, rng=0)
    loose = replace(found, name="thirds", lower=0.75, epsilon=3.0, attainable=1.5)
    lines = list(summary([found, loose]))
    assert len(lines) == 4
    assert lines[2] == (
        "thirds claims 3.00, but no test on these neighbours can show more than 1.50: this one "
        "reached 50% of that."
    )
