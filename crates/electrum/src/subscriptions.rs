//! [`Subscriptions`]: which sessions watch which scripts, outputs, transactions and headers, and what was sent last.
//!
//! Input: subscriptions of sessions; what the notifier found. Output: marks in the outbox of each session, which its
//! task sends. Invariants: a status that changed after it was answered is sent; a session that does not read holds one
//! mark for each of its subscriptions, however often they change. Every answer is computed when it is given, so that
//! none is older than another answer of the same session; if it differs from what was sent last, the notifier looks
//! again, and sends what it finds to all that may know something else. Memory: below 200 bytes for a subscription with
//! the session's own number of it and its mark ([`crate::watched`]).

use crate::fault::{Fault, code};
use crate::limits::{SUBSCRIPTIONS_MAX, SUBSCRIPTIONS_PER_SESSION_MAX};
use crate::watched::{Found, SmallHeight, SmallStatus, Status, Table, Watch};
use lydian_primitives::{OutPoint, Txid};
use lydian_query::{ScriptHash, Touched};
use lydian_stdx::lock;
use std::collections::hash_map::RandomState;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::hash::BuildHasher;
use std::sync::{Arc, Mutex};
use tokio::sync::Notify;

#[derive(Debug, Default)]
pub(crate) struct Subscriptions {
    /// Makes the numbers of what is watched.
    salt: RandomState,
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    scripts: Table<ScriptHash, Status>,
    outputs: Table<OutPoint, SmallStatus>,
    transactions: Table<Txid, Option<SmallHeight>>,
    /// The notifier looks at them soon, so that there are few.
    doubts: HashMap<u64, Doubt>,
    outboxes: HashMap<u64, Arc<Outbox>>,
    /// The sessions that want headers.
    headers: HashSet<u64>,
    count: usize,
    next: u64,
}

/// Something that was answered otherwise than it was sent last.
#[derive(Clone, Copy, Debug)]
struct Doubt {
    watch: Watch,
    /// `None` if there are several such answers.
    answered: Option<Found>,
    /// Whether the notifier began to look after the answers. What it has found otherwise may be older.
    is_seen: bool,
}

/// What is to be sent to a session.
#[derive(Debug, Default)]
pub(crate) struct Outbox {
    marks: Mutex<Marks>,
    marked: Notify,
}

#[derive(Debug, Default)]
pub(crate) struct Marks {
    pub(crate) has_header: bool,
    /// The numbers of what has changed.
    pub(crate) changed: BTreeSet<u64>,
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

    /// A session ends. `own`: the numbers of what it watches.
    pub(crate) fn close(&self, id: u64, own: &BTreeSet<u64>) {
        let mut inner = lock(&self.inner);
        inner.outboxes.remove(&id);
        inner.headers.remove(&id);
        own.iter().for_each(|number| inner.leave(id, *number));
    }

    pub(crate) fn wants_headers(&self, id: u64) {
        let mut inner = lock(&self.inner);
        if inner.outboxes.contains_key(&id) {
            inner.headers.insert(id);
        }
    }

    /// Returns whether the session wanted headers.
    pub(crate) fn wants_no_headers(&self, id: u64) -> bool {
        lock(&self.inner).headers.remove(&id)
    }

    /// The number of what may be watched. That two of a million have the same one happens in one of 37 million cases.
    pub(crate) fn number(&self, watch: &Watch) -> u64 {
        self.salt.hash_one(watch)
    }

    /// Notes a subscription of a session, which has `own` of them.
    pub(crate) fn join(&self, id: u64, own: &Own, number: u64, watch: &Watch) -> Result<(), Fault> {
        let mut inner = lock(&self.inner);
        inner.check(id, own)?;
        inner.check_number(number, watch)?;
        inner.count += 1;
        match *watch {
            Watch::Script(script) => inner.scripts.join(number, script, id),
            Watch::Output(outpoint) => inner.outputs.join(number, outpoint, id),
            Watch::Transaction(txid) => inner.transactions.join(number, txid, id),
        }
        Ok(())
    }

