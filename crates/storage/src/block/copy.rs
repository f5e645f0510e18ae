//! Copies of blocks: to be written, or in the encoding that suits the block alone.

use super::{Block, Fixed, Form, Validity, Values, Views, cells, choose, range_of, with_fixed};
use crate::definition::Compression;
use crate::node::Stamp;
use crate::value::Zone;
use entasis_vector::{Native, PhysicalType, Value};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

impl Block {
    /// A copy of the block in the same encoding, except that cold integers and doubles get the one that suits
    /// them alone.
    pub(crate) fn twin(&self, live: &[u64], physical: PhysicalType) -> Block {
        let values = match &self.values {
            values if values.are_writable() => return self.copy(self.stamp, live, physical),
            Values::Strings(strings) => Values::Strings(strings.clone()),
            Values::Fsst(fsst) => Values::Fsst(fsst.copy()),
            _ => with_fixed!(
                physical,
                T => {
                    let mut values = vec![T::default(); self.slots()];
                    self.decode_fixed(T::PHYSICAL, 0, &mut values);
                    let (min, max) = range_of(&values).expect("a block without slots is constant");
                    choose::encode(&values, min, max, self.slots(), Form::Cold(Compression::Auto))
                },
                unreachable!("strings have no fixed width")
            ),
        };
        self.with_values(values, self.stamp)
    }

    /// A copy to be written by the owner of `stamp`, while others keep reading this block.
    pub(crate) fn copy(&self, stamp: Stamp, live: &[u64], physical: PhysicalType) -> Block {
        let slots = self.slots();
        let values = match &self.values {
            Values::Constant(value) => Values::Constant(value.clone()),
            Values::FrameOfReference { base, codes } => {
                Values::FrameOfReference { base: *base, codes: codes.copy(slots) }
            }
            Values::Flat(buffer) => Values::Flat(with_fixed!(
                physical,
                T => cells::copy::<T>(buffer, slots, slots),
                unreachable!("strings have no fixed width")
            )),
            Values::Dictionary { dictionary, codes } => {
                Values::Dictionary { dictionary: dictionary.clone(), codes: codes.copy(slots) }
            }
            Values::Views(views) => Values::Views(views.copy(slots, live)),
            _ => self.warm(physical),
        };
        self.with_values(values, stamp)
    }

    /// The same, with codes that are written while others read them.
    pub(crate) fn unpacked_copy(&self, stamp: Stamp, live: &[u64], physical: PhysicalType) -> Block {
        let values = match &self.values {
            Values::FrameOfReference { base, codes } if !codes.are_plain() => {
                let plain = codes.unpacked_copy(self.slots());
                plain.map(|codes| Values::FrameOfReference { base: *base, codes })
            }
            Values::Dictionary { dictionary, codes } if !codes.are_plain() => {
                let plain = codes.unpacked_copy(self.slots());
                plain.map(|codes| Values::Dictionary { dictionary: dictionary.clone(), codes })
            }
            _ => return self.copy(stamp, live, physical),
        };
        self.with_values(values.unwrap_or_else(|| self.warm(physical)), stamp)
    }

    /// A block of the same rows in another encoding.
    fn with_values(&self, values: Values, stamp: Stamp) -> Block {
        let (validity, zone) = (self.copy_validity(), self.zone.clone());
        Block { stamp, ascending: self.ascending, validity, ..self.of_values(values, zone) }
    }

    /// A block of the same slots that hold other values.
    fn of_values(&self, values: Values, zone: Zone) -> Block {
        Block::new(self.slots(), values, None, zone, false)
    }

    /// The values in an encoding that is written in place.
    pub(super) fn warm(&self, physical: PhysicalType) -> Values {
        match &self.values {
            Values::Strings(strings) => {
                Values::Views(Views::new(self.slots(), self.slots(), |slot| strings.get(slot)))
            }
            Values::Fsst(fsst) => {
                let strings = fsst.strings();
                Values::Views(Views::new(self.slots(), self.slots(), |slot| strings.get(slot)))
            }
            _ => with_fixed!(
                physical,
                T => {
                    let mut values = vec![T::default(); self.slots()];
                    self.decode_fixed(T::PHYSICAL, 0, &mut values);
                    match range_of(&values) {
                        Some((min, max)) => T::encode_plain(&values, min, max, self.slots(), true),
                        None => Values::Constant(Value::Null),
                    }
                },
                unreachable!("strings have no fixed width")
            ),
        }
    }

    fn copy_validity(&self) -> Option<Validity> {
        self.validity
            .as_ref()
            .map(|words| words.iter().map(|word| AtomicU64::new(word.load(Relaxed))).collect())
    }
}
