//! Predicate transfer, before the order is chosen: what filters leave of a relation is looked up in the
//! relations next to it, and so on along the classes (Yang et al., *Predicate Transfer*, CIDR 2024, which
//! reduces the relations themselves; here they are counted, and reduced when the query runs).
//!
//! A join of two keys is expected to keep the share of rows that the filters keep of the keys' values.
//! Keywords that people ask for are not like any other keyword, though: some have a thousand times as many
//! movies. So where keys are few, they are looked at:
//!
//! 1. All rows of a small filtered table are tested. The values that its columns of classes have in those
//!    that pass, with the number of rows of each, are the table's *messages*, one for each class.
//! 2. A small table that a message reaches multiplies what it has received for each of its rows, and sends on
//!    what that makes: how many combinations of rows of the relations behind it there are for each value.
//!    As each relation sends once, and never back, nothing is counted twice. So the rows of a join of small
//!    tables are counted exactly.
//! 3. Large tables send nothing. What they receive is looked up in the sample of rows that is kept with
//!    each ([`entasis_storage::RowSample`]): of the rows that pass the table's own filters, if these are
//!    enough. The product of all messages shows how filters of several tables go together.
//!
//! What is found of the join of some relations is a factor, by which it has more rows than expected
//! ([`Graph::refer`]). Two relations that several classes join are left out, and so are tables whose
//! column is a key: where each value is in one row, all are like any other.

use super::graph::{Graph, Set};
use crate::estimate::tester::{NONE, Tester, candidates, pruning_predicates};
use crate::optimizer::properties::is_unique;
use crate::plan::{Columns, Node, Scan};
use entasis_storage::TableSnapshot;
use entasis_vector::{CHUNK_ROWS, ColumnId, DataType, Value, Vector};
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// The most rows of a table that is tested as a whole.
const SMALL: u64 = 100_000;
/// The most rows of one that has no filters.
const SMALL_UNFILTERED: u64 = 10_000;
/// The least rows of a table in whose sample messages are looked up: queries of fewer take hardly longer than
/// looking.
const LARGE: u64 = 100_000;
/// The most keys of a message: if there are more, they are like most. Also the most rows that may be expected
/// of a table that sends.
const KEYS: usize = 4096;
/// One in so many rows of a sample is looked at first: references to one row often stand together, as the
/// rows of a run of the sample do. The others follow if fewer rows than [`FEW`] have keys of a message.
const EVERY: usize = 4;
const FEW: usize = 64;
/// The rows of a sample that are enough to tell of those that pass filters, and of those that pass them and
/// have keys of several messages.
const ENOUGH: usize = 256;
const ENOUGH_TOGETHER: f64 = 16.0;

/// Combinations of rows by value.
type Counts = HashMap<Value, f64, BuildHasherDefault<Multiplied>>;

/// A hash by multiplication, as nobody gains by values that collide.
#[derive(Default)]
struct Multiplied(u64);

impl Hasher for Multiplied {
    fn finish(&self) -> u64 {
        self.0 ^ self.0 >> 32
    }

    fn write(&mut self, bytes: &[u8]) {
        for part in bytes.chunks(8) {
            let mut padded = [0; 8];
            padded[..part.len()].copy_from_slice(part);
            self.0 = (self.0.rotate_left(5) ^ u64::from_le_bytes(padded)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        }
    }
}

/// What a relation tells the others of a class.
struct Message {
    class: usize,
    from: usize,
    /// The relations that have been counted.
    over: Set,
    /// A column of each of them, which is read where they are joined.
    columns: Vec<ColumnId>,
    /// The combinations of their rows by value.
    keys: Counts,
}

/// A relation that has received messages.
struct Receiver {
    relation: usize,
    scan: Scan,
    /// Its columns that are members of classes, by class.
    own: Vec<(usize, ColumnId)>,
}

/// A message, and the column of its receiver that is looked up in it.
#[derive(Clone, Copy)]
struct Received<'m> {
    message: &'m Message,
    /// Which of the receiver's own columns it is.
    own: usize,
    by: ColumnId,
}

impl Received<'_> {
    /// Columns that join the receiver to the relations behind the message.
    fn columns(&self) -> Vec<ColumnId> {
        std::iter::once(self.by).chain(self.message.columns.iter().copied()).collect()
    }
}

