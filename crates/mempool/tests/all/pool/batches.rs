//! Transactions that wait together are decided as one after another.

use super::maker::random_batch;
use super::world::Alone;
use lydian_mempool::SubmitError;
use lydian_mempool::limits::{BATCH_MAX, QUEUE_BYTES_MAX, QUEUE_MAX};
use lydian_mempool::policy::Settings;
use lydian_mempool::pool::{Accepted, ChangeKind, Member};
use lydian_primitives::Transaction;
use lydian_primitives::build::MutTx;
use lydian_stdx::SplitMix64;
use std::sync::Arc;
use std::sync::mpsc::sync_channel;

/// What is compared of an answer.
fn words(answer: &Result<Accepted, SubmitError>) -> String {
    match answer {
        Ok(accepted) => {
            let replaced: Vec<String> = accepted.replaced.iter().map(|entry| entry.txid().to_string()).collect();
            format!("{} {} {replaced:?}", accepted.vsize, accepted.fee.0)
        }
        Err(error) => error.to_string(),
    }
}

/// Sends all at once, while the accepting thread is kept from beginning.
fn together(world: &Alone, txs: &[Arc<Transaction>]) -> Vec<String> {
    let (hold, held) = sync_channel::<()>(0);
    let first = world.funding();
    assert!(world.pool.offer(
        first,
        Box::new(move |_| {
            let _ = held.recv();
        })
    ));
    let (done, answers) = sync_channel(txs.len());
    for (index, tx) in txs.iter().enumerate() {
        let done = done.clone();
        let is_queued =
            world.pool.offer(Arc::clone(tx), Box::new(move |answer| drop(done.send((index, words(&answer))))));
        assert!(is_queued);
    }
    hold.send(()).unwrap();
    let mut found: Vec<(usize, String)> = answers.iter().take(txs.len()).collect();
    found.sort_unstable();
    found.into_iter().map(|(_, words)| words).collect()
}

fn one_by_one(world: &Alone, txs: &[Arc<Transaction>]) -> Vec<String> {
    let _ = world.pool.submit(world.funding(), false);
    txs.iter().map(|tx| words(&world.pool.submit(Arc::clone(tx), false))).collect()
}

/// The changes of a pool, in order.
fn changes(world: &Alone) -> Vec<String> {
    let feed = world.pool.feed();
    let changes = feed.read(1, usize::MAX).unwrap();
    let kind = |kind: &ChangeKind| match kind {
        ChangeKind::Added { spent } => format!("added {}", spent.len()),
        ChangeKind::Removed { reason } => reason.name().to_owned(),
    };
    changes.iter().map(|change| format!("{} {} {}", change.sequence, kind(&change.kind), change.entry.txid())).collect()
}

/// limit: BATCH_MAX at
/// limit: BATCH_MAX above
#[test]
fn a_batch_is_decided_as_one_after_another() {
    let mut accepted = 0;
    for (seed, count) in [(1, 40), (2, BATCH_MAX), (3, BATCH_MAX + 1), (4, 3 * BATCH_MAX)] {
        let settings = Settings { mempool_bytes_max: 5_000_000, ..Settings::default() };
        let worlds = [Alone::new(settings.clone()), Alone::new(settings)];
        let txs = random_batch(SplitMix64::new(seed), &worlds[0].coins(), count);
        let (ours, plain) = (together(&worlds[0], &txs), one_by_one(&worlds[1], &txs));
        assert_eq!(ours, plain, "seed {seed}");
        assert_eq!(changes(&worlds[0]), changes(&worlds[1]), "seed {seed}");
        let order = |world: &Alone| -> Vec<String> {
            let snapshot = world.pool.snapshot();
            snapshot.in_mining_order().iter().map(|member: &&Member| member.entry().txid().to_string()).collect()
        };
        assert_eq!(order(&worlds[0]), order(&worlds[1]), "seed {seed}");
        accepted += worlds[0].pool.snapshot().len();
    }
    assert!(accepted > 100, "{accepted}");
}

/// limit: QUEUE_MAX at
/// limit: QUEUE_MAX above
#[test]
fn a_full_queue_refuses() {
    let world = Alone::new(Settings::default());
    let tx = world.funding();
    let (hold, held) = sync_channel::<()>(0);
    let (begins, begun) = sync_channel::<()>(0);
    let wait = Box::new(move |_| {
        begins.send(()).unwrap();
        let _ = held.recv();
    });
    assert!(world.pool.offer(Arc::clone(&tx), wait));
    begun.recv().unwrap();
    for place in 0..QUEUE_MAX {
        assert!(world.pool.offer(Arc::clone(&tx), Box::new(|_| {})), "place {place}");
    }
    assert!(!world.pool.offer(Arc::clone(&tx), Box::new(|_| {})), "and one more");
    hold.send(()).unwrap();
    // A call waits for its turn.
    assert!(world.pool.submit(tx, false).is_err());
    world.pool.end();
    assert!(matches!(world.pool.submit(world.funding(), false), Err(SubmitError::Ended)));
    assert!(!world.pool.offer(world.funding(), Box::new(|_| {})));
}

/// limit: QUEUE_BYTES_MAX at
/// limit: QUEUE_BYTES_MAX above
#[test]
fn a_queue_of_large_transactions_refuses() {
    let world = Alone::new(Settings::default());
    let small = world.funding();
    let (hold, held) = sync_channel::<()>(0);
    let (begins, begun) = sync_channel::<()>(0);
    let wait = Box::new(move |_| {
        begins.send(()).unwrap();
        let _ = held.recv();
    });
    assert!(world.pool.offer(Arc::clone(&small), wait));
    begun.recv().unwrap();
    // The one that is being answered has left the queue.
    let (large, mut left) = (with_script(&small, 1 << 20), QUEUE_BYTES_MAX);
    while left >= 2 * large.as_bytes().len() {
        assert!(world.pool.offer(Arc::clone(&large), Box::new(|_| {})), "{left} bytes left");
        left -= large.as_bytes().len();
    }
    let added = large.as_bytes().len() - (1 << 20);
    let last = with_script(&small, left - added);
    assert_eq!(last.as_bytes().len(), left);
    assert!(world.pool.offer(last, Box::new(|_| {})), "it fills the queue");
    assert!(!world.pool.offer(Arc::clone(&small), Box::new(|_| {})), "and one more");
    hold.send(()).unwrap();
    // It comes after them; then their room is free.
    assert!(world.pool.submit(Arc::clone(&small), false).is_err());
    assert!(world.pool.offer(large, Box::new(|_| {})));
    world.pool.end();
}

/// The transaction with an output whose script has this size, in bytes.
fn with_script(tx: &Transaction, size: usize) -> Arc<Transaction> {
    let mut tx = MutTx::from(tx.view());
    tx.outputs[0].script_pubkey = vec![0x6a; size];
    Arc::new(tx.to_transaction().unwrap())
}
