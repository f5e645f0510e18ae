//! Opens CSV files: combines what is found in the first rows of each into one relation.
//!
//! 1. **Dialect**: guessed from the first file that has rows; the others are assumed to have the same.
//! 2. **Columns**: matched by name if there are headers, otherwise by position. All files must have the same
//!    names, in any order, unless `union_by_name` is given; the error names both files.
//! 3. **Types**: a column has the first candidate type that accepts its values in the first rows of all
//!    files.
//! 4. Columns from the paths come last.

use super::CsvOptions;
use super::dialect::Dialect;
use super::encoding::Input;
use super::files::CsvFile;
use super::guess::Guess;
use super::lines::{lines, preamble};
use super::read::CsvRelation;
use super::sniff::{Sniffed, sniff};
use crate::codec::Codec;
use crate::columns::{Origin, place_of};
use crate::delimiter::Delimiter;
use crate::paths::{self, FileOptions};
use crate::pipe::{self, Pipe};
use crate::source::{PipeUse, open_bytes};
use entasis_engine::exec::CancelFlag;
use entasis_engine::relation::Relation;
use entasis_vector::{DataType, Error, Field, Result, Schema, Value};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The most bytes of a file from which to guess, and the bytes that are read at once.
const SAMPLE_BYTES: usize = 8 << 20;
const SAMPLE_STEP: usize = 256 << 10;
/// Up to so many files, the number of rows in the options is sampled from each; with more files, it is
/// divided among them so that the total stays the same.
const WHOLE_SAMPLES: usize = 8;

/// The bytes of text that a compressed byte stands for, as far as estimates go.
const UNPACKED: u64 = 4;

/// Opens the files at `paths` as one relation called `name`. Waiting for a pipe ends when `cancel` is raised.
///
/// # Errors
/// I/O, if a file cannot be read; input, if the columns cannot be determined or differ.
pub fn open(
    name: &str,
    paths: Vec<PathBuf>,
    file_options: &FileOptions,
    options: &CsvOptions,
    cancel: &CancelFlag,
) -> Result<Arc<dyn Relation>> {
    options.check()?;
    let mut bytes = Some(0);
    let mut csv = options.clone();
    if paths.len() > WHOLE_SAMPLES && csv.sample_rows < usize::MAX / WHOLE_SAMPLES {
        csv.sample_rows = (csv.sample_rows * WHOLE_SAMPLES / paths.len()).max(csv.sample_rows.min(500));
    }
    let mut pipes: Vec<Option<Arc<Pipe>>> = Vec::with_capacity(paths.len());
    let mut found: Vec<Option<Sniffed>> = Vec::with_capacity(paths.len());
    for path in &paths {
        let metadata = std::fs::metadata(path).map_err(|e| Error::io(format!("'{}'", path.display()), &e))?;
        let unpacked = match options.codec_of(path) {
            Codec::Plain => 1,
            Codec::Gzip | Codec::Zstd => UNPACKED,
        };
        // The relation keeps it: two that are read by one statement must meet the same one.
        let pipe = pipe::find(path)?;
        bytes = bytes.filter(|_| pipe.is_none()).map(|bytes| bytes + metadata.len() * unpacked);
        let (sample, ended) = sample(path, pipe.as_ref(), &csv, cancel)?;
        pipes.push(pipe);
        let sniffed = sniff(&path.display().to_string(), &sample, &csv)?;
        if sniffed.is_none() && !ended {
            return Err(Error::input(format!("no row found at the start of '{}'", path.display()))
                .with_hint("set skip, comment and encoding"));
        }
        if let Some(Sniffed { dialect, .. }) = &sniffed {
            (csv.delimiter, csv.quote) = (Some(dialect.delimiter), Some(dialect.quote));
        }
        found.push(sniffed);
    }
    let sniffed = || paths.iter().zip(&found).filter_map(|(path, found)| Some((&**path, found.as_ref()?)));
    let (mut schema, guessed) = columns(name, &sniffed().collect::<Vec<_>>(), file_options, options)?;
    let width = schema.len();
    let mut files = Vec::with_capacity(paths.len());
    for ((path, pipe), found) in paths.iter().zip(pipes).zip(&found) {
        files.push(CsvFile { pipe, ..file(path, found.as_ref(), &schema, options) });
    }
    paths::add_columns(
        &paths,
        file_options,
        &mut schema,
        files.iter_mut().map(|file| &mut file.columns).collect(),
    )?;
    let rows = sniffed().map(|(_, found)| found.row_bytes);
    let row_bytes = rows.clone().sum::<f64>() / rows.count().max(1) as f64;
    let guessed = guessed.into_iter().chain(std::iter::repeat_n(false, schema.len() - width)).collect();
    Ok(Arc::new(CsvRelation::new(name, schema, guessed, files, bytes, row_bytes, options.clone())))
}

