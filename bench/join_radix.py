"""Joins that vary what decides for or against partitioning: Entasis with each kind of table, and DuckDB.

    make bench-join-radix SCALE=0.125

The experiments of Bandle et al., *To Partition, or Not to Partition*, sections 5.2 and 5.4. Workload A has 16
* 2^20 build rows and 256 * 2^20 probe rows, with keys and payloads of 8 bytes each, workload B 128,000,000 of
both with 4 bytes each; SCALE is the fraction of these rows that is used. Keys have no gaps;
or with --far one of 256 neighbouring values is a key, so that only tables by hash are possible. The build
side is in random order; every probe row finds its key.

- workloads: A and B, `count(*)`
- hits: 0 to 100 % of A's probe rows find a key, which is one of two values; `sum` of a column of the
  probe side
- payload: 1 to 8 columns of 8 bytes in A's probe side, each summed
- depth: 1 to 8 joins of A's probe side, a quarter of its rows, with a build side each, whose payload is
  summed
- skew: Zipf 0 to 2, in A and in B
- ratio: A's probe side with build sides of 1/1 to 1/4096 of its rows

The figure is rows of both sides per second, in millions. Engines and tables take turns in each round; times
are medians. If the query reads no column of the build side, `auto` may choose a bitmap. Finally the cells are
counted in which `auto` chose the fastest table, or was at most 10 % slower. Record and SVG as in `make
bench-join-memory`.
"""

import argparse
import os
from functools import partial

from joins import Cell, build_rows, keep_parts, known_tables, measure, probe_rows, series, short
from plot import chart, figure

TABLES = ["auto", "array", "ranked", "cat", "cht", "chained", "unchained", "radix", "bloom_radix"]
PARTS = ["workloads", "hits", "payload", "depth", "skew", "ratio"]
GOAL = 1.1
# Values per key with --far: more than a table of places allows.
FAR = 256


def cell(name, x, n, rows, sums=("count(*)",), spread=1, joins=1, integer="BIGINT", payload=1, **probe):
    """A join of `rows` rows with n keys, or a few such joins; x is its position in a chart."""
    clauses = " ".join(f"JOIN b{j + 1} ON p.k{j + 1} = b{j + 1}.k" for j in range(joins))
    return Cell(
        name, build_rows(n, spread, 1, integer),
        lambda rows: probe_rows(rows, n, spread, keys=joins, payload=payload, integer=integer, **probe),
        f"SELECT {', '.join(sums)} FROM {{p}} p {clauses}", rows, builds=joins, split=False,
        x=x, keys=n, joins=joins, payload=payload, draw=probe,
    )


