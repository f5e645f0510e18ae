//! A week in which the workload drifts: does a layout that follows it do as well as the best fixed one that
//! could have been chosen in hindsight?
//!
//! Each of the seven [`WEEK`] days has `--operations` operations with a skew of its own: most of them fall on
//! a tenth of the keys, which moves along the key; one day falls everywhere, one only reads, and late in the
//! week rows go where they came early in it. Upkeep runs beside the operations, and in the night that follows
//! until nothing is left to do, for at least [`NIGHT`] rounds, so that the table has rested for long.
//!
//! | contestant | |
//! |---|---|
//! | `casper` | counts operations, and has its ghosts by workload; with several shares of ghosts |
//! | `equi_ghost`, `delta`, `equi`, `sorted` | fixed; the first one with the same shares |
//! | `casper, told nothing` | loaded anew each morning with the rows of that moment |
//!
//! All do the same operations in the same order, and must give the same answers. They take turns, in another
//! order each round; of the rounds the median counts. A contestant with less than half of the throughput of
//! the best is measured once.
//!
//! Throughput is by the time that the thread has had a processor for, so that other users of the machine do
//! not decide; what it waits for, locks that upkeep holds, is in the latencies and not in the throughput. The
//! rate by the clock is recorded beside it.
//!
//! Not measured: `insertion`, which scans all rows for each look-up by key (6,000 operations a second at
//! most, see the throughput experiment).

use super::Settings;
use crate::engine::{self, Keeper, Kept, REST, Stored};
use crate::measure::{Outcome, median, run};
use crate::operations::{Keys, Step};
use crate::report::{Json, figure, map};
use crate::store::Store;
use entasis_layout::frequency::Operation;
use entasis_layout::random::Random;
use entasis_storage::{Layout, RowGroup, Table, TableOptions};
use std::sync::Arc;

/// Rounds of upkeep of a night, at least: enough for a row group to have rested for long.
const NIGHT: usize = 12;
/// Rounds of upkeep of a night, at most: more than a row group waits that was written each day.
const LONG_NIGHT: usize = 1000;
/// The share of the operations that fall on the hot keys, and the share of these keys.
const SKEW: (f64, f64) = (0.9, 0.1);
/// The share of the rows that a range contains.
const RANGE: f64 = 0.001;

/// A day.
#[derive(Debug, Clone, Copy)]
struct Day {
    name: &'static str,
    /// Point queries, ranges, inserts and deletes of a hundred operations.
    mix: [usize; 4],
    /// Where the hot keys begin; `None` if there are none.
    hot: Option<f64>,
    /// Where the hot keys of deletes begin.
    gone: Option<f64>,
}

/// The shares of ghosts.
const SHARES: [f64; 4] = [0.001, 0.01, 0.05, 0.2];

/// The name of a layout with a share of ghosts.
fn named(layout: &str, share: f64) -> String {
    format!("{layout}, {} %", share * 100.0)
}

const WORK: [usize; 4] = [45, 5, 35, 15];

/// The days, in order.
const WEEK: [Day; 7] = [
    Day { name: "hot at 10 %", mix: WORK, hot: Some(0.1), gone: Some(0.1) },
    Day { name: "hot at 30 %", mix: WORK, hot: Some(0.3), gone: Some(0.3) },
    Day { name: "hot at 50 %", mix: WORK, hot: Some(0.5), gone: Some(0.3) },
    Day { name: "everywhere", mix: WORK, hot: None, gone: None },
    Day { name: "read-only", mix: [90, 10, 0, 0], hot: Some(0.5), gone: None },
    Day { name: "hot at 70 %, old rows go", mix: [35, 5, 35, 25], hot: Some(0.7), gone: Some(0.1) },
    Day { name: "hot at 80 %", mix: WORK, hot: Some(0.8), gone: Some(0.3) },
];

impl Day {
    /// An endless sequence of its operations, on places below `rows`.
    fn operations(self, rows: u64, seed: u64) -> impl Iterator<Item = Operation<u64>> {
        let mut random = Random::new(seed);
        let at = move |share: f64| ((share * rows as f64) as u64).min(rows - 1);
        std::iter::from_fn(move || {
            let mut place = |hot: Option<f64>| match hot {
                Some(start) if random.unit() < SKEW.0 => start + SKEW.1 * random.unit(),
                _ => random.unit(),
            };
            let (hot, gone) = (place(self.hot), place(self.gone));
            let [points, ranges, inserts, _] = self.mix;
            let kind = random.below(100);
            Some(match kind {
                kind if kind < points => Operation::Point(at(hot)),
                kind if kind < points + ranges => Operation::Range(at(hot), at(hot + RANGE)),
                kind if kind < points + ranges + inserts => Operation::Insert(at(hot)),
                _ => Operation::Delete(at(gone)),
            })
        })
    }
}

