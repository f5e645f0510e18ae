//! Where a row is on a space-filling curve through the columns of its layout key: one word.
//!
//! ```text
//! value ─▶ rank, 0 to 1023, by the quantiles of a sample (Grid) ─▶ position on the curve, 20 to 40 bits
//! ```
//! Ranks rather than values, so that each column is cut where its rows are: skew, gaps and values far out do
//! not spoil the curve. A value that many rows have takes as many ranks as they are worth, so that columns of
//! few values share the bits of the position evenly with others. NULL has the greatest rank.
//!
//! **The grid is made once.** The first rows that come in bulk give the sample ([`CurveKey::settle`]). If a
//! key is computed before, there is none, and rows are laid out by the first column until the table is laid
//! anew. Whichever happens first holds as long as the table, for all its versions and forks: so two keys of a
//! table always compare. A table that is laid anew is another one, with another grid.
//!
//! Files have grids and positions, so both must not change.
//!
//! Not done: ranges of positions for a box of values, since the zones of blocks find as much; grids that
//! follow the rows.

use super::{count_not_above, float_word};
use crate::definition::Curve;
use crate::value::Datum;
use entasis_vector::{DataType, PhysicalType};
use std::sync::{Arc, OnceLock};

/// Bits of a rank.
const BITS: u32 = 10;
/// The greatest rank.
const LAST_RANK: u32 = (1 << BITS) - 1;
/// Bytes of a text that a grid keeps at most.
const TEXT_BYTES: usize = 64;
/// Rows that give a grid, at least: fewer say too little of those that will come.
pub(crate) const GRID_ROWS: usize = if cfg!(test) { 32 } else { 1024 };
/// Rows of the sample that gives a grid, about.
pub(crate) const GRID_SAMPLE: usize = 1 << 15;

/// The part of a layout key that says where rows are on a curve.
#[derive(Debug, Clone)]
pub(crate) struct CurveKey {
    curve: Curve,
    /// Not there before it is needed; `None` in it if there was no sample then.
    grid: OnceLock<Option<Arc<Grid>>>,
}

/// For each column of a layout key, where ranks begin.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Grid {
    pub(crate) columns: Vec<Bounds>,
}

/// The quantiles of a column, ascending; a value that is frequent comes several times. At most as many as the
/// greatest rank.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Bounds {
    /// Of values that have a word ([`word_of`]).
    Words(Vec<u64>),
    /// Of texts and bytes: their first bytes, without NULLs.
    Texts(Vec<Box<[u8]>>),
}

impl CurveKey {
    pub(super) fn new(curve: Curve) -> CurveKey {
        CurveKey { curve, grid: OnceLock::new() }
    }

    pub(super) fn curve(&self) -> Curve {
        self.curve
    }

    /// The position of a row; `get` gives the columns of the key, of these types.
    #[inline]
    pub(super) fn position<'a>(&self, types: &[DataType], get: impl Fn(usize) -> Datum<'a>) -> u64 {
        match self.grid.get_or_init(|| None) {
            None => word_of(get(0), types[0]),
            Some(grid) => {
                let mut ranks = [0; 4];
                for (number, bounds) in grid.columns.iter().enumerate() {
                    ranks[number] = bounds.rank(get(number), types[number]);
                }
                position(self.curve, &ranks[..grid.columns.len()], BITS)
            }
        }
    }

    /// Makes the grid of a sample, unless keys have been computed before: for each column its values.
    pub(super) fn settle<'a>(&self, types: &[DataType], sample: impl FnOnce() -> Vec<Vec<Datum<'a>>>) {
        self.grid.get_or_init(|| {
            let columns = sample().into_iter().zip(types);
            let columns = columns.map(|(values, &ty)| Bounds::of(values, ty)).collect();
            Some(Arc::new(Grid { columns }))
        });
    }

    /// The grid, as far as it is decided whether there is one.
    pub(crate) fn grid(&self) -> Option<Option<Arc<Grid>>> {
        self.grid.get().cloned()
    }

    /// Takes a grid over, unless one has been decided on.
    pub(crate) fn adopt(&self, grid: Option<Option<Arc<Grid>>>) {
        if let Some(grid) = grid {
            self.grid.get_or_init(|| grid);
        }
    }
}

