//! One thread writes the ghost slots of a block while others read it in every way that a scan does: what they
//! find in live slots is what was there before.
//!
//! This is the shipped path, vector loads included. `make races` runs it under ThreadSanitizer, which is told
//! the races that decision 27 allows (`tests/races.txt`) and fails on any other.

use crate::block::{
    Block, Codes, DictionaryCodes, Fixed, FixedValues, Flat, FrameOfReference, TextValues, Values, Views,
    with_fixed,
};
use crate::tests::random::Random;
use crate::value::{Datum, Zone};
use crate::{BLOCK_ROWS, CodeSet};
use entasis_vector::{
    DataType, Dictionary, Native, PhysicalType, StringHeap, StringView, Value, Vector, bitmap,
};
use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicBool, Ordering};

const WORDS: usize = BLOCK_ROWS / 64;
/// Rounds of the writer, each over all ghost slots.
const ROUNDS: u64 = if cfg!(miri) { 2 } else { 200 };

/// Three slots in four, without a pattern, are live.
fn live() -> [u64; WORDS] {
    let mut random = Random(7);
    std::array::from_fn(|_| random.next() | random.next())
}

/// Runs `read` in two threads, again and again, while a third one stores what `datum` gives to ghost slots.
fn beside_a_writer<'a>(
    block: &Block,
    physical: PhysicalType,
    datum: impl Fn(u64) -> Datum<'a> + Sync,
    read: impl Fn() + Sync,
) {
    let (live, is_done) = (live(), AtomicBool::new(false));
    std::thread::scope(|scope| {
        let reader = || {
            while !is_done.load(Ordering::Relaxed) {
                read();
            }
            read();
        };
        let readers = [(); 2].map(|()| scope.spawn(reader));
        let mut random = Random(11);
        for round in 0..ROUNDS {
            for slot in (0..BLOCK_ROWS).filter(|&slot| !bitmap::get(&live, slot)) {
                let datum = datum(random.next());
                if block.admits(slot, datum) {
                    block.store_ghost(slot, datum, physical, round as u32);
                }
            }
        }
        is_done.store(true, Ordering::Relaxed);
        // ThreadSanitizer sees joins of threads, but not the wait at the end of a scope.
        readers.into_iter().for_each(|reader| reader.join().expect("what was read was there"));
    });
}

/// A block of integers of a range, in a given encoding.
fn check_integers(
    values: impl Fn(&[i128]) -> FixedValues,
    physical: PhysicalType,
    range: RangeInclusive<i128>,
) {
    let (low, high) = (*range.start(), *range.end());
    let span = (high - low) as u64;
    let (mut random, live) = (Random(5), live());
    let rows: Vec<i128> = (0..BLOCK_ROWS).map(|_| low + i128::from(random.below(span))).collect();
    let zone = Zone { min: Value::Integer(low), max: Value::Integer(high), nulls: 0 };
    let block = Block::new(BLOCK_ROWS, Values::Fixed(values(&rows)), None, zone, false);
    let (least, most) = (low + i128::from(span / 4), high - i128::from(span / 4));
    let expected: [u64; WORDS] = std::array::from_fn(|word| {
        let is_found = |bit: &usize| (least..=most).contains(&rows[word * 64 + bit]);
        (0..64).filter(is_found).fold(0, |mask, bit| mask | 1 << bit) & live[word]
    });
    let slots = || (0..BLOCK_ROWS).filter(|&slot| bitmap::get(&live, slot));
    let read = || {
        with_fixed!(
            physical,
            T => {
                let mut out = vec![T::default(); BLOCK_ROWS - 3];
                block.decode_fixed::<T>(physical, 3, &mut out);
                for slot in slots().filter(|&slot| slot >= 3) {
                    assert!(out[slot - 3].datum().is_same(Datum::Integer(rows[slot])), "slot {slot}");
                }
            },
            unreachable!("they are integers")
        );
        let mut masks = live;
        block.narrow_within(least, most, &mut masks, physical);
        assert_eq!(masks, expected);
        slots().for_each(|slot| {
            assert!(block.datum(slot, physical).is_same(Datum::Integer(rows[slot])), "slot {slot}");
        });
    };
    beside_a_writer(&block, physical, |n| Datum::Integer(low + i128::from(n % span)), read);
}

