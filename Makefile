# One command per check; `make test` runs them all. Needs python3 (3.11 to 3.14), make and pip.

PYTHON ?= python3
VENV ?= .venv
JOBS ?= 2

BIN := $(VENV)/bin
PY := $(BIN)/python
PIP_INSTALL := $(PY) -m pip install -q --disable-pip-version-check

# What is installed in $(VENV): a stamp per extra, older than pyproject.toml means out of date.
TEST_ENV := $(VENV)/.installed-test
DEV_ENV := $(VENV)/.installed-dev
DOCS_ENV := $(VENV)/.installed-docs
RELEASE_ENV := $(VENV)/.installed-release

# Benchmark data sets, where there are any. Nothing here needs them.
ifndef RANKAD_DATA
ifneq ($(wildcard ../shared/data/.),)
export RANKAD_DATA := $(abspath ../shared/data)
endif
endif

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help demo experiments bench quality research promises certificates engines service faults schema docs docs-links \
	browser postgres test format format-check lint types imports pytest clean dist lowest extras pictures

help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-13s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

demo: $(TEST_ENV) ## run the demonstration
	$(PY) -m rankad.experiments.breast_cancer

# A run leaves everything in results/, which git ignores; docs/ gets the pages and the pictures they show.
publish = mkdir -p docs/$(1) && find results/$(1) -maxdepth 1 $(2) -exec cp {} docs/$(1)/ \;
PAGES := \( -name '*.md' -o -name '*.png' \)

experiments: $(TEST_ENV) ## run the paper's tables, figures and findings into docs/ (about 20 minutes)
	$(BIN)/rankad reproduce all --out results/reproduction
	$(PY) -m benchmarks.reproduction_page docs/reproduction.md results/reproduction
	$(call publish,reproduction,-name '*.png')

bench: $(TEST_ENV) ## measure speed beside the peers into docs/benchmarks (about 20 minutes)
	$(PY) -m benchmarks --out results/benchmarks
	$(call publish,benchmarks,$(PAGES))

quality: $(TEST_ENV) ## measure detection quality beside the peers into docs/quality (about an hour)
	$(PY) -m benchmarks.quality --out results/quality --jobs $(JOBS)
	$(call publish,quality,$(PAGES))

research: $(TEST_ENV) ## vary RankAD's ingredients one by one into docs/quality (about 30 minutes)
	$(PY) -m benchmarks.quality.research --out results/quality --jobs $(JOBS)
	$(call publish,quality,$(PAGES))

promises: $(TEST_ENV) ## count false alarms on laws made up to break the promise into docs/promises (about 30 minutes)
	$(PY) -m benchmarks.promises --out results/promises --jobs $(JOBS)
	$(call publish,promises,$(PAGES))

certificates: $(TEST_ENV) ## try each promise a thousand times on fresh data into docs/certificates.md (about 10 minutes)
	$(PY) -m benchmarks.certificates --out results
	cp results/certificates.md docs/certificates.md

engines: $(DEV_ENV) ## measure Spark and Dask beside one process into docs/benchmarks/engines.md (about 20 minutes)
	$(PY) -m benchmarks.engines page --out results/engines
	cp results/engines/engines.md docs/benchmarks/engines.md

# The peer pins versions of its own; of Python it needs 3.11 or 3.12.
MLSERVER ?= results/mlserver

$(MLSERVER)/bin/mlserver:
	$(PYTHON) -m venv $(MLSERVER)
	$(MLSERVER)/bin/python -m pip install -q --disable-pip-version-check mlserver mlserver-sklearn

service: $(DEV_ENV) $(MLSERVER)/bin/mlserver ## measure the service beside MLServer into docs/benchmarks/service.md (about 15 minutes)
	$(PY) -m benchmarks.service --minutes 10 --peer-python $(abspath $(MLSERVER))/bin/python --out results/service
	cp results/service/service.md docs/benchmarks/service.md

faults: $(TEST_ENV) ## try bad files, kills, signals, forks and full disks into docs/faults (about 50 minutes of one core)
	$(PY) -m benchmarks.faults --out results/faults --jobs $(JOBS); status=$$?; \
	$(call publish,faults,$(PAGES)); exit $$status

