//! Tests every type through Arrow and back, against the single values of a vector.

use crate::export::vector_of;
use crate::{Importer, array_to_vector, to_arrow_type, values_to_array, vector_to_array};
use arrow_array::builder::StringViewBuilder;
use arrow_array::cast::AsArray;
use arrow_array::types::Int8Type;
use arrow_array::{Array, ArrayRef, DictionaryArray, Int32Array, StringArray};
use arrow_cast::cast;
use arrow_schema::{DataType as ArrowType, IntervalUnit, TimeUnit};
use entasis_vector::expr::parse_value;
use entasis_vector::time_tz;
use entasis_vector::types::MICROS_PER_DAY;
use entasis_vector::vector::Dictionary;
use entasis_vector::{DataType, Encoding, Interval, StringView, Value, Vector};
use std::sync::Arc;

fn samples(ty: DataType) -> Vec<Value> {
    let integers = |v: &[i128]| v.iter().map(|&v| Value::Integer(v)).collect::<Vec<_>>();
    match ty {
        DataType::Null => vec![Value::Null],
        DataType::Boolean => vec![Value::Boolean(true), Value::Boolean(false)],
        DataType::Float32 | DataType::Float64 => {
            [0.5, -0.0, f64::INFINITY, f64::NAN].map(Value::Float).into_iter().collect()
        }
        DataType::Varchar => ["", "short", "a text that is longer than a view", "öß"]
            .iter()
            .map(|&t| Value::Text(t.into()))
            .collect(),
        DataType::Json => ["{\"a\": [1, null]}", " 1 "].map(|t| Value::Text(t.into())).into(),
        DataType::Blob => {
            vec![Value::Bytes(Arc::from(&b"\x00\xff"[..])), Value::Bytes(Arc::from(&[7u8; 40][..]))]
        }
        DataType::Interval => {
            vec![
                Value::Interval(Interval { months: -3, days: 40, micros: 1 }),
                Value::Interval(Interval::default()),
            ]
        }
        DataType::Uuid => integers(&[0, 1, -1, i128::MIN]),
        DataType::Time => integers(&[0, 86_399_999_999]),
        _ => {
            let (min, max) = ty.integer_range().expect("the other types are integers inside");
            integers(&[0, 1, min, max])
        }
    }
}

/// 200 rows that repeat the samples; if `nulls`, every fifth is NULL.
fn rows(ty: DataType, nulls: bool) -> Vec<Value> {
    let samples = samples(ty);
    (0..200)
        .map(|i| if nulls && i % 5 == 3 { Value::Null } else { samples[i % samples.len()].clone() })
        .collect()
}

fn check(array: &ArrayRef, offset: usize, count: usize, ty: DataType, expected: &[Value]) {
    let mut out = Vector::new(ty.physical());
    array_to_vector(array, offset, count, ty, &mut out).unwrap();
    for (i, value) in expected.iter().enumerate() {
        assert_eq!(&out.value(i, ty), value, "{ty} from {}, row {i}", array.data_type());
    }
}

#[test]
fn every_type_survives_with_nulls_selections_slices_and_encodings() {
    // Arrow has no type for a TIMETZ.
    for ty in DataType::ALL.into_iter().filter(|ty| *ty != DataType::TimeTz) {
        for nulls in [false, true] {
            let values = rows(ty, nulls);
            let flat = vector_of(&values, ty).unwrap();
            let array = vector_to_array(&flat, None, 200, ty).unwrap();
            assert_eq!(array.data_type(), &to_arrow_type(ty));
            check(&array, 0, 200, ty, &values);
            check(&array, 67, 100, ty, &values[67..167]);
            check(&array.slice(3, 150), 64, 64, ty, &values[67..131]);

            let positions: Vec<u16> = (0..150).map(|i| (i * 7 % 200) as u16).collect();
            let picked: Vec<Value> = positions.iter().map(|&p| values[p as usize].clone()).collect();
            check(&vector_to_array(&flat, Some(&positions), 150, ty).unwrap(), 0, 150, ty, &picked);

            if ty == DataType::Null {
                continue;
            }
            for value in [&values[0], &Value::Null] {
                let mut constant = vector_of(std::slice::from_ref(value), ty).unwrap();
                constant.make_constant();
                let array = vector_to_array(&constant, Some(&positions), 150, ty).unwrap();
                check(&array, 0, 150, ty, &vec![value.clone(); 150]);
            }
            let entries = samples(ty);
            let dictionary = Dictionary::new(vector_of(&entries, ty).unwrap(), entries.len());
            let mut coded = Vector::new(ty.physical());
            for (i, code) in coded.begin_codes(&dictionary, 200)[..200].iter_mut().enumerate() {
                *code = (i % entries.len()) as u32;
            }
            (0..200).filter(|i| nulls && i % 5 == 3).for_each(|i| coded.set_null(i));
            check(&vector_to_array(&coded, None, 200, ty).unwrap(), 0, 200, ty, &values);
            check(&vector_to_array(&coded, Some(&positions), 150, ty).unwrap(), 0, 150, ty, &picked);
        }
    }
}

