//! What DataFusion's binder asks, answered from the [`Catalog`] and the function library.
//!
//! The binder's hooks are few and typed for its own world, so some things travel through them in disguise: a path is a
//! table name with a prefix that no user can write, a named argument of a table function is an aliased expression, a list
//! among its arguments is a ROLLUP and a struct a CUBE, and an operator that DataFusion would type otherwise is a call of
//! a native function.

use crate::asof::NEAREST;
use crate::coerce::{self, coerce_constant};
use crate::dialect::EntasisDialect;
use crate::functions::Library;
use crate::functions::native::{self, EXACT, Kind, OperatorResult, SETS, exact};
use crate::functions::sequence;
use crate::functions::window::{self, WindowCall};
use crate::hidden::visible;
use crate::lower;
use crate::parameters::Parameters;
use crate::rewrite::{ResultNames, rewrite};
use crate::schema::{in_schema, missing_schema};
use crate::words::DESCRIBE;
use crate::{Argument, Catalog, Session};
use arrow_schema::{DataType as ArrowType, Field as ArrowField, FieldRef, IntervalUnit, Schema, SchemaRef};
use datafusion_common::config::ConfigOptions;
use datafusion_common::{DFSchema, DataFusionError, Result as DfResult, ScalarValue, TableReference};
use datafusion_expr::expr::{GroupingSet, ScalarFunction};
use datafusion_expr::planner::{
    ContextProvider, ExprPlanner, PlannedRelation, PlannerResult, RawAggregateExpr, RawBinaryExpr, RelationPlanner,
    RelationPlannerContext, RelationPlanning, TypePlanner,
};
use datafusion_expr::{
    AggregateUDF, BinaryExpr, Expr, ExprSchemable, HigherOrderUDF, LogicalPlan, LogicalPlanBuilder, Operator,
    ScalarUDF, TableSource, WindowUDF, cast,
};
use datafusion_sql::planner::{NullOrdering, ParserOptions, PlannerContext, SqlToRel};
use datafusion_sql::sqlparser::ast::{
    self, BinaryOperator, ExactNumberInfo, FunctionArg, FunctionArgExpr, Statement, TableFactor, TimezoneInfo,
};
use datafusion_sql::sqlparser::parser::Parser;
use datafusion_sql::sqlparser::tokenizer::Token;
use entasis_engine::plan::Plan;
use entasis_engine::recursive::WorkTable;
use entasis_engine::relation::Relation;
use entasis_vector::error::sqlstate;
use entasis_vector::expr::ArithmeticOp;
use entasis_vector::{DataType, Error, Field, Result, Value, statement};
use std::borrow::Cow;
use std::cell::{Cell, RefCell};
use std::collections::HashSet;
use std::ops::ControlFlow;
use std::sync::Arc;

/// What `IS DISTINCT FROM` is called as an operator of the binder.
pub(crate) const IS_DISTINCT: &str = "IS DISTINCT FROM";
/// What `IS NOT DISTINCT FROM` is called.
pub(crate) const IS_NOT_DISTINCT: &str = "IS NOT DISTINCT FROM";
/// Views within views.
const MAX_VIEWS: usize = 16;
/// Prefix of a table name that is a path.
const PATH: &str = "\u{1}path:";
/// Prefix of the name of a relation that the statement itself has made.
const SHARED: &str = "\u{1}shared:";

/// A table, file or table function's result in the binder.
#[derive(Debug)]
pub(crate) struct Source {
    pub(crate) relation: Arc<dyn Relation>,
    schema: SchemaRef,
}

impl Source {
    /// Names are folded to lower case, as identifiers are; names that then clash get a number.
    fn new(relation: Arc<dyn Relation>) -> Source {
        let mut taken = HashSet::new();
        let fields = relation.schema().iter().map(|field| {
            let folded = field.name.to_lowercase();
            let mut name = folded.clone();
            let mut number = 0;
            while !taken.insert(name.clone()) {
                number += 1;
                name = format!("{folded}_{number}");
            }
            ArrowField::new(name, entasis_arrow::to_arrow_type(field.ty), field.nullable)
        });
        let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        Source { relation, schema }
    }
}

impl TableSource for Source {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }
}

/// Rows of a plan that is lowered already, as a table of the query around it, which mentions it once.
#[derive(Debug)]
pub(crate) struct Rows {
    pub(crate) plan: Plan,
    schema: SchemaRef,
}

impl Rows {
    /// The rows of `plan`, whose outputs have different names.
    pub(crate) fn new(plan: Plan) -> Rows {
        let fields = plan.output.iter().map(|output| {
            let column = plan.columns.get(output.column);
            ArrowField::new(output.name.to_lowercase(), entasis_arrow::to_arrow_type(column.ty), true)
        });
        let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        Rows { plan, schema }
    }
}

impl TableSource for Rows {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }
}

/// Tables that only the binder knows, under names that no user can write.
#[derive(Debug, Clone, Default)]
pub(crate) struct Given {
    /// [`TARGET`]: the table that a statement changes, with its row ids.
    pub(crate) target: Option<Arc<dyn Relation>>,
    /// [`ROWS`]: what has been bound before.
    pub(crate) rows: Option<Arc<Rows>>,
}

/// The name of [`Given::target`].
pub(crate) const TARGET: &str = "entasis:target";
/// The name of [`Given::rows`].
pub(crate) const ROWS: &str = "entasis:rows";

