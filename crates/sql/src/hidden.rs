//! Hidden parts of names: what the binder needs to distinguish columns and tables, and users never see.
//!
//! A hidden part is a number between two marks. Names that as a whole stand for something else (a path, a set
//! operation, one of our functions) begin with a mark.
//!
//! Constructs that the parser or the binder cannot represent pass through them under such a name, which one
//! module assigns and another recognizes. The names here are shared by modules of different layers; others
//! are defined in the modules that use them.

use entasis_engine::plan::SetKind;
pub(crate) use entasis_syntax::disguise::*;

/// A hidden part.
pub(crate) fn hidden(number: u64) -> String {
    format!("{MARK}{number:x}{MARK}")
}

/// A name without its hidden parts.
pub(crate) fn visible(name: &str) -> String {
    let name = [UNNESTED, OUTER].iter().fold(name, |name, around| {
        name.strip_prefix(around).and_then(|name| name.strip_suffix(')')).unwrap_or(name)
    });
    name.split(MARK).step_by(2).collect()
}

/// What the binder puts around the name of a list that is taken apart.
const UNNESTED: &str = "__unnest_placeholder(";
/// What it puts around the name of a column of an enclosing query.
const OUTER: &str = "outer_ref(";

/// The schema of relations that the host program has registered.
pub(crate) const REGISTERED: &str = "\u{1}registered";

// ---- through the binder -----------------------------------------------------------------------------------

/// The name of [`Kind::Exact`](crate::functions::native::Kind::Exact).
pub(crate) const EXACT: &str = "\u{1}exact";
/// The name of [`Kind::Sets`](crate::functions::native::Kind::Sets).
pub(crate) const SETS: &str = "\u{1}sets";
/// The function that wraps the inequality of an `ASOF JOIN`.
pub(crate) const NEAREST: &str = "\u{1}asof";

/// The table alias under which a set operation passes through the binder.
pub(crate) fn set_marker(kind: SetKind, all: bool) -> String {
    // In lower case, because the rewriter folds every name.
    format!("{MARK}{kind:?} {all}").to_ascii_lowercase()
}

/// The set operation of a table alias, and whether it is `ALL`.
pub(crate) fn marked_set(alias: &str) -> Option<(SetKind, bool)> {
    [SetKind::Intersect, SetKind::Except]
        .into_iter()
        .flat_map(|kind| [(kind, false), (kind, true)])
        .find(|(kind, all)| set_marker(*kind, *all) == alias)
}

/// Begins the hidden part that contains the number of a recursion's key.
const NUMBER: char = 'k';
/// The hidden part that distinguishes all rows so far of a recursion from those of the last iteration.
const ALL: &str = "\u{1}all\u{1}";

/// The name of a query with the number of its key.
pub(crate) fn numbered(name: &str, number: usize) -> String {
    format!("{name}{MARK}{NUMBER}{number:x}{MARK}")
}

/// The number of the key in the name of a query.
pub(crate) fn number_in(name: &str) -> Option<usize> {
    let mut hidden = name.split(MARK).skip(1).step_by(2);
    hidden.find_map(|part| usize::from_str_radix(part.strip_prefix(NUMBER)?, 16).ok())
}

/// The name for all rows so far of the query of this name.
pub(crate) fn all_of(name: &str) -> String {
    format!("{name}{ALL}")
}

/// The query whose rows so far have this name.
pub(crate) fn query_of_all(name: &str) -> Option<&str> {
    name.strip_suffix(ALL)
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

    #[test]
    fn names_tell_keys_and_rows() {
        let name = numbered("t", 27);
        assert_eq!(number_in(&name), Some(27));
        assert_eq!(number_in(&all_of(&name)), Some(27));
        assert_eq!(query_of_all(&all_of(&name)), Some(name.as_str()));
        assert_eq!(number_in("t"), None);
        assert_eq!(visible(&all_of(&name)), "t");
    }
}
