//! Transactions that peers sent: their way to the mempool, and what follows from its verdict.
//!
//! Core's processing of `tx`, `ProcessOrphanTx`, `ProcessValidTx`, `ProcessInvalidTx` and `ProcessPackageResult`. Each
//! peer's transactions wait in a queue of their own and are submitted a few at a time, an orphan of the peer that can
//! be validated again first.

use super::Transactions;
use crate::limits::{PEER_SUBMISSIONS_MAX, PEER_SUBMITTED_BYTES_MAX};
use crate::manager::context::Context;
use crate::manager::pool::View;
use crate::manager::{Action, PeerId};
use crate::memory::Charge;
use crate::peer::Permissions;
use crate::submission::{Decided, Submission, Submitted};
use crate::txs::RejectClass;
use crate::txs::download::{DownloadContext, Package, Received};
use lydian_mempool::SubmitError;
use lydian_mempool::policy::{Rejection, ValidationResult};
use lydian_mempool::pool::{Accepted, Entry, PackageResult, TxResult};
use lydian_primitives::Transaction;
use std::collections::BTreeSet;
use std::sync::Arc;

/// The log categories of Core.
const MEMPOOL: &str = "mempool";
const MEMPOOL_REJECTIONS: &str = "mempoolrej";
const PACKAGES: &str = "txpackages";

/// The txid and the wtxid, as log lines name a transaction.
fn name(tx: &Transaction) -> String {
    format!("{} (wtxid={})", tx.view().txid(), tx.view().wtxid())
}

/// Submission.
impl Transactions {
    /// A peer sent a transaction.
    pub(in crate::manager) fn take(&mut self, context: &mut Context, id: PeerId, bytes: Vec<u8>) {
        if context.is_initial_download() {
            return;
        }
        let tx = match Transaction::parse(bytes) {
            Ok(tx) => Arc::new(tx),
            Err(error) => return context.log_debug(format!("ProcessMessages(tx): {error} peer={id}")),
        };
        context.with(id, |peer| {
            // Its bytes, and about as many for its tables.
            let charge = peer.memory.charge_received(2 * tx.as_bytes().len());
            peer.txs.waiting.push_back((tx, charge));
        });
        self.submit_waiting(context, id);
    }

    /// Submits transactions of a peer, as many as it may have submitted at a time.
    pub(in crate::manager) fn submit_waiting(&mut self, context: &mut Context, id: PeerId) {
        while self.refused.is_empty() {
            let Some(peer) = context.peers.get_mut(&id).filter(|peer| peer.is_ready()) else { return };
            if !peer.txs.has_orphan
                && let Some(tx) = self.download.next_orphan(id)
            {
                peer.txs.has_orphan = true;
                self.submit(context, Submitted::Transaction { tx, from: id, is_orphan: true });
                continue;
            }
            if peer.txs.submitted >= PEER_SUBMISSIONS_MAX || peer.txs.submitted_bytes >= PEER_SUBMITTED_BYTES_MAX {
                return;
            }
            let Some((tx, charge)) = peer.txs.waiting.pop_front() else { return };
            self.process(context, id, tx, charge);
        }
    }

    /// Core's processing of `tx`.
    fn process(&mut self, context: &mut Context, id: PeerId, tx: Arc<Transaction>, charge: Charge) {
        let Some(peer) = context.peers.get(&id) else { return };
        let (txid, wtxid) = (tx.view().txid(), tx.view().wtxid());
        let known = if peer.talk.wtxid_relay { wtxid.0 } else { txid.0 };
        let forces = peer.may(Permissions::FORCE_RELAY);
        self.announcer.note_known(id, &known, &mut context.random);
        let (view, now) = (View::of(&self.mempool), context.now.mockable);
        let random = &mut context.random;
        let received = self.download.received(id, &tx, &DownloadContext { pool: &view, now, random });
        if !matches!(received, Received::Validate) && forces {
            if view.snapshot().get(&txid).is_none() {
                let tx = name(&tx);
                context.log_info(format!("Not relaying non-mempool transaction {tx} from forcerelay peer={id}"));
            } else {
                context.log_info(format!("Force relaying tx {} from peer={id}", name(&tx)));
                self.announce(&txid, &wtxid);
            }
        }
        // The charge of the transaction ends; that of what is submitted begins.
        drop(charge);
        match received {
            Received::Validate => self.submit(context, Submitted::Transaction { tx, from: id, is_orphan: false }),
            Received::ValidatePackage(package) => self.submit(context, Submitted::Package(package)),
            Received::Ignore => {}
        }
    }

