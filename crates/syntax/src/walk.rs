//! Traversals of the parser's syntax tree.
//!
//! `sqlparser` monomorphizes its traversal for each type of visitor, with code for every node of the
//! language: two fifths of this crate's machine code, and of the time to build it. Here a visitor is called
//! through a table of functions, so that all share one traversal for each type of result.

use sqlparser::ast::{
    Expr, ObjectName, Query, Select, Statement, TableFactor, ValueWithSpan, Visit, VisitMut, Visitor,
    VisitorMut,
};
use std::ops::ControlFlow;

/// A part of a syntax tree that can be visited.
pub trait Walk: Visit {
    /// Passes the part and everything below it to `visitor`.
    fn walk<B>(&self, visitor: &mut dyn Visitor<Break = B>) -> ControlFlow<B> {
        self.visit(&mut Looking(visitor))
    }
}

impl<T: Visit + ?Sized> Walk for T {}

/// A part of a syntax tree that can be changed.
pub trait WalkMut: VisitMut {
    /// Passes the part and everything below it to `visitor`, which may change it.
    fn walk_mut<B>(&mut self, visitor: &mut dyn VisitorMut<Break = B>) -> ControlFlow<B> {
        self.visit(&mut Changing(visitor))
    }
}

impl<T: VisitMut + ?Sized> WalkMut for T {}

struct Looking<'a, B>(&'a mut dyn Visitor<Break = B>);

struct Changing<'a, B>(&'a mut dyn VisitorMut<Break = B>);

/// Forwards each call.
macro_rules! hand_on {
    ($($call:ident: $node:ty,)*) => {
        impl<B> Visitor for Looking<'_, B> {
            type Break = B;
            $(fn $call(&mut self, node: &$node) -> ControlFlow<B> {
                self.0.$call(node)
            })*
        }
        impl<B> VisitorMut for Changing<'_, B> {
            type Break = B;
            $(fn $call(&mut self, node: &mut $node) -> ControlFlow<B> {
                self.0.$call(node)
            })*
        }
    };
}

hand_on! {
    pre_visit_query: Query,
    post_visit_query: Query,
    pre_visit_select: Select,
    post_visit_select: Select,
    pre_visit_relation: ObjectName,
    post_visit_relation: ObjectName,
    pre_visit_table_factor: TableFactor,
    post_visit_table_factor: TableFactor,
    pre_visit_expr: Expr,
    post_visit_expr: Expr,
    pre_visit_statement: Statement,
    post_visit_statement: Statement,
    pre_visit_value: ValueWithSpan,
    post_visit_value: ValueWithSpan,
}
