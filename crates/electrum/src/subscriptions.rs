//! [`Subscriptions`]: which sessions watch which scripts, outputs and headers, and the last status that was sent.
//!
//! Input: subscriptions of sessions; new statuses, from the notifier. Output: marks in the outbox of each session,
//! which its task sends. Invariants: a status that changed after it was answered is sent; a session that does not read
//! holds one mark for each of its subscriptions, however often they change. Memory: about 180 bytes for a subscription
//! with the session's own set. Trees, since a hash table that has just grown takes twice as much.

use crate::fault::{Fault, code};
use crate::limits::{SUBSCRIPTIONS_MAX, SUBSCRIPTIONS_PER_SESSION_MAX};
use lydian_primitives::OutPoint;
use lydian_query::{OutpointStatus, ScriptHash};
use lydian_stdx::lock;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::{Arc, Mutex};
use tokio::sync::Notify;

/// The status of a script.
pub(crate) type Status = Option<[u8; 32]>;

#[derive(Debug, Default)]
pub(crate) struct Subscriptions {
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    scripts: BTreeMap<ScriptHash, Watched<Status>>,
    outpoints: HashMap<OutPoint, Output>,
    outboxes: HashMap<u64, Arc<Outbox>>,
    /// The sessions that want headers.
    headers: HashSet<u64>,
    count: usize,
    next: u64,
}

/// What is watched, and by which sessions.
#[derive(Debug)]
struct Watched<T> {
    /// `None` until it was computed.
    told: Option<T>,
    sessions: Sessions,
}

impl<T> Watched<T> {
    fn new() -> Watched<T> {
        Watched { told: None, sessions: Sessions::Some(Box::default()) }
    }
}

/// The ids of sessions. Most scripts are watched by one.
#[derive(Debug)]
enum Sessions {
    One(u64),
    Some(Box<[u64]>),
}

impl Sessions {
    fn ids(&self) -> &[u64] {
        match self {
            Sessions::One(id) => std::slice::from_ref(id),
            Sessions::Some(ids) => ids,
        }
    }

    fn add(&mut self, id: u64) {
        *self = match self.ids() {
            [] => Sessions::One(id),
            ids => Sessions::Some([ids, &[id]].concat().into_boxed_slice()),
        };
    }

    /// Removes an id once; returns how often it was removed.
    fn remove_one(&mut self, id: u64) -> usize {
        let mut ids = self.ids().to_vec();
        let Some(index) = ids.iter().position(|session| *session == id) else { return 0 };
        ids.swap_remove(index);
        *self = match ids[..] {
            [id] => Sessions::One(id),
            _ => Sessions::Some(ids.into_boxed_slice()),
        };
        1
    }
}

#[derive(Debug)]
struct Output {
    /// The script of the output, if it is known.
    script: Option<ScriptHash>,
    watched: Watched<OutpointStatus>,
}

/// What a session is to be told.
#[derive(Debug, Default)]
pub(crate) struct Outbox {
    marks: Mutex<Marks>,
    marked: Notify,
}

#[derive(Debug, Default)]
pub(crate) struct Marks {
    pub(crate) has_header: bool,
    pub(crate) scripts: HashSet<ScriptHash>,
    pub(crate) outpoints: HashSet<OutPoint>,
}

impl Outbox {
    fn mark(&self, mark: impl FnOnce(&mut Marks)) {
        mark(&mut lock(&self.marks));
        self.marked.notify_one();
    }

    /// Resolves when there is something to send.
    pub(crate) async fn wait(&self) {
        self.marked.notified().await;
    }

    pub(crate) fn take(&self) -> Marks {
        std::mem::take(&mut lock(&self.marks))
    }
}

/// Subscriptions that something may have changed.
#[derive(Debug, Default)]
pub(crate) struct Affected {
    pub(crate) scripts: Vec<ScriptHash>,
    pub(crate) outpoints: Vec<OutPoint>,
}

impl Subscriptions {
    /// A new session.
    pub(crate) fn open(&self) -> (u64, Arc<Outbox>) {
        let outbox = Arc::new(Outbox::default());
        let mut inner = lock(&self.inner);
        inner.next += 1;
        let id = inner.next;
        inner.outboxes.insert(id, Arc::clone(&outbox));
        (id, outbox)
    }

