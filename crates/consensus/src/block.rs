//! From [`Block`] to [`CheckedBlock`]: the rules that need no coins.
//!
//! Input: a parsed block, its height and a view of its ancestors. Output: the block with its height and script flags,
//! or the first violation. Each step makes one pass over the transactions to gather facts, and a table of checks is
//! applied to these facts. Core's `CheckBlock` and `ContextualCheckBlock` (validation.cpp). Pure.

use crate::deployment::script_flags;
use crate::header::{check_header, check_header_in_chain, check_header_without_ancestors};
use crate::limits::{MAX_BLOCK_SIGOPS_COST, MAX_BLOCK_WEIGHT, WITNESS_SCALE_FACTOR};
use crate::params::{Deployment, Params};
use crate::rule::{Check, Rule, Violation, first_broken};
use crate::signet::is_signet_solved;
use crate::tx::{check_transaction, is_final};
use crate::view::HeaderView;
use lydian_hash::sha256d;
use lydian_primitives::{Block, Height};
use lydian_script::{Flags, ScriptBuilder, transaction_legacy_sigop_count};
use std::sync::Arc;

/// A block that breaks none of the rules that depend only on its bytes and its ancestors' headers. A clone shares the
/// bytes.
#[derive(Clone, Debug)]
pub struct CheckedBlock {
    block: Arc<Block>,
    height: Height,
    flags: Flags,
}

/// The parent that a block names, as far as it is known.
#[derive(Clone, Copy, Debug)]
pub enum Parent<'a, View> {
    Unknown,
    /// Breaks a rule itself or has an ancestor that does.
    Invalid,
    At(Height, &'a View),
}

impl CheckedBlock {
    /// Checks a whole block in the order of Core's `ProcessNewBlock`: first the block by itself, then its header and
    /// then its body in the context of the chain. `now` is the current time in seconds.
    pub fn check(
        block: impl Into<Arc<Block>>,
        parent: Parent<'_, impl HeaderView>,
        now: i64,
        params: &Params,
    ) -> Result<CheckedBlock, Violation> {
        let block: Arc<Block> = block.into();
        check_block(&block, params)?;
        let (parent_height, headers) = match parent {
            Parent::Unknown => return Err(Violation::of(Rule::PrevBlkNotFound)),
            Parent::Invalid => return Err(Violation::of(Rule::BadPrevblk)),
            Parent::At(height, headers) => (height, headers),
        };
        let height = check_header_in_chain(block.header(), parent_height, headers, now, params)?;
        check_block_in_chain(&block, height, headers, params)?;
        let flags = script_flags(height, &block.hash(), params);
        Ok(CheckedBlock { block, height, flags })
    }

    /// Checks a proposed child of a block as [`CheckedBlock::check`] does, but not its proof of work, nor on signet its
    /// solution, which a proposal lacks: Core's `TestBlockValidity` without `check_pow`.
    pub fn check_proposal(
        block: impl Into<Arc<Block>>,
        merkle_root: MerkleRoot,
        parent: Height,
        headers: &impl HeaderView,
        now: i64,
        params: &Params,
    ) -> Result<CheckedBlock, Violation> {
        let block: Arc<Block> = block.into();
        check_body(&block, true, merkle_root)?;
        let height = check_header_in_chain(block.header(), parent, headers, now, params)?;
        check_block_in_chain(&block, height, headers, params)?;
        let flags = script_flags(height, &block.hash(), params);
        Ok(CheckedBlock { block, height, flags })
    }

    /// Checks a block of the chain again by itself, without checking its context: Core's `ConnectBlock` in `CVerifyDB`.
    /// The script flags are those that the rules now assign to its height.
    pub fn check_again(block: Block, height: Height, params: &Params) -> Result<CheckedBlock, Violation> {
        check_block(&block, params)?;
        let flags = script_flags(height, &block.hash(), params);
        Ok(CheckedBlock { block: Arc::new(block), height, flags })
    }

    /// Checks as much of a block as possible without its ancestors. Of the contextual header rules only those for the
    /// future time limit and the version are checked. `assumed` answers with what is assumed about the ancestors.
    pub(crate) fn check_without_ancestors(
        block: Block,
        height: Height,
        assumed: &impl HeaderView,
        now: i64,
        params: &Params,
    ) -> Result<CheckedBlock, Violation> {
        check_block(&block, params)?;
        check_header_without_ancestors(block.header(), height, now, params)?;
        check_block_in_chain(&block, height, assumed, params)?;
        let flags = script_flags(height, &block.hash(), params);
        Ok(CheckedBlock { block: Arc::new(block), height, flags })
    }

