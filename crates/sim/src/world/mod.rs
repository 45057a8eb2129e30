//! The world: one queue of timed events, the node, its peers, and the wires between them.
//!
//! Input: a cast of peers and a seed. Output: what happened, with a digest of every byte and time. Invariants: time
//! advances only from one event to the next; everything follows from the seed. Cost: some microseconds per event, ten
//! events per virtual second if nothing happens. Must never: read a clock, start a thread.

mod dial;

pub use dial::ATTACKER_HEIGHT;

use crate::actor::{Actor, Deed, Stage};
use crate::ground::{NOW, ground};
use crate::link::{Link, MEMORY, Side, Step, Wire};
use crate::node::Node;
use dial::Dial;
use lydian_chains::rng::Random;
use lydian_consensus::U256;
use lydian_engine::LogLine;
use lydian_hash::SipHasher;
use lydian_net::limits::BLOCKS_QUEUED;
use lydian_p2p::channel::{FAREWELL_TIME, Handover};
use lydian_p2p::driver::{self, Delivery, Outside};
use lydian_p2p::manager::{AttemptId, ConnectSettings, Held, LookupId, NewPeer, PeerId, PeerManager, SavedFile};
use lydian_p2p::outgoing::Outgoing;
use lydian_p2p::peer::{ConnectionKind, Permissions};
use lydian_p2p::proxies::Target;
use lydian_p2p::submission::Submission;
use lydian_p2p::{MemoryBudget, Moment, PeerMemory, UnixTime};
use lydian_wire::{Endpoint, Message};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

/// Interval at which the node checks its timers.
const TICK: Duration = Duration::from_millis(100);

/// The time it takes to store a block, and to validate the stored blocks.
const STORE_TIME: Duration = Duration::from_micros(300);
const VALIDATE_TIME: Duration = Duration::from_millis(3);

/// The time it takes to decide on a transaction.
const DECIDE_TIME: Duration = Duration::from_micros(200);

/// An event of the queue.
#[derive(Debug)]
enum Event {
    Tick,
    Step(PeerId, Step),
    Wake(usize, u32),
    Connect(usize),
    /// A connection attempt of the node has ended.
    Dialled(Dial),
    /// The peer closed the connection, and the node notices.
    PeerClosed(PeerId),
    /// The node closed the connection, and the peer notices.
    NodeClosed(usize),
    /// The time limit for sending the rest is over.
    Farewell(PeerId),
    Stored,
    Validated,
    /// The mempool has decided on the first submission.
    Decided,
    /// The operator submits the blocks of the honest chain between two heights, both included.
    Submitted(u32, u32),
}

/// `setmocktime` at one time, and its end at another. In between, the node's clock is stopped.
#[derive(Clone, Copy, Debug)]
pub struct Mocked {
    pub from: Duration,
    pub to: Duration,
    pub wrong_by_s: i64,
}

/// A connection that the node ended.
#[derive(Clone, Debug)]
pub struct Dropped {
    pub actor: usize,
    pub at: Duration,
    pub reason: String,
}

/// The maximum held at any time.
#[derive(Clone, Copy, Debug, Default)]
pub struct Most {
    /// Bytes of one connection.
    pub link_bytes: usize,
    /// Bytes that the node wanted to send because of one message.
    pub burst_bytes: usize,
    /// Bytes of blocks waiting to be stored.
    pub blocks_bytes: usize,
    /// Connections, including those whose end the node has not noticed yet.
    pub links: usize,
    /// Inbound peers that the node has not disconnected.
    pub inbound: usize,
    /// The maximum of each count of the manager.
    pub held: Held,
}

/// The simulated world.
#[derive(Debug)]
pub struct World {
    pub now: Duration,
    /// The clock at the start, in seconds since 1970.
    pub unix_begin: u64,
    pub node: Node,
    pub actors: Vec<Actor>,
    pub dropped: Vec<Dropped>,
    pub most: Most,
    /// Number of peers to be retried with v1.
    pub retries: usize,
    /// How often progress of a long message was reported to the manager.
    pub progress: usize,
    /// How often a peer waited for memory.
    pub shortages: usize,
    /// Whether two peers that the node chose were ever in the same group.
    pub has_twin_groups: bool,
    /// The period in which the node's clock is mocked, if there is one.
    pub mocked: Option<Mocked>,
    /// The node's log, if it is kept.
    pub log: Vec<String>,
    is_logged: bool,
    wires: Vec<Wire>,
    links: BTreeMap<PeerId, Link>,
    /// The connection of each peer.
    standing: Vec<Option<PeerId>>,
    queue: BTreeMap<(Duration, u64), Event>,
    sequence: u64,
    next_peer: u64,
    random: Random,
    trace: u64,
    /// Links with something to send or read.
    touched: BTreeSet<PeerId>,
    /// The memory of all peers.
    pub memory: Arc<MemoryBudget>,
}

