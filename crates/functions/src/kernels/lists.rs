//! Functions of lists and structs, over the bytes that stand for them (`entasis_vector::value::nested`): what
//! compares elements compares bytes, and what keeps elements copies them.
//!
//! Positions count from 1; negative ones from the end. What lies outside a list is NULL.

use crate::definition::{Body, Definition, Kernel, Row, Signature, nth};
use crate::types::common_of;
use entasis_vector::parts::Part;
use entasis_vector::statement::{self, Growth};
use entasis_vector::value::nested;
use entasis_vector::writer::Writer;
use entasis_vector::{DataType, Error, Result};
use std::collections::BTreeSet;
use std::ops::Deref;

pub(super) const POSITION: DataType = DataType::Int64;

pub(super) const fn typed(
    names: &'static [&'static str],
    arguments: &'static str,
    gives: &'static str,
    does: &'static str,
    types: fn(&[DataType]) -> Result<Signature>,
    examples: &'static [(&'static str, &'static str)],
) -> Definition {
    Definition { names, arguments, gives, does, examples, body: Body::Typed(types) }
}

/// Entries of the functions of this file.
pub const FUNCTIONS: &[Definition] = &[
    typed(
        &["list_value", "list_pack"],
        "value, …",
        "list",
        "a list of these values; also written as `[value, …]`",
        |types| {
            let element = common_of(types).ok_or_else(no_such_call)?;
            let kernel = Kernel::TextOfNulls(pack);
            Ok(Signature { args: vec![element; types.len()], result: DataType::list(element), kernel })
        },
        &[("[1, NULL, 2 + 1]", "[1, NULL, 3]"), ("list_value('a', 'b')", "[a, b]")],
    ),
    typed(
        &["array_value"],
        "value, …",
        "array",
        "an array of a fixed length, `T[n]`, of these values",
        |types| {
            let element = common_of(types).ok_or_else(no_such_call)?;
            let (result, kernel) = (DataType::array(element, types.len() as u64)?, Kernel::TextOfNulls(pack));
            Ok(Signature { args: vec![element; types.len()], result, kernel })
        },
        &[("array_value(1, NULL, 3)", "[1, NULL, 3]"), ("typeof(array_value(1.5, 2))", "DECIMAL(11,1)[2]")],
    ),
    typed(
        &["array_length"],
        "list",
        "BIGINT",
        "the number of elements; also `len` and `length`",
        |types| of_list(types, &[], POSITION, Kernel::Whole(length)),
        &[("array_length([1, NULL])", "2"), ("len([])", "0")],
    ),
    typed(
        &["list_extract", "list_element", "array_extract"],
        "list, position",
        "type of the elements",
        "the element at a position, from 1; from the end, if it is negative; also written as `list[position]`",
        |types| {
            let element = element_of(types)?;
            of_list(types, &[POSITION], element, Kernel::Part(extracted))
        },
        &[("[7, 8, 9][1]", "7"), ("list_extract([7, 8, 9], -1)", "9"), ("[7][2]", "NULL")],
    ),
    typed(
        &["list_slice", "array_slice"],
        "list, first, last [, step]",
        "list",
        "the elements from one position to another, each step-th of them, backwards if the step is negative; also written as `list[first:last:step]`",
        |types| {
            of_list(
                types,
                &[POSITION; 3][..types.len().clamp(3, 4) - 1],
                list_of(types)?,
                Kernel::Text(slice),
            )
        },
        &[
            ("list_slice([1, 2, 3, 4], 2, 3)", "[2, 3]"),
            ("[1, 2, 3][-2:]", "[2, 3]"),
            ("[1, 2, 3, 4, 5][1:5:2]", "[1, 3, 5]"),
            ("list_slice([1, 2, 3], 3, 1, -1)", "[3, 2, 1]"),
        ],
    ),
    typed(
        &["list_contains", "list_has", "array_contains", "array_has"],
        "list, value",
        "BOOLEAN",
        "whether an element is equal to the value",
        |types| with_value(types, DataType::Boolean, Kernel::Test(|row| Ok(Some(position(row)?.is_some())))),
        &[("list_contains([1, 2], 2)", "true"), ("list_contains(['a'], 'b')", "false")],
    ),
    typed(
        &["list_position", "list_indexof", "array_position", "array_indexof"],
        "list, value",
        "BIGINT",
        "the position of the first element that is the value, which may be NULL, from 1; NULL, if there is none",
        |types| {
            let kernel = |row: &Row<'_>| Ok(position(row)?.map(|at| at as i128 + 1));
            with_value(types, POSITION, Kernel::WideOfNulls(kernel))
        },
        &[
            ("list_position(['a', 'b', 'b'], 'b')", "2"),
            ("list_position([1], 5)", "NULL"),
            ("list_position([1, NULL], NULL)", "2"),
        ],
    ),
    typed(
        &["list_concat", "list_cat", "array_concat", "array_cat"],
        "list, …",
        "list",
        "the elements of all lists; also written as `list || list`",
        |types| {
            let list = common_of(types).map(DataType::of_any_length);
            let list = list.filter(|ty| matches!(ty, DataType::List(_) | DataType::Null));
            let list = some_list(list.ok_or_else(no_such_call)?);
            Ok(Signature { args: vec![list; types.len()], result: list, kernel: Kernel::TextOfNulls(concat) })
        },
        &[("list_concat([1], [2, 3], NULL)", "[1, 2, 3]"), ("[1] || [2]", "[1, 2]")],
    ),
    typed(
        &["list_append", "array_append", "array_push_back"],
        "list, value",
        "list",
        "the list with one more element",
        |types| {
            let signature = with_value(types, DataType::Null, Kernel::TextOfNulls(append))?;
            Ok(Signature { result: signature.args[0], ..signature })
        },
        &[("list_append([1, 2], 3)", "[1, 2, 3]"), ("list_append(NULL, 3)", "[3]")],
    ),
    typed(
        &["list_prepend", "array_prepend"],
        "value, list",
        "list",
        "the list behind one more element",
        |types| {
            let turned: Vec<DataType> = types.iter().rev().copied().collect();
            let signature = with_value(&turned, DataType::Null, Kernel::TextOfNulls(prepend))?;
            let [list, value] = [signature.args[0], signature.args[1]];
            Ok(Signature { args: vec![value, list], result: list, ..signature })
        },
        &[("list_prepend(0, [1, 2])", "[0, 1, 2]")],
    ),
    typed(
        &["list_sort", "array_sort"],
        "list",
        "list",
        "the elements in ascending order, NULLs last",
        |types| of_list(types, &[], list_of(types)?, Kernel::Text(|row, out| sorted(row, out, false))),
        &[("list_sort([3, 1, NULL, 2])", "[1, 2, 3, NULL]")],
    ),
    typed(
        &["list_reverse_sort", "array_reverse_sort"],
        "list",
        "list",
        "the elements in descending order, NULLs last",
        |types| of_list(types, &[], list_of(types)?, Kernel::Text(|row, out| sorted(row, out, true))),
        &[("list_reverse_sort([3, 1, NULL, 2])", "[3, 2, 1, NULL]")],
    ),
    typed(
        &["list_reverse", "array_reverse"],
        "list",
        "list",
        "the elements from the last to the first",
        |types| {
            let reversed = |row: &Row<'_>, out: &mut Writer<'_>| {
                written(parts(row, 0)?.iter().rev().copied().map(Ok), out)
            };
            of_list(types, &[], list_of(types)?, Kernel::Text(reversed))
        },
        &[("list_reverse([1, 2, 3])", "[3, 2, 1]")],
    ),
    typed(
        &["list_distinct", "array_distinct"],
        "list",
        "list",
        "the elements that are not NULL, each once, in the order in which they come first",
        |types| of_list(types, &[], list_of(types)?, Kernel::Text(distinct)),
        &[("list_distinct([2, 1, 2, NULL])", "[2, 1]")],
    ),
    typed(
        &["list_unique", "array_unique"],
        "list",
        "BIGINT",
        "the number of different elements that are not NULL",
        |types| {
            of_list(types, &[], POSITION, Kernel::Whole(|row| Ok(Some(Set::of(row, 0)?.parts.len() as i64))))
        },
        &[("list_unique([2, 1, 2, NULL])", "2")],
    ),
    typed(
        &["list_min", "array_min"],
        "list",
        "type of the elements",
        "the least element that is not NULL",
        |types| {
            let element = element_of(types)?;
            of_list(types, &[], element, Kernel::Part(least))
        },
        &[("list_min([3, 1, NULL])", "1")],
    ),
    typed(
        &["list_max", "array_max"],
        "list",
        "type of the elements",
        "the greatest element that is not NULL",
        |types| {
            let element = element_of(types)?;
            of_list(types, &[], element, Kernel::Part(greatest))
        },
        &[("list_max([3, 1, NULL])", "3")],
    ),
];

