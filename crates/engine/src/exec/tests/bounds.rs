//! Joins by inequalities: every pair of operators, every kind, all types, compared with a nested loop over
//! values.

use super::*;
use std::cmp::Ordering;

const OPS: [CompareOp; 4] = [CompareOp::Lt, CompareOp::LtEq, CompareOp::Gt, CompareOp::GtEq];

/// A random value of a type, or NULL; one of few values, so that there are ties.
fn value(random: &mut Random, ty: DataType, nulls: bool, distinct: u64) -> Value {
    if nulls && random.below(8) == 0 {
        return Value::Null;
    }
    let number = random.below(distinct) as i128 - distinct as i128 / 2;
    match ty {
        DataType::Varchar => Value::Text(
            format!("{}number {:03}", ["", "a longer prefix, "][number as usize % 2], number.abs()).into(),
        ),
        DataType::Float64 | DataType::Float32 => Value::Float(match number {
            0 => -0.0,
            1 => 0.0,
            2 => f64::NAN,
            3 => f64::INFINITY,
            4 => f64::NEG_INFINITY,
            _ => number as f64 / 2.0,
        }),
        DataType::Boolean => Value::Boolean(number % 2 == 0),
        DataType::UInt64 => int(if number < 0 { u64::MAX as i128 + number } else { number }),
        DataType::UInt16 => int(number.abs()),
        DataType::Decimal { precision: 38, .. } => int(number * 10_i128.pow(30)),
        _ => int(number),
    }
}

fn rows(random: &mut Random, types: &[DataType], count: u64, nulls: bool, distinct: u64) -> Vec<Row> {
    let row = |i: u64, random: &mut Random| {
        let mut row: Row = types.iter().map(|&ty| value(random, ty, nulls, distinct)).collect();
        row.push(int(i.into()));
        row
    };
    (0..count).map(|i| row(i, random)).collect()
}

fn holds(op: CompareOp, a: &Value, b: &Value) -> bool {
    let order = a.total_cmp(b);
    !a.is_null()
        && !b.is_null()
        && match op {
            CompareOp::Lt => order == Ordering::Less,
            CompareOp::LtEq => order != Ordering::Greater,
            CompareOp::Gt => order == Ordering::Greater,
            CompareOp::GtEq => order != Ordering::Less,
            _ => order == Ordering::Equal,
        }
}

/// The rows of this join, by a loop over all pairs; `None`: an error.
fn twin(
    kind: JoinKind,
    left: &[Row],
    right: &[Row],
    matches: &dyn Fn(&Row, &Row) -> bool,
) -> Option<Vec<Row>> {
    let nulls = |rows: &[Row]| vec![Value::Null; rows.first().map_or(4, Vec::len)];
    let mut out = Vec::new();
    for l in left {
        let partners: Vec<&Row> = right.iter().filter(|r| matches(l, r)).collect();
        match kind {
            JoinKind::Semi => out.extend((!partners.is_empty()).then(|| l.clone())),
            JoinKind::Anti => out.extend(partners.is_empty().then(|| l.clone())),
            JoinKind::Mark { .. } => {
                out.push([l.clone(), vec![Value::Boolean(!partners.is_empty())]].concat())
            }
            JoinKind::Single if partners.len() > 1 => return None,
            _ => {
                out.extend(partners.iter().map(|r| [l.clone(), r.to_vec()].concat()));
                if partners.is_empty() && matches!(kind, JoinKind::Left | JoinKind::Full | JoinKind::Single) {
                    out.push([l.clone(), nulls(right)].concat());
                }
            }
        }
    }
    if matches!(kind, JoinKind::Right | JoinKind::Full) {
        let lonely = right.iter().filter(|r| !left.iter().any(|l| matches(l, r)));
        out.extend(lonely.map(|r| [nulls(left), r.clone()].concat()));
    }
    Some(out)
}

/// Every third of the usual settings, each search forced, and each way to spill.
fn bound_contexts(number: usize) -> Vec<QueryContext> {
    let spills = JoinSpill::NAMES.into_iter().map(|(join_spill, _)| join_spill);
    let usual = contexts().into_iter().skip(number % 3).step_by(3).zip(spills.cycle().skip(number / 3));
    let forced = usual.enumerate().map(|(i, (mut context, join_spill))| {
        let settings = Arc::make_mut(&mut context.settings);
        settings.join_bounds = if i == 0 { Searching::Auto } else { Searching::Always };
        settings.join_spill = join_spill;
        settings.join_table = [TableKind::Auto, TableKind::Radix, TableKind::Chained][(number + i) % 3];
        context
    });
    forced.collect()
}

