# Commands of a checkout. Requires only Python 3.11 or newer, Rust and make.

PYTHON ?= python3
SCALE ?= quick
SEED ?= 1
# Optional features to compile: `quic`.
FEATURES ?=
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/pip install --quiet --disable-pip-version-check --require-hashes
MATURIN := PIP_QUIET=1 CARGO_TERM_QUIET=true VIRTUAL_ENV=$(CURDIR)/$(VENV) $(BIN)/maturin

CORE_SOURCES := $(shell find crates/core crates/fluid crates/python crates/quic crates/source_hash -name '*.rs' -o -name '*.csv' -o -name Cargo.toml) Cargo.toml Cargo.lock
# A workspace of its own, whose output lies beside the other's.
RELAY := --locked --manifest-path crates/relay/Cargo.toml --target-dir target
# Stamps say when a step was last done; all lie in the environment, so removing it undoes them.
INSTALLED := $(VENV)/.installed
# Another choice of features is another build.
BUILT := $(VENV)/.built$(FEATURES:%=-%)
WITH := $(if $(FEATURES),--features $(FEATURES))

COMPILE := uv pip compile --universal --python-version 3.11 --upgrade --generate-hashes \
  --no-annotate --custom-compile-command "make lock"
CAMPAIGN = SOJOURN_COUNT=$(COUNT) SOJOURN_SEED=$(SEED) cargo test --quiet --package sojourn-core

.DEFAULT_GOAL := help
.PHONY: help demo test test-rust test-python check build wheel figures report bench docs site fuzz fuzz-input torture lock clean

help: ## list what can be made
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

demo: build ## run the published experiments at quick scale, and write report/index.html
	$(BIN)/sojourn figure all --scale quick
	$(BIN)/sojourn report --scale quick --out report/index.html

test: check test-rust test-python site ## set up everything, and run every check and test

test-rust: ## the simulator's tests, and the relay's
	cargo test --quiet
	cargo test --quiet $(RELAY)

test-python: build ## the lab's tests, the examples, and every figure at smoke scale
	$(BIN)/pytest --quiet -n auto --dist loadgroup

check: build ## formatting, lints, types, stubs, spelling, prose, generated pages
	cargo fmt --all --check
	cargo fmt --check --manifest-path crates/relay/Cargo.toml
	cargo clippy --quiet --workspace --all-targets -- -D warnings
	cargo clippy --quiet --all-targets $(RELAY) -- -D warnings
	RUSTDOCFLAGS="-D warnings" cargo doc --quiet --workspace --no-deps --document-private-items
	RUSTDOCFLAGS="-D warnings" cargo doc --quiet $(RELAY) --no-deps --document-private-items
	$(BIN)/ruff format --quiet --check
	$(BIN)/ruff check --quiet
	$(BIN)/mypy --no-error-summary
	$(BIN)/stubtest sojourn._core
	$(BIN)/lint-imports --no-logo
	$(BIN)/typos
	$(BIN)/python tools/prose.py
	$(BIN)/python tools/script_types.py
	$(BIN)/python -m sojourn.figures.documents --check

build: $(BUILT) ## set up the environment, and compile the simulator into it

$(INSTALLED): requirements.lock
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed")'
	$(PYTHON) -m venv $(VENV)
	sed -n '/^maturin==/,/[^\]$$/p' $< > $(VENV)/maturin.lock
	$(PIP) -r $(VENV)/maturin.lock
# The compiler, the slowest step, runs while packages are fetched; then `develop` has little to do.
	$(MATURIN) build --release --quiet $(WITH) --interpreter $(BIN)/python --out $(VENV)/wheels & \
	  $(PIP) -r $<; fetched=$$?; wait $$! && exit $$fetched
	touch $@

$(BUILT): $(INSTALLED) pyproject.toml $(CORE_SOURCES)
	$(MATURIN) develop --release --quiet $(WITH)
	rm -f $(VENV)/.built*
	touch $@

wheel: build ## pack what was compiled into dist/, to be installed anywhere with pip
	$(BIN)/maturin build --release --quiet $(WITH) --out dist

figures: build ## make every figure again at SCALE=smoke|quick|paper
	$(BIN)/sojourn figure all --scale $(SCALE)

report: build ## write report/index.html on the figures of SCALE
	$(BIN)/sojourn report --scale $(SCALE) --out report/index.html

bench: build ## measure speed and memory
	$(BIN)/sojourn bench

docs: build ## write docs/parts.md and the list of figures anew
	$(BIN)/python -m sojourn.figures.documents

fuzz: COUNT ?= 1000
fuzz: ## run COUNT random scenarios from SEED on; what was stopped goes on
	$(CAMPAIGN) --test it invariants:: -- --nocapture

fuzz-input: COUNT ?= 1000000
fuzz-input: build ## read COUNT broken inputs from SEED on, and a hundredth of that as files
	$(CAMPAIGN) --test it readers:: -- --nocapture
	SOJOURN_COUNT=$$(($(COUNT) / 100 + 1)) SOJOURN_SEED=$(SEED) $(BIN)/pytest --quiet tests/scenario/test_readers.py

torture: COUNT ?= 100
torture: build ## kill sweeps that share a cache COUNT times
	SOJOURN_COUNT=$(COUNT) SOJOURN_SEED=$(SEED) $(BIN)/pytest --quiet tests/runs/test_kills.py

site: build ## write the documentation into site/, and check its links
	$(PIP) -r requirements-site.lock
	$(BIN)/sphinx-build --quiet --fail-on-warning --keep-going docs site

lock: $(INSTALLED) ## choose the newest Python packages anew (needs uv)
	$(COMPILE) pyproject.toml --group tools -o requirements.lock
	$(COMPILE) --group site -c requirements.lock -o requirements-site.lock

clean: ## remove everything that was made
	rm -rf $(VENV) results report dist site target python/sojourn/*.so
