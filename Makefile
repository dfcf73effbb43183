# Two commands do everything on a machine with Python 3.11 or newer, pip and make:
#   make reproduce    install, then regenerate every figure and table into results/
#   make test         install the rest, then lint, types and the fast tests
# Others: make test-all (the slow tests, which make test leaves out: browser, clusters, whole
# tables), make install (what reproduce needs), make docs (the site, into docs/_build/html),
# make notebooks (.ipynb files beside docs/notebooks/*.md),
# make bench (ratios measured in one run), make fuzz (minutes of random files),
# make full (reproduce with what takes longer), make check-release (wheel and sdist in empty
# environments), make test-unpinned (make test without pinned versions), make clean.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
# What `make install` has installed; `make test` installs the tools of developers as well.
READY     := $(VENV)/.ready
READY_DEV := $(VENV)/.ready-dev
SOURCES_OF_VERSIONS := pyproject.toml workbench/io/tested_versions.txt
INSTALL := $(PYTHON) tools/install.py --venv $(VENV)
# Without stored bytecode, every process that the tests start would compile the package again.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help install install-dev reproduce full test test-all test-unpinned lint types pytest fuzz check-release bench docs notebooks clean

help:
	@sed -n 's/^# \{0,1\}//p' Makefile | head -9

install: $(READY)

install-dev: $(READY_DEV)

$(READY): $(SOURCES_OF_VERSIONS)
	@$(INSTALL) --extras learning
	@touch $@

$(READY_DEV): $(SOURCES_OF_VERSIONS)
	@$(INSTALL) --extras all,dev
	@touch $(READY) $@

reproduce: install
	@$(BIN)/workbench reproduce

full: install-dev
	@$(BIN)/workbench reproduce --full

test: lint types pytest

# Every package in the newest version that pyproject.toml allows.
test-unpinned:
	@$(INSTALL) --extras all,dev --no-pins
	@touch $(READY) $(READY_DEV)
	@$(MAKE) test test-all

lint: install-dev
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .

# On a busy machine mypy may lose the connection to its workers, which is exit code 2. Then one
# process checks the types.
types: install-dev
	@$(BIN)/mypy --num-workers=2 || { test $$? -eq 2 && $(BIN)/mypy; }

# Three processes on two cores: some tests spend their time waiting.
pytest: install-dev
	@$(BIN)/pytest --numprocesses=3 --dist=worksteal -m "not slow"

test-all: install-dev
	@$(BIN)/pytest --numprocesses=3 --dist=worksteal -m slow

fuzz: install-dev
	@set -e; for program in tests/fuzz/fuzz_*.py; do echo "$$program"; $(BIN)/python "$$program"; done

# The wheel and the sdist, tried in empty environments outside the repository.
check-release:
	@$(PYTHON) tools/check_release.py

bench: install-dev
	@$(BIN)/python -m bench

# The tools that build the site are installed when it is first built.
$(VENV)/.docs: $(READY_DEV)
	@$(INSTALL) --extras all,dev,docs
	@touch $@

docs: $(VENV)/.docs
	@$(BIN)/sphinx-build --fresh-env --quiet --fail-on-warning --keep-going --builder html docs docs/_build/html
	@$(BIN)/pytest --numprocesses=0 tests/docs/test_site.py
	@echo "Open docs/_build/html/index.html"

notebooks: $(VENV)/.docs
	@$(BIN)/jupytext --quiet --from md:myst --to ipynb docs/notebooks/*.md
	@echo "Run $(BIN)/jupyter lab docs/notebooks"

clean:
	rm -rf $(VENV) docs/_build .pytest_cache .mypy_cache .ruff_cache .hypothesis *.egg-info
