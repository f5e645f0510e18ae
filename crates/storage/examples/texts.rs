//! What texts take that are compressed by symbols, how fast they are read, and how fast they are searched: in
//! their codes, and decompressed.
//!
//! `cargo run --release -p entasis-storage --example texts -- [rows] [kind …]`
//!
//! Texts are like the comments of TPC-H, and like names, mail addresses, paths, and so on. Nanoseconds a row
//! of one thread, over all row groups (2 M rows), the fastest of five passes. Strings are the same texts that
//! are not compressed. First, for each kind of texts and for both, strings first:
//!
//! | | |
//! |---|---|
//! | bytes | of memory, and which encoding `compression = 'auto'` chooses |
//! | append | `Appender::append` (one pass), which encodes the blocks |
//! | read | `RowGroup::decode`, all rows, and a look at each view |
//! | touch | the same, and the bytes of each text are read, as to hash or to print them |
//! | one in 16 | `RowGroup::gather_runs` of as many rows, for each of these |
//!
//! Then, for patterns:
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

/// What a kind of texts is called, the patterns to look for, and a text.
type Kind = (&'static str, &'static [Searched<'static>], fn(&mut Random, &[&str]) -> String);

const KINDS: [Kind; 12] = [
    ("comments", &COMMENTS, comment),
    ("pages", &PAGES, page),
    // Pieces of prose of 10 to 43 bytes, as `l_comment`.
    (
        "pieces",
        &[("%special%requests%", "", &["special", "requests"], ""), ("%green%", "", &["green"], "")],
        {
            |random, words| {
                let prose = format!("{} {}", comment(random, words), comment(random, words));
                let start = random.below(12);
                prose[start..(start + 10 + random.below(34)).min(prose.len())].to_string()
            }
        },
    ),
    ("mails", &[("%@example.org", "", &[], "@example.org"), ("adams%", "adams", &[], "")], |random, _| {
        let host = ["example.com", "example.org", "mail.example.net"][random.below(3)];
        format!("{}.{}{}@{host}", name(random), name(random), random.below(999))
    }),
    ("paths", &[("%/item%", "", &["/item"], ""), ("/news/%", "/news/", &[], "")], |random, words| {
        let part = ["news", "shop/item", "search", "user"][random.below(4)];
        format!("/{part}/{}?from={}", words[random.below(words.len())], random.below(99_999))
    }),
    ("json", &[("%\"on\":true%", "", &["\"on\":true"], "")], |random, words| {
        let (id, is_on) = (random.below(9_999_999), random.below(2) == 0);
        match random.below(2) {
            0 => format!("{{\"id\":{id},\"on\":{is_on}}}"),
            _ => format!("{{\"id\":{id},\"tag\":\"{}\",\"on\":{is_on}}}", words[random.below(words.len())]),
        }
    }),
    ("two names", &[("% smith", "", &[], " smith"), ("adams %", "adams ", &[], "")], |random, _| {
        format!("{} {}", name(random), name(random))
    }),
    ("one name", &[("%son", "", &[], "son")], |random, _| format!("{}{}", name(random), name(random))),
    ("customers", &[("%77", "", &[], "77")], |random, _| format!("Customer#{:09}", random.below(9_999_999))),
    ("keys", &[("%ff%", "", &["ff"], "")], |random, _| {
        format!("{:016x}", (random.below(1 << 40) as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15))
    }),
    ("UUIDs", &[("%ff%", "", &["ff"], "")], |random, _| {
        let mut part =
            |digits: u32| format!("{:0width$x}", random.below(1 << (4 * digits)), width = digits as usize);
        format!("{}-{}-4{}-a{}-{}", part(8), part(4), part(3), part(3), part(12))
    }),
    // As the addresses of TPC-H: 10 to 40 random characters.
    ("random", &[("%ff%", "", &["ff"], "")], |random, _| {
        let letters = b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ, ";
        (0..10 + random.below(31)).map(|_| char::from(letters[random.below(letters.len())])).collect()
    }),
];

/// Some two syllables.
fn name(random: &mut Random) -> String {
    const STARTS: [&str; 16] = [
        "ad", "ben", "car", "da", "el", "fran", "gar", "hen", "is", "jo", "kar", "lu", "mar", "nor", "pe",
        "smi",
    ];
    const ENDS: [&str; 12] =
        ["ams", "ito", "la", "vid", "sa", "cis", "th", "ry", "son", "hanna", "ter", "bert"];
    format!("{}{}", STARTS[random.below(STARTS.len())], ENDS[random.below(ENDS.len())])
}

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let rows = args.first().map_or(2 << 20, |rows| rows.parse().expect("rows are a number"));
    let words: Vec<&str> = WORDS.split_whitespace().collect();
    for (what, patterns, text) in KINDS {
        if args.len() < 2 || args[1..].iter().any(|wanted| wanted == what) {
            compare(what, patterns, rows, &|random| text(random, &words));
        }
    }
}

fn compare(what: &str, patterns: &[Searched], rows: usize, text: &dyn Fn(&mut Random) -> String) {
    let [(plain, plain_append), (compressed, append)] =
        [Compression::Strings, Compression::Fsst].map(|compression| load(rows, compression, text));
    let auto = load(rows.min(1 << 18), Compression::Auto, text).0;
    let encoding = auto.snapshot().row_groups().next().map_or("", |group| group.block_info(0, 0).encoding);
    let bytes = |table: &Arc<Table>| {
        let snapshot = table.snapshot();
        let groups = snapshot.row_groups();
        groups
            .flat_map(|group| (0..group.blocks()).map(|block| group.block_info(0, block).bytes))
            .sum::<usize>()
    };
    let each = |table: &Arc<Table>| bytes(table) as f64 / rows as f64;
    let pair = |of: &dyn Fn(&Arc<Table>) -> f64| format!("{:.1}, {:.1}", of(&plain), of(&compressed));
    println!(
        "{what}: bytes {} ({encoding}); append {plain_append:.1}, {append:.1}; read {}; touch {}; one in 16 {}",
        pair(&each),
        pair(&|table| best(rows, || read(table, |view: &StringView| view.head() as usize)).0),
        pair(&|table| best(rows, || read(table, hash)).0),
        pair(&|table| best(rows / 16, || gather(table)).0),
    );
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

/// A table of texts, and how long it took to append a row to it, in nanoseconds.
fn load(rows: usize, compression: Compression, text: &dyn Fn(&mut Random) -> String) -> (Arc<Table>, f64) {
    let options = TableOptions { compression, ..TableOptions::default() };
    let table = Table::with_options("t", vec![Field::new("a", DataType::Varchar)], options);
    let (mut appender, mut chunk, mut random) = (table.appender(), Chunk::new(), Random(7));
    let mut time = Duration::ZERO;
    for _ in 0..rows / CHUNK_ROWS {
        let texts: Vec<Value> = (0..CHUNK_ROWS).map(|_| Value::Text(text(&mut random).into())).collect();
        chunk.reset(CHUNK_ROWS);
        let group = chunk.push_group(Selection::ALL);
        chunk.push_column(Vector::from_values(PhysicalType::Str, &texts).expect("texts"), group);
        let start = Instant::now();
        appender.append(&chunk, 0).expect("rows are fine");
        time += start.elapsed();
    }
    table.commit(vec![appender.finish()]).expect("rows are fine");
    (table, time.as_nanos() as f64 / rows as f64)
}

/// Decodes all rows and adds up what is seen of each.
fn read(table: &Arc<Table>, see: impl Fn(&StringView) -> usize) -> usize {
    let (mut sum, mut out) = (0_usize, Vector::new(PhysicalType::Str));
    for group in table.snapshot().row_groups() {
        for first in (0..group.slots()).step_by(CHUNK_ROWS) {
            let rows = CHUNK_ROWS.min(group.slots() - first);
            group.decode(0, first, rows, &mut out);
            let texts = &out.values::<StringView>()[..rows];
            sum = texts.iter().fold(sum, |sum, text| sum.wrapping_add(see(text)));
        }
    }
    black_box(sum)
}

/// A number that depends on all bytes of a text.
fn hash(text: &StringView) -> usize {
    let words = text.as_bytes().chunks(8);
    words.fold(0, |hash: u64, word| {
        let word = word.first_chunk().map_or(word.len() as u64, |word| u64::from_le_bytes(*word));
        (hash ^ word).wrapping_mul(0x9E37_79B9_7F4A_7C15)
    }) as usize
}

/// Decodes one row in sixteen.
fn gather(table: &Arc<Table>) -> usize {
    let (mut sum, mut out) = (0_usize, Vector::new(PhysicalType::Str));
    for group in table.snapshot().row_groups() {
        for first in (0..group.slots()).step_by(CHUNK_ROWS) {
            let run = first..group.slots().min(first + CHUNK_ROWS);
            let positions: Vec<u16> = (0..run.len() as u16).step_by(16).collect();
            group.gather_runs(0, PhysicalType::Str, std::slice::from_ref(&run), &positions, &mut out);
            let texts = &out.values::<StringView>()[..positions.len()];
            sum = texts.iter().fold(sum, |sum, text| sum.wrapping_add(text.head() as usize));
        }
    }
    black_box(sum)
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