    pub fn block(&self) -> &Block {
        &self.block
    }

    pub fn height(&self) -> Height {
        self.height
    }

    /// The script verification flags for this block.
    pub fn flags(&self) -> Flags {
        self.flags
    }
}

/// The facts that one pass over a block gathers.
#[derive(Clone, Copy, Debug)]
pub struct BlockFacts {
    pub tx_count: usize,
    pub base_size: usize,
    pub is_signet_solved: bool,
    pub is_merkle_root_matching: bool,
    pub is_merkle_mutated: bool,
    pub is_first_coinbase: bool,
    /// Index of a coinbase that is not the first transaction.
    pub later_coinbase: Option<usize>,
}

/// The checks of Core's `CheckBlock` before those of the transactions, in Core's order.
pub const BLOCK_CHECKS: &[Check<BlockFacts>] = &[
    Check { rule: Rule::BadSignetBlksig, holds: |block| block.is_signet_solved },
    Check { rule: Rule::BadTxnmrklroot, holds: |block| block.is_merkle_root_matching },
    Check { rule: Rule::BadTxnsDuplicate, holds: |block| !block.is_merkle_mutated },
    Check { rule: Rule::BlockEmpty, holds: |block| block.tx_count != 0 },
    Check { rule: Rule::BlockTxCount, holds: |block| block.tx_count * WITNESS_SCALE_FACTOR <= MAX_BLOCK_WEIGHT },
    Check { rule: Rule::BlockBaseSize, holds: |block| block.base_size * WITNESS_SCALE_FACTOR <= MAX_BLOCK_WEIGHT },
    Check { rule: Rule::BadCbMissing, holds: |block| block.is_first_coinbase },
    Check { rule: Rule::BadCbMultiple, holds: |block| block.later_coinbase.is_none() },
];

/// Checks everything that depends on a block's bytes alone: Core's `CheckBlock`.
pub fn check_block(block: &Block, params: &Params) -> Result<(), Violation> {
    check_header(block.header(), &block.hash(), params)?;
    check_body(block, is_signet_solved(block, params), MerkleRoot::Checked)
}

/// Whether the merkle root of a block is checked: Core's `check_merkle_root`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MerkleRoot {
    Checked,
    /// The block was assembled by this node, which computed the root.
    Trusted,
}

/// The part of [`check_block`] that needs no proof of work.
fn check_body(block: &Block, is_signet_solved: bool, merkle_root: MerkleRoot) -> Result<(), Violation> {
    let is_trusted = merkle_root == MerkleRoot::Trusted;
    let facts = BlockFacts {
        tx_count: block.tx_count(),
        base_size: block.base_size(),
        is_signet_solved,
        is_merkle_root_matching: is_trusted || block.merkle_root() == block.header().merkle_root,
        is_merkle_mutated: !is_trusted && block.is_merkle_mutated(),
        is_first_coinbase: block.txs().next().is_some_and(|tx| tx.is_coinbase()),
        later_coinbase: block.txs().skip(1).position(|tx| tx.is_coinbase()).map(|index| index + 1),
    };
    if let Some(rule) = first_broken(BLOCK_CHECKS, &facts) {
        let tx = if rule == Rule::BadCbMultiple { facts.later_coinbase } else { None };
        return Err(Violation { tx, ..Violation::of(rule) });
    }
    for (index, tx) in block.txs().enumerate() {
        check_transaction(tx).map_err(|rule| Violation::in_tx(rule, index))?;
    }
    check_legacy_sigops(block)
}

/// Counts without P2SH and witnesses, because the coins are not known yet.
fn check_legacy_sigops(block: &Block) -> Result<(), Violation> {
    let sigops: usize = block.txs().map(transaction_legacy_sigop_count).sum();
    if sigops * WITNESS_SCALE_FACTOR > MAX_BLOCK_SIGOPS_COST {
        return Err(Violation::of(Rule::BlockLegacySigops));
    }
    Ok(())
}

/// The facts that one pass over a block in the context of its chain gathers.
#[derive(Clone, Copy, Debug)]
pub struct PlaceFacts {
    /// Index of the first transaction that is not final.
    pub nonfinal_tx: Option<usize>,
    pub is_coinbase_height_right: bool,
    pub witness_fault: Option<WitnessFault>,
    pub weight: usize,
}

/// A mismatch between a block and its witnesses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WitnessFault {
    NonceSize,
    MerkleMatch,
    /// Index of the first transaction with a witness that no witness commitment covers.
    Unexpected(usize),
}

