//! Actions that depend only on the time: the first request for headers, timeouts for peers whose chain is behind.
//!
//! Core's `SendMessages`, `ConsiderEviction` and `CheckForStaleTipAndEvictPeers`.

use crate::manager::peer::PeerState;
use crate::manager::{PeerId, PeerManager};
use crate::peer::{ConnectionKind, Permissions};
use crate::time::UnixTime;
use lydian_chain::HeaderId;
use lydian_engine::LogLevel;
use std::time::Duration;

/// The time for showing a chain with as much work as ours, and then for answering a last request: Core's
/// `CHAIN_SYNC_TIMEOUT` and `HEADERS_RESPONSE_TIME`.
const CHAIN_SYNC_TIMEOUT: Duration = Duration::from_secs(20 * 60);
const CHAIN_SYNC_ANSWER: Duration = Duration::from_secs(2 * 60);

/// The time for the headers of the whole chain: Core's `HEADERS_DOWNLOAD_TIMEOUT_BASE`, and a millisecond for each
/// header that may be missing.
const HEADERS_TIMEOUT_BASE: Duration = Duration::from_secs(15 * 60);
const HEADERS_TIMEOUT_EACH: Duration = Duration::from_millis(1);

/// If a peer does not answer a request for headers for this time, other peers are asked.
const HEADERS_PATIENCE: Duration = Duration::from_secs(5);

/// If the best header is younger than this, all peers are asked for headers.
const RECENT_SECONDS: i64 = 24 * 60 * 60;

impl PeerManager {
    /// Processes one peer in a tick.
    pub(in crate::manager) fn look_after(&mut self, id: PeerId) {
        self.talk(id, crate::Peer::tick);
        if !self.context.peers.get(&id).is_some_and(|peer| peer.is_ready()) {
            return;
        }
        self.want_headers_announced(id);
        self.begin_headers(id);
        self.check_headers_sync(id);
        self.consider_eviction(id);
    }

    /// Core's `MaybeSendSendHeaders`.
    fn want_headers_announced(&mut self, id: PeerId) {
        let has_work =
            self.context.best_known(id).is_some_and(|best| best.work > self.context.settings.minimum_chain_work);
        if has_work {
            self.talk(id, |talk, _, out| talk.send_sendheaders(out));
        }
    }

    /// Sends the first request for headers: to one peer at a time until the best header is less than a day old. The
    /// next peer is asked as soon as the previous one is silent or has sent all its headers. Core waits a quarter of an
    /// hour, or for the next block.
    fn begin_headers(&mut self, id: PeerId) {
        let (best, unix, now) = (self.context.best_header(), self.context.now.unix, self.context.now.mockable);
        let is_recent = unix.since(UnixTime::from(best.time)) < RECENT_SECONDS;
        let is_asked = |peer: &&PeerState| peer.sync_started && peer.headers.is_waiting(now, HEADERS_PATIENCE);
        let others = self.context.peers.values().filter(is_asked).count();
        let preferred = || self.context.peers.values().filter(|peer| peer.is_ready() && peer.is_preferred());
        // An inbound peer is asked after the others if they send no blocks either: it may be the only one that knows
        // the latest blocks.
        let is_idle = self.context.peers.values().all(|peer| peer.in_flight.is_empty());
        let is_reserve_wanted = preferred().next().is_none() || is_idle && preferred().all(|peer| peer.sync_started);
        let Some(peer) = self.context.peers.get(&id) else { return };
        let (has_preferred, is_preferred) = (preferred().next().is_some(), peer.is_preferred());
        let is_candidate = is_preferred || is_reserve_wanted && peer.kind() != ConnectionKind::AddrFetch;
        if self.context.is_loading()
            || peer.sync_started
            || !peer.serves_blocks()
            || !(is_recent || others == 0 && is_candidate)
        {
            return;
        }
        // From the parent of the best header, so that the answer of a synced peer is not empty.
        let from = self.context.chain.with_tree(|tree| tree.parent(best.id)).unwrap_or(best.id);
        if self.ask_for_headers(id, from) {
            let height = self.context.place(from).height;
            self.context.log_debug(format!("initial getheaders ({height}) to peer={id}"));
            let missing =
                unix.since(UnixTime::from(best.time)) / self.context.settings.params.pow_target_spacing.max(1);
            let missing = u32::try_from(missing.clamp(0, i64::from(u32::MAX))).unwrap_or(u32::MAX);
            self.context.with(id, |peer| {
                peer.sync_started = true;
                let deadline = now + HEADERS_TIMEOUT_BASE + HEADERS_TIMEOUT_EACH * missing;
                peer.headers_deadline = (is_preferred || !has_preferred).then_some(deadline);
            });
        }
    }

