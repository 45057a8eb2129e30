//! Headers of peers: asking for them, taking them in, what they tell of a peer's chain. The judging is [`crate::headers`]'s.

use super::{PeerId, PeerManager};
use crate::download::DownloadPeer;
use crate::headers::{HeadersContext, locator};
use crate::peer::{ConnectionKind, Permissions};
use lydian_chain::NodeId;
use lydian_consensus::{Rejected, Rule};
use lydian_primitives::{BlockHash, Header, Height};
use lydian_wire::{Inv, InvType, Locator, Message};

/// Outbound peers that are kept though their chain lags: Core's `MAX_OUTBOUND_PEERS_TO_PROTECT_FROM_DISCONNECT`.
const PROTECTED_PEERS_MAX: usize = 4;

impl PeerManager {
    pub(super) fn take_headers(&mut self, id: PeerId, headers: &[Header]) {
        self.take_headers_via(id, headers, false);
    }

    /// `is_compact`: the header of a compact block that is too far above the tip to be put together.
    pub(super) fn take_headers_via(&mut self, id: PeerId, headers: &[Header], is_compact: bool) {
        let (engine, params, sync) = (self.engine.clone(), self.settings.params.clone(), self.headers_params);
        let minimum_chain_work = self.settings.minimum_chain_work;
        let (now, unix_now) = (self.now.mockable, self.now.unix);
        let Some(peer) = self.peers.get_mut(&id) else { return };
        let is_trusted = peer.may(Permissions::NO_BAN);
        let received = engine.with_tree(|tree| {
            let unix_now = i64::try_from(unix_now.0).unwrap_or(i64::MAX);
            let context = HeadersContext { tree, params: &params, sync, minimum_chain_work, now, unix_now, is_trusted };
            peer.headers.receive(headers, &context, &mut self.random)
        });
        if let Some(fault) = received.fault {
            return self.misbehaving(id, fault.reason());
        }
        if let Some(hashes) = received.getheaders {
            self.send_getheaders(id, hashes);
        }
        if let Some(unknown) = received.unknown {
            self.note_block(id, &unknown);
        }
        let Some(last) = received.accept.last().map(|header| header.hash()) else { return };
        let is_new = engine.with_tree(|tree| tree.find(&last).is_none());
        let unix = i64::try_from(self.now.unix.0).unwrap_or(i64::MAX);
        let accepted = match engine.accept_hashed_headers(&received.accept, unix) {
            Ok(accepted) => accepted,
            Err(error) => return self.tell(format!("Headers could not be stored: {error}")),
        };
        if let Some((hash, rejected)) = accepted.refused {
            return self.punish_header(id, &hash, &rejected, is_compact);
        }
        let Some((last, hash, height)) =
            engine.with_tree(|tree| tree.find(&last).map(|found| (found, last, tree.height(found))))
        else {
            return;
        };
        if is_new {
            self.tell_of_header(id, &hash, height, false);
        }
        let may_have_more = headers.len() == crate::limits::HEADERS_COUNT_MAX;
        let more =
            self.peers.get_mut(&id).and_then(|peer| engine.with_tree(|tree| peer.headers.entered(last, tree, now)));
        if let Some(hashes) = more {
            self.send_getheaders(id, hashes);
        }
        self.learn_of_headers(id, last, is_new, may_have_more);
        self.download.announced(DownloadPeer(id.0), now);
        self.with(id, |peer| peer.failed_branch = None);
        self.fetch_directly(id, last);
        self.request_blocks();
    }

    /// Core's `LogBlockHeader`: once for each new header, so that it shows who tells of blocks and does not send them.
    pub(super) fn tell_of_header(&mut self, id: PeerId, hash: &BlockHash, height: Height, is_compact: bool) {
        let kind = if is_compact { "cmpctblock " } else { "" };
        let text = format!("Saw new {kind}header hash={hash} height={height} peer={id}");
        if self.is_initial_download() { self.log(text) } else { self.tell(text) }
    }

    /// Core's `MaybePunishNodeForBlock`, for headers.
    pub(super) fn punish_header(&mut self, id: PeerId, hash: &BlockHash, rejected: &Rejected, is_compact: bool) {
        let is_inbound = self.peers.get(&id).is_some_and(|peer| peer.kind().is_inbound());
        match rejected {
            // A clock may be wrong.
            Rejected::Violation(violation) if violation.rule == Rule::TimeTooNew => {
                self.log(format!("peer={id}: header {hash} from the future"));
            }
            Rejected::DuplicateInvalid if is_inbound || is_compact => {}
            _ => self.misbehaving(id, &format!("invalid header received: {rejected}")),
        }
    }

