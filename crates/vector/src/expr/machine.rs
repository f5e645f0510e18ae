//! The machine: one worker's registers, and the run of a [`Program`] over a chunk.
//!
//! **Where a program runs.** To compute values: if all columns that it reads share a group, in the positions
//! of that group, under the group's selection, and the results join the group; nothing is copied. Otherwise
//! the columns are gathered row by row first, and the results form a group without selection. To narrow:
//! always by row, since the rows that pass are identified by number; columns of a group with a selection are
//! gathered when an instruction first reads them, so not at all if no row is left by then. Gathering keeps
//! constants and dictionary codes as they are.
//!
//! **Encodings.** Kernels take flat and constant vectors. A dictionary vector is decoded for the current rows
//! when a kernel needs it; programs over one string column run per entry instead (`entries.rs`).
//!
//! **Memory.** Registers keep their buffers from chunk to chunk. References to the input are dropped at the
//! end of each run, so that the producer of the chunk can write its vectors again in place.

use super::Function;
use super::compile::Kind;
use super::entries::Entries;
use super::external::External;
use super::kernels::{Rows, arithmetic, blend, boolean, cast, compare, date, list, ranges, select, string};
use super::program::{Code, Initial, Instruction, Op, Program, Register, SelectionId, Shared};
use crate::buffer::{Buffer, Native};
use crate::statement::{Charge, STEP, charge};
use crate::types::PhysicalType;
use crate::vector::{Encoding, Vector};
use crate::{CHUNK_ROWS, Chunk, DataType, Error, Result, Selection, bitmap, selection};
use std::sync::Arc;

/// One worker's registers for a program.
#[derive(Debug)]
pub struct Machine {
    program: Arc<Program>,
    values: Option<Frame>,
    narrowing: Option<Frame>,
    /// For each group of the input, the group of the output that continues it.
    groups: Vec<Option<usize>>,
    picks: Vec<u16>,
    spares: Vec<Arc<Buffer>>,
    /// The memory of many registers.
    _charge: Option<Charge>,
}

/// Gives a column of the input: its number, the register, and a buffer that stays with the column.
type Load<'a> = &'a mut dyn FnMut(usize, &mut Vector, &mut Vector);

impl Machine {
    /// Registers for `program`.
    pub fn new(program: Arc<Program>) -> Machine {
        Machine {
            program,
            values: None,
            narrowing: None,
            groups: Vec::new(),
            picks: Vec::new(),
            spares: Vec::new(),
            _charge: None,
        }
    }

    /// Computes all expressions for the rows of `input` and appends them to `output` as columns. The caller
    /// has reset `output` to the same row count; the groups that are needed are added.
    ///
    /// # Errors
    /// Input errors of the expressions.
    pub fn project(&mut self, input: &Chunk, output: &mut Chunk) -> Result<()> {
        let code = &self.program.values;
        let frame = match &mut self.values {
            Some(frame) => frame,
            none => {
                let bytes = self.program.written_bytes() * CHUNK_ROWS;
                self._charge = if bytes >= STEP { charge(bytes) } else { None };
                none.insert(Frame::new(code))
            }
        };
        let rows = input.len();
        let home = home(code, input);
        let computed = match home {
            Home::Group(group) => input.groups()[group].clone(),
            Home::Rows => Selection::ALL,
        };
        match (home, computed.indices(rows)) {
            (Home::Group(_), Some(positions)) => {
                let limit = selection::limit(positions);
                frame.run(code, Rows::Sparse(positions, limit), &mut |c, into, _| {
                    *into = input.vector(c).clone()
                })?;
            }
            (Home::Group(_), None) => {
                frame.run(code, Rows::Dense(rows), &mut |c, into, _| *into = input.vector(c).clone())?;
            }
            (Home::Rows, _) => {
                frame.run(code, Rows::Dense(rows), &mut |c, into, kept| by_row(input, c, into, kept))?
            }
        }
        self.groups.clear();
        self.groups.resize(input.groups().len(), None);
        let mut fresh = None;
        for &register in &code.outputs {
            let passed = match code.registers[register] {
                Initial::Column(at, ..) => Some(at),
                _ => None,
            };
            let source = passed.map(|at| input.column(at).group).or(match home {
                Home::Group(group) => Some(group),
                Home::Rows => None,
            });
            let group = match source {
                Some(group) => {
                    let selection = || input.groups()[group].clone();
                    *self.groups[group].get_or_insert_with(|| output.push_group(selection()))
                }
                None => *fresh.get_or_insert_with(|| output.push_group(Selection::ALL)),
            };
            let vector = match passed {
                Some(at) => input.vector(at),
                None => &frame.registers[register],
            };
            output.push_column(vector.clone(), group);
        }
        frame.release(code);
        Ok(())
    }

