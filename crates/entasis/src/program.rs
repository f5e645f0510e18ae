//! The program of a keyed statement, which identifies a row by its unique layout key or adds one: what it
//! does, not how.
//!
//! It is compiled for one state of the catalog. It computes only sums of integers (no checks, defaults,
//! conversions), and reads no other table than its own indexes (no foreign keys). For how it runs, see
//! `keyed`.

use crate::search_path::SearchPath;
use entasis_engine::relation::{ColumnDefault, OnCommit};
use entasis_sql::{Assigned, Keyed, KeyedAction, OnConflict, Scalar};
use entasis_storage::index::index_columns;
use entasis_storage::{CatalogVersion, Datum, TableEntry};
use entasis_vector::{DataType, Field, Schema, Value};
use std::sync::Arc;

/// A keyed statement on a table.
pub(crate) struct Program {
    /// The table.
    pub(crate) entry: Arc<TableEntry>,
    /// The value of each column of the layout key.
    pub(crate) key: Vec<Source>,
    /// What the program does to the row.
    pub(crate) action: Action,
    /// The keys whose indexes contain the row, before the statement or after it.
    pub(crate) indexed: Vec<IndexedKey>,
    /// What a change returns of its row.
    pub(crate) returning: Option<Returning>,
}

/// The columns of `RETURNING`.
pub(crate) struct Returning {
    /// The columns.
    pub(crate) columns: Vec<usize>,
    /// The schema of the result.
    pub(crate) schema: Arc<Schema>,
}

/// A key of a table that has an index.
pub(crate) struct IndexedKey {
    /// Its number among the table's keys.
    pub(crate) number: usize,
    /// The columns of the table that make up a row of the index.
    pub(crate) columns: Vec<usize>,
}

/// Where a value comes from, and the type that it must fit.
pub(crate) struct Source {
    /// A constant or a parameter.
    scalar: Scalar,
    /// The type of its column.
    ty: DataType,
}

/// What a program does to its row.
pub(crate) enum Action {
    /// Reads columns of a row.
    Read {
        /// The columns.
        columns: Vec<usize>,
        /// The schema of the result.
        schema: Arc<Schema>,
    },
    /// Adds a row, with a value for each column of the table; NULL for columns without one. The second part,
    /// if there is one, is set in an existing row with the same key; otherwise such a row is an error.
    Insert(Vec<Option<Source>>, Option<Vec<(usize, NewValue)>>),
    /// Changes columns to new values; the flag says whether the key changes.
    Update(Vec<(usize, NewValue)>, bool),
    /// Removes a row.
    Delete,
}

/// The new value of a column.
pub(crate) enum NewValue {
    /// A constant or a parameter.
    Given(Source),
    /// The row's value of a column plus or minus an integer.
    Sum {
        /// The column.
        column: usize,
        /// The integer.
        by: Source,
        /// True if it is subtracted.
        is_negative: bool,
        /// The types whose range the sum must be in: those of the column that is read and of the one that is
        /// set.
        types: [DataType; 2],
    },
    /// The value of a column in the row that was to be inserted.
    Excluded(usize),
}

impl NewValue {
    /// The value; `None` if it needs conversion, or is out of range. `old` reads the present row, `excluded`
    /// is the row that was to be inserted.
    pub(crate) fn datum<'a>(
        &'a self,
        parameters: &'a [(Value, DataType)],
        old: impl Fn(usize) -> Option<i128>,
        excluded: &[Datum<'a>],
    ) -> Option<Datum<'a>> {
        match self {
            NewValue::Given(source) => source.datum(parameters),
            NewValue::Excluded(column) => excluded.get(*column).copied(),
            NewValue::Sum { column, by, is_negative, types } => {
                let by = match by.datum(parameters)? {
                    Datum::Integer(by) => by,
                    _ => return Some(Datum::Null),
                };
                let Some(old) = old(*column) else { return Some(Datum::Null) };
                let sum = if *is_negative { old.checked_sub(by)? } else { old.checked_add(by)? };
                let fits = |ty: &DataType| {
                    ty.integer_range().is_some_and(|(least, most)| (least..=most).contains(&sum))
                };
                types.iter().all(fits).then_some(Datum::Integer(sum))
            }
        }
    }

    /// True if it is computed from the present row.
    fn is_computed(&self) -> bool {
        matches!(self, NewValue::Sum { .. })
    }
}

