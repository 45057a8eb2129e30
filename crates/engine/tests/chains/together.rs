//! Many callers at once, and a cancel from another thread. Whatever the order of the calls, the engine is never in an
//! intermediate state, and it ends where the blocks lead.

use crate::expected::{Expected, Order, parse, shuffle, state_of};
use crate::lydian::{How, Lydian, Place};
use crate::seeds::for_seeds;
use crate::story::{NOW, Story};
use lydian_chains::rng::Random;
use lydian_consensus::utxo_hash::hash_serialized_3;
use lydian_consensus::{Chain, Params, PlainValidator, Rejected};
use lydian_engine::{Cancel, Event, Observer, Unobserved};
use std::collections::HashMap;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

/// Several threads submit the same and competing blocks in file order: each block is accepted at most once, and the
/// other threads get a duplicate.
/// checklist: 90
#[test]
fn writers_wait_for_each_other() {
    for_seeds("together::writers_wait_for_each_other", 40, |seed| {
        let mut random = Random::new(seed, "together");
        let story = Story::new(seed);
        let expected = Expected::new(&story, Order::File, &mut random);
        let how = How { pending_bytes_max: [300, 3_000, 1 << 30][random.index(3)], ..How::random(&mut random) };
        let place = Place::new(&how, &format!("together-{seed}"));
        let lydian = Lydian::open(&place, &story.params, &how).unwrap();
        let accepted: Vec<AtomicUsize> = expected.fed.iter().map(|_| AtomicUsize::new(0)).collect();
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    for (index, fed) in expected.fed.iter().enumerate() {
                        match lydian.accept(&fed.block).unwrap() {
                            Ok(_) => drop(accepted[index].fetch_add(1, Ordering::Relaxed)),
                            Err(Rejected::Violation(_) | Rejected::DuplicateInvalid | Rejected::Duplicate) => {}
                        }
                    }
                });
            }
        });
        let decider = story.block_on(expected.end.hash, expected.end.height.0);
        let mut plain = PlainValidator::new(story.params.clone());
        for (index, fed) in expected.fed.iter().enumerate() {
            let _ = plain.accept_block(parse(&fed.block), NOW);
            let count = accepted[index].load(Ordering::Relaxed);
            // A block that was accepted on a wrong assumption and turned out to be invalid may have been found so
            // before its answer was given.
            let is_good = expected.violation_of(&parse(&fed.block).hash()).is_none();
            let wanted = usize::from(fed.answer.is_ok() && is_good);
            assert!(count <= 1 && count >= wanted, "block {index} was accepted {count} times under {how:?}");
        }
        plain.accept_block(parse(&decider), NOW).unwrap();
        lydian.accept(&decider).unwrap().unwrap();
        lydian.assert_state(&state_of(&plain), &format!("after three writers under {how:?}"));
    });
}

/// One thread stores blocks in any order, another advances repeatedly, a third cancels it at any moment.
/// checklist: 90
#[test]
fn a_cancel_from_outside() {
    for_seeds("together::a_cancel_from_outside", 40, |seed| {
        let mut random = Random::new(seed, "outside");
        let story = Story::new(seed);
        let expected = Expected::new(&story, Order::File, &mut random);
        let how = How::random(&mut random);
        let place = Place::new(&how, &format!("outside-{seed}"));
        let lydian = Lydian::open(&place, &story.params, &how).unwrap();
        let is_done = AtomicBool::new(false);
        let mut order: Vec<usize> = (0..expected.fed.len()).collect();
        shuffle(&mut order[story.trunk.min(expected.fed.len())..], &mut random);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for index in order.iter().copied().chain(0..expected.fed.len()) {
                    let block = parse(&expected.fed[index].block);
                    let _ = lydian.engine.store_block(block, i64::from(NOW)).unwrap();
                }
                is_done.store(true, Ordering::Release);
            });
            while !is_done.load(Ordering::Acquire) {
                let cancel = Cancel::new();
                let spins = random.below(20_000);
                let canceller = scope.spawn({
                    let cancel = cancel.clone();
                    move || {
                        (0..spins).for_each(|_| std::hint::spin_loop());
                        cancel.cancel();
                    }
                });
                let advance = lydian.engine.advance(&cancel, &Unobserved).unwrap();
                for (hash, violation) in &advance.invalid {
                    assert_eq!(expected.violation_of(hash), Some(*violation), "{hash}");
                }
                canceller.join().unwrap();
            }
        });
        lydian.advance().unwrap();
        let decider = story.block_on(expected.end.hash, expected.end.height.0);
        let mut plain = PlainValidator::new(story.params.clone());
        for block in expected.fed.iter().map(|fed| &fed.block).chain([&decider]) {
            let _ = plain.accept_block(parse(block), NOW);
        }
        lydian.accept(&decider).unwrap().unwrap();
        lydian.assert_state(&state_of(&plain), &format!("after many cancels under {how:?}"));
    });
}

