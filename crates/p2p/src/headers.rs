//! Headers from one peer: which to accept, what to request next, what to punish.
//!
//! Core's `ProcessHeadersMessage` up to and after the insertion into the tree. Input: `headers` messages, the tree.
//! Output: [`Received`]; the caller passes its headers to `Engine::accept_hashed_headers` and reports the result.
//!
//! Invariant: a chain is accepted only if it has, or has proven to have, the work of [`anti_dos_work`]; a chain with
//! less work goes through [`HeadersSync`], which stores almost nothing. Cost: each header is hashed once, in SIMD
//! lanes, about 0.1 us. No clock, no randomness of its own.

mod note;
mod params;
mod sync;
#[cfg(test)]
mod tests;

pub use note::HeadersNote;
pub use params::HeadersSyncParams;
pub use sync::{HeadersSync, HeadersSyncEnd, HeadersSyncPhase, Processed};

use crate::limits::HEADERS_COUNT_MAX;
use lydian_chain::{HeaderId, HeaderTree};
use lydian_consensus::pow::{PowCheck, block_proof};
use lydian_consensus::{Params, U256};
use lydian_primitives::{BlockHash, HashedHeader, Header, Height};
use rand_chacha::ChaCha20Rng;
use std::time::Duration;
use sync::Proof;

/// How long a `getheaders` may stay unanswered before another is sent: Core's `HEADERS_RESPONSE_TIME`.
pub const HEADERS_RESPONSE_TIME: Duration = Duration::from_secs(2 * 60);

/// How many blocks of work below the tip a fork may be and still be accepted without proof of more work: Core's
/// `GetAntiDoSWorkThreshold`.
const ANTI_DOS_BLOCKS: u32 = 144;

/// The data that headers are checked against.
#[derive(Clone, Copy, Debug)]
pub struct HeadersContext<'a> {
    pub tree: &'a HeaderTree,
    pub params: &'a Params,
    pub sync: HeadersSyncParams,
    /// `-minimumchainwork`.
    pub minimum_chain_work: U256,
    /// Time since the start.
    pub now: Duration,
    /// Seconds since 1970.
    pub unix_now: i64,
    /// The peer has the permission `noban`: its chains are accepted with any work.
    pub is_trusted: bool,
}

/// A fault for which Core discourages a peer (`Misbehaving`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum HeadersFault {
    TooMany,
    InvalidProofOfWork,
    NonContinuous,
}

impl HeadersFault {
    /// Returns the text in Core's log.
    pub fn reason(self, count: usize) -> String {
        match self {
            HeadersFault::TooMany => format!("headers message size = {count}"),
            HeadersFault::InvalidProofOfWork => "header with invalid proof of work".to_owned(),
            HeadersFault::NonContinuous => "non-continuous headers sequence".to_owned(),
        }
    }
}

/// The result of a `headers` message.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Received {
    pub fault: Option<HeadersFault>,
    /// Headers to insert into the tree; afterwards call [`PeerHeaders::entered`].
    pub accept: Vec<HashedHeader>,
    /// A request to send: the hashes of its locator.
    pub getheaders: Option<Vec<BlockHash>>,
    /// The last header of a message that does not connect: the peer has that block if it becomes known later.
    pub unknown: Option<BlockHash>,
    /// For the log.
    pub notes: Vec<HeadersNote>,
}

/// The header state of one peer.
#[derive(Debug, Default)]
pub struct PeerHeaders {
    sync: Option<HeadersSync>,
    /// When the outstanding request was sent.
    requested: Option<Duration>,
    /// The headers being inserted were a full message outside of a low-work download.
    may_have_more: bool,
}

impl PeerHeaders {
    pub fn new() -> PeerHeaders {
        PeerHeaders::default()
    }

    /// Returns the ongoing download of a chain whose work is not known to be sufficient.
    pub fn sync(&self) -> Option<&HeadersSync> {
        self.sync.as_ref()
    }

