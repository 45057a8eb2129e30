//! The tasks that Core's scheduler runs every 45 seconds: evicting extra outbound peers, which are tried because they
//! may know a better chain, and checking for a stale tip.
//!
//! Core's `CheckForStaleTipAndEvictPeers` and `EvictExtraOutboundPeers`.

use super::Connections;
use crate::manager::PeerId;
use crate::manager::context::Context;
use crate::peer::ConnectionKind;
use crate::time::UnixTime;
use lydian_wire::Network;
use std::time::Duration;

/// The time between two checks whether the tip is stale.
const STALE_CHECK_INTERVAL: Duration = Duration::from_secs(10 * 60);
/// Core's `EXTRA_PEER_CHECK_INTERVAL`.
const CHECK_INTERVAL: Duration = Duration::from_secs(45);
/// Core's `MINIMUM_CONNECT_TIME`: the time that a peer has to show its chain.
const CONNECT_TIME_MIN: Duration = Duration::from_secs(30);

/// The state of these checks.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::manager) struct Extra {
    next_check: Option<Duration>,
    /// The chain is synced: Core's `m_start_extra_block_relay_peers`.
    pub(super) is_synced: bool,
    /// The tip may be stale, and one more full-relay peer than usual is tried: Core's `m_try_another_outbound_peer`.
    pub(super) tries_full_relay: bool,
    next_stale_check: Duration,
    /// When the tip changed: Core's `m_last_tip_update`.
    last_tip_change: Option<Duration>,
}

impl Connections {
    /// Makes the next check due earlier by `delta`.
    pub(in crate::manager) fn mock_forward(&mut self, context: &Context, delta: Duration) {
        let next = self.extra.next_check.unwrap_or(context.now.elapsed + CHECK_INTERVAL);
        self.extra.next_check = Some(next.saturating_sub(delta));
    }

    /// The active chain has a new tip.
    pub(in crate::manager) fn note_tip_change(&mut self, context: &Context) {
        self.extra.last_tip_change = Some(context.now.mockable);
    }

    pub(in crate::manager) fn check_for_stale_tip_and_evict_peers(&mut self, context: &mut Context) {
        let now = context.now.elapsed;
        let next = *self.extra.next_check.get_or_insert(now + CHECK_INTERVAL);
        if now < next {
            return;
        }
        self.extra.next_check = Some(now + CHECK_INTERVAL);
        self.evict_extra_block_relay(context);
        self.evict_extra_full_relay(context);
        self.check_stale_tip(context);
        if !self.extra.is_synced && context.can_fetch_directly() {
            context.log_debug("enabling extra block-relay-only peers".to_owned());
            self.extra.is_synced = true;
        }
    }

    /// Disconnects the one of the two youngest peers that sent a block longer ago.
    fn evict_extra_block_relay(&mut self, context: &mut Context) {
        let (_, most) = crate::outbound::split(context.settings.connect.automatic_max);
        let of_kind = || context.peers.values().filter(|peer| peer.kind() == ConnectionKind::BlockRelayOnly);
        if of_kind().filter(|peer| peer.is_ready()).count() <= most {
            return;
        }
        let mut youngest = of_kind().filter(|peer| !peer.is_leaving).rev();
        let Some(first) = youngest.next() else { return };
        let chosen = youngest
            .next()
            .filter(|second| first.blocks.last_block_time() > second.blocks.last_block_time())
            .unwrap_or(first);
        let (id, last_block) = (chosen.id, chosen.blocks.last_block_time().0);
        if self.is_idle_for_long(context, id, |time| time >= CONNECT_TIME_MIN) {
            context.log_debug(format!(
                "disconnecting extra block-relay-only peer={id} (last block received at time {last_block})"
            ));
            context.end_connection(id, "extra block-relay-only peer");
        }
    }

    /// Disconnects the peer that announced a new block longest ago, except protected peers and the only one of a
    /// network.
    fn evict_extra_full_relay(&mut self, context: &mut Context) {
        let (most, _) = crate::outbound::split(context.settings.connect.automatic_max);
        let of_kind = || context.peers.values().filter(|peer| peer.kind() == ConnectionKind::OutboundFullRelay);
        if of_kind().filter(|peer| peer.is_ready()).count() <= most {
            return;
        }
        let may_go = of_kind().filter(|peer| {
            let network = peer.talk.connection.endpoint.addr.network();
            !peer.is_leaving && !peer.sync.is_protected() && self.has_several_of(context, network)
        });
        let rank = |(id, time): &(PeerId, UnixTime)| (*time, std::cmp::Reverse(*id));
        let Some((id, time)) = may_go.map(|peer| (peer.id, peer.last_block_announcement)).min_by_key(rank) else {
            return;
        };
        if self.is_idle_for_long(context, id, |time| time > CONNECT_TIME_MIN) {
            context.log_debug(format!(
                "disconnecting extra outbound peer={id} (last block announcement received at time {})",
                time.0
            ));
            context.end_connection(id, "extra outbound peer");
            // An extra peer was found after the tip became stale: no more are tried until that happens again.
            self.extra.tries_full_relay = false;
        }
    }

    /// Core's `MultipleManualOrFullOutboundConns`.
    fn has_several_of(&self, context: &Context, network: Network) -> bool {
        let lasts = |kind| matches!(kind, ConnectionKind::Manual | ConnectionKind::OutboundFullRelay);
        let of_network = context
            .peers
            .values()
            .filter(|peer| lasts(peer.kind()) && peer.talk.connection.endpoint.addr.network() == network);
        of_network.count() > 1
    }

    fn is_idle_for_long(&self, context: &Context, id: PeerId, is_long: impl Fn(Duration) -> bool) -> bool {
        context
            .peers
            .get(&id)
            .is_some_and(|peer| is_long(peer.talk.connected_for(context.now)) && peer.blocks.is_idle())
    }

    /// The middle part of Core's `CheckForStaleTipAndEvictPeers`: whether an extra outbound peer should be tried.
    fn check_stale_tip(&mut self, context: &mut Context) {
        let now = context.now.mockable;
        if now <= self.extra.next_stale_check {
            return;
        }
        self.extra.next_stale_check = now + STALE_CHECK_INTERVAL;
        let spacing = u64::try_from(context.settings.params.pow_target_spacing).unwrap_or(0);
        // If no block has arrived since the start, Core counts from the first check.
        let changed = *self.extra.last_tip_change.get_or_insert(now);
        let is_quiet = now.saturating_sub(changed) > 3 * Duration::from_secs(spacing);
        let is_idle = context.peers.values().all(|peer| peer.blocks.is_idle());
        let wants_extra =
            !context.is_loading() && is_quiet && is_idle && self.is_active && context.settings.connect.chooses_peers;
        if wants_extra != self.extra.tries_full_relay {
            context.log_debug(format!("setting try another outbound peer={wants_extra}"));
        }
        self.extra.tries_full_relay = wants_extra;
        if self.extra.tries_full_relay {
            let seconds = now.saturating_sub(changed).as_secs();
            context.log_info(format!(
                "Potential stale tip detected, will try using extra outbound peer (last tip update: {seconds} seconds ago)"
            ));
        }
    }

    /// Returns whether one more outbound connection than usual should be made.
    pub(in crate::manager) fn tries_extra_peer(&self) -> bool {
        self.extra.tries_full_relay
    }
}
