//! A vector: the values of one column of a chunk, still encoded where that helps.
//!
//! | encoding | `values` holds | validity covers |
//! |---|---|---|
//! | [`Encoding::Flat`] | one value per position | positions |
//! | [`Encoding::Constant`] | the value, once | position 0 |
//! | [`Encoding::Dictionary`] | one `u32` code per position | positions; the dictionary itself holds no NULL |
//!
//! *Positions* are not rows: a chunk's [`crate::Selection`] says which positions are rows. Values at NULL
//! positions and at positions that are not selected are arbitrary but initialized, and no kernel may raise an
//! error for them.
//!
//! A vector shares its memory by `Arc`. Cloning it is three counter increments; writing goes through
//! [`Vector::begin_flat`] and its siblings, which reuse the memory if no clone is left and take new memory
//! otherwise. Hence an operator may write the same vector for every chunk and never allocates once the
//! pipeline is warm.

use crate::bitmap;
use crate::buffer::{Buffer, Native, unique};
use crate::string::{StringHeap, StringView};
use crate::types::{DataType, Interval, PhysicalType};
use crate::value::Value;
use crate::{CHUNK_ROWS, Error, Result};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// How the positions of a vector map to values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Encoding {
    /// Each position has its value.
    Flat,
    /// All positions have one value.
    Constant,
    /// Each position has a code, the index of its value in a [`Dictionary`].
    Dictionary,
}

/// Distinct values that codes refer to. Immutable and shared: by the blocks of a row group, later of a table.
#[derive(Debug)]
pub struct Dictionary {
    id: u64,
    values: Vector,
    len: usize,
}

static NEXT_DICTIONARY: AtomicU64 = AtomicU64::new(1);

impl Dictionary {
    /// A dictionary of the first `len` positions of a flat vector without NULLs. The vector keeps its strings
    /// alive.
    pub fn new(mut values: Vector, len: usize) -> Arc<Dictionary> {
        debug_assert!(values.encoding == Encoding::Flat && values.validity.is_none());
        values.end_charge();
        Arc::new(Dictionary { id: NEXT_DICTIONARY.fetch_add(1, Ordering::Relaxed), values, len })
    }
    /// A number that no other dictionary of this process has: what caches of per-code results are keyed by.
    pub fn id(&self) -> u64 {
        self.id
    }
    /// The values, flat, one per code.
    pub fn values(&self) -> &Vector {
        &self.values
    }
    /// Number of codes.
    pub fn len(&self) -> usize {
        self.len
    }
    /// True without any code.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
}

/// The values of one column of a chunk. See the module.
#[derive(Debug, Clone)]
pub struct Vector {
    ty: PhysicalType,
    encoding: Encoding,
    strings_are_stable: bool,
    values: Arc<Buffer>,
    /// Bits of the positions, 1 = valid. Absent: all valid.
    validity: Option<Arc<Buffer>>,
    /// A validity buffer kept for the next chunk that has NULLs.
    spare_validity: Option<Arc<Buffer>>,
    dictionary: Option<Arc<Dictionary>>,
    heap: Option<Arc<StringHeap>>,
}

/// The parts of a flat vector of strings while it is written.
pub struct StringsMut<'a> {
    /// One view per position.
    pub views: &'a mut [StringView],
    /// Where the bytes of long strings go.
    pub heap: &'a mut StringHeap,
}

impl Vector {
    /// An empty flat vector of `ty`. Allocates one cache line.
    pub fn new(ty: PhysicalType) -> Vector {
        Vector {
            ty,
            encoding: Encoding::Flat,
            strings_are_stable: false,
            values: Arc::new(Buffer::zeroed(0)),
            validity: None,
            spare_validity: None,
            dictionary: None,
            heap: None,
        }
    }

    /// A flat vector without NULLs that holds a copy of `values`.
    pub fn from_slice<T: Native>(values: &[T]) -> Vector {
        Vector { values: Arc::new(Buffer::from_slice(values)), ..Vector::new(T::PHYSICAL) }
    }

    /// A flat vector of `ty` over `values`, one value per position. `validity` holds a bit per position.
    pub fn from_buffer(ty: PhysicalType, values: Arc<Buffer>, validity: Option<Arc<Buffer>>) -> Vector {
        Vector { values, validity, ..Vector::new(ty) }
    }

