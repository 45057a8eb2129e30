//! What happens to chain and mempool during the load: transactions that pay some of the scripts, and blocks with them.
//!
//! Input: the nodes, the tip of the chain, the scripts. Output: the times of all changes, with the status that each
//! changed script has then. Every node gets every transaction and block by RPC, so that no relay between nodes is part
//! of a figure. Invariants: a change touches a script once; the oracle is asked as soon as the first node's own server
//! has the change; the oracle knows a block before any node has it. Cost: the blocks of the run in memory.

use super::oracle::{About, Oracle};
use crate::electrum::client::{Client, result_of};
use crate::electrum::protocol::ScriptQuery;
use crate::error::LabError;
use crate::runs::{rpc, system};
use lydian_chains::presets::maker::{Maker, free_tx, output};
use lydian_chains::presets::scale::{witness_input, witness_script};
use lydian_chains::rng::Random;
use lydian_chains::wallet::script::p2wsh;
use lydian_primitives::build::{MutBlock, MutTx};
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
const SUBMIT: &str = "submitblock";
/// The answer to a block that is not on the best chain (BIP-0022).
const SIDE_BRANCH: &str = "inconclusive";
/// Digits of a header.
const HEADER_HEX: usize = 160;
/// A node that was away gets blocks from so many below its tip on.
const REORGANISED_MOST: u64 = 20;

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

/// A change that servers announce to wallets.
#[derive(Clone, Debug)]
pub struct Change {
    /// The height of the block; `None` for the mempool.
    pub height: Option<u32>,
    /// Before the nodes got it.
    pub start: Instant,
    /// When each node had connected the block, or accepted the last transaction; `None` for one that was away.
    pub taken: Vec<Option<Instant>>,
    /// The touched scripts.
    pub scripts: Vec<Touched>,
}

/// A script that a change touched, with its status before and after it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Touched {
    pub hash: String,
    pub before: Value,
    pub status: Value,
}

impl Change {
    /// When this node had the change; if it was away, when the last of the others had it.
    pub fn taken_by(&self, node: usize) -> Instant {
        let of = self.taken.get(node).copied().flatten();
        of.or_else(|| self.taken.iter().flatten().max().copied()).unwrap_or(self.start)
    }
}

/// What became of a payment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// In the block of this height; 0 for the mempool.
    At(u32),
    /// Neither in the chain nor in the mempool.
    Gone,
}

/// A payment to a script, by the number of the script.
#[derive(Clone, Debug)]
pub(super) struct Paid {
    pub(super) script: usize,
    pub(super) tx: MutTx,
}

/// What was sent so far, for nodes that were away.
#[derive(Debug, Default)]
struct Sent {
    blocks: Vec<(u32, String)>,
    /// Not in a block yet.
    waiting: Vec<(Txid, String)>,
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
    pub(super) maker: Maker,
    coins: VecDeque<OutPoint>,
    random: Random,
    /// Payments that a reorganisation took out of the chain: the next block has them.
    pub(super) returned: Vec<Paid>,
}

impl Payer {
    pub fn new(maker: Maker) -> Payer {
        let random = Random::new(1, "scale cluster payer");
        Payer { maker, coins: VecDeque::new(), random, returned: Vec::new() }
    }

