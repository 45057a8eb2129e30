//! A block under construction: its transactions spend coins of the block itself, of the last blocks, or old ones.
//! Input: the parent node. Output: the sealed block, and the coins after it if it is valid.

use super::coin::{Opener, Own, open_all};
use super::faults::Fault;
use super::{START, StoryBuilder};
use lydian_chains::rng::Random;
use lydian_consensus::block_subsidy;
use lydian_primitives::build::{MutBlock, MutInput, MutOutput, MutTx};
use lydian_primitives::{Amount, Header, Height, OutPoint};
use lydian_script::{ScriptBuilder, is_unspendable};

pub(super) const REGTEST_BITS: u32 = 0x207f_ffff;

/// Blocks until a coinbase's outputs are mature.
const MATURITY: u32 = 100;

/// A block under construction.
pub(super) struct Draft {
    pub(super) parent: usize,
    pub(super) height: u32,
    pub(super) header: Header,
    pub(super) txs: Vec<MutTx>,
    /// The coins that exist now, the oldest first.
    pub(super) coins: Vec<Own>,
    /// The coins spent, in order.
    pub(super) spent: Vec<Own>,
    /// Unspendable outputs, which are not coins.
    pub(super) dead: Vec<OutPoint>,
    pub(super) fees: i64,
    pub(super) note: String,
}

/// A sealed block.
pub(super) struct Finished {
    pub(super) block: MutBlock,
    pub(super) coins: Vec<Own>,
    pub(super) spent: Vec<Own>,
    pub(super) note: String,
}

impl Draft {
    pub(super) fn new(builder: &mut StoryBuilder, parent: usize) -> Draft {
        let median = builder.median_time_past(parent);
        let above = &builder.nodes[parent];
        let step = match builder.random.below(12) {
            // The earliest time allowed.
            0 => 0,
            1 => builder.random.between(1, 20),
            _ => builder.random.between(100, 1_100),
        };
        let usual = above.time.max(START) + u32::try_from(step).unwrap();
        let time = if step == 0 { median + 1 } else { usual.max(median + 1) };
        let header = Header {
            version: 0x2000_0000,
            prev_block: above.hash,
            merkle_root: [0; 32],
            time,
            bits: REGTEST_BITS,
            nonce: 0,
        };
        Draft {
            parent,
            height: above.height + 1,
            header,
            txs: Vec::new(),
            coins: above.coins.to_vec(),
            spent: Vec::new(),
            dead: Vec::new(),
            fees: 0,
            note: String::new(),
        }
    }

    fn is_mature(&self, coin: &Own) -> bool {
        !coin.is_coinbase || coin.height + MATURITY <= self.height
    }

    /// Takes a mature coin that satisfies `wanted`: from this block, a recent one or any.
    pub(super) fn take(&mut self, random: &mut Random, wanted: impl Fn(&Own) -> bool) -> Option<Own> {
        let (own, recent) = (self.height, self.height.saturating_sub(4));
        let lowest = match random.below(10) {
            0..=2 => own,
            3..=5 => recent,
            _ => 0,
        };
        for lowest in [lowest, 0] {
            let fits =
                |coin: &Own| coin.height >= lowest && coin.value >= 1_000 && self.is_mature(coin) && wanted(coin);
            let found: Vec<usize> = (0..self.coins.len()).filter(|index| fits(&self.coins[*index])).collect();
            if !found.is_empty() {
                return Some(self.coins.remove(found[random.index(found.len())]));
            }
        }
        None
    }

    /// Adds a valid transaction, if there is a coin to spend.
    pub(super) fn add_random_tx(&mut self, builder: &mut StoryBuilder) {
        let count = [1, 1, 2, 3, 5][builder.random.index(5)];
        let spent: Vec<Own> = (0..count).filter_map(|_| self.take_open(&mut builder.random)).collect();
        if spent.is_empty() {
            return;
        }
        let mut tx = spend(&spent);
        if builder.random.chance(200) {
            self.lock(&mut tx, &spent, builder);
        }
        self.pay(&mut tx, &spent, builder);
        self.push(tx, spent);
    }

    pub(super) fn take_open(&mut self, random: &mut Random) -> Option<Own> {
        self.take(random, |coin| !matches!(coin.opener, Opener::Never | Opener::ManySigops))
    }

