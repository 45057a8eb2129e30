//! The download of transactions: what is requested, what is validated, what is done after the verdict.
//!
//! Bitcoin Core's `TxDownloadManager` (node/txdownloadman_impl.cpp). Input: announcements, transactions, `notfound`,
//! verdicts of the mempool, blocks, connected and disconnected peers. Output: transactions to request, to validate, and
//! pairs of a parent and a child to validate as a package.
//!
//! A transaction whose inputs are missing becomes an orphan: its parents are requested by txid from each peer that
//! announced it, unless a parent was rejected. A transaction that was rejected, but may be accepted in a package, is
//! submitted again with each orphan of the same peer that spends it, until one package is accepted.
//!
//! Unlike in Core, the mempool decides on another thread. Between [`Received::Validate`] and its verdict a transaction
//! is pending: it is not requested from its other announcers, but they are kept, because a verdict may need them (a
//! peer may have sent it without its witness). If every verdict follows at once, the calls have the results of Core's.
//!
//! Invariants: an unconfirmed transaction is identified by its wtxid wherever a peer could send it with another
//! witness; no peer is punished; the caller reports for each pending transaction a verdict or [`TxDownload::dropped`],
//! and each package with [`TxDownload::package_decided`] before the verdicts of its transactions, the child's first.
//! Memory: [`PEER_ANNOUNCEMENTS_MAX`] announcements for each peer without `relay` permission, the orphanage, the
//! rejects, and 150 bytes for each pending transaction, whose number the caller's queue limits. Cost: logarithmic for
//! each id, parent and announcer concerned.

#[cfg(test)]
mod tests;

use super::GenTxid;
use super::orphanage::{OrphanInfo, Orphanage};
use super::peer::RelayPeer;
use super::rejects::Rejects;
use super::requests::TxRequests;
use crate::limits::{PEER_ANNOUNCEMENTS_MAX, TX_REQUEST_TIMEOUT, TX_REQUESTS_IN_FLIGHT_MAX};
use crate::peer::PeerId;
use lydian_mempool::policy::package_hash;
use lydian_primitives::{Block, Transaction, Txid, Wtxid};
use rand_chacha::ChaCha20Rng;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

/// The delay of requests to peers that are not preferred: Core's `NONPREF_PEER_TX_DELAY`.
pub const NOT_PREFERRED_DELAY: Duration = Duration::from_secs(2);
/// The delay of requests by txid while there are peers that announce by wtxid: Core's `TXID_RELAY_DELAY`.
pub const TXID_DELAY: Duration = Duration::from_secs(2);
/// The delay of requests to overloaded peers: Core's `OVERLOADED_PEER_TX_DELAY`.
pub const OVERLOADED_DELAY: Duration = Duration::from_secs(2);

/// The mempool, as far as the download asks for it.
pub trait PoolView {
    /// Returns whether the transaction is in the mempool: with any witness if asked by txid.
    fn has(&self, gtxid: &GenTxid) -> bool;
}

/// What a call may read and draw from.
pub struct DownloadContext<'a> {
    /// The current snapshot of the mempool.
    pub pool: &'a dyn PoolView,
    pub now: Duration,
    pub random: &'a mut ChaCha20Rng,
}

impl std::fmt::Debug for DownloadContext<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DownloadContext").field("now", &self.now).finish_non_exhaustive()
    }
}

/// Why the mempool rejected a transaction, as far as the consequences differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RejectClass {
    /// Core's `TX_MISSING_INPUTS`.
    MissingInputs,
    /// Core's `TX_WITNESS_STRIPPED`: it may be valid with its witness.
    WitnessStripped,
    /// Core's `TX_RECONSIDERABLE`: it may be accepted in a package.
    Reconsiderable,
    /// Core's `TX_INPUTS_NOT_STANDARD`: no witness makes it acceptable.
    InputsNotStandard,
    /// Any other reason.
    Other,
}

/// A parent and a child to validate together: Core's `PackageToValidate`.
#[derive(Clone, Debug)]
pub struct Package {
    pub parent: Arc<Transaction>,
    pub child: Arc<Transaction>,
    pub parent_sender: PeerId,
    pub child_sender: PeerId,
}

impl Package {
    /// Returns the parent and the child.
    pub fn transactions(&self) -> Vec<Arc<Transaction>> {
        vec![Arc::clone(&self.parent), Arc::clone(&self.child)]
    }

