//! Reading tuples: one field of many rows, in a few loops of one step each.
//!
//! 1. Where each tuple starts.
//! 2. Where its field starts and how long it is: for fields of varying length by the decoding tables.
//! 3. A load of 8 or 16 bytes, cut to that length and taken out of its frame.
//! 4. Which are NULL.
//!
//! Loops of one step let the processor wait for many rows' memory at once.

use super::codes::Place;
use super::encode::MASKS;
use super::layout::{BODY_BYTES, Form, Frame, Layout};
use super::{Starts, Tuples};
use entasis_vector::{CHUNK_ROWS, Native, PhysicalType, Vector, bitmap};

/// The row that stands for none.
const NO_ROW: u32 = crate::exec::materialized::Materialized::NO_ROW;

/// Writes field `field` of `rows` to `out`, which has been begun as a flat vector of its type, from position `first`, and
/// their validity if `validity` says that it is wanted. Where a row id is the one that stands for none, something
/// arbitrary is written. The segments of all other rows have tuples, and so has the first segment.
pub(in crate::exec) fn decode(
    layout: &Layout,
    field: usize,
    segments: &[Option<Tuples>],
    rows: &[u32],
    out: &mut Vector,
    first: usize,
    validity: bool,
) {
    let mut batch = Batch {
        layout,
        segments,
        rows: [0; CHUNK_ROWS],
        count: 0,
        starts: [0; CHUNK_ROWS],
        at: [0; CHUNK_ROWS],
        length: [0; CHUNK_ROWS],
    };
    for (i, rows) in rows.chunks(CHUNK_ROWS).enumerate() {
        batch.begin(rows);
        batch.read(field, out, first + i * CHUNK_ROWS, validity);
    }
}

impl Tuples {
    #[inline(always)]
    fn start(&self, offset: usize) -> u32 {
        match &self.starts {
            Starts::Every(length) => offset as u32 * length,
            Starts::Near { shift, bases, distances } => bases[offset >> shift] + u32::from(distances[offset]),
        }
    }
}

/// Up to a chunk of rows on their way out.
struct Batch<'a> {
    layout: &'a Layout,
    segments: &'a [Option<Tuples>],
    rows: [u32; CHUNK_ROWS],
    count: usize,
    /// Where each row's tuple starts in its segment.
    starts: [u32; CHUNK_ROWS],
    /// Where each row's field starts.
    at: [u32; CHUNK_ROWS],
    /// And how long it is; 0 for NULL in what has a code.
    length: [u8; CHUNK_ROWS],
}

