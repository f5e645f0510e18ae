//! Every aggregate and window function of the page of functions, with every number of arguments, with every
//! clause that a call may have, over groups, sets of groups and windows: each gives rows or is refused, and
//! none fails inside, where nobody computes what the binder let through.
//!
//! The names are those of the page, so that a new function is in it.

use entasis::{Config, Database, ErrorKind};

/// The names in a section of the page.
fn names(title: &str) -> Vec<String> {
    let page = entasis_functions::catalog::page::page();
    let section = page.split("\n## ").find(|section| section.starts_with(title)).expect("a section");
    let rows = section.lines().filter(|line| line.starts_with("| `"));
    let cells = rows.filter_map(|row| row.split(" | ").next());
    let of_cell = |cell: &str| -> Vec<String> {
        let quoted = cell.split('`').skip(1).step_by(2);
        quoted.map(|name| name.split('(').next().unwrap_or(name).to_owned()).collect()
    };
    cells.flat_map(of_cell).collect()
}

#[test]
fn no_call_fails_inside() {
    let connection = Database::in_memory(Config::default()).expect("a database").connect();
    let setup = "CREATE TABLE t AS SELECT i % 3 AS g, i AS x, 'a' || i AS s, i > 2 AS b, i::DOUBLE AS f, [i] AS l FROM range(6) r(i)";
    connection.execute(setup).expect("a table");
    connection.execute("INSERT INTO t VALUES (NULL, NULL, NULL, NULL, NULL, NULL)").expect("a row");
    let arguments = [
        "",
        "*",
        "t.*",
        "x",
        "s",
        "b",
        "f",
        "l",
        "x, x",
        "s, s",
        "s, x",
        "f, 0.5",
        "x, 1",
        "x, x, x",
        "DISTINCT x",
        "DISTINCT s, ','",
        "x ORDER BY s DESC",
        "f ORDER BY x",
        "x IGNORE NULLS",
        "abs(x) IGNORE NULLS",
        "NULL",
        "random()",
    ];
    let behind = [
        "",
        " FILTER (WHERE b)",
        " WITHIN GROUP (ORDER BY x)",
        " OVER ()",
        " OVER (PARTITION BY g ORDER BY x ROWS 1 PRECEDING)",
        " FILTER (WHERE b) OVER (ORDER BY f RANGE BETWEEN 1 PRECEDING AND 1 FOLLOWING)",
        " IGNORE NULLS OVER (ORDER BY x)",
    ];
    let from = ["", " FROM t", " FROM t GROUP BY g", " FROM t GROUP BY ROLLUP (g), g"];
    let (mut rows, mut refused, mut failures) = (0, 0, Vec::new());
    let all = [names("Aggregates"), names("Window functions")].concat();
    assert!(all.len() > 80, "the page has its names: {all:?}");
    for name in all {
        for arguments in arguments {
            for behind in behind {
                // One source for each, in turn: all of them would take minutes.
                let from = from[(rows + refused) % from.len()];
                let sql = format!("SELECT {name}({arguments}){behind}{from}");
                match connection.execute(&sql) {
                    Ok(_) => rows += 1,
                    Err(error) if error.kind() == ErrorKind::Internal => {
                        failures.push(format!("{sql}\n  {error}"));
                    }
                    Err(_) => refused += 1,
                }
            }
        }
    }
    assert!(rows > 1_000 && refused > 1_000, "{rows} gave rows, {refused} were refused");
    let shown = failures.iter().take(20).cloned().collect::<Vec<_>>().join("\n");
    assert!(failures.is_empty(), "{} failures\n{shown}", failures.len());
}
