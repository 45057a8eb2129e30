//! Statistics of what was checked. Input: funded blocks. Output: sums for display and reports. No decision depends on
//! them.

use crate::coins::FundedBlock;
use lydian_script::CheckCounts;

/// Sums over blocks.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Stats {
    pub blocks: u64,
    pub transactions: u64,
    /// Inputs that spend a coin, so without those of coinbases.
    pub inputs: u64,
    pub outputs: u64,
    /// Size of the blocks in bytes, including witnesses.
    pub bytes: u64,
    pub weight: u64,
    pub sigops_cost: u64,
    /// Signature and tweak checks made, including a multisig's failed attempts.
    pub checks: CheckCounts,
}

impl Stats {
    pub fn add(&mut self, funded: &FundedBlock) {
        let block = funded.checked().block();
        self.blocks += 1;
        self.transactions += block.tx_count() as u64;
        self.inputs += funded.spent().len() as u64;
        self.outputs += block.output_count() as u64;
        self.bytes += block.total_size() as u64;
        self.weight += block.weight() as u64;
        self.sigops_cost += funded.sigops_cost() as u64;
    }

    /// Adds the checks of a block whose scripts were verified.
    pub fn add_checks(&mut self, checks: &CheckCounts) {
        self.checks.add(checks);
    }
}
