//! What happens to chain and mempool during the load: transactions that pay some of the scripts, and blocks with them.
//!
//! Input: the nodes, the tip of the chain, the scripts. Output: the times of all changes, with the status that each
//! changed script has then. Every node gets every transaction and block by RPC, so that no relay between nodes is part
//! of a figure. Invariants: a change touches a script once; the oracle is asked as soon as the first node's own server
//! has the change. Cost: the blocks of the run in memory.

use super::oracle::{About, Oracle};
use crate::electrum::client::{Client, result_of};
use crate::electrum::protocol::ScriptQuery;
use crate::error::LabError;
use crate::runs::{rpc, system};
use lydian_chains::presets::maker::{Maker, free_tx, output};
use lydian_chains::presets::scale::{witness_input, witness_script};
use lydian_chains::rng::Random;
use lydian_chains::wallet::script::p2wsh;
use lydian_primitives::build::MutTx;
use lydian_primitives::{OutPoint, Txid, to_hex};
use lydian_stdx::lock;
use serde_json::{Value, json};
use std::collections::{BTreeSet, VecDeque};
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// What a coin has, what of it is paid to a script, and what is left of a coinbase for the fee, in satoshis.
const COIN_VALUE: i64 = 3_500;
const PAID: i64 = 2_000;
const FUND_FEE: i64 = 20_000;
/// Coins of one transaction.
const COINS_MAX: i64 = 500;
/// Blocks after which a coinbase can be spent.
const MATURITY: u32 = 100;
const POLL: Duration = Duration::from_millis(2);

/// A node that gets every change.
#[derive(Debug)]
pub struct Caller {
    pub cookie: PathBuf,
    pub rpc_port: u16,
    pub timeout: Duration,
    /// Whether it runs.
    pub is_up: AtomicBool,
}

impl Caller {
    pub fn call(&self, method: &str, params: &Value) -> Result<Value, LabError> {
        let credentials = system::read_proc(&self.cookie.to_string_lossy());
        let credentials = credentials.ok_or_else(|| LabError::program("lydian", "its RPC cookie is missing"))?;
        let credentials = credentials.trim().to_owned();
        rpc::Server { port: self.rpc_port, credentials }.call_within(method, params, self.timeout)
    }

    fn is_up(&self) -> bool {
        self.is_up.load(Ordering::Relaxed)
    }
}

/// A change that wallets are told.
#[derive(Clone, Debug)]
pub struct Change {
    /// The height of the block; `None` for the mempool.
    pub height: Option<u32>,
    /// Before the nodes got it, and when all that run had answered.
    pub start: Instant,
    pub done: Instant,
    /// The touched scripts, with their status.
    pub scripts: Vec<(String, Value)>,
}

/// What was sent so far, for nodes that were away.
#[derive(Debug, Default)]
struct Sent {
    blocks: Vec<(u32, String)>,
    /// Not in a block yet.
    waiting: Vec<String>,
}

#[derive(Debug)]
pub struct Changes<'a> {
    pub nodes: &'a [Caller],
    pub oracle: &'a Oracle,
    /// The order of changes and of what a node that was away gets.
    sent: Mutex<Sent>,
}

/// Pays scripts.
#[derive(Debug)]
pub struct Payer {
    maker: Maker,
    coins: VecDeque<OutPoint>,
    random: Random,
}

impl Payer {
    pub fn new(maker: Maker) -> Payer {
        Payer { maker, coins: VecDeque::new(), random: Random::new(1, "scale cluster payer") }
    }

    pub fn height(&self) -> u32 {
        self.maker.height
    }

    /// A transaction that pays this script.
    fn pay(&mut self, script: &[u8]) -> Option<MutTx> {
        let coin = self.coins.pop_front()?;
        let inputs = vec![witness_input(coin, &witness_script(0))];
        Some(MutTx { version: 2, inputs, outputs: vec![output(PAID, script)], lock_time: 0 })
    }

