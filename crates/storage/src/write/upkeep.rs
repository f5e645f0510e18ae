//! What upkeep does to a row group. New slices are prepared aside, from a version that is held, and replace
//! those that they were made of, if these have not changed. See [`crate::table::Table::upkeep`].
//!
//! A slice that was written since the version was taken is another node, because taking the version gave the
//! branch a new stamp. So a window is unchanged if and only if its slices are the same nodes and its
//! partitions have the same ends.

use super::demand::Window;
use super::row_check::Kept;
use super::spread::{Laid, links, plan};
use super::{Writer, edit_group};
use crate::builder::{Effort, GroupBuilder};
use crate::definition::{Layout, NEVER};
use crate::node::Link;
use crate::sync::Ordering;
use crate::tree::{Decision, EncodedSlice, Piece, Root, RowGroup, Shape, Slice, Standing, Upkept, zones_of};
use entasis_vector::Result;
use std::ops::Range;

/// The number of slices that are spread together.
const WINDOW: usize = 8;
/// A partition is low on ghosts if they are less than one in so many slots, or less than half of what the
/// layout wants.
const LOW: usize = 64;
/// When slots are spread again, one in so many is a ghost, or more if the layout wants that.
const GHOST_EVERY: usize = 8;
/// A window is sparse if at most so many eighths of its slots are rows.
const SPARSE: usize = 5;

/// A row group waits at most so many times as long for its next rest, as a power of two.
const MOST_WAITS: u8 = 6;

/// Slices that were encoded again, by their old places.
pub(crate) struct Encoded {
    slices: Vec<(usize, EncodedSlice)>,
    dictionary_bytes: usize,
    /// They were encoded for reading.
    are_settled: bool,
}

impl Encoded {
    pub(crate) fn len(&self) -> usize {
        self.slices.len()
    }
}

impl Shape {
    /// True if row groups are encoded for reading once they have rested for long enough.
    pub(crate) fn settles(&self) -> bool {
        self.key.is_some() && self.options.rest != NEVER
    }

    /// True if a row group is to be encoded for reading, once it has rested for long enough.
    pub(crate) fn is_unsettled(&self, node: &RowGroup) -> bool {
        self.settles() && !node.wear.is_settled
    }

    /// True if a row group has rested for long. The wait becomes longer each time, so that what is written
    /// again and again is not encoded again and again.
    pub(crate) fn has_rested(&self, node: &RowGroup) -> bool {
        self.settles() && u64::from(node.wear.looks.load(Ordering::Relaxed)) > self.wait(node)
    }

    /// Whether the next round of upkeep is to do something about a row group, and why not. `looks` is how
    /// often upkeep has looked since it was last written.
    pub(crate) fn standing(&self, node: &RowGroup, looks: u32) -> Standing {
        let is_worn = node.wear.is_hot || self.has_too_many_ghosts(node);
        let is_unsettled = self.is_unsettled(node);
        let (rounds, of) = (u64::from(looks) + 1, self.wait(node));
        if looks > 0 && (is_worn || (is_unsettled && rounds > of)) {
            Standing::Due
        } else if is_worn {
            Standing::Written
        } else if is_unsettled {
            Standing::Waits { rounds, of }
        } else {
            Standing::Idle
        }
    }

    /// A row group has rested for long after more rounds than this.
    fn wait(&self, node: &RowGroup) -> u64 {
        u64::from(self.options.rest) << node.wear.settled.min(MOST_WAITS)
    }

