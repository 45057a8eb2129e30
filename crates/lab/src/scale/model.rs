//! What happens to the scripts in the row `notifications`, and the status that each of them must have.
//!
//! Input: a coin of each script. Output: transactions between the scripts, for the mempool and for blocks, and
//! statuses. In each round some transactions are confirmed out of the mempool, some have a child there that stays and
//! goes from height -1 to 0, and some are in the block only. Invariant: a coin is spent once, by a transaction whose
//! parents are in the chain or in the mempool.

use super::expected::StatusText;
use lydian_chains::presets::maker::output;
use lydian_chains::presets::scale::{COIN_VALUE, witness_input, witness_script};
use lydian_chains::targets::scripthash;
use lydian_chains::wallet::script::p2wsh;
use lydian_primitives::build::MutTx;
use lydian_primitives::{OutPoint, Txid};
use serde_json::Value;
use std::collections::{BTreeSet, HashMap, VecDeque};

/// Satoshis; ten times the fee that a node requires.
const FEE: i64 = 1_000;
/// A coin below this moves no more: it would become dust.
const VALUE_MIN: i64 = 5_000;

/// Scripts that a group of transactions touches in a block: two by a transaction out of the mempool, three by one whose
/// child stays there, two by one that is in the block only, and two by the child of the round before.
pub const TOUCHED_PER_GROUP: usize = 9;

#[derive(Clone, Copy, Debug)]
struct Coin {
    script: usize,
    outpoint: OutPoint,
    value: i64,
}

#[derive(Debug)]
struct Script {
    hash: String,
    output: Vec<u8>,
    confirmed: Vec<(u32, Txid)>,
    /// Those with an unconfirmed input last, otherwise in the order of their ids as written.
    pool: BTreeSet<(bool, [u8; 32])>,
}

/// A transaction from one script to another.
#[derive(Clone, Debug)]
pub struct Move {
    pub tx: MutTx,
    txid: Txid,
    from: usize,
    coin: Coin,
}

/// The transactions of a round.
#[derive(Debug, Default)]
pub struct Round {
    /// To be sent before the block, parents first; the block has all of them but the children.
    pub waiting: Vec<Move>,
    pub children: Vec<Move>,
    /// In the block only.
    pub unknown: Vec<Move>,
    /// The children of the round before.
    pub earlier: Vec<Move>,
}

#[derive(Debug)]
pub struct Model {
    scripts: Vec<Script>,
    numbers: HashMap<String, usize>,
    coins: VecDeque<Coin>,
    /// The script that is paid next.
    next: usize,
    children: Vec<Move>,
}

impl Model {
    /// The scripts with their coins, in the order of their numbers.
    pub fn new(coins: &[(u32, OutPoint)]) -> Model {
        let script = |(number, (height, outpoint)): (u32, &(u32, OutPoint))| {
            let output = p2wsh(&witness_script(number));
            let confirmed = vec![(*height, outpoint.txid)];
            Script { hash: scripthash(&output), output, confirmed, pool: BTreeSet::new() }
        };
        let scripts: Vec<Script> = (0..).zip(coins).map(script).collect();
        let numbers = scripts.iter().enumerate().map(|(at, script)| (script.hash.clone(), at)).collect();
        let coin = |(script, (_, outpoint)): (usize, &(u32, OutPoint))| Coin {
            script,
            outpoint: *outpoint,
            value: COIN_VALUE,
        };
        let coins: VecDeque<Coin> = coins.iter().enumerate().map(coin).collect();
        Model { next: coins.len() / 2, scripts, numbers, coins, children: Vec::new() }
    }

    pub fn hashes(&self) -> impl Iterator<Item = &str> {
        self.scripts.iter().map(|script| script.hash.as_str())
    }

    pub fn number(&self, hash: &str) -> Option<usize> {
        self.numbers.get(hash).copied()
    }

    pub fn status(&self, script: usize) -> Value {
        let mut status = StatusText::default();
        let Some(script) = self.scripts.get(script) else { return Value::Null };
        script.confirmed.iter().for_each(|(height, txid)| status.add(txid, i64::from(*height)));
        for (has_unconfirmed_input, written) in &script.pool {
            let mut txid = *written;
            txid.reverse();
            status.add(&Txid(txid), if *has_unconfirmed_input { -1 } else { 0 });
        }
        status.finish()
    }

    /// The transactions of a round with this many groups, as far as there are coins.
    pub fn plan(&mut self, groups: usize) -> Round {
        let mut round = Round { earlier: std::mem::take(&mut self.children), ..Round::default() };
        for _ in 0..groups {
            round.waiting.extend(self.take_coin().map(|coin| self.pay(coin)));
            if let Some(parent) = self.take_coin().map(|coin| self.pay(coin)) {
                round.children.push(self.pay(parent.coin));
                round.waiting.push(parent);
            }
            round.unknown.extend(self.take_coin().map(|coin| self.pay(coin)));
        }
        self.children.clone_from(&round.children);
        round
    }

