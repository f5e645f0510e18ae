//! The layout of an aggregation: which expressions it computes, which states it keeps, and how states become
//! results.
//!
//! Calls are taken apart so that nothing is computed or kept twice:
//! - all keys, arguments, filters and order keys are outputs of one program, in which equal expressions occur
//!   once;
//! - `sum(x)` is a sum and, where it may have seen no value, a count; `avg(x)` the same sum over the same
//!   count; states with the same kind, argument and filter are one state;
//! - arguments that are only summed or counted stay as narrow as the program has them;
//! - states with the same argument and filter form a [`Feed`], which finds the rows that count once for all
//!   of them.
//!
//! Calls with `DISTINCT` or `ORDER BY` are *deferred*: their rows are collected ([`super::deferred`]) and fed
//! to their states at the end.

use super::state::StateKind;
use crate::plan::{AggregateCall, AggregateFunction};
use entasis_vector::expr::{ColumnMeta, Expr, Program};
use entasis_vector::types::pow10;
use entasis_vector::{ColumnId, DataType, Error, PhysicalType, Result};
use std::sync::Arc;

/// `arg`, computed only where `filter` is true: rows that do not count raise no errors.
pub fn guarded(arg: &Expr, filter: Option<&Expr>) -> Expr {
    match (arg, filter) {
        (Expr::Column { .. } | Expr::Literal { .. }, _) | (_, None) => arg.clone(),
        (_, Some(filter)) => {
            Expr::Case { branches: vec![(filter.clone(), arg.clone())], otherwise: None, ty: arg.ty() }
        }
    }
}

/// True if a call takes its argument in any physical type of integers: it sums, or counts, rows as they come.
pub fn takes_narrow(call: &AggregateCall) -> bool {
    use AggregateFunction as F;
    matches!(call.function, F::Sum | F::Avg | F::Count) && !call.distinct && call.order_by.is_empty()
}

/// How an aggregation works. Made once, shared by all workers.
#[derive(Debug)]
pub struct AggregateLayout {
    /// Computes keys, arguments, filters and order keys; `None` if there are none.
    pub program: Option<Arc<Program>>,
    /// The keys: the program's first outputs.
    pub keys: Vec<ColumnMeta>,
    /// All states.
    pub states: Vec<StateSpec>,
    /// States that are fed chunk by chunk, with the program's outputs.
    pub feeds: Vec<Feed>,
    /// States that are fed at the end.
    pub deferred: Vec<DeferredSpec>,
    /// The aggregates' results.
    pub results: Vec<ResultSpec>,
    /// The columns that come out: keys, then results.
    pub output: Vec<ColumnMeta>,
    /// The column of the input that each output of the program is, if rows may be folded where they are
    /// stored: without keys, over nothing but columns of integers.
    pub stored: Option<Vec<usize>>,
}

/// A state that an aggregation keeps.
#[derive(Debug)]
pub struct StateSpec {
    /// What it computes.
    pub kind: StateKind,
    /// What is known about its argument.
    pub argument: Option<ColumnMeta>,
    /// Index of the deferred call that feeds it; `None`: it is fed chunk by chunk.
    deferred: Option<usize>,
    args: Vec<usize>,
    filter: Option<usize>,
}

/// States that see the same rows of the same arguments.
#[derive(Debug)]
pub struct Feed {
    /// Columns of the chunk; at most one unless a state is external.
    pub args: Vec<usize>,
    /// BOOLEAN column of the chunk; only rows where it is true count.
    pub filter: Option<usize>,
    /// True: rows with a NULL argument count too.
    pub keeps_nulls: bool,
    /// True: states need the arguments dense, each of its type's default physical type.
    pub external: bool,
    /// Indexes of the states.
    pub states: Vec<usize>,
    /// Types of the arguments.
    pub types: Vec<DataType>,
}

/// A call whose rows are collected first.
#[derive(Debug)]
pub struct DeferredSpec {
    /// The program's outputs to collect: arguments, then order keys.
    pub columns: Vec<usize>,
    /// BOOLEAN output of the program; only rows where it is true are collected.
    pub filter: Option<usize>,
    /// Equal rows of a group are collected once.
    pub distinct: bool,
    /// Order in which a group's rows are fed: index in `columns`, descending, NULLs first.
    pub order: Vec<(usize, bool, bool)>,
    /// What is known about `columns`.
    pub metas: Vec<ColumnMeta>,
    /// The states to feed. Columns count from the first of `columns` plus one: column 0 is the group.
    pub feeds: Vec<Feed>,
}

impl PartialEq for Feed {
    fn eq(&self, other: &Feed) -> bool {
        self.args == other.args && self.filter == other.filter && self.external == other.external
    }
}

