//! [`Hub`]: the mempool as streams see it, and the changes that they have not read.
//!
//! Input: from one thread, snapshots and groups of changes with the state behind them. Output: for a stream that joins,
//! the mempool at a state; for all streams, the groups from there on, encoded once. Invariants: a group turns the
//! mempool at one state into that at the next; at most [`STREAM_WAITING_MAX`] bytes of groups are kept, so that a
//! stream which is further behind has lost its place; without a stream, none are kept.

use crate::limits::{STREAM_WAITING_MAX, STREAMS_MAX};
use crate::message::{Hello, Message, PoolTx, State};
use crate::wire::encode;
use bytes::Bytes;
use lydian_index::ScriptHash;
use lydian_mempool::pool::Entry;
use lydian_primitives::Txid;
use lydian_stdx::lock;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::{Arc, Mutex};
use tokio::sync::watch;

/// A transaction of the mempool with what it spends.
#[derive(Clone, Debug)]
pub(super) struct Member {
    pub(super) entry: Arc<Entry>,
    pub(super) spent: Arc<[(ScriptHash, i64)]>,
}

impl Member {
    /// The frame of the message that adds it.
    pub(super) fn frame(&self) -> Vec<u8> {
        let entry = &self.entry;
        encode(&Message::Added(PoolTx {
            tx: Arc::clone(entry.tx()),
            fee: entry.fee().0,
            vsize: i64::from(entry.vsize()),
            sequence: entry.sequence(),
            time: entry.time(),
            spent: self.spent.to_vec(),
        }))
    }
}

/// A change of the mempool.
#[derive(Clone, Debug)]
pub(super) enum Edit {
    Added(Member),
    Removed(Txid),
}

/// What streams read.
#[derive(Debug)]
pub(super) struct Hub {
    pub(super) hello: Hello,
    content: Mutex<Content>,
    changed: watch::Sender<()>,
}

#[derive(Debug, Default)]
struct Content {
    members: Members,
    /// `None` until there is a snapshot.
    state: Option<State>,
    /// How often the mempool was taken from a snapshot: groups do not lead from one to the next.
    snapshots: u64,
    groups: VecDeque<Bytes>,
    /// The number of the first of them.
    first: u64,
    /// Their bytes.
    waiting: usize,
    streams: usize,
    is_ended: bool,
}

/// Transactions in the order in which they came.
#[derive(Debug, Default)]
struct Members {
    in_order: BTreeMap<u64, Member>,
    arrivals: HashMap<Txid, u64>,
    next: u64,
}

impl Members {
    fn add(&mut self, member: Member) {
        let txid = member.entry.txid();
        self.remove(&txid);
        self.arrivals.insert(txid, self.next);
        self.in_order.insert(self.next, member);
        self.next += 1;
    }

    fn remove(&mut self, txid: &Txid) {
        if let Some(arrival) = self.arrivals.remove(txid) {
            self.in_order.remove(&arrival);
        }
    }
}

/// The place of a stream: the group that it reads next.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cursor {
    snapshots: u64,
    next: u64,
}

/// The mempool at a state.
#[derive(Debug)]
pub(super) struct Base {
    pub(super) members: Vec<Member>,
    pub(super) state: State,
    pub(super) cursor: Cursor,
}

/// What a stream reads at its place.
#[derive(Debug)]
pub(super) enum Next {
    Group(Bytes),
    NotYet,
    /// There is another snapshot.
    Snapshot,
    /// The group is no longer kept.
    Lost,
    Ended,
}

impl Hub {
    pub(super) fn new(hello: Hello) -> Hub {
        Hub { hello, content: Mutex::default(), changed: watch::Sender::new(()) }
    }

    /// The mempool is this one now.
    pub(super) fn reset(&self, members: Vec<Member>, state: State) {
        {
            let mut content = lock(&self.content);
            content.forget_groups();
            content.snapshots += 1;
            content.members = Members::default();
            members.into_iter().for_each(|member| content.members.add(member));
            content.state = Some(state);
        }
        self.changed.send_replace(());
    }

