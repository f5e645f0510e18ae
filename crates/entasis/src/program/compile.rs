//! From a keyed statement to its program, for one state of the catalog.
//!
//! Whatever the program could not do as the statement says is found here: then there is none, and the
//! statement runs with a plan.

use super::values::{Assignments, Fill, NewValue, Source};
use super::{Action, IndexedKey, Keys, Outputs, Program, Several};
use crate::search_path::SearchPath;
use entasis_engine::relation::{ColumnDefault, OnCommit};
use entasis_sql::{Assigned, Insertable, Keyed, KeyedAction, OnConflict, Scalar};
use entasis_storage::index::index_columns;
use entasis_storage::{CatalogVersion, TableEntry};
use entasis_vector::{DataType, Field, PhysicalType, Schema, Value};
use std::ops::Bound;
use std::sync::Arc;

/// The program for a keyed statement; `None` if it has none with these names, which are those of a database.
pub(crate) fn compile(keyed: &Keyed, names: &CatalogVersion, path: &SearchPath) -> Option<Program> {
    let entry = names.table(&path.find(names, &keyed.table))?.clone();
    let schema = entry.table.schema().clone();
    let mut compiler =
        Compiler { entry: &entry, schema: &schema, names, assignments: Assignments::default() };
    if !compiler.suits(&keyed.action) {
        return None;
    }
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
    Some(Program { entry, assignments, key, action, indexed, returning })
}

struct Compiler<'a> {
    entry: &'a TableEntry,
    schema: &'a Schema,
    names: &'a CatalogVersion,
    assignments: Assignments,
}

