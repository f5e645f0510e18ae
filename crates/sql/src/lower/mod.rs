//! Lowers bound plans of DataFusion to plans of the engine, one node at a time, inputs first.
//!
//! DataFusion identifies a column by table and name, the engine by [`ColumnId`]. Each lowered node comes with
//! its [`Scope`]: the binder's schema and, for each field, the id that represents it. Projections of plain
//! columns become no node, only a scope.
//!
//! A subquery in an expression becomes a join around the node that is the input of the expression, and a
//! column of that join represents its value ([`subquery`]); if it refers to the outer query, that is a
//! dependent join, which the optimizer decorrelates. Therefore lowering an expression takes the node, too.
//!
//! ```text
//! join ← asof                          joins
//! subquery  window                     subqueries; window functions
//! aggregate                            groups
//! grouping  recursive                  grouping sets; recursions
//! expr ← literal                       expressions
//! ```

mod aggregate;
mod asof;
mod elements;
mod expr;
mod grouping;
mod join;
mod literal;
mod recursive;
mod subquery;
mod window;

use crate::binding::context::{Context, Work};
use crate::binding::source::{Rows, Source};
use crate::error::readable;
use crate::hidden::{marked_set, visible};
use datafusion_common::DFSchemaRef;
use datafusion_common::config::ConfigOptions;
use datafusion_expr::simplify::SimplifyContext;
use datafusion_expr::{self as df, Expr as DfExpr, LogicalPlan};
use entasis_binder::environment::Parameters;
use entasis_binder::zone::{apply_to_plan, in_zone};
use entasis_engine::plan::{
    Columns, Distinct, Filter, Limit, Node, Output, Plan, Project, Scan, SetKind, SetOperation, Sort,
    SortKey, Values,
};
use entasis_engine::relation::Relation;
use entasis_engine::shared::Shared;
use entasis_functions::Session;
use entasis_functions::expressions::fold;
use entasis_vector::expr::Expr;
use entasis_vector::{ColumnId, DataType, Error, Field, Result, Value, statement};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// The fields of a bound node and the columns that represent them.
#[derive(Debug, Clone)]
pub(crate) struct Scope {
    schema: DFSchemaRef,
    columns: Vec<ColumnId>,
}

/// A lowered node with its scope.
struct Lowered {
    node: Node,
    scope: Scope,
}

/// The state of lowering one statement.
struct Lowering<'a> {
    columns: Columns,
    /// Scopes of the enclosing queries, outermost first.
    outer: Vec<Scope>,
    /// The work tables of recursions, found by name.
    works: Vec<Work>,
    /// The columns of aggregates of outer queries that subqueries read, by number.
    outer_aggregates: HashMap<usize, ColumnId>,
    params: Parameters<'a>,
    session: Session,
    simplify: SimplifyContext,
    config: Arc<ConfigOptions>,
}

/// Lowers a bound and coerced query.
///
/// # Errors
/// Not supported, with the name of the feature; input, for invalid constants.
pub(crate) fn lower(plan: &LogicalPlan, context: &Context) -> Result<Plan> {
    let mut lowering = Lowering::new(context.options(), context.params(), context.session());
    lowering.works = context.works();
    if let Some(rows) = context.rows() {
        lowering.columns = rows.plan.columns.clone();
    }
    let lowered = lowering.plan(plan)?;
    let fields = lowered.scope.schema.fields().iter();
    let output = fields
        .zip(&lowered.scope.columns)
        .map(|(field, &column)| {
            let (name, own) = (visible(field.name()), &lowering.columns.get(column).name);
            // A column that is passed through keeps the letter case of its name in the table.
            Output { name: if own.eq_ignore_ascii_case(&name) { own.clone() } else { name }, column }
        })
        .collect();
    Ok(Plan { root: lowered.node, columns: lowering.columns, output })
}

/// The value and type of an expression that depends on no row.
///
/// # Errors
/// Input, if it depends on rows.
pub(crate) fn constant(expr: &DfExpr, params: Parameters<'_>, session: Session) -> Result<(Value, DataType)> {
    let mut lowering = Lowering::new(&ConfigOptions::default(), params, session);
    let scope = Scope { schema: Arc::new(datafusion_common::DFSchema::empty()), columns: Vec::new() };
    let mut node = one_row();
    match in_zone(lowering.expr(expr, &scope, &mut node)?, session.zone) {
        Expr::Literal { value, ty } => Ok((value, ty)),
        _ => Err(Error::input(readable(&format!("{expr} is not a constant")))),
    }
}

