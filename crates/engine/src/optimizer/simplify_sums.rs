//! Rule: constants leave sums.
//!
//! `sum(2 * a + 3)` is `2 * sum(a) + 3 * count(a)`: two operations a row less, and `sum(a)` may be one that
//! is there already, or be taken from blocks. Several sums of one argument and different constants are one
//! sum. A sum of products is multiplied out where that saves work: `sum(p * (1 - d))` is
//! `sum(p) - sum(p * d)`, whose numbers are narrower.
//!
//! 1. The argument of each sum of integers or decimals is expanded to a linear form ([`super::linear`]).
//! 2. A product becomes a sum of its own, of 38 digits, the constant a count, and a projection above puts
//!    them together. Equal parts of different sums are one.
//! 3. All sums of an aggregate are taken apart, or none: by the bytes a row that the programs write and the
//!    sums read.
//!
//! **The result is the same, and no error is new.** Each product must be NULL in the same rows as the
//! argument, so the atoms that it lacks must be free of NULL for certain ([`crate::facts`]); and neither a
//! product, nor its sum over 2^48 rows, times its factor, may leave 38 digits by the ranges of its atoms. An
//! overflow of a part of the argument (`x * 10` of a BIGINT) is an error no more if the sum itself fits its
//! type.
//!
//! Not touched: floats, whose sums depend on the order of operations; `DISTINCT`; `avg`, which shares the sum
//! of its own argument; sums of constants. Where groups have but a few rows, the projection would cost what
//! the rows save.

use super::linear::{Atoms, LinearForm, cast, decimal, scale, times};
use crate::estimate::estimate_rows;
use crate::facts::facts;
use crate::plan::freedom::may_repeat;
use crate::plan::tree::take;
use crate::plan::{Aggregate, AggregateCall, AggregateFunction, Columns, Node, Plan, Project};
use entasis_vector::expr::{ArithmeticOp, Expr, Program};
use entasis_vector::types::pow10;
use entasis_vector::{ColumnId, DataType, Result, Value};
use std::collections::{HashMap, HashSet};
use std::mem::Discriminant;

/// Groups must have so many rows, as far as anybody knows.
const FEWEST_ROWS: f64 = 16.0;
/// Up to so many groups a sum costs no more than reading its argument …
const FEW_GROUPS: f64 = 8.0;
/// … and beyond that as much as so many bytes more.
const SCATTERED: usize = 24;

/// Takes the sums of the whole plan apart.
pub(super) fn apply(plan: &mut Plan) -> Result<()> {
    split(&mut plan.root, &mut plan.columns);
    Ok(())
}

fn split(node: &mut Node, columns: &mut Columns) {
    node.children_mut().into_iter().for_each(|child| split(child, columns));
    let Node::Aggregate(aggregate) = node else { return };
    let is_plain = |call: &AggregateCall| matches!(call.args[0], Expr::Column { .. });
    if !aggregate.aggregates.iter().any(|(_, call)| is_eligible(call) && !is_plain(call)) {
        return;
    }
    let groups = if aggregate.groups.is_empty() { 1.0 } else { estimate_rows(node, columns) };
    let Node::Aggregate(aggregate) = node else { return };
    if groups > 1.0 && groups * FEWEST_ROWS > estimate_rows(&aggregate.input, columns) {
        return;
    }
    let mut known = facts(&aggregate.input, columns);
    // As scans give what is only computed with.
    for meta in &mut known {
        meta.physical = meta.range.map_or(meta.physical, |range| meta.ty.narrowest(range));
    }
    let mut atoms = Atoms::new(&known);
    let form = |(_, call): &(ColumnId, AggregateCall)| {
        if is_eligible(call) { atoms.form(&call.args[0]) } else { None }
    };
    let forms: Vec<Option<LinearForm>> = aggregate.aggregates.iter().map(form).collect();
    if !is_cheaper(aggregate, &forms, &atoms, groups) {
        return;
    }
    let mut parts = Parts { calls: Vec::new(), places: HashMap::new(), atoms: &atoms, columns };
    let mut totals = Vec::new();
    let mut kept = Vec::new();
    for ((id, mut call), form) in std::mem::take(&mut aggregate.aggregates).into_iter().zip(forms) {
        match form {
            Some(form) => match atoms.whole(&form) {
                Some(product) => {
                    call.args[0] = product;
                    kept.push((id, call));
                }
                None => totals.push((id, parts.total(&form, &call))),
            },
            None => kept.push((id, call)),
        }
    }
    kept.append(&mut parts.calls);
    aggregate.aggregates = kept;
    if !totals.is_empty() {
        *node = Node::Project(Project { input: Box::new(take(node)), exprs: totals });
    }
}

