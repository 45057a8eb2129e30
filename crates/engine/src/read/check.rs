//! The check of the last blocks and the coins at startup: `-checkblocks` and `-checklevel`, Core's `CVerifyDB`.
//!
//! Input: the number of blocks from the tip down, and the check level. Output: the first inconsistency found. Reads
//! only; the coins are seen through an overlay that disconnects the blocks one by one.

use crate::chainstate::assumed::is_assumed_valid;
use crate::chainstate::blocks::read_block;
use crate::chainstate::links::Links;
use crate::chainstate::manager::ChainstateManager;
use crate::engine::Engine;
use crate::error::EngineError;
use crate::event::{Observer, Unobserved, log};
use crate::log::LogLevel;
use lydian_chain::HeaderId;
use lydian_coins::PARTITIONS;
use lydian_consensus::deployment::is_bip30_unspendable;
use lydian_consensus::{CheckedBlock, Coin, Found, Mode, Violation, check_block, check_inputs, verify_scripts};
use lydian_primitives::{Block, BlockHash, Height, OutPoint};
use std::collections::HashMap;
use std::fmt;

/// An inconsistency in the data on disk, and the block where it was found.
#[derive(Debug)]
pub enum Inconsistency {
    /// A block of the active chain, or its undo data, cannot be read.
    Unreadable(EngineError),
    /// A stored block breaks a rule.
    Violation { hash: BlockHash, height: Height, violation: Violation },
    /// The coins are not those that the block left behind.
    Coins { hash: BlockHash, height: Height, outpoint: OutPoint },
}

impl fmt::Display for Inconsistency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Inconsistency::Unreadable(error) => error.fmt(f),
            Inconsistency::Violation { hash, height, violation } => {
                write!(f, "the stored block {hash} at height {height} breaks a rule: {violation}; -reindex is needed")
            }
            Inconsistency::Coins { hash, height, outpoint } => write!(
                f,
                "the coins do not fit block {hash} at height {height}: {outpoint} is not as it left it; \
                 -reindex-chainstate makes them anew"
            ),
        }
    }
}

impl std::error::Error for Inconsistency {}

impl Inconsistency {
    /// Core's `ValidationState::ToString` of a broken rule; otherwise the text of the error.
    fn state(&self) -> String {
        match self {
            Inconsistency::Violation { violation, .. } => violation.state(None),
            other => other.to_string(),
        }
    }
}

impl From<EngineError> for Inconsistency {
    fn from(error: EngineError) -> Inconsistency {
        Inconsistency::Unreadable(error)
    }
}

/// The result of a check of the last blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LastBlocks {
    /// Blocks checked.
    pub blocks: u32,
    pub end: LastBlocksEnd,
}

/// Why a check of the last blocks ended: Core's `VerifyDBResult`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LastBlocksEnd {
    /// All requested blocks were checked.
    Done,
    /// Deeper blocks were pruned.
    NoData,
    /// Level 3 was skipped for some blocks: the coins they spent take more memory than `-dbcache`.
    CoinsSkipped,
    /// The caller interrupted the check.
    Interrupted,
}

/// The coins as they were before the disconnected blocks.
#[derive(Default)]
struct Overlay {
    coins: HashMap<OutPoint, Option<Coin>>,
    bytes: u64,
}

impl Overlay {
    fn set(&mut self, outpoint: OutPoint, coin: Option<Coin>) {
        let size = coin.as_ref().map_or(0, |coin| coin.script_pubkey.len());
        self.bytes += OVERLAY_ENTRY_BYTES + u64::try_from(size).unwrap_or(u64::MAX);
        self.coins.insert(outpoint, coin);
    }
}

/// The size of an entry without its script.
const OVERLAY_ENTRY_BYTES: u64 = 160;

/// Logs the progress of a check and why it failed, with the sentences of Core's `VerifyDB`.
struct Progress<'a> {
    observer: &'a dyn Observer,
    /// Blocks to check, and the level.
    blocks: u32,
    level: u32,
    /// The last tenth that was logged.
    logged: u32,
    /// Transactions of blocks whose coins were correct.
    transactions: usize,
}