impl Bounds {
    /// The quantiles of some values.
    fn of(values: Vec<Datum<'_>>, ty: DataType) -> Bounds {
        let count = values.len();
        let numbers = (1..=LAST_RANK as usize).map(|number| number * count / (LAST_RANK as usize + 1));
        if Bounds::are_texts(ty) {
            let mut texts: Vec<&[u8]> = values.into_iter().filter_map(bytes_of).collect();
            texts.sort_unstable();
            // NULLs come behind all texts.
            let quantiles = numbers.filter_map(|number| texts.get(number));
            return Bounds::Texts(quantiles.map(|text| text[..text.len().min(TEXT_BYTES)].into()).collect());
        }
        let mut words: Vec<u64> = values.into_iter().map(|value| word_of(value, ty)).collect();
        words.sort_unstable();
        Bounds::Words(numbers.filter_map(|number| words.get(number).copied()).collect())
    }

    /// The number of quantiles that are not above a value.
    #[inline]
    fn rank(&self, value: Datum<'_>, ty: DataType) -> u32 {
        let not_above = match (self, value) {
            (_, Datum::Null) => return LAST_RANK,
            (Bounds::Words(words), value) => count_not_above(words, word_of(value, ty)),
            (Bounds::Texts(texts), value) => {
                let bytes = bytes_of(value).unwrap_or_default();
                texts.partition_point(|text| **text <= *bytes)
            }
        };
        not_above as u32
    }

    /// True if the bounds of a column of this type are texts.
    pub(crate) fn are_texts(ty: DataType) -> bool {
        ty.physical() == PhysicalType::Str
    }

    /// True if the quantiles ascend and are not too many.
    pub(crate) fn is_sound(&self) -> bool {
        match self {
            Bounds::Words(words) => words.len() <= LAST_RANK as usize && words.is_sorted(),
            Bounds::Texts(texts) => texts.len() <= LAST_RANK as usize && texts.is_sorted(),
        }
    }
}

fn bytes_of(datum: Datum<'_>) -> Option<&[u8]> {
    match datum {
        Datum::Bytes(bytes) => Some(bytes),
        _ => None,
    }
}

/// A word in the order of the values of a type, greatest for NULL. Values beyond 64 bits, and texts that
/// begin alike, may have the same one.
fn word_of(datum: Datum<'_>, ty: DataType) -> u64 {
    let clamped = |v: i128| (v.clamp(i64::MIN.into(), i64::MAX.into()) as u64) ^ (1 << 63);
    match datum {
        Datum::Null => u64::MAX,
        Datum::Integer(v) if ty == DataType::Uuid => clamped(v >> 64),
        Datum::Integer(v) if ty.physical() == PhysicalType::U64 => v as u64,
        Datum::Integer(v) => clamped(v),
        Datum::Float(v) => float_word(v),
        Datum::Interval(v) => clamped(v.estimate()),
        Datum::Bytes(text) => {
            let mut first = [0; 8];
            let kept = text.len().min(8);
            first[..kept].copy_from_slice(&text[..kept]);
            u64::from_be_bytes(first)
        }
    }
}

/// The position of a point on a curve, where each coordinate has `bits` bits.
fn position(curve: Curve, point: &[u32], bits: u32) -> u64 {
    match curve {
        Curve::ZOrder => {
            (0..bits).rev().fold(0, |position, bit| position << point.len() | corner(point, bit))
        }
        Curve::Hilbert => hilbert(point, bits),
    }
}

/// The bits of all coordinates at one place, the first coordinate's on top: in which half of a cube the point
/// is, by each.
#[inline]
fn corner(point: &[u32], bit: u32) -> u64 {
    point.iter().fold(0, |corner, coordinate| corner << 1 | u64::from(coordinate >> bit & 1))
}

