//! Rows as types with `serde::Deserialize`: [`Row::deserialize`] and [`Rows::deserialize`].
//!
//! A row is a map of its columns by name, or a sequence of them by position, as the type asks for. Its cells
//! are values of serde's data model:
//!
//! | SQL | serde |
//! |---|---|
//! | BOOLEAN, integers, REAL, DOUBLE | the same |
//! | DECIMAL | an integer without a fraction; `f64`, up to 15 digits or if asked for; else a text |
//! | VARCHAR, ENUM | a text; a variant without fields |
//! | JSON | what it consists of; its text, if a text is asked for |
//! | BLOB | bytes, or a sequence of them |
//! | TIMESTAMP, TIMESTAMPTZ | a text as in ISO 8601: `2024-02-29T12:30:00`, with `+00:00` |
//! | other times, INTERVAL, UUID | their texts; `u128` too for a UUID |
//! | lists; STRUCT; MAP | a sequence; a map by names, or a sequence; a map |
//! | NULL | `None` |
//!
//! As for [`FromValue`], nothing is changed silently.

use crate::values::convert::FromValue;
use crate::values::row::{ColumnIndex, Row};
use crate::values::rows::Rows;
use entasis_vector::error::sqlstate;
use entasis_vector::types::StructField;
use entasis_vector::value::nested;
use entasis_vector::{DataType, Error, Field, Result, Value, name};
use serde::de::value::SeqDeserializer;
use serde::de::{
    self, DeserializeOwned, DeserializeSeed, Deserializer, Error as _, Expected, IntoDeserializer, MapAccess,
    SeqAccess, Unexpected, Visitor,
};
use serde_json::de::IoRead;
use std::fmt;

/// The most digits of a DECIMAL whose text comes back from a float.
const EXACT_DIGITS: u8 = 15;

impl Row {
    /// The row as any type with `serde::Deserialize`: a struct or a map by the names of the columns, a tuple
    /// by their positions, or a single value. NULL is `None`. The feature `serde` has it.
    ///
    /// ```
    /// use entasis::{Config, Database};
    /// use serde_derive::Deserialize;
    ///
    /// #[derive(Deserialize, Debug, PartialEq)]
    /// #[serde(rename_all = "lowercase")]
    /// enum Size { Small, Large }
    ///
    /// #[derive(Deserialize, Debug, PartialEq)]
    /// struct Shirt { size: Size, price: f64, colours: Vec<String>, note: Option<String> }
    ///
    /// let connection = Database::in_memory(Config::default())?.connect();
    /// let sql = "SELECT 'small' AS size, 9.5 AS price, ['red', 'blue'] AS colours, NULL AS note";
    /// let shirt: Shirt = connection.query_row(sql, (), |row| row.deserialize())?;
    /// assert_eq!(shirt.size, Size::Small);
    /// assert_eq!((shirt.price, shirt.colours.len(), shirt.note), (9.5, 2, None));
    ///
    /// let sql = "SELECT 'small' AS size, NULL::DOUBLE AS price, ['red'] AS colours";
    /// let error = connection.query_row(sql, (), |row| row.deserialize::<Shirt>()).unwrap_err();
    /// assert_eq!(error.message(), "column \"price\" of type DOUBLE: NULL cannot be read as f64");
    /// # Ok::<(), entasis::Error>(())
    /// ```
    ///
    /// # Errors
    /// Input, if the type needs a column that there is not, or more or fewer by position; if a value cannot
    /// be read as what it asks for. The message names the column and its type.
    pub fn deserialize<T: DeserializeOwned>(&self) -> Result<T> {
        T::deserialize(WholeRow(self)).map_err(|refused| refused.among(&names(self)))
    }
}

impl Rows {
    /// Each row as any type with `serde::Deserialize` ([`Row::deserialize`]).
    ///
    /// ```
    /// use entasis::{Config, Database, Result};
    ///
    /// let connection = Database::in_memory(Config::default())?.connect();
    /// let rows = connection.execute("SELECT n, n % 2 = 1 AS odd FROM range(3) AS numbers(n)")?;
    /// let all: Vec<(u8, bool)> = rows.deserialize().collect::<Result<_>>()?;
    /// assert_eq!(all, [(0, false), (1, true), (2, false)]);
    /// # Ok::<(), entasis::Error>(())
    /// ```
    pub fn deserialize<T: DeserializeOwned>(&self) -> impl Iterator<Item = Result<T>> + '_ {
        self.iter().map(|row| row.deserialize())
    }
}

