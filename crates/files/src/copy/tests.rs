use super::turns::WAITING_SHARE;
use super::*;
use crate::pipe::LOOK_EVERY;
use crate::test_files::{Directory, read};
use crate::{Options, open};
use entasis_engine::exec::CancelFlag;
use entasis_vector::{Chunk, ErrorKind, Field, PhysicalType, Selection, Vector};
use std::fs::File;

fn schema() -> Schema {
    let decimal = DataType::Decimal { precision: 9, scale: 2 };
    vec![
        Field::new("n", DataType::Int32),
        Field::new("a text", DataType::Varchar),
        Field::new("d", decimal),
        Field::new("day", DataType::Date),
    ]
}

fn chunk(first: i32, rows: usize) -> Chunk {
    let mut chunk = Chunk::new();
    chunk.reset(rows);
    let group = chunk.push_group(Selection::ALL);
    let numbers: Vec<i32> = (first..first + rows as i32).collect();
    let texts = ["plain", "with, comma", "with \"quote\"", "two\nlines", "a b", "ü"];
    let texts: Vec<Value> = (0..rows)
        .map(|i| if i % 5 == 4 { Value::Null } else { Value::Text(texts[i % texts.len()].into()) })
        .collect();
    chunk.push_column(Vector::from_slice(&numbers), group);
    chunk.push_column(Vector::from_values(PhysicalType::Str, &texts).unwrap(), group);
    chunk.push_column(
        Vector::from_slice(&numbers.iter().map(|n| i64::from(*n) * 7).collect::<Vec<_>>()),
        group,
    );
    chunk.push_column(Vector::from_slice(&numbers), group);
    chunk
}

#[test]
fn what_two_workers_write_is_read_back_in_order() {
    let directory = Directory::new();
    let small_groups = [("row_group_size".to_owned(), Value::Integer(700))];
    for (name, options) in [("a.parquet", &small_groups[..]), ("b.parquet", &[]), ("a.csv", &[])] {
        let path = directory.path(name);
        let sink = copy_to(&path, &schema(), options, &QueryContext::default(), |_| Ok(())).unwrap();
        let mut workers = [sink.worker().unwrap(), sink.worker().unwrap()];
        // Worker 1 is far ahead of worker 0.
        for (worker, morsels) in [(1, [1, 2, 5]), (0, [0, 3, 4])] {
            for morsel in morsels {
                workers[worker].start_morsel(morsel);
                for part in 0..3 {
                    workers[worker].push(&chunk(morsel as i32 * 3000 + part * 1000, 1000)).unwrap();
                }
            }
            workers[worker].finish().unwrap();
        }
        assert!(!std::fs::exists(&path).unwrap(), "nothing is there before the commit");
        assert_eq!(sink.commit().unwrap(), 18_000);
        assert_eq!(
            directory.names().len(),
            ["a.parquet", "b.parquet", "a.csv"].iter().position(|n| *n == name).unwrap() + 1
        );
        let relation = open(&path, &Options::default(), &CancelFlag::default()).unwrap();
        assert_eq!(relation.schema()[1].name.as_ref(), "a text");
        let rows = read(&*relation, vec![], 2048).unwrap();
        assert_eq!(rows.len(), 18_000);
        assert!(rows.iter().enumerate().all(|(i, row)| row[0] == i.to_string()));
        assert_eq!(rows[2][1], "with \"quote\"");
        assert_eq!(rows[3][1..], ["two\nlines", "0.21", "1970-01-04"]);
        assert_eq!(rows[4][1], "NULL");
    }
}

#[test]
fn long_morsels_become_row_groups_of_their_own() {
    let directory = Directory::new();
    let path = directory.path("a.parquet");
    let options = [("row_group_size".to_owned(), Value::Integer(700))];
    let sink = copy_to(&path, &schema(), &options, &QueryContext::default(), |_| Ok(())).unwrap();
    let mut worker = sink.worker().unwrap();
    let mut first = 0;
    // By morsel, the rows of its chunks.
    for (morsel, chunks) in
        [&[700][..], &[100], &[500], &[1049], &[1050], &[2000, 3], &[349], &[300, 1]].iter().enumerate()
    {
        worker.start_morsel(morsel as u64);
        for rows in *chunks {
            worker.push(&chunk(first, *rows)).unwrap();
            first += *rows as i32;
        }
    }
    worker.finish().unwrap();
    assert_eq!(sink.commit().unwrap(), 6052);
    let file = parquet::file::serialized_reader::SerializedFileReader::new(File::open(&path).unwrap());
    let file = file.unwrap();
    let groups: Vec<i64> = parquet::file::reader::FileReader::metadata(&file)
        .row_groups()
        .iter()
        .map(|g| g.num_rows())
        .collect();
    assert_eq!(groups, [700, 100, 500, 525, 524, 700, 350, 700, 700, 603, 650]);
    let rows =
        read(&*open(&path, &Options::default(), &CancelFlag::default()).unwrap(), vec![], 2048).unwrap();
    assert!(rows.len() == 6052 && rows.iter().enumerate().all(|(i, row)| row[0] == i.to_string()));
}