impl Compiler<'_> {
    fn find(&self, name: &str) -> Option<usize> {
        self.schema.iter().position(|field| field.name.eq_ignore_ascii_case(name))
    }

    /// The columns with these names; all of them if there are no names.
    fn columns(&self, names: &[String]) -> Option<Vec<usize>> {
        match names {
            [] => Some((0..self.schema.len()).collect()),
            names => names.iter().map(|name| self.find(name)).collect(),
        }
    }

    fn is_referred(&self) -> bool {
        let mut keys = self.names.tables().flat_map(|other| &other.definition.foreign_keys);
        keys.any(|key| key.table.eq_ignore_ascii_case(&self.entry.name))
    }

    /// True if the table asks for nothing but what programs do.
    fn suits(&self, action: &KeyedAction) -> bool {
        let definition = &self.entry.definition;
        let is_plain = definition.on_commit == OnCommit::Preserve
            && definition.checks.is_empty()
            && definition.foreign_keys.is_empty();
        let options = self.entry.table.options();
        let is_unique = options.unique;
        match action {
            // What is looked for is never NULL.
            KeyedAction::Read(_) | KeyedAction::ReadSeveral(..) => options.is_distinct(),
            KeyedAction::Insert(..) => is_plain,
            KeyedAction::Update(_) | KeyedAction::Delete => is_unique && is_plain && !self.is_referred(),
        }
    }

    fn action(&mut self, action: &KeyedAction) -> Option<Action> {
        Some(match action {
            KeyedAction::Delete => Action::Delete,
            KeyedAction::Read(names) => Action::Read(self.outputs(names)?),
            KeyedAction::ReadSeveral(names, several) => {
                Action::ReadSeveral(self.outputs(names)?, self.several(several)?)
            }
            KeyedAction::Insert(names, rows, on_conflict) => {
                let columns = self.columns(names)?;
                let all = rows.iter().map(|row| self.row(&columns, row)).collect::<Option<Vec<_>>>()?;
                let set = match on_conflict {
                    None => None,
                    Some(on_conflict) if rows.len() == 1 => Some(self.on_conflict(on_conflict)?),
                    Some(_) => return None,
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
    fn key(&self, given: &[(String, Scalar)]) -> Option<Vec<Source>> {
        let layout_key = &self.entry.table.options().layout_key;
        if given.len() != layout_key.len() {
            return None;
        }
        let source = |&column: &usize| {
            let (_, scalar) = given.iter().find(|(name, _)| self.find(name) == Some(column))?;
            Source::as_it_is(scalar, self.schema[column].ty)
        };
        layout_key.iter().map(source).collect()
    }

    // ---- reads --------------------------------------------------------------------------------------------

    /// What a query returns: columns by their names; `None` if the query writes one differently.
    fn outputs(&self, names: &[String]) -> Option<Outputs> {
        let outputs = self.returning(names)?;
        let is_written = |(name, field): (&String, &Field)| **name == *field.name;
        names.iter().zip(&*outputs.schema).all(is_written).then_some(outputs)
    }

    /// What `RETURNING` returns: columns by their own names.
    fn returning(&self, names: &[String]) -> Option<Outputs> {
        let columns = self.columns(names)?;
        let schema = Arc::new(columns.iter().map(|&column| self.schema[column].clone()).collect());
        Some(Outputs { columns, schema })
    }

    fn several(&self, several: &entasis_sql::Several) -> Option<Several> {
        let column = self.find(&several.column)?;
        if self.entry.table.options().layout_key != [column] {
            return None;
        }
        let ty = self.schema[column].ty;
        let source = |scalar: &Scalar| Source::as_it_is(scalar, ty);
        let bound = |bound: &Bound<Scalar>| match bound {
            Bound::Unbounded => Some(Bound::Unbounded),
            Bound::Included(scalar) => source(scalar).map(Bound::Included),
            Bound::Excluded(scalar) => source(scalar).map(Bound::Excluded),
        };
        // Floats and intervals that compare as equal need not be the same.
        let is_ordered =
            !matches!(ty.physical(), PhysicalType::F32 | PhysicalType::F64 | PhysicalType::Interval);
        let keys = match &several.keys {
            entasis_sql::Keys::List(scalars) => {
                Keys::List(scalars.iter().map(source).collect::<Option<_>>()?)
            }
            entasis_sql::Keys::Range(Bound::Unbounded, Bound::Unbounded) if self.schema[column].nullable => {
                return None;
            }
            entasis_sql::Keys::Range(low, high) if is_ordered => Keys::Range(bound(low)?, bound(high)?),
            entasis_sql::Keys::Range(..) => return None,
        };
        let limit = match &several.limit {
            None => None,
            Some(limit) => Some(Source::as_it_is(limit, DataType::Int64)?),
        };
        Some(Several { keys, descends: several.descends == Some(true), limit })
    }

    // ---- changes ------------------------------------------------------------------------------------------

    /// A row with values for some columns, and the defaults of the others.
    fn row(&mut self, columns: &[usize], values: &[Insertable]) -> Option<Vec<Fill>> {
        if columns.len() != values.len() {
            return None;
        }
        let mut given: Vec<Option<&Scalar>> = vec![None; self.schema.len()];
        let mut is_named = vec![false; self.schema.len()];
        for (&column, value) in columns.iter().zip(values) {
            if std::mem::replace(&mut is_named[column], true) {
                return None;
            }
            if let Insertable::Scalar(scalar) = value {
                given[column] = Some(scalar);
            }
        }
        given.into_iter().enumerate().map(|(column, value)| self.fill(column, value)).collect()
    }

    fn fill(&mut self, column: usize, value: Option<&Scalar>) -> Option<Fill> {
        let ty = self.schema[column].ty;
        match (value, self.entry.definition.default_of(column)) {
            (Some(_), ColumnDefault::Identity { always: true, .. }) => None,
            (Some(scalar), _) => self.assignments.source(scalar, ty).map(Fill::Given),
            (None, ColumnDefault::Null) => Some(Fill::Given(Source::null(ty))),
            (None, ColumnDefault::Expression(sql)) => {
                let (value, from) = entasis_sql::constant(sql)?;
                self.assignments.source(&Scalar::Constant(value, from), ty).map(Fill::Given)
            }
            (None, ColumnDefault::Identity { sequence, .. }) => {
                let sequence = self.names.sequence(sequence)?.clone();
                ty.is_integer().then_some(Fill::Next(sequence))
            }
        }
    }

    /// What `ON CONFLICT` on the layout key sets.
    fn on_conflict(&mut self, on_conflict: &OnConflict) -> Option<Vec<(usize, NewValue)>> {
        let options = self.entry.table.options();
        let mut key = on_conflict.key.iter().map(|name| self.find(name)).collect::<Option<Vec<_>>>()?;
        let mut layout_key = options.layout_key.clone();
        key.sort_unstable();
        layout_key.sort_unstable();
        let set = self.new_values(&on_conflict.set)?;
        let moves = set.iter().any(|(column, _)| layout_key.contains(column));
        let suits = key == layout_key && options.is_distinct() && !moves && !self.is_referred();
        suits.then_some(set)
    }

    fn new_values(&mut self, set: &[(String, Assigned)]) -> Option<Vec<(usize, NewValue)>> {
        let mut all: Vec<(usize, NewValue)> = Vec::new();
        for (name, assigned) in set {
            let column = self.find(name)?;
            let default = self.entry.definition.default_of(column);
            let is_identity = matches!(default, ColumnDefault::Identity { .. });
            if is_identity || all.iter().any(|(other, _)| *other == column) {
                return None;
            }
            all.push((column, self.new_value(column, assigned)?));
        }
        Some(all)
    }

    fn new_value(&mut self, column: usize, assigned: &Assigned) -> Option<NewValue> {
        let ty = self.schema[column].ty;
        match assigned {
            Assigned::Scalar(scalar) => self.assignments.source(scalar, ty).map(NewValue::Given),
            Assigned::Excluded(name) => {
                let other = self.find(name)?;
                (self.schema[other].ty == ty).then_some(NewValue::Excluded(other))
            }
            Assigned::Sum { column: name, by, is_negative } => {
                let read = self.find(name)?;
                let types = [self.schema[read].ty, ty];
                // A constant that is not a BIGINT would become NULL, or text.
                let is_integer =
                    !matches!(by, Scalar::Constant(value, _) if !matches!(value, Value::Integer(_)));
                let by = Source::as_it_is(by, DataType::Int64)?;
                let is_sum = types.iter().all(|ty| ty.is_integer() && ty.integer_range().is_some());
                (is_sum && is_integer).then_some(NewValue::Sum {
                    column: read,
                    by,
                    is_negative: *is_negative,
                    types,
                })
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
