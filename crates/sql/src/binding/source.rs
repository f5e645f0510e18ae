//! Rows as DataFusion's binder sees them: columns under a name.

use arrow_schema::{Field, Schema, SchemaRef};
use datafusion_expr::{LogicalPlan, TableSource};
use entasis_engine::plan::Plan;
use entasis_engine::relation::Relation;
use std::borrow::Cow;
use std::collections::HashSet;
use std::sync::Arc;

/// A table, file or table function's result in the binder.
#[derive(Debug)]
pub(crate) struct Source {
    /// The relation that provides its rows.
    pub(crate) relation: Arc<dyn Relation>,
    /// Its columns as the binder knows them.
    schema: SchemaRef,
}

impl Source {
    /// Names are folded to lower case, as identifiers are; names that then clash get a number.
    pub(super) fn new(relation: Arc<dyn Relation>) -> Source {
        let mut taken = HashSet::new();
        let fields = relation.schema().iter().map(|field| {
            let folded = field.name.to_ascii_lowercase();
            let mut name = folded.clone();
            let mut number = 0;
            while !taken.insert(name.clone()) {
                number += 1;
                name = format!("{folded}_{number}");
            }
            Field::new(name, entasis_arrow::to_arrow_type(field.ty), field.nullable)
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

/// Rows of a plan that is lowered already, as a table of the enclosing query, which refers to it once.
#[derive(Debug)]
pub(crate) struct Rows {
    /// The plan of the rows.
    pub(crate) plan: Plan,
    /// Its outputs as columns.
    schema: SchemaRef,
}

impl Rows {
    /// The rows of `plan`, whose outputs have different names.
    pub(crate) fn new(plan: Plan) -> Rows {
        let fields = plan.output.iter().map(|output| {
            let column = plan.columns.get(output.column);
            Field::new(output.name.to_ascii_lowercase(), entasis_arrow::to_arrow_type(column.ty), true)
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

/// A view or another named query, as its plan.
pub(super) struct Derived {
    pub(super) plan: LogicalPlan,
}

impl TableSource for Derived {
    fn schema(&self) -> SchemaRef {
        Arc::new(self.plan.schema().as_arrow().clone())
    }
    fn get_logical_plan(&self) -> Option<Cow<'_, LogicalPlan>> {
        Some(Cow::Borrowed(&self.plan))
    }
}
