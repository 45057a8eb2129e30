//! [`Follower`]: the thread that brings the mempool and the tip to the hub.
//!
//! Input: the feed and the snapshots of the mempool, and the chain. Output: a group of changes whenever there is a
//! snapshot behind them, a state at once when the tip is another, and otherwise every [`STATE_EVERY`]. If the mempool
//! no longer has the changes since the last group, its snapshot is taken, with the coins of the chain. The tip is read
//! before the snapshot; during a reorganisation, the snapshot may be older. While no snapshot can be made, the last
//! state is repeated, so that streams stay alive. Cost: a look at tip and snapshot every [`LOOK`]; coins are looked up
//! every [`RETRY`] at most, and only at the block of the snapshot.

use super::hub::{Edit, Hub, Member};
use crate::limits::STATE_EVERY;
use crate::message::State;
use lydian_engine::{Engine, Tip};
use lydian_index::ScriptHash;
use lydian_mempool::Mempool;
use lydian_mempool::pool::{Change, ChangeKind, Entry, Snapshot};
use lydian_primitives::OutPoint;
use lydian_query::{Chain, Pool, QueryError};
use lydian_stdx::{AbortOnPanic, IgnorePoison, lock};
use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Condvar, Mutex, Weak};
use std::thread::{self, JoinHandle};
use std::time::Duration;
use tokio::time::Instant;

/// The longest wait for the next look at tip and mempool.
const LOOK: Duration = Duration::from_millis(20);

/// After a snapshot could not be made, the wait for the next try.
const RETRY: Duration = Duration::from_millis(200);

/// Coins that are looked up at once. Then a state may be due.
const COINS_AT_ONCE: usize = 5_000;

/// Changes that are read at once.
const CHANGES_AT_ONCE: usize = 1_000;

/// The running thread. It ends when this is dropped.
#[derive(Debug)]
pub(super) struct Follower {
    end: Arc<End>,
    thread: Option<JoinHandle<()>>,
}

/// Whether the thread is to end.
#[derive(Debug, Default)]
struct End {
    is_over: Mutex<bool>,
    changed: Condvar,
}

impl End {
    fn is_over(&self) -> bool {
        *lock(&self.is_over)
    }

    fn set(&self) {
        *lock(&self.is_over) = true;
        self.changed.notify_all();
    }

    /// Waits for the end, so long at most.
    fn wait(&self, timeout: Duration) {
        let waits = |is_over: &mut bool| !*is_over;
        drop(self.changed.wait_timeout_while(lock(&self.is_over), timeout, waits).ignore_poison());
    }
}

impl Follower {
    pub(super) fn start(
        engine: &Arc<Engine>,
        mempool: Arc<Mempool>,
        chain: Arc<dyn Chain>,
        pool: Arc<dyn Pool>,
        hub: &Arc<Hub>,
    ) -> io::Result<Follower> {
        let end = Arc::new(End::default());
        let (engine, hub, ending) = (Arc::downgrade(engine), Arc::clone(hub), Arc::clone(&end));
        let mut following = Following::new(engine, mempool, chain, pool, hub);
        let run = move || {
            let _guard = AbortOnPanic;
            while !ending.is_over() && following.look().is_ok() {
                following.wait(&ending);
            }
        };
        let thread = thread::Builder::new().name("feed-mempool".to_owned()).spawn(run)?;
        Ok(Follower { end, thread: Some(thread) })
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        self.end.set();
        if let Some(thread) = self.thread.take() {
            // A panic ends the process.
            let _ = thread.join();
        }
    }
}

/// The node stops.
struct Stopping;

#[derive(Debug)]
struct Following {
    /// Weak, since what has this may outlive the engine.
    engine: Weak<Engine>,
    mempool: Arc<Mempool>,
    chain: Arc<dyn Chain>,
    pool: Arc<dyn Pool>,
    hub: Arc<Hub>,
    /// The last state, and when it was sent; `None` before the first snapshot.
    last: Option<(State, Instant)>,
    /// Whether what the hub has does not lead on, and a snapshot is needed.
    is_lost: bool,
    /// When the next snapshot is tried.
    retry_at: Option<Instant>,
}

