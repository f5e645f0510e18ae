//! Keys that arrive as codes of dictionaries: joins by them, looked up by entry, compared with the same joins
//! of flat vectors, looked up row by row.

#[path = "../../../examples/handing/mod.rs"]
mod handing;

use super::*;
use crate as engine;
use crate::relation::{Relation, ScanRequest, Source, Statistics};
use entasis_vector::{Dictionary, Field, PhysicalType, Schema, Selection, Vector};
use handing::handing;

/// A text, or none, and a number.
type Keyed = (Option<u64>, i64);

/// Rows of texts and numbers, in chunks, whose texts are codes or not.
#[derive(Debug)]
struct Texts {
    schema: Schema,
    chunks: Arc<Vec<Chunk>>,
}

fn text(number: u64) -> Value {
    Value::Text(format!("text number {number} of some").into())
}

impl Texts {
    /// `rows` in chunks of at most `chunk_rows`, whose texts are below `texts`. As codes, chunks take turns
    /// with three dictionaries, which have the texts in different orders.
    fn new(rows: &[Keyed], texts: u64, chunk_rows: usize, are_codes: bool) -> Arc<Texts> {
        let all = |turn: u64| (0..texts).map(move |i| (i + turn * 5) % texts);
        let dictionaries = [0, 1, 2].map(|turn| {
            let values: Vec<Value> = all(turn).map(text).collect();
            Dictionary::new(Vector::from_values(PhysicalType::Str, &values).unwrap(), texts as usize)
        });
        let chunk = |(number, rows): (usize, &[Keyed])| {
            let turn = number % 3;
            let mut keys = Vector::new(PhysicalType::Str);
            if are_codes {
                let codes = keys.begin_codes(&dictionaries[turn], rows.len());
                for (code, (key, _)) in codes.iter_mut().zip(rows) {
                    let place = |key: u64| all(turn as u64).position(|text| text == key).unwrap() as u32;
                    // The code of a NULL is that of some text, which it must not match.
                    *code = key.map_or(7, place);
                }
                let nulls = rows.iter().enumerate().filter(|(_, (key, _))| key.is_none());
                nulls.for_each(|(row, _)| keys.set_null(row));
            } else {
                let values: Vec<Value> = rows.iter().map(|(key, _)| key.map_or(Value::Null, text)).collect();
                keys = Vector::from_values(PhysicalType::Str, &values).unwrap();
            }
            let numbers: Vec<i64> = rows.iter().map(|(_, number)| *number).collect();
            let mut chunk = Chunk::new();
            chunk.reset(rows.len());
            let group = chunk.push_group(Selection::ALL);
            chunk.push_column(keys, group);
            chunk.push_column(Vector::from_slice(&numbers), group);
            chunk
        };
        let chunks = rows.chunks(chunk_rows).enumerate().map(chunk).collect();
        let schema = [Field::new("k", DataType::Varchar), Field::new("v", DataType::Int64)];
        Arc::new(Texts { schema: schema.into_iter().collect(), chunks: Arc::new(chunks) })
    }
}

impl Relation for Texts {
    fn name(&self) -> &str {
        "texts"
    }
    fn schema(&self) -> &Schema {
        &self.schema
    }
    fn statistics(&self) -> Statistics {
        let rows = self.chunks.iter().map(|chunk| chunk.len() as u64).sum();
        Statistics { rows: Some(rows), ..Statistics::default() }
    }
    fn scan(&self, request: &ScanRequest, _: &QueryContext) -> Result<Arc<dyn Source>> {
        Ok(handing(&self.chunks, request))
    }
}

/// A join of two inputs by their texts.
struct Case {
    kind: fn(ColumnId) -> JoinKind,
    null_equals_null: bool,
    /// Pairs must have different numbers, and the probe rows are filtered.
    conditions: bool,
}

