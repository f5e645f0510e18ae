//! Which build sides may be read twice, and by what their keys are counted.

use super::{By, MOST_ROWS};
use crate::exec::join::build::Making;
use crate::exec::join::table::{Asked, BucketCount, Packing, PlaceCount, TableKind};
use crate::exec::join::table::{bytes_at_most, countable_places, is_integer};
use crate::exec::join::{Computed, Rest};
use crate::plan::Node;
use entasis_vector::expr::{ColumnMeta, Expr};
use entasis_vector::{DataType, PhysicalType};

/// Rows that may be looked at for each that is kept.
const LOOKED_AT: f64 = 4.0;
/// Rows are large from this part of the free memory on.
const LARGE_PART: usize = 4;

/// A build side, as the plan knows it.
pub(crate) struct Input<'a> {
    /// Where its rows come from.
    pub node: &'a Node,
    /// Its keys over these rows.
    pub keys: &'a [Expr],
    /// Rows that are expected.
    pub rows: f64,
    /// Join filters go into it.
    pub is_filtered: bool,
    /// Its columns as they come, keys first.
    pub columns: &'a Computed,
    /// The same as they are kept.
    pub kept: &'a [ColumnMeta],
}

impl By {
    /// What the keys are counted by; `None` if the join wants a table that is not made so, or rows whose keys nothing equals.
    pub(super) fn of(input: &Input<'_>, making: &Making) -> Option<By> {
        let keys = making.null_equals_null.len();
        let metas = &input.columns.metas()[..keys];
        let drops_nulls = making.shape.rest == Rest::Nothing && !making.null_aware;
        let is_matchable = |(meta, equal): (&ColumnMeta, &bool)| drops_nulls || *equal || !meta.nullable;
        if keys == 0 || !metas.iter().zip(&making.null_equals_null).all(is_matchable) {
            return None;
        }
        let places = countable_places(making.table, making.asked, input.rows);
        // Keys of both sides are compared as they are kept.
        let are_integers = input.kept[..keys].iter().all(|meta| is_integer(meta.physical));
        let packing = known_bounds(metas).filter(|_| are_integers).and_then(|bounds| Packing::of(&bounds));
        if let (Some(packing), false) = (packing, making.null_equals_null.contains(&true))
            && places.is_some_and(|places| packing.places() <= places)
        {
            return Some(By::Places(packing));
        }
        let is_wanted = match making.table {
            TableKind::Cht => true,
            TableKind::Auto => making.asked == Asked::Rows && is_large(input, making),
            _ => false,
        };
        is_wanted.then_some(By::Buckets((input.rows as usize).min(MOST_ROWS)))
    }

    /// The bytes in which a worker counts.
    pub(super) fn bytes(&self) -> usize {
        match self {
            By::Places(packing) => PlaceCount::bytes_for(packing),
            By::Buckets(rows) => BucketCount::bytes_for(*rows),
        }
    }
}

/// True if the rows, with chains over them, would take much of the memory that is free: a CHT is taken then, which is slower to make.
fn is_large(input: &Input<'_>, making: &Making) -> bool {
    let width: usize = input.kept.iter().map(|meta| meta.physical.width()).sum();
    let bytes = input.rows * (width + bytes_at_most(TableKind::Auto, 1)) as f64;
    bytes > (making.context.memory.free() / LARGE_PART) as f64
}

/// Bounds of keys that are integers of 64 bits with a sign, if the plan knows them.
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

/// True if the rows of `node`, and their `keys`, are the same each time, and no sink is part of it.
pub(super) fn is_repeatable(node: &Node, keys: &[Expr]) -> bool {
    !keys.iter().any(Expr::is_volatile)
        && match node {
            Node::Scan(scan) => scan.relation.table().is_some() && !scan.filters.iter().any(Expr::is_volatile),
            Node::Values(_) => true,
            Node::Filter(filter) => is_repeatable(&filter.input, &filter.predicates),
            Node::Project(project) => {
                !project.exprs.iter().any(|(_, expr)| expr.is_volatile()) && is_repeatable(&project.input, &[])
            }
            _ => false,
        }
}

/// True if none of them calls a function or reads texts, but to hand them on.
fn are_cheap<'e>(exprs: impl IntoIterator<Item = &'e Expr>) -> bool {
    exprs.into_iter().filter(|expr| !matches!(expr, Expr::Column { .. })).all(|expr| {
        let mut is_cheap = true;
        expr.visit(&mut |e| is_cheap &= !matches!(e, Expr::External { .. }) && e.ty().physical() != PhysicalType::Str);
        is_cheap
    })
}

/// True if it takes little to find the rows of `node`, of which there are about `rows`, and their `keys` once more.
pub(super) fn is_cheap(node: &Node, keys: &[Expr], rows: f64) -> bool {
    are_cheap(keys) && finds_cheaply(node, rows)
}

fn finds_cheaply(node: &Node, rows: f64) -> bool {
    match node {
        Node::Scan(scan) => {
            let looked_at = scan.relation.statistics().rows.map_or(f64::INFINITY, |rows| rows as f64);
            looked_at <= LOOKED_AT * rows && are_cheap(&scan.filters)
        }
        Node::Filter(filter) => are_cheap(&filter.predicates) && finds_cheaply(&filter.input, rows),
        Node::Project(project) => {
            are_cheap(project.exprs.iter().map(|(_, expr)| expr)) && finds_cheaply(&project.input, rows)
        }
        _ => true,
    }
}
