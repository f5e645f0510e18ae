//! Asking for memory ahead: loops that write here and there, or that branch on what they find, ask for the lines of rows that come later.
//! Loops that do nothing but [fetch](super::fetch) do not: nothing is gained there.

/// How many rows ahead.
pub(crate) const AHEAD: usize = 16;
/// Bytes from which on it is done: what the nearer caches hold is there as soon.
pub(crate) const FAR_BYTES: usize = if cfg!(test) { 1 << 10 } else { 1 << 20 };
