//! Finds the rows of an index that are to be removed, of which the values are known.
//!
//! - *A search for each*, if they are few: the index is laid out by its key. Rows with the same key are
//!   looked up together, because very many others may have that key too.
//! - *One pass*, if they are many: all rows of the index are read once, block by block, and each is looked up
//!   among the wanted ones by what tells the rows of the table apart, its row number or a distinct layout
//!   key. If that is one number, nothing else is read. While a statement has not ended, two rows may have one
//!   layout key; then there are too many, and rows are compared as a whole.
//!
//! Every wanted row is in the index; otherwise the index is damaged, which ends the statement.

use super::values::Values;
use crate::state::interrupt::Interrupt;
use entasis_storage::definition::Key;
use entasis_storage::index::{ROW_NUMBER, index_columns};
use entasis_storage::{Datum, RowId, Table, TableWriter};
use entasis_vector::{DataType, Result};
use std::cmp::Ordering;
use std::collections::HashMap;

/// If more than one in so many rows of an index are wanted, all of them are read once.
// PERF: a search reads a whole partition. The number is an estimate; where the two meet was not measured.
const PASS_SHARE: u64 = 64;

/// The ids of rows of an index, of key `key` of `table`, in any order.
///
/// # Errors
/// Interrupted.
pub(super) fn find_rows(
    writer: &TableWriter<'_>,
    table: &Table,
    key: &Key,
    rows: Vec<&Values>,
    interrupt: &mut Interrupt,
) -> Result<Vec<RowId>> {
    if rows.len() > 1 && rows.len() as u64 > writer.rows() / PASS_SHARE {
        let identity = identity(key, table);
        if let [column] = identity[..]
            && let Some(found) = find_numbers(writer, &rows, column, interrupt)?
        {
            return Ok(found);
        }
        find_in_one_pass(writer, rows, &identity, interrupt)
    } else {
        find_by_key(writer, rows, key.columns.len(), interrupt)
    }
}

/// Values as what is stored of them.
pub(super) fn datums<'a>(values: &'a [entasis_vector::Value], types: &[DataType]) -> Vec<Datum<'a>> {
    values.iter().zip(types).map(|(value, &ty)| Datum::of_value(value, ty)).collect()
}

fn types(writer: &TableWriter<'_>) -> Vec<DataType> {
    writer.schema().iter().map(|field| field.ty).collect()
}

/// The columns of an index that tell the rows of the table apart, or all columns if the table may have equal
/// rows.
fn identity(key: &Key, table: &Table) -> Vec<usize> {
    let options = table.options();
    let columns = index_columns(key, options);
    let identifies = |column: usize| match options.layout.is_keyed() {
        true => !options.is_distinct() || options.layout_key.contains(&column),
        false => column == ROW_NUMBER,
    };
    (0..columns.len()).filter(|&at| identifies(columns[at])).collect()
}

/// Reads one column of all rows of the index, and takes those of which the wanted rows have the number there.
/// `None` if that is no number, or there are more rows with these numbers than wanted ones.
///
/// # Errors
/// Interrupted.
fn find_numbers(
    writer: &TableWriter<'_>,
    rows: &[&Values],
    column: usize,
    interrupt: &mut Interrupt,
) -> Result<Option<Vec<RowId>>> {
    let number = |datum: Datum<'_>| match datum {
        Datum::Integer(number) => i64::try_from(number).ok(),
        _ => None,
    };
    let ty = writer.schema()[column].ty;
    let mut numbers = Vec::with_capacity(rows.len());
    for row in rows {
        interrupt.look_now_and_then()?;
        let Some(number) = number(Datum::of_value(&row[column], ty)) else { return Ok(None) };
        numbers.push((Datum::Integer(number.into()).hash(), number));
    }
    let wanted = Buckets::of(numbers);
    let mut found = Vec::with_capacity(rows.len());
    writer.each_row(&[column], |id, row| {
        interrupt.look_now_and_then()?;
        if let Some(number) = number(row[0])
            && wanted.with(row[0].hash()).iter().any(|&(_, wanted)| wanted == number)
        {
            found.push(id);
        }
        Ok(())
    })?;
    Ok((found.len() == rows.len()).then_some(found))
}

/// Reads all rows of the index, and takes those that are wanted. `hashed` are the columns of which rows are
/// hashed.
fn find_in_one_pass(
    writer: &TableWriter<'_>,
    rows: Vec<&Values>,
    hashed: &[usize],
    interrupt: &mut Interrupt,
) -> Result<Vec<RowId>> {
    let types = types(writer);
    let mut found = Vec::with_capacity(rows.len());
    let mut wanted = Wanted::new(rows, &types, hashed, interrupt)?;
    let columns: Vec<usize> = (0..types.len()).collect();
    writer.each_row(&columns, |id, row| {
        interrupt.look_now_and_then()?;
        if wanted.take(row, hashed) {
            found.push(id);
        }
        Ok(())
    })?;
    assert!(found.len() == wanted.rows.len(), "every row is in the index");
    Ok(found)
}

