"""Runs public suites of other databases, which a user has in a directory, and counts what becomes of them.

    make suites SUITE=sqlite FROM=~/sqllogictest
    make suites SUITE=duckdb FROM=~/duckdb EVERY=20       every twentieth file

| suite | what is read in the directory |
|---|---|
| sqlite | `test/**/*.test` of sqllogictest |
| duckdb | `test/sql/**/*.test` of DuckDB |
| datafusion | `datafusion/sqllogictest/test_files/**/*.slt` of DataFusion |
| postgres | `src/test/regress/{sql,expected,data}` of PostgreSQL |

Each file runs in an empty database in memory, in a process of its own. A record that uses what only the
suite's engine has is left out (`verdicts.py`); of the others, which are portable, each passes, fails for a
reason that tests/differences.md has a line for, or fails. The counts go to `record/<suite>.json`. Nothing of
a suite is copied there or anywhere else.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import regress
import slt
import verdicts
from runner import Limits, Outcome, in_process
from slt import Dialect, Record

RECORDS = Path(__file__).parent / "record"


@dataclass(frozen=True)
class Suite:
    name: str
    dialect: Dialect
    #: Where its files are, and their names.
    directory: str
    pattern: str

    def files(self, root: Path) -> list[Path]:
        below = root / self.directory
        return sorted((below if below.is_dir() else root).glob(self.pattern))

    def reader(self, root: Path) -> Callable[[Path], Iterable[Record]]:
        if self.dialect is Dialect.POSTGRES:
            return lambda file: _of_postgres(file, root / self.directory)
        return lambda file: slt.read(file.read_text(errors="replace"), self.dialect)

    def setup(self, root: Path) -> list[str]:
        """What runs before each file."""
        if self.dialect is Dialect.POSTGRES:
            return ["SET TimeZone = 'America/Los_Angeles'", *regress.shared(root / self.directory)]
        return ["SET TimeZone = 'UTC'"]


SUITES = {
    suite.name: suite
    for suite in (
        Suite("sqlite", Dialect.SQLITE, "test", "**/*.test"),
        Suite("duckdb", Dialect.DUCKDB, "test/sql", "**/*.test"),
        Suite("datafusion", Dialect.DATAFUSION, "datafusion/sqllogictest/test_files", "**/*.slt"),
        Suite("postgres", Dialect.POSTGRES, "src/test/regress", "sql/*.sql"),
    )
}


def _of_postgres(file: Path, root: Path) -> Iterator[Record]:
    """A file's records, if what it should print is there."""
    out = root / "expected" / file.with_suffix(".out").name
    if out.exists():
        yield from regress.read(file.read_text(errors="replace"), out.read_text(errors="replace"))


def run(suite: Suite, root: Path, files: list[Path], limits: Limits, seconds: float) -> tuple[Outcome, int]:
    """All counts, and how many files were run in the time that is given."""
    total, until = Outcome(), time.monotonic() + seconds
    setup, read = suite.setup(root), suite.reader(root)
    for done, file in enumerate(files):
        if time.monotonic() > until:
            return total, done
        name = str(file.relative_to(root))
        total.add(in_process(suite.name, suite.dialect, file, name, setup, read, limits), limits.examples)
    return total, len(files)


def printed(outcome: Outcome, reasons: int) -> None:
    kinds = {rule.name: rule.kind.value for rule in verdicts.RULES}
    kinds[verdicts.GOES_ON] = verdicts.Kind.DIFFERS.value
    records, portable = counts(outcome)
    lacking = sum(
        count for name, count in outcome.explained.items() if kinds[name] == verdicts.Kind.LACKS.value
    )
    print(
        f"{records} records, {portable} portable, {outcome.passed} passed "
        f"({_percent(outcome.passed, portable)}, {_percent(outcome.passed, portable - lacking)} "
        "without what Entasis does not have)"
    )
    for title, counter in (
        ("left out", outcome.left_out),
        ("with a line in tests/differences.md", outcome.explained),
        ("failed", outcome.failed),
    ):
        print(f"\n{title}: {counter.total()}")
        for reason, count in counter.most_common(reasons):
            kind = f" ({kinds[reason]})" if title.startswith("with") else ""
            print(f"  {count:7} {reason}{kind}")
            for file, line, sql in outcome.examples.get(reason, []):
                print(f"          {file}:{line}\n            " + sql.replace("\n", "\n            ")[:600])


def _percent(part: int, whole: int) -> str:
    return f"{100 * part / whole if whole else 0:.1f} %"


def counts(outcome: Outcome) -> tuple[int, int]:
    """All records, and those that are portable."""
    portable = outcome.passed + outcome.explained.total() + outcome.failed.total()
    return portable + outcome.left_out.total(), portable


def recorded(suite: Suite, outcome: Outcome, files: int, every: int) -> dict[str, object]:
    records, portable = counts(outcome)
    # What is in a message may be a name of the suite where it is rare.
    often = {reason: count for reason, count in outcome.failed.most_common() if count > 1}
    rare = Counter(reason for reason, count in outcome.failed.items() if count == 1)
    return {
        "suite": suite.name,
        "files": files,
        "every": every,
        "records": records,
        "portable": portable,
        "passed": outcome.passed,
        "left out": dict(outcome.left_out.most_common()),
        "explained": dict(outcome.explained.most_common()),
        "failed": {**often, "once each": rare.total()},
    }


def main() -> int:
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("suite", choices=SUITES)
    options.add_argument("directory", type=Path)
    options.add_argument("--every", type=int, default=1, help="only every n-th file")
    options.add_argument("--only", default="", help="only files whose path contains the text")
    options.add_argument("--seconds", type=float, default=float("inf"), help="no more files after that")
    options.add_argument("--reasons", type=int, default=60, help="how many reasons are printed")
    options.add_argument("--examples", type=int, default=0, help="how many statements are printed with each")
    options.add_argument("--timeout", type=float, default=10.0, help="seconds for a statement")
    options.add_argument("--memory", default="1GB", help="the database's memory limit")
    options.add_argument("--record", action="store_true", help="write record/<suite>.json")
    given = options.parse_args()
    suite, root = SUITES[given.suite], given.directory.expanduser().resolve()
    files = [file for file in suite.files(root) if given.only in str(file) and file.stem != "test_setup"][
        :: given.every
    ]
    if not files:
        print(f"no files of {suite.name} in {root}", file=sys.stderr)
        return 2
    outcome, done = run(
        suite, root, files, Limits(given.timeout, given.memory, given.examples), given.seconds
    )
    print(f"{suite.name}: {done} of {len(files)} files")
    printed(outcome, given.reasons)
    if given.record:
        RECORDS.mkdir(exist_ok=True)
        text = json.dumps(recorded(suite, outcome, done, given.every), indent=1, ensure_ascii=False)
        (RECORDS / f"{suite.name}.json").write_text(text + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