    /// Narrows `chunk` to the rows for which all expressions, which are BOOLEAN, are true.
    ///
    /// # Errors
    /// Input errors of the expressions.
    pub fn filter(&mut self, chunk: &mut Chunk) -> Result<()> {
        self.select(chunk)?;
        if self.picks.len() < chunk.len() {
            chunk.select(&self.picks, &mut self.spares);
        }
        Ok(())
    }

    /// The numbers of the rows for which all expressions, which are BOOLEAN, are true, ascending.
    ///
    /// # Errors
    /// Input errors of the expressions; internal if an expression is not BOOLEAN.
    pub fn select(&mut self, chunk: &Chunk) -> Result<&[u16]> {
        let rows = chunk.len();
        self.picks.clear();
        let Some(code) = &self.program.narrowing else {
            return Err(Error::internal("a filter whose expressions are not conditions"));
        };
        let frame = self.narrowing.get_or_insert_with(|| Frame::new(code));
        frame.run(code, Rows::Dense(rows), &mut |c, into, kept| by_row(chunk, c, into, kept))?;
        frame.release(code);
        match code.rows {
            0 => self.picks.extend(0..rows as u16),
            last => std::mem::swap(&mut self.picks, &mut frame.selections[last]),
        }
        Ok(&self.picks)
    }
}

/// Where values are computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Home {
    /// In the positions of a group of the input.
    Group(usize),
    /// Row r at position r.
    Rows,
}

fn home(code: &Code, input: &Chunk) -> Home {
    let mut groups = code.inputs.iter().map(|&column| input.column(column).group);
    match groups.next() {
        Some(first) if groups.all(|group| group == first) => Home::Group(first),
        _ => Home::Rows,
    }
}

/// Column `c` by row, in `into`: as it is if it is by row already, otherwise gathered in `kept`.
fn by_row(chunk: &Chunk, c: usize, into: &mut Vector, kept: &mut Vector) {
    let vector = chunk.vector(c);
    let rows = chunk.len();
    match (chunk.positions(c), vector.encoding()) {
        (None, _) | (_, Encoding::Constant) => *into = vector.clone(),
        (positions, Encoding::Flat) => {
            vector.flatten_into(positions, rows, kept);
            *into = kept.clone();
        }
        (Some(positions), Encoding::Dictionary) => {
            let dictionary = vector.dictionary().expect("a dictionary vector has one");
            let codes = vector.codes();
            let target = kept.begin_codes(dictionary, rows.max(CHUNK_ROWS));
            target.iter_mut().zip(&positions[..rows]).for_each(|(t, &p)| *t = codes[p as usize]);
            if let Some(validity) = vector.validity() {
                let target = kept.validity_mut(rows);
                for (r, &p) in positions[..rows].iter().enumerate() {
                    bitmap::set(target, r, bitmap::get(validity, p as usize));
                }
            }
            *into = kept.clone();
        }
    }
}

/// The registers and selections of one [`Code`].
#[derive(Debug)]
pub(super) struct Frame {
    registers: Vec<Vector>,
    /// Whether a column's register has been loaded in this run.
    loaded: Vec<bool>,
    /// The buffers of columns that had to be gathered.
    gathered: Vec<Vector>,
    /// The flat form of registers that hold a dictionary vector, and the selection that it is good for in
    /// this run.
    decoded: Vec<(Vector, Option<SelectionId>)>,
    selections: Vec<Vec<u16>>,
    /// One byte per position, all zero between instructions.
    marks: Vec<u8>,
    /// By instruction.
    entries: Vec<Option<Box<Entries>>>,
    external: External,
    blank: Vector,
}

