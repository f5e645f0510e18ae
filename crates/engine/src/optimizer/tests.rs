//! What the rules do together: plans by hand in, text out.

use super::testing::{Builder, cross, filtered, join};
use super::*;
use crate::plan::{JoinKind, Limit, Node, Sort, SortKey};
use entasis_vector::expr::{CompareOp, Expr};

fn optimized(plan: Plan) -> String {
    let text = optimize(plan, &Settings::default()).expect("the plan is sound").to_string();
    // Estimates are not what these tests are about.
    text.lines().skip(1).map(|line| line.split("  ~").next().unwrap_or(line).to_owned() + "\n").collect()
}

#[track_caller]
fn check(plan: Plan, expected: &str) {
    let found = optimized(plan);
    let expected: String = expected
        .trim_matches('\n')
        .lines()
        .map(|line| line.strip_prefix("      ").unwrap_or(line).to_owned() + "\n")
        .collect();
    assert!(found.trim_end() == expected.trim_end(), "found\n{found}\nexpected\n{expected}");
}

#[test]
fn a_cross_product_under_a_filter_becomes_a_join_of_what_is_needed() {
    let mut b = Builder::default();
    let (t, u) =
        (b.scan("t", 1000, &[("a", 1000), ("x", 10), ("y", 10)]), b.scan("u", 10, &[("k", 10), ("z", 5)]));
    let root =
        filtered(cross(t, u), vec![b.equal("x", "k"), b.equal("z", "3"), b.compare("7", CompareOp::Gt, "a")]);
    check(
        b.plan(root, &["a"]),
        "
        HashJoin inner on x = k
          Scan t [a, x] where (a < 7)
          Scan u [k, z] where (z = 3)",
    );
}

#[test]
fn the_small_and_filtered_relations_join_first() {
    // A star with a filter on one arm, written in the worst order.
    let mut b = Builder::default();
    let big = b.scan("fact", 1_000_000, &[("f1", 1000), ("f2", 1000), ("f3", 100)]);
    let one = b.scan("one", 1000, &[("k1", 1000), ("v1", 1000)]);
    let two = b.scan("two", 1000, &[("k2", 1000), ("v2", 1000)]);
    let far = b.scan("far", 1000, &[("k3", 1000), ("v3", 1000)]);
    let root = filtered(
        cross(cross(cross(far, two), one), big),
        vec![b.equal("k1", "f1"), b.equal("k2", "f2"), b.equal("v2", "5"), b.equal("v1", "k3")],
    );
    check(
        b.plan(root, &["f3", "v3"]),
        "
        HashJoin inner on k3 = v1
          Scan far [k3, v3]
          HashJoin inner on f1 = k1
            HashJoin inner on f2 = k2
              Scan fact [f1, f2, f3]
              Scan two [k2, v2] where (v2 = 5)
            Scan one [k1, v1]",
    );
}

#[test]
fn an_outer_join_stays_one_only_if_null_may_come_through() {
    let build = |predicate: fn(&Builder) -> Expr| {
        let mut b = Builder::default();
        let (t, u) = (b.scan("t", 100, &[("a", 100)]), b.scan("u", 100, &[("k", 100), ("v", 100)]));
        let on = vec![b.equal("a", "k")];
        let root = filtered(join(JoinKind::Left, t, u, on), vec![predicate(&b)]);
        optimized(b.plan(root, &["a"]))
    };
    assert!(build(|b| b.equal("v", "1")).contains("inner"));
    assert!(build(|b| Expr::Not(Box::new(Expr::IsNull(Box::new(b.column("v")))))).contains("inner"));
    assert!(build(|b| Expr::IsNull(Box::new(b.column("v")))).contains("left"));
    assert!(build(|b| Expr::Or(vec![b.equal("v", "1"), b.equal("a", "1")])).contains("left"));
    assert_eq!(
        build(|b| Expr::IsNull(Box::new(b.column("k")))),
        "  HashJoin anti on a = k\n    Scan t [a]\n    Scan u [k]\n"
    );
    // On the left columns it goes below, and over the key to the other side.
    assert_eq!(
        build(|b| b.equal("a", "1")),
        "  HashJoin left on a = k\n    Scan t [a] where (a = 1)\n    Scan u [k]\n"
    );
}

