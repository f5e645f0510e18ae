//! What `EXPLAIN` returns, as the text that it is: a line for each row, without a box.

use super::{Renderer, ResultPart};
use std::io::{self, Write};

/// Writes the last column of each row.
pub struct PlanLines;

impl Renderer for PlanLines {
    fn begin(&mut self, _: &mut dyn Write) -> io::Result<()> {
        Ok(())
    }

    fn rows(&mut self, part: &ResultPart<'_>, out: &mut dyn Write) -> io::Result<()> {
        let last = part.schema().len() - 1;
        (0..part.rows())
            .try_for_each(|row| writeln!(out, "{}", part.text(row, last).unwrap_or_default().trim_end()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::testing;

    #[test]
    fn lines_are_written_as_they_are() {
        let columns = [("plan", entasis_vector::DataType::Varchar)];
        let (schema, chunks) = testing::result(&columns, &[[testing::text("scan t  ")].into()]);
        let mut out = Vec::new();
        PlanLines.rows(&ResultPart::new(&schema, &chunks[0], entasis::TimeZone::UTC), &mut out).unwrap();
        assert_eq!(out, b"scan t\n");
    }
}