/// The rows of a join, sorted, or the error, and what the profile says.
fn joined(
    case: &Case,
    [left, right]: &[Arc<Texts>; 2],
    context: &QueryContext,
) -> (std::result::Result<Vec<Row>, String>, String) {
    let mut columns = Columns::default();
    let mut scan = |relation: &Arc<Texts>| {
        let ids = [columns.add("k", DataType::Varchar, true), columns.add("v", DataType::Int64, false)];
        (Node::Scan(Scan::all(relation.clone(), ids.into_iter().zip(0..).collect())), ids)
    };
    let ((mut left, l), (right, r)) = (scan(left), scan(right));
    let mark = columns.add("mark", DataType::Boolean, true);
    let mut residual = Vec::new();
    if case.conditions {
        let least = Expr::literal(int(100), DataType::Int64);
        let predicates = vec![Expr::compare(CompareOp::GtEq, columns.expr(l[1]), least)];
        left = Node::Filter(Filter { input: Box::new(left), predicates });
        residual.push(Expr::compare(CompareOp::NotEq, columns.expr(l[1]), columns.expr(r[1])));
    }
    let null_equals_null = case.null_equals_null;
    let on = vec![JoinKey { left: columns.expr(l[0]), right: columns.expr(r[0]), null_equals_null }];
    let (left, right) = (Box::new(left), Box::new(right));
    let join = Join { left, right, kind: (case.kind)(mark), on, residual };
    let plan = plan(Node::Join(join), &columns);
    let types: Vec<DataType> = plan.output.iter().map(|o| plan.columns.ty(o.column)).collect();
    let collector = Collector::new(context, types.clone());
    match execute(&plan, context, &collector) {
        Err(error) => (Err(error.to_string()), String::new()),
        Ok(profile) => {
            let chunks = collector.into_chunks().chunks;
            let row = |chunk: &Chunk, row| {
                types.iter().enumerate().map(|(c, &ty)| chunk.value(row, c, ty)).collect::<Row>()
            };
            let rows = chunks.iter().flat_map(|chunk| (0..chunk.len()).map(move |r| row(chunk, r)));
            let rows = sorted(rows.collect());
            (Ok(rows), profile.root.map_or(String::new(), |root| root.details.join("\n")))
        }
    }
}

fn context(join_table: TableKind, threads: usize, hash_collisions: bool) -> QueryContext {
    let settings = Settings {
        join_table,
        threads,
        hash_collisions,
        profile: true,
        optimize: false,
        join_filter: FilterKind::Off,
        join_swap: Swapping::Off,
        // Copies of chunks with different dictionaries are flat.
        compaction: Compaction::None,
        ..Settings::default()
    };
    QueryContext { settings: Arc::new(settings), ..QueryContext::default() }
}

const BY_CODE: &str = "probe rows matched by dictionary code";

