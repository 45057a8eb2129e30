//! Headers from peers: requests, processing, and what they show about a peer's chain. [`crate::headers`] checks them.

mod announce;
mod serve;
mod state;
mod sync;

pub(super) use announce::TipChange;
pub(super) use serve::{GETBLOCKS_COUNT_MAX, find_fork, may_request};
pub(super) use state::PeerSync;

use super::context::{Context, VALIDATION};
use super::event::Event;
use super::{PeerId, Violation};
use crate::headers::{HeadersContext, HeadersSyncParams, HeadersSyncPhase, locator};
use crate::peer::{ConnectionKind, Permissions};
use crate::time::UnixTime;
use lydian_chain::HeaderId;
use lydian_consensus::{Chain, Rejected, Rule};
use lydian_engine::LogLevel;
use lydian_primitives::{BlockHash, Header, Height};
use lydian_wire::{CompactBlock, Inv, Locator, Message};
use std::time::Duration;

/// The number of outbound peers that are kept even if their chain lags behind: Core's
/// `MAX_OUTBOUND_PEERS_TO_PROTECT_FROM_DISCONNECT`.
const PROTECTED_PEERS_MAX: usize = 4;

/// The time between two log lines about low-work headers: Core's 250 ms.
const PRESYNC_LINE_INTERVAL: Duration = Duration::from_millis(250);

/// The headers of all peers, and the announcements to them.
#[derive(Debug)]
pub(super) struct Headers {
    params: HeadersSyncParams,
    last_inv_that_asked: Option<BlockHash>,
    protected_peers: usize,
    /// When the last line about low-work headers was logged.
    last_presync_line: Option<Duration>,
    /// The tip announced to peers.
    last_tip: HeaderId,
    /// The last compact block that was built, for all peers: Core's `m_most_recent_compact_block`.
    recent_compact: Option<(BlockHash, CompactBlock)>,
    /// The height of the last block that was announced before its validation: Core's `m_highest_fast_announce`.
    announced_height: Option<Height>,
}

impl Headers {
    pub(super) fn new(chain: Chain, tip: HeaderId) -> Headers {
        Headers {
            params: HeadersSyncParams::of(chain),
            last_inv_that_asked: None,
            protected_peers: 0,
            last_presync_line: None,
            last_tip: tip,
            recent_compact: None,
            announced_height: None,
        }
    }

    /// A peer is gone.
    pub(super) fn forget(&mut self, peer: &PeerSync) {
        self.protected_peers -= usize::from(peer.is_protected());
    }

    /// `is_compact`: the header is from a compact block that is too far above the tip to be reconstructed.
    pub(super) fn take_headers(&mut self, context: &mut Context, id: PeerId, headers: &[Header], is_compact: bool) {
        let (engine, params, sync) = (context.chain.clone(), context.settings.params.clone(), self.params);
        let minimum_chain_work = context.settings.minimum_chain_work;
        let (now, unix_now) = (context.now.mockable, context.now.unix);
        let Some(peer) = context.peers.get_mut(&id) else { return };
        let is_trusted = peer.may(Permissions::NO_BAN);
        let received = engine.with_tree(|tree| {
            let unix_now = i64::try_from(unix_now.0).unwrap_or(i64::MAX);
            let rules = HeadersContext { tree, params: &params, sync, minimum_chain_work, now, unix_now, is_trusted };
            peer.sync.headers.receive(headers, &rules, &mut context.random)
        });
        for note in &received.notes {
            context.log_debug(note.sentence(id.0));
        }
        self.log_presync(context, id);
        if let Some(fault) = received.fault {
            return context.misbehaving(id, &Violation::Headers { fault, count: headers.len() });
        }
        if let Some(hashes) = received.getheaders {
            Self::send_getheaders(context, id, hashes);
        }
        if let Some(unknown) = received.unknown {
            context.note_block(id, &unknown);
        }
        let Some(last) = received.accept.last().map(|header| header.hash()) else { return };
        let (is_new, best) = engine.with_tree(|tree| (tree.find(&last).is_none(), tree.best_header()));
        let unix = context.unix();
        let accepted = match engine.accept_headers(&received.accept, unix) {
            Ok(accepted) => accepted,
            Err(error) => return context.log_info(format!("Headers could not be stored: {error}")),
        };
        if let Some((hash, rejected)) = accepted.refused {
            return Self::punish_header(context, id, &hash, &rejected, is_compact);
        }
        Self::log_best_header(context, best, &last);
        let Some((last, hash, height)) =
            engine.with_tree(|tree| tree.find(&last).map(|found| (found, last, tree.height(found))))
        else {
            return;
        };
        if is_new {
            Self::log_new_header(context, id, &hash, height, false);
        }
        let may_have_more = headers.len() == crate::limits::HEADERS_COUNT_MAX;
        let more = context
            .peers
            .get_mut(&id)
            .and_then(|peer| engine.with_tree(|tree| peer.sync.headers.entered(last, tree, now)));
        if let Some(hashes) = more {
            context.log_debug(format!("more getheaders ({height}) to end to peer={id}"));
            Self::send_getheaders(context, id, hashes);
        }
        self.learn_of_headers(context, id, last, is_new, may_have_more);
        context.events.push_back(Event::Headers { id, last });
    }

