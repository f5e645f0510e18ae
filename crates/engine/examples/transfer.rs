//! Predicate transfer in two passes before any join, beside filters that joins publish while they run:
//! milliseconds of joins in random orders.
//!
//! `make bench-transfer`, or
//! `cargo run --release -p entasis-engine --example transfer [THOUSANDTHS OF IMDB [ORDERS]]`
//!
//! Zhao et al., *Debunking the Myth of Join Ordering: Toward Robust SQL Analytics* (SIGMOD 2025), section 5:
//! each query is run in random left-deep orders without cross products, and what counts is how much slower
//! the worst of them is than the best, beside the mean. The tables have the sizes and the skew of
//! `bench/imdb_data.py`, in integers; the queries have the joins and about the filters of `bench/imdb.sql`.
//!
//! Each order is run in four ways:
//!
//! 1. *none*: without join filters;
//! 2. *filters*: with those of the engine, as always;
//! 3. *two passes*: first, each relation is reduced to the rows with partners in its neighbours of a spanning
//!    tree, from the leaves to the root and back (`LargestRoot`: the root is the largest relation, and the
//!    largest neighbour comes next), then what is left is joined, without join filters. A relation that is a
//!    key without a filter reduces nothing. Reducing is a semi join whose result is kept; keys are exact, as
//!    they are integers, where the paper has Bloom filters;
//! 4. *both*: what two passes leave, joined with filters.
//!
//! The time of reducing does not depend on the order and is in the times of 3 and 4. The optimizer's own
//! order is added, with filters, and the time of finding it. Sides are chosen by costs, as always. All is run
//! on one thread; times are the least of two rounds, on the processor. Joins are stopped after some seconds,
//! which is then their time.

mod random;
mod ready;
mod stored;
mod timed;

use entasis_engine::exec::{Collector, FilterKind, QueryContext, Settings, execute};
use entasis_engine::optimizer::optimize;
use entasis_engine::plan::{Columns, Join, JoinKey, JoinKind, Node, Output, Plan, Scan};
use entasis_engine::relation::Relation;
use entasis_storage::Table;
use entasis_vector::expr::{CompareOp, Expr};
use entasis_vector::{CHUNK_ROWS, Chunk, ColumnId, DataType, Field, Schema, Selection, Value, Vector};
use random::Random;
use ready::{Ready, Sum};
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::Duration;
use stored::Stored;
use timed::timed;

/// After so many milliseconds a join is stopped.
const MOST: u64 = 3000;
const ROUNDS: usize = 2;

// ---- tables -----------------------------------------------------------------------------------------------

/// The tables, by number. The first column of those with one is the key.
const TITLE: usize = 0;
const NAME: usize = 1;
const KEYWORD: usize = 2;
const COMPANY: usize = 3;
const MOVIE_COMPANIES: usize = 4;
const MOVIE_INFO: usize = 5;
const MOVIE_INFO_IDX: usize = 6;
const CAST_INFO: usize = 7;
const AKA_NAME: usize = 8;
const MOVIE_KEYWORD: usize = 9;
const MOVIE_LINK: usize = 10;
const INFO_TYPE: usize = 11;
const TABLES: usize = 12;

/// True if the first column is the key.
fn is_key(table: usize, column: usize) -> bool {
    column == 0 && matches!(table, TITLE | NAME | KEYWORD | COMPANY | INFO_TYPE)
}

/// A number from 0 to 1 that depends on `of` and `salt` only.
fn uniform(salt: u64, of: u64) -> f64 {
    let mixed = (of * 64 + salt).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let mixed = (mixed ^ mixed >> 29).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    ((mixed ^ mixed >> 32) >> 11) as f64 / (1u64 << 53) as f64
}

/// A number from 1 to `rows`; low numbers are far more frequent.
fn skewed(rows: u64, power: f64, salt: u64, of: u64) -> i64 {
    1 + ((rows as f64 * uniform(salt, of).powf(power)) as i64).min(rows as i64 - 1)
}

