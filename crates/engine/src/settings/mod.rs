//! Settings that the engine reads: their values, names in SQL, and defaults.
//!
//! Plain data at the bottom of the crate: operators read them from the statement's context
//! ([`crate::context::QueryContext`]), and none of them is defined where it is read.

mod join_tables;

pub use join_tables::{parse_wanted, show_wanted};

use entasis_vector::CHUNK_ROWS;
use std::sync::Arc;

/// `NAMES` and `Display` for an enum that is a setting, by the names of its variants. A variant without a
/// name does not compile.
macro_rules! named {
    ($kind:ident: $($variant:ident = $name:literal),+) => {
        impl $kind {
            /// All, with their names in SQL.
            pub const NAMES: [($kind, &'static str); [$($name),+].len()] = [$(($kind::$variant, $name)),+];
        }

        impl std::fmt::Display for $kind {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(match self {
                    $($kind::$variant => $name),+
                })
            }
        }
    };
}

/// Settings that the engine reads. Names as in SQL's `SET`.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Workers, the calling thread included; at least 1.
    pub threads: usize,
    /// Rows of a chunk, 1 to [`CHUNK_ROWS`]. Small ones are for tests.
    pub chunk_rows: usize,
    /// True: every hash of a join is the same, and there are two for all groups, so that all tables collide.
    /// For tests.
    pub hash_collisions: bool,
    /// Count rows, chunks, time and memory of each operator.
    pub profile: bool,
    /// Reorder joins and push predicates; off gives the plan as it was written. For tests.
    pub optimize: bool,
    /// Whether rows that operators keep become compressed tuples.
    pub temp_compression: TempCompression,
    /// Which table joins make of their build side.
    pub join_table: TableKind,
    /// Which table single joins make, by their number in the plan.
    pub join_tables: Arc<[(usize, TableKind)]>,
    /// What joins make filters of for their probe side.
    pub join_filter: FilterKind,
    /// Which partitions of joins go to temporary files.
    pub join_spill: JoinSpill,
    /// When aggregations write rows to temporary files.
    pub aggregate_spill: Spilling,
    /// When sorts do.
    pub sort_spill: Spilling,
    /// Bytes that the build rows and the table of a radix join's partition should have: what a worker's cache
    /// holds.
    pub join_partition_size: usize,
    /// Bytes of probe rows that a worker holds back, to look them up in the order of a table; 0: none.
    pub join_stride: usize,
    /// How often the input of a build side is read.
    pub join_build: Readings,
    /// Whether the sides of a join are swapped if far more rows are to be kept than were expected.
    pub join_swap: Swapping,
    /// Whether joins search the bounds of inequalities in an order.
    pub join_bounds: Searching,
    /// When small chunks are copied together.
    pub compaction: Compaction,
    /// Where temporary files are; empty: there are none, and what does not fit into memory fails.
    pub temp_directory: Arc<str>,
    /// Bytes that all temporary files of a database may have together.
    pub max_temp_directory_size: u64,
    /// Bytes of a result's rows that wait in memory for the reader of a stream, before more go to a temporary
    /// file.
    pub result_buffer: usize,
    /// Segments of 65,536 rows that one table of a join may have: row ids have room for 65,535 of them. For
    /// tests.
    pub most_segments: usize,
    /// Scans order conjuncts by what they are measured to do, and leave out join filters that bring nothing;
    /// off leaves them as the plan has them. For tests.
    pub adaptive: bool,
}

impl Default for Settings {
    fn default() -> Settings {
        // Asked once: the answer is read from files.
        static PARALLELISM: std::sync::OnceLock<usize> = std::sync::OnceLock::new();
        let threads = *PARALLELISM
            .get_or_init(|| std::thread::available_parallelism().map_or(1, std::num::NonZero::get));
        Settings {
            threads,
            chunk_rows: CHUNK_ROWS,
            hash_collisions: false,
            profile: false,
            optimize: true,
            temp_compression: TempCompression::Auto,
            join_table: TableKind::Auto,
            join_tables: Arc::default(),
            join_filter: FilterKind::Auto,
            join_spill: JoinSpill::Auto,
            aggregate_spill: Spilling::Auto,
            sort_spill: Spilling::Auto,
            join_partition_size: 1 << 20,
            join_stride: 0,
            join_build: Readings::Auto,
            join_swap: Swapping::Auto,
            join_bounds: Searching::Auto,
            compaction: Compaction::Auto,
            temp_directory: std::env::temp_dir().display().to_string().into(),
            max_temp_directory_size: u64::MAX,
            result_buffer: 16_000_000,
            // Rows of several workers and of a chunk more may still come.
            most_segments: 60_000,
            adaptive: true,
        }
    }
}

/// Whether operators compress the rows that they keep. The setting `temp_compression`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum TempCompression {
    /// If memory is short and it helps.
    #[default]
    Auto,
    /// Always.
    On,
    /// Never, nor do columns of rows that are put in place share words (`exec::materialized`).
    Off,
}