/// Things by their hashes.
struct Buckets<T> {
    /// Ascending by hash.
    by_hash: Vec<(u64, T)>,
    /// Where those begin whose hashes have the same first bits, and where the last ones end.
    starts: Vec<u32>,
    /// How many bits of a hash are behind those.
    shift: u32,
}

impl<T> Buckets<T> {
    fn of(mut by_hash: Vec<(u64, T)>) -> Buckets<T> {
        by_hash.sort_unstable_by_key(|(hash, _)| *hash);
        let bits = by_hash.len().next_power_of_two().ilog2() + 1;
        let shift = u64::BITS - bits;
        let mut starts = vec![0u32; (1 << bits) + 1];
        by_hash.iter().for_each(|(hash, _)| starts[(hash >> shift) as usize + 1] += 1);
        (1..starts.len()).for_each(|at| starts[at] += starts[at - 1]);
        Buckets { by_hash, starts, shift }
    }

    /// Those with a hash, and a few others.
    fn with(&self, hash: u64) -> &[(u64, T)] {
        let bucket = (hash >> self.shift) as usize;
        &self.by_hash[self.starts[bucket] as usize..self.starts[bucket + 1] as usize]
    }
}

/// Rows that are wanted, by a hash of some columns.
struct Wanted<'r> {
    rows: Vec<&'r Values>,
    types: &'r [DataType],
    /// Indexes of the rows.
    by_hash: Buckets<u32>,
    is_taken: Vec<bool>,
}

impl<'r> Wanted<'r> {
    fn new(
        rows: Vec<&'r Values>,
        types: &'r [DataType],
        hashed: &[usize],
        interrupt: &mut Interrupt,
    ) -> Result<Wanted<'r>> {
        let mut by_hash = Vec::with_capacity(rows.len());
        for (index, row) in rows.iter().enumerate() {
            interrupt.look_now_and_then()?;
            let datums = hashed.iter().map(|&column| Datum::of_value(&row[column], types[column]));
            by_hash.push((hash(datums), index as u32));
        }
        let is_taken = vec![false; rows.len()];
        Ok(Wanted { rows, types, by_hash: Buckets::of(by_hash), is_taken })
    }

    /// Takes one of the wanted rows that are equal to `row`. False if all of them have been taken, or there
    /// is none.
    fn take(&mut self, row: &[Datum<'_>], hashed: &[usize]) -> bool {
        let hash = hash(hashed.iter().map(|&column| row[column]));
        let is_it = |&&(of, index): &&(u64, u32)| {
            let wanted = self.rows[index as usize].iter().zip(self.types);
            let wanted = wanted.map(|(value, &ty)| Datum::of_value(value, ty));
            of == hash && !self.is_taken[index as usize] && wanted.zip(row).all(|(a, b)| a.is_same(*b))
        };
        let it = self.by_hash.with(hash).iter().find(is_it).map(|&(_, index)| index as usize);
        it.inspect(|&index| self.is_taken[index] = true).is_some()
    }
}

fn hash<'a>(datums: impl Iterator<Item = Datum<'a>>) -> u64 {
    datums.fold(0u64, |hash, datum| hash.rotate_left(7) ^ datum.hash())
}

/// Searches for each row, whose first `width` columns are the layout key of the index.
fn find_by_key(
    writer: &TableWriter<'_>,
    mut rows: Vec<&Values>,
    width: usize,
    interrupt: &mut Interrupt,
) -> Result<Vec<RowId>> {
    let types = types(writer);
    let order = |a: &&Values, b: &&Values| {
        let columns = a.iter().zip(*b).take(width).map(|(a, b)| a.total_cmp(b));
        { columns }.find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
    };
    rows.sort_by(order);
    let mut found = Vec::with_capacity(rows.len());
    for same in rows.chunk_by(|a, b| order(a, b).is_eq()) {
        let mut wanted: HashMap<u64, Vec<Vec<Datum<'_>>>> = HashMap::new();
        for row in same {
            interrupt.look_now_and_then()?;
            let others = datums(&row[width..], &types[width..]);
            wanted.entry(hash(others.iter().copied())).or_default().push(others);
        }
        let mut left = same.len();
        writer.find_each(&datums(&same[0][..width], &types), |id| {
            let others: Vec<Datum<'_>> =
                (width..types.len()).map(|column| writer.datum(id, column)).collect();
            if let Some(rows) = wanted.get_mut(&hash(others.iter().copied()))
                && let Some(at) = rows.iter().position(|wanted| is_same_row(wanted, &others))
            {
                rows.swap_remove(at);
                found.push(id);
                left -= 1;
            }
            left > 0
        });
        assert!(left == 0, "every row is in the index");
    }
    Ok(found)
}

