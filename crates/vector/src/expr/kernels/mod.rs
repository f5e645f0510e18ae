//! Kernels: loops over the values of vectors, one per operation and physical type.
//!
//! A kernel reads flat or constant vectors and writes the positions that its [`Rows`] name to a vector that
//! it begins. [`strict`] does the common part of all operations whose result is NULL if an operand is: it
//! combines the validities, computes constants once, and passes the remaining rows to the loop (for strings,
//! only the valid ones). Loops come in four shapes (each operand a slice or a constant, positions all or
//! listed) and are written once, in [`unary`] and [`binary`]; the shapes over all positions have no bounds
//! checks and become vector instructions.
//!
//! **Errors.** A kernel that may fail runs the whole loop with a flag, and only if the flag is set searches
//! the first selected, valid row that failed, to name it. Positions that are not rows may set the flag but
//! never raise the error.

pub mod arithmetic;
pub mod blend;
pub mod boolean;
pub mod cast;
pub mod compare;
pub mod date;
pub mod list;
pub mod ranges;
pub mod select;
pub mod string;

use crate::buffer::Native;
use crate::simd::widest;
use crate::statement::{Looks, STEP, reserve};
use crate::types::PhysicalType;
use crate::vector::{Vector, uuid_to_ordered};
use crate::{CHUNK_ROWS, DataType, Error, Result, StringView, Value, bitmap};

/// The positions for which a kernel computes.
#[derive(Debug, Clone, Copy)]
pub enum Rows<'a> {
    /// The first ones, that many.
    Dense(usize),
    /// Those listed, which may repeat. All are below the limit.
    Sparse(&'a [u16], usize),
}

impl<'a> Rows<'a> {
    /// Number of rows.
    pub fn len(self) -> usize {
        match self {
            Rows::Dense(n) => n,
            Rows::Sparse(list, _) => list.len(),
        }
    }
    /// All positions are below.
    pub fn limit(self) -> usize {
        match self {
            Rows::Dense(n) | Rows::Sparse(_, n) => n,
        }
    }
    /// The rows as a cheap kernel that cannot fail should take them: all positions, if at least a quarter of
    /// them are selected.
    pub fn widened(self) -> Rows<'a> {
        match self {
            Rows::Sparse(list, limit) if list.len() * 4 >= limit => Rows::Dense(limit),
            rows => rows,
        }
    }
    /// Calls `f` for each position until it says that it has enough.
    #[inline(always)]
    pub fn try_each<E>(self, mut f: impl FnMut(usize) -> Result<(), E>) -> Result<(), E> {
        match self {
            Rows::Dense(n) => (0..n).try_for_each(f),
            Rows::Sparse(list, _) => list.iter().try_for_each(|&p| f(p as usize)),
        }
    }
    /// Calls `f` for each position.
    #[inline(always)]
    pub fn each(self, mut f: impl FnMut(usize)) {
        match self {
            Rows::Dense(n) => (0..n).for_each(f),
            Rows::Sparse(list, _) => list.iter().for_each(|&p| f(p as usize)),
        }
    }
}

/// The values of one operand.
#[derive(Clone, Copy)]
pub enum Operand<'a, T> {
    /// One per position.
    Each(&'a [T]),
    /// The same for all.
    One(T),
}

impl<T: Copy> Operand<'_, T> {
    /// The value at `position`.
    #[inline(always)]
    pub fn get(&self, position: usize) -> T {
        match self {
            Operand::Each(values) => values[position],
            Operand::One(value) => *value,
        }
    }
}

/// The values of a flat or constant vector.
#[inline(always)]
pub fn operand<T: Native>(vector: &Vector) -> Operand<'_, T> {
    if vector.is_constant() {
        Operand::One(vector.values::<T>()[0])
    } else {
        Operand::Each(vector.values::<T>())
    }
}

/// `out[p] = f(a[p])`.
#[inline(always)]
pub fn unary<A: Copy, R>(a: Operand<'_, A>, rows: Rows<'_>, out: &mut [R], f: impl Fn(A) -> R + Copy) {
    unary_checked(a, rows, out, move |a| (f(a), false));
}

/// `out[p] = f(a[p], b[p])`.
#[inline(always)]
pub fn binary<A: Copy, B: Copy, R>(
    a: Operand<'_, A>,
    b: Operand<'_, B>,
    rows: Rows<'_>,
    out: &mut [R],
    f: impl Fn(A, B) -> R + Copy,
) {
    binary_checked(a, b, rows, out, move |a, b| (f(a, b), false));
}

/// As [`unary`]; `f` also returns whether it failed. True if it failed for some row.
// A flag that `f` kept would be memory that, for all the compiler knows, each result might overlap.
#[inline(always)]
pub fn unary_checked<A: Copy, R>(
    a: Operand<'_, A>,
    rows: Rows<'_>,
    out: &mut [R],
    f: impl Fn(A) -> (R, bool) + Copy,
) -> bool {
    let mut failed = false;
    match (rows, a) {
        (Rows::Dense(n), Operand::Each(a)) => widest(move || {
            out[..n].iter_mut().zip(&a[..n]).fold(false, |failed, (o, &a)| keep(o, f(a)) | failed)
        }),
        (_, a) => {
            rows.each(|p| failed |= keep(&mut out[p], f(a.get(p))));
            failed
        }
    }
}

