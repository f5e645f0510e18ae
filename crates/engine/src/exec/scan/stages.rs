//! Filters that run on the expression machine, in stages.
//!
//! A stage consists of the conjuncts that read the same columns, which are decoded for the remaining
//! candidates. Stages that cannot fail come first, cheap kinds before others until they have been measured
//! ([`crate::exec::key_filter::order`]); those that may fail follow, in the given order.

use super::searches::text_search;
use entasis_storage::TextSearch;
use entasis_vector::expr::{ColumnMeta, Expr, Program};
use entasis_vector::{DataType, PhysicalType, Result};
use std::sync::Arc;

/// Conjuncts that run together.
#[derive(Clone)]
pub(super) struct Stage {
    /// The output columns that the stage reads.
    pub(super) columns: Vec<usize>,
    pub(super) program: Arc<Program>,
    /// The stage reads one column of strings, and its answer depends on the string only.
    pub(super) is_of_strings: bool,
    /// What it looks for in that column, if the storage can search for it.
    pub(super) texts: Option<Arc<TextSearch>>,
    /// The stage may see NULL.
    pub(super) is_nullable: bool,
}

/// Divides conjuncts into stages: cheap ones first, those on the same columns together.
pub(super) fn stages(mut conjuncts: Vec<Expr>, metas: &[ColumnMeta]) -> Result<Vec<Stage>> {
    conjuncts.sort_by_key(cost);
    let mut groups: Vec<(Vec<usize>, Vec<Expr>)> = Vec::new();
    for conjunct in conjuncts {
        let mut ids = Vec::new();
        conjunct.collect_columns(&mut ids);
        let columns: Vec<usize> = (0..metas.len()).filter(|&i| ids.contains(&metas[i].id)).collect();
        let own_stage = cost(&conjunct) == Cost::Other;
        match groups.iter_mut().find(|(others, _)| *others == columns).filter(|_| !own_stage) {
            Some((_, exprs)) => exprs.push(conjunct),
            None => match groups.last_mut().filter(|(others, _)| own_stage && *others == columns) {
                Some((_, exprs)) => exprs.push(conjunct),
                None => groups.push((columns, vec![conjunct])),
            },
        }
    }
    let stage = |(columns, exprs): (Vec<usize>, Vec<Expr>)| {
        let metas: Vec<ColumnMeta> = columns.iter().map(|&i| metas[i].clone()).collect();
        let is_of_strings = matches!(&metas[..], [meta] if meta.physical == PhysicalType::Str);
        Ok(Stage {
            program: Program::compile(&exprs, &metas)?,
            columns,
            is_of_strings: is_of_strings && !exprs.iter().any(Expr::is_volatile),
            texts: match &exprs[..] {
                [condition] if is_of_strings => text_search(condition).map(Arc::new),
                _ => None,
            },
            is_nullable: metas.iter().any(|meta| meta.nullable),
        })
    };
    let mut stages: Vec<Stage> = groups.into_iter().map(stage).collect::<Result<_>>()?;
    stages.sort_by_key(|stage| stage.program.is_fallible());
    Ok(stages)
}

/// The approximate cost of a conjunct.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Cost {
    /// A number compared with constants. Cannot fail.
    Number,
    /// A string compared with constants. Cannot fail.
    Text,
    /// Anything else.
    Other,
}

fn cost(conjunct: &Expr) -> Cost {
    let plain = |expr: &Expr| matches!(expr, Expr::Column { .. } | Expr::Literal { .. });
    let (simple, ty) = match conjunct {
        Expr::Compare { left, right, .. } => (plain(left) && plain(right), left.ty()),
        Expr::InList { input, .. } | Expr::IsNull(input) => (plain(input), input.ty()),
        Expr::Not(inner) => match &**inner {
            Expr::IsNull(input) | Expr::InList { input, .. } => (plain(input), input.ty()),
            Expr::Like { input, pattern, .. } => (plain(input) && plain(pattern), DataType::Varchar),
            _ => (false, DataType::Null),
        },
        Expr::Like { input, pattern, .. } => (plain(input) && plain(pattern), DataType::Varchar),
        Expr::Column { ty, .. } => (true, *ty),
        _ => (false, DataType::Null),
    };
    match (simple, ty.is_string()) {
        (true, false) => Cost::Number,
        (true, true) => Cost::Text,
        (false, _) => Cost::Other,
    }
}