/// What was received for the rows that were looked at.
struct Totals {
    /// Rows.
    rows: usize,
    /// Of each message the sum of what it has for them, and for how many it has something.
    each: Vec<(f64, usize)>,
    /// The same of the products of all messages.
    together: (f64, usize),
    /// What each message has for the last row.
    last: Vec<f64>,
}

/// What was found of a join of some relations.
struct Found {
    over: Set,
    /// A column of each, which the join reads.
    columns: Vec<ColumnId>,
    rows: f64,
    /// No row was found: there are as many at most.
    is_most: bool,
}

impl Graph {
    /// Transfers predicates between the relations, and notes what is found of their joins.
    pub(super) fn transfer(&mut self, columns: &Columns) {
        let (mut messages, mut sent): (Vec<Message>, Set) = (Vec::new(), 0);
        while let Some(receiver) = self.next_sender(&messages, sent) {
            sent |= 1 << receiver.relation;
            self.send(&receiver, &mut messages, columns);
        }
        for relation in (0..self.relations.len()).filter(|relation| sent >> relation & 1 == 0) {
            let is_large = |scan: &&Scan| scan.relation.table().is_some_and(|table| table.rows() >= LARGE);
            if self.scan(relation).filter(is_large).is_some()
                && let Some(receiver) = self.receiver(relation)
            {
                self.look_up(&receiver, &messages, columns);
            }
        }
    }

    fn scan(&self, relation: usize) -> Option<&Scan> {
        match &self.relations[relation].node {
            Some(Node::Scan(scan)) if self.relations[relation].attached.is_none() => Some(scan),
            _ => None,
        }
    }

    fn receiver(&self, relation: usize) -> Option<Receiver> {
        let scan = self.scan(relation)?.clone();
        let own = self.classes.iter().enumerate().filter_map(|(class, of)| {
            let member = of.members.iter().find(|member| member.relation == relation)?;
            Some((class, member.column()?))
        });
        let own: Vec<(usize, ColumnId)> = own.collect();
        (!own.is_empty()).then_some(Receiver { relation, scan, own })
    }

    /// The small table of which fewest rows are expected that is filtered or has received something, of those
    /// that have not sent anything yet.
    fn next_sender(&self, messages: &[Message], sent: Set) -> Option<Receiver> {
        let may_send = |relation: &usize| {
            let Some(scan) = self.scan(*relation) else { return false };
            let rows = scan.relation.table().map_or(u64::MAX, TableSnapshot::rows);
            let is_small = match scan.filters.is_empty() {
                true => rows <= SMALL_UNFILTERED && self.has_received(*relation, messages),
                false => rows <= SMALL,
            };
            sent >> relation & 1 == 0 && is_small && self.rows_of(*relation) <= KEYS as f64
        };
        let rest = (0..self.relations.len()).filter(may_send);
        let next = rest.min_by(|a, b| self.rows_of(*a).total_cmp(&self.rows_of(*b)))?;
        self.receiver(next).or_else(|| self.next_sender(messages, sent | 1 << next))
    }

    fn rows_of(&self, relation: usize) -> f64 {
        self.relations[relation].estimate.rows
    }

    fn has_received(&self, relation: usize, messages: &[Message]) -> bool {
        messages.iter().any(|message| self.reaches(message, relation))
    }

    /// True if a message is for a relation.
    fn reaches(&self, message: &Message, relation: usize) -> bool {
        let pair = 1 << message.from | 1 << relation;
        let mut joining = self.classes.iter().enumerate().filter(|(_, class)| class.joins(pair));
        message.over >> relation & 1 == 0
            && joining.next().is_some_and(|(class, _)| class == message.class)
            && joining.next().is_none()
    }

