//! The followers of the chain, and where each one stands.
//!
//! Input: the followers when the engine is opened; then blocks, from a run, from a reorganisation or from the catch-up
//! ([`crate::catch_up`]). Output: their calls, in order, and their places for readers. A follower in step is fed by
//! runs and reorganisations; one behind by the catch-up, which hands it over where both stand at the same block.
//!
//! Invariants: a follower is called by one thread at a time, the one that its standing names; its place is the last
//! block it was given. After an error it is called no more. The lock of the places is held for single
//! reads and writes; only the tree's may be taken under it.

use super::settings::Cancel;
use crate::error::EngineError;
use crate::event::{Observer, log};
use crate::follower::{BlockWithSpent, ConnectedBlock, Follower, FollowerError, Left, Prepare, Rows};
use crate::log::LogLevel;
use lydian_chain::{BlockCounts, ChainTotals, HeaderId, HeaderTree};
use lydian_coins::Tip;
use lydian_primitives::Height;
use lydian_stdx::{IgnorePoison, lock};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock};
use std::time::Duration;

/// The last block that a follower was given, and by whom it is fed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Place {
    /// `None` before the genesis block.
    pub(crate) at: Option<HeaderId>,
    /// The transactions and outputs of the chain up to it.
    pub(crate) totals: ChainTotals,
    pub(crate) standing: Standing,
}

impl Place {
    /// Before the genesis block.
    pub(crate) const START: Place =
        Place { at: None, totals: ChainTotals { transactions: 0, outputs: 0 }, standing: Standing::Behind };

    /// That of a follower which is behind, at a durable tip; `None` if the tree does not have the block.
    pub(crate) fn behind(tree: &HeaderTree, durable: Option<Tip>) -> Option<Place> {
        let Some(durable) = durable else { return Some(Place::START) };
        let id = tree.find(&durable.hash)?;
        Some(Place { at: Some(id), totals: tree.totals_at(id)?, standing: Standing::Behind })
    }
}

/// By whom a follower is fed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Standing {
    /// By runs and disconnections. Between two of them it stands at the tip.
    InStep,
    /// By the catch-up.
    Behind,
    /// By none for the moment: the catch-up asked the run to take it over.
    Joining,
    /// By none: an error ended it.
    Failed,
}

/// One follower.
#[derive(Debug)]
pub(crate) struct Slot {
    pub(crate) name: String,
    pub(crate) has_files: bool,
    pub(crate) preparer: Option<Arc<dyn Prepare>>,
    follower: Mutex<Box<dyn Follower>>,
}

/// All followers.
#[derive(Debug)]
pub(crate) struct Followers {
    slots: Vec<Slot>,
    places: Mutex<Vec<Place>>,
    /// Why each one failed.
    reasons: Mutex<Vec<Option<String>>>,
    /// Notified when a place changes.
    changed: Condvar,
    /// Whether one is [`Standing::Joining`], readable without a lock.
    has_joining: AtomicBool,
    /// Whether the node cannot go on without one.
    are_required: bool,
    /// The error without which the node cannot go on, from any thread.
    fatal: OnceLock<(String, String)>,
    /// Ends the catch-up.
    pub(crate) cancel: Cancel,
    /// Whether the catch-up has ended.
    is_over: AtomicBool,
}

impl Followers {
    /// `places` is where each one stands.
    pub(crate) fn new(followers: Vec<(Box<dyn Follower>, Place)>, are_required: bool) -> Followers {
        let (followers, places): (Vec<_>, Vec<_>) = followers.into_iter().unzip();
        let slot = |follower: Box<dyn Follower>| Slot {
            name: follower.name().to_owned(),
            has_files: follower.has_files(),
            preparer: follower.preparer(),
            follower: Mutex::new(follower),
        };
        Followers {
            reasons: Mutex::new(vec![None; followers.len()]),
            slots: followers.into_iter().map(slot).collect(),
            places: Mutex::new(places),
            changed: Condvar::new(),
            has_joining: AtomicBool::new(false),
            are_required,
            fatal: OnceLock::new(),
            cancel: Cancel::new(),
            is_over: AtomicBool::new(false),
        }
    }

