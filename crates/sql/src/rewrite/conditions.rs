//! Corrections of conditions.
//!
//! * **Text literals** as conditions, `WHERE 'true'`, `NOT 'f'`, `a AND 'no'`, are BOOLEANs, as in
//!   comparisons, and the binder requires them to be.
//! * **Ambiguous names**: `FROM x, y WHERE a > 0 AND x.a = y.a`. If a condition names both columns, the
//!   binder takes the unqualified name for the merged column of a `USING`, and chooses the first. Names that
//!   `USING` has merged were replaced before ([`super::using`]), so any other is refused here.

use super::outer_names::for_each_factor;
use super::using::qualifier;
use crate::error::ambiguous_name;
use entasis_syntax::place::locate_ident;
use entasis_syntax::walk::Walk;
use entasis_vector::Result;
use sqlparser::ast::{
    BinaryOperator, CastKind, DataType, Expr, Ident, Query, Select, SelectItem, TableWithJoins,
    UnaryOperator, Value, Visitor,
};
use std::collections::HashMap;
use std::ops::ControlFlow;

/// Casts a text literal as a condition to BOOLEAN.
pub(super) fn condition(expr: &mut Expr) {
    match expr {
        Expr::Nested(inner) => condition(inner),
        Expr::Value(literal) if matches!(literal.value, Value::SingleQuotedString(_)) => {
            let text = Box::new(std::mem::replace(expr, Expr::Value(Value::Null.into())));
            *expr = Expr::Cast {
                kind: CastKind::Cast,
                expr: text,
                data_type: DataType::Boolean,
                array: false,
                format: None,
            };
        }
        _ => {}
    }
}

/// Does so with the operands of AND, OR and NOT.
pub(super) fn operands(expr: &mut Expr) {
    match expr {
        Expr::BinaryOp { left, op: BinaryOperator::And | BinaryOperator::Or, right } => {
            condition(left);
            condition(right);
        }
        Expr::UnaryOp { op: UnaryOperator::Not, expr } => condition(expr),
        _ => {}
    }
}

/// The aliases of the tables of a `FROM`, in lower case.
pub(super) fn names_of(tables: &[TableWithJoins]) -> Vec<String> {
    let mut names = Vec::new();
    for_each_factor(tables, &mut |factor| {
        names.extend(qualifier(factor).map(|name| name.value.to_ascii_lowercase()))
    });
    names
}

/// Refuses an unqualified name in a condition if the condition itself shows that two of these tables have
/// such a column, unless it is one of `others`, to which the condition may also refer.
///
/// # Errors
/// Input, for an ambiguous name.
pub(super) fn unambiguous(expr: &Expr, tables: &[String], others: &[String]) -> Result<()> {
    let mut names = Names { tables, depth: 0, bare: Vec::new(), owners: HashMap::new() };
    let _ = expr.walk(&mut names);
    let ambiguous = names.bare.iter().find(|name| {
        let name = name.value.to_ascii_lowercase();
        let owners = names.owners.get(&name).filter(|_| !others.contains(&name));
        owners.is_some_and(|owners| owners.iter().any(|owner| *owner != owners[0]))
    });
    let Some(name) = ambiguous else { return Ok(()) };
    Err(locate_ident(ambiguous_name(&name.value), name))
}

/// The names in a condition that belong to its tables.
struct Names<'a> {
    tables: &'a [String],
    /// Number of enclosing subqueries: unqualified names in them may be their own.
    depth: usize,
    bare: Vec<Ident>,
    /// For each column, the tables by which it is qualified somewhere.
    owners: HashMap<String, Vec<String>>,
}

impl Visitor for Names<'_> {
    type Break = ();

    fn pre_visit_query(&mut self, _: &Query) -> ControlFlow<()> {
        self.depth += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &Query) -> ControlFlow<()> {
        self.depth -= 1;
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        match expr {
            _ if self.depth > 0 => {}
            Expr::Identifier(name) => self.bare.push(name.clone()),
            Expr::CompoundIdentifier(parts) => {
                if let [table, column] = parts.as_slice()
                    && self.tables.contains(&table.value.to_ascii_lowercase())
                {
                    self.owners
                        .entry(column.value.to_ascii_lowercase())
                        .or_default()
                        .push(table.value.to_ascii_lowercase());
                }
            }
            _ => {}
        }
        ControlFlow::Continue(())
    }
}

/// The names that a SELECT gives to its results, in lower case, to which `HAVING` may refer.
pub(super) fn result_names(select: &Select) -> Vec<String> {
    let named = |item: &SelectItem| match item {
        SelectItem::ExprWithAlias { alias, .. } => Some(alias.value.to_ascii_lowercase()),
        _ => None,
    };
    select.projection.iter().filter_map(named).collect()
}
