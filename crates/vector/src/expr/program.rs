//! Programs: expressions compiled to a linear list of instructions over registers and selections.
//!
//! ```text
//! r2 <- r0 * r1 [i64]          for s0
//! r3 <- r2 > 100 [i64]         for s0
//! s1 <- true rows of r3        of s0
//! r5 <- r4 / r1 [i64, checked] for s1
//! ```
//! A *register* holds a vector, a *selection* a list of positions; every instruction computes its register
//! for the positions of one selection, and is skipped if there are none. Selection 0 is the chunk's rows. A
//! conjunct narrows the selection for the next one; a branch of a `CASE` runs under the selection of the rows
//! that take it. Since a narrower selection lies within the wider, a value computed for the wider may be used
//! under the narrower, never the other way: that is the scope of a shared subexpression. An expression that
//! is needed for all rows somewhere is computed for all rows even where it first occurs in a branch.
//!
//! Columns and constants print with the physical type in which they come; a column that is narrower than its
//! SQL type has it by default, with that one too: `r0 <- column 1 [I32 of I64]`.
//!
//! A program of conditions is compiled twice, once to compute them and once to narrow by them, since the two
//! differ.

use super::compile::{Graph, Kind, NodeId};
use super::kernels::ranges::{self, Step};
use super::kernels::select::Keep;
use super::{ColumnMeta, Expr, Function};
use crate::types::PhysicalType;
use crate::{ColumnId, DataType, Result, Value, Vector};
use std::collections::HashMap;
use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

/// Expressions compiled for chunks of one shape. Immutable, shared by all workers.
#[derive(Debug)]
pub struct Program {
    source: Vec<Expr>,
    outputs: Vec<ColumnMeta>,
    fallible: bool,
    pub(super) values: Code,
    /// For programs of conditions: the code that narrows.
    pub(super) narrowing: Option<Code>,
}

/// Two programs are equal if they were compiled from the same expressions and have the same results.
impl PartialEq for Program {
    fn eq(&self, other: &Program) -> bool {
        self.source == other.source && self.outputs == other.outputs
    }
}
impl Eq for Program {}

pub(super) type Register = usize;
pub(super) type SelectionId = usize;

/// One compiled form of a program.
#[derive(Debug, Default)]
pub(super) struct Code {
    pub registers: Vec<Initial>,
    pub selections: usize,
    pub instructions: Vec<Instruction>,
    /// The columns that instructions read, each once.
    pub inputs: Vec<usize>,
    /// One per expression; empty in code that narrows.
    pub outputs: Vec<Register>,
    /// The rows that remain, in code that narrows.
    pub rows: SelectionId,
    /// The registers whose memory may be another register's or the input's.
    pub shared: Vec<(Register, Shared)>,
}

/// What a register shares with another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shared {
    /// All but the validity.
    Values,
    /// The bytes of strings, not their views.
    Strings,
}

/// What a register holds before the first instruction.
#[derive(Debug)]
pub(super) enum Initial {
    /// A column of the chunk: its number, the physical type in which it comes, and the default one of its SQL
    /// type.
    Column(usize, PhysicalType, PhysicalType),
    /// A constant.
    Constant(Vector),
    /// Nothing; an instruction writes it.
    Computed(PhysicalType),
}

#[derive(Debug)]
pub(super) struct Instruction {
    pub op: Op,
    pub args: Vec<Register>,
    /// SQL types of the arguments.
    pub types: Vec<DataType>,
    /// The register written; unused by instructions that write a selection.
    pub out: Register,
    /// SQL type of `out`.
    pub ty: DataType,
    /// The rows to compute.
    pub rows: SelectionId,
}

impl Instruction {
    /// What its result shares with an operand.
    fn shared(&self) -> Option<Shared> {
        let Op::Compute(kind) = &self.op else { return None };
        let is_text = self.ty.physical() == PhysicalType::Str;
        match kind {
            Kind::Mask { .. } => Some(Shared::Values),
            Kind::Blend if is_text => Some(Shared::Strings),
            Kind::String(Function::Substring) => Some(Shared::Strings),
            Kind::PerEntry(program) => {
                let code = &program.values;
                code.shared
                    .iter()
                    .find(|(register, _)| *register == code.outputs[0])
                    .map(|(_, shared)| *shared)
            }
            _ => None,
        }
    }
}

