//! Every function of the catalog, called with long texts, bytes and lists: it looks whether its statement may
//! go on once for so many bytes that it makes, and ends when it may not. Looks are counted, not timed.
//!
//! 1. Each function gets arguments of all kinds of types that it takes as they are. Texts, bytes and lists
//!    are long or short, at least one of them long; numbers are small or as great as makes a short text long.
//! 2. The statement of a call counts its looks, and ends it after so many: a function that never looks would
//!    not end where its work grows with the product of its arguments.
//! 3. A call that gives something long has looked as often as it takes.

use super::call::Call;
use super::{definition, scalars};
use crate::catalog::signature::resolve;
use crate::definition::Definition;
use crate::time_zone::TimeZone;
use entasis_vector::expr::ExternalFunction;
use entasis_vector::statement::{Charge, STEP, Statement, within};
use entasis_vector::value::nested;
use entasis_vector::{DataType, Error, Result, Value, Vector};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::thread;

/// Bytes of a long argument.
const LONG: usize = 3 * STEP;
/// The most that a call may reserve at a time.
const MOST: usize = 64 * STEP;
/// Looks after which a call is ended.
const LOOKS: usize = 50;

/// Counts the looks.
#[derive(Default)]
struct Counting(AtomicUsize);

impl Statement for Counting {
    fn check(&self) -> Result<()> {
        if self.0.fetch_add(1, Relaxed) < LOOKS { Ok(()) } else { Err(Error::interrupted()) }
    }
    fn reserve(&self, bytes: usize) -> Result<Charge> {
        if bytes <= MOST { Ok(Box::new(())) } else { Err(Error::resource("too much for a test")) }
    }
    fn charge(&self, _: usize) -> Charge {
        Box::new(())
    }
}

/// The outcome of a call, and how often it has looked.
fn outcome(call: &Call, args: &[&Vector]) -> (Result<usize>, usize) {
    let args: Vec<Vector> = args.iter().map(|arg| (*arg).clone()).collect();
    let statement = Arc::new(Counting::default());
    let made = within(statement.clone(), || {
        let mut out = Vector::new(call.result.physical());
        call.evaluate(&args, 1, &mut out)?;
        Ok(out.value(0, call.result).bytes().unwrap_or(0))
    });
    (made, statement.0.load(Relaxed))
}

/// Arguments of a type, the long ones first, and how many of them are long.
fn arguments(ty: DataType) -> (Vec<Vector>, usize) {
    let text = |text: &str, length: usize| -> Value {
        Value::Text(text.chars().cycle().take(length).collect::<String>().into())
    };
    let list = |items: Vec<Value>, ty: DataType| {
        let mut bytes = Vec::new();
        items.iter().for_each(|item| nested::encode_part(item, ty, &mut bytes).unwrap());
        nested::end_list(&mut bytes);
        Value::Bytes(bytes.into())
    };
    let (values, long) = match ty {
        DataType::Varchar => (vec![text("aB, ", LONG), text("a", 1), text("g", 1)], 1),
        DataType::Blob => {
            (vec![Value::Bytes(b"aB".repeat(LONG / 2).into()), Value::Bytes(b"a".as_slice().into())], 1)
        }
        DataType::List(item) if *item == DataType::Varchar => {
            (vec![list(vec![text("ab", LONG / 4); 4], *item), list(vec![text("ab", 2); 2], *item)], 1)
        }
        DataType::List(item) => {
            let numbers = |count: i128| list((0..count).map(Value::Integer).collect(), *item);
            (vec![numbers(LONG as i128 / 16), numbers(2)], 1)
        }
        _ => ([3, LONG as i128].map(Value::Integer).to_vec(), 0),
    };
    let vector = |value: &Value| {
        let mut vector = Vector::of_values(ty, std::slice::from_ref(value)).unwrap();
        vector.make_constant();
        vector
    };
    (values.iter().map(vector).collect(), long)
}

/// A call that looked too seldom.
#[derive(Debug)]
#[expect(dead_code, reason = "it is printed")]
struct Late {
    /// The numbers of the types, and those of the arguments.
    types: Vec<usize>,
    arguments: Vec<usize>,
    looks: usize,
    bytes: usize,
}

/// What the calls of some functions showed.
#[derive(Default)]
struct Seen {
    /// A call of each function that looks too seldom.
    late: BTreeMap<&'static str, Late>,
    /// Functions that gave something long.
    long: BTreeSet<&'static str>,
}

