//! Expressions: the typed tree that plans carry ([`Expr`]) and the machine that runs it over chunks.
//!
//! A tree is made by the front end with every type settled and every coercion an explicit [`Expr::Cast`]. It
//! is compiled once per operator to a [`Program`], a linear list of instructions over registers in which a
//! shared subexpression occurs once, and each worker runs the program on a [`Machine`] of its own, chunk
//! after chunk.
//!
//! **NULL**: every operation is NULL if an operand is, unless its documentation says otherwise. **Errors**:
//! overflow, division by zero and failed casts are errors, raised only for rows that the chunk selects and
//! that SQL evaluates: a `CASE` branch that is not taken, or the right side of an `AND` whose left side is
//! false, raises nothing.

pub mod calendar;
mod compile;
pub mod display;
mod entries;
mod external;
pub mod fold;
pub mod interval_text;
pub mod json_text;
mod kernels;
pub mod machine;
pub mod moment_text;
pub mod parse;
pub mod pattern;
pub mod program;

pub use fold::evaluate_constant;
pub use kernels::boolean::true_bits;
pub use kernels::cast::{cast_rows, convert, convert_leniently, convert_parts};
pub use machine::Machine;
pub use parse::parse_value;
pub use program::Program;

use crate::error::Result;
use crate::types::{ColumnId, DataType, PhysicalType};
use crate::value::Value;
use crate::vector::Vector;
use std::fmt;
use std::sync::Arc;

/// A typed scalar expression over columns of a plan.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Expr {
    /// The value of a column.
    Column {
        /// Which one.
        id: ColumnId,
        /// Its type.
        ty: DataType,
    },
    /// A constant.
    Literal {
        /// The value.
        value: Value,
        /// Its type.
        ty: DataType,
    },
    /// A value that is supplied later: only in templates of plans, never in compiled expressions.
    Parameter {
        /// Which one, from 0.
        index: usize,
        /// Its type.
        ty: DataType,
    },
    /// A comparison of two operands of one type; BOOLEAN. For decimals the scales are equal too.
    Compare {
        /// Which one.
        op: CompareOp,
        /// Left operand.
        left: Box<Expr>,
        /// Right operand.
        right: Box<Expr>,
    },
    /// Arithmetic; see [`ArithmeticOp`] for the combinations of types.
    Arithmetic {
        /// Which one.
        op: ArithmeticOp,
        /// Left operand.
        left: Box<Expr>,
        /// Right operand.
        right: Box<Expr>,
        /// Type of the result.
        ty: DataType,
    },
    /// `-x`, of the type of `x`. Overflow is an error.
    Negate(Box<Expr>),
    /// Logical negation.
    Not(Box<Expr>),
    /// Conjunction of at least two. False if any is false, else NULL if any is NULL. Evaluated from the left,
    /// each conjunct only for rows that are still in question.
    And(Vec<Expr>),
    /// Disjunction of at least two. True if any is true, else NULL if any is NULL. Evaluated from the left
    /// likewise.
    Or(Vec<Expr>),
    /// `x IS NULL`; never NULL.
    IsNull(Box<Expr>),
    /// The first branch whose condition is true, else `otherwise`, else NULL.
    Case {
        /// Condition and result.
        branches: Vec<(Expr, Expr)>,
        /// The result if no condition is true.
        otherwise: Option<Box<Expr>>,
        /// Type of all results.
        ty: DataType,
    },
    /// Conversion to another type.
    Cast {
        /// What is converted.
        input: Box<Expr>,
        /// Target type.
        ty: DataType,
        /// True: a value that cannot be converted becomes NULL (`TRY_CAST`). False: it is an error.
        lenient: bool,
    },
    /// `x [I]LIKE pattern [ESCAPE c]`; negation is [`Expr::Not`].
    Like {
        /// The text.
        input: Box<Expr>,
        /// The pattern; mostly a literal.
        pattern: Box<Expr>,
        /// Escape character; by default backslash, as in PostgreSQL.
        escape: Option<char>,
        /// `ILIKE`.
        case_insensitive: bool,
    },
    /// `x IN (constants)`. NULL if `x` is NULL, or if it equals no constant and the list holds a NULL.
    InList {
        /// What is looked for.
        input: Box<Expr>,
        /// Constants of the type of `input`.
        list: Vec<Value>,
    },
    /// A function with native kernels.
    Function {
        /// Which one.
        function: Function,
        /// Arguments, of the types that the function's documentation names.
        args: Vec<Expr>,
        /// Type of the result.
        ty: DataType,
    },
    /// A function of another library, which the front end provides.
    External {
        /// The function.
        function: Arc<dyn ExternalFunction>,
        /// Arguments.
        args: Vec<Expr>,
        /// Type of the result.
        ty: DataType,
    },
}

