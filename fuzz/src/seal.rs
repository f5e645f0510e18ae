//! Puts the checksums of changed files right, from the inside out, so that what is behind them is reached.
//!
//! ```text
//! data file   blocks ─▶ data extents ─▶ indexes of row groups ─▶ manifests ─▶ roots ─▶ headers, preamble
//! log         payloads ─▶ headers of frames;  headers of segments
//! ```
//! This is the format of docs/design/file-format.md once more, by positions and without any trust: what does
//! not parse is left as it is. A file that nobody changed comes out as it went in, which `mutate` checks
//! before it begins; so it is noticed if the format becomes another one.

use std::collections::BTreeMap;
use std::ops::Range;
use twox_hash::XxHash64;

const PAGE: usize = 4096;
const REFERENCE: usize = 24;
const ROOTS: usize = 8;
/// Which root refers to the list of tables.
const TABLES: usize = 1;
/// Where the roots stand in a header.
const ROOT_AT: usize = 64;
/// Bytes of a header before its checksum.
const HEADER: usize = 256;
const REGISTERS: usize = 4096;
/// Bytes of the live bits of a slice.
const LIVE: usize = 128;
/// Places that are put right at most: references may say again and again that the same is there.
const MANY: usize = 100_000;

/// The data file with the right checksums.
pub fn file(bytes: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    if bytes.len() < 3 * PAGE {
        return bytes;
    }
    let seed = u64_at(&bytes, 16);
    let sum = checksum(&bytes[..56], 0);
    put(&mut bytes, 56, sum);
    let found = walk(&bytes);
    for place in &found.places {
        let sum = checksum(&bytes[place.range.clone()], seed);
        put(&mut bytes, place.checksum_at, sum);
    }
    for &at in found.references.iter().flatten() {
        if let Some(range) = extent(&bytes, at) {
            let sum = checksum(&bytes[range.clone()], seed ^ range.start as u64);
            put(&mut bytes, at + 16, sum);
        }
    }
    for page in headers(&bytes) {
        let sum = checksum(&bytes[page..page + HEADER], seed ^ page as u64);
        put(&mut bytes, page + HEADER, sum);
    }
    bytes
}

/// The blocks of a data file, each with the bytes of what it shares.
pub fn blocks(bytes: &[u8]) -> Vec<(Vec<u8>, Vec<u8>)> {
    let of = |range: &Range<usize>| bytes[range.clone()].to_vec();
    let blocks = walk(bytes).places.into_iter().filter(|place| place.is_block);
    blocks.map(|place| (of(&place.range), place.shared.as_ref().map(of).unwrap_or_default())).collect()
}

// ---- what is where in a data file -------------------------------------------------------------------------

/// Something within a data extent.
struct Place {
    /// Where its checksum stands.
    checksum_at: usize,
    /// Its bytes.
    range: Range<usize>,
    /// Those of what it shares with others.
    shared: Option<Range<usize>>,
    is_block: bool,
}

/// What a file consists of.
#[derive(Default)]
struct Found {
    places: Vec<Place>,
    /// Where references stand: of data extents, indexes, manifests, roots.
    references: [Vec<usize>; 4],
}

/// Bytes of the file that are read one after the other.
#[derive(Clone)]
struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
    end: usize,
}

impl Reader<'_> {
    fn skip(&mut self, count: usize) -> Option<usize> {
        let at = self.at;
        self.at = at.checked_add(count).filter(|&end| end <= self.end)?;
        Some(at)
    }

    fn u8(&mut self) -> Option<u8> {
        self.skip(1).map(|at| self.bytes[at])
    }

    fn varint(&mut self) -> Option<usize> {
        let mut number = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = self.u8()?;
            number |= u64::from(byte & 0x7F) << shift;
            if byte & 0x80 == 0 {
                return usize::try_from(number).ok();
            }
        }
        None
    }
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    let mut number = [0; 8];
    number.copy_from_slice(&bytes[at..at + 8]);
    u64::from_le_bytes(number)
}

fn put(bytes: &mut [u8], at: usize, number: u64) {
    bytes[at..at + 8].copy_from_slice(&number.to_le_bytes());
}

fn checksum(bytes: &[u8], seed: u64) -> u64 {
    XxHash64::oneshot(seed, bytes)
}

/// The bytes that a reference refers to.
fn extent(bytes: &[u8], at: usize) -> Option<Range<usize>> {
    let start = usize::try_from(u64_at(bytes, at)).ok()?;
    let length = usize::try_from(u64_at(bytes, at + 8)).ok()?;
    let end = start.checked_add(length).filter(|&end| end <= bytes.len())?;
    (start >= 3 * PAGE && length > 0).then_some(start..end)
}

/// Where headers stand.
fn headers(bytes: &[u8]) -> impl Iterator<Item = usize> + use<> {
    let is_one = [PAGE, 2 * PAGE].map(|at| bytes.get(at..at + 8) == Some(b"ENTAHEAD"));
    [PAGE, 2 * PAGE].into_iter().zip(is_one).filter_map(|(at, is_one)| is_one.then_some(at))
}

fn walk(bytes: &[u8]) -> Found {
    let mut found = Found::default();
    if bytes.len() < 3 * PAGE {
        return found;
    }
    for page in headers(bytes) {
        // What comes before the first thing that does not parse is found all the same.
        let _ = tables(bytes, page + ROOT_AT + TABLES * REFERENCE, &mut found);
        found.references[3].extend((0..ROOTS).map(|root| page + ROOT_AT + root * REFERENCE));
    }
    found
}

fn reader(bytes: &[u8], at: usize) -> Option<Reader<'_>> {
    let range = extent(bytes, at)?;
    Some(Reader { bytes, at: range.start, end: range.end })
}

