//! Hidden parts of names: what the binder needs to tell columns and tables apart, and users never see.
//!
//! A hidden part is a number between two marks. Names that stand for something else as a whole (a path, a set
//! operation, a function of ours) begin with a mark.

/// Begins and ends a hidden part. No user writes it.
pub(crate) const MARK: char = '\u{1}';

/// A hidden part.
pub(crate) fn hidden(number: u64) -> String {
    format!("{MARK}{number:x}{MARK}")
}

/// A name without its hidden parts.
pub(crate) fn visible(name: &str) -> String {
    name.split(MARK).step_by(2).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hidden_parts_vanish() {
        assert_eq!(visible("x"), "x");
        assert_eq!(visible(&format!("x{}", hidden(3))), "x");
        assert_eq!(visible(&format!("min(x{}) + y{}", hidden(u64::MAX), hidden(0))), "min(x) + y");
    }
}
