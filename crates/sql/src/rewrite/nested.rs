//! Lists and structs in expressions as calls of functions: the binder gives its own kinds of literals and
//! accesses neither parameters nor columns of enclosing queries.

use entasis_syntax::build::{call, null, number};
use entasis_syntax::walk::WalkMut;
use sqlparser::ast::{
    AccessExpr, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, Ident, Statement, Subscript,
    UnaryOperator, Value, VisitorMut,
};
use std::ops::ControlFlow;

/// `[a, b]` as `list_value(a, b)`, `{'x': a}` as `named_struct('x', a)`.
pub(super) fn literal(expr: &mut Expr) {
    match std::mem::replace(expr, null()) {
        Expr::Array(array) => *expr = call("list_value", array.elem),
        Expr::Dictionary(fields) => {
            let args = fields.into_iter().flat_map(|field| [text(field.key.value), *field.value]);
            *expr = call("named_struct", args.collect());
        }
        other => *expr = other,
    }
}

/// True of `struct_pack(…)`.
pub(super) fn is_struct_pack(function: &Function) -> bool {
    function.name.to_string().eq_ignore_ascii_case("struct_pack")
}

/// `struct_pack(x := a)` as `named_struct('x', a)`. False if an argument has no name.
pub(super) fn struct_pack(expr: &mut Expr) -> bool {
    let Expr::Function(Function { args: FunctionArguments::List(list), .. }) = expr else { return false };
    let named = |arg: &FunctionArg| match arg {
        FunctionArg::Named { name, arg: FunctionArgExpr::Expr(value), .. } => {
            Some([text(name.value.clone()), value.clone()])
        }
        FunctionArg::ExprNamed {
            name: Expr::Identifier(name), arg: FunctionArgExpr::Expr(value), ..
        } => Some([text(name.value.clone()), value.clone()]),
        _ => None,
    };
    let args: Option<Vec<[Expr; 2]>> = list.args.iter().map(named).collect();
    let Some(args) = args.filter(|args| !args.is_empty()) else { return false };
    *expr = call("named_struct", args.into_iter().flatten().collect());
    true
}

/// Makes the names before the first subscript those of a column, as they are without it, `t.l` in `t.l[1]`,
/// so that all other passes find them.
pub(super) fn apply(statement: &mut Statement) {
    let _ = statement.walk_mut(&mut Names);
}

struct Names;

impl VisitorMut for Names {
    type Break = ();

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        if let Expr::CompoundFieldAccess { root, access_chain } = expr
            && let Expr::Identifier(first) = &**root
        {
            let is_name = |access: &&AccessExpr| matches!(access, AccessExpr::Dot(Expr::Identifier(_)));
            let count = access_chain.iter().take_while(is_name).count();
            let names = access_chain.drain(..count).filter_map(|access| match access {
                AccessExpr::Dot(Expr::Identifier(name)) => Some(name),
                _ => None,
            });
            let names: Vec<Ident> = [first.clone()].into_iter().chain(names).collect();
            if count > 0 {
                **root = Expr::CompoundIdentifier(names);
            }
        }
        ControlFlow::Continue(())
    }
}

/// `t.l[1]` as `list_extract(t.l, 1)`, `l[2:3]` as `list_slice(l, 2, 3)`, `s['x']` and `(s).x` as
/// `struct_extract(s, 'x')`.
pub(super) fn accesses(expr: &mut Expr) {
    let Expr::CompoundFieldAccess { root, access_chain } = expr else { return };
    let mut of = std::mem::replace(&mut **root, null());
    for access in std::mem::take(access_chain) {
        let (name, args) = match access {
            AccessExpr::Dot(Expr::Identifier(field)) => ("struct_extract", vec![of, text(field.value)]),
            AccessExpr::Dot(other) => ("struct_extract", vec![of, other]),
            AccessExpr::Subscript(Subscript::Index { index }) => match &index {
                Expr::Value(literal) if matches!(literal.value, Value::SingleQuotedString(_)) => {
                    ("struct_extract", vec![of, index])
                }
                _ => ("list_extract", vec![of, index]),
            },
            AccessExpr::Subscript(Subscript::Slice { lower_bound, upper_bound, stride }) => {
                let last = || Expr::value(Value::Number(i64::MAX.to_string(), false));
                let is_backwards = matches!(&stride, Some(Expr::UnaryOp { op: UnaryOperator::Minus, .. }));
                let (first, last) = match is_backwards {
                    true => (lower_bound.unwrap_or_else(last), upper_bound.unwrap_or_else(|| number(1))),
                    false => (lower_bound.unwrap_or_else(|| number(1)), upper_bound.unwrap_or_else(last)),
                };
                ("list_slice", [of, first, last].into_iter().chain(stride).collect())
            }
        };
        of = call(name, args);
    }
    *expr = of;
}

fn text(text: String) -> Expr {
    Expr::value(Value::SingleQuotedString(text))
}
