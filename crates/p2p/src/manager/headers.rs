//! Headers from peers: requests, processing, and what they show about a peer's chain. [`crate::headers`] checks them.

mod announce;
mod timers;

use super::context::VALIDATION;
use super::{PeerId, PeerManager, Violation};
use crate::download::DownloadPeer;
use crate::headers::{HeadersContext, HeadersSyncPhase, locator};
use crate::peer::{ConnectionKind, Permissions};
use crate::time::UnixTime;
use lydian_chain::HeaderId;
use lydian_consensus::{Rejected, Rule};
use lydian_engine::LogLevel;
use lydian_primitives::{BlockHash, Header, Height};
use lydian_wire::{Inv, InvType, Locator, Message};
use std::time::Duration;

/// The number of outbound peers that are kept even if their chain lags behind: Core's
/// `MAX_OUTBOUND_PEERS_TO_PROTECT_FROM_DISCONNECT`.
const PROTECTED_PEERS_MAX: usize = 4;

/// The time between two log lines about low-work headers: Core's 250 ms.
const PRESYNC_LINE_INTERVAL: Duration = Duration::from_millis(250);

impl PeerManager {
    pub(super) fn take_headers(&mut self, id: PeerId, headers: &[Header]) {
        self.take_headers_via(id, headers, false);
    }

    /// `is_compact`: the header is from a compact block that is too far above the tip to be reconstructed.
    pub(super) fn take_headers_via(&mut self, id: PeerId, headers: &[Header], is_compact: bool) {
        let (engine, params, sync) =
            (self.context.chain.clone(), self.context.settings.params.clone(), self.headers_params);
        let minimum_chain_work = self.context.settings.minimum_chain_work;
        let (now, unix_now) = (self.context.now.mockable, self.context.now.unix);
        let Some(peer) = self.context.peers.get_mut(&id) else { return };
        let is_trusted = peer.may(Permissions::NO_BAN);
        let received = engine.with_tree(|tree| {
            let unix_now = i64::try_from(unix_now.0).unwrap_or(i64::MAX);
            let context = HeadersContext { tree, params: &params, sync, minimum_chain_work, now, unix_now, is_trusted };
            peer.headers.receive(headers, &context, &mut self.context.random)
        });
        for note in &received.notes {
            self.context.log_debug(note.sentence(id.0));
        }
        self.log_presync(id);
        if let Some(fault) = received.fault {
            return self.context.misbehaving(id, &Violation::Headers { fault, count: headers.len() });
        }
        if let Some(hashes) = received.getheaders {
            self.send_getheaders(id, hashes);
        }
        if let Some(unknown) = received.unknown {
            self.context.note_block(id, &unknown);
        }
        let Some(last) = received.accept.last().map(|header| header.hash()) else { return };
        let (is_new, best) = engine.with_tree(|tree| (tree.find(&last).is_none(), tree.best_header()));
        let unix = self.context.unix();
        let accepted = match engine.accept_headers(&received.accept, unix) {
            Ok(accepted) => accepted,
            Err(error) => return self.context.log_info(format!("Headers could not be stored: {error}")),
        };
        if let Some((hash, rejected)) = accepted.refused {
            return self.punish_header(id, &hash, &rejected, is_compact);
        }
        self.log_best_header(best, &last);
        let Some((last, hash, height)) =
            engine.with_tree(|tree| tree.find(&last).map(|found| (found, last, tree.height(found))))
        else {
            return;
        };
        if is_new {
            self.log_new_header(id, &hash, height, false);
        }
        let may_have_more = headers.len() == crate::limits::HEADERS_COUNT_MAX;
        let more = self
            .context
            .peers
            .get_mut(&id)
            .and_then(|peer| engine.with_tree(|tree| peer.headers.entered(last, tree, now)));
        if let Some(hashes) = more {
            self.context.log_debug(format!("more getheaders ({height}) to end to peer={id}"));
            self.send_getheaders(id, hashes);
        }
        self.learn_of_headers(id, last, is_new, may_have_more);
        self.download.announced(DownloadPeer(id.0), now);
        self.context.with(id, |peer| peer.failed_branch = None);
        self.fetch_directly(id, last);
        self.request_blocks();
    }

