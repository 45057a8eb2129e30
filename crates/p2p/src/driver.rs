//! The driver: passes events to the [`PeerManager`], carries out its actions until none is left, and parses, checks and
//! stores the blocks that peers send.
//!
//! Input: [`Event`]s. Output: calls of [`Outside`], which is implemented by the thread that owns the sockets, by the
//! simulator and by tests. Everything between the two is here and is therefore the same for all of them.
//!
//! Invariants: every action is carried out once, in order. An action that follows directly from carrying out another
//! one is carried out in the next round. A block that finds no room in the queue of blocks to be stored may be sent
//! again. [`Delivery::store`], which the caller runs on another thread, does everything with a block that looks beyond
//! its header. Cost: that of the manager. It must never wait, and reads no clock and no file itself.

use crate::manager::{
    Action, AttemptFailure, AttemptId, Intake, LookupId, NewPeer, PeerId, PeerManager, Question, ReceivedBlock,
    SavedFile, StoreOutcome,
};
use crate::memory::Charge;
use crate::outgoing::Outgoing;
use crate::peer::ConnectionKind;
use crate::proxies::Target;
use crate::submission::{Answer, Submission};
use crate::time::Moment;
use lydian_consensus::{Deployment, Rejected, Rule, is_block_mutated};
use lydian_engine::{Advance, BlockSource, Engine, EngineError, LogLine, Origin};
use lydian_primitives::{Block, BlockHash, Height, RawBlock};
use lydian_wire::message::block_size;
use lydian_wire::{Command, NetAddr};
use std::sync::Arc;
use std::time::Duration;

/// Something that happened.
#[derive(Debug)]
pub enum Event {
    /// A connection was established.
    Connected(NewPeer),
    /// A message was received. Its bytes are charged to the peer until the manager has processed them.
    Message {
        from: PeerId,
        command: Command,
        payload: Vec<u8>,
        charge: Charge,
    },
    /// The peer requested transactions that are not in the block.
    BadTransactionsRequest {
        from: PeerId,
    },
    /// `bytes` more bytes of an incomplete message have arrived.
    Progress {
        from: PeerId,
        bytes: u64,
    },
    /// A connection was closed. `wants_v1`: it ended before v2 was established, and v1 may work.
    Disconnected {
        peer: PeerId,
        wants_v1: bool,
    },
    AttemptFailed {
        attempt: AttemptId,
        failure: AttemptFailure,
    },
    /// A name was resolved to these addresses; there are none if that failed.
    Resolved {
        lookup: LookupId,
        addresses: Vec<NetAddr>,
    },
    /// The result of storing a block.
    Stored {
        from: PeerId,
        hash: BlockHash,
        intake: Intake,
        outcome: StoreOutcome,
        /// The block, if it extends the tip and is stored, or if a reader ordered it.
        new: Option<Arc<Block>>,
    },
    /// The mempool has decided on a submission, which is charged to its peer until the manager has processed this.
    Decided(Box<Answer>),
    /// Validation found that a stored block breaks a rule.
    Invalid {
        hash: BlockHash,
    },
    /// The stored bytes of a block turned out to be unusable.
    Unreadable {
        hash: BlockHash,
    },
    /// The active chain may have a new tip.
    ChainChanged,
    /// A question or a request of the operator.
    Ask(Question),
    /// Time has passed.
    Tick,
}

impl From<Answer> for Event {
    fn from(answer: Answer) -> Event {
        Event::Decided(Box::new(answer))
    }
}

/// The world around the manager.
pub trait Outside {
    /// Returns the manager of the node.
    fn manager(&mut self) -> &mut PeerManager;

    fn now(&self) -> Moment;

    /// Adds an item to the send queue of a peer. If its connection is closed, the item is dropped.
    fn push(&mut self, to: PeerId, item: Outgoing);

    /// Opens a connection; the answer is [`Event::Connected`] or [`Event::AttemptFailed`].
    fn dial(&mut self, attempt: AttemptId, kind: ConnectionKind, target: Target, v2: bool);

    /// Asks the system for at most `count_max` addresses of a name; the answer is [`Event::Resolved`].
    fn resolve(&mut self, lookup: LookupId, host: String, count_max: usize);

    /// Replaces a file with these bytes. A failure is only logged.
    fn save(&mut self, file: SavedFile, bytes: Vec<u8>);

    fn log(&mut self, line: LogLine);

    /// Queues a block for [`Delivery::store`], or returns it if the queue is full.
    fn queue_block(&mut self, block: Delivery) -> Result<(), Delivery>;

    /// Submits transactions to the mempool without waiting, as [`Submission::offer`] does, or returns them if there is
    /// no room; the answer is [`Event::Decided`].
    fn submit(&mut self, submission: Submission) -> Result<(), Submission>;

    /// Returns the bytes in the send queue of a peer; `None` if so much waits that nothing should be added.
    fn queued_bytes(&self, to: PeerId) -> Option<usize>;
}

