//! Writes tuples: a chunk of rows at a time, field by field.
//!
//! 1. *Measure*: each field's values become unsigned numbers, and each number a code; codes are packed,
//!    lengths summed.
//! 2. *Place*: the running sum of the lengths gives each tuple's start.
//! 3. *Write*: field by field again. A number is blended into the existing bytes, so that its length needs no
//!    branch and its neighbours are unchanged.

use super::layout::{BODY_BYTES, FieldForm, IntegerFrame, TupleLayout};
use super::{SLACK, Starts, Tuples};
use entasis_vector::{Buffer, CHUNK_ROWS, Native, PhysicalType, StringView, bitmap};

/// The source of the values of one field, from offset 0 of a segment.
#[derive(Clone, Copy)]
pub(in crate::exec) struct Source<'a> {
    /// The values, of the field's physical type.
    pub values: &'a Buffer,
    /// Validity words; absent: all valid.
    pub validity: Option<&'a [u64]>,
}

/// `MASKS[n]` keeps the lowest n bytes.
pub(super) const MASKS: [u128; 17] = {
    let mut masks = [0; 17];
    let mut bytes = 1;
    while bytes <= 16 {
        masks[bytes] = u128::MAX >> (128 - 8 * bytes);
        bytes += 1;
    }
    masks
};

impl Tuples {
    /// The first `rows` rows of `sources`, one for each field, as tuples.
    pub(in crate::exec) fn encode(layout: &TupleLayout, sources: &[Source<'_>], rows: usize) -> Tuples {
        let mut encoder = Encoder::new(layout, sources);
        let mut tuples = Tuples { bytes: Vec::new(), starts: Starts::new(layout, rows) };
        let mut end = 0;
        for first in (0..rows).step_by(CHUNK_ROWS) {
            let count = CHUNK_ROWS.min(rows - first);
            encoder.measure(first, count);
            encoder.place(&mut end, &mut tuples.starts, first);
            if tuples.bytes.capacity() == 0 {
                // As if all chunks were like the first, plus a margin.
                tuples.bytes.reserve_exact(end * rows.div_ceil(count) + end / 8 + SLACK);
            }
            tuples.bytes.resize(end + SLACK, 0);
            encoder.write(first, &mut tuples.bytes);
        }
        tuples.bytes.shrink_to_fit();
        tuples
    }

    /// The bytes that [`Tuples::encode`] would need.
    pub(in crate::exec) fn measure(layout: &TupleLayout, sources: &[Source<'_>], rows: usize) -> usize {
        let mut encoder = Encoder::new(layout, sources);
        let mut starts = Starts::new(layout, rows);
        let mut end = 0;
        for first in (0..rows).step_by(CHUNK_ROWS) {
            encoder.measure(first, CHUNK_ROWS.min(rows - first));
            encoder.place(&mut end, &mut starts, first);
        }
        Tuples { bytes: Vec::new(), starts }.bytes() + end + SLACK
    }
}

impl Starts {
    pub(super) fn new(layout: &TupleLayout, rows: usize) -> Starts {
        if layout.is_fixed() {
            return Starts::Every(layout.fixed as u32);
        }
        // As many tuples share a base as have distances of 16 bits in any case.
        let shift = (u32::from(u16::MAX) / layout.longest as u32).max(1).ilog2().min(6);
        let bases = Vec::with_capacity(rows.div_ceil(1 << shift));
        Starts::Near { shift, bases, distances: Vec::with_capacity(rows) }
    }
}

/// The numbers of one field of a chunk.
#[derive(Default)]
struct Numbers {
    narrow: Vec<u64>,
    wide: Vec<u128>,
    /// A code for each row.
    codes: Vec<u8>,
}

struct Encoder<'a> {
    layout: &'a TupleLayout,
    sources: &'a [Source<'a>],
    /// The number of rows of the chunk.
    rows: usize,
    /// The chunk's bytes of codes, one list per byte.
    codes: Vec<Vec<u8>>,
    /// The length of each tuple, later its start.
    starts: Vec<u32>,
    /// Where the next part of each tuple goes.
    cursors: Vec<u32>,
    scratch: Numbers,
}

