//! Foreign keys: rows that refer to others.
//!
//! A row that comes must find what it refers to; a row that goes must not be missed, unless another with its key has come.
//! Both look at the end of the statement. The transaction then relies on the other table: if that has changed when it commits,
//! both look once more ([`Claims`]), because the two transactions together might break what neither breaks alone.
//!
//! What goes is looked for among the referring rows by a key of theirs on these columns, without one row by row.

use super::apply::{KeyChange, Values};
use super::rows::shown;
use crate::work::Work;
use entasis_storage::definition::ForeignKey;
use entasis_storage::{AppendedRows, Datum, Table, TableEntry, TableSnapshot, Transaction};
use entasis_vector::error::sqlstate::FOREIGN_KEY;
use entasis_vector::{DataType, Error, ErrorKind, Result, Value};
use std::collections::HashMap;
use std::sync::Arc;

/// Keys that a transaction keeps to judge them once more. With more, it is in conflict with whoever changes the other table.
const CLAIMED_KEYS: usize = 100_000;

/// The columns that foreign keys ask of a table: of each of its own the columns, then of each that refers to it the columns
/// that are referred to.
pub(crate) fn columns(work: &Work, entry: &TableEntry) -> impl Iterator<Item = Vec<usize>> {
    let own = entry.definition.foreign_keys.iter().map(|key| key.columns.clone());
    let referring = referring(work, entry).into_iter().map(|(_, key)| key.references);
    own.chain(referring).collect::<Vec<_>>().into_iter()
}

/// The foreign keys that refer to a table, with the tables that they are of.
pub(crate) fn referring(work: &Work, entry: &TableEntry) -> Vec<(Arc<TableEntry>, ForeignKey)> {
    let mut found = Vec::new();
    let name = entry.name.to_lowercase();
    for other in work.names.tables() {
        let keys = other.definition.foreign_keys.iter().filter(|key| key.table == name);
        found.extend(keys.map(|key| (other.clone(), key.clone())));
    }
    found
}

/// True if foreign keys refer to a table.
pub(crate) fn is_referred_to(work: &Work, entry: &TableEntry) -> bool {
    !referring(work, entry).is_empty()
}

/// What a transaction found to be so in tables that others may change before it commits.
#[derive(Default)]
pub(crate) struct Claims {
    claims: Vec<Claim>,
    /// Keys in all.
    keys: usize,
}

/// What was found of some keys, none of which has a NULL.
#[derive(Clone)]
enum Claim {
    /// Rows of the table that a foreign key refers to have them.
    Present { parent: Arc<TableEntry>, key: ForeignKey, keys: Vec<Values> },
    /// No rows refer to them by a foreign key of `child`, or rows of `parent` have them.
    Unmissed { parent: Arc<TableEntry>, child: Arc<TableEntry>, key: ForeignKey, keys: Vec<Values> },
    /// All rows of `child` find what they refer to in `parent`, whose rows were all removed.
    Whole { parent: Arc<TableEntry>, child: Arc<TableEntry>, key: ForeignKey },
}

impl Claims {
    fn push(&mut self, claim: Claim) {
        if let Claim::Present { keys, .. } | Claim::Unmissed { keys, .. } = &claim {
            self.keys += keys.len();
        }
        if self.keys <= CLAIMED_KEYS {
            self.claims.push(claim);
        }
    }

    /// Where they end, to go back to.
    pub(crate) fn mark(&self) -> (usize, usize) {
        (self.claims.len(), self.keys)
    }

    /// Forgets those since a mark, as what they were made by is undone.
    pub(crate) fn roll_back(&mut self, (claims, keys): (usize, usize)) {
        self.claims.truncate(claims);
        self.keys = keys;
    }

    /// Judges them on the newest versions. False if there were too many to keep.
    ///
    /// # Errors
    /// Constraint, if one does not hold any more.
    pub(crate) fn judge(&self, rows: &mut Transaction) -> Result<bool> {
        if self.keys > CLAIMED_KEYS {
            return Ok(false);
        }
        self.claims.iter().try_for_each(|claim| claim.judge(&mut |table| rows.snapshot(table))).map(|()| true)
    }
}

/// What is seen of a table.
type See<'a> = dyn FnMut(&Arc<Table>) -> TableSnapshot + 'a;

