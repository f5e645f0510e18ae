//! Questions about SQL text that the catalog keeps: queries of views, defaults and checks.
//!
//! Views are kept as text, so what one reads of a table is not known column by column. What it *mentions* is, and is never less:
//! a column that no view mentions may change.

use crate::functions::sequence::{Kind, named_sequence};
use crate::parse::parse_query;
use datafusion_sql::sqlparser::ast::{Expr, Visit, Visitor};
use entasis_vector::Result;
use std::collections::BTreeSet;
use std::ops::ControlFlow;

/// Names of columns that a query has somewhere, in lower case.
#[derive(Debug, Default)]
pub struct Mentioned {
    /// With the name of a table before them, or without.
    pub columns: BTreeSet<String>,
    /// Those without.
    pub bare: BTreeSet<String>,
}

/// The columns that a view's query mentions, of whatever table. Not those that `*` and `NATURAL JOIN` stand for.
///
/// # Errors
/// Input, if the text is no query.
pub fn mentioned_columns(query: &str) -> Result<Mentioned> {
    let mut mentioned = Mentioned::default();
    let _ = parse_query(query)?.visit(&mut mentioned);
    Ok(mentioned)
}

impl Visitor for Mentioned {
    type Break = std::convert::Infallible;

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<Self::Break> {
        match expr {
            Expr::Identifier(name) => {
                self.bare.insert(name.value.to_lowercase());
                self.columns.insert(name.value.to_lowercase());
            }
            Expr::CompoundIdentifier(parts) => {
                self.columns.extend(parts.last().map(|name| name.value.to_lowercase()));
            }
            _ => {}
        }
        ControlFlow::Continue(())
    }
}

/// The sequences that an expression of a definition calls, in lower case.
///
/// # Errors
/// Input, if the text is no expression.
pub fn called_sequences(expr: &str) -> Result<BTreeSet<String>> {
    let mut called = Called(BTreeSet::new());
    let _ = crate::definition::stored_expr(expr)?.visit(&mut called);
    Ok(called.0)
}

/// Gathers sequences.
struct Called(BTreeSet<String>);

impl Visitor for Called {
    type Break = std::convert::Infallible;

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<Self::Break> {
        if let Expr::Function(function) = expr
            && Kind::of(&function.name.to_string().to_lowercase()).is_some()
        {
            self.0.extend(named_sequence(function).ok());
        }
        ControlFlow::Continue(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_text_mentions() {
        let words = |set: &BTreeSet<String>| set.iter().cloned().collect::<Vec<_>>().join(" ");
        let sql = "WITH c AS (SELECT A FROM t) SELECT c.a + \"B\", (SELECT max(x.d) FROM u x WHERE e = c.f) FROM c ORDER BY g";
        let mentioned = mentioned_columns(sql).unwrap();
        assert_eq!(words(&mentioned.columns), "a b d e f g");
        assert_eq!(words(&mentioned.bare), "a b e g");
        assert_eq!(words(&called_sequences("nextval('S') + abs(currval('main.t'))").unwrap()), "s t");
        assert_eq!(words(&called_sequences("length('s')").unwrap()), "");
    }
}
