//! The columns of several Parquet files as those of one relation.
//!
//! Columns are matched by name, in any order. They are those of the first file; or with `union_by_name` those
//! of all, with NULL in files that lack one. Without it, the type in the first file must hold the values of
//! the other files' columns, or these do not match; with it, the type is widened to hold them all.
//!
//! A column that cannot be read (maps, decimals of more than 38 digits) or does not match is an error
//! only in a query that reads that column.

use crate::columns::{Origin, joined, place_of};
use arrow_schema::SchemaRef;
use entasis_arrow::from_arrow_field;
use entasis_vector::{DataType, Error, Field, Schema, Value};
use std::path::Path;

/// The columns of the relation.
pub(super) struct United {
    pub(super) schema: Schema,
    /// For each column, why it cannot be read.
    pub(super) problems: Vec<Option<Error>>,
    /// The origin of each column in each file, by file and column.
    pub(super) origins: Vec<Vec<Origin>>,
}

/// Unites the columns of `files`.
pub(super) fn unite(files: &[(&Path, SchemaRef)], union_by_name: bool) -> United {
    let mut names: Vec<&str> = Vec::new();
    for (i, (_, schema)) in files.iter().enumerate().take(if union_by_name { files.len() } else { 1 }) {
        for field in schema.fields() {
            // Names in one file that differ only in case are different columns.
            if i == 0 || place_of(field.name(), names.iter().copied()).is_none() {
                names.push(field.name());
            }
        }
    }
    let mut united =
        United { schema: Schema::new(), problems: Vec::new(), origins: vec![Vec::new(); files.len()] };
    for name in names {
        let (ty, problem) = unite_column(name, files, union_by_name, &mut united.origins);
        // Other files may contain NULL even if the first one declares that it does not.
        united.schema.push(Field::new(name, ty));
        united.problems.push(problem);
    }
    united
}

/// Adds the origins of one column. Returns its type, and why it cannot be read.
fn unite_column(
    name: &str,
    files: &[(&Path, SchemaRef)],
    union_by_name: bool,
    origins: &mut [Vec<Origin>],
) -> (DataType, Option<Error>) {
    // The type so far, and the file from which it comes.
    let mut known: Option<(DataType, &Path)> = None;
    let mut problem = None;
    for ((path, schema), origins) in files.iter().zip(origins) {
        let shown = path.display();
        let Some(column) = place_of(name, schema.fields().iter().map(|field| field.name().as_str())) else {
            origins.push(Origin::Value(Value::Null));
            if !union_by_name {
                let first = files[0].0.display();
                problem = problem.or(Some(
                    Error::input(format!("'{shown}' has no column \"{name}\", which '{first}' has"))
                        .with_hint("read NULL where a file lacks a column: union_by_name => true"),
                ));
            }
            continue;
        };
        origins.push(Origin::Column(column));
        let ty = match from_arrow_field(schema.field(column)) {
            Ok(ty) => ty,
            Err(e) => {
                problem = problem.or(Some(e.with_context(format!("'{shown}', column \"{name}\""))));
                continue;
            }
        };
        let Some((so_far, first)) = known else {
            known = Some((ty, path));
            continue;
        };
        match joined(so_far, ty) {
            Some(both) if both == so_far => {}
            Some(both) if union_by_name => known = Some((both, path)),
            both => {
                let hint = match both {
                    Some(both) => format!("read both as {both}: union_by_name => true"),
                    None => "read the files apart, CAST the column and put them together with UNION ALL"
                        .to_owned(),
                };
                let first = first.display();
                let text = format!("column \"{name}\" is {so_far} in '{first}' and {ty} in '{shown}'");
                problem = problem.or(Some(Error::input(text).with_hint(hint)));
            }
        }
    }
    (known.map_or(DataType::Varchar, |(ty, _)| ty), problem)
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_schema::{DataType as ArrowType, Field as ArrowField, Schema as ArrowSchema};
    use std::sync::Arc;

    fn united(files: &[&[(&str, ArrowType)]], union_by_name: bool) -> United {
        let schema = |columns: &&[(&str, ArrowType)]| {
            let fields = columns.iter().map(|(name, ty)| ArrowField::new(*name, ty.clone(), false));
            Arc::new(ArrowSchema::new(fields.collect::<Vec<_>>()))
        };
        let paths = ["a", "b", "c"].map(Path::new);
        unite(&paths.into_iter().zip(files.iter().map(schema)).collect::<Vec<_>>(), union_by_name)
    }

    #[test]
    fn columns_go_by_name() {
        use ArrowType::{Int16, Int32, Int64, Utf8};
        let files = [&[("id", Int64), ("q", Int32)][..], &[("Q", Int16), ("extra", Utf8), ("ID", Int64)]];
        let plain = united(&files, false);
        assert_eq!(plain.schema.iter().map(|field| &*field.name).collect::<Vec<_>>(), ["id", "q"]);
        assert!(plain.problems.iter().all(Option::is_none));
        assert_eq!(plain.origins[1], [Origin::Column(2), Origin::Column(0)]);
        let union = united(&files, true);
        assert_eq!((&*union.schema[2].name, &union.origins[0][2]), ("extra", &Origin::Value(Value::Null)));
        let reversed = united(&[files[1], files[0]], false);
        assert!(reversed.problems[1].as_ref().unwrap().message().contains("'b' has no column \"extra\""));
        let cases = united(&[&[("a", Int64), ("A", Int32)], &[("A", Int32), ("a", Int64)]], false);
        assert_eq!(cases.origins[1], [Origin::Column(1), Origin::Column(0)]);
    }

    #[test]
    fn types_hold_all_or_do_not_go_together() {
        use ArrowType::{Int8, Int64, UInt64, Utf8};
        let narrow = [&[("x", Int8)][..], &[("x", Int64)], &[("x", UInt64)]];
        let problem = united(&narrow, false).problems[0].clone().unwrap();
        assert_eq!(problem.message(), "column \"x\" is TINYINT in 'a' and BIGINT in 'b'");
        assert!(problem.hint().unwrap().contains("BIGINT: union_by_name"));
        let union = united(&narrow, true);
        assert_eq!(union.schema[0].ty, DataType::Decimal { precision: 20, scale: 0 });
        assert!(union.problems[0].is_none());
        assert!(united(&[&[("x", Int64)], &[("x", Int8)]], false).problems[0].is_none());
        assert!(united(&[&[("x", Int64)], &[("x", Utf8)]], true).problems[0].is_some());
        let nested = ArrowType::List(Arc::new(ArrowField::new("item", Int64, true)));
        let problem = united(&[&[("x", Int64)], &[("x", nested)]], true).problems[0].clone().unwrap();
        assert_eq!(problem.message(), "column \"x\" is BIGINT in 'a' and BIGINT[] in 'b'");
    }
}
