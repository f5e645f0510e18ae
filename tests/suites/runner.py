"""Runs the records of a file against a database in memory, and says what came of each.

A file runs in a process of its own, so that a record that ends it, or hangs, is one more result. The parent
sees how far the child has come; what does not move for long is ended.

An expected error is an error for the reason that the suite has in mind, as far as can be told: where Entasis
refuses a statement because it does not have what the statement uses, or has not made its table, nothing is
proved, and the record does not pass.

A record that fails takes others with it: those that read the table that it should have made or changed. So
the names that a statement changes are remembered with what was wrong, and a later record that fails and
mentions one of them is counted under the first cause.
"""

from __future__ import annotations

import datetime
import multiprocessing
import os
import re
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from multiprocessing.connection import Connection as Pipe
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import verdicts
from comparing import Months, Pairs, difference, texts
from slt import Dialect, Record

PASSED = "passed"
CHANGES = re.compile(
    r"""^\s*(?:with\b.*?\b(?=insert|update|delete|merge))?
    (?:create|alter|drop|insert|update|delete|merge|truncate|copy|comment|refresh|replace|declare|
        prepare)\b""",
    re.I | re.X | re.S,
)
NAME = re.compile(
    r"""\b(?:table|view|index|sequence|type|domain|schema|function|macro|procedure|into|update|from|copy|
        prepare|
        trigger|aggregate|operator|rule|declare|truncate|merge\ into)\s+
    (?:(?:if\s+(?:not\s+)?exists|only|concurrently|or\s+replace)\s+)*("[^"]+"|[\w.]+)""",
    re.I | re.X,
)
#: `CREATE TABLE t (a INTEGER) AS query`
FILLED = re.compile(
    r"""(\s*create\s+table\s+(?:if\s+not\s+exists\s+)?([\w.\"]+)\s*\(\s*[\w\"]+\s+[a-z].*?\))
    \s*as\s+((?:select|values|with)\b.*)""",
    re.I | re.X | re.S,
)
MISSING = re.compile(r"there is no table (?!function)\"?([\w]+)")
#: The cause where a transaction goes on after a statement that fails.
GOES_ON = f"[{verdicts.GOES_ON}]"
ZONE = re.compile(r"\s*(re)?set\s+((local|session)\s+)?time\s*zone\b", re.I)
WORD = re.compile(r"\w+")


@dataclass(frozen=True)
class Limits:
    #: Seconds a statement may take.
    record: float = 10.0
    memory: str = "1GB"
    #: How many statements are kept with each reason.
    examples: int = 0


@dataclass
class Outcome:
    """Counts of a file: by rule and by reason, and an example of each reason by its line."""

    passed: int = 0
    left_out: Counter[str] = field(default_factory=Counter)
    explained: Counter[str] = field(default_factory=Counter)
    failed: Counter[str] = field(default_factory=Counter)
    examples: dict[str, list[tuple[str, int, str]]] = field(default_factory=dict)

    def add(self, other: Outcome, most: int) -> None:
        self.passed += other.passed
        self.left_out += other.left_out
        self.explained += other.explained
        self.failed += other.failed
        for reason, examples in other.examples.items():
            known = self.examples.setdefault(reason, [])
            known.extend(examples[: max(most - len(known), 0)])


