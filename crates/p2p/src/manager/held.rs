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
        }
    }
}
