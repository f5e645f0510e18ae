//! What is asked of an encoding, and what it answers about its codes.

use super::Codes;
use entasis_vector::{Buffer, PhysicalType};

/// The slots of a block: how they are held, and how many they are.
#[derive(Debug, Clone, Copy)]
pub(crate) struct HeldSlots {
    pub(crate) physical: PhysicalType,
    pub(crate) slots: usize,
}

/// Some slots of a stretch of a block that are to be read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Selected {
    /// How many they are.
    pub(crate) slots: usize,
    /// How many slots the stretch has.
    pub(crate) of: usize,
    /// The whole stretch could be decoded to where the values belong.
    pub(crate) in_place: bool,
}

/// What the codes of a block mean, for those who compare codes without asking the block.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Meaning<'a> {
    /// A code stands for `base + factor * code`.
    Linear { base: i128, factor: u64, codes: &'a Codes },
    /// There are numbers, and no codes.
    Numbers(&'a Buffer),
    /// The bounds of the block are worth knowing beforehand, and nothing else.
    Bounds,
    /// Nothing that helps.
    Other,
}
