//! Compression: how blocks are to be encoded, as SQL says it. What the encodings are is in [`crate::block`].

use entasis_vector::Error;

/// How the blocks of a table are encoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Compression {
    /// Each block as is smallest, if that reads about as fast as plain codes; plain codes in tables with a
    /// layout key, which are written.
    #[default]
    Auto,
    /// As values are: flat arrays, strings one by one.
    None,
    /// All others are forced wherever they are possible, for tests and comparisons: here, flat arrays of
    /// fixed width.
    Flat,
    /// Codes of 1, 2 or 4 bytes.
    Plain,
    /// Codes of as many bits as they need.
    Packed,
    /// First value and step.
    Sequence,
    /// Runs of equal values.
    Runs,
    /// Packed codes, and some values beside them.
    Patched,
    /// Codes of as many bits as they need, times a number.
    Multiples,
    /// Doubles as integers and a power of ten.
    Scaled,
    /// Doubles as floats.
    Singles,
    /// Strings under tables of symbols.
    Fsst,
    /// Strings without dictionaries.
    Strings,
}

impl Compression {
    /// All, by their names.
    pub const NAMES: [(&str, Compression); 13] = [
        ("auto", Compression::Auto),
        ("none", Compression::None),
        ("flat", Compression::Flat),
        ("plain", Compression::Plain),
        ("packed", Compression::Packed),
        ("sequence", Compression::Sequence),
        ("runs", Compression::Runs),
        ("patched", Compression::Patched),
        ("multiples", Compression::Multiples),
        ("scaled", Compression::Scaled),
        ("singles", Compression::Singles),
        ("fsst", Compression::Fsst),
        ("strings", Compression::Strings),
    ];

    /// The compression that SQL calls `name`, in lower case.
    pub fn parse(name: &str) -> Option<Compression> {
        Compression::NAMES.into_iter().find(|(own, _)| *own == name).map(|(_, compression)| compression)
    }

    /// The error for a name that is none.
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
