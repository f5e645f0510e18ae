# The two commands of the README are `make demo` and `make test`. Everything that they need beyond Rust and Python 3
# they fetch themselves.

PYTHON ?= python3
VENV   ?= .venv
SF     ?= 1
ROWS   ?= 10000000
SCALE  ?= 0.125
ORDER  ?= sorted

.PHONY: help demo test check fmt sqlalchemy-suite crash kill fuzz fuzz-coverage races formats python python-test tpcds-data bench-tpch bench-tpcds bench-statements bench-hap bench-single-rows bench-flat bench-threads bench-compression bench-kernels bench-read bench-tuples bench-joins bench-radix bench-radix-gates bench-join-sides bench-transfer bench-dictionaries bench-cold-probe bench-join-filters bench-spill bench-sort-spill bench-set-operations bench-short-memory bench-gather bench-windows bench-durable bench-hap-file bench-h2o bench-clickbench bench-files bench-nested bench-texts bench-estimates bench-cliffs \
	bench-join-memory bench-join-radix bench-join-tpch bench-join-swap bench-compaction bench-casper bench-casper-model bench-imdb bench-build compare suites clean

# Cargo unifies features over the packages that it builds together. Everything below builds the whole workspace, so that
# a dependency is compiled once a profile; only the demo builds no more than the shell.
TARGET    := $(or $(CARGO_TARGET_DIR),target)
# What a user of the crate starts from; `cargo test` has built them.
EXAMPLES  := query transaction arrow keyed
EXTENSION := crates/python/python/entasis/_entasis.abi3.so

##@ Build and test

## This list.
help:
	@awk '/^##@/ { printf "\n%s\n", substr($$0, 5); next } /^## / { text = substr($$0, 4); next } \
		/^[a-z-]+:/ && text { split($$0, name, ":"); printf "  %-22s%s\n", name[1], text; text = "" }' $(MAKEFILE_LIST)

## Build the release binary and show what it does.
demo:
	cargo build --release -p entasis-cli
	$(TARGET)/release/entasis demo

## All tests: Rust, then Python.
test:
	cargo test --workspace
	for example in $(EXAMPLES); do $(TARGET)/debug/examples/$$example > /dev/null || exit 1; done
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

# The tests and benchmarks take the extension from the workspace's build and the rest of the package as it stands.
# With examples and tests, dependencies have the features that `cargo test` has built them with.
python-test: $(VENV)/ready tpcds-data
	cargo build --workspace --lib --examples --tests
	cp $(TARGET)/debug/lib_entasis.so $(EXTENSION)
	PYTHONPATH=crates/python/python $(VENV)/bin/python -m pytest -q -n 2 --dist loadfile crates/python/tests tests/compare tests/suites tests/tpcds tests/kill tests/crash tests/formats
	rm -f $(EXTENSION)

## SQLAlchemy's own suite for dialects, with our dialect
sqlalchemy-suite: $(VENV)/ready
	cargo build --release --workspace
	cp $(TARGET)/release/lib_entasis.so $(EXTENSION)
	PYTHONPATH=crates/python/python $(VENV)/bin/python crates/python/tests/sqlalchemy/suite/run.py; \
		status=$$?; rm -f $(EXTENSION); exit $$status

# Its generator is packaged for an older DuckDB than the one to compare with.
$(VENV)/tpcds/ready: tests/tpcds/requirements.txt $(VENV)/ready
	$(PYTHON) -m venv $(VENV)/tpcds
	$(VENV)/tpcds/bin/pip install --quiet --disable-pip-version-check -r tests/tpcds/requirements.txt
	touch $@

## The small TPC-DS that the tests run, with DuckDB's answers.
tpcds-data: $(VENV)/tpcds/ready
	$(VENV)/tpcds/bin/python tests/tpcds/generate.py tests/tpcds/data --answers

