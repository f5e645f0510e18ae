//! Code sets against the entry of one slot after the other.

use super::texts;
use crate::{CodeSet, Compression, Condition, Datum, Table, TableOptions};
use entasis_vector::{DataType, Dictionary, StringView, Value};
use std::ops::Range;
use std::sync::Arc;

/// 5000 rows of `distinct` strings.
fn rows(distinct: usize) -> Vec<Value> {
    texts::rows(|i| format!("text {:05}", i * 7919 % distinct))
}

fn table(rows: &[Value], compression: Compression, keyed: bool) -> Arc<Table> {
    texts::table(
        rows,
        compression,
        if keyed { TableOptions::keyed(vec![0]) } else { TableOptions::default() },
    )
}

/// The set of the entries of which `holds` is true.
fn set(dictionary: &Arc<Dictionary>, null: bool, holds: &dyn Fn(usize) -> bool) -> Arc<CodeSet> {
    Arc::new(CodeSet::new(dictionary.clone(), (0..dictionary.len()).map(holds).collect(), null))
}

#[test]
fn rows_of_a_set_are_those_whose_entries_are_in_it() {
    let holds: [(&str, &dyn Fn(usize) -> bool); 6] = [
        ("none", &|_| false),
        ("all", &|_| true),
        ("one", &|code| code == 1),
        ("all but one", &|code| code != 1),
        ("four runs", &|code| code < 1 || (2..4).contains(&code) || code == 5 || code > 6),
        ("many runs", &|code| code % 3 == 0),
    ];
    for (distinct, keyed) in [(2, false), (13, false), (300, false), (1200, false), (13, true), (300, true)] {
        for compression in [Compression::Auto, Compression::None, Compression::Packed] {
            let rows = rows(distinct);
            let table = table(&rows, compression, keyed);
            let snapshot = table.snapshot();
            let group = snapshot.row_group(0).expect("it has rows");
            let everything = vec![0..1, 1..group.slots()];
            let Some(dictionary) = group.dictionary(1, &everything).cloned() else {
                assert_eq!(compression, Compression::None, "{distinct} strings have a dictionary");
                continue;
            };
            let texts = dictionary.values().values::<StringView>();
            for (what, holds) in holds {
                for null in [false, true] {
                    let passes = |row: &Value| match row {
                        Value::Text(text) => {
                            (0..dictionary.len()).any(|c| holds(c) && texts[c].as_bytes() == text.as_bytes())
                        }
                        _ => null,
                    };
                    let condition = [Condition::Codes(1, set(&dictionary, null, holds))];
                    let few = vec![3..900, 1000..1100, 2000..3500.min(group.slots())];
                    for runs in [&everything, &few] {
                        let slots: Vec<usize> = runs.iter().flat_map(|run| run.clone()).collect();
                        let mut found = Vec::new();
                        group.select_runs(&condition, runs, &mut found);
                        let value = |slot: usize| -> Option<Value> {
                            let mut datums = Vec::new();
                            let id = crate::RowId { group: 0, slot: slot as u32 };
                            group.is_live(slot).then(|| snapshot.read(id, &[1], &mut datums));
                            datums.first().map(|datum| datum.value(DataType::Varchar))
                        };
                        let twin =
                            (0..slots.len()).filter(|&at| value(slots[at]).is_some_and(|v| passes(&v)));
                        let twin: Vec<u16> = twin.map(|at| at as u16).collect();
                        assert_eq!(
                            found, twin,
                            "{what} of {distinct}, null {null}, {compression:?}, {keyed}"
                        );
                    }
                }
            }
        }
    }
}

#[test]
fn strings_without_the_dictionary_have_no_codes() {
    let table = table(&rows(13), Compression::Auto, true);
    let before = table.snapshot();
    let id = before.find(&[Datum::Integer(4)]).expect("the row is there");
    table.write().update(id, &[(1, Datum::Bytes(b"another text"))]);
    let after = table.snapshot();
    let has_codes = |snapshot: &crate::TableSnapshot, slots: Range<usize>| {
        snapshot.row_group(0).expect("it has rows").dictionary(1, &[slots]).is_some()
    };
    assert!(has_codes(&before, 0..4096));
    assert!(!has_codes(&after, 0..4096), "a block has another string");
    assert!(has_codes(&after, 3072..4096), "the others do not");
}
