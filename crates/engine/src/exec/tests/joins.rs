//! Joins: all kinds, under each table and each way to spill, compared with a nested loop; their filters; and
//! their errors when memory ends.

use super::*;

/// The settings under which joins run: the usual ones, combined with each table and each way to spill in
/// turn.
fn join_contexts() -> Vec<QueryContext> {
    let forced = TableKind::NAMES.into_iter().flat_map(|(join_table, _)| {
        let contexts = contexts().into_iter().skip(join_table as usize % 3).step_by(3);
        contexts.enumerate().map(move |(i, mut context)| {
            let settings = Arc::make_mut(&mut context.settings);
            settings.join_table = join_table;
            // One pass of partitions, or two.
            settings.join_partition_size = [1 << 20, 1][i % 2];
            context
        })
    });
    let spilled = JoinSpill::NAMES.into_iter().skip(1).flat_map(|(join_spill, _)| {
        let contexts = contexts().into_iter().skip(join_spill as usize).step_by(5);
        contexts.map(move |mut context| {
            Arc::make_mut(&mut context.settings).join_spill = join_spill;
            context
        })
    });
    // Partitions in memory, some or all rows of which go to files.
    let both = JoinSpill::NAMES.into_iter().skip(1).flat_map(|(join_spill, _)| {
        let contexts = contexts().into_iter().skip(2 + join_spill as usize).step_by(7);
        contexts.enumerate().map(move |(i, mut context)| {
            let settings = Arc::make_mut(&mut context.settings);
            settings.join_spill = join_spill;
            settings.join_table = [TableKind::Radix, TableKind::BloomRadix][i % 2];
            context
        })
    });
    // Rows are split twice, whether partitions are then in memory or in files.
    let twice_split =
        [JoinSpill::Auto, JoinSpill::Deep].into_iter().enumerate().flat_map(|(i, join_spill)| {
            contexts().into_iter().skip(i).step_by(3).enumerate().map(move |(i, mut context)| {
                let settings = Arc::make_mut(&mut context.settings);
                (settings.join_partition_size, settings.join_spill) = (1, join_spill);
                settings.join_table = [TableKind::Radix, TableKind::BloomRadix][i % 2];
                context
            })
        });
    // Buffered probe rows: a chunk, some, or all.
    let held_back = [1, 1 << 14, usize::MAX].into_iter().enumerate().flat_map(|(i, bytes)| {
        contexts().into_iter().skip(i).step_by(3).enumerate().map(move |(i, mut context)| {
            let settings = Arc::make_mut(&mut context.settings);
            settings.join_stride = bytes;
            settings.join_table = [TableKind::Cht, TableKind::Unchained, TableKind::Chained][i % 3];
            context
        })
    });
    // The build side read twice, if possible; probe rows as they arrive, or buffered.
    let twice = [TableKind::Auto, TableKind::Cat, TableKind::Cht].into_iter().enumerate().flat_map(
        |(i, join_table)| {
            contexts().into_iter().skip(i).step_by(2).enumerate().map(move |(number, mut context)| {
                let settings = Arc::make_mut(&mut context.settings);
                (settings.join_build, settings.join_table) = (Readings::Twice, join_table);
                settings.join_stride = if number % 2 == 0 { 0 } else { 1 << 14 };
                context
            })
        },
    );
    // The sides swapped once the build side is complete.
    let swapped =
        [TableKind::Auto, TableKind::Unchained].into_iter().enumerate().flat_map(|(i, join_table)| {
            contexts().into_iter().skip(i).step_by(2).map(move |mut context| {
                let settings = Arc::make_mut(&mut context.settings);
                (settings.join_swap, settings.join_table) = (Swapping::Always, join_table);
                context
            })
        });
    // Rows that are searched by the residual condition.
    let searched = [JoinSpill::Auto, JoinSpill::Half].into_iter().enumerate().flat_map(|(i, join_spill)| {
        contexts().into_iter().skip(i).step_by(3).map(move |mut context| {
            let settings = Arc::make_mut(&mut context.settings);
            (settings.join_bounds, settings.join_spill) = (Searching::Always, join_spill);
            context
        })
    });
    let twice = twice.chain(swapped).chain(searched);
    let all = contexts()
        .into_iter()
        .chain(forced)
        .chain(spilled)
        .chain(both)
        .chain(twice_split)
        .chain(held_back)
        .chain(twice);
    all.chain(filter_contexts()).collect()
}

