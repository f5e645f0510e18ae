//! Searching texts in the codes of a symbol table ([`super::fsst_codec`]), without decompressing them.
//!
//! The idea. A pattern is an automaton that reads a text byte by byte. Which state it is in after a symbol
//! depends only on the state before and on the symbol, so that a table of states and codes replaces the
//! bytes: one look-up for each code, which stands for two to three bytes of usual texts.
//!
//! 1. [`Automaton::of_texts`] accepts some texts and nothing else: a tree of their bytes.
//! 2. [`Automaton::of_pieces`] accepts `prefix % piece … % suffix`. Each byte of the pattern has a state,
//!    which says how much of its piece the text ends with, as in the algorithm of Knuth, Morris and Pratt.
//!    Pieces are found at the first place behind the one before, which finds all texts that match.
//! 3. [`CodeAutomaton::new`] reads the bytes of every symbol in every state. After an escape the next byte
//!    stands for itself; so there is a second state for each, in which an escape has been read.
//! 4. [`CodeAutomaton::narrow`] reads the texts of a block: one after the other, each until its answer is
//!    known, if few are left or if a first byte decides. Otherwise it looks for codes that leave the first
//!    state, at any of which a match may begin, and reads from there on until it is back in that state. If
//!    there are many of these, it reads all codes, several texts at a time, as each look-up waits for the one
//!    before.
//!
//! It does not matter how texts were compressed: any codes of a text give the same answer. The slow twin
//! decompresses a text and runs [`Automaton::accepts`], whose twins in turn are the tests' comparisons.
//!
//! Not here: patterns with `_`, and comparisons regardless of case.

use super::StringBytes;
use super::fsst_codec::{ESCAPE, SymbolTable};
use super::masks::WORDS;
use std::fmt;
use std::sync::Arc;

/// The most states: a state and its second one are numbers of a byte.
const MOST_STATES: usize = 128;
/// Texts that are read at the same time.
const TRACKS: usize = 4;
/// Codes are read from those on at which a match may begin if these are at most one in so many.
const FEW_OPEN: usize = 12;
/// Codes of a block that suggest how many of them these are.
const SAMPLE: usize = 1024;
/// Texts are read one by one if at most one in so many is asked for.
const FEW: u32 = 4;

/// See the module. It begins in state 0.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Automaton {
    /// The next state, by state and byte.
    next: Vec<[u8; 256]>,
    /// Whether a text that ends in a state is accepted.
    accepts: Vec<bool>,
}

impl Automaton {
    /// Accepts each of some texts; `None` if they have too many states.
    pub(crate) fn of_texts<'a>(texts: impl IntoIterator<Item = &'a [u8]>) -> Option<Automaton> {
        const DEAD: u8 = 1;
        let mut own = Automaton { next: vec![[DEAD; 256]; 2], accepts: vec![false; 2] };
        for text in texts {
            let mut state = 0;
            for &byte in text {
                if own.next[state][usize::from(byte)] == DEAD {
                    let new = own.add([DEAD; 256], false)?;
                    own.next[state][usize::from(byte)] = new;
                }
                state = own.next[state][usize::from(byte)].into();
            }
            own.accepts[state] = true;
        }
        Some(own)
    }

    /// Accepts texts that begin with `prefix`, have all of `pieces` behind it, in order and apart, and end
    /// with `suffix` behind these; each may be empty. `None` if they have too many states.
    pub(crate) fn of_pieces(prefix: &[u8], pieces: &[&[u8]], suffix: &[u8]) -> Option<Automaton> {
        let mut own = Automaton { next: Vec::new(), accepts: Vec::new() };
        let states = prefix.len() + pieces.iter().map(|piece| piece.len()).sum::<usize>() + suffix.len() + 2;
        if states > MOST_STATES {
            return None;
        }
        // Behind all others.
        let dead = states as u8 - 1;
        for (at, &byte) in prefix.iter().enumerate() {
            let mut next = [dead; 256];
            next[usize::from(byte)] = at as u8 + 1;
            own.add(next, false)?;
        }
        for piece in pieces {
            own.add_piece(piece)?;
        }
        match suffix.is_empty() {
            true => {
                let all = own.next.len() as u8;
                own.add([all; 256], true)?;
            }
            false => {
                let again = own.add_piece(suffix)?;
                // A longer text may end with the suffix once more.
                own.add(own.next[again], true)?;
            }
        }
        own.add([dead; 256], false)?;
        Some(own)
    }

    /// Adds a state for each byte of a piece, whose last byte leads to the state that is added next. The
    /// state from which a text that has this piece goes on to have it again.
    fn add_piece(&mut self, piece: &[u8]) -> Option<usize> {
        let first = self.next.len();
        // What the text ends with without the first byte of what was found so far.
        let mut shorter = first;
        for (at, &byte) in piece.iter().enumerate() {
            let mut next = if at == 0 { [first as u8; 256] } else { self.next[shorter] };
            if at > 0 {
                shorter = next[usize::from(byte)].into();
            }
            next[usize::from(byte)] = (first + at) as u8 + 1;
            self.add(next, false)?;
        }
        Some(shorter)
    }

    /// Adds a state; `None` if there are too many.
    fn add(&mut self, next: [u8; 256], accepts: bool) -> Option<u8> {
        let state = self.next.len();
        self.next.push(next);
        self.accepts.push(accepts);
        (state < MOST_STATES).then_some(state as u8)
    }

    /// The state after some bytes that are read in a state.
    fn after(&self, state: u8, bytes: &[u8]) -> u8 {
        bytes.iter().fold(state, |state, &byte| self.next[usize::from(state)][usize::from(byte)])
    }

    /// True if it accepts `text`.
    pub(crate) fn accepts(&self, text: &[u8]) -> bool {
        self.accepts[usize::from(self.after(0, text))]
    }

    /// True if no byte leaves a state.
    fn is_final(&self, state: usize) -> bool {
        self.next[state].iter().all(|next| usize::from(*next) == state)
    }
}