    /// Returns whether a request is unanswered and was sent at most `patience` ago.
    pub fn is_waiting(&self, now: Duration, patience: Duration) -> bool {
        self.requested.is_some_and(|sent| now.saturating_sub(sent) <= patience)
    }

    /// Returns a request if none is outstanding: Core's `MaybeSendGetHeaders`.
    pub fn request(&mut self, now: Duration, locator: impl FnOnce() -> Vec<BlockHash>) -> Option<Vec<BlockHash>> {
        if self.is_waiting(now, HEADERS_RESPONSE_TIME) {
            return None;
        }
        self.requested = Some(now);
        Some(locator())
    }

    /// Processes a `headers` message.
    pub fn receive(&mut self, headers: &[Header], context: &HeadersContext<'_>, random: &mut ChaCha20Rng) -> Received {
        let mut received = Received::default();
        self.may_have_more = false;
        if headers.is_empty() {
            // The peer has nothing for us, perhaps because it switched to our chain.
            (self.sync, self.requested) = (None, None);
            return received;
        }
        if headers.len() > HEADERS_COUNT_MAX {
            received.fault = Some(HeadersFault::TooMany);
            return received;
        }
        let is_full = headers.len() == HEADERS_COUNT_MAX;
        let headers = HashedHeader::many(headers);
        received.fault = fault(&headers, context.params);
        if received.fault.is_some() {
            return received;
        }
        match self.continue_sync(&headers, is_full, context, &mut received) {
            // `ready` is empty if nothing can be accepted yet.
            Some(ready) => received.accept = ready,
            None => self.begin(headers, is_full, context, random, &mut received),
        }
        self.may_have_more = is_full && self.sync.is_none() && !received.accept.is_empty();
        received
    }

    /// The headers of [`Received::accept`] were inserted, the last of them as `last`. Returns a request for more if the
    /// message was full.
    pub fn entered(&mut self, last: HeaderId, tree: &HeaderTree, now: Duration) -> Option<Vec<BlockHash>> {
        let may_have_more = std::mem::take(&mut self.may_have_more);
        if may_have_more { self.request(now, || locator(tree, last)) } else { None }
    }

    /// Core's `IsContinuationOfLowWorkHeadersSync`: returns the headers that are ready if these headers continue a
    /// download.
    fn continue_sync(
        &mut self,
        headers: &[HashedHeader],
        is_full: bool,
        context: &HeadersContext<'_>,
        received: &mut Received,
    ) -> Option<Vec<HashedHeader>> {
        let sync = self.sync.as_mut()?;
        let was_presync = sync.phase() == HeadersSyncPhase::Presync;
        let processed = sync.process(headers, is_full);
        received.notes.extend(HeadersNote::of(sync, was_presync));
        let locator = processed.request_more.then(|| sync.next_locator());
        if sync.phase() == HeadersSyncPhase::Final {
            self.sync = None;
        }
        if processed.success {
            self.requested = None;
        }
        if let Some(locator) = locator {
            let from = locator.first().copied();
            received.getheaders = self.request(context.now, || locator);
            let is_sent = received.getheaders.is_some();
            received.notes.extend(from.filter(|_| is_sent).map(|from| HeadersNote::More { from }));
        }
        processed.success.then_some(processed.headers)
    }