// ---- errors -----------------------------------------------------------------------------------------------

/// Why something is not deserialized.
#[derive(Debug)]
enum Refused {
    /// There is no column, or field of a STRUCT, of that name.
    Missing(&'static str),
    /// Anything else.
    Other(Error),
}

impl Refused {
    /// The error, where these are the columns or fields.
    fn among(self, members: &[(&str, DataType)]) -> Error {
        match self {
            Refused::Missing(name) => {
                let fields: Vec<Field> = members.iter().map(|(name, ty)| Field::new(*name, *ty)).collect();
                let missing = || Error::input(format!("the column \"{name}\" is read as another one"));
                name.index_in(&fields).err().unwrap_or_else(missing)
            }
            Refused::Other(error) => error,
        }
    }
}

impl From<Error> for Refused {
    fn from(error: Error) -> Refused {
        Refused::Other(error)
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refused::Missing(name) => write!(f, "there is no field \"{name}\""),
            Refused::Other(error) => f.write_str(error.message()),
        }
    }
}

impl std::error::Error for Refused {}

impl de::Error for Refused {
    fn custom<T: fmt::Display>(message: T) -> Refused {
        Error::input(message.to_string()).with_sqlstate(sqlstate::TYPE_MISMATCH).into()
    }
    fn missing_field(field: &'static str) -> Refused {
        Refused::Missing(field)
    }
}

/// The error of a NULL where something else is expected.
fn null(expected: &dyn Expected) -> Refused {
    Error::input(format!("NULL cannot be read as {expected}"))
        .with_hint("an Option reads NULL as None")
        .with_sqlstate(sqlstate::UNEXPECTED_NULL)
        .into()
}

// ---- rows -------------------------------------------------------------------------------------------------

/// A row, for a type that asks for columns or for the only one.
struct WholeRow<'a>(&'a Row);

impl<'a> WholeRow<'a> {
    fn columns(&self) -> Members<'a> {
        Members::new(names(self.0), self.0.values().collect(), true)
    }

    /// The only column.
    fn only(&self) -> Result<Member<'a>, Refused> {
        self.0.expect_columns(1)?;
        self.columns().member().ok_or_else(|| Error::internal("a row of one column has a value").into())
    }
}

/// The names and types of the columns.
fn names(row: &Row) -> Vec<(&str, DataType)> {
    row.columns().iter().map(|field| (&*field.name, field.ty)).collect()
}

/// Methods that ask for a single value are passed on to the only column.
macro_rules! by_only_column {
    ($($method:ident)*) => {$(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Refused> {
            self.only()?.read(|cell| cell.$method(visitor))
        }
    )*};
}

impl<'de> Deserializer<'de> for WholeRow<'_> {
    type Error = Refused;

    by_only_column! {
        deserialize_bool deserialize_i8 deserialize_i16 deserialize_i32 deserialize_i64 deserialize_i128
        deserialize_u8 deserialize_u16 deserialize_u32 deserialize_u64 deserialize_u128 deserialize_f32
        deserialize_f64 deserialize_char deserialize_str deserialize_string deserialize_bytes
        deserialize_byte_buf deserialize_identifier
    }

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Refused> {
        self.deserialize_map(visitor)
    }
    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Refused> {
        visitor.visit_map(self.columns())
    }
    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Refused> {
        visitor.visit_map(self.columns().read_as(fields))
    }
    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Refused> {
        visitor.visit_seq(self.columns())
    }
    fn deserialize_tuple<V: Visitor<'de>>(self, length: usize, visitor: V) -> Result<V::Value, Refused> {
        self.0.expect_columns(length)?;
        self.deserialize_seq(visitor)
    }
    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        length: usize,
        visitor: V,
    ) -> Result<V::Value, Refused> {
        self.deserialize_tuple(length, visitor)
    }
    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Refused> {
        visitor.visit_newtype_struct(self)
    }
    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Refused> {
        self.only()?.read(|cell| cell.deserialize_enum(name, variants, visitor))
    }
    /// `None` is a NULL that is alone.
    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Refused> {
        match self.0.columns().len() == 1 && self.0.value(0).is_null() {
            true => visitor.visit_none(),
            false => visitor.visit_some(self),
        }
    }
    fn deserialize_unit<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Refused> {
        visitor.visit_unit()
    }
    fn deserialize_unit_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Refused> {
        visitor.visit_unit()
    }
    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Refused> {
        visitor.visit_unit()
    }
}

