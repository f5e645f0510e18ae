//! Which build sides can be read twice, what that costs, and by what their keys are counted.

use crate::context::QueryContext;
use crate::estimate::ColumnEstimate;
use crate::exec::join::build_spec::BuildSpec;
use crate::exec::join::strategy::passes::{Reading, once};
use crate::exec::join::table::{BitCount, LookupKind, Numbering, RangeCount, countable_places};
use crate::exec::join::{BuildTail, Computed};
use crate::exec::key_filter::{Packing, is_integer};
use crate::exec::materialized::SEGMENT_ROWS;
use crate::plan::Node;
use crate::settings::{FilterKind, JoinSpill, Readings, Settings, TableKind, TempCompression};
use entasis_vector::expr::{ColumnMeta, Expr};
use entasis_vector::{DataType, PhysicalType};

/// The most rows: their ids are segments and offsets in 32 bits.
pub(super) const MOST_ROWS: usize = (SEGMENT_ROWS - 1) * SEGMENT_ROWS;

/// Bytes of a place of a CAT: a bit, and one of its word's rank.
const PLACE_BYTES: f64 = 0.25;
/// Bytes of a row's number until its part is finalized; more than the row's CHT buckets, which replace it.
const NUMBER_BYTES: f64 = 4.0;

/// A build side, as the plan knows it.
pub(crate) struct Input<'a> {
    /// Where its rows come from.
    pub node: &'a Node,
    /// Its keys over these rows.
    pub keys: &'a [Expr],
    /// The expected number of rows.
    pub rows: f64,
    /// Join filters are tested on the input.
    pub is_filtered: bool,
    /// The columns as they come, keys first.
    pub columns: &'a Computed,
    /// The columns as they are kept.
    pub kept: &'a [ColumnMeta],
}

/// What keys are counted by.
#[derive(Debug)]
pub(super) enum CountedBy {
    /// A bit for each place; the join needs no rows.
    Bits(Packing),
    /// Ranges of places or buckets.
    Numbers(Numbering),
}

impl CountedBy {
    /// What the keys are counted by; `None` if the join needs a table that cannot be built by counting, or
    /// rows whose keys equal nothing.
    pub(super) fn of(input: &Input<'_>, spec: &BuildSpec) -> Option<CountedBy> {
        let keys = spec.null_equals_null.len();
        let metas = &input.columns.metas()[..keys];
        let drops_nulls = spec.shape.tail == BuildTail::Nothing && !spec.null_aware;
        let is_matchable = |(meta, equal): (&ColumnMeta, &bool)| drops_nulls || *equal || !meta.nullable;
        if keys == 0 || !metas.iter().zip(&spec.null_equals_null).all(is_matchable) {
            return None;
        }
        let places = countable_places(spec.table, spec.asked, input.rows);
        // Keys of both sides are compared in their kept types.
        let are_integers = input.kept[..keys].iter().all(|meta| is_integer(meta.physical));
        let packing = known_bounds(metas).filter(|_| are_integers).and_then(|bounds| Packing::of(&bounds));
        if let (Some(packing), false) = (packing, spec.null_equals_null.contains(&true))
            && places.is_some_and(|places| packing.places() <= places)
        {
            return Some(if spec.asks_for_rows() {
                CountedBy::Numbers(Numbering::Places(packing))
            } else {
                CountedBy::Bits(packing)
            });
        }
        // PERF: other tables by hash take 1.1 to 1.6 times as long where keys are distinct
        // (docs/decisions/0016-parts-that-settle.md).
        let is_wanted = matches!(spec.table, TableKind::Cht | TableKind::Auto);
        is_wanted.then(|| CountedBy::Numbers(Numbering::buckets((input.rows as usize).min(MOST_ROWS))))
    }

    /// False if there are too many places or buckets.
    pub(super) fn is_possible(&self) -> bool {
        match self {
            CountedBy::Bits(_) => true,
            CountedBy::Numbers(numbering) => numbering.is_possible(),
        }
    }

    /// Bytes of the counters of one worker.
    pub(super) fn bytes(&self) -> usize {
        match self {
            CountedBy::Bits(packing) => BitCount::bytes_for(packing.places()),
            CountedBy::Numbers(numbering) => RangeCount::bytes_for(numbering),
        }
    }
}

/// True if columns of placed rows may share words.
pub(super) fn shares_words(settings: &Settings) -> bool {
    settings.temp_compression != TempCompression::Off
}

/// The bounds of signed integer keys of up to 64 bits, if the plan knows them.
fn known_bounds(keys: &[ColumnMeta]) -> Option<Vec<(i64, i64)>> {
    let bounds = keys.iter().map(|meta| {
        let is_integer =
            is_integer(meta.physical) && meta.physical != PhysicalType::U64 && meta.ty != DataType::Boolean;
        let (min, max) = meta.range.filter(|_| is_integer)?;
        let bounds = (i64::try_from(min).ok()?, i64::try_from(max).ok()?);
        (bounds.0 <= bounds.1).then_some(bounds)
    });
    bounds.collect()
}

