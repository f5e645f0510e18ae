"""Queries, changes and declarations as texts of our SQL.

Most of it is what SQLAlchemy writes for standard SQL. `ON CONFLICT` is PostgreSQL's here, so SQLAlchemy's
own methods for it are used: `sqlalchemy.dialects.postgresql.insert` works as well as `entasis.sqlalchemy.insert`.
"""

# mypy: disable-error-code="override, no-untyped-call, no-any-return, attr-defined, union-attr"
# What a dialect overrides is hardly typed by SQLAlchemy.

from __future__ import annotations

from typing import Any

from sqlalchemy import exc, schema
from sqlalchemy import types as sqltypes
from sqlalchemy.dialects.postgresql.base import PGCompiler
from sqlalchemy.sql import compiler, elements

from . import types
from .keywords import RESERVED


class EntasisCompiler(compiler.SQLCompiler):
    """Queries and changes."""

    _on_conflict_target = PGCompiler._on_conflict_target
    visit_on_conflict_do_nothing = PGCompiler.visit_on_conflict_do_nothing
    visit_on_conflict_do_update = PGCompiler.visit_on_conflict_do_update

    # Clauses.

    def get_select_precolumns(self, select: Any, **kw: Any) -> str:
        if select._distinct_on:
            return f"DISTINCT ON ({', '.join(self.process(own, **kw) for own in select._distinct_on)}) "
        return "DISTINCT " if select._distinct else ""

    def visit_postgresql_distinct_on(self, element: Any, **kw: Any) -> str | None:
        """`select(…).ext(postgresql.distinct_on(…))`"""
        return f"ON ({', '.join(self.process(own, **kw) for own in element._distinct_on)})"

    def limit_clause(self, select: Any, **kw: Any) -> str:
        text = ""
        if select._limit_clause is not None:
            text += "\n LIMIT " + self.process(select._limit_clause, **kw)
        if select._offset_clause is not None:
            text += "\n OFFSET " + self.process(select._offset_clause, **kw)
        return text

    def fetch_clause(self, select: Any, fetch_clause: Any = None, **kw: Any) -> str:
        # The number of FETCH is a literal or a parameter; LIMIT takes any expression.
        if fetch_clause is None and not any(select._fetch_clause_options.values()):
            fetch_clause = select._fetch_clause
        if fetch_clause is None:
            return super().fetch_clause(select, **kw)
        text = "\n LIMIT " + self.process(fetch_clause, **kw)
        if select._offset_clause is not None:
            text += "\n OFFSET " + self.process(select._offset_clause, **kw)
        return text

    def update_from_clause(
        self, update_stmt: Any, from_table: Any, extra_froms: Any, from_hints: Any, **kw: Any
    ) -> str:
        return "FROM " + self._tables(extra_froms, from_hints, **kw)

    def delete_extra_from_clause(
        self, delete_stmt: Any, from_table: Any, extra_froms: Any, from_hints: Any, **kw: Any
    ) -> str:
        return "USING " + self._tables(extra_froms, from_hints, **kw)

    def _tables(self, tables: Any, hints: Any, **kw: Any) -> str:
        kw["asfrom"] = True
        return ", ".join(table._compiler_dispatch(self, fromhints=hints, **kw) for table in tables)

    def visit_tablesample(self, tablesample: Any, asfrom: bool = False, **kw: Any) -> str:
        # The share and the seed are literals.
        kw["literal_execute"] = True
        return str(super().visit_tablesample(tablesample, asfrom=asfrom, **kw))

    def visit_empty_set_expr(self, element_types: Any, **kw: Any) -> str:
        columns = (
            "NULL" if ty._isnull else f"CAST(NULL AS {self.dialect.type_compiler_instance.process(ty)})"
            for ty in element_types or [sqltypes.NULLTYPE]
        )
        return f"SELECT {', '.join(columns)} WHERE false"

    # Expressions.

    def visit_column(self, column: Any, *, include_table: bool = True, **kw: Any) -> str:
        # In a change, the table that is changed is known by its name without a schema.
        changed = self.dml_compile_state.dml_table if self.dml_compile_state is not None else None
        is_changed = changed is not None and column.table is changed
        if include_table and is_changed and self.preparer.schema_for_object(changed):
            name: str = super().visit_column(column, include_table=False, **kw)
            return f"{self.preparer.quote(changed.name)}.{name}"
        text: str = super().visit_column(column, include_table=include_table, **kw)
        return text

    def render_bind_cast(self, type_: Any, dbapi_type: Any, sqltext: str) -> str:
        name = self.dialect.type_compiler_instance.process(dbapi_type, identifier_preparer=self.preparer)
        return f"CAST({sqltext} AS {name})"

    def visit_truediv_binary(self, binary: Any, operator: Any, **kw: Any) -> str:
        # Of two integers, `/` is an integer.
        right = binary.right
        if right.type._type_affinity not in (sqltypes.Numeric, sqltypes.Float):
            right = elements.Cast(right, sqltypes.Double())
        return f"{self.process(binary.left, **kw)} / {self.process(right, **kw)}"

    def visit_bitwise_xor_op_binary(self, binary: Any, operator: Any, **kw: Any) -> str:
        return f"xor({self.process(binary.left, **kw)}, {self.process(binary.right, **kw)})"

    def visit_ilike_case_insensitive_operand(self, element: Any, **kw: Any) -> str:
        return str(element.element._compiler_dispatch(self, **kw))

    def visit_ilike_op_binary(self, binary: Any, operator: Any, **kw: Any) -> str:
        return self._like(binary, "ILIKE", **kw)

    def visit_not_ilike_op_binary(self, binary: Any, operator: Any, **kw: Any) -> str:
        return self._like(binary, "NOT ILIKE", **kw)

    def _like(self, binary: Any, word: str, **kw: Any) -> str:
        text = f"{self.process(binary.left, **kw)} {word} {self.process(binary.right, **kw)}"
        escape = binary.modifiers.get("escape")
        if escape is not None:
            text += " ESCAPE " + self.render_literal_value(escape, sqltypes.STRINGTYPE)
        return text

    def visit_regexp_match_op_binary(self, binary: Any, operator: Any, **kw: Any) -> str:
        return self._regexp("regexp_matches", binary, **kw)

    def visit_not_regexp_match_op_binary(self, binary: Any, operator: Any, **kw: Any) -> str:
        return "NOT " + self._regexp("regexp_matches", binary, **kw)

    def visit_regexp_replace_op_binary(self, binary: Any, operator: Any, **kw: Any) -> str:
        return self._regexp("regexp_replace", binary, **kw)

    def _regexp(self, function: str, binary: Any, **kw: Any) -> str:
        # The pattern of a replacement comes with what replaces it.
        arguments = [self.process(binary.left, **kw), self.process(binary.right, **kw)]
        flags = binary.modifiers["flags"]
        if flags is not None:
            arguments.append(self.render_literal_value(flags, sqltypes.STRINGTYPE))
        return f"{function}({', '.join(arguments)})"

    def visit_getitem_binary(self, binary: Any, operator: Any, **kw: Any) -> str:
        return f"{self.process(binary.left, **kw)}[{self.process(binary.right, **kw)}]"

    def visit_slice(self, element: Any, **kw: Any) -> str:
        """`column[2:3]` of a list."""
        if not isinstance(element.step, elements.Null):
            raise exc.CompileError("a slice of a list has no step here")
        ends = (element.start, element.stop)
        return ":".join("" if isinstance(end, elements.Null) else self.process(end, **kw) for end in ends)

    def visit_array(self, element: Any, **kw: Any) -> str:
        """`sqlalchemy.dialects.postgresql.array([…])`"""
        if not element.clauses and not element.type.item_type._isnull:
            return f"CAST([] AS {self.dialect.type_compiler_instance.process(element.type)})"
        return f"[{self.visit_clauselist(element, **kw)}]"

    # Functions.

    def visit_sequence(self, sequence: Any, **kw: Any) -> str:
        name = self.preparer.format_sequence(sequence).replace("'", "''")
        return f"nextval('{name}')"

    def visit_char_length_func(self, fn: Any, **kw: Any) -> str:
        """`func.char_length(text)`"""
        return "length" + self.function_argspec(fn, **kw)

    def visit_aggregate_strings_func(self, fn: Any, **kw: Any) -> str:
        kw["use_function_name"] = "string_agg"
        return super().visit_aggregate_strings_func(fn, **kw)


