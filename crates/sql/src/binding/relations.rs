//! Relations in `FROM` that DataFusion's binder does not know: paths, and table functions with named or
//! nested arguments.
//!
//! They pass through it in disguise: a path is a table name with a prefix that no user can write ([`PATH`]),
//! a named argument of a table function is an aliased expression, a list among its arguments is a ROLLUP and
//! a struct a CUBE (the context removes the disguise).

use crate::error::external;
use datafusion_common::{DFSchema, Result as DfResult, TableReference};
use datafusion_expr::expr::GroupingSet;
use datafusion_expr::planner::{PlannedRelation, RelationPlanner, RelationPlannerContext, RelationPlanning};
use datafusion_expr::{Expr, LogicalPlanBuilder};
use entasis_vector::Error;
use sqlparser::ast::{self, FunctionArg, FunctionArgExpr, TableFactor};
use std::ops::ControlFlow;

/// Prefix of a table name that is a path.
pub(super) const PATH: &str = "\u{1}path:";

/// `FROM 'path'` and table functions with named arguments.
#[derive(Debug)]
pub(super) struct Relations;

impl RelationPlanner for Relations {
    fn plan_relation(
        &self,
        relation: TableFactor,
        context: &mut dyn RelationPlannerContext,
    ) -> DfResult<RelationPlanning> {
        let TableFactor::Table { name, alias, args, .. } = &relation else {
            return Ok(RelationPlanning::Original(Box::new(relation)));
        };
        let [part] = name.0.as_slice() else { return Ok(RelationPlanning::Original(Box::new(relation))) };
        let Some(ident) = part.as_ident() else { return Ok(RelationPlanning::Original(Box::new(relation))) };
        let (table, source) = if let Some(args) = args {
            let args = args.args.iter().map(|arg| argument(arg, context)).collect::<DfResult<Vec<_>>>()?;
            let function = ident.value.to_ascii_lowercase();
            let source = context.context_provider().get_table_function_source(&function, args)?;
            (function, source)
        } else if ident.quote_style == Some('\'') {
            let path = TableReference::bare(format!("{PATH}{}", ident.value));
            (stem(&ident.value), context.context_provider().get_table_source(path)?)
        } else {
            return Ok(RelationPlanning::Original(Box::new(relation)));
        };
        let plan = LogicalPlanBuilder::scan(TableReference::bare(table), source, None)?.build()?;
        Ok(RelationPlanning::Planned(Box::new(PlannedRelation::new(plan, alias.clone()))))
    }
}

fn argument(arg: &FunctionArg, context: &mut dyn RelationPlannerContext) -> DfResult<Expr> {
    let bind = |arg: &FunctionArgExpr, context: &mut dyn RelationPlannerContext| match arg {
        FunctionArgExpr::Expr(expr) => nested(expr, context),
        other => Err(external(Error::input(format!("{other} is not a valid argument of a table function")))),
    };
    match arg {
        FunctionArg::Unnamed(arg) => bind(arg, context),
        FunctionArg::Named { name, arg, .. } => {
            Ok(bind(arg, context)?.alias(name.value.to_ascii_lowercase()))
        }
        FunctionArg::ExprNamed { name, arg, .. } => {
            Ok(bind(arg, context)?.alias(name.to_string().trim_matches('"').to_ascii_lowercase()))
        }
    }
}

/// Binds an argument, with lists and structs in disguise.
fn nested(expr: &ast::Expr, context: &mut dyn RelationPlannerContext) -> DfResult<Expr> {
    let name = |key: &ast::Expr| match key {
        ast::Expr::Identifier(ident) => Ok(ident.value.clone()),
        ast::Expr::Value(literal) => match &literal.value {
            ast::Value::SingleQuotedString(text) => Ok(text.clone()),
            other => Err(external(Error::input(format!("{other} is not a valid field name")))),
        },
        other => Err(external(Error::input(format!("{other} is not a valid field name")))),
    };
    Ok(match expr {
        ast::Expr::Array(array) => {
            let elements =
                array.elem.iter().map(|element| nested(element, context)).collect::<DfResult<_>>()?;
            Expr::GroupingSet(GroupingSet::Rollup(elements))
        }
        ast::Expr::Dictionary(fields) => {
            let fields =
                fields.iter().map(|field| Ok(nested(&field.value, context)?.alias(field.key.value.clone())));
            Expr::GroupingSet(GroupingSet::Cube(fields.collect::<DfResult<_>>()?))
        }
        ast::Expr::Map(map) => {
            let fields =
                map.entries.iter().map(|entry| Ok(nested(&entry.value, context)?.alias(name(&entry.key)?)));
            Expr::GroupingSet(GroupingSet::Cube(fields.collect::<DfResult<_>>()?))
        }
        other => {
            let is_nested = |expr: &ast::Expr| match expr {
                ast::Expr::Array(_) | ast::Expr::Dictionary(_) | ast::Expr::Map(_) => ControlFlow::Break(()),
                _ => ControlFlow::Continue(()),
            };
            if ast::visit_expressions(other, is_nested).is_break() {
                return Err(external(Error::not_supported("lists within arguments of table functions")));
            }
            context.sql_to_expr(other.clone(), &DFSchema::empty())?
        }
    })
}

/// The name of a file as a table: its file name without directories and extension.
pub(crate) fn stem(path: &str) -> String {
    let name = path.rsplit(['/', '\\']).next().unwrap_or(path);
    let stem = name.split('.').next().unwrap_or(name);
    if stem.is_empty() || stem.contains(['*', '?', '[', '{']) {
        "file".into()
    } else {
        stem.to_ascii_lowercase()
    }
}
