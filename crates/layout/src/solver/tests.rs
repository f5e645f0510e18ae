//! The solver against its twins, on random instances.

use super::twins::{Instance, enumerated, keeps, partitionings, recurrence};
use super::*;
use crate::cost::{Access, Terms};
use crate::random::Random;

fn prices_of(instance: &Instance) -> Prices {
    Prices::new(&instance.back, &instance.forward, &instance.trailing, &instance.boundary)
        .expect("small prices")
}

/// Random limits, each of which is present now and then.
fn random_limits(blocks: usize, random: &mut Random) -> Limits {
    let mut some = |one_in: usize| random.below(one_in) == 0;
    let which = [some(3), some(4), some(3), some(4), some(4)];
    let mut list = |most: usize| (0..blocks).map(|_| 1 + random.below(most)).collect::<Vec<usize>>();
    let (widths, mut trailing) = (list(blocks), list(blocks));
    let coarse = list(4);
    let (width, partitions) = (1 + random.below(blocks), 1 + random.below(blocks));
    if random.below(2) == 0 {
        trailing.sort_unstable_by(|a, b| b.cmp(a));
    }
    Limits {
        width: which[0].then_some(width),
        widths: which[1].then_some(widths),
        partitions: which[2].then_some(partitions),
        trailing: which[3].then_some(trailing),
        may_end: which[4].then(|| coarse.iter().map(|one| *one > 1).collect()),
    }
}

/// Checks that the solution is allowed, has the cost that it states, and costs as little as the twin's.
fn assert_solved(instance: &Instance, limits: &Limits, twin: Option<i128>) {
    match (solve(&prices_of(instance), limits), twin) {
        (Ok(solution), Some(least)) => {
            assert_eq!(
                instance.cost(&solution.partitioning.bits()),
                solution.cost,
                "{instance:?} {limits:?}"
            );
            assert!(keeps(&solution.partitioning, limits), "{instance:?} {limits:?}: {solution:?}");
            assert_eq!(solution.cost, least, "{instance:?} {limits:?}: {solution:?}");
        }
        (Err(_), None) => {}
        (solved, twin) => panic!("{instance:?} {limits:?}: {solved:?} for {twin:?}"),
    }
}

#[test]
fn small_instances_equal_enumeration() {
    let mut random = Random::new(21);
    for round in 0..6000 {
        let blocks = 1 + random.below(9);
        let instance = Instance::random(blocks, [2, 5, 40][round % 3], &mut random);
        let limits = random_limits(blocks, &mut random);
        let twin = enumerated(&instance, &limits);
        assert_solved(&instance, &limits, twin);
        assert_eq!(recurrence(&instance, &limits), twin, "{instance:?} {limits:?}");
    }
}

#[test]
fn fourteen_blocks_equal_enumeration() {
    let mut random = Random::new(22);
    for _ in 0..12 {
        let instance = Instance::random(14, 30, &mut random);
        let limits = random_limits(14, &mut random);
        assert_solved(&instance, &limits, enumerated(&instance, &limits));
    }
}

#[test]
fn larger_instances_equal_the_recurrence() {
    let mut random = Random::new(23);
    for round in 0..600 {
        let blocks = 20 + random.below(60);
        let instance = Instance::random(blocks, [3, 50, 1_000_000][round % 3], &mut random);
        let mut limits = random_limits(blocks, &mut random);
        if round % 2 == 0 {
            // Near the number that makes a difference.
            limits.partitions = Some(1 + random.below(12));
        }
        assert_solved(&instance, &limits, recurrence(&instance, &limits));
    }
}

/// Every possible number of partitions, on one instance: the least costs are convex in it.
#[test]
fn costs_are_convex_in_the_number_of_partitions() {
    let mut random = Random::new(24);
    for _ in 0..60 {
        let instance = Instance::random(30, 20, &mut random);
        let width = 4 + random.below(30);
        let least: Vec<i128> = (30usize.div_ceil(width)..=30)
            .map(|partitions| {
                let limits = Limits { width: Some(width), partitions: Some(partitions), ..Limits::default() };
                let twin = recurrence(&instance, &limits);
                assert_solved(&instance, &limits, twin);
                twin.expect("so many partitions are enough")
            })
            .collect();
        assert!(least.windows(3).all(|w| w[0] - w[1] >= w[1] - w[2]), "{least:?}");
    }
}

