//! What follows from the lists of encodings in [`super`]: the enums of values by encoding, the numbers in
//! files, and how the methods of an encoding are called. A call is one `match` for a block.
//!
//! A row is the number of the encoding in files, which never changes, the type that implements it, and how a
//! block holds that type: itself, or in a box.
//!
//! ```text
//! 12 Multiples: Multiples;       the variant FixedValues::Multiples(Multiples), and the number 12
//! ```
//!
//! The macros take a `$`, so that the macros that they make can have parameters.

/// Declares `FixedValues`, and `Recipe`: how values are to be encoded. There are two lists: of encodings that
/// are made where somebody knows that they suit the values, and of those that `choose` tries, in this order.
macro_rules! fixed_encodings {
    ($d:tt
        made { $($made_code:literal $made:ident: $made_held:ty;)* }
        tried { $($code:literal $own:ident: $held:ty;)* }) => {
        registry::encodings! { $d FixedValues, FixedCodec, with_fixed_codec, map_fixed_codec,
            "its encoding is none of numbers";
            $($made_code $made: $made_held;)* $($code $own: $held;)*
        }

        /// How values are to be encoded.
        pub(crate) enum Recipe {
            /// Plain codes, or flat where those would not be narrower.
            Plain,
            Flat,
            $($own(<$own as codec::Chosen>::Plan),)*
        }

        impl Recipe {
            /// The types that implement the encodings which are tried, and what forces them.
            #[cfg(test)]
            pub(super) const TRIED: &'static [(&'static str, Compression)] =
                &[$((stringify!($own), <$own as codec::Chosen>::FORCED_BY),)*];

            /// The recipe for the smallest block that reads about as fast as the plain one, which takes
            /// `plain` bytes; with its bytes.
            pub(super) fn smallest<T: Fixed>(
                of: &unencoded::Unencoded<'_, T>,
                plain: usize,
            ) -> (Recipe, usize) {
                let mut smallest = (Recipe::Plain, plain);
                $(
                    if let Some(planned) = <$own as codec::Chosen>::propose(of, smallest.1) {
                        smallest = (Recipe::$own(planned.plan), planned.bytes);
                        if <$own as codec::Chosen>::IS_FINAL {
                            return smallest;
                        }
                    }
                )*
                smallest
            }

            /// The recipe for the encoding that is forced; `None` if it is not possible.
            pub(super) fn forced<T: Fixed>(
                of: &unencoded::Unencoded<'_, T>,
                by: Compression,
            ) -> Option<(Recipe, usize)> {
                $(
                    if by == <$own as codec::Chosen>::FORCED_BY {
                        let planned = <$own as codec::Chosen>::plan(of)?;
                        return Some((Recipe::$own(planned.plan), planned.bytes));
                    }
                )*
                None
            }

            /// Carries it out; with `slack`, codes that are written in place have room on both sides.
            pub(super) fn encode<T: Fixed>(
                self,
                of: &unencoded::Unencoded<'_, T>,
                slack: bool,
            ) -> FixedValues {
                match self {
                    Recipe::Plain => plain::encode_plain(of.values, of.min, of.max, of.capacity, slack),
                    Recipe::Flat => FixedValues::Flat(Flat::new(of.values, of.capacity)),
                    $(Recipe::$own(plan) => {
                        FixedValues::$own(<$own as codec::Chosen>::encode(of, plan, slack).into())
                    })*
                }
            }
        }
    };
}

/// Declares `TextValues`.
macro_rules! text_encodings {
    ($d:tt $($code:literal $own:ident: $held:ty;)*) => {
        registry::encodings! { $d TextValues, TextCodec, with_text_codec, map_text_codec,
            "its encoding is none of strings";
            $($code $own: $held;)*
        }
    };
}

/// Declares an enum of values by encoding, and two macros that call the encoding.
macro_rules! encodings {
    ($d:tt $values:ident, $codec:ident, $with:ident, $map:ident, $unknown:literal;
        $($code:literal $own:ident: $held:ty;)*) => {
        #[doc = concat!("Values by encoding; see [`codec::", stringify!($codec), "`].")]
        #[derive(Debug)]
        #[repr(u8)]
        pub(crate) enum $values {
            $($own($held) = $code,)*
        }

        /// An expression with a name bound to the values under their encoding.
        macro_rules! $with {
            ($d values:expr, $d own:ident => $d body:expr) => {
                match $d values {
                    $($crate::block::$values::$own($d own) => $d body,)*
                }
            };
        }
        use $with;

        /// The same, of an expression that gives other values under this encoding.
        macro_rules! $map {
            ($d values:expr, $d own:ident => $d body:expr) => {
                match $d values {
                    $($crate::block::$values::$own($d own) => $crate::block::$values::$own($d body.into()),)*
                }
            };
        }
        use $map;

        impl $values {
            /// The numbers of all encodings in files, with their names.
            #[cfg(test)]
            pub(crate) const ALL: &'static [(u8, &'static str)] =
                &[$(($code, <$own as codec::Codec>::NAME),)*];

            /// The examples of each encoding.
            pub(super) const EXAMPLES: &'static [&'static [Example]] =
                &[$(<$own as codec::Codec>::EXAMPLES,)*];

            /// The number of the encoding in files.
            pub(crate) fn code(&self) -> u8 {
                match self {
                    $($values::$own(_) => $code,)*
                }
            }

            /// Values of so many slots under the encoding with a number.
            pub(crate) fn read(
                code: u8,
                reader: &mut serialized::Reader<'_>,
                slots: usize,
            ) -> Result<$values, serialized::Flaw> {
                match code {
                    $($code => {
                        let own = <$own as codec::Codec>::read(reader, slots)?;
                        Ok($values::$own(own.into()))
                    })*
                    _ => Err($unknown),
                }
            }
        }
    };
}

pub(super) use encodings;
pub(super) use fixed_encodings;
pub(super) use text_encodings;
