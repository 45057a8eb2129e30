//! A block in a run: the result of each step, for the next step.
//!
//! A job owns everything its tasks touch and is reference-counted, so that no task can outlive or borrow a block that
//! failed meanwhile (checklist 58). Invariant: only the steps can create the types of the steps, so a job cannot be
//! committed before every input has its coin and its verdict.

use crate::chainstate::checked::memory_with_coins;
use crate::chainstate::journal::{Change, Wanted};
use crate::chainstate::links::Links;
use crate::event::{Arrival, BlockTimes, Reading, SettledBlock};
use crate::follower::{BlockWithSpent, ConnectedBlock, Rows};
use lydian_chain::{BlockPosition, ChainTotals, HeaderId};
use lydian_coins::PARTITIONS;
use lydian_consensus::deployment::is_bip30_repeat;
use lydian_consensus::{
    CheckedBlock, Coin, Found, FundedBlock, Part, PartVerdict, Tally, VerifiedBlock, Violation, trust_scripts,
};
use lydian_stdx::lock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

/// One block of a run.
#[derive(Debug)]
pub(crate) struct Job {
    /// Index in the run.
    pub(crate) index: usize,
    pub(crate) id: HeaderId,
    pub(crate) position: BlockPosition,
    pub(crate) checked: CheckedBlock,
    pub(crate) links: Links,
    /// Whether the scripts were verified before or are assumed to be valid.
    pub(crate) is_trusted: bool,
    answers: Mutex<Vec<Answers>>,
    funded: OnceLock<Arc<FundedBlock>>,
    tally: Mutex<Option<Tally>>,
    verified: OnceLock<VerifiedBlock>,
    /// In the format of the undo files; taken at commit.
    undo: Mutex<Vec<u8>>,
    /// Whether scripts were skipped because they are known to be valid.
    has_known: AtomicBool,
    /// Whether the kernel may have decided any of its signatures.
    needs_review: AtomicBool,
    /// What preparers made of the block, with the index of their follower.
    rows: Mutex<Vec<(usize, Rows)>>,
    /// The totals of the chain below the block; set at commit.
    below: OnceLock<ChainTotals>,
    coming: Coming,
    /// When it was funded and verified, by the meter's clock.
    funded_at: AtomicU64,
    verified_at: AtomicU64,
    /// When it was committed, and whether that was at the tip.
    committed_at: OnceLock<(u64, bool)>,
}

/// How a block came to its run.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Coming {
    /// Where it came from, if that is known.
    pub(crate) arrival: Option<Arrival>,
    /// What its way from the disk took, if it was not in memory.
    pub(crate) reading: Option<Reading>,
    /// When the run took it.
    pub(crate) begun: u64,
}

/// The answers of one partition for a block.
#[derive(Debug, Default)]
pub(crate) struct Answers {
    /// The coin of each input, with the input's index among all inputs of the block.
    pub(crate) coins: Vec<(u32, Option<Coin>)>,
    /// The first transaction that repeats one with unspent outputs (BIP-0030).
    repeated_tx: Option<u32>,
}

impl Answers {
    pub(crate) fn repeats(&mut self, tx: u32) {
        self.repeated_tx = Some(self.repeated_tx.map_or(tx, |first| first.min(tx)));
    }
}

impl Job {
    pub(crate) fn new(
        index: usize,
        id: HeaderId,
        position: BlockPosition,
        checked: CheckedBlock,
        links: Links,
        is_trusted: bool,
        coming: Coming,
    ) -> Job {
        Job {
            index,
            id,
            position,
            checked,
            links,
            is_trusted,
            answers: Mutex::default(),
            funded: OnceLock::new(),
            tally: Mutex::default(),
            verified: OnceLock::new(),
            undo: Mutex::default(),
            has_known: AtomicBool::new(false),
            needs_review: AtomicBool::new(false),
            rows: Mutex::default(),
            below: OnceLock::new(),
            coming,
            funded_at: AtomicU64::new(0),
            verified_at: AtomicU64::new(0),
            committed_at: OnceLock::new(),
        }
    }

    /// Adds the answers of one partition.
    pub(crate) fn answer(&self, answers: Answers) {
        lock(&self.answers).push(answers);
    }

    /// Joins the answers of all partitions and the block's own outputs.
    pub(crate) fn found(&self) -> Found {
        let answers = std::mem::take(&mut *lock(&self.answers));
        assert_eq!(answers.len(), PARTITIONS, "every partition has answered");
        let mut coins = vec![None; self.links.input_count()];
        self.links.fill_own(self.checked.block(), self.checked.height(), &mut coins);
        let repeated_tx = answers.iter().filter_map(|answers| answers.repeated_tx).min().map(|tx| tx as usize);
        for (flat, coin) in answers.into_iter().flat_map(|answers| answers.coins) {
            coins[flat as usize] = coin;
        }
        Found { coins, repeated_tx }
    }

    /// Sets the funded block, its undo data, and the parts whose scripts are known to be valid. A block without other
    /// scripts, or whose scripts are all trusted, becomes verified as well.
    /// `now` is the time by the meter's clock.
    pub(crate) fn set_funded(
        &self,
        funded: FundedBlock,
        undo: Vec<u8>,
        known: &[Part],
        now: u64,
    ) -> Result<(), Violation> {
        self.funded_at.store(now, Ordering::Relaxed);
        let mut tally = Tally::new(&funded);
        known.iter().for_each(|part| tally.trust(*part));
        self.has_known.store(!known.is_empty(), Ordering::Relaxed);
        *lock(&self.undo) = undo;
        let funded = Arc::new(funded);
        assert!(self.funded.set(Arc::clone(&funded)).is_ok(), "the inputs of a block are checked once");
        if self.is_trusted {
            self.set_verified(trust_scripts(funded), now);
        } else if tally.is_complete() {
            self.set_verified(tally.finish(funded)?, now);
        } else {
            *lock(&self.tally) = Some(tally);
        }
        Ok(())
    }

