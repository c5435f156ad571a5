# `make quickstart` and `make test` do all the set-up that they need: a virtual environment in .venv, installs, the work.
# PIP_EXTRA_INDEX_URL and pip's other settings pass through from the environment.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Two workers' worth of threads on two cores thrash; distseat sets the threads of its own workers.
export OMP_NUM_THREADS ?= 1
export TOKENIZERS_PARALLELISM := false

.PHONY: help setup quickstart test check clean
help:
	@echo "make quickstart   measure a real encoder with every published test; results in out/quickstart"
	@echo "make test         all tests but the slow ones"
	@echo "make check        lint, types, layers"

setup: $(VENV)/.installed

$(VENV)/.installed: pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "distseat needs Python 3.11 or newer; try make PYTHON=python3.11")'
	@echo "installing into $(VENV): some minutes the first time"
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt torch
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[dev]'
	@$(BIN)/python -c 'import torch; print("torch", torch.__version__, "CUDA", torch.version.cuda)'
	@touch $@

quickstart: setup
	$(BIN)/distseat sweep examples/quickstart.yaml

test: setup
	$(BIN)/python -m pytest -m "not slow"

check: setup
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports

clean:
	rm -rf $(VENV) out dist build