/// w is Monge, whatever the signs of trailing and boundary.
#[test]
fn costs_of_partitions_are_monge() {
    let mut random = Random::new(25);
    for _ in 0..100 {
        let prices = prices_of(&Instance::random(9, 50, &mut random));
        let w = |a: usize, b: usize| Costs::cost(&prices, a, b);
        for (a, b2) in (0..9).flat_map(|a| (a..9).map(move |b| (a, b))) {
            for (a2, b) in (a..=b2).flat_map(|a2| (a2..=b2).map(move |b| (a2, b))) {
                assert!(w(a, b) + w(a2, b2) <= w(a, b2) + w(a2, b));
            }
        }
    }
}

#[test]
fn rewrites_equal_enumeration() {
    let mut random = Random::new(26);
    for round in 0..4000 {
        let blocks = 1 + random.below(10);
        let instance = Instance::random(blocks, [3, 20][round % 2], &mut random);
        let bits: Vec<bool> = (0..blocks).map(|_| random.below(3) == 0).collect();
        let present = Partitioning::of_bits(&bits).expect("blocks");
        let prices: Vec<i64> = (0..present.partitions()).map(|_| random.below(150) as i64).collect();
        let rewrites = Rewrites { present: &present, prices: &prices };
        let Limits { width, widths, may_end, .. } = random_limits(blocks, &mut random);
        let limits = Limits { width, widths, may_end, ..Limits::default() };
        let kept = partitionings(blocks).filter(|partitioning| keeps(partitioning, &limits));
        let least = kept.map(|new| instance.cost(&new.bits()) + rewrites.cost(&new)).min();
        match (rewrites.solve(&prices_of(&instance), &limits), least) {
            (Ok(solution), Some(least)) => {
                assert!(keeps(&solution.partitioning, &limits));
                let cost =
                    instance.cost(&solution.partitioning.bits()) + rewrites.cost(&solution.partitioning);
                assert_eq!((solution.cost, cost), (least, least), "{instance:?} {rewrites:?} {limits:?}");
            }
            (Err(_), None) => {}
            (solved, least) => panic!("{instance:?} {limits:?}: {solved:?} for {least:?}"),
        }
    }
}

#[test]
fn any_costs_equal_enumeration() {
    struct Table(Vec<Vec<i64>>);
    impl Costs for Table {
        fn blocks(&self) -> usize {
            self.0.len()
        }
        fn cost(&self, first: usize, last: usize) -> i64 {
            self.0[first][last]
        }
    }
    let mut random = Random::new(27);
    for _ in 0..1500 {
        let blocks = 1 + random.below(9);
        let row = |random: &mut Random| (0..blocks).map(|_| random.below(100) as i64 - 30).collect();
        let table = Table((0..blocks).map(|_| row(&mut random)).collect());
        let Limits { width, widths, may_end, .. } = random_limits(blocks, &mut random);
        let limits = Limits { width, widths, may_end, ..Limits::default() };
        let cost =
            |new: &Partitioning| new.iter().map(|b| i128::from(table.cost(*b.start(), *b.end()))).sum();
        let kept = partitionings(blocks).filter(|partitioning| keeps(partitioning, &limits));
        let least: Option<i128> = kept.map(|new| cost(&new)).min();
        let solved = general(&table, &limits).ok();
        assert_eq!(solved.as_ref().map(|solution| solution.cost), least);
        assert_eq!(solved.map(|solution| cost(&solution.partitioning)), least);
    }
}

#[test]
fn terms_are_rounded_finely() {
    let mut random = Random::new(28);
    for _ in 0..200 {
        let blocks = 1 + random.below(10);
        let mut list = || (0..blocks).map(|_| random.unit() * 1e6).collect::<Vec<f64>>();
        let terms =
            Terms { fixed: list(), back: list(), forward: list(), trailing: list(), boundary: list() };
        let prices = Prices::of(&terms).expect("finite terms");
        let solution = solve(&prices, &Limits::default()).expect("no limits");
        let fixed: f64 = terms.fixed.iter().sum();
        let cost = solution.cost as f64 * prices.unit() + fixed;
        assert!((cost / terms.cost(&solution.partitioning) - 1.0).abs() < 1e-12);
        let least = partitionings(blocks).map(|p| terms.cost(&p)).min_by(f64::total_cmp);
        assert!((cost / least.expect("there are some") - 1.0).abs() < 1e-12);
    }
}

