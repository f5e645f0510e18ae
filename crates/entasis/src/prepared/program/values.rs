//! The values of a program: where they come from, and their conversion to the types of columns.
//!
//! A constant is converted when the program is compiled, a parameter when it runs: most need no conversion,
//! and are borrowed as they were given. What is compared with a key is never converted, because a comparison
//! is not an assignment.

use entasis_functions::expressions::fold::convert;
use entasis_sql::Scalar;
use entasis_storage::{Datum, Sequence};
use entasis_vector::{DataType, Value};
use std::sync::Arc;

/// Where a value comes from, and the type that it must fit.
pub(crate) struct Source {
    /// A constant or a parameter.
    scalar: Scalar,
    /// The type of its column.
    ty: DataType,
    /// Where [`ProgramArguments`] has it if it must be converted; `None` if it never is.
    slot: Option<usize>,
}

/// The parameters that are assigned to columns, each with the type of its column. A parameter may occur more
/// than once.
#[derive(Default)]
pub(crate) struct Assignments(Vec<(usize, DataType)>);

/// The arguments of a run.
pub(crate) struct ProgramArguments<'a> {
    given: &'a [(Value, DataType)],
    /// By slot; empty if nothing had to be converted.
    converted: Vec<Option<Value>>,
}

/// The value of a column in a new row.
pub(crate) enum Fill {
    /// A constant or a parameter.
    Given(Source),
    /// The next value of a sequence.
    Next(Arc<Sequence>),
}

/// The new value of a column.
pub(crate) enum NewValue {
    /// A constant or a parameter.
    Given(Source),
    /// The row's value of a column plus or minus an integer.
    Sum {
        /// The column.
        column: usize,
        /// The integer.
        by: Source,
        /// True if it is subtracted.
        is_negative: bool,
        /// The types whose range the sum must be in: those of the column that is read and of the one that is
        /// set.
        types: [DataType; 2],
    },
    /// The value of a column in the row that was to be inserted.
    Excluded(usize),
}

impl Assignments {
    /// The source of a value that is assigned to a column of type `ty`; `None` if a constant cannot be
    /// converted to it.
    pub(crate) fn source(&mut self, scalar: &Scalar, ty: DataType) -> Option<Source> {
        match scalar {
            Scalar::Constant(value, from) => {
                let value = match fit(value, *from, ty) {
                    Some(_) => value.clone(),
                    None => convert(value, *from, ty)?,
                };
                Some(Source { scalar: Scalar::Constant(value, ty), ty, slot: None })
            }
            Scalar::Parameter(number) => {
                self.0.push((*number, ty));
                Some(Source { scalar: scalar.clone(), ty, slot: Some(self.0.len() - 1) })
            }
        }
    }

    /// The arguments of a run; `None` if one cannot be converted.
    pub(crate) fn arguments<'a>(&self, given: &'a [(Value, DataType)]) -> Option<ProgramArguments<'a>> {
        let mut converted = Vec::new();
        for (slot, &(number, ty)) in self.0.iter().enumerate() {
            let (value, from) = given.get(number)?;
            if fit(value, *from, ty).is_none() {
                converted.resize(self.0.len(), None);
                converted[slot] = Some(convert(value, *from, ty)?);
            }
        }
        Some(ProgramArguments { given, converted })
    }
}

impl ProgramArguments<'_> {
    /// Approximate bytes of all texts among them.
    pub(crate) fn bytes(&self) -> usize {
        self.given.iter().map(|(value, _)| bytes(value)).sum()
    }
}

impl Source {
    /// The source of a value that must fit a type as it is; `None` if it is a constant that does not.
    pub(crate) fn as_it_is(scalar: &Scalar, ty: DataType) -> Option<Source> {
        let fits = match scalar {
            Scalar::Constant(value, from) => fit(value, *from, ty).is_some(),
            Scalar::Parameter(_) => true,
        };
        fits.then(|| Source { scalar: scalar.clone(), ty, slot: None })
    }

    /// NULL.
    pub(crate) fn null(ty: DataType) -> Source {
        Source { scalar: Scalar::Constant(Value::Null, ty), ty, slot: None }
    }

    /// The value; `None` if it needs conversion.
    pub(crate) fn datum<'a>(&'a self, arguments: &'a ProgramArguments<'_>) -> Option<Datum<'a>> {
        match &self.scalar {
            Scalar::Constant(value, _) => fit(value, self.ty, self.ty),
            Scalar::Parameter(number) => {
                let (value, from) = arguments.given.get(*number)?;
                fit(value, *from, self.ty).or_else(|| {
                    let converted = arguments.converted.get(self.slot?)?.as_ref()?;
                    Some(Datum::of_value(converted, self.ty))
                })
            }
        }
    }

    /// Approximate bytes of a constant.
    pub(crate) fn bytes(&self) -> usize {
        match &self.scalar {
            Scalar::Constant(value, _) => bytes(value),
            Scalar::Parameter(_) => 0,
        }
    }
}

impl NewValue {
    /// The value; `None` if it needs conversion, or is out of range. `old` reads the present row, `excluded`
    /// is the row that was to be inserted.
    pub(crate) fn datum<'a>(
        &'a self,
        arguments: &'a ProgramArguments<'_>,
        old: impl Fn(usize) -> Option<i128>,
        excluded: &[Datum<'a>],
    ) -> Option<Datum<'a>> {
        match self {
            NewValue::Given(source) => source.datum(arguments),
            NewValue::Excluded(column) => excluded.get(*column).copied(),
            NewValue::Sum { column, by, is_negative, types } => {
                let by = match by.datum(arguments)? {
                    Datum::Integer(by) => by,
                    _ => return Some(Datum::Null),
                };
                let Some(old) = old(*column) else { return Some(Datum::Null) };
                let sum = if *is_negative { old.checked_sub(by)? } else { old.checked_add(by)? };
                let fits = |ty: &DataType| {
                    ty.integer_range().is_some_and(|(least, most)| (least..=most).contains(&sum))
                };
                types.iter().all(fits).then_some(Datum::Integer(sum))
            }
        }
    }
}

/// A value of type `from` in the representation of a column of type `to`, if no conversion is needed.
fn fit(value: &Value, from: DataType, to: DataType) -> Option<Datum<'_>> {
    let fits = match value {
        Value::Null => true,
        Value::Boolean(_) => to == DataType::Boolean,
        Value::Integer(v) => match to.integer_range() {
            Some((least, greatest)) if to.is_integer() => from.is_integer() && (least..=greatest).contains(v),
            _ => from == to,
        },
        Value::Text(_) => to == DataType::Varchar,
        Value::Float(_) => to == DataType::Float64 || from == to,
        _ => from == to,
    };
    fits.then(|| Datum::of_value(value, to))
}

fn bytes(value: &Value) -> usize {
    match value {
        Value::Text(text) => text.len(),
        Value::Bytes(bytes) => bytes.len(),
        _ => 0,
    }
}