/// True if the rows of `node` and their `keys` are the same in each reading, and `node` contains no sink.
pub(super) fn is_repeatable(node: &Node, keys: &[Expr]) -> bool {
    !keys.iter().any(Expr::is_volatile)
        && match node {
            Node::Scan(scan) => {
                scan.relation.table().is_some() && !scan.filters.iter().any(Expr::is_volatile)
            }
            Node::Values(_) => true,
            Node::Filter(filter) => is_repeatable(&filter.input, &filter.predicates),
            Node::Project(project) => {
                !project.exprs.iter().any(|(_, expr)| expr.is_volatile())
                    && is_repeatable(&project.input, &[])
            }
            _ => false,
        }
}

/// True if none of them calls a function or does more with text than pass it on.
fn are_cheap<'e>(exprs: impl IntoIterator<Item = &'e Expr>) -> bool {
    exprs.into_iter().filter(|expr| !matches!(expr, Expr::Column { .. })).all(|expr| {
        let mut is_cheap = true;
        expr.visit(&mut |e| {
            is_cheap &= !matches!(e, Expr::External { .. }) && e.ty().physical() != PhysicalType::Str
        });
        is_cheap
    })
}

/// The cost of reading such an input, given the expected rows and rows per key.
pub(super) fn reading(node: &Node, keys: &[Expr], (rows, per_key): (f64, f64)) -> Reading {
    let found = finding(node);
    Reading { rows, per_key, looked_at: found.looked_at, is_cheap: found.is_cheap && are_cheap(keys) }
}

/// True if rows with these columns can be written to given places, and no setting prevents that.
pub(super) fn is_possible<'m>(
    settings: &Settings,
    kept: impl IntoIterator<Item = &'m ColumnMeta>,
    become_tuples: bool,
) -> bool {
    settings.join_filter != FilterKind::Bloom
        && settings.join_spill == JoinSpill::Auto
        && !become_tuples
        && kept.into_iter().all(|meta| meta.physical != PhysicalType::Str)
}

/// Bytes of the table and of kept keys per row of `node`, if it is expected to be read twice. `rows` and
/// `key_bytes` are the number of rows and the bytes of a row's keys that are not columns in `kept`. Not
/// tested are the other conditions of two passes: rows with a NULL key that come out, or filters on this
/// side.
pub(crate) fn counted_bytes(
    node: &Node,
    keys: &[(&Expr, ColumnEstimate)],
    kept: &[ColumnMeta],
    (rows, key_bytes): (f64, f64),
    context: &QueryContext,
) -> Option<f64> {
    let settings = &context.settings;
    let (exprs, columns): (Vec<Expr>, Vec<&ColumnEstimate>) =
        keys.iter().map(|(expr, column)| ((*expr).clone(), column)).unzip();
    let distinct: f64 = columns.iter().map(|column| column.distinct).product();
    let per_key = rows / distinct.clamp(1.0, rows.max(1.0));
    // `join_build = twice` does not change plans.
    let setting = if settings.join_build == Readings::Once { Readings::Once } else { Readings::Auto };
    if once(setting, &reading(node, &exprs, (rows, per_key))).is_some()
        || !is_repeatable(node, &exprs)
        || !is_possible(settings, kept, false)
        || !exprs.iter().all(|key| is_integer(key.ty().physical()))
    {
        return None;
    }
    let places: Option<f64> =
        columns.iter().map(|column| column.range.map(|(min, max)| (max - min + 1.0).max(1.0))).product();
    let most = countable_places(settings.join_table, LookupKind::Rows, rows);
    if let Some(places) = places.filter(|places| most.is_some_and(|most| *places <= most as f64)) {
        return Some((PLACE_BYTES * places / rows).max(NUMBER_BYTES));
    }
    let is_cht = matches!(settings.join_table, TableKind::Cht | TableKind::Auto);
    is_cht.then_some(NUMBER_BYTES + key_bytes)
}

/// What it costs to find the rows of an input.
struct Finding {
    looked_at: f64,
    is_cheap: bool,
}

fn finding(node: &Node) -> Finding {
    let beside = |input: &Node, is_cheap: bool| {
        let found = finding(input);
        Finding { is_cheap: found.is_cheap && is_cheap, ..found }
    };
    match node {
        Node::Scan(scan) => Finding {
            looked_at: scan.relation.rows().map_or(f64::INFINITY, |rows| rows as f64),
            is_cheap: are_cheap(&scan.filters),
        },
        Node::Filter(filter) => beside(&filter.input, are_cheap(&filter.predicates)),
        Node::Project(project) => {
            beside(&project.input, are_cheap(project.exprs.iter().map(|(_, expr)| expr)))
        }
        _ => Finding { looked_at: 0.0, is_cheap: true },
    }
}
