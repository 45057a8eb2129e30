//! [`Leg`]: some blocks of the active chain, read and prepared in any order, connected to followers in theirs.
//!
//! Input: the followers, which all stand below the first block. Output: the followers above the last one, or an error.
//! Invariants: at most [`CATCH_UP_BYTES`] of blocks are read and not connected, or one block; one worker connects at a
//! time. The workers are those of a run ([`crate::run::workers`]).

use crate::chainstate::blocks::read_connected;
use crate::chainstate::followers::Standing;
use crate::chainstate::manager::ChainstateManager;
use crate::error::EngineError;
use crate::follower::{BlockWithSpent, ConnectedBlock, Rows};
use crate::limits::CATCH_UP_BYTES;
use crate::run::workers::{Crew, Step, work_off};
use lydian_chain::{BlockCounts, ChainTotals, HeaderId};
use lydian_consensus::Coin;
use lydian_primitives::{Block, Height};
use std::collections::VecDeque;

/// A block in memory takes this multiple of its bytes, with its tables and the coins it spent.
const COST_FACTOR: usize = 3;

/// The most blocks connected in one piece of work.
const CONNECT_BLOCKS_MAX: usize = 16;

/// Why a leg ended before its last block.
#[derive(Debug)]
pub(super) enum LegError {
    /// A follower failed, and the node cannot go on without it.
    Engine(EngineError),
    /// A block cannot be read.
    Block(String),
}

/// Blocks for some followers.
#[derive(Debug)]
pub(super) struct Leg<'a> {
    chainstate: &'a ChainstateManager,
    followers: &'a [usize],
    path: Vec<HeaderId>,
    /// The totals of the chain below the first block.
    below: ChainTotals,
}

/// A block that was read, with the rows of its followers.
#[derive(Debug)]
pub(super) struct Ready {
    height: Height,
    block: Block,
    spent: Vec<Coin>,
    rows: Vec<(usize, Rows)>,
    cost: usize,
}

#[derive(Debug)]
pub(super) struct State {
    next_read: usize,
    /// All blocks below this index are connected, or being connected.
    taken: usize,
    /// The blocks from `taken` on.
    ready: VecDeque<Option<Box<Ready>>>,
    /// The cost of the blocks that were read, or are being read, and not connected.
    cost: usize,
    below: ChainTotals,
    is_connecting: bool,
}

pub(super) enum Work {
    Read { index: usize, cost: usize },
    Connect { first: usize, below: ChainTotals, blocks: Vec<Ready> },
}

pub(super) enum Report {
    Read { index: usize, cost: usize, ready: Box<Ready> },
    Connected { below: ChainTotals, cost: usize },
}

