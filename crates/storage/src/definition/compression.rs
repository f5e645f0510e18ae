//! Compression: which encodings SQL asks for. The encodings themselves are in [`crate::block`].

use entasis_vector::Error;

/// How the blocks of a table are encoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Compression {
    /// For each block the smallest encoding that reads about as fast as plain codes; in tables with a layout
    /// key one that is written in place.
    #[default]
    Auto,
    /// Without compression: flat arrays, strings one by one.
    None,
    /// Flat arrays of fixed width. This and all that follow are forced wherever they are possible, for tests
    /// and comparisons.
    Flat,
    /// Codes of 1, 2 or 4 bytes.
    Plain,
    /// Codes of as many bits as they need.
    Packed,
    /// A first value and a step.
    Sequence,
    /// Runs of equal values.
    Runs,
    /// Packed distances from a straight line.
    Line,
    /// Packed codes, with patches.
    Patched,
    /// Packed codes, times a common factor.
    Multiples,
    /// Doubles as integers and a power of ten.
    Scaled,
    /// Doubles as floats.
    Singles,
    /// Doubles and floats as codes for their first bits, and the others.
    Split,
    /// Strings compressed by symbol tables.
    Fsst,
    /// Strings without dictionaries.
    Strings,
}

impl Compression {
    /// All, by their names.
    pub const NAMES: [(&str, Compression); 15] = [
        ("auto", Compression::Auto),
        ("none", Compression::None),
        ("flat", Compression::Flat),
        ("plain", Compression::Plain),
        ("packed", Compression::Packed),
        ("sequence", Compression::Sequence),
        ("runs", Compression::Runs),
        ("line", Compression::Line),
        ("patched", Compression::Patched),
        ("multiples", Compression::Multiples),
        ("scaled", Compression::Scaled),
        ("singles", Compression::Singles),
        ("split", Compression::Split),
        ("fsst", Compression::Fsst),
        ("strings", Compression::Strings),
    ];

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
