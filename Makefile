# make setup   .venv with everything (does nothing when it is up to date)
# make demo    install, pick anchors and score links on the built-in communities graph
# make test    lint, types, architecture and tests: what CI runs (make check is the same)
# make bench   measure the distance engine against its peers
# make docs    regenerate the generated parts of docs/
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
# Processes that run tests side by side.
JOBS ?= 2

.PHONY: setup demo test check bench docs clean
.DEFAULT_GOAL := help

help:
	@sed -n 's/^# //p' Makefile | head -5

setup: $(STAMP)

$(STAMP): pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[dev]"
	touch $(STAMP)
