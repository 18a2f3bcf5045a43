# Everything a newcomer types. Each target does its own set-up in .venv; `make` alone explains them.
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
# The first Python of at least 3.11 that really starts; `make PYTHON=/path/to/python …` chooses another.
PYTHON ?= $(shell for p in python3.11 python3.12 python3.13 python3 python; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1 && { echo $$p; break; }; done)
# One thread a worker: two test processes would otherwise fight over the cores.
TEST := OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 MKL_NUM_THREADS=1 $(BIN)/python -m pytest
JOBS ?= 2

.DEFAULT_GOAL := help
.PHONY: help setup train test slow check bench notebooks clean

help: ## show this list
	@echo "domino-lab: what make can do"
	@sed -n 's/^\([a-z]*\):[^#]*## \(.*\)/  make \1|\2/p' $(MAKEFILE_LIST) | \
		while IFS='|' read -r target text; do printf '%-18s %s\n' "$$target" "$$text"; done
	@echo "Options: CONFIG=configs/quick.yaml for train, JOBS=2 for test, PYTHON=python3.11 for the set-up."

setup: $(READY) ## make .venv with the tested versions (every target below does it by itself)

CONFIG ?= configs/quick.yaml
train: $(READY) ## train a self-play pair (about three minutes on two cores) and say what it wins
	$(BIN)/domino train $(CONFIG)

test: $(READY) ## run the tests (a few minutes; the slow ones are left out)
	$(TEST) -n $(JOBS)

slow: $(READY) ## run the slow tests alone
	$(TEST) -n $(JOBS) -m slow

check: $(READY) ## lint, format and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: $(READY) ## moves a second of the engine and decisions a second of the trainer, beside the peers that are installed
	$(BIN)/domino benchmark engine --peers
	$(BIN)/domino benchmark train

notebooks: $(READY) ## run the notebooks anew and keep what they show (about a quarter of an hour on two cores)
	$(BIN)/python notebooks/execute.py

clean: ## remove .venv and caches; runs/ stays
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis

# Made anew whenever a dependency or a tested version changes.
$(READY): pyproject.toml constraints.txt
	@test -n "$(PYTHON)" || { echo "make: no Python >= 3.11 found; name one: make PYTHON=/path/to/python3.11 ..." >&2; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable ".[train,render,search,dev]"
	@touch $@
