# One entry for everything. `make` alone lists the targets.
# All of it lives in .venv; only what runs all tests (`test`, `tooling`, `interop`, `campaign`, `coverage`, `fresh`,
# `ci`) may install system packages (a C compiler, Java, Maven, Chromium, xfsprogs, debootstrap), and only as root
# or with a sudo that asks no password.
# PYTHON=... names another interpreter.

SHELL := bash
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.NOTPARALLEL:
MAKEFLAGS += --no-print-directory

VENV := .venv
BIN := $(VENV)/bin
RESULTS := build/test-results
# Arguments for pytest (make test ARGS='-k recover'), in how many processes tests run (JOBS=0: in this one),
# and the scale of the benches (make perf SIZE=1). Tests wait more than they work: three processes keep two
# cores busy. ONLY=@FILE runs the tests that a file names, one a line, in place of all of a run.
ARGS ?=
JOBS ?= 3
SIZE ?=
ONLY ?=
# A test that no signal ends, ten minutes long, ends its process: it fails, and the others run.
PYTEST := $(BIN)/python -m pytest -n $(JOBS) $(if $(findstring --full,$(ARGS)),,-o faulthandler_exit_on_timeout=true)
export PYTHON
# Tests start thousands of Pythons; each that may not keep what it compiled compiles the whole package again.
export PYTHONDONTWRITEBYTECODE :=

