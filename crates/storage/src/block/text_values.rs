//! Strings, whatever their encoding is: each method calls that of the encoding.

use super::codec::TextCodec;
use super::serialized::Shared;
use super::{TextValues, Views, map_text_codec, with_text_codec};
use entasis_vector::{StringHeap, StringView};

impl TextValues {
    /// See [`TextCodec::get`].
    #[inline]
    pub(crate) fn get(&self, slot: usize) -> &[u8] {
        with_text_codec!(self, own => own.get(slot))
    }

    /// See [`TextCodec::view`].
    pub(super) fn view(&self, slot: usize, heap: &mut StringHeap) -> StringView {
        with_text_codec!(self, own => own.view(slot, heap))
    }

    /// See [`TextCodec::views`].
    pub(super) fn views(&self, from: usize, live: &[u64], out: &mut [StringView], heap: &mut StringHeap) {
        with_text_codec!(self, own => own.views(from, live, out, heap));
    }

    /// See [`TextCodec::has_codes`].
    pub(super) fn have_codes(&self) -> bool {
        with_text_codec!(self, own => own.has_codes())
    }

    /// See [`TextCodec::narrow`].
    pub(super) fn narrow(&self, bytes: &[u8], masks: &mut [u64]) {
        with_text_codec!(self, own => own.narrow(bytes, masks));
    }

    /// See [`TextCodec::shared`].
    pub(super) fn shared(&self) -> Shared {
        with_text_codec!(self, own => own.shared())
    }

    /// See [`TextCodec::fits`].
    #[inline]
    pub(super) fn fit(&self, bytes: &[u8]) -> bool {
        with_text_codec!(self, own => own.fits(bytes))
    }

    /// See [`TextCodec::store`].
    #[inline]
    pub(super) fn store(&self, slot: usize, bytes: &[u8]) {
        with_text_codec!(self, own => own.store(slot, bytes));
    }

    /// See [`TextCodec::copy`].
    pub(super) fn copy(&self, slots: usize, live: &[u64]) -> TextValues {
        map_text_codec!(self, own => own.copy(slots, live))
    }

    /// See [`TextCodec::unpacked_copy`].
    pub(super) fn unpacked_copy(&self, slots: usize, live: &[u64]) -> Option<TextValues> {
        Some(map_text_codec!(self, own => own.unpacked_copy(slots, live)?))
    }

    /// The strings, to be written in place.
    pub(super) fn warm(&self, slots: usize) -> Views {
        with_text_codec!(self, own => match own.decompressed() {
            Some(strings) => Views::new(slots, slots, |slot| strings.get(slot)),
            None => Views::new(slots, slots, |slot| own.get(slot)),
        })
    }
}
