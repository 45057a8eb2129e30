//! Blocks in the store: what a front end answers without nodes, and with a store that has lost or damaged parts.

use crate::faults::Fixture;
use crate::node::{Settings, blocks_writer, clock, start_front, until, write_index};
use lydian_front::Front;
use lydian_primitives::{BlockHash, Txid};
use lydian_query::Query;
use lydian_shared_index::{BlockKey, Key};

/// What explorers and wallets ask about every block, as the node answers.
fn assert_blocks(query: &Query, own: &Query, fixture: &Fixture) {
    for (height, block) in (0..).zip(&fixture.world.chain) {
        let hash = block.hash();
        assert_eq!(query.header(height), own.header(height));
        assert_eq!(query.chain().block_info(&hash), own.chain().block_info(&hash));
        assert_eq!(query.chain().block(&hash).unwrap().unwrap().as_bytes(), block.as_bytes());
        assert_eq!(query.merkle_at(height, 0), own.merkle_at(height, 0));
        let page = |query: &Query| {
            let page = query.block_page(&hash, 0..25).unwrap().unwrap();
            let details = page.transactions.iter().map(|one| format!("{:?} {:?}", one.tx.as_bytes(), one.spent));
            (details.collect::<Vec<_>>(), page.total, page.place)
        };
        assert_eq!(page(query), page(own), "block {height}");
        for txid in block.txs().map(|tx| tx.txid()).filter(|_| height > 0) {
            assert_eq!(query.transaction(&txid).unwrap().as_bytes(), own.transaction(&txid).unwrap().as_bytes());
            assert_eq!(query.block_of(&txid), own.block_of(&txid));
        }
    }
}

/// A front end of one node, whose blocks are in the store.
fn start() -> (Fixture, Front, crate::link::Link, crate::node::Feed) {
    let mut fixture = Fixture::new();
    fixture.writer = blocks_writer(&fixture.world, &fixture.store);
    let (feed, link) = fixture.feed();
    let settings = Settings { store: &fixture.store, links: &[&link], clock };
    let front = start_front(&fixture.world, &settings).0.unwrap();
    (fixture, front, link, feed)
}

#[test]
fn without_nodes_blocks_and_transactions_come_from_the_store() {
    let (mut fixture, front, link, feed) = start();
    let query = front.source().query;
    let own = fixture.world.query();
    // Nothing was asked of the node before it goes.
    link.lead_to(None);
    assert_blocks(&query, own, &fixture);
    assert!(!query.chain().is_pruned(lydian_primitives::Height(5)));
    assert!(query.chain().block(&BlockHash([7; 32])).is_err());
    // The next block, with the node again: the store has it too.
    link.lead_to(Some(feed.address()));
    let block = fixture.maker.block(&fixture.world.chain, &fixture.world.pool, 100);
    fixture.world.connect(block);
    write_index(&mut fixture.writer, &fixture.world);
    until("the front end has the block", || query.chain().tip().unwrap().hash == fixture.world.tip_hash());
    link.lead_to(None);
    assert_blocks(&query, fixture.world.query(), &fixture);
}

#[test]
fn parts_that_are_missing_or_damaged_are_asked_of_nodes_and_are_an_error_without_them() {
    let (fixture, front, link, feed) = start();
    let query = front.source().query;
    let block = fixture.world.chain[60].clone();
    let (hash, txid) = (block.hash(), block.tx(block.tx_count() - 1).txid());
    let is_body = |key: &Key| matches!(key, Key::Block(BlockKey { hash: other, part: 1, .. }) if *other == hash);
    let ask = |query: &Query| {
        let found = query.transaction(&txid).map(|tx| tx.view().txid());
        let whole = query.chain().block(&hash).map(|found| found.unwrap().as_bytes().to_vec());
        (found, whole)
    };
    let expected = (Ok(txid), Ok(block.as_bytes().to_vec()));
    fixture.store.values.lock().unwrap().retain(|key, value| {
        if is_body(key) {
            value[100] ^= 1;
        }
        true
    });
    for text in [" is damaged: part 1 of block ", " lacks part 1 of block "] {
        assert_eq!(ask(&query), expected);
        link.lead_to(None);
        let (found, whole) = ask(&query);
        for error in [found.unwrap_err().to_string(), whole.unwrap_err().to_string()] {
            assert!(error.starts_with("no node answers, try again: ") && error.contains(text), "{error}");
        }
        // Others are there.
        let other: Txid = fixture.world.chain[61].tx(0).txid();
        assert_eq!(query.transaction(&other).unwrap().view().txid(), other);
        link.lead_to(Some(feed.address()));
        fixture.store.values.lock().unwrap().retain(|key, _| !is_body(key));
    }
}

/// The node is asked for nothing that the store has, but for its mempool meanwhile.
#[test]
fn blocks_of_the_store_are_not_asked_of_nodes() {
    let (fixture, front, _link, _feed) = start();
    let query = front.source().query;
    let requests = || front.figures().nodes[0].requests;
    let before = requests();
    for block in &fixture.world.chain[1..] {
        assert_eq!(query.chain().block(&block.hash()).unwrap().unwrap().as_bytes(), block.as_bytes());
        let txid = block.tx(0).txid();
        assert_eq!(query.transaction(&txid).unwrap().view().txid(), txid);
    }
    let (asked, blocks) = (requests() - before, fixture.world.chain.len() as u64);
    assert!(asked < blocks / 4, "{asked} requests for {blocks} blocks and their transactions");
}
