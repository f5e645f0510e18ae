//! Templates: bound plans that are kept and run many times, with different values and on newer tables.
//!
//! A template has [`Expr::Parameter`] where a value is given later, and has not been optimized: what the
//! optimizer concludes from values and statistics holds for one run only. So a run costs the optimizer's
//! time, but not the binder's, which is ten times that.

use crate::plan::tree::for_each_expr;
use crate::plan::{Node, Plan};
use crate::relation::{Place, Relation};
use entasis_vector::expr::Expr;
use entasis_vector::{DataType, Result, Value};
use std::sync::Arc;

/// A bound plan with places for values and for tables. It holds no snapshot: that would keep old rows for as
/// long as the template is kept.
#[derive(Debug)]
pub struct Template {
    plan: Plan,
    /// One more than the greatest index of a parameter in it.
    parameters: usize,
}

impl Template {
    /// The template of a bound plan. `None` if it would not run as well as a plan that is bound anew: if a
    /// column is converted before it is compared with a parameter, whose value might be one of the column's
    /// type, or a text, or if something else than stored tables is read.
    pub fn new(mut plan: Plan) -> Option<Template> {
        is_good(&mut plan.root).then(|| {
            let place = |relation: &dyn Relation| -> Result<Arc<dyn Relation>> {
                Ok(Arc::new(Place { name: relation.name().to_owned(), schema: relation.schema().clone() }))
            };
            let mut parameters = 0;
            let mut count = |expr: Expr| {
                if let Expr::Parameter { index, .. } = &expr {
                    parameters = parameters.max(index + 1);
                }
                expr
            };
            fill(&mut plan.root, &mut count, &mut { place }).expect("places do not fail");
            Template { plan, parameters }
        })
    }

    /// How many parameters it needs values for: one more than the greatest index of one that it reads.
    pub fn parameters(&self) -> usize {
        self.parameters
    }

    /// The plan with these values for its parameters, and with a `table` in each place, which has its name
    /// and schema. `None` if a value is none of its parameter's type.
    ///
    /// # Errors
    /// Those of `table`.
    pub fn instance(
        &self,
        parameters: &[(Value, DataType)],
        mut table: impl FnMut(&dyn Relation) -> Result<Arc<dyn Relation>>,
    ) -> Result<Option<Plan>> {
        let mut plan = self.plan.clone();
        let mut fits = true;
        let mut value = |expr| match expr {
            Expr::Parameter { index, ty } => {
                match parameters.get(index).and_then(|(value, from)| fit(value, *from, ty)) {
                    Some(value) => Expr::literal(value, ty),
                    None => {
                        fits = false;
                        Expr::literal(Value::Null, ty)
                    }
                }
            }
            other => other,
        };
        fill(&mut plan.root, &mut value, &mut table)?;
        Ok(fits.then_some(plan))
    }
}

fn is_good(node: &mut Node) -> bool {
    let mut good = match node {
        Node::Scan(scan) => scan.relation.table().is_some(),
        _ => true,
    };
    for_each_expr(node, &mut |expr, _| {
        expr.visit(&mut |expr| {
            // The optimizer computes what is made of parameters alone. But what a text becomes may depend on
            // what is written in it.
            let converts = |side: &Expr| match side {
                Expr::Cast { .. } => !has_parameter(side) || has_text(side),
                Expr::External { .. } => has_text(side),
                _ => false,
            };
            match expr {
                Expr::Compare { left, right, .. } if has_parameter(expr) => {
                    good &= !converts(left) && !converts(right)
                }
                Expr::External { function, .. } => good &= !function.is_volatile(),
                _ => {}
            }
        });
    });
    good && node.children_mut().into_iter().all(is_good)
}

/// A value of type `from` as one of type `to`, if it is the same.
fn fit(value: &Value, from: DataType, to: DataType) -> Option<Value> {
    let fits = match value {
        _ if from == to => true,
        Value::Integer(value) if from.is_integer() && to.is_integer() => {
            to.integer_range().is_some_and(|(least, greatest)| (least..=greatest).contains(value))
        }
        _ => false,
    };
    fits.then(|| value.clone())
}

fn has_parameter(expr: &Expr) -> bool {
    let mut found = false;
    expr.visit(&mut |expr| found |= matches!(expr, Expr::Parameter { .. }));
    found
}

/// True if a parameter in it is a text.
fn has_text(expr: &Expr) -> bool {
    let mut found = false;
    expr.visit(&mut |expr| found |= matches!(expr, Expr::Parameter { ty: DataType::Varchar, .. }));
    found
}

/// Puts values in the place of parameters, and relations in that of tables.
fn fill(
    node: &mut Node,
    value: &mut impl FnMut(Expr) -> Expr,
    relation: &mut impl FnMut(&dyn Relation) -> Result<Arc<dyn Relation>>,
) -> Result<()> {
    if let Node::Scan(scan) = node {
        scan.relation = relation(&*scan.relation)?;
    }
    for_each_expr(node, &mut |expr, _| {
        let taken = std::mem::replace(expr, Expr::boolean(false));
        *expr = taken.transform(value);
    });
    node.children_mut().into_iter().try_for_each(|child| fill(child, value, relation))
}
