# make setup   .venv with everything (does nothing when it is up to date)
# make demo    install what it needs, predict links of a village, train PSGNN on a grid, and make a report
# make quick   lint, types, architecture and the tests of the core, in two minutes
# make test    lint, types, architecture and tests: what CI runs (make check is the same)
# make bench   measure distances and layers against their peers, and records again (an hour or more)
# make peers   .venv-node2vec with PecanPy, which needs NumPy below 2, for the peer node2vec
# make docs    make the generated pages and pictures of docs/ anew, and the site in site/
PYTHON ?= python3
BIN := .venv/bin
STAMP := .venv/.installed
# Tests that run side by side.
JOBS ?= 2
# The tests of the core.
QUICK := $(addprefix tests/test_,graph.py graph_type.py io.py headers.py distances.py anchors.py metrics.py tasks.py sampling.py \
	answers.py exports.py kernels.py registry.py)

# An installed package is compiled to bytecode by pip, a checkout by its first import, unless PYTHONDONTWRITEBYTECODE is set.
# Then every command would compile psgnn anew, which takes longer than a small answer.
COMPILE := $(BIN)/python -m compileall -q src lab

# Where `make peers` puts PecanPy; psgnn runs it there.
PECANPY := $(CURDIR)/.venv-node2vec/bin/python
ifneq ($(wildcard $(PECANPY)),)
export PSGNN_NODE2VEC_PYTHON ?= $(PECANPY)
endif

.PHONY: help setup demo quick test check bench peers docs
.DEFAULT_GOAL := help

help:
	@sed -n 's/^# make/make/p' Makefile

setup: $(STAMP)

$(STAMP): pyproject.toml lab/pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install -qq --disable-pip-version-check -c constraints.txt -e ".[dev]" -e lab
	$(COMPILE)
	touch $(STAMP)

# Without the tools of developers, unless they are there.
DEMO := .venv/.demo
$(DEMO): pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	test -e $(STAMP) || $(BIN)/python -m pip install -qq --disable-pip-version-check -c constraints.txt -e ".[train,report]"
	$(COMPILE)
	touch $(DEMO)

demo: $(DEMO)
	mkdir -p demo
	@echo "1. Missing links of a village, by weights that have never seen it"
	$(BIN)/psgnn predict examples/village.csv --top 5 --why
	$(BIN)/psgnn explain examples/village.csv Dina Leo --quiet
	@echo "2. Hidden links of a grid: linked nodes share no neighbour, and to a plain network all places look alike"
	$(BIN)/psgnn compare grid --models gcn --seeds 1 --quiet
	@echo "3. PSGNN on the same hidden links, seen from anchors: compare its test AUC with the rows above"
	$(BIN)/psgnn train grid --no-refit --out demo/run --force
	@echo "4. What the model sees"
	$(BIN)/psgnn report demo/run --out demo/report.html --force

quick: $(STAMP)
	$(COMPILE)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m pytest -n $(JOBS) -q $(QUICK)

check test: $(STAMP)
	$(COMPILE)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m pytest -n $(JOBS)

bench: $(STAMP)
	$(BIN)/python lab/benchmarks/distances.py --json lab/benchmarks/results/distances.json > /dev/null
	$(BIN)/python lab/benchmarks/training.py --json lab/benchmarks/results/training.json > /dev/null
	$(BIN)/python lab/benchmarks/scale.py --json lab/benchmarks/results/scale.json > /dev/null
	$(BIN)/python lab/benchmarks/million.py --json lab/benchmarks/results/million.json > /dev/null
	$(BIN)/python lab/benchmarks/families.py --json lab/benchmarks/results/families.json > /dev/null
	$(BIN)/python lab/benchmarks/candidates.py --json lab/benchmarks/results/candidates.json > /dev/null
	$(BIN)/python lab/benchmarks/audit.py --json lab/benchmarks/results/audit.json > /dev/null

peers: .venv-node2vec/.installed

.venv-node2vec/.installed:
	$(PYTHON) -m venv .venv-node2vec
	$(PECANPY) -m pip install -qq --disable-pip-version-check pecanpy==2.0.9
	touch $@

docs: $(STAMP)
	$(BIN)/python docs/build.py
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	@echo "The site is site/index.html"
