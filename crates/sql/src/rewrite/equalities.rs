//! `count_if(a = 1)`: the parser takes the argument for one that is called `a`. Functions in expressions have
//! no arguments by name, so it is an equality.

use entasis_syntax::walk::WalkMut;
use sqlparser::ast::{
    BinaryOperator, Expr, FunctionArg, FunctionArgExpr, FunctionArgOperator, FunctionArguments, Statement,
    VisitorMut,
};
use std::convert::Infallible;
use std::ops::ControlFlow;

/// Makes equalities of such arguments in a statement.
pub(super) fn apply(statement: &mut Statement) {
    let _ = statement.walk_mut(&mut Arguments);
}

struct Arguments;

impl VisitorMut for Arguments {
    type Break = Infallible;

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Infallible> {
        if let Expr::Function(function) = expr
            && let FunctionArguments::List(list) = &mut function.args
        {
            for arg in &mut list.args {
                let (left, right) = match arg {
                    FunctionArg::Named {
                        name,
                        arg: FunctionArgExpr::Expr(value),
                        operator: FunctionArgOperator::Equals,
                    } => (Expr::Identifier(name.clone()), value.clone()),
                    FunctionArg::ExprNamed {
                        name,
                        arg: FunctionArgExpr::Expr(value),
                        operator: FunctionArgOperator::Equals,
                    } => (name.clone(), value.clone()),
                    _ => continue,
                };
                let (left, right) = (Box::new(left), Box::new(right));
                let equality = Expr::BinaryOp { left, op: BinaryOperator::Eq, right };
                *arg = FunctionArg::Unnamed(FunctionArgExpr::Expr(equality));
            }
        }
        ControlFlow::Continue(())
    }
}
