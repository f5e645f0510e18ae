"""Every join of the TPC-H queries with every table, and the queries beside DuckDB.

    make bench-join-tpch SF=1

The experiment of Bandle et al., *To Partition, or Not to Partition*, section 5.3 (Figures 1 and 12), in memory. All joins of a query
get the same table; those whose keys do not allow it keep what `auto` takes. Plans do not depend on tables, so a join is told by its
place in the plan, from the top, and its own time by EXPLAIN ANALYZE: keeping rows, the table, probing, of all workers together.
Tables take turns in each round; figures are medians. A join counts if it takes more than a hundredth of its query and kept rows.

The record has for each join the rows of both sides and its milliseconds with each table, for each query those of the whole
statement. In the SVG a join is a point at its rows, and the colour says which table was fastest, or that `auto` took
it or was within 10 % of it.
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
    """Milliseconds of a query and of its joins, by table."""
    sql, own = query(number), engines["entasis"]
    times = {side: [] for side in [*tables, "duckdb"]}
    profiles = {table: [] for table in tables}
    row_counts = set()
    for turn in range(rounds + 1):
        for side in in_turn(times, turn):
            if side != "duckdb":
                own.run(f"SET join_table = '{side}'")
            answer = engines["duckdb" if side == "duckdb" else "entasis"].run(sql)
            row_counts.add(answer["count"])
            if turn > 0:
                times[side].append(answer["seconds"] * 1000)
                if side != "duckdb":
                    profiles[side].append(joins_of(profiled(own, sql)))
    if len(row_counts) > 1:
        raise SystemExit(f"Q{number}: row counts differ: {row_counts}")
    joins = []
    for place, join in enumerate(profiles["auto"][0]):
        taken = {table: [found[place] for found in profiles[table]] for table in tables}
        if any(other["title"] != join["title"] for found in taken.values() for other in found):
            raise SystemExit(f"Q{number}: plans differ by table")
        ms = {t: statistics.median(j["ns"] for j in found) / 1e6 for t, found in taken.items() if found[0]["possible"]}
        facts = {fact: join[fact] for fact in ("title", "kept_rows", "probe_rows", "rows")}
        first = {table: taken[table][0] for table in ms}
        facts["bytes"] = {table: found["table_bytes"] + found["rows_bytes"] for table, found in first.items()}
        facts["tables"] = {table: found["table"] for table, found in first.items()}
        joins.append({"join": f"Q{number}-J{place + 1}", "ms": ms} | facts)
    return {"query": number, "ms": {side: statistics.median(taken) for side, taken in times.items()}, "joins": joins}


def fastest(join):
    """The fastest table but auto, and how much longer auto takes; 1 if it took just this table."""
    others = {table: ms for table, ms in join["ms"].items() if table != "auto"}
    table = min(others, key=others.get)
    same = join["tables"]["auto"] == join["tables"][table]
    return table, 1.0 if same else join["ms"]["auto"] / others[table]


def counts(result, join):
    """True if a join takes long enough to be told from noise."""
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