/// As [`binary`]; `f` also returns whether it failed. True if it failed for some row.
#[inline(always)]
pub fn binary_checked<A: Copy, B: Copy, R>(
    a: Operand<'_, A>,
    b: Operand<'_, B>,
    rows: Rows<'_>,
    out: &mut [R],
    f: impl Fn(A, B) -> (R, bool) + Copy,
) -> bool {
    let mut failed = false;
    match (rows, a, b) {
        (Rows::Dense(n), Operand::Each(a), Operand::Each(b)) => widest(move || {
            let pairs = out[..n].iter_mut().zip(&a[..n]).zip(&b[..n]);
            pairs.fold(false, |failed, ((o, &a), &b)| keep(o, f(a, b)) | failed)
        }),
        (Rows::Dense(_), a, Operand::One(b)) => unary_checked(a, rows, out, move |a| f(a, b)),
        (Rows::Dense(_), Operand::One(a), b) => unary_checked(b, rows, out, move |b| f(a, b)),
        _ => {
            rows.each(|p| failed |= keep(&mut out[p], f(a.get(p), b.get(p))));
            failed
        }
    }
}

/// Writes a result; returns whether it failed.
#[inline(always)]
fn keep<R>(out: &mut R, (value, failed): (R, bool)) -> bool {
    *out = value;
    failed
}

/// Makes `out` the constant NULL.
pub fn null_constant(out: &mut Vector) {
    out.begin(CHUNK_ROWS);
    out.set_null(0);
    out.make_constant();
}

/// The frame of an operation that is NULL where an operand is: `body` computes the values of the rows that it
/// is given into `out`, which has been begun and has its validity.
///
/// # Errors
/// Those of `body`.
pub fn strict(
    args: &[&Vector],
    rows: Rows<'_>,
    out: &mut Vector,
    body: impl FnOnce(Rows<'_>, &mut Vector) -> Result<()>,
) -> Result<()> {
    if args.iter().any(|arg| arg.is_constant() && !arg.is_valid(0)) {
        null_constant(out);
        return Ok(());
    }
    let constant = !args.is_empty() && args.iter().all(|arg| arg.is_constant());
    let rows = if constant { Rows::Dense(1) } else { rows };
    out.begin(rows.limit().max(CHUNK_ROWS));
    let words = bitmap::words_for(rows.limit());
    for arg in args.iter().filter(|arg| !arg.is_constant()) {
        if let Some(validity) = arg.validity() {
            let target = &mut out.validity_mut(rows.limit())[..words];
            target.iter_mut().zip(validity).for_each(|(t, v)| *t &= v);
        }
    }
    // The view at a NULL position may be of a string that is gone, so no kernel may follow it.
    let strings = args.iter().any(|arg| arg.physical() == PhysicalType::Str);
    if strings && out.validity().is_some() {
        valid_only(rows, out, body)?;
    } else {
        body(rows, out)?;
    }
    if constant {
        out.make_constant();
    }
    Ok(())
}

/// Runs `body` for those of `rows` that are valid in `out`.
fn valid_only(
    rows: Rows<'_>,
    out: &mut Vector,
    body: impl FnOnce(Rows<'_>, &mut Vector) -> Result<()>,
) -> Result<()> {
    let mut list = [0u16; CHUNK_ROWS];
    let mut end = 0;
    let words = out.validity().expect("the caller has looked");
    rows.each(|p| {
        if bitmap::get(words, p) {
            list[end] = p as u16;
            end += 1;
        }
    });
    body(Rows::Sparse(&list[..end], rows.limit()), out)
}

/// The error of the first row that is valid in `out` and for which `failure` has one.
///
/// # Errors
/// That one.
#[cold]
pub fn first_failure(rows: Rows<'_>, out: &Vector, failure: impl Fn(usize) -> Option<Error>) -> Result<()> {
    rows.try_each(|p| match out.is_valid(p).then(|| failure(p)).flatten() {
        Some(error) => Err(error),
        None => Ok(()),
    })
}

/// Bytes of the string at a position of a flat or constant vector; 0 of another type.
fn bytes_at(vector: &Vector, position: usize) -> usize {
    match vector.physical() {
        PhysicalType::Str => operand::<StringView>(vector).get(position).len(),
        _ => 0,
    }
}

/// A value of type `ty` as vectors hold it: UUIDs in the order of their bytes.
pub fn as_held(value: Value, ty: DataType) -> Value {
    match value {
        Value::Integer(bits) if ty == DataType::Uuid => Value::Integer(uuid_to_ordered(bits)),
        other => other,
    }
}

/// Computes values of type `ty` row by row over single values: for rare operations. `f` sees operands that
/// are not NULL.
///
/// # Errors
/// Those of `f`.
pub fn row_by_row(
    args: &[(&Vector, DataType)],
    ty: DataType,
    rows: Rows<'_>,
    out: &mut Vector,
    mut f: impl FnMut(&[Value]) -> Result<Value>,
) -> Result<()> {
    let mut vectors: [&Vector; 3] = [args[0].0; 3];
    vectors.iter_mut().zip(args).for_each(|(v, (arg, _))| *v = arg);
    strict(&vectors[..args.len()], rows, out, |rows, out| {
        let mut values: [Value; 3] = [Value::Null, Value::Null, Value::Null];
        let mut looks = Looks::default();
        rows.try_each(|p| {
            if !out.is_valid(p) {
                return Ok(());
            }
            // Each is a copy; so is the result.
            let long = args.iter().map(|(arg, _)| bytes_at(arg, p)).sum();
            let _copies = if long < STEP { None } else { reserve(long)? };
            for (value, (arg, from)) in values.iter_mut().zip(args) {
                *value = arg.value(p, *from);
            }
            let value = f(&values[..args.len()])?;
            if let Some(bytes) = value.bytes() {
                looks.after(bytes)?;
                let _copy = if bytes < STEP { None } else { reserve(bytes)? };
                out.strings_mut().heap.ask(bytes)?;
                return out.write_value(p, &value);
            }
            out.write_value(p, &as_held(value, ty))
        })
    })
}
