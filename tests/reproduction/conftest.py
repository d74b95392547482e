"""No test of the reproduction finds data files by accident."""

import pytest


@pytest.fixture(autouse=True)
def no_data_folder(monkeypatch):
    monkeypatch.delenv("FASTMIX_DATA", raising=False)