#[derive(Debug)]
pub(super) enum Op {
    /// out <- kind(args)
    Compute(Kind),
    /// selection <- the rows whose argument is kept
    Narrow(Keep, SelectionId),
    /// selection <- the rows that are not in the first
    Without(SelectionId, SelectionId),
    /// selection <- the rows that are in one of the first
    Union(Vec<SelectionId>, SelectionId),
    /// selection <- the rows whose arguments satisfy the condition
    Ranges(Vec<Step>, SelectionId),
    /// out <- a vector to be filled piece by piece
    Begin,
    /// out <- true or false in all rows
    Fill(bool),
    /// out[rows] <- args
    Place,
    /// out[rows] <- out and/or args
    Mix { or: bool },
}

impl Program {
    /// Compiles `exprs` over chunks whose column i is `input[i]`.
    ///
    /// # Errors
    /// Internal, if an expression reads a column that is not in `input` or is not well typed; input, for a
    /// `LIKE` pattern that ends with its escape character.
    pub fn compile(exprs: &[Expr], input: &[ColumnMeta]) -> Result<Arc<Program>> {
        Program::build(exprs, input, true, &|_| false)
    }

    /// As [`Program::compile`]; the results that `as_is` names by their number may come in any physical type
    /// that holds them, as [`Program::outputs`] says. The others are decimals in 64 or 128 bits, and all else
    /// in the default type.
    ///
    /// # Errors
    /// As [`Program::compile`].
    pub fn compile_narrow(
        exprs: &[Expr],
        input: &[ColumnMeta],
        as_is: &dyn Fn(usize) -> bool,
    ) -> Result<Arc<Program>> {
        Program::build(exprs, input, true, as_is)
    }

    /// Compiles without folding constants, without programs per dictionary entry, which are made by this, and
    /// without narrowing to 32 bits.
    pub(super) fn compile_as_is(exprs: &[Expr], input: &[ColumnMeta]) -> Result<Arc<Program>> {
        Program::build(exprs, input, false, &|_| false)
    }

    fn build(
        exprs: &[Expr],
        input: &[ColumnMeta],
        optimize: bool,
        as_is: &dyn Fn(usize) -> bool,
    ) -> Result<Arc<Program>> {
        let mut graph = Graph::new(input, optimize);
        let mut roots = exprs.iter().map(|expr| graph.add(expr)).collect::<Result<Vec<_>>>()?;
        roots.iter_mut().enumerate().for_each(|(i, root)| *root = graph.output(*root, as_is(i)));
        let outputs = roots
            .iter()
            .map(|&root| {
                let node = &graph.nodes[root];
                let id = match node.kind {
                    Kind::Column(at) => input[at].id,
                    _ => ColumnId(u32::MAX),
                };
                let ColumnMeta { range, .. } = ColumnMeta::new(id, node.ty);
                let range = node.range.or(range);
                ColumnMeta { id, ty: node.ty, physical: node.physical, nullable: node.nullable, range }
            })
            .collect();
        let fallible = roots.iter().any(|&root| graph.nodes[root].fallible);
        let mut emitter = Emitter::new(&graph, &roots);
        let registers = roots.iter().map(|&root| emitter.emit(root, 0)).collect::<Result<Vec<_>>>()?;
        let mut values = emitter.finish();
        values.outputs = registers;

        let conditions = !exprs.is_empty() && exprs.iter().all(|expr| expr.ty() == DataType::Boolean);
        let narrowing = if conditions {
            let mut graph = Graph::new(input, optimize);
            let parts = graph.add_conjunction(exprs)?;
            let mut emitter = Emitter::new(&graph, &[]);
            let mut rows = 0;
            for part in parts {
                rows = emitter.narrow(part, rows)?;
            }
            let mut code = emitter.finish();
            code.rows = rows;
            Some(code)
        } else {
            None
        };
        Ok(Arc::new(Program { source: exprs.to_vec(), outputs, fallible, values, narrowing }))
    }

    /// What is known about the results, in order. The id is `ColumnId(u32::MAX)` unless the expression is a
    /// plain column.
    pub fn outputs(&self) -> &[ColumnMeta] {
        &self.outputs
    }

