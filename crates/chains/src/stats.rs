//! The contents of a chain, counted while it is planned, and written next to it as `stats.json`.
//!
//! Input: planned and made blocks. Output: counts. Invariant: verifications are those of a node that tries keys in
//! Core's order; they define the floor. Format: `docs/lab.md`.

use crate::assemble::MadeBlock;
use crate::plan::{PlannedBlock, PlannedInput, PlannedOutput};
use crate::regtest::FULL_BLOCK_WEIGHT_MIN;
use crate::wallet::Kind;
use serde::Serialize;
use std::collections::BTreeMap;

/// Counts of one chain.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Stats {
    pub preset: String,
    pub seed: u64,
    pub reuse: f64,
    pub blocks: u64,
    pub full_blocks: u64,
    /// Hash of the last block of the best chain.
    pub tip: String,
    pub height: u32,
    /// Bytes of the block files.
    pub file_bytes: u64,
    pub block_bytes: u64,
    pub weight: u64,
    pub weight_max: u64,
    /// Including coinbases, but not the genesis block; the same for all counts below.
    pub transactions: u64,
    pub inputs: u64,
    pub outputs: u64,
    pub data_outputs: u64,
    /// Entries of the UTXO set at the tip.
    pub coins: u64,
    pub inputs_by_kind: BTreeMap<&'static str, u64>,
    pub signatures: u64,
    pub ecdsa_signatures: u64,
    pub schnorr_signatures: u64,
    /// Checks of a signature against a key in Core's order.
    pub ecdsa_verifications: u64,
    pub schnorr_verifications: u64,
    pub verifications: u64,
    pub tweak_checks: u64,
    /// Pairs of signature and key that may match: m (n - m + 1) for m of n.
    pub candidate_pairs: u64,
    pub same_block_spends: u64,
    pub spends_within_10_blocks: u64,
    pub age_max: u32,
}

impl Stats {
    pub fn add(&mut self, planned: &PlannedBlock, made: &MadeBlock) {
        self.blocks += 1;
        self.full_blocks += u64::from(made.weight >= FULL_BLOCK_WEIGHT_MIN);
        self.tip = made.hash.to_string();
        self.height = planned.height;
        self.block_bytes += made.bytes.len() as u64;
        self.weight += made.weight;
        self.weight_max = self.weight_max.max(made.weight);
        self.transactions += 1 + planned.txs.len() as u64;
        self.outputs += 1 + u64::from(planned.height >= crate::regtest::VOTED_ACTIVATION_HEIGHT);
        for tx in &planned.txs {
            self.inputs += tx.inputs.len() as u64;
            self.outputs += tx.outputs.len() as u64;
            self.data_outputs +=
                tx.outputs.iter().filter(|output| matches!(output, PlannedOutput::Data { .. })).count() as u64;
            tx.inputs.iter().for_each(|input| self.add_input(input));
        }
    }

    fn add_input(&mut self, input: &PlannedInput) {
        let lock = input.coin.lock;
        let schnorr = u64::from(matches!(lock.kind, Kind::P2trKey | Kind::P2trScript));
        *self.inputs_by_kind.entry(lock.kind.name()).or_default() += 1;
        self.ecdsa_signatures += lock.kind.ecdsa_signatures();
        self.schnorr_signatures += schnorr;
        self.signatures += lock.kind.ecdsa_signatures() + schnorr;
        self.ecdsa_verifications += lock.ecdsa_checks();
        self.schnorr_verifications += schnorr;
        self.verifications += lock.ecdsa_checks() + schnorr;
        self.tweak_checks += u64::from(lock.kind == Kind::P2trScript);
        self.candidate_pairs += lock.kind.candidate_pairs();
        self.same_block_spends += u64::from(input.age == 0);
        self.spends_within_10_blocks += u64::from(input.age <= 10);
        self.age_max = self.age_max.max(input.age);
    }

    pub fn to_json(&self) -> String {
        let mut text = serde_json::to_string_pretty(self).unwrap_or_default();
        text.push('\n');
        text
    }
}