/// The columns of a row, or the fields of a STRUCT, one after another.
struct Members<'a> {
    fields: Vec<(&'a str, DataType)>,
    /// What the type calls them; `None` for those that are passed over.
    keys: Vec<Option<&'a str>>,
    values: std::vec::IntoIter<Value>,
    next: usize,
    are_columns: bool,
}

impl<'a> Members<'a> {
    fn new(fields: Vec<(&'a str, DataType)>, values: Vec<Value>, are_columns: bool) -> Members<'a> {
        let keys = fields.iter().map(|(name, _)| Some(*name)).collect();
        Members { fields, keys, values: values.into_iter(), next: 0, are_columns }
    }

    fn of_struct(bytes: &[u8], fields: &'a [StructField]) -> Result<Members<'a>> {
        let names = fields.iter().map(|field| (field.name, field.ty)).collect();
        Ok(Members::new(names, nested::fields(bytes, fields)?, false))
    }

    /// For a type with these fields: each is read from the first member of its name, in the same case if
    /// there is one. Members that it does not have stay, because it may refuse them.
    fn read_as(mut self, wanted: &[&'static str]) -> Members<'a> {
        let is_wanted = |name: &str| wanted.iter().any(|own| name::same(own, name));
        self.keys.iter_mut().for_each(|key| *key = key.filter(|name| !is_wanted(name)));
        for own in wanted {
            let exact = self.fields.iter().position(|(name, _)| name == own);
            let found = exact.or_else(|| self.fields.iter().position(|(name, _)| name::same(name, own)));
            if let Some(index) = found {
                self.keys[index] = Some(own);
            }
        }
        self
    }

    /// The next member.
    fn member(&mut self) -> Option<Member<'a>> {
        let value = self.values.next()?;
        let (name, ty) = self.fields[self.next];
        self.next += 1;
        Some(Member { cell: Cell { value, ty }, name, is_column: self.are_columns })
    }
}

impl<'de> MapAccess<'de> for Members<'_> {
    type Error = Refused;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Refused> {
        while let Some(key) = self.keys.get(self.next) {
            if let Some(key) = key {
                return seed.deserialize((*key).into_deserializer()).map(Some);
            }
            self.member();
        }
        Ok(None)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Refused> {
        let member = self.member().ok_or_else(|| Refused::custom("a value is asked for before its key"))?;
        member.read(|cell| seed.deserialize(cell))
    }
}

impl<'de> SeqAccess<'de> for Members<'_> {
    type Error = Refused;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, Refused> {
        self.member().map(|member| member.read(|cell| seed.deserialize(cell))).transpose()
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.values.len())
    }
}

/// A cell with the name that an error gives it.
struct Member<'a> {
    cell: Cell,
    name: &'a str,
    /// A column, or else a field of a STRUCT.
    is_column: bool,
}

impl Member<'_> {
    fn read<T>(self, read: impl FnOnce(Cell) -> Result<T, Refused>) -> Result<T, Refused> {
        let Member { cell, name, is_column } = self;
        let ty = cell.ty;
        read(cell).map_err(|refused| {
            let error = match refused {
                Refused::Missing(_) => Error::input(refused.to_string()),
                Refused::Other(error) => error,
            };
            Refused::Other(match is_column {
                true => error.with_context(format!("column \"{name}\" of type {ty}")).with_column(name),
                false => error.with_context(format!("field \"{name}\" of type {ty}")),
            })
        })
    }
}

// ---- cells ------------------------------------------------------------------------------------------------

/// A value of any type.
struct Cell {
    value: Value,
    ty: DataType,
}

impl Cell {
    /// The text of a JSON.
    fn json(&self) -> Option<&str> {
        match (&self.value, self.ty) {
            (Value::Text(text), DataType::Json) => Some(text),
            _ => None,
        }
    }

    /// The text of a value that serde's data model has no type for.
    fn text(&self) -> String {
        let text = self.value.display(self.ty).to_string();
        match self.ty {
            DataType::Timestamp | DataType::TimestampNs => text.replacen(' ', "T", 1),
            DataType::TimestampTz => {
                let text = text.replacen(' ', "T", 1);
                text.strip_suffix("+00").map(|moment| format!("{moment}+00:00")).unwrap_or(text)
            }
            _ => text,
        }
    }