/// A view or something else that is a query, as its plan.
struct Derived {
    plan: LogicalPlan,
}

impl TableSource for Derived {
    fn schema(&self) -> SchemaRef {
        Arc::new(self.plan.schema().as_arrow().clone())
    }
    fn get_logical_plan(&self) -> Option<Cow<'_, LogicalPlan>> {
        Some(Cow::Borrowed(&self.plan))
    }
}

/// The binder's view of one statement's world.
pub(crate) struct Context<'a> {
    catalog: &'a dyn Catalog,
    params: Parameters<'a>,
    given: Given,
    session: Session,
    options: ConfigOptions,
    expr_planners: Vec<Arc<dyn ExprPlanner>>,
    relation_planners: Vec<Arc<dyn RelationPlanner>>,
    views: Cell<usize>,
    /// Relations that the statement itself has made, by the names under which it reads them.
    shared: RefCell<Vec<(String, Arc<dyn Relation>)>>,
    /// Its calls of window functions, by their numbers.
    windows: RefCell<Vec<WindowCall>>,
    /// The work tables of its recursions, by the names of these.
    works: RefCell<Vec<(String, Arc<WorkTable>)>>,
}

impl<'a> Context<'a> {
    pub(crate) fn new(catalog: &'a dyn Catalog, params: Parameters<'a>, given: Given) -> Context<'a> {
        let mut options = ConfigOptions::default();
        // A LIMIT around a derived table takes the first rows of its order.
        options.sql_parser.enable_subquery_sort_elimination = false;
        options.execution.time_zone = Some(entasis_arrow::types::UTC.into());
        Context {
            catalog,
            params,
            given,
            session: catalog.session(),
            options,
            expr_planners: vec![
                Arc::new(Operators),
                Arc::new(datafusion_functions_aggregate::planner::AggregateFunctionPlanner),
            ],
            relation_planners: vec![Arc::new(Relations)],
            views: Cell::new(0),
            shared: RefCell::default(),
            windows: RefCell::default(),
            works: RefCell::default(),
        }
    }

    /// Binds a query that has been rewritten. Types are not coerced yet.
    ///
    /// # Errors
    /// Those of the binder.
    pub(crate) fn plan(&self, statement: Statement) -> DfResult<LogicalPlan> {
        let options = ParserOptions {
            parse_float_as_decimal: true,
            enable_ident_normalization: true,
            support_varchar_with_length: true,
            enable_options_value_normalization: false,
            collect_spans: true,
            map_string_types_to_utf8view: false,
            default_null_ordering: NullOrdering::NullsLast,
        };
        let types =
            self.params.types().into_iter().map(|ty| {
                Some(Arc::new(ArrowField::new("parameter", entasis_arrow::to_arrow_type(ty), true)) as FieldRef)
            });
        let mut context = PlannerContext::new().with_prepare_param_data_types(types.collect());
        SqlToRel::new_with_options(self, options).sql_statement_to_plan_with_context(statement, &mut context)
    }

    /// Binds and lowers a query.
    ///
    /// # Errors
    /// Those of rewriting, binding and lowering it.
    pub(crate) fn bind(&self, query: Box<ast::Query>) -> Result<Plan> {
        self.bind_named(query, false)
    }

    /// The same; `suffix` renames every result that might clash with another.
    ///
    /// # Errors
    /// As [`Context::bind`].
    pub(crate) fn bind_named(&self, query: Box<ast::Query>, suffix: bool) -> Result<Plan> {
        let mut statement = Statement::Query(query);
        rewrite(&mut statement, if suffix { ResultNames::Suffixed } else { ResultNames::Free }, self)?;
        let plan = self.plan(statement).map_err(crate::error::from_datafusion)?;
        let plan = coerce::coerce(plan).map_err(crate::error::from_datafusion)?;
        lower::lower(&plan, self)
    }

    /// Makes a relation known under a name that no user can write, which it returns.
    pub(crate) fn share(&self, relation: Arc<dyn Relation>) -> String {
        let mut shared = self.shared.borrow_mut();
        let name = format!("{SHARED}{}", shared.len());
        shared.push((name.clone(), relation));
        name
    }

    /// The name under which a call of a window function goes through the binder: the same for the same call.
    pub(crate) fn window(&self, call: WindowCall) -> String {
        let mut windows = self.windows.borrow_mut();
        let number = windows.iter().position(|known| *known == call).unwrap_or_else(|| {
            windows.push(call);
            windows.len() - 1
        });
        window::call_name(number)
    }

    /// The work tables of the recursions that have been bound, by their names.
    pub(crate) fn works(&self) -> Vec<(String, Arc<WorkTable>)> {
        self.works.borrow().clone()
    }

    pub(crate) fn options(&self) -> &ConfigOptions {
        &self.options
    }

    pub(crate) fn session(&self) -> Session {
        self.session
    }

    pub(crate) fn params(&self) -> Parameters<'a> {
        self.params
    }

    pub(crate) fn rows(&self) -> Option<&Rows> {
        self.given.rows.as_deref()
    }

    fn relation(&self, name: &str) -> Result<Option<Arc<dyn Relation>>> {
        if let Some(path) = name.strip_prefix(PATH) {
            return self.catalog.file(path).map(Some);
        }
        if name.starts_with(SHARED) {
            return Ok(self.shared.borrow().iter().find(|(own, _)| own == name).map(|(_, relation)| relation.clone()));
        }
        if name == TARGET && self.given.target.is_some() {
            return Ok(self.given.target.clone());
        }
        if let Some(relation) = self.catalog.table(name) {
            return Ok(Some(relation));
        }
        // "data.parquet" in double quotes is a path, too.
        let is_path = name.contains(['/', '*']) || name.ends_with(".parquet") || name.ends_with(".csv");
        if is_path { self.catalog.file(name).map(Some) } else { Ok(None) }
    }

    /// The columns of the table or view of that name, as they are called in a query.
    ///
    /// # Errors
    /// Input, if there is none; those of binding the view.
    pub(crate) fn columns_of_table(&self, name: &str) -> Result<Vec<String>> {
        let source = self.get_table_source(TableReference::bare(name)).map_err(crate::error::from_datafusion)?;
        Ok(source.schema().fields().iter().map(|field| field.name().clone()).collect())
    }

    /// The columns of a file or of a table function's result.
    ///
    /// # Errors
    /// Those of binding it.
    pub(crate) fn columns_of_relation(&self, relation: TableFactor) -> Result<Vec<String>> {
        let mut template = crate::parse::parse_query("SELECT * FROM t")?;
        if let ast::SetExpr::Select(select) = &mut *template.body {
            select.from[0].relation = relation;
        }
        let plan = self.plan(Statement::Query(template)).map_err(crate::error::from_datafusion)?;
        Ok(plan.schema().fields().iter().map(|field| field.name().clone()).collect())
    }

    /// An argument of a table function, as [`argument`] disguised it.
    fn argument(&self, expr: Expr) -> Result<Argument> {
        match expr {
            Expr::GroupingSet(GroupingSet::Rollup(elements)) => {
                elements.into_iter().map(|element| self.argument(element)).collect::<Result<_>>().map(Argument::List)
            }
            Expr::GroupingSet(GroupingSet::Cube(fields)) => {
                let field = |field| match field {
                    Expr::Alias(alias) => Ok((alias.name, self.argument(*alias.expr)?)),
                    other => Err(Error::internal(format!("{other} is no field"))),
                };
                fields.into_iter().map(field).collect::<Result<_>>().map(Argument::Struct)
            }
            constant => {
                let constant = coerce_constant(constant).map_err(crate::error::from_datafusion)?;
                lower::constant(&constant, self.params, self.session).map(|(value, ty)| Argument::Value(value, ty))
            }
        }
    }

    fn view(&self, text: &str) -> DfResult<Arc<dyn TableSource>> {
        if self.views.get() >= MAX_VIEWS {
            return Err(external(Error::input("a view contains itself")));
        }
        self.views.set(self.views.get() + 1);
        let plan = crate::parse::parse_query(text).map_err(external).and_then(|query| {
            let mut statement = Statement::Query(query);
            rewrite(&mut statement, ResultNames::Kept, self).map_err(external)?;
            self.plan(statement)
        });
        self.views.set(self.views.get() - 1);
        // Places in a view's text are not places in the statement.
        let plan = plan.map_err(|e| {
            let error = crate::error::from_datafusion(e);
            external(Error::new(error.kind(), format!("in a view: {}", error.message())))
        })?;
        Ok(Arc::new(Derived { plan }))
    }
}

