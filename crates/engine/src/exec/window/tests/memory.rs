//! Windows with less memory than their rows take: sections that are spilled, and partitions that fit into
//! none. Results are compared with formulas, since the twin would need all rows at once; and the peak of
//! reserved memory with the limit.

use super::*;

/// Numbers the rows of partitions of `partition_rows` rows with this much memory. Returns how many rows got a
/// number of their own partition, and the most memory that was reserved.
fn count_with(memory: usize, rows: usize, partition_rows: usize) -> Result<(usize, usize)> {
    let mut columns = Columns::default();
    let ids: Vec<_> = (0..2).map(|_| columns.add("c", DataType::Int64, true)).collect();
    let mut chance = Chance(4711);
    let mut all: Vec<Vec<Value>> = (0..rows)
        .map(|i| {
            vec![Value::Integer((i / partition_rows) as i128), Value::Integer((i % partition_rows) as i128)]
        })
        .collect();
    (1..rows).for_each(|i| all.swap(i, chance.below(i as u64 + 1) as usize));
    let order = vec![SortKey { expr: columns.expr(ids[1]), descending: false, nulls_first: false }];
    let partition = vec![columns.expr(ids[0])];
    let input = Box::new(Node::Values(Values { columns: ids.clone(), rows: all }));
    let mut calls = numbered(vec![call(WindowFunction::RowNumber, vec![], DataType::Int64)]);
    calls[0].0 = columns.add("w", DataType::Int64, false);
    let output = [ids[1], calls[0].0].map(|column| Output { name: String::new(), column }).to_vec();
    let plan =
        Plan { root: Node::Window(Window { input, partition, order, calls, top: None }), columns, output };
    let settings = Settings { threads: 2, chunk_rows: 100, ..Settings::default() };
    let memory = Arc::new(crate::exec::MemoryBudget::new(memory));
    let context = QueryContext { settings: Arc::new(settings), memory, ..QueryContext::default() };
    let right = Right::default();
    execute(&plan, &context, &right)?;
    assert_eq!(context.memory.used(), 0);
    Ok((right.0.load(std::sync::atomic::Ordering::Relaxed), context.memory.peak()))
}

/// Counts rows whose second value is one more than the first.
#[derive(Default)]
struct Right(Arc<std::sync::atomic::AtomicUsize>);

impl ResultSink for Right {
    fn worker(&self) -> Result<Box<dyn ResultWorker>> {
        Ok(Box::new(Right(self.0.clone())))
    }
}

impl ResultWorker for Right {
    fn push(&mut self, chunk: &entasis_vector::Chunk) -> Result<()> {
        let value = |row, column| chunk.value(row, column, DataType::Int64).ordinal().unwrap();
        let right = (0..chunk.len()).filter(|&row| value(row, 0) + 1 == value(row, 1)).count();
        self.0.fetch_add(right, std::sync::atomic::Ordering::Relaxed);
        Ok(())
    }
    fn finish(&mut self) -> Result<()> {
        Ok(())
    }
}

#[test]
fn what_does_not_fit_goes_to_files() {
    let (rows, limit) = (200_000, 2 << 20);
    let (found, most) = count_with(usize::MAX, rows, 70).unwrap();
    assert!(found == rows && most > 2 * limit, "{found} rows, {most} bytes");
    let (found, most) = count_with(limit, rows, 70).unwrap();
    assert!(found == rows && most <= limit, "{found} rows, {most} bytes");
    // A partition need not fit.
    let (found, most) = count_with(limit, rows, rows).unwrap();
    assert!(found == rows && most <= limit, "{found} rows, {most} bytes");
}

/// Checks the results of a row.
type Judge = Arc<dyn Fn(&[Option<i128>]) -> bool + Send + Sync>;

/// Checks the values of a row of a partition, its number first.
#[derive(Clone)]
struct Checked {
    is_right: Judge,
    types: Vec<DataType>,
    right: Arc<std::sync::atomic::AtomicUsize>,
}

impl ResultSink for Checked {
    fn worker(&self) -> Result<Box<dyn ResultWorker>> {
        Ok(Box::new(self.clone()))
    }
}

impl ResultWorker for Checked {
    fn push(&mut self, chunk: &entasis_vector::Chunk) -> Result<()> {
        for row in 0..chunk.len() {
            let values = self.types.iter().enumerate().map(|(c, ty)| chunk.value(row, c, *ty).ordinal());
            let values: Vec<Option<i128>> = values.collect();
            assert!((self.is_right)(&values), "row {row} of a chunk: {values:?}");
        }
        self.right.fetch_add(chunk.len(), std::sync::atomic::Ordering::Relaxed);
        Ok(())
    }
    fn finish(&mut self) -> Result<()> {
        Ok(())
    }
}

