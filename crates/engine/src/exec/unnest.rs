//! Unnest: a row for each element of its lists. The input's columns stay where they are, under a selection
//! that names a row as often as it has elements; the elements are collected as bytes, a chunk of them, and
//! then decoded into vectors of their own ([`entasis_vector::parts`]).

use crate::exec::operator::{Flow, Operator, OperatorFactory, Push};
use entasis_vector::expr::{ColumnMeta, Expr, Machine, Program};
use entasis_vector::parts::{Part, write_parts};
use entasis_vector::value::nested::Reader;
use entasis_vector::{
    Buffer, CHUNK_ROWS, Chunk, ColumnId, DataType, Error, Result, Selection, StringView, Vector, statement,
};
use std::sync::Arc;

/// Takes lists apart.
#[derive(Debug)]
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
        Ok(Box::new(Worker {
            machine: Machine::new(self.program.clone()),
            computed: Chunk::new(),
            lists: self.elements.iter().map(|ty| Vector::new(DataType::list(*ty).physical())).collect(),
            made: Made {
                types: self.elements.clone(),
                vectors: self.elements.iter().map(|ty| Vector::new(ty.physical())).collect(),
                picks: Vec::with_capacity(self.chunk_rows),
                chunk_rows: self.chunk_rows,
                spares: Vec::new(),
            },
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
}

/// Rows that are made.
struct Made {
    types: Vec<DataType>,
    /// The elements.
    vectors: Vec<Vector>,
    /// The input row of each.
    picks: Vec<u16>,
    chunk_rows: usize,
    spares: Vec<Arc<Buffer>>,
}

impl Made {
    /// Pushes the rows, which are of `chunk`, with these elements, which are taken out.
    fn push(&mut self, chunk: &Chunk, elements: &mut [Vec<Part<'_>>], next: &mut dyn Push) -> Result<Flow> {
        // A single row may have any number of elements.
        statement::check()?;
        let mut out = chunk.clone();
        out.select(&self.picks, &mut self.spares);
        let dense = out.push_group(Selection::ALL);
        for ((vector, ty), elements) in self.vectors.iter_mut().zip(&self.types).zip(elements) {
            // Those of a list that has ended are NULL.
            elements.resize(self.picks.len(), None);
            write_parts(elements, *ty, vector)?;
            elements.clear();
            out.push_column(vector.clone(), dense);
        }
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
        let (lists, made) = (&self.lists, &mut self.made);
        let mut elements: Vec<Vec<Part<'_>>> = lists.iter().map(|_| Vec::with_capacity(CHUNK_ROWS)).collect();
        let mut readers: Vec<Option<Reader<'_>>> = Vec::with_capacity(lists.len());
        for row in 0..chunk.len() {
            readers.clear();
            readers.extend(lists.iter().map(|list| {
                list.is_valid(row).then(|| Reader::new(list.values::<StringView>()[row].as_bytes()))
            }));
            loop {
                let (at, mut is_there) = (made.picks.len(), false);
                for ((reader, ty), elements) in readers.iter_mut().zip(&made.types).zip(&mut elements) {
                    match reader.as_mut().map_or(Ok(None), |reader| reader.element(*ty))? {
                        // At its end a list is read no more.
                        None => *reader = None,
                        Some(part) => {
                            // Others had more elements before.
                            elements.resize(at, None);
                            elements.push(part);
                            is_there = true;
                        }
                    }
                }
                if !is_there {
                    break;
                }
                made.picks.push(row as u16);
                if made.picks.len() == made.chunk_rows && made.push(chunk, &mut elements, next)? == Flow::Stop
                {
                    return Ok(Flow::Stop);
                }
            }
        }
        match made.picks.is_empty() {
            true => Ok(Flow::Continue),
            false => made.push(chunk, &mut elements, next),
        }
    }
}