    /// Handles headers outside of a download. They are accepted if they connect and have enough work. With too little
    /// work, a download starts if more headers may follow.
    fn begin(
        &mut self,
        headers: Vec<HashedHeader>,
        is_full: bool,
        context: &HeadersContext<'_>,
        random: &mut ChaCha20Rng,
        received: &mut Received,
    ) {
        let tree = context.tree;
        let (Some(first), Some(last)) = (headers.first(), headers.last()) else { return };
        let Some(start) = tree.find(&first.header().prev_block) else {
            // Perhaps an announcement of a block whose parent is still missing.
            received.getheaders = self.request(context.now, || locator(tree, tree.best_header()));
            if received.getheaders.is_some() {
                received.notes.push(HeadersNote::Unconnected {
                    first: first.hash(),
                    parent: first.header().prev_block,
                    best_height: tree.height(tree.best_header()).0,
                });
            }
            received.unknown = Some(last.hash());
            return;
        };
        self.requested = None;
        let is_known = tree.find(&last.hash()).is_some_and(|id| is_on_best_chains(tree, id));
        if is_known || context.is_trusted {
            received.accept = headers;
            return;
        }
        let mut proof = Proof::default();
        let work = headers.iter().fold(tree.node(start).chain_work, |work, header| {
            work.checked_add(proof.of(header.header().bits)).unwrap_or(U256::MAX)
        });
        let minimum_work = anti_dos_work(tree, context.minimum_chain_work);
        if work >= minimum_work {
            received.accept = headers;
        } else if is_full {
            let (params, sync) = (context.params, context.sync);
            let sync = HeadersSync::new(params, sync, tree, start, minimum_work, context.unix_now, random);
            let (height, max_commitments) = (tree.height(start).0, sync.max_commitments());
            received.notes.push(HeadersNote::Started { height, max_commitments, minimum_work });
            self.sync = Some(sync);
            // Nothing is accepted now, even if the work is already sufficient.
            let _ = self.continue_sync(&headers, is_full, context, received);
        } else {
            let count = u32::try_from(headers.len()).unwrap_or(u32::MAX);
            received.notes.push(HeadersNote::LowWork { height: tree.height(start).0.saturating_add(count) });
        }
    }
}

fn fault(headers: &[HashedHeader], params: &Params) -> Option<HeadersFault> {
    let mut pow = PowCheck::new(params);
    if !headers.iter().all(|header| pow.holds(&header.hash(), header.header().bits)) {
        return Some(HeadersFault::InvalidProofOfWork);
    }
    let is_continuous = headers.windows(2).all(|pair| pair[1].header().prev_block == pair[0].hash());
    (!is_continuous).then_some(HeadersFault::NonContinuous)
}

/// Core's `IsAncestorOfBestHeaderOrTip`.
fn is_on_best_chains(tree: &HeaderTree, id: HeaderId) -> bool {
    tree.ancestor(tree.best_header(), tree.height(id)) == Some(id) || tree.is_active(id)
}

/// Returns the work that a chain must have before its headers are stored: Core's `GetAntiDoSWorkThreshold`.
pub fn anti_dos_work(tree: &HeaderTree, minimum_chain_work: U256) -> U256 {
    let tip = tree.node(tree.tip());
    let buffer = block_proof(tip.header.bits).wrapping_mul_u32(ANTI_DOS_BLOCKS);
    tip.chain_work.checked_sub(buffer).unwrap_or(U256::ZERO).max(minimum_chain_work)
}

/// Returns the hashes by which a peer finds the fork point of its chain and ours: ten headers one by one, then steps
/// that double, then the genesis block. Core's `LocatorEntries`.
pub fn locator(tree: &HeaderTree, id: HeaderId) -> Vec<BlockHash> {
    let mut hashes = vec![*tree.hash(id)];
    let (mut at, mut step) = (id, 1_u32);
    while tree.height(at).0 > 0 {
        let height = tree.height(at).0.saturating_sub(step);
        let Some(ancestor) = tree.ancestor(at, Height(height)) else { break };
        at = ancestor;
        if hashes.len() > 10 {
            step = step.saturating_mul(2);
        }
        hashes.push(*tree.hash(at));
    }
    hashes
}

/// Returns the locator of the first request to a peer. It starts at the parent of our best header, so that a peer with
/// the same chain answers with one header and shows what it has.
pub fn first_locator(tree: &HeaderTree) -> Vec<BlockHash> {
    let best = tree.best_header();
    locator(tree, tree.parent(best).unwrap_or(best))
}
