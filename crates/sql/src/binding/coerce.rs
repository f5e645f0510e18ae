//! Types of operands: DataFusion's coercion, preceded at every expression by rules of our own.
//!
//! **A float wins over a decimal.** If operands, results of a `CASE`, rows of `VALUES` or inputs of a `UNION`
//! mix the two, DataFusion converts them to decimals, which cannot represent every float. PostgreSQL and
//! DuckDB convert them to DOUBLEs, and so do we: the decimals are cast before DataFusion's rule applies. A
//! REAL with a decimal becomes a DOUBLE.
//!
//! **Exact numbers that no single decimal type can hold** are left as they are: lowering compares them
//! exactly ([`entasis_functions::expressions::exact`]).
//!
//! **Structs get the fields of both**, by name, as in DuckDB; those that a value lacks are NULL. DataFusion
//! takes the fields of one of them.
//!
//! **A text with a boolean, an interval or a time of day is converted to that type**, as in comparisons
//! ([`super::operators`]); with a date, DataFusion's rules do the same. In a set operation this applies only
//! to literals; a column of texts with dates, times, intervals or UUIDs converts these to texts, as with
//! numbers.
//!
//! Expressions and nodes are visited inputs first, so that each sees the final types of its inputs.

use crate::error::{external, type_name};
use arrow_schema::DataType as ArrowType;
use datafusion_common::tree_node::{Transformed, TreeNode, TreeNodeRewriter};
use datafusion_common::{DFSchema, Result as DfResult, ScalarValue};
use datafusion_expr::expr::{Alias, InSubquery, SetComparison};
use datafusion_expr::expr_rewriter::NamePreserver;
use datafusion_expr::expr_schema::cast_subquery;
use datafusion_expr::type_coercion::binary::comparison_coercion;
use datafusion_expr::utils::merge_schema;
use datafusion_expr::{
    BinaryExpr, Cast, Distinct, Expr, ExprSchemable, Join, Limit, LogicalPlan, Operator, Projection, Union,
    Values, cast,
};
use datafusion_optimizer::analyzer::type_coercion::TypeCoercionRewriter;
use entasis_functions::definition::types::common_by_name;
use entasis_functions::expressions::exact;
use entasis_vector::{Error, statement};
use std::sync::Arc;

const DOUBLE: ArrowType = ArrowType::Float64;
/// Functions of the library that convert their arguments to a common type.
const UNIFYING: [&str; 8] = ["coalesce", "greatest", "if", "ifnull", "least", "nullif", "nvl", "nvl2"];

/// The plan with the types of all operands coerced.
///
/// # Errors
/// Those of DataFusion's coercion: operands that no operator accepts.
pub(crate) fn coerce(plan: LogicalPlan) -> DfResult<LogicalPlan> {
    Ok(plan.transform_up_with_subqueries(coerce_node)?.data)
}

/// An expression over no rows, with the types of its operands coerced.
///
/// # Errors
/// Those of [`coerce`].
pub(crate) fn coerce_constant(expr: Expr) -> DfResult<Expr> {
    let schema = DFSchema::empty();
    let mut rewriter = Rewriter { schema: &schema, coercion: TypeCoercionRewriter::new(&schema) };
    Ok(expr.rewrite(&mut rewriter)?.data)
}

fn coerce_node(plan: LogicalPlan) -> DfResult<Transformed<LogicalPlan>> {
    let schema = merge_schema(&plan.inputs());
    let plan = match plan {
        LogicalPlan::Values(values) => LogicalPlan::Values(settle_values(values)?),
        LogicalPlan::Union(union) => LogicalPlan::Union(settle_union(union)?),
        LogicalPlan::Join(join) => LogicalPlan::Join(settle_keys(join)?),
        other => other,
    };
    let names = NamePreserver::new(&plan);
    let mut rewriter = Rewriter { schema: &schema, coercion: TypeCoercionRewriter::new(&schema) };
    plan.map_expressions(|expr| {
        let name = names.save(&expr);
        Ok(expr.rewrite(&mut rewriter)?.update_data(|expr| name.restore(expr)))
    })?
    .map_data(condition)?
    .map_data(|plan| TypeCoercionRewriter::new(&schema).coerce_plan(plan))?
    .map_data(|plan| plan.recompute_schema())
}

