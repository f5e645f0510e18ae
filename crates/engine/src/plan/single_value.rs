//! The value of a scalar subquery, and the first of several rows, as aggregates.

use entasis_vector::aggregate::{ExternalAggregate, GroupStates};
use entasis_vector::{DataType, Error, Result, Value, Vector};
use std::any::Any;

/// The value of the only row, NULL without rows, and an error with more than one. A NULL is a row.
#[derive(Debug)]
pub struct SingleValue {
    /// The type of the argument.
    pub ty: DataType,
}

/// The value of the first row, NULL without rows.
#[derive(Debug)]
pub struct FirstValue {
    /// The type of the argument.
    pub ty: DataType,
}

/// The value of each group, if it has a row.
struct Values {
    ty: DataType,
    values: Vec<Option<Value>>,
    /// A second row is an error.
    is_single: bool,
}

/// The error for a scalar subquery with several rows.
pub(crate) fn second_row() -> Error {
    Error::input("a scalar subquery returned more than one row")
        .with_hint("add LIMIT 1 or an aggregate to it")
}

impl ExternalAggregate for SingleValue {
    fn name(&self) -> &str {
        "single_value"
    }

    fn state(&self) -> Result<Box<dyn GroupStates>> {
        Ok(Box::new(Values { ty: self.ty, values: Vec::new(), is_single: true }))
    }
}

impl ExternalAggregate for FirstValue {
    fn name(&self) -> &str {
        "first"
    }

    fn state(&self) -> Result<Box<dyn GroupStates>> {
        Ok(Box::new(Values { ty: self.ty, values: Vec::new(), is_single: false }))
    }
}

impl Values {
    fn add(&mut self, group: u32, value: Value) -> Result<()> {
        match &mut self.values[group as usize] {
            own @ None => *own = Some(value),
            Some(_) if self.is_single => return Err(second_row()),
            Some(_) => {}
        }
        Ok(())
    }
}

impl GroupStates for Values {
    fn update(&mut self, args: &[Vector], groups: &[u32], rows: usize, group_count: usize) -> Result<()> {
        self.values.resize(group_count, None);
        let ty = self.ty;
        groups[..rows].iter().enumerate().try_for_each(|(row, &group)| {
            let position = if args[0].is_constant() { 0 } else { row };
            self.add(group, args[0].value(position, ty))
        })
    }

    fn merge(&mut self, other: Box<dyn GroupStates>, map: &[u32], group_count: usize) -> Result<()> {
        self.values.resize(group_count, None);
        let other: Box<Values> =
            other.into_any().downcast().map_err(|_| Error::internal("states of another function"))?;
        let mut values = other.values.into_iter().zip(map);
        values.try_for_each(|(value, &group)| value.map_or(Ok(()), |value| self.add(group, value)))
    }

    fn finish(&mut self, start: usize, rows: usize, out: &mut Vector) -> Result<()> {
        out.begin(rows);
        for row in 0..rows {
            let value = self.values.get_mut(start + row).and_then(Option::take);
            out.write_value_of(row, &value.unwrap_or(Value::Null), self.ty)?;
        }
        Ok(())
    }

    fn bytes(&self) -> usize {
        self.values.capacity() * size_of::<Option<Value>>()
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state() -> Box<dyn GroupStates> {
        SingleValue { ty: DataType::Int64 }.state().unwrap()
    }

    fn vector(values: &[Value]) -> Vector {
        Vector::from_values(DataType::Int64.physical(), values).unwrap()
    }

    fn finished(mut state: Box<dyn GroupStates>) -> Value {
        let mut out = Vector::new(DataType::Int64.physical());
        state.finish(0, 1, &mut out).unwrap();
        out.value(0, DataType::Int64)
    }

    #[test]
    fn no_row_is_null_and_one_row_its_value() {
        assert_eq!(finished(state()), Value::Null);
        let mut one = state();
        one.update(&[vector(&[Value::Integer(7)])], &[0], 1, 1).unwrap();
        let mut merged = state();
        merged.update(&[vector(&[])], &[], 0, 1).unwrap();
        merged.merge(one, &[0], 1).unwrap();
        assert_eq!(finished(merged), Value::Integer(7));
    }

    #[test]
    fn two_rows_are_an_error_even_if_one_is_null() {
        let rows = [Value::Null, Value::Integer(7)];
        let error = state().update(&[vector(&rows)], &[0, 0], 2, 1).unwrap_err();
        assert!(error.message().contains("more than one row"), "{error}");
        let [mut one, mut two] = [state(), state()];
        one.update(&[vector(&rows[..1])], &[0], 1, 1).unwrap();
        two.update(&[vector(&rows[1..])], &[0], 1, 1).unwrap();
        assert!(one.merge(two, &[0], 1).is_err());
    }

    #[test]
    fn the_first_row_counts_even_if_it_is_null() {
        let first = || FirstValue { ty: DataType::Int64 }.state().unwrap();
        assert_eq!(finished(first()), Value::Null);
        for (rows, expected) in [
            ([Value::Integer(7), Value::Integer(8)], Value::Integer(7)),
            ([Value::Null, Value::Integer(8)], Value::Null),
        ] {
            let mut whole = first();
            whole.update(&[vector(&rows)], &[0, 0], 2, 1).unwrap();
            assert_eq!(finished(whole), expected);
            let [mut before, mut after] = [first(), first()];
            before.update(&[vector(&rows[..1])], &[0], 1, 1).unwrap();
            after.update(&[vector(&rows[1..])], &[0], 1, 1).unwrap();
            before.merge(after, &[0], 1).unwrap();
            assert_eq!(finished(before), expected);
        }
    }
}