#[test]
fn rows_looked_up_by_entry_match_as_rows_looked_up_one_by_one() {
    let kinds: [fn(ColumnId) -> JoinKind; 10] = [
        |_| JoinKind::Inner,
        |_| JoinKind::Left,
        |_| JoinKind::Right,
        |_| JoinKind::Full,
        |_| JoinKind::Semi,
        |_| JoinKind::Anti,
        |_| JoinKind::NullAwareAnti,
        |mark| JoinKind::Mark { mark, null_aware: true },
        |mark| JoinKind::Mark { mark, null_aware: false },
        |_| JoinKind::Single,
    ];
    // Rows of partitions that wait in files are flat when they are joined.
    let ways = [
        (TableKind::Auto, JoinSpill::Auto),
        (TableKind::Cht, JoinSpill::Auto),
        (TableKind::Unchained, JoinSpill::Auto),
        (TableKind::Chained, JoinSpill::Auto),
        (TableKind::Auto, JoinSpill::Half),
        (TableKind::Radix, JoinSpill::Auto),
    ];
    let mut random = Random(4711);
    let mut by_code = 0;
    for (number, kind) in kinds.into_iter().enumerate() {
        // Distinct build keys, and repeated ones, of which some are NULL; 40 texts, of which 30 match.
        for (build_rows, repeated, has_nulls) in
            [(30, 1, false), (31, 1, true), (90, 3, false), (91, 3, true)]
        {
            let build: Vec<Keyed> = (0..build_rows)
                .map(|i| ((!has_nulls || i % 31 != 30).then_some((i / repeated) as u64 % 30), i % 7))
                .collect();
            let probe: Vec<Keyed> = (0..1200)
                .map(|i| (Some(random.below(40)).filter(|_| random.below(9) > 0 || !has_nulls), i % 200))
                .collect();
            for (null_equals_null, conditions) in [(false, false), (false, true), (true, false)] {
                if null_equals_null && number == 6 {
                    continue;
                }
                let case = Case { kind, null_equals_null, conditions };
                for (i, (table, spill)) in ways.into_iter().enumerate() {
                    let what = format!(
                        "{:?}, {table}, {spill}, {build_rows} build rows, {null_equals_null}, {conditions}",
                        kind(ColumnId(0))
                    );
                    let mut context = context(table, 1 + i % 2, i == 3);
                    Arc::make_mut(&mut context.settings).join_spill = spill;
                    let chunk_rows = [50, 300][(i + number) % 2];
                    let [codes, flat] = [true, false].map(|are_codes| {
                        let left = Texts::new(&probe, 40, chunk_rows, are_codes);
                        let right = Texts::new(&build, 30, 64, false);
                        joined(&case, &[left, right], &context)
                    });
                    assert_eq!(codes.0, flat.0, "{what}");
                    assert!(!flat.1.contains(BY_CODE), "{what}: {}", flat.1);
                    by_code += usize::from(codes.1.contains(BY_CODE));
                    // An error has no profile; NULLs that equal NULLs are looked up row by row.
                    if i < 4 && codes.0.is_ok() && !(null_equals_null && has_nulls) {
                        assert!(codes.1.contains(BY_CODE), "{what}: {}", codes.1);
                    }
                }
            }
        }
    }
    assert!(by_code > 200, "{by_code}");
}

#[test]
fn the_profile_says_how_many_entries_were_looked_up() {
    let probe: Vec<Keyed> = (0..900).map(|i| (Some(i as u64 % 20), i)).collect();
    let build: Vec<Keyed> = (0..20).map(|i| (Some(i as u64), i)).collect();
    let case = Case { kind: |_| JoinKind::Inner, null_equals_null: false, conditions: false };
    let inputs = |chunk_rows| [Texts::new(&probe, 20, chunk_rows, true), Texts::new(&build, 20, 64, false)];
    let note = |chunk_rows| {
        let (rows, note) = joined(&case, &inputs(chunk_rows), &context(TableKind::Auto, 1, false));
        assert_eq!(rows.unwrap().len(), 900);
        note.lines().find(|line| line.contains(BY_CODE)).unwrap_or_default().to_string()
    };
    let of = |rows| format!("{rows} {BY_CODE}: 60 entries of 3 dictionaries were looked up");
    assert_eq!(note(100), of(900));
    // The first chunk of each dictionary has fewer rows than it has entries.
    assert_eq!(note(15), of(855));
}

#[test]
fn entries_with_very_many_matches_are_given_up() {
    let many = join::tuning::MOST_ENTRY_MATCHES as i64 + 1;
    let build: Vec<Keyed> = (0..many).map(|i| (Some(0), i)).collect();
    let probe: Vec<Keyed> = (0..3 * many / 2).map(|i| (Some(i as u64 % 2), i)).collect();
    let case = Case { kind: |_| JoinKind::Semi, null_equals_null: false, conditions: false };
    let inputs = [Texts::new(&probe, 2, 2048, true), Texts::new(&build, 2, 2048, false)];
    let (rows, note) = joined(&case, &inputs, &context(TableKind::Unchained, 1, false));
    let expected = probe.iter().filter(|(key, _)| *key == Some(0)).count();
    assert_eq!(rows.unwrap().len(), expected);
    assert!(note.contains("the build side is the right input"), "{note}");
    assert!(!note.contains(BY_CODE), "{note}");
}
