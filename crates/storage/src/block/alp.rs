//! Doubles as decimal integers: the pure part of ALP, adaptive lossless floating-point compression.
//!
//! The idea. Most doubles in a database were born as decimals: prices, sensor values, coordinates. Such a
//! value is a small integer, its digits, divided by a power of ten. The integers pack well with a frame of
//! reference and bit-packing; the doubles do not. The method is that of Afroozeh, Kuffo and Boncz, "ALP:
//! Adaptive Lossless floating-Point Compression", SIGMOD 2023, section 3.
//!
//! The steps, for a block of values:
//! 1. [`Scale::choose`] looks at a small sample and picks one exponent and one factor for the block.
//! 2. [`Scale::encode`] maps each value to a digit, `round(value * 10^exponent * 10^-factor)`. A value that
//!    does not come back bit for bit is an exception: it is kept whole, with its position.
//! 3. [`Scale::decode`] maps a digit back, `digit * 10^factor * 10^-exponent`. The caller then writes the
//!    exceptions over their positions.
//!
//! Why two powers and not one: the double next to `10^-2` is off by a large part of its last bit, the one
//! next to `10^-14` is nearly exact. So `digit * 10^12 * 10^-14` comes back right far more often than
//! `digit * 10^-2`.
//!
//! Rounding adds the magic number `2^52 + 2^51`: the sum has no bits left for a fraction, and its mantissa
//! holds the integer. The same number turns the integer back into a double. Both directions are plain
//! additions, so the loops vectorize also where the machine has no instruction between doubles and 64-bit
//! integers.
//!
//! Invariants:
//! - Encode and decode give every value back bit for bit, whatever the scale: NaN payloads and -0.0 are
//!   exceptions.
//! - Every digit of [`Scale::encode`] is within plus and minus [`DIGIT_LIMIT`], where the magic number holds.
//! - The digit of an exception is the digit of a regular value of the block, so it does not widen the range.
//!
//! What it does not do: it packs no bits and writes no bytes. For doubles that are no decimals
//! [`Scale::choose`] returns `None`; the paper's way for those, ALP-RD, is [`super::split`]. It samples each
//! block alone, with no first level over a row group.

use std::ops::RangeInclusive;

/// The largest exponent, and the largest factor. `10^18` is an exact double.
const LARGEST_EXPONENT: u8 = 18;

/// `10^n`, each one exact.
const POWERS: [f64; LARGEST_EXPONENT as usize + 1] =
    [1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18];

/// `10^-n`, each one the nearest double.
const INVERSE_POWERS: [f64; LARGEST_EXPONENT as usize + 1] = [
    1e0, 1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8, 1e-9, 1e-10, 1e-11, 1e-12, 1e-13, 1e-14, 1e-15,
    1e-16, 1e-17, 1e-18,
];

/// The exponents, those first whose `10^-n` has the smallest relative error as a double. The smaller that
/// error, the fewer values fail to come back, and a sample of a few values does not show the difference.
const EXPONENTS_BY_ERROR: [u8; LARGEST_EXPONENT as usize + 1] =
    [0, 14, 12, 2, 3, 16, 8, 13, 10, 6, 7, 4, 1, 11, 9, 17, 18, 15, 5];

/// The number that rounds what is added to it: `2^52 + 2^51`.
const MAGIC: f64 = ((1_u64 << 52) + (1_u64 << 51)) as f64;

/// The bits of [`MAGIC`]; the bits of `MAGIC + digit` are these plus the digit.
const MAGIC_BITS: i64 = MAGIC.to_bits() as i64;

/// The largest digit; the smallest is its negative. It is `2^51 - 1`, the magic number holds for no more.
const DIGIT_LIMIT: i64 = (1 << 51) - 1;

/// [`DIGIT_LIMIT`] as a double.
const LIMIT: f64 = DIGIT_LIMIT as f64;

/// How many values of a block [`Scale::choose`] looks at.
const SAMPLE_SIZE: usize = 32;

/// How many values [`Scale::encode`] takes together.
const RUN_SIZE: usize = 64;

/// The bits of an exception: the value and its position.
const EXCEPTION_BITS: u64 = 80;

/// The bits of a value as it is.
const VALUE_BITS: u64 = 64;

/// The whole bits by which one more decimal widens a range of digits.
const DECIMAL_BITS: u64 = 3;

