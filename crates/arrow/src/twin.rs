//! Imported arrays against the casts of the Arrow library, their slow twin: every Arrow type as every SQL
//! type that it can become, with extremes, NULLs over other values, slices and encodings.
//!
//! What the twin casts, and each SQL type then reads from its own Arrow type, must come out the same here,
//! unless a rule says why not ([`reason`], [`is_allowed`]). What it refuses to cast may be cast here. Some of
//! its products are not checked for overflow, so that it panics in builds that check all arithmetic: what it
//! panics for must be out of range here.

use crate::types::{from_arrow_type, to_arrow_type};
use crate::{Importer, array_to_vector};
use arrow_array::builder::{BinaryViewBuilder, StringViewBuilder};
use arrow_array::types::{
    ArrowPrimitiveType, Date32Type, Date64Type, Decimal32Type, Decimal64Type, Decimal128Type, Decimal256Type,
    DecimalType, DurationMicrosecondType, DurationMillisecondType, DurationNanosecondType,
    DurationSecondType, Float16Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type,
    IntervalDayTime, IntervalDayTimeType, IntervalMonthDayNano, IntervalMonthDayNanoType,
    IntervalYearMonthType, Time32MillisecondType, Time32SecondType, Time64MicrosecondType,
    Time64NanosecondType, TimestampMicrosecondType, TimestampMillisecondType, TimestampNanosecondType,
    TimestampSecondType, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{
    Array, ArrayRef, BinaryArray, BooleanArray, DictionaryArray, FixedSizeBinaryArray, FixedSizeListArray,
    Int16Array, Int32Array, Int64Array, LargeBinaryArray, LargeListArray, LargeListViewArray,
    LargeStringArray, ListArray, ListViewArray, NullArray, PrimitiveArray, RunArray, StringArray,
    StructArray, TimestampSecondArray,
};
use arrow_buffer::{NullBuffer, OffsetBuffer, i256};
use arrow_cast::{CastOptions, cast, cast_with_options};
use arrow_schema::{DataType as ArrowType, Field as ArrowField, Fields, TimeUnit};
use entasis_vector::expr::parse_value;
use entasis_vector::{DataType, Encoding, Error, Result, Value, Vector, time_tz};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// Rows of each array; every eleventh is NULL, so that no value always is.
const ROWS: usize = 48;

fn is_null(row: usize) -> bool {
    row % 11 == 3
}

fn nulls() -> Option<NullBuffer> {
    Some(NullBuffer::from_iter((0..ROWS).map(|row| !is_null(row))))
}

/// These values over and over.
fn primitive<A: ArrowPrimitiveType>(values: &[A::Native]) -> PrimitiveArray<A> {
    let all: Vec<A::Native> = values.iter().copied().cycle().take(ROWS).collect();
    PrimitiveArray::new(all.into(), nulls())
}

fn plain<A: ArrowPrimitiveType>(values: &[A::Native]) -> ArrayRef {
    Arc::new(primitive::<A>(values))
}

fn decimals<A: DecimalType>(precision: u8, scale: i8, values: &[A::Native]) -> ArrayRef {
    Arc::new(primitive::<A>(values).with_precision_and_scale(precision, scale).unwrap())
}

/// The extremes of an integer type, small values, and some of every magnitude.
macro_rules! integers {
    ($arrow:ty, $native:ty) => {{
        let mut state = 0x2545_F491_4F6C_DD1D_u64;
        let mut values = vec![<$native>::MIN, <$native>::MAX, 0, 1, 7, 100];
        for _ in 0..30 {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            values.push((state as $native) >> (state % u64::from(<$native>::BITS)));
        }
        plain::<$arrow>(&values)
    }};
}

fn numbers() -> Vec<ArrayRef> {
    type Half = <Float16Type as ArrowPrimitiveType>::Native;
    let single =
        [0.0, -0.0, 0.1, 1.5, -2.5, 3.5, 127.4, -128.6, 1e10, 3e38, f32::NAN, f32::INFINITY, f32::MIN];
    let double = [
        0.0,
        -0.0,
        0.1,
        0.5,
        -2.5,
        3.5,
        123_456.789,
        -128.6,
        1e10,
        1.5e19,
        1e300,
        f64::NAN,
        f64::NEG_INFINITY,
    ];
    let half = [0.0, -0.0, 0.1, 1.5, -2.5, 65504.0, f32::NAN, f32::INFINITY].map(Half::from_f32);
    let widest = 10_i128.pow(38) - 1;
    let long = i256::from_i128(widest);
    let longer = long.wrapping_mul(i256::from_i128(10_i128.pow(20)));
    let small = [0, 1, -1, 5, -15, 49, 12_345, -99_999].map(i256::from_i128);
    vec![
        integers!(Int8Type, i8),
        integers!(Int16Type, i16),
        integers!(Int32Type, i32),
        integers!(Int64Type, i64),
        integers!(UInt8Type, u8),
        integers!(UInt16Type, u16),
        integers!(UInt32Type, u32),
        integers!(UInt64Type, u64),
        plain::<Float16Type>(&half),
        plain::<Float32Type>(&single),
        plain::<Float64Type>(&double),
        decimals::<Decimal32Type>(9, 2, &[0, 1, -1, 5, -15, 12_345, -99_995, 999_999_999, -999_999_999]),
        decimals::<Decimal32Type>(5, -3, &[0, 1, -1, 12_345, -99_999]),
        decimals::<Decimal64Type>(18, 4, &[0, 1, -1, 49_999, 50_000, -150_000, 10_i64.pow(18) - 1]),
        decimals::<Decimal64Type>(4, 1, &[0, 1, -15, 9999]),
        decimals::<Decimal128Type>(38, 10, &[0, 1, -1, 15_000_000_000, 1 << 70, widest, -widest]),
        decimals::<Decimal128Type>(20, 0, &[0, 1, -1, 99, 10_i128.pow(20) - 1]),
        decimals::<Decimal128Type>(10, -2, &[0, 1, -1, 9_999_999_999]),
        decimals::<Decimal256Type>(38, 2, &[&small[..], &[long, long.wrapping_neg()]].concat()),
        decimals::<Decimal256Type>(60, 30, &[&small[..], &[long, longer]].concat()),
    ]
}

fn moments() -> Vec<ArrayRef> {
    const DAY: i64 = 86_400;
    // The extremes themselves are infinity here.
    let last = i64::MAX - 1;
    let seconds = [0, 1, -1, 1_700_000_000, -62_135_596_800, 253_402_300_799, i64::MAX, i64::MIN];
    let millis = [0, 1, -1, 1_700_000_000_123, -62_135_596_800_001, i64::MAX, i64::MIN];
    let micros = [0, 1, -1, 1_700_000_000_123_456, DAY * 1_000_000, -DAY * 1_000_000 - 1, last, -last];
    let nanos = [0, 1, -1, 999, -1001, 1_700_000_000_123_456_789, last, -last];
    let months = [0, 1, -14, i32::MAX, i32::MIN];
    let spans = [(0, 0), (1, -1), (-40, 999), (i32::MAX, i32::MIN)];
    let spans = spans.map(|(days, millis)| IntervalDayTime::new(days, millis));
    let long = [(0, 0, 0), (-3, 40, 1999), (1, -2, -1999), (0, 0, i64::MIN)];
    let long = long.map(|(months, days, nanos)| IntervalMonthDayNano::new(months, days, nanos));
    let lengths = [0, 1, -1, 1999, -1999, 9_000_000_000, i64::MAX, i64::MIN];
    let (s, ms, us, ns) = (
        primitive::<TimestampSecondType>(&seconds),
        primitive::<TimestampMillisecondType>(&millis),
        primitive::<TimestampMicrosecondType>(&micros),
        primitive::<TimestampNanosecondType>(&nanos),
    );
    vec![
        plain::<Date32Type>(&[0, 1, -1, 19_000, 2_932_896, i32::MAX - 1, 1 - i32::MAX]),
        plain::<Date64Type>(&[0, 1, -1, 19_000, 2_932_896].map(|days| days * DAY * 1000)),
        plain::<Time32SecondType>(&[0, 1, 45_296, 86_399]),
        plain::<Time32MillisecondType>(&[0, 1, 45_296_123, 86_399_999]),
        plain::<Time64MicrosecondType>(&[0, 1, 45_296_123_456, 86_399_999_999]),
        plain::<Time64NanosecondType>(&[0, 1, 999, 45_296_123_456_789, 86_399_999_999_999]),
        Arc::new(s.clone()),
        Arc::new(ms.clone()),
        Arc::new(us.clone()),
        Arc::new(ns.clone()),
        Arc::new(s.with_timezone("UTC")),
        Arc::new(ms.with_timezone("+02:00")),
        Arc::new(us.with_timezone("Europe/Berlin")),
        Arc::new(ns.with_timezone("+02:00")),
        plain::<IntervalYearMonthType>(&months),
        plain::<IntervalDayTimeType>(&spans),
        plain::<IntervalMonthDayNanoType>(&long),
        plain::<DurationSecondType>(&lengths),
        plain::<DurationMillisecondType>(&lengths),
        plain::<DurationMicrosecondType>(&lengths),
        plain::<DurationNanosecondType>(&lengths),
    ]
}

fn strings() -> Vec<ArrayRef> {
    let texts = [
        "",
        "1",
        " 5 ",
        "-12.345",
        "1e3",
        "NaN",
        "99999999999999999999",
        "true",
        "off",
        "2024-02-29",
        "2024-02-29T12:30:00.5",
        "2024-02-29 12:30:00",
        "12:30",
        "12:30:00.000001",
        "1 day",
        "{\"a\": [1, null]}",
        "550e8400-e29b-41d4-a716-446655440000",
        "größer als eine Sicht, länger",
    ];
    let texts: Vec<Option<&str>> = texts.into_iter().cycle().take(ROWS).map(Some).collect();
    let texts: Vec<Option<&str>> =
        texts.into_iter().enumerate().map(|(row, text)| text.filter(|_| !is_null(row))).collect();
    let bytes = [&b""[..], b"abc", b"\xff\x00", b"sixteen bytes xx", b"[1]", "öß".as_bytes()];
    let bytes: Vec<Option<&[u8]>> =
        (0..ROWS).map(|row| Some(bytes[row % bytes.len()]).filter(|_| !is_null(row))).collect();
    let mut text_views = StringViewBuilder::new();
    texts.iter().for_each(|text| text_views.append_option(*text));
    let mut byte_views = BinaryViewBuilder::new();
    bytes.iter().for_each(|bytes| byte_views.append_option(*bytes));
    let fixed = |width: usize| {
        let values: Vec<u8> = (0..width * ROWS).map(|i| (i * 37) as u8).collect();
        FixedSizeBinaryArray::try_new(width as i32, values.into(), nulls()).unwrap()
    };
    vec![
        Arc::new(BooleanArray::new((0..ROWS).map(|row| row % 3 == 0).collect(), nulls())),
        Arc::new(NullArray::new(ROWS)),
        Arc::new(StringArray::from(texts.clone())),
        Arc::new(LargeStringArray::from(texts)),
        Arc::new(text_views.finish()),
        Arc::new(BinaryArray::from(bytes.clone())),
        Arc::new(LargeBinaryArray::from(bytes)),
        Arc::new(byte_views.finish()),
        Arc::new(fixed(16)),
        Arc::new(fixed(3)),
    ]
}

/// Why the two differ for a pair of types; `None` if they do not.
fn reason(from: DataType, to: DataType) -> Option<&'static str> {
    use DataType::{Date, Interval, Time, Timestamp, TimestampNs, TimestampTz};
    let is_moment =
        |ty: DataType| matches!(ty, Date | Time | Timestamp | TimestampNs | TimestampTz | Interval);
    Some(match (from, to) {
        (from, to) if from.is_numeric() && is_moment(to) || is_moment(from) && to.is_numeric() => {
            "SQL casts no number to a moment: it would be one in the unit of the array"
        }
        (from, to) if (from.is_float() || from.is_decimal()) && to.is_integer() => "SQL rounds, Arrow cuts",
        (from, DataType::Blob) if from.is_integer() => "SQL casts no number to its bytes",
        (from, to) if (is_moment(from) || from.is_float()) && to.is_text() => "texts are those of SQL",
        (DataType::Varchar, Interval) => "SQL reads a number without a unit as seconds, Arrow as months",
        (TimestampTz, Date | Time) => "SQL has instants in UTC, Arrow in the zone of the array",
        _ => return None,
    })
}

