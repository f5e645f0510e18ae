//! Rows that were written are read back: all types, with and without NULLs, strings of every length, from
//! columns and from tuples, over several segments. The twin is the rows themselves, value by value.

use super::file::TempFile;
use super::rows::{Blocks, RowFormat};
use crate::context::QueryContext;
use crate::exec::materialized::{Materialized, SEGMENT_ROWS};
use crate::exec::testing::Chance;
use crate::exec::tuple::TupleLayout;
use crate::exec::tuple::tests::{buffer_of, column, validity_of, value};
use crate::settings::Settings;
use entasis_vector::expr::ColumnMeta;
use entasis_vector::{
    Buffer, CHUNK_ROWS, Chunk, ColumnId, DataType, ErrorKind, PhysicalType, Selection, StringHeap,
    StringView, Vector,
};
use std::sync::Arc;

/// A value's bits, or a string's bytes; `None` is NULL.
fn bytes_of(vector: &Vector, at: usize) -> Option<Vec<u8>> {
    let bits = |bytes: &[u8]| bytes.to_vec();
    vector.is_valid(at).then(|| match (vector.physical(), vector.physical().width()) {
        (PhysicalType::Str, _) => vector.values::<StringView>()[at].as_bytes().to_vec(),
        (_, 1) => bits(&vector.values::<u8>()[at].to_le_bytes()),
        (_, 2) => bits(&vector.values::<u16>()[at].to_le_bytes()),
        (_, 4) => bits(&vector.values::<u32>()[at].to_le_bytes()),
        (_, 8) => bits(&vector.values::<u64>()[at].to_le_bytes()),
        _ => bits(&vector.values::<i128>()[at].to_le_bytes()),
    })
}

/// Random rows.
fn rows_of(metas: &[ColumnMeta], count: usize, chance: &mut Chance) -> Materialized {
    let mut rows = Materialized::new(metas);
    let mut done = 0;
    while done < count {
        let part = CHUNK_ROWS.min(count - done);
        let mut heap = StringHeap::new();
        let mut chunk = Chunk::new();
        chunk.reset(part);
        let group = chunk.push_group(Selection::ALL);
        for meta in metas {
            let values: Vec<Option<u128>> = (0..part).map(|_| value(meta, chance, &mut heap)).collect();
            let validity = validity_of(&values).map(|words| Arc::new(Buffer::from_slice(&words)));
            let buffer = Arc::new(buffer_of(meta.physical.width(), &values));
            chunk.push_column(Vector::from_buffer(meta.physical, buffer, validity), group);
        }
        rows.append(&chunk, &(0..metas.len()).collect::<Vec<_>>(), None);
        done += part;
    }
    rows
}

fn write(format: &RowFormat, rows: &Materialized) -> Vec<u8> {
    let mut bytes = Vec::new();
    for segment in 0..rows.segments() {
        for offsets in RowFormat::blocks(rows.segment_rows(segment)) {
            format.write(rows, segment, offsets, &mut bytes).unwrap();
        }
    }
    bytes
}

fn check(metas: &[ColumnMeta], rows: &Materialized, chunk_rows: usize, chance: &mut Chance) {
    let format = RowFormat::new(metas);
    let context = QueryContext::default();
    let file = TempFile::new(&context).unwrap();
    // Other pieces before and after.
    file.add(&[7; 100][..chance.below(100) as usize]).unwrap();
    let piece = write(&format, rows);
    let extent = file.add(&piece).unwrap();
    file.add(&[9; 50]).unwrap();
    let mut blocks = Blocks::new(&format, chunk_rows);
    let mut chunk = Chunk::new();
    assert!(!blocks.next(&format, &mut chunk).unwrap());
    for _ in 0..2 {
        file.read(extent, blocks.next_piece()).unwrap();
        let mut ids = rows.ids();
        let mut expected: Vec<Vector> = metas.iter().map(|meta| Vector::new(meta.physical)).collect();
        while blocks.next(&format, &mut chunk).unwrap() {
            assert!(chunk.len() <= chunk_rows && chunk.columns().len() == metas.len());
            let own: Vec<u32> = ids.by_ref().take(chunk.len()).collect();
            assert_eq!(own.len(), chunk.len());
            for (column, expected) in expected.iter_mut().enumerate() {
                rows.gather(column, &own, expected);
                for (row, id) in own.iter().enumerate() {
                    let found = bytes_of(chunk.vector(column), row);
                    assert_eq!(found, bytes_of(expected, row), "row {id} of {:?}", metas[column]);
                }
            }
        }
        assert_eq!(ids.next(), None);
    }
    drop(file);
    assert_eq!(context.temp.used(), 0);
}

