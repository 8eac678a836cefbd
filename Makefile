# The whole interface for developers. Each target sets up what it needs on a fresh Debian 12 with Python 3.11.

# The distribution's Python where it is new enough: it is built with profiles, and a fifth faster than what pyenv builds.
ENOUGH := import sys; sys.exit(sys.version_info < (3, 11))
PYTHON ?= $(or $(shell /usr/bin/python3 -c '$(ENOUGH)' 2>/dev/null && echo /usr/bin/python3),python3)
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed
STATE  ?= state
PART   ?= 1/1
KEY    ?=

.DEFAULT_GOAL := help
.PHONY: help up test check bench soak mutate lock crds image release format clean components realkube engines

help:  ## Show this list.
	@grep -E '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):.*## /\1\t/' | expand -t 12

up: $(STAMP)  ## Run a confidential cluster with five virtual machines (Ctrl-C ends it).
	@exec $(BIN)/fastness up --state $(STATE) --machines 5

test: $(STAMP) components realkube  ## Run all tests.
	$(BIN)/python tools/run_tests.py

check: $(STAMP)  ## Lint, format, types, imports, generated files, sizes and names.
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m fastness.kinds.crd --check deploy/crds
	$(BIN)/python -m fastness.app.accounts --check deploy/accounts
	$(BIN)/python -m fastness.app.chart --check deploy/chart
	$(BIN)/python tools/docs.py --check
	$(BIN)/python tools/house.py --check

bench: $(STAMP) realkube  ## Measure against a real kube-apiserver and etcd.
	$(BIN)/python -m bench

soak: $(STAMP) components realkube engines  ## The long form of what `make test` shortens.
	FASTNESS_SOAK=1 $(BIN)/python -m pytest -q

mutate: $(STAMP) components realkube  ## Take out every refusal, one by one: does a test notice? (PART=2/8 runs one part.)
	@[ -e .build/mutate/reach.json ] || $(BIN)/python tools/mutate.py cover
	$(BIN)/python tools/mutate.py run --part $(PART)
	$(BIN)/python tools/mutate.py page

format: $(STAMP)  ## Format and repair what can be repaired.
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

crds: $(STAMP)  ## Write the generated definitions and reference pages.
	$(BIN)/python -m fastness.kinds.crd --write deploy/crds
	$(BIN)/python -m fastness.app.accounts --write deploy/accounts
	$(BIN)/python -m fastness.app.chart --write deploy/chart
	$(BIN)/python tools/docs.py --write

lock: $(STAMP)  ## Resolve the dependencies anew; versions stay where they fit (UPGRADE=--upgrade takes the newest).
	$(BIN)/python -m pip install -q uv
	$(BIN)/python tools/lock.py $(UPGRADE)
	$(BIN)/python -m tools.release lock

image: $(STAMP)  ## Build the container images into .build/image.
	@$(BIN)/python -m tools.release image

release: $(STAMP)  ## Write a release into dist (KEY=FILE signs it).
	@$(BIN)/python -m tools.release release $(if $(KEY),--key $(KEY))

components: $(STAMP)
	@$(BIN)/python tools/components.py

realkube: $(STAMP)
	@$(BIN)/python tools/realkube.py ensure

engines: $(STAMP)
	@$(BIN)/python tools/engines.py ensure

$(STAMP): pyproject.toml requirements/dev.lock
	@$(PYTHON) -c 'import ensurepip' 2>/dev/null || { [ "$$(id -u)" = 0 ] && apt-get update -qq && apt-get install -y -qq python3-venv; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install -q --require-hashes -r requirements/dev.lock
	$(BIN)/python -m pip install -q --no-deps --no-build-isolation -e .
	@touch $@

clean:  ## Remove the environment and caches (not the state).
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