/// An automaton that reads the codes of a symbol table.
pub(crate) struct CodeAutomaton {
    table: Arc<SymbolTable>,
    /// The next state, by state and code.
    // PERF: of a fixed size, so that no index is checked. What is not used is not in the cache.
    next: Box<[[u8; 256]; 256]>,
    /// Whether a text that ends in a state is accepted.
    accepts: [bool; 256],
    /// States that are never left.
    is_final: [bool; 256],
    /// Codes that lead out of the first state.
    opens: [bool; 256],
    /// Most texts are decided by their first byte.
    is_anchored: bool,
}

impl CodeAutomaton {
    /// The automaton for the codes of a table.
    pub(crate) fn new(automaton: &Automaton, table: &Arc<SymbolTable>) -> CodeAutomaton {
        let states = automaton.next.len();
        let next = vec![[0; 256]; 256].into_boxed_slice().try_into().expect("256 rows");
        let mut own = CodeAutomaton {
            table: table.clone(),
            next,
            accepts: [false; 256],
            is_final: [false; 256],
            opens: [false; 256],
            is_anchored: (0..=255).any(|byte| {
                let next = usize::from(automaton.next[0][byte]);
                automaton.is_final(next) && !automaton.accepts[next]
            }),
        };
        for state in 0..states {
            let second = states + state;
            // Codes of no symbol, which only damaged data has, stand for no bytes.
            own.next[state] = [state as u8; 256];
            for (code, (word, length)) in table.symbols().enumerate() {
                let bytes = word.to_le_bytes();
                own.next[state][code] = automaton.after(state as u8, &bytes[..usize::from(length)]);
            }
            own.next[state][usize::from(ESCAPE)] = second as u8;
            own.next[second] = automaton.next[state];
            own.accepts[state] = automaton.accepts[state];
            own.accepts[second] = automaton.accepts[state];
            own.is_final[state] = automaton.is_final(state);
        }
        own.opens = own.next[0].map(|next| next != 0);
        own
    }

    /// The table whose codes it reads.
    pub(crate) fn table(&self) -> &Arc<SymbolTable> {
        &self.table
    }

    /// Narrows `masks`, a bit a slot, to the slots of texts that are accepted, or are not.
    pub(crate) fn narrow(&self, codes: &StringBytes, accepted: bool, masks: &mut [u64]) {
        let asked: u32 = masks.iter().map(|mask| mask.count_ones()).sum();
        if self.is_anchored || asked * FEW <= codes.len() as u32 {
            return super::masks::keep(masks, |slot| self.accepts(codes.get(slot)) == accepted);
        }
        let (ends, bytes) = codes.parts();
        let found = match self.opens_at_few(bytes) {
            true => self.read_from_opening(&ends, bytes),
            false => self.read_all(&ends, bytes),
        };
        masks.iter_mut().zip(found).for_each(|(mask, found)| *mask &= if accepted { found } else { !found });
    }

