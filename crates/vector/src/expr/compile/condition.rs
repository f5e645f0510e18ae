//! Conditions: `AND`, `OR` and `CASE`.
//!
//! Parts that are cheap and cannot fail are computed for all rows and blended; the others are computed for
//! the rows that reach them. The first condition of a `CASE` is reached by all. Constant conditions are
//! decided here. Where rows are narrowed, a conjunction inside of a disjunction computes most of it for the
//! rows that its cheapest part leaves, unless all its parts are ranges of columns, which are tested together
//! (`kernels/ranges.rs`). Conjuncts run in the order of their cost, except that one that may
//! fail stays after all that preceded it.

use super::{Graph, Kind, NodeId, Range};
use crate::expr::kernels::ranges::{DEPTH, Step, is_supported};
use crate::expr::{CompareOp, Expr};
use crate::string::INLINE_BYTES;
use crate::types::PhysicalType;
use crate::{DataType, Error, Result, Value};

impl Graph<'_> {
    pub(super) fn junction(&mut self, or: bool, parts: &[Expr]) -> Result<NodeId> {
        let mut nodes: Vec<NodeId> = Vec::new();
        for part in parts {
            let node = self.lower(part)?;
            match self.truth(node) {
                Some(Some(value)) if value != or => {}
                Some(Some(_)) => {
                    // Nothing after this part is evaluated, and the parts before it cannot change the result.
                    nodes.push(node);
                    break;
                }
                _ if nodes.contains(&node) => {}
                _ => nodes.push(node),
            }
        }
        if !or {
            nodes = self.merge_bounds(nodes)?;
        }
        let decided = |id: &NodeId| self.truth(*id) == Some(Some(or));
        if nodes.is_empty() {
            return Ok(self.literal(&Value::Boolean(!or), DataType::Boolean));
        }
        if nodes.iter().any(decided) && nodes.iter().all(|id| !self.node(*id).fallible) {
            return Ok(self.literal(&Value::Boolean(or), DataType::Boolean));
        }
        if nodes.len() == 1 {
            return Ok(nodes[0]);
        }
        let ty = DataType::Boolean;
        let nullable = nodes.iter().any(|id| self.node(*id).nullable);
        if nodes.iter().all(|id| self.is_eager(*id)) && !self.is_narrowed(or, &nodes) {
            let mut all = nodes[0];
            for &next in &nodes[1..] {
                let args = vec![all, next];
                all =
                    self.finish(Kind::Junction { or }, args, ty, ty.physical(), nullable, ty.integer_range());
            }
            return Ok(all);
        }
        let nodes = self.cheapest_first(nodes);
        Ok(self.finish(Kind::LazyJunction { or }, nodes, ty, ty.physical(), nullable, ty.integer_range()))
    }

    /// Cheap parts first, as long as that raises no error that the written order avoids: a part that may fail
    /// stays after all parts that preceded it.
    pub(super) fn cheapest_first(&self, parts: Vec<NodeId>) -> Vec<NodeId> {
        let mut left = parts;
        let mut ordered = Vec::with_capacity(left.len());
        while !left.is_empty() {
            let candidates =
                left.iter().enumerate().filter(|(i, part)| *i == 0 || !self.node(**part).fallible);
            let (at, _) =
                candidates.min_by_key(|(_, part)| self.node(**part).cost).expect("the first is one");
            ordered.push(left.remove(at));
        }
        ordered
    }

    /// A disjunction as a condition on the ranges of some columns, if it is one.
    pub fn ranges(&self, id: NodeId) -> Option<(Vec<Step>, Vec<NodeId>)> {
        if !matches!(self.node(id).kind, Kind::Junction { or: true } | Kind::LazyJunction { or: true }) {
            return None;
        }
        let (mut steps, mut columns) = (Vec::new(), Vec::new());
        self.add_ranges(id, 0, &mut steps, &mut columns)?;
        Some((steps, columns))
    }

    /// Adds the steps of a condition, with `below` results of others on the stack.
    fn add_ranges(
        &self,
        id: NodeId,
        below: usize,
        steps: &mut Vec<Step>,
        columns: &mut Vec<NodeId>,
    ) -> Option<()> {
        let node = self.node(id);
        if below == DEPTH {
            return None;
        }
        if let Kind::Junction { or } | Kind::LazyJunction { or } = node.kind {
            for (i, &part) in node.args.iter().enumerate() {
                self.add_ranges(part, below + usize::from(i > 0), steps, columns)?;
                if i > 0 {
                    steps.push(Step::Junction { or });
                }
            }
            return Some(());
        }
        let (x, low, high) = self.range(id)?;
        let operand = columns.iter().position(|&column| column == x).unwrap_or(columns.len());
        if operand == columns.len() {
            columns.push(x);
        }
        steps.push(Step::Within { operand, low, high });
        Some(())
    }

    /// The column whose range a comparison with constants is, and inclusive bounds.
    fn range(&self, id: NodeId) -> Option<(NodeId, i64, i64)> {
        let node = self.node(id);
        let bound = |at: usize| match self.node(*node.args.get(at)?).kind {
            Kind::Constant(Value::Integer(bound)) => i64::try_from(bound).ok(),
            _ => None,
        };
        let x = *node.args.first()?;
        let physical = self.node(x).physical;
        if !matches!(self.node(x).kind, Kind::Column(_)) || !is_supported(physical) {
            return None;
        }
        let (low, high) = match node.kind {
            Kind::Between => (bound(1)?, bound(2)?),
            Kind::Compare(CompareOp::Eq) => (bound(1)?, bound(1)?),
            Kind::Compare(CompareOp::LtEq) => (i64::MIN, bound(1)?),
            Kind::Compare(CompareOp::Lt) => (i64::MIN, bound(1)?.checked_sub(1)?),
            Kind::Compare(CompareOp::GtEq) => (bound(1)?, i64::MAX),
            Kind::Compare(CompareOp::Gt) => (bound(1)?.checked_add(1)?, i64::MAX),
            _ => return None,
        };
        Some((x, low, high))
    }

    pub(super) fn case(
        &mut self,
        branches: &[(Expr, Expr)],
        otherwise: Option<&Expr>,
        ty: DataType,
    ) -> Result<NodeId> {
        let (conditions, mut results) = self.branches(branches, otherwise, ty)?;
        let range = self.range_of_all(&results);
        let physical = self.physical_of_all(&results, range, ty);
        for result in &mut results {
            if self.is_null(*result) {
                *result = self.constant(&Value::Null, ty, physical);
            } else {
                let resized = self.resize(*result, physical);
                *result = self.retype(resized, ty);
            }
            if self.node(*result).physical != physical {
                return Err(Error::internal(format!("a result of CASE is not {ty}")));
            }
        }
        let range = range.or(ty.integer_range());
        let nullable = results.iter().any(|r| self.node(*r).nullable);
        let rest = results.pop().expect("the rest");
        if conditions.is_empty() {
            return Ok(rest);
        }
        // All rows reach the first condition.
        let parts = || conditions[1..].iter().chain(&results).chain(std::iter::once(&rest));
        // A vector shares the strings of one other.
        let mut with_bytes = results.iter().chain(std::iter::once(&rest)).filter(|r| !self.is_in_view(**r));
        let owner = with_bytes.next();
        let blends = physical != PhysicalType::Str || with_bytes.all(|other| Some(other) == owner);
        if blends && parts().all(|part| self.is_eager(*part)) {
            let mut value = rest;
            for (&condition, &result) in conditions.iter().zip(&results).rev() {
                let (kind, args) = if self.shares(physical) && self.is_null(result) {
                    (Kind::Mask { kept: false }, vec![condition, value])
                } else if self.shares(physical) && self.is_null(value) {
                    (Kind::Mask { kept: true }, vec![condition, result])
                } else {
                    (Kind::Blend, vec![condition, result, value])
                };
                value = self.finish(kind, args, ty, physical, nullable, range);
            }
            return Ok(value);
        }
        let mut args: Vec<NodeId> = conditions.into_iter().zip(results).flat_map(|(c, r)| [c, r]).collect();
        args.push(rest);
        Ok(self.finish(Kind::Case, args, ty, physical, nullable, range))
    }

    /// The conditions of a CASE that are not constant, their results, and that of the rest.
    fn branches(
        &mut self,
        branches: &[(Expr, Expr)],
        otherwise: Option<&Expr>,
        ty: DataType,
    ) -> Result<(Vec<NodeId>, Vec<NodeId>)> {
        let mut conditions = Vec::new();
        let mut results = Vec::new();
        let mut rest = None;
        for (condition, result) in branches {
            let condition = self.lower(condition)?;
            match self.truth(condition) {
                Some(Some(true)) => {
                    rest = Some(self.lower(result)?);
                    break;
                }
                Some(_) => {}
                None => {
                    conditions.push(condition);
                    results.push(self.lower(result)?);
                }
            }
        }
        results.push(match (rest, otherwise) {
            (Some(rest), _) => rest,
            (None, Some(otherwise)) => self.lower(otherwise)?,
            (None, None) => self.literal(&Value::Null, ty),
        });
        Ok((conditions, results))
    }

    /// The bounds of all of these that are not NULL, if each has some.
    fn range_of_all(&self, results: &[NodeId]) -> Option<Range> {
        let ranges = results.iter().filter(|r| !self.is_null(**r)).map(|r| self.node(*r).range);
        ranges.reduce(|a, b| a.zip(b).map(|(a, b)| (a.0.min(b.0), a.1.max(b.1)))).flatten()
    }

    /// One physical type for all results of a CASE: a decimal in 64 bits if each result is within.
    fn physical_of_all(&self, results: &[NodeId], range: Option<Range>, ty: DataType) -> PhysicalType {
        let computed = |id: &NodeId| !matches!(self.node(*id).kind, Kind::Constant(_));
        let wide = |id: &NodeId| computed(id) && self.node(*id).physical != PhysicalType::I32;
        let narrowest = range.map_or(ty.physical(), |range| self.narrowest(ty, range));
        match (ty, range) {
            // In the physical types of the results: none is narrowed, and constants alone are not worth it.
            _ if narrowest == PhysicalType::I32
                && results.iter().any(computed)
                && !results.iter().any(wide) =>
            {
                narrowest
            }
            (DataType::Decimal { .. }, Some(range)) if PhysicalType::I64.holds(range) => PhysicalType::I64,
            (DataType::Decimal { .. }, Some(_)) => PhysicalType::I128,
            _ => ty.physical(),
        }
    }

    /// Whether a string is NULL or a constant that its view holds.
    fn is_in_view(&self, id: NodeId) -> bool {
        match &self.node(id).kind {
            Kind::Constant(Value::Null) => true,
            Kind::Constant(Value::Text(text)) => text.len() <= INLINE_BYTES,
            Kind::Constant(Value::Bytes(bytes)) => bytes.len() <= INLINE_BYTES,
            _ => false,
        }
    }

    /// Whether values of the type may be shared by a result. Results for the entries of a dictionary would
    /// have to be given up after each chunk; those that are strings become another dictionary.
    fn shares(&self, physical: PhysicalType) -> bool {
        self.optimize || physical == PhysicalType::Str
    }
}