    fn submit(&mut self, context: &mut Context, submitted: Submitted) {
        let bytes = submitted.bytes();
        let charge = context.peers.get_mut(&submitted.from()).map(|peer| {
            peer.txs.submitted += 1;
            peer.txs.submitted_bytes += bytes;
            peer.memory.charge_received(2 * bytes)
        });
        let number = self.next_submission;
        self.next_submission += 1;
        context.actions.push(Action::Submit(Submission { number, submitted, charge }));
    }

    /// There was no room in the mempool's queue. The submission keeps its place among the others.
    pub(in crate::manager) fn note_refused(&mut self, submission: Submission) {
        self.refused.insert(submission.number, submission);
    }

    /// Submits again what found no room.
    pub(in crate::manager) fn submit_refused(&mut self, context: &mut Context, count_max: usize) {
        let first = std::iter::from_fn(|| self.refused.pop_first()).take(count_max);
        context.actions.extend(first.map(|(_, submission)| Action::Submit(submission)));
    }
}

/// Verdicts.
impl Transactions {
    /// The mempool has decided.
    pub(in crate::manager) fn decided(&mut self, context: &mut Context, decided: Decided) {
        let (from, bytes, is_orphan) = match &decided {
            Decided::Transaction { tx, from, is_orphan, .. } => (*from, tx.as_bytes().len(), *is_orphan),
            Decided::Package { package, .. } => {
                let submitted = Submitted::Package(package.clone());
                (submitted.from(), submitted.bytes(), false)
            }
        };
        context.with(from, |peer| {
            // A peer that was disconnected meanwhile begins again at zero.
            peer.txs.submitted = peer.txs.submitted.saturating_sub(1);
            peer.txs.submitted_bytes = peer.txs.submitted_bytes.saturating_sub(bytes);
            peer.txs.has_orphan &= !is_orphan;
        });
        match decided {
            Decided::Transaction { tx, from, is_orphan: false, verdict } => {
                self.decided_first(context, from, &tx, verdict);
            }
            Decided::Transaction { tx, from, is_orphan: true, verdict } => {
                self.decided_orphan(context, from, &tx, verdict);
            }
            Decided::Package { package, verdict } => self.decided_package(context, &package, verdict),
        }
        self.submit_refused(context, 1);
        self.submit_waiting(context, from);
    }

    fn decided_first(
        &mut self,
        context: &mut Context,
        from: PeerId,
        tx: &Arc<Transaction>,
        verdict: Result<Accepted, SubmitError>,
    ) {
        match verdict {
            Ok(accepted) => {
                self.accepted(context, from, tx, &accepted.replaced);
                let unix = context.now.unix;
                context.with(from, |peer| peer.txs.last_time = unix);
            }
            Err(SubmitError::Rejected(rejection)) => {
                let class = class(rejection.result);
                if let Some(package) = self.rejected(context, from, tx, &rejection.state(), class, true) {
                    self.submit(context, Submitted::Package(package));
                }
            }
            Err(SubmitError::Engine(_) | SubmitError::Ended) => self.download.dropped(tx),
        }
    }

    fn decided_orphan(
        &mut self,
        context: &mut Context,
        from: PeerId,
        tx: &Arc<Transaction>,
        verdict: Result<Accepted, SubmitError>,
    ) {
        match verdict {
            Ok(accepted) => {
                context.debug_of(PACKAGES, |_| format!("   accepted orphan tx {}", name(tx)));
                self.accepted(context, from, tx, &accepted.replaced);
            }
            Err(SubmitError::Rejected(Rejection { result: ValidationResult::MissingInputs, .. })) => {
                // Another parent is still missing.
                self.download.dropped(tx);
            }
            Err(SubmitError::Rejected(rejection)) => {
                let state = rejection.state();
                context.debug_of(PACKAGES, |_| format!("   invalid orphan tx {} from peer={from}. {state}", name(tx)));
                self.rejected(context, from, tx, &state, class(rejection.result), false);
            }
            Err(SubmitError::Engine(_) | SubmitError::Ended) => self.download.dropped(tx),
        }
    }