/// How a result is computed from the states.
#[derive(Debug)]
pub struct ResultSpec {
    /// The column of the result.
    pub meta: ColumnMeta,
    /// The states from which it is computed.
    pub kind: ResultKind,
}

/// See [`ResultSpec`]. Numbers are indexes of states; `seen` counts values; if there are none, the result is
/// NULL.
#[derive(Debug)]
pub enum ResultKind {
    /// A count.
    Count(usize),
    /// An exact sum.
    Integers {
        /// The sum.
        sum: usize,
        /// The count of values.
        seen: Option<usize>,
    },
    /// A sum of floats.
    Floats {
        /// The sum.
        sum: usize,
        /// The count of values.
        seen: Option<usize>,
    },
    /// `sum / (count * unit)`.
    Mean {
        /// The sum, exact or of floats.
        sum: usize,
        /// The count.
        count: usize,
        /// 10 to the scale of the argument.
        unit: f64,
    },
    /// A minimum or maximum.
    Extreme {
        /// The state.
        state: usize,
        /// The count of values.
        seen: Option<usize>,
    },
    /// A first value.
    Any(usize),
    /// The result of an external state.
    External(usize),
}

impl ResultKind {
    /// True if a result may be NULL; `is_open`: nothing says that a group has a value that counts.
    fn is_nullable(&self, is_open: bool) -> bool {
        match self {
            ResultKind::Count(_) => false,
            ResultKind::Integers { seen, .. }
            | ResultKind::Floats { seen, .. }
            | ResultKind::Extreme { seen, .. } => seen.is_some(),
            ResultKind::Mean { .. } | ResultKind::Any(_) => is_open,
            ResultKind::External(_) => true,
        }
    }
}

impl AggregateLayout {
    /// Decomposes keys and calls, over chunks of `input`.
    ///
    /// # Errors
    /// Those of compiling the expressions; not supported, for types that an aggregate does not take.
    pub fn new(
        input: &[ColumnMeta],
        groups: &[(ColumnId, Expr)],
        aggregates: &[(ColumnId, AggregateCall)],
    ) -> Result<AggregateLayout> {
        // Keys keep their places even if two are equal; everything else is shared.
        let mut exprs: Vec<Expr> = groups.iter().map(|(_, expr)| expr.clone()).collect();
        let mut output_of = |expr: &Expr| match exprs.iter().position(|e| e == expr && !e.is_volatile()) {
            Some(at) => at,
            None => {
                exprs.push(expr.clone());
                exprs.len() - 1
            }
        };
        let calls: Vec<Call> = aggregates
            .iter()
            .map(|(id, call)| Call {
                id: *id,
                call,
                args: call.args.iter().map(|arg| output_of(&guarded(arg, call.filter.as_ref()))).collect(),
                filter: call.filter.as_ref().map(&mut output_of),
                order: call.order_by.iter().map(|key| output_of(&key.expr)).collect(),
            })
            .collect();
        let mut as_is = vec![true; exprs.len()];
        as_is[..groups.len()].fill(false);
        for call in &calls {
            let args = call.args.iter().filter(|_| !takes_narrow(call.call));
            args.chain(&call.filter).chain(&call.order).for_each(|&output| as_is[output] = false);
        }
        let program = match exprs.is_empty() {
            true => None,
            false => Some(Program::compile_narrow(&exprs, input, &|output| as_is[output])?),
        };
        // Stored values have the default physical type, however narrow they travel.
        let is_stored = |meta: &ColumnMeta| meta.ty.physical().is_integer() && meta.physical.is_integer();
        let place = |expr: &Expr| match expr {
            Expr::Column { id, .. } => input.iter().position(|meta| meta.id == *id && is_stored(meta)),
            _ => None,
        };
        let stored = exprs.iter().map(place).collect::<Option<Vec<_>>>();
        let metas = program.as_ref().map_or(&[][..], |program| program.outputs());
        let keys: Vec<ColumnMeta> =
            groups.iter().zip(metas).map(|((id, _), meta)| ColumnMeta { id: *id, ..meta.clone() }).collect();
        let metas = metas.to_vec();
        let mut layout = AggregateLayout {
            program,
            output: keys.clone(),
            keys,
            states: Vec::new(),
            feeds: Vec::new(),
            deferred: Vec::new(),
            results: Vec::new(),
            stored: None,
        };
        for call in calls {
            let result = layout.plan(&call, &metas)?;
            layout.output.push(result.meta.clone());
            layout.results.push(result);
        }
        let folds = |state: &StateSpec| {
            matches!(state.kind, StateKind::Count | StateKind::Integers | StateKind::Extreme { .. })
                && state.filter.is_none()
        };
        let folds = groups.is_empty() && layout.deferred.is_empty() && layout.states.iter().all(folds);
        layout.stored = stored.filter(|_| folds);
        Ok(layout)
    }

