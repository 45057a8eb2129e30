//! Makes random transactions: chained, conflicting, of every version, too cheap, too large, invalid.

use super::world::{script, witness};
use lydian_primitives::build::{MutInput, MutOutput, MutTx};
use lydian_primitives::{Amount, OutPoint, Transaction};
use lydian_stdx::SplitMix64;
use std::sync::Arc;

/// An output that the story may spend.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Output {
    pub(crate) outpoint: OutPoint,
    pub(crate) value: i64,
    /// The version of its transaction; 0 for a coinbase.
    pub(crate) version: u32,
}

/// Outputs and chance.
pub(crate) struct Maker {
    pub(crate) random: SplitMix64,
    pub(crate) outputs: Vec<Output>,
    /// Bytes of the largest data output, and how many of 100 are a fiftieth.
    pub(crate) data_max: usize,
    pub(crate) small_percent: usize,
}

impl Maker {
    pub(crate) fn below(&mut self, count: usize) -> usize {
        self.random.below(count)
    }

    pub(crate) fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    /// An output, more likely one of the last.
    pub(crate) fn output(&mut self) -> Output {
        let count = self.outputs.len();
        let last_percent = if self.small_percent > 50 { 60 } else { 15 };
        let reach = if self.chance(last_percent) { count.min(25) } else { count };
        self.outputs[count - 1 - self.random.below(reach)]
    }

    /// A transaction that spends these and pays about this many satoshi per 1,000 virtual bytes.
    pub(crate) fn transaction(&mut self, inputs: &[Output], rate: i64, version: u32) -> Transaction {
        let mut value = inputs.iter().map(|input| input.value).sum::<i64>();
        let mut outputs = Vec::new();
        let count = 1 + self.below(3);
        for left in (1..=count).rev() {
            let part = if left == 1 { value } else { value / i64::try_from(left).unwrap() };
            value -= part;
            outputs.push(MutOutput { value: Amount(part), script_pubkey: script() });
        }
        let data_percent = if self.small_percent > 50 { 30 } else { 70 };
        if self.chance(data_percent) {
            let size = self.below(self.data_max);
            let size = if self.chance(self.small_percent) { size / 50 } else { size };
            outputs.push(MutOutput { value: Amount(0), script_pubkey: data(size) });
        }
        if self.chance(4) {
            // Dust.
            outputs.push(MutOutput { value: Amount(1), script_pubkey: script() });
        }
        let sequence = match self.below(30) {
            0 => 0xffff_ffff,
            1 => 3,
            2 => 1 << 22 | 2,
            _ => 0xffff_fffd,
        };
        let input = |output: &Output| MutInput {
            prevout: output.outpoint,
            script_sig: Vec::new(),
            sequence,
            witness: witness(),
        };
        let lock_time = if self.chance(2) { 170 } else { 0 };
        let mut inputs: Vec<MutInput> = inputs.iter().map(input).collect();
        if self.chance(1) {
            inputs[0].witness = vec![vec![0x00, 0x51]];
        }
        let mut tx = MutTx { version, inputs, outputs, lock_time };
        let vsize = i64::try_from(tx.to_transaction().unwrap().view().weight().div_ceil(4)).unwrap();
        // No two pay the same: which of them leaves when a cluster has become too large in a reorganisation depends on
        // the order of a heap in Core.
        let more = i64::try_from(self.below(400)).unwrap();
        tx.outputs[0].value.0 -= rate * vsize / 1_000 + if rate > 0 { more } else { 0 };
        tx.to_transaction().unwrap()
    }

    /// A transaction on some outputs.
    pub(crate) fn random_transaction(&mut self) -> Transaction {
        let count = if self.chance(70) { 1 } else { 1 + self.below(4) };
        let mut inputs = vec![self.output()];
        for _ in 1..count {
            let output = self.output();
            if inputs.iter().all(|input| input.outpoint != output.outpoint) {
                inputs.push(output);
            }
        }
        let version = match self.below(20) {
            0 => 1,
            1 => 4,
            2 | 3 => 3,
            // TRUC transactions spend TRUC transactions.
            _ if inputs[0].version == 3 && self.chance(80) => 3,
            _ => 2,
        };
        let rate = match self.below(20) {
            0 => 0,
            1 => -1_000,
            2 => 50,
            3 => 1_000_000,
            _ => 250 * i64::try_from(self.below(40)).unwrap(),
        };
        self.transaction(&inputs, rate, version)
    }

    pub(crate) fn learn(&mut self, tx: &Transaction) {
        let view = tx.view();
        for (vout, output) in (0..).zip(view.outputs()) {
            if output.value.0 > 2_000 {
                let outpoint = OutPoint { txid: view.txid(), vout };
                self.outputs.push(Output { outpoint, value: output.value.0, version: view.version() });
            }
        }
    }
}

/// Transactions in an order in which most can be accepted.
pub(crate) fn random_batch(random: SplitMix64, coins: &[(OutPoint, i64)], count: usize) -> Vec<Arc<Transaction>> {
    let outputs = coins.iter().map(|(outpoint, value)| Output { outpoint: *outpoint, value: *value, version: 0 });
    let mut maker = Maker { random, outputs: outputs.collect(), data_max: 9_000, small_percent: 70 };
    let make = |_| {
        let tx = maker.random_transaction();
        if maker.chance(80) {
            maker.learn(&tx);
        }
        Arc::new(tx)
    };
    (0..count).map(make).collect()
}

/// A script of `size` bytes of data.
fn data(size: usize) -> Vec<u8> {
    let mut script = vec![0x6a, 0x4e];
    script.extend(u32::try_from(size).unwrap().to_le_bytes());
    script.extend(vec![7; size]);
    script
}