## Functions and random statements in Entasis, DuckDB and PostgreSQL: make compare SEEDS="1 500" POSTGRES="host=localhost user=postgres"
compare: SEEDS = 1 500
compare: $(VENV)/ready
	$(VENV)/bin/pip install --quiet --disable-pip-version-check -r tests/compare/requirements.txt
	cargo build --release --workspace --lib --bins --example workloads
	cp $(TARGET)/release/lib_entasis.so $(EXTENSION)
	{ $(VENV)/bin/python tests/compare/functions.py; \
		$(TARGET)/release/examples/workloads --seed $(word 1,$(SEEDS)) --seeds $(word 2,$(SEEDS)) --queries 100 --dialect common; } \
		| PYTHONPATH=crates/python/python $(VENV)/bin/python tests/compare/compare.py --postgres "$(POSTGRES)"; \
		status=$$?; \
		if [ -n "$(POSTGRES)" ]; then PYTHONPATH=crates/python/python $(VENV)/bin/python tests/compare/constraints.py \
			--postgres "$(POSTGRES)" --seed $(word 1,$(SEEDS)) --seeds $(word 2,$(SEEDS)) || status=1; fi; \
		rm -f $(EXTENSION); exit $$status

## Public suites of sqlite, duckdb, datafusion or postgres that you have: make suites SUITE=sqlite FROM=~/sqllogictest EVERY=20 RECORD=--record
suites: EVERY = 1
suites: RECORD =
suites: $(VENV)/ready
	test -n "$(SUITE)" -a -n "$(FROM)"
	cargo build --release --workspace
	cp $(TARGET)/release/lib_entasis.so $(EXTENSION)
	PYTHONPATH=crates/python/python $(VENV)/bin/python tests/suites/suites.py $(SUITE) $(FROM) --every $(EVERY) $(RECORD); \
		status=$$?; rm -f $(EXTENSION); exit $$status

## Stop a machine at each operation of random transactions, N times, and open what is there; then STATES of recorded processes (tests/crash): make crash N=300000 SEED=1 STATES=3000
crash: N = 300000
crash: SEED = 1
crash: STATES = 3000
crash: $(VENV)/ready
	cargo build --release --workspace --lib --bins --example crashes
	$(TARGET)/release/examples/crashes $(N) $(SEED)
	cp $(TARGET)/release/lib_entasis.so $(EXTENSION)
	PYTHONPATH=crates/python/python $(VENV)/bin/python tests/crash/crash.py --states $(STATES) --seed $(SEED); \
		status=$$?; rm -f $(EXTENSION); exit $$status

## Kill a process that writes to a file, N times, and check what is there: make kill N=200 SEED=36 SYNCHRONOUS=full
kill: N = 200
kill: SEED = 36
kill: SYNCHRONOUS = full
kill: LARGE_GB = 0
kill: $(VENV)/ready
	cargo build --release --workspace
	cp $(TARGET)/release/lib_entasis.so $(EXTENSION)
	PYTHONPATH=crates/python/python $(VENV)/bin/python tests/kill/kill.py --kills $(N) --seed $(SEED) --synchronous $(SYNCHRONOUS) \
			--large-gb $(LARGE_GB); \
		status=$$?; rm -f $(EXTENSION); exit $$status

## Write the small files of a version of the format, once for each version (tests/formats/README.md): make formats FORMAT=1 FILES=loads
formats: $(VENV)/ready
	test -n "$(FORMAT)"
	cargo build --release --workspace
	cp $(TARGET)/release/lib_entasis.so $(EXTENSION)
	PYTHONPATH=crates/python/python $(VENV)/bin/python tests/formats/make.py tests/formats/$(FORMAT) $(if $(FILES),--only $(FILES)); \
		status=$$?; rm -f $(EXTENSION); exit $$status

