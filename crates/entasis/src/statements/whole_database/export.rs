//! `EXPORT DATABASE`: writes everything in a database to files of a directory, as DuckDB does.
//!
//! | file | |
//! |---|---|
//! | `schema.sql` | the statements that declare everything ([`super::script`]) |
//! | `load.sql` | `COPY … FROM`, table by table, and declarations that are only possible afterwards |
//! | `t.csv`, or `t.parquet` | the rows of each table |
//!
//! Everything is as of one moment. Rows are in the order of the table's layout key, and rows with equal keys
//! in the order of their values; without a layout key they are in the order in which they are stored. So
//! exporting an imported database produces the same files.
//!
//! `schema.sql` is written last: a directory without it is not a complete export. If something fails, all
//! files written so far are removed.

use super::script::{Script, columns, object};
use crate::binding::Names;
use crate::query::execute;
use crate::session::Session;
use crate::state::refuse_database;
use crate::transaction::TransactionContext;
use crate::values::rows::Rows;
use entasis_engine::plan::Plan;
use entasis_files::Format;
use entasis_sql::{Statement, quoted};
use entasis_storage::TableEntry;
use entasis_vector::{DataType, Error, ErrorKind, Result, Value};
use std::collections::HashSet;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

/// The file with the declarations.
pub(super) const SCHEMA: &str = "schema.sql";
/// The file that fills the tables.
pub(super) const LOAD: &str = "load.sql";
/// Characters of a table's name that are used in the name of its file.
const NAME: usize = 100;

/// Exports the present state.
pub(super) fn export(
    session: &Session,
    transaction: &mut TransactionContext,
    directory: &Path,
    options: &[(String, Value)],
) -> Result<Rows> {
    let written = Written::new(options)?;
    let mut target = Target::new(directory)?;
    transaction.see_all(session);
    let plain = session.plain();
    let count = transaction.seen_by(&plain, |transaction| {
        let script = Script::of(&transaction.names)?;
        let (mut load, mut taken, mut count) = (String::new(), HashSet::new(), 0);
        for table in &script.tables {
            let file = file_name(&table.name, written.extension, &mut taken);
            let path = target.directory.join(&file);
            let shown = path.display().to_string();
            target.is_free(&path)?;
            let plan = rows_of(&plain, transaction, table, written.format)?;
            let sink = entasis_files::copy_to(
                &shown,
                &plan.schema(),
                &written.copy,
                &plain.context(),
                refuse_database,
            )?;
            execute(&plain, plan, &*sink)?;
            count += sink.commit()?;
            target.files.push(path);
            let (name, file) = (object(&table.name), file.replace('\'', "''"));
            load += &format!("COPY {name} FROM '{file}' ({});\n", written.load);
        }
        target.write(LOAD, &(load + &script.later))?;
        target.write(SCHEMA, &script.schema)?;
        Ok::<u64, Error>(count)
    })?;
    target.keep();
    Ok(Rows::changed_rows(count))
}

/// The rows of a table in order.
fn rows_of(
    session: &Session,
    transaction: &mut TransactionContext,
    table: &TableEntry,
    format: Format,
) -> Result<Plan> {
    let schema = table.table.schema();
    // Parquet has no type for it that other programs read.
    let item = |field: &entasis_vector::Field| match format {
        Format::Parquet if field.ty.contains(DataType::Interval) => {
            format!("CAST({0} AS {1}) AS {0}", quoted(&field.name), with_text(field.ty))
        }
        _ => quoted(&field.name),
    };
    let items: Vec<String> = schema.iter().map(item).collect();
    let mut sql = format!("SELECT {} FROM {}", items.join(", "), object(&table.name));
    let options = table.table.options();
    let mut order = options.layout_key.clone();
    if !order.is_empty() {
        if !options.unique {
            order.extend((0..schema.len()).filter(|column| !options.layout_key.contains(column)));
        }
        sql += &format!(" ORDER BY {}", columns(table, &order));
    }
    let parsed = entasis_sql::parse(&sql)?;
    let [parsed] = parsed.as_slice() else { return Err(Error::internal(format!("{sql} is one query"))) };
    match entasis_sql::bind(parsed, &Names::new(session, transaction), &[])? {
        Statement::Query(plan) => Ok(plan),
        _ => Err(Error::internal(format!("{sql} is a query"))),
    }
}

