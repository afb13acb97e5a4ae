# Every target sets up what it needs; `make` alone lists them.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
READY := $(VENV)/.ready
PIP := -m pip install --quiet --disable-pip-version-check
BENCH_VENV := .venv-bench
BENCH_READY := $(BENCH_VENV)/.ready

.DEFAULT_GOAL := help
.PHONY: help demo test test-lowest quick lint format bench walk attack docs release clean

help:  ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | awk -F':.*## ' '{printf "  make %-11s %s\n", $$1, $$2}'

# What users install, with figures; the tools of developers come on top of it when a target needs them.
$(INSTALLED): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "meltpoint needs Python 3.11 or newer, this is " + sys.version.split()[0] + ": name another with make PYTHON=...")'
	@echo "Installing meltpoint and Matplotlib into $(VENV): about 140 MB to download, once …"
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python $(PIP) --editable '.[plot]'
	@touch $@

$(READY): $(INSTALLED)
	@echo "Installing the tools for tests into $(VENV): about 300 MB to download, once …"
	@$(BIN)/python $(PIP) --editable '.[dev]'
	@touch $@

demo: $(INSTALLED)  ## train a small RBM on handwritten digits and bracket its likelihood
	$(BIN)/meltpoint demo

test: $(READY)  ## run every test
	$(BIN)/python -m pytest -n auto --dist worksteal

quick: $(READY)  ## run the tests that take seconds
	$(BIN)/python -m pytest -n auto --dist worksteal -m 'not slow'

# With libraries that are younger than their friends: what these deprecate is not ours to mend.
LOWEST_VENV := .venv-lowest
LOWEST_READY := $(LOWEST_VENV)/.ready
$(LOWEST_READY): pyproject.toml
	$(PYTHON) -m venv $(LOWEST_VENV)
	$(PYTHON) benchmarks/lowest.py > $(LOWEST_VENV)/lowest.txt
	$(LOWEST_VENV)/bin/python -m pip install --quiet --disable-pip-version-check --constraint $(LOWEST_VENV)/lowest.txt --editable '.[dev]'
	@touch $@

test-lowest: $(LOWEST_READY)  ## run every test with the lowest versions of the declared ranges
	$(LOWEST_VENV)/bin/python -m pytest -n auto --dist worksteal -W ignore::DeprecationWarning

lint: $(READY)  ## ruff, basedpyright, import-linter
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/basedpyright
	$(BIN)/lint-imports

format: $(READY)  ## rewrite the source the way ruff likes it
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# PyTorch first and by its exact version: with its choice pip takes a newer one and gigabytes of CUDA with it.
$(BENCH_READY):
	$(PYTHON) -m venv $(BENCH_VENV)
	$(BENCH_VENV)/bin/python $(PIP) torch==2.13.0
	$(BENCH_VENV)/bin/python $(PIP) jax jaxlib
	$(BENCH_VENV)/bin/python $(PIP) torch==2.13.0 rbms==0.5.0
	$(BENCH_VENV)/bin/python $(PIP) torch==2.13.0 adabmDCA==1.0.0 dwave-samplers==1.8.0 ferrotherm==0.44.0 numba
	@touch $@

bench: $(READY) $(BENCH_READY)  ## measure speed, memory and starting time (make bench BENCH=--quick for a look)
	$(BIN)/python benchmarks/throughput.py $(BENCH)

walk: $(READY)  ## print the walk of one evaluation: the package's functions from the command to the kernel and back
	$(BIN)/python benchmarks/walk.py

SECONDS ?= 120
SEED ?= 0
attack: $(READY)  ## kill, starve, fuzz and deceive it (make attack SECONDS=1800 SEED=1)
	$(BIN)/python -m attack --seconds $(SECONDS) --seed $(SEED)

DOCS_VENV := .venv-docs
DOCS_READY := $(DOCS_VENV)/.ready
$(DOCS_READY): pyproject.toml
	$(PYTHON) -m venv $(DOCS_VENV)
	$(DOCS_VENV)/bin/python $(PIP) --editable '.[docs]'
	@touch $@

docs: $(DOCS_READY)  ## build the documentation into site/, every warning an error
	$(DOCS_VENV)/bin/mkdocs build --strict --quiet

release: $(READY)  ## build wheel and sdist, check them, and try the wheel in an environment of its own
	rm -rf dist
	$(BIN)/python -m build --outdir dist .
	$(BIN)/python benchmarks/installation.py dist

clean:  ## remove what the other targets made
	rm -rf $(VENV) $(LOWEST_VENV) $(BENCH_VENV) $(DOCS_VENV) build dist site .pytest_cache .ruff_cache .hypothesis demo
