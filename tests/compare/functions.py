"""Prints workloads of function calls, for `compare.py`: every function of docs/functions.md, with the arguments
of its examples, with extreme values and NULL in each place, over nested values, and in sessions of several time
zones.

    python tests/compare/functions.py | python tests/compare/compare.py --postgres "host=localhost"

The page is generated from the catalog, so a new function is among them. A function that another database does
not have, or an argument that it does not take, is an error there, and `rules.py` leaves that database out.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "functions.md"

#: Functions whose results differ from call to call, or that say which database this is.
VOLATILE = {
    "random", "uuid", "gen_random_uuid", "now", "today", "version", "current_schema", "current_database",
    "current_date", "current_time", "current_localtime", "current_localtimestamp", "localtime", "localtimestamp",
    "statement_timestamp", "clock_timestamp", "nextval", "currval", "hash", "error", "get_current_time",
}  # fmt: skip

#: Values in place of an argument, by how the usual one is written.
EXTREMES = [
    (re.compile(r"^DATE '"), ["DATE '0001-01-01'", "DATE '9999-12-31'", "DATE '1969-12-31'", "DATE '2024-02-29'", "DATE 'infinity'"]),
    (
        re.compile(r"^TIMESTAMP '"),
        ["TIMESTAMP '0001-01-01 00:00:00'", "TIMESTAMP '9999-12-31 23:59:59.999999'", "TIMESTAMP '1969-12-31 23:59:59.5'", "TIMESTAMP 'infinity'"],
    ),
    (re.compile(r"^TIMESTAMPTZ '"), ["TIMESTAMPTZ '2024-03-10 06:59:59+00'", "TIMESTAMPTZ '2024-12-31 23:30:00+00'"]),
    (re.compile(r"^TIME '"), ["TIME '00:00:00'", "TIME '23:59:59.999999'"]),
    (re.compile(r"^INTERVAL '"), ["INTERVAL '-1 month'", "INTERVAL '100 days 25:00:00'", "INTERVAL '0 days'"]),
    (re.compile(r"^'"), ["''", "'ß日'", "'%'", "'a b'", "'9'", "'NULL'"]),
    (re.compile(r"^-?\d+$"), ["0", "-1", "2147483647", "9223372036854775807"]),
    (re.compile(r"^-?\d*\.\d+"), ["0.0", "-0.5", "1e300::DOUBLE PRECISION", "'inf'::DOUBLE PRECISION", "'nan'::DOUBLE PRECISION"]),
    (re.compile(r"^\["), ["[]::INTEGER[]", "[NULL]::INTEGER[]", "[2, NULL, 1, 2]", "[-2147483648, 2147483647]"]),
    (re.compile(r"^\{"), ["{'a': NULL, 'b': NULL}", "{'a': 1, 'b': 'x, y}'}"]),
]  # fmt: skip

#: Functions whose results are as long as a number says: not 2 GB in each database.
LONG = {"lpad", "rpad", "repeat", "bar", "space", "list_resize", "range", "generate_series"}

ZONES = ["UTC", "America/New_York", "Asia/Kolkata"]


def split(call: str) -> tuple[str, list[str]] | None:
    """The name of a call and its arguments; None if the text is more than a call."""
    found = re.fullmatch(r"(\w+)\((.*)\)", call, re.S)
    if found is None:
        return None
    parts, depth, quoted = [""], 0, False
    for character in found[2]:
        if character == "'":
            quoted = not quoted
        elif not quoted and character in "([{":
            depth += 1
        elif not quoted and character in ")]}":
            depth -= 1
        if depth < 0:
            return None
        if character == "," and depth == 0 and not quoted:
            parts.append("")
        else:
            parts[-1] += character
    return found[1], [part.strip() for part in parts if part.strip()]


def portable(call: str) -> str:
    """The call with lists as PostgreSQL writes them, too: `ARRAY[1, 2]`."""
    out, quoted = "", False
    for character in call:
        quoted ^= character == "'"
        if character == "[" and not quoted and re.search(r"(^|[^\w\])'])\s*$", out):
            out += "ARRAY"
        out += character
    return out


def entries() -> Iterator[tuple[str, list[str], list[str]]]:
    """Sections, names and example calls of the page."""
    section = ""
    for line in PAGE.read_text().splitlines():
        if line.startswith("## "):
            section = line.removeprefix("## ")
        cells = [cell.strip().replace("\\|", "|") for cell in re.split(r"(?<!\\)\|", line)]
        if len(cells) < 6 or not cells[1].startswith("`"):
            continue
        names = [name.strip("`").split("(")[0] for name in re.findall(r"`+[^`]+`+", cells[1])]
        calls = [re.match(r"(`+) ?(.*?) ?\1 →", example) for example in cells[4].split("<br>")]
        yield section, names, [call[2] for call in calls if call]


def queries(section: str, names: list[str], examples: list[str]) -> Iterator[str]:
    if section in ("Aggregates", "Window functions") or VOLATILE & set(names):
        return
    for example in examples:
        yield f"SELECT {example}"
        call = split(example)
        if call is None:
            continue
        name, arguments = call
        for at, usual in enumerate(arguments):
            values = next((values for pattern, values in EXTREMES if pattern.search(usual)), [])
            for value in [*values, "NULL"]:
                if name in LONG and value == "2147483647":
                    continue
                changed = [value if i == at else argument for i, argument in enumerate(arguments)]
                yield f"SELECT {name}({', '.join(changed)})"
        # Instants in place of timestamps, in the session's time zone.
        for at, usual in enumerate(arguments):
            if re.match(r"(DATE|TIMESTAMP) '", usual):
                for instant in ("2024-03-10 06:59:59+00", "2024-07-01 02:00:00+00"):
                    changed = [f"TIMESTAMPTZ '{instant}'" if i == at else argument for i, argument in enumerate(arguments)]
                    yield f"SELECT {name}({', '.join(changed)})"


def main() -> int:
    only = sys.argv[1:]
    for seed, zone in enumerate(ZONES, 1):
        print(f"-- seed {seed}\n-- setup\nSET TimeZone = '{zone}';")
        seen = set()
        for section, names, examples in entries():
            for query in map(portable, queries(section, names, examples)):
                dated = re.search(r"DATE|TIME", query) is not None
                wanted = not only or any(word in query for word in only)
                if query in seen or "\n" in query or not wanted or (zone != "UTC" and not dated):
                    continue
                seen.add(query)
                print(f"-- query\n{query};")
    return 0


if __name__ == "__main__":
    sys.exit(main())
