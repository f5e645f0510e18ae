//! Chooses the encoding of a block of values of fixed width.
//!
//! | form | encodings |
//! |---|---|
//! | writable | flat, or plain or packed codes with slack on both sides, which are written in place; as tables with a layout key have them |
//! | cold | the smallest that reads about as fast as the plain ones |
//!
//! Blocks that are encoded again because a value does not fit get plain codes with slack, from `write`.
//!
//! 1. Each possible encoding becomes a [`Plan`], which computes its size from bounds, steps, runs and
//!    outliers. Doubles must be encoded for that, to find their digits and exceptions.
//! 2. The smallest is taken; an encoding that takes longer to read must be smaller by a (measured) margin. A
//!    table can force an encoding; where that is not possible, the choice is free.
//! 3. The plan is carried out. The conformance tests check that it takes as many bytes as it promised.

use super::alp::Scale;
use super::codes::{bits_of, packing_pays, plain_bytes};
use super::fixed::flat;
use super::float32::Singles;
use super::line::{Fit, Line};
use super::multiples::{Multiples, common_factor};
use super::packed::Packed;
use super::patched::{Core, Patched};
use super::progression::Progression;
use super::runs::{Runs, count};
use super::scaled::Scaled;
use super::split::{Cut, Split};
use super::{Block, Codes, Fixed, Values};
use crate::BLOCK_ROWS;
use crate::definition::Compression;
use crate::value::Datum;
use entasis_vector::{Buffer, PhysicalType, Value};
use std::iter::repeat;

/// The least average length of runs for which runs are worthwhile.
const RUN_ROWS: usize = 8;
/// Size of the sample in which outliers are looked for.
const SAMPLE: usize = 64;

/// The purpose for which a block is encoded.
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
    /// True if codes have room on both sides of the values: they may be written in place.
    fn has_slack(self) -> bool {
        matches!(self, Form::Writable { .. } | Form::Cold(Compression::Auto))
    }

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
    // Slots that are not live yet may hold anything that does not widen the codes.
    let mut all = Vec::new();
    if capacity > values.len() && matches!(form, Form::Cold(_)) {
        all.extend_from_slice(values);
        all.resize(capacity, min);
    }
    let slots = if all.is_empty() { values } else { &all };
    let candidates = Candidates { values, slots, capacity, min, max, span: span(min, max) };
    candidates.carry_out(candidates.plan(form), form.has_slack())
}

impl Block {
    /// True if it has integers in slots of whole bytes that would be packed if they were encoded again: it
    /// was written, or made of rows that were laid out. Its zone must be exact.
    pub(crate) fn is_loose(&self, physical: PhysicalType) -> bool {
        let are_integers = physical.is_integer() || physical == PhysicalType::I128;
        let is_plain = match &self.values {
            Values::FrameOfReference { codes, .. } => codes.are_plain(),
            Values::Flat(_) => are_integers,
            _ => false,
        };
        let number = |value: &Value| match value {
            Value::Boolean(value) => Some(i128::from(*value)),
            value => value.ordinal(),
        };
        let range = (number(&self.zone.min), number(&self.zone.max));
        let (true, (Some(min), Some(max))) = (is_plain, range) else { return false };
        let span = u64::try_from(max.wrapping_sub(min) as u128).ok();
        let bits = span.map(|span| bits_of(span).max(1)).filter(|&bits| bits < 64);
        bits.is_some_and(|bits| packing_pays(Packed::size(bits), self.values.bytes()))
    }
}

/// The bytes besides the block that [`encode`] promises, with as many slots as values.
#[cfg(test)]
pub(crate) fn promised<T: Fixed>(values: &[T], min: T, max: T, form: Form) -> usize {
    Candidates { values, slots: values, capacity: values.len(), min, max, span: span(min, max) }
        .plan(form)
        .bytes
}

/// The distance of two integers; `None` for other values.
fn span<T: Fixed>(min: T, max: T) -> Option<u128> {
    match (min.datum(), max.datum()) {
        (Datum::Integer(min), Datum::Integer(max)) if T::IS_INTEGER => Some(max.wrapping_sub(min) as u128),
        _ => None,
    }
}

/// An encoding that is possible.
struct Plan {
    encoding: Encoding,
    /// Bytes that it takes besides the block.
    bytes: usize,
}

enum Encoding {
    Flat,
    Plain,
    Packed {
        bits: usize,
    },
    Runs,
    Line(Fit),
    Patched(Core),
    Multiples {
        factor: u64,
        span: u64,
    },
    Split(Cut),
    /// The block, encoded already.
    Made(Values),
}

