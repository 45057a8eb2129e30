//! The memory that all peers together may take: one budget, shared by the connections and the manager. Input: bytes
//! held for a peer, as they come and go. Output: whether more may be read from a peer, or sent to it.
//!
//! The budget has four parts. Every connection has a **share** of its own. A peer that was asked for a block has
//! **room** for one message of the largest size beside it. What a peer holds beyond both is taken from the **common**
//! part, which is open to all while it lasts: messages that are received may fill [`RECEIVE_COMMON_BYTES`] of it, the
//! rest is left for blocks that are sent. The **fixed** part is what a connection costs without a message, and blocks
//! that are being read from the disk. A peer that has its share is read from again only when the common part has room;
//! so one peer, or a hundred, can make others slow but cannot make them stop.
//!
//! Invariants: the sum is at most [`MemoryPlan::total`], as long as callers ask before they take; a room stays taken
//! until what was put into it is gone; an account stays until the last byte that it was charged with is freed, though
//! the connection is closed. Cost: one short lock a message. No clock, no waiting: a caller that is refused asks again.

use crate::limits::{
    ANSWER_BYTES, BLOCK_READS_MAX, BLOCK_ROOM_BYTES, BLOCK_ROOMS_MAX, COMMON_BYTES, PEER_FIXED_BYTES,
    PEER_MEMORY_BYTES, PEER_SHARE_MAX, PEER_SHARE_MIN, RECEIVE_COMMON_BYTES,
};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Bytes that one block takes while it is read from the disk: as stored, and as it is to be sent.
const BLOCK_READ_BYTES: usize = 2 * BLOCK_ROOM_BYTES;

/// After a peak of so many bytes, and once a quarter of it is left, freed memory should go back to the system.
const PEAK_BYTES_MIN: usize = 16_000_000;

/// How the memory is divided. All figures are bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryPlan {
    /// All parts together.
    pub total: usize,
    /// Connections that may be open.
    pub connections_max: usize,
    /// The share of each connection.
    pub share: usize,
    /// Peers that may be asked for blocks at a time, with [`BLOCK_ROOM_BYTES`] each.
    pub rooms: usize,
    /// What is open to all.
    pub common: usize,
    /// How much of it messages that are received may fill.
    pub receive_common: usize,
}

impl MemoryPlan {
    /// The plan for so many connections: [`PEER_MEMORY_BYTES`], or more if the connections are so many that their
    /// shares would be too small.
    pub fn new(connections_max: usize) -> MemoryPlan {
        let connections = connections_max.max(1);
        let fixed = BLOCK_ROOMS_MAX * BLOCK_ROOM_BYTES + BLOCK_READS_MAX * BLOCK_READ_BYTES + COMMON_BYTES;
        let least = fixed.saturating_add(connections.saturating_mul(PEER_SHARE_MIN + PEER_FIXED_BYTES));
        let total = PEER_MEMORY_BYTES.max(least);
        let share = ((total - fixed) / connections).saturating_sub(PEER_FIXED_BYTES).min(PEER_SHARE_MAX);
        MemoryPlan {
            total,
            connections_max: connections,
            share,
            rooms: BLOCK_ROOMS_MAX,
            common: COMMON_BYTES,
            receive_common: RECEIVE_COMMON_BYTES,
        }
    }
}

/// The accounts of all connections.
#[derive(Debug)]
pub struct MemoryBudget {
    plan: MemoryPlan,
    ledger: Mutex<Ledger>,
}

#[derive(Debug, Default)]
struct Ledger {
    accounts: BTreeMap<u64, Account>,
    next_id: u64,
    /// Bytes charged to all accounts.
    used: usize,
    /// Of them, bytes beyond shares and rooms.
    common_used: usize,
    rooms_taken: usize,
    /// Connections that wait to send a block.
    waiting: usize,
    /// The most that was used, and the most since memory was given back to the system.
    peak: usize,
    recent_peak: usize,
}