    /// A session ends.
    pub(crate) fn close(&self, id: u64, scripts: &BTreeSet<ScriptHash>, outpoints: &HashSet<OutPoint>) {
        let mut inner = lock(&self.inner);
        inner.outboxes.remove(&id);
        inner.headers.remove(&id);
        scripts.iter().for_each(|script| inner.leave(id, script));
        outpoints.iter().for_each(|outpoint| inner.leave_outpoint(id, outpoint));
    }

    pub(crate) fn wants_headers(&self, id: u64) {
        let mut inner = lock(&self.inner);
        if inner.outboxes.contains_key(&id) {
            inner.headers.insert(id);
        }
    }

    /// Notes a subscription of a session, which has `own` of them. Returns the status if it is known.
    pub(crate) fn join(&self, id: u64, own: &Own, script: ScriptHash) -> Result<Option<Status>, Fault> {
        let mut inner = lock(&self.inner);
        inner.check(id, own)?;
        inner.count += 1;
        let watched = inner.scripts.entry(script).or_insert_with(Watched::new);
        watched.sessions.add(id);
        Ok(watched.told)
    }

    pub(crate) fn join_outpoint(
        &self,
        id: u64,
        own: &Own,
        outpoint: OutPoint,
        script: Option<ScriptHash>,
    ) -> Result<(), Fault> {
        let mut inner = lock(&self.inner);
        inner.check(id, own)?;
        inner.count += 1;
        let output = inner.outpoints.entry(outpoint).or_insert_with(|| Output { script, watched: Watched::new() });
        output.script = output.script.or(script);
        output.watched.sessions.add(id);
        Ok(())
    }

    /// A status that was computed for an answer. What the notifier found out meanwhile is newer.
    pub(crate) fn answered(&self, script: &ScriptHash, status: Status) {
        if let Some(watched) = lock(&self.inner).scripts.get_mut(script) {
            watched.told.get_or_insert(status);
        }
    }

    pub(crate) fn answered_outpoint(&self, outpoint: &OutPoint, status: OutpointStatus) {
        if let Some(output) = lock(&self.inner).outpoints.get_mut(outpoint) {
            output.watched.told.get_or_insert(status);
        }
    }

    pub(crate) fn leave(&self, id: u64, script: &ScriptHash) {
        lock(&self.inner).leave(id, script);
    }

    pub(crate) fn leave_outpoint(&self, id: u64, outpoint: &OutPoint) {
        lock(&self.inner).leave_outpoint(id, outpoint);
    }

    /// The scripts of all subscriptions.
    pub(crate) fn scripts(&self) -> Vec<ScriptHash> {
        let inner = lock(&self.inner);
        let of_outputs = inner.outpoints.values().filter_map(|output| output.script);
        inner.scripts.keys().copied().chain(of_outputs).collect()
    }

    /// Everything that is watched.
    pub(crate) fn all(&self) -> Affected {
        let inner = lock(&self.inner);
        Affected {
            scripts: inner.scripts.keys().copied().collect(),
            outpoints: inner.outpoints.keys().copied().collect(),
        }
    }