class EntasisDDLCompiler(compiler.DDLCompiler):
    """Declarations."""

    def visit_create_index(self, create: Any, include_schema: bool = True, **kw: Any) -> str:
        # An index whose name has no schema would be in the default one, and not in that of its table.
        return str(super().visit_create_index(create, include_schema=include_schema, **kw))

    def get_column_specification(self, column: Any, **kw: Any) -> str:
        text = super().get_column_specification(column, **kw)
        if column is column.table._autoincrement_column and column.identity is None:
            default = column.default
            if column.server_default is None and (default is None or getattr(default, "optional", False)):
                # An INTEGER PRIMARY KEY does not number its rows by itself.
                text += " GENERATED BY DEFAULT AS IDENTITY"
        return text

    def post_create_table(self, table: Any) -> str:
        text = ""
        options = {
            name: value for name, value in table.dialect_options["entasis"].items() if value is not None
        }
        on_commit = options.pop("on_commit", None)
        if options:
            written = (f"{name} = {self._option(table, name, value)}" for name, value in options.items())
            text += f"\n WITH ({', '.join(written)})"
        if on_commit is not None:
            words = str(on_commit).replace("_", " ").upper()
            if words not in ("PRESERVE ROWS", "DELETE ROWS", "DROP"):
                hint = "it is PRESERVE ROWS, DELETE ROWS or DROP"
                raise exc.CompileError(f"entasis_on_commit of {table} is {on_commit!r}: {hint}")
            text += f"\n ON COMMIT {words}"
        return text

    def _option(self, table: Any, name: str, value: Any) -> str:
        if name == "layout_key":
            columns = [value] if isinstance(value, (str, schema.Column)) else value
            names = (column if isinstance(column, str) else column.name for column in columns)
            return f"({', '.join(map(self.preparer.quote, names))})"
        if isinstance(value, (bool, int)):
            return str(value).lower()
        if isinstance(value, dict):
            # The encodings of single columns.
            own = (f"{self.preparer.quote(column)} = {_text(one)}" for column, one in value.items())
            return f"({', '.join(own)})"
        return _text(value)