/// The settings under which join filters run: some of the above for each kind of filter.
fn filter_contexts() -> Vec<QueryContext> {
    let of = |(join_filter, _): (FilterKind, &str)| {
        contexts().into_iter().skip(join_filter as usize % 3).step_by(3).map(move |mut context| {
            Arc::make_mut(&mut context.settings).join_filter = join_filter;
            context
        })
    };
    FilterKind::NAMES.into_iter().flat_map(of).collect()
}

/// A join to test: keys, residual condition, and the number of distinct key values.
struct Case {
    types: [DataType; 2],
    keys: Vec<(usize, bool)>,
    residual: bool,
    distinct: u64,
    step: i128,
    rows: [u64; 2],
}

fn random_rows(random: &mut Random, case: &Case, rows: u64) -> Vec<Row> {
    let value = |random: &mut Random, ty| match random.below(8) {
        0 => Value::Null,
        _ => {
            let v = random.below(case.distinct) as i128 * case.step;
            if ty == DataType::Varchar {
                Value::Text(format!("key number {v} of many").into())
            } else {
                int(v)
            }
        }
    };
    (0..rows)
        .map(|i| {
            vec![
                value(random, case.types[0]),
                value(random, case.types[1]),
                int(i as i128),
                int(random.below(20) as i128),
            ]
        })
        .collect()
}

/// The join, row by row. `None`: an error.
fn twin(kind: JoinKind, case: &Case, left: &[Row], right: &[Row]) -> Option<Vec<Row>> {
    let residual = |l: &Row, r: &Row| !case.residual || l[3].total_cmp(&r[3]).is_lt();
    // True, false, or unknown.
    let compare = |l: &Row, r: &Row| {
        let mut unknown = false;
        for &(key, null_equals_null) in &case.keys {
            let (a, b) = (&l[key], &r[key]);
            if !null_equals_null && (a.is_null() || b.is_null()) {
                unknown = true;
            } else if a != b {
                return Some(false);
            }
        }
        if unknown { None } else { Some(true) }
    };
    let matches = |l: &Row, r: &Row| compare(l, r) == Some(true) && residual(l, r);
    let nulls = || vec![Value::Null; 4];
    let mut out = Vec::new();
    for l in left {
        let partners: Vec<&Row> = right.iter().filter(|r| matches(l, r)).collect();
        let unknown = right.iter().any(|r| compare(l, r).is_none() && residual(l, r));
        match kind {
            JoinKind::Inner | JoinKind::Right => {
                out.extend(partners.iter().map(|r| [l.clone(), r.to_vec()].concat()))
            }
            JoinKind::Left | JoinKind::Full | JoinKind::Single => {
                if kind == JoinKind::Single && partners.len() > 1 {
                    return None;
                }
                out.extend(partners.iter().map(|r| [l.clone(), r.to_vec()].concat()));
                if partners.is_empty() {
                    out.push([l.clone(), nulls()].concat());
                }
            }
            JoinKind::AsOf { .. } => unreachable!("those of bounds have a twin of their own"),
            JoinKind::Semi => out.extend((!partners.is_empty()).then(|| l.clone())),
            JoinKind::Anti => out.extend(partners.is_empty().then(|| l.clone())),
            JoinKind::NullAwareAnti => out.extend((partners.is_empty() && !unknown).then(|| l.clone())),
            JoinKind::Mark { null_aware, .. } => {
                let mark = match partners.is_empty() {
                    false => Value::Boolean(true),
                    true if null_aware && unknown => Value::Null,
                    true => Value::Boolean(false),
                };
                out.push([l.clone(), vec![mark]].concat());
            }
        }
    }
    if matches!(kind, JoinKind::Right | JoinKind::Full) {
        let lonely = right.iter().filter(|r| !left.iter().any(|l| matches(l, r)));
        out.extend(lonely.map(|r| [nulls(), r.to_vec()].concat()));
    }
    Some(out)
}