#[derive(Clone, Copy, Debug, Default)]
struct Account {
    used: usize,
    is_asked: bool,
    has_room: bool,
}

impl Account {
    fn guaranteed(&self, share: usize) -> usize {
        share + if self.has_room { BLOCK_ROOM_BYTES } else { 0 }
    }

    fn beyond(&self, share: usize) -> usize {
        self.used.saturating_sub(self.guaranteed(share))
    }
}

/// What the budget is used for, at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryUse {
    pub used: usize,
    pub common_used: usize,
    pub rooms_taken: usize,
    pub accounts: usize,
    pub peak: usize,
}

impl MemoryBudget {
    pub fn new(plan: MemoryPlan) -> Arc<MemoryBudget> {
        Arc::new(MemoryBudget { plan, ledger: Mutex::default() })
    }

    pub fn plan(&self) -> &MemoryPlan {
        &self.plan
    }

    pub fn usage(&self) -> MemoryUse {
        let ledger = self.lock();
        MemoryUse {
            used: ledger.used,
            common_used: ledger.common_used,
            rooms_taken: ledger.rooms_taken,
            accounts: ledger.accounts.len(),
            peak: ledger.peak,
        }
    }

    /// Peers that may be asked for blocks beside those that were asked.
    pub fn rooms_left(&self) -> usize {
        self.plan.rooms.saturating_sub(self.lock().rooms_taken)
    }

    /// Whether connections wait for others to take the blocks that they asked for.
    pub fn has_waiting(&self) -> bool {
        self.lock().waiting > 0
    }

    /// Whether much was freed since this was true for the last time: the caller gives it back to the system.
    pub fn should_trim(&self) -> bool {
        let mut ledger = self.lock();
        let should = ledger.recent_peak >= PEAK_BYTES_MIN && ledger.used <= ledger.recent_peak / 4;
        if should {
            ledger.recent_peak = ledger.used;
        }
        should
    }

    fn lock(&self) -> MutexGuard<'_, Ledger> {
        self.ledger.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes an account, and the sums with it.
    fn change<R>(&self, id: u64, change: impl FnOnce(&mut Account) -> R) -> Option<R> {
        let mut ledger = self.lock();
        let ledger = &mut *ledger;
        let account = ledger.accounts.get_mut(&id)?;
        let before = *account;
        let result = change(account);
        if !account.is_asked && account.used <= self.plan.share {
            account.has_room = false;
        }
        let share = self.plan.share;
        ledger.used = ledger.used - before.used + account.used;
        ledger.common_used = ledger.common_used - before.beyond(share) + account.beyond(share);
        ledger.rooms_taken = ledger.rooms_taken - usize::from(before.has_room) + usize::from(account.has_room);
        ledger.peak = ledger.peak.max(ledger.used);
        ledger.recent_peak = ledger.recent_peak.max(ledger.used);
        Some(result)
    }
}

/// The account of one connection; a clone is the same account.
#[derive(Clone, Debug)]
pub struct PeerMemory(Arc<Handle>);

#[derive(Debug)]
struct Handle {
    budget: Arc<MemoryBudget>,
    id: u64,
}

impl Drop for Handle {
    fn drop(&mut self) {
        // Charges hold the account, so nothing is charged any more.
        let mut ledger = self.budget.lock();
        if let Some(account) = ledger.accounts.remove(&self.id) {
            ledger.rooms_taken -= usize::from(account.has_room);
        }
    }
}

impl Default for PeerMemory {
    /// An account beside all budgets: for tests.
    fn default() -> PeerMemory {
        let budget = MemoryBudget::new(MemoryPlan::new(1));
        let id = 0;
        budget.lock().accounts.insert(id, Account::default());
        PeerMemory(Arc::new(Handle { budget, id }))
    }
}

impl PeerMemory {
    /// An account for a connection; none if as many as the plan allows are open.
    pub fn open(budget: &Arc<MemoryBudget>) -> Option<PeerMemory> {
        let mut ledger = budget.lock();
        if ledger.accounts.len() >= budget.plan.connections_max {
            return None;
        }
        let id = ledger.next_id;
        ledger.next_id += 1;
        ledger.accounts.insert(id, Account::default());
        Some(PeerMemory(Arc::new(Handle { budget: Arc::clone(budget), id })))
    }