    fn check_headers_sync(&mut self, id: PeerId) {
        let (best, now) = (self.context.best_header(), self.context.now);
        let is_old = now.unix.since(UnixTime::from(best.time)) >= RECENT_SECONDS;
        let has_other = self.context.peers.values().any(|peer| peer.id != id && peer.is_ready() && peer.is_preferred());
        let Some(peer) = self.context.peers.get_mut(&id) else { return };
        let Some(deadline) = peer.headers_deadline else { return };
        if !is_old {
            peer.headers_deadline = None;
        } else if now.mockable > deadline && has_other {
            if peer.may(Permissions::NO_BAN) {
                (peer.sync_started, peer.headers_deadline) = (false, None);
                let peer = self.context.log_peer(id);
                self.context.log_info(format!("Timeout downloading headers from noban peer, not disconnecting {peer}"));
            } else {
                self.leave_at(id, LogLevel::Info, "Timeout downloading headers".to_owned());
                // One at a time: the network itself may have no new blocks, and then no peer has the missing headers.
                let later = now.mockable + HEADERS_TIMEOUT_BASE;
                let deadlines = self.context.peers.values_mut().filter_map(|peer| peer.headers_deadline.as_mut());
                deadlines.for_each(|deadline| *deadline = later.max(*deadline));
            }
        }
    }

    /// Core's `ConsiderEviction`.
    fn consider_eviction(&mut self, id: PeerId) {
        let (tip, now) = (self.context.tip(), self.context.now.mockable);
        let best_work = self.context.best_known(id).map(|best| best.work);
        let Some(peer) = self.context.peers.get(&id) else { return };
        if peer.chain_sync.is_protected || !peer.is_chosen() || !peer.sync_started {
            return;
        }
        let mut state = peer.chain_sync;
        let wanted_work = state.work_header.map(|header| self.context.place(header).work);
        let has = |work| best_work.is_some_and(|best| best >= work);
        match state.deadline {
            _ if has(tip.work) => state = crate::manager::peer::ChainSync::default(),
            Some(deadline) if !wanted_work.is_some_and(has) => {
                if now > deadline && state.sent_getheaders {
                    let best =
                        self.context.best_known(id).map_or_else(|| "<none>".to_owned(), |best| best.hash.to_string());
                    let reason = format!("Outbound peer has old chain, best known block = {best}");
                    return self.leave_at(id, LogLevel::Info, reason);
                }
                if now > deadline {
                    self.log_chain_check(id, state.work_header);
                    let from =
                        state.work_header.and_then(|header| self.context.chain.with_tree(|tree| tree.parent(header)));
                    self.ask_for_headers(id, from.unwrap_or(tip.id));
                    (state.sent_getheaders, state.deadline) = (true, Some(now + CHAIN_SYNC_ANSWER));
                }
            }
            _ => {
                state.deadline = Some(now + CHAIN_SYNC_TIMEOUT);
                (state.work_header, state.sent_getheaders) = (Some(tip.id), false);
            }
        }
        self.context.with(id, |peer| peer.chain_sync = state);
    }

    fn log_chain_check(&mut self, id: PeerId, wanted: Option<HeaderId>) {
        self.context.debug(|context| {
            let best = context.best_known(id).map_or_else(|| "<none>".to_owned(), |best| best.hash.to_string());
            let wanted = wanted.map_or_else(String::new, |wanted| context.place(wanted).hash.to_string());
            format!(
                "sending getheaders to outbound peer={id} to verify chain work (current best known block:{best}, benchmark blockhash: {wanted})"
            )
        });
    }
}
