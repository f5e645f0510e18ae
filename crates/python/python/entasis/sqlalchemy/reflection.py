"""Reflection: what `information_schema` says about tables, as SQLAlchemy's inspector wants it.

Each question is asked once for all the tables that it is about, and once for a single one. A name without a
schema means what it means in a statement: the temporary object, or else that of the default schema. A schema
may be one of the current database, `temp`, an attached database (its schema `main`), or `database.schema`.

The catalog holds the names of tables, schemas and sequences in lower case, and finds them in any; those that
are asked for by name are therefore returned as they were asked for.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any, Callable, Collection, Iterable, NamedTuple

from sqlalchemy import exc
from sqlalchemy.engine import Connection, reflection
from sqlalchemy.engine.reflection import ObjectKind, ObjectScope, ReflectionDefaults

from .names import type_of

#: The schema of temporary objects.
TEMP = "temp"
#: The schema that has two names.
MAIN, PUBLIC = "main", "public"

#: Actions of foreign keys that are not said.
_NO_ACTION = "NO ACTION"

#: What says which constraint it is: two tables may have checks or foreign keys of one name.
_CONSTRAINT = "constraint_catalog, constraint_schema, constraint_name, table_name"


class _Place(NamedTuple):
    """Where objects are."""

    database: str
    schema: str
    #: What precedes the names of other schemas of the database.
    prefix: str = ""


class _Relation(NamedTuple):
    """A table or view."""

    name: str
    schema: str
    is_view: bool
    is_temporary: bool


def _folded(name: str) -> str:
    """The name of a table, schema or sequence as the catalog holds it."""
    return name.lower()


def _single(multi: str) -> Callable[..., Any]:
    """The method for one table, by that for several."""

    def get(self: Any, connection: Connection, table_name: str, schema: str | None = None, **kw: Any) -> Any:
        found = getattr(self, multi)(
            connection,
            schema=schema,
            filter_names=[table_name],
            scope=ObjectScope.ANY,
            kind=ObjectKind.ANY,
            **kw,
        )
        try:
            return dict(found)[(schema, table_name)]
        except KeyError:
            raise exc.NoSuchTableError(f"{schema}.{table_name}" if schema else table_name) from None

    # The cache of an inspector is by the names of methods.
    get.__name__ = multi.replace("_multi", "")
    return reflection.cache(get)


class Reflection:
    """The part of the dialect that reads the catalog."""

    default_schema_name: str | None

    # Which objects there are.

    def _place(self, connection: Connection, schema: str | None) -> _Place:
        """Where a schema is, in the words of `information_schema`."""
        current: str = connection.exec_driver_sql("SELECT current_database()").scalar_one()
        if schema is None:
            return _Place(current, self.default_schema_name or MAIN)
        is_one_name = getattr(schema, "quote", None)
        schema = _folded(schema)
        if schema == PUBLIC:
            return _Place(current, MAIN)
        if schema == TEMP or is_one_name:
            return _Place(current, schema)
        database, dot, within = schema.rpartition(".")
        if dot:
            return _Place(database, MAIN if within == PUBLIC else within, f"{database}.")
        places = "SELECT catalog_name, schema_name FROM information_schema.schemata WHERE schema_name = ?"
        if (current, schema) in map(tuple, connection.exec_driver_sql(places, (schema,))):
            return _Place(current, schema)
        attached = "SELECT 1 FROM information_schema.schemata WHERE catalog_name = ?"
        if connection.exec_driver_sql(attached, (schema,)).first() is not None:
            return _Place(schema, MAIN, f"{schema}.")
        return _Place(current, schema)

    def _schemas(self, place: _Place, schema: str | None, scope: ObjectScope) -> list[str]:
        """The schemas in which objects are looked for, the first one first."""
        if schema is not None:
            return [place.schema]
        temporary = [TEMP] if scope in (ObjectScope.TEMPORARY, ObjectScope.ANY) else []
        return temporary + [place.schema]

    def _relations(
        self,
        connection: Connection,
        place: _Place,
        schema: str | None,
        scope: ObjectScope = ObjectScope.ANY,
        kind: ObjectKind = ObjectKind.ANY,
        filter_names: Collection[str] | None = None,
    ) -> list[_Relation]:
        """Tables and views; of two with one name, the one that a statement means."""
        sql = (
            "SELECT table_name, table_schema, table_type FROM information_schema.tables"
            " WHERE table_catalog = ? AND table_schema IN ?"
        )
        parameters: list[Any] = [place.database, self._schemas(place, schema, scope)]
        if filter_names is not None:
            sql += " AND table_name IN ?"
            parameters.append([_folded(name) for name in filter_names])
        found: dict[str, _Relation] = {}
        for name, own, what in connection.exec_driver_sql(sql, tuple(parameters)):
            # What the host program registered is temporary, too, and is in the schema main.
            is_temporary = own == TEMP or what == "LOCAL TEMPORARY"
            if schema is None and not is_temporary and name in found:
                continue
            relation = _Relation(name, own, what == "VIEW", is_temporary)
            is_wanted = (ObjectKind.VIEW if relation.is_view else ObjectKind.TABLE) in kind
            is_in_scope = (ObjectScope.TEMPORARY if is_temporary else ObjectScope.DEFAULT) in scope
            if is_wanted and (is_in_scope or place.schema == TEMP):
                found[name] = relation
        return sorted(found.values())

    def _names(self, connection: Connection, schema: str | None, *wanted: Any) -> list[str]:
        relations = self._relations(connection, self._place(connection, schema), schema, *wanted)
        return [relation.name for relation in relations]

    @reflection.cache
    def get_table_names(self, connection: Connection, schema: str | None = None, **kw: Any) -> list[str]:
        return self._names(connection, schema, ObjectScope.DEFAULT, ObjectKind.TABLE)

    @reflection.cache
    def get_view_names(self, connection: Connection, schema: str | None = None, **kw: Any) -> list[str]:
        return self._names(connection, schema, ObjectScope.DEFAULT, ObjectKind.VIEW)

    @reflection.cache
    def get_temp_table_names(self, connection: Connection, schema: str | None = None, **kw: Any) -> list[str]:
        return self._names(connection, None, ObjectScope.TEMPORARY, ObjectKind.TABLE)

    @reflection.cache
    def get_temp_view_names(self, connection: Connection, schema: str | None = None, **kw: Any) -> list[str]:
        return self._names(connection, None, ObjectScope.TEMPORARY, ObjectKind.VIEW)

    @reflection.cache
    def has_table(
        self, connection: Connection, table_name: str, schema: str | None = None, **kw: Any
    ) -> bool:
        self._ensure_has_table_connection(connection)  # type: ignore[attr-defined]
        place = self._place(connection, schema)
        return bool(self._relations(connection, place, schema, filter_names=[table_name]))

    @reflection.cache
    def get_schema_names(self, connection: Connection, **kw: Any) -> list[str]:
        sql = (
            "SELECT schema_name FROM information_schema.schemata WHERE catalog_name = current_database()"
            " AND schema_name <> ? ORDER BY schema_name"
        )
        return list(connection.exec_driver_sql(sql, (TEMP,)).scalars())

    @reflection.cache
    def has_schema(self, connection: Connection, schema_name: str, **kw: Any) -> bool:
        place = self._place(connection, schema_name)
        sql = "SELECT 1 FROM information_schema.schemata WHERE catalog_name = ? AND schema_name = ?"
        return connection.exec_driver_sql(sql, (place.database, place.schema)).first() is not None

    @reflection.cache
    def get_sequence_names(self, connection: Connection, schema: str | None = None, **kw: Any) -> list[str]:
        place = self._place(connection, schema)
        # Those of identity columns belong to these.
        sql = (
            "SELECT sequence_name FROM information_schema.sequences s"
            " WHERE sequence_catalog = ? AND sequence_schema IN ? AND NOT EXISTS (SELECT 1"
            " FROM information_schema.columns c WHERE c.is_identity = 'YES'"
            " AND c.table_catalog = s.sequence_catalog AND c.table_schema = s.sequence_schema"
            " AND c.column_default LIKE '%' || replace(s.sequence_name, '''', '''''') || ''')')"
            " ORDER BY sequence_name"
        )
        schemas = self._schemas(place, schema, ObjectScope.DEFAULT)
        return list(connection.exec_driver_sql(sql, (place.database, schemas)).scalars())

    @reflection.cache
    def has_sequence(
        self, connection: Connection, sequence_name: str, schema: str | None = None, **kw: Any
    ) -> bool:
        place = self._place(connection, schema)
        sql = (
            "SELECT 1 FROM information_schema.sequences"
            " WHERE sequence_catalog = ? AND sequence_schema IN ? AND sequence_name = ?"
        )
        schemas = self._schemas(place, schema, ObjectScope.ANY)
        return connection.exec_driver_sql(sql, (place.database, schemas, _folded(sequence_name))).first() is not None

    @reflection.cache
    def get_view_definition(
        self, connection: Connection, view_name: str, schema: str | None = None, **kw: Any
    ) -> str:
        place = self._place(connection, schema)
        for own in self._schemas(place, schema, ObjectScope.ANY):
            sql = (
                "SELECT view_definition FROM information_schema.views"
                " WHERE table_catalog = ? AND table_schema = ? AND table_name = ?"
            )
            found = connection.exec_driver_sql(sql, (place.database, own, _folded(view_name))).scalar()
            if found is not None:
                return str(found)
        raise exc.NoSuchTableError(f"{schema}.{view_name}" if schema else view_name)

    # What they are made of.

    def _rows(
        self,
        connection: Connection,
        sql: str,
        *,
        schema: str | None,
        filter_names: Collection[str] | None,
        scope: ObjectScope,
        kind: ObjectKind,
        **_: Any,
    ) -> dict[tuple[str | None, str], list[Any]]:
        """The rows of a query with the columns `table_schema` and `table_name`, by the objects asked for."""
        place = self._place(connection, schema)
        relations = self._relations(connection, place, schema, scope, kind, filter_names)
        asked = {_folded(name): name for name in filter_names or ()}
        wanted = {(own.schema, own.name): (schema, asked.get(own.name, own.name)) for own in relations}
        found: dict[tuple[str | None, str], list[Any]] = {key: [] for key in wanted.values()}
        if not found:
            return found
        schemas, names = {own.schema for own in relations}, [own.name for own in relations]
        sql = f"SELECT * FROM ({sql}) WHERE table_catalog = ? AND table_schema IN ? AND table_name IN ?"
        parameters = (place.database, list(schemas), names)
        for row in connection.exec_driver_sql(sql, parameters):
            key = wanted.get((row.table_schema, row.table_name))
            if key is not None:
                found[key].append(row)
        return found

    def get_multi_columns(self, connection: Connection, **asked: Any) -> Iterable[Any]:
        sql = "SELECT * FROM information_schema.columns"
        for key, rows in self._rows(connection, sql, **asked).items():
            yield key, [self._column(row) for row in sorted(rows, key=lambda row: row.ordinal_position)]

    def _column(self, row: Any) -> dict[str, Any]:
        is_identity = row.is_identity == "YES"
        return {
            "name": row.column_name,
            "type": type_of(row.data_type),
            "nullable": row.is_nullable == "YES",
            "default": None if is_identity else row.column_default,
            "autoincrement": is_identity,
        }

    def _keys(
        self, connection: Connection, kind_of_key: str, **asked: Any
    ) -> dict[tuple[str | None, str], list[tuple[str, list[str]]]]:
        """The keys of one kind of each table: their names and columns."""
        sql = (
            "SELECT t.table_catalog, t.table_schema, t.table_name, t.constraint_name, k.column_name,"
            " k.ordinal_position FROM information_schema.table_constraints t"
            " JOIN information_schema.key_column_usage k USING (table_catalog, table_schema, table_name,"
            f" constraint_name) WHERE t.constraint_type = '{kind_of_key}'"
        )
        keys = {}
        for table, rows in self._rows(connection, sql, **asked).items():
            columns = defaultdict(list)
            for row in sorted(rows, key=lambda row: (row.constraint_name, row.ordinal_position)):
                # The name of an index of another schema says which.
                columns[row.constraint_name.removeprefix(f"{row.table_schema}.")].append(row.column_name)
            keys[table] = list(columns.items())
        return keys

    def get_multi_pk_constraint(self, connection: Connection, **asked: Any) -> Iterable[Any]:
        keys = self._keys(connection, "PRIMARY KEY", **asked)
        for table, own in keys.items():
            if own:
                [(name, columns)] = own
                yield table, {"constrained_columns": columns, "name": name}
            else:
                yield table, ReflectionDefaults.pk_constraint()

    def get_multi_unique_constraints(self, connection: Connection, **asked: Any) -> Iterable[Any]:
        keys = self._keys(connection, "UNIQUE", **asked)
        for table, own in keys.items():
            yield table, [{"name": name, "column_names": columns} for name, columns in own]

    def get_multi_indexes(self, connection: Connection, **asked: Any) -> Iterable[Any]:
        # Unique indexes are constraints, too.
        keys = self._keys(connection, "UNIQUE", **asked)
        sql = "SELECT * FROM information_schema.statistics WHERE non_unique = 1"
        others = self._rows(connection, sql, **asked)
        for table, own in keys.items():
            found: list[dict[str, Any]] = [
                {
                    "name": name,
                    "column_names": columns,
                    "unique": True,
                    "duplicates_constraint": name,
                    "dialect_options": {},
                }
                for name, columns in own
            ]
            indexes = defaultdict(list)
            for row in sorted(others.get(table, ()), key=lambda row: (row.index_name, row.seq_in_index)):
                # The name of an index of another schema says which.
                indexes[row.index_name.removeprefix(f"{row.table_schema}.")].append(row.column_name)
            for name, columns in indexes.items():
                found.append({"name": name, "column_names": columns, "unique": False, "dialect_options": {}})
            yield table, found

    def get_multi_foreign_keys(self, connection: Connection, **asked: Any) -> Iterable[Any]:
        sql = (
            "SELECT f.table_catalog, f.table_schema, f.table_name, f.constraint_name, f.column_name,"
            " f.ordinal_position, r.update_rule, r.delete_rule, u.table_schema AS referred_schema,"
            " u.table_name AS referred_table, u.column_name AS referred_column"
            " FROM information_schema.referential_constraints r"
            f" JOIN information_schema.key_column_usage f USING ({_CONSTRAINT})"
            " JOIN information_schema.key_column_usage u"
            " ON u.constraint_catalog = r.unique_constraint_catalog"
            " AND u.constraint_schema = r.unique_constraint_schema"
            " AND u.constraint_name = r.unique_constraint_name"
            " AND u.ordinal_position = f.position_in_unique_constraint"
            # Columns of foreign keys are in this view, too.
            " AND u.position_in_unique_constraint IS NULL"
        )
        schema = asked["schema"]
        prefix = self._place(connection, schema).prefix
        for table, rows in self._rows(connection, sql, **asked).items():
            keys: dict[str, dict[str, Any]] = {}
            for row in sorted(rows, key=lambda row: (row.constraint_name, row.ordinal_position)):
                key = keys.setdefault(row.constraint_name, self._foreign_key(row, schema, prefix))
                key["constrained_columns"].append(row.column_name)
                key["referred_columns"].append(row.referred_column)
            yield table, list(keys.values())

    def _foreign_key(self, row: Any, schema: str | None, prefix: str) -> dict[str, Any]:
        is_near = row.referred_schema == row.table_schema
        rules = {"onupdate": row.update_rule, "ondelete": row.delete_rule}
        return {
            "name": row.constraint_name,
            "constrained_columns": [],
            "referred_schema": schema if is_near else prefix + row.referred_schema,
            "referred_table": row.referred_table,
            "referred_columns": [],
            "options": {name: rule for name, rule in rules.items() if rule != _NO_ACTION},
        }

    def get_multi_check_constraints(self, connection: Connection, **asked: Any) -> Iterable[Any]:
        sql = (
            "SELECT t.table_catalog, t.table_schema, t.table_name, t.constraint_name, c.check_clause"
            " FROM information_schema.table_constraints t JOIN information_schema.check_constraints c"
            f" USING ({_CONSTRAINT})"
            " WHERE t.constraint_type = 'CHECK'"
        )
        for table, rows in self._rows(connection, sql, **asked).items():
            rows = sorted(rows, key=lambda row: row.constraint_name)
            yield table, [
                {"name": row.constraint_name, "sqltext": row.check_clause} for row in rows
            ]

    get_columns = _single("get_multi_columns")
    get_pk_constraint = _single("get_multi_pk_constraint")
    get_unique_constraints = _single("get_multi_unique_constraints")
    get_indexes = _single("get_multi_indexes")
    get_foreign_keys = _single("get_multi_foreign_keys")
    get_check_constraints = _single("get_multi_check_constraints")
