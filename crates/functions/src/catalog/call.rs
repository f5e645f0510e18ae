//! A call of a catalog function in the engine's expressions: its kernel over the rows of a chunk.

use super::{definition, total};
use crate::catalog::signature::resolve;
use crate::definition::Definition;
use crate::definition::row::{Argument, Kernel, Row};
use crate::expressions::external::fold_external;
use crate::expressions::fold;
use crate::time_zone::TimeZone;
use entasis_vector::expr::{Expr, ExternalFunction};
use entasis_vector::parts::{Part, write_parts};
use entasis_vector::statement;
use entasis_vector::types::Interval;
use entasis_vector::value::Value;
use entasis_vector::vector::uuid_to_ordered;
use entasis_vector::writer::StringMaker;
use entasis_vector::writer::Writer;
use entasis_vector::{CHUNK_ROWS, DataType, Error, Native, PhysicalType, Result, Vector};
use std::fmt;
use std::sync::Arc;

/// Rows between two checks for an interrupt.
const ROWS_PER_CHECK: usize = 64;

/// A function with the types of a call.
pub struct Call {
    /// The name of the function, as the call wrote it.
    pub name: &'static str,
    /// The types of its arguments.
    pub args: Vec<DataType>,
    /// The type of its result.
    pub result: DataType,
    /// What computes it.
    pub kernel: Kernel,
    /// The session's time zone.
    pub zone: TimeZone,
}

impl fmt::Debug for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

impl ExternalFunction for Call {
    fn name(&self) -> &str {
        self.name
    }

    fn is_immutable(&self) -> bool {
        true
    }

    fn is_volatile(&self) -> bool {
        false
    }

    fn is_total(&self, args: &[Expr]) -> bool {
        total::is_total(self.name) || total::is_of_pattern(self.name) && self.takes_patterns(args)
    }

    fn evaluate(&self, args: &[Vector], rows: usize, out: &mut Vector) -> Result<()> {
        let args: Vec<Argument<'_>> =
            args.iter().zip(&self.args).map(|(arg, ty)| Argument::new(arg, *ty)).collect();
        out.begin(rows.max(CHUNK_ROWS));
        let row = |at| Row { args: &args, at, result: self.result, zone: self.zone };
        match self.kernel {
            Kernel::Test(f) => strict(rows, row, out, |row| Ok(f(row)?.map(u8::from))),
            Kernel::Whole(f) => self.integers(rows, row, out, true, |row| Ok(f(row)?.map(i128::from))),
            Kernel::Wide(f) => self.integers(rows, row, out, true, f),
            Kernel::WideOfNulls(f) => self.integers(rows, row, out, false, f),
            Kernel::Float(f) if out.physical() == PhysicalType::F32 => {
                strict(rows, row, out, |row| Ok(f(row)?.map(|v| v as f32)))
            }
            Kernel::Float(f) => strict(rows, row, out, f),
            Kernel::Interval(f) => strict::<Interval>(rows, row, out, f),
            Kernel::Text(f) => texts(rows, row, out, true, f),
            Kernel::TextOfNulls(f) => texts(rows, row, out, false, f),
            Kernel::Part(f) => parts(rows, row, out, self.result, f),
            Kernel::Choice(f) => choices(rows, row, out, f),
        }
    }
}

impl Call {
    /// True if all arguments but the first are constants, with which the empty text has a result.
    fn takes_patterns(&self, args: &[Expr]) -> bool {
        let constant = |(number, arg): (usize, &Expr)| match arg {
            _ if number == 0 => Vector::constant(PhysicalType::Str, &Value::Text("".into())).ok(),
            Expr::Literal { value, ty } => Vector::constant(ty.physical(), value).ok(),
            _ => None,
        };
        let args: Option<Vec<Vector>> = args.iter().enumerate().map(constant).collect();
        let mut out = Vector::new(self.result.physical());
        args.is_some_and(|args| statement::ahead(|| self.evaluate(&args, 1, &mut out)).is_ok())
    }

    fn integers<'a>(
        &self,
        rows: usize,
        row: impl Fn(usize) -> Row<'a>,
        out: &mut Vector,
        is_strict: bool,
        f: impl Fn(&Row<'_>) -> Result<Option<i128>>,
    ) -> Result<()> {
        let (ty, name) = (self.result, self.name);
        let range = ty.integer_range().unwrap_or((i128::MIN, i128::MAX));
        let checked = |row: &Row<'_>| match f(row)? {
            Some(v) if v < range.0 || v > range.1 => {
                Err(Error::input(format!("{name}: the result is not a valid {ty}")))
            }
            v => Ok(v),
        };
        macro_rules! fill {
            ($t:ty) => {
                fill::<$t>(rows, row, out, is_strict, |row| Ok(checked(row)?.map(|v| v as $t)))
            };
        }
        match out.physical() {
            PhysicalType::I8 => fill!(i8),
            PhysicalType::I16 => fill!(i16),
            PhysicalType::I32 => fill!(i32),
            PhysicalType::I64 => fill!(i64),
            PhysicalType::U8 | PhysicalType::Bool => fill!(u8),
            PhysicalType::U16 => fill!(u16),
            PhysicalType::U32 => fill!(u32),
            PhysicalType::U64 => fill!(u64),
            PhysicalType::I128 if ty == DataType::Uuid => {
                fill(rows, row, out, is_strict, |row| Ok(f(row)?.map(uuid_to_ordered)))
            }
            PhysicalType::I128 => fill!(i128),
            other => Err(Error::internal(format!("{name} gives {other:?}"))),
        }
    }
}

