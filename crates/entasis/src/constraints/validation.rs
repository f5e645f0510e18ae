//! Validation predicates: facts about foreign keys that a transaction found to hold in tables that others may
//! change before it commits.
//!
//! A new row must find the row that it refers to; a deleted row must not be referred to any more, unless
//! another row has its key by now. Both are checked at the end of the statement. The transaction then depends
//! on the other table: if that has changed when it commits, both are checked again, because two transactions
//! together might violate what neither violates alone.
//!
//! Rows that refer to deleted keys are looked up by a key or index of the referring table on these columns,
//! or else searched row by row.

use super::values::{Values, about, shown};
use entasis_storage::definition::ForeignKey;
use entasis_storage::{Datum, Table, TableEntry, TableSnapshot, Transaction};
use entasis_vector::error::sqlstate::FOREIGN_KEY;
use entasis_vector::{DataType, Error, Result, Value};
use std::cmp::Ordering;
use std::collections::HashMap;
use std::sync::Arc;

/// The most keys that a transaction keeps in order to check them again. With more, it conflicts with every
/// transaction that changes the other table.
const MOST_KEYS: usize = 100_000;

/// What a transaction found to hold in tables that others may change before it commits.
#[derive(Default)]
pub(crate) struct Predicates {
    predicates: Vec<Predicate>,
    /// Total number of keys.
    keys: usize,
}

/// What was found to hold for a foreign key of `child` that refers to `parent`.
#[derive(Clone)]
pub(crate) enum Predicate {
    /// Rows of `parent` have `keys`, none of which has a NULL, or no row of `child` refers to them.
    Held { parent: Arc<TableEntry>, child: Arc<TableEntry>, key: ForeignKey, keys: Vec<Values>, side: Side },
    /// Every row of `child` has the row that it refers to in `parent`, whose rows were all removed.
    Whole { parent: Arc<TableEntry>, child: Arc<TableEntry>, key: ForeignKey },
}

/// What happened to the keys that are checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    /// Rows of the child newly refer to them.
    Came,
    /// They were removed from the parent.
    Went,
}

impl Predicates {
    /// Adds a predicate, unless there are too many already.
    pub(crate) fn push(&mut self, predicate: Predicate) {
        if let Predicate::Held { keys, .. } = &predicate {
            self.keys += keys.len();
        }
        if self.keys <= MOST_KEYS {
            self.predicates.push(predicate);
        }
    }

    /// The present end, for [`Predicates::roll_back`].
    pub(crate) fn mark(&self) -> (usize, usize) {
        (self.predicates.len(), self.keys)
    }

    /// Drops the predicates since a mark, because what led to them is undone.
    pub(crate) fn roll_back(&mut self, (predicates, keys): (usize, usize)) {
        self.predicates.truncate(predicates);
        self.keys = keys;
    }

    /// Validates the predicates on the newest versions. False if there were too many to keep.
    ///
    /// # Errors
    /// Constraint, if one does not hold any more.
    pub(crate) fn validate(&self, rows: &mut Transaction) -> Result<bool> {
        if self.keys > MOST_KEYS {
            return Ok(false);
        }
        self.predicates
            .iter()
            .try_for_each(|predicate| predicate.validate(&mut |table| rows.snapshot(table)))
            .map(|()| true)
    }
}

/// Returns the snapshot of a table.
pub(crate) type See<'a> = dyn FnMut(&Arc<Table>) -> TableSnapshot + 'a;

impl Predicate {
    /// The table that others may change so that the predicate no longer holds.
    pub(crate) fn other(&self) -> &Arc<TableEntry> {
        match self {
            Predicate::Held { parent, side: Side::Came, .. } => parent,
            Predicate::Held { child, .. } | Predicate::Whole { child, .. } => child,
        }
    }

    /// Validates the predicate on what is seen of the tables.
    ///
    /// # Errors
    /// Constraint, if it does not hold.
    pub(crate) fn validate(&self, see: &mut See<'_>) -> Result<()> {
        match self {
            Predicate::Held { parent, child, key, keys, side } => {
                let lookup = Lookup::of_parent(see, parent, key)?;
                let gone: Vec<&Values> = keys.iter().filter(|row| !lookup.has_values(row)).collect();
                match (first_referred(see, child, key, &gone), side) {
                    (None, _) => Ok(()),
                    (Some(row), Side::Came) => Err(dangling(key, parent, child, row)),
                    (Some(row), Side::Went) => Err(missing(key, parent, child, row)),
                }
            }
            Predicate::Whole { parent, child, key } => {
                let lookup = Lookup::of_parent(see, parent, key)?;
                match first_dangling(&see(&child.table), child, key, &lookup) {
                    None => Ok(()),
                    Some(row) => Err(missing(key, parent, child, &row)),
                }
            }
        }
    }
}

/// Checks that no row refers to removed keys, even if new rows have these keys again.
///
/// # Errors
/// Constraint.
pub(crate) fn validate_unreferred(
    see: &mut See<'_>,
    parent: &TableEntry,
    child: &TableEntry,
    key: &ForeignKey,
    keys: &[Values],
) -> Result<()> {
    let keys: Vec<&Values> = keys.iter().collect();
    match first_referred(see, child, key, &keys) {
        None => Ok(()),
        Some(row) => Err(missing(key, parent, child, row)),
    }
}

/// One of `keys` that a row of `child` refers to.
fn first_referred<'a>(
    see: &mut See<'_>,
    child: &TableEntry,
    key: &ForeignKey,
    keys: &[&'a Values],
) -> Option<&'a Values> {
    if keys.is_empty() {
        return None;
    }
    match Lookup::of(see, child, &key.columns) {
        Some(lookup) => keys.iter().find(|row| lookup.has_values(row)).copied(),
        None => find_slowly(&see(&child.table), child, key, keys),
    }
}