/// Makes the condition of a filter, whose operands are coerced, a BOOLEAN.
fn condition(plan: LogicalPlan) -> DfResult<LogicalPlan> {
    let LogicalPlan::Filter(mut filter) = plan else { return Ok(plan) };
    filter.predicate = filter.predicate.cast_to(&ArrowType::Boolean, filter.input.schema())?;
    Ok(LogicalPlan::Filter(filter))
}

struct Rewriter<'a> {
    schema: &'a DFSchema,
    coercion: TypeCoercionRewriter<'a>,
}

impl TreeNodeRewriter for Rewriter<'_> {
    type Node = Expr;

    fn f_up(&mut self, expr: Expr) -> DfResult<Transformed<Expr>> {
        statement::check().map_err(external)?;
        if let Expr::BinaryExpr(BinaryExpr { left, op: Operator::And | Operator::Or, right }) = &expr
            && is_condition(left)
            && is_condition(right)
        {
            return Ok(Transformed::no(expr));
        }
        let settled = settle(expr, self.schema)?;
        if let Expr::BinaryExpr(BinaryExpr { left, op, right }) = &settled
            && is_comparison(*op)
            && is_beyond_decimals(&left.get_type(self.schema)?, &right.get_type(self.schema)?)
        {
            return Ok(Transformed::no(settled));
        }
        self.coercion.f_up(settled)
    }
}

/// True if the types include both a float and a decimal.
fn mixes<'a>(types: impl Iterator<Item = &'a ArrowType> + Clone) -> bool {
    types.clone().any(ArrowType::is_floating) && types.clone().any(ArrowType::is_decimal)
}

/// True if an expression is of type BOOLEAN whatever its operands are. This avoids walking down a long chain
/// of them once for each of its elements.
fn is_condition(expr: &Expr) -> bool {
    match expr {
        Expr::BinaryExpr(binary) => {
            matches!(binary.op, Operator::And | Operator::Or) || is_comparison(binary.op)
        }
        Expr::Not(_)
        | Expr::IsNull(_)
        | Expr::IsNotNull(_)
        | Expr::Like(_)
        | Expr::Between(_)
        | Expr::InList(_) => true,
        _ => false,
    }
}

/// The type of instants among the types, if there are dates too: dates are converted to instants in the
/// session's time zone, as timestamps are.
fn instants<'a>(types: impl Iterator<Item = &'a ArrowType> + Clone) -> Option<ArrowType> {
    let zoned = types.clone().find(|ty| matches!(ty, ArrowType::Timestamp(_, Some(_))))?;
    types.clone().any(|ty| *ty == ArrowType::Date32).then(|| zoned.clone())
}

/// The common type of structs, or of lists of them, that differ in their fields.
fn structure<'a>(types: impl Iterator<Item = &'a ArrowType>) -> Option<ArrowType> {
    fn has_fields(ty: &ArrowType) -> bool {
        match ty {
            ArrowType::Struct(_) => true,
            ArrowType::List(element) | ArrowType::LargeList(element) => has_fields(element.data_type()),
            _ => false,
        }
    }
    let types: Vec<&ArrowType> = types.filter(|ty| !ty.is_null()).collect();
    if types.iter().all(|ty| *ty == types[0]) || !types.iter().all(|ty| has_fields(ty)) {
        return None;
    }
    let types = types.into_iter().map(|ty| entasis_arrow::from_arrow_type(ty).ok());
    common_by_name(&types.collect::<Option<Vec<_>>>()?).map(entasis_arrow::to_arrow_type)
}

fn is_comparison(op: Operator) -> bool {
    use Operator::{Eq, Gt, GtEq, IsDistinctFrom, IsNotDistinctFrom, Lt, LtEq, NotEq};
    matches!(op, Eq | NotEq | Lt | LtEq | Gt | GtEq | IsDistinctFrom | IsNotDistinctFrom)
}