/// What there is no table of that name, with advice.
pub(crate) fn unknown_table(name: &str, catalog: &dyn Catalog) -> Error {
    let error = Error::input(format!("there is no table {name}")).with_sqlstate(sqlstate::NO_TABLE);
    if let Some(schema) = missing_schema(name, catalog) {
        return error.with_hint(format!("there is no schema {schema}"));
    }
    let names = catalog.names();
    match crate::names::nearest(name, names.iter().map(String::as_str)) {
        Some(near) => error.with_hint(format!("did you mean {near}?")),
        None => error,
    }
}

/// One of our errors, to pass through the binder.
pub(crate) fn external(error: Error) -> DataFusionError {
    DataFusionError::External(Box::new(error))
}

impl ContextProvider for Context<'_> {
    fn get_table_source(&self, name: TableReference) -> DfResult<Arc<dyn TableSource>> {
        statement::check().map_err(external)?;
        let name = match name.schema() {
            Some(schema) => in_schema(schema, name.table()),
            None => name.table().to_owned(),
        };
        if let (ROWS, Some(rows)) = (name.as_str(), &self.given.rows) {
            return Ok(rows.clone());
        }
        if let Some(relation) = self.relation(&name).map_err(external)? {
            return Ok(Arc::new(Source::new(relation)));
        }
        match self.catalog.view(&name) {
            Some(text) => self.view(&text),
            None => Err(external(unknown_table(&name, self.catalog))),
        }
    }

    fn get_table_function_source(&self, name: &str, args: Vec<Expr>) -> DfResult<Arc<dyn TableSource>> {
        let args = args
            .into_iter()
            .map(|arg| match arg {
                Expr::Alias(alias) => Ok((Some(alias.name), self.argument(*alias.expr)?)),
                other => Ok((None, self.argument(other)?)),
            })
            .collect::<Result<Vec<_>>>()
            .map_err(|e| external(e.with_context(format!("arguments of {name}"))))?;
        if let (DESCRIBE, [(_, Argument::Value(Value::Text(text), _))]) = (name, args.as_slice()) {
            let plan = crate::bind::describe(text, self.catalog, self.params).map_err(|error| {
                let error = Error::new(error.kind(), format!("in DESCRIBE: {}", error.message()));
                external(error)
            })?;
            return Ok(Arc::new(Derived { plan }));
        }
        let relation = self.catalog.table_function(name, &args).map_err(|e| {
            let names = self.catalog.table_functions();
            let near = crate::names::nearest(name, names.iter().map(String::as_str)).filter(|near| *near != name);
            external(match near {
                Some(near) if e.hint().is_none() => e.with_hint(format!("did you mean {near}?")),
                _ => e,
            })
        })?;
        Ok(Arc::new(Source::new(relation)))
    }

    fn get_expr_planners(&self) -> &[Arc<dyn ExprPlanner>] {
        &self.expr_planners
    }

    fn get_relation_planners(&self) -> &[Arc<dyn RelationPlanner>] {
        &self.relation_planners
    }

    fn get_type_planner(&self) -> Option<Arc<dyn TypePlanner>> {
        Some(Arc::new(Types))
    }

    fn create_cte_work_table(&self, name: &str, schema: SchemaRef) -> DfResult<Arc<dyn TableSource>> {
        let fields = schema.fields().iter().map(|field| {
            let ty = match entasis_arrow::from_arrow_type(field.data_type())? {
                // A column of bare NULLs has no type; rows of further rounds need one.
                DataType::Null => DataType::Int32,
                other => other,
            };
            Ok(Field::new(field.name().as_str(), ty))
        });
        let fields = fields.collect::<Result<Vec<Field>>>().map_err(external)?;
        let work = Arc::new(WorkTable::new(visible(name), fields));
        self.works.borrow_mut().push((name.to_owned(), work.clone()));
        Ok(Arc::new(Source::new(work)))
    }

    fn get_function_meta(&self, name: &str) -> Option<Arc<ScalarUDF>> {
        if name == EXACT {
            return Some(native::udf(EXACT, Kind::Exact));
        }
        if name == SETS {
            return Some(native::udf(SETS, Kind::Sets));
        }
        if name == NEAREST {
            return Some(native::udf(NEAREST, Kind::Nearest));
        }
        if let Some((kind, sequence)) = sequence::call_in(name) {
            return Some(sequence::udf(kind, sequence, self.catalog.sequence(sequence), self.catalog));
        }
        Library::get().scalar(&name.to_ascii_lowercase())
    }

    fn get_higher_order_meta(&self, _: &str) -> Option<Arc<HigherOrderUDF>> {
        None
    }

    fn get_aggregate_meta(&self, name: &str) -> Option<Arc<AggregateUDF>> {
        Library::get().aggregate(&name.to_ascii_lowercase())
    }

    fn get_window_meta(&self, name: &str) -> Option<Arc<WindowUDF>> {
        let number = window::number_in(name)?;
        let call = self.windows.borrow().get(number)?.clone();
        Some(window::function(number, call))
    }

    fn get_variable_type(&self, _: &[String]) -> Option<ArrowType> {
        None
    }

    fn options(&self) -> &ConfigOptions {
        &self.options
    }

    fn udf_names(&self) -> Vec<String> {
        Library::get().names()
    }

    fn higher_order_function_names(&self) -> Vec<String> {
        Vec::new()
    }

    fn udaf_names(&self) -> Vec<String> {
        Vec::new()
    }

    fn udwf_names(&self) -> Vec<String> {
        Vec::new()
    }
}