/// Whether a value may be another one than the twin's, though the types have no [`reason`].
fn is_allowed(array: &ArrowType, ty: DataType, own: &Result<Value>, twin: &Value) -> bool {
    let counts_in_tens = matches!(array, ArrowType::Decimal32(_, ..0) | ArrowType::Decimal128(_, ..0));
    match (own, twin) {
        // Before 1970 a moment between two becomes the earlier one, not the one nearer to 1970.
        (Ok(Value::Integer(own)), Value::Integer(twin)) => {
            matches!(array, ArrowType::Timestamp(TimeUnit::Nanosecond, _)) && *twin <= 0 && *own == twin - 1
        }
        // The double that is nearest to a decimal, rather than a quotient of rounded numbers.
        (Ok(Value::Float(own)), Value::Float(twin)) => {
            let digits = if ty == DataType::Float32 { 2e-7 } else { 1e-15 };
            array.is_decimal() && (own - twin).abs() <= own.abs() * digits
        }
        // 0 in tens is not 000.
        (Ok(Value::Text(own)), _) => counts_in_tens && &**own == "0",
        // All decimals have at most 38 digits, though fewer may be left of them.
        (Err(error), _) if matches!(array, ArrowType::Decimal256(39.., _)) => {
            error.message().contains("more digits than")
        }
        // A number is no TIME; Arrow takes a text of digits for one in the unit of the type.
        (Err(_), Value::Integer(_)) if array.is_string() => ty == DataType::Time,
        // Where overflow is not checked, Arrow's nanoseconds of a day that is out of range wrap around.
        (Err(error), Value::Integer(_)) if ty == DataType::TimestampNs => {
            *array == ArrowType::Date64 && error.message().contains("out of range")
        }
        // A REAL that would be infinite is out of range.
        (Err(_), Value::Float(twin)) => ty == DataType::Float32 && twin.is_infinite(),
        _ => false,
    }
}

