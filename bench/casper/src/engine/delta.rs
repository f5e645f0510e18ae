//! An honest delta store of our own storage: a main table, and a small one for what is new, both keyed.
//!
//! Every query reads both. A row of the main table that is deleted loses its live bit, which is the
//! tombstone. When the small table has its share of the rows it is merged as SQL would do it, by one
//! statement that inserts its rows into the main table in the order of their keys, and one that deletes them.
//! Whoever inserts the row that fills it waits for that, and so does everybody else.
//!
//! The main table has the layout that a primary key gets. In *sorted* each row of a merge would lay a slice
//! anew.

use super::{Stored, append, datum, empty, options};
use crate::store::{Counts, Store};
use entasis_storage::{Datum, Layout, Table};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Instant;

/// The layout of both tables.
pub const LAYOUT: Layout = Layout::EquiGhost;

/// The store. Clones are the same, for other threads.
#[derive(Clone)]
pub struct Two {
    main: Stored,
    delta: Stored,
    /// Held by whoever merges, and shared by all others.
    gate: Arc<RwLock<()>>,
    counts: Arc<Mutex<Counts>>,
    payloads: usize,
    /// The number of rows at which the small table is merged.
    full: u64,
}

impl Two {
    /// A delta store over a main table that is loaded.
    pub fn new(main: Arc<Table>, payloads: usize, full: u64) -> Two {
        let delta = Stored::new(empty(payloads, options(LAYOUT)));
        Two { main: Stored::new(main), delta, gate: Arc::default(), counts: Arc::default(), payloads, full }
    }

    /// Both tables.
    pub fn tables(&self) -> Vec<Arc<Table>> {
        vec![self.main.table().clone(), self.delta.table().clone()]
    }

    fn with<R>(&self, each: impl FnOnce(Stored, Stored) -> R) -> R {
        let _shared = self.gate.read().expect("nobody panicked");
        each(self.main.clone(), self.delta.clone())
    }

    /// Merges if the small table is full.
    fn settle(&self) {
        if self.delta.table().rows() < self.full {
            return;
        }
        let _alone = self.gate.write().expect("nobody panicked");
        if self.delta.table().rows() >= self.full {
            let start = Instant::now();
            self.merge();
            let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
            counts.merges += 1;
            counts.merging += start.elapsed();
        }
    }

    fn merge(&self) {
        let (keys, rows) = self.rows_of(&self.delta);
        let mut order: Vec<usize> = (0..keys.len()).collect();
        order.sort_unstable_by_key(|&at| keys[at]);
        let sorted: Vec<i64> = order.iter().map(|&at| keys[at]).collect();
        let mut next = order.iter();
        append(self.main.table(), self.payloads, &sorted, |_, row| {
            let at = *next.next().expect("a row for each key");
            row.copy_from_slice(&rows[at * self.payloads..][..self.payloads]);
        });
        self.delta.table().write().clear();
    }

    /// The keys of a table, and the payload row by row.
    fn rows_of(&self, stored: &Stored) -> (Vec<i64>, Vec<i32>) {
        let snapshot = stored.table().snapshot();
        let columns: Vec<usize> = (0..=self.payloads).collect();
        let (mut keys, mut rows) = (Vec::new(), Vec::new());
        let mut values = Vec::with_capacity(columns.len());
        for row in snapshot.row_ids() {
            values.clear();
            snapshot.read(row, &columns, &mut values);
            let whole = |value: &Datum<'_>| if let Datum::Integer(value) = value { *value as i64 } else { 0 };
            keys.push(whole(&values[0]));
            rows.extend(values[1..].iter().map(|value| whole(value) as i32));
        }
        (keys, rows)
    }
}

impl Store for Two {
    fn point(&mut self, key: i64) -> Option<i64> {
        self.with(|mut main, mut delta| main.point(key).or_else(|| delta.point(key)))
    }

    fn count(&mut self, low: i64, high: i64) -> u64 {
        self.with(|mut main, mut delta| main.count(low, high) + delta.count(low, high))
    }

    fn sum(&mut self, low: i64, high: i64) -> i64 {
        self.with(|mut main, mut delta| main.sum(low, high) + delta.sum(low, high))
    }

    fn insert(&mut self, key: i64, row: &[i32]) {
        self.with(|main, mut delta| {
            if main.table().read(|reader| reader.find(&datum(key))).is_none() {
                delta.insert(key, row);
            }
        });
        self.settle();
    }

    fn delete(&mut self, key: i64) -> bool {
        self.with(|mut main, mut delta| main.delete(key) || delta.delete(key))
    }

    fn update(&mut self, from: i64, to: i64) -> bool {
        let is_done = self.with(|mut main, mut delta| {
            if main.table().read(|reader| reader.find(&datum(to))).is_some() {
                return false;
            }
            let columns: Vec<usize> = (1..=self.payloads).collect();
            let moved = main.table().read(|reader| {
                let row = reader.find(&datum(from))?;
                let mut values = Vec::with_capacity(columns.len());
                reader.read(row, &columns, &mut values);
                let narrow = |value: &Datum<'_>| if let Datum::Integer(v) = value { *v as i32 } else { 0 };
                Some(values.iter().map(narrow).collect::<Vec<i32>>())
            });
            let Some(row) = moved else { return delta.update(from, to) };
            main.delete(from);
            delta.insert(to, &row);
            true
        });
        self.settle();
        is_done
    }

    fn bytes(&self) -> usize {
        self.with(|main, delta| main.bytes() + delta.bytes())
    }

    fn counts(&self) -> Counts {
        *self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