/// Passes an event to the manager and carries out all actions that follow from it.
pub fn drive(outside: &mut impl Outside, event: Event) {
    take(outside, event);
    act(outside);
}

/// Passes an event to the manager. Its actions wait for [`act`].
pub fn take(outside: &mut impl Outside, event: Event) {
    let now = outside.now();
    let manager = outside.manager();
    match event {
        Event::Connected(new) => manager.connected(new, now),
        Event::Message { from, command, payload, charge: _charge } => manager.received(from, command, payload, now),
        Event::BadTransactionsRequest { from } => manager.bad_transactions_request(from, now),
        Event::Progress { from, bytes } => manager.progressed(from, bytes, now),
        Event::Disconnected { peer, wants_v1 } => {
            if wants_v1 {
                manager.retry_with_v1(peer);
            }
            manager.disconnected(peer, now);
        }
        Event::AttemptFailed { attempt, failure } => manager.attempt_failed(attempt, &failure, now),
        Event::Resolved { lookup, addresses } => manager.resolved(lookup, &addresses, now),
        Event::Stored { from, hash, intake: Intake::Ordered, outcome, new } => {
            manager.block_ordered(from, &hash, &outcome, new, now);
        }
        Event::Stored { from, hash, intake, outcome, new } => {
            manager.block_stored(from, &hash, intake, &outcome, now);
            if let Some(new) = new {
                manager.block_extends_tip(&new);
            }
        }
        Event::Decided(answer) => {
            let Answer { decided, charge: _charge } = *answer;
            manager.decided(decided, now);
        }
        Event::Invalid { hash } => manager.block_invalid(&hash, now),
        Event::Unreadable { hash } => manager.block_unreadable(&hash, now),
        Event::ChainChanged => manager.chain_changed(now),
        Event::Ask(question) => manager.ask(question, now),
        Event::Tick => {
            manager.chain_changed(now);
            manager.tick(now);
        }
    }
}

/// Carries out actions until none is left.
pub fn act(outside: &mut impl Outside) {
    loop {
        let actions = outside.manager().take_actions();
        if actions.is_empty() && !serve(outside) {
            return;
        }
        actions.into_iter().for_each(|action| carry_out(outside, action));
    }
}

/// Lets peers have the next of what they requested, as far as their send queues have room. Returns whether there are
/// actions.
fn serve(outside: &mut impl Outside) -> bool {
    for id in outside.manager().asking() {
        let queued = outside.queued_bytes(id);
        let manager = outside.manager();
        let reserve = |queued| manager.memory(id).and_then(|memory| memory.reserve_answer(queued));
        let has_room = queued.and_then(reserve).is_some();
        manager.serve(id, has_room);
    }
    outside.manager().has_actions()
}

/// The node shuts down cleanly: saves what must outlast the run.
pub fn end(outside: &mut impl Outside) {
    let now = outside.now();
    outside.manager().end(now);
    for action in outside.manager().take_actions() {
        if matches!(action, Action::Save { .. }) {
            carry_out(outside, action);
        }
    }
}

fn carry_out(outside: &mut impl Outside, action: Action) {
    match action {
        Action::Send { to, item } => outside.push(to, item),
        Action::Connect { attempt, kind, target, v2 } => outside.dial(attempt, kind, target, v2),
        Action::Resolve { lookup, host, count_max } => outside.resolve(lookup, host, count_max),
        Action::Save { file, bytes } => outside.save(file, bytes),
        Action::Log(line) => outside.log(line),
        Action::Submit(submission) => {
            if let Err(refused) = outside.submit(submission) {
                outside.manager().refused(refused);
            }
        }
        Action::Store { from, hash, block, intake, is_next } => {
            let charge = outside.manager().memory(from).map(|memory| memory.charge_received(block.memory_bytes()));
            let received = outside.now().elapsed;
            if let Err(lost) = outside.queue_block(Delivery { from, hash, block, intake, is_next, received, charge }) {
                // More blocks arrived than the download window holds. The block may be sent again.
                take(outside, lost.too_early());
            }
        }
    }
}

/// A block that waits to be stored.
#[derive(Debug)]
pub struct Delivery {
    pub from: PeerId,
    pub hash: BlockHash,
    pub block: ReceivedBlock,
    pub intake: Intake,
    /// It extends the tip, and the result has the block itself.
    pub is_next: bool,
    /// When all of its bytes were here: [`Moment::elapsed`].
    pub received: Duration,
    /// The block is charged to the peer as long as this exists.
    pub charge: Option<Charge>,
}

impl Delivery {
    /// Puts the block together, parses, checks and stores it, and returns the result for the manager. The delivery is
    /// dropped after that is passed on.
    pub fn store(&mut self, engine: &Engine, now: Moment) -> Result<Event, EngineError> {
        let block = std::mem::replace(&mut self.block, ReceivedBlock::Whole(Vec::new()));
        let waited = now.elapsed.saturating_sub(self.received);
        let waited = u64::try_from(waited.as_nanos()).unwrap_or(u64::MAX);
        let begun = engine.now_ns();
        let received = begun.saturating_sub(waited);
        let origin = Origin { source: BlockSource::Peer(self.from.0), received, begun, parsed: begun };
        let (outcome, new) = store_received(engine, block, self.intake, now, Some(origin), self.is_next)?;
        Ok(Event::Stored { from: self.from, hash: self.hash, intake: self.intake, outcome, new })
    }