# A stamp says what is installed; a changed pyproject.toml, setup.py or kernel makes it stale.
MADE := $(VENV)/.stamp-made
BASE := $(VENV)/.stamp-base
SPARK := $(VENV)/.stamp-spark
UNIT := $(VENV)/.stamp-unit
TESTS := $(VENV)/.stamp-tests
DEV := $(VENV)/.stamp-dev
SITE := $(VENV)/.stamp-site
# Installing compiles the kernels, where a compiler is.
INSTALLED := pyproject.toml setup.py seglog/storage/kernels/layout.h $(wildcard seglog/storage/kernels/native/*)

.PHONY: help setup demo unit quick test test-tools tooling fresh twin kernels sanitize lint types layers format \
    interop campaign perf coverage docs site man build ci products clean

help: ## Show this list
	@echo "seglog: SQLite for message logs, in Apache RocketMQ's own files"
	@echo
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "  make %-9s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

$(MADE):
	@tools/make-venv $(VENV)
	@touch $@

$(BASE): $(INSTALLED) | $(MADE)
	@tools/install $(VENV)
	@touch $@

$(SPARK): $(INSTALLED) | $(MADE)
	@tools/install $(VENV) spark "about 500 MB to load"
	@touch $@ $(BASE)

$(UNIT): $(INSTALLED) | $(MADE)
	@tools/install $(VENV) dev "about 250 MB to load"
	@touch $@ $(BASE)

$(TESTS): $(INSTALLED) | $(MADE)
	@tools/install $(VENV) dev,spark "about 700 MB to load"
	@touch $@ $(UNIT) $(SPARK) $(BASE)

$(DEV): $(INSTALLED) | $(MADE)
	@tools/install $(VENV) dev,docs,perf,spark "about 800 MB to load"
	@touch $@ $(TESTS) $(UNIT) $(SPARK) $(SITE) $(BASE)

$(SITE): $(INSTALLED) | $(MADE)
	@tools/install $(VENV) docs
	@touch $@ $(BASE)

setup: $(DEV) ## Make .venv with everything for development

# The demo takes the Spark audit along where a Java is found, and installs none.
DEMO_JAVA := $(if $(filter demo,$(MAKECMDGOALS)),$(shell tools/ensure-java --check))
demo: $(if $(DEMO_JAVA),$(SPARK),$(BASE)) ## See it work: write, pull, crash, recover, read a real RocketMQ store
	@$(if $(DEMO_JAVA),JAVA_HOME='$(DEMO_JAVA)') $(BIN)/seglog demo

# Pure codecs, kernels, the engine's quick tests and the clients: what is worth a look while one writes.
UNITS := tests/test_clock.py tests/test_errors.py tests/client tests/consumer tests/producer tests/remoting \
    $(addprefix tests/storage/,directory/test_geometry.py files/test_hardlinks.py findings format index/test_key_index.py \
    kernels overlay reads/test_buffer_leases.py reads/test_get.py recovery/test_recovery.py recovery/test_retention.py \
    scan small_files/test_config_file.py walk writes/test_put.py)

unit: $(UNIT) ## Run the quick tests, in under two minutes; needs neither Java nor PySpark
	@$(PYTEST) -m "not interop and not spark and not slow" $(UNITS) $(ARGS)

# What was installed without a compiler is installed again once there is one.
test-tools: | $(MADE)
	@PYTHON=$(BIN)/python tools/ensure-test-tools
	@! command -v cc > /dev/null || [ -n "$(wildcard seglog/storage/kernels/_native*.so)" ] || \
	    rm -f $(BASE) $(UNIT) $(SPARK) $(SITE) $(TESTS) $(DEV)

# A run of tests: its name, what runs pytest, which tests. How it ended is noted beside its results, for
# tools/ci-summary.
define run_tests
@mkdir -p $(RESULTS) && rm -f $(RESULTS)/$(1).exit
@$(2) --junitxml=$(RESULTS)/$(1).xml $(or $(ONLY),$(3)) $(ARGS); status=$$?; \
    echo $$status > $(RESULTS)/$(1).exit; exit $$status
endef

# CI runs those of tooling before all others, by themselves.
test: test-tools $(TESTS) ## Run all tests but interop; installs Java, a compiler and Chromium where it can
	$(call run_tests,tests,java_home=$$(tools/ensure-java) || echo "seglog: the tests of Spark will skip" >&2; \
	    JAVA_HOME="$$java_home" $(PYTEST) -m "not interop" --in-memory,$(if $(LESS_TOOLING),--ignore=tests/tooling))

tooling: test-tools $(TESTS) ## Run the tests that compare code, documents and rooms
	$(call run_tests,tooling,$(PYTEST),tests/tooling)

# What changed since SINCE, and the unit tests of what imports it; ROOM=storage/reads names a room or a part.
SINCE ?=
ROOM ?=
quick: $(UNIT) ## Run the gate's tests of the rooms that changed since SINCE, and quick ones above; ROOM= names one
	@paths=$$($(BIN)/python tools/changed-tests $(if $(ROOM),--room $(ROOM)) $(if $(SINCE),--since $(SINCE)) \
	    --units $(UNITS)) && if [ -z "$$paths" ]; then echo "seglog: no room has changed"; else \
	    $(PYTEST) -m "not interop and not spark and not slow" --in-memory $$paths $(ARGS); fi

# Everything at the usual size, in pieces: ARGS='--minutes 30' begins nothing more after that, and the same
# command continues.
campaign: test-tools $(DEV) ## Run everything at the usual size, resumable; writes tests/campaign.json
	@java_home=$$(tools/ensure-maven) && JAVA_HOME="$$java_home" $(BIN)/python tools/campaign --jobs $(JOBS) \
	    --twin '$(TWIN_ALL)' --sanitized '$(SANITIZED_ALL)' $(ARGS)

# Tests that run both kinds of kernels themselves are those of `make test`. Over the Python kernels the gate runs
# what recovers, reads and writes, and the campaign all that reaches a kernel (tests/tooling/test_twin.py); formats
# are below the kernels, but for some of their tests.
OF_KERNELS := $(addprefix tests/storage/kernels/test_,gather.py pending_record.py walk.py)
TWIN := $(OF_KERNELS) $(addprefix tests/storage/,recovery reads writes/test_put.py) \
    tests/fuzz/test_decoders.py
TWIN_ALL := $(filter-out tests/storage/format tests/storage/kernels,$(patsubst %/,%,$(wildcard tests/storage/*/))) \
    $(OF_KERNELS) $(addprefix tests/storage/format/,queue/test_compaction.py queue/test_compaction_files.py \
        test_system_names.py) \
    tests/damage/test_campaign.py tests/doctor/check/test_check_golden.py tests/fuzz/test_decoders.py

# Not root, a path with spaces and other scripts, a HOME that cannot be written, no Java and no compiler.
fresh: ## Run the demo in a fresh clone on a fresh machine; ARGS='bare java' are settings of tools/try-fresh
	@tools/try-fresh $(or $(ARGS),worst)

twin: $(TESTS) ## Run tests of recovery, reads and writes over the Python kernels
	$(call run_tests,twin,SEGLOG_KERNEL=python $(PYTEST) -m "not interop",$(TWIN))

kernels: $(UNIT) ## Compile the C kernels with every warning an error, and load them
	@PYTHON=$(BIN)/python tools/build-kernels seglog/storage/kernels
	@SEGLOG_KERNEL=native $(BIN)/seglog version > /dev/null