    /// True if a result is a column of the input as it is, perhaps under another type.
    pub(super) fn passes_column(&self, output: usize) -> bool {
        matches!(self.values.registers[self.values.outputs[output]], Initial::Column(..))
    }

    /// Bytes that its instructions write per row: a measure of its work.
    pub fn written_bytes(&self) -> usize {
        let written = self.values.registers.iter().map(|initial| match initial {
            Initial::Computed(physical) => physical.width(),
            Initial::Column(..) | Initial::Constant(_) => 0,
        });
        written.sum()
    }

    /// Whether running it may raise an error.
    pub fn is_fallible(&self) -> bool {
        self.fallible
    }
}

/// Turns a graph into code.
struct Emitter<'a> {
    graph: &'a Graph<'a>,
    code: Code,
    /// Where a node has been computed, and for which selection.
    computed: HashMap<(NodeId, SelectionId), Register>,
    /// The selection that each selection was narrowed from; 0 is its own.
    parents: Vec<SelectionId>,
    /// Nodes that all rows need.
    unconditional: HashSet<NodeId>,
}

impl<'a> Emitter<'a> {
    fn new(graph: &'a Graph<'a>, roots: &[NodeId]) -> Emitter<'a> {
        let mut unconditional = HashSet::new();
        let mut open = roots.to_vec();
        while let Some(id) = open.pop() {
            if unconditional.insert(id) {
                let node = &graph.nodes[id];
                match node.kind {
                    Kind::Case | Kind::LazyJunction { .. } => open.push(node.args[0]),
                    _ => open.extend(&node.args),
                }
            }
        }
        let code = Code { selections: 1, ..Code::default() };
        Emitter { graph, code, computed: HashMap::new(), parents: vec![0], unconditional }
    }

    fn finish(mut self) -> Code {
        let mut inputs = Vec::new();
        for arg in self.code.instructions.iter().flat_map(|instruction| &instruction.args) {
            match self.code.registers[*arg] {
                Initial::Column(at, ..) if !inputs.contains(&at) => inputs.push(at),
                _ => {}
            }
        }
        self.code.inputs = inputs;
        let shared = self.code.instructions.iter().filter_map(|i| i.shared().map(|shared| (i.out, shared)));
        self.code.shared = shared.collect();
        self.code
    }

    fn selection(&mut self, parent: SelectionId) -> SelectionId {
        self.parents.push(parent);
        self.code.selections += 1;
        self.code.selections - 1
    }

    fn register(&mut self, initial: Initial) -> Register {
        self.code.registers.push(initial);
        self.code.registers.len() - 1
    }

    fn push(
        &mut self,
        op: Op,
        args: Vec<Register>,
        types: Vec<DataType>,
        out: (Register, DataType),
        rows: SelectionId,
    ) {
        self.code.instructions.push(Instruction { op, args, types, out: out.0, ty: out.1, rows });
    }

    /// The register that holds the node for `rows` at least.
    fn emit(&mut self, id: NodeId, rows: SelectionId) -> Result<Register> {
        let node = &self.graph.nodes[id];
        let rows = match node.kind {
            Kind::Column(_) | Kind::Constant(_) => 0,
            _ if self.unconditional.contains(&id) => 0,
            _ => rows,
        };
        let mut scope = rows;
        loop {
            if let Some(&register) = self.computed.get(&(id, scope)) {
                return Ok(register);
            }
            if scope == 0 {
                break;
            }
            scope = self.parents[scope];
        }
        let register = match &node.kind {
            Kind::Column(at) => self.register(Initial::Column(*at, node.physical, node.ty.physical())),
            Kind::Constant(Value::Integer(bits)) if node.ty == DataType::Uuid => {
                let ordered = Value::Integer(crate::vector::uuid_to_ordered(*bits));
                self.register(Initial::Constant(Vector::constant(node.physical, &ordered)?))
            }
            Kind::Constant(value) => {
                self.register(Initial::Constant(Vector::constant(node.physical, value)?))
            }
            Kind::Retype => self.emit(node.args[0], rows)?,
            Kind::Case => self.case(id, rows)?,
            Kind::LazyJunction { or } => self.lazy_junction(*or, id, rows)?,
            kind => {
                let args = node.args.iter().map(|&arg| self.emit(arg, rows)).collect::<Result<Vec<_>>>()?;
                let types = node.args.iter().map(|&arg| self.graph.nodes[arg].ty).collect();
                let out = self.register(Initial::Computed(node.physical));
                self.push(Op::Compute(kind.clone()), args, types, (out, node.ty), rows);
                out
            }
        };
        self.computed.insert((id, rows), register);
        Ok(register)
    }

    fn case(&mut self, id: NodeId, rows: SelectionId) -> Result<Register> {
        let node = &self.graph.nodes[id];
        let (branches, rest) = node.args.split_at(node.args.len() - 1);
        let out = self.register(Initial::Computed(node.physical));
        self.push(Op::Begin, vec![], vec![], (out, node.ty), rows);
        let mut open = rows;
        for branch in branches.chunks(2) {
            let taken = self.narrow(branch[0], open)?;
            let result = self.emit(branch[1], taken)?;
            self.push(Op::Place, vec![result], vec![node.ty], (out, node.ty), taken);
            let left = self.selection(open);
            self.push(Op::Without(taken, left), vec![], vec![], (out, node.ty), open);
            open = left;
        }
        let result = self.emit(rest[0], open)?;
        self.push(Op::Place, vec![result], vec![node.ty], (out, node.ty), open);
        Ok(out)
    }

    fn lazy_junction(&mut self, or: bool, id: NodeId, rows: SelectionId) -> Result<Register> {
        let node = &self.graph.nodes[id];
        let out = self.register(Initial::Computed(node.physical));
        self.push(Op::Fill(!or), vec![], vec![], (out, node.ty), rows);
        let keep = if or { Keep::NotTrue } else { Keep::NotFalse };
        let mut open = rows;
        for (i, &part) in node.args.iter().enumerate() {
            let value = self.emit(part, open)?;
            self.push(Op::Mix { or }, vec![value], vec![node.ty], (out, node.ty), open);
            if i + 1 < node.args.len() {
                let left = self.selection(open);
                self.push(Op::Narrow(keep, left), vec![value], vec![node.ty], (out, node.ty), open);
                open = left;
            }
        }
        Ok(out)
    }

    /// The selection of those of `rows` for which the condition is true.
    fn narrow(&mut self, id: NodeId, rows: SelectionId) -> Result<SelectionId> {
        let node = &self.graph.nodes[id];
        if rows == 0
            && let Some((steps, columns)) = self.graph.ranges(id)
        {
            let args = columns.iter().map(|&column| self.emit(column, 0)).collect::<Result<Vec<_>>>()?;
            let types = columns.iter().map(|&column| self.graph.nodes[column].ty).collect();
            let to = self.selection(rows);
            self.push(Op::Ranges(steps, to), args, types, (0, node.ty), rows);
            return Ok(to);
        }
        match node.kind {
            Kind::LazyJunction { or: false } => {
                let mut open = rows;
                for &part in &node.args {
                    open = self.narrow(part, open)?;
                }
                Ok(open)
            }
            Kind::LazyJunction { or: true } => {
                let mut open = rows;
                let mut taken = Vec::new();
                // Of these, those that have been left out.
                let mut without = 0;
                for &part in &node.args {
                    if self.graph.is_worth_leaving_out(part) {
                        for &passed in &taken[without..] {
                            let left = self.selection(open);
                            self.push(Op::Without(passed, left), vec![], vec![], (0, node.ty), open);
                            open = left;
                        }
                        without = taken.len();
                    }
                    taken.push(self.narrow(part, open)?);
                }
                let to = self.selection(rows);
                self.push(Op::Union(taken, to), vec![], vec![], (0, node.ty), rows);
                Ok(to)
            }
            _ => {
                let value = self.emit(id, rows)?;
                let to = self.selection(rows);
                self.push(Op::Narrow(Keep::True, to), vec![value], vec![node.ty], (0, node.ty), rows);
                Ok(to)
            }
        }
    }
}

impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.narrowing {
            Some(code) => write!(f, "{code}keep s{}", code.rows),
            None => {
                write!(f, "{}give", self.values)?;
                self.values.outputs.iter().try_for_each(|r| write!(f, " r{r}"))
            }
        }
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (r, initial) in self.registers.iter().enumerate() {
            match initial {
                Initial::Column(at, physical, held) if physical == held => {
                    writeln!(f, "r{r} <- column {at} [{physical:?}]")?;
                }
                Initial::Column(at, physical, held) => {
                    writeln!(f, "r{r} <- column {at} [{physical:?} of {held:?}]")?
                }
                Initial::Constant(vector) => {
                    let (physical, ty) = (vector.physical(), plain(vector.physical()));
                    writeln!(f, "r{r} <- {} [{physical:?}]", vector.value(0, ty).display(ty))?;
                }
                Initial::Computed(_) => {}
            }
        }
        for instruction in &self.instructions {
            let Instruction { op, args, out, rows, .. } = instruction;
            let args: Vec<String> = args.iter().map(|arg| format!("r{arg}")).collect();
            let args = args.join(", ");
            let physical = match self.registers.get(*out) {
                Some(Initial::Computed(physical)) => format!("{physical:?}"),
                _ => String::new(),
            };
            match op {
                Op::Compute(kind) => {
                    writeln!(f, "r{out} <- {}({args}) [{physical}] for s{rows}", kind.name())?
                }
                Op::Narrow(keep, to) => writeln!(f, "s{to} <- {keep:?} rows of {args} in s{rows}")?,
                Op::Without(taken, to) => writeln!(f, "s{to} <- s{rows} without s{taken}")?,
                Op::Union(parts, to) => writeln!(f, "s{to} <- union of {parts:?} in s{rows}")?,
                Op::Ranges(steps, to) => {
                    let condition =
                        ranges::in_words(steps, |operand| format!("r{}", instruction.args[operand]));
                    writeln!(f, "s{to} <- rows with {condition} in s{rows}")?;
                }
                Op::Begin => writeln!(f, "r{out} <- nothing yet [{physical}] for s{rows}")?,
                Op::Fill(value) => writeln!(f, "r{out} <- {value} for s{rows}")?,
                Op::Place => writeln!(f, "r{out} <- {args} for s{rows}")?,
                Op::Mix { or } => {
                    writeln!(f, "r{out} <- r{out} {} {args} for s{rows}", if *or { "or" } else { "and" })?
                }
            }
        }
        Ok(())
    }
}