/// True for sums of one integer or decimal of the scale of the result.
fn is_eligible(call: &AggregateCall) -> bool {
    let fits = |arg: &Expr| scale(arg.ty()).is_some() && scale(arg.ty()) == scale(call.ty) && may_repeat(arg);
    matches!(call.function, AggregateFunction::Sum)
        && !call.distinct
        && matches!(&call.args[..], [arg] if fits(arg))
}

/// True if it costs less to sum the parts of `forms`: bytes that are written and read for each row.
fn is_cheaper(aggregate: &Aggregate, forms: &[Option<LinearForm>], atoms: &Atoms<'_>, groups: f64) -> bool {
    let scattered = if groups > FEW_GROUPS { SCATTERED } else { 0 };
    let cost = |is_apart: bool| -> Option<usize> {
        // What is read, each once; a filter makes it another sum.
        let mut seen: HashSet<(Expr, Option<&Expr>)> = HashSet::new();
        let mut read: Vec<Expr> = Vec::new();
        for ((_, call), form) in aggregate.aggregates.iter().zip(forms) {
            let args: Vec<Expr> = match form.as_ref().filter(|_| is_apart) {
                Some(form) => form.products().map(|(product, _)| atoms.product(product).0).collect(),
                None => call.args.iter().take(1).cloned().collect(),
            };
            let is_new = |arg: &Expr| seen.insert((arg.clone(), call.filter.as_ref()));
            read.extend(args.into_iter().filter(is_new));
        }
        let program = Program::compile_narrow(&read, atoms.known, &|_| true).ok()?;
        let sums: usize = program.outputs().iter().map(|output| output.physical.width() + scattered).sum();
        Some(program.written_bytes() + sums)
    };
    cost(true).zip(cost(false)).is_some_and(|(apart, whole)| apart < whole)
}

/// What tells a sum or a count from another: its function, its argument and its filter.
type Part = (Discriminant<AggregateFunction>, Vec<Expr>, Option<Expr>);

/// The sums and counts that take the place of others, each once.
struct Parts<'a> {
    calls: Vec<(ColumnId, AggregateCall)>,
    /// The column of each of them.
    places: HashMap<Part, ColumnId>,
    atoms: &'a Atoms<'a>,
    columns: &'a mut Columns,
}

