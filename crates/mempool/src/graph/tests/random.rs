//! Random changes: the graph and the plain model agree after each of them.

use crate::graph::twin::{COUNT_MAX, Change, Pair};
use proptest::collection::vec;
use proptest::prelude::*;

fn change() -> impl Strategy<Value = Change> {
    let fee = || prop_oneof![4 => 0..6_i64, 2 => -3..1_000_i64];
    prop_oneof![
        6 => (fee(), 1..5_i32, any::<u64>()).prop_map(|(fee, size, key)| Change::Add { fee, size, key }),
        6 => vec((0..50_usize, 0..50_usize), 1..6).prop_map(Change::Depend),
        2 => (0..50_usize, 0..3_u8).prop_map(|(of, what)| Change::Remove { of, what }),
        2 => (0..50_usize, fee()).prop_map(|(of, fee)| Change::Fee { of, fee }),
        2 => Just(Change::Start),
        1 => Just(Change::Abort),
        2 => Just(Change::Commit),
        1 => Just(Change::Trim),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn the_graph_agrees_with_the_model(
        (count_max, size_max) in (2..7_usize, 4..20_u64),
        changes in vec(change(), 1..40),
    ) {
        let mut pair = Pair::new(count_max, size_max);
        for change in &changes {
            if pair.numbers().len() >= COUNT_MAX && matches!(change, Change::Add { .. }) {
                continue;
            }
            pair.apply(change);
            pair.check();
        }
    }

    /// One cluster of up to 8 transactions with few different fees, so that ties and equal feerates are common.
    #[test]
    fn the_order_of_a_cluster_is_the_best_of_all(
        items in vec((0..4_i64, 1..4_i32, any::<u64>()), 2..=8),
        pairs in vec((0..8_usize, 0..8_usize), 1..14),
    ) {
        let mut pair = Pair::new(8, 1_000);
        for &(fee, size, key) in &items {
            pair.apply(&Change::Add { fee, size, key });
        }
        for &one in &pairs {
            pair.apply(&Change::Depend(vec![one]));
        }
        pair.check();
    }
}