    /// Core's `LogBlockHeader`: once for each new header, to show which peer announces blocks without sending them.
    pub(super) fn log_new_header(&mut self, id: PeerId, hash: &BlockHash, height: Height, is_compact: bool) {
        let kind = if is_compact { "cmpctblock " } else { "" };
        let text = format!("Saw new {kind}header hash={hash} height={height} {}", self.context.log_peer(id));
        if !self.context.is_initial_download() {
            self.context.log_info(text);
        } else if self.context.switches.is_on(VALIDATION) {
            self.context.log_at(LogLevel::Debug(VALIDATION), text);
        }
    }

    /// Core's `ProcessNewBlockHeaders`: logs the progress of the headers during the initial download.
    fn log_best_header(&mut self, before: HeaderId, last: &BlockHash) {
        let (best, last) = self.context.chain.with_tree(|tree| (tree.best_header(), tree.find(last)));
        let Some(last) = last.filter(|_| best != before && self.context.is_initial_download()) else { return };
        let place = self.context.place(last);
        let progress = self.headers_progress(place.height, place.time);
        self.context.log_info(format!("Synchronizing blockheaders, height: {} (~{progress:.2}%)", place.height));
    }

    /// Core's `ReportHeadersPresync`: at most four lines per second.
    fn log_presync(&mut self, id: PeerId) {
        let now = self.context.now.elapsed;
        let is_early = self.last_presync_line.is_some_and(|last| now < last + PRESYNC_LINE_INTERVAL);
        let sync = self.context.peers.get(&id).and_then(|peer| peer.headers.sync());
        let Some(sync) = sync.filter(|sync| sync.phase() == HeadersSyncPhase::Presync) else { return };
        let (height, time, _) = sync.presync();
        if is_early
            || self.context.best_header().work >= self.context.settings.minimum_chain_work
            || !self.context.is_initial_download()
        {
            return;
        }
        self.last_presync_line = Some(now);
        let progress = self.headers_progress(height, time);
        self.context.log_info(format!("Pre-synchronizing blockheaders, height: {height} (~{progress:.2}%)"));
    }

    /// Returns the progress of the headers in percent, estimated from the time of the last one.
    fn headers_progress(&self, height: Height, time: u32) -> f64 {
        let age = self.context.now.unix.since(UnixTime::from(time));
        let left = (age / self.context.settings.params.pow_target_spacing.max(1)).max(0);
        #[allow(clippy::cast_precision_loss, reason = "shown with two digits")]
        let left = left as f64;
        100.0 * f64::from(height.0) / (f64::from(height.0) + left)
    }

    /// Core's `MaybePunishNodeForBlock`, for headers.
    pub(super) fn punish_header(&mut self, id: PeerId, hash: &BlockHash, rejected: &Rejected, is_compact: bool) {
        let is_inbound = self.context.peers.get(&id).is_some_and(|peer| peer.kind().is_inbound());
        let what = Violation::InvalidHeader { is_compact };
        if *rejected == Rejected::DuplicateInvalid && !is_inbound && !is_compact {
            self.context.log_at(
                LogLevel::Warning,
                format!(
                    "{} (received from peer={id}). If this happens with all peers, consider database corruption (that -reindex may fix) or a \
                     potential consensus incompatibility.",
                    format_args!("block {hash} was previously marked invalid")
                ),
            );
        }
        match rejected {
            // A clock may be wrong.
            Rejected::Violation(violation) if violation.rule == Rule::TimeTooNew => {
                self.context.log_debug(format!("peer={id}: {what}"));
            }
            Rejected::DuplicateInvalid if is_inbound || is_compact => {
                self.context.log_debug(format!("peer={id}: {what}"))
            }
            _ => self.context.misbehaving(id, &what),
        }
    }