    /// A flat vector of `ty` from single values as vectors hold them; see [`Vector::of_values`].
    ///
    /// # Errors
    /// Internal, if a value is not of `ty`.
    pub fn from_values(ty: PhysicalType, values: &[Value]) -> Result<Vector> {
        let mut vector = Vector::new(ty);
        vector.begin_values(values);
        for (i, value) in values.iter().enumerate() {
            vector.write_value(i, value)?;
        }
        Ok(vector)
    }

    /// A flat vector of values of the type `ty`.
    ///
    /// # Errors
    /// Internal, if a value is not of `ty`.
    pub fn of_values(ty: DataType, values: &[Value]) -> Result<Vector> {
        Vector::of_values_held(ty.physical(), ty, values)
    }

    /// The same, held in `physical`, which may be narrower than the type's own.
    ///
    /// # Errors
    /// Internal, if a value is not of `ty`, or does not fit.
    pub fn of_values_held(physical: PhysicalType, ty: DataType, values: &[Value]) -> Result<Vector> {
        let mut vector = Vector::new(physical);
        vector.begin_values(values);
        for (i, value) in values.iter().enumerate() {
            vector.write_value_of(i, value, ty)?;
        }
        Ok(vector)
    }

    /// A constant vector of `ty`.
    ///
    /// # Errors
    /// Internal, if the value is not of `ty`.
    pub fn constant(ty: PhysicalType, value: &Value) -> Result<Vector> {
        let mut vector = Vector::from_values(ty, std::slice::from_ref(value))?;
        vector.encoding = Encoding::Constant;
        Ok(vector)
    }

    /// How this vector's values are held.
    pub fn physical(&self) -> PhysicalType {
        self.ty
    }
    /// How positions map to values.
    pub fn encoding(&self) -> Encoding {
        self.encoding
    }
    /// True if every position has the same value.
    pub fn is_constant(&self) -> bool {
        self.encoding == Encoding::Constant
    }
    /// True if strings in this vector outlive the statement's use of them, so that an operator may keep their
    /// views. Otherwise they live as long as a clone of this vector.
    pub fn strings_are_stable(&self) -> bool {
        self.strings_are_stable
    }
    /// Declares that the strings belong to something that the statement has pinned until its end.
    pub fn set_strings_stable(&mut self, stable: bool) {
        self.strings_are_stable = stable;
    }
    /// The dictionary of a dictionary vector.
    pub fn dictionary(&self) -> Option<&Arc<Dictionary>> {
        self.dictionary.as_ref()
    }
    /// The heap that holds this vector's own long strings.
    pub fn heap(&self) -> Option<&Arc<StringHeap>> {
        self.heap.as_ref()
    }

    /// The values of a flat vector (one per position, as many as the buffer holds) or of a constant one (at
    /// 0).
    #[inline(always)]
    pub fn values<T: Native>(&self) -> &[T] {
        debug_assert!(self.encoding != Encoding::Dictionary, "a dictionary vector holds codes");
        debug_assert!(size_of::<T>() == self.ty.width(), "{:?} is not held as {:?}", self.ty, T::PHYSICAL);
        self.values.as_slice::<T>()
    }

    /// What holds the values of a flat or constant vector.
    pub fn values_buffer(&self) -> &Arc<Buffer> {
        debug_assert!(self.encoding != Encoding::Dictionary, "a dictionary vector holds codes");
        &self.values
    }

    /// The codes of a dictionary vector, one per position.
    #[inline(always)]
    pub fn codes(&self) -> &[u32] {
        debug_assert!(self.encoding == Encoding::Dictionary);
        self.values.as_slice::<u32>()
    }

    /// Validity words, or `None` if no position is NULL. For a constant, bit 0 stands for all positions.
    #[inline(always)]
    pub fn validity(&self) -> Option<&[u64]> {
        self.validity.as_ref().map(|buffer| buffer.as_slice::<u64>())
    }

    /// The validity buffer, to be shared with a result that is NULL in the same places.
    pub fn validity_buffer(&self) -> Option<&Arc<Buffer>> {
        self.validity.as_ref()
    }

    /// True if the value at `position` is not NULL.
    #[inline(always)]
    pub fn is_valid(&self, position: usize) -> bool {
        match self.validity() {
            None => true,
            Some(words) => bitmap::get(words, if self.is_constant() { 0 } else { position }),
        }
    }