class Run:
    """The records of one file, in one database."""

    def __init__(self, suite: str, dialect: Dialect, file: str, limits: Limits) -> None:
        import entasis

        self.module = entasis
        self.suite, self.dialect, self.file, self.limits = suite, dialect, file, limits
        #: The rule by which the whole file is left out.
        self.subject = verdicts.subject(suite, file)
        self.outcome = Outcome()
        self.scratch = tempfile.TemporaryDirectory()
        self.database = entasis.connect(memory_limit=limits.memory, threads=1, timeout=limits.record)
        self.sessions: dict[str, Any] = {"": self.database}
        self.zone = ZoneInfo("UTC")
        #: What Entasis says of the last record, if it is an error, and the group that this is counted in.
        self.said = self.refusal = ""
        #: The first rows of each label.
        self.labels: dict[str, list[list[str]]] = {}
        #: What statements of the file have made or changed, or tried to.
        self.made: set[str] = set()
        #: Names that are not as they should be, with the cause.
        self.lost: dict[str, str] = {}
        #: What each session's open transaction has changed.
        self.changed: dict[str, list[str]] = {}
        #: Sessions whose transaction is not as it should be.
        self.broken: dict[str, str] = {}

    def start(self, setup: Iterable[str]) -> None:
        """Makes what the suite supposes; what cannot be made is left out, with all that reads it."""
        for sql in setup:
            try:
                self.database.execute(sql)
            except self.module.Error:
                self._lose(sql, "", "*data of the suite")
        if self.dialect is Dialect.POSTGRES:
            self._set_zone()

    def record(self, record: Record) -> None:
        sql = record.sql
        for name in ("__TEST_DIR__", "{TEMP_DIR}", "{TEST_DIR}"):
            sql = sql.replace(name, self.scratch.name)
        rule = self._rule(record, sql)
        cause = self._cause(sql, record.session)
        if rule or cause.startswith("*"):
            self.outcome.left_out[rule or verdicts.AFTER] += 1
            if not self.subject and record.left_out not in verdicts.NOT_RUN_THERE:
                self._leave_out(record, sql, rule or verdicts.AFTER)
            return
        reason = self._try(record, sql)
        missing = (found := MISSING.match(self.said)) and found[1].lower()
        if not reason and record.expects == "error":
            reason = self._for_another_reason(record, sql, cause, missing or "")
        if not reason:
            self.outcome.passed += 1
            self._passed(record, sql)
            return
        if cause:
            if cause.startswith("["):
                self.outcome.explained[cause[1:-1]] += 1
            else:
                self.outcome.failed[f"after: {cause}"] += 1
            self._lose(sql, record.session, cause)
            return
        if missing and missing not in self.made and not _defines(sql, missing):
            self.outcome.left_out["data of the suite"] += 1
            self._lose(sql, record.session, "*data of the suite")
            return
        self._fail(record, sql, reason)

    def _rule(self, record: Record, sql: str) -> str:
        """The rule by which a record is left out."""
        either = verdicts.EITHER if record.expects == "any" else ""
        return self.subject or record.left_out or verdicts.left_out(self.suite, sql) or either

    def _fail(self, record: Record, sql: str, reason: str) -> None:
        """Counts a failure that has its cause in the record itself."""
        refused = reason.startswith(verdicts.FOR_ANOTHER_REASON)
        known = verdicts.explained(self.suite, sql, self.refusal if refused else reason)
        if known:
            self.outcome.explained[known.name] += 1
        else:
            self.outcome.failed[reason] += 1
        examples = self.outcome.examples.setdefault(f"{known.name}: {reason}" if known else reason, [])
        if len(examples) < self.limits.examples:
            examples.append((self.file, record.line, sql))
        if refused:
            # The statement was to change nothing.
            self._errs_in_transaction(record.session)
            return
        self._lose(sql, record.session, f"[{known.name}]" if known else reason)

    def _for_another_reason(self, record: Record, sql: str, cause: str, missing: str) -> str:
        """What is wrong with an expected error: Entasis does not come as far as to what should be refused."""
        expected = " ".join(record.expected)
        if verdicts.ALIKE.search(expected):
            return ""
        if missing and (cause or (expected and missing not in self.made)):
            return verdicts.FOR_ANOTHER_REASON + self.refusal
        rule = verdicts.explained(self.suite, sql, self.refusal)
        lacks = rule is not None and rule.kind is verdicts.Kind.LACKS
        if lacks or (expected and verdicts.NOT_UNDERSTOOD.search(self.refusal)):
            return verdicts.FOR_ANOTHER_REASON + self.refusal
        return ""

    def died(self, record: Record, reason: str) -> None:
        """Counts the record at which an earlier process has ended."""
        self.outcome.failed[reason] += 1
        self.outcome.examples[reason] = [(self.file, record.line, record.sql)]

    def not_reached(self, record: Record, reason: str) -> None:
        """Counts a record behind it."""
        if rule := self._rule(record, record.sql):
            self.outcome.left_out[rule] += 1
        else:
            self.outcome.failed[f"after: {reason}"] += 1

    def _passed(self, record: Record, sql: str) -> None:
        session = record.session
        if re.match(r"\s*(drop|create)\b", sql, re.I):
            self._regain(sql)
        if re.match(r"\s*(commit|rollback|end|abort)\b", sql, re.I):
            self.broken.pop(session, None)
        if not self.sessions[session].in_transaction:
            self.changed.pop(session, None)
            return
        changed = self.changed.setdefault(session, [])
        if CHANGES.match(sql):
            changed.extend(_names(sql)[:1])
        if self.said:
            self._errs_in_transaction(session)
        elif self.broken.get(session) == GOES_ON:
            for name in changed:
                self.lost.setdefault(name, GOES_ON)

    def _errs_in_transaction(self, session: str) -> None:
        """Where others undo all that the transaction has changed, and refuse what follows in it."""
        if (
            self.dialect not in (Dialect.POSTGRES, Dialect.DUCKDB)
            or not self.sessions[session].in_transaction
        ):
            return
        if self.broken.setdefault(session, GOES_ON) == GOES_ON:
            for name in self.changed.get(session, []):
                self.lost.setdefault(name, GOES_ON)

    def _leave_out(self, record: Record, sql: str, rule: str) -> None:
        """Runs what may be needed later. If that fails, what it should have made is left out as well."""
        wrong = "not run" if record.left_out else self._try(record, sql)
        if found := verdicts.OF_RESULTS.match(sql):
            word = "order" if found["order"] else "varchar"
            if re.search(r"(?i)nulls_last|\basc", sql) or not wrong:
                self.lost.pop(word, None)
            else:
                self.lost[word] = "*" + rule
        elif wrong:
            self._lose(sql, record.session, "*" + rule)

    def _try(self, record: Record, sql: str) -> str:
        """What is wrong; nothing, if it is empty."""
        self.said = self.refusal = ""
        if CHANGES.match(sql):
            self.made.update(_names(sql)[:1])
        session = self.sessions.get(record.session)
        if session is None:
            session = self.sessions[record.session] = self.database.duplicate()
        try:
            for statement in _statements(sql, self.dialect):
                cursor = session.execute(statement)
            if self.dialect is Dialect.POSTGRES and ZONE.match(sql):
                self._set_zone()
            # Also where none are expected: an error may come with the rows.
            rows = self._rows(cursor)
        except self.module.Error as error:
            self.said, self.refusal = str(error), group(error)
            return "" if record.expects in ("error", "any") else self.refusal
        except (ValueError, OverflowError):
            return "not for Python"
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt):
                raise
            return f"{type(error).__name__}: {group(error)}"
        if record.expects == "error":
            return "accepted where an error is expected"
        if record.expects != "rows":
            return ""
        wrong = self._of_label(record, rows) if record.label else difference(record, rows, self.dialect)
        return f"other rows: {wrong}" if wrong else ""

    def _of_label(self, record: Record, rows: list[tuple[Any, ...]]) -> str:
        """What is wrong with rows that are to be those of the other queries of the label."""
        found = texts(record, rows, self.dialect)
        return "" if self.labels.setdefault(record.label, found) == found else "of a label"

    def _rows(self, cursor: Any) -> list[tuple[Any, ...]]:
        if cursor.description is None:
            # Others give the number of rows that a statement has changed as its result.
            return [(cursor.rowcount,)] if self.dialect in (Dialect.DUCKDB, Dialect.DATAFUSION) else []
        types = [str(column[1]) for column in cursor.description]
        if not any("INTERVAL" in type or "MAP(" in type for type in types):
            rows = [tuple(row) for row in cursor.fetchall()]
            return (
                [tuple(map(self._local, row)) for row in rows] if self.dialect is Dialect.POSTGRES else rows
            )
        # Python's timedelta has no months.
        columns = zip(cursor.arrow().columns, types)
        return list(
            zip(*([_of_arrow(value, type) for value in column.to_pylist()] for column, type in columns))
        )

    def _local(self, value: Any) -> Any:
        """A moment as the time of day in the session's zone, as PostgreSQL prints it."""
        if not isinstance(value, datetime.datetime) or value.tzinfo is None:
            return value
        return value.astimezone(self.zone).replace(tzinfo=None)

    def _set_zone(self) -> None:
        name = self.database.execute("SHOW timezone").fetchone()[0]
        try:
            self.zone = ZoneInfo(name)
        except (ValueError, ZoneInfoNotFoundError):
            self.zone = ZoneInfo("UTC")

    def _cause(self, sql: str, session: str) -> str:
        if session in self.broken:
            return self.broken[session]
        if not self.lost:
            return ""
        causes = [self.lost[word] for word in map(str.lower, WORD.findall(sql)) if word in self.lost]
        return next((cause for cause in causes if cause.startswith("*")), causes[0] if causes else "")

    def _lose(self, sql: str, session: str, cause: str) -> None:
        if cause.startswith("after: "):
            cause = cause.removeprefix("after: ")
        # What could not be dropped is there, or was not before.
        if CHANGES.match(sql) and not re.match(r"\s*drop\b", sql, re.I):
            for name in _names(sql)[:1]:
                self.lost.setdefault(name, cause)
        connection = self.sessions.get(session)
        if connection is not None and connection.in_transaction and not cause.startswith("*"):
            self.broken.setdefault(session, cause)

    def _regain(self, sql: str) -> None:
        created = re.match(r"\s*create\b", sql, re.I)
        for name in _names(sql)[: 1 if created else None]:
            self.lost.pop(name, None)


