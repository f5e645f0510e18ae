//! Kinds of expressions, and the clauses of function calls.

use super::refuse;
use entasis_vector::error::sqlstate;
use entasis_vector::{Error, Result};
use sqlparser::ast::{
    CeilFloorKind, DateTimeField, Expr, Function, FunctionArgumentClause, FunctionArgumentList,
    FunctionArguments, Value,
};

/// Refuses unsupported kinds of expressions.
pub fn expression(expr: &Expr) -> Result<()> {
    match expr {
        Expr::Identifier(_)
        | Expr::CompoundIdentifier(_)
        | Expr::IsFalse(_)
        | Expr::IsNotFalse(_)
        | Expr::IsTrue(_)
        | Expr::IsNotTrue(_)
        | Expr::IsNull(_)
        | Expr::IsNotNull(_)
        | Expr::IsUnknown(_)
        | Expr::IsNotUnknown(_)
        | Expr::IsDistinctFrom(..)
        | Expr::IsNotDistinctFrom(..)
        | Expr::InList { .. }
        | Expr::InSubquery { .. }
        | Expr::Between { .. }
        | Expr::BinaryOp { .. }
        | Expr::UnaryOp { .. }
        | Expr::SimilarTo { .. }
        | Expr::AtTimeZone { .. }
        | Expr::Extract { .. }
        | Expr::Position { .. }
        | Expr::Trim { .. }
        | Expr::Overlay { .. }
        | Expr::Nested(_)
        | Expr::Value(_)
        | Expr::TypedString(_)
        | Expr::Function(_)
        | Expr::Case { .. }
        | Expr::Exists { .. }
        | Expr::Subquery(_)
        | Expr::Interval(_)
        | Expr::Wildcard(_)
        | Expr::QualifiedWildcard(..) => Ok(()),
        // Some of these are allowed in places that the rewriter knows.
        Expr::Array(_)
        | Expr::Struct { .. }
        | Expr::Map(_)
        | Expr::Dictionary(_)
        | Expr::Named { .. }
        | Expr::CompoundFieldAccess { .. }
        | Expr::Tuple(_)
        | Expr::Lambda(_)
        | Expr::GroupingSets(_)
        | Expr::Cube(_)
        | Expr::Rollup(_) => Ok(()),
        Expr::Substring { substring_from: None, substring_for: None, .. } => {
            Err(Error::input("substring takes a text, where the part starts, and how long it is"))
        }
        Expr::Substring { .. } => Ok(()),
        Expr::Like { any, .. } | Expr::ILike { any, .. } => refuse([(*any, "LIKE ANY")]),
        Expr::Cast { kind: _, expr: _, data_type: _, array, format } => {
            refuse([(*array, "CAST to ARRAY"), (format.is_some(), "CAST with FORMAT")])
        }
        Expr::Ceil { expr: _, field } | Expr::Floor { expr: _, field } => {
            let plain = matches!(field, CeilFloorKind::DateTimeField(DateTimeField::NoDateTime));
            refuse([(!plain, "CEIL and FLOOR with a unit or scale")])
        }
        Expr::AnyOp { right, .. } | Expr::AllOp { right, .. } => match &**right {
            Expr::Value(value) if matches!(value.value, Value::Placeholder(_)) => {
                let error = Error::input(
                    "a parameter in IN, ANY or ALL without brackets of its own is a list, not one value",
                );
                Err(error.with_hint("for one value write IN (?)"))
            }
            _ => Ok(()),
        },
        Expr::Convert { .. } => Err(Error::not_supported("CONVERT").with_hint("write CAST(value AS type)")),
        Expr::Collate { .. } => Err(Error::not_supported("collations")),
        Expr::Prefixed { prefix, .. } => Err(Error::not_supported(format!("{prefix} before a literal"))),
        Expr::IsNormalized { .. } => Err(Error::not_supported("IS NORMALIZED")),
        Expr::RLike { .. } => {
            Err(Error::not_supported("RLIKE").with_hint("write regexp_matches(text, pattern)"))
        }
        Expr::InUnnest { .. } => {
            Err(Error::not_supported("IN UNNEST").with_hint("list_contains(list, value)"))
        }
        Expr::JsonAccess { .. } => Err(Error::not_supported("JSON paths")),
        Expr::MatchAgainst { .. } => Err(Error::not_supported("MATCH … AGAINST")),
        Expr::OuterJoin(_) => {
            Err(Error::not_supported("outer joins by (+)").with_hint("write LEFT JOIN … ON"))
        }
        Expr::Prior(_) => Err(Error::not_supported("CONNECT BY")),
        Expr::MemberOf(_) => Err(Error::not_supported("MEMBER OF")),
    }
}

/// Refuses unsupported clauses of a function call.
pub fn function(function: &Function, is_aggregate: fn(&str) -> bool) -> Result<()> {
    let Function {
        name,
        uses_odbc_syntax: _,
        parameters,
        args,
        filter,
        null_treatment,
        over: _,
        within_group,
    } = function;
    refuse([(*parameters != FunctionArguments::None, "two lists of arguments of a function")])?;
    let mut of_aggregates = filter.is_some() || null_treatment.is_some() || !within_group.is_empty();
    if let FunctionArguments::List(FunctionArgumentList { duplicate_treatment, args: _, clauses }) = args {
        of_aggregates |= duplicate_treatment.is_some();
        for clause in clauses {
            match clause {
                FunctionArgumentClause::OrderBy(_) | FunctionArgumentClause::IgnoreOrRespectNulls(_) => {
                    of_aggregates = true;
                }
                FunctionArgumentClause::Limit(_) => refuse([(true, "LIMIT in a function")])?,
                FunctionArgumentClause::OnOverflow(_) => refuse([(true, "ON OVERFLOW")])?,
                FunctionArgumentClause::Having(_) => refuse([(true, "HAVING in a function")])?,
                FunctionArgumentClause::Separator(_) => refuse([(true, "SEPARATOR")])?,
                FunctionArgumentClause::JsonNullClause(_)
                | FunctionArgumentClause::JsonReturningClause(_) => {
                    refuse([(true, "JSON")])?;
                }
            }
        }
    }
    let plain = name.to_string().trim_matches('"').to_ascii_lowercase();
    if of_aggregates && !is_aggregate(&plain) {
        let text = format!(
            "{plain} is not an aggregate function and takes no DISTINCT, ORDER BY, FILTER, WITHIN GROUP, or IGNORE NULLS"
        );
        return Err(Error::input(text).with_sqlstate(sqlstate::SYNTAX));
    }
    Ok(())
}
