//! FSST: compression of short strings which keeps every string readable on its own.
//!
//! The idea: a table of up to 255 symbols, each 1 to 8 bytes long, is learned from a sample. A text becomes a
//! sequence of one-byte codes, each naming a symbol. No code depends on the text before it, so any string of
//! a block can be decompressed alone, and decompression is one table lookup and one eight-byte store per
//! code.
//!
//! After P. Boncz, T. Neumann, V. Leis: "FSST: Fast Random Access String Compression", VLDB 2020.
//!
//! # Steps
//!
//! 1. [`SymbolTable::train`] builds the table bottom up (the paper's part on the construction of symbol
//!    tables). It starts with no symbol. In each of five generations it compresses the sample with the table
//!    so far, counts each symbol and each pair of neighbours, and takes the symbols and the joined pairs as
//!    candidates. The 255 candidates with the highest gain, which is count times length, form the next table.
//!    The first tables are built from a part of the sample, for speed.
//! 2. [`SymbolTable::compress`] takes the longest symbol that starts the rest of the text, again and again.
//!    It looks for a symbol of three or more bytes, of two, and of one, and takes the longest one found. If
//!    there is none it writes [`ESCAPE`] and the byte itself. Blocks of texts are compressed by
//!    [`super::fsst_interleaved`].
//! 3. [`SymbolTable::decompress`] puts the symbols of the codes one after the other;
//!    [`SymbolTable::decompress_run`] does so for texts whose codes follow each other.
//!
//! # Layout
//!
//! A compressed text is a sequence of bytes. A byte from 0 to 254 is the code of a symbol. The byte 255 is
//! the escape: the byte after it is a byte of the text. There is no header and no end mark; the caller keeps
//! the length. The concatenated codes of two texts decompress to the concatenated texts, so a run of
//! neighbouring strings can be decompressed with one call.
//!
//! A symbol is held as a `u64` whose lowest byte is the first byte of the symbol; the bytes past its length
//! are zero.
//!
//! # Invariants
//!
//! - At most one symbol of three or more bytes starts with the same three bytes, and no two symbols are
//!   equal. So the slot found by the hash of a prefix holds the only symbol which can match there (the
//!   paper's lossy perfect hash).
//! - Training and compression are deterministic. With the same table equal texts have equal codes, and
//!   different texts have different codes. So texts can be tested for equality by their codes.
//! - A compressed text is at most twice as long as the text, and a text at most eight times as long as its
//!   codes.
//! - A table does not change after training, so it can be shared by threads.
//!
//! # What it does not do
//!
//! - Codes do not keep the order of the texts: only equality can be tested on them.
//! - It does not detect damaged codes. They give a wrong text, never undefined behaviour.
//! - It does not write the table to a file.
//! - It does not use SIMD for compression as the paper does.
//! - It does not choose the sample, nor decide whether compression pays. The caller does.

use entasis_vector::simd::widest;
use std::collections::BinaryHeap;
use std::fmt;
use std::hint::select_unpredictable;

/// The code which says that the next byte is a byte of the text.
pub(super) const ESCAPE: u8 = 255;

/// The most symbols a table can have: all codes but [`ESCAPE`].
const MAX_SYMBOLS: usize = 255;

/// The most bytes a symbol can have.
pub(super) const MAX_LENGTH: usize = 8;

/// Codes of a run that are decompressed at a time.
const GROUP: usize = 8;

/// No text begins here: see [`SymbolTable::decompress_run`].
pub(super) const NO_PLACE: u32 = u32::MAX;

/// How many tables training builds, each from the counts of the one before.
const GENERATIONS: usize = 5;

/// The most codes for which room is made without first finding the length of their text.
const MAX_ROUGH_CODES: usize = 1 << 16;

/// How many slots a [`PrefixTable`] has, as a power of two.
const SLOT_BITS: u32 = 10;

/// The number of codes training counts: see [`literal_code`].
const TRAINING_CODES: usize = 512;

/// The fewest times a pair must be seen in the sample for its join to be a candidate.
const MIN_PAIR_COUNT: u16 = 3;

/// What a symbol of one byte gains for each time it is seen. It is more than its length, as without the
/// symbol an escape must be written.
const SINGLE_BYTE_WEIGHT: u64 = 8;

/// True if a byte of `word` is [`ESCAPE`], all of whose bits are set.
#[inline(always)]
fn has_escape(word: u64) -> bool {
    const LOW: u64 = u64::from_le_bytes([1; 8]);
    // The usual test for a byte that is zero, of the complement.
    (!word).wrapping_sub(LOW) & word & (LOW << 7) != 0
}

