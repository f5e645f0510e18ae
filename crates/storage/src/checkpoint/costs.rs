//! Costs that were measured on a machine (`CALIBRATE`), as bytes: what they mean is for those who plan with
//! them.

use super::source::{Source, push_list, push_text};
use crate::file::{DataFile, Extent};
use entasis_vector::Result;

/// See the module.
#[derive(Debug, Clone, PartialEq)]
pub struct MachineCosts {
    /// The processor; on another one they mean nothing.
    pub machine: String,
    /// Figures by name, in nanoseconds.
    pub figures: Vec<(String, f64)>,
}

impl MachineCosts {
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        push_text(&mut out, &self.machine);
        push_list(&mut out, &self.figures, |out, (name, figure)| {
            push_text(out, name);
            out.extend(figure.to_le_bytes());
        });
        out
    }

    /// Those in an extent of a file.
    pub(super) fn read(file: &DataFile, extent: Extent) -> Result<Option<MachineCosts>> {
        if extent.bytes == 0 {
            return Ok(None);
        }
        let bytes = file.read(extent)?;
        let mut source = Source::new(file, extent, &bytes);
        let machine = source.text()?.to_owned();
        let figures = source.list(|source| Ok((source.text()?.to_owned(), source.f64()?)))?;
        source.check(figures.iter().all(|(_, figure)| figure.is_finite() && *figure >= 0.0), "a cost")?;
        source.end()?;
        Ok(Some(MachineCosts { machine, figures }))
    }
}
