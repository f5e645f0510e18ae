//! Functions of chance: another value for each row.

use crate::by_value::volatile;
use entasis_vector::expr::Expr;
use entasis_vector::vector::uuid_to_ordered;
use entasis_vector::{DataType, Value};
use std::cell::Cell;
use std::hash::{BuildHasher, RandomState};

/// The next 64 bits of this thread's generator (SplitMix64; Steele, Lea, Flood, OOPSLA 2014), which begins
/// anywhere. Not for secrets.
fn next() -> u64 {
    thread_local! {
        static STATE: Cell<u64> = Cell::new(RandomState::new().hash_one(0));
    }
    let state = STATE.get().wrapping_add(0x9e37_79b9_7f4a_7c15);
    STATE.set(state);
    let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

/// A DOUBLE from 0 to below 1: `random()`.
pub fn random() -> Expr {
    // As many bits as a DOUBLE holds.
    volatile("random", DataType::Float64, || Ok(Value::Float((next() >> 11) as f64 / (1u64 << 53) as f64)))
}

/// A UUID of version 4: `uuid()`.
pub fn uuid() -> Expr {
    volatile("uuid", DataType::Uuid, || {
        let bits = u128::from(next()) << 64 | u128::from(next());
        let version = (bits & !(0xf << 76)) | 4 << 76;
        let variant = (version & !(3 << 62)) | 2 << 62;
        Ok(Value::Integer(uuid_to_ordered(variant as i128)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use entasis_vector::expr::evaluate_constant;

    #[test]
    fn numbers_are_spread_over_their_range() {
        let values: Vec<f64> = (0..1000).map(|_| (next() >> 11) as f64 / (1u64 << 53) as f64).collect();
        assert!(values.iter().all(|value| (0.0..1.0).contains(value)));
        for tenth in 0..10 {
            let low = f64::from(tenth) / 10.0;
            let count = values.iter().filter(|value| (low..low + 0.1).contains(*value)).count();
            assert!((40..200).contains(&count), "{count} of 1,000 in a tenth");
        }
    }

    #[test]
    fn uuids_say_their_version() {
        let call = uuid();
        let shown = evaluate_constant(&call).unwrap().display(DataType::Uuid).to_string();
        assert_eq!(shown.as_bytes()[14], b'4', "{shown}");
        assert!(b"89ab".contains(&shown.as_bytes()[19]), "{shown}");
    }
}