fn is_same_row(one: &[Datum<'_>], other: &[Datum<'_>]) -> bool {
    one.iter().zip(other).all(|(a, b)| a.is_same(*b))
}

#[cfg(test)]
mod tests {
    use super::*;
    use entasis_engine::exec::CancelFlag;
    use entasis_storage::definition::TableOptions;
    use entasis_vector::{Field, Schema, Value};

    /// An index of a text and a number by which rows of its table are told apart, both with few values, so
    /// that equal rows, equal keys with other numbers, and NULLs occur.
    fn index(rows: u64) -> (std::sync::Arc<Table>, Vec<Values>) {
        let schema: Schema = vec![Field::new("s", DataType::Varchar), Field::new("number", DataType::Int64)];
        let table = Table::with_options("index", schema, TableOptions::keyed(vec![0]));
        let row = |i: u64| {
            let text = (i % 7 != 3).then(|| Value::Text(format!("text {}", i * 7919 % 101).into()));
            vec![text.unwrap_or(Value::Null), Value::Integer((i * 31 % 57).into())]
        };
        let rows: Vec<Values> = (0..rows).map(row).collect();
        let mut writer = table.write();
        rows.iter().for_each(|row| {
            writer.insert(&datums(row, &[DataType::Varchar, DataType::Int64]));
        });
        drop(writer);
        (table, rows)
    }

    #[test]
    fn one_pass_finds_what_searches_find() {
        for (rows, step) in [(1, 1), (10, 3), (3000, 1), (3000, 7), (5000, 450)] {
            let (table, all) = index(rows);
            let wanted: Vec<&Values> = all.iter().step_by(step).collect();
            let types = [DataType::Varchar, DataType::Int64];
            let writer = table.write();
            let mut interrupt = Interrupt::by(CancelFlag::default());
            let values = |ids: Vec<RowId>| {
                let mut ids = ids;
                ids.sort_unstable();
                assert!(ids.windows(2).all(|pair| pair[0] != pair[1]), "each row is found once");
                let value = |id: &RowId, column: usize| writer.datum(*id, column).value(types[column]);
                let mut values: Vec<Values> = ids.iter().map(|id| vec![value(id, 0), value(id, 1)]).collect();
                values.sort_by_key(|values| format!("{values:?}"));
                values
            };
            let searched = values(find_by_key(&writer, wanted.clone(), 1, &mut interrupt).unwrap());
            let mut expected: Vec<Values> = wanted.iter().copied().cloned().collect();
            expected.sort_by_key(|values| format!("{values:?}"));
            assert_eq!(searched, expected);
            // Numbers that several rows have do not tell them apart.
            let by_number = find_numbers(&writer, &wanted, 1, &mut interrupt).unwrap();
            assert!(by_number.is_none_or(|found| values(found) == expected));
            for hashed in [&[0, 1][..], &[1], &[0], &[]] {
                let pass = find_in_one_pass(&writer, wanted.clone(), hashed, &mut interrupt).unwrap();
                assert_eq!(values(pass), expected, "{hashed:?}");
            }
        }
    }

    #[test]
    fn numbers_find_what_whole_rows_find() {
        for negative in [false, true] {
            let schema: Schema =
                vec![Field::new("s", DataType::Varchar), Field::new("number", DataType::Int64)];
            let table = Table::with_options("index", schema, TableOptions::keyed(vec![0]));
            let types = [DataType::Varchar, DataType::Int64];
            let number = |i: i64| if negative { -i * i } else { i * 31 };
            let row =
                |i: i64| vec![Value::Text(format!("{}", i % 97).into()), Value::Integer(number(i).into())];
            let rows: Vec<Values> = (0..4000).map(row).collect();
            let mut writer = table.write();
            for row in &rows {
                writer.insert(&datums(row, &types));
            }
            let mut interrupt = Interrupt::by(CancelFlag::default());
            let wanted: Vec<&Values> = rows.iter().step_by(3).collect();
            let mut found =
                find_numbers(&writer, &wanted, 1, &mut interrupt).unwrap().expect("it is a number");
            let mut expected = find_in_one_pass(&writer, wanted.clone(), &[0, 1], &mut interrupt).unwrap();
            found.sort_unstable();
            expected.sort_unstable();
            assert_eq!(found, expected);
            assert_eq!(found.len(), wanted.len());
            // Two rows have the number of a wanted one; a text is no number.
            writer.insert(&[Datum::Bytes(b"another"), Datum::Integer(number(3).into())]);
            assert!(find_numbers(&writer, &wanted, 1, &mut interrupt).unwrap().is_none());
            assert!(find_numbers(&writer, &wanted, 0, &mut interrupt).unwrap().is_none());
            let again = find_in_one_pass(&writer, wanted, &[1], &mut interrupt).unwrap();
            assert_eq!(again.len(), expected.len());
        }
    }
}
