"""Writes small database files of the current format, each with a text of its contents.

    make formats FORMAT=1 FILES=loads        writes one of them to tests/formats/1; without FILES, all

| file | contents |
|---|---|
| `types` | a table of all types: NULL, least and greatest values, special values; an empty table |
| `more_types` | nested types, ENUM, JSON, TIMESTAMP_NS, TIMETZ; a named type, DEFAULTs and a view of them |
| `encodings` | a column for each encoding; dictionaries, symbols; a table by key that was written to after it was loaded |
| `objects` | schemas, keys, an index, foreign keys, checks, defaults, identity, sequences, views |
| `layouts` | a table of each layout, with ghosts, partitions and promised latencies, and an ALTER of them |
| `log` | a database whose process was killed: the last commits are only in the log, if there is one |
| `loads` | the same; the last commits added so many rows that the log only refers to pieces of the data file |

A file is written once for each version of the format, by the last Entasis that writes this version, and then
never again: each later Entasis must open it and find the contents in the text (`test_formats.py`). So this
program may change at any time, and files of older versions are not changed. A log is kept compressed, because
most of it is zeros, and so is a data file that would be too large.
"""

import argparse
import gzip
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

#: The largest size of a file, so that there can be many.
MOST = 128 << 10
#: The extension of the files.
DATA, LOG, TEXT = ".entasis", ".wal", ".txt"

TYPES = {
    "BOOLEAN": ["false", "true"],
    "TINYINT": ["-128", "127", "0"],
    "SMALLINT": ["-32768", "32767"],
    "INTEGER": ["-2147483648", "2147483647"],
    "BIGINT": ["-9223372036854775808", "9223372036854775807"],
    "UTINYINT": ["0", "255"],
    "USMALLINT": ["0", "65535"],
    "UINTEGER": ["0", "4294967295"],
    "UBIGINT": ["0", "18446744073709551615"],
    "REAL": ["-3.4028235e38", "1.5", "'NaN'", "'-Infinity'"],
    "DOUBLE": ["-1.7976931348623157e308", "0.1", "'NaN'", "'Infinity'", "'-0.0'"],
    "DECIMAL(4, 2)": ["-99.99", "0.01"],
    "DECIMAL(18, 6)": ["-999999999999.999999", "123456.654321"],
    "DECIMAL(38, 10)": ["-9999999999999999999999999999.9999999999", "0.0000000001"],
    "VARCHAR": ["''", "'a'", "'twelve bytes'", "'thirteen byte'", "'Größe 🦀'", "repeat('long ', 60)"],
    "BLOB": ["'\\x00\\xFF'", "''"],
    "DATE": ["'0001-01-01'", "'9999-12-31'", "'infinity'", "'1970-01-01'"],
    "TIME": ["'00:00:00'", "'23:59:59.999999'"],
    "TIMESTAMP": ["'0001-01-01 00:00:00'", "'2026-11-26 10:11:12.131415'", "'-infinity'"],
    "TIMESTAMPTZ": ["'1970-01-01 00:00:00+00'", "'2026-11-26 10:11:12.131415+02'"],
    "INTERVAL": ["'14 months 3 days 04:05:06.000007'", "'-1 day'", "'0 days'"],
    "UUID": ["'00000000-0000-0000-0000-000000000000'", "'ffffffff-ffff-ffff-ffff-ffffffffffff'"],
}


#: Types that came later, and nested ones; some are objects of the catalog.
MORE_TYPES = {
    "TIMESTAMP_NS": ["'1677-09-21 00:12:44'", "'2026-11-30 10:11:12.131415161'"],
    "TIMETZ": ["'00:00:00+15:59:59'", "'23:59:59.999999-15:59:59'", "'10:11:12+02'"],
    "JSON": ["'{}'", """'{"a": [1, null, "\\u00e4"]}'""", "'null'"],
    "ENUM('low', 'middle', 'high')": ["'low'", "'high'"],
    "weight": ["'light'", "'heavy'"],
    "INTEGER[]": ["[]", "[1, NULL, -3]"],
    "VARCHAR[][]": ["[['a', 'a text of more than twelve bytes'], [], NULL]"],
    "DOUBLE[3]": ["[0.5::DOUBLE, 'NaN'::DOUBLE, NULL]"],
    "STRUCT(a INTEGER, \"two words\" VARCHAR[])": ["{a: 1, 'two words': ['x, }', NULL]}", "{a: NULL, 'two words': []}"],
    "MAP(VARCHAR, DECIMAL(4, 2))": ["MAP {}", "MAP {'k': 1.25, 'a longer key, of many bytes': NULL}"],
    "MAP(DATE, STRUCT(m MAP(INTEGER, TIMETZ)))": ["MAP {DATE '2026-11-30': {m: MAP {1: '01:02:03+04'}}}"],
}


