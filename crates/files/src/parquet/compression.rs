//! How the pages of a Parquet file that is written are compressed.

use entasis_vector::{Error, Result};
use parquet::basic::{BrotliLevel, Compression, ZstdLevel};

/// The compression of pages.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PageCompression(pub(super) Compression);

impl Default for PageCompression {
    fn default() -> PageCompression {
        PageCompression(Compression::ZSTD(ZstdLevel::default()))
    }
}

impl PageCompression {
    /// That of a name in `COPY … TO 'f' (COMPRESSION name)`.
    ///
    /// # Errors
    /// Input, if there is no such compression.
    pub(crate) fn of_name(name: &str) -> Result<PageCompression> {
        let compression = match name.to_ascii_lowercase().as_str() {
            "none" | "uncompressed" => Compression::UNCOMPRESSED,
            "snappy" => Compression::SNAPPY,
            "gzip" => Compression::GZIP(Default::default()),
            "lz4" => Compression::LZ4_RAW,
            "zstd" => Compression::ZSTD(ZstdLevel::default()),
            "brotli" => Compression::BROTLI(BrotliLevel::default()),
            _ => {
                return Err(Error::input(format!("there is no compression '{name}'"))
                    .with_hint("the compressions are zstd, snappy, gzip, brotli, lz4 and none"));
            }
        };
        Ok(PageCompression(compression))
    }
}
