//! Blocks of strings, with a dictionary for the row group if that pays.
//!
//! 1. Strings get codes as they come, and only the codes are kept for each row.
//! 2. If there turn out to be too many distinct strings, all rows are written to plain blocks, and so are all
//!    rows that follow. If strings are long, or a setting asks for it, these blocks are compressed by a
//!    symbol table that is trained on the first of them.
//! 3. Otherwise the dictionary is sorted at the end of the row group, and codes are renumbered in the order
//!    of the strings, so that the bounds of a block are those of its codes.
//!
//! A slot without a row costs nothing, however long the text beside it is: it repeats that one's code, or is
//! empty in a plain block, whose bounds are those of its rows.

use super::interner::Interner;
use super::{ColumnBuilder, Effort, for_each_position};
use crate::BLOCK_ROWS;
use crate::block::fsst_codec::SymbolTable;
use crate::block::{
    Block, Codes, Concatenated, DictionaryCodes, Form, Fsst, StringBytes, TextValues, Values, range_of,
    string_value,
};
use crate::definition::Compression;
use crate::value::{Sketch, Zone, hash_bytes};
use entasis_vector::{
    DataType, Dictionary, Encoding, Error, PhysicalType, Result, StringView, Value, Vector, bitmap,
};
use std::ops::Range;
use std::sync::Arc;

/// The most entries of a dictionary, so that codes fit 16 bits.
const DICTIONARY_MAX: usize = 65_535;
/// The most bytes of a dictionary.
const DICTIONARY_BYTES_MAX: usize = 16 << 20;
/// After so many rows, a column whose strings are mostly distinct gives up its dictionary.
const TRIAL_ROWS: usize = 4096;
/// If strings have so many bytes on average, they are compressed by symbols if that halves them: twice what a
/// view holds. Shorter ones are mostly names and keys, which are joined and grouped by, and of which some
/// bytes could be saved, at the same cost as of longer ones (decision 68).
const LONG: usize = 24;
/// Bytes of strings on which a symbol table is trained.
const SAMPLE_BYTES: usize = 16 << 10;
const SAMPLE_TEXTS: usize = 128;
/// The code that stands for NULL until blocks are made.
const NULL_CODE: u32 = u32::MAX;
/// The translation of a dictionary entry that has not occurred yet.
const NO_CODE: u32 = u32::MAX - 1;
/// The code of a slot without a row until blocks are made: it repeats that of a row beside it.
const FILL_CODE: u32 = u32::MAX - 2;

pub(super) struct StringBuilder {
    ty: DataType,
    form: Form,
    effort: Effort,
    /// This row group may still get a dictionary.
    hopeful: bool,
    interner: Interner,
    /// The code of each row, while hopeful.
    codes: Vec<u32>,
    /// The codes of the entries of the last input dictionary, by its id.
    translated: (u64, Vec<u32>),
    plain: PlainBlocks,
    /// A sketch of the strings that have been interned.
    sketch: Sketch,
}

impl StringBuilder {
    pub(super) fn new(ty: DataType, form: Form, effort: Effort) -> StringBuilder {
        StringBuilder {
            ty,
            form,
            effort,
            hopeful: form.has_dictionaries(),
            interner: Interner::default(),
            codes: Vec::new(),
            translated: (0, Vec::new()),
            plain: PlainBlocks::new(ty, form, effort),
            sketch: Sketch::default(),
        }
    }

    fn append_codes(&mut self, vector: &Vector, positions: Option<&[u16]>, rows: Range<usize>) {
        let StringBuilder { interner, codes, translated, .. } = self;
        match vector.encoding() {
            Encoding::Flat => {
                let views = vector.values::<StringView>();
                for_each_position(positions, rows, |position| {
                    codes.push(match vector.is_valid(position) {
                        true => interner.code(views[position].as_bytes()),
                        false => NULL_CODE,
                    });
                });
            }
            Encoding::Constant => {
                let code = match vector.is_valid(0) {
                    true => interner.code(vector.values::<StringView>()[0].as_bytes()),
                    false => NULL_CODE,
                };
                codes.resize(codes.len() + rows.len(), code);
            }
            Encoding::Dictionary => {
                let dictionary = vector.dictionary().expect("a dictionary vector has one");
                let entries = dictionary.values().values::<StringView>();
                if translated.0 != dictionary.id() {
                    translated.0 = dictionary.id();
                    translated.1.clear();
                    translated.1.resize(dictionary.len(), NO_CODE);
                }
                let (theirs, first) = (vector.codes(), codes.len());
                let translation = &mut translated.1;
                if let (None, None) = (positions, vector.validity()) {
                    codes.extend(theirs[rows.clone()].iter().map(|&entry| translation[entry as usize]));
                } else {
                    for_each_position(positions, rows.clone(), |position| {
                        let valid = vector.is_valid(position);
                        codes.push(if valid { translation[theirs[position] as usize] } else { NULL_CODE });
                    });
                }
                // PERF: new entries are rare, so all rows are looked up first, and missing entries are added
                // afterwards.
                if codes[first..].contains(&NO_CODE) {
                    let mut own = codes[first..].iter_mut();
                    for_each_position(positions, rows, |position| {
                        let code = own.next().expect("as many codes as rows");
                        if *code == NO_CODE {
                            let entry = theirs[position] as usize;
                            if translation[entry] == NO_CODE {
                                translation[entry] = interner.code(entries[entry].as_bytes());
                            }
                            *code = translation[entry];
                        }
                    });
                }
            }
        }
    }

