//! Unnest: a row for each element of its lists. The input's columns stay where they are, under a selection
//! that names a row as often as it has elements; the elements are decoded into vectors of their own.
//!
//! Not done: loops for elements of one width. Each is decoded to a [`Value`] and written on its own, which is
//! most of the time that this takes (`docs/decisions/0037-nested-values-are-bytes.md`).

use crate::exec::operator::{Flow, Operator, OperatorFactory, Push};
use entasis_vector::expr::{ColumnMeta, Expr, Machine, Program};
use entasis_vector::value::nested::{self, Reader};
use entasis_vector::vector::uuid_to_ordered;
use entasis_vector::{
    Buffer, CHUNK_ROWS, Chunk, ColumnId, DataType, Error, Result, Selection, StringView, Value, Vector,
    statement,
};
use std::sync::Arc;

/// Takes lists apart.
pub(crate) struct Unnest {
    program: Arc<Program>,
    /// The types of the elements.
    elements: Vec<DataType>,
    /// The input's columns, and then the elements.
    output: Vec<ColumnMeta>,
    /// The most rows of a chunk.
    chunk_rows: usize,
}

impl Unnest {
    /// Takes `lists` apart, each with the id of its elements.
    ///
    /// # Errors
    /// Those of compiling the expressions; internal, if one is no list.
    pub(crate) fn new(lists: &[(ColumnId, Expr)], input: &[ColumnMeta], chunk_rows: usize) -> Result<Unnest> {
        let mut elements = Vec::with_capacity(lists.len());
        for (_, list) in lists {
            match list.ty() {
                DataType::List(element) => elements.push(*element),
                other => return Err(Error::internal(format!("a {other} is no list"))),
            }
        }
        let only: Vec<Expr> = lists.iter().map(|(_, list)| list.clone()).collect();
        let program = Program::compile(&only, input)?;
        let mut output = input.to_vec();
        output.extend(lists.iter().zip(&elements).map(|((id, _), ty)| ColumnMeta::new(*id, *ty)));
        Ok(Unnest { program, elements, output, chunk_rows: chunk_rows.min(CHUNK_ROWS) })
    }

    /// The columns that come out.
    pub(crate) fn output(&self) -> &[ColumnMeta] {
        &self.output
    }
}

impl OperatorFactory for Unnest {
    fn worker(&self) -> Result<Box<dyn Operator>> {
        let count = self.elements.len();
        Ok(Box::new(Worker {
            machine: Machine::new(self.program.clone()),
            computed: Chunk::new(),
            lists: self.elements.iter().map(|ty| Vector::new(DataType::list(*ty).physical())).collect(),
            made: Made {
                types: self.elements.clone(),
                vectors: self.elements.iter().map(|ty| Vector::new(ty.physical())).collect(),
                picks: Vec::with_capacity(self.chunk_rows),
                chunk_rows: self.chunk_rows,
            },
            parts: vec![None; count],
            spares: Vec::new(),
        }))
    }

    fn programs(&self) -> Vec<&Program> {
        vec![&self.program]
    }
}

struct Worker {
    machine: Machine,
    computed: Chunk,
    /// The lists of a chunk, flat.
    lists: Vec<Vector>,
    made: Made,
    /// The next element of each list, once one has any.
    parts: Vec<Option<Value>>,
    spares: Vec<Arc<Buffer>>,
}

/// Rows that are made.
struct Made {
    types: Vec<DataType>,
    /// The elements.
    vectors: Vec<Vector>,
    /// The input row of each.
    picks: Vec<u16>,
    chunk_rows: usize,
}

impl Made {
    /// Adds a row with these elements.
    fn add(&mut self, row: usize, parts: &mut [Option<Value>]) -> Result<()> {
        let at = self.picks.len();
        if at == 0 {
            self.vectors.iter_mut().for_each(|vector| vector.begin(CHUNK_ROWS));
        }
        for ((vector, ty), part) in self.vectors.iter_mut().zip(&self.types).zip(parts) {
            match part.take().unwrap_or(Value::Null) {
                Value::Integer(v) if *ty == DataType::Uuid => {
                    vector.write_value(at, &Value::Integer(uuid_to_ordered(v)))?;
                }
                value => vector.write_value(at, &value)?,
            }
        }
        self.picks.push(row as u16);
        Ok(())
    }

    /// Pushes the rows, which are of `chunk`.
    fn push(&mut self, chunk: &Chunk, spares: &mut Vec<Arc<Buffer>>, next: &mut dyn Push) -> Result<Flow> {
        // A single row may have any number of elements.
        statement::check()?;
        let mut out = chunk.clone();
        out.select(&self.picks, spares);
        let dense = out.push_group(Selection::ALL);
        self.vectors.iter().for_each(|vector| out.push_column(vector.clone(), dense));
        self.picks.clear();
        next.push(&mut out)
    }
}

impl Operator for Worker {
    fn push(&mut self, chunk: &mut Chunk, next: &mut dyn Push) -> Result<Flow> {
        self.computed.reset(chunk.len());
        self.machine.project(chunk, &mut self.computed)?;
        for (i, list) in self.lists.iter_mut().enumerate() {
            self.computed.flatten_column(i, list);
        }
        // Releases the machine's registers.
        self.computed.reset(0);
        for row in 0..chunk.len() {
            let mut readers: Vec<Option<Reader<'_>>> = self
                .lists
                .iter()
                .map(|list| {
                    list.is_valid(row).then(|| Reader::new(list.values::<StringView>()[row].as_bytes()))
                })
                .collect();
            loop {
                let mut is_there = false;
                for ((reader, ty), part) in readers.iter_mut().zip(&self.made.types).zip(&mut self.parts) {
                    let next = reader.as_mut().map_or(Ok(None), |reader| reader.element(*ty))?;
                    // At its end a list is read no more.
                    let Some(next) = next else {
                        *reader = None;
                        continue;
                    };
                    is_there = true;
                    *part = next.map(|bytes| nested::decode(bytes, *ty)).transpose()?;
                }
                if !is_there {
                    break;
                }
                self.made.add(row, &mut self.parts)?;
                if self.made.picks.len() == self.made.chunk_rows
                    && self.made.push(chunk, &mut self.spares, next)? == Flow::Stop
                {
                    return Ok(Flow::Stop);
                }
            }
        }
        match self.made.picks.is_empty() {
            true => Ok(Flow::Continue),
            false => self.made.push(chunk, &mut self.spares, next),
        }
    }
}