#[test]
fn times_with_an_offset_are_their_texts() {
    let values = [0, 1, MICROS_PER_DAY].map(|local| Value::Integer(time_tz::pack(local, 7200).into()));
    let values = [&values[..], &[Value::Null]].concat();
    let texts: Vec<Value> = values
        .iter()
        .map(|value| match value {
            Value::Null => Value::Null,
            value => Value::Text(value.display(DataType::TimeTz).to_string().into()),
        })
        .collect();
    let array = values_to_array(&values, DataType::TimeTz).unwrap();
    check(&array, 0, 4, DataType::Varchar, &texts);
}

#[test]
fn maps_and_arrays_survive_with_nulls_and_slices() {
    let map = DataType::map(DataType::Varchar, DataType::list(DataType::Int32));
    let array = DataType::array(DataType::Int64, 2).unwrap();
    let both = DataType::map(array, DataType::array(map, 1).unwrap());
    for (ty, texts) in [
        (map, ["{}", "{b=[1, NULL], a=NULL}", "{'a text of more than twelve bytes'=[]}"]),
        (array, ["[1, 2]", "[NULL, -1]", "[NULL, NULL]"]),
        (both, ["{[1, 2]=[{a=[1]}]}", "{}", "{[2, NULL]=[NULL], [NULL, NULL]=NULL}"]),
    ] {
        let values = texts.map(|text| parse_value(text, ty).unwrap());
        let rows: Vec<Value> = (0..40)
            .map(|i| if i % 5 == 2 { Value::Null } else { values[i % values.len()].clone() })
            .collect();
        let array = values_to_array(&rows, ty).unwrap();
        check(&array, 0, 40, ty, &rows);
        check(&array.slice(3, 30), 7, 20, ty, &rows[10..30]);
    }
}

#[test]
fn maps_with_a_key_twice_are_refused() {
    let list = DataType::list(DataType::structure([("key", DataType::Int32), ("value", DataType::Int32)]));
    let ty = DataType::map(DataType::Int32, DataType::Int32);
    let twice = [parse_value("[{key: 1, value: 2}, {key: 1, value: 3}]", list).unwrap()];
    let array = values_to_array(&twice, ty).unwrap();
    let mut out = Vector::new(ty.physical());
    let error = array_to_vector(&array, 0, 1, ty, &mut out).unwrap_err();
    assert_eq!(error.message(), "a MAP has the key 1 twice");
}

#[test]
fn other_layouts_of_the_same_values_are_taken() {
    let seconds = DataType::Timestamp;
    let whole = [Value::Integer(0), Value::Null, Value::Integer(-86_400_000_000)];
    let timestamps = values_to_array(&whole, seconds).unwrap();
    for unit in [TimeUnit::Second, TimeUnit::Millisecond, TimeUnit::Nanosecond] {
        check(&cast(&timestamps, &ArrowType::Timestamp(unit, None)).unwrap(), 1, 2, seconds, &whole[1..]);
    }
    let dates = values_to_array(&[Value::Integer(19_000), Value::Null], DataType::Date).unwrap();
    let expected = [Value::Integer(19_000), Value::Null];
    check(&cast(&dates, &ArrowType::Date64).unwrap(), 0, 2, DataType::Date, &expected);

    let decimal = DataType::Decimal { precision: 9, scale: 2 };
    let values = rows(decimal, true);
    let decimals = values_to_array(&values, decimal).unwrap();
    for other in [ArrowType::Decimal32(9, 2), ArrowType::Decimal64(9, 2), ArrowType::Decimal256(9, 2)] {
        check(&cast(&decimals, &other).unwrap(), 10, 100, decimal, &values[10..110]);
    }

    let values = rows(DataType::Varchar, true);
    let texts = values_to_array(&values, DataType::Varchar).unwrap();
    let key = |k: ArrowType| ArrowType::Dictionary(Box::new(k), Box::new(ArrowType::Utf8));
    for other in [ArrowType::LargeUtf8, ArrowType::Utf8View, key(ArrowType::Int8), key(ArrowType::UInt32)] {
        check(&cast(&texts, &other).unwrap(), 65, 100, DataType::Varchar, &values[65..165]);
    }
    let days = cast(
        &values_to_array(&[Value::Interval(Interval { months: 14, days: 0, micros: 0 })], DataType::Interval)
            .unwrap(),
        &ArrowType::Interval(IntervalUnit::MonthDayNano),
    )
    .unwrap();
    check(&days, 0, 1, DataType::Interval, &[Value::Interval(Interval { months: 14, days: 0, micros: 0 })]);
}

