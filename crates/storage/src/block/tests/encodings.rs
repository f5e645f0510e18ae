//! The recipe for an encoding (`CONTRIBUTING.md`), followed for each one of the lists: a block of its example
//! is the same in every way to read it as the plain values, and comes back from its bytes. And what makes the
//! recipe short: an encoding is named in three files of the product. Data that is made to break encodings is
//! in `conformance`.

use crate::block::masks::{WORDS, first_slots};
use crate::block::serialized::{Column, read, write};
use crate::block::{Block, Example, Fixed, FixedValues, Recipe, TextValues, Values, examples, with_fixed};
use crate::tests::random::Random;
use crate::{BLOCK_ROWS, Datum, Table, TableOptions};
use entasis_vector::{DataType, Field, StringHeap, StringView, Value};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Rows of a block and of one that is not full.
const ROWS: usize = BLOCK_ROWS + 300;
/// The files that name an encoding: its own, the lists, and the compressions of SQL.
const MOST_FILES: usize = 3;

/// Calls `check` with the blocks of an example, and their values.
fn blocks_of(example: &Example, mut check: impl FnMut(&Block, &[Value])) {
    let options = TableOptions { compression: example.compression, ..TableOptions::default() };
    let table = Table::with_options("t", vec![Field::new("a", example.ty)], options);
    let rows: Vec<Vec<Value>> = (0..ROWS).map(|row| vec![(example.value)(row)]).collect();
    crate::table::tests::rows::insert(&table, &rows, false);
    let snapshot = table.snapshot();
    let group = snapshot.row_group(0).expect("it has rows");
    let mut first = 0;
    for slice in &group.slices {
        let values: Vec<Value> = rows[first..first + slice.rows()].iter().map(|row| row[0].clone()).collect();
        first += values.len();
        check(slice.block(0), &values);
    }
    assert_eq!(first, ROWS);
}

/// Compares a block with plain values, in every way in which a block is read by itself.
fn check(block: &Block, ty: DataType, values: &[Value], what: &str) {
    let physical = ty.physical();
    let is_same = |found: Datum<'_>, slot: usize| {
        let expected = Datum::of_value(&values[slot], ty);
        assert!(found.is_same(expected), "{what}: slot {slot} is {found:?}, not {expected:?}");
    };
    (0..values.len()).for_each(|slot| is_same(block.datum(slot, physical), slot));
    for from in [0, 1, values.len() / 2, values.len() - 1] {
        with_fixed!(
            physical,
            T => {
                let mut out = vec![T::default(); values.len() - from];
                block.decode_fixed(physical, from, &mut out);
                out.into_iter().enumerate().for_each(|(i, value)| is_same(value.datum(), from + i));
            },
            {
                let mut heap = StringHeap::new();
                let mut out = vec![StringView::default(); values.len() - from];
                block.decode_views(from, &[u64::MAX; WORDS], &mut out, &mut heap);
                out.iter().enumerate().for_each(|(i, view)| is_same(Datum::Bytes(view.as_bytes()), from + i));
            }
        );
    }
    let mut random = Random(7);
    let slots: Vec<usize> = (0..300).map(|_| random.below(values.len() as u64) as usize).collect();
    let sources: Vec<Option<(&Block, usize)>> = slots.iter().map(|&slot| Some((block, slot))).collect();
    let gathered = Block::gather(&sources, ty);
    slots.iter().enumerate().for_each(|(i, &slot)| is_same(gathered.datum(i, physical), slot));
    for number in (0..values.len()).step_by(97) {
        let mut masks = first_slots(values.len())[..values.len().div_ceil(64)].to_vec();
        block.narrow(Datum::of_value(&values[number], ty), &mut masks, physical);
        check_masks(&masks, values, |value| value == &values[number], what);
        let Some(low) = values[number].ordinal() else { continue };
        let mut masks = first_slots(values.len())[..values.len().div_ceil(64)].to_vec();
        block.narrow_within(low, low + 70, &mut masks, physical);
        let is_within = |value: &Value| value.ordinal().is_some_and(|v| (low..=low + 70).contains(&v));
        check_masks(&masks, values, is_within, what);
    }
}

fn check_masks(masks: &[u64], values: &[Value], holds: impl Fn(&Value) -> bool, what: &str) {
    for (slot, value) in values.iter().enumerate() {
        assert_eq!(masks[slot / 64] >> (slot % 64) & 1 != 0, holds(value), "{what}: slot {slot}, {value:?}");
    }
}

/// The block that has the bytes of this one.
fn again(block: &Block, ty: DataType) -> Block {
    let mut bytes = Vec::new();
    write(block, Column::of(ty), &[u64::MAX; WORDS], &mut bytes);
    read(&bytes, Column::of(ty), &block.shared()).expect("as it was written")
}

