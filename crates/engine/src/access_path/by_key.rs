//! Rows of a stored table by many keys at once.
//!
//! To find the rows with given keys, the keys are joined with the table; that reads all rows of the table. If
//! there are few keys, their rows are looked up first, one key after the other, by the layout key or an
//! index, and the join reads only these ([`crate::relation::Relation::only_rows`]). The lookups end as soon
//! as they cost more than reading all rows.
//!
//! There may be more rows than match, as an index may have only the first of several columns: the join
//! decides.

use super::{Bounds, Condition, FEW_LOOKUPS, rows_by_index, slice};
use crate::relation::Relation;
use entasis_storage::{Datum, RowId, TableSnapshot};
use entasis_vector::Value;
use entasis_vector::expr::CompareOp;
use std::cell::LazyCell;

/// So many slots are read in the time of a lookup.
const SLOTS_FOR_A_LOOKUP: u64 = 64;

/// The rows of a stored table that have one of `keys`, which have no NULLs, in `columns`, in order: by its
/// layout key or an index, if looking them up costs less than looking through the columns in all rows. There
/// may be others among them. `None`, if that is not so.
pub fn rows_by_key(relation: &dyn Relation, columns: &[usize], keys: &[Vec<Value>]) -> Option<Vec<RowId>> {
    let table = relation.table()?;
    let affordable = LazyCell::new(|| {
        let costs = relation.costs();
        let scan: f64 = columns.iter().map(|&column| costs.scan(table, column)).sum();
        (scan / costs.by_index()) as u64
    });
    let are_few = |lookups: u64| lookups <= FEW_LOOKUPS || lookups <= *affordable;
    if !are_few(keys.len() as u64) {
        return None;
    }
    let mut found = Vec::new();
    let mut lookups = 0;
    for key in keys {
        let Some(conditions) = equalities(table, columns, key) else { continue };
        // Others are equal to a float than itself.
        if conditions.iter().any(|condition| matches!(condition.value, Datum::Float(_))) {
            return None;
        }
        let by_layout =
            rows_by_layout(table, &conditions, |slots| are_few(lookups + slots / SLOTS_FOR_A_LOOKUP));
        let (rows, slots) =
            by_layout.or_else(|| Some((rows_by_indexes(relation, table, &conditions)?, 0)))?;
        lookups += 1 + slots / SLOTS_FOR_A_LOOKUP + rows.len() as u64;
        if !are_few(lookups) {
            return None;
        }
        found.extend(rows);
    }
    found.sort_unstable();
    found.dedup();
    Some(found)
}

/// Conditions that columns have the values of a key; `None` if one is of too large a number for its column.
fn equalities<'a>(table: &TableSnapshot, columns: &[usize], key: &'a [Value]) -> Option<Vec<Condition<'a>>> {
    let one = |(&column, value): (&usize, &'a Value)| {
        let ty = table.schema()[column].ty;
        let fits = match value {
            Value::Integer(value) => ty.physical().holds((*value, *value)),
            _ => true,
        };
        let value = fits.then(|| Datum::of_value(value, ty))?;
        Some(Condition { column, op: CompareOp::Eq, value, conjunct: 0 })
    };
    columns.iter().zip(key).map(one).collect()
}

