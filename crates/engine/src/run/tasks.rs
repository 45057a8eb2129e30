//! The work of the tasks of a run, and the effect of their reports. See [`super`].

use super::job::{Coming, Job};
use super::schedule::Task;
use super::state::{Failure, PathBlock, Run, State};
use crate::chainstate::blocks::read_block;
use crate::chainstate::followers::Standing;
use crate::chainstate::journal::Change;
use crate::chainstate::links::Links;
use crate::chainstate::manager::{ChainstateManager, Headers};
use crate::error::EngineError;
use crate::event::{Event, Reading, TipUpdate, UnreadableReason};
use crate::follower::Rows;
use crate::meter::Stage;
use lydian_chain::{BlockCounts, BlockPosition, ChainError, HeaderId, IndexEntry, UndoPosition, encode_undo};
use lydian_consensus::deployment::is_bip30_checked;
use lydian_consensus::{
    Batch, CheckedBlock, KnownParts, Parent, Part, Stats, Violation, check_inputs, parts, parts_besides,
};
use lydian_disk::DiskErrorKind;
use lydian_primitives::{BlockHash, Height, ParseError, ParseErrorKind};
use lydian_stdx::lock;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// A task with the blocks it works on.
pub(super) enum Work {
    /// Blocks from an index on, and the positions of those to be read soon after.
    Read {
        from: usize,
        path_blocks: Vec<PathBlock>,
        soon: Vec<BlockPosition>,
    },
    Partition {
        partition: usize,
        apply: Range<usize>,
        fund: Range<usize>,
        jobs: Vec<Arc<Job>>,
    },
    CheckInputs(Arc<Job>),
    Verify(Vec<(Arc<Job>, Part)>),
    Prepare(Arc<Job>),
    Commit(Range<usize>, Vec<Arc<Job>>),
    Follow {
        follower: usize,
        to: usize,
        jobs: Vec<Arc<Job>>,
    },
    Checkpoint,
}

/// The result of a task. An index with a failure is that of the block that cannot be connected.
pub(super) enum Report {
    Read {
        jobs: Vec<Arc<Job>>,
        linked: Range<usize>,
        failure: Option<(usize, Failure)>,
    },
    Partition {
        partition: usize,
        apply: Range<usize>,
        fund: Range<usize>,
        wants_checkpoint: bool,
    },
    CheckInputs {
        index: usize,
        result: Result<Vec<Part>, Violation>,
    },
    Verify {
        verified: Vec<usize>,
        invalid: Vec<(usize, Violation)>,
    },
    Prepare {
        index: usize,
        bytes: usize,
    },
    Commit {
        to: usize,
    },
    /// A follower that failed is fed no more.
    Follow {
        follower: usize,
        to: usize,
        is_fed: bool,
    },
    Checkpoint,
}

/// The fewest inputs of a part: every part hashes its transaction anew, which is not worth it for fewer.
const PART_INPUTS_MIN: usize = 32;

/// The number of blocks, beyond those being read, that the disk is asked to prefetch.
const PREFETCH_BLOCKS: usize = 32;

