//! Single properties: handles, limits, extreme numbers, cycles.

use crate::graph::{Diagram, FeeSize, Graph, Level, Limits, TxRef};
use crate::limits::CLUSTER_COUNT_MAX;
use std::cmp::Ordering;

fn key(number: usize) -> [u8; 32] {
    let mut key = [0; 32];
    key[..8].copy_from_slice(&(number as u64).to_be_bytes());
    key
}

fn graph() -> Graph {
    Graph::new(Limits::new(CLUSTER_COUNT_MAX, 404_000))
}

/// Adds a chain of `count` transactions of fee 1 and size `size`.
fn chain(graph: &mut Graph, count: usize, size: i32) -> Vec<TxRef> {
    let ids: Vec<TxRef> = (0..count).map(|number| graph.add(FeeSize::new(1, size), key(number))).collect();
    let pairs: Vec<_> = ids.windows(2).map(|pair| (pair[0], pair[1])).collect();
    graph.add_dependencies(&pairs);
    ids
}

/// limit: CLUSTER_COUNT_MAX at
#[test]
fn a_cluster_of_the_greatest_count_fits() {
    let mut graph = Graph::new(Limits::new(1_000, u64::MAX));
    let ids = chain(&mut graph, CLUSTER_COUNT_MAX, 1);
    assert!(!graph.is_oversized(Level::Main));
    assert_eq!(graph.cluster(ids[0], Level::Main), ids);
    assert_eq!(graph.ancestors(&[ids[63]], Level::Main).len(), 64);
    graph.check();
}

/// limit: CLUSTER_COUNT_MAX above
#[test]
fn one_transaction_more_makes_the_graph_oversized() {
    let mut graph = Graph::new(Limits::new(1_000, u64::MAX));
    let ids = chain(&mut graph, CLUSTER_COUNT_MAX + 1, 1);
    assert!(graph.is_oversized(Level::Main));
    assert_eq!(graph.cluster_len(ids[0], Level::Main), 1, "dependencies take effect together or not at all");
    assert_eq!(graph.trim(), [ids[64]]);
    assert!(!graph.is_oversized(Level::Main));
    assert_eq!(graph.cluster_len(ids[0], Level::Main), 64);
    graph.check();
}

#[test]
fn the_size_of_a_cluster_is_limited() {
    let mut graph = Graph::new(Limits::new(64, 100));
    chain(&mut graph, 10, 10);
    assert!(!graph.is_oversized(Level::Main));
    let mut graph = Graph::new(Limits::new(64, 99));
    let ids = chain(&mut graph, 10, 10);
    assert!(graph.is_oversized(Level::Main));
    graph.remove(&[ids[4]]);
    assert!(!graph.is_oversized(Level::Main), "without one of them the rest fits");
    assert_eq!(graph.cluster(ids[0], Level::Main), ids[..4]);
    graph.check();
}

#[test]
fn a_transaction_that_exceeds_the_size_alone_is_trimmed() {
    let mut graph = Graph::new(Limits::new(64, 99));
    let small = graph.add(FeeSize::new(1, 99), key(0));
    let large = graph.add(FeeSize::new(1_000, 100), key(1));
    assert!(graph.is_oversized(Level::Main));
    assert_eq!(graph.trim(), [large]);
    assert!(graph.contains(small, Level::Main) && !graph.contains(large, Level::Main));
    graph.check();
}

#[test]
fn old_handles_find_nothing() {
    let mut graph = graph();
    let ids = chain(&mut graph, 3, 1);
    graph.remove(&ids);
    let reused = graph.add(FeeSize::new(5, 1), key(9));
    assert!(ids.iter().any(|id| id.slot == reused.slot), "a slot is used again");
    for &id in &ids {
        assert!(!graph.contains(id, Level::Main));
        assert_eq!((graph.feerate(id), graph.chunk_feerate(id)), (None, None));
        assert!(graph.cluster(id, Level::Main).is_empty() && graph.cluster_chunks(id).is_empty());
        graph.set_fee(id, 7);
        graph.add_dependencies(&[(id, reused), (reused, id)]);
    }
    graph.remove(&ids);
    assert_eq!(graph.ancestors(&ids, Level::Main), []);
    assert_eq!(graph.compare(reused, ids[0]), Ordering::Less);
    assert_eq!(graph.feerate(reused), Some(FeeSize::new(5, 1)));
    graph.check();
}

#[test]
fn staging_leaves_main_untouched_until_the_commit() {
    let mut graph = graph();
    let ids = chain(&mut graph, 3, 1);
    let before: Vec<_> = graph.chunks().collect();
    graph.start_staging();
    graph.remove(&ids[2..]);
    let added = graph.add(FeeSize::new(10, 1), key(7));
    graph.add_dependencies(&[(ids[1], added)]);
    assert!(graph.contains(ids[2], Level::Main) && !graph.contains(ids[2], Level::Staging));
    assert!(!graph.contains(added, Level::Main) && graph.contains(added, Level::Staging));
    assert!(graph.chunks().eq(before.clone()));
    let (main, staging) = graph.diagrams().unwrap();
    assert_eq!(main, Diagram::new(vec![FeeSize::new(1, 1); 3]));
    assert_eq!(staging, Diagram::new(vec![FeeSize::new(12, 3)]));
    graph.abort_staging();
    assert!(!graph.contains(added, Level::Staging) && graph.feerate(added).is_none());
    assert!(graph.chunks().eq(before));
    graph.check();
}

