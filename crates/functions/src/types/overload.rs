//! The choice of an overload.
//!
//! 1. Overloads that take so many arguments.
//! 2. Of these, those whose arguments become what they take unasked ([`implicit`]).
//! 3. Of these, those of the least sum of costs.
//! 4. Of these, one after another, as long as there are several: those with the most arguments that are
//!    exactly what they take; those with the most preferred types (DOUBLE, VARCHAR, TIMESTAMPTZ, INTERVAL,
//!    BOOLEAN); those that take a VARCHAR where a text was written; those that take for what is open the type
//!    of what is known.
//! 5. Several that are left are an error.

use super::Given;
use super::implicit::implicit;
use crate::definition::Overload;
use entasis_vector::DataType;

/// An overload, and what its arguments are cast to.
pub struct Chosen<'a> {
    /// The overload.
    pub overload: &'a Overload,
    /// The types of the arguments.
    pub args: Vec<DataType>,
}

/// Several overloads are equally near.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ambiguous;

/// Whether an argument speaks for an overload that takes this type.
type Rank<'a> = dyn Fn((&Given, DataType)) -> bool + 'a;

/// The cost of an argument that may be of any type.
const ANY: u32 = 1;

/// The overload for arguments of which this is given; `None` if there is none.
///
/// # Errors
/// If several are equally near.
pub fn choose<'a>(overloads: &'a [Overload], given: &[Given]) -> Result<Option<Chosen<'a>>, Ambiguous> {
    let mut nearest: Vec<&Overload> = Vec::new();
    let mut least = u32::MAX;
    for overload in overloads.iter().filter(|overload| takes_so_many(overload, given.len())) {
        let Some(cost) = given.iter().zip(wanted(overload)).map(cost).sum::<Option<u32>>() else { continue };
        if cost < least {
            (least, nearest) = (cost, Vec::new());
        }
        if cost == least {
            nearest.push(overload);
        }
    }
    let known = known_type(given);
    let ranks: [&Rank; 4] = [
        &|(given, wanted)| given.settled() == wanted,
        &|(_, wanted)| is_preferred(wanted),
        &|(given, wanted)| *given == Given::Text && wanted == DataType::Varchar,
        &|(given, wanted)| given.is_open() && Some(wanted) == known,
    ];
    for rank in ranks {
        if nearest.len() > 1 {
            let count =
                |overload: &Overload| given.iter().zip(wanted(overload)).filter(|pair| rank(*pair)).count();
            let most = nearest.iter().map(|overload| count(overload)).max().unwrap_or(0);
            nearest.retain(|overload| count(overload) == most);
        }
    }
    match nearest.as_slice() {
        [] => Ok(None),
        [overload] => {
            let args = given.iter().zip(wanted(overload));
            let args =
                args.map(|(given, wanted)| if wanted == DataType::Null { given.settled() } else { wanted });
            Ok(Some(Chosen { overload, args: args.collect() }))
        }
        _ => Err(Ambiguous),
    }
}

fn takes_so_many(overload: &Overload, count: usize) -> bool {
    count == overload.args.len() || (count > overload.args.len() && overload.rest.is_some())
}

/// The types that it takes, for any number of arguments.
fn wanted(overload: &Overload) -> impl Iterator<Item = DataType> + '_ {
    overload.args.iter().copied().chain(overload.rest.iter().copied().cycle())
}

fn cost((given, wanted): (&Given, DataType)) -> Option<u32> {
    match wanted {
        DataType::Null => Some(ANY),
        wanted => implicit(*given, wanted).map(|cost| cost.0),
    }
}

fn is_preferred(ty: DataType) -> bool {
    use DataType as T;
    matches!(ty, T::Float64 | T::Varchar | T::TimestampTz | T::Interval | T::Boolean)
}

/// The type of all arguments that are known, if it is one.
fn known_type(given: &[Given]) -> Option<DataType> {
    let mut known = given.iter().filter(|given| !given.is_open()).map(|given| given.settled());
    let first = known.next()?;
    known.all(|ty| ty == first).then_some(first)
}