fn check_joins(case: &Case, seed: u64) {
    let mut random = Random(seed);
    let left = random_rows(&mut random, case, case.rows[0]);
    let right = random_rows(&mut random, case, case.rows[1]);
    let mut columns = Columns::default();
    let types = [case.types[0], case.types[1], DataType::Int64, DataType::Int64];
    let (l, lid) = values(&mut columns, "l", &types, left.clone());
    let (r, rid) = values(&mut columns, "r", &types, right.clone());
    let mark = columns.add("mark", DataType::Boolean, true);
    let kinds = [
        JoinKind::Inner,
        JoinKind::Left,
        JoinKind::Right,
        JoinKind::Full,
        JoinKind::Semi,
        JoinKind::Anti,
        JoinKind::NullAwareAnti,
        JoinKind::Mark { mark, null_aware: true },
        JoinKind::Mark { mark, null_aware: false },
        JoinKind::Single,
    ];
    for (number, kind) in kinds.into_iter().enumerate() {
        if kind == JoinKind::NullAwareAnti && case.keys.len() != 1 {
            continue;
        }
        // A quarter of the contexts; over the cases, each kind runs under all of them.
        let contexts = join_contexts().into_iter().skip((seed as usize + number) % 4).step_by(4).collect();
        let on = case.keys.iter().map(|&(key, null_equals_null)| JoinKey {
            left: columns.expr(lid[key]),
            right: columns.expr(rid[key]),
            null_equals_null,
        });
        let less = Expr::compare(CompareOp::Lt, columns.expr(lid[3]), columns.expr(rid[3]));
        let residual = if case.residual { vec![less] } else { vec![] };
        let join =
            Join { left: Box::new(l.clone()), right: Box::new(r.clone()), kind, on: on.collect(), residual };
        let plan = plan(Node::Join(join), &columns);
        let what = format!("{kind:?}, seed {seed}, {:?} rows, residual {}", case.rows, case.residual);
        match twin(kind, case, &left, &right) {
            Some(expected) => check_under(contexts, &plan, &expected, &what),
            None => {
                for context in contexts {
                    assert!(run(&plan, &context).is_err(), "{what} must fail");
                }
            }
        }
    }
}

#[test]
fn joins_agree_with_nested_loops() {
    let (int, text) = (DataType::Int64, DataType::Varchar);
    let mut seed = 1;
    for rows in [[40u64, 25], [25, 200], [0, 5], [5, 0], [3, 1]] {
        for residual in [false, true] {
            for (types, keys) in [
                ([int, int], vec![(0, false)]),
                ([text, int], vec![(0, false)]),
                ([int, text], vec![(0, false), (1, false)]),
                ([int, int], vec![(0, false), (1, false)]),
                ([int, int], vec![(0, true)]),
                ([int, text], vec![(1, true), (0, false)]),
                ([int, int], vec![]),
            ] {
                // Few keys, keys dense enough for ranks, and sparse ones.
                for (distinct, step) in [(4, 1000), (60, 100), (60, 1000)] {
                    seed += 1;
                    let keys = keys.clone();
                    check_joins(&Case { types, keys, residual, distinct, step, rows }, seed * 7919);
                }
            }
        }
    }
}

