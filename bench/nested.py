"""Lists and structs: making, taking apart, searching, exporting and storing them, beside DuckDB.

    make bench-nested                1 M rows
    make bench-nested ROWS=3000000

Both engines hold the same rows in memory: a key, a list of up to seven integers, a list of up to three words,
and a struct of three fields. Statements take turns, five rounds, medians; their results are compared.
"""

import argparse
import json
import statistics
import time

import duckdb
from engines import keep

import entasis

MAKE = """
CREATE TABLE n AS SELECT i AS k, i % 1000 AS g,
    CASE WHEN i % 50 = 0 THEN NULL ELSE list_slice([i, i + 1, i + 2, i + 3, i * 7, i * 11, i * 13], 1, i % 8) END AS l,
    string_split('word' || i % 97 || ' text' || i % 1009 || ' a longer word', ' ') AS w,
    {'x': i, 'y': i / 8, 'z': 'name ' || i % 5003} AS s
FROM range({rows}) r(i)
"""

STATEMENTS = {
    "list by group": "SELECT g, len(list(k)) FROM n GROUP BY g ORDER BY g",
    "list of words by group": "SELECT g, len(list(w[1])) FROM n GROUP BY g ORDER BY g",
    "sum of elements": "SELECT sum(x), count(*) FROM (SELECT unnest(l) AS x FROM n) s",
    "words by count": "SELECT x, count(*) AS c FROM (SELECT unnest(w) AS x FROM n) s GROUP BY x ORDER BY c DESC, x LIMIT 10",
    "element": "SELECT sum(l[2]) FROM n",
    "length": "SELECT sum(len(l)) FROM n",
    "contains": "SELECT count(*) FROM n WHERE list_contains(w, 'word17')",
    "field": "SELECT sum(s.x), max(s.z) FROM n",
    "group by list": "SELECT count(*) FROM (SELECT w, count(*) AS c FROM n GROUP BY w) s",
    "equal": "SELECT count(*) FROM n WHERE w = ['word1', 'text1', 'a', 'longer', 'word']",
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--no-record", action="store_true")
    args = parser.parse_args()
    engines = {"entasis": entasis.connect(), "duckdb": duckdb.connect()}
    for con in engines.values():
        con.execute(MAKE.replace("{rows}", str(args.rows)))
    times = {}

    def measure(name, engine, work):
        began = time.perf_counter()
        result = work()
        times.setdefault(name, {}).setdefault(engine, []).append((time.perf_counter() - began) * 1000)
        return result

    for _ in range(args.rounds + 1):
        for name, sql in STATEMENTS.items():
            rows = [measure(name, engine, lambda: con.execute(sql).fetchall()) for engine, con in engines.items()]
            assert rows[0] == rows[1], f"{name}: {rows[0][:3]} and {rows[1][:3]}"
        for name, columns in {"lists to arrow": "l", "words to arrow": "w", "structs to arrow": "s"}.items():
            for engine, con in engines.items():
                sql = f"SELECT {columns} FROM n"
                rows = measure(name, engine, lambda: table_of(con.execute(sql)).num_rows)
                assert rows == args.rows
        for engine, con in engines.items():
            measure("lists to pandas", engine, lambda: con.execute("SELECT l, s FROM n").df())
    # The first round warms up.
    medians = {name: {engine: statistics.median(of[1:]) for engine, of in by.items()} for name, by in times.items()}
    print(f"{'':24}{'entasis':>12}{'duckdb':>12}{'ratio':>8}  (milliseconds)")
    for name, by in medians.items():
        print(f"{name:24}{by['entasis']:12.2f}{by['duckdb']:12.2f}{by['entasis'] / by['duckdb']:8.2f}")
    if not args.no_record:
        keep("nested", f"nested-{args.rows}", {"rows": args.rows, "milliseconds": medians})


def table_of(cursor):
    """The result as a table of Arrow."""
    return cursor.arrow() if not hasattr(cursor, "to_arrow_table") else cursor.to_arrow_table()


if __name__ == "__main__":
    main()