impl Batch<'_> {
    fn begin(&mut self, rows: &[u32]) {
        self.count = rows.len();
        for (own, &row) in self.rows.iter_mut().zip(rows) {
            *own = if row == NO_ROW { 0 } else { row };
        }
        for (start, &row) in self.starts.iter_mut().zip(&self.rows[..rows.len()]) {
            *start = tuples(self.segments, row).start((row & 0xffff) as usize);
        }
    }

    fn read(&mut self, field: usize, out: &mut Vector, first: usize, validity: bool) {
        let layout = self.layout;
        let field = &layout.fields[field];
        let width = field.physical.width();
        // What tells NULL: a value of its own, or a length or code of 0.
        let mut null = None;
        match field.form {
            Form::Fixed { at, width: bytes, frame, null: of_null } => {
                self.locate_fixed(at, bytes);
                null = of_null;
                self.load(width, frame, out, first);
            }
            Form::Plain { at, .. } => {
                self.locate_fixed(at, width);
                self.load(width, Frame::From(0), out, first);
            }
            Form::Short { code, frame } => {
                self.locate(code);
                self.load(width, frame, out, first);
            }
            Form::Double { code } => {
                self.locate(code);
                let values = &mut out.values_mut::<f64>()[first..first + self.count];
                self.each_narrow(|i, bits, length| {
                    // A float that is NaN is held as a double.
                    let float = f64::from(f32::from_bits(bits as u32));
                    values[i] = if length == 4 { float } else { f64::from_bits(bits) };
                });
            }
            Form::Text { code } => self.read_strings(code, out, first),
        }
        if !validity || !field.nullable {
            return;
        }
        let words = out.validity_mut(first + self.count);
        match (field.form, null) {
            (_, Some(null)) => self.each_narrow(|i, number, _| bitmap::set(words, first + i, number != null)),
            (Form::Plain { code: Some(code), .. }, _) => {
                let code = layout.codes.code(code);
                let at = layout.codes_at + code.byte;
                for (i, &row) in self.rows[..self.count].iter().enumerate() {
                    let byte = tuples(self.segments, row).bytes[self.starts[i] as usize + at];
                    bitmap::set(words, first + i, code.of(byte) != 0);
                }
            }
            _ => (0..self.count).for_each(|i| bitmap::set(words, first + i, self.length[i] != 0)),
        }
    }

    /// The field is at the same place in all tuples.
    fn locate_fixed(&mut self, at: usize, bytes: usize) {
        self.at.iter_mut().zip(&self.starts[..self.count]).for_each(|(to, &start)| *to = start + at as u32);
        self.length[..self.count].fill(bytes as u8);
    }

    /// The field that has this code, by the decoding tables.
    fn locate(&mut self, code: usize) {
        let (codes, fixed) = (&self.layout.codes, self.layout.fixed as u32);
        let places = codes.places(code);
        let codes_at = self.layout.codes_at;
        if codes.is_universal() {
            let shift = codes.first_bits();
            self.each_place(|tuple| {
                let index = usize::from(tuple[codes_at]) | usize::from(tuple[codes_at + 1]) << shift;
                (fixed, places[index])
            });
            return;
        }
        let byte = codes.code(code).byte;
        let place = |tuple: &[u8]| places[usize::from(tuple[codes_at + byte])];
        match &codes.totals()[..byte] {
            [] => self.each_place(|tuple| (fixed, place(tuple))),
            earlier => self.each_place(|tuple| (fixed + sum(earlier, &tuple[codes_at..]), place(tuple))),
        }
    }

    /// Calls `of` with each tuple for the start of part 4's fields of its byte, and the place.
    #[inline(always)]
    fn each_place(&mut self, of: impl Fn(&[u8]) -> (u32, Place)) {
        let to = self.at.iter_mut().zip(&mut self.length);
        for ((&row, &start), (at, length)) in self.rows[..self.count].iter().zip(&self.starts).zip(to) {
            let (base, place) = of(&tuples(self.segments, row).bytes[start as usize..]);
            *at = start + base + u32::from(place.offset);
            *length = place.length;
        }
    }

    /// Calls `take` with index, number and length of each located field of up to eight bytes.
    #[inline(always)]
    fn each_narrow(&self, mut take: impl FnMut(usize, u64, u8)) {
        for i in 0..self.count {
            let (at, length) = (self.at[i] as usize, self.length[i]);
            let bytes = &tuples(self.segments, self.rows[i]).bytes[at..at + 8];
            let number = u64::from_le_bytes(bytes.try_into().expect("eight bytes"));
            take(i, number & MASKS[length as usize & 15] as u64, length);
        }
    }

    /// The same of up to sixteen bytes.
    #[inline(always)]
    fn each_wide(&self, mut take: impl FnMut(usize, u128)) {
        for i in 0..self.count {
            let at = self.at[i] as usize;
            let bytes = &tuples(self.segments, self.rows[i]).bytes[at..at + 16];
            let number = u128::from_le_bytes(bytes.try_into().expect("sixteen bytes"));
            take(i, number & MASKS[self.length[i] as usize]);
        }
    }

    /// Loads the located numbers and takes them out of their frame, to values of `width` bytes.
    fn load(&self, width: usize, frame: Frame, out: &mut Vector, first: usize) {
        match width {
            1 => self.load_narrow(frame, &mut out.values_mut::<u8>()[first..], |v| v as u8),
            2 => self.load_narrow(frame, &mut out.values_mut::<u16>()[first..], |v| v as u16),
            4 => self.load_narrow(frame, &mut out.values_mut::<u32>()[first..], |v| v as u32),
            8 => self.load_narrow(frame, &mut out.values_mut::<u64>()[first..], |v| v),
            _ => {
                let values = &mut out.values_mut::<i128>()[first..first + self.count];
                match frame {
                    Frame::From(min) => self.each_wide(|i, v| values[i] = (v as i128).wrapping_add(min)),
                    Frame::ZigZag => self.each_wide(|i, v| values[i] = (v >> 1) as i128 ^ -((v & 1) as i128)),
                }
            }
        }
    }

    #[inline(always)]
    fn load_narrow<T: Native>(&self, frame: Frame, out: &mut [T], cut: impl Fn(u64) -> T) {
        let out = &mut out[..self.count];
        match frame {
            Frame::From(min) => self.each_narrow(|i, v, _| out[i] = cut(v.wrapping_add(min as u64))),
            Frame::ZigZag => self.each_narrow(|i, v, _| out[i] = cut((v >> 1) ^ (v & 1).wrapping_neg())),
        }
    }

    /// Strings: their bodies stand behind part 4 and behind the bodies of the strings before.
    fn read_strings(&mut self, code: usize, out: &mut Vector, first: usize) {
        let (codes, fixed) = (&self.layout.codes, self.layout.fixed as u32);
        let codes_at = self.layout.codes_at;
        let mut bodies = [0u32; CHUNK_ROWS];
        for (i, body) in bodies[..self.count].iter_mut().enumerate() {
            let start = self.starts[i];
            let packed = &tuples(self.segments, self.rows[i]).bytes[start as usize + codes_at..];
            let part = match codes.is_universal() {
                true => {
                    u32::from(codes.totals()[0][usize::from(packed[0]) | usize::from(packed[1]) << codes.first_bits()])
                }
                false => sum(codes.totals(), packed),
            };
            *body = start + fixed + part;
        }
        let mut lengths = [0u32; CHUNK_ROWS];
        for text in self.layout.texts() {
            self.locate(text);
            self.each_narrow(|i, length, _| lengths[i] = length as u32);
            if text == code {
                break;
            }
            let lengths = lengths[..self.count].iter().map(|&length| length.min(BODY_BYTES as u32));
            bodies.iter_mut().zip(lengths).for_each(|(body, length)| *body += length);
        }
        debug_assert_eq!(out.physical(), PhysicalType::Str);
        let views = &mut out.values_mut::<i128>()[first..first + self.count];
        for (i, view) in views.iter_mut().enumerate() {
            let body = bodies[i] as usize;
            let bytes = &tuples(self.segments, self.rows[i]).bytes[body..body + 16];
            let bits = u128::from_le_bytes(bytes.try_into().expect("sixteen bytes"));
            let bits = bits & MASKS[lengths[i].min(BODY_BYTES as u32) as usize];
            *view = (bits << 32 | u128::from(lengths[i])) as i128;
        }
    }
}

#[inline(always)]
fn tuples(segments: &[Option<Tuples>], row: u32) -> &Tuples {
    segments[(row >> 16) as usize].as_ref().expect("only rows that are tuples are decoded")
}

/// The lengths of all fields of earlier bytes of codes.
#[inline(always)]
fn sum(totals: &[Vec<u8>], packed: &[u8]) -> u32 {
    totals.iter().zip(packed).map(|(total, &byte)| u32::from(total[usize::from(byte)])).sum()
}