impl Claim {
    fn judge(&self, see: &mut See<'_>) -> Result<()> {
        match self {
            Claim::Present { parent, key, keys } => {
                let lookup = Lookup::of_parent(see, parent, key)?;
                match keys.iter().find(|row| !lookup.has_values(row)) {
                    None => Ok(()),
                    Some(row) => Err(dangling(key, parent, row)),
                }
            }
            Claim::Unmissed { parent, child, key, keys } => {
                let back = Lookup::of(see, parent, &key.references);
                let is_back = |row: &&Values| back.as_ref().is_some_and(|back| back.has_values(row));
                let mut went = keys.iter().filter(|row| !is_back(row));
                let missed = match Lookup::of(see, child, &key.columns) {
                    Some(lookup) => went.find(|row| lookup.has_values(row)),
                    None => find_slowly(&see(&child.table), child, key, &went.collect::<Vec<_>>()),
                };
                match missed {
                    None => Ok(()),
                    Some(row) => Err(missing(key, parent, child, row)),
                }
            }
            Claim::Whole { parent, child, key } => {
                let lookup = Lookup::of_parent(see, parent, key)?;
                match first_dangling(&see(&child.table), child, key, &lookup) {
                    None => Ok(()),
                    Some(row) => Err(missing(key, parent, child, &row)),
                }
            }
        }
    }
}