def types():
    """Statements, and queries whose results are kept."""
    return of_types(TYPES, "all_types")


def more_types():
    statements, questions = of_types(MORE_TYPES, "more_types")
    statements = [
        "CREATE TYPE weight AS ENUM ('light', 'heavy')",
        *statements,
        "CREATE TABLE defaults (id INTEGER, w weight DEFAULT 'heavy', m MAP(VARCHAR, INTEGER) DEFAULT MAP {'a': 1})",
        "INSERT INTO defaults (id) VALUES (1)",
        "CREATE VIEW viewed AS SELECT id, c5[2] AS second, c8.a AS a, c9['k'] AS k FROM more_types",
    ]
    questions += ["SELECT id, w::VARCHAR, m::VARCHAR FROM defaults", "SELECT * FROM viewed WHERE id < 2 ORDER BY id"]
    return statements, questions


def of_types(types, table):
    names = [f"c{number}" for number in range(len(types))]
    columns = ", ".join(f"{name} {ty}" for name, ty in zip(names, types))
    rows = []
    for number in range(max(map(len, types.values())) + 1):
        values = [values[number] if number < len(values) else "NULL" for values in types.values()]
        rows.append(f"({number}, " + ", ".join(f"CAST({v} AS {ty})" for v, ty in zip(values, types)) + ")")
    statements = [
        f"CREATE TABLE {table} (id INTEGER, {columns})",
        f"INSERT INTO {table} VALUES {', '.join(rows)}",
        f"CREATE TABLE nothing (id INTEGER, {columns})",
    ]
    # Python's timedelta has no months; the later types are kept as texts, which says more.
    value = lambda name, ty: f"CAST({name} AS VARCHAR)" if ty == "INTERVAL" or types is MORE_TYPES else name
    shown = [f"SELECT id, {value(name, ty)} FROM {table} WHERE {name} IS NOT NULL ORDER BY id" for name, ty in zip(names, types)]
    questions = [
        f"SELECT column_name, data_type FROM information_schema.columns WHERE table_name = '{table}' ORDER BY ordinal_position",
        *shown,
        f"SELECT count(*), {', '.join(f'count({name})' for name in [names[0], names[len(names) * 2 // 3], names[-1]])} FROM {table}",
        "SELECT count(*) FROM nothing",
    ]
    return statements, questions


#: An encoding, the type of a column that has it, and its values by row number.
ENCODINGS = [
    ("plain", "INTEGER", "1000 + i * 37 % 91"),
    ("packed", "BIGINT", "500000 + i * 31 % 61"),
    ("patched", "BIGINT", "CASE WHEN i % 97 = 5 THEN 1000000000000 + i ELSE i * 29 % 53 END"),
    ("multiples", "BIGINT", "100 * (i * 17 % 43)"),
    ("sequence", "BIGINT", "7 + 3 * i"),
    ("runs", "INTEGER", "i / 50"),
    ("scaled", "DOUBLE", "CAST(i * 13 % 71 AS DOUBLE) / 100"),
    ("singles", "DOUBLE", "CAST(i * 11 % 67 AS DOUBLE) / 64"),
    ("fsst", "VARCHAR", "'https://entasis.example/page/' || (i * 7 % 59)"),
    ("flat", "SMALLINT", "i * 3 % 79"),
    ("strings", "VARCHAR", "'text ' || (i * 5 % 37)"),
    ("none", "VARCHAR", "CASE WHEN i % 5 = 0 THEN NULL ELSE 'as it is ' || (i % 23) END"),
    ("auto", "VARCHAR", "'word ' || (i % 11)"),
    ("auto", "INTEGER", "42"),
    ("auto", "DECIMAL(12, 2)", "CAST(i % 19 AS DECIMAL(12, 2)) / 4"),
    ("auto", "BOOLEAN", "i % 3 = 0"),
    ("split", "DOUBLE", "sqrt(CAST(i AS DOUBLE))"),
    ("line", "BIGINT", "i * 100 + i * i % 7"),
]


