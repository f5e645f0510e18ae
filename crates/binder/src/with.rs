//! WITH: queries that have names, and recursions.
//!
//! A query of a WITH sees those before it and those of the queries around. It is bound each time where it is
//! read, so that filters can be pushed into it. Instead it is bound once, and its rows are a relation
//! ([`Shared`]), if it is read more than once and its rows might differ (`random()`, `nextval`, LIMIT); it
//! combines many rows (groups, DISTINCT, set operations) and is not NOT MATERIALIZED; it is MATERIALIZED; or
//! it would be bound more than [`MOST_COPIES`] times, as in a chain whose members each read the previous one
//! twice. A query that reads columns of rows around is bound in place. One that nobody reads
//! is bound for its errors.
//!
//! A recursion, `start UNION [ALL] step`, is a relation whose step reads the rows of the last round from a
//! work table ([`entasis_engine::recursive`]). With USING KEY, `recurring.t` is all rows so far. If it turns
//! out to read columns of rows around, it is bound once more: as a node of the plan, in whose step everything
//! that reads a work table depends on what is around, too, and becomes no relation
//! ([`Recursion::around`]).

use crate::aggregate;
use crate::binder::{Binder, located};
use crate::bound::Bound;
use crate::call::name_of;
use crate::environment::Catalog;
use crate::from::From;
use crate::query::{Item, Rows, project};
use entasis_engine::common_subplans::Shared;
use entasis_engine::plan::{Keeps, Node, Output, Plan, Recursion, RecursionSide, free_columns};
use entasis_engine::recursive::Recursive;
use entasis_engine::relation::Relation;
use entasis_engine::work_table::WorkTable;
use entasis_syntax::clauses;
use entasis_syntax::disguise::{KEY, MATERIALIZED, NOT_MATERIALIZED};
use entasis_syntax::place::locate_ident;
use entasis_syntax::walk::Walk;
use entasis_vector::error::sqlstate;
use entasis_vector::{ColumnId, DataType, Error, Field, Result};
use sqlparser::ast::{
    self, Cte, CteAsMaterialized, Expr, GroupByExpr, Ident, ObjectName, ObjectNamePart, Query, Select,
    SetExpr, SetOperator, SetQuantifier, TableAlias, Visit, Visitor, With,
};
use std::cell::{Cell, OnceCell};
use std::collections::HashMap;
use std::ops::ControlFlow;
use std::rc::Rc;
use std::sync::Arc;

/// The most copies of a query of a WITH that is bound in place.
const MOST_COPIES: u64 = 8;
/// The schema by which the step of a recursion with a key reads all rows so far.
const RECURRING: &str = "recurring";

/// The queries of one WITH.
#[derive(Debug)]
pub(crate) struct Frame<'q> {
    queries: Rc<[Common<'q>]>,
    /// How many of them are visible.
    visible: usize,
    /// The work tables of a recursion that is being bound.
    work: Option<Rc<Work>>,
}

/// A query with a name.
#[derive(Debug)]
struct Common<'q> {
    name: String,
    query: &'q Query,
    /// The names of its columns, as far as they are given.
    columns: Vec<&'q Ident>,
    /// The columns of its key, for USING KEY.
    key: Option<Vec<&'q Ident>>,
    is_recursive: bool,
    /// Bound once for all who read it.
    is_shared: bool,
    /// Its rows, once they are a relation.
    relation: OnceCell<Arc<dyn Relation>>,
    /// How many scopes are around the WITH.
    depth: usize,
    /// Something has read it.
    is_read: Cell<bool>,
}

/// What the step of a recursion reads.
#[derive(Debug)]
struct Work {
    name: String,
    /// `None` while the start is being bound.
    last: Option<Arc<WorkTable>>,
    all: Option<Arc<WorkTable>>,
    /// What is read beside the rows, if the recursion reads columns of rows around.
    around: Option<ColumnId>,
    has_key: bool,
    is_read: Cell<bool>,
    is_all_read: Cell<bool>,
}

