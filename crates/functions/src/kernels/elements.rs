//! Functions that choose, compare, count and add the elements of lists, and lists of numbers. What compares
//! elements compares their bytes, as in [`super::lists`].

use super::lists::{
    POSITION, Set, element_of, list_of, no_such_call, of_list, parts, typed, with_value, written,
};
use crate::definition::{Definition, Kernel, Row, Signature};
use crate::types::common_of;
use entasis_vector::parts::Part;
use entasis_vector::statement::Looks;
use entasis_vector::value::nested;
use entasis_vector::writer::Writer;
use entasis_vector::{DataType, Error, Result, Value};

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

pub const FUNCTIONS: &[Definition] = &[
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
                written(parts[..kept].iter().copied().map(Ok), out)
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
            let kernel = |row: &Row<'_>, out: &mut Writer<'_>| written(row.parts(0).skip(1), out);
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
            let count = |row: &Row<'_>| {
                let add = |count, part: Result<Part<'_>>| Ok(count + i64::from(part?.is_some()));
                row.parts(0).try_fold(0, add).map(Some)
            };
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
                let total = |row: &Row<'_>| Ok(total(row)?.map(|(sum, _)| sum));
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
            let mean = |row: &Row<'_>| Ok(total(row)?.map(|(sum, count)| sum / count as f64));
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
    let list = common_of(types).map(DataType::of_any_length);
    let list = list.filter(|ty| matches!(ty, DataType::List(_))).ok_or_else(no_such_call)?;
    Ok(Signature { args: vec![list; 2], result: result.unwrap_or(list), kernel })
}

fn numbers(row: &Row<'_>, out: &mut Writer<'_>, inclusive: bool) -> Result<bool> {
    let argument = |i: usize| i128::from(row.whole(i));
    let (first, last) = if row.count() == 1 { (0, argument(0)) } else { (argument(0), argument(1)) };
    let step = if row.count() > 2 { argument(2) } else { 1 };
    if step != 0 {
        let span = if step > 0 { last - first } else { first - last };
        // Those before the last one, and the last one itself if a step ends there.
        let before = if span < 0 { 0 } else { (span + step.abs() - 1) / step.abs() };
        let count = before + i128::from(inclusive && span >= 0 && span % step.abs() == 0);
        // A marker and eight bytes each.
        out.room(usize::try_from(count.saturating_mul(9)).unwrap_or(usize::MAX))?;
        let mut looks = Looks::default();
        for i in 0..count {
            nested::encode_part(&Value::Integer(first + i * step), NUMBERS, out.buffer)?;
            looks.after(9)?;
        }
    }
    nested::end_list(out.buffer);
    Ok(true)
}

fn chosen(row: &Row<'_>, out: &mut Writer<'_>) -> Result<bool> {
    // Beyond the list, there are NULLs.
    let elements = row.parts(0).chain(std::iter::repeat_with(|| Ok(None)));
    let chosen = row.parts(1).zip(elements).filter_map(|(test, part)| match test {
        Ok(Some(&[0])) => part.err().map(Err),
        Ok(Some(_)) => Some(part),
        Ok(None) => Some(Err(Error::input("list_where takes tests that are not NULL"))),
        Err(error) => Some(Err(error)),
    });
    written(chosen, out)
}

fn selected(row: &Row<'_>, out: &mut Writer<'_>) -> Result<bool> {
    let elements = parts(row, 0)?;
    let at = |position: Result<Value>| match position? {
        Value::Integer(position) => {
            Ok(usize::try_from(position - 1).ok().and_then(|i| elements.get(i).copied()?))
        }
        _ => Err(Error::input("list_select takes positions that are not NULL")),
    };
    written(nested::values(row.bytes(1), NUMBERS).map(at), out)
}

fn both(row: &Row<'_>, out: &mut Writer<'_>) -> Result<bool> {
    let (a, b) = (Set::of(row, 0)?, Set::of(row, 1)?);
    written(a.parts.intersection(&b.parts).map(|part| Ok(Some(*part))), out)
}

fn has_any(row: &Row<'_>) -> Result<Option<bool>> {
    Ok(Some(!Set::of(row, 0)?.parts.is_disjoint(&Set::of(row, 1)?.parts)))
}

fn has_all(row: &Row<'_>) -> Result<Option<bool>> {
    Ok(Some(Set::of(row, 0)?.parts.is_superset(&Set::of(row, 1)?.parts)))
}

fn resized(row: &Row<'_>, out: &mut Writer<'_>) -> Result<bool> {
    if row.is_null(0) {
        return Ok(false);
    }
    let n = if row.is_null(1) { 0 } else { row.whole(1) };
    let n = usize::try_from(n).map_err(|_| Error::input("list_resize: the length is not negative"))?;
    let mut value = None;
    if row.count() > 2 && !row.is_null(2) {
        nested::encode(&row.value(2), row.ty(2), value.insert(Vec::new()))?;
    }
    out.room(n.saturating_mul(1 + value.as_ref().map_or(0, Vec::len)))?;
    written(row.parts(0).chain(std::iter::repeat_with(|| Ok(value.as_deref()))).take(n), out)
}

fn removed(row: &Row<'_>, out: &mut Writer<'_>) -> Result<bool> {
    if row.is_null(0) {
        return Ok(false);
    }
    let mut value = None;
    if !row.is_null(1) {
        nested::encode(&row.value(1), row.ty(1), value.insert(Vec::new()))?;
    }
    let is_kept = |part: &Result<Part<'_>>| !matches!(part, Ok(part) if *part == value.as_deref());
    written(row.parts(0).filter(is_kept), out)
}

fn first<'a>(row: &Row<'a>) -> Result<Part<'a>> {
    Ok(row.parts(0).next().transpose()?.flatten())
}

fn last<'a>(row: &Row<'a>) -> Result<Part<'a>> {
    row.parts(0).try_fold(None, |_, part| part)
}

fn any_value<'a>(row: &Row<'a>) -> Result<Part<'a>> {
    row.parts(0).find_map(Result::transpose).transpose()
}

/// The elements that are not NULL, and their type.
fn values<'a>(row: &Row<'a>) -> Result<(impl Iterator<Item = Result<Value>> + 'a, DataType)> {
    let DataType::List(element) = row.ty(0) else { return Err(no_such_call()) };
    let values = nested::values(row.bytes(0), *element);
    Ok((values.filter(|value| !matches!(value, Ok(Value::Null))), *element))
}

fn sum(row: &Row<'_>) -> Result<Option<i128>> {
    let too_much = || Error::input("list_sum: the sum is out of range");
    values(row)?.0.try_fold(None, |sum: Option<i128>, value| match value? {
        Value::Integer(v) => sum.unwrap_or(0).checked_add(v).map(Some).ok_or_else(too_much),
        _ => Ok(sum),
    })
}

/// The sum of the numbers and how many they are, if there is any.
fn total(row: &Row<'_>) -> Result<Option<(f64, usize)>> {
    let (mut values, ty) = values(row)?;
    values.try_fold(None, |total, value| {
        let v = match entasis_vector::expr::convert(&value?, ty, DataType::Float64)? {
            Value::Float(v) => v,
            other => return Err(Error::internal(format!("{other:?} where a number is expected"))),
        };
        Ok(Some(total.map_or((v, 1), |(sum, count)| (sum + v, count + 1))))
    })
}
