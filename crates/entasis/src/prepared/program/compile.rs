//! From a keyed statement to its program, for one state of the catalog.
//!
//! Whatever the program could not do as the statement says is found here: then there is none, and the
//! statement runs with a plan. `EXPLAIN` says why.

use super::values::{Assignments, Fill, NewValue, Source};
use super::{Action, IndexedKey, Keys, Outputs, Program, Several};
use crate::catalog::search_path::SearchPath;
use entasis_engine::relation::{ColumnDefault, OnCommit};
use entasis_sql::{Assigned, Insertable, Keyed, KeyedAction, OnConflict, Scalar};
use entasis_storage::index::index_columns;
use entasis_storage::{CatalogVersion, TableEntry};
use entasis_vector::{DataType, Field, PhysicalType, Schema, Value};
use std::ops::Bound;
use std::sync::Arc;

/// What is compiled, or why it cannot be.
pub(crate) type Compiled<T> = Result<T, &'static str>;

const NO_COLUMN: &str = "it names a column that the table does not have";
const VALUE: &str = "a value has to be converted in a way that needs a plan";

/// The program for a keyed statement with these names, which are those of a database.
pub(crate) fn compile(keyed: &Keyed, names: &CatalogVersion, path: &SearchPath) -> Compiled<Program> {
    let entry =
        names.table(&path.find(names, &keyed.table)).ok_or("it names no table of the database")?.clone();
    let schema = entry.table.schema().clone();
    let mut compiler =
        Compiler { entry: &entry, schema: &schema, names, assignments: Assignments::default() };
    compiler.suits(&keyed.action)?;
    let action = compiler.action(&keyed.action)?;
    let key = match &keyed.action {
        KeyedAction::Insert(..) | KeyedAction::ReadSeveral(..) => Vec::new(),
        _ => compiler.key(&keyed.key)?,
    };
    let returning = match &keyed.returning {
        None => None,
        Some(names) => Some(compiler.returning(names)?),
    };
    let Compiler { assignments, .. } = compiler;
    let indexed = indexed(&entry, &action);
    Ok(Program { entry, assignments, key, action, indexed, returning })
}

struct Compiler<'a> {
    entry: &'a TableEntry,
    schema: &'a Schema,
    names: &'a CatalogVersion,
    assignments: Assignments,
}