    /// The messages for a relation. If several have counted the same relation, the first one counts.
    fn received<'m>(&self, receiver: &Receiver, messages: &'m [Message]) -> Vec<Received<'m>> {
        let mut over = 0;
        let mut received = Vec::new();
        for message in messages.iter().filter(|message| self.reaches(message, receiver.relation)) {
            let own = receiver.own.iter().position(|(class, _)| *class == message.class);
            if let Some(own) = own.filter(|_| over & message.over == 0) {
                over |= message.over;
                received.push(Received { message, own, by: receiver.own[own].1 });
            }
        }
        received
    }

    /// Counts the rows of a small table, with what it has received, and adds its messages.
    fn send(&mut self, receiver: &Receiver, messages: &mut Vec<Message>, columns: &Columns) {
        let received = self.received(receiver, messages);
        let wanted: Vec<ColumnId> = receiver.own.iter().map(|(_, id)| *id).collect();
        let (Some(mut tester), Some(table)) =
            (Tester::of(&receiver.scan, &wanted, columns), receiver.scan.relation.table())
        else {
            return;
        };
        let types: Vec<DataType> = wanted.iter().map(|id| columns.ty(*id)).collect();
        let mut keys: Vec<Counts> = vec![Counts::default(); wanted.len()];
        // Where nothing is filtered, a message says what others have said.
        let tells = |own| !receiver.scan.filters.is_empty() || received.iter().any(|one| one.own != own);
        let mut totals = Totals::of(received.len());
        let mut add = |position: usize, vectors: &[Vector]| {
            let value = |own: usize| vectors[own].value(position, types[own]);
            totals.add(received.iter().map(|one| one.message.count(&value(one.own))));
            for (own, keys) in keys.iter_mut().enumerate().filter(|(own, _)| tells(*own)) {
                let others = totals.last.iter().zip(&received).filter(|(_, one)| one.own != own);
                let count: f64 = others.map(|(count, _)| count).product();
                let value = value(own);
                if count > 0.0 && !value.is_null() {
                    *keys.entry(value).or_insert(0.0) += count;
                }
            }
        };
        for (group, block) in candidates(table, &pruning_predicates(&receiver.scan), usize::MAX).blocks {
            let first = block * group.block_slots();
            for start in (first..first + group.block_slots()).step_by(CHUNK_ROWS) {
                let run = start..(start + CHUNK_ROWS).min(first + group.block_slots());
                if tester.test(group, &[run], &mut add).is_none() {
                    return;
                }
            }
        }
        let found = totals.found(&received, receiver.relation, totals.rows as f64);
        let message = |(own, keys): (usize, Counts)| {
            let (class, column) = receiver.own[own];
            let behind = received.iter().filter(|one| one.own != own);
            let (mut over, mut columns) = (1 << receiver.relation, vec![column]);
            for one in behind {
                over |= one.message.over;
                columns.extend(one.columns());
            }
            Message { class, from: receiver.relation, over, columns, keys }
        };
        let few = keys.into_iter().enumerate().filter(|(own, keys)| tells(*own) && keys.len() <= KEYS);
        let sent: Vec<Message> = few.map(message).collect();
        messages.extend(sent);
        self.note(found);
    }

    /// Looks up what a large table has received in its sample.
    fn look_up(&mut self, receiver: &Receiver, messages: &[Message], columns: &Columns) {
        let is_key =
            |by: ColumnId| is_unique(&Node::Scan(receiver.scan.clone()), &std::iter::once(by).collect());
        let mut received = self.received(receiver, messages);
        received.retain(|one| !is_key(one.by));
        if received.is_empty() {
            return;
        }
        let wanted: Vec<ColumnId> = received.iter().map(|one| one.by).collect();
        let looked = |scan: &Scan| {
            let mut totals = Totals::of(received.len());
            let mut tester = Tester::of(scan, &wanted, columns)?;
            let sample = scan.relation.table()?.row_sample();
            for is_rest in [false, true] {
                tester.test_sample(&sample, |position, vectors| {
                    if (position % EVERY == 0) != is_rest {
                        let value = |at: usize| vectors[at].value(position, columns.ty(wanted[at]));
                        let one = |(at, one): (usize, &Received<'_>)| one.message.count(&value(at));
                        totals.add(received.iter().enumerate().map(one));
                    }
                })?;
                if totals.least() >= FEW {
                    break;
                }
            }
            Some(totals)
        };
        let of_passing = looked(&receiver.scan).filter(|totals| totals.rows >= ENOUGH);
        let unfiltered = || looked(&Scan { filters: Vec::new(), ..receiver.scan.clone() });
        let is_of_all = of_passing.is_none();
        let Some(totals) = of_passing.or_else(unfiltered).filter(|totals| totals.rows > 0) else {
            return;
        };
        let mut found = totals.found(&received, receiver.relation, self.rows_of(receiver.relation));
        if is_of_all || !totals.tells_together() {
            found.truncate(received.len());
        }
        self.note(found);
    }

    /// Notes what was found, of few relations first, as more rests on that.
    fn note(&mut self, mut found: Vec<Found>) {
        found.sort_by_key(|found| found.over.count_ones());
        for Found { over, columns, rows, is_most } in found {
            let expected = self.known_rows(over);
            if expected > 0.0 {
                let factor = rows / expected;
                self.refer(over, columns, if is_most { factor.min(1.0) } else { factor });
            }
        }
    }
}

