# One target per thing you can ask for; `make` alone lists them.
# Needs make, Python 3.11 or newer and a network for the first install. Nothing else.

PYTHON ?= python3
VENV   ?= .venv
SHARED ?= $(if $(CONTAM_SHARED),$(CONTAM_SHARED),../shared)
PYTEST_ARGS ?=
comma   := ,
# With LOCKED=1, as in CI, exactly what requirements/*.txt pin is installed, every file checked by its hash. They name
# everything, so nothing is resolved anew: pip takes a pin with an extra for another package than one without.
LOCKED ?= $(if $(filter true,$(CI)),1)

BIN     := $(VENV)/bin
PY      := $(BIN)/python
LOCK    := UV_CUSTOM_COMPILE_COMMAND='make lock' $(BIN)/uv pip compile --quiet --universal --python-version 3.11 \
           --generate-hashes --no-annotate --no-strip-extras --upgrade pyproject.toml
PYTEST  := $(PY) -m pytest $(PYTEST_ARGS)
SPREAD  := -n auto --dist worksteal
PIP     := -m pip install --quiet --disable-pip-version-check
# $(call into,ENVIRONMENT,LOCK,EXTRAS): install contam there with its extras, pinned or newest
into     = $(if $(LOCKED),\
  $(1)/bin/python $(PIP) --no-deps --require-hashes --requirement requirements/$(2).txt && \
  $(1)/bin/python $(PIP) --no-deps --no-build-isolation --editable .,\
  $(1)/bin/python $(PIP) --editable '.[$(3)]')
# $(call copy,ENVIRONMENT): begin it as a copy of .venv, in which most of what it needs is installed
copy     = test -x $(1)/bin/python || cp -al $(VENV) $(1) 2>/dev/null || cp -a $(VENV) $(1)
# What runs, and then what develops: a demo needs no linters.
READY   := $(VENV)/.ready
STAMP   := $(VENV)/.installed
# Tests that have a target of their own.
APART   := browser or operations or container or docs or release or ray
# What `make lowest` runs: each dependency is used by some of these tests. The longer runs of our own code are left to
# `make test`, and so is what an import costs: old releases load more. Deprecations are no errors there: old releases warn of the new ones that they themselves depend on.
LOWEST  := $(addprefix tests/,benchmark cli corpus files index/minhash tables text) $(wildcard tests/test_*.py) \
           tests/kernels tests/client tests/detect tests/fuzz \
           tests/contracts/test_openapi.py \
           $(addprefix tests/index/test_,build.py change.py) \
           $(addprefix tests/index/test_,format.py manifest.py protocol.py segment.py states.py) \
           $(addprefix tests/integration/test_,changed_shards.py cut_shards.py) \
           $(addprefix tests/rescore/,export/test_plots.py stats/test_statistics.py) \
           $(addprefix tests/audit/,test_command.py test_exports.py) \
           $(addprefix tests/server/,test_requests.py jobs/test_uploads.py test_page.py test_client.py test_running.py test_secrecy.py)

export CONTAM_SHARED := $(abspath $(SHARED))
# Where this is set, every process that a test starts would compile all of Python's modules anew.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help install demo test slow lowest same lock release lint format types layers bounds interpreted harness ray browser \
        service container docs fuzz load quality bench fairness fixtures pictures openapi check clean quality-if-possible

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' Makefile

install: $(READY) ## create .venv and install contam; development tools come with the first check

$(READY): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "contam needs Python 3.11 or newer; choose one: make PYTHON=python3.12 $(MAKECMDGOALS)" >&2; exit 1; }
	@echo "installing into $(VENV) (only the first time, and when pyproject.toml changes)" >&2
	@test -x $(PY) || $(PYTHON) -m venv $(VENV) || \
	  { echo "could not create $(VENV); on Debian and Ubuntu: apt install python3-venv" >&2; exit 1; }
	@$(call into,$(VENV),dev,all)
	@$(BIN)/contam warm
	@touch $(READY)

$(STAMP): $(READY)
	@$(if $(LOCKED),,$(PY) $(PIP) --editable '.[dev]')
	@touch $(STAMP)