    fn take_coin(&mut self) -> Option<Coin> {
        self.coins.pop_front()
    }

    fn pay(&mut self, coin: Coin) -> Move {
        let to = self.next % self.scripts.len().max(1);
        self.next = to + 1;
        let value = coin.value - FEE;
        let script = u32::try_from(coin.script).unwrap_or(u32::MAX);
        let paid = self.scripts.get(to).map_or(&[][..], |script| &script.output);
        let tx = MutTx {
            version: 2,
            inputs: vec![witness_input(coin.outpoint, &witness_script(script))],
            outputs: vec![output(value, paid)],
            lock_time: 0,
        };
        let txid = tx.txid();
        Move { tx, txid, from: coin.script, coin: Coin { script: to, outpoint: OutPoint { txid, vout: 0 }, value } }
    }

    /// The transactions that wait are in the mempool; returns the scripts that they touch.
    pub fn accept(&mut self, round: &Round) -> BTreeSet<usize> {
        let waiting = round.waiting.iter().map(|moved| (moved, false));
        let mut touched = BTreeSet::new();
        for (moved, has_unconfirmed_input) in waiting.chain(round.children.iter().map(|moved| (moved, true))) {
            for script in moved.scripts() {
                self.with(script, |script| script.pool.insert((has_unconfirmed_input, moved.written())));
                touched.insert(script);
            }
        }
        touched
    }

    /// The transactions of the block of this round, in their order.
    pub fn block<'a>(&self, round: &'a Round) -> impl Iterator<Item = &'a Move> + use<'a> {
        round.earlier.iter().chain(&round.waiting).chain(&round.unknown)
    }

    /// The block is connected; returns the scripts that it touches.
    pub fn connect(&mut self, round: &Round, height: u32) -> BTreeSet<usize> {
        let mut touched = BTreeSet::new();
        let parents: BTreeSet<Txid> =
            round.children.iter().flat_map(|child| child.tx.inputs.iter().map(|input| input.prevout.txid)).collect();
        for moved in self.block(round) {
            for script in moved.scripts() {
                self.with(script, |script| {
                    script.pool.remove(&(false, moved.written()));
                    script.confirmed.push((height, moved.txid))
                });
                touched.insert(script);
            }
            if !parents.contains(&moved.txid) && moved.coin.value >= VALUE_MIN {
                self.coins.push_back(moved.coin);
            }
        }
        for child in &round.children {
            for script in child.scripts() {
                self.with(script, |script| {
                    script.pool.remove(&(true, child.written()));
                    script.pool.insert((false, child.written()))
                });
                touched.insert(script);
            }
        }
        touched
    }

    fn with<T>(&mut self, script: usize, change: impl FnOnce(&mut Script) -> T) {
        self.scripts.get_mut(script).map(change);
    }
}

impl Move {
    /// The scripts that it touches, each once.
    fn scripts(&self) -> BTreeSet<usize> {
        BTreeSet::from([self.from, self.coin.script])
    }

    fn written(&self) -> [u8; 32] {
        let mut written = self.txid.0;
        written.reverse();
        written
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_touch_scripts_and_change_their_statuses() {
        let coins: Vec<(u32, OutPoint)> = (0..40).map(|vout| (7, OutPoint { txid: Txid([3; 32]), vout })).collect();
        let mut model = Model::new(&coins);
        let all = |model: &Model| -> Vec<Value> { (0..40).map(|script| model.status(script)).collect() };
        let changed = |before: &[Value], after: &[Value]| -> BTreeSet<usize> {
            (0..40).filter(|&script| before[script] != after[script]).collect()
        };
        for height in 8..20 {
            let round = model.plan(2);
            assert_eq!((round.waiting.len(), round.children.len(), round.unknown.len()), (4, 2, 2), "{height}");
            let before = all(&model);
            let touched = model.accept(&round);
            let waiting = all(&model);
            assert_eq!(touched, changed(&before, &waiting));
            let touched = model.connect(&round, height);
            assert_eq!(touched, changed(&waiting, &all(&model)));
            assert!(height == 8 || touched.len() > 2 * TOUCHED_PER_GROUP - 4, "{touched:?}");
            assert_eq!(model.block(&round).count(), if height == 8 { 6 } else { 8 });
        }
        let spent: BTreeSet<OutPoint> = model.coins.iter().map(|coin| coin.outpoint).collect();
        assert_eq!(spent.len(), model.coins.len());
    }
}