#[test]
fn a_failed_copy_leaves_nothing() {
    let directory = Directory::new();
    let path = directory.write("a.csv", "old");
    let sink = copy_to(&path, &schema(), &[], &QueryContext::default(), |_| Ok(())).unwrap();
    let mut worker = sink.worker().unwrap();
    worker.push(&chunk(0, 10)).unwrap();
    drop((worker, sink));
    assert_eq!(directory.names(), ["a.csv"]);
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "old");
    let error = copy_to(&directory.path("none/a.csv"), &schema(), &[], &QueryContext::default(), |_| Ok(()))
        .err()
        .unwrap();
    assert!(error.message().contains("none/a.csv"), "{error}");
    let interval = vec![Field::new("i", DataType::Interval)];
    assert!(
        copy_to(&directory.path("i.parquet"), &interval, &[], &QueryContext::default(), |_| Ok(())).is_err()
    );
}

#[test]
fn options_say_how_text_is_written() {
    let directory = Directory::new();
    let path = directory.path("a.txt");
    let options = [
        ("header".to_owned(), Value::Boolean(false)),
        ("delim".to_owned(), Value::Text("|".into())),
        ("nullstr".to_owned(), Value::Text("NA".into())),
    ];
    let schema = vec![Field::new("s", DataType::Varchar), Field::new("b", DataType::Boolean)];
    let sink = copy_to(&path, &schema, &options, &QueryContext::default(), |_| Ok(())).unwrap();
    let mut chunk = Chunk::new();
    chunk.reset(3);
    let group = chunk.push_group(Selection::from_indices(&[2, 1, 0]));
    let texts = [Value::Null, Value::Text("NA".into()), Value::Text("a|b".into())];
    chunk.push_column(Vector::from_values(PhysicalType::Str, &texts).unwrap(), group);
    chunk.push_column(Vector::constant(PhysicalType::Bool, &Value::Boolean(true)).unwrap(), group);
    let mut worker = sink.worker().unwrap();
    worker.push(&chunk).unwrap();
    worker.finish().unwrap();
    assert_eq!(sink.commit().unwrap(), 3);
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "\"a|b\"|true\n\"NA\"|true\nNA|true\n");
    assert!(
        copy_to(&path, &schema, &[("headr".to_owned(), Value::Null)], &QueryContext::default(), |_| Ok(()))
            .is_err()
    );
}

/// A context with so much memory.
fn context_with(bytes: usize) -> QueryContext {
    QueryContext { memory: Arc::new(MemoryBudget::new(bytes)), ..QueryContext::default() }
}

/// A chunk of long texts.
fn long_chunk(rows: usize, bytes: usize) -> Chunk {
    let mut chunk = Chunk::new();
    chunk.reset(rows);
    let group = chunk.push_group(Selection::ALL);
    // Of letters that hardly compress.
    let mut state = 1u64;
    let mut letter = || {
        state = state.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(0x1405_7B7E_F767_814F);
        char::from(b'!' + (state >> 58) as u8)
    };
    let texts: Vec<Value> =
        (0..rows).map(|_| Value::Text((0..bytes).map(|_| letter()).collect::<String>().into())).collect();
    chunk.push_column(Vector::from_values(PhysicalType::Str, &texts).unwrap(), group);
    chunk
}

#[test]
fn long_values_take_a_part_of_the_memory() {
    const LIMIT: usize = 48 << 20;
    let directory = Directory::new();
    let schema = vec![Field::new("a", DataType::Varchar)];
    let chunk = long_chunk(10, 3 << 20);
    for name in ["a.csv", "a.json", "a.parquet"] {
        let path = directory.path(name);
        let context = context_with(LIMIT);
        let sink = copy_to(&path, &schema, &[], &context, |_| Ok(())).unwrap();
        let mut worker = sink.worker().unwrap();
        for morsel in 0..3 {
            worker.start_morsel(morsel);
            worker.push(&chunk).unwrap();
        }
        worker.finish().unwrap();
        assert_eq!(sink.commit().unwrap(), 30);
        drop((worker, sink));
        assert_eq!(context.memory.used(), 0, "{name}");
        assert!(context.memory.peak() < LIMIT / 2, "{name}: {}", context.memory.peak());
        if name == "a.json" {
            continue;
        }
        let rows = read(&*open(&path, &Options::default(), &CancelFlag::default()).unwrap(), vec![], 2048);
        let rows = rows.unwrap();
        assert_eq!(rows.len(), 30);
        for (i, row) in rows.iter().enumerate() {
            assert!(Value::Text(row[0].as_str().into()) == chunk.value(i % 10, 0, DataType::Varchar));
        }
    }
    // What is not there cannot be had.
    let context = context_with(2 << 20);
    let sink = copy_to(&directory.path("b.parquet"), &schema, &[], &context, |_| Ok(())).unwrap();
    let error = sink.worker().unwrap().push(&chunk).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Resource);
    assert!(error.message().contains(OWNER), "{error}");
}

