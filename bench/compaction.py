"""Strategies of chunk compaction, as in *Data Chunk Compaction in Vectorized Execution* (SIGMOD 2025, section 6).

    make bench-compaction ROWS=4000000

A table r of ROWS rows is joined with one to four tables of a tenth as many rows, by different columns. Each
of them has every `factor`-th key, `factor` times: one row in `factor` has matches, and `factor` of them. So a
probe outputs as many rows as it gets, in chunks that are smaller by the factor. Join filters are off, since
they would make the scan produce the small chunks, and so is the optimizer, which might choose another order.

| part | paper | varied |
|---|---|---|
| factor | Figure 10 | the factor and the number of joins |
| length | Figure 11 | columns of r in the output, four joins, factor 8 |
| learned | Figure 12 | thresholds chosen by the learner, three joins, factor 8; the second with long rows |
| selections | Figure 13 | one-to-one joins before a filter: each adds a selection vector |
| table | Figure 14 | kinds of join tables, instead of the load factor, which is fixed |
| chunk | Figure 15 | rows of a chunk, three joins |
| mixed | Figure 16 | a filter before the joins |

Strategies take turns in each round; figures are medians in milliseconds. One thread, as in the paper, unless
`--threads` says otherwise.
"""

import argparse
import statistics

import plot
from engines import ROOT, keep
from joins import Engine, in_turn

# A strategy that takes more milliseconds is omitted from the rest of a series.
TOO_SLOW = 3000
STRATEGIES = ["none", "full", "binary", "dynamic", "learning", "logical", "smart", "auto"]


class Bench:
    def __init__(self, arguments):
        self.arguments = arguments
        self.rows, self.keys = arguments.rows, arguments.rows // 10
        self.engine = Engine("entasis", arguments.threads)
        for setting in ("join_filter = 'off'", "optimizer = false", "join_swap = 'off'"):
            self.engine.run(f"SET {setting}")
        self.factors, self.slow = {}, set()
        self.probe(4)

    def probe(self, columns):
        """r: four keys, the row number, and `columns` more numbers."""
        mixed = "(x * {} + {}) % 2147483647 * 16807 % 2147483647"
        keys = ", ".join(f"{mixed.format(48271 + 2 * i, i)} % {self.keys} AS id{i}" for i in range(1, 5))
        more = "".join(f", x * {7 + i} AS c{i}" for i in range(columns))
        self.engine.run(f"CREATE OR REPLACE TABLE r AS SELECT {keys}, {mixed.format(69621, 5)} % 100000 AS f{more} FROM range({self.rows}) t(x)")

    def build(self, factor, columns=1):
        """s1 to s4."""
        if self.factors.get("all") == (factor, columns):
            return
        for i in range(1, 5):
            misc = ", ".join(f"x * {3 + j} AS m{j}" for j in range(columns if i == 2 else 1))
            self.engine.run(f"CREATE OR REPLACE TABLE s{i} AS SELECT x // {factor} * {factor} AS id, {misc} FROM range({self.keys}) t(x)")
        self.factors["all"] = (factor, columns)

    def query(self, joins, columns=4, where="", misc=1):
        joined = "".join(f" JOIN s{i} ON r.id{i} = s{i}.id" for i in range(1, joins + 1))
        sums = [f"sum(c{i})" for i in range(columns)] + [f"sum(s{i}.m0)" for i in range(1, joins + 1)]
        sums += [f"sum(s2.m{j})" for j in range(1, misc)]
        return f"SELECT count(*), {', '.join(sums)} FROM r{joined} {where}"

    def times(self, sql, strategies=STRATEGIES):
        strategies = [strategy for strategy in strategies if strategy not in self.slow]
        taken, results = {strategy: [] for strategy in strategies}, set()
        for turn in range(self.arguments.rounds + 1):
            for strategy in in_turn(strategies, turn):
                self.engine.run(f"SET compaction = '{strategy}'")
                answer = self.engine.run(sql)
                results.add(str(answer["rows"]))
                if turn > 0:
                    taken[strategy].append(1000 * answer["seconds"])
        if len(results) > 1:
            raise RuntimeError(f"results differ: {results}")
        medians = {strategy: statistics.median(times) for strategy, times in taken.items()}
        self.slow.update(strategy for strategy, time in medians.items() if time > TOO_SLOW)
        return medians

    def line(self, title, times):
        shown = STRATEGIES if set(times) - {"none", "auto", "binary", "learning"} else times
        cells = (f"{times[strategy]:10.0f}" if strategy in times else f"{'—':>10}" for strategy in shown)
        print(f"{title:26}" + "".join(cells), flush=True)
        return times


def head(title, strategies=STRATEGIES):
    print(f"\n{title}\n{'':26}" + "".join(f"{strategy:>10}" for strategy in strategies), flush=True)


def series(points, strategies=STRATEGIES):
    return {strategy: [(x, times.get(strategy)) for x, times in points] for strategy in strategies}