// ---- relations ---------------------------------------------------------------------------------------------------

/// `FROM 'path'` and table functions with named arguments.
#[derive(Debug)]
struct Relations;

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
        other => Err(external(Error::input(format!("{other} is no argument of a table function")))),
    };
    match arg {
        FunctionArg::Unnamed(arg) => bind(arg, context),
        FunctionArg::Named { name, arg, .. } => Ok(bind(arg, context)?.alias(name.value.to_ascii_lowercase())),
        FunctionArg::ExprNamed { name, arg, .. } => {
            Ok(bind(arg, context)?.alias(name.to_string().trim_matches('"').to_ascii_lowercase()))
        }
    }
}

/// An argument, bound: lists and structs in disguise.
fn nested(expr: &ast::Expr, context: &mut dyn RelationPlannerContext) -> DfResult<Expr> {
    let name = |key: &ast::Expr| match key {
        ast::Expr::Identifier(ident) => Ok(ident.value.clone()),
        ast::Expr::Value(literal) => match &literal.value {
            ast::Value::SingleQuotedString(text) => Ok(text.clone()),
            other => Err(external(Error::input(format!("{other} is no name of a field")))),
        },
        other => Err(external(Error::input(format!("{other} is no name of a field")))),
    };
    Ok(match expr {
        ast::Expr::Array(array) => {
            let elements = array.elem.iter().map(|element| nested(element, context)).collect::<DfResult<_>>()?;
            Expr::GroupingSet(GroupingSet::Rollup(elements))
        }
        ast::Expr::Dictionary(fields) => {
            let fields = fields.iter().map(|field| Ok(nested(&field.value, context)?.alias(field.key.value.clone())));
            Expr::GroupingSet(GroupingSet::Cube(fields.collect::<DfResult<_>>()?))
        }
        ast::Expr::Map(map) => {
            let fields = map.entries.iter().map(|entry| Ok(nested(&entry.value, context)?.alias(name(&entry.key)?)));
            Expr::GroupingSet(GroupingSet::Cube(fields.collect::<DfResult<_>>()?))
        }
        other => {
            let is_nested = |expr: &ast::Expr| match expr {
                ast::Expr::Array(_) | ast::Expr::Dictionary(_) | ast::Expr::Map(_) => ControlFlow::Break(()),
                _ => ControlFlow::Continue(()),
            };
            if ast::visit_expressions(other, is_nested).is_break() {
                return Err(external(Error::not_supported("nested types")));
            }
            context.sql_to_expr(other.clone(), &DFSchema::empty())?
        }
    })
}