/// A condition: column of the left side, operator, column of the right side.
type Condition = (usize, CompareOp, usize);

fn check_bounds(
    types: [DataType; 3],
    sizes: [u64; 2],
    (keys, conditions): (&[usize], &[Condition]),
    (nulls, distinct): (bool, u64),
    number: usize,
) {
    let mut random = Random(number as u64 * 7919 + 1);
    let [left, right] = sizes.map(|size| rows(&mut random, &types, size, nulls, distinct));
    let mut columns = Columns::default();
    let all: Vec<DataType> = types.iter().copied().chain([DataType::Int64]).collect();
    let (l, lid) = values(&mut columns, "l", &all, left.clone());
    let (r, rid) = values(&mut columns, "r", &all, right.clone());
    let mark = columns.add("mark", DataType::Boolean, true);
    let condition = |i: usize, &(a, op, b): &Condition| match i % 2 {
        0 => Expr::compare(op, columns.expr(lid[a]), columns.expr(rid[b])),
        _ => Expr::compare(op.mirrored(), columns.expr(rid[b]), columns.expr(lid[a])),
    };
    let residual: Vec<Expr> = conditions.iter().enumerate().map(|(i, c)| condition(i, c)).collect();
    let on = |&key: &usize| JoinKey {
        left: columns.expr(lid[key]),
        right: columns.expr(rid[key]),
        null_equals_null: key == 0 && number.is_multiple_of(2),
    };
    let on: Vec<JoinKey> = keys.iter().map(on).collect();
    let equal = |key: usize, a: &Value, b: &Value| {
        let both_null = a.is_null() && b.is_null() && key == 0 && number.is_multiple_of(2);
        both_null || holds(CompareOp::Eq, a, b)
    };
    let matches = |l: &Row, r: &Row| {
        keys.iter().all(|&key| equal(key, &l[key], &r[key]))
            && conditions.iter().all(|&(a, op, b)| holds(op, &l[a], &r[b]))
    };
    for kind in [
        JoinKind::Inner,
        JoinKind::Left,
        JoinKind::Right,
        JoinKind::Full,
        JoinKind::Semi,
        JoinKind::Anti,
        JoinKind::Mark { mark, null_aware: false },
        JoinKind::Single,
    ] {
        let (left_node, right_node) = (Box::new(l.clone()), Box::new(r.clone()));
        let join =
            Join { left: left_node, right: right_node, kind, on: on.clone(), residual: residual.clone() };
        assert!(crate::bounds::Bounds::possible(&join).is_some());
        let plan = plan(Node::Join(join), &columns);
        let what = format!("{kind:?}, {types:?}, {sizes:?}, keys {keys:?}, {conditions:?}, number {number}");
        match twin(kind, &left, &right, &matches) {
            Some(expected) => check_under(bound_contexts(number), &plan, &expected, &what),
            None => {
                for context in bound_contexts(number) {
                    assert!(run(&plan, &context).is_err(), "{what} must fail");
                }
            }
        }
    }
}

#[test]
fn one_inequality_agrees_with_a_nested_loop() {
    let mut number = 0_usize;
    for sizes in [[40, 30], [7, 90], [60, 5], [0, 4], [4, 0], [1, 1]] {
        for op in OPS {
            for distinct in [5, 1000] {
                number += 1;
                check_bounds(
                    [DataType::Int64; 3],
                    sizes,
                    (&[], &[(1, op, 2)]),
                    (number.is_multiple_of(2), distinct),
                    number,
                );
            }
        }
    }
}

#[test]
fn all_pairs_of_inequalities_agree_with_a_nested_loop() {
    let mut number = 0_usize;
    for first in OPS {
        for second in OPS {
            // One expression of the left side, one of the right, two of both, and the same pair twice.
            for (a, b) in [((0, 0), (0, 1)), ((0, 0), (1, 0)), ((0, 1), (1, 2)), ((0, 0), (0, 0))] {
                number += 1;
                let conditions = [(a.0, first, a.1), (b.0, second, b.1)];
                let sizes = [[35, 50], [80, 9], [5, 200]][number % 3];
                let distinct = [6, 40, 5000][number / 3 % 3];
                check_bounds(
                    [DataType::Int32; 3],
                    sizes,
                    (&[], &conditions),
                    (number.is_multiple_of(2), distinct),
                    number,
                );
            }
        }
    }
}