/// The operations of the days, each with the keys that are there when it begins.
fn week(settings: &Settings) -> Vec<(Vec<i64>, Vec<Step>)> {
    let rows = settings.rows as u64;
    let mut keys = Keys::loaded(rows);
    let days = WEEK.iter().enumerate().map(|(number, day)| {
        let before = keys.now();
        let operations = day.operations(rows, settings.seed * 7 + number as u64).take(settings.operations);
        (before, operations.map(|operation| keys.step(operation, true)).collect())
    });
    days.collect()
}

/// A table that takes part.
#[derive(Debug, Clone)]
struct Contestant {
    name: String,
    options: TableOptions,
    /// It is loaded anew each morning.
    is_fresh: bool,
}

impl Contestant {
    /// All of them; the one that is told nothing is the first.
    fn all() -> Vec<Contestant> {
        let of = |name: &str, layout: Layout| (name.to_owned(), engine::options(layout));
        let mut all = vec![
            of("casper, told nothing", Layout::Casper),
            of("sorted", Layout::Sorted),
            of("delta", Layout::Delta),
            of("equi", Layout::Equi),
        ];
        for share in SHARES {
            for (name, layout) in [("casper", Layout::Casper), ("equi_ghost", Layout::EquiGhost)] {
                all.push((named(name, share), TableOptions { ghost: share, ..engine::options(layout) }));
            }
        }
        let numbered = all.into_iter().enumerate();
        numbered.map(|(at, (name, options))| Contestant { name, options, is_fresh: at == 0 }).collect()
    }

    /// True if it keeps one layout for the whole week.
    fn is_fixed(&self) -> bool {
        self.options.layout != Layout::Casper
    }

    /// Its week; shorter if it did not finish a day in time.
    fn perform(&self, settings: &Settings, week: &[(Vec<i64>, Vec<Step>)]) -> Vec<Measured> {
        let load = |keys: &[i64]| {
            let table = engine::holding(keys.to_vec(), settings.payloads, self.options.clone());
            night(&table);
            table
        };
        let mut table = load(&week[0].0);
        let mut days = Vec::new();
        for (number, (keys, steps)) in week.iter().enumerate() {
            if self.is_fresh && number > 0 {
                table = load(keys);
            }
            let keeper = Keeper::of(vec![table.clone()], REST);
            let outcome = run(&mut Stored::new(table.clone()), steps, settings.payloads, settings.limit);
            let kept = keeper.end();
            let (slots, bytes) = (slots(&table), Stored::new(table.clone()).bytes());
            let is_done = outcome.done == steps.len();
            days.push(Measured { outcome, kept, night: night(&table), slots, bytes });
            if !is_done {
                break;
            }
        }
        days
    }
}

fn slots(table: &Arc<Table>) -> usize {
    table.snapshot().row_groups().map(RowGroup::slots).sum()
}

/// Upkeep until nothing is left to do, and the table has rested for long.
fn night(table: &Arc<Table>) -> Kept {
    let mut kept = Kept::default();
    for number in 1..=LONG_NIGHT {
        let done = kept.round(table);
        if number >= NIGHT && done.is_done && done.warm == 0 && done.spread + done.encoded == 0 {
            break;
        }
    }
    kept
}

/// A day of a contestant.
#[derive(Debug, Clone)]
struct Measured {
    outcome: Outcome,
    /// Upkeep beside the operations, and in the night behind them.
    kept: Kept,
    night: Kept,
    /// In the evening.
    slots: usize,
    bytes: usize,
}

impl Measured {
    /// Operations a second, by the time on the processor.
    fn speed(&self) -> f64 {
        self.outcome.done as f64 / self.outcome.on_processor
    }
}

/// The rounds of a contestant, all days of each.
type Rounds = Vec<Vec<Measured>>;
/// A figure of these.
type Figure<'a> = &'a dyn Fn(&[Vec<Measured>]) -> f64;

fn finished(rounds: &[Vec<Measured>]) -> bool {
    rounds.iter().all(|week| week.len() == WEEK.len())
}

/// Operations a second on a day, the median of the rounds.
fn speed(rounds: &[Vec<Measured>], day: usize) -> f64 {
    median(rounds.iter().map(|week| week[day].speed()).collect())
}

/// Operations a second of the whole week.
fn weekly(rounds: &[Vec<Measured>]) -> f64 {
    let of = |week: &Vec<Measured>| {
        let sum = |own: fn(&Measured) -> f64| week.iter().map(own).sum::<f64>();
        sum(|day| day.outcome.done as f64) / sum(|day| day.outcome.on_processor)
    };
    median(rounds.iter().map(of).collect())
}

