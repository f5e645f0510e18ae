//! The bytes of a text file from its start: of a regular file or a pipe, without its compression.

use super::codec::Codec;
use super::pipe::Pipe;
use entasis_engine::exec::CancelFlag;
use entasis_vector::{Error, Result};
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;

/// What happens to the bytes of a pipe that are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PipeUse {
    /// They stay, for whoever reads next.
    Peek,
    /// They are gone.
    Take,
}

/// Reads the file at `path`, which is compressed as `codec` says, or else as its name does; if it is a pipe,
/// that one. Waiting for its writer ends when `cancel` is raised.
///
/// # Errors
/// I/O, if it cannot be opened; input, if it is a pipe that has been read.
pub(super) fn open_bytes(
    path: &Path,
    pipe: Option<&Arc<Pipe>>,
    codec: Option<Codec>,
    reading: PipeUse,
    cancel: &CancelFlag,
) -> Result<Box<dyn Read + Send>> {
    let failed = |e: io::Error| Error::io(format!("'{}'", path.display()), &e);
    let bytes: Box<dyn Read + Send> = match (pipe, reading) {
        (Some(pipe), PipeUse::Peek) => Box::new(pipe.peek(cancel.clone())?),
        (Some(pipe), PipeUse::Take) => Box::new(pipe.take(cancel.clone())?),
        (None, _) => Box::new(File::open(path).map_err(failed)?),
    };
    codec.unwrap_or_else(|| Codec::of_path(path)).reader(bytes).map_err(failed)
}
