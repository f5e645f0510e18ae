//! Space-filling curves: orders of rows by two to four columns at once.
//!
//! By the columns of a layout key one after the other, rows are in order by the first and scattered by the
//! others. Along a curve, rows that are near in *all* columns are mostly near each other, so that the zones
//! of blocks are narrow in each of them, and conditions on any of them skip blocks.
//!
//! Where a row is on its curve is computed in `tree/key/curve.rs`.

use std::ops::RangeInclusive;

/// How many columns a curve may go through.
pub const CURVE_COLUMNS: RangeInclusive<usize> = 2..=4;

/// A curve through the space of the columns of a layout key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Curve {
    /// The bits of all columns by turns (Morton). It jumps.
    ZOrder,
    /// Hilbert's: two places that follow each other on it are neighbours.
    Hilbert,
}

impl Curve {
    /// All, by their names.
    const NAMES: [(&'static str, Curve); 2] = [("zorder", Curve::ZOrder), ("hilbert", Curve::Hilbert)];

    /// Its name in SQL.
    pub fn name(self) -> &'static str {
        match self {
            Curve::ZOrder => "zorder",
            Curve::Hilbert => "hilbert",
        }
    }

    /// The curve that SQL calls `name`, in lower case.
    pub fn parse(name: &str) -> Option<Curve> {
        Curve::NAMES.into_iter().find(|(own, _)| *own == name).map(|(_, curve)| curve)
    }
}