/// The value of a plan that is a single row of a single literal, converted to `ty`; `None` for any other
/// plan.
pub(crate) fn literal_row(plan: &Plan, ty: DataType) -> Option<Value> {
    let [output] = plan.output.as_slice() else { return None };
    let Node::Project(Project { input, exprs }) = &plan.root else { return None };
    let Node::Values(Values { rows, .. }) = &**input else { return None };
    match exprs.iter().find(|(id, _)| *id == output.column)? {
        (_, Expr::Literal { value, ty: from }) if rows.len() == 1 => fold::cast(value, *from, ty),
        _ => None,
    }
}

/// Adds a column with one value.
pub(crate) fn add_constant(plan: &mut Plan, name: &str, value: Value, ty: DataType) -> Output {
    let column = plan.columns.add(name, ty, value.is_null());
    match &mut plan.root {
        Node::Values(values) => {
            values.columns.push(column);
            values.rows.iter_mut().for_each(|row| row.push(value.clone()));
        }
        Node::Project(project) => project.exprs.push((column, Expr::literal(value, ty))),
        root => {
            let exprs = vec![(column, Expr::literal(value, ty))];
            *root = Node::Project(Project { input: take(root), exprs });
        }
    }
    Output { name: name.into(), column }
}

/// Rows without columns.
pub(crate) fn empty_rows(count: usize) -> Plan {
    let root = Node::Values(Values { columns: Vec::new(), rows: vec![Vec::new(); count] });
    Plan { root, columns: Columns::default(), output: Vec::new() }
}

/// The same plan with its outputs cast to `types`, for `INSERT`.
pub(crate) fn cast_outputs(plan: &mut Plan, types: &[DataType]) {
    let mut exprs = Vec::new();
    for (output, &ty) in plan.output.iter_mut().zip(types) {
        let from = plan.columns.ty(output.column);
        if from == ty {
            continue;
        }
        // Values in the plan itself are converted now.
        if let Node::Values(values) = &mut plan.root
            && let Some(at) = values.columns.iter().position(|column| *column == output.column)
        {
            let converted: Option<Vec<Value>> =
                values.rows.iter().map(|row| fold::cast(&row[at], from, ty)).collect();
            if let Some(converted) = converted {
                let column = plan.columns.add(output.name.clone(), ty, true);
                for (row, value) in values.rows.iter_mut().zip(converted) {
                    row.push(value);
                }
                values.columns.push(column);
                output.column = column;
                continue;
            }
        }
        let input = plan.columns.expr(output.column);
        let nullable = plan.columns.get(output.column).nullable;
        let column = plan.columns.add(output.name.clone(), ty, nullable);
        exprs.push((column, Expr::Cast { input: Box::new(input), ty, lenient: false }));
        output.column = column;
    }
    if !exprs.is_empty() {
        let input = Box::new(std::mem::replace(&mut plan.root, one_row()));
        plan.root = Node::Project(Project { input, exprs });
    }
}

/// One row without columns.
fn one_row() -> Node {
    Node::Values(Values { columns: Vec::new(), rows: vec![Vec::new()] })
}

/// Moves a node out, to wrap it.
fn take(node: &mut Node) -> Box<Node> {
    Box::new(std::mem::replace(node, one_row()))
}