/// What both are compared by: intervals of one length are not the same, nor are the zeros.
fn exactly(value: &Value) -> String {
    format!("{value:?}")
}

/// The value at `row` as Arrow casts it: none if it refuses to, an error if it panics.
fn twin(array: &dyn Array, row: usize, ty: DataType) -> std::thread::Result<Option<Value>> {
    if matches!(ty, DataType::TimeTz | DataType::Enum(_)) {
        return Ok(None);
    }
    let options = CastOptions { safe: false, ..CastOptions::default() };
    let theirs = || cast_with_options(&array.slice(row, 1), &to_arrow_type(ty), &options);
    let Ok(converted) = catch_unwind(AssertUnwindSafe(theirs))? else { return Ok(None) };
    let mut out = Vector::new(ty.physical());
    let done = array_to_vector(&converted, 0, 1, ty, &mut out);
    Ok(done.is_ok().then(|| out.value(0, ty)))
}

fn imported(
    importer: &mut Importer,
    array: &dyn Array,
    offset: usize,
    rows: usize,
    ty: DataType,
) -> Result<Vec<Value>> {
    let mut out = Vector::new(ty.physical());
    importer.import(array, offset, rows, ty, &mut out)?;
    Ok((0..rows).map(|row| out.value(row, ty)).collect())
}