    /// The mempool changes, and has this state then.
    pub(super) fn publish(&self, edits: Vec<Edit>, state: State) {
        // Most of the time without the lock, and only if there is a reader.
        let has_streams = lock(&self.content).streams > 0;
        let mut encoded = has_streams.then(|| group(&edits, state));
        {
            let mut content = lock(&self.content);
            if content.streams > 0 {
                content.push(encoded.take().unwrap_or_else(|| group(&edits, state)));
            }
            for edit in edits {
                match edit {
                    Edit::Added(member) => content.members.add(member),
                    Edit::Removed(txid) => content.members.remove(&txid),
                }
            }
            content.state = Some(state);
        }
        self.changed.send_replace(());
    }

    /// Streams end, and none joins any more.
    pub(super) fn end(&self) {
        lock(&self.content).is_ended = true;
        self.changed.send_replace(());
    }

    pub(super) fn is_ended(&self) -> bool {
        lock(&self.content).is_ended
    }

    /// A place among the streams; `None` if there is none.
    pub(super) fn join(self: &Arc<Hub>) -> Option<Joined> {
        let mut content = lock(&self.content);
        if content.is_ended || content.streams >= STREAMS_MAX {
            return None;
        }
        content.streams += 1;
        Some(Joined(Arc::clone(self)))
    }
}

/// The frames of a group.
fn group(edits: &[Edit], state: State) -> Bytes {
    let mut group = Vec::new();
    for edit in edits {
        match edit {
            Edit::Added(member) => group.extend(member.frame()),
            Edit::Removed(txid) => group.extend(encode(&Message::Removed(*txid))),
        }
    }
    group.extend(encode(&Message::State(state)));
    group.into()
}

impl Content {
    fn push(&mut self, group: Bytes) {
        self.waiting += group.len();
        self.groups.push_back(group);
        while self.waiting > STREAM_WAITING_MAX
            && let Some(group) = self.groups.pop_front()
        {
            self.waiting -= group.len();
            self.first += 1;
        }
    }

    fn forget_groups(&mut self) {
        self.first += self.groups.len() as u64;
        self.groups = VecDeque::new();
        self.waiting = 0;
    }

    fn next(&self, cursor: &Cursor) -> Next {
        if self.is_ended {
            return Next::Ended;
        }
        if self.snapshots != cursor.snapshots {
            return Next::Snapshot;
        }
        let Some(at) = cursor.next.checked_sub(self.first) else { return Next::Lost };
        match usize::try_from(at).ok().and_then(|at| self.groups.get(at)) {
            Some(group) => Next::Group(group.clone()),
            None => Next::NotYet,
        }
    }
}

/// A place among the streams, until it is dropped.
#[derive(Debug)]
pub(super) struct Joined(Arc<Hub>);

impl Joined {
    pub(super) fn hello(&self) -> Hello {
        self.0.hello.clone()
    }

    /// Notices every change from now on.
    pub(super) fn changes(&self) -> watch::Receiver<()> {
        self.0.changed.subscribe()
    }

    /// The mempool now; `None` if there is no snapshot yet.
    pub(super) fn base(&self) -> Option<Base> {
        let content = lock(&self.0.content);
        let next = content.first + content.groups.len() as u64;
        Some(Base {
            state: content.state?,
            members: content.members.in_order.values().cloned().collect(),
            cursor: Cursor { snapshots: content.snapshots, next },
        })
    }

    /// The next group, and moves on.
    pub(super) fn next(&self, cursor: &mut Cursor) -> Next {
        let next = lock(&self.0.content).next(cursor);
        if matches!(next, Next::Group(_)) {
            cursor.next += 1;
        }
        next
    }

    /// Whether the stream cannot go on from its place.
    pub(super) fn is_lost(&self, cursor: &Cursor) -> bool {
        matches!(lock(&self.0.content).next(cursor), Next::Lost | Next::Ended)
    }

    pub(super) fn is_ended(&self) -> bool {
        self.0.is_ended()
    }
}