impl<'a, 'q> Binder<'a, 'q> {
    /// Makes the queries of a WITH visible.
    pub(crate) fn enter_with(&mut self, with: &'q With, query: &'q Query) -> Result<()> {
        let shared = is_shared(with, query, self.catalog);
        let depth = self.scopes.len();
        let mut queries: Vec<Common<'q>> = Vec::with_capacity(with.cte_tables.len());
        for (cte, is_shared) in with.cte_tables.iter().zip(shared) {
            clauses::cte(cte)?;
            let name = cte.alias.name.value.to_ascii_lowercase();
            if queries.iter().any(|other| other.name == name) {
                let error = Error::input(format!("there are two queries named {name} in one WITH"));
                return Err(locate_ident(error.with_sqlstate(sqlstate::SYNTAX), &cte.alias.name));
            }
            let mut columns: Vec<&'q Ident> = cte.alias.columns.iter().map(|column| &column.name).collect();
            let at = columns.iter().position(|column| column.value == KEY);
            let key = at.map(|at| columns.split_off(at).into_iter().skip(1).collect::<Vec<_>>());
            let is_recursive = with.recursive && (reads_itself(cte) || key.is_some());
            if key.is_some() && !is_recursive {
                return Err(Error::input(format!("USING KEY of {name} is only allowed in WITH RECURSIVE")));
            }
            let relation = OnceCell::new();
            queries.push(Common {
                name,
                query: &cte.query,
                columns,
                key,
                is_recursive,
                is_shared,
                relation,
                depth,
                is_read: Cell::new(is_mark(cte)),
            });
        }
        let visible = queries.len();
        self.withs.push(Frame { queries: queries.into(), visible, work: None });
        Ok(())
    }

    /// Binds the queries of the innermost WITH that nobody has read, for their errors and for the types of
    /// their parameters. They are not part of the plan.
    pub(crate) fn bind_unread(&mut self) -> Result<()> {
        let level = self.withs.len() - 1;
        let queries = self.withs[level].queries.clone();
        // From the last one on: it may read those before it.
        for (place, common) in queries.iter().enumerate().rev() {
            if !common.is_read.get() {
                self.common(level, common, place, None)?;
            }
        }
        Ok(())
    }

    /// A name in FROM, if it is that of a query of a WITH, or of the rows of a recursion.
    pub(crate) fn common_table(
        &mut self,
        name: &'q ObjectName,
        alias: Option<&'q TableAlias>,
    ) -> Result<Option<From>> {
        let (ident, is_all) = match name.0.as_slice() {
            [ObjectNamePart::Identifier(ident)] => (ident, false),
            [ObjectNamePart::Identifier(schema), ObjectNamePart::Identifier(ident)]
                if schema.value.eq_ignore_ascii_case(RECURRING) =>
            {
                (ident, true)
            }
            _ => return Ok(None),
        };
        let own = ident.value.to_ascii_lowercase();
        for level in (0..self.withs.len()).rev() {
            let frame = &self.withs[level];
            let is_its = |work: &Rc<Work>| work.name == own && (!is_all || work.has_key);
            if let Some(work) = frame.work.clone().filter(is_its) {
                let table = match is_all {
                    true => {
                        work.is_all_read.set(true);
                        work.all.clone()
                    }
                    false => {
                        work.is_read.set(true);
                        work.last.clone()
                    }
                };
                let Some(table) = table else {
                    let text = format!("{own} reads itself in its first side, before there are rows");
                    return Err(located(Error::input(text), name));
                };
                let mut from = self.scan(table, &own, alias)?;
                if let Some(around) = work.around {
                    let beside = self.columns.add("around", DataType::Boolean, true);
                    from.node = project(from.node, vec![(beside, self.columns.expr(around))]);
                }
                return Ok(Some(from));
            }
            let queries = frame.queries.clone();
            let found = queries[..frame.visible].iter().rposition(|common| common.name == own);
            if let Some(place) = found.filter(|_| !is_all) {
                return self.common(level, &queries[place], place, alias).map(Some);
            }
        }
        Ok(None)
    }

