//! How expressions read in `EXPLAIN` and in golden plans: close to SQL, columns by id unless a name is known.

use super::*;
use std::fmt::Display as _;

/// Names for columns; `None` prints the id.
pub type ColumnNames<'a> = &'a dyn Fn(ColumnId) -> Option<String>;

/// Prints an expression with names. Made by [`Expr::display`].
pub struct DisplayExpr<'a> {
    expr: &'a Expr,
    names: ColumnNames<'a>,
}

impl Expr {
    /// The expression as text, columns named by `names`.
    pub fn display<'a>(&'a self, names: ColumnNames<'a>) -> DisplayExpr<'a> {
        DisplayExpr { expr: self, names }
    }
}

impl fmt::Display for Expr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.display(&|_| None).fmt(f)
    }
}

impl fmt::Display for CompareOp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            CompareOp::Eq => "=",
            CompareOp::NotEq => "<>",
            CompareOp::Lt => "<",
            CompareOp::LtEq => "<=",
            CompareOp::Gt => ">",
            CompareOp::GtEq => ">=",
            CompareOp::DistinctFrom => "IS DISTINCT FROM",
            CompareOp::NotDistinctFrom => "IS NOT DISTINCT FROM",
        })
    }
}

impl fmt::Display for ArithmeticOp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ArithmeticOp::Add => "+",
            ArithmeticOp::Subtract => "-",
            ArithmeticOp::Multiply => "*",
            ArithmeticOp::Divide => "/",
            ArithmeticOp::Modulo => "%",
            ArithmeticOp::BitAnd => "&",
            ArithmeticOp::BitOr => "|",
            ArithmeticOp::BitXor => "#",
            ArithmeticOp::ShiftLeft => "<<",
            ArithmeticOp::ShiftRight => ">>",
        })
    }
}

impl DisplayExpr<'_> {
    fn child<'a>(&'a self, expr: &'a Expr) -> DisplayExpr<'a> {
        DisplayExpr { expr, names: self.names }
    }

    fn list(&self, f: &mut fmt::Formatter<'_>, parts: &[Expr], separator: &str) -> fmt::Result {
        for (i, part) in parts.iter().enumerate() {
            if i > 0 {
                f.write_str(separator)?;
            }
            self.child(part).fmt(f)?;
        }
        Ok(())
    }
}

/// A literal as SQL would write it.
fn write_literal(f: &mut fmt::Formatter<'_>, value: &Value, ty: DataType) -> fmt::Result {
    match (value, ty) {
        (Value::Null, _) => f.write_str("NULL"),
        (Value::Text(text), DataType::Json) => write!(f, "JSON '{}'", text.replace('\'', "''")),
        (Value::Text(text), _) => write!(f, "'{}'", text.replace('\'', "''")),
        (Value::Integer(_), DataType::Enum(_)) => {
            write!(f, "'{}'", value.display(ty).to_string().replace('\'', "''"))
        }
        (
            Value::Integer(_),
            DataType::Date
            | DataType::Time
            | DataType::TimeTz
            | DataType::Timestamp
            | DataType::TimestampNs
            | DataType::TimestampTz,
        )
        | (Value::Interval(_) | Value::Bytes(_), _)
        | (_, DataType::Uuid) => write!(f, "{ty} '{}'", value.display(ty)),
        _ => value.display(ty).fmt(f),
    }
}

impl fmt::Display for DisplayExpr<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.expr {
            Expr::Column { id, .. } => match (self.names)(*id) {
                Some(name) => f.write_str(&name),
                None => write!(f, "{id}"),
            },
            Expr::Literal { value, ty } => write_literal(f, value, *ty),
            Expr::Parameter { index, .. } => write!(f, "${}", index + 1),
            Expr::Compare { op, left, right } => {
                write!(f, "({} {op} {})", self.child(left), self.child(right))
            }
            Expr::Arithmetic { op, left, right, .. } => {
                write!(f, "({} {op} {})", self.child(left), self.child(right))
            }
            Expr::Negate(input) => write!(f, "(-{})", self.child(input)),
            Expr::Not(input) => match &**input {
                Expr::IsNull(inner) => write!(f, "({} IS NOT NULL)", self.child(inner)),
                _ => write!(f, "(NOT {})", self.child(input)),
            },
            Expr::And(parts) | Expr::Or(parts) => {
                let separator = if matches!(self.expr, Expr::And(_)) { " AND " } else { " OR " };
                f.write_str("(")?;
                self.list(f, parts, separator)?;
                f.write_str(")")
            }
            Expr::IsNull(input) => write!(f, "({} IS NULL)", self.child(input)),
            Expr::Case { branches, otherwise, .. } => {
                f.write_str("CASE")?;
                for (condition, result) in branches {
                    write!(f, " WHEN {} THEN {}", self.child(condition), self.child(result))?;
                }
                if let Some(otherwise) = otherwise {
                    write!(f, " ELSE {}", self.child(otherwise))?;
                }
                f.write_str(" END")
            }
            Expr::Cast { input, ty, lenient } => {
                write!(f, "{}CAST({} AS {ty})", if *lenient { "TRY_" } else { "" }, self.child(input))
            }
            Expr::Like { input, pattern, escape, case_insensitive } => {
                let op = if *case_insensitive { "ILIKE" } else { "LIKE" };
                write!(f, "({} {op} {}", self.child(input), self.child(pattern))?;
                if let Some(escape) = escape {
                    write!(f, " ESCAPE '{escape}'")?;
                }
                f.write_str(")")
            }
            Expr::InList { input, list } => {
                write!(f, "({} IN (", self.child(input))?;
                for (i, value) in list.iter().enumerate() {
                    if i > 0 {
                        f.write_str(", ")?;
                    }
                    write_literal(f, value, input.ty())?;
                }
                f.write_str("))")
            }
            Expr::Function { function, args, .. } => {
                let name = format!("{function:?}").to_lowercase();
                write!(f, "{}(", name.replace(['(', ')'], "_").trim_end_matches('_'))?;
                self.list(f, args, ", ")?;
                f.write_str(")")
            }
            Expr::External { function, args, .. } => {
                write!(f, "{}(", function.name())?;
                self.list(f, args, ", ")?;
                f.write_str(")")
            }
        }
    }
}
