"""Joins by table and size: time, bytes of the table, memory; Entasis with each kind of table, and DuckDB.

    make bench-join-memory ROWS=100000000

The experiments of Barber et al., *Memory-Efficient Hash Joins*, section 4 and Table 1: n keys of 8 bytes,
drawn from 2n values, are joined with ROWS rows, each of which finds one; the payload of the build side (8
bytes, unless stated otherwise) is summed.

- ladder: n from 100 to ROWS; the other parts have n = ROWS / 10
- payload: 0 and 24 bytes
- range: keys from 10n and 100n values
- hits: 0 to 80 % of the rows find a key
- skew: Zipf 0.5, 1, 1.5
- order: the rows are in the order of their keys (also for n = ROWS)
- joins: two and three of them in one statement
- memory: bytes that one join adds to a fresh process, its probe side streamed from `range()`, of ROWS / 2,
  ROWS and, with --long, 10 ROWS rows

Sides take turns in each round; times are medians of the rounds (of one run for more than 3e7 keys). For how
build and probe are distinguished, and how memory is measured, see bench/joins.py. If n is more than ROWS / 5,
a column of the probe side is summed too: otherwise building from the probe side's keys would need less memory
than from the build side.

A probe is compared with a gather of 8-byte entries from a table of the same size (`make bench-gather`), which
it cannot beat unless keys are near each other. Runs of single parts (`--parts`) on the same commit and day
are added to the record, JSON and SVG.
"""

import argparse
import os
import subprocess

from joins import (
    Cell, build_rows, footprint, keep_parts, known_tables, measure, probe_rows, series, short, streamed_rows,
)
from plot import chart, figure

TABLES = ["auto", "array", "ranked", "cat", "cht", "chained", "unchained", "radix", "bloom_radix"]
PARTS = ["gather", "ladder", "payload", "range", "hits", "skew", "order", "joins", "memory"]
MANY_KEYS = 30_000_000