#[test]
fn conditions_of_outer_joins_filter_only_the_far_side() {
    let mut b = Builder::default();
    let (t, u) = (b.scan("t", 100, &[("a", 100), ("x", 9)]), b.scan("u", 100, &[("k", 100), ("v", 100)]));
    let on = vec![b.equal("a", "k"), b.equal("v", "1"), b.equal("x", "2")];
    let root = join(JoinKind::Left, t, u, on);
    check(
        b.plan(root, &["a", "k"]),
        "
        HashJoin left on a = k where (x = 2)
          Scan t [a, x]
          Scan u [k, v] where (v = 1)",
    );
}

#[test]
fn a_right_join_is_a_left_join_and_a_full_join_keeps_its_filters_above() {
    let mut b = Builder::default();
    let (t, u) = (b.scan("t", 100, &[("a", 100)]), b.scan("u", 100, &[("k", 100)]));
    let on = vec![b.equal("a", "k")];
    let root = filtered(join(JoinKind::Full, t, u, on), vec![Expr::IsNull(Box::new(b.column("a")))]);
    check(
        b.plan(root, &["a", "k"]),
        "
        Filter (a IS NULL)
          HashJoin full on a = k
            Scan t [a]
            Scan u [k]",
    );
    let mut b = Builder::default();
    let (t, u) = (b.scan("t", 100, &[("a", 100)]), b.scan("u", 100, &[("k", 100)]));
    let on = vec![b.equal("a", "k")];
    let root = join(JoinKind::Right, t, u, on);
    check(b.plan(root, &["a", "k"]), "  HashJoin left on k = a\n    Scan u [k]\n    Scan t [a]");
}

#[test]
fn disjunctions_give_keys_and_filters() {
    // TPC-H Q19, then Q7.
    let mut b = Builder::default();
    let (l, p) =
        (b.scan("l", 6000, &[("lp", 200), ("q", 50)]), b.scan("p", 200, &[("pk", 200), ("brand", 25)]));
    let branch = |brand: &str, most: &str| {
        Expr::And(vec![b.equal("lp", "pk"), b.equal("brand", brand), b.compare("q", CompareOp::Lt, most)])
    };
    let root = filtered(cross(l, p), vec![Expr::Or(vec![branch("1", "10"), branch("2", "20")])]);
    check(
        b.plan(root, &["q"]),
        "
        HashJoin inner on lp = pk where (((brand = 1) AND (q < 10)) OR ((brand = 2) AND (q < 20)))
          Scan l [lp, q] where ((q < 10) OR (q < 20))
          Scan p [pk, brand] where (brand IN (1, 2))",
    );
}

#[test]
fn semi_joins_move_to_where_they_reduce() {
    // The semi join leaves few rows of t: it comes before the join with the larger u, although written after
    // it.
    let mut b = Builder::default();
    let t = b.scan("t", 100_000, &[("a", 100_000), ("x", 50_000)]);
    let u = b.scan("u", 500_000, &[("k", 50_000), ("v", 100)]);
    let s = b.scan("s", 10, &[("key", 10)]);
    let joined = filtered(cross(t, u), vec![b.equal("x", "k")]);
    let root = join(JoinKind::Semi, joined, s, vec![b.equal("a", "key")]);
    check(
        b.plan(root, &["a", "v"]),
        "
        HashJoin inner on k = x
          Scan u [k, v]
          HashJoin semi on a = key
            Scan t [a, x]
            Scan s [key]",
    );
}

