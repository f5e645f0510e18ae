//! Join filters: what a finished build side publishes for the operators below its probe side.
//!
//! If a probe row without a match leaves no trace, it need not reach the probe at all. The build side
//! publishes a [`KeyFilter`], which scans test ([`crate::exec::scan`]) and, where a filter does not reach a
//! scan, an operator before the first probe ([`before_join`]; Barber et al., *Memory-Efficient Hash Joins*,
//! VLDB 2014, section 3.1). [`filter::choose`] decides its kind:
//!
//! - *bits*: integers whose places are not too many have an exact bit each, several columns together
//!   ([`bits`]), except for many keys that nearly all probe rows are expected to have;
//! - *Bloom*: all other keys, by their hashes ([`bloom`]), unless nearly all probe rows are expected to
//!   match;
//! - *bounds*: no row is tested, but blocks are skipped by the smallest and the largest key, as they are with
//!   the other kinds.
//!
//! A filter that most rows pass costs more than it saves. So a worker looks at the last few thousand tested
//! rows, lets a million pass untested if most of these had passed, and tries again ([`FilterWorker`]; Bandle,
//! Giceva and Neumann, *To Partition, or Not to Partition*, SIGMOD 2021, section 5.4.1). `join_filter` forces
//! a kind, and a forced filter is always tested.
//!
//! NULL is never a key here: joins in which NULL equals NULL have no filter.
//!
//! Scans and joins are above this module: a scan tests filters, a join makes them. Join tables share with
//! filters how keys become places ([`places`]) and which keys exist.

pub(crate) mod before_join;
mod bits;
mod bloom;
mod build_keys;
mod filter;
mod integers;
pub(crate) mod order;
mod placed;
mod places;
pub(crate) mod pushed;
mod seen;
mod threshold;

pub(crate) use bits::{Bits, BitsCount};
pub(crate) use build_keys::{BuildInput, KeyHashes, for_each_batch, key_bounds, sample};
pub(crate) use filter::{Expected, FilterSlot, FilterWorker, KeyFilter};
pub(crate) use integers::{for_each_integer, is_integer};
pub(crate) use placed::{PlacedFilter, PlacedTest, PlacedWorker, PlannedFilter, PlannedTest};
pub(crate) use places::{NOWHERE, OUTSIDE, Packing};
pub(crate) use seen::Seen;