/// What a row of the snapshot refers to that is not there.
fn first_dangling(snapshot: &TableSnapshot, child: &TableEntry, key: &ForeignKey, lookup: &Lookup) -> Option<Values> {
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

fn dangling(key: &ForeignKey, parent: &TableEntry, row: &Values) -> Error {
    let shown = shown(parent, &key.references, row);
    let text = format!("foreign key {}: no row of table {} has {shown}", key.name, parent.name);
    Error::new(ErrorKind::Constraint, text).with_sqlstate(FOREIGN_KEY)
}

fn missing(key: &ForeignKey, parent: &TableEntry, child: &TableEntry, row: &Values) -> Error {
    let shown = shown(parent, &key.references, row);
    let text =
        format!("foreign key {}: rows of table {} refer to {shown} of table {}", key.name, child.name, parent.name);
    Error::new(ErrorKind::Constraint, text).with_sqlstate(FOREIGN_KEY)
}

/// Judges a claim about another table, or the same, now; and when the transaction commits, if that has changed by then.
fn claim(work: &mut Work, other: &Arc<TableEntry>, claim: Claim) -> Result<()> {
    claim.judge(&mut |table| work.snapshot(table))?;
    work.claim(other, |claims| claims.push(claim));
    Ok(())
}

/// Judges rows that were added in bulk.
pub(crate) fn judge_added(work: &mut Work, entry: &Arc<TableEntry>, added: &[AppendedRows]) -> Result<()> {
    for key in &entry.definition.foreign_keys {
        let types: Vec<DataType> = key.columns.iter().map(|&column| entry.table.schema()[column].ty).collect();
        let mut came: Vec<Values> = Vec::new();
        for rows in added {
            rows.each_row(&key.columns, |datums| {
                came.push(datums.iter().zip(&types).map(|(datum, ty)| datum.value(*ty)).collect());
            });
        }
        judge_coming(work, key, &came)?;
    }
    Ok(())
}

/// Judges what came and went: `changes` are by [`columns`].
pub(crate) fn judge(work: &mut Work, entry: &Arc<TableEntry>, changes: &[KeyChange]) -> Result<()> {
    let own = entry.definition.foreign_keys.len();
    for (key, change) in entry.definition.foreign_keys.iter().zip(changes) {
        judge_coming(work, key, &change.added)?;
    }
    for ((child, key), change) in referring(work, entry).into_iter().zip(&changes[own..]) {
        let keys = without_nulls(&change.removed);
        if !keys.is_empty() {
            let parent = entry.clone();
            claim(work, &child.clone(), Claim::Unmissed { parent, child, key, keys })?;
        }
    }
    Ok(())
}

fn judge_coming(work: &mut Work, key: &ForeignKey, came: &[Values]) -> Result<()> {
    let keys = without_nulls(came);
    if keys.is_empty() {
        return Ok(());
    }
    let parent = work.names.table(&key.table).cloned();
    let parent = parent.ok_or_else(|| Error::internal(format!("table {} is gone", key.table)))?;
    claim(work, &parent.clone(), Claim::Present { parent, key: key.clone(), keys })
}

/// Those without a NULL, each once.
fn without_nulls(rows: &[Values]) -> Vec<Values> {
    let mut rows: Vec<Values> = rows.iter().filter(|row| !row.iter().any(Value::is_null)).cloned().collect();
    let order = |a: &Values, b: &Values| {
        let orders = a.iter().zip(b).map(|(a, b)| a.total_cmp(b));
        orders.into_iter().find(|order| order.is_ne()).unwrap_or(std::cmp::Ordering::Equal)
    };
    rows.sort_by(order);
    rows.dedup_by(|a, b| order(a, b).is_eq());
    rows
}

/// A lookup of rows by values of some columns.
struct Lookup {
    snapshot: TableSnapshot,
    /// By column of the key that is looked up: its place among the columns asked for, and its type.
    order: Vec<(usize, DataType)>,
}

impl Lookup {
    /// A lookup by a key of the table that has just these columns.
    fn of(see: &mut See<'_>, entry: &TableEntry, columns: &[usize]) -> Option<Lookup> {
        let is_it = |key: &[usize]| key.len() == columns.len() && key.iter().all(|column| columns.contains(column));
        let options = entry.table.options();
        let (table, key) = if options.layout.is_keyed() && is_it(&options.layout_key) {
            (&entry.table, &options.layout_key)
        } else {
            let number = entry.definition.keys.iter().position(|key| is_it(&key.columns))?;
            (entry.indexes[number].as_ref()?, &entry.definition.keys[number].columns)
        };
        let place = |column: &usize| columns.iter().position(|c| c == column).expect("the columns are the same");
        let order = key.iter().map(|column| (place(column), entry.table.schema()[*column].ty)).collect();
        Some(Lookup { snapshot: see(table), order })
    }

    /// A lookup of the rows that a foreign key refers to.
    fn of_parent(see: &mut See<'_>, parent: &TableEntry, key: &ForeignKey) -> Result<Lookup> {
        let lookup = Lookup::of(see, parent, &key.references);
        lookup.ok_or_else(|| Error::internal(format!("foreign key {} refers to no key", key.name)))
    }

    /// True if a row has these values, which may be integers of another width than its own.
    fn has_values(&self, values: &[Value]) -> bool {
        let fits = |&(at, ty): &(usize, DataType)| match &values[at] {
            Value::Integer(value) => ty.physical().holds((*value, *value)),
            _ => true,
        };
        if !self.order.iter().all(fits) {
            return false;
        }
        let key: Vec<Datum<'_>> = self.order.iter().map(|&(at, ty)| Datum::of_value(&values[at], ty)).collect();
        self.snapshot.find(&key).is_some()
    }
}

/// One of `went` that a row of the snapshot refers to.
fn find_slowly<'a>(
    snapshot: &TableSnapshot,
    child: &TableEntry,
    key: &ForeignKey,
    went: &[&'a Values],
) -> Option<&'a Values> {
    let types: Vec<DataType> = key.columns.iter().map(|&column| child.table.schema()[column].ty).collect();
    let hash = |datums: &[Datum<'_>]| datums.iter().fold(0u64, |hash, datum| hash.rotate_left(7) ^ datum.hash());
    let mut sought: HashMap<u64, Vec<&'a Values>> = HashMap::new();
    for &row in went {
        let datums: Vec<Datum<'_>> = row.iter().zip(&types).map(|(value, &ty)| Datum::of_value(value, ty)).collect();
        sought.entry(hash(&datums)).or_default().push(row);
    }
    let mut datums = Vec::with_capacity(types.len());
    for id in snapshot.row_ids() {
        datums.clear();
        snapshot.read(id, &key.columns, &mut datums);
        let same = |row: &&&Values| {
            row.iter().zip(&types).zip(&datums).all(|((value, &ty), datum)| datum.is_same(Datum::of_value(value, ty)))
        };
        if let Some(row) = sought.get(&hash(&datums)).and_then(|rows| rows.iter().find(same)) {
            return Some(row);
        }
    }
    None
}

/// Refuses to remove all rows of a table that rows of another refer to, which is not among `all`.
pub(crate) fn refuse_truncate(work: &mut Work, entry: &TableEntry, all: &[Arc<TableEntry>]) -> Result<()> {
    for (child, key) in referring(work, entry) {
        if !all.iter().any(|entry| Arc::ptr_eq(entry, &child)) && work.snapshot(&child.table).rows() > 0 {
            let text = format!("foreign key {}: table {} refers to table {}", key.name, child.name, entry.name);
            let error = Error::new(ErrorKind::Constraint, text).with_sqlstate(FOREIGN_KEY);
            return Err(error.with_hint(format!("truncate both: TRUNCATE {}, {}", entry.name, child.name)));
        }
    }
    Ok(())
}

/// Claims of a table that has no rows any more that nothing refers to it.
pub(crate) fn claim_truncated(work: &mut Work, entry: &Arc<TableEntry>) -> Result<()> {
    for (child, key) in referring(work, entry) {
        claim(work, &child.clone(), Claim::Whole { parent: entry.clone(), child, key })?;
    }
    Ok(())
}
