//! Runs of rows with equal keys, which are looked up once.

use entasis_vector::{Buffer, Chunk, Encoding, PhysicalType};
use std::sync::Arc;

/// Input that is clustered by its one integer key: only the first row of each run is looked up.
#[derive(Default)]
pub(super) struct Runs {
    heads: Vec<u16>,
    /// The head rows, with the key as column 0.
    pub(super) narrowed: Chunk,
    spares: Vec<Arc<Buffer>>,
    /// The groups of these.
    pub(super) found: Vec<u32>,
}

impl Runs {
    /// True if runs are long enough to be worth it; then `narrowed` has their heads.
    pub(super) fn detect(&mut self, chunk: &Chunk, columns: &[usize]) -> bool {
        let &[key] = columns else { return false };
        let vector = chunk.vector(key);
        if vector.encoding() != Encoding::Flat || vector.validity().is_some() {
            return false;
        }
        use PhysicalType::{I32, I64, U32, U64};
        match vector.physical() {
            I32 | U32 => self.find_heads(vector.values::<u32>(), chunk.positions(key), chunk.len()),
            I64 | U64 => self.find_heads(vector.values::<u64>(), chunk.positions(key), chunk.len()),
            _ => return false,
        }
        if self.heads.len() * 2 > chunk.len() {
            return false;
        }
        let selection = chunk.groups()[chunk.column(key).group].clone();
        self.narrowed.reset(chunk.len());
        let group = self.narrowed.push_group(selection);
        self.narrowed.push_column(vector.clone(), group);
        self.narrowed.select(&self.heads, &mut self.spares);
        true
    }

    fn find_heads<T: Copy + PartialEq>(&mut self, values: &[T], positions: Option<&[u16]>, rows: usize) {
        self.heads.resize(rows, 0);
        let heads = &mut self.heads[..];
        let mut count = 1;
        let mut head_if = |row: usize, differs: bool| {
            heads[count] = row as u16;
            count += usize::from(differs);
        };
        match positions {
            None => (1..rows).for_each(|r| head_if(r, values[r] != values[r - 1])),
            Some(at) => {
                (1..rows).for_each(|r| head_if(r, values[at[r] as usize] != values[at[r - 1] as usize]))
            }
        }
        self.heads.truncate(count);
        self.heads[0] = 0;
    }

    /// Gives each row the group of its run.
    pub(super) fn spread(&self, groups: &mut [u32]) {
        let ends = self.heads[1..].iter().map(|&head| head as usize).chain([groups.len()]);
        for ((&head, end), &group) in self.heads.iter().zip(ends).zip(&self.found) {
            groups[head as usize..end].fill(group);
        }
    }
}
