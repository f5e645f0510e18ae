//! Frames: from bounds as a call writes them to the positions of rows.
//!
//! A frame is a stretch of positions within its row's partition, `start..end`, which may be empty, minus a
//! hole if some rows are excluded: its *pieces* are the stretches that are left, at most three, ascending.
//! Bounds in rows and in groups of peers are sums; bounds by value are searched among the keys
//! ([`super::range`]).

use super::operand::Operand;
use super::range::{RangeKeys, RangeSearch, RangeSpec};
use super::section::{Places, Section};
use crate::plan::{Exclude, FrameUnits, bad_offset};
use entasis_vector::{Error, Result, Value};
use std::ops::Range;

/// A frame over the columns of kept rows.
#[derive(Debug, Clone, PartialEq)]
pub struct FrameSpec {
    /// What the bounds count.
    pub units: FrameUnits,
    /// The first row.
    pub start: BoundSpec,
    /// The last row.
    pub end: BoundSpec,
    /// Rows between them that do not count.
    pub exclude: Exclude,
    /// The key whose differences are offsets, if they are by value.
    pub range: Option<RangeSpec>,
}

/// An end of a frame.
#[derive(Debug, Clone, PartialEq)]
pub enum BoundSpec {
    /// The first row of the partition.
    UnboundedPreceding,
    /// An offset before the current row.
    Preceding(Operand),
    /// The current row.
    CurrentRow,
    /// An offset after it.
    Following(Operand),
    /// The last row of the partition.
    UnboundedFollowing,
}

impl BoundSpec {
    fn has_offset(&self) -> bool {
        matches!(self, BoundSpec::Preceding(_) | BoundSpec::Following(_))
    }
}

impl FrameSpec {
    /// True if frames begin where their partitions do and have no holes: each is a part of the next one.
    pub fn is_running(&self) -> bool {
        self.start == BoundSpec::UnboundedPreceding && self.exclude == Exclude::NoOthers
    }

    /// The most rows that a frame has, if that is known.
    pub fn most_rows(&self) -> Option<usize> {
        let distance = |bound: &BoundSpec, forward: bool| match bound {
            BoundSpec::CurrentRow => Some(0),
            BoundSpec::Preceding(Operand::Constant(Value::Integer(n))) => Some(if forward { -n } else { *n }),
            BoundSpec::Following(Operand::Constant(Value::Integer(n))) => Some(if forward { *n } else { -n }),
            _ => None,
        };
        let rows = distance(&self.start, false)?.saturating_add(distance(&self.end, true)?).saturating_add(1);
        usize::try_from(rows.max(0)).ok().filter(|_| self.units == FrameUnits::Rows)
    }

    /// True if some bound, or some hole, depends on peers.
    pub fn needs_peers(&self) -> bool {
        let bounds = [&self.start, &self.end];
        let by_peers = |bound: &&BoundSpec| {
            matches!(bound, BoundSpec::CurrentRow) && self.units != FrameUnits::Rows
                || bound.has_offset() && self.units == FrameUnits::Groups
        };
        bounds.iter().any(by_peers) || matches!(self.exclude, Exclude::Group | Exclude::Ties)
    }

    /// True if a partition has one frame.
    pub fn is_fixed(&self) -> bool {
        let bounds = (&self.start, &self.end);
        let is_whole = matches!(bounds, (BoundSpec::UnboundedPreceding, BoundSpec::UnboundedFollowing));
        is_whole && self.exclude == Exclude::NoOthers
    }

    /// True if bounds are by value.
    pub fn is_by_value(&self) -> bool {
        self.units == FrameUnits::Range && (self.start.has_offset() || self.end.has_offset())
    }
}

/// The frames of some rows.
#[derive(Default)]
pub struct Frames {
    /// Where each frame begins.
    pub starts: Vec<u32>,
    /// Where it ends; not before it begins.
    pub ends: Vec<u32>,
    /// The rows between that do not count: the holes of the frames, and whether the current row counts in
    /// spite of its hole.
    holes: Option<Holes>,
    offsets: Vec<Option<i128>>,
    searched: RangeSearch,
}