    /// Returns the hash by which a rejected package is remembered.
    pub fn hash(&self) -> [u8; 32] {
        package_hash(&[self.parent.view().wtxid(), self.child.view().wtxid()])
    }
}

/// What to do with a transaction that a peer sent.
#[derive(Clone, Debug)]
pub enum Received {
    /// Submit it to the mempool, and report the verdict.
    Validate,
    /// It was rejected on its own before: submit the package, and report its verdict.
    ValidatePackage(Package),
    /// Nothing: it is here, was rejected or confirmed recently, or is being validated.
    Ignore,
}

/// What to do after a rejection: Core's `RejectedTxTodo`.
#[derive(Clone, Debug, Default)]
pub struct Rejected {
    /// Keep the transaction for the reconstruction of compact blocks.
    pub is_extra_for_compact_blocks: bool,
    /// The missing parents, which the sender knows: the caller reports them with
    /// [`super::TxAnnouncer::note_known`].
    pub parents: Vec<Txid>,
    /// A package to submit to the mempool.
    pub package: Option<Package>,
}

/// The requests that a peer is sent now.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Requests {
    pub wanted: Vec<GenTxid>,
    /// Requests to any peer that expired since the last call, for the log.
    pub expired: Vec<(PeerId, GenTxid)>,
}

/// A transaction that is being validated.
#[derive(Debug, Default)]
struct Pending {
    /// The peers that sent it. The first one is named by the verdict.
    senders: BTreeSet<PeerId>,
}

/// The download of transactions from all peers.
#[derive(Debug)]
pub struct TxDownload {
    peers: BTreeMap<PeerId, RelayPeer>,
    wtxid_peer_count: usize,
    requests: TxRequests,
    orphanage: Orphanage,
    rejects: Rejects,
    pending: BTreeMap<Wtxid, Pending>,
    /// The txids and wtxids of the pending transactions.
    pending_ids: BTreeSet<([u8; 32], Wtxid)>,
}

impl TxDownload {
    pub fn new(random: &mut ChaCha20Rng) -> TxDownload {
        TxDownload {
            peers: BTreeMap::new(),
            wtxid_peer_count: 0,
            requests: TxRequests::new(random),
            orphanage: Orphanage::default(),
            rejects: Rejects::default(),
            pending: BTreeMap::new(),
            pending_ids: BTreeSet::new(),
        }
    }

    /// The handshake with a peer is complete.
    pub fn connected(&mut self, id: PeerId, peer: RelayPeer) {
        if !self.peers.contains_key(&id) {
            self.wtxid_peer_count += usize::from(peer.wtxid_relay);
            self.peers.insert(id, peer);
        }
    }

    /// A peer is gone: drops its announcements, and its share of the orphanage.
    pub fn disconnected(&mut self, id: PeerId) {
        self.orphanage.erase_for_peer(id);
        self.requests.disconnected(id);
        if let Some(peer) = self.peers.remove(&id) {
            self.wtxid_peer_count -= usize::from(peer.wtxid_relay);
        }
    }

    /// The active chain has a new tip, and the initial download is over: what was rejected may be valid now.
    pub fn tip_changed(&mut self, random: &mut ChaCha20Rng) {
        self.rejects.forget_rejected(random);
    }

    /// A block was connected.
    pub fn block_connected(&mut self, block: &Block, random: &mut ChaCha20Rng) {
        self.orphanage.erase_for_block(block.txs().flat_map(|tx| tx.inputs().map(|input| input.prevout)));
        for tx in block.txs() {
            self.rejects.add_confirmed(&tx.txid().0, random);
            if tx.has_witness() {
                self.rejects.add_confirmed(&tx.wtxid().0, random);
            }
            self.forget_requests(tx.txid(), tx.wtxid());
        }
    }

    /// A block was disconnected. All confirmed transactions are forgotten, because those of the block may come again.
    pub fn block_disconnected(&mut self, random: &mut ChaCha20Rng) {
        self.rejects.forget_confirmed(random);
    }

