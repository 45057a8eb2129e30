//! Information about peers, and requests that concern all of them: `getpeerinfo` and similar RPCs.
//!
//! Data copied out of the manager; Core's `GetNodeStats`, `GetNodeStateStats` and `SendPings`.
//!
//! Invariant: a query changes nothing except the time of the next ping.

use crate::manager::{PeerId, PeerManager};
use crate::peer::{ConnectionKind, Permissions};
use crate::time::{Moment, UnixTime};
use crate::traffic::Traffic;
use lydian_primitives::{Amount, Height};
use lydian_wire::{Endpoint, Network, Services};
use std::sync::Arc;
use std::time::Duration;

/// The data of one peer, as Core reports it.
#[derive(Clone, Debug)]
pub struct PeerInfo {
    pub id: PeerId,
    pub kind: ConnectionKind,
    pub endpoint: Endpoint,
    /// The network of the connection: Tor if it came through the onion service.
    pub network: Network,
    /// The name given by the operator, or the address.
    pub name: String,
    /// Our side of the connection.
    pub bind: Endpoint,
    /// Our address as the peer sees it.
    pub addr_local: Endpoint,
    pub services: Services,
    pub relays_transactions: bool,
    pub last_block: UnixTime,
    pub connected: UnixTime,
    pub time_offset_s: i64,
    /// The last one and the shortest.
    pub ping_times: Option<(Duration, Duration)>,
    pub ping_wait: Option<Duration>,
    /// 0 before its `version`.
    pub version: i32,
    pub user_agent: String,
    /// High-bandwidth compact blocks: `to`: we asked the peer; `from`: the peer asked us.
    pub high_bandwidth_to: bool,
    pub high_bandwidth_from: bool,
    /// The progress of the first pass over its headers, if there is one.
    pub presynced_headers: Option<Height>,
    pub synced_headers: Option<Height>,
    pub synced_blocks: Option<Height>,
    /// Heights of the blocks requested from it.
    pub in_flight: Vec<Height>,
    pub is_addr_relay_enabled: bool,
    pub addr_processed: u64,
    pub addr_rate_limited: u64,
    pub permissions: Permissions,
    /// The fee rate below which the peer does not want transactions.
    pub fee_filter: Amount,
    /// When it last sent a transaction that was accepted.
    pub last_transaction: UnixTime,
    /// The mempool's sequence number when transactions were announced to it last; 0 if none are.
    pub last_inv_sequence: u64,
    /// The number of transactions that wait for their announcement to it.
    pub queued_transactions: usize,
    pub traffic: Arc<Traffic>,
}

impl PeerManager {
    /// Returns all peers with open connections, by id.
    pub fn peers(&self, now: Moment) -> Vec<PeerInfo> {
        self.context.peers.keys().filter_map(|id| self.peer_info(*id, now)).collect()
    }

    fn peer_info(&self, id: PeerId, now: Moment) -> Option<PeerInfo> {
        let peer = self.context.peers.get(&id).filter(|peer| !peer.is_leaving)?;
        let talk = &peer.talk;
        let figures = self.transactions.figures(id);
        let (addr_processed, addr_rate_limited) = talk.addr_counts();
        let (synced_headers, synced_blocks, mut in_flight) = self.context.chain.with_tree(|tree| {
            let height = |id| tree.height(id);
            let in_flight: Vec<_> =
                peer.blocks.in_flight().iter().filter_map(|hash| tree.find(hash)).map(height).collect();
            (peer.best_known.map(height), peer.last_common.map(height), in_flight)
        });
        in_flight.sort_unstable();
        Some(PeerInfo {
            id,
            kind: peer.kind(),
            endpoint: talk.connection.endpoint,
            network: peer.link.network(),
            name: peer.link.name.clone(),
            bind: peer.link.local,
            addr_local: talk.addr_local,
            services: talk.services,
            relays_transactions: talk.relays_transactions,
            last_block: peer.blocks.last_block_time(),
            connected: talk.connected.unix,
            time_offset_s: talk.time_offset_s,
            ping_times: talk.ping_times(),
            ping_wait: talk.ping_wait(now),
            version: talk.version,
            user_agent: talk.user_agent.clone(),
            high_bandwidth_to: talk.high_bandwidth_to,
            high_bandwidth_from: talk.high_bandwidth_from,
            presynced_headers: peer.sync.low_work().map(|sync| sync.presync().0),
            synced_headers,
            synced_blocks,
            in_flight,
            is_addr_relay_enabled: talk.is_addr_relay_enabled(),
            addr_processed,
            addr_rate_limited,
            permissions: talk.connection.permissions,
            fee_filter: figures.fee_filter,
            last_transaction: peer.txs.last_time(),
            last_inv_sequence: figures.last_sequence,
            queued_transactions: figures.queued_count,
            traffic: Arc::clone(&peer.traffic),
        })
    }
}
