"""Results are read back as they were written."""

import math
import shutil

import numpy as np
import pytest

from reproduction.report.summary import read_summary


def test_means_and_intervals(summary):
    mean = summary.risk["figure2"]["black_friday"]["ihm_paper", None][1.0]
    values = np.array([0.97e-3, 1e-3, 1.03e-3])
    assert mean.value == pytest.approx(values.mean())
    assert mean.half == pytest.approx(1.96 * values.std(ddof=1) / np.sqrt(3))
    assert mean.trials == 3
    assert mean.low < mean.value < mean.high
    assert list(summary.risk["figure2"]["sphere"]["fast_ihs", None]) == [None]
    assert summary.risk["airline"] == {}
    assert summary.seconds["figure2"]["sphere"]["ihm_paper", None] == 5.0  # the median of 4, 5, 6
    eta = summary.eta["figure2"]["sphere"]["fast_ihm_paper", 400]
    assert eta == {1.0: 16.0, 3.0: 16.0, 10.0: 0.0}
    assert summary.sizes["figure2"]["sphere"] == (1024, 8)
    assert summary.figure1[10**4]["gauss_mix"][10.0] == pytest.approx(0.1)
    assert summary.datasets["rossman"]["d"] == 28.0


def test_one_trial_has_no_interval(world, tmp_path):
    copied = tmp_path / "one"
    shutil.copytree(world, copied)
    with (copied / "figure2.csv").open() as file:
        lines = [line for line in file if line.split(",")[5] in ("trial", "0")]
    (copied / "figure2.csv").write_text("".join(lines))
    curve = read_summary(copied).risk["figure2"]["black_friday"]["ihm_paper", None]
    assert curve[1.0].trials == 1
    assert curve[1.0].half == math.inf


def test_an_empty_folder(tmp_path):
    with pytest.raises(FileNotFoundError, match="run python -m reproduction first"):
        read_summary(tmp_path)