    /// Sets relative lock times that have just passed, or a lock time that has.
    fn lock(&self, tx: &mut MutTx, spent: &[Own], builder: &mut StoryBuilder) {
        tx.version = 2;
        for (input, coin) in tx.inputs.iter_mut().zip(spent) {
            input.sequence = match builder.random.below(3) {
                0 => self.height - coin.height,
                1 => 1 << 22 | self.passed_seconds(coin, builder) >> 9,
                _ => u32::MAX - 1,
            };
        }
        if builder.random.chance(500) {
            tx.lock_time = self.height - 1;
        }
    }

    /// Seconds of a relative lock time that have passed for a coin.
    pub(super) fn passed_seconds(&self, coin: &Own, builder: &StoryBuilder) -> u32 {
        let since = if coin.height == self.height {
            self.parent
        } else {
            builder.ancestor(self.parent, coin.height.saturating_sub(1))
        };
        builder.median_time_past(self.parent).saturating_sub(builder.median_time_past(since)).min(0xffff << 9)
    }

    /// Adds outputs with the value of the coins, less a fee.
    pub(super) fn pay(&mut self, tx: &mut MutTx, spent: &[Own], builder: &mut StoryBuilder) {
        let random = &mut builder.random;
        let total: i64 = spent.iter().map(|coin| coin.value).sum();
        let fee = i64::try_from(random.below(500)).unwrap();
        let count = [1_i64, 1, 2, 2, 4, 12][random.index(6)];
        let share = (total - fee) / count;
        for index in 0..count {
            let value = if index == 0 { total - fee - share * (count - 1) } else { share };
            let script_pubkey = Opener::random(random, builder.shape.keys_per_mille).script_pubkey(random);
            tx.outputs.push(MutOutput { value: Amount(value), script_pubkey });
        }
        match random.below(60) {
            0..=4 => tx.outputs.push(MutOutput { value: Amount(0), script_pubkey: vec![0x6a, 1, 7] }),
            5 => tx.outputs.push(MutOutput { value: Amount(0), script_pubkey: vec![0x51; 10_001] }),
            6..=8 => tx.outputs.push(MutOutput { value: Amount(0), script_pubkey: vec![0x51] }),
            _ => {}
        }
        self.fees += fee;
    }

    /// Satisfies the inputs and appends the transaction.
    pub(super) fn push(&mut self, mut tx: MutTx, spent: Vec<Own>) {
        open_all(&mut tx, &spent);
        self.push_opened(tx, spent);
    }

    pub(super) fn push_opened(&mut self, tx: MutTx, spent: Vec<Own>) {
        self.spent.extend(spent);
        self.create(&tx, false);
        self.txs.push(tx);
    }

    /// Adds the outputs of a transaction to the coins.
    fn create(&mut self, tx: &MutTx, is_coinbase: bool) {
        let txid = tx.txid();
        for (vout, output) in (0..).zip(&tx.outputs) {
            let outpoint = OutPoint { txid, vout };
            if is_unspendable(&output.script_pubkey) {
                self.dead.push(outpoint);
                continue;
            }
            self.coins.push(Own {
                outpoint,
                value: output.value.0,
                script_pubkey: output.script_pubkey.as_slice().into(),
                opener: Opener::of(&output.script_pubkey),
                height: self.height,
                is_coinbase,
            });
        }
    }

    /// Repeats a transaction of an ancestor, if its inputs exist again.
    pub(super) fn repeat_tx(&mut self, builder: &mut StoryBuilder) {
        let mut at = self.parent;
        let mut found = Vec::new();
        while at != 0 {
            let node = &builder.nodes[at];
            let is_here = |tx: &&MutTx| {
                tx.inputs
                    .iter()
                    .all(|input| self.coins.iter().any(|coin| coin.outpoint == input.prevout && self.is_mature(coin)))
            };
            found.extend(node.txs.iter().skip(1).filter(is_here).cloned());
            at = node.parent;
        }
        if found.is_empty() {
            return;
        }
        let tx = found.swap_remove(builder.random.index(found.len()));
        let spent: Vec<Own> = tx.inputs.iter().filter_map(|input| self.remove(&input.prevout)).collect();
        if spent.len() == tx.inputs.len() {
            self.push_opened(tx, spent);
        }
    }

    fn remove(&mut self, outpoint: &OutPoint) -> Option<Own> {
        let index = self.coins.iter().position(|coin| coin.outpoint == *outpoint)?;
        Some(self.coins.remove(index))
    }

