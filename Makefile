# The two commands of the README are `make demo` and `make test`. Everything that they need beyond Rust and Python 3
# they fetch themselves.

PYTHON ?= python3
VENV   ?= .venv
SF     ?= 1

.PHONY: demo test check fmt python python-test bench-tpch clean

## Build the release binary and show what it does.
demo:
	cargo build --release -p entasis-cli
	cargo run --release -q -p entasis-cli -- demo

## All tests: Rust, then Python.
test:
	cargo test --workspace --exclude entasis-python
	$(MAKE) python-test

## What CI checks besides the tests.
check:
	cargo fmt --all --check
	cargo clippy --workspace --all-targets -- -D warnings

fmt:
	cargo fmt --all

$(VENV)/ready: crates/python/requirements.txt
	$(PYTHON) -m venv $(VENV)
	$(VENV)/bin/pip install --quiet --disable-pip-version-check -r crates/python/requirements.txt
	touch $@

## Build the Python package and install it into a virtual environment ($(VENV)).
python: $(VENV)/ready
	$(MATURIN) --release
	@echo "Installed. Try: $(VENV)/bin/python -c \"import entasis; print(entasis.sql('SELECT 42 AS answer'))\""

MATURIN = cd crates/python && VIRTUAL_ENV=$(abspath $(VENV)) $(abspath $(VENV))/bin/maturin develop --quiet

# The tests build the package as `cargo test` builds everything else, so that nothing is compiled twice.
python-test: $(VENV)/ready
	$(MATURIN)
	$(VENV)/bin/python -m pytest -q crates/python/tests

## TPC-H beside DuckDB and Hyper in one run: make bench-tpch SF=1
bench-tpch: python
	$(VENV)/bin/pip install --quiet --disable-pip-version-check -r bench/requirements.txt
	cargo build --release -q -p entasis-bench
	$(VENV)/bin/python bench/tpch.py --scale $(SF)

clean:
	cargo clean
	rm -rf $(VENV)
