"""The dialect: what the database can do, and how it is opened.

A file is opened by each connection of the pool; those of one process share it. A database in memory is opened
once and its connections are duplicates of the first one, so that all see the same tables; `Engine.dispose`
ends it, as it does with SQLite's.
"""

# mypy: disable-error-code="override, misc"
# The levels that SQLAlchemy's types know do not include ours.

from __future__ import annotations

import threading
from types import ModuleType
from typing import Any, Callable

from sqlalchemy import event, exc, pool, util
from sqlalchemy.engine import URL, Connection, Engine, default
from sqlalchemy.engine.interfaces import BindTyping
from sqlalchemy.schema import Table
from sqlalchemy.sql.compiler import InsertmanyvaluesSentinelOpts

from . import compiler, types
from .connection import AUTOCOMMIT, LEVELS, PooledConnection
from .reflection import Reflection

#: What the query of a URL may say, and how it is read for `entasis.connect`.
OPTIONS: dict[str, Callable[[str], Any]] = {
    "threads": int,
    "memory_limit": str,
    "read_only": util.asbool,
    "allow_missing_log": util.asbool,
}
#: The database that is not a file.
MEMORY = ":memory:"


class EntasisExecutionContext(default.DefaultExecutionContext):
    """One execution."""

    def fire_sequence(self, seq: Any, type_: Any) -> Any:
        """The next value of a sequence, for a column whose value must be known before the row is inserted."""
        name = self.identifier_preparer.format_sequence(seq).replace("'", "''")
        return self._execute_scalar(f"SELECT nextval('{name}')", type_)

    def post_exec(self) -> None:
        """Keeps the number of inserted rows, which SQLAlchemy would ask for when the cursor is closed."""
        if self.isinsert and self._rowcount is None:
            self._rowcount = self.cursor.rowcount


class EntasisDialect(Reflection, default.DefaultDialect):
    """SQLAlchemy's dialect `entasis`."""

    name = "entasis"
    driver = "entasis"
    default_paramstyle = "qmark"
    default_schema_name = "main"

    statement_compiler = compiler.EntasisCompiler
    ddl_compiler = compiler.EntasisDDLCompiler
    type_compiler_cls = compiler.EntasisTypeCompiler
    preparer = compiler.EntasisIdentifierPreparer
    execution_ctx_cls = EntasisExecutionContext
    colspecs = types.COLSPECS
    bind_typing = BindTyping.RENDER_CASTS

    supports_statement_cache = True
    supports_native_boolean = True
    supports_native_decimal = True
    supports_native_enum = True
    supports_native_uuid = True
    returns_native_bytes = True
    supports_sequences = True
    sequences_optional = True
    supports_identity_columns = True
    postfetch_lastrowid = False
    supports_default_values = True
    supports_default_metavalue = True
    supports_empty_insert = False
    supports_multivalues_insert = True
    supports_is_distinct_from = True
    supports_sane_rowcount = True
    supports_sane_multi_rowcount = True
    tuple_in_values = True

    insert_returning = True
    update_returning = True
    delete_returning = True
    update_returning_multifrom = True
    delete_returning_multifrom = True
    use_insertmanyvalues = True
    use_insertmanyvalues_wo_returning = False
    insertmanyvalues_implicit_sentinel = InsertmanyvaluesSentinelOpts.ANY_AUTOINCREMENT

    # Names have no limit; longer ones than this are not of use to anybody.
    max_identifier_length = 255

    construct_arguments = [
        (
            Table,
            {
                "layout": None,
                "layout_key": None,
                "layout_curve": None,
                "partitions": None,
                "ghost": None,
                "compression": None,
                "read_sla": None,
                "update_sla": None,
                "on_commit": None,
            },
        )
    ]

    def __init__(
        self,
        json_serializer: Callable[[Any], str] | None = None,
        json_deserializer: Callable[[str], Any] | None = None,
        **kw: Any,
    ) -> None:
        super().__init__(**kw)
        self._json_serializer = json_serializer
        self._json_deserializer = json_deserializer
        self._memory: Any = None
        self._memory_lock = threading.Lock()

    @classmethod
    def import_dbapi(cls) -> ModuleType:
        """The package, which is its own DB-API."""
        import entasis

        return entasis

    # Opening.

    @classmethod
    def get_pool_class(cls, url: URL) -> type[pool.Pool]:
        """Connections are independent of each other, those to a database in memory, too."""
        return pool.QueuePool

    def create_connect_args(self, url: URL) -> Any:
        """The arguments of `entasis.connect`: the file, and options from the URL's query."""
        if url.username or url.password or url.host or url.port:
            raise exc.ArgumentError(
                f"{url!r} names a server, but a database is a file: entasis:///relative.db, "
                "entasis:////absolute.db, or entasis:// for one in memory"
            )
        options: dict[str, Any] = {}
        for name, value in url.query.items():
            if name not in OPTIONS:
                raise exc.ArgumentError(f"{url!r} has no option {name}: options are {', '.join(OPTIONS)}")
            if not isinstance(value, str):
                raise exc.ArgumentError(f"{url!r} gives the option {name} twice")
            try:
                options[name] = OPTIONS[name](value)
            except ValueError:
                raise exc.ArgumentError(f"{url!r}: the option {name} cannot be {value!r}") from None
        return [url.database or MEMORY], options

    def connect(self, *arguments: Any, **options: Any) -> Any:
        """Opens the database, or another connection to the one in memory."""
        import entasis

        if arguments != (MEMORY,):
            return PooledConnection(entasis.connect(*arguments, **options))
        with self._memory_lock:
            if self._memory is None:
                self._memory = entasis.connect(*arguments, **options)
            return PooledConnection(self._memory.duplicate())

    @classmethod
    def engine_created(cls, engine: Engine) -> None:
        """Lets go of a database in memory when its engine is disposed of."""
        event.listen(engine, "engine_disposed", lambda disposed: disposed.dialect._end_memory())

    def _end_memory(self) -> None:
        with self._memory_lock:
            memory, self._memory = self._memory, None
        if memory is not None:
            memory.close()

    # Transactions.

    def do_begin(self, dbapi_connection: Any) -> None:
        """Begins a transaction."""
        dbapi_connection.begin()

    def get_isolation_level_values(self, dbapi_conn: Any) -> Any:
        """The names of the levels."""
        return list(LEVELS)

    def set_isolation_level(self, dbapi_connection: Any, level: str) -> None:
        """Sets the level from the next transaction on."""
        dbapi_connection.level = level

    def get_isolation_level(self, dbapi_connection: Any) -> Any:
        """The level that was set."""
        return dbapi_connection.level

    def detect_autocommit_setting(self, dbapi_conn: Any) -> bool:
        """Whether each statement is committed."""
        return bool(dbapi_conn.level == AUTOCOMMIT)

    # State.

    def do_ping(self, dbapi_connection: Any) -> bool:
        """Whether the connection is alive; it is not if it was closed, or opened by another process."""
        dbapi_connection.execute("SELECT 1")
        return True

    def is_disconnect(self, e: Any, connection: Any, cursor: Any) -> bool:
        """Whether an error says that a connection is of no use any more."""
        message = str(e)
        return message.startswith("the connection is closed") or "belongs to process" in message

    def _get_server_version_info(self, connection: Connection) -> tuple[int, ...]:
        import entasis

        return tuple(int(part) for part in entasis.__version__.split("-")[0].split("."))

    def _get_default_schema_name(self, connection: Connection) -> str:
        return str(connection.exec_driver_sql("SELECT current_schema()").scalar())

    def _check_max_identifier_length(self, connection: Connection) -> None:
        return None