    fn append_plain(&mut self, vector: &Vector, positions: Option<&[u16]>, rows: Range<usize>) -> Result<()> {
        let (views, codes): (&[StringView], _) = match vector.encoding() {
            Encoding::Flat | Encoding::Constant => (vector.values(), None),
            Encoding::Dictionary => {
                let dictionary = vector.dictionary().expect("a dictionary vector has one");
                (dictionary.values().values(), Some(vector.codes()))
            }
        };
        let constant = vector.is_constant();
        let mut result = Ok(());
        for_each_position(positions, rows, |position| {
            let entry = match codes {
                _ if constant => 0,
                None => position,
                Some(codes) => codes[position] as usize,
            };
            if result.is_ok() {
                result = self.plain.push(vector.is_valid(position).then(|| views[entry].as_bytes()));
            }
        });
        result
    }

    /// Gives up the dictionary for this row group.
    fn write_out(&mut self) -> Result<()> {
        self.hopeful = false;
        for &code in &self.codes {
            match code {
                FILL_CODE => self.plain.fill(),
                NULL_CODE => self.plain.push(None)?,
                code => self.plain.push(Some(self.interner.get(code)))?,
            }
        }
        self.forget_codes();
        Ok(())
    }

    fn count_interned(&mut self) {
        if self.effort.sketch {
            self.sketch.add_all(self.interner.hashes(), |hash| hash);
        }
    }

    fn forget_codes(&mut self) {
        self.interner.clear();
        self.codes.clear();
        self.translated = (0, Vec::new());
    }

    /// The blocks of a row group that has a dictionary.
    fn coded_blocks(&mut self) -> Vec<Block> {
        self.count_interned();
        self.codes.chunks_mut(self.effort.block_rows).for_each(repeat_beside);
        let entries = self.interner.len();
        let mut order: Vec<u32> = (0..entries as u32).collect();
        order.sort_unstable_by(|&a, &b| self.interner.get(a).cmp(self.interner.get(b)));
        let mut ranks = vec![0u32; entries];
        let mut texts = Vector::new(PhysicalType::Str);
        let sorted = texts.begin_strings(entries);
        for (rank, &code) in order.iter().enumerate() {
            ranks[code as usize] = rank as u32;
            sorted.views[rank] = sorted.heap.push(self.interner.get(code));
        }
        texts.set_strings_stable(true);
        let dictionary = Dictionary::new(texts, entries);
        // One value for all blocks that have the entry as their bound.
        let mut bounds: Vec<Value> = vec![Value::Null; entries];
        let blocks = self.codes.chunks(self.effort.block_rows);
        let blocks =
            blocks.map(|codes| self.coded_block(codes, &order, &ranks, &dictionary, &mut bounds)).collect();
        self.forget_codes();
        blocks
    }