    /// The windows of a row group that rests, has not been encoded for reading, and has more ghosts than the
    /// table's share: few and large ones, since each ends with a part of a slice.
    pub(crate) fn windows_at_rest(&self, node: &RowGroup, most: usize) -> Vec<Window> {
        let (slices, layout) = (node.slices.len(), self.options.layout);
        let parts = slices.div_ceil(most.max(WINDOW));
        let is_loose = slices > self.needed_at_rest(node) + parts;
        if !self.is_unsettled(node) || matches!(layout, Layout::Equi | Layout::Casper) || !is_loose {
            return Vec::new();
        }
        let (mut windows, mut start) = (Vec::new(), 0);
        while start < slices {
            let old = start..self.window_end(node, start, slices.div_ceil(parts));
            start = old.end;
            let rows: usize = node.slices[old.clone()].iter().map(|slice| slice.rows()).sum();
            let slices = rows.div_ceil(self.options.filled_slots(node.block_slots)).max(1);
            if slices < old.len() {
                windows.push(Window::even(old, slices, Upkept::Together));
            }
        }
        windows
    }

    /// The windows of a row group that are to be laid anew: as the workload wants it, if operations were
    /// counted ([`super::demand`]), with the decision if there is a new one.
    pub(crate) fn windows(&self, node: &RowGroup) -> (Vec<Window>, Option<Decision>) {
        self.by_demand(node).unwrap_or_else(|| (self.worn(node), None))
    }

    /// The windows of a row group that have been written and are low on ghosts, or that are sparse. None in a
    /// layout that has its ghosts elsewhere.
    fn worn(&self, node: &RowGroup) -> Vec<Window> {
        let mut windows = Vec::new();
        let mut start = 0;
        while start < node.slices.len() {
            let end = self.window_end(node, start, WINDOW);
            windows.extend(self.window(node, start..end));
            start = end;
        }
        windows
    }

    /// The end of a window that begins with a slice and has about `most`, such that no partition crosses it.
    fn window_end(&self, node: &RowGroup, start: usize, most: usize) -> usize {
        let (width, last) = (node.block_slots, node.slices.len());
        let is_border = |slice: &usize| {
            let slot = (slice * width) as u32;
            let next = node.partitions.partition_point(|partition| partition.start < slot);
            *slice == last
                || node.partitions.is_empty()
                || node.partitions.get(next).is_some_and(|p| p.start == slot)
        };
        let within = (start + 1..=last.min(start + most)).rev().find(is_border);
        within.unwrap_or_else(|| (start + 1..=last).find(is_border).expect("the end is a border"))
    }

    fn window(&self, node: &RowGroup, old: Range<usize>) -> Option<Window> {
        let (options, width) = (&self.options, node.block_slots);
        if options.layout == Layout::Equi {
            return None;
        }
        let is_hot = node.slices[old.clone()].iter().any(|slice| slice.is_hot());
        let rows: usize = node.slices[old.clone()].iter().map(|slice| slice.rows()).sum();
        let filled = match self.key {
            None => width,
            Some(_) => options.filled_slots(width).min(width - width / GHOST_EVERY),
        };
        let slices = rows.div_ceil(filled).max(1);
        let grows = slices > old.len() && node.slots() + (slices - old.len()) * width > options.group_slots;
        if grows && node.middle().is_none() {
            // Splitting the row group is left to a writer.
            return None;
        }
        // Short slices of row groups that will rest take little memory until then.
        let memory: usize = node.slices[old.clone()].iter().map(|slice| self.memory_of(slice, width)).sum();
        let is_sparse = rows * 8 <= memory * SPARSE && slices < old.len();
        let is_low = || {
            let inside = |slot: u32| old.contains(&(slot as usize / width));
            let partitions = node.partitions.iter().filter(|partition| inside(partition.start));
            let low =
                |slots: usize| ((slots as f64 * options.ghost) as usize / 2).clamp(1, (slots / LOW).max(1));
            let least = partitions.clone().map(|partition| partition.ghosts()).min();
            let is_low =
                partitions.clone().any(|partition| partition.ghosts() < low(partition.slots().len()));
            let after = plan(rows, (slices, &[]), self)
                .into_iter()
                .map(|(rows, slots)| slots.len() - rows.len())
                .min();
            is_low && after > least
        };
        let why = if is_sparse { Upkept::Sparse } else { Upkept::LowOnGhosts };
        (is_sparse || (self.key.is_some() && is_hot && is_low())).then(|| Window::even(old, slices, why))
    }

