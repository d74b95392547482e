"""A configuration that takes seconds."""

import pytest

TINY = """
seed = 7
trials = 2
steps = 4
timing_repeats = 1
full_statistics = false
epsilons = [1.0]

[figure1]
n = [10000]
d = 500
epsilons = [0.5, 2.0]

[[figure2]]
set = "sphere"
n = 2048
ratios = [4, 8, 16]

[[figure2]]
set = "rossman"
n = 2048
ratios = [4, 8, 16]

[[airline]]
set = "airline"
n = 2048
ratios = [4, 16]

[[airline]]
set = "correlated"
n = 2048
ratios = [4, 16]
"""


@pytest.fixture
def tiny(tmp_path):
    path = tmp_path / "tiny.toml"
    path.write_text(TINY)
    return path