## Bytes changed at random, given to what reads files: make fuzz SECONDS=600 FUZZ=all SEED=1 (or file, wal, block)
fuzz: SECONDS = 60
fuzz: FUZZ = all
fuzz: SEED = 1
fuzz:
	cd fuzz && cargo build --release --bin mutate && ulimit -v 4194304 && \
		cargo run --quiet --release --bin mutate -- $(FUZZ) --seconds $(SECONDS) --seed $(SEED)

## The same under libFuzzer (nightly and cargo-fuzz; see fuzz/README.md): make fuzz-coverage SECONDS=600 FUZZ="file wal block"
fuzz-coverage: SECONDS = 60
fuzz-coverage: FUZZ = file wal recover block
fuzz-coverage:
	cd fuzz && cargo run --quiet --release --bin mutate -- all --seeds corpus
	for target in $(FUZZ); do \
		cargo +nightly fuzz run --fuzz-dir fuzz --features libfuzzer $$target -- \
			-max_total_time=$(SECONDS) -max_len=65536 -timeout=10 -rss_limit_mb=2048 || exit 1; \
	done

## Blocks that are read while a writer stores to them, under ThreadSanitizer (nightly; x86-64 Linux; tests/races.txt).
# Without debug information reports do not name the functions that were inlined, by which races are told apart.
races:
	CARGO_PROFILE_RELEASE_DEBUG=line-tables-only CARGO_PROFILE_RELEASE_STRIP=none RUSTFLAGS="-Zsanitizer=thread -Cunsafe-allow-abi-mismatch=sanitizer" CARGO_TARGET_DIR=$(TARGET)/races \
		TSAN_OPTIONS="suppressions=$(abspath tests/races.txt)" \
		cargo +nightly test --release -p entasis-storage --lib --target x86_64-unknown-linux-gnu -- races

##@ Benchmarks of the database, beside others

## TPC-H beside DuckDB and Hyper in one run: make bench-tpch SF=1
bench-tpch: bench-build
	PYTHONPATH=crates/python/python $(VENV)/bin/python bench/tpch.py --scale $(SF)
	rm -f $(EXTENSION)

## TPC-DS beside DuckDB and Hyper in one run: make bench-tpcds SF=1
bench-tpcds: bench-build $(VENV)/tpcds/ready
	$(VENV)/tpcds/bin/python tests/tpcds/generate.py bench/data/tpcds-sf$(SF) --scale $(SF)
	PYTHONPATH=crates/python/python $(VENV)/bin/python bench/tpcds.py --scale $(SF)
	rm -f $(EXTENSION)

## Ordinary statements beside DuckDB: make bench-statements SF=1
bench-statements: bench-build
	PYTHONPATH=crates/python/python $(VENV)/bin/python bench/statements.py --scale $(SF)
	rm -f $(EXTENSION)

## Single rows beside scans, with DuckDB and SQLite: make bench-hap ROWS=10000000 ORDER=sorted
bench-hap: bench-build
	PYTHONPATH=crates/python/python $(VENV)/bin/python bench/hap.py --rows $(ROWS) --order $(ORDER) --bench $(TARGET)/release/entasis-bench
	rm -f $(EXTENSION)

## Statements on single rows beside the plainest of their kind, with SQLite
bench-single-rows: bench-build
	PYTHONPATH=crates/python/python $(VENV)/bin/python bench/single_rows.py
	rm -f $(EXTENSION)

## Writers in 1, 2 and 8 threads: make bench-threads ROWS=10000000 BASELINE=bench/record/threads-….json
bench-threads:
	cargo build --release --workspace
	$(PYTHON) bench/threads.py --rows $(ROWS) --bench $(TARGET)/release/entasis-bench $(if $(BASELINE),--baseline $(BASELINE))

## Databases in files beside DuckDB and SQLite: make bench-durable ONLY=commits,batches,tpch,open,latency,replay,hap OPEN_GB=3
bench-durable: bench-build
	PYTHONPATH=crates/python/python $(VENV)/bin/python bench/durable.py --bench $(TARGET)/release/entasis-bench $(if $(ONLY),--only $(ONLY)) $(if $(OPEN_GB),--open-gb $(OPEN_GB)) $(if $(DIR),--dir $(DIR))
	rm -f $(EXTENSION)