pub(super) fn no_such_call() -> Error {
    Error::input("no such call")
}

/// A list type: of an unknown list, one of INTEGER.
fn some_list(ty: DataType) -> DataType {
    if ty == DataType::Null { DataType::list(DataType::Int32) } else { ty }
}

/// The type of the first argument, which is a list or becomes one.
pub(super) fn list_of(types: &[DataType]) -> Result<DataType> {
    match types.first().map(|ty| ty.of_any_length()) {
        Some(list @ DataType::List(_)) => Ok(list),
        Some(DataType::Null) => Ok(some_list(DataType::Null)),
        _ => Err(no_such_call()),
    }
}

pub(super) fn element_of(types: &[DataType]) -> Result<DataType> {
    match list_of(types)? {
        DataType::List(element) => Ok(*element),
        _ => Err(no_such_call()),
    }
}

/// A function of a list and arguments of the types `rest`.
pub(super) fn of_list(
    types: &[DataType],
    rest: &[DataType],
    result: DataType,
    kernel: Kernel,
) -> Result<Signature> {
    let list = list_of(types)?;
    let fits = |(given, wanted): (&DataType, &DataType)| {
        given == wanted || *given == DataType::Null || (*wanted == POSITION && given.is_integer())
    };
    match types.len() == rest.len() + 1 && types[1..].iter().zip(rest).all(fits) {
        true => Ok(Signature { args: [&[list], rest].concat(), result, kernel }),
        false => Err(no_such_call()),
    }
}

