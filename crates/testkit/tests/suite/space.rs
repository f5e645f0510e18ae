//! Space that is no longer needed is given back: files are compared by their lengths, for each way in which
//! rows can go, and for each statement that promises to make the file shorter.

use entasis::{Config, Connection, Database};
use entasis_storage::backend::FaultyDisk;
use entasis_storage::file::{Access, Contents, DataFile, DatabaseId, Root};
use entasis_testkit::scratch::Scratch;
use std::fs;
use std::path::Path;
use std::sync::Arc;

/// Bytes of a database without rows, and what a file may have beyond what is needed.
const SMALL: u64 = 300 << 10;

fn open(path: &Path) -> Database {
    Database::open(path, Config::default()).unwrap()
}

fn run(connection: &Connection, sql: &str) {
    connection.execute(sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
}

fn answer(connection: &Connection, sql: &str) -> String {
    let rows = connection.execute(sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
    format!("{:?}", rows.row_values().collect::<Vec<_>>())
}

/// A table of some megabytes, and another one of a third of that behind it in the file.
fn filled(path: &Path, layout: &str) -> Database {
    let database = open(path);
    let connection = database.connect();
    for sql in [
        &format!("CREATE TABLE t (k BIGINT {layout}, s VARCHAR)"),
        "INSERT INTO t SELECT i, md5(i::VARCHAR) || md5((i + 1)::VARCHAR) FROM range(60000) r(i)",
        "CHECKPOINT",
        "CREATE TABLE kept AS SELECT i AS k, md5(i::VARCHAR) || md5((-i)::VARCHAR) AS s FROM range(20000) r(i)",
        "CHECKPOINT",
    ] {
        run(&connection, sql);
    }
    database
}

/// What is left of the file after the rows of `t` have gone, if nothing else is done than this.
const WAYS: [(&str, &str); 9] = [
    ("DROP TABLE t", "CHECKPOINT"),
    ("DROP TABLE t", "VACUUM"),
    ("DROP TABLE t", "close"),
    ("TRUNCATE t", "CHECKPOINT"),
    ("DELETE FROM t", "CHECKPOINT"),
    ("DELETE FROM t", "VACUUM"),
    ("DELETE FROM t WHERE k >= 1000", "VACUUM"),
    ("ALTER TABLE t DROP COLUMN s", "CHECKPOINT"),
    ("CREATE OR REPLACE TABLE t AS SELECT 1 AS k", "CHECKPOINT"),
];

#[test]
fn files_shrink_when_rows_go() {
    for layout in ["", "PRIMARY KEY"] {
        for (goes, gives_back) in WAYS {
            let scratch = Scratch::new();
            let path = scratch.path("my.db");
            let size = || fs::metadata(&path).unwrap().len();
            let database = filled(&path, layout);
            let connection = database.connect();
            let kept = answer(&connection, "SELECT count(*), min(s), max(s) FROM kept");
            let full = size();
            run(&connection, goes);
            match gives_back {
                "close" => {}
                statement => run(&connection, statement),
            }
            if gives_back == "close" {
                drop(connection);
                drop(database);
            } else {
                assert_eq!(answer(&connection, "PRAGMA integrity_check"), ok());
            }
            let left = size();
            // The other table is a quarter.
            let what = format!("{layout} {goes}, {gives_back}: {left} of {full} bytes are left");
            assert!(left <= full / 4 + full / 8 + SMALL, "{what}");
            assert!(left >= full / 8, "{what}, and the rest was needed");
            let again = open(&path).connect();
            assert_eq!(answer(&again, "SELECT count(*), min(s), max(s) FROM kept"), kept, "{what}");
        }
    }
}

fn ok() -> String {
    let database = Database::in_memory(Config::default()).unwrap();
    answer(&database.connect(), "PRAGMA integrity_check")
}

/// Checkpoints of a file in use neither make it longer each time nor are refused the space of the one before.
#[test]
fn checkpoints_use_the_space_of_those_before() {
    let scratch = Scratch::new();
    let path = scratch.path("my.db");
    let connection = filled(&path, "PRIMARY KEY").connect();
    let written = || fs::metadata(&path).unwrap().len();
    let before = written();
    for round in 0..5 {
        run(&connection, &format!("UPDATE kept SET s = 'x' WHERE k = {round}"));
        run(&connection, "CHECKPOINT");
    }
    assert!(written() <= before + before / 4 + SMALL, "{before} bytes became {}", written());
}

/// A database in a data file, with the log beside it on a disk.
fn on(file: DataFile, disk: &FaultyDisk) -> Database {
    Database::on(file, Arc::new(disk.file("my.db.wal")), Config::new().with_threads(1)).unwrap()
}

/// The map of free pages has a right checksum and is wrong: it counts pages as used that nobody has, or also
/// pages as free that are in use. Opening trusts it; a check finds it before it is written by.
#[test]
fn wrong_maps_of_free_pages_are_told() {
    let disk = FaultyDisk::new(1);
    let created = DataFile::create(Arc::new(disk.file("my.db")), DatabaseId(*b"a map of its own"), 1 << 16);
    let database = on(created.unwrap(), &disk);
    for sql in [
        "CREATE TABLE t (k BIGINT PRIMARY KEY)",
        "INSERT INTO t SELECT i FROM range(5000) r(i)",
        "CHECKPOINT",
    ] {
        run(&database.connect(), sql);
    }
    for is_free in [false, true] {
        // As if the process were killed: the state is open, so that opening it writes no other map.
        let killed = disk.copy();
        let open = || DataFile::open(Arc::new(killed.file("my.db")), Access::Write).unwrap();
        let file = open();
        let header = file.header();
        // So large that it is the end of the file.
        file.write(&vec![7; 1 << 20]).unwrap();
        if is_free {
            file.give_up(header.roots[Root::Tables as usize]);
        }
        let (roots, log_position, state) = (header.roots, header.log_position, header.state);
        file.commit(Contents { roots, log_position, state }).unwrap();
        let before = file.bytes();
        drop(file);
        let database = on(open(), &killed);
        let connection = database.connect();
        let found = answer(&connection, "PRAGMA integrity_check");
        // Behind them there may be the map, or nothing.
        let are_told = ["256 pages are neither in use nor free", "pages by its header"];
        assert!(are_told.iter().any(|what| found.contains(what)), "{found}");
        assert_eq!(found.contains("of an extent, and free"), is_free, "{found}");
        assert_eq!(answer(&connection, "PRAGMA integrity_check"), found, "the check has written nothing");
        if !is_free {
            run(&connection, "VACUUM");
            assert_eq!(answer(&connection, "PRAGMA integrity_check"), ok());
            drop((connection, database));
            assert!(open().bytes() <= before - (1 << 19), "they are given back");
        }
    }
}
