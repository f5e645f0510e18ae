//! Every encoding comes back as it was, over data for which it is made; and arbitrary bytes are refused, or
//! give a block that can be read.

use crate::block::masks::WORDS;
use crate::block::serialized::{Column, PHYSICAL, Shared, VERSION, read, write};
use crate::block::{
    Block, Codes, Fixed, FixedValues, FrameOfReference, Fsst, TextValues, Values, with_fixed,
};
use crate::table::tests::rows::column_chunk;
use crate::tests::random::Random;
use crate::value::Zone;
use crate::{Compression, Layout, Table, TableOptions};
use entasis_vector::{
    DataType, ErrorKind, Field, Interval, PhysicalType, StringHeap, StringView, Value, Vector,
};
use std::collections::BTreeSet;
use std::sync::Arc;

const ROWS: usize = 1400;
const ALL: [u64; WORDS] = [u64::MAX; WORDS];

/// Values of a type, and encodings that are forced on them.
pub(crate) struct Case {
    pub(crate) ty: DataType,
    values: Vec<Value>,
    pub(crate) compressions: &'static [Compression],
}

pub(crate) fn cases() -> Vec<Case> {
    use Compression as C;
    let mut random = Random(5);
    let numbers: &[C] = &[
        C::Auto,
        C::None,
        C::Flat,
        C::Plain,
        C::Packed,
        C::Sequence,
        C::Runs,
        C::Line,
        C::Patched,
        C::Multiples,
    ];
    let doubles: &[C] = &[C::Auto, C::None, C::Scaled, C::Singles, C::Split, C::Runs];
    let strings: &[C] = &[C::Auto, C::None, C::Fsst, C::Strings, C::Packed];
    let mut cases = Vec::new();
    let mut add = |ty, compressions, value: &mut dyn FnMut(usize) -> Value| {
        cases.push(Case { ty, values: (0..ROWS).map(value).collect(), compressions });
    };
    let integer = |v: i128| Value::Integer(v);
    for ty in [DataType::Int64, DataType::Int32, DataType::Int16, DataType::UInt64] {
        let (least, greatest) = ty.integer_range().expect("a type of integers");
        let clamp = move |v: i128| Value::Integer(v.clamp(least, greatest));
        add(ty, numbers, &mut |i| clamp(i as i128 * 3));
        add(ty, numbers, &mut |_| clamp(least + i128::from(random.next() >> 1)));
        add(ty, numbers, &mut |i| clamp((i * i % 300) as i128 * 100));
        add(ty, numbers, &mut |i| {
            if i % 200 == 7 { clamp(greatest - i as i128) } else { clamp((i * i % 90) as i128) }
        });
        add(ty, numbers, &mut |i| clamp((i / 4 + i * i % 7) as i128));
        add(ty, numbers, &mut |i| clamp((i / 97 % 5) as i128 * 1000));
        add(ty, numbers, &mut |i| if i % 2 == 0 { integer(least) } else { integer(greatest) });
    }
    add(DataType::Boolean, numbers, &mut |i| Value::Boolean(i % 3 == 0));
    add(DataType::Date, numbers, &mut |i| integer(i as i128 % 700));
    let wide = DataType::Decimal { precision: 38, scale: 2 };
    add(wide, numbers, &mut |i| integer(10_i128.pow(30) + (i * i % 50) as i128 * 1000));
    add(wide, numbers, &mut |i| integer(if i % 2 == 0 { -10_i128.pow(37) } else { 10_i128.pow(37) }));
    add(DataType::Float64, doubles, &mut |i| Value::Float((i * 7919 % 100_000) as f64 / 100.0));
    add(DataType::Float64, doubles, &mut |i| {
        Value::Float(if i % 100 == 9 { f64::NAN } else { i as f64 / 10.0 })
    });
    add(DataType::Float64, doubles, &mut |i| Value::Float(f64::from((i as f32).sqrt())));
    add(DataType::Float64, doubles, &mut |i| Value::Float((i / 50) as f64 / 8.0));
    add(DataType::Float64, doubles, &mut |i| Value::Float((i as f64).sin()));
    add(DataType::Float32, doubles, &mut |i| Value::Float(f64::from((i as f32).sqrt())));
    let interval =
        |i: usize| Value::Interval(Interval { months: i as i32 % 7, days: -(i as i32), micros: i as i64 });
    add(DataType::Interval, &[C::Auto], &mut |i| interval(i));
    let text = |text: String| Value::Text(text.into());
    add(DataType::Varchar, strings, &mut |i| text(format!("value {}", i % 5)));
    add(DataType::Varchar, strings, &mut |i| text(format!("https://example.com/Größe/{}", i * 7919 % 300)));
    add(DataType::Varchar, strings, &mut |i| text(format!("{i:x} und {} Größen ☃", i * 7919 % 1000)));
    add(DataType::Varchar, strings, &mut |i| {
        text(format!("{}{i}", "the quick brown foxes ".repeat(i % 9 + 3)))
    });
    add(DataType::Varchar, strings, &mut |i| text("x".repeat(i % 3 / 2)));
    add(DataType::Blob, strings, &mut |i| Value::Bytes(vec![i as u8; i % 40].into()));
    cases
}