fn tables(bytes: &[u8], at: usize, found: &mut Found) -> Option<()> {
    let mut list = reader(bytes, at)?;
    for _ in 0..list.varint()? {
        list.varint()?;
        let at = list.skip(REFERENCE)?;
        let _ = manifest(bytes, at, found);
        found.references[2].push(at);
    }
    Some(())
}

fn manifest(bytes: &[u8], at: usize, found: &mut Found) -> Option<()> {
    let mut manifest = reader(bytes, at)?;
    manifest.varint()?;
    let columns = manifest.varint()?;
    for _ in 0..columns {
        match manifest.u8()? {
            0 => {
                let updates = manifest.varint()?;
                manifest.skip(updates.checked_mul(3)?)?;
            }
            _ => _ = manifest.skip(REGISTERS)?,
        }
    }
    for _ in 0..manifest.varint()? {
        let at = manifest.skip(REFERENCE)?;
        if found.places.len() + found.references[1].len() > MANY {
            return None;
        }
        // How fences and row numbers are written depends on the table: what goes up to the end is right.
        let kinds = [(false, false), (false, true), (true, false), (true, true)];
        let parsed = kinds.into_iter().find_map(|kind| index(bytes, at, columns, kind));
        if let Some((extents, places)) = parsed {
            found.references[0].extend(extents);
            found.places.extend(places);
        }
        found.references[1].push(at);
    }
    Some(())
}

/// The references and places in the index of a row group, if it is one with such fences and numbers.
fn index(
    bytes: &[u8],
    at: usize,
    columns: usize,
    (has_numbers, has_words): (bool, bool),
) -> Option<(Vec<usize>, Vec<Place>)> {
    let mut index = reader(bytes, at)?;
    let slices = index.varint()?;
    match has_numbers {
        true => _ = index.varint()?,
        false => _ = index.skip(8)?,
    }
    let mut extents = Vec::new();
    for _ in 0..index.varint()? {
        extents.push(index.skip(REFERENCE)?);
    }
    let place = |index: &mut Reader<'_>, is_block| -> Option<Place> {
        let within = extent(bytes, *extents.get(index.varint()?)?)?;
        let start = within.start.checked_add(index.varint()?.checked_mul(8)?)?;
        let end = start.checked_add(index.varint()?).filter(|&end| end <= within.end)?;
        Some(Place { checksum_at: index.skip(8)?, range: start..end, shared: None, is_block })
    };
    let mut places = Vec::new();
    for _ in 0..index.varint()? {
        index.varint()?;
        places.push(place(&mut index, false)?);
    }
    let shared = places.len();
    let partitions = index.varint()?;
    for _ in 0..partitions.checked_mul(2)? {
        index.varint()?;
    }
    for _ in 0..partitions {
        let length = if has_words { 8 } else { index.varint()? };
        index.skip(length)?;
    }
    for _ in 0..slices {
        index.skip(LIVE + 1)?;
        for _ in 0..columns {
            if index.u8()? == 1 {
                let mut block = place(&mut index, true)?;
                let by = index.varint()?.checked_sub(1).filter(|&number| number < shared);
                block.shared = by.map(|number| places[number].range.clone());
                places.push(block);
            }
        }
    }
    for _ in 0..index.varint()?.checked_mul(2)? {
        index.varint()?;
    }
    (index.at == index.end).then_some((extents, places))
}

// ---- logs -------------------------------------------------------------------------------------------------

const SECTOR: usize = 512;
const FRAME: usize = 48;

/// The log with the right checksums: those of the segments' headers, and of the frames of each row of
/// segments, as far as one follows another.
pub fn log(bytes: &[u8], segment: u32, id: [u8; 16]) -> Vec<u8> {
    let (mut bytes, segment, seed) = (bytes.to_vec(), segment as usize, u64_at(&id, 0));
    let mut places = BTreeMap::new();
    for at in (0..bytes.len() / segment).map(|number| number * segment) {
        if bytes[at..at + 8] == *b"ENTALOG\0" {
            let sum = checksum(&bytes[at..at + 40], seed);
            put(&mut bytes, at + 40, sum);
            places.insert(u64_at(&bytes, at + 32), at);
        }
    }
    let mut next = None;
    for &number in places.keys().collect::<Vec<_>>() {
        if next != Some(number) {
            frames(&mut bytes, segment, seed, &places, number);
        }
        next = number.checked_add(1);
    }
    bytes
}

/// Puts frames right from the beginning of a segment on, up to the first that is none.
fn frames(
    bytes: &mut [u8],
    segment: usize,
    seed: u64,
    places: &BTreeMap<u64, usize>,
    first: u64,
) -> Option<()> {
    let positions = segment - SECTOR;
    // Where a byte of the log is: counted from the beginning of the first segment.
    let place = |at: usize| {
        let number = first.checked_add((at / positions) as u64)?;
        Some(places.get(&number)? + SECTOR + at % positions)
    };
    let mut at = 0;
    loop {
        if positions - at % positions < FRAME {
            at = at.next_multiple_of(positions);
        }
        let header = place(at)?;
        let length = u32::from_le_bytes(bytes[header + 20..header + 24].try_into().ok()?) as usize;
        if !(1..=3).contains(&bytes[header + 24]) || length > bytes.len() {
            return None;
        }
        let payload: Option<Vec<u8>> =
            (at + FRAME..at + FRAME + length).map(|at| place(at).map(|at| bytes[at])).collect();
        let sum = checksum(&payload?, seed);
        put(bytes, header + 32, sum);
        let sum = checksum(&bytes[header..header + 40], seed ^ u64_at(bytes, header));
        put(bytes, header + 40, sum);
        at = (at + FRAME + length).next_multiple_of(8);
    }
}