impl Frame {
    pub fn new(code: &Code) -> Frame {
        let blank = Vector::new(PhysicalType::Bool);
        let registers = code.registers.iter().map(|initial| match initial {
            Initial::Column(..) => blank.clone(),
            Initial::Constant(vector) => vector.clone(),
            Initial::Computed(physical) => Vector::new(*physical),
        });
        let entries = code.instructions.iter().map(|instruction| match &instruction.op {
            Op::Compute(Kind::PerEntry(program)) => Some(Box::new(Entries::new(program))),
            _ => None,
        });
        let count = code.registers.len();
        Frame {
            registers: registers.collect(),
            loaded: vec![false; count],
            gathered: vec![blank.clone(); count],
            decoded: vec![(blank.clone(), None); count],
            selections: vec![Vec::new(); code.selections],
            marks: Vec::new(),
            entries: entries.collect(),
            external: External::new(Vector::new(PhysicalType::Bool)),
            blank,
        }
    }

    /// Runs the code for `rows`, selection 0.
    ///
    /// # Errors
    /// Those of the expressions.
    pub fn run(&mut self, code: &Code, rows: Rows<'_>, load: Load<'_>) -> Result<()> {
        self.loaded.fill(false);
        self.decoded.iter_mut().for_each(|(_, good)| *good = None);
        for (at, instruction) in code.instructions.iter().enumerate() {
            if let Err(error) = self.step(code, at, instruction, rows, load) {
                self.release(code);
                return Err(error);
            }
        }
        Ok(())
    }

    /// Drops references to the input, and of registers to each other.
    pub fn release(&mut self, code: &Code) {
        for (register, initial) in self.registers.iter_mut().zip(&code.registers) {
            if let Initial::Column(..) = initial {
                *register = self.blank.clone();
            }
        }
        for &(register, shared) in &code.shared {
            let register = &mut self.registers[register];
            match shared {
                // Results of a program per entry, which have a dictionary of their own.
                _ if register.encoding() == Encoding::Dictionary => {}
                Shared::Values => register.drop_values(),
                Shared::Strings => register.drop_strings(),
            }
        }
    }

    /// The result of code with one output, which is no column.
    pub fn output(&self, code: &Code) -> &Vector {
        &self.registers[code.outputs[0]]
    }

    /// Hands the result of code with one output over for the memory in `out`.
    pub fn swap_output(&mut self, code: &Code, out: &mut Vector) {
        let register = code.outputs[0];
        match code.registers[register] {
            Initial::Computed(_) => std::mem::swap(&mut self.registers[register], out),
            _ => *out = self.registers[register].clone(),
        }
    }

    fn step(
        &mut self,
        code: &Code,
        at: usize,
        instruction: &Instruction,
        all: Rows<'_>,
        load: Load<'_>,
    ) -> Result<()> {
        let Instruction { op, args, out, rows: selection, .. } = instruction;
        // Selections are lists of their own, moved out while they are written.
        let target = match op {
            Op::Narrow(_, to) | Op::Without(_, to) | Op::Union(_, to) | Op::Ranges(_, to) => Some(*to),
            _ => None,
        };
        let empty = if *selection == 0 { all.len() == 0 } else { self.selections[*selection].is_empty() };
        if empty {
            if let Some(to) = target {
                self.selections[to].clear();
            }
            return Ok(());
        }
        for &arg in args {
            self.load(code, arg, load);
            let raw = matches!(op, Op::Compute(Kind::PerEntry(_) | Kind::IsNull));
            if !raw && self.registers[arg].encoding() == Encoding::Dictionary {
                self.decode(arg, *selection, all);
            }
        }
        match target {
            Some(to) => {
                let mut list = std::mem::take(&mut self.selections[to]);
                let done = self.narrow(op, args, *selection, all, &mut list);
                self.selections[to] = list;
                done
            }
            None => {
                let mut result = std::mem::replace(&mut self.registers[*out], self.blank.clone());
                let done = self.execute(at, instruction, all, &mut result);
                self.registers[*out] = result;
                done
            }
        }
    }