/// A table of a key and one column, whose blocks are those of a builder, or are written in place.
pub(crate) fn table(
    case: &Case,
    compression: Compression,
    layout: Layout,
    nulls: fn(usize) -> bool,
) -> Arc<Table> {
    let key = Field { nullable: false, ..Field::new("k", DataType::Int64) };
    let layout_key = if layout == Layout::Insertion { Vec::new() } else { vec![0] };
    let options = TableOptions { layout, layout_key, ghost: 0.05, compression, ..TableOptions::default() };
    let table = Table::with_options("t", vec![key, Field::new("a", case.ty)], options);
    let value = |(i, value): (usize, &Value)| {
        vec![Value::Integer(i as i128), if nulls(i) { Value::Null } else { value.clone() }]
    };
    let rows: Vec<Vec<Value>> = case.values.iter().enumerate().map(value).collect();
    let mut appender = table.appender();
    for rows in rows.chunks(entasis_vector::CHUNK_ROWS) {
        appender.append(&column_chunk(rows, table.schema(), false), 0).expect("it fits");
    }
    table.commit(vec![appender.finish()]).expect("nobody else writes");
    table
}

/// Calls `each` with blocks of all cases, their columns and live bits.
fn each_block(mut each: impl FnMut(&Block, Column, &[u64; WORDS], &str)) {
    let some_nulls: [fn(usize) -> bool; 4] = [|_| false, |i| i % 7 == 3, |i| i / 300 % 2 == 0, |_| true];
    for case in cases() {
        for compression in case.compressions {
            for (number, nulls) in some_nulls.into_iter().enumerate() {
                for layout in [Layout::Insertion, Layout::EquiGhost] {
                    let table = table(&case, *compression, layout, nulls);
                    // From a table whose strings are written, one of them long.
                    if layout == Layout::EquiGhost && case.ty == DataType::Varchar {
                        let mut writer = table.write();
                        let row = writer.find(&[crate::Datum::Integer(40)]).expect("it is there");
                        writer
                            .update(row, &[(1, crate::Datum::Bytes(b"a string that was not there before"))]);
                    }
                    let snapshot = table.snapshot();
                    for slice in snapshot.row_groups().flat_map(|group| &group.slices) {
                        let what = format!("{:?}, {compression:?}, NULLs {number}, {layout:?}", case.ty);
                        each(slice.block(1), Column::of(case.ty), slice.live(), &what);
                    }
                }
            }
        }
    }
}

/// Floats have no codes: bytes that say so are refused, whatever the codes are.
#[test]
fn codes_of_floats_are_refused() {
    for ty in [DataType::Float32, DataType::Float64] {
        let codes = Codes::new(1, 64, (0..64).map(|slot| slot % 2));
        let values = Values::Fixed(FixedValues::FrameOfReference(FrameOfReference { base: 0, codes }));
        let zone = Zone { min: Value::Float(0.0), max: Value::Float(1.0), nulls: 0 };
        let mut bytes = Vec::new();
        write(&Block::new(64, values, None, zone, false), Column::of(ty), &ALL, &mut bytes);
        let refused = read(&bytes, Column::of(ty), &Shared::Nothing).expect_err("codes of floats");
        assert_eq!(refused.kind(), ErrorKind::Corruption, "{ty:?}");
    }
}