/// The row numbers `1..` of each table, and its columns as functions of them.
fn tables(thousandths: u64) -> Vec<Arc<dyn Relation>> {
    let n = |thousands: u64| (thousands * thousandths).max(20);
    let (film, person, words, companies) = (n(2528), n(4167), n(134), n(235));
    let per_thousand = |salt, of| (1000.0 * uniform(salt, of)) as i64;
    let kinds = |x| [3, 4, 8, 16, 1, 2, 17][skewed(7, 1.0, 18, x) as usize - 1];
    (0..TABLES)
        .map(|table| {
            let row = |x: u64| -> Vec<i64> {
                match table {
                    TITLE => {
                        let age = 90.0 * (x as f64 / film as f64).powf(1.5) + 10.0 * uniform(3, x);
                        vec![x as i64, 2015 - age as i64]
                    }
                    NAME => vec![x as i64, per_thousand(6, x)],
                    KEYWORD => vec![x as i64],
                    // The country.
                    COMPANY => vec![x as i64, (x as i64 - 1) % 12],
                    MOVIE_COMPANIES => {
                        let movie = skewed(film, 1.6, 12, x);
                        // Of the country of the film.
                        let company = (movie - 1) % 12 + 12 * (skewed(companies / 12, 3.0, 13, x) - 1) + 1;
                        vec![movie, company, per_thousand(15, x)]
                    }
                    MOVIE_INFO => vec![skewed(film, 1.4, 17, x), kinds(x), per_thousand(19, x)],
                    MOVIE_INFO_IDX => {
                        let kind = [100, 101, 99, 112, 113][skewed(5, 2.5, 24, x) as usize - 1];
                        vec![skewed(film, 1.2, 23, x), kind, per_thousand(25, x)]
                    }
                    CAST_INFO => {
                        let movie = skewed(film, 1.8, 26, x);
                        let person = skewed(person, 1.0 + 1.5 * movie as f64 / film as f64, 27, x);
                        vec![movie, person, skewed(12, 1.7, 32, x), per_thousand(30, x)]
                    }
                    AKA_NAME => vec![skewed(person, 1.5, 33, x)],
                    MOVIE_KEYWORD => vec![skewed(film, 1.7, 37, x), skewed(words, 3.0, 38, x)],
                    MOVIE_LINK => {
                        vec![skewed(film, 2.5, 39, x), skewed(film, 2.5, 40, x), skewed(18, 1.5, 41, x)]
                    }
                    _ => vec![x as i64],
                }
            };
            let rows = match table {
                TITLE => film,
                NAME => person,
                KEYWORD => words,
                COMPANY => companies,
                MOVIE_COMPANIES => n(2609),
                MOVIE_INFO => n(14_836),
                MOVIE_INFO_IDX => n(1380),
                CAST_INFO => n(36_244),
                AKA_NAME => n(901),
                MOVIE_KEYWORD => n(4524),
                MOVIE_LINK => n(30),
                _ => 113,
            };
            stored(rows, row)
        })
        .collect()
}

/// A table of these rows, numbered from 1.
fn stored(rows: u64, row: impl Fn(u64) -> Vec<i64>) -> Arc<dyn Relation> {
    let width = row(1).len();
    let schema: Schema = (0..width).map(|i| Field::new(format!("c{i}"), DataType::Int64)).collect();
    let table = Table::new("stored", schema);
    let mut appender = table.appender();
    for start in (1..=rows).step_by(CHUNK_ROWS) {
        let some: Vec<Vec<i64>> = (start..=rows.min(start + CHUNK_ROWS as u64 - 1)).map(&row).collect();
        let mut chunk = Chunk::new();
        chunk.reset(some.len());
        let group = chunk.push_group(Selection::ALL);
        for column in 0..width {
            let values: Vec<i64> = some.iter().map(|row| row[column]).collect();
            chunk.push_column(Vector::from_slice(&values), group);
        }
        appender.append(&chunk, 0).expect("there is memory");
    }
    table.commit(vec![appender.finish()]).expect("nobody else writes");
    Arc::new(Stored(table.snapshot()))
}