def encodings():
    columns = ", ".join(f"e{number} {ty}" for number, (_, ty, _) in enumerate(ENCODINGS))
    values = ", ".join(f"CAST({value} AS {ty})" for _, ty, value in ENCODINGS)
    forced = ", ".join(f"e{number} = '{name}'" for number, (name, *_) in enumerate(ENCODINGS) if name != "auto")
    # At most 250 rows at once: above 256 a table counts distinct values in 4 KB for each column.
    statements = [
        # Inserted rows are encoded now, and not when the table is idle.
        "SET upkeep = 'always'",
        f"CREATE TABLE encoded ({columns}) WITH (compression = ({forced}))",
        f"INSERT INTO encoded SELECT {values} FROM range(250) r(i)",
        "CREATE TABLE keyed (k BIGINT PRIMARY KEY, v VARCHAR, d DOUBLE)",
        "INSERT INTO keyed SELECT 10 * (i * 7 % 250), 'v' || (i % 7), (i % 13) / 2.0 FROM range(250) r(i)",
        "SET upkeep = 'auto'",
        # Encoded blocks are written to: ghosts are used, slots are freed, blocks are hot.
        "INSERT INTO keyed VALUES (5, 'new', 0.5), (1005, NULL, NULL), (99999, 'last', -1)",
        "UPDATE keyed SET v = 'changed' WHERE k BETWEEN 100 AND 190",
        "DELETE FROM keyed WHERE k % 70 = 0",
        "DELETE FROM encoded WHERE e4 BETWEEN 300 AND 360",
    ]
    sums = ", ".join(
        f"count(e{n})" + (f", min(e{n}), max(e{n})" if ty != "BOOLEAN" else "") for n, (_, ty, _) in enumerate(ENCODINGS)
    )
    questions = [
        f"SELECT count(*), {sums} FROM encoded",
        "SELECT * FROM encoded WHERE e4 % 111 = 13 ORDER BY e4",
        "SELECT sum(e0), sum(e1), sum(e2), sum(e3), sum(e4), sum(e5), round(sum(e6), 6), sum(e7), sum(e9), sum(e14) FROM encoded",
        "SELECT e8, count(*) FROM encoded GROUP BY e8 ORDER BY e8 LIMIT 5",
        "SELECT e12, count(*) FROM encoded GROUP BY e12 ORDER BY e12",
        "SELECT count(*), sum(k), count(v), sum(d) FROM keyed",
        "SELECT * FROM keyed WHERE k < 220 ORDER BY k",
        "SELECT * FROM keyed WHERE k = 1005",
        "SELECT * FROM keyed WHERE k = 99999",
        "SELECT * FROM keyed WHERE k = 70",
        # A later version need not have this, but this file was meant to contain it.
        "SELECT DISTINCT encoding FROM entasis_blocks('encoded') ORDER BY encoding",
        "SELECT DISTINCT encoding FROM entasis_blocks('keyed') ORDER BY encoding",
    ]
    return statements, questions