fn is_beyond_decimals(left: &ArrowType, right: &ArrowType) -> bool {
    let types = entasis_arrow::from_arrow_type(left).ok().zip(entasis_arrow::from_arrow_type(right).ok());
    types.is_some_and(|(left, right)| exact::is_beyond_decimals(left, right))
}

/// Casts the decimals among `exprs` if there is a float among them, and the texts if there is a boolean, an
/// interval or a time of day.
fn settle_all(mut exprs: Vec<&mut Expr>, schema: &DFSchema) -> DfResult<()> {
    let types = exprs.iter().map(|expr| expr.get_type(schema)).collect::<DfResult<Vec<_>>>()?;
    let is_said =
        |ty: &&ArrowType| matches!(ty, ArrowType::Boolean | ArrowType::Interval(_) | ArrowType::Time64(_));
    if let Some(said) = types.iter().find(is_said) {
        for (expr, _) in exprs.iter_mut().zip(&types).filter(|(_, ty)| ty.is_string()) {
            let text = std::mem::take(*expr);
            **expr = cast(text, said.clone());
        }
    }
    settle_literals(&mut exprs, &types);
    if let Some(common) = structure(types.iter()) {
        for (expr, _) in exprs.iter_mut().zip(&types).filter(|(_, ty)| !ty.is_null() && **ty != common) {
            let value = std::mem::take(*expr);
            **expr = cast(value, common.clone());
        }
    }
    if mixes(types.iter()) {
        for (expr, _) in exprs.iter_mut().zip(&types).filter(|(_, ty)| ty.is_decimal()) {
            let decimal = std::mem::take(*expr);
            **expr = cast(decimal, DOUBLE);
        }
    }
    if let Some(instant) = instants(types.iter()) {
        for (expr, _) in exprs.iter_mut().zip(&types).filter(|(_, ty)| **ty == ArrowType::Date32) {
            let date = std::mem::take(*expr);
            **expr = cast(date, instant.clone());
        }
    }
    Ok(())
}

/// Gives text literals the type of the values of another type with which they occur.
fn settle_literals(exprs: &mut [&mut Expr], types: &[ArrowType]) {
    let typed = exprs.iter().zip(types).filter(|(expr, _)| !is_text_literal(expr)).map(|(_, ty)| ty);
    let Some(common) = type_of_literals(typed) else { return };
    for expr in exprs.iter_mut().filter(|expr| is_text_literal(expr)) {
        let ty = type_beside(&common, expr);
        let literal = std::mem::take(*expr);
        **expr = cast(literal, ty);
    }
}

/// The type that text literals get among values of these types; `None` if they remain texts.
fn type_of_literals<'a>(types: impl Iterator<Item = &'a ArrowType> + Clone) -> Option<ArrowType> {
    if mixes(types.clone()) {
        return Some(DOUBLE);
    }
    let mut types = types.filter(|ty| !ty.is_null());
    let first = types.next()?.clone();
    let common = types.try_fold(first, |common, ty| comparison_coercion(&common, ty))?;
    (!common.is_string()).then_some(common)
}

/// The type of a text that occurs with a value of type `ty`: the same, except that a decimal gets as many
/// digits as the text needs.
pub(crate) fn type_beside(ty: &ArrowType, text: &Expr) -> ArrowType {
    let ArrowType::Decimal128(_, scale) = ty else { return ty.clone() };
    let own = match text {
        Expr::Literal(ScalarValue::Utf8(Some(text)), _) => {
            text.trim_end().split_once('.').map_or(0, |(_, rest)| rest.len())
        }
        _ => 0,
    };
    // Enough for any number with this many decimals.
    ArrowType::Decimal128(38, i8::try_from(own).unwrap_or(0).clamp(*scale, 18.max(*scale)))
}

fn is_text_literal(expr: &Expr) -> bool {
    matches!(expr, Expr::Literal(ScalarValue::Utf8(Some(_)), _))
}