fn read(array: &dyn Array, ty: DataType) -> Vec<Value> {
    imported(&mut Importer::default(), array, 0, array.len(), ty).unwrap()
}

/// Values that are written as SQL writes them.
fn values(texts: &[&str], ty: DataType) -> Vec<Value> {
    let value = |text: &&str| if *text == "NULL" { Value::Null } else { parse_value(text, ty).unwrap() };
    texts.iter().map(value).collect()
}

fn failure(array: &dyn Array, ty: DataType) -> String {
    imported(&mut Importer::default(), array, 0, array.len(), ty).unwrap_err().message().to_owned()
}

fn all_arrays() -> impl Iterator<Item = ArrayRef> {
    numbers().into_iter().chain(moments()).chain(strings())
}

#[test]
fn every_type_becomes_what_arrow_casts_it_to() {
    let labels = DataType::enumeration(["1", "true", "[1]"]).unwrap();
    for array in all_arrays() {
        let theirs = array.data_type();
        let own = from_arrow_type(theirs).unwrap_or(DataType::Decimal { precision: 38, scale: 30 });
        let mut importer = Importer::default();
        for ty in DataType::ALL.into_iter().filter(|ty| *ty != DataType::Null).chain([labels, own]) {
            let rows: Vec<Result<Value>> = (0..ROWS)
                .map(|row| imported(&mut importer, &array, row, 1, ty).map(|mut one| one.remove(0)))
                .collect();
            for (row, found) in rows.iter().enumerate() {
                if is_null(row) || *theirs == ArrowType::Null {
                    assert!(found.as_ref().is_ok_and(Value::is_null), "{theirs} as {ty}: {found:?}");
                    continue;
                }
                if reason(own, ty).is_some() {
                    continue;
                }
                let expected = match twin(&array, row, ty) {
                    Ok(Some(expected)) => expected,
                    Ok(None) => continue,
                    Err(_) => {
                        let is_beyond = |error: &Error| error.message().contains("out of range");
                        assert!(
                            found.as_ref().is_err_and(is_beyond),
                            "{theirs} as {ty}, row {row}: {found:?}, where Arrow panics"
                        );
                        continue;
                    }
                };
                let is_same = found.as_ref().is_ok_and(|found| exactly(found) == exactly(&expected));
                assert!(
                    is_same || is_allowed(theirs, ty, found, &expected),
                    "{theirs} as {ty}, row {row}: {found:?}, and not {expected:?}"
                );
            }
            // All at once, within a slice.
            let slice = array.slice(1, ROWS - 2);
            let (first, last) = (3, ROWS - 3);
            let found = imported(&mut importer, &slice, first - 1, last - first, ty);
            match rows[first..last].iter().any(Result::is_err) {
                true => assert!(found.is_err(), "{theirs} as {ty}"),
                false => {
                    let found: Vec<String> = found.unwrap().iter().map(exactly).collect();
                    let expected = rows[first..last].iter().flatten().map(exactly);
                    assert_eq!(found, expected.collect::<Vec<_>>(), "{theirs} as {ty}");
                }
            }
        }
    }
}