#[test]
fn rows_come_back() {
    let mut chance = Chance(0x5eed_0031);
    for round in 0..120 {
        let count = chance.below(if round % 10 == 0 { 40 } else { 10 }) as usize;
        let metas: Vec<ColumnMeta> = (0..count).map(|_| column(&mut chance)).collect();
        let rows = [0, 1, 3, 200, 2049, 8193, 9000][chance.below(7) as usize];
        let rows = if count > 10 { rows.min(2049) } else { rows };
        let mut rows = rows_of(&metas, rows, &mut chance);
        let is_key: Vec<bool> = (0..count).map(|i| i % 3 == 0).collect();
        if round % 2 == 1
            && rows.rows() > 0
            && let Some(layout) = TupleLayout::new(&metas, &is_key)
        {
            rows.compress(0, &Arc::new(layout));
            assert!(rows.compressed().0 > 0);
        }
        check(&metas, &rows, [1, 3, 1000, CHUNK_ROWS][round % 4], &mut chance);
    }
}

#[test]
fn rows_of_every_type_come_back() {
    let mut chance = Chance(0x5eed_0032);
    for nullable in [false, true] {
        let meta = |&ty: &DataType| {
            let meta = ColumnMeta::new(ColumnId(0), ty);
            ColumnMeta { nullable: nullable || ty == DataType::Null, ..meta }
        };
        let metas: Vec<ColumnMeta> = DataType::ALL.iter().map(meta).collect();
        let rows = rows_of(&metas, 3000, &mut chance);
        check(&metas, &rows, CHUNK_ROWS, &mut chance);
    }
}

#[test]
fn segments_and_wide_rows_come_back() {
    let mut chance = Chance(0x5eed_0033);
    let metas = [DataType::Int64, DataType::Varchar].map(|ty| ColumnMeta::new(ColumnId(0), ty));
    let mut rows = rows_of(&metas, SEGMENT_ROWS + 5000, &mut chance);
    rows.absorb(rows_of(&metas, 77, &mut chance));
    check(&metas, &rows, CHUNK_ROWS, &mut chance);
    // More columns than one tuple has.
    let metas: Vec<ColumnMeta> = (0..600).map(|_| column(&mut chance)).collect();
    check(&metas, &rows_of(&metas, 40, &mut chance), CHUNK_ROWS, &mut chance);
}

#[test]
fn a_segment_that_is_forgotten_has_no_memory() {
    let mut chance = Chance(0x5eed_0034);
    let metas = [DataType::Int64, DataType::Int32].map(|ty| ColumnMeta::new(ColumnId(0), ty));
    let mut rows = rows_of(&metas, 2 * SEGMENT_ROWS, &mut chance);
    rows.compress(1, &Arc::new(TupleLayout::new(&metas, &[true, false]).unwrap()));
    let before = rows.bytes();
    rows.forget(0);
    let after = rows.bytes();
    assert!(after < before - SEGMENT_ROWS * 8, "{before} bytes, then {after}");
    let mut out = Vector::new(PhysicalType::I32);
    rows.read(1, 1, 100, 50, &mut out);
    rows.forget(1);
    assert!(rows.bytes() < 1000, "{} bytes", rows.bytes());
}

#[test]
fn bytes_that_are_no_rows_are_an_error() {
    let mut chance = Chance(0x5eed_0035);
    let metas = [DataType::Int64, DataType::Varchar].map(|ty| ColumnMeta::new(ColumnId(0), ty));
    let format = RowFormat::new(&metas);
    let piece = write(&format, &rows_of(&metas, 500, &mut chance));
    for length in [1, 11, 20, piece.len() / 2, piece.len() - 1] {
        let mut blocks = Blocks::new(&format, CHUNK_ROWS);
        blocks.next_piece().extend_from_slice(&piece[..length]);
        let error = blocks.next(&format, &mut Chunk::new()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corruption, "{length} of {} bytes", piece.len());
    }
}

