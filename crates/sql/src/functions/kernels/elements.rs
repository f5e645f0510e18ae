//! Functions that choose, compare, count and add the elements of lists, and lists of numbers. What compares
//! elements compares their bytes, as in [`super::lists`].

use super::lists::{POSITION, element_of, list_of, no_such_call, of_list, parts, typed, with_value, written};
use crate::functions::definition::types::common;
use crate::functions::definition::{Definition, Kernel, Row, Signature, Writer};
use entasis_vector::parts::Part;
use entasis_vector::value::nested;
use entasis_vector::{DataType, Error, Result, Value};
use std::collections::BTreeSet;

const NUMBERS: DataType = DataType::Int64;

/// `range` or `generate_series`, of one, two or three integers.
macro_rules! numbers {
    ($name:literal, $does:literal, $examples:expr, $inclusive:literal) => {
        typed(
            &[$name],
            "[first,] last [, step]",
            "BIGINT[]",
            $does,
            |types| {
                let fits =
                    |ty: &DataType| ty.is_integer() || matches!(ty, DataType::Null | DataType::Varchar);
                match (1..=3).contains(&types.len()) && types.iter().all(fits) {
                    true => Ok(Signature {
                        args: vec![NUMBERS; types.len()],
                        result: DataType::list(NUMBERS),
                        kernel: Kernel::Text(|row, out| numbers(row, out, $inclusive)),
                    }),
                    false => Err(no_such_call()),
                }
            },
            $examples,
        )
    };
}

