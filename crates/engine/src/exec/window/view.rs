//! What a window function is asked for: its results for some rows of a section.

use super::frame::Frames;
use super::section::{Places, Section};
use crate::context::QueryContext;

/// The input of a function: some rows of a section.
pub struct View<'a> {
    /// The section.
    pub section: &'a Section,
    /// The places of the rows.
    pub places: &'a Places,
    /// By frame, the frames of the rows.
    pub frames: &'a [Frames],
    /// The statement.
    pub context: &'a QueryContext,
}
