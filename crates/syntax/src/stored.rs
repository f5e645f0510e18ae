//! Properties of SQL text that the catalog keeps: queries of views, defaults and checks.
//!
//! Views are kept as text, so it is not known which columns of a table they read. The columns that they
//! *mention* are known, and include all that they read: a column that no view mentions may change.

use super::build::stored_expr;
use super::object_name::{bare, table_name};
use super::parse::parse_query;
use super::sequence_call::{Kind, named_sequence};
use super::walk::Walk;
use entasis_vector::{Error, Result};
use sqlparser::ast::{Expr, ObjectName, Query, Value, Visitor};
use std::collections::BTreeSet;
use std::ops::ControlFlow;

/// Names of columns that occur anywhere in a query, in lower case.
#[derive(Debug, Default)]
pub struct Mentioned {
    /// All names, with or without a table before them.
    pub columns: BTreeSet<String>,
    /// The unqualified ones.
    pub bare: BTreeSet<String>,
}

/// The columns that a view's query mentions, of any table. Does not include those for which `*` and `NATURAL
/// JOIN` stand.
///
/// # Errors
/// Input, if the text is not a query.
pub fn mentioned_columns(query: &str) -> Result<Mentioned> {
    let mut mentioned = Mentioned::default();
    let _ = parse_query(query)?.walk(&mut mentioned);
    Ok(mentioned)
}

impl Visitor for Mentioned {
    type Break = std::convert::Infallible;

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<Self::Break> {
        match expr {
            Expr::Identifier(name) => {
                self.bare.insert(name.value.to_ascii_lowercase());
                self.columns.insert(name.value.to_ascii_lowercase());
            }
            Expr::CompoundIdentifier(parts) => {
                self.columns.extend(parts.last().map(|name| name.value.to_ascii_lowercase()));
            }
            _ => {}
        }
        ControlFlow::Continue(())
    }
}

/// The names of tables, views and sequences in a query, in lower case: neither its own common table
/// expressions, nor what the views in it need. Some may be names of functions or files, or of nothing.
pub fn named_objects(query: &Query) -> BTreeSet<String> {
    let mut named = Named::default();
    let _ = query.walk(&mut named);
    named.objects
}

/// Collects names of objects.
#[derive(Default)]
struct Named {
    objects: BTreeSet<String>,
    scopes: Scopes,
}

/// The queries that enclose a position in a statement, outermost first. They determine whether an unqualified
/// name there is a common table expression.
#[derive(Default)]
pub struct Scopes(Vec<Scope>);

impl Scopes {
    /// Enters a query.
    pub fn enter(&mut self, query: &Query) {
        if let Some(around) = self.0.last_mut().filter(|around| around.recursive) {
            around.see(query);
        }
        let with = query.with.iter();
        let ctes = with
            .flat_map(|with| &with.cte_tables)
            .map(|cte| (&raw const *cte.query, cte.alias.name.value.to_ascii_lowercase()));
        let recursive = query.with.as_ref().is_some_and(|with| with.recursive);
        self.0.push(Scope { visible: Vec::new(), ctes: ctes.collect(), recursive });
    }

    /// Leaves a query.
    pub fn leave(&mut self, query: &Query) {
        self.0.pop();
        if let Some(around) = self.0.last_mut() {
            around.see(query);
        }
    }

    /// True if a name, in lower case, is that of a common table expression.
    pub fn has(&self, name: &str) -> bool {
        self.0.iter().any(|scope| scope.visible.iter().any(|own| own == name))
    }
}

/// The visitor hooks that keep its field `scopes` up to date.
#[macro_export]
macro_rules! follow_scopes {
    ($query:ty) => {
        fn pre_visit_query(&mut self, query: $query) -> ControlFlow<Self::Break> {
            self.scopes.enter(query);
            ControlFlow::Continue(())
        }

        fn post_visit_query(&mut self, query: $query) -> ControlFlow<Self::Break> {
            self.scopes.leave(query);
            ControlFlow::Continue(())
        }
    };
}

/// A query and its own common table expressions.
struct Scope {
    /// The names that are visible at this position.
    visible: Vec<String>,
    /// The queries and names of all of them: a name becomes visible after its query, or within it if it is
    /// recursive.
    ctes: Vec<(*const Query, String)>,
    recursive: bool,
}