/// What a file is called as a table: its name without directories and extension.
pub(crate) fn stem(path: &str) -> String {
    let name = path.rsplit(['/', '\\']).next().unwrap_or(path);
    let stem = name.split('.').next().unwrap_or(name);
    if stem.is_empty() || stem.contains(['*', '?', '[', '{']) { "file".into() } else { stem.to_lowercase() }
}

// ---- types -------------------------------------------------------------------------------------------------------

/// SQL's types as ours; DataFusion's defaults differ (nanoseconds, views, `DECIMAL(38, 10)`).
#[derive(Debug)]
struct Types;

impl TypePlanner for Types {
    fn plan_type_field(&self, ty: &ast::DataType) -> DfResult<Option<FieldRef>> {
        let ty = sql_type(ty).map_err(external)?;
        Ok(Some(Arc::new(ArrowField::new("type", entasis_arrow::to_arrow_type(ty), true))))
    }
}

/// The type that a text such as `DECIMAL(12, 2)` names.
///
/// # Errors
/// Input, if there is no such type; not supported, for nested types and others that are not there yet.
pub fn parse_type(name: &str) -> Result<DataType> {
    let unknown = || Error::input(format!("there is no type '{name}'"));
    let mut parser = Parser::new(&EntasisDialect).try_with_sql(name).map_err(|_| unknown())?;
    let ty = parser.parse_data_type().map_err(|_| unknown())?;
    match parser.peek_token().token {
        Token::EOF => sql_type(&ty),
        _ => Err(unknown()),
    }
}

/// The type that SQL text names.
///
/// # Errors
/// As [`parse_type`].
pub(crate) fn sql_type(ty: &ast::DataType) -> Result<DataType> {
    use ast::DataType as Sql;
    if let Some(part) = disobeyed(ty) {
        return Err(Error::not_supported(format!("{part} ({ty})")));
    }
    Ok(match ty {
        Sql::Boolean | Sql::Bool => DataType::Boolean,
        Sql::TinyInt(_) => DataType::Int8,
        Sql::SmallInt(_) | Sql::Int2(_) => DataType::Int16,
        Sql::Int(_) | Sql::Integer(_) | Sql::Int4(_) | Sql::MediumInt(_) | Sql::Int32 => DataType::Int32,
        Sql::BigInt(_) | Sql::Int8(_) | Sql::Int64 => DataType::Int64,
        Sql::Int16 => DataType::Int16,
        Sql::TinyIntUnsigned(_) | Sql::UTinyInt | Sql::UInt8 => DataType::UInt8,
        Sql::SmallIntUnsigned(_) | Sql::Int2Unsigned(_) | Sql::USmallInt | Sql::UInt16 => DataType::UInt16,
        Sql::IntUnsigned(_) | Sql::IntegerUnsigned(_) | Sql::Int4Unsigned(_) | Sql::UInt32 => DataType::UInt32,
        Sql::BigIntUnsigned(_) | Sql::Int8Unsigned(_) | Sql::UBigInt | Sql::UInt64 => DataType::UInt64,
        Sql::Float(ExactNumberInfo::Precision(digits)) if *digits > 24 => DataType::Float64,
        Sql::Float(_) | Sql::Real | Sql::Float4 | Sql::Float32 => DataType::Float32,
        Sql::Double(_) | Sql::DoublePrecision | Sql::Float8 | Sql::Float64 => DataType::Float64,
        Sql::Numeric(digits) | Sql::Decimal(digits) | Sql::Dec(digits) => match *digits {
            ExactNumberInfo::None => DataType::Decimal { precision: 18, scale: 3 },
            ExactNumberInfo::Precision(precision) => decimal(precision, 0)?,
            ExactNumberInfo::PrecisionAndScale(precision, scale) => decimal(precision, scale)?,
        },
        Sql::Varchar(_)
        | Sql::Char(_)
        | Sql::Character(_)
        | Sql::CharacterVarying(_)
        | Sql::CharVarying(_)
        | Sql::Nvarchar(_)
        | Sql::Text
        | Sql::String(_)
        | Sql::Clob(_) => DataType::Varchar,
        Sql::Bytea | Sql::Blob(_) | Sql::Binary(_) | Sql::Varbinary(_) | Sql::Bytes(_) => DataType::Blob,
        Sql::Date | Sql::Date32 => DataType::Date,
        Sql::Time(_, TimezoneInfo::None | TimezoneInfo::WithoutTimeZone) => DataType::Time,
        Sql::Timestamp(_, TimezoneInfo::None | TimezoneInfo::WithoutTimeZone) | Sql::Datetime(_) => DataType::Timestamp,
        Sql::Timestamp(_, _) => DataType::TimestampTz,
        Sql::Interval { .. } => DataType::Interval,
        Sql::Uuid => DataType::Uuid,
        Sql::Array(_) | Sql::Struct(..) | Sql::Map(..) | Sql::Tuple(_) | Sql::Nested(_) | Sql::Union(_) => {
            return Err(Error::not_supported("nested types"));
        }
        // The widest integers: 38 digits.
        Sql::HugeInt | Sql::UHugeInt | Sql::Int128 | Sql::UInt128 => DataType::Decimal { precision: 38, scale: 0 },
        other => match other.to_string().to_ascii_uppercase().as_str() {
            "UINTEGER" | "UINT" => DataType::UInt32,
            "LONG" => DataType::Int64,
            "TIMESTAMPTZ" => DataType::TimestampTz,
            "TIMESTAMP_US" => DataType::Timestamp,
            name @ ("TIMESTAMP_S" | "TIMESTAMP_MS" | "TIMESTAMP_NS") => {
                return Err(Error::not_supported(name).with_hint("TIMESTAMP has microseconds"));
            }
            "JSON" | "JSONB" => return Err(Error::not_supported("JSON").with_hint("VARCHAR holds its text")),
            "GUID" => DataType::Uuid,
            "BPCHAR" => DataType::Varchar,
            name => return Err(Error::input(format!("there is no type {name}"))),
        },
    })
}