dist: $(RELEASE_ENV) ## build the wheel and the source distribution into dist/, twice, and check them
	$(PY) -m tools.dist dist

lowest: $(RELEASE_ENV) ## test with the lowest versions of dependencies that are allowed (Python 3.11)
	$(PY) -m tools.lowest build/lowest

extras: $(RELEASE_ENV) ## install every extra alone into a clean environment, and use it
	$(PY) -m tools.extras build/extras

pictures: $(TEST_ENV) ## draw the pictures of the README (needs Chromium)
	$(PY) -m tools.readme_pictures docs

schema: $(DEV_ENV) ## send ten thousand random requests made from the service's OpenAPI document (some minutes)
	RANKAD_SCHEMA_CASES=3000 $(PY) -m pytest tests/test_service_schema.py -q -s -p no:xdist

# Pages are shared out to processes in the order of their names, and a few of these cost most: so there are more
# processes than cores. Examples run in $(JOBS) (docs/conf.py).
SPHINX = $(PY) -m sphinx -W --keep-going -j $(shell expr 2 \* $(JOBS)) -d build/docs-cache/doctrees

docs: $(DOCS_ENV) ## build the site into build/docs, with everything on it executed; warnings are errors (some minutes)
	RANKAD_DOCS_JOBS=$(JOBS) $(SPHINX) -b html docs build/docs
	@echo "The site: build/docs/index.html"

docs-links: $(DOCS_ENV) ## check the links of the site that lead elsewhere; needs a network
	RANKAD_DOCS_JOBS=$(JOBS) $(SPHINX) -b linkcheck docs build/docs-links

browser: ## install the browser that the report and the page are tested in (Debian, as root); without one those tests are skipped
	apt-get update -qq
	DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium

postgres: ## install the PostgreSQL server that the service's history is tested with (Debian, as root)
	apt-get update -qq
	DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends postgresql

# The checks run one after another, cheapest first, and the first failure stops the run.
test: $(DEV_ENV) ## run every check, then the tests
	@for check in format-check lint types imports pytest; do \
	  $(MAKE) --no-print-directory $$check || exit 1; \
	done

format: $(DEV_ENV) ## rewrite the code in the house format
	$(BIN)/ruff format .

format-check: $(DEV_ENV) ## check the format, change nothing
	$(BIN)/ruff format --check .

lint: $(DEV_ENV) ## check the code for mistakes
	$(BIN)/ruff check .

types: $(DEV_ENV) ## check the types (mypy, strict)
	$(BIN)/mypy

imports: $(DEV_ENV) ## check that stages stay independent
	$(BIN)/lint-imports

pytest: $(DEV_ENV) ## run the tests and the docstring examples
	$(PY) -m pytest -n $(JOBS)

clean: ## remove caches and build products, keep the environment
	rm -rf docs/examples docs/reference/generated docs/reference/backreferences docs/sg_execution_times.rst
	rm -rf build dist demo.png .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	@for dir in src tests docs benchmarks tools; do \
	  if [ -d $$dir ]; then \
	    find $$dir \( -name '*.nbi' -o -name '*.nbc' \) -type f -exec rm -f {} +; \
	    find $$dir \( -name __pycache__ -o -name '*.egg-info' \) -type d -prune -exec rm -rf {} +; \
	  fi; \
	done

$(PY):
	@$(PYTHON) -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 14))' || { \
	  echo "rankad needs Python 3.11 to 3.14, and $(PYTHON) is not one; try: make PYTHON=python3.14" >&2; \
	  exit 1; }
	$(PYTHON) -m venv $(VENV)

$(TEST_ENV): pyproject.toml | $(PY)
	$(PIP_INSTALL) -e '.[test]'
	@touch $@

# The dev extra contains the test extra, so this brings both stamps up to date.
$(DEV_ENV): pyproject.toml | $(PY)
	$(PIP_INSTALL) -e '.[dev]'
	@touch $(TEST_ENV) $@

$(DOCS_ENV): pyproject.toml | $(PY)
	$(PIP_INSTALL) -e '.[docs]'
	@touch $@

$(RELEASE_ENV): pyproject.toml | $(PY)
	$(PIP_INSTALL) -e '.[release]'
	@touch $@
