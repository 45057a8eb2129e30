//! Planned blocks: transactions that refer to the coins they spend, and the block that is built from them.
//!
//! Input: the state after a block (its coins, its times). Output: a sealed block. A plan can be changed before it is
//! signed: transactions are built in the order of their numbers, and each signature commits to what is really spent, so
//! that a change breaks only what it is meant to break.

use super::mutations::fill_weight;
use super::rng::Random;
use super::wallet::{OwnCoin, Policy, Wallet};
use lydian_consensus::{Deployment, Params, block_subsidy};
use lydian_primitives::build::{MutBlock, MutInput, MutOutput, MutTx};
use lydian_primitives::{Amount, BlockHash, Header, Height, OutPoint, Txid};
use lydian_script::{ScriptBuilder, is_unspendable};
use std::collections::BTreeMap;
use std::rc::Rc;

pub const BITS: u32 = 0x207f_ffff;
/// The target of [`BITS`], little-endian.
pub const TARGET: [u8; 32] = {
    let mut target = [0; 32];
    (target[29], target[30], target[31]) = (0xff, 0xff, 0x7f);
    target
};

/// The generator's sums saturate here, so that they do not overflow. Well above all money that exists.
const MOST: i64 = 1 << 52;

/// The generator's view of the chain up to a block.
#[derive(Clone, Debug)]
pub struct State {
    pub hash: BlockHash,
    pub height: u32,
    pub parent: Option<Rc<State>>,
    /// Times of all blocks, and their median times past.
    pub times: Vec<u32>,
    pub medians: Vec<u32>,
    pub coins: BTreeMap<OutPoint, Rc<OwnCoin>>,
    /// Coinbases of the chain, the latest last.
    pub coinbases: Vec<Rc<MutTx>>,
}

impl State {
    pub fn genesis(params: &Params) -> State {
        let block = params.genesis_block().parse().unwrap();
        let time = block.header().time;
        State {
            hash: block.hash(),
            height: 0,
            parent: None,
            times: vec![time],
            medians: vec![time],
            coins: BTreeMap::new(),
            coinbases: Vec::new(),
        }
    }

    /// Returns the state after a block, which need not be valid.
    pub fn after(self: &Rc<State>, block: &MutBlock, wallet: &Wallet) -> State {
        let mut next = State::clone(self);
        next.parent = Some(self.clone());
        next.height += 1;
        next.hash = block.header.hash();
        next.times.push(block.header.time);
        let mut last = next.times[next.times.len().saturating_sub(11)..].to_vec();
        last.sort_unstable();
        next.medians.push(last[last.len() / 2]);
        for (index, tx) in block.txs.iter().enumerate() {
            for input in &tx.inputs {
                next.coins.remove(&input.prevout);
            }
            let txid = tx.txid();
            for (vout, output) in (0..).zip(&tx.outputs).filter(|(_, output)| !is_unspendable(&output.script_pubkey)) {
                let coin = OwnCoin {
                    value: output.value.0,
                    script_pubkey: output.script_pubkey.clone(),
                    height: Height(next.height),
                    is_coinbase: index == 0,
                    lock: wallet.lock_of(&output.script_pubkey),
                };
                next.coins.insert(OutPoint { txid, vout }, Rc::new(coin));
            }
        }
        next.coinbases.extend(block.txs.first().cloned().map(Rc::new));
        next
    }

    pub fn median(&self) -> u32 {
        *self.medians.last().unwrap()
    }
}

/// The output that an input spends.
#[derive(Clone, Debug)]
pub enum Source {
    Coin(OutPoint, Option<Rc<OwnCoin>>),
    /// An output of another transaction of the plan, with a smaller number.
    Own(usize, usize),
}

#[derive(Clone, Debug)]
pub struct PlanInput {
    pub source: Source,
    pub sequence: u32,
}

#[derive(Clone, Debug)]
pub struct PlanTx {
    pub version: u32,
    pub lock_time: u32,
    pub inputs: Vec<PlanInput>,
    pub outputs: Vec<MutOutput>,
}

