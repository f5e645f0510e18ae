//! Expressions over one string column, computed once per dictionary entry.
//!
//! The results of a dictionary are kept as long as the machine sees it: codes then map to results by a
//! look-up. Computing them pays as soon as the rows that came with the dictionary are half as many as its
//! entries; until then, and for columns that come flat, the expression runs over the rows. If an entry raises
//! an error (it may belong to no row), the rows decide, too. String results become a dictionary again, of
//! distinct values.

use super::kernels::select::place;
use super::kernels::{Rows, as_held};
use super::machine::Frame;
use super::program::Program;
use crate::buffer::Native;
use crate::types::PhysicalType;
use crate::vector::{Dictionary, Encoding, Vector};
use crate::{CHUNK_ROWS, Result, StringView, Value};
use std::collections::HashMap;
use std::sync::Arc;

/// Dictionaries whose results are kept; the oldest goes first.
const KEPT: usize = 64;

/// One worker's results of a program over a string column.
#[derive(Debug)]
pub(super) struct Entries {
    frame: Frame,
    kept: Vec<Kept>,
    next: usize,
    /// The result for NULL, once computed; `None` inside if that is an error.
    null: Option<Option<Value>>,
    slice: Vector,
}

#[derive(Debug)]
struct Kept {
    id: u64,
    /// Rows that came with it.
    rows: usize,
    state: State,
}

#[derive(Debug)]
enum State {
    /// Not computed yet.
    Open,
    /// An entry has no result.
    Failed,
    /// A result per code.
    Values(Vector),
    /// A string per code: its code among the distinct ones. A NULL has the code `u32::MAX`.
    Codes(Arc<Dictionary>, Vec<u32>),
}

impl Entries {
    pub fn new(program: &Program) -> Entries {
        Entries {
            frame: Frame::new(&program.values),
            kept: Vec::new(),
            next: 0,
            null: None,
            slice: Vector::new(PhysicalType::Str),
        }
    }

    /// The results for `rows` of `column`.
    ///
    /// # Errors
    /// Those of the program.
    pub fn compute(
        &mut self,
        program: &Program,
        column: &Vector,
        rows: Rows<'_>,
        out: &mut Vector,
    ) -> Result<()> {
        if column.encoding() == Encoding::Dictionary {
            let dictionary = column.dictionary().expect("a dictionary vector has one");
            let at = self.find(dictionary.id());
            self.kept[at].rows += rows.len();
            if matches!(self.kept[at].state, State::Open) && dictionary.len() <= 2 * self.kept[at].rows {
                self.kept[at].state = self.all_entries(program, dictionary);
            }
            let nulls = column.validity().is_some();
            if nulls && self.null.is_none() {
                let null = Vector::constant(PhysicalType::Str, &Value::Null)?;
                let ty = program.outputs()[0].ty;
                self.null = Some(match self.over_rows(program, &null, Rows::Dense(1)) {
                    Ok(result) => Some(result.value(0, ty)),
                    Err(_) => None,
                });
                self.frame.release(&program.values);
            }
            let null = match &self.null {
                Some(None) if nulls => None,
                Some(Some(value)) if nulls => Some(value.clone()),
                _ => Some(Value::Null),
            };
            match (&self.kept[at].state, null) {
                (State::Values(results), Some(null)) => {
                    let null = as_held(null, program.outputs()[0].ty);
                    return map_values(results, column, &null, rows, out);
                }
                (State::Codes(dictionary, codes), Some(Value::Null)) => {
                    map_codes(dictionary, codes, column, rows, out);
                    return Ok(());
                }
                _ => {}
            }
        }
        self.over_rows(program, column, rows)?;
        self.frame.swap_output(&program.values, out);
        self.frame.release(&program.values);
        Ok(())
    }

    /// The result for `rows` of `column`, good until the frame is released.
    fn over_rows(&mut self, program: &Program, column: &Vector, rows: Rows<'_>) -> Result<&Vector> {
        self.frame.run(&program.values, rows, &mut |_, into, _| *into = column.clone())?;
        Ok(self.frame.output(&program.values))
    }

    fn find(&mut self, id: u64) -> usize {
        if let Some(at) = self.kept.iter().position(|kept| kept.id == id) {
            return at;
        }
        let fresh = Kept { id, rows: 0, state: State::Open };
        if self.kept.len() < KEPT {
            self.kept.push(fresh);
            return self.kept.len() - 1;
        }
        let at = self.next % KEPT;
        self.next += 1;
        self.kept[at] = fresh;
        at
    }