    // ---- writing ------------------------------------------------------------------------------------------

    /// Starts writing a flat vector of `capacity` positions, all valid, of this vector's type; old contents
    /// are gone.
    pub fn begin(&mut self, capacity: usize) {
        self.encoding = Encoding::Flat;
        self.dictionary = None;
        self.strings_are_stable = false;
        if let Some(validity) = self.validity.take() {
            self.spare_validity = Some(validity);
        }
        unique(&mut self.values, capacity * self.ty.width());
        if let Some(heap) = &mut self.heap {
            match Arc::get_mut(heap) {
                Some(heap) => heap.clear(),
                None => self.heap = None,
            }
        }
    }

    /// [`Vector::begin`] for these values, with a validity for all of them if one is NULL.
    fn begin_values(&mut self, values: &[Value]) {
        self.begin(values.len());
        if values.contains(&Value::Null) {
            self.validity_mut(values.len());
        }
    }

    /// [`Vector::begin`], then the values to write.
    #[inline]
    pub fn begin_flat<T: Native>(&mut self, capacity: usize) -> &mut [T] {
        debug_assert!(size_of::<T>() == self.ty.width());
        self.begin(capacity);
        self.values_mut()
    }

    /// [`Vector::begin`] for strings, then views and heap to write.
    pub fn begin_strings(&mut self, capacity: usize) -> StringsMut<'_> {
        debug_assert!(self.ty == PhysicalType::Str);
        self.begin(capacity);
        self.strings_mut()
    }

    /// Starts writing codes of `dictionary`, all positions valid.
    pub fn begin_codes(&mut self, dictionary: &Arc<Dictionary>, capacity: usize) -> &mut [u32] {
        self.begin(0);
        self.ty = dictionary.values.ty;
        self.encoding = Encoding::Dictionary;
        self.strings_are_stable = dictionary.values.strings_are_stable;
        self.dictionary = Some(dictionary.clone());
        unique(&mut self.values, capacity * 4).as_mut_slice::<u32>()
    }

    /// Turns a flat vector that has just been written at position 0 into a constant.
    pub fn make_constant(&mut self) {
        debug_assert!(self.encoding == Encoding::Flat);
        self.encoding = Encoding::Constant;
    }

    /// The values of a vector that this owner has begun to write.
    #[inline]
    pub fn values_mut<T: Native>(&mut self) -> &mut [T] {
        let capacity = self.values.capacity();
        unique(&mut self.values, capacity).as_mut_slice::<T>()
    }

    /// Views and heap of a vector of strings that this owner has begun to write.
    pub fn strings_mut(&mut self) -> StringsMut<'_> {
        let heap = self.heap.get_or_insert_with(|| Arc::new(StringHeap::charged()));
        if Arc::get_mut(heap).is_none() {
            *heap = Arc::new(StringHeap::charged());
        }
        let capacity = self.values.capacity();
        StringsMut {
            views: unique(&mut self.values, capacity).as_mut_slice(),
            heap: Arc::get_mut(heap).expect("just made unique"),
        }
    }

    /// Validity words to write, enough for `positions`; all ones if there were none yet.
    pub fn validity_mut(&mut self, positions: usize) -> &mut [u64] {
        let bytes = bitmap::words_for(positions.max(1)) * 8;
        if self.validity.is_none() {
            let mut buffer =
                self.spare_validity.take().unwrap_or_else(|| Arc::new(Buffer::zeroed(CHUNK_ROWS / 8)));
            unique(&mut buffer, bytes).as_mut_slice::<u64>().fill(u64::MAX);
            self.validity = Some(buffer);
        }
        let buffer = self.validity.as_mut().expect("just set");
        if Arc::get_mut(buffer).is_none() || buffer.capacity() < bytes {
            let mut copy = Buffer::zeroed(bytes.max(buffer.capacity()));
            copy.as_mut_slice::<u64>().fill(u64::MAX);
            copy.as_mut_slice::<u64>()[..buffer.as_slice::<u64>().len()].copy_from_slice(buffer.as_slice());
            *buffer = Arc::new(copy);
        }
        Arc::get_mut(buffer).expect("just made unique").as_mut_slice()
    }

    /// Replaces the validity: `None` makes all positions valid.
    pub fn set_validity(&mut self, validity: Option<Arc<Buffer>>) {
        self.validity = validity;
    }

    /// Makes `position` NULL. Whoever writes more than a chunk asks for [`Vector::validity_mut`] of all
    /// positions before.
    #[inline]
    pub fn set_null(&mut self, position: usize) {
        bitmap::set(self.validity_mut(position + 1), position, false);
    }

    /// Shares the owner of `source`'s strings, whose views have been copied into this vector.
    pub fn share_strings(&mut self, source: &Vector) {
        let dictionary = source.dictionary.as_ref().map(|d| &d.values);
        self.heap = dictionary.unwrap_or(source).heap.clone();
        self.strings_are_stable = source.strings_are_stable;
    }

    /// Takes the values of `source`, in its encoding, without a copy; all positions are valid. Old contents
    /// are gone. [`Vector::drop_values`] ends the sharing.
    pub fn share_values(&mut self, source: &Vector) {
        let spare_validity = self.validity.take().or_else(|| self.spare_validity.take());
        *self = Vector { validity: None, spare_validity, ..source.clone() };
    }

    /// Gives up the values, which may be another vector's; memory for a validity is kept.
    pub fn drop_values(&mut self) {
        let spare_validity = self.validity.take().or_else(|| self.spare_validity.take());
        *self = Vector { spare_validity, ..Vector::new(self.ty) };
    }

    /// Gives up the owner of the strings, which may be another vector's; memory for views is kept.
    pub fn drop_strings(&mut self) {
        self.heap = None;
        self.strings_are_stable = false;
    }

    /// Ends the charge of its own strings to the statement of this thread: whoever keeps them counts them.
    pub fn end_charge(&mut self) {
        if let Some(heap) = self.heap.as_mut().and_then(Arc::get_mut) {
            heap.end_charge();
        }
    }

    /// Shares the owner of long strings whose views are written to this vector.
    pub fn share_heap(&mut self, heap: &Arc<StringHeap>) {
        self.heap = Some(heap.clone());
    }

    // ---- single values ------------------------------------------------------------------------------------

    /// The value at `position` of a vector that holds `ty`.
    pub fn value(&self, position: usize, ty: DataType) -> Value {
        if !self.is_valid(position) {
            return Value::Null;
        }
        match self.encoding {
            Encoding::Flat => self.flat_value(position, ty),
            Encoding::Constant => self.flat_value(0, ty),
            Encoding::Dictionary => {
                let dictionary = self.dictionary.as_ref().expect("a dictionary vector has one");
                dictionary.values.flat_value(self.codes()[position] as usize, ty)
            }
        }
    }

    fn flat_value(&self, i: usize, ty: DataType) -> Value {
        let buffer = &*self.values;
        match self.ty {
            PhysicalType::Bool => Value::Boolean(buffer.as_slice::<u8>()[i] != 0),
            PhysicalType::I8 => Value::Integer(buffer.as_slice::<i8>()[i].into()),
            PhysicalType::I16 => Value::Integer(buffer.as_slice::<i16>()[i].into()),
            PhysicalType::I32 => Value::Integer(buffer.as_slice::<i32>()[i].into()),
            PhysicalType::I64 => Value::Integer(buffer.as_slice::<i64>()[i].into()),
            PhysicalType::I128 if ty == DataType::Uuid => {
                Value::Integer(uuid_from_ordered(buffer.as_slice()[i]))
            }
            PhysicalType::I128 => Value::Integer(buffer.as_slice::<i128>()[i]),
            PhysicalType::U8 => Value::Integer(buffer.as_slice::<u8>()[i].into()),
            PhysicalType::U16 => Value::Integer(buffer.as_slice::<u16>()[i].into()),
            PhysicalType::U32 => Value::Integer(buffer.as_slice::<u32>()[i].into()),
            PhysicalType::U64 => Value::Integer(buffer.as_slice::<u64>()[i].into()),
            PhysicalType::F32 => Value::Float(buffer.as_slice::<f32>()[i].into()),
            PhysicalType::F64 => Value::Float(buffer.as_slice::<f64>()[i]),
            PhysicalType::Interval => Value::Interval(buffer.as_slice::<Interval>()[i]),
            PhysicalType::Str => {
                let view = buffer.as_slice::<StringView>()[i];
                match ty {
                    _ if ty == DataType::Blob || ty.is_nested() => Value::Bytes(Arc::from(view.as_bytes())),
                    _ => Value::Text(Arc::from(view.as_str())),
                }
            }
        }
    }

    /// Writes one value at `position` of a vector that was begun with a capacity beyond it. For tests,
    /// literals and single rows; a UUID is the number that vectors hold ([`uuid_to_ordered`]).
    ///
    /// # Errors
    /// Internal, if the value is not of this vector's type or does not fit it.
    pub fn write_value(&mut self, position: usize, value: &Value) -> Result<()> {
        macro_rules! integer {
            ($t:ty, $v:expr) => {
                self.values_mut::<$t>()[position] = <$t>::try_from(*$v)
                    .map_err(|_| Error::internal(format!("{} does not fit {:?}", $v, self.ty)))?
            };
        }
        match (self.ty, value) {
            (_, Value::Null) => self.set_null(position),
            (PhysicalType::Bool, Value::Boolean(v)) => self.values_mut::<u8>()[position] = u8::from(*v),
            (PhysicalType::Bool, Value::Integer(v)) => self.values_mut::<u8>()[position] = u8::from(*v != 0),
            (PhysicalType::I8, Value::Integer(v)) => integer!(i8, v),
            (PhysicalType::I16, Value::Integer(v)) => integer!(i16, v),
            (PhysicalType::I32, Value::Integer(v)) => integer!(i32, v),
            (PhysicalType::I64, Value::Integer(v)) => integer!(i64, v),
            (PhysicalType::I128, Value::Integer(v)) => self.values_mut::<i128>()[position] = *v,
            (PhysicalType::U8, Value::Integer(v)) => integer!(u8, v),
            (PhysicalType::U16, Value::Integer(v)) => integer!(u16, v),
            (PhysicalType::U32, Value::Integer(v)) => integer!(u32, v),
            (PhysicalType::U64, Value::Integer(v)) => integer!(u64, v),
            (PhysicalType::F32, Value::Float(v)) => self.values_mut::<f32>()[position] = *v as f32,
            (PhysicalType::F64, Value::Float(v)) => self.values_mut::<f64>()[position] = *v,
            (PhysicalType::Interval, Value::Interval(v)) => self.values_mut::<Interval>()[position] = *v,
            (PhysicalType::Str, Value::Text(v)) => self.write_string(position, v.as_bytes()),
            (PhysicalType::Str, Value::Bytes(v)) => self.write_string(position, v),
            (ty, value) => return Err(Error::internal(format!("{value:?} is not a {ty:?}"))),
        }
        Ok(())
    }

    /// Writes one value of the type `ty`, as [`Vector::write_value`] does; a UUID as vectors hold it.
    ///
    /// # Errors
    /// Internal, if the value is not of `ty`.
    pub fn write_value_of(&mut self, position: usize, value: &Value, ty: DataType) -> Result<()> {
        match value {
            Value::Integer(bits) if ty == DataType::Uuid => {
                self.write_value(position, &Value::Integer(uuid_to_ordered(*bits)))
            }
            value => self.write_value(position, value),
        }
    }

    fn write_string(&mut self, position: usize, bytes: &[u8]) {
        let StringsMut { views, heap } = self.strings_mut();
        views[position] = heap.push(bytes);
    }

    // ---- whole vectors ------------------------------------------------------------------------------------

    /// Writes to `out`, flat, the values at `positions` (`None`: the first `rows`), `rows` of them. String
    /// bytes are shared, not copied.
    pub fn flatten_into(&self, positions: Option<&[u16]>, rows: usize, out: &mut Vector) {
        out.ty = self.ty;
        out.begin(rows.max(CHUNK_ROWS));
        out.share_strings(self);
        match self.ty.width() {
            1 => self.gather_values::<u8>(positions, rows, out),
            2 => self.gather_values::<u16>(positions, rows, out),
            4 => self.gather_values::<u32>(positions, rows, out),
            8 => self.gather_values::<u64>(positions, rows, out),
            // Strings and intervals are copied as the sixteen bytes that they are.
            _ => self.gather_values::<i128>(positions, rows, out),
        }
        self.gather_validity(positions, rows, out);
    }

    fn gather_values<T: Native>(&self, positions: Option<&[u16]>, rows: usize, out: &mut Vector) {
        let values = self.values.as_slice::<T>();
        let target = &mut unique(&mut out.values, 0).as_mut_slice::<T>()[..rows];
        match (self.encoding, positions) {
            (Encoding::Flat, None) => target.copy_from_slice(&values[..rows]),
            (Encoding::Flat, Some(at)) => {
                for (t, &p) in target.iter_mut().zip(&at[..rows]) {
                    *t = values[p as usize];
                }
            }
            (Encoding::Constant, _) => target.fill(values[0]),
            (Encoding::Dictionary, _) => {
                let dictionary = self.dictionary.as_ref().expect("a dictionary vector has one");
                let values = dictionary.values.values.as_slice::<T>();
                let codes = self.codes();
                match positions {
                    None => {
                        for (t, &code) in target.iter_mut().zip(codes) {
                            *t = values[code as usize];
                        }
                    }
                    Some(at) => {
                        for (t, &p) in target.iter_mut().zip(&at[..rows]) {
                            *t = values[codes[p as usize] as usize];
                        }
                    }
                }
            }
        }
    }

    fn gather_validity(&self, positions: Option<&[u16]>, rows: usize, out: &mut Vector) {
        let Some(validity) = self.validity() else { return };
        if self.is_constant() {
            if !bitmap::get(validity, 0) {
                out.validity_mut(rows).fill(0);
            }
            return;
        }
        match positions {
            None => {
                let words = bitmap::words_for(rows);
                out.validity_mut(rows)[..words].copy_from_slice(&validity[..words]);
            }
            Some(at) => {
                let target = out.validity_mut(rows);
                for (i, &p) in at[..rows].iter().enumerate() {
                    bitmap::set(target, i, bitmap::get(validity, p as usize));
                }
            }
        }
    }
}

