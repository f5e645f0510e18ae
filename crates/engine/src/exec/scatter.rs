//! Sorts rows by the partition that they go to.

/// Up to 65,535 rows, each of which goes to one of `PLACES` places, at most 256. The rows of one place stay
/// in order.
// PERF: each place then takes its rows column by column, dozens of values at a time, where a loop over rows
// would write to all places in turn.
#[derive(Default)]
pub(crate) struct Scatter<const PLACES: usize> {
    to: Vec<u8>,
    order: Vec<u16>,
    /// The offset of each place's first row in the sorted order, and the end.
    starts: Vec<u16>,
}

impl<const PLACES: usize> Scatter<PLACES> {
    /// Starts again. Returns the vector to be filled with the place of each row, before [`Scatter::arrange`].
    pub(crate) fn begin(&mut self) -> &mut Vec<u8> {
        self.to.clear();
        &mut self.to
    }

    /// The same vector, to be filled further.
    pub(crate) fn more(&mut self) -> &mut Vec<u8> {
        &mut self.to
    }

    /// Sorts the rows, by counting sort.
    pub(crate) fn arrange(&mut self) {
        const { assert!(PLACES <= 1 << u8::BITS) };
        debug_assert!(self.to.len() <= usize::from(u16::MAX));
        let mut next = [0u16; PLACES];
        self.to.iter().for_each(|&to| next[usize::from(to)] += 1);
        let mut rows = 0;
        next.iter_mut().for_each(|next| rows += std::mem::replace(next, rows));
        self.starts.clear();
        self.starts.extend_from_slice(&next);
        self.starts.push(rows);
        self.order.resize(self.to.len(), 0);
        for (row, &to) in self.to.iter().enumerate() {
            let at = &mut next[usize::from(to)];
            self.order[usize::from(*at)] = row as u16;
            *at += 1;
        }
    }

    /// The rows that go to a place.
    pub(crate) fn rows(&self, place: usize) -> &[u16] {
        &self.order[usize::from(self.starts[place])..usize::from(self.starts[place + 1])]
    }
}