demo: $(READY) ## scan the small corpus in bench_fixtures, score three models without what was found, audit all of it
	$(BIN)/contam scan --corpus bench_fixtures/corpus --benchmark bench_fixtures/items \
	  --out build/demo --overwrite
	$(BIN)/contam rescore --verdicts build/demo --logs bench_fixtures/logs --least 12 \
	  --out build/demo-scores --overwrite --quiet
	$(BIN)/contam audit run bench_fixtures/AUDIT.toml --overwrite --quiet

test: $(STAMP) ## the test suite, with few examples of each property
	$(PYTEST) $(SPREAD) -m 'not (slow or $(APART))'

slow: $(STAMP) ## tests that kill, stop or starve runs, simulate, or compile and read a great deal; all cases and examples
	HYPOTHESIS_PROFILE=full $(PYTEST) $(SPREAD) -m '(slow or hypothesis) and not ($(APART))' --ignore tests/kernels

lowest: ## what meets a dependency, with the lowest release of everything that pyproject.toml allows
	@test -x $(VENV)-lowest/bin/python || $(PYTHON) -m venv $(VENV)-lowest
	@$(VENV)-lowest/bin/python $(PIP) --no-deps --require-hashes --requirement requirements/lowest.txt
	@$(VENV)-lowest/bin/python $(PIP) --no-deps --no-build-isolation --editable .
	@$(VENV)-lowest/bin/contam warm
	$(VENV)-lowest/bin/python -m pytest $(PYTEST_ARGS) $(SPREAD) \
	  -m 'not (slow or $(APART))' -W ignore::DeprecationWarning $(LOWEST)

lint: $(STAMP) ## Ruff: rules and formatting
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

format: $(STAMP) ## let Ruff format and fix what it can
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

same: $(STAMP) ## results on bench_fixtures, by digest, beside what was noted; ARGS=--write notes them anew
	$(PY) -m tests.same $(ARGS)

types: $(STAMP) ## mypy, strict
	$(BIN)/mypy

layers: $(STAMP) ## import-linter: who may import whom
	$(BIN)/lint-imports

bounds: $(STAMP) ## kernel tests with all examples, the slow ones too, and every array access checked
	NUMBA_BOUNDSCHECK=1 $(BIN)/contam warm
	NUMBA_BOUNDSCHECK=1 HYPOTHESIS_PROFILE=full $(PYTEST) $(SPREAD) tests/kernels

interpreted: $(STAMP) ## kernel tests as plain Python, without the compiler
	NUMBA_DISABLE_JIT=1 $(PYTEST) $(SPREAD) tests/kernels

harness: $(STAMP) ## our clean scores beside the real lm-eval and Inspect, in an environment of their own
	@$(call copy,$(VENV)-harness)
	@$(call into,$(VENV)-harness,harness,dev$(comma)harness)
	@$(VENV)-harness/bin/python -c 'import inspect_ai, lm_eval'
	$(VENV)-harness/bin/python -m pytest $(PYTEST_ARGS) tests/rescore/export/test_harness.py tests/rescore/export/test_export.py \
	  tests/client/test_harness.py tests/benchmark/test_evaluator_tasks.py

ray: $(STAMP) ## scans and index builds on a Ray cluster of two nodes, whose processes are killed, in an environment of its own
	@$(call copy,$(VENV)-ray)
	@$(call into,$(VENV)-ray,ray,dev$(comma)ray)
	$(VENV)-ray/bin/python -m pytest $(PYTEST_ARGS) tests/ray

browser: $(STAMP) ## the pages in a real Chromium (Debian: chromium, chromium-driver), without a window
	$(PYTEST) tests/browser

service: $(STAMP) ## the service fuzzed by its own OpenAPI, broken, and its deployment files against their schemas
	@$(call into,$(VENV),dev,dev$(comma)service)
	$(PYTEST) tests/service

container: $(STAMP) ## build the image without a registry and use it (root; Debian: buildah, debootstrap)
	$(PYTEST) tests/container