def objects():
    statements = [
        "CREATE SCHEMA sales",
        "CREATE SEQUENCE numbers START 100 INCREMENT -3 MINVALUE 1 MAXVALUE 100 CYCLE",
        "SELECT nextval('numbers')",
        "SELECT nextval('numbers')",
        """CREATE TABLE customer (id INTEGER GENERATED ALWAYS AS IDENTITY PRIMARY KEY, name VARCHAR NOT NULL UNIQUE,
           since DATE DEFAULT '2026-01-01', score INTEGER DEFAULT nextval('numbers') CHECK (score > 0))""",
        "INSERT INTO customer (name) VALUES ('Ada'), ('Grace'), ('Größe')",
        """CREATE TABLE sales.item (customer INTEGER REFERENCES customer ON DELETE CASCADE ON UPDATE CASCADE,
           line SMALLINT, price DECIMAL(10, 2), PRIMARY KEY (customer, line))""",
        "INSERT INTO sales.item VALUES (1, 1, 9.99), (1, 2, 0.50), (2, 1, 100)",
        "CREATE INDEX by_price ON sales.item (price)",
        "CREATE VIEW totals AS SELECT name, sum(price) AS total FROM customer JOIN sales.item ON id = customer GROUP BY name",
        "CREATE VIEW \"Of Ada\" AS SELECT total FROM totals WHERE name = 'Ada'",
        "ALTER TABLE customer RENAME COLUMN since TO joined",
        "ALTER TABLE customer ADD COLUMN note VARCHAR DEFAULT 'none'",
    ]
    questions = [
        "SELECT * FROM customer ORDER BY id",
        "SELECT * FROM sales.item ORDER BY customer, line",
        "SELECT customer, line FROM sales.item WHERE price = 0.50",
        "SELECT * FROM totals ORDER BY name",
        'SELECT * FROM "Of Ada"',
        "INSERT INTO customer (name) VALUES ('Ada')",
        "INSERT INTO customer (name, score) VALUES ('Alan', 0)",
        "INSERT INTO customer (name) VALUES (NULL)",
        "INSERT INTO sales.item VALUES (77, 1, 1)",
        "INSERT INTO sales.item VALUES (1, 1, 1)",
        "SELECT nextval('numbers')",
        "INSERT INTO customer (name) VALUES ('Barbara') RETURNING joined, note",
        "DELETE FROM customer WHERE id = 1",
        "SELECT * FROM sales.item ORDER BY customer, line",
        "DROP TABLE sales.item",
    ]
    return statements, questions


def layouts():
    names = ["insertion", "sorted", "equi", "equi_ghost", "delta", "casper"]
    keyed = {name: "" if name == "insertion" else ", layout_key = (k)" for name in names}
    statements = ["SET upkeep = 'always'"]
    for name in names:
        statements += [
            f"CREATE TABLE {name}_t (k BIGINT NOT NULL, v VARCHAR) WITH (layout = '{name}'{keyed[name]})",
            f"INSERT INTO {name}_t SELECT 3 * (i * 7 % 200), 'v' || (i % 9) FROM range(200) r(i)",
        ]
    statements += [
        "CREATE TABLE promised (k BIGINT PRIMARY KEY, v INTEGER) "
        "WITH (layout = 'casper', ghost = '5%', partitions = 4, read_sla = '20us', update_sla = '10us')",
        "INSERT INTO promised SELECT 2 * i, i FROM range(200) r(i)",
        "CREATE TABLE altered (k BIGINT PRIMARY KEY, v INTEGER)",
        "INSERT INTO altered SELECT 2 * i, i FROM range(200) r(i)",
        "ALTER TABLE altered SET (layout = 'casper', read_sla = '30us', ghost = '10%')",
        "INSERT INTO altered VALUES (7, 7)",
    ]
    tables = [f"{name}_t" for name in names] + ["promised", "altered"]
    questions = [
        "SELECT table_name, layout, layout_key, read_sla, update_sla FROM entasis_tables() WHERE layout_key = '(k)' ORDER BY table_name",
        *(f"SELECT count(*), sum(k), min(v), max(v) FROM {table}" for table in tables[:6]),
        "SELECT count(*), sum(k), sum(v) FROM promised WHERE k BETWEEN 100 AND 200",
        "SELECT count(*), sum(k), sum(v) FROM altered WHERE k < 10",
        "INSERT INTO promised VALUES (4, 4)",
        "UPDATE altered SET k = 9 WHERE k = 7 RETURNING k, v",
    ]
    return statements, questions


