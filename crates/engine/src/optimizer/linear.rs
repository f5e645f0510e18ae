//! Linear forms: a number as constants times products of *atoms*, and a constant.
//!
//! Atoms are columns, and all other expressions that are no arithmetic of constants, sums and products. Casts
//! between integers and decimals that fit whatever the value vanish, others are atoms: a form is of unscaled
//! integers, with a scale. It equals its expression wherever that raises no error.

use crate::plan::freedom::is_safe_cast;
use entasis_vector::expr::{ArithmeticOp, ColumnMeta, Expr, Program};
use entasis_vector::types::pow10;
use entasis_vector::{DataType, Value};

/// No aggregation has more rows.
const MOST_ROWS: i128 = 1 << 48;
/// A form of more products is not expanded.
const MOST_TERMS: usize = 16;

/// The digits after the point of an integer or a decimal.
pub(super) fn scale(ty: DataType) -> Option<u8> {
    match ty {
        DataType::Decimal { scale, .. } => Some(scale),
        ty => ty.is_integer().then_some(0),
    }
}

/// A decimal of as many digits as there are.
pub(super) fn decimal(scale: u8) -> DataType {
    DataType::Decimal { precision: 38, scale }
}

/// The numbers of atoms, ascending; an atom may occur more than once. Without any: 1.
pub(super) type Product = Vec<usize>;

/// A number, unscaled, as constants times products of atoms.
#[derive(Debug, Clone)]
pub(super) struct LinearForm {
    pub(super) scale: u8,
    /// Products, each once, with factors that are not 0.
    terms: Vec<(Product, i128)>,
    /// All atoms of the expression, also those that are gone.
    atoms: Vec<usize>,
}

impl LinearForm {
    /// `self` plus `factor` times `other`, of one scale.
    fn plus(mut self, other: LinearForm, factor: i128) -> Option<LinearForm> {
        for (product, own) in other.terms {
            self.add(product, own.checked_mul(factor)?)?;
        }
        self.atoms.extend(other.atoms);
        Some(self)
    }

    fn times(self, other: LinearForm) -> Option<LinearForm> {
        let mut result = LinearForm { scale: self.scale + other.scale, terms: Vec::new(), atoms: self.atoms };
        for ((left, a), (right, b)) in self.terms.iter().flat_map(|l| other.terms.iter().map(move |r| (l, r)))
        {
            let mut product: Product = left.iter().chain(right).copied().collect();
            product.sort_unstable();
            result.add(product, a.checked_mul(*b)?)?;
        }
        result.atoms.extend(other.atoms);
        Some(result)
    }

    /// The same number with `scale` digits after the point, which are not fewer.
    fn rescaled(mut self, scale: u8) -> Option<LinearForm> {
        let unit = pow10(scale.checked_sub(self.scale)?);
        self.scale = scale;
        for (_, factor) in &mut self.terms {
            *factor = factor.checked_mul(unit)?;
        }
        Some(self)
    }

    fn add(&mut self, product: Product, factor: i128) -> Option<()> {
        match self.terms.iter_mut().find(|(other, _)| *other == product) {
            Some((_, own)) => *own = own.checked_add(factor)?,
            None => self.terms.push((product, factor)),
        }
        self.terms.retain(|(_, factor)| *factor != 0);
        (self.terms.len() <= MOST_TERMS).then_some(())
    }

    /// The products with atoms.
    pub(super) fn products(&self) -> impl Iterator<Item = &(Product, i128)> {
        self.terms.iter().filter(|(product, _)| !product.is_empty())
    }

    /// The constant.
    pub(super) fn constant(&self) -> i128 {
        self.terms.iter().find(|(product, _)| product.is_empty()).map_or(0, |(_, constant)| *constant)
    }
}

/// What is taken as it is, and what is known of the columns in it.
pub(super) struct Atoms<'a> {
    exprs: Vec<(Expr, ColumnMeta)>,
    /// The facts.
    pub(super) known: &'a [ColumnMeta],
}