## The table of bench-hap in a file, beside the same in memory: make bench-hap-file ROWS=10000000
bench-hap-file: bench-build
	PYTHONPATH=crates/python/python $(VENV)/bin/python bench/hap.py --engines entasis,file --brief --rows $(ROWS) --order $(ORDER) --bench $(TARGET)/release/entasis-bench $(if $(DIR),--dir $(DIR))
	rm -f $(EXTENSION)

## Window functions beside DuckDB and Polars, time and memory: make bench-windows ROWS=10000000
bench-windows: bench-build
	PYTHONPATH=crates/python/python $(VENV)/bin/python bench/windows.py --rows $(ROWS)
	rm -f $(EXTENSION)

## The h2o.ai questions, ten aggregations and five joins, beside DuckDB and Polars: make bench-h2o ROWS=10000000
bench-h2o: bench-build
	PYTHONPATH=crates/python/python $(VENV)/bin/python bench/h2o.py --rows $(ROWS)
	rm -f $(EXTENSION)

## ClickBench's 43 queries over a generated table beside DuckDB: make bench-clickbench ROWS=10000000
bench-clickbench: bench-build
	PYTHONPATH=crates/python/python $(VENV)/bin/python bench/clickbench.py --rows $(ROWS)
	rm -f $(EXTENSION)

## CSV, Parquet, tables and data frames beside DuckDB and Polars: make bench-files ROWS=10000000 DATA=data/flights
bench-files: DATA = data/flights
bench-files: bench-build
	PYTHONPATH=crates/python/python $(VENV)/bin/python bench/files.py --rows $(ROWS) --data $(DATA)
	rm -f $(EXTENSION)

## Lists and structs beside DuckDB: make bench-nested ROWS=3000000
bench-nested: ROWS = 1000000
bench-nested: bench-build
	PYTHONPATH=crates/python/python $(VENV)/bin/python bench/nested.py --rows $(ROWS)
	rm -f $(EXTENSION)

## Functions of short texts and small lists beside DuckDB, and beside another build: make bench-texts BEFORE=other/python
bench-texts: bench-build
	PYTHONPATH=crates/python/python $(VENV)/bin/python bench/texts.py $(if $(BEFORE),--before $(BEFORE))
	rm -f $(EXTENSION)

## Work that grows with columns, statements, tables, indexes and rows, at n and 2n, beside DuckDB and SQLite: make bench-cliffs ONLY="columns,savepoints"
bench-cliffs: bench-build
	PYTHONPATH=crates/python/python $(VENV)/bin/python bench/cliffs.py $(if $(ONLY),--only "$(ONLY)")
	rm -f $(EXTENSION)

## How far estimates of joins and scans are off, beside DuckDB's: make bench-estimates OF=tpch,tpcds,imdb SF=1 IMDB=0.1
bench-estimates: OF = tpch,tpcds,imdb
bench-estimates: IMDB = 0.1
bench-estimates: bench-build $(if $(findstring tpcds,$(OF)),$(VENV)/tpcds/ready)
	$(if $(findstring tpcds,$(OF)),$(VENV)/tpcds/bin/python tests/tpcds/generate.py bench/data/tpcds-sf$(SF) --scale $(SF))
	PYTHONPATH=crates/python/python $(VENV)/bin/python bench/estimates.py --of $(OF) --scale $(SF) --imdb $(IMDB)
	rm -f $(EXTENSION)

## Aggregations and sorts larger than memory beside DuckDB: make bench-short-memory SHORT="100 512" (millions of rows, MB)
bench-short-memory: bench-build
	PYTHONPATH=crates/python/python $(VENV)/bin/python bench/short_memory.py $(SHORT) --ample
	rm -f $(EXTENSION)

##@ Benchmarks of joins, beside DuckDB

