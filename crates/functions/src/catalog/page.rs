//! `docs/functions.md`, generated from the catalog, and the examples on it, which a test runs.

use super::SECTIONS;
use crate::aggregates::ROWS;
use crate::definition::Definition;
use std::fmt::Write;

const HEAD: &str = "# Functions

*All functions, with what they take and give. This page is written from the catalog of functions in the code, and every
example on it is run by a test.*

Names on one line mean the same function. NULL as an argument gives NULL, where nothing else is said. An argument may be
of a type that becomes the wanted one without loss: an INTEGER where a BIGINT or DOUBLE is, a DATE where a TIMESTAMP is, and
text where any type is. Where PostgreSQL and DuckDB disagree, the last section says whom we follow.
";

const TAIL: &str = "
## What is left out, and why

- **Lists, structs and maps** have the functions above. Missing are lambdas (`list_transform`, …), `list_aggregate`, `json_…`,
  `histogram`, `approx_top_k`, `arg_max(value, by, n)`, PostgreSQL's `regexp_match`,
  and its set-returning `regexp_matches(…)` (here that is DuckDB's test).
- **Of windows**: `fill`, and hypothetical sets (`rank(…) WITHIN GROUP`).
- **Types that are missing**: BIT (`bitstring`, `bit_position`), HUGEINT (`md5_number`), ENUM (`enum_…`), geometry, text search,
  network addresses, ranges, XML.
- **Tables of Unicode** that we do not carry: `nfc_normalize`, `normalize`, `strip_accents`, `…_grapheme`, collations.
- **Sessions and catalogs**: `pg_…`, `has_…_privilege`, `current_setting`, `current_user`, `getvariable`,
  `setseed`, `sleep_ms`, `write_log`, `uuidv7`, `age(x)` of one argument.
- **Regular expressions** have no back-references and no look-around, which take more than linear time.

Where PostgreSQL and DuckDB disagree:

- `.` in a regular expression matches a line feed, and `regexp_replace` writes groups as `\\1` and the match as `\\&`
  (PostgreSQL).
- `sha224` to `sha512` give a BLOB (PostgreSQL), `md5` and `sha1` text (both). `to_hex` of a number has lower-case digits
  (PostgreSQL), `hex` upper-case ones (DuckDB).
- `ceil` and `floor` give a DOUBLE, `power` too; `power` and `exp` give infinity or not a number where PostgreSQL has an error
  (DuckDB).
- `avg` of decimals is a DOUBLE; `median` and `quantile_cont` of them a decimal (DuckDB).
- `to_number` gives a decimal with as many digits after the point as the pattern has.
- `strptime` with `%z` gives the timestamp in UTC, not a TIMESTAMPTZ.
- `approx_quantile`, `approx_median` and `reservoir_quantile` are exact.
";

const WINDOWS: &str = "\
`f(…) OVER (PARTITION BY … ORDER BY … frame)`: a value for each row, of the rows of its partition. Every aggregate can be called so,
with `DISTINCT`, `FILTER` and an `ORDER BY` of its own; it is that of the frame, as are `first_value`, `last_value` and `nth_value`. A
frame is `ROWS`, `RANGE` or `GROUPS` with two bounds (`UNBOUNDED PRECEDING`, `n PRECEDING`, `CURRENT ROW`, `n FOLLOWING`, `UNBOUNDED FOLLOWING`)
and, if anything is left out of it, `EXCLUDE CURRENT ROW`, `GROUP` or `TIES`; without one it is the rows up to the last one that is equal in the
order, or all rows if there is no order. `RANGE` goes with a key of numbers, or of dates and times, whose offsets are intervals. `lag`, `lead` and the values
of frames take `IGNORE NULLS`. Windows may have names (`WINDOW w AS (…)`), and `QUALIFY` keeps rows by their results.

";

/// Text for a cell of a table.
fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}

fn code(text: &str) -> String {
    let ticks = if text.contains('`') { "``" } else { "`" };
    format!("{ticks}{}{ticks}", cell(text))
}

/// The whole page.
pub fn page() -> String {
    let mut out = HEAD.to_owned();
    for section in SECTIONS {
        let _ = write!(out, "\n## {}\n\n", section.title);
        if section.title == "Aggregates" {
            let _ = write!(out, "Examples are over the rows of `{ROWS}`.\n\n");
        }
        if section.title == "Window functions" {
            out.push_str(WINDOWS);
        }
        out.push_str("| function | gives | what | example |\n|---|---|---|---|\n");
        for definition in section.functions.iter().copied().flatten() {
            line(definition, &mut out);
        }
    }
    out.push_str(TAIL);
    out
}

fn line(definition: &Definition, out: &mut String) {
    let call = code(&format!("{}({})", definition.names[0], definition.arguments));
    let others: Vec<String> = definition.names[1..].iter().map(|name| code(name)).collect();
    let others = if others.is_empty() { String::new() } else { format!("; {}", others.join(", ")) };
    let examples: Vec<String> = definition
        .examples
        .iter()
        .map(|(call, result)| format!("{} → {}", code(call), code(result)))
        .collect();
    let (gives, does) = (cell(definition.gives), cell(definition.does));
    let _ = writeln!(out, "| {call}{others} | {gives} | {does} | {} |", examples.join("<br>"));
}

/// The examples as queries with a single text each, and their results.
pub fn examples() -> Vec<(String, String)> {
    let mut all = Vec::new();
    for section in SECTIONS {
        let from = if section.title == "Aggregates" { format!(" FROM {ROWS}") } else { String::new() };
        for definition in section.functions.iter().copied().flatten() {
            for (call, result) in definition.examples {
                all.push((format!("SELECT ({call})::VARCHAR{from}"), (*result).to_owned()));
            }
        }
    }
    all
}