#[derive(Default)]
struct Holes {
    starts: Vec<u32>,
    ends: Vec<u32>,
    /// The position of the first row, if the current row is in its frame nevertheless.
    kept_from: Option<u32>,
}

/// The stretches of a frame that count.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Pieces {
    pieces: [(u32, u32); 3],
    count: usize,
}

impl Pieces {
    fn one(start: u32, end: u32) -> Pieces {
        Pieces { pieces: [(start, end), (0, 0), (0, 0)], count: usize::from(start < end) }
    }

    fn push(&mut self, start: u32, end: u32) {
        if start < end {
            self.pieces[self.count] = (start, end);
            self.count += 1;
        }
    }

    /// The stretches, ascending, none of them empty.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = Range<usize>> + '_ {
        self.pieces[..self.count].iter().map(|&(start, end)| start as usize..end as usize)
    }
}

impl Frames {
    /// Finds the frames of the rows at `places`. `keys` are present if bounds are by value.
    ///
    /// # Errors
    /// Input, if an offset is NULL or negative.
    pub fn find(
        &mut self,
        spec: &FrameSpec,
        section: &Section,
        places: &Places,
        keys: Option<&RangeKeys>,
    ) -> Result<()> {
        let mut starts = std::mem::take(&mut self.starts);
        let mut ends = std::mem::take(&mut self.ends);
        self.bound(spec, &spec.start, Side::Start, section, places, keys, &mut starts)?;
        self.bound(spec, &spec.end, Side::End, section, places, keys, &mut ends)?;
        let partitions = places.partition_start.iter().zip(&places.partition_end);
        for ((start, end), (&first, &after)) in starts.iter_mut().zip(&mut ends).zip(partitions) {
            *start = (*start).clamp(first, after);
            *end = (*end).clamp(*start, after);
        }
        (self.starts, self.ends) = (starts, ends);
        let first = places.rows.start as u32;
        let positions = || places.rows.clone().map(|position| position as u32);
        self.holes = match spec.exclude {
            Exclude::NoOthers => None,
            Exclude::CurrentRow => {
                let (starts, ends) =
                    (positions().collect(), positions().map(|position| position + 1).collect());
                Some(Holes { starts, ends, kept_from: None })
            }
            Exclude::Group | Exclude::Ties => Some(Holes {
                starts: places.peers_start.clone(),
                ends: places.peers_end.clone(),
                kept_from: (spec.exclude == Exclude::Ties).then_some(first),
            }),
        };
        Ok(())
    }

    /// True if frames have no holes.
    pub fn are_whole(&self) -> bool {
        self.holes.is_none()
    }

    /// The pieces of the frame of row `row`, counted from the first row.
    #[inline]
    pub fn pieces(&self, row: usize) -> Pieces {
        let (start, end) = (self.starts[row], self.ends[row]);
        let Some(holes) = &self.holes else { return Pieces::one(start, end) };
        let (from, to) = (holes.starts[row], holes.ends[row]);
        let mut pieces = Pieces::one(start, end.min(from));
        if let Some(first) = holes.kept_from {
            let own = first + row as u32;
            pieces.push(own.max(start), (own + 1).min(end));
        }
        pieces.push(start.max(to), end);
        pieces
    }

