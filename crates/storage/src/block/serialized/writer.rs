//! The parts of a block to bytes: numbers, codes, strings, patches.

use super::{Column, PACKED, texts};
use crate::backend::bytes::push_counted;
use crate::block::packed::Packed;
use crate::block::patches::Patches;
use crate::block::{Codes, StringBytes, cells};
use entasis_vector::{Buffer, Native, Value, bitmap};

/// All slots are live.
const ALL: [u64; crate::BLOCK_ROWS / 64] = [u64::MAX; crate::BLOCK_ROWS / 64];

/// Bytes that are written in sequence, of some slots.
pub(crate) struct BlockWriter<'a> {
    pub(crate) column: Column,
    pub(crate) slots: usize,
    pub(super) live: &'a [u64],
    pub(super) out: &'a mut Vec<u8>,
}

impl BlockWriter<'_> {
    /// What writes the values of so many runs.
    pub(crate) fn of_runs(&mut self, runs: usize) -> BlockWriter<'_> {
        BlockWriter { column: self.column, slots: runs, live: &ALL, out: self.out }
    }

    /// What writes other values that stand for those of the slots.
    pub(crate) fn of_column(&mut self, column: Column) -> BlockWriter<'_> {
        BlockWriter { column, slots: self.slots, live: self.live, out: self.out }
    }

    /// False for slots that others may write meanwhile.
    pub(crate) fn is_live(&self, slot: usize) -> bool {
        slot / 64 < self.live.len() && bitmap::get(self.live, slot)
    }

    /// A number, as its bytes.
    pub(crate) fn number<const BYTES: usize>(&mut self, bytes: [u8; BYTES]) {
        self.out.extend(bytes);
    }

    pub(crate) fn codes(&mut self, codes: &Codes) {
        match codes {
            Codes::U8(buffer) => {
                self.out.push(1);
                self.buffer::<u8>(buffer);
            }
            Codes::U16(buffer) => {
                self.out.push(2);
                self.buffer::<u16>(buffer);
            }
            Codes::U32(buffer) => {
                self.out.push(4);
                self.buffer::<u32>(buffer);
            }
            // These are never written in place, so no slot changes.
            Codes::Packed(packed) => self.packed(packed),
        }
    }

    pub(crate) fn packed(&mut self, packed: &Packed) {
        self.out.push(PACKED + packed.width() as u8);
        self.out.extend_from_slice(packed.buffer().as_slice::<u8>());
    }

    /// The slots of a buffer, with zeros for those that are not live.
    pub(crate) fn buffer<T: Native>(&mut self, buffer: &Buffer) {
        let mut copy = cells::copy::<T>(buffer, self.slots, self.slots);
        let dead = (0..self.slots).filter(|slot| !self.is_live(*slot));
        dead.for_each(|slot| copy.as_mut_slice::<T>()[slot] = T::default());
        self.out.extend_from_slice(&copy.as_slice::<u8>()[..self.slots * size_of::<T>()]);
    }

    pub(crate) fn patches<V: Copy, const BYTES: usize>(
        &mut self,
        patches: &Patches<V>,
        bytes: impl Fn(V) -> [u8; BYTES],
    ) {
        let patches: Vec<(usize, V)> = patches.within(0, self.slots).collect();
        self.number((patches.len() as u16).to_le_bytes());
        patches.iter().for_each(|(slot, _)| self.number((*slot as u16).to_le_bytes()));
        patches.iter().for_each(|(_, value)| self.number(bytes(*value)));
    }

    /// Strings, compressed if that saves much.
    pub(crate) fn texts(&mut self, strings: &StringBytes) {
        texts::write(strings, self.out);
    }

    /// The same, never compressed.
    pub(crate) fn plain_texts(&mut self, strings: &StringBytes) {
        texts::write_plain(strings, self.out);
    }

    /// A value of any type.
    pub(crate) fn value(&mut self, value: &Value) {
        let out = &mut *self.out;
        match value {
            Value::Null => out.push(0),
            Value::Boolean(value) => out.push(1 + u8::from(*value)),
            Value::Integer(value) => {
                out.push(3);
                out.extend(value.to_le_bytes());
            }
            Value::Float(value) => {
                out.push(4);
                out.extend(value.to_le_bytes());
            }
            Value::Text(text) => {
                out.push(5);
                push_counted(out, text.as_bytes());
            }
            Value::Bytes(bytes) => {
                out.push(6);
                push_counted(out, bytes);
            }
            Value::Interval(interval) => {
                out.push(7);
                out.extend(interval.months.to_le_bytes());
                out.extend(interval.days.to_le_bytes());
                out.extend(interval.micros.to_le_bytes());
            }
        }
    }
}