// ---- queries ----------------------------------------------------------------------------------------------

/// A relation of a query: a table, and the range of a column that it is filtered by, both ends included.
type Part = (usize, Option<(usize, i64, i64)>);

/// A query: its relations, and the columns (relation, column) that are equal to each other.
struct Query {
    name: &'static str,
    parts: &'static [Part],
    classes: &'static [&'static [(usize, usize)]],
}

const QUERIES: [Query; 9] = [
    // Companies of one country, a frequent keyword.
    Query {
        name: "a2",
        parts: &[
            (COMPANY, Some((1, 2, 2))),
            (KEYWORD, Some((0, 8, 8))),
            (MOVIE_COMPANIES, None),
            (MOVIE_KEYWORD, None),
            (TITLE, None),
        ],
        classes: &[&[(2, 0), (3, 0), (4, 0)], &[(0, 0), (2, 1)], &[(1, 0), (3, 1)]],
    },
    // One keyword, few names, new films.
    Query {
        name: "b1",
        parts: &[
            (CAST_INFO, None),
            (KEYWORD, Some((0, 2, 2))),
            (MOVIE_KEYWORD, None),
            (NAME, Some((1, 0, 124))),
            (TITLE, Some((1, 2001, 2015))),
        ],
        classes: &[&[(0, 0), (2, 0), (4, 0)], &[(1, 0), (2, 1)], &[(0, 1), (3, 0)]],
    },
    // A chain: names of people, of films, of companies of a country.
    Query {
        name: "b3",
        parts: &[
            (AKA_NAME, None),
            (CAST_INFO, Some((3, 0, 74))),
            (COMPANY, Some((1, 4, 4))),
            (MOVIE_COMPANIES, None),
            (NAME, None),
            (TITLE, None),
        ],
        classes: &[&[(0, 0), (1, 1), (4, 0)], &[(1, 0), (3, 0), (5, 0)], &[(2, 0), (3, 1)]],
    },
    // Links of films, companies of other countries.
    Query {
        name: "c1",
        parts: &[
            (COMPANY, Some((1, 1, 11))),
            (KEYWORD, None),
            (MOVIE_COMPANIES, None),
            (MOVIE_KEYWORD, None),
            (MOVIE_LINK, Some((2, 1, 2))),
            (TITLE, Some((1, 1950, 2014))),
        ],
        classes: &[&[(2, 0), (3, 0), (4, 0), (5, 0)], &[(0, 0), (2, 1)], &[(1, 0), (3, 1)]],
    },
    // A star of four tables around films of few years.
    Query {
        name: "c2",
        parts: &[
            (COMPANY, Some((1, 0, 0))),
            (INFO_TYPE, Some((0, 3, 3))),
            (INFO_TYPE, Some((0, 101, 101))),
            (MOVIE_COMPANIES, None),
            (MOVIE_INFO, Some((2, 0, 199))),
            (MOVIE_INFO_IDX, Some((2, 800, 999))),
            (TITLE, Some((1, 2005, 2008))),
        ],
        classes: &[
            &[(3, 0), (4, 0), (5, 0), (6, 0)],
            &[(0, 0), (3, 1)],
            &[(1, 0), (4, 1)],
            &[(2, 0), (5, 1)],
        ],
    },
    // Two chains from films: to people's other names, and to companies; a frequent keyword.
    Query {
        name: "d1",
        parts: &[
            (AKA_NAME, None),
            (CAST_INFO, None),
            (COMPANY, Some((1, 0, 0))),
            (KEYWORD, Some((0, 5, 5))),
            (MOVIE_COMPANIES, Some((2, 0, 499))),
            (MOVIE_KEYWORD, None),
            (NAME, Some((1, 0, 9))),
            (TITLE, None),
        ],
        classes: &[
            &[(0, 0), (1, 1), (6, 0)],
            &[(1, 0), (4, 0), (5, 0), (7, 0)],
            &[(2, 0), (4, 1)],
            &[(3, 0), (5, 1)],
        ],
    },
    // Few people in notes, genres and votes.
    Query {
        name: "d3",
        parts: &[
            (CAST_INFO, Some((3, 0, 49))),
            (INFO_TYPE, Some((0, 3, 3))),
            (INFO_TYPE, Some((0, 100, 100))),
            (MOVIE_INFO, None),
            (MOVIE_INFO_IDX, None),
            (NAME, Some((1, 0, 49))),
            (TITLE, None),
        ],
        classes: &[
            &[(0, 0), (3, 0), (4, 0), (6, 0)],
            &[(0, 1), (5, 0)],
            &[(1, 0), (3, 1)],
            &[(2, 0), (4, 1)],
        ],
    },
    // A keyword of films, and films that these are linked to.
    Query {
        name: "e5",
        parts: &[
            (KEYWORD, Some((0, 8, 8))),
            (MOVIE_KEYWORD, None),
            (MOVIE_LINK, None),
            (TITLE, None),
            (TITLE, None),
        ],
        classes: &[&[(0, 0), (1, 1)], &[(1, 0), (2, 0), (3, 0)], &[(2, 1), (4, 0)]],
    },
    // Roles of two casts of the films of a year: each film has the product.
    Query {
        name: "f4",
        parts: &[(CAST_INFO, Some((2, 8, 8))), (CAST_INFO, Some((2, 4, 4))), (TITLE, Some((1, 2001, 2001)))],
        classes: &[&[(0, 0), (1, 0), (2, 0)]],
    },
];

