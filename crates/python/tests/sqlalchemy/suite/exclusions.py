"""What SQLAlchemy's suite tests, and what it cannot test here, with reasons."""

from __future__ import annotations

from sqlalchemy.testing import exclusions
from sqlalchemy.testing.requirements import SuiteRequirements

#: What a dialect need not have, and this one has.
HAS = """
aggregate_order_by
array_type
autocommit
boolean_col_expressions
check_constraint_reflection
create_or_replace_view
create_table_as
create_temp_table_as
cross_schema_fk_reflection
ctes
ctes_with_update_delete
ctes_with_values
date_historic
datetime_historic
datetime_interval
datetime_literals
datetime_timezone
default_schema_name_switch
delete_from
except_
expression_server_defaults
fetch_expression
fetch_first
fetch_no_order_by
fetch_offset_with_options
fetch_ties
fk_constraint_option_reflection_ondelete_restrict
fk_constraint_option_reflection_onupdate_restrict
float_or_double_precision_behaves_generically
foreign_key_constraint_name_reflection
foreign_key_constraint_option_reflection_ondelete
foreign_key_constraint_option_reflection_onupdate
has_temp_table
identity_columns
identity_columns_standard
implicit_default_schema
index_ddl_if_exists
infinity_floats
inline_check_constraint_reflection
intersect
isolation_level
json_type
mod_operator_as_percent_sign
nullsordering
nvarchar_types
order_by_label_with_expression
percent_schema_names
precision_numerics_enotation_small
precision_numerics_many_significant_digits
precision_numerics_retains_significant_digits
reflects_pk_names
regexp_match
regexp_replace
savepoints
schema_create_delete
schemas
sequences
server_defaults
skip_autocommit_rollback
supports_bitwise_and
supports_bitwise_not
supports_bitwise_or
supports_bitwise_shift
supports_bitwise_xor
supports_distinct_on
table_ddl_if_exists
table_value_constructor
temp_table_names
temporary_views
time_timezone
timestamp_microseconds
tuple_in
unicode_ddl
unique_constraints_reflect_as_index
update_from
uuid_data_type
views
window_functions
window_range
window_range_non_numeric
window_range_numeric
""".split()

_INDEXES = "unique indexes are constraints, too, and these tests expect one of both; test_dialect.py asks for the others"

#: What it lacks.
LACKS = {
    "async_dialect": "the dialect is not asynchronous",
    "comment_reflection": "there is no COMMENT ON",
    "comment_reflection_full_unicode": "there is no COMMENT ON",
    "constraint_comment_reflection": "there is no COMMENT ON",
    "temp_table_comment_reflection": "there is no COMMENT ON",
    "column_collation_reflection": "there are no collations",
    "computed_columns": "there are no generated columns",
    "computed_columns_default_persisted": "there are no generated columns",
    "computed_columns_reflect_persisted": "there are no generated columns",
    "computed_columns_stored": "there are no generated columns",
    "computed_columns_virtual": "there are no generated columns",
    "ctes_on_dml": "a WITH holds queries, no changes",
    "dbapi_lastrowid": "cursors have no lastrowid: RETURNING gives the keys",
    "deferrable_fks": "constraints cannot be deferred",
    "emulated_lastrowid": "cursors have no lastrowid: RETURNING gives the keys",
    "emulated_lastrowid_even_with_sequences": "cursors have no lastrowid: RETURNING gives the keys",
    "fetch_percent": "FETCH FIRST n PERCENT is refused",
    "fk_constraint_option_reflection_ondelete_noaction": "NO ACTION is the default, which is not reflected",
    "foreign_keys_reflect_as_index": "a foreign key has no index",
    "index_reflects_included_columns": "indexes have no INCLUDE",
    "indexes_with_expressions": "indexes are of columns",
    "index_reflection": _INDEXES,
    "unique_index_reflect_as_unique_constraints": "they do, but the tests ask for the indexes, too",
    "implements_get_lastrowid": "cursors have no lastrowid: without RETURNING, keys are not known",
    "json_deserializer_binary": "JSON is a text",
    "legacy_unconditional_json_extract": "JSON has no functions",
    "materialized_views": "there are no materialized views",
    "materialized_views_reflect_pk": "there are no materialized views",
    "non_updating_cascade": "foreign keys have ON UPDATE CASCADE",
    "reflect_indexes_with_ascdesc_as_expression": "indexes are of columns",
    "reflect_indexes_with_expressions": "indexes are of columns",
    "reflect_table_options": "the options of a table are not reflected",
    "reflect_tables_no_columns": "a table has columns",
    "repeated_column_foreign_keys": "a foreign key names a column once",
    "two_phase_transactions": "there is no PREPARE TRANSACTION",
}

_IDENTITY = "how an identity column counts is not reflected yet"
_PARTS = "JSON is a text without functions of its parts"
_FOLDED = "names of constraints are kept in lower case"
_DIVISION = "decimals divided by decimals are a DOUBLE"

#: Tests of which no requirement says what they need, as patterns of `Class::test[parameters]`, and why they cannot
#: pass.
TESTS = {
    "*::test_reflect_identity*": _IDENTITY,
    "ComponentReflectionTestExtra::test_check_constraint_inline*": _FOLDED,
    "ComponentReflectionTestExtra::test_check_constraint_standalone*": _FOLDED,
    "ComponentReflectionTest::*quoted_name[mixedCase*": _FOLDED,
    "ComponentReflectionTest::*quoted_name[??_*": _FOLDED,
    "ComponentReflectionTest::test_get_pk_constraint[True*": "the name of the key is another here (suite.py)",
    "ComponentReflectionTest::test_get_temp_table_indexes": _INDEXES,
    "*TableDDLTest::test_create_index_if_not_exists": _INDEXES,
    "*TableDDLTest::test_drop_index_if_exists": _INDEXES,
    "JSONTest::test_index*": _PARTS,
    "JSONTest::test_path*": _PARTS,
    "LongNameBlowoutTest::test_long_convention_name[ix-*": _INDEXES,
    "ComponentReflectionTest::test_reflect_table_temp_table": "a VARCHAR has no length",
    "ComponentReflectionTestExtra::test_string_length_reflection*": "a VARCHAR has no length",
    "IntegerTest::test_huge_int[*": "a transaction does not see what another one makes after it has begun",
    "TrueDivTest::test_truediv_divisor[numeric_38_digit_divisor*": _DIVISION,
    "TrueDivTest::test_truediv_divisor[numeric_many_decimals*": _DIVISION,
}


class Requirements(SuiteRequirements):
    """What we have."""


for _name in HAS:
    setattr(Requirements, _name, property(lambda self: exclusions.open()))
for _name, _why in LACKS.items():
    setattr(Requirements, _name, property(lambda self, why=_why: exclusions.closed(why)))