/// Comparisons. Floats compare in SQL order: NaN equals NaN and is greater than all numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CompareOp {
    /// `=`
    Eq,
    /// `<>`
    NotEq,
    /// `<`
    Lt,
    /// `<=`
    LtEq,
    /// `>`
    Gt,
    /// `>=`
    GtEq,
    /// `IS DISTINCT FROM`: never NULL.
    DistinctFrom,
    /// `IS NOT DISTINCT FROM`: never NULL.
    NotDistinctFrom,
}

impl CompareOp {
    /// The operation that gives the same result with its operands exchanged.
    pub fn mirrored(self) -> CompareOp {
        match self {
            CompareOp::Lt => CompareOp::Gt,
            CompareOp::LtEq => CompareOp::GtEq,
            CompareOp::Gt => CompareOp::Lt,
            CompareOp::GtEq => CompareOp::LtEq,
            other => other,
        }
    }
}

/// Arithmetic and bit operations.
///
/// | operands | operations | result |
/// |---|---|---|
/// | two of one integer type | all | that type; overflow and division by zero are errors; division truncates |
/// | two of one float type | `Add` … `Modulo` | that type, IEEE 754; division by zero is an error |
/// | two decimals | `Add`, `Subtract`, `Modulo` | decimal of the larger scale: operands are scaled up first |
/// | two decimals | `Multiply` | decimal whose scale is the sum of theirs |
/// | DATE, INTERVAL | `Add`, `Subtract` | TIMESTAMP |
/// | TIMESTAMP\[TZ\], INTERVAL | `Add`, `Subtract` | of the first type |
/// | TIME, INTERVAL | `Add`, `Subtract` | TIME, wrapping at midnight |
/// | INTERVAL, INTERVAL | `Add`, `Subtract` | INTERVAL |
/// | INTERVAL, BIGINT or DOUBLE | `Multiply`, `Divide` | INTERVAL |
/// | DATE, TIME | `Add` | TIMESTAMP |
/// | two of TIME | `Subtract` | INTERVAL |
/// | DATE, DATE | `Subtract` | BIGINT, days |
/// | DATE, BIGINT | `Add`, `Subtract` | DATE |
/// | two of TIMESTAMP\[TZ\] | `Subtract` | INTERVAL of days and microseconds |
///
/// Adding months clips the day to the length of the month. INTERVAL is the right operand; the front end swaps
/// `interval + date`. Infinity stays infinity whatever is added to it; it cannot be subtracted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ArithmeticOp {
    /// `+`
    Add,
    /// `-`
    Subtract,
    /// `*`
    Multiply,
    /// `/`
    Divide,
    /// `%`, with the sign of the dividend.
    Modulo,
    /// `&`
    BitAnd,
    /// `|`
    BitOr,
    /// `#` (xor)
    BitXor,
    /// `<<`; the shift is taken modulo the width.
    ShiftLeft,
    /// `>>`, arithmetic for signed types.
    ShiftRight,
}

/// Functions with native kernels. All are NULL on a NULL argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Function {
    /// Field of a DATE, TIMESTAMP\[TZ\], TIME or INTERVAL; result `ty` is an integer type, or DOUBLE for
    /// [`DatePart::Epoch`] and [`DatePart::Julian`]. TIMESTAMPTZ is read in UTC. NULL of infinity.
    Extract(DatePart),
    /// DATE or TIMESTAMP\[TZ\] truncated to the start of the field; type of the argument, or TIMESTAMP for a
    /// DATE argument if `ty` says so. An INTERVAL without units finer than the field.
    Truncate(DatePart),
    /// `substring(VARCHAR, start BIGINT[, count BIGINT])`, from 1, in characters, as in PostgreSQL: a start
    /// before the text counts into the length; a negative count is an error.
    Substring,
    /// Characters of a VARCHAR; BIGINT or INTEGER as `ty` says.
    CharLength,
    /// Bytes of a VARCHAR or BLOB.
    OctetLength,
    /// Upper case.
    Upper,
    /// Lower case.
    Lower,
    /// Concatenation of VARCHARs, the operator `||`.
    Concat,
    /// `starts_with(VARCHAR, VARCHAR)`.
    StartsWith,
    /// `ends_with(VARCHAR, VARCHAR)`.
    EndsWith,
    /// `contains(VARCHAR, VARCHAR)`.
    Contains,
    /// Absolute value, of the argument's type. Overflow is an error.
    Abs,
    /// Largest integer not above, DOUBLE to DOUBLE.
    Floor,
    /// Smallest integer not below, DOUBLE to DOUBLE.
    Ceil,
    /// An integer or decimal as a decimal of 38 digits and no smaller scale; what has too many digits becomes
    /// ±10^38, which is beyond all values of that type. For comparisons alone.
    Saturate,
    /// Square root, DOUBLE to DOUBLE; a negative argument is an error.
    Sqrt,
}