impl Query {
    /// The columns of classes that a relation has: class, column.
    fn own(&self, part: usize) -> Vec<(usize, usize)> {
        let classes = self.classes.iter().enumerate();
        let members = classes.flat_map(|(class, members)| members.iter().map(move |member| (class, member)));
        members.filter(|(_, (of, _))| *of == part).map(|(class, (_, column))| (class, *column)).collect()
    }

    /// The classes that join two relations, with the columns of both.
    fn between(&self, a: usize, b: usize) -> Vec<(usize, usize)> {
        let others = self.own(b);
        let pair = |&(class, own): &(usize, usize)| {
            others.iter().find(|(other, _)| *other == class).map(|(_, column)| (own, *column))
        };
        self.own(a).iter().filter_map(pair).collect()
    }

    /// A random order in which each relation is joined to one before it.
    fn order(&self, random: &mut Random) -> Vec<usize> {
        let mut order = vec![random.below(self.parts.len() as u64) as usize];
        while order.len() < self.parts.len() {
            let joined = |part: &usize| order.iter().any(|other| !self.between(*part, *other).is_empty());
            let next: Vec<usize> =
                (0..self.parts.len()).filter(|part| !order.contains(part)).filter(joined).collect();
            order.push(next[random.below(next.len() as u64) as usize]);
        }
        order
    }

    /// The spanning tree by `LargestRoot`: relations, each with its parent, parents first.
    fn tree(&self, tables: &[Arc<dyn Relation>]) -> Vec<(usize, Option<usize>)> {
        let rows = |part: &usize| tables[self.parts[*part].0].statistics().rows.unwrap_or(0);
        let root = (0..self.parts.len()).max_by_key(rows).expect("there are relations");
        let mut tree = vec![(root, None)];
        while tree.len() < self.parts.len() {
            let is_new = |part: &usize| tree.iter().all(|(other, _)| other != part);
            let parent = |part: usize| {
                let parents = tree.iter().map(|(other, _)| *other);
                parents.filter(|other| !self.between(part, *other).is_empty()).max_by_key(rows)
            };
            let next = (0..self.parts.len()).filter(is_new).filter_map(|part| Some((part, parent(part)?)));
            let (part, parent) = next.max_by_key(|(part, _)| rows(part)).expect("a query is connected");
            tree.push((part, Some(parent)));
        }
        tree
    }
}

