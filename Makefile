# make try    .venv, install, analyse a sample log
# make test   lint, types, floors and tests
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
EXTRAS ?= dev
JOBS   ?= auto

.PHONY: try test lint check install install-dev bench heads fuzz wheel zipapp clean

# installed again only when pyproject.toml changes
$(VENV)/.installed: pyproject.toml hatch_build.py
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e .
	@touch $@

$(VENV)/.installed-dev: pyproject.toml hatch_build.py
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[$(EXTRAS)]"
	@touch $@ $(VENV)/.installed

install: $(VENV)/.installed
install-dev: $(VENV)/.installed-dev

# a failure found is exit code 1: that is what the sample shows
try: install
	$(BIN)/forensics sample_logs/founding_case/founding_case.log || test $$? -eq 1

lint: install-dev
	$(BIN)/ruff check forensics tests benchmarks hatch_build.py
	$(BIN)/mypy
	$(BIN)/lint-imports

check: install-dev
	$(BIN)/python -m pytest -n $(JOBS)

test: lint check

# ratios against ripgrep from one interleaved run, then what a start costs; make bench FULL=1: 1 GB, 10,000 files, memory at 4 GB
bench: install-dev
	$(BIN)/python benchmarks/bench.py $(if $(FULL),--full)
	$(BIN)/python benchmarks/startup.py

# chooses again what a big log is searched for, where many literals came or went: some minutes
heads: install-dev
	$(BIN)/python benchmarks/heads.py

# generated logs through the whole pipeline: make fuzz COUNT=1000000
COUNT ?= 20000
fuzz: install-dev
	$(BIN)/python -m tests.fuzz.many $(COUNT)

wheel: install-dev
	$(BIN)/python -m pip wheel --quiet --no-deps --wheel-dir dist .

# one file for a node without network, with all it needs for this system and Python: dist/forensics.pyz
zipapp: wheel
	$(BIN)/python -m pip install --quiet --disable-pip-version-check shiv
	$(BIN)/shiv --reproducible --quiet -c forensics -p "/usr/bin/env python3" -o dist/forensics.pyz dist/gpu_forensics-*.whl

clean:
	rm -rf dist build forensics/_compiled