/// The position on Hilbert's curve, cube by cube from the largest on.
///
/// The curve goes through the corners of a cube in the order of the Gray code, where each differs from the
/// one before in one bit. The cube at each corner is gone through in the same way, but mirrored, so that it
/// begins beside the end of the one before (`start`), and turned, so that it ends beside the beginning of the
/// one that follows (`turn`).
fn hilbert(point: &[u32], bits: u32) -> u64 {
    let n = point.len() as u32;
    let all = (1u64 << n) - 1;
    let left = |word: u64, by: u32| ((word << by) | (word >> (n - by))) & all;
    let right = |word: u64, by: u32| ((word >> by) | (word << (n - by))) & all;
    let gray = |number: u64| number ^ number >> 1;
    let (mut start, mut turn, mut position) = (0, 0, 0);
    for bit in (0..bits).rev() {
        let unturned = right(corner(point, bit) ^ start, turn);
        // The number whose Gray code that is.
        let number = (1..n).fold(unturned, |number, by| number ^ unturned >> by);
        position = position << n | number;
        // Where the cube at this corner begins, and along which axis it leaves.
        let begins = if number == 0 { 0 } else { gray((number - 1) & !1) };
        let axis = match number {
            0 => 0,
            _ if number & 1 == 0 => (number - 1).trailing_ones(),
            _ => number.trailing_ones(),
        };
        start ^= left(begins, turn);
        turn = (turn + axis % n + 1) % n;
    }
    position
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::random::Random;
    use entasis_vector::Interval;

    /// All points of a cube with sides of so many bits, in the order of their positions.
    fn walk(curve: Curve, columns: u32, bits: u32) -> Vec<Vec<u32>> {
        let side = 1u32 << bits;
        let points = (0..side.pow(columns)).map(|number| {
            let coordinate = |axis: u32| number / side.pow(axis) % side;
            (0..columns).map(coordinate).collect::<Vec<u32>>()
        });
        let mut placed: Vec<(u64, Vec<u32>)> =
            points.map(|point| (position(curve, &point, bits), point)).collect();
        placed.sort_unstable();
        let positions: Vec<u64> = placed.iter().map(|(position, _)| *position).collect();
        assert_eq!(positions, (0..u64::from(side.pow(columns))).collect::<Vec<_>>(), "each place once");
        placed.into_iter().map(|(_, point)| point).collect()
    }

    const CUBES: [(u32, u32); 11] =
        [(2, 1), (2, 2), (2, 3), (2, 5), (2, 6), (3, 1), (3, 2), (3, 3), (4, 1), (4, 2), (4, 3)];

    #[test]
    fn hilberts_curve_goes_from_neighbour_to_neighbour() {
        for (columns, bits) in CUBES {
            for pair in walk(Curve::Hilbert, columns, bits).windows(2) {
                let distance: u32 = pair[0].iter().zip(&pair[1]).map(|(a, b)| a.abs_diff(*b)).sum();
                assert_eq!(distance, 1, "{columns} columns of {bits} bits: {pair:?}");
            }
        }
    }

    /// In the plane: four curves of half the size, the first and the last one with their axes exchanged, so
    /// that it begins and ends in corners of one side.
    fn drawn(bits: u32) -> Vec<Vec<u32>> {
        if bits == 0 {
            return vec![vec![0, 0]];
        }
        let (half, small) = (1 << (bits - 1), drawn(bits - 1));
        let part = |of: &dyn Fn(u32, u32) -> [u32; 2]| {
            small.iter().map(|point| of(point[0], point[1]).to_vec()).collect::<Vec<_>>()
        };
        [
            part(&|x, y| [y, x]),
            part(&|x, y| [x, y + half]),
            part(&|x, y| [x + half, y + half]),
            part(&|x, y| [2 * half - 1 - y, half - 1 - x]),
        ]
        .concat()
    }

    #[test]
    fn hilberts_curve_is_drawn_by_recursion() {
        (0..7).for_each(|bits| assert_eq!(walk(Curve::Hilbert, 2, bits), drawn(bits), "{bits} bits"));
    }

    /// A position to few bits is the beginning of one to more bits.
    #[test]
    fn coarse_positions_begin_fine_ones() {
        let mut random = Random(7);
        for _ in 0..2000 {
            let point: Vec<u32> = (0..2 + random.below(3)).map(|_| random.below(1 << BITS) as u32).collect();
            for curve in [Curve::ZOrder, Curve::Hilbert] {
                let fine = position(curve, &point, BITS);
                let coarse: Vec<u32> = point.iter().map(|coordinate| coordinate >> 4).collect();
                assert_eq!(position(curve, &coarse, BITS - 4), fine >> (4 * point.len()));
            }
        }
    }

    /// The twin writes the bits of all columns as digits, by turns.
    #[test]
    fn z_order_takes_bits_by_turns() {
        let mut random = Random(3);
        for _ in 0..2000 {
            let point: Vec<u32> = (0..2 + random.below(3)).map(|_| random.below(1 << BITS) as u32).collect();
            let digits: Vec<Vec<char>> =
                point.iter().map(|own| format!("{own:010b}").chars().collect()).collect();
            let by_turns: String = (0..10).flat_map(|at| digits.iter().map(move |own| own[at])).collect();
            let expected = u64::from_str_radix(&by_turns, 2).expect("digits");
            assert_eq!(position(Curve::ZOrder, &point, BITS), expected);
        }
        CUBES.iter().for_each(|&(columns, bits)| drop(walk(Curve::ZOrder, columns, bits)));
    }

    #[test]
    fn ranks_ascend_with_values() {
        let mut random = Random(11);
        let types = [
            DataType::Int32,
            DataType::Int64,
            DataType::UInt64,
            DataType::Float64,
            DataType::Varchar,
            DataType::Interval,
            DataType::Uuid,
            DataType::Decimal { precision: 38, scale: 2 },
        ];
        for ty in types {
            let raw: Vec<u64> =
                (0..400).map(|_| random.next() >> random.below(64) >> random.below(8)).collect();
            let texts: Vec<String> = raw.iter().map(|raw| format!("http://{raw:x}")).collect();
            let datum = |number: usize| match (ty, raw[number]) {
                (_, raw) if raw % 13 == 0 => Datum::Null,
                (DataType::Float64, raw) => Datum::Float([raw as f64, -0.0, 0.0, f64::NAN][number % 4]),
                (DataType::Varchar, _) => Datum::Bytes(texts[number].as_bytes()),
                (DataType::Interval, raw) => {
                    Datum::Interval(Interval { months: 0, days: raw as i32 >> 8, micros: 3 })
                }
                (DataType::Int32, raw) => Datum::Integer(i128::from(raw as i32)),
                (DataType::Int64, raw) => Datum::Integer(i128::from(raw as i64)),
                (DataType::UInt64, raw) => Datum::Integer(raw.into()),
                (_, raw) => Datum::Integer(i128::from(raw as i64) << (number % 60)),
            };
            // Some of the values are not in the sample.
            let bounds = Bounds::of((0..300).map(datum).collect(), ty);
            assert!(bounds.is_sound());
            for a in 0..400 {
                for b in 0..400 {
                    let (x, y) = (datum(a), datum(b));
                    if x.total_cmp(y).is_le() {
                        assert!(bounds.rank(x, ty) <= bounds.rank(y, ty), "{ty}: {x:?} {y:?}");
                        assert!(word_of(x, ty) <= word_of(y, ty), "{ty}: {x:?} {y:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn ranks_are_shared_out_by_rows() {
        // Half of the rows have one value; the others are far apart.
        let values: Vec<i128> = (0..4096).map(|i| if i < 2048 { 7 } else { 7 + (i - 2047) * i }).collect();
        let bounds = Bounds::of(values.iter().copied().map(Datum::Integer).collect(), DataType::Int64);
        let rank = |value: i128| bounds.rank(Datum::Integer(value), DataType::Int64);
        assert_eq!((rank(6), rank(i128::MAX)), (0, LAST_RANK));
        assert!((500..=512).contains(&rank(7)), "{}", rank(7));
        assert!((760..=776).contains(&rank(values[3072])), "{}", rank(values[3072]));
    }

    /// Whatever comes first decides for all keys.
    #[test]
    fn a_grid_is_made_once() {
        let types = [DataType::Int64, DataType::Int64];
        let row = [Datum::Integer(5), Datum::Integer(9)];
        let sample = || vec![(0..100).map(Datum::Integer).collect(), (0..100).map(Datum::Integer).collect()];
        let early = CurveKey::new(Curve::Hilbert);
        assert_eq!(early.position(&types, |column| row[column]), word_of(row[0], types[0]));
        early.settle(&types, sample);
        assert_eq!(early.grid(), Some(None));
        let settled = CurveKey::new(Curve::Hilbert);
        assert_eq!(settled.grid(), None);
        settled.settle(&types, sample);
        let at = settled.position(&types, |column| row[column]);
        assert_ne!(at, word_of(row[0], types[0]));
        let other = CurveKey::new(Curve::Hilbert);
        other.adopt(None);
        other.adopt(settled.grid());
        other.settle(&types, || unreachable!("there is a grid"));
        assert_eq!(other.position(&types, |column| row[column]), at);
    }
}