    /// The positions of one bound.
    fn bound(
        &mut self,
        spec: &FrameSpec,
        bound: &BoundSpec,
        side: Side,
        section: &Section,
        places: &Places,
        keys: Option<&RangeKeys>,
        out: &mut Vec<u32>,
    ) -> Result<()> {
        out.clear();
        let (operand, forward) = match bound {
            BoundSpec::UnboundedPreceding => {
                out.extend_from_slice(&places.partition_start);
                return Ok(());
            }
            BoundSpec::UnboundedFollowing => {
                out.extend_from_slice(&places.partition_end);
                return Ok(());
            }
            BoundSpec::CurrentRow => {
                let rows = places.rows.clone();
                match (spec.units, side) {
                    (FrameUnits::Rows, Side::Start) => out.extend(rows.map(|position| position as u32)),
                    (FrameUnits::Rows, Side::End) => out.extend(rows.map(|position| position as u32 + 1)),
                    (_, Side::Start) => out.extend_from_slice(&places.peers_start),
                    (_, Side::End) => out.extend_from_slice(&places.peers_end),
                }
                return Ok(());
            }
            BoundSpec::Preceding(operand) => (operand, false),
            BoundSpec::Following(operand) => (operand, true),
        };
        let is_end = side == Side::End;
        match spec.units {
            FrameUnits::Range => {
                let (Some(range), Some(keys)) = (&spec.range, keys) else {
                    return Err(Error::internal("a frame by value without a key"));
                };
                keys.find(range, operand, forward, is_end, section, places, &mut self.searched, out)
            }
            FrameUnits::Rows => self.rows_away(operand, forward, is_end, section, places, out),
            FrameUnits::Groups => self.groups_away(operand, forward, is_end, section, places, out),
        }
    }

    /// The positions that are an offset of rows away, or those after them.
    fn rows_away(
        &mut self,
        operand: &Operand,
        forward: bool,
        is_after: bool,
        section: &Section,
        places: &Places,
        out: &mut Vec<u32>,
    ) -> Result<()> {
        let rows = places.rows.clone();
        let after = i64::from(is_after);
        let most = section.rows() as i64;
        if let Operand::Constant(Value::Integer(offset @ 0..)) = operand {
            // PERF: most frames are like this.
            let offset = *offset.min(&u32::MAX.into()) as i64;
            let moved = if forward { offset } else { -offset } + after;
            match section.gaps() {
                None => out.extend(rows.map(|at| (at as i64 + moved).clamp(0, most) as u32)),
                Some(_) => {
                    let first = section.row(rows.start as u32);
                    let moved = (first..first + rows.len() as i64).map(|row| (row + moved).clamp(0, most));
                    out.extend(moved.map(|row| section.position(row)));
                }
            }
            return Ok(());
        }
        let distances = self.distances(operand, forward, section, places)?;
        let bounds = rows.zip(distances).map(|(at, distance)| section.row(at as u32) + distance + after);
        out.extend(bounds.map(|row| section.position(row.clamp(0, most))));
        Ok(())
    }

    /// The positions where groups of peers begin that are an offset of groups away, or those after them.
    fn groups_away(
        &mut self,
        operand: &Operand,
        forward: bool,
        is_after: bool,
        section: &Section,
        places: &Places,
        out: &mut Vec<u32>,
    ) -> Result<()> {
        for (row, distance) in self.distances(operand, forward, section, places)?.enumerate() {
            let ends = [places.first_group[row], places.end_group[row]].map(|at| section.number_of_group(at));
            let own = section.number_of_group(places.group[row]);
            let group = own + distance + i64::from(is_after);
            out.push(section.start_of_group(group.clamp(ends[0], ends[1])));
        }
        Ok(())
    }

    /// The offsets of the rows, negative if they lead back.
    fn distances(
        &mut self,
        operand: &Operand,
        forward: bool,
        section: &Section,
        places: &Places,
    ) -> Result<impl Iterator<Item = i64>> {
        operand.integers(section, places.rows.clone(), &mut self.offsets)?;
        if self.offsets.iter().any(|offset| offset.is_none_or(|offset| offset < 0)) {
            return Err(bad_offset());
        }
        // No partition has more rows.
        let offsets = self.offsets.iter().map(|offset| offset.unwrap_or(0).min(u32::MAX.into()) as i64);
        Ok(offsets.map(move |offset| if forward { offset } else { -offset }))
    }
}

/// Which end of a frame.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Start,
    End,
}
