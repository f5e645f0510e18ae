//! `ALTER TABLE`: the resulting tables.

use super::*;
use crate::{Alteration, Columns};

struct Altered {
    columns: Vec<Field>,
    definition: Definition,
    rows: Option<Plan>,
    violations: Vec<(String, Plan)>,
}

fn alteration(sql: &str) -> Alteration {
    match try_bind(sql) {
        Ok(Statement::AlterTable { alteration, .. }) => alteration,
        other => panic!("{sql}: {other:?}"),
    }
}

fn altered(sql: &str) -> Altered {
    match alteration(sql) {
        Alteration::Columns(Columns { columns, definition, rows, violations, .. }) => {
            if let Some(rows) = &rows {
                check(rows, sql);
                let types: Vec<DataType> = columns.iter().map(|column| column.ty).collect();
                assert_eq!(rows.schema().iter().map(|field| field.ty).collect::<Vec<_>>(), types, "{sql}");
            }
            violations.iter().for_each(|(_, plan)| check(plan, sql));
            Altered { columns, definition, rows, violations }
        }
        other => panic!("{sql}: {other:?}"),
    }
}

fn names_of(altered: &Altered) -> String {
    altered.columns.iter().map(|column| column.name.to_string()).collect::<Vec<_>>().join(" ")
}

fn messages(altered: &Altered) -> Vec<&str> {
    altered.violations.iter().map(|(message, _)| message.as_str()).collect()
}

#[test]
fn columns_come_and_go() {
    let made = altered("ALTER TABLE w ADD COLUMN z INT DEFAULT 5 NOT NULL CHECK (z < 9)");
    assert_eq!(names_of(&made), "id a b S made z");
    assert_eq!(made.definition.default_of(5), &ColumnDefault::Expression("5".into()));
    assert_eq!(made.definition.checks[2].name, "w_z_check");
    assert_eq!(
        messages(&made),
        [
            "NULL in column w.z, which is declared NOT NULL",
            "CHECK constraint w_z_check of table w is violated by a row"
        ]
    );
    assert!(made.rows.is_some());
    assert!(altered("ALTER TABLE w ADD z VARCHAR").violations.is_empty());
    let made = altered(
        "ALTER TABLE w ADD z INT UNIQUE REFERENCES g, ADD y INT, DROP made"
            .replace(" REFERENCES g", "")
            .as_str(),
    );
    assert_eq!(names_of(&made), "id a b S z y");
    assert_eq!(made.definition.keys[2], key("w_z_key", &[4], KeyKind::Unique));
    assert!(matches!(alteration("ALTER TABLE w ADD COLUMN IF NOT EXISTS A INT"), Alteration::Nothing));
    assert!(matches!(alteration("ALTER TABLE w DROP COLUMN IF EXISTS zz"), Alteration::Nothing));
    assert!(matches!(alteration("ALTER TABLE IF EXISTS nothing DROP COLUMN a"), Alteration::Nothing));

    let made = altered("ALTER TABLE c DROP COLUMN x");
    assert_eq!((names_of(&made).as_str(), &made.definition.foreign_keys[0].columns[..]), ("w_id", &[0][..]));
    assert!(made.violations.is_empty());
    for (sql, message) in [
        ("ALTER TABLE w DROP COLUMN b", "the column b is used by the constraint w_b_key"),
        ("ALTER TABLE w DROP COLUMN a", "the column a is used by the constraint w_a_check"),
        ("ALTER TABLE c DROP COLUMN w_id", "the column w_id is used by the constraint c_w_id_fkey"),
        ("ALTER TABLE g DROP COLUMN r", "the column r is used by the index g_r_idx"),
        ("ALTER TABLE w DROP COLUMN zz", "there is no column zz"),
        ("ALTER TABLE w ADD COLUMN A INT", "has a column A already"),
        ("ALTER TABLE w ADD COLUMN z INT GENERATED ALWAYS AS IDENTITY", "identity columns"),
        ("ALTER TABLE nothing ADD COLUMN z INT", "there is no table nothing"),
        ("ALTER TABLE v ADD COLUMN z INT", "v is a view"),
    ] {
        assert!(refused(sql).to_string().contains(message), "{sql}: {}", refused(sql));
    }
}

#[test]
fn names_change() {
    let made = altered("ALTER TABLE w RENAME COLUMN a TO \"Amount\"");
    assert_eq!(names_of(&made), "id Amount b S made");
    assert_eq!(made.definition.checks[0].sql, "\"Amount\" > 0");
    assert_eq!(made.definition.checks[1].sql, "b <> \"Amount\" OR s = 'x'");
    assert!(made.rows.is_none() && made.violations.is_empty(), "{:?}", made.violations);
    assert_eq!(names_of(&altered("ALTER TABLE w RENAME a TO A")), "id A b S made");
    assert!(refused("ALTER TABLE w RENAME COLUMN a TO b").message().contains("has a column b already"));
    assert!(matches!(alteration("ALTER TABLE w RENAME TO New"), Alteration::Rename { to } if to == "new"));
    assert!(refused("ALTER TABLE w RENAME TO t").message().contains("there is a table or view t already"));
}