#[test]
fn every_encoding_of_the_lists_holds_its_example() {
    let mut seen = BTreeSet::new();
    for example in examples() {
        blocks_of(example, |block, values| {
            let what = example.encoding;
            assert_eq!(block.values.name(), what, "made by {:?}", example.compression);
            assert!(example.nanoseconds > 0.0);
            check(block, example.ty, values, what);
            let read = again(block, example.ty);
            assert_eq!(read.values.name(), what, "as it is read");
            check(&read, example.ty, values, what);
            // And as strings that are written, which no builder makes.
            let warm = block.copy(0, &[u64::MAX; WORDS], example.ty.physical());
            for block in [&warm, &again(&warm, example.ty)] {
                check(block, example.ty, values, &format!("{what}, to be written"));
            }
            seen.extend([block, &warm].map(|block| (is_text(block), block.values.code())));
        });
    }
    let numbers = FixedValues::ALL.iter().map(|(code, _)| (false, *code));
    // A constant is an example of a number.
    let texts = TextValues::ALL.iter().map(|(code, _)| (true, *code)).filter(|(_, code)| *code != 0);
    let all: BTreeSet<(bool, u8)> = numbers.chain(texts).collect();
    assert_eq!(seen, all, "an encoding has no example, or one that does not lead to it");
}

fn is_text(block: &Block) -> bool {
    matches!(block.values, Values::Text(_))
}

#[test]
fn numbers_and_names_mean_one_encoding() {
    let all: Vec<(u8, &str)> = FixedValues::ALL.iter().chain(TextValues::ALL).copied().collect();
    let codes: BTreeSet<u8> = all.iter().map(|(code, _)| *code).collect();
    let names: BTreeSet<&str> = all.iter().map(|(_, name)| *name).collect();
    // Constants are in both lists.
    assert_eq!((codes.len(), names.len()), (all.len() - 1, all.len() - 1), "{all:?}");
    assert!(codes.iter().copied().eq(0..codes.len() as u8), "{codes:?}");
    let forced: Vec<_> = Recipe::TRIED.iter().map(|(_, compression)| compression.name()).collect();
    let distinct: BTreeSet<_> = forced.iter().collect();
    assert_eq!(distinct.len(), forced.len(), "{forced:?}");
}

/// The sources below a folder that are part of the product.
fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path()) {
        let name = entry.file_stem().and_then(|name| name.to_str()).unwrap_or_default();
        if entry.is_dir() && name != "tests" {
            sources(&entry, found);
        } else if entry.extension().is_some_and(|extension| extension == "rs")
            && name != "tests"
            && !name.ends_with("_tests")
        {
            found.push(entry);
        }
    }
}

/// The code of a source, without comments and tests, as words.
fn words(source: &str) -> BTreeSet<String> {
    let product = source.split("#[cfg(test)]\nmod tests").next().unwrap_or_default();
    let code = product.lines().map(|line| line.split("//").next().unwrap_or_default());
    let is_word = |c: char| c.is_alphanumeric() || c == '_' || c == ':';
    code.flat_map(|line| line.split(move |c| !is_word(c))).map(str::to_owned).collect()
}

#[test]
fn an_encoding_is_named_in_few_files() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the folder of all crates");
    let mut files = Vec::new();
    for entry in fs::read_dir(crates).expect("a folder").map(|entry| entry.expect("an entry").path()) {
        sources(&entry.join("src"), &mut files);
    }
    let own = crates.join("storage/src");
    let read = |file: &PathBuf| (file.clone(), words(&fs::read_to_string(file).expect("a source")));
    let sources: Vec<(PathBuf, BTreeSet<String>)> = files.iter().map(read).collect();
    for (name, compression) in Recipe::TRIED {
        // Packed codes are what all others are compared with, and hot blocks have plain ones.
        if *name == "FrameOfReference" {
            continue;
        }
        let compression = format!("Compression::{compression:?}");
        let is_named = |(file, words): &&(PathBuf, BTreeSet<String>)| {
            let is_it = |word: &String| {
                // Other crates may call something else so.
                let is_type = file.starts_with(&own) && word.split("::").any(|part| part == *name);
                is_type || word.ends_with(&compression)
            };
            words.iter().any(is_it)
        };
        let named: Vec<&Path> = sources.iter().filter(is_named).map(|(file, _)| file.as_path()).collect();
        // Its own, at least, and the lists.
        assert!((2..=MOST_FILES).contains(&named.len()), "{name} is named in {named:?}");
    }
}
