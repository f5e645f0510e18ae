//! The information that DataFusion's binder requests, from the [`Catalog`] and the function library.
//!
//! The binder's hooks are few and typed for its own purposes, so some things pass through them in disguise:
//! paths and the arguments of table functions ([`super::relations`]), calls of window functions and of
//! sequences, the aggregates of outer queries (under names of their own), and operators to which DataFusion
//! would give other types ([`super::operators`]).
//!
//! **Queries within a query.** The text of a view, a `DESCRIBE` in `FROM`, the constant arguments of a table
//! function and a query of a `WITH` that is computed once are planned while the binder requests them. This
//! takes steps besides the binder, which are in higher layers and are passed to a context ([`Steps`]).

use super::coerce::{coerce, coerce_constant};
use super::operators::Operators;
use super::relations::{PATH, Relations};
use super::source::{Derived, Rows, Source};
use super::types::Types;
use crate::error::{external, from_datafusion};
use crate::functions::native::{self, Kind};
use crate::functions::window_call::{self, WindowCall};
use crate::functions::{Library, outer_aggregate, sequence};
use crate::hidden::{DESCRIBE, EXACT, NEAREST, REGISTERED, SETS, number_in, query_of_all, visible};
use arrow_schema::{DataType as ArrowType, Field as ArrowField, FieldRef, SchemaRef};
use datafusion_common::config::ConfigOptions;
use datafusion_common::{Result as DfResult, TableReference};
use datafusion_expr::expr::GroupingSet;
use datafusion_expr::planner::{ContextProvider, ExprPlanner, RelationPlanner, TypePlanner};
use datafusion_expr::{AggregateUDF, Expr, HigherOrderUDF, LogicalPlan, ScalarUDF, TableSource, WindowUDF};
use datafusion_sql::planner::{NullOrdering, ParserOptions, PlannerContext, SqlToRel};
use entasis_binder::environment::schema::unknown_table;
use entasis_binder::environment::{Catalog, Parameters};
use entasis_engine::plan::Plan;
use entasis_engine::recursive::WorkTable;
use entasis_engine::relation::Relation;
use entasis_functions::Argument;
use entasis_functions::Session;
use entasis_syntax::object_name::in_schema;
use entasis_syntax::parse::parse_query;
use entasis_syntax::{is_on_deep_stack, needs_deep_stack};
use entasis_vector::error::sqlstate;
use entasis_vector::suggest::nearest;
use entasis_vector::{DataType, Error, Field, Result, Value, name, statement};
use sqlparser::ast::{self, Statement, TableFactor};
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

/// Maximum nesting depth of views.
const MAX_VIEWS: usize = 200;
/// The depth up to which the stack of the caller is enough.
const MAX_SHALLOW_VIEWS: usize = 16;
/// Prefix of the name of a relation created by the statement itself.
const SHARED: &str = "\u{1}shared:";

/// Tables that exist only in the binder, under names that no user can write.
#[derive(Debug, Clone, Default)]
pub(crate) struct Given {
    /// [`TARGET`]: the table that a statement changes, with its row ids.
    pub(crate) target: Option<Arc<dyn Relation>>,
    /// [`ROWS`]: rows that were bound before.
    pub(crate) rows: Option<Arc<Rows>>,
    /// The query is the text of a view.
    pub(crate) is_view: bool,
}

/// The name of [`Given::target`].
pub(crate) const TARGET: &str = "entasis:target";
/// The name of [`Given::rows`].
pub(crate) const ROWS: &str = "entasis:rows";

/// How the names of a query's results may change in the binder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ResultNames {
    /// They are kept, because other queries refer to them.
    Kept,
    /// They may get hidden parts.
    Free,
    /// Each one that might clash with another gets a hidden part, because the binder has refused the query
    /// for a clash.
    Suffixed,
}

