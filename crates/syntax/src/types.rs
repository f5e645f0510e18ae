//! The names of types: our types for SQL's names, and which types are not supported.

use super::dialect::EntasisDialect;
use super::map_types;
use super::place::Lines;
use entasis_vector::expr::DatePart;
use entasis_vector::{DataType, Error, Result};
use sqlparser::ast::{self, ArrayElemTypeDef, EnumMember, ExactNumberInfo, StructField, TimezoneInfo};
use sqlparser::parser::Parser;
use sqlparser::tokenizer::{Token, Tokenizer};

/// The type of a text such as `DECIMAL(12, 2)`.
///
/// # Errors
/// Input, if there is no such type; not supported, for those that are not implemented.
pub fn parse_type(name: &str) -> Result<DataType> {
    sql_type(&written_type(name)?)
}

/// The tree of a text such as `DECIMAL(12, 2)`.
///
/// # Errors
/// Input, if it is none.
pub fn written_type(name: &str) -> Result<ast::DataType> {
    let unknown = || Error::input(format!("there is no type '{name}'"));
    let tokens = Tokenizer::new(&EntasisDialect, name).tokenize_with_location().map_err(|_| unknown())?;
    let mut tokens: Vec<_> =
        tokens.into_iter().filter(|token| !matches!(token.token, Token::Whitespace(_))).collect();
    let lines = Lines::of(name);
    map_types::settle(&mut tokens, |span| &name[lines.offset(span.start)..lines.offset(span.end)]);
    let mut parser = Parser::new(&EntasisDialect).with_tokens_with_locations(tokens);
    let ty = parser.parse_data_type().map_err(|_| unknown())?;
    match parser.peek_token().token {
        Token::EOF => Ok(ty),
        _ => Err(unknown()),
    }
}

/// The type that SQL text names.
///
/// # Errors
/// Those of [`parse_type`].
pub fn sql_type(ty: &ast::DataType) -> Result<DataType> {
    use ast::DataType as Sql;
    if let Some(part) = disobeyed(ty) {
        let error = Error::not_supported(format!("{part} ({ty})"));
        return Err(match part {
            SECONDS => error.with_hint(INSTEAD_OF_DIGITS),
            _ => error,
        });
    }
    Ok(match ty {
        Sql::Boolean | Sql::Bool => DataType::Boolean,
        Sql::TinyInt(_) => DataType::Int8,
        Sql::SmallInt(_) | Sql::Int2(_) => DataType::Int16,
        Sql::Int(_) | Sql::Integer(_) | Sql::Int4(_) | Sql::MediumInt(_) | Sql::Int32 => DataType::Int32,
        Sql::BigInt(_) | Sql::Int8(_) | Sql::Int64 => DataType::Int64,
        Sql::Int16 => DataType::Int16,
        Sql::TinyIntUnsigned(_) | Sql::UTinyInt | Sql::UInt8 => DataType::UInt8,
        Sql::SmallIntUnsigned(_) | Sql::Int2Unsigned(_) | Sql::USmallInt | Sql::UInt16 => DataType::UInt16,
        Sql::IntUnsigned(_) | Sql::IntegerUnsigned(_) | Sql::Int4Unsigned(_) | Sql::UInt32 => {
            DataType::UInt32
        }
        Sql::BigIntUnsigned(_) | Sql::Int8Unsigned(_) | Sql::UBigInt | Sql::UInt64 => DataType::UInt64,
        Sql::Float(ExactNumberInfo::Precision(digits)) if *digits > 24 => DataType::Float64,
        Sql::Float(_) | Sql::Real | Sql::Float4 | Sql::Float32 => DataType::Float32,
        Sql::Double(_) | Sql::DoublePrecision | Sql::Float8 | Sql::Float64 => DataType::Float64,
        Sql::Numeric(digits) | Sql::Decimal(digits) | Sql::Dec(digits) => match *digits {
            ExactNumberInfo::None => DataType::Decimal { precision: 18, scale: 3 },
            ExactNumberInfo::Precision(precision) => decimal(precision, 0)?,
            ExactNumberInfo::PrecisionAndScale(precision, scale) => decimal(precision, scale)?,
        },
        Sql::Varchar(_)
        | Sql::Char(_)
        | Sql::Character(_)
        | Sql::CharacterVarying(_)
        | Sql::CharVarying(_)
        | Sql::Nvarchar(_)
        | Sql::Text
        | Sql::String(_)
        | Sql::Clob(_) => DataType::Varchar,
        Sql::Bytea | Sql::Blob(_) | Sql::Binary(_) | Sql::Varbinary(_) | Sql::Bytes(_) => DataType::Blob,
        Sql::Date | Sql::Date32 => DataType::Date,
        Sql::Time(_, TimezoneInfo::None | TimezoneInfo::WithoutTimeZone) => DataType::Time,
        Sql::Time(..) => DataType::TimeTz,
        Sql::Timestamp(_, TimezoneInfo::None | TimezoneInfo::WithoutTimeZone) | Sql::Datetime(_) => {
            DataType::Timestamp
        }
        Sql::Timestamp(_, _) => DataType::TimestampTz,
        Sql::Interval { .. } => DataType::Interval,
        Sql::Uuid => DataType::Uuid,
        Sql::Array(
            ArrayElemTypeDef::SquareBracket(element, None) | ArrayElemTypeDef::AngleBracket(element),
        ) => shallow(DataType::list(sql_type(element)?))?,
        Sql::Map(key, value) => shallow(DataType::map(sql_type(key)?, sql_type(value)?))?,
        Sql::Custom(name, within) if name.to_string().eq_ignore_ascii_case("map") => map_type(within)?,
        Sql::Array(ArrayElemTypeDef::SquareBracket(element, Some(length))) => {
            shallow(DataType::array(sql_type(element)?, *length)?)?
        }
        Sql::Struct(fields, _) => struct_type(fields)?,
        Sql::Enum(members, None) => enum_type(members)?,
        Sql::Array(_) | Sql::Tuple(_) | Sql::Nested(_) | Sql::Union(_) => {
            return Err(Error::not_supported(format!("the type {ty}"))
                .with_hint("T[], STRUCT(name T, …) and MAP(T, U) are"));
        }
        // The widest integers: 38 digits.
        Sql::HugeInt | Sql::UHugeInt | Sql::Int128 | Sql::UInt128 => {
            DataType::Decimal { precision: 38, scale: 0 }
        }
        other => type_named(&other.to_string().to_ascii_uppercase())?,
    })
}

