//! Which encoding a block of values of fixed width gets.
//!
//! | form | encodings |
//! |---|---|
//! | writable | flat, or plain codes, as tables with a layout key have them from the start |
//! | cold | the smallest of all, as far as it reads about as fast as the plain ones |
//!
//! What is written gets plain codes with slack on both sides, from `write`.
//!
//! Sizes come from bounds, steps, runs and outliers; doubles are encoded both ways to be compared. What is smaller must be so by a
//! margin, as it takes longer to read (measured; guide B2). Which encoding a table's blocks get can be forced; where the
//! forced one is not possible, the choice is free.

use super::alp::Scale;
use super::codes::{bits_of, packing_pays, plain_bytes};
use super::fixed::flat;
use super::packed::Packed;
use super::patched::{Patched, best_width};
use super::runs::{Runs, count};
use super::scaled::Scaled;
use super::sequence::Sequence;
use super::singles::Singles;
use super::{Codes, Fixed, Values};
use crate::BLOCK_ROWS;
use crate::datum::Datum;
use crate::layout::Compression;

/// Rows of a run on average, from which on runs are worth while.
const RUN_ROWS: usize = 8;
/// Values that are looked at for outliers.
const SAMPLE: usize = 64;

/// What a block is encoded for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// To be written now and then.
    Writable {
        /// Strings may get dictionaries.
        dictionaries: bool,
    },
    /// To be read.
    Cold(Compression),
}

impl Form {
    /// False if strings never get dictionaries.
    pub(crate) fn has_dictionaries(self) -> bool {
        match self {
            Form::Writable { dictionaries } => dictionaries,
            Form::Cold(compression) => compression.has_dictionaries(),
        }
    }
}

/// Encodes values that lie within `min` and `max`, with memory for `capacity` slots.
pub(crate) fn encode<T: Fixed>(values: &[T], min: T, max: T, capacity: usize, form: Form) -> Values {
    match form {
        Form::Writable { .. } => T::encode_plain(values, min, max, capacity, false),
        Form::Cold(Compression::None) => Values::Flat(flat(values, capacity)),
        Form::Cold(_) if capacity > BLOCK_ROWS || values.is_empty() => {
            T::encode_plain(values, min, max, capacity, false)
        }
        Form::Cold(compression) => {
            // Slots that are not live yet hold anything that does not widen the codes.
            let mut all = Vec::new();
            if capacity > values.len() {
                all.extend_from_slice(values);
                all.resize(capacity, min);
            }
            let slots = if all.is_empty() { values } else { &all };
            let candidates = Candidates { values, slots, min, max, span: span(min, max) };
            let forced = candidates.forced(compression);
            forced.or_else(|| candidates.smallest()).unwrap_or_else(|| candidates.plain())
        }
    }
}

/// The distance of two integers; `None` for other values.
fn span<T: Fixed>(min: T, max: T) -> Option<u128> {
    match (min.datum(), max.datum()) {
        (Datum::Integer(min), Datum::Integer(max)) if T::IS_INTEGER => Some(max.wrapping_sub(min) as u128),
        _ => None,
    }
}

struct Candidates<'a, T> {
    /// Of live slots.
    values: &'a [T],
    /// Of all slots.
    slots: &'a [T],
    min: T,
    max: T,
    span: Option<u128>,
}