    /// Runs the program over all entries, a chunk at a time.
    fn all_entries(&mut self, program: &Program, dictionary: &Arc<Dictionary>) -> State {
        let physical = program.outputs()[0].physical;
        let views = dictionary.values().values::<StringView>();
        let mut results = Vector::new(physical);
        results.begin(dictionary.len().max(CHUNK_ROWS));
        let mut piece = Vector::new(physical);
        for start in (0..dictionary.len()).step_by(CHUNK_ROWS) {
            let end = (start + CHUNK_ROWS).min(dictionary.len());
            let mut slice = std::mem::replace(&mut self.slice, Vector::new(PhysicalType::Str));
            slice.begin_flat::<StringView>(CHUNK_ROWS)[..end - start].copy_from_slice(&views[start..end]);
            slice.share_strings(dictionary.values());
            let computed = self.over_rows(program, &slice, Rows::Dense(end - start));
            match computed {
                Err(_) => return State::Failed,
                Ok(result) => {
                    piece.begin(CHUNK_ROWS);
                    place(result, Rows::Dense(end - start), &mut piece);
                    append(&piece, start, end - start, &mut results);
                }
            }
            self.frame.release(&program.values);
            self.slice = slice;
        }
        if physical == PhysicalType::Str {
            distinct(&results, dictionary.len())
        } else {
            State::Values(results)
        }
    }
}

/// Copies the first `count` positions of `piece` to `start` and beyond.
fn append(piece: &Vector, start: usize, count: usize, results: &mut Vector) {
    fn copy<T: Native>(piece: &Vector, start: usize, count: usize, results: &mut Vector) {
        results.values_mut::<T>()[start..start + count].copy_from_slice(&piece.values::<T>()[..count]);
    }
    match results.physical() {
        PhysicalType::Str => {
            let views = piece.values::<StringView>();
            let strings = results.strings_mut();
            for i in (0..count).filter(|i| piece.is_valid(*i)) {
                strings.views[start + i] = strings.heap.push(views[i].as_bytes());
            }
        }
        other => match other.width() {
            1 => copy::<u8>(piece, start, count, results),
            2 => copy::<u16>(piece, start, count, results),
            4 => copy::<u32>(piece, start, count, results),
            8 => copy::<u64>(piece, start, count, results),
            _ => copy::<i128>(piece, start, count, results),
        },
    }
    if piece.validity().is_some() {
        (0..count).filter(|i| !piece.is_valid(*i)).for_each(|i| results.set_null(start + i));
    }
}

/// The distinct strings among the first `count`, and the code of each.
fn distinct(results: &Vector, count: usize) -> State {
    let views = results.values::<StringView>();
    let mut seen: HashMap<&[u8], u32> = HashMap::new();
    let mut order: Vec<&[u8]> = Vec::new();
    let mut codes = Vec::with_capacity(count);
    for (i, view) in views[..count].iter().enumerate() {
        codes.push(if results.is_valid(i) {
            *seen.entry(view.as_bytes()).or_insert_with(|| {
                order.push(view.as_bytes());
                order.len() as u32 - 1
            })
        } else {
            u32::MAX
        });
    }
    if order.is_empty() {
        order.push(b"");
    }
    let mut values = Vector::new(PhysicalType::Str);
    let strings = values.begin_strings(order.len());
    strings.views.iter_mut().zip(&order).for_each(|(view, text)| *view = strings.heap.push(text));
    State::Codes(Dictionary::new(values, order.len()), codes)
}

fn map_values(
    results: &Vector,
    column: &Vector,
    null: &Value,
    rows: Rows<'_>,
    out: &mut Vector,
) -> Result<()> {
    fn copy<T: Native>(results: &Vector, codes: &[u32], rows: Rows<'_>, out: &mut Vector) {
        let results = results.values::<T>();
        let out = out.values_mut::<T>();
        // Codes at positions that are NULL or no rows may be of another dictionary.
        rows.each(|p| out[p] = results.get(codes[p] as usize).copied().unwrap_or_default());
    }
    let codes = column.codes();
    out.begin(rows.limit().max(CHUNK_ROWS));
    match out.physical().width() {
        1 => copy::<u8>(results, codes, rows, out),
        2 => copy::<u16>(results, codes, rows, out),
        4 => copy::<u32>(results, codes, rows, out),
        8 => copy::<u64>(results, codes, rows, out),
        _ => copy::<i128>(results, codes, rows, out),
    }
    if results.validity().is_some() || column.validity().is_some() {
        rows.try_each(|p| {
            if !column.is_valid(p) {
                return out.write_value(p, null);
            }
            if !results.is_valid(codes[p] as usize) {
                out.set_null(p);
            }
            Ok(())
        })?;
    }
    Ok(())
}

fn map_codes(dictionary: &Arc<Dictionary>, codes: &[u32], column: &Vector, rows: Rows<'_>, out: &mut Vector) {
    let from = column.codes();
    let target = out.begin_codes(dictionary, rows.limit().max(CHUNK_ROWS));
    rows.each(|p| {
        let code = codes.get(from[p] as usize).copied().unwrap_or(0);
        target[p] = if code == u32::MAX { 0 } else { code };
    });
    let some_null = codes.contains(&u32::MAX);
    if some_null || column.validity().is_some() {
        rows.each(|p| {
            if !column.is_valid(p) || codes.get(from[p] as usize) == Some(&u32::MAX) {
                out.set_null(p);
            }
        });
    }
}
