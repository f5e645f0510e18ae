//! The SQL text tests, once under each configuration.

use entasis_testkit::configuration::{self, Configuration};
use entasis_testkit::text_test;

macro_rules! configurations {
    ($($name:ident),* $(,)?) => {
        $(
            #[test]
            fn $name() {
                if let Err(failures) = text_test::run_all(&Configuration::load(stringify!($name))) {
                    panic!("{failures}");
                }
            }
        )*

        /// The names of the tests above; every configuration must be among them.
        pub(crate) const ALL: &[&str] = &[$(stringify!($name)),*];
    };
}

configurations!(
    default,
    aggregate_spill,
    aggregate_spill_deep,
    chunks_of_3,
    compaction_dynamic,
    compaction_full,
    compaction_none,
    compaction_smart,
    fsst,
    hash_collisions,
    join_array,
    join_bounds,
    join_bounds_off,
    join_bloom,
    join_bloom_radix,
    join_cat,
    join_chained,
    join_cht,
    join_radix,
    join_ranked,
    join_spill,
    join_spill_deep,
    join_spill_half,
    join_strides,
    join_swap,
    join_swap_small,
    join_twice,
    join_twice_strides,
    join_unchained,
    line,
    multiples,
    one_thread,
    optimizer_off,
    packed,
    patched,
    reopened,
    runs,
    scaled,
    sequence,
    singles,
    small_and_colliding,
    sort_spill,
    sort_spill_deep,
    split,
    tuples,
    two_threads,
    uncompressed,
    upkeep
);

#[test]
fn every_configuration_is_run() {
    let mut all = ALL.to_vec();
    all.sort_unstable();
    assert_eq!(configuration::names(), all);
}

#[test]
fn skip_lists_name_files_that_exist() {
    for name in ALL {
        let Configuration { skips, only, .. } = Configuration::load(name);
        for path in skips.into_iter().map(|(path, _)| path).chain(only) {
            assert!(
                configuration::tests_directory().join(&path).exists(),
                "{name}: no such file or directory: {path}"
            );
        }
    }
}
