//! Amounts as horizontal bars, the greatest of which takes all of the room.
//!
//! ```text
//! tables   orders       61 MB  ████████████████████████████████████████
//! indexes  by_customer  12 MB  ███████▉
//! a sort               8.0 MB  █████▎
//! ```
//! A bar ends at an eighth of a character, and what is there at all has at least that. Labels that are too
//! long are cut.

use crate::render::{cut, visible};
use crate::style::Style;
use unicode_width::UnicodeWidthStr;

/// A line with a bar.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bar {
    /// The words before it, in two columns.
    pub labels: [String; 2],
    /// The amount, as people read it.
    pub figure: String,
    /// The amount, by which the bar is drawn; none is drawn of a negative one.
    pub amount: i64,
}

/// The most characters of a label.
const LABEL: usize = 40;
/// Characters of the greatest bar: at most, and on a narrow terminal at least.
const LONGEST: usize = 40;
const SHORTEST: usize = 8;
/// The characters between two columns.
const GAP: &str = "  ";

/// A line for each bar, in their order, within `width` characters if that is possible.
pub fn bars(all: &[Bar], width: usize, style: Style) -> String {
    let labels = |column: usize| all.iter().map(move |bar| visible(&bar.labels[column], LABEL + 1));
    let [first, second] = [0, 1].map(|column| labels(column).map(|label| label.width()).max().unwrap_or(0));
    let (first, second) = (first.min(LABEL), second.min(LABEL));
    let figures = all.iter().map(|bar| bar.figure.width()).max().unwrap_or(0);
    let gaps = GAP.len() * if second > 0 { 3 } else { 2 };
    let room = width.saturating_sub(first + second + figures + gaps).clamp(SHORTEST, LONGEST);
    let most = all.iter().map(|bar| bar.amount).max().unwrap_or(0).max(1);
    let mut text = String::new();
    for ((bar, one), other) in all.iter().zip(labels(0)).zip(labels(1)) {
        text += &padded(&one, first);
        if second > 0 {
            text += GAP;
            text += &padded(&other, second);
        }
        text += GAP;
        text += &" ".repeat(figures - bar.figure.width());
        text += &bar.figure;
        let blocks = blocks(bar.amount as f64 / most as f64 * room as f64);
        if !blocks.is_empty() {
            text += GAP;
            text += &style.bar(blocks);
        }
        text.push('\n');
    }
    text
}

/// A label in a column of this width.
fn padded(label: &str, width: usize) -> String {
    match label.width() {
        own if own > width => cut(label, width),
        own => label.to_owned() + &" ".repeat(width - own),
    }
}

/// A bar of so many characters, to the eighth.
fn blocks(characters: f64) -> String {
    if characters <= 0.0 {
        return String::new();
    }
    let eighths = (characters * 8.0).round().max(1.0) as usize;
    let rest = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"][eighths % 8];
    "█".repeat(eighths / 8) + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bar(labels: [&str; 2], figure: &str, amount: i64) -> Bar {
        Bar { labels: labels.map(str::to_owned), figure: figure.to_owned(), amount }
    }

    #[test]
    fn bars_are_as_long_as_their_amounts() {
        let all = [
            bar(["tables", "orders"], "16 MB", 1600),
            bar(["indexes", "by customer"], "8.0 MB", 800),
            bar(["a sort", ""], "1 byte", 1),
            bar(["not charged", ""], "-3.0 MB", -300),
        ];
        let expected = "\
tables       orders         16 MB  ████████████████
indexes      by customer   8.0 MB  ████████
a sort                     1 byte  ▏
not charged               -3.0 MB
";
        // Between the columns are six characters, and 29 in them.
        assert_eq!(bars(&all, 51, Style::PLAIN), expected);
        assert_eq!(bars(&[], 80, Style::PLAIN), "");
    }

    #[test]
    fn a_bar_ends_at_an_eighth() {
        assert_eq!(blocks(3.0), "███");
        assert_eq!([0.5, 1.375, 0.001, 0.0, -1.0].map(blocks), ["▌", "█▍", "▏", "", ""]);
    }

    #[test]
    fn lines_fit_whatever_the_labels_are() {
        let long = "wörter 漢字\n".repeat(20);
        for width in 100..140 {
            let text = bars(&[bar(["tables", &long], "1.0 GB", 7)], width, Style::PLAIN);
            let widths: Vec<usize> = text.lines().map(UnicodeWidthStr::width).collect();
            assert!(widths.len() == 1 && widths[0] <= width && text.contains('…'), "{width}: {text}");
        }
        let text = bars(&[bar(["one column", ""], "7", 7)], 0, Style::PLAIN);
        assert_eq!(text, "one column  7  ████████\n");
    }
}