#[test]
fn encodings_change_nothing() {
    // Keys in no order, NULL for some, with garbage below.
    let key = |row: usize| (row * 29 % ROWS, row % 7 == 2);
    let no_key = NullBuffer::from_iter((0..ROWS).map(|row| !key(row).1));
    let keys: Vec<i16> = (0..ROWS).map(|row| if key(row).1 { 999 } else { key(row).0 as i16 }).collect();
    let keys = Int16Array::new(keys.into(), Some(no_key));
    let lengths = [1_i64, 2, 1, 7, 3, 12, 1, 1, 20];
    let ends = lengths.iter().scan(0_i64, |end, length| {
        *end += length;
        Some(*end)
    });
    let ends: Vec<i64> = ends.collect();
    let run = |row: usize| ends.iter().position(|end| *end > row as i64).unwrap();
    for array in all_arrays() {
        let own = match from_arrow_type(array.data_type()) {
            Ok(DataType::Null) => DataType::Int32,
            Ok(own) => own,
            Err(_) => continue,
        };
        // Without values that are out of range, which plain arrays are tested with.
        let one = |row: usize| imported(&mut Importer::default(), &array, row, 1, own).ok();
        let plain: Vec<Option<Vec<Value>>> = (0..ROWS).map(one).collect();
        let coded: ArrayRef =
            Arc::new(DictionaryArray::<Int16Type>::try_new(keys.clone(), array.clone()).unwrap());
        let values = array.slice(2, ends.len());
        let short = Int16Array::from_iter_values(ends.iter().map(|end| *end as i16));
        let middle = Int32Array::from_iter_values(ends.iter().map(|end| *end as i32));
        let long = Int64Array::from_iter_values(ends.iter().copied());
        let runs: [ArrayRef; 3] = [
            Arc::new(RunArray::<Int16Type>::try_new(&short, &values).unwrap()),
            Arc::new(RunArray::<Int32Type>::try_new(&middle, &values).unwrap()),
            Arc::new(RunArray::<Int64Type>::try_new(&long, &values).unwrap()),
        ];
        let rows = |encoded: &ArrayRef, expected: &dyn Fn(usize) -> Option<Vec<Value>>| {
            let expected: Vec<_> = (0..ROWS).map(expected).collect();
            for (start, length) in [(0, ROWS), (5, 20), (20, 1), (ROWS - 1, 1), (7, 0)] {
                let expected = expected[start..start + length].iter().cloned().collect::<Option<Vec<_>>>();
                let direct = imported(&mut Importer::default(), encoded, start, length, own).ok();
                assert_eq!(direct, expected.map(|rows| rows.concat()), "{}", encoded.data_type());
                if start >= 3 {
                    let slice = encoded.slice(3, ROWS - 3);
                    let sliced = imported(&mut Importer::default(), &slice, start - 3, length, own).ok();
                    assert_eq!(sliced, direct, "a slice of {}", encoded.data_type());
                }
            }
        };
        rows(&coded, &|row| if key(row).1 { Some(vec![Value::Null]) } else { plain[key(row).0].clone() });
        for runs in &runs {
            rows(runs, &|row| plain[run(row) + 2].clone());
        }
        // One in the other.
        let keys = Int64Array::from_iter((0..ROWS).map(|row| (!key(row).1).then(|| (ROWS - 1 - row) as i64)));
        let both: ArrayRef = Arc::new(DictionaryArray::<Int64Type>::try_new(keys, runs[1].clone()).unwrap());
        rows(&both, &|row| match key(row) {
            (_, true) => Some(vec![Value::Null]),
            _ => plain[run(ROWS - 1 - row) + 2].clone(),
        });
    }
}