/// One partition of rows `(i, i / 3, x(i))` in any order, with so much memory. Returns the output rows, and
/// the most memory that was reserved.
fn one_partition(
    rows: usize,
    memory: usize,
    order: usize,
    calls: &[WindowCall],
    is_right: impl Fn(&[Option<i128>]) -> bool + Send + Sync + 'static,
) -> Result<(usize, usize)> {
    let mut columns = Columns::default();
    let ids: Vec<_> = (0..3).map(|_| columns.add("c", DataType::Int64, true)).collect();
    let mut chance = Chance(815);
    let row = |i: usize| [i as i128, i as i128 / 3, x(i)].map(Value::Integer).to_vec();
    let mut all: Vec<Vec<Value>> = (0..rows).map(row).collect();
    (1..rows).for_each(|i| all.swap(i, chance.below(i as u64 + 1) as usize));
    let order = vec![SortKey { expr: columns.expr(ids[order]), descending: false, nulls_first: false }];
    let input = Box::new(Node::Values(Values { columns: ids.clone(), rows: all }));
    let mut calls = numbered(calls.to_vec());
    calls.iter_mut().for_each(|(id, call)| *id = columns.add("w", call.ty, true));
    let wanted = [ids[0]].into_iter().chain(calls.iter().map(|(id, _)| *id));
    let output: Vec<Output> = wanted.map(|column| Output { name: String::new(), column }).collect();
    let types = output.iter().map(|output| columns.ty(output.column)).collect();
    let root = Node::Window(Window { input, partition: Vec::new(), order, calls, top: None });
    let plan = Plan { root, columns, output };
    let settings = Settings { threads: 2, ..Settings::default() };
    let memory = Arc::new(crate::exec::MemoryBudget::new(memory));
    let context = QueryContext { settings: Arc::new(settings), memory, ..QueryContext::default() };
    let sink = Checked { is_right: Arc::new(is_right), types, right: Arc::default() };
    let done = execute(&plan, &context, &sink);
    assert_eq!((context.memory.used(), context.temp.used()), (0, 0), "all is given back");
    done?;
    Ok((sink.right.load(std::sync::atomic::Ordering::Relaxed), context.memory.peak()))
}

fn x(i: usize) -> i128 {
    (i * 7919 % 1009) as i128
}

fn of_rows(start: Bound, end: Bound) -> Frame {
    Frame { units: FrameUnits::Rows, start, end, exclude: Exclude::NoOthers }
}

/// The third column, as calls see it by its place among the columns of a plan.
fn summed(function: AggregateFunction, frame: Frame) -> WindowCall {
    let third = Expr::column(entasis_vector::ColumnId(2), DataType::Int64);
    WindowCall { frame, ..aggregate(function, vec![third], DataType::Int64) }
}

