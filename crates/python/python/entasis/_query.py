"""Queries that are composed step by step, and run when their rows are asked for.

Each step puts another SELECT around the text before it, and changes nothing: a `Query` can be the beginning of
several others. The text is optimized as a whole when it runs.

    con.table("flights").filter("dep_delay > 60").aggregate("count(*) AS n", group_by="carrier")

    SELECT carrier, count(*) AS n FROM (SELECT * FROM flights WHERE dep_delay > 60) GROUP BY ALL

Only the order of the last step counts, as in SQL: so `order` and `limit` come last, in this order.
"""

from __future__ import annotations

import itertools
import os
import re
from typing import TYPE_CHECKING, Any, Iterator, Sequence

from ._entasis import InterfaceError, Relation, Stream

if TYPE_CHECKING:
    import numpy
    import pandas
    import polars
    import pyarrow

    from . import _entasis

#: A name as it may be written in SQL, with that of its schema; in quotes, or without.
_NAME = re.compile(r'("[^"]+"|[A-Za-z_]\w*)(\.("[^"]+"|[A-Za-z_]\w*))*')
#: Names with commas in between.
_NAMES = re.compile(rf"\s*({_NAME.pattern})(\s*,\s*({_NAME.pattern}))*\s*")

_WITH = re.compile(r"\s*WITH\s+(RECURSIVE\s+)?", re.IGNORECASE)

_JOINS = {
    "inner": "JOIN",
    "left": "LEFT JOIN",
    "right": "RIGHT JOIN",
    "full": "FULL JOIN",
    "outer": "FULL JOIN",
    "semi": "SEMI JOIN",
    "anti": "ANTI JOIN",
    "cross": "CROSS JOIN",
}

_numbers = itertools.count(1)