    /// The rows of a query of a WITH at this level, which is the query at that place in it.
    fn common(
        &mut self,
        level: usize,
        common: &Common<'q>,
        place: usize,
        alias: Option<&'q TableAlias>,
    ) -> Result<From> {
        common.is_read.set(true);
        if let Some(relation) = common.relation.get() {
            return self.scan(relation.clone(), &common.name, alias);
        }
        // It sees what is around its WITH, and the queries before it.
        let scopes = self.scopes.split_off(common.depth);
        let withs = self.withs.split_off(level + 1);
        let visible = std::mem::replace(&mut self.withs[level].visible, place);
        let bound = match common.is_recursive {
            true => self.recursion(common),
            false => self.query_rows(common.query).map(|rows| self.projected(rows)),
        };
        self.withs[level].visible = visible;
        self.withs.extend(withs);
        self.scopes.extend(scopes);
        let (node, mut columns) = bound?;
        self.rename(common, &mut columns)?;
        let relation = match node {
            node if common.depth > 0 && !free_columns(&node).is_empty() => {
                return self.named(node, columns, &common.name, alias);
            }
            Node::Recursion(mut recursion) => {
                for side in [&mut recursion.start, &mut recursion.step] {
                    crate::zone::apply_to_node(&mut side.node, self.session.zone);
                }
                recursion.relation(&self.columns)
            }
            node if common.is_shared && common.depth <= self.scopes.len() => {
                self.relation_of(&common.name, node, &columns)
            }
            node => return self.named(node, columns, &common.name, alias),
        };
        let _ = common.relation.set(relation.clone());
        self.scan(relation, &common.name, alias)
    }

    /// Gives columns the names that the WITH declares.
    fn rename(&self, common: &Common<'q>, columns: &mut [(String, ColumnId)]) -> Result<()> {
        if common.columns.len() > columns.len() {
            let (there, given) = (columns.len(), common.columns.len());
            let error = Error::input(format!("{there} columns are given {given} names"));
            return Err(locate_ident(error.with_sqlstate(sqlstate::SYNTAX), common.columns[0]));
        }
        for (column, name) in columns.iter_mut().zip(&common.columns) {
            column.0 = name.value.clone();
        }
        Ok(())
    }

    /// Rows that are computed once.
    pub(crate) fn relation_of(
        &self,
        name: &str,
        node: Node,
        columns: &[(String, ColumnId)],
    ) -> Arc<dyn Relation> {
        let field = |(name, column): &(String, ColumnId)| Field::new(name.as_str(), self.columns.ty(*column));
        let schema = columns.iter().map(field).collect();
        let output =
            columns.iter().map(|(name, column)| Output { name: name.clone(), column: *column }).collect();
        let mut plan = Plan { root: node, columns: self.columns.clone(), output };
        crate::zone::apply_to_plan(&mut plan, self.session.zone);
        Arc::new(Shared::new(name.to_owned(), schema, plan))
    }

    /// A recursion with its columns. The binder stands within its WITH, which shows the queries before it.
    fn recursion(&mut self, common: &Common<'q>) -> Result<(Node, Vec<(String, ColumnId)>)> {
        let mut node = Node::Recursion(self.rounds(common, false)?);
        if !free_columns(&node).is_empty() {
            node = Node::Recursion(self.rounds(common, true)?);
        }
        let named = |column: ColumnId| (self.columns.get(column).name.clone(), column);
        let columns = node.columns().into_iter().map(named).collect();
        Ok((node, columns))
    }

