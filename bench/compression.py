"""The effect of compression: TPC-H with it compared with TPC-H without (`compression = none`), in one run.

    make bench-compression SF=1                    in memory, then in files with a cold cache
    make bench-compression SF=1 PARTS=memory       only one of them

The experiment of Westmann et al., *The Implementation and Performance of Compressed Databases*, section 5:
size and load by table (its Tables 3 and 4), and the 22 queries and both refresh functions with their CPU time and how
busy the cores were (Table 5). Each side gets a process of its own; query by query they take turns for several
rounds, and the figure is the median of the rounds.

The refresh functions change 0.1 % of the orders, as the benchmark's do: RF1 inserts orders and their lines
under keys that are free (copies of others), RF2 deletes them again.

Cold from disk, each query and refresh function runs in a fresh process (`compression_cold.py`).

The tables are printed and kept as JSON, with machine and commit, under bench/record/.
"""

import argparse
import os
import statistics

import compression_cold
from engines import ROOT, Worker, generate, geometric_mean, keep, tables_in

SIDES = ["entasis", "uncompressed"]
# Of every 32 keys, the first eight are in use. A thousandth of the orders, and their lines.
CHOSEN = "{key} % 4000 = 1"
REFRESH = {
    "RF1": [
        "INSERT INTO orders SELECT o_orderkey + 8, {orders} FROM orders WHERE " + CHOSEN.format(key="o_orderkey"),
        "INSERT INTO lineitem SELECT l_orderkey + 8, {lineitem} FROM lineitem WHERE " + CHOSEN.format(key="l_orderkey"),
    ],
    "RF2": [
        "DELETE FROM lineitem WHERE l_orderkey % 4000 = 9",
        "DELETE FROM orders WHERE o_orderkey % 4000 = 9",
    ],
}


def refresh(workers, rounds):
    """Milliseconds and CPU milliseconds of both functions, by side."""
    times = {name: {worker: [] for worker in workers} for name in REFRESH}
    cpu = {name: {worker: [] for worker in workers} for name in REFRESH}
    for _ in range(rounds + 1):
        for name, statements in REFRESH.items():
            for side, worker in workers.items():
                seconds = used = 0.0
                for statement in statements:
                    columns = {table: ", ".join(COLUMNS[table][1:]) for table in COLUMNS}
                    answer = worker.ask(do="query", sql=statement.format(**columns))
                    if "error" in answer:
                        raise SystemExit(f"{name}: {answer['error']}")
                    seconds += answer["seconds"]
                    used += answer["cpu"]
                times[name][side].append(seconds * 1000)
                cpu[name][side].append(used * 1000)
    return {name: (times[name], cpu[name]) for name in REFRESH}


COLUMNS = {
    "orders": "o_orderkey o_custkey o_orderstatus o_totalprice o_orderdate o_orderpriority o_clerk o_shippriority o_comment".split(),
    "lineitem": (
        "l_orderkey l_partkey l_suppkey l_linenumber l_quantity l_extendedprice l_discount l_tax l_returnflag l_linestatus "
        "l_shipdate l_commitdate l_receiptdate l_shipinstruct l_shipmode l_comment"
    ).split(),
}


def table_bytes(worker, table):
    """Size of the blocks and dictionaries of a table in bytes."""
    total = 0
    for function in ["entasis_blocks", "entasis_dictionaries"]:
        answer = worker.ask(do="value", sql=f"SELECT coalesce(sum(bytes), 0) FROM {function}('{table}')")
        if "error" in answer:
            raise SystemExit(f"{function}: {answer['error']}")
        total += int(answer["value"])
    return total


def by_table(workers, tables, rounds):
    """Tables 3 and 4 of the paper: bytes, and the medians of the seconds and CPU seconds of loading, by table and side.

    Leaves the tables loaded.
    """
    found = {}
    for table, path in tables.items():
        times = {name: {"seconds": [], "cpu": []} for name in workers}
        for _ in range(rounds):
            for name, worker in workers.items():
                worker.ask(do="query", sql=f"DROP TABLE IF EXISTS {table}")
                answer = worker.ask(do="load", table=table, path=str(path))
                if "error" in answer:
                    raise SystemExit(f"{name} cannot load {table}: {answer['error']}")
                for of in ("seconds", "cpu"):
                    times[name][of].append(answer[of])
        medians = {name: {of: statistics.median(values) for of, values in by.items()} for name, by in times.items()}
        found[table] = {name: {"bytes": table_bytes(worker, table)} | medians[name] for name, worker in workers.items()}
    print(f"\n{'table':10}{'MB':>8}{'of':>8}{'%':>5}{'load ms':>10}{'of':>8}{'CPU ms':>9}{'of':>8}")
    for table, by in found.items():
        ours, none = by["entasis"], by["uncompressed"]
        print(f"{table:10}{ours['bytes'] / 1e6:8.2f}{none['bytes'] / 1e6:8.2f}{100 * ours['bytes'] / none['bytes']:5.0f}"
              f"{ours['seconds'] * 1e3:10.1f}{none['seconds'] * 1e3:8.1f}{ours['cpu'] * 1e3:9.1f}{none['cpu'] * 1e3:8.1f}")
    return found