impl Progress<'_> {
    fn info(&self, text: fmt::Arguments<'_>) {
        log(self.observer, LogLevel::Info, text);
    }

    fn error(&self, text: fmt::Arguments<'_>) {
        log(self.observer, LogLevel::Error, text);
    }

    /// Logs every tenth. `count`: the blocks checked so far, or with `is_again` the blocks still to be reconnected.
    fn step(&mut self, count: u32, is_again: bool) {
        let share = if self.level >= 4 { 50 } else { 100 };
        let done = u64::from(count) * share / u64::from(self.blocks.max(1));
        let done = u32::try_from(if is_again { 100_u64.saturating_sub(done) } else { done }).unwrap_or(100);
        let done = done.clamp(1, 99);
        if self.logged < done / 10 {
            self.info(format_args!("Verification progress: {done}%"));
            self.logged = done / 10;
        }
    }

    /// Logs why the check failed. `depth`: the position of the block from the tip, which has 1.
    fn failed(&self, step: Step, hash: BlockHash, height: Height, depth: u32, found: &Inconsistency) {
        let (height, state) = (height.0, found.state());
        match step {
            Step::Read => self.error(format_args!("Verification error: ReadBlock failed at {height}, hash={hash}")),
            Step::Rules => {
                self.error(format_args!("Verification error: found bad block at {height}, hash={hash} ({state})"));
            }
            Step::Undo => {
                self.error(format_args!("Verification error: found bad undo data at {height}, hash={hash}"));
            }
            Step::Disconnect if matches!(found, Inconsistency::Coins { .. }) => self.error(format_args!(
                "Verification error: coin database inconsistencies found (last {depth} blocks, {} good transactions before that)",
                self.transactions
            )),
            Step::Disconnect => self.error(format_args!(
                "Verification error: irrecoverable inconsistency in block data at {height}, hash={hash}"
            )),
            Step::Connect => self.error(format_args!(
                "Verification error: found unconnectable block at {height}, hash={hash} ({state})"
            )),
        }
    }
}

/// The step at which the check of a block is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Read,
    Rules,
    Undo,
    Disconnect,
    Connect,
}

/// Checks `blocks` blocks. Each level includes those below it: 0 the block can be read; 1 it passes the context-free
/// checks (`CheckBlock`); 2 its undo data can be read; 3 the coins are those it left behind; 4 it can be connected
/// again under the rules in force now (`ConnectBlock`). Rules that depend only on its place in the chain
/// (`ContextualCheckBlock`) are not checked again, as in Core.
impl Engine {
    /// Checks the last blocks and the coins: Core's `-checkblocks` and `-checklevel`. Returns the number of blocks
    /// checked.
    pub fn check_last_blocks(&self, blocks: u32, level: u32) -> Result<u32, Inconsistency> {
        Ok(self.verify_last_blocks(blocks, level, &|| false, &Unobserved)?.blocks)
    }

    /// Like [`Engine::check_last_blocks`], until done or interrupted, and with Core's log lines: Core's
    /// `CVerifyDB::VerifyDB`.
    pub fn verify_last_blocks(
        &self,
        blocks: u32,
        level: u32,
        is_interrupted: &dyn Fn() -> bool,
        observer: &dyn Observer,
    ) -> Result<LastBlocks, Inconsistency> {
        self.shared.read(|chainstate| check_last_blocks(chainstate, blocks, level, is_interrupted, observer))
    }
}