impl World {
    pub fn new(seed: u64, minimum_chain_work: U256, connect: ConnectSettings, is_logged: bool) -> World {
        let mut world = World {
            now: Duration::ZERO,
            unix_begin: NOW,
            node: Node::new(seed, minimum_chain_work, connect),
            actors: Vec::new(),
            dropped: Vec::new(),
            most: Most::default(),
            retries: 0,
            progress: 0,
            shortages: 0,
            has_twin_groups: false,
            mocked: None,
            log: Vec::new(),
            is_logged,
            wires: Vec::new(),
            links: BTreeMap::new(),
            standing: Vec::new(),
            queue: BTreeMap::new(),
            sequence: 0,
            next_peer: 0,
            random: Random::new(seed, "world"),
            trace: seed,
            touched: BTreeSet::new(),
            memory: MemoryBudget::new(MEMORY),
        };
        world.at(Duration::ZERO, Event::Tick);
        world
    }

    /// A world whose node relays transactions.
    pub fn relaying(seed: u64, minimum_chain_work: U256, connect: ConnectSettings, is_logged: bool) -> World {
        let mut world = World::new(seed, minimum_chain_work, connect.clone(), is_logged);
        world.node = Node::relaying(seed, minimum_chain_work, connect);
        world
    }

    /// Adds a peer that connects after a delay.
    pub fn add(&mut self, actor: Actor, wire: Wire, after: Duration) -> usize {
        let index = self.enter(actor, wire);
        self.at(after, Event::Connect(index));
        index
    }

    /// Lets the operator submit blocks of the honest chain, as with `submitblock`.
    pub fn submit(&mut self, after: Duration, from: u32, to: u32) {
        self.at(after, Event::Submitted(from, to));
    }

    /// Adds a peer that waits until the node connects to it.
    pub fn enter(&mut self, actor: Actor, wire: Wire) -> usize {
        self.actors.push(actor);
        self.wires.push(wire);
        self.standing.push(None);
        let index = self.actors.len() - 1;
        self.play(index, Actor::begin);
        index
    }

    /// Returns a digest of everything that happened.
    pub fn trace(&self) -> u64 {
        self.trace
    }

    /// Whether a peer is connected.
    pub fn is_connected(&self, actor: usize) -> bool {
        self.standing[actor].is_some()
    }

    /// Returns the current time, as the node sees it.
    pub fn moment(&self) -> Moment {
        let true_one = self.true_moment();
        match self.mocked.filter(|mocked| (mocked.from..mocked.to).contains(&self.now)) {
            Some(mocked) => {
                let seconds = (self.unix_begin + mocked.from.as_secs()).saturating_add_signed(mocked.wrong_by_s);
                let (mockable, unix) = (Duration::from_secs(seconds), UnixTime(seconds));
                Moment { mockable, unix, ..true_one }
            }
            None => true_one,
        }
    }

    fn true_moment(&self) -> Moment {
        Moment::new(self.now, UnixTime(self.unix_begin + self.now.as_secs()))
    }

    fn at(&mut self, after: Duration, event: Event) {
        self.sequence += 1;
        self.queue.insert((self.now + after, self.sequence), event);
    }

    /// Processes the next event.
    pub fn step(&mut self) {
        let Some(((at, _), event)) = self.queue.pop_first() else { return };
        self.now = at;
        self.note(&event);
        match event {
            Event::Tick => self.tick(),
            Event::Step(id, step) => self.link_step(id, step),
            Event::Wake(actor, what) => self.play(actor, |actor, stage| actor.woken(what, stage)),
            Event::Connect(actor) => self.stand(actor, None),
            Event::Dialled(dial) => self.dialled(dial),
            Event::PeerClosed(id) => self.close(id, None),
            Event::NodeClosed(actor) => self.play(actor, |actor, stage| actor.closed(stage)),
            Event::Farewell(id) => self.finish(id),
            Event::Stored => {
                self.node.is_storing = false;
                if let Some((_delivery, event)) = self.node.store(self.moment()) {
                    driver::drive(self, event);
                }
            }
            Event::Validated => {
                self.node.is_validating = false;
                self.node.validate().for_each(|event| driver::drive(self, event));
            }
            Event::Decided => {
                self.node.is_deciding = false;
                if let Some(answer) = self.node.decide(self.moment()) {
                    driver::drive(self, answer.into());
                }
            }
            Event::Submitted(from, to) => {
                let blocks = (from..=to).map(|height| ground().honest.at(height).bytes.clone());
                blocks.for_each(|bytes| self.node.submit(bytes, self.moment()));
            }
        }
        self.settle();
    }

