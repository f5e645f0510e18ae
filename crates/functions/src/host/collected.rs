//! Aggregates of the host program.
//!
//! The rows of a group are collected as a list of structs, by the same states as `list(…)`: so they count as
//! memory of the statement, are merged over threads and copied for windows. At the end of a group the list is
//! taken apart into the values of each argument, for which the function is called once.

use super::{Compute, HostFunction, called};
use crate::aggregates::{Call, Kind};
use entasis_vector::aggregate::{ExternalAggregate, GroupStates};
use entasis_vector::value::nested;
use entasis_vector::{CHUNK_ROWS, DataType, Error, Result, Value, Vector, statement};
use std::any::Any;
use std::sync::Arc;

/// An aggregate of the host program with the types of a call.
#[derive(Debug)]
pub struct HostAggregate {
    own: Arc<Own>,
    /// Collects the rows.
    list: Call,
}

#[derive(Debug)]
struct Own {
    function: HostFunction,
    types: Vec<DataType>,
    /// The type of a collected row: that of the only argument, or a struct of all.
    row: DataType,
}

impl HostAggregate {
    /// A call of `function` with arguments of `types`, which come as one value of the type `row`: the only
    /// argument itself, or a struct of them all.
    pub fn new(function: HostFunction, types: Vec<DataType>, row: DataType) -> HostAggregate {
        let list = Call {
            name: function.name.clone(),
            kind: Kind::List,
            args: vec![row],
            result: DataType::list(row),
            ignore_nulls: false,
        };
        HostAggregate { own: Arc::new(Own { function, types, row }), list }
    }
}

impl ExternalAggregate for HostAggregate {
    fn name(&self) -> &str {
        &self.own.function.name
    }

    fn state(&self) -> Result<Box<dyn GroupStates>> {
        let lists = self.list.state()?;
        Ok(Box::new(Collected { own: self.own.clone(), lists: Some(lists), list: self.list.result }))
    }
}

impl Own {
    /// The result for a group of these rows.
    fn result(&self, list: &Value) -> Result<Value> {
        let mut columns: Vec<Vec<Value>> = vec![Vec::new(); self.types.len()];
        if let Value::Bytes(list) = list {
            for row in nested::values(list, self.row) {
                match (row?, self.row) {
                    (Value::Bytes(row), DataType::Struct(fields)) if self.types.len() > 1 => {
                        let values = nested::fields(&row, fields)?;
                        columns.iter_mut().zip(values).for_each(|(column, value)| column.push(value));
                    }
                    (row, _) => columns[0].push(row),
                }
            }
        }
        if !self.function.takes_nulls {
            let rows = columns[0].len();
            let keep: Vec<bool> =
                (0..rows).map(|row| columns.iter().all(|column| !column[row].is_null())).collect();
            for column in &mut columns {
                let mut kept = keep.iter();
                column.retain(|_| *kept.next().unwrap_or(&true));
            }
        }
        let Compute::Group(compute) = &self.function.compute else {
            return Err(Error::internal("a function of rows is called for a group"));
        };
        called(self.function.owner, || compute(&self.types, &columns))
            .map_err(|error| self.function.failed(error))
    }
}

/// The rows of all groups.
struct Collected {
    own: Arc<Own>,
    /// There until it is merged into another one.
    lists: Option<Box<dyn GroupStates>>,
    list: DataType,
}

impl Collected {
    fn lists(&mut self) -> Result<&mut Box<dyn GroupStates>> {
        self.lists.as_mut().ok_or_else(|| Error::internal("states that were merged are used again"))
    }
}

impl GroupStates for Collected {
    fn update(&mut self, args: &[Vector], groups: &[u32], rows: usize, group_count: usize) -> Result<()> {
        self.lists()?.update(args, groups, rows, group_count)
    }

    fn merge(&mut self, other: Box<dyn GroupStates>, map: &[u32], group_count: usize) -> Result<()> {
        let other = other.into_any().downcast::<Collected>();
        let other = other.map_err(|_| Error::internal("states of two different aggregates were merged"))?;
        match other.lists {
            Some(lists) => self.lists()?.merge(lists, map, group_count),
            None => Ok(()),
        }
    }

    fn add_copies(
        &mut self,
        other: &dyn GroupStates,
        ids: &[u32],
        map: &[u32],
        group_count: usize,
    ) -> Result<bool> {
        let other = other.as_any().and_then(|other| other.downcast_ref::<Collected>());
        match other.and_then(|other| other.lists.as_deref()) {
            Some(lists) => self.lists()?.add_copies(lists, ids, map, group_count),
            None => Err(Error::internal("states of two different aggregates were merged")),
        }
    }

    fn as_any(&self) -> Option<&dyn Any> {
        Some(self)
    }

    fn finish(&mut self, start: usize, rows: usize, out: &mut Vector) -> Result<()> {
        let (own, ty) = (self.own.clone(), self.list);
        let mut lists = Vector::new(ty.physical());
        self.lists()?.finish(start, rows, &mut lists)?;
        out.begin(rows.max(CHUNK_ROWS));
        for row in 0..rows {
            statement::check()?;
            let result = own.result(&lists.value(row, ty))?;
            out.write_value_of(row, &result, own.function.result)?;
        }
        Ok(())
    }

    fn bytes(&self) -> usize {
        self.lists.as_ref().map_or(0, |lists| lists.bytes())
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}
