"""What each number of rows per person costs."""

import pytest

from fastmix.planning import person_costs, plan


def test_rows_cost_little_and_group_privacy_much():
    costs = person_costs(800_000, 1000, epsilon=3.0)
    assert [cost.rows for cost in costs] == [1, 10, 100, 1000]
    assert costs[0].noise == costs[0].naive == pytest.approx(800.0)
    assert all(800.0 <= cost.noise < 810.0 for cost in costs)
    # Group privacy costs as much at best, and more where persons have fewer rows than the cap.
    assert all(cost.naive >= 800.0 * (1.0 - 1e-12) for cost in costs)
    assert costs[-1].naive > 1.2 * costs[-1].noise


def test_single_rows_are_persons_of_one_row():
    (cost,) = person_costs(500, 500)
    assert cost.noise == pytest.approx(1.0)


@pytest.mark.parametrize(("n", "persons"), [(0, 1), (10, 11), (10, 0)])
def test_refusals(n, persons):
    with pytest.raises(ValueError, match="must be"):
        person_costs(n, persons)


def test_on_the_command_line(run):
    code, out, _ = run("plan --rows 100000 --columns 5 --persons 1000")
    assert code == 0
    assert "naive group privacy" in out


def test_the_forecast_is_that_of_as_many_records_as_there_are_persons(run):
    of_persons, alone = plan(100_000, 5, persons=1000), plan(1000, 5)
    assert (of_persons.n, of_persons.n_persons, of_persons.delta) == (100_000, 1000, 1e-6)
    assert of_persons.model._population.rows_per_person == 100
    assert of_persons.outlook.typical == pytest.approx(alone.outlook.typical, rel=0.02)
    assert {each.method for each in of_persons.methods} == {"adaptive", "objective"}
    # What takes time are the rows.
    assert of_persons.seconds > alone.seconds
    assert of_persons.others[0].what == "twice the persons"
    assert any("n=20 persons are too few" in each for each in plan(100, 5, persons=20).warnings)
    with pytest.raises(ValueError, match="protects single rows only"):
        plan(100, 5, persons=10, method="ihm")
    _, out, _ = run("plan --rows 100000 --columns 5 --persons 1000")
    assert "100,000 rows of 1,000 persons, 5 features, epsilon 1, delta 1e-06" in out
