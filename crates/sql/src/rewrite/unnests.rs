//! `FROM unnest(list, …)`: the same as `LATERAL (SELECT unnest(list), …)`, whose columns are called unnest.

use entasis_syntax::build::{call, named, select_from, table_alias};
use entasis_vector::{Error, Result};
use sqlparser::ast::{FunctionArg, FunctionArgExpr, Ident, TableFactor};

/// The name of the function, and of its columns in FROM.
pub(crate) const UNNEST: &str = "unnest";

/// Replaces a call in FROM; leaves everything else alone.
///
/// # Errors
/// Input, if it is called without lists or with arguments by name.
pub(super) fn table_factor(factor: &mut TableFactor) -> Result<()> {
    let (name, args, alias) = match factor {
        TableFactor::Table { name, alias, args: Some(args), .. } => (name, &args.args, alias),
        // With LATERAL, which is what it is anyway.
        TableFactor::Function { name, args, alias, .. } => (name, &*args, alias),
        _ => return Ok(()),
    };
    if !name.to_string().eq_ignore_ascii_case(UNNEST) {
        return Ok(());
    }
    let wrong = || Error::input("unnest in FROM takes lists: unnest(list, …)");
    if args.is_empty() {
        return Err(wrong());
    }
    let mut items = Vec::with_capacity(args.len());
    for arg in args {
        let FunctionArg::Unnamed(FunctionArgExpr::Expr(list)) = arg else { return Err(wrong()) };
        items.push(named(call(UNNEST, vec![list.clone()]), UNNEST));
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