/// `MAP(key, value)`
fn map_type(within: &[String]) -> Result<DataType> {
    match within {
        [key, value] => shallow(DataType::map(parse_type(key)?, parse_type(value)?)),
        _ => {
            let error = Error::input("a MAP has a type of its keys and one of its values");
            Err(error.with_hint("write MAP(VARCHAR, INTEGER)"))
        }
    }
}

/// `STRUCT(name type, …)`
fn struct_type(fields: &[StructField]) -> Result<DataType> {
    let mut named: Vec<(&str, DataType)> = Vec::with_capacity(fields.len());
    for field in fields {
        let name =
            field.field_name.as_ref().ok_or_else(|| Error::input("a field of a STRUCT has no name"))?;
        if named.iter().any(|(own, _)| own.eq_ignore_ascii_case(&name.value)) {
            return Err(Error::input(format!("a STRUCT has two fields called {}", name.value)));
        }
        named.push((&name.value, sql_type(&field.field_type)?));
    }
    Ok(DataType::structure(named))
}

/// `ENUM('label', …)`
fn enum_type(members: &[EnumMember]) -> Result<DataType> {
    let label = |member: &EnumMember| match member {
        EnumMember::Name(label) => Ok(label.clone()),
        EnumMember::NamedValue(label, _) => {
            Err(Error::not_supported(format!("a number for the label '{label}' of an ENUM")))
        }
    };
    let labels = members.iter().map(label).collect::<Result<Vec<String>>>()?;
    DataType::enumeration(labels.iter().map(String::as_str))
}

/// The type of a name that the parser does not know, in upper case.
fn type_named(name: &str) -> Result<DataType> {
    Ok(match name {
        "UINTEGER" | "UINT" => DataType::UInt32,
        "LONG" => DataType::Int64,
        "TIMESTAMPTZ" => DataType::TimestampTz,
        "TIMESTAMP_US" => DataType::Timestamp,
        // What a cast to these rounds to: `rounds_to`.
        "TIMESTAMP_S" | "TIMESTAMP_MS" => DataType::Timestamp,
        "TIMESTAMP_NS" => DataType::TimestampNs,
        "TIMESTAMPTZ_NS" | "TIME_NS" => {
            return Err(Error::not_supported(name).with_hint(INSTEAD_OF_DIGITS));
        }
        "JSON" => DataType::Json,
        "JSONB" => {
            return Err(Error::not_supported("JSONB").with_hint("JSON keeps the text as it is written"));
        }
        "GUID" => DataType::Uuid,
        "BPCHAR" => DataType::Varchar,
        name => return Err(Error::input(format!("there is no type {name}"))),
    })
}

