//! Describes blocks and dictionaries, for users who want to know where a table's memory goes.

use crate::tree::RowGroup;
use crate::value::Zone;
use entasis_vector::Dictionary;
use std::sync::Arc;

/// A description of a block.
#[derive(Debug)]
pub struct BlockInfo<'a> {
    /// The encoding, as the table in [`crate::block`] calls it.
    pub encoding: &'static str,
    /// Slots of the block that are rows.
    pub rows: usize,
    /// Slots that it has memory for.
    pub slots: usize,
    /// Bits a slot: of codes, values, or views with the bytes of strings; without validity.
    pub bits_per_value: f64,
    /// All of its memory in bytes, but for dictionaries.
    pub bytes: usize,
    /// Bounds of its values.
    pub zone: &'a Zone,
    /// True if its slice was written since it was encoded.
    pub is_hot: bool,
    /// True if its slice was encoded for reading, whether it has been written since or not.
    pub is_settled: bool,
    /// The partition of its first slot; `None` without a layout key.
    pub partition: Option<usize>,
}

/// A description of a dictionary.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DictionaryInfo {
    /// The number of values.
    pub entries: usize,
    /// Bytes of memory.
    pub bytes: usize,
    /// Blocks of the row group that share it.
    pub blocks: usize,
}

impl RowGroup {
    /// A block of a column.
    pub fn block_info(&self, column: usize, block: usize) -> BlockInfo<'_> {
        let slice = &*self.slices[block];
        let own = slice.block(column);
        let (encoding, bytes) = (own.values.name(), own.values.bytes());
        BlockInfo {
            encoding,
            rows: slice.rows(),
            slots: own.slots(),
            bits_per_value: bytes as f64 * 8.0 / own.slots().max(1) as f64,
            bytes: own.bytes(),
            zone: &own.zone,
            is_hot: slice.is_hot(),
            is_settled: slice.is_settled(),
            partition: self.partition_of(block * self.block_slots()),
        }
    }

    /// The dictionaries of a column, in the order of the first block of each.
    pub fn dictionary_infos(&self, column: usize) -> Vec<DictionaryInfo> {
        let mut found: Vec<(*const Dictionary, DictionaryInfo)> = Vec::new();
        for slice in &self.slices {
            let block = slice.block(column);
            let Some(dictionary) = block.dictionary() else { continue };
            let address = Arc::as_ptr(dictionary);
            match found.iter_mut().find(|(other, _)| *other == address) {
                Some((_, info)) => info.blocks += 1,
                None => {
                    let info = DictionaryInfo {
                        entries: dictionary.len(),
                        bytes: block.dictionary_bytes(),
                        blocks: 1,
                    };
                    found.push((address, info));
                }
            }
        }
        found.into_iter().map(|(_, info)| info).collect()
    }
}

#[cfg(test)]
mod tests {
    use crate::{Datum, Table, TableOptions};
    use entasis_vector::{DataType, Field, Value};
    use std::sync::Arc;

    #[test]
    fn blocks_are_shown_as_they_are() {
        let column = |name: &str, ty| Field { nullable: false, ..Field::new(name, ty) };
        let schema = vec![
            column("k", DataType::Int64),
            column("same", DataType::Int32),
            column("wide", DataType::Int32),
            column("word", DataType::Varchar),
        ];
        let table = Arc::new(Table::with_options("t", schema, TableOptions::keyed(vec![0])));
        let row = |i: i128| {
            let word = Value::Text(["red", "blue"][i as usize % 2].into());
            vec![Value::Integer(i), Value::Integer(7), Value::Integer(i * 2_000_003 % 2_000_000_011), word]
        };
        let rows: Vec<Vec<Value>> = (0..5000).map(row).collect();
        crate::table::tests::rows::insert(&table, &rows, false);
        let shown = |column: usize| {
            let snapshot = table.snapshot();
            let group = snapshot.row_group(0).unwrap();
            let blocks = (0..group.blocks()).map(|block| group.block_info(column, block));
            let live: usize = blocks.clone().map(|info| info.rows).sum();
            assert_eq!(live, table.rows() as usize);
            assert!(blocks.clone().all(|info| info.partition.is_some()));
            let first = group.block_info(column, 0);
            (
                first.encoding,
                first.bits_per_value,
                first.zone.min.clone(),
                blocks.filter(|info| info.is_hot).count(),
            )
        };
        assert_eq!(shown(0), ("packed", 10.0, Value::Integer(0), 0));
        assert_eq!(shown(1), ("constant", 0.0, Value::Integer(7), 0));
        assert_eq!((shown(2).0, shown(2).1), ("flat", 32.0));
        {
            let mut writer = table.write();
            let id = writer.find(&[Datum::Integer(0)]).unwrap();
            writer.update(id, &[(1, Datum::Integer(8))]);
        }
        assert_eq!(shown(1).0, "frame of reference", "8 is not 7");
        assert_eq!(shown(1).3, 1, "one slice is hot");
    }
}
