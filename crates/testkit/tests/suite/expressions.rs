//! The expression machine alone, compared with the reference's evaluation of each row.

use entasis_testkit::compare::same_value;
use entasis_testkit::expressions::{Case, case};
use entasis_testkit::reference::expression::{Row, evaluate, holds};
use entasis_testkit::reference::permitted::{may_pass, permitted};
use entasis_vector::expr::{ColumnMeta, Expr, Machine, Program};
use entasis_vector::{Chunk, ColumnId, ErrorKind, Result, Value};

fn row<'a>(columns: &'a [ColumnId], values: &'a [Value]) -> Row<'a> {
    Row { columns, values }
}

/// The results of the expressions for each row; `None` if the reference does not support them.
fn expected(case: &Case, columns: &[ColumnId]) -> Option<Result<Vec<Vec<Value>>>> {
    let all =
        case.rows.iter().map(|values| case.exprs.iter().map(|e| evaluate(e, row(columns, values))).collect());
    opinion(all.collect())
}

/// The rows for which all predicates are true.
fn expected_filter(case: &Case, columns: &[ColumnId]) -> Option<Result<Vec<Vec<Value>>>> {
    let mut rows = Vec::new();
    'rows: for values in &case.rows {
        for predicate in &case.predicates {
            match holds(predicate, row(columns, values)) {
                Ok(true) => {}
                Ok(false) => continue 'rows,
                Err(error) => return opinion(Err(error)),
            }
        }
        rows.push(values.clone());
    }
    Some(Ok(rows))
}

fn opinion<T>(result: Result<T>) -> Option<Result<T>> {
    if matches!(&result, Err(error) if error.kind() == ErrorKind::NotSupported) { None } else { Some(result) }
}

fn values(chunk: &Chunk, types: &[entasis_vector::DataType]) -> Vec<Vec<Value>> {
    (0..chunk.len())
        .map(|r| types.iter().enumerate().map(|(c, ty)| chunk.value(r, c, *ty)).collect())
        .collect()
}