/// The start of a file, from its first row to the end of a row, and whether that is the whole file.
fn sample(
    path: &Path,
    pipe: Option<&Arc<Pipe>>,
    options: &CsvOptions,
    cancel: &CancelFlag,
) -> Result<(Vec<u8>, bool)> {
    let mut bytes = Vec::new();
    let source = open_bytes(path, pipe, options.codec, PipeUse::Peek, cancel)?;
    let mut input = Input::new(source, options.encoding, cancel.clone());
    let (mut seen, mut ended) = (0, false);
    let wanted = options.sample_rows.saturating_add(options.skip).saturating_add(1);
    while !ended && bytes.len() < SAMPLE_BYTES && seen < wanted {
        let start = bytes.len();
        let read = input.read(path, SAMPLE_STEP, &mut bytes, &mut |_, _| Ok(()));
        let read =
            read.map_err(|e| e.with_context(format!("'{}', line {}", path.display(), lines(&bytes) + 1)))?;
        ended = read < SAMPLE_STEP;
        seen += lines(&bytes[start..]);
    }
    bytes.drain(..preamble(&bytes, options.skip).0);
    if !ended {
        let end = bytes.iter().rposition(|&b| b == b'\n').map_or(bytes.len(), |at| at + 1);
        bytes.truncate(end);
    }
    Ok((bytes, ended))
}

/// The columns of the relation, and for each whether its type was guessed.
fn columns(
    name: &str,
    found: &[(&Path, &Sniffed)],
    file_options: &FileOptions,
    csv: &CsvOptions,
) -> Result<(Schema, Vec<bool>)> {
    if found.is_empty() && csv.columns.is_none() {
        return Err(Error::input(format!("'{name}' is empty, so that its columns are unknown"))
            .with_hint("specify columns => {'name': 'TYPE', …}"));
    }
    let mut by_file = Vec::with_capacity(found.len());
    for (path, sniffed) in found {
        let names = match csv.columns {
            Some(_) => sniffed.names.clone(),
            None => names_of(sniffed, csv, path)?,
        };
        by_file.push(Found { path, header: sniffed.header, names });
    }
    if let Some((first, others)) = by_file.split_first() {
        others.iter().try_for_each(|other| check_alike(first, other, file_options, csv))?;
    }
    if let Some(schema) = &csv.columns {
        return Ok((schema.clone(), vec![false; schema.len()]));
    }
    let mut names: Vec<&str> = Vec::new();
    let mut guesses: Vec<Guess> = Vec::new();
    for (file, (_, sniffed)) in by_file.iter().zip(found) {
        for (name, guess) in file.names.iter().zip(&sniffed.guesses) {
            match place_of(name, names.iter().copied()) {
                Some(place) => guesses[place] = guesses[place].and(*guess),
                None => {
                    names.push(name);
                    guesses.push(*guess);
                }
            }
        }
    }
    let types = types(name, &names, csv)?;
    let guessed: Vec<bool> = types.iter().map(|ty| ty.is_none() && !csv.all_varchar).collect();
    let types = types.into_iter().zip(&guesses).map(|(ty, guess)| match ty {
        Some(ty) => ty,
        None if csv.all_varchar => DataType::Varchar,
        None => guess.ty(),
    });
    Ok((names.iter().zip(types).map(|(name, ty)| Field::new(*name, ty)).collect(), guessed))
}

