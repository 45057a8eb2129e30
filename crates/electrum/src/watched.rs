//! [`Watch`]: what a session subscribes to; [`Found`]: what is known of it; [`Watched`]: both, with the
//! sessions.
//!
//! A [`Table`] has its entries by number, a salted hash of 64 bits: sessions and their marks hold numbers, and no
//! client chooses the order in which the tree is filled. Cost: a search in a tree. Memory, with the number that the
//! session has: 104 bytes for a script, 112 for an output, 72 for a transaction; a tree fills two thirds of what it
//! takes.

use lydian_primitives::{OutPoint, Txid};
use lydian_query::{OutpointStatus, ScriptHash};
use std::collections::BTreeMap;
use std::num::NonZeroU32;

/// What a session may subscribe to, besides headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Watch {
    Script(ScriptHash),
    Output(OutPoint),
    Transaction(Txid),
}

/// The status of a script.
pub(crate) type Status = Option<[u8; 32]>;

/// What is known of what a session watches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    Script(Status),
    Output(OutpointStatus),
    /// The height of a transaction: 0 or -1 in the mempool. `None` if there is none.
    Transaction(Option<i64>),
}

/// A height that takes 4 bytes, also as an option: 1 is -1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SmallHeight(NonZeroU32);

impl SmallHeight {
    fn of(height: i64) -> Option<SmallHeight> {
        u32::try_from(height.saturating_add(2)).ok().and_then(NonZeroU32::new).map(SmallHeight)
    }

    fn height(self) -> i64 {
        i64::from(self.0.get()) - 2
    }
}

/// The status of an output in 40 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SmallStatus {
    funder: Option<SmallHeight>,
    spender: Option<SmallHeight>,
    /// Zeros if there is none.
    spender_txid: Txid,
}

impl From<OutpointStatus> for SmallStatus {
    fn from(status: OutpointStatus) -> SmallStatus {
        let (txid, height) = status.spender.unzip();
        SmallStatus {
            funder: status.funder_height.and_then(SmallHeight::of),
            spender: height.and_then(SmallHeight::of),
            spender_txid: txid.unwrap_or(Txid([0; 32])),
        }
    }
}

impl From<SmallStatus> for OutpointStatus {
    fn from(small: SmallStatus) -> OutpointStatus {
        let spender = small.spender.map(|height| (small.spender_txid, height.height()));
        OutpointStatus { funder_height: small.funder.map(SmallHeight::height), spender }
    }
}

/// How statuses are kept: see [`Table`].
pub(crate) trait Kept: Copy + PartialEq {
    fn of(found: &Found) -> Option<Self>;
    fn found(self) -> Found;
}

impl Kept for Status {
    fn of(found: &Found) -> Option<Status> {
        if let Found::Script(status) = found { Some(*status) } else { None }
    }

    fn found(self) -> Found {
        Found::Script(self)
    }
}

impl Kept for SmallStatus {
    fn of(found: &Found) -> Option<SmallStatus> {
        if let Found::Output(status) = found { Some((*status).into()) } else { None }
    }

    fn found(self) -> Found {
        Found::Output(self.into())
    }
}

impl Kept for Option<SmallHeight> {
    fn of(found: &Found) -> Option<Option<SmallHeight>> {
        if let Found::Transaction(height) = found { Some(height.and_then(SmallHeight::of)) } else { None }
    }

    fn found(self) -> Found {
        Found::Transaction(self.map(SmallHeight::height))
    }
}

/// What is watched, and by which sessions.
#[derive(Debug)]
pub(crate) struct Watched<K, T> {
    key: K,
    /// What was sent last; `None` until it was computed.
    known: Option<T>,
    sessions: Sessions,
}

/// The ids of sessions. Most scripts are watched by one.
#[derive(Debug)]
enum Sessions {
    One(u64),
    Some(Box<[u64]>),
}

impl Sessions {
    fn none() -> Sessions {
        Sessions::Some(Box::default())
    }

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

/// What is watched, by number.
#[derive(Debug)]
pub(crate) struct Table<K, T>(BTreeMap<u64, Watched<K, T>>);

impl<K, T> Default for Table<K, T> {
    fn default() -> Table<K, T> {
        Table(BTreeMap::new())
    }
}

impl<K: Copy + PartialEq, T: Kept> Table<K, T> {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether the number is that of something else.
    pub(crate) fn has_other(&self, number: u64, key: Option<&K>) -> bool {
        self.0.get(&number).is_some_and(|watched| Some(&watched.key) != key)
    }

