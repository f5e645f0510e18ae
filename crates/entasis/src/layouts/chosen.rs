//! Which layout and layout key a table has, and why: what was declared, and what follows from its keys.

use crate::state::workload_stats::follows;
use entasis_engine::relation::{Definition, LayoutName};
use entasis_storage::{Layout, TableSnapshot};

/// See the module.
pub(super) struct Chosen {
    /// The layout.
    pub(super) layout: &'static str,
    /// The names of the columns of its key, between brackets, and its curve if it has one; `None` for the
    /// order of insertion.
    pub(super) key: Option<String>,
    /// Why it is so, in words.
    pub(super) why: String,
}

impl Chosen {
    /// The layout of a table.
    pub(super) fn of(definition: &Definition, snapshot: &TableSnapshot) -> Chosen {
        let options = snapshot.table().options();
        let layout = match options.layout {
            Layout::Insertion => LayoutName::Insertion,
            Layout::Sorted => LayoutName::Sorted,
            Layout::Delta => LayoutName::Delta,
            Layout::Equi => LayoutName::Equi,
            Layout::EquiGhost => LayoutName::EquiGhost,
            Layout::Casper => LayoutName::Casper,
        };
        let choice = &definition.layout;
        let is_chosen = matches!(choice.layout, None | Some(LayoutName::Auto));
        let declared = if is_chosen { "chosen by 'auto'" } else { "as declared" };
        let follows = follows(definition);
        if !options.layout.is_keyed() {
            let reason = match (is_chosen, follows) {
                (true, true) => ": no key suits the workload better by now",
                (true, false) => ": the table has no key",
                (false, _) => "",
            };
            return Chosen { layout: layout.name(), key: None, why: format!("{declared}{reason}") };
        }
        let by = match &choice.key {
            Some(_) if follows => "the workload",
            Some(_) => "its layout_key",
            None if definition.primary_key().is_some() => "its primary key",
            None => "its first unique key",
        };
        let along = options.curve.map_or(String::new(), |curve| format!(" along {}", curve.name()));
        let key = columns(snapshot, &options.layout_key) + &along;
        Chosen { layout: layout.name(), key: Some(key), why: format!("{declared}, by {by}") }
    }

    /// All of it in a line.
    pub(super) fn text(&self) -> String {
        let key = self.key.as_ref().map_or(String::new(), |key| format!(" by {key}"));
        format!("{}{key}; {}", self.layout, self.why)
    }
}

/// The names of columns, between brackets.
pub(super) fn columns(snapshot: &TableSnapshot, columns: &[usize]) -> String {
    let names: Vec<&str> = columns.iter().map(|&column| &*snapshot.schema()[column].name).collect();
    format!("({})", names.join(", "))
}
