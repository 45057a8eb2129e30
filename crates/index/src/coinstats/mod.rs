//! The coin statistics: sums and the MuHash of all coins as of every block, Core's `-coinstatsindex`
//! (index/coinstatsindex.cpp).
//!
//! Input: blocks with the coins they spent. Output: [`CoinStats`] of any block that was ever on the active chain. The
//! sums and the MuHash of a block's own coins are made by any worker ([`block`]); connecting a block adds them to the
//! running ones. The hash of a running MuHash needs an inversion, which is shared by up to [`BATCH`] blocks.
//!
//! Invariants: the log ([`log`]) has a record for each block since the genesis block, in the order of their connection,
//! so that a record of a block that left the chain stays; the tip file names the number of records that are valid, with
//! the running sums and MuHash. Cost per block: a MuHash element for each coin created or spent (by any worker), two
//! 3,072-bit multiplications in order, 240 bytes of disk. Memory: 4 bytes per block, and 1 kB for each of a batch.

mod block;
pub(crate) mod inspect;
mod log;
mod tip;

use crate::error::IndexError;
use block::{BlockStats, Sums, block_stats};
use log::{Log, Record};
use lydian_consensus::Params;
use lydian_disk::{Disk, OwnDir, OwnFile, Proof};
use lydian_engine::{BlockWithSpent, ConnectedBlock, Follower, FollowerError, Left, Prepare, Rows, Tip};
use lydian_hash::MuHash3072;
use lydian_primitives::{Amount, BlockHash, Height};
use lydian_stdx::lock;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
pub use tip::COINSTATS_FORMAT;
use tip::Saved;

/// The name in `getindexinfo`, as in Core.
pub const COINSTATS_NAME: &str = "coinstatsindex";

/// The directory, relative to the data directory of the chain.
pub const COINSTATS_DIR: &str = "indexes/coinstats";

/// The files in it.
pub const COINSTATS_FILES: &[OwnFile] =
    &[OwnFile { name: LOG_FILE, proof: Proof::Directory }, OwnFile { name: TIP_FILE, proof: Proof::Directory }];

const LOG_FILE: &str = "stats.log";
const TIP_FILE: &str = "stats.tip";

/// Blocks that share one inversion: one takes about as long as two thousand multiplications.
const BATCH: usize = 32;

/// The statistics of all coins as of a block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CoinStats {
    pub height: Height,
    pub hash: BlockHash,
    /// In internal byte order; displayed reversed.
    pub muhash: [u8; 32],
    /// The number of coins.
    pub coins: u64,
    /// Core's size measure of the set, independent of its storage.
    pub bogosize: u64,
    pub total: Amount,
    /// Sums since the genesis block, as in Core. Outputs created and spent by transactions other than coinbases may be
    /// more than 2^63 satoshis together.
    pub subsidy: Amount,
    pub prevouts_spent: i128,
    pub new_outputs_ex_coinbase: i128,
    pub coinbase: i128,
    /// The output of the genesis block, which is no coin.
    pub unspendable_genesis: Amount,
    /// Coinbases that were repeated before BIP-0030.
    pub unspendable_bip30: Amount,
    /// Outputs whose script fails for any input.
    pub unspendable_scripts: Amount,
    /// Rewards that miners did not take.
    pub unspendable_unclaimed: Amount,
}

impl CoinStats {
    /// The sum of everything that was created and can never be spent.
    pub fn unspendable(&self) -> Amount {
        let parts =
            [self.unspendable_genesis, self.unspendable_bip30, self.unspendable_scripts, self.unspendable_unclaimed];
        Amount(parts.iter().fold(0, |sum, amount| sum.saturating_add(amount.0)))
    }

