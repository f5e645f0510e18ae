//! Aggregate functions of DataFusion's library in the engine's aggregation.
//!
//! Each worker has one [`GroupsAccumulator`] for all its groups: the function's own where it has one, else an adapter
//! that keeps one accumulator a group. Groups that never saw a row get what the function gives for none.

use super::scalar::without_panic;
use crate::error::from_datafusion;
use arrow_array::{Array, ArrayRef, new_empty_array};
use arrow_schema::{FieldRef, Schema as ArrowSchema};
use datafusion_common::ScalarValue;
use datafusion_expr::function::AccumulatorArgs;
use datafusion_expr::{AggregateUDF, EmitTo, GroupsAccumulator};
use datafusion_physical_expr::expressions::{Column, Literal};
use datafusion_physical_expr::{GroupsAccumulatorAdapter, PhysicalExpr};
use entasis_arrow::{array_to_vector, from_arrow_type, vector_to_array};
use entasis_engine::plan::{ExternalAggregate, GroupStates};
use entasis_vector::{DataType, Error, Result, Vector};
use std::any::Any;
use std::fmt;
use std::sync::Arc;

/// A function with the types that the binder settled on.
#[derive(Clone)]
pub(crate) struct External(Arc<Inner>);

struct Inner {
    udf: Arc<AggregateUDF>,
    types: Vec<DataType>,
    args: Vec<FieldRef>,
    exprs: Vec<Arc<dyn PhysicalExpr>>,
    schema: ArrowSchema,
    result: FieldRef,
    ty: DataType,
    ignore_nulls: bool,
}

impl fmt::Debug for External {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0.udf.name())
    }
}

impl External {
    /// `udf` over arguments that the binder has coerced; `constants` are the values of those that are literals.
    ///
    /// # Errors
    /// Not supported, if arguments or result are nested types.
    pub(crate) fn new(
        udf: Arc<AggregateUDF>,
        args: Vec<FieldRef>,
        constants: Vec<Option<ScalarValue>>,
        result: FieldRef,
        ignore_nulls: bool,
    ) -> Result<External> {
        let types = args.iter().map(|field| from_arrow_type(field.data_type())).collect::<Result<Vec<_>>>()?;
        let ty = from_arrow_type(result.data_type())?;
        let named: Vec<FieldRef> = args
            .iter()
            .enumerate()
            .map(|(i, field)| Arc::new(field.as_ref().clone().with_name(format!("a{i}"))))
            .collect();
        let exprs: Vec<Arc<dyn PhysicalExpr>> = constants
            .into_iter()
            .enumerate()
            .map(|(i, constant)| match constant {
                Some(value) => Arc::new(Literal::new(value)) as Arc<dyn PhysicalExpr>,
                None => Arc::new(Column::new(&format!("a{i}"), i)) as Arc<dyn PhysicalExpr>,
            })
            .collect();
        let schema = ArrowSchema::new(named.clone());
        Ok(External(Arc::new(Inner { udf, types, args: named, exprs, schema, result, ty, ignore_nulls })))
    }
}

impl Inner {
    fn accumulator_args(&self) -> AccumulatorArgs<'_> {
        AccumulatorArgs {
            return_field: self.result.clone(),
            schema: &self.schema,
            ignore_nulls: self.ignore_nulls,
            order_bys: &[],
            is_reversed: false,
            name: self.udf.name(),
            is_distinct: false,
            exprs: &self.exprs,
            expr_fields: &self.args,
        }
    }

    fn accumulator(self: &Arc<Inner>) -> Result<Box<dyn GroupsAccumulator>> {
        if self.udf.groups_accumulator_supported(self.accumulator_args()) {
            return self.udf.create_groups_accumulator(self.accumulator_args()).map_err(from_datafusion);
        }
        let inner = self.clone();
        // The function refuses its arguments here rather than at the first group.
        self.udf.accumulator(self.accumulator_args()).map_err(from_datafusion)?;
        Ok(Box::new(GroupsAccumulatorAdapter::new(move || inner.udf.accumulator(inner.accumulator_args()))))
    }

    fn empty_arguments(&self) -> Vec<ArrayRef> {
        self.args.iter().map(|field| new_empty_array(field.data_type())).collect()
    }
}

