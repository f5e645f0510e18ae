//! Casts of whole vectors against [`convert`], their twin, between all types: values with and without a
//! counterpart, NULLs, and more rows than a chunk has.

use super::tests::Random;
use super::*;
use crate::types::{Interval, MICROS_PER_DAY};
use crate::{CHUNK_ROWS, time_tz};

/// Values at the edges of a type, near zero and in between.
fn samples(random: &mut Random, ty: DataType) -> Vec<Value> {
    let integers = |v: &[i128]| v.iter().map(|&v| Value::Integer(v)).collect::<Vec<_>>();
    let texts = |v: &[&str]| v.iter().map(|&v| Value::Text(v.into())).collect::<Vec<_>>();
    match ty {
        DataType::Boolean => vec![Value::Boolean(true), Value::Boolean(false)],
        DataType::Float32 | DataType::Float64 => {
            let edges = [0.0, -0.5, 2.5, 3.5, 127.5, 1e30, -1.5e19, 1e300, f64::INFINITY, f64::NAN];
            let held = |v: f64| if ty == DataType::Float32 { f64::from(v as f32) } else { v };
            edges.map(|v| Value::Float(held(v))).into()
        }
        DataType::Varchar => texts(&[
            "",
            "1",
            " -7 ",
            "12.345",
            "1e40",
            "true",
            "2024-02-29",
            "2024-02-29 12:34:56.5",
            "12:34:56+02",
            "1 day",
            "happy",
            "{\"a\": [1]}",
            "550e8400-e29b-41d4-a716-446655440000",
            "a text that is longer than a view",
        ]),
        DataType::Json => texts(&["1", "-12.5", "true", "null", "{\"a\": [1]}"]),
        DataType::Blob => [&b"\x00\xff"[..], &b""[..], &b"bytes that are longer than a view"[..]]
            .map(|bytes| Value::Bytes(Arc::from(bytes)))
            .into(),
        DataType::Interval => [(0, 0, 0), (-3, 40, 1), (0, 0, -MICROS_PER_DAY)]
            .map(|(months, days, micros)| Value::Interval(Interval { months, days, micros }))
            .into(),
        DataType::Uuid => integers(&[0, 1, -1, i128::MIN]),
        DataType::Time => integers(&[0, 1, (MICROS_PER_DAY - 1).into()]),
        DataType::TimeTz => [(0, 0), (1, 7200), (MICROS_PER_DAY, -time_tz::MOST_OFFSET)]
            .map(|(local, offset)| Value::Integer(time_tz::pack(local, offset).into()))
            .into(),
        ty => {
            let (low, high) = ty.integer_range().expect("the other types are integers inside");
            let mut all = vec![low, low + 1, high - 1, high, 0, 1, -1, 999, -1500, 1_700_000_000_000_001];
            all.extend((0..20).map(|_| {
                let wide = i128::from(random.next(u64::MAX)) - i128::from(i64::MAX);
                wide >> random.next(64)
            }));
            all.retain(|v| (low..=high).contains(v));
            integers(&all)
        }
    }
}

#[test]
fn vectors_are_cast_as_their_values_are() {
    let mut random = Random(29);
    let labels = DataType::enumeration(["happy", "1", "true"]).unwrap();
    let types = || DataType::ALL.into_iter().filter(|ty| *ty != DataType::Null).chain([labels]);
    for from in types() {
        let samples = samples(&mut random, from);
        for to in types() {
            let mut out = Vector::new(to.physical());
            let (mut fit, mut expected, mut unfit) = (Vec::new(), Vec::new(), Vec::new());
            for value in &samples {
                match convert(value, from, to) {
                    Ok(converted) => {
                        fit.push(value.clone());
                        expected.push(converted);
                    }
                    Err(error) => unfit.push((value.clone(), error)),
                }
            }
            fit.push(Value::Null);
            expected.push(Value::Null);
            for rows in [1, 2, 70, CHUNK_ROWS, CHUNK_ROWS + 5] {
                let values: Vec<Value> = fit.iter().cycle().take(rows).cloned().collect();
                let vector = Vector::of_values(from, &values).unwrap();
                cast_rows(&vector, from, to, rows, &mut out).unwrap();
                for (row, expected) in expected.iter().cycle().take(rows).enumerate() {
                    assert_eq!(out.value(row, to), *expected, "{from} to {to}: {:?}", values[row]);
                }
            }
            for (value, error) in unfit {
                let values = [&fit[..], &[value]].concat();
                let vector = Vector::of_values(from, &values).unwrap();
                let found = cast_rows(&vector, from, to, values.len(), &mut out).unwrap_err();
                assert_eq!(found.message(), error.message(), "{from} to {to}");
                // What is no row does not count.
                assert!(cast_rows(&vector, from, to, fit.len(), &mut out).is_ok(), "{from} to {to}");
            }
        }
    }
}