/// The rows that satisfy equalities, by the layout key, and how many slots were looked at; `None` if it says
/// nothing, or if `are_few` says that these are not few.
fn rows_by_layout(
    table: &TableSnapshot,
    conditions: &[Condition<'_>],
    are_few: impl Fn(u64) -> bool,
) -> Option<(Vec<RowId>, u64)> {
    let layout_key = &table.table().options().layout_key;
    let bounds = Bounds::of(layout_key, conditions, table.schema())?;
    let mut rows = Vec::new();
    if let Some(equal) = bounds.equal().filter(|equal| equal.len() == layout_key.len()) {
        table.find_each(equal, |row| {
            rows.push(row);
            true
        });
        return Some((rows, 0));
    }
    let ranges = table.range(slice(&bounds.low), slice(&bounds.high));
    let slots = ranges.iter().map(|range| range.slots.len() as u64).sum();
    if !are_few(slots) {
        return None;
    }
    for (number, slot) in ranges.iter().flat_map(|range| range.slots.clone().map(|slot| (range.group, slot)))
    {
        let row = RowId { group: number as u32, slot: slot as u32 };
        let has = |condition: &Condition<'_>| table.datum(row, condition.column).is_same(condition.value);
        if table.row_group(number)?.is_live(slot) && conditions.iter().all(has) {
            rows.push(row);
        }
    }
    Some((rows, slots))
}

/// The same by the first index that tells it.
fn rows_by_indexes(
    relation: &dyn Relation,
    table: &TableSnapshot,
    conditions: &[Condition<'_>],
) -> Option<Vec<RowId>> {
    relation.indexes().iter().find_map(|index| {
        let bounds = Bounds::of(&index.columns[..index.key_columns], conditions, table.schema())?;
        rows_by_index(table, index, &bounds, || relation.costs())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::context::QueryContext;
    use crate::relation::{Index, ScanRequest, Source, Statistics};
    use entasis_storage::TableOptions;
    use entasis_storage::definition::{Key, KeyKind};
    use entasis_storage::index::{ROW_NUMBER, index_columns, index_table};
    use entasis_storage::{Curve, Table, TableSnapshot};
    use entasis_vector::{DataType, Error, Field, Result, Schema};
    use std::sync::Arc;

    #[derive(Debug)]
    struct Stored {
        snapshot: TableSnapshot,
        indexes: Vec<Index>,
    }

    impl Relation for Stored {
        fn name(&self) -> &str {
            self.snapshot.name()
        }
        fn schema(&self) -> &Schema {
            self.snapshot.schema()
        }
        fn statistics(&self) -> Statistics {
            Statistics::default()
        }
        fn table(&self) -> Option<&TableSnapshot> {
            Some(&self.snapshot)
        }
        fn indexes(&self) -> &[Index] {
            &self.indexes
        }
        fn scan(&self, _: &ScanRequest, _: &QueryContext) -> Result<Arc<dyn Source>> {
            Err(Error::internal("tables are scanned by the engine"))
        }
    }

    /// `a`, which counts rows, `b` and `c`, with seven and a hundred values, and `d`, which is NULL in
    /// places.
    fn rows(count: i128) -> impl Iterator<Item = [Value; 4]> {
        let number =
            |i: i128| [Value::Integer(i), Value::Integer(i % 7), Value::Integer(i * 37 % 100), Value::Null];
        (0..count).map(number).map(|mut row| {
            if let (Value::Integer(a), true) = (row[0].clone(), row[1] != Value::Integer(0)) {
                row[3] = Value::Integer(a % 50);
            }
            row
        })
    }

    fn stored(count: i128, (layout_key, curve): (&[usize], Option<Curve>), indexed: &[&[usize]]) -> Stored {
        let schema: Schema = ["a", "b", "c", "d"].map(|name| Field::new(name, DataType::Int16)).into();
        let options = match layout_key {
            [] => TableOptions::default(),
            _ => TableOptions { curve, ..TableOptions::keyed(layout_key.to_vec()) },
        };
        let table = Table::with_options("t", schema.clone(), options.clone());
        let fill = |table: &Arc<Table>, columns: &[usize]| {
            let mut writer = table.write();
            for (row, number) in rows(count).zip(1..) {
                let datum = |&column: &usize| match column {
                    ROW_NUMBER => Datum::Integer(number),
                    _ => Datum::of_value(&row[column], DataType::Int16),
                };
                writer.insert(&columns.iter().map(datum).collect::<Vec<_>>());
            }
        };
        fill(&table, &[0, 1, 2, 3]);
        let index = |columns: &&[usize]| {
            let key = Key { name: "i".into(), columns: columns.to_vec(), kind: KeyKind::Index };
            let all = index_columns(&key, &options);
            // None where the table itself is laid out that way.
            let index = index_table(&key, &schema, &options)?;
            fill(&index, &all);
            Some(Index { table: index.snapshot(), columns: all, key_columns: columns.len(), is_whole: true })
        };
        Stored { indexes: indexed.iter().filter_map(index).collect(), snapshot: table.snapshot() }
    }

    /// The rows that have one of the keys, by looking at all.
    fn looked_through(stored: &Stored, columns: &[usize], keys: &[Vec<Value>]) -> Vec<RowId> {
        let has = |row: &RowId| {
            let value = |&column: &usize| stored.snapshot.datum(*row, column).value(DataType::Int16);
            let values: Vec<Value> = columns.iter().map(value).collect();
            keys.contains(&values)
        };
        stored.snapshot.row_ids().filter(has).collect()
    }

    #[test]
    fn looked_up_rows_are_all_that_have_the_keys() {
        let layouts: [(&[usize], Option<Curve>); 7] = [
            (&[], None),
            (&[0], None),
            (&[1, 0], None),
            (&[2, 1], None),
            (&[3, 0], None),
            (&[2, 1], Some(Curve::Hilbert)),
            (&[3, 0], Some(Curve::ZOrder)),
        ];
        let indexes: [&[&[usize]]; 3] = [&[], &[&[3]], &[&[2, 1], &[1]]];
        let sought: [&[usize]; 6] = [&[0], &[1], &[2], &[3], &[1, 2], &[3, 0]];
        let mut answers = 0;
        for layout in layouts {
            for indexed in indexes {
                let stored = stored(3000, layout, indexed);
                for columns in sought {
                    for count in [1, 3, 40] {
                        let keys: Vec<Vec<Value>> = rows(count)
                            .map(|row| columns.iter().map(|&column| row[column].clone()).collect())
                            .collect();
                        let keys: Vec<Vec<Value>> =
                            keys.into_iter().filter(|key: &Vec<Value>| !key.contains(&Value::Null)).collect();
                        let expected = looked_through(&stored, columns, &keys);
                        let Some(found) = rows_by_key(&stored, columns, &keys) else { continue };
                        answers += 1;
                        assert!(found.is_sorted_by(|a, b| a < b), "{layout:?} {indexed:?} {columns:?}");
                        let lacks = expected.iter().find(|row| found.binary_search(row).is_err());
                        assert_eq!(lacks, None, "{layout:?} {indexed:?} {columns:?} {keys:?}");
                        if columns.len() == 1 {
                            assert_eq!(found, expected, "{layout:?} {indexed:?} {columns:?} {keys:?}");
                        }
                    }
                }
            }
        }
        assert!(answers > 20, "{answers} answers");
    }

    #[test]
    fn keys_that_no_column_can_hold_have_no_rows() {
        let stored = stored(100, (&[0], None), &[]);
        let keys = [vec![Value::Integer(70_000)], vec![Value::Integer(5)]];
        assert_eq!(rows_by_key(&stored, &[0], &keys).map(|rows| rows.len()), Some(1));
        assert_eq!(rows_by_key(&stored, &[2], &keys), None);
    }
}