/// All slots of a block, as values that can be told apart.
fn values(block: &Block, column: Column, live: &[u64]) -> Vec<String> {
    let is_live = |slot: &usize| live[slot / 64] >> (slot % 64) & 1 != 0;
    (0..block.slots())
        .filter(is_live)
        .map(|slot| format!("{:?}", block.datum(slot, column.physical)))
        .collect()
}

fn again(block: &Block, column: Column, live: &[u64]) -> Block {
    let mut bytes = Vec::new();
    write(block, column, live, &mut bytes);
    read(&bytes, column, &block.shared()).expect("as it was written")
}

/// A short block is a sequence whatever its numbers are, also if the sequence would leave them further on.
#[test]
fn two_rows_come_back_however_far_apart_they_are() {
    let types = [DataType::Int8, DataType::Int32, DataType::Int64, DataType::UInt64, DataType::Timestamp];
    for ty in types {
        let (least, greatest) = ty.integer_range().expect("a type of integers");
        for values in [[least, greatest], [greatest, least], [least, least + 1], [greatest, 0]] {
            let table = Table::new("t", vec![Field::new("v", ty)]);
            let rows: Vec<Vec<Value>> = values.iter().map(|value| vec![Value::Integer(*value)]).collect();
            let mut appender = table.appender();
            appender.append(&column_chunk(&rows, table.schema(), false), 0).expect("rows of the table");
            let pieces = appender.finish().pieces;
            let block = &pieces[0].1.slices[0].blocks[0];
            assert!(
                matches!(block.values, Values::Fixed(FixedValues::Progression(_))),
                "{ty:?}: {}",
                block.values.name()
            );
            let mut bytes = Vec::new();
            write(block, Column::of(ty), &ALL, &mut bytes);
            let found = read(&bytes, Column::of(ty), &Shared::Nothing).expect("it was written");
            for (slot, value) in values.into_iter().enumerate() {
                assert_eq!(found.datum(slot, ty.physical()).value(ty), Value::Integer(value));
            }
        }
    }
}

#[test]
fn every_encoding_comes_back_as_it_was() {
    let mut seen = BTreeSet::new();
    each_block(|block, column, live, what| {
        let read = again(block, column, live);
        seen.insert((block.values.code(), block.values.name()));
        assert_eq!(read.values.name(), block.values.name(), "{what}");
        assert_eq!((read.slots(), read.ascending), (block.slots(), block.ascending), "{what}");
        assert_eq!(read.zone(), block.zone(), "{what}");
        assert_eq!(
            values(&read, column, live),
            values(block, column, live),
            "{what}, {}",
            block.values.name()
        );
        match &block.values {
            // Compact, as every copy is.
            Values::Text(views @ TextValues::Views(_)) => {
                assert_eq!(read.values.bytes(), views.copy(block.slots(), live).bytes(), "{what}")
            }
            // Without its share of the table of symbols.
            Values::Text(TextValues::Fsst(fsst)) => {
                assert_eq!(read.values.bytes(), size_of::<Fsst>() + fsst.code_bytes(), "{what}")
            }
            _ => assert_eq!(read.bytes(), block.bytes(), "{what}, {}", block.values.name()),
        }
        // Written again, it gives the same bytes.
        let (mut first, mut second) = (Vec::new(), Vec::new());
        write(block, column, live, &mut first);
        write(&read, column, live, &mut second);
        assert_eq!(first, second, "{what}");
    });
    let codes: BTreeSet<u8> = seen.iter().map(|(code, _)| *code).collect();
    assert!(codes.into_iter().eq(0..=14), "{seen:?}");
}

#[test]
fn what_is_shared_comes_back_as_it_was() {
    let mut seen = [0; 4];
    each_block(|block, column, live, what| {
        let shared = block.shared();
        let ty = if column.is_text { DataType::Varchar } else { DataType::Blob };
        let bytes = shared.to_bytes();
        let other = Shared::read(&bytes, ty).expect("as it was written");
        assert_eq!(other.to_bytes(), bytes, "{what}");
        seen[usize::from(bytes[0])] += 1;
        let mut bytes = Vec::new();
        write(block, column, live, &mut bytes);
        let read = read(&bytes, column, &other).expect("as it was written");
        assert_eq!(values(&read, column, live), values(block, column, live), "{what}");
    });
    assert!(seen.iter().all(|seen| *seen > 0), "{seen:?}");
}

