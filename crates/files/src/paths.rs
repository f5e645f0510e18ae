//! Columns from the paths of files: `filename`, and a column for each directory called `key=value`, as
//! written by Hive and Spark.
//!
//! The type of such a column is BIGINT, DATE or TIMESTAMP if all its values fit it, else VARCHAR;
//! `hive_types` overrides this. Values are percent-encoded; `__HIVE_DEFAULT_PARTITION__` is NULL. A key hides
//! a column of the same name in the files.

use super::columns::{Origin, place_of};
use super::option_values::{ParseType, flag_option, types_option};
use entasis_functions::Argument;
use entasis_vector::expr::parse::parse_value;
use entasis_vector::vector::uuid_to_ordered;
use entasis_vector::{DataType, Error, Field, Result, Schema, Value};
use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};

const NULL: &str = "__HIVE_DEFAULT_PARTITION__";

/// How several files make one relation, and which columns come from their paths.
#[derive(Debug, Clone, Default)]
pub struct FileOptions {
    /// Match the columns of all files by name: a column that a file lacks is NULL there, and types are
    /// widened to hold all values.
    pub union_by_name: bool,
    /// Whether directories called `key=value` are columns; by default if all files are in such directories,
    /// with the same keys.
    pub hive_partitioning: Option<bool>,
    /// Types of such columns, by name.
    pub hive_types: Vec<(String, DataType)>,
    /// The name of a column that holds the path of the file.
    pub filename: Option<String>,
}

impl FileOptions {
    /// Sets an option by its SQL name. False if there is no such option.
    pub(super) fn set(&mut self, name: &str, value: &Argument, parse: ParseType) -> Result<bool> {
        match name {
            "union_by_name" => self.union_by_name = flag_option(name, value)?,
            "hive_partitioning" => self.hive_partitioning = Some(flag_option(name, value)?),
            "hive_types" => self.hive_types = types_option(name, value, parse)?,
            "filename" => {
                self.filename = match value {
                    Argument::Value(Value::Text(column), _) => Some(column.to_string()),
                    value => flag_option(name, value)?.then(|| "filename".to_owned()),
                };
            }
            _ => return Ok(false),
        }
        Ok(true)
    }
}

/// Adds the columns to those of the relation, and to those of each file.
///
/// # Errors
/// Input, if `filename` is the name of another column, or directories do not have the names that the options
/// require.
pub(super) fn add_columns(
    paths: &[PathBuf],
    options: &FileOptions,
    schema: &mut Schema,
    mut origins: Vec<&mut Vec<Origin>>,
) -> Result<()> {
    let mut add = |field: Field, values: Vec<Value>| {
        let place = place_of(&field.name, schema.iter().map(|field| &*field.name));
        match place {
            Some(place) => schema[place] = field,
            None => schema.push(field),
        }
        for (origins, value) in origins.iter_mut().zip(values) {
            match place {
                Some(place) => origins[place] = Origin::Value(value),
                None => origins.push(Origin::Value(value)),
            }
        }
        place.is_none()
    };
    if let Some(name) = &options.filename {
        let shown = paths.iter().map(|path| Value::Text(path.display().to_string().into()));
        if !add(Field::new(name.as_str(), DataType::Varchar), shown.collect()) {
            return Err(Error::input(format!("the files have a column \"{name}\" of their own"))
                .with_hint("give the paths another name: filename => 'path'"));
        }
    }
    for (key, values) in partitions(paths, options)? {
        let ty =
            options.hive_types.iter().find(|(name, _)| name.eq_ignore_ascii_case(&key)).map(|(_, ty)| *ty);
        let ty = ty.unwrap_or_else(|| type_of(&values));
        let values = values.iter().zip(paths).map(|(value, path)| match value {
            Some(text) => match parse_value(text, ty) {
                Ok(Value::Integer(uuid)) if ty == DataType::Uuid => Ok(Value::Integer(uuid_to_ordered(uuid))),
                Ok(value) => Ok(value),
                Err(e) => Err(e.with_context(format!("'{}', directory {key}={text}", path.display()))),
            },
            None => Ok(Value::Null),
        });
        add(Field::new(key.as_str(), ty), values.collect::<Result<_>>()?);
    }
    Ok(())
}

/// The keys, each with its values, one per file.
fn partitions(paths: &[PathBuf], options: &FileOptions) -> Result<Vec<(String, Vec<Option<String>>)>> {
    if options.hive_partitioning == Some(false) {
        return Ok(Vec::new());
    }
    let by_file: Vec<Vec<(String, Option<String>)>> = paths.iter().map(|path| keys_of(path)).collect();
    let Some(first) = by_file.first() else { return Ok(Vec::new()) };
    let names =
        |keys: &[(String, Option<String>)]| keys.iter().map(|(key, _)| key.clone()).collect::<BTreeSet<_>>();
    if let Some(other) = by_file.iter().position(|keys| names(keys) != names(first)) {
        return match options.hive_partitioning {
            Some(_) => Err(Error::input(format!(
                "the directories of '{}' and '{}' have different keys",
                paths[0].display(),
                paths[other].display()
            ))
            .with_hint(
                "leave hive_partitioning out, or name only files below directories with the same keys",
            )),
            None => Ok(Vec::new()),
        };
    }
    let values = |key: &str| {
        let value = |keys: &Vec<(String, Option<String>)>| keys.iter().find(|(own, _)| own == key)?.1.clone();
        by_file.iter().map(value).collect()
    };
    Ok(first.iter().map(|(key, _)| (key.clone(), values(key))).collect())
}

