//! Templates: bound plans that are kept and run many times, with other values and on newer tables.
//!
//! A template has [`Expr::Parameter`] where a value is given later, and has not been optimized: what the optimizer concludes
//! from values and statistics holds for one run only. So a run costs the optimizer's time, but not the binder's, which is
//! ten times that.

use crate::optimizer::for_each_expr;
use crate::plan::{Node, Plan};
use crate::relation::Relation;
use entasis_vector::expr::Expr;
use entasis_vector::{DataType, Error, Result, Value};
use std::sync::Arc;

impl Plan {
    /// The plan with these values for its parameters, and with `relation` in the place of each stored table.
    ///
    /// # Errors
    /// Input, if a value is missing or of another type; those of `relation`.
    pub fn instance(
        &self,
        parameters: &[(Value, DataType)],
        mut relation: impl FnMut(&dyn Relation) -> Result<Arc<dyn Relation>>,
    ) -> Result<Plan> {
        let mut plan = self.clone();
        let mut value = |expr| match expr {
            Expr::Parameter { index, ty } => match parameters.get(index) {
                Some((value, given)) if *given == ty => Ok(Expr::literal(value.clone(), ty)),
                _ => Err(Error::input(format!("parameter {} has no value of type {ty}", index + 1))),
            },
            other => Ok(other),
        };
        fill(&mut plan.root, &mut value, &mut relation)?;
        Ok(plan)
    }

    /// True if the plan, kept as a template, runs as well as one that is bound anew: no parameter is converted before it is
    /// compared, and all that it reads are stored tables.
    pub fn is_good_template(&self) -> bool {
        is_good(&mut self.root.clone())
    }
}

fn is_good(node: &mut Node) -> bool {
    let mut good = match node {
        Node::Scan(scan) => scan.relation.table().is_some(),
        _ => true,
    };
    for_each_expr(node, &mut |expr, _| {
        expr.visit(&mut |expr| {
            let converts = |side: &Expr| matches!(side, Expr::Cast { .. });
            match expr {
                Expr::Compare { left, right, .. } if has_parameter(expr) => good &= !converts(left) && !converts(right),
                Expr::External { function, .. } => good &= !function.is_volatile(),
                _ => {}
            }
        });
    });
    good && node.children_mut().into_iter().all(is_good)
}

fn has_parameter(expr: &Expr) -> bool {
    let mut found = false;
    expr.visit(&mut |expr| found |= matches!(expr, Expr::Parameter { .. }));
    found
}

/// Puts values in the place of parameters, and relations in that of tables.
fn fill(
    node: &mut Node,
    value: &mut dyn FnMut(Expr) -> Result<Expr>,
    relation: &mut dyn FnMut(&dyn Relation) -> Result<Arc<dyn Relation>>,
) -> Result<()> {
    if let Node::Scan(scan) = node {
        scan.relation = relation(&*scan.relation)?;
    }
    let mut result = Ok(());
    for_each_expr(node, &mut |expr, _| {
        let taken = std::mem::replace(expr, Expr::boolean(false));
        *expr = taken.transform(&mut |expr| {
            value(expr).unwrap_or_else(|error| {
                result = Err(error);
                Expr::boolean(false)
            })
        });
    });
    result?;
    node.children_mut().into_iter().try_for_each(|child| fill(child, value, relation))
}
