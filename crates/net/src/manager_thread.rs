//! The manager's thread: processes events in order and carries out the manager's actions.
//!
//! It never waits for a socket or for validation. It waits for the disk only if the queue of files is full, or to write
//! captured messages.

use crate::Host;
use crate::capture::{Capture, Direction};
use crate::dial::Dialer;
use crate::event::Event;
use crate::figures::Figures;
use crate::files::Save;
use crate::outbox::{Outbox, Outgoing};
use crate::store::Delivery;
use lydian_p2p::PeerMemory;
use lydian_p2p::manager::{Action, PeerId, PeerManager, StoreOutcome};
use lydian_primitives::BlockHash;
use lydian_wire::{Command, Endpoint};
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{SyncSender, TrySendError};
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::sync::mpsc::Receiver;

/// Number of times that the allocator is called after a peak of memory.
const TRIMS_AFTER_PEAK: u32 = 5;

/// Time between two of these calls.
const TRIM_INTERVAL: Duration = Duration::from_secs(2);

/// State of the manager's thread.
#[derive(Debug)]
pub(crate) struct ManagerThread {
    manager: PeerManager,
    host: Arc<dyn Host>,
    blocks: SyncSender<Delivery>,
    saves: SyncSender<Save>,
    /// Opens connections, on the runtime `sockets`.
    dialer: Arc<Dialer>,
    sockets: Handle,
    peers: HashMap<PeerId, (Arc<Outbox>, PeerMemory)>,
    is_ending: Arc<AtomicBool>,
    figures: Arc<Figures>,
    /// How many times freed memory is still to be returned to the system, and the time of the next: the memory of a
    /// closed connection is freed over some seconds.
    trims: (u32, Duration),
    capture: Option<Arc<Capture>>,
    /// Addresses of the peers, while messages are captured.
    endpoints: HashMap<PeerId, Endpoint>,
}

impl ManagerThread {
    pub(crate) fn new(
        manager: PeerManager,
        host: Arc<dyn Host>,
        blocks: SyncSender<Delivery>,
        saves: SyncSender<Save>,
        dialer: (Arc<Dialer>, Handle),
        is_ending: Arc<AtomicBool>,
        figures: Arc<Figures>,
    ) -> ManagerThread {
        let (dialer, sockets) = dialer;
        ManagerThread {
            manager,
            host,
            blocks,
            saves,
            dialer,
            sockets,
            peers: HashMap::new(),
            is_ending,
            figures,
            trims: (0, Duration::ZERO),
            capture: None,
            endpoints: HashMap::new(),
        }
    }

    /// Writes received messages to files: `-capturemessages`.
    pub(crate) fn capture_to(self, capture: Option<Arc<Capture>>) -> ManagerThread {
        ManagerThread { capture, ..self }
    }

    fn capture(&self, from: PeerId, command: Command, payload: &[u8]) {
        if let Some((capture, endpoint)) = self.capture.as_ref().zip(self.endpoints.get(&from)) {
            capture.write(endpoint, Direction::Received, command, payload, self.host.as_ref());
        }
    }

    /// Processes events until all senders are gone or the network is ending. Then saves what must outlast the run.
    pub(crate) fn work(mut self, mut events: Receiver<Event>) {
        while let Some(event) = events.blocking_recv() {
            if self.is_ending.load(Ordering::Acquire) {
                break;
            }
            self.take(event);
            self.act();
        }
        self.manager.end(self.host.now());
        let saves = self.manager.take_actions().into_iter().filter(|action| matches!(action, Action::Save { .. }));
        saves.for_each(|save| self.carry_out(save));
    }