/// The program for a keyed statement; `None` if it has none with these names.
pub(crate) fn compile(keyed: &Keyed, names: &CatalogVersion, path: &SearchPath) -> Option<Program> {
    let entry = names.table(&path.find(names, &keyed.table))?.clone();
    let (schema, options) = (entry.table.schema().clone(), entry.table.options());
    let find = |name: &String| schema.iter().position(|field| field.name.eq_ignore_ascii_case(name));
    let source = |column: usize, scalar: &Scalar| {
        let source = Source { scalar: scalar.clone(), ty: schema[column].ty };
        let fits = match scalar {
            Scalar::Constant(value) => fit(value, None, source.ty).is_some(),
            Scalar::Parameter(_) => true,
        };
        fits.then_some(source)
    };
    let adds = matches!(keyed.action, KeyedAction::Insert(..));
    if !options.unique && !adds {
        return None;
    }
    let definition = &entry.definition;
    let is_referred = || {
        let mut keys = names.tables().flat_map(|other| &other.definition.foreign_keys);
        keys.any(|key| key.table.eq_ignore_ascii_case(&entry.name))
    };
    let new_value = |column: usize, assigned: &Assigned| {
        Some(match assigned {
            Assigned::Scalar(scalar) => NewValue::Given(source(column, scalar)?),
            Assigned::Excluded(name) => {
                let other = find(name)?;
                (schema[other].ty == schema[column].ty).then_some(NewValue::Excluded(other))?
            }
            Assigned::Sum { column: name, by, is_negative } => {
                let read = find(name)?;
                let types = [schema[read].ty, schema[column].ty];
                let by = Source { scalar: by.clone(), ty: DataType::Int64 };
                // A constant that is not a BIGINT would become NULL, or text.
                let is_integer = match &by.scalar {
                    Scalar::Constant(value) => matches!(value, Value::Integer(_)) && by.datum(&[]).is_some(),
                    Scalar::Parameter(_) => true,
                };
                let is_sum = types.iter().all(|ty| ty.is_integer() && ty.integer_range().is_some());
                (is_sum && is_integer).then_some(NewValue::Sum {
                    column: read,
                    by,
                    is_negative: *is_negative,
                    types,
                })?
            }
        })
    };
    let new_values = |set: &[(String, Assigned)]| {
        let mut all: Vec<(usize, NewValue)> = Vec::new();
        for (name, assigned) in set {
            let column = find(name)?;
            let identity = matches!(entry.definition.default_of(column), ColumnDefault::Identity { .. });
            if identity || all.iter().any(|(other, _)| *other == column) {
                return None;
            }
            all.push((column, new_value(column, assigned)?));
        }
        Some(all)
    };
    let is_read = matches!(keyed.action, KeyedAction::Read(_));
    if !is_read
        && (definition.on_commit != OnCommit::Preserve
            || !definition.checks.is_empty()
            || !definition.foreign_keys.is_empty()
            || (!adds && is_referred()))
    {
        return None;
    }
    let mut key = Vec::new();
    if !adds {
        if keyed.key.len() != options.layout_key.len() {
            return None;
        }
        for &column in &options.layout_key {
            let (_, scalar) = keyed.key.iter().find(|(name, _)| find(name) == Some(column))?;
            key.push(source(column, scalar)?);
        }
    }
    let action = match &keyed.action {
        KeyedAction::Delete => Action::Delete,
        KeyedAction::Read(names) => {
            let named = names.iter().map(find).collect::<Option<Vec<_>>>()?;
            let columns = if names.is_empty() { (0..schema.len()).collect() } else { named };
            // The name as the statement writes it.
            let field = |(at, &column): (usize, &usize)| match names.get(at) {
                Some(name) => Field { name: name.as_str().into(), ..schema[column].clone() },
                None => schema[column].clone(),
            };
            Action::Read { schema: Arc::new(columns.iter().enumerate().map(field).collect()), columns }
        }
        KeyedAction::Insert(names, values, on_conflict) => {
            let named = names.iter().map(find).collect::<Option<Vec<_>>>()?;
            let columns: Vec<usize> = if names.is_empty() { (0..schema.len()).collect() } else { named };
            let mut sources: Vec<Option<Source>> = schema.iter().map(|_| None).collect();
            if columns.len() != values.len() {
                return None;
            }
            for (&column, scalar) in columns.iter().zip(values) {
                if sources[column].replace(source(column, scalar)?).is_some() {
                    return None;
                }
            }
            let is_null = |column: usize| *definition.default_of(column) == ColumnDefault::Null;
            let identity =
                |column: usize| matches!(definition.default_of(column), ColumnDefault::Identity { .. });
            if (0..schema.len())
                .any(|column| identity(column) || (sources[column].is_none() && !is_null(column)))
            {
                return None;
            }
            let set = match on_conflict {
                None => None,
                Some(OnConflict { key, set }) => {
                    let mut key = key.iter().map(find).collect::<Option<Vec<_>>>()?;
                    let mut layout_key = options.layout_key.clone();
                    key.sort_unstable();
                    layout_key.sort_unstable();
                    let set = new_values(set)?;
                    let moves = set.iter().any(|(column, _)| layout_key.contains(column));
                    if key != layout_key || !options.is_distinct() || moves || is_referred() {
                        return None;
                    }
                    Some(set)
                }
            };
            Action::Insert(sources, set)
        }
        KeyedAction::Update(set) => {
            let set = new_values(set)?;
            let moves = set.iter().any(|(column, _)| options.layout_key.contains(column));
            Action::Update(set, moves)
        }
    };
    let returning = match &keyed.returning {
        None => None,
        Some(names) => {
            let named = names.iter().map(find).collect::<Option<Vec<_>>>()?;
            let columns = if names.is_empty() { (0..schema.len()).collect() } else { named };
            let schema = Arc::new(columns.iter().map(|&column| schema[column].clone()).collect());
            Some(Returning { columns, schema })
        }
    };
    let indexed = indexed(&entry, &action);
    let is_plain = returning.is_none()
        && match &action {
            Action::Insert(_, set) => set.is_none(),
            Action::Update(set, _) => !set.iter().any(|(_, value)| value.is_computed()),
            Action::Read { .. } | Action::Delete => true,
        };
    // Rows of indexes are made before the row of the table is written, from the values in the statement.
    (indexed.is_empty() || is_plain).then_some(Program { entry, key, action, indexed, returning })
}

