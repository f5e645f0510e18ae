//! A column as a picture: its partitions in the order of the layout key, rows and ghosts in each, and heat
//! where a workload reads and writes.
//!
//! ```text
//! reads    ▒▒▓▓████▓▓▒▒      darker where there are more
//! writes         ▒▒████
//! rows     ▇▇▇▇▇▇▇▇▇▇▇▇      a bar for each partition, as wide as its slots;
//!                            the rest of its height are ghosts
//! key      0    250   500    the least key of some partitions
//! ```
//! More partitions than fit are drawn together. Colours follow the reader's light or dark mode. The text is
//! the same for the same column.

use std::fmt::Write;

/// A partition.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Part {
    /// Its least key; empty if it has no rows.
    pub first_key: String,
    /// Its rows.
    pub rows: f64,
    /// Its slots.
    pub slots: f64,
    /// Its empty slots.
    pub ghosts: f64,
    /// The ghosts that would suit the workload.
    pub wanted: f64,
    /// How often it is read.
    pub reads: f64,
    /// How often it is written.
    pub writes: f64,
}

/// See the module.
pub struct Plot<'a> {
    /// The table.
    pub title: String,
    /// Its layout.
    pub subtitle: String,
    /// The partitions.
    pub parts: &'a [Part],
}

/// Bars that are drawn at most.
const MOST: usize = 240;
/// Width and height of the picture.
const SIZE: (f64, f64) = (960.0, 350.0);
/// Where the column begins, and how wide it is.
const LEFT: f64 = 90.0;
const WIDE: f64 = 840.0;
/// Top and height of the bands.
const READS: (f64, f64) = (78.0, 30.0);
const WRITES: (f64, f64) = (114.0, 30.0);
const ROWS: (f64, f64) = (156.0, 90.0);
/// The line below the bars, and that of the legend.
const KEYS: f64 = 266.0;
const LEGEND: f64 = 312.0;
/// Keys that are written below the bars, at most.
const LABELS: usize = 7;