#[test]
fn columns_change() {
    let made = altered("ALTER TABLE w ALTER COLUMN b SET DEFAULT 1 + 2");
    assert_eq!(made.definition.default_of(2), &ColumnDefault::Expression("1 + 2".into()));
    assert!(made.rows.is_none());
    assert_eq!(altered("ALTER TABLE w ALTER a DROP DEFAULT").definition.default_of(1), &ColumnDefault::Null);
    let made = altered("ALTER TABLE w ALTER b SET NOT NULL");
    assert_eq!(messages(&made), ["NULL in column w.b, which is declared NOT NULL"]);
    assert!(!made.columns[2].nullable && made.rows.is_none());
    assert!(altered("ALTER TABLE g ALTER q SET NOT NULL").violations.is_empty());
    assert!(refused("ALTER TABLE g ALTER q DROP NOT NULL").message().contains("part of the primary key"));
    assert!(refused("ALTER TABLE w ALTER id DROP DEFAULT").message().contains("an identity column"));
    assert!(refused("ALTER TABLE w ALTER a SET DEFAULT DATE '2024-01-01'").to_string().contains("is DATE"));

    let made = altered("ALTER TABLE w ALTER COLUMN a SET DATA TYPE BIGINT");
    assert_eq!((made.columns[1].ty, made.rows.is_some()), (DataType::Int64, true));
    assert_eq!(made.violations.len(), 2, "checks of a are judged anew");
    let made = altered("ALTER TABLE t ALTER s TYPE INTEGER USING length(s) + a");
    assert_eq!((made.columns[2].ty, made.violations.len()), (DataType::Int32, 0));
    assert!(matches!(alteration("ALTER TABLE w ALTER a TYPE INT"), Alteration::Nothing));
    let error = refused("ALTER TABLE w ALTER a TYPE DATE");
    assert!(error.to_string().contains("constraint") || error.to_string().contains("DEFAULT"), "{error}");
}

#[test]
fn constraints_come_and_go() {
    let made = altered("ALTER TABLE t ADD PRIMARY KEY (a, b)");
    assert_eq!(made.definition.keys, [key("t_pkey", &[0, 1], KeyKind::Primary)]);
    assert_eq!(
        messages(&made),
        [
            "NULL in column t.a, which is declared NOT NULL",
            "NULL in column t.b, which is declared NOT NULL",
            "duplicate key: rows of table t have the same (a, b) (constraint t_pkey)"
        ]
    );
    assert!(made.rows.is_none());
    let made = altered(
        "ALTER TABLE t ADD CONSTRAINT k UNIQUE (s), ADD CHECK (a > b), ADD FOREIGN KEY (a) REFERENCES w",
    );
    assert_eq!(made.definition.checks[0].name, "t_check");
    assert_eq!(made.violations.len(), 3);
    assert!(messages(&made)[2].contains("foreign key t_a_fkey: no row of table w"));
    let made = altered(
        "ALTER TABLE w DROP CONSTRAINT w_check, DROP CONSTRAINT IF EXISTS none, DROP CONSTRAINT w_b_key",
    );
    assert_eq!((made.definition.checks.len(), made.definition.keys.len()), (1, 1));
    assert!(matches!(alteration("ALTER TABLE w DROP CONSTRAINT IF EXISTS none"), Alteration::Nothing));
    let error = refused("ALTER TABLE w DROP CONSTRAINT w_chek");
    assert_eq!(error.hint(), Some("did you mean w_check?"));
    assert!(refused("ALTER TABLE g DROP CONSTRAINT g_r_idx").message().contains("is an index"));
    assert!(refused("ALTER TABLE w ADD PRIMARY KEY (b)").message().contains("at most one primary key"));

    let layout = alteration("ALTER TABLE w SET (layout = 'sorted', layout_key = (b), partitions = 3)");
    let Alteration::Layout(choice) = layout else { panic!("a layout") };
    assert_eq!((choice.key, choice.partitions), (Some(vec![2]), Some(3)));
    assert!(refused("ALTER TABLE w SET (layout = 'odd')").message().contains("there is no layout odd"));
}

#[test]
fn what_others_need_is_told() {
    let columns = |sql: &str| match alteration(sql) {
        Alteration::Columns(columns) => columns,
        other => panic!("{sql}: {other:?}"),
    };
    let made = columns("ALTER TABLE t DROP COLUMN b, ADD z INT, ALTER d TYPE VARCHAR, RENAME a TO first");
    assert_eq!(made.places[..5], [Some(0), None, Some(1), Some(2), Some(3)]);
    assert_eq!((made.revalued, made.cascade), (vec![3], false));
    assert!(columns("ALTER TABLE t DROP COLUMN b CASCADE").cascade);
    assert!(!columns("ALTER TABLE t DROP COLUMN b RESTRICT").cascade);
    assert!(!columns("ALTER TABLE t DROP COLUMN b CASCADE, DROP COLUMN d").cascade, "not all of it");

    let made = columns("ALTER TABLE w DROP COLUMN b CASCADE");
    assert_eq!(made.definition.keys, [key("w_pkey", &[0], KeyKind::Primary)]);
    assert_eq!(made.definition.checks.len(), 1, "the check of a stays");
    let made = columns("ALTER TABLE w ALTER b SET DEFAULT nextval('S') + 1");
    assert_eq!(made.definition.sequences, ["s"]);
}
