"""A configuration that takes seconds."""

import pytest

TINY = """
seed = 7
trials = 2
steps = 4
timing_repeats = 1
draws = 1
synthetic_draws = 2
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

[[hessians]]
set = "sphere"
n = 2048
ratios = [8, 16]

[orders]
n = [1024, 4096]
d = [2, 4]
k1_per_column = [8, 16]
k2_per_column = [16, 32]

[crossover]
n = 1024
d = [4, 8]
literal_d = 4
"""


@pytest.fixture
def tiny(tmp_path):
    path = tmp_path / "tiny.toml"
    path.write_text(TINY)
    return path