    /// A peer announced a transaction. Returns whether the announcement is not needed, because the transaction is here
    /// or was rejected or confirmed recently.
    pub fn announced(&mut self, id: PeerId, gtxid: &GenTxid, context: &DownloadContext<'_>) -> bool {
        if let GenTxid::Wtxid(wtxid) = gtxid
            && let Some(orphan) = self.orphanage.get(wtxid)
        {
            // The peer can be asked for the parents of the orphan.
            let missing = self.missing_parents(unique_parents(orphan), context.pool);
            if !missing.is_empty() && self.add_parent_source(id, wtxid, &missing, context.now) {
                self.orphanage.add_announcer(*wtxid, id);
            }
            return true;
        }
        if self.already_have(gtxid, true, context.pool) {
            return true;
        }
        if let Some(peer) = self.peers.get(&id)
            && (peer.has_relay_permission() || self.requests.count(id) < PEER_ANNOUNCEMENTS_MAX)
        {
            let at = context.now + self.delay(id, peer, gtxid.is_wtxid());
            self.requests.announced(id, gtxid, peer.is_preferred, at);
        }
        false
    }

    /// Returns the transactions to request from a peer now, which are in flight from now on.
    pub fn requests_to_send(&mut self, id: PeerId, context: &DownloadContext<'_>) -> Requests {
        let mut requests = Requests::default();
        for gtxid in self.requests.requestable(id, context.now, &mut requests.expired) {
            if self.is_pending(&gtxid.hash()) {
                continue;
            }
            if self.already_have(&gtxid, false, context.pool) {
                self.requests.forget(&gtxid.hash());
            } else {
                self.requests.requested(id, &gtxid.hash(), context.now + TX_REQUEST_TIMEOUT);
                requests.wanted.push(gtxid);
            }
        }
        requests
    }

    /// A peer does not have these transactions.
    pub fn not_found(&mut self, id: PeerId, gtxids: impl IntoIterator<Item = GenTxid>) {
        gtxids.into_iter().for_each(|gtxid| self.requests.responded(id, &gtxid.hash()));
    }

    /// A peer sent a transaction, requested or not.
    pub fn received(&mut self, id: PeerId, tx: &Arc<Transaction>, context: &DownloadContext<'_>) -> Received {
        let view = tx.view();
        let wtxid = view.wtxid();
        self.requests.responded(id, &view.txid().0);
        if view.has_witness() {
            self.requests.responded(id, &wtxid.0);
        }
        if let Some(pending) = self.pending.get_mut(&wtxid) {
            pending.senders.insert(id);
            return Received::Ignore;
        }
        // Asked by wtxid: by txid, another witness of the same transaction would hide this one.
        if self.already_have(&GenTxid::Wtxid(wtxid), false, context.pool) {
            return Received::Ignore;
        }
        if self.rejects.is_reconsiderable(&wtxid.0) {
            return self.find_package(tx, id).map_or(Received::Ignore, Received::ValidatePackage);
        }
        self.begin_validation(tx, id);
        Received::Validate
    }

    /// The caller could not submit a transaction that [`TxDownload::received`] or [`TxDownload::next_orphan`] returned,
    /// or the mempool gave no verdict.
    pub fn dropped(&mut self, tx: &Transaction) {
        self.end_validation(tx);
    }

    /// The mempool accepted a transaction, from a peer or not. Returns the orphans that can be validated again, with
    /// the peers in whose work sets they are.
    pub fn accepted(&mut self, tx: &Transaction, random: &mut ChaCha20Rng) -> Vec<(Wtxid, PeerId)> {
        self.end_validation(tx);
        let view = tx.view();
        self.forget_requests(view.txid(), view.wtxid());
        let added = self.orphanage.add_children_to_work_set(tx, random);
        self.orphanage.erase(&view.wtxid());
        added
    }

    /// The mempool rejected a transaction of a peer. `is_first`: it was not an orphan nor part of a package.
    pub fn rejected(
        &mut self,
        tx: &Arc<Transaction>,
        class: RejectClass,
        id: PeerId,
        is_first: bool,
        context: &mut DownloadContext<'_>,
    ) -> Rejected {
        let other_senders = self.end_validation(tx);
        let mut result = Rejected { is_extra_for_compact_blocks: is_first, ..Rejected::default() };
        let (txid, wtxid) = (tx.view().txid(), tx.view().wtxid());
        match class {
            RejectClass::MissingInputs if is_first && !self.rejects.is_rejected(&wtxid.0) => {
                self.keep_orphan(tx, id, &mut result, context);
            }
            RejectClass::MissingInputs => {}
            RejectClass::WitnessStripped => result.is_extra_for_compact_blocks = false,
            RejectClass::Reconsiderable => {
                self.rejects.add_reconsiderable(&wtxid.0, context.random);
                if is_first {
                    let senders = std::iter::once(id).chain(other_senders);
                    result.package = { senders }.find_map(|sender| self.find_package(tx, sender));
                }
            }
            RejectClass::InputsNotStandard | RejectClass::Other => {
                self.rejects.add_rejected(&wtxid.0, context.random);
            }
        }
        if !matches!(class, RejectClass::MissingInputs | RejectClass::WitnessStripped) {
            self.requests.forget(&wtxid.0);
        }
        if class == RejectClass::InputsNotStandard && tx.view().has_witness() {
            // The inputs are part of the txid: as a parent of an orphan, it need not be requested either.
            self.rejects.add_rejected(&txid.0, context.random);
            self.requests.forget(&txid.0);
        }
        if class != RejectClass::MissingInputs {
            self.orphanage.erase(&wtxid);
        }
        result
    }

