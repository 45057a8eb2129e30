//! The check of a proposed block: Core's `TestBlockValidity`, for `getblocktemplate` with the mode "proposal".
//!
//! Input: a block whose parent is the tip, and the time. Output: whether it would be valid but for its proof of work,
//! and on signet its solution; or the rule that it breaks. Nothing is stored and nothing changes, and the engine does
//! not wait: the coins are those of a snapshot, which is taken once the tip is settled. Cost: that of a validation of
//! the block on one thread; scripts are left out if the mempool has verified all of them.

use super::snapshot::ChainSnapshot;
use crate::engine::Engine;
use crate::error::EngineError;
use lydian_consensus::deployment::is_bip30_checked;
use lydian_consensus::{
    CheckedBlock, Coin, CoinView, FundedBlock, MerkleRoot, Mode, Violation, fund, parts_besides, verify_scripts,
};
use lydian_primitives::{Block, OutPoint, Tx};
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

/// Why a proposed block is not valid on the tip.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum BadProposal {
    /// Its parent is not the tip.
    NotBestParent,
    Violation(Violation),
}

impl BadProposal {
    /// What Core's `getblocktemplate` returns.
    pub fn reason(&self) -> String {
        match self {
            BadProposal::NotBestParent => "inconclusive-not-best-prevblk".to_owned(),
            BadProposal::Violation(violation) => violation.reject_reason(),
        }
    }
}

impl fmt::Display for BadProposal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.reason())
    }
}

impl std::error::Error for BadProposal {}

impl From<Violation> for BadProposal {
    fn from(violation: Violation) -> BadProposal {
        BadProposal::Violation(violation)
    }
}

impl Engine {
    /// Checks a block that would follow the tip. `now` is the clock's time, in seconds since 1970.
    pub fn check_proposal(
        &self,
        block: impl Into<Arc<Block>>,
        now: i64,
    ) -> Result<Result<(), BadProposal>, EngineError> {
        self.check_next(&block.into(), MerkleRoot::Checked, now)
    }

    /// Checks a block that this node assembled, like [`Engine::check_proposal`], but not its merkle root: a transaction
    /// that is in it twice spends its coins twice.
    pub fn check_assembled(
        &self,
        block: impl Into<Arc<Block>>,
        now: i64,
    ) -> Result<Result<(), BadProposal>, EngineError> {
        self.check_next(&block.into(), MerkleRoot::Trusted, now)
    }

    fn check_next(
        &self,
        block: &Arc<Block>,
        merkle_root: MerkleRoot,
        now: i64,
    ) -> Result<Result<(), BadProposal>, EngineError> {
        loop {
            self.wait_until_settled(&block.header().prev_block);
            let snapshot = self.snapshot();
            let tip = snapshot.tip();
            if block.header().prev_block != tip.hash {
                return Ok(Err(BadProposal::NotBestParent));
            }
            let Some(parent) = self.chainstate().tree().find(&tip.hash) else {
                return Ok(Err(BadProposal::NotBestParent));
            };
            let (headers, params) = (self.chainstate().headers_to(parent), self.params());
            let checked =
                CheckedBlock::check_proposal(Arc::clone(block), merkle_root, tip.height, &headers, now, params);
            let checked = match checked {
                Ok(checked) => checked,
                Err(violation) => return Ok(Err(violation.into())),
            };
            let is_bip30_checked = is_bip30_checked(checked.height(), &block.hash(), &headers, params);
            let coins = match SpentAndOwn::find(&snapshot, block, is_bip30_checked) {
                Err(EngineError::SnapshotExpired { .. }) => continue,
                coins => coins?,
            };
            let verified = fund(checked, &coins, &headers, params).and_then(|funded| self.verify_unknown(funded));
            return Ok(verified.map_err(BadProposal::from));
        }
    }
}

impl Engine {
    /// Verifies the scripts of a block, unless all of them were verified before.
    fn verify_unknown(&self, funded: FundedBlock) -> Result<(), Violation> {
        let known = self.chainstate().known_scripts();
        if known.is_some_and(|known| parts_besides(&funded, usize::MAX, known).unknown.is_empty()) {
            return Ok(());
        }
        verify_scripts(funded, Mode::Capture(&**self.signatures())).map(drop)
    }
}

/// The coins before a block that its inputs spend, or that have the outpoints of its own outputs.
struct SpentAndOwn(HashMap<OutPoint, Coin>);

impl SpentAndOwn {
    fn find(snapshot: &ChainSnapshot, block: &Block, with_own: bool) -> Result<SpentAndOwn, EngineError> {
        let spent = block.txs().skip(1).flat_map(Tx::inputs);
        let mut outpoints: Vec<OutPoint> = spent.map(|input| input.prevout).collect();
        if with_own {
            outpoints.extend(block.txs().flat_map(|tx| {
                let (txid, count) = (tx.txid(), u32::try_from(tx.output_count()).unwrap_or(u32::MAX));
                (0..count).map(move |vout| OutPoint { txid, vout })
            }));
        }
        let coins = snapshot.coins(&outpoints)?;
        let found = outpoints.into_iter().zip(coins).filter_map(|(outpoint, coin)| Some((outpoint, coin?)));
        Ok(SpentAndOwn(found.collect()))
    }
}

impl CoinView for SpentAndOwn {
    fn coins(&self, outpoints: &[OutPoint]) -> Vec<Option<Coin>> {
        outpoints.iter().map(|outpoint| self.0.get(outpoint).cloned()).collect()
    }

    fn has_any(&self, outpoints: &[OutPoint]) -> bool {
        outpoints.iter().any(|outpoint| self.0.contains_key(outpoint))
    }
}