#[test]
fn dictionaries_that_are_not_kept_are_decoded() {
    let texts: ArrayRef = Arc::new(StringArray::from_iter_values((0..5000).map(|i| format!("text {i}"))));
    let keys = Int32Array::from(vec![Some(4999), None, Some(7)]);
    let long = DictionaryArray::<Int32Type>::try_new(keys, texts).unwrap();
    let mut out = Vector::new(DataType::Varchar.physical());
    array_to_vector(&long, 0, 3, DataType::Varchar, &mut out).unwrap();
    assert_eq!(out.encoding(), Encoding::Flat, "it has far more values than there are rows");
    assert_eq!(read(&long, DataType::Varchar), values(&["text 4999", "NULL", "text 7"], DataType::Varchar));
    // A value that no row has may be none of the type.
    let some: ArrayRef = Arc::new(StringArray::from(vec!["1", "many", "12"]));
    let keys = Int32Array::from(vec![2, 0, 2]);
    let array = DictionaryArray::<Int32Type>::try_new(keys, some.clone()).unwrap();
    assert_eq!(read(&array, DataType::Int8), values(&["12", "1", "12"], DataType::Int8));
    let array = DictionaryArray::<Int32Type>::try_new(Int32Array::from(vec![0, 1]), some).unwrap();
    assert_eq!(failure(&array, DataType::Int8), "cannot read Utf8 as TINYINT: cannot cast 'many' to TINYINT");
    let nulls = DictionaryArray::<Int32Type>::try_new(Int32Array::from(vec![0]), Arc::new(NullArray::new(1)));
    assert_eq!(read(&nulls.unwrap(), DataType::Date), [Value::Null]);
}

