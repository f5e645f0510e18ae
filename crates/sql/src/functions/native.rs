//! Functions with native kernels, as DataFusion's binder sees them: a name, argument types and a result type.
//!
//! None of them can be invoked; lowering turns each into the engine's expression (`crate::lower::expr`). They
//! replace the library's functions of the same name, whose types or meaning differ from DuckDB's and
//! PostgreSQL's.

use crate::hidden::{EXACT, hidden};
use arrow_schema::{DataType as ArrowType, Field, FieldRef, TimeUnit};
use datafusion_common::{DataFusionError, Result as DfResult, ScalarValue};
use datafusion_expr::expr::{ScalarFunction, schema_name_from_exprs};
use datafusion_expr::type_coercion::binary::BinaryTypeCoercer;
use datafusion_expr::{
    ColumnarValue, Expr, Operator, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility,
};
use entasis_vector::Error;
use entasis_vector::expr::{ArithmeticOp, DatePart};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

/// What a native function computes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Kind {
    /// `f(VARCHAR) → VARCHAR`
    Text(TextFunction),
    /// `f(VARCHAR or BLOB) → BIGINT`: characters, or bytes.
    CharLength,
    /// `f(VARCHAR or BLOB) → BIGINT`: bytes.
    OctetLength,
    /// `f(VARCHAR, VARCHAR) → BOOLEAN`
    Test(TestFunction),
    /// `substring(VARCHAR or BLOB, BIGINT[, BIGINT])`, or `substring(VARCHAR, VARCHAR)` of a pattern.
    Substring,
    /// `abs(x)`, of the type of x.
    Abs,
    /// `f(DOUBLE) → DOUBLE`
    Float(FloatFunction),
    /// `date_part('part', x)`
    DatePart,
    /// `year(x)`, `month(x)`, …
    Extract(DatePart),
    /// `date_trunc('part', x)`, `date_trunc('part', TIMESTAMPTZ, 'zone')`
    DateTrunc,
    /// `nullif(a, b)`
    NullIf,
    /// `ifnull(a, b)`
    IfNull,
    /// `nvl2(a, b, c)`
    IfNotNull,
    /// `if(a, b, c)`
    If,
    /// An operator under the name of a function.
    Binary(Operator),
    /// An operator whose operand types DataFusion does not know, or to which it gives other types; the result
    /// has the first type.
    Operator(ArithmeticOp, OperatorResult),
    /// `uuid()`
    Uuid,
    /// The grouping sets in which a key is present, as a key of the grouping ([`SETS`](crate::hidden::SETS)).
    Sets,
    /// Returns its argument. In the binder its name identifies the argument completely; see [`exact`].
    Exact,
    /// The inequality of an as-of join ([`crate::rewrite::asof`]).
    Nearest,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum TextFunction {
    Upper,
    Lower,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum TestFunction {
    StartsWith,
    EndsWith,
    Contains,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum FloatFunction {
    Floor,
    Ceil,
    Sqrt,
}

/// Result types of [`Kind::Operator`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum OperatorResult {
    /// BIGINT: days between dates.
    Days,
    /// DATE.
    Date,
    /// INTERVAL.
    Interval,
    /// TIMESTAMP.
    Timestamp,
    /// TIME.
    Time,
}

/// A native function in the binder.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct Native {
    name: &'static str,
    pub(crate) kind: Kind,
    signature: Signature,
    /// For [`Kind::Exact`]: distinguishes the argument from all others, if that is known.
    tag: Option<u64>,
}