/// A relation of a query as it is read: its rows, and where the table's columns are in it.
#[derive(Clone)]
struct Read {
    relation: Arc<dyn Relation>,
    /// The columns of the relation by those of the table.
    columns: Vec<(usize, usize)>,
    filter: Option<(usize, i64, i64)>,
}

impl Read {
    /// A relation as it is stored.
    fn stored(query: &Query, part: usize, tables: &[Arc<dyn Relation>]) -> Read {
        let (table, filter) = query.parts[part];
        let mut columns: Vec<usize> = query.own(part).into_iter().map(|(_, column)| column).collect();
        columns.extend(filter.map(|(column, ..)| column));
        columns.sort_unstable();
        columns.dedup();
        Read {
            relation: tables[table].clone(),
            columns: columns.into_iter().map(|column| (column, column)).collect(),
            filter,
        }
    }

    /// Its scan, and the identities of its columns by those of the table.
    fn scan(&self, columns: &mut Columns) -> (Node, Vec<(usize, ColumnId)>) {
        let ids: Vec<(usize, ColumnId)> = self
            .columns
            .iter()
            .map(|(column, _)| (*column, columns.add(format!("c{column}"), DataType::Int64, false)))
            .collect();
        let read = ids.iter().zip(&self.columns).map(|((_, id), (_, index))| (*id, *index)).collect();
        let mut scan = Scan::all(self.relation.clone(), read);
        if let Some((column, low, high)) = self.filter {
            let compared = |op, number: i64| {
                let number = Expr::literal(Value::Integer(number.into()), DataType::Int64);
                Expr::compare(op, columns.expr(of(&ids, column)), number)
            };
            scan.filters = vec![compared(CompareOp::GtEq, low), compared(CompareOp::LtEq, high)];
        }
        (Node::Scan(scan), ids)
    }
}

fn of(ids: &[(usize, ColumnId)], column: usize) -> ColumnId {
    ids.iter().find(|(own, _)| *own == column).expect("the column is read").1
}

fn context(join_filter: FilterKind) -> QueryContext {
    let settings = Settings { threads: 1, join_filter, ..Settings::default() };
    QueryContext { settings: Arc::new(settings), ..QueryContext::default() }
}

// ---- ways -------------------------------------------------------------------------------------------------

/// The joins of all relations in an order; a column of the first relation of the query comes out.
fn plan(query: &Query, reads: &[Read], order: &[usize]) -> Plan {
    let mut columns = Columns::default();
    let mut ids = vec![Vec::new(); reads.len()];
    let mut root: Option<Node> = None;
    for (at, &part) in order.iter().enumerate() {
        let (scan, own) = reads[part].scan(&mut columns);
        ids[part] = own;
        let Some(left) = root else {
            root = Some(scan);
            continue;
        };
        let mut on: Vec<JoinKey> = Vec::new();
        let mut joined = Vec::new();
        for &other in &order[..at] {
            for (class, column) in query.own(part) {
                let partner = query.own(other).into_iter().find(|(own, _)| *own == class);
                // One partner of a class is enough.
                let Some((_, partner)) = partner.filter(|_| !joined.contains(&class)) else { continue };
                joined.push(class);
                on.push(JoinKey {
                    left: columns.expr(of(&ids[other], partner)),
                    right: columns.expr(of(&ids[part], column)),
                    null_equals_null: false,
                });
            }
        }
        let (left, right) = (Box::new(left), Box::new(scan));
        root = Some(Node::Join(Join { left, right, kind: JoinKind::Inner, on, residual: Vec::new() }));
    }
    let column = of(&ids[0], query.own(0)[0].1);
    let output = vec![Output { name: "v".into(), column }];
    Plan { root: root.expect("there are relations"), columns, output }
}

