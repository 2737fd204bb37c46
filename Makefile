# `make quickstart` and `make test` do everything on a fresh machine, the virtual environment included.
PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11; do \
  $$p -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' 2>/dev/null && echo $$p && break; done)
VENV ?= .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
SEED ?= 0
RUN := runs/quickstart$(if $(filter-out 0,$(SEED)),-seed$(SEED))
# One thread per worker: two test processes with two threads each slow each other down on two cores.
PYTEST := OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2

.PHONY: quickstart test test-all test-docs test-wheel docs mutation lint format model tables clean

quickstart: $(INSTALLED)  ## train the default model on the CPU; continues an interrupted run
	$(BIN)/text2grad run quickstart seed=$(SEED) output_dir=$(RUN) \
	  $(if $(wildcard $(RUN)/config.yaml),--resume)

test: lint model  ## what CI runs
	$(PYTEST)

test-all: lint model test-wheel  ## with the slow tests: soak, load, commands of docs/*.md, wheel
	$(PYTEST) -m ""

test-docs: model  ## every command and all code of README, CONTRIBUTING and docs/*.md, with a tiny model
	$(PYTEST) -m "" tests/test_docs.py

test-wheel: $(INSTALLED)  ## build the wheel, install it into an empty environment, run the quickstart there
	$(BIN)/python tests/check_wheel.py

docs: $(INSTALLED)  ## build the documentation site into site/; `.venv/bin/mkdocs serve` shows it while you write
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --quiet

mutation: $(INSTALLED)  ## whether the tests notice changes of the code: docs/mutation.md; about 10 minutes, continues
	OMP_NUM_THREADS=1 $(BIN)/python benchmarks/mutation.py

lint: $(INSTALLED)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(INSTALLED)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

model: $(INSTALLED)  ## download the default model once, before several test processes need it
	$(BIN)/python -c 'from text2grad.models.loading import resolve; print(resolve("smollm2"))'

tables: $(INSTALLED)  ## write the results of docs/results into README and docs
	$(BIN)/python benchmarks/tables.py

$(INSTALLED): pyproject.toml constraints.txt
	@test -n "$(PYTHON)" || { echo "text2grad needs Python 3.11, 3.12 or 3.13; set PYTHON=/path/to/python3.12"; exit 1; }
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet -c constraints.txt -e ".[dev]"
	touch $@

clean:
	rm -rf $(VENV) dist site .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache mutants