    /// Slots of a slice that count as memory for rows, when it is asked whether too many are empty.
    fn memory_of(&self, slice: &Slice, width: usize) -> usize {
        let is_spared = self.settles() && slice.rows() > 0;
        if is_spared { slice.memory_slots().min(width) } else { width }
    }

    /// The rows of a window, laid out anew.
    pub(crate) fn lay_window(&self, node: &RowGroup, window: &Window) -> Laid {
        self.relay(node, &window.old, window.slices, &window.wanted)
    }

    /// The slices of a row group that have been written, or whose rows were laid out, encoded again with all
    /// rows in their places. If they share dictionaries and many have been written, all slices. With `rests`,
    /// for reading: all slices that have not been encoded so; otherwise these are left as they are, since
    /// most of their blocks have not changed.
    ///
    /// # Errors
    /// Resource, if 1024 adjacent strings exceed 4 GiB.
    pub(crate) fn encode_written(&self, node: &RowGroup, rests: bool) -> Result<Encoded> {
        let (width, columns) = (node.block_slots, self.schema.len());
        let is_due = |number: &usize| {
            let slice = &node.slices[*number];
            match rests {
                true => slice.is_hot() || !slice.is_settled(),
                false => !slice.is_settled() && (slice.is_hot() || self.is_loose(slice)),
            }
        };
        let mut chosen: Vec<usize> = (0..node.slices.len()).filter(is_due).collect();
        let has_strings =
            self.schema.iter().any(|field| field.ty.physical() == entasis_vector::PhysicalType::Str);
        if has_strings && chosen.len() * 4 >= node.slices.len() {
            let may = |number: &usize| rests || !node.slices[*number].is_settled();
            chosen = (0..node.slices.len()).filter(may).collect();
        }
        let (empty, chosen): (Vec<usize>, Vec<usize>) =
            chosen.into_iter().partition(|&n| node.slices[n].rows() == 0);
        let mut slices: Vec<(usize, EncodedSlice)> =
            empty.into_iter().map(|number| (number, EncodedSlice::empty(columns))).collect();
        // A short slice stays one: each is encoded by itself, without memory for slots that no row has had.
        let (short, whole): (Vec<usize>, Vec<usize>) =
            chosen.into_iter().partition(|&n| self.key.is_some() && node.slices[n].is_short(width));
        let mut dictionary_bytes = 0;
        let parts = [(&whole[..], width)].into_iter().chain(short.chunks(1).map(|one| (one, 0)));
        for (chosen, capacity) in parts.filter(|(chosen, _)| !chosen.is_empty()) {
            let capacity = if self.key.is_some() { capacity } else { 0 };
            let piece = self.encode_slices(node, chosen, capacity, rests)?;
            dictionary_bytes += piece.dictionary_bytes();
            slices.extend(chosen.iter().zip(piece.slices).map(|(&number, slice)| {
                let live = *node.slices[number].live();
                let mut blocks = slice.blocks;
                for block in &mut blocks {
                    let nulls = live
                        .iter()
                        .enumerate()
                        .map(|(word, live)| (live & !block.valid_word(word)).count_ones());
                    block.zone.nulls = nulls.sum();
                    // No ghost slot of a block is written while the block is known to ascend.
                    block.ascending &= self.key.is_none();
                }
                (number, EncodedSlice::of(live, blocks))
            }));
        }
        Ok(Encoded { slices, dictionary_bytes, are_settled: rests })
    }

