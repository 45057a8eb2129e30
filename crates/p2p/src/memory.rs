//! The memory limit of all peers together: one budget, shared by the connections and the manager.
//!
//! Input: bytes held for each peer. Output: whether more may be read from a peer or sent to it.
//!
//! The budget has four parts. Every connection has its own **share**. A peer that was asked for a block also has
//! **room** for one message of the maximum size. Bytes beyond both are taken from the **common** part, which is open to
//! all connections: received messages may use [`RECEIVE_COMMON_BYTES`] of it, the rest is reserved for blocks to be
//! sent. The **fixed** part covers the cost of a connection without messages, a few answers that wait to be sent, and
//! blocks that are being read from disk.
//! What a peer sends is processed only when its own part or the common part has room for it. So one peer, or a hundred,
//! can slow down others but cannot stop them.
//!
//! Invariants: the sum is at most [`MemoryPlan::total`] if callers ask before they allocate; a room stays taken until
//! its bytes are freed; an account exists until the last byte charged to it is freed, even if the connection is closed.
//! Cost: one short lock per message. It has no clock and never waits: a refused caller asks again.

use crate::limits::{
    ANSWER_BYTES, ANSWER_BYTES_MAX, BLOCK_READS_MAX, BLOCK_ROOM_BYTES, BLOCK_ROOMS_MAX, COMMON_BYTES, PEER_FIXED_BYTES,
    PEER_MEMORY_BYTES, PEER_SHARE_MAX, PEER_SHARE_MIN, RECEIVE_COMMON_BYTES,
};
use crate::pace::message_units;
use lydian_stdx::lock;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

/// Bytes that one block takes while it is read from disk: the stored block and the message to send.
const BLOCK_READ_BYTES: usize = 2 * BLOCK_ROOM_BYTES;

/// The answers to one peer that [`PEER_FIXED_BYTES`] covers.
const ANSWERS_BYTES: usize = ANSWER_BYTES + ANSWER_BYTES_MAX;

/// After a peak of at least this many charged bytes, or of this many connections, freed memory should be returned to
/// the system once their number drops to a quarter of the peak.
const PEAK_BYTES_MIN: usize = 4_000_000;
const PEAK_CONNECTIONS_MIN: usize = 32;

/// The division of the memory. All values are in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryPlan {
    /// The sum of all parts.
    pub total: usize,
    /// The maximum number of open connections.
    pub connections_max: usize,
    /// The share of each connection.
    pub share: usize,
    /// The maximum number of peers with outstanding block requests, with [`BLOCK_ROOM_BYTES`] each.
    pub rooms: usize,
    /// The part that is open to all connections.
    pub common: usize,
    /// The part of `common` that received messages may use.
    pub receive_common: usize,
}

impl MemoryPlan {
    /// Returns the plan for this number of connections. The total is [`PEER_MEMORY_BYTES`], or more if their shares
    /// would be too small otherwise.
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
    /// The part of `used` that is beyond shares and rooms.
    common_used: usize,
    rooms_taken: usize,
    /// Connections that wait to send a block.
    waiting: usize,
    /// The maximum of `used`, and its maximum since memory was last returned to the system.
    peak: usize,
    recent_peak: usize,
    /// The same of the connections.
    recent_connections: usize,
}

#[derive(Clone, Copy, Debug, Default)]
struct Account {
    received: usize,
    to_send: usize,
    is_asked: bool,
    has_room: bool,
}

impl Account {
    fn used(&self) -> usize {
        self.received.saturating_add(self.to_send)
    }

    /// What counts against the share: everything but a few answers, which the fixed part covers.
    fn counted(&self) -> usize {
        self.used() - self.to_send.min(ANSWERS_BYTES)
    }

    /// The bytes that are taken from the common part.
    fn beyond(&self, share: usize) -> usize {
        self.counted().saturating_sub(share + if self.has_room { BLOCK_ROOM_BYTES } else { 0 })
    }

    fn add(self, use_for: UseFor, bytes: usize) -> Account {
        match use_for {
            UseFor::Received => Account { received: self.received.saturating_add(bytes), ..self },
            UseFor::ToSend => Account { to_send: self.to_send.saturating_add(bytes), ..self },
        }
    }
}

/// What charged bytes are.
#[derive(Clone, Copy, Debug)]
enum UseFor {
    Received,
    ToSend,
}

