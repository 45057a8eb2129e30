//! The manager's thread: passes events to the driver in order, and connects the driver to the other threads.
//!
//! It never waits for a socket or for validation. It waits for the disk only if the queue of files is full.

use crate::dial::Dialer;
use crate::event::Event;
use crate::figures::Figures;
use crate::files::Save;
use crate::outbox::Outbox;
use crate::{Events, Host};
use lydian_engine::LogLine;
use lydian_mempool::Mempool;
use lydian_p2p::Moment;
use lydian_p2p::driver::{self, Delivery, Outside};
use lydian_p2p::manager::{AttemptId, LookupId, PeerId, PeerManager, SavedFile};
use lydian_p2p::outgoing::Outgoing;
use lydian_p2p::peer::ConnectionKind;
use lydian_p2p::proxies::Target;
use lydian_p2p::submission::Submission;
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
    blocks: SyncSender<Box<Delivery>>,
    saves: SyncSender<Save>,
    /// Opens connections, on the runtime `sockets`.
    dialer: Arc<Dialer>,
    sockets: Handle,
    /// The send queues of the peers.
    peers: HashMap<PeerId, Arc<Outbox>>,
    mempool: Arc<Mempool>,
    /// For the verdicts of the mempool.
    events: Events,
    is_ending: Arc<AtomicBool>,
    figures: Arc<Figures>,
    /// How many times freed memory is still to be returned to the system, and the time of the next: the memory of a
    /// closed connection is freed over some seconds.
    trims: (u32, Duration),
}

impl ManagerThread {
    pub(crate) fn new(
        manager: PeerManager,
        host: Arc<dyn Host>,
        (blocks, saves): (SyncSender<Box<Delivery>>, SyncSender<Save>),
        dialer: (Arc<Dialer>, Handle),
        (mempool, events): (Arc<Mempool>, Events),
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
            mempool,
            events,
            is_ending,
            figures,
            trims: (0, Duration::ZERO),
        }
    }

    /// Processes events until all senders are gone or the network is ending. Then saves what must outlast the run.
    pub(crate) fn work(mut self, mut events: Receiver<Event>) {
        while let Some(event) = events.blocking_recv() {
            if self.is_ending.load(Ordering::Acquire) {
                break;
            }
            self.process(event);
        }
        driver::end(&mut self);
    }

    fn process(&mut self, event: Event) {
        let (event, _permit) = match event {
            Event::Connected { new, outbox } => {
                self.peers.insert(new.id, outbox);
                (driver::Event::Connected(new), None)
            }
            Event::Message { event, permit } => (event, Some(permit)),
            Event::Other(event) => (event, None),
        };
        if let driver::Event::Disconnected { peer, .. } = event {
            self.peers.remove(&peer);
        }
        let is_tick = matches!(event, driver::Event::Tick);
        driver::drive(self, event);
        if is_tick {
            self.figures.set(self.manager.figures());
            self.release_memory(self.host.now().elapsed);
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
}

impl Outside for ManagerThread {
    fn manager(&mut self) -> &mut PeerManager {
        &mut self.manager
    }

    fn now(&self) -> Moment {
        self.host.now()
    }

    fn push(&mut self, to: PeerId, item: Outgoing) {
        if let Some(outbox) = self.peers.get(&to) {
            outbox.push(item);
        }
    }

    fn dial(&mut self, attempt: AttemptId, kind: ConnectionKind, target: Target, v2: bool) {
        self.sockets.spawn(Arc::clone(&self.dialer).connect(attempt, kind, target, v2));
    }

    fn resolve(&mut self, lookup: LookupId, host: String, count_max: usize) {
        self.sockets.spawn(Arc::clone(&self.dialer).resolve(lookup, host, count_max));
    }

    fn save(&mut self, file: SavedFile, bytes: Vec<u8>) {
        // Blocks only if the disk has not taken the files of hours. If there is no receiver, the network failed to
        // start.
        let _ = self.saves.send((file, bytes));
    }

    fn log(&mut self, line: LogLine) {
        self.host.log_line(&line);
    }

    fn queue_block(&mut self, block: Delivery) -> Result<(), Delivery> {
        self.blocks.try_send(Box::new(block)).map_err(|error| match error {
            TrySendError::Full(block) | TrySendError::Disconnected(block) => *block,
        })
    }

    fn submit(&mut self, submission: Submission) -> Result<(), Submission> {
        let events = self.events.clone();
        // The mempool's thread waits while the queue of events is full. If there is no receiver, the network is ending.
        submission.offer(&self.mempool, move |answer| drop(events.blocking_send(driver::Event::from(answer).into())))
    }

    fn queued_bytes(&self, to: PeerId) -> Option<usize> {
        self.peers.get(&to).filter(|outbox| !outbox.is_full()).map(|outbox| outbox.memory_bytes())
    }
}