    /// What was found for an answer after the session had joined. Either it or what was sent last may be the newer one.
    pub(crate) fn answered(&self, watch: &Watch, found: &Found) {
        let (mut inner, number) = (lock(&self.inner), self.number(watch));
        let is_as_sent = match watch {
            Watch::Script(script) => inner.scripts.answered(number, script, found),
            Watch::Output(outpoint) => inner.outputs.answered(number, outpoint, found),
            Watch::Transaction(txid) => inner.transactions.answered(number, txid, found),
        };
        if !is_as_sent {
            let doubt = Doubt { watch: *watch, answered: Some(*found), is_seen: false };
            let doubt = inner.doubts.entry(number).or_insert(doubt);
            if doubt.answered != Some(*found) {
                (doubt.answered, doubt.is_seen) = (None, false);
            }
        }
    }

    /// What the notifier is to look at again, from now on.
    pub(crate) fn doubts(&self) -> Vec<Watch> {
        let see = |doubt: &mut Doubt| {
            doubt.is_seen = true;
            doubt.watch
        };
        lock(&self.inner).doubts.values_mut().map(see).collect()
    }

    pub(crate) fn leave(&self, id: u64, number: u64) {
        lock(&self.inner).leave(id, number);
    }

    /// The scripts of all subscriptions.
    pub(crate) fn scripts(&self) -> Vec<ScriptHash> {
        lock(&self.inner).scripts.keys().collect()
    }

    /// The outputs and transactions of all subscriptions.
    pub(crate) fn others(&self) -> Vec<Watch> {
        let inner = lock(&self.inner);
        let transactions = inner.transactions.keys().map(Watch::Transaction);
        inner.outputs.keys().map(Watch::Output).chain(transactions).collect()
    }