impl<'a> Lowering<'a> {
    fn new(options: &ConfigOptions, params: Parameters<'a>, session: Session) -> Lowering<'a> {
        let config = Arc::new(options.clone());
        let simplify =
            SimplifyContext::builder().with_config_options(config.clone()).with_current_time().build();
        Lowering {
            columns: Columns::default(),
            outer: Vec::new(),
            works: Vec::new(),
            outer_aggregates: HashMap::new(),
            params,
            session,
            simplify,
            config,
        }
    }

    fn plan(&mut self, plan: &LogicalPlan) -> Result<Lowered> {
        statement::check()?;
        match plan {
            LogicalPlan::Projection(projection) => self.projection(projection),
            LogicalPlan::Filter(filter) => self.filter(filter),
            LogicalPlan::Aggregate(aggregate) => self.aggregate(aggregate),
            LogicalPlan::Sort(sort) => {
                let Lowered { mut node, scope } = self.plan(&sort.input)?;
                let keys = self.sort_keys(&sort.expr, &scope, &mut node)?;
                let node = Node::Sort(Sort { input: Box::new(node), keys, limit: sort.fetch });
                Ok(Lowered { node, scope })
            }
            LogicalPlan::Join(join) => self.join(join),
            LogicalPlan::Union(union) => {
                let inputs = union.inputs.iter().map(|input| self.plan(input)).collect::<Result<Vec<_>>>()?;
                self.set_operation(SetKind::Union, true, inputs, &union.schema)
            }
            LogicalPlan::TableScan(scan) => self.scan(scan),
            LogicalPlan::EmptyRelation(empty) => {
                let columns = self.new_columns(&empty.schema)?;
                let rows =
                    if empty.produce_one_row { vec![vec![Value::Null; columns.len()]] } else { vec![] };
                let scope = Scope { schema: empty.schema.clone(), columns: columns.clone() };
                Ok(Lowered { node: Node::Values(Values { columns, rows }), scope })
            }
            LogicalPlan::Subquery(subquery) => self.plan(&subquery.subquery),
            LogicalPlan::SubqueryAlias(alias) => self.subquery_alias(alias),
            LogicalPlan::Limit(limit) => self.limit(limit),
            LogicalPlan::Values(values) => self.values(values),
            LogicalPlan::Distinct(df::Distinct::All(input)) => {
                let Lowered { node, scope } = self.plan(input)?;
                let mut seen = HashSet::new();
                let keys = scope.columns.iter().copied().filter(|id| seen.insert(*id)).collect();
                Ok(Lowered { node: Node::Distinct(Distinct::new(node, keys)), scope })
            }
            LogicalPlan::Distinct(df::Distinct::On(on)) => self.distinct_on(on),
            LogicalPlan::Window(window) => self.window(window),
            LogicalPlan::RecursiveQuery(query) => self.recursive(query),
            LogicalPlan::Unnest(unnest) => self.elements(unnest),
            other => Err(Error::not_supported(format!("{} in a query", other.display()))),
        }
    }

    /// The rows of a node as a relation, with its columns in their order.
    fn share(&self, name: &str, node: Node) -> Arc<dyn Relation> {
        let columns = node.columns();
        let field = |&id: &ColumnId| Field::new(self.columns.get(id).name.as_str(), self.columns.ty(id));
        let schema = columns.iter().map(field).collect();
        let output = |&column: &ColumnId| Output { name: self.columns.get(column).name.clone(), column };
        let output = columns.iter().map(output).collect();
        let mut plan = Plan { root: node, columns: self.columns.clone(), output };
        apply_to_plan(&mut plan, self.session.zone);
        Arc::new(Shared::new(name.to_owned(), schema, plan))
    }

    /// New columns for all fields of a schema.
    fn new_columns(&mut self, schema: &DFSchemaRef) -> Result<Vec<ColumnId>> {
        let fields = schema.fields().iter();
        fields
            .map(|field| {
                let ty = entasis_arrow::from_arrow_type(field.data_type())?;
                Ok(self.columns.add(visible(field.name()), ty, field.is_nullable()))
            })
            .collect()
    }

    fn projection(&mut self, projection: &df::Projection) -> Result<Lowered> {
        let Lowered { mut node, scope } = self.plan(&projection.input)?;
        let mut columns = Vec::with_capacity(projection.expr.len());
        let mut exprs = Vec::new();
        for (expr, field) in projection.expr.iter().zip(projection.schema.fields()) {
            columns.push(match self.expr(expr, &scope, &mut node)? {
                Expr::Column { id, .. } if !self.is_outer(id, &scope) => id,
                // From here on, a column of an enclosing query is one of this query's own.
                other => {
                    let column = self.columns.add(visible(field.name()), other.ty(), field.is_nullable());
                    exprs.push((column, other));
                    column
                }
            });
        }
        if !exprs.is_empty() {
            node = Node::Project(Project { input: Box::new(node), exprs });
        }
        Ok(Lowered { node, scope: Scope { schema: projection.schema.clone(), columns } })
    }

    /// True for a column of a query that encloses the one whose columns are in `scope`.
    fn is_outer(&self, id: ColumnId, scope: &Scope) -> bool {
        !scope.columns.contains(&id) && self.outer.iter().any(|outer| outer.columns.contains(&id))
    }

    fn filter(&mut self, filter: &df::Filter) -> Result<Lowered> {
        let Lowered { mut node, scope } = self.plan(&filter.input)?;
        self.filter_node(&filter.predicate, &scope, &mut node)?;
        Ok(Lowered { node, scope })
    }

    /// Adds a filter on top of `node`. `IN` and `EXISTS` as conjuncts become semi and anti joins; plain
    /// conditions go below them.
    fn filter_node(&mut self, predicate: &DfExpr, scope: &Scope, node: &mut Node) -> Result<()> {
        let conjuncts = df::utils::split_conjunction(predicate);
        let (subqueries, plain): (Vec<&DfExpr>, Vec<&DfExpr>) =
            conjuncts.into_iter().partition(|conjunct| subquery::contains(conjunct));
        let mut predicates = Vec::new();
        for conjunct in plain {
            self.expr(conjunct, scope, node)?.split_conjunction(&mut predicates);
        }
        if !predicates.is_empty() {
            *node = Node::Filter(Filter { input: take(node), predicates });
        }
        let mut predicates = Vec::new();
        for conjunct in subqueries {
            if !self.semi_join(conjunct, scope, node)? {
                self.expr(conjunct, scope, node)?.split_conjunction(&mut predicates);
            }
        }
        if !predicates.is_empty() {
            *node = Node::Filter(Filter { input: take(node), predicates });
        }
        Ok(())
    }

    fn sort_keys(&mut self, keys: &[df::SortExpr], scope: &Scope, node: &mut Node) -> Result<Vec<SortKey>> {
        let mut lowered = Vec::with_capacity(keys.len());
        for key in keys {
            let expr = self.expr(&key.expr, scope, node)?;
            // A constant key does not order anything.
            if !matches!(expr, Expr::Literal { .. }) {
                lowered.push(SortKey { expr, descending: !key.asc, nulls_first: key.nulls_first });
            }
        }
        Ok(lowered)
    }

    fn scan(&mut self, scan: &df::TableScan) -> Result<Lowered> {
        if let Some(rows) = scan.source.downcast_ref::<Rows>() {
            let all: Vec<ColumnId> = rows.plan.output.iter().map(|output| output.column).collect();
            let columns = match &scan.projection {
                Some(indices) => indices.iter().map(|&i| all[i]).collect(),
                None => all,
            };
            let scope = Scope { schema: scan.projected_schema.clone(), columns };
            return Ok(Lowered { node: rows.plan.root.clone(), scope });
        }
        let Some(source) = scan.source.downcast_ref::<Source>() else {
            return Err(Error::internal(format!("{} is not a relation", scan.table_name)));
        };
        let relation = source.relation.clone();
        let indices: Vec<usize> = match &scan.projection {
            Some(indices) => indices.clone(),
            None => (0..relation.schema().len()).collect(),
        };
        let columns: Vec<(ColumnId, usize)> = indices
            .into_iter()
            .map(|i| {
                let field = &relation.schema()[i];
                (self.columns.add(&*field.name, field.ty, field.nullable), i)
            })
            .collect();
        let scope = Scope {
            schema: scan.projected_schema.clone(),
            columns: columns.iter().map(|(id, _)| *id).collect(),
        };
        Ok(Lowered { node: Node::Scan(Scan::all(relation, columns)), scope })
    }

    fn subquery_alias(&mut self, alias: &df::SubqueryAlias) -> Result<Lowered> {
        if let Some((kind, all)) = marked_set(alias.alias.table()) {
            let LogicalPlan::Union(union) = alias.input.as_ref() else {
                return Err(Error::internal("a set operation lost its inputs"));
            };
            let inputs = union.inputs.iter().map(|input| self.plan(input)).collect::<Result<Vec<_>>>()?;
            return self.set_operation(kind, all, inputs, &alias.schema);
        }
        let Lowered { node, scope } = self.plan(&alias.input)?;
        Ok(Lowered { node, scope: Scope { schema: alias.schema.clone(), columns: scope.columns } })
    }

    fn set_operation(
        &mut self,
        kind: SetKind,
        all: bool,
        inputs: Vec<Lowered>,
        schema: &DFSchemaRef,
    ) -> Result<Lowered> {
        let columns = self.new_columns(schema)?;
        let mut lowered = Vec::with_capacity(inputs.len());
        for Lowered { mut node, scope } in inputs {
            // The binder has cast every input to the common types, except untyped NULLs.
            let mut own = scope.columns;
            let mut exprs = Vec::new();
            for (column, target) in own.iter_mut().zip(&columns) {
                let ty = self.columns.ty(*target);
                if self.columns.ty(*column) != ty {
                    let cast = fold::cast_expr(self.columns.expr(*column), ty, false);
                    let name = self.columns.get(*column).name.clone();
                    *column = self.columns.add(name, ty, true);
                    exprs.push((*column, cast));
                }
            }
            if !exprs.is_empty() {
                node = Node::Project(Project { input: Box::new(node), exprs });
            }
            lowered.push((node, own));
        }
        let scope = Scope { schema: schema.clone(), columns: columns.clone() };
        Ok(Lowered { node: Node::SetOperation(SetOperation { kind, all, inputs: lowered, columns }), scope })
    }

    fn limit(&mut self, limit: &df::Limit) -> Result<Lowered> {
        let Lowered { mut node, scope } = self.plan(&limit.input)?;
        let offset = self.row_count(limit.skip.as_deref(), "OFFSET")?.unwrap_or(0);
        let count = self.row_count(limit.fetch.as_deref(), "LIMIT")?;
        if let Some(count) = count {
            limit_sort(&mut node, offset.saturating_add(count));
        }
        if offset > 0 || count.is_some() {
            node = Node::Limit(Limit { input: Box::new(node), offset, count });
        }
        Ok(Lowered { node, scope })
    }

    /// The number of rows in LIMIT or OFFSET; `None` if there is no such clause, and for NULL.
    fn row_count(&self, expr: Option<&DfExpr>, clause: &str) -> Result<Option<usize>> {
        let Some(expr) = expr else { return Ok(None) };
        let (value, ty) = constant(expr, self.params, self.session).map_err(|e| e.with_context(clause))?;
        match fold::cast(&value, ty, DataType::Int64) {
            Some(Value::Null) => Ok(None),
            Some(Value::Integer(count)) if count < 0 => Err(Error::input(format!("{clause} is negative"))),
            Some(Value::Integer(count)) => Ok(Some(usize::try_from(count).unwrap_or(usize::MAX))),
            _ => Err(Error::input(format!("{clause} is not a number of rows"))),
        }
    }

    fn values(&mut self, values: &df::Values) -> Result<Lowered> {
        let columns = self.new_columns(&values.schema)?;
        let types: Vec<DataType> = columns.iter().map(|id| self.columns.ty(*id)).collect();
        let empty = Scope { schema: Arc::new(datafusion_common::DFSchema::empty()), columns: Vec::new() };
        let mut rows = Vec::with_capacity(values.values.len());
        // Rows keep their places: whoever numbers them, takes the first, or gives them defaults sees these.
        let mut parts: Vec<(Node, Vec<ColumnId>)> = Vec::new();
        for row in &values.values {
            let mut node = one_row();
            let exprs = row
                .iter()
                .zip(&types)
                .map(|(expr, ty)| Ok(fold::cast_expr(self.expr(expr, &empty, &mut node)?, *ty, false)))
                .collect::<Result<Vec<Expr>>>()?;
            if exprs.iter().all(|expr| matches!(expr, Expr::Literal { .. })) {
                rows.push(exprs.into_iter().map(literal::into_value).collect());
                continue;
            }
            // A row whose values must be computed is a query of its own.
            if !rows.is_empty() {
                parts.push(self.rows_of_values(std::mem::take(&mut rows), &columns));
            }
            let exprs: Vec<(ColumnId, Expr)> = exprs
                .into_iter()
                .zip(&columns)
                .map(|(expr, id)| {
                    (self.columns.add(self.columns.get(*id).name.clone(), expr.ty(), true), expr)
                })
                .collect();
            let own = exprs.iter().map(|(id, _)| *id).collect();
            parts.push((Node::Project(Project { input: Box::new(node), exprs }), own));
        }
        let scope = Scope { schema: values.schema.clone(), columns: columns.clone() };
        if parts.is_empty() {
            return Ok(Lowered { node: Node::Values(Values { columns, rows }), scope });
        }
        if !rows.is_empty() {
            parts.push(self.rows_of_values(rows, &columns));
        }
        let node =
            Node::SetOperation(SetOperation { kind: SetKind::Union, all: true, inputs: parts, columns });
        Ok(Lowered { node, scope })
    }

    /// Some constant rows among others, in columns like `columns`.
    fn rows_of_values(&mut self, rows: Vec<Vec<Value>>, columns: &[ColumnId]) -> (Node, Vec<ColumnId>) {
        let own: Vec<ColumnId> = columns
            .iter()
            .map(|id| self.columns.add(self.columns.get(*id).name.clone(), self.columns.ty(*id), true))
            .collect();
        (Node::Values(Values { columns: own.clone(), rows }), own)
    }
}

/// Sets the limit of a sort below projections.
fn limit_sort(node: &mut Node, count: usize) {
    match node {
        Node::Sort(sort) => sort.limit = Some(sort.limit.map_or(count, |old| old.min(count))),
        Node::Project(project) => limit_sort(&mut project.input, count),
        _ => {}
    }
}