/// A UUID as signed, byte-ordered bits back to the unsigned number (as i128 bits).
pub fn uuid_from_ordered(v: i128) -> i128 {
    v ^ i128::MIN
}

/// A UUID's unsigned number (as i128 bits) to signed, byte-ordered bits; its own inverse.
pub fn uuid_to_ordered(v: i128) -> i128 {
    v ^ i128::MIN
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encodings_give_the_same_values() {
        let flat = Vector::from_values(
            PhysicalType::Str,
            &[Value::Text("x".into()), Value::Null, Value::Text("a text of some length".into())],
        )
        .unwrap();
        assert_eq!(flat.value(1, DataType::Varchar), Value::Null);

        let entries =
            Vector::from_values(PhysicalType::Str, &[Value::Text("b".into()), Value::Text("a".into())])
                .unwrap();
        let dictionary = Dictionary::new(entries, 2);
        let mut coded = Vector::new(PhysicalType::Str);
        coded.begin_codes(&dictionary, 3)[..3].copy_from_slice(&[1, 0, 1]);
        coded.set_null(1);
        let texts: Vec<Value> = (0..3).map(|i| coded.value(i, DataType::Varchar)).collect();
        assert_eq!(texts, [Value::Text("a".into()), Value::Null, Value::Text("a".into())]);

        let mut out = Vector::new(PhysicalType::Str);
        coded.flatten_into(Some(&[2, 1]), 2, &mut out);
        drop((coded, dictionary));
        assert_eq!(out.value(0, DataType::Varchar), Value::Text("a".into()));
        assert_eq!(out.value(1, DataType::Varchar), Value::Null);

        let constant = Vector::constant(PhysicalType::I32, &Value::Integer(7)).unwrap();
        constant.flatten_into(None, 5, &mut out);
        assert_eq!(out.value(4, DataType::Int32), Value::Integer(7));
    }

    #[test]
    fn a_vector_at_rest_is_written_in_place() {
        let mut vector = Vector::new(PhysicalType::I64);
        vector.begin_flat::<i64>(CHUNK_ROWS)[0] = 1;
        vector.set_null(3);
        let clone = vector.clone();
        vector.begin_flat::<i64>(CHUNK_ROWS)[0] = 2;
        assert_eq!(clone.values::<i64>()[0], 1);
        assert!(!clone.is_valid(3) && vector.is_valid(3));
        drop(clone);
        let address = vector.values::<i64>().as_ptr();
        vector.begin_flat::<i64>(CHUNK_ROWS);
        assert_eq!(vector.values::<i64>().as_ptr(), address);
    }
}
