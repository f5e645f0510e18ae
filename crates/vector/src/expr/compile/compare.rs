//! Comparisons: of two operands in one physical type, or decided when they are compiled.
//!
//! A constant is on the right and takes the other side's physical type. A constant that does not fit it
//! decides the comparison for all values, as all values of the type are on one side of it. In a conjunction,
//! a lower and an upper constant bound of one integer become one operation.

use super::{Graph, Kind, NodeId, holds_integers};
use crate::expr::CompareOp;
use crate::{DataType, Result, Value};

impl Graph<'_> {
    pub(super) fn compare(&mut self, op: CompareOp, left: NodeId, right: NodeId) -> Result<NodeId> {
        let distinct = matches!(op, CompareOp::DistinctFrom | CompareOp::NotDistinctFrom);
        let (mut op, mut left, mut right) = (op, left, right);
        if matches!(self.node(left).kind, Kind::Constant(_))
            && !matches!(self.node(right).kind, Kind::Constant(_))
        {
            (left, right) = (right, left);
            op = match op {
                CompareOp::Lt => CompareOp::Gt,
                CompareOp::LtEq => CompareOp::GtEq,
                CompareOp::Gt => CompareOp::Lt,
                CompareOp::GtEq => CompareOp::LtEq,
                same => same,
            };
        }
        if let Some(holds) = self.decided(op, left, right) {
            return Ok(self.constantly(left, holds));
        }
        let (left, right) = self.unify(left, right)?;
        let ty = DataType::Boolean;
        if distinct {
            let args = vec![left, right];
            return Ok(self.finish(Kind::Compare(op), args, ty, ty.physical(), false, ty.integer_range()));
        }
        Ok(self.strict(Kind::Compare(op), vec![left, right], ty))
    }

    /// The result of `left op right` for all values, if the right side is a constant that does not fit the
    /// left's physical type.
    fn decided(&self, op: CompareOp, left: NodeId, right: NodeId) -> Option<bool> {
        let (node, constant) = (self.node(left), self.node(right));
        let Kind::Constant(Value::Integer(bound)) = constant.kind else { return None };
        let (low, high) =
            node.range.filter(|_| holds_integers(node.physical) && node.ty != DataType::Uuid)?;
        if node.physical.holds((bound, bound)) || matches!(node.kind, Kind::Constant(_)) {
            return None;
        }
        match op {
            CompareOp::Eq if bound < low || bound > high => Some(false),
            CompareOp::NotEq if bound < low || bound > high => Some(true),
            CompareOp::Lt | CompareOp::LtEq if bound > high => Some(true),
            CompareOp::Lt | CompareOp::LtEq if bound < low => Some(false),
            CompareOp::Gt | CompareOp::GtEq if bound < low => Some(true),
            CompareOp::Gt | CompareOp::GtEq if bound > high => Some(false),
            _ => None,
        }
    }

    /// A condition that is `holds` wherever the integer `id` is neither NULL nor an error.
    fn constantly(&mut self, id: NodeId, holds: bool) -> NodeId {
        let (ty, physical) = (self.node(id).ty, self.node(id).physical);
        if !self.node(id).nullable && !self.node(id).fallible {
            return self.literal(&Value::Boolean(holds), DataType::Boolean);
        }
        let (zero, one) = (Value::Integer(0), Value::Integer(1));
        let (zero, one) = (self.constant(&zero, ty, physical), self.constant(&one, ty, physical));
        let none = self.strict(Kind::Between, vec![id, one, zero], DataType::Boolean);
        if holds { self.strict(Kind::Not, vec![none], DataType::Boolean) } else { none }
    }

    /// Pairs of a lower and an upper constant bound of one integer become one [`Kind::Between`].
    pub(super) fn merge_bounds(&mut self, mut parts: Vec<NodeId>) -> Result<Vec<NodeId>> {
        let mut i = 0;
        while i < parts.len() {
            if let Some((x, low, true)) = self.bound(parts[i])
                && let Some(j) =
                    parts.iter().position(|p| matches!(self.bound(*p), Some((y, _, false)) if y == x))
            {
                let (_, high, _) = self.bound(parts[j]).expect("just found");
                let (ty, physical) = (self.node(x).ty, self.node(x).physical);
                if physical.holds((low, low)) && physical.holds((high, high)) {
                    let low = self.constant(&Value::Integer(low), ty, physical);
                    let high = self.constant(&Value::Integer(high), ty, physical);
                    let between = self.strict(Kind::Between, vec![x, low, high], DataType::Boolean);
                    parts[i.min(j)] = between;
                    parts.remove(i.max(j));
                    continue;
                }
            }
            i += 1;
        }
        Ok(parts)
    }

    /// The bounded node, the inclusive bound, and whether it is the lower one.
    fn bound(&self, id: NodeId) -> Option<(NodeId, i128, bool)> {
        let node = self.node(id);
        let Kind::Compare(op) = node.kind else { return None };
        let Kind::Constant(Value::Integer(bound)) = self.node(node.args[1]).kind else { return None };
        if self.node(node.args[0]).ty == DataType::Uuid {
            return None;
        }
        match op {
            CompareOp::GtEq => Some((node.args[0], bound, true)),
            CompareOp::Gt => Some((node.args[0], bound.checked_add(1)?, true)),
            CompareOp::LtEq => Some((node.args[0], bound, false)),
            CompareOp::Lt => Some((node.args[0], bound.checked_sub(1)?, false)),
            _ => None,
        }
    }
}