    /// True if groups cannot be merged in partitions, because some state can only be merged whole.
    pub fn merges_whole(&self) -> bool {
        !self.deferred.is_empty()
            || self.states.iter().any(|state| matches!(state.kind, StateKind::External(_)))
    }

    /// True if the outputs of the program may wait, partitioned by the groups' hashes, and be folded in
    /// later: there are keys, and no state that is fed as rows come can only be merged whole.
    pub fn may_wait(&self) -> bool {
        let is_whole =
            |state: &StateSpec| matches!(state.kind, StateKind::External(_)) && state.deferred.is_none();
        !self.keys.is_empty() && self.program.is_some() && !self.states.iter().any(is_whole)
    }

    /// True if some count or sum takes marks of positions, and no state needs the groups of rows.
    pub fn sums_rows(&self) -> bool {
        let takes_marks =
            |&state: &usize| matches!(self.states[state].kind, StateKind::Count | StateKind::Integers);
        let is_marked =
            |feed: &Feed| feed.filter.is_none() && !feed.external && feed.states.iter().all(takes_marks);
        self.deferred.is_empty() && self.feeds.iter().any(is_marked)
    }

    /// For each state the result that an external function gives.
    pub fn results_of_states(&self) -> impl Iterator<Item = Option<&ColumnMeta>> {
        (0..self.states.len()).map(|state| {
            let of_state =
                |result: &&ResultSpec| matches!(result.kind, ResultKind::External(s) if s == state);
            self.results.iter().find(of_state).map(|result| &result.meta)
        })
    }

    fn plan(&mut self, call: &Call<'_>, metas: &[ColumnMeta]) -> Result<ResultSpec> {
        use AggregateFunction as F;
        let function = &call.call.function;
        let argument = call.args.first().map(|&arg| &metas[arg]);
        if call.args.len() != 1 && !matches!(function, F::CountStar | F::External(_)) {
            return Err(Error::not_supported(format!(
                "{} of {} arguments",
                function.name(),
                call.args.len()
            )));
        }
        let place = self.place(call, metas);
        let unsupported =
            |meta: &ColumnMeta| Error::not_supported(format!("{} of {}", function.name(), meta.ty));
        let ty = call.call.ty;
        let mut meta = ColumnMeta::new(call.id, ty);
        let kind = match (function, argument) {
            (F::CountStar, _) => ResultKind::Count(self.count(call, place, None)),
            (F::Count, Some(argument)) => ResultKind::Count(self.count(call, place, Some(argument))),
            (F::Sum, Some(argument)) => {
                let seen = self.seen(call, place, argument);
                let kind = summing(argument).ok_or_else(|| unsupported(argument))?;
                let sum = self.state(call, place, kind.clone(), Some(argument));
                match kind {
                    StateKind::Integers if !ty.is_float() => ResultKind::Integers { sum, seen },
                    StateKind::Integers => return Err(unsupported(argument)),
                    _ => ResultKind::Floats { sum, seen },
                }
            }
            (F::Avg, Some(argument)) => {
                let kind = summing(argument).ok_or_else(|| unsupported(argument))?;
                let sum = self.state(call, place, kind, Some(argument));
                let unit = match argument.ty {
                    DataType::Decimal { scale, .. } => pow10(scale) as f64,
                    _ => 1.0,
                };
                ResultKind::Mean { sum, count: self.count(call, place, Some(argument)), unit }
            }
            (F::Min | F::Max | F::BoolAnd | F::BoolOr, Some(argument)) => {
                meta.physical = argument.physical;
                meta.range = argument.range;
                let largest = matches!(function, F::Max | F::BoolOr);
                let seen = self.seen(call, place, argument);
                let state = self.state(call, place, StateKind::Extreme { largest }, Some(argument));
                ResultKind::Extreme { state, seen }
            }
            (F::AnyValue, Some(argument)) => {
                meta.physical = argument.physical;
                meta.range = argument.range;
                ResultKind::Any(self.state(call, place, StateKind::Any, Some(argument)))
            }
            (F::External(external), _) => {
                ResultKind::External(self.state(call, place, StateKind::External(external.clone()), argument))
            }
            (_, None) => return Err(Error::internal(format!("{} without an argument", function.name()))),
        };
        let may_lack_rows = self.keys.is_empty() || call.filter.is_some();
        meta.nullable = kind.is_nullable(may_lack_rows || argument.is_none_or(|a| a.nullable));
        if let ResultKind::Count(_) = kind {
            meta.range = Some((0, i64::MAX.into()));
        }
        Ok(ResultSpec { meta, kind })
    }

