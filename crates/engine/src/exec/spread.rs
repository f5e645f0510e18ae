//! Rows of a chunk on their way to partitions: in the order of where they go.

/// Places that a row may go to: 64 partitions, and two for rows that go to none.
pub(crate) const PLACES: usize = 66;

/// See the module; those of one place in their own order.
// PERF: each place then takes its rows column by column, some 30 values in one run, where a loop over rows would write to 64
// places in turn.
#[derive(Default)]
pub(crate) struct Spread {
    to: Vec<u8>,
    order: Vec<u16>,
    /// Where each place's rows begin in the order; behind the last place, where they end.
    starts: Vec<u16>,
}

impl Spread {
    /// Where each row of the next chunk goes, a place below [`PLACES`]; to be filled before [`Spread::arrange`].
    pub(crate) fn begin(&mut self) -> &mut Vec<u8> {
        self.to.clear();
        &mut self.to
    }

    /// Puts the rows in order, by counting: how many go where, then which.
    pub(crate) fn arrange(&mut self) {
        let mut next = [0u16; PLACES + 1];
        self.to.iter().for_each(|&to| next[usize::from(to) + 1] += 1);
        (1..next.len()).for_each(|i| next[i] += next[i - 1]);
        self.starts.clear();
        self.starts.extend_from_slice(&next);
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