    /// Runs an instruction that writes a selection.
    fn narrow(
        &mut self,
        op: &Op,
        args: &[Register],
        selection: SelectionId,
        all: Rows<'_>,
        list: &mut Vec<u16>,
    ) -> Result<()> {
        let mut marks = std::mem::take(&mut self.marks);
        let rows = self.rows(selection, all);
        match op {
            Op::Narrow(keep, _) => select::narrow(self.arg(args[0]), *keep, rows, list),
            Op::Without(taken, _) => {
                select::subtract(&[&self.selections[*taken]], false, rows, &mut marks, list)
            }
            Op::Union(parts, _) => {
                let parts: Vec<&[u16]> = parts.iter().map(|part| self.selections[*part].as_slice()).collect();
                select::subtract(&parts, true, rows, &mut marks, list);
            }
            Op::Ranges(steps, _) => ranges::select(steps, |operand| self.arg(args[operand]), rows, list),
            _ => return Err(Error::internal("this instruction writes no selection")),
        }
        self.marks = marks;
        Ok(())
    }

    /// Runs an instruction that writes a register.
    fn execute(
        &mut self,
        at: usize,
        instruction: &Instruction,
        all: Rows<'_>,
        out: &mut Vector,
    ) -> Result<()> {
        let Instruction { op, args, types, ty, rows: selection, .. } = instruction;
        let mut entries = self.entries[at].take();
        let mut external = std::mem::replace(&mut self.external, External::new(self.blank.clone()));
        let rows = self.rows(*selection, all);
        let done = match op {
            Op::Compute(Kind::PerEntry(program)) => {
                let entries = entries.as_mut().expect("made with the frame");
                entries.compute(program, &self.registers[args[0]], rows, out)
            }
            Op::Compute(Kind::External(function)) => {
                let args = args.iter().map(|&arg| self.arg(arg));
                external.evaluate(&**function, args, rows, out)
            }
            Op::Compute(kind) => self.compute(kind, args, types, *ty, rows, out),
            Op::Begin => {
                out.begin(rows.limit().max(CHUNK_ROWS));
                Ok(())
            }
            Op::Fill(value) => {
                boolean::fill(*value, rows, out);
                Ok(())
            }
            Op::Place => {
                select::place(self.arg(args[0]), rows, out);
                Ok(())
            }
            Op::Mix { or } => {
                boolean::junction_into(*or, self.arg(args[0]), rows, out);
                Ok(())
            }
            Op::Narrow(..) | Op::Without(..) | Op::Union(..) | Op::Ranges(..) => {
                Err(Error::internal("this instruction writes a selection"))
            }
        };
        self.entries[at] = entries;
        self.external = external;
        done
    }

    fn compute(
        &self,
        kind: &Kind,
        args: &[Register],
        types: &[DataType],
        ty: DataType,
        rows: Rows<'_>,
        out: &mut Vector,
    ) -> Result<()> {
        let arg = |i: usize| self.arg(args[i]);
        match kind {
            Kind::Compare(op) => compare::compare(*op, arg(0), arg(1), rows, out),
            Kind::Between => compare::between(arg(0), arg(1), arg(2), rows, out),
            Kind::Arithmetic(op, check) => arithmetic::arithmetic(*op, *check, arg(0), arg(1), ty, rows, out),
            Kind::Single(single) => arithmetic::single(*single, arg(0), ty, rows, out),
            Kind::Calendar(op) => {
                date::arithmetic(*op, (arg(0), types[0]), (arg(1), types[1]), ty, rows, out)
            }
            Kind::NegateInterval => date::negate(arg(0), rows, out),
            Kind::Resize => cast::resize(arg(0), rows, out),
            Kind::Cast { lenient } => cast::cast(arg(0), types[0], ty, *lenient, rows, out),
            Kind::Saturate => cast::saturate(arg(0), types[0], ty, rows, out),
            Kind::Not => boolean::not(arg(0), rows, out),
            Kind::Junction { or } => {
                boolean::junction(*or, arg(0), arg(1), rows, out);
                Ok(())
            }
            Kind::IsNull => {
                boolean::is_null(&self.registers[args[0]], rows, out);
                Ok(())
            }
            Kind::Blend => {
                blend::blend(arg(0), arg(1), arg(2), rows, out);
                Ok(())
            }
            Kind::Mask { kept } => {
                blend::mask(arg(0), *kept, arg(1), rows, out);
                Ok(())
            }
            Kind::Like(pattern) => string::like(pattern, arg(0), rows, out),
            Kind::LikeDynamic { escape, case_insensitive } => {
                string::like_dynamic(*escape, *case_insensitive, arg(0), arg(1), rows, out)
            }
            Kind::InList(members) => list::in_list(members, arg(0), rows, out),
            Kind::Extract(part) => date::extract(*part, arg(0), types[0], rows, out),
            Kind::Truncate(part) => date::truncated(*part, arg(0), types[0], ty, rows, out),
            Kind::String(Function::Concat) => {
                let args: Vec<&Vector> = args.iter().map(|&arg| self.arg(arg)).collect();
                string::string(Function::Concat, &args, rows, out)
            }
            Kind::String(function) => {
                let mut few = [arg(0); 3];
                few.iter_mut().zip(args).for_each(|(few, &arg)| *few = self.arg(arg));
                string::string(*function, &few[..args.len().min(3)], rows, out)
            }
            Kind::Column(_)
            | Kind::Constant(_)
            | Kind::Retype
            | Kind::LazyJunction { .. }
            | Kind::Case
            | Kind::External(_)
            | Kind::PerEntry(_) => Err(Error::internal("this operation is no kernel's")),
        }
    }