/// The unit to which a cast to this type rounds a TIMESTAMP: `TIMESTAMP_S` and `TIMESTAMP_MS` are names of
/// that type. `None` for all other types.
pub fn rounds_to(ty: &ast::DataType) -> Option<DatePart> {
    let ast::DataType::Custom(name, _) = ty else { return None };
    match name.to_string().to_ascii_uppercase().as_str() {
        "TIMESTAMP_S" => Some(DatePart::Second),
        "TIMESTAMP_MS" => Some(DatePart::Millisecond),
        _ => None,
    }
}

/// The hint for seconds of another precision.
pub const INSTEAD_OF_DIGITS: &str = "TIME, TIMESTAMP and TIMESTAMPTZ have microseconds: date_trunc makes them coarser, and TIMESTAMP_NS has nanoseconds";

/// How deep types may be nested.
const DEEPEST: usize = 100;

/// The same type.
///
/// # Errors
/// Input, if it is nested too deep.
fn shallow(ty: DataType) -> Result<DataType> {
    match depth(ty) {
        ..=DEEPEST => Ok(ty),
        _ => Err(Error::input(format!("types are nested at most {DEEPEST} deep"))),
    }
}

/// How deep a type is nested.
fn depth(ty: DataType) -> usize {
    match ty {
        DataType::List(element) | DataType::Array(element, _) | DataType::Map(element) => 1 + depth(*element),
        DataType::Struct(fields) => 1 + fields.iter().map(|field| depth(field.ty)).max().unwrap_or(0),
        _ => 0,
    }
}

/// The feature name for a precision other than six digits.
const SECONDS: &str = "seconds of this precision";

/// The part of a type that is not supported, if there is one. (The lengths of texts are ignored as in DuckDB:
/// VARCHAR(n) accepts longer ones.)
fn disobeyed(ty: &ast::DataType) -> Option<&'static str> {
    use ast::DataType as Sql;
    // The number of digits in a fraction of a second; only six are supported.
    let seconds = |digits: &Option<u64>| digits.is_some_and(|digits| digits != 6).then_some(SECONDS);
    match ty {
        Sql::Time(digits, _)
        | Sql::Timestamp(digits, _)
        | Sql::Datetime(digits)
        | Sql::TimestampNtz(digits) => seconds(digits),
        Sql::TinyInt(width)
        | Sql::SmallInt(width)
        | Sql::Int2(width)
        | Sql::Int(width)
        | Sql::Integer(width)
        | Sql::Int4(width)
        | Sql::MediumInt(width)
        | Sql::BigInt(width)
        | Sql::Int8(width)
        | Sql::TinyIntUnsigned(width)
        | Sql::SmallIntUnsigned(width)
        | Sql::Int2Unsigned(width)
        | Sql::IntUnsigned(width)
        | Sql::IntegerUnsigned(width)
        | Sql::Int4Unsigned(width)
        | Sql::BigIntUnsigned(width)
        | Sql::Int8Unsigned(width) => width.is_some().then_some("integers of a width"),
        Sql::Double(ExactNumberInfo::Precision(_) | ExactNumberInfo::PrecisionAndScale(..))
        | Sql::Float(ExactNumberInfo::PrecisionAndScale(..)) => Some("floats with a number of digits"),
        Sql::Binary(Some(_)) | Sql::Varbinary(Some(_)) | Sql::Blob(Some(_)) | Sql::Bytes(Some(_)) => {
            Some("a length of bytes")
        }
        Sql::Interval { fields, precision } => {
            (fields.is_some() || precision.is_some()).then_some("an INTERVAL of some units")
        }
        _ => None,
    }
}

fn decimal(precision: u64, scale: i64) -> Result<DataType> {
    match (u8::try_from(precision), u8::try_from(scale)) {
        (Ok(precision @ 1..=38), Ok(scale)) if scale <= precision => {
            Ok(DataType::Decimal { precision, scale })
        }
        _ => Err(Error::input(format!(
            "DECIMAL({precision}, {scale}) is not a type: a decimal has 1 to 38 digits, of which at most all are decimals"
        ))),
    }
}
