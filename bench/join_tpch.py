"""Every join of the TPC-H queries with every kind of join table, and the queries compared with DuckDB.

    make bench-join-tpch SF=1

The experiment of Bandle et al., *To Partition, or Not to Partition*, section 5.3 (Figures 1 and 12), in
memory. Whole queries are run with one table for all their joins. Then each join gets each table in turn while
all others keep the choice of `auto` (`SET join_table = 'auto, 3=cht'`), and its own time is that in EXPLAIN
ANALYZE: keeping rows, building the table and probing, summed over all workers. A join whose keys do not allow
a table has no figure for it. Tables take turns in each round; figures are medians. A join counts if it takes
more than a hundredth of its query and kept rows.

The record has for each join the rows of both sides and its milliseconds with each table, and for each query
those of the whole statement. In the SVG a join is a point at its rows, and the colour shows which table was
fastest, or that `auto` chose it or was within 10 % of it.
"""

import argparse
import os
import statistics

from engines import ROOT, TABLES as RELATIONS, generate, geometric_mean, keep
from joins import Engine, in_turn, joins_of, known_tables, profiled
from plot import chart, figure

TABLES = ["auto", "array", "ranked", "cat", "cht", "chained", "unchained", "radix", "bloom_radix"]
GOAL = 1.1


def query(number):
    return (ROOT / "tests/tpch/queries" / f"q{number:02}.sql").read_text().strip().rstrip(";")


def measure(number, tables, rounds, engines):
    """Milliseconds of a query with each table, and of its joins with each table for one of them."""
    sql, own = query(number), engines["entasis"]
    own.run("SET join_table = 'auto'")
    numbers = [join["number"] for join in joins_of(profiled(own, sql))]
    if not numbers:
        return {"query": number, "ms": {}, "joins": []}
    times = {side: [] for side in [*tables, "duckdb"]}
    # The joins with a given table; empty: every join chooses.
    forced = [(None, "auto")] + [(join, table) for join in numbers for table in tables if table != "auto"]
    found = {key: [] for key in forced}
    row_counts = set()
    for turn in range(rounds + 1):
        for side in in_turn(times, turn):
            if side != "duckdb":
                own.run(f"SET join_table = '{side}'")
            answer = engines["duckdb" if side == "duckdb" else "entasis"].run(sql)
            row_counts.add(answer["count"])
            if turn > 0:
                times[side].append(answer["seconds"] * 1000)
        for key in in_turn(forced, turn):
            own.run(f"SET join_table = 'auto{f', {key[0]}={key[1]}' if key[0] else ''}'")
            joins = {join["number"]: join for join in joins_of(profiled(own, sql))}
            if list(joins) != numbers:
                raise SystemExit(f"Q{number}: plans differ by table")
            if turn > 0:
                found[key].append(joins)
    if len(row_counts) > 1:
        raise SystemExit(f"Q{number}: row counts differ: {row_counts}")
    results = []
    for place, join in found[None, "auto"][0].items():
        taken = {t: [j[place] for j in found[(None if t == "auto" else place), t]] for t in tables}
        ms = {t: statistics.median(j["ns"] for j in took) / 1e6 for t, took in taken.items() if took[0]["possible"]}
        facts = {fact: join[fact] for fact in ("title", "kept_rows", "probe_rows", "rows")}
        first = {table: taken[table][0] for table in ms}
        facts["bytes"] = {table: one["table_bytes"] + one["rows_bytes"] for table, one in first.items()}
        facts["tables"] = {table: one["table"] for table, one in first.items()}
        results.append({"join": f"Q{number}-J{place}", "ms": ms} | facts)
    return {"query": number, "ms": {side: statistics.median(taken) for side, taken in times.items()}, "joins": results}


def fastest(join):
    """The fastest table other than auto, and the ratio of auto's time to its; 1 if auto chose this table."""
    others = {table: ms for table, ms in join["ms"].items() if table != "auto"}
    table = min(others, key=others.get)
    same = join["tables"]["auto"] == join["tables"][table]
    return table, 1.0 if same else join["ms"]["auto"] / others[table]


def counts(result, join):
    """True if a join takes long enough to be distinguished from noise."""
    workers = os.cpu_count()
    return join["kept_rows"] > 0 and len(join["ms"]) > 1 and join["ms"]["auto"] > workers * result["ms"]["auto"] / 100


def plots(results, path):
    joins = [join for result in results for join in result["joins"] if counts(result, join)]
    by_table = {}
    for join in joins:
        table, ratio = fastest(join)
        by_table.setdefault("auto" if ratio <= GOAL else table, []).append((join["kept_rows"], max(join["probe_rows"], 1)))
    sides = list(results[0]["ms"])
    relative = {s: [(r["query"], r["ms"][s] / r["ms"]["auto"]) for r in results] for s in sides if s != "auto"}
    figure(path, "Joins of TPC-H: the table that was fastest, and whole queries", [
        chart("joins, by the fastest table", "kept rows", "probe rows", by_table, "xy", scatter=True),
        chart("queries, as parts of auto's time", "query", "time / auto", relative, scatter=True),
    ], columns=2)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--scale", type=float, default=1)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--tables", default=",".join(TABLES), help="those of these that there are")
    parser.add_argument("--no-record", action="store_true")
    args = parser.parse_args()

    data = generate(args.scale)
    tables = known_tables(args.tables.split(","), args.threads)
    engines = {name: Engine(name, args.threads) for name in ("entasis", "duckdb")}
    for engine in engines.values():
        for relation in RELATIONS:
            engine.run(f"CREATE TABLE {relation} AS SELECT * FROM '{data / relation}.parquet'")
    results = []
    sides = [*tables, "duckdb"]
    print("ms".ljust(10) + "".join(f"{side:>11}" for side in sides))
    for number in range(1, 23):
        result = measure(number, tables, args.rounds, engines)
        if not result["joins"]:
            continue
        results.append(result)
        print(f"Q{number}".ljust(10) + "".join(f"{result['ms'][side]:11.1f}" for side in sides), flush=True)
        for join in result["joins"]:
            if counts(result, join):
                line = "".join(f"{join['ms'][t]:11.1f}" if t in join["ms"] else f"{'-':>11}" for t in tables)
                print(f"  {join['join']:8}{line}  {join['kept_rows']:,} : {join['probe_rows']:,}, {join['tables']['auto']}", flush=True)
    for engine in engines.values():
        engine.end()

    means = {side: geometric_mean([r["ms"][side] / r["ms"]["auto"] for r in results]) for side in sides}
    print("time/auto".ljust(10) + "".join(f"{means[side]:11.2f}" for side in sides))
    ratios = [fastest(join)[1] for result in results for join in result["joins"] if counts(result, join)]
    good = sum(ratio <= GOAL for ratio in ratios)
    print(f"auto is within 10 % of the best table in {good} of {len(ratios)} joins ({good / max(len(ratios), 1):.0%})")
    if not args.no_record:
        content = {"scale": args.scale, "threads": args.threads, "rounds": args.rounds, "tables": tables,
                   "time_over_auto_geometric_mean": means, "queries": results}
        plots(results, keep("join-tpch", f"join-tpch-sf{args.scale:g}", content).with_suffix(".svg"))


if __name__ == "__main__":
    main()