#[test]
fn slots_that_are_not_live_are_blanked() {
    let texts = (0..900).map(|i| Value::Text(format!("a string of some length, {i}").into())).collect();
    let numbers = (0..900).map(|i| Value::Integer(i * 7919)).collect();
    for (ty, all) in [(DataType::Varchar, texts), (DataType::Int64, numbers)] {
        let case = Case { ty, values: all, compressions: &[] };
        let table = table(&case, Compression::Auto, Layout::EquiGhost, |_| false);
        let (column, before) = (Column::of(ty), table.snapshot());
        let slice = &before.row_groups().next().expect("it has rows").slices[0];
        let (live, block) = (slice.live(), slice.block(1));
        let mut bytes = Vec::new();
        write(block, column, live, &mut bytes);
        // A row goes into a ghost slot of the block that the snapshot shows, within its zone.
        let taken = before.datum(before.row_ids().next().expect("it has rows"), 1);
        table.write().insert(&[crate::Datum::Integer(-1), taken]);
        let mut after = Vec::new();
        write(block, column, live, &mut after);
        assert_eq!(bytes, after);
        assert_eq!(values(&again(block, column, live), column, live), values(block, column, live));
    }
}

/// Reads everything that can be read from a block.
fn read_all(block: &Block, column: Column) {
    (0..block.slots()).for_each(|slot| _ = format!("{:?}", block.datum(slot, column.physical)));
    with_fixed!(
        column.physical,
        T => {
            let mut out = vec![T::default(); block.slots()];
            block.decode_fixed(column.physical, 0, &mut out);
            assert_eq!(out.len(), block.slots());
            let _ = <T as Fixed>::IS_INTEGER;
        },
        {
            // If there are fewer strings than slots, they are in the live ones.
            let mut heap = StringHeap::new();
            let mut out = vec![StringView::default(); block.slots()];
            block.decode_views(0, &ALL, &mut out, &mut heap);
            if column.is_text {
                let texts = out.iter().map(StringView::as_bytes);
                texts.for_each(|text| _ = std::str::from_utf8(text).expect("it was looked at"));
            }
        }
    );
}

#[test]
fn damaged_bytes_are_refused_or_can_be_read() {
    let (mut random, mut refused, mut accepted, mut done) = (Random(11), 0u32, 0u32, BTreeSet::new());
    each_block(|block, column, live, _| {
        // A few blocks of each encoding and type.
        if !done.insert((block.values.code(), column.physical as u8, block.may_be_null(), random.below(3))) {
            return;
        }
        let (mut bytes, shared) = (Vec::new(), block.shared());
        write(block, column, live, &mut bytes);
        let mut attempt = |bytes: &[u8], column: Column| match read(bytes, column, &shared) {
            Ok(block) => {
                accepted += 1;
                read_all(&block, column);
            }
            Err(error) => {
                refused += 1;
                assert_eq!(error.kind(), ErrorKind::Corruption);
            }
        };
        for _ in 0..200 {
            let mut bytes = bytes.clone();
            // Most bytes with a meaning are at the beginning.
            let most = if random.below(2) == 0 { bytes.len().min(80) } else { bytes.len() };
            for _ in 0..1 + random.below(3) {
                let at = random.below(most as u64) as usize;
                bytes[at] = match random.below(4) {
                    0 => 0,
                    1 => 0xFF,
                    2 => bytes[at] ^ (1 << random.below(8)),
                    _ => random.next() as u8,
                };
            }
            if random.below(6) == 0 {
                bytes.truncate(random.below(bytes.len() as u64) as usize);
            }
            attempt(&bytes, column);
        }
        for physical in PHYSICAL {
            attempt(&bytes, Column { physical, is_text: false });
        }
        assert!(read(&bytes, column, &Shared::Nothing).is_ok() == matches!(shared, Shared::Nothing));
    });
    assert!(refused > 10_000 && accepted > 1000, "{refused} and {accepted}");
}

