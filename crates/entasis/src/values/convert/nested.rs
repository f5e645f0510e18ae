//! Lists and maps.

use super::from_value::{FromValue, mismatch, name, read};
use entasis_vector::value::nested;
use entasis_vector::{DataType, Error, Result, Value};
use std::collections::{BTreeMap, HashMap};
use std::hash::{BuildHasher, Hash};

/// A list, an array, or, of bytes, a BLOB.
impl<T: FromValue> FromValue for Vec<T> {
    fn from_value(value: Value, ty: DataType) -> Result<Vec<T>> {
        match (&value, ty) {
            (Value::Bytes(bytes), DataType::List(element) | DataType::Array(element, _)) => {
                let elements = nested::values(bytes, *element).enumerate();
                let one = |(index, value)| read(value, *element, move || format!("element {}", index + 1));
                elements.map(|(index, value)| one((index, value?))).collect()
            }
            (Value::Bytes(bytes), DataType::Blob) => {
                T::all_from_bytes(bytes).ok_or_else(|| mismatch::<Vec<T>>(ty))
            }
            _ => Err(mismatch::<Vec<T>>(ty)),
        }
    }
}

/// The same, of this length.
impl<T: FromValue, const N: usize> FromValue for [T; N] {
    fn from_value(value: Value, ty: DataType) -> Result<[T; N]> {
        let all = Vec::<T>::from_value(value, ty)?;
        all.try_into().map_err(|all: Vec<T>| {
            Error::input(format!("a {ty} of length {} cannot be read as {}", all.len(), name::<[T; N]>()))
        })
    }
}

/// The keys and values of a MAP, in their order.
fn entries<K: FromValue, V: FromValue, M>(value: Value, ty: DataType) -> Result<Vec<(K, V)>> {
    let (Value::Bytes(bytes), DataType::Map(entry)) = (&value, ty) else { return Err(mismatch::<M>(ty)) };
    let DataType::Struct(fields) = entry else { return Err(mismatch::<M>(ty)) };
    let mut found = Vec::new();
    for own in nested::values(bytes, *entry) {
        let Value::Bytes(own) = own? else { continue };
        let mut parts = nested::fields(&own, fields)?.into_iter().zip(fields.iter());
        let (Some((key, of_key)), Some((value, of_value))) = (parts.next(), parts.next()) else {
            return Err(Error::internal("an entry of a MAP has a key and a value"));
        };
        let shown = key.display(of_key.ty).to_string();
        let key = read(key, of_key.ty, || "a key".to_owned())?;
        found.push((key, read(value, of_value.ty, || format!("the value of {shown}"))?));
    }
    Ok(found)
}

impl<K: FromValue + Eq + Hash, V: FromValue, S: BuildHasher + Default> FromValue for HashMap<K, V, S> {
    fn from_value(value: Value, ty: DataType) -> Result<HashMap<K, V, S>> {
        Ok(entries::<K, V, HashMap<K, V, S>>(value, ty)?.into_iter().collect())
    }
}

impl<K: FromValue + Ord, V: FromValue> FromValue for BTreeMap<K, V> {
    fn from_value(value: Value, ty: DataType) -> Result<BTreeMap<K, V>> {
        Ok(entries::<K, V, BTreeMap<K, V>>(value, ty)?.into_iter().collect())
    }
}
