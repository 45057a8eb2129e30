//! [`NextBlock`]: what is known about the block after the tip before it has transactions.
//!
//! Input: the header tree, the clock. Output: its header without proof of work, its coinbase, the commitment to its
//! witnesses. Core's `CreateNewBlock`, `UpdateTime` and `GenerateCoinbaseCommitment`. Cost: with the test deployment of
//! regtest a walk over all headers, otherwise a constant number of look-ups.

use crate::versionbits::Signalling;
use lydian_consensus::limits::MAX_TIMEWARP;
use lydian_consensus::{Deployment, HeaderView, Params, Violation, block_subsidy, check_header_in_chain, pow};
use lydian_engine::{Engine, HeaderId, Tip};
use lydian_hash::{merkle_root, sha256d};
use lydian_primitives::build::{MutBlock, MutInput, MutOutput, MutTx};
use lydian_primitives::{Amount, Header, Height, OutPoint, Wtxid};
use lydian_script::ScriptBuilder;

/// The block after the tip of one moment.
#[derive(Clone, Debug)]
pub(crate) struct NextBlock {
    parent_id: HeaderId,
    pub(crate) parent: Tip,
    pub(crate) height: Height,
    pub(crate) version: i32,
    pub(crate) signalling: Signalling,
    /// The median time past of the parent.
    pub(crate) median_time: i64,
    /// The least time that Core gives a block, which is later than the rules require: `GetMinimumTime`.
    pub(crate) min_time: i64,
    pub(crate) is_segwit: bool,
}

/// The output script of a commitment to witnesses.
pub(crate) type Commitment = [u8; 38];

impl NextBlock {
    /// The block after the tip; `forced_version` is that of `-blockversion`.
    pub(crate) fn after_tip(engine: &Engine, forced_version: Option<i32>) -> NextBlock {
        NextBlock::after(engine, None, forced_version)
    }

    /// The block after a block, by default the tip.
    pub(crate) fn after(engine: &Engine, parent: Option<HeaderId>, forced_version: Option<i32>) -> NextBlock {
        let params = engine.params();
        engine.with_tree(|tree| {
            let parent_id = parent.unwrap_or_else(|| tree.tip());
            let (branch, last) = (tree.branch(parent_id), tree.node(parent_id));
            let height = Height(last.height.0.saturating_add(1));
            let median_time = branch.median_time_past(last.height).unwrap_or(0);
            let mut min_time = median_time + 1;
            if height.0.is_multiple_of(params.difficulty_adjustment_interval()) {
                min_time = min_time.max(i64::from(last.header.time) - MAX_TIMEWARP);
            }
            let signalling = Signalling::after(tree, parent_id, &params.testdummy);
            // Core only allows it on chains where blocks are mined on demand.
            let forced = forced_version.filter(|_| params.no_retargeting);
            NextBlock {
                parent_id,
                parent: Tip { height: last.height, hash: last.hash },
                height,
                version: forced.unwrap_or_else(|| signalling.version()),
                signalling,
                median_time,
                min_time,
                is_segwit: params.is_active(Deployment::Segwit, height),
            }
        })
    }

    /// Its time, if the clock shows `now`.
    pub(crate) fn time(&self, now: i64) -> u32 {
        u32::try_from(now.max(self.min_time)).unwrap_or(u32::MAX)
    }

    /// Its header without merkle root and proof of work.
    pub(crate) fn header(&self, engine: &Engine, time: u32) -> Header {
        let mut header = Header {
            version: self.version,
            prev_block: self.parent.hash,
            merkle_root: [0; 32],
            time,
            bits: 0,
            nonce: 0,
        };
        header.bits = engine.with_tree(|tree| {
            let branch = tree.branch(self.parent_id);
            // All ancestors of the parent are in the tree.
            let required = pow::next_work_required(&header, self.parent.height, &branch, engine.params());
            required.unwrap_or_else(|| tree.header(self.parent_id).bits)
        });
        header
    }

    /// Checks its header, if the clock shows `now`.
    pub(crate) fn check_header(&self, engine: &Engine, now: i64) -> Result<(), Violation> {
        let header = self.header(engine, self.time(now));
        engine.with_tree(|tree| {
            let branch = tree.branch(self.parent_id);
            check_header_in_chain(&header, self.parent.height, &branch, now, engine.params()).map(drop)
        })
    }

    /// What its coinbase may pay.
    pub(crate) fn reward(&self, params: &Params, fees: Amount) -> Amount {
        Amount(block_subsidy(self.height, params).0.saturating_add(fees.0))
    }

    /// The commitment to the witnesses of its transactions but the coinbase.
    pub(crate) fn commitment(wtxids: impl Iterator<Item = Wtxid>) -> Commitment {
        let mut leaves = vec![[0; 32]];
        leaves.extend(wtxids.map(|wtxid| wtxid.0));
        let mut preimage = [0; 64];
        preimage[..32].copy_from_slice(&merkle_root(&mut leaves).0);
        let mut script = [0; 38];
        script[..6].copy_from_slice(&[0x6a, 0x24, 0xaa, 0x21, 0xa9, 0xed]);
        script[6..].copy_from_slice(&sha256d(&preimage));
        script
    }

    /// Its coinbase.
    pub(crate) fn coinbase(&self, script: Vec<u8>, reward: Amount, commitment: &Commitment) -> MutTx {
        let mut signature = ScriptBuilder::new().push_int(i64::from(self.height.0));
        if self.height.0 <= 16 {
            // A script of one byte would be too short.
            signature = signature.push_int(0);
        }
        MutTx {
            version: 2,
            inputs: vec![MutInput {
                prevout: OutPoint::NULL,
                script_sig: signature.into_bytes(),
                sequence: u32::MAX - 1,
                // The commitment is computed with these zeros in either case.
                witness: if self.is_segwit { vec![vec![0; 32]] } else { Vec::new() },
            }],
            outputs: vec![
                MutOutput { value: reward, script_pubkey: script },
                MutOutput { value: Amount(0), script_pubkey: commitment.to_vec() },
            ],
            lock_time: self.height.0 - 1,
        }
    }

    /// The whole block without its proof of work.
    pub(crate) fn block(&self, engine: &Engine, now: i64, script: Vec<u8>, txs: Vec<MutTx>, fees: Amount) -> MutBlock {
        let wtxids = txs.iter().map(|tx| Wtxid(sha256d(&tx.encode())));
        let commitment = NextBlock::commitment(wtxids);
        let coinbase = self.coinbase(script, self.reward(engine.params(), fees), &commitment);
        let mut block = MutBlock { header: self.header(engine, self.time(now)), txs: vec![coinbase] };
        block.txs.extend(txs);
        block.seal_merkle_root();
        block
    }
}
