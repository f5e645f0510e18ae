"""Functions of short texts and small lists, in nanoseconds a row, beside DuckDB.

    make bench-texts
    make bench-texts BEFORE=path/of/python       and beside the package of another build

Each function is evaluated for every row of a table in memory: `t` has texts of 8 to 25 bytes, some of them with
letters beyond ASCII, `l` lists of one to seven integers, and `w` lists of one to four words. One thread; engines
take turns; medians. What the query costs without the function, reading the column and summing, is shown first
and is part of all others.
"""

import argparse
import statistics

from engines import Worker, geometric_mean, keep

MAKE = """
CREATE TABLE x AS SELECT i,
    CASE WHEN i % 10 = 3 THEN 'Größe ' ELSE 'Item ' END || i * 7919 % 1000003 ||
        CASE WHEN i % 3 = 0 THEN ', north' ELSE '/a b' END AS t,
    CAST(i * 7919 % 1000003 AS VARCHAR) AS n,
    list_slice([i, i % 7, i % 5, 4, i % 3, 2, 1], 1, 1 + i % 7) AS l,
    list_slice(['w' || i, 'text ' || i % 1009, 'a', 'longer word'], 1, 1 + i % 4) AS w
FROM range({rows}) r(i)
"""

# The first of each kind only reads the column. Results are texts, numbers, booleans, or lists.
TEXTS = {
    "(column)": "t",
    "upper": "upper(t)",
    "lower": "lower(t)",
    "trim": "trim(t)",
    "reverse": "reverse(t)",
    "substring": "substring(t, 3, 6)",
    "left": "left(t, 5)",
    "right": "right(t, 5)",
    "lpad": "lpad(t, 24, '.')",
    "repeat": "repeat(t, 2)",
    "replace": "replace(t, ' ', '__')",
    "translate": "translate(t, 'aeo', 'xyz')",
    "concatenate": "t || '!' || n",
    "split_part": "split_part(t, ' ', 2)",
    "regexp_replace": "regexp_replace(t, '[0-9]+', '#')",
    "cast to text": "CAST(i AS VARCHAR)",
}
NUMBERS = {
    "length": "length(t)",
    "position": "position('/' IN t)",
    "ascii": "ascii(t)",
    "cast to number": "CAST(n AS BIGINT)",
    "levenshtein": "levenshtein(t, n)",
    "length of list": "len(l)",
    "position in list": "list_position(l, 4)",
    "element": "l[2]",
    "split": "len(string_split(t, ' '))",
    "concatenate lists": "len(list_concat(l, l))",
    "sort list": "list_sort(l)[1]",
    "distinct": "len(list_distinct(l))",
    "reverse list": "list_reverse(l)[1]",
    "join words": "length(array_to_string(w, ','))",
}
TESTS = {
    "LIKE 'a%'": "t LIKE 'Item 1%'",
    "LIKE '%a%'": "t LIKE '%north%'",
    "LIKE '%a%b_'": "t LIKE '%9%nort_'",
    "ILIKE": "t ILIKE '%NORTH%'",
    "starts_with": "starts_with(t, 'Item 1')",
    "contains": "contains(t, '99')",
    "regexp_matches": "regexp_matches(t, '9[0-4]+,')",
    "list_contains": "list_contains(w, 'a')",
}


def queries():
    for name, of in TEXTS.items():
        yield name, f"SELECT sum(length({of})) FROM x"
    for name, of in NUMBERS.items():
        yield name, f"SELECT sum({of}) FROM x"
    for name, of in TESTS.items():
        yield name, f"SELECT count(*) FROM x WHERE {of}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--before", help="directory of the Python package of another build")
    parser.add_argument("--no-record", action="store_true")
    args = parser.parse_args()
    workers = {"entasis": Worker("entasis", 1), "duckdb": Worker("duckdb", 1)}
    if args.before:
        workers["before"] = Worker("entasis", 1, args.before)
    for name, worker in workers.items():
        made = worker.ask(do="query", sql=MAKE.format(rows=args.rows))
        assert "error" not in made, f"{name}: {made['error']}"
    print(f"{'':20}" + "".join(f"{name:>12}" for name in workers) + f"{'ratios':>10}   (ns a row; ours by the others')")
    found = {}
    for name, sql in queries():
        times, errors, values = {engine: [] for engine in workers}, {}, {}
        for _ in range(args.rounds + 1):
            for engine, worker in workers.items():
                answer = worker.ask(do="query", sql=sql)
                if "error" in answer:
                    errors[engine] = answer["error"]
                else:
                    times[engine].append(answer["seconds"] * 1e9 / args.rows)
        for engine, worker in workers.items():
            values[engine] = worker.ask(do="value", sql=sql).get("value")
        medians = {engine: statistics.median(of[1:]) for engine, of in times.items() if len(of) > 1}
        found[name] = {"ns": medians, "values": values, "errors": errors}
        ratios = {e: medians["entasis"] / of for e, of in medians.items() if e != "entasis"} if "entasis" in medians else {}
        notes = "" if len(set(values.values())) == 1 else f"  other values: {values}"
        cells = "".join(f"{medians[engine]:12.1f}" if engine in medians else f"{'-':>12}" for engine in workers)
        print(f"{name:20}{cells}" + "".join(f"{ratio:10.2f}" for ratio in ratios.values()) + notes, flush=True)
    for other in [engine for engine in workers if engine != "entasis"]:
        ratios = [of["ns"]["entasis"] / of["ns"][other] for of in found.values() if {"entasis", other} <= set(of["ns"])]
        print(f"geometric mean beside {other}: {geometric_mean(ratios):.2f}")
    versions = {name: worker.version for name, worker in workers.items()}
    for worker in workers.values():
        worker.end()
    if not args.no_record:
        keep("texts", f"texts-{args.rows}", {"rows": args.rows, "rounds": args.rounds, "versions": versions, "functions": found})


if __name__ == "__main__":
    main()
