"""How far estimates of rows are off: the q-error of every join and every scan, beside DuckDB's.

    make bench-estimates SF=1 IMDB=0.1 OF=tpch,tpcds,imdb

The q-error of an operator is the larger of expected and true rows, divided by the smaller; neither counts
as less than one row. Both numbers are those of EXPLAIN ANALYZE, which names them in either engine. Each
engine's own plans count, so the two are not estimates of the same joins. Join filters are off in both,
because what they remove before a join is not what a scan was expected to give; in DuckDB a filter right
above a scan is part of the scan, as it is in ours. An operator that LIMIT stopped early counts with the
rows that it had given by then.

Printed are the median, the 90th and 95th percentiles and the maximum, the median by the number of joins in
the operator's input (as errors multiply from join to join), and the worst ten operators.
"""

import argparse
import json
import os
import statistics

from engines import keep, tables_in
from imdb import contents

PERCENTILES = (50, 90, 95, 100)
WORST = 10


# ---- operators: kind, text, expected and true rows, joins up to and including it --------------------------


def operator(kind, text, expected, true, joins):
    error = max(expected, true, 1) / max(1, min(expected, true))
    rows = {"expected": expected, "true": true, "q_error": error}
    return {"kind": kind, "operator": text, "joins": joins} | rows


def kind_of(name):
    lowered = name.lower()
    if "delim_join" in lowered:
        return "other"  # It only surrounds a join and a scan of its input, which count by themselves.
    if "join" in lowered or "cross" in lowered:
        return "join"
    return "scan" if "scan" in lowered and "delim" not in lowered and "cte" not in lowered else "other"


def own_operators(node):
    """The operators below and including a node of our JSON. Returns them, and the number of joins."""
    text = node["operator"]
    kind = kind_of(text.split()[0])
    found, joins = [], int(kind == "join")
    for child in node["children"]:
        below, count = own_operators(child)
        found, joins = found + below, joins + count
    if kind != "other":
        found.insert(0, operator(kind, text, int(node["expected_rows"]), node["rows"], joins))
    return found, joins


def duckdb_operators(node):
    """The operators below and including a node of DuckDB's JSON. Returns them, and the number of joins."""
    children = node.get("children", [])
    name, info = node.get("type", ""), node.get("extra_info", {})
    kind = kind_of(name)
    if name == "FILTER" and len(children) == 1 and kind_of(children[0]["type"]) == "scan":
        kind, details, children = "scan", {**children[0]["extra_info"], **info}, []
    else:
        details = info
    found, joins = [], int(kind == "join")
    for child in children:
        below, count = duckdb_operators(child)
        found, joins = found + below, joins + count
    if kind != "other" and "Estimated Cardinality" in info:
        shown = (details[key] for key in ("Join Type", "Conditions", "Table", "Filters") if key in details)
        text, expected = " ".join([name, *map(str, shown)]), int(info["Estimated Cardinality"])
        found.insert(0, operator(kind, text, expected, node["intermediate_rows"], joins))
    return found, joins


# ---- engines ----------------------------------------------------------------------------------------------


def own(threads):
    """A function that loads a table and one that returns a query's operators, and the version."""
    import entasis

    connection = entasis.connect(threads=threads)
    connection.execute("SET join_filter = 'off'")

    def explain(sql):
        [(text,)] = connection.execute("EXPLAIN (ANALYZE, FORMAT json) " + sql).fetchall()
        found, _ = own_operators(json.loads(text)["plan"])
        tables = set(connection.tables())
        # Scans of shared subqueries are not scans of tables.
        return [one for one in found if one["kind"] == "join" or one["operator"].split()[1] in tables]

    return connection.execute, explain, entasis.__version__