impl Run<'_> {
    pub(super) fn prepare(&self, state: &State, task: Task) -> Work {
        match task {
            Task::Read(range) => {
                let soon = state.path[range.end..]
                    .iter()
                    .take(PREFETCH_BLOCKS)
                    .map(|path_block| path_block.position)
                    .collect();
                Work::Read { from: range.start, path_blocks: state.path[range].to_vec(), soon }
            }
            Task::Partition { partition, apply, fund } => {
                let jobs = state.jobs(fund.clone());
                Work::Partition { partition, apply, fund, jobs }
            }
            Task::CheckInputs(index) => Work::CheckInputs(state.job(index)),
            Task::Verify(parts) => {
                Work::Verify(parts.into_iter().map(|(index, part)| (state.job(index), part)).collect())
            }
            Task::Prepare(index) => Work::Prepare(state.job(index)),
            Task::Commit(range) => Work::Commit(range.clone(), state.jobs(range)),
            Task::Follow { follower, blocks } => Work::Follow { follower, to: blocks.end, jobs: state.jobs(blocks) },
            Task::Checkpoint => Work::Checkpoint,
        }
    }

    pub(super) fn perform(&self, work: Work) -> Result<Report, EngineError> {
        self.chainstate.followers.check_fatal()?;
        match work {
            Work::Read { from, path_blocks, soon } => self.read(from, &path_blocks, &soon),
            Work::Partition { partition, apply, fund, jobs } => self.partition(partition, apply, fund, &jobs),
            Work::CheckInputs(job) => Ok(self.check_inputs(&job)),
            Work::Verify(parts) => Ok(self.verify(&parts)),
            Work::Prepare(job) => Ok(self.prepare_rows(&job)),
            Work::Commit(range, jobs) => self.commit(range, &jobs),
            Work::Follow { follower, to, jobs } => self.follow(follower, to, &jobs),
            Work::Checkpoint => {
                self.chainstate.checkpoint(self.observer)?;
                Ok(Report::Checkpoint)
            }
        }
    }

    /// Updates the state with a report.
    pub(super) fn enter(&self, state: &mut State, report: Report) {
        match report {
            Report::Read { jobs, linked, failure } => {
                jobs.into_iter().for_each(|job| state.insert(job));
                if let Some((index, failure)) = failure {
                    state.fail(index, failure);
                }
                state.schedule.read_done(linked);
            }
            Report::Partition { partition, apply, fund, wants_checkpoint } => {
                state.schedule.partition_done(partition, apply, fund);
                if wants_checkpoint {
                    state.schedule.request_checkpoint();
                }
                state.retire();
            }
            Report::CheckInputs { index, result } => {
                let parts = result.unwrap_or_else(|violation| {
                    state.fail(index, Failure::Invalid(violation));
                    Vec::new()
                });
                state.schedule.inputs_checked(index, parts);
            }
            Report::Verify { verified, invalid } => {
                invalid.into_iter().for_each(|(index, violation)| state.fail(index, Failure::Invalid(violation)));
                state.schedule.verify_done(&verified);
            }
            Report::Prepare { index, bytes } => state.schedule.prepare_done(index, bytes),
            Report::Commit { to } => state.schedule.commit_done(to),
            Report::Follow { follower, to, is_fed } => {
                state.schedule.follow_done(follower, to);
                if !is_fed {
                    state.schedule.leave(follower);
                }
                state.retire();
            }
            Report::Checkpoint => {
                state.schedule.checkpoint_done();
                // Those that failed in it.
                let failed = self.chainstate.followers.with(Standing::Failed);
                failed.into_iter().for_each(|follower| state.schedule.leave(follower));
                state.retire();
            }
        }
    }

    fn read(&self, from: usize, path_blocks: &[PathBlock], soon: &[BlockPosition]) -> Result<Report, EngineError> {
        soon.iter().for_each(|position| self.chainstate.store.prefetch(*position));
        let mut jobs = Vec::with_capacity(path_blocks.len());
        for (index, path_block) in (from..).zip(path_blocks) {
            match self.read_one(index, path_block)? {
                Ok(job) => jobs.push(Arc::new(job)),
                Err(failure) => {
                    return Ok(Report::Read { jobs, linked: from..index, failure: Some((index, failure)) });
                }
            }
        }
        Ok(Report::Read { jobs, linked: from..from + path_blocks.len(), failure: None })
    }

    /// Returns a block that waits for its coins: the one that was checked when it arrived, or the one on disk.
    fn read_one(&self, index: usize, path_block: &PathBlock) -> Result<Result<Job, Failure>, EngineError> {
        let chainstate = self.chainstate;
        let headers = chainstate.headers_below(path_block.id);
        let height = Height(headers.height().0.saturating_add(1));
        let hash = *chainstate.tree().hash(path_block.id);
        let begun = chainstate.meter.now_ns();
        let (checked, reading) = match chainstate.checked.take(height, hash) {
            Some(checked) => {
                chainstate.meter.taken_over();
                (checked, None)
            }
            None => match self.read_and_check(path_block, hash, &headers)? {
                Ok((checked, reading)) => (checked, Some(reading)),
                Err(failure) => return Ok(Err(failure)),
            },
        };
        let links = chainstate.meter.time(Stage::Link, || {
            let is_bip30_checked = is_bip30_checked(checked.height(), &hash, &headers, &chainstate.params);
            Links::new(checked.block(), is_bip30_checked, &chainstate.active.coins)
        });
        let coming = Coming { arrival: chainstate.arrivals.take(hash), reading, begun };
        Ok(Ok(Job::new(index, path_block.id, path_block.position, checked, links, path_block.is_trusted, coming)))
    }

    /// Turns the stored bytes into a checked block.
    fn read_and_check(
        &self,
        path_block: &PathBlock,
        hash: BlockHash,
        headers: &Headers<'_>,
    ) -> Result<Result<(CheckedBlock, Reading), Failure>, EngineError> {
        let chainstate = self.chainstate;
        let unreadable = |reason| Ok(Err(Failure::Unreadable(reason)));
        let (raw, read) = chainstate.meter.timed(Stage::Read, || chainstate.store.read_block(path_block.position));
        let raw = match raw {
            Ok(raw) => raw,
            Err(error) if is_damage(&error) => return unreadable(UnreadableReason::Chain(error)),
            Err(error) => return Err(error.into()),
        };
        let (parsed, parse) = chainstate.meter.timed(Stage::Parse, || raw.parse());
        let parsed = match parsed {
            Err(ParseError { kind: ParseErrorKind::TrailingBytes { .. }, .. }) => {
                read_block(chainstate, path_block.position)?
            }
            parsed => parsed,
        };
        let block = match parsed {
            Ok(block) => block,
            Err(error) => return unreadable(UnreadableReason::NotABlock(error)),
        };
        if block.hash() != hash {
            return unreadable(UnreadableReason::OtherHash(block.hash()));
        }
        // The header is known, so it was not from the future when it was accepted.
        let now = i64::from(block.header().time);
        let (checked, check) = chainstate.meter.timed(Stage::Check, || {
            CheckedBlock::check(block, Parent::At(headers.height(), headers), now, &chainstate.params)
        });
        match checked {
            Ok(checked) => Ok(Ok((checked, Reading { read, parse, check }))),
            Err(violation) if violation.rule.is_of_the_bytes() => unreadable(UnreadableReason::Mutated(violation)),
            Err(violation) => Ok(Err(Failure::Invalid(violation))),
        }
    }

    fn partition(
        &self,
        partition: usize,
        apply: Range<usize>,
        fund: Range<usize>,
        jobs: &[Arc<Job>],
    ) -> Result<Report, EngineError> {
        let (meter, coins) = (&self.chainstate.meter, &self.chainstate.active.coins);
        let mut window = lock(&self.windows[partition]);
        if !apply.is_empty() {
            meter.time(Stage::Apply, || window.apply(apply.len(), coins))?;
            self.chainstate.active.journal.applied(partition, apply.len());
            if self.chainstate.active.journal.may_settle() {
                self.chainstate.settle(self.observer);
            }
        }
        if !fund.is_empty() {
            meter.time(Stage::Fund, || window.fund(jobs, coins))?;
        }
        let is_due = || self.chainstate.needs_checkpoint() || self.chainstate.turns.is_checkpoint_wanted();
        let wants_checkpoint = !apply.is_empty() && is_due();
        Ok(Report::Partition { partition, apply, fund, wants_checkpoint })
    }

    fn check_inputs(&self, job: &Job) -> Report {
        let chainstate = self.chainstate;
        let result = chainstate.meter.time(Stage::Inputs, || {
            let headers = chainstate.headers_below(job.id);
            let funded = check_inputs(job.checked.clone(), job.found(), &headers, &chainstate.params)?;
            let undo = encode_undo(funded.checked().block(), funded.spent());
            let now = chainstate.meter.now_ns();
            if job.is_trusted {
                job.set_funded(funded, undo, &[], now)?;
                return Ok(Vec::new());
            }
            let settings = &chainstate.settings;
            let share = job.links.input_count().div_ceil(2 * settings.verifiers());
            let inputs_max = share.clamp(PART_INPUTS_MIN, settings.batch_inputs.max(PART_INPUTS_MIN));
            let parts = match chainstate.known_scripts() {
                Some(known) => parts_besides(&funded, inputs_max, known),
                None => KnownParts { unknown: parts(&funded, inputs_max), known: Vec::new() },
            };
            // The kernel may be distrusted while the block is verified; then some verdicts on it are the kernel's.
            let signatures = &settings.signatures;
            let has_known = !parts.known.is_empty();
            job.set_needs_review(signatures.is_watched() || has_known && signatures.has_kernel());
            job.set_funded(funded, undo, &parts.known, now)?;
            Ok(parts.unknown)
        });
        Report::CheckInputs { index: job.index, result }
    }

    fn verify(&self, parts: &[(Arc<Job>, Part)]) -> Report {
        let chainstate = self.chainstate;
        let batch = chainstate.meter.time(Stage::Capture, || {
            let mut batch = Batch::default();
            parts.iter().for_each(|(job, part)| batch.capture(job.funded(), *part));
            batch
        });
        let mut settled = chainstate.meter.time(Stage::Settle, || batch.settle(&*chainstate.settings.signatures));
        chainstate.meter.checks_made(settled.checks_made());
        let (mut verified, mut invalid) = (Vec::new(), Vec::new());
        let now = chainstate.meter.now_ns();
        chainstate.meter.time(Stage::Rerun, || {
            for (job, _) in parts {
                match job.add(settled.verdict(job.funded()), now) {
                    Ok(true) => verified.push(job.index),
                    Ok(false) => {}
                    Err(violation) => invalid.push((job.index, violation)),
                }
            }
        });
        Report::Verify { verified, invalid }
    }

    /// Appends undo data, records the blocks in the index and moves the tip.
    fn commit(&self, range: Range<usize>, jobs: &[Arc<Job>]) -> Result<Report, EngineError> {
        let chainstate = self.chainstate;
        chainstate.meter.time(Stage::Commit, || -> Result<(), EngineError> {
            let cache_bytes = chainstate.active.coins.memory_bytes();
            let is_at_tip = self.is_at_tip.load(Ordering::Relaxed);
            for job in jobs {
                let mut stats = Stats::default();
                stats.add(job.verified().funded());
                stats.add_checks(job.verified().checks());
                let block = job.checked.block();
                let undo = job.take_undo();
                let prev_block = block.header().prev_block;
                let undo = match known_undo(chainstate, job.id, &prev_block)? {
                    Some(position) => position,
                    None => chainstate.store.append_undo(job.position, &prev_block, &undo)?,
                };
                let counts = BlockCounts::of(block);
                let (chain_work, below, is_counted) = {
                    let mut tree = chainstate.tree_mut();
                    tree.set_undo(job.id, undo);
                    if !job.is_trusted {
                        tree.set_verified(job.id);
                    }
                    let (below, is_counted) = (tree.totals(), tree.counts(job.id).is_some());
                    tree.set_counts(job.id, counts);
                    tree.push_active(job.id);
                    (tree.node(job.id).chain_work, below, is_counted)
                };
                job.set_below(below);
                job.set_committed(chainstate.meter.now_ns(), is_at_tip);
                chainstate.active.journal.publish(job.id, Arc::clone(job) as Arc<dyn Change>);
                chainstate.store.record(&[IndexEntry::Undo { id: job.id, position: undo }]);
                if !is_counted {
                    chainstate.store.record(&[IndexEntry::Counts { id: job.id, counts }]);
                }
                // Scripts that were skipped as trusted are not verified; those that succeeded before already have their
                // entry.
                if !job.is_trusted {
                    chainstate.store.record(&[IndexEntry::Verified { id: job.id }]);
                }
                chainstate.meter.committed(&stats);
                if job.is_trusted {
                    chainstate.meter.trusted();
                }
                chainstate.meter.at_height(job.checked.height().0);
                self.observer.event(&Event::UpdateTip(TipUpdate {
                    hash: block.hash(),
                    height: job.checked.height(),
                    header: *block.header(),
                    chain_work,
                    transactions: below.with(counts).transactions,
                    cache_bytes,
                    coins: chainstate.active.coins.len(),
                    is_disconnect: false,
                }));
            }
            chainstate.store.flush()?;
            if let Some(last) = jobs.last() {
                chainstate.checked.forget_to(last.checked.height());
            }
            Ok(())
        })?;
        if self.is_at_tip.load(Ordering::Relaxed) {
            let jobs = jobs.iter().filter(|job| job.needs_review());
            jobs.for_each(|job| chainstate.reviews.push(Arc::clone(job.funded()), job.has_known()));
        }
        Ok(Report::Commit { to: range.end })
    }

    /// Makes the rows of every follower that is fed and has a preparer.
    fn prepare_rows(&self, job: &Job) -> Report {
        let followers = &self.chainstate.followers;
        let rows: Vec<(usize, Rows)> = self.chainstate.meter.time(Stage::Prepare, || {
            let fed = followers.with(Standing::InStep).into_iter();
            fed.filter_map(|index| Some((index, followers.prepare(index, &job.with_spent())?))).collect()
        });
        let bytes = rows.iter().map(|(_, rows)| rows.bytes()).sum();
        job.set_rows(rows);
        Report::Prepare { index: job.index, bytes }
    }

    fn follow(&self, follower: usize, to: usize, jobs: &[Arc<Job>]) -> Result<Report, EngineError> {
        let (followers, meter) = (&self.chainstate.followers, &self.chainstate.meter);
        for job in jobs {
            let block = job.connected();
            // Without rows if it joined after they were made for others.
            let rows = job
                .take_rows(follower)
                .or_else(|| meter.time(Stage::Prepare, || followers.prepare(follower, &block.with_spent())));
            let connect = || followers.connect(follower, job.id, &block, rows, &*self.chainstate.settings.background);
            if !meter.time(Stage::Follow, connect)? {
                self.chainstate.settle(self.observer);
                return Ok(Report::Follow { follower, to, is_fed: false });
            }
        }
        self.chainstate.settle(self.observer);
        Ok(Report::Follow { follower, to, is_fed: true })
    }
}

/// The position of the undo data of a block that was connected before, if the data still exists and is whole. A failing
/// disk is an error.
fn known_undo(
    chainstate: &ChainstateManager,
    id: HeaderId,
    prev_block: &BlockHash,
) -> Result<Option<UndoPosition>, EngineError> {
    let Some(position) = chainstate.tree().node(id).undo else { return Ok(None) };
    match chainstate.store.read_undo(position, prev_block) {
        Ok(_) => Ok(Some(position)),
        Err(ChainError::UndoDamaged { .. } | ChainError::UndoMissing { .. }) => Ok(None),
        Err(error) if is_damage(&error) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Whether a read failed because the block's data is missing or incomplete. Anything else is a failure of the disk.
fn is_damage(error: &ChainError) -> bool {
    match error {
        ChainError::Disk(error) => matches!(error.kind, DiskErrorKind::NotFound | DiskErrorKind::UnexpectedEnd { .. }),
        ChainError::Read(_) | ChainError::UnknownFile { .. } => true,
        _ => false,
    }
}