fn settle(mut expr: Expr, schema: &DFSchema) -> DfResult<Expr> {
    match &mut expr {
        Expr::BinaryExpr(binary)
            if !matches!(binary.op, Operator::And | Operator::Or | Operator::StringConcat) =>
        {
            settle_all(vec![&mut *binary.left, &mut *binary.right], schema)?;
        }
        Expr::Between(between) => {
            settle_all(vec![&mut *between.expr, &mut *between.low, &mut *between.high], schema)?;
            judge_between([&*between.expr, &*between.low, &*between.high], schema)?;
        }
        Expr::InList(list) => {
            settle_all([&mut *list.expr].into_iter().chain(&mut list.list).collect(), schema)?
        }
        Expr::Case(case) => {
            let (mut compared, mut results) = (Vec::new(), Vec::new());
            compared.extend(case.expr.as_deref_mut());
            let simple = !compared.is_empty();
            for (when, then) in &mut case.when_then_expr {
                if simple {
                    compared.push(&mut **when);
                }
                results.push(&mut **then);
            }
            results.extend(case.else_expr.as_deref_mut());
            settle_all(compared, schema)?;
            settle_all(results, schema)?;
        }
        Expr::ScalarFunction(function) if UNIFYING.contains(&function.func.name()) => {
            let first = usize::from(matches!(function.func.name(), "nvl2" | "if"));
            settle_all(function.args.iter_mut().skip(first).collect(), schema)?;
        }
        Expr::InSubquery(InSubquery { expr, subquery, .. })
        | Expr::SetComparison(SetComparison { expr, subquery, .. }) => {
            let column = subquery.subquery.schema().field(0).data_type().clone();
            if is_text_literal(expr) && !column.is_string() && !column.is_null() {
                **expr = cast(std::mem::take(&mut **expr), column.clone());
            }
            let types = [expr.get_type(schema)?, column];
            if mixes(types.iter()) {
                match types[0].is_decimal() {
                    true => **expr = cast(std::mem::take(&mut **expr), DOUBLE),
                    false => *subquery = cast_subquery(subquery.clone(), &DOUBLE)?,
                }
            }
        }
        _ => {}
    }
    Ok(expr)
}

/// Refuses a value and bounds that have no common type.
fn judge_between(operands: [&Expr; 3], schema: &DFSchema) -> DfResult<()> {
    let types = operands.map(|operand| operand.get_type(schema));
    let [value, low, high] = [&types[0], &types[1], &types[2]];
    let (Ok(value), Ok(low), Ok(high)) = (value, low, high) else { return Ok(()) };
    let with_low = comparison_coercion(value, low);
    let with_high = comparison_coercion(value, high);
    let meet = with_low.zip(with_high).is_some_and(|(low, high)| comparison_coercion(&low, &high).is_some());
    if meet {
        return Ok(());
    }
    let text = format!("{} is not BETWEEN {} AND {}", type_name(value), type_name(low), type_name(high));
    Err(external(Error::input(text).with_hint("compare values of one type: CAST(value AS type)")))
}

/// Coerces the rows of `VALUES`, which the binder has cast already. The outermost casts are the binder's own:
/// a user's casts are wrapped (`functions::native::exact`).
fn settle_values(mut values: Values) -> DfResult<Values> {
    let nothing = DFSchema::empty();
    let mut types: Vec<ArrowType> =
        values.schema.fields().iter().map(|field| field.data_type().clone()).collect();
    let is_mixed = |ty: &ArrowType| ty.is_decimal() || matches!(ty, ArrowType::Timestamp(..));
    for (column, ty) in types.iter_mut().enumerate().filter(|(_, ty)| is_mixed(ty)) {
        let given = values.values.iter().map(|row| bare(&row[column]).get_type(&nothing));
        let given = given.collect::<DfResult<Vec<_>>>()?;
        let Some(wanted) = mixes(given.iter()).then_some(DOUBLE).or_else(|| instants(given.iter())) else {
            continue;
        };
        for row in &mut values.values {
            row[column] = bare(&row[column]).clone().cast_to(&wanted, &nothing)?;
        }
        *ty = wanted;
    }
    values.schema = Arc::new(with_types(&values.schema, types)?);
    Ok(values)
}

