//! Compresses the texts of a block ([`super::fsst_codec`]), several at a time.
//!
//! The position of the next symbol depends on the one before it, which has a latency of some twenty cycles.
//! So the texts are divided among a few *tracks* of consecutive texts, and the tracks take turns, symbol by
//! symbol. The codes of a text do not depend on other texts: each track writes its own codes, which are
//! concatenated at the end.
//!
//! The slow twin is [`SymbolTable::compress`].

use super::fsst_codec::{ESCAPE, MAX_LENGTH, SymbolTable};

/// Texts that are compressed at the same time.
const TRACKS: usize = 4;

/// Consecutive texts of a block, and how far they are compressed.
struct Track {
    /// The text that is being compressed, and the first text of the next track.
    text: usize,
    behind: usize,
    /// The next byte of the text, and where the text ends.
    at: usize,
    end: usize,
    /// Where codes begin, and where the next one goes.
    start: usize,
    to: usize,
}

/// What all tracks work with.
struct Texts<'a> {
    table: &'a SymbolTable,
    ends: &'a [u32],
    /// The texts, followed by as many bytes as a symbol may have.
    bytes: &'a [u8],
    codes: &'a mut [u8],
    /// Where the codes of each text end, from the beginning of its track's codes.
    code_ends: &'a mut [u32],
}

impl Texts<'_> {
    /// The track of some texts.
    fn track(&mut self, text: usize, behind: usize) -> Track {
        let at = if text == 0 { 0 } else { self.ends[text - 1] as usize };
        // A byte becomes at most two.
        let mut track = Track { text, behind, at, end: at, start: 2 * at, to: 2 * at };
        self.begin_text(&mut track);
        track
    }

    /// Goes on to the next text that has bytes, from the text of the track on.
    fn begin_text(&mut self, track: &mut Track) {
        while track.text < track.behind {
            track.end = self.ends[track.text] as usize;
            if track.at < track.end {
                break;
            }
            self.end_text(track);
        }
    }

    fn end_text(&mut self, track: &mut Track) {
        self.code_ends[track.text] = (track.to - track.start) as u32;
        track.text += 1;
    }

    /// Writes the code of the next symbol of a text. True if the track goes on.
    #[inline(always)]
    fn step(&mut self, track: &mut Track) -> bool {
        let word = self.bytes[track.at..].first_chunk().map_or(0, |word| u64::from_le_bytes(*word));
        let found = self.table.longest_match(word, track.end - track.at);
        // Both bytes are always written; the second one stays only after an escape.
        self.codes[track.to..track.to + 2].copy_from_slice(&[found.code(), word as u8]);
        track.to += 1 + usize::from(found.code() == ESCAPE);
        track.at += found.length();
        if track.at == track.end {
            self.end_text(track);
            self.begin_text(track);
        }
        track.text < track.behind
    }
}

/// Compresses the consecutive texts of `bytes`, which end at `ends`. Returns the end of each one's codes, and
/// all codes.
pub(super) fn compress(table: &SymbolTable, ends: &[u32], bytes: &[u8]) -> (Vec<u32>, Vec<u8>) {
    let padded = [bytes, &[0; MAX_LENGTH]].concat();
    let (mut codes, mut code_ends) = (vec![0; 2 * bytes.len()], vec![0; ends.len()]);
    let mut texts = Texts { table, ends, bytes: &padded, codes: &mut codes, code_ends: &mut code_ends };
    let first = |track: usize| ends.len() * track / TRACKS;
    let tracks: [Track; TRACKS] = std::array::from_fn(|track| texts.track(first(track), first(track + 1)));
    let mut go_on = tracks.iter().all(|track| track.text < track.behind);
    // PERF: a loop over the tracks would keep them in memory.
    let [mut a, mut b, mut c, mut d] = tracks;
    while go_on {
        go_on = texts.step(&mut a) & texts.step(&mut b) & texts.step(&mut c) & texts.step(&mut d);
    }
    let mut tracks = [a, b, c, d];
    for track in &mut tracks {
        while track.text < track.behind {
            texts.step(track);
        }
    }
    let mut all = Vec::with_capacity(tracks.iter().map(|track| track.to - track.start).sum());
    for (number, track) in tracks.iter().enumerate() {
        code_ends[first(number)..track.behind].iter_mut().for_each(|end| *end += all.len() as u32);
        all.extend_from_slice(&codes[track.start..track.to]);
    }
    (code_ends, all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_those_of_each_text_by_itself() {
        let words =
            ["", "a", "packages ", "haggle carefully ", "ßö\0\0", "final deposits; ", "\u{1}\u{2}\u{3}\u{4}"];
        let text =
            |i: usize| (0..i * 7 % 13).map(|j| words[(i * 31 + j * j) % words.len()]).collect::<String>();
        let texts: Vec<String> = (0..300).map(text).collect();
        let tables = [
            SymbolTable::train(texts.iter().map(|text| text.as_bytes())),
            SymbolTable::train(std::iter::empty()),
            SymbolTable::train(["haggle ".repeat(9).as_bytes()].into_iter()),
        ];
        for (table, count) in tables.iter().flat_map(|table| [0, 1, 3, 5, 300].map(|count| (table, count))) {
            let (mut ends, mut bytes, mut expected, mut expected_ends) = (vec![], vec![], vec![], vec![]);
            for text in &texts[..count] {
                bytes.extend_from_slice(text.as_bytes());
                ends.push(bytes.len() as u32);
                table.compress(text.as_bytes(), &mut expected);
                expected_ends.push(expected.len() as u32);
            }
            assert_eq!(
                compress(table, &ends, &bytes),
                (expected_ends, expected),
                "{count} texts by {table:?}"
            );
        }
    }
}
