//! Reads tuples: fields of many rows, in a few single-step loops.
//!
//! 1. Find each row's tuple, once for all fields.
//! 2. Find the start and length of its field, for fields of varying length by the decoding tables.
//! 3. Load 8 or 16 bytes, cut them to that length and undo the frame of reference.
//! 4. Find which are NULL.
//!
//! Single-step loops let the processor wait for the memory of many rows at once.

use super::codes::FieldPlace;
use super::encode::MASKS;
use super::layout::{BODY_BYTES, FieldForm, IntegerFrame, TupleLayout};
use super::{Starts, Tuples};
use crate::exec::row_id::NO_ROW;
use entasis_vector::{Native, PhysicalType, Vector, bitmap};

/// Rows that are read at a time. This many tuples stay in the nearest cache, and their pages in the TLB,
/// until their last field is read.
pub(in crate::exec) const BATCH_ROWS: usize = 256;

impl Tuples {
    /// The bytes from a row's tuple to the end.
    #[inline(always)]
    fn tuple(&self, offset: usize) -> &[u8] {
        let start = match &self.starts {
            Starts::Every(length) => offset * *length as usize,
            Starts::Near { shift, bases, distances } => {
                bases[offset >> shift] as usize + usize::from(distances[offset])
            }
        };
        &self.bytes[start..]
    }
}

/// Up to [`BATCH_ROWS`] rows whose fields are read.
pub(in crate::exec) struct Batch<'a> {
    layout: &'a TupleLayout,
    segments: &'a [Option<Tuples>],
    rows: usize,
    /// From each row's tuple to the end of its segment.
    tuples: [&'a [u8]; BATCH_ROWS],
    /// The start of the last located field of varying length, from the tuple's start.
    at: [u16; BATCH_ROWS],
    /// Its length; 0 for NULL.
    length: [u8; BATCH_ROWS],
    /// Where the body of the next string starts.
    bodies: [u16; BATCH_ROWS],
    /// Which of the layout's strings is next; `None` if `bodies` are unknown.
    next_text: Option<usize>,
}

