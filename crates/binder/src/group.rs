//! GROUP BY: keys, sets of keys, `grouping`.
//!
//! A key that is a name is a column of FROM first, then an item of the select list; a number is the number of
//! an item; ALL are the items without aggregates. With GROUPING SETS, ROLLUP or CUBE all keys are those of
//! one grouping, made of one for each set ([`crate::sets`]); a column tells by which keys a row is not
//! grouped.

use crate::binder::{Binder, located};
use crate::bound::Bound;
use crate::literal::plain;
use crate::query::{Item, ordinal};
use crate::scope::{Found, KeySets};
use crate::sets::Grouping;
use crate::star::Source;
use entasis_engine::plan::{self, AggregateCall, Node, free_columns};
use entasis_functions::expressions::fold;
use entasis_vector::expr::{ArithmeticOp, Expr};
use entasis_vector::{ColumnId, DataType, Error, Result, Value};
use sqlparser::ast::{
    self, FunctionArg, FunctionArgExpr, FunctionArguments, GroupByExpr, GroupByWithModifier, Select,
};

/// The most sets in one query.
const MOST_SETS: usize = 4096;
/// The most keys in a query with sets: each has a bit.
const MOST_KEYS: usize = 60;

/// A set of keys as it is written.
type Set<'q> = Vec<&'q ast::Expr>;