    /// Transactions that pay these scripts, as far as there are coins.
    pub(super) fn pay_each(&mut self, oracle: &Oracle, scripts: &[usize]) -> Vec<Paid> {
        let pay = |script: &usize| {
            let tx = self.pay(&oracle.targets.get(*script)?.script)?;
            Some(Paid { script: *script, tx })
        };
        scripts.iter().filter_map(pay).collect()
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

    /// Every node that runs gets a call at the same time; the first one must take it. Returns when each had taken it.
    fn tell(&self, method: &str, param: &str) -> Result<Vec<Option<Instant>>, LabError> {
        let params = json!([param]);
        thread::scope(|scope| {
            let params = &params;
            let call = |node: &'a Caller| {
                let call = move || (node.call(method, params), system::now());
                node.is_up().then(|| scope.spawn(call))
            };
            let calls: Vec<_> = self.nodes.iter().map(call).collect();
            let mut taken = Vec::new();
            for (number, call) in calls.into_iter().enumerate() {
                let Some(call) = call else {
                    taken.push(None);
                    continue;
                };
                let (answer, at) = call.join().map_err(|_| LabError::program(method, "its thread ended"))?;
                match answer {
                    Ok(answer) if number == 0 && method == SUBMIT && !answer.is_null() && answer != SIDE_BRANCH => {
                        return Err(LabError::program(method, answer));
                    }
                    Err(error) if number == 0 => return Err(error),
                    Ok(_) => taken.push(Some(at)),
                    // Another one may just have been killed; it gets everything again.
                    Err(_) => taken.push(None),
                }
            }
            Ok(taken)
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
        self.block(payer, txs).map(|_| ())
    }

    /// Puts a block with these transactions on the tip.
    pub(super) fn block(&self, payer: &mut Payer, txs: Vec<MutTx>) -> Result<Vec<Option<Instant>>, LabError> {
        let block = payer.maker.block(txs);
        payer.maker.advance(&block);
        self.submit(payer.maker.height, &block)
    }

    /// Sends a block to every node.
    pub(super) fn submit(&self, height: u32, block: &MutBlock) -> Result<Vec<Option<Instant>>, LabError> {
        let hex = to_hex(&block.encode());
        self.oracle.expect_tip(height, hex.get(..HEADER_HEX).unwrap_or_default());
        let included: BTreeSet<Txid> = block.txs.iter().map(MutTx::txid).collect();
        let mut sent = lock(&self.sent);
        sent.blocks.push((height, hex.clone()));
        sent.waiting.retain(|(txid, _)| !included.contains(txid));
        self.tell(SUBMIT, &hex)
    }

    /// Sends transactions to the mempool of every node. Returns when each had the last one.
    pub(super) fn send(&self, paid: &[Paid]) -> Result<Vec<Option<Instant>>, LabError> {
        let mut taken = vec![None; self.nodes.len()];
        for Paid { tx, .. } in paid {
            let hex = to_hex(&tx.encode());
            let mut sent = lock(&self.sent);
            sent.waiting.push((tx.txid(), hex.clone()));
            taken = self.tell("sendrawtransaction", &hex)?;
        }
        Ok(taken)
    }

    /// The last reorganisation changed the transactions that nodes which were away must get.
    pub(super) fn set_waiting(&self, paid: &[Paid]) {
        let waiting = paid.iter().map(|paid| (paid.tx.txid(), to_hex(&paid.tx.encode())));
        lock(&self.sent).waiting = waiting.collect();
    }

    /// A round: some scripts are paid in the mempool, and half a period later a block has these payments and as many
    /// that no node knew. Returns both changes.
    pub fn round(
        &self,
        payer: &mut Payer,
        client: &mut Client,
        touched: usize,
        pause: &dyn Fn(),
    ) -> Result<Vec<Change>, LabError> {
        let scripts = self.some_scripts(payer, 2 * touched);
        let (waiting, unknown) = scripts.split_at(scripts.len() / 2);
        let funding = if payer.coins.len() < 8 * touched { payer.fund(16 * touched) } else { Vec::new() };
        // Coins of the funding transactions are at the end of the queue, and spent after this block.
        let waiting = payer.pay_each(self.oracle, waiting);
        let unknown = payer.pay_each(self.oracle, unknown);
        let start = system::now();
        let taken = self.send(&waiting)?;
        let fates = |paid: &[Paid], fate| paid.iter().map(|paid| (paid.clone(), fate)).collect::<Vec<_>>();
        let scripts = self.settle(client, &fates(&waiting, Fate::At(0)))?;
        let first = Change { height: None, start, taken, scripts };
        pause();
        let paid = [std::mem::take(&mut payer.returned), waiting, unknown].concat();
        let txs = paid.iter().map(|paid| paid.tx.clone());
        let start = system::now();
        let taken = self.block(payer, funding.into_iter().chain(txs).collect())?;
        let height = payer.maker.height;
        let scripts = self.settle(client, &fates(&paid, Fate::At(height)))?;
        Ok(vec![first, Change { height: Some(height), start, taken, scripts }])
    }

    /// Different scripts, none of which has a payment that waits for the next block.
    pub(super) fn some_scripts(&self, payer: &mut Payer, count: usize) -> Vec<usize> {
        let all = self.oracle.targets.len();
        let busy: BTreeSet<usize> = payer.returned.iter().map(|paid| paid.script).collect();
        let mut chosen = BTreeSet::new();
        while chosen.len() < count.min(all.saturating_sub(busy.len())) {
            let script = payer.random.index(all);
            if !busy.contains(&script) {
                chosen.insert(script);
            }
        }
        let mut chosen: Vec<usize> = chosen.into_iter().collect();
        // The order of their numbers would always give the same ones to the mempool.
        for at in (1..chosen.len()).rev() {
            chosen.swap(at, payer.random.index(at + 1));
        }
        chosen
    }

    /// Waits until the first node's own server has these payments where they belong, and asks it about their scripts.
    pub(super) fn settle(&self, client: &mut Client, paid: &[(Paid, Fate)]) -> Result<Vec<Touched>, LabError> {
        let about = About::Script(ScriptQuery::History);
        let mut touched = Vec::new();
        for (Paid { script, tx }, fate) in paid {
            let (txid, start) = (tx.txid().to_string(), system::now());
            loop {
                let line = client.ask(&about.method(), self.oracle.request(*script, about))?.line.to_vec();
                if result_of(&line).is_ok_and(|history| fate.is_of(&txid, &history)) {
                    break;
                }
                let patience = self.nodes.first().map_or(Duration::ZERO, |node| node.timeout);
                if start.elapsed() > patience {
                    let reason = format!("its server does not have {txid} where it belongs: {fate:?}");
                    return Err(LabError::program("lydian", reason));
                }
                thread::sleep(POLL);
            }
            let (before, status) = self.oracle.update(client, *script)?;
            let hash = self.oracle.targets.get(*script).map(|target| target.scripthash.clone());
            touched.push(Touched { hash: hash.unwrap_or_default(), before, status });
        }
        Ok(touched)
    }

    /// A node gets no further changes, and none is on its way to it: a paused node would hold up all others.
    pub fn leave_out(&self, node: &Caller) {
        let _sent = lock(&self.sent);
        node.is_up.store(false, Ordering::Relaxed);
    }

    /// A node that was away gets what it missed; from then on it gets every change.
    pub fn catch_up(&self, node: &Caller) -> Result<(), LabError> {
        // No change comes between what it gets here and what it gets with the others.
        let sent = lock(&self.sent);
        let height = node.call("getblockcount", &json!([]))?.as_u64().unwrap_or(0);
        for (at, block) in &sent.blocks {
            // It may be on the branch that a reorganisation left; it refuses what it has.
            if u64::from(*at) + REORGANISED_MOST > height {
                node.call(SUBMIT, &json!([block]))?;
            }
        }
        for (_, tx) in &sent.waiting {
            // It may know the transaction.
            let _ = node.call("sendrawtransaction", &json!([tx]));
        }
        node.is_up.store(true, Ordering::Relaxed);
        Ok(())
    }
}

impl Fate {
    fn is_of(self, txid: &str, history: &Value) -> bool {
        let entries = history.as_array().map(Vec::as_slice).unwrap_or_default();
        let entry = entries.iter().find(|entry| entry["tx_hash"] == txid);
        match self {
            Fate::At(height) => entry.is_some_and(|entry| entry["height"] == height),
            Fate::Gone => entry.is_none(),
        }
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
