"""Entasis for Ibis: `ibis.entasis.connect("my.db")`.

Expressions become SQL (`compiler`), and results come through Arrow. What Ibis calls a database is a schema of
ours, and a catalog one of our databases.
"""

# mypy: ignore-errors
# Ibis has no types for backends.

from __future__ import annotations

import contextlib
import datetime
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import ibis
import ibis.expr.operations as ops
import ibis.expr.schema as sch
import ibis.expr.types as ir
import sqlglot as sg
import sqlglot.expressions as sge
from ibis import util
from ibis.backends import CanListDatabase, NoExampleLoader, UrlFromPath
from ibis.backends.sql import SQLBackend
from ibis.common import exceptions as exc

import entasis

from .compiler import compiler as _compiler

if TYPE_CHECKING:
    import pandas
    import pyarrow


class Backend(SQLBackend, CanListDatabase, UrlFromPath, NoExampleLoader):
    """A database, as Ibis sees it."""

    name = "entasis"
    compiler = _compiler
    supports_temporary_tables = True

    # Connections.

    @property
    def version(self) -> str:
        """The version of the package."""
        return entasis.__version__

    def do_connect(self, database: str | Path = ":memory:", **options: Any) -> None:
        """Opens a database: a file, or one in memory. Options are those of `entasis.connect`."""
        self.con = entasis.connect(str(database), **options)

    @classmethod
    def from_connection(cls, con: entasis.Connection, /) -> Backend:
        """A backend that uses a connection of the package."""
        backend = cls()
        backend._can_reconnect = False
        backend.con = con
        return backend

    def raw_sql(self, query: str | sge.Expression, **_: Any) -> entasis.Cursor:
        """Runs a statement, and returns its cursor."""
        text = query if isinstance(query, str) else query.sql(dialect=self.dialect)
        return self.con.execute(text)

    @contextlib.contextmanager
    def _safe_raw_sql(self, query: str | sge.Expression, **_: Any) -> Iterator[entasis.Cursor]:
        cursor = self.raw_sql(query)
        try:
            yield cursor
        finally:
            cursor.close()

    # Names.

    @property
    def current_database(self) -> str:
        """The schema in which names are looked up."""
        return str(self.con.execute("SELECT current_schema()").fetchone()[0])

    @property
    def current_catalog(self) -> str:
        """The database in which names are looked up."""
        return str(self.con.execute("SELECT current_database()").fetchone()[0])

    def list_databases(self, *, like: str | None = None, catalog: str | None = None) -> list[str]:
        """The schemas of the current database, or of another one that is attached."""
        sql = "SELECT schema_name FROM information_schema.schemata WHERE catalog_name = ? ORDER BY 1"
        rows = self.con.execute(sql, [catalog or self.current_catalog]).fetchall()
        return self._filter_with_like([name for (name,) in rows], like)

    def list_tables(self, *, like: str | None = None, database: tuple[str, str] | str | None = None) -> list[str]:
        """The tables and views of a schema, and those of the connection."""
        place = self._to_sqlglot_table(database)
        sql = (
            "SELECT table_name FROM information_schema.tables WHERE table_catalog = ?"
            " AND (table_schema = ? AND table_type <> 'LOCAL TEMPORARY' OR ? AND table_schema = 'temp') ORDER BY 1"
        )
        catalog, schema = place.catalog or self.current_catalog, place.db or self.current_database
        rows = self.con.execute(sql, [catalog, schema, database is None]).fetchall()
        return self._filter_with_like([name for (name,) in rows], like)

    def get_schema(
        self, table_name: str, *, catalog: str | None = None, database: str | None = None
    ) -> sch.Schema:
        """The columns of a table or view."""
        table = sg.table(table_name, db=database, catalog=catalog, quoted=True)
        try:
            return self._schema(f"DESCRIBE {table.sql(self.dialect)}")
        except entasis.ProgrammingError as error:
            if error.sqlstate == "42P01":
                raise exc.TableNotFound(table_name) from error
            raise

    def _get_schema_using_query(self, query: str) -> sch.Schema:
        return self._schema(f"DESCRIBE {query}")

    def _schema(self, described: str) -> sch.Schema:
        type_of = self.compiler.type_mapper.from_string
        rows = self.con.execute(described).fetchall()
        return sch.Schema({name: type_of(ty, nullable=null == "YES") for name, ty, null, *_ in rows})

    # Changes.

    def create_table(
        self,
        name: str,
        /,
        obj: Any = None,
        *,
        schema: Any = None,
        database: tuple[str, str] | str | None = None,
        temp: bool = False,
        overwrite: bool = False,
    ) -> ir.Table:
        """Makes a table: of the rows of an expression or a data frame, of a schema, or of both."""
        if obj is None and schema is None:
            raise ValueError("a table is made of rows (obj), of a schema, or of both")
        place = self._to_sqlglot_table(database)
        table = sg.table(name, db=place.db or None, catalog=place.catalog or None, quoted=True)
        types, query = self.compiler.type_mapper, None
        if obj is None:
            columns = ibis.schema(schema).to_sqlglot_column_defs(types.dialect)
            table = sge.Schema(this=table, expressions=columns)
        else:
            rows = obj if isinstance(obj, ir.Expr) else ibis.memtable(obj)
            rows = rows if schema is None else rows.cast(schema)
            self._run_pre_execute_hooks(rows)
            # The types of Ibis, of which some expressions have wider ones here.
            columns = [
                sg.cast(sg.column(column, quoted=True), types.from_ibis(ty)).as_(column, quoted=True)
                for column, ty in rows.schema().items()
            ]
            query = sg.select(*columns).from_(self.compiler.to_sqlglot(rows).subquery("rows"))
        kind = sge.Properties(expressions=[sge.TemporaryProperty()] if temp else [])
        self.raw_sql(sge.Create(kind="TABLE", this=table, expression=query, properties=kind, replace=overwrite))
        return self.table(name, database=(place.catalog or None, place.db) if place.db else None)

    def drop_table(
        self, name: str, /, *, database: tuple[str, str] | str | None = None, force: bool = False
    ) -> None:
        """Drops a table; with `force` it need not exist."""
        self._drop("TABLE", name, database, force)

    def drop_view(self, name: str, /, *, database: tuple[str, str] | str | None = None, force: bool = False) -> None:
        """Drops a view; with `force` it need not exist."""
        self._drop("VIEW", name, database, force)

    def _drop(self, kind: str, name: str, database: tuple[str, str] | str | None, force: bool) -> None:
        # A text, because Ibis and sqlglot have not always agreed on the tree of this statement.
        place = self._to_sqlglot_table(database)
        table = sg.table(name, db=place.db or None, catalog=place.catalog or None, quoted=True)
        self.raw_sql(f"DROP {kind} {'IF EXISTS ' if force else ''}{table.sql(self.dialect)}")

    def read_csv(self, path: str | Path, /, *, table_name: str | None = None, **options: Any) -> ir.Table:
        """The rows of CSV files as a temporary view. Options are those of `read_csv` in SQL."""
        return self._file("read_csv", path, table_name, options)

    def read_parquet(self, path: str | Path, /, *, table_name: str | None = None, **options: Any) -> ir.Table:
        """The rows of Parquet files as a temporary view. Options are those of `read_parquet` in SQL."""
        return self._file("read_parquet", path, table_name, options)

    def _file(self, function: str, path: str | Path, name: str | None, options: Mapping[str, Any]) -> ir.Table:
        name = name or util.gen_name(function)
        values = [sge.convert(str(path))]
        values += [sge.Kwarg(this=sge.to_identifier(key), expression=sge.convert(v)) for key, v in options.items()]
        rows = sg.select("*").from_(sge.Anonymous(this=function, expressions=values))
        kind = sge.Properties(expressions=[sge.TemporaryProperty()])
        view = sg.table(name, quoted=True)
        self.raw_sql(sge.Create(kind="VIEW", this=view, expression=rows, properties=kind, replace=True))
        return self.table(name)

    # Data of the program.

    def _register_in_memory_table(self, op: ops.InMemoryTable) -> None:
        self.con.register(op.name, op.data.to_pyarrow(op.schema))

    def _make_memtable_finalizer(self, name: str) -> Any:
        def finalizer(name: str = name, con: entasis.Connection = self.con) -> None:
            with contextlib.suppress(entasis.Error):
                con.unregister(name)

        return finalizer

    # Results.

    def to_pyarrow(
        self, expr: ir.Expr, /, *, params: Any = None, limit: int | str | None = None, **_: Any
    ) -> pyarrow.Table | Any:
        """The result as a table of Arrow."""
        return expr.__pyarrow_result__(self._arrow(expr, params, limit))

    def to_pyarrow_batches(
        self,
        expr: ir.Expr,
        /,
        *,
        params: Any = None,
        limit: int | str | None = None,
        chunk_size: int = 1_000_000,
        **_: Any,
    ) -> pyarrow.RecordBatchReader:
        """The result in parts of so many rows at most."""
        return self._arrow(expr, params, limit).to_reader(max_chunksize=chunk_size)

    def execute(
        self, expr: ir.Expr, /, *, params: Any = None, limit: int | str | None = None, **_: Any
    ) -> pandas.DataFrame | pandas.Series | Any:
        """The result as pandas has it: a data frame, a series or a value."""
        import pandas
        import pyarrow
        from ibis.formats.pandas import PandasData

        table = self._arrow(expr, params, limit)
        # Without NULLs numpy has a type; lists and structs are Python's.
        frame = pandas.DataFrame(
            {
                name: column.to_pylist()
                if column.null_count or pyarrow.types.is_nested(column.type)
                else column.to_pandas()
                for name, column in zip(table.column_names, table.columns)
            }
        )
        return expr.__pandas_result__(PandasData.convert_table(frame, expr.as_table().schema()))

    def _arrow(self, expr: ir.Expr, params: Any, limit: int | str | None) -> pyarrow.Table:
        """The rows of an expression in Arrow's types for those of Ibis."""
        import pyarrow

        self._run_pre_execute_hooks(expr)
        rows = expr.as_table()
        with self._safe_raw_sql(self.compile(rows, params=params, limit=limit)) as cursor:
            found = cursor.arrow()
        wanted = rows.schema().to_pyarrow()
        columns = [_as(column, ty) for column, ty in zip(found.columns, wanted.types)]
        return pyarrow.Table.from_arrays(columns, schema=wanted)


def _as(column: pyarrow.ChunkedArray, wanted: pyarrow.DataType) -> pyarrow.ChunkedArray:
    """A column in the type that Ibis has for it."""
    import pyarrow

    if column.type == wanted:
        return column
    if pyarrow.types.is_interval(column.type):
        days = [None if own is None else _timedelta(own) for own in column.to_pylist()]
        return pyarrow.chunked_array([pyarrow.array(days, wanted)])
    if isinstance(column.type, pyarrow.BaseExtensionType) and pyarrow.types.is_string(wanted):
        texts = [None if own is None else str(own) for own in column.to_pylist()]
        return pyarrow.chunked_array([pyarrow.array(texts, wanted)])
    return column.cast(wanted)


def _timedelta(span: Any) -> datetime.timedelta:
    """A span of months, days and nanoseconds as a `timedelta`, a month as 30 days."""
    return datetime.timedelta(days=span.months * 30 + span.days, microseconds=span.nanoseconds // 1000)