def duckdbs(threads):
    import duckdb

    connection = duckdb.connect(config={"threads": threads})
    connection.execute("SET disabled_optimizers = 'join_filter_pushdown'")

    def explain(sql):
        text = connection.execute("EXPLAIN (ANALYZE, FORMAT json) " + sql).fetchall()[0][1]
        return [found for root in json.loads(text)["operator"] for found in duckdb_operators(root)[0]]

    return connection.execute, explain, duckdb.__version__


ENGINES = {"entasis": own, "duckdb": duckdbs}


# ---- figures ----------------------------------------------------------------------------------------------


def percentile(values, share):
    """The value that `share` percent of the sorted values do not exceed."""
    return values[max(0, -(-len(values) * share // 100) - 1)]


def summary(operators, kind):
    """The figures of the operators of a kind."""
    errors = sorted(found["q_error"] for found in operators if found["kind"] == kind)
    if not errors:
        return {"count": 0}
    by_joins = {}
    for found in operators:
        if found["kind"] == kind:
            by_joins.setdefault(min(found["joins"], 6), []).append(found["q_error"])
    return {
        "count": len(errors),
        "too_low": sum(found["kind"] == kind and found["expected"] < found["true"] for found in operators),
        "percentiles": {share: percentile(errors, share) for share in PERCENTILES},
        "median_by_joins": {joins: statistics.median(those) for joins, those in sorted(by_joins.items())},
    }


def worst(operators, kind):
    those = (found for found in operators if found["kind"] == kind)
    return sorted(those, key=lambda found: -found["q_error"])[:WORST]


def report(title, operators):
    """Prints the figures of an engine over a set of queries. Returns them."""
    figures = {}
    for kind in ("join", "scan"):
        figures[kind] = summary(operators, kind) | {"worst": worst(operators, kind)}
        if not figures[kind]["count"]:
            continue
        shares = "".join(f"{value:12.2f}" for value in figures[kind]["percentiles"].values())
        print(f"{title + ', ' + kind + 's':24}{figures[kind]['count']:7}{figures[kind]['too_low']:9}{shares}")
    medians = figures["join"].get("median_by_joins", {})
    print("    median by joins: " + ", ".join(f"{joins}: {median:.2f}" for joins, median in medians.items()))
    for kind in ("join", "scan"):
        for found in figures[kind]["worst"]:
            rows = f"{found['expected']} for {found['true']}"
            line = f"{found['q_error']:10.1f}  {found['query']}: {rows}, {found['operator']}"
            print("    " + line[:200], flush=True)
    return figures


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--of", default="tpch,tpcds,imdb")
    parser.add_argument("--scale", type=float, default=1)
    parser.add_argument("--imdb", type=float, default=0.1, help="the scale of the tables like IMDB's")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--engines", default="entasis,duckdb")
    parser.add_argument("--no-record", action="store_true")
    args = parser.parse_args()
    content, versions = {}, {}
    heads = "".join(f"{'max' if share == 100 else f'{share} %':>12}" for share in PERCENTILES)
    print(f"{'q-error':24}{'number':>7}{'too low':>9}{heads}")
    for name in args.of.split(","):
        data, queries = contents(name, args.imdb if name == "imdb" else args.scale)
        for engine in args.engines.split(","):
            execute, explain, versions[engine] = ENGINES[engine](args.threads)
            for table, path in tables_in(data).items():
                execute(f"CREATE TABLE {table} AS SELECT * FROM '{path}'")
            operators, errors = [], {}
            for query, sql in queries.items():
                try:
                    operators += [{"query": query} | found for found in explain(sql)]
                except Exception as error:  # only this query is missing, not the run
                    errors[query] = f"{type(error).__name__}: {error}"
            content[f"{name} {engine}"] = report(f"{name}, {engine}", operators) | {"errors": errors}
            for query, error in errors.items():
                print(f"    ! {query}: {error[:100]}")
    if not args.no_record:
        head = {"scale": args.scale, "imdb": args.imdb, "threads": args.threads, "versions": versions}
        keep("estimates", "estimates", head | {"figures": content})


if __name__ == "__main__":
    main()