    /// True if the text of some codes is accepted.
    fn accepts(&self, codes: &[u8]) -> bool {
        let mut state = 0u8;
        for &code in codes {
            state = self.next[usize::from(state)][usize::from(code)];
            if self.is_final[usize::from(state)] {
                break;
            }
        }
        self.accepts[usize::from(state)]
    }

    /// True if a sample suggests that few codes lead out of the first state.
    fn opens_at_few(&self, codes: &[u8]) -> bool {
        let sample = &codes[..codes.len().min(SAMPLE)];
        let opening = sample.iter().filter(|code| self.opens[usize::from(**code)]).count();
        opening * FEW_OPEN <= sample.len()
    }

    /// A bit for each text of a block: whether it is accepted. Only what follows codes that lead out of the
    /// first state is read: others do not leave it.
    fn read_from_opening(&self, ends: &[u32], bytes: &[u8]) -> [u64; WORDS] {
        let mut found = [0u64; WORDS];
        if self.accepts[0] {
            (0..ends.len()).for_each(|text| found[text / 64] |= 1 << (text % 64));
        }
        // The text of the last opening code, and how far codes have been read.
        let (mut text, mut read) = (0, 0);
        let (words, rest) = bytes.as_chunks::<64>();
        let masks = words.iter().map(|word| self.opening(word)).chain([self.opening(rest)]);
        for (word, mut left) in masks.enumerate() {
            while left != 0 {
                let at = word * 64 + left.trailing_zeros() as usize;
                left &= left - 1;
                // Read already; perhaps it is the byte behind an escape.
                if at < read {
                    continue;
                }
                while ends[text] as usize <= at {
                    text += 1;
                }
                let end = ends[text] as usize;
                let state;
                (state, read) = self.read_on(&bytes[..end], at);
                if state != 0 {
                    let bit = 1 << (text % 64);
                    found[text / 64] &= !bit;
                    found[text / 64] |= if self.accepts[usize::from(state)] { bit } else { 0 };
                }
            }
        }
        found
    }

    /// A bit for each of up to 64 codes: whether it leads out of the first state.
    // PERF: without a branch for each code, and unrolled if there are 64.
    #[inline(always)]
    fn opening(&self, codes: &[u8]) -> u64 {
        let bit = |(i, code): (usize, &u8)| u64::from(self.opens[usize::from(*code)]) << i;
        codes.iter().enumerate().map(bit).fold(0, |mask, bit| mask | bit)
    }

    /// Reads the codes of a text from `at` on in the first state, until it is back in that state, or the
    /// answer is known: the state then, and how far codes need not be read again.
    #[inline(always)]
    fn read_on(&self, codes: &[u8], at: usize) -> (u8, usize) {
        let mut state = 0u8;
        for (behind, &code) in (at + 1..).zip(&codes[at..]) {
            state = self.next[usize::from(state)][usize::from(code)];
            if state == 0 {
                return (0, behind);
            }
            if self.is_final[usize::from(state)] {
                break;
            }
        }
        (state, codes.len())
    }

    /// The same, reading all codes.
    fn read_all(&self, ends: &[u32], bytes: &[u8]) -> [u64; WORDS] {
        let mut texts = Texts { automaton: self, ends, bytes, found: [0; WORDS] };
        let first = |track: usize| ends.len() * track / TRACKS;
        let tracks: [Track; TRACKS] =
            std::array::from_fn(|track| texts.track(first(track), first(track + 1)));
        // PERF: a loop over the tracks would keep them in memory.
        let have_texts = tracks.iter().all(|track| track.text < track.behind);
        let [mut a, mut b, mut c, mut d] = tracks;
        if have_texts {
            loop {
                if texts.step(&mut a) || texts.step(&mut b) || texts.step(&mut c) || texts.step(&mut d) {
                    break;
                }
            }
        }
        for mut track in [a, b, c, d] {
            while track.text < track.behind {
                texts.step(&mut track);
            }
        }
        texts.found
    }
}

impl fmt::Debug for CodeAutomaton {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "an automaton for codes of {:?}", self.table)
    }
}

