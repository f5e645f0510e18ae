//! `f(…) WITHIN GROUP (ORDER BY x)`, in the form in which our aggregates take it.
//!
//! ```text
//! percentile_disc(0.5) WITHIN GROUP (ORDER BY x DESC)   ⇒   percentile_disc(x, 0.5, true)
//! quantile_cont(x, 0.5 ORDER BY x)                      ⇒   quantile_cont(x, 0.5)
//! mode() WITHIN GROUP (ORDER BY x)                      ⇒   mode(x ORDER BY x)
//! listagg(x, ';') WITHIN GROUP (ORDER BY y)             ⇒   listagg(x, ';' ORDER BY y)
//! ```
//! The third argument in the first example says that the order is descending.

use entasis_functions::aggregates::OF_ORDER;
use entasis_vector::{Error, Result};
use sqlparser::ast::Expr;
use sqlparser::ast::{
    Function, FunctionArg, FunctionArgExpr, FunctionArgumentClause, FunctionArgumentList, FunctionArguments,
    OrderByExpr, Value,
};

/// Rewrites a call of the function `name`.
///
/// # Errors
/// Input, for an order with several keys, or for a function that has none.
pub(super) fn within_group(name: &str, function: &mut Function) -> Result<()> {
    let of_order = OF_ORDER.contains(&name);
    if function.within_group.is_empty() && !of_order {
        return Ok(());
    }
    if let FunctionArguments::None = function.args {
        return Ok(());
    }
    let FunctionArguments::List(list) = &mut function.args else {
        return Err(Error::input(format!("{name} needs arguments")));
    };
    let keys = std::mem::take(&mut function.within_group);
    if of_order {
        if keys.is_empty() {
            let inline = take_order(list);
            return finish(list, inline.first());
        }
        let key = single(name, keys)?;
        list.args.insert(0, argument(key.expr.clone()));
        return finish(list, Some(&key));
    }
    if name == "mode" && list.args.is_empty() {
        let key = single(name, keys)?;
        list.args.push(argument(key.expr.clone()));
        list.clauses.push(FunctionArgumentClause::OrderBy(vec![key]));
        return Ok(());
    }
    if matches!(name, "string_agg" | "group_concat" | "listagg") {
        if !take_order(list).is_empty() {
            return Err(Error::input(format!("{name} has two orders")));
        }
        list.clauses.push(FunctionArgumentClause::OrderBy(keys));
        return Ok(());
    }
    Err(Error::input(format!("{name} takes no WITHIN GROUP")))
}

fn single(name: &str, keys: Vec<OrderByExpr>) -> Result<OrderByExpr> {
    let mut keys = keys.into_iter();
    match (keys.next(), keys.next()) {
        (Some(key), None) => Ok(key),
        _ => Err(Error::input(format!("{name} takes one key in WITHIN GROUP"))),
    }
}

/// Removes `ORDER BY` from the arguments and returns it.
fn take_order(list: &mut FunctionArgumentList) -> Vec<OrderByExpr> {
    let at = list.clauses.iter().position(|clause| matches!(clause, FunctionArgumentClause::OrderBy(_)));
    match at.map(|at| list.clauses.remove(at)) {
        Some(FunctionArgumentClause::OrderBy(keys)) => keys,
        _ => Vec::new(),
    }
}

/// Adds the argument for a descending order.
fn finish(list: &mut FunctionArgumentList, key: Option<&OrderByExpr>) -> Result<()> {
    if key.is_some_and(|key| key.options.asc == Some(false)) {
        if list.args.len() == 1 {
            list.args.push(argument(Expr::Value(Value::Number("0.5".into(), false).into())));
        }
        list.args.push(argument(Expr::Value(Value::Boolean(true).into())));
    }
    Ok(())
}

fn argument(expr: Expr) -> FunctionArg {
    FunctionArg::Unnamed(FunctionArgExpr::Expr(expr))
}
