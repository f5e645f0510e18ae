//! The columns of a plan: what each id stands for.
//!
//! A plan that is cut out of another, as that of a shared relation is, has the same columns up to that
//! moment, and both go on with columns of their own. So they are kept in pieces that copies share: a copy
//! takes time in proportion to the pieces, and a query with thousands of grouping sets, each a shared
//! relation, does not copy all names for each.

use entasis_vector::expr::Expr;
use entasis_vector::{ColumnId, DataType};
use std::sync::Arc;

/// Columns of a piece.
const PIECE: usize = 256;

/// Name, type and nullability of a plan's columns, by id.
#[derive(Debug, Clone, Default)]
pub struct Columns {
    /// Pieces of so many columns each.
    whole: Arc<Vec<Arc<[ColumnInfo]>>>,
    /// The columns after those.
    last: Vec<ColumnInfo>,
}

/// What a plan knows of a column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ColumnInfo {
    /// For display only.
    pub name: String,
    /// Its type.
    pub ty: DataType,
    /// Whether NULL may occur where the column is made (an outer join may add more above).
    pub nullable: bool,
}

impl Columns {
    /// Makes a new column.
    pub fn add(&mut self, name: impl Into<String>, ty: DataType, nullable: bool) -> ColumnId {
        let id = ColumnId(u32::try_from(self.len()).expect("fewer than 2^32 columns"));
        self.last.push(ColumnInfo { name: name.into(), ty, nullable });
        if self.last.len() == PIECE {
            Arc::make_mut(&mut self.whole).push(std::mem::take(&mut self.last).into());
        }
        id
    }
    /// What is known of `id`.
    pub fn get(&self, id: ColumnId) -> &ColumnInfo {
        let (piece, place) = (id.0 as usize / PIECE, id.0 as usize % PIECE);
        &self.whole.get(piece).map_or(&self.last[..], |piece| piece)[place]
    }
    /// Type of `id`.
    pub fn ty(&self, id: ColumnId) -> DataType {
        self.get(id).ty
    }
    /// The expression that reads `id`.
    pub fn expr(&self, id: ColumnId) -> Expr {
        Expr::column(id, self.ty(id))
    }
    /// Number of columns.
    pub fn len(&self) -> usize {
        self.whole.len() * PIECE + self.last.len()
    }
    /// True without columns.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_go_on_with_columns_of_their_own() {
        let mut one = Columns::default();
        let add = |columns: &mut Columns, name: String| columns.add(name, DataType::Int64, false);
        let names = |columns: &Columns| -> Vec<String> {
            (0..columns.len()).map(|id| columns.get(ColumnId(id as u32)).name.clone()).collect()
        };
        let mut expected: Vec<String> = Vec::new();
        for number in 0..3 * PIECE + 7 {
            if number % 100 == 55 {
                let mut other = one.clone();
                for own in 0..2 * PIECE {
                    add(&mut other, format!("own {own}"));
                }
                assert_eq!(names(&other)[..number], expected);
                assert_eq!(names(&other)[number], "own 0");
            }
            assert_eq!(add(&mut one, format!("column {number}")), ColumnId(number as u32));
            expected.push(format!("column {number}"));
        }
        assert_eq!(names(&one), expected);
    }

    #[test]
    fn copies_share_pieces() {
        let mut one = Columns::default();
        for number in 0..2 * PIECE + 1 {
            one.add(number.to_string(), DataType::Int64, false);
        }
        let other = one.clone();
        assert!(Arc::ptr_eq(&one.whole, &other.whole));
        assert_eq!(other.last.len(), 1);
    }
}