    /// The funded block.
    ///
    /// # Panics
    /// If it is not funded.
    pub(crate) fn funded(&self) -> &Arc<FundedBlock> {
        match self.funded.get() {
            Some(funded) => funded,
            None => panic!("the inputs of a block are checked before its scripts are verified"),
        }
    }

    /// Adds the verdict of a part. Returns whether it was the last one, and so every script succeeded. `now` is the
    /// time by the meter's clock.
    pub(crate) fn add(&self, verdict: PartVerdict, now: u64) -> Result<bool, Violation> {
        let mut slot = lock(&self.tally);
        let Some(mut tally) = slot.take() else { panic!("a part is verified before its block has its verdict") };
        tally.add(self.funded(), verdict);
        if !tally.is_complete() {
            *slot = Some(tally);
            return Ok(false);
        }
        self.set_verified(tally.finish(Arc::clone(self.funded()))?, now);
        Ok(true)
    }

    fn set_verified(&self, verified: VerifiedBlock, now: u64) {
        self.verified_at.store(now, Ordering::Relaxed);
        assert!(self.verified.set(verified).is_ok(), "a block gets its verdict once");
    }

    /// The verified block.
    ///
    /// # Panics
    /// If it is not verified.
    pub(crate) fn verified(&self) -> &VerifiedBlock {
        match self.verified.get() {
            Some(verified) => verified,
            None => panic!("a block is verified before it is committed"),
        }
    }

    pub(crate) fn take_undo(&self) -> Vec<u8> {
        std::mem::take(&mut *lock(&self.undo))
    }

    /// Set before any script of the block is verified.
    pub(crate) fn set_needs_review(&self, needs_review: bool) {
        self.needs_review.store(needs_review, Ordering::Relaxed);
    }

    pub(crate) fn needs_review(&self) -> bool {
        self.needs_review.load(Ordering::Relaxed)
    }

    pub(crate) fn has_known(&self) -> bool {
        self.has_known.load(Ordering::Relaxed)
    }

    /// The block as preparers get it. It must be funded.
    pub(crate) fn with_spent(&self) -> BlockWithSpent<'_> {
        BlockWithSpent { height: self.checked.height(), block: self.checked.block(), spent: self.funded().spent() }
    }

    pub(crate) fn set_rows(&self, rows: Vec<(usize, Rows)>) {
        *lock(&self.rows) = rows;
    }

    /// The rows of a follower, if they were made.
    pub(crate) fn take_rows(&self, follower: usize) -> Option<Rows> {
        let mut rows = lock(&self.rows);
        let at = rows.iter().position(|(index, _)| *index == follower)?;
        Some(rows.swap_remove(at).1)
    }

    pub(crate) fn set_below(&self, below: ChainTotals) {
        assert!(self.below.set(below).is_ok(), "a block is committed once");
    }

    /// The block was committed; `now` is the time by the meter's clock.
    pub(crate) fn set_committed(&self, now: u64, is_at_tip: bool) {
        assert!(self.committed_at.set((now, is_at_tip)).is_ok(), "a block is committed once");
    }

    /// The block as followers get it. It must be committed.
    pub(crate) fn connected(&self) -> ConnectedBlock<'_> {
        let BlockWithSpent { height, block, spent } = self.with_spent();
        match self.below.get() {
            Some(below) => ConnectedBlock { height, block, spent, below: *below },
            None => panic!("a block is committed before followers get it"),
        }
    }
}

impl Change for Job {
    fn decide(&self, partition: usize, wanted: &mut Wanted) {
        let spent = self.funded().spent();
        // A coin that was spent was there before, whatever the block creates with the same outpoint.
        for spend in self.links.spends(partition) {
            wanted.decide(&spend.key(), || Some(spent[spend.flat as usize].clone()));
        }
        for create in self.links.creates(partition).iter().filter(|create| create.is_kept) {
            wanted.decide(&create.key(), || None);
        }
    }

    fn bytes(&self) -> usize {
        size_of::<Job>() + memory_with_coins(self.checked.block(), self.funded().spent(), &self.links)
    }

    fn connected(&self) -> Option<SettledBlock<'_>> {
        let (committed, is_at_tip) = *self.committed_at.get()?;
        let block = self.checked.block();
        let Coming { arrival, reading, begun } = self.coming;
        let times = BlockTimes {
            hash: block.hash(),
            height: self.checked.height(),
            arrival,
            reading,
            begun,
            funded: self.funded_at.load(Ordering::Relaxed),
            verified: self.verified_at.load(Ordering::Relaxed),
            committed,
            settled: 0,
        };
        let verified = self.verified();
        Some(SettledBlock { block, times, is_at_tip, fees: verified.funded().fees(), checks: *verified.checks() })
    }

    /// The two coinbases of 2010 that overwrote others are not in the undo data.
    fn is_exact(&self) -> bool {
        !is_bip30_repeat(self.checked.height(), &self.checked.block().hash())
    }
}