struct Candidates<'a, T> {
    /// The values of live slots.
    values: &'a [T],
    /// The values of all slots, unless they are to be written.
    slots: &'a [T],
    capacity: usize,
    min: T,
    max: T,
    span: Option<u128>,
}

impl<T: Fixed> Candidates<'_, T> {
    fn plan(&self, form: Form) -> Plan {
        match form {
            Form::Writable { .. } => {
                let plain = self.plain();
                let packed = self.packed().filter(|_| self.capacity <= BLOCK_ROWS);
                packed.filter(|packed| packing_pays(packed.bytes, plain.bytes)).unwrap_or(plain)
            }
            Form::Cold(Compression::None) => self.flat(),
            Form::Cold(_) if self.capacity > BLOCK_ROWS || self.values.is_empty() => self.plain(),
            Form::Cold(compression) => {
                self.forced(compression).or_else(|| self.smallest()).unwrap_or_else(|| self.plain())
            }
        }
    }

    /// With `slack`, codes have room on both sides of the values.
    fn carry_out(&self, plan: Plan, slack: bool) -> Values {
        match plan.encoding {
            Encoding::Flat => Values::Flat(flat(self.values, self.capacity)),
            Encoding::Plain => T::encode_plain(self.values, self.min, self.max, self.capacity, slack),
            Encoding::Packed { bits } => {
                let Datum::Integer(base) = self.min.datum() else { unreachable!("only integers have codes") };
                let room = u128::from(u64::MAX >> (64 - bits)).saturating_sub(self.span.unwrap_or(0));
                let below = if slack { (room / 2) as u64 } else { 0 };
                let codes = self.slots.iter().map(|value| value.code(self.min) + below).chain(repeat(below));
                let base = base.saturating_sub(below.into());
                Values::FrameOfReference { base, codes: Codes::Packed(Packed::new(bits, codes)) }
            }
            Encoding::Runs => Values::Runs(Runs::new(self.slots, |heads| self.as_plain(heads, heads.len()))),
            Encoding::Line(fit) => Values::Line(Line::new(self.slots, self.min, fit)),
            Encoding::Patched(core) => Values::Patched(Patched::new(self.slots, self.min, core)),
            Encoding::Multiples { factor, span } => {
                Values::Multiples(Multiples::new(self.slots, self.min, span, factor))
            }
            Encoding::Split(cut) => Values::Split(Box::new(Split::new(self.slots, &cut))),
            Encoding::Made(values) => values,
        }
    }

    fn as_plain(&self, values: &[T], capacity: usize) -> Values {
        T::encode_plain(values, self.min, self.max, capacity, false)
    }

    fn flat(&self) -> Plan {
        Plan { encoding: Encoding::Flat, bytes: Buffer::bytes_for(size_of::<T>() * self.capacity) }
    }

    fn plain(&self) -> Plan {
        Plan { encoding: Encoding::Plain, bytes: self.plain_bytes(self.capacity) }
    }

    /// Bytes of plain codes of so many values, or of flat ones.
    fn plain_bytes(&self, values: usize) -> usize {
        let code = self.span.and_then(plain_bytes).unwrap_or(size_of::<T>()).min(size_of::<T>());
        Buffer::bytes_for(code * values)
    }

    /// Bits of the codes, if they are integers whose codes have at most 64.
    fn bits(&self) -> Option<usize> {
        self.span.and_then(|span| u64::try_from(span).ok()).map(|span| bits_of(span).max(1))
    }

    fn packed(&self) -> Option<Plan> {
        let bits = self.bits().filter(|&bits| bits < 64)?;
        Some(Plan { encoding: Encoding::Packed { bits }, bytes: Packed::size(bits) })
    }

    fn sequence(&self) -> Option<Plan> {
        let sequence = self.span.and_then(|_| Progression::of(self.values))?;
        Some(made(Values::Sequence(sequence)))
    }

    fn runs(&self, runs: usize) -> Plan {
        Plan { encoding: Encoding::Runs, bytes: Runs::size(runs) + self.plain_bytes(runs) }
    }

    fn line(&self) -> Option<Plan> {
        let fit = Line::fit(self.slots, self.min, u64::try_from(self.span?).ok()?)?;
        Some(Plan { encoding: Encoding::Line(fit), bytes: fit.bytes() })
    }

    fn multiples(&self) -> Option<Plan> {
        let span = u64::try_from(self.span?).ok()?;
        let factor = common_factor(self.slots, self.min);
        let encoding = Encoding::Multiples { factor, span };
        (factor > 1).then(|| Plan { encoding, bytes: Multiples::size(span, factor) })
    }

    fn patched(&self) -> Option<Plan> {
        let core =
            self.bits().filter(|_| size_of::<T>() <= 8).and_then(|_| Core::best(self.slots, self.min))?;
        Some(Plan { encoding: Encoding::Patched(core), bytes: core.bytes })
    }

    fn split(&self) -> Option<Plan> {
        let cut = Cut::best(self.slots)?;
        Some(Plan { bytes: cut.bytes, encoding: Encoding::Split(cut) })
    }

    /// The values as doubles.
    fn doubles(&self) -> Option<Vec<f64>> {
        let double = |value: &T| match value.datum() {
            Datum::Float(v) if size_of::<T>() == 8 => Some(v),
            _ => None,
        };
        self.slots.iter().map(double).collect()
    }

    fn forced(&self, compression: Compression) -> Option<Plan> {
        match compression {
            Compression::Auto | Compression::None | Compression::Strings | Compression::Fsst => None,
            Compression::Flat => Some(self.flat()),
            Compression::Plain => Some(self.plain()),
            Compression::Packed => self.packed(),
            Compression::Sequence => self.sequence(),
            Compression::Runs => Some(self.runs(count(self.slots))),
            Compression::Line => self.line(),
            Compression::Patched => self.patched(),
            Compression::Multiples => self.multiples(),
            Compression::Scaled => scaled(&self.doubles()?),
            Compression::Singles => singles(&self.doubles()?),
            Compression::Split => self.split(),
        }
    }

    /// The smallest plan that is smaller than the plain one by its margin.
    fn smallest(&self) -> Option<Plan> {
        if let Some(sequence) = self.sequence() {
            return Some(sequence);
        }
        let plain = self.plain().bytes;
        let packed = self.packed().filter(|packed| packing_pays(packed.bytes, plain));
        let least = packed.as_ref().map_or(plain, |packed| packed.bytes);
        let heads = count(self.slots);
        let runs = self.runs(heads);
        if heads * RUN_ROWS <= self.slots.len() && runs.bytes * 2 <= least {
            return Some(runs);
        }
        let multiples = self.multiples().filter(|multiples| packing_pays(multiples.bytes, least));
        let least = multiples.as_ref().map_or(least, |multiples| multiples.bytes);
        if let Some(line) = self.line().filter(|line| line.bytes * 4 <= least * 3) {
            return Some(line);
        }
        if self.has_outliers()
            && let Some(patched) = self.patched()
            && patched.bytes * 3 <= least * 2
        {
            return Some(patched);
        }
        if T::IS_INTEGER {
            return multiples.or(packed);
        }
        self.smallest_of_doubles(plain).or_else(|| self.split().filter(|split| split.bytes * 5 <= plain * 4))
    }

    /// The smallest plan of doubles that are decimals or floats.
    fn smallest_of_doubles(&self, plain: usize) -> Option<Plan> {
        let doubles = self.doubles()?;
        let scaled = scaled(&doubles).filter(|scaled| scaled.bytes * 4 <= plain * 3);
        match (scaled, singles(&doubles)) {
            (Some(scaled), Some(singles)) if singles.bytes * 3 <= scaled.bytes * 4 => Some(singles),
            (Some(scaled), _) => Some(scaled),
            (None, singles) => singles,
        }
    }

    /// True if a sample suggests that all but a few of the values lie within a quarter of the range.
    fn has_outliers(&self) -> bool {
        let Some(bits) = self.bits().filter(|&bits| bits > 4) else { return false };
        // Values of the sample by sixteenths of the range. A quarter of it lies in five of them, wherever it
        // begins.
        let mut counts = [0usize; 16];
        let step = (self.slots.len() / SAMPLE).max(1);
        let sample = self.slots.iter().step_by(step);
        let all = sample.len();
        sample.for_each(|value| counts[(value.code(self.min) >> (bits - 4)) as usize] += 1);
        let most = counts.windows(5).map(|quarter| quarter.iter().sum()).max().unwrap_or(all);
        (all - most) * 16 <= all
    }
}

fn scaled(doubles: &[f64]) -> Option<Plan> {
    let encode =
        |digits: &[i64], min, max| encode(digits, min, max, digits.len(), Form::Cold(Compression::Packed));
    Scaled::of(doubles, Scale::choose(doubles)?, encode).map(|scaled| made(Values::Scaled(scaled)))
}

fn singles(doubles: &[f64]) -> Option<Plan> {
    Singles::of(doubles).map(|singles| made(Values::Singles(singles)))
}

/// The plan of a block that is encoded already.
fn made(values: Values) -> Plan {
    Plan { bytes: values.bytes(), encoding: Encoding::Made(values) }
}
