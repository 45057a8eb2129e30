//! The requests for blocks: which peers were asked for which block, on the path of the download and aside from it.
//!
//! Input: requests, answers, peers that leave. Output: who was asked for a block. Invariant: a request is either one of
//! the download or one aside from it, and its peer counts it as in flight; nothing outside `blocks` changes any of the
//! three. Cost: a look-up.

use super::Blocks;
use super::window::limits_of;
use crate::download::RequestTime;
use crate::limits::BLOCK_TIMEOUT;
use crate::manager::PeerId;
use crate::manager::context::Context;
use lydian_engine::LogLevel;
use lydian_primitives::BlockHash;
use std::time::Duration;

impl Blocks {
    /// Returns the peers that were asked for a block and have not answered, in order of the requests.
    pub(in crate::manager) fn asked(&self, hash: &BlockHash) -> Vec<PeerId> {
        let on_path = self.download.asked(hash).iter().copied();
        let aside = self.aside.get(hash).into_iter().flatten().map(|(peer, _)| *peer);
        on_path.chain(aside).collect()
    }

    /// The caller, not the download, requests a block from the peer. The download must know about it, so that it does
    /// not request the block too.
    pub(super) fn note_request(&mut self, context: &mut Context, id: PeerId, hash: BlockHash) {
        self.download.set_timeout_clock(context.now.mockable);
        let at = self.download.request_time(context.now.elapsed);
        let Some(peer) = context.peers.get_mut(&id).filter(|peer| !peer.is_leaving) else { return };
        if !peer.blocks.in_flight.insert(hash) {
            return;
        }
        peer.blocks.is_asked = true;
        peer.memory.set_asked(true);
        let limits = limits_of(peer);
        self.download.add_peer(id, limits, at.sent);
        if !self.download.note_request(id, &hash, at) {
            self.aside.entry(hash).or_default().push((id, at));
        }
    }

    /// The peer has answered or will not answer: Core's `RemoveBlockRequest`.
    pub(super) fn forget_request(&mut self, context: &mut Context, id: PeerId, hash: &BlockHash) {
        context.with(id, |peer| {
            peer.blocks.in_flight.remove(hash);
            peer.blocks.partials.remove(hash);
        });
        self.download.forget_request(id, hash);
        let Some(asked) = self.aside.get_mut(hash) else { return };
        let was_asked = asked.extract_if(.., |(peer, _)| *peer == id).count() > 0;
        if asked.is_empty() {
            self.aside.remove(hash);
        }
        // The time for the next block starts: Core's `m_downloading_since`.
        let now = context.now.mockable;
        let others = self.aside.values_mut().flatten().filter(|(peer, _)| was_asked && *peer == id);
        others.for_each(|(_, at)| at.asked = now);
    }

    /// The time since the peer was asked for a block that it has not sent, if anyone wants to know.
    pub(super) fn waited(&self, context: &Context, id: PeerId, hash: &BlockHash) -> Option<Duration> {
        if !context.sent_blocks.is_on() {
            return None;
        }
        let aside = || self.aside.get(hash)?.iter().find(|(peer, _)| *peer == id).map(|(_, at)| at.sent);
        let sent = self.download.requested_at(id, hash).or_else(aside)?;
        Some(context.now.elapsed.saturating_sub(sent))
    }

    pub(in crate::manager) fn is_requested(&self, hash: &BlockHash) -> bool {
        !self.asked(hash).is_empty()
    }

    /// Returns whether the block was requested, or was received and is about to be stored.
    pub(super) fn is_coming(&self, hash: &BlockHash) -> bool {
        self.is_requested(hash) || self.is_pending(hash)
    }

    pub(in crate::manager) fn forget_peer(&mut self, id: PeerId) {
        self.download.remove_peer(id);
        self.forget_orders_of(id);
        self.aside.retain(|_, asked| {
            asked.retain(|(peer, _)| *peer != id);
            !asked.is_empty()
        });
    }

    /// Disconnects a peer that does not send a block requested outside the path within ten minutes, like for blocks on
    /// the path.
    pub(super) fn check_requests_aside(&mut self, context: &mut Context) {
        let now = context.now.mockable;
        let is_late = |at: &RequestTime| now.saturating_sub(at.asked) > BLOCK_TIMEOUT;
        let late = self
            .aside
            .iter()
            .find_map(|(hash, asked)| asked.iter().find(|(_, asked)| is_late(asked)).map(|(peer, _)| (*hash, *peer)));
        if let Some((hash, peer)) = late {
            self.forget_request(context, peer, &hash);
            context.leave_at(peer, LogLevel::Info, format!("Timeout downloading block {hash}"));
            self.forget_peer(peer);
        }
    }

    /// Requests outside the path may be on it now.
    pub(super) fn adopt_requests(&mut self) {
        if self.aside.is_empty() {
            return;
        }
        let download = &mut self.download;
        self.aside.retain(|hash, asked| {
            asked.retain(|(peer, at)| !download.note_request(*peer, hash, *at));
            !asked.is_empty()
        });
    }
}
