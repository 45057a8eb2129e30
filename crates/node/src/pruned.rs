//! Pruned blocks for the servers of wallets, from peers. Input: the network. Output: what [`PrunedBlocks`] orders.
//!
//! Wiring only: `lydian_query` says which block is needed, `lydian_p2p` asks a peer for it.

use lydian_net::Handle;
use lydian_p2p::manager::Question;
use lydian_p2p::order::{self, Order, OrderFailure};
use lydian_primitives::{Block, BlockHash};
use lydian_query::{BlockSource, BlockTaker, PrunedBlocks};
use std::sync::Arc;

/// The pruned blocks of a node with this network.
pub(crate) fn from_peers(network: Handle) -> PrunedBlocks {
    PrunedBlocks::new(Arc::new(FromPeers(network)))
}

#[derive(Debug)]
struct FromPeers(Handle);

impl BlockSource for FromPeers {
    fn order(&self, hash: &BlockHash, taker: BlockTaker) {
        // If the network has ended, the order is dropped, which is its answer.
        self.0.ask(Question::Order(Order::new(*hash, Arc::new(Taker(taker)))));
    }
}

#[derive(Debug)]
struct Taker(BlockTaker);

impl order::BlockTaker for Taker {
    fn take(&self, hash: &BlockHash, result: Result<Arc<Block>, OrderFailure>) {
        self.0.take(hash, result.map_err(|failure| failure.to_string()));
    }
}