impl<'a> Encoder<'a> {
    fn new(layout: &'a TupleLayout, sources: &'a [Source<'a>]) -> Encoder<'a> {
        debug_assert_eq!(layout.fields.len(), sources.len());
        Encoder {
            layout,
            sources,
            rows: 0,
            codes: vec![Vec::new(); layout.codes.bytes()],
            starts: Vec::new(),
            cursors: Vec::new(),
            scratch: Numbers::default(),
        }
    }

    /// Computes codes and lengths of `rows` rows from offset `first`.
    fn measure(&mut self, first: usize, rows: usize) {
        self.rows = rows;
        self.starts.clear();
        self.starts.resize(rows, self.layout.fixed as u32);
        for codes in &mut self.codes {
            codes.clear();
            codes.resize(rows, 0);
        }
        for (field, source) in self.layout.fields.iter().zip(self.sources) {
            let numbers = &mut self.scratch;
            let (code, nullable) = match field.form {
                FieldForm::Fixed { .. } | FieldForm::Plain { code: None, .. } => continue,
                FieldForm::Plain { code: Some(code), .. } => {
                    numbers.codes.clear();
                    numbers.codes.resize(rows, 1);
                    (code, true)
                }
                FieldForm::Short { code, frame } => {
                    let codes = self.layout.codes.code(code).for_bytes(field.nullable);
                    numbers.read(source, field.physical, frame, first, rows);
                    numbers.count_bytes(field.physical, &codes);
                    (code, field.nullable)
                }
                FieldForm::Double { code } => {
                    let [float, double] =
                        [4, 8].map(|bytes| self.layout.codes.code(code).for_bytes(field.nullable)[bytes]);
                    let values = &source.values.as_slice::<f64>()[first..first + rows];
                    numbers.codes.clear();
                    numbers.codes.extend(values.iter().map(|&v| if is_float(v) { float } else { double }));
                    (code, field.nullable)
                }
                FieldForm::Text { code } => {
                    let codes = self.layout.codes.code(code).for_bytes(field.nullable);
                    let views = &source.values.as_slice::<StringView>()[first..first + rows];
                    let of = |view: &StringView| {
                        codes[(64 - (view.len() as u64).leading_zeros()).div_ceil(8) as usize]
                    };
                    numbers.codes.clear();
                    numbers.codes.extend(views.iter().map(of));
                    add_bodies(&mut self.starts, views, source.validity, first);
                    (code, field.nullable)
                }
            };
            if let (true, Some(words)) = (nullable, source.validity) {
                let valid = |i| u8::from(bitmap::get(words, first + i));
                numbers.codes.iter_mut().enumerate().for_each(|(i, code)| *code *= valid(i));
            }
            let code = self.layout.codes.code(code);
            let lengths: [u8; 8] = std::array::from_fn(|i| code.lengths.get(i).copied().unwrap_or(0));
            let to = self.codes[code.byte].iter_mut().zip(&mut self.starts);
            for (&own, (packed, length)) in numbers.codes.iter().zip(to) {
                *packed |= own << code.shift;
                *length += u32::from(lengths[own as usize & 7]);
            }
        }
    }

    /// Turns lengths into starts, beginning at `end`, and records them.
    fn place(&mut self, end: &mut usize, starts: &mut Starts, first: usize) {
        for start in &mut self.starts {
            let length = *start;
            *start = *end as u32;
            *end += length as usize;
        }
        if let Starts::Near { shift, bases, distances } = starts {
            for (i, &start) in self.starts.iter().enumerate() {
                if (first + i).is_multiple_of(1 << *shift) {
                    bases.push(start);
                }
                distances.push((start - bases[bases.len() - 1]) as u16);
            }
        }
    }

    /// Writes the measured rows.
    fn write(&mut self, first: usize, bytes: &mut [u8]) {
        for (byte, codes) in self.codes.iter().enumerate() {
            let at = self.layout.codes_at + byte;
            self.starts.iter().zip(codes).for_each(|(&start, &code)| bytes[start as usize + at] = code);
        }
        self.write_fixed(first, bytes);
        self.cursors.clear();
        self.cursors.extend(self.starts.iter().map(|&start| start + self.layout.fixed as u32));
        self.write_short(first, bytes);
        self.write_bodies(first, bytes);
    }

    /// Writes the fields that have the same place in each tuple.
    fn write_fixed(&mut self, first: usize, bytes: &mut [u8]) {
        let rows = self.rows;
        for (field, source) in self.layout.fields.iter().zip(self.sources) {
            let numbers = &mut self.scratch;
            match field.form {
                FieldForm::Fixed { at, width, frame, null } => {
                    numbers.read(source, field.physical, frame, first, rows);
                    if field.physical == PhysicalType::I128 {
                        numbers.narrow.clear();
                        numbers.narrow.extend(numbers.wide.iter().map(|&v| v as u64));
                    }
                    if let (Some(null), Some(words)) = (null, source.validity) {
                        for (i, number) in numbers.narrow.iter_mut().enumerate() {
                            *number = if bitmap::get(words, first + i) { *number } else { null };
                        }
                    }
                    let starts = self.starts.iter().zip(&numbers.narrow);
                    starts.for_each(|(&start, &v)| blend_narrow(bytes, start as usize + at, v, width as u8));
                }
                FieldForm::Plain { at, .. } => {
                    // A NULL's value is arbitrary; its bytes are zeros, so that equal rows are equal tuples.
                    numbers.read_plain(source, field.physical.width(), first, rows);
                    if let Some(words) = source.validity {
                        for (i, number) in numbers.wide.iter_mut().enumerate() {
                            *number = if bitmap::get(words, first + i) { *number } else { 0 };
                        }
                    }
                    let width = field.physical.width() as u8;
                    let starts = self.starts.iter().zip(&numbers.wide);
                    starts.for_each(|(&start, &v)| blend_wide(bytes, start as usize + at, v, width));
                }
                FieldForm::Short { .. } | FieldForm::Double { .. } | FieldForm::Text { .. } => {}
            }
        }
    }

    /// Writes the numbers that are as long as their codes say, and the lengths of strings.
    fn write_short(&mut self, first: usize, bytes: &mut [u8]) {
        let rows = self.rows;
        let fields = self.layout.codes.order().iter().filter_map(|&wanted| {
            let field =
                self.layout.fields.iter().position(|field| field.form.length_code() == Some(wanted))?;
            Some((wanted, &self.layout.fields[field], &self.sources[field]))
        });
        for (code, field, source) in fields {
            let numbers = &mut self.scratch;
            match field.form {
                FieldForm::Short { frame, .. } => numbers.read(source, field.physical, frame, first, rows),
                FieldForm::Double { .. } => {
                    let values = &source.values.as_slice::<f64>()[first..first + rows];
                    let bits =
                        |&v: &f64| if is_float(v) { u64::from((v as f32).to_bits()) } else { v.to_bits() };
                    numbers.narrow.clear();
                    numbers.narrow.extend(values.iter().map(bits));
                }
                _ => {
                    let views = &source.values.as_slice::<StringView>()[first..first + rows];
                    numbers.narrow.clear();
                    numbers.narrow.extend(views.iter().map(|view| view.len() as u64));
                }
            }
            let code = self.layout.codes.code(code);
            let lengths: [u8; 8] = std::array::from_fn(|i| code.lengths.get(i).copied().unwrap_or(0));
            let length = |packed: u8| lengths[code.of(packed) as usize & 7];
            let to = self.cursors.iter_mut().zip(&self.codes[code.byte]);
            if field.physical == PhysicalType::I128 {
                for (&number, (cursor, &packed)) in numbers.wide.iter().zip(to) {
                    let length = length(packed);
                    blend_wide(bytes, *cursor as usize, number, length);
                    *cursor += u32::from(length);
                }
            } else {
                for (&number, (cursor, &packed)) in numbers.narrow.iter().zip(to) {
                    let length = length(packed);
                    blend_narrow(bytes, *cursor as usize, number, length);
                    *cursor += u32::from(length);
                }
            }
        }
    }

    /// Writes the bodies of strings.
    fn write_bodies(&mut self, first: usize, bytes: &mut [u8]) {
        let rows = first..first + self.rows;
        for (field, source) in self.layout.fields.iter().zip(self.sources) {
            if let FieldForm::Text { .. } = field.form {
                let views = &source.values.as_slice::<StringView>()[rows.clone()];
                let bits = &source.values.as_slice::<i128>()[rows.clone()];
                for (i, (cursor, (view, &bits))) in
                    self.cursors.iter_mut().zip(views.iter().zip(bits)).enumerate()
                {
                    let valid = source.validity.is_none_or(|words| bitmap::get(words, first + i));
                    let length = if valid { view.len().min(BODY_BYTES) as u8 } else { 0 };
                    blend_wide(bytes, *cursor as usize, bits as u128 >> 32, length);
                    *cursor += u32::from(length);
                }
            }
        }
    }
}

/// Adds the lengths of the bodies of strings to those of tuples. NULLs have none.
fn add_bodies(lengths: &mut [u32], views: &[StringView], validity: Option<&[u64]>, first: usize) {
    let body = |view: &StringView| view.len().min(BODY_BYTES) as u32;
    match validity {
        None => lengths.iter_mut().zip(views).for_each(|(length, view)| *length += body(view)),
        Some(words) => {
            for (i, (length, view)) in lengths.iter_mut().zip(views).enumerate() {
                *length += if bitmap::get(words, first + i) { body(view) } else { 0 };
            }
        }
    }
}

impl Numbers {
    /// The code of each number that has been read: that of so many bytes in `codes`.
    fn count_bytes(&mut self, physical: PhysicalType, codes: &[u8; 17]) {
        self.codes.clear();
        if physical == PhysicalType::I128 {
            let of = |v: &u128| codes[(128 - v.leading_zeros()).div_ceil(8) as usize];
            self.codes.extend(self.wide.iter().map(of));
        } else {
            let of = |v: &u64| codes[(64 - v.leading_zeros()).div_ceil(8) as usize];
            self.codes.extend(self.narrow.iter().map(of));
        }
    }

    /// Reads integers relative to their frame: `wide` for 128 bits, `narrow` for others.
    fn read(
        &mut self,
        source: &Source<'_>,
        physical: PhysicalType,
        frame: IntegerFrame,
        first: usize,
        rows: usize,
    ) {
        use PhysicalType as P;
        macro_rules! narrow {
            ($t:ty) => {{
                let values = &source.values.as_slice::<$t>()[first..first + rows];
                self.narrow.clear();
                match frame {
                    IntegerFrame::From(min) => {
                        self.narrow
                            .extend(values.iter().map(|&v| (v as i64 as u64).wrapping_sub(min as u64)));
                    }
                    IntegerFrame::ZigZag => self.narrow.extend(values.iter().map(|&v| {
                        let v = v as i64;
                        (v << 1 ^ v >> 63) as u64
                    })),
                }
            }};
        }
        match physical {
            P::Bool | P::U8 => narrow!(u8),
            P::I8 => narrow!(i8),
            P::I16 => narrow!(i16),
            P::I32 => narrow!(i32),
            P::U16 => narrow!(u16),
            P::U32 => narrow!(u32),
            P::I64 | P::U64 => narrow!(i64),
            _ => {
                let values = &source.values.as_slice::<i128>()[first..first + rows];
                self.wide.clear();
                match frame {
                    IntegerFrame::From(min) => {
                        self.wide.extend(values.iter().map(|&v| v.wrapping_sub(min) as u128))
                    }
                    IntegerFrame::ZigZag => {
                        self.wide.extend(values.iter().map(|&v| (v << 1 ^ v >> 127) as u128))
                    }
                }
            }
        }
    }

    /// Reads values of `width` bytes unchanged, into `wide`.
    fn read_plain(&mut self, source: &Source<'_>, width: usize, first: usize, rows: usize) {
        fn slice<'a, T: Native>(source: &Source<'a>, first: usize, rows: usize) -> &'a [T] {
            &source.values.as_slice::<T>()[first..first + rows]
        }
        self.wide.clear();
        match width {
            1 => self.wide.extend(slice::<u8>(source, first, rows).iter().map(|&v| u128::from(v))),
            2 => self.wide.extend(slice::<u16>(source, first, rows).iter().map(|&v| u128::from(v))),
            4 => self.wide.extend(slice::<u32>(source, first, rows).iter().map(|&v| u128::from(v))),
            8 => self.wide.extend(slice::<u64>(source, first, rows).iter().map(|&v| u128::from(v))),
            _ => self.wide.extend(slice::<i128>(source, first, rows).iter().map(|&v| v as u128)),
        }
    }
}

