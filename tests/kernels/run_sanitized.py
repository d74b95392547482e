"""Run the kernel tests and the fuzzer on a sanitized build: ``run_sanitized.py FOLDER``.

``make test-sanitize`` builds it and loads the sanitizers' run-time libraries first.
"""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent


def main(folder):
    (built,) = Path(folder).glob("_native*.so")
    name = "fastmix.kernels._native"
    spec = importlib.util.spec_from_file_location(name, built)
    native = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(native)

    from fastmix.kernels import _trust

    assert _trust.native is native, "the sanitized build is not in use"
    # The fuzzer's own test starts another process, which would load the ordinary build.
    failed = pytest.main(
        [
            "-q",
            "-p",
            "no:cacheprovider",
            str(HERE),
            "--deselect",
            f"{HERE}/test_bindings.py::test_thousands_of_malformed_calls",
        ]
    )
    if failed:
        return int(failed)
    sys.path.insert(0, str(HERE))
    import fuzz_bindings

    sys.argv = ["fuzz_bindings.py", "--calls=5000"]
    return fuzz_bindings.main()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
