# The front door. Each target sets up what it needs, once, and again only when pyproject.toml or the versions change.
PYTHON ?= python3
WORKERS ?= 2
ARGS ?=

# What Python compiles is kept, whatever is set outside: each process of a test would compile it again.
export PYTHONDONTWRITEBYTECODE =

# One thread pool per test worker: two pools on the same cores spin against each other. What is compiled for one test is
# kept for the others, and for the next run.
TEST_ENV := OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 JAX_COMPILATION_CACHE_DIR=$(CURDIR)/.jax_cache \
  JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS=0.1 JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES=-1
# Most of the time goes into compiling programs that run once: by day without the costly passes of the compiler, which
# takes half of it away; `make test-all` compiles as users do.
QUICKLY := XLA_FLAGS="--xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true" TEST_EMITTERS=off
# The tests of a file share programs, so that one worker runs them all.
PYTEST := -m pytest -q -n $(WORKERS) --dist loadfile

.DEFAULT_GOAL := help
.PHONY: help address demo test test-day test-all costs mutants check format bench papers docs licences dist clean

help: ## list the targets
	@echo "meanmap: make TARGET, where TARGET is one of"
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  \1\t\2/p' Makefile | expand -t 14
	@echo "PYTHON=python3.13 chooses the Python that the environment is made with (make clean first, to change it)."

# $(call setup,environment,extra,versions): the Python is checked first, so that an old one fails with a sentence.
# Python's own compiler runs on all cores, which pip's does not, and without the packages' tests; what fails are templates.
define setup
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "meanmap needs Python 3.11 or newer, and $(PYTHON) is older: try make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 1; }
	@echo "Setting up $(1) with the $(3) versions (once; a minute or two)"
	@$(PYTHON) -m venv $(1)
	@PIP_CONSTRAINT=constraints/$(3).txt PIP_BUILD_CONSTRAINT=constraints/$(3).txt PIP_DISABLE_PIP_VERSION_CHECK=1 \
	  $(1)/bin/python -m pip install -qq --no-compile -e ".[$(2)]" -e ./papers
	@$(1)/bin/python -W ignore -m compileall -qq -j 0 -x '/tests?/' $(1)/lib || true
	@touch $@
endef

.venv/.ready: pyproject.toml papers/pyproject.toml constraints/newest.txt
	$(call setup,.venv,test,newest)

.venv/.dev-ready: .venv/.ready
	$(call setup,.venv,dev,newest)

.venv/.docs-ready: .venv/.ready
	$(call setup,.venv,docs,newest)

.venv/.bench-ready: .venv/.ready
	$(call setup,.venv,bench,newest)

.venv/.audit-ready: .venv/.ready
	$(call setup,.venv,audit,newest)

# What users with all extras have, and no tool of developers.
.venv-all/.ready: pyproject.toml papers/pyproject.toml constraints/newest.txt
	$(call setup,.venv-all,all,newest)

.venv-oldest/.ready: pyproject.toml papers/pyproject.toml constraints/oldest.txt
	$(call setup,.venv-oldest,test,oldest)

demo: .venv/.ready ## every part of the library on small data, drawn into meanmap-demo.html
	.venv/bin/meanmap demo

test: .venv/.ready ## what can be tested in a few minutes, on the newest versions
	MEANMAP_TEST_PROFILE=quick $(TEST_ENV) $(QUICKLY) .venv/bin/python $(PYTEST) -m "not slow and not thorough" $(ARGS)

test-day: .venv/.ready .venv-oldest/.ready ## all tests but the slow ones, then those marked `oldest` on the oldest versions
	$(TEST_ENV) $(QUICKLY) .venv/bin/python $(PYTEST) $(ARGS)
	$(TEST_ENV) $(QUICKLY) .venv-oldest/bin/python $(PYTEST) -m "oldest and not slow" tests

test-all: .venv/.ready .venv-oldest/.ready ## all tests, many more random cases, compiled as users do (hours)
	MEANMAP_TEST_PROFILE=night $(TEST_ENV) .venv/bin/python $(PYTEST) -m "" $(ARGS)
	$(TEST_ENV) .venv-oldest/bin/python $(PYTEST) -m oldest tests

costs: .venv/.ready ## measure which tests are too costly for `make test`; writes tests/costs.json
	$(TEST_ENV) $(QUICKLY) .venv/bin/python $(PYTEST) --costs $(ARGS)

mutants: .venv/.ready ## change the code in small ways, and list the changes that no test notices (hours)
	$(TEST_ENV) $(QUICKLY) .venv/bin/python -m tests.mutants $(ARGS)

check: .venv/.dev-ready ## formatting, lint, types and the floors (changes nothing)
	.venv/bin/ruff format --check
	.venv/bin/ruff check
	.venv/bin/basedpyright
	.venv/bin/lint-imports

format: .venv/.dev-ready ## format the code and mend what lint can mend
	.venv/bin/ruff format
	.venv/bin/ruff check --fix

bench: .venv/.bench-ready ## measure every number of README and documentation again, in half an hour, and write it there
	.venv/bin/python -m benchmarks $(ARGS)

papers: .venv/.ready ## every figure of the papers at its own size, and the pages that show them (a night)
	.venv/bin/meanmap reproduce --all --scale paper --seed 2028 --folder build/papers
	.venv/bin/python -m papers.pages build/papers $$(git rev-parse --short HEAD)

docs: .venv/.docs-ready ## the documentation, in docs/_build/html/index.html
	.venv/bin/python -m sphinx -W --keep-going -q -b html docs docs/_build/html
	.venv/bin/python docs/check_links.py docs/_build/html
	@echo "docs/_build/html/index.html"

licences: .venv-all/.ready .venv/.audit-ready ## licences of all that is installed with meanmap[all], and its SBOM, in build/
	@mkdir -p build
	.venv/bin/cyclonedx-py environment --pyproject pyproject.toml --mc-type library --output-reproducible -o build/sbom.json .venv-all/bin/python
	.venv/bin/pip-licenses --python .venv-all/bin/python --format=markdown --with-urls --output-file=build/licences.md
	@echo "build/sbom.json (CycloneDX), build/licences.md"

# Links of the README lead nowhere on PyPI without it.
address:
	@grep -q '^address = "https://' pyproject.toml || { echo 'fill in the address of the repository in pyproject.toml,' \
	  'under [tool.hatch.metadata.hooks.custom]: links on PyPI need it'; exit 1; }

# Times in archives are those of the last commit, so that whoever builds it gets the same bytes.
dist: address .venv/.audit-ready ## wheels and sources of both packages in dist/, built twice and equal byte for byte
	rm -rf dist build/again
	@for folder in dist build/again; do for package in . papers; do \
	  SOURCE_DATE_EPOCH=$$(git log -1 --format=%ct) PIP_CONSTRAINT=constraints/newest.txt \
	  .venv/bin/python -m build -o $$folder $$package > /dev/null || exit 1; done; done
	diff -r dist build/again && cd dist && sha256sum *

clean: ## remove environments, caches and everything that was built
	rm -rf .venv .venv-all .venv-oldest .jax_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache build dist uv.lock \
	  docs/_build docs/gallery docs/api/generated docs/sg_execution_times.rst meanmap-demo meanmap-demo.html
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
