//! Casts: between integers and decimals a change of width or a multiplication, where bounds prove that
//! nothing is lost; from dates to timestamps likewise. All others are the kernel's.

use super::{Graph, Kind, NodeId, both};
use crate::DataType;
use crate::Value;
use crate::expr::ArithmeticOp;
use crate::expr::kernels::arithmetic::Check;
use crate::types::{MICROS_PER_DAY, PhysicalType, pow10};

impl Graph<'_> {
    pub(super) fn cast(&mut self, input: NodeId, to: DataType, lenient: bool) -> NodeId {
        let node = self.node(input);
        let (from, physical, range) = (node.ty, node.physical, node.range);
        if from == to {
            return input;
        }
        if self.is_null(input) {
            return self.literal(&Value::Null, to);
        }
        if let (DataType::Timestamp | DataType::TimestampTz, DataType::Timestamp | DataType::TimestampTz) =
            (from, to)
        {
            return self.retype(input, to);
        }
        // An array is the list of its elements.
        if (from, to) == (DataType::Json, DataType::Varchar) || from.of_any_length() == to {
            return self.retype(input, to);
        }
        let scale = |ty: DataType| match ty {
            DataType::Decimal { scale, .. } => scale,
            _ => 0,
        };
        let whole = |ty: DataType| ty.is_integer() || ty.is_decimal();
        if let (true, true, Some(range), Some(target)) = (whole(from), whole(to), range, to.integer_range())
            && scale(to) >= scale(from)
        {
            // A change of width, or a multiplication, if the range proves that nothing is lost.
            let unit = pow10(scale(to) - scale(from));
            let scaled = both(range.0.checked_mul(unit), range.1.checked_mul(unit));
            if let Some(scaled) = scaled.filter(|s| s.0 >= target.0 && s.1 <= target.1) {
                if unit > 1 {
                    let unit = self.constant(&Value::Integer(unit), to, PhysicalType::I128);
                    return self.exact(
                        ArithmeticOp::Multiply,
                        input,
                        unit,
                        to,
                        PhysicalType::I128,
                        Check::Nothing,
                    );
                }
                let held = match self.narrowest(to, scaled) {
                    // As it is held, if that is a type for the narrower values of `to`.
                    PhysicalType::I32 if physical == PhysicalType::I32 => PhysicalType::I32,
                    PhysicalType::I32 | PhysicalType::I64 if to.is_decimal() => PhysicalType::I64,
                    _ => to.physical(),
                };
                let resized = self.resize(input, held);
                return self.retype(resized, to);
            }
        }
        if let (DataType::Date, DataType::Timestamp | DataType::TimestampTz, Some(range)) = (from, to, range)
        {
            let day = i128::from(MICROS_PER_DAY);
            let scaled = (range.0 * day, range.1 * day);
            if PhysicalType::I64.holds(scaled) {
                let unit = self.constant(&Value::Integer(day), to, PhysicalType::I64);
                let resized = self.resize(input, PhysicalType::I64);
                let kind = Kind::Arithmetic(ArithmeticOp::Multiply, Check::Nothing);
                return self.strict_as(kind, vec![resized, unit], to, PhysicalType::I64, Some(scaled));
            }
        }
        let input = if whole(from) { input } else { self.natural(input) };
        self.strict(Kind::Cast { lenient }, vec![input], to)
    }
}