/// The key of a row of the snapshot that refers to a row that does not exist.
fn first_dangling(
    snapshot: &TableSnapshot,
    child: &TableEntry,
    key: &ForeignKey,
    lookup: &Lookup,
) -> Option<Values> {
    let types: Vec<DataType> = key.columns.iter().map(|&column| child.table.schema()[column].ty).collect();
    let mut datums = Vec::with_capacity(types.len());
    snapshot.row_ids().find_map(|id| {
        datums.clear();
        snapshot.read(id, &key.columns, &mut datums);
        let row: Values = datums.iter().zip(&types).map(|(datum, ty)| datum.value(*ty)).collect();
        let is_good = row.iter().any(Value::is_null) || lookup.has_values(&row);
        (!is_good).then_some(row)
    })
}

fn dangling(key: &ForeignKey, parent: &TableEntry, child: &TableEntry, row: &Values) -> Error {
    let shown = shown(parent, &key.references, row);
    let text = format!("foreign key {}: no row of table {} has {shown}", key.name, parent.name);
    about(child, &key.name, &key.columns, text).with_sqlstate(FOREIGN_KEY)
}

fn missing(key: &ForeignKey, parent: &TableEntry, child: &TableEntry, row: &Values) -> Error {
    let shown = shown(parent, &key.references, row);
    let text = format!(
        "foreign key {}: rows of table {} refer to {shown} of table {}",
        key.name, child.name, parent.name
    );
    about(child, &key.name, &key.columns, text).with_sqlstate(FOREIGN_KEY)
}

/// The rows without a NULL, in order and without duplicates.
pub(crate) fn without_nulls(mut rows: Vec<Values>) -> Vec<Values> {
    rows.retain(|row| !row.iter().any(Value::is_null));
    rows.sort_by(order);
    rows.dedup_by(|a, b| order(a, b).is_eq());
    rows
}

/// The order of keys.
pub(crate) fn order(a: &Values, b: &Values) -> Ordering {
    let mut orders = a.iter().zip(b).map(|(a, b)| a.total_cmp(b));
    orders.find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
}

/// A lookup of rows by values of some columns.
struct Lookup {
    snapshot: TableSnapshot,
    /// For each column of the looked-up key: its index among the given columns, and its type.
    order: Vec<(usize, DataType)>,
}

impl Lookup {
    /// A lookup by a key of the table that has exactly these columns.
    fn of(see: &mut See<'_>, entry: &TableEntry, columns: &[usize]) -> Option<Lookup> {
        let is_it =
            |key: &[usize]| key.len() == columns.len() && key.iter().all(|column| columns.contains(column));
        let options = entry.table.options();
        let (table, key) = if options.layout.is_keyed() && is_it(&options.layout_key) {
            (&entry.table, &options.layout_key)
        } else {
            let number = entry.definition.keys.iter().position(|key| is_it(&key.columns))?;
            (entry.indexes[number].as_ref()?, &entry.definition.keys[number].columns)
        };
        let place =
            |column: &usize| columns.iter().position(|c| c == column).expect("the columns are the same");
        let order = key.iter().map(|column| (place(column), entry.table.schema()[*column].ty)).collect();
        Some(Lookup { snapshot: see(table), order })
    }

    /// A lookup of the rows that a foreign key refers to.
    fn of_parent(see: &mut See<'_>, parent: &TableEntry, key: &ForeignKey) -> Result<Lookup> {
        let lookup = Lookup::of(see, parent, &key.references);
        lookup.ok_or_else(|| Error::internal(format!("foreign key {} refers to no key", key.name)))
    }

    /// True if a row has these values, which may be integers of a different width than its own.
    fn has_values(&self, values: &[Value]) -> bool {
        let fits = |&(at, ty): &(usize, DataType)| match &values[at] {
            Value::Integer(value) => ty.physical().holds((*value, *value)),
            _ => true,
        };
        if !self.order.iter().all(fits) {
            return false;
        }
        let key: Vec<Datum<'_>> =
            self.order.iter().map(|&(at, ty)| Datum::of_value(&values[at], ty)).collect();
        self.snapshot.find(&key).is_some()
    }
}

/// One of `went` that a row of the snapshot refers to, found by a scan.
fn find_slowly<'a>(
    snapshot: &TableSnapshot,
    child: &TableEntry,
    key: &ForeignKey,
    went: &[&'a Values],
) -> Option<&'a Values> {
    let types: Vec<DataType> = key.columns.iter().map(|&column| child.table.schema()[column].ty).collect();
    let hash =
        |datums: &[Datum<'_>]| datums.iter().fold(0u64, |hash, datum| hash.rotate_left(7) ^ datum.hash());
    let mut sought: HashMap<u64, Vec<&'a Values>> = HashMap::new();
    for &row in went {
        let datums: Vec<Datum<'_>> =
            row.iter().zip(&types).map(|(value, &ty)| Datum::of_value(value, ty)).collect();
        sought.entry(hash(&datums)).or_default().push(row);
    }
    let mut datums = Vec::with_capacity(types.len());
    for id in snapshot.row_ids() {
        datums.clear();
        snapshot.read(id, &key.columns, &mut datums);
        let same = |row: &&&Values| {
            row.iter()
                .zip(&types)
                .zip(&datums)
                .all(|((value, &ty), datum)| datum.is_same(Datum::of_value(value, ty)))
        };
        if let Some(row) = sought.get(&hash(&datums)).and_then(|rows| rows.iter().find(same)) {
            return Some(row);
        }
    }
    None
}
