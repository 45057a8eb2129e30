//! The tasks that Core's scheduler runs every 45 seconds: evicting extra outbound peers, which are tried because they
//! may know a better chain, and checking for a stale tip.
//!
//! Core's `CheckForStaleTipAndEvictPeers` and `EvictExtraOutboundPeers`.

use crate::manager::addresses::SAVE_INTERVAL;
use crate::manager::{PeerId, PeerManager};
use crate::peer::ConnectionKind;
use crate::time::{Moment, UnixTime};
use lydian_wire::Network;
use std::time::Duration;

/// Core's `EXTRA_PEER_CHECK_INTERVAL`.
const CHECK_INTERVAL: Duration = Duration::from_secs(45);
/// Core's `MINIMUM_CONNECT_TIME`: the time that a peer has to show its chain.
const CONNECT_TIME_MIN: Duration = Duration::from_secs(30);

/// The state of these checks.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::manager) struct Extra {
    next_check: Option<Duration>,
    /// The chain is synced: Core's `m_start_extra_block_relay_peers`.
    pub(in crate::manager) is_synced: bool,
}

impl PeerManager {
    /// Makes waiting tasks due earlier by `delta`: Core's `MockForward`, for `mockscheduler`.
    pub fn mock_forward(&mut self, delta: Duration, now: Moment) {
        self.context.now = now;
        let waiting = [&mut self.connector.extra.next_check, &mut self.connector.next_save];
        for (next, interval) in waiting.into_iter().zip([CHECK_INTERVAL, SAVE_INTERVAL]) {
            *next = Some(next.unwrap_or(now.elapsed + interval).saturating_sub(delta));
        }
        self.run_scheduled();
    }

    pub(in crate::manager) fn check_for_stale_tip_and_evict_peers(&mut self) {
        let now = self.context.now.elapsed;
        let next = *self.connector.extra.next_check.get_or_insert(now + CHECK_INTERVAL);
        if now < next {
            return;
        }
        self.connector.extra.next_check = Some(now + CHECK_INTERVAL);
        self.evict_extra_block_relay();
        self.evict_extra_full_relay();
        self.check_stale_tip();
        if !self.connector.extra.is_synced && self.context.can_fetch_directly() {
            self.context.log_debug("enabling extra block-relay-only peers".to_owned());
            self.connector.extra.is_synced = true;
        }
    }

    /// Disconnects the one of the two youngest peers that sent a block longer ago.
    fn evict_extra_block_relay(&mut self) {
        let (_, most) = crate::outbound::split(self.connector.settings.automatic_max);
        let of_kind = || self.context.peers.values().filter(|peer| peer.kind() == ConnectionKind::BlockRelayOnly);
        if of_kind().filter(|peer| peer.is_ready()).count() <= most {
            return;
        }
        let mut youngest = of_kind().filter(|peer| !peer.is_leaving).rev();
        let Some(first) = youngest.next() else { return };
        let chosen = youngest.next().filter(|second| first.last_block_time > second.last_block_time).unwrap_or(first);
        let (id, last_block) = (chosen.id, chosen.last_block_time.0);
        if self.is_idle_for_long(id, |time| time >= CONNECT_TIME_MIN) {
            self.context.log_debug(format!(
                "disconnecting extra block-relay-only peer={id} (last block received at time {last_block})"
            ));
            self.end_connection(id, "extra block-relay-only peer");
        }
    }

    /// Disconnects the peer that announced a new block longest ago, except protected peers and the only one of a
    /// network.
    fn evict_extra_full_relay(&mut self) {
        let (most, _) = crate::outbound::split(self.connector.settings.automatic_max);
        let of_kind = || self.context.peers.values().filter(|peer| peer.kind() == ConnectionKind::OutboundFullRelay);
        if of_kind().filter(|peer| peer.is_ready()).count() <= most {
            return;
        }
        let may_go = of_kind().filter(|peer| {
            let network = peer.talk.connection.endpoint.addr.network();
            !peer.is_leaving && !peer.chain_sync.is_protected && self.has_several_of(network)
        });
        let rank = |(id, time): &(PeerId, UnixTime)| (*time, std::cmp::Reverse(*id));
        let Some((id, time)) = may_go.map(|peer| (peer.id, peer.last_block_announcement)).min_by_key(rank) else {
            return;
        };
        if self.is_idle_for_long(id, |time| time > CONNECT_TIME_MIN) {
            self.context.log_debug(format!(
                "disconnecting extra outbound peer={id} (last block announcement received at time {})",
                time.0
            ));
            self.end_connection(id, "extra outbound peer");
            // An extra peer was found after the tip became stale: no more are tried until that happens again.
            self.tries_extra_peer = false;
        }
    }

    /// Core's `MultipleManualOrFullOutboundConns`.
    fn has_several_of(&self, network: Network) -> bool {
        let lasts = |kind| matches!(kind, ConnectionKind::Manual | ConnectionKind::OutboundFullRelay);
        let of_network = self
            .context
            .peers
            .values()
            .filter(|peer| lasts(peer.kind()) && peer.talk.connection.endpoint.addr.network() == network);
        of_network.count() > 1
    }

    fn is_idle_for_long(&self, id: PeerId, is_long: impl Fn(Duration) -> bool) -> bool {
        self.context
            .peers
            .get(&id)
            .is_some_and(|peer| is_long(peer.talk.connected_for(self.context.now)) && peer.in_flight.is_empty())
    }
}
