//! Actions that depend only on the time: the first request for headers, timeouts for peers whose chain is behind.
//!
//! Core's `SendMessages` and `ConsiderEviction`. Input: the best header, the chains of peers, the time. Output:
//! requests for headers, the end of connections to peers whose chain stays behind.

use super::Headers;
use super::state::ChainSync;
use crate::manager::PeerId;
use crate::manager::context::Context;
use crate::manager::peer::PeerState;
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

impl Headers {
    /// Processes one peer in a tick, after its connection.
    pub(in crate::manager) fn look_after(context: &mut Context, id: PeerId) {
        Self::begin_headers(context, id);
        Self::check_headers_sync(context, id);
        Self::consider_eviction(context, id);
    }

    /// Whether new blocks of this peer are wanted as headers: the condition of Core's `MaybeSendSendHeaders`.
    pub(in crate::manager) fn wants_announcements(context: &Context, id: PeerId) -> bool {
        context.best_known(id).is_some_and(|best| best.work > context.settings.minimum_chain_work)
    }

    /// Sends the first request for headers: to one peer at a time until the best header is less than a day old. The
    /// next peer is asked as soon as the previous one is silent or has sent all its headers. Core waits a quarter of an
    /// hour, or for the next block.
    fn begin_headers(context: &mut Context, id: PeerId) {
        let (best, unix, now) = (context.best_header(), context.now.unix, context.now.mockable);
        let is_recent = unix.since(UnixTime::from(best.time)) < RECENT_SECONDS;
        let is_asked =
            |peer: &&PeerState| peer.sync.sync_started && peer.sync.headers.is_waiting(now, HEADERS_PATIENCE);
        let others = context.peers.values().filter(is_asked).count();
        let preferred = || context.peers.values().filter(|peer| peer.is_ready() && peer.is_preferred());
        // An inbound peer is asked after the others if they send no blocks either: it may be the only one that knows
        // the latest blocks.
        let is_idle = context.peers.values().all(|peer| peer.blocks.is_idle());
        let is_reserve_wanted =
            preferred().next().is_none() || is_idle && preferred().all(|peer| peer.sync.sync_started);
        let Some(peer) = context.peers.get(&id) else { return };
        let (has_preferred, is_preferred) = (preferred().next().is_some(), peer.is_preferred());
        let is_candidate = is_preferred || is_reserve_wanted && peer.kind() != ConnectionKind::AddrFetch;
        if context.is_loading()
            || peer.sync.sync_started
            || !peer.serves_blocks()
            || !(is_recent || others == 0 && is_candidate)
        {
            return;
        }
        // From the parent of the best header, so that the answer of a synced peer is not empty.
        let from = context.chain.with_tree(|tree| tree.parent(best.id)).unwrap_or(best.id);
        if Self::ask_for_headers(context, id, from) {
            let height = context.place(from).height;
            context.log_debug(format!("initial getheaders ({height}) to peer={id}"));
            let missing = unix.since(UnixTime::from(best.time)) / context.settings.params.pow_target_spacing.max(1);
            let missing = u32::try_from(missing.clamp(0, i64::from(u32::MAX))).unwrap_or(u32::MAX);
            context.with(id, |peer| {
                peer.sync.sync_started = true;
                let deadline = now + HEADERS_TIMEOUT_BASE + HEADERS_TIMEOUT_EACH * missing;
                peer.sync.headers_deadline = (is_preferred || !has_preferred).then_some(deadline);
            });
        }
    }

    fn check_headers_sync(context: &mut Context, id: PeerId) {
        let (best, now) = (context.best_header(), context.now);
        let is_old = now.unix.since(UnixTime::from(best.time)) >= RECENT_SECONDS;
        let has_other = context.peers.values().any(|peer| peer.id != id && peer.is_ready() && peer.is_preferred());
        let Some(peer) = context.peers.get_mut(&id) else { return };
        let Some(deadline) = peer.sync.headers_deadline else { return };
        if !is_old {
            peer.sync.headers_deadline = None;
        } else if now.mockable > deadline && has_other {
            if peer.may(Permissions::NO_BAN) {
                (peer.sync.sync_started, peer.sync.headers_deadline) = (false, None);
                let peer = context.log_peer(id);
                context.log_info(format!("Timeout downloading headers from noban peer, not disconnecting {peer}"));
            } else {
                context.leave_at(id, LogLevel::Info, "Timeout downloading headers".to_owned());
                // One at a time: the network itself may have no new blocks, and then no peer has the missing headers.
                let later = now.mockable + HEADERS_TIMEOUT_BASE;
                let deadlines = context.peers.values_mut().filter_map(|peer| peer.sync.headers_deadline.as_mut());
                deadlines.for_each(|deadline| *deadline = later.max(*deadline));
            }
        }
    }

    /// Core's `ConsiderEviction`.
    fn consider_eviction(context: &mut Context, id: PeerId) {
        let (tip, now) = (context.tip(), context.now.mockable);
        let best_work = context.best_known(id).map(|best| best.work);
        let Some(peer) = context.peers.get(&id) else { return };
        if peer.sync.chain_sync.is_protected || !peer.is_chosen() || !peer.sync.sync_started {
            return;
        }
        let mut state = peer.sync.chain_sync;
        let wanted_work = state.work_header.map(|header| context.place(header).work);
        let has = |work| best_work.is_some_and(|best| best >= work);
        match state.deadline {
            _ if has(tip.work) => state = ChainSync::default(),
            Some(deadline) if !wanted_work.is_some_and(has) => {
                if now > deadline && state.sent_getheaders {
                    let best = context.best_known(id).map_or_else(|| "<none>".to_owned(), |best| best.hash.to_string());
                    let reason = format!("Outbound peer has old chain, best known block = {best}");
                    return context.leave_at(id, LogLevel::Info, reason);
                }
                if now > deadline {
                    Self::log_chain_check(context, id, state.work_header);
                    let from = state.work_header.and_then(|header| context.chain.with_tree(|tree| tree.parent(header)));
                    Self::ask_for_headers(context, id, from.unwrap_or(tip.id));
                    (state.sent_getheaders, state.deadline) = (true, Some(now + CHAIN_SYNC_ANSWER));
                }
            }
            _ => {
                state.deadline = Some(now + CHAIN_SYNC_TIMEOUT);
                (state.work_header, state.sent_getheaders) = (Some(tip.id), false);
            }
        }
        context.with(id, |peer| peer.sync.chain_sync = state);
    }

    fn log_chain_check(context: &mut Context, id: PeerId, wanted: Option<HeaderId>) {
        context.debug(|context| {
            let best = context.best_known(id).map_or_else(|| "<none>".to_owned(), |best| best.hash.to_string());
            let wanted = wanted.map_or_else(String::new, |wanted| context.place(wanted).hash.to_string());
            format!(
                "sending getheaders to outbound peer={id} to verify chain work (current best known block:{best}, benchmark blockhash: {wanted})"
            )
        });
    }
}