    /// The mempool decided on a package. Call this before the verdicts of its transactions are reported.
    pub fn package_decided(&mut self, package: &Package, is_accepted: bool, random: &mut ChaCha20Rng) {
        self.end_validation(&package.parent);
        self.end_validation(&package.child);
        if !is_accepted {
            self.rejects.add_reconsiderable(&package.hash(), random);
        }
    }

    /// Returns whether an orphan in the work set of a peer can be validated again.
    pub fn has_work(&self, id: PeerId) -> bool {
        self.orphanage.has_work(id)
    }

    /// Takes the next orphan from the work set of a peer, to be submitted to the mempool. `None` if there is none, or
    /// if the next one is still being validated.
    pub fn next_orphan(&mut self, id: PeerId) -> Option<Arc<Transaction>> {
        let next = self.orphanage.first_of_work_set(id)?;
        if self.pending.contains_key(&next) {
            return None;
        }
        let tx = self.orphanage.next_of_work_set(id)?;
        self.begin_validation(&tx, id);
        Some(tx)
    }

    /// Returns all orphans with their announcers, for `getorphantxs`.
    pub fn orphans(&self) -> Vec<OrphanInfo> {
        self.orphanage.orphans()
    }

    /// Returns the orphanage, for its figures.
    pub fn orphanage(&self) -> &Orphanage {
        &self.orphanage
    }

    /// Returns the announcements that are tracked, for their numbers.
    pub fn requests(&self) -> &TxRequests {
        &self.requests
    }

    /// Returns the number of transactions whose verdict has not been reported.
    pub fn pending_count(&self) -> usize {
        self.pending.len()
    }
}

/// Rules.
impl TxDownload {
    /// Core's `AlreadyHaveTx`. A txid also finds an orphan without witness, whose wtxid it is; another orphan with this
    /// txid may have a malleated witness.
    fn already_have(&self, gtxid: &GenTxid, with_reconsiderable: bool, pool: &dyn PoolView) -> bool {
        let hash = gtxid.hash();
        self.orphanage.has(&Wtxid(hash))
            || with_reconsiderable && self.rejects.is_reconsiderable(&hash)
            || self.rejects.is_confirmed(&hash)
            || self.rejects.is_rejected(&hash)
            || pool.has(gtxid)
    }

    /// A parent that was rejected on its own counts as missing: the orphan may pay for it.
    fn missing_parents(&self, mut parents: Vec<Txid>, pool: &dyn PoolView) -> Vec<Txid> {
        parents.retain(|txid| !self.already_have(&GenTxid::Txid(*txid), false, pool));
        parents
    }

    fn delay(&self, id: PeerId, peer: &RelayPeer, is_wtxid: bool) -> Duration {
        let is_overloaded =
            !peer.has_relay_permission() && self.requests.in_flight_count(id) >= TX_REQUESTS_IN_FLIGHT_MAX;
        let delays = [
            (!peer.is_preferred, NOT_PREFERRED_DELAY),
            (!is_wtxid && self.wtxid_peer_count > 0, TXID_DELAY),
            (is_overloaded, OVERLOADED_DELAY),
        ];
        delays.iter().filter(|(applies, _)| *applies).map(|(_, delay)| *delay).sum()
    }

    /// Treats the missing parents of an orphan as announced by a peer, unless it announced the orphan before or has too
    /// many announcements. Returns whether the peer becomes an announcer of the orphan. Core's
    /// `MaybeAddOrphanResolutionCandidate`.
    fn add_parent_source(&mut self, id: PeerId, orphan: &Wtxid, missing: &[Txid], now: Duration) -> bool {
        let Some(peer) = self.peers.get(&id) else { return false };
        let is_full = self.requests.count(id) + missing.len() > PEER_ANNOUNCEMENTS_MAX;
        if self.orphanage.has_from(orphan, id) || (is_full && !peer.has_relay_permission()) {
            return false;
        }
        let at = now + self.delay(id, peer, false);
        for txid in missing {
            self.requests.announced(id, &GenTxid::Txid(*txid), peer.is_preferred, at);
        }
        true
    }