/// A number, a date or a time without the cast around it.
fn bare(expr: &Expr) -> &Expr {
    match expr {
        Expr::Cast(Cast { expr: inner, .. })
            if inner
                .get_type(&DFSchema::empty())
                .is_ok_and(|ty| ty.is_numeric() || ty.is_null() || ty.is_temporal()) =>
        {
            inner
        }
        other => other,
    }
}

fn settle_union(mut union: Union) -> DfResult<Union> {
    let columns = union.schema.fields().len();
    // The binder adds the columns that an ORDER BY names to the inputs that have them.
    if union.inputs.iter().any(|input| input.schema().fields().len() != columns) {
        let text = "ORDER BY after a set operation can only name columns of its result";
        return Err(external(Error::input(text)));
    }
    let ty = |input: &LogicalPlan, column: usize| input.schema().field(column).data_type().clone();
    let types = |column| union.inputs.iter().map(|input| ty(input, column)).collect::<Vec<_>>();
    let mixed: Vec<bool> = (0..columns).map(|column| mixes(types(column).iter())).collect();
    let instants: Vec<Option<ArrowType>> =
        (0..columns).map(|column| instants(types(column).iter())).collect();
    let structures: Vec<Option<ArrowType>> =
        (0..columns).map(|column| structure(types(column).iter())).collect();
    // A literal gets the type of the other inputs.
    let literals: Vec<Option<ArrowType>> = (0..columns)
        .map(|column| {
            let is_other = |input: &&Arc<LogicalPlan>| literals_of(input, column).is_none();
            let others: Vec<ArrowType> =
                union.inputs.iter().filter(is_other).map(|input| ty(input, column)).collect();
            type_of_literals(others.iter())
        })
        .collect();
    let written: Vec<bool> = (0..columns).map(|column| types(column).iter().any(is_written_out)).collect();
    for input in &mut union.inputs {
        let own: Vec<ArrowType> = (0..columns).map(|column| ty(input, column)).collect();
        let settled: Vec<ArrowType> = own
            .iter()
            .enumerate()
            .map(|(column, ty)| match (&instants[column], &literals[column], literals_of(input, column)) {
                (_, Some(wanted), Some(literals)) => {
                    literals.iter().fold(wanted.clone(), |wanted, literal| type_beside(&wanted, literal))
                }
                (Some(instant), ..) if *ty == ArrowType::Date32 => instant.clone(),
                _ if mixed[column] && ty.is_decimal() => DOUBLE,
                _ if ty.is_null() => ty.clone(),
                _ => structures[column].as_ref().unwrap_or(ty).clone(),
            })
            .collect();
        if own != settled {
            *input = Arc::new(recast(input, &settled)?);
        }
    }
    // Texts of a column are not converted to the other type: both become texts.
    for column in (0..columns).filter(|column| written[*column]) {
        if union.inputs.iter().any(|input| ty(input, column).is_string()) {
            for input in union
                .inputs
                .iter_mut()
                .filter(|input| is_written_out(input.schema().field(column).data_type()))
            {
                let mut types: Vec<ArrowType> = (0..columns).map(|column| ty(input, column)).collect();
                types[column] = ArrowType::Utf8;
                *input = Arc::new(recast(input, &types)?);
            }
        }
    }
    // Types that the binder derived before its inputs were coerced must not count.
    let first = (0..columns).map(|column| ty(&union.inputs[0], column)).collect();
    union.schema = Arc::new(with_types(&union.schema, first)?);
    Ok(union)
}

/// True for types to which a text with such a value would be converted, except numbers and booleans.
fn is_written_out(ty: &ArrowType) -> bool {
    ty.is_temporal() || matches!(ty, ArrowType::Interval(_) | ArrowType::FixedSizeBinary(16))
}