#[test]
fn a_join_of_many_duplicates_gives_full_chunks() {
    let mut columns = Columns::default();
    let rows = |n: i128| (0..n).map(|i| vec![int(i % 2), int(i)]).collect::<Vec<_>>();
    let (left, l) = values(&mut columns, "l", &[DataType::Int32, DataType::Int64], rows(3000));
    let (right, r) = values(&mut columns, "r", &[DataType::Int32, DataType::Int64], rows(70));
    let on = vec![JoinKey { left: columns.expr(l[0]), right: columns.expr(r[0]), null_equals_null: false }];
    let join =
        Join { left: Box::new(left), right: Box::new(right), kind: JoinKind::Inner, on, residual: vec![] };
    let plan = plan(Node::Join(join), &columns);
    let tables = [
        (TableKind::Array, "direct array"),
        (TableKind::Ranked, "ranked array"),
        (TableKind::Cat, "concise array table"),
        (TableKind::Cht, "concise hash table"),
        (TableKind::Unchained, "unchained"),
        (TableKind::Chained, "chained"),
    ];
    for (mut context, (table, title)) in
        contexts().into_iter().flat_map(|c| tables.map(|table| (c.clone(), table)))
    {
        let settings = Arc::make_mut(&mut context.settings);
        settings.join_table = table;
        // Tuples stay in place, so tables that move rows give way to others.
        let moves = matches!(table, TableKind::Cat | TableKind::Cht | TableKind::Unchained);
        let is_other = moves && settings.temp_compression == TempCompression::On;
        let profile = {
            let types = plan.output.iter().map(|o| plan.columns.ty(o.column)).collect();
            let collector = Collector::new(&context, types);
            let profile = execute(&plan, &context, &collector).unwrap();
            assert_eq!(collector.into_chunks().rows, 3000 * 35);
            profile
        };
        let root = profile.root.unwrap();
        assert_eq!(root.rows, 3000 * 35);
        assert_eq!(root.children.iter().map(|c| c.rows).collect::<Vec<_>>(), [3000, 70]);
        assert_eq!(root.details[0], "join 1");
        assert!(root.details[1].starts_with("the build side is the right input: "), "{root:?}");
        assert!(root.details[2].starts_with(title) != is_other, "{root:?}");
        let chunk_rows = context.settings.chunk_rows as u64;
        // Each input chunk may leave a chunk that is not full.
        assert!(root.chunks <= root.rows / chunk_rows + 3000u64.div_ceil(chunk_rows), "{root:?}");
    }
}

#[test]
fn join_filters_change_no_result() {
    let mut random = Random(7);
    let types = [DataType::Int32, DataType::Int64];
    let mut rows = |n: i128, keys: u64| -> Vec<Row> {
        let key = |random: &mut Random| match random.below(9) {
            0 => Value::Null,
            _ => int(random.below(keys) as i128),
        };
        (0..n).map(|i| vec![key(&mut random), int(i)]).collect()
    };
    // Keys near each other have bits, those far from each other a Bloom filter.
    let far = |rows: Vec<Row>| -> Vec<Row> {
        let far = |key: Value| if let Value::Integer(v) = key { int(v * 500_000 + 7) } else { key };
        rows.into_iter().map(|row| vec![far(row[0].clone()), row[1].clone()]).collect()
    };
    let facts = rows(5000, 4000);
    let smaller = [rows(90, 4000), rows(0, 10), rows(300, 40)];
    let near = smaller.into_iter().map(|dimension| (facts.clone(), dimension));
    let cases: Vec<_> = near.flat_map(|(f, d)| [(f.clone(), d.clone()), (far(f), far(d))]).collect();
    for (facts, dimension) in cases {
        for kind in [JoinKind::Inner, JoinKind::Semi, JoinKind::Anti, JoinKind::Left, JoinKind::Right] {
            let mut columns = Columns::default();
            let (l, lid) = stored(&mut columns, &types, &facts);
            let (r, rid) = values(&mut columns, "r", &types, dimension.clone());
            let on = vec![JoinKey {
                left: columns.expr(lid[0]),
                right: columns.expr(rid[0]),
                null_equals_null: false,
            }];
            let join = Join { left: Box::new(l), right: Box::new(r), kind, on, residual: vec![] };
            let case =
                Case { types, keys: vec![(0, false)], residual: false, distinct: 0, step: 1, rows: [0, 0] };
            let expected = twin(kind, &case, &facts, &dimension).unwrap();
            // The twin's rows without a match have four NULLs for two columns.
            let width = if matches!(kind, JoinKind::Semi | JoinKind::Anti) { 2 } else { 4 };
            let expected: Vec<Row> = expected
                .into_iter()
                .map(|row| match row.len() {
                    6 if row[..4].iter().all(Value::is_null) => row[2..].to_vec(),
                    _ => row[..width].to_vec(),
                })
                .collect();
            check_under(
                filter_contexts(),
                &plan(Node::Join(join), &columns),
                &expected,
                &format!("{kind:?}"),
            );
        }
    }
}