    fn note(&mut self, event: &Event) {
        let nanos = u64::try_from(self.now.as_nanos()).unwrap();
        let hasher = SipHasher::new(self.trace, nanos);
        let word = |kind: u64, id: u64| kind << 32 | id;
        self.trace = match event {
            Event::Tick => hasher.write_u64(word(0, 0)),
            Event::Step(id, Step::ToNode(bytes)) => hasher.write_u64(word(1, id.0)).write(bytes),
            Event::Step(id, Step::ToPeer(bytes)) => hasher.write_u64(word(2, id.0)).write(bytes),
            Event::Step(id, Step::NodeMaySend) => hasher.write_u64(word(3, id.0)),
            Event::Step(id, Step::PeerMaySend) => hasher.write_u64(word(4, id.0)),
            Event::Wake(actor, what) => hasher.write_u64(word(5, *actor as u64)).write_u64(u64::from(*what)),
            Event::Connect(actor) => hasher.write_u64(word(6, *actor as u64)),
            Event::Dialled(dial) => hasher.write_u64(word(12, dial.attempt.0)),
            Event::PeerClosed(id) => hasher.write_u64(word(7, id.0)),
            Event::NodeClosed(actor) => hasher.write_u64(word(8, *actor as u64)),
            Event::Farewell(id) => hasher.write_u64(word(9, id.0)),
            Event::Stored => hasher.write_u64(word(10, 0)),
            Event::Validated => hasher.write_u64(word(11, 0)),
            Event::Decided => hasher.write_u64(word(14, 0)),
            Event::Submitted(from, to) => hasher.write_u64(word(13, u64::from(from << 16 | to))),
        }
        .finish();
    }

    fn tick(&mut self) {
        self.measure();
        // Memory may be available by now.
        for (id, link) in &mut self.links {
            if std::mem::take(&mut link.is_short) {
                self.touched.insert(*id);
                self.shortages += 1;
            }
            if link.node.paced().is_some() {
                self.touched.insert(*id);
            }
        }
        self.at(TICK, Event::Tick);
        driver::drive(self, driver::Event::Tick);
    }

    fn measure(&mut self) {
        self.most.links = self.most.links.max(self.links.len());
        let stays = |link: &&Link| link.farewell.is_none() && self.actors[link.actor].body.kind.is_inbound();
        // A peer whose end the node has not noticed yet counts, because it holds a slot.
        self.most.inbound = self.most.inbound.max(self.links.values().filter(stays).count());
        let (now, most) = (self.node.manager.held(), &mut self.most.held);
        assert_eq!(now.pending, self.node.to_store.len(), "the manager waits for the result of each queued block");
        *most = Held {
            peers: most.peers.max(now.peers),
            addresses: most.addresses.max(now.addresses),
            sources: most.sources.max(now.sources),
            pending: most.pending.max(now.pending),
            in_flight: most.in_flight.max(now.in_flight),
            buffered_headers: most.buffered_headers.max(now.buffered_headers),
            block_bytes: most.block_bytes.max(now.block_bytes),
            nonces: most.nonces.max(now.nonces),
            actions: most.actions.max(now.actions),
            transactions: most.transactions.max(now.transactions),
            requested: most.requested.max(now.requested),
            tx_announcements: most.tx_announcements.max(now.tx_announcements),
            orphan_weight: most.orphan_weight.max(now.orphan_weight),
            orphan_announcements: most.orphan_announcements.max(now.orphan_announcements),
            undecided: most.undecided.max(now.undecided),
            extra: most.extra.max(now.extra),
        };
    }

    /// Establishes a connection.
    fn stand(&mut self, index: usize, attempt: Option<AttemptId>) {
        if self.standing[index].is_some() {
            return;
        }
        let body = &self.actors[index].body;
        let (kind, endpoint, permissions) = (body.kind, body.endpoint, body.permissions);
        let id = PeerId(self.next_peer);
        self.next_peer += 1;
        let magic = self.node.engine.params().magic;
        let side = Side { actor: index, is_inbound: kind.is_inbound(), knows_v1_only: body.knows_v1_only };
        let memory = PeerMemory::open(&self.memory).unwrap();
        let mut link = Link::new(id, side, self.wires[index], memory.clone(), (magic, &mut self.random));
        if permissions.contains(Permissions::NO_BAN) {
            link.node.lift_pace();
        }
        self.links.insert(id, link);
        self.standing[index] = Some(id);
        self.touched.insert(id);
        let new = NewPeer {
            id,
            kind,
            endpoint,
            permissions,
            is_onion: false,
            attempt,
            local: Endpoint::default(),
            v2: self.wires[index].is_v2,
            traffic: Arc::default(),
            memory,
        };
        driver::drive(self, driver::Event::Connected(new));
        self.log_line(|_| format!("peer={id} is {} of {kind:?}", index));
        self.play(index, |actor, stage| actor.connected(stage));
    }