    fn of(record: &Record) -> CoinStats {
        let Record { height, hash, muhash, sums } = *record;
        let amount = |sum: i128| Amount(i64::try_from(sum).unwrap_or(i64::MAX));
        CoinStats {
            height,
            hash,
            muhash,
            coins: u64::try_from(sums.coins).unwrap_or(0),
            bogosize: u64::try_from(sums.bogosize).unwrap_or(0),
            total: amount(sums.total),
            subsidy: amount(sums.subsidy),
            prevouts_spent: sums.prevouts_spent,
            new_outputs_ex_coinbase: sums.new_outputs_ex_coinbase,
            coinbase: sums.coinbase,
            unspendable_genesis: amount(sums.genesis),
            unspendable_bip30: amount(sums.bip30),
            unspendable_scripts: amount(sums.scripts),
            unspendable_unclaimed: amount(sums.unclaimed),
        }
    }
}

/// The index: a follower of the chain.
#[derive(Debug)]
pub struct CoinStatsIndex {
    shared: Arc<Shared>,
    params: Arc<Params>,
    durable: Option<Tip>,
}

/// Answers queries, from any thread.
#[derive(Clone, Debug)]
pub struct CoinStatsReader(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    disk: Arc<dyn Disk>,
    dir: PathBuf,
    state: Mutex<State>,
}

/// The state in memory: that of the last block connected.
#[derive(Debug)]
struct State {
    at: Option<Tip>,
    sums: Sums,
    muhash: MuHash3072,
    log: Log,
    /// Blocks whose record is not in the log yet.
    waiting: Vec<Waiting>,
    /// The error of a write that a reader made: the next call of the engine returns it.
    failed: Option<IndexError>,
}

#[derive(Debug)]
struct Waiting {
    at: Tip,
    sums: Sums,
    muhash: MuHash3072,
}

impl CoinStatsIndex {
    /// Opens the index in a directory, or creates it; at the block of its last checkpoint.
    pub fn open(
        disk: Arc<dyn Disk>,
        dir: &Path,
        params: &Params,
    ) -> Result<(CoinStatsIndex, CoinStatsReader), IndexError> {
        disk.create_dir(dir)?;
        let saved = tip::read(disk.as_ref(), &dir.join(TIP_FILE), params)?;
        let log = Log::open(disk.as_ref(), &own(dir), &dir.join(LOG_FILE), saved.as_ref())?;
        let durable = saved.as_ref().map(|saved| saved.tip);
        let (sums, muhash) = saved.map_or((Sums::default(), MuHash3072::new()), |saved| (saved.sums, saved.muhash));
        let state = Mutex::new(State { at: durable, sums, muhash, log, waiting: Vec::new(), failed: None });
        let shared = Arc::new(Shared { disk, dir: dir.to_owned(), state });
        let reader = CoinStatsReader(Arc::clone(&shared));
        Ok((CoinStatsIndex { shared, params: Arc::new(params.clone()), durable }, reader))
    }
}

impl CoinStatsReader {
    /// The statistics as of a block; `None` if the index has not reached it.
    pub fn at(&self, height: Height, hash: &BlockHash) -> Result<Option<CoinStats>, IndexError> {
        let mut state = lock(&self.0.state);
        if state.waiting.iter().any(|waiting| waiting.at.hash == *hash)
            && let Err(error) = state.write_waiting()
        {
            state.failed = Some(error.clone());
            return Err(error);
        }
        Ok(state.log.find(self.0.disk.as_ref(), height, hash)?.as_ref().map(CoinStats::of))
    }
}

impl State {
    /// The error of a reader, if there was one.
    fn check(&self) -> Result<(), FollowerError> {
        self.failed.clone().map_or(Ok(()), |error| Err(error.into()))
    }

    /// Writes the records of the blocks that wait, with one inversion for all of them.
    fn write_waiting(&mut self) -> Result<(), IndexError> {
        let waiting = std::mem::take(&mut self.waiting);
        let (others, muhashes): (Vec<(Tip, Sums)>, Vec<MuHash3072>) =
            waiting.into_iter().map(|waiting| ((waiting.at, waiting.sums), waiting.muhash)).unzip();
        for ((at, sums), muhash) in others.into_iter().zip(MuHash3072::finalize_many(&muhashes)) {
            self.log.push(&Record { height: at.height, hash: at.hash, muhash, sums });
        }
        self.log.flush()
    }
}

