//! Events of the engine for an [`Observer`]. They come from any worker, in the order of commits. An observer must be
//! quick and must never call the engine.

use crate::error::EngineError;
use crate::log::{LogLevel, LogPlace};
use lydian_chain::ChainError;
use lydian_coins::Tip;
use lydian_consensus::{U256, Violation};
use lydian_primitives::{Amount, Block, BlockHash, Header, Height};
use lydian_script::CheckCounts;
use std::fmt;
use std::panic::Location;

/// A receiver of events.
pub trait Observer: Sync {
    fn event(&self, event: &Event<'_>);
}

/// Passes a line to an observer, which formats the text only if it needs it.
#[track_caller]
pub(crate) fn log(observer: &dyn Observer, level: LogLevel, text: fmt::Arguments<'_>) {
    observer.event(&Event::Log { level, text, place: Location::caller() });
}

/// An observer that ignores all events.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unobserved;

impl Observer for Unobserved {
    fn event(&self, _: &Event<'_>) {}
}

/// An event.
#[derive(Debug)]
pub enum Event<'a> {
    /// The tip moved, up or down.
    UpdateTip(TipUpdate),
    /// The coins and every follower that is in step have the chain up to this block: it may be announced. `sequence`
    /// grows with each move.
    Settled { tip: Tip, sequence: u64 },
    /// A block that was connected is settled. Comes before [`Event::Settled`].
    BlockSettled(&'a SettledBlock<'a>),
    /// A block breaks a rule; neither it nor its descendants will be on the chain. `state` is Core's
    /// `BlockValidationState::ToString`.
    InvalidBlock { hash: BlockHash, height: Height, violation: &'a Violation, state: &'a str },
    /// A block was marked as invalid, because of a fault or by hand: Core's `InvalidChainFound`.
    InvalidChain { invalid: BranchTip, best: BranchTip },
    /// A stored block could not be read, or its bytes do not match its hash; it counts as missing.
    UnreadableBlock { hash: BlockHash, height: Height, reason: &'a UnreadableReason },
    /// The chain with most work, which ends at `target`, leaves the active chain at this height: the blocks above are
    /// disconnected next, by the same thread.
    Reorganisation { fork_height: Height, disconnected: u32, target: BlockHash },
    /// A block that a review found to break a rule could not be disconnected; the engine must be opened again.
    NotTakenOff { hash: BlockHash, height: Height, error: &'a EngineError },
    /// Everything up to the tip is durable.
    Checkpoint { height: Height, coins: u64, bytes_written: u64 },
    /// A line for the log.
    Log { level: LogLevel, text: fmt::Arguments<'a>, place: LogPlace },
}

/// A block, with the fields that Core logs.
#[derive(Clone, Copy, Debug)]
pub struct BranchTip {
    pub hash: BlockHash,
    pub height: Height,
    pub chain_work: U256,
    /// The time of the header, in seconds since 1970.
    pub time: u32,
}

/// The new tip.
#[derive(Clone, Debug)]
pub struct TipUpdate {
    pub hash: BlockHash,
    pub height: Height,
    pub header: Header,
    pub chain_work: U256,
    /// The number of transactions of the chain up to here.
    pub transactions: u64,
    /// Bytes of coins in memory. `coins` is the number of all coins.
    pub cache_bytes: u64,
    pub coins: u64,
    pub is_disconnect: bool,
}

/// A connected block, with what its validation found.
#[derive(Clone, Copy, Debug)]
pub struct SettledBlock<'a> {
    pub block: &'a Block,
    pub times: BlockTimes,
    /// It was connected at the tip, not while the node caught up.
    pub is_at_tip: bool,
    pub fees: Amount,
    /// Signature and tweak checks.
    pub checks: CheckCounts,
}

/// Where a block came from, and when it went through each step. Times are nanoseconds of the engine's clock
/// ([`crate::StageClock`]).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BlockTimes {
    pub hash: BlockHash,
    pub height: Height,
    /// Unknown for a block that was found in a file, or was stored long before.
    pub arrival: Option<Arrival>,
    /// What its way from the disk took. `None` if it was still in memory from its arrival.
    pub reading: Option<Reading>,
    /// A run took it.
    pub begun: u64,
    /// Its coins were found.
    pub funded: u64,
    /// Its scripts were verified.
    pub verified: u64,
    pub committed: u64,
    /// The coins and the followers have it.
    pub settled: u64,
}

/// Where a block came from, and when. Times as in [`BlockTimes`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Arrival {
    pub source: BlockSource,
    /// All of its bytes were here.
    pub received: u64,
    /// Its turn came: blocks are parsed one after another.
    pub begun: u64,
    pub parsed: u64,
    /// It was checked, as far as that is possible without coins.
    pub checked: u64,
    pub stored: u64,
}

/// How long a block took from the disk to its run, in nanoseconds.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Reading {
    pub read: u64,
    pub parse: u64,
    pub check: u64,
}

/// Where a block came from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BlockSource {
    /// The peer with this number.
    Peer(u64),
    /// A call, such as `submitblock`.
    Call,
}

/// Why the bytes of a block are unusable.
#[derive(Debug)]
pub enum UnreadableReason {
    Chain(ChainError),
    /// The bytes are those of another block, or of none.
    OtherHash(BlockHash),
    NotABlock(lydian_primitives::ParseError),
    /// The bytes do not match what the hash commits to.
    Mutated(Violation),
}

impl fmt::Display for UnreadableReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            UnreadableReason::Chain(error) => error.fmt(f),
            UnreadableReason::OtherHash(hash) => write!(f, "the bytes there are those of block {hash}"),
            UnreadableReason::NotABlock(error) => write!(f, "the bytes there are no block: {error}"),
            UnreadableReason::Mutated(violation) => {
                write!(f, "the bytes there are not what the hash commits to: {violation}")
            }
        }
    }
}