#[test]
fn bounds_of_all_types_agree_with_a_nested_loop() {
    let types = [
        DataType::Int8,
        DataType::Int64,
        DataType::UInt16,
        DataType::UInt64,
        DataType::Float32,
        DataType::Float64,
        DataType::Decimal { precision: 12, scale: 2 },
        DataType::Decimal { precision: 38, scale: 2 },
        DataType::Varchar,
        DataType::Date,
        DataType::Timestamp,
        DataType::Boolean,
    ];
    for (number, ty) in types.into_iter().enumerate() {
        let [less, more] = [OPS[number % 2], OPS[2 + number / 2 % 2]];
        for (i, distinct) in [7, 100].into_iter().enumerate() {
            let with = (number % 3 == 0, distinct);
            check_bounds([ty; 3], [40, 45], (&[], &[(0, less, 0), (0, more, 1)]), with, 3 * number + i);
            check_bounds([ty; 3], [40, 45], (&[], &[(0, less, 1), (1, more, 0)]), with, 3 * number + i);
            // The second expression has another type than the first.
            let mixed = [ty, types[(number + 5) % types.len()], DataType::Int64];
            check_bounds(
                mixed,
                [30, 60],
                (&[], &[(1, less, 1), (0, more, 0), (2, less, 2)]),
                with,
                3 * number + i,
            );
        }
    }
}

#[test]
fn bounds_beside_keys_agree_with_a_nested_loop() {
    let mut number = 0_usize;
    for ty in [DataType::Int64, DataType::Varchar, DataType::Float64] {
        for (keys, conditions) in [
            (vec![0], vec![(1, CompareOp::GtEq, 1)]),
            (vec![0, 2], vec![(1, CompareOp::Lt, 1)]),
            (vec![0], vec![(1, CompareOp::Gt, 1), (1, CompareOp::LtEq, 2)]),
            (vec![2], vec![(1, CompareOp::Gt, 1), (0, CompareOp::Lt, 0)]),
            (vec![0], vec![(1, CompareOp::Gt, 1), (1, CompareOp::LtEq, 1), (2, CompareOp::LtEq, 2)]),
        ] {
            for (sizes, distinct) in [([60, 50], 4), ([20, 150], 12), ([0, 9], 3)] {
                number += 1;
                let nulls = !number.is_multiple_of(3);
                check_bounds(
                    [ty, DataType::Int32, DataType::Int32],
                    sizes,
                    (&keys, &conditions),
                    (nulls, distinct),
                    number,
                );
            }
        }
    }
}

/// Many chunks on both sides, and stretches that are longer than a chunk.
#[test]
fn long_stretches_come_in_full_chunks() {
    let mut columns = Columns::default();
    let side = |count: i128| (0..count).map(|i| vec![int(i * 7919 % 6007), int(i)]).collect::<Vec<Row>>();
    let (left, right) = (side(3000), side(5000));
    let (l, lid) = values(&mut columns, "l", &[DataType::Int64; 2], left.clone());
    let (r, rid) = values(&mut columns, "r", &[DataType::Int64; 2], right.clone());
    let less = Expr::compare(CompareOp::Lt, columns.expr(lid[0]), columns.expr(rid[0]));
    let more = Expr::compare(CompareOp::Gt, columns.expr(lid[1]), columns.expr(rid[1]));
    for residual in [vec![less.clone()], vec![less, more]] {
        let two = residual.len() == 2;
        let matches = |l: &Row, r: &Row| {
            holds(CompareOp::Lt, &l[0], &r[0]) && (!two || holds(CompareOp::Gt, &l[1], &r[1]))
        };
        let pairs = left.iter().map(|l| right.iter().filter(|r| matches(l, r)).count()).sum::<usize>();
        let join = Join {
            left: Box::new(l.clone()),
            right: Box::new(r.clone()),
            kind: JoinKind::Inner,
            on: vec![],
            residual,
        };
        let plan = plan(Node::Join(join), &columns);
        let context = QueryContext::default();
        let types: Vec<DataType> = plan.output.iter().map(|o| plan.columns.ty(o.column)).collect();
        let collector = Collector::new(&context, types);
        execute(&plan, &context, &collector).unwrap();
        assert_eq!(collector.into_chunks().rows, pairs);
    }
}