    fn coded_block(
        &self,
        codes: &[u32],
        order: &[u32],
        ranks: &[u32],
        dictionary: &Arc<Dictionary>,
        bounds: &mut [Value],
    ) -> Block {
        let rows = codes.len();
        let slots = rows.max(self.effort.capacity);
        let nulls = codes.iter().filter(|&&code| code == NULL_CODE).count();
        if nulls == rows {
            return Block::all_null(rows);
        }
        // NULL slots hold the least rank.
        let present = codes.iter().filter(|&&code| code != NULL_CODE).map(|&code| ranks[code as usize]);
        let least = if nulls == 0 { 0 } else { present.min().expect("not all are NULL") };
        let ranks = codes.iter().map(|&code| ranks.get(code as usize).copied().unwrap_or(least));
        let ranks: Vec<u32> = ranks.collect();
        let (min, max) = range_of(&ranks).expect("a block has rows");
        let mut bound = |rank: u32| {
            let value = &mut bounds[rank as usize];
            if value.is_null() {
                *value = string_value(self.interner.get(order[rank as usize]), self.ty);
            }
            value.clone()
        };
        let zone = Zone { min: bound(min), max: bound(max), nulls: nulls as u32 };
        let values = if min == max && nulls == 0 {
            Values::of_value(zone.min.clone())
        } else {
            let (max, codes) = (dictionary.len() as u32 - 1, ranks.iter().copied());
            let codes = match self.form {
                Form::Writable { .. } | Form::Cold(Compression::Auto | Compression::Packed) => {
                    Codes::tight(max, slots, codes)
                }
                _ => Codes::new(max, slots, codes),
            };
            let dictionary = dictionary.clone();
            Values::Text(TextValues::DictionaryCodes(DictionaryCodes { dictionary, codes }))
        };
        let validity = (nulls > 0).then(|| {
            let mut words = vec![u64::MAX; bitmap::words_for(slots)];
            for (slot, &code) in codes.iter().enumerate() {
                if code == NULL_CODE {
                    bitmap::set(&mut words, slot, false);
                }
            }
            words
        });
        let ascending = nulls == 0 && ranks.is_sorted_by(|one, next| one < next);
        Block::new(slots, values, validity.as_deref(), zone, ascending)
    }
}

impl ColumnBuilder for StringBuilder {
    fn append(&mut self, vector: &Vector, positions: Option<&[u16]>, rows: Range<usize>) -> Result<()> {
        if !self.hopeful {
            return self.append_plain(vector, positions, rows);
        }
        self.append_codes(vector, positions, rows);
        let (rows, distinct) = (self.codes.len(), self.interner.len());
        let hopeless = distinct > DICTIONARY_MAX
            || self.interner.text_bytes() > DICTIONARY_BYTES_MAX
            || (rows >= TRIAL_ROWS && distinct > rows / 2);
        if hopeless { self.write_out() } else { Ok(()) }
    }

    fn append_slice(&mut self, vector: &Vector, positions: &[u16], live: &[u64]) -> Result<()> {
        let mut start = 0;
        while start < positions.len() {
            let is_live = bitmap::get(live, start);
            let is_other = |slot: &usize| bitmap::get(live, *slot) != is_live;
            let end = (start..positions.len()).find(is_other).unwrap_or(positions.len());
            match (is_live, self.hopeful) {
                (true, _) => self.append(vector, Some(positions), start..end)?,
                (false, true) => self.codes.resize(self.codes.len() + end - start, FILL_CODE),
                (false, false) => (start..end).for_each(|_| self.plain.fill()),
            }
            start = end;
        }
        Ok(())
    }

    fn finish(&mut self) -> Vec<Block> {
        let blocks = if self.hopeful && self.interner.len() <= self.codes.len() / 4 {
            self.coded_blocks()
        } else {
            if self.hopeful {
                self.write_out().expect("a dictionary is smaller than a block may be");
            }
            self.plain.finish()
        };
        self.hopeful = self.form.has_dictionaries();
        blocks
    }

    fn take_sketch(&mut self) -> Sketch {
        let mut sketch = std::mem::take(&mut self.sketch);
        sketch.merge(&std::mem::take(&mut self.plain.sketch));
        sketch
    }

    fn bytes(&self) -> usize {
        self.interner.bytes() + self.codes.capacity() * 4 + self.plain.bytes()
    }
}

/// Gives the slots of a block that have no row the code of the row before, or of the first one.
fn repeat_beside(codes: &mut [u32]) {
    let Some(mut last) = codes.iter().copied().find(|code| *code != FILL_CODE) else { return };
    for code in codes {
        match *code {
            FILL_CODE => *code = last,
            own => last = own,
        }
    }
}

/// Blocks of strings without a dictionary.
struct PlainBlocks {
    ty: DataType,
    form: Form,
    effort: Effort,
    /// The symbol table of this row group, once a block is full; `Some(None)` if it does not pay.
    symbols: Option<Option<Arc<SymbolTable>>>,
    ends: Vec<u32>,
    bytes: Vec<u8>,
    validity: [u64; BLOCK_ROWS / 64],
    nulls: u32,
    /// Slots without a row, which are empty.
    fills: [u64; BLOCK_ROWS / 64],
    filled: u32,
    blocks: Vec<Block>,
    block_bytes: usize,
    sketch: Sketch,
}