def of_query(workers, sql, rounds):
    """Milliseconds and CPU milliseconds of a query, by side and round; the first round warms up."""
    times = {side: [] for side in workers}
    cpu = {side: [] for side in workers}
    for _ in range(rounds + 1):
        for side, worker in workers.items():
            answer = worker.ask(do="query", sql=sql)
            if "error" in answer:
                raise SystemExit(f"{side}: {answer['error']}")
            times[side].append(answer["seconds"] * 1000)
            cpu[side].append(answer["cpu"] * 1000)
    return times, cpu


def queries():
    texts = {n: (ROOT / "tests/tpch/queries" / f"q{n:02}.sql").read_text() for n in range(1, 23)}
    return {f"Q{n}": text.strip().rstrip(";") for n, text in texts.items()}


def in_memory(args, tables):
    """Prints the table of both sides in memory. Returns what is kept in the record."""
    workers = {name: Worker(name, args.threads) for name in SIDES}
    load_peak = {}
    of_tables = by_table(workers, tables, args.rounds)
    for name, worker in workers.items():
        load_peak[name] = worker.ask(do="memory")["bytes"]
    total = lambda of: {side: sum(by[side][of] for by in of_tables.values()) for side in SIDES}
    sizes, load_seconds = total("bytes"), total("seconds")

    results = []
    print(f"\n{'query':7}{'compressed ms':>15}{'none ms':>12}{'ratio':>8}{'CPU ms':>10}{'of':>8}{'cores busy, %':>16}{'of':>5}")

    def report(name, times, cpu):
        medians = {side: statistics.median(times[side][1:]) for side in SIDES}
        used = {side: statistics.median(cpu[side][1:]) for side in SIDES}
        busy = {side: 100 * used[side] / medians[side] / args.threads for side in SIDES}
        results.append({"name": name, "median_ms": medians, "median_cpu_ms": used, "all_ms": times})
        ratio = medians["entasis"] / medians["uncompressed"]
        print(f"{name:7}{medians['entasis']:15.1f}{medians['uncompressed']:12.1f}{ratio:8.2f}"
              f"{used['entasis']:10.1f}{used['uncompressed']:8.1f}{busy['entasis']:16.0f}{busy['uncompressed']:5.0f}", flush=True)

    for name, sql in queries().items():
        report(name, *of_query(workers, sql, args.rounds))
    of_queries = list(results)
    for name, (times, cpu) in refresh(workers, args.rounds).items():
        report(name, times, cpu)

    speedup = geometric_mean([r["median_ms"]["uncompressed"] / r["median_ms"]["entasis"] for r in of_queries])
    summary = {
        "tables": of_tables,
        "bytes": sizes,
        "load_s": load_seconds,
        "peak_bytes_after_load": load_peak,
        "peak_bytes": {name: worker.ask(do="memory")["bytes"] for name, worker in workers.items()},
        "speedup_geometric_mean": speedup,
        "total_ms": {side: sum(r["median_ms"][side] for r in results) for side in SIDES},
        "total_cpu_ms": {side: sum(r["median_cpu_ms"][side] for r in results) for side in SIDES},
    }
    for worker in workers.values():
        worker.end()
    print(f"\nsize    {sizes['entasis'] / 1e6:.0f} MB of {sizes['uncompressed'] / 1e6:.0f} MB: "
          f"{sizes['entasis'] / sizes['uncompressed'] * 100:.0f} %")
    print(f"load    {load_seconds['entasis']:.2f} s beside {load_seconds['uncompressed']:.2f} s: "
          f"{(load_seconds['entasis'] / load_seconds['uncompressed'] - 1) * 100:+.0f} %")
    print(f"queries {speedup:.2f}x as fast (geometric mean of 22)")
    return {"summary": summary, "results": results}


def cold(args, tables):
    """The same in files."""
    columns = {table: ", ".join(COLUMNS[table][1:]) for table in COLUMNS}
    changes = {name: [sql.format(**columns) for sql in statements] for name, statements in REFRESH.items()}
    return compression_cold.run(SIDES, tables, queries(), changes, args.threads, args.cold_rounds)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--scale", type=float, default=1)
    parser.add_argument("--parts", default="memory,cold")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--cold-rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--no-record", action="store_true")
    args = parser.parse_args()

    tables = tables_in(generate(args.scale))
    content = {"scale": args.scale, "threads": args.threads, "rounds": args.rounds}
    for name, part in [("memory", in_memory), ("cold", cold)]:
        if name in args.parts.split(","):
            content[name] = part(args, tables)
    if not args.no_record:
        keep("compression", f"compression-sf{args.scale:g}", content)


if __name__ == "__main__":
    main()