/// A function of a list and of a value of the type of its elements.
pub(super) fn with_value(types: &[DataType], result: DataType, kernel: Kernel) -> Result<Signature> {
    let [_, value] = types else { return Err(no_such_call()) };
    let own = if types[0] == DataType::Null { DataType::Null } else { element_of(types)? };
    let element = common_of(&[own, *value]).ok_or_else(no_such_call)?;
    Ok(Signature { args: vec![DataType::list(element), element], result, kernel })
}

/// The type of the elements of an argument.
pub(super) fn element(row: &Row<'_>, argument: usize) -> DataType {
    match row.ty(argument) {
        DataType::List(element) => *element,
        _ => DataType::Null,
    }
}

/// The elements of an argument, and the memory that they take.
pub(super) struct Elements<'a> {
    parts: Vec<Part<'a>>,
    _memory: Growth,
}

impl<'a> Deref for Elements<'a> {
    type Target = [Part<'a>];

    fn deref(&self) -> &[Part<'a>] {
        &self.parts
    }
}

/// All elements of an argument.
pub(super) fn parts<'a>(row: &Row<'a>, argument: usize) -> Result<Elements<'a>> {
    let (mut parts, mut growth) = (Vec::new(), Growth::default());
    for part in row.parts(argument) {
        parts.push(part?);
        growth.add(size_of::<Part<'_>>())?;
    }
    Ok(Elements { parts, _memory: growth })
}

/// The different elements of an argument that are not NULL, and the memory that they take.
#[derive(Default)]
pub(super) struct Set<'a> {
    pub(super) parts: BTreeSet<&'a [u8]>,
    memory: Growth,
}

