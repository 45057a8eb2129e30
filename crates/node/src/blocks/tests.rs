//! The record on its own: limits, reorganisations, senders.

use super::*;
use lydian_p2p::peer::PeerId;
use lydian_primitives::{BlockHash, Header, Height};

fn hash(height: u32, branch: u8) -> BlockHash {
    let mut hash = BlockHash([branch; 32]);
    hash.0[..4].copy_from_slice(&height.to_le_bytes());
    hash
}

fn row(height: u32, branch: u8) -> Row {
    let header = Header { version: 0, prev_block: hash(0, 0), merkle_root: [0; 32], time: 0, bits: 0, nonce: 0 };
    Row { height, hash: hash(height, branch), header, facts: None, live: None, sent: None }
}

fn tip(height: u32, branch: u8, is_disconnect: bool) -> TipUpdate {
    TipUpdate {
        hash: hash(height, branch),
        height: Height(height),
        header: row(height, branch).header,
        chain_work: lydian_consensus::U256::from_u64(u64::from(height)),
        transactions: 0,
        cache_bytes: 0,
        coins: 0,
        is_disconnect,
    }
}

/// Connects a block as the events of the engine do.
fn connect(blocks: &Blocks, height: u32, branch: u8) {
    blocks.event(&Event::UpdateTip(tip(height, branch, false)));
    blocks.change(|all| {
        all.cut(height);
        all.enter(row(height, branch));
    });
}

fn heights(blocks: &Blocks) -> Vec<u32> {
    blocks.rows(usize::MAX).iter().map(|row| row.height).collect()
}

/// limit: ROWS_MAX at
/// limit: ROWS_MAX above
#[test]
fn the_last_blocks_have_rows() {
    let blocks = Blocks::default();
    let max = u32::try_from(ROWS_MAX).unwrap();
    (0..max).for_each(|height| connect(&blocks, height, 0));
    assert_eq!(heights(&blocks), (0..max).collect::<Vec<_>>());
    assert_eq!(blocks.missing(), None);
    connect(&blocks, max, 0);
    assert_eq!(heights(&blocks), (1..=max).collect::<Vec<_>>());
    assert_eq!(blocks.missing(), None);
    assert_eq!(blocks.rows(3).iter().map(|row| row.height).collect::<Vec<_>>(), [max - 2, max - 1, max]);
}

#[test]
fn blocks_from_before_the_start_are_filled_downwards() {
    let blocks = Blocks::default();
    assert_eq!(blocks.missing(), None, "nothing is known of the chain");
    blocks.begins(&tip(3_000, 0, false));
    let lowest = 3_001 - u32::try_from(ROWS_MAX).unwrap();
    for height in (lowest..=3_000).rev() {
        assert_eq!(blocks.missing(), Some(height));
        blocks.fill(row(height, 0), || true);
    }
    assert_eq!(blocks.missing(), None);
    blocks.fill(row(lowest - 1, 0), || true);
    blocks.fill(row(3_001, 0), || true);
    assert_eq!(heights(&blocks), (lowest..=3_000).collect::<Vec<_>>(), "none below or above");
    // Meanwhile a block was disconnected.
    blocks.event(&Event::UpdateTip(tip(2_999, 0, true)));
    blocks.fill(row(3_000, 0), || true);
    blocks.event(&Event::UpdateTip(tip(3_000, 1, false)));
    assert_eq!(blocks.missing(), Some(3_000));
    blocks.fill(row(3_000, 0), || false);
    assert_eq!(blocks.missing(), Some(3_000), "it is not on the chain any more");
    blocks.fill(row(3_000, 1), || true);
    connect(&blocks, 3_002, 1);
    assert_eq!(blocks.missing(), Some(3_001), "a hole");
}

#[test]
fn a_reorganisation_replaces_rows() {
    let blocks = Blocks::default();
    blocks.begins(&tip(0, 0, false));
    (1..=5).for_each(|height| connect(&blocks, height, 0));
    blocks.event(&Event::UpdateTip(tip(4, 0, true)));
    blocks.event(&Event::UpdateTip(tip(3, 0, true)));
    assert_eq!(heights(&blocks), [1, 2, 3]);
    (4..=6).for_each(|height| connect(&blocks, height, 1));
    let hashes: Vec<BlockHash> = blocks.rows(4).iter().map(|row| row.hash).collect();
    assert_eq!(hashes, [hash(3, 0), hash(4, 1), hash(5, 1), hash(6, 1)]);
    let [reorg] = blocks.reorganisations()[..] else { panic!("one reorganisation") };
    assert_eq!((reorg.depth(), reorg.old.hash, reorg.new.hash), (2, hash(5, 0), hash(6, 1)));
}

fn sent(height: u32, extra: u32) -> SentBlock {
    let (name, user_agent) = ("127.0.0.1:1".to_owned(), "/peer/".to_owned());
    let missing = Some(3);
    SentBlock { hash: hash(height, 0), peer: PeerId(7), name, user_agent, missing, download: None, extra }
}

/// The sender of a block may become known before and after the block is connected.
/// limit: SENT_WAITING_MAX at
/// limit: SENT_WAITING_MAX above
#[test]
fn rows_have_their_senders() {
    let blocks = Blocks::default();
    let take = |sent| lock(&blocks.state).sent(sent);
    let extra = |height: u32| {
        let rows = blocks.rows(usize::MAX);
        rows.into_iter().find(|row| row.height == height).and_then(|row| row.sent).map(|sent| sent.extra)
    };
    take(sent(1, 0));
    take(sent(1, 2));
    connect(&blocks, 1, 0);
    connect(&blocks, 2, 0);
    assert_eq!((extra(1), extra(2)), (Some(2), None));
    let before = blocks.version();
    take(sent(2, 0));
    take(sent(2, 1));
    assert_eq!((extra(2), blocks.version()), (Some(1), before + 2));
    let first = 10;
    let last = first + u32::try_from(SENT_WAITING_MAX).unwrap();
    (first..=last).for_each(|height| take(sent(height, 0)));
    (3..=last).for_each(|height| connect(&blocks, height, 0));
    assert_eq!((extra(first), extra(first + 1), extra(last)), (None, Some(0), Some(0)));
}