impl<T: Fixed> Candidates<'_, T> {
    fn plain(&self) -> Values {
        T::encode_plain(self.slots, self.min, self.max, self.slots.len(), false)
    }

    /// Bytes of plain codes, or flat.
    fn plain_size(&self) -> usize {
        let bytes = self.span.and_then(plain_bytes).unwrap_or(size_of::<T>()).min(size_of::<T>());
        (bytes * self.slots.len()).next_multiple_of(64)
    }

    /// Bits of the codes, if they are integers whose codes can be packed.
    fn bits(&self) -> Option<usize> {
        self.span.and_then(|span| u64::try_from(span).ok()).map(|span| bits_of(span).max(1)).filter(|&bits| bits < 64)
    }

    fn packed(&self) -> Option<Values> {
        let Datum::Integer(base) = self.min.datum() else { return None };
        let codes = self.slots.iter().map(|value| value.code(self.min));
        let bits = self.bits()?;
        Some(Values::FrameOfReference { base, codes: Codes::Packed(Packed::new(bits, codes)) })
    }

    fn sequence(&self) -> Option<Values> {
        self.span.and_then(|_| Sequence::of(self.values)).map(Values::Sequence)
    }

    fn runs(&self) -> Values {
        let encode = |heads: &[T]| T::encode_plain(heads, self.min, self.max, heads.len(), false);
        Values::Runs(Runs::new(self.slots, encode))
    }

    fn patched(&self) -> Option<(usize, usize)> {
        self.bits().filter(|_| size_of::<T>() <= 8).and_then(|_| best_width(self.slots, self.min))
    }

    /// The doubles that they are.
    fn doubles(&self) -> Option<Vec<f64>> {
        let double = |value: &T| match value.datum() {
            Datum::Float(v) if size_of::<T>() == 8 => Some(v),
            _ => None,
        };
        self.slots.iter().map(double).collect()
    }

    fn forced(&self, compression: Compression) -> Option<Values> {
        match compression {
            Compression::Auto | Compression::None | Compression::Strings | Compression::Fsst => None,
            Compression::Flat => Some(Values::Flat(flat(self.slots, self.slots.len()))),
            Compression::Plain => Some(self.plain()),
            Compression::Packed => self.packed(),
            Compression::Sequence => self.sequence(),
            Compression::Runs => Some(self.runs()),
            Compression::Patched => {
                self.patched().map(|(width, _)| Values::Patched(Patched::new(self.slots, self.min, width)))
            }
            Compression::Scaled => {
                self.doubles().and_then(|doubles| Scaled::of(&doubles, Scale::choose(&doubles)?)).map(Values::Scaled)
            }
            Compression::Singles => self.doubles().and_then(|doubles| Singles::of(&doubles)).map(Values::Singles),
        }
    }

    /// The smallest that is smaller than the plain one by its margin.
    fn smallest(&self) -> Option<Values> {
        if let Some(sequence) = self.sequence() {
            return Some(sequence);
        }
        let plain = self.plain_size();
        let runs = count(self.slots);
        let run_size = Runs::size(runs) + (plain / self.slots.len() * runs).next_multiple_of(64);
        let packed = self.bits().filter(|&bits| packing_pays(bits, plain)).map(Packed::size);
        if runs * RUN_ROWS <= self.slots.len() && run_size * 2 <= packed.unwrap_or(plain) {
            return Some(self.runs());
        }
        if self.has_outliers()
            && let Some((width, size)) = self.patched()
            && size * 3 <= packed.unwrap_or(plain) * 2
        {
            return Some(Values::Patched(Patched::new(self.slots, self.min, width)));
        }
        if T::IS_INTEGER {
            return packed.and_then(|_| self.packed());
        }
        let doubles = self.doubles()?;
        let scaled = Scale::choose(&doubles).and_then(|scale| Scaled::of(&doubles, scale));
        let singles = Singles::of(&doubles);
        let scaled = scaled.filter(|scaled| scaled.bytes() * 4 <= plain * 3);
        match (scaled, singles) {
            (Some(scaled), Some(singles)) if singles.bytes() * 3 <= scaled.bytes() * 4 => {
                Some(Values::Singles(singles))
            }
            (Some(scaled), _) => Some(Values::Scaled(scaled)),
            (None, singles) => singles.map(Values::Singles),
        }
    }

    /// True if a few of the values seem to lie far above the others, going by a sample.
    fn has_outliers(&self) -> bool {
        let Some(bits) = self.bits() else { return false };
        let step = (self.slots.len() / SAMPLE).max(1);
        let high = u64::MAX << (bits - 1);
        let sample = self.slots.iter().step_by(step);
        // With equal chances each, half of them would have the highest bit.
        let mut upper = 0;
        sample.for_each(|value| upper += usize::from(value.code(self.min) & high != 0));
        bits > 4 && upper * 16 <= self.slots.len() / step
    }
}