/// What a type is written with that nobody obeys, if anything. (The lengths of texts are one of DuckDB's habits: VARCHAR(n) takes
/// longer ones, too.)
fn disobeyed(ty: &ast::DataType) -> Option<&'static str> {
    use ast::DataType as Sql;
    // The digits of a fraction of a second; there are six.
    let seconds =
        |digits: &Option<u64>| digits.is_some_and(|digits| digits != 6).then_some("seconds of this precision");
    match ty {
        Sql::Time(digits, _) | Sql::Timestamp(digits, _) | Sql::Datetime(digits) | Sql::TimestampNtz(digits) => {
            seconds(digits)
        }
        Sql::TinyInt(width)
        | Sql::SmallInt(width)
        | Sql::Int2(width)
        | Sql::Int(width)
        | Sql::Integer(width)
        | Sql::Int4(width)
        | Sql::MediumInt(width)
        | Sql::BigInt(width)
        | Sql::Int8(width)
        | Sql::TinyIntUnsigned(width)
        | Sql::SmallIntUnsigned(width)
        | Sql::Int2Unsigned(width)
        | Sql::IntUnsigned(width)
        | Sql::IntegerUnsigned(width)
        | Sql::Int4Unsigned(width)
        | Sql::BigIntUnsigned(width)
        | Sql::Int8Unsigned(width) => width.is_some().then_some("integers of a width"),
        Sql::Double(ExactNumberInfo::Precision(_) | ExactNumberInfo::PrecisionAndScale(..))
        | Sql::Float(ExactNumberInfo::PrecisionAndScale(..)) => Some("floats with a number of digits"),
        Sql::Binary(Some(_)) | Sql::Varbinary(Some(_)) | Sql::Blob(Some(_)) | Sql::Bytes(Some(_)) => {
            Some("a length of bytes")
        }
        Sql::Interval { fields, precision } => {
            (fields.is_some() || precision.is_some()).then_some("an INTERVAL of some units")
        }
        _ => None,
    }
}

fn decimal(precision: u64, scale: i64) -> Result<DataType> {
    match (u8::try_from(precision), u8::try_from(scale)) {
        (Ok(precision @ 1..=38), Ok(scale)) if scale <= precision => Ok(DataType::Decimal { precision, scale }),
        _ => Err(Error::input(format!(
            "DECIMAL({precision}, {scale}) is no type: a decimal has 1 to 38 digits, of which at most all are decimals"
        ))),
    }
}

// ---- operators ---------------------------------------------------------------------------------------------------

/// Operators where DuckDB and PostgreSQL agree with each other and DataFusion does not, and the special syntax of a few
/// functions.
#[derive(Debug)]
struct Operators;

fn call(name: &'static str, kind: Kind, args: Vec<Expr>) -> Expr {
    Expr::ScalarFunction(ScalarFunction::new_udf(native::udf(name, kind), args))
}

fn binary(left: Expr, op: Operator, right: Expr) -> Expr {
    Expr::BinaryExpr(BinaryExpr::new(Box::new(left), op, Box::new(right)))
}

fn library_call(name: &str, args: Vec<Expr>) -> DfResult<PlannerResult<Vec<Expr>>> {
    match Library::get().scalar(name) {
        Some(udf) => Ok(PlannerResult::Planned(Expr::ScalarFunction(ScalarFunction::new_udf(udf, args)))),
        None => Ok(PlannerResult::Original(args)),
    }
}

