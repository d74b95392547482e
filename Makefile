# Everything a newcomer needs: `make demo` and `make test` set up their own environment.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
SOURCES := pyproject.toml CMakeLists.txt $(wildcard native/*)
PYTEST := $(BIN)/python -m pytest

.PHONY: demo test test-slow test-numpy lint bench browser reproduce clean

demo: $(VENV)/.demo
	$(BIN)/fastmix demo

test: $(VENV)/.test
	$(PYTEST) -n auto

test-slow: $(VENV)/.test
	$(PYTEST) -n auto -m slow

# The same suite on the NumPy kernels, as on a machine without a compiler.
test-numpy: $(VENV)/.test
	FASTMIX_NO_NATIVE=1 $(PYTEST) -n auto

lint: $(VENV)/.test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/codespell

bench: $(VENV)/.test
	$(BIN)/python benchmarks/kernels.py
	$(BIN)/fastmix bench --out bench

# The browser in which a test opens the report (Debian and its relatives; asks for root).
browser:
	apt-get install --yes --no-install-recommends chromium

# Every figure and table of the paper, small; DATA=folder adds the sets whose files are there.
reproduce: $(VENV)/.test
	$(BIN)/fastmix reproduce all --quick --out results $(if $(DATA),--data-dir $(DATA))

clean:
	rm -rf $(VENV) build

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip

$(VENV)/.demo: $(VENV)/bin/python $(SOURCES)
	$(BIN)/python -m pip install --quiet --editable ".[demo]"
	touch $@

$(VENV)/.test: $(VENV)/bin/python $(SOURCES)
	$(BIN)/python -m pip install --quiet --editable ".[test]"
	touch $@ $(VENV)/.demo
