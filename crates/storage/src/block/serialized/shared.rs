//! What blocks of a row group share: a dictionary, or a table of symbols.

use crate::block::fsst_codec::SymbolTable;
use entasis_vector::Dictionary;
use std::sync::{Arc, Weak};

/// See the module.
#[derive(Debug, Clone)]
pub enum Shared {
    /// Nothing: each block is independent.
    Nothing,
    /// A dictionary: strings that codes stand for, in their order.
    Dictionary(Arc<Dictionary>),
    /// The table of symbols that strings are compressed with.
    Symbols(Symbols),
}

/// A table of symbols.
#[derive(Debug, Clone)]
pub struct Symbols(Arc<SymbolTable>);

/// A weak reference to what some blocks shared. While it exists, nothing else has the same address.
#[derive(Debug)]
pub(crate) enum WeakShared {
    Dictionary(Weak<Dictionary>),
    Symbols(Weak<SymbolTable>),
}

impl WeakShared {
    /// The former [`Shared::address`].
    pub(crate) fn address(&self) -> usize {
        match self {
            WeakShared::Dictionary(dictionary) => dictionary.as_ptr() as usize,
            WeakShared::Symbols(symbols) => symbols.as_ptr() as usize,
        }
    }
}

impl Symbols {
    pub(crate) fn table(&self) -> &Arc<SymbolTable> {
        &self.0
    }
}

impl Shared {
    pub(crate) fn symbols(table: Arc<SymbolTable>) -> Shared {
        Shared::Symbols(Symbols(table))
    }

    /// Its address in memory, which distinguishes it from all others that now exist; `None` if it is nothing.
    pub(crate) fn address(&self) -> Option<usize> {
        self.weak().map(|weak| weak.address())
    }

    /// A weak reference to it; `None` if it is nothing.
    pub(crate) fn weak(&self) -> Option<WeakShared> {
        match self {
            Shared::Nothing => None,
            Shared::Dictionary(dictionary) => Some(WeakShared::Dictionary(Arc::downgrade(dictionary))),
            Shared::Symbols(Symbols(table)) => Some(WeakShared::Symbols(Arc::downgrade(table))),
        }
    }

    /// True if both are the same object, or nothing.
    pub fn is(&self, other: &Shared) -> bool {
        match (self, other) {
            (Shared::Nothing, Shared::Nothing) => true,
            (Shared::Dictionary(a), Shared::Dictionary(b)) => Arc::ptr_eq(a, b),
            (Shared::Symbols(a), Shared::Symbols(b)) => Arc::ptr_eq(&a.0, &b.0),
            _ => false,
        }
    }
}