    /// What is watched of these scripts; and the outputs that do not exist yet, which any new transaction may make.
    pub(crate) fn affected(&self, touched: &HashSet<ScriptHash>) -> Affected {
        let inner = lock(&self.inner);
        let is_affected = |output: &Output| output.script.is_none_or(|script| touched.contains(&script));
        let outpoints = inner.outpoints.iter().filter(|(_, output)| is_affected(output));
        Affected {
            scripts: touched.iter().filter(|script| inner.scripts.contains_key(*script)).copied().collect(),
            outpoints: outpoints.map(|(outpoint, _)| *outpoint).collect(),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        lock(&self.inner).count == 0
    }

    /// There is a new tip.
    pub(crate) fn tell_of_header(&self) {
        let inner = lock(&self.inner);
        for outbox in inner.headers.iter().filter_map(|id| inner.outboxes.get(id)) {
            outbox.mark(|marks| marks.has_header = true);
        }
    }

    /// The statuses of scripts were computed. Sessions that had another one are notified, each once.
    pub(crate) fn tell(&self, statuses: &[(ScriptHash, Status)]) {
        let mut inner = lock(&self.inner);
        let Inner { scripts, outboxes, .. } = &mut *inner;
        let mut changed: HashMap<u64, Vec<ScriptHash>> = HashMap::new();
        for (script, status) in statuses {
            if let Some(watched) = scripts.get_mut(script)
                && watched.told.replace(*status) != Some(*status)
            {
                for id in watched.sessions.ids() {
                    changed.entry(*id).or_default().push(*script);
                }
            }
        }
        for (id, scripts) in changed {
            if let Some(outbox) = outboxes.get(&id) {
                outbox.mark(|marks| marks.scripts.extend(scripts));
            }
        }
    }

    pub(crate) fn tell_outpoint(&self, outpoint: &OutPoint, status: OutpointStatus) {
        let mut inner = lock(&self.inner);
        let Inner { outpoints, outboxes, .. } = &mut *inner;
        if let Some(output) = outpoints.get_mut(outpoint)
            && output.watched.told.replace(status) != Some(status)
        {
            for outbox in output.watched.sessions.ids().iter().filter_map(|id| outboxes.get(id)) {
                outbox.mark(|marks| marks.outpoints.extend([*outpoint]));
            }
        }
    }

    /// The status of a script that was sent last; `None` if no session watches it.
    pub(crate) fn told(&self, script: &ScriptHash) -> Option<Status> {
        lock(&self.inner).scripts.get(script).and_then(|watched| watched.told)
    }

    pub(crate) fn told_outpoint(&self, outpoint: &OutPoint) -> Option<OutpointStatus> {
        lock(&self.inner).outpoints.get(outpoint).and_then(|output| output.watched.told)
    }
}

/// The subscriptions that a session has.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Own {
    pub(crate) count: usize,
    /// A client on this machine may have as many as there are.
    pub(crate) is_local: bool,
}

impl Inner {
    fn check(&self, id: u64, own: &Own) -> Result<(), Fault> {
        // The members of a batch are answered to their end, also if the connection has ended meanwhile.
        if !self.outboxes.contains_key(&id) {
            return Err(Fault::new(code::EXCESSIVE, "the connection has ended"));
        }
        if self.count >= SUBSCRIPTIONS_MAX {
            let words = format!("the server has {SUBSCRIPTIONS_MAX} subscriptions and takes no more");
            return Err(Fault::new(code::EXCESSIVE, words));
        }
        if !own.is_local && own.count >= SUBSCRIPTIONS_PER_SESSION_MAX {
            let words = format!("a client may have {SUBSCRIPTIONS_PER_SESSION_MAX} subscriptions");
            return Err(Fault::new(code::EXCESSIVE, words));
        }
        Ok(())
    }

    fn leave(&mut self, id: u64, script: &ScriptHash) {
        let Some(watched) = self.scripts.get_mut(script) else { return };
        self.count -= watched.sessions.remove_one(id);
        if watched.sessions.ids().is_empty() {
            self.scripts.remove(script);
        }
    }

