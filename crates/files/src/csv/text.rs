//! Text that grows, and values written to its end.
//!
//! The buffer is longer than its text, so a value is written with a few stores of fixed size, of which only
//! the first bytes count. Values are written as [`Value::display`](entasis_vector::Value::display) prints
//! them, which is the slow twin: it also writes what is rare, such as years of five digits.
//!
//! Eight digits are made at once, one a byte of a word: the number is halved into lanes of four, two and one
//! digits, with a multiplication in place of each division.

use entasis_vector::types::MICROS_PER_DAY;
use entasis_vector::value::{
    civil_from_days, days_from_civil, write_date, write_decimal, write_time, write_timestamp,
};
use entasis_vector::{DataType, Error, Result, Value};
use std::fmt::{self, Write};

/// Bytes that the longest of the values written here takes, with the bytes that do not count: a decimal with
/// a sign, 39 digits and a point.
const ROOM: usize = 48;
/// The least bytes of a buffer.
const LEAST: usize = 1 << 12;
/// Bytes of text that are handed on together, and bytes of one value that are written at once.
pub(crate) const PART_BYTES: usize = 1 << 20;

/// Takes text that has been written, so that its buffer is free again.
pub(crate) type Take<'a> = &'a mut dyn FnMut(&mut Text) -> Result<()>;

/// Text in a buffer that is longer than it. Cleared, it keeps the buffer.
#[derive(Debug, Default)]
pub(crate) struct Text {
    bytes: Vec<u8>,
    len: usize,
}

