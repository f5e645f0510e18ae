//! UNION, INTERSECT, EXCEPT, and VALUES: rows of several origins with columns of common types.
//!
//! The common type of a column is one fold over what is given of it in all inputs, so that literals adopt the
//! type of the others, and many rows take time in proportion to them.

use crate::binder::{Binder, located};
use crate::bound::Bound;
use crate::expr::into_value;
use crate::operator::beside;
use crate::query::{Item, Rows, one_row, project, take};
use crate::scope::{Clause, Scope};
use crate::settle::settled;
use entasis_engine::plan::{Node, SetKind, SetOperation, Values};
use entasis_functions::types::{Given, Meeting, common};
use entasis_syntax::FreedAside;
use entasis_vector::expr::Expr;
use entasis_vector::{ColumnId, DataType, Error, Result, Value, statement};
use sqlparser::ast::{self, SetExpr, SetOperator, SetQuantifier};
use std::collections::HashMap;

impl<'a, 'q> Binder<'a, 'q> {
    /// Binds a set operation. A chain of one kind is one operator.
    pub(crate) fn set_operation(&mut self, body: &'q SetExpr) -> Result<Rows> {
        let SetExpr::SetOperation { op, set_quantifier, .. } = body else {
            return self.body(body);
        };
        let (kind, all, by_name) = kind_of(*op, *set_quantifier)?;
        // Chains lean to the left: walk them without recursion.
        let mut arms = Vec::new();
        let mut first = body;
        while let SetExpr::SetOperation { op: own, set_quantifier: quantifier, left, right } = first
            && (*own, *quantifier) == (*op, *set_quantifier)
            && (kind == SetKind::Union || std::ptr::eq(first, body))
        {
            arms.push(&**right);
            first = left;
        }
        arms.push(first);
        let mut inputs = Vec::with_capacity(arms.len());
        for arm in arms.into_iter().rev() {
            let rows = self.set_operation_or_body(arm)?;
            inputs.push((rows, arm));
        }
        if by_name {
            self.by_name(&mut inputs);
        }
        self.united(kind, all, inputs)
    }

    fn set_operation_or_body(&mut self, arm: &'q SetExpr) -> Result<Rows> {
        match arm {
            SetExpr::SetOperation { .. } => self.set_operation(arm),
            arm => self.body(arm),
        }
    }