impl Drop for Joined {
    fn drop(&mut self) {
        let mut content = lock(&self.0.content);
        content.streams -= 1;
        if content.streams == 0 {
            content.forget_groups();
        }
    }
}

#[cfg(test)]
impl Hub {
    /// Adds a group with these bytes.
    pub(super) fn push(&self, group: Vec<u8>) {
        lock(&self.content).push(group.into());
        self.changed.send_replace(());
    }

    /// The bytes of the groups.
    fn waiting(&self) -> usize {
        lock(&self.content).waiting
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::message::FEED_VERSION;
    use lydian_engine::Tip;
    use lydian_primitives::{BlockHash, Height};
    use lydian_query::PoolFees;

    pub(in super::super) fn hub() -> Arc<Hub> {
        Arc::new(Hub::new(Hello { version: FEED_VERSION, genesis: BlockHash([1; 32]), epoch: 7 }))
    }

    pub(in super::super) fn state(sequence: u64) -> State {
        let tip = Tip { height: Height(0), hash: BlockHash([1; 32]) };
        State { sequence, pool_tip: tip, tip, fees: PoolFees { min: 1, relay: 2, incremental: 3 } }
    }

    /// limit: STREAM_WAITING_MAX at
    /// limit: STREAM_WAITING_MAX above
    #[test]
    fn groups_wait_up_to_a_limit() {
        let hub = hub();
        hub.reset(Vec::new(), state(1));
        let (one, other) = (hub.join().unwrap(), hub.join().unwrap());
        let (mut cursor, mut early) = (one.base().unwrap().cursor, other.base().unwrap().cursor);
        hub.push(vec![1; STREAM_WAITING_MAX / 2]);
        hub.push(vec![2; STREAM_WAITING_MAX - STREAM_WAITING_MAX / 2]);
        assert_eq!(hub.waiting(), STREAM_WAITING_MAX);
        assert!(matches!(one.next(&mut cursor), Next::Group(group) if group[0] == 1));
        assert!(!other.is_lost(&early));
        hub.push(vec![3]);
        assert!(hub.waiting() <= STREAM_WAITING_MAX);
        assert!(other.is_lost(&early) && matches!(other.next(&mut early), Next::Lost));
        assert!(matches!(one.next(&mut cursor), Next::Group(group) if group[0] == 2));
        assert!(matches!(one.next(&mut cursor), Next::Group(group) if group[..] == [3]));
        assert!(matches!(one.next(&mut cursor), Next::NotYet));
        // A stream that joins now reads nothing of what is behind it.
        let late = hub.join().unwrap();
        let mut cursor = late.base().unwrap().cursor;
        assert!(matches!(late.next(&mut cursor), Next::NotYet));
        drop((one, other, late));
        assert_eq!(hub.waiting(), 0, "without a stream, none are kept");
        hub.publish(Vec::new(), state(2));
        assert_eq!(hub.waiting(), 0);
    }

    /// limit: STREAMS_MAX at
    /// limit: STREAMS_MAX above
    #[test]
    fn streams_have_places() {
        let hub = hub();
        let mut joined: Vec<Joined> = (0..STREAMS_MAX).map(|_| hub.join().unwrap()).collect();
        assert!(hub.join().is_none());
        joined.pop();
        joined.push(hub.join().unwrap());
        assert!(hub.join().is_none());
        drop(joined);
        hub.end();
        assert!(hub.join().is_none(), "the node is stopping");
    }

    #[test]
    fn another_snapshot_is_noticed() {
        let hub = hub();
        let joined = hub.join().unwrap();
        assert!(joined.base().is_none());
        hub.reset(Vec::new(), state(1));
        let mut cursor = joined.base().unwrap().cursor;
        hub.publish(Vec::new(), state(2));
        hub.reset(Vec::new(), state(9));
        assert!(matches!(joined.next(&mut cursor), Next::Snapshot) && !joined.is_lost(&cursor));
        let base = joined.base().unwrap();
        assert_eq!(base.state, state(9));
        hub.end();
        assert!(matches!(joined.next(&mut cursor), Next::Ended) && joined.is_ended());
    }
}