impl PlainBlocks {
    fn new(ty: DataType, form: Form, effort: Effort) -> PlainBlocks {
        PlainBlocks {
            ty,
            form,
            effort,
            symbols: None,
            ends: Vec::new(),
            bytes: Vec::new(),
            validity: [u64::MAX; BLOCK_ROWS / 64],
            nulls: 0,
            fills: [0; BLOCK_ROWS / 64],
            filled: 0,
            blocks: Vec::new(),
            block_bytes: 0,
            sketch: Sketch::default(),
        }
    }

    fn push(&mut self, text: Option<&[u8]>) -> Result<()> {
        match text {
            Some(text) => {
                let bytes = self.bytes.len() + text.len();
                if u32::try_from(bytes).is_err() {
                    return Err(Error::resource("1024 adjacent strings of a column exceed 4 GiB"));
                }
                self.bytes.extend_from_slice(text);
            }
            None => {
                bitmap::set(&mut self.validity, self.ends.len(), false);
                self.nulls += 1;
            }
        }
        self.end();
        Ok(())
    }

    /// Adds a slot without a row.
    fn fill(&mut self) {
        bitmap::set(&mut self.fills, self.ends.len(), true);
        self.filled += 1;
        self.end();
    }

    /// Ends a slot, and with the last one the block.
    fn end(&mut self) {
        self.ends.push(self.bytes.len() as u32);
        if self.ends.len() == self.effort.block_rows {
            self.seal();
        }
    }

    fn seal(&mut self) {
        let rows = self.ends.len();
        let nulls = self.nulls;
        if self.effort.sketch {
            let hashes: Vec<u64> = self.texts().map(hash_bytes).collect();
            self.sketch.add_all(&hashes, |hash| hash);
        }
        let block = if (nulls + self.filled) as usize == rows {
            Block::all_null(rows)
        } else {
            let (min, max, ascending) = self.bounds();
            let constant = nulls == 0 && min == max;
            let min = string_value(min, self.ty);
            let max = if constant { min.clone() } else { string_value(max, self.ty) };
            let values = match constant {
                true => Values::of_value(min.clone()),
                false => Values::Text(self.encode()),
            };
            let validity = (nulls > 0).then(|| &self.validity[..bitmap::words_for(rows)]);
            Block::new(rows, values, validity, Zone { min, max, nulls }, ascending)
        };
        self.block_bytes += block.bytes();
        self.blocks.push(block);
        self.ends.clear();
        self.bytes.clear();
        (self.validity, self.nulls) = ([u64::MAX; BLOCK_ROWS / 64], 0);
        (self.fills, self.filled) = ([0; BLOCK_ROWS / 64], 0);
    }

    /// The strings of a block, compressed by symbols if that pays.
    fn encode(&mut self) -> TextValues {
        if self.symbols.is_none() {
            self.symbols = Some(self.train());
        }
        match self.symbols.as_ref().and_then(Option::as_ref) {
            None => TextValues::Concatenated(Concatenated(StringBytes::new(&self.ends, &self.bytes))),
            Some(table) => {
                let most = if self.is_forced() { u32::MAX as usize } else { self.bytes.len() / 4 * 3 };
                match Fsst::new(table.clone(), &self.ends, &self.bytes, most) {
                    Some(fsst) => TextValues::Fsst(Box::new(fsst)),
                    None => TextValues::Concatenated(Concatenated(StringBytes::new(&self.ends, &self.bytes))),
                }
            }
        }
    }

    /// A symbol table trained on the first block: if a setting asks for it, or if strings are long and it
    /// halves them.
    fn train(&self) -> Option<Arc<SymbolTable>> {
        let are_long = self.bytes.len() >= self.ends.len() * LONG && self.bytes.len() >= SAMPLE_BYTES;
        let may = self.form == Form::Cold(Compression::Auto) && are_long;
        if !(self.is_forced() || may) {
            return None;
        }
        let texts = self.texts().map(|text| &text[..text.len().min(SAMPLE_BYTES / SAMPLE_TEXTS)]);
        let step = (self.ends.len() / SAMPLE_TEXTS).max(1);
        let sample = texts.step_by(step);
        let table = SymbolTable::train(sample.clone());
        let (mut codes, mut bytes) = (Vec::new(), 0);
        for text in sample {
            table.compress(text, &mut codes);
            bytes += text.len();
        }
        (self.is_forced() || (bytes > 0 && codes.len() * 2 <= bytes)).then(|| Arc::new(table))
    }