    /// Some slices of a row group, encoded again with all rows in their places; with memory for `capacity`
    /// slots, or up to the last row if that is more.
    fn encode_slices(
        &self,
        node: &RowGroup,
        chosen: &[usize],
        capacity: usize,
        rests: bool,
    ) -> Result<Piece> {
        let effort = Effort {
            sketch: false,
            block_rows: node.block_slots,
            capacity,
            group_rows: self.options.group_slots,
        };
        let mut builder =
            if rests { GroupBuilder::at_rest(self, effort) } else { GroupBuilder::new(self, effort) };
        let positions: Vec<Vec<u16>> =
            chosen.iter().map(|&number| self.filled(node, number, capacity)).collect();
        builder.append_slices(node, chosen.iter().copied().zip(&positions), &self.schema)?;
        Ok(builder.finish())
    }

    /// For each slot of a slice, the nearest live slot before it, or else the first live one: dead slots are
    /// filled with these values, so that they widen no bounds (texts without a dictionary are not repeated).
    /// Slots beyond the last row get no memory in the last slice of a row group without a layout key, and in
    /// a slice that is to have memory for less than all slots.
    fn filled(&self, node: &RowGroup, number: usize, capacity: usize) -> Vec<u16> {
        let slice = &*node.slices[number];
        let is_last = match self.key {
            None => number + 1 == node.slices.len(),
            Some(_) => capacity < node.block_slots,
        };
        let live = |slot: &usize| slice.is_live(*slot);
        let mut last = (0..node.block_slots).find(live).expect("the slice has rows") as u16;
        let end = if is_last {
            (0..node.block_slots).rfind(live).map_or(0, |slot| slot + 1)
        } else {
            node.block_slots
        };
        (0..end)
            .map(|slot| {
                last = if slice.is_live(slot) { slot as u16 } else { last };
                last
            })
            .collect()
    }
}

/// True if there are row groups without rows, or small neighbours, for [`Writer::join_small`].
pub(crate) fn has_small(root: &Root, shape: &Shape) -> bool {
    let full = shape.options.group_slots / shape.options.block_slots;
    let groups = &root.groups;
    groups.windows(2).any(|pair| {
        pair.iter().any(|group| group.rows == 0) || pair[0].blocks() + pair[1].blocks() <= full / 2
    })
}