fn check(seed: u64) -> std::result::Result<(), String> {
    let case = case(seed);
    let columns: Vec<ColumnId> = case.columns.iter().map(|column| column.id).collect();
    let said = |what: String, exprs: &[Expr]| {
        let exprs: Vec<String> = exprs.iter().map(|e| format!("  {e}")).collect();
        format!("seed {seed}: {what}\n{}\n", exprs.join("\n"))
    };

    if let Some(expected) = expected(&case, &columns) {
        let types: Vec<_> = case.exprs.iter().map(|e| e.ty()).collect();
        let mut output = Chunk::new();
        let found = Program::compile(&case.exprs, &case.columns).and_then(|program| {
            let mut machine = Machine::new(program);
            // Twice: the second time everything is warm.
            for _ in 0..2 {
                output.reset(case.chunk.len());
                machine.project(&case.chunk, &mut output)?;
            }
            Ok(values(&output, &types))
        });
        match (expected, found) {
            (Err(_), Err(error)) if error.kind() == ErrorKind::Input => {}
            (Ok(expected), Ok(found)) => {
                for (r, (expected, found)) in expected.iter().zip(&found).enumerate() {
                    for (i, ((e, f), ty)) in expected.iter().zip(found).zip(&types).enumerate() {
                        if !same_value(e, f, *ty) {
                            let inputs: Vec<String> = case
                                .columns
                                .iter()
                                .zip(&case.rows[r])
                                .map(|(c, v)| format!("{}={} {}", c.id, v.display(c.ty), c.ty))
                                .collect();
                            let what = format!(
                                "row {r}: {} expected {}, of {}",
                                f.display(*ty),
                                e.display(*ty),
                                inputs.join(", ")
                            );
                            return Err(said(what, &case.exprs[i..=i]));
                        }
                    }
                }
            }
            (Ok(_), Err(error)) => return Err(said(format!("{error:?}, expected a result"), &case.exprs)),
            (Err(error), Ok(found)) => {
                let permitted = case.rows.iter().map(|values| {
                    let exprs = case.exprs.iter().map(|e| with_known_nulls(e, &case.columns));
                    exprs.map(|e| permitted(&e, row(&columns, values))).collect::<Result<Vec<_>>>()
                });
                let same = |(expected, found): (&Vec<Value>, &Vec<Value>)| {
                    expected.iter().zip(found).zip(&types).all(|((e, f), ty)| same_value(e, f, *ty))
                };
                match permitted.collect::<Result<Vec<_>>>() {
                    Ok(permitted) if permitted.iter().zip(&found).all(same) => {}
                    _ => return Err(said(format!("a result, expected {error:?}"), &case.exprs)),
                }
            }
            (Err(expected), Err(found)) => {
                return Err(said(format!("{found:?}, expected {expected:?}"), &case.exprs));
            }
        }
    }

    if let Some(expected) = expected_filter(&case, &columns) {
        let types: Vec<_> = case.columns.iter().map(|column| column.ty).collect();
        let mut chunk = case.chunk.clone();
        let found = Program::compile(&case.predicates, &case.columns).and_then(|program| {
            let mut machine = Machine::new(program);
            let picked = machine.select(&case.chunk)?.len();
            machine.filter(&mut chunk)?;
            assert_eq!(picked, chunk.len(), "seed {seed}: select and filter differ");
            Ok(values(&chunk, &types))
        });
        match (expected, found) {
            (Err(_), Err(error)) if error.kind() == ErrorKind::Input => {}
            (Ok(expected), Ok(found)) if expected == found => {}
            (Ok(expected), Ok(found)) => {
                let what = format!("{} rows pass, expected {}", found.len(), expected.len());
                return Err(said(what, &case.predicates));
            }
            (Ok(_), Err(error)) => {
                return Err(said(format!("{error:?}, expected a result"), &case.predicates));
            }
            (Err(error), Ok(found)) => {
                let passing = case.rows.iter().filter_map(|values| {
                    let passes = may_pass(&case.predicates, row(&columns, values));
                    passes.map(|passes| passes.then(|| values.clone())).transpose()
                });
                match passing.collect::<Result<Vec<_>>>() {
                    Ok(passing) if passing == found => {}
                    _ => return Err(said(format!("a result, expected {error:?}"), &case.predicates)),
                }
            }
            (Err(expected), Err(found)) => {
                return Err(said(format!("{found:?}, expected {expected:?}"), &case.predicates));
            }
        }
    }
    Ok(())
}

/// The expression with FALSE for the questions whether a column is NULL that never is: the engine knows that.
fn with_known_nulls(expr: &Expr, columns: &[ColumnMeta]) -> Expr {
    let is_never = |id| columns.iter().any(|column| column.id == id && !column.nullable);
    expr.clone().transform(&mut |part| match part {
        Expr::IsNull(input) if matches!(*input, Expr::Column { id, .. } if is_never(id)) => {
            Expr::boolean(false)
        }
        other => other,
    })
}

#[test]
fn the_machine_agrees_with_the_reference() {
    let (first, count) = match std::env::var("ENTASIS_SEED") {
        Ok(seed) => (seed.parse().expect("ENTASIS_SEED is a number"), 1),
        Err(_) => (0, 4000),
    };
    let failures: Vec<String> = (first..first + count)
        .filter_map(|seed| {
            let checked = std::panic::catch_unwind(|| check(seed));
            checked.unwrap_or_else(|_| Err(format!("seed {seed}: panic\n{:#?}", case(seed).exprs))).err()
        })
        .collect();
    let shown: Vec<String> = failures.iter().take(12).cloned().collect();
    assert!(failures.is_empty(), "{} of {count} cases differ:\n\n{}", failures.len(), shown.join("\n"));
}