    /// Core's `LogBlockHeader`: once for each new header, to show which peer announces blocks without sending them.
    pub(super) fn log_new_header(
        context: &mut Context,
        id: PeerId,
        hash: &BlockHash,
        height: Height,
        is_compact: bool,
    ) {
        let kind = if is_compact { "cmpctblock " } else { "" };
        let text = format!("Saw new {kind}header hash={hash} height={height} {}", context.log_peer(id));
        if !context.is_initial_download() {
            context.log_info(text);
        } else if context.switches.is_on(VALIDATION) {
            context.log_at(LogLevel::Debug(VALIDATION), text);
        }
    }

    /// Core's `ProcessNewBlockHeaders`: logs the progress of the headers during the initial download.
    fn log_best_header(context: &mut Context, before: HeaderId, last: &BlockHash) {
        let (best, last) = context.chain.with_tree(|tree| (tree.best_header(), tree.find(last)));
        let Some(last) = last.filter(|_| best != before && context.is_initial_download()) else { return };
        let place = context.place(last);
        let progress = Self::headers_progress(context, place.height, place.time);
        context.log_info(format!("Synchronizing blockheaders, height: {} (~{progress:.2}%)", place.height));
    }

    /// Core's `ReportHeadersPresync`: at most four lines per second.
    fn log_presync(&mut self, context: &mut Context, id: PeerId) {
        let now = context.now.elapsed;
        let is_early = self.last_presync_line.is_some_and(|last| now < last + PRESYNC_LINE_INTERVAL);
        let sync = context.peers.get(&id).and_then(|peer| peer.sync.headers.sync());
        let Some(sync) = sync.filter(|sync| sync.phase() == HeadersSyncPhase::Presync) else { return };
        let (height, time, _) = sync.presync();
        if is_early
            || context.best_header().work >= context.settings.minimum_chain_work
            || !context.is_initial_download()
        {
            return;
        }
        self.last_presync_line = Some(now);
        let progress = Self::headers_progress(context, height, time);
        context.log_info(format!("Pre-synchronizing blockheaders, height: {height} (~{progress:.2}%)"));
    }

    /// Returns the progress of the headers in percent, estimated from the time of the last one.
    fn headers_progress(context: &Context, height: Height, time: u32) -> f64 {
        let age = context.now.unix.since(UnixTime::from(time));
        let left = (age / context.settings.params.pow_target_spacing.max(1)).max(0);
        #[allow(clippy::cast_precision_loss, reason = "shown with two digits")]
        let left = left as f64;
        100.0 * f64::from(height.0) / (f64::from(height.0) + left)
    }