#[test]
fn lists_of_every_layout_are_lists() {
    let field = Arc::new(ArrowField::new("item", ArrowType::Int32, true));
    // 1000 is an element of no list but one that is NULL.
    let elements: ArrayRef =
        Arc::new(Int32Array::from(vec![Some(1), Some(2), Some(1000), Some(1000), None, Some(3)]));
    let present = || Some(NullBuffer::from(vec![true, false, true]));
    let lists: [ArrayRef; 5] = [
        Arc::new(ListArray::new(
            field.clone(),
            OffsetBuffer::new(vec![0, 2, 4, 6].into()),
            elements.clone(),
            present(),
        )),
        Arc::new(LargeListArray::new(
            field.clone(),
            OffsetBuffer::new(vec![0, 2, 4, 6].into()),
            elements.clone(),
            present(),
        )),
        Arc::new(ListViewArray::new(
            field.clone(),
            vec![0, 2, 4].into(),
            vec![2, 2, 2].into(),
            elements.clone(),
            present(),
        )),
        Arc::new(LargeListViewArray::new(
            field.clone(),
            vec![0, 2, 4].into(),
            vec![2, 2, 2].into(),
            elements.clone(),
            present(),
        )),
        Arc::new(FixedSizeListArray::new(field.clone(), 2, elements.clone(), present())),
    ];
    let texts = ["[1, 2]", "NULL", "[NULL, 3]"];
    for array in &lists {
        for element in [DataType::Int32, DataType::Int8, DataType::Varchar] {
            for ty in [DataType::list(element), DataType::array(element, 2).unwrap()] {
                assert_eq!(read(array, ty), values(&texts, ty), "{} as {ty}", array.data_type());
                assert_eq!(read(&array.slice(1, 2), ty), values(&texts[1..], ty), "{}", array.data_type());
            }
        }
        let three = DataType::array(DataType::Int32, 3).unwrap();
        assert_eq!(failure(array, three), "a list of length 2 is no INTEGER[3]");
        assert!(failure(array, DataType::Int32).contains("as INTEGER: cannot cast INTEGER["));
        let shown = values(&["[1, 2]", "NULL", "[NULL, 3]"], DataType::Varchar);
        assert_eq!(read(array, DataType::Varchar), shown, "a cast of the whole");
    }
    // Views in no order, of the same elements, with others between.
    let views =
        ListViewArray::new(field, vec![4, 0, 2, 1, 6].into(), vec![2, 2, 0, 1, 0].into(), elements, None);
    let ty = DataType::list(DataType::Int8);
    assert_eq!(read(&views, ty), values(&["[NULL, 3]", "[1, 2]", "[]", "[2]", "[]"], ty));
    // More elements than a chunk has rows, which are cast.
    let some = |i: i32| (0..i % 5).map(move |j| i * 10 + j);
    let many = ListArray::from_iter_primitive::<Int32Type, _, _>((0..3000).map(|i| Some(some(i).map(Some))));
    let text = |i: i32| format!("[{}]", some(i).map(|v| v.to_string()).collect::<Vec<_>>().join(", "));
    let expected: Vec<String> = (0..3000).map(text).collect();
    for ty in [DataType::Varchar, DataType::list(DataType::Int64), DataType::list(DataType::Varchar)] {
        let found = read(&many, ty);
        assert_eq!(found.iter().map(|v| v.display(ty).to_string()).collect::<Vec<_>>(), expected, "{ty}");
    }
}

#[test]
fn fields_of_structs_are_found_by_name_or_else_by_place() {
    let field = |name: &str, ty: ArrowType| ArrowField::new(name, ty, true);
    let fields: Fields = vec![field("a", ArrowType::Int32), field("b", ArrowType::Utf8)].into();
    let columns: Vec<ArrayRef> = vec![
        Arc::new(Int32Array::from(vec![Some(1), None, Some(3)])),
        Arc::new(StringArray::from(vec![Some("4"), Some("5"), None])),
    ];
    let array = StructArray::new(fields, columns, Some(NullBuffer::from(vec![true, true, false])));
    let int = DataType::Int32;
    for (wanted, expected) in [
        (&[("a", int), ("b", DataType::Varchar)][..], ["{a: 1, b: '4'}", "{a: NULL, b: '5'}"]),
        (&[("B", int), ("A", DataType::Int64)][..], ["{B: 4, A: 1}", "{B: 5, A: NULL}"]),
        (&[("b", int)][..], ["{b: 4}", "{b: 5}"]),
        (&[("x", DataType::Float64), ("y", int)][..], ["{x: 1, y: 4}", "{x: NULL, y: 5}"]),
        (&[("b", int), ("x", int), ("a", int)][..], ["{b: 4, x: NULL, a: 1}", "{b: 5, x: NULL, a: NULL}"]),
    ] {
        let ty = DataType::structure(wanted.iter().copied());
        let expected = values(&[expected[0], expected[1], "NULL"], ty);
        assert_eq!(read(&array, ty), expected, "{ty}");
    }
    let error = failure(&array, DataType::structure([("x", int)]));
    assert!(error.starts_with("cannot read Struct(") && error.contains("no field in common"), "{error}");
}