impl Message {
    /// What it has for a value.
    fn count(&self, value: &Value) -> f64 {
        self.keys.get(value).copied().unwrap_or(0.0)
    }
}

impl Totals {
    fn of(messages: usize) -> Totals {
        Totals { rows: 0, each: vec![(0.0, 0); messages], together: (0.0, 0), last: vec![0.0; messages] }
    }

    /// Adds a row, and what each message has for it.
    fn add(&mut self, counts: impl Iterator<Item = f64>) {
        self.rows += 1;
        let mut product = 1.0;
        for ((each, last), count) in self.each.iter_mut().zip(&mut self.last).zip(counts) {
            add(each, count);
            *last = count;
            product *= count;
        }
        add(&mut self.together, product);
    }

    /// The least number of rows for which a message has something.
    fn least(&self) -> usize {
        self.each.iter().map(|(_, rows)| *rows).min().unwrap_or(0)
    }

    /// True if there are enough rows for which all messages have something, or if there would be.
    fn tells_together(&self) -> bool {
        let rows = self.rows as f64;
        let independent = self.each.iter().map(|(_, some)| *some as f64 / rows).product::<f64>() * rows;
        independent.max(self.together.1 as f64) >= ENOUGH_TOGETHER
    }

    /// What this says of the joins of a relation of `rows` rows with what it has received: each message, and
    /// all of them together.
    fn found(&self, received: &[Received<'_>], relation: usize, rows: f64) -> Vec<Found> {
        let part = |(sum, _): (f64, usize)| sum.max(NONE) / self.rows.max(1) as f64 * rows;
        let each = received.iter().zip(&self.each).map(|(one, sum)| Found {
            over: 1 << relation | one.message.over,
            columns: one.columns(),
            rows: part(*sum),
            is_most: sum.1 == 0,
        });
        let mut found: Vec<Found> = each.collect();
        if received.len() > 1 {
            found.push(Found {
                over: received.iter().fold(1 << relation, |over, one| over | one.message.over),
                columns: received.iter().flat_map(Received::columns).collect(),
                rows: part(self.together),
                is_most: self.together.1 == 0,
            });
        }
        found
    }
}

fn add((sum, rows): &mut (f64, usize), count: f64) {
    *sum += count;
    *rows += usize::from(count > 0.0);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cost::Costs;
    use crate::estimate::sample::tests::{number, table};
    use crate::optimizer::testing::cross;
    use crate::plan::tree::{ColumnSet, filter};
    use entasis_vector::expr::{CompareOp, Expr};

    /// The rows that are expected of a join of all `scans` by the pairs of columns that are equal.
    fn expected(scans: &[&Scan], equal: &[(ColumnId, ColumnId)], columns: &Columns) -> f64 {
        let nodes = scans.iter().map(|scan| Node::Scan((*scan).clone()));
        let product = nodes.reduce(cross).expect("there are some");
        let conditions = equal
            .iter()
            .map(|(a, b)| Expr::compare(CompareOp::Eq, columns.expr(*a), columns.expr(*b)))
            .collect();
        let join = filter(product, conditions);
        let graph = Graph::of(join, columns, &ColumnSet::default(), &Costs::default(), &mut |node| node);
        graph.rows((1 << scans.len()) - 1)
    }

    fn id(scan: &Scan, column: usize) -> ColumnId {
        scan.columns[column].0
    }

    fn filtered(scan: &Scan, column: usize, op: CompareOp, value: i128, columns: &Columns) -> Scan {
        let filter = Expr::compare(op, columns.expr(id(scan, column)), number(value));
        Scan { filters: vec![filter], ..scan.clone() }
    }

    fn is_about(expected: f64, truth: usize) {
        let ratio = expected / truth as f64;
        assert!((0.7..1.4).contains(&ratio), "{expected} for {truth}");
    }

    const ROWS: i128 = 200_000;

    #[test]
    fn frequent_keys_are_seen_as_they_are() {
        let mut columns = Columns::default();
        let words = table(["id", "length"], 1_000, |i| [i, i % 100], &mut columns);
        // Half of the rows refer to word 7, and the others to all.
        let word = |i: i128| if i * 7919 % 2 == 0 { 7 } else { i % 1_000 };
        let texts = table(["word"], ROWS, |i| [word(i)], &mut columns);
        let equal = [(id(&words, 0), id(&texts, 0))];
        let of =
            |op, length| expected(&[&filtered(&words, 1, op, length, &columns), &texts], &equal, &columns);
        let truth = |is: &dyn Fn(i128) -> bool| (0..ROWS).filter(|i| is(word(*i) % 100)).count();
        is_about(of(CompareOp::Eq, 7), truth(&|length| length == 7));
        is_about(of(CompareOp::Eq, 9), truth(&|length| length == 9));
        is_about(of(CompareOp::Lt, 30), truth(&|length| length < 30));
    }

    #[test]
    fn what_filters_leave_goes_on_to_the_relations_behind() {
        let mut columns = Columns::default();
        // Nations of region 3 have nine customers of ten.
        let regions = table(["id", "name"], 10, |i| [i, i + 100], &mut columns);
        let nations = table(["id", "region"], 100, |i| [i, i % 10], &mut columns);
        let nation = |i: i128| if i % 10 == 0 { i / 10 * 7919 % 100 } else { i % 7 * 10 + 3 };
        let customers = table(["nation", "kind"], ROWS, |i| [nation(i), i % 5], &mut columns);
        let equal = [(id(&regions, 0), id(&nations, 1)), (id(&nations, 0), id(&customers, 0))];
        let of = |name: i128, customers: &Scan| {
            let region = filtered(&regions, 1, CompareOp::Eq, name, &columns);
            expected(&[&region, &nations, customers], &equal, &columns)
        };
        let truth = |region: i128| (0..ROWS).filter(move |i| nation(*i) % 10 == region);
        is_about(of(103, &customers), truth(3).count());
        is_about(of(104, &customers), truth(4).count());
        let of_a_kind = filtered(&customers, 1, CompareOp::Eq, 2, &columns);
        is_about(of(103, &of_a_kind), truth(3).filter(|i| i % 5 == 2).count());
    }

    #[test]
    fn filters_of_several_tables_are_seen_together() {
        let mut columns = Columns::default();
        let days = table(["id", "year"], 1_000, |i| [i, i / 100], &mut columns);
        let campaigns = table(["id", "year"], 200, |i| [i, i / 20], &mut columns);
        // Each sale is of a campaign of its year.
        let sale = |i: i128| [i * 7919 % 1_000, i * 7919 % 1_000 / 100 * 20 + i % 20];
        let sales = table(["day", "campaign"], ROWS, sale, &mut columns);
        let equal = [(id(&days, 0), id(&sales, 0)), (id(&campaigns, 0), id(&sales, 1))];
        let of = |year: i128, other: i128| {
            let days = filtered(&days, 1, CompareOp::Eq, year, &columns);
            let campaigns = filtered(&campaigns, 1, CompareOp::Eq, other, &columns);
            expected(&[&sales, &days, &campaigns], &equal, &columns)
        };
        is_about(of(4, 4), ROWS as usize / 10);
        assert!(of(4, 5) < 50.0, "{}: there is none", of(4, 5));
    }

    #[test]
    fn joins_of_small_tables_are_counted() {
        let mut columns = Columns::default();
        let one = table(["k", "a"], 500, |i| [i * i % 40, i % 4], &mut columns);
        let two = table(["k", "b"], 700, |i| [i % 25, i % 3], &mut columns);
        let equal = [(id(&one, 0), id(&two, 0))];
        let [left, right] = [(&one, 1, 2), (&two, 1, 0)]
            .map(|(scan, column, value)| filtered(scan, column, CompareOp::Eq, value, &columns));
        let pairs = (0..500_i128)
            .filter(|i| i % 4 == 2)
            .flat_map(|i| (0..700_i128).filter(|j| j % 3 == 0).filter(move |j| i * i % 40 == j % 25));
        let (found, truth) = (expected(&[&left, &right], &equal, &columns), pairs.count());
        assert!((found - truth as f64).abs() < 0.5, "{found} for {truth}");
    }
}
