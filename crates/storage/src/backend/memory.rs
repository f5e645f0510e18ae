//! Bytes in memory, shared by all copies of a [`MemoryBackend`].

use super::{Backend, Lock};
use std::io;
use std::sync::{Arc, PoisonError, RwLock};

/// See the module.
#[derive(Debug, Clone)]
pub struct MemoryBackend {
    name: Arc<str>,
    bytes: Arc<RwLock<Vec<u8>>>,
}

impl MemoryBackend {
    /// No bytes, under a name.
    pub fn new(name: &str) -> MemoryBackend {
        MemoryBackend::of(name, Vec::new())
    }

    /// Bytes under a name.
    pub fn of(name: &str, bytes: Vec<u8>) -> MemoryBackend {
        MemoryBackend { name: name.into(), bytes: Arc::new(RwLock::new(bytes)) }
    }

    /// A copy of all bytes.
    pub fn bytes(&self) -> Vec<u8> {
        self.bytes.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Backend for MemoryBackend {
    fn name(&self) -> &str {
        &self.name
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        read_from(&self.bytes.read().unwrap_or_else(PoisonError::into_inner), offset, out)
    }

    fn write(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        write_to(&mut self.bytes.write().unwrap_or_else(PoisonError::into_inner), offset, bytes);
        Ok(())
    }

    fn length(&self) -> io::Result<u64> {
        Ok(self.bytes.read().unwrap_or_else(PoisonError::into_inner).len() as u64)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.bytes.write().unwrap_or_else(PoisonError::into_inner).resize(len as usize, 0);
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        Ok(())
    }

    /// No other process can have it open.
    fn lock(&self, _: Lock) -> io::Result<bool> {
        Ok(true)
    }
}

/// [`Backend::read`] of a vector.
pub(super) fn read_from(bytes: &[u8], offset: u64, out: &mut [u8]) -> io::Result<()> {
    let start = usize::try_from(offset).ok();
    let found = start.and_then(|start| bytes.get(start..start.checked_add(out.len())?));
    out.copy_from_slice(found.ok_or(io::ErrorKind::UnexpectedEof)?);
    Ok(())
}

/// [`Backend::write`] to a vector.
pub(super) fn write_to(target: &mut Vec<u8>, offset: u64, bytes: &[u8]) {
    if bytes.is_empty() {
        return;
    }
    let (start, end) = (offset as usize, offset as usize + bytes.len());
    if target.len() < end {
        target.resize(end, 0);
    }
    target[start..end].copy_from_slice(bytes);
}
