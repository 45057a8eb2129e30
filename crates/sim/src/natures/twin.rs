//! A trusted peer that sends mutated blocks first.
//!
//! For each block it first sends a mutated twin, with the last transaction duplicated (CVE-2012-2459), and announces
//! its chain again. Then it sends the block. No other peer has these blocks, so the node must request them again.

use crate::actor::{Body, Nature, Stage};
use lydian_primitives::BlockHash;
use lydian_primitives::RawBlock;
use lydian_primitives::build::MutBlock;
use lydian_wire::Message;
use std::collections::BTreeSet;
use std::time::Duration;

/// Sends twins of the blocks above a height.
#[derive(Debug)]
pub struct Twin {
    above: u32,
    sent: BTreeSet<BlockHash>,
}

impl Twin {
    pub fn new(above: u32) -> Twin {
        Twin { above, sent: BTreeSet::new() }
    }
}

impl Nature for Twin {
    fn message(&mut self, message: &Message, body: &mut Body, stage: &mut Stage<'_>) -> bool {
        let Message::GetData(inventory) = message else { return false };
        for item in inventory {
            let hash = BlockHash(item.hash);
            match body.shown.find(&hash) {
                Some(made) if made.height > self.above && self.sent.insert(hash) => {
                    let mut block = MutBlock::from(&RawBlock::new(made.bytes.clone()).parse().unwrap());
                    assert!(block.txs.len() % 2 == 1, "the last one counts twice in the tree");
                    block.txs.extend(block.txs.last().cloned());
                    stage.send(Message::Block(block.encode()));
                    stage.wake(Duration::from_secs(1), 0);
                }
                _ => body.give(item, stage),
            }
        }
        true
    }

    fn woken(&mut self, _: u32, body: &mut Body, stage: &mut Stage<'_>) {
        if body.is_ready {
            let headers = (self.above + 1..=body.shown.height).map(|height| body.shown.chain.at(height).header);
            stage.send(Message::Headers(headers.collect()));
        }
    }
}