/// Milliseconds of a plan and the sum of its column; `None` if it was stopped.
fn run(plan: &Plan, join_filter: FilterKind) -> (f64, Option<i64>) {
    let context = context(join_filter);
    let (done, waits) = channel::<()>();
    let cancel = context.cancel.clone();
    let watch = std::thread::spawn(move || {
        if waits.recv_timeout(Duration::from_millis(MOST)).is_err() {
            cancel.raise();
        }
    });
    let sum = Sum::default();
    let (milliseconds, outcome) = timed(true, || execute(plan, &context, &sum));
    // The watch may be over.
    let _ = done.send(());
    watch.join().expect("it does not panic");
    match outcome {
        Ok(_) => (milliseconds, Some(sum.total())),
        Err(_) => (MOST as f64, None),
    }
}

/// The least of several rounds; a stopped plan is not run again.
fn least(plan: &Plan, join_filter: FilterKind) -> (f64, Option<i64>) {
    let mut best = run(plan, join_filter);
    for _ in 1..ROUNDS {
        if best.1.is_some() {
            best.0 = best.0.min(run(plan, join_filter).0);
        }
    }
    best
}

/// The rows of `part` with partners in `others`, in memory.
fn reduced(query: &Query, reads: &[Read], part: usize, others: &[usize]) -> Read {
    let mut columns = Columns::default();
    let (mut root, ids) = reads[part].scan(&mut columns);
    for &other in others {
        let (scan, other_ids) = reads[other].scan(&mut columns);
        let on = query.between(part, other).into_iter().map(|(own, partner)| JoinKey {
            left: columns.expr(of(&ids, own)),
            right: columns.expr(of(&other_ids, partner)),
            null_equals_null: false,
        });
        let (on, left, right) = (on.collect(), Box::new(root), Box::new(scan));
        root = Node::Join(Join { left, right, kind: JoinKind::Semi, on, residual: Vec::new() });
    }
    let mut kept: Vec<usize> = query.own(part).into_iter().map(|(_, column)| column).collect();
    kept.sort_unstable();
    kept.dedup();
    let output =
        kept.iter().map(|&column| Output { name: String::new(), column: of(&ids, column) }).collect();
    let plan = Plan { root, columns, output };
    let context = context(FilterKind::Auto);
    let collector = Collector::new(&context, vec![DataType::Int64; kept.len()]);
    execute(&plan, &context, &collector).expect("a semi join of integers runs");
    let rows = collector.into_chunks();
    let schema: Schema =
        kept.iter().map(|column| Field::new(format!("c{column}"), DataType::Int64)).collect();
    let relation = Arc::new(Ready::of_chunks(schema, rows.chunks, rows.rows as u64, None));
    Read {
        relation,
        columns: kept.into_iter().enumerate().map(|(i, column)| (column, i)).collect(),
        filter: None,
    }
}

/// What two passes leave of all relations.
fn transferred(query: &Query, tables: &[Arc<dyn Relation>]) -> Vec<Read> {
    let mut reads: Vec<Read> = (0..query.parts.len()).map(|part| Read::stored(query, part, tables)).collect();
    let tree = query.tree(tables);
    let mut is_reduced = vec![false; reads.len()];
    for &(part, _) in tree.iter().rev() {
        // A key without a filter, all of whose children are such, has all values.
        let tells = |child: usize, columns: &[(usize, usize)]| {
            is_reduced[child] || !columns.iter().all(|(_, own)| is_key(query.parts[child].0, *own))
        };
        let children = tree.iter().filter(|(_, parent)| *parent == Some(part)).map(|(child, _)| *child);
        let senders: Vec<usize> =
            children.filter(|child| tells(*child, &query.between(part, *child))).collect();
        if !senders.is_empty() || reads[part].filter.is_some() {
            reads[part] = reduced(query, &reads, part, &senders);
            is_reduced[part] = true;
        }
    }
    for &(part, parent) in &tree {
        if let Some(parent) = parent {
            reads[part] = reduced(query, &reads, part, &[parent]);
        }
    }
    reads
}