named!(TempCompression: Auto = "auto", On = "on", Off = "off");

/// A kind of join table. The setting `join_table`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum TableKind {
    /// Whatever the finished build side suggests.
    #[default]
    Auto,
    /// A bit for each key, where nothing else is asked.
    Bitmap,
    /// A head for each value between the smallest and the largest key.
    Array,
    /// A head for each key, found by rank.
    Ranked,
    /// The concise array table.
    Cat,
    /// The concise hash table.
    Cht,
    /// Rows side by side by hash.
    Unchained,
    /// Heads and chains by hash.
    Chained,
    /// One of the above for each partition, small enough for a cache (`exec::join::partitioned`).
    Radix,
    /// The same, and a Bloom filter before probe rows are kept.
    BloomRadix,
}

named!(TableKind: Auto = "auto", Bitmap = "bitmap", Array = "array", Ranked = "ranked", Cat = "cat", Cht = "cht", Unchained = "unchained", Chained = "chained", Radix = "radix", BloomRadix = "bloom_radix");

impl TableKind {
    /// True for those of which each partition has its own.
    pub fn is_partitioned(self) -> bool {
        matches!(self, TableKind::Radix | TableKind::BloomRadix)
    }

    /// The one of this name; `None` if there is none.
    pub fn parse(name: &str) -> Option<TableKind> {
        TableKind::NAMES.iter().find(|(_, own)| *own == name).map(|(kind, _)| *kind)
    }
}

/// What join filters are made of. The setting `join_filter`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum FilterKind {
    /// Whatever the finished build side suggests.
    #[default]
    Auto,
    /// There are none.
    Off,
    /// Bits, where keys have places that are not too many.
    Bits,
    /// Bloom filters for all keys.
    Bloom,
}

named!(FilterKind: Auto = "auto", Off = "off", Bits = "bits", Bloom = "bloom");

/// Which partitions of joins go to temporary files. The setting `join_spill`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum JoinSpill {
    /// Those that there is no memory for.
    #[default]
    Auto,
    /// Every second one. For tests.
    Half,
    /// All. For tests.
    All,
    /// All, and only a few rows are taken to fit into memory then. For tests.
    Deep,
}

named!(JoinSpill: Auto = "auto", Half = "half", All = "all", Deep = "deep");

/// When sorts and aggregations write rows to temporary files. The settings `sort_spill` and
/// `aggregate_spill`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Spilling {
    /// When memory is short.
    #[default]
    Auto,
    /// After few rows. For tests.
    All,
    /// After hardly any rows, and what comes back is taken to be too large. For tests.
    Deep,
}

named!(Spilling: Auto = "auto", All = "all", Deep = "deep");

/// How often the input of a build side is read. The setting `join_build`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Readings {
    /// Twice where it is taken to pay.
    #[default]
    Auto,
    /// Once.
    Once,
    /// Twice where it is possible.
    Twice,
}

named!(Readings: Auto = "auto", Once = "once", Twice = "twice");

/// Whether the sides of a join may be swapped while it runs. The setting `join_swap`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Swapping {
    /// Where far more rows came than were expected, and it pays.
    #[default]
    Auto,
    /// Never.
    Off,
    /// Wherever it is possible. For tests.
    Always,
}

named!(Swapping: Auto = "auto", Off = "off", Always = "always");

/// When small chunks are made larger. The setting `compaction`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Compaction {
    /// Learning and logical, and scans hold back rows of stretches of which filters leave few.
    #[default]
    Auto,
    /// Never.
    None,
    /// All chunks that are not full are copied together.
    Full,
    /// Those of at most a sixteenth of a full one.
    Binary,
    /// Those up to a threshold by the cost model.
    Dynamic,
    /// Those up to a threshold that is learned.
    Learning,
    /// None are copied, but probes collect the matches of a chunk.
    Logical,
    /// Learning and logical.
    Smart,
}

named!(Compaction: Auto = "auto", None = "none", Full = "full", Binary = "binary", Dynamic = "dynamic", Learning = "learning", Logical = "logical", Smart = "smart");

impl Compaction {
    /// True if probes collect the matches of a chunk over all steps of their chains.
    pub fn is_logical(self) -> bool {
        matches!(self, Compaction::Auto | Compaction::Logical | Compaction::Smart)
    }

    /// True if small chunks are copied together.
    pub fn copies(self) -> bool {
        !matches!(self, Compaction::None | Compaction::Logical)
    }

    /// True if thresholds are learnt.
    pub fn learns(self) -> bool {
        matches!(self, Compaction::Auto | Compaction::Learning | Compaction::Smart)
    }
}

/// Whether joins search the bounds of inequalities in an order. The setting `join_bounds`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Searching {
    /// Where that takes less time by estimate (`bounds`).
    #[default]
    Auto,
    /// Never: all pairs are looked at, or all of equal keys.
    Off,
    /// Wherever there are bounds.
    Always,
}

named!(Searching: Auto = "auto", Off = "off", Always = "always");