impl Text {
    /// The bytes of the text.
    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }

    /// Number of bytes.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Bytes of memory that the text takes.
    pub(crate) fn memory(&self) -> usize {
        self.bytes.capacity()
    }

    /// Removes the text.
    pub(crate) fn clear(&mut self) {
        self.len = 0;
    }

    /// Hands the text on, if there is enough of it.
    ///
    /// # Errors
    /// Those of `take`.
    #[inline(always)]
    pub(crate) fn hand_on(&mut self, take: Take<'_>) -> Result<()> {
        if self.len < PART_BYTES { Ok(()) } else { take(self) }
    }

    /// The buffer behind the text, of at least `room` bytes.
    #[inline(always)]
    fn end(&mut self, room: usize) -> &mut [u8] {
        if self.bytes.len() - self.len < room {
            self.grow(room);
        }
        &mut self.bytes[self.len..]
    }

    #[cold]
    #[inline(never)]
    fn grow(&mut self, room: usize) {
        self.bytes.resize((self.len + room).max(self.bytes.len() * 2).max(LEAST), 0);
    }

    /// Appends the first `len` bytes of `padded`.
    #[inline(always)]
    fn padded<const N: usize>(&mut self, padded: &[u8; N], len: usize) {
        const { assert!(N <= ROOM) };
        let end = self.end(ROOM);
        end[..N].copy_from_slice(padded);
        self.len += len;
    }

    /// Appends a byte.
    #[inline(always)]
    pub(super) fn byte(&mut self, byte: u8) {
        self.end(ROOM)[0] = byte;
        self.len += 1;
    }

    /// Appends bytes. True if one of them is among `special`.
    #[inline(always)]
    pub(super) fn bytes(&mut self, bytes: &[u8], special: &Special) -> bool {
        let length = bytes.len();
        self.end(length + ROOM);
        let end = &mut self.bytes[self.len..];
        self.len += length;
        // Short text is covered by two words, which overlap.
        if let (8..=16, Some(first), Some(last)) = (length, bytes.first_chunk(), bytes.last_chunk()) {
            end[..8].copy_from_slice(first);
            end[length - 8..length].copy_from_slice(last);
            return special.in_words(u64::from_le_bytes(*first), u64::from_le_bytes(*last));
        }
        if let (4..8, Some(first), Some(last)) = (length, bytes.first_chunk(), bytes.last_chunk()) {
            end[..4].copy_from_slice(first);
            end[length - 4..length].copy_from_slice(last);
            let half = |half: &[u8; 4]| u64::from(u32::from_le_bytes(*half));
            let word = half(first) | (half(last) << 32);
            return special.in_words(word, word);
        }
        end[..length].copy_from_slice(bytes);
        special.within(bytes)
    }

    /// Removes what was appended since the text had `start` bytes, and calls `rewrite` with it.
    #[cold]
    pub(super) fn again(&mut self, start: usize, rewrite: impl FnOnce(&mut Text, &[u8])) {
        let removed = self.bytes[start..self.len].to_vec();
        self.len = start;
        rewrite(self, &removed);
    }

    /// Appends a number.
    #[inline(always)]
    pub(super) fn integer(&mut self, v: i64) {
        if v < 0 {
            self.byte(b'-');
        }
        self.digits(v.unsigned_abs(), 1);
    }

    /// Appends a number, with zeros in front up to `least` digits, at most eight.
    #[inline(always)]
    pub(super) fn digits(&mut self, v: u64, least: u32) {
        const BASE: u64 = 100_000_000;
        if v < BASE {
            return self.some_digits(v as u32, least);
        }
        let (rest, last) = (v / BASE, v % BASE);
        if rest < BASE {
            self.some_digits(rest as u32, 1);
        } else {
            self.some_digits((rest / BASE) as u32, 1);
            self.padded(&ascii(eight_digits((rest % BASE) as u32)), 8);
        }
        self.padded(&ascii(eight_digits(last as u32)), 8);
    }

    /// The same for fewer than nine digits.
    #[inline(always)]
    fn some_digits(&mut self, v: u32, least: u32) {
        let digits = eight_digits(v);
        let skipped = (digits.trailing_zeros() / 8).min(8 - least);
        self.padded(&ascii(digits >> (8 * skipped)), (8 - skipped) as usize);
    }

    /// Appends a decimal: `-12345` at scale 2 is `-123.45`.
    #[inline(always)]
    pub(super) fn decimal(&mut self, v: i128, scale: u8) {
        let size = v.unsigned_abs();
        let (1..=7, Ok(size)) = (scale, u64::try_from(size)) else {
            return self.slow(|text| write_decimal(text, v, scale));
        };
        if v < 0 {
            self.byte(b'-');
        }
        self.digits(size, u32::from(scale) + 1);
        // The digits behind the point move by one place.
        let start = self.len - usize::from(scale);
        let end = &mut self.bytes[start..start + 9];
        let moved: [u8; 8] = *end.first_chunk().expect("there are nine bytes");
        end[1..].copy_from_slice(&moved);
        end[0] = b'.';
        self.len += 1;
    }

    /// Appends a double.
    #[inline(always)]
    pub(super) fn double(&mut self, v: f64) {
        // Beyond these it is written with an exponent.
        if v == 0.0 || ((1e-4..1e16).contains(&v.abs()) && !may_be_halfway(v)) {
            return self.plain(ryu::Buffer::new().format_finite(v).as_bytes());
        }
        self.slow(|text| write!(text, "{}", Value::Float(v).display(DataType::Float64)));
    }

    /// Appends a float of single precision.
    pub(super) fn single(&mut self, v: f32) {
        self.slow(|text| write!(text, "{}", Value::Float(v.into()).display(DataType::Float32)));
    }

    /// Appends a day.
    #[inline(always)]
    pub(super) fn date(&mut self, days: i64) {
        match usual_date(days) {
            Some(date) => self.padded(&date, 10),
            None => self.slow(|text| write_date(text, days)),
        }
    }

    /// Appends a time of day.
    #[inline(always)]
    pub(super) fn time(&mut self, micros: i64) {
        if !(0..=MICROS_PER_DAY).contains(&micros) {
            return self.slow(|text| write_time(text, micros));
        }
        let (seconds, fraction) = ((micros / 1_000_000) as u32, (micros % 1_000_000) as u32);
        let two = |v: u32| TWO_DIGITS[(v % 100) as usize];
        let ([a, b], [c, d], [e, f]) = (two(seconds / 3600), two(seconds / 60 % 60), two(seconds % 60));
        self.padded(&[a, b, b':', c, d, b':', e, f], 8);
        if fraction != 0 {
            self.byte(b'.');
            // Six digits, then two zeros, of which none count at the end.
            let digits = eight_digits(fraction * 100);
            self.padded(&ascii(digits), 8 - digits.leading_zeros() as usize / 8);
        }
    }

    /// Appends a timestamp.
    #[inline(always)]
    pub(super) fn timestamp(&mut self, micros: i64) {
        match usual_date(micros.div_euclid(MICROS_PER_DAY)) {
            Some(date) => {
                self.padded(&date, 10);
                self.byte(b' ');
                self.time(micros.rem_euclid(MICROS_PER_DAY));
            }
            None => self.slow(|text| write_timestamp(text, micros)),
        }
    }

    /// Appends bytes.
    #[inline(always)]
    pub(crate) fn plain(&mut self, bytes: &[u8]) {
        self.end(bytes.len() + ROOM)[..bytes.len()].copy_from_slice(bytes);
        self.len += bytes.len();
    }

    #[cold]
    fn slow(&mut self, write: impl FnOnce(&mut Text) -> fmt::Result) {
        write(self).expect("writing to memory does not fail");
    }
}