/// The entries of a dictionary, however it is written: if bytes are changed, they are still in order, or
/// refused.
#[test]
fn damaged_dictionaries_are_refused_or_in_order() {
    let mut texts: Vec<String> =
        (0..400).map(|i| format!("www.example.com/{}/{}", i % 20, i * 7919)).collect();
    texts.sort_unstable();
    let shared = |texts: &[String]| {
        let values: Vec<Value> = texts.iter().map(|text| Value::Text(text.as_str().into())).collect();
        let entries = Vector::from_values(PhysicalType::Str, &values).expect("strings");
        Shared::Dictionary(entasis_vector::Dictionary::new(entries, texts.len()))
    };
    let (mut random, mut refused, mut accepted) = (Random(7), 0, 0);
    for (texts, is_short) in [(&texts[..], true), (&texts[..30], false)] {
        let bytes = shared(texts).to_bytes();
        let length: usize = texts.iter().map(|text| text.len() + 4).sum();
        assert_eq!(bytes.len() < length / 2, is_short, "{} of {length}", bytes.len());
        for _ in 0..20_000 {
            let mut bytes = bytes.clone();
            for _ in 0..1 + random.below(2) {
                let at = random.below(bytes.len() as u64) as usize;
                bytes[at] = random.next() as u8;
            }
            if random.below(6) == 0 {
                bytes.truncate(random.below(bytes.len() as u64) as usize);
            }
            match Shared::read(&bytes, DataType::Varchar) {
                Ok(Shared::Dictionary(dictionary)) => {
                    let views = &dictionary.values().values::<StringView>()[..dictionary.len()];
                    assert!(views.is_sorted_by(|one, next| one.as_bytes() < next.as_bytes()));
                    accepted += 1;
                }
                Ok(_) => {}
                Err(error) => {
                    refused += 1;
                    assert_eq!(error.kind(), ErrorKind::Corruption);
                }
            }
        }
    }
    assert!(refused > 10_000 && accepted > 100, "{refused} and {accepted}");
}

#[test]
fn random_bytes_are_no_block() {
    let mut random = Random(3);
    let ends = Vector::from_values(PhysicalType::Str, &[Value::Text("a".into()), Value::Text("b".into())]);
    let dictionary = entasis_vector::Dictionary::new(ends.expect("strings"), 2);
    for _ in 0..200_000 {
        let mut bytes: Vec<u8> = (0..random.below(120)).map(|_| random.next() as u8 & 0x0F).collect();
        let physical = random.below(PHYSICAL.len() as u64) as u8;
        // They begin like blocks, so that the reader does not stop at once.
        let head = [
            VERSION,
            random.below(15) as u8,
            random.below(4) as u8,
            physical,
            random.below(40) as u8,
            0,
            0,
            0,
        ];
        bytes.iter_mut().zip(head).for_each(|(byte, head)| *byte = head);
        let column = Column { physical: PHYSICAL[usize::from(physical)], is_text: random.below(2) == 0 };
        if let Ok(block) = read(&bytes, column, &Shared::Dictionary(dictionary.clone())) {
            read_all(&block, column);
        }
        for ty in [DataType::Varchar, DataType::Blob] {
            _ = Shared::read(&bytes, ty).map(|shared| shared.to_bytes());
        }
    }
}

/// Long strings take less in a file than in memory, and come back as they were; others are left alone.
#[test]
fn strings_are_compressed_where_it_pays() {
    let mut random = Random(5);
    let mut noise = |_| -> String { (0..24).map(|_| char::from(b'!' + random.below(90) as u8)).collect() };
    let words = |i: usize| format!("the {} of {} sleeps quickly above {}", i % 7, i % 13, i * 31);
    for (texts, pays) in [((0..900).map(words).collect(), true), ((0..900).map(&mut noise).collect(), false)]
    {
        let texts: Vec<String> = texts;
        let values = texts.iter().map(|text| Value::Text(text.as_str().into())).collect();
        let case = Case { ty: DataType::Varchar, values, compressions: &[] };
        let table = table(&case, Compression::Strings, Layout::Insertion, |_| false);
        let (column, snapshot) = (Column::of(DataType::Varchar), table.snapshot());
        let slice = &snapshot.row_groups().next().expect("it has rows").slices[0];
        let (live, block) = (slice.live(), slice.block(1));
        let mut bytes = Vec::new();
        write(block, column, live, &mut bytes);
        let length: usize = texts.iter().map(String::len).sum();
        assert_eq!(bytes.len() < length * 2 / 3, pays, "{} of {length}", bytes.len());
        assert_eq!(
            self::values(&again(block, column, live), column, live),
            self::values(block, column, live)
        );
    }
}
