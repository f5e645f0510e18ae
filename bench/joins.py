"""Shared by the benchmarks of joins: one process per engine, the data as SQL, figures of joins from plans.

Data. Both engines generate the same rows from `range()` by integer arithmetic, so nothing is stored on disk
and results can be compared. The build side has n rows (k, v1, …): the keys are one value out of each `spread`
neighbours, in a pseudorandom order by squares modulo a prime. Payload columns need more than 32 bits. Probe
sides draw from these keys:

- "random": every key equally often, in random order;
- "sorted": the same in the order of the keys;
- a share of hits: each of the others has a neighbouring value that is not a key;
- Zipf: the r-th most frequent key is drawn about r^-z times as often as the first, and frequent keys are not
  neighbours.

Times. `measure` runs a join over probe sides of two lengths, all sides in turns, several rounds; the figures
are medians. The difference gives the time per probe row, including reading its key; the rest is the build,
with the overhead of the statement.

Memory. `footprint` runs a join once in a process that has only loaded the build side; the probe side streams
from `range()`. The kernel's high-water mark is reset before the join; the figure is its rise above the
resident memory.

The engine reports which tables a join may have; those that it does not know are omitted.
"""

import datetime
import json
import math
import random
import re
import statistics
import subprocess
import sys
import time

from engines import ENGINES, ROOT, commit, keep, open_answers

# ---- engines -----------------------------------------------------------------------------------------------


def resident_bytes(key):
    """VmRSS, or VmHWM: the maximum since it was reset."""
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) * 1024 for line in file if line.startswith(key))


def footprint_here(engine, sql):
    time.sleep(1.2)
    engine.query("SELECT 1")  # The allocator returns free memory at the next allocation.
    time.sleep(0.3)
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")
    before, start = resident_bytes("VmRSS"), time.perf_counter()
    rows = engine.query(sql)
    seconds = time.perf_counter() - start
    return {"seconds": seconds, "rows": texts(rows), "before": before, "peak": resident_bytes("VmHWM")}


def texts(rows):
    """The first rows, as texts: integers of all types are written alike."""
    return [[str(int(value)) if hasattr(value, "__int__") else str(value) for value in row] for row in rows[:200]]


def serve(name, threads):
    """The engine's process: one JSON command per line on stdin, one JSON answer per line on stdout."""
    answers = open_answers()
    engine = ENGINES[name](threads)
    print(json.dumps({"version": engine.version}), file=answers, flush=True)
    for line in sys.stdin:
        do, sql = json.loads(line)
        try:
            if do == "footprint":
                answer = footprint_here(engine, sql)
            else:
                start = time.perf_counter()
                rows = engine.query(sql)
                answer = {"seconds": time.perf_counter() - start, "rows": texts(rows), "count": len(rows)}
        except Exception as error:  # only this figure is lost, not the run
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), file=answers, flush=True)