/// Runs everything and prints a table for each day and one for the week.
///
/// # Panics
/// If two layouts give different answers.
pub fn drift(settings: &Settings) -> Json {
    let is_asked =
        |own: &Contestant| own.name.split(',').next().is_some_and(|layout| settings.has_layout(layout));
    let (week, all) = (week(settings), Contestant::all().into_iter().filter(is_asked).collect::<Vec<_>>());
    let mut results: Vec<Rounds> = vec![Vec::new(); all.len()];
    for round in 0..settings.rounds {
        for turn in 0..all.len() {
            let at = (turn + round) % all.len();
            let best = results.iter().filter(|own| !own.is_empty() && finished(own)).map(|own| weekly(own));
            let best = best.fold(0.0, f64::max);
            let own = &results[at];
            if own.is_empty() || (finished(own) && weekly(own) * 2.0 >= best) {
                let days = all[at].perform(settings, &week);
                results[at].push(days);
            }
        }
    }
    for (number, (_, steps)) in week.iter().enumerate() {
        let days = results.iter().flatten().filter_map(|week| week.get(number));
        let mut done = days.filter(|day| day.outcome.done == steps.len()).map(|day| day.outcome.answers);
        let first = done.next();
        assert!(done.all(|own| Some(own) == first), "all give the same answers on day {}", number + 1);
    }
    let days: Vec<Json> = (0..WEEK.len()).map(|day| daily(settings, &all, &results, day)).collect();
    map([("days", days.into()), ("week", conclusion(&all, &results))])
}

/// Prints a day, and returns its record.
fn daily(settings: &Settings, all: &[Contestant], results: &[Rounds], day: usize) -> Json {
    println!("\nday {}: {}", day + 1, WEEK[day].name);
    println!(
        "{:22}{:>10}{:>24}{:>22}{:>9}{:>8}  mean / p99.9 µs",
        "layout", "ops/s", "laid anew, day + night", "encoded again", "upkeep s", "bytes"
    );
    let mut records = Vec::new();
    for (contestant, rounds) in all.iter().zip(results) {
        let Some(first) = rounds[0].get(day) else { continue };
        let of = |figure: &dyn Fn(&Measured) -> f64| {
            median(rounds.iter().filter_map(|week| week.get(day)).map(figure).collect())
        };
        let latencies: Vec<(usize, [f64; 3])> = first
            .outcome
            .queries()
            .map(|query| {
                let at = |share: f64| of(&|own| own.outcome.at(query, share).unwrap_or(0.0));
                (query, [at(0.5), of(&|own| own.outcome.mean(query).unwrap_or(0.0)), at(0.999)])
            })
            .collect();
        let texts = latencies.iter().map(|(query, [_, mean, tail])| {
            format!("{} {} / {}", &Step::QUERIES[*query][..2], figure(Some(*mean)), figure(Some(*tail)))
        });
        let texts: Vec<String> = texts.collect();
        let throughput = of(&Measured::speed);
        let [spread, rest, encoded, at_night] = [
            of(&|own| own.kept.spread as f64),
            of(&|own| own.night.spread as f64),
            of(&|own| own.kept.encoded as f64),
            of(&|own| own.night.encoded as f64),
        ];
        let bytes = of(&|own| own.bytes as f64) / settings.rows as f64;
        let seconds = of(&|own| own.kept.seconds);
        println!(
            "{:22}{throughput:>10.0}{spread:>15.0} + {rest:>6.0}{encoded:>13.0} + {at_night:>6.0}\
             {seconds:>9.2}{bytes:>8.1}  {}",
            contestant.name,
            texts.join("   ")
        );
        let latencies = latencies.into_iter().map(|(query, [median, mean, tail])| {
            map([
                ("query", Step::QUERIES[query].into()),
                ("median_us", median.into()),
                ("mean_us", mean.into()),
                ("p999_us", tail.into()),
            ])
        });
        records.push(map([
            ("layout", contestant.name.as_str().into()),
            ("operations", first.outcome.done.into()),
            ("per_second", throughput.into()),
            ("per_second_by_the_clock", of(&|own| own.outcome.throughput()).into()),
            ("laid_anew", (spread + rest).into()),
            ("laid_anew_at_night", rest.into()),
            ("encoded", (encoded + at_night).into()),
            ("upkeep_seconds", seconds.into()),
            ("slots", of(&|own| own.slots as f64).into()),
            ("bytes_per_row", bytes.into()),
            ("queries", latencies.collect::<Vec<Json>>().into()),
        ]));
    }
    map([("day", (day + 1).into()), ("name", WEEK[day].name.into()), ("layouts", records.into())])
}

