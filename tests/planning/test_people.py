"""What each number of rows per person costs."""

import pytest

from fastmix.planning import person_costs


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