pub(crate) const FUNCTIONS: &[Definition] = &[
    numbers!(
        "range",
        "the integers from first, by default 0, up to the one before last; in FROM as rows",
        &[("range(3)", "[0, 1, 2]"), ("range(5, 1, -2)", "[5, 3]")],
        false
    ),
    numbers!(
        "generate_series",
        "the integers from first, by default 0, to last; in FROM as rows",
        &[("generate_series(1, 3)", "[1, 2, 3]")],
        true
    ),
    typed(
        &["list_where", "array_where"],
        "list, tests",
        "list",
        "the elements whose test, at the same position of a list of BOOLEAN, is true",
        |types| of_list(types, &[DataType::list(DataType::Boolean)], list_of(types)?, Kernel::Text(chosen)),
        &[("list_where([10, 20, 30], [true, false, true])", "[10, 30]")],
    ),
    typed(
        &["list_select", "array_select"],
        "list, positions",
        "list",
        "the elements at positions from 1; NULL for one that there is not",
        |types| {
            let positions = match types {
                [_, DataType::List(own)] if own.is_integer() => DataType::list(NUMBERS),
                _ => return Err(no_such_call()),
            };
            let list = list_of(types)?;
            Ok(Signature { args: vec![list, positions], result: list, kernel: Kernel::Text(selected) })
        },
        &[("list_select(['a', 'b', 'c'], [3, 1])", "[c, a]")],
    ),
    typed(
        &["list_intersect", "array_intersect"],
        "list, list",
        "list",
        "the elements of both lists that are not NULL, each once, in ascending order",
        |types| two_lists(types, None, Kernel::Text(both)),
        &[("list_intersect([3, 2, 2, NULL], [2, 3, 4])", "[2, 3]")],
    ),
    typed(
        &["list_has_any", "array_has_any"],
        "list, list",
        "BOOLEAN",
        "whether the lists have an element in common that is not NULL",
        |types| two_lists(types, Some(DataType::Boolean), Kernel::Test(has_any)),
        &[("list_has_any([1, 2], [2, 3])", "true")],
    ),
    typed(
        &["list_has_all", "array_has_all"],
        "list, list",
        "BOOLEAN",
        "whether the first list has all elements of the second that are not NULL",
        |types| two_lists(types, Some(DataType::Boolean), Kernel::Test(has_all)),
        &[("list_has_all([1, 2, 3], [2, 3])", "true")],
    ),
    typed(
        &["list_resize", "array_resize"],
        "list, n [, value]",
        "list",
        "the first n elements; if there are fewer, followed by the value, or NULL",
        |types| match types {
            [_, n] if n.is_integer() => {
                of_list(types, &[NUMBERS], list_of(types)?, Kernel::TextOfNulls(resized))
            }
            [list, n, value] if n.is_integer() || *n == DataType::Null => {
                let signature = with_value(&[*list, *value], DataType::Null, Kernel::TextOfNulls(resized))?;
                let (list, value) = (signature.args[0], signature.args[1]);
                Ok(Signature { args: vec![list, NUMBERS, value], result: list, ..signature })
            }
            [_, DataType::Null] => of_list(types, &[NUMBERS], list_of(types)?, Kernel::TextOfNulls(resized)),
            _ => Err(no_such_call()),
        },
        &[("list_resize([1, 2], 4, 0)", "[1, 2, 0, 0]"), ("list_resize([1, 2], 1)", "[1]")],
    ),
    typed(
        &["array_remove", "list_remove"],
        "list, value",
        "list",
        "the elements that are not the value, which may be NULL",
        |types| {
            let signature = with_value(types, DataType::Null, Kernel::TextOfNulls(removed))?;
            Ok(Signature { result: signature.args[0], ..signature })
        },
        &[("array_remove([1, 2, NULL, 2], 2)", "[1, NULL]")],
    ),
    typed(
        &["array_pop_back", "list_pop_back"],
        "list",
        "list",
        "the list without its last element",
        |types| {
            let kernel = |row: &Row<'_>, out: &mut Writer<'_>| {
                let parts = parts(row, 0)?;
                let kept = parts.len().saturating_sub(1);
                written(parts.into_iter().take(kept), out)
            };
            of_list(types, &[], list_of(types)?, Kernel::Text(kernel))
        },
        &[("array_pop_back([1, 2])", "[1]")],
    ),
    typed(
        &["array_pop_front", "list_pop_front"],
        "list",
        "list",
        "the list without its first element",
        |types| {
            let kernel =
                |row: &Row<'_>, out: &mut Writer<'_>| written(parts(row, 0)?.into_iter().skip(1), out);
            of_list(types, &[], list_of(types)?, Kernel::Text(kernel))
        },
        &[("array_pop_front([1, 2])", "[2]")],
    ),
    typed(
        &["list_first", "array_first"],
        "list",
        "type of the elements",
        "the first element",
        |types| of_list(types, &[], element_of(types)?, Kernel::Part(first)),
        &[("list_first([7, 8])", "7")],
    ),
    typed(
        &["list_last", "array_last"],
        "list",
        "type of the elements",
        "the last element",
        |types| of_list(types, &[], element_of(types)?, Kernel::Part(last)),
        &[("list_last([7, 8])", "8")],
    ),
    typed(
        &["list_any_value"],
        "list",
        "type of the elements",
        "the first element that is not NULL",
        |types| of_list(types, &[], element_of(types)?, Kernel::Part(any_value)),
        &[("list_any_value([NULL, 3])", "3")],
    ),
    typed(
        &["list_count"],
        "list",
        "BIGINT",
        "the number of elements that are not NULL",
        |types| {
            let count = |row: &Row<'_>| Ok(Some(parts(row, 0)?.into_iter().flatten().count() as i64));
            of_list(types, &[], POSITION, Kernel::Whole(count))
        },
        &[("list_count([1, NULL])", "1")],
    ),
    typed(
        &["list_sum", "array_sum"],
        "list",
        "DECIMAL or DOUBLE",
        "the sum of the elements that are not NULL; NULL, if there is none",
        |types| match element_of(types)? {
            ty if ty.is_integer() => {
                let result = DataType::Decimal { precision: 38, scale: 0 };
                of_list(types, &[], result, Kernel::Wide(sum))
            }
            DataType::Decimal { scale, .. } => {
                of_list(types, &[], DataType::Decimal { precision: 38, scale }, Kernel::Wide(sum))
            }
            ty if ty.is_float() => {
                let total = |row: &Row<'_>| Ok(floats(row)?.into_iter().reduce(|a, b| a + b));
                of_list(types, &[], DataType::Float64, Kernel::Float(total))
            }
            _ => Err(no_such_call()),
        },
        &[("list_sum([1, 2, NULL])", "3")],
    ),
    typed(
        &["list_avg", "array_avg"],
        "list",
        "DOUBLE",
        "the mean of the elements that are not NULL; NULL, if there is none",
        |types| {
            let mean = |row: &Row<'_>| {
                let values = floats(row)?;
                let count = values.len() as f64;
                Ok(values.into_iter().reduce(|a, b| a + b).map(|sum| sum / count))
            };
            match element_of(types)?.is_numeric() {
                true => of_list(types, &[], DataType::Float64, Kernel::Float(mean)),
                false => Err(no_such_call()),
            }
        },
        &[("list_avg([1, 2])", "1.5")],
    ),
];

/// A function of two lists of one type, whose result is of that type, or of `result`.
fn two_lists(types: &[DataType], result: Option<DataType>, kernel: Kernel) -> Result<Signature> {
    let [_, _] = types else { return Err(no_such_call()) };
    let list = common(types).filter(|ty| matches!(ty, DataType::List(_))).ok_or_else(no_such_call)?;
    Ok(Signature { args: vec![list; 2], result: result.unwrap_or(list), kernel })
}

fn numbers(row: &Row<'_>, out: &mut Writer<'_>, inclusive: bool) -> Result<bool> {
    let argument = |i: usize| i128::from(row.whole(i));
    let (first, last) = if row.len() == 1 { (0, argument(0)) } else { (argument(0), argument(1)) };
    let step = if row.len() > 2 { argument(2) } else { 1 };
    if step != 0 {
        let span = if step > 0 { last - first } else { first - last };
        // Those before the last one, and the last one itself if a step ends there.
        let before = if span < 0 { 0 } else { (span + step.abs() - 1) / step.abs() };
        let count = before + i128::from(inclusive && span >= 0 && span % step.abs() == 0);
        // A marker and eight bytes each.
        out.room(usize::try_from(count.saturating_mul(9)).unwrap_or(usize::MAX))?;
        for i in 0..count {
            nested::encode_part(&Value::Integer(first + i * step), NUMBERS, out.buffer)?;
        }
    }
    nested::end_list(out.buffer);
    Ok(true)
}

