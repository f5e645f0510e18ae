//! The types that DataFusion's binder requests: ours by their SQL names ([`entasis_syntax::types`]).

use crate::error::external;
use arrow_schema::{Field, FieldRef};
use datafusion_common::Result as DfResult;
use datafusion_expr::planner::TypePlanner;
use entasis_syntax::types::sql_type;
use sqlparser::ast::DataType;
use std::sync::Arc;

/// Our types for SQL's names; DataFusion's defaults differ (nanoseconds, views, `DECIMAL(38, 10)`).
#[derive(Debug)]
pub(super) struct Types;

impl TypePlanner for Types {
    fn plan_type_field(&self, ty: &DataType) -> DfResult<Option<FieldRef>> {
        let ty = sql_type(ty).map_err(external)?;
        Ok(Some(Arc::new(Field::new("type", entasis_arrow::to_arrow_type(ty), true))))
    }
}