    /// The deserializer of a JSON.
    fn parser(text: &str) -> serde_json::Deserializer<IoRead<&[u8]>> {
        serde_json::Deserializer::from_reader(text.as_bytes())
    }

    /// The elements of a list, or the entries of a MAP.
    fn elements(bytes: &[u8], element: DataType) -> Result<Vec<Cell>, Refused> {
        let cells = nested::values(bytes, element).map(|value| Ok(Cell { value: value?, ty: element }));
        cells.collect()
    }
}

/// A number as the smallest of serde's integers that holds it.
fn visit_integer<'de, V: Visitor<'de>>(v: i128, visitor: V) -> Result<V::Value, Refused> {
    match (i64::try_from(v), u64::try_from(v)) {
        (Ok(v), _) => visitor.visit_i64(v),
        (_, Ok(v)) => visitor.visit_u64(v),
        _ => visitor.visit_i128(v),
    }
}

/// All the elements, of which the type must read every one.
fn visit_elements<'de, V: Visitor<'de>, T: IntoDeserializer<'de, Refused>>(
    elements: impl Iterator<Item = T>,
    visitor: V,
) -> Result<V::Value, Refused> {
    let mut elements = SeqDeserializer::new(elements);
    let read = visitor.visit_seq(&mut elements)?;
    elements.end()?;
    Ok(read)
}

/// Methods that ask for something that JSON has, and SQL's values show by themselves.
macro_rules! as_it_is {
    ($($method:ident)*) => {$(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Refused> {
            if self.value.is_null() {
                return Err(null(&visitor));
            }
            match self.json() {
                Some(text) => Cell::parser(text).$method(visitor).map_err(Refused::custom),
                None => self.deserialize_any(visitor),
            }
        }
    )*};
}

/// Methods that ask for a text or for bytes, which a JSON has too.
macro_rules! as_text {
    ($($method:ident)*) => {$(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Refused> {
            if self.value.is_null() {
                return Err(null(&visitor));
            }
            match self.json() {
                Some(text) => visitor.visit_str(text),
                None => self.deserialize_any(visitor),
            }
        }
    )*};
}

impl<'de> Deserializer<'de> for Cell {
    type Error = Refused;

    as_it_is! {
        deserialize_bool deserialize_i8 deserialize_i16 deserialize_i32 deserialize_i64 deserialize_i128
        deserialize_u8 deserialize_u16 deserialize_u32 deserialize_u64 deserialize_map
    }