impl Writer<'_> {
    /// Where a slice is now: its row group and its index there. `near` is where it was.
    fn place_of_slice(&self, slice: Link<Slice>, near: (usize, usize)) -> Option<(usize, usize)> {
        let groups = &self.branch.root.groups;
        let is_there =
            groups.get(near.0).is_some_and(|node| node.slices.get(near.1).is_some_and(|s| s.is(slice)));
        if is_there {
            return Some(near);
        }
        let near = near.0.min(groups.len());
        (near..groups.len()).chain((0..near).rev()).find_map(|group| {
            let at = groups[group].slices.iter().position(|other| other.is(slice))?;
            Some((group, at))
        })
    }

    /// Replaces the slices of row group `group`, which was `old`, by a window that was laid out again. False
    /// if they have changed since.
    pub(crate) fn put_window(&mut self, group: usize, old: &RowGroup, window: &Window, laid: Laid) -> bool {
        let (width, count) = (old.block_slots, window.old.len());
        let slices = &old.slices[window.old.clone()];
        let Some((group, first)) = self.place_of_slice(slices[0], (group, window.old.start)) else {
            return false;
        };
        let node = self.branch.root.groups[group];
        let now = first..first + count;
        let same = |(a, b): (&Link<Slice>, &Link<Slice>)| a.is(*b);
        let is_same = node.slices.get(now.clone()).is_some_and(|now| now.iter().zip(slices).all(same));
        if !is_same || !same_partitions(old, &window.old, &node, &now) {
            return false;
        }
        if node.slots() + window.slices * width > self.shape.options.group_slots + count * width {
            let before = node.slices.len();
            self.split_at_border(group);
            // Each half has room, unless there was no border.
            let is_split = self.branch.root.groups[group].slices.len() < before;
            return is_split && self.put_window(group, old, window, laid);
        }
        let mut laid = laid;
        if let Some(fence) = laid.fences.first_mut().filter(|_| !node.partitions.is_empty()) {
            let slot = (now.start * width) as u32;
            *fence = node.fences.get(node.partitions.partition_point(|partition| partition.start < slot));
        }
        self.put(group, now, laid);
        edit_group(self.branch, group).0.wear.upkept = Some(window.why);
        true
    }

    /// Replaces slices of row group `group`, at most `most` of them, by those that were encoded again, unless
    /// they have been written since. Returns how many were replaced.
    pub(crate) fn put_encoded(
        &mut self,
        group: usize,
        old: &RowGroup,
        encoded: &mut Encoded,
        most: usize,
    ) -> usize {
        let mut group = group;
        let mut put = 0;
        let from = encoded.slices.len().saturating_sub(most);
        for (number, slice) in encoded.slices.drain(from..) {
            let Some((now, at)) = self.place_of_slice(old.slices[number], (group, number)) else { continue };
            group = now;
            let (node, edit) = edit_group(self.branch, group);
            edit.count(std::mem::take(&mut encoded.dictionary_bytes) as isize);
            let mut new = links(vec![slice], self.shape, edit);
            if encoded.are_settled {
                new[0].edit(edit).settle();
            }
            Kept::of(&node.slices[at..=at], self.shape).assert_same_places(&new, self.shape);
            let old = std::mem::replace(&mut node.slices[at], new[0]);
            edit.retire_whole_slice(old);
            node.wear.upkept = Some(if encoded.are_settled { Upkept::ForReading } else { Upkept::Encoded });
            put += 1;
        }
        if encoded.slices.is_empty() {
            self.cool(group, encoded.are_settled);
        }
        put
    }

    /// Updates a row group by its slices: exact bounds, and whether any has been written, or all were encoded
    /// for reading.
    fn cool(&mut self, group: usize, rests: bool) {
        let columns = self.shape.schema.len();
        if group < self.branch.root.groups.len() {
            let (node, edit) = edit_group(self.branch, group);
            node.zones = zones_of(&node.slices, columns);
            // Slices that were encoded for reading wait until the row group has rested.
            node.wear.is_hot = node.slices.iter().any(|slice| slice.is_hot() && !slice.is_settled());
            node.wear.is_settled = node.slices.iter().all(|slice| slice.is_settled() && !slice.is_hot());
            if rests && node.wear.is_settled {
                node.wear.settled = node.wear.settled.saturating_add(1);
            }
            if self.shape.key.is_none() {
                node.digest(&self.shape.schema, edit);
            }
        }
    }

    /// Drops row groups without rows, and joins small neighbours.
    pub(crate) fn join_small(&mut self) {
        for group in (0..self.branch.root.groups.len()).rev() {
            let groups = &self.branch.root.groups;
            if groups[group].rows == 0 && groups.len() > 1 {
                self.drop_group(group);
            } else {
                self.join_around(group);
            }
        }
    }
}

/// True if the partitions over two windows end at the same places.
fn same_partitions(a: &RowGroup, in_a: &Range<usize>, b: &RowGroup, in_b: &Range<usize>) -> bool {
    let of = |node: &RowGroup, window: &Range<usize>| {
        let slots = (window.start * node.block_slots) as u32..(window.end * node.block_slots) as u32;
        let first = node.partitions.partition_point(|partition| partition.start < slots.start);
        let last = node.partitions.partition_point(|partition| partition.start < slots.end);
        let ends = node.partitions[first..last].iter().map(|p| (p.start - slots.start, p.end - slots.start));
        ends.collect::<Vec<_>>()
    };
    let (a, b) = (of(a, in_a), of(b, in_b));
    let covers = |ends: &[(u32, u32)]| ends.first().is_none_or(|(start, _)| *start == 0);
    a == b && covers(&b)
}
