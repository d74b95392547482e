"""Results with a known shape, written as the experiments write them."""

import itertools

import pytest

from reproduction.experiments import accuracy, figure1, load_config, speed, statistics
from reproduction.experiments.results import Results
from reproduction.report import write_report
from reproduction.report.figures import draw_figures
from reproduction.report.summary import read_summary

EPSILONS = (1.0, 3.0, 10.0)
TRIALS = (0.97, 1.0, 1.03)


def risk(name, method, ratio, epsilon, gap=3.0):
    """Excess risk of a world in which the paper is right."""
    if method == "fast_ihs":
        return 3e-5 if name == "sphere" else 1e-7
    loss = {"ihm_paper": 1.0, "default": 0.1}.get(method)
    if loss is None and name == "sphere":
        # Less noise makes it worse at the last step, and the larger sketches match IHM.
        return 1e-4 * {4: 9.0, 400: 0.8, 800: 0.7}[ratio] * {1.0: 1.0, 3.0: 0.3, 10.0: 0.6}[epsilon]
    if loss is None:
        loss = {4: 50.0, 100: 2.0 * gap, 200: gap, 400: 2.0, 800: 1.5}[ratio]
    if name == "sphere":
        return 1e-4 * loss
    return 1e-3 * loss / epsilon


def eta(method, ratio, epsilon):
    """Noise in the sketch of a world in which the paper is right."""
    return 0.0 if method == "ihm_paper" or (ratio != 4 and epsilon == 10.0) else 16.0


@pytest.fixture
def paper_risk():
    return risk


@pytest.fixture(scope="session")
def results(tmp_path_factory):
    """Return a function that writes a folder of results."""

    def write(risk=risk, eta=eta, slower=1.0):
        folder = tmp_path_factory.mktemp("world") / "results"
        made = Results(folder, load_config(), "python -m reproduction all")
        run = made.run
        noise = {"gauss_mix": 1.0, "fast_mix_sharp": 1.8, "fast_mix": 2.0,
                 "fast_mix_unbounded": 40.0, "upadhyay": 4000.0}  # fmt: skip
        table = made.table("figure1", figure1.COLUMNS, 3)
        for n, curve, epsilon in itertools.product((10**4, 10**5), figure1.CURVES, EPSILONS):
            table.add({"n": n, "curve": curve, "epsilon": epsilon, "d": 500, "k": 3000,
                       "delta": 1.0 / n**2, "lambda_min": 1.0, "sigma": noise[curve] / epsilon,
                       "run": run})  # fmt: skip
        sets = {"black_friday": (4, 100, 200), "sphere": (4, 400, 800)}
        table = made.table("figure2", accuracy.COLUMNS, 6)
        timed = made.table("speed", speed.COLUMNS, 6)
        for name, ratios in sets.items():
            methods = [("fast_ihs", None), ("ihm_paper", None), ("default", None),
                       *(("fast_ihm_paper", r) for r in ratios)]  # fmt: skip
            for method, ratio in methods:
                at = (None,) if method == "fast_ihs" else EPSILONS
                for epsilon, (trial, factor) in itertools.product(at, enumerate(TRIALS)):
                    table.add({"set": name, "n": 1024, "method": method, "ratio": ratio,
                               "epsilon": epsilon, "trial": trial, "d": 8, "k2": None, "seed": 1,
                               "excess_risk": factor * risk(name, method, ratio, epsilon),
                               "eta": eta(method, ratio, epsilon), "seconds": 0.1,
                               "run": run})  # fmt: skip
                seconds = {"ihm_paper": 4.0, "fast_ihm_paper": 2.0 * slower}.get(method, 0.1)
                for repeat in range(3):
                    timed.add({"experiment": "figure2", "set": name, "n": 1024, "method": method,
                               "ratio": ratio, "repeat": repeat, "d": 8, "seed": 1,
                               "seconds": seconds + repeat, "run": run})  # fmt: skip
        table = made.table("datasets", statistics.COLUMNS, 2)
        for name, values in {
            "sphere": (524288, 32, 16150.0, 16650.0, 0.0341, 0.0459, 16384.0, 0.34),
            "rossman": (524288, 28, 0.0, 8600.0, 0.02497, 0.2658, 18724.57, 0.9),
        }.items():
            row = dict(zip(statistics.COLUMNS[1:9], values, strict=True))
            table.add({"set": name, **row, "seed": 1, "run": run})
        return folder

    return write


@pytest.fixture(scope="session")
def world(results):
    """Results of a world in which the paper is right."""
    return results()


@pytest.fixture(scope="session")
def drawn_once(drawn):
    """Let pages use figures that are drawn already: drawing takes seconds."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("reproduction.report.page.draw_figures", lambda summary: drawn)
        yield


@pytest.fixture(scope="session")
def page(world, drawn_once):
    return write_report(world)


@pytest.fixture(scope="session")
def summary(world):
    return read_summary(world)


@pytest.fixture(scope="session")
def drawn(summary):
    return draw_figures(summary)