/// The exponent and the factor that a block's values share; the factor is at most the exponent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Scale {
    /// The power of ten that a value is multiplied by.
    exponent: u8,
    /// The power of ten that is taken off again, the zeros at the end of the digits.
    factor: u8,
}

/// What a scale makes of a sample.
struct Estimate {
    /// The scale.
    scale: Scale,
    /// How many values of the sample are exceptions.
    exceptions: usize,
    /// The size of the sample, encoded.
    bits: u64,
}

impl Estimate {
    /// Whether no scale with this many decimals can do better. It could at best save the exceptions that are
    /// not hopeless, and each further decimal widens the range.
    fn is_final_at(&self, decimals: u8, hopeless: usize) -> bool {
        let gain = EXCEPTION_BITS * self.exceptions.saturating_sub(hopeless) as u64;
        gain <= DECIMAL_BITS * SAMPLE_SIZE as u64 * u64::from(decimals - self.scale.decimals())
    }
}

impl Scale {
    /// The exponent and the factor.
    pub(crate) fn parts(self) -> (u8, u8) {
        (self.exponent, self.factor)
    }

    /// The inverse of [`Scale::parts`]; `None` if they are none of a scale.
    pub(crate) fn of_parts(exponent: u8, factor: u8) -> Option<Scale> {
        (factor <= exponent && exponent <= LARGEST_EXPONENT).then_some(Scale { exponent, factor })
    }

    /// How many decimals the digits keep.
    fn decimals(self) -> u8 {
        self.exponent - self.factor
    }

    /// The scale with the smallest estimated size over a sample of the values. `None` if more than half of
    /// the sample would be exceptions, or if the estimate is no smaller than the values as they are.
    ///
    /// The search goes by the decimals kept, fewest first; a look at the decimals alone drops most of them at
    /// once. Scales that keep the same decimals give the same digits and differ only in their exceptions.
    /// Each further decimal makes every digit ten times larger, so the search ends where that costs more than
    /// all exceptions left. The one case it misses is an outlier that just fits, where one more decimal would
    /// make it an exception and the rest smaller.
    pub(crate) fn choose(values: &[f64]) -> Option<Self> {
        let sample = sample_of(values)?;
        let hopeless = sample.iter().filter(|value| is_hopeless(**value)).count();
        let mut best: Option<Estimate> = None;
        let mut best_bits = VALUE_BITS * SAMPLE_SIZE as u64;
        let decimals = (0..=LARGEST_EXPONENT).filter(|decimals| mostly_have(&sample, *decimals));
        for scale in decimals.flat_map(Self::with_decimals) {
            if best.as_ref().is_some_and(|best| best.is_final_at(scale.decimals(), hopeless)) {
                break;
            }
            if let Some(better) = scale.estimate(&sample, best_bits) {
                best_bits = better.bits;
                best = Some(better);
            }
        }
        best.map(|best| best.scale)
    }

    /// The scales that keep this many decimals, the most exact first.
    fn with_decimals(decimals: u8) -> impl Iterator<Item = Self> {
        let exponents = EXPONENTS_BY_ERROR.into_iter().filter(move |exponent| *exponent >= decimals);
        exponents.map(move |exponent| Self { exponent, factor: exponent - decimals })
    }

    /// What this scale makes of the sample; `None` if more than half are exceptions, or if it takes no less
    /// than `best_bits`.
    fn estimate(self, sample: &[f64; SAMPLE_SIZE], best_bits: u64) -> Option<Estimate> {
        let digits = sample.map(|value| self.digit_of(value));
        let differences = self.differences(sample, &digits);
        let exceptions = differences.iter().filter(|difference| **difference != 0).count();
        let exception_bits = EXCEPTION_BITS * exceptions as u64;
        if exceptions > SAMPLE_SIZE / 2 || exception_bits >= best_bits {
            return None;
        }
        let regular = digits.into_iter().zip(differences).filter(|(_, difference)| *difference == 0);
        let bits = exception_bits + SAMPLE_SIZE as u64 * range_bits(regular.map(|(digit, _)| digit));
        (bits < best_bits).then_some(Estimate { scale: self, exceptions, bits })
    }