impl Scope {
    fn see(&mut self, query: &Query) {
        let found = self.ctes.iter().find(|(cte, _)| std::ptr::eq(*cte, query));
        self.visible.extend(found.map(|(_, name)| name.clone()));
    }
}

impl Visitor for Named {
    type Break = std::convert::Infallible;

    follow_scopes!(&Query);

    fn pre_visit_relation(&mut self, relation: &ObjectName) -> ControlFlow<Self::Break> {
        if let Ok(name) = table_name(relation)
            && !bare(relation).is_some_and(|own| self.scopes.has(&own))
        {
            self.objects.insert(name);
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<Self::Break> {
        self.objects.extend(called_sequence(expr));
        ControlFlow::Continue(())
    }
}

/// The sequences that an expression of a definition calls, in lower case.
///
/// # Errors
/// Input, if the text is not an expression.
pub fn called_sequences(expr: &str) -> Result<BTreeSet<String>> {
    let mut called = Called(BTreeSet::new());
    let _ = stored_expr(expr)?.walk(&mut called);
    Ok(called.0)
}

/// Collects sequences.
struct Called(BTreeSet<String>);

impl Visitor for Called {
    type Break = std::convert::Infallible;

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<Self::Break> {
        self.0.extend(called_sequence(expr));
        ControlFlow::Continue(())
    }
}

/// The sequence that an expression itself calls, not expressions within it.
fn called_sequence(expr: &Expr) -> Option<String> {
    match expr {
        Expr::Function(function) if Kind::of(&function.name.to_string().to_ascii_lowercase()).is_some() => {
            named_sequence(function).ok()
        }
        _ => None,
    }
}

/// The columns that an expression of a definition reads, in lower case.
///
/// # Errors
/// Not supported, if it has subqueries; input, if it has parameters.
pub fn read_columns(expr: &Expr, what: &str) -> Result<BTreeSet<String>> {
    struct Reader<'a> {
        what: &'a str,
        columns: BTreeSet<String>,
    }
    impl Visitor for Reader<'_> {
        type Break = Error;
        fn pre_visit_query(&mut self, _: &Query) -> ControlFlow<Error> {
            ControlFlow::Break(Error::not_supported(format!("a subquery in {}", self.what)))
        }
        fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<Error> {
            match expr {
                Expr::Identifier(name) => {
                    self.columns.insert(name.value.to_ascii_lowercase());
                }
                Expr::CompoundIdentifier(parts) => {
                    self.columns.extend(parts.last().map(|name| name.value.to_ascii_lowercase()));
                }
                Expr::Value(value) if matches!(value.value, Value::Placeholder(_)) => {
                    return ControlFlow::Break(Error::input(format!("{} has no parameters", self.what)));
                }
                _ => {}
            }
            ControlFlow::Continue(())
        }
    }
    let mut reader = Reader { what, columns: BTreeSet::new() };
    match expr.walk(&mut reader) {
        ControlFlow::Break(error) => Err(error),
        ControlFlow::Continue(()) => Ok(reader.columns),
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
        for (sql, expected) in [
            ("WITH t AS (SELECT * FROM t) SELECT * FROM t, U", "t u"),
            ("WITH u AS (SELECT * FROM t), w AS (SELECT * FROM u) SELECT * FROM w, main.u", "t u"),
            ("WITH RECURSIVE r AS (SELECT 1 AS a UNION SELECT a FROM r, t) SELECT * FROM r", "t"),
            ("SELECT (WITH u AS (SELECT 1) SELECT 1 FROM u) FROM u", "u"),
            ("WITH u AS (SELECT 1) SELECT (SELECT nextval('s') FROM u WHERE a IN (SELECT b FROM v))", "s v"),
            ("WITH a AS (WITH b AS (SELECT 1) SELECT * FROM b) SELECT * FROM a, b", "b"),
        ] {
            assert_eq!(words(&named_objects(&parse_query(sql).unwrap())), expected, "{sql}");
        }
        assert_eq!(words(&called_sequences("nextval('S') + abs(currval('main.t'))").unwrap()), "s t");
        assert_eq!(words(&called_sequences("length('s')").unwrap()), "");
    }
}