/// All native functions under each of their names.
pub(crate) fn all() -> Vec<(&'static str, Arc<ScalarUDF>)> {
    use Kind::*;
    type Op = datafusion_expr::Operator;
    let entries: &[(&'static [&'static str], Kind)] = &[
        (&["upper", "ucase"], Text(TextFunction::Upper)),
        (&["lower", "lcase"], Text(TextFunction::Lower)),
        (&["length", "char_length", "character_length", "len"], CharLength),
        (&["octet_length", "strlen"], OctetLength),
        (&["starts_with", "prefix"], Test(TestFunction::StartsWith)),
        (&["ends_with", "suffix"], Test(TestFunction::EndsWith)),
        (&["contains"], Test(TestFunction::Contains)),
        (&["substring", "substr"], Substring),
        (&["abs"], Abs),
        (&["floor"], Float(FloatFunction::Floor)),
        (&["ceil", "ceiling"], Float(FloatFunction::Ceil)),
        (&["sqrt"], Float(FloatFunction::Sqrt)),
        (&["date_part", "datepart"], DatePart),
        (&["date_trunc", "datetrunc"], DateTrunc),
        (&["nullif"], NullIf),
        (&["ifnull", "nvl"], IfNull),
        (&["nvl2"], IfNotNull),
        (&["if"], If),
        (&["mod"], Binary(Op::Modulo)),
        (&["add", "date_add"], Binary(Op::Plus)),
        (&["subtract"], Binary(Op::Minus)),
        (&["multiply"], Binary(Op::Multiply)),
        (&["xor"], Binary(Op::BitwiseXor)),
        (&["uuid", "gen_random_uuid", "uuidv4"], Uuid),
        (&["millennium"], Extract(entasis_vector::expr::DatePart::Millennium)),
        (&["isoyear"], Extract(entasis_vector::expr::DatePart::IsoYear)),
        (&["julian"], Extract(entasis_vector::expr::DatePart::Julian)),
        (&["yearweek"], Extract(entasis_vector::expr::DatePart::YearWeek)),
        (&["era"], Extract(entasis_vector::expr::DatePart::Era)),
        (&["century"], Extract(entasis_vector::expr::DatePart::Century)),
        (&["decade"], Extract(entasis_vector::expr::DatePart::Decade)),
        (&["year"], Extract(entasis_vector::expr::DatePart::Year)),
        (&["quarter"], Extract(entasis_vector::expr::DatePart::Quarter)),
        (&["month"], Extract(entasis_vector::expr::DatePart::Month)),
        (&["week", "weekofyear"], Extract(entasis_vector::expr::DatePart::Week)),
        (&["day", "dayofmonth"], Extract(entasis_vector::expr::DatePart::Day)),
        (&["dayofweek", "weekday"], Extract(entasis_vector::expr::DatePart::DayOfWeek)),
        (&["isodow"], Extract(entasis_vector::expr::DatePart::IsoDayOfWeek)),
        (&["dayofyear"], Extract(entasis_vector::expr::DatePart::DayOfYear)),
        (&["hour"], Extract(entasis_vector::expr::DatePart::Hour)),
        (&["minute"], Extract(entasis_vector::expr::DatePart::Minute)),
        (&["second"], Extract(entasis_vector::expr::DatePart::Second)),
        (&["millisecond"], Extract(entasis_vector::expr::DatePart::Millisecond)),
        (&["microsecond"], Extract(entasis_vector::expr::DatePart::Microsecond)),
        (&["epoch"], Extract(entasis_vector::expr::DatePart::Epoch)),
    ];
    let mut all = Vec::new();
    for (names, kind) in entries {
        all.extend(names.iter().map(|name| (*name, udf(name, *kind))));
    }
    all
}

/// The binder's view of one native function.
pub(crate) fn udf(name: &'static str, kind: Kind) -> Arc<ScalarUDF> {
    tagged(name, kind, None)
}

fn tagged(name: &'static str, kind: Kind, tag: Option<u64>) -> Arc<ScalarUDF> {
    let volatility = if kind == Kind::Uuid { Volatility::Volatile } else { Volatility::Immutable };
    // A function without arguments cannot have a user-defined signature.
    let signature =
        if kind == Kind::Uuid { Signature::nullary(volatility) } else { Signature::user_defined(volatility) };
    Arc::new(ScalarUDF::from(Native { name, kind, signature, tag }))
}

/// `expr` under a name that identifies it completely.
///
/// The binder finds the results of groups and aggregates by name, and its names leave out casts, brackets and
/// the contents of subqueries: `min(x)` and `min(CAST(x AS BIGINT))` would be one column. Expressions that
/// may differ from others only in this are wrapped by this function.
pub(crate) fn exact(expr: Expr) -> Expr {
    let exact = tagged(EXACT, Kind::Exact, Some(number(&expr)));
    Expr::ScalarFunction(ScalarFunction::new_udf(exact, vec![expr]))
}

fn number(of: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    of.hash(&mut hasher);
    hasher.finish()
}

fn refuse<T>(message: String) -> DfResult<T> {
    Err(DataFusionError::External(Box::new(Error::input(message))))
}

fn is_blob(ty: &ArrowType) -> bool {
    matches!(ty, ArrowType::Binary | ArrowType::LargeBinary | ArrowType::BinaryView)
}

/// The common type of values of these types.
pub(super) fn unified(types: &[&ArrowType]) -> Option<ArrowType> {
    let types =
        types.iter().map(|ty| entasis_arrow::from_arrow_type(ty)).collect::<Result<Vec<_>, _>>().ok()?;
    entasis_functions::definition::types::common(&types).map(entasis_arrow::to_arrow_type)
}