/// A snapshot of how the budget is used.
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

    /// Returns how many more peers may be asked for blocks.
    pub fn rooms_left(&self) -> usize {
        self.plan.rooms.saturating_sub(self.lock().rooms_taken)
    }

    /// Returns whether connections wait until other peers have received their blocks.
    pub fn has_waiting(&self) -> bool {
        self.lock().waiting > 0
    }

    /// Returns whether much memory was freed since this last returned true; the caller then returns it to the system.
    pub fn should_trim(&self) -> bool {
        let mut ledger = self.lock();
        let (used, connections) = (ledger.used, ledger.accounts.len());
        let is_after = |peak: usize, least: usize, now: usize| peak >= least && now <= peak / 4;
        let should = is_after(ledger.recent_peak, PEAK_BYTES_MIN, used)
            || is_after(ledger.recent_connections, PEAK_CONNECTIONS_MIN, connections);
        if should {
            ledger.recent_peak = used;
            ledger.recent_connections = connections;
        }
        should
    }

    fn lock(&self) -> MutexGuard<'_, Ledger> {
        lock(&self.ledger)
    }

    /// Changes an account and updates the sums.
    fn change(&self, id: u64, change: impl FnOnce(Account) -> Account) {
        let mut ledger = self.lock();
        if let Some(account) = ledger.accounts.get(&id).copied() {
            self.update(&mut ledger, id, change(account));
        }
    }

    /// Adds to an account if its own part, or the common part up to `common_max`, has room for all bytes. Returns
    /// whether it did.
    fn try_add(&self, id: u64, use_for: UseFor, bytes: usize, common_max: usize) -> bool {
        let (mut ledger, share) = (self.lock(), self.plan.share);
        let Some(before) = ledger.accounts.get(&id).copied() else { return false };
        let after = before.add(use_for, bytes);
        let beyond = after.beyond(share) - before.beyond(share);
        let fits = beyond == 0 || ledger.common_used.saturating_add(beyond) <= common_max;
        if fits {
            self.update(&mut ledger, id, after);
        }
        fits
    }

    fn update(&self, ledger: &mut Ledger, id: u64, mut account: Account) {
        let share = self.plan.share;
        if !account.is_asked && account.counted() <= share {
            account.has_room = false;
        }
        let Some(before) = ledger.accounts.insert(id, account) else { return };
        ledger.used = ledger.used - before.used() + account.used();
        ledger.common_used = ledger.common_used - before.beyond(share) + account.beyond(share);
        ledger.rooms_taken = ledger.rooms_taken - usize::from(before.has_room) + usize::from(account.has_room);
        ledger.peak = ledger.peak.max(ledger.used);
        ledger.recent_peak = ledger.recent_peak.max(ledger.used);
    }
}

/// The account of one connection; a clone refers to the same account.
#[derive(Clone, Debug)]
pub struct PeerMemory(Arc<Handle>);

#[derive(Debug)]
struct Handle {
    budget: Arc<MemoryBudget>,
    id: u64,
    /// Messages that the peer is allowed beside its pace, and has not used.
    allowed: AtomicU64,
}

impl Drop for Handle {
    fn drop(&mut self) {
        // Charges keep the account alive, so nothing is charged any more.
        let mut ledger = self.budget.lock();
        if let Some(account) = ledger.accounts.remove(&self.id) {
            ledger.rooms_taken -= usize::from(account.has_room);
        }
    }
}

impl Default for PeerMemory {
    /// An account that belongs to no shared budget, for tests.
    fn default() -> PeerMemory {
        let budget = MemoryBudget::new(MemoryPlan::new(1));
        let id = 0;
        budget.lock().accounts.insert(id, Account::default());
        PeerMemory(Arc::new(Handle { budget, id, allowed: AtomicU64::new(0) }))
    }
}

impl PeerMemory {
    /// Opens an account for a connection. Returns `None` if the maximum number of connections is open.
    pub fn open(budget: &Arc<MemoryBudget>) -> Option<PeerMemory> {
        let mut ledger = budget.lock();
        if ledger.accounts.len() >= budget.plan.connections_max {
            return None;
        }
        let id = ledger.next_id;
        ledger.next_id += 1;
        ledger.accounts.insert(id, Account::default());
        ledger.recent_connections = ledger.recent_connections.max(ledger.accounts.len());
        Some(PeerMemory(Arc::new(Handle { budget: Arc::clone(budget), id, allowed: AtomicU64::new(0) })))
    }

    /// The peer sent a useful message of this many bytes: it does not count against the pace of its messages.
    pub fn allow_message(&self, bytes: usize) {
        self.0.allowed.fetch_add(message_units(1, bytes as u64), Ordering::Relaxed);
    }

