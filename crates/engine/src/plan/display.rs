//! Nodes as text: a line that says what a node does, without its inputs.
//!
//! A plan does not know how it is going to be run. What is known of that stands in the [`Notes`] that the
//! line is written with; who has them is [`crate::explain`].
//!
//! Columns go by name; where two columns of the plan share one, by name and id (`l_orderkey#7`).

use super::{
    Aggregate, AggregateCall, Bound, ColumnId, Columns, Dependent, Exclude, Frame, FrameUnits, Join,
    JoinKind, Node, Plan, Project, Scan, SetKind, SetOperation, Sort, SortKey, Values, Window, WindowCall,
};
use crate::relation::Relation;
use entasis_vector::expr::Expr;
use std::collections::HashMap;

/// What is known of how a node is going to be run.
#[derive(Debug, Default)]
pub(crate) struct Notes {
    /// What tells a scan where its rows are: the layout key, or an index.
    pub found: Option<String>,
    /// How a join searches, if it does.
    pub search: Option<SearchText>,
}

/// By what a join finds its rows in an order of one side.
#[derive(Debug)]
pub(crate) struct SearchText {
    /// The inequalities that bound them.
    pub by: Vec<Expr>,
    /// The join's other conditions.
    pub rest: Vec<Expr>,
}

/// What columns are called in a text.
pub(crate) struct Names<'a> {
    columns: &'a Columns,
    /// How many columns have a name.
    uses: HashMap<&'a str, usize>,
}