    /// Replaces `digits` by one digit for each value, and `exceptions` by the values that do not come back
    /// bit for bit, each with its position, in the order of the positions. A block has at most `2^16` values.
    pub(crate) fn encode(self, values: &[f64], digits: &mut Vec<i64>, exceptions: &mut Vec<(u16, f64)>) {
        debug_assert!(values.len() <= 1 << 16, "a position is 16 bits");
        digits.clear();
        digits.reserve(values.len() + RUN_SIZE);
        exceptions.clear();
        let (runs, rest) = values.as_chunks();
        for run in runs {
            self.encode_run(run, digits, exceptions);
        }
        if !rest.is_empty() {
            let mut last_run = [0.0; RUN_SIZE];
            last_run[..rest.len()].copy_from_slice(rest);
            self.encode_run(&last_run, digits, exceptions);
            digits.truncate(values.len());
        }
        let filler = first_regular_digit(digits, exceptions);
        for (position, _) in exceptions {
            digits[usize::from(*position)] = filler;
        }
    }

    /// Adds the digits and the exceptions of a run. It looks at single values only if one of them is an
    /// exception. The zeros that fill up the last run are never exceptions.
    fn encode_run(self, run: &[f64; RUN_SIZE], digits: &mut Vec<i64>, exceptions: &mut Vec<(u16, f64)>) {
        let run_digits = run.map(|value| self.digit_of(value));
        let differences = self.differences(run, &run_digits);
        if differences.iter().fold(0, |any, difference| any | difference) != 0 {
            let positions = digits.len()..;
            let failed =
                positions.zip(run.iter().zip(differences)).filter(|(_, (_, difference))| *difference != 0);
            exceptions.extend(failed.map(|(position, (value, _))| (position as u16, *value)));
        }
        digits.extend_from_slice(&run_digits);
    }

    /// The bits in which each value differs from what its digit gives back; 0 says that it comes back.
    #[inline(always)]
    fn differences<const COUNT: usize>(self, values: &[f64; COUNT], digits: &[i64; COUNT]) -> [u64; COUNT] {
        std::array::from_fn(|number| values[number].to_bits() ^ self.decode(digits[number]).to_bits())
    }

    /// The digit of the value, right or not: of NaN and of a value too large it is a limit of the digits.
    #[inline(always)]
    fn digit_of(self, value: f64) -> i64 {
        let scaled = value * POWERS[usize::from(self.exponent)] * INVERSE_POWERS[usize::from(self.factor)];
        (within_limits(scaled) + MAGIC).to_bits() as i64 - MAGIC_BITS
    }

    /// The value of the digit. A digit beyond [`DIGIT_LIMIT`], as only damaged data has it, gives some value.
    #[inline(always)]
    pub(crate) fn decode(self, digit: i64) -> f64 {
        let whole = f64::from_bits(MAGIC_BITS.wrapping_add(digit) as u64) - MAGIC;
        whole * POWERS[usize::from(self.factor)] * INVERSE_POWERS[usize::from(self.exponent)]
    }
}

/// Ranges of values as ranges of digits.
impl Scale {
    /// The digits whose values lie from `low` to `high`, neither of them NaN unless there are none.
    ///
    /// Values ascend with their digits, since each step of decoding does. So the range is found from its
    /// ends: from the digits that they would have, which rounding may leave one or two off.
    pub(crate) fn digits_within(self, low: f64, high: f64) -> RangeInclusive<i64> {
        if low.is_nan() || high.is_nan() {
            return RangeInclusive::new(0, -1);
        }
        let mut first = self.digit_of(low);
        while first > -DIGIT_LIMIT && self.decode(first - 1) >= low {
            first -= 1;
        }
        while first <= DIGIT_LIMIT && self.decode(first) < low {
            first += 1;
        }
        let mut last = self.digit_of(high);
        while last < DIGIT_LIMIT && self.decode(last + 1) <= high {
            last += 1;
        }
        while last >= -DIGIT_LIMIT && self.decode(last) > high {
            last -= 1;
        }
        first..=last
    }
}

/// The scaled value, or the nearest limit of the digits if it is beyond; the lower limit for NaN. The
/// comparisons are written so that each one is a single instruction that takes care of NaN too.
#[inline(always)]
fn within_limits(scaled: f64) -> f64 {
    let from_below = if scaled > -LIMIT { scaled } else { -LIMIT };
    if from_below < LIMIT { from_below } else { LIMIT }
}