/// The keys whose indexes an action may write to.
fn indexed(entry: &TableEntry, action: &Action) -> Vec<IndexedKey> {
    let keys = entry.definition.keys.iter().zip(&entry.indexes).enumerate();
    let keys = keys
        .filter(|(_, (_, index))| index.is_some())
        .map(|(number, (key, _))| IndexedKey { number, columns: index_columns(key, entry.table.options()) });
    let is_touched = |key: &IndexedKey| match action {
        Action::Read { .. } => false,
        Action::Insert(..) | Action::Delete => true,
        Action::Update(sources, _) => sources.iter().any(|(column, _)| key.columns.contains(column)),
    };
    keys.filter(is_touched).collect()
}

/// A value in the representation of a column of type `to`, if no conversion is needed; `from` is the type
/// with which it was given.
fn fit<'a>(value: &'a Value, from: Option<DataType>, to: DataType) -> Option<Datum<'a>> {
    let fits = match value {
        Value::Null => true,
        Value::Boolean(_) => to == DataType::Boolean,
        Value::Integer(v) => match to.integer_range() {
            Some((least, greatest)) if to.is_integer() => {
                from.is_none_or(DataType::is_integer) && (least..=greatest).contains(v)
            }
            // Decimals and dates are integers inside, but other ones.
            _ => from == Some(to),
        },
        Value::Text(_) => to == DataType::Varchar,
        Value::Float(_) => to == DataType::Float64 || from == Some(to),
        _ => from == Some(to),
    };
    fits.then(|| Datum::of_value(value, to))
}

impl Source {
    /// The value; `None` if it needs conversion.
    pub(crate) fn datum<'a>(&'a self, parameters: &'a [(Value, DataType)]) -> Option<Datum<'a>> {
        match &self.scalar {
            Scalar::Constant(value) => fit(value, None, self.ty),
            Scalar::Parameter(index) => {
                let (value, from) = parameters.get(*index)?;
                fit(value, Some(*from), self.ty)
            }
        }
    }
}

impl Program {
    /// Approximate bytes of memory of a row that it writes.
    pub(crate) fn bytes(&self, parameters: &[(Value, DataType)]) -> usize {
        let text = |value: &Value| match value {
            Value::Text(text) => text.len(),
            Value::Bytes(bytes) => bytes.len(),
            _ => 0,
        };
        let constant = |source: &Source| match &source.scalar {
            Scalar::Constant(value) => text(value),
            Scalar::Parameter(_) => 0,
        };
        let given = |(_, value): &(usize, NewValue)| match value {
            NewValue::Given(source) => constant(source),
            NewValue::Sum { .. } | NewValue::Excluded(_) => 0,
        };
        let constants: usize = match &self.action {
            Action::Insert(sources, set) => {
                sources.iter().flatten().map(constant).sum::<usize>()
                    + set.iter().flatten().map(given).sum::<usize>()
            }
            Action::Update(set, _) => set.iter().map(given).sum(),
            Action::Read { .. } | Action::Delete => 0,
        };
        let width = 16 * self.entry.table.schema().len();
        width + constants + parameters.iter().map(|(value, _)| text(value)).sum::<usize>()
    }
}
