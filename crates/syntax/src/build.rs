//! Parts of syntax trees, from which statements are made of other statements.

use super::parse::parse_query;
use entasis_vector::{DataType, Error, Result, name};
use sqlparser::ast::{
    self, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArgumentList, FunctionArguments, Ident,
    ObjectName, Query, Select, SelectItem, SetExpr, TableAlias, TableFactor,
};

/// A query with only a body.
pub fn query_of(body: SetExpr) -> Query {
    Query {
        with: None,
        body: Box::new(body),
        order_by: None,
        limit_clause: None,
        fetch: None,
        locks: Vec::new(),
        for_clause: None,
        settings: None,
        format_clause: None,
        pipe_operators: Vec::new(),
    }
}

/// `SELECT … FROM "table" AS alias`, changed by `edit`.
pub fn select_from(table: &str, alias: TableAlias, edit: impl FnOnce(&mut Select)) -> Result<Query> {
    let mut query = *parse_query(&format!("SELECT 1 FROM {} AS t", quoted_name(table)))?;
    let SetExpr::Select(select) = &mut *query.body else {
        return Err(Error::internal("the template is a SELECT"));
    };
    if let TableFactor::Table { alias: slot, .. } = &mut select.from[0].relation {
        *slot = Some(alias);
    }
    edit(select);
    Ok(query)
}

/// A name of the catalog as statements write it.
fn quoted_name(table: &str) -> String {
    let quoted = |part: &str| format!("\"{}\"", part.replace('"', "\"\""));
    match name::split(table) {
        (name::MAIN, own) => quoted(own),
        (schema, own) => format!("{}.{}", quoted(schema), quoted(own)),
    }
}

/// `"table" AS alias`
pub fn table_factor(table: &str, alias: TableAlias) -> Result<TableFactor> {
    let mut factor = None;
    select_from(table, alias, |select| factor = select.from.pop())?;
    factor.map(|from| from.relation).ok_or_else(|| Error::internal("the template has a table"))
}

/// `AS name`
pub fn table_alias(name: Ident) -> TableAlias {
    TableAlias { explicit: true, name, columns: Vec::new(), at: None }
}

/// `table.name`
pub fn qualified(table: &Ident, name: &str) -> Expr {
    Expr::CompoundIdentifier(vec![table.clone(), Ident::with_quote('"', name)])
}

/// `expr AS "name"`
pub fn named(expr: Expr, name: &str) -> SelectItem {
    SelectItem::ExprWithAlias { expr, alias: Ident::with_quote('"', name) }
}

/// `NULL`
pub fn null() -> Expr {
    Expr::Value(ast::Value::Null.into())
}

/// A number.
pub fn number(number: u8) -> Expr {
    Expr::Value(ast::Value::Number(number.to_string(), false).into())
}

/// The conjunction of these conditions, with all but the first in brackets; `None` if there are none.
pub fn and(conditions: impl IntoIterator<Item = Expr>) -> Option<Expr> {
    conditions.into_iter().reduce(|left, right| Expr::BinaryOp {
        left: Box::new(left),
        op: ast::BinaryOperator::And,
        right: Box::new(Expr::Nested(Box::new(right))),
    })
}

/// `left OR (right)`
pub fn or(left: Expr, right: Expr) -> Expr {
    Expr::BinaryOp {
        left: Box::new(left),
        op: ast::BinaryOperator::Or,
        right: Box::new(Expr::Nested(Box::new(right))),
    }
}

/// `NOT (expr)`
pub fn not(expr: Expr) -> Expr {
    Expr::UnaryOp { op: ast::UnaryOperator::Not, expr: Box::new(Expr::Nested(Box::new(expr))) }
}

/// `expr IS NULL`
pub fn is_null(expr: Expr) -> Expr {
    Expr::IsNull(Box::new(expr))
}

/// `EXISTS (query)`
pub fn exists(query: Query) -> Expr {
    Expr::Exists { subquery: Box::new(query), negated: false }
}

/// `JOIN relation`, of this kind.
pub fn join(relation: TableFactor, join_operator: ast::JoinOperator) -> ast::Join {
    ast::Join { relation, global: false, join_operator }
}

/// `CAST((expr) AS ty)`
pub fn cast_to(expr: Expr, ty: DataType) -> Result<Expr> {
    let mut cast = stored_expr(&format!("CAST(NULL AS {ty})"))?;
    if let Expr::Cast { expr: slot, .. } = &mut cast {
        **slot = Expr::Nested(Box::new(expr));
    }
    Ok(cast)
}

/// `left = right`
pub fn equal(left: Expr, right: Expr) -> Expr {
    Expr::BinaryOp { left: Box::new(left), op: ast::BinaryOperator::Eq, right: Box::new(right) }
}

/// `CASE WHEN condition THEN result … ELSE otherwise END`
pub fn case(branches: Vec<(Expr, Expr)>, otherwise: Expr) -> Expr {
    use ast::helpers::attached_token::AttachedToken;
    if branches.is_empty() {
        return otherwise;
    }
    let conditions =
        branches.into_iter().map(|(condition, result)| ast::CaseWhen { condition, result }).collect();
    Expr::Case {
        case_token: AttachedToken::empty(),
        end_token: AttachedToken::empty(),
        operand: None,
        conditions,
        else_result: Some(Box::new(otherwise)),
    }
}

/// `name(args)`
pub fn call(name: &str, args: Vec<Expr>) -> Expr {
    let args = args.into_iter().map(|arg| FunctionArg::Unnamed(FunctionArgExpr::Expr(arg))).collect();
    let args = FunctionArgumentList { duplicate_treatment: None, args, clauses: Vec::new() };
    Expr::Function(Function {
        name: ObjectName::from(Ident::with_quote('"', name)),
        uses_odbc_syntax: false,
        parameters: FunctionArguments::None,
        args: FunctionArguments::List(args),
        filter: None,
        null_treatment: None,
        over: None,
        within_group: Vec::new(),
    })
}

/// `SELECT expr`
pub fn select_expr(expr: Expr) -> Result<Query> {
    let mut query = parse_query("SELECT 1")?;
    if let SetExpr::Select(select) = &mut *query.body {
        select.projection = vec![SelectItem::UnnamedExpr(expr)];
    }
    Ok(*query)
}

/// Parses an expression of a definition.
pub fn stored_expr(sql: &str) -> Result<Expr> {
    let query = parse_query(&format!("SELECT {sql}"))?;
    match *query.body {
        SetExpr::Select(mut select) => match select.projection.pop() {
            Some(SelectItem::UnnamedExpr(expr)) => Ok(expr),
            _ => Err(Error::internal(format!("{sql} is not an expression"))),
        },
        _ => Err(Error::internal(format!("{sql} is not an expression"))),
    }
}

/// `CAST(expr AS ty)`, with the type given by name.
pub fn as_type(expr: Expr, ty: &str) -> Expr {
    let mut template =
        parse_query(&format!("SELECT CAST(NULL AS {ty})")).expect("a constant but for the type");
    match &mut *template.body {
        SetExpr::Select(select) => match select.projection.pop() {
            Some(SelectItem::UnnamedExpr(Expr::Cast { kind, data_type, array, format, .. })) => {
                Expr::Cast { kind, expr: Box::new(expr), data_type, array, format }
            }
            _ => unreachable!("the template has one item"),
        },
        _ => unreachable!("the template is a SELECT"),
    }
}