def factor(bench):
    content, charts = {}, []
    head("Chunk-reducing factor (Figure 10)")
    for joins in (2, 3, 4):
        points = []
        bench.slow.clear()
        for r in (2, 4, 8, 16, 32):
            bench.build(r)
            points.append((r, bench.line(f"{joins} joins, factor {r}", bench.times(bench.query(joins)))))
        content[f"{joins} joins"] = points
        charts.append(plot.chart(f"{joins} joins", "chunk-reducing factor", "ms", series(points), log="x"))
    both = [times for points in content.values() for _, times in points if {"binary", "logical"} <= set(times)]
    best = max(times["binary"] / times["logical"] for times in both)
    print(f"logical is up to {best:.2f} times as fast as binary (paper: 3)")
    return content, charts


def length(bench):
    head("Columns that come out, four joins, factor 8 (Figure 11)")
    points = []
    bench.build(8)
    for columns in (1, 4, 16, 48, 120):
        bench.probe(columns)
        points.append((40 + 8 * columns, bench.line(f"rows of {40 + 8 * columns} bytes", bench.times(bench.query(4, columns)))))
    bench.probe(4)
    return points, [plot.chart("length of rows", "bytes", "ms", series(points), log="x")]


def learned(bench):
    print("\nLearned thresholds, three joins, factor 8 (Figure 12)")
    content = {}
    for title, columns in (("rows of 16 bytes", 1), ("the second with rows of 1000 bytes", 125)):
        bench.build(8, columns)
        bench.engine.run("SET compaction = 'learning'")
        sql = bench.query(3, misc=columns)
        lines = [line for [line] in bench.engine.run("EXPLAIN (ANALYZE, VERBOSE) " + sql)["rows"]]
        content[title] = [line.strip() for line in lines if "compaction:" in line]
        print(title + "".join(f"\n  {line}" for line in content[title]), flush=True)
        strategies = ["binary", "learning"]
        head("", strategies)
        content[title].append(bench.line("", bench.times(sql, strategies)))
    return content, []


def selections(bench):
    head("Selection vectors: a filter behind one-to-one joins (Figure 13)")
    bench.build(1)
    points = []
    for joins in (0, 1, 2, 3, 4):
        where = "WHERE (c0 + " + " + ".join(["f"] + [f"s{i}.m0" for i in range(1, joins + 1)]) + ") % 10 < 3"
        points.append((joins, bench.line(f"{joins} joins", bench.times(bench.query(joins, where=where), ["none", "auto"]))))
    return points, [plot.chart("selection vectors", "joins", "ms", series(points, ["none", "auto"]))]


def table(bench):
    head("Kinds of tables, four joins, factor 8 (in place of Figure 14)")
    bench.build(8)
    content = {}
    for kind in ("auto", "chained", "unchained", "cht", "cat", "array"):
        bench.engine.run(f"SET join_table = '{kind}'")
        content[kind] = bench.line(kind, bench.times(bench.query(4)))
    bench.engine.run("SET join_table = 'auto'")
    return content, []


def chunk(bench):
    head("Rows of a chunk, three joins, factor 8 (Figure 15)")
    bench.build(8)
    points = []
    for rows in (64, 128, 256, 512, 1024, 2048):
        bench.engine.run(f"SET chunk_size = {rows}")
        points.append((rows, bench.line(f"{rows} rows", bench.times(bench.query(3)))))
    return points, [plot.chart("rows of a chunk", "rows", "ms", series(points), log="xy")]


def mixed(bench):
    head("A filter in front of three joins, factor 8 (Figure 16)")
    bench.build(8)
    points, worst = [], 0.0
    for part in (1, 2, 4, 8, 16, 32, 64):
        # Not a range condition, which the scan would test on codes.
        where = f"WHERE (f * 7919 + c0) % 64 < {64 // part}"
        times = bench.line(f"one row in {part}", bench.times(bench.query(3, where=where)))
        worst = max(worst, times["smart"] / min(times.values()))
        points.append((part, times))
    print(f"smart is at most {100 * (worst - 1):.0f} % slower than the best (goal: 5)")
    return points, [plot.chart("one row in … passes a filter", "…", "ms", series(points), log="xy")]


PARTS = {"factor": factor, "length": length, "learned": learned, "selections": selections, "table": table, "chunk": chunk, "mixed": mixed}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=4_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--only", default=",".join(PARTS))
    arguments = parser.parse_args()
    bench = Bench(arguments)
    content, charts = {"rows": arguments.rows, "rounds": arguments.rounds, "threads": arguments.threads}, []
    for part in arguments.only.split(","):
        bench.slow.clear()
        content[part], own = PARTS[part](bench)
        charts += own
    bench.engine.end()
    path = keep("strategies of chunk compaction", f"compaction-{arguments.threads}-threads", content)
    plot.figure(path.with_suffix(".svg"), f"Chunk compaction, {arguments.rows} rows, {arguments.threads} thread(s)", charts)


if __name__ == "__main__":
    main()
