//! Characters of texts that may be long: counting looks now and then whether the statement may go on
//! ([`crate::statement`]).

use crate::Result;
use crate::statement::{STEP, pieces};

/// Number of characters.
///
/// # Errors
/// Interrupted.
#[inline]
pub fn count(text: &str) -> Result<usize> {
    if text.len() <= STEP { Ok(text.chars().count()) } else { count_in_pieces(text) }
}

#[cold]
fn count_in_pieces(text: &str) -> Result<usize> {
    pieces(text).try_fold(0, |count, piece| Ok(count + piece?.chars().count()))
}

/// The byte at which the character after the first `n` begins, or the end of the text if it has no more.
///
/// # Errors
/// Interrupted.
#[inline]
pub fn place(text: &str, n: usize) -> Result<usize> {
    match n >= text.len() {
        true => Ok(text.len()),
        false if text.len() <= STEP => Ok(text.char_indices().nth(n).map_or(text.len(), |(at, _)| at)),
        false => place_in_pieces(text, n),
    }
}

#[cold]
fn place_in_pieces(text: &str, n: usize) -> Result<usize> {
    let (mut left, mut start) = (n, 0);
    for piece in pieces(text) {
        let piece = piece?;
        // PERF: to count is faster than to find a place.
        let count = if piece.len() < text.len() { piece.chars().count() } else { usize::MAX };
        if left < count {
            return Ok(start + piece.char_indices().nth(left).map_or(piece.len(), |(at, _)| at));
        }
        left -= count;
        start += piece.len();
    }
    Ok(start)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_of_short_and_long_texts_are_counted() {
        for (letters, length) in [("", 0), ("a", 5), ("aä€🦀", 9), ("a", 2 * STEP), ("aä€🦀", STEP)]
        {
            let text: String = letters.chars().cycle().take(length).collect();
            assert_eq!(count(&text).unwrap(), length);
            let step = (length / 7).max(1);
            for n in (0..=length).step_by(step).chain([length, length + 1, usize::MAX]) {
                let expected = text.char_indices().nth(n).map_or(text.len(), |(at, _)| at);
                assert_eq!(place(&text, n).unwrap(), expected, "{n} of {length}");
            }
        }
    }
}
