//! Join filters: what a finished build side tells the scans that feed its probe side.
//!
//! If a probe row without match leaves no trace, a scan below need not give it. The build publishes a [`KeySet`]: the
//! range of its keys, and for spans up to [`MAX_BITS`] an exact bitmap. A scan skips blocks by the range, then tests
//! the rows that its own filters left. A filter that lets most rows pass switches itself off.

use super::table::{Bits, is_integer};
use crate::exec::materialized::Materialized;
use crate::exec::operator::Tasks;
use entasis_vector::{DataType, Encoding, PhysicalType, Result, Vector, bitmap};
use std::sync::{Arc, OnceLock};

/// The widest span of keys that a bitmap is made for: 2 MB.
pub(crate) const MAX_BITS: u64 = 16 << 20;

/// Where the build leaves its keys for the scans.
#[derive(Debug, Default)]
pub(crate) struct FilterSlot(OnceLock<KeySet>);

impl FilterSlot {
    /// Leaves the keys.
    pub(crate) fn publish(&self, keys: KeySet) {
        // A slot belongs to one build, which finishes once.
        let _ = self.0.set(keys);
    }
    /// The keys, if the build has finished and knows them.
    pub(crate) fn get(&self) -> Option<&KeySet> {
        self.0.get()
    }
}

/// True for key columns that filters can be made of.
pub(crate) fn is_filterable(ty: DataType) -> bool {
    is_integer(ty.physical()) && ty != DataType::UInt64
}

/// The keys of a build side.
#[derive(Debug)]
pub(crate) struct KeySet {
    /// The smallest and largest; `None` if there are no keys at all.
    pub span: Option<(i64, i64)>,
    /// A bit for each value of the span, if it is narrow enough.
    bits: Option<Arc<Bits>>,
}

impl KeySet {
    /// The keys in the only key column of `rows`, of which `bounds` are the smallest and largest.
    ///
    /// # Errors
    /// Those of the tasks.
    pub(crate) fn of(rows: &Materialized, bounds: Option<&[(i64, i64)]>, tasks: &dyn Tasks) -> Result<KeySet> {
        let span = bounds.and_then(|bounds| bounds.first().copied());
        let is_narrow = |(min, max): (i64, i64)| max.abs_diff(min) < MAX_BITS;
        let bits = match span.filter(|span| is_narrow(*span)) {
            Some(span) => Bits::between(rows, span, tasks)?.map(Arc::new),
            None => None,
        };
        Ok(KeySet { span, bits })
    }

    /// Keys between these, and a bit for each of them that is there.
    pub(crate) fn known(span: Option<(i64, i64)>, bits: Option<Arc<Bits>>) -> KeySet {
        KeySet { span, bits }
    }

    /// The bits, if there are any: those of the places of the keys' bounds.
    pub(crate) fn bits(&self) -> Option<Arc<Bits>> {
        self.bits.clone()
    }

    /// Keeps in `rows` those whose value in `vector` may be a key; NULL is none. Row r stands at position r.
    pub(crate) fn retain(&self, vector: &Vector, rows: &mut Vec<u16>) {
        let Some((min, max)) = self.span else { return rows.clear() };
        if vector.encoding() == Encoding::Dictionary {
            return; // Integers do not come so; the join itself looks again.
        }
        let width = max.abs_diff(min);
        if let Some(validity) = vector.validity() {
            rows.retain(|&row| bitmap::get(validity, if vector.is_constant() { 0 } else { row.into() }));
        }
        macro_rules! retain {
            ($($p:ident => $t:ty),*) => {
                match vector.physical() {
                    $(PhysicalType::$p => self.retain_values(vector.values::<$t>(), |v| (v as i64).wrapping_sub(min) as u64, width, vector.is_constant(), rows),)*
                    _ => {}
                }
            };
        }
        retain!(I8 => i8, I16 => i16, I32 => i32, I64 => i64, U8 => u8, U16 => u16, U32 => u32);
    }

    fn retain_values<T: Copy>(
        &self,
        values: &[T],
        place: impl Fn(T) -> u64,
        width: u64,
        constant: bool,
        rows: &mut Vec<u16>,
    ) {
        let mut kept = 0;
        for i in 0..rows.len() {
            let row = rows[i];
            let at = place(values[if constant { 0 } else { row as usize }]);
            let hit = match &self.bits {
                None => at <= width,
                Some(bits) => bits.is_taken(at),
            };
            rows[kept] = row;
            kept += usize::from(hit);
        }
        rows.truncate(kept);
    }
}
