//! The size of everything that the manager holds, by kind.
//!
//! Input: nothing. Output: [`Held`], for tests that peers cannot make it grow.

use super::PeerManager;

/// The number of entries of each structure that peers can fill.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Held {
    pub peers: usize,
    /// Addresses in the tables.
    pub addresses: usize,
    /// Blocks with a remembered sender.
    pub sources: usize,
    /// Received blocks that wait for the result of storing them.
    pub pending: usize,
    /// Block requests, counted for each peer.
    pub in_flight: usize,
    /// Headers that wait until a chain has shown its work.
    pub buffered_headers: usize,
    /// Bytes of blocks of the path that are here or requested.
    pub block_bytes: u64,
    /// Nonces of incomplete handshakes.
    pub nonces: usize,
    /// Actions that were not taken yet.
    pub actions: usize,
    /// Transactions that peers sent and that are not submitted yet, or found no room.
    pub transactions: usize,
    /// Items that peers requested and were not sent yet.
    pub requested: usize,
    /// Announcements of transactions that are tracked, of all peers.
    pub tx_announcements: usize,
    /// The weight of the orphans, and the number of their announcements.
    pub orphan_weight: u64,
    pub orphan_announcements: usize,
    /// Transactions whose verdict is outstanding.
    pub undecided: usize,
    /// Transactions that are kept for compact blocks.
    pub extra: usize,
}

impl PeerManager {
    pub fn held(&self) -> Held {
        let buffered =
            |peer: &super::peer::PeerState| peer.sync.low_work().map_or(0, crate::headers::HeadersSync::buffered);
        Held {
            peers: self.context.peers.len(),
            addresses: self.addresses.tables().size(None, None),
            sources: self.blocks.sources(),
            pending: self.blocks.pending(),
            in_flight: self.context.peers.values().map(|peer| peer.blocks.in_flight().len()).sum(),
            buffered_headers: self.context.peers.values().map(buffered).sum(),
            block_bytes: self.blocks.download().bytes_here() + self.blocks.download().bytes_in_flight(),
            nonces: self.connections.own_nonces().len(),
            actions: self.context.actions.len(),
            transactions: self.context.peers.values().map(|peer| peer.txs.waiting()).sum::<usize>()
                + self.transactions.refused_count(),
            requested: self.context.peers.values().map(|peer| peer.txs.requested()).sum(),
            tx_announcements: self.transactions.download().requests().len(),
            orphan_weight: self.transactions.download().orphanage().total_weight(),
            orphan_announcements: self.transactions.download().orphanage().announcement_count(),
            undecided: self.transactions.download().pending_count(),
            extra: self.context.pool.extra.len(),
        }
    }
}