/// The symbols learned from a sample, and what is needed to find the longest one at the start of a text.
pub(crate) struct SymbolTable {
    /// The bytes of the symbol of each code.
    symbols: [u64; 256],
    /// The length of the symbol of each code; zero for a code which is not used.
    lengths: [u8; 256],
    /// For each byte the code of the symbol which is that byte alone, or [`ESCAPE`].
    singles: [u8; 256],
    /// The symbols of two bytes.
    pairs: PrefixTable<2>,
    /// The symbols of three and more bytes.
    longs: PrefixTable<3>,
}

impl SymbolTable {
    /// Learns a table from a sample of the texts. Some 16 to 64 KB are enough. An empty sample gives a table
    /// with no symbols, which escapes every byte.
    pub(crate) fn train<'a>(sample: impl Iterator<Item = &'a [u8]> + Clone) -> SymbolTable {
        let mut counts = Counts::new();
        (0..GENERATIONS).fold(SymbolTable::empty(), |table, generation| {
            // The early tables are rough anyway, so only every fifth text, fourth text and so on is counted
            // for them.
            sample.clone().step_by(GENERATIONS - generation).for_each(|text| counts.add_text(&table, text));
            SymbolTable::from_candidates(counts.take_candidates(&table))
        })
    }

    /// Appends the codes of `text` to `out`.
    pub(crate) fn compress(&self, text: &[u8], out: &mut Vec<u8>) {
        let mut at = out.len();
        out.resize(at + 2 * text.len(), 0);
        self.for_each_match(text, |found, first| {
            // Both bytes are always written; the second one stays only after an escape.
            out[at..at + 2].copy_from_slice(&[found.code(), first]);
            at += 1 + usize::from(found.code() == ESCAPE);
        });
        out.truncate(at);
    }

    /// Appends the text of `codes` to `out`. While it runs, up to eight bytes per code are taken in `out`.
    pub(crate) fn decompress(&self, codes: &[u8], out: &mut Vec<u8>) {
        let start = out.len();
        out.resize(start + self.room(codes), 0);
        let length = self.decompress_into(codes, &mut out[start..]);
        out.truncate(start + length);
    }

    /// Bytes of memory that [`SymbolTable::decompress_into`] needs: enough for the longest text that the
    /// codes can have.
    // PERF: to find the true length first would halve the speed.
    #[inline]
    pub(crate) fn room(&self, codes: &[u8]) -> usize {
        if codes.len() <= MAX_ROUGH_CODES { MAX_LENGTH * codes.len() } else { self.exact_room(codes) }
    }

    /// Writes the text of `codes` to `out`, which has the [`SymbolTable::room`]. Returns its length.
    // PERF: a whole word is stored for each symbol, then all but its length is written over or cut off.
    #[inline]
    pub(crate) fn decompress_into(&self, codes: &[u8], out: &mut [u8]) -> usize {
        let mut at = 0;
        let mut codes = codes.iter();
        while let Some(&code) = codes.next() {
            if code == ESCAPE {
                if let Some(&byte) = codes.next() {
                    out[at] = byte;
                    at += 1;
                }
            } else {
                out[at..at + MAX_LENGTH].copy_from_slice(&self.symbols[code as usize].to_le_bytes());
                at += self.lengths[code as usize] as usize;
            }
        }
        at
    }

    /// Writes the texts of codes that follow each other to `out`, which has eight bytes for each code, and
    /// the place in it of each code to `places`, which has one more, for the end. The place of a byte behind
    /// an escape, where no text begins, is [`NO_PLACE`].
    // PERF: a loop over the codes of a text ends after a number of them that cannot be predicted, which costs
    // as much as ten codes. Codes without an escape are read eight at a time, whatever texts they belong to.
    pub(crate) fn decompress_run(&self, codes: &[u8], out: &mut [u8], places: &mut [u32]) {
        let places = &mut places[..codes.len() + 1];
        let (mut at, mut next) = (0, 0);
        while next < codes.len() {
            if let Some(group) = codes[next..].first_chunk::<GROUP>()
                && !has_escape(u64::from_le_bytes(*group))
            {
                let places = &mut places[next..next + GROUP];
                for (place, &code) in places.iter_mut().zip(group) {
                    *place = at as u32;
                    out[at..at + MAX_LENGTH].copy_from_slice(&self.symbols[code as usize].to_le_bytes());
                    at += self.lengths[code as usize] as usize;
                }
                next += GROUP;
                continue;
            }
            let end = codes.len().min(next + GROUP);
            while next < end {
                places[next] = at as u32;
                let code = codes[next];
                next += 1;
                if code != ESCAPE {
                    out[at..at + MAX_LENGTH].copy_from_slice(&self.symbols[code as usize].to_le_bytes());
                    at += self.lengths[code as usize] as usize;
                } else if let Some(&byte) = codes.get(next) {
                    places[next] = NO_PLACE;
                    out[at] = byte;
                    (at, next) = (at + 1, next + 1);
                }
            }
        }
        places[codes.len()] = at as u32;
    }

    /// How many bytes a long text and the word stored last take. For a short text a rough number does.
    ///
    /// PERF: separate from [`Self::decompress`], whose loop compiles worse with this one in the same
    /// function.
    #[cold]
    #[inline(never)]
    fn exact_room(&self, codes: &[u8]) -> usize {
        self.decompressed_len(codes) + MAX_LENGTH
    }

    /// The length of the text of `codes`.
    pub(crate) fn decompressed_len(&self, codes: &[u8]) -> usize {
        let mut length = 0;
        let mut codes = codes.iter();
        while let Some(&code) = codes.next() {
            length += match code {
                ESCAPE => codes.next().map_or(0, |_| 1),
                code => self.lengths[code as usize] as usize,
            };
        }
        length
    }

    /// True if the texts of codes, which may be those of several texts one after the other, are sure to be
    /// ASCII: all symbols are, and so is each byte behind an escape. If false, they may be ASCII as well.
    ///
    /// Every byte that looks like an escape is taken for one. That is right as long as the bytes behind
    /// escapes are ASCII, since these do not look like one. Where a damaged text ends with an escape, the
    /// byte behind it is a code of the next text: it is taken for a byte that there is not, and its symbol
    /// is ASCII.
    // PERF: it looks at pairs of bytes, whatever they are, which the compiler does in vectors. To decompress
    // the texts takes several instructions for each code, and memory for them.
    pub(crate) fn is_surely_ascii(&self, codes: &[u8]) -> bool {
        const HIGH: u64 = u64::from_le_bytes([0x80; 8]);
        if self.symbols.iter().fold(0u64, |all, symbol| all | symbol) & HIGH != 0 {
            return false;
        }
        let behind = codes.get(1..).unwrap_or_default();
        let is_other = |code: u8, next: u8| u8::from(code == ESCAPE) & (next >> 7);
        widest(|| codes.iter().zip(behind).fold(0u8, |any, (&code, &next)| any | is_other(code, next))) == 0
    }

    /// The memory the table takes.
    pub(crate) fn bytes(&self) -> usize {
        size_of::<Self>() + self.pairs.bytes() + self.longs.bytes()
    }

    /// A table with no symbols.
    fn empty() -> SymbolTable {
        SymbolTable {
            symbols: [0; 256],
            lengths: [0; 256],
            singles: [ESCAPE; 256],
            pairs: PrefixTable::new(),
            longs: PrefixTable::new(),
        }
    }

    /// The table of the best candidates. One whose slot is already taken by a better one is left out.
    fn from_candidates(candidates: Vec<Candidate>) -> SymbolTable {
        let mut table = SymbolTable::empty();
        let mut candidates = BinaryHeap::from(candidates);
        let mut code = 0;
        while code < MAX_SYMBOLS
            && let Some(candidate) = candidates.pop()
        {
            code += usize::from(table.insert(candidate.symbol, code as u8));
        }
        table
    }

    /// The symbols in the order of their codes: their bytes, the first one lowest, and how many these are.
    pub(crate) fn symbols(&self) -> impl Iterator<Item = (u64, u8)> {
        self.symbols.iter().copied().zip(self.lengths).take_while(|(_, length)| *length > 0)
    }

    /// The table of such symbols; `None` if no table has them.
    pub(crate) fn of_symbols(symbols: &[(u64, u8)]) -> Option<SymbolTable> {
        let mut table = SymbolTable::empty();
        let is_symbol = |&(bytes, length): &(u64, u8)| {
            (1..=MAX_LENGTH).contains(&length.into())
                && bytes.checked_shr(8 * u32::from(length)).unwrap_or(0) == 0
        };
        let insert = |(code, &(bytes, length)): (usize, &(u64, u8))| {
            table.insert(Symbol { bytes, length }, code as u8)
        };
        let are_good = symbols.len() <= MAX_SYMBOLS && symbols.iter().all(is_symbol);
        (are_good && symbols.iter().enumerate().all(insert)).then_some(table)
    }

    /// Adds a symbol under a code, unless its slot is taken; returns whether it was added.
    fn insert(&mut self, symbol: Symbol, code: u8) -> bool {
        let added = match symbol.length {
            1 => {
                self.singles[symbol.bytes as usize] = code;
                true
            }
            2 => self.pairs.insert(symbol, code),
            _ => self.longs.insert(symbol, code),
        };
        if added {
            self.symbols[code as usize] = symbol.bytes;
            self.lengths[code as usize] = symbol.length;
        }
        added
    }

    /// Splits `text` into matches, each the longest at its place, and gives `visit` each with its first byte.
    #[inline(always)]
    fn for_each_match(&self, text: &[u8], mut visit: impl FnMut(Match, u8)) {
        let mut rest = text;
        while let Some(&word) = rest.first_chunk() {
            let word = u64::from_le_bytes(word);
            let found = self.longest_match(word, MAX_LENGTH);
            visit(found, word as u8);
            rest = &rest[found.length()..];
        }
        let mut word = last_word(text, rest.len());
        let mut remaining = rest.len();
        while remaining > 0 {
            let found = self.longest_match(word, remaining);
            visit(found, word as u8);
            word >>= 8 * found.length();
            remaining -= found.length();
        }
    }

    /// The longest symbol which starts a text, given its next eight bytes, of which only `remaining` belong
    /// to it.
    #[inline(always)]
    pub(super) fn longest_match(&self, word: u64, remaining: usize) -> Match {
        let single = Match::new(self.singles[word as u8 as usize], 1);
        self.longs.find_or(self.pairs.find_or(single, word, remaining), word, remaining)
    }

    /// The symbol of a training code: see [`literal_code`].
    fn symbol(&self, training_code: usize) -> Symbol {
        match training_code.checked_sub(literal_code(0)) {
            Some(byte) => Symbol { bytes: byte as u64, length: 1 },
            None => Symbol { bytes: self.symbols[training_code], length: self.lengths[training_code] },
        }
    }
}

