//! How fast texts that are compressed by symbols are searched: in their codes, and decompressed.
//!
//! `cargo run --release -p entasis-storage --example texts -- [rows]`
//!
//! Texts are like the comments of TPC-H, and like addresses of pages. Nanoseconds a row of one thread, over
//! all row groups (2 M rows), the fastest of five passes:
//!
//! | | |
//! |---|---|
//! | in codes | `RowGroup::select_runs` with a search, and what it takes to make it |
//! | decompressed | decoded, then compared as `LIKE` is: with `memchr`; only the candidates, as in a scan |
//! | strings | the same for texts that are not compressed |

// As the programs have it.
use entasis_allocator as _;
use entasis_storage::{Compression, Condition, Table, TableOptions, TextSearch};
use entasis_vector::expr::pattern::Pattern;
use entasis_vector::{
    CHUNK_ROWS, Chunk, DataType, Field, PhysicalType, Selection, StringView, Value, Vector,
};
use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A pattern, and its prefix, pieces and suffix.
type Searched<'a> = (&'a str, &'a str, &'a [&'a str], &'a str);

const COMMENTS: [Searched; 6] = [
    ("%special%requests%", "", &["special", "requests"], ""),
    ("%green%", "", &["green"], ""),
    ("%zebra%", "", &["zebra"], ""),
    ("%s%", "", &["s"], ""),
    ("%deposits", "", &[], "deposits"),
    ("furious%", "furious", &[], ""),
];
const PAGES: [Searched; 4] = [
    ("%/shop/%item=77%", "", &["/shop/", "item=77"], ""),
    ("%google%", "", &["google"], ""),
    ("https://www.example.com/news%", "https://www.example.com/news", &[], ""),
    ("%.html", "", &[], ".html"),
];

const WORDS: &str = "packages requests accounts deposits foxes ideas theodolites instructions dependencies excuses \
    platelets asymptotes courts dolphins multipliers sauternes warthogs frets dinos sleep wake are cajole haggle nag \
    use boost affix detect integrate maintain nod furiously slyly carefully blithely quickly fluffily about above \
    according to across after against along special pending unusual express regular final ironic even bold silent";

struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % bound
    }
}

fn comment(random: &mut Random, words: &[&str]) -> String {
    let count = 4 + random.below(7);
    (0..count).map(|_| words[random.below(words.len())]).collect::<Vec<_>>().join(" ")
}

fn page(random: &mut Random, words: &[&str]) -> String {
    let host =
        ["www.example.com", "shop.example.org", "maps.google.com", "en.wiki.example.net"][random.below(4)];
    let part = ["news", "shop", "search", "article", "user"][random.below(5)];
    let name = format!("{}-{}", words[random.below(words.len())], words[random.below(words.len())]);
    match random.below(3) {
        0 => format!("https://{host}/{part}/{name}.html"),
        1 => format!("https://{host}/{part}/{name}?item={}&from={}", random.below(9999), random.below(999)),
        _ => format!("http://{host}/{part}/{}/{name}/{}", random.below(2030), random.below(99999)),
    }
}

fn main() {
    let rows = std::env::args().nth(1).map_or(2 << 20, |rows| rows.parse().expect("rows are a number"));
    let words: Vec<&str> = WORDS.split_whitespace().collect();
    compare("comments", &COMMENTS, rows, &|random| comment(random, &words));
    compare("pages", &PAGES, rows, &|random| page(random, &words));
}