def cells(part, scale, spread):
    n, rows = int(16 * 2**20 * scale), int(256 * 2**20 * scale)
    equal = int(128_000_000 * scale)
    own = ("sum(w1)",)
    in_a = partial(cell, spread=spread)
    in_b = partial(cell, spread=spread, integer="INTEGER" if equal * spread < 2**31 else "BIGINT")
    if part == "workloads":
        return [in_a("A", 0, n, rows), in_b("B", 1, equal, equal)]
    if part == "hits":
        return [cell(f"{h} % match", h, n, rows, own, spread=max(spread, 2), hits=h) for h in (0, 5, 25, 50, 75, 100)]
    if part == "payload":
        sums = [tuple(f"sum(w{i + 1})" for i in range(columns)) for columns in (1, 2, 4, 8)]
        return [in_a(f"{8 * len(s)} bytes", 8 * len(s), n, rows // 4, s, payload=len(s)) for s in sums]
    if part == "depth":
        sums = [tuple(f"sum(b{i + 1}.v1)" for i in range(joins)) for joins in (1, 2, 4, 8)]
        return [in_a(f"{len(s)} joins", len(s), n, rows // 4, s, joins=len(s), payload=0) for s in sums]
    if part == "skew":
        factors = (0, 0.5, 1, 1.5, 2)
        skewed = [in_a(f"A, Zipf {z}", z, n, rows, skew=z) for z in factors]
        return skewed + [in_b(f"B, Zipf {z}", z, equal, equal, skew=z) for z in factors]
    ratios = (1, 4, 16, 64, 256, 1024, 4096)
    return [in_a(f"1 : {ratio}", ratio, rows // 4 // ratio, rows // 4, own) for ratio in ratios]


def is_possible(side):
    """False if another table was used, because keys are too far from each other for this one."""
    return all(join["possible"] for join in side.get("joins", []))


def throughput(result, side):
    """Millions of rows per second; None for a table that is not possible."""
    if not is_possible(side):
        return None
    return (result["joins"] * result["keys"] + result["probe_rows"]) / side["seconds"] / 1e6


def best(result):
    """The fastest possible table other than auto, and the ratio of auto's time to its; 1 if auto chose it."""
    sides = result["sides"]
    tables = [s for s in sides if s not in ("auto", "duckdb") and is_possible(sides[s])]
    fastest = min(tables, key=lambda s: sides[s]["seconds"])
    taken = lambda side: [join["table"] for join in sides[side]["joins"]]
    return fastest, 1.0 if taken("auto") == taken(fastest) else sides["auto"]["seconds"] / sides[fastest]["seconds"]


def show(result):
    reached = [throughput(result, figures) for figures in result["sides"].values()]
    line = "".join(" " * 11 if figure is None else f"{figure:11.0f}" for figure in reached)
    fastest, ratio = best(result)
    taken = ", ".join(dict.fromkeys(join["table"] for join in result["sides"]["auto"]["joins"]))
    print(f"{result['name']:21}{line}  {taken}; {ratio:.2f} of {fastest}", flush=True)


def plots(parts, path):
    part = lambda name: parts.get(name, [])
    at = lambda r: r["x"]
    of = lambda letter: [r for r in part("skew") if r["name"].startswith(letter)]
    head = "M rows / s"
    figure(path, "Joins by workload: rows of both sides a second", [
        chart("workloads A and B", "A, B", head, series(part("workloads"), at, throughput), scatter=True),
        chart("hits (A)", "% of the rows match", head, series(part("hits"), at, throughput)),
        chart("payload (A)", "bytes", head, series(part("payload"), at, throughput)),
        chart("depth (A): rows of all joins", "joins", head, series(part("depth"), at, throughput)),
        chart("skew (A)", "Zipf factor", head, series(of("A"), at, throughput)),
        chart("skew (B)", "Zipf factor", head, series(of("B"), at, throughput)),
        chart("ratio (A)", "probe rows a build row", head, series(part("ratio"), at, throughput), "x"),
    ])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--scale", type=float, default=0.125)
    parser.add_argument("--far", action="store_true", help="keys that are far from each other")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--parts", default=",".join(PARTS), help="only these")
    parser.add_argument("--tables", default=",".join(TABLES), help="those of these that there are")
    parser.add_argument("--no-record", action="store_true")
    args = parser.parse_args()

    tables = known_tables(args.tables.split(","), args.threads)
    parts = {}
    for part in args.parts.split(","):
        print(f"\n{part + ', M rows/s':21}" + "".join(f"{side:>11}" for side in [*tables, "duckdb"]), flush=True)
        parts[part] = []
        for one in cells(part, args.scale, FAR if args.far else 1):
            parts[part].append(measure(one, tables, args.rounds, args.threads))
            show(parts[part][-1])
    if not args.no_record:
        how = {"scale": args.scale, "far": args.far, "threads": args.threads, "rounds": args.rounds, "tables": tables}
        path, parts = keep_parts("join-radix", f"join-radix-{args.scale:g}{'-far' * args.far}", how, parts)
        plots(parts, path.with_suffix(".svg"))
    ratios = [best(result)[1] for results in parts.values() for result in results]
    good = sum(ratio <= GOAL for ratio in ratios)
    print(f"\nauto is within 10 % of the best table in {good} of {len(ratios)} cells ({good / len(ratios):.0%}, goal 95 %)")


if __name__ == "__main__":
    main()