/// Prints how `casper` did with each share of ghosts, on the last day and over the week: beside the fixed
/// layout with the same share, and beside the best fixed one.
fn conclusion(all: &[Contestant], results: &[Rounds]) -> Json {
    let last = WEEK.len() - 1;
    let finishers: Vec<(&Contestant, &Rounds)> =
        all.iter().zip(results).filter(|(_, rounds)| finished(rounds)).collect();
    let mut records = Vec::new();
    println!(
        "\n{:22}{:>10}{:>10}{:>10}  ops/s: week, last day; of each round the week",
        "layout", "week", "last day", "rounds"
    );
    for (contestant, rounds) in &finishers {
        let singles: Vec<f64> = rounds.iter().map(|week| weekly(std::slice::from_ref(week))).collect();
        println!(
            "{:22}{:>10.0}{:>10.0}{:>10}  {singles:.0?}",
            contestant.name,
            weekly(rounds),
            speed(rounds, last),
            rounds.len()
        );
        records.push(map([
            ("layout", contestant.name.as_str().into()),
            ("per_second", weekly(rounds).into()),
            ("last_day_per_second", speed(rounds, last).into()),
            ("rounds", singles.into_iter().map(Json::from).collect::<Vec<Json>>().into()),
        ]));
    }
    let mut entries = vec![("layouts", Json::from(records))];
    let find = |name: &str| finishers.iter().find(|(contestant, _)| contestant.name == name);
    let figures: [(&'static str, &'static str, Figure<'_>); 2] = [
        ("last day", "last_day", &|rounds| speed(rounds, last)),
        ("week", "whole_week", &|rounds| weekly(rounds)),
    ];
    for (name, key, figure) in figures {
        let fixed = finishers.iter().filter(|(contestant, _)| contestant.is_fixed());
        let Some((best, of_best)) = fixed.max_by(|(_, a), (_, b)| figure(a).total_cmp(&figure(b))) else {
            continue;
        };
        println!("{name}: the best fixed one is {}", best.name);
        let mut ratios = Vec::new();
        for share in SHARES {
            let (own, same) = (find(&named("casper", share)), find(&named("equi_ghost", share)));
            let (Some((own, of_own)), Some((_, of_same))) = (own, same) else { continue };
            let (by_same, by_best) = (figure(of_own) / figure(of_same), figure(of_own) / figure(of_best));
            println!(
                "  {:15} {by_same:.3} of equi_ghost with as many ghosts, {by_best:.3} of that",
                own.name
            );
            ratios.push(map([
                ("layout", own.name.as_str().into()),
                ("by_equi_ghost", by_same.into()),
                ("casper_by_best_fixed", by_best.into()),
            ]));
        }
        entries.push((key, map([("best_fixed", best.name.as_str().into()), ("ratios", ratios.into())])));
    }
    Json::Map(entries)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn settings() -> Settings {
        Settings {
            rows: 4000,
            operations: 700,
            limit: Duration::from_secs(60),
            bare: false,
            rounds: 1,
            ..Settings::of("drift")
        }
    }

    /// Operations fall where the day says, and a day begins with the keys that the day before left.
    #[test]
    fn the_week_drifts() {
        let settings = settings();
        let week = week(&settings);
        for (day, (keys, steps)) in WEEK.iter().zip(&week) {
            let place = |key: i64| (key >> 20) as f64 / 4000.0;
            let inserts: Vec<f64> = steps
                .iter()
                .filter_map(|step| if let Step::Insert(key) = step { Some(place(*key)) } else { None })
                .collect();
            assert_eq!(inserts.is_empty(), day.mix[2] == 0);
            if let Some(hot) = day.hot {
                let inside = inserts.iter().filter(|place| (hot..hot + SKEW.1).contains(*place)).count();
                assert!(inside * 10 >= inserts.len() * 8, "{}: {inside} of {}", day.name, inserts.len());
            }
            assert!(keys.is_sorted() && keys.len() >= 3900);
        }
        let mut live: std::collections::BTreeSet<i64> = week[0].0.iter().copied().collect();
        for ((_, steps), (after, _)) in week.iter().zip(&week[1..]) {
            for step in steps {
                match *step {
                    Step::Insert(key) => assert!(live.insert(key)),
                    Step::Delete(key) => assert!(live.remove(&key)),
                    _ => {}
                }
            }
            assert!(live.iter().eq(after.iter()));
        }
    }

    /// All contestants finish a small week with the same answers: `drift` panics otherwise.
    #[test]
    fn all_layouts_agree_for_a_week() {
        let record = drift(&settings()).to_string();
        assert!(record.contains("casper_by_best_fixed") && record.contains("whole_week"));
    }
}
