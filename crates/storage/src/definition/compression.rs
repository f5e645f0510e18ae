//! Compression: which encodings SQL asks for. The encodings themselves are in [`crate::block`].

use entasis_vector::Error;

/// Declares the compressions from a list: a variant, its number in catalogs, which never changes, and its
/// name in SQL.
macro_rules! compressions {
    ($($(#[$meta:meta])* $own:ident = $number:literal, $name:literal;)*) => {
        /// How the blocks of a table are encoded.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
        #[repr(u8)]
        pub enum Compression {
            $($(#[$meta])* $own = $number,)*
        }

        impl Compression {
            /// All, by their names.
            pub const NAMES: [(&str, Compression); [$($name),*].len()] = [$(($name, Compression::$own)),*];

            /// All, by their numbers.
            pub(crate) const BY_NUMBER: [Compression; Compression::NAMES.len()] = {
                let mut all = [Compression::Auto; Compression::NAMES.len()];
                $(all[$number] = Compression::$own;)*
                all
            };
        }
    };
}

compressions! {
    /// For each block the smallest encoding that reads about as fast as plain codes; in tables with a
    /// layout key one that is written in place.
    #[default]
    Auto = 0, "auto";
    /// Without compression: flat arrays, strings one by one.
    None = 1, "none";
    /// Flat arrays of fixed width. This and all that follow are forced wherever they are possible, for
    /// tests and comparisons.
    Flat = 2, "flat";
    /// Codes of 1, 2 or 4 bytes.
    Plain = 3, "plain";
    /// Codes of as many bits as they need.
    Packed = 4, "packed";
    /// A first value and a step.
    Sequence = 5, "sequence";
    /// Runs of equal values.
    Runs = 6, "runs";
    /// Packed distances from a straight line.
    Line = 14, "line";
    /// Packed codes, with patches.
    Patched = 7, "patched";
    /// Packed codes, times a common factor.
    Multiples = 8, "multiples";
    /// Doubles as integers and a power of ten.
    Scaled = 9, "scaled";
    /// Doubles as floats.
    Singles = 10, "singles";
    /// Doubles and floats as codes for their first bits, and the others.
    Split = 13, "split";
    /// Strings compressed by symbol tables.
    Fsst = 11, "fsst";
    /// Strings without dictionaries.
    Strings = 12, "strings";
}

impl Compression {
    /// The compression that SQL calls `name`, in lower case.
    pub fn parse(name: &str) -> Option<Compression> {
        Compression::NAMES.into_iter().find(|(own, _)| *own == name).map(|(_, compression)| compression)
    }

    /// The error for a name that does not exist.
    pub fn unknown(name: &str) -> Error {
        let names: Vec<&str> = Compression::NAMES.iter().map(|(name, _)| *name).collect();
        Error::input(format!("there is no compression {name}"))
            .with_hint(format!("they are {}", names.join(", ")))
    }

    /// Its name in SQL.
    pub fn name(self) -> &'static str {
        let own = Compression::NAMES.into_iter().find(|(_, compression)| *compression == self);
        own.map_or("auto", |(name, _)| name)
    }

    /// False if strings never get dictionaries.
    pub(crate) fn has_dictionaries(self) -> bool {
        !matches!(self, Compression::None | Compression::Strings | Compression::Fsst)
    }
}
