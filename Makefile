# Everything a newcomer needs: `make demo` and `make test` set up their own environment.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
SOURCES := pyproject.toml CMakeLists.txt $(wildcard native/*)
PYTEST := $(BIN)/python -m pytest

.PHONY: demo test test-slow test-numpy lint bench browser docs dist clean

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

# A browser for the tests of pages; without it they are skipped.
browser: $(VENV)/.test
	command -v chromium || (apt-get update && apt-get install -y --no-install-recommends chromium fonts-dejavu-core)
	$(BIN)/python -m pip install --quiet "playwright>=1.49"

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