/// The type with texts in place of intervals.
fn with_text(ty: DataType) -> DataType {
    ty.with_innermost(&|ty| if ty == DataType::Interval { DataType::Varchar } else { ty })
}

/// A name for the file of a table that no other file has.
fn file_name(table: &str, extension: &str, taken: &mut HashSet<String>) -> String {
    let is_safe = |character: &char| character.is_alphanumeric() || matches!(character, '_' | '-');
    let safe = |character: char| if is_safe(&character) { character } else { '_' };
    let stem: String = table.chars().take(NAME).map(safe).collect();
    let numbered = (2..).map(|number| format!("{stem}_{number}"));
    let free = std::iter::once(stem.clone()).chain(numbered).find(|stem| taken.insert(stem.clone()));
    format!("{}.{extension}", free.unwrap_or(stem))
}

/// The options with which files are written and read.
struct Written {
    format: Format,
    extension: &'static str,
    /// Options of `COPY … TO`.
    copy: Vec<(String, Value)>,
    /// Options of `COPY … FROM`, as text.
    load: String,
}

impl Written {
    fn new(options: &[(String, Value)]) -> Result<Written> {
        let mut format = Format::Csv;
        let text = |name: &str, value: &Value| match value {
            Value::Text(text) => Ok(text.to_string()),
            _ => Err(Error::input(format!("option {name} of EXPORT DATABASE takes a text"))),
        };
        // In this order in the script.
        let mut csv = [("delim", ",".to_owned()), ("quote", "\"".to_owned()), ("nullstr", String::new())];
        let mut of_format: Vec<(&str, Format)> = Vec::new();
        let mut copy = Vec::new();
        for (name, value) in options {
            let known = match name.as_str() {
                "format" => {
                    format = match text(name, value)?.to_ascii_lowercase().as_str() {
                        "csv" => Format::Csv,
                        "parquet" => Format::Parquet,
                        other => {
                            return Err(Error::input(format!("EXPORT DATABASE has no format '{other}'"))
                                .with_hint("the formats are csv and parquet"));
                        }
                    };
                    continue;
                }
                "delim" | "delimiter" | "sep" | "separator" => "delim",
                "quote" => "quote",
                "nullstr" | "null" => "nullstr",
                "compression" | "codec" | "row_group_size" => {
                    of_format.push((name, Format::Parquet));
                    copy.push((name.clone(), value.clone()));
                    continue;
                }
                _ => {
                    return Err(Error::input(format!("EXPORT DATABASE has no option '{name}'")).with_hint(
                        "the options are format (csv or parquet); delim, quote and nullstr for CSV; \
                         compression and row_group_size for Parquet",
                    ));
                }
            };
            of_format.push((name, Format::Csv));
            let value = text(name, value)?;
            csv.iter_mut().filter(|(own, _)| *own == known).for_each(|(_, own)| own.clone_from(&value));
        }
        if let Some((name, _)) = of_format.iter().find(|(_, other)| *other != format) {
            return Err(Error::input(format!("EXPORT DATABASE to {format} has no option '{name}'")));
        }
        let format_name = format.to_string().to_ascii_lowercase();
        copy.push(("format".to_owned(), Value::Text(format_name.as_str().into())));
        if format == Format::Parquet {
            return Ok(Written { format, extension: "parquet", copy, load: "FORMAT parquet".to_owned() });
        }
        let mut load = "FORMAT csv, HEADER true".to_owned();
        for (name, value) in csv {
            let shown = value.replace('\'', "''");
            load += &format!(", {} '{shown}'", name.to_uppercase());
            if name == "quote" {
                load += &format!(", ESCAPE '{shown}'");
            }
            copy.push((name.to_owned(), Value::Text(value.into())));
        }
        Ok(Written { format, extension: "csv", copy, load })
    }
}

