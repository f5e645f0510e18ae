//! The bytes of a file as UTF-8 text.
//!
//! UTF-8 is passed on unchanged; fields are validated where they are read. Other encodings are decoded while
//! the file is read, in order, before it is cut into blocks. A file that begins with the byte order mark of
//! UTF-16 is read as UTF-16.

use crate::codec::Codec;
use crate::option_values::text_option;
use encoding_rs::{Decoder, DecoderResult};
use entasis_engine::exec::CancelFlag;
use entasis_functions::Argument;
use entasis_vector::{Error, Result};
use std::io::Read;
use std::path::Path;

/// The encoding of a file's text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Encoding {
    /// UTF-8, or UTF-16 with a byte order mark.
    Utf8,
    /// ISO 8859-1: each byte is the character of that number.
    Latin1,
    /// An encoding of the WHATWG standard.
    Other(&'static encoding_rs::Encoding),
}

impl Encoding {
    /// The value of the option.
    pub(super) fn of_option(name: &str, value: &Argument) -> Result<Encoding> {
        let label = text_option(name, value)?;
        match label.to_ascii_lowercase().replace('_', "-").as_str() {
            "latin-1" | "latin1" | "iso-8859-1" | "iso8859-1" => return Ok(Encoding::Latin1),
            "utf-8" | "utf8" => return Ok(Encoding::Utf8),
            _ => {}
        }
        let known = encoding_rs::Encoding::for_label_no_replacement(label.as_bytes());
        known.map(Encoding::Other).ok_or_else(|| {
            Error::input(format!("option {name}: there is no encoding '{label}'"))
                .with_hint("some encodings are utf-8, latin-1, utf-16, windows-1252 and shift_jis")
        })
    }
}

/// Bytes of a file that are read and decoded at once; then the statement may be interrupted.
const STEP: usize = 1 << 20;

/// A file that is read from its start and converted to UTF-8.
pub(super) struct Input {
    bytes: Box<dyn Read + Send>,
    encoding: Encoding,
    cancel: CancelFlag,
    /// Made from the first bytes; `None` if no decoding is needed.
    decoder: Option<Decoder>,
    fresh: bool,
    raw: Vec<u8>,
}

impl Input {
    /// The text of these bytes; reading them ends when `cancel` is raised.
    pub(super) fn new(bytes: Box<dyn Read + Send>, encoding: Encoding, cancel: CancelFlag) -> Input {
        Input { bytes, encoding, cancel, decoder: None, fresh: true, raw: Vec::new() }
    }

    /// Reads about `wanted` bytes of the file and appends their text to `out`, for which `room` is asked to
    /// make room for so many bytes more, each time before there are. Returns the number of bytes read: fewer
    /// than `wanted` at the end of the file.
    ///
    /// # Errors
    /// I/O; input, if bytes are invalid in the encoding. Then `out` ends where they are. Interrupted; those
    /// of `room`.
    pub(super) fn read(
        &mut self,
        path: &Path,
        wanted: usize,
        out: &mut Vec<u8>,
        room: &mut dyn FnMut(&mut Vec<u8>, usize) -> Result<()>,
    ) -> Result<usize> {
        let mut read = 0;
        while read < wanted {
            if self.cancel.is_raised() {
                return Err(Error::interrupted());
            }
            let step = STEP.min(wanted - read);
            let now = self.read_step(path, step, out, room)?;
            read += now;
            if now < step {
                break;
            }
        }
        Ok(read)
    }

