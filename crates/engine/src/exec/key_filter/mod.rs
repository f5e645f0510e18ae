//! Join filters: what a finished build side tells those that feed its probe side.
//!
//! If a probe row without match leaves no trace, it need not come to the probe at all. The build publishes a
//! [`KeyFilter`], which scans test ([`crate::exec::scan`]) and, where one does not reach a scan, an operator
//! before the first probe ([`before_join`]; Barber et al., *Memory-Efficient Hash Joins*, VLDB 2014, section
//! 3.1). What it is made of is [`filter::choose`]'s decision:
//!
//! - *bits*: integers whose places are not too many have an exact bit each, several columns together
//!   ([`bits`]), but for many keys that nearly all probe rows are expected to have;
//! - *Bloom*: all other keys, by their hashes ([`bloom`]), if not nearly all probe rows are expected to
//!   match;
//! - *bounds*: nothing is tested, but blocks are skipped by the smallest and the largest key, as they are
//!   with the others.
//!
//! A filter that lets most rows pass costs more than it brings. So whoever tests one looks at what became of
//! the last few thousand rows, lets a million pass untested if most had passed, and looks again
//! ([`FilterWorker`]; Bandle, Giceva and Neumann, *To Partition, or Not to Partition*, SIGMOD 2021, section
//! 5.4.1). `join_filter` forces a kind, and a forced filter is always tested.
//!
//! NULL is no key here: joins in which NULL equals NULL have no filter.
//!
//! Scans and joins stand above: a scan tests filters, a join makes them, and the tables of joins share with
//! them how keys become places ([`places`]) and which keys there are.

pub(crate) mod before_join;
mod bits;
mod bloom;
mod build_keys;
mod filter;
mod integers;
pub(crate) mod order;
mod places;
pub(crate) mod pushed;
mod seen;

pub(crate) use before_join::PlacedFilter;
pub(crate) use bits::{Bits, BitsCount};
pub(crate) use build_keys::{BuildInput, KeyHashes, for_each_batch, key_bounds, sample};
pub(crate) use filter::{Expected, FilterSlot, FilterWorker, KeyFilter};
pub(crate) use integers::{for_each_integer, is_integer};
pub(crate) use places::{NOWHERE, OUTSIDE, Packing};
pub(crate) use seen::Seen;