impl Write for Text {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.plain(text.as_bytes());
        Ok(())
    }
}

/// Text that is handed on while it is written: a value may be longer than any buffer should be.
pub(crate) struct Parts<'a> {
    text: &'a mut Text,
    take: Take<'a>,
    /// Why a part could not be handed on.
    failed: Option<Error>,
}

impl<'a> Parts<'a> {
    /// What is appended to `text` is handed on to `take`.
    pub(crate) fn new(text: &'a mut Text, take: Take<'a>) -> Parts<'a> {
        Parts { text, take, failed: None }
    }

    /// Calls `write`.
    ///
    /// # Errors
    /// Those of handing on.
    pub(crate) fn write(&mut self, write: impl FnOnce(&mut Parts<'a>) -> fmt::Result) -> Result<()> {
        match write(self) {
            Ok(()) => Ok(()),
            Err(_) => Err(self.failed.take().unwrap_or_else(|| Error::internal("a value cannot be written"))),
        }
    }
}

impl Write for Parts<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for part in text.as_bytes().chunks(PART_BYTES) {
            self.text.plain(part);
            self.text.hand_on(self.take).map_err(|error| {
                self.failed = Some(error);
                fmt::Error
            })?;
        }
        Ok(())
    }
}

/// Bytes that make quotes necessary: four of them, each as all bytes of a word.
#[derive(Debug, Clone, Copy)]
pub(super) struct Special([u64; 4]);

/// One in each byte.
const ONES: u64 = 0x0101_0101_0101_0101;

impl Special {
    pub(super) fn new(bytes: [u8; 4]) -> Special {
        Special(bytes.map(|byte| u64::from(byte) * ONES))
    }

    /// True if `bytes` has one of them.
    pub(super) fn within(&self, bytes: &[u8]) -> bool {
        let word = |bytes: &[u8; 8]| u64::from_le_bytes(*bytes);
        match bytes.last_chunk() {
            Some(last) => {
                let (words, _) = bytes.as_chunks();
                words.iter().any(|first| self.in_words(word(first), word(last)))
            }
            None => bytes.iter().any(|&byte| self.0.iter().any(|all| *all as u8 == byte)),
        }
    }

    /// True if one of them is a byte of `a` or `b`.
    #[inline(always)]
    fn in_words(&self, a: u64, b: u64) -> bool {
        // The lowest zero byte, and perhaps others above it, borrow from their highest bit.
        let zeros = |word: u64| word.wrapping_sub(ONES) & !word;
        let found = self.0.iter().fold(0, |found, all| found | zeros(a ^ all) | zeros(b ^ all));
        found & (ONES << 7) != 0
    }
}

/// True if a number of at least 10⁻⁴ may be halfway between two texts that are its shortest: `ryu` takes the
/// even digit then, and the standard library the other one.
///
/// Neighbours of the number are 2⁻ᶠ away, and it has g digits behind the point, as it is a multiple of 2⁻ᵍ.
/// So its shortest texts have g − 1 of them, which are about as many as 2⁻ᶠ needs.
#[inline(always)]
fn may_be_halfway(v: f64) -> bool {
    let bits = v.to_bits();
    let f = 52 + 1023 - ((bits >> 52) & 0x7FF) as i64;
    let g = f - i64::from((bits | (1 << 52)).trailing_zeros());
    // f · log₁₀ 2, with a digit to spare on either side.
    let needed = f * 30_103;
    g > 0 && (g - 3) * 100_000 < needed && needed <= g * 100_000
}

