# Two commands do everything on a machine with Python 3.11, pip and make:
#   make reproduce    install, then regenerate every figure and table into results/
#   make test         install, then lint, types and tests
# Others: make docs (the site, into docs/_build/html), make bench (ratios measured in one run), make fuzz (minutes of
# random files), make full (reproduce with what takes longer), make check-release (wheel and sdist in empty environments),
# make clean.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready

.DEFAULT_GOAL := help
.PHONY: help install reproduce full test lint types pytest fuzz check-release bench docs clean

help:
	@sed -n 's/^# \{0,1\}//p' Makefile | head -6

install: $(READY)

# One environment for users and developers; rebuilt when the pins change.
$(READY): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed; set PYTHON=...")'
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "Installing into $(VENV) (a minute or two) ..."
	@PIP_DISABLE_PIP_VERSION_CHECK=1 $(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[all,dev]'
	@touch $@

reproduce: install
	@$(BIN)/workbench reproduce

full: install
	@$(BIN)/workbench reproduce --full

test: lint types pytest

lint: install
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .

types: install
	@$(BIN)/mypy --num-workers=2

# Three processes on two cores: some tests spend their time waiting.
pytest: install
	@$(BIN)/pytest --numprocesses=3 --dist=worksteal

fuzz: install
	@set -e; for program in tests/fuzz/fuzz_*.py; do echo "$$program"; $(BIN)/python "$$program"; done

# The wheel and the sdist, tried in empty environments outside the repository.
check-release:
	@$(PYTHON) tools/check_release.py

bench: install
	@$(BIN)/python -m bench

# The site needs more than the tests do; that is installed when it is first built.
$(VENV)/.docs: $(READY)
	@echo "Installing what builds the documentation ..."
	@PIP_DISABLE_PIP_VERSION_CHECK=1 $(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[docs]'
	@touch $@

docs: $(VENV)/.docs
	@$(BIN)/sphinx-build --quiet --fail-on-warning --keep-going --builder html docs docs/_build/html
	@$(BIN)/pytest --numprocesses=0 tests/docs/test_site.py
	@echo "Open docs/_build/html/index.html"

clean:
	rm -rf $(VENV) docs/_build .pytest_cache .mypy_cache .ruff_cache .hypothesis *.egg-info
