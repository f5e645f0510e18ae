//! Checks a plan: every column that is read is made below, types agree, predicates are BOOLEAN.
//!
//! Debug builds run it after every rule, so that a rule that breaks a plan is named in the error.

use crate::plan::tree::{ColumnSet, columns_of};
use crate::plan::{
    Aggregate, Columns, FrameUnits, Join, JoinKind, Node, Plan, Project, SetOperation, Unnest, Window,
    WindowCall,
};
use entasis_vector::expr::Expr;
use entasis_vector::{ColumnId, DataType, Error, Result};

/// Checks `plan`.
///
/// # Errors
/// Internal, saying which node is wrong and why.
pub(crate) fn validate(plan: &Plan) -> Result<()> {
    validate_node(&plan.root, &plan.columns)?;
    let made = columns_of(&plan.root);
    match plan.output.iter().find(|output| !made.contains(output.column)) {
        Some(output) => Err(Error::internal(format!("the plan does not make its output {}", output.name))),
        None => Ok(()),
    }
}

fn validate_node(node: &Node, columns: &Columns) -> Result<()> {
    for child in node.children() {
        validate_node(child, columns)?;
    }
    let Some(what) = (Checks { columns }).problem(node) else { return Ok(()) };
    let title = crate::explain::node_title(node, columns);
    Err(Error::internal(format!("malformed plan: {what} in {title}")))
}

/// The columns that the inputs of a node make.
fn columns_below(node: &Node) -> ColumnSet {
    let mut all = ColumnSet::default();
    node.children().into_iter().for_each(|child| all.add(&columns_of(child)));
    all
}

/// Checks of single nodes; each returns what is wrong, if anything.
struct Checks<'a> {
    columns: &'a Columns,
}