    fn leave_outpoint(&mut self, id: u64, outpoint: &OutPoint) {
        let Some(output) = self.outpoints.get_mut(outpoint) else { return };
        self.count -= output.watched.sessions.remove_one(id);
        if output.watched.sessions.ids().is_empty() {
            self.outpoints.remove(outpoint);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn script(number: usize) -> ScriptHash {
        let mut hash = [0; 32];
        hash[..8].copy_from_slice(&(number as u64).to_le_bytes());
        ScriptHash(hash)
    }

    fn own(count: usize, is_local: bool) -> Own {
        Own { count, is_local }
    }

    #[test]
    fn a_change_is_told_once_to_each() {
        let subscriptions = Subscriptions::default();
        let ((one, first), (two, second)) = (subscriptions.open(), subscriptions.open());
        assert_eq!(subscriptions.join(one, &own(0, true), script(1)), Ok(None));
        // The notifier is faster than the answer.
        subscriptions.tell(&[(script(1), Some([2; 32]))]);
        subscriptions.answered(&script(1), Some([1; 32]));
        assert_eq!(subscriptions.told(&script(1)), Some(Some([2; 32])));
        assert_eq!(first.take().scripts.len(), 1);
        assert_eq!(subscriptions.join(two, &own(0, true), script(1)), Ok(Some(Some([2; 32]))));
        subscriptions.tell(&[(script(1), Some([2; 32]))]);
        assert!(first.take().scripts.is_empty() && second.take().scripts.is_empty(), "nothing changed");
        subscriptions.tell(&[(script(1), None)]);
        subscriptions.tell(&[(script(1), Some([3; 32]))]);
        assert_eq!((first.take().scripts.len(), second.take().scripts.len()), (1, 1));
        subscriptions.close(one, &BTreeSet::from([script(1)]), &HashSet::new());
        assert!(!subscriptions.is_empty());
        subscriptions.leave(two, &script(1));
        assert!(subscriptions.is_empty() && subscriptions.told(&script(1)).is_none());
    }

    /// Members of a batch go on when their connection has ended.
    #[test]
    fn nothing_is_left_of_a_session_that_ended() {
        let subscriptions = Subscriptions::default();
        let (id, _outbox) = subscriptions.open();
        let outpoint = OutPoint { txid: lydian_primitives::Txid([1; 32]), vout: 0 };
        assert!(subscriptions.join(id, &own(0, true), script(1)).is_ok());
        subscriptions.close(id, &BTreeSet::from([script(1), script(2)]), &HashSet::from([outpoint]));
        assert!(subscriptions.join(id, &own(0, true), script(2)).is_err());
        assert!(subscriptions.join_outpoint(id, &own(0, true), outpoint, None).is_err());
        subscriptions.wants_headers(id);
        let inner = lock(&subscriptions.inner);
        assert!(inner.count == 0 && inner.scripts.is_empty() && inner.outpoints.is_empty() && inner.headers.is_empty());
    }

    #[test]
    fn sessions_are_added_and_removed() {
        let mut sessions = Watched::<Status>::new().sessions;
        for ids in [&[][..], &[7], &[7, 8], &[7, 8, 7]] {
            assert_eq!(sessions.ids(), ids);
            sessions.add(if ids.len() == 1 { 8 } else { 7 });
        }
        assert_eq!((sessions.remove_one(9), sessions.remove_one(8), sessions.ids()), (0, 1, &[7, 7, 7][..]));
        assert_eq!((0..4).map(|_| sessions.remove_one(7)).sum::<usize>(), 3);
        assert!(sessions.ids().is_empty());
        // Entries of the tree, of which it fills two thirds, with the set of the session.
        let entry = size_of::<(ScriptHash, Watched<Status>)>() + size_of::<ScriptHash>();
        assert!(entry * 3 / 2 <= 180, "{entry}");
    }

    /// limit: SUBSCRIPTIONS_MAX at
    /// limit: SUBSCRIPTIONS_MAX above
    #[test]
    fn subscriptions_have_an_end() {
        let subscriptions = Subscriptions::default();
        let (id, _outbox) = subscriptions.open();
        lock(&subscriptions.inner).count = SUBSCRIPTIONS_MAX - 1;
        assert_eq!(subscriptions.join(id, &own(9_999_999, true), script(1)), Ok(None));
        let refused = subscriptions.join(id, &own(9_999_999, true), script(2)).unwrap_err();
        assert_eq!((refused.code, &*refused.message), (-101, "the server has 1000000 subscriptions and takes no more"));
    }

    /// limit: SUBSCRIPTIONS_PER_SESSION_MAX at
    /// limit: SUBSCRIPTIONS_PER_SESSION_MAX above
    #[test]
    fn a_distant_client_has_fewer() {
        let subscriptions = Subscriptions::default();
        let (id, _outbox) = subscriptions.open();
        let at = SUBSCRIPTIONS_PER_SESSION_MAX;
        assert_eq!(subscriptions.join(id, &own(at - 1, false), script(1)), Ok(None));
        assert_eq!(subscriptions.join(id, &own(at, false), script(2)).unwrap_err().code, -101);
        assert_eq!(subscriptions.join(id, &own(at, true), script(3)), Ok(None));
    }
}