impl fmt::Debug for SymbolTable {
    /// Lists the symbols in the order of their codes.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let symbols = self.symbols.iter().zip(&self.lengths).filter(|&(_, &length)| length > 0);
        let texts = symbols
            .map(|(symbol, &length)| symbol.to_le_bytes()[..length as usize].escape_ascii().to_string());
        formatter.debug_list().entries(texts).finish()
    }
}

/// The last `count` bytes of a text as a little-endian number; `count` is less than eight.
#[inline(always)]
fn last_word(text: &[u8], count: usize) -> u64 {
    match text.last_chunk() {
        // Two shifts, as a single shift by 64 bits is not allowed.
        Some(&word) => u64::from_le_bytes(word) >> 8 >> (8 * (MAX_LENGTH - 1 - count)),
        None => text.iter().rev().fold(0, |word, &byte| word << 8 | u64::from(byte)),
    }
}

/// One step of compression: a code, or [`ESCAPE`], in the low byte, and how many bytes of the text it stands
/// for above.
///
/// PERF: as one number it stays in a register where the longest of three matches is chosen without a branch.
#[derive(Clone, Copy)]
pub(super) struct Match(u16);

impl Match {
    /// The match of a code which stands for `length` bytes.
    #[inline(always)]
    fn new(code: u8, length: u8) -> Match {
        Match(u16::from(length) << 8 | u16::from(code))
    }