/// A block under construction: planned, then built, then sealed.
pub struct Draft<'a> {
    pub state: Rc<State>,
    pub params: &'a Params,
    pub wallet: &'a Wallet,
    /// All transactions except the coinbase.
    pub txs: Vec<PlanTx>,
    /// Their order in the block; some may be missing or repeated.
    pub order: Vec<usize>,
    pub coinbase: MutTx,
    /// Whether the outputs of the coinbase get all of the subsidy and fees.
    pub is_balanced: bool,
    /// The weight to which the last transaction's witness is filled.
    pub weight_wanted: Option<usize>,
    /// The clock.
    pub now: u32,
    /// Seed of the signatures, so that they are the same each time the block is built.
    sign_seed: u64,
    /// The block, once it is built.
    pub block: MutBlock,
    /// The coins spent by each of its transactions' inputs, if known.
    pub spent: Vec<Vec<Option<Rc<OwnCoin>>>>,
}

pub fn output(value: i64, script_pubkey: Vec<u8>) -> MutOutput {
    MutOutput { value: Amount(value), script_pubkey }
}

pub fn commitment_output() -> MutOutput {
    output(0, [&[0x6a, 0x24, 0xaa, 0x21, 0xa9, 0xed][..], &[0; 32]].concat())
}

impl<'a> Draft<'a> {
    /// Returns a plan that should make a valid block on `state`.
    pub fn plan(state: &Rc<State>, world: (&'a Params, &'a Wallet), now: u32, random: &mut Random) -> Draft<'a> {
        let (params, wallet) = world;
        let height = state.height + 1;
        let time = state.median() + 1 + u32::try_from(random.below(1200)).unwrap();
        let header = Header {
            version: *random.pick(&[4, 0x2000_0000, 0x2000_0007, i32::MAX]),
            prev_block: state.hash,
            merkle_root: [0; 32],
            time,
            bits: BITS,
            nonce: 0,
        };
        let block = MutBlock { header, txs: Vec::new() };
        let coinbase = MutTx::default();
        let mut draft = Draft {
            state: state.clone(),
            params,
            wallet,
            txs: Vec::new(),
            order: Vec::new(),
            coinbase,
            is_balanced: true,
            weight_wanted: None,
            now,
            sign_seed: random.next(),
            block,
            spent: Vec::new(),
        };
        draft.plan_txs(random);
        draft.order = (0..draft.txs.len()).collect();
        let is_segwit = params.is_active(Deployment::Segwit, Height(height));
        let outputs = 1 + random.below(4);
        draft.coinbase = MutTx {
            version: 2,
            inputs: vec![MutInput {
                prevout: OutPoint::NULL,
                script_sig: ScriptBuilder::new().push_int(i64::from(height)).push_slice(&random.bytes(6)).into_bytes(),
                sequence: *random.pick(&[u32::MAX, u32::MAX - 1, 0]),
                witness: Vec::new(),
            }],
            outputs: (0..outputs).map(|_| output(0, draft.any_script(random))).collect(),
            lock_time: 0,
        };
        if is_segwit {
            draft.coinbase.inputs[0].witness = vec![if random.once_in(4) { random.bytes(32) } else { vec![0; 32] }];
            draft.coinbase.outputs.push(commitment_output());
        }
        draft
    }

    pub fn height(&self) -> u32 {
        self.state.height + 1
    }

    pub fn is_active(&self, deployment: Deployment) -> bool {
        self.params.is_active(deployment, Height(self.height()))
    }

    /// Returns a script of the wallet, or occasionally an unspendable one.
    pub fn any_script(&self, random: &mut Random) -> Vec<u8> {
        if random.once_in(12) {
            let size = random.below(60);
            return ScriptBuilder::new().op(0x6a).push_slice(&random.bytes(size)).into_bytes();
        }
        // Coins that need segwit are created some blocks before it activates.
        let is_soon = self.params.is_active(Deployment::Segwit, Height(self.height() + 10));
        self.wallet.script_pubkey(self.wallet.draw(random, is_soon, self.height(), self.state.median()))
    }

    /// Returns the coins that a valid transaction of this block can spend.
    pub fn pool(&self) -> Vec<(OutPoint, Rc<OwnCoin>)> {
        let can = |(outpoint, coin): (&OutPoint, &Rc<OwnCoin>)| self.can_spend(coin).then(|| (*outpoint, coin.clone()));
        self.state.coins.iter().filter_map(can).collect()
    }

    fn can_spend(&self, coin: &OwnCoin) -> bool {
        let Some(lock) = coin.lock else { return false };
        let height = self.height();
        let is_ripe = !coin.is_coinbase || height - coin.height.0 >= 100;
        let is_open = match lock.policy {
            Policy::Cltv(time) if time >= 500_000_000 => time < self.state.median().min(self.block.header.time),
            Policy::Cltv(at) => at < height,
            Policy::Csv(sequence) => self.is_old_enough(coin.height.0, sequence),
            _ => true,
        };
        is_ripe && is_open && (self.is_active(Deployment::Segwit) || !Wallet::needs_witness(lock))
    }

    /// Whether a coin of this height can be spent with this sequence number (BIP-0068).
    pub fn is_old_enough(&self, coin_height: u32, sequence: u32) -> bool {
        if sequence & 1 << 31 != 0 {
            return true;
        }
        let amount = sequence & 0xffff;
        if sequence & 1 << 22 == 0 {
            return coin_height + amount <= self.height();
        }
        let since = self.state.medians[coin_height.saturating_sub(1) as usize];
        since + amount * 512 <= self.state.median()
    }

    fn plan_txs(&mut self, random: &mut Random) {
        let mut pool = self.pool();
        let count = random.below(7);
        for number in 0..count {
            let mut inputs = Vec::new();
            for _ in 0..1 + random.below(4) {
                // Sometimes an output of the same block.
                if number > 0 && random.once_in(5) {
                    let from = random.below(number);
                    let vout = random.below(self.txs[from].outputs.len());
                    if let Some(coin) = self.own_coin(from, vout)
                        && self.can_spend(&coin)
                        && !self.is_spent(&inputs, from, vout)
                    {
                        inputs.push((Source::Own(from, vout), coin));
                    }
                } else if !pool.is_empty() {
                    let (outpoint, coin) = pool.swap_remove(random.below(pool.len()));
                    inputs.push((Source::Coin(outpoint, Some(coin.clone())), coin));
                }
            }
            if inputs.is_empty() {
                break;
            }
            let tx = self.plan_tx(inputs, random);
            self.txs.push(tx);
        }
    }

    fn is_spent(&self, inputs: &[(Source, Rc<OwnCoin>)], from: usize, vout: usize) -> bool {
        let is_it = |source: &Source| matches!(source, Source::Own(tx, out) if (*tx, *out) == (from, vout));
        self.txs.iter().flat_map(|tx| &tx.inputs).any(|input| is_it(&input.source))
            || inputs.iter().any(|(source, _)| is_it(source))
    }

    pub fn own_coin(&self, tx: usize, vout: usize) -> Option<Rc<OwnCoin>> {
        let output = self.txs[tx].outputs.get(vout)?;
        (!is_unspendable(&output.script_pubkey)).then(|| {
            Rc::new(OwnCoin {
                value: output.value.0,
                script_pubkey: output.script_pubkey.clone(),
                height: Height(self.height()),
                is_coinbase: false,
                lock: self.wallet.lock_of(&output.script_pubkey),
            })
        })
    }

    /// Returns a transaction that spends coins as their locks require, to random outputs.
    pub fn plan_tx(&self, inputs: Vec<(Source, Rc<OwnCoin>)>, random: &mut Random) -> PlanTx {
        let mut total: i64 = 0;
        let mut lock_time = 0;
        let is_csv = self.is_active(Deployment::Csv);
        let mut planned = Vec::new();
        for (source, coin) in inputs {
            let mut sequence = match random.below(4) {
                0 => 0xffff_fffe,
                1 => 0x8000_0000 | random.u32(),
                2 => {
                    let wanted = u32::try_from(random.below(4)).unwrap() | u32::from(random.once_in(2)) << 22;
                    if self.is_old_enough(coin.height.0, wanted) || !is_csv { wanted } else { 0 }
                }
                _ => u32::MAX,
            };
            match coin.lock.map(|lock| lock.policy) {
                Some(Policy::Cltv(time)) => {
                    // A transaction has only one lock time, which is a height or a time.
                    let is_other = lock_time != 0 && (lock_time < 500_000_000) != (time < 500_000_000);
                    if is_other {
                        continue;
                    }
                    lock_time = time.max(lock_time);
                    sequence = sequence.min(0xffff_fffe);
                }
                Some(Policy::Csv(wanted)) => sequence = wanted,
                _ => {}
            }
            // Coins of invalid branches may have any value.
            total = coin.value.clamp(0, MOST).saturating_add(total).min(MOST);
            planned.push(PlanInput { source, sequence });
        }
        let inputs = planned;
        let version = if random.once_in(6) { *random.pick(&[1, 3, u32::MAX, 0x8000_0000]) } else { 2 };
        let has_csv = inputs.iter().any(|input| input.sequence & 1 << 31 == 0);
        let version = if has_csv && version == 1 { 2 } else { version };
        let count = 1 + random.below(4);
        let mut rest = total - i64::try_from(random.below(1000)).unwrap().min(total);
        let mut outputs = Vec::new();
        for index in 0..count {
            let value = if index + 1 == count { rest } else { random.range(0, rest) };
            rest -= value;
            outputs.push(output(value, self.any_script(random)));
        }
        PlanTx { version, lock_time, inputs, outputs }
    }

    /// Whether every part exists that a change may access.
    pub fn is_whole(&self) -> bool {
        let is_built = !self.spent.is_empty();
        let has_coinbase = self.block.txs.first().is_some_and(|tx| !tx.inputs.is_empty());
        let are_txs_whole = self.block.txs.iter().all(|tx| !tx.inputs.is_empty());
        let is_plan_whole = self.txs.iter().all(|tx| !tx.inputs.is_empty() && !tx.outputs.is_empty());
        is_plan_whole && are_txs_whole && (has_coinbase || !is_built)
    }

    /// Builds and signs the transactions, and sets the values of the coinbase's outputs.
    pub fn build(&mut self) {
        let random = &mut Random::new(self.sign_seed);
        let mut made: Vec<(MutTx, Vec<Option<Rc<OwnCoin>>>)> = Vec::new();
        let mut ids: Vec<Txid> = Vec::new();
        for plan in &self.txs {
            let mut coins = Vec::new();
            let mut tx = MutTx { version: plan.version, lock_time: plan.lock_time, ..MutTx::default() };
            tx.outputs = plan.outputs.clone();
            for input in &plan.inputs {
                let (prevout, coin) = match &input.source {
                    Source::Coin(outpoint, coin) => (*outpoint, coin.clone()),
                    Source::Own(from, vout) => {
                        let txid = ids[*from];
                        (OutPoint { txid, vout: u32::try_from(*vout).unwrap() }, self.own_coin(*from, *vout))
                    }
                };
                coins.push(coin);
                let empty = (Vec::new(), Vec::new());
                tx.inputs.push(MutInput { prevout, script_sig: empty.0, sequence: input.sequence, witness: empty.1 });
            }
            self.wallet.sign(&mut tx, &coins, random);
            ids.push(tx.txid());
            made.push((tx, coins));
        }
        if self.is_balanced {
            self.balance(&made);
        }
        self.block.txs = vec![self.coinbase.clone()];
        self.spent = vec![vec![None; self.coinbase.inputs.len()]];
        for &number in &self.order {
            let (tx, coins) = made[number].clone();
            self.block.txs.push(tx);
            self.spent.push(coins);
        }
        if let Some(wanted) = self.weight_wanted {
            fill_weight(&mut self.block, wanted);
        }
    }

    fn balance(&mut self, made: &[(MutTx, Vec<Option<Rc<OwnCoin>>>)]) {
        let mut limit = block_subsidy(Height(self.height()), self.params).0;
        for &number in &self.order {
            let (tx, coins) = &made[number];
            let value_in: i64 = coins.iter().flatten().map(|coin| coin.value).fold(0, i64::saturating_add);
            let value_out: i64 = tx.outputs.iter().map(|output| output.value.0).fold(0, i64::saturating_add);
            limit = limit.saturating_add(value_in.saturating_sub(value_out).clamp(0, MOST));
        }
        let mut limit = limit.clamp(0, MOST);
        let payees = self.coinbase.outputs.iter().filter(|output| !is_unspendable(&output.script_pubkey)).count();
        let share = limit / i64::try_from(payees.max(1)).unwrap();
        for output in self.coinbase.outputs.iter_mut().filter(|output| !is_unspendable(&output.script_pubkey)) {
            output.value = Amount(share);
            limit -= share;
        }
        if let Some(first) = self.coinbase.outputs.iter_mut().find(|output| !is_unspendable(&output.script_pubkey)) {
            first.value.0 += limit;
        }
    }

    pub fn commit(&mut self) {
        self.block.seal_witness_commitment();
        self.block.seal_merkle_root();
    }

    pub fn work(&mut self) {
        assert!(self.block.seal_proof_of_work(&TARGET));
    }
}