    fn link_step(&mut self, id: PeerId, step: Step) {
        let Some(link) = self.links.get_mut(&id) else { return };
        self.touched.insert(id);
        match step {
            Step::ToNode(bytes) => link.arrived(bytes),
            Step::NodeMaySend => link.node_may_send(),
            Step::PeerMaySend => link.peer_may_send(),
            Step::ToPeer(bytes) => {
                let actor = link.actor;
                let is_read = link.peer.receive(&bytes).is_ok();
                while let Some(received) = self.links.get_mut(&id).and_then(|link| link.peer.next_message()) {
                    let decoded = Message::decode_owned(&received.command, received.payload);
                    let message = decoded.unwrap_or_else(|error| panic!("the node sent an invalid message: {error}"));
                    self.play(actor, |actor, stage| actor.message(&message, stage));
                }
                if !is_read {
                    let knows = !self.actors[actor].body.knows_v1_only;
                    assert!(!knows, "the node sent bytes to peer={id} that are not a message");
                    self.carry_out_deed(actor, Deed::Close);
                }
            }
        }
    }

    /// Lets a peer act, and carries out its deeds.
    fn play(&mut self, index: usize, act: impl FnOnce(&mut Actor, &mut Stage<'_>)) {
        let id = self.standing[index];
        let backlog = id.and_then(|id| self.links.get(&id)).map_or(0, Link::peer_backlog);
        let mut stage = Stage {
            now: self.now,
            unix: self.true_moment().unix.0,
            random: &mut self.random,
            ground: ground(),
            backlog,
            deeds: Vec::new(),
        };
        act(&mut self.actors[index], &mut stage);
        let deeds = stage.deeds;
        deeds.into_iter().for_each(|deed| self.carry_out_deed(index, deed));
    }

    fn carry_out_deed(&mut self, index: usize, deed: Deed) {
        match deed {
            Deed::Wake(after, what) => return self.at(after, Event::Wake(index, what)),
            Deed::Connect(after) => return self.at(after, Event::Connect(index)),
            Deed::Deserve(verdict) => {
                self.actors[index].body.verdict = verdict;
                return;
            }
            _ => {}
        }
        let Some(id) = self.standing[index] else { return };
        let Some(link) = self.links.get_mut(&id) else { return };
        match deed {
            Deed::Send(message) => link.peer.send_message(&message),
            Deed::Payload(command, payload) => link.peer.send(command, &payload),
            Deed::Raw(bytes) => link.push_raw(&bytes),
            Deed::Deafen => link.is_deaf = true,
            Deed::Close => {
                self.standing[index] = None;
                let latency = link.latency();
                return self.at(latency, Event::PeerClosed(id));
            }
            Deed::Wake(..) | Deed::Connect(_) | Deed::Deserve(_) => {}
        }
        self.touched.insert(id);
    }

    /// Processes everything that follows immediately from an event.
    fn settle(&mut self) {
        while let Some(id) = self.touched.pop_first() {
            self.read(id);
            let Some(link) = self.links.get_mut(&id) else { continue };
            let mut later = Vec::new();
            link.pump_node(&self.node.engine, &mut self.random, &mut later);
            link.pump_peer(&mut self.random, &mut later);
            self.most.link_bytes = self.most.link_bytes.max(link.held_bytes());
            let bad_requests = std::mem::take(&mut link.bad_requests);
            let is_over = link.farewell.is_some() && link.is_node_done();
            later.into_iter().for_each(|(after, step)| self.at(after, Event::Step(id, step)));
            if bad_requests > 0 {
                driver::drive(self, driver::Event::BadTransactionsRequest { from: id });
            }
            if is_over {
                self.finish(id);
            }
        }
        if !self.node.to_store.is_empty() && !self.node.is_storing {
            self.node.is_storing = true;
            self.at(STORE_TIME, Event::Stored);
        }
        if !self.node.to_decide.is_empty() && !self.node.is_deciding {
            self.node.is_deciding = true;
            self.at(DECIDE_TIME, Event::Decided);
        }
        if self.node.has_work && !self.node.is_validating {
            self.node.is_validating = true;
            self.at(VALIDATE_TIME, Event::Validated);
        }
    }

    /// Reads what the node would read now.
    fn read(&mut self, id: PeerId) {
        loop {
            let Some(link) = self.links.get_mut(&id) else { return };
            match link.read(self.now) {
                Ok(None) => {
                    let mut fresh = None;
                    link.node.report_progress(self.now, |bytes| fresh.replace(bytes).is_none());
                    if let Some(bytes) = fresh {
                        self.progress += 1;
                        driver::drive(self, driver::Event::Progress { from: id, bytes });
                    }
                    return;
                }
                Ok(Some(Handover { received, charge, answer: _answer })) => {
                    let held = link.held_bytes();
                    let (command, payload) = (received.command, received.payload);
                    driver::drive(self, driver::Event::Message { from: id, command, payload, charge });
                    if let Some(link) = self.links.get(&id) {
                        let burst = link.held_bytes().saturating_sub(held);
                        self.most.burst_bytes = self.most.burst_bytes.max(burst);
                    }
                }
                Err(reason) => return self.close(id, Some(reason)),
            }
        }
    }

    /// Ends the connection of a peer that the node is disconnecting.
    fn finish(&mut self, id: PeerId) {
        if self.links.contains_key(&id) {
            self.close(id, Some(String::new()));
        }
    }

    /// Closes a connection. If there is a reason, the node closed it.
    fn close(&mut self, id: PeerId, reason: Option<String>) {
        let Some(link) = self.links.remove(&id) else { return };
        let actor = link.actor;
        if let Some(reason) = &reason {
            if !reason.is_empty() {
                self.log_line(|_| format!("peer={id}: {reason}"));
                self.dropped.push(Dropped { actor, at: self.now, reason: reason.clone() });
            }
            if self.standing[actor] == Some(id) {
                self.standing[actor] = None;
                self.at(link.latency(), Event::NodeClosed(actor));
            }
        }
        let wants_v1 = link.node.transport().should_reconnect_v1();
        self.retries += usize::from(wants_v1);
        driver::drive(self, driver::Event::Disconnected { peer: id, wants_v1 });
    }

    fn log_line(&mut self, what: impl FnOnce(&World) -> String) {
        if self.is_logged {
            let line = format!("{:>10.4} {}", self.now.as_secs_f64(), what(self));
            self.log.push(line);
        }
    }

    /// Whether all peers are done.
    pub fn are_all_done(&self) -> bool {
        self.actors.iter().all(Actor::is_done)
    }
}

impl Outside for World {
    fn manager(&mut self) -> &mut PeerManager {
        &mut self.node.manager
    }