    /// Where a call's rows go: to a deferred collection, or straight to the states.
    fn place(&mut self, call: &Call<'_>, metas: &[ColumnMeta]) -> Option<usize> {
        use AggregateFunction as F;
        let function = &call.call.function;
        let counts_duplicates = matches!(function, F::Count | F::Sum | F::Avg | F::External(_));
        let distinct = call.call.distinct && counts_duplicates;
        // Sums of exact numbers do not depend on the order of their rows; those of floats do.
        let depends = match function {
            F::External(_) | F::AnyValue => true,
            F::Sum | F::Avg => call.args.first().is_some_and(|&arg| metas[arg].ty.is_float()),
            _ => false,
        };
        let ordered = !call.order.is_empty() && depends;
        if !distinct && !ordered {
            return None;
        }
        let mut columns = call.args.clone();
        let mut order = Vec::new();
        if ordered {
            for (&output, key) in call.order.iter().zip(&call.call.order_by) {
                let at = columns.iter().position(|&column| column == output).unwrap_or_else(|| {
                    columns.push(output);
                    columns.len() - 1
                });
                order.push((at, key.descending, key.nulls_first));
            }
        }
        let metas = columns.iter().map(|&column| metas[column].clone()).collect();
        let spec = DeferredSpec { columns, filter: call.filter, distinct, order, metas, feeds: Vec::new() };
        let same = |other: &DeferredSpec| {
            (&other.columns, other.filter, other.distinct, &other.order)
                == (&spec.columns, spec.filter, spec.distinct, &spec.order)
        };
        Some(self.deferred.iter().position(same).unwrap_or_else(|| {
            self.deferred.push(spec);
            self.deferred.len() - 1
        }))
    }

    /// The count that tells whether a group has a value of `argument`, if it may have none.
    fn seen(&mut self, call: &Call<'_>, place: Option<usize>, argument: &ColumnMeta) -> Option<usize> {
        let in_question = argument.nullable || call.filter.is_some() || self.keys.is_empty();
        in_question.then(|| self.count(call, place, Some(argument)))
    }

    /// The count of rows, or of rows where `argument` is not NULL.
    fn count(&mut self, call: &Call<'_>, place: Option<usize>, argument: Option<&ColumnMeta>) -> usize {
        match argument.filter(|argument| argument.nullable) {
            Some(argument) => self.state(call, place, StateKind::Count, Some(argument)),
            None => self.state_of(&[], call.filter, place, StateKind::Count, &[]),
        }
    }

    fn state(
        &mut self,
        call: &Call<'_>,
        place: Option<usize>,
        kind: StateKind,
        argument: Option<&ColumnMeta>,
    ) -> usize {
        let types: Vec<DataType> = call.call.args.iter().map(Expr::ty).collect();
        let state = self.state_of(&call.args, call.filter, place, kind, &types);
        self.states[state].argument = argument.cloned();
        state
    }

    /// The state of `kind` over program outputs `args`: an existing one, or a new one with its feed.
    fn state_of(
        &mut self,
        args: &[usize],
        filter: Option<usize>,
        place: Option<usize>,
        kind: StateKind,
        types: &[DataType],
    ) -> usize {
        let same =
            |s: &StateSpec| s.kind == kind && s.args == args && s.filter == filter && s.deferred == place;
        if let Some(at) = self.states.iter().position(same) {
            return at;
        }
        let external = matches!(kind, StateKind::External(_));
        let state = self.states.len();
        self.states.push(StateSpec { kind, argument: None, deferred: place, args: args.to_vec(), filter });
        let mut feed = Feed {
            args: args.to_vec(),
            filter,
            keeps_nulls: external,
            external,
            states: vec![state],
            types: types.to_vec(),
        };
        let feeds = match place {
            None => &mut self.feeds,
            Some(at) => {
                // Filtered when collected; arguments are found by their place in the collection.
                let deferred = &mut self.deferred[at];
                let column =
                    |arg: &usize| deferred.columns.iter().position(|c| c == arg).expect("collected") + 1;
                feed.args = args.iter().map(column).collect();
                feed.filter = None;
                &mut deferred.feeds
            }
        };
        match feeds.iter_mut().find(|other| **other == feed) {
            Some(other) => other.states.push(state),
            None => feeds.push(feed),
        }
        state
    }
}

/// A call, its expressions replaced by outputs of the program.
struct Call<'a> {
    id: ColumnId,
    call: &'a AggregateCall,
    args: Vec<usize>,
    filter: Option<usize>,
    order: Vec<usize>,
}

/// How values like these are summed, if they can be.
fn summing(argument: &ColumnMeta) -> Option<StateKind> {
    match argument.physical {
        PhysicalType::F32 | PhysicalType::F64 => Some(StateKind::Floats),
        _ if argument.ty.is_integer() || argument.ty.is_decimal() => Some(StateKind::Integers),
        _ => None,
    }
}
