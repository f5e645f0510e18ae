use super::costs::ChunkCosts;
use super::*;
use crate::cost::Costs;
use entasis_vector::{Selection, Vector};

/// Keeps the values of its only column, the sizes of the chunks, and what is said of the compaction.
#[derive(Default)]
struct Collect {
    values: Vec<i64>,
    sizes: Vec<usize>,
    note: String,
}

impl Push for Collect {
    fn push(&mut self, chunk: &mut Chunk) -> Result<Flow> {
        self.sizes.push(chunk.len());
        let (vector, positions) = (chunk.vector(0), chunk.positions(0));
        let at = |row: usize| positions.map_or(row, |positions| positions[row] as usize);
        self.values.extend((0..chunk.len()).map(|row| vector.values::<i64>()[at(row)]));
        Ok(Flow::Continue)
    }
}

const ALL: [Compaction; 8] = [
    Compaction::Auto,
    Compaction::None,
    Compaction::Full,
    Compaction::Binary,
    Compaction::Dynamic,
    Compaction::Learning,
    Compaction::Logical,
    Compaction::Smart,
];

/// The chunks that result from chunks of these sizes, and the final note.
fn compacted(compaction: Compaction, sizes: &[usize], chunk_rows: usize, operators: usize) -> Collect {
    let recorder = Recorder::new(String::new());
    let costs = ChunkCosts::of_rows(&Costs::default(), 1, 8);
    let standing = Standing { operators, chunks: 1e6, costs, learned: Arc::default(), plan: 0 };
    let types = vec![PhysicalType::I64];
    let mut all = Collect::default();
    let Some(compact) = Compact::new(compaction, types, chunk_rows, &standing, &recorder) else {
        all.sizes = sizes.to_vec();
        all.values = (0..sizes.iter().sum::<usize>() as i64).collect();
        return all;
    };
    let factory = Factory(Arc::new(compact));
    let mut worker = factory.worker().unwrap();
    let (mut from, mut chunk) = (0, Chunk::new());
    for &size in sizes {
        let values: Vec<i64> = (from..from + size as i64).collect();
        from += size as i64;
        chunk.reset(size);
        let group = chunk.push_group(Selection::ALL);
        let mut vector = Vector::new(PhysicalType::I64);
        vector.begin(size);
        vector.values_mut::<i64>()[..size].copy_from_slice(&values);
        chunk.push_column(vector, group);
        worker.push(&mut chunk, &mut all).unwrap();
    }
    worker.finish(&mut all).unwrap();
    factory.end();
    let details = recorder.report().details;
    assert_eq!(details.len(), usize::from(!sizes.is_empty()));
    all.note = details.into_iter().next().unwrap_or_default();
    all
}

#[test]
fn rows_are_neither_lost_nor_changed() {
    let mut state = 3u64;
    let mut below = |most: usize| {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 33) as usize % most
    };
    for chunk_rows in [1usize, 2, 3, 16, 100, 2048] {
        for round in 0..30 {
            let most = [1, 3, chunk_rows.div_ceil(16), chunk_rows][round % 4].min(chunk_rows);
            let sizes: Vec<usize> = (0..below(200)).map(|_| 1 + below(most)).collect();
            for compaction in ALL {
                let Collect { mut values, sizes: after, .. } =
                    compacted(compaction, &sizes, chunk_rows, round % 4);
                values.sort_unstable();
                let rows = sizes.iter().sum::<usize>();
                assert!(values.iter().copied().eq(0..rows as i64), "{compaction}, {sizes:?}");
                assert!(after.len() <= sizes.len() && after.iter().all(|&rows| rows <= chunk_rows));
            }
        }
    }
}

#[test]
fn full_leaves_one_chunk_that_is_not_full_for_each_that_did_not_fit() {
    let Collect { sizes, .. } = compacted(Compaction::Full, &[700; 9], 2048, 1);
    assert_eq!(sizes, [1400, 1400, 1400, 1400, 700]);
}

#[test]
fn binary_copies_small_chunks_only() {
    let Collect { sizes, .. } = compacted(Compaction::Binary, &[129, 128, 1, 2000, 128], 2048, 1);
    assert_eq!(sizes, [129, 2000, 257]);
    let Collect { sizes, .. } = compacted(Compaction::Binary, &[100; 20], 2048, 1);
    // The buffer is passed on once another small chunk might not fit.
    assert_eq!(sizes, [2000]);
}

#[test]
fn the_more_operators_follow_the_more_is_copied() {
    let chunks = |operators| compacted(Compaction::Dynamic, &[200; 2000], 2048, operators).sizes.len();
    assert_eq!(chunks(0), 2000);
    assert!(chunks(3) < 400);
}

#[test]
fn thresholds_are_tried_once_enough_chunks_have_arrived() {
    let note = |compaction, chunks: usize| compacted(compaction, &vec![50; chunks], 2048, 1).note;
    for (compaction, few, many) in
        [(Compaction::Learning, 60, 2000), (Compaction::Smart, 60, 2000), (Compaction::Auto, 8000, 20_000)]
    {
        assert!(note(compaction, few).ends_with("; binary: up to 128 rows"), "{}", note(compaction, few));
        let tried = note(compaction, many);
        assert!(tried.contains("; learning: up to ") && tried.contains(" up to 1024 rows "), "{tried}");
    }
}