    fn rows<'a>(&'a self, selection: SelectionId, all: Rows<'a>) -> Rows<'a> {
        match selection {
            0 => all,
            other => Rows::Sparse(&self.selections[other], all.limit()),
        }
    }

    /// A register, flat or constant.
    fn arg(&self, register: Register) -> &Vector {
        match self.registers[register].encoding() {
            Encoding::Dictionary => &self.decoded[register].0,
            _ => &self.registers[register],
        }
    }

    fn load(&mut self, code: &Code, register: Register, load: Load<'_>) {
        if let Initial::Column(at, ..) = code.registers[register]
            && !self.loaded[register]
        {
            load(at, &mut self.registers[register], &mut self.gathered[register]);
            self.loaded[register] = true;
        }
    }

    /// Makes the flat form of a dictionary register good for `selection`.
    fn decode(&mut self, register: Register, selection: SelectionId, all: Rows<'_>) {
        if matches!(self.decoded[register].1, Some(good) if good == 0 || good == selection) {
            return;
        }
        let mut flat = std::mem::replace(&mut self.decoded[register].0, self.blank.clone());
        let source = &self.registers[register];
        if flat.physical() != source.physical() {
            flat = Vector::new(source.physical());
        }
        decode(source, self.rows(selection, all), &mut flat);
        self.decoded[register] = (flat, Some(selection));
    }
}

/// Writes the values of `rows` of a dictionary vector flat to `out`.
fn decode(source: &Vector, rows: Rows<'_>, out: &mut Vector) {
    fn copy<T: Native>(source: &Vector, rows: Rows<'_>, out: &mut Vector) {
        let values = source.dictionary().expect("a dictionary vector has one").values().values::<T>();
        let (codes, out) = (source.codes(), out.values_mut::<T>());
        // Codes at NULL positions may be of another dictionary.
        rows.each(|p| out[p] = values.get(codes[p] as usize).copied().unwrap_or_default());
    }
    out.begin(rows.limit().max(CHUNK_ROWS));
    out.share_strings(source);
    match out.physical() {
        PhysicalType::Str => copy::<crate::StringView>(source, rows, out),
        other => match other.width() {
            1 => copy::<u8>(source, rows, out),
            2 => copy::<u16>(source, rows, out),
            4 => copy::<u32>(source, rows, out),
            8 => copy::<u64>(source, rows, out),
            _ => copy::<i128>(source, rows, out),
        },
    }
    if let Some(validity) = source.validity() {
        let words = bitmap::words_for(rows.limit());
        let target = &mut out.validity_mut(rows.limit())[..words];
        target.iter_mut().zip(validity).for_each(|(t, v)| *t = *v);
    }
}