/// A directory that is restored to its previous state unless the export is complete.
struct Target {
    directory: PathBuf,
    /// True if the directory did not exist before.
    is_new: bool,
    /// The files that were written, which are removed unless the export is complete.
    files: Vec<PathBuf>,
}

impl Target {
    /// An empty directory, which is created if it does not exist.
    fn new(directory: &Path) -> Result<Target> {
        if directory.as_os_str().is_empty() {
            return Err(Error::input("the directory of an export has no name")
                .with_hint("use an empty or a new directory; '.' is the current one"));
        }
        let shown = directory.display();
        let failed = |error| Error::io(format!("cannot export to '{shown}'"), &error);
        let is_new = !directory.try_exists().map_err(failed)?;
        if is_new {
            fs::create_dir_all(directory).map_err(failed)?;
        } else if !directory.is_dir() {
            return Err(Error::new(ErrorKind::Io, format!("cannot export to '{shown}': it is a file"))
                .with_hint("use an empty or a new directory"));
        } else if let Some(first) = fs::read_dir(directory).map_err(failed)?.next() {
            let first = first.map_err(failed)?.file_name();
            let text = format!("cannot export to '{shown}': {} is in it", first.display());
            return Err(Error::new(ErrorKind::Io, text).with_hint("use an empty or a new directory"));
        }
        Ok(Target { directory: directory.to_owned(), is_new, files: Vec::new() })
    }

    /// Refuses a file that is there by now: the directory was empty, so it is another's.
    fn is_free(&self, path: &Path) -> Result<()> {
        let failed = |error| Error::io(format!("'{}'", path.display()), &error);
        match path.try_exists().map_err(failed)? {
            true => Err(Error::new(ErrorKind::Io, format!("'{}' is there by now", path.display()))
                .with_hint("use an empty or a new directory")),
            false => Ok(()),
        }
    }

    /// Writes a new file.
    fn write(&mut self, name: &str, text: &str) -> Result<()> {
        let path = self.directory.join(name);
        let failed = |error| Error::io(format!("'{}'", path.display()), &error);
        // The directory was empty: what is there by now is another's.
        let mut file = File::create_new(&path).map_err(failed)?;
        self.files.push(path.clone());
        file.write_all(text.as_bytes()).map_err(failed)
    }

    fn keep(mut self) {
        self.files.clear();
        self.is_new = false;
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        // Nothing better can be done about a failure here than to leave the file.
        self.files.iter().for_each(|file| _ = fs::remove_file(file));
        if self.is_new {
            let _ = fs::remove_dir(&self.directory);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_have_names_of_their_own() {
        let mut taken = HashSet::new();
        let names: Vec<String> = ["t", "s.t", "s_t", "a/../b", "größe", "", &"x".repeat(300)]
            .map(|table| file_name(table, "csv", &mut taken))
            .into();
        assert_eq!(names[..6], ["t.csv", "s_t.csv", "s_t_2.csv", "a____b.csv", "größe.csv", ".csv"]);
        assert_eq!(names[6].len(), NAME + 4);
    }

    #[test]
    fn options_that_do_not_fit_are_named() {
        let option = |name: &str, value: &str| (name.to_owned(), Value::Text(value.into()));
        let refused = |options: &[(String, Value)]| Written::new(options).err().expect("refused").to_string();
        assert!(refused(&[option("format", "xlsx")]).contains("no format 'xlsx'"));
        assert!(refused(&[option("headr", "x")]).contains("no option 'headr'"));
        assert!(refused(&[option("format", "parquet"), option("delim", "|")]).contains("Parquet"));
        let written = Written::new(&[option("sep", "|")]).unwrap();
        assert_eq!(written.load, "FORMAT csv, HEADER true, DELIM '|', QUOTE '\"', ESCAPE '\"', NULLSTR ''");
    }
}
