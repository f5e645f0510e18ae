//! One aggregate function of the library.
//!
//! Most have a *groups accumulator*, which keeps the states of all groups side by side; the others get one accumulator
//! a group. `DISTINCT`, `FILTER` and `ORDER BY` are the engine's business, so the library never hears of them.

use super::{Argument, cast, library_error};
use arrow_array::{Array, ArrayRef, UInt32Array};
use arrow_schema::{DataType as ArrowType, Field, FieldRef, Schema};
use datafusion_common::ScalarValue;
use datafusion_expr::function::AccumulatorArgs;
use datafusion_expr::{Accumulator, AggregateUDF, EmitTo, GroupsAccumulator};
use datafusion_physical_expr::PhysicalExpr;
use datafusion_physical_expr::expressions::{Column, Literal};
use entasis_engine::plan::{ExternalAggregate, GroupStates};
use entasis_vector::{DataType, Error, Result, Vector};
use std::any::Any;
use std::sync::Arc;

/// The engine's view of `function`, called with arguments of exactly `arg_types`, of which those with a literal are
/// constants that the function wants to know beforehand (the share of a percentile).
///
/// # Errors
/// Not supported, for types that Entasis does not have; input, if the function refuses its arguments.
pub(crate) fn aggregate(
    function: Arc<AggregateUDF>,
    arg_types: Vec<ArrowType>,
    literals: Vec<Option<ScalarValue>>,
    return_type: ArrowType,
    ignore_nulls: bool,
) -> Result<Arc<dyn ExternalAggregate>> {
    let fields: Vec<FieldRef> = arg_types
        .iter()
        .enumerate()
        .map(|(i, ty)| Arc::new(Field::new(format!("arg{i}"), ty.clone(), true)))
        .collect();
    let exprs = literals
        .into_iter()
        .enumerate()
        .map(|(i, literal)| match literal {
            Some(value) => Arc::new(Literal::new(value)) as Arc<dyn PhysicalExpr>,
            None => Arc::new(Column::new(&format!("arg{i}"), i)),
        })
        .collect();
    let library = Library {
        schema: Schema::new(fields.clone()),
        args: arg_types.into_iter().map(Argument::new).collect::<Result<_>>()?,
        result: entasis_arrow::from_arrow_type(&return_type)?,
        return_field: Arc::new(Field::new("result", return_type, true)),
        function,
        fields,
        exprs,
        ignore_nulls,
    };
    library.state()?;
    Ok(Arc::new(LibraryAggregate(Arc::new(library))))
}

#[derive(Debug)]
struct LibraryAggregate(Arc<Library>);

#[derive(Debug)]
struct Library {
    function: Arc<AggregateUDF>,
    args: Vec<Argument>,
    fields: Vec<FieldRef>,
    schema: Schema,
    exprs: Vec<Arc<dyn PhysicalExpr>>,
    result: DataType,
    return_field: FieldRef,
    ignore_nulls: bool,
}

impl Library {
    fn call(&self) -> AccumulatorArgs<'_> {
        AccumulatorArgs {
            return_field: self.return_field.clone(),
            schema: &self.schema,
            ignore_nulls: self.ignore_nulls,
            order_bys: &[],
            is_reversed: false,
            name: self.function.name(),
            is_distinct: false,
            exprs: &self.exprs,
            expr_fields: &self.fields,
        }
    }

    fn error(&self, error: datafusion_common::DataFusionError) -> Error {
        library_error(self.function.name(), error)
    }

    fn state(&self) -> Result<States> {
        if self.function.groups_accumulator_supported(self.call()) {
            let all = self.function.create_groups_accumulator(self.call()).map_err(|e| self.error(e))?;
            return Ok(States::Together(all));
        }
        // Made once here, so that an argument that the function refuses is an error of the statement, not of a row.
        self.function.accumulator(self.call()).map_err(|e| self.error(e))?;
        Ok(States::Apart(Vec::new()))
    }
}

impl ExternalAggregate for LibraryAggregate {
    fn name(&self) -> &str {
        self.0.function.name()
    }

    fn state(&self) -> Result<Box<dyn GroupStates>> {
        Ok(Box::new(LibraryStates {
            library: self.0.clone(),
            states: self.0.state()?,
            group_count: 0,
            groups: Vec::new(),
            results: None,
        }))
    }
}

/// The states of all groups.
enum States {
    Together(Box<dyn GroupsAccumulator>),
    Apart(Vec<Box<dyn Accumulator>>),
}

struct LibraryStates {
    library: Arc<Library>,
    states: States,
    group_count: usize,
    /// Group indices of a call, as the library wants them.
    groups: Vec<usize>,
    /// All results, once the first was asked for.
    results: Option<ArrayRef>,
}