    as_text! {
        deserialize_char deserialize_str deserialize_string deserialize_bytes deserialize_byte_buf
        deserialize_identifier
    }

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Refused> {
        if let Some(text) = self.json() {
            return Cell::parser(text).deserialize_any(visitor).map_err(Refused::custom);
        }
        match (&self.value, self.ty) {
            (Value::Null, _) => visitor.visit_unit(),
            (Value::Boolean(v), _) => visitor.visit_bool(*v),
            (Value::Integer(v), ty) if ty.is_integer() => visit_integer(*v, visitor),
            (Value::Integer(v), DataType::Decimal { scale: 0, .. }) => visit_integer(*v, visitor),
            (value, ty @ DataType::Decimal { precision, .. }) if precision <= EXACT_DIGITS => {
                visitor.visit_f64(f64::from_value(value.clone(), ty)?)
            }
            (Value::Float(v), DataType::Float32) => visitor.visit_f32(*v as f32),
            (Value::Float(v), _) => visitor.visit_f64(*v),
            (Value::Text(text), _) => visitor.visit_str(text),
            (Value::Bytes(bytes), DataType::Blob) => visitor.visit_bytes(bytes),
            (Value::Bytes(bytes), DataType::List(element) | DataType::Array(element, _)) => {
                visit_elements(Cell::elements(bytes, *element)?.into_iter(), visitor)
            }
            (Value::Bytes(bytes), DataType::Struct(fields)) => {
                visitor.visit_map(Members::of_struct(bytes, fields)?)
            }
            (Value::Bytes(bytes), DataType::Map(entry)) => {
                visitor.visit_map(Entries { rest: Cell::elements(bytes, *entry)?.into_iter(), value: None })
            }
            _ => visitor.visit_string(self.text()),
        }
    }
    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Refused> {
        match self.value.is_null() {
            true => visitor.visit_none(),
            false => visitor.visit_some(self),
        }
    }
    fn deserialize_u128<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Refused> {
        match (&self.value, self.ty) {
            (Value::Integer(bits), DataType::Uuid) => visitor.visit_u128(*bits as u128),
            (Value::Null, _) => Err(null(&visitor)),
            _ => self.deserialize_any(visitor),
        }
    }
    fn deserialize_f32<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Refused> {
        self.deserialize_f64(visitor)
    }
    /// Exact, unless it is a DECIMAL.
    fn deserialize_f64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Refused> {
        match (&self.value, self.ty) {
            (Value::Null, _) => Err(null(&visitor)),
            (Value::Integer(_), ty) if ty.is_integer() || ty.is_decimal() => {
                visitor.visit_f64(f64::from_value(self.value, ty)?)
            }
            _ => self.deserialize_any(visitor),
        }
    }
    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Refused> {
        match (&self.value, self.ty) {
            (Value::Null, _) => Err(null(&visitor)),
            (Value::Bytes(bytes), DataType::Blob) => visit_elements(bytes.iter().copied(), visitor),
            (Value::Bytes(bytes), DataType::Struct(fields)) => {
                visitor.visit_seq(Members::of_struct(bytes, fields)?)
            }
            _ => self.deserialize_any(visitor),
        }
    }
    fn deserialize_tuple<V: Visitor<'de>>(self, length: usize, visitor: V) -> Result<V::Value, Refused> {
        match self.ty {
            DataType::Struct(fields) if fields.len() != length => {
                Err(Refused::invalid_length(fields.len(), &visitor))
            }
            _ => self.deserialize_seq(visitor),
        }
    }
    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        length: usize,
        visitor: V,
    ) -> Result<V::Value, Refused> {
        self.deserialize_tuple(length, visitor)
    }
    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Refused> {
        visitor.visit_newtype_struct(self)
    }
    fn deserialize_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Refused> {
        if let Some(text) = self.json() {
            let mut json = Cell::parser(text);
            return json.deserialize_struct(name, fields, visitor).map_err(Refused::custom);
        }
        match (&self.value, self.ty) {
            (Value::Null, _) => Err(null(&visitor)),
            (Value::Bytes(bytes), DataType::Struct(own)) => {
                let members = Members::of_struct(bytes, own)?;
                let columns = members.fields.clone();
                let read = visitor.visit_map(members.read_as(fields));
                read.map_err(|refused| Refused::Other(refused.among(&columns)))
            }
            _ => self.deserialize_any(visitor),
        }
    }
    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Refused> {
        if let Some(text) = self.json() {
            let mut json = Cell::parser(text);
            return json.deserialize_enum(name, variants, visitor).map_err(Refused::custom);
        }
        match (&self.value, self.ty) {
            (Value::Null, _) => Err(null(&visitor)),
            (Value::Text(_), _) | (_, DataType::Enum(_)) => {
                visitor.visit_enum(self.text().into_deserializer())
            }
            (_, ty) => Err(Refused::invalid_type(Unexpected::Other(&ty.to_string()), &visitor)),
        }
    }
    fn deserialize_unit<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Refused> {
        self.deserialize_any(visitor)
    }
    fn deserialize_unit_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Refused> {
        self.deserialize_any(visitor)
    }
    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Refused> {
        visitor.visit_unit()
    }
}

impl<'de> IntoDeserializer<'de, Refused> for Cell {
    type Deserializer = Cell;

    fn into_deserializer(self) -> Cell {
        self
    }
}

/// The entries of a MAP.
struct Entries {
    rest: std::vec::IntoIter<Cell>,
    /// The value of the last key.
    value: Option<Cell>,
}

