//! How much the manager holds, counted by what it is. Input: nothing. Output: [`Held`]: for tests that peers cannot make it grow.

use super::PeerManager;

/// Entries of each structure that peers can fill.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Held {
    pub peers: usize,
    /// Addresses in the tables.
    pub addresses: usize,
    /// Blocks of which somebody is remembered as the sender.
    pub sources: usize,
    /// Blocks that peers were asked for, counted at each.
    pub in_flight: usize,
    /// Headers that wait for a chain to show its work.
    pub buffered_headers: usize,
    /// Bytes of blocks of the path that are here or asked for.
    pub block_bytes: u64,
    /// Nonces of handshakes that go on.
    pub nonces: usize,
    /// Actions that wait to be carried out.
    pub actions: usize,
}

impl PeerManager {
    pub fn held(&self) -> Held {
        let buffered = |peer: &super::peer::Known| peer.headers.sync().map_or(0, crate::headers::HeadersSync::buffered);
        Held {
            peers: self.peers.len(),
            addresses: self.addrman.size(None, None),
            sources: self.sources.len(),
            in_flight: self.peers.values().map(|peer| peer.in_flight.len()).sum(),
            buffered_headers: self.peers.values().map(buffered).sum(),
            block_bytes: self.download.bytes_here() + self.download.bytes_in_flight(),
            nonces: self.own_nonces.len(),
            actions: self.actions.len(),
        }
    }
}
