//! Scopes: which names a SELECT sees, and what its expressions have asked for.
//!
//! A name is looked up from the innermost scope outward. Within a scope, merged columns of joins with USING
//! come first, then the columns of all relations in FROM; two hits in one scope are an error that names both.
//! A qualified name whose table is found, but not its column, ends the search. Names are in lower case.

use crate::bound::Bound;
use crate::window::Windows;
use entasis_engine::plan::{AggregateCall, JoinKind, Node, SortKey, WindowCall};
use entasis_vector::ColumnId;
use entasis_vector::expr::Expr;
use sqlparser::ast;
use std::cell::OnceCell;
use std::collections::HashMap;
use std::rc::Rc;

/// From how many columns on names are found by a map.
const MANY: usize = 16;

/// A relation in FROM: a name, and columns.
#[derive(Debug, Clone)]
pub(crate) struct Rel {
    /// The name by which its columns are qualified; empty without one.
    pub(crate) alias: Rc<str>,
    /// The parts before the name: those of a schema and a database, innermost last.
    pub(crate) qualifiers: Rc<[String]>,
    /// Its columns, by name.
    pub(crate) columns: Rc<Listed>,
    /// Another name of a column, which counts where no column has it.
    pub(crate) second: Option<(Box<str>, ColumnId)>,
    /// A column that is TRUE in every row, if somebody counts its rows.
    pub(crate) presence: Option<ColumnId>,
    /// Rows of the left side of a RIGHT or FULL JOIN, which the right side must not read.
    pub(crate) is_refused: bool,
}

/// Columns with their names, in lower case.
#[derive(Debug, Default)]
pub(crate) struct Listed {
    /// In order.
    pub(crate) all: Vec<(Box<str>, ColumnId)>,
    by_name: OnceCell<HashMap<Box<str>, usize>>,
}

impl Listed {
    pub(crate) fn new(all: Vec<(Box<str>, ColumnId)>) -> Listed {
        Listed { all, by_name: OnceCell::new() }
    }

    /// The columns of this name: none, one, or the first and that there are several.
    fn find(&self, name: &str) -> (Option<ColumnId>, bool) {
        if self.all.len() < MANY {
            let mut found = self.all.iter().filter(|(own, _)| **own == *name);
            let first = found.next().map(|(_, id)| *id);
            return (first, found.next().is_some());
        }
        let by_name = self.by_name.get_or_init(|| {
            let mut map = HashMap::with_capacity(self.all.len());
            for (at, (name, _)) in self.all.iter().enumerate() {
                // A name that occurs twice is marked by a place behind all.
                map.entry(name.clone()).and_modify(|place| *place |= TWICE).or_insert(at);
            }
            map
        });
        match by_name.get(name) {
            None => (None, false),
            Some(place) => (Some(self.all[place & !TWICE].1), place & TWICE != 0),
        }
    }
}

/// Marks the place of a name that occurs twice.
const TWICE: usize = 1 << 63;

/// A column of a join that merges those of both sides.
#[derive(Debug, Clone)]
pub(crate) struct Merged {
    /// Its name, in lower case.
    pub(crate) name: Box<str>,
    /// The column.
    pub(crate) column: ColumnId,
    /// The columns of the relations for which it stands.
    pub(crate) of: Vec<ColumnId>,
}

impl Merged {
    /// True if it stands for a column of this name, in lower case. A query may give one column several names,
    /// of which USING merges only one.
    pub(crate) fn stands_for(&self, name: &str, column: ColumnId) -> bool {
        *self.name == *name && self.of.contains(&column)
    }
}

/// The clause in which an expression stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Clause {
    From,
    On,
    Where,
    GroupBy,
    Select,
    Having,
    Qualify,
    OrderBy,
    /// The arguments of an aggregate.
    Aggregate,
    /// The arguments of a window function.
    Window,
    Values,
}

impl Clause {
    /// True where groups are there.
    pub(crate) fn has_groups(self) -> bool {
        matches!(self, Clause::Select | Clause::Having | Clause::Qualify | Clause::OrderBy | Clause::Window)
    }

    /// Its name, as an error says it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Clause::From => "FROM",
            Clause::On => "the condition of a join",
            Clause::Where => "WHERE",
            Clause::GroupBy => "GROUP BY",
            Clause::Select => "the select list",
            Clause::Having => "HAVING",
            Clause::Qualify => "QUALIFY",
            Clause::OrderBy => "ORDER BY",
            Clause::Aggregate => "the arguments of an aggregate",
            Clause::Window => "the arguments of a window function",
            Clause::Values => "VALUES",
        }
    }
}

/// What makes two calls of an aggregate one.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct AggregateKey {
    pub(crate) name: String,
    pub(crate) args: Vec<Expr>,
    pub(crate) distinct: bool,
    pub(crate) filter: Option<Expr>,
    pub(crate) order_by: Vec<SortKey>,
    pub(crate) ignore_nulls: bool,
}

/// A call of a window function, with its partitions and its order.
#[derive(Debug, Clone)]
pub(crate) struct WindowUse {
    pub(crate) column: ColumnId,
    pub(crate) partition: Vec<Expr>,
    pub(crate) order: Vec<SortKey>,
    pub(crate) call: WindowCall,
}

/// A subquery that an expression reads, to be joined once the operator that evaluates the expression is made.
#[derive(Debug, Clone)]
pub(crate) struct Pending {
    /// The subquery.
    pub(crate) node: Node,
    /// How it is joined.
    pub(crate) kind: JoinKind,
    /// The equality of IN: over the rows around, over the subquery.
    pub(crate) key: Option<(Expr, Expr)>,
    /// The columns of the subquery that are read.
    pub(crate) outputs: Vec<ColumnId>,
    /// True if it is read by an argument of an aggregate or a key of the groups.
    pub(crate) is_below_groups: bool,
}

impl Pending {
    /// The columns that it adds.
    pub(crate) fn columns(&self) -> Vec<ColumnId> {
        match self.kind {
            JoinKind::Mark { mark, .. } => vec![mark],
            _ => self.outputs.clone(),
        }
    }
}

/// Several sets of keys.
#[derive(Debug)]
pub(crate) struct KeySets {
    /// The column that tells by which keys a row is not grouped: a bit for each key that is written.
    pub(crate) id: ColumnId,
    /// The place of each key that is written among those that differ.
    pub(crate) places: Vec<usize>,
    /// The places of the keys of each set.
    pub(crate) sets: Vec<Vec<usize>>,
}

/// An item of a select list, as other clauses find it by its name.
#[derive(Debug)]
pub(crate) struct Alias<'q> {
    pub(crate) name: Box<str>,
    pub(crate) ast: &'q ast::Expr,
    pub(crate) bound: Option<Bound>,
    pub(crate) is_being_bound: bool,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Scope<'q> {
    pub(crate) relations: Vec<Rel>,
    pub(crate) merged: Vec<Merged>,
    pub(crate) clause: Clause,
    /// Named items of the select list, in order.
    pub(crate) aliases: Vec<Alias<'q>>,
    /// How many of them a clause sees.
    pub(crate) visible_aliases: usize,
    /// Windows of the WINDOW clause, in lower case.
    pub(crate) windows: Windows<'q>,
    pub(crate) aggregates: Vec<(ColumnId, AggregateCall)>,
    pub(crate) aggregates_by_key: HashMap<AggregateKey, ColumnId>,
    pub(crate) window_calls: Vec<WindowUse>,
    pub(crate) pending: Vec<Pending>,
    /// Columns that must be computed before everything else, since several clauses read them.
    pub(crate) early: Vec<(ColumnId, Expr)>,
    /// Lists that the select list takes apart: the column of elements, the list, and how many others it is
    /// within.
    pub(crate) unnests: Vec<(ColumnId, Expr, usize)>,
    /// The keys of GROUP BY as they are bound, with the numbers of the sets in which they are.
    pub(crate) keys: Vec<(ColumnId, Expr)>,
    /// Where each of them is among these.
    key_places: HashMap<Expr, usize>,
    /// The sets of keys, if there are several.
    pub(crate) sets: Option<KeySets>,
    /// True where there are groups whatever the select list has.
    pub(crate) is_grouped: bool,
}

impl Scope<'_> {
    pub(crate) fn new(relations: Vec<Rel>, merged: Vec<Merged>, clause: Clause) -> Self {
        Scope {
            relations,
            merged,
            clause,
            aliases: Vec::new(),
            visible_aliases: 0,
            windows: HashMap::new(),
            aggregates: Vec::new(),
            aggregates_by_key: HashMap::new(),
            window_calls: Vec::new(),
            pending: Vec::new(),
            early: Vec::new(),
            unnests: Vec::new(),
            keys: Vec::new(),
            key_places: HashMap::new(),
            sets: None,
            is_grouped: false,
        }
    }

    /// Where a key of GROUP BY is among those that there are.
    pub(crate) fn key_place(&self, key: &Expr) -> Option<usize> {
        self.key_places.get(key).copied()
    }

    /// Adds a key of GROUP BY that is not there yet, and returns its place.
    pub(crate) fn add_key(&mut self, column: ColumnId, key: Expr) -> usize {
        let place = self.keys.len();
        self.key_places.insert(key.clone(), place);
        self.keys.push((column, key));
        place
    }
}

/// What a name means in one scope.
#[derive(Debug)]
pub(crate) enum Found {
    Nothing,
    Column(ColumnId),
    /// Found, and refused: the left side of a RIGHT or FULL JOIN.
    Refused,
    /// In several relations, as they are qualified.
    Several(Vec<String>),
    /// A table of the name is there, which has no such column; its columns.
    NotInTable(Rel),
}

impl Scope<'_> {
    /// A column by its own name.
    pub(crate) fn find(&self, name: &str) -> Found {
        let merged = self.merged.iter().rev().find(|merged| *merged.name == *name);
        let stands_for = |column| merged.is_some_and(|merged| merged.stands_for(name, column));
        let mut found: Vec<(ColumnId, &Rel)> = Vec::new();
        for rel in &self.relations {
            let (column, is_there_twice) = rel.find(name);
            let column = column.filter(|column| !stands_for(*column));
            found.extend(column.map(|column| (column, rel)));
            found.extend(column.filter(|_| is_there_twice).map(|column| (column, rel)));
        }
        match (merged, found.as_slice()) {
            (None, []) => Found::Nothing,
            (Some(merged), []) => Found::Column(merged.column),
            (None, [(_, rel)]) if rel.is_refused => Found::Refused,
            (None, [(column, _)]) => Found::Column(*column),
            (merged, several) => {
                let own = merged.map(|_| name.to_owned());
                Found::Several(
                    own.into_iter().chain(several.iter().map(|(_, rel)| rel.qualified(name))).collect(),
                )
            }
        }
    }

    /// A column of a table that is named by these parts, the table's own name last.
    pub(crate) fn find_in(&self, table: &[String], name: &str) -> Found {
        let mut found = Found::Nothing;
        for rel in self.relations.iter().filter(|rel| rel.is_named(table)) {
            found = match (rel.find(name), found) {
                (_, Found::Column(_)) => return Found::Several(vec![rel.qualified(name); 2]),
                ((Some(_), true), _) => return Found::Several(vec![rel.qualified(name); 2]),
                ((Some(_), false), _) if rel.is_refused => Found::Refused,
                ((Some(column), false), _) => Found::Column(column),
                ((None, _), Found::Nothing) => Found::NotInTable(rel.clone()),
                ((None, _), other) => other,
            };
        }
        found
    }

    /// The relations that are named by these parts.
    pub(crate) fn relations_named<'s>(&'s self, table: &'s [String]) -> impl Iterator<Item = &'s Rel> {
        self.relations.iter().filter(|rel| rel.is_named(table))
    }
}

impl Rel {
    /// A relation of this name, with these columns.
    pub(crate) fn new(alias: &str, columns: Vec<(Box<str>, ColumnId)>) -> Rel {
        Rel {
            alias: alias.into(),
            qualifiers: Rc::new([]),
            columns: Rc::new(Listed::new(columns)),
            second: None,
            presence: None,
            is_refused: false,
        }
    }

    /// True if these parts name it, its own name last.
    fn is_named(&self, parts: &[String]) -> bool {
        match parts.split_last() {
            Some((own, before)) => **own == *self.alias && self.qualifiers.ends_with(before),
            None => false,
        }
    }

    /// The column of this name, and whether there are several.
    fn find(&self, name: &str) -> (Option<ColumnId>, bool) {
        match (self.columns.find(name), &self.second) {
            ((None, _), Some((second, column))) if **second == *name => (Some(*column), false),
            (found, _) => found,
        }
    }

    /// The name of one of its columns with its own before it.
    pub(crate) fn qualified(&self, column: &str) -> String {
        if self.alias.is_empty() { column.to_owned() } else { format!("{}.{column}", self.alias) }
    }
}
