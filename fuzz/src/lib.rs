//! Bytes that nobody wrote, given to what reads the files of a database.
//!
//! A *target* takes any bytes, reads them as far as they make sense, and says in a few words what came of it:
//! what is wrong, or what was there. It never panics, never hangs, and takes no more memory than some
//! multiple of the bytes; whoever runs it watches that.
//!
//! | target | bytes are | |
//! |---|---|---|
//! | [`file`] | a data file | opened, and all rows read |
//! | [`wal`] | a log beside a small data file | read, ended, and gone on with |
//! | [`recover`] | a log beside a data file of everything | recovered, and all rows read |
//! | [`block`] | a block, with what it shares | read, and written again |
//!
//! Everything in a file is under a checksum, so that bytes changed at random get no further than the first of
//! them. So [`file`], [`wal`] and [`recover`] read their bytes twice: as they are, and with the checksums put
//! right ([`seal`]), as a program with a defect would write them.
//!
//! Two programs run the targets: `cargo fuzz`, which looks for bytes that reach new code, and `mutate`
//! (`main.rs`), which needs nothing but Rust and a seed. What both begin with is in [`samples`].

pub mod block;
pub mod file;
pub mod mutate;
pub mod recover;
pub mod samples;
pub mod seal;
pub mod wal;

/// A target by its name.
pub struct Target {
    /// Its name.
    pub name: &'static str,
    /// Reads bytes. What came of it, without the numbers: inputs with the same answer are much alike.
    pub run: fn(&[u8]) -> String,
    /// Good bytes to begin with, made of some databases.
    pub seeds: fn(&[samples::Sample]) -> Vec<Vec<u8>>,
}

/// All targets.
pub const TARGETS: [Target; 4] = [
    Target { name: "file", run: file::run, seeds: file::seeds },
    Target { name: "wal", run: wal::run, seeds: wal::seeds },
    Target { name: "recover", run: recover::run, seeds: recover::seeds },
    Target { name: "block", run: block::run, seeds: block::seeds },
];

/// A message without its numbers.
fn without_numbers(message: &str) -> String {
    let mut out = String::new();
    for c in message.chars() {
        match c.is_ascii_digit() {
            true if out.ends_with('#') => {}
            true => out.push('#'),
            false => out.push(c),
        }
    }
    out.truncate(out.floor_char_boundary(160));
    out
}