/// The notes of the nodes whose title contains `title`.
fn details(node: &ProfileNode, title: &str) -> Vec<String> {
    let own = if node.title.contains(title) { node.details.clone() } else { Vec::new() };
    own.into_iter().chain(node.children.iter().flat_map(|child| details(child, title))).collect()
}

/// Rows in the plan join all rows of one dimension, and a tenth of another by two columns: one of the rows'
/// own, and one computed above them. A third dimension is joined by a column of each of the others.
#[test]
fn all_filters_come_before_the_first_join() {
    let big = DataType::Int64;
    let facts: Vec<Row> = (0..6000).map(|i| vec![int(i % 100), int(i % 50), int(i)]).collect();
    let mut columns = Columns::default();
    let (facts_node, f) = values(&mut columns, "f", &[big; 3], facts.clone());
    let shifted = columns.add("shifted", big, false);
    let (one, left) = (Box::new(Expr::literal(int(1), big)), Box::new(columns.expr(f[1])));
    let sum = Expr::Arithmetic { op: ArithmeticOp::Add, left, right: one, ty: big };
    let project = Node::Project(Project { input: Box::new(facts_node), exprs: vec![(shifted, sum)] });
    let (all, a) = values(&mut columns, "a", &[big; 2], (0..100).map(|i| vec![int(i), int(i % 7)]).collect());
    let few = (0..10).map(|i| vec![int(10 * i), int(10 * i % 50 + 1)]).collect();
    let (few, b) = values(&mut columns, "b", &[big; 2], few);
    let (both, c) = values(&mut columns, "c", &[big; 2], (0..5).map(|i| vec![int(i), int(i + 1)]).collect());
    let key = |l: ColumnId, r: ColumnId, columns: &Columns| JoinKey {
        left: columns.expr(l),
        right: columns.expr(r),
        null_equals_null: false,
    };
    let join = |left: Node, right: Node, on: Vec<JoinKey>| {
        let (left, right) = (Box::new(left), Box::new(right));
        Node::Join(Join { left, right, kind: JoinKind::Inner, on, residual: Vec::new() })
    };
    let root = join(project, all, vec![key(f[0], a[0], &columns)]);
    let root = join(root, few, vec![key(f[0], b[0], &columns), key(shifted, b[1], &columns)]);
    // The first key comes from one side of the joins below, the second from the other.
    let root = join(root, both, vec![key(a[1], c[0], &columns), key(b[1], c[1], &columns)]);
    let plan = plan(root, &columns);

    let is_few = |k: i128, s: i128| k % 10 == 0 && s == k % 50 + 1;
    let number = |value: &Value| if let Value::Integer(v) = value { *v } else { 0 };
    let expected: Vec<Row> = facts
        .iter()
        .map(|row| (number(&row[0]), number(&row[1]), number(&row[2])))
        .filter(|&(k, s, _)| is_few(k, s + 1) && k % 7 < 5 && s + 1 == k % 7 + 1)
        .map(|(k, s, n)| [k, s, n, s + 1, k, k % 7, k, s + 1, k % 7, s + 1].map(int).to_vec())
        .collect();
    assert!(!expected.is_empty());
    check_under(join_contexts(), &plan, &expected, "three joins");

    for (join_filter, tested) in
        [(FilterKind::Auto, true), (FilterKind::Bloom, true), (FilterKind::Off, false)]
    {
        let settings = Settings { profile: true, optimize: false, join_filter, ..Settings::default() };
        let context = QueryContext { settings: Arc::new(settings), ..QueryContext::default() };
        let types = plan.output.iter().map(|o| plan.columns.ty(o.column)).collect();
        let profile = execute(&plan, &context, &Collector::new(&context, types)).unwrap();
        let root = profile.root.unwrap();
        let of_rows = details(&root, "Project").join("\n");
        // 6000 rows with 100 keys, of which 10 occur, each with one number.
        let passed = "join filter on f0, shifted: 600 of 6000 rows passed, 10.0 %";
        match join_filter {
            // A few other rows may pass.
            FilterKind::Bloom => assert!(of_rows.contains("join filter on f0, shifted: "), "{of_rows}"),
            _ => assert_eq!(of_rows.contains(passed), tested, "{join_filter}: {of_rows}"),
        }
        let notes = details(&root, "Join").join("\n");
        let kind = match join_filter {
            FilterKind::Bloom => "join filter: Bloom for 10 rows",
            _ => "join filter: bits for",
        };
        assert_eq!(notes.contains(kind), tested, "{join_filter}: {notes}");
    }
}

