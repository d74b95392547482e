"""What each number of rows per person leads to expect."""

import json

import numpy as np
import pytest

from fastmix.planning import plan, row_choices
from fastmix.planning.rows_per_person import advice, guess_from, usual_guess


def test_rows_cost_hardly_any_noise_and_lower_the_error():
    guess = guess_from("1:0.5,5:0.3,40:0.2")
    assert guess.mean == pytest.approx(10.0)
    choices = row_choices(2000, 10, guess, epsilon=3.0, delta=1e-6, correlation=0.0)
    assert [each.rows for each in choices] == [1, 2, 5, 10, 20, 50]
    assert all(1.0 <= each.noise < 1.01 for each in choices)
    assert [each.counted for each in choices] == pytest.approx([0.1, 0.15, 0.3, 0.4, 0.6, 1.0])
    errors = [each.error for each in choices]
    assert errors == sorted(errors, reverse=True)
    # Where the rows of a person have the same error, more of them say nothing new.
    same = row_choices(2000, 10, guess, epsilon=3.0, delta=1e-6, correlation=1.0)
    assert max(each.error for each in same) < 1.01
    assert "max_rows_per_group of 1 or more" in advice(same)
    assert "max_rows_per_group of 20 or more" in advice(choices)


def test_the_error_is_that_of_means_of_correlated_rows():
    """By simulation without noise: persons with rows by the guess, 0.5% sampling error."""
    rng, guess, r = np.random.default_rng(0), guess_from("1-4"), 0.3
    rows = rng.integers(1, 5, 20_000)
    stds = []
    for k in (1, 2, 5):
        kept = np.minimum(rows, k)
        own = np.sqrt(1.0 - r) * rng.normal(size=len(kept)) / np.sqrt(kept)
        stds.append(np.std(np.sqrt(r) * rng.normal(size=len(kept)) + own))
    found = row_choices(10**12, 1, guess, epsilon=1.0, delta=1e-6, correlation=r)
    ratios = [each.error / found[0].error for each in found]
    assert ratios == pytest.approx([std / stds[0] for std in stds], rel=0.03)


def test_the_usual_guess_has_the_public_mean():
    assert usual_guess(80_000, 1000).mean == pytest.approx(80.0, rel=1e-4)
    assert usual_guess(500, 500).mean == 1.0


@pytest.mark.parametrize("text", ["", "0-4", "5-2", "1-9999999", "1:x", "1:-1,2:3", "1:0", "a"])
def test_refusals(text):
    with pytest.raises(ValueError, match="text must be a range"):
        guess_from(text)


def test_on_the_command_line(run):
    line = "plan --rows 100000 --columns 5 --persons 1000"
    code, out, _ = run(line)
    assert code == 0
    assert "Choose --max-rows of" in " ".join(out.split())
    told = json.loads(run(f"{line} --typical-rows 1-4 --json")[1])["persons"]
    assert [each["rows"] for each in told] == [1, 2, 5]
    for option in ("--typical-rows 1-4", "--max-rows 4"):
        code, _, err = run(f"plan --rows 100000 --columns 5 {option}")
        assert (code, f"{option.split()[0]} must be given with --persons" in err) == (2, True)
    code, _, err = run(f"{line} --typical-rows 4-1")
    assert (code, "--typical-rows must be a range" in err) == (2, True)


def test_the_forecast_is_that_of_as_many_records_as_there_are_persons(run):
    of_persons, alone = plan(100_000, 5, persons=1000), plan(1000, 5)
    assert (of_persons.n, of_persons.n_persons, of_persons.delta) == (100_000, 1000, 1e-6)
    assert of_persons.model._population.rows_per_person == 100
    assert {each.method for each in of_persons.methods} == {"adaptive", "objective"}
    # What takes time are the rows.
    assert of_persons.seconds > alone.seconds
    assert of_persons.others[0].what == "twice the persons"
    assert any("n=20 persons are too few" in each for each in plan(100, 5, persons=20).warnings)
    with pytest.raises(ValueError, match="protects single rows only"):
        plan(100, 5, persons=10, method="ihm")
    _, out, _ = run("plan --rows 100000 --columns 5 --persons 1000")
    assert "100,000 rows of 1,000 persons, 5 features, epsilon 1, delta 1e-06" in out
    of_persons, alone = (
        plan(n, 5, persons=persons, inference=False).outlook.typical
        for n, persons in ((100_000, 1000), (1000, None))
    )
    assert of_persons == pytest.approx(alone, rel=0.02)


def test_intervals_of_persons_pay_for_finer_counts_of_gradients():
    of_persons, alone = plan(100_000, 5, persons=1000), plan(1000, 5)
    (_, finer), (_, usual) = of_persons._planned, alone._planned
    assert finer.count_sigma < 0.6 * usual.count_sigma
    # The minimiser has less of the budget, and its forecast grows by no more than its noise.
    assert 1.0 < of_persons.outlook.typical / alone.outlook.typical < (usual.mu / finer.mu) ** 2