#[test]
fn nothing_costs_nothing() {
    let prices = Prices::of(&Terms::new(5)).expect("finite terms");
    let solution = solve(&prices, &Limits::default()).expect("no limits");
    assert_eq!((solution.cost, solution.partitioning.partitions()), (0, 1));
}

#[test]
fn impossible_limits_are_named() {
    let zeros = [0i64; 6];
    let prices = Prices::new(&zeros, &zeros, &zeros, &zeros).expect("small prices");
    let error = |limits: Limits| solve(&prices, &limits).expect_err("it is impossible").to_string();
    let limits = Limits::default;
    assert_eq!(
        error(Limits { width: Some(2), partitions: Some(2), ..limits() }),
        "the limit is 2 partitions, but the limit of their width takes 3 at least"
    );
    assert_eq!(
        error(Limits { partitions: Some(0), ..limits() }),
        "the limit is 0 partitions, but the limit of their width takes 1 at least"
    );
    assert_eq!(
        error(Limits { width: Some(2), trailing: Some(vec![3, 3, 2, 1, 1, 1]), ..limits() }),
        "the limit is 1 partitions at or behind block 3, but the limit of their width takes 2 at least"
    );
    let may_end = Some(vec![true, false, false, false, true, true]);
    assert_eq!(
        error(Limits { width: Some(3), may_end: may_end.clone(), ..limits() }),
        "the limit of the width is 3 blocks, but blocks 1 to 4 must be in one partition"
    );
    assert_eq!(
        error(Limits { widths: Some(vec![6, 6, 6, 0, 6, 6]), ..limits() }),
        "the limit of the width is 0 blocks, but blocks 3 to 3 must be in one partition"
    );
    assert_eq!(error(Limits { widths: Some(vec![1; 5]), ..limits() }), "widths has 5 entries for 6 blocks");
    // Blocks 1 to 4 must stay together, and block 3 is followed by at least one end, block 5's; so all may be
    // in one partition, unless the limit on its width forbids it.
    let together = Limits { width: Some(4), may_end, trailing: Some(vec![3, 3, 1, 1, 1, 1]), ..limits() };
    assert!(solve(&prices, &together).is_err());
    let negative = Prices::new(&[0, -1], &[0, 0], &[0, 0], &[0, 0]).expect("small prices");
    let said = solve(&negative, &limits()).expect_err("a negative price").to_string();
    assert_eq!(said, "reading further blocks with block 1 has a negative price");
    let great = Prices::new(&[i64::MAX; 4], &[0; 4], &[0; 4], &[0; 4]).expect("each fits");
    assert_eq!(solve(&great, &limits()), Err(Unsolvable::TooGreat { block: 3 }));
    assert!(solve(&great, &Limits { width: Some(1), ..limits() }).is_ok());
    assert_eq!(Prices::new(&[], &[], &[], &[]).err(), Some(Unsolvable::Empty));
    let infinite = Terms { back: vec![0.0, f64::INFINITY], ..Terms::new(2) };
    assert_eq!(Prices::of(&infinite).err(), Some(Unsolvable::NotFinite { block: 1 }));
}

#[test]
fn latencies_become_limits() {
    let access = Access { sequential_read: 10.0, ..Access::OF_THE_PAPER };
    let limits = Limits::default().with_read_latency(145.0, &access).expect("slow enough");
    assert_eq!(limits.width, Some(5));
    let limits = limits.with_update_latency(1100.0, &access).expect("slow enough");
    assert_eq!(limits.partitions, Some(4));
    let read = Limits::default().with_read_latency(99.0, &access).expect_err("too fast");
    assert_eq!(
        read.to_string(),
        "the limit of the latency of point queries is less than one of them takes in any layout"
    );
    assert!(Limits::default().with_update_latency(399.0, &access).is_err());
    assert!(Limits::default().with_update_latency(400.0, &access).is_ok());
}