fn check_last_blocks(
    chainstate: &ChainstateManager,
    blocks: u32,
    level: u32,
    is_interrupted: &dyn Fn() -> bool,
    observer: &dyn Observer,
) -> Result<LastBlocks, Inconsistency> {
    let mut overlay = Overlay::default();
    let (mut at, mut ids) = (chainstate.tree().tip(), Vec::new());
    let mut end = LastBlocksEnd::Done;
    let mut progress = Progress { observer, blocks, level, logged: 0, transactions: 0 };
    progress.info(format_args!("Verifying last {blocks} blocks at level {level}"));
    progress.info(format_args!("Verification progress: {}%", 0));
    for seen in 0..blocks {
        progress.step(seen, false);
        if is_interrupted() {
            return Ok(LastBlocks { blocks: seen, end: LastBlocksEnd::Interrupted });
        }
        let node = chainstate.tree().node(at);
        let Some(parent) = node.parent else { break };
        if node.block.is_none() {
            // Pruned: deeper blocks are pruned as well.
            progress.info(format_args!(
                "Block verification stopping at height {} (no data). This could be due to pruning or use of an assumeutxo snapshot.",
                node.height.0
            ));
            end = LastBlocksEnd::NoData;
            break;
        }
        let is_skipped = end == LastBlocksEnd::CoinsSkipped || overlay.bytes > chainstate.settings.cache_bytes;
        let mut step = Step::Read;
        let level_here = if is_skipped { level.min(2) } else { level };
        match check_one(chainstate, at, level_here, &mut overlay, &mut step) {
            Ok(transactions) => progress.transactions += transactions,
            Err(found) => {
                progress.failed(step, node.hash, node.height, seen + 1, &found);
                return Err(found);
            }
        }
        if is_skipped && level >= 3 {
            end = LastBlocksEnd::CoinsSkipped;
        }
        ids.push(at);
        at = parent;
    }
    let blocks = u32::try_from(ids.len()).unwrap_or(u32::MAX);
    if end == LastBlocksEnd::CoinsSkipped {
        let words =
            "Skipped verification of level >=3 (insufficient database cache size). Consider increasing -dbcache.";
        log(observer, LogLevel::Warning, format_args!("{words}"));
    }
    if level >= 4 && end != LastBlocksEnd::CoinsSkipped {
        drop(overlay);
        if !connect_all_again(chainstate, ids, is_interrupted, &mut progress)? {
            return Ok(LastBlocks { blocks, end: LastBlocksEnd::Interrupted });
        }
    }
    progress.info(format_args!("Verification: checked last {blocks} blocks at level {level}"));
    if level >= 3 && end != LastBlocksEnd::CoinsSkipped {
        let transactions = progress.transactions;
        progress.info(format_args!("Verification: no coin database inconsistencies ({transactions} transactions)"));
    }
    Ok(LastBlocks { blocks, end })
}

/// Level 4 of all blocks, which are given from the tip down. Returns false if it was interrupted.
fn connect_all_again(
    chainstate: &ChainstateManager,
    ids: Vec<HeaderId>,
    is_interrupted: &dyn Fn() -> bool,
    progress: &mut Progress<'_>,
) -> Result<bool, Inconsistency> {
    for (left, id) in (1..).zip(ids).collect::<Vec<(u32, HeaderId)>>().into_iter().rev() {
        progress.step(left, true);
        if is_interrupted() {
            return Ok(false);
        }
        if let Err(found) = connect_again(chainstate, id) {
            let node = chainstate.tree().node(id);
            let step = if matches!(found, Inconsistency::Unreadable(_)) { Step::Read } else { Step::Connect };
            progress.failed(step, node.hash, node.height, left, &found);
            return Err(found);
        }
    }
    Ok(true)
}

/// Levels 0 to 3 of one block. `step` is set to the current step. Returns the transactions whose coins were checked.
fn check_one(
    chainstate: &ChainstateManager,
    id: HeaderId,
    level: u32,
    overlay: &mut Overlay,
    step: &mut Step,
) -> Result<usize, Inconsistency> {
    let node = chainstate.tree().node(id);
    let (hash, height) = (node.hash, node.height);
    let block = read_own(chainstate, id)?;
    *step = Step::Rules;
    if level >= 1 {
        check_block(&block, &chainstate.params).map_err(|violation| Inconsistency::Violation {
            hash,
            height,
            violation,
        })?;
    }
    *step = if level >= 3 && node.undo.is_none() { Step::Disconnect } else { Step::Undo };
    if level >= 3 || (level == 2 && node.undo.is_some()) {
        let spent = read_undo(chainstate, id, &block)?;
        if level >= 3 {
            *step = Step::Disconnect;
            take_off(chainstate, &block, height, &spent, overlay)
                .map_err(EngineError::from)?
                .map_or(Ok(()), |outpoint| Err(Inconsistency::Coins { hash, height, outpoint }))?;
            return Ok(block.txs().len());
        }
    }
    Ok(0)
}

