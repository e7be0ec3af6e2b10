# `make demo` and `make test` are all the set-up there is: Python 3.11-3.13 with venv, and make.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
UV_VERSION := 0.13.9
DEMO_PORT ?= 8501

.PHONY: setup warm demo test check prove bench lock format clean

setup: $(VENV)/.ready

$(VENV)/.ready: locks/dev.txt pyproject.toml Makefile
	@$(PYTHON) -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' \
	  || { echo "unstrand needs Python 3.11, 3.12 or 3.13; found $$($(PYTHON) --version). Try: make PYTHON=python3.12 $(MAKECMDGOALS)" >&2; exit 1; }
	@test -x $(BIN)/python || { echo "setup: making the environment in $(VENV)" >&2; $(PYTHON) -m venv $(VENV); }
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check uv==$(UV_VERSION)
	@echo "setup: installing the locked packages" >&2
	@VIRTUAL_ENV=$(CURDIR)/$(VENV) $(BIN)/uv pip sync --quiet --require-hashes --compile-bytecode locks/dev.txt
	@VIRTUAL_ENV=$(CURDIR)/$(VENV) $(BIN)/uv pip install --quiet --no-deps --no-build-isolation --editable .
	@$(BIN)/python -m unstrand.warm ledger
	@touch $@

# The simulator's kernels: minutes of CPU once; a service compiles them by itself, beside its work.
warm: setup
	@$(BIN)/python -m unstrand.warm simulator

demo: setup
	$(BIN)/unstrand demo --port $(DEMO_PORT)

# The README's test command.
test: warm
	$(BIN)/python -m pytest -n 2 --dist loadgroup

# What every commit passes: format, lint, types, import rules, fast tests.
check: warm
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m pytest -q -m "not real and not slow"

# The long proofs; figures with the commit go to docs/proofs/.
prove: warm
	UNSTRAND_PROVE=1 $(BIN)/python -m pytest -q -m prove

format: setup
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

# Locked with uv, as hashes without addresses (docs/decisions/0002-lock.md).
lock:
	$(BIN)/uv pip compile pyproject.toml --universal --python-version 3.11 --generate-hashes --all-extras --group dev \
	  --no-annotate --custom-compile-command "make lock" --quiet -o locks/dev.txt
	$(BIN)/uv pip compile pyproject.toml --universal --python-version 3.11 --generate-hashes --extra report --extra dask --extra k8s \
	  --no-annotate --custom-compile-command "make lock" --quiet -c locks/dev.txt -o locks/runtime.txt

clean:
	rm -rf $(VENV) build dist