#[test]
fn strings_of_views_stay_where_they_are() {
    let values = rows(DataType::Varchar, true);
    let texts = values_to_array(&values, DataType::Varchar).unwrap();
    let views = cast(&texts, &ArrowType::Utf8View).unwrap();
    let shared = |array: &ArrayRef, out: &mut Vector| {
        array_to_vector(array, 0, array.len(), DataType::Varchar, out).unwrap();
        let of = |i: usize| {
            (array.as_string_view().value(i).as_ptr(), out.values::<StringView>()[i].as_bytes().as_ptr())
        };
        let (theirs, own) = of(2);
        theirs == own
    };
    let mut out = Vector::new(DataType::Varchar.physical());
    assert!(shared(&views, &mut out));
    drop(views);
    assert!(values.iter().enumerate().all(|(i, value)| out.value(i, DataType::Varchar) == *value));
    // Many buffers are not shared.
    let mut builder = StringViewBuilder::new().with_fixed_block_size(40);
    texts.as_string::<i32>().iter().for_each(|text| builder.append_option(text));
    let many: ArrayRef = Arc::new(builder.finish());
    assert!(many.as_string_view().data_buffers().len() > 16 && !shared(&many, &mut out));
    check(&many, 67, 100, DataType::Varchar, &values[67..167]);
}

#[test]
fn a_dictionary_is_made_once_for_all_its_batches() {
    let values: ArrayRef = Arc::new(StringArray::from(vec!["x", "a text of more than twelve bytes"]));
    let batch = |keys: Vec<Option<i8>>| DictionaryArray::<Int8Type>::new(keys.into(), values.clone());
    let mut importer = Importer::default();
    let mut out = Vector::new(DataType::Varchar.physical());
    importer.import(&batch(vec![Some(1), None]), 0, 2, DataType::Varchar, &mut out).unwrap();
    assert_eq!(out.encoding(), Encoding::Dictionary);
    let first = out.dictionary().unwrap().id();
    importer.import(&batch(vec![Some(0)]), 0, 1, DataType::Varchar, &mut out).unwrap();
    assert_eq!(out.dictionary().unwrap().id(), first);
    assert_eq!(out.value(0, DataType::Varchar), Value::Text("x".into()));
}

#[test]
fn values_that_do_not_fit_are_errors() {
    let mut out = Vector::new(DataType::Int8.physical());
    let array = Int32Array::from(vec![1, 1000]);
    assert!(array_to_vector(&array, 0, 1, DataType::Int8, &mut out).is_ok(), "only the wanted rows count");
    assert!(array_to_vector(&array, 0, 2, DataType::Int8, &mut out).is_err());

    let wide =
        arrow_array::Decimal128Array::from(vec![Some(12345), None]).with_precision_and_scale(4, 2).unwrap();
    let narrow =
        arrow_array::Decimal64Array::from(vec![Some(-12345), None]).with_precision_and_scale(4, 2).unwrap();
    let ty = DataType::Decimal { precision: 4, scale: 2 };
    for (array, shown) in [(&wide as &dyn Array, "123.45"), (&narrow, "-123.45")] {
        let error = array_to_vector(array, 0, 2, ty, &mut out).unwrap_err();
        assert_eq!(error.message(), format!("{shown} has more digits than DECIMAL(4,2)"));
        assert!(array_to_vector(array, 1, 1, ty, &mut out).is_ok());
    }
}
