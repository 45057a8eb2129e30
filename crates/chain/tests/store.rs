//! The block store on the simulated disk: what was appended is read back, before and after a restart.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use common::blocks::{Maker, layout, params, spent_of};
use lydian_chain::{BlockStore, HeaderTree, IndexEntry, NodeId, Opened, encode_undo};
use lydian_disk::{Disk, SimDisk};
use lydian_primitives::Block;
use std::sync::Arc;

fn open(disk: &SimDisk) -> Opened {
    BlockStore::open(Arc::new(disk.clone()), &layout(), &params()).unwrap()
}

/// Takes a block in as the engine does.
fn take(store: &BlockStore, tree: &mut HeaderTree, block: &Block) -> NodeId {
    let count = tree.len();
    let id = tree.accept_header(block.header(), i64::MAX / 2, &params()).unwrap();
    if tree.len() > count {
        store.record(&[IndexEntry::Header { id, header: *block.header() }]);
    }
    let position = store.append_block(block.as_bytes()).unwrap();
    tree.set_block(id, position);
    store.record(&[IndexEntry::Block { id, position }]);
    id
}

#[test]
fn blocks_and_undo_return_after_a_restart() {
    let disk = SimDisk::new(1);
    let Opened { store, mut tree, remarks, is_reindexing } = open(&disk);
    assert!(remarks.is_empty() && !is_reindexing);
    let blocks = Maker::new().chain(10, 2);
    let mut ids = Vec::new();
    for block in &blocks {
        let id = take(&store, &mut tree, block);
        tree.push_active(id);
        let spent = spent_of(block);
        let undo = encode_undo(block, &spent);
        let position = store.append_undo(tree.node(id).block.unwrap(), &block.header().prev_block, &undo).unwrap();
        tree.set_undo(id, position);
        tree.set_verified(id);
        store.record(&[IndexEntry::Undo { id, position }, IndexEntry::Verified { id }]);
        assert_eq!(store.read_spent(position, block).unwrap(), spent);
        ids.push(id);
    }
    tree.invalidate(ids[9]);
    store.record(&[IndexEntry::Invalid { id: ids[9] }]);
    store.sync().unwrap();
    drop(store);
    let Opened { store, tree: again, remarks, .. } = open(&disk.power_loss(3));
    assert_eq!(remarks, []);
    assert_eq!(again.len(), tree.len());
    for (id, block) in ids.iter().zip(&blocks) {
        let node = again.node(*id);
        assert_eq!(node, tree.node(*id));
        assert_eq!(store.read_block(node.block.unwrap()).unwrap().as_bytes(), block.as_bytes());
        assert_eq!(store.read_spent(node.undo.unwrap(), block).unwrap().len(), block.input_count() - 1);
    }
    assert_eq!(again.best_candidate(), Some(ids[8]));
    assert!(disk.list(&layout().blocks).unwrap().len() >= 3);
}