class Engine:
    """An engine in a process of its own."""

    def __init__(self, name, threads):
        command = [sys.executable, __file__, name, str(threads)]
        self.name = name
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.version = json.loads(self.process.stdout.readline())["version"]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.end()

    def end(self):
        self.process.stdin.close()
        self.process.wait()

    def ask(self, do, sql):
        self.process.stdin.write(json.dumps([do, sql]) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        return json.loads(line) if line else {"error": "the process ended"}

    def run(self, sql, do="run"):
        answer = self.ask(do, sql)
        if "error" in answer:
            raise RuntimeError(f"{self.name}: {answer['error']}\n{sql}")
        return answer


def known_tables(wanted, threads):
    """Those of `wanted` that the engine supports."""
    with Engine("entasis", threads) as engine:
        return [table for table in wanted if "error" not in engine.ask("run", f"SET join_table = '{table}'")]


# ---- data --------------------------------------------------------------------------------------------------

# Arbitrary odd numbers and primes.
STEP, TWIST, MODULUS = 48271, 2654435761, 2147483647


def prime_from(n):
    """The least prime from n on that is 3 modulo 4: squares modulo such a prime give a permutation."""
    p = max(n, 3)
    while p % 4 != 3 or any(p % d == 0 for d in range(3, math.isqrt(p) + 1, 2)):
        p += 1
    return p


def shuffled(n):
    """A relation with one column r: the numbers below n in pseudorandom order."""
    p = prime_from(n)
    square = f"CASE WHEN 2 * x < {p} THEN x * x % {p} ELSE {p} - x * x % {p} END"
    return f"(SELECT r FROM (SELECT {square} AS r FROM range({p}) t(x)) s WHERE r < {n})"


def key(r, spread, miss="0"):
    """The key of number r, a column; where `miss` is 1, a neighbouring value that is not a key."""
    return f"{spread} * {r} + ((({r} * {STEP}) >> 8) + {miss}) % {spread}" if spread > 1 else r


def build_rows(n, spread, payload, integer="BIGINT"):
    """The build side: keys k, and payload columns v1, … that need almost all bits of the type."""
    factor = 4 if integer == "BIGINT" else 1
    columns = [f"CAST({key('r', spread)} AS {integer}) AS k"]
    columns += [f"CAST(r * {STEP + 2 * i} % {MODULUS} * {factor} AS {integer}) AS v{i + 1}" for i in range(payload)]
    return f"SELECT {', '.join(columns)} FROM {shuffled(n)} s"


def double(value):
    """A number, or an expression, as DOUBLE; numbers with an exponent are DOUBLE already."""
    return f"CAST({value} AS DOUBLE)" if isinstance(value, str) else f"{value:.17e}"


def drawn(y, n, skew):
    """The number of the key, of n, in a row of a probe side; the expression y permutes the row numbers."""
    if skew == 0:
        return f"({y} * {TWIST} + 12345) % {n}"
    # The inverse of the distribution, as if ranks were continuous.
    u = f"({double(f'{y} * {TWIST} % 4294967291')} + {double(0.5)}) / {double(4294967291)}"
    if skew == 1:
        rank = f"power({double(n)}, {u})"
    else:
        rank = f"power({double(n ** (1.0 - skew) - 1.0)} * ({u}) + {double(1)}, {double(1.0 / (1.0 - skew))})"
    return f"(CAST(floor({rank}) AS BIGINT) - 1) * {TWIST} % {n}"


def probe_rows(rows, n, spread, order="random", hits=100, skew=0, keys=1, payload=0, integer="BIGINT"):
    """The probe side: `keys` columns of keys k1, k2, …, and payload columns w1, …."""
    if order == "sorted":
        source = f"(SELECT x AS y, x * {n} // {rows} AS r1 FROM range({rows}) t(x))"
    else:
        draws = ", ".join(f"{drawn(f'(y + {977 * i})', n, skew)} AS r{i + 1}" for i in range(keys))
        source = f"(SELECT y, {draws} FROM (SELECT r AS y FROM {shuffled(rows)} s) q)"
    miss = "0" if hits == 100 else f"CASE WHEN ((y * {TWIST}) >> 7) % 100 < {hits} THEN 0 ELSE 1 END"
    columns = [f"CAST({key(f'r{i + 1}', spread, miss)} AS {integer}) AS k{i + 1}" for i in range(keys)]
    columns += [f"CAST(y * {STEP + 2 * i} % {MODULUS} AS {integer}) AS w{i + 1}" for i in range(payload)]
    return f"SELECT {', '.join(columns)} FROM {source} p"


def streamed_rows(rows, n, spread):
    """A probe side (k1, w1) without a table: a little arithmetic on each number of a series."""
    return f"SELECT {key('r', spread)} AS k1, x AS w1 FROM (SELECT x, x * {TWIST} % {n} AS r FROM range({rows}) t(x)) p"


# ---- figures from plans ------------------------------------------------------------------------------------

NUMBER = re.compile(r"^join (\d+)$")
TABLE = re.compile(r"^(.*?): (\d+) rows.*; table of (\d+) bytes, rows of (\d+) bytes")
# Its partitions have tables of their own, which are not shown.
PARTITIONS = re.compile(r"^(radix join), .*; ([\d.]+) MB of build rows")


def profiled(engine, sql):
    """The nodes of EXPLAIN ANALYZE, each with its depth and details, parents first."""
    nodes = []

    def add(node, depth):
        own = {"title": node["operator"], "rows": node["rows"], "ns": node["nanoseconds"], "details": node["details"]}
        nodes.append({"depth": depth} | own)
        for child in node["children"]:
            add(child, depth + 1)

    [[text]] = engine.run("EXPLAIN (ANALYZE, FORMAT json) " + sql)["rows"]
    add(json.loads(text)["plan"], 0)
    return nodes


def joins_of(nodes):
    """The joins among the nodes: number, table, rows on both sides, bytes, nanoseconds of all workers."""
    joins = []
    for at, node in enumerate(nodes):
        below = [child["rows"] for child in children(nodes, at)]
        keeps_left = any(detail.startswith("the build side is the left input") for detail in node["details"])
        tables = [match for match in map(TABLE.match, node["details"]) if match]
        partitions = [match for match in map(PARTITIONS.match, node["details"]) if match]
        if tables:
            kind, kept, table, rows = tables[0].groups()
        elif partitions:
            kind, kept, table, rows = partitions[0][1], below[0 if keeps_left else 1], 0, float(partitions[0][2]) * 1e6
        else:
            continue
        number = next(int(match[1]) for match in map(NUMBER.match, node["details"]) if match)
        joins.append({
            "number": number, "title": node["title"], "table": kind, "kept_rows": int(kept), "table_bytes": int(table), "rows_bytes": int(rows),
            "probe_rows": below[1 if keeps_left else 0], "rows": node["rows"], "ns": node["ns"],
            "possible": "is not possible" not in " ".join(node["details"]),
        })
    return joins


def children(nodes, at):
    """The inputs of a node, left to right."""
    depth = nodes[at]["depth"]
    found = []
    for node in nodes[at + 1:]:
        if node["depth"] <= depth:
            break
        if node["depth"] == depth + 1:
            found.append(node)
    return found


# ---- measuring ---------------------------------------------------------------------------------------------


class Cell:
    """A join to be measured: how its sides are made, and the query over tables b1, b2, … and a probe side.

    `probe` makes a probe side with a number of rows. `rows` is the number in the statement whose time counts;
    with `split`, it also runs over half as many, or, if that would change the build side (`near`), over twice
    as many.
    """

    def __init__(self, name, build, probe, query, rows, builds=1, split=True, near=False, **facts):
        self.name, self.build, self.probe, self.query = name, build, probe, query
        self.rows, self.builds, self.split, self.near, self.facts = rows, builds, split, near, facts

    def load(self, engine):
        for i in range(self.builds):
            engine.run(f"CREATE TABLE b{i + 1} AS {self.build}")
        engine.run(f"CREATE TABLE p AS {self.probe(self.rows)}")
        if self.split and not self.near:
            engine.run(f"CREATE TABLE p_half AS {self.probe(self.rows // 2)}")

    def queries(self):
        """The statement, and the one over another number of rows, each with its number of rows."""
        queries = [(self.query.format(p="p"), self.rows)]
        if self.split and self.near:
            queries.append((self.query.format(p="(SELECT * FROM p UNION ALL SELECT * FROM p)"), 2 * self.rows))
        elif self.split:
            queries.append((self.query.format(p="p_half"), self.rows // 2))
        return queries


def in_turn(sides, turn):
    """The sides in this turn's own order: the preceding engine determines the contents of the caches."""
    return random.Random(turn).sample(list(sides), len(sides))


def measure(cell, tables, rounds, threads, warm_up=True, rivals=("duckdb",)):
    """Figures of a cell by side: the engine with each of the tables, and the other engines."""
    engines = {name: Engine(name, threads) for name in ["entasis", *rivals]}
    try:
        for engine in engines.values():
            cell.load(engine)
        sides = {table: "entasis" for table in tables} | {name: name for name in rivals}
        queries = cell.queries()
        times = {side: [[] for _ in queries] for side in sides}
        results = [set() for _ in queries]
        for turn in range(rounds + warm_up):
            for side in in_turn(sides, turn):
                name = sides[side]
                if side != name:
                    engines[name].run(f"SET join_table = '{side}'")
                for i, (sql, _) in enumerate(queries):
                    answer = engines[name].run(sql)
                    results[i].add(json.dumps(answer["rows"]))
                    if turn >= warm_up:
                        times[side][i].append(answer["seconds"])
        if any(len(found) > 1 for found in results):
            raise RuntimeError(f"{cell.name}: results differ: {results}")
        figures = {}
        for side, name in sides.items():
            medians = [statistics.median(taken) for taken in times[side]]
            figures[side] = {"seconds": medians[0], "all_seconds": times[side]}
            if cell.split:
                probe = (medians[1] - medians[0]) / (queries[1][1] - cell.rows)
                figures[side] |= {"probe_ns": probe * 1e9, "build_seconds": medians[0] - probe * cell.rows}
            if side != name:
                engines[name].run(f"SET join_table = '{side}'")
                figures[side]["joins"] = joins_of(profiled(engines[name], queries[0][0]))
        return {"name": cell.name, "probe_rows": cell.rows} | cell.facts | {"sides": figures}
    finally:
        for engine in engines.values():
            engine.end()


def footprint(name, table, threads, build, sql):
    """Bytes that a join adds to the resident memory of a fresh process, and the total."""
    with Engine(name, threads) as engine:
        engine.run(f"CREATE TABLE b1 AS {build}")
        if table:
            engine.run(f"SET join_table = '{table}'")
        answer = engine.run(sql, "footprint")
        return {"seconds": answer["seconds"], "bytes": answer["peak"] - answer["before"], "peak": answer["peak"],
                "rows": answer["rows"]}


# ---- results -----------------------------------------------------------------------------------------------


def short(number):
    """1e7 for ten million, 16M for sixteen times 2^20, otherwise the digits."""
    digits = f"{number:.0e}".replace("e+0", "e").replace("e+", "e")
    if number >= 100 and float(digits) == number:
        return digits
    return f"{number >> 20}M" if number >= 1 << 20 and number % (1 << 20) == 0 else f"{number:,}"


def series(results, key, figure):
    """Points for a chart, by side."""
    sides = dict.fromkeys(side for result in results for side in result["sides"])
    return {s: [(key(r), figure(r, r["sides"][s])) for r in results if s in r["sides"]] for s in sides}


def keep_parts(benchmark, file, how, parts):
    """Writes a record, which keeps parts from earlier runs of the day. Returns its path, and all parts.

    `how` the parts were measured is kept for each.
    """
    path = ROOT / "bench" / "record" / f"{file}-{datetime.date.today().isoformat()}.json"
    runs = dict.fromkeys(parts, {"commit": commit()} | how)
    if path.exists():
        before = json.loads(path.read_text())
        parts, runs = before["parts"] | parts, before["runs"] | runs
    return keep(benchmark, file, {"runs": runs, "parts": parts}), parts


if __name__ == "__main__":
    serve(sys.argv[1], int(sys.argv[2]))