#[test]
fn rows_that_are_early_wait_with_their_worker() {
    const LIMIT: usize = 64 << 20;
    let schema = vec![Field::new("a", DataType::Varchar)];
    for name in ["a.csv", "a.parquet"] {
        for interrupted in [false, true] {
            let directory = Directory::new();
            let path = directory.path(name);
            let context = context_with(LIMIT);
            let sink = copy_to(&path, &schema, &[], &context, |_| Ok(())).unwrap();
            let mut first = sink.worker().unwrap();
            let mut second = sink.worker().unwrap();
            first.push(&long_chunk(1, 4)).unwrap();
            let outcome = std::thread::scope(|scope| {
                let late = scope.spawn(|| {
                    second.start_morsel(1);
                    for _ in 0..20 {
                        second.push(&long_chunk(2, 1 << 20))?;
                    }
                    second.finish()
                });
                // Until it waits: some is early, and no more comes.
                let mut before = usize::MAX;
                loop {
                    std::thread::sleep(5 * LOOK_EVERY);
                    let early = sink.0.lock().waiting_bytes;
                    if late.is_finished() || (early > 0 && early == before) {
                        break;
                    }
                    before = early;
                }
                assert!(sink.0.lock().waiting_bytes <= LIMIT / WAITING_SHARE);
                assert!(!late.is_finished());
                match interrupted {
                    true => context.cancel.raise(),
                    false => first.finish().unwrap(),
                }
                late.join().unwrap()
            });
            match interrupted {
                true => assert_eq!(outcome.unwrap_err().kind(), ErrorKind::Interrupted),
                false => {
                    outcome.unwrap();
                    assert_eq!(sink.commit().unwrap(), 41);
                }
            }
            assert!(context.memory.peak() < LIMIT);
        }
    }
}

#[test]
fn row_groups_end_when_they_have_many_bytes() {
    let directory = Directory::new();
    let path = directory.path("a.parquet");
    let schema = vec![Field::new("a", DataType::Varchar)];
    let context = context_with(GROUPS << 24);
    let sink = copy_to(&path, &schema, &[], &context, |_| Ok(())).unwrap();
    let mut worker = sink.worker().unwrap();
    const GROUPS: usize = 4;
    // Each has as many bytes as a row group may have.
    for _ in 0..GROUPS {
        worker.push(&long_chunk(8, group_bytes(GROUPS << 24) / 8)).unwrap();
    }
    worker.finish().unwrap();
    sink.commit().unwrap();
    let file = parquet::file::serialized_reader::SerializedFileReader::new(File::open(&path).unwrap());
    let groups = parquet::file::reader::FileReader::metadata(&file.unwrap()).num_row_groups();
    assert!((GROUPS..=GROUPS + 1).contains(&groups), "{groups}");
}

#[test]
fn uuids_are_such_in_parquet() {
    use parquet::basic::{LogicalType, Type};
    let directory = Directory::new();
    let path = directory.path("a.parquet");
    let ids = [Some(0), None, Some(-1), Some(i128::MAX)];
    let ids: Vec<Value> = ids.iter().map(|id| id.map_or(Value::Null, Value::Integer)).collect();
    let schema = vec![Field::new("id", DataType::Uuid)];
    let mut chunk = Chunk::new();
    chunk.reset(ids.len());
    let group = chunk.push_group(Selection::ALL);
    chunk.push_column(entasis_arrow::vector_of(&ids, DataType::Uuid).unwrap(), group);
    let sink = copy_to(&path, &schema, &[], &QueryContext::default(), |_| Ok(())).unwrap();
    let mut worker = sink.worker().unwrap();
    worker.push(&chunk).unwrap();
    worker.finish().unwrap();
    sink.commit().unwrap();
    let file = parquet::file::serialized_reader::SerializedFileReader::new(File::open(&path).unwrap());
    let file = file.unwrap();
    let column = parquet::file::reader::FileReader::metadata(&file).file_metadata().schema_descr().column(0);
    assert_eq!(column.physical_type(), Type::FIXED_LEN_BYTE_ARRAY);
    assert_eq!(column.logical_type_ref(), Some(&LogicalType::Uuid));
    let relation = open(&path, &Options::default(), &CancelFlag::default()).unwrap();
    assert_eq!(relation.schema()[0].ty, DataType::Uuid);
    let rows = read(&*relation, vec![], 2048).unwrap();
    let shown = ids.iter().map(|id| vec![id.display(DataType::Uuid).to_string()]);
    assert_eq!(rows, shown.collect::<Vec<_>>());
}