impl ExprPlanner for Operators {
    fn plan_binary_op(&self, expr: RawBinaryExpr, schema: &DFSchema) -> DfResult<PlannerResult<RawBinaryExpr>> {
        use BinaryOperator as Op;
        statement::check().map_err(external)?;
        let typed = matches!(
            expr.op,
            Op::Divide
                | Op::DuckIntegerDivide
                | Op::Minus
                | Op::Plus
                | Op::Multiply
                | Op::BitwiseXor
                | Op::PGExp
                | Op::Eq
                | Op::NotEq
                | Op::Lt
                | Op::LtEq
                | Op::Gt
                | Op::GtEq
                | Op::StringConcat
                | Op::Custom(_)
        );
        if !typed {
            return Ok(PlannerResult::Original(expr));
        }
        let (Ok(left_type), Ok(right_type)) = (expr.left.get_type(schema), expr.right.get_type(schema)) else {
            return Ok(PlannerResult::Original(expr));
        };
        let RawBinaryExpr { op, left, right } = expr;
        let (left, right) = (bracketed(left, &op, false), bracketed(right, &op, true));
        let interval = ArrowType::Interval(IntervalUnit::MonthDayNano);
        let number = |t: &ArrowType| t.is_numeric();
        let text = |t: &ArrowType| matches!(t, ArrowType::Utf8 | ArrowType::Utf8View | ArrowType::LargeUtf8);
        let uuid = ArrowType::FixedSizeBinary(16);
        let says = |t: &ArrowType| number(t) || *t == uuid || *t == ArrowType::Boolean || t.is_temporal();
        let planned = match (&op, &left_type, &right_type) {
            (Op::StringConcat, ArrowType::Null, ArrowType::Null) => {
                binary(cast(left, ArrowType::Utf8), Operator::StringConcat, right)
            }
            // A decimal divided is a DOUBLE.
            (Op::Divide, l, r) if number(l) && number(r) && (l.is_decimal() || r.is_decimal()) => {
                binary(cast(left, ArrowType::Float64), Operator::Divide, cast(right, ArrowType::Float64))
            }
            (Op::DuckIntegerDivide, l, r) if l.is_integer() && r.is_integer() => binary(left, Operator::Divide, right),
            (Op::BitwiseXor | Op::PGExp, l, r) if number(l) && number(r) => {
                let args = vec![cast(left, ArrowType::Float64), cast(right, ArrowType::Float64)];
                match library_call("power", args)? {
                    PlannerResult::Planned(expr) => expr,
                    PlannerResult::Original(_) => return Err(external(Error::internal("power is missing"))),
                }
            }
            (Op::Minus, ArrowType::Date32, ArrowType::Date32) => {
                call("days between", Kind::Operator(ArithmeticOp::Subtract, OperatorResult::Days), vec![left, right])
            }
            (Op::Plus, ArrowType::Date32, r) if r.is_integer() => {
                let args = vec![left, cast(right, ArrowType::Int64)];
                call("add days", Kind::Operator(ArithmeticOp::Add, OperatorResult::Date), args)
            }
            (Op::Plus, l, ArrowType::Date32) if l.is_integer() => {
                let args = vec![right, cast(left, ArrowType::Int64)];
                call("add days", Kind::Operator(ArithmeticOp::Add, OperatorResult::Date), args)
            }
            (Op::Minus, ArrowType::Date32, r) if r.is_integer() => {
                let args = vec![left, cast(right, ArrowType::Int64)];
                call("subtract days", Kind::Operator(ArithmeticOp::Subtract, OperatorResult::Date), args)
            }
            // So is a moment of a moment; a literal of the other side is one, too.
            (Op::Minus, l, r) if is_moment(l) && is_moment(r) => between(left, right, l, r),
            (Op::Minus, l @ ArrowType::Timestamp(..), r) if text(r) && matches!(right, Expr::Literal(..)) => {
                let right = cast(right, l.clone());
                between(left, right, l, l)
            }
            (Op::Minus, l, r @ ArrowType::Timestamp(..)) if text(l) && matches!(left, Expr::Literal(..)) => {
                let left = cast(left, r.clone());
                between(left, right, r, r)
            }
            // A literal of the other side is a date, too.
            (Op::Minus, ArrowType::Date32, r) if text(r) && matches!(right, Expr::Literal(..)) => {
                let args = vec![left, cast(right, ArrowType::Date32)];
                call("days between", Kind::Operator(ArithmeticOp::Subtract, OperatorResult::Days), args)
            }
            (Op::Multiply, l, r) if *l == interval && (number(r) || r.is_null()) => times(left, right, r),
            (Op::Multiply, l, r) if (number(l) || l.is_null()) && *r == interval => times(right, left, l),
            (Op::Divide, l, r) if *l == interval && (number(r) || r.is_null()) => {
                let args = vec![left, cast(right, ArrowType::Float64)];
                call("divided", Kind::Operator(ArithmeticOp::Divide, OperatorResult::Interval), args)
            }
            (Op::Plus | Op::Minus, l, r) if moved(&op, l, r).is_some() => {
                let (result, swapped) = moved(&op, l, r).expect("tested");
                let arithmetic = if op == Op::Plus { ArithmeticOp::Add } else { ArithmeticOp::Subtract };
                let args = if swapped { vec![right, left] } else { vec![left, right] };
                call("moved", Kind::Operator(arithmetic, result), args)
            }
            // A text beside a number is a number, beside a UUID a UUID; likewise with booleans, dates and times.
            (_, l, r) if comparison(&op).is_some() && says(l) && text(r) => {
                let ty = coerce::type_beside(l, &right);
                binary(left, comparison(&op).expect("tested"), cast(right, ty))
            }
            (_, l, r) if comparison(&op).is_some() && text(l) && says(r) => {
                let ty = coerce::type_beside(r, &left);
                binary(cast(left, ty), comparison(&op).expect("tested"), right)
            }
            (Op::Custom(_), _, _) if comparison(&op).is_some() => binary(left, comparison(&op).expect("tested"), right),
            _ => return Ok(PlannerResult::Original(RawBinaryExpr { op, left, right })),
        };
        Ok(PlannerResult::Planned(planned))
    }

