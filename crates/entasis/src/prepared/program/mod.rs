//! The program of a keyed statement, which identifies rows by the unique layout key or adds some: what it
//! does, not how.
//!
//! It is compiled for one state of the catalog ([`compile`]). It computes only sums of integers (no checks,
//! no defaults but constants and sequences), and reads no other table than its own indexes (no foreign
//! keys). Values are converted to the types of their columns ([`values`]). For how it runs, see `keyed`.

mod compile;
mod values;

pub(crate) use compile::{Compiled, compile};
use entasis_storage::TableEntry;
use entasis_vector::Schema;
use std::ops::Bound;
use std::sync::Arc;
pub(crate) use values::{Assignments, Fill, NewValue, ProgramArguments, Source};

/// A keyed statement on a table.
pub(crate) struct Program {
    /// The table.
    pub(crate) entry: Arc<TableEntry>,
    /// The parameters that are assigned to columns.
    pub(crate) assignments: Assignments,
    /// The value of each column of the layout key, if the statement names one row.
    pub(crate) key: Vec<Source>,
    /// What the program does.
    pub(crate) action: Action,
    /// The keys whose indexes contain the row, before the statement or after it.
    pub(crate) indexed: Vec<IndexedKey>,
    /// What a change returns of its rows.
    pub(crate) returning: Option<Outputs>,
}

/// Columns that are returned.
pub(crate) struct Outputs {
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

/// What a program does.
#[expect(clippy::large_enum_variant, reason = "there is one for each prepared statement")]
pub(crate) enum Action {
    /// Reads columns of a row.
    Read(Outputs),
    /// Reads columns of several rows.
    ReadSeveral(Outputs, Several),
    /// Adds rows, with a value for each column of the table. If the second part is there, there is one row,
    /// and this is set in an existing row with the same key; otherwise such a row is an error.
    Insert(Vec<Vec<Fill>>, Option<Vec<(usize, NewValue)>>),
    /// Changes columns of the row to new values; the flag says whether the key changes.
    Update(Vec<(usize, NewValue)>, bool),
    /// Removes the row.
    Delete,
}

impl Program {
    /// What it does, in words.
    pub(crate) fn does(&self) -> &'static str {
        let has_indexes = !self.indexed.is_empty();
        match &self.action {
            Action::Read(_) => "reads the row of a key",
            Action::ReadSeveral(..) => "reads the rows of some keys",
            Action::Insert(_, None) if has_indexes => "adds rows to the table and to its indexes",
            Action::Insert(_, None) => "adds rows",
            Action::Insert(_, Some(_)) => "adds a row, or changes that of its key",
            Action::Update(_, true) => "gives the row of a key another one",
            Action::Update(..) if has_indexes => "changes the row of a key, and those of indexes",
            Action::Update(..) => "changes the row of a key in place",
            Action::Delete if has_indexes => "removes the row of a key, and those of indexes",
            Action::Delete => "removes the row of a key",
        }
    }
}

/// Rows by the only column of the layout key.
pub(crate) struct Several {
    /// The values of the column.
    pub(crate) keys: Keys,
    /// The greatest come first.
    pub(crate) descends: bool,
    /// The greatest number of rows.
    pub(crate) limit: Option<Source>,
}

/// Values of the only column of the layout key.
pub(crate) enum Keys {
    /// Those of a list.
    List(Vec<Source>),
    /// All from a bound to another.
    Range(Bound<Source>, Bound<Source>),
}

impl Action {
    /// True if it changes nothing.
    pub(crate) fn is_read(&self) -> bool {
        matches!(self, Action::Read(_) | Action::ReadSeveral(..))
    }
}

impl NewValue {
    /// Approximate bytes of its constant.
    fn bytes(&self) -> usize {
        match self {
            NewValue::Given(source) => source.bytes(),
            NewValue::Sum { .. } | NewValue::Excluded(_) => 0,
        }
    }
}

impl Program {
    /// Approximate bytes of memory of the rows that it writes.
    pub(crate) fn bytes(&self, arguments: &ProgramArguments<'_>) -> usize {
        let width = 16 * self.entry.table.schema().len();
        let of_set = |set: &[(usize, NewValue)]| set.iter().map(|(_, value)| value.bytes()).sum::<usize>();
        let of_fill = |fill: &Fill| match fill {
            Fill::Given(source) => source.bytes(),
            Fill::Next(_) => 0,
        };
        let constants = match &self.action {
            Action::Insert(rows, set) => {
                let fills = rows.iter().flatten().map(of_fill).sum::<usize>();
                fills + width * (rows.len() - 1) + set.as_deref().map_or(0, of_set)
            }
            Action::Update(set, _) => of_set(set),
            Action::Read(_) | Action::ReadSeveral(..) | Action::Delete => 0,
        };
        width + constants + arguments.bytes()
    }
}
