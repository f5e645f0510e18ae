//! Ranks of strings that repeat: the number of lesser ones among the distinct strings of a column.
//!
//! Where the bytes of strings do not fit into a [code](super::codes), a few thousand distinct ones need a
//! dozen bits each, which say all: `ORDER BY country, city, street` of long names is an order of integers.

use crate::exec::materialized::Materialized;
use entasis_vector::StringView;
use entasis_vector::hash::hash_bytes;

/// The most distinct strings.
// PERF: with their table they stay in a cache of a core.
const MOST_TEXTS: usize = if cfg!(test) { 8 } else { 4096 };
/// Rows that a distinct string must have on average.
const ROWS_PER_TEXT: usize = 8;

/// The distinct strings of a column, and a hash table of them.
pub(super) struct TextRanks {
    texts: Vec<StringView>,
    /// The number of a string in `texts`, plus one; 0 in a free slot. Strings are in the first free slot from
    /// that of their hash on.
    slots: Vec<u16>,
}

impl TextRanks {
    /// The ranks of the strings of a column; `None` if too many are distinct. Their bytes must live as long
    /// as the ranks.
    pub(super) fn of(rows: &Materialized, column: usize) -> Option<TextRanks> {
        let mut found = TextRanks { texts: Vec::new(), slots: vec![0; 4 * MOST_TEXTS] };
        let most = MOST_TEXTS.min(rows.rows() / ROWS_PER_TEXT);
        for segment in 0..rows.segments() {
            rows.for_each_valid(column, segment, |view: StringView| {
                // Once there are too many, nothing is found any more.
                if found.texts.len() <= most {
                    found.add(view);
                }
            });
            if found.texts.len() > most {
                return None;
            }
        }
        let mut texts = std::mem::take(&mut found.texts);
        texts.sort_unstable();
        found.slots.fill(0);
        texts.into_iter().for_each(|view| found.add(view));
        Some(found)
    }

    /// The number of bits of the greatest rank.
    pub(super) fn bits(&self) -> u32 {
        usize::BITS - self.texts.len().saturating_sub(1).leading_zeros()
    }

    /// The rank of one of the strings.
    #[inline]
    pub(super) fn rank(&self, view: StringView) -> u128 {
        let found = usize::from(self.slots[self.slot(view)]);
        debug_assert!(found > 0, "all strings were added");
        found.saturating_sub(1) as u128
    }

    fn add(&mut self, view: StringView) {
        let slot = self.slot(view);
        if self.slots[slot] == 0 {
            self.texts.push(view);
            self.slots[slot] = self.texts.len() as u16;
        }
    }

    /// The slot of a string, or the free one in which it would be.
    #[inline]
    fn slot(&self, view: StringView) -> usize {
        let mask = self.slots.len() - 1;
        let mut slot = hash_bytes(view.as_bytes()) as usize & mask;
        // Less than a third of the slots are taken.
        loop {
            match self.slots[slot] {
                0 => return slot,
                number if self.texts[usize::from(number) - 1] == view => return slot,
                _ => slot = (slot + 1) & mask,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exec::materialized::column_of;
    use crate::exec::sort::codes::{OrderKey, SortCodes};
    use crate::exec::sort::order::order;
    use crate::exec::testing::{Chance, chunk_of};
    use entasis_vector::{DataType, Value};
    use std::cmp::Ordering;

    const TEXTS: [&str; 9] = [
        "",
        "a",
        "a\0",
        "the same bytes at first",
        "the same bytes at first, and others",
        "the same bytes at first, and otherz",
        "sixteen bytes or",
        "z",
        "one more than are ranked",
    ];

    fn rows_of(texts: usize, chance: &mut Chance) -> (Materialized, Vec<[Option<usize>; 2]>) {
        let metas = [column_of(DataType::Varchar), column_of(DataType::Varchar)];
        let one = |chance: &mut Chance| match chance.below(10) {
            0 => None,
            _ => Some(chance.below(texts as u64) as usize),
        };
        let rows: Vec<[Option<usize>; 2]> = (0..300).map(|_| [one(chance), one(chance)]).collect();
        let value = |text: &Option<usize>| text.map_or(Value::Null, |text| Value::Text(TEXTS[text].into()));
        let values: Vec<Vec<Value>> = rows.iter().map(|row| row.iter().map(value).collect()).collect();
        let mut kept = Materialized::new(&metas);
        kept.append(&chunk_of(&metas, &values, chance), &[0, 1], None);
        (kept, rows)
    }

    #[test]
    fn codes_of_strings_that_repeat_say_all() {
        let mut chance = Chance(3);
        for (texts, is_exact) in [(1, true), (8, true), (9, false)] {
            for number in 0..16 {
                let (kept, rows) = rows_of(texts, &mut chance);
                let flag = |bit: usize| number >> bit & 1 == 1;
                let key = |column: usize| OrderKey {
                    column,
                    descending: flag(2 * column),
                    nulls_first: flag(2 * column + 1),
                };
                let keys = [key(1), key(0)];
                assert_eq!(SortCodes::plan(&kept, &keys).is_exact(), is_exact, "{texts} texts");
                let compare = |a: &u32, b: &u32| {
                    keys.iter().fold(Ordering::Equal, |found, key| {
                        let text = |row: &u32| rows[*row as usize][key.column].map(|text| TEXTS[text]);
                        found.then_with(|| match (text(a), text(b)) {
                            (Some(a), Some(b)) if key.descending => b.cmp(a),
                            (Some(a), Some(b)) => a.cmp(b),
                            (a, b) if key.nulls_first => a.is_some().cmp(&b.is_some()),
                            (a, b) => b.is_some().cmp(&a.is_some()),
                        })
                    })
                };
                let mut twin: Vec<u32> = (0..rows.len() as u32).collect();
                twin.sort_by(compare);
                let sorted = order(&kept, &keys, kept.ids().collect(), None).unwrap();
                assert_eq!(sorted, twin, "{texts} texts, {keys:?}");
            }
        }
    }
}
