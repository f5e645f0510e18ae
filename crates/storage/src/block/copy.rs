//! Copies of blocks: to be written, or in the encoding that suits the block alone.

use super::plain::encode_plain;
use super::{Block, Form, TextValues, Validity, Values, choose, range_of, with_fixed};
use crate::definition::Compression;
use crate::node::Stamp;
use crate::value::Zone;
use entasis_vector::{Native, PhysicalType};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

impl Block {
    /// A copy of the block in the same encoding, except that cold integers and doubles get the one that suits
    /// them alone.
    pub(crate) fn twin(&self, live: &[u64], physical: PhysicalType) -> Block {
        let values = match &self.values {
            values if values.are_writable() => return self.copy(self.stamp, live, physical),
            Values::Text(values) => Values::Text(values.copy(self.slots(), live)),
            Values::Null | Values::Fixed(_) => self.encoded(physical, true),
        };
        self.with_values(values, self.stamp)
    }

    /// A copy to be written by the owner of `stamp`, while others keep reading this block.
    pub(crate) fn copy(&self, stamp: Stamp, live: &[u64], physical: PhysicalType) -> Block {
        let slots = self.slots();
        let values = match &self.values {
            Values::Null => Some(Values::Null),
            Values::Fixed(values) => values.copy(slots, physical).map(Values::Fixed),
            Values::Text(values) if values.are_writable() => Some(Values::Text(values.copy(slots, live))),
            Values::Text(_) => None,
        };
        self.with_values(values.unwrap_or_else(|| self.warm(physical)), stamp)
    }

    /// The same, with codes that are written while others read them.
    pub(crate) fn unpacked_copy(&self, stamp: Stamp, live: &[u64], physical: PhysicalType) -> Block {
        if self.values.have_slots_of_their_own() {
            return self.copy(stamp, live, physical);
        }
        let slots = self.slots();
        let values = match &self.values {
            Values::Null => None,
            Values::Fixed(values) => values.unpacked_copy(slots, physical).map(Values::Fixed),
            Values::Text(values) => values.unpacked_copy(slots, live).map(Values::Text),
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
            Values::Text(values) => Values::Text(TextValues::Views(values.warm(self.slots()))),
            Values::Null | Values::Fixed(_) => self.encoded(physical, false),
        }
    }

    /// The numbers in the encoding that suits them alone: a cold one, or one that is written in place.
    fn encoded(&self, physical: PhysicalType, is_cold: bool) -> Values {
        with_fixed!(
            physical,
            T => {
                let mut values = vec![T::default(); self.slots()];
                self.decode_fixed(T::PHYSICAL, 0, &mut values);
                let Some((min, max)) = range_of(&values) else { return Values::Null };
                Values::Fixed(match is_cold {
                    true => choose::encode(&values, min, max, self.slots(), Form::Cold(Compression::Auto)),
                    false => encode_plain(&values, min, max, self.slots(), true),
                })
            },
            unreachable!("strings have no fixed width")
        )
    }

    fn copy_validity(&self) -> Option<Validity> {
        self.validity
            .as_ref()
            .map(|words| words.iter().map(|word| AtomicU64::new(word.load(Relaxed))).collect())
    }
}