/// The steps before and after the binder.
pub(crate) struct Steps {
    /// Rewrites a query for the binder.
    pub(crate) rewrite: fn(&mut Statement, ResultNames, &Context<'_>) -> Result<()>,
    /// Lowers a query that has been bound and coerced.
    pub(crate) lower: fn(&LogicalPlan, &Context<'_>) -> Result<Plan>,
    /// The value and the type of an expression that depends on no row.
    pub(crate) constant: fn(&Expr, Parameters<'_>, Session) -> Result<(Value, DataType)>,
    /// The rows that a `DESCRIBE` of this text returns.
    pub(crate) describe: fn(&str, &dyn Catalog, Parameters<'_>) -> Result<LogicalPlan>,
}

/// Everything that the binder sees of one statement.
pub(crate) struct Context<'a> {
    /// The names that the statement may use.
    catalog: &'a dyn Catalog,
    /// The statement's parameters.
    params: Parameters<'a>,
    /// Tables besides those of the catalog.
    given: Given,
    /// How queries within the statement are planned.
    steps: &'a Steps,
    /// The current time and the time zone.
    session: Session,
    /// The binder's settings.
    options: ConfigOptions,
    /// Plan operators.
    expr_planners: Vec<Arc<dyn ExprPlanner>>,
    /// Plan relations.
    relation_planners: Vec<Arc<dyn RelationPlanner>>,
    /// The names of the views that are being bound, outermost first.
    views: RefCell<Vec<String>>,
    /// Views that were bound, by name: those of which another reference is bound to the same plan.
    bound_views: RefCell<HashMap<String, Arc<dyn TableSource>>>,
    /// Number of aggregates of outer queries so far.
    aggregates: Cell<usize>,
    /// Relations created by the statement itself, by the names under which it reads them.
    shared: RefCell<Vec<(String, Arc<dyn Relation>)>>,
    /// The statement's calls of window functions, by number.
    windows: RefCell<Vec<WindowCall>>,
    /// The work tables of the statement's recursions.
    works: RefCell<Vec<Work>>,
    /// The keys of its recursions that have one, by number: names of columns in lower case.
    keys: RefCell<Vec<Vec<String>>>,
}

/// The work table of a recursion.
#[derive(Clone)]
pub(crate) struct Work {
    /// The name of the recursion.
    pub(crate) name: String,
    /// The rows of the last iteration.
    pub(crate) last: Arc<WorkTable>,
    /// For a recursion with a key: the key's columns, and all rows so far.
    pub(crate) keyed: Option<Keyed>,
}

/// The additional state of a recursion with a key.
#[derive(Clone)]
pub(crate) struct Keyed {
    /// The names of the columns, in lower case.
    pub(crate) key: Vec<String>,
    /// All rows so far.
    pub(crate) all: Arc<WorkTable>,
    /// True if all rows so far are read.
    pub(crate) is_all_read: Rc<Cell<bool>>,
}

impl<'a> Context<'a> {
    pub(crate) fn new(
        catalog: &'a dyn Catalog,
        params: Parameters<'a>,
        given: Given,
        steps: &'a Steps,
    ) -> Context<'a> {
        let mut options = ConfigOptions::default();
        // A LIMIT around a derived table takes the first rows of its order.
        options.sql_parser.enable_subquery_sort_elimination = false;
        options.execution.time_zone = Some(entasis_arrow::types::UTC.into());
        Context {
            catalog,
            params,
            given,
            steps,
            session: catalog.session(),
            options,
            expr_planners: vec![
                Arc::new(Operators),
                Arc::new(datafusion_functions_aggregate::planner::AggregateFunctionPlanner),
            ],
            relation_planners: vec![Arc::new(Relations)],
            views: RefCell::default(),
            bound_views: RefCell::default(),
            aggregates: Cell::new(0),
            shared: RefCell::default(),
            windows: RefCell::default(),
            works: RefCell::default(),
            keys: RefCell::default(),
        }
    }

    /// Binds a query that has been rewritten. Its types are not coerced yet.
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
        let types = self.params.types().into_iter().map(|ty| {
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

    /// The same; if `suffix`, every result whose name might clash with another's is renamed.
    ///
    /// # Errors
    /// Those of [`Context::bind`].
    pub(crate) fn bind_named(&self, query: Box<ast::Query>, suffix: bool) -> Result<Plan> {
        let mut statement = Statement::Query(query);
        let names = if suffix { ResultNames::Suffixed } else { ResultNames::Free };
        (self.steps.rewrite)(&mut statement, names, self)?;
        let plan = self.plan(statement).and_then(coerce).map_err(from_datafusion)?;
        (self.steps.lower)(&plan, self)
    }

    /// Registers a relation under a name that no user can write, and returns the name.
    pub(crate) fn share(&self, relation: Arc<dyn Relation>) -> String {
        let mut shared = self.shared.borrow_mut();
        let name = format!("{SHARED}{}", shared.len());
        shared.push((name.clone(), relation));
        name
    }

    /// The name under which a call of a window function passes through the binder; equal calls have equal
    /// names.
    pub(crate) fn window(&self, call: WindowCall, is_volatile: bool) -> String {
        let mut windows = self.windows.borrow_mut();
        let known = windows.iter().position(|known| *known == call).filter(|_| !is_volatile);
        let number = known.unwrap_or_else(|| {
            windows.push(call);
            windows.len() - 1
        });
        window_call::call_name(number)
    }

    /// The number for another aggregate in a subquery of its query.
    pub(crate) fn next_aggregate(&self) -> usize {
        self.aggregates.replace(self.aggregates.get() + 1)
    }

    /// The work tables of the recursions bound so far.
    pub(crate) fn works(&self) -> Vec<Work> {
        self.works.borrow().clone()
    }

    /// Records the key of a recursion, and returns its number.
    pub(crate) fn key(&self, columns: Vec<String>) -> usize {
        let mut keys = self.keys.borrow_mut();
        keys.push(columns);
        keys.len() - 1
    }

    /// See [`Catalog::current`].
    pub(crate) fn current(&self) -> (String, String) {
        self.catalog.current()
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

    /// The relation of a name of the catalog, or of one that stands for something else, which is written as
    /// if it were in the schema `main`.
    fn relation(&self, full: &str) -> Result<Option<Arc<dyn Relation>>> {
        let (schema, name) = name::split(full);
        if schema == REGISTERED {
            return Ok(self.catalog.registered(name));
        }
        if schema != name::MAIN {
            return Ok(self.catalog.table(full));
        }
        if let Some(path) = name.strip_prefix(PATH) {
            return self.catalog.file(path).map(Some);
        }
        if name.starts_with(SHARED) {
            return Ok(self
                .shared
                .borrow()
                .iter()
                .find(|(own, _)| own == name)
                .map(|(_, relation)| relation.clone()));
        }
        if let Some(of) = query_of_all(name) {
            let works = self.works.borrow();
            // The binder is at its recursive term, so it is the last one of that name.
            let work = works.iter().rev().find(|work| work.name == of);
            let Some(keyed) = work.and_then(|work| work.keyed.as_ref()) else { return Ok(None) };
            keyed.is_all_read.set(true);
            return Ok(Some(keyed.all.clone()));
        }
        if name == TARGET && self.given.target.is_some() {
            return Ok(self.given.target.clone());
        }
        if let Some(relation) = self.catalog.table(full) {
            return Ok(Some(relation));
        }
        // "data.parquet" in double quotes is a path, too.
        let is_path = name.contains(['/', '*']) || name.ends_with(".parquet") || name.ends_with(".csv");
        if is_path { self.catalog.file(name).map(Some) } else { Ok(None) }
    }

    /// The table, view or other relation of a name of the catalog.
    fn source(&self, name: &str) -> DfResult<Arc<dyn TableSource>> {
        if let (ROWS, Some(rows)) = (name, &self.given.rows) {
            return Ok(rows.clone());
        }
        if let Some(relation) = self.relation(name).map_err(external)? {
            return Ok(Arc::new(Source::new(relation)));
        }
        if let Some(text) = self.catalog.view(name) {
            return self.view(name, &text);
        }
        // The text of a view names it, which is kept without what only this connection has.
        let is_view = self.given.is_view || !self.views.borrow().is_empty();
        let is_bare = is_view && name::split(name).0 == name::MAIN;
        match self.catalog.registered(name::own(name)).filter(|_| is_bare) {
            Some(relation) => Ok(Arc::new(Source::new(relation))),
            None => Err(external(unknown_table(name, self.catalog))),
        }
    }

    /// The columns of the table or view of that name, by their names in queries.
    ///
    /// # Errors
    /// Input, if it does not exist; those of binding the view.
    pub(crate) fn columns_of_table(&self, name: &str) -> Result<Vec<String>> {
        let source = self.source(name).map_err(from_datafusion)?;
        Ok(source.schema().fields().iter().map(|field| field.name().clone()).collect())
    }

    /// The columns of a file or of a table function's result.
    ///
    /// # Errors
    /// Those of binding it.
    pub(crate) fn columns_of_relation(&self, relation: TableFactor) -> Result<Vec<String>> {
        let mut template = parse_query("SELECT * FROM t")?;
        if let ast::SetExpr::Select(select) = &mut *template.body {
            select.from[0].relation = relation;
        }
        let plan = self.plan(Statement::Query(template)).map_err(from_datafusion)?;
        Ok(plan.schema().fields().iter().map(|field| field.name().clone()).collect())
    }

    /// An argument of a table function, with the disguise of [`super::relations`] removed.
    fn argument(&self, expr: Expr) -> Result<Argument> {
        match expr {
            Expr::GroupingSet(GroupingSet::Rollup(elements)) => elements
                .into_iter()
                .map(|element| self.argument(element))
                .collect::<Result<_>>()
                .map(Argument::List),
            Expr::GroupingSet(GroupingSet::Cube(fields)) => {
                let field = |field| match field {
                    Expr::Alias(alias) => Ok((alias.name, self.argument(*alias.expr)?)),
                    other => Err(Error::internal(format!("{other} is no field"))),
                };
                fields.into_iter().map(field).collect::<Result<_>>().map(Argument::Struct)
            }
            constant => {
                let constant = coerce_constant(constant).map_err(from_datafusion)?;
                let (value, ty) = (self.steps.constant)(&constant, self.params, self.session)?;
                Ok(Argument::Value(value, ty))
            }
        }
    }

    fn view(&self, name: &str, text: &str) -> DfResult<Arc<dyn TableSource>> {
        if let Some(bound) = self.bound_views.borrow().get(name) {
            return Ok(bound.clone());
        }
        let depth = self.views.borrow().len();
        if self.views.borrow().iter().any(|own| own == name) {
            return Err(external(Error::input(format!("the view {} contains itself", name::shown(name)))));
        }
        if depth >= MAX_SHALLOW_VIEWS && !is_on_deep_stack() {
            return Err(external(needs_deep_stack()));
        }
        if depth >= MAX_VIEWS {
            let text = format!("views are nested more than {MAX_VIEWS} deep");
            return Err(external(Error::resource(text).with_sqlstate(sqlstate::TOO_COMPLEX)));
        }
        self.views.borrow_mut().push(name.to_owned());
        let own = || (self.shared.borrow().len(), self.works.borrow().len(), self.keys.borrow().len());
        let before = own();
        let plan = parse_query(text).map_err(external).and_then(|query| {
            let mut statement = Statement::Query(query);
            (self.steps.rewrite)(&mut statement, ResultNames::Kept, self).map_err(external)?;
            self.plan(statement)
        });
        self.views.borrow_mut().pop();
        // Positions in a view's text are not positions in the statement.
        let plan = plan.map_err(|e| {
            let error = from_datafusion(e);
            if error.sqlstate() == sqlstate::NEEDS_STACK {
                return external(error);
            }
            external(Error::new(error.kind(), format!("in a view: {}", error.message())))
        })?;
        let source: Arc<dyn TableSource> = Arc::new(Derived { plan });
        // What is computed once for a reference is computed again for another.
        if own() == before {
            self.bound_views.borrow_mut().insert(name.to_owned(), source.clone());
        }
        Ok(source)
    }
}

impl ContextProvider for Context<'_> {
    fn get_table_source(&self, written: TableReference) -> DfResult<Arc<dyn TableSource>> {
        statement::check().map_err(external)?;
        let own = written.table();
        self.source(&match (written.catalog(), written.schema()) {
            (Some(database), Some(schema)) => name::in_database(database, &in_schema(schema, own)),
            (_, Some(schema)) => in_schema(schema, own),
            _ => name::joined(name::MAIN, own),
        })
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
            let plan = (self.steps.describe)(text, self.catalog, self.params).map_err(|error| {
                let error = Error::new(error.kind(), format!("in DESCRIBE: {}", error.message()));
                external(error)
            })?;
            return Ok(Arc::new(Derived { plan }));
        }
        let relation = self.catalog.table_function(name, &args).map_err(|e| {
            let names = self.catalog.table_functions();
            let near = nearest(name, names.iter().map(String::as_str)).filter(|near| *near != name);
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
                // A column of untyped NULLs has no type; the rows of further iterations need one.
                DataType::Null => DataType::Int32,
                other => other,
            };
            Ok(Field::new(field.name().as_str(), ty))
        });
        let fields = fields.collect::<Result<Vec<Field>>>().map_err(external)?;
        let keyed = number_in(name).and_then(|number| {
            let all = WorkTable::new(format!("recurring.{}", visible(name)), fields.clone());
            let key = self.keys.borrow().get(number)?.clone();
            Some(Keyed { key, all: Arc::new(all), is_all_read: Rc::default() })
        });
        let last = Arc::new(WorkTable::new(visible(name), fields));
        self.works.borrow_mut().push(Work { name: name.to_owned(), last: last.clone(), keyed });
        Ok(Arc::new(Source::new(last)))
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
        if let Some(function) = outer_aggregate::named(name) {
            return Some(function);
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
        let number = window_call::number_in(name)?;
        let call = self.windows.borrow().get(number)?.clone();
        Some(window_call::function(number, call))
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