#[test]
fn a_new_fee_counts_in_both_levels() {
    let mut graph = graph();
    let ids = chain(&mut graph, 2, 1);
    graph.start_staging();
    let added = graph.add(FeeSize::new(1, 1), key(7));
    graph.add_dependencies(&[(ids[1], added)]);
    graph.set_fee(ids[1], 9);
    let (main, staging) = graph.diagrams().unwrap();
    assert_eq!(main, Diagram::new(vec![FeeSize::new(10, 2)]));
    assert_eq!(staging, Diagram::new(vec![FeeSize::new(10, 2), FeeSize::new(1, 1)]));
    graph.check();
}

#[test]
fn cycles_are_ignored() {
    let mut graph = graph();
    let ids = chain(&mut graph, 3, 1);
    graph.add_dependencies(&[(ids[2], ids[0]), (ids[1], ids[1])]);
    assert_eq!(graph.ancestors(&[ids[0]], Level::Main), [ids[0]]);
    assert_eq!(graph.cluster(ids[2], Level::Main), ids);
    graph.check();
}

/// Cycles among the dependencies that wait would leave nothing that waits for nothing. Core's `Trim` removes them.
#[test]
fn trimming_a_cycle_ends() {
    let mut graph = Graph::new(Limits::new(2, 100));
    let ids: Vec<TxRef> = (0..3).map(|number| graph.add(FeeSize::new(1, 1), key(number))).collect();
    graph.add_dependencies(&[(ids[0], ids[1]), (ids[1], ids[2]), (ids[2], ids[0])]);
    assert_eq!(graph.trim(), ids);
    assert!(graph.is_empty(Level::Main));
    graph.check();
}

#[test]
fn extreme_fees_and_sizes_are_ordered() {
    let mut graph = Graph::new(Limits::new(64, u64::MAX));
    let fees = [i64::MAX, i64::MIN, 0, -1, i64::MAX - 1];
    let add = |graph: &mut Graph, at: usize| graph.add(FeeSize::new(fees[at % 5], i32::MAX), key(at));
    let ids: Vec<TxRef> = (0..64).map(|at| add(&mut graph, at)).collect();
    let pairs: Vec<_> = (1..64).map(|at| (ids[at / 2], ids[at])).collect();
    graph.add_dependencies(&pairs);
    graph.check();
    graph.start_staging();
    graph.remove(&graph.descendants(&[ids[3]], Level::Staging));
    assert!(graph.diagrams().is_some());
    graph.commit_staging();
    graph.check();
    let empty = graph.add(FeeSize::new(1, 0), key(100));
    assert_eq!(graph.feerate(empty), Some(FeeSize::new(1, 1)), "a size below 1 counts as 1");
}

#[test]
fn a_block_leaves_out_the_rest_of_a_skipped_cluster() {
    let mut graph = graph();
    let ids: Vec<TxRef> =
        [9, 5, 7].iter().enumerate().map(|(at, &fee)| graph.add(FeeSize::new(fee, 1), key(at))).collect();
    graph.add_dependencies(&[(ids[0], ids[1])]);
    let mut builder = graph.block_builder();
    assert_eq!(builder.current().unwrap().nodes, [ids[0]]);
    builder.skip();
    assert_eq!(builder.current().unwrap().nodes, [ids[2]]);
    builder.include();
    assert_eq!(builder.current(), None, "the child of the skipped one");
    builder.include();
    assert_eq!(builder.current(), None);
}

/// Memory is counted as clusters come and go, and a transaction takes at most 0.7 of the 231 bytes that it takes in
/// Core's `TxGraph` (`GetMainMemoryUsage`, and the `Ref` in the entry) with the shapes of `benches/graph.rs`.
#[test]
fn memory_returns_to_zero() {
    let mut graph = graph();
    let alone: Vec<TxRef> =
        (0..100).map(|number| graph.add(FeeSize::new(i64::try_from(number).unwrap(), 1), key(number))).collect();
    assert!(graph.memory_bytes() / 100 <= 150, "{}", graph.memory_bytes() / 100);
    let more = chain(&mut graph, 40, 1);
    graph.start_staging();
    graph.remove(&more[10..20]);
    graph.commit_staging();
    graph.remove(&more);
    graph.remove(&alone);
    assert_eq!((graph.memory_bytes(), graph.len(Level::Main)), (0, 0));
    assert_eq!(graph.worst_chunk(), None);
    graph.check();
}
