//! Physical types: which bytes stand for a value in a vector.

/// How a vector holds the values of a column: the width and the register class that kernels are written for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum PhysicalType {
    /// One byte, 0 or 1.
    Bool,
    /// Signed, 8 bits.
    I8,
    /// Signed, 16 bits.
    I16,
    /// Signed, 32 bits. `DATE` too.
    I32,
    /// Signed, 64 bits. `TIME`, `TIMETZ`, the timestamps and decimals of up to 18 digits too.
    I64,
    /// Signed, 128 bits: wide decimals. `UUID` too, with its top bit flipped so that signed order is byte
    /// order.
    I128,
    /// Unsigned, 8 bits.
    U8,
    /// Unsigned, 16 bits.
    U16,
    /// Unsigned, 32 bits.
    U32,
    /// Unsigned, 64 bits.
    U64,
    /// IEEE 754 single.
    F32,
    /// IEEE 754 double.
    F64,
    /// [`crate::StringView`], 16 bytes. `VARCHAR`, `JSON`, `BLOB` and nested types.
    Str,
    /// [`super::Interval`], 16 bytes.
    Interval,
}

impl PhysicalType {
    /// Bytes of one value in a flat vector.
    pub const fn width(self) -> usize {
        match self {
            PhysicalType::Bool | PhysicalType::I8 | PhysicalType::U8 => 1,
            PhysicalType::I16 | PhysicalType::U16 => 2,
            PhysicalType::I32 | PhysicalType::U32 | PhysicalType::F32 => 4,
            PhysicalType::I64 | PhysicalType::U64 | PhysicalType::F64 => 8,
            PhysicalType::I128 | PhysicalType::Str | PhysicalType::Interval => 16,
        }
    }

    /// True for integers of up to 64 bits, booleans among them.
    pub const fn is_integer(self) -> bool {
        use PhysicalType as P;
        matches!(self, P::Bool | P::I8 | P::U8 | P::I16 | P::U16 | P::I32 | P::U32 | P::I64 | P::U64)
    }

    /// True if every integer from `range.0` to `range.1` fits; false for types that do not hold integers.
    pub fn holds(self, range: (i128, i128)) -> bool {
        let (low, high) = match self {
            PhysicalType::Bool => (0, 1),
            PhysicalType::I8 => (i8::MIN.into(), i8::MAX.into()),
            PhysicalType::I16 => (i16::MIN.into(), i16::MAX.into()),
            PhysicalType::I32 => (i32::MIN.into(), i32::MAX.into()),
            PhysicalType::I64 => (i64::MIN.into(), i64::MAX.into()),
            PhysicalType::I128 => (i128::MIN, i128::MAX),
            PhysicalType::U8 => (0, u8::MAX.into()),
            PhysicalType::U16 => (0, u16::MAX.into()),
            PhysicalType::U32 => (0, u32::MAX.into()),
            PhysicalType::U64 => (0, u64::MAX.into()),
            _ => return false,
        };
        range.0 >= low && range.1 <= high
    }
}