#[test]
fn a_partition_much_larger_than_memory() {
    use {AggregateFunction as A, Bound as B, WindowFunction as F};
    let rows = 300_000;
    let third = || Expr::column(entasis_vector::ColumnId(2), DataType::Int64);
    let big = DataType::Int64;
    let mut sums = vec![0i128];
    (0..rows).for_each(|i| sums.push(sums[i] + x(i)));
    let mut largest = vec![0; rows];
    (0..rows).rev().for_each(|i| largest[i] = x(i).max(largest.get(i + 1).copied().unwrap_or(0)));
    let sums = Arc::new(sums);
    let calls = vec![
        summed(A::Sum, of_rows(B::UnboundedPreceding, B::CurrentRow)),
        summed(A::Sum, of_rows(B::Preceding(integer(100)), B::Following(integer(50)))),
        summed(A::Sum, of_rows(B::Preceding(integer(100_000)), B::Preceding(integer(50_000)))),
        summed(A::Max, of_rows(B::CurrentRow, B::UnboundedFollowing)),
        summed(
            A::External(Arc::new(Middle { is_decided: true })),
            of_rows(B::Preceding(integer(2)), B::CurrentRow),
        ),
        aggregate(A::CountStar, vec![], big),
        call(F::Rank, vec![], big),
        call(F::Ntile, vec![integer(7)], big),
        call(F::Lag, vec![third()], big),
        call(F::Lead, vec![third(), integer(150_000)], big),
        WindowCall { frame: Frame::whole(), ..call(F::LastValue, vec![third()], big) },
    ];
    let all = sums.clone();
    let is_right = move |values: &[Option<i128>]| {
        let i = values[0].unwrap() as usize;
        let between = |start: usize, end: usize| Some(all[end.min(rows)] - all[start.min(rows)]);
        let far = (i >= 50_000).then(|| between(i.saturating_sub(100_000), i - 50_000 + 1)).flatten();
        let mut near: Vec<i128> = (i.saturating_sub(2)..=i).map(x).collect();
        near.sort_unstable();
        let bucket = (1..=7).find(|bucket| i < (rows / 7) * bucket + (rows % 7).min(*bucket));
        values[1..]
            == [
                between(0, i + 1),
                between(i.saturating_sub(100), i + 51),
                far,
                Some(largest[i]),
                Some(near[(near.len() - 1) / 2] + near[near.len() / 2]),
                Some(rows as i128),
                Some(i as i128 + 1),
                bucket.map(|bucket| bucket as i128),
                i.checked_sub(1).map(x),
                (i + 150_000 < rows).then(|| x(i + 150_000)),
                Some(x(rows - 1)),
            ]
    };
    for limit in [3 << 20, 14 << 20, 27 << 20, 40 << 20] {
        let (found, most) = one_partition(rows, limit, 0, &calls, is_right.clone()).unwrap();
        assert!(found == rows && most <= limit, "{found} rows, {most} of {limit} bytes");
    }
    let near = |n| Frame {
        units: FrameUnits::Range,
        start: B::Preceding(integer(n)),
        end: B::Following(integer(n)),
        exclude: Exclude::NoOthers,
    };
    let calls = vec![
        summed(A::Sum, Frame::up_to_peers()),
        summed(A::Sum, near(5)),
        summed(A::Sum, Frame { units: FrameUnits::Groups, ..near(40_000) }),
        call(F::Rank, vec![], big),
        call(F::DenseRank, vec![], big),
    ];
    let is_right = move |values: &[Option<i128>]| {
        let t = values[0].unwrap() as usize / 3;
        let between = |start: usize, end: usize| Some(sums[end.min(rows)] - sums[start]);
        values[1..]
            == [
                between(0, 3 * t + 3),
                between(3 * t.saturating_sub(5), 3 * t + 18),
                between(3 * t.saturating_sub(40_000), 3 * t + 3 * 40_001),
                Some(3 * t as i128 + 1),
                Some(t as i128 + 1),
            ]
    };
    for limit in [3 << 20, 20 << 20] {
        let (found, most) = one_partition(rows, limit, 1, &calls, is_right.clone()).unwrap();
        assert!(found == rows && most <= limit, "{found} rows, {most} of {limit} bytes");
    }
    // A function that needs all rows of a frame at once says so.
    let median = summed(A::External(Arc::new(Middle { is_decided: true })), Frame::whole());
    let error = one_partition(rows, 3 << 20, 0, &[median], |_| true).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Resource);
    assert!(error.message().contains("middle over a window needs"), "{error}");
    assert!(error.message().contains("of a partition of 300000 rows"), "{error}");
}

#[test]
fn two_million_rows_with_64_megabytes() {
    use {AggregateFunction as A, Bound as B, WindowFunction as F};
    let rows = 2_100_000;
    let mut sums = vec![0i128];
    (0..rows).for_each(|i| sums.push(sums[i] + x(i)));
    let third = Expr::column(entasis_vector::ColumnId(2), DataType::Int64);
    let calls = [
        summed(A::Sum, of_rows(B::UnboundedPreceding, B::CurrentRow)),
        summed(A::Sum, of_rows(B::Preceding(integer(1000)), B::CurrentRow)),
        call(F::Rank, vec![], DataType::Int64),
        call(F::Lag, vec![third], DataType::Int64),
        aggregate(A::CountStar, vec![], DataType::Int64),
    ];
    let is_right = move |values: &[Option<i128>]| {
        let i = values[0].unwrap() as usize;
        let between = |start: usize| Some(sums[i + 1] - sums[start]);
        let (rank, lag) = (Some(i as i128 + 1), i.checked_sub(1).map(x));
        values[1..] == [between(0), between(i.saturating_sub(1000)), rank, lag, Some(rows as i128)]
    };
    let (found, most) = one_partition(rows, 64 << 20, 0, &calls, is_right).unwrap();
    assert!(found == rows && most <= 64 << 20, "{found} rows, {most} bytes");
}