def _of_arrow(value: Any, type: str) -> Any:
    if value is None:
        return None
    if type.startswith("MAP(") and not type.endswith("]"):
        return Pairs((_of_arrow(k, ""), _of_arrow(v, "")) for k, v in value)
    if hasattr(value, "nanoseconds") and hasattr(value, "months"):
        return Months((value.months, value.days, value.nanoseconds // 1000))
    if isinstance(value, list):
        return [_of_arrow(element, type.removesuffix("[]")) for element in value]
    if isinstance(value, dict):
        return {name: _of_arrow(field, "") for name, field in value.items()}
    return value


def _names(sql: str) -> list[str]:
    """The names of objects that a statement names, without their schemas."""
    return [name.strip('"').split(".")[-1].lower() for name in NAME.findall(sql)]


def _statements(sql: str, dialect: Dialect) -> list[str]:
    """The statement; or the two of which one of DataFusion's consists, whose data hundreds of others read."""
    found = FILLED.match(sql) if dialect is Dialect.DATAFUSION else None
    return [found[1], f"INSERT INTO {found[2]} {found[3]}"] if found else [sql]


def _defines(sql: str, name: str) -> bool:
    """Whether a statement gives the name to something itself."""
    return re.search(rf'(?i)\b{name}\b"?\s*(\([^()]*\))?\s*as\b|\bas\s+"?{name}\b', sql) is not None


def group(error: BaseException) -> str:
    """The error's message without the numbers and names of the statement, by which failures are counted."""
    text = str(error).split("\n")[0]
    keeps_name = re.match(
        r"there is no (table )?(function|setting|type|aggregate|operator)|not supported|.* is not supported",
        text,
    )
    if not keeps_name:
        text = re.sub(r"syntax error at .*?:", "syntax error at …:", text)
        text = re.sub(r"'(?:[^']|'')*'", "'…'", text)
        text = re.sub(r'"[^"]*"', '"…"', text)
        text = re.sub(r"there is no (table|column|view|schema|sequence|index) .*", r"there is no \1 …", text)
    text = re.sub(r"\d[\d.,:-]*", "N", text)
    return text[:120]


def in_process(
    suite: str, dialect: Dialect, file: Path, name: str, setup: Iterable[str],
    read: Callable[[Path], Iterable[Record]], limits: Limits,
) -> Outcome:  # fmt: skip
    """Runs a file in a process of its own. One that dies or hangs fails at the record at which it was."""
    work = (suite, dialect, file, name, setup, read, limits)
    outcome, at, reason = _attempt(work, None, limits)
    if outcome is None:
        # Once more, but not that record; what follows it is counted, too.
        outcome, *_ = _attempt(work, (at, reason), limits)
    return outcome or Outcome(failed=Counter([reason]), examples={reason: [(name, 0, "")]})


def _attempt(
    work: tuple[Any, ...], died: tuple[int, str] | None, limits: Limits
) -> tuple[Outcome | None, int, str]:
    """What a process finds; or, if it ends before, at which record, from 0, and how."""
    here, there = multiprocessing.Pipe(duplex=False)
    at = multiprocessing.Value("q", 0)
    child = multiprocessing.Process(target=_child, args=(*work, there, at, died))
    child.start()
    there.close()
    seen, since = -1, time.monotonic()
    while not here.poll(0.2):
        if at.value != seen:
            seen, since = at.value, time.monotonic()
        if time.monotonic() - since > 3 * limits.record + 20:
            child.kill()
            break
        if not child.is_alive() and not here.poll(0):
            break
    outcome = _received(here)
    child.join()
    hung = child.exitcode == -9
    return (
        outcome,
        at.value,
        "the process was ended: it hung" if hung else f"the process ended with {child.exitcode}",
    )


def _received(pipe: Pipe) -> Outcome | None:
    try:
        outcome = pipe.recv() if pipe.poll(0) else None
    except EOFError:
        return None
    return outcome if isinstance(outcome, Outcome) else None


def _child(
    suite: str, dialect: Dialect, file: Path, name: str, setup: Iterable[str],
    read: Callable[[Path], Iterable[Record]], limits: Limits, pipe: Pipe, at: Any,
    died: tuple[int, str] | None,
) -> None:  # fmt: skip
    warnings.simplefilter("ignore")
    # COPY … TO STDOUT writes there.
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    run = Run(suite, dialect, name, limits)
    run.start(setup)
    for i, record in enumerate(read(file)):
        at.value = i
        if died is None or i < died[0]:
            run.record(record)
        elif i == died[0]:
            run.died(record, died[1])
        else:
            run.not_reached(record, died[1])
    pipe.send(run.outcome)