    /// Transactions that make coins of coinbases, until there are this many.
    fn fund(&mut self, least: usize) -> Vec<MutTx> {
        let script = p2wsh(&witness_script(0));
        let mut txs = Vec::new();
        let mut spendable = self.maker.spendable().into_iter();
        while self.coins.len() < least {
            let Some(coin) = spendable.next() else { break };
            let count = ((coin.value - FUND_FEE) / COIN_VALUE).min(COINS_MAX);
            let outputs: Vec<_> = (0..count.max(0)).map(|_| output(COIN_VALUE, &script)).collect();
            if outputs.is_empty() {
                continue;
            }
            let count = u32::try_from(outputs.len()).unwrap_or(0);
            let tx = free_tx(&[coin], outputs);
            let txid = tx.txid();
            self.coins.extend((0..count).map(|vout| OutPoint { txid, vout }));
            txs.push(tx);
        }
        txs
    }
}

impl<'a> Changes<'a> {
    pub fn new(nodes: &'a [Caller], oracle: &'a Oracle) -> Changes<'a> {
        Changes { nodes, oracle, sent: Mutex::new(Sent::default()) }
    }

    /// Every node that runs gets a call at the same time; the first one must take it.
    fn tell(&self, method: &str, param: &str) -> Result<(), LabError> {
        let params = json!([param]);
        let failed = |answer: Value| LabError::program(method, answer);
        thread::scope(|scope| {
            let mut calls = Vec::new();
            for node in self.nodes.iter().filter(|node| node.is_up()) {
                let params = &params;
                calls.push(scope.spawn(move || (node.is_up(), node.call(method, params))));
            }
            for (number, call) in calls.into_iter().enumerate() {
                let (_, answer) = call.join().map_err(|_| LabError::program(method, "its thread ended"))?;
                match answer {
                    Ok(answer) if method == "submitblock" && !answer.is_null() && number == 0 => {
                        return Err(failed(answer));
                    }
                    Err(error) if number == 0 => return Err(error),
                    // Another one may just have been killed; it gets everything again.
                    Ok(_) | Err(_) => {}
                }
            }
            Ok(())
        })
    }

    /// Coinbases that can be spent, and coins of them.
    pub fn prepare(&self, payer: &mut Payer, coins: usize) -> Result<(), LabError> {
        for _ in 0..=MATURITY {
            self.block(payer, Vec::new())?;
        }
        let txs = payer.fund(coins);
        if txs.is_empty() {
            return Err(LabError::Usage("the coinbases of the chain are too small: use a smaller --height".to_owned()));
        }
        self.block(payer, txs)
    }

    fn block(&self, payer: &mut Payer, txs: Vec<MutTx>) -> Result<(), LabError> {
        let block = payer.maker.block(txs);
        payer.maker.advance(&block);
        let hex = to_hex(&block.encode());
        let mut sent = lock(&self.sent);
        sent.blocks.push((payer.maker.height, hex.clone()));
        sent.waiting.clear();
        self.tell("submitblock", &hex)
    }

    /// A round: some scripts are paid in the mempool, and half a period later a block has these payments and as many
    /// that no node knew. Returns both changes.
    pub fn round(
        &self,
        payer: &mut Payer,
        client: &mut Client,
        touched: usize,
        pause: &dyn Fn(),
    ) -> Result<[Change; 2], LabError> {
        let scripts = self.some_scripts(payer, 2 * touched);
        let (waiting, unknown) = scripts.split_at(scripts.len() / 2);
        let funding = if payer.coins.len() < 8 * touched { payer.fund(16 * touched) } else { Vec::new() };
        // Coins of the funding transactions are at the end of the queue, and spent after this block.
        let pay = |payer: &mut Payer, scripts: &[usize]| -> Vec<(usize, MutTx)> {
            let pay = |script: &usize| Some((*script, payer.pay(&self.oracle.targets.get(*script)?.script)?));
            scripts.iter().filter_map(pay).collect()
        };
        let (waiting, unknown) = (pay(payer, waiting), pay(payer, unknown));
        let start = system::now();
        for (_, tx) in &waiting {
            let hex = to_hex(&tx.encode());
            let mut sent = lock(&self.sent);
            sent.waiting.push(hex.clone());
            self.tell("sendrawtransaction", &hex)?;
        }
        let done = system::now();
        let touched: Vec<(usize, Txid)> = waiting.iter().map(|(script, tx)| (*script, tx.txid())).collect();
        let first = Change { height: None, start, done, scripts: self.settle(client, &touched, 0)? };
        pause();
        let txs: Vec<MutTx> = waiting.iter().chain(&unknown).map(|(_, tx)| tx.clone()).collect();
        let start = system::now();
        self.block(payer, funding.into_iter().chain(txs).collect())?;
        let done = system::now();
        let height = payer.maker.height;
        let touched: Vec<(usize, Txid)> =
            waiting.iter().chain(&unknown).map(|(script, tx)| (*script, tx.txid())).collect();
        let scripts = self.settle(client, &touched, i64::from(height))?;
        Ok([first, Change { height: Some(height), start, done, scripts }])
    }

    fn some_scripts(&self, payer: &mut Payer, count: usize) -> Vec<usize> {
        let all = self.oracle.targets.len();
        let mut chosen = BTreeSet::new();
        while chosen.len() < count.min(all) {
            chosen.insert(payer.random.index(all));
        }
        let mut chosen: Vec<usize> = chosen.into_iter().collect();
        // The order of their numbers would always give the same ones to the mempool.
        for at in (1..chosen.len()).rev() {
            chosen.swap(at, payer.random.index(at + 1));
        }
        chosen
    }

    /// Waits until the first node's own server has these transactions at this height, and asks it about their scripts.
    fn settle(
        &self,
        client: &mut Client,
        touched: &[(usize, Txid)],
        height: i64,
    ) -> Result<Vec<(String, Value)>, LabError> {
        let about = About::Script(ScriptQuery::History);
        let mut statuses = Vec::new();
        for (script, txid) in touched {
            let (txid, start) = (txid.to_string(), system::now());
            loop {
                let line = client.ask(&about.method(), self.oracle.request(*script, about))?.line.to_vec();
                let history = result_of(&line).unwrap_or_default();
                let is_it = |entry: &Value| entry["tx_hash"] == txid && entry["height"] == height;
                if history.as_array().is_some_and(|entries| entries.iter().any(is_it)) {
                    break;
                }
                let patience = self.nodes.first().map_or(Duration::ZERO, |node| node.timeout);
                if start.elapsed() > patience {
                    let reason = format!("its server does not have {txid} at height {height}");
                    return Err(LabError::program("lydian", reason));
                }
                thread::sleep(POLL);
            }
            let status = self.oracle.update(client, *script)?;
            let hash = self.oracle.targets.get(*script).map(|target| target.scripthash.clone());
            statuses.push((hash.unwrap_or_default(), status));
        }
        Ok(statuses)
    }

    /// A node that was away gets what it missed; from then on it gets every change.
    pub fn catch_up(&self, node: &Caller) -> Result<(), LabError> {
        // No change comes between what it gets here and what it gets with the others.
        let sent = lock(&self.sent);
        let height = node.call("getblockcount", &json!([]))?.as_u64().unwrap_or(0);
        for (at, block) in &sent.blocks {
            if u64::from(*at) > height {
                node.call("submitblock", &json!([block]))?;
            }
        }
        for tx in &sent.waiting {
            // It may know the transaction.
            let _ = node.call("sendrawtransaction", &json!([tx]));
        }
        node.is_up.store(true, Ordering::Relaxed);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn coins_are_made_of_coinbases_and_paid_once() {
        let mut payer = Payer::new(Maker::new());
        assert!(payer.fund(10).is_empty(), "no coinbase can be spent");
        for _ in 0..=MATURITY {
            let block = payer.maker.block(Vec::new());
            payer.maker.advance(&block);
        }
        let txs = payer.fund(600);
        assert_eq!((txs.len(), payer.coins.len()), (2, 1_000));
        let block = payer.maker.block(txs);
        payer.maker.advance(&block);
        let mut spent = BTreeSet::new();
        while let Some(tx) = payer.pay(&[0x51]) {
            assert!(spent.insert(tx.inputs[0].prevout));
        }
        assert_eq!(spent.len(), 1_000);
    }
}
