"""Thirty queries with many joins over a database like IMDB (imdb_data.py, imdb.sql), or TPC-H or TPC-DS:
strategies of chunk compaction, DuckDB and Hyper, in turns.

    make bench-imdb IMDB=0.1 THREADS=1
    make bench-imdb IMDB=0.1 SKEW=0.5       # longer or shorter chains in joins
    make bench-imdb QUERIES=tpcds SF=1 THREADS=2

One thread, as in the paper's section 7, unless `--threads` says otherwise. Medians in milliseconds; a star is
the best strategy. Before the times it prints the figures of the paper's Table 1: rows per chunk that leaves a
join, and chunks. The mean over all chunks is that of the joins with most chunks, whose chains are the longest;
the mean over joins takes each join's own. The paper's is one of the two.
"""

import argparse
import json
import statistics

import engines
import imdb_data
from engines import ROOT, Worker, alternate, geometric_mean, keep, load, tables_in

STRATEGIES = ["none", "full", "binary", "dynamic", "learning", "logical", "smart", "auto"]


def contents(queries, scale, skew):
    """The directory of the tables, and the queries by name."""
    if queries == "imdb":
        lines = (ROOT / "bench" / "imdb.sql").read_text().splitlines()
        data = imdb_data.generate(scale, ROOT / "bench" / "data" / f"imdb-{scale:g}{of_skew(skew)}", skew)
        return data, dict(line.split(": ", 1) for line in lines if not line.startswith("--"))
    if queries == "tpch":
        data, texts = engines.generate(scale), ROOT / "tests" / "tpch" / "queries"
    else:
        data = ROOT / "bench" / "data" / f"tpcds-sf{scale:g}"
        data, texts = data / "tables", data / "queries"
    return data, {path.stem: path.read_text().strip().rstrip(";") for path in sorted(texts.glob("q*.sql"))}


def of_skew(skew):
    """What the names of data and records say of it."""
    return "" if skew == 1 else f"-skew-{skew:g}"


class Strategies:
    """One process of ours that runs each query under a strategy; `alternate` treats it as several engines."""

    def __init__(self, worker, strategy):
        self.worker, self.strategy = worker, strategy

    def ask(self, **command):
        answer = self.worker.ask(do="query", sql=f"SET compaction = '{self.strategy}'")
        return answer if "error" in answer else self.worker.ask(**command)


def chunks_of_joins(threads, data, queries):
    """Rows and chunks that leave each join, from EXPLAIN ANALYZE without join filters."""
    import entasis

    connection = entasis.connect(threads=threads)
    for table, path in tables_in(data).items():
        connection.execute(f"CREATE TABLE {table} AS SELECT * FROM '{path}'")
    connection.execute("SET compaction = 'none'")
    connection.execute("SET join_filter = 'off'")
    joins = []
    for sql in queries.values():
        [(text,)] = connection.execute("EXPLAIN (ANALYZE, FORMAT json) " + sql).fetchall()
        left = [json.loads(text)["plan"]]
        while left:
            node = left.pop()
            left += node["children"]
            if "Join" in node["operator"]:
                joins.append((node["rows"], node["chunks"]))
    return joins


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--queries", default="imdb", choices=["imdb", "tpch", "tpcds"])
    parser.add_argument("--scale", type=float, default=0.1)
    parser.add_argument("--skew", type=float, default=1.0, help="of fan-outs (imdb_data.py); less gives larger chunks")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rivals", default="duckdb,hyper")
    arguments = parser.parse_args()
    data, queries = contents(arguments.queries, arguments.scale, arguments.skew)
    joins = chunks_of_joins(arguments.threads, data, queries)
    rows, chunks = (sum(column) for column in zip(*joins))
    over_joins = statistics.mean(rows / chunks for rows, chunks in joins if chunks)
    print(f"{len(joins)} joins give {chunks} chunks of {rows / max(1, chunks):.1f} rows, and {over_joins:.1f} as the mean over joins (paper: 54), without join filters and compaction")
    own = Worker("entasis", arguments.threads)
    rivals = {name: Worker(name, arguments.threads) for name in arguments.rivals.split(",") if name}
    load({"entasis": own, **rivals}, tables_in(data))
    sides = {strategy: Strategies(own, strategy) for strategy in STRATEGIES} | rivals
    print(f"{'':8}" + "".join(f"{side:>10}" for side in sides))
    content, totals = {}, {side: [] for side in sides}
    for name, sql in queries.items():
        times, _, errors = alternate(sides, sql, arguments.rounds)
        medians = {side: statistics.median(times[side]) if times[side] else None for side in sides}
        best = min(medians[strategy] for strategy in STRATEGIES if medians[strategy])
        cells = (f"{'—' if time is None else f'{time:.1f}' + ('*' if time == best else ' ')!s:>10}" for time in medians.values())
        print(f"{name:8}" + "".join(cells) + (f"  {errors}" if errors else ""), flush=True)
        content[name] = medians | ({"errors": errors} if errors else {})
        for side, time in medians.items():
            totals[side].append(time)
    sums = {side: sum(time for time in times if time) for side, times in totals.items()}
    print(f"{'total':8}" + "".join(f"{total:10.0f}" for total in sums.values()))
    means = {side: geometric_mean([a / b for a, b in zip(totals["auto"], times) if a and b]) for side, times in totals.items()}
    print(f"{'auto to':8}" + "".join(f"{mean:10.2f}" for mean in means.values()) + "  (geometric mean)")
    head = {"scale": arguments.scale, "threads": arguments.threads, "rounds": arguments.rounds, "chunks of joins": chunks, "rows of joins": rows, "rows a chunk": round(rows / max(1, chunks), 1), "rows a chunk, mean over joins": round(over_joins, 1)}
    head |= {"skew": arguments.skew} if arguments.queries == "imdb" else {}
    keep(f"strategies of compaction, {arguments.queries}", f"strategies-{arguments.queries}-{arguments.scale:g}{of_skew(arguments.skew)}-{arguments.threads}-threads", head | {"queries": content, "totals": sums})
    own.end()
    [rival.end() for rival in rivals.values()]


if __name__ == "__main__":
    main()
