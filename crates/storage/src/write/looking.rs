//! Work on very many rows that may be ended while it goes on.

use entasis_vector::Result;
use std::cmp::Ordering;

/// What is called now and then, and may end the work.
pub(super) type Look<'a> = &'a dyn Fn() -> Result<()>;

/// So many rows are sorted without a look: they take some milliseconds.
const AT_ONCE: usize = 1 << 16;

/// Sorts rows, and calls `look` now and then. More rows than a few are split at their median first, as a
/// quicksort would split them.
///
/// # Errors
/// Those of `look`.
pub(super) fn sort<T>(rows: &mut [T], order: &impl Fn(&T, &T) -> Ordering, look: Look<'_>) -> Result<()> {
    look()?;
    if rows.len() <= AT_ONCE {
        rows.sort_unstable_by(order);
        return Ok(());
    }
    let middle = rows.len() / 2;
    rows.select_nth_unstable_by(middle, order);
    let (lesser, greater) = rows.split_at_mut(middle);
    sort(lesser, order, look)?;
    sort(greater, order, look)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_rows_are_sorted_with_looks_in_between() {
        for rows in [0, 1, AT_ONCE, AT_ONCE + 1, 5 * AT_ONCE + 3] {
            let looks = std::cell::Cell::new(0);
            let look = || {
                looks.set(looks.get() + 1);
                Ok(())
            };
            let mut sorted: Vec<u64> =
                (0..rows as u64).map(|row| row.wrapping_mul(0x9E37_79B9_7F4A) % 1009).collect();
            let mut expected = sorted.clone();
            expected.sort_unstable();
            sort(&mut sorted, &u64::cmp, &look).unwrap();
            assert!(sorted == expected, "{rows} rows");
            assert!(looks.get() >= rows.div_ceil(AT_ONCE), "{} looks for {rows} rows", looks.get());
        }
    }
}
