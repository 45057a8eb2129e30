//! The two threads of the index: one writes the segments of full groups, the other seals and merges segments.
//!
//! Input: full groups whose rows are in the log, or that are to be sealed; segments of 256 blocks with
//! [`super::UNSEALED_BLOCKS`] above them. Output: their files, and a state without their rows. While a merge of many
//! blocks takes minutes, groups are still written, so that the sync waits for neither.
//!
//! Invariants: what is written follows from the chain and the heights alone. A commit record names files that are
//! durable, of blocks up to the last checkpoint.

use super::places::Heights;
use super::segment::{GROUP_BLOCKS, Rows, Segment};
use super::state::{Shared, State, logs};
use super::tail::Group;
use crate::error::IndexError;
use lydian_stdx::{AbortOnPanic, IgnorePoison, lock};
use std::collections::BTreeSet;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::{Arc, MutexGuard};
use std::thread::{Builder, JoinHandle};

/// Starts both.
pub(super) fn start(shared: &Arc<Shared>) -> Result<Vec<JoinHandle<()>>, IndexError> {
    Ok(vec![start_one(shared, "index-write", Shared::write_all)?, start_one(shared, "index-merge", Shared::merge_all)?])
}

fn start_one(shared: &Arc<Shared>, name: &str, run: fn(&Shared)) -> Result<JoinHandle<()>, IndexError> {
    let shared = Arc::clone(shared);
    let run = move || {
        let _guard = AbortOnPanic;
        run(&shared);
    };
    let started = Builder::new().name(name.to_owned()).spawn(run);
    started.map_err(|error| IndexError::Thread { reason: error.to_string() })
}

impl Shared {
    /// The state once a thread has something to do; `None` at the end.
    fn next<'a>(&'a self, has_work: impl Fn(&State) -> bool) -> Option<MutexGuard<'a, State>> {
        let idle = |state: &mut State| !state.is_ended && (state.failed.is_some() || !has_work(state));
        let state = self.changed.wait_while(lock(&self.state), idle).ignore_poison();
        (!state.is_ended).then_some(state)
    }

    /// The thread that writes segments, and settles rows.
    fn write_all(&self) {
        while let Some(mut state) = self.next(|state| state.to_write().is_some() || state.to_settle().is_some()) {
            if let Some((from, rows)) = state.to_write().map(|group| (group.from, Arc::clone(&group.rows))) {
                let (heights, segments) = (state.heights.clone(), Arc::clone(&state.segments));
                state.writing = Some(from);
                drop(state);
                self.write(from, rows, &segments, &heights);
                self.finish_record();
            } else if let Some((from, rows)) = state.to_settle().map(|group| (group.from, Arc::clone(&group.rows))) {
                drop(state);
                self.settle(from, &rows);
            }
            self.changed.notify_all();
        }
    }

    fn write(&self, from: u32, rows: Arc<Rows>, below: &[Segment], heights: &Heights) {
        let written = self.store.seal(from..from + GROUP_BLOCKS, &rows, below, heights);
        let mut state = lock(&self.state);
        state.writing = None;
        state.recording += 1;
        let old = match written {
            Ok(segment) => {
                Arc::make_mut(&mut state.segments).push(segment);
                state.groups.pop_front()
            }
            Err(IndexError::Ended) => None,
            Err(error) => {
                state.failed = Some(error);
                None
            }
        };
        drop(state);
        self.changed.notify_all();
        // Freed outside of the lock.
        drop((old, rows));
    }

    /// Records new segments. What waits for blocks of theirs need not wait for this.
    fn finish_record(&self) {
        // Held until an error is noted: a checkpoint that waits writes no log over one that was not removed.
        let recording = lock(&self.record);
        let is_failed = lock(&self.state).failed.is_some();
        let recorded = if is_failed { Ok(()) } else { self.write_record(&recording) };
        let mut state = lock(&self.state);
        state.recording -= 1;
        if let Err(error) = recorded {
            state.failed.get_or_insert(error);
        }
        drop(state);
        drop(recording);
        self.changed.notify_all();
    }

    /// Settles the rows of a group, unless it changed meanwhile.
    fn settle(&self, from: u32, rows: &Arc<Rows>) {
        let settled = Arc::new(Group::settle(rows));
        let mut state = lock(&self.state);
        let group = state.groups.iter_mut().find(|group| group.from == from);
        let old = group
            .filter(|group| Arc::ptr_eq(&group.rows, rows))
            .map(|group| std::mem::replace(&mut group.rows, settled));
        drop(state);
        drop(old);
    }

    /// The thread that seals.
    fn merge_all(&self) {
        while let Some(mut state) = self.next(|state| state.to_seal().is_some()) {
            let Some(heights) = state.to_seal() else { continue };
            let (all, segments) = (state.heights.clone(), Arc::clone(&state.segments));
            state.is_merging = true;
            drop(state);
            let below: Vec<Segment> =
                segments.iter().take_while(|segment| segment.heights.end <= heights.end).cloned().collect();
            let arranged = self.store.arrange(&below, heights.end, &all);
            let mut state = lock(&self.state);
            state.is_merging = false;
            state.recording += 1;
            match arranged {
                Ok(arranged) => self.seal(&mut state, heights, arranged),
                Err(IndexError::Ended) => return,
                Err(error) => state.failed = Some(error),
            }
            drop(state);
            self.changed.notify_all();
            self.finish_record();
        }
    }

    /// Takes the segments below the end of these heights, in the place of those that were there. Their logs are
    /// obsolete.
    fn seal(&self, state: &mut State, heights: Range<u32>, mut arranged: Vec<Segment>) {
        let old = Arc::clone(&state.segments);
        arranged.extend(old.iter().filter(|segment| segment.heights.start >= heights.end).cloned());
        state.sealed = heights.end;
        state.obsolete.extend(logs(self.dir(), heights));
        self.replace_segments(state, &old, arranged);
    }

    /// Takes other segments; those of `old` that are not among them are obsolete.
    pub(super) fn replace_segments(&self, state: &mut State, old: &[Segment], new: Vec<Segment>) {
        let kept: BTreeSet<PathBuf> = new.iter().flat_map(|segment| self.files_of(segment)).collect();
        let left = old.iter().flat_map(|segment| self.files_of(segment)).filter(|path| !kept.contains(path));
        state.obsolete.extend(left);
        state.obsolete.retain(|path| !kept.contains(path));
        state.segments = Arc::new(new);
    }
}