    /// The same; `is_dependent` says that it reads columns of rows around.
    fn rounds(&mut self, common: &Common<'q>, is_dependent: bool) -> Result<Recursion> {
        let around = self.columns.add("around", DataType::Boolean, true);
        let name = &common.name;
        let (left, right, is_distinct) = sides_of(common)?;
        let work = |last, all| {
            Rc::new(Work {
                name: name.clone(),
                last,
                all,
                around: is_dependent.then_some(around),
                has_key: common.key.is_some(),
                is_read: Cell::new(false),
                is_all_read: Cell::new(false),
            })
        };
        let mut start = self.side(left, work(None, None))?;
        self.rename_items(common, &mut start)?;
        let types: Vec<DataType> = start
            .items
            .iter()
            .map(|item| match item.expr.ty() {
                // A column of untyped NULLs has no type; the rows of further rounds need one.
                DataType::Null => DataType::Int32,
                ty => ty,
            })
            .collect();
        let fields: Vec<Field> =
            start.items.iter().zip(&types).map(|(item, ty)| Field::new(item.name.as_str(), *ty)).collect();
        let last = Arc::new(WorkTable::new(name.clone(), fields.clone()));
        let all = common
            .key
            .as_ref()
            .map(|_| Arc::new(WorkTable::new(format!("{RECURRING}.{name}"), fields.clone())));
        let own = work(Some(last.clone()), all.clone());
        let step = self.side(right, own.clone())?;
        if !own.is_read.get() && !own.is_all_read.get() {
            return Err(Error::input(format!("{name} has a key, and does not read itself")));
        }
        if step.items.len() != types.len() {
            let (there, wanted) = (step.items.len(), types.len());
            let text = format!("a side of a set operation has {wanted} columns, and another {there}");
            return Err(located(Error::input(text), common.query));
        }
        let keeps = match &common.key {
            Some(key) => {
                let keys = key_places(name, key, &fields)?;
                let all = all.filter(|_| own.is_all_read.get());
                Keeps::Keyed { keys, only_changes: is_distinct, all }
            }
            None if is_distinct => Keeps::New,
            None => Keeps::All,
        };
        let (start, step) = (self.computed(start, &types), self.computed(step, &types));
        let columns = fields.iter().map(|field| self.columns.add(&*field.name, field.ty, true)).collect();
        let make = |start, step, work, keeps| Arc::new(Recursive::new(start, step, work, keeps)) as _;
        Ok(Recursion { start, step, work: last, keeps, columns, around, make })
    }

    /// Binds a side of a recursion.
    fn side(&mut self, body: &'q SetExpr, work: Rc<Work>) -> Result<Rows> {
        self.withs.push(Frame { queries: Rc::new([]), visible: 0, work: Some(work) });
        let rows = self.body(body);
        self.withs.pop();
        rows
    }

    fn rename_items(&self, common: &Common<'q>, rows: &mut Rows) -> Result<()> {
        if common.columns.len() > rows.items.len() {
            let (there, given) = (rows.items.len(), common.columns.len());
            let error = Error::input(format!("{there} columns are given {given} names"));
            return Err(locate_ident(error.with_sqlstate(sqlstate::SYNTAX), common.columns[0]));
        }
        for (item, name) in rows.items.iter_mut().zip(&common.columns) {
            item.name = name.value.clone();
        }
        Ok(())
    }

    /// A side, with columns of these types.
    fn computed(&mut self, mut rows: Rows, types: &[DataType]) -> RecursionSide {
        for (item, ty) in rows.items.iter_mut().zip(types) {
            let Item { expr, given, .. } = item.clone();
            item.expr = Bound { expr, given }.cast(*ty);
        }
        let (node, columns) = self.projected(rows);
        RecursionSide {
            node: Box::new(node),
            columns: columns.into_iter().map(|(_, column)| column).collect(),
        }
    }
}