    /// Core's `UpdatePeerStateForReceivedHeaders`.
    fn learn_of_headers(&mut self, id: PeerId, last: NodeId, is_new: bool, may_have_more: bool) {
        let (last, tip) = (self.place(last), self.tip());
        self.note_block(id, &last.hash);
        let (unix, is_initial) = (self.now.unix, self.is_initial_download());
        let best_work = self.best_known(id).map(|best| best.work);
        let has_room = self.protected_peers < PROTECTED_PEERS_MAX;
        let Some(peer) = self.peers.get_mut(&id) else { return };
        if is_new && last.work > tip.work {
            peer.last_block_announcement = unix;
        }
        let has_too_little = best_work.is_some_and(|work| work < self.settings.minimum_chain_work);
        if is_initial && !may_have_more && has_too_little && peer.is_chosen() {
            return self.leave(id, "outbound peer headers chain has insufficient work");
        }
        let is_good = best_work.is_some_and(|work| work >= tip.work);
        if peer.kind() == ConnectionKind::OutboundFullRelay && has_room && is_good && !peer.chain_sync.is_protected {
            peer.chain_sync.is_protected = true;
            self.protected_peers += 1;
        }
    }

    /// The peer has this block: Core's `UpdateBlockAvailability`.
    pub(super) fn note_block(&mut self, id: PeerId, hash: &BlockHash) {
        self.look_up_unknown(id);
        let found = self.engine.with_tree(|tree| tree.find(hash));
        match found {
            Some(found) => self.note_known(id, found),
            None => self.with(id, |peer| peer.last_unknown = Some(*hash)),
        }
    }

    fn note_known(&mut self, id: PeerId, found: NodeId) {
        let work = self.place(found).work;
        if self.best_known(id).is_none_or(|best| work >= best.work) {
            self.with(id, |peer| peer.best_known = Some(found));
        }
    }

    /// A block that the peer told of may be known by now: Core's `ProcessBlockAvailability`.
    pub(super) fn look_up_unknown(&mut self, id: PeerId) {
        let Some(hash) = self.peers.get(&id).and_then(|peer| peer.last_unknown) else { return };
        if let Some(found) = self.engine.with_tree(|tree| tree.find(&hash)) {
            self.with(id, |peer| peer.last_unknown = None);
            self.note_known(id, found);
        }
    }

    pub(super) fn best_known(&self, id: PeerId) -> Option<super::Place> {
        self.peers.get(&id).and_then(|peer| peer.best_known).map(|best| self.place(best))
    }

    /// Announcements of the old kind. Core's answer to blocks among them is a question for headers.
    pub(super) fn take_inv(&mut self, id: PeerId, inventory: &[Inv]) {
        let mut unknown = None;
        let Some(peer) = self.peers.get(&id) else { return };
        let refuses_transactions = peer.talk.rejects_transactions(&self.settings.local);
        let other_kind = if peer.talk.wtxid_relay { InvType::TX } else { InvType::WTX };
        for item in inventory.iter().filter(|item| item.kind != other_kind) {
            if item.kind == InvType::BLOCK {
                let hash = BlockHash(item.hash);
                self.note_block(id, &hash);
                let is_here = self.engine.with_tree(|tree| tree.find(&hash).is_some());
                if !is_here && !self.is_loading() && !self.is_requested(&hash) {
                    unknown = Some(hash);
                }
            } else if item.kind.is_gen_tx() && refuses_transactions {
                // It was told in the version message that none are wanted.
                return self.leave(id, "transaction inv sent in violation of protocol");
            }
        }
        let Some(hash) = unknown else { return };
        let is_first_of_block = self.last_inv_that_asked != Some(hash);
        let Some(peer) = self.peers.get(&id) else { return };
        let started = peer.sync_started;
        if started || (!peer.inv_triggered_getheaders && is_first_of_block) {
            let best = self.best_header().id;
            self.ask_for_headers(id, best);
            if !started {
                self.with(id, |peer| peer.inv_triggered_getheaders = true);
                self.last_inv_that_asked = Some(hash);
            }
        }
    }

    /// Asks for what follows on a header, unless a question is open: Core's `MaybeSendGetHeaders`.
    pub(super) fn ask_for_headers(&mut self, id: PeerId, from: NodeId) -> bool {
        let (engine, now) = (self.engine.clone(), self.now.mockable);
        let hashes = self
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
        self.send(id, Message::GetHeaders(Locator { hashes: locator, stop: BlockHash([0; 32]) }));
    }
}
