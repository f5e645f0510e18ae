"""Runs random workloads in Entasis, DuckDB and PostgreSQL and reports where Entasis differs.

    cargo run -p entasis-testkit --example workloads -- --seed 1 --seeds 100 | python tests/compare/compare.py --postgres "host=localhost"

For each statement every engine returns rows or an error; the texts of errors are not compared. Entasis must
agree with both others; where they disagree, with PostgreSQL, or with DuckDB if a rule says so; without
PostgreSQL, with DuckDB. Differences are looked up in `rules.py`; those that no rule explains are printed, and
the exit code is 1. The tables of a workload are compared after its setup, too.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections import Counter
from collections.abc import Iterator

from engines import Answer, DuckDB, Entasis, PostgreSQL
from rules import RULES, Kind
from values import same_rows
from workloads import Query, Workload, read

#: The name in tests/differences.md of equal intervals with different fields.
EQUAL_INTERVALS = "equal intervals"


def same(a: Answer, b: Answer, ordered: bool, by_length: bool = False) -> bool:
    if a.rows is None or b.rows is None:
        return a.rows is None and b.rows is None
    return same_rows(a.rows, b.rows, ordered, by_length)


def judge(query: Query, answers: dict[str, Answer]) -> tuple[str, bool]:
    """How to count a statement, and whether it is a difference that no rule explains."""
    if not all(answer.readable for answer in answers.values()):
        return "unreadable", False
    rules = [rule for rule in RULES if rule.applies(query.sql, answers)]
    out = {rule.engine for rule in rules if rule.kind is Kind.LEFT_OUT}
    own, duck, postgres = (None if name in out else answers.get(name) for name in ("Entasis", "DuckDB", "PostgreSQL"))
    others = [answer for answer in (duck, postgres) if answer is not None]
    assert own is not None, "nobody leaves Entasis out"
    if not others:
        return "nobody to compare with", False
    if all(same(own, other, query.ordered) for other in others):
        return "; ".join(["same"] + [rule.name for rule in rules if rule.kind is Kind.LEFT_OUT]), False
    both = postgres is not None and duck is not None
    if both and same(own, postgres, query.ordered):
        return "as PostgreSQL", False
    if same(own, postgres or duck, query.ordered, by_length=True):
        return EQUAL_INTERVALS, False
    if both and same(own, duck, query.ordered):
        names = [rule.name for rule in rules if rule.kind in (Kind.AS_DUCKDB, Kind.OPEN)]
        return (f"as DuckDB: {names[0]}", False) if names else ("as DuckDB without a rule", True)
    # Where DuckDB is left out, a rule says what it would have given.
    kinds = (Kind.OWN, Kind.OPEN) if duck else (Kind.OWN, Kind.OPEN, Kind.AS_DUCKDB)
    names = [f"{rule.kind.value}: {rule.name}" for rule in rules if rule.kind in kinds]
    return (names[0], False) if names else ("different", True)


def text(answer: Answer) -> str:
    if answer.error is not None:
        return "error: " + answer.error.splitlines()[0][:300]
    rows = answer.rows or []
    lines = [repr(row) for row in rows[:12]] + ([f"… {len(rows) - 12} more"] if len(rows) > 12 else [])
    return f"{len(rows)} rows" + "".join(f"\n      {line}" for line in lines)


def statements(workload: Workload) -> Iterator[Query]:
    """The tables after the setup, then the queries."""
    for statement in workload.setup:
        if created := re.match(r"CREATE TABLE (\w+)", statement):
            yield Query(f"SELECT * FROM {created[1]}", False)
    yield from workload.queries


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--postgres", metavar="CONNECTION", default="", help="where PostgreSQL is, as libpq writes it")
    parser.add_argument("--only", metavar="TEXT", default="", help="print only kinds of differences that contain this")
    parser.add_argument("--all", action="store_true", help="print what rules explain, too")
    parser.add_argument("--until", type=int, default=0, metavar="N", help="stop after so many differences")
    arguments = parser.parse_args()
    engines = [Entasis(), DuckDB()]
    if arguments.postgres:
        engines.append(PostgreSQL(arguments.postgres))
    else:
        print("PostgreSQL is left out, as no --postgres says where it is.")
    counts: Counter[str] = Counter()
    unexplained = 0
    for workload in read(sys.stdin):
        for engine in engines:
            engine.start()
        for statement in workload.setup:
            failed = {engine.name: answer for engine in engines if (answer := engine.run(statement)).error is not None}
            if failed and len(failed) < len(engines):
                unexplained += 1
                print(f"seed {workload.seed}, setup\n  {statement};")
                print("".join(f"    {name}: {text(answer)}\n" for name, answer in failed.items()), flush=True)
        for number, query in enumerate(statements(workload)):
            answers = {engine.name: engine.run(query.sql) for engine in engines}
            count, differs = judge(query, answers)
            counts[count] += 1
            unexplained += differs
            if (differs or arguments.all and count != "same") and arguments.only in count:
                order = "ordered" if query.ordered else "any order"
                print(f"seed {workload.seed}, statement {number} ({order}): {count}\n  {query.sql};")
                print("".join(f"    {name}: {text(answer)}\n" for name, answer in answers.items()), flush=True)
        if arguments.until and unexplained >= arguments.until:
            break
    for engine in engines:
        if isinstance(engine, PostgreSQL):
            engine.stop()
    for count, times in counts.most_common():
        print(f"{times:8} {count}")
    print(f"{counts.total():8} statements, {unexplained} differences that no rule explains")
    return 1 if unexplained else 0


if __name__ == "__main__":
    sys.exit(main())
