"""Joins whose build side has far more rows than estimated: with and without swapping sides, and DuckDB.

    make bench-join-swap ROWS=10000000

Half of a table's rows satisfy three conditions, each of which one row in two hundred satisfies; if columns
were independent, one row would qualify, but half of them do. They are joined with 1,000 to 5,000,000 rows of
another table, by numbers from one range (`near`: tables of places) or far from each other (`far`: tables by
hash). Sides take turns in each round; times are medians.
"""

import argparse
import statistics

from joins import Engine, MODULUS, in_turn, shuffled

SIDES = {"off": "entasis", "auto": "entasis", "duckdb": "duckdb"}
QUERY = "SELECT count(*), sum(big.v), sum(small.w) FROM big JOIN small ON big.k = small.k WHERE a = 1 AND b = 1 AND c = 1"


def key(r, is_near):
    return f"{r} * 3" if is_near else f"{r} * {MODULUS}"


def wide(rows, is_near):
    number = "CASE WHEN r % 2 = 0 THEN 1 ELSE r % 200 END"
    return f"SELECT {key('r', is_near)} AS k, {number} AS a, {number} AS b, {number} AS c, r AS v FROM {shuffled(rows)} s"


def narrow(rows, of, is_near):
    return f"SELECT {key(f'(r * {of // rows})', is_near)} AS k, r AS w FROM {shuffled(rows)} s"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    arguments = parser.parse_args()
    rows = arguments.rows
    engines = {name: Engine(name, arguments.threads) for name in set(SIDES.values())}
    print(f"{rows} rows, {rows // 2} of which pass; DuckDB {engines['duckdb'].version}; milliseconds, medians of {arguments.rounds}")
    print(f"{'keys':6}{'other side':>12}" + "".join(f"{side:>10}" for side in SIDES) + "  swapped")
    for is_near in (True, False):
        for engine in engines.values():
            engine.run(f"CREATE OR REPLACE TABLE big AS {wide(rows, is_near)}")
        for few in (1000, 30_000, 300_000, 1_000_000, 2_000_000, 5_000_000):
            few = min(few, rows // 2)
            for engine in engines.values():
                engine.run(f"CREATE OR REPLACE TABLE small AS {narrow(few, rows, is_near)}")
            times, results = {side: [] for side in SIDES}, set()
            for turn in range(arguments.rounds + 1):
                for side in in_turn(SIDES, turn):
                    engine = engines[SIDES[side]]
                    if SIDES[side] == "entasis":
                        engine.run(f"SET join_swap = '{side}'")
                    answer = engine.run(QUERY)
                    results.add(str(answer["rows"]))
                    if turn > 0:
                        times[side].append(answer["seconds"])
            if len(results) > 1:
                raise RuntimeError(f"results differ: {results}")
            engines["entasis"].run("SET join_swap = 'auto'")
            plan = engines["entasis"].run("EXPLAIN (ANALYZE, VERBOSE) " + QUERY)["rows"]
            swapped = any("sides swapped" in line for [line] in plan)
            figures = "".join(f"{1000 * statistics.median(times[side]):10.0f}" for side in SIDES)
            print(f"{'near' if is_near else 'far':6}{few:12}{figures}  {'yes' if swapped else 'no'}", flush=True)


if __name__ == "__main__":
    main()