class Query:
    """A query that has not run."""

    __module__ = "entasis"
    __slots__ = ("_connection", "_text", "_source", "_parameters", "_tables", "_end")

    def __init__(
        self,
        connection: _entasis.Connection,
        text: str,
        parameters: Sequence[Any] = (),
        tables: dict[str, Any] | None = None,
        source: str | None = None,
        end: str = "",
    ) -> None:
        self._connection = connection
        self._text = text
        # How another query names it behind FROM.
        self._source = source or f"({text}\n)"
        self._parameters = tuple(parameters)
        # Objects of Python that it names. The compiled part finds them by the name of a variable, in `_run`.
        self._tables = tables or {}
        # The clause that the text ends with: "", "ORDER BY" or "LIMIT".
        self._end = end

    @classmethod
    def of_table(cls, connection: _entasis.Connection, name: str) -> Query:
        """The rows of a table."""
        name = _named(name)
        return cls(connection, f"SELECT * FROM {name}", source=name)

    @classmethod
    def of(cls, connection: _entasis.Connection, query: Any, parameters: Sequence[Any]) -> Query:
        """SQL, or the rows of an object."""
        if isinstance(query, Query):
            return query
        if isinstance(query, str):
            return cls(connection, query.rstrip().rstrip(";"), _in_order(parameters))
        name = f"entasis_object_{next(_numbers)}"
        return cls(connection, f"SELECT * FROM {name}", (), {name: query}, name)

    # ---- steps -------------------------------------------------------------------------------------------

    def filter(self, condition: str, parameters: Sequence[Any] = ()) -> Query:
        """The rows for which a condition holds: `filter("x > ?", [3])`."""
        return self._step(f"SELECT * FROM {self._source}\nWHERE {condition}", after=parameters)

    def select(self, *columns: str, parameters: Sequence[Any] = ()) -> Query:
        """Columns and expressions: `select("a", "b + 1 AS c")`."""
        return self._step(f"SELECT {_list(columns, 'select')} FROM {self._source}", before=parameters)

    def aggregate(
        self,
        aggregates: str | Sequence[str],
        *,
        group_by: str | Sequence[str] = (),
        parameters: Sequence[Any] = (),
    ) -> Query:
        """One row for each group, or one in all: the columns of `group_by`, then the aggregates."""
        groups = [group_by] if isinstance(group_by, str) else list(group_by)
        own = [aggregates] if isinstance(aggregates, str) else list(aggregates)
        text = f"SELECT {_list(groups + own, 'aggregate')} FROM {self._source}"
        return self._step(text + ("\nGROUP BY ALL" if groups else ""), before=parameters)

    def join(
        self, other: Any, on: str | Sequence[str] | None = None, how: str = "inner", parameters: Sequence[Any] = ()
    ) -> Query:
        """The rows joined with those of another query, of a table by its name, or of an object.

        `on` is one or several names of columns, which both have, or a condition. In a condition, tables have their
        own names, and queries those that `alias` gives them. `how` is inner, left, right, full, semi, anti or cross.
        """
        if how not in _JOINS:
            raise InterfaceError(f"how={how!r} is no kind of join: they are {', '.join(_JOINS)}")
        if (on is None) != (how == "cross"):
            raise InterfaceError("a join has a condition, on=…, unless it is a cross join, how='cross'")
        if isinstance(other, str):
            other = Query.of_table(self._connection, other)
        other = Query.of(self._connection, other, ())
        condition = ""
        if on is not None and not isinstance(on, str):
            condition = f"\nUSING ({', '.join(on)})"
        elif on is not None:
            condition = f"\nUSING ({on})" if _NAMES.fullmatch(on) else f"\nON {on}"
        text = f"SELECT * FROM {self._source}\n{_JOINS[how]} {other._source}{condition}"
        return self._step(text, after=(*other._parameters, *_in_order(parameters)), tables=other._tables)

    def union(self, other: Query, *, all: bool = False) -> Query:
        """The rows of both, each once; `all=True` keeps those that are there several times."""
        return self._with(other, "UNION ALL" if all else "UNION")

    def intersect(self, other: Query) -> Query:
        """The rows that both have, each once."""
        return self._with(other, "INTERSECT")

    def except_(self, other: Query) -> Query:
        """The rows that the other does not have, each once."""
        return self._with(other, "EXCEPT")

    def distinct(self) -> Query:
        """Each row once."""
        return self._step(f"SELECT DISTINCT * FROM {self._source}")

    def order(self, *expressions: str, parameters: Sequence[Any] = ()) -> Query:
        """The rows in an order: `order("a DESC", "b")`."""
        by = f"\nORDER BY {_list(expressions, 'order')}"
        return self._step(f"SELECT * FROM {self._source}{by}", after=parameters, end="ORDER BY")

    def limit(self, rows: int, offset: int = 0) -> Query:
        """The first rows, or those after the first `offset`."""
        if rows < 0 or offset < 0:
            raise InterfaceError(f"limit() takes numbers of rows, not {min(rows, offset)}")
        limit = f"\nLIMIT {rows:d}" + (f" OFFSET {offset:d}" if offset else "")
        # Behind the order, which a query around it would not have to keep.
        text = self._text if self._end == "ORDER BY" else f"SELECT * FROM {self._source}"
        return self._step(text + limit, end="LIMIT")

    def alias(self, name: str) -> Query:
        """The same rows under a name, for the condition of a join."""
        source = f"{self._source} AS {_named(name)}"
        return Query(self._connection, self._text, self._parameters, self._tables, source, self._end)

    def sql(self, query: str, parameters: Sequence[Any] = ()) -> Query:
        """A query in SQL about these rows, whose table is called `self`: `sql("SELECT max(a) FROM self")`."""
        query = query.rstrip().rstrip(";")
        # Its own WITH becomes part of ours.
        begins = _WITH.match(query)
        recursive = "RECURSIVE " if begins and begins[1] else ""
        rest = f", {query[begins.end() :]}" if begins else f"\n{query}"
        return self._step(f"WITH {recursive}self AS ({self._text}\n){rest}", after=parameters)

    def _step(
        self,
        text: str,
        *,
        before: Sequence[Any] = (),
        after: Sequence[Any] = (),
        tables: dict[str, Any] | None = None,
        end: str = "",
    ) -> Query:
        """A query whose text contains that of this one, between the parameters `before` and `after`."""
        parameters = (*_in_order(before), *self._parameters, *_in_order(after))
        return Query(self._connection, text, parameters, {**self._tables, **(tables or {})}, end=end)

    def _with(self, other: Query, operator: str) -> Query:
        if not isinstance(other, Query):
            raise InterfaceError(f"a Query is expected, not a {type(other).__name__}: con.query(…) makes one")
        text = f"({self._text}\n)\n{operator}\n({other._text}\n)"
        return self._step(text, after=other._parameters, tables=other._tables)

    # ---- what it is --------------------------------------------------------------------------------------

    @property
    def text(self) -> str:
        """Its SQL."""
        return self._text

    @property
    def columns(self) -> list[str]:
        """Names of the columns. The query does not run."""
        return [name for name, _ in self._describe()]

    @property
    def types(self) -> list[str]:
        """SQL types of the columns. The query does not run."""
        return [kind for _, kind in self._describe()]

    def explain(self, *, analyze: bool = False) -> str:
        """How it would run, or with `analyze=True` how it has run."""
        return str(self._run(f"EXPLAIN {'ANALYZE ' if analyze else ''}{self._text}"))

    def __repr__(self) -> str:
        return f"<Query, not run>\n{self._text}"

    def _describe(self) -> list[tuple[str, str]]:
        tables = self._tables  # noqa: F841
        return self._connection.describe(self._text)[1]

    # ---- rows --------------------------------------------------------------------------------------------

    def _run(self, text: str) -> Relation:
        # The compiled part looks for tables in a variable of this name.
        tables = self._tables  # noqa: F841
        return self._connection.sql(text, self._parameters)

    def execute(self) -> Relation:
        """Runs it and returns its whole result."""
        return self._run(self._text)

    def stream(self) -> Stream:
        """Runs it and returns a stream of its rows, which are read while it runs."""
        tables = self._tables  # noqa: F841
        return self._connection.stream(self._text, self._parameters)

    def fetchall(self) -> list[Any]:
        """Runs it and returns all rows."""
        return self.execute().fetchall()

    def fetchone(self) -> Any:
        """Runs it and returns its first row; None if there is none."""
        return self.execute().fetchone()

    def fetchval(self) -> Any:
        """Runs it and returns the first value of its first row; None if there is no row."""
        return self.execute().fetchval()

    def rows(self, *, named: bool = False) -> list[Any]:
        """Runs it and returns all rows as tuples, or with `named=True` as dicts."""
        return self.execute().rows(named=named)

    def fetch_record_batch(self, rows_per_batch: int | None = None) -> pyarrow.RecordBatchReader:
        """Runs it and returns its rows in batches of Arrow, which are made while it runs."""
        return self.stream().fetch_record_batch(rows_per_batch)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.stream())

    def show(self) -> None:
        """Runs it and prints the first and last rows."""
        self.execute().show()

    def df(self, *, exact: bool = False) -> pandas.DataFrame:
        """Runs it and returns a pandas data frame."""
        return self.execute().df(exact=exact)

    def pl(self) -> polars.DataFrame:
        """Runs it and returns a polars data frame."""
        return self.execute().pl()

    def arrow(self) -> pyarrow.Table:
        """Runs it and returns a pyarrow table."""
        return self.execute().arrow()

    def fetchnumpy(self) -> dict[str, numpy.ndarray[Any, Any]]:
        """Runs it and returns a dict of numpy arrays."""
        return self.execute().fetchnumpy()

    # ---- rows that go elsewhere --------------------------------------------------------------------------

    def create(self, table: str) -> None:
        """Runs it and makes a table of its rows."""
        self._run(f"CREATE TABLE {_named(table)} AS {self._text}")

    def insert_into(self, table: str) -> None:
        """Runs it and adds its rows to a table."""
        self._run(f"INSERT INTO {_named(table)} {self._text}")

    def to_parquet(self, path: str | os.PathLike[str]) -> None:
        """Runs it and writes its rows to a Parquet file."""
        self._copy(path, "parquet")

    def to_csv(self, path: str | os.PathLike[str]) -> None:
        """Runs it and writes its rows to a CSV file, with a header."""
        self._copy(path, "csv")

    def _copy(self, path: str | os.PathLike[str], kind: str) -> None:
        file = os.fspath(path).replace("'", "''")
        self._run(f"COPY ({self._text}\n) TO '{file}' (FORMAT {kind})")


def _named(name: str) -> str:
    """A name as SQL takes it."""
    return name if _NAME.fullmatch(name) else '"' + name.replace('"', '""') + '"'


def _list(parts: Sequence[str], step: str) -> str:
    if not parts:
        raise InterfaceError(f"{step}() takes at least one expression")
    return ", ".join(parts)


def _in_order(parameters: Sequence[Any]) -> Sequence[Any]:
    if isinstance(parameters, (list, tuple)):
        return parameters
    raise InterfaceError("the parameters of a step are a list or tuple, one value for each ? of that step")