impl Checks<'_> {
    fn problem(&self, node: &Node) -> Option<String> {
        let mut ids = node.columns();
        ids.sort_unstable();
        if let Some(pair) = ids.windows(2).find(|pair| pair[0] == pair[1]) {
            return Some(format!("{} comes out twice", self.columns.get(pair[0]).name));
        }
        match node {
            Node::Scan(scan) => self.predicates(&scan.filters, &columns_of(node)),
            Node::Values(values) => values
                .rows
                .iter()
                .any(|row| row.len() != values.columns.len())
                .then(|| "a row has the wrong length".to_owned()),
            Node::Filter(filter) => self.predicates(&filter.predicates, &columns_below(node)),
            Node::Project(project) => self.project(project, &columns_below(node)),
            Node::Unnest(unnest) => self.unnest(unnest, &columns_below(node)),
            Node::Join(join) => self.join(join, &columns_below(node)),
            Node::Aggregate(aggregate) => self.aggregate(aggregate, &columns_below(node)),
            Node::Distinct(distinct) => {
                let given = columns_below(node);
                distinct.keys.iter().find(|id| !given.contains(**id)).map(|id| self.not_made(*id))
            }
            Node::Window(window) => self.window(window, &columns_below(node)),
            Node::Sort(sort) => self.exprs(sort.keys.iter().map(|key| &key.expr), &columns_below(node)),
            Node::Limit(_) => None,
            Node::Dependent(_) => Some("a dependent join is left".to_owned()),
            Node::Recursion(_) => Some("a recursion is left that reads what is around it".to_owned()),
            Node::SetOperation(set) => self.set_operation(set),
        }
    }

    fn not_made(&self, id: ColumnId) -> String {
        format!("{} is read but not made below", self.columns.get(id).name)
    }

    fn expr(&self, expr: &Expr, given: &ColumnSet) -> Option<String> {
        let columns = self.columns;
        let mut error = None;
        expr.visit(&mut |e| {
            if let Expr::Column { id, ty } = e {
                if !given.contains(*id) {
                    error.get_or_insert(self.not_made(*id));
                } else if columns.ty(*id) != *ty {
                    let (name, own) = (&columns.get(*id).name, columns.ty(*id));
                    error.get_or_insert(format!("{name} is {own}, not {ty}"));
                }
            }
            if let Expr::Compare { left, right, .. } = e
                && left.ty() != right.ty()
            {
                error.get_or_insert(format!("{} is compared with {}", left.ty(), right.ty()));
            }
        });
        error
    }

    fn exprs<'e>(&self, exprs: impl IntoIterator<Item = &'e Expr>, given: &ColumnSet) -> Option<String> {
        exprs.into_iter().find_map(|expr| self.expr(expr, given))
    }

    fn predicates<'e>(
        &self,
        predicates: impl IntoIterator<Item = &'e Expr>,
        given: &ColumnSet,
    ) -> Option<String> {
        predicates.into_iter().find_map(|predicate| match predicate.ty() {
            DataType::Boolean | DataType::Null => self.expr(predicate, given),
            ty => Some(format!("a predicate is {ty}")),
        })
    }

    fn project(&self, project: &Project, given: &ColumnSet) -> Option<String> {
        project.exprs.iter().find_map(|(id, expr)| {
            let (column, ty) = (self.columns.get(*id), expr.ty());
            let is_other =
                || (ty != self.columns.ty(*id)).then(|| format!("{} is computed as {ty}", column.name));
            self.expr(expr, given).or_else(is_other)
        })
    }

    fn unnest(&self, unnest: &Unnest, given: &ColumnSet) -> Option<String> {
        unnest.lists.iter().find_map(|(id, list)| {
            let is_element = list.ty() == DataType::list(self.columns.ty(*id));
            let is_other = || (!is_element).then(|| format!("a {} is no list", list.ty()));
            self.expr(list, given).or_else(is_other)
        })
    }

    fn join(&self, join: &Join, both: &ColumnSet) -> Option<String> {
        let (left, right) = (columns_of(&join.left), columns_of(&join.right));
        let keys = join.on.iter().find_map(|key| {
            let sides = || self.expr(&key.left, &left).or_else(|| self.expr(&key.right, &right));
            let (l, r) = (key.left.ty(), key.right.ty());
            sides().or_else(|| (l != r).then(|| format!("{l} is joined with {r}")))
        });
        let nearest = matches!(join.kind, JoinKind::AsOf { .. }) && join.residual.len() != 1;
        let null_aware = join.kind == JoinKind::NullAwareAnti && join.on.len() != 1;
        keys.or_else(|| self.predicates(&join.residual, both))
            .or_else(|| null_aware.then(|| "a null-aware anti join needs one key".to_owned()))
            .or_else(|| nearest.then(|| "an as-of join needs one inequality".to_owned()))
    }

    fn aggregate(&self, aggregate: &Aggregate, given: &ColumnSet) -> Option<String> {
        let keys = aggregate.groups.iter().map(|(_, key)| key);
        let calls = aggregate.aggregates.iter().flat_map(|(_, call)| {
            let args = call.args.iter().chain(call.order_by.iter().map(|key| &key.expr));
            args.chain(&call.filter)
        });
        self.exprs(keys.chain(calls), given)
    }

    fn window(&self, window: &Window, given: &ColumnSet) -> Option<String> {
        let filters = window.calls.iter().filter_map(|(_, call)| call.filter.as_ref());
        let is_by_value = |(_, call): &&(_, WindowCall)| {
            let bounds = [&call.frame.start, &call.frame.end];
            call.frame.units == FrameUnits::Range && bounds.into_iter().any(|bound| bound.offset().is_some())
        };
        let by_value = window.calls.iter().find(is_by_value).filter(|_| window.order.len() != 1);
        self.exprs(window.exprs(), given).or_else(|| self.predicates(filters, given)).or_else(|| {
            let name = &self.columns.get(by_value?.0).name;
            Some(format!("{name} has a RANGE with an offset and not one order key"))
        })
    }

    fn set_operation(&self, set: &SetOperation) -> Option<String> {
        set.inputs.iter().find_map(|(input, ids)| {
            let given = columns_of(input);
            if ids.len() != set.columns.len() {
                return Some("an input has the wrong number of columns".to_owned());
            }
            ids.iter().zip(&set.columns).find_map(|(id, out)| {
                if !given.contains(*id) {
                    return Some(self.not_made(*id));
                }
                let (a, b) = (self.columns.ty(*id), self.columns.ty(*out));
                (a != b).then(|| format!("{a} becomes {b}"))
            })
        })
    }
}