    /// Those of the scripts that are watched.
    pub(crate) fn watched_scripts<'a>(&self, scripts: impl IntoIterator<Item = &'a ScriptHash>) -> Vec<Watch> {
        let numbered = scripts.into_iter().map(|script| Watch::Script(*script));
        self.watched(numbered)
    }

    /// Those of the outputs and transactions that are watched.
    pub(crate) fn watched_others(&self, touched: &Touched) -> Vec<Watch> {
        let transactions = touched.txids.iter().map(|txid| Watch::Transaction(*txid));
        self.watched(touched.outpoints.iter().map(|outpoint| Watch::Output(*outpoint)).chain(transactions))
    }

    fn watched(&self, all: impl Iterator<Item = Watch>) -> Vec<Watch> {
        let inner = lock(&self.inner);
        all.filter(|watch| inner.has(self.number(watch), watch)).collect()
    }

    /// Whether a session watches an output or a transaction.
    pub(crate) fn has_others(&self) -> bool {
        let inner = lock(&self.inner);
        !inner.outputs.is_empty() || !inner.transactions.is_empty()
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

    /// Notes what the notifier found. Sessions that may know something else are notified.
    pub(crate) fn tell(&self, all: &[(Watch, Found)]) {
        let mut inner = lock(&self.inner);
        let mut changed: HashMap<u64, Vec<u64>> = HashMap::new();
        for (watch, found) in all {
            let number = self.number(watch);
            let doubt = inner.doubts.get(&number).filter(|doubt| doubt.watch == *watch).copied();
            if doubt.is_some_and(|doubt| !doubt.is_seen) {
                // It may be older than what was answered meanwhile: the next look decides.
                continue;
            }
            let is_doubtful = doubt.is_some_and(|doubt| doubt.answered != Some(*found));
            if doubt.is_some() {
                inner.doubts.remove(&number);
            }
            let ids = match watch {
                Watch::Script(script) => inner.scripts.tell(number, script, found, is_doubtful),
                Watch::Output(outpoint) => inner.outputs.tell(number, outpoint, found, is_doubtful),
                Watch::Transaction(txid) => inner.transactions.tell(number, txid, found, is_doubtful),
            };
            for id in ids {
                changed.entry(*id).or_default().push(number);
            }
        }
        for (id, numbers) in changed {
            if let Some(outbox) = inner.outboxes.get(&id) {
                outbox.mark(|marks| marks.changed.extend(numbers));
            }
        }
    }

    /// What was sent last of what has this number; `None` if no session watches it.
    pub(crate) fn known(&self, number: u64) -> Option<(Watch, Found)> {
        let inner = lock(&self.inner);
        let script = inner.scripts.known(number).map(|(script, found)| (Watch::Script(script), found));
        let output = || inner.outputs.known(number).map(|(outpoint, found)| (Watch::Output(outpoint), found));
        let transaction = || inner.transactions.known(number).map(|(txid, found)| (Watch::Transaction(txid), found));
        script.or_else(output).or_else(transaction)
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

    /// An error if the number is that of something else that is watched.
    fn check_number(&self, number: u64, watch: &Watch) -> Result<(), Fault> {
        let (mut script, mut output, mut transaction) = (None, None, None);
        match watch {
            Watch::Script(of) => script = Some(of),
            Watch::Output(of) => output = Some(of),
            Watch::Transaction(of) => transaction = Some(of),
        }
        let is_other = self.scripts.has_other(number, script)
            || self.outputs.has_other(number, output)
            || self.transactions.has_other(number, transaction);
        match is_other {
            true => {
                Err(Fault::new(code::INTERNAL, "another subscription has the same salted hash; restart the server"))
            }
            false => Ok(()),
        }
    }

    fn has(&self, number: u64, watch: &Watch) -> bool {
        match watch {
            Watch::Script(script) => self.scripts.has(number, script),
            Watch::Output(outpoint) => self.outputs.has(number, outpoint),
            Watch::Transaction(txid) => self.transactions.has(number, txid),
        }
    }

    fn leave(&mut self, id: u64, number: u64) {
        let left = self.scripts.leave(number, id) + self.outputs.leave(number, id);
        self.count -= left + self.transactions.leave(number, id);
        if self.doubts.get(&number).is_some_and(|doubt| !self.has(number, &doubt.watch)) {
            self.doubts.remove(&number);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lydian_query::OutpointStatus;

    fn script(number: usize) -> Watch {
        let mut hash = [0; 32];
        hash[..8].copy_from_slice(&(number as u64).to_le_bytes());
        Watch::Script(ScriptHash(hash))
    }

    fn output(vout: u32) -> Watch {
        Watch::Output(OutPoint { txid: Txid([1; 32]), vout })
    }

    fn own(count: usize, is_local: bool) -> Own {
        Own { count, is_local }
    }

    impl Subscriptions {
        fn join_it(&self, id: u64, own: &Own, watch: &Watch) -> Result<(), Fault> {
            self.join(id, own, self.number(watch), watch)
        }

        fn known_of(&self, watch: &Watch) -> Option<Found> {
            self.known(self.number(watch)).map(|(of, found)| {
                assert_eq!(of, *watch);
                found
            })
        }
    }

    #[test]
    fn a_change_is_told_once_to_each() {
        let subscriptions = Subscriptions::default();
        let ((one, first), (two, second)) = (subscriptions.open(), subscriptions.open());
        let found = |byte: u8| Found::Script(Some([byte; 32]));
        assert_eq!(subscriptions.join_it(one, &own(0, true), &script(1)), Ok(()));
        // The notifier is faster than the answer.
        subscriptions.tell(&[(script(1), found(2))]);
        subscriptions.answered(&script(1), &found(1));
        assert_eq!(subscriptions.known_of(&script(1)), Some(found(2)));
        assert_eq!((first.take().changed.len(), subscriptions.doubts()), (1, vec![script(1)]));
        // It may have been before the answer: it is sent again.
        subscriptions.tell(&[(script(1), found(2))]);
        assert_eq!((first.take().changed.len(), subscriptions.doubts()), (1, Vec::new()));
        assert_eq!(subscriptions.join_it(two, &own(0, true), &script(1)), Ok(()));
        subscriptions.answered(&script(1), &found(2));
        subscriptions.tell(&[(script(1), found(2))]);
        assert!(first.take().changed.is_empty() && second.take().changed.is_empty(), "nothing changed");
        subscriptions.tell(&[(script(1), Found::Script(None))]);
        subscriptions.tell(&[(script(1), found(3))]);
        assert_eq!((first.take().changed.len(), second.take().changed.len()), (1, 1));
        subscriptions.close(one, &BTreeSet::from([subscriptions.number(&script(1))]));
        assert!(!subscriptions.is_empty());
        subscriptions.leave(two, subscriptions.number(&script(1)));
        assert!(subscriptions.is_empty() && subscriptions.known_of(&script(1)).is_none());
    }

    /// Answers that are newer than what was sent, before the notifier has looked: every session ends with the last
    /// status.
    #[test]
    fn an_answer_that_differs_is_looked_at_again() {
        let subscriptions = Subscriptions::default();
        let sessions: Vec<(u64, Arc<Outbox>)> = (0..3).map(|_| subscriptions.open()).collect();
        let found = |byte: u8| Found::Script(Some([byte; 32]));
        let answer = |session: usize, byte: u8| {
            subscriptions.join_it(sessions[session].0, &own(0, true), &script(1)).unwrap();
            subscriptions.answered(&script(1), &found(byte));
        };
        let marks = || sessions.iter().map(|(_, outbox)| outbox.take().changed.len()).collect::<Vec<_>>();
        let look = |byte: u8| {
            subscriptions.doubts();
            subscriptions.tell(&[(script(1), found(byte))]);
            assert!(subscriptions.doubts().is_empty());
            marks()
        };
        answer(0, 1);
        answer(1, 2);
        assert_eq!((subscriptions.doubts(), subscriptions.known_of(&script(1))), (vec![script(1)], Some(found(1))));
        // The change that the second session saw is gone again, so that what was sent last is right.
        assert_eq!(look(1), [1, 1, 0]);
        assert_eq!(look(1), [0, 0, 0]);
        // It is there again. What the notifier found before the answer is not sent behind it.
        answer(2, 2);
        subscriptions.tell(&[(script(1), found(1))]);
        assert_eq!(marks(), [0, 0, 0]);
        assert_eq!(look(2), [1, 1, 1]);
        // Two answers that differ from each other.
        answer(0, 3);
        answer(1, 4);
        assert_eq!(look(2), [1, 1, 1]);
        // All leave before the notifier looks.
        answer(0, 5);
        let number = subscriptions.number(&script(1));
        sessions.iter().for_each(|(id, _)| subscriptions.close(*id, &BTreeSet::from([number])));
        (0..2).for_each(|session| subscriptions.leave(sessions[session].0, number));
        assert_eq!((subscriptions.doubts(), subscriptions.is_empty()), (vec![script(1)], false));
        subscriptions.leave(sessions[0].0, number);
        assert_eq!((subscriptions.doubts(), subscriptions.is_empty()), (Vec::new(), true));
    }

    /// Each kind has its own statuses, and only what a change touches is looked up.
    #[test]
    fn outputs_and_transactions_are_watched_by_what_changes_them() {
        let subscriptions = Subscriptions::default();
        let (id, outbox) = subscriptions.open();
        let (txid, other) = (Txid([1; 32]), Txid([2; 32]));
        let all = [script(1), output(0), output(1), Watch::Transaction(txid), Watch::Transaction(other)];
        assert!(!subscriptions.has_others());
        for watch in &all {
            assert_eq!(subscriptions.join_it(id, &own(0, true), watch), Ok(()));
        }
        assert!(subscriptions.has_others());
        let outpoints = HashSet::from([OutPoint { txid, vout: 1 }, OutPoint { txid, vout: 2 }]);
        let touched = Touched { txids: HashSet::from([txid, Txid([3; 32])]), outpoints, ..Touched::default() };
        assert_eq!(subscriptions.watched_others(&touched), [output(1), Watch::Transaction(txid)]);
        let scripts = [1, 2].map(|number| ScriptHash(if number == 1 { [0; 32] } else { [9; 32] }));
        assert!(subscriptions.watched_scripts(&scripts).is_empty());
        assert_eq!(subscriptions.watched_scripts(&subscriptions.scripts()), [script(1)]);
        let mut others = subscriptions.others();
        others.sort_unstable();
        assert_eq!(others, all[1..]);
        let spent = OutpointStatus { funder_height: Some(7), spender: Some((other, -1)) };
        subscriptions.tell(&[(output(1), Found::Output(spent)), (all[3], Found::Transaction(Some(7)))]);
        assert_eq!(outbox.take().changed.len(), 2);
        let known = [output(1), all[3], output(0)].map(|watch| subscriptions.known_of(&watch));
        assert_eq!(known, [Some(Found::Output(spent)), Some(Found::Transaction(Some(7))), None]);
        subscriptions.close(id, &all.iter().map(|watch| subscriptions.number(watch)).collect());
        assert!(subscriptions.is_empty() && !subscriptions.has_others() && subscriptions.scripts().is_empty());
    }

    /// Members of a batch go on when their connection has ended.
    #[test]
    fn nothing_is_left_of_a_session_that_ended() {
        let subscriptions = Subscriptions::default();
        let (id, _outbox) = subscriptions.open();
        assert!(subscriptions.join_it(id, &own(0, true), &script(1)).is_ok());
        let own_numbers = [script(1), script(2), output(0)].map(|watch| subscriptions.number(&watch));
        subscriptions.close(id, &BTreeSet::from(own_numbers));
        assert!(subscriptions.join_it(id, &own(0, true), &script(2)).is_err());
        assert!(subscriptions.join_it(id, &own(0, true), &output(0)).is_err());
        subscriptions.wants_headers(id);
        assert!(subscriptions.is_empty() && !subscriptions.has_others() && subscriptions.scripts().is_empty());
        assert!(!subscriptions.wants_no_headers(id));
    }

    /// Two that have one number are not mixed up.
    #[test]
    fn equal_numbers_are_refused() {
        let subscriptions = Subscriptions::default();
        let (id, _outbox) = subscriptions.open();
        assert_eq!(subscriptions.join(id, &own(0, true), 7, &script(1)), Ok(()));
        assert_eq!(subscriptions.join(id, &own(0, true), 7, &script(1)), Ok(()));
        for other in [script(2), output(1), Watch::Transaction(Txid([1; 32]))] {
            assert_eq!(subscriptions.join(id, &own(0, true), 7, &other).unwrap_err().code, code::INTERNAL);
        }
    }

    /// limit: SUBSCRIPTIONS_MAX at
    /// limit: SUBSCRIPTIONS_MAX above
    #[test]
    fn subscriptions_have_an_end() {
        let subscriptions = Subscriptions::default();
        let (id, _outbox) = subscriptions.open();
        lock(&subscriptions.inner).count = SUBSCRIPTIONS_MAX - 1;
        assert_eq!(subscriptions.join_it(id, &own(9_999_999, true), &script(1)), Ok(()));
        let refused = subscriptions.join_it(id, &own(9_999_999, true), &script(2)).unwrap_err();
        assert_eq!((refused.code, &*refused.message), (-101, "the server has 1000000 subscriptions and takes no more"));
        assert_eq!(subscriptions.join_it(id, &own(9_999_999, true), &output(2)).unwrap_err(), refused);
    }

    /// limit: SUBSCRIPTIONS_PER_SESSION_MAX at
    /// limit: SUBSCRIPTIONS_PER_SESSION_MAX above
    #[test]
    fn a_distant_client_has_fewer() {
        let subscriptions = Subscriptions::default();
        let (id, _outbox) = subscriptions.open();
        let at = SUBSCRIPTIONS_PER_SESSION_MAX;
        assert_eq!(subscriptions.join_it(id, &own(at - 1, false), &script(1)), Ok(()));
        assert_eq!(subscriptions.join_it(id, &own(at, false), &script(2)).unwrap_err().code, -101);
        assert_eq!(subscriptions.join_it(id, &own(at, false), &output(2)).unwrap_err().code, -101);
        assert_eq!(subscriptions.join_it(id, &own(at, true), &script(3)), Ok(()));
    }
}
