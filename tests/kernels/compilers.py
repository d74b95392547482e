"""Build the kernels with each compiler and run their tests: ``python tests/kernels/compilers.py``.

Each variant, a compiler with flags, is built into ``build/kernels/<compiler><flags>/``. Its tests
run once for every instruction set that this processor has, in processes that load this build
instead of the installed one. A table at the end names each variant, and compilers that are missing.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).parents[2]
BUILDS = ROOT / "build" / "kernels"
COMPILERS = [
    *("g++", "g++-11", "g++-12", "g++-13", "g++-14", "g++-15"),
    *("clang++-14", "clang++-16", "clang++-19", "clang++-22"),
]
FLAGS = ["-O2", "-O3", "-O3 -march=native"]
INSTRUCTION_SETS = ["baseline", "avx2", "avx512"]
TESTS = ["tests/kernels", "tests/sketches", "tests/methods/test_golden.py"]

#: Put into a folder of PYTHONPATH, it makes every process load the build of that folder.
LOADER = """
import importlib.util, pathlib, sys

class Finder:
    def find_spec(name, path=None, target=None):
        if name == "fastmix.kernels._native":
            (built,) = pathlib.Path(__file__).parent.glob("_native*.so")
            return importlib.util.spec_from_file_location(name, built)

sys.meta_path.insert(0, Finder)
"""


def folder(compiler, flags):
    return BUILDS / (compiler + flags.replace(" ", "").replace("=", "-"))


def build(compiler, flags, *options):
    """Build a variant; return its folder, or what the compiler said."""
    to = folder(compiler, flags)
    to.mkdir(parents=True, exist_ok=True)
    run = subprocess.run(
        [sys.executable, "-m", "nanobind", "--cmake_dir"],
        capture_output=True,
        text=True,
        check=True,
    )
    configure = [
        *("cmake", "-S", ROOT, "-B", to, "-DCMAKE_BUILD_TYPE=Release"),
        *(
            f"-DCMAKE_CXX_COMPILER={shutil.which(compiler)}",
            f"-DFASTMIX_FLAGS={flags.replace(' ', ';')}",
        ),
        *(f"-DPython_EXECUTABLE={sys.executable}", f"-Dnanobind_DIR={run.stdout.strip()}"),
        *options,
    ]
    with (to / "build.log").open("w") as log:
        for command in (configure, ["cmake", "--build", to]):
            if subprocess.run(command, stdout=log, stderr=subprocess.STDOUT).returncode:
                return None
    (to / "sitecustomize.py").write_text(LOADER)
    return to


def environment(built, instruction_set, **more):
    """Return the environment of a process that loads a build."""
    return {
        **os.environ,
        **{"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "FASTMIX_NO_NATIVE": ""},
        **{"PYTHONPATH": str(built), "FASTMIX_ISA": instruction_set},
        **more,
    }


def outcome(built, instruction_set, tests):
    """Run the self-check and the tests; return a word for the table."""
    own = environment(built, instruction_set)
    check = [sys.executable, "-m", "fastmix.kernels"]
    said = subprocess.run(check, cwd=ROOT, env=own, capture_output=True, text=True)
    if "must name an instruction set" in said.stderr:
        return "not run: the processor lacks it"
    if said.returncode:
        return "SELF-CHECK FAILED"
    if not tests:
        return "self-check passed"
    command = [sys.executable, "-m", "pytest", "-q", "-n", "auto", *tests]
    run = subprocess.run(command, cwd=ROOT, env=own, capture_output=True, text=True)
    (built / f"{instruction_set}.log").write_text(run.stdout + run.stderr)
    words = run.stdout.strip().splitlines()[-1].strip("= ") if run.stdout.strip() else "no output"
    return words if run.returncode == 0 else f"FAILED: {words}"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--compilers", nargs="+", default=COMPILERS)
    parser.add_argument("--flags", nargs="+", default=FLAGS)
    # The last option: everything behind it is for pytest.
    parser.add_argument("--tests", nargs=argparse.REMAINDER, default=TESTS)
    args = parser.parse_args()
    os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    table = []

    def add(*row):
        table.append(row)
        print(time.strftime("%H:%M"), *row, sep=" | ", flush=True)

    for compiler in args.compilers:
        if shutil.which(compiler) is None:
            add(compiler, "", "", "missing on this machine")
            continue
        for flags in args.flags:
            built = build(compiler, flags)
            if built is None:
                add(compiler, flags, "", f"DOES NOT BUILD: {folder(compiler, flags)}/build.log")
                continue
            for name in INSTRUCTION_SETS:
                add(compiler, flags, name, outcome(built, name, args.tests))
    print("\n| compiler | flags | copy | result |\n|---|---|---|---|")
    for row in table:
        print("|", " | ".join(row), "|")
    return any(row[-1].startswith(("FAILED", "SELF", "DOES")) for row in table)


if __name__ == "__main__":
    sys.exit(main())