impl Compiler<'_> {
    fn find(&self, name: &str) -> Compiled<usize> {
        let found = self.schema.iter().position(|field| field.name.eq_ignore_ascii_case(name));
        found.ok_or(NO_COLUMN)
    }

    /// The columns with these names; all of them if there are no names.
    fn columns(&self, names: &[String]) -> Compiled<Vec<usize>> {
        match names {
            [] => Ok((0..self.schema.len()).collect()),
            names => names.iter().map(|name| self.find(name)).collect(),
        }
    }

    fn is_referred(&self) -> bool {
        let mut keys = self.names.tables().flat_map(|other| &other.definition.foreign_keys);
        keys.any(|key| key.table.eq_ignore_ascii_case(&self.entry.name))
    }

    /// Refuses tables that ask for more than what programs do.
    fn suits(&self, action: &KeyedAction) -> Compiled<()> {
        let definition = &self.entry.definition;
        let options = self.entry.table.options();
        let is_read = matches!(action, KeyedAction::Read(_) | KeyedAction::ReadSeveral(..));
        let is_insert = matches!(action, KeyedAction::Insert(..));
        // What is looked for is never NULL.
        let has_key = if is_read { options.is_distinct() } else { options.unique };
        let refusals = [
            (!is_read && definition.on_commit != OnCommit::Preserve, "the table loses its rows at a commit"),
            (!is_read && !definition.checks.is_empty(), "the table has CHECK constraints"),
            (!is_read && !definition.foreign_keys.is_empty(), "the table has foreign keys"),
            (!is_read && !is_insert && self.is_referred(), "foreign keys refer to the table"),
            (!is_insert && !has_key, "the table has no unique layout key"),
        ];
        refusals.into_iter().find(|(refuses, _)| *refuses).map_or(Ok(()), |(_, why)| Err(why))
    }

    fn action(&mut self, action: &KeyedAction) -> Compiled<Action> {
        Ok(match action {
            KeyedAction::Delete => Action::Delete,
            KeyedAction::Read(names) => Action::Read(self.outputs(names)?),
            KeyedAction::ReadSeveral(names, several) => {
                Action::ReadSeveral(self.outputs(names)?, self.several(several)?)
            }
            KeyedAction::Insert(names, rows, on_conflict) => {
                let columns = self.columns(names)?;
                let all = rows.iter().map(|row| self.row(&columns, row)).collect::<Compiled<Vec<_>>>()?;
                let set = match on_conflict {
                    None => None,
                    Some(on_conflict) if rows.len() == 1 => Some(self.on_conflict(on_conflict)?),
                    Some(_) => return Err("ON CONFLICT is about several rows"),
                };
                Action::Insert(all, set)
            }
            KeyedAction::Update(set) => {
                let set = self.new_values(set)?;
                let layout_key = &self.entry.table.options().layout_key;
                let moves = set.iter().any(|(column, _)| layout_key.contains(column));
                Action::Update(set, moves)
            }
        })
    }

    /// The values of the layout key.
    fn key(&self, given: &[(String, Scalar)]) -> Compiled<Vec<Source>> {
        let layout_key = &self.entry.table.options().layout_key;
        let not_the_key = "the columns compared with are not those of the layout key";
        if given.len() != layout_key.len() {
            return Err(not_the_key);
        }
        let source = |&column: &usize| {
            let (_, scalar) =
                given.iter().find(|(name, _)| self.find(name) == Ok(column)).ok_or(not_the_key)?;
            Source::as_it_is(scalar, self.schema[column].ty).ok_or(VALUE)
        };
        layout_key.iter().map(source).collect()
    }

    // ---- reads --------------------------------------------------------------------------------------------

    /// What a query returns: columns by their names, as these are written in it.
    fn outputs(&self, names: &[String]) -> Compiled<Outputs> {
        let outputs = self.returning(names)?;
        let is_written = |(name, field): (&String, &Field)| **name == *field.name;
        names
            .iter()
            .zip(&*outputs.schema)
            .all(is_written)
            .then_some(outputs)
            .ok_or("a column is written in another case")
    }

    /// What `RETURNING` returns: columns by their own names.
    fn returning(&self, names: &[String]) -> Compiled<Outputs> {
        let columns = self.columns(names)?;
        let schema = Arc::new(columns.iter().map(|&column| self.schema[column].clone()).collect());
        Ok(Outputs { columns, schema })
    }

    fn several(&self, several: &entasis_sql::Several) -> Compiled<Several> {
        let column = self.find(&several.column)?;
        if self.entry.table.options().layout_key != [column] {
            return Err("the column compared with is not the layout key");
        }
        let ty = self.schema[column].ty;
        let source = |scalar: &Scalar| Source::as_it_is(scalar, ty).ok_or(VALUE);
        let bound = |bound: &Bound<Scalar>| match bound {
            Bound::Unbounded => Ok(Bound::Unbounded),
            Bound::Included(scalar) => source(scalar).map(Bound::Included),
            Bound::Excluded(scalar) => source(scalar).map(Bound::Excluded),
        };
        // Floats and intervals that compare as equal need not be the same.
        let is_ordered =
            !matches!(ty.physical(), PhysicalType::F32 | PhysicalType::F64 | PhysicalType::Interval);
        let keys = match &several.keys {
            entasis_sql::Keys::List(scalars) => {
                Keys::List(scalars.iter().map(source).collect::<Compiled<_>>()?)
            }
            entasis_sql::Keys::Range(Bound::Unbounded, Bound::Unbounded) if self.schema[column].nullable => {
                return Err("the layout key may be NULL");
            }
            entasis_sql::Keys::Range(low, high) if is_ordered => Keys::Range(bound(low)?, bound(high)?),
            entasis_sql::Keys::Range(..) => return Err("ranges of the layout key's type need a plan"),
        };
        let limit = match &several.limit {
            None => None,
            Some(limit) => Some(Source::as_it_is(limit, DataType::Int64).ok_or(VALUE)?),
        };
        Ok(Several { keys, descends: several.descends == Some(true), limit })
    }

    // ---- changes ------------------------------------------------------------------------------------------

    /// A row with values for some columns, and the defaults of the others.
    fn row(&mut self, columns: &[usize], values: &[Insertable]) -> Compiled<Vec<Fill>> {
        if columns.len() != values.len() {
            return Err("there are not as many values as columns");
        }
        let mut given: Vec<Option<&Scalar>> = vec![None; self.schema.len()];
        let mut is_named = vec![false; self.schema.len()];
        for (&column, value) in columns.iter().zip(values) {
            if std::mem::replace(&mut is_named[column], true) {
                return Err("a column is named twice");
            }
            if let Insertable::Scalar(scalar) = value {
                given[column] = Some(scalar);
            }
        }
        given.into_iter().enumerate().map(|(column, value)| self.fill(column, value)).collect()
    }

    fn fill(&mut self, column: usize, value: Option<&Scalar>) -> Compiled<Fill> {
        let ty = self.schema[column].ty;
        match (value, self.entry.definition.default_of(column)) {
            (Some(_), ColumnDefault::Identity { always: true, .. }) => Err("a column takes no values"),
            (Some(scalar), _) => self.assignments.source(scalar, ty).map(Fill::Given).ok_or(VALUE),
            (None, ColumnDefault::Null) => Ok(Fill::Given(Source::null(ty))),
            (None, ColumnDefault::Expression(sql)) => {
                let (value, from) = entasis_sql::constant(sql).ok_or("a DEFAULT is not a constant")?;
                self.assignments.source(&Scalar::Constant(value, from), ty).map(Fill::Given).ok_or(VALUE)
            }
            (None, ColumnDefault::Identity { sequence, .. }) => {
                let numbers = "a column is not numbered by integers";
                let sequence = self.names.sequence(sequence).ok_or(numbers)?.clone();
                ty.is_integer().then_some(Fill::Next(sequence)).ok_or(numbers)
            }
        }
    }

    /// What `ON CONFLICT` on the layout key sets.
    fn on_conflict(&mut self, on_conflict: &OnConflict) -> Compiled<Vec<(usize, NewValue)>> {
        let options = self.entry.table.options();
        let mut key = on_conflict.key.iter().map(|name| self.find(name)).collect::<Compiled<Vec<_>>>()?;
        let mut layout_key = options.layout_key.clone();
        key.sort_unstable();
        layout_key.sort_unstable();
        let set = self.new_values(&on_conflict.set)?;
        let moves = set.iter().any(|(column, _)| layout_key.contains(column));
        let suits = key == layout_key && options.is_distinct() && !moves && !self.is_referred();
        suits.then_some(set).ok_or("ON CONFLICT is not about the layout key alone")
    }

    fn new_values(&mut self, set: &[(String, Assigned)]) -> Compiled<Vec<(usize, NewValue)>> {
        let mut all: Vec<(usize, NewValue)> = Vec::new();
        for (name, assigned) in set {
            let column = self.find(name)?;
            let default = self.entry.definition.default_of(column);
            let is_identity = matches!(default, ColumnDefault::Identity { .. });
            if is_identity || all.iter().any(|(other, _)| *other == column) {
                return Err("a column takes no values, or is set twice");
            }
            all.push((column, self.new_value(column, assigned)?));
        }
        Ok(all)
    }

    fn new_value(&mut self, column: usize, assigned: &Assigned) -> Compiled<NewValue> {
        let ty = self.schema[column].ty;
        match assigned {
            Assigned::Scalar(scalar) => self.assignments.source(scalar, ty).map(NewValue::Given).ok_or(VALUE),
            Assigned::Excluded(name) => {
                let other = self.find(name)?;
                (self.schema[other].ty == ty).then_some(NewValue::Excluded(other)).ok_or(VALUE)
            }
            Assigned::Sum { column: name, by, is_negative } => {
                let read = self.find(name)?;
                let types = [self.schema[read].ty, ty];
                // A constant that is not a BIGINT would become NULL, or text.
                let is_integer =
                    !matches!(by, Scalar::Constant(value, _) if !matches!(value, Value::Integer(_)));
                let by = Source::as_it_is(by, DataType::Int64).ok_or(VALUE)?;
                let is_sum = types.iter().all(|ty| ty.is_integer() && ty.integer_range().is_some());
                let sum = NewValue::Sum { column: read, by, is_negative: *is_negative, types };
                (is_sum && is_integer).then_some(sum).ok_or("a sum is not one of integers")
            }
        }
    }
}

/// The keys whose indexes an action may write to.
fn indexed(entry: &TableEntry, action: &Action) -> Vec<IndexedKey> {
    let keys = entry.definition.keys.iter().zip(&entry.indexes).enumerate();
    let keys = keys
        .filter(|(_, (_, index))| index.is_some())
        .map(|(number, (key, _))| IndexedKey { number, columns: index_columns(key, entry.table.options()) });
    let is_touched = |key: &IndexedKey| match action {
        Action::Read(_) | Action::ReadSeveral(..) => false,
        Action::Insert(..) | Action::Delete => true,
        Action::Update(sources, _) => sources.iter().any(|(column, _)| key.columns.contains(column)),
    };
    keys.filter(is_touched).collect()
}
