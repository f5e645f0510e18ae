//! Counts how often a statement reads a query of a `WITH`.

use entasis_syntax::walk::Walk;
use sqlparser::ast::{ObjectName, ObjectNamePart, Visit, Visitor};
use std::ops::ControlFlow;

/// The schema by which the recursive term of a recursion with a key reads all of its rows so far
/// ([`super::using_key`]).
pub(super) const RECURRING: &str = "recurring";

/// How often a name occurs as that of a table.
pub(super) fn reads(part: &impl Visit, name: &str) -> u64 {
    struct Count<'a>(&'a str, u64);
    impl Visitor for Count<'_> {
        type Break = std::convert::Infallible;
        fn pre_visit_relation(&mut self, relation: &ObjectName) -> ControlFlow<Self::Break> {
            let ident = match relation.0.as_slice() {
                [ObjectNamePart::Identifier(ident)] => Some(ident),
                [ObjectNamePart::Identifier(schema), ObjectNamePart::Identifier(ident)] => {
                    Some(ident).filter(|_| schema.value.eq_ignore_ascii_case(RECURRING))
                }
                _ => None,
            };
            if ident.is_some_and(|ident| ident.value.eq_ignore_ascii_case(self.0)) {
                self.1 += 1;
            }
            ControlFlow::Continue(())
        }
    }
    let mut count = Count(name, 0);
    let _ = part.walk(&mut count);
    count.1
}