/// Calls functions with all arguments of these types.
fn look<'a>(
    functions: impl Iterator<Item = &'a (&'static str, &'static Definition)>,
    types: &[DataType],
    signatures: &[Vec<usize>],
) -> Seen {
    let of_types: Vec<(Vec<Vector>, usize)> = types.iter().map(|ty| arguments(*ty)).collect();
    let mut seen = Seen::default();
    for (name, definition) in functions {
        for signature in signatures {
            let args: Vec<DataType> = signature.iter().map(|&number| types[number]).collect();
            let constants: Vec<Option<Value>> = args.iter().map(|_| None).collect();
            let Ok(own) = resolve(name, definition, &args, &constants) else { continue };
            if own.args != args {
                continue;
            }
            let call = Call { name, args, result: own.result, kernel: own.kernel, zone: TimeZone::UTC };
            let mut choices: Vec<Vec<usize>> = vec![Vec::new()];
            for &number in signature {
                let count = of_types[number].0.len();
                choices = choices
                    .iter()
                    .flat_map(|own| (0..count).map(move |next| [own.as_slice(), &[next]].concat()))
                    .collect();
            }
            for choice in choices {
                let longs = signature.iter().zip(&choice).filter(|(ty, at)| **at < of_types[**ty].1).count();
                // The product of long ones is left to the functions of two arguments.
                if longs > 2 || longs > 1 && choice.len() > 2 {
                    continue;
                }
                let args: Vec<&Vector> =
                    signature.iter().zip(&choice).map(|(&ty, &at)| &of_types[ty].0[at]).collect();
                let (made, looks) = outcome(&call, &args);
                let Ok(made) = made else { continue };
                if made >= 2 * STEP {
                    seen.long.insert(name);
                    if looks < made / STEP {
                        let (types, arguments) = (signature.clone(), choice.clone());
                        let late = Late { types, arguments, looks, bytes: made };
                        seen.late.entry(name).or_insert(late);
                    }
                }
            }
        }
    }
    seen
}

#[test]
fn what_makes_long_results_looks_as_it_makes_them() {
    let integers = DataType::list(DataType::Int64);
    let texts = DataType::list(DataType::Varchar);
    let types = [DataType::Varchar, DataType::Int64, DataType::Blob, texts, integers];
    // Numbers of types, for one to four arguments; the fourth is a text.
    let all = 0..types.len();
    let mut signatures: Vec<Vec<usize>> = all.clone().map(|a| vec![a]).collect();
    signatures.extend(all.clone().flat_map(|a| (0..5).map(move |b| vec![a, b])));
    let threes = all.flat_map(|a| (0..2).flat_map(move |b| (0..2).map(move |c| vec![a, b, c])));
    signatures.extend(threes.collect::<Vec<_>>());
    signatures.push(vec![0, 0, 0, 0]);
    let functions: Vec<_> = scalars().collect();
    // Every thread takes every so many functions.
    let threads = thread::available_parallelism().map_or(1, usize::from);
    let mut seen = Seen::default();
    thread::scope(|scope| {
        let (functions, types, signatures) = (&functions, &types, &signatures);
        let parts: Vec<_> = (0..threads)
            .map(|part| {
                scope.spawn(move || look(functions.iter().skip(part).step_by(threads), types, signatures))
            })
            .collect();
        for part in parts {
            let part = part.join().unwrap();
            seen.late.extend(part.late);
            seen.long.extend(part.long);
        }
    });
    // Short texts of which a long one is made.
    let text =
        |length: usize| Vector::of_values(types[0], &[Value::Text("a".repeat(length).into())]).unwrap();
    let own =
        resolve("replace", definition("replace").unwrap(), &[types[0]; 3], &[None, None, None]).unwrap();
    let call =
        Call { name: "replace", args: own.args, result: own.result, kernel: own.kernel, zone: TimeZone::UTC };
    let (made, looks) = outcome(&call, &[&text(1 << 11), &text(1), &text(1 << 12)]);
    assert_eq!(made.unwrap(), 8 * STEP);
    assert!(looks >= 8, "{looks} looks for 8 MB");
    let late = seen.late;
    assert!(late.is_empty(), "arguments, looks and bytes of calls that look too seldom: {late:#?}");
    for name in ["repeat", "replace", "lpad", "rpad", "translate", "regexp_replace", "concat", "concat_ws"] {
        assert!(seen.long.contains(name), "no call of {name} gave something long");
    }
    for name in ["list_concat", "string_split", "array_to_string", "reverse", "hex", "overlay"] {
        assert!(seen.long.contains(name), "no call of {name} gave something long");
    }
}