/// The eight digits of a number below 10⁸, one a byte, the first one in the lowest.
#[inline(always)]
fn eight_digits(v: u32) -> u64 {
    debug_assert!(v < 100_000_000);
    // Lanes of 32, 16 and 8 bits. Each quotient is exact for all dividends that its lane can have.
    let fours = u64::from(v / 10_000) | (u64::from(v % 10_000) << 32);
    let hundreds = ((fours * 10_486) >> 20) & 0x0000_007F_0000_007F;
    let twos = hundreds | ((fours - hundreds * 100) << 16);
    let tens = ((twos * 103) >> 10) & 0x000F_000F_000F_000F;
    tens | ((twos - tens * 10) << 8)
}

#[inline(always)]
fn ascii(digits: u64) -> [u8; 8] {
    (digits | (ONES * u64::from(b'0'))).to_le_bytes()
}

/// The digits of the numbers below 100.
const TWO_DIGITS: [[u8; 2]; 100] = {
    let mut digits = [[0; 2]; 100];
    let mut v = 0;
    while v < 100 {
        digits[v] = [b'0' + v as u8 / 10, b'0' + v as u8 % 10];
        v += 1;
    }
    digits
};

/// A date in the years 1 to 9999.
#[inline(always)]
fn usual_date(days: i64) -> Option<[u8; 10]> {
    if days < days_from_civil(1, 1, 1) || days > days_from_civil(9999, 12, 31) {
        return None;
    }
    let (year, month, day) = civil_from_days(days);
    let two = |v: usize| TWO_DIGITS[v % 100];
    let ([a, b], [c, d]) = (two(year as usize / 100), two(year as usize));
    let ([e, f], [g, h]) = (two(month as usize), two(day as usize));
    Some([a, b, c, d, b'-', e, f, b'-', g, h])
}