def cell(name, n, rows, spread=2, payload=1, joins=1, **probe):
    """A join of `rows` rows with n keys, or a few such joins."""
    wide = int(n > rows // 5)
    sums = [f"sum(b{j + 1}.v{i + 1})" for j in range(joins) for i in range(payload)] or ["count(*)"]
    sums += ["sum(w1)"] * wide
    clauses = " ".join(f"JOIN b{j + 1} ON p.k{j + 1} = b{j + 1}.k" for j in range(joins))
    return Cell(
        name, build_rows(n, spread, payload), lambda rows: probe_rows(rows, n, spread, keys=joins, payload=wide, **probe),
        f"SELECT {', '.join(sums)} FROM {{p}} p {clauses}", rows, builds=joins, near=bool(wide),
        keys=n, spread=spread, payload=8 * payload, joins=joins, draw=probe,
    )


def cells(part, rows):
    n = rows // 10
    if part == "ladder":
        sizes = [10**digits for digits in range(2, 10) if 10**digits <= rows]
        return [cell(short(size), size, rows) for size in sizes]
    if part == "payload":
        return [cell(f"{8 * columns} bytes", n, rows, payload=columns) for columns in (0, 3)]
    if part == "range":
        return [cell(f"{spread}n values", n, rows, spread=spread) for spread in (10, 100)]
    if part == "hits":
        return [cell(f"{hits} % match", n, rows, hits=hits) for hits in (0, 20, 40, 60, 80)]
    if part == "skew":
        return [cell(f"Zipf {skew}", n, rows, skew=skew) for skew in (0.5, 1, 1.5)]
    if part == "order":
        return [cell(f"{short(size)} in order", size, rows, order="sorted") for size in (n, rows)]
    return [cell(f"{joins} joins", n, rows, joins=joins) for joins in (2, 3)]


def expected_bytes(table, n, spread, payload):
    """The paper's sizes: two bits per place without keys, or eight buckets of two bits per key, and keys."""
    return {"cat": n * spread // 4 + n * payload, "cht": 2 * n + n * (8 + payload)}.get(table)


def show(result):
    """Prints a line for each side."""
    sides = result["sides"]
    rival = sides.get("duckdb", {}).get("seconds")
    for side, figures in sides.items():
        size = sum(join["table_bytes"] + join["rows_bytes"] for join in figures.get("joins", []))
        kept = [join["kept_rows"] for join in figures.get("joins", [])]
        notes = [] if all(k == result["keys"] for k in kept) else [f"keeps {kept}"]
        notes += [join["table"] for join in figures.get("joins", [])[:1] if side == "auto"]
        notes += ["not possible"] if any(not join["possible"] for join in figures.get("joins", [])) else []
        split = f"{figures['build_seconds']:9.3f}{figures['probe_ns']:10.2f}" if "probe_ns" in figures else " " * 19
        ratio = f"{figures['seconds'] / rival:9.2f}" if rival else " " * 9
        print(f"  {side:12}{figures['seconds']:9.3f}{split}{size / 1e6:12.1f}{ratio}  {', '.join(notes)}", flush=True)


def gather(program):
    """Nanoseconds per lookup, by number of entries and bytes of an entry."""
    lines = subprocess.run([program], check=True, capture_output=True, text=True).stdout.splitlines()
    print("\n".join(lines))
    return [dict(zip(["entries", "bytes", "ns"], map(float, line.split()))) for line in lines[1:]]


def memory(tables, rows, wanted, long, threads):
    """Bytes that a join adds, by keys, rows of the probe side, and side."""
    found = []
    lengths = [rows // 2, rows] + [10 * rows] * long
    for n in filter(lambda n: wanted(short(n)), (rows // 100, rows // 10, rows)):
        for length in lengths if n == rows // 10 else [rows]:
            wide = n > length // 5
            sums = "sum(b1.v1), sum(w1)" if wide else "sum(b1.v1)"
            sql = f"SELECT {sums} FROM ({streamed_rows(length, n, 2)}) p JOIN b1 ON k1 = b1.k"
            sides = {}
            print(f"{short(n)} keys, {short(length)} rows streamed: seconds, MB added, MB in all")
            for side in [*tables, "duckdb"]:
                name = "duckdb" if side == "duckdb" else "entasis"
                sides[side] = footprint(name, side if name == "entasis" else None, threads, build_rows(n, 2, 1), sql)
                seconds, added, peak = (sides[side][figure] for figure in ("seconds", "bytes", "peak"))
                print(f"  {side:12}{seconds:9.2f}{added / 1e6:10.1f}{peak / 1e6:10.1f}", flush=True)
            if len({str(figures.pop("rows")) for figures in sides.values()}) > 1:
                raise SystemExit("results differ")
            found.append({"keys": n, "probe_rows": length, "sides": sides})
    return found


def goals(parts, rows):
    """The goals and results: name, figure, limit."""
    by_keys = {r["keys"]: r["sides"] for r in parts.get("ladder", [])}
    lines = []
    for n in (rows // 10, rows):
        sides = by_keys.get(n, {})
        for table, limit in (("cat", 0.25), ("cht", 0.4)):
            if table in sides:
                ratio = sides[table]["seconds"] / sides["duckdb"]["seconds"]
                lines.append((f"time of {table} / DuckDB, {short(n)} keys", ratio, limit))
                join = sides[table]["joins"][0]
                size, expected = join["table_bytes"] + join["rows_bytes"], expected_bytes(table, n, 2, 8)
                lines.append((f"bytes of {table} / the paper's, {short(n)} keys", size / expected, 1.05))
    for result in parts.get("order", []):
        ratio = result["sides"]["auto"]["seconds"] / result["sides"]["duckdb"]["seconds"]
        lines.append((f"time of auto / DuckDB, {result['name']}", ratio, 0.15))
    flat = {}
    for result in parts.get("memory", []):
        sides = result["sides"]
        if result["probe_rows"] == rows and result["keys"] >= rows // 10:
            for table in ("cat", "cht"):
                if table in sides:
                    ratio = sides[table]["bytes"] / sides["duckdb"]["bytes"]
                    lines.append((f"memory of {table} / DuckDB, {short(result['keys'])} keys", ratio, 0.35))
        if result["keys"] == rows // 10:
            for table in ("cat", "cht"):
                if table in sides:
                    flat.setdefault(table, []).append(sides[table]["bytes"])
    lines += [(f"memory of {table}, most / least rows", max(found) / min(found), 1.05) for table, found in flat.items()]
    return lines


def plots(parts, path):
    part = lambda name: parts.get(name, [])
    # The ladder has the standard values of what other parts vary: 100 %, 8 bytes, …
    plain = [r for r in part("ladder") if r["keys"] * 10 == r["probe_rows"]]
    varied = lambda name: part(name) + plain if part(name) else []
    keys = lambda r: r["keys"]
    ns = lambda r, side: side["seconds"] * 1e9 / r["probe_rows"]
    mb = lambda r, side: sum(j["table_bytes"] + j["rows_bytes"] for j in side["joins"]) / 1e6 if "joins" in side else None
    # Figures that are negative because of noise are omitted.
    positive = lambda figure: lambda r, side: side[figure] if side[figure] > 0 else None
    probes = series(part("ladder"), keys, positive("probe_ns"))
    probes["gather"] = [(g["entries"], g["ns"]) for g in part("gather") if g["bytes"] == 8]
    figure(path, "Joins by table and size; ns are wall time a row of the probe side", [
        chart("the whole statement", "keys", "ns", series(part("ladder"), keys, ns), "xy"),
        chart("a probe row, beside a gather", "keys", "ns", probes, "xy"),
        chart("build", "keys", "s", series(part("ladder"), keys, positive("build_seconds")), "xy"),
        chart("table and kept rows", "keys", "MB", series(part("ladder"), keys, mb), "xy"),
        chart("memory of one join", "keys", "MB", series(part("memory"), keys, lambda r, side: side["bytes"] / 1e6), "xy", True),
        chart("hits", "% of the rows match", "ns", series(varied("hits"), lambda r: r["draw"].get("hits", 100), ns)),
        chart("payload", "bytes", "ns", series(varied("payload"), lambda r: r["payload"], ns)),
        chart("range", "values a key", "ns", series(varied("range"), lambda r: r["spread"], ns), "x"),
        chart("skew", "Zipf factor", "ns", series(varied("skew"), lambda r: r["draw"].get("skew", 0), ns)),
        chart("joins of one statement", "joins", "ns", series(varied("joins"), lambda r: r["joins"], ns)),
    ])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=100_000_000, help="of the probe side")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--parts", default=",".join(PARTS), help="only these")
    parser.add_argument("--only", default="", help="only cells of these names, as 1e6,1e7")
    parser.add_argument("--tables", default=",".join(TABLES), help="those of these that there are")
    parser.add_argument("--long", action="store_true", help="stream ten times as many rows, too")
    parser.add_argument("--gather", default="target/release/examples/gather", help="the program for the part gather")
    parser.add_argument("--no-record", action="store_true")
    args = parser.parse_args()

    tables = known_tables(args.tables.split(","), args.threads)
    wanted = lambda name: not args.only or name in args.only.split(",")
    parts = {}
    for part in args.parts.split(","):
        print(f"\n{part}", flush=True)
        if part == "gather":
            parts[part] = gather(args.gather)
        elif part == "memory":
            parts[part] = memory([t for t in tables if t != "auto"], args.rows, wanted, args.long, args.threads)
        else:
            parts[part] = []
            print(f"  {'':12}{'s':>9}{'build s':>9}{'probe ns':>10}{'table MB':>12}{'/ duckdb':>9}")
            for one in filter(lambda one: wanted(one.name), cells(part, args.rows)):
                print(f" {one.name}", flush=True)
                many = one.facts["keys"] > MANY_KEYS
                parts[part].append(measure(one, tables, 1 if many else args.rounds, args.threads, warm_up=not many))
                show(parts[part][-1])
    if not args.no_record:
        how = {"rows": args.rows, "threads": args.threads, "rounds": args.rounds, "tables": tables}
        path, parts = keep_parts("join-memory", f"join-memory-{args.rows}", how, parts)
        plots(parts, path.with_suffix(".svg"))
    print()
    for name, reached, limit in goals(parts, args.rows):
        print(f"{name:60}{reached:8.2f}, goal {limit:.2f}{'' if reached <= limit else '  missed'}")


if __name__ == "__main__":
    main()
