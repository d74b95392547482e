"""Build the kernels with each compiler and run their tests: ``python tests/kernels/compilers.py``.

Each variant, a compiler with flags, is built into ``build/kernels/<compiler><flags>/``. For every
instruction set that this processor has, a process that loads the variant runs the self-check and
tests that call kernels directly. The installed build and one variant of clang run all tests of
kernels and sketches and the seeded fits. A table at the end names each variant, and compilers that
are missing.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).parents[2]
BUILDS = ROOT / "build" / "kernels"
COMPILERS = [
    *("g++-11", "g++-12", "g++-13", "g++-14", "g++-15", "g++"),
    *("clang++-14", "clang++-16", "clang++-19", "clang++-22"),
]
FLAGS = ["-O2", "-O3", "-O3 -march=native"]
INSTRUCTION_SETS = ["baseline", "avx2", "avx512"]
#: Tests that call kernels directly, without those that repeat them for sizes and layouts.
DIRECT = [
    *(f"tests/kernels/test_{name}.py" for name in ("fwht", "kerdock", "mapped", "selfcheck")),
    *("-k", "not large and not long and not layouts and not thread and not environment"),
    *("-p", "no:xdist"),
]
ALL = ["tests/kernels", "tests/sketches", "tests/engine/test_golden.py", "-n", "auto"]

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


def install(compilers):
    """Install the compilers that the system's packages have; the others stay missing."""
    missing = [name.replace("clang++", "clang") for name in compilers if not shutil.which(name)]
    if not missing or not shutil.which("apt-get"):
        return
    subprocess.run(["apt-get", "update", "-qq"])
    # apt-get takes names that it does not know for patterns, and "g++-15" is one of "clang-15".
    listed = subprocess.run(["apt-cache", "pkgnames"], capture_output=True, text=True, check=True)
    for package in set(missing).intersection(listed.stdout.split()):
        subprocess.run(["apt-get", "install", "-qq", "--no-install-recommends", package])


def build(compiler, flags, *options):
    """Build a variant; return its folder, or None if that fails."""
    # The variants of a compiler share a folder, where all but the kernels is compiled once.
    to, work = folder(compiler, flags), BUILDS / compiler
    to.mkdir(parents=True, exist_ok=True)
    nanobind = subprocess.run(
        [sys.executable, "-m", "nanobind", "--cmake_dir"],
        capture_output=True,
        text=True,
        check=True,
    )
    configure = [
        *("cmake", "-S", ROOT, "-B", work, "-DCMAKE_BUILD_TYPE=Release", "-DFASTMIX_FAULTS=OFF"),
        f"-DCMAKE_CXX_COMPILER={shutil.which(compiler)}",
        f"-DFASTMIX_FLAGS={flags.replace(' ', ';')}",
        f"-DPython_EXECUTABLE={sys.executable}",
        f"-Dnanobind_DIR={nanobind.stdout.strip()}",
        *options,
    ]
    with (to / "build.log").open("w") as log:
        for command in (configure, ["cmake", "--build", work]):
            if subprocess.run(command, stdout=log, stderr=subprocess.STDOUT).returncode:
                return None
    (built,) = work.glob("_native*.so")
    shutil.copy(built, to)
    (to / "sitecustomize.py").write_text(LOADER)
    return to


def environment(built, instruction_set, **more):
    """Return the environment of a process that loads a build, or the installed one for None."""
    return {
        **os.environ,
        **{"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "FASTMIX_NO_NATIVE": ""},
        **{"PYTHONPATH": str(built or ""), "FASTMIX_ISA": instruction_set},
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
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *tests]
    run = subprocess.run(command, cwd=ROOT, env=own, capture_output=True, text=True)
    log = (built or BUILDS) / f"{instruction_set}{'-all' if tests is ALL else ''}.log"
    log.write_text(run.stdout + run.stderr)
    words = run.stdout.strip().splitlines()[-1].strip("= ") if run.stdout.strip() else "no output"
    return words if run.returncode == 0 else f"FAILED: {words}, {log}"


def row(*entries):
    """Print a row of the table when it is known."""
    print(time.strftime("%H:%M:%S"), *entries, sep=" | ", flush=True)
    return entries


def variants(compiler, args):
    """Build and test the variants of a compiler; return their rows."""
    if shutil.which(compiler) is None:
        return [row(compiler, "", "", "missing on this machine")]
    for other in args.compilers[: args.compilers.index(compiler)]:
        if shutil.which(other) and Path(shutil.which(other)).samefile(shutil.which(compiler)):
            return [row(compiler, "", "", f"the same as {other}")]
    rows = []
    for flags in args.flags:
        built = build(compiler, flags)
        if built is None:
            log = folder(compiler, flags) / "build.log"
            rows.append(row(compiler, flags, "", f"DOES NOT BUILD: {log}"))
            continue
        for name in INSTRUCTION_SETS:
            rows.append(row(compiler, flags, name, outcome(built, name, DIRECT)))
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--compilers", nargs="+", default=COMPILERS)
    parser.add_argument("--flags", nargs="+", default=FLAGS)
    parser.add_argument("--install", action="store_true", help="install missing compilers first")
    args = parser.parse_args()
    os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    BUILDS.mkdir(parents=True, exist_ok=True)
    if args.install:
        install(args.compilers)
    with ThreadPoolExecutor(2) as pool:
        table = [r for rows in pool.map(lambda c: variants(c, args), args.compilers) for r in rows]
    clang = [r[:2] for r in table if r[0].startswith("clang") and r[1] == "-O3"]
    for compiler, flags in [("installed", ""), *clang[-1:]]:
        built = folder(compiler, flags) if flags else None
        for name in INSTRUCTION_SETS:
            table.append(row(compiler, flags, name, f"all tests: {outcome(built, name, ALL)}"))
    print("\n| compiler | flags | copy | result |\n|---|---|---|---|")
    for entries in table:
        print("|", " | ".join(entries), "|")
    wrong = ("FAILED", "SELF-CHECK", "DOES NOT BUILD")
    return any(word in entries[-1] for entries in table for word in wrong)


if __name__ == "__main__":
    sys.exit(main())