# The campaign adds those of the engine that enter C most; the others come to the same calls.
SANITIZED := tests/storage/kernels tests/fuzz/test_decoders.py
SANITIZED_ALL := $(SANITIZED) $(addprefix tests/storage/,index/test_key_index.py \
    reads/test_get.py writes/test_asyncio.py writes/test_fast_path.py writes/test_fast_path_alike.py \
    writes/test_gathered.py writes/test_no_waiting.py writes/test_put.py) tests/remoting/frames \
    tests/broker/sends/test_usual_sends.py

sanitize: $(TESTS) ## Run the tests of the kernels over C kernels with sanitizers
	$(call run_tests,sanitize,PYTHON=$(BIN)/python tools/test-sanitized build/sanitized -n $(JOBS),$(SANITIZED))

# Where the tests are that it judges: to look for them everywhere takes half a minute.
JUDGED := tests/interop tests/perf/test_bench_client.py tests/perf/test_bench_server.py

interop: $(DEV) ## Run the tests that the real RocketMQ judges; installs Maven and a JDK where it can
	$(call run_tests,interop,java_home=$$(tools/ensure-maven) && JAVA_HOME="$$java_home" $(PYTEST) -m interop,$(JUDGED))

lint: $(UNIT) ## Check format and style
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .

types: $(DEV) ## Check types
	@$(BIN)/mypy

layers: $(UNIT) ## Check which room may import which
	@$(BIN)/lint-imports --no-logo

format: $(UNIT) ## Format the code and repair what ruff can
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

coverage: $(TESTS) ## Run the tests with branch coverage
	@$(BIN)/coverage erase
	@java_home=$$(tools/ensure-java) && JAVA_HOME="$$java_home" \
	    $(BIN)/coverage run -m pytest -m "not interop" $(ARGS)
	@$(BIN)/coverage combine --quiet
	@$(BIN)/coverage report --fail-under=90

# Figures go into perf/, those of a smaller size (a smoke test) into build/. ARGS='--shown --minutes 25' takes
# the rows that must be shown, ARGS='--missing' goes on where a run was stopped, ARGS='--cases put-128 reopen'
# measures these again; it says first how long it takes. The other benches are by hand.
perf: $(DEV) ## Measure beside RocketMQ, Kafka, LMDB and others (hours; see --shown); SIZE=1 is a smoke test
	@if java_home=$$(tools/ensure-java --jdk --check); then export JAVA_HOME="$$java_home"; fi; \
	    $(BIN)/python -m perf $(if $(SIZE),--size $(SIZE) --json build/perf/RESULTS.json,--json perf/RESULTS.json) \
	    $(ARGS) > /dev/null
	@echo "seglog: tables and plot are in $(if $(SIZE),build/perf,perf)/RESULTS.md"
	@$(if $(SIZE),$(BIN)/python -m perf.bench_views --size $(SIZE))

docs: $(TESTS) ## Write the tables of docs/ from the code
	@$(BIN)/python tools/render-docs
	@$(BIN)/python tools/render-rooms

# Strict: a broken link, a page outside of the navigation and an unknown name fail it. It needs no network.
site: $(SITE) ## Build the pages and the reference of the API into build/site, to be read in a browser
	@$(BIN)/mkdocs build --strict --quiet
	@echo "seglog: the site is build/site/index.html"

man: $(BASE) ## Write the manual pages of all commands into build/man, for `man -l` or MANPATH
	@$(BIN)/python tools/render-man build/man

build: $(UNIT) ## Build sdist and wheel into dist/, check what is in them, and install each in a fresh environment
	@rm -rf dist build/lib build/bdist.*
	@$(BIN)/python -m build --outdir dist . > /dev/null
	@tools/try-packages dist

# Two makes, for what keeps one core busy; what the first says is shown when it has ended.
define side_by_side
@said=$$(mktemp) && trap 'rm -f "$$said"' EXIT; $(MAKE) $(1) > "$$said" 2>&1 & first=$$!; \
    $(MAKE) $(2); status=$$?; wait $$first || status=$$?; cat "$$said"; exit $$status
endef

ci: ## Everything, as CI runs it
	@.ci/run

# A fresh machine is tried where what sets one up has changed since all was well there.
products: $(SITE)
	$(call side_by_side,$(if $(shell tools/changed-setup),fresh,man),site build)

clean: ## Remove .venv and everything made
	@rm -f seglog/storage/kernels/*.so
	@rm -rf $(VENV) build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache
