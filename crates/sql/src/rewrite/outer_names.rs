//! Names of outer tables that are also names of columns: `SELECT … FROM orders WHERE EXISTS (SELECT 1 FROM
//! lines WHERE lines.orders = orders.id)`.
//!
//! The binder takes `orders.id` for a field of the column `orders` before it searches the enclosing query. So
//! if a subquery names an outer table, and one of its own columns may have the same name, that table gets a
//! hidden name, and so do all references to it. Whether there is such a column is known for tables and views;
//! for other items of the `FROM`, it is assumed.

use super::using::qualifier;
use crate::binding::context::Context;
use crate::hidden::hidden;
use entasis_syntax::object_name::table_name;
use entasis_syntax::walk::{Walk, WalkMut};
use sqlparser::ast::{
    Expr, Ident, ObjectName, ObjectNamePart, Query, Select, SelectItem, SelectItemQualifiedWildcardKind,
    Statement, TableAlias, TableFactor, TableWithJoins, Visitor, VisitorMut,
};
use std::collections::HashSet;
use std::convert::Infallible;
use std::ops::ControlFlow;

/// Gives hidden names to those outer tables of a statement whose names may also be names of a subquery's
/// columns.
pub(super) fn apply(statement: &mut Statement, context: &Context<'_>) {
    let mut look =
        Look { context, frames: Vec::new(), starts: Vec::new(), selects: 0, found: HashSet::new() };
    let _ = statement.walk(&mut look);
    let found = look.found;
    if !found.is_empty() {
        let mut rename = Rename { found, frames: Vec::new(), starts: Vec::new(), selects: 0 };
        let _ = statement.walk_mut(&mut rename);
    }
}

/// An enclosing `SELECT`.
struct Frame {
    /// Its number in the statement.
    number: u64,
    /// The aliases of its tables, in lower case.
    tables: Vec<String>,
    /// The names in the catalog of its tables; `None` if some are not in the catalog.
    relations: Option<Vec<String>>,
}

/// The `SELECT` to which a table's name refers: its index in `frames`.
fn owner(frames: &[Frame], table: &str) -> Option<usize> {
    frames.iter().rposition(|frame| frame.tables.iter().any(|own| own == table))
}

struct Look<'a> {
    context: &'a Context<'a>,
    frames: Vec<Frame>,
    /// For each enclosing query, the number of frames outside.
    starts: Vec<usize>,
    selects: u64,
    /// The tables that need another name, each with the number of its `SELECT`.
    found: HashSet<(u64, String)>,
}

impl Look<'_> {
    /// True if a table of the frame may have a column of that name.
    fn may_have(&self, frame: &Frame, column: &str) -> bool {
        let Some(relations) = &frame.relations else { return true };
        let mut known = relations.iter().map(|name| self.context.columns_of_table(name));
        known.any(|columns| columns.map_or(true, |columns| columns.iter().any(|own| own == column)))
    }
}

impl Visitor for Look<'_> {
    type Break = Infallible;

    fn pre_visit_query(&mut self, _: &Query) -> ControlFlow<Infallible> {
        self.starts.push(self.frames.len());
        ControlFlow::Continue(())
    }

    // ORDER BY comes after the SELECT and refers to its tables.
    fn post_visit_query(&mut self, _: &Query) -> ControlFlow<Infallible> {
        self.frames.truncate(self.starts.pop().unwrap_or_default());
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &Select) -> ControlFlow<Infallible> {
        let mut tables = Vec::new();
        let mut relations = Some(Vec::new());
        for_each_factor(&select.from, &mut |factor| {
            tables.extend(qualifier(factor).map(|name| name.value.to_ascii_lowercase()));
            let relation = match factor {
                TableFactor::Table { name, args: None, .. } => table_name(name).ok(),
                _ => None,
            };
            match (&mut relations, relation) {
                (Some(all), Some(name)) => all.push(name),
                (relations, _) => *relations = None,
            }
        });
        self.frames.push(Frame { number: self.selects, tables, relations });
        self.selects += 1;
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<Infallible> {
        if let Expr::CompoundIdentifier(parts) = expr
            && let [table, _] = parts.as_slice()
        {
            let table = table.value.to_ascii_lowercase();
            if let Some(at) = owner(&self.frames, &table)
                && self.frames[at + 1..].iter().any(|inner| self.may_have(inner, &table))
            {
                self.found.insert((self.frames[at].number, table));
            }
        }
        ControlFlow::Continue(())
    }
}

struct Rename {
    found: HashSet<(u64, String)>,
    frames: Vec<Frame>,
    starts: Vec<usize>,
    selects: u64,
}

impl Rename {
    /// The name that a table was given.
    fn given(&self, table: &Ident) -> Option<Ident> {
        let table = table.value.to_ascii_lowercase();
        let number = self.frames[owner(&self.frames, &table)?].number;
        let is_found = self.found.contains(&(number, table.clone()));
        is_found.then(|| Ident::with_quote('"', format!("{table}{}", hidden(number))))
    }
}

impl VisitorMut for Rename {
    type Break = Infallible;

    fn pre_visit_query(&mut self, _: &mut Query) -> ControlFlow<Infallible> {
        self.starts.push(self.frames.len());
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &mut Query) -> ControlFlow<Infallible> {
        self.frames.truncate(self.starts.pop().unwrap_or_default());
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<Infallible> {
        let mut tables = Vec::new();
        for_each_factor(&select.from, &mut |factor| {
            tables.extend(qualifier(factor).map(|name| name.value.to_ascii_lowercase()));
        });
        self.frames.push(Frame { number: self.selects, tables, relations: None });
        self.selects += 1;
        for item in &mut select.projection {
            // A result is named as it was written, in its letter case.
            if let SelectItem::UnnamedExpr(expr) = item
                && !matches!(expr, Expr::Identifier(_) | Expr::CompoundIdentifier(_))
            {
                let alias = Ident::with_quote('\'', expr.to_string());
                let expr = std::mem::replace(expr, Expr::Identifier(Ident::new("")));
                *item = SelectItem::ExprWithAlias { expr, alias };
            }
            if let SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::ObjectName(name), _) = item
                && let [ObjectNamePart::Identifier(table)] = name.0.as_slice()
                && let Some(given) = self.given(table)
            {
                *name = ObjectName::from(given);
            }
        }
        for_each_factor_mut(&mut select.from, &mut |factor| {
            let Some(given) = qualifier(factor).and_then(|name| self.given(&name)) else { return };
            let (TableFactor::Table { alias, .. } | TableFactor::Derived { alias, .. }) = factor else {
                return;
            };
            match alias {
                Some(alias) => alias.name = given,
                None => {
                    *alias = Some(TableAlias { explicit: true, name: given, columns: Vec::new(), at: None })
                }
            }
        });
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Infallible> {
        if let Expr::CompoundIdentifier(parts) = expr
            && let [table, _] = parts.as_mut_slice()
            && let Some(given) = self.given(table)
        {
            *table = given;
        }
        ControlFlow::Continue(())
    }
}

/// Calls `act` for all tables of a `FROM`, including those of joins in brackets.
pub(super) fn for_each_factor(tables: &[TableWithJoins], act: &mut impl FnMut(&TableFactor)) {
    for table in tables {
        for factor in std::iter::once(&table.relation).chain(table.joins.iter().map(|join| &join.relation)) {
            match factor {
                TableFactor::NestedJoin { table_with_joins, alias: None } => {
                    for_each_factor(std::slice::from_ref(table_with_joins), act);
                }
                factor => act(factor),
            }
        }
    }
}

fn for_each_factor_mut(tables: &mut [TableWithJoins], act: &mut impl FnMut(&mut TableFactor)) {
    for table in tables {
        let joined = table.joins.iter_mut().map(|join| &mut join.relation);
        for factor in std::iter::once(&mut table.relation).chain(joined) {
            match factor {
                TableFactor::NestedJoin { table_with_joins, alias: None } => {
                    for_each_factor_mut(std::slice::from_mut(table_with_joins), act);
                }
                factor => act(factor),
            }
        }
    }
}
