//! Texts, bytes, JSON and UUIDs.
//!
//! Long strings are copied to the vector's own heap, or, if the array has views of them, its buffers are
//! shared with the heap. Texts and bytes are read as one another, byte for byte, since programs often declare
//! one and mean the other; a text must be UTF-8, and a UUID has sixteen bytes.

use super::slice::Slice;
use arrow_array::cast::AsArray;
use arrow_array::types::ByteViewType;
use arrow_array::{Array, GenericByteViewArray};
use arrow_data::ByteView;
use arrow_schema::DataType as ArrowType;
use entasis_vector::expr::json_text::check_json;
use entasis_vector::string::INLINE_BYTES;
use entasis_vector::vector::{StringsMut, uuid_to_ordered};
use entasis_vector::{DataType, Error, Result, StringView, Vector};

/// The most buffers of an array of views that are shared: each adds a little cost to every chunk.
const SHARED_BUFFERS: usize = 16;

impl Slice<'_> {
    /// Reads texts or bytes; false if the array has neither.
    ///
    /// # Errors
    /// Input, if bytes are no text.
    pub(super) fn read_strings(self, ty: DataType, out: &mut Vector) -> Result<bool> {
        match self.array.data_type() {
            ArrowType::Utf8 => {
                let array = self.array.as_string::<i32>();
                self.copy_strings(out, |place| array.value(place).as_bytes());
            }
            ArrowType::LargeUtf8 => {
                let array = self.array.as_string::<i64>();
                self.copy_strings(out, |place| array.value(place).as_bytes());
            }
            ArrowType::Utf8View => self.share_strings(self.array.as_string_view(), out),
            ArrowType::Binary => {
                let array = self.array.as_binary::<i32>();
                self.check_bytes(ty, |place| array.value(place))?;
                self.copy_strings(out, |place| array.value(place));
            }
            ArrowType::LargeBinary => {
                let array = self.array.as_binary::<i64>();
                self.check_bytes(ty, |place| array.value(place))?;
                self.copy_strings(out, |place| array.value(place));
            }
            ArrowType::BinaryView => {
                let array = self.array.as_binary_view();
                self.check_bytes(ty, |place| array.value(place))?;
                self.share_strings(array, out);
            }
            ArrowType::FixedSizeBinary(_) if ty == DataType::Blob => {
                let array = self.array.as_fixed_size_binary();
                self.copy_strings(out, |place| array.value(place));
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Checks that bytes are what `ty` asks for.
    fn check_bytes<'b>(self, ty: DataType, bytes: impl Fn(usize) -> &'b [u8]) -> Result<()> {
        let is_text = |row| self.is_null(row) || std::str::from_utf8(bytes(self.offset + row)).is_ok();
        match ty == DataType::Blob || (0..self.rows).all(is_text) {
            true => Ok(()),
            false => Err(self.unfit(ty, "it is not UTF-8")),
        }
    }

    /// Reads texts that are JSON; false if the array has no texts.
    ///
    /// # Errors
    /// Input, if one is no JSON.
    pub(super) fn read_json(self, out: &mut Vector) -> Result<bool> {
        if !self.read_strings(DataType::Varchar, out)? {
            return Ok(false);
        }
        let views = out.values::<StringView>();
        let mut valid = (0..self.rows).filter(|&row| !self.is_null(row));
        valid.try_for_each(|row| check_json(views[row].as_str()))?;
        Ok(true)
    }

    /// Reads UUIDs; false if the array has no bytes.
    ///
    /// # Errors
    /// Input, if a value has another length.
    pub(super) fn read_uuids(self, out: &mut Vector) -> Result<bool> {
        match self.array.data_type() {
            ArrowType::FixedSizeBinary(16) => {
                let array = self.array.as_fixed_size_binary();
                self.copy_uuids(out, |place| array.value(place))?;
            }
            ArrowType::Binary => {
                let array = self.array.as_binary::<i32>();
                self.copy_uuids(out, |place| array.value(place))?;
            }
            ArrowType::LargeBinary => {
                let array = self.array.as_binary::<i64>();
                self.copy_uuids(out, |place| array.value(place))?;
            }
            ArrowType::BinaryView => {
                let array = self.array.as_binary_view();
                self.copy_uuids(out, |place| array.value(place))?;
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn copy_uuids<'b>(self, out: &mut Vector, bytes: impl Fn(usize) -> &'b [u8]) -> Result<()> {
        let values = &mut out.begin_flat::<i128>(self.capacity())[..self.rows];
        for (row, value) in values.iter_mut().enumerate() {
            *value = match <[u8; 16]>::try_from(bytes(self.offset + row)) {
                Ok(bytes) => uuid_to_ordered(i128::from_be_bytes(bytes)),
                Err(_) if self.is_null(row) => 0,
                Err(_) => return Err(self.unfit(DataType::Uuid, "a UUID has 16 bytes")),
            };
        }
        Ok(())
    }

    /// The error of a value that is none of `ty`.
    fn unfit(self, ty: DataType, reason: &str) -> Error {
        Error::input(reason).with_context(format!("cannot read {} as {ty}", self.array.data_type()))
    }

    /// Strings that are views: short ones are copied, the buffers of long ones are shared.
    fn share_strings<T: ByteViewType>(self, array: &GenericByteViewArray<T>, out: &mut Vector) {
        let Slice { offset, rows, .. } = self;
        let buffers = array.data_buffers();
        if buffers.len() > SHARED_BUFFERS {
            return self.copy_strings(out, |place| array.value(place).as_ref());
        }
        let StringsMut { views, heap } = out.begin_strings(self.capacity());
        let numbers: Vec<usize> = buffers.iter().map(|buffer| heap.adopt(buffer.clone())).collect();
        for (row, (view, &theirs)) in views.iter_mut().zip(&array.views()[offset..offset + rows]).enumerate()
        {
            *view = match ByteView::from(theirs) {
                _ if array.is_null(offset + row) => StringView::default(),
                ByteView { length, .. } if length as usize <= INLINE_BYTES => {
                    StringView::inline(&theirs.to_le_bytes()[4..][..length as usize])
                }
                long => {
                    let start = long.offset as usize;
                    heap.view(numbers[long.buffer_index as usize], start..start + long.length as usize)
                }
            };
        }
    }

    fn copy_strings<'b>(self, out: &mut Vector, bytes: impl Fn(usize) -> &'b [u8]) {
        let Slice { array, offset, rows } = self;
        let StringsMut { views, heap } = out.begin_strings(self.capacity());
        if array.null_count() == 0 {
            for (row, view) in views[..rows].iter_mut().enumerate() {
                *view = heap.push(bytes(offset + row));
            }
        } else {
            for (row, view) in views[..rows].iter_mut().enumerate() {
                *view = if array.is_valid(offset + row) {
                    heap.push(bytes(offset + row))
                } else {
                    Default::default()
                };
            }
        }
    }
}