/// A block is accepted while a scan of all coins is half way, and the scan has the coins of its tip. Sums that are
/// asked for while blocks arrive are those of the tip that they name.
#[test]
fn all_coins_are_read_while_blocks_are_accepted() {
    for_seeds("together::all_coins_are_read_while_blocks_are_accepted", 20, |seed| {
        let mut random = Random::new(seed, "scan");
        let story = Story::new(seed);
        let expected = Expected::new(&story, Order::File, &mut random);
        let how = How { pending_bytes_max: [300, 3_000, 1 << 30][random.index(3)], ..How::random(&mut random) };
        let place = Place::new(&how, &format!("scan-{seed}"));
        let lydian = Lydian::open(&place, &story.params, &how).unwrap();
        let mut plain = PlainValidator::new(story.params.clone());
        let mut states = HashMap::from([(plain.tip().1, state_of(&plain))]);
        for fed in &expected.fed {
            let _ = plain.accept_block(parse(&fed.block), NOW);
            states.insert(plain.tip().1, state_of(&plain));
        }
        let is_fed = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                expected.fed.iter().for_each(|fed| drop(lydian.accept(&fed.block).unwrap()));
                is_fed.store(true, Ordering::Release);
            });
            while !is_fed.load(Ordering::Acquire) {
                let hashes = lydian.engine.utxo_hashes().unwrap();
                // A review may not have found an invalid block yet.
                if let Some(state) = states.get(&hashes.tip.hash) {
                    assert_eq!(hashes.hash_serialized_3, state.hash_serialized_3, "under {how:?}");
                }
            }
        });
        lydian.engine.finish_reviews().unwrap();
        let decider = story.block_on(expected.end.hash, expected.end.height.0);
        let (tip, pinned) = lydian.engine.pin_coins().unwrap();
        let state = &states[&tip.hash];
        let mut coins = Vec::new();
        let scan = pinned.each(&mut |outpoint, coin| -> ControlFlow<()> {
            if coins.len() as u64 == pinned.len() / 2 {
                // In the thread that scans: a lock held by it would never be free.
                lydian.accept(&decider).unwrap().unwrap();
                assert_eq!(lydian.engine.tip().hash, parse(&decider).hash());
                lydian.engine.checkpoint(&Unobserved).unwrap();
            }
            coins.push((*outpoint, coin.clone()));
            ControlFlow::Continue(())
        });
        assert!(scan.unwrap().is_continue());
        assert!(coins.is_empty() || lydian.engine.tip() != tip);
        coins.sort_by_key(|(outpoint, _)| *outpoint);
        let coins = coins.iter().map(|(outpoint, coin)| (outpoint, coin));
        assert_eq!(hash_serialized_3(coins), state.hash_serialized_3, "the scan under {how:?}");
    });
}

/// Lets each block of a run take a while once a reader has begun.
struct Slow<'a> {
    has_begun: &'a AtomicBool,
    at: &'a AtomicUsize,
}

impl Observer for Slow<'_> {
    fn event(&self, event: &Event<'_>) {
        if let Event::UpdateTip(tip) = event {
            self.at.store(tip.height.0 as usize, Ordering::Release);
            while tip.height.0 > 3 && !self.has_begun.load(Ordering::Acquire) {
                std::thread::yield_now();
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

/// Who asks for all coins while blocks are validated gets those of a block on the way, not of the last one.
#[test]
fn all_coins_are_pinned_in_the_middle_of_a_run() {
    let mut random = Random::new(1, "middle");
    let how = How { pending_bytes_max: 1 << 30, window_blocks: 2, stop_at: None, ..How::random(&mut random) };
    let params = Params::new(Chain::Regtest);
    let place = Place::new(&how, "middle");
    let lydian = Lydian::open(&place, &params, &how).unwrap();
    let mut tip = params.genesis_hash;
    for height in 0..100 {
        let block = parse(&crate::story::sealed(tip, height, b"middle", Vec::new()).encode());
        tip = block.hash();
        lydian.engine.store_block(block, i64::from(NOW)).unwrap().unwrap();
    }
    let (has_begun, at) = (AtomicBool::new(false), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            while at.load(Ordering::Acquire) < 3 {
                std::thread::yield_now();
            }
            has_begun.store(true, Ordering::Release);
            let (tip, pinned) = lydian.engine.pin_coins().unwrap();
            (tip, pinned.tip(), pinned.len())
        });
        lydian.engine.advance(&Cancel::new(), &Slow { has_begun: &has_begun, at: &at }).unwrap();
        let (tip, of_files, coins) = reader.join().unwrap();
        assert!((3..100).contains(&tip.height.0), "{tip:?}");
        assert_eq!((of_files, coins), (Some(tip), u64::from(tip.height.0)));
    });
    assert_eq!(lydian.engine.tip().height.0, 100);
}
