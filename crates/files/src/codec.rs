//! Compressed text files: which codec a file has, and its bytes without it.
//!
//! The last part of a file's name says how it is compressed (`.csv.gz`, `.csv.zst`), unless the option
//! `compression` does. Parquet compresses its own pages and has nothing to do with this module.

use super::option_values::text_option;
use entasis_functions::Argument;
use entasis_vector::{Error, Result};
use flate2::read::MultiGzDecoder;
use flate2::write::GzEncoder;
use std::ffi::OsStr;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

/// How a text file is compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Codec {
    /// Not at all.
    Plain,
    /// Gzip (RFC 1952).
    Gzip,
    /// Zstandard (RFC 8878).
    Zstd,
}

impl Codec {
    /// The codec that a path's extension names.
    pub(super) fn of_path(path: &Path) -> Codec {
        match path.extension().and_then(OsStr::to_str).map(str::to_ascii_lowercase).as_deref() {
            Some("gz" | "gzip") => Codec::Gzip,
            Some("zst" | "zstd") => Codec::Zstd,
            _ => Codec::Plain,
        }
    }

    /// The path without the extension of its codec: `a.csv` for `a.csv.gz`.
    pub(super) fn uncompressed_name(path: &Path) -> PathBuf {
        match Codec::of_path(path) {
            Codec::Plain => path.to_owned(),
            _ => path.with_extension(""),
        }
    }

    /// The value of the option `compression`; `None` if the name of the file decides.
    ///
    /// # Errors
    /// Input, if there is no such codec.
    pub(super) fn of_option(name: &str, value: &Argument) -> Result<Option<Codec>> {
        let text = text_option(name, value)?;
        match text.to_ascii_lowercase().as_str() {
            "auto" | "auto_detect" | "infer" => Ok(None),
            "none" | "uncompressed" => Ok(Some(Codec::Plain)),
            "gzip" | "gz" => Ok(Some(Codec::Gzip)),
            "zstd" | "zst" => Ok(Some(Codec::Zstd)),
            _ => Err(Error::input(format!("text files cannot have the compression '{text}'"))
                .with_hint("the compressions of text files are gzip, zstd, none and auto")),
        }
    }

    /// The codec that the first bytes of a file show, for hints.
    pub(super) fn of_first_bytes(bytes: &[u8]) -> Option<&'static str> {
        [("gzip", &b"\x1F\x8B\x08"[..]), ("zstd", b"\x28\xB5\x2F\xFD")]
            .iter()
            .find_map(|(name, magic)| bytes.starts_with(magic).then_some(*name))
    }

    /// What `bytes` are without their compression.
    ///
    /// # Errors
    /// I/O, if the decoder has no memory.
    pub(super) fn reader(self, bytes: Box<dyn Read + Send>) -> io::Result<Box<dyn Read + Send>> {
        Ok(match self {
            Codec::Plain => bytes,
            Codec::Gzip => Box::new(MultiGzDecoder::new(bytes)),
            Codec::Zstd => Box::new(zstd::Decoder::new(bytes)?),
        })
    }

    /// A writer that compresses what is written to it into `out`.
    ///
    /// # Errors
    /// I/O, if the encoder has no memory.
    pub(super) fn writer<W: Write>(self, out: W) -> io::Result<Compressor<W>> {
        Ok(match self {
            Codec::Plain => Compressor::Plain(out),
            Codec::Gzip => Compressor::Gzip(GzEncoder::new(out, flate2::Compression::default())),
            Codec::Zstd => Compressor::Zstd(zstd::Encoder::new(out, zstd::DEFAULT_COMPRESSION_LEVEL)?),
        })
    }
}

/// Compresses what is written to it.
pub(super) enum Compressor<W: Write> {
    Plain(W),
    Gzip(GzEncoder<W>),
    Zstd(zstd::Encoder<'static, W>),
}

impl<W: Write> Compressor<W> {
    /// Writes what ends a compressed file, and returns the writer below.
    ///
    /// # Errors
    /// I/O.
    pub(super) fn finish(self) -> io::Result<W> {
        match self {
            Compressor::Plain(out) => Ok(out),
            Compressor::Gzip(out) => out.finish(),
            Compressor::Zstd(out) => out.finish(),
        }
    }
}

impl<W: Write> Write for Compressor<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Compressor::Plain(out) => out.write(bytes),
            Compressor::Gzip(out) => out.write(bytes),
            Compressor::Zstd(out) => out.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Compressor::Plain(out) => out.flush(),
            Compressor::Gzip(out) => out.flush(),
            Compressor::Zstd(out) => out.flush(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_compressed_is_read_back() {
        let bytes: Vec<u8> = (0..100_000u32).flat_map(|i| i.to_string().into_bytes()).collect();
        for codec in [Codec::Plain, Codec::Gzip, Codec::Zstd] {
            // Two files, one after the other, are a file.
            let mut packed = Vec::new();
            for half in bytes.chunks(bytes.len().div_ceil(2)) {
                let mut out = codec.writer(packed).unwrap();
                out.write_all(half).unwrap();
                packed = out.finish().unwrap();
            }
            assert_eq!(packed.len() < bytes.len(), codec != Codec::Plain);
            assert_eq!(Codec::of_first_bytes(&packed).is_some(), codec != Codec::Plain);
            let read = |packed: Vec<u8>| {
                let mut back = Vec::new();
                codec.reader(Box::new(io::Cursor::new(packed))).unwrap().read_to_end(&mut back).map(|_| back)
            };
            assert!(read(packed.clone()).unwrap() == bytes, "{codec:?}");
            packed.truncate(packed.len() - 3);
            assert_eq!(read(packed).is_err(), codec != Codec::Plain, "{codec:?}");
        }
    }

    #[test]
    fn a_name_says_how_a_file_is_compressed() {
        for (name, codec, plain) in [
            ("d.gz/a.csv", Codec::Plain, "d.gz/a.csv"),
            ("a.csv.GZ", Codec::Gzip, "a.csv"),
            ("a.tsv.zst", Codec::Zstd, "a.tsv"),
        ] {
            assert_eq!(Codec::of_path(name.as_ref()), codec);
            assert_eq!(Codec::uncompressed_name(name.as_ref()), Path::new(plain));
        }
    }
}
