"""The page about R runs: all of it, in one session of R."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[1] / "docs" / "r.md"


def installed(package):
    asked = ["Rscript", "-e", f"quit(status = !requireNamespace('{package}', quietly = TRUE))"]
    return subprocess.run(asked, capture_output=True).returncode == 0


def test_the_page_runs_in_r(tmp_path):
    if shutil.which("Rscript") is None:
        pytest.skip("there is no R here; 'make servers' installs it")
    for package in ("jsonlite", "reticulate"):
        if not installed(package):
            pytest.skip(f"R has no package {package} here; 'make servers' installs it")
    parts = re.findall(r"^```r\n(.*?)^```", PAGE.read_text(), flags=re.DOTALL | re.MULTILINE)
    (tmp_path / "page.R").write_text("".join(parts))
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    environment = {**os.environ, "PATH": path, "RETICULATE_PYTHON": sys.executable}
    run = subprocess.run(
        ["Rscript", "page.R"], cwd=tmp_path, env=environment, capture_output=True, text=True
    )
    assert run.returncode == 0, run.stderr[-2000:]
    assert "income" in (tmp_path / "predictions.csv").read_text()[:30]