/// The checks of Core's `ContextualCheckBlock`, in Core's order.
pub const BLOCK_IN_CHAIN_CHECKS: &[Check<PlaceFacts>] = &[
    Check { rule: Rule::TxNonfinal, holds: |block| block.nonfinal_tx.is_none() },
    Check { rule: Rule::BadCbHeight, holds: |block| block.is_coinbase_height_right },
    Check { rule: Rule::BadWitnessNonceSize, holds: |block| block.witness_fault != Some(WitnessFault::NonceSize) },
    Check { rule: Rule::BadWitnessMerkleMatch, holds: |block| block.witness_fault != Some(WitnessFault::MerkleMatch) },
    Check {
        rule: Rule::UnexpectedWitness,
        holds: |block| !matches!(block.witness_fault, Some(WitnessFault::Unexpected(_))),
    },
    Check { rule: Rule::BadBlkWeight, holds: |block| block.weight <= MAX_BLOCK_WEIGHT },
];

/// Checks everything that depends on a block's height and its ancestors' times. The block has passed [`check_block`].
pub fn check_block_in_chain(
    block: &Block,
    height: Height,
    headers: &impl HeaderView,
    params: &Params,
) -> Result<(), Violation> {
    let cutoff = lock_time_cutoff(block, height, headers, params).ok_or(Violation::of(Rule::PrevBlkNotFound))?;
    let facts = PlaceFacts {
        nonfinal_tx: block.txs().position(|tx| !is_final(tx, height, cutoff)),
        is_coinbase_height_right: is_coinbase_height_right(block, height, params),
        witness_fault: witness_fault(block, params.is_active(Deployment::Segwit, height)),
        weight: block.weight(),
    };
    let Some(rule) = first_broken(BLOCK_IN_CHAIN_CHECKS, &facts) else { return Ok(()) };
    let tx = match (rule, facts.witness_fault) {
        (Rule::TxNonfinal, _) => facts.nonfinal_tx,
        (Rule::UnexpectedWitness, Some(WitnessFault::Unexpected(tx))) => Some(tx),
        _ => None,
    };
    Err(Violation { tx, ..Violation::of(rule) })
}

/// The time that lock times are compared with: the parent's median time past if BIP-0113 is active, otherwise the
/// block's own time.
fn lock_time_cutoff(block: &Block, height: Height, headers: &impl HeaderView, params: &Params) -> Option<i64> {
    match height.0.checked_sub(1) {
        Some(parent) if params.is_active(Deployment::Csv, height) => headers.median_time_past(Height(parent)),
        _ => Some(i64::from(block.header().time)),
    }
}

/// BIP-0034: the scriptSig must begin with the shortest push of the height (OP_1 to OP_16 for heights 1 to 16).
fn is_coinbase_height_right(block: &Block, height: Height, params: &Params) -> bool {
    if !params.is_active(Deployment::HeightInCoinbase, height) {
        return true;
    }
    let expected = ScriptBuilder::new().push_int(i64::from(height.0)).into_bytes();
    block.tx(0).input(0).script_sig.starts_with(&expected)
}

/// Core's `CheckWitnessMalleation`.
fn witness_fault(block: &Block, is_segwit_active: bool) -> Option<WitnessFault> {
    if let Some(commitment) = block.witness_commitment().filter(|_| is_segwit_active) {
        let witness = block.tx(0).input(0).witness;
        let reserved = match witness.iter().next() {
            Some(item) if witness.len() == 1 && item.len() == 32 => item,
            _ => return Some(WitnessFault::NonceSize),
        };
        let mut preimage = [0; 64];
        preimage[..32].copy_from_slice(&commitment.witness_merkle_root);
        preimage[32..].copy_from_slice(reserved);
        return (sha256d(&preimage) != commitment.commitment).then_some(WitnessFault::MerkleMatch);
    }
    block.txs().position(|tx| tx.has_witness()).map(WitnessFault::Unexpected)
}

/// Whether a block's bytes are not the ones its header commits to, so that they prove nothing about its hash: Core's
/// `IsBlockMutated`. Called before any other check of a block from a peer.
///
/// A transaction of 64 bytes could be an inner node of the merkle tree. It makes a block mutated only if the first
/// transaction is not a coinbase, which is never the case in a valid block. A stricter check would reject honest
/// blocks.
pub fn is_block_mutated(block: &Block, is_segwit_active: bool) -> bool {
    if block.merkle_root() != block.header().merkle_root || block.is_merkle_mutated() {
        return true;
    }
    if !block.txs().next().is_some_and(|tx| tx.is_coinbase()) {
        return block.txs().any(|tx| tx.base_size() == 64);
    }
    witness_fault(block, is_segwit_active).is_some()
}