impl<'a, 'q> Binder<'a, 'q> {
    /// Binds the keys of a GROUP BY; true for GROUP BY ALL, whose keys are not known yet.
    pub(crate) fn group_by(&mut self, select: &'q Select, sources: &[Source<'q>]) -> Result<bool> {
        let (elements, modifiers) = match &select.group_by {
            GroupByExpr::All(modifiers) if modifiers.is_empty() => {
                self.scope().is_grouped = true;
                return Ok(true);
            }
            GroupByExpr::All(_) => return Err(Error::not_supported("GROUP BY ALL with sets")),
            GroupByExpr::Expressions(elements, modifiers) => (elements, modifiers),
        };
        self.scope().is_grouped = !elements.is_empty() || !modifiers.is_empty();
        match written_sets(elements, modifiers)? {
            Some(sets) => self.key_sets(sets, sources)?,
            None => {
                // GROUP BY (a, b) groups by both, GROUP BY () makes one group of all rows.
                for element in elements.iter().flat_map(parts) {
                    self.key(element, sources)?;
                }
            }
        }
        Ok(false)
    }

    /// Binds a key, and returns its place among those that differ.
    fn key(&mut self, ast: &'q ast::Expr, sources: &[Source<'q>]) -> Result<usize> {
        let expr = self.key_expr(ast, sources)?;
        if let Some(place) = self.scope().key_place(&expr) {
            return Ok(place);
        }
        let name = match &expr {
            Expr::Column { id, .. } => self.columns.get(*id).name.clone(),
            _ => ast.to_string(),
        };
        let column = self.columns.add(name, expr.ty(), true);
        let place = self.scope().add_key(column, expr);
        let pending = &mut self.scope().pending;
        pending.iter_mut().for_each(|pending| pending.is_below_groups = true);
        Ok(place)
    }

    fn key_expr(&mut self, ast: &'q ast::Expr, sources: &[Source<'q>]) -> Result<Expr> {
        if let Some(place) = ordinal(ast, sources.len())? {
            return Ok(match &sources[place] {
                Source::Column { column, .. } => self.columns.expr(*column),
                Source::Expr { alias: Some(at), .. } => self.item_named(*at)?.expr,
                Source::Expr { ast, .. } => self.expr(ast)?.expr,
            });
        }
        if let ast::Expr::Identifier(ident) = plain(ast) {
            let name = ident.value.to_ascii_lowercase();
            let is_no_column = matches!(self.scope().find(&name), Found::Nothing | Found::NotInTable(_));
            if is_no_column && let Some(bound) = self.alias(&name)? {
                return Ok(bound.expr);
            }
        }
        // An alias is a key as a whole only.
        let visible = std::mem::take(&mut self.scope().visible_aliases);
        let bound = self.expr(ast);
        self.scope().visible_aliases = visible;
        Ok(bound?.expr)
    }

    /// The keys of GROUP BY ALL: items that are no aggregate and no window function.
    pub(crate) fn group_by_all(&mut self, items: &[Item]) {
        let scope = self.scope();
        let made: Vec<ColumnId> = scope
            .aggregates
            .iter()
            .map(|(column, _)| *column)
            .chain(scope.window_calls.iter().map(|call| call.column))
            .chain(scope.unnests.iter().map(|(column, ..)| *column))
            .collect();
        // Subqueries over aggregates are no keys either, all others are joined before there are groups.
        let mut made = made;
        for pending in &mut self.scope().pending {
            let columns = pending.columns();
            match free_columns(&pending.node).iter().any(|column| made.contains(&column)) {
                true => made.extend(columns),
                false => pending.is_below_groups = true,
            }
        }
        for item in items {
            let mut read = Vec::new();
            item.expr.collect_columns(&mut read);
            if self.scope().key_place(&item.expr).is_some() || read.iter().any(|column| made.contains(column))
            {
                continue;
            }
            let column = self.columns.add(item.name.as_str(), item.expr.ty(), true);
            self.scope().add_key(column, item.expr.clone());
        }
    }

    fn key_sets(&mut self, written: Vec<Set<'q>>, sources: &[Source<'q>]) -> Result<()> {
        let mut keys: Vec<(&'q ast::Expr, usize)> = Vec::new();
        let mut sets = Vec::with_capacity(written.len());
        for set in written {
            let mut places = Vec::with_capacity(set.len());
            for ast in set {
                let place = match keys.iter().find(|(known, _)| *known == ast) {
                    Some((_, place)) => *place,
                    None => {
                        let place = self.key(ast, sources)?;
                        keys.push((ast, place));
                        place
                    }
                };
                if !places.contains(&place) {
                    places.push(place);
                }
            }
            sets.push(places);
        }
        if keys.len() > MOST_KEYS {
            return Err(too_many());
        }
        let id = self.columns.add("sets", DataType::Int64, false);
        let places = keys.iter().map(|(_, place)| *place).collect();
        self.scope().sets = Some(KeySets { id, places, sets });
        Ok(())
    }

    /// `grouping(a, b)`: a bit for each key, the last one lowest, which is 1 where a row is not grouped by
    /// it.
    pub(crate) fn grouping(&mut self, name: &str, function: &'q ast::Function) -> Result<Bound> {
        if self.scopes.is_empty() || !self.clause().has_groups() {
            return Err(Error::input(format!("{name} needs a GROUP BY")));
        }
        let args: &[FunctionArg] = match &function.args {
            FunctionArguments::List(list) => &list.args,
            _ => &[],
        };
        let mut asked = Vec::with_capacity(args.len());
        for arg in args {
            let FunctionArg::Unnamed(FunctionArgExpr::Expr(ast)) = arg else {
                return Err(Error::input(format!("{name} takes keys of the GROUP BY")));
            };
            let key = self.expr(ast)?.expr;
            let place = self.scope().key_place(&key);
            asked.push(place.ok_or_else(|| {
                located(
                    Error::input(format!(
                        "the arguments of {name} are keys of the GROUP BY, as they are written there"
                    )),
                    ast,
                )
            })?);
        }
        let integer = |value: i64| Expr::literal(Value::Integer(value.into()), DataType::Int64);
        let Some(KeySets { id, places, .. }) = &self.scope().sets else {
            // Without sets, every row is grouped by every key.
            return Ok(Bound::known(integer(0)));
        };
        let (id, places) = (*id, places.clone());
        let written: Vec<usize> = match args.is_empty() && name == "grouping_id" {
            true => (0..places.len()).collect(),
            false => asked.iter().filter_map(|key| places.iter().position(|place| place == key)).collect(),
        };
        if written.is_empty() {
            return Err(Error::input(format!("{name} needs a key of the GROUP BY")));
        }
        let number = |op, left, right| fold::arithmetic(op, left, right, DataType::Int64);
        let bit = |key: usize| {
            let shifted = number(ArithmeticOp::Divide, self.columns.expr(id), integer(1 << key));
            number(ArithmeticOp::Modulo, shifted, integer(2))
        };
        let bits = written.into_iter().map(bit).reduce(|sum, bit| {
            number(ArithmeticOp::Add, number(ArithmeticOp::Multiply, sum, integer(2)), bit)
        });
        bits.map(Bound::known).ok_or_else(|| Error::internal("grouping without keys"))
    }

    /// The groups of `node`.
    pub(crate) fn grouped(
        &mut self,
        node: Node,
        keys: Vec<(ColumnId, Expr)>,
        calls: Vec<(ColumnId, AggregateCall)>,
        sets: Option<KeySets>,
    ) -> Node {
        match sets {
            Some(KeySets { id, places, sets }) => {
                self.grouping_sets(Grouping { input: node, keys, places, id, calls, sets })
            }
            None => {
                Node::Aggregate(plan::Aggregate { input: Box::new(node), groups: keys, aggregates: calls })
            }
        }
    }
}

