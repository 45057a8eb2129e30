//! [`Submission`]: transactions of a peer on their way to the mempool. [`Decided`]: its verdict.
//!
//! Input: what the manager wants to have decided. Output: an answer with the verdict. Invariant: each submission that
//! was queued is answered once; one that finds no room is returned. [`Submission::offer`] never waits. Memory: what is
//! submitted is charged to the peer until the manager has processed the verdict. Cost: that of the mempool's queue.

use crate::memory::Charge;
use crate::peer::PeerId;
use crate::txs::download::Package;
use lydian_mempool::pool::{Accepted, PackageResult};
use lydian_mempool::{Mempool, SubmitError};
use lydian_primitives::Transaction;
use lydian_stdx::lock;
use std::sync::{Arc, Mutex};

/// What is submitted.
#[derive(Clone, Debug)]
pub enum Submitted {
    /// `is_orphan`: it was submitted before, without success, and a parent has been accepted since.
    Transaction {
        tx: Arc<Transaction>,
        from: PeerId,
        is_orphan: bool,
    },
    Package(Package),
}

impl Submitted {
    /// The bytes of the transactions.
    pub fn bytes(&self) -> usize {
        match self {
            Submitted::Transaction { tx, .. } => tx.as_bytes().len(),
            Submitted::Package(Package { parent, child, .. }) => parent.as_bytes().len() + child.as_bytes().len(),
        }
    }

    /// The peer for which it is submitted.
    pub fn from(&self) -> PeerId {
        match self {
            Submitted::Transaction { from, .. } => *from,
            Submitted::Package(package) => package.parent_sender,
        }
    }
}

/// Transactions for the mempool.
#[derive(Debug)]
pub struct Submission {
    /// Submissions are queued in the order of their numbers.
    pub(crate) number: u64,
    pub submitted: Submitted,
    /// They are charged to the peer as long as this exists.
    pub charge: Option<Charge>,
}

/// The verdict on a submission.
#[derive(Debug)]
pub enum Decided {
    Transaction { tx: Arc<Transaction>, from: PeerId, is_orphan: bool, verdict: Result<Accepted, SubmitError> },
    Package { package: Package, verdict: Result<PackageResult, SubmitError> },
}

/// The verdict, with what keeps the submission charged to its peer.
#[derive(Debug)]
pub struct Answer {
    pub decided: Decided,
    pub charge: Option<Charge>,
}

impl Submission {
    /// Queues the transactions. The mempool's thread calls `done` with the answer. Returns them if there is no room.
    pub fn offer(self, mempool: &Mempool, done: impl FnOnce(Answer) + Send + 'static) -> Result<(), Submission> {
        let Submission { number, submitted, charge } = self;
        // If there is no room, the closure is dropped; what it shares is returned.
        let kept = Arc::new(Mutex::new(charge));
        let shared = Arc::clone(&kept);
        let answer = move |decided| done(Answer { decided, charge: lock(&shared).take() });
        let is_queued = match submitted.clone() {
            Submitted::Transaction { tx, from, is_orphan } => mempool.offer(
                Arc::clone(&tx),
                Box::new(move |verdict| answer(Decided::Transaction { tx, from, is_orphan, verdict })),
            ),
            Submitted::Package(package) => mempool.offer_package(
                package.transactions(),
                Box::new(move |verdict| answer(Decided::Package { package, verdict })),
            ),
        };
        let charge = if is_queued { None } else { lock(&kept).take() };
        if is_queued { Ok(()) } else { Err(Submission { number, submitted, charge }) }
    }

    /// Waits for the verdict. For simulators, in which nothing else happens meanwhile.
    pub fn decide(self, mempool: &Mempool) -> Answer {
        let Submission { submitted, charge, .. } = self;
        let decided = match submitted {
            Submitted::Transaction { tx, from, is_orphan } => {
                let verdict = mempool.submit(Arc::clone(&tx), false);
                Decided::Transaction { tx, from, is_orphan, verdict }
            }
            Submitted::Package(package) => {
                let verdict = mempool.submit_package(package.transactions(), None);
                Decided::Package { package, verdict }
            }
        };
        Answer { decided, charge }
    }
}