#[test]
fn memory_that_is_short_is_told_or_does() {
    let mut columns = Columns::default();
    let side = |count: i128| (0..count).map(|i| vec![int(i * 7919 % 60_007), int(i)]).collect::<Vec<Row>>();
    let (l, lid) = values(&mut columns, "l", &[DataType::Int64; 2], side(200));
    let (r, rid) = values(&mut columns, "r", &[DataType::Int64; 2], side(50_000));
    let within = |op| Expr::compare(op, columns.expr(lid[0]), columns.expr(rid[0]));
    let residual = vec![within(CompareOp::LtEq), within(CompareOp::GtEq)];
    let join = |kind| Join {
        left: Box::new(l.clone()),
        right: Box::new(r.clone()),
        kind,
        on: vec![],
        residual: residual.clone(),
    };
    let plan = plan(Node::Join(join(JoinKind::Semi)), &columns);
    let context = |settings| QueryContext {
        settings: Arc::new(settings),
        memory: Arc::new(MemoryBudget::new(1 << 20)),
        ..QueryContext::default()
    };
    let error = run(&plan, &context(in_memory())).unwrap_err();
    assert_eq!(error.kind(), entasis_vector::ErrorKind::Resource);
    // An as-of join does not spill.
    let nearest = Join { residual: residual[..1].to_vec(), ..join(JoinKind::AsOf { outer: true }) };
    let mut nearest = self::plan(Node::Join(nearest), &columns);
    nearest.output.truncate(3);
    let error = run(&nearest, &context(Settings::default())).unwrap_err();
    assert_eq!(error.kind(), entasis_vector::ErrorKind::Resource);
    assert!(
        error.to_string().contains("the right input of an ASOF JOIN does not fit into memory"),
        "{error}"
    );
    let roomy = QueryContext::default();
    assert_eq!(
        sorted(run(&plan, &context(Settings::default())).unwrap()),
        sorted(run(&plan, &roomy).unwrap())
    );
}

/// If several rows are equally near, any may be chosen, so only compared columns are read.
#[test]
fn the_nearest_row_is_that_of_a_walk_over_all() {
    let mut number = 0_usize;
    for ty in [DataType::Int64, DataType::Timestamp, DataType::Float64, DataType::Varchar] {
        for op in OPS {
            for keys in [vec![], vec![0], vec![0, 2]] {
                for (sizes, distinct) in [([50, 60], 6), ([120, 30], 40), ([9, 0], 3)] {
                    number += 1;
                    check_nearest(ty, op, &keys, sizes, distinct, number);
                }
            }
        }
    }
}

fn check_nearest(ty: DataType, op: CompareOp, keys: &[usize], sizes: [u64; 2], distinct: u64, number: usize) {
    let mut random = Random(number as u64 * 104_729 + 1);
    let types = [DataType::Varchar, ty, DataType::Int32];
    let [left, right] =
        sizes.map(|size| rows(&mut random, &types, size, !number.is_multiple_of(4), distinct));
    let mut columns = Columns::default();
    let all: Vec<DataType> = types.iter().copied().chain([DataType::Int64]).collect();
    let (l, lid) = values(&mut columns, "l", &all, left.clone());
    let (r, rid) = values(&mut columns, "r", &all, right.clone());
    let key = |&key: &usize| JoinKey {
        left: columns.expr(lid[key]),
        right: columns.expr(rid[key]),
        null_equals_null: key == 2 && number.is_multiple_of(2),
    };
    let on: Vec<JoinKey> = keys.iter().map(key).collect();
    let residual = vec![Expr::compare(op, columns.expr(lid[1]), columns.expr(rid[1]))];
    let equal = |key: usize, a: &Value, b: &Value| {
        holds(CompareOp::Eq, a, b) || (key == 2 && number.is_multiple_of(2) && a.is_null() && b.is_null())
    };
    let is_upper = matches!(op, CompareOp::Gt | CompareOp::GtEq);
    for outer in [false, true] {
        let mut expected = Vec::new();
        for l in &left {
            let matches =
                |r: &&Row| keys.iter().all(|&key| equal(key, &l[key], &r[key])) && holds(op, &l[1], &r[1]);
            let nearer =
                |a: &&Row, b: &&Row| if is_upper { a[1].total_cmp(&b[1]) } else { b[1].total_cmp(&a[1]) };
            let partner = right.iter().filter(matches).max_by(nearer);
            if partner.is_some() || outer {
                let of = |column: usize| partner.map_or(Value::Null, |row| row[column].clone());
                let own = keys.iter().map(|&key| of(key));
                expected.push(l.iter().cloned().chain([of(1)]).chain(own).collect());
            }
        }
        let kind = JoinKind::AsOf { outer };
        let (left, right) = (Box::new(l.clone()), Box::new(r.clone()));
        let join = Join { left, right, kind, on: on.clone(), residual: residual.clone() };
        let mut plan = plan(Node::Join(join), &columns);
        let wanted = lid.iter().copied().chain([rid[1]]).chain(keys.iter().map(|&key| rid[key]));
        plan.output = wanted.map(|column| Output { name: column.to_string(), column }).collect();
        let what = format!("{kind:?}, {op:?}, {ty}, keys {keys:?}, {sizes:?}, number {number}");
        check_under(bound_contexts(number), &plan, &expected, &what);
    }
}