#[test]
fn texts_bytes_and_types_that_arrow_lacks() {
    let labels = DataType::enumeration(["sad", "happy"]).unwrap();
    let texts: ArrayRef = Arc::new(StringArray::from(vec![Some("happy"), None]));
    assert_eq!(read(&texts, labels), values(&["happy", "NULL"], labels));
    let coded = cast(&texts, &ArrowType::Dictionary(Box::new(ArrowType::Int8), Box::new(ArrowType::Utf8)));
    assert_eq!(read(&coded.unwrap(), labels), values(&["happy", "NULL"], labels));
    let other = StringArray::from(vec!["merry"]);
    assert!(
        failure(&other, labels).starts_with("cannot read Utf8 as ENUM('sad', 'happy'): cannot cast 'merry'")
    );
    let times = StringArray::from(vec!["12:30:00+02"]);
    let half_past_twelve = time_tz::pack(45_000_000_000, 7200);
    assert_eq!(read(&times, DataType::TimeTz), [Value::Integer(half_past_twelve.into())]);
    // The same bytes, not the escapes with which SQL casts one to the other.
    let text = StringArray::from(vec!["\\x41 ö"]);
    assert_eq!(read(&text, DataType::Blob), [Value::Bytes("\\x41 ö".as_bytes().into())]);
    let bytes = BinaryArray::from(vec![&b"\\x41 \xc3\xb6"[..]]);
    assert_eq!(read(&bytes, DataType::Varchar), [Value::Text("\\x41 ö".into())]);
    let bytes = BinaryArray::from(vec![&b"\xff"[..]]);
    assert_eq!(failure(&bytes, DataType::Varchar), "cannot read Binary as VARCHAR: it is not UTF-8");
    assert_eq!(failure(&bytes, DataType::Uuid), "cannot read Binary as UUID: a UUID has 16 bytes");
    assert_eq!(read(&Int32Array::from(vec![12]), DataType::Json), [Value::Text("12".into())]);
}

#[test]
fn what_does_not_fit_is_named() {
    let late = TimestampSecondArray::from(vec![Some(0), None, Some(i64::MAX)]);
    let message = "value 9223372036854775807 of Timestamp(s) is out of range for TIMESTAMP";
    assert_eq!(failure(&late, DataType::Timestamp), message);
    assert_eq!(
        failure(&Int32Array::from(vec![1000]), DataType::Int8),
        "cannot read Int32 as TINYINT: value 1000 is out of range for TINYINT"
    );
    assert_eq!(
        failure(&Int32Array::from(vec![1000]), DataType::Timestamp),
        "cannot read Int32 as TIMESTAMP: cannot cast INTEGER to TIMESTAMP"
    );
    let long = i256::from_i128(10_i128.pow(38));
    let long = PrimitiveArray::<Decimal256Type>::from_iter_values([long.wrapping_mul(i256::from_i128(12))]);
    let message = format!("12{} has more digits than DECIMAL(38,2)", "0".repeat(36) + ".00");
    let two = long.clone().with_precision_and_scale(38, 2).unwrap();
    assert_eq!(failure(&two, DataType::Decimal { precision: 38, scale: 2 }), message);
    let two = long.with_precision_and_scale(60, 2).unwrap();
    assert_eq!(failure(&two, DataType::Float64), message);
    assert_eq!(failure(&two, DataType::Decimal { precision: 38, scale: 2 }), message);
}

#[test]
fn moments_between_two_become_the_earlier_one() {
    let nanos = PrimitiveArray::<TimestampNanosecondType>::from_iter_values([-1, 1999]);
    let zoned = nanos.clone().with_timezone("UTC");
    for (array, ty) in
        [(&nanos, DataType::Timestamp), (&zoned, DataType::TimestampTz), (&zoned, DataType::Timestamp)]
    {
        assert_eq!(read(array, ty), [-1, 1].map(Value::Integer), "{ty}");
    }
    assert_eq!(read(&zoned, DataType::TimestampNs), [-1, 1999].map(Value::Integer), "nothing is lost");
    let millis = PrimitiveArray::<Date64Type>::from_iter_values([-1, 86_400_001]);
    assert_eq!(read(&millis, DataType::Date), [-1, 1].map(Value::Integer));
}
