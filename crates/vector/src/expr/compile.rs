//! From the tree to a graph of operations on physical types.
//!
//! 1. Constants are folded (`fold.rs`).
//! 2. Each subexpression becomes a [`Node`] once, however often it occurs in the trees (hash consing).
//! 3. Bottom up, each integer node gets bounds from those of its operands, in 128-bit interval arithmetic.
//!    From them follow its physical type (32 or 64 bits if the bounds prove that they are enough, however
//!    wide its SQL type) and whether its kernel must check for overflow. Operands of 32 bits whose result
//!    needs 64 are widened by the kernel; other operands that differ are resized. A value is never narrowed
//!    for an operation that takes it as it is.
//! 4. `CASE`, `AND` and `OR` whose parts are cheap and cannot fail become plain operations on whole columns;
//!    the rest stay conditional, and `program.rs` gives their parts selections of their own.
//! 5. An expression over a single string column becomes a program of its own ([`Kind::PerEntry`]), which
//!    the machine runs once per dictionary entry if the column comes with a dictionary.
//!
//! This file has the nodes and what is common to all; each kind of operation has a file: [`arithmetic`],
//! [`cast`], [`compare`], [`condition`], [`function`].

mod arithmetic;
mod cast;
mod compare;
mod condition;
mod function;

use super::fold::fold;
use super::kernels::arithmetic::{Check, Single};
use super::kernels::list::List;
use super::pattern::Pattern;
use super::{ArithmeticOp, ColumnMeta, CompareOp, DatePart, Expr, ExternalFunction, Function, Program};
use crate::types::PhysicalType;
use crate::{ColumnId, DataType, Error, Result, Value};
use std::collections::HashMap;
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};
use std::mem::Discriminant;
use std::sync::Arc;

/// Index of a node in its graph; operands precede their users.
pub(super) type NodeId = usize;

/// Inclusive bounds of integers.
type Range = (i128, i128);

/// The physical types of decimals.
const DECIMAL_TYPES: [PhysicalType; 3] = [PhysicalType::I32, PhysicalType::I64, PhysicalType::I128];

/// Conditions and branches up to this cost are computed for all rows rather than selected for.
const EAGER_COST: u32 = 24;

/// To narrow by a conjunction inside of a disjunction, the parts behind its cheapest one are computed for the
/// rows that this one leaves, from this cost on.
const NARROWING_COST: u32 = 4;

/// To leave rows out takes about as long as a condition of this cost.
const LEAVING_OUT_COST: u32 = 6;

/// What a node does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Kind {
    /// A column of the input.
    Column(usize),
    /// A constant.
    Constant(Value),
    /// A comparison of two operands of one physical type.
    Compare(CompareOp),
    /// x, low, high: integers, the bounds constant and inclusive.
    Between,
    /// Integers or floats of one physical type.
    Arithmetic(ArithmeticOp, Check),
    /// A function of one number.
    Single(Single),
    /// Arithmetic in which a date, time or interval takes part.
    Calendar(ArithmeticOp),
    /// `-interval`.
    NegateInterval,
    /// The same integer in another physical type, which holds it.
    Resize,
    /// The same values under another SQL type.
    Retype,
    /// A conversion between SQL types.
    Cast { lenient: bool },
    /// Logical negation.
    Not,
    /// Both operands computed for all rows.
    Junction { or: bool },
    /// Each operand computed for the rows that the earlier ones leave open.
    LazyJunction { or: bool },
    /// `IS NULL`.
    IsNull,
    /// condition, then, else: all computed for all rows.
    Blend,
    /// condition, value: NULL where the condition is true, or (`kept`) where it is not. Both computed for all
    /// rows.
    Mask { kept: bool },
    /// condition, result, …, and the result of the rest last: each computed for the rows that reach it.
    Case,
    /// A match of a constant pattern.
    Like(Arc<Pattern>),
    /// A match of a pattern that comes with the rows.
    LikeDynamic { escape: Option<char>, case_insensitive: bool },
    /// Membership in a list of constants.
    InList(Arc<List>),
    /// A field of a date, time or interval.
    Extract(DatePart),
    /// The start of the field of a date or timestamp.
    Truncate(DatePart),
    /// A decimal of 38 digits, or the least value beyond.
    Saturate,
    /// A function of strings.
    String(Function),
    /// A function of another library.
    External(Arc<dyn ExternalFunction>),
    /// A program over the one string column that is the operand.
    PerEntry(Arc<Program>),
}