docs: $(STAMP) ## the documentation site in build/site, a warning is an error; its notebook gives the outputs it shows
	@$(call into,$(VENV),dev,dev$(comma)docs)
	$(PY) -m sphinx --quiet --jobs auto --keep-going --fail-on-warning --builder html --conf-dir docs . build/site
	$(PYTEST) tests/docs

fuzz: $(STAMP) ## 5,000 damaged Parquet files, none of which may end a process or be misread
	CONTAM_FUZZ_FILES=5000 $(PYTEST) tests/fuzz

load: $(STAMP) ## what the service bears, from another process: make load ARGS="--index DIR --items PATH"
	$(PY) service/loadtest $(ARGS)

quality: $(STAMP) ## recall and false flags on the labelled data, of the scan and of an index
	@test -d "$(CONTAM_SHARED)/data" || \
	  { echo "no labelled data in $(SHARED)/data; set CONTAM_SHARED to the folder that holds it" >&2; exit 1; }
	$(PY) benchmarks/quality.py --data "$(CONTAM_SHARED)/data" --out build/quality
	$(PY) benchmarks/edits_table.py --data "$(CONTAM_SHARED)/data" --out build/quality

fairness: $(STAMP) ## how often honest models are called leaked where easier items leak more, and leaked ones found
	$(PY) benchmarks/fairness.py --published "$(CONTAM_SHARED)/published"

bench: $(STAMP) ## speed and memory on the labelled corpus, or ARGS="--corpus ... --items ..."
	$(PY) benchmarks/bench.py $(if $(ARGS),$(ARGS),--corpus "$(CONTAM_SHARED)/data/corpus" --items "$(CONTAM_SHARED)/data/items")
	$(PY) benchmarks/bench_index.py $(if $(ARGS),$(ARGS),--corpus "$(CONTAM_SHARED)/data/corpus" --items "$(CONTAM_SHARED)/data/items")
	$(PY) benchmarks/bench_rescore.py

fixtures: $(STAMP) ## write bench_fixtures again from its generator
	$(PY) bench_fixtures/make_fixtures.py
	$(PY) bench_fixtures/make_logs.py

pictures: $(STAMP) ## draw the pictures of the README again from bench_fixtures
	$(PY) docs/pictures/make_pictures.py

openapi: $(STAMP) ## write service/openapi.json again from the app
	$(PY) -m tests.contracts.openapi_page

lock: $(STAMP) ## pin what CI and the image install, with hashes, from pyproject.toml
	@$(PY) $(PIP) --editable '.[release]'
	$(LOCK) --extra serve --output-file requirements/image.txt
	$(LOCK) --extra dev --extra service --extra docs --extra release --output-file requirements/dev.txt
	$(LOCK) --extra dev --extra harness --extra release --output-file requirements/harness.txt
	$(LOCK) --extra dev --extra ray --extra release --output-file requirements/ray.txt
	$(LOCK) --extra dev --extra release --resolution lowest-direct --output-file requirements/lowest.txt
	echo 'hatchling>=1.27' | $(LOCK:pyproject.toml=-) --output-file requirements/build.txt

release: $(STAMP) ## build wheel and source archive, list what the image installs (CycloneDX), install and try both
	@$(call into,$(VENV),dev,dev$(comma)service$(comma)release)
	rm -rf dist
	$(PY) -m build --no-isolation --outdir dist .
	$(BIN)/cyclonedx-py requirements --pyproject pyproject.toml --output-reproducible \
	  --output-file dist/contam.cdx.json requirements/image.txt
	$(BIN)/twine check --strict dist/*.whl dist/*.tar.gz
	$(PYTEST) tests/release

check: test slow lint types layers bounds interpreted browser service quality-if-possible ## all of the above that judge a change

quality-if-possible:
	@if test -d "$(CONTAM_SHARED)/data"; then $(MAKE) --no-print-directory quality; \
	else echo "quality: NOT RUN, there is no labelled data in $(SHARED)/data" >&2; fi

clean: ## remove what these targets wrote, .venv included
	rm -rf build dist $(VENV) $(VENV)-harness $(VENV)-lowest $(VENV)-ray .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