/// Fields of dates, times and intervals.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum DatePart {
    Millennium,
    Century,
    Decade,
    Year,
    /// Year of the ISO week.
    IsoYear,
    Quarter,
    Month,
    Week,
    /// ISO year and week as one number, 202501.
    YearWeek,
    /// 1, or 0 before Christ.
    Era,
    Day,
    /// 0 = Sunday.
    DayOfWeek,
    /// 1 = Monday … 7 = Sunday.
    IsoDayOfWeek,
    DayOfYear,
    Hour,
    Minute,
    Second,
    /// Seconds times 1000, with the fraction.
    Millisecond,
    /// Seconds times 1,000,000, with the fraction.
    Microsecond,
    /// Seconds since 1970.
    Epoch,
    /// Days since 4714-11-24 BC, with the time as a fraction.
    Julian,
}

/// A scalar function that another library computes, over whole vectors.
pub trait ExternalFunction: fmt::Debug + Send + Sync {
    /// The name, as SQL writes it. Together with the argument types it identifies the function.
    fn name(&self) -> &str;
    /// True if equal arguments give equal results, also at another time (`random()`, `uuid()` do not). Only
    /// such calls are computed once per dictionary value or folded.
    fn is_immutable(&self) -> bool;
    /// True if the function looks at the time, the session or chance, not only at its arguments.
    fn is_volatile(&self) -> bool;
    /// True if it has a result for all values of its argument types, and so may be computed for rows that the
    /// statement does not ask for. `args` may be constants.
    fn is_total(&self, args: &[Expr]) -> bool {
        let _ = args;
        false
    }
    /// Computes the first `rows` positions of flat or constant `args` into `out`, whose type is the result's
    /// physical type and which the function begins.
    ///
    /// # Errors
    /// Input, if the function rejects a value.
    fn evaluate(&self, args: &[Vector], rows: usize, out: &mut Vector) -> Result<()>;
}

impl PartialEq for dyn ExternalFunction {
    fn eq(&self, other: &dyn ExternalFunction) -> bool {
        // Copies of one volatile call, such as that of `random() BETWEEN a AND b`, are that call; two calls
        // that were written have functions of their own.
        match self.is_volatile() || other.is_volatile() {
            true => std::ptr::addr_eq(self, other),
            false => self.name() == other.name(),
        }
    }
}
impl Eq for dyn ExternalFunction {}
impl std::hash::Hash for dyn ExternalFunction {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.name().hash(state);
    }
}

/// What is known about a column that flows between operators: enough to compile expressions over it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ColumnMeta {
    /// Its identity in the plan.
    pub id: ColumnId,
    /// Its SQL type.
    pub ty: DataType,
    /// How its vectors hold it. Mostly `ty.physical()`; a wide decimal whose range allows it travels as
    /// `I64`, and a column that only programs and sums read in the type of [`DataType::narrowest`].
    pub physical: PhysicalType,
    /// Whether NULL may occur.
    pub nullable: bool,
    /// Bounds of the (unscaled) integer values, if known: every value of this execution lies within.
    pub range: Option<(i128, i128)>,
}

impl ColumnMeta {
    /// A column about which only the type is known.
    pub fn new(id: ColumnId, ty: DataType) -> ColumnMeta {
        ColumnMeta { id, ty, physical: ty.physical(), nullable: true, range: ty.integer_range() }
    }
}

impl Expr {
    /// A column.
    pub fn column(id: ColumnId, ty: DataType) -> Expr {
        Expr::Column { id, ty }
    }
    /// A constant.
    pub fn literal(value: Value, ty: DataType) -> Expr {
        Expr::Literal { value, ty }
    }
    /// A BOOLEAN constant.
    pub fn boolean(value: bool) -> Expr {
        Expr::literal(Value::Boolean(value), DataType::Boolean)
    }
    /// `left op right`.
    pub fn compare(op: CompareOp, left: Expr, right: Expr) -> Expr {
        Expr::Compare { op, left: Box::new(left), right: Box::new(right) }
    }
    /// The conjunction of any number of conditions; true if there are none. Nested conjunctions are
    /// flattened.
    pub fn and(conditions: impl IntoIterator<Item = Expr>) -> Expr {
        let mut flat = Vec::new();
        for condition in conditions {
            condition.split_conjunction(&mut flat);
        }
        match flat.len() {
            0 => Expr::boolean(true),
            1 => flat.pop().expect("one"),
            _ => Expr::And(flat),
        }
    }
    /// Splits a conjunction; constants that are true vanish.
    pub fn split_conjunction(self, into: &mut Vec<Expr>) {
        match self {
            Expr::And(parts) => parts.into_iter().for_each(|part| part.split_conjunction(into)),
            Expr::Literal { value: Value::Boolean(true), .. } => {}
            other => into.push(other),
        }
    }