    /// Keeps a transaction whose inputs are missing, unless a parent was rejected or two were rejected on their own.
    fn keep_orphan(
        &mut self,
        tx: &Arc<Transaction>,
        id: PeerId,
        result: &mut Rejected,
        context: &mut DownloadContext<'_>,
    ) {
        let (txid, wtxid) = (tx.view().txid(), tx.view().wtxid());
        let parents = unique_parents(tx);
        if self.has_hopeless_parents(&parents, context.pool) {
            // No witness helps, so the txid is remembered too.
            self.rejects.add_rejected(&txid.0, context.random);
            self.rejects.add_rejected(&wtxid.0, context.random);
            self.forget_requests(txid, wtxid);
            return;
        }
        let missing = self.missing_parents(parents, context.pool);
        result.is_extra_for_compact_blocks &= !self.orphanage.has(&wtxid);
        let mut sources = vec![id];
        sources.extend(self.requests.candidates(&txid.0));
        if tx.view().has_witness() {
            sources.extend(self.requests.candidates(&wtxid.0));
        }
        for source in sources {
            if self.add_parent_source(source, &wtxid, &missing, context.now) {
                self.orphanage.add(tx, source);
            }
        }
        self.forget_requests(txid, wtxid);
        result.parents = missing;
    }

    /// Packages have one parent: two that need one are too many.
    fn has_hopeless_parents(&self, parents: &[Txid], pool: &dyn PoolView) -> bool {
        let needs_package = |txid: &&Txid| self.rejects.is_reconsiderable(&txid.0) && !pool.has(&GenTxid::Txid(**txid));
        parents.iter().any(|txid| self.rejects.is_rejected(&txid.0))
            || parents.iter().filter(needs_package).nth(1).is_some()
    }

    /// Finds an orphan of the sender with which a transaction that was rejected on its own was not tried yet. The
    /// orphans of other peers do not count: an attacker could send many useless ones.
    fn find_package(&mut self, parent: &Arc<Transaction>, sender: PeerId) -> Option<Package> {
        let children = self.orphanage.children_from(parent.view().txid(), sender);
        let package =
            |child| Package { parent: Arc::clone(parent), child, parent_sender: sender, child_sender: sender };
        let is_untried = |package: &Package| {
            !self.rejects.is_reconsiderable(&package.hash())
                && !self.rejects.is_rejected(&package.child.view().txid().0)
        };
        let package = children.into_iter().map(package).find(is_untried)?;
        self.begin_validation(&package.parent, sender);
        self.begin_validation(&package.child, sender);
        Some(package)
    }

    fn forget_requests(&mut self, txid: Txid, wtxid: Wtxid) {
        self.requests.forget(&txid.0);
        self.requests.forget(&wtxid.0);
    }

    fn is_pending(&self, hash: &[u8; 32]) -> bool {
        self.pending_ids.range((*hash, Wtxid::ZERO)..=(*hash, Wtxid([0xff; 32]))).next().is_some()
    }

    fn begin_validation(&mut self, tx: &Transaction, sender: PeerId) {
        let (txid, wtxid) = (tx.view().txid(), tx.view().wtxid());
        self.pending.entry(wtxid).or_default().senders.insert(sender);
        self.pending_ids.extend([(txid.0, wtxid), (wtxid.0, wtxid)]);
    }

    /// Returns the peers that sent it.
    fn end_validation(&mut self, tx: &Transaction) -> BTreeSet<PeerId> {
        let (txid, wtxid) = (tx.view().txid(), tx.view().wtxid());
        self.pending_ids.remove(&(txid.0, wtxid));
        self.pending_ids.remove(&(wtxid.0, wtxid));
        self.pending.remove(&wtxid).map_or_else(BTreeSet::new, |pending| pending.senders)
    }
}

/// Returns the txids of the parents, each once, in ascending order.
fn unique_parents(tx: &Transaction) -> Vec<Txid> {
    let mut parents: Vec<_> = tx.view().inputs().map(|input| input.prevout.txid).collect();
    parents.sort_unstable();
    parents.dedup();
    parents
}
