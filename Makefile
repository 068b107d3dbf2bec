# Two commands do everything: `make demo` and `make test`. They need Python 3.11 or newer and install the rest.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: demo test check lint tree types layers docs tests nightly mutants kernels benchmark fuzz clean

demo: $(VENV)/.installed
	$(BIN)/forcopt compare postprocessing/compas --methods 'as-predicted,lp@*' --plot demo.png

# One job a core: what comes before the tests runs on one.
test: $(VENV)/.tested
	$(MAKE) -j2 lint types layers docs
	$(MAKE) tests

lint: $(VENV)/.tested
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

# These two read a tree of files, with models/ in its place in the package.
TREE := build/tree

tree: $(VENV)/.tested
	rm -rf $(TREE)
	$(BIN)/python setup.py -q build_py --build-lib $(TREE)

# The README's code is checked as a user's is, each block alone.
types: tree
	awk '/^```/ {name = /python/ ? "$(TREE)/readme" ++n ".py" : ""; if (name) print "import forcopt as fo" > name; next} name {print > name}' README.md
	cd $(TREE) && $(CURDIR)/$(BIN)/mypy --config-file $(CURDIR)/pyproject.toml --cache-dir $(CURDIR)/.mypy_cache forcopt readme*.py

layers: tree
	cd $(TREE) && $(CURDIR)/$(BIN)/lint-imports --config $(CURDIR)/pyproject.toml --cache-dir $(CURDIR)/.import_linter_cache

docs: $(VENV)/.tested
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet

# Python keeps what it has compiled, so that a second run starts sooner.
unexport PYTHONDONTWRITEBYTECODE

PYTEST := $(BIN)/pytest -n auto --dist worksteal

# The core, while you work: two minutes on two cores.
check: $(VENV)/.tested
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(PYTEST) -m core

tests: $(VENV)/.tested
	$(PYTEST) -m 'not nightly'

# Everything, with published tables, notebooks and large seeds.
nightly: $(VENV)/.tested
	$(PYTEST) --cov --cov-report=term:skip-covered

# Break the code where it proves or refuses something: a test must fail each time.
mutants: $(VENV)/.tested
	$(BIN)/python tests/mutants/run.py --out tests/mutants/results.md

# What rests on the last bit of a float differs between processors: the examples and the instances once more, by
# the kernels of old ones.
kernels: $(VENV)/.tested
	OPENBLAS_CORETYPE=Prescott \
	NPY_DISABLE_CPU_FEATURES="$$($(BIN)/python -c 'from numpy._core import _multiarray_umath as m; print(*m.__cpu_dispatch__)')" \
		$(PYTEST) forcopt models tests/study/test_library.py

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