fn micros(zone: bool) -> ArrowType {
    ArrowType::Timestamp(TimeUnit::Microsecond, zone.then(|| entasis_arrow::types::UTC.into()))
}

impl Native {
    fn wrong<T>(&self, args: &[ArrowType]) -> DfResult<T> {
        let types: Vec<String> = args.iter().map(crate::error::type_name).collect();
        refuse(format!("{} does not take ({})", self.name, types.join(", ")))
    }

    /// The type to which a date, time or text argument is converted; `None` if it is none of these.
    fn temporal(arg: &ArrowType) -> Option<ArrowType> {
        Some(match arg {
            ArrowType::Date32 | ArrowType::Date64 => ArrowType::Date32,
            ArrowType::Timestamp(_, zone) => micros(zone.is_some()),
            ArrowType::Time32(_) | ArrowType::Time64(_) => ArrowType::Time64(TimeUnit::Microsecond),
            ArrowType::Interval(_) | ArrowType::Duration(_) => {
                ArrowType::Interval(arrow_schema::IntervalUnit::MonthDayNano)
            }
            ArrowType::Utf8 | ArrowType::LargeUtf8 | ArrowType::Utf8View | ArrowType::Null => micros(false),
            _ => return None,
        })
    }
}

impl ScalarUDFImpl for Native {
    fn name(&self) -> &str {
        self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn schema_name(&self, args: &[Expr]) -> DfResult<String> {
        match (self.kind, args) {
            // The binder's name, with a number that stands for what the name leaves out in a hidden part. If
            // there is no tag, it is the hash of the text, which lacks only the contents of subqueries and
            // does not change while their types are coerced.
            (Kind::Exact, [arg]) => {
                let tag = self.tag.unwrap_or_else(|| number(&arg.to_string()));
                Ok(format!("{}{}", arg.schema_name(), hidden(tag)))
            }
            _ => Ok(format!("{}({})", self.name, schema_name_from_exprs(args)?)),
        }
    }

    fn coerce_types(&self, args: &[ArrowType]) -> DfResult<Vec<ArrowType>> {
        use ArrowType::{Float64, Int64, Utf8};
        let is_float = |t: &ArrowType| t.is_numeric() || *t == ArrowType::Null;
        Ok(match (self.kind, args) {
            (
                Kind::CharLength | Kind::OctetLength,
                [ArrowType::Binary | ArrowType::LargeBinary | ArrowType::BinaryView],
            ) => {
                vec![ArrowType::Binary]
            }
            (Kind::CharLength, [list @ ArrowType::List(_)]) => vec![list.clone()],
            (Kind::Text(_) | Kind::CharLength | Kind::OctetLength, [arg]) if !is_blob(arg) => vec![Utf8],
            (Kind::Test(_), [a, b]) if !is_blob(a) && !is_blob(b) => vec![Utf8, Utf8],
            (Kind::Substring, [Utf8, Utf8]) => vec![Utf8, Utf8],
            (Kind::Substring, [text, rest @ ..])
                if matches!(rest.len(), 1 | 2) && rest.iter().all(is_float) =>
            {
                let text = if is_blob(text) { ArrowType::Binary } else { Utf8 };
                [text].into_iter().chain(rest.iter().map(|_| Int64)).collect()
            }
            (Kind::Abs, [ArrowType::Null]) => vec![Int64],
            (Kind::Abs, [arg]) if arg.is_numeric() => vec![arg.clone()],
            (Kind::Float(_), [arg]) if is_float(arg) => vec![Float64],
            (Kind::Extract(_), [arg]) => match Native::temporal(arg) {
                Some(ty) => vec![ty],
                None => return self.wrong(args),
            },
            (Kind::DateTrunc, [_, ArrowType::Time32(_) | ArrowType::Time64(_)]) => return self.wrong(args),
            (Kind::DatePart | Kind::DateTrunc, [_, arg]) => match Native::temporal(arg) {
                Some(ty) => vec![Utf8, ty],
                None => return self.wrong(args),
            },
            // With a zone of its own.
            (Kind::DateTrunc, [_, _, _]) => vec![Utf8, micros(true), Utf8],
            (Kind::NullIf, [a, b]) => match datafusion_expr::type_coercion::binary::comparison_coercion(a, b)
            {
                Some(ty) => vec![ty.clone(), ty],
                None => return self.wrong(args),
            },
            (Kind::IfNull, [a, b]) => match unified(&[a, b]) {
                Some(ty) => vec![ty.clone(), ty],
                None => return self.wrong(args),
            },
            (Kind::IfNotNull | Kind::If, [first, a, b]) => match unified(&[a, b]) {
                Some(ty) if self.kind == Kind::If => vec![ArrowType::Boolean, ty.clone(), ty],
                Some(ty) => vec![first.clone(), ty.clone(), ty],
                None => return self.wrong(args),
            },
            (Kind::Binary(op), [left, right]) => {
                let coercer = BinaryTypeCoercer::new(left, &op, right);
                match coercer.get_input_types() {
                    Ok((left, right)) => vec![left, right],
                    Err(_) => return self.wrong(args),
                }
            }
            (Kind::Operator(..), _) => args.to_vec(),
            (Kind::Uuid, []) => vec![],
            (Kind::Exact | Kind::Sets | Kind::Nearest, [arg]) => vec![arg.clone()],
            _ => return self.wrong(args),
        })
    }

    fn return_type(&self, args: &[ArrowType]) -> DfResult<ArrowType> {
        Ok(match self.kind {
            Kind::Text(_) => ArrowType::Utf8,
            Kind::Substring if args.first().is_some_and(is_blob) => ArrowType::Binary,
            Kind::Substring => ArrowType::Utf8,
            Kind::IfNull => args.first().cloned().unwrap_or(ArrowType::Null),
            Kind::IfNotNull | Kind::If => args.get(1).cloned().unwrap_or(ArrowType::Null),
            Kind::Binary(op) => match args {
                // The engine also adds an interval's time to a date.
                [ArrowType::Date32, ArrowType::Interval(_)] | [ArrowType::Interval(_), ArrowType::Date32] => {
                    micros(false)
                }
                [left, right] => BinaryTypeCoercer::new(left, &op, right).get_result_type()?,
                _ => return self.wrong(args),
            },
            Kind::CharLength | Kind::OctetLength | Kind::Sets => ArrowType::Int64,
            Kind::Test(_) | Kind::Nearest => ArrowType::Boolean,
            Kind::Abs | Kind::NullIf | Kind::Exact => args.first().cloned().unwrap_or(ArrowType::Null),
            Kind::Float(_) => ArrowType::Float64,
            Kind::Extract(DatePart::Epoch | DatePart::Julian) => ArrowType::Float64,
            Kind::Extract(_) | Kind::DatePart => ArrowType::Int64,
            Kind::DateTrunc => args.get(1).cloned().unwrap_or(ArrowType::Null),
            Kind::Operator(_, OperatorResult::Days) => ArrowType::Int64,
            Kind::Operator(_, OperatorResult::Date) => ArrowType::Date32,
            Kind::Operator(_, OperatorResult::Timestamp) => micros(false),
            Kind::Operator(_, OperatorResult::Time) => ArrowType::Time64(TimeUnit::Microsecond),
            Kind::Operator(_, OperatorResult::Interval) => {
                ArrowType::Interval(arrow_schema::IntervalUnit::MonthDayNano)
            }
            Kind::Uuid => ArrowType::FixedSizeBinary(16),
        })
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> DfResult<FieldRef> {
        let types: Vec<ArrowType> = args.arg_fields.iter().map(|f| f.data_type().clone()).collect();
        let mut ty = self.return_type(&types)?;
        if let (Kind::Exact, [arg]) = (self.kind, args.arg_fields) {
            return Ok(arg.clone());
        }
        if matches!(self.kind, Kind::DatePart | Kind::DateTrunc) {
            let part = match args.scalar_arguments.first() {
                Some(Some(ScalarValue::Utf8(Some(name)) | ScalarValue::Utf8View(Some(name)))) => {
                    match entasis_functions::date_part(name) {
                        Some(part) => part,
                        // For parts of an offset, see `crate::lower::expr`.
                        None if self.kind == Kind::DatePart
                            && name.to_ascii_lowercase().starts_with("timezone") =>
                        {
                            return Ok(Arc::new(Field::new(self.name, ty, true)));
                        }
                        None => return refuse(format!("there is no date part '{name}'")),
                    }
                }
                _ => {
                    let error = Error::not_supported("date parts that are not constants");
                    return Err(DataFusionError::External(Box::new(error)));
                }
            };
            if self.kind == Kind::DatePart && matches!(part, DatePart::Epoch | DatePart::Julian) {
                ty = ArrowType::Float64;
            }
        }
        Ok(Arc::new(Field::new(self.name, ty, true)))
    }

    fn invoke_with_args(&self, _: ScalarFunctionArgs) -> DfResult<ColumnarValue> {
        Err(DataFusionError::Internal(format!("{} is lowered, not invoked", self.name)))
    }
}