impl<'a> Atoms<'a> {
    /// None yet, over columns of which this is known.
    pub(super) fn new(known: &'a [ColumnMeta]) -> Atoms<'a> {
        Atoms { exprs: Vec::new(), known }
    }

    /// The form of `expr`, if its sum may be that of its products: each is NULL in the same rows, and fits.
    pub(super) fn form(&mut self, expr: &Expr) -> Option<LinearForm> {
        let form = self.expand(expr)?;
        let is_null_alike = |product: &Product| {
            form.atoms.iter().all(|atom| product.contains(atom) || !self.exprs[*atom].1.nullable)
        };
        let fits = |(product, factor): &(Product, i128)| self.bound(product, *factor).is_some();
        let is_good =
            form.products().all(|(product, _)| is_null_alike(product)) && form.terms.iter().all(fits);
        (is_good && form.products().next().is_some()).then_some(form)
    }

    fn expand(&mut self, expr: &Expr) -> Option<LinearForm> {
        let own = scale(expr.ty())?;
        let same = |form: LinearForm| (form.scale == own).then_some(form);
        match expr {
            Expr::Literal { value: Value::Integer(value), .. } => {
                let terms = if *value == 0 { Vec::new() } else { vec![(Product::new(), *value)] };
                Some(LinearForm { scale: own, terms, atoms: Vec::new() })
            }
            Expr::Cast { input, ty, lenient: false }
                if scale(input.ty()).is_some() && is_safe_cast(input.ty(), *ty) =>
            {
                self.expand(input)?.rescaled(own)
            }
            Expr::Negate(input) => {
                LinearForm { scale: own, terms: Vec::new(), atoms: Vec::new() }.plus(self.expand(input)?, -1)
            }
            Expr::Arithmetic {
                op: op @ (ArithmeticOp::Add | ArithmeticOp::Subtract), left, right, ..
            } => {
                let (left, right) = (self.expand(left)?.rescaled(own)?, self.expand(right)?.rescaled(own)?);
                left.plus(right, if *op == ArithmeticOp::Add { 1 } else { -1 })
            }
            Expr::Arithmetic { op: ArithmeticOp::Multiply, left, right, .. } => {
                self.expand(left)?.times(self.expand(right)?).and_then(same)
            }
            atom => {
                let atom = self.atom(atom)?;
                Some(LinearForm { scale: own, terms: vec![(vec![atom], 1)], atoms: vec![atom] })
            }
        }
    }

    fn atom(&mut self, expr: &Expr) -> Option<usize> {
        if let Some(known) = self.exprs.iter().position(|(other, _)| other == expr) {
            return Some(known);
        }
        let program = Program::compile(std::slice::from_ref(expr), self.known).ok()?;
        self.exprs.push((expr.clone(), program.outputs()[0].clone()));
        Some(self.exprs.len() - 1)
    }

    /// A bound of the magnitude of `factor * product`, if that of its sum has 38 digits.
    fn bound(&self, product: &Product, factor: i128) -> Option<i128> {
        let bound = product.iter().try_fold(factor.checked_abs()?, |bound, &atom| {
            let meta = &self.exprs[atom].1;
            let (low, high) = meta.range.or(meta.ty.integer_range())?;
            bound.checked_mul(low.checked_abs()?.max(high.checked_abs()?))
        })?;
        bound.checked_mul(MOST_ROWS).filter(|&sum| sum < pow10(38))
    }

    /// True if a product may be NULL.
    pub(super) fn is_nullable(&self, product: &Product) -> bool {
        product.iter().any(|&atom| self.exprs[atom].1.nullable)
    }

    /// The product that a form is, if it is nothing else.
    pub(super) fn whole(&self, form: &LinearForm) -> Option<Expr> {
        let [(product, 1)] = &form.terms[..] else { return None };
        let (expr, scale) = if product.is_empty() { return None } else { self.product(product) };
        (scale == form.scale).then_some(expr)
    }

    /// A product of at least one atom, and its scale.
    pub(super) fn product(&self, product: &Product) -> (Expr, u8) {
        let atom = |&atom: &usize| {
            let expr = self.exprs[atom].0.clone();
            let scale = scale(expr.ty()).expect("atoms are integers and decimals");
            (expr, scale)
        };
        if let [only] = &product[..] {
            return atom(only);
        }
        let as_decimal = |(expr, scale): (Expr, u8)| match expr.ty() {
            DataType::Decimal { .. } => (expr, scale),
            _ => (Expr::Cast { input: Box::new(expr), ty: decimal(0), lenient: false }, 0),
        };
        let factors = product.iter().map(|number| as_decimal(atom(number)));
        factors
            .reduce(|(left, a), (right, b)| (times(left, right, a + b), a + b))
            .expect("there are two at least")
    }
}

/// `left * right`, of as many digits as there are.
pub(super) fn times(left: Expr, right: Expr, scale: u8) -> Expr {
    let (left, right) = (Box::new(left), Box::new(right));
    Expr::Arithmetic { op: ArithmeticOp::Multiply, left, right, ty: decimal(scale) }
}

/// `input` as `ty`.
pub(super) fn cast(input: Expr, ty: DataType) -> Expr {
    if input.ty() == ty { input } else { Expr::Cast { input: Box::new(input), ty, lenient: false } }
}

#[cfg(test)]
mod tests {
    use super::*;
    use entasis_vector::ColumnId;