    /// The code of the symbol, or [`ESCAPE`].
    #[inline(always)]
    pub(super) fn code(self) -> u8 {
        self.0 as u8
    }

    /// How many bytes of the text it stands for.
    #[inline(always)]
    pub(super) fn length(self) -> usize {
        usize::from(self.0 >> 8)
    }
}

/// A string of 1 to 8 bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Symbol {
    /// The bytes, the first one lowest; zero past the length.
    bytes: u64,
    /// How many bytes there are.
    length: u8,
}

impl Symbol {
    /// This symbol and then another one, cut to eight bytes. This one must be shorter than that.
    fn join(self, next: Symbol) -> Symbol {
        let length = (self.length + next.length).min(MAX_LENGTH as u8);
        Symbol { bytes: self.bytes | next.bytes << (8 * self.length), length }
    }
}

/// The symbols which start with a prefix of `PREFIX` bytes, by the hash of the prefix; at most one in each
/// slot.
struct PrefixTable<const PREFIX: u32> {
    /// The slots, by hash.
    slots: Box<[Slot; 1 << SLOT_BITS]>,
}

impl<const PREFIX: u32> PrefixTable<PREFIX> {
    /// A table with no symbols.
    fn new() -> Self {
        PrefixTable { slots: Box::new([Slot::EMPTY; 1 << SLOT_BITS]) }
    }

    /// The slot for the texts which start with the bytes of `word`.
    #[inline(always)]
    fn slot_of(word: u64) -> usize {
        // The prefix is moved to the top, which drops the other bytes; the factor is 2^64 over the golden
        // ratio.
        let prefix = word << (64 - 8 * PREFIX) >> (64 - 8 * PREFIX);
        (prefix.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> (64 - SLOT_BITS)) as usize
    }

