//! Arithmetic on integers and decimals: bounds of results, and the physical type that follows from them.
//!
//! The bounds of a result are those of its operands in interval arithmetic ([`Graph::bounds`]). Where they
//! prove that it fits, nothing is checked and it is computed in as few bits as it and its operands allow
//! ([`Graph::exact`]); elsewhere in the width that its SQL type needs, with a check. Decimals are first
//! scaled to one scale.

use super::{DECIMAL_TYPES, Graph, Kind, NodeId, Range, both, holds_integers};
use crate::expr::ArithmeticOp;
use crate::expr::kernels::arithmetic::{Check, Single};
use crate::types::{PhysicalType, pow10};
use crate::{DataType, Error, Result, Value};

impl Graph<'_> {
    pub(super) fn arithmetic(
        &mut self,
        op: ArithmeticOp,
        left: NodeId,
        right: NodeId,
        ty: DataType,
    ) -> Result<NodeId> {
        if self.is_null(left) || self.is_null(right) {
            return Ok(self.literal(&Value::Null, ty));
        }
        let (lt, rt) = (self.node(left).ty, self.node(right).ty);
        if lt.is_decimal() && rt.is_decimal() && ty.is_decimal() {
            return self.decimals(op, left, right, ty);
        }
        if lt.is_integer() && rt.is_integer() && ty.is_integer() {
            let physical = ty.physical();
            if lt.physical() != physical || rt.physical() != physical {
                let message =
                    format!("{lt} {op} {rt} as {ty}: the operands of integer arithmetic are of one type");
                return Err(Error::internal(message));
            }
            return Ok(self.exact(op, left, right, ty, physical, Check::Fits));
        }
        if lt.is_float() && rt.is_float() && ty.is_float() {
            let (left, right) = self.unify(left, right)?;
            return Ok(self.strict(Kind::Arithmetic(op, Check::Fits), vec![left, right], ty));
        }
        let args = vec![self.natural(left), self.natural(right)];
        Ok(self.strict(Kind::Calendar(op), args, ty))
    }

    /// The range of the result, cut to that of `ty`, and whether that and the absence of zero divisors are
    /// proved.
    fn bounds(&self, op: ArithmeticOp, left: NodeId, right: NodeId, ty: DataType) -> (Range, bool) {
        let (low, high) = ty.integer_range().expect("an integer type");
        let (Some(a), Some(b)) = (self.node(left).range, self.node(right).range) else {
            return ((low, high), false);
        };
        let derived = match op {
            ArithmeticOp::Add => both(a.0.checked_add(b.0), a.1.checked_add(b.1)),
            ArithmeticOp::Subtract => both(a.0.checked_sub(b.1), a.1.checked_sub(b.0)),
            ArithmeticOp::Multiply => {
                let corners = [(a.0, b.0), (a.0, b.1), (a.1, b.0), (a.1, b.1)].map(|(x, y)| x.checked_mul(y));
                if corners.contains(&None) {
                    None
                } else {
                    let corners = corners.map(|corner| corner.expect("just tested"));
                    both(corners.iter().min().copied(), corners.iter().max().copied())
                }
            }
            ArithmeticOp::Divide | ArithmeticOp::Modulo => {
                let largest = a.0.checked_abs().zip(a.1.checked_abs()).map(|(x, y)| x.max(y));
                let zero = b.0 <= 0 && b.1 >= 0;
                match largest {
                    Some(largest) if !zero => Some((
                        if a.0 < 0 || b.0 < 0 { -largest } else { 0 },
                        if a.1 < 0 && b.0 > 0 { 0 } else { largest },
                    )),
                    _ => None,
                }
            }
            // Bits stay within the type.
            _ => return ((low, high), true),
        };
        match derived {
            Some((from, to)) if from >= low && to <= high => ((from, to), true),
            Some((from, to)) => ((from.clamp(low, high), to.clamp(low, high)), false),
            None => ((low, high), false),
        }
    }

    fn decimals(&mut self, op: ArithmeticOp, left: NodeId, right: NodeId, ty: DataType) -> Result<NodeId> {
        let (DataType::Decimal { scale: ls, .. }, DataType::Decimal { scale: rs, .. }) =
            (self.node(left).ty, self.node(right).ty)
        else {
            return Err(Error::internal("decimal arithmetic on other types"));
        };
        let (left, right) = match op {
            ArithmeticOp::Multiply => (left, right),
            ArithmeticOp::Add | ArithmeticOp::Subtract | ArithmeticOp::Modulo => {
                let scale = ls.max(rs);
                (self.upscale(left, ls, scale), self.upscale(right, rs, scale))
            }
            _ => return Err(Error::not_supported(format!("{op} of decimals"))),
        };
        Ok(self.decimal_operation(op, left, right, ty))
    }

    /// The unscaled numbers of a decimal at a larger scale.
    fn upscale(&mut self, id: NodeId, from: u8, to: u8) -> NodeId {
        if from == to {
            return id;
        }
        let wide = DataType::Decimal { precision: 38, scale: to };
        if let Kind::Constant(Value::Integer(v)) = self.node(id).kind
            && let Some(scaled) =
                v.checked_mul(pow10(to - from)).filter(|v| v.unsigned_abs() < pow10(38) as u128)
        {
            return self.literal(&Value::Integer(scaled), wide);
        }
        let unit =
            self.literal(&Value::Integer(pow10(to - from)), DataType::Decimal { precision: 38, scale: 0 });
        self.decimal_operation(ArithmeticOp::Multiply, id, unit, wide)
    }

    /// `left op right` on the unscaled numbers: if ranges do not rule failure out, in 128 bits and checked.
    fn decimal_operation(&mut self, op: ArithmeticOp, left: NodeId, right: NodeId, ty: DataType) -> NodeId {
        let (_, high) = ty.integer_range().expect("a decimal has a range");
        let node = self.exact(op, left, right, ty, PhysicalType::I128, Check::Below(high + 1));
        let range = self.node(node).range.filter(|_| self.node(node).physical == PhysicalType::I128);
        match range {
            Some(range) if PhysicalType::I64.holds(range) => self.resize(node, PhysicalType::I64),
            _ => node,
        }
    }

    /// `left op right` on integers: if ranges rule failure out, unchecked and in as few bits as they and the
    /// operands allow; else in `widest`, with `check`.
    pub(super) fn exact(
        &mut self,
        op: ArithmeticOp,
        left: NodeId,
        right: NodeId,
        ty: DataType,
        widest: PhysicalType,
        check: Check,
    ) -> NodeId {
        let (range, safe) = self.bounds(op, left, right, ty);
        if !safe {
            let args = vec![self.resize(left, widest), self.resize(right, widest)];
            return self.strict_as(Kind::Arithmetic(op, check), args, ty, widest, Some(range));
        }
        let wider = |a: PhysicalType, b: PhysicalType| if a.width() >= b.width() { a } else { b };
        let result = self.narrowest(ty, range);
        let (a, b) = (self.operand_type(left, widest), self.operand_type(right, widest));
        let physical = wider(result, wider(a, b));
        let linear = matches!(op, ArithmeticOp::Add | ArithmeticOp::Subtract | ArithmeticOp::Multiply);
        let widens =
            linear && physical == PhysicalType::I64 && (a, b) == (PhysicalType::I32, PhysicalType::I32);
        let held = if widens { PhysicalType::I32 } else { physical };
        let args = vec![self.resize(left, held), self.resize(right, held)];
        self.strict_as(Kind::Arithmetic(op, Check::Nothing), args, ty, physical, Some(range))
    }

    /// The physical type in which an operand of integer arithmetic is best taken: as it is held; but
    /// constants are held in any type, and 128 bits are left where 64 are enough.
    fn operand_type(&self, id: NodeId, widest: PhysicalType) -> PhysicalType {
        let node = self.node(id);
        let range = node.range.unwrap_or((i128::MIN, i128::MAX));
        match (&node.kind, node.physical) {
            (Kind::Constant(_), _)
                if widest.width() > 4 && self.optimize && PhysicalType::I32.holds(range) =>
            {
                PhysicalType::I32
            }
            (_, PhysicalType::I128) if PhysicalType::I64.holds(range) => PhysicalType::I64,
            (Kind::Constant(_), PhysicalType::I64 | PhysicalType::I128) => node.physical,
            (Kind::Constant(_), _) => widest,
            // An integer of another width or sign on its way to a decimal.
            (_, held) if widest == PhysicalType::I128 && !DECIMAL_TYPES.contains(&held) => {
                let holds = |physical: &PhysicalType| physical.holds(range);
                DECIMAL_TYPES.into_iter().find(holds).unwrap_or(widest)
            }
            (_, held) => held,
        }
    }

    pub(super) fn single(&mut self, function: Single, input: NodeId) -> NodeId {
        let node = self.node(input);
        let (ty, physical, range) = (node.ty, node.physical, node.range);
        if ty == DataType::Interval {
            return self.strict(Kind::NegateInterval, vec![input], ty);
        }
        let derived = match (function, range) {
            (Single::Negate, Some((low, high))) => both(high.checked_neg(), low.checked_neg()),
            (Single::Abs, Some((low, high))) => {
                low.checked_abs().zip(high.checked_abs()).map(|(a, b)| (0, a.max(b)))
            }
            _ => None,
        };
        let within = ty.integer_range().zip(derived).map(|((a, b), (low, high))| (low.max(a), high.min(b)));
        // The negation of the least value may need more bits than that value; if the type has none, its own
        // kernel fails.
        let needed = match (derived, within) {
            (Some(derived), Some(within)) if derived == within => self.narrowest(ty, derived),
            _ => ty.physical(),
        };
        let physical = if needed.width() > physical.width() { needed } else { physical };
        // The range is empty where every value fails.
        let within = within.filter(|(low, high)| low <= high);
        let input = if holds_integers(physical) { self.resize(input, physical) } else { input };
        self.strict_as(Kind::Single(function), vec![input], ty, physical, within.or(ty.integer_range()))
    }
}