/// [`SAMPLE_SIZE`] of the values at even distances, the first and the last among them; some more than once if
/// there are fewer. `None` if there are none. In a block of 1024 the distance is 33, so that the sample does
/// not fall into step with a period of a power of two.
fn sample_of(values: &[f64]) -> Option<[f64; SAMPLE_SIZE]> {
    let last = values.len().checked_sub(1)?;
    Some(std::array::from_fn(|number| values[number * last / (SAMPLE_SIZE - 1)]))
}

/// The bits that the range of the digits takes.
fn range_bits(digits: impl Iterator<Item = i64>) -> u64 {
    let (low, high) =
        digits.fold((DIGIT_LIMIT, -DIGIT_LIMIT), |(low, high), digit| (low.min(digit), high.max(digit)));
    u64::from(u64::BITS - (high.max(low) - low).leading_zeros())
}

/// Whether at least half of the sample are the doubles next to a number with this many decimals. The division
/// rounds once only, so it finds every such value, where a scale may miss some. It does not find a value that
/// is no such double and that some scale gives back by chance; those are few.
fn mostly_have(sample: &[f64; SAMPLE_SIZE], decimals: u8) -> bool {
    let power = POWERS[usize::from(decimals)];
    let rounded = sample.map(|value| within_limits(value * power) + MAGIC - MAGIC);
    let kept = rounded.iter().zip(sample).filter(|(rounded, value)| **rounded / power == **value).count();
    kept >= SAMPLE_SIZE / 2
}

/// Whether the value is an exception in every scale: not finite, -0.0, too large or too small.
fn is_hopeless(value: f64) -> bool {
    let smallest = INVERSE_POWERS[usize::from(LARGEST_EXPONENT)];
    value.to_bits() != 0 && !(smallest..=LIMIT).contains(&value.abs())
}

