//! Bytes to a block: whatever the bytes are, the result is a block whose values can be read, or an error.
//! What follows the header is read by the block's encoding.

use super::reader::{Flaw, Reader, SHORT};
use super::{Column, HAS_VALIDITY, IS_ASCENDING, PHYSICAL, Shared, VERSION};
use crate::BLOCK_ROWS;
use crate::block::{Block, FixedValues, Meaning, TextValues, Values};
use crate::value::Zone;
use entasis_vector::{Error, ErrorKind, PhysicalType, Result, Value};

/// The block of a column that [`super::write`] wrote as these bytes. `shared` is what it shares with others.
///
/// # Errors
/// Corruption, if the bytes are no such block.
pub fn read(bytes: &[u8], column: Column, shared: &Shared) -> Result<Block> {
    Reader::new(bytes, column, shared).block().map_err(damaged)
}

/// The error of what is wrong.
pub(super) fn damaged(flaw: Flaw) -> Error {
    Error::new(ErrorKind::Corruption, format!("a block is damaged: {flaw}"))
}

/// False if the bounds of a block are integers beyond its codes. Digests of columns rely on this check.
fn bounds_have_codes(block: &Block) -> bool {
    let Meaning::Linear { base, factor, codes } = block.values.meaning() else { return true };
    match (&block.zone.min, &block.zone.max) {
        (Value::Integer(low), Value::Integer(high)) => {
            let reach = high.checked_sub(base).map(|most| most / i128::from(factor.max(1)));
            base <= *low && reach.is_some_and(|reach| reach <= codes.max().into())
        }
        _ => true,
    }
}

impl Reader<'_> {
    fn block(&mut self) -> Result<Block, Flaw> {
        let version = self.u8()?;
        self.check(version == VERSION, "its version is not known")?;
        let (code, flags, physical) = (self.u8()?, self.u8()?, self.u8()?);
        self.check(flags & !(HAS_VALIDITY | IS_ASCENDING) == 0, "its flags are not known")?;
        self.check(
            PHYSICAL.get(usize::from(physical)) == Some(&self.column.physical),
            "it is of another type",
        )?;
        let slots = usize::from(self.u16()?);
        self.check((1..=BLOCK_ROWS).contains(&slots), "its number of slots")?;
        let (min, max) = (self.value()?, self.value()?);
        let nulls = self.cursor.u32().ok_or(SHORT)?;
        let are_bounds = self.is_of_type(&min) && self.is_of_type(&max) && min.is_null() == max.is_null();
        // The count of NULLs may exceed the slots: it includes rows that were removed.
        self.check(are_bounds && min.total_cmp(&max).is_le(), "its zone")?;
        let mut validity = Vec::new();
        if flags & HAS_VALIDITY != 0 {
            for _ in 0..slots.div_ceil(64) {
                validity.push(self.cursor.u64().ok_or(SHORT)?);
            }
        }
        let values = self.values(code, slots)?;
        self.check(self.cursor.left() == 0, "more bytes than it has")?;
        let validity = (flags & HAS_VALIDITY != 0).then_some(&validity[..]);
        let block = Block::new(slots, values, validity, Zone { min, max, nulls }, flags & IS_ASCENDING != 0);
        let physical = self.column.physical;
        let is_digested = physical.is_integer() && physical.width() <= 8 && !block.may_be_null();
        self.check(!is_digested || bounds_have_codes(&block), "its zone is not that of its codes")?;
        Ok(block)
    }

    /// Values of so many slots under an encoding.
    fn values(&mut self, code: u8, slots: usize) -> Result<Values, Flaw> {
        match self.column.physical {
            PhysicalType::Str => TextValues::read(code, self, slots).map(Values::of_text),
            _ => FixedValues::read(code, self, slots).map(Values::of_fixed),
        }
    }
}
