# Everything a person does here. `make` lists it.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
LOCK := requirements-dev.lock
LOCKED ?=
# It raises exceptions in signal handlers at any moment, also while coverage.py holds its own lock.
UNSAFE := tests/unit/exchange/test_channel.py::test_a_signal_at_any_moment_leaves_the_channel_unlocked
WIRE := src/sparkfusion/plan/wire
FUZZ_CASES ?= 3000
MESSAGES ?= 100000
RUNS ?= 20
MINUTES ?= 15
ON ?= local
SECONDS ?= 300
SCALE ?= 1
ROUNDS ?= 2
WARM_UP ?= each
GIGABYTES ?= 2
SCALES ?= tpch:1,tpch:10,tpcds:1
ENGINES ?=
QUERIES ?=
# Four processes share the modules: on two cores, some of them always wait. One of them starts Spark.
TESTS := $(BIN)/python -m pytest -n 4 --dist loadscope --no-loadscope-reorder
# Tests start hundreds of processes. Without compiled files, each would compile the package again.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help setup lock quick test test-long test-standalone check unit coverage format fuzz fuzz-messages stress-exit soak bench bench-all bench-spark bench-resident bench-feed bench-transport bench-scale bench-tuning docs release-check demo demo-spark wire clean

help: ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## */\1\t/' | awk -F '\t' '{printf "  make %-15s %s\n", $$1, $$2}'

setup: $(STAMP) ## create .venv with everything that tests and tools need (LOCKED=1: the versions of requirements-dev.lock)

$(STAMP): pyproject.toml $(if $(LOCKED),$(LOCK))
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or later is needed: make PYTHON=python3.12 …")'
	@echo "installing packages into $(VENV): this takes two to five minutes"
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --no-compile --disable-pip-version-check $(if $(LOCKED),--constraint $(LOCK)) -e '.[cli,dev]'
	@touch $@

lock: setup ## write the newest versions that pyproject.toml allows to requirements-dev.lock
	$(BIN)/uv pip compile pyproject.toml --extra cli --extra dev --universal --python-version 3.11 --upgrade \
		--no-emit-index-url --no-emit-find-links --custom-compile-command "make lock" --quiet --output-file $(LOCK)

quick: check unit ## linters, types and unit tests: one to two minutes

test: check ## linters, types and every test, on Spark a sample: 9 to 16 minutes on two cores
	$(TESTS) --jvms 1 -m "not long"

test-long: setup ## what `make test` leaves out, on Spark, on workers and on clusters that lose executors: 20 to 50 minutes
	$(TESTS) -n 5 --jvms 3 -m long --ignore tests/cluster/test_deployed.py # one process more: that of the cluster mostly waits

test-standalone: setup ## a standalone Spark cluster: a sample of the behaviour tests, a shipped environment, executors that come and go
	$(BIN)/python -m pytest --standalone -k standalone tests/behaviour # a process has one classic Spark
	$(BIN)/python -m pytest tests/cluster/test_deployed.py

check: setup ## linters, types and import contracts
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo

unit: setup ## unit tests and examples in docstrings, without the linters
	$(TESTS) -q src tests/unit

coverage: setup ## which lines and branches the unit tests and the behaviour tests in process run, and the figure
	$(BIN)/coverage erase
	$(BIN)/coverage run -m pytest -q -m "not long" src tests/unit --deselect $(UNSAFE)
	$(BIN)/coverage run --append -m pytest -q -m "not long" -k "local and not flight and not spark" tests/behaviour
	$(BIN)/coverage report

format: setup ## format the code and fix what can be fixed
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

fuzz: setup ## long run of random queries against single-node DataFusion (FUZZ_CASES=3000)
	$(BIN)/python -m pytest tests/differential/test_random_sql.py --fuzz-cases $(FUZZ_CASES) --timeout 14400

stress-exit: setup ## programs that end in every way, many at once: each with its own exit status (RUNS=20, MINUTES=15, ON=local|flight|spark)
	$(BIN)/python -m tests.exits.stress --runs $(RUNS) --minutes $(MINUTES) --on $(ON)

soak: setup ## mixed queries in one session for a while, against plain DataFusion: files, memory, threads (SECONDS=300)
	$(BIN)/python -m benchmarks.soak --seconds $(SECONDS)

fuzz-messages: setup ## randomly changed orders against a worker: its checks, then its task processes (MESSAGES=100000)
	$(BIN)/python -m tests.fuzz.messages --count $(MESSAGES)

bench: setup ## TPC-H in process against single-node DataFusion, with `sparkfusion bench` (SCALE=1, ROUNDS=2)
	$(BIN)/sparkfusion bench --scale $(SCALE) --rounds $(ROUNDS) --data data

bench-all: setup ## TPC-H and TPC-DS on every engine in turn: docs/benchmarks.md (SCALES=tpch:1,tpch:10,tpcds:1, ENGINES=, ROUNDS=2, QUERIES=)
	$(BIN)/python -m benchmarks.all --scales $(SCALES) --engines "$(ENGINES)" --rounds $(ROUNDS) --queries "$(QUERIES)"

bench-spark: setup ## TPC-H on Spark (local mode) against Spark SQL (SCALE=1, ROUNDS=2)
	$(BIN)/python -m benchmarks.tpch_spark --scale $(SCALE) --rounds $(ROUNDS) --warm-up $(WARM_UP)

bench-resident: setup ## resident workers on Spark against Spark jobs: a tiny query and TPC-H at scale 0.1
	$(BIN)/python -m benchmarks.resident

bench-feed: setup ## files found page by page: fed while they are found, against listing first
	$(BIN)/python -m benchmarks.feed

bench-transport: setup ## a shuffle over Flight against one in process and a file copy (GIGABYTES=2)
	$(BIN)/python -m benchmarks.transport --gigabytes $(GIGABYTES)

bench-scale: setup ## what coordination costs as queries and clusters grow: time and memory, to 1,000 simulated workers
	$(BIN)/python -m benchmarks.scale

bench-tuning: setup ## the figures of docs/tuning.md: the same answer in two ways, in turns
	$(BIN)/python -m benchmarks.tuning

docs: setup ## the documentation as a site, in site/; a broken link fails. To read it: python3 -m http.server -d site
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict

release-check: setup ## build the packages, install the wheel into an empty environment, and run the README's first five minutes there
	$(BIN)/python -m tests.release.check

demo: setup ## a short tour
	$(BIN)/python -m benchmarks.demo

demo-spark: setup ## a short tour for people with Spark: catalog tables, DataFrames, a faster query, Spark Connect
	$(BIN)/python -m benchmarks.demo_spark

wire: .venv-wire/.installed ## regenerate the protobuf module from wire.proto
	.venv-wire/bin/python -m grpc_tools.protoc -I $(WIRE) --python_out=$(WIRE) --pyi_out=$(WIRE) $(WIRE)/wire.proto

.venv-wire/.installed: pyproject.toml
	$(PYTHON) -m venv .venv-wire
	.venv-wire/bin/python -m pip install --quiet --disable-pip-version-check $$($(PYTHON) -c 'import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["project"]["optional-dependencies"]["wire"])')
	@touch $@

clean: ## remove environments, caches and results
	rm -rf $(VENV) .venv-wire .venv-sail build dist site .coverage .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis benchmarks/results
	find src tests -name __pycache__ -type d -prune -exec rm -rf {} +