impl Parts<'_> {
    /// What gives the result of `call`, a sum of `form`, above the aggregate.
    fn total(&mut self, form: &LinearForm, call: &AggregateCall) -> Expr {
        let ty = decimal(form.scale);
        let mut terms: Vec<(Expr, bool)> = Vec::new();
        for (product, factor) in form.products() {
            let (arg, scale) = self.atoms.product(product);
            let sum = self.part("sum", AggregateFunction::Sum, vec![arg], decimal(scale), call);
            terms.push((scaled(sum, scale, factor.abs(), form.scale), *factor < 0));
        }
        let constant = form.constant();
        if constant != 0 {
            let (product, _) = form.products().next().expect("a form has a product");
            let (function, args) = match self.atoms.is_nullable(product) {
                true => (AggregateFunction::Count, vec![self.atoms.product(product).0]),
                false => (AggregateFunction::CountStar, Vec::new()),
            };
            let count = cast(self.part("count", function, args, DataType::Int64, call), decimal(0));
            terms.push((scaled(count, 0, constant.abs(), form.scale), constant < 0));
        }
        // What is subtracted comes last.
        terms.sort_by_key(|(_, is_negative)| *is_negative);
        let join = |left: Option<Expr>, (right, is_negative): (Expr, bool)| {
            let op = if is_negative { ArithmeticOp::Subtract } else { ArithmeticOp::Add };
            Some(match left {
                Some(left) => Expr::Arithmetic { op, left: Box::new(left), right: Box::new(right), ty },
                None if is_negative => Expr::Negate(Box::new(right)),
                None => right,
            })
        };
        cast(terms.into_iter().fold(None, join).expect("a form has a product"), call.ty)
    }

    /// The column of a part that counts the rows that `like` does: a new one, or one that is there.
    fn part(
        &mut self,
        name: &str,
        function: AggregateFunction,
        args: Vec<Expr>,
        ty: DataType,
        like: &AggregateCall,
    ) -> Expr {
        let place = (std::mem::discriminant(&function), args.clone(), like.filter.clone());
        if let Some(id) = self.places.get(&place) {
            return Expr::column(*id, ty);
        }
        let id = self.columns.add(name, ty, true);
        self.places.insert(place, id);
        let call = AggregateCall {
            function,
            args,
            distinct: false,
            filter: like.filter.clone(),
            order_by: Vec::new(),
            ty,
        };
        self.calls.push((id, call));
        Expr::column(id, ty)
    }
}