    fn is_forced(&self) -> bool {
        self.form == Form::Cold(Compression::Fsst)
    }

    /// The strings of rows that are not NULL.
    fn texts(&self) -> impl Iterator<Item = &[u8]> + Clone {
        let mut start = 0;
        self.ends.iter().enumerate().filter_map(move |(slot, &end)| {
            let text = &self.bytes[start..end as usize];
            start = end as usize;
            let is_valid = self.nulls == 0 || bitmap::get(&self.validity, slot);
            let is_row = self.filled == 0 || !bitmap::get(&self.fills, slot);
            (is_valid && is_row).then_some(text)
        })
    }

    /// The least and the greatest string, and whether each is greater than the one before. At least one
    /// string must be that of a row, and not NULL.
    fn bounds(&self) -> (&[u8], &[u8], bool) {
        // PERF: strings mostly differ in their first bytes, which are compared as a number.
        let mut texts = self.texts().map(|text| (head(text), text));
        let first = texts.next().expect("not all are NULL");
        let (mut min, mut max, mut ascending) = (first, first, self.nulls + self.filled == 0);
        for text in texts {
            // An ascending text is greater than all before it; others are mostly between the bounds.
            if text > max {
                max = text;
            } else {
                ascending = false;
                if text < min {
                    min = text;
                }
            }
        }
        (min.1, max.1, ascending)
    }

    fn finish(&mut self) -> Vec<Block> {
        if !self.ends.is_empty() {
            self.seal();
        }
        self.block_bytes = 0;
        self.symbols = None;
        let mut blocks = std::mem::take(&mut self.blocks);
        let sharers = blocks.iter().filter(|block| block.has_codes_of_strings()).count();
        blocks.iter_mut().for_each(|block| block.share_symbols(sharers));
        blocks
    }

    fn bytes(&self) -> usize {
        self.ends.capacity() * 4 + self.bytes.capacity() + self.block_bytes
    }
}

/// A number that orders texts as their first eight bytes do.
fn head(text: &[u8]) -> u64 {
    match text.first_chunk() {
        Some(first) => u64::from_be_bytes(*first),
        None => text.iter().rev().fold(0, |word, &byte| word >> 8 | u64::from(byte) << 56),
    }
}

#[cfg(test)]
mod tests {
    use crate::tests::random::Random;
    use crate::{Compression, Table, TableOptions};
    use entasis_vector::{Chunk, DataType, Field, PhysicalType, Selection, Value, Vector};

    /// The encoding of the first block of a column of such texts.
    fn encoding(text: &dyn Fn(usize) -> String) -> &'static str {
        let options = TableOptions { compression: Compression::Auto, ..TableOptions::default() };
        let table = Table::with_options("t", vec![Field::new("a", DataType::Varchar)], options);
        let (mut appender, mut chunk) = (table.appender(), Chunk::new());
        for first in [0, 2000, 4000] {
            let texts: Vec<Value> = (first..first + 2000).map(|row| Value::Text(text(row).into())).collect();
            chunk.reset(2000);
            let group = chunk.push_group(Selection::ALL);
            chunk.push_column(Vector::from_values(PhysicalType::Str, &texts).expect("texts"), group);
            appender.append(&chunk, 0).expect("rows are fine");
        }
        table.commit(vec![appender.finish()]).expect("rows are fine");
        table.snapshot().row_group(0).expect("it has rows").block_info(0, 0).encoding
    }

    #[test]
    fn texts_that_are_long_and_halved_become_codes_of_symbols() {
        let mut random = Random(3);
        let mut letter = || char::from(b'0' + random.below(70) as u8);
        let letters: Vec<String> = (0..6000).map(|_| (0..30).map(|_| letter()).collect()).collect();
        assert_eq!(encoding(&|row| format!("carefully final {row:08}")), "FSST", "24 bytes");
        assert_eq!(encoding(&|row| format!("carefully fina {row:08}")), "strings", "23 bytes");
        assert_eq!(encoding(&|row| format!("{}{row:08}", "haggle ".repeat(10))), "FSST", "78 bytes");
        assert_eq!(encoding(&|row| letters[row].clone()), "strings", "letters that are not halved");
        assert_eq!(
            encoding(&|row| format!("carefully final deposits {}", row % 9)),
            "dictionary",
            "few texts"
        );
    }
}