def log():
    statements = [
        "CREATE TABLE t (k INTEGER PRIMARY KEY, v VARCHAR)",
        "CREATE TABLE loose (a INTEGER, b VARCHAR, c DOUBLE)",
        "CREATE UNIQUE INDEX by_v ON t (v)",
        "INSERT INTO t SELECT i, 'row ' || i FROM range(50) r(i)",
        "INSERT INTO loose SELECT i % 5, 'same', i / 2.0 FROM range(50) r(i)",
        "CHECKPOINT",
        # In the log from here on: each kind of change, of one row and of many.
        "INSERT INTO t VALUES (100, 'one row')",
        "UPDATE t SET v = 'changed' WHERE k = 3",
        "UPDATE t SET k = 200 WHERE k = 4",
        "DELETE FROM t WHERE k = 5",
        "INSERT INTO loose VALUES (1, 'one row', NULL)",
        "UPDATE loose SET b = 'changed' WHERE c = 3",
        "DELETE FROM loose WHERE c = 4",
        "INSERT INTO t SELECT i, 'many ' || i FROM range(300, 400) r(i)",
        "UPDATE t SET v = v || '!' WHERE k BETWEEN 310 AND 330",
        "DELETE FROM t WHERE k BETWEEN 340 AND 360",
        "INSERT INTO loose SELECT i, 'many', i FROM range(300, 400) r(i)",
        "UPDATE loose SET a = -a WHERE a BETWEEN 310 AND 330",
        "DELETE FROM loose WHERE a BETWEEN 340 AND 360",
        "BEGIN",
        "INSERT INTO t VALUES (500, 'in a transaction')",
        "INSERT INTO loose VALUES (500, 'in a transaction', 0)",
        "COMMIT",
        "CREATE TABLE later (a INTEGER DEFAULT 7, b VARCHAR)",
        "INSERT INTO later (b) VALUES ('x'), ('y')",
        "ALTER TABLE later ADD COLUMN c INTEGER DEFAULT 8",
        "CREATE VIEW seen AS SELECT count(*) AS n FROM later",
        "CREATE SEQUENCE counted",
        "CREATE TABLE gone (a INTEGER)",
        "DROP TABLE gone",
        "CREATE TABLE emptied (a INTEGER)",
        "INSERT INTO emptied VALUES (1)",
        "TRUNCATE emptied",
        # In progress when the process ends.
        "BEGIN",
        "INSERT INTO t VALUES (600, 'not committed')",
    ]
    questions = [
        "SELECT count(*), sum(k) FROM t",
        "SELECT * FROM t WHERE k < 6 OR k BETWEEN 100 AND 312 OR k > 399 ORDER BY k",
        "SELECT k FROM t WHERE v = 'many 311!'",
        "SELECT k FROM t WHERE v = 'changed'",
        "SELECT count(*), sum(a), sum(c), count(c) FROM loose",
        "SELECT a, b, c, count(*) FROM loose WHERE a < 0 OR b IN ('changed', 'one row', 'in a transaction') GROUP BY ALL ORDER BY ALL",
        "SELECT * FROM later ORDER BY b",
        "SELECT * FROM seen",
        "SELECT * FROM gone",
        "SELECT count(*) FROM emptied",
        "INSERT INTO t VALUES (700, 'changed')",
        "INSERT INTO t VALUES (700, 'new')",
    ]
    return statements, questions


def loads():
    # More than a mebibyte, which is what is not written to the log, and hardly anything when it is compressed.
    rows = "SELECT {} + i / 1000, i % 7 FROM range(150000) r(i)"
    statements = [
        "CREATE TABLE t (a BIGINT, b BIGINT) WITH (compression = 'flat')",
        "INSERT INTO t VALUES (-1, 1)",
        "CREATE TABLE keyed (a BIGINT, b BIGINT) WITH (compression = 'flat', layout_key = (a))",
        "INSERT INTO keyed VALUES (-1, 1)",
        "CHECKPOINT",
        "INSERT INTO t " + rows.format(0),
        "UPDATE t SET b = 8 WHERE a = 77 AND b = 3",
        "DELETE FROM t WHERE a BETWEEN 100 AND 119",
        "INSERT INTO keyed " + rows.format(0),
        "DELETE FROM keyed WHERE a = 5 AND b < 6",
        "BEGIN",
        "INSERT INTO t " + rows.format(100000),
    ]
    questions = [
        "SELECT count(*), sum(a), sum(b), min(a), max(b) FROM t",
        "SELECT a, b, count(*) FROM t WHERE a < 1 OR b = 8 GROUP BY a, b ORDER BY a, b",
        "SELECT count(*), sum(a), sum(b), min(a), max(b) FROM keyed",
        "SELECT a, b, count(*) FROM keyed WHERE a BETWEEN 4 AND 6 GROUP BY a, b ORDER BY a, b",
    ]
    return statements, questions


