//! An estimate of how many distinct values a column holds, in 4 KB (HyperLogLog: Flajolet et al., AofA 2007).
//!
//! Each of 4096 registers keeps the longest run of leading zeroes among the hashes that fall to it. Small
//! counts are read from the number of empty registers instead (linear counting), which is nearly exact. The
//! standard error of large ones is 1.6 %. A sketch of few values is a list of register updates, so that
//! adding one row to a table does not cost 4 KB a column.

use entasis_vector::simd::widest;

const REGISTER_BITS: u32 = 12;
/// Registers of a sketch of many values.
pub(crate) const REGISTERS: usize = 1 << REGISTER_BITS;
/// Updates kept as a list before the registers are laid out.
const FEW: usize = 256;

/// A mergeable estimate of a number of distinct values.
#[derive(Debug, Clone, Default)]
pub struct Sketch {
    few: Vec<(u16, u8)>,
    registers: Option<Box<[u8]>>,
}

impl Sketch {
    /// Its updates if they are few, or else its registers.
    pub(crate) fn parts(&self) -> (&[(u16, u8)], Option<&[u8]>) {
        (&self.few, self.registers.as_deref())
    }

    /// A sketch of a few updates. `None` if they are too many, or raise a register that there is not.
    pub(crate) fn of_updates(few: Vec<(u16, u8)>) -> Option<Sketch> {
        let are_some = few.len() <= FEW && few.iter().all(|(register, _)| usize::from(*register) < REGISTERS);
        are_some.then_some(Sketch { few, registers: None })
    }

    /// A sketch of all its registers. `None` if there are not so many.
    pub(crate) fn of_registers(registers: &[u8]) -> Option<Sketch> {
        (registers.len() == REGISTERS).then(|| Sketch { few: Vec::new(), registers: Some(registers.into()) })
    }

    /// Counts the value whose hash is `hash`.
    #[inline]
    pub fn add(&mut self, hash: u64) {
        let (register, rank) = update(hash);
        self.raise(register, rank);
    }

    /// True if a value of this hash would change nothing. May be false for one that has been counted while
    /// there were few.
    #[inline]
    pub(crate) fn counts(&self, hash: u64) -> bool {
        let (register, rank) = update(hash);
        match &self.registers {
            Some(registers) => registers[register as usize % REGISTERS] >= rank,
            None => self.few.contains(&(register, rank)),
        }
    }

    /// Counts some values, of which `hash` is the hash.
    // PERF: hashes of many values are made with vectors, and the registers are there from the start: a list
    // of few updates is searched for each value.
    #[inline]
    pub fn add_all<T: Copy>(&mut self, values: &[T], hash: impl Fn(T) -> u64) {
        if values.len() < FEW {
            return values.iter().for_each(|&value| self.add(hash(value)));
        }
        let registers = self.lay_out().first_chunk_mut::<REGISTERS>().expect("there are so many");
        let mut hashes = [0; FEW];
        for values in values.chunks(FEW) {
            widest(|| hashes.iter_mut().zip(values).for_each(|(slot, &value)| *slot = hash(value)));
            for &hash in &hashes[..values.len()] {
                let (register, rank) = update(hash);
                let old = &mut registers[register as usize];
                if *old < rank {
                    *old = rank;
                }
            }
        }
    }

    #[inline]
    fn raise(&mut self, register: u16, rank: u8) {
        match &mut self.registers {
            Some(registers) => {
                let old = &mut registers[register as usize % REGISTERS];
                *old = (*old).max(rank);
            }
            None => self.raise_few(register, rank),
        }
    }

    #[cold]
    fn raise_few(&mut self, register: u16, rank: u8) {
        if self.few.len() < FEW {
            if !self.few.contains(&(register, rank)) {
                self.few.push((register, rank));
            }
            return;
        }
        self.lay_out();
        self.raise(register, rank);
    }

    fn lay_out(&mut self) -> &mut [u8] {
        let few = std::mem::take(&mut self.few);
        let registers = self.registers.get_or_insert_with(|| vec![0; REGISTERS].into_boxed_slice());
        for (register, rank) in few {
            let old = &mut registers[register as usize];
            *old = (*old).max(rank);
        }
        registers
    }

    /// Counts everything that `other` has counted.
    pub fn merge(&mut self, other: &Sketch) {
        if let Some(theirs) = &other.registers {
            for (mine, &theirs) in self.lay_out().iter_mut().zip(theirs) {
                *mine = (*mine).max(theirs);
            }
        }
        for &(register, rank) in &other.few {
            self.raise(register, rank);
        }
    }

    /// The number of distinct values, estimated.
    pub fn estimate(&self) -> u64 {
        let mut laid_out = Sketch::default();
        let registers: &[u8] = match &self.registers {
            Some(registers) => registers,
            None => {
                laid_out.few.clone_from(&self.few);
                laid_out.lay_out()
            }
        };
        let m = REGISTERS as f64;
        let empty = registers.iter().filter(|&&rank| rank == 0).count();
        let sum: f64 = registers.iter().map(|&rank| 0.5f64.powi(rank.into())).sum();
        let raw = 0.7213 / (1.0 + 1.079 / m) * m * m / sum;
        let estimate = if empty > 0 && raw <= 2.5 * m { m * (m / empty as f64).ln() } else { raw };
        estimate.round() as u64
    }
}

/// The register that a hash falls to, and what it raises that to.
#[inline(always)]
fn update(hash: u64) -> (u16, u8) {
    let rank = ((hash << REGISTER_BITS) | (1 << (REGISTER_BITS - 1))).leading_zeros() as u8 + 1;
    ((hash >> (64 - REGISTER_BITS)) as u16, rank)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::hash::hash_word;

    #[test]
    fn estimates_are_close() {
        for count in [0u64, 1, 5, 25, 1000, 10_000, 50_000, 1_000_000] {
            let (mut a, mut b) = (Sketch::default(), Sketch::default());
            for i in 0..count {
                if i % 2 == 0 {
                    a.add(hash_word(i))
                } else {
                    b.add(hash_word(i))
                }
                a.add(hash_word(i / 2));
            }
            let mut at_once = Sketch::default();
            at_once.add_all(&(0..count).collect::<Vec<u64>>(), hash_word);
            a.merge(&b);
            assert_eq!(at_once.estimate(), a.estimate());
            let error = a.estimate().abs_diff(count);
            assert!(error as f64 <= count as f64 * 0.05, "{count} estimated as {}", a.estimate());
        }
    }
}