/// The rows of a block: its own sums, and a MuHash with the coins it created and, as removed, those it spent.
#[derive(Debug)]
struct Preparer {
    params: Arc<Params>,
}

impl Prepare for Preparer {
    fn prepare(&self, block: &BlockWithSpent<'_>) -> Rows {
        Rows::new(block_stats(block, &self.params), size_of::<BlockStats>())
    }
}

impl Follower for CoinStatsIndex {
    fn name(&self) -> &str {
        COINSTATS_NAME
    }

    fn durable_tip(&self) -> Option<Tip> {
        self.durable
    }

    fn preparer(&self) -> Option<Arc<dyn Prepare>> {
        Some(Arc::new(Preparer { params: Arc::clone(&self.params) }))
    }

    fn connect(&mut self, block: &ConnectedBlock<'_>, rows: Option<Rows>) -> Result<(), FollowerError> {
        let stats: BlockStats = match rows {
            Some(rows) => rows.take(),
            None => block_stats(&block.with_spent(), &self.params),
        };
        let mut state = lock(&self.shared.state);
        state.check()?;
        state.sums.add(&stats.sums);
        state.muhash.combine(&stats.muhash);
        let at = Tip { height: block.height, hash: block.block.hash() };
        let waiting = Waiting { at, sums: state.sums, muhash: state.muhash.clone() };
        state.waiting.push(waiting);
        state.at = Some(at);
        if state.waiting.len() >= BATCH {
            state.write_waiting()?;
        }
        Ok(())
    }

    fn disconnect(&mut self, block: &ConnectedBlock<'_>) -> Result<Left, FollowerError> {
        let stats = block_stats(&block.with_spent(), &self.params);
        let mut state = lock(&self.shared.state);
        state.check()?;
        // Its record stays in the log: Core answers for such blocks too.
        state.write_waiting()?;
        state.sums.subtract(&stats.sums);
        state.muhash.divide(&stats.muhash);
        state.log.pop(block.block.hash());
        let height = Height(block.height.0.saturating_sub(1));
        state.at = Some(Tip { height, hash: block.block.header().prev_block });
        Ok(Left::Block)
    }

    fn checkpoint(&mut self, tip: Tip) -> Result<(), FollowerError> {
        let Shared { disk, dir, state } = &*self.shared;
        let mut state = lock(state);
        state.check()?;
        assert_eq!(state.at, Some(tip), "a checkpoint is at the last block");
        state.write_waiting()?;
        state.log.sync()?;
        let saved = Saved { tip, records: state.log.len(), sums: state.sums, muhash: state.muhash.clone() };
        let path = dir.join(TIP_FILE);
        own(dir).replace(disk.as_ref(), &path, &tip::encode(&saved, &self.params))?;
        self.durable = Some(tip);
        Ok(())
    }

    fn clear(&mut self) -> Result<(), FollowerError> {
        let Shared { disk, dir, state } = &*self.shared;
        let mut state = lock(state);
        let own = own(dir);
        own.remove(disk.as_ref(), &dir.join(TIP_FILE))?;
        disk.sync_dir(dir)?;
        state.log = Log::open(disk.as_ref(), &own, &dir.join(LOG_FILE), None).map_err(FollowerError::from)?;
        (state.at, state.sums, state.muhash) = (None, Sums::default(), MuHash3072::new());
        state.waiting.clear();
        state.failed = None;
        self.durable = None;
        Ok(())
    }
}

fn own(dir: &Path) -> OwnDir {
    OwnDir::new(dir, COINSTATS_FILES)
}

#[cfg(test)]
mod tests;
