//! Clusters of 64 transactions, which no model can try out: what must hold for any optimal order.

use crate::graph::{Chunk, Diagram, FeeSize, Graph, Level, Limits, TxRef};
use lydian_stdx::SplitMix64;
use std::cmp::Ordering;
use std::collections::BTreeSet;

const COUNT: usize = 64;

/// A cluster as data, so that it can be built in any order.
struct Plan {
    items: Vec<(FeeSize, [u8; 32])>,
    pairs: Vec<(usize, usize)>,
}

fn plan(random: &mut SplitMix64) -> Plan {
    let fee_max = [3, 50, 1_000_000][random.below(3)];
    let size_max = [1, 4, 100_000][random.below(3)];
    let layers = [0, 16, 32, 48][random.below(4)];
    let density = 1 + random.below(8);
    let mut plan = Plan { items: Vec::new(), pairs: Vec::new() };
    for at in 0..COUNT {
        let fee = i64::try_from(random.below(fee_max)).unwrap();
        let size = i32::try_from(1 + random.below(size_max)).unwrap();
        let mut key = [0; 32];
        key[..8].copy_from_slice(&random.next_u64().to_be_bytes());
        plan.items.push((FeeSize::new(fee, size), key));
        if layers > 0 && at >= layers {
            plan.pairs.extend((0..layers).filter(|_| random.below(density) == 0).map(|parent| (parent, at)));
        } else if layers == 0 && at > 0 {
            plan.pairs.extend((0..1 + random.below(3)).map(|_| (at - 1 - random.below(at.min(density * 4)), at)));
        }
    }
    plan
}

fn shuffle<T>(items: &mut [T], random: &mut SplitMix64) {
    for at in (1..items.len()).rev() {
        items.swap(at, random.below(at + 1));
    }
}

/// Builds the plan in a random order, with dependencies one at a time or together.
fn build(plan: &Plan, random: &mut SplitMix64) -> (Graph, Vec<TxRef>) {
    let mut graph = Graph::new(Limits::new(COUNT, u64::MAX));
    let mut order: Vec<usize> = (0..COUNT).collect();
    shuffle(&mut order, random);
    let mut ids: Vec<Option<TxRef>> = vec![None; COUNT];
    for &at in &order {
        ids[at] = Some(graph.add(plan.items[at].0, plan.items[at].1));
    }
    let ids: Vec<TxRef> = ids.into_iter().flatten().collect();
    let mut pairs: Vec<_> = plan.pairs.iter().map(|&(parent, child)| (ids[parent], ids[child])).collect();
    shuffle(&mut pairs, random);
    for part in pairs.chunks(1 + random.below(40)) {
        graph.add_dependencies(part);
    }
    graph.check();
    (graph, ids)
}

fn numbers(graph: &Graph, ids: &[TxRef]) -> Vec<Vec<usize>> {
    let number = |id: &TxRef| ids.iter().position(|other| other == id).unwrap();
    graph.chunks().map(|chunk: Chunk| chunk.nodes.iter().map(number).collect()).collect()
}

fn diagram(graph: &Graph) -> Diagram {
    Diagram::new(graph.chunks().map(|chunk| chunk.feerate).collect())
}

#[test]
fn the_order_does_not_depend_on_history() {
    let mut random = SplitMix64::new(5);
    for _ in 0..20 {
        let plan = plan(&mut random);
        let (graph, ids) = build(&plan, &mut random);
        let expected = numbers(&graph, &ids);
        let (again, ids) = build(&plan, &mut random);
        assert_eq!(numbers(&again, &ids), expected);
    }
}

/// No topological order that random choices find is above the diagram anywhere.
#[test]
fn no_other_order_is_better() {
    let mut random = SplitMix64::new(6);
    for _ in 0..10 {
        let plan = plan(&mut random);
        let (graph, ids) = build(&plan, &mut random);
        let best = diagram(&graph);
        let number = |id: TxRef| ids.iter().position(|&other| other == id).unwrap();
        let ancestors_of = |id: &TxRef| graph.ancestors(&[*id], Level::Main).into_iter().map(number).collect();
        let ancestors: Vec<Vec<usize>> = ids.iter().map(ancestors_of).collect();
        for _ in 0..50 {
            let mut open: BTreeSet<usize> = (0..COUNT).collect();
            let mut chunks: Vec<FeeSize> = Vec::new();
            while !open.is_empty() {
                let is_ready = |at: &&usize| ancestors[**at].iter().all(|other| other == *at || !open.contains(other));
                let ready: Vec<usize> = open.iter().filter(is_ready).copied().collect();
                // Mostly the best of three, so that the orders are good ones.
                let choices = (0..3).map(|_| ready[random.below(ready.len())]);
                let next = choices.min_by(|&a, &b| plan.items[a].0.compare_mining(&plan.items[b].0)).unwrap();
                open.remove(&next);
                chunks.push(plan.items[next].0);
                while let [.., before, last] = chunks[..]
                    && last.compare_feerate(&before).is_gt()
                {
                    chunks.truncate(chunks.len() - 2);
                    chunks.push(before + last);
                }
            }
            let verdict = best.compare(&Diagram::new(chunks));
            assert!(matches!(verdict, Some(Ordering::Greater | Ordering::Equal)), "{verdict:?}");
        }
    }
}

/// A higher fee never makes the diagram worse, and a change that is taken back restores the order.
#[test]
fn changes_are_monotonic_and_reversible() {
    let mut random = SplitMix64::new(7);
    for _ in 0..10 {
        let (mut graph, ids) = build(&plan(&mut random), &mut random);
        for _ in 0..20 {
            let (before, chunks) = (diagram(&graph), numbers(&graph, &ids));
            let id = ids[random.below(COUNT)];
            let fee = graph.feerate(id).unwrap().fee;
            graph.set_fee(id, fee + i64::try_from(random.below(1_000)).unwrap());
            assert!(matches!(diagram(&graph).compare(&before), Some(Ordering::Greater | Ordering::Equal)));
            graph.check();
            graph.set_fee(id, fee);
            assert_eq!(numbers(&graph, &ids), chunks);
        }
    }
}