// ---- what comes out ---------------------------------------------------------------------------------------

/// The least, the mean and the greatest of some times.
fn spread(times: &[f64]) -> [f64; 3] {
    let mean = times.iter().sum::<f64>() / times.len() as f64;
    [times.iter().copied().fold(f64::INFINITY, f64::min), mean, times.iter().copied().fold(0.0, f64::max)]
}

fn main() {
    let argument = |at| std::env::args().nth(at).and_then(|text| text.parse().ok());
    let tables = tables(argument(1).unwrap_or(50));
    let orders = argument(2).unwrap_or(50);
    println!(
        "for each query: least, mean and greatest ms of {orders} orders, and how many were stopped after \
         {MOST} ms, for: none; filters; two passes (of which before the joins); both; then ms of finding the optimizer's order, and in it"
    );
    // Over all queries: the logarithms of mean and of greatest times, and of the greatest by the least.
    let mut totals = [[0.0; 3]; 4];
    for query in &QUERIES {
        let mut random = Random(4711);
        let stored: Vec<Read> =
            (0..query.parts.len()).map(|part| Read::stored(query, part, &tables)).collect();
        let (mut passes, mut left) = timed(true, || transferred(query, &tables));
        for _ in 1..ROUNDS {
            let again = timed(true, || transferred(query, &tables));
            if again.0 < passes {
                (passes, left) = again;
            }
        }
        let ways = [
            (&stored, FilterKind::Off),
            (&stored, FilterKind::Auto),
            (&left, FilterKind::Off),
            (&left, FilterKind::Auto),
        ];
        let (mut times, mut stopped) = ([const { Vec::new() }; 4], [0; 4]);
        let mut sums: Vec<i64> = Vec::new();
        for _ in 0..orders {
            let order = query.order(&mut random);
            for (way, (reads, join_filter)) in ways.into_iter().enumerate() {
                let (milliseconds, sum) = least(&plan(query, reads, &order), join_filter);
                let before = if way < 2 { 0.0 } else { passes };
                times[way].push(before + milliseconds);
                stopped[way] += usize::from(sum.is_none());
                sums.extend(sum);
            }
        }
        let as_written = plan(query, &stored, &query.order(&mut random));
        // Planning, and running.
        let mut own = [f64::INFINITY; 2];
        for _ in 0..ROUNDS {
            let settings = context(FilterKind::Auto).settings;
            let (planning, plan) = timed(true, || optimize(as_written.clone(), &settings));
            let (running, sum) = run(&plan.expect("the plan is right"), FilterKind::Auto);
            own = [own[0].min(planning), own[1].min(running)];
            sums.extend(sum);
        }
        assert!(sums.iter().all(|&sum| sum == sums[0]), "all orders and ways give the same");
        let ways = times.iter().zip(&stopped).zip(&mut totals).map(|((times, stopped), totals)| {
            let [least, mean, most] = spread(times);
            for (total, figure) in totals.iter_mut().zip([mean, most, most / least]) {
                *total += figure.ln() / QUERIES.len() as f64;
            }
            format!("{least:.1} {mean:.1} {most:.1} {stopped}")
        });
        let ways: Vec<String> = ways.collect();
        println!(
            "{}: {}; {}; {} ({passes:.1}); {}; {:.1} {:.1}",
            query.name, ways[0], ways[1], ways[2], ways[3], own[0], own[1]
        );
    }
    for (name, [mean, most, ratio]) in ["none", "filters", "two passes", "both"].into_iter().zip(totals) {
        println!(
            "{name}: by the geometric mean over queries, mean {:.1} ms, greatest {:.1} ms, greatest by \
             least {:.2}",
            mean.exp(),
            most.exp(),
            ratio.exp()
        );
    }
}