fn too_many() -> Error {
    Error::resource(format!("a GROUP BY has more than {MOST_SETS} sets or {MOST_KEYS} keys"))
}

/// The values of `(a, b)`; anything else by itself.
fn parts(element: &ast::Expr) -> Vec<&ast::Expr> {
    match element {
        ast::Expr::Tuple(parts) => parts.iter().collect(),
        other => vec![other],
    }
}

/// The sets of a GROUP BY; `None` if there are none. Adjacent elements are multiplied.
fn written_sets<'q>(
    elements: &'q [ast::Expr],
    modifiers: &'q [GroupByWithModifier],
) -> Result<Option<Vec<Set<'q>>>> {
    let whole = || elements.iter().map(parts).collect::<Vec<Set<'q>>>();
    let extra = match modifiers {
        [] => None,
        [GroupByWithModifier::Rollup] => return Ok(Some(rolled_up(&whole()))),
        [GroupByWithModifier::Cube] => return cube(&whole()).map(Some),
        [GroupByWithModifier::GroupingSets(more)] => Some(more),
        _ => return Err(Error::not_supported("WITH TOTALS")),
    };
    let is_of_sets = |element: &ast::Expr| {
        matches!(element, ast::Expr::Rollup(_) | ast::Expr::Cube(_) | ast::Expr::GroupingSets(_))
    };
    if !elements.iter().chain(extra).any(is_of_sets) {
        return Ok(None);
    }
    let mut sets: Vec<Set<'q>> = vec![Vec::new()];
    for element in elements.iter().chain(extra) {
        let own = sets_of(element)?;
        if sets.len() * own.len() > MOST_SETS {
            return Err(too_many());
        }
        sets = sets.iter().flat_map(|set| own.iter().map(move |more| [&set[..], more].concat())).collect();
    }
    Ok(Some(sets))
}

/// The sets of an element of a GROUP BY.
fn sets_of(element: &ast::Expr) -> Result<Vec<Set<'_>>> {
    match element {
        ast::Expr::Rollup(elements) => Ok(rolled_up(&borrowed(elements))),
        ast::Expr::Cube(elements) => cube(&borrowed(elements)),
        ast::Expr::GroupingSets(elements) => {
            let mut sets = Vec::new();
            for element in elements {
                // A set with a single element may contain sets.
                match element.as_slice() {
                    [one] => match nested(one)? {
                        Some(nested) => sets.extend(nested),
                        None => sets.push(parts(one)),
                    },
                    several => sets.push(several.iter().collect()),
                }
            }
            Ok(sets)
        }
        other => Ok(vec![parts(other)]),
    }
}

fn borrowed(elements: &[Vec<ast::Expr>]) -> Vec<Set<'_>> {
    elements.iter().map(|element| element.iter().collect()).collect()
}

fn rolled_up<'q>(elements: &[Set<'q>]) -> Vec<Set<'q>> {
    (0..=elements.len()).rev().map(|count| elements[..count].concat()).collect()
}

fn cube<'q>(elements: &[Set<'q>]) -> Result<Vec<Set<'q>>> {
    let count = elements.len();
    if count > MOST_SETS.ilog2() as usize {
        return Err(too_many());
    }
    let chosen = |mask: usize| {
        let is_in = move |i: &usize| mask >> (count - 1 - i) & 1 == 1;
        (0..count).filter(is_in).flat_map(|i| elements[i].clone()).collect()
    };
    Ok((0..1usize << count).rev().map(chosen).collect())
}

/// Sets within a set: the parser takes `ROLLUP (a, b)` there for the call of a function.
fn nested(element: &ast::Expr) -> Result<Option<Vec<Set<'_>>>> {
    match element {
        ast::Expr::Rollup(_) | ast::Expr::Cube(_) | ast::Expr::GroupingSets(_) => {
            return sets_of(element).map(Some);
        }
        _ => {}
    }
    let ast::Expr::Function(function) = element else { return Ok(None) };
    let FunctionArguments::List(list) = &function.args else { return Ok(None) };
    let name = crate::call::name_of(function);
    if name != "rollup" && name != "cube" {
        return Ok(None);
    }
    let arg = |arg| match arg {
        &FunctionArg::Unnamed(FunctionArgExpr::Expr(ref expr)) => Some(parts(expr)),
        _ => None,
    };
    let Some(elements) = list.args.iter().map(arg).collect::<Option<Vec<Set<'_>>>>() else { return Ok(None) };
    if name == "rollup" { Ok(Some(rolled_up(&elements))) } else { cube(&elements).map(Some) }
}
