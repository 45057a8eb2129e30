//! [`Facts`]: what a block contains, as `getblockstats` and `getblock` say it.
//!
//! Input: a block and its fees. Output: sums. Cost: a pass over the transactions.

use lydian_consensus::Coin;
use lydian_primitives::{Amount, Block};

/// The longest script of a coinbase input, by the rule `bad-cb-length`.
const COINBASE_SCRIPT_MAX: usize = 100;

/// The figures of one block.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub(crate) struct Facts {
    pub(crate) size: usize,
    pub(crate) weight: usize,
    /// With the coinbase.
    pub(crate) txs: usize,
    /// Without the coinbase's.
    pub(crate) inputs: usize,
    pub(crate) outputs: usize,
    /// Size and weight of the transactions without the coinbase.
    pub(crate) total_size: usize,
    pub(crate) total_weight: usize,
    /// Unknown if the undo data is missing.
    pub(crate) fees: Option<Amount>,
    /// The script of the coinbase input: a text of the miner's.
    pub(crate) coinbase: Vec<u8>,
}

impl Facts {
    pub(crate) fn of(block: &Block, fees: Option<Amount>) -> Facts {
        let mut facts = Facts {
            size: block.total_size(),
            weight: block.weight(),
            txs: block.tx_count(),
            outputs: block.output_count(),
            fees,
            ..Facts::default()
        };
        for tx in block.txs() {
            if tx.is_coinbase() {
                let script = tx.inputs().next().map_or(&[][..], |input| input.script_sig);
                facts.coinbase = script[..script.len().min(COINBASE_SCRIPT_MAX)].to_vec();
                continue;
            }
            facts.inputs += tx.input_count();
            facts.total_size += tx.total_size();
            facts.total_weight += tx.weight();
        }
        facts
    }

    /// The average fee rate in satoshis per virtual byte, rounded down as `getblockstats` does.
    pub(crate) fn fee_rate(&self) -> Option<i64> {
        let weight = i64::try_from(self.total_weight).unwrap_or(i64::MAX);
        self.fees.map(|fees| if weight > 0 { fees.0 * 4 / weight } else { 0 })
    }
}

/// The fees of a block: the coins that it spends without what its transactions, except the coinbase, create.
pub(crate) fn fees(block: &Block, spent: &[Coin]) -> Amount {
    let value_in: i64 = spent.iter().map(|coin| coin.value.0).sum();
    let others = block.txs().filter(|tx| !tx.is_coinbase());
    let value_out: i64 = others.flat_map(|tx| tx.outputs()).map(|output| output.value.0).sum();
    Amount(value_in - value_out)
}