#[test]
fn a_scalar_subquery_on_the_key_of_an_aggregate_is_an_ordinary_join() {
    // TPC-H Q17: the filter rejects rows without a group.
    let mut b = Builder::default();
    let l = b.scan("l", 6000, &[("lp", 200), ("q", 50)]);
    let inner = b.scan("l2", 6000, &[("lp2", 200)]);
    let counts = b.count_by(inner, "lp2", "key", "n");
    let single = join(JoinKind::Single, l, counts, vec![b.equal("lp", "key")]);
    let root = filtered(single, vec![b.compare("q", CompareOp::Lt, "n")]);
    check(
        b.plan(root, &["q"]),
        "
        HashJoin inner on lp = key where (q < n)
          Scan l [lp, q]
          Aggregate by lp2 AS key: count(*) AS n
            Scan l2 [lp2]",
    );
}

#[test]
fn an_aggregate_makes_only_the_groups_that_are_asked_for() {
    // TPC-H Q17, the whole of it.
    let mut b = Builder::default();
    let p = b.scan("p", 200, &[("pk", 200), ("brand", 25)]);
    let l = b.scan("l", 6000, &[("lp", 200), ("q", 50)]);
    let inner = b.scan("l2", 6000, &[("lp2", 200)]);
    let counts = b.count_by(inner, "lp2", "key", "n");
    let outer = filtered(cross(l, p), vec![b.equal("lp", "pk"), b.equal("brand", "3")]);
    let single = join(JoinKind::Single, outer, counts, vec![b.equal("pk", "key")]);
    let root = filtered(single, vec![b.compare("q", CompareOp::Lt, "n")]);
    check(
        b.plan(root, &["q"]),
        "
        HashJoin inner on lp = pk#0 where (q < n)
          Scan l [lp, q]
          HashJoin inner on key = pk#0
            Aggregate by lp2 AS key: count(*) AS n
              HashJoin semi on lp2 = pk#7
                Scan l2 [lp2]
                Scan p [pk#7, brand#8] where (brand#8 = 3)
            Scan p [pk#0, brand#1] where (brand#1 = 3)",
    );
}

#[test]
fn marks_that_are_filtered_by_are_semi_and_anti_joins() {
    let build = |negated: bool, null_aware: bool| {
        let mut b = Builder::default();
        let (t, u) = (b.scan("t", 100, &[("a", 100)]), b.scan("u", 100, &[("k", 100)]));
        let mark = b.columns.add("mark", entasis_vector::DataType::Boolean, true);
        let mut marked = join(JoinKind::Mark { mark, null_aware }, t, u, vec![]);
        if let Node::Join(join) = &mut marked {
            join.on.push(crate::plan::JoinKey {
                left: b.column("a"),
                right: b.column("k"),
                null_equals_null: false,
            });
        }
        let read = b.column("mark");
        let predicate = if negated { Expr::Not(Box::new(read)) } else { read };
        optimized(b.plan(filtered(marked, vec![predicate]), &["a"]))
    };
    assert!(build(false, true).contains("HashJoin semi on"));
    assert!(build(true, false).contains("HashJoin anti on"));
    assert!(build(true, true).contains("HashJoin null-aware anti on"));
}

#[test]
fn limits_reach_the_sort_and_false_reaches_the_root() {
    let mut b = Builder::default();
    let t = b.scan("t", 100, &[("a", 100), ("x", 9)]);
    let keys = vec![SortKey { expr: b.column("x"), descending: true, nulls_first: false }];
    let sort = Node::Sort(Sort { input: Box::new(t), keys, limit: None });
    let root = Node::Limit(Limit { input: Box::new(sort), offset: 2, count: Some(3) });
    check(
        b.plan(root, &["a"]),
        "
        Limit 3 offset 2
          TopN 5 by x DESC
            Scan t [a, x]",
    );
    let mut b = Builder::default();
    let (t, u) = (b.scan("t", 100, &[("a", 100)]), b.scan("u", 100, &[("k", 100)]));
    let root = filtered(cross(t, u), vec![b.equal("a", "k"), Expr::boolean(false)]);
    check(b.plan(root, &["a"]), "  Values 0 rows [a]");
}

#[test]
fn group_keys_that_follow_from_others_are_not_hashed() {
    let mut b = Builder::default();
    let t = b.scan("t", 100, &[("a", 100), ("x", 9)]);
    let u = b.scan("u", 100, &[("k", 100), ("v", 9)]);
    let joined = filtered(cross(t, u), vec![b.equal("a", "k"), b.equal("v", "4")]);
    let mut aggregate = b.count_by(joined, "a", "by_a", "n");
    if let Node::Aggregate(aggregate) = &mut aggregate {
        for name in ["k", "v", "x"] {
            let id = b.columns.add(format!("by_{name}"), entasis_vector::DataType::Int64, true);
            aggregate.groups.push((id, b.column(name)));
        }
    }
    let text = optimized(b.plan(aggregate, &["by_a", "by_k", "by_v", "by_x", "n"]));
    let first = text.lines().next().expect("a line");
    assert_eq!(
        first,
        "  Aggregate by a AS by_a, x AS by_x: count(*) AS n, any_value(k) AS by_k, any_value(v) AS by_v"
    );
}

#[test]
fn a_key_decides_the_group_and_makes_joins_needless() {
    // TPC-H Q10: the group of a customer is the customer, and its nation with it.
    let mut b = Builder::default();
    let c = b.scan_with_key("c", 1000, &[("ck", 1000), ("name", 900), ("cn", 25)], Some(0));
    let o = b.scan("o", 1100, &[("oc", 1000), ("price", 1100)]);
    let n = b.scan_with_key("n", 25, &[("nk", 25), ("nation", 25)], Some(0));
    let joined = filtered(cross(cross(o, c), n), vec![b.equal("oc", "ck"), b.equal("cn", "nk")]);
    let mut aggregate = b.count_by(joined, "nation", "by_nation", "count");
    if let Node::Aggregate(aggregate) = &mut aggregate {
        for name in ["name", "ck"] {
            let id = b.columns.add(format!("by_{name}"), entasis_vector::DataType::Int64, true);
            aggregate.groups.push((id, b.column(name)));
        }
    }
    let text = optimized(b.plan(aggregate, &["by_ck", "by_name", "by_nation", "count"]));
    let first = text.lines().next().expect("a line");
    let expected = "Aggregate by ck AS by_ck: count(*) AS count, any_value(nation) AS by_nation, any_value(name) AS by_name";
    assert_eq!(first.trim(), expected, "{text}");

    // Nobody reads the far side, and it does not repeat rows.
    let mut b = Builder::default();
    let t = b.scan("t", 100, &[("a", 100)]);
    let u = b.scan_with_key("u", 100, &[("k", 100), ("v", 100)], Some(0));
    let root = join(JoinKind::Left, t, u, vec![b.equal("a", "k")]);
    check(b.plan(root, &["a"]), "  Scan t [a]");
}

#[test]
fn with_the_setting_off_nothing_changes() {
    let mut b = Builder::default();
    let (t, u) = (b.scan("t", 100, &[("a", 100)]), b.scan("u", 100, &[("k", 100)]));
    let root = filtered(cross(t, u), vec![b.equal("a", "k")]);
    let plan = b.plan(root, &["a"]);
    let before = plan.to_string();
    let settings = Settings { optimize: false, ..Settings::default() };
    assert_eq!(optimize(plan, &settings).expect("the plan is sound").to_string(), before);
}

#[test]
fn a_rule_that_breaks_the_plan_is_named() {
    let mut b = Builder::default();
    let t = b.scan("t", 100, &[("a", 100)]);
    let lost = b.columns.add("lost", entasis_vector::DataType::Int64, true);
    let predicate = Expr::compare(CompareOp::Eq, b.columns.expr(lost), b.column("a"));
    let error =
        optimize(b.plan(filtered(t, vec![predicate]), &["a"]), &Settings::default()).expect_err("not made");
    assert!(error.message().contains("lost is read but not made below"), "{error}");
}