/// True if a float represents `v` bit for bit. Conversion may change the bits of a NaN.
pub(super) fn is_float(v: f64) -> bool {
    f64::from(v as f32).to_bits() == v.to_bits() && !v.is_nan()
}

/// Writes the lowest `length` bytes of `number`, at most eight, and no others.
#[inline(always)]
fn blend_narrow(bytes: &mut [u8], at: usize, number: u64, length: u8) {
    let mask = MASKS[length as usize & 15] as u64;
    debug_assert!(length == 0 || number & !mask == 0, "a value lies outside of its column's range");
    let to = &mut bytes[at..at + 8];
    let old = u64::from_le_bytes((&*to).try_into().expect("eight bytes"));
    to.copy_from_slice(&(old & !mask | number & mask).to_le_bytes());
}

/// Writes the lowest `length` bytes of `number`, and no others.
#[inline(always)]
fn blend_wide(bytes: &mut [u8], at: usize, number: u128, length: u8) {
    let mask = MASKS[length as usize];
    debug_assert!(length == 0 || number & !mask == 0, "a value lies outside of its column's range");
    let to = &mut bytes[at..at + 16];
    let old = u128::from_le_bytes((&*to).try_into().expect("sixteen bytes"));
    to.copy_from_slice(&(old & !mask | number & mask).to_le_bytes());
}