/// The type under which values of a physical type print as they are held: dates as days, decimals without a
/// point.
fn plain(physical: PhysicalType) -> DataType {
    match physical {
        PhysicalType::Bool => DataType::Boolean,
        PhysicalType::I8 => DataType::Int8,
        PhysicalType::I16 => DataType::Int16,
        PhysicalType::I32 => DataType::Int32,
        PhysicalType::I64 => DataType::Int64,
        PhysicalType::I128 => DataType::Decimal { precision: 38, scale: 0 },
        PhysicalType::U8 => DataType::UInt8,
        PhysicalType::U16 => DataType::UInt16,
        PhysicalType::U32 => DataType::UInt32,
        PhysicalType::U64 => DataType::UInt64,
        PhysicalType::F32 => DataType::Float32,
        PhysicalType::F64 => DataType::Float64,
        PhysicalType::Str => DataType::Varchar,
        PhysicalType::Interval => DataType::Interval,
    }
}

impl Kind {
    /// The operation in a word or two.
    fn name(&self) -> String {
        match self {
            Kind::Compare(op) => op.to_string(),
            Kind::Arithmetic(op, check) => match check {
                super::kernels::arithmetic::Check::Nothing => op.to_string(),
                _ => format!("{op} checked"),
            },
            Kind::Calendar(op) => format!("calendar {op}"),
            Kind::Single(single) => format!("{single:?}").to_lowercase(),
            Kind::Extract(part) => format!("extract {part:?}").to_lowercase(),
            Kind::Truncate(part) => format!("truncate {part:?}").to_lowercase(),
            Kind::Saturate => "saturate".to_string(),
            Kind::String(function) => format!("{function:?}").to_lowercase(),
            Kind::External(function) => function.name().to_string(),
            Kind::Junction { or } => if *or { "or" } else { "and" }.to_string(),
            Kind::Mask { kept } => if *kept { "null unless" } else { "null if" }.to_string(),
            Kind::InList(_) => "in".to_string(),
            Kind::Like(_) | Kind::LikeDynamic { .. } => "like".to_string(),
            Kind::PerEntry(_) => "per entry".to_string(),
            other => format!("{other:?}").to_lowercase(),
        }
    }
}
