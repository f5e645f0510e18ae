//! The program of a keyed statement, which identifies a row by its unique layout key or adds one: what it
//! does, not how.
//!
//! It is compiled for one state of the catalog. It computes nothing (no checks, defaults, conversions), and
//! reads no other table than its own indexes (no foreign keys). For how it runs, see `keyed`.

use crate::search_path::SearchPath;
use entasis_engine::relation::{ColumnDefault, OnCommit};
use entasis_sql::{Keyed, KeyedAction, Scalar};
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
    /// Adds a row, with a value for each column of the table; NULL for columns without one.
    Insert(Vec<Option<Source>>),
    /// Changes columns to new values; the flag says whether the key changes.
    Update(Vec<(usize, Source)>, bool),
    /// Removes a row.
    Delete,
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
        KeyedAction::Insert(names, values) => {
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
            Action::Insert(sources)
        }
        KeyedAction::Update(set) => {
            let mut sources: Vec<(usize, Source)> = Vec::new();
            for (name, scalar) in set {
                let column = find(name)?;
                let identity = matches!(definition.default_of(column), ColumnDefault::Identity { .. });
                if identity || sources.iter().any(|(other, _)| *other == column) {
                    return None;
                }
                sources.push((column, source(column, scalar)?));
            }
            let moves = sources.iter().any(|(column, _)| options.layout_key.contains(column));
            Action::Update(sources, moves)
        }
    };
    let indexed = indexed(&entry, &action);
    Some(Program { entry, key, action, indexed })
}

/// The keys whose indexes an action may write to.
fn indexed(entry: &TableEntry, action: &Action) -> Vec<IndexedKey> {
    let keys = entry.definition.keys.iter().zip(&entry.indexes).enumerate();
    let keys = keys
        .filter(|(_, (_, index))| index.is_some())
        .map(|(number, (key, _))| IndexedKey { number, columns: index_columns(key, entry.table.options()) });
    let is_touched = |key: &IndexedKey| match action {
        Action::Read { .. } => false,
        Action::Insert(_) | Action::Delete => true,
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
            Some((least, greatest)) => {
                from.is_none_or(DataType::is_integer) && (least..=greatest).contains(v)
            }
            None => from == Some(to),
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
        let constants: usize = match &self.action {
            Action::Insert(sources) => sources.iter().flatten().map(constant).sum(),
            Action::Update(sources, _) => sources.iter().map(|(_, source)| constant(source)).sum(),
            Action::Read { .. } | Action::Delete => 0,
        };
        let width = 16 * self.entry.table.schema().len();
        width + constants + parameters.iter().map(|(value, _)| text(value)).sum::<usize>()
    }
}