    /// Adds a session.
    pub(crate) fn join(&mut self, number: u64, key: K, id: u64) {
        let none = || Watched { key, known: None, sessions: Sessions::none() };
        self.0.entry(number).or_insert_with(none).sessions.add(id);
    }

    /// Removes a session; returns how often it was removed.
    pub(crate) fn leave(&mut self, number: u64, id: u64) -> usize {
        let Some(watched) = self.0.get_mut(&number) else { return 0 };
        let removed = watched.sessions.remove_one(id);
        if watched.sessions.ids().is_empty() {
            self.0.remove(&number);
        }
        removed
    }

    pub(crate) fn has(&self, number: u64, key: &K) -> bool {
        self.0.get(&number).is_some_and(|watched| watched.key == *key)
    }

    pub(crate) fn keys(&self) -> impl Iterator<Item = K> {
        self.0.values().map(|watched| watched.key)
    }

    /// What is watched under this number, and what was sent last.
    pub(crate) fn known(&self, number: u64) -> Option<(K, Found)> {
        let watched = self.0.get(&number)?;
        Some((watched.key, watched.known?.found()))
    }

    /// Notes what was found for an answer, unless something was sent before. False if that is something else.
    pub(crate) fn answered(&mut self, number: u64, key: &K, found: &Found) -> bool {
        let watched = self.0.get_mut(&number).filter(|watched| watched.key == *key);
        watched.zip(T::of(found)).is_none_or(|(watched, kept)| *watched.known.get_or_insert(kept) == kept)
    }

    /// Notes what was found; returns the sessions that know something else, or may if `is_doubtful`.
    pub(crate) fn tell(&mut self, number: u64, key: &K, found: &Found, is_doubtful: bool) -> &[u64] {
        let watched = self.0.get_mut(&number).filter(|watched| watched.key == *key);
        let Some((watched, kept)) = watched.zip(T::of(found)) else { return &[] };
        let before = watched.known.replace(kept);
        if before == Some(kept) && !is_doubtful { &[] } else { watched.sessions.ids() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sessions_are_added_and_removed() {
        let mut sessions = Sessions::none();
        for ids in [&[][..], &[7], &[7, 8], &[7, 8, 7]] {
            assert_eq!(sessions.ids(), ids);
            sessions.add(if ids.len() == 1 { 8 } else { 7 });
        }
        assert_eq!((sessions.remove_one(9), sessions.remove_one(8), sessions.ids()), (0, 1, &[7, 7, 7][..]));
        assert_eq!((0..4).map(|_| sessions.remove_one(7)).sum::<usize>(), 3);
        assert!(sessions.ids().is_empty());
    }

    #[test]
    fn statuses_are_kept_in_few_bytes() {
        for funder_height in [None, Some(-1), Some(0), Some(1), Some(4_000_000_000)] {
            for spender in [None, Some((Txid([7; 32]), -1)), Some((Txid([8; 32]), 0)), Some((Txid([0; 32]), 9))] {
                let status = OutpointStatus { funder_height, spender };
                assert_eq!(OutpointStatus::from(SmallStatus::from(status)), status);
            }
        }
        for height in [None, Some(-1), Some(0), Some(5)] {
            let found = Found::Transaction(height);
            assert_eq!(<Option<SmallHeight> as Kept>::of(&found).map(Kept::found), Some(found));
            assert_eq!(Status::of(&found), None);
        }
    }

    /// An entry with its number, and the number that its session has. A tree fills two thirds, and its nodes take a
    /// tenth more.
    #[test]
    fn a_subscription_takes_fewer_than_200_bytes() {
        let sizes = [
            size_of::<Watched<ScriptHash, Status>>(),
            size_of::<Watched<OutPoint, SmallStatus>>(),
            size_of::<Watched<Txid, Option<SmallHeight>>>(),
        ];
        let with_numbers = sizes.map(|size| size + 2 * size_of::<u64>());
        assert_eq!(with_numbers, [104, 112, 72]);
        assert!(with_numbers.iter().all(|size| size * 3 / 2 * 11 / 10 < 200));
    }
}