    /// Core's `UpdatePeerStateForReceivedHeaders`.
    fn learn_of_headers(&mut self, id: PeerId, last: HeaderId, is_new: bool, may_have_more: bool) {
        let (last, tip) = (self.context.place(last), self.context.tip());
        self.context.note_block(id, &last.hash);
        let (unix, is_initial) = (self.context.now.unix, self.context.is_initial_download());
        let best_work = self.context.best_known(id).map(|best| best.work);
        let has_room = self.protected_peers < PROTECTED_PEERS_MAX;
        let Some(peer) = self.context.peers.get_mut(&id) else { return };
        if is_new && last.work > tip.work {
            peer.last_block_announcement = unix;
        }
        let has_too_little = best_work.is_some_and(|work| work < self.context.settings.minimum_chain_work);
        if is_initial && !may_have_more && has_too_little && peer.is_chosen() {
            let reason = "outbound peer headers chain has insufficient work";
            return self.leave_at(id, LogLevel::Info, reason.to_owned());
        }
        let is_good = best_work.is_some_and(|work| work >= tip.work);
        if peer.kind() == ConnectionKind::OutboundFullRelay && has_room && is_good && !peer.chain_sync.is_protected {
            peer.chain_sync.is_protected = true;
            self.protected_peers += 1;
            self.context.log_debug(format!("Protecting outbound peer={id} from eviction"));
        }
    }

    /// Announcements by hash. Like Core, the node answers unknown blocks with a `getheaders`.
    pub(super) fn take_inv(&mut self, id: PeerId, inventory: &[Inv]) {
        let mut unknown = None;
        let Some(peer) = self.context.peers.get(&id) else { return };
        let refuses_transactions = peer.talk.rejects_transactions(&self.context.settings.local);
        let other_kind = if peer.talk.wtxid_relay { InvType::TX } else { InvType::WTX };
        for item in inventory.iter().filter(|item| item.kind != other_kind) {
            if item.kind == InvType::BLOCK {
                let hash = BlockHash(item.hash);
                self.context.note_block(id, &hash);
                let is_here = self.context.chain.with_tree(|tree| tree.find(&hash).is_some());
                self.context.log_debug(format!("got inv: {item} {} peer={id}", if is_here { "have" } else { "new" }));
                if !is_here && !self.context.is_loading() && !self.is_requested(&hash) {
                    unknown = Some(hash);
                }
            } else if item.kind.is_gen_tx() && refuses_transactions {
                // Our `version` message said that we accept none.
                let hash = BlockHash(item.hash);
                return self.leave(id, format!("transaction ({hash}) inv sent in violation of protocol"));
            } else if !item.kind.is_gen_tx() {
                self.context.log_debug(format!("Unknown inv type \"{item}\" received from peer={id}"));
            }
        }
        let Some(hash) = unknown else { return };
        let is_first_of_block = self.last_inv_that_asked != Some(hash);
        let Some(peer) = self.context.peers.get(&id) else { return };
        let started = peer.sync_started;
        if started || (!peer.inv_triggered_getheaders && is_first_of_block) {
            let best = self.context.best_header();
            if self.ask_for_headers(id, best.id) {
                self.context.log_debug(format!("getheaders ({}) {hash} to peer={id}", best.height));
            }
            if !started {
                self.context.with(id, |peer| peer.inv_triggered_getheaders = true);
                self.last_inv_that_asked = Some(hash);
            }
        }
    }

    /// Requests the headers after `from`, unless a request is outstanding: Core's `MaybeSendGetHeaders`.
    pub(super) fn ask_for_headers(&mut self, id: PeerId, from: HeaderId) -> bool {
        let (engine, now) = (self.context.chain.clone(), self.context.now.mockable);
        let hashes = self
            .context
            .peers
            .get_mut(&id)
            .and_then(|peer| engine.with_tree(|tree| peer.headers.request(now, || locator(tree, from))));
        match hashes {
            Some(hashes) => {
                self.send_getheaders(id, hashes);
                true
            }
            None => false,
        }
    }

    fn send_getheaders(&mut self, id: PeerId, locator: Vec<BlockHash>) {
        self.context.send(id, Message::GetHeaders(Locator { hashes: locator, stop: BlockHash([0; 32]) }));
    }
}