impl<'a> Set<'a> {
    pub(super) fn of(row: &Row<'a>, argument: usize) -> Result<Set<'a>> {
        let mut set = Set::default();
        for part in row.parts(argument) {
            if let Some(part) = part? {
                set.insert(part)?;
            }
        }
        Ok(set)
    }

    /// Adds an element; true if it is new.
    fn insert(&mut self, part: &'a [u8]) -> Result<bool> {
        let is_new = self.parts.insert(part);
        // A node of the tree is filled to two thirds.
        self.memory.add(if is_new { size_of::<&[u8]>() * 3 / 2 } else { 0 })?;
        Ok(is_new)
    }
}

/// Appends an argument as an element of a list, or as a field of a struct.
pub(super) fn put(row: &Row<'_>, i: usize, out: &mut Writer<'_>) -> Result<()> {
    match row.ty(i) {
        _ if row.is_null(i) => nested::copy_part(None, out.buffer),
        ty if ty.is_string() => nested::write_string(row.bytes(i), out)?,
        ty if ty.is_nested() => {
            nested::begin_part(out.buffer);
            out.copy(row.bytes(i))?;
        }
        ty => nested::encode_part(&row.value(i), ty, out.buffer)?,
    }
    Ok(())
}

/// Elements that are sorted, or merged, between two looks for an interrupt.
const RUN: usize = 1 << 15;

/// Sorts the elements of a list, which may be millions.
fn sort(parts: &mut Vec<&[u8]>) -> Result<()> {
    for run in parts.chunks_mut(RUN) {
        statement::check()?;
        run.sort_unstable();
    }
    let mut length = RUN;
    let mut merged = Vec::with_capacity(if length < parts.len() { parts.len() } else { 0 });
    while length < parts.len() {
        for pair in parts.chunks(2 * length) {
            let (mut left, mut right) = pair.split_at(length.min(pair.len()));
            while let (Some((first, others)), Some((second, rest))) =
                (left.split_first(), right.split_first())
            {
                if merged.len() % RUN == 0 {
                    statement::check()?;
                }
                if first <= second {
                    merged.push(*first);
                    left = others;
                } else {
                    merged.push(*second);
                    right = rest;
                }
            }
            merged.extend_from_slice(left);
            merged.extend_from_slice(right);
        }
        std::mem::swap(parts, &mut merged);
        merged.clear();
        length *= 2;
    }
    Ok(())
}

/// Writes a list of these elements.
pub(super) fn written<'a>(
    parts: impl Iterator<Item = Result<Part<'a>>>,
    out: &mut Writer<'_>,
) -> Result<bool> {
    for part in parts {
        let part = part?;
        out.more(1 + part.map_or(0, <[u8]>::len))?;
        nested::copy_part(part, out.buffer);
    }
    nested::end_list(out.buffer);
    Ok(true)
}

fn pack(row: &Row<'_>, out: &mut Writer<'_>) -> Result<bool> {
    (0..row.count()).try_for_each(|i| put(row, i, out))?;
    nested::end_list(out.buffer);
    Ok(true)
}

/// Number of elements of an argument.
fn count(row: &Row<'_>, argument: usize) -> Result<i64> {
    row.parts(argument).try_fold(0, |count, part| part.map(|_| count + 1))
}

fn length(row: &Row<'_>) -> Result<Option<i64>> {
    count(row, 0).map(Some)
}

fn extracted<'a>(row: &Row<'a>) -> Result<Part<'a>> {
    let at = match row.whole(1) {
        at @ ..0 => at + count(row, 0)?,
        at => at - 1,
    };
    let part = usize::try_from(at).ok().and_then(|at| nth(row.parts(0), at));
    Ok(part.transpose()?.flatten())
}

/// From `first` to `last`, or down to it if the step is negative.
fn slice(row: &Row<'_>, out: &mut Writer<'_>) -> Result<bool> {
    let parts = parts(row, 0)?;
    let count = parts.len() as i64;
    let place = |at: i64| if at < 0 { at + count + 1 } else { at };
    let step = if row.count() > 3 { row.whole(3) } else { 1 };
    let (first, last) = (place(row.whole(1)), place(row.whole(2)));
    let (low, high) = if step < 0 { (last, first) } else { (first, last) };
    let (low, high) = (low.max(1), high.min(count));
    let there = if low > high { &[] } else { &parts[low as usize - 1..high as usize] };
    let every = usize::try_from(step.unsigned_abs()).unwrap_or(usize::MAX);
    match step {
        0 => Err(Error::input("the step of a list's slice is not zero")),
        1.. => written(there.iter().step_by(every).copied().map(Ok), out),
        _ => written(there.iter().rev().step_by(every).copied().map(Ok), out),
    }
}