/// A plan whose columns are cast to `types`: in all parts of a union, and literals in place.
fn recast(plan: &LogicalPlan, types: &[ArrowType]) -> DfResult<LogicalPlan> {
    let exprs: Vec<Expr> = match plan {
        LogicalPlan::Projection(projection) => projection.expr.clone(),
        LogicalPlan::Union(union) => {
            let inputs = union.inputs.iter().map(|input| recast(input, types).map(Arc::new));
            let inputs = inputs.collect::<DfResult<_>>()?;
            let schema = Arc::new(with_types(&union.schema, types.to_vec())?);
            return Ok(LogicalPlan::Union(Union { inputs, schema }));
        }
        LogicalPlan::Distinct(Distinct::All(input)) => {
            return Ok(LogicalPlan::Distinct(Distinct::All(Arc::new(recast(input, types)?))));
        }
        LogicalPlan::Limit(limit) => {
            let input = Arc::new(recast(&limit.input, types)?);
            return Ok(LogicalPlan::Limit(Limit { input, ..limit.clone() }));
        }
        other => other.schema().columns().into_iter().map(Expr::Column).collect(),
    };
    let input = match plan {
        LogicalPlan::Projection(projection) => projection.input.clone(),
        other => Arc::new(other.clone()),
    };
    let recast = |(expr, ty): (Expr, &ArrowType)| {
        if expr.get_type(input.schema())? == *ty {
            return Ok(expr);
        }
        let (relation, name) = expr.qualified_name();
        Ok(cast(expr.unalias(), ty.clone()).alias_qualified(relation, name))
    };
    let exprs = exprs.into_iter().zip(types).map(recast).collect::<DfResult<Vec<_>>>()?;
    Ok(LogicalPlan::Projection(Projection::try_new(exprs, input)?))
}

/// The text literals of which a column of a plan consists, in all parts of a union; they may include NULLs.
fn literals_of(plan: &LogicalPlan, column: usize) -> Option<Vec<&Expr>> {
    let found = match plan {
        LogicalPlan::Projection(projection) => {
            let mut expr = projection.expr.get(column)?;
            while let Expr::Alias(alias) = expr {
                expr = &alias.expr;
            }
            return is_text_literal(expr).then(|| vec![expr]);
        }
        LogicalPlan::Union(union) => {
            let is_null = |input: &&Arc<LogicalPlan>| is_null_literal(input, column);
            let inputs = union.inputs.iter().filter(|input| !is_null(input));
            inputs.map(|input| literals_of(input, column)).collect::<Option<Vec<_>>>()?.concat()
        }
        LogicalPlan::Distinct(Distinct::All(input)) => literals_of(input, column)?,
        LogicalPlan::Limit(limit) => literals_of(&limit.input, column)?,
        _ => return None,
    };
    (!found.is_empty()).then_some(found)
}

/// True if a column of a plan is NULL, possibly through a union.
fn is_null_literal(plan: &LogicalPlan, column: usize) -> bool {
    let LogicalPlan::Projection(projection) = plan else { return false };
    let mut expr = projection.expr.get(column);
    while let Some(Expr::Alias(Alias { expr: inner, .. }) | Expr::Cast(Cast { expr: inner, .. })) = expr {
        expr = Some(inner);
    }
    matches!(expr, Some(Expr::Literal(value, _)) if value.is_null())
}

fn settle_keys(mut join: Join) -> DfResult<Join> {
    for (left, right) in &mut join.on {
        let types = [left.get_type(join.left.schema())?, right.get_type(join.right.schema())?];
        if mixes(types.iter()) {
            let decimal = if types[0].is_decimal() { left } else { right };
            *decimal = cast(std::mem::take(decimal), DOUBLE);
        }
    }
    let (apart, on): (Vec<_>, Vec<_>) =
        std::mem::take(&mut join.on).into_iter().partition(|(left, right)| {
            let types = (left.get_type(join.left.schema()), right.get_type(join.right.schema()));
            matches!(types, (Ok(left), Ok(right)) if is_beyond_decimals(&left, &right))
        });
    join.on = on;
    let conditions = apart.into_iter().map(|(left, right)| left.eq(right));
    join.filter = join.filter.take().into_iter().chain(conditions).reduce(Expr::and);
    Ok(join)
}

fn with_types(schema: &DFSchema, types: Vec<ArrowType>) -> DfResult<DFSchema> {
    let fields = schema.iter().zip(types);
    let fields = fields
        .map(|((table, field), ty)| (table.cloned(), Arc::new(field.as_ref().clone().with_data_type(ty))));
    DFSchema::new_with_metadata(fields.collect(), schema.metadata().clone())
}
