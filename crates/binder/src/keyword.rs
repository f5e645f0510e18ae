//! Calls with a syntax of their own, whose arguments stand between keywords or within brackets:
//!
//! ```text
//! EXTRACT(year FROM t)   SUBSTRING(s FROM 2 FOR 3)   TRIM(LEADING 'x' FROM s)   t AT TIME ZONE 'UTC'
//! [1, 2]   {'name': value}   MAP {key: value}
//! ```
//! Each is a call of a function of the catalog. What is no expression of ours is refused here, too.

use crate::binder::Binder;
use crate::bound::Bound;
use entasis_syntax::clauses;
use entasis_vector::{Error, Result};
use sqlparser::ast::{self, DateTimeField, TrimWhereField};

impl<'a, 'q> Binder<'a, 'q> {
    /// Binds a call whose arguments are written with keywords or brackets.
    ///
    /// # Errors
    /// Not supported, with the name of the feature, for any other expression.
    pub(crate) fn keyword_call(&mut self, ast: &'q ast::Expr) -> Result<Bound> {
        use ast::Expr as Sql;
        match ast {
            Sql::AtTimeZone { timestamp, time_zone } => self.call_of("timezone", [&**time_zone, timestamp]),
            Sql::Extract { field, expr, .. } => {
                let field = match field {
                    DateTimeField::Custom(field) => field.value.clone(),
                    field => field.to_string(),
                };
                let args = vec![Bound::text(field.trim_matches('\'')), self.expr(expr)?];
                self.call("date_part", args)
            }
            Sql::Ceil { expr, .. } => {
                clauses::expression(ast)?;
                self.call_of("ceil", [&**expr])
            }
            Sql::Floor { expr, .. } => {
                clauses::expression(ast)?;
                self.call_of("floor", [&**expr])
            }
            Sql::Position { expr, r#in } => self.call_of("strpos", [&**r#in, expr]),
            Sql::Substring { expr, substring_from, substring_for, .. } => {
                clauses::expression(ast)?;
                let mut args = vec![self.expr(expr)?];
                match substring_from {
                    Some(from) => args.push(self.expr(from)?),
                    None => args.push(Bound::integer(1)),
                }
                if let Some(count) = substring_for {
                    args.push(self.expr(count)?);
                }
                self.call("substring", args)
            }
            Sql::Trim { trim_where, trim_what, expr, trim_characters } => {
                let name = match trim_where {
                    Some(TrimWhereField::Leading) => "ltrim",
                    Some(TrimWhereField::Trailing) => "rtrim",
                    Some(TrimWhereField::Both) | None => "btrim",
                };
                let what = trim_what.as_deref().into_iter().chain(trim_characters.iter().flatten());
                self.call_of(name, std::iter::once(&**expr).chain(what))
            }
            Sql::Overlay { expr, overlay_what, overlay_from, overlay_for } => {
                let parts = [Some(expr), Some(overlay_what), Some(overlay_from), overlay_for.as_ref()];
                self.call_of("overlay", parts.into_iter().flatten().map(|part| &**part))
            }
            Sql::Array(array) => self.call_of("list_value", &array.elem),
            Sql::Dictionary(fields) => self.struct_of(fields),
            Sql::Map(map) => self.map_of(map),
            other => Err(refused(other)),
        }
    }

    /// Binds the arguments of a call of the function of this name.
    fn call_of(&mut self, name: &str, args: impl IntoIterator<Item = &'q ast::Expr>) -> Result<Bound> {
        let args = args.into_iter().map(|arg| self.expr(arg)).collect::<Result<_>>()?;
        self.call(name, args)
    }

    /// `{'name': value, …}`
    fn struct_of(&mut self, fields: &'q [ast::DictionaryField]) -> Result<Bound> {
        let mut args = Vec::with_capacity(2 * fields.len());
        for field in fields {
            args.push(Bound::text(&field.key.value));
            args.push(self.expr(&field.value)?);
        }
        self.call("named_struct", args)
    }

    /// `MAP {key: value, …}`
    fn map_of(&mut self, map: &'q ast::Map) -> Result<Bound> {
        let keys = self.call_of("list_value", map.entries.iter().map(|entry| &*entry.key))?;
        let values = self.call_of("list_value", map.entries.iter().map(|entry| &*entry.value))?;
        self.call("map", vec![keys, values])
    }
}

/// The error of an expression that cannot be bound.
fn refused(ast: &ast::Expr) -> Error {
    use ast::Expr as Sql;
    match ast {
        Sql::Tuple(_) => Error::not_supported("row values other than in comparisons, IN and IS NULL"),
        Sql::Rollup(_) | Sql::Cube(_) | Sql::GroupingSets(_) => {
            Error::not_supported("sets of keys outside of GROUP BY")
        }
        Sql::Struct { .. } => Error::not_supported("STRUCT(…)").with_hint("write {'name': value, …}"),
        Sql::Lambda(_) => Error::not_supported("lambda functions"),
        other => match clauses::expression(other) {
            Err(error) => error,
            Ok(()) => Error::not_supported(format!("the expression {other}")),
        },
    }
}