impl Following {
    fn new(
        engine: Weak<Engine>,
        mempool: Arc<Mempool>,
        chain: Arc<dyn Chain>,
        pool: Arc<dyn Pool>,
        hub: Arc<Hub>,
    ) -> Following {
        Following { engine, mempool, chain, pool, hub, last: None, is_lost: true, retry_at: None }
    }

    /// Sends what is new.
    fn look(&mut self) -> Result<(), Stopping> {
        let tip = match self.chain.tip() {
            Ok(tip) => tip,
            Err(QueryError::Stopping) => return Err(Stopping),
            Err(_) => {
                self.repeat();
                return Ok(());
            }
        };
        let snapshot = self.mempool.snapshot();
        let state = self.state(tip, &snapshot);
        let Some((last, sent)) = self.last.filter(|_| !self.is_lost) else { return self.take(&snapshot, state) };
        let Some(edits) = self.edits(last.sequence, state.sequence) else { return self.take(&snapshot, state) };
        let is_new = state.sequence != last.sequence || state.tip != last.tip || state.pool_tip != last.pool_tip;
        if is_new || is_due(sent.elapsed()) {
            self.hub.publish(edits, state);
            self.last = Some((state, Instant::now()));
        }
        Ok(())
    }

    fn state(&self, tip: Tip, snapshot: &Snapshot) -> State {
        let info = snapshot.info();
        State { sequence: info.sequence, pool_tip: info.tip, tip, fees: self.pool.fees() }
    }

    /// The changes between two numbers; `None` if the mempool no longer has them.
    fn edits(&self, mut next: u64, end: u64) -> Option<Vec<Edit>> {
        let mut edits = Vec::new();
        while next < end {
            let count = CHANGES_AT_ONCE.min(usize::try_from(end - next).unwrap_or(usize::MAX));
            let changes = self.mempool.feed().read(next, count).ok().filter(|changes| !changes.is_empty())?;
            next += changes.len() as u64;
            edits.extend(changes.iter().map(edit));
        }
        Some(edits)
    }

    /// Sends the last state again if it is time: the hub has nothing newer.
    fn repeat(&mut self) {
        if let Some((last, sent)) = self.last
            && is_due(sent.elapsed())
        {
            self.hub.publish(Vec::new(), last);
            self.last = Some((last, Instant::now()));
        }
    }

    /// Takes the mempool from a snapshot. If some of its coins are missing, the chain has moved on, and so will the
    /// mempool: a later look tries again.
    fn take(&mut self, snapshot: &Snapshot, state: State) -> Result<(), Stopping> {
        self.is_lost = true;
        let engine = self.engine.upgrade().ok_or(Stopping)?;
        if self.retry_at.is_none_or(|at| Instant::now() >= at) {
            if let Some(members) = members(&engine, snapshot, || self.repeat()) {
                self.hub.reset(members, state);
                self.last = Some((state, Instant::now()));
                (self.is_lost, self.retry_at) = (false, None);
                return Ok(());
            }
            self.retry_at = Some(Instant::now() + RETRY);
        }
        self.repeat();
        Ok(())
    }

    /// Waits for a change, a moment at most.
    fn wait(&self, end: &End) {
        let Some((last, _)) = self.last.filter(|_| !self.is_lost) else { return end.wait(LOOK) };
        let began = Instant::now();
        let feed = self.mempool.feed();
        feed.wait(last.sequence, LOOK);
        // During a reorganisation the feed has changes long before a snapshot does; and one that has ended does not
        // wait.
        if self.mempool.snapshot().info().sequence <= last.sequence {
            feed.wait(feed.next(), LOOK.saturating_sub(began.elapsed()));
            end.wait(LOOK.saturating_sub(began.elapsed()));
        }
    }
}

/// Whether a state is to be sent so long after the last one: the next look would be too late.
fn is_due(since: Duration) -> bool {
    since + LOOK >= STATE_EVERY
}

fn edit(change: &Change) -> Edit {
    match &change.kind {
        ChangeKind::Added { spent } => {
            let spent = spent.iter().map(|coin| (ScriptHash::of(&coin.script_pubkey), coin.value.0));
            Edit::Added(Member { entry: Arc::clone(&change.entry), spent: spent.collect() })
        }
        ChangeKind::Removed { .. } => Edit::Removed(change.entry.txid()),
    }
}