    pub(crate) fn slots(&self) -> &[Slot] {
        &self.slots
    }

    pub(crate) fn lock(&self, index: usize) -> MutexGuard<'_, Box<dyn Follower>> {
        lock(&self.slots[index].follower)
    }

    pub(crate) fn place(&self, index: usize) -> Place {
        lock(&self.places)[index]
    }

    pub(crate) fn reason(&self, index: usize) -> Option<String> {
        lock(&self.reasons)[index].clone()
    }

    /// The followers with this standing.
    pub(crate) fn with(&self, standing: Standing) -> Vec<usize> {
        let places = lock(&self.places);
        (0..places.len()).filter(|index| places[*index].standing == standing).collect()
    }

    pub(crate) fn has_joining(&self) -> bool {
        self.has_joining.load(Ordering::Acquire)
    }

    /// Moves a follower, whose standing stays.
    pub(crate) fn moved(&self, index: usize, at: Option<HeaderId>, totals: ChainTotals) {
        let mut places = lock(&self.places);
        (places[index].at, places[index].totals) = (at, totals);
        self.changed.notify_all();
    }

    /// Changes the standing of a follower from one to another; returns false if it has a third one meanwhile.
    pub(crate) fn change(&self, index: usize, from: Standing, to: Standing) -> bool {
        let mut places = lock(&self.places);
        let is_so = places[index].standing == from;
        if is_so {
            self.set(&mut places, index, to);
        }
        is_so
    }

    fn set(&self, places: &mut [Place], index: usize, to: Standing) {
        places[index].standing = to;
        let is_joining = |place: &Place| place.standing == Standing::Joining;
        self.has_joining.store(places.iter().any(is_joining), Ordering::Release);
        self.changed.notify_all();
    }

    /// Waits until the places are as wanted, but no longer than `longest`.
    pub(crate) fn wait_until(&self, longest: Duration, is_done: impl Fn(&[Place]) -> bool) {
        let places = lock(&self.places);
        let _ = self.changed.wait_timeout_while(places, longest, |places| !is_done(places));
    }

    /// Waits until a follower is behind. Returns false if the catch-up is to end.
    pub(crate) fn wait_until_behind(&self) -> bool {
        let is_idle = |places: &mut Vec<Place>| {
            !self.cancel.is_cancelled() && places.iter().all(|place| place.standing != Standing::Behind)
        };
        drop(self.changed.wait_while(lock(&self.places), is_idle).ignore_poison());
        !self.cancel.is_cancelled()
    }

    /// Ends the catch-up after the block in progress.
    pub(crate) fn end_catch_up(&self) {
        let _places = lock(&self.places);
        self.cancel.cancel();
        self.changed.notify_all();
    }

    /// Waits until no follower is behind, or the catch-up has ended.
    pub(crate) fn wait_until_in_step(&self) {
        let mut places = lock(&self.places);
        let is_behind = |place: &Place| matches!(place.standing, Standing::Behind | Standing::Joining);
        while places.iter().any(is_behind) && !self.is_over.load(Ordering::Acquire) {
            places = self.changed.wait(places).ignore_poison();
        }
    }

    /// The catch-up has ended.
    pub(crate) fn catch_up_is_over(&self) {
        let _places = lock(&self.places);
        self.is_over.store(true, Ordering::Release);
        self.changed.notify_all();
    }

    /// The rows of a block, if the follower has a preparer.
    pub(crate) fn prepare(&self, index: usize, block: &BlockWithSpent<'_>) -> Option<Rows> {
        self.slots[index].preparer.as_ref().map(|preparer| preparer.prepare(block))
    }

    /// Gives a follower the block after its place. Returns false if it failed, and the node goes on without it.
    pub(crate) fn connect(
        &self,
        index: usize,
        id: HeaderId,
        block: &ConnectedBlock<'_>,
        rows: Option<Rows>,
        observer: &dyn Observer,
    ) -> Result<bool, EngineError> {
        let result = self.lock(index).connect(block, rows);
        self.after(index, result, observer, || {
            self.moved(index, Some(id), block.below.with(BlockCounts::of(block.block)));
        })
    }

    /// Takes from a follower the block at which it stands; `parent` is the block below. If it gives up more, it is
    /// behind from then on; `place` tells its place there. Returns like [`Followers::connect`].
    pub(crate) fn disconnect(
        &self,
        index: usize,
        parent: Option<HeaderId>,
        block: &ConnectedBlock<'_>,
        place: impl FnOnce(Option<Tip>) -> Option<Place>,
        observer: &dyn Observer,
    ) -> Result<bool, EngineError> {
        let mut follower = self.lock(index);
        let left = follower.disconnect(block);
        let durable = follower.durable_tip();
        drop(follower);
        match left {
            Ok(Left::ToDurableTip) if durable.is_some_and(|tip| tip.height >= block.height) => {
                let reason = format!("it left block {}, but its files are not below", block.height.0);
                self.after(index, Err(FollowerError::new(reason)), observer, || {})
            }
            Ok(Left::ToDurableTip) => match place(durable) {
                Some(place) => {
                    let mut places = lock(&self.places);
                    places[index] = place;
                    self.set(&mut places, index, place.standing);
                    Ok(true)
                }
                None => self.clear(index, observer),
            },
            left => self.after(index, left.map(|_| ()), observer, || self.moved(index, parent, block.below)),
        }
    }

    /// Lets a follower record a tip. Returns like [`Followers::connect`].
    pub(crate) fn checkpoint(&self, index: usize, tip: Tip, observer: &dyn Observer) -> Result<bool, EngineError> {
        let result = self.lock(index).checkpoint(tip);
        self.after(index, result, observer, || {})
    }

    /// Lets a follower begin before the genesis block. Returns like [`Followers::connect`].
    pub(crate) fn clear(&self, index: usize, observer: &dyn Observer) -> Result<bool, EngineError> {
        let result = self.lock(index).clear();
        self.after(index, result, observer, || self.moved(index, None, ChainTotals::default()))
    }

    fn after(
        &self,
        index: usize,
        result: Result<(), FollowerError>,
        observer: &dyn Observer,
        succeeded: impl FnOnce(),
    ) -> Result<bool, EngineError> {
        match result {
            Ok(()) => {
                succeeded();
                Ok(true)
            }
            Err(error) => {
                self.fail(index, error, observer)?;
                Ok(false)
            }
        }
    }

    /// A follower cannot continue. An error if the node cannot go on without it.
    pub(crate) fn fail(&self, index: usize, error: FollowerError, observer: &dyn Observer) -> Result<(), EngineError> {
        let (name, FollowerError { reason, is_disk_full }) = (self.slots[index].name.clone(), error);
        lock(&self.reasons)[index] = Some(reason.clone());
        self.set(&mut lock(&self.places), index, Standing::Failed);
        if self.are_required || is_disk_full {
            let _ = self.fatal.set((name.clone(), reason.clone()));
            return Err(EngineError::Follower { name, reason });
        }
        log(observer, LogLevel::Error, format_args!("{name} is stopped: {reason}. The node goes on without it."));
        Ok(())
    }

    /// Returns the error that the node cannot go on with, if there was one: a run ends although another thread met it.
    pub(crate) fn check_fatal(&self) -> Result<(), EngineError> {
        match self.fatal.get() {
            None => Ok(()),
            Some((name, reason)) => Err(EngineError::Follower { name: name.clone(), reason: reason.clone() }),
        }
    }

    /// The height below which no follower needs a block. One that failed goes on at the next start, so it needs the
    /// block after its durable tip as long as `is_here` returns that it is stored; one without files needs none.
    pub(crate) fn needed_from(&self, is_here: impl Fn(Height) -> bool) -> Height {
        let with_files = (0..self.slots.len()).filter(|index| self.slots[*index].has_files);
        let places = with_files.map(|index| {
            let durable = self.lock(index).durable_tip().map_or(0, |tip| tip.height.0);
            (durable, self.place(index).standing == Standing::Failed)
        });
        let needs = |(durable, is_failed): &(u32, bool)| !is_failed || is_here(Height(durable.saturating_add(1)));
        Height(places.filter(needs).map(|(durable, _)| durable).min().unwrap_or(u32::MAX))
    }
}