    /// Puts a symbol into its slot, unless that is taken; returns whether it was put.
    fn insert(&mut self, symbol: Symbol, code: u8) -> bool {
        let slot = &mut self.slots[Self::slot_of(symbol.bytes)];
        let free = slot.found.length() == 0;
        if free {
            *slot = Slot {
                bytes: symbol.bytes,
                ignored_bits: 64 - 8 * symbol.length,
                found: Match::new(code, symbol.length),
            };
        }
        free
    }

    /// The symbol which starts the text whose next bytes are `word`, of which only `remaining` belong to it;
    /// if there is none, the match of the `shorter` symbol.
    ///
    /// PERF: chosen without a branch, as which symbol comes next cannot be predicted: a branch costs a third
    /// of the speed of compression.
    #[inline(always)]
    fn find_or(&self, shorter: Match, word: u64, remaining: usize) -> Match {
        let slot = &self.slots[Self::slot_of(word)];
        let equal = word & (u64::MAX >> slot.ignored_bits) == slot.bytes;
        let fits = slot.found.length() <= remaining;
        select_unpredictable(equal & fits, slot.found, shorter)
    }

    /// The memory the slots take.
    fn bytes(&self) -> usize {
        size_of_val(&*self.slots)
    }
}

/// A place for one symbol in a [`PrefixTable`].
#[derive(Clone, Copy)]
struct Slot {
    /// The bytes of the symbol.
    bytes: u64,
    /// How many of the upper bits of a word are not compared, as they are past the symbol.
    ignored_bits: u8,
    /// The symbol's code and length; the length is zero if the slot is free.
    found: Match,
}

impl Slot {
    /// A free slot. No word is equal to it, as it has bits where the words compared have none.
    const EMPTY: Slot = Slot { bytes: u64::MAX, ignored_bits: 8, found: Match(0) };
}

/// What could become a symbol of the next table. The order is by gain, and by symbol where gains are equal.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Candidate {
    /// How many bytes of the sample the symbol would stand for.
    gain: u64,
    /// The symbol.
    symbol: Symbol,
}

impl Candidate {
    /// The candidate for a symbol seen `count` times.
    fn new(symbol: Symbol, count: u16) -> Candidate {
        let weight = if symbol.length == 1 { SINGLE_BYTE_WEIGHT } else { u64::from(symbol.length) };
        Candidate { gain: u64::from(count) * weight, symbol }
    }
}

/// The training code of a byte written after an escape. The codes below 256 are those of the table's symbols.
fn literal_code(byte: u8) -> usize {
    256 + byte as usize
}

/// How often each training code and each pair of neighbours was seen in the sample.
///
/// Only the counts which are not zero are listed, so that taking them does not walk the whole square.
struct Counts {
    /// The count of each training code.
    codes: [u16; TRAINING_CODES],
    /// The count of each pair of training codes, the first one times [`TRAINING_CODES`] plus the second one.
    pairs: Vec<u16>,
    /// The pairs whose count is not zero.
    seen_pairs: Vec<u32>,
}

impl Counts {
    /// Counts which are all zero.
    fn new() -> Counts {
        let pairs = vec![0; TRAINING_CODES * TRAINING_CODES];
        Counts { codes: [0; TRAINING_CODES], pairs, seen_pairs: Vec::new() }
    }

    /// Counts the codes of one text. For each longer symbol its first byte is counted too, as if it stood
    /// there alone, so that the table can come back from long symbols to shorter ones.
    fn add_text(&mut self, table: &SymbolTable, text: &[u8]) {
        let mut previous = None;
        table.for_each_match(text, |found, first| {
            let literal = literal_code(first);
            let code = if found.code() == ESCAPE { literal } else { found.code() as usize };
            self.add(previous, code);
            if found.length() > 1 {
                self.add(previous, literal);
            }
            previous = Some(code);
        });
    }

    /// Counts one code after another one.
    #[inline(always)]
    fn add(&mut self, previous: Option<usize>, code: usize) {
        self.codes[code] = self.codes[code].saturating_add(1);
        if let Some(previous) = previous {
            let pair = previous * TRAINING_CODES + code;
            if self.pairs[pair] == 0 {
                self.seen_pairs.push(pair as u32);
            }
            self.pairs[pair] = self.pairs[pair].saturating_add(1);
        }
    }

    /// The candidates for the next table, each symbol once; all counts go back to zero.
    fn take_candidates(&mut self, table: &SymbolTable) -> Vec<Candidate> {
        let mut candidates = self.take_codes(table);
        self.take_pairs(table, &mut candidates);
        candidates.sort_unstable_by_key(|candidate| candidate.symbol);
        candidates.dedup_by(|next, first| {
            let same = next.symbol == first.symbol;
            first.gain += if same { next.gain } else { 0 };
            same
        });
        candidates
    }