## Joins by table and size beside DuckDB, time and memory: make bench-join-memory ROWS=100000000
bench-join-memory: ROWS = 100000000
bench-join-memory: bench-build
	cargo build --release -p entasis-engine --example gather
	PYTHONPATH=crates/python/python $(VENV)/bin/python bench/join_memory.py --rows $(ROWS) --gather $(TARGET)/release/examples/gather
	rm -f $(EXTENSION)

## Joins by hits, payload, depth, skew and ratio beside DuckDB: make bench-join-radix SCALE=0.125 FAR=--far
bench-join-radix: bench-build
	PYTHONPATH=crates/python/python $(VENV)/bin/python bench/join_radix.py --scale $(SCALE) $(FAR)
	rm -f $(EXTENSION)

## Every join of TPC-H with every table, beside DuckDB: make bench-join-tpch SF=1
bench-join-tpch: bench-build
	PYTHONPATH=crates/python/python $(VENV)/bin/python bench/join_tpch.py --scale $(SF)
	rm -f $(EXTENSION)

## Strategies of chunk compaction, and the paper's simulation of them: make bench-compaction ROWS=4000000 THREADS=1
bench-compaction: ROWS = 4000000
bench-compaction: THREADS = 1
bench-compaction: bench-build
	$(TARGET)/release/entasis-bench compaction-sim
	PYTHONPATH=crates/python/python $(VENV)/bin/python bench/compaction.py --rows $(ROWS) --threads $(THREADS)
	rm -f $(EXTENSION)

## Thirty queries with many joins under each strategy, beside DuckDB and Hyper: make bench-imdb IMDB=0.1 SKEW=1 QUERIES=imdb THREADS=1
bench-imdb: IMDB = 0.1
bench-imdb: SKEW = 1
bench-imdb: QUERIES = imdb
bench-imdb: THREADS = 1
bench-imdb: bench-build
	PYTHONPATH=crates/python/python $(VENV)/bin/python bench/imdb.py --queries $(QUERIES) --scale $(if $(filter imdb,$(QUERIES)),$(IMDB),$(SF)) --skew $(SKEW) --threads $(THREADS)
	rm -f $(EXTENSION)

## Joins whose build side has far more rows than expected, sides swapped and not, beside DuckDB: make bench-join-swap ROWS=10000000
bench-join-swap: ROWS = 10000000
bench-join-swap: bench-build
	PYTHONPATH=crates/python/python $(VENV)/bin/python bench/join_swap.py --rows $(ROWS)
	rm -f $(EXTENSION)

##@ Benchmarks of parts

## The paper's column layouts on a bare column and on our storage, and SQL beside: make bench-casper CASPER=throughput,trade
bench-casper: CASPER = solver,throughput,throughput-wide,throughput-10m,throughput-threads,trade,ghosts,sla,robust,drift,width,beside
bench-casper: bench-build
	PYTHONPATH=crates/python/python $(VENV)/bin/python bench/casper.py --bench $(TARGET)/release/entasis-casper --only $(CASPER)
	rm -f $(EXTENSION)

## Cost models beside what is measured: the paper's on a bare column, ours on tables of storage (costs)
bench-casper-model: bench-build
	$(VENV)/bin/python bench/casper.py --bench $(TARGET)/release/entasis-casper --only model,model-1m,model-wide,costs
	rm -f $(EXTENSION)

## Single rows of Entasis in tables of 1 M and 10 M rows, in ascending and in random order
bench-flat: bench-build
	PYTHONPATH=crates/python/python $(VENV)/bin/python bench/hap.py --flat --rounds 9 --bench $(TARGET)/release/entasis-bench
	rm -f $(EXTENSION)

## TPC-H with compression and without, in memory and cold from disk: make bench-compression SF=1 PARTS=memory,cold
bench-compression: PARTS = memory,cold
bench-compression: bench-build
	PYTHONPATH=crates/python/python $(VENV)/bin/python bench/compression.py --scale $(SF) --parts $(PARTS)
	rm -f $(EXTENSION)