    fn now(&self) -> Moment {
        self.moment()
    }

    fn push(&mut self, to: PeerId, item: Outgoing) {
        let Some(link) = self.links.get_mut(&to) else { return };
        self.touched.insert(to);
        if let Outgoing::End { reason } = item {
            self.dropped.push(Dropped { actor: link.actor, at: self.now, reason: reason.clone() });
            link.farewell = Some(reason.clone());
            self.at(FAREWELL_TIME, Event::Farewell(to));
            self.log_line(|_| format!("peer={to} is disconnected: {reason}"));
        } else {
            link.push(item);
            link.count_memory();
        }
    }

    fn dial(&mut self, attempt: AttemptId, kind: ConnectionKind, target: Target, v2: bool) {
        self.try_to_connect(attempt, kind, &target, v2);
    }

    fn resolve(&mut self, _: LookupId, _: String, _: usize) {
        // There are no host names here.
    }

    fn save(&mut self, _: SavedFile, _: Vec<u8>) {
        // No files are saved.
    }

    fn log(&mut self, line: LogLine) {
        self.log_line(|_| line.text);
    }

    fn queue_block(&mut self, block: Delivery) -> Result<(), Delivery> {
        if self.node.to_store.len() >= BLOCKS_QUEUED {
            return Err(block);
        }
        self.node.to_store.push_back(block);
        let waiting = self.node.to_store.iter().map(|delivery| delivery.block.memory_bytes()).sum();
        self.most.blocks_bytes = self.most.blocks_bytes.max(waiting);
        Ok(())
    }

    fn submit(&mut self, submission: Submission) -> Result<(), Submission> {
        self.node.to_decide.push_back(submission);
        Ok(())
    }

    fn queued_bytes(&self, to: PeerId) -> Option<usize> {
        self.links.get(&to).and_then(Link::queued_bytes)
    }
}
