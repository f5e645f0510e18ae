//! Functions of the host program: what an application registers on its connection, to be called by SQL.
//!
//! A *scalar* function gets the arguments of up to a chunk of rows and gives a result for each. It follows
//! the rules of our own functions: arguments are cast as they are for an overload, a row with a NULL gives
//! NULL and is not passed unless the function asks for NULLs, and calls with constants alone are computed
//! once unless the function is volatile. An *aggregate* ([`collected`]) gets all rows of a group at once.
//!
//! Functions are called from several threads at the same time, for rows in any order, and only for rows that
//! the statement asks for. What they return is checked here: a function cannot break what the engine relies
//! on.
//!
//! Not here: table functions, which are relations and belong to the owner of the catalog; and how values look
//! to the host program (Arrow arrays, Python objects), which is the business of the interfaces.

mod collected;

pub use collected::HostAggregate;

use crate::types::{Given, implicit};
use entasis_vector::error::sqlstate;
use entasis_vector::expr::ExternalFunction;
use entasis_vector::{CHUNK_ROWS, DataType, Error, Result, Value, Vector, statement};
use std::cell::RefCell;
use std::fmt;
use std::sync::Arc;

/// The arguments that a function takes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Takes {
    /// One of each of these types; others are cast as they would be for a function of our own.
    Types(Vec<DataType>),
    /// Any number of arguments, as they come.
    Anything,
}

/// The arguments of a call for some rows.
#[derive(Debug, Clone, Copy)]
pub struct HostArguments<'a> {
    /// A flat or constant vector for each argument.
    pub vectors: &'a [Vector],
    /// Their types.
    pub types: &'a [DataType],
    /// Where the rows are in the vectors; `None`: at the first positions.
    pub positions: Option<&'a [u16]>,
    /// The number of rows.
    pub rows: usize,
}

impl HostArguments<'_> {
    /// The value of an argument in a row.
    pub fn value(&self, row: usize, argument: usize) -> Value {
        let at = self.positions.map_or(row, |positions| usize::from(positions[row]));
        self.vectors[argument].value(at, self.types[argument])
    }
}

/// Computes the results of all rows into a vector of the result's type, row r at position r.
pub type ComputeRows = dyn Fn(HostArguments<'_>, &mut Vector) -> Result<()> + Send + Sync;
/// Computes the result of a group from the values of each argument, in the order of the rows.
pub type ComputeGroup = dyn Fn(&[DataType], &[Vec<Value>]) -> Result<Value> + Send + Sync;

/// What computes a function.
#[derive(Clone)]
pub enum Compute {
    /// A result for each row.
    Rows(Arc<ComputeRows>),
    /// A result for each group of rows.
    Group(Arc<ComputeGroup>),
}

/// A function that the host program has registered. See the module.
#[derive(Clone)]
pub struct HostFunction {
    /// The name, in lower case.
    pub name: String,
    /// The connection on which it is registered.
    pub owner: u64,
    /// The arguments.
    pub takes: Takes,
    /// The type of the result.
    pub result: DataType,
    /// True if it is called for rows in which an argument is NULL.
    pub takes_nulls: bool,
    /// True if its results do not follow from its arguments alone.
    pub is_volatile: bool,
    /// What computes it.
    pub compute: Compute,
}

impl fmt::Debug for HostFunction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = if self.is_aggregate() { "aggregate" } else { "function" };
        write!(f, "{kind} {}({:?}) -> {}", self.name, self.takes, self.result)
    }
}

impl HostFunction {
    /// True for an aggregate.
    pub fn is_aggregate(&self) -> bool {
        matches!(self.compute, Compute::Group(_))
    }