## Blocks read as they are encoded, in values per nanosecond, beside the machine's stream; VECTORS=avx2 or none: without AVX-512.
bench-kernels:
	$(if $(VECTORS),CARGO_TARGET_DIR=$(TARGET)/$(VECTORS) RUSTFLAGS='--cfg entasis_vectors="$(VECTORS)"') cargo run --release -p entasis-storage --example kernels

## Reads of a file that is not in the page cache, one by one and many at once: make bench-read DIR=/mnt/disk READ_GB=4
bench-read: READ_GB = 1
bench-read:
	cargo build --release -p entasis-storage --example reads
	$(PYTHON) bench/reads.py --reads $(TARGET)/release/examples/reads --gb $(READ_GB) $(if $(DIR),--dir $(DIR))

## Kept rows as compressed tuples and as columns: bytes, and times to write and to read them.
bench-tuples:
	cargo run --release -p entasis-engine --example tuples

## Joins with each table: times a build row and a probe row, bytes: make bench-joins JOIN_ROWS="1000000 10000000"
bench-joins:
	cargo run --release -p entasis-engine --example joins $(JOIN_ROWS)

## Radix joins beside joins with one table, by width, matches, skew and ratio: make bench-radix RADIX="10 40" (millions of rows)
bench-radix:
	cargo run --release -p entasis-engine --example radix $(RADIX)

## Either side of a join kept in its table, by payload and rows: make bench-join-sides SIDES=10000 (thousands of keys), or tuning, held-out: repeated keys
bench-join-sides:
	cargo run --release -p entasis-engine --example join_sides $(SIDES)

## Joins in random orders, with join filters and with two passes of predicate transfer: make bench-transfer TRANSFER='50 40' (thousandths of IMDB, orders)
bench-transfer:
	cargo run --release -p entasis-engine --example transfer $(TRANSFER)

## Radix joins beside joins with one table, in cells by which the gates were found and in others: make bench-radix-gates GATES=held-out
bench-radix-gates:
	cargo run --release -p entasis-engine --example radix_gates $(GATES)

## Joins by text columns that come as codes of dictionaries, and flat: make bench-dictionaries JOIN_ROWS=4 (millions of probe rows)
bench-dictionaries:
	cargo run --release -p entasis-engine --example dictionaries $(JOIN_ROWS)

## Joins whose probe side is read from a file, in the page cache and not: make bench-cold-probe COLD="10 100" (millions of rows)
bench-cold-probe:
	cargo run --release -p entasis-engine --example cold_probe $(COLD)

## Join filters by the share of rows that match: times a probe row, with and without.
bench-join-filters:
	cargo run --release -p entasis-engine --example join_filters $(JOIN_ROWS)

## Lookups at random places, in nanoseconds by the size of the table.
bench-gather:
	cargo run --release -p entasis-engine --example gather

## A join of two sides of 4 GB with 512 MB of memory: make bench-spill SPILL="125 512" (millions of rows, MB)
bench-spill:
	cargo run --release -p entasis-engine --example spill $(SPILL)

## A sort of 1.6 GB with 256 MB of memory: make bench-sort-spill SORT="50 256" (millions of rows, MB)
bench-sort-spill:
	cargo run --release -p entasis-engine --example sort_spill $(SORT)

## INTERSECT of two inputs of 20 M numbers with 256 MB of memory: make bench-set-operations SETS="20 256" (millions of rows, MB)
bench-set-operations:
	cargo run --release -p entasis-engine --example set_operations $(SETS)

bench-build: $(VENV)/ready
	$(VENV)/bin/pip install --quiet --disable-pip-version-check -r bench/requirements.txt
	cargo build --release --workspace
	cp $(TARGET)/release/lib_entasis.so $(EXTENSION)

clean:
	cargo clean
	rm -rf $(VENV) $(EXTENSION)