const STYLE: &str = "
  :root { --paper: #ffffff; --ink: #1f2933; --faint: #7b8794; --line: #d5dae0;
          --read: #2563eb; --write: #d9480f; --row: #9aa5b1; --ghost: #b2f2bb; --want: #2b8a3e; }
  @media (prefers-color-scheme: dark) {
    :root { --paper: #14181d; --ink: #e4e7eb; --faint: #9aa5b1; --line: #323f4b;
            --read: #6ea8fe; --write: #ff922b; --row: #52606d; --ghost: #2f6f3e; --want: #8ce99a; } }
  .paper { fill: var(--paper) } .frame { fill: none; stroke: var(--line) }
  text { font: 12px system-ui, sans-serif; fill: var(--ink) }
  .title { font-size: 16px; font-weight: 600 } .faint { fill: var(--faint) }
  .end { text-anchor: end } .middle { text-anchor: middle }
  .read { fill: var(--read) } .write { fill: var(--write) } .row { fill: var(--row) }
  .ghost { fill: var(--ghost) } .want { stroke: var(--want); stroke-width: 2 }
  .cut { stroke: var(--paper); stroke-width: 0.7 } .tick { stroke: var(--faint) }
";

impl Plot<'_> {
    /// The picture as SVG.
    pub fn svg(&self) -> String {
        let bars = together(self.parts);
        let mut svg = Svg(String::new());
        let (width, height) = SIZE;
        svg.add(&format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" \
             height=\"{height}\" role=\"img\" aria-label=\"Layout of {}\">",
            escaped(&self.title)
        ));
        svg.add(&format!("<style>{STYLE}</style>"));
        svg.rect("paper", (0.0, 0.0), SIZE, 1.0, "");
        svg.text("title", (LEFT, 34.0), &self.title);
        svg.text("faint", (LEFT, 56.0), &self.subtitle);
        for (name, band) in [("reads", READS), ("writes", WRITES), ("rows", ROWS)] {
            svg.text("end", (LEFT - 12.0, band.0 + band.1 / 2.0 + 4.0), name);
        }
        self.bars(&mut svg, &bars);
        for band in [READS, WRITES, ROWS] {
            svg.rect("frame", (LEFT, band.0), (WIDE, band.1), 1.0, "");
        }
        keys(&mut svg, &bars);
        legend(&mut svg, &bars);
        svg.add("</svg>");
        svg.0
    }

    fn bars(&self, svg: &mut Svg, bars: &[Part]) {
        let most =
            |of: fn(&Part) -> f64| bars.iter().map(|bar| of(bar) / bar.slots.max(1.0)).fold(0.0, f64::max);
        let (reads, writes) = (most(|bar| bar.reads), most(|bar| bar.writes));
        for (bar, (x, wide)) in bars.iter().zip(places(bars)) {
            let title = format!(
                "from {}: {:.0} rows, {:.0} ghosts, {:.0} wanted; {:.0} reads, {:.0} writes",
                bar.first_key, bar.rows, bar.ghosts, bar.wanted, bar.reads, bar.writes
            );
            let heat = |often: f64, most: f64| {
                let share = often / bar.slots.max(1.0) / most;
                // The root, so that what is rare is seen as well.
                if most > 0.0 { share.sqrt() } else { 0.0 }
            };
            for (class, band, heat) in
                [("read", READS, heat(bar.reads, reads)), ("write", WRITES, heat(bar.writes, writes))]
            {
                if heat > 0.0 {
                    svg.rect(class, (x, band.0), (wide, band.1), heat, &title);
                }
            }
            let (top, tall) = ROWS;
            let full = tall * (bar.rows / bar.slots.max(1.0)).min(1.0);
            svg.rect("ghost", (x, top), (wide, tall - full), 1.0, &title);
            svg.rect("row", (x, top + tall - full), (wide, full), 1.0, &title);
            if bar.wanted > 0.0 {
                let y = top + tall * (bar.wanted / bar.slots.max(1.0)).min(1.0);
                svg.line("want", (x, y), (x + wide, y));
            }
        }
        if self.parts.len() == bars.len() {
            for (x, _) in places(bars).skip(1) {
                svg.line("cut", (x, ROWS.0), (x, ROWS.0 + ROWS.1));
            }
        }
    }
}

/// Where each bar begins, and how wide it is: as its slots.
fn places(bars: &[Part]) -> impl Iterator<Item = (f64, f64)> {
    let all: f64 = bars.iter().map(|bar| bar.slots.max(1.0)).sum();
    let mut before = 0.0;
    bars.iter().map(move |bar| {
        let (x, wide) = (LEFT + WIDE * before / all, WIDE * bar.slots.max(1.0) / all);
        before += bar.slots.max(1.0);
        (x, wide)
    })
}

/// Partitions that are drawn as one bar, so that there are at most [`MOST`].
fn together(parts: &[Part]) -> Vec<Part> {
    let each = parts.len().div_ceil(MOST).max(1);
    let sum = |parts: &[Part]| {
        let of = |number: fn(&Part) -> f64| parts.iter().map(number).sum();
        Part {
            first_key: parts
                .iter()
                .map(|part| &part.first_key)
                .find(|key| !key.is_empty())
                .cloned()
                .unwrap_or_default(),
            rows: of(|part| part.rows),
            slots: of(|part| part.slots),
            ghosts: of(|part| part.ghosts),
            wanted: of(|part| part.wanted),
            reads: of(|part| part.reads),
            writes: of(|part| part.writes),
        }
    };
    parts.chunks(each).map(sum).collect()
}

fn keys(svg: &mut Svg, bars: &[Part]) {
    svg.text("end faint", (LEFT - 12.0, KEYS + 4.0), "key");
    let step = bars.len().div_ceil(LABELS).max(1);
    for (bar, (x, _)) in bars.iter().zip(places(bars)).step_by(step) {
        svg.line("tick", (x, ROWS.0 + ROWS.1), (x, ROWS.0 + ROWS.1 + 5.0));
        let short: String = bar.first_key.chars().take(14).collect();
        svg.text("faint", (x, KEYS + 4.0), &short);
    }
}

fn legend(svg: &mut Svg, bars: &[Part]) {
    let sum = |of: fn(&Part) -> f64| bars.iter().map(of).sum::<f64>();
    let mut x = LEFT;
    let words = [
        ("read", format!("reads: {:.0}, darker where more", sum(|bar| bar.reads))),
        ("write", format!("writes: {:.0}", sum(|bar| bar.writes))),
        ("row", format!("rows: {:.0}", sum(|bar| bar.rows))),
        ("ghost", format!("ghosts: {:.0}", sum(|bar| bar.ghosts))),
    ];
    for (class, text) in words {
        svg.rect(class, (x, LEGEND - 10.0), (12.0, 12.0), 1.0, "");
        svg.text("", (x + 18.0, LEGEND), &text);
        x += 40.0 + 6.6 * text.chars().count() as f64;
    }
    let wanted = sum(|bar| bar.wanted);
    if wanted > 0.0 {
        svg.line("want", (x, LEGEND - 4.0), (x + 12.0, LEGEND - 4.0));
        svg.text("", (x + 18.0, LEGEND), &format!("down to here: ghosts wanted ({wanted:.0})"));
    }
}

/// An SVG that is being written.
struct Svg(String);

impl Svg {
    fn add(&mut self, element: &str) {
        writeln!(self.0, "{element}").expect("writing to memory does not fail");
    }

    fn rect(
        &mut self,
        class: &str,
        (x, y): (f64, f64),
        (width, height): (f64, f64),
        opacity: f64,
        title: &str,
    ) {
        let opacity = if opacity < 1.0 { format!(" fill-opacity=\"{opacity:.3}\"") } else { String::new() };
        let place = format!("x=\"{x:.2}\" y=\"{y:.2}\" width=\"{width:.2}\" height=\"{height:.2}\"");
        match title {
            "" => self.add(&format!("<rect class=\"{class}\" {place}{opacity}/>")),
            title => self.add(&format!(
                "<rect class=\"{class}\" {place}{opacity}><title>{}</title></rect>",
                escaped(title)
            )),
        }
    }

    fn line(&mut self, class: &str, (x1, y1): (f64, f64), (x2, y2): (f64, f64)) {
        self.add(&format!(
            "<line class=\"{class}\" x1=\"{x1:.2}\" y1=\"{y1:.2}\" x2=\"{x2:.2}\" y2=\"{y2:.2}\"/>"
        ));
    }

    fn text(&mut self, class: &str, (x, y): (f64, f64), text: &str) {
        self.add(&format!("<text class=\"{class}\" x=\"{x:.2}\" y=\"{y:.2}\">{}</text>", escaped(text)));
    }
}

/// A text as XML has it.
fn escaped(text: &str) -> String {
    let safe = |letter: char| match letter {
        '&' => "&amp;".to_owned(),
        '<' => "&lt;".to_owned(),
        '>' => "&gt;".to_owned(),
        '"' => "&quot;".to_owned(),
        letter if letter.is_control() => " ".to_owned(),
        letter => letter.to_string(),
    };
    text.chars().map(safe).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn column(count: usize) -> Vec<Part> {
        let part = |number: usize| Part {
            first_key: format!("<{number}>"),
            rows: 900.0,
            slots: 1024.0,
            ghosts: 124.0,
            wanted: if number == 0 { 100.0 } else { 0.0 },
            reads: number as f64,
            writes: 0.0,
        };
        (0..count).map(part).collect()
    }

    fn drawn(parts: &[Part]) -> String {
        Plot { title: "a & b".into(), subtitle: "by (\"k\")".into(), parts }.svg()
    }

    #[test]
    fn each_partition_has_its_bar() {
        let svg = drawn(&column(10));
        let count = |text: &str| svg.matches(text).count();
        // One more of each in the legend; the first partition is not read.
        assert_eq!((count("class=\"row\""), count("class=\"ghost\"")), (11, 11));
        assert_eq!((count("class=\"read\""), count("class=\"write\"")), (10, 1));
        assert_eq!((count("class=\"cut\""), count("class=\"want\"")), (9, 2));
        assert_eq!(svg, drawn(&column(10)));
    }

    #[test]
    fn many_partitions_are_drawn_together_and_none_is_lost() {
        let parts = column(1000);
        let bars = together(&parts);
        assert!(bars.len() <= MOST);
        let sum = |parts: &[Part]| parts.iter().map(|part| part.reads).sum::<f64>();
        assert_eq!(sum(&bars), sum(&parts));
        assert_eq!(bars[1].first_key, "<5>");
        let (x, wide) = places(&bars).last().expect("a bar");
        assert!((x + wide - LEFT - WIDE).abs() < 1e-6);
    }

    #[test]
    fn the_picture_is_well_formed() {
        for count in [0, 1, 3, 500] {
            let svg = drawn(&column(count));
            assert!(svg.starts_with("<svg ") && svg.trim_end().ends_with("</svg>"));
            assert!(svg.contains("a &amp; b") && !svg.contains("<0>") && !svg.contains("NaN"), "{svg}");
            for tag in ["text", "title", "rect", "svg", "style"] {
                let closed = svg.matches(&format!("</{tag}>")).count();
                let open =
                    svg.matches(&format!("<{tag} ")).count() + svg.matches(&format!("<{tag}>")).count();
                let empty =
                    svg.lines().filter(|line| line.starts_with("<rect") && line.ends_with("/>")).count();
                assert_eq!(open, closed + if tag == "rect" { empty } else { 0 }, "{tag}");
            }
        }
    }
}
