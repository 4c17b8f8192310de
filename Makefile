# The front door. Each target sets up what it needs, once, and again only when pyproject.toml or the versions change.
PYTHON ?= python3
WORKERS ?= 2
ARGS ?=

# One thread pool per test worker: two pools on the same cores spin against each other. What is compiled for one test is
# kept for the others, and for the next run.
TEST_ENV := OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 JAX_COMPILATION_CACHE_DIR=$(CURDIR)/.jax_cache \
  JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS=0.1 JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES=-1
# Most of the time goes into compiling programs that run once: by day without the costly passes of the compiler, which
# takes a quarter of it away; `make test-all` compiles as users do.
QUICKLY := XLA_FLAGS="--xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true"

.DEFAULT_GOAL := help
.PHONY: help demo test test-all check format bench docs clean

help: ## list the targets
	@echo "meanmap: make TARGET, where TARGET is one of"
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  \1\t\2/p' Makefile | expand -t 14
	@echo "PYTHON=python3.13 chooses the Python that the environment is made with (make clean first, to change it)."

# $(call setup,environment,extra,versions): the Python is checked first, so that an old one fails with a sentence.
define setup
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "meanmap needs Python 3.11 or newer, and $(PYTHON) is older: try make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 1; }
	@echo "Setting up $(1) with the $(3) versions (once; a minute or two)"
	@$(PYTHON) -m venv $(1)
	@PIP_CONSTRAINT=constraints/$(3).txt PIP_BUILD_CONSTRAINT=constraints/$(3).txt PIP_DISABLE_PIP_VERSION_CHECK=1 \
	  $(1)/bin/python -m pip install -qq -e ".[$(2)]"
	@touch $@
endef

.venv/.ready: pyproject.toml constraints/newest.txt
	$(call setup,.venv,dev,newest)

.venv/.docs-ready: .venv/.ready
	$(call setup,.venv,docs,newest)

.venv/.bench-ready: .venv/.ready
	$(call setup,.venv,bench,newest)

.venv-oldest/.ready: pyproject.toml constraints/oldest.txt
	$(call setup,.venv-oldest,test,oldest)

demo: .venv/.ready ## every part of the library on small data, drawn into meanmap-demo.html
	.venv/bin/meanmap demo

test: .venv/.ready .venv-oldest/.ready ## the daily tests on the newest versions, then those marked `oldest` on the oldest
	$(TEST_ENV) $(QUICKLY) .venv/bin/python -m pytest -q -n $(WORKERS) $(ARGS)
	$(TEST_ENV) $(QUICKLY) .venv-oldest/bin/python -m pytest -q -n $(WORKERS) -m "oldest and not slow" tests

test-all: .venv/.ready .venv-oldest/.ready ## the same with the slow tests and many more random cases
	MEANMAP_TEST_PROFILE=night $(TEST_ENV) .venv/bin/python -m pytest -q -n $(WORKERS) -m "" $(ARGS)
	$(TEST_ENV) .venv-oldest/bin/python -m pytest -q -n $(WORKERS) -m oldest tests

check: .venv/.ready ## formatting, lint, types and the floors (changes nothing)
	.venv/bin/ruff format --check src tests benchmarks docs
	.venv/bin/ruff check src tests benchmarks docs
	.venv/bin/basedpyright
	.venv/bin/lint-imports

format: .venv/.ready ## format the code and mend what lint can mend
	.venv/bin/ruff format src tests benchmarks docs
	.venv/bin/ruff check --fix src tests benchmarks docs

bench: .venv/.bench-ready ## measure every number of README and documentation again, in ten minutes, and write it there
	.venv/bin/python -m benchmarks $(ARGS)

docs: .venv/.docs-ready ## the documentation, in docs/_build/html/index.html
	.venv/bin/python -m sphinx -W --keep-going -q -b html docs docs/_build/html
	.venv/bin/python docs/check_links.py docs/_build/html
	@echo "docs/_build/html/index.html"

clean: ## remove environments, caches and everything that was built
	rm -rf .venv .venv-oldest .jax_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache build dist uv.lock \
	  docs/_build docs/gallery docs/api/generated docs/sg_execution_times.rst meanmap-demo meanmap-demo.html
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