fn compare(what: &str, patterns: &[Searched], rows: usize, text: &dyn Fn(&mut Random) -> String) {
    let [plain, compressed] =
        [Compression::Strings, Compression::Fsst].map(|compression| load(rows, compression, text));
    let bytes = |table: &Arc<Table>| {
        let snapshot = table.snapshot();
        let groups = snapshot.row_groups();
        groups
            .flat_map(|group| (0..group.blocks()).map(|block| group.block_info(0, block).bytes))
            .sum::<usize>()
    };
    let each = |table| bytes(table) as f64 / rows as f64;
    println!("{what}: {:.1} bytes each, compressed {:.1}", each(&plain), each(&compressed));
    println!("{:<34} {:>9} {:>13} {:>9} {:>9}", "ns a row", "in codes", "decompressed", "strings", "found");
    let first = Value::Text(text(&mut Random(7)).into());
    let Value::Text(equal) = &first else { return };
    let equal = (equal.to_string(), TextSearch::of_texts([equal.as_bytes()]));
    let like = |&(pattern, prefix, pieces, suffix): &Searched| {
        let pieces: Vec<&[u8]> = pieces.iter().map(|piece| piece.as_bytes()).collect();
        (pattern.to_owned(), TextSearch::of_pieces(prefix.as_bytes(), &pieces, suffix.as_bytes()))
    };
    for (pattern, search) in patterns.iter().map(like).chain([equal]) {
        let search = Arc::new(search.expect("it is short"));
        let compiled = Pattern::new(&pattern, None, false).expect("a pattern");
        let (in_codes, found) = best(rows, || by_codes(&compressed, &search));
        let (decompressed, twin) = best(rows, || by_texts(&compressed, &compiled));
        let (strings, other) = best(rows, || by_texts(&plain, &compiled));
        assert!(found == twin && twin == other, "{found}, {twin} and {other} rows");
        println!("{pattern:<34} {in_codes:>9.1} {decompressed:>13.1} {strings:>9.1} {found:>9}");
    }
}

fn load(rows: usize, compression: Compression, text: &dyn Fn(&mut Random) -> String) -> Arc<Table> {
    let options = TableOptions { compression, ..TableOptions::default() };
    let table = Table::with_options("t", vec![Field::new("a", DataType::Varchar)], options);
    let (mut appender, mut chunk, mut random) = (table.appender(), Chunk::new(), Random(7));
    for _ in 0..rows / CHUNK_ROWS {
        let texts: Vec<Value> = (0..CHUNK_ROWS).map(|_| Value::Text(text(&mut random).into())).collect();
        chunk.reset(CHUNK_ROWS);
        let group = chunk.push_group(Selection::ALL);
        chunk.push_column(Vector::from_values(PhysicalType::Str, &texts).expect("texts"), group);
        appender.append(&chunk, 0).expect("rows are fine");
    }
    table.commit(vec![appender.finish()]).expect("rows are fine");
    table
}

fn by_codes(table: &Arc<Table>, search: &Arc<TextSearch>) -> usize {
    let (mut found, mut positions) = (0, Vec::new());
    for group in table.snapshot().row_groups() {
        let mut last = None;
        for first in (0..group.slots()).step_by(CHUNK_ROWS) {
            let run = first..group.slots().min(first + CHUNK_ROWS);
            let run = std::slice::from_ref(&run);
            let codes = group.code_search(0, run, search, last.as_ref()).expect("texts are codes");
            positions.clear();
            group.select_runs(&[Condition::Texts(0, codes.clone())], run, &mut positions);
            last = Some(codes);
            found += positions.len();
        }
    }
    black_box(found)
}

fn by_texts(table: &Arc<Table>, pattern: &Pattern) -> usize {
    let (mut found, mut out) = (0, Vector::new(PhysicalType::Str));
    for group in table.snapshot().row_groups() {
        for first in (0..group.slots()).step_by(CHUNK_ROWS) {
            let rows = CHUNK_ROWS.min(group.slots() - first);
            group.decode(0, first, rows, &mut out);
            let texts = &out.values::<StringView>()[..rows];
            found += texts.iter().filter(|text| pattern.matches(text.as_bytes()).unwrap_or(false)).count();
        }
    }
    black_box(found)
}

/// Nanoseconds a row of the fastest of some runs, and what the last one returns.
fn best(rows: usize, mut run: impl FnMut() -> usize) -> (f64, usize) {
    let mut found = run();
    let time = (0..5).map(|_| {
        let start = Instant::now();
        found = run();
        start.elapsed()
    });
    (time.min().unwrap_or(Duration::MAX).as_nanos() as f64 / rows as f64, found)
}
