//! An expression that is bound, and what is given of its type.
//!
//! Expressions are the engine's, as they are written: comparisons and connectives are folded only when an
//! operator of the plan takes them ([`crate::settle`]), so that equal texts are equal expressions, and a key
//! of a GROUP BY is found again by comparing.

use entasis_functions::expressions::fold;
use entasis_functions::types::{Given, Implicit, implicit};
use entasis_vector::expr::Expr;
use entasis_vector::{DataType, Error, Result, Value};

/// See the module.
#[derive(Debug, Clone)]
pub(crate) struct Bound {
    /// The expression, in the type that it has where nothing asks for another one.
    pub(crate) expr: Expr,
    /// What is known of its type.
    pub(crate) given: Given,
}

impl Bound {
    /// An expression whose type is settled.
    pub(crate) fn known(expr: Expr) -> Bound {
        let given = match expr.ty() {
            DataType::Null => Given::Null,
            ty => Given::Known(ty),
        };
        Bound { expr, given }
    }

    /// NULL as it is written.
    pub(crate) fn null() -> Bound {
        Bound::known(Expr::literal(Value::Null, DataType::Null))
    }

    /// A text as it is written.
    pub(crate) fn text(text: &str) -> Bound {
        Bound { expr: Expr::literal(Value::Text(text.into()), DataType::Varchar), given: Given::Text }
    }

    /// An integer as it is written.
    pub(crate) fn integer(value: i64) -> Bound {
        let given = Given::Integer(value);
        Bound { expr: Expr::literal(Value::Integer(value.into()), given.settled()), given }
    }

    /// The type that it has by itself.
    pub(crate) fn ty(&self) -> DataType {
        self.expr.ty()
    }

    /// The expression as one of type `ty`; a NULL of no type stays one if that is asked for.
    pub(crate) fn cast(self, ty: DataType) -> Expr {
        match ty {
            DataType::Null => self.expr,
            ty => fold::cast_expr(self.expr, ty, false),
        }
    }

    /// The same with a settled type.
    pub(crate) fn into(self, ty: DataType) -> Bound {
        Bound::known(self.cast(ty))
    }

    /// An array of a fixed length as a list; others as they are.
    pub(crate) fn of_any_length(self) -> Bound {
        match self.ty() {
            array @ DataType::Array(..) => self.into(array.of_any_length()),
            _ => self,
        }
    }

    /// The expression as one of type `ty`, if it becomes one unasked.
    ///
    /// # Errors
    /// Input, naming what takes it, if only a cast that is written makes it one.
    pub(crate) fn implicit(self, ty: DataType, what: &str) -> Result<Expr> {
        match implicit(self.given, ty) {
            Some(Implicit(_)) => Ok(self.cast(ty)),
            None => Err(Error::input(format!("{what} does not take ({}), but a {ty}", self.given))
                .with_hint(format!("cast it: CAST(value AS {ty})"))),
        }
    }
}
