//! Log lines about blocks and headers that are refused before they are connected: Core's `ProcessNewBlock`,
//! `AcceptBlock` and `AcceptBlockHeader`. Input: the block or header, and the reason. Output: events for the background
//! observer. Affects no decision.

use crate::chainstate::manager::ChainstateManager;
use crate::event::log;
use crate::log::LogLevel;
use lydian_consensus::{Rejected, Rule, Step};
use lydian_primitives::{Block, BlockHash, Header};

const VALIDATION: LogLevel = LogLevel::Debug("validation");

/// Logs a block that was not stored.
pub(crate) fn log_refused_block(chainstate: &ChainstateManager, block: &Block, rejected: &Rejected) {
    let observer = &*chainstate.settings.background;
    let state = match rejected {
        // Core treats a block that it already has as a success.
        Rejected::Duplicate => return,
        Rejected::DuplicateInvalid => {
            log_refused_header(chainstate, block.header(), &block.hash(), rejected);
            rejected.state(&block.hash(), None)
        }
        Rejected::Violation(violation) => {
            let state = violation.state(Some(block));
            match violation.rule.info().step {
                Step::HeaderInChain => log_refused_header(chainstate, block.header(), &block.hash(), rejected),
                Step::BlockInChain => log(observer, LogLevel::Error, format_args!("AcceptBlock: {state}")),
                Step::Header | Step::Block | Step::Transaction | Step::Coins | Step::Scripts => {}
            }
            state
        }
    };
    log(observer, LogLevel::Error, format_args!("ProcessNewBlock: AcceptBlock FAILED ({state})"));
}

/// Logs a header that was not entered into the tree.
pub(crate) fn log_refused_header(
    chainstate: &ChainstateManager,
    header: &Header,
    hash: &BlockHash,
    rejected: &Rejected,
) {
    let observer = &*chainstate.settings.background;
    let parent = header.prev_block;
    match rejected {
        Rejected::Duplicate => {}
        Rejected::DuplicateInvalid => {
            log(observer, VALIDATION, format_args!("AcceptBlockHeader: block {hash} is marked invalid"));
        }
        Rejected::Violation(violation) if violation.rule == Rule::PrevBlkNotFound => {
            log(observer, VALIDATION, format_args!("header {hash} has prev block not found: {parent}"));
        }
        Rejected::Violation(violation) if violation.rule == Rule::BadPrevblk => {
            log(observer, VALIDATION, format_args!("header {hash} has prev block invalid: {parent}"));
        }
        Rejected::Violation(violation) if violation.rule == Rule::HighHash => {
            let state = violation.state(None);
            log(observer, VALIDATION, format_args!("AcceptBlockHeader: Consensus::CheckBlockHeader: {hash}, {state}"));
        }
        Rejected::Violation(violation) => {
            let state = violation.state(None);
            let text = format_args!("AcceptBlockHeader: Consensus::ContextualCheckBlockHeader: {hash}, {state}");
            log(observer, VALIDATION, text);
        }
    }
}