impl<'a> Names<'a> {
    /// Where all columns can be meant.
    pub(crate) fn of_columns(columns: &'a Columns) -> Names<'a> {
        Names::new(columns, (0..columns.len() as u32).map(ColumnId))
    }

    /// Where those can be meant that `plan` makes.
    pub(crate) fn of_plan(plan: &'a Plan) -> Names<'a> {
        let mut made = Vec::new();
        collect_made(&plan.root, &mut made);
        made.sort_unstable();
        made.dedup();
        Names::new(&plan.columns, made.into_iter())
    }

    fn new(columns: &'a Columns, ids: impl Iterator<Item = ColumnId>) -> Names<'a> {
        let mut uses = HashMap::new();
        for id in ids {
            *uses.entry(columns.get(id).name.as_str()).or_insert(0) += 1;
        }
        Names { columns, uses }
    }

    /// What column `id` is called.
    pub(crate) fn name(&self, id: ColumnId) -> String {
        let name = self.columns.get(id).name.as_str();
        match self.uses.get(name) {
            Some(1) => name.to_owned(),
            _ => format!("{name}{id}"),
        }
    }

    fn expr(&self, expr: &Expr) -> String {
        expr.display(&|id| Some(self.name(id))).to_string()
    }

    fn list<T>(&self, items: &[T], f: impl Fn(&T) -> String) -> String {
        items.iter().map(f).collect::<Vec<_>>().join(", ")
    }

    /// Conditions that must all be true.
    pub(crate) fn conjunction(&self, predicates: &[Expr]) -> String {
        predicates.iter().map(|predicate| self.expr(predicate)).collect::<Vec<_>>().join(" AND ")
    }

    /// One line that says what `node` does, without its inputs.
    pub(crate) fn title(&self, node: &Node, notes: &Notes) -> String {
        match node {
            Node::Scan(scan) => self.scan(scan, notes),
            Node::Values(values) => self.values(values),
            Node::Filter(filter) => format!("Filter {}", self.conjunction(&filter.predicates)),
            Node::Project(project) => self.project(project),
            Node::Unnest(unnest) => {
                let list =
                    |(id, list): &(ColumnId, Expr)| format!("{} AS {}", self.expr(list), self.name(*id));
                format!("Unnest {}", self.list(&unnest.lists, list))
            }
            Node::Join(join) => self.join(join, notes),
            Node::Dependent(dependent) => self.dependent(dependent),
            Node::Aggregate(aggregate) => self.aggregate(aggregate),
            Node::Distinct(distinct) => {
                let partial = if distinct.is_partial { "partial " } else { "" };
                format!("Distinct {partial}{}", self.list(&distinct.keys, |id| self.name(*id)))
            }
            Node::Window(window) => self.window(window),
            Node::Sort(sort) => self.sort(sort),
            Node::Limit(limit) => match (limit.count, limit.offset) {
                (Some(count), 0) => format!("Limit {count}"),
                (Some(count), offset) => format!("Limit {count} offset {offset}"),
                (None, offset) => format!("Limit all offset {offset}"),
            },
            Node::SetOperation(set) => self.set_operation(set),
            Node::Recursion(recursion) => {
                let columns = self.list(&recursion.columns, |id| self.name(*id));
                format!("Recursion {} [{columns}]", recursion.work.name())
            }
        }
    }

    fn scan(&self, scan: &Scan, notes: &Notes) -> String {
        let columns = self.list(&scan.columns, |(id, _)| self.name(*id));
        let mut title = format!("Scan {} [{columns}]", scan.relation.name());
        if !scan.filters.is_empty() {
            title += &format!(" where {}", self.conjunction(&scan.filters));
        }
        if let Some(how) = &notes.found {
            title += &format!(", found {how}");
        }
        title
    }

    fn values(&self, values: &Values) -> String {
        let columns = self.list(&values.columns, |id| self.name(*id));
        format!("Values {} rows [{columns}]", values.rows.len())
    }

    fn project(&self, project: &Project) -> String {
        let exprs = self.list(&project.exprs, |(id, expr)| {
            let (name, text) = (self.name(*id), self.expr(expr));
            if name == text { text } else { format!("{text} AS {name}") }
        });
        format!("Project {exprs}")
    }

    fn join_kind(&self, kind: JoinKind) -> String {
        match kind {
            JoinKind::Inner => "inner".to_owned(),
            JoinKind::Left => "left".to_owned(),
            JoinKind::Right => "right".to_owned(),
            JoinKind::Full => "full".to_owned(),
            JoinKind::Semi => "semi".to_owned(),
            JoinKind::Anti => "anti".to_owned(),
            JoinKind::NullAwareAnti => "null-aware anti".to_owned(),
            JoinKind::Mark { mark, null_aware: false } => format!("mark {}", self.name(mark)),
            JoinKind::Mark { mark, null_aware: true } => format!("null-aware mark {}", self.name(mark)),
            JoinKind::Single => "single".to_owned(),
            JoinKind::AsOf { outer } => if outer { "left" } else { "inner" }.to_owned(),
        }
    }

    fn dependent(&self, join: &Dependent) -> String {
        let keys = join.on.iter().map(|key| format!("{} = {}", self.expr(&key.left), self.expr(&key.right)));
        let conditions: Vec<String> =
            keys.chain(join.residual.iter().map(|condition| self.expr(condition))).collect();
        let title = format!("DependentJoin {}", self.join_kind(join.kind));
        if conditions.is_empty() { title } else { format!("{title} where {}", conditions.join(" AND ")) }
    }

    fn join(&self, join: &Join, notes: &Notes) -> String {
        let kind = self.join_kind(join.kind);
        let method = match (join.on.is_empty(), join.residual.is_empty()) {
            _ if matches!(join.kind, JoinKind::AsOf { .. }) => "AsOfJoin",
            _ if notes.search.is_some() => "RangeJoin",
            (false, _) => "HashJoin",
            (true, false) => "NestedLoopJoin",
            (true, true) => "CrossJoin",
        };
        let mut title = format!("{method} {kind}");
        if !join.on.is_empty() {
            let keys = self.list(&join.on, |key| {
                let op = if key.null_equals_null { "IS NOT DISTINCT FROM" } else { "=" };
                format!("{} {op} {}", self.expr(&key.left), self.expr(&key.right))
            });
            title += &format!(" on {keys}");
        }
        let residual = match &notes.search {
            None => &join.residual,
            Some(search) => {
                title += &format!(" by {}", self.list(&search.by, |condition| self.expr(condition)));
                &search.rest
            }
        };
        if !residual.is_empty() {
            title += &format!(" where {}", self.conjunction(residual));
        }
        title
    }

    fn aggregate(&self, aggregate: &Aggregate) -> String {
        let named = |id: ColumnId, text: String| {
            let name = self.name(id);
            if name == text { text } else { format!("{text} AS {name}") }
        };
        let mut title = String::from("Aggregate");
        if !aggregate.groups.is_empty() {
            title +=
                &format!(" by {}", self.list(&aggregate.groups, |(id, expr)| named(*id, self.expr(expr))));
        }
        if !aggregate.aggregates.is_empty() {
            title += if aggregate.groups.is_empty() { " " } else { ": " };
            title += &self.list(&aggregate.aggregates, |(id, call)| named(*id, self.call(call)));
        }
        title
    }

    fn call(&self, call: &AggregateCall) -> String {
        let arguments = match call.function {
            super::AggregateFunction::CountStar => "*".to_owned(),
            _ => self.list(&call.args, |arg| self.expr(arg)),
        };
        let distinct = if call.distinct { "DISTINCT " } else { "" };
        let mut text = format!("{}({distinct}{arguments}", call.function.name());
        if !call.order_by.is_empty() {
            text += &format!(" ORDER BY {}", self.list(&call.order_by, |key| self.sort_key(key)));
        }
        text += ")";
        if let Some(filter) = &call.filter {
            text += &format!(" FILTER (WHERE {})", self.expr(filter));
        }
        text
    }

    fn window(&self, window: &Window) -> String {
        let mut title = String::from("Window");
        if !window.partition.is_empty() {
            title += &format!(" by {}", self.list(&window.partition, |key| self.expr(key)));
        }
        if !window.order.is_empty() {
            title += &format!(" order {}", self.list(&window.order, |key| self.sort_key(key)));
        }
        if !window.calls.is_empty() {
            let call = |(id, call): &(ColumnId, WindowCall)| {
                format!("{} AS {}", self.window_call(call), self.name(*id))
            };
            title += &format!(": {}", self.list(&window.calls, call));
        }
        if let Some(top) = window.top {
            let what = if top.with_peers { "rank" } else { "row_number" };
            title += &format!("; {what} <= {}", top.rows);
        }
        title
    }

    fn window_call(&self, call: &WindowCall) -> String {
        use super::{AggregateFunction as A, WindowFunction as F};
        let arguments = match call.function {
            F::Aggregate(A::CountStar) => "*".to_owned(),
            _ => self.list(&call.args, |arg| self.expr(arg)),
        };
        let distinct = if call.distinct { "DISTINCT " } else { "" };
        let mut text = format!("{}({distinct}{arguments}", call.function.name());
        if !call.order_by.is_empty() {
            text += &format!(" ORDER BY {}", self.list(&call.order_by, |key| self.sort_key(key)));
        }
        if call.ignore_nulls {
            text += " IGNORE NULLS";
        }
        text += ")";
        if let Some(filter) = &call.filter {
            text += &format!(" FILTER (WHERE {})", self.expr(filter));
        }
        if call.function.has_frame() {
            text += &format!(" {}", self.frame(&call.frame));
        }
        text
    }

    fn frame(&self, frame: &Frame) -> String {
        let units = match frame.units {
            FrameUnits::Rows => "ROWS",
            FrameUnits::Range => "RANGE",
            FrameUnits::Groups => "GROUPS",
        };
        let bound = |bound: &Bound| match bound {
            Bound::UnboundedPreceding => "UNBOUNDED PRECEDING".to_owned(),
            Bound::Preceding(offset) => format!("{} PRECEDING", self.expr(offset)),
            Bound::CurrentRow => "CURRENT ROW".to_owned(),
            Bound::Following(offset) => format!("{} FOLLOWING", self.expr(offset)),
            Bound::UnboundedFollowing => "UNBOUNDED FOLLOWING".to_owned(),
        };
        let exclude = match frame.exclude {
            Exclude::NoOthers => "",
            Exclude::CurrentRow => " EXCLUDE CURRENT ROW",
            Exclude::Group => " EXCLUDE GROUP",
            Exclude::Ties => " EXCLUDE TIES",
        };
        format!("{units} BETWEEN {} AND {}{exclude}", bound(&frame.start), bound(&frame.end))
    }

    fn sort(&self, sort: &Sort) -> String {
        let keys = self.list(&sort.keys, |key| self.sort_key(key));
        match sort.limit {
            Some(limit) => format!("TopN {limit} by {keys}"),
            None => format!("Sort by {keys}"),
        }
    }

    fn sort_key(&self, key: &SortKey) -> String {
        let direction = if key.descending { " DESC" } else { "" };
        let nulls = if key.nulls_first { " NULLS FIRST" } else { "" };
        format!("{}{direction}{nulls}", self.expr(&key.expr))
    }

    fn set_operation(&self, set: &SetOperation) -> String {
        let kind = match set.kind {
            SetKind::Union => "Union",
            SetKind::Intersect => "Intersect",
            SetKind::Except => "Except",
        };
        let all = if set.all { " all" } else { "" };
        format!("{kind}{all} [{}]", self.list(&set.columns, |id| self.name(*id)))
    }
}

/// The columns that are made in `node` and below it.
fn collect_made(node: &Node, into: &mut Vec<ColumnId>) {
    match node {
        Node::Scan(_) | Node::Values(_) | Node::Aggregate(_) | Node::SetOperation(_) | Node::Recursion(_) => {
            into.extend(node.columns())
        }
        Node::Project(project) => into.extend(project.exprs.iter().map(|(id, _)| *id)),
        Node::Unnest(unnest) => into.extend(unnest.lists.iter().map(|(id, _)| *id)),
        Node::Window(window) => into.extend(window.calls.iter().map(|(id, _)| *id)),
        Node::Join(Join { kind: JoinKind::Mark { mark, .. }, .. }) => into.push(*mark),
        _ => {}
    }
    node.children().into_iter().for_each(|child| collect_made(child, into));
}