    /// The candidates which are symbols of the table or single bytes; their counts go back to zero.
    fn take_codes(&mut self, table: &SymbolTable) -> Vec<Candidate> {
        let counts = std::mem::replace(&mut self.codes, [0; TRAINING_CODES]);
        let seen = counts.into_iter().enumerate().filter(|&(_, count)| count > 0);
        seen.map(|(code, count)| Candidate::new(table.symbol(code), count)).collect()
    }

    /// Appends the candidates which join two neighbours; their counts go back to zero.
    fn take_pairs(&mut self, table: &SymbolTable, candidates: &mut Vec<Candidate>) {
        for pair in self.seen_pairs.drain(..) {
            let pair = pair as usize;
            let count = std::mem::take(&mut self.pairs[pair]);
            let first = table.symbol(pair / TRAINING_CODES);
            if count >= MIN_PAIR_COUNT && (first.length as usize) < MAX_LENGTH {
                candidates.push(Candidate::new(first.join(table.symbol(pair % TRAINING_CODES)), count));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A xorshift generator, so that the tests need no dependency and are the same each time.
    struct Random(u64);

    impl Random {
        /// The next number.
        fn next(&mut self) -> u64 {
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
            self.0
        }

        /// The next number below a bound.
        fn below(&mut self, bound: usize) -> usize {
            (self.next() >> 11) as usize % bound
        }

        /// Random bytes.
        fn bytes(&mut self, count: usize) -> Vec<u8> {
            (0..count).map(|_| (self.next() >> 32) as u8).collect()
        }
    }

    /// The words of the comments.
    const WORDS: &str = "packages requests accounts deposits foxes ideas theodolites instructions dependencies excuses platelets \
        asymptotes courts dolphins multipliers sauternes warthogs frets dinos attainments somas sleep wake are \
        cajole haggle nag use boost affix detect integrate maintain nod was lose sublate solve thrash promise \
        engage hinder print x-ray breach eat grow impress furious sly careful blithe quick fluffy slow quiet \
        ruthless thin close dogged daring brave stealthy permanent enticing idle busy regular final ironic even \
        bold silent sometimes always never furiously slyly carefully blithely quickly fluffily about above \
        according to across after against along among around at before between the special pending unusual \
        express";

    /// Comments of 10 to 43 bytes, as in the well-known decision support benchmark.
    fn comments(count: usize, seed: u64) -> Vec<Vec<u8>> {
        let words: Vec<&str> = WORDS.split(' ').collect();
        let mut random = Random(seed);
        let mut prose = Vec::new();
        while prose.len() < count * 44 {
            prose.extend_from_slice(words[random.below(words.len())].as_bytes());
            prose.extend_from_slice([" ", " ", " ", " ", " ", ". ", ", "][random.below(7)].as_bytes());
        }
        prose.chunks(44).take(count).map(|piece| piece[..10 + random.below(34)].to_vec()).collect()
    }

    /// The table of a sample.
    fn trained(sample: &[Vec<u8>]) -> SymbolTable {
        SymbolTable::train(sample.iter().map(Vec::as_slice))
    }

    /// The codes of a text.
    fn compressed(table: &SymbolTable, text: &[u8]) -> Vec<u8> {
        let mut codes = Vec::new();
        table.compress(text, &mut codes);
        codes
    }

    /// Checks that a text comes back, that its length is known, that output is appended, and that codes are
    /// short.
    fn check_round_trip(table: &SymbolTable, text: &[u8]) {
        let codes = compressed(table, text);
        assert!(codes.len() <= 2 * text.len());
        assert_eq!(table.decompressed_len(&codes), text.len());
        let mut appended = b"before".to_vec();
        table.decompress(&codes, &mut appended);
        assert_eq!(appended.strip_prefix(b"before"), Some(text));
        let mut codes_appended = b"before".to_vec();
        table.compress(text, &mut codes_appended);
        assert_eq!(codes_appended.strip_prefix(b"before"), Some(codes.as_slice()));
    }

    /// Texts which are hard in some way.
    fn adversarial() -> Vec<Vec<u8>> {
        let mut random = Random(7);
        let mut texts = vec![Vec::new(), (0..=255).collect(), (0..=255).rev().collect()];
        texts.extend((0..=255).map(|byte| vec![byte]));
        texts.extend((0..40).flat_map(|count| [0, b'a', 254, 255].map(|byte| vec![byte; count])));
        texts.extend((0..40).map(|count| random.bytes(count)));
        texts.extend((0..40).map(|count| random.bytes(count).iter().map(|byte| byte % 3).collect()));
        texts.extend(
            ["Žluťoučký kůň", "日本語のテキスト", "🦀🦀🦀 crab 🦀", "ñ", "Ελληνικά"].map(|text| text.into()),
        );
        texts.push(b"abcdefgh".repeat(100));
        texts.push(b"abcdefghi\0\0\0\0".repeat(100));
        texts.push(random.bytes(100_000));
        texts.push(vec![b'x'; 100_000]);
        texts
    }

    #[test]
    fn adversarial_texts_come_back_with_any_table() {
        let texts = adversarial();
        let mut tables = vec![trained(&[]), trained(&texts), trained(&comments(500, 1))];
        tables.extend(texts.iter().rev().step_by(20).map(|text| trained(std::slice::from_ref(text))));
        for table in &tables {
            texts.iter().for_each(|text| check_round_trip(table, text));
        }
    }

    #[test]
    fn a_very_long_text_comes_back() {
        let table = trained(&comments(1000, 1));
        check_round_trip(&table, &comments(400_000, 2).concat()[..10_000_000]);
        check_round_trip(&table, &Random(3).bytes(10_000_000));
    }

    #[test]
    fn every_prefix_and_suffix_comes_back() {
        let text = comments(20, 4).concat();
        let table = trained(&comments(1000, 1));
        (0..text.len()).for_each(|middle| {
            check_round_trip(&table, &text[..middle]);
            check_round_trip(&table, &text[middle..]);
        });
    }

    #[test]
    fn zeros_past_the_end_are_not_matched() {
        let table = trained(&[b"ab\0\0\0\0\0\0".repeat(50)]);
        (0..=8).for_each(|length| check_round_trip(&table, &b"ab\0\0\0\0\0\0"[..length]));
    }

    #[test]
    fn codes_one_after_the_other_are_texts_one_after_the_other() {
        let texts = comments(100, 5);
        let table = trained(&texts[..50]);
        let mut codes = Vec::new();
        texts.iter().for_each(|text| table.compress(text, &mut codes));
        let mut decompressed = Vec::new();
        table.decompress(&codes, &mut decompressed);
        assert_eq!(decompressed, texts.concat());
    }

    /// Texts of a run, where no text begins behind an escape that has no byte; and that of each by itself.
    fn check_run(table: &SymbolTable, codes: &[Vec<u8>]) {
        let run = codes.concat();
        let (mut out, mut places) = (vec![7; MAX_LENGTH * run.len()], vec![7; run.len() + 1]);
        table.decompress_run(&run, &mut out, &mut places);
        let mut at = 0;
        for codes in codes {
            let (start, end) = (places[at] as usize, places[at + codes.len()] as usize);
            let mut text = Vec::new();
            table.decompress(codes, &mut text);
            assert_eq!(out[start..end], text, "{codes:?} by {table:?}");
            at += codes.len();
        }
    }

    #[test]
    fn texts_of_a_run_are_those_of_each_text_by_itself() {
        let short: Vec<Vec<u8>> =
            adversarial().into_iter().chain(comments(300, 8)).filter(|text| text.len() < 1000).collect();
        let mut tables = vec![trained(&[]), trained(&short), trained(&comments(500, 1))];
        tables.extend(short.iter().rev().step_by(20).map(|text| trained(std::slice::from_ref(text))));
        for table in &tables {
            let codes: Vec<Vec<u8>> = short.iter().map(|text| compressed(table, text)).collect();
            check_run(table, &codes);
            codes.chunks(3).for_each(|codes| check_run(table, codes));
            (0..12).for_each(|first| check_run(table, &codes[first..first + 40]));
        }
    }

    #[test]
    fn no_text_begins_behind_an_escape() {
        let table = trained(&comments(10, 1));
        for before in 0..20 {
            let mut codes = vec![0; before];
            codes.extend([ESCAPE, ESCAPE, 3, 4]);
            let (mut out, mut places) = (vec![0; MAX_LENGTH * codes.len()], vec![0; codes.len() + 1]);
            table.decompress_run(&codes, &mut out, &mut places);
            let is_none: Vec<usize> = (0..places.len()).filter(|&at| places[at] == NO_PLACE).collect();
            assert_eq!(is_none, [before + 1]);
            // The byte is missing.
            table.decompress_run(&codes[..before + 1], &mut out, &mut places);
            assert_eq!(places[before], places[before + 1]);
        }
    }

    /// Whoever says that texts are ASCII is right; and says so if all symbols and texts are.
    #[test]
    fn texts_that_are_surely_ascii_are() {
        let mut random = Random(17);
        let short: Vec<Vec<u8>> =
            adversarial().into_iter().chain(comments(300, 8)).filter(|text| text.len() < 1000).collect();
        let mut tables = vec![trained(&[]), trained(&short), trained(&comments(500, 1))];
        tables.extend(short.iter().rev().step_by(20).map(|text| trained(std::slice::from_ref(text))));
        let (mut sure, mut unsure) = (0, 0);
        for table in &tables {
            let has_ascii = table.symbols().all(|(bytes, _)| bytes.to_le_bytes().is_ascii());
            for texts in short.chunks(5).chain(short.chunks(1)) {
                let codes: Vec<Vec<u8>> = texts.iter().map(|text| compressed(table, text)).collect();
                let is_sure = table.is_surely_ascii(&codes.concat());
                assert_eq!(is_sure, has_ascii && texts.concat().is_ascii(), "{texts:?} by {table:?}");
                *(if is_sure { &mut sure } else { &mut unsure }) += 1;
            }
            // Codes that no text has, some of them with an escape at the end.
            for _ in 0..200 {
                let letters = [ESCAPE, 0, 1, b'a', 127, 128, 250, 254];
                let codes: Vec<Vec<u8>> = (0..3)
                    .map(|_| {
                        let count = random.below(4);
                        (0..count).map(|_| letters[random.below(letters.len())]).collect()
                    })
                    .collect();
                let mut text = Vec::new();
                codes.iter().for_each(|codes| table.decompress(codes, &mut text));
                assert!(!table.is_surely_ascii(&codes.concat()) || text.is_ascii(), "{codes:?} by {table:?}");
            }
        }
        assert!(sure > 100 && unsure > 100, "{sure} and {unsure}");
    }

    #[test]
    fn escapes_are_seen_in_any_byte() {
        let mut random = Random(13);
        for _ in 0..20_000 {
            let mut word = random.next().to_le_bytes();
            word[random.below(8)] = [0, 254, 127, 128, 255][random.below(5)];
            assert_eq!(has_escape(u64::from_le_bytes(word)), word.contains(&ESCAPE), "{word:?}");
        }
    }

    #[test]
    fn training_and_compression_are_deterministic() {
        let texts = comments(1000, 1);
        let (one, other) = (trained(&texts), trained(&texts));
        assert_eq!(format!("{one:?}"), format!("{other:?}"));
        for text in comments(1000, 6) {
            assert_eq!(compressed(&one, &text), compressed(&other, &text));
            assert_eq!(compressed(&one, &text), compressed(&one, &[b"##", text.as_slice()].concat()[2..]));
        }
    }

    #[test]
    fn comments_shrink_to_half() {
        let table = trained(&comments(1000, 1));
        let texts = comments(10_000, 2);
        let codes: usize = texts.iter().map(|text| compressed(&table, text).len()).sum();
        assert!(codes * 2 <= texts.concat().len(), "{codes} of {}", texts.concat().len());
    }

    #[test]
    fn random_bytes_grow_little_with_their_own_table() {
        let text = Random(9).bytes(50_000);
        let codes = compressed(&trained(std::slice::from_ref(&text)), &text);
        assert!(codes.len() < text.len() * 11 / 10, "{}", codes.len());
    }

    #[test]
    fn an_empty_sample_escapes_everything() {
        let table = trained(&[]);
        assert_eq!(format!("{table:?}"), "[]");
        assert_eq!(compressed(&table, b"ab"), [ESCAPE, b'a', ESCAPE, b'b']);
        assert_eq!(compressed(&table, b""), b"");
    }

    #[test]
    fn symbols_are_distinct() {
        let table = trained(&comments(1000, 1));
        let mut symbols: Vec<Symbol> = (0..MAX_SYMBOLS).map(|code| table.symbol(code)).collect();
        symbols.retain(|symbol| symbol.length > 0);
        assert!(symbols.len() > 200);
        symbols.sort_unstable();
        assert!(symbols.windows(2).all(|pair| pair[0] != pair[1]));
    }

    #[test]
    fn damaged_codes_do_no_harm() {
        let table = trained(&comments(10, 1));
        let mut random = Random(11);
        for count in 0..200 {
            let mut codes = random.bytes(count);
            codes.push(ESCAPE);
            let mut text = Vec::new();
            table.decompress(&codes, &mut text);
            assert_eq!(text.len(), table.decompressed_len(&codes));
        }
    }

    #[test]
    fn the_table_is_shared_and_small() {
        fn shared<T: Send + Sync + fmt::Debug>(_: &T) {}
        let table = trained(&comments(10, 1));
        shared(&table);
        assert!(table.bytes() < 64 << 10);
    }
}