/// The keys and values in a file's path, without duplicate keys.
fn keys_of(path: &Path) -> Vec<(String, Option<String>)> {
    let mut keys: Vec<(String, Option<String>)> = Vec::new();
    for directory in path.parent().into_iter().flat_map(Path::components) {
        let Component::Normal(name) = directory else { continue };
        let Some((key, value)) = name.to_str().and_then(|name| name.split_once('=')) else { continue };
        let decoded =
            |text: &str| percent_encoding::percent_decode_str(text).decode_utf8_lossy().into_owned();
        let value = (value != NULL).then(|| decoded(value));
        let key = decoded(key);
        if !key.is_empty() && !keys.iter().any(|(own, _)| *own == key) {
            keys.push((key, value));
        }
    }
    keys
}

fn type_of(values: &[Option<String>]) -> DataType {
    let is = |ty: &DataType| {
        // Casts accept more than plain values of the type: `5.0` and `1e3`, or a date with a time. Such
        // values are not accepted here.
        let plain = |text: &str| match ty {
            DataType::Int64 => text.trim_start_matches('-').bytes().all(|b| b.is_ascii_digit()),
            DataType::Date => !text.contains(':'),
            _ => true,
        };
        values.iter().flatten().all(|text| plain(text) && parse_value(text, *ty).is_ok())
    };
    let types = [DataType::Int64, DataType::Date, DataType::Timestamp];
    match values.iter().any(Option::is_some) {
        true => types.into_iter().find(is).unwrap_or(DataType::Varchar),
        false => DataType::Varchar,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn columns(paths: &[&str], options: &FileOptions) -> Result<(Schema, Vec<Vec<Origin>>)> {
        let paths: Vec<PathBuf> = paths.iter().map(PathBuf::from).collect();
        let mut schema = vec![Field::new("v", DataType::Int64)];
        let mut origins = vec![vec![Origin::Column(0)]; paths.len()];
        add_columns(&paths, options, &mut schema, origins.iter_mut().collect())?;
        Ok((schema, origins))
    }

    #[test]
    fn directories_are_columns_if_all_files_have_them() {
        let paths = ["d/year=2024/city=S%C3%A3o/a.csv", "d/year=2025/city=__HIVE_DEFAULT_PARTITION__/a.csv"];
        let (schema, origins) = columns(&paths, &FileOptions::default()).unwrap();
        let names: Vec<(&str, DataType)> = schema.iter().map(|field| (&*field.name, field.ty)).collect();
        assert_eq!(names, [("v", DataType::Int64), ("year", DataType::Int64), ("city", DataType::Varchar)]);
        assert_eq!(
            origins[0][1..],
            [Origin::Value(Value::Integer(2024)), Origin::Value(Value::Text("São".into()))]
        );
        assert_eq!(origins[1][2], Origin::Value(Value::Null));

        let mixed = ["d/year=2024/a.csv", "d/a.csv"];
        assert_eq!(columns(&mixed, &FileOptions::default()).unwrap().0.len(), 1);
        let wanted = FileOptions { hive_partitioning: Some(true), ..FileOptions::default() };
        assert!(columns(&mixed, &wanted).unwrap_err().message().contains("'d/a.csv'"));
        let unwanted = FileOptions { hive_partitioning: Some(false), ..FileOptions::default() };
        assert_eq!(columns(&paths, &unwanted).unwrap().0.len(), 1);
    }

    #[test]
    fn types_are_guessed_or_said() {
        let types = |values: &[&str]| {
            type_of(&values.iter().map(|text| Some((*text).to_owned())).collect::<Vec<_>>())
        };
        assert_eq!(types(&["1", "-2"]), DataType::Int64);
        assert_eq!(types(&["1", "2.5"]), DataType::Varchar);
        assert_eq!(types(&["2024-01-01"]), DataType::Date);
        assert_eq!(types(&["2024-01-01", "2024-01-01 10:00:00"]), DataType::Timestamp);
        let text =
            FileOptions { hive_types: vec![("v".into(), DataType::Varchar)], ..FileOptions::default() };
        let (schema, origins) = columns(&["v=01/a.csv"], &text).unwrap();
        assert_eq!((schema.len(), &origins[0][0]), (1, &Origin::Value(Value::Text("01".into()))));
        let wrong = FileOptions { hive_types: vec![("v".into(), DataType::Date)], ..FileOptions::default() };
        assert!(columns(&["v=01/a.csv"], &wrong).unwrap_err().message().contains("v=01"));
    }

    #[test]
    fn paths_may_be_a_column() {
        let options = FileOptions { filename: Some("path".into()), ..FileOptions::default() };
        let (schema, origins) = columns(&["d/a.csv"], &options).unwrap();
        assert_eq!(
            (&*schema[1].name, &origins[0][1]),
            ("path", &Origin::Value(Value::Text("d/a.csv".into())))
        );
        let clash = FileOptions { filename: Some("V".into()), ..FileOptions::default() };
        assert!(columns(&["d/a.csv"], &clash).is_err());
    }
}
