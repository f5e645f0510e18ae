"""The questions of the h2o.ai database benchmark (db-benchmark) beside DuckDB and Polars: ten aggregations
and five joins, time and memory.

    make bench-h2o ROWS=10000000

The tables are generated here (h2o_data.py). As in that benchmark, an answer is stored: as a table in SQL,
as a data frame in Polars, in place of the answer before. After the rounds, the answers of the engines are
compared by their rows and by a sum. Aggregations and joins have processes of their own, so that the tables
of one do not count as memory of the other.
"""

import math

import h2o_data
from comparison import Comparison, command_line
from engines import ROOT, Worker, keep, load, tables_in

# Title, SQL, Polars, and a column of the answer whose sum is compared.
GROUPS = [
    (
        "1 sum by id1",
        "SELECT id1, sum(v1) AS v1 FROM x GROUP BY id1",
        'x.group_by("id1").agg(pl.sum("v1"))',
        "v1",
    ),
    (
        "2 sum by id1, id2",
        "SELECT id1, id2, sum(v1) AS v1 FROM x GROUP BY id1, id2",
        'x.group_by("id1", "id2").agg(pl.sum("v1"))',
        "v1",
    ),
    (
        "3 sum, mean by id3",
        "SELECT id3, sum(v1) AS v1, avg(v3) AS v3 FROM x GROUP BY id3",
        'x.group_by("id3").agg(pl.sum("v1"), pl.mean("v3"))',
        "v3",
    ),
    (
        "4 three means by id4",
        "SELECT id4, avg(v1) AS v1, avg(v2) AS v2, avg(v3) AS v3 FROM x GROUP BY id4",
        'x.group_by("id4").agg(pl.mean("v1", "v2", "v3"))',
        "v3",
    ),
    (
        "5 three sums by id6",
        "SELECT id6, sum(v1) AS v1, sum(v2) AS v2, sum(v3) AS v3 FROM x GROUP BY id6",
        'x.group_by("id6").agg(pl.sum("v1", "v2", "v3"))',
        "v3",
    ),
    (
        "6 median, deviation by id4, id5",
        "SELECT id4, id5, median(v3) AS m, stddev(v3) AS d FROM x GROUP BY id4, id5",
        'x.group_by("id4", "id5").agg(m=pl.median("v3"), d=pl.std("v3"))',
        "m",
    ),
    (
        "7 max - min by id3",
        "SELECT id3, max(v1) - min(v2) AS r FROM x GROUP BY id3",
        'x.group_by("id3").agg(r=pl.max("v1") - pl.min("v2"))',
        "r",
    ),
    (
        "8 largest two by id6",
        "SELECT id6, v3 FROM (SELECT id6, v3, row_number() OVER (PARTITION BY id6 ORDER BY v3 DESC) AS place"
        " FROM x WHERE v3 IS NOT NULL) t WHERE place <= 2",
        'x.drop_nulls("v3").group_by("id6").agg(pl.col("v3").top_k(2)).explode("v3")',
        "v3",
    ),
    (
        "9 correlation by id2, id4",
        "SELECT id2, id4, pow(corr(v1, v2), 2) AS r2 FROM x GROUP BY id2, id4",
        'x.group_by("id2", "id4").agg(r2=pl.corr("v1", "v2") ** 2)',
        "r2",
    ),
    (
        "10 sum, count by six",
        "SELECT id1, id2, id3, id4, id5, id6, sum(v3) AS v3, count(*) AS n FROM x"
        " GROUP BY id1, id2, id3, id4, id5, id6",
        'x.group_by("id1", "id2", "id3", "id4", "id5", "id6").agg(pl.sum("v3"), n=pl.len())',
        "v3",
    ),
]
JOINS = [
    (
        "1 small, by number",
        "SELECT x.*, small.id4 AS small_id4, v2 FROM x JOIN small USING (id1)",
        'x.join(small, on="id1")',
        "v2",
    ),
    (
        "2 medium, by number",
        "SELECT x.*, medium.id1 AS medium_id1, medium.id4 AS medium_id4, medium.id5 AS medium_id5, v2"
        " FROM x JOIN medium USING (id2)",
        'x.join(medium, on="id2")',
        "v2",
    ),
    (
        "3 medium, by number, left",
        "SELECT x.*, medium.id1 AS medium_id1, medium.id4 AS medium_id4, medium.id5 AS medium_id5, v2"
        " FROM x LEFT JOIN medium USING (id2)",
        'x.join(medium, on="id2", how="left")',
        "v2",
    ),
    (
        "4 medium, by text",
        "SELECT x.*, medium.id1 AS medium_id1, medium.id2 AS medium_id2, medium.id4 AS medium_id4, v2"
        " FROM x JOIN medium USING (id5)",
        'x.join(medium, on="id5")',
        "v2",
    ),
    (
        "5 big, by number",
        "SELECT x.*, big.id1 AS big_id1, big.id2 AS big_id2, big.id4 AS big_id4, big.id5 AS big_id5,"
        " big.id6 AS big_id6, v2 FROM x JOIN big USING (id3)",
        'x.join(big, on="id3")',
        "v2",
    ),
]


def texts(names, sql, polars):
    stored = f"CREATE OR REPLACE TABLE answer AS ({sql})"
    frame = f"(answer := {polars}.collect()).lazy().select(pl.len())"
    return {name: frame if name == "polars" else stored for name in names}


def difference(workers, column):
    """How the stored answers differ in their rows or in the sum of a column; None if they do not."""
    counts, sums = {}, {}
    for name, worker in workers.items():
        count, total = "SELECT count(*) FROM answer", f"SELECT CAST(sum({column}) AS DOUBLE) FROM answer"
        if name == "polars":
            count = "answer.lazy().select(pl.len())"
            total = f'answer.lazy().select(pl.sum("{column}").cast(pl.Float64))'
        counts[name], sums[name] = (worker.ask(do="value", sql=sql).get("value") for sql in (count, total))
    if None in counts.values() or len(set(counts.values())) > 1:
        return f"rows of the answers: {counts}"
    first, *others = (float(value) for value in sums.values())
    alike = all(math.isclose(first, other, rel_tol=1e-6) for other in others)
    return None if alike else f"sums of {column}: {sums}"


def part(title, questions, tables, args):
    """Measures the questions of one part. Returns its record."""
    workers = {name: Worker(name, args.threads) for name in args.engines.split(",")}
    seconds, peaks = load(workers, tables)
    comparison = Comparison(workers, args.rounds)
    comparison.heading(title)
    for question, sql, polars, column in questions:
        comparison.measure(question, texts(workers, sql, polars), check=lambda: difference(workers, column))
    comparison.conclude()
    print()
    record = {"versions": comparison.versions(), "load_s": seconds, "load_peak_bytes": peaks}
    for worker in workers.values():
        worker.end()
    return record | {"questions": comparison.results}


def main():
    args = command_line(__doc__).parse_args()
    files = tables_in(h2o_data.generate(args.rows, ROOT / "bench" / "data" / f"h2o-{args.rows}"))
    head = {"rows": args.rows, "threads": args.threads, "rounds": args.rounds}
    groups = part("group by", GROUPS, {"x": files["groups"]}, args)
    sides = {"x": files["left"]} | {name: files[name] for name in ("small", "medium", "big")}
    joins = part("join", JOINS, sides, args)
    if not args.no_record:
        keep("h2o", f"h2o-{args.rows}", head | {"groups": groups, "joins": joins})


if __name__ == "__main__":
    main()