impl ExternalAggregate for External {
    fn name(&self) -> &str {
        self.0.udf.name()
    }

    fn state(&self) -> Result<Box<dyn GroupStates>> {
        let accumulator = self.0.accumulator()?;
        Ok(Box::new(States { function: self.0.clone(), accumulator, groups: 0, indices: Vec::new(), results: None }))
    }
}

struct States {
    function: Arc<Inner>,
    accumulator: Box<dyn GroupsAccumulator>,
    /// Groups that the accumulator knows.
    groups: usize,
    indices: Vec<usize>,
    /// The results of all groups, once the first is asked for.
    results: Option<ArrayRef>,
}

impl States {
    fn set_indices(&mut self, groups: impl Iterator<Item = u32>) {
        self.indices.clear();
        self.indices.extend(groups.map(|g| g as usize));
    }
}

impl GroupStates for States {
    fn update(&mut self, args: &[Vector], groups: &[u32], rows: usize, group_count: usize) -> Result<()> {
        let function = self.function.clone();
        let arrays = args
            .iter()
            .enumerate()
            .map(|(i, arg)| {
                let array = vector_to_array(arg, None, rows, function.types[i])?;
                let wanted = function.args[i].data_type();
                if array.data_type() == wanted {
                    return Ok(array);
                }
                arrow_cast::cast(&array, wanted).map_err(entasis_arrow::arrow_error)
            })
            .collect::<Result<Vec<_>>>()?;
        self.set_indices(groups[..rows].iter().copied());
        self.groups = self.groups.max(group_count);
        without_panic(function.udf.name(), || {
            self.accumulator.update_batch(&arrays, &self.indices, None, self.groups).map_err(from_datafusion)
        })
    }

    fn merge(&mut self, other: Box<dyn GroupStates>, map: &[u32], group_count: usize) -> Result<()> {
        let other = other.into_any().downcast::<States>();
        let mut other = other.map_err(|_| Error::internal("states of two different aggregates were merged"))?;
        self.groups = self.groups.max(group_count);
        let state = other.accumulator.state(EmitTo::All).map_err(from_datafusion)?;
        let known = state.first().map_or(0, |array| array.len());
        if known == 0 {
            // Rows that are ordered first have not come here yet.
            return Ok(());
        }
        self.set_indices(map[..known].iter().copied());
        self.accumulator.merge_batch(&state, &self.indices, self.groups).map_err(from_datafusion)
    }

    fn finish(&mut self, start: usize, rows: usize, out: &mut Vector) -> Result<()> {
        let function = self.function.clone();
        if self.results.is_none() {
            let results = || self.accumulator.evaluate(EmitTo::All).map_err(from_datafusion);
            self.results = Some(without_panic(function.udf.name(), results)?);
        }
        let results = self.results.as_ref().expect("just set");
        if start + rows <= results.len() {
            return array_to_vector(results, start, rows, function.ty, out);
        }
        // Groups beyond: they saw no row here.
        let known = results.len().saturating_sub(start);
        let mut fresh = function.accumulator()?;
        let total = rows - known;
        fresh.update_batch(&function.empty_arguments(), &[], None, total).map_err(from_datafusion)?;
        let mut rest = fresh.evaluate(EmitTo::All).map_err(from_datafusion)?;
        if rest.len() < total {
            rest = arrow_array::new_null_array(function.result.data_type(), total);
        }
        let head = results.slice(start.min(results.len()), known);
        let both = arrow_select::concat::concat(&[&head, &rest]).map_err(entasis_arrow::arrow_error)?;
        array_to_vector(&both, 0, rows, function.ty, out)
    }

    fn bytes(&self) -> usize {
        self.accumulator.size() + self.results.as_ref().map_or(0, |r| r.get_array_memory_size())
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}
