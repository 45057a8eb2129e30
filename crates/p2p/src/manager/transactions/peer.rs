//! The part of a peer's state that belongs to its transactions: what it sent and what it requested.
//!
//! Data. Only the modules of `transactions` change it.

use crate::memory::{Charge, PeerMemory};
use crate::time::UnixTime;
use lydian_primitives::Transaction;
use lydian_wire::Inv;
use std::collections::VecDeque;
use std::sync::Arc;

/// The transactions of one peer.
#[derive(Debug)]
pub(in crate::manager) struct PeerTransactions {
    /// Those that it sent and that are not submitted yet, each charged to it.
    pub(super) waiting: VecDeque<(Arc<Transaction>, Charge)>,
    /// The number and the bytes of those whose verdict is outstanding.
    pub(super) submitted: usize,
    pub(super) submitted_bytes: usize,
    /// Whether one of these is an orphan.
    pub(super) has_orphan: bool,
    /// When it last sent a transaction that was accepted.
    pub(super) last_time: UnixTime,
    /// What it requested and was not sent yet.
    pub(super) requested: VecDeque<Inv>,
    /// Requested transactions that are not here, to be reported.
    pub(super) missing: Vec<Inv>,
    /// `requested` and `missing` are charged to it.
    pub(super) charge: Charge,
}

impl PeerTransactions {
    pub(in crate::manager) fn new(memory: &PeerMemory) -> PeerTransactions {
        PeerTransactions {
            waiting: VecDeque::new(),
            submitted: 0,
            submitted_bytes: 0,
            has_orphan: false,
            last_time: UnixTime::NEVER,
            requested: VecDeque::new(),
            missing: Vec::new(),
            charge: memory.charge_received(0),
        }
    }

    /// When it last sent a transaction that was accepted: Core's `m_last_tx_time`.
    pub(in crate::manager) fn last_time(&self) -> UnixTime {
        self.last_time
    }

    /// Returns the number of transactions that wait to be submitted.
    pub(in crate::manager) fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Returns the number of requested items that were not sent yet.
    pub(in crate::manager) fn requested(&self) -> usize {
        self.requested.len()
    }

    /// Charges what it requested.
    pub(super) fn count_requested(&mut self) {
        self.charge.set((self.requested.capacity() + self.missing.capacity()) * size_of::<Inv>());
    }
}