    fn take(&mut self, event: Event) {
        let now = self.host.now();
        match event {
            Event::Connected { new, outbox } => {
                self.peers.insert(new.id, (outbox, new.memory.clone()));
                if self.capture.is_some() {
                    self.endpoints.insert(new.id, new.endpoint);
                }
                self.manager.connected(new, now);
            }
            Event::Message { from, command, payload, _permit, _charge } => {
                self.capture(from, command, &payload);
                self.manager.received(from, command, payload, now);
            }
            Event::BadTransactionsRequest { from } => self.manager.bad_transactions_request(from, now),
            Event::Progress { from, bytes } => self.manager.progressed(from, bytes, now),
            Event::Disconnected { peer, wants_v1 } => {
                self.peers.remove(&peer);
                self.endpoints.remove(&peer);
                if wants_v1 {
                    self.manager.retry_with_v1(peer);
                }
                self.manager.disconnected(peer, now);
            }
            Event::AttemptFailed { attempt, failure } => self.manager.attempt_failed(attempt, &failure, now),
            Event::Resolved { lookup, addresses } => self.manager.resolved(lookup, &addresses, now),
            Event::Stored { from, hash, outcome } => self.manager.block_stored(from, &hash, &outcome, now),
            Event::Invalid { hash, reason } => self.manager.block_invalid(&hash, &reason, now),
            Event::NotReadable { hash } => self.manager.block_unreadable(&hash, now),
            Event::Ask(question) => {
                self.manager.set_time(now);
                (question.0)(&mut self.manager, now);
            }
            Event::ChainChanged => self.manager.chain_changed(now),
            Event::Tick => {
                self.manager.chain_changed(now);
                self.manager.tick(now);
                self.figures.set(self.manager.figures());
                self.release_memory(now.elapsed);
            }
        }
    }

    /// Returns freed memory to the system after a peak, and a few times later, until all of it is freed.
    fn release_memory(&mut self, now: Duration) {
        if self.dialer.memory().should_trim() {
            self.trims = (TRIMS_AFTER_PEAK, now);
        }
        let (left, next) = self.trims;
        if left > 0 && now >= next {
            self.trims = (left - 1, now + TRIM_INTERVAL);
            self.sockets.spawn_blocking(lydian_disk::release_free_memory);
        }
    }

    fn act(&mut self) {
        // Actions that an action causes directly are carried out in the next round.
        loop {
            let actions = self.manager.take_actions();
            if actions.is_empty() {
                return;
            }
            actions.into_iter().for_each(|action| self.carry_out(action));
        }
    }

    fn carry_out(&mut self, action: Action) {
        match action {
            Action::Send { to, message } => self.push(to, Outgoing::Message(message)),
            Action::SendBlock { to, hash, with_witness } => self.push(to, Outgoing::Block { hash, with_witness }),
            Action::SendCompact { to, hash, nonce } => self.push(to, Outgoing::Compact { hash, nonce }),
            Action::SendBlockTransactions { to, request } => self.push(to, Outgoing::Transactions(request)),
            Action::Disconnect { peer, reason } => self.push(peer, Outgoing::End { reason }),
            Action::Connect { attempt, kind, target, v2 } => {
                self.sockets.spawn(Arc::clone(&self.dialer).connect(attempt, kind, target, v2));
            }
            Action::Resolve { lookup, host, count_max } => {
                self.sockets.spawn(Arc::clone(&self.dialer).resolve(lookup, host, count_max));
            }
            Action::Save { file, bytes } => {
                // Blocks only if the disk has not taken the files of hours. If there is no receiver, the network failed
                // to start.
                let _ = self.saves.send((file, bytes));
            }
            Action::Log(line) => self.host.log_line(&line),
            Action::Store { from, hash, bytes } => self.store(from, hash, bytes),
        }
    }

    fn push(&self, to: PeerId, item: Outgoing) {
        if let Some((outbox, _)) = self.peers.get(&to) {
            outbox.push(item);
        }
    }

    /// Queues a block to be stored. Its bytes count as the peer's until then.
    fn store(&mut self, from: PeerId, hash: BlockHash, bytes: Vec<u8>) {
        let charge = self.peers.get(&from).map(|(_, memory)| memory.charge_received(bytes.capacity()));
        match self.blocks.try_send(Delivery { from, hash, bytes, _charge: charge }) {
            Ok(()) => {}
            // The peers sent more unrequested blocks than the download window holds. The block may be sent again.
            Err(TrySendError::Full(lost) | TrySendError::Disconnected(lost)) => {
                let now = self.host.now();
                self.manager.block_stored(lost.from, &lost.hash, &StoreOutcome::TooEarly, now);
            }
        }
    }
}
