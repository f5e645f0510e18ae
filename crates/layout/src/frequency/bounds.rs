//! Maps values of the layout key to blocks, if rows are in the order of the key: the least and the greatest
//! value of each block.
//!
//! A value belongs to the last block whose least value is not greater. That is where a partition index finds
//! it by its fences, and where it is inserted. A value less than all of these belongs to the first block.

use super::Operation;

/// The bounds of blocks, in order. There is at least one block.
#[derive(Debug, Clone)]
pub struct Bounds<T> {
    least: Vec<T>,
    greatest: Vec<T>,
}

impl<T: Ord + Clone> Bounds<T> {
    /// The bounds of sorted values, cut into blocks of `size` values; the last may have fewer.
    ///
    /// # Panics
    /// If there are no values, or if `size` is 0. In debug builds, if the values are not sorted.
    pub fn of_sorted(values: &[T], size: usize) -> Bounds<T> {
        assert!(!values.is_empty(), "a column without values has no blocks");
        debug_assert!(values.is_sorted());
        let blocks = values.chunks(size);
        let bounds = blocks.map(|block| (block[0].clone(), block[block.len() - 1].clone()));
        let (least, greatest) = bounds.unzip();
        Bounds { least, greatest }
    }

    /// Bounds from the least and greatest value of each block. `None` if there is no block, or if they are
    /// not in order.
    pub fn of_blocks(blocks: impl IntoIterator<Item = (T, T)>) -> Option<Bounds<T>> {
        let (least, greatest): (Vec<T>, Vec<T>) = blocks.into_iter().unzip();
        let inside = least.iter().zip(&greatest).all(|(least, greatest)| least <= greatest);
        let in_order = greatest.iter().zip(least.iter().skip(1)).all(|(before, after)| before <= after);
        (inside && in_order && !least.is_empty()).then_some(Bounds { least, greatest })
    }

    /// The number of blocks.
    pub fn blocks(&self) -> usize {
        self.least.len()
    }

    /// The least value of a block.
    pub fn least(&self, block: usize) -> &T {
        &self.least[block]
    }

    /// The block to which a value belongs.
    pub fn block_of(&self, value: &T) -> usize {
        self.least.partition_point(|least| least <= value).saturating_sub(1)
    }

    /// The first block that contains a value, or the one to which it belongs if none does.
    fn first_block_of(&self, value: &T) -> usize {
        self.block_of(value).min(self.greatest.partition_point(|greatest| greatest < value))
    }

    /// An operation with values replaced by the numbers of their blocks.
    pub fn locate(&self, operation: &Operation<T>) -> Operation<usize> {
        match operation {
            Operation::Point(value) => match (self.first_block_of(value), self.block_of(value)) {
                (first, last) if first == last => Operation::Point(first),
                (first, last) => Operation::Range(first, last),
            },
            Operation::Range(low, high) => {
                let (low, high) = (low.min(high), low.max(high));
                Operation::Range(self.first_block_of(low), self.block_of(high))
            }
            Operation::Insert(value) => Operation::Insert(self.block_of(value)),
            Operation::Delete(value) => Operation::Delete(self.block_of(value)),
            Operation::Update { from, to } => {
                Operation::Update { from: self.block_of(from), to: self.block_of(to) }
            }
        }
    }

    /// For each block, whether a partition may end with it so that equal values stay in one partition
    /// (section 4.1).
    pub fn may_end(&self) -> Vec<bool> {
        let next = self.least.iter().skip(1).map(Some).chain([None]);
        self.greatest.iter().zip(next).map(|(greatest, next)| next != Some(greatest)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_values_stay_together() {
        let bounds = Bounds::of_sorted(&[1, 2, 2, 2, 2, 3, 4, 5, 5], 2);
        assert_eq!(bounds.may_end(), [false, false, true, false, true]);
        assert_eq!(bounds.locate(&Operation::Point(2)), Operation::Range(0, 2));
        assert_eq!(bounds.locate(&Operation::Point(5)), Operation::Range(3, 4));
        assert_eq!(bounds.locate(&Operation::Point(3)), Operation::Point(2));
        assert_eq!(bounds.locate(&Operation::Insert(2)), Operation::Insert(2));
        assert_eq!(bounds.locate(&Operation::Range(9, 0)), Operation::Range(0, 4));
    }

    #[test]
    fn bounds_are_in_order() {
        assert!(Bounds::<u8>::of_blocks([]).is_none());
        assert!(Bounds::of_blocks([(1, 3), (2, 4)]).is_none());
        assert!(Bounds::of_blocks([(2, 1)]).is_none());
        let bounds = Bounds::of_blocks([(1, 3), (3, 4), (7, 9)]).expect("in order");
        assert_eq!((bounds.blocks(), bounds.block_of(&5), bounds.block_of(&0)), (3, 1, 0));
    }
}