/// The types that the options give to columns.
fn types(file: &str, names: &[&str], options: &CsvOptions) -> Result<Vec<Option<DataType>>> {
    let mut types = vec![None; names.len()];
    if options.first_types.len() > names.len() {
        let (given, has) = (options.first_types.len(), names.len());
        return Err(Error::input(format!("option types has {given} types, but '{file}' has {has} columns")));
    }
    types.iter_mut().zip(&options.first_types).for_each(|(ty, given)| *ty = Some(*given));
    for (name, given) in &options.types {
        match place_of(name, names.iter().copied()) {
            Some(place) => types[place] = Some(*given),
            None => return Err(Error::input(format!("'{file}' has no column \"{name}\" to give a type"))),
        }
    }
    Ok(types)
}

/// The names of the columns of a file: those in the options, and for the others those in the file.
fn names_of(sniffed: &Sniffed, options: &CsvOptions, path: &Path) -> Result<Vec<String>> {
    let (given, has) = (options.names.len(), sniffed.names.len());
    if given > has {
        let path = path.display();
        return Err(Error::input(format!("option names has {given} names, but '{path}' has {has} columns")));
    }
    let mut names = options.names.clone();
    // The others must have different names.
    for name in &sniffed.names[given..] {
        let mut own = name.clone();
        let mut number = 0;
        while place_of(&own, names.iter().map(String::as_str)).is_some() {
            number += 1;
            own = format!("{name}_{number}");
        }
        names.push(own);
    }
    match (1..given).find(|at| place_of(&names[*at], names[..*at].iter().map(String::as_str)).is_some()) {
        Some(twice) => Err(Error::input(format!("option names has \"{}\" twice", names[twice]))),
        None => Ok(names),
    }
}

/// A file with rows, and the names of its columns.
struct Found<'a> {
    path: &'a Path,
    header: bool,
    names: Vec<String>,
}

/// Refuses files whose columns do not match.
fn check_alike(
    first: &Found<'_>,
    other: &Found<'_>,
    file_options: &FileOptions,
    csv: &CsvOptions,
) -> Result<()> {
    let [first_path, path] = [first.path, other.path].map(Path::display);
    if first.header != other.header {
        let (with, without) = if first.header { (first_path, path) } else { (path, first_path) };
        let text = format!("'{with}' seems to begin with the names of its columns, but '{without}' does not");
        return Err(Error::input(text).with_hint("specify header => true, or header => false"));
    }
    let same = if csv.columns.is_some() {
        // Columns are matched by position, so the headers must agree.
        !first.header || first.names == other.names
    } else if !first.header && csv.null_padding {
        true
    } else {
        let has = |name: &String| place_of(name, other.names.iter().map(String::as_str)).is_some();
        first.names.len() == other.names.len() && first.names.iter().all(has)
    };
    if same || file_options.union_by_name {
        return Ok(());
    }
    let (first_names, names) = (first.names.join(", "), other.names.join(", "));
    Err(Error::input(format!("'{path}' has the columns {names}, but '{first_path}' has {first_names}"))
        .with_hint(match csv.columns {
            Some(_) => "read the files apart",
            None => "read what they have by name: union_by_name => true",
        }))
}

/// A file of the relation, whose columns are `schema`.
fn file(path: &Path, sniffed: Option<&Sniffed>, schema: &Schema, options: &CsvOptions) -> CsvFile {
    let path = path.to_owned();
    let Some(sniffed) = sniffed else {
        // It has no rows, so any dialect will do.
        let delimiter = Delimiter::byte(b',');
        let dialect = Dialect { delimiter, quote: None, escape: None, comment: None, blank_rows: false };
        let columns = vec![Origin::Value(Value::Null); schema.len()];
        return CsvFile { path, pipe: None, dialect, header: false, width: 0, columns };
    };
    let columns = match names_of(sniffed, options, &path) {
        Ok(names) if options.columns.is_none() => {
            let place = |field: &Field| place_of(&field.name, names.iter().map(String::as_str));
            schema
                .iter()
                .map(|field| place(field).map_or(Origin::Value(Value::Null), Origin::Column))
                .collect()
        }
        _ => (0..schema.len()).map(Origin::Column).collect(),
    };
    let Sniffed { dialect, header, .. } = *sniffed;
    CsvFile { path, pipe: None, dialect, header, width: sniffed.names.len(), columns }
}
