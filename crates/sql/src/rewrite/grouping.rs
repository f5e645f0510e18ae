//! Passes `GROUPING SETS`, `ROLLUP` and `CUBE` through the binder.
//!
//! ```text
//! SELECT a, grouping(a), sum(x) … GROUP BY ROLLUP (a, b)
//!     ⇒  SELECT a, "…sets"('0,1;0;') // 1 % 2, sum(x) … GROUP BY a, b, "…sets"('0,1;0;')
//! ```
//! All keys become keys of one grouping, and an additional key lists the sets, by the numbers of their keys.
//! Lowering makes a grouping for each set (`crate::lower`); the value of that key tells by which keys a row
//! is not grouped, with one bit for each, from which `grouping(…)` is computed.

use crate::hidden::SETS;
use entasis_syntax::walk::WalkMut;
use entasis_vector::{Error, Result};
use sqlparser::ast::{
    BinaryOperator, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArgumentList, FunctionArguments,
    GroupByExpr, GroupByWithModifier, Ident, ObjectName, ObjectNamePart, OrderByKind, Query, Select,
    SelectItem, SetExpr, Value, VisitorMut,
};
use std::ops::ControlFlow;

/// The most sets in one query.
const MOST_SETS: usize = 4096;
/// The most keys in a query with sets: each has a bit.
const MOST_KEYS: usize = 60;

/// Converts the grouping sets of a query's SELECTs to the form in which they pass through the binder.
///
/// # Errors
/// Input, for `grouping` of an expression that is not a key, and for too many sets; not supported, for
/// MySQL's and ClickHouse's forms.
pub(super) fn apply(query: &mut Query) -> Result<()> {
    let found = body(&mut query.body)?;
    if let Some(order_by) = &mut query.order_by
        && let OrderByKind::Expressions(keys) = &mut order_by.kind
    {
        for key in keys {
            substitute(&mut key.expr, found.as_ref())?;
        }
    }
    Ok(())
}

/// The keys of the sets, and the call that lists the sets.
struct Sets {
    keys: Vec<Expr>,
    call: Expr,
}

/// `None` if it is not a single SELECT, or has no sets.
fn body(body: &mut SetExpr) -> Result<Option<Sets>> {
    match body {
        SetExpr::Select(select) => self::select(select),
        SetExpr::SetOperation { left, right, .. } => {
            self::body(left)?;
            self::body(right).map(|_| None)
        }
        // A query in brackets is visited separately.
        _ => Ok(None),
    }
}

fn select(select: &mut Select) -> Result<Option<Sets>> {
    let sets = group_by(&mut select.group_by)?;
    for item in &mut select.projection {
        match item {
            SelectItem::UnnamedExpr(expr) => {
                let name = expr.to_string();
                if substitute(expr, sets.as_ref())? {
                    let expr = std::mem::replace(expr, number(0));
                    *item = SelectItem::ExprWithAlias { expr, alias: Ident::with_quote('"', name) };
                }
            }
            SelectItem::ExprWithAlias { expr, .. } => {
                substitute(expr, sets.as_ref())?;
            }
            _ => {}
        }
    }
    for expr in [&mut select.having, &mut select.qualify].into_iter().flatten() {
        substitute(expr, sets.as_ref())?;
    }
    Ok(sets)
}