    pub fn budget(&self) -> &Arc<MemoryBudget> {
        &self.0.budget
    }

    /// Bytes that are held for this connection.
    pub fn used(&self) -> usize {
        self.0.budget.lock().accounts.get(&self.0.id).map_or(0, |account| account.used)
    }

    /// Counts bytes that are held for this connection, until the charge is dropped. Never refused: the caller has asked
    /// before.
    pub fn charge(&self, bytes: usize) -> Charge {
        let mut charge = Charge { memory: self.clone(), bytes: 0 };
        charge.set(bytes);
        charge
    }

    /// Whether more may be received: the peer is below what is its own, or the common part has room.
    pub fn may_receive(&self) -> bool {
        let budget = &self.0.budget;
        let ledger = budget.lock();
        let Some(account) = ledger.accounts.get(&self.0.id) else { return false };
        account.used < account.guaranteed(budget.plan.share) || ledger.common_used < budget.plan.receive_common
    }

    /// Whether a message that was received may be dealt with, though its answer takes memory: few bytes wait to be sent
    /// to the peer, or the common part has room.
    pub fn may_answer(&self, waiting_bytes: usize) -> bool {
        let budget = &self.0.budget;
        waiting_bytes < ANSWER_BYTES || budget.lock().common_used < budget.plan.receive_common
    }

    /// Counts bytes of a block that is to be sent, if there is room for all of them.
    pub fn charge_block(&self, bytes: usize) -> Option<Charge> {
        let budget = &self.0.budget;
        {
            let ledger = budget.lock();
            let account = ledger.accounts.get(&self.0.id)?;
            let more = Account { used: account.used.saturating_add(bytes), ..*account };
            let beyond = more.beyond(budget.plan.share) - account.beyond(budget.plan.share);
            if beyond > 0 && ledger.common_used.saturating_add(beyond) > budget.plan.common {
                return None;
            }
        }
        // Others may have taken the room meanwhile, by at most one block for each thread that drives sockets.
        Some(self.charge(bytes))
    }

    /// Whether the peer may be asked for a block: it was asked and has room, or there is room for one more peer.
    pub fn has_block_room(&self) -> bool {
        let budget = &self.0.budget;
        let ledger = budget.lock();
        let has_room = ledger.accounts.get(&self.0.id).is_some_and(|account| account.has_room);
        has_room || ledger.rooms_taken < budget.plan.rooms
    }

    /// Whether the peer was asked for a block and has to answer. Its room is taken at once, and given back when what it
    /// holds fits into its share.
    pub fn set_asked(&self, is_asked: bool) {
        self.0.budget.change(self.0.id, |account| {
            account.is_asked = is_asked;
            account.has_room |= is_asked;
        });
    }

    /// The connection waits to send a block, until the value is dropped.
    pub fn wait_to_send(&self) -> Waiting {
        self.0.budget.lock().waiting += 1;
        Waiting(Arc::clone(&self.0.budget))
    }
}

/// Bytes that an account is charged with.
#[derive(Debug)]
pub struct Charge {
    memory: PeerMemory,
    bytes: usize,
}

impl Charge {
    /// So many bytes it is from now on.
    pub fn set(&mut self, bytes: usize) {
        if bytes != self.bytes {
            let before = std::mem::replace(&mut self.bytes, bytes);
            let Handle { budget, id } = &*self.memory.0;
            budget.change(*id, |account| account.used = account.used - before + bytes);
        }
    }

    pub fn bytes(&self) -> usize {
        self.bytes
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.set(0);
    }
}

/// A connection that waits to send a block.
#[derive(Debug)]
pub struct Waiting(Arc<MemoryBudget>);

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.lock().waiting -= 1;
    }
}

#[cfg(test)]
mod tests;