/// The digit of the first value that is no exception, 0 if there is none.
fn first_regular_digit(digits: &[i64], exceptions: &[(u16, f64)]) -> i64 {
    let exceptions_first =
        (0..).zip(exceptions).take_while(|(count, (position, _))| *count == usize::from(*position));
    digits.get(exceptions_first.count()).copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A stream of random bits, always the same for the same seed.
    struct Random(u64);

    impl Random {
        /// The next 64 bits.
        fn bits(&mut self) -> u64 {
            self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            mixed ^ (mixed >> 31)
        }

        /// An integer from 0 on, less than `end`.
        fn below(&mut self, end: u64) -> u64 {
            self.bits() % end
        }

        /// An integer from `-end` to `end`.
        fn around_zero(&mut self, end: i64) -> i64 {
            self.below(2 * end as u64 + 1) as i64 - end
        }

        /// A value between 0 and 1 with all its bits.
        fn fraction(&mut self) -> f64 {
            (self.bits() >> 11) as f64 / (1_u64 << 53) as f64
        }

        /// A block of values, each made by `value`.
        fn block(&mut self, mut value: impl FnMut(&mut Self) -> f64) -> Vec<f64> {
            (0..1024).map(|_| value(self)).collect()
        }
    }

    /// The double that is nearest to `digits / 10^decimals`, as a parser of decimals gives it.
    fn decimal(digits: i64, decimals: u8) -> f64 {
        format!("{digits}e-{decimals}").parse().unwrap()
    }

    #[test]
    fn digits_of_a_range_are_those_of_its_values() {
        let mut random = Random(11);
        for decimals in 0..=LARGEST_EXPONENT {
            for scale in Scale::with_decimals(decimals) {
                for size in [10, 1 << 20, DIGIT_LIMIT - 3] {
                    let digit = random.around_zero(size);
                    let value = scale.decode(digit);
                    for bound in
                        [value, value.next_up(), value.next_down(), 0.0, -0.0, f64::MAX, f64::NEG_INFINITY]
                    {
                        let upper = scale.digits_within(bound, f64::INFINITY);
                        let lower = scale.digits_within(f64::NEG_INFINITY, bound);
                        assert_eq!((*upper.end(), *lower.start()), (DIGIT_LIMIT, -DIGIT_LIMIT));
                        let near = [*upper.start(), *lower.end(), digit, 0, DIGIT_LIMIT, -DIGIT_LIMIT];
                        let near = near.into_iter().flat_map(|digit| digit - 2..=digit + 2);
                        for digit in near.filter(|digit| digit.abs() <= DIGIT_LIMIT) {
                            let value = scale.decode(digit);
                            assert_eq!(
                                upper.contains(&digit),
                                value >= bound,
                                "{scale:?}, {digit}: {value} from {bound}"
                            );
                            assert_eq!(
                                lower.contains(&digit),
                                value <= bound,
                                "{scale:?}, {digit}: {value} to {bound}"
                            );
                        }
                    }
                }
            }
        }
        assert!(Scale { exponent: 2, factor: 0 }.digits_within(f64::NAN, f64::INFINITY).is_empty());
    }

    /// Prices with two decimals, up to 1000.
    fn prices(random: &mut Random) -> Vec<f64> {
        random.block(|random| decimal(random.below(100_000) as i64, 2))
    }

    /// Sensor values around 20, with this many decimals.
    fn sensor_values(random: &mut Random, decimals: u8) -> Vec<f64> {
        let one = 10_i64.pow(u32::from(decimals));
        random.block(|random| decimal(20 * one + random.around_zero(3 * one), decimals))
    }

    /// Doubles of random bits.
    fn random_patterns(random: &mut Random) -> Vec<f64> {
        random.block(|random| f64::from_bits(random.bits()))
    }

    /// The values that are hard to keep.
    fn special_values() -> Vec<f64> {
        let payloads =
            [0x7ff8_0000_0000_0001, 0x7ff0_0000_0000_0001, 0xfff8_0000_dead_beef, 0xffff_ffff_ffff_ffff];
        let limits =
            [LIMIT, LIMIT + 1.0, LIMIT + 2.0, 4.0 * LIMIT, MAGIC, 2.0 * MAGIC, 1e15, 1e16, 1e18, 1e19];
        let mut values: Vec<f64> = payloads.into_iter().map(f64::from_bits).collect();
        values.extend([
            f64::NAN,
            -0.0,
            0.0,
            f64::INFINITY,
            f64::NEG_INFINITY,
            f64::MAX,
            f64::MIN,
            f64::MIN_POSITIVE,
        ]);
        values.extend([
            f64::from_bits(1),
            -f64::from_bits(1),
            f64::from_bits(0xf_ffff_ffff_ffff),
            1e-18,
            1e-19,
            0.1,
        ]);
        values.extend(limits.into_iter().flat_map(|limit| [limit, -limit]));
        values
    }

    /// Every scale.
    fn all_scales() -> impl Iterator<Item = Scale> {
        (0..=LARGEST_EXPONENT)
            .flat_map(|exponent| (0..=exponent).map(move |factor| Scale { exponent, factor }))
    }

    /// The digits and the exceptions of the values.
    fn encoded(scale: Scale, values: &[f64]) -> (Vec<i64>, Vec<(u16, f64)>) {
        let (mut digits, mut exceptions) = (vec![7; 3], vec![(9, 9.0)]);
        scale.encode(values, &mut digits, &mut exceptions);
        (digits, exceptions)
    }

    /// The same straight from the formula, one value after the other.
    fn encoded_slowly(scale: Scale, values: &[f64]) -> (Vec<i64>, Vec<(u16, f64)>) {
        let (up, down) = (10_f64.powi(scale.exponent.into()), 10_f64.powi(scale.factor.into()));
        let (inverse_up, inverse_down) = (decimal(1, scale.exponent), decimal(1, scale.factor));
        let (mut found, mut exceptions) = (Vec::new(), Vec::new());
        for (position, value) in values.iter().enumerate() {
            let rounded = (value * up * inverse_down).round_ties_even();
            let back = (rounded as i64 as f64) * down * inverse_up;
            if rounded.abs() <= LIMIT && back.to_bits() == value.to_bits() {
                found.push(Some(rounded as i64));
            } else {
                found.push(None);
                exceptions.push((position as u16, *value));
            }
        }
        let filler = found.iter().flatten().next().copied().unwrap_or(0);
        (found.into_iter().map(|digit| digit.unwrap_or(filler)).collect(), exceptions)
    }

    /// The positions and the bits of the exceptions; as doubles, NaN would differ from itself.
    fn exception_bits(exceptions: &[(u16, f64)]) -> Vec<(u16, u64)> {
        exceptions.iter().map(|(position, value)| (*position, value.to_bits())).collect()
    }

    /// Checks that the values come back and that the slow twin agrees; returns the number of exceptions.
    fn check(scale: Scale, values: &[f64]) -> usize {
        let (digits, exceptions) = encoded(scale, values);
        let (slow_digits, slow_exceptions) = encoded_slowly(scale, values);
        assert_eq!(digits, slow_digits, "{scale:?}");
        assert_eq!(exception_bits(&exceptions), exception_bits(&slow_exceptions), "{scale:?}");
        assert!(digits.iter().all(|digit| digit.abs() <= DIGIT_LIMIT));
        let mut decoded: Vec<f64> = digits.iter().map(|digit| scale.decode(*digit)).collect();
        for (position, value) in &exceptions {
            decoded[usize::from(*position)] = *value;
        }
        let bits = |values: &[f64]| values.iter().map(|value| value.to_bits()).collect::<Vec<_>>();
        assert_eq!(bits(&decoded), bits(values), "{scale:?}");
        exceptions.len()
    }

    /// Checks with the chosen scale; returns the scale and the number of exceptions.
    fn check_chosen(values: &[f64]) -> (Scale, usize) {
        let scale = Scale::choose(values).expect("a scale");
        (scale, check(scale, values))
    }

    #[test]
    fn tables_are_exact() {
        for number in 0..=LARGEST_EXPONENT {
            assert_eq!(POWERS[usize::from(number)], 10_u64.pow(number.into()) as f64);
            assert_eq!(POWERS[usize::from(number)] as u64, 10_u64.pow(number.into()));
            assert_eq!(INVERSE_POWERS[usize::from(number)], decimal(1, number));
        }
    }

    /// The relative error of the double `10^-number`, times `2^112`: `mantissa * 10^number` ought to be a
    /// power of two.
    fn inverse_error(number: u8) -> u128 {
        let bits = INVERSE_POWERS[usize::from(number)].to_bits();
        let mantissa = u128::from(bits & ((1 << 52) - 1) | 1 << 52);
        let shift = 1075 - (bits >> 52);
        (mantissa * 10_u128.pow(number.into())).abs_diff(1 << shift) << (112 - shift)
    }

    #[test]
    fn exponents_are_ordered_by_error() {
        assert!(EXPONENTS_BY_ERROR.is_sorted_by_key(|number| inverse_error(*number)));
        let mut sorted = EXPONENTS_BY_ERROR;
        sorted.sort_unstable();
        assert!(sorted.into_iter().eq(0..=LARGEST_EXPONENT));
    }

    #[test]
    fn prices_come_back() {
        let mut random = Random(1);
        for _ in 0..50 {
            let (scale, exceptions) = check_chosen(&prices(&mut random));
            assert_eq!(scale.decimals(), 2);
            assert!(exceptions <= 10, "{exceptions} exceptions");
        }
    }

    #[test]
    fn sensor_values_come_back() {
        let mut random = Random(2);
        for decimals in 1..=13 {
            let (scale, exceptions) = check_chosen(&sensor_values(&mut random, decimals));
            assert_eq!(scale.decimals(), decimals);
            assert!(exceptions <= 30, "{exceptions} exceptions at {decimals} decimals");
        }
        for decimals in 14..=15 {
            check(Scale { exponent: decimals, factor: 0 }, &sensor_values(&mut random, decimals));
            let small = random.block(|random| decimal(random.around_zero(DIGIT_LIMIT / 4), decimals));
            check_chosen(&small);
        }
    }

    #[test]
    fn integers_come_back() {
        let mut random = Random(3);
        for end in [1, 100, 1 << 20, 1 << 40, DIGIT_LIMIT] {
            let values = random.block(|random| random.around_zero(end) as f64);
            let (scale, exceptions) = check_chosen(&values);
            assert_eq!((scale.decimals(), exceptions), (0, 0));
        }
    }

    #[test]
    fn random_patterns_are_exceptions() {
        let mut random = Random(4);
        for _ in 0..20 {
            let values = random_patterns(&mut random);
            assert_eq!(Scale::choose(&values), None);
            let scale = Scale { exponent: 14, factor: random.below(15) as u8 };
            assert!(check(scale, &values) > 1000);
        }
        let fractions = random.block(Random::fraction);
        assert_eq!(Scale::choose(&fractions), None);
    }

    #[test]
    fn special_values_come_back_in_every_scale() {
        let mut random = Random(5);
        let specials = special_values();
        let mixed = random.block(|random| match random.below(4) {
            0 => specials[random.below(specials.len() as u64) as usize],
            _ => decimal(random.around_zero(10_000), 2),
        });
        for scale in all_scales() {
            check(scale, &specials);
            check(scale, &mixed);
            for special in &specials {
                check(scale, &[*special]);
            }
        }
        let (scale, _) = check_chosen(&mixed);
        assert_eq!(scale.decimals(), 2);
    }

    #[test]
    fn hopeless_values_are_exceptions_in_every_scale() {
        let hopeless: Vec<f64> = special_values().into_iter().filter(|value| is_hopeless(*value)).collect();
        assert!(hopeless.len() > 20);
        assert_eq!(Scale::choose(&hopeless), None);
        for scale in all_scales() {
            assert_eq!(check(scale, &hopeless), hopeless.len());
        }
        assert!([0.0, 1e-18, LIMIT, -LIMIT].into_iter().all(|value| !is_hopeless(value)));
    }

    #[test]
    fn one_outlier_is_one_exception() {
        let mut random = Random(6);
        for outlier in [f64::NAN, -0.0, f64::MAX, f64::NEG_INFINITY, 1e300, 1.0 / 3.0] {
            for position in [0, 1, 500, 1023] {
                let mut values = random.block(|random| decimal(random.below(1000) as i64, 1));
                let (_, before) = check_chosen(&values);
                values[position] = outlier;
                let (scale, exceptions) = check_chosen(&values);
                assert_eq!(exceptions, before + 1);
                let (digits, _) = encoded(scale, &values);
                assert!(digits.iter().all(|digit| (0..1000).contains(digit)));
            }
        }
    }

    #[test]
    fn blocks_of_any_length_come_back() {
        let mut random = Random(7);
        assert_eq!(Scale::choose(&[]), None);
        assert_eq!(check(Scale { exponent: 14, factor: 12 }, &[]), 0);
        let values = prices(&mut random);
        for length in 1..=values.len() {
            check_chosen(&values[..length]);
        }
        let mut largest = values.repeat(64);
        largest[65_535] = f64::NAN;
        let (digits, exceptions) = encoded(Scale { exponent: 14, factor: 12 }, &largest);
        assert_eq!((digits.len(), exceptions.len(), exceptions[0].0), (65_536, 1, u16::MAX));
    }

    #[test]
    fn equal_values_take_no_bits() {
        for value in [0.0, 1.0, -17.25, 0.1, 1e-18, 123_456.789, LIMIT] {
            let values = [value; 1024];
            let (scale, exceptions) = check_chosen(&values);
            let (digits, _) = encoded(scale, &values);
            assert_eq!((range_bits(digits.into_iter()), exceptions), (0, 0));
        }
        for value in [f64::NAN, -0.0, f64::INFINITY, 1e300, f64::from_bits(1)] {
            assert_eq!(Scale::choose(&[value; 1024]), None);
        }
    }

    #[test]
    fn sample_is_spread() {
        let values: Vec<f64> = (0..1024).map(f64::from).collect();
        assert_eq!(sample_of(&[]), None);
        for length in 1..=values.len() {
            let sample = sample_of(&values[..length]).unwrap();
            assert!(sample.is_sorted_by(|one, next| one < next || length < SAMPLE_SIZE && one == next));
            assert_eq!((sample[0], sample.last()), (0.0, values[..length].last()));
        }
        assert_eq!(sample_of(&values), Some(std::array::from_fn(|number| number as f64 * 33.0)));
    }

    #[test]
    fn choice_is_the_best_of_all() {
        let mut random = Random(8);
        for round in 0..200 {
            let values = match round % 3 {
                0 => prices(&mut random),
                1 => sensor_values(&mut random, 1 + (round % 13) as u8),
                _ => random.block(|random| {
                    let decimals = 1 + random.below(3) as u8;
                    decimal(random.around_zero(100_000), decimals)
                }),
            };
            let sample = sample_of(&values).unwrap();
            let bits_of = |scale: Scale| scale.estimate(&sample, u64::MAX).map(|estimate| estimate.bits);
            let chosen = Scale::choose(&values).and_then(bits_of).unwrap();
            assert_eq!(all_scales().filter_map(bits_of).min(), Some(chosen));
        }
    }
}