impl<'de> MapAccess<'de> for Entries {
    type Error = Refused;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Refused> {
        let Some(Cell { value: Value::Bytes(entry), ty: DataType::Struct(fields) }) = self.rest.next() else {
            return Ok(None);
        };
        let cells = nested::fields(&entry, fields)?.into_iter().zip(fields);
        let mut cells = cells.map(|(value, field)| Cell { value, ty: field.ty });
        let key = cells.next();
        self.value = cells.next();
        key.map(|key| seed.deserialize(key)).transpose()
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Refused> {
        let value = self.value.take().ok_or_else(|| Refused::custom("there is no value"))?;
        seed.deserialize(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Config, Connection, Database};
    use serde_derive::Deserialize;
    use std::collections::{BTreeMap, HashMap};

    fn connection() -> Connection {
        Database::in_memory(Config::default()).unwrap().connect()
    }

    fn only<T: DeserializeOwned>(sql: &str) -> Result<T> {
        connection().query_row(sql, (), |row| row.deserialize())
    }

    #[track_caller]
    fn refused<T: DeserializeOwned + fmt::Debug>(sql: &str) -> String {
        only::<T>(sql).unwrap_err().message().to_owned()
    }

    #[derive(Deserialize, Debug, PartialEq)]
    struct Point {
        x: i32,
        y: Option<i32>,
    }

    #[derive(Deserialize, Debug, PartialEq)]
    struct Named<T> {
        name: String,
        #[serde(default)]
        count: u8,
        #[serde(flatten)]
        rest: T,
    }

    #[derive(Deserialize, Debug, PartialEq)]
    struct Metres(f64);

    #[derive(Deserialize, Debug, PartialEq)]
    #[serde(rename_all = "lowercase")]
    enum Mood {
        Ok,
        Sad,
    }

    #[test]
    fn rows_are_structs_maps_tuples_and_single_values() {
        assert_eq!(only::<Point>("SELECT 1 AS x, 2 AS y").unwrap(), Point { x: 1, y: Some(2) });
        assert_eq!(
            only::<Point>("SELECT NULL AS y, 'more' AS z, 1 AS \"X\"").unwrap(),
            Point { x: 1, y: None }
        );
        // A type that lacks a column takes what it has for it, and the first of several is read.
        assert_eq!(only::<Point>("SELECT 1 AS x, 2 AS x").unwrap(), Point { x: 1, y: None });
        assert_eq!(only::<Point>("SELECT 1 AS \"X\", 2 AS x").unwrap(), Point { x: 2, y: None });
        let named: Named<Point> = only("SELECT 'a' AS name, 1 AS x, 2 AS y").unwrap();
        assert_eq!(named, Named { name: "a".into(), count: 0, rest: Point { x: 1, y: Some(2) } });
        let map: BTreeMap<String, Option<i64>> = only("SELECT 1 AS a, NULL AS \"B\"").unwrap();
        assert_eq!(map, BTreeMap::from([("a".into(), Some(1)), ("B".into(), None)]));
        assert_eq!(only::<(i8, String)>("SELECT 1, 'a'").unwrap(), (1, "a".into()));
        assert_eq!(only::<Vec<i8>>("SELECT 1, 2, 3").unwrap(), [1, 2, 3]);
        assert_eq!(only::<Metres>("SELECT 1.5").unwrap(), Metres(1.5));
        assert_eq!(only::<Mood>("SELECT 'sad'::ENUM('ok', 'sad')").unwrap(), Mood::Sad);
        assert_eq!(only::<Option<i8>>("SELECT NULL::TINYINT").unwrap(), None);
        assert_eq!(only::<Option<Point>>("SELECT 1 AS x").unwrap(), Some(Point { x: 1, y: None }));
        let rows = connection().execute("SELECT n AS x, n + 1 AS y FROM range(3) AS r(n)").unwrap();
        let all: Vec<Point> = rows.deserialize().collect::<Result<_>>().unwrap();
        assert_eq!(all.last(), Some(&Point { x: 2, y: Some(3) }));
    }

    #[test]
    fn cells_are_of_every_type() {
        assert_eq!(
            only::<(bool, u64, i128, f32)>(
                "SELECT true, 18446744073709551615::UBIGINT, -7::DECIMAL(38), 1.5::REAL"
            )
            .unwrap(),
            (true, u64::MAX, -7, 1.5)
        );
        let cents = "7.25::DECIMAL(9, 2)";
        assert_eq!(only::<(f64, Metres)>(&format!("SELECT {cents}, {cents}")).unwrap(), (7.25, Metres(7.25)));
        assert_eq!(only::<String>("SELECT 0.1::DECIMAL(38, 20)").unwrap(), "0.10000000000000000000");
        assert_eq!(
            only::<[String; 6]>(
                "SELECT DATE '2024-02-29', TIME '12:30:00', TIMESTAMP '2024-02-29 12:30:00.5', \
                 TIMESTAMPTZ '2024-02-29 12:30:00+00', INTERVAL 1 DAY, \
                 '00000000-0000-0000-0000-0000000000ff'::UUID"
            )
            .unwrap(),
            [
                "2024-02-29",
                "12:30:00",
                "2024-02-29T12:30:00.5",
                "2024-02-29T12:30:00+00:00",
                "1 day",
                "00000000-0000-0000-0000-0000000000ff"
            ]
        );
        assert_eq!(only::<u128>("SELECT '00000000-0000-0000-0000-0000000000ff'::UUID").unwrap(), 255);
        let (lists, bytes): (Vec<[Option<u8>; 2]>, Vec<u8>) =
            only("SELECT [[1, NULL], [3, 4]], '\\x00\\xFF'::BLOB").unwrap();
        assert_eq!((lists, bytes), (vec![[Some(1), None], [Some(3), Some(4)]], vec![0, 255]));
        type Nested = (Vec<Point>, (i32, String), HashMap<String, Vec<i8>>);
        let (points, pair, map): Nested =
            only("SELECT [{'Y': 2, 'x': 1}], {'a': 1, 'b': 'c'}, MAP {'k': [1, 2]}").unwrap();
        assert_eq!((points, pair), (vec![Point { x: 1, y: Some(2) }], (1, "c".into())));
        assert_eq!(map["k"], [1, 2]);
        let json = "'{\"x\": 1, \"y\": null}'::JSON";
        let (point, text, value): (Point, String, serde_json::Value) =
            only(&format!("SELECT {json}, {json}, {json}")).unwrap();
        assert_eq!((point, text.len(), &value["x"]), (Point { x: 1, y: None }, 19, &1.into()));
        let value: serde_json::Value =
            only("SELECT 1 AS a, 1.5 AS b, [NULL, 'x'] AS c, DATE '2024-02-29' AS d").unwrap();
        assert_eq!(value, serde_json::json!({"a": 1, "b": 1.5, "c": [null, "x"], "d": "2024-02-29"}));
    }

    #[test]
    fn errors_name_the_column_and_its_type() {
        for (found, message) in [
            (
                refused::<Point>("SELECT 'a' AS x"),
                "column \"x\" of type VARCHAR: invalid type: string \"a\", expected i32",
            ),
            (
                refused::<Point>("SELECT NULL::INTEGER AS x"),
                "column \"x\" of type INTEGER: NULL cannot be read as i32",
            ),
            (
                refused::<Point>("SELECT 1.5 AS x"),
                "column \"x\" of type DECIMAL(2,1): invalid type: floating point `1.5`, expected i32",
            ),
            (
                refused::<(u8, u8)>("SELECT 1 AS a, 300 AS b"),
                "column \"b\" of type INTEGER: invalid value: integer `300`, expected u8",
            ),
            (refused::<Point>("SELECT 1 AS y"), "there is no column \"x\""),
            (refused::<(u8, u8)>("SELECT 1 AS a"), "the row has 1 column (a), not 2"),
            (refused::<u8>("SELECT 1 AS a, 2 AS b"), "the row has 2 columns (a, b), not 1"),
            (
                refused::<f64>("SELECT 9007199254740993 AS a"),
                "column \"a\" of type BIGINT: the BIGINT 9007199254740993 is not exactly a number of f64",
            ),
            (
                refused::<((u8, u8),)>("SELECT [1, 2, 3] AS a"),
                "column \"a\" of type INTEGER[]: invalid length 3, expected 2 elements in sequence",
            ),
            (
                refused::<(Vec<Point>,)>("SELECT [{'y': 1}] AS a"),
                "column \"a\" of type STRUCT(y INTEGER)[]: there is no column \"x\"",
            ),
            (
                refused::<(Point,)>("SELECT {'x': 'a'} AS a"),
                "column \"a\" of type STRUCT(x VARCHAR): field \"x\" of type VARCHAR: invalid type: string \"a\", expected i32",
            ),
        ] {
            assert_eq!(found, message);
        }
        let error = only::<Point>("SELECT NULL AS x").unwrap_err();
        assert_eq!((error.column(), error.hint()), (Some("x"), Some("an Option reads NULL as None")));
        let error = only::<Point>("SELECT 1 AS xx").unwrap_err();
        assert_eq!(error.hint(), Some("did you mean \"xx\"?"));
    }
}