/// One operation.
#[derive(Debug)]
pub(super) struct Node {
    pub kind: Kind,
    pub args: Vec<NodeId>,
    pub ty: DataType,
    pub physical: PhysicalType,
    pub nullable: bool,
    pub range: Option<Range>,
    /// Whether this or an operand may raise an error.
    pub fallible: bool,
    /// Rough nanoseconds per row, operands included.
    pub cost: u32,
}

/// The graph of a program's expressions.
pub(super) struct Graph<'a> {
    pub nodes: Vec<Node>,
    /// Nodes of the same kind and operands, and of the same column or constant.
    index: HashMap<(Discriminant<Kind>, Vec<NodeId>, u64), Vec<NodeId>>,
    input: &'a [ColumnMeta],
    /// False inside of a program per entry, and for constants: nothing is folded, and nothing is held in 32
    /// bits unless its type is.
    optimize: bool,
    /// True if rows are narrowed by the results, so that few may be left after the first part of a condition.
    narrows: bool,
}

impl<'a> Graph<'a> {
    pub fn new(input: &'a [ColumnMeta], optimize: bool) -> Graph<'a> {
        Graph { nodes: Vec::new(), index: HashMap::new(), input, optimize, narrows: false }
    }

    /// The node of an expression.
    pub fn add(&mut self, expr: &Expr) -> Result<NodeId> {
        if self.optimize { self.lower(&fold(expr)) } else { self.lower(expr) }
    }

    /// The nodes of a conjunction, in the order in which they are best evaluated.
    pub fn add_conjunction(&mut self, exprs: &[Expr]) -> Result<Vec<NodeId>> {
        self.narrows = true;
        let mut parts = Vec::new();
        for expr in exprs {
            let expr = if self.optimize { fold(expr) } else { expr.clone() };
            expr.split_conjunction(&mut parts);
        }
        let parts = parts.iter().map(|part| self.lower(part)).collect::<Result<Vec<_>>>()?;
        let parts = self.merge_bounds(parts)?;
        Ok(self.cheapest_first(parts))
    }

    // ---- nodes --------------------------------------------------------------------------------------------

    fn node(&self, id: NodeId) -> &Node {
        &self.nodes[id]
    }

    /// The node with these properties: an existing one if there is one.
    fn intern(&mut self, node: Node) -> NodeId {
        // Columns and constants have no operands to tell them apart.
        let leaf = match &node.kind {
            Kind::Column(column) => *column as u64,
            Kind::Constant(value) => BuildHasherDefault::<DefaultHasher>::default().hash_one(value),
            _ => 0,
        };
        let key = (std::mem::discriminant(&node.kind), node.args.clone(), leaf);
        let same = |other: &Node| {
            // 0.0 and -0.0 are equal and not the same.
            !matches!(node.kind, Kind::Constant(Value::Float(_)))
                && other.kind == node.kind
                && other.ty == node.ty
                && other.physical == node.physical
        };
        if let Some(found) =
            self.index.get(&key).and_then(|ids| ids.iter().find(|&&id| same(&self.nodes[id])))
        {
            return *found;
        }
        self.nodes.push(node);
        self.index.entry(key).or_default().push(self.nodes.len() - 1);
        self.nodes.len() - 1
    }

    /// An operation that is NULL where an operand is, held in the physical type of `ty`.
    fn strict(&mut self, kind: Kind, args: Vec<NodeId>, ty: DataType) -> NodeId {
        self.strict_as(kind, args, ty, ty.physical(), ty.integer_range())
    }

    fn strict_as(
        &mut self,
        kind: Kind,
        args: Vec<NodeId>,
        ty: DataType,
        physical: PhysicalType,
        range: Option<Range>,
    ) -> NodeId {
        let null = |arg: &NodeId| matches!(self.node(*arg).kind, Kind::Constant(Value::Null));
        if args.iter().any(null) {
            return self.constant(&Value::Null, ty, physical);
        }
        let nullable =
            args.iter().any(|arg| self.node(*arg).nullable) || matches!(kind, Kind::Cast { lenient: true });
        self.finish(kind, args, ty, physical, nullable, range)
    }

    fn finish(
        &mut self,
        kind: Kind,
        args: Vec<NodeId>,
        ty: DataType,
        physical: PhysicalType,
        nullable: bool,
        range: Option<Range>,
    ) -> NodeId {
        let operands = || args.iter().map(|arg| self.node(*arg));
        let fallible = operands().any(|arg| arg.fallible) || self.may_fail(&kind, &args, ty);
        let cost = operands().fold(self.own_cost(&kind, &args), |sum, arg| sum.saturating_add(arg.cost));
        self.intern(Node { kind, args, ty, physical, nullable, range, fallible, cost })
    }

    fn may_fail(&self, kind: &Kind, args: &[NodeId], ty: DataType) -> bool {
        match kind {
            Kind::Arithmetic(ArithmeticOp::Divide | ArithmeticOp::Modulo, _) if self.is_float(args[0]) => {
                !matches!(self.node(args[1]).kind, Kind::Constant(Value::Float(v)) if v != 0.0)
            }
            Kind::Arithmetic(_, check) => *check != Check::Nothing && !self.is_float(args[0]),
            Kind::Single(single) => *single == Single::Sqrt || !self.is_float(args[0]),
            Kind::Truncate(_) => !(ty == DataType::Date && self.node(args[0]).ty == DataType::Date),
            Kind::Calendar(_) | Kind::NegateInterval | Kind::LikeDynamic { .. } => true,
            Kind::Cast { lenient } => {
                let from = self.node(args[0]).ty;
                let to_float =
                    from.is_numeric() && (ty == DataType::Float64 || !from.is_float() && ty.is_float());
                !lenient && !to_float && ty != DataType::Varchar
            }
            Kind::String(Function::Substring) => args.len() > 2,
            Kind::External(_) => true,
            Kind::PerEntry(program) => program.is_fallible(),
            _ => false,
        }
    }

    fn own_cost(&self, kind: &Kind, args: &[NodeId]) -> u32 {
        let text = args.first().is_some_and(|arg| self.node(*arg).physical == PhysicalType::Str);
        match kind {
            Kind::Column(_) | Kind::Constant(_) | Kind::Retype => 0,
            Kind::Compare(_) if text => 6,
            Kind::Arithmetic(ArithmeticOp::Divide | ArithmeticOp::Modulo, _) => 4,
            Kind::InList(_) => 6,
            Kind::PerEntry(_) => 8,
            Kind::Extract(_) | Kind::Truncate(_) => 10,
            Kind::Like(_) | Kind::LikeDynamic { .. } | Kind::String(_) => 40,
            Kind::Cast { .. } if text => 40,
            Kind::Cast { .. } => 4,
            Kind::Calendar(_) | Kind::NegateInterval => 40,
            Kind::External(_) => 200,
            _ => 1,
        }
    }

    fn is_float(&self, id: NodeId) -> bool {
        matches!(self.node(id).physical, PhysicalType::F32 | PhysicalType::F64)
    }

    fn constant(&mut self, value: &Value, ty: DataType, physical: PhysicalType) -> NodeId {
        let range = match value {
            Value::Integer(v) => Some((*v, *v)),
            Value::Boolean(v) => Some((i128::from(*v), i128::from(*v))),
            _ => None,
        };
        let nullable = value.is_null();
        self.finish(Kind::Constant(value.clone()), Vec::new(), ty, physical, nullable, range)
    }

    /// A constant, in 64 bits where a decimal fits.
    fn literal(&mut self, value: &Value, ty: DataType) -> NodeId {
        let physical = match value {
            Value::Integer(v) if ty.is_decimal() && i64::try_from(*v).is_ok() => PhysicalType::I64,
            Value::Integer(_) if ty.is_decimal() => PhysicalType::I128,
            _ => ty.physical(),
        };
        self.constant(value, ty, physical)
    }

    fn is_null(&self, id: NodeId) -> bool {
        matches!(self.node(id).kind, Kind::Constant(Value::Null))
    }

    fn truth(&self, id: NodeId) -> Option<Option<bool>> {
        match &self.node(id).kind {
            Kind::Constant(Value::Null) => Some(None),
            Kind::Constant(Value::Boolean(v)) => Some(Some(*v)),
            _ => None,
        }
    }

    /// Whether computing this for rows that do not need it costs little and raises nothing.
    fn is_eager(&self, id: NodeId) -> bool {
        !self.node(id).fallible && self.node(id).cost <= EAGER_COST
    }

    /// Whether parts of a condition are computed for the rows that need them alone, cheap as they are: those
    /// of a conjunction, if the rows that pass are wanted, and those of a disjunction of such.
    fn is_narrowed(&self, or: bool, parts: &[NodeId]) -> bool {
        let cost = |id: &NodeId| self.node(*id).cost;
        let is_narrowed = |id: &NodeId| matches!(self.node(*id).kind, Kind::LazyJunction { or: false });
        let rest = || parts.iter().map(cost).sum::<u32>() - parts.iter().map(cost).min().unwrap_or(0);
        self.narrows && if or { parts.iter().any(is_narrowed) } else { rest() >= NARROWING_COST }
    }

    /// Whether rows that an earlier part of a disjunction has taken are left out of this one: it may fail, or
    /// to ask them takes longer than to leave them out.
    pub fn is_worth_leaving_out(&self, part: NodeId) -> bool {
        let mut first = part;
        while matches!(self.node(first).kind, Kind::LazyJunction { or: false }) {
            first = self.node(first).args[0];
        }
        self.node(part).fallible || self.node(first).cost > LEAVING_OUT_COST
    }

    /// `id` held as `physical`, which must have room for its range.
    fn resize(&mut self, id: NodeId, physical: PhysicalType) -> NodeId {
        let node = self.node(id);
        let (ty, range, value) = (node.ty, node.range, node.kind.clone());
        match value {
            _ if node.physical == physical => id,
            Kind::Constant(value) => self.constant(&value, ty, physical),
            // A value that was resized before is resized from the original.
            Kind::Resize => self.resize(self.node(id).args[0], physical),
            _ => self.strict_as(Kind::Resize, vec![id], ty, physical, range),
        }
    }

    /// `id` in the default physical type of its SQL type, for a kernel that knows no other.
    fn natural(&mut self, id: NodeId) -> NodeId {
        let (ty, physical) = (self.node(id).ty, self.node(id).physical);
        if holds_integers(physical) && physical != ty.physical() {
            self.resize(id, ty.physical())
        } else {
            id
        }
    }

    /// `id` as it leaves the program: decimals in 64 or 128 bits, all else in the default physical type,
    /// unless the reader takes it `as_is`.
    pub fn output(&mut self, id: NodeId, as_is: bool) -> NodeId {
        let (ty, physical) = (self.node(id).ty, self.node(id).physical);
        let default = ty.physical();
        if as_is
            || !holds_integers(physical)
            || physical.width() >= default.width()
            || physical == PhysicalType::I64
        {
            return id;
        }
        let range = self.node(id).range.filter(|_| default == PhysicalType::I128);
        let fits = range.is_some_and(|range| PhysicalType::I64.holds(range));
        self.resize(id, if fits { PhysicalType::I64 } else { default })
    }

    /// The physical type in which values of `ty` within `range` are computed, if nothing else prevents it.
    fn narrowest(&self, ty: DataType, range: Range) -> PhysicalType {
        match ty.narrowest(range) {
            PhysicalType::I32 if !self.optimize => ty.narrowest((range.0.min(i64::MIN.into()), range.1)),
            narrowest => narrowest,
        }
    }

    /// `id` under the SQL type `ty`, same values.
    fn retype(&mut self, id: NodeId, ty: DataType) -> NodeId {
        let node = self.node(id);
        if node.ty == ty {
            return id;
        }
        let (physical, range) = (node.physical, node.range);
        match node.kind.clone() {
            Kind::Constant(value) => self.constant(&value, ty, physical),
            _ => self.strict_as(Kind::Retype, vec![id], ty, physical, range),
        }
    }

    /// Two operands in one physical type.
    fn unify(&mut self, a: NodeId, b: NodeId) -> Result<(NodeId, NodeId)> {
        let (pa, pb) = (self.node(a).physical, self.node(b).physical);
        if pa == pb {
            return Ok((a, b));
        }
        // The type of a NULL is whatever is needed.
        for (null, other) in [(a, b), (b, a)] {
            if self.is_null(null) {
                let (ty, physical) = (self.node(other).ty, self.node(other).physical);
                let typed = self.constant(&Value::Null, ty, physical);
                return Ok(if null == a { (typed, other) } else { (other, typed) });
            }
        }
        let (ta, tb) = (self.node(a).ty, self.node(b).ty);
        if !holds_integers(pa) || !holds_integers(pb) {
            return Err(Error::internal(format!("{ta} and {tb} are operands of one operation")));
        }
        // A constant takes the other's type, if it fits; otherwise the narrower operand is widened.
        let is_constant = |id: NodeId| matches!(self.node(id).kind, Kind::Constant(_));
        let fits =
            |id: NodeId, other: PhysicalType| self.node(id).range.is_some_and(|range| other.holds(range));
        if is_constant(b) && fits(b, pa) {
            return Ok((a, self.resize(b, pa)));
        }
        if (is_constant(a) || pb.width() > pa.width()) && fits(a, pb) {
            return Ok((self.resize(a, pb), b));
        }
        if pa.width() > pb.width() && fits(b, pa) {
            return Ok((a, self.resize(b, pa)));
        }
        Ok((self.resize(a, PhysicalType::I128), self.resize(b, PhysicalType::I128)))
    }

    // ---- expressions --------------------------------------------------------------------------------------

    fn lower(&mut self, expr: &Expr) -> Result<NodeId> {
        if self.optimize
            && let Some(node) = self.per_entry(expr)?
        {
            return Ok(node);
        }
        match expr {
            Expr::Column { id, .. } => self.column(*id),
            Expr::Literal { value, ty } => Ok(self.literal(value, *ty)),
            Expr::Parameter { index, .. } => {
                Err(Error::internal(format!("parameter {} has no value", index + 1)))
            }
            Expr::Compare { op, left, right } => {
                let (left, right) = (self.lower(left)?, self.lower(right)?);
                self.compare(*op, left, right)
            }
            Expr::Arithmetic { op, left, right, ty } => {
                let (left, right) = (self.lower(left)?, self.lower(right)?);
                self.arithmetic(*op, left, right, *ty)
            }
            Expr::Negate(input) => {
                let input = self.lower(input)?;
                Ok(self.single(Single::Negate, input))
            }
            Expr::Not(input) => {
                let input = self.lower(input)?;
                Ok(self.strict(Kind::Not, vec![input], DataType::Boolean))
            }
            Expr::And(parts) => self.junction(false, parts),
            Expr::Or(parts) => self.junction(true, parts),
            Expr::IsNull(input) => {
                let input = self.lower(input)?;
                Ok(self.null_test(input))
            }
            Expr::Case { branches, otherwise, ty } => self.case(branches, otherwise.as_deref(), *ty),
            Expr::Cast { input, ty, lenient } => {
                let input = self.lower(input)?;
                Ok(self.cast(input, *ty, *lenient))
            }
            Expr::Like { input, pattern, escape, case_insensitive } => {
                self.like(input, pattern, *escape, *case_insensitive)
            }
            Expr::InList { input, list } => {
                let input = self.lower(input)?;
                self.in_list(input, list)
            }
            Expr::Function { function, args, ty } => {
                let args = args.iter().map(|arg| self.lower(arg)).collect::<Result<Vec<_>>>()?;
                self.function(*function, args, *ty)
            }
            Expr::External { function, args, ty } => {
                let mut lowered = Vec::new();
                for arg in args {
                    let arg = self.lower(arg)?;
                    // The library takes each type only in its own physical type.
                    let physical = self.node(arg).ty.physical();
                    lowered.push(self.resize(arg, physical));
                }
                let kind = Kind::External(function.clone());
                Ok(self.finish(kind, lowered, *ty, ty.physical(), true, ty.integer_range()))
            }
        }
    }

    /// `input IS NULL`
    fn null_test(&mut self, input: NodeId) -> NodeId {
        let ty = DataType::Boolean;
        if !self.node(input).nullable && !self.node(input).fallible {
            return self.literal(&Value::Boolean(false), ty);
        }
        self.finish(Kind::IsNull, vec![input], ty, ty.physical(), false, ty.integer_range())
    }

    /// `input LIKE pattern`
    fn like(
        &mut self,
        input: &Expr,
        pattern: &Expr,
        escape: Option<char>,
        case_insensitive: bool,
    ) -> Result<NodeId> {
        let input = self.lower(input)?;
        if let Expr::Literal { value: Value::Text(pattern), .. } = pattern {
            let pattern = Pattern::new(pattern, escape, case_insensitive)?;
            return Ok(self.strict(Kind::Like(Arc::new(pattern)), vec![input], DataType::Boolean));
        }
        let pattern = self.lower(pattern)?;
        let kind = Kind::LikeDynamic { escape, case_insensitive };
        Ok(self.strict(kind, vec![input, pattern], DataType::Boolean))
    }

    /// `input IN (list)`
    fn in_list(&mut self, input: NodeId, list: &[Value]) -> Result<NodeId> {
        let kind = Kind::InList(Arc::new(List::new(list, self.node(input).ty, self.node(input).physical)?));
        let node = self.strict(kind, vec![input], DataType::Boolean);
        if list.iter().any(Value::is_null) {
            self.nodes[node].nullable = true;
        }
        Ok(node)
    }

    fn column(&mut self, id: ColumnId) -> Result<NodeId> {
        let found = self.input.iter().position(|meta| meta.id == id);
        let at = found.ok_or_else(|| Error::internal(format!("column {id} is not in the input")))?;
        let meta = &self.input[at];
        let (ty, physical, nullable) = (meta.ty, meta.physical, meta.nullable);
        let range = meta.range.or(ty.integer_range());
        Ok(self.finish(Kind::Column(at), Vec::new(), ty, physical, nullable, range))
    }

    /// The program of an expression over a single string column.
    fn per_entry(&mut self, expr: &Expr) -> Result<Option<NodeId>> {
        let plain = match expr {
            Expr::Column { .. } | Expr::Literal { .. } => true,
            Expr::IsNull(input) => matches!(**input, Expr::Column { .. }),
            _ => false,
        };
        if plain {
            return Ok(None);
        }
        let mut column = None;
        let mut suits = true;
        expr.visit(&mut |part| match part {
            Expr::Column { id, .. } => suits &= *column.get_or_insert(*id) == *id,
            Expr::External { function, .. } => suits &= function.is_immutable() && !function.is_volatile(),
            _ => {}
        });
        let Some(column) = column.filter(|_| suits) else { return Ok(None) };
        let column = self.column(column)?;
        let Kind::Column(at) = self.node(column).kind else { return Ok(None) };
        if self.node(column).physical != PhysicalType::Str {
            return Ok(None);
        }
        let program = Program::compile_as_is(std::slice::from_ref(expr), &self.input[at..=at])?;
        let output = &program.outputs()[0];
        if program.passes_column(0) {
            // Nothing is left but the column, perhaps as another type: a CASE whose conditions are constant.
            return Ok(Some(self.retype(column, output.ty)));
        }
        let (ty, physical, nullable, range) = (output.ty, output.physical, output.nullable, output.range);
        Ok(Some(self.finish(Kind::PerEntry(program), vec![column], ty, physical, nullable, range)))
    }
}

fn both(low: Option<i128>, high: Option<i128>) -> Option<Range> {
    low.zip(high)
}

fn holds_integers(physical: PhysicalType) -> bool {
    !matches!(physical, PhysicalType::F32 | PhysicalType::F64 | PhysicalType::Str | PhysicalType::Interval)
}