impl<'a> Batch<'a> {
    /// No rows yet, of segments that have tuples of this layout.
    pub(in crate::exec) fn new(layout: &'a TupleLayout, segments: &'a [Option<Tuples>]) -> Batch<'a> {
        Batch {
            layout,
            segments,
            rows: 0,
            tuples: [&[]; BATCH_ROWS],
            at: [0; BATCH_ROWS],
            length: [0; BATCH_ROWS],
            bodies: [0; BATCH_ROWS],
            next_text: None,
        }
    }

    /// Moves to up to [`BATCH_ROWS`] other rows. For [`NO_ROW`] an arbitrary row is read, the first of all.
    /// The segments of all rows must have tuples, and if there is a [`NO_ROW`], so must the first segment.
    pub(in crate::exec) fn begin(&mut self, rows: impl ExactSizeIterator<Item = u32>) {
        self.rows = rows.len();
        self.next_text = None;
        for (tuple, row) in self.tuples.iter_mut().zip(rows) {
            let row = if row == NO_ROW { 0 } else { row };
            let segment =
                self.segments[(row >> 16) as usize].as_ref().expect("only rows that are tuples are read");
            *tuple = segment.tuple((row & 0xffff) as usize);
        }
    }

    /// Writes a field of the rows to `out`, which has been begun as a flat vector of its type, from position
    /// `first`; with `validity`, also their validity.
    pub(in crate::exec) fn read(&mut self, field: usize, out: &mut Vector, first: usize, validity: bool) {
        let layout = self.layout;
        let field = &layout.fields[field];
        let width = field.physical.width();
        match field.form {
            FieldForm::Fixed { at, width: bytes, frame, .. } => {
                self.load(|_| (at, bytes), width, frame, out, first)
            }
            FieldForm::Plain { at, .. } => {
                self.load(|_| (at, width), width, IntegerFrame::From(0), out, first)
            }
            FieldForm::Short { code, frame } => {
                self.locate(code);
                self.load(self.located(), width, frame, out, first);
            }
            FieldForm::Double { code } => {
                self.locate(code);
                let values = &mut out.values_mut::<f64>()[first..first + self.rows];
                self.each_narrow(self.located(), |i, bits| {
                    // A NaN is stored as a double.
                    let float = f64::from(f32::from_bits(bits as u32));
                    values[i] = if self.length[i] == 4 { float } else { f64::from_bits(bits) };
                });
            }
            FieldForm::Text { code } => self.read_strings(code, out, first),
        }
        if !validity || !field.nullable {
            return;
        }
        let words = out.validity_mut(first + self.rows);
        match field.form {
            FieldForm::Fixed { at, width, null, .. } => {
                let null = null.expect("who may be NULL has a number for it");
                self.each_narrow(|_| (at, width), |i, number| bitmap::set(words, first + i, number != null));
            }
            FieldForm::Plain { code, .. } => {
                let code = layout.codes.code(code.expect("who may be NULL has a code"));
                let at = layout.codes_at + code.byte;
                let tuples = self.tuples[..self.rows].iter().enumerate();
                tuples.for_each(|(i, tuple)| bitmap::set(words, first + i, code.of(tuple[at]) != 0));
            }
            _ => (0..self.rows).for_each(|i| bitmap::set(words, first + i, self.length[i] != 0)),
        }
    }

    /// Locates the field that has this code.
    fn locate(&mut self, code: usize) {
        let (codes, fixed) = (&self.layout.codes, self.layout.fixed as u16);
        let places = codes.places(code);
        let codes_at = self.layout.codes_at;
        if codes.takes_both(code) {
            let shift = codes.first_bits();
            self.each_place(|tuple| (fixed, places[both(&tuple[codes_at..], shift)]));
            return;
        }
        let byte = codes.code(code).byte;
        let place = |tuple: &[u8]| places[usize::from(tuple[codes_at + byte])];
        match &codes.totals()[..byte] {
            [] => self.each_place(|tuple| (fixed, place(tuple))),
            earlier => self.each_place(|tuple| (fixed + sum(earlier, &tuple[codes_at..]), place(tuple))),
        }
    }

    /// Locates a field in each tuple: `of` yields the start of the fields of its byte of codes, and the
    /// place.
    #[inline(always)]
    fn each_place(&mut self, of: impl Fn(&[u8]) -> (u16, FieldPlace)) {
        let to = self.at.iter_mut().zip(&mut self.length);
        for (tuple, (at, length)) in self.tuples[..self.rows].iter().zip(to) {
            let (base, place) = of(tuple);
            *at = base + u16::from(place.offset);
            *length = place.length;
        }
    }

    /// The start and length of each row's last located field.
    fn located(&self) -> impl Fn(usize) -> (usize, usize) + '_ {
        |i| (usize::from(self.at[i]), usize::from(self.length[i]))
    }

    /// Calls `take` with the index and number of each row's field, of up to eight bytes.
    #[inline(always)]
    fn each_narrow(&self, at: impl Fn(usize) -> (usize, usize), mut take: impl FnMut(usize, u64)) {
        for (i, tuple) in self.tuples[..self.rows].iter().enumerate() {
            let (at, length) = at(i);
            let number = u64::from_le_bytes(tuple[at..at + 8].try_into().expect("eight bytes"));
            take(i, number & MASKS[length & 15] as u64);
        }
    }

    /// Like `each_narrow`, for up to sixteen bytes.
    #[inline(always)]
    fn each_wide(&self, at: impl Fn(usize) -> (usize, usize), mut take: impl FnMut(usize, u128)) {
        for (i, tuple) in self.tuples[..self.rows].iter().enumerate() {
            let (at, length) = at(i);
            let number = u128::from_le_bytes(tuple[at..at + 16].try_into().expect("sixteen bytes"));
            take(i, number & MASKS[length]);
        }
    }

    /// Loads numbers and undoes their frame of reference, giving values of `width` bytes.
    #[inline(always)]
    fn load(
        &self,
        at: impl Fn(usize) -> (usize, usize),
        width: usize,
        frame: IntegerFrame,
        out: &mut Vector,
        first: usize,
    ) {
        match width {
            1 => self.load_narrow(at, frame, &mut out.values_mut::<u8>()[first..], |v| v as u8),
            2 => self.load_narrow(at, frame, &mut out.values_mut::<u16>()[first..], |v| v as u16),
            4 => self.load_narrow(at, frame, &mut out.values_mut::<u32>()[first..], |v| v as u32),
            8 => self.load_narrow(at, frame, &mut out.values_mut::<u64>()[first..], |v| v),
            _ => {
                let values = &mut out.values_mut::<i128>()[first..first + self.rows];
                match frame {
                    IntegerFrame::From(min) => {
                        self.each_wide(at, |i, v| values[i] = (v as i128).wrapping_add(min))
                    }
                    IntegerFrame::ZigZag => {
                        self.each_wide(at, |i, v| values[i] = (v >> 1) as i128 ^ -((v & 1) as i128))
                    }
                }
            }
        }
    }

    #[inline(always)]
    fn load_narrow<T: Native>(
        &self,
        at: impl Fn(usize) -> (usize, usize),
        frame: IntegerFrame,
        out: &mut [T],
        cut: impl Fn(u64) -> T,
    ) {
        let out = &mut out[..self.rows];
        match frame {
            IntegerFrame::From(min) => self.each_narrow(at, |i, v| out[i] = cut(v.wrapping_add(min as u64))),
            IntegerFrame::ZigZag => {
                self.each_narrow(at, |i, v| out[i] = cut((v >> 1) ^ (v & 1).wrapping_neg()))
            }
        }
    }

    /// Reads strings: their bodies follow part 4 and the bodies of earlier strings.
    fn read_strings(&mut self, code: usize, out: &mut Vector, first: usize) {
        debug_assert_eq!(out.physical(), PhysicalType::Str);
        let views = &mut out.values_mut::<i128>()[first..first + self.rows];
        // The codes of this string and of those before it that have not been passed.
        let texts = self.layout.texts().enumerate();
        let wanted =
            self.layout.texts().position(|text| text == code).expect("a string has its place among strings");
        let next = match self.next_text {
            Some(next) if next <= wanted => next,
            _ => {
                self.end_of_fields();
                0
            }
        };
        for (i, text) in texts.skip(next).take(wanted + 1 - next) {
            self.locate(text);
            let mut bodies = std::mem::replace(&mut self.bodies, [0; BATCH_ROWS]);
            if i < wanted {
                self.each_narrow(self.located(), |i, length| bodies[i] += body_bytes(length));
            } else {
                self.each_narrow(self.located(), |i, length| {
                    let body = usize::from(bodies[i]);
                    let bytes = self.tuples[i][body..body + 16].try_into().expect("sixteen bytes");
                    let length_here = body_bytes(length);
                    let bits = u128::from_le_bytes(bytes) & MASKS[usize::from(length_here)];
                    views[i] = (bits << 32 | u128::from(length)) as i128;
                    bodies[i] += length_here;
                });
            }
            self.bodies = bodies;
        }
        self.next_text = Some(wanted + 1);
    }

    /// Sets `bodies` to the end of part 4.
    fn end_of_fields(&mut self) {
        let (codes, fixed) = (&self.layout.codes, self.layout.fixed as u16);
        let codes_at = self.layout.codes_at;
        let bodies = self.bodies.iter_mut().zip(&self.tuples[..self.rows]);
        if codes.is_universal() {
            let (totals, shift) = (&codes.totals()[0], codes.first_bits());
            bodies
                .for_each(|(body, tuple)| *body = fixed + u16::from(totals[both(&tuple[codes_at..], shift)]));
        } else {
            bodies.for_each(|(body, tuple)| *body = fixed + sum(codes.totals(), &tuple[codes_at..]));
        }
    }
}

/// Bytes of the body of a string of this length.
#[inline(always)]
fn body_bytes(length: u64) -> u16 {
    length.min(BODY_BYTES as u64) as u16
}

/// The index into a universal table.
#[inline(always)]
fn both(packed: &[u8], shift: u32) -> usize {
    usize::from(packed[0]) | usize::from(packed[1]) << shift
}

/// The lengths of all fields of earlier bytes of codes.
#[inline(always)]
fn sum(totals: &[Vec<u8>], packed: &[u8]) -> u16 {
    totals.iter().zip(packed).map(|(total, &byte)| u16::from(total[usize::from(byte)])).sum()
}