#[test]
fn a_join_that_needs_too_much_memory_says_so_and_gives_it_back() {
    let mut columns = Columns::default();
    let rows = |n| (0..n).map(|i| vec![int(i * 1_000_000), int(i)]).collect::<Vec<_>>();
    let (left, l) = values(&mut columns, "l", &[DataType::Int64, DataType::Int64], rows(30_000));
    let (right, r) = values(&mut columns, "r", &[DataType::Int64, DataType::Int64], rows(20_000));
    let on = vec![JoinKey { left: columns.expr(l[0]), right: columns.expr(r[0]), null_equals_null: false }];
    let join =
        Join { left: Box::new(left), right: Box::new(right), kind: JoinKind::Inner, on, residual: vec![] };
    let mut plan = plan(Node::Join(join), &columns);
    plan.output.truncate(1);
    for (limit, enough) in [(100 << 10, false), (300 << 10, false), (4 << 20, true)] {
        // Without hash collisions, which would make every probe walk a chain of all rows.
        for mut context in contexts().into_iter().filter(|context| !context.settings.hash_collisions) {
            Arc::make_mut(&mut context.settings).temp_directory = in_memory().temp_directory;
            context.memory.set_limit(limit);
            if enough {
                assert_eq!(run(&plan, &context).unwrap().len(), 20_000);
            } else {
                let error = run(&plan, &context).unwrap_err();
                assert_eq!(error.kind(), entasis_vector::ErrorKind::Resource);
            }
            assert_eq!(context.memory.used(), 0);
        }
    }
}

#[test]
fn a_single_join_gets_the_table_that_it_is_given() {
    let mut columns = Columns::default();
    let rows = |step: i128| -> Vec<Row> { (0..50).map(|i| vec![int(i * step)]).collect() };
    let inputs = [1, 2, 3].map(|step| values(&mut columns, "k", &[DataType::Int64], rows(step)));
    let [(a, a_ids), (b, b_ids), (c, c_ids)] = inputs;
    let on = |left: &[ColumnId], right: &[ColumnId], columns: &Columns| {
        vec![JoinKey { left: columns.expr(left[0]), right: columns.expr(right[0]), null_equals_null: false }]
    };
    let inner = |left: Node, right: Node, on: Vec<JoinKey>| {
        let (left, right) = (Box::new(left), Box::new(right));
        Node::Join(Join { left, right, kind: JoinKind::Inner, on, residual: Vec::new() })
    };
    // The upper join has number one.
    let below = inner(a, b, on(&a_ids, &b_ids, &columns));
    let root = inner(below, c, on(&a_ids, &c_ids, &columns));
    let plan = plan(root, &columns);
    let tables = |join_tables: &[(usize, TableKind)]| -> [bool; 2] {
        let settings = Settings { profile: true, join_tables: join_tables.into(), ..Settings::default() };
        let context = QueryContext { settings: Arc::new(settings), ..QueryContext::default() };
        let collector = Collector::new(&context, vec![DataType::Int64; 3]);
        let top = execute(&plan, &context, &collector).unwrap().root.unwrap();
        assert_eq!(collector.into_chunks().rows, 9, "multiples of six below fifty");
        let below = top.children.iter().find(|child| !child.details.is_empty()).unwrap();
        [(&top, "join 1"), (below, "join 2")].map(|(node, number)| {
            assert!(node.details.iter().any(|detail| detail == number), "{node:?}");
            node.details.iter().any(|detail| detail.starts_with("concise hash table"))
        })
    };
    assert_eq!(tables(&[]), [false, false]);
    assert_eq!(tables(&[(1, TableKind::Cht)]), [true, false]);
    assert_eq!(tables(&[(2, TableKind::Cht)]), [false, true]);
    assert_eq!(tables(&[(3, TableKind::Cht), (2, TableKind::Array), (1, TableKind::Cht)]), [true, false]);
}
