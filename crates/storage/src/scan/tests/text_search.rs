//! Searches of codes of symbols against the text of one slot after the other.

use super::texts;
use crate::{Compression, Condition, Datum, RowGroup, Table, TableOptions, TableSnapshot, TextSearch};
use entasis_vector::Value;
use std::ops::Range;
use std::sync::Arc;

fn rows() -> Vec<Value> {
    let words = ["packages", "special requests", "foxes", "theodolites", "ünusual", "requests"];
    texts::rows(|i| {
        let word = |at: usize| words[i * 7919 / (at + 1) % words.len()];
        format!("{} {} {i} {}", word(0), word(3), word(11))
    })
}

fn table(rows: &[Value], compression: Compression) -> Arc<Table> {
    texts::table(rows, compression, TableOptions::default())
}

fn of(search: Option<TextSearch>) -> Arc<TextSearch> {
    Arc::new(search.expect("it is short"))
}

/// The rows that satisfy a condition, and those whose texts do when they are read.
fn found_and_twin(
    snapshot: &TableSnapshot,
    search: &Arc<TextSearch>,
    runs: &[Range<usize>],
) -> (Vec<u16>, Vec<u16>) {
    let group = snapshot.row_group(0).expect("it has rows");
    let condition = group.code_search(1, runs, search, None).expect("texts are codes");
    let mut found = Vec::new();
    group.select_runs(&[Condition::Texts(1, condition.clone())], runs, &mut found);
    // Of some rows: as many as there are, or few of them.
    let mut live = Vec::new();
    group.select_runs(&[], runs, &mut live);
    for step in [1, 3, 50] {
        let mut some: Vec<u16> = live.iter().copied().step_by(step).collect();
        let twin: Vec<u16> = some.iter().copied().filter(|row| found.binary_search(row).is_ok()).collect();
        group.retain_texts(1, &condition, runs, &mut some);
        assert_eq!(some, twin, "one in {step}");
    }
    let holds = |slot: usize| {
        let mut datums = Vec::new();
        snapshot.read(crate::RowId { group: 0, slot: slot as u32 }, &[1], &mut datums);
        matches!(datums[0], Datum::Bytes(text) if search.holds(text))
    };
    let slots = runs.iter().flat_map(|run| run.clone()).enumerate();
    let twin = slots.filter(|(_, slot)| group.is_live(*slot) && holds(*slot));
    (found, twin.map(|(at, _)| at as u16).collect())
}

#[test]
fn rows_that_are_found_are_those_whose_texts_satisfy_the_condition() {
    let rows = rows();
    let table = table(&rows, Compression::Fsst);
    let removed: Vec<_> = table.snapshot().row_ids().step_by(7).collect();
    {
        let mut writer = table.write();
        removed.into_iter().for_each(|row| writer.delete(row));
    }
    let snapshot = table.snapshot();
    let slots = snapshot.row_group(0).expect("it has rows").slots();
    let texts: Vec<&[u8]> = rows
        .iter()
        .step_by(613)
        .filter_map(|row| match row {
            Value::Text(text) => Some(text.as_bytes()),
            _ => None,
        })
        .collect();
    let searches = [
        ("a piece", of(TextSearch::of_pieces(b"", &[b"theodolites"], b""))),
        ("no text", of(TextSearch::of_pieces(b"", &[b"zebra"], b""))),
        ("two pieces", of(TextSearch::of_pieces(b"", &[b"special", b"requests"], b""))),
        ("a prefix", of(TextSearch::of_pieces(b"foxes s", &[], b""))),
        ("a suffix", of(TextSearch::of_pieces(b"", &[], b" requests"))),
        ("both", of(TextSearch::of_pieces(b"pack", &["ü".as_bytes()], b"s"))),
        ("all texts", of(TextSearch::of_pieces(b"", &[], b""))),
        ("one text", of(TextSearch::of_texts([texts[0]]))),
        ("the text of a block", of(TextSearch::of_texts([texts[2]]))),
        ("some texts", of(TextSearch::of_texts(texts.iter().take(3).copied()))),
    ];
    for (what, search) in searches {
        for search in [search.clone(), Arc::new((*search).clone().negated())] {
            let everything = 0..slots;
            let parts = [3..900, 1000..1100, 2000..3500];
            for runs in [std::slice::from_ref(&everything), &parts] {
                let (found, twin) = found_and_twin(&snapshot, &search, runs);
                assert_eq!(found, twin, "{what}");
            }
        }
    }
}

fn group_of(snapshot: &TableSnapshot) -> &RowGroup {
    snapshot.row_group(0).expect("it has rows")
}

#[test]
fn a_search_is_kept_for_the_same_symbols() {
    let (one, other) = (table(&rows(), Compression::Fsst), table(&rows(), Compression::Fsst));
    let search = of(TextSearch::of_pieces(b"", &[b"special"], b""));
    let (one, other) = (one.snapshot(), other.snapshot());
    let code_search = |snapshot: &TableSnapshot, last| {
        group_of(snapshot).code_search(1, &[0..900, 3000..5000], &search, last).expect("texts are codes")
    };
    let first = code_search(&one, None);
    assert!(Arc::ptr_eq(&first, &code_search(&one, Some(&first))));
    assert!(!Arc::ptr_eq(&first, &code_search(&other, Some(&first))));
}

#[test]
fn other_blocks_have_no_codes() {
    let search = of(TextSearch::of_pieces(b"", &[b"special"], b""));
    let has_codes = |compression, run: Range<usize>| {
        let snapshot = table(&rows(), compression).snapshot();
        group_of(&snapshot).code_search(1, std::slice::from_ref(&run), &search, None).is_some()
    };
    assert!(!has_codes(Compression::Strings, 0..5000) && !has_codes(Compression::None, 0..5000));
    // Constants alone have no table of symbols.
    assert!(!has_codes(Compression::Fsst, 1024..3000) && has_codes(Compression::Fsst, 1000..3000));
}
