//! Integer keys, which may have a place.

use entasis_vector::PhysicalType;

/// Runs an expression with `$t` as the type of an integer physical type.
macro_rules! for_each_integer {
    ($physical:expr, |$t:ident| $body:expr) => {{
        use entasis_vector::PhysicalType::*;
        for_each_integer!(@ $physical, $t, $body;
            I8 i8, I16 i16, I32 i32, I64 i64, U8 u8, U16 u16, U32 u32, U64 u64)
    }};
    (@ $physical:expr, $t:ident, $body:expr; $($p:ident $native:ty),*) => {
        match $physical {
            $(#[allow(clippy::unnecessary_cast)] // One of the types is the one that all become.
            $p => {
                type $t = $native;
                $body
            })*
            other => unreachable!("a key of {other:?} is no integer"),
        }
    };
}
pub(crate) use for_each_integer;

/// True for the physical types whose values fit into 64 bits as integers.
pub(crate) fn is_integer(physical: PhysicalType) -> bool {
    use PhysicalType::*;
    matches!(physical, I8 | I16 | I32 | I64 | U8 | U16 | U32 | U64)
}