    /// Inserts the coinbase and seals the block.
    pub(super) fn finish(mut self, builder: &mut StoryBuilder, faults: &[Fault]) -> Finished {
        let mut coinbase = self.coinbase(builder);
        let has_witness = self.txs.iter().any(MutTx::has_witness);
        if has_witness || builder.random.chance(400) {
            commit(&mut coinbase);
        }
        for fault in faults {
            fault.change_coinbase(&mut coinbase, &mut builder.random);
        }
        let mut block = MutBlock { header: self.header, txs: Vec::new() };
        block.txs.push(coinbase);
        block.txs.append(&mut self.txs);
        for fault in faults {
            fault.change_txs(&mut block, builder);
        }
        block.seal_on_regtest();
        for fault in faults {
            fault.change_sealed(&mut block, builder, self.parent);
        }
        let kept: Vec<MutTx> = block.txs.first().cloned().into_iter().collect();
        kept.iter().for_each(|coinbase| self.create(coinbase, true));
        Finished { block, coins: self.coins, spent: self.spent, note: self.note }
    }

    fn coinbase(&mut self, builder: &mut StoryBuilder) -> MutTx {
        builder.nonce += 1;
        if builder.shape.repeats
            && builder.trunk > 0
            && builder.random.chance(350)
            && let Some(again) = self.coinbase_of_an_ancestor(builder)
        {
            return again;
        }
        let script_sig = if builder.shape.repeats {
            ScriptBuilder::new().push_slice(&builder.nonce.to_le_bytes()).into_bytes()
        } else {
            ScriptBuilder::new().push_int(i64::from(self.height)).push_slice(&builder.nonce.to_le_bytes()).into_bytes()
        };
        let input = MutInput { prevout: OutPoint::NULL, script_sig, sequence: u32::MAX, witness: Vec::new() };
        let total = block_subsidy(Height(self.height), &builder.params).0 + self.fees;
        let random = &mut builder.random;
        let is_rich = self.height <= 6;
        let count = if is_rich { random.between(4, 12) } else { [1, 1, 1, 2, 4][random.index(5)] };
        let share = total / i64::try_from(count).unwrap();
        let keys = builder.shape.keys_per_mille;
        let outputs = (0..count).map(|_| MutOutput {
            value: Amount(share),
            script_pubkey: Opener::random(random, keys).script_pubkey(random),
        });
        MutTx { version: 2, inputs: vec![input], outputs: outputs.collect(), lock_time: 0 }
    }

    /// The coinbase of an ancestor, if possible one with all outputs spent.
    fn coinbase_of_an_ancestor(&self, builder: &mut StoryBuilder) -> Option<MutTx> {
        let mut at = self.parent;
        let (mut spent, mut all) = (Vec::new(), Vec::new());
        while at != 0 {
            let node = &builder.nodes[at];
            let coinbase = node.txs.first()?;
            let txid = coinbase.txid();
            if self.coins.iter().all(|coin| coin.outpoint.txid != txid) {
                spent.push(coinbase.clone());
            }
            all.push(coinbase.clone());
            at = node.parent;
        }
        let from = if spent.is_empty() || builder.random.chance(100) { all } else { spent };
        let chosen = from.get(builder.random.index(from.len()))?.clone();
        // The commitment belongs to another block.
        let is_commitment = |output: &MutOutput| output.script_pubkey.starts_with(&[0x6a, 0x24, 0xaa]);
        (!chosen.outputs.iter().any(is_commitment)).then_some(chosen)
    }
}

/// A transaction that spends coins; its inputs are not satisfied yet.
pub(super) fn spend(coins: &[Own]) -> MutTx {
    let input = |coin: &Own| MutInput {
        prevout: coin.outpoint,
        script_sig: Vec::new(),
        sequence: u32::MAX,
        witness: Vec::new(),
    };
    MutTx { version: 2, inputs: coins.iter().map(input).collect(), outputs: Vec::new(), lock_time: 0 }
}

/// Adds a witness commitment to a coinbase.
pub(super) fn commit(coinbase: &mut MutTx) {
    let mut script_pubkey = vec![0x6a, 0x24, 0xaa, 0x21, 0xa9, 0xed];
    script_pubkey.extend_from_slice(&[0; 32]);
    coinbase.outputs.push(MutOutput { value: Amount(0), script_pubkey });
    coinbase.inputs[0].witness = vec![vec![0; 32]];
}
