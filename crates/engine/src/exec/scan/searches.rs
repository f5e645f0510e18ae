//! Conditions on texts that the storage tests on the codes of symbols ([`TextSearch`]): comparisons for
//! equality, `IN`, `LIKE` without `_`, `starts_with`, `ends_with`, `contains`, and their negations.
//!
//! The condition is a stage of its own ([`super::stages`]) that reads one column of strings. It is satisfied
//! by no NULL. Blocks without such codes are read as before: that is the slow twin, under `SET optimizer =
//! off`.

use entasis_storage::TextSearch;
use entasis_vector::Value;
use entasis_vector::expr::pattern::{Pattern, PatternParts};
use entasis_vector::expr::{CompareOp, Expr, Function};

/// The texts that satisfy a condition, if they can be searched for.
pub(super) fn text_search(condition: &Expr) -> Option<TextSearch> {
    match condition {
        Expr::Compare { op: op @ (CompareOp::Eq | CompareOp::NotEq), left, right } => {
            let text = match (is_column(left), is_column(right)) {
                (true, _) => literal(right)?,
                (_, true) => literal(left)?,
                _ => return None,
            };
            let equal = TextSearch::of_texts([text])?;
            Some(if *op == CompareOp::Eq { equal } else { equal.negated() })
        }
        Expr::InList { input, list } if is_column(input) => {
            // A NULL in the list makes an answer NULL that would be false, which makes no difference here.
            let texts = list.iter().filter(|value| !value.is_null()).map(bytes);
            TextSearch::of_texts(texts.collect::<Option<Vec<&[u8]>>>()?)
        }
        Expr::Like { input, pattern, escape, case_insensitive: false } if is_column(input) => {
            let pattern = std::str::from_utf8(literal(pattern)?).ok()?;
            match Pattern::new(pattern, *escape, false).ok()?.parts()? {
                PatternParts::Exact(text) => TextSearch::of_texts([text]),
                PatternParts::Pieces { prefix, pieces, suffix } => {
                    TextSearch::of_pieces(prefix, &pieces, suffix)
                }
            }
        }
        Expr::Function { function, args, .. } => {
            let [column, wanted] = &args[..] else { return None };
            let wanted = literal(wanted).filter(|_| is_column(column))?;
            match function {
                Function::StartsWith => TextSearch::of_pieces(wanted, &[], b""),
                Function::EndsWith => TextSearch::of_pieces(b"", &[], wanted),
                Function::Contains => TextSearch::of_pieces(b"", &[wanted], b""),
                _ => None,
            }
        }
        // `x NOT IN (…, NULL)` is never true.
        Expr::Not(inner) if has_null(inner) => None,
        Expr::Not(inner) => Some(text_search(inner)?.negated()),
        _ => None,
    }
}

fn is_column(expr: &Expr) -> bool {
    matches!(expr, Expr::Column { .. })
}

/// The bytes of a constant string.
fn literal(expr: &Expr) -> Option<&[u8]> {
    match expr {
        Expr::Literal { value, .. } => bytes(value),
        _ => None,
    }
}

fn bytes(value: &Value) -> Option<&[u8]> {
    match value {
        Value::Text(text) => Some(text.as_bytes()),
        Value::Bytes(bytes) => Some(bytes),
        _ => None,
    }
}

/// True if it is a list, negated or not, that has a NULL.
fn has_null(expr: &Expr) -> bool {
    match expr {
        Expr::InList { list, .. } => list.iter().any(Value::is_null),
        Expr::Not(inner) => has_null(inner),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use entasis_vector::{ColumnId, DataType};

    fn column() -> Box<Expr> {
        Box::new(Expr::Column { id: ColumnId(7), ty: DataType::Varchar })
    }

    fn text(text: &str) -> Box<Expr> {
        Box::new(Expr::Literal { value: Value::Text(text.into()), ty: DataType::Varchar })
    }

    fn like(pattern: &str) -> Expr {
        Expr::Like { input: column(), pattern: text(pattern), escape: None, case_insensitive: false }
    }

    /// Which of some texts satisfy a condition.
    fn found(condition: &Expr) -> Option<Vec<&'static str>> {
        let search = text_search(condition)?;
        Some(
            ["", "a", "abc", "abcabc", "xbc"]
                .into_iter()
                .filter(|text| search.holds(text.as_bytes()))
                .collect(),
        )
    }

    #[test]
    fn conditions_find_their_texts() {
        let equal = |op| Expr::Compare { op, left: column(), right: text("abc") };
        let list = |values: &[Value]| Expr::InList { input: column(), list: values.to_vec() };
        let function =
            |function| Expr::Function { function, args: vec![*column(), *text("bc")], ty: DataType::Boolean };
        let (abc, a) = (Value::Text("abc".into()), Value::Text("a".into()));
        let cases = [
            (equal(CompareOp::Eq), vec!["abc"]),
            (equal(CompareOp::NotEq), vec!["", "a", "abcabc", "xbc"]),
            (list(&[abc.clone(), a.clone()]), vec!["a", "abc"]),
            (list(&[abc, Value::Null]), vec!["abc"]),
            (like("a%"), vec!["a", "abc", "abcabc"]),
            (like("%c%b%"), vec!["abcabc"]),
            (like("a"), vec!["a"]),
            (like("%"), vec!["", "a", "abc", "abcabc", "xbc"]),
            (function(Function::Contains), vec!["abc", "abcabc", "xbc"]),
            (function(Function::EndsWith), vec!["abc", "abcabc", "xbc"]),
            (function(Function::StartsWith), vec![]),
            (Expr::Not(Box::new(like("%bc"))), vec!["", "a"]),
        ];
        for (condition, expected) in cases {
            assert_eq!(found(&condition), Some(expected), "{condition:?}");
        }
        let list = list(&[a, Value::Null]);
        for condition in [Expr::Not(Box::new(list)), like("a_c"), Expr::Not(column())] {
            assert_eq!(found(&condition), None, "{condition:?}");
        }
    }
}
