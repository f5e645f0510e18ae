//! Joins with swapped sides compared with the same joins as planned, and when sides are swapped.

use super::*;
use crate::context::QueryContext;
use crate::exec::execute::execute;
use crate::exec::result::Collector;
use crate::exec::tests::stored;
use crate::memory::MemoryBudget;
use crate::plan::{Columns, Filter, Join, JoinKey, JoinKind, Node, Output, Plan, Sort, SortKey};
use crate::settings::{Settings, TempCompression};
use entasis_vector::expr::{CompareOp, Expr};
use entasis_vector::{DataType, Value};

type Row = Vec<Value>;

fn int(v: i128) -> Value {
    Value::Integer(v)
}

const SWAPPED: &str = "sides swapped";

/// Rows (key, and one number three times). In every second row that number is 1, which statistics of single
/// columns do not predict.
fn correlated(rows: i128) -> Vec<Row> {
    let row = |i: i128| {
        let number = int(if i % 2 == 0 { 1 } else { i % 100 });
        vec![if i % 97 == 5 { Value::Null } else { int(i) }, number.clone(), number.clone(), number]
    };
    (0..rows).map(row).collect()
}

/// Rows (key, number); some of the keys are in the `correlated` rows, one of them twice.
fn few(rows: i128) -> Vec<Row> {
    (0..rows).map(|i| vec![if i % 50 == 7 { Value::Null } else { int(i / 2 * 7) }, int(i)]).collect()
}

/// `wide` rows whose three numbers are 1, joined as the left or the right input with `narrow` rows, which
/// come in order if `sorted`. `all`: the three numbers are not filtered.
struct Inputs {
    wide: Vec<Row>,
    narrow: Vec<Row>,
    is_left: bool,
    all: bool,
    sorted: bool,
}

impl Inputs {
    fn new(wide: i128, narrow: i128) -> Inputs {
        Inputs { wide: correlated(wide), narrow: few(narrow), is_left: false, all: false, sorted: false }
    }

    fn plan(&self, kind: JoinKind) -> Plan {
        let mut columns = Columns::default();
        let types = [DataType::Int64; 4];
        let (mut wide, wide_ids) = stored(&mut columns, &types, &self.wide);
        let (mut narrow, narrow_ids) = stored(&mut columns, &types[..2], &self.narrow);
        if !self.all {
            let is_one = |i: usize| {
                Expr::compare(CompareOp::Eq, columns.expr(wide_ids[i]), Expr::literal(int(1), types[i]))
            };
            wide = Node::Filter(Filter { input: Box::new(wide), predicates: (1..4).map(is_one).collect() });
        }
        if self.sorted {
            let key = SortKey { expr: columns.expr(narrow_ids[1]), descending: false, nulls_first: false };
            narrow = Node::Sort(Sort { input: Box::new(narrow), keys: vec![key], limit: None });
        }
        let (left, right) = if self.is_left { (wide, narrow) } else { (narrow, wide) };
        let (left_id, right_id) =
            if self.is_left { (wide_ids[0], narrow_ids[0]) } else { (narrow_ids[0], wide_ids[0]) };
        let on = vec![JoinKey {
            left: columns.expr(left_id),
            right: columns.expr(right_id),
            null_equals_null: false,
        }];
        let root =
            Node::Join(Join { kind, left: Box::new(left), right: Box::new(right), on, residual: Vec::new() });
        let output =
            root.columns().into_iter().map(|column| Output { name: column.to_string(), column }).collect();
        Plan { root, columns, output }
    }
}

/// The rows in any order, and the profile.
fn run(plan: &Plan, join_swap: Swapping, settings: Settings) -> (Vec<String>, String) {
    let settings = Settings { profile: true, optimize: false, threads: 2, join_swap, ..settings };
    let memory = Arc::new(MemoryBudget::default());
    let context = QueryContext { settings: Arc::new(settings), memory, ..QueryContext::default() };
    let types: Vec<DataType> = plan.output.iter().map(|o| plan.columns.ty(o.column)).collect();
    let collector = Collector::new(&context, types.clone());
    let profile = execute(plan, &context, &collector).unwrap();
    let set = collector.into_chunks();
    let row = |chunk: &Chunk, row: usize| {
        types.iter().enumerate().map(|(c, &ty)| format!("{:?} ", chunk.value(row, c, ty))).collect::<String>()
    };
    let mut rows: Vec<String> =
        set.chunks.iter().flat_map(|chunk| (0..chunk.len()).map(|r| row(chunk, r))).collect();
    rows.sort();
    drop(set);
    assert_eq!(context.memory.used(), 0);
    (rows, profile.to_string())
}

const KINDS: [JoinKind; 6] =
    [JoinKind::Inner, JoinKind::Left, JoinKind::Right, JoinKind::Full, JoinKind::Semi, JoinKind::Anti];

#[test]
fn swapped_joins_give_the_same_rows() {
    for kind in KINDS {
        for (is_left, all) in [(false, false), (true, false), (false, true), (true, true)] {
            let plan = Inputs { is_left, all, ..Inputs::new(3000, 900) }.plan(kind);
            let (expected, profile) = run(&plan, Swapping::Off, Settings::default());
            assert!(!profile.contains(SWAPPED) && !expected.is_empty(), "{profile}");
            for chunk_rows in [3, 2048] {
                for temp_compression in [TempCompression::Off, TempCompression::On] {
                    let settings = Settings { chunk_rows, temp_compression, ..Settings::default() };
                    let (rows, profile) = run(&plan, Swapping::Always, settings);
                    assert!(profile.contains(SWAPPED), "{kind:?}, {is_left}, {all}: {profile}");
                    assert!(rows == expected, "{kind:?}, {is_left}, {all}: {profile}");
                }
            }
        }
    }
}

#[test]
fn far_more_rows_than_expected_are_probed_and_not_kept() {
    for kind in KINDS {
        let plan = Inputs::new(200_000, 3000).plan(kind);
        let (expected, _) = run(&plan, Swapping::Off, Settings::default());
        let (rows, profile) = run(&plan, Swapping::Auto, Settings::default());
        assert!(rows == expected, "{kind:?}: {profile}");
        // There, the join needs only a bitmap of the keys.
        let may_pay = kind != JoinKind::Anti;
        assert_eq!(profile.contains(SWAPPED), may_pay, "{kind:?}: {profile}");
    }
}

#[test]
fn sides_stay_where_it_does_not_pay() {
    let kind = JoinKind::Inner;
    for (inputs, setting, may) in [
        // Each differs in one thing from the first, which is swapped.
        (Inputs::new(200_000, 3000), Swapping::Auto, true),
        (Inputs::new(200_000, 3000), Swapping::Off, false),
        (Inputs { all: true, ..Inputs::new(200_000, 3000) }, Swapping::Auto, false),
        (Inputs { sorted: true, ..Inputs::new(200_000, 3000) }, Swapping::Auto, false),
        (Inputs { sorted: true, ..Inputs::new(200_000, 3000) }, Swapping::Always, false),
        // More rows than expected, but still fewer than the other side has.
        (Inputs::new(200_000, 400_000), Swapping::Auto, false),
        // Few rows, though many times more than expected.
        (Inputs::new(50_000, 300), Swapping::Auto, false),
    ] {
        let (_, profile) = run(&inputs.plan(kind), setting, Settings::default());
        assert_eq!(profile.contains(SWAPPED), may, "{setting}, {}, {}: {profile}", inputs.all, inputs.sorted);
    }
}