    /// The result for a block that found no room: it may be sent again.
    fn too_early(&self) -> Event {
        let (outcome, new) = (StoreOutcome::TooEarly, None);
        Event::Stored { from: self.from, hash: self.hash, intake: self.intake, outcome, new }
    }
}

/// The result of storing a block, and the block itself if it is to be announced or was ordered.
type StoredBlock = (StoreOutcome, Option<Arc<Block>>);

/// The part of Core's `ProcessMessage` for `block` that looks at the transactions, and `ProcessCompactBlockTxns`.
fn store_received(
    engine: &Engine,
    received: ReceivedBlock,
    intake: Intake,
    now: Moment,
    origin: Option<Origin>,
    is_next: bool,
) -> Result<StoredBlock, EngineError> {
    let block = match parse(received) {
        Ok(block) => block,
        Err(reason) => return Ok((StoreOutcome::Malformed { reason }, None)),
    };
    // The check of a requested block finds the same faults, in Core's order of the rules.
    if intake != Intake::Requested && is_mutated(engine, &block) {
        return Ok((StoreOutcome::Mutated, None));
    }
    if intake == Intake::Unneeded {
        return Ok((StoreOutcome::Unneeded { header: *block.header() }, None));
    }
    let block = Arc::new(block);
    if intake == Intake::Ordered {
        return Ok((StoreOutcome::Intact, Some(block)));
    }
    let origin = origin.map(|origin| Origin { parsed: engine.now_ns(), ..origin });
    let kept = is_next.then(|| Arc::clone(&block));
    let outcome = store_parsed(engine, block, now, origin)?;
    let kept = kept.filter(|_| outcome == StoreOutcome::Stored);
    Ok((outcome, kept))
}

/// Parses a block as a peer sent it; an error is the reason why that is impossible.
fn parse(received: ReceivedBlock) -> Result<Block, String> {
    let bytes = match received {
        ReceivedBlock::Whole(mut bytes) => {
            // Core reads a block from the start of the message and ignores what follows it.
            bytes.truncate(block_size(&bytes).map_err(|error| error.to_string())?);
            bytes
        }
        ReceivedBlock::Parts(partial, txs) => partial.fill(&txs).map_err(|error| error.to_string())?,
    };
    RawBlock::new(bytes).parse().map_err(|error| error.to_string())
}

/// Returns whether a block is not what its header commits to: Core's `IsBlockMutated`, with its answer for a block
/// whose parent is unknown.
fn is_mutated(engine: &Engine, block: &Block) -> bool {
    let parent = block.header().prev_block;
    let height = engine.with_tree(|tree| tree.find(&parent).map(|parent| tree.height(parent).0.saturating_add(1)));
    let is_segwit = height.is_some_and(|height| engine.params().is_active(Deployment::Segwit, Height(height)));
    is_block_mutated(block, is_segwit)
}

/// Parses a requested block, and has the engine check what can be checked without coins, and store it.
pub fn store_block(engine: &Engine, bytes: Vec<u8>, now: Moment) -> Result<StoreOutcome, EngineError> {
    Ok(store_received(engine, ReceivedBlock::Whole(bytes), Intake::Requested, now, None, false)?.0)
}

fn store_parsed(
    engine: &Engine,
    block: Arc<Block>,
    now: Moment,
    origin: Option<Origin>,
) -> Result<StoreOutcome, EngineError> {
    let unix = i64::try_from(now.unix.0).unwrap_or(i64::MAX);
    let stored = match origin {
        Some(origin) => engine.store_block_from(block, unix, origin)?,
        None => engine.store_block(block, unix)?,
    };
    Ok(match stored {
        Ok(_) => StoreOutcome::Stored,
        Err(Rejected::Duplicate) => StoreOutcome::Known,
        Err(rejected @ Rejected::DuplicateInvalid) => StoreOutcome::KnownInvalid { reason: rejected.to_string() },
        Err(Rejected::Violation(violation)) => match violation.rule {
            Rule::TimeTooNew => StoreOutcome::TooEarly,
            rule => StoreOutcome::Invalid { reason: violation.to_string(), is_mutated: rule.is_of_the_bytes() },
        },
    })
}

/// Returns what a run of the validation means for the manager.
pub fn validated(advance: Advance) -> impl Iterator<Item = Event> {
    let invalid = advance.invalid.into_iter().map(|(hash, _)| Event::Invalid { hash });
    let unreadable = advance.unreadable.into_iter().map(|(hash, _)| Event::Unreadable { hash });
    invalid.chain(unreadable).chain([Event::ChainChanged])
}