    /// Gives all inputs the columns of all, by name, NULL where one has none.
    fn by_name(&mut self, inputs: &mut [(Rows, &'q SetExpr)]) {
        let mut names: Vec<String> = Vec::new();
        let mut seen = HashMap::new();
        for (rows, _) in inputs.iter() {
            for item in &rows.items {
                seen.entry(item.name.to_ascii_lowercase()).or_insert_with(|| names.push(item.name.clone()));
            }
        }
        for (rows, _) in inputs {
            let items = std::mem::take(&mut rows.items);
            let find =
                |name: &String| items.iter().find(|item| item.name.eq_ignore_ascii_case(name)).cloned();
            let missing = |name: &String| {
                let Bound { expr, given } = Bound::null();
                Item { name: name.clone(), expr, given }
            };
            rows.items = names.iter().map(|name| find(name).unwrap_or_else(|| missing(name))).collect();
        }
    }

    fn united(&mut self, kind: SetKind, all: bool, inputs: Vec<(Rows, &'q SetExpr)>) -> Result<Rows> {
        let width = inputs[0].0.items.len();
        if let Some((rows, arm)) = inputs.iter().find(|(rows, _)| rows.items.len() != width) {
            let text =
                format!("a side of a set operation has {width} columns, and another {}", rows.items.len());
            return Err(located(Error::input(text), *arm));
        }
        let mut types = Vec::with_capacity(width);
        let mut are_open = Vec::with_capacity(width);
        for place in 0..width {
            let items = || inputs.iter().map(|(rows, _)| &rows.items[place]);
            // Duplicates are told by the type that a column has.
            are_open.push(open(items().map(|item| item.given)).filter(|_| all && kind == SetKind::Union));
            let exact = exact_among(items().map(|item| item.given));
            let given = items().map(|item| match exact {
                Some(exact) => beside_expr(&item.expr, item.given, exact),
                None => item.given,
            });
            let ty = common(given, Meeting::Union).ok_or_else(|| {
                let name = &inputs[0].0.items[place].name;
                let mut types: Vec<String> =
                    inputs.iter().map(|(rows, _)| rows.items[place].given.to_string()).collect();
                types.dedup();
                let text =
                    format!("the column {name} of a set operation is {} in its inputs", types.join(" and "));
                Error::input(text).with_hint("cast them to one type: CAST(value AS type)")
            })?;
            types.push(ty);
        }
        let names: Vec<String> = inputs[0].0.items.iter().map(|item| item.name.clone()).collect();
        let mut sides = Vec::with_capacity(inputs.len());
        for (mut rows, _) in inputs {
            for (item, ty) in rows.items.iter_mut().zip(&types) {
                let expr = std::mem::replace(&mut item.expr, Expr::boolean(false));
                let bound = beside(Bound { expr, given: item.given }, Given::Known(*ty));
                item.expr = bound.cast(*ty);
            }
            let (node, columns) = self.projected(rows);
            sides.push((node, columns.into_iter().map(|(_, column)| column).collect::<Vec<ColumnId>>()));
        }
        let columns: Vec<ColumnId> =
            names.iter().zip(&types).map(|(name, ty)| self.columns.add(name.as_str(), *ty, true)).collect();
        let node = Node::SetOperation(SetOperation { kind, all, inputs: sides, columns: columns.clone() });
        let items = names.into_iter().zip(columns).zip(are_open).map(|((name, column), is_open)| {
            let Bound { expr, given } = Bound::known(self.columns.expr(column));
            Item { name, expr, given: is_open.unwrap_or(given) }
        });
        Ok(Rows { node, items: items.collect() })
    }

    /// Binds VALUES. Rows of constants stand in the plan, others are queries of one row.
    pub(crate) fn values(&mut self, values: &'q ast::Values) -> Result<Rows> {
        let Some(first) = values.rows.first() else { return Err(Error::input("VALUES has no rows")) };
        let width = first.content.len();
        let cells = values.rows.len().saturating_mul(width + 1);
        let mut bound: FreedAside<Vec<(Vec<Bound>, Node)>> =
            FreedAside::new(Vec::with_capacity(values.rows.len()), cells);
        for row in &values.rows {
            statement::check()?;
            if row.content.len() != width {
                let text =
                    format!("a row of VALUES has {} values, and the first one {width}", row.content.len());
                return Err(match row.content.first() {
                    Some(ast) => located(Error::input(text), ast),
                    None => Error::input(text),
                });
            }
            self.scopes.push(Scope::new(Vec::new(), Vec::new(), Clause::Values));
            let exprs = row.content.iter().map(|value| self.expr(value)).collect::<Result<Vec<Bound>>>();
            let mut node = one_row();
            self.flush(&mut node);
            self.scopes.pop();
            bound.push((exprs?, node));
        }
        let mut types = Vec::with_capacity(width);
        for place in 0..width {
            statement::check()?;
            let exact = exact_among(bound.iter().map(|(row, _)| row[place].given));
            let given = bound.iter().map(|(row, _)| match exact {
                Some(exact) => beside_expr(&row[place].expr, row[place].given, exact),
                None => row[place].given,
            });
            let ty = common(given, Meeting::Union);
            types.push(ty.ok_or_else(|| {
                let mut types: Vec<String> =
                    bound.iter().map(|(row, _)| row[place].given.to_string()).collect();
                types.dedup();
                let text = format!("column {} of VALUES is {} in its rows", place + 1, types.join(" and "));
                located(Error::input(text), &values.rows[0].content[place])
            })?);
        }
        // A single row keeps its literals for whoever gives them a type.
        if bound.len() == 1 {
            let (row, node) = bound.remove(0);
            let items = row.into_iter().enumerate().map(|(place, bound)| Item {
                name: format!("column{}", place + 1),
                expr: bound.expr,
                given: bound.given,
            });
            return Ok(Rows { node, items: items.collect() });
        }
        let columns: Vec<ColumnId> = types
            .iter()
            .enumerate()
            .map(|(place, ty)| self.columns.add(format!("column{}", place + 1), *ty, true))
            .collect();
        let are_open: Vec<Option<Given>> =
            (0..width).map(|place| open(bound.iter().map(|(row, _)| row[place].given))).collect();
        let node = self.rows_of_values(bound.into_inner(), cells, &types, &columns)?;
        let items = columns.into_iter().zip(are_open).map(|(column, is_open)| {
            let Bound { expr, given } = Bound::known(self.columns.expr(column));
            Item { name: self.columns.get(column).name.clone(), expr, given: is_open.unwrap_or(given) }
        });
        Ok(Rows { node, items: items.collect() })
    }

    /// The rows of VALUES, of so many cells in all, converted to the types of their columns.
    fn rows_of_values(
        &mut self,
        bound: Vec<(Vec<Bound>, Node)>,
        cells: usize,
        types: &[DataType],
        columns: &[ColumnId],
    ) -> Result<Node> {
        // Rows keep their places: whoever numbers them, takes the first, or gives them defaults sees these.
        let mut parts: Vec<(Node, Vec<ColumnId>)> = Vec::new();
        let mut rows: Vec<Vec<Value>> = Vec::new();
        for (row, mut node) in &mut *FreedAside::new(bound.into_iter(), cells) {
            statement::check()?;
            let exprs: Vec<Expr> = row
                .into_iter()
                .zip(types)
                .map(|(bound, ty)| settled(beside(bound, Given::Known(*ty)).cast(*ty)))
                .collect();
            if exprs.iter().all(|expr| matches!(expr, Expr::Literal { .. })) {
                rows.push(exprs.into_iter().map(into_value).collect());
                continue;
            }
            if !rows.is_empty() {
                parts.push(self.constant_rows(std::mem::take(&mut rows), columns));
            }
            let own = self.like(columns);
            let exprs = own.iter().copied().zip(exprs).collect();
            parts.push((project(*take(&mut node), exprs), own));
        }
        if parts.is_empty() {
            return Ok(Node::Values(Values { columns: columns.to_vec(), rows }));
        }
        if !rows.is_empty() {
            parts.push(self.constant_rows(rows, columns));
        }
        let columns = columns.to_vec();
        Ok(Node::SetOperation(SetOperation { kind: SetKind::Union, all: true, inputs: parts, columns }))
    }

    fn constant_rows(&mut self, rows: Vec<Vec<Value>>, columns: &[ColumnId]) -> (Node, Vec<ColumnId>) {
        let own = self.like(columns);
        (Node::Values(Values { columns: own.clone(), rows }), own)
    }

    /// New columns like these.
    fn like(&mut self, columns: &[ColumnId]) -> Vec<ColumnId> {
        let of = |id: &ColumnId| {
            let info = self.columns.get(*id).clone();
            self.columns.add(info.name, info.ty, true)
        };
        columns.iter().map(of).collect()
    }
}

/// What is given of a column of which all values are written as texts, or NULL: it still adopts a type.
fn open(given: impl IntoIterator<Item = Given>) -> Option<Given> {
    let mut has_text = false;
    for given in given {
        match given {
            Given::Text => has_text = true,
            Given::Null => {}
            _ => return None,
        }
    }
    has_text.then_some(Given::Text)
}

/// An exact number with a fraction among these.
fn exact_among(given: impl IntoIterator<Item = Given>) -> Option<Given> {
    given
        .into_iter()
        .find(|given| matches!(given, Given::Known(DataType::Decimal { .. }) | Given::Decimal { .. }))
}

/// What is given of a value beside an exact number: a text is the number that is written in it.
fn beside_expr(expr: &Expr, given: Given, exact: Given) -> Given {
    beside(Bound { expr: expr.clone(), given }, exact).given
}

/// The kind of a set operation, whether duplicates count, and whether columns go by name.
fn kind_of(op: SetOperator, quantifier: SetQuantifier) -> Result<(SetKind, bool, bool)> {
    let kind = match op {
        SetOperator::Union => SetKind::Union,
        SetOperator::Intersect => SetKind::Intersect,
        SetOperator::Except | SetOperator::Minus => SetKind::Except,
    };
    let (all, by_name) = match quantifier {
        SetQuantifier::All => (true, false),
        SetQuantifier::None | SetQuantifier::Distinct => (false, false),
        SetQuantifier::AllByName => (true, true),
        SetQuantifier::ByName | SetQuantifier::DistinctByName => (false, true),
    };
    match by_name && kind != SetKind::Union {
        true => Err(Error::not_supported("INTERSECT and EXCEPT BY NAME")),
        false => Ok((kind, all, by_name)),
    }
}