    /// The types to which the arguments of a call are cast.
    ///
    /// # Errors
    /// Input, if the function does not take such arguments.
    pub fn types(&self, given: &[Given]) -> Result<Vec<DataType>> {
        let Takes::Types(types) = &self.takes else {
            return Ok(given.iter().map(|given| given.settled()).collect());
        };
        let fits = types.len() == given.len()
            && types.iter().zip(given).all(|(ty, given)| implicit(*given, *ty).is_some());
        if fits {
            return Ok(types.clone());
        }
        let list = |types: &mut dyn Iterator<Item = String>| types.collect::<Vec<_>>().join(", ");
        let given = list(&mut given.iter().map(Given::to_string));
        let wanted = list(&mut types.iter().map(DataType::to_string));
        let error = Error::input(format!("{}({wanted}) does not take ({given})", self.name));
        Err(error.with_sqlstate(sqlstate::NO_FUNCTION).with_hint("cast an argument: CAST(value AS type)"))
    }

    /// An error of the function, which says whose it is.
    fn failed(&self, error: Error) -> Error {
        error.with_context(format!("the function {}", self.name))
    }
}

thread_local! {
    /// The owners of the functions that this thread runs, the innermost last.
    static CALLERS: RefCell<Vec<u64>> = const { RefCell::new(Vec::new()) };
}

/// True while this thread runs a function that `owner` has registered. A statement that such a function ran
/// on its own connection would wait for the statement that calls it.
pub fn is_called_by(owner: u64) -> bool {
    CALLERS.with_borrow(|callers| callers.contains(&owner))
}

/// Calls `compute` as a function that `owner` has registered.
pub fn called<T>(owner: u64, compute: impl FnOnce() -> T) -> T {
    struct Call;
    impl Drop for Call {
        fn drop(&mut self) {
            CALLERS.with_borrow_mut(|callers| callers.pop());
        }
    }
    CALLERS.with_borrow_mut(|callers| callers.push(owner));
    let _call = Call;
    compute()
}

/// A scalar function with the types of a call.
#[derive(Debug)]
pub struct HostCall {
    function: HostFunction,
    types: Vec<DataType>,
}

impl HostCall {
    /// A call of a scalar function with arguments of these types.
    pub fn new(function: HostFunction, types: Vec<DataType>) -> HostCall {
        HostCall { function, types }
    }

    fn compute(&self, arguments: HostArguments<'_>, out: &mut Vector) -> Result<()> {
        let Compute::Rows(compute) = &self.function.compute else {
            return Err(Error::internal("an aggregate is called for rows"));
        };
        statement::check()?;
        called(self.function.owner, || compute(arguments, out))
            .map_err(|error| self.function.failed(error))?;
        if out.physical() != self.function.result.physical() {
            return Err(Error::internal(format!("{} gave a vector of another type", self.function.name)));
        }
        Ok(())
    }
}

impl ExternalFunction for HostCall {
    fn name(&self) -> &str {
        &self.function.name
    }

    fn is_immutable(&self) -> bool {
        !self.function.is_volatile
    }

    fn is_volatile(&self) -> bool {
        self.function.is_volatile
    }

    fn evaluate(&self, args: &[Vector], rows: usize, out: &mut Vector) -> Result<()> {
        let whole = HostArguments { vectors: args, types: &self.types, positions: None, rows };
        let mut there: Vec<u16> = Vec::new();
        if !self.function.takes_nulls {
            let is_there = |row: usize| args.iter().all(|arg| arg.is_valid(row));
            there.extend((0..rows).filter(|row| is_there(*row)).map(|row| row as u16));
        }
        if self.function.takes_nulls || there.len() == rows {
            return self.compute(whole, out);
        }
        let mut results = Vector::new(out.physical());
        if !there.is_empty() {
            let some = HostArguments { positions: Some(&there), rows: there.len(), ..whole };
            self.compute(some, &mut results)?;
        }
        out.begin(rows.max(CHUNK_ROWS));
        let ty = self.function.result;
        let mut there = there.into_iter().enumerate().peekable();
        for row in 0..rows {
            match there.next_if(|(_, own)| usize::from(*own) == row) {
                Some((at, _)) => out.write_value_of(row, &results.value(at, ty), ty)?,
                None => out.set_null(row),
            }
        }
        Ok(())
    }
}
