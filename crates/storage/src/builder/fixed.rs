//! Blocks of values of fixed width.

use super::{ColumnBuilder, Effort, for_each_position};
use crate::BLOCK_ROWS;
use crate::block::choose::encode;
use crate::block::{Block, Fixed, Form, Values, range_of};
use crate::value::{Sketch, Zone};
use entasis_vector::{DataType, Encoding, Error, PhysicalType, Result, Value, Vector, bitmap};
use std::ops::Range;

const WORDS: usize = BLOCK_ROWS / 64;

pub(super) struct FixedBuilder<T> {
    ty: DataType,
    form: Form,
    effort: Effort,
    /// The values of the block that is being filled.
    values: Vec<T>,
    validity: [u64; WORDS],
    nulls: u32,
    /// The blocks that are full.
    blocks: Vec<Block>,
    block_bytes: usize,
    sketch: Sketch,
}

impl<T: Fixed> FixedBuilder<T> {
    pub(super) fn new(ty: DataType, form: Form, effort: Effort) -> FixedBuilder<T> {
        FixedBuilder {
            ty,
            form,
            effort,
            values: Vec::new(),
            validity: [u64::MAX; WORDS],
            nulls: 0,
            blocks: Vec::new(),
            block_bytes: 0,
            sketch: Sketch::default(),
        }
    }

    /// Adds rows that fit the current block.
    fn fill(&mut self, vector: &Vector, positions: Option<&[u16]>, rows: Range<usize>) {
        let start = self.values.len();
        match (vector.encoding(), positions) {
            (Encoding::Flat, None) => self.values.extend_from_slice(&vector.values::<T>()[rows.clone()]),
            (Encoding::Flat, Some(positions)) => {
                let values = vector.values::<T>();
                self.values.extend(positions[rows.clone()].iter().map(|&position| values[position as usize]));
            }
            (Encoding::Constant, _) => self.values.resize(start + rows.len(), vector.values::<T>()[0]),
            (Encoding::Dictionary, _) => {
                let entries =
                    vector.dictionary().expect("a dictionary vector has one").values().values::<T>();
                let codes = vector.codes();
                for_each_position(positions, rows.clone(), |p| self.values.push(entries[codes[p] as usize]));
            }
        }
        if vector.validity().is_some() {
            let mut slot = start;
            for_each_position(positions, rows, |position| {
                if !vector.is_valid(position) {
                    bitmap::set(&mut self.validity, slot, false);
                    self.nulls += 1;
                }
                slot += 1;
            });
        }
    }

    fn seal(&mut self) {
        let rows = self.values.len();
        let slots = rows.max(self.effort.capacity);
        let nulls = self.nulls;
        let block = match self.bounds() {
            None => Block { zone: Zone { nulls, ..Zone::EMPTY }, ..Block::all_null(slots) },
            Some((min, max)) => {
                let values = if nulls == 0 && self.values.iter().all(|v| v.is_same(min)) {
                    Values::of_value(physical_value(min, self.ty))
                } else {
                    self.blank_nulls(min);
                    Values::Fixed(encode(&self.values, min, max, slots, self.form))
                };
                self.count(&values, min);
                let (min, max) = self.zone_values(min, max);
                let ascending = nulls == 0 && self.values.windows(2).all(|pair| pair[0].before(pair[1]));
                let validity = (nulls > 0).then(|| &self.validity[..bitmap::words_for(slots)]);
                Block::new(slots, values, validity, Zone { min, max, nulls }, ascending)
            }
        };
        self.block_bytes += block.bytes();
        self.blocks.push(block);
        self.values.clear();
        self.validity = [u64::MAX; WORDS];
        self.nulls = 0;
    }

    /// The least and the greatest value that is not NULL.
    fn bounds(&self) -> Option<(T, T)> {
        if self.nulls == 0 {
            return range_of(&self.values);
        }
        let mut bounds: Option<(T, T)> = None;
        for (slot, &v) in self.values.iter().enumerate() {
            if bitmap::get(&self.validity, slot) {
                let (min, max) = bounds.get_or_insert((v, v));
                if v.before(*min) {
                    *min = v;
                }
                if max.before(v) {
                    *max = v;
                }
            }
        }
        bounds
    }

    /// Gives each NULL slot the value before it, or `value` if there is none, so that NULL slots neither
    /// widen the codes nor break runs.
    fn blank_nulls(&mut self, value: T) {
        if self.nulls > 0 {
            let mut last = value;
            for (slot, v) in self.values.iter_mut().enumerate() {
                match bitmap::get(&self.validity, slot) {
                    true => last = *v,
                    false => *v = last,
                }
            }
        }
    }

    /// Adds the distinct values to the sketch. NULL slots have other values by now, and count as these.
    fn count(&mut self, values: &Values, min: T) {
        if !self.effort.sketch {
            return;
        }
        match values.value() {
            Some(_) => self.sketch.add(min.hash()),
            None => self.sketch.add_all(&self.values, T::hash),
        }
    }

    fn zone_values(&self, min: T, max: T) -> (Value, Value) {
        match self.ty {
            // A UUID's number does not have the order of UUIDs, so it is no bound.
            DataType::Uuid => (Value::Integer(i128::MIN), Value::Integer(i128::MAX)),
            ty => (min.value(ty), max.value(ty)),
        }
    }
}

/// A value as the column holds it; for UUIDs that is not their number.
fn physical_value<T: Fixed>(value: T, ty: DataType) -> Value {
    value.value(if ty == DataType::Uuid { DataType::Int64 } else { ty })
}

/// The values of rows in a vector of another width than the column's.
fn widened(
    vector: &Vector,
    positions: Option<&[u16]>,
    rows: Range<usize>,
    ty: DataType,
) -> Result<Vec<Value>> {
    if vector.physical() != PhysicalType::I64 || ty.physical() != PhysicalType::I128 {
        return Err(Error::internal(format!("a column of {ty} was given {:?} values", vector.physical())));
    }
    let mut values = Vec::with_capacity(rows.len());
    for_each_position(positions, rows, |position| values.push(vector.value(position, DataType::Int64)));
    Ok(values)
}

impl<T: Fixed> ColumnBuilder for FixedBuilder<T> {
    fn append(&mut self, vector: &Vector, positions: Option<&[u16]>, mut rows: Range<usize>) -> Result<()> {
        if vector.physical().width() != size_of::<T>() {
            // A wide decimal that travels in 64 bits.
            let wide = widened(vector, positions, rows, self.ty)?;
            let rows = 0..wide.len();
            return self.append(&Vector::from_values(self.ty.physical(), &wide)?, None, rows);
        }
        while !rows.is_empty() {
            let part = rows.start..rows.end.min(rows.start + self.effort.block_rows - self.values.len());
            rows.start = part.end;
            self.fill(vector, positions, part);
            if self.values.len() == self.effort.block_rows {
                self.seal();
            }
        }
        Ok(())
    }

    fn finish(&mut self) -> Vec<Block> {
        if !self.values.is_empty() {
            self.seal();
        }
        self.block_bytes = 0;
        std::mem::take(&mut self.blocks)
    }

    fn take_sketch(&mut self) -> Sketch {
        std::mem::take(&mut self.sketch)
    }

    fn bytes(&self) -> usize {
        self.values.capacity() * size_of::<T>() + self.block_bytes
    }
}