/// The sets of a `GROUP BY`, in which they are replaced by plain keys; `None` if there are none.
fn group_by(group_by: &mut GroupByExpr) -> Result<Option<Sets>> {
    let GroupByExpr::Expressions(elements, modifiers) = group_by else { return Ok(None) };
    let mut sets: Vec<Vec<Expr>> = vec![Vec::new()];
    match modifiers.as_slice() {
        [] => {}
        [GroupByWithModifier::Rollup] => {
            *elements = vec![Expr::Rollup(elements.drain(..).map(parts).collect())]
        }
        [GroupByWithModifier::Cube] => *elements = vec![Expr::Cube(elements.drain(..).map(parts).collect())],
        [GroupByWithModifier::GroupingSets(more)] => elements.push(more.clone()),
        _ => return Err(Error::not_supported("WITH TOTALS")),
    }
    modifiers.clear();
    if !elements
        .iter()
        .any(|element| matches!(element, Expr::Rollup(_) | Expr::Cube(_) | Expr::GroupingSets(_)))
    {
        return Ok(None);
    }
    // Adjacent elements are multiplied.
    for element in std::mem::take(elements) {
        let own = sets_of(element)?;
        if sets.len() * own.len() > MOST_SETS {
            return Err(too_many());
        }
        sets = sets
            .iter()
            .flat_map(|set| own.iter().map(move |more| [set.clone(), more.clone()].concat()))
            .collect();
    }
    let mut keys: Vec<Expr> = Vec::new();
    let mut text = String::new();
    for (i, set) in sets.iter().enumerate() {
        let mut numbers: Vec<usize> = Vec::new();
        for key in set {
            let number = keys.iter().position(|known| known == key).unwrap_or_else(|| {
                keys.push(key.clone());
                keys.len() - 1
            });
            if !numbers.contains(&number) {
                numbers.push(number);
            }
        }
        let numbers: Vec<String> = numbers.iter().map(usize::to_string).collect();
        text = format!("{text}{}{}", if i > 0 { ";" } else { "" }, numbers.join(","));
    }
    if keys.len() > MOST_KEYS {
        return Err(too_many());
    }
    let call = call(&text);
    *elements = keys.iter().cloned().chain([call.clone()]).collect();
    Ok(Some(Sets { keys, call }))
}

fn too_many() -> Error {
    Error::resource(format!("a GROUP BY has more than {MOST_SETS} sets or {MOST_KEYS} keys"))
}

/// The sets of an element of a `GROUP BY`.
fn sets_of(element: Expr) -> Result<Vec<Vec<Expr>>> {
    Ok(match element {
        Expr::Rollup(elements) => {
            (0..=elements.len()).rev().map(|count| elements[..count].concat()).collect()
        }
        Expr::Cube(elements) => {
            if elements.len() > MOST_SETS.ilog2() as usize {
                return Err(too_many());
            }
            let all = 1usize << elements.len();
            let chosen = |mask: usize| {
                let count = elements.len();
                let is_in = move |i: &usize| mask >> (count - 1 - i) & 1 == 1;
                (0..count).filter(is_in).flat_map(|i| elements[i].clone()).collect()
            };
            (0..all).rev().map(chosen).collect()
        }
        Expr::GroupingSets(elements) => {
            let mut sets = Vec::new();
            for mut element in elements {
                // A set with a single element may contain sets.
                match element.pop() {
                    Some(last) => match nested(&last).filter(|_| element.is_empty()) {
                        Some(nested) => sets.extend(sets_of(nested)?),
                        None => {
                            element.push(last);
                            sets.push(element);
                        }
                    },
                    None => sets.push(Vec::new()),
                }
            }
            sets
        }
        other => vec![parts(other)],
    })
}

/// Nested sets, which the parser takes for calls of functions.
fn nested(element: &Expr) -> Option<Expr> {
    let Expr::Function(function) = element else { return None };
    let FunctionArguments::List(list) = &function.args else { return None };
    let arg = |arg: &FunctionArg| match arg {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => Some(parts(expr.clone())),
        _ => None,
    };
    let elements: Vec<Vec<Expr>> = list.args.iter().map(arg).collect::<Option<_>>()?;
    match function.name.to_string().to_ascii_lowercase().as_str() {
        "rollup" => Some(Expr::Rollup(elements)),
        "cube" => Some(Expr::Cube(elements)),
        _ => None,
    }
}

fn parts(element: Expr) -> Vec<Expr> {
    match element {
        Expr::Tuple(parts) => parts,
        other => vec![other],
    }
}