#[test]
fn live_slots_of_integers_are_read_while_ghosts_are_written() {
    fn flat<T: Fixed + Native>(rows: &[i128]) -> FixedValues {
        let values: Vec<T> = rows.iter().map(|&v| T::of_datum(Datum::Integer(v))).collect();
        FixedValues::Flat(Flat::new(&values, values.len()))
    }
    check_integers(flat::<i32>, PhysicalType::I32, -1_000_000..=1_000_000);
    check_integers(flat::<i64>, PhysicalType::I64, -(1 << 60)..=1 << 60);
    check_integers(flat::<i128>, PhysicalType::I128, -(1 << 62)..=1 << 62);
    for bits in [8, 16, 32] {
        let most = (1i128 << bits) - 1;
        let codes = |rows: &[i128]| {
            let codes = Codes::new(most as u32, BLOCK_ROWS, rows.iter().map(|v| (v - 100) as u32));
            FixedValues::FrameOfReference(FrameOfReference { base: 100, codes })
        };
        check_integers(codes, PhysicalType::I64, 100..=100 + most);
    }
}

#[test]
fn live_slots_of_floats_are_read_while_ghosts_are_written() {
    let live = live();
    let rows: Vec<f64> = (0..BLOCK_ROWS).map(|slot| slot as f64 / 8.0).collect();
    let zone = Zone { min: Value::Float(-1e9), max: Value::Float(1e9), nulls: 0 };
    let values = Values::Fixed(FixedValues::Flat(Flat::new(&rows, rows.len())));
    let block = Block::new(BLOCK_ROWS, values, None, zone, false);
    let read = || {
        let mut out = vec![0.0; BLOCK_ROWS];
        block.decode_fixed::<f64>(PhysicalType::F64, 0, &mut out);
        assert!((0..BLOCK_ROWS).all(|slot| !bitmap::get(&live, slot) || out[slot] == rows[slot]));
    };
    beside_a_writer(&block, PhysicalType::F64, |n| Datum::Float((n % 1000) as f64 / 3.0), read);
}

#[test]
fn live_slots_of_strings_are_read_while_ghosts_are_written() {
    let live = live();
    let texts: Vec<String> = (0..300).map(|i| format!("{i:03}{}", " and so on".repeat(i % 3))).collect();
    let text = |n: u64| texts[n as usize % texts.len()].as_bytes();
    let last = texts.last().expect("there are some");
    let bound = |text: &str| Value::Text(text.into());
    let zone = || Zone { min: bound(&texts[0]), max: bound(last), nulls: 0 };
    let row = |slot: usize| text(slot as u64 * 7919);
    let views = Views::new(BLOCK_ROWS, BLOCK_ROWS, row);
    let entries: Vec<Value> = texts.iter().map(|text| bound(text)).collect();
    let entries = Vector::from_values(PhysicalType::Str, &entries).expect("they are strings");
    let dictionary = Dictionary::new(entries, texts.len());
    let code = |slot: usize| (slot * 7919 % texts.len()) as u32;
    let codes = Codes::new(texts.len() as u32, BLOCK_ROWS, (0..BLOCK_ROWS).map(code));
    let every_third = CodeSet::new(dictionary.clone(), (0..texts.len()).map(|i| i % 3 == 0).collect(), false);
    let codes = TextValues::DictionaryCodes(DictionaryCodes { dictionary, codes });
    for values in [TextValues::Views(views), codes] {
        let block = Block::new(BLOCK_ROWS, Values::Text(values), None, zone(), false);
        let has_codes = block.has_dictionary();
        let read = || {
            let (mut out, mut heap) = (vec![StringView::default(); BLOCK_ROWS], StringHeap::new());
            block.decode_views(0, &live, &mut out, &mut heap);
            for slot in (0..BLOCK_ROWS).filter(|&slot| bitmap::get(&live, slot)) {
                assert_eq!(out[slot].as_bytes(), row(slot));
                assert!(block.datum(slot, PhysicalType::Str).is_same(Datum::Bytes(row(slot))));
            }
            if has_codes {
                let mut masks = live;
                block.narrow_codes(&every_third, &mut masks);
                let is_found = |slot: usize| bitmap::get(&live, slot) && code(slot) % 3 == 0;
                assert!((0..BLOCK_ROWS).all(|slot| bitmap::get(&masks, slot) == is_found(slot)));
            }
        };
        beside_a_writer(&block, DataType::Varchar.physical(), |n| Datum::Bytes(text(n)), read);
    }
}