/// `factor`, unscaled, times a part of scale `from`, as a decimal of scale `to`.
fn scaled(part: Expr, from: u8, factor: i128, to: u8) -> Expr {
    if factor == pow10(to - from) {
        return cast(part, decimal(to));
    }
    let factor = Expr::literal(Value::Integer(factor), decimal(to - from));
    times(part, factor, to)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::optimizer::testing::{Builder, join};
    use crate::plan::JoinKind;

    fn binary(op: ArithmeticOp, left: Expr, right: Expr) -> Expr {
        Expr::Arithmetic { op, left: Box::new(left), right: Box::new(right), ty: DataType::Int64 }
    }
    fn plus(left: Expr, right: Expr) -> Expr {
        binary(ArithmeticOp::Add, left, right)
    }
    fn minus(left: Expr, right: Expr) -> Expr {
        binary(ArithmeticOp::Subtract, left, right)
    }
    fn by(left: Expr, right: Expr) -> Expr {
        binary(ArithmeticOp::Multiply, left, right)
    }
    fn number(value: i128) -> Expr {
        Expr::literal(Value::Integer(value), DataType::Int64)
    }
    fn sum(arg: Expr) -> AggregateCall {
        let function = AggregateFunction::Sum;
        AggregateCall {
            function,
            args: vec![arg],
            distinct: false,
            filter: None,
            order_by: Vec::new(),
            ty: DataType::Int64,
        }
    }

    /// The lines of the plan with these calls over a table with the columns a, b and c, of as many groups,
    /// and another with the column d.
    fn lines(groups: u64, calls: impl Fn(&Builder) -> Vec<AggregateCall>) -> Vec<String> {
        let mut b = Builder::default();
        let columns = [("g", groups), ("a", 10_000_000), ("b", 11), ("c", 9)];
        let scan = b.scan("t", 100_000, &columns);
        let other = b.scan("u", 10, &[("k", 10), ("d", 10)]);
        let matches = vec![b.equal("a", "k")];
        let input = join(JoinKind::Left, scan, other, matches);
        let calls = calls(&b);
        let key = b.column("g");
        let groups = vec![(b.columns.add("g", DataType::Int64, false), key)];
        let aggregates = calls.into_iter().map(|call| (b.columns.add("r", call.ty, true), call)).collect();
        let root = Node::Aggregate(Aggregate { input: Box::new(input), groups, aggregates });
        let mut plan = b.plan(root, &[]);
        apply(&mut plan).unwrap();
        crate::optimizer::validate::validate(&plan).unwrap();
        let text = plan.to_string();
        let title = |line: &str| line.trim().split("  ~").next().unwrap_or_default().to_owned();
        text.lines()
            .map(title)
            .filter(|line| line.starts_with("Project") || line.starts_with("Agg"))
            .collect()
    }

    #[track_caller]
    fn stays(groups: u64, calls: impl Fn(&Builder) -> Vec<AggregateCall>) {
        let found = lines(groups, calls);
        assert_eq!(found.len(), 1, "{found:#?}");
    }

    #[test]
    fn constants_leave_sums() {
        let found = lines(4, |b| {
            let (a, two) = (|| b.column("a"), || number(2));
            vec![
                sum(plus(by(two(), a()), number(3))),
                sum(minus(number(7), a())),
                sum(Expr::Negate(Box::new(a()))),
            ]
        });
        assert_eq!(
            found,
            [
                "Project CAST(((sum * 2) + (CAST(count AS DECIMAL(38,0)) * 3)) AS BIGINT) AS r#7, \
                 CAST(((CAST(count AS DECIMAL(38,0)) * 7) - sum) AS BIGINT) AS r#8, CAST((-sum) AS BIGINT) AS r#9",
                "Aggregate by g#0 AS g#6: sum(a) AS sum, count(*) AS count",
            ]
        );
    }

    #[test]
    fn products_are_multiplied_out_where_that_saves_work() {
        let product = |b: &Builder| by(b.column("a"), minus(number(100), b.column("b")));
        stays(4, |b| vec![sum(product(b))]);
        let found = lines(4, |b| vec![sum(b.column("a")), sum(product(b))]);
        assert_eq!(found.len(), 2, "{found:#?}");
        // With many groups, a sum is dearer than an operation.
        let cubic = |b: &Builder| by(product(b), plus(number(100), b.column("c")));
        assert_eq!(lines(4, |b| vec![sum(b.column("a")), sum(product(b)), sum(cubic(b))]).len(), 2);
        stays(100, |b| vec![sum(b.column("a")), sum(product(b)), sum(cubic(b))]);
    }

    #[test]
    fn what_may_go_wrong_stays() {
        let distinct = |call: AggregateCall| AggregateCall { distinct: true, ..call };
        stays(4, |b| vec![distinct(sum(plus(b.column("a"), number(1))))]);
        stays(4, |_| vec![sum(number(1))]);
        // Columns of the right side may be NULL where others are not.
        stays(4, |b| vec![sum(b.column("a")), sum(b.column("d")), sum(plus(b.column("a"), b.column("d")))]);
        // One that is NULL is NULL in both of its parts.
        let found = lines(4, |b| vec![sum(plus(b.column("d"), number(1)))]);
        assert!(found[1].contains("sum(d) AS sum, count(d) AS count"), "{found:#?}");
        // Groups of a few rows.
        stays(50_000, |b| vec![sum(plus(b.column("a"), number(1)))]);
    }

    #[test]
    fn a_product_that_is_part_of_others_is_one() {
        let found = lines(4, |b| {
            let product = || by(b.column("a"), b.column("b"));
            vec![
                sum(product()),
                sum(by(number(2), product())),
                sum(by(b.column("b"), by(number(3), b.column("a")))),
            ]
        });
        assert_eq!(found[1].matches("sum(").count(), 2, "{found:#?}");
        assert_eq!(
            found[1].matches("(CAST(a AS DECIMAL(38,0)) * CAST(b AS DECIMAL(38,0)))").count(),
            2,
            "{found:#?}"
        );
    }

    #[test]
    fn filters_keep_parts_apart() {
        let found = lines(4, |b| {
            let arg = || plus(b.column("a"), number(1));
            let filter = Some(b.compare("b", entasis_vector::expr::CompareOp::Lt, "5"));
            vec![AggregateCall { filter, ..sum(arg()) }, sum(arg())]
        });
        assert_eq!(found[1].matches("sum(a)").count(), 2, "{found:#?}");
        assert_eq!(found[1].matches("FILTER (WHERE (b < 5))").count(), 2, "{found:#?}");
    }
}
