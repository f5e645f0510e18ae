//! The values of a block: numbers ([`FixedValues`]) or strings ([`TextValues`]), whose methods call those of
//! the encoding; those for both are here.
//!
//! A column has one type, so nobody asks a block of strings for numbers, or the other way round. The types
//! say it wherever only one of the two can be met; a block as a whole finds nothing if it is asked all the
//! same.

use super::codec::Codec;
use super::example::Example;
use super::serialized::BlockWriter;
use super::{Constant, FixedValues, Meaning, TextValues, Values, with_fixed_codec, with_text_codec};
use crate::node::Ahead;
use crate::value::Datum;
use entasis_vector::{Buffer, PhysicalType, Value};

/// Methods that are those of the codec, for all encodings.
macro_rules! codec_methods {
    ($values:ident, $with:ident) => {
        impl $values {
            /// See [`Codec::buffer_mut`].
            pub(crate) fn buffer_mut(&mut self) -> Option<&mut Buffer> {
                $with!(self, own => own.buffer_mut())
            }

            /// See [`Codec::ahead`].
            pub(crate) fn ahead(&self, slots: usize) -> Ahead {
                $with!(self, own => own.ahead(slots))
            }

            /// See [`Codec::bytes`].
            pub(crate) fn bytes(&self) -> usize {
                $with!(self, own => own.bytes())
            }

            /// See [`Codec::name`].
            pub(crate) fn name(&self) -> &'static str {
                $with!(self, own => own.name())
            }

            /// See [`Codec::is_writable`].
            pub(super) fn are_writable(&self) -> bool {
                $with!(self, own => own.is_writable())
            }

            /// See [`Codec::has_slots_of_their_own`].
            #[inline]
            pub(super) fn have_slots_of_their_own(&self) -> bool {
                $with!(self, own => own.has_slots_of_their_own())
            }

            /// See [`Codec::write`].
            pub(super) fn write(&self, out: &mut BlockWriter<'_>) {
                $with!(self, own => own.write(out));
            }
        }
    };
}
codec_methods!(FixedValues, with_fixed_codec);
codec_methods!(TextValues, with_text_codec);

impl Values {
    /// One value for all slots, which may be NULL.
    pub(crate) fn of_value(value: Value) -> Values {
        match value {
            Value::Null => Values::Null,
            Value::Text(_) | Value::Bytes(_) => Values::Text(TextValues::Constant(Constant(value))),
            value => Values::Fixed(FixedValues::Constant(Constant(value))),
        }
    }

    /// Numbers, or NULL in every slot.
    pub(super) fn of_fixed(values: FixedValues) -> Values {
        match values {
            FixedValues::Constant(Constant(Value::Null)) => Values::Null,
            values => Values::Fixed(values),
        }
    }

    /// Strings, or NULL in every slot.
    pub(super) fn of_text(values: TextValues) -> Values {
        match values {
            TextValues::Constant(Constant(Value::Null)) => Values::Null,
            values => Values::Text(values),
        }
    }

    /// The value, if it is one for all slots.
    pub(crate) fn value(&self) -> Option<&Value> {
        match self {
            Values::Null => Some(&Value::Null),
            Values::Fixed(FixedValues::Constant(Constant(value)))
            | Values::Text(TextValues::Constant(Constant(value))) => Some(value),
            Values::Fixed(_) | Values::Text(_) => None,
        }
    }

    /// The numbers; `None` if there are none.
    #[inline]
    pub(crate) fn fixed(&self) -> Option<&FixedValues> {
        debug_assert!(!matches!(self, Values::Text(_)), "strings have no fixed width");
        match self {
            Values::Fixed(values) => Some(values),
            Values::Null | Values::Text(_) => None,
        }
    }

    /// The strings; `None` if there are none.
    #[inline]
    pub(crate) fn text(&self) -> Option<&TextValues> {
        debug_assert!(!matches!(self, Values::Fixed(_)), "numbers are no strings");
        match self {
            Values::Text(values) => Some(values),
            Values::Null | Values::Fixed(_) => None,
        }
    }

    /// See [`Codec::buffer_mut`].
    pub(crate) fn buffer_mut(&mut self) -> Option<&mut Buffer> {
        match self {
            Values::Null => None,
            Values::Fixed(values) => values.buffer_mut(),
            Values::Text(values) => values.buffer_mut(),
        }
    }

    /// See [`Codec::ahead`].
    pub(super) fn ahead(&self, slots: usize) -> Ahead {
        match self {
            Values::Null => Ahead::NONE,
            Values::Fixed(values) => values.ahead(slots),
            Values::Text(values) => values.ahead(slots),
        }
    }

    /// See [`Codec::bytes`].
    pub(crate) fn bytes(&self) -> usize {
        match self {
            Values::Null => 0,
            Values::Fixed(values) => values.bytes(),
            Values::Text(values) => values.bytes(),
        }
    }

    /// See [`Codec::name`].
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Values::Null => Constant::NAME,
            Values::Fixed(values) => values.name(),
            Values::Text(values) => values.name(),
        }
    }

    /// The number of the encoding in files.
    pub(crate) fn code(&self) -> u8 {
        match self {
            // As a constant.
            Values::Null => 0,
            Values::Fixed(values) => values.code(),
            Values::Text(values) => values.code(),
        }
    }

    /// See [`Codec::is_writable`].
    pub(crate) fn are_writable(&self) -> bool {
        match self {
            Values::Null => true,
            Values::Fixed(values) => values.are_writable(),
            Values::Text(values) => values.are_writable(),
        }
    }

    /// See [`Codec::has_slots_of_their_own`].
    #[inline]
    pub(super) fn have_slots_of_their_own(&self) -> bool {
        match self {
            Values::Null => true,
            Values::Fixed(values) => values.have_slots_of_their_own(),
            Values::Text(values) => values.have_slots_of_their_own(),
        }
    }

    /// The value in a slot that is not NULL.
    #[inline]
    pub(crate) fn datum(&self, slot: usize, held: PhysicalType) -> Datum<'_> {
        match self {
            Values::Null => Datum::Null,
            Values::Fixed(values) => values.datum(slot, held),
            Values::Text(values) => Datum::Bytes(values.get(slot)),
        }
    }

    /// See [`FixedValues::meaning`].
    pub(crate) fn meaning(&self) -> Meaning<'_> {
        match self {
            Values::Fixed(values) => values.meaning(),
            Values::Null | Values::Text(_) => Meaning::Other,
        }
    }
}

/// The examples of all encodings. Those that come about only by writing have none.
pub fn examples() -> impl Iterator<Item = &'static Example> {
    let of_texts = TextValues::EXAMPLES.iter().copied().flatten();
    // Constants are numbers or texts.
    let of_texts = of_texts.filter(|example| example.encoding != Constant::NAME);
    FixedValues::EXAMPLES.iter().copied().flatten().chain(of_texts)
}