/// Consecutive texts of a block, and how far they have been read.
struct Track {
    /// The text that is being read, and the first text of the next track.
    text: usize,
    behind: usize,
    /// The next code, and where the codes of the text end.
    at: usize,
    end: usize,
    state: u8,
}

/// What all tracks work with.
struct Texts<'a> {
    automaton: &'a CodeAutomaton,
    ends: &'a [u32],
    bytes: &'a [u8],
    found: [u64; WORDS],
}

impl Texts<'_> {
    /// The track of some texts.
    fn track(&mut self, text: usize, behind: usize) -> Track {
        let at = if text == 0 { 0 } else { self.ends[text - 1] as usize };
        let mut track = Track { text, behind, at, end: at, state: 0 };
        self.begin_text(&mut track);
        track
    }

    /// Goes on to the next text that has codes, from the text of the track on.
    #[inline(always)]
    fn begin_text(&mut self, track: &mut Track) {
        while track.text < track.behind {
            track.end = self.ends[track.text] as usize;
            if track.at < track.end {
                break;
            }
            self.end_text(track);
        }
    }

    #[inline(always)]
    fn end_text(&mut self, track: &mut Track) {
        let is_accepted = self.automaton.accepts[usize::from(track.state)];
        self.found[track.text / 64] |= u64::from(is_accepted) << (track.text % 64);
        track.state = 0;
        track.text += 1;
    }

    /// Reads the next code. True if it is the last one of the track.
    #[inline(always)]
    fn step(&mut self, track: &mut Track) -> bool {
        let code = self.bytes[track.at];
        track.state = self.automaton.next[usize::from(track.state)][usize::from(code)];
        track.at += 1;
        // PERF: whether the track is at its end is asked at the end of a text only.
        if track.at < track.end {
            return false;
        }
        self.end_text(track);
        self.begin_text(track);
        track.text == track.behind
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::block::Fsst;
    use crate::tests::random::Random;

    /// Texts of few letters, so that they have most of their pieces more than once.
    fn texts(random: &mut Random, count: usize) -> Vec<Vec<u8>> {
        let letters = b"aab\xFFa";
        let mut text = |_| -> Vec<u8> {
            (0..random.below(24)).map(|_| letters[random.below(letters.len() as u64) as usize]).collect()
        };
        (0..count).map(&mut text).collect()
    }

    /// The definition: a piece is taken away where it is found first.
    fn has_pieces(text: &[u8], prefix: &[u8], pieces: &[&[u8]], suffix: &[u8]) -> bool {
        let Some(mut rest) = text.strip_prefix(prefix) else { return false };
        for piece in pieces {
            match (0..=rest.len()).find(|at| rest[*at..].starts_with(piece)) {
                Some(at) => rest = &rest[at + piece.len()..],
                None => return false,
            }
        }
        rest.ends_with(suffix)
    }

    fn block(table: &Arc<SymbolTable>, texts: &[Vec<u8>]) -> Fsst {
        let ends: Vec<u32> = texts
            .iter()
            .scan(0, |end, text| {
                *end += text.len() as u32;
                Some(*end)
            })
            .collect();
        Fsst::new(table.clone(), &ends, &texts.concat(), usize::MAX).expect("there is no limit")
    }

    /// All ways to read the codes of texts against an automaton of bytes.
    fn check(automaton: &Automaton, tables: &[Arc<SymbolTable>], texts: &[Vec<u8>], what: &str) {
        for table in tables {
            let (codes, fsst) = (CodeAutomaton::new(automaton, table), block(table, texts));
            for (accepted, mask) in [(true, u64::MAX), (false, u64::MAX), (true, 0x1001), (false, 0x20)] {
                let mut masks = vec![mask; texts.len().div_ceil(64)];
                if let Some(last) = masks.last_mut().filter(|_| !texts.len().is_multiple_of(64)) {
                    *last &= (1 << (texts.len() % 64)) - 1;
                }
                let kept = |slot: usize| automaton.accepts(&texts[slot]) == accepted;
                let twin = |(word, mask): (usize, &u64)| {
                    let bit = |bit: &usize| mask >> bit & 1 != 0 && kept(word * 64 + bit);
                    (0..64).filter(bit).map(|bit| 1 << bit).sum()
                };
                let twin: Vec<u64> = masks.iter().enumerate().map(twin).collect();
                codes.narrow(fsst.codes(), accepted, &mut masks);
                assert_eq!(masks, twin, "{what}: {accepted} of {mask:x}");
            }
            // Several at a time, and from opening codes on, whatever the pattern and however many these are.
            let (ends, bytes) = fsst.codes().parts();
            for found in [codes.read_all(&ends, bytes), codes.read_from_opening(&ends, bytes)] {
                for (slot, text) in texts.iter().enumerate() {
                    assert_eq!(found[slot / 64] >> (slot % 64) & 1 != 0, automaton.accepts(text), "{what}");
                }
            }
        }
    }

    fn tables(texts: &[Vec<u8>]) -> Vec<Arc<SymbolTable>> {
        let samples = [texts, &texts[..3], &[]];
        let table = |sample: &[Vec<u8>]| Arc::new(SymbolTable::train(sample.iter().map(Vec::as_slice)));
        samples.into_iter().map(table).collect()
    }

    #[test]
    fn pieces_are_found_in_codes() {
        let mut random = Random(3);
        let texts = texts(&mut random, 700);
        let tables = tables(&texts);
        for _ in 0..150 {
            let mut piece = |most: u64, least: u64| -> Vec<u8> {
                (0..least + random.below(most)).map(|_| b"ab\xFF"[random.below(3) as usize]).collect()
            };
            let (prefix, suffix, middle) =
                (piece(3, 0), piece(4, 0), [piece(5, 1), piece(3, 1), piece(2, 1)]);
            let count = random.below(4) as usize;
            let pieces: Vec<&[u8]> = middle[..count].iter().map(Vec::as_slice).collect();
            let automaton = Automaton::of_pieces(&prefix, &pieces, &suffix).expect("it is short");
            for text in &texts {
                assert_eq!(
                    automaton.accepts(text),
                    has_pieces(text, &prefix, &pieces, &suffix),
                    "{prefix:?}, {pieces:?}, {suffix:?} in {text:?}"
                );
            }
            check(&automaton, &tables, &texts, &format!("{prefix:?}, {pieces:?}, {suffix:?}"));
        }
    }

    #[test]
    fn texts_of_a_list_are_found_in_codes() {
        let mut random = Random(5);
        let texts = texts(&mut random, 300);
        let tables = tables(&texts);
        let mut accepted = 0;
        for count in [0, 1, 2, 6] {
            for _ in 0..20 {
                let list: Vec<&[u8]> =
                    (0..count).map(|_| &texts[random.below(texts.len() as u64) as usize][..]).collect();
                let Some(automaton) = Automaton::of_texts(list.iter().copied()) else { continue };
                for text in &texts {
                    let is_there = list.contains(&text.as_slice());
                    assert_eq!(automaton.accepts(text), is_there, "{text:?} of {list:?}");
                    accepted += u32::from(is_there);
                }
                check(&automaton, &tables, &texts, &format!("{list:?}"));
            }
        }
        assert!(accepted > 100);
    }

    #[test]
    fn damaged_codes_give_some_answer() {
        let table = Arc::new(SymbolTable::train([&b"abcabc"[..]].into_iter()));
        let automaton = Automaton::of_pieces(b"", &[b"bc"], b"").expect("it is short");
        let codes = CodeAutomaton::new(&automaton, &table);
        // An escape with nothing behind it, and codes of no symbol.
        for damaged in [&[ESCAPE][..], &[250, 251], &[ESCAPE, ESCAPE, ESCAPE]] {
            assert!(!codes.accepts(damaged));
        }
        let mut text = Vec::new();
        table.compress(b"abc", &mut text);
        text.push(ESCAPE);
        assert!(codes.accepts(&text));
    }

    #[test]
    fn long_patterns_have_no_automaton() {
        let (long, short) = ([b'a'; MOST_STATES - 1], [b'a'; MOST_STATES - 2]);
        assert!(Automaton::of_pieces(&[], &[&long], &[]).is_none());
        assert!(Automaton::of_texts([&long[..]]).is_none());
        for automaton in [Automaton::of_pieces(&[], &[&short], &[]), Automaton::of_texts([&short[..]])] {
            let automaton = automaton.expect("it fits");
            assert!(automaton.accepts(&short) && !automaton.accepts(&short[1..]));
            let texts = vec![short.to_vec(), short[1..].to_vec(), [&short[..], b"b"].concat()];
            check(&automaton, &tables(&texts), &texts, "the longest");
        }
    }
}
