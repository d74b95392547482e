"""What is exported is what is promised."""

import importlib
import pkgutil

import pytest

import fastmix

PACKAGES = [
    "fastmix",
    *(
        f"fastmix.{info.name}"
        for info in pkgutil.iter_modules(fastmix.__path__)
        if info.ispkg or not info.name.startswith("_")
    ),
]


@pytest.mark.parametrize("name", PACKAGES)
def test_all_is_sorted_and_complete(name):
    module = importlib.import_module(name)
    exported = module.__all__
    assert len(set(exported)) == len(exported)
    for symbol in exported:
        assert hasattr(module, symbol), f"{name}.{symbol}"
    if hasattr(module, "__path__"):
        submodules = {info.name for info in pkgutil.iter_modules(module.__path__)}
        public = {
            symbol
            for symbol in vars(module)
            if not symbol.startswith("_") and symbol not in submodules
        }
        assert public <= set(exported), public - set(exported)


def test_the_front_page_names_resolve():
    for name in (
        "FastIHM",
        "IHM",
        "LinearMixing",
        "AdaSSP",
        "DPGradientDescent",
        "IHS",
        "PrivateLinearRegression",
        "BudgetAccountant",
        "calibrate_fast_mix",
        "calibrate_gauss_mix",
        "plan",
        "SRHT",
    ):
        assert name in fastmix.__all__


def test_version_is_the_distribution_version():
    from importlib.metadata import version

    assert fastmix.__version__ == version("fastmix")
