//! Counts lines of a file, and finds its first row.

/// Number of bytes and lines before the first row: the byte order mark and the lines to skip.
pub(super) fn preamble(bytes: &[u8], skip: usize) -> (usize, usize) {
    let mut at = if bytes.starts_with(b"\xEF\xBB\xBF") { 3 } else { 0 };
    for line in 0..skip {
        match bytes[at..].iter().position(|&b| b == b'\n') {
            Some(length) => at += length + 1,
            None => return (bytes.len(), line),
        }
    }
    (at, skip)
}

/// Number of line ends. Bytes are counted first, which vectorizes.
pub(super) fn lines(bytes: &[u8]) -> usize {
    let count = |part: &[u8]| part.iter().map(|&b| u8::from(b == b'\n')).sum::<u8>();
    bytes.chunks(u8::MAX as usize).map(|part| usize::from(count(part))).sum()
}