/// Replaces `grouping(…)`; true if there was one. Calls in nested queries belong to those.
fn substitute(expr: &mut Expr, sets: Option<&Sets>) -> Result<bool> {
    let mut visitor = Substitute { sets, depth: 0, found: false };
    match expr.walk_mut(&mut visitor) {
        ControlFlow::Continue(()) => Ok(visitor.found),
        ControlFlow::Break(error) => Err(error),
    }
}

struct Substitute<'a> {
    sets: Option<&'a Sets>,
    depth: usize,
    found: bool,
}

impl VisitorMut for Substitute<'_> {
    type Break = Error;

    fn pre_visit_query(&mut self, _: &mut Query) -> ControlFlow<Error> {
        self.depth += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &mut Query) -> ControlFlow<Error> {
        self.depth -= 1;
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Error> {
        let Expr::Function(function) = expr else { return ControlFlow::Continue(()) };
        let name = function.name.to_string().to_ascii_lowercase();
        if self.depth > 0 || !matches!(name.as_str(), "grouping" | "grouping_id") {
            return ControlFlow::Continue(());
        }
        match self.grouping(&name, function) {
            Ok(bits) => {
                *expr = bits;
                self.found = true;
                ControlFlow::Continue(())
            }
            Err(error) => ControlFlow::Break(error),
        }
    }
}

impl Substitute<'_> {
    /// The bits of the requested keys, the last one lowest.
    fn grouping(&self, name: &str, function: &Function) -> Result<Expr> {
        let args = match &function.args {
            FunctionArguments::List(list) => list.args.as_slice(),
            _ => &[],
        };
        let Some(sets) = self.sets else {
            // Without sets, every row is grouped by every key.
            return Ok(number(0));
        };
        let all: Vec<usize> = (0..sets.keys.len()).collect();
        let asked = if args.is_empty() && name == "grouping_id" {
            all
        } else {
            let number = |arg: &FunctionArg| match arg {
                FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => {
                    sets.keys.iter().position(|key| key == expr)
                }
                _ => None,
            };
            let numbers: Option<Vec<usize>> = args.iter().map(number).collect();
            let error = || {
                Error::input(format!(
                    "the arguments of {name} are keys of the GROUP BY, as they are written there"
                ))
            };
            numbers.filter(|numbers| !numbers.is_empty()).ok_or_else(error)?
        };
        let bit = |key: &usize| {
            let shifted = binary(sets.call.clone(), BinaryOperator::DuckIntegerDivide, number(1 << key));
            binary(shifted, BinaryOperator::Modulo, number(2))
        };
        let bits = asked.iter().map(bit);
        let sum = bits.reduce(|sum, bit| {
            binary(binary(sum, BinaryOperator::Multiply, number(2)), BinaryOperator::Plus, bit)
        });
        sum.ok_or_else(|| Error::input(format!("{name} needs a key of the GROUP BY")))
    }
}

fn binary(left: Expr, op: BinaryOperator, right: Expr) -> Expr {
    Expr::Nested(Box::new(Expr::BinaryOp { left: Box::new(left), op, right: Box::new(right) }))
}

fn number(number: u64) -> Expr {
    Expr::Value(Value::Number(number.to_string(), false).into())
}

fn call(sets: &str) -> Expr {
    let text = Expr::Value(Value::SingleQuotedString(sets.to_owned()).into());
    let args = vec![FunctionArg::Unnamed(FunctionArgExpr::Expr(text))];
    Expr::Function(Function {
        name: ObjectName(vec![ObjectNamePart::Identifier(Ident::with_quote('"', SETS))]),
        uses_odbc_syntax: false,
        parameters: FunctionArguments::None,
        args: FunctionArguments::List(FunctionArgumentList {
            duplicate_treatment: None,
            args,
            clauses: Vec::new(),
        }),
        filter: None,
        null_treatment: None,
        over: None,
        within_group: Vec::new(),
    })
}