impl<'a> Leg<'a> {
    pub(super) fn new(
        chainstate: &'a ChainstateManager,
        followers: &'a [usize],
        path: Vec<HeaderId>,
        below: ChainTotals,
    ) -> Leg<'a> {
        Leg { chainstate, followers, path, below }
    }

    pub(super) fn run(&self, threads: usize) -> Result<(), LegError> {
        let state =
            State { next_read: 0, taken: 0, ready: VecDeque::new(), cost: 0, below: self.below, is_connecting: false };
        work_off(self, state, threads).map(|_| ())
    }

    /// The cost of a block before it is read.
    fn cost(&self, index: usize) -> usize {
        self.chainstate.tree().block(self.path[index]).map_or(0, |position| position.size as usize * COST_FACTOR)
    }

    fn read(&self, index: usize) -> Result<Ready, LegError> {
        let id = self.path[index];
        let node = self.chainstate.tree().node(id);
        let (block, spent) = read_connected(self.chainstate, id).map_err(|error| {
            let is_pruned = node.block.is_none() && node.sequence.is_some();
            LegError::Block(match error {
                EngineError::MissingBlock { hash, height, .. } if is_pruned => format!(
                    "it needs block {hash} at height {}, which was pruned; -reindex downloads the blocks again",
                    height.0
                ),
                error => error.to_string(),
            })
        })?;
        let with_spent = BlockWithSpent { height: node.height, block: &block, spent: &spent };
        let followers = &self.chainstate.followers;
        let rows: Vec<(usize, Rows)> =
            self.followers.iter().filter_map(|index| Some((*index, followers.prepare(*index, &with_spent)?))).collect();
        let cost = block.as_bytes().len() * COST_FACTOR + rows.iter().map(|(_, rows)| rows.bytes()).sum::<usize>();
        Ok(Ready { height: node.height, block, spent, rows, cost })
    }

    fn connect(&self, first: usize, mut below: ChainTotals, blocks: Vec<Ready>) -> Result<Report, LegError> {
        let (followers, observer) = (&self.chainstate.followers, &*self.chainstate.settings.background);
        let mut cost = 0;
        for (id, mut ready) in self.path[first..].iter().zip(blocks) {
            let block = ConnectedBlock { height: ready.height, block: &ready.block, spent: &ready.spent, below };
            for index in self.followers {
                if followers.place(*index).standing == Standing::Failed {
                    continue;
                }
                let rows = ready.rows.iter().position(|(of, _)| of == index).map(|at| ready.rows.swap_remove(at).1);
                followers.connect(*index, *id, &block, rows, observer).map_err(LegError::Engine)?;
            }
            below = below.with(BlockCounts::of(&ready.block));
            cost += ready.cost;
        }
        Ok(Report::Connected { below, cost })
    }
}

/// Whether a block may be read beside those that are not connected yet; one block is always allowed.
fn has_room(held: usize, cost: usize) -> bool {
    held == 0 || held + cost <= CATCH_UP_BYTES
}

impl Crew for Leg<'_> {
    type State = State;
    type Work = Work;
    type Report = Report;
    type Error = LegError;
    type Rest = ();

    fn next(&self, state: &mut State) -> Step<Work> {
        if self.chainstate.followers.cancel.is_cancelled() || state.taken == self.path.len() {
            return Step::Done;
        }
        let count = state.ready.iter().take(CONNECT_BLOCKS_MAX).take_while(|ready| ready.is_some()).count();
        if !state.is_connecting && count > 0 {
            let first = state.taken;
            state.taken += count;
            state.is_connecting = true;
            let blocks = state.ready.drain(..count).flatten().map(|ready| *ready).collect();
            return Step::Work(Work::Connect { first, below: state.below, blocks });
        }
        if state.next_read < self.path.len() {
            let index = state.next_read;
            let cost = self.cost(index);
            if has_room(state.cost, cost) {
                state.next_read += 1;
                state.cost += cost;
                state.ready.push_back(None);
                return Step::Work(Work::Read { index, cost });
            }
        }
        Step::Wait
    }

    fn perform(&self, work: Work) -> Result<Report, LegError> {
        match work {
            Work::Read { index, cost } => Ok(Report::Read { index, cost, ready: Box::new(self.read(index)?) }),
            Work::Connect { first, below, blocks } => self.connect(first, below, blocks),
        }
    }

    fn enter(&self, state: &mut State, report: Report) -> Option<()> {
        match report {
            Report::Read { index, cost, ready } => {
                state.cost = state.cost - cost + ready.cost;
                let at = index - state.taken;
                state.ready[at] = Some(ready);
            }
            Report::Connected { below, cost } => {
                state.below = below;
                state.cost -= cost;
                state.is_connecting = false;
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// limit: CATCH_UP_BYTES at
    /// limit: CATCH_UP_BYTES above
    #[test]
    fn what_is_read_is_bounded() {
        assert!(has_room(0, CATCH_UP_BYTES + 1), "one block is always allowed");
        assert!(has_room(1, CATCH_UP_BYTES - 1) && has_room(CATCH_UP_BYTES - 7, 7));
        assert!(!has_room(1, CATCH_UP_BYTES) && !has_room(CATCH_UP_BYTES - 7, 8));
    }
}
