# Two commands do everything: `make demo` and `make test`. Python 3.11 or newer is all they need.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: demo test lint types layers docs tests benchmark fuzz clean

demo: $(VENV)/.installed
	$(BIN)/forcopt compare postprocessing/compas --methods 'as-predicted,lp@*' --plot demo.png

test: lint types layers docs tests

lint: $(VENV)/.tested
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.tested
	$(BIN)/mypy forcopt

layers: $(VENV)/.tested
	$(BIN)/lint-imports

docs: $(VENV)/.tested
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet

tests: $(VENV)/.tested
	$(BIN)/pytest -n auto --cov --cov-report=term:skip-covered

benchmark: $(VENV)/.tested
	$(BIN)/pip install -q --disable-pip-version-check linopy 'pyoframe[highs]' 'pyoptinterface[highs]' highsbox
	$(BIN)/forcopt benchmark

# make fuzz SECONDS=3600 SEED=7 JOBS=4
SECONDS ?= 600
SEED ?= 0
JOBS ?= 2

fuzz: $(VENV)/.tested
	$(BIN)/python benchmarks/fuzz/run.py --out benchmarks/fuzz/results.md --seconds $(SECONDS) --seed $(SEED) --jobs $(JOBS)

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "Python 3.11 or newer is needed: make PYTHON=python3.12 ..."; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: pyproject.toml | $(VENV)/bin/python
	$(BIN)/pip install -q --disable-pip-version-check -e .
	@touch $@

$(VENV)/.tested: $(VENV)/.installed
	$(BIN)/pip install -q --disable-pip-version-check -e '.[scip,learn,privacy,recom,test,lint,docs]'
	@touch $@

clean:
	rm -rf $(VENV) site build dist *.egg-info .coverage .mypy_cache .pytest_cache .ruff_cache .hypothesis demo.png
