"""What a suite has that is not portable, and where Entasis differs on purpose or does not have something yet.

Each rule stands under its name in tests/differences.md, which gives the reasons. There are four kinds:

- `LEFT_OUT`: the statement uses what only the suite's own engine has: its settings, catalog, functions,
  files. Such a record is run, since later ones may need its effect, but not counted.
- `DIFFERS`: Entasis gives another result, or refuses, on purpose.
- `LACKS`: something that others have and Entasis does not.
- `OPEN`: a bug that is not fixed yet.

A rule of the first kind looks at the statement before it runs, one of the others at a record that has failed:
at the statement, at what was wrong, or at both.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum


class Kind(Enum):
    LEFT_OUT = "left out"
    DIFFERS = "differs"
    LACKS = "lacks"
    OPEN = "open"


@dataclass(frozen=True)
class Rule:
    name: str
    kind: Kind
    #: What the statement contains.
    statement: str = ""
    #: What the reason of the failure contains.
    reason: str = ""
    #: The suites for which it holds; all if there are none.
    suites: tuple[str, ...] = ()

    def applies(self, suite: str, sql: str, reason: str) -> bool:
        return (
            (not self.suites or suite in self.suites)
            and re.search(self.statement, sql) is not None
            and re.search(self.reason, reason) is not None
        )


#: Rules that a reader of files applies itself, by the lines around a record.
BY_THE_READER = (
    "for other engines",
    "skipped by the suite",
    "extensions",
    "databases in files",
    "data of the suite",
    "threads of the suite",
    "commands of psql",
)
#: Of these, what the suite's own engine does not run either, so that nothing later needs its effect.
NOT_RUN_THERE = ("for other engines", "skipped by the suite")
#: What the runner applies: to records that use what a record that was left out has made, and to those of
#: which the suite does not say whether they succeed.
AFTER = "what was left out before"
EITHER = "either outcome"
#: The difference that a transaction goes on after a statement that fails, which the runner finds.
GOES_ON = "errors in transactions"

#: How a failure is counted whose statement is refused, as it should be, but not for the suite's reason.
FOR_ANOTHER_REASON = "refused for another reason: "
#: What Entasis says of a statement that it does not understand,
NOT_UNDERSTOOD = re.compile(
    r"^syntax error|not supported|does not take \(|"
    r"^there is no (table )?(function|type|aggregate|operator|setting)"
)
#: and what a suite says of one that is not to be understood.
ALIKE = re.compile(
    r"(?i)pars(er|ing)\b|syntax|not (yet )?(implemented|supported|allowed)|unsupported|n.t (exist|support)|"
    r"no function|not found|unrecognized|unknown|undefined|no such|invalid"
)

#: Subjects that only the suite's engine has, by the paths of its files.
SUBJECTS: tuple[tuple[str, str, str], ...] = (
    (
        "duckdb",
        "settings and catalog",
        r"^test/sql/(attach|copy_database|detailed_profiler|explain|logging|peg_parser|pg_catalog|"
        r"pragma|progress_bar|"
        r"secrets|settings|show_select|storage|storage_version|variables|vector_types|extensions|"
        r"udf_function|variant|"
        r"copy/(csv/rejects|s3|encryption|parquet/(bloom|metadata|encryption))|"
        r"aggregate/aggregate_state_export)(/|_|\.)",
    ),
    ("duckdb", "settings and catalog", r"^test/sql/(timezone/test_icu_calendar_|collate/test_default_)"),
    ("duckdb", "types of one engine", r"^test/sql/types/(geo|variant|bit|bignum|varint|union|type)(/|_|\.)"),
    (
        "datafusion",
        "functions of one engine",
        r"test_files/(spark|arrow_\w+|metadata|async_udf|encoding)(/|\.)",
    ),
    (
        "datafusion",
        "settings and catalog",
        r"test_files/(explain\w*|describe|information_schema\w*|set_variable|show\w*|ddl_\w+|set_\w+|"
        r"push_down\w*|projection_pushdown\w*|monotonic\w*|joins_to|sort_pushdown|simplify_expr|options|"
        r"repartition\w*|preserve\w*|dynamic_filter\w*|run_end\w*|listing\w*|test_\w+)(/|\.)",
    ),
    (
        "postgres",
        "types of one engine",
        r"/(bit|box|circle|geometry|inet|json\w*|line|lseg|macaddr8?|money|multirangetypes|name|oid8?|"
        r"path|pg_lsn|point|"
        r"polygon|rangetypes|regproc|rowtypes|sqljson\w*|tsdicts|tsearch|tstypes|txid|xid|xml|xmlmap|"
        r"tid\w*)\.sql",
    ),
    (
        "postgres",
        "procedures and triggers",
        r"/(create_(aggregate|cast|function\w*|operator|procedure|misc)|alter_(generic|operator)|"
        r"drop_operator|"
        r"event_trigger\w*|infinite_recurse|plancache|plpgsql|polymorphism|rangefuncs|rules|triggers|"
        r"misc)\.sql",
    ),
    (
        "postgres",
        "inheritance and partitions",
        r"/(inherit|partition\w*|typed_table|hash_part|indexing|for_portion_of|without_overlaps|"
        r"eager_aggregate)\.sql",
    ),
    (
        "postgres",
        "settings and catalog",
        r"/(advisory_lock|amutils|async|brin\w*|cluster|collate\.\S+|combocid|comments|compression\w*|"
        r"conversion|"
        r"copy2|copyencoding|create_(am|index_spgist|property_graph|role|type)|database|dbsize|"
        r"dependency|encoding|euc_kr|"
        r"explain|fast_default|foreign_data|gin|gist|graph_table\w*|guc|hash_func|hash_index|"
        r"index_including_gist|indirect_toast|"
        r"init_privs|largeobject|lock|maintain_every|memoize|misc_(functions|sanity)|mvcc|nls|numa|"
        r"object_address|"
        r"oidjoins|opr_sanity|password|pg_\w+|planner_est|portals\w*|predicate|prepared_xacts|"
        r"privileges|psql\w*|publication|"
        r"reindex_catalog|reloptions|replica_identity|roleattributes|rowsecurity|sanity_check|security_label|"
        r"select_parallel|spgist|stats\w*|subscription|sysviews|tablespace|type_sanity|vacuum\w*|"
        r"write_parallel|"
        r"tablesample|unicode)\.sql",
    ),
)

#: Behind this, what a pattern has found is in no text in quotes.
UNQUOTED = r"(?=[^']*(?:'[^']*'[^']*)*\Z)"

RULES: tuple[Rule, ...] = (
    Rule(
        "settings and catalog",
        Kind.LEFT_OUT,
        r"(?i)^\s*(pragma|set|reset|show|call|load|install|checkpoint|force\s+checkpoint|analyze|vacuum|"
        r"use|attach|detach|"
        r"describe|summarize|grant|revoke|comment|security|reindex|cluster|listen|notify|unlisten|lock|"
        r"discard|reassign|"
        r"alter\s+(database|system|role|user|default)|export|import)\b(?!\s+(local\s+|"
        r"session\s+)?time\s*zone)"
        r"|\b(duckdb_\w+|pragma_\w+|pg_(?!typeof)\w+|sqlite_\w+|information_schema|sys)\b"
        r"|\b(current_setting|set_config|obj_description|has_\w+_privilege|getvariable|regclass|"
        r"tableoid|ctid|xmin)\b",
    ),
    Rule("plans as text", Kind.LEFT_OUT, r"(?i)^\s*explain\b"),
    Rule(
        "data of the suite",
        Kind.LEFT_OUT,
        r"(?i)'(\.\./)*(data|test|\{DATA_DIR\})/|DATA_DIR|__WORKING_DIRECTORY__|'(https?|s3|gcs)://|"
        r":'filename'"
        r"|\bcreate\s+(unbounded\s+)?external\s+table\b|\bcopy\b.*\bfrom\s+(stdin|program)\b|"
        r"test_files/|testing/data",
    ),
    Rule(
        "procedures and triggers",
        Kind.LEFT_OUT,
        r"(?i)^\s*(do\b|call\b|(create|drop|alter)\s+(or\s+replace\s+)?(constraint\s+)?(function|"
        r"procedure|routine|operator|"
        r"aggregate|cast|rule|trigger|event|language)\b)",
        suites=("postgres", "sqlite"),
    ),
    Rule(
        "settings and catalog",
        Kind.LEFT_OUT,
        r"(?i)^\s*(create|drop|alter)\s+(role|user|group|policy|statistics|extension|publication|"
        r"subscription|foreign|server|"
        r"tablespace|access|text\s+search|collation|conversion|transform|secret|logged)\b|"
        r"\bautovacuum_enabled\b|row\s+security",
    ),
    Rule(
        "inheritance and partitions",
        Kind.LEFT_OUT,
        r"(?is)\binherits\s*\(|^\s*create\b.*\bpartition\s+(of\b|by\s+(list|range|hash)\b)"
        r"|\b(attach|detach)\s+partition\b|\binherit\b",
        suites=("postgres",),
    ),
    Rule(
        "types of one engine",
        Kind.LEFT_OUT,
        r"(?i)\b(jsonb|jsonpath|xml\w*|tsvector|tsquery|cidr|inet|macaddr8?|int[48]range|(num|ts|tstz|"
        r"date)range|multirange|"
        r"varbit|bit\s+varying|pg_lsn|regproc\w*|regtype|regnamespace|oid|xid8?|box|lseg|polygon|refcursor|"
        r"geometry|geography|variant|bignum|varint|bitstring|st_\w+)\b|::\s*(name|point|path|line|"
        r"circle|bit|money|\"char\")\b"
        r"|(?<!\w)[bB]'[01]+'|\bbit\s*\(|\bunion\s*\(\s*\w+\s+\w+\s*[,)]|\bunion_(value|extract|tag)\b",
    ),
    Rule(
        "functions of one engine",
        Kind.LEFT_OUT,
        r"(?i)\b(arrow_\w+|to_timestamp_(seconds|millis|micros|nanos)|sql_auto_complete|write_log|"
        r"enable_logging|"
        r"parquet_(metadata|schema|full_metadata|bloom_probe|kv_metadata|file_metadata)|sniff_csv|"
        r"read_(text|blob|duckdb)|glob|"
        r"test_all_types|test_vector_types|create_sort_key|json_serialize_sql|json_execute_serialized_sql|"
        r"vector_type|can_cast_implicitly|sleep_ms|parse_formatted_bytes|finalize|combine|export_state|stats|"
        r"parse_(path|dirname|dirpath|filename)|generate_subscripts|substring_grapheme|length_grapheme|"
        r"digest|try_parse_url|parse_url|luhn_check|str_to_map|shiftright|shiftleft|pmod|"
        r"num_(non)?nulls)\s*\(",
    ),
    Rule(
        "cursors",
        Kind.LEFT_OUT,
        r"(?i)^\s*(declare|fetch|move|close)\b|\bcurrent\s+of\b|^\s*prepare\s+transaction\b",
        suites=("postgres",),
    ),
    Rule("styles of dates", Kind.LEFT_OUT, r"(?i)\bdatestyle\b|\bintervalstyle\b", suites=("postgres",)),
    # Deliberate differences.
    Rule(
        "dependencies",
        Kind.DIFFERS,
        reason=r"^(view|table|index) .* uses ",
        suites=("sqlite", "duckdb", "datafusion"),
    ),
    Rule("columns that are set twice", Kind.DIFFERS, reason=r"is set twice", suites=("sqlite",)),
    Rule("divisions by zero", Kind.DIFFERS, reason=r"^division by zero", suites=("sqlite",)),
    Rule(
        "one type of all branches",
        Kind.DIFFERS,
        r"(?is)\b(coalesce|case)\b.*\bavg\s*\(",
        r"^other rows: values",
        ("sqlite",),
    ),
    Rule(
        "texts beside numbers",
        Kind.DIFFERS,
        reason=r"is not compared with|cannot cast '…' to INTEGER",
        suites=("sqlite",),
    ),
    Rule(
        "conditions are booleans",
        Kind.DIFFERS,
        reason=r"is not a condition|is not a BOOLEAN|takes? BOOLEAN|"
        r"a condition is \w+, not BOOLEAN|a BOOLEAN is not compared with|is not compared with a BOOLEAN",
    ),
    Rule(
        "integer division",
        Kind.DIFFERS,
        r"[\w)]\s*/\s*[\w(-]" + UNQUOTED,
        r"^other rows: values",
        ("duckdb",),
    ),
    Rule(
        "columns by number after merged ones",
        Kind.DIFFERS,
        r"(?is)^(?=.*(\bjoin\b.*\busing\s*\(|\bnatural\b))(?=.*((?<!\()\*|\border\s+by\s+\d))",
        "^other rows",
        ("duckdb",),
    ),
    Rule(
        "characters, not clusters",
        Kind.DIFFERS,
        r"(?i)\breverse\s*\(|\b(left|right)_grapheme\b",
        "^other rows",
        ("duckdb",),
    ),
    Rule(
        "fractions of units",
        Kind.DIFFERS,
        r"(?i)\binterval\s*'-?\d*\.\d+|'-?\d*\.\d+\s*\w+'\s*::\s*interval",
        r"^other rows: values",
        ("duckdb",),
    ),
    Rule(
        "types of literals",
        Kind.DIFFERS,
        r"(?i)\btypeof\s*\(|\bto_(hex|oct|bin)\s*\(",
        r"^other rows: values",
    ),
    Rule(
        "NULL among arguments",
        Kind.DIFFERS,
        r"(?i)\b(string_agg|group_concat|listagg)\s*\([^()]*\bNULL\b",
        r"^other rows: values",
        ("duckdb",),
    ),
    Rule(
        "NULLs in rows",
        Kind.DIFFERS,
        r"(?i)\(\s*\w+(\s*,\s*\w+)+\s*\)\s*(=|<>|!=|<|>|(not\s+)?in\b)",
        r"^other rows",
        ("duckdb",),
    ),
    Rule(
        "line breaks in patterns",
        Kind.DIFFERS,
        r"(?is)\b(regexp_\w+|similar\s+to)\b.*\\n|\\n.*\b(regexp_\w+|similar\s+to)\b",
        r"^other rows",
        ("duckdb",),
    ),
    Rule(
        "places before a text",
        Kind.DIFFERS,
        r"(?i)\bsubstr(ing)?\s*\(",
        r"^other rows: values|negative substring",
        ("duckdb",),
    ),
    Rule("patterns of SIMILAR TO", Kind.DIFFERS, r"(?i)\bsimilar\s+to\b", r"^other rows", ("duckdb",)),
    Rule("lengths of any size", Kind.DIFFERS, r"(?i)\bsubstring\s*\(.*\d{10}", r"^accepted", ("duckdb",)),
    Rule("groups in replacements", Kind.DIFFERS, r"(?i)\bregexp_replace\s*\(", r"^accepted", ("duckdb",)),
    Rule("HUGEINT as a decimal", Kind.DIFFERS, r"(?i)\bu?hugeint\b", r"^accepted", ("duckdb",)),
    Rule(
        "sizes of texts",
        Kind.DIFFERS,
        r"(?i)\b(var)?char(_tbl|acter|\s*\()",
        r"^accepted|^other rows",
        ("postgres",),
    ),
    Rule(
        "results beyond DOUBLE",
        Kind.DIFFERS,
        r"(?i)\d+e-?(70|200|400|308)\b|\b(power|exp|gamma|lgamma|sqrt)\s*\(|\^",
        r"^accepted",
        ("postgres",),
    ),
    Rule("texts of fractions as integers", Kind.DIFFERS, r"'\s*-?\d+\.\d+'", r"^accepted", ("postgres",)),
    Rule("fields of infinity", Kind.DIFFERS, r"(?i)\binfinity'", r"^other rows", ("postgres",)),
    Rule(
        "bytes of texts",
        Kind.DIFFERS,
        r"(?i)bytea|\bblob\b|\\\\x",
        r"^accepted|^other rows|to BLOB|not a BLOB",
        ("postgres",),
    ),
    Rule(
        "series as lists",
        Kind.DIFFERS,
        r"(?is)\b(generate_series|unnest)\s*\(",
        r"^other rows|^accepted",
        ("postgres",),
    ),
    Rule(
        "matches as a condition",
        Kind.DIFFERS,
        r"(?i)\bregexp_matches\s*\(",
        r"^other rows|^accepted|does not take",
        ("postgres",),
    ),
    Rule("splitting by nothing", Kind.DIFFERS, r"(?i)\bstring_to_array\s*\(", r"^other rows", ("postgres",)),
    Rule(
        "booleans in texts",
        Kind.DIFFERS,
        r"(?i)\bconcat(_ws)?\s*\(.*\b(true|false)\b",
        r"^other rows",
        ("postgres",),
    ),
    Rule(
        "formats of PostgreSQL", Kind.DIFFERS, r"(?i)\bformat\s*\(", r"^other rows|^accepted", ("postgres",)
    ),
    Rule(
        "NULLs of a descending order",
        Kind.DIFFERS,
        r"(?i)\bdesc\b",
        r"order of rows",
        ("postgres", "datafusion"),
    ),
    Rule(
        "order among equals",
        Kind.DIFFERS,
        r"(?is)\b(first_value|last_value|nth_value|row_number|lead|lag|ntile)\b.*\bover\b",
        r"^other rows: (values|order)",
        ("postgres",),
    ),
    Rule("keys of ON CONFLICT", Kind.DIFFERS, r"(?i)\bon\s+conflict\b", r"^accepted", ("postgres",)),
    Rule("times in dates", Kind.DIFFERS, r"(?i)\bextract\s*\(.*\bfrom\s+date\b", r"^accepted", ("postgres",)),
    Rule(
        "transactions that are not open",
        Kind.DIFFERS,
        reason=r"no transaction is open|a transaction is open already",
    ),
    Rule("names of files", Kind.DIFFERS, reason=r"promises|No such file or directory"),
    Rule(
        "times of day",
        Kind.DIFFERS,
        r"(?i)::time\b.*[-+]|[-+].*::time\b",
        r"^other rows|TIME",
        ("datafusion",),
    ),
    # What Entasis does not have.
    Rule(
        "lambdas",
        Kind.LACKS,
        r"(?i)\blambda\s+\w|\w\)?\s*->\s",
        r"there is no column|syntax error|operator ->|not supported",
    ),
    Rule("macros", Kind.LACKS, reason=r"CREATE (OR REPLACE )?(TEMP(ORARY)? )?MACRO|CREATE OR$"),
    Rule(
        "triggers", Kind.LACKS, r"(?i)\btrigger\b", r"syntax error|TRIGGER", ("duckdb", "sqlite", "postgres")
    ),
    Rule("generated columns", Kind.LACKS, reason=r"[Gg]enerated columns|ADD GENERATED"),
    Rule(
        "domains and types of rows",
        Kind.LACKS,
        reason=r"CREATE DOMAIN|CREATE TYPE of anything|ALTER TYPE|no type ROW\(|function row$|"
        r"the type UNION|operator -> on rows|ALTER DOMAIN",
    ),
    Rule("SERIAL", Kind.LACKS, reason=r"no type (SMALL|BIG)?SERIAL\w*"),
    Rule("collations", Kind.LACKS, reason=r"collations"),
    Rule("collations", Kind.LACKS, r"(?i)\bcollat", r"syntax error|setting"),
    Rule(
        "constraints that wait",
        Kind.LACKS,
        reason=r"DEFERRABLE|NOT ENFORCED|MATCH FULL|SET CONSTRAINTS|EXCLUDE",
    ),
    Rule(
        "constraints that wait",
        Kind.LACKS,
        r"(?i)\b(deferr|enforced\b|set\s+constraints|exclude\s+using|not\s+valid)",
        "syntax error",
    ),
    Rule("materialized views", Kind.LACKS, reason=r"[Mm]aterialized"),
    Rule("materialized views", Kind.LACKS, r"(?i)\bmaterialized\s+view\b", r"syntax error|there is no"),
    Rule("rows in views", Kind.LACKS, reason=r"is a view; |options of a view|secure views"),
    Rule(
        "JSON",
        Kind.LACKS,
        reason=r"function '?(json_\w*|to_json\w*|read_(nd)?json\w*|row_to_json|array_to_json)|"
        r"reading JSON|COPY TO JSON",
    ),
    Rule(
        "decimals of more digits",
        Kind.LACKS,
        reason=r"is not a type: a decimal|out of range for DECIMAL|to DECIMAL\(N\)|no operator DECIMAL",
    ),
    Rule("precision of times", Kind.LACKS, reason=r"seconds of this precision|TIMESTAMPTZ_NS"),
    Rule(
        "rows as values",
        Kind.LACKS,
        reason=r"row values other than|OVERLAPS on rows|No infix parser for token Overlap|on rows$",
    ),
    Rule(
        "texts of dates and times",
        Kind.LACKS,
        reason=r"cannot cast '…' to (DATE|TIME|TIMESTAMP|INTERVAL)|there is no time zone|"
        r"there is no date N|no format \"|does not fit \"|to_number",
    ),
    Rule(
        "texts of dates and times",
        Kind.LACKS,
        r"(?i)\bto_(timestamp|date)\s*\(",
        r"^accepted|^other rows",
        ("postgres",),
    ),
    Rule(
        "texts of lists", Kind.LACKS, r"'\s*(\[[^']*\]\s*=\s*)?\{", r"cannot cast", ("postgres", "datafusion")
    ),
    Rule("texts of other types", Kind.LACKS, reason=r"cannot cast '…' to \w+\[\]"),
    Rule(
        "options of tables and indexes",
        Kind.LACKS,
        reason=r"(table|index) has no option|operator classes|indexes with WHERE|LOGGED",
    ),
    Rule(
        "options of files",
        Kind.LACKS,
        reason=r"^(COPY|read_\w+|parquet_scan|ATTACH)\b.* has no option|option \w+ takes|file format|"
        r"no file matches|has no option '…'$",
    ),
    Rule(
        "functions that are missing",
        Kind.LACKS,
        reason=r"there is no (table )?function|not supported yet: (the function|arguments of)|"
        r"does not take \(|there is no aggregate",
    ),
    Rule("types that are missing", Kind.LACKS, reason=r"there is no type"),
    Rule(
        "columns of CREATE TABLE AS",
        Kind.LACKS,
        reason=r"constraints in CREATE TABLE … AS|CREATE EXTERNAL TABLE",
    ),
    Rule("PIVOT", Kind.LACKS, reason=r"PIVOT"),
    Rule("PIVOT", Kind.LACKS, r"(?i)\b(un)?pivot\b", r"syntax error"),
    Rule("WITH ORDINALITY", Kind.LACKS, reason=r"ORDINALITY"),
    Rule(
        "references in patterns",
        Kind.LACKS,
        reason=r"regular expression .* is not valid|flag of a regular expression",
    ),
    Rule("aggregates in recursion", Kind.LACKS, reason=r"USING KEY|which reads itself"),
    Rule(
        "series of other types",
        Kind.LACKS,
        reason=r"^(generate_series|range) takes|arguments of (range|generate_series|values)",
    ),
    Rule("REPLACE INTO", Kind.LACKS, reason=r"REPLACE INTO"),
    Rule("tables without columns", Kind.LACKS, reason=r"at least one column"),
    Rule(
        "domains and types of rows",
        Kind.LACKS,
        r"(?i)^\s*(create|alter|drop)\s+(domain|type)\b",
        r"syntax error|there is no",
    ),
    Rule(
        "options of tables and indexes",
        Kind.LACKS,
        r"(?is)^\s*(create|drop|alter)\s+(unique\s+)?index\b",
        r"syntax error",
    ),
    Rule(
        "options of tables and indexes",
        Kind.LACKS,
        r"(?is)^\s*create\b.*\btable\b",
        r"syntax error",
        ("postgres",),
    ),
    Rule(
        "changes of tables",
        Kind.LACKS,
        r"(?is)^\s*alter\s+(table|view|sequence|index)\b",
        r"syntax error|ALTER",
    ),
    Rule("EXECUTE as a query", Kind.LACKS, r"(?i)\bexecute\b", r"SELECT, VALUES, or"),
    Rule("hypothetical ranks", Kind.LACKS, r"(?i)within\s+group", r"is a window function"),
    Rule("rows without columns", Kind.LACKS, reason=r"(?i)expected an expression, found: from"),
    Rule(
        "infinite intervals",
        Kind.LACKS,
        reason=r"infinite timestamps|out of range for INTERVAL|interval is out of range",
    ),
    Rule("row numbers", Kind.LACKS, r"(?i)\browid\b", r"there is no column"),
    Rule(
        "texts of numbers", Kind.LACKS, r"'\s*[-+]?0[xXbBoO]|'[\d_ ]+'", r"cannot cast '…' to (BIG|SMALL)?INT"
    ),
    Rule(
        "parts that are not constants",
        Kind.LACKS,
        reason=r"date parts that are not constants|is not a constant",
    ),
    Rule(
        "grammar of one engine",
        Kind.LACKS,
        r"(?i)[\w\"]\s*(?<!:):(?![:=])\s*[\w\"(]"
        + UNQUOTED
        + r"|\brename\b|\bfilter\s*\(\s*(?!where)|\)?\.\w+\(|\bsuper\b|\balias\.",
        r"syntax error|there is no column",
        ("duckdb",),
    ),
    Rule(
        "operators of one engine",
        Kind.LACKS,
        r"~[<>~]|\|/|\|\|/|\busing\s+[~<>]|!!|@@",
        r"syntax error|operator",
        ("postgres",),
    ),
    Rule("operators of one engine", Kind.LACKS, reason=r"not supported yet: the operator"),
    Rule("casts of enumerations", Kind.LACKS, reason=r"cannot cast ENUM|to ENUM"),
    Rule("changes within queries", Kind.LACKS, reason=r"statements that change rows within a query"),
    Rule(
        "subqueries in LIMIT",
        Kind.LACKS,
        reason=r"^not supported yet: (LIMIT|OFFSET): subqueries|^(LIMIT|OFFSET): there is no column",
    ),
    Rule("positional joins", Kind.LACKS, r"(?i)\bpositional\s+join\b", r"POSITIONAL JOIN|syntax error"),
    Rule("unnest in groups", Kind.LACKS, reason=r"^unnest is only allowed"),
    Rule("comprehensions", Kind.LACKS, r"(?i)\[.*\bfor\b.*\bin\b", r"\] is expected"),
    Rule("columns by number in expressions", Kind.LACKS, r"#\d", r"syntax error", ("duckdb",)),
    Rule("casts of structs to maps", Kind.LACKS, reason=r"^cannot cast STRUCT\(.*( to MAP\(|$)"),
    Rule("LIKE with a list", Kind.LACKS, reason=r"not supported yet: I?LIKE (ANY|ALL)"),
    Rule("locks of rows", Kind.LACKS, reason=r"FOR UPDATE and FOR SHARE"),
    Rule(
        "modes of transactions",
        Kind.LACKS,
        reason=r"READ ONLY transactions|the isolation level|AND CHAIN|not supported yet: SET LOCAL",
    ),
    # Bugs.
    Rule("slices up to a column", Kind.OPEN, r"\[[^\]]*:[a-z_]\w*\]", r"the statement has N parameter"),
    Rule("averages of large integers", Kind.OPEN, r"(?i)\bavg\s*\(", r"^other rows: values", ("duckdb",)),
    Rule(
        "variances of infinity",
        Kind.DIFFERS,
        r"(?i)\b(var|stddev)_\w+\s*\('",
        r"^other rows: values",
        ("postgres",),
    ),
    Rule(
        "percentiles of decimals",
        Kind.OPEN,
        r"(?i)\bpercentile_cont\b",
        r"^other rows: values",
        ("datafusion",),
    ),
    Rule("REINDEX", Kind.LACKS, r"(?i)^\s*reindex", r"syntax"),
)

#: Settings that the engine has and Entasis has not, and the clauses that mean something else with them.
OF_RESULTS = re.compile(
    r"(?i)^\s*(?:set|pragma)\s+(?:(?:global|session|local)\s+)?\W*"
    r"(?:(?P<order>default_null_order|null_order|default_order)|(?P<collate>default_collation))\b"
)


def subject(suite: str, path: str) -> str:
    """The rule by which a whole file is left out."""
    return next((name for of, name, pattern in SUBJECTS if of == suite and re.search(pattern, path)), "")


def left_out(suite: str, sql: str) -> str:
    """The name of the rule by which a statement is not portable."""
    for rule in RULES:
        if rule.kind is Kind.LEFT_OUT and rule.applies(suite, sql, ""):
            return rule.name
    return ""


def explained(suite: str, sql: str, reason: str) -> Rule | None:
    """The rule that explains a failure."""
    for rule in RULES:
        if rule.kind is not Kind.LEFT_OUT and rule.applies(suite, sql, reason):
            return rule
    return None