    fn read_step(
        &mut self,
        path: &Path,
        wanted: usize,
        out: &mut Vec<u8>,
        room: &mut dyn FnMut(&mut Vec<u8>, usize) -> Result<()>,
    ) -> Result<usize> {
        let cancel = &self.cancel;
        let io_error = |e| match cancel.is_raised() {
            true => Error::interrupted(),
            false => Error::io(format!("'{}'", path.display()), &e),
        };
        if !self.fresh && self.decoder.is_none() && self.encoding == Encoding::Utf8 {
            room(out, wanted)?;
            return self.bytes.by_ref().take(wanted as u64).read_to_end(out).map_err(io_error);
        }
        self.raw.clear();
        let read = self.bytes.by_ref().take(wanted as u64).read_to_end(&mut self.raw).map_err(io_error)?;
        if std::mem::take(&mut self.fresh) {
            if let Some(codec) = Codec::of_first_bytes(&self.raw) {
                return Err(Error::input(format!("bytes that are compressed with {codec}"))
                    .with_hint(format!("specify compression => '{codec}'")));
            }
            self.decoder = match self.encoding {
                Encoding::Other(encoding) => Some(encoding.new_decoder()),
                Encoding::Utf8 if self.raw.starts_with(b"\xFF\xFE") => {
                    Some(encoding_rs::UTF_16LE.new_decoder())
                }
                Encoding::Utf8 if self.raw.starts_with(b"\xFE\xFF") => {
                    Some(encoding_rs::UTF_16BE.new_decoder())
                }
                Encoding::Utf8 | Encoding::Latin1 => None,
            };
        }
        match (&mut self.decoder, self.encoding) {
            (Some(decoder), _) => decode(decoder, &self.raw, read < wanted, out, room)?,
            (None, Encoding::Latin1) => {
                let start = out.len();
                room(out, self.raw.len() * 2)?;
                out.resize(start + self.raw.len() * 2, 0);
                let length = encoding_rs::mem::convert_latin1_to_utf8(&self.raw, &mut out[start..]);
                out.truncate(start + length);
            }
            (None, _) => {
                room(out, self.raw.len())?;
                out.extend_from_slice(&self.raw);
            }
        }
        Ok(read)
    }
}

/// Appends the text of `raw` to `out`; `last` says that it is the end of the file.
fn decode(
    decoder: &mut Decoder,
    raw: &[u8],
    last: bool,
    out: &mut Vec<u8>,
    room: &mut dyn FnMut(&mut Vec<u8>, usize) -> Result<()>,
) -> Result<()> {
    let start = out.len();
    let most = decoder.max_utf8_buffer_length_without_replacement(raw.len());
    let most = most.ok_or_else(|| Error::resource("a block of text that is too long"))?;
    room(out, most)?;
    out.resize(start + most, 0);
    let (result, _, written) = decoder.decode_to_utf8_without_replacement(raw, &mut out[start..], last);
    out.truncate(start + written);
    match result {
        DecoderResult::InputEmpty => Ok(()),
        DecoderResult::Malformed(..) => {
            Err(Error::input(format!("bytes that are not valid {}", decoder.encoding().name())))
        }
        DecoderResult::OutputFull => Err(Error::internal("a text longer than the most that it can be")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::option_values::plain;
    use crate::test_files::Directory;
    use entasis_vector::Value;

    fn text(bytes: &[u8], label: Option<&str>, wanted: usize) -> Result<String> {
        let directory = Directory::new();
        let path = directory.write("a.csv", bytes);
        let encoding = match label {
            Some(label) => Encoding::of_option("encoding", &plain(&Value::Text(label.into())))?,
            None => Encoding::Utf8,
        };
        let file = std::fs::File::open(&path).unwrap();
        let mut input = Input::new(Box::new(file), encoding, CancelFlag::default());
        let mut out = Vec::new();
        while input.read(Path::new(&path), wanted, &mut out, &mut |_, _| Ok(()))? == wanted {}
        Ok(String::from_utf8(out).unwrap())
    }

    #[test]
    fn encodings_become_utf8_however_they_are_cut() {
        let utf16: Vec<u8> = "\u{feff}né😀x".encode_utf16().flat_map(u16::to_le_bytes).collect();
        let plain_utf16 = &utf16[2..];
        for wanted in [1, 2, 3, 7, 1000] {
            assert_eq!(text(b"caf\xE9\x80", Some("latin-1"), wanted).unwrap(), "café\u{80}");
            assert_eq!(text(b"caf\xE9\x80", Some("windows-1252"), wanted).unwrap(), "café€");
            assert_eq!(text(plain_utf16, Some("utf-16"), wanted).unwrap(), "né😀x");
            assert_eq!(text("né😀x".as_bytes(), None, wanted).unwrap(), "né😀x");
        }
        assert_eq!(text(&utf16, None, 1000).unwrap(), "né😀x");
        assert!(text(b"\xD8\x00\x00a", Some("utf-16be"), 1000).unwrap_err().message().contains("UTF-16BE"));
        assert!(text(b"", Some("klingon"), 1000).unwrap_err().message().contains("klingon"));
    }
}
