//! `FROM unnest(list, …)`: the same as `LATERAL (SELECT unnest(list), …)`, whose columns are called unnest.

use crate::syntax::build::{named, select_from, table_alias};
use crate::syntax::parse::parse_query;
use datafusion_sql::sqlparser::ast::{
    Expr, FunctionArg, FunctionArgExpr, FunctionArguments, Ident, SelectItem, SetExpr, TableFactor,
};
use entasis_vector::{Error, Result};

/// The name of the function, and of its columns in FROM.
pub(crate) const UNNEST: &str = "unnest";

/// Replaces a call in FROM; leaves everything else alone.
///
/// # Errors
/// Input, if it is called without lists or with arguments by name.
pub(super) fn table_factor(factor: &mut TableFactor) -> Result<()> {
    let TableFactor::Table { name, alias, args: Some(args), .. } = factor else { return Ok(()) };
    if !name.to_string().eq_ignore_ascii_case(UNNEST) {
        return Ok(());
    }
    let wrong = || Error::input("unnest in FROM takes lists: unnest(list, …)");
    if args.args.is_empty() {
        return Err(wrong());
    }
    let mut items = Vec::with_capacity(args.args.len());
    for arg in &args.args {
        let FunctionArg::Unnamed(FunctionArgExpr::Expr(list)) = arg else { return Err(wrong()) };
        items.push(named(call(list.clone())?, UNNEST));
    }
    let alias = alias.take().unwrap_or_else(|| table_alias(Ident::new(UNNEST)));
    let query = select_from("t", alias.clone(), |select| {
        select.from.clear();
        select.projection = items;
    })?;
    *factor =
        TableFactor::Derived { lateral: true, subquery: Box::new(query), alias: Some(alias), sample: None };
    Ok(())
}

/// `unnest(list)`
fn call(list: Expr) -> Result<Expr> {
    let mut template = parse_query("SELECT unnest(0)")?;
    if let SetExpr::Select(select) = &mut *template.body
        && let Some(SelectItem::UnnamedExpr(Expr::Function(mut function))) = select.projection.pop()
        && let FunctionArguments::List(arguments) = &mut function.args
    {
        arguments.args = vec![FunctionArg::Unnamed(FunctionArgExpr::Expr(list))];
        return Ok(Expr::Function(function));
    }
    Err(Error::internal("the template is a call"))
}