    /// Takes what [`PeerMemory::allow_message`] has allowed since the last call, in units of the pace.
    pub fn take_allowed(&self) -> u64 {
        // Most messages of most peers are no transactions.
        if self.0.allowed.load(Ordering::Relaxed) == 0 { 0 } else { self.0.allowed.swap(0, Ordering::Relaxed) }
    }

    pub fn budget(&self) -> &Arc<MemoryBudget> {
        &self.0.budget
    }

    /// Returns the bytes that are held for this connection.
    pub fn used(&self) -> usize {
        self.0.budget.lock().accounts.get(&self.0.id).map_or(0, Account::used)
    }

    /// Charges received bytes until the charge is dropped. This never fails: the caller must ask first.
    pub fn charge_received(&self, bytes: usize) -> Charge {
        self.charge(UseFor::Received, bytes)
    }

    /// Charges bytes to be sent until the charge is dropped. This never fails: the caller must ask first.
    pub fn charge_to_send(&self, bytes: usize) -> Charge {
        self.charge(UseFor::ToSend, bytes)
    }

    fn charge(&self, use_for: UseFor, bytes: usize) -> Charge {
        let mut charge = Charge { memory: self.clone(), use_for, bytes: 0 };
        charge.set(bytes);
        charge
    }

    fn try_charge(&self, use_for: UseFor, bytes: usize, common_max: usize) -> Option<Charge> {
        let fits = self.0.budget.try_add(self.0.id, use_for, bytes, common_max);
        fits.then(|| Charge { memory: self.clone(), use_for, bytes })
    }

    /// Reserves memory for the answer to a received message, if few bytes are queued for the peer or there is room for
    /// one more answer. The reservation is dropped when the answer is queued.
    pub fn reserve_answer(&self, waiting_bytes: usize) -> Option<Charge> {
        if waiting_bytes < ANSWER_BYTES {
            return Some(self.charge_to_send(ANSWER_BYTES_MAX));
        }
        self.try_charge(UseFor::ToSend, ANSWER_BYTES_MAX, self.0.budget.plan.receive_common)
    }

    /// Charges the bytes of a block to be sent, if there is enough memory for all of them.
    pub fn charge_block(&self, bytes: usize) -> Option<Charge> {
        self.try_charge(UseFor::ToSend, bytes, self.0.budget.plan.common)
    }

    /// Returns whether the peer may be asked for a block: it already has room, or a room is free.
    pub fn has_block_room(&self) -> bool {
        let budget = &self.0.budget;
        let ledger = budget.lock();
        let has_room = ledger.accounts.get(&self.0.id).is_some_and(|account| account.has_room);
        has_room || ledger.rooms_taken < budget.plan.rooms
    }

    /// Sets whether a block request to the peer is outstanding. Its room is taken immediately, and freed when the
    /// request is over and the peer's bytes fit into its share.
    pub fn set_asked(&self, is_asked: bool) {
        self.0.budget.change(self.0.id, |account| {
            let has_room = account.has_room || is_asked;
            Account { is_asked, has_room, ..account }
        });
    }

    /// Registers that the connection waits to send a block, until the returned value is dropped.
    pub fn wait_to_send(&self) -> Waiting {
        self.0.budget.lock().waiting += 1;
        Waiting(Arc::clone(&self.0.budget))
    }
}

/// Bytes charged to an account.
#[derive(Debug)]
pub struct Charge {
    memory: PeerMemory,
    use_for: UseFor,
    bytes: usize,
}

impl Charge {
    /// Changes the number of charged bytes.
    pub fn set(&mut self, bytes: usize) {
        if bytes != self.bytes {
            let before = std::mem::replace(&mut self.bytes, bytes);
            let Handle { budget, id, .. } = &*self.memory.0;
            let use_for = self.use_for;
            budget.change(*id, |mut account| {
                match use_for {
                    UseFor::Received => account.received -= before,
                    UseFor::ToSend => account.to_send -= before,
                }
                account.add(use_for, bytes)
            });
        }
    }

    /// Charges more bytes for what is about to be received, and returns true, if the peer's own part or the common
    /// part has room for all of them.
    pub fn try_receive(&mut self, more: usize) -> bool {
        let Handle { budget, id, .. } = &*self.memory.0;
        let is_charged = budget.try_add(*id, self.use_for, more, budget.plan.receive_common);
        self.bytes += if is_charged { more } else { 0 };
        is_charged
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
