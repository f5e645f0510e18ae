"""Ibis' expressions as texts of our SQL: those that it makes for DuckDB, except where ours is another.

Operations that our SQL has no words for are among the compiler's unsupported ones, so that Ibis refuses them by
name. Most of them need functions of functions (`LAMBDA`).
"""

# mypy: ignore-errors
# Ibis has no types for backends.

from __future__ import annotations

from typing import Any

import ibis.expr.operations as ops
import sqlglot.expressions as sge
from ibis.backends.sql.compilers.duckdb import DuckDBCompiler
from sqlglot.dialects.duckdb import DuckDB


class Entasis(DuckDB):
    """The dialect of sqlglot."""

    class Generator(DuckDB.Generator):
        """Writes texts."""

        TRANSFORMS = {
            **DuckDB.Generator.TRANSFORMS,
            # Of two integers, `/` is an integer here.
            sge.Div: lambda self, e: f"{self.sql(e, 'this')} / CAST({self.sql(e, 'expression')} AS DOUBLE)",
        }

        def datatype_sql(self, expression: sge.DataType) -> str:
            """A type; that of intervals has no unit."""
            if expression.this == sge.DataType.Type.INTERVAL or isinstance(expression.this, sge.Interval):
                return "INTERVAL"
            return super().datatype_sql(expression)


class EntasisCompiler(DuckDBCompiler):
    """The compiler of expressions."""

    __slots__ = ()

    dialect = Entasis

    UNSUPPORTED_OPS = (
        *DuckDBCompiler.UNSUPPORTED_OPS,
        # Functions of functions.
        ops.ArrayDistinct,
        ops.ArrayFilter,
        ops.ArrayIntersect,
        ops.ArrayMap,
        ops.ArrayRemove,
        ops.ArrayRepeat,
        ops.ArrayUnion,
        ops.ArrayZip,
        # Functions that are missing.
        ops.ArrayAll,
        ops.ArrayAny,
        ops.ArrayFlatten,
        ops.Hash,
        ops.MapMerge,
        ops.TimestampRange,
        # There are none in Python.
        ops.ScalarUDF,
        ops.AggUDF,
    )

    def visit_HexDigest(self, op: Any, *, arg: Any, how: str) -> Any:
        """The digest as a text; ours of SHA-256 is a BLOB."""
        text = super().visit_HexDigest(op, arg=arg, how=how)
        return self.f.lower(self.f.hex(text)) if how == "sha256" else text

    def visit_NonNullLiteral(self, op: Any, *, value: Any, dtype: Any) -> Any:
        """A literal; that of a struct names its fields."""
        if not dtype.is_struct():
            return super().visit_NonNullLiteral(op, value=value, dtype=dtype)
        fields = [self.visit_Literal(ops.Literal(own, dtype[name]), value=own, dtype=dtype[name])
                  for name, own in value.items()]  # fmt: skip
        return self.cast(self.visit_StructColumn(op, names=value.keys(), values=fields), dtype)

    def visit_StructColumn(self, op: Any, *, names: Any, values: Any) -> Any:
        """`STRUCT_PACK("a" := 1)`"""
        return self.f.struct_pack(
            *(
                sge.PropertyEQ(this=sge.to_identifier(name, quoted=self.quoted), expression=value)
                for name, value in zip(names, values)
            )
        )


compiler = EntasisCompiler()