fn chosen(row: &Row<'_>, out: &mut Writer<'_>) -> Result<bool> {
    let tests = nested::elements(row.bytes(1), DataType::Boolean)?;
    if tests.iter().any(Value::is_null) {
        return Err(Error::input("list_where takes tests that are not NULL"));
    }
    let is_true = |test: &Value| matches!(test, Value::Boolean(true));
    // Beyond the list, there are NULLs.
    let elements = parts(row, 0)?.into_iter().chain(std::iter::repeat(None));
    written(elements.zip(&tests).filter(|&(_, test)| is_true(test)).map(|(part, _)| part), out)
}

fn selected(row: &Row<'_>, out: &mut Writer<'_>) -> Result<bool> {
    let elements = parts(row, 0)?;
    let positions = nested::elements(row.bytes(1), NUMBERS)?;
    if positions.iter().any(Value::is_null) {
        return Err(Error::input("list_select takes positions that are not NULL"));
    }
    let at = |position: &Value| match position {
        Value::Integer(position) => {
            usize::try_from(position - 1).ok().and_then(|i| elements.get(i).copied()?)
        }
        _ => None,
    };
    written(positions.iter().map(at), out)
}

/// The elements of an argument that are not NULL.
fn set<'a>(row: &Row<'a>, argument: usize) -> Result<BTreeSet<&'a [u8]>> {
    Ok(parts(row, argument)?.into_iter().flatten().collect())
}

fn both(row: &Row<'_>, out: &mut Writer<'_>) -> Result<bool> {
    let (a, b) = (set(row, 0)?, set(row, 1)?);
    written(a.intersection(&b).map(|part| Some(*part)), out)
}

fn has_any(row: &Row<'_>) -> Result<Option<bool>> {
    Ok(Some(!set(row, 0)?.is_disjoint(&set(row, 1)?)))
}

fn has_all(row: &Row<'_>) -> Result<Option<bool>> {
    Ok(Some(set(row, 0)?.is_superset(&set(row, 1)?)))
}

fn resized(row: &Row<'_>, out: &mut Writer<'_>) -> Result<bool> {
    if row.is_null(0) {
        return Ok(false);
    }
    let n = if row.is_null(1) { 0 } else { row.whole(1) };
    let n = usize::try_from(n).map_err(|_| Error::input("list_resize: the length is not negative"))?;
    let mut value = None;
    if row.len() > 2 && !row.is_null(2) {
        nested::encode(&row.value(2), row.ty(2), value.insert(Vec::new()))?;
    }
    out.room(n.saturating_mul(1 + value.as_ref().map_or(0, Vec::len)))?;
    let elements = parts(row, 0)?.into_iter();
    written(elements.chain(std::iter::repeat(value.as_deref())).take(n), out)
}

fn removed(row: &Row<'_>, out: &mut Writer<'_>) -> Result<bool> {
    if row.is_null(0) {
        return Ok(false);
    }
    let mut value = None;
    if !row.is_null(1) {
        nested::encode(&row.value(1), row.ty(1), value.insert(Vec::new()))?;
    }
    written(parts(row, 0)?.into_iter().filter(|part| *part != value.as_deref()), out)
}

fn first<'a>(row: &Row<'a>) -> Result<Part<'a>> {
    Ok(parts(row, 0)?.first().copied().flatten())
}

fn last<'a>(row: &Row<'a>) -> Result<Part<'a>> {
    Ok(parts(row, 0)?.last().copied().flatten())
}

fn any_value<'a>(row: &Row<'a>) -> Result<Part<'a>> {
    Ok(parts(row, 0)?.into_iter().flatten().next())
}

/// The elements that are not NULL.
fn values(row: &Row<'_>) -> Result<(Vec<Value>, DataType)> {
    let DataType::List(element) = row.ty(0) else { return Err(no_such_call()) };
    let mut values = nested::elements(row.bytes(0), *element)?;
    values.retain(|value| !value.is_null());
    Ok((values, *element))
}

fn sum(row: &Row<'_>) -> Result<Option<i128>> {
    let (values, _) = values(row)?;
    if values.is_empty() {
        return Ok(None);
    }
    let add = |sum: i128, value: &Value| match value {
        Value::Integer(v) => sum.checked_add(*v),
        _ => Some(sum),
    };
    let sum = values.iter().try_fold(0, add);
    sum.map(Some).ok_or_else(|| Error::input("list_sum: the sum is out of range"))
}

fn floats(row: &Row<'_>) -> Result<Vec<f64>> {
    let (values, ty) = values(row)?;
    let float = |value: &Value| match entasis_vector::expr::convert(value, ty, DataType::Float64)? {
        Value::Float(v) => Ok(v),
        other => Err(Error::internal(format!("{other:?} where a number is expected"))),
    };
    values.iter().map(float).collect()
}
