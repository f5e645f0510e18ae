//! What was counted of a row group, and what was decided by it, as bytes and back.

use super::fences::{fences, push_fences};
use super::source::{Source, push_list, push_maybe, push_text};
use crate::backend::bytes::push_varint;
use crate::tree::{Counted, Decision, Shape};
use entasis_layout::frequency::Kind;
use entasis_vector::Result;

pub(super) fn push_counted_group(out: &mut Vec<u8>, own: &Counted) {
    push_list(out, &own.numbers, |out, numbers| {
        numbers.iter().for_each(|&number| push_varint(out, number.into()));
    });
    push_fences(out, &own.fences);
    push_varint(out, own.counted.into());
    push_varint(out, own.credit.into());
    push_maybe(out, own.decision.as_ref(), |out, (decision, at)| {
        let Decision { why, moved, charged, slots, budget, cost, saving } = decision;
        push_text(out, why);
        for number in [*moved, *charged, slots.0, slots.1, *budget] {
            push_varint(out, number as u64);
        }
        [cost, saving].into_iter().for_each(|figure| out.extend(figure.to_le_bytes()));
        out.extend(at.to_le_bytes());
    });
}

pub(super) fn counted_group(source: &mut Source<'_>, shape: &Shape) -> Result<Counted> {
    let numbers = source.list(|source| {
        let mut numbers = [0; Kind::COUNT];
        for number in &mut numbers {
            *number = small(source)?;
        }
        Ok(numbers)
    })?;
    source.check(!numbers.is_empty() && shape.key.is_some(), "counters without ranges of keys")?;
    let fences = fences(source, shape, numbers.len())?;
    let (counted, credit) = (small(source)?, small(source)?);
    let decision = source.maybe(|source| {
        let why = source.text()?.to_owned();
        let mut sizes = [0; 5];
        for size in &mut sizes {
            *size = source.size()?;
        }
        let [moved, charged, before, after, budget] = sizes;
        let (cost, saving) = (source.f64()?, source.f64()?);
        let decision = Decision { why, moved, charged, slots: (before, after), budget, cost, saving };
        Ok((decision, source.u64()?))
    })?;
    Ok(Counted { fences, numbers, counted, credit, decision })
}

/// A number of 32 bits.
fn small(source: &mut Source<'_>) -> Result<u32> {
    let number = source.varint()?;
    u32::try_from(number).map_err(|_| source.flaw("a count that is too large"))
}