/// For tests: what is handed on when `write` writes a chunk with a column of these values, and the most bytes
/// that are in the buffer meanwhile.
#[cfg(test)]
pub(crate) fn handed_on(
    values: &[Value],
    ty: DataType,
    write: impl FnOnce(&entasis_vector::Chunk, &entasis_vector::Schema, &mut Text, Take<'_>) -> Result<()>,
) -> (Vec<u8>, usize) {
    use entasis_vector::{Chunk, Field, Selection};
    let mut chunk = Chunk::new();
    chunk.reset(values.len());
    let group = chunk.push_group(Selection::ALL);
    chunk.push_column(entasis_arrow::vector_of(values, ty).unwrap(), group);
    let (mut text, mut all, mut most) = (Text::default(), Vec::new(), 0);
    let mut take = |text: &mut Text| {
        most = most.max(text.len());
        all.extend_from_slice(text.as_bytes());
        text.clear();
        Ok(())
    };
    write(&chunk, &vec![Field::new("a", ty)], &mut text, &mut take).unwrap();
    take(&mut text).unwrap();
    (all, most)
}

#[cfg(test)]
mod tests {
    use super::*;
    use entasis_vector::types::{INFINITE_DATE, INFINITE_TIMESTAMP};

    /// Numbers of all lengths, near the powers of ten and two, and others, of both signs.
    fn numbers() -> Vec<i64> {
        let mut numbers = vec![0, i64::MIN, i64::MAX];
        for digits in 0..19 {
            numbers.extend([-1, 0, 1].map(|d| 10i64.pow(digits) + d));
        }
        let mut state = 1u64;
        for i in 0..40_000 {
            state = state.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(0x1405_7B7E_F767_814F);
            numbers.push((state >> (i % 64)) as i64);
        }
        numbers.extend((0..63).map(|bit| 1i64 << bit));
        numbers.iter().flat_map(|&n| [n, n.wrapping_neg()]).collect()
    }

    fn written(write: impl FnOnce(&mut Text)) -> String {
        // What was there before must not shine through.
        let mut text = Text::default();
        text.plain(&[b'~'; 100]);
        text.clear();
        write(&mut text);
        String::from_utf8(text.as_bytes().to_vec()).unwrap()
    }

    fn shown(value: Value, ty: DataType) -> String {
        value.display(ty).to_string()
    }

    #[test]
    fn values_are_written_as_they_are_displayed() {
        for n in numbers() {
            let integer = Value::Integer(n.into());
            assert_eq!(written(|text| text.integer(n)), n.to_string());
            assert_eq!(written(|text| text.digits(n as u64, 1)), (n as u64).to_string());
            for scale in 0..=18 {
                let ty = DataType::Decimal { precision: 18, scale };
                let (v, text) = (i128::from(n), shown(integer.clone(), ty));
                assert_eq!(written(|text| text.decimal(v, scale)), text);
            }
            let wide = i128::from(n) << 63;
            let ty = DataType::Decimal { precision: 38, scale: 3 };
            assert_eq!(written(|text| text.decimal(wide, 3)), shown(Value::Integer(wide), ty));
            let days = n as i32;
            for days in [days, days % 100_000, days % 4_000_000] {
                let text = shown(Value::Integer(days.into()), DataType::Date);
                assert_eq!(written(|text| text.date(days.into())), text);
            }
            for micros in [n, n % (MICROS_PER_DAY * 100_000), n / 1_000_000 * 1_000_000] {
                let text = shown(Value::Integer(micros.into()), DataType::Timestamp);
                assert_eq!(written(|text| text.timestamp(micros)), text);
            }
            for micros in [n, n.rem_euclid(MICROS_PER_DAY), n.rem_euclid(86_400) * 1_000_000] {
                let text = shown(Value::Integer(micros.into()), DataType::Time);
                assert_eq!(written(|text| text.time(micros)), text);
            }
        }
        for days in [INFINITE_DATE, -INFINITE_DATE] {
            assert!(written(|text| text.date(days.into())).ends_with("infinity"));
        }
        assert_eq!(written(|text| text.timestamp(-INFINITE_TIMESTAMP)), "-infinity");
        assert_eq!(written(|text| text.time(MICROS_PER_DAY)), "24:00:00");
    }

    #[test]
    fn floats_are_written_as_they_are_displayed() {
        let ends = [0.0, 1e-4, 1e-5, 1e15, 1e16, 1e17, 0.3, 1.0, f64::MAX, f64::MIN_POSITIVE, f64::INFINITY];
        let doubles = ends.into_iter().flat_map(|v| [v, v.next_up(), v.next_down(), v * 9.99]);
        let bits = numbers().into_iter().map(|n| f64::from_bits(n as u64));
        let usual = numbers().into_iter().flat_map(|n| [n as f64, n as f64 / 100.0, 1.0 / n as f64]);
        // Some of these are halfway between two texts.
        let halves = (0..64).flat_map(|g| (0..1500).map(move |n| (n * n * 37 + 1) as f64 / 2f64.powi(g)));
        let large = numbers().into_iter().flat_map(|n| [n as f64 / 4.0, n as f64 / 16384.0]);
        for v in doubles.chain(bits).chain(usual).chain(halves).chain(large).flat_map(|v| [v, -v]) {
            assert_eq!(written(|text| text.double(v)), shown(Value::Float(v), DataType::Float64));
            let single = v as f32;
            let text = shown(Value::Float(single.into()), DataType::Float32);
            assert_eq!(written(|text| text.single(single)), text);
        }
    }

    #[test]
    fn special_bytes_are_found_wherever_they_are() {
        let special = Special::new([b',', b'"', b'\n', b'\r']);
        for length in 0..70 {
            // Bytes that differ from a special one by a bit, or have its lower bits.
            let plain: Vec<u8> =
                (0..length).map(|i| [b'-', b'#', b'\x0B', 0, 0xAC, b' ', 0xFF][i % 7]).collect();
            let found = |bytes: &[u8]| {
                let mut text = Text::default();
                let found = text.bytes(bytes, &special);
                assert_eq!(text.as_bytes(), bytes);
                found
            };
            assert!(!found(&plain));
            for at in 0..length {
                for byte in [b',', b'"', b'\n', b'\r'] {
                    let mut bytes = plain.clone();
                    bytes[at] = byte;
                    assert!(found(&bytes), "{byte} at {at} of {length}");
                }
            }
        }
    }
}
