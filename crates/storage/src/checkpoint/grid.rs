//! Grids of curves (`tree/key/curve.rs`), as bytes and back.

use super::source::{Source, push_list};
use crate::backend::bytes::push_counted;
use crate::tree::key::{Bounds, Grid, LayoutKey};
use entasis_vector::Result;
use std::sync::Arc;

/// No key has been computed.
const OPEN: u8 = 0;
/// Keys are computed without a grid.
const WITHOUT: u8 = 1;
/// The grid follows: for each column of the layout key a list, for texts of counted bytes, else of words.
const WITH: u8 = 2;

pub(super) fn push_grid(out: &mut Vec<u8>, grid: &Option<Option<Arc<Grid>>>) {
    match grid {
        None => out.push(OPEN),
        Some(None) => out.push(WITHOUT),
        Some(Some(grid)) => {
            out.push(WITH);
            for bounds in &grid.columns {
                match bounds {
                    Bounds::Words(words) => push_list(out, words, |out, word| out.extend(word.to_le_bytes())),
                    Bounds::Texts(texts) => push_list(out, texts, |out, text| push_counted(out, text)),
                }
            }
        }
    }
}

/// Reads what [`push_grid`] wrote for a table with this key.
pub(super) fn grid(source: &mut Source<'_>, key: &LayoutKey) -> Result<Option<Option<Arc<Grid>>>> {
    match source.u8()? {
        OPEN => Ok(None),
        WITHOUT => Ok(Some(None)),
        WITH => {
            let mut columns = Vec::new();
            for ty in key.types() {
                let bounds = match Bounds::are_texts(*ty) {
                    true => Bounds::Texts(source.list(|source| Ok(Box::from(source.counted()?)))?),
                    false => Bounds::Words(source.list(Source::u64)?),
                };
                source.check(bounds.is_sound(), "a grid that does not ascend")?;
                columns.push(bounds);
            }
            Ok(Some(Some(Arc::new(Grid { columns }))))
        }
        _ => Err(source.flaw("a kind of grid")),
    }
}