/// Level 4 of one block.
fn connect_again(chainstate: &ChainstateManager, id: HeaderId) -> Result<(), Inconsistency> {
    let node = chainstate.tree().node(id);
    let (hash, height) = (node.hash, node.height);
    let block = read_own(chainstate, id)?;
    let spent = read_undo(chainstate, id, &block)?;
    let found = Found { coins: spent.into_iter().map(Some).collect(), repeated_tx: None };
    let headers = chainstate.headers_below(id);
    let is_assumed = |assumed| is_assumed_valid(&chainstate.tree(), id, assumed, &chainstate.params);
    let is_assumed = chainstate.settings.assume_valid.is_some_and(is_assumed);
    CheckedBlock::check_again(block, height, &chainstate.params)
        .and_then(|checked| check_inputs(checked, found, &headers, &chainstate.params))
        .and_then(|funded| match is_assumed {
            true => Ok(()),
            false => verify_scripts(funded, Mode::Capture(&*chainstate.settings.signatures)).map(drop),
        })
        .map_err(|violation| Inconsistency::Violation { hash, height, violation })
}

/// The stored block: Core's `ReadBlock`.
fn read_own(chainstate: &ChainstateManager, id: HeaderId) -> Result<Block, Inconsistency> {
    let node = chainstate.tree().node(id);
    let (hash, height) = (node.hash, node.height);
    let missing = || EngineError::MissingBlock { hash, height, what: "the data" };
    let position = node.block.ok_or_else(missing)?;
    let parsed = read_block(chainstate, position).map_err(EngineError::from)?;
    Ok(parsed.ok().filter(|block| block.hash() == hash).ok_or_else(missing)?)
}

/// The coins that a block spent.
fn read_undo(chainstate: &ChainstateManager, id: HeaderId, block: &Block) -> Result<Vec<Coin>, Inconsistency> {
    let node = chainstate.tree().node(id);
    let missing = EngineError::MissingBlock { hash: node.hash, height: node.height, what: "the undo data" };
    let undo = node.undo.ok_or(missing)?;
    Ok(chainstate.store.read_spent(undo, block).map_err(EngineError::from)?)
}

/// Disconnects a block in the overlay; returns the first outpoint that is not as the block left it.
fn take_off(
    chainstate: &ChainstateManager,
    block: &Block,
    height: Height,
    spent: &[Coin],
    overlay: &mut Overlay,
) -> Result<Option<OutPoint>, lydian_coins::CoinsError> {
    let links = Links::new(block, false, &chainstate.active.coins);
    for partition in 0..PARTITIONS {
        let keys: Vec<_> = links.creates(partition).iter().map(|create| create.key()).collect();
        let mut stored = Vec::with_capacity(keys.len());
        chainstate.active.coins.get(partition, &keys, &mut stored)?;
        for ((create, key), stored) in links.creates(partition).iter().zip(keys).zip(stored) {
            let now = overlay.coins.get(&key.outpoint).cloned().unwrap_or(stored);
            let is_right = now.is_some_and(|coin| coin.as_ref() == links.coin(partition, create, block, height));
            if !is_right && !is_bip30_unspendable(height, &block.hash()) {
                return Ok(Some(key.outpoint));
            }
            overlay.set(key.outpoint, None);
        }
        for spend in links.spends(partition) {
            overlay.set(spend.key().outpoint, Some(spent[spend.flat as usize].clone()));
        }
    }
    Ok(None)
}
