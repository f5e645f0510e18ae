//! Finds the rows of an index that are to be removed, of which the values are known.
//!
//! - *A search for each*, if they are few: the index is laid out by its key. Rows with the same key are looked
//!   up together, because very many others may have that key too.
//! - *One pass*, if they are many: all rows of the index are read once, block by block, and each is looked up
//!   among the wanted ones. What is hashed is what tells the rows of the table apart, its row number or
//!   layout key, and mostly a number; only a row that is found there is compared as a whole.
//!
//! Every wanted row is in the index; otherwise the index is damaged, which ends the statement.

use super::values::Values;
use crate::interrupt::Interrupt;
use entasis_storage::definition::Key;
use entasis_storage::index::{ROW_NUMBER, index_columns};
use entasis_storage::{Datum, RowId, Table, TableWriter};
use entasis_vector::{DataType, Result};
use std::cmp::Ordering;
use std::collections::HashMap;

/// If more than one in so many rows of an index are wanted, all of them are read once.
// PERF: a search reads a whole partition, 1 to 3 us, and a pass takes 25 ns a row.
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
        find_in_one_pass(writer, rows, &identity(key, table), interrupt)
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

/// Rows that are wanted, by a hash of some columns.
struct Wanted<'r> {
    rows: Vec<&'r Values>,
    types: &'r [DataType],
    /// Hashes and indexes of rows, ascending.
    by_hash: Vec<(u64, u32)>,
    /// Where the rows begin whose hashes have the same first bits, and where the last ones end.
    starts: Vec<u32>,
    /// How many bits of a hash are behind those.
    shift: u32,
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
        by_hash.sort_unstable();
        let bits = rows.len().next_power_of_two().ilog2() + 1;
        let shift = u64::BITS - bits;
        let mut starts = vec![0u32; (1 << bits) + 1];
        by_hash.iter().for_each(|(hash, _)| starts[(hash >> shift) as usize + 1] += 1);
        (1..starts.len()).for_each(|at| starts[at] += starts[at - 1]);
        let is_taken = vec![false; rows.len()];
        Ok(Wanted { rows, types, by_hash, starts, shift, is_taken })
    }

    /// Takes one of the wanted rows that are equal to `row`. False if all of them have been taken, or there
    /// is none.
    fn take(&mut self, row: &[Datum<'_>], hashed: &[usize]) -> bool {
        let hash = hash(hashed.iter().map(|&column| row[column]));
        let bucket = (hash >> self.shift) as usize;
        let candidates = self.starts[bucket] as usize..self.starts[bucket + 1] as usize;
        let is_it = |&&(of, index): &&(u64, u32)| {
            let wanted = self.rows[index as usize].iter().zip(self.types);
            let wanted = wanted.map(|(value, &ty)| Datum::of_value(value, ty));
            of == hash && !self.is_taken[index as usize] && wanted.zip(row).all(|(a, b)| a.is_same(*b))
        };
        let it = self.by_hash[candidates].iter().find(is_it).map(|&(_, index)| index as usize);
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
            for hashed in [&[0, 1][..], &[1], &[0], &[]] {
                let pass = find_in_one_pass(&writer, wanted.clone(), hashed, &mut interrupt).unwrap();
                assert_eq!(values(pass), expected, "{hashed:?}");
            }
        }
    }
}
