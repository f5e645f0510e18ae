//! What separates the fields of a CSV file.

/// What separates fields: one to four bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Delimiter {
    bytes: [u8; 4],
    length: u8,
}

impl Delimiter {
    /// One byte.
    pub const fn byte(byte: u8) -> Delimiter {
        Delimiter { bytes: [byte, 0, 0, 0], length: 1 }
    }

    /// The bytes of `text`. `None` if they are too many, or there are none, or there is a line end among
    /// them.
    pub fn new(text: &str) -> Option<Delimiter> {
        let mut bytes = [0; 4];
        bytes.get_mut(..text.len())?.copy_from_slice(text.as_bytes());
        let is_line_end = |byte: u8| matches!(byte, b'\n' | b'\r');
        let fits = !text.is_empty() && !text.bytes().any(is_line_end);
        fits.then_some(Delimiter { bytes, length: text.len() as u8 })
    }

    /// Its bytes.
    pub(super) fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.length)]
    }

    /// Its first byte.
    pub(super) fn first(self) -> u8 {
        self.bytes[0]
    }

    /// The number of its bytes.
    pub(super) fn len(self) -> usize {
        usize::from(self.length)
    }
}