impl LibraryStates {
    /// Makes the states of groups that are new.
    fn grow(&mut self, group_count: usize) -> Result<()> {
        self.group_count = self.group_count.max(group_count);
        if let States::Apart(accumulators) = &mut self.states {
            while accumulators.len() < self.group_count {
                let library = &self.library;
                accumulators.push(library.function.accumulator(library.call()).map_err(|e| library.error(e))?);
            }
        }
        Ok(())
    }

    fn evaluate(&mut self) -> Result<ArrayRef> {
        self.grow(self.group_count)?;
        let library = &self.library;
        let array = match &mut self.states {
            States::Together(all) => all.evaluate(EmitTo::All).map_err(|e| library.error(e))?,
            States::Apart(accumulators) => {
                let values = accumulators
                    .iter_mut()
                    .map(|accumulator| accumulator.evaluate().map_err(|e| library.error(e)))
                    .collect::<Result<Vec<_>>>()?;
                ScalarValue::iter_to_array(values).map_err(|e| library.error(e))?
            }
        };
        cast(array, &entasis_arrow::to_arrow_type(library.result))
    }
}

impl GroupStates for LibraryStates {
    fn update(&mut self, args: &[Vector], groups: &[u32], rows: usize, group_count: usize) -> Result<()> {
        self.grow(group_count)?;
        let library = self.library.clone();
        let arrays = args
            .iter()
            .zip(&library.args)
            .map(|(vector, argument)| {
                let array = argument.array(vector, rows)?;
                if vector.is_constant() {
                    let value = ScalarValue::try_from_array(&array, 0).map_err(|e| library.error(e))?;
                    return value.to_array_of_size(rows).map_err(|e| library.error(e));
                }
                Ok(array)
            })
            .collect::<Result<Vec<_>>>()?;
        match &mut self.states {
            States::Together(all) => {
                self.groups.clear();
                self.groups.extend(groups[..rows].iter().map(|g| *g as usize));
                all.update_batch(&arrays, &self.groups, None, self.group_count).map_err(|e| library.error(e))
            }
            States::Apart(accumulators) => {
                // The rows of each group, in their order.
                let mut order: Vec<u32> = (0..rows as u32).collect();
                order.sort_by_key(|row| groups[*row as usize]);
                for run in order.chunk_by(|a, b| groups[*a as usize] == groups[*b as usize]) {
                    let indices = UInt32Array::from(run.to_vec());
                    let rows = arrays
                        .iter()
                        .map(|array| arrow_select::take::take(array, &indices, None))
                        .collect::<Result<Vec<_>, _>>()
                        .map_err(|e| library.error(e.into()))?;
                    let accumulator = &mut accumulators[groups[run[0] as usize] as usize];
                    accumulator.update_batch(&rows).map_err(|e| library.error(e))?;
                }
                Ok(())
            }
        }
    }

    fn merge(&mut self, other: Box<dyn GroupStates>, map: &[u32], group_count: usize) -> Result<()> {
        self.grow(group_count)?;
        let other = other.into_any().downcast::<LibraryStates>();
        let mut other = *other.map_err(|_| Error::internal("states of another function"))?;
        other.grow(map.len())?;
        let library = self.library.clone();
        match (&mut self.states, other.states) {
            (States::Together(mine), States::Together(mut theirs)) => {
                let states = theirs.state(EmitTo::All).map_err(|e| library.error(e))?;
                let rows = states.first().map_or(0, |array| array.len()).min(map.len());
                let groups: Vec<usize> = map[..rows].iter().map(|g| *g as usize).collect();
                mine.merge_batch(&states, &groups, None, self.group_count).map_err(|e| library.error(e))
            }
            (States::Apart(mine), States::Apart(theirs)) => {
                for (mut accumulator, group) in theirs.into_iter().zip(map) {
                    let states = accumulator.state().map_err(|e| library.error(e))?;
                    let arrays = states
                        .iter()
                        .map(ScalarValue::to_array)
                        .collect::<Result<Vec<_>, _>>()
                        .map_err(|e| library.error(e))?;
                    mine[*group as usize].merge_batch(&arrays).map_err(|e| library.error(e))?;
                }
                Ok(())
            }
            _ => Err(Error::internal("states of another shape")),
        }
    }

    fn finish(&mut self, start: usize, rows: usize, out: &mut Vector) -> Result<()> {
        self.group_count = self.group_count.max(start + rows);
        if self.results.is_none() {
            self.results = Some(self.evaluate()?);
        }
        let results = self.results.as_ref().expect("just made");
        entasis_arrow::array_to_vector(results.as_ref(), start, rows, self.library.result, out)
    }

    fn bytes(&self) -> usize {
        match &self.states {
            States::Together(all) => all.size(),
            States::Apart(accumulators) => accumulators.iter().map(|accumulator| accumulator.size()).sum(),
        }
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}