    /// Core's `ProcessPackageResult`.
    fn decided_package(
        &mut self,
        context: &mut Context,
        package: &Package,
        verdict: Result<PackageResult, SubmitError>,
    ) {
        let Package { parent, child, parent_sender, child_sender } = package;
        let Ok(result) = verdict else {
            self.download.dropped(parent);
            return self.download.dropped(child);
        };
        let is_accepted = result.rejection.is_none();
        context.debug_of(PACKAGES, |_| {
            let one = |tx: &Transaction, sender: &PeerId| {
                format!("{} (wtxid={}, sender={sender})", tx.view().txid(), tx.view().wtxid())
            };
            let names = format!("parent {} + child {}", one(parent, parent_sender), one(child, child_sender));
            format!("package evaluation for {names}: package {}", if is_accepted { "accepted" } else { "rejected" })
        });
        self.download.package_decided(package, is_accepted, &mut context.random);
        // The child first, so that it leaves the orphanage before its parent makes it worth another try.
        for (tx, sender) in [(child, *child_sender), (parent, *parent_sender)] {
            match result.results.get(&tx.view().wtxid()) {
                Some(TxResult::Accepted(accepted)) => self.accepted(context, sender, tx, &accepted.replaced),
                Some(TxResult::Rejected(rejection)) => {
                    self.rejected(context, sender, tx, &rejection.state(), class(rejection.result), false);
                }
                Some(TxResult::OtherWitness(_)) => {
                    self.rejected(context, sender, tx, "Valid", RejectClass::Other, false);
                }
                Some(TxResult::InPool { .. }) => self.settle_accepted(context, tx),
                None => {}
            }
        }
    }

    /// Core's `ProcessValidTx`.
    fn accepted(&mut self, context: &mut Context, from: PeerId, tx: &Arc<Transaction>, replaced: &[Arc<Entry>]) {
        context.debug_of(MEMPOOL, |context| {
            let (count, usage) = context.pool.size();
            let tx = name(tx);
            format!("AcceptToMemoryPool: peer={from}: accepted {tx} (poolsz {count} txn, {} kB)", usage / 1000)
        });
        context.with(from, |peer| peer.memory.allow_message(tx.as_bytes().len()));
        self.announce(&tx.view().txid(), &tx.view().wtxid());
        replaced.iter().for_each(|entry| context.pool.extra.add(entry.tx()));
        self.settle_accepted(context, tx);
    }

    /// A transaction is in the mempool: the orphans that spend it are tried again.
    fn settle_accepted(&mut self, context: &mut Context, tx: &Transaction) {
        let work = self.download.accepted(tx, &mut context.random);
        for (wtxid, peer) in &work {
            context.debug_of(PACKAGES, |_| format!("added {wtxid} to peer {peer} workset"));
        }
        let peers: BTreeSet<_> = work.into_iter().map(|(_, peer)| peer).collect();
        peers.into_iter().for_each(|peer| self.submit_waiting(context, peer));
    }

    /// Core's `ProcessInvalidTx`. Returns a package to submit.
    fn rejected(
        &mut self,
        context: &mut Context,
        from: PeerId,
        tx: &Arc<Transaction>,
        state: &str,
        class: RejectClass,
        is_first: bool,
    ) -> Option<Package> {
        let view = View::of(&self.mempool);
        if view.snapshot().get_by_wtxid(&tx.view().wtxid()).is_some() {
            // It was submitted in another way meanwhile.
            self.settle_accepted(context, tx);
            return None;
        }
        context.debug_of(MEMPOOL_REJECTIONS, |_| format!("{} from peer={from} was not accepted: {state}", name(tx)));
        let (now, random) = (context.now.mockable, &mut context.random);
        let mut surroundings = DownloadContext { pool: &view, now, random };
        let rejected = self.download.rejected(tx, class, from, is_first, &mut surroundings);
        if rejected.is_extra_for_compact_blocks {
            context.pool.extra.add_rejected(tx);
        }
        for parent in &rejected.parents {
            self.announcer.note_known(from, &parent.0, &mut context.random);
        }
        rejected.package
    }
}

fn class(result: ValidationResult) -> RejectClass {
    match result {
        ValidationResult::MissingInputs => RejectClass::MissingInputs,
        ValidationResult::WitnessStripped => RejectClass::WitnessStripped,
        ValidationResult::Reconsiderable => RejectClass::Reconsiderable,
        ValidationResult::InputsNotStandard => RejectClass::InputsNotStandard,
        _ => RejectClass::Other,
    }
}