/// The transactions of a snapshot in the order in which they came, with what they spend. `None` if the chain has moved
/// on. `between` is called between look-ups, which may take long.
fn members(engine: &Engine, snapshot: &Snapshot, mut between: impl FnMut()) -> Option<Vec<Member>> {
    // Without coins to look up, it does not matter of which block they would be.
    let of = snapshot.info().tip;
    if snapshot.members().next().is_some() && engine.settled_tip() != of {
        return None;
    }
    let mut entries: Vec<&Arc<Entry>> = snapshot.members().map(|member| member.entry()).collect();
    entries.sort_by_key(|entry| (entry.sequence(), entry.time()));
    let in_pool = |outpoint: &OutPoint| {
        let parent = snapshot.get(&outpoint.txid)?.entry().tx().view();
        let output = parent.outputs().nth(usize::try_from(outpoint.vout).ok()?)?;
        Some((ScriptHash::of(output.script_pubkey), output.value.0))
    };
    let prevouts = || entries.iter().flat_map(|entry| entry.tx().view().inputs().map(|input| input.prevout));
    let outside: Vec<OutPoint> = prevouts().filter(|outpoint| snapshot.get(&outpoint.txid).is_none()).collect();
    let mut outputs = HashMap::new();
    for some in outside.chunks(COINS_AT_ONCE) {
        between();
        // An error of the disk is not for readers of the mempool: others report it.
        let (_, coins) = engine.coins_now(some).ok().filter(|(tip, _)| *tip == of)?;
        for (outpoint, coin) in some.iter().zip(coins) {
            let coin = coin?;
            outputs.insert(*outpoint, (ScriptHash::of(&coin.script_pubkey), coin.value.0));
        }
    }
    let member = |entry: &Arc<Entry>| {
        let spent = entry.tx().view().inputs().map(|input| input.prevout);
        let spent = spent.map(|outpoint| in_pool(&outpoint).or_else(|| outputs.get(&outpoint).copied()));
        Some(Member { entry: Arc::clone(entry), spent: spent.collect::<Option<_>>()? })
    };
    entries.into_iter().map(member).collect()
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A feed that is followed by hand.
    pub(in super::super) struct ByHand(Following);

    impl ByHand {
        pub(in super::super) fn new(
            engine: &Arc<Engine>,
            mempool: &Arc<Mempool>,
            chain: Arc<dyn Chain>,
            pool: Arc<dyn Pool>,
            hub: &Arc<Hub>,
        ) -> ByHand {
            let (mempool, hub) = (Arc::clone(mempool), Arc::clone(hub));
            ByHand(Following::new(Arc::downgrade(engine), mempool, chain, pool, hub))
        }

        /// Goes on with another engine.
        pub(in super::super) fn set_engine(&mut self, engine: &Arc<Engine>) {
            self.0.engine = Arc::downgrade(engine);
        }

        /// Whether coins of the engine would be looked up for the mempool of now.
        pub(in super::super) fn looks_up(engine: &Engine, mempool: &Mempool) -> bool {
            let mut looks_up = false;
            members(engine, &mempool.snapshot(), || looks_up = true);
            looks_up
        }

        /// Whether it waits before it looks coins up again.
        pub(in super::super) fn backs_off(&self) -> bool {
            self.0.retry_at.is_some()
        }

        /// Looks once. Returns whether the node runs.
        pub(in super::super) fn look(&mut self) -> bool {
            self.0.look().is_ok()
        }
    }

    /// limit: STATE_EVERY at
    /// limit: STATE_EVERY above
    #[test]
    fn a_state_is_sent_before_the_time_is_over() {
        assert!(!is_due(Duration::ZERO));
        assert!(!is_due(STATE_EVERY - LOOK - Duration::from_millis(1)));
        // At and after the limit there was one before.
        assert!(is_due(STATE_EVERY - LOOK) && is_due(STATE_EVERY) && is_due(STATE_EVERY + LOOK));
    }
}