    /// The type of the result.
    pub fn ty(&self) -> DataType {
        match self {
            Expr::Column { ty, .. }
            | Expr::Literal { ty, .. }
            | Expr::Parameter { ty, .. }
            | Expr::Arithmetic { ty, .. }
            | Expr::Case { ty, .. }
            | Expr::Cast { ty, .. }
            | Expr::Function { ty, .. }
            | Expr::External { ty, .. } => *ty,
            Expr::Negate(input) => input.ty(),
            Expr::Compare { .. }
            | Expr::Not(_)
            | Expr::And(_)
            | Expr::Or(_)
            | Expr::IsNull(_)
            | Expr::Like { .. }
            | Expr::InList { .. } => DataType::Boolean,
        }
    }

    /// The direct operands, in order.
    pub fn children(&self) -> Vec<&Expr> {
        let mut children = Vec::new();
        self.each_child(&mut |child| children.push(child));
        children
    }

    /// The direct operands, in order, to be rewritten.
    pub fn children_mut(&mut self) -> Vec<&mut Expr> {
        let mut children = Vec::new();
        self.each_child_mut(&mut |child| children.push(child));
        children
    }

    /// Calls `f` for each direct operand, in order.
    // PERF: without the vector of `children`; rules walk expressions all the time.
    pub fn each_child<'a>(&'a self, f: &mut impl FnMut(&'a Expr)) {
        match self {
            Expr::Column { .. } | Expr::Literal { .. } | Expr::Parameter { .. } => {}
            Expr::Compare { left, right, .. } | Expr::Arithmetic { left, right, .. } => {
                f(left);
                f(right);
            }
            Expr::Negate(input) | Expr::Not(input) | Expr::IsNull(input) => f(input),
            Expr::Cast { input, .. } | Expr::InList { input, .. } => f(input),
            Expr::Like { input, pattern, .. } => {
                f(input);
                f(pattern);
            }
            Expr::And(parts) | Expr::Or(parts) => parts.iter().for_each(f),
            Expr::Function { args, .. } | Expr::External { args, .. } => args.iter().for_each(f),
            Expr::Case { branches, otherwise, .. } => {
                branches.iter().flat_map(|(c, r)| [c, r]).chain(otherwise.as_deref()).for_each(f);
            }
        }
    }

    /// Calls `f` for each direct operand, in order, to be rewritten.
    pub fn each_child_mut<'a>(&'a mut self, f: &mut impl FnMut(&'a mut Expr)) {
        match self {
            Expr::Column { .. } | Expr::Literal { .. } | Expr::Parameter { .. } => {}
            Expr::Compare { left, right, .. } | Expr::Arithmetic { left, right, .. } => {
                f(left);
                f(right);
            }
            Expr::Negate(input) | Expr::Not(input) | Expr::IsNull(input) => f(input),
            Expr::Cast { input, .. } | Expr::InList { input, .. } => f(input),
            Expr::Like { input, pattern, .. } => {
                f(input);
                f(pattern);
            }
            Expr::And(parts) | Expr::Or(parts) => parts.iter_mut().for_each(f),
            Expr::Function { args, .. } | Expr::External { args, .. } => args.iter_mut().for_each(f),
            Expr::Case { branches, otherwise, .. } => {
                branches.iter_mut().flat_map(|(c, r)| [c, r]).chain(otherwise.as_deref_mut()).for_each(f);
            }
        }
    }

    /// Calls `f` for this expression and all below it, parents first.
    pub fn visit<'a>(&'a self, f: &mut impl FnMut(&'a Expr)) {
        f(self);
        self.each_child(&mut |child| child.visit(f));
    }

    /// Replaces expressions from the leaves up: `f` sees each one after its operands.
    pub fn transform(mut self, f: &mut impl FnMut(Expr) -> Expr) -> Expr {
        self.each_child_mut(&mut |child| {
            let taken = std::mem::replace(child, Expr::boolean(false));
            *child = taken.transform(f);
        });
        f(self)
    }

    /// Adds the columns that this expression reads to `into`, each as often as it occurs.
    pub fn collect_columns(&self, into: &mut Vec<ColumnId>) {
        self.visit(&mut |e| {
            if let Expr::Column { id, .. } = e {
                into.push(*id);
            }
        });
    }

    /// True if the expression, evaluated again, may differ (`random()`).
    pub fn is_volatile(&self) -> bool {
        let mut volatile = false;
        self.visit(&mut |e| {
            volatile |= matches!(e, Expr::External { function, .. } if function.is_volatile())
        });
        volatile
    }
}

#[cfg(test)]
mod cast_tests;
#[cfg(test)]
mod narrow_tests;
#[cfg(test)]
mod tests;