def _text(value: Any) -> str:
    text = str(value).replace("'", "''")
    return f"'{text}'"


class EntasisTypeCompiler(compiler.GenericTypeCompiler):
    """Types."""

    def visit_float(self, type_: Any, **kw: Any) -> str:
        # Python's floats are doubles.
        return "REAL" if type_.precision is not None and type_.precision <= 24 else "DOUBLE"

    def visit_FLOAT(self, type_: Any, **kw: Any) -> str:
        return "FLOAT" if type_.precision is None else f"FLOAT({type_.precision})"

    def visit_NUMERIC(self, type_: Any, **kw: Any) -> str:
        return self.visit_DECIMAL(type_, **kw)

    def visit_DECIMAL(self, type_: Any, **kw: Any) -> str:
        if type_.precision is None:
            # As many decimals as SQLAlchemy gives when it is not told how many.
            return f"DECIMAL(38, {type_._default_decimal_return_scale})"
        scale = "" if type_.scale is None else f", {type_.scale}"
        return f"DECIMAL({type_.precision}{scale})"

    def visit_DATETIME(self, type_: Any, **kw: Any) -> str:
        return self.visit_TIMESTAMP(type_, **kw)

    def visit_TIMESTAMP(self, type_: Any, **kw: Any) -> str:
        return "TIMESTAMP WITH TIME ZONE" if type_.timezone else "TIMESTAMP"

    def visit_datetime(self, type_: Any, **kw: Any) -> str:
        return self.visit_TIMESTAMP(type_, **kw)

    def visit_TIME(self, type_: Any, **kw: Any) -> str:
        return "TIME WITH TIME ZONE" if type_.timezone else "TIME"

    def visit_enum(self, type_: Any, **kw: Any) -> str:
        return self.visit_ENUM(type_, **kw) if type_.native_enum else super().visit_enum(type_, **kw)

    def visit_ENUM(self, type_: Any, **kw: Any) -> str:
        return f"ENUM({', '.join(map(_text, type_.enums))})"

    def visit_NCHAR(self, type_: Any, **kw: Any) -> str:
        return self.visit_CHAR(type_, **kw)

    def visit_NCLOB(self, type_: Any, **kw: Any) -> str:
        return self.visit_TEXT(type_, **kw)

    def visit_JSON(self, type_: Any, **kw: Any) -> str:
        return "JSON"

    def visit_INTERVAL(self, type_: Any, **kw: Any) -> str:
        return "INTERVAL"

    def visit_TIMESTAMP_NS(self, type_: Any, **kw: Any) -> str:
        return "TIMESTAMP_NS"

    def visit_TINYINT(self, type_: Any, **kw: Any) -> str:
        return "TINYINT"

    def visit_UTINYINT(self, type_: Any, **kw: Any) -> str:
        return "UTINYINT"

    def visit_USMALLINT(self, type_: Any, **kw: Any) -> str:
        return "USMALLINT"

    def visit_UINTEGER(self, type_: Any, **kw: Any) -> str:
        return "UINTEGER"

    def visit_UBIGINT(self, type_: Any, **kw: Any) -> str:
        return "UBIGINT"

    def visit_HUGEINT(self, type_: Any, **kw: Any) -> str:
        # As the catalog calls it, so that what is reflected is the same.
        return "DECIMAL(38, 0)"

    def visit_ARRAY(self, type_: Any, **kw: Any) -> str:
        length = getattr(type_, "length", None)
        brackets = "[]" * (type_.dimensions or 1) if length is None else f"[{length}]"
        return self.process(type_.item_type, **kw) + brackets

    def visit_STRUCT(self, type_: types.STRUCT, **kw: Any) -> str:
        quote = self.dialect.identifier_preparer.quote
        fields = (f"{quote(name)} {self.process(ty, **kw)}" for name, ty in type_.fields.items())
        return f"STRUCT({', '.join(fields)})"

    def visit_MAP(self, type_: types.MAP, **kw: Any) -> str:
        return f"MAP({self.process(type_.key_type, **kw)}, {self.process(type_.value_type, **kw)})"


class EntasisIdentifierPreparer(compiler.IdentifierPreparer):
    """Names: in quotes where they would be read as something else."""

    reserved_words = set(RESERVED)

    def quote_schema(self, schema: str, force: Any = None) -> str:
        """`sales`, or `archive.sales` for a schema of an attached database."""
        if getattr(schema, "quote", None):
            return self.quote(schema)
        return ".".join(map(self.quote, schema.split(".")))