fn strict<'a, T: Native>(
    rows: usize,
    row: impl Fn(usize) -> Row<'a>,
    out: &mut Vector,
    f: impl Fn(&Row<'_>) -> Result<Option<T>>,
) -> Result<()> {
    fill(rows, row, out, true, f)
}

/// Writes the result of `f` for each row; NULL if the function is strict and an argument is NULL.
fn fill<'a, T: Native>(
    rows: usize,
    row: impl Fn(usize) -> Row<'a>,
    out: &mut Vector,
    is_strict: bool,
    f: impl Fn(&Row<'_>) -> Result<Option<T>>,
) -> Result<()> {
    let mut nulls = Vec::new();
    let values = out.values_mut::<T>();
    for (at, value) in values[..rows].iter_mut().enumerate() {
        if at % ROWS_PER_CHECK == 0 {
            statement::check()?;
        }
        let row = row(at);
        let computed = if is_strict && row.has_null() { None } else { f(&row)? };
        match computed {
            Some(computed) => *value = computed,
            None => nulls.push(at),
        }
    }
    nulls.into_iter().for_each(|at| out.set_null(at));
    Ok(())
}

fn texts<'a>(
    rows: usize,
    row: impl Fn(usize) -> Row<'a>,
    out: &mut Vector,
    is_strict: bool,
    f: impl Fn(&Row<'_>, &mut Writer<'_>) -> Result<bool>,
) -> Result<()> {
    let mut nulls = Vec::new();
    let strings = out.strings_mut();
    let (views, heap) = (strings.views, strings.heap);
    let mut maker = StringMaker::default();
    for (at, view) in views[..rows].iter_mut().enumerate() {
        if at % ROWS_PER_CHECK == 0 {
            statement::check()?;
        }
        let row = row(at);
        let is_null = is_strict && row.has_null();
        match if is_null { None } else { maker.make(heap, |out| f(&row, out))? } {
            Some(made) => *view = made,
            None => nulls.push(at),
        }
    }
    nulls.into_iter().for_each(|at| out.set_null(at));
    Ok(())
}

/// Writes the parts that `f` gives; NULL if an argument is NULL.
fn parts<'a>(
    rows: usize,
    row: impl Fn(usize) -> Row<'a>,
    out: &mut Vector,
    ty: DataType,
    f: fn(&Row<'a>) -> Result<Part<'a>>,
) -> Result<()> {
    let mut parts = Vec::with_capacity(rows);
    for at in 0..rows {
        if at % ROWS_PER_CHECK == 0 {
            statement::check()?;
        }
        let row = row(at);
        parts.push(if row.has_null() { None } else { f(&row)? });
    }
    write_parts(&parts, ty, out)
}

fn choices<'a>(
    rows: usize,
    row: impl Fn(usize) -> Row<'a>,
    out: &mut Vector,
    f: fn(&Row<'_>) -> Result<Option<usize>>,
) -> Result<()> {
    if out.physical() == PhysicalType::Str {
        return texts(rows, row, out, false, |row, out| match f(row)? {
            Some(i) if !row.is_null(i) => out.copy(row.bytes(i)).map(|()| true),
            _ => Ok(false),
        });
    }
    for at in 0..rows {
        if at % ROWS_PER_CHECK == 0 {
            statement::check()?;
        }
        let row = row(at);
        let value = match f(&row)? {
            Some(i) => row.value(i),
            None => Value::Null,
        };
        match (value, row.result) {
            (Value::Integer(v), DataType::Uuid) => {
                out.write_value(at, &Value::Integer(uuid_to_ordered(v)))?
            }
            (value, _) => out.write_value(at, &value)?,
        }
    }
    Ok(())
}

/// A call of a function of the catalog. `result` is its type, if the binder knows it more precisely than the
/// argument types imply. What depends on a time zone is computed in `zone`.
pub fn catalog_call(
    name: &'static str,
    definition: &'static Definition,
    args: Vec<Expr>,
    result: Option<DataType>,
    zone: TimeZone,
) -> Result<Expr> {
    let types: Vec<DataType> = args.iter().map(Expr::ty).collect();
    let constants: Vec<Option<Value>> = args
        .iter()
        .map(|arg| match arg {
            Expr::Literal { value, .. } if !value.is_null() => Some(value.clone()),
            _ => None,
        })
        .collect();
    let signature = resolve(name, definition, &types, &constants)?;
    let result = result.unwrap_or(signature.result);
    let args =
        args.into_iter().zip(&signature.args).map(|(arg, ty)| fold::cast_expr(arg, *ty, false)).collect();
    let call = Call { name, args: signature.args, result, kernel: signature.kernel, zone };
    fold_external(Arc::new(call), args, result)
}

/// A call of a catalog function by name.
pub fn named_call(name: &'static str, args: Vec<Expr>, zone: TimeZone) -> Result<Expr> {
    let definition =
        definition(name).ok_or_else(|| Error::internal(format!("the function {name} is missing")))?;
    catalog_call(name, definition, args, None, zone)
}