/// The sides of a recursion, and whether its UNION leaves out duplicates.
fn sides_of<'q>(common: &Common<'q>) -> Result<(&'q SetExpr, &'q SetExpr, bool)> {
    let Common { name, query, .. } = common;
    let body = match without_hints(query) {
        Some(_) if query.order_by.is_some() || query.limit_clause.is_some() || query.fetch.is_some() => None,
        body => body,
    };
    let Some(body) = body else {
        let error =
            Error::not_supported(format!("WITH, ORDER BY and LIMIT within {name}, which reads itself"));
        return Err(error.with_hint("write them in the query that reads it"));
    };
    let SetExpr::SetOperation { op: SetOperator::Union, set_quantifier, left, right } = body else {
        let what = if common.key.is_some() { "has a key" } else { "reads itself" };
        let text = format!("{name} {what}, and is not of the form: start UNION [ALL] step");
        return Err(located(Error::input(text), *query));
    };
    Ok((left, right, !matches!(set_quantifier, SetQuantifier::All)))
}

/// Where the columns of the key of a recursion are among its columns.
fn key_places(name: &str, key: &[&Ident], fields: &[Field]) -> Result<Vec<usize>> {
    let place = |ident: &&Ident| {
        let found = fields.iter().position(|field| field.name.eq_ignore_ascii_case(&ident.value));
        found.ok_or_else(|| {
            let text = format!("the key column {} does not exist in {name}", ident.value);
            locate_ident(Error::input(text).with_sqlstate(sqlstate::NO_COLUMN), ident)
        })
    };
    key.iter().map(place).collect()
}

/// The body of a query that has no WITH of its own but the mark of [NOT] MATERIALIZED.
fn without_hints(query: &Query) -> Option<&SetExpr> {
    match &query.with {
        Some(with) if !with.cte_tables.iter().all(is_mark) => None,
        _ => Some(&query.body),
    }
}

/// True for what stands for a hint.
fn is_mark(cte: &Cte) -> bool {
    [MATERIALIZED, NOT_MATERIALIZED].contains(&cte.alias.name.value.as_str())
}

/// [NOT] MATERIALIZED, as the parser knows it or as the mark that stands for it.
fn materialized(cte: &Cte) -> Option<CteAsMaterialized> {
    let mark = cte.query.with.as_ref().and_then(|with| with.cte_tables.first());
    match mark.map(|first| first.alias.name.value.as_str()) {
        Some(MATERIALIZED) => Some(CteAsMaterialized::Materialized),
        Some(NOT_MATERIALIZED) => Some(CteAsMaterialized::NotMaterialized),
        _ => cte.materialized,
    }
}

/// Whether a query of a WITH RECURSIVE reads itself.
fn reads_itself(cte: &Cte) -> bool {
    reads(&*cte.query).contains_key(&cte.alias.name.value.to_ascii_lowercase())
}

/// How often each name occurs as that of a table that may be a query of a WITH, in lower case.
fn reads(part: &impl Visit) -> HashMap<String, u64> {
    struct Count(HashMap<String, u64>);
    impl Visitor for Count {
        type Break = std::convert::Infallible;
        fn pre_visit_relation(&mut self, relation: &ObjectName) -> ControlFlow<Self::Break> {
            let ident = match relation.0.as_slice() {
                [ObjectNamePart::Identifier(ident)] => Some(ident),
                [ObjectNamePart::Identifier(schema), ObjectNamePart::Identifier(ident)] => {
                    Some(ident).filter(|_| schema.value.eq_ignore_ascii_case(RECURRING))
                }
                _ => None,
            };
            if let Some(ident) = ident {
                *self.0.entry(ident.value.to_ascii_lowercase()).or_default() += 1;
            }
            ControlFlow::Continue(())
        }
    }
    let mut count = Count(HashMap::new());
    let _ = part.walk(&mut count);
    count.0
}