    const MONEY: DataType = DataType::Decimal { precision: 12, scale: 2 };

    fn column(id: u32, ty: DataType) -> Expr {
        Expr::column(ColumnId(id), ty)
    }
    fn number(value: i128, ty: DataType) -> Expr {
        Expr::literal(Value::Integer(value), ty)
    }
    fn binary(op: ArithmeticOp, left: Expr, right: Expr, ty: DataType) -> Expr {
        Expr::Arithmetic { op, left: Box::new(left), right: Box::new(right), ty }
    }

    /// Columns 0 and 1 are BIGINTs up to the given bounds, column 2 one that may be NULL, column 3 money.
    fn known(bounds: [i128; 2]) -> Vec<ColumnMeta> {
        let meta = |id: usize, ty: DataType, most: i128| {
            let known = ColumnMeta::new(ColumnId(id as u32), ty);
            ColumnMeta { range: Some((-most, most)), nullable: id == 2, ..known }
        };
        let integer = DataType::Int64;
        vec![
            meta(0, integer, bounds[0]),
            meta(1, integer, bounds[1]),
            meta(2, integer, 9),
            meta(3, MONEY, 999),
        ]
    }

    #[test]
    fn forms_are_of_unscaled_integers() {
        let known = known([9, 9]);
        let mut atoms = Atoms::new(&known);
        let scaled = |digits: u8| DataType::Decimal { precision: 38, scale: digits };
        // (money * 0.5 - 3) * CAST(a AS DECIMAL), at scale 3.
        let half = binary(ArithmeticOp::Multiply, column(3, MONEY), number(5, scaled(1)), scaled(3));
        let less = binary(ArithmeticOp::Subtract, half, number(3, scaled(0)), scaled(3));
        let whole = Expr::Cast { input: Box::new(column(0, DataType::Int64)), ty: scaled(0), lenient: false };
        let form = atoms.form(&binary(ArithmeticOp::Multiply, less, whole, scaled(3))).expect("it is linear");
        assert_eq!((form.scale, form.constant()), (3, 0));
        assert_eq!(form.terms, [(vec![0, 1], 5), (vec![1], -3000)]);
        assert_eq!(atoms.exprs[0].0, column(3, MONEY));
        // What cancels out is gone, and its atoms are still known.
        let a = || column(0, DataType::Int64);
        let none = binary(ArithmeticOp::Subtract, a(), a(), DataType::Int64);
        let sum = binary(ArithmeticOp::Add, none, column(1, DataType::Int64), DataType::Int64);
        let form = atoms.form(&sum).expect("it is linear");
        assert_eq!((form.terms, form.atoms), (vec![(vec![2], 1)], vec![1, 1, 2]));
    }

    #[test]
    fn what_might_not_fit_or_be_null_has_no_form() {
        let times = |a: u32, b: u32| {
            binary(
                ArithmeticOp::Multiply,
                column(a, DataType::Int64),
                column(b, DataType::Int64),
                DataType::Int64,
            )
        };
        let has_form = |bounds: [i128; 2], expr: Expr| Atoms::new(&known(bounds)).form(&expr).is_some();
        assert!(has_form([1 << 62, 1 << 16], times(0, 1)));
        assert!(!has_form([1 << 62, 1 << 17], times(0, 1)));
        // Added, a column that may be NULL makes rows NULL that the other column has.
        let plus = |a: Expr, b: Expr| binary(ArithmeticOp::Add, a, b, DataType::Int64);
        assert!(has_form([9, 9], plus(column(0, DataType::Int64), column(1, DataType::Int64))));
        assert!(!has_form([9, 9], plus(column(0, DataType::Int64), column(2, DataType::Int64))));
        assert!(has_form([9, 9], plus(times(0, 2), column(2, DataType::Int64))));
        assert!(has_form([9, 9], plus(column(2, DataType::Int64), number(1, DataType::Int64))));
        assert!(!has_form([9, 9], number(1, DataType::Int64)));
    }
}