#[test]
fn files_say_what_is_wrong_and_leave_nothing() {
    let directory = std::env::temp_dir().join(format!("entasis-test-{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    let settings = Settings {
        temp_directory: directory.display().to_string().into(),
        max_temp_directory_size: 1000,
        ..Settings::default()
    };
    let context = QueryContext { settings: Arc::new(settings.clone()), ..QueryContext::default() };
    let (first, second) = (TempFile::new(&context).unwrap(), TempFile::new(&context).unwrap());
    first.add(&[1; 600]).unwrap();
    let error = second.add(&[2; 600]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Resource);
    assert!(error.message().contains(&*settings.temp_directory), "{error}");
    drop(second);
    // What the second file requested is free again.
    first.add(&[3; 400]).unwrap();
    drop(first);
    assert_eq!(context.temp.used(), 0);
    assert_eq!(std::fs::read_dir(&directory).unwrap().count(), 0);
    std::fs::remove_dir(&directory).unwrap();
    let error = TempFile::new(&context).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Io);
    assert!(error.message().contains(&*settings.temp_directory) && error.hint().is_some(), "{error}");
}

/// Rows kept with little memory, by two workers whose morsels alternate, are those that were pushed, in the
/// order of the morsels, as often as they are read.
#[test]
fn kept_rows_are_read_in_their_order() {
    use super::kept::{Keeper, PartReader};
    use crate::exec::sink::ResultSink;
    use crate::memory::MemoryBudget;
    let types = [DataType::Int64, DataType::Varchar, DataType::Decimal { precision: 30, scale: 2 }];
    let metas: Vec<ColumnMeta> =
        types.iter().enumerate().map(|(id, &ty)| ColumnMeta::new(ColumnId(id as u32), ty)).collect();
    for (limit, spills) in [(usize::MAX, false), (3 << 20, true), (200 << 10, true)] {
        let memory = Arc::new(MemoryBudget::new(limit));
        let context = QueryContext { memory: memory.clone(), ..QueryContext::default() };
        let keeper = Keeper::new(&context, types.to_vec());
        let mut chance = Chance(7);
        let rows = rows_of(&metas, 60_000, &mut chance);
        let mut workers = [(); 2].map(|()| keeper.worker().unwrap());
        for (morsel, segment_start) in (0..rows.rows()).step_by(5_000).enumerate() {
            let worker = &mut workers[morsel % 2];
            worker.start_morsel(morsel as u64);
            for start in (segment_start..segment_start + 5_000).step_by(1_000) {
                let mut chunk = Chunk::new();
                chunk.reset(1_000);
                let group = chunk.push_group(Selection::ALL);
                for (column, meta) in metas.iter().enumerate() {
                    let mut vector = Vector::new(meta.physical);
                    rows.read(column, 0, start, 1_000, &mut vector);
                    chunk.push_column(vector, group);
                }
                worker.push(&chunk).unwrap();
            }
        }
        workers.into_iter().for_each(|mut worker| worker.finish().unwrap());
        let kept = keeper.into_rows();
        assert_eq!((kept.rows(), kept.has_pieces()), (60_000, spills));
        assert!(memory.used() <= limit - limit / 4, "others have a quarter");
        for _ in 0..2 {
            let (mut reader, mut chunk, mut seen) = (PartReader::default(), Chunk::new(), 0);
            for part in 0..kept.parts() {
                reader.begin(&kept, part).unwrap();
                while reader.next(&kept, &mut chunk).unwrap() {
                    for (column, meta) in metas.iter().enumerate() {
                        let mut vector = Vector::new(meta.physical);
                        rows.read(column, 0, seen, chunk.len(), &mut vector);
                        for row in 0..chunk.len() {
                            let found = bytes_of(chunk.vector(column), row);
                            assert_eq!(found, bytes_of(&vector, row), "row {}", seen + row);
                        }
                    }
                    seen += chunk.len();
                }
            }
            assert_eq!(seen, rows.rows());
        }
        drop(kept);
        assert_eq!(memory.used(), 0);
    }
}