FILES = {
    "types": types, "more_types": more_types, "encodings": encodings, "objects": objects, "layouts": layouts,
    "log": log, "loads": loads,
}
#: Those whose process is killed.
KILLED = {"log", "loads"}


# ---- texts --------------------------------------------------------------------------------------------------


def shown(value):
    if value is None:
        return "NULL"
    if isinstance(value, bytes):
        return "0x" + value.hex()
    return str(value).lower() if isinstance(value, bool) else str(value)


def answer(connection, sql):
    """The lines of a result: rows, or the kind of error."""
    import entasis

    try:
        cursor = connection.execute(sql)
        rows = cursor.fetchall() if cursor.description else []
    except entasis.Error as error:
        return [f"error: {type(error).__name__}"]
    return [" | ".join(map(shown, row)) for row in rows]


def text_of(connection, questions):
    """Queries and results, as they are stored."""
    connection.execute("SET timezone = 'UTC'")
    return "\n".join("\n".join([sql, *("    " + line for line in answer(connection, sql)), ""]) for sql in questions)


def questions_of(text):
    """The queries in a text."""
    return [line for line in text.splitlines() if line and not line.startswith(" ")]


def log_beside(path):
    """The log of a database file, if there is one."""
    path = Path(path)
    candidates = [path.with_suffix(LOG), path.with_name(path.name + LOG)]
    return next((log for log in candidates if log.exists() and log.stat().st_size > 0), None)


# ---- writing ------------------------------------------------------------------------------------------------


def write(path, name):
    """Writes a database, and ends: properly, or as in a crash."""
    import entasis

    statements, _ = FILES[name]()
    connection = entasis.connect(path)
    if name not in KILLED:  # Only one state is written, so that the file has less free space.
        connection.execute("SET synchronous = 'off'")
    for sql in statements:
        connection.execute(sql)
    if name in KILLED:
        os.kill(os.getpid(), signal.SIGKILL)
    connection.execute("CHECKPOINT")
    connection.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("directory", type=Path)
    parser.add_argument("--most", type=int, default=MOST, help="bytes of a file")
    parser.add_argument("--only", default="", help="names of files, separated by commas; all if there are none")
    args = parser.parse_args()
    import entasis

    args.directory.mkdir(parents=True, exist_ok=True)
    only = [name for name in args.only.split(",") if name]
    for name, of in FILES.items():
        if only and name not in only:
            continue
        with tempfile.TemporaryDirectory() as scratch:
            made = Path(scratch) / f"{name}{DATA}"
            done = subprocess.run([sys.executable, __file__, "write", str(made), name])
            if done.returncode not in ([0, -signal.SIGKILL] if name in KILLED else [0]):
                sys.exit(f"{name} was not written")
            kept = {args.directory / made.name: made.read_bytes()}
            if made.stat().st_size > args.most:
                kept = {args.directory / f"{made.name}.gz": gzip.compress(made.read_bytes(), mtime=0)}
            if log := log_beside(made):
                # Without a time stamp, so that equal logs have equal bytes.
                kept[args.directory / f"{log.name}.gz"] = gzip.compress(log.read_bytes(), mtime=0)
            with entasis.connect(made) as connection:
                text = text_of(connection, of()[1])
            del connection
        for path, content in kept.items():
            if len(content) > args.most:
                sys.exit(f"{path.name} would have {len(content):,} bytes, and may have {args.most:,}")
            path.write_bytes(content)
            print(f"{path}: {len(content):,} bytes")
        (args.directory / f"{name}{TEXT}").write_text(text)


if __name__ == "__main__":
    write(*sys.argv[2:]) if sys.argv[1:2] == ["write"] else main()