/// For each query of a WITH, whether it is bound once for all places that read it.
fn is_shared(with: &With, query: &Query, catalog: &dyn Catalog) -> Vec<bool> {
    let ctes = &with.cte_tables;
    let mut shared = vec![false; ctes.len()];
    // How often each name is read by what follows, if what is bound several times reads as often.
    let mut read = reads(&*query.body);
    add(&mut read, reads(&query.order_by), 1);
    for at in (0..ctes.len()).rev() {
        let own = reads(&*ctes[at].query);
        let name = ctes[at].alias.name.value.to_ascii_lowercase();
        // What nobody reads is bound once, for its errors.
        let times = read.get(&name).copied().unwrap_or(0).max(1);
        let once = (with.recursive && own.contains_key(&name)) || may_differ(&ctes[at].query, catalog);
        let once = match materialized(&ctes[at]) {
            Some(CteAsMaterialized::Materialized) => true,
            Some(CteAsMaterialized::NotMaterialized) => once,
            None => once || combines_rows(&ctes[at].query),
        };
        shared[at] = times > MOST_COPIES || (times > 1 && once);
        add(&mut read, own, if shared[at] { 1 } else { times });
    }
    shared
}

/// Adds counts, each so many times.
fn add(counts: &mut HashMap<String, u64>, more: HashMap<String, u64>, times: u64) {
    for (name, count) in more {
        let sum = counts.entry(name).or_default();
        *sum = sum.saturating_add(count.saturating_mul(times));
    }
}

/// True if a query may return other rows the second time, or calls functions of the host program, which are
/// not called more often than they are written.
fn may_differ(query: &Query, catalog: &dyn Catalog) -> bool {
    struct Look<'a>(&'a dyn Catalog);
    impl Visitor for Look<'_> {
        type Break = ();
        fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<()> {
            stop(query.limit_clause.is_some() || query.fetch.is_some())
        }
        fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
            let Expr::Function(function) = expr else { return ControlFlow::Continue(()) };
            let name = name_of(function);
            stop(is_volatile(&name) || self.0.host_function(&name).is_some())
        }
        fn pre_visit_table_factor(&mut self, factor: &ast::TableFactor) -> ControlFlow<()> {
            if let ast::TableFactor::Table { name, args: Some(_), .. } = factor
                && let Some(ident) = name.0.last().and_then(|part| part.as_ident())
                && self.0.is_host_table(&ident.value)
            {
                return ControlFlow::Break(());
            }
            stop(matches!(
                factor,
                ast::TableFactor::Table { sample: Some(_), .. }
                    | ast::TableFactor::Derived { sample: Some(_), .. }
            ))
        }
    }
    query.walk(&mut Look(catalog)).is_break()
}

/// True for the name of a function that has another value each time.
fn is_volatile(name: &str) -> bool {
    matches!(
        name,
        "random" | "uuid" | "gen_random_uuid" | "uuidv4" | "nextval" | "currval" | "clock_timestamp"
    )
}

/// True if a query combines many rows into one, so that it costs more to compute than to read.
fn combines_rows(query: &Query) -> bool {
    struct Look;
    impl Visitor for Look {
        type Break = ();
        fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<()> {
            stop(match &*query.body {
                SetExpr::SetOperation { op, set_quantifier, .. } => {
                    *op != SetOperator::Union || *set_quantifier != SetQuantifier::All
                }
                _ => false,
            })
        }
        fn pre_visit_select(&mut self, select: &Select) -> ControlFlow<()> {
            let groups = match &select.group_by {
                GroupByExpr::All(_) => true,
                GroupByExpr::Expressions(groups, _) => !groups.is_empty(),
            };
            stop(groups || select.distinct.is_some() || select.having.is_some())
        }
        fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
            stop(matches!(expr, Expr::Function(function) if aggregate::is_aggregate(&name_of(function))))
        }
    }
    query.walk(&mut Look).is_break()
}

fn stop(found: bool) -> ControlFlow<()> {
    if found { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
}
