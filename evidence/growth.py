"""What the library itself costs: lines, modules, time to import, size of the wheel.

python -m evidence.growth --out growth.csv
"""

from __future__ import annotations

import argparse
import re
import resource
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

import numpy as np
import pandas as pd

from evidence.behaviour import ROOT

#: What every fit needs, without this library.
REQUIRED = "import numpy, scipy.linalg, sklearn.base"
#: The package imports an estimator when it is asked for.
NEEDED = "from fastmix import PrivateLinearRegression"


def lines(folder: str, *endings: str) -> list[int]:
    """Return the number of lines of every file with one of these endings."""
    found = (file for file in (ROOT / folder).rglob("*") if file.suffix in endings)
    return [len(file.read_text(encoding="utf-8").splitlines()) for file in found]


def processor_seconds(*words: str) -> float:
    """Return the processor time of a new process of Python."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, *words], check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def starts(times: int) -> dict[str, float]:
    """Return medians of the processor time of imports and of the command, taken in turn."""
    commands = {
        "required_seconds": ("-c", REQUIRED),
        "import_seconds": ("-c", NEEDED),
        "help_seconds": ("-m", "fastmix", "--help"),
    }
    found = [
        {name: processor_seconds(*each) for name, each in commands.items()} for _ in range(times)
    ]
    return pd.DataFrame(found).median().round(3).to_dict()


def loaded() -> int:
    """Return how many modules of this library the import of an estimator loads."""
    code = f"{NEEDED}; import sys; print(sum(name.startswith('fastmix') for name in sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    return int(done.stdout)


def wheel() -> float:
    """Build the wheel and return its size in kB."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", str(ROOT)]
        subprocess.run([*command, "--wheel-dir", folder], check=True)
        return round(sum(file.stat().st_size for file in Path(folder).glob("*.whl")) / 1000)


def counted() -> dict[str, int]:
    """Return the numbers of lines and modules."""
    modules = lines("src", ".py")
    return {
        "python_lines": sum(modules),
        "modules": len(modules),
        "longest_module": max(modules),
        "compiled_lines": sum(lines("native", ".cpp", ".hpp", ".inc")),
        "test_lines": sum(lines("tests", ".py")),
    }


def measured(*, times: int, built: bool) -> dict[str, object]:
    """Return one line of the table: this version."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return {
        "version": project["version"],
        **counted(),
        "required_packages": len([x for x in project["dependencies"] if re.match(r"\w", x)]),
        "loaded_modules": loaded(),
        **starts(times),
        "wheel_kb": wheel() if built else np.nan,
    }


def main() -> None:
    """Add a line for this version to the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--times", type=int, default=9, help="starts of every command")
    parser.add_argument("--no-wheel", action="store_true", help="do not build the wheel")
    asked = parser.parse_args()
    former = pd.read_csv(asked.out) if asked.out.exists() else pd.DataFrame()
    line = pd.DataFrame([measured(times=asked.times, built=not asked.no_wheel)])
    pd.concat([former, line]).to_csv(asked.out, index=False)


if __name__ == "__main__":
    main()
