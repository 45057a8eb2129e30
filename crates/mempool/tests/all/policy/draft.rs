//! A transaction under construction: a plain payment that is fine, to be changed by oddities, then built and signed.

use super::locks::Lock;
use super::world::{Fund, VALUE, World, open_lock, output};
use lydian_consensus::Coin;
use lydian_consensus::spend::sigops_cost;
use lydian_mempool::policy::{Settings, virtual_size};
use lydian_oracle::generate::Random;
use lydian_primitives::build::{MutInput, MutOutput, MutTx};
use lydian_primitives::{Amount, Output};
use lydian_script::Flags;
use lydian_script::opcodes::{OP_1, OP_RETURN};

pub struct DraftInput {
    pub fund: Fund,
    /// The elements for the lock's script.
    pub items: Vec<Vec<u8>>,
    pub sequence: u32,
}

#[derive(Clone, Copy)]
pub enum Fee {
    Fixed(i64),
    /// Satoshi above what `-minrelaytxfee` requires.
    Above(i64),
}

type Change = Box<dyn Fn(&mut MutTx)>;

pub struct Draft {
    pub version: u32,
    pub lock_time: u32,
    pub inputs: Vec<DraftInput>,
    /// The first output takes what remains after the fee.
    pub outputs: Vec<MutOutput>,
    pub fee: Fee,
    /// The exact weight, reached by a data-carrying output and the last element of the first input.
    pub weight: Option<usize>,
    /// Changes to the signed transaction.
    pub after: Vec<Change>,
}

const FINAL: u32 = 0xffff_ffff;

impl Draft {
    /// A payment that every set of options accepts.
    pub fn plain(random: &mut Random, world: &World) -> Draft {
        let mut draft = Draft {
            version: 2,
            lock_time: 0,
            inputs: Vec::new(),
            outputs: vec![output(0, open_lock().script_pubkey())],
            fee: Fee::Above(1000),
            weight: None,
            after: Vec::new(),
        };
        draft.add_random(&open_lock(), random, world);
        let usual = [Lock::Wpkh, Lock::Pkh, Lock::TapKey, Lock::ShWpkh, Lock::Anchor, Lock::Sh(vec![OP_1])];
        for _ in 0..random.below(3) {
            draft.add(&usual[random.below(usual.len())], world);
        }
        for _ in 0..random.below(2) {
            let to = [Lock::Wpkh, Lock::Pkh, Lock::TapKey, Lock::Pk, Lock::ShWpkh][random.below(5)].script_pubkey();
            draft.outputs.push(output(50_000, to));
        }
        draft
    }

    /// Adds an input with this lock, if a coin with it is left.
    pub fn add(&mut self, lock: &Lock, world: &World) {
        self.add_with(lock, Vec::new(), world);
    }

    pub fn add_with(&mut self, lock: &Lock, items: Vec<Vec<u8>>, world: &World) {
        let is_used = |fund: &Fund| self.inputs.iter().any(|input| input.fund.outpoint == fund.outpoint);
        if let Some(fund) = world.funds(lock).into_iter().find(|fund| !is_used(fund)) {
            self.inputs.push(DraftInput { fund, items, sequence: FINAL });
        }
    }

    fn add_random(&mut self, lock: &Lock, random: &mut Random, world: &World) {
        let funds = world.funds(lock);
        let fund = funds[random.below(funds.len())].clone();
        self.inputs.push(DraftInput { fund, items: Vec::new(), sequence: FINAL });
    }

    pub fn spend(&mut self, fund: Fund) {
        self.inputs.push(DraftInput { fund, items: Vec::new(), sequence: FINAL });
    }

    pub fn pay(&mut self, value: i64, script_pubkey: Vec<u8>) {
        self.outputs.push(output(value, script_pubkey));
    }

    pub fn after(&mut self, change: impl Fn(&mut MutTx) + 'static) {
        self.after.push(Box::new(change));
    }

    /// The finished transaction.
    pub fn build(&self, world: &World, settings: &Settings) -> MutTx {
        let coins: Vec<Coin> = self.inputs.iter().map(|input| coin(&input.fund, world)).collect();
        let (mut padding, mut more) = (None, 0);
        if let Some(weight) = self.weight {
            let bare = self.sign(0, padding, more, &coins);
            let bare_weight = bare.to_transaction().unwrap().view().weight();
            // The length of a script of at least 253 bytes has three bytes, from 65,536 bytes on five.
            let length_size = if weight.saturating_sub(bare_weight) < 4 * 65_536 { 3 } else { 5 };
            let missing = weight.saturating_sub(bare_weight + 4 * (8 + length_size + 300));
            padding = Some(300 + missing / 4);
            more = missing % 4;
        }
        let fee = match self.fee {
            Fee::Fixed(fee) => fee,
            Fee::Above(above) => {
                let tx = self.sign(0, padding, more, &coins).to_transaction();
                let vsize = tx.map_or(0, |tx| {
                    let cost = sigops_cost(tx.view(), &coins, Flags::STANDARD);
                    virtual_size(tx.view().weight(), cost, settings.bytes_per_sigop)
                });
                settings.min_relay_fee.fee(vsize) + above
            }
        };
        self.sign(fee, padding, more, &coins)
    }

    fn sign(&self, fee: i64, padding: Option<usize>, more: usize, coins: &[Coin]) -> MutTx {
        let input = |input: &DraftInput| MutInput {
            prevout: input.fund.outpoint,
            script_sig: Vec::new(),
            sequence: input.sequence,
            witness: Vec::new(),
        };
        let mut tx = MutTx {
            version: self.version,
            inputs: self.inputs.iter().map(input).collect(),
            outputs: self.outputs.clone(),
            lock_time: self.lock_time,
        };
        if let Some(size) = padding {
            tx.outputs.push(output(0, [&[OP_RETURN][..], &vec![0; size - 1]].concat()));
        }
        let value_in: i64 = coins.iter().map(|coin| coin.value.0).sum();
        let paid: i64 = tx.outputs.iter().skip(1).map(|output| output.value.0).fold(0, i64::saturating_add);
        if let Some(first) = tx.outputs.first_mut() {
            let left = value_in.saturating_sub(paid).saturating_sub(fee);
            first.value = Amount(first.value.0.saturating_add(left));
        }
        let spent: Vec<Output<'_>> = coins.iter().map(Coin::output).collect();
        for (index, input) in self.inputs.iter().enumerate() {
            let mut items = input.items.clone();
            if let (0, Some(last)) = (index, items.last_mut()) {
                last.extend(vec![1; more]);
            }
            input.fund.lock.open(&mut tx, index, &spent, &items);
        }
        for change in &self.after {
            change(&mut tx);
        }
        tx
    }
}

/// The coin of a fund; one that does not exist has the usual value.
pub fn coin(fund: &Fund, world: &World) -> Coin {
    world.coins.get(&fund.outpoint).cloned().unwrap_or_else(|| Coin {
        value: Amount(VALUE),
        script_pubkey: fund.lock.script_pubkey().into(),
        height: lydian_primitives::Height(0),
        is_coinbase: false,
    })
}