/// The index of the first element that is the second argument; for NULL, of one that is NULL.
fn position(row: &Row<'_>) -> Result<Option<usize>> {
    if row.is_null(0) {
        return Ok(None);
    }
    let mut wanted = None;
    if !row.is_null(1) {
        nested::encode(&row.value(1), row.ty(1), wanted.insert(Vec::new()))?;
    }
    for (place, part) in row.parts(0).enumerate() {
        if part? == wanted.as_deref() {
            return Ok(Some(place));
        }
    }
    Ok(None)
}

fn concat(row: &Row<'_>, out: &mut Writer<'_>) -> Result<bool> {
    let there: Vec<usize> = (0..row.count()).filter(|i| !row.is_null(*i)).collect();
    if there.is_empty() {
        return Ok(false);
    }
    for i in there {
        out.copy(nested::without_end(row.bytes(i)))?;
    }
    nested::end_list(out.buffer);
    Ok(true)
}

fn append(row: &Row<'_>, out: &mut Writer<'_>) -> Result<bool> {
    if !row.is_null(0) {
        out.copy(nested::without_end(row.bytes(0)))?;
    }
    put(row, 1, out)?;
    nested::end_list(out.buffer);
    Ok(true)
}

fn prepend(row: &Row<'_>, out: &mut Writer<'_>) -> Result<bool> {
    put(row, 0, out)?;
    if !row.is_null(1) {
        out.copy(nested::without_end(row.bytes(1)))?;
    }
    nested::end_list(out.buffer);
    Ok(true)
}

fn sorted(row: &Row<'_>, out: &mut Writer<'_>, descending: bool) -> Result<bool> {
    // Twice, for what is merged.
    let (mut there, mut nulls, mut growth) = (Vec::new(), 0, Growth::default());
    for part in row.parts(0) {
        match part? {
            Some(part) => there.push(part),
            None => nulls += 1,
        }
        growth.add(2 * size_of::<&[u8]>())?;
    }
    sort(&mut there)?;
    if descending {
        there.reverse();
    }
    written(there.into_iter().map(Some).chain(std::iter::repeat_n(None, nulls)).map(Ok), out)
}

fn distinct(row: &Row<'_>, out: &mut Writer<'_>) -> Result<bool> {
    let mut seen = Set::default();
    for part in row.parts(0) {
        if let Some(part) = part?
            && seen.insert(part)?
        {
            out.more(1 + part.len())?;
            nested::copy_part(Some(part), out.buffer);
        }
    }
    nested::end_list(out.buffer);
    Ok(true)
}

/// The element that is `wanted` of any two of those that are not NULL.
fn extreme<'a>(row: &Row<'a>, wanted: fn(&'a [u8], &'a [u8]) -> &'a [u8]) -> Result<Part<'a>> {
    row.parts(0).try_fold(None, |best, part| {
        Ok(match (best, part?) {
            (Some(best), Some(part)) => Some(wanted(best, part)),
            (best, part) => best.or(part),
        })
    })
}

fn least<'a>(row: &Row<'a>) -> Result<Part<'a>> {
    extreme(row, Ord::min)
}

fn greatest<'a>(row: &Row<'a>) -> Result<Part<'a>> {
    extreme(row, Ord::max)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lists_are_sorted_as_the_library_sorts() {
        for count in [0, 1, RUN - 1, RUN, RUN + 1, 3 * RUN, 5 * RUN + 7] {
            let numbers: Vec<[u8; 8]> = (0..count as u64)
                .map(|i| (i.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40).to_be_bytes())
                .collect();
            let mut parts: Vec<&[u8]> = numbers.iter().map(|number| &number[..]).collect();
            let mut expected = parts.clone();
            expected.sort_unstable();
            sort(&mut parts).unwrap();
            assert_eq!(parts, expected, "{count} elements");
        }
    }
}