    /// Arguments under names that say all of them.
    fn plan_aggregate(&self, mut expr: RawAggregateExpr) -> DfResult<PlannerResult<RawAggregateExpr>> {
        let filter = expr.filter.iter_mut().map(|filter| &mut **filter);
        let keys = expr.order_by.iter_mut().map(|key| &mut key.expr);
        for arg in expr.args.iter_mut().chain(filter).chain(keys) {
            #[expect(deprecated)]
            if !matches!(arg, Expr::Column(_) | Expr::Literal(..) | Expr::Wildcard { .. }) {
                *arg = exact(std::mem::take(arg));
            }
        }
        Ok(PlannerResult::Original(expr))
    }

    fn plan_extract(&self, mut args: Vec<Expr>) -> DfResult<PlannerResult<Vec<Expr>>> {
        // `extract('year' FROM x)` comes with its quotes.
        if let Some(Expr::Literal(ScalarValue::Utf8(Some(field)), _)) = args.first_mut() {
            *field = field.trim_matches('\'').to_owned();
        }
        library_call("date_part", args)
    }

    fn plan_substring(&self, args: Vec<Expr>) -> DfResult<PlannerResult<Vec<Expr>>> {
        library_call("substring", args)
    }

    fn plan_position(&self, args: Vec<Expr>) -> DfResult<PlannerResult<Vec<Expr>>> {
        library_call("strpos", args)
    }

    fn plan_overlay(&self, args: Vec<Expr>) -> DfResult<PlannerResult<Vec<Expr>>> {
        library_call("overlay", args)
    }
}

/// An operand under a name that says which operator is applied first, where brackets say so: the binder's names of
/// `(a + b) * c` and `a + b * c` are the same.
fn bracketed(operand: Expr, around: &BinaryOperator, right: bool) -> Expr {
    use BinaryOperator as Op;
    let around = match around {
        Op::Plus | Op::Minus => Operator::Plus.precedence(),
        Op::Multiply | Op::Divide | Op::DuckIntegerDivide => Operator::Multiply.precedence(),
        _ => return operand,
    };
    match &operand {
        Expr::BinaryExpr(inner) if inner.op.precedence() < around + u8::from(right) => exact(operand),
        _ => operand,
    }
}

fn times(interval: Expr, factor: Expr, ty: &ArrowType) -> Expr {
    let factor = cast(factor, if ty.is_integer() { ArrowType::Int64 } else { ArrowType::Float64 });
    call("times", Kind::Operator(ArithmeticOp::Multiply, OperatorResult::Interval), vec![interval, factor])
}

/// What `left + right` or `left - right` is, if one is a date or a time of day and the other an interval or a time; and
/// whether the date has to be put first.
fn moved(op: &BinaryOperator, left: &ArrowType, right: &ArrowType) -> Option<(OperatorResult, bool)> {
    use ArrowType::{Date32, Interval, Time64};
    let plus = *op == BinaryOperator::Plus;
    Some(match (left, right) {
        (Date32, Interval(_)) => (OperatorResult::Timestamp, false),
        (Interval(_), Date32) if plus => (OperatorResult::Timestamp, true),
        (Date32, Time64(_)) if plus => (OperatorResult::Timestamp, false),
        (Time64(_), Date32) if plus => (OperatorResult::Timestamp, true),
        (Time64(_), Interval(_)) => (OperatorResult::Time, false),
        (Interval(_), Time64(_)) if plus => (OperatorResult::Time, true),
        (Time64(_), Time64(_)) if !plus => (OperatorResult::Interval, false),
        _ => return None,
    })
}

/// A date or a timestamp that has no literal's choice left.
fn is_moment(ty: &ArrowType) -> bool {
    matches!(ty, ArrowType::Date32 | ArrowType::Timestamp(..))
}

/// What is between two moments, of which one at least is a timestamp: an interval. Beside an instant both are instants.
fn between(left: Expr, right: Expr, left_type: &ArrowType, right_type: &ArrowType) -> Expr {
    let is_zoned = |ty: &ArrowType| matches!(ty, ArrowType::Timestamp(_, Some(_)));
    let settled = |expr: Expr, own: &ArrowType, other: &ArrowType| {
        let becomes_other = *own == ArrowType::Date32 || (is_zoned(other) && !is_zoned(own));
        if becomes_other { cast(expr, other.clone()) } else { expr }
    };
    let args = vec![settled(left, left_type, right_type), settled(right, right_type, left_type)];
    call("between", Kind::Operator(ArithmeticOp::Subtract, OperatorResult::Interval), args)
}

fn comparison(op: &BinaryOperator) -> Option<Operator> {
    Some(match op {
        BinaryOperator::Eq => Operator::Eq,
        BinaryOperator::NotEq => Operator::NotEq,
        BinaryOperator::Lt => Operator::Lt,
        BinaryOperator::LtEq => Operator::LtEq,
        BinaryOperator::Gt => Operator::Gt,
        BinaryOperator::GtEq => Operator::GtEq,
        BinaryOperator::Custom(name) if name == IS_DISTINCT => Operator::IsDistinctFrom,
        BinaryOperator::Custom(name) if name == IS_NOT_DISTINCT => Operator::IsNotDistinctFrom,
        _ => return None,
    })
}