    /// Core's `MaybePunishNodeForBlock`, for headers.
    pub(super) fn punish_header(
        context: &mut Context,
        id: PeerId,
        hash: &BlockHash,
        rejected: &Rejected,
        is_compact: bool,
    ) {
        let is_inbound = context.peers.get(&id).is_some_and(|peer| peer.kind().is_inbound());
        let what = Violation::InvalidHeader { is_compact };
        if *rejected == Rejected::DuplicateInvalid && !is_inbound && !is_compact {
            context.log_at(
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
                context.log_debug(format!("peer={id}: {what}"));
            }
            Rejected::DuplicateInvalid if is_inbound || is_compact => context.log_debug(format!("peer={id}: {what}")),
            _ => context.misbehaving(id, &what),
        }
    }

    /// Core's `UpdatePeerStateForReceivedHeaders`.
    fn learn_of_headers(
        &mut self,
        context: &mut Context,
        id: PeerId,
        last: HeaderId,
        is_new: bool,
        may_have_more: bool,
    ) {
        let (last, tip) = (context.place(last), context.tip());
        context.note_block(id, &last.hash);
        let (unix, is_initial) = (context.now.unix, context.is_initial_download());
        let best_work = context.best_known(id).map(|best| best.work);
        let has_room = self.protected_peers < PROTECTED_PEERS_MAX;
        let Some(peer) = context.peers.get_mut(&id) else { return };
        if is_new && last.work > tip.work {
            peer.last_block_announcement = unix;
        }
        let has_too_little = best_work.is_some_and(|work| work < context.settings.minimum_chain_work);
        if is_initial && !may_have_more && has_too_little && peer.is_chosen() {
            let reason = "outbound peer headers chain has insufficient work";
            return context.leave_at(id, LogLevel::Info, reason.to_owned());
        }
        let is_good = best_work.is_some_and(|work| work >= tip.work);
        if peer.kind() == ConnectionKind::OutboundFullRelay && has_room && is_good && !peer.sync.chain_sync.is_protected
        {
            peer.sync.chain_sync.is_protected = true;
            self.protected_peers += 1;
            context.log_debug(format!("Protecting outbound peer={id} from eviction"));
        }
    }

    /// A block was announced by its hash. Returns whether its header is known.
    pub(super) fn note_announced(&self, context: &mut Context, id: PeerId, item: &Inv) -> bool {
        let hash = BlockHash(item.hash);
        context.note_block(id, &hash);
        let is_here = context.chain.with_tree(|tree| tree.find(&hash).is_some());
        context.log_debug(format!("got inv: {item} {} peer={id}", if is_here { "have" } else { "new" }));
        is_here
    }

    /// An unknown block was announced by its hash. Like Core, the node answers with a `getheaders`.
    pub(super) fn ask_about(&mut self, context: &mut Context, id: PeerId, hash: BlockHash) {
        let is_first_of_block = self.last_inv_that_asked != Some(hash);
        let Some(peer) = context.peers.get(&id) else { return };
        let started = peer.sync.sync_started;
        if started || (!peer.sync.inv_triggered_getheaders && is_first_of_block) {
            let best = context.best_header();
            if Self::ask_for_headers(context, id, best.id) {
                context.log_debug(format!("getheaders ({}) {hash} to peer={id}", best.height));
            }
            if !started {
                context.with(id, |peer| peer.sync.inv_triggered_getheaders = true);
                self.last_inv_that_asked = Some(hash);
            }
        }
    }

    /// Requests the headers after `from`, unless a request is outstanding: Core's `MaybeSendGetHeaders`.
    pub(super) fn ask_for_headers(context: &mut Context, id: PeerId, from: HeaderId) -> bool {
        let (engine, now) = (context.chain.clone(), context.now.mockable);
        let hashes = context
            .peers
            .get_mut(&id)
            .and_then(|peer| engine.with_tree(|tree| peer.sync.headers.request(now, || locator(tree, from))));
        match hashes {
            Some(hashes) => {
                Self::send_getheaders(context, id, hashes);
                true
            }
            None => false,
        }
    }

    fn send_getheaders(context: &mut Context, id: PeerId, locator: Vec<BlockHash>) {
        context.send(id, Message::GetHeaders(Locator { hashes: locator, stop: BlockHash([0; 32]) }));
    }
}
