//! Wallets of others on a front end: BDK's client of the Electrum protocol and, if it is installed, the wallet
//! `electrum`. They receive payments, live through a reorganisation, which takes one payment back to the mempool and
//! replaces another, and through the end of the node that the front end follows. Each step must be what the blocks and
//! mempools of the nodes mean, and what the Electrum server of a node answers.
//!
//! [`tell`] is the same for every [`Stage`]: [`crate::front_in_memory`], and three nodes of Cassandra in
//! [`crate::front`].

use crate::electrum::{pay, script};
use crate::electrum_model::{Wallet, satoshis, scripthash, text};
use crate::electrum_wallet::{Wallet as ElectrumProgram, is_installed};
use crate::front_nodes::{Node, copy_blocks};
use crate::page_client::wait;
use bdk_electrum::BdkElectrumClient;
use bdk_electrum::bdk_core::bitcoin::{BlockHash, ScriptBuf, Transaction, Txid, consensus};
use bdk_electrum::bdk_core::spk_client::SyncRequest;
use bdk_electrum::bdk_core::{BlockId, CheckPoint};
use bdk_electrum::electrum_client::Client as ElectrumClient;
use lydian_primitives::build::{MutOutput, MutTx};
use lydian_primitives::{Amount, OutPoint, hex, to_hex};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// The script of BDK's wallet: another test pays to the ones before.
const OWN: u8 = 17;

/// The node that writes the index.
const WRITER: usize = 0;

/// A front end on two nodes.
pub(crate) trait Stage {
    /// The port of the front end's Electrum server, without TLS.
    fn electrum(&self) -> u16;

    /// The first one writes the index.
    fn nodes(&mut self) -> &mut [Node; 2];

    /// A coinbase that pays 50 bitcoin to the first script of the tests and can be spent.
    fn coin(&mut self) -> OutPoint;

    /// The node whose mempool the front end has.
    fn followed(&self) -> Option<usize>;

    /// Does what must be done again and again, for a stage whose index has no thread.
    fn work(&mut self) {}
}

/// Where a payment is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Mempool,
    Block(u64),
    /// Another transaction spends its coin.
    Nowhere,
}

/// A transaction that pays the same to every wallet.
#[derive(Clone, Debug)]
struct Payment {
    txid: String,
    value: i64,
    place: Place,
}

/// What a wallet must show.
struct Expected<'a> {
    payments: &'a [Payment],
    height: u64,
    hash: &'a str,
}

impl Expected<'_> {
    fn sum(&self, of: impl Fn(Place) -> bool) -> i64 {
        self.payments.iter().filter(|payment| of(payment.place)).map(|payment| payment.value).sum()
    }

    fn confirmed(&self) -> i64 {
        self.sum(|place| matches!(place, Place::Block(_)))
    }

    fn unconfirmed(&self) -> i64 {
        self.sum(|place| place == Place::Mempool)
    }
}

/// A wallet with one script that it shows to others.
trait Payee {
    fn script(&self) -> Vec<u8>;

    fn check(&mut self, what: &str, expected: &Expected<'_>);
}

/// BDK's client, as a wallet uses it.
struct Bdk {
    client: BdkElectrumClient<ElectrumClient>,
    script: ScriptBuf,
    tip: CheckPoint,
    /// What it found in the mempool the last time.
    pooled: BTreeSet<Txid>,
}

impl Bdk {
    fn connect(port: u16, genesis: &Value) -> Bdk {
        let hash = text(genesis).parse().unwrap();
        Bdk {
            client: BdkElectrumClient::new(ElectrumClient::new(&format!("tcp://127.0.0.1:{port}")).unwrap()),
            script: ScriptBuf::from(script(OWN)),
            tip: CheckPoint::new(BlockId { height: 0, hash }),
            pooled: BTreeSet::new(),
        }
    }

    fn broadcast(&self, tx: &MutTx) {
        let tx: Transaction = consensus::deserialize(&tx.encode()).unwrap();
        self.client.transaction_broadcast(&tx).unwrap();
    }
}

impl Payee for Bdk {
    fn script(&self) -> Vec<u8> {
        self.script.to_bytes()
    }

    fn check(&mut self, what: &str, expected: &Expected<'_>) {
        let known: Vec<(ScriptBuf, Txid)> = self.pooled.iter().map(|txid| (self.script.clone(), *txid)).collect();
        let request = SyncRequest::builder().chain_tip(self.tip.clone()).spks([self.script.clone()]);
        let response = self.client.sync(request.expected_spk_txids(known).build(), 5, true).unwrap();
        let (update, tip) = (response.tx_update, response.chain_update.unwrap());
        assert_eq!(
            (u64::from(tip.height()), tip.hash().to_string().as_str()),
            (expected.height, expected.hash),
            "{what}"
        );
        let mut found = BTreeMap::new();
        for (anchor, txid) in &update.anchors {
            // A block counts if it is on the chain of the client.
            let BlockId { height, hash } = anchor.block_id;
            let on_chain: Option<BlockHash> = tip.get(height).map(|block| block.hash());
            assert_eq!(on_chain, Some(hash), "{what}: {txid}");
            found.insert(*txid, Place::Block(height.into()));
        }
        let pooled: BTreeSet<Txid> = update.seen_ats.iter().map(|(txid, _)| *txid).collect();
        found.extend(pooled.iter().map(|txid| (*txid, Place::Mempool)));
        let right = expected.payments.iter().filter(|payment| payment.place != Place::Nowhere);
        let right: BTreeMap<Txid, Place> =
            right.map(|payment| (payment.txid.parse().unwrap(), payment.place)).collect();
        assert_eq!(found, right, "{what}");
        // What left the mempool without a block is reported.
        let gone: BTreeSet<Txid> = update.evicted_ats.iter().map(|(txid, _)| *txid).collect();
        assert_eq!(gone, self.pooled.iter().filter(|txid| !found.contains_key(*txid)).copied().collect(), "{what}");
        let mut sums = [0, 0];
        for tx in &update.txs {
            let outputs = tx.output.iter().filter(|output| output.script_pubkey == self.script);
            let value = i64::try_from(outputs.map(|output| output.value.to_sat()).sum::<u64>()).unwrap();
            match found.get(&tx.compute_txid()) {
                Some(Place::Block(_)) => sums[0] += value,
                Some(_) => sums[1] += value,
                None => {}
            }
        }
        assert_eq!(sums, [expected.confirmed(), expected.unconfirmed()], "{what}");
        (self.tip, self.pooled) = (tip, pooled);
    }
}

/// The wallet `electrum`.
struct Program {
    wallet: ElectrumProgram,
    script: Vec<u8>,
}

impl Program {
    fn start(port: u16, node: &Node) -> Program {
        let wallet = ElectrumProgram::start(port, 't');
        let address = wallet.run(&["getunusedaddress"]);
        let info = node.server.result("validateaddress", &json!([address]).to_string());
        Program { wallet, script: hex(&text(&info["scriptPubKey"])).unwrap() }
    }
}

/// The heights below 0 that `electrum` gives to transactions that no server knows.
const LOCAL: std::ops::RangeInclusive<i64> = -3..=-2;

impl Payee for Program {
    fn script(&self) -> Vec<u8> {
        self.script.clone()
    }

    fn check(&mut self, what: &str, expected: &Expected<'_>) {
        // It is notified.
        self.wallet.wait(what, |wallet| {
            let history = wallet.json(&["onchain_history"]);
            let found = |payment: &Payment| -> Option<i64> {
                let tx = history["transactions"].as_array().unwrap().iter().find(|tx| tx["txid"] == payment.txid)?;
                tx["height"].as_i64()
            };
            let is_right = |payment: &Payment| match (payment.place, found(payment)) {
                (Place::Mempool, height) => height == Some(0),
                (Place::Block(height), found) => found == i64::try_from(height).ok(),
                (Place::Nowhere, found) => found.is_none_or(|height| LOCAL.contains(&height)),
            };
            let balance = wallet.json(&["getbalance"]);
            let sum = |name: &str| {
                let words = balance[name].as_str().unwrap_or("0");
                satoshis(&json!(words.parse::<f64>().unwrap()))
            };
            // It goes on counting a payment that left the mempool, until its user removes it.
            let is_local = |payment: &&Payment| found(payment).is_some_and(|height| LOCAL.contains(&height));
            let local: i64 = expected.payments.iter().filter(is_local).map(|payment| payment.value).sum();
            expected.payments.iter().all(is_right)
                && [sum("confirmed"), sum("unconfirmed")] == [expected.confirmed(), expected.unconfirmed() + local]
                && wallet.json(&["getinfo"])["blockchain_height"] == expected.height
        });
    }
}

/// A connection that has subscribed to scripts and headers, and what it was notified of.
struct Subscriber {
    wallet: Wallet,
    header: Value,
    statuses: BTreeMap<String, Value>,
}

impl Subscriber {
    fn new(port: u16, scripts: &[Vec<u8>]) -> Subscriber {
        let mut wallet = Wallet::connect(port, "1.6");
        let header = wallet.result("blockchain.headers.subscribe", &json!([]));
        let mut status = |script: &Vec<u8>| {
            let hash = scripthash(script);
            let status = wallet.result("blockchain.scripthash.subscribe", &json!([hash]));
            (hash, status)
        };
        let statuses = scripts.iter().map(&mut status).collect();
        Subscriber { wallet, header, statuses }
    }

    /// Takes the notifications that have come. Returns how many were about scripts.
    fn catch_up(&mut self) -> usize {
        // Whatever was sent before the answer has come with it.
        self.wallet.result("server.ping", &json!([]));
        let mut scripts = 0;
        for notice in std::mem::take(&mut self.wallet.notices) {
            match notice["method"].as_str() {
                Some("blockchain.headers.subscribe") => self.header = notice["params"][0].clone(),
                Some("blockchain.scripthash.subscribe") => {
                    self.statuses.insert(text(&notice["params"][0]), notice["params"][1].clone());
                    scripts += 1;
                }
                _ => panic!("{notice}"),
            }
        }
        scripts
    }
}

struct Story<'a, S> {
    stage: &'a mut S,
    bdk: Bdk,
    program: Option<Program>,
    scripts: Vec<Vec<u8>>,
    subscriber: Subscriber,
    payments: Vec<Payment>,
}

impl<'a, S: Stage> Story<'a, S> {
    fn begin(stage: &'a mut S) -> Story<'a, S> {
        let port = stage.electrum();
        let node = &stage.nodes()[WRITER];
        let bdk = Bdk::connect(port, &node.hash(0));
        let program = is_installed().then(|| Program::start(port, node));
        let scripts: Vec<Vec<u8>> = [bdk.script()].into_iter().chain(program.as_ref().map(Payee::script)).collect();
        let subscriber = Subscriber::new(port, &scripts);
        Story { stage, bdk, program, scripts, subscriber, payments: Vec::new() }
    }

    /// A transaction that pays each wallet so much.
    fn payment(&self, coin: OutPoint, value: i64) -> MutTx {
        let (mut tx, _) = pay(&[(coin, 5_000_000_000, 1)], &[9], 10_000);
        for script in &self.scripts {
            tx.outputs[0].value.0 -= value;
            tx.outputs.push(MutOutput { value: Amount(value), script_pubkey: script.clone() });
        }
        tx
    }

    /// Adds a payment to the mempools of nodes. Returns its place in the list.
    fn pay(&mut self, value: i64, nodes: &[usize]) -> (usize, OutPoint) {
        let coin = self.stage.coin();
        let tx = self.payment(coin, value);
        for node in nodes {
            self.stage.nodes()[*node].server.result("sendrawtransaction", &json!([to_hex(&tx.encode())]).to_string());
        }
        (self.list(&tx, value), coin)
    }

    fn list(&mut self, tx: &MutTx, value: i64) -> usize {
        self.payments.push(Payment { txid: tx.txid().to_string(), value, place: Place::Mempool });
        self.payments.len() - 1
    }

    /// Mines a block with the mempool of a node. Returns its height.
    fn mine(&mut self, node: usize) -> u64 {
        let node = &self.stage.nodes()[node];
        crate::indexes::mine(&node.server, 1, 9);
        node.height()
    }

    /// The front end has all that the node has, its subscribers were notified, and the wallets show it.
    fn check(&mut self, node: usize, what: &str) {
        let node = &self.stage.nodes()[node];
        let (own, height) = (node.electrum, node.height());
        let hash = text(&node.hash(height));
        let mut ours = Wallet::connect(self.stage.electrum(), "1.6");
        let mut theirs = Wallet::connect(own, "1.6");
        let questions = |wallet: &mut Wallet, scripts: &[Vec<u8>]| -> Vec<Value> {
            let mut answers = vec![wallet.result("blockchain.headers.subscribe", &json!([]))];
            for script in scripts {
                for method in ["get_history", "get_balance", "get_mempool", "listunspent", "subscribe"] {
                    answers.push(wallet.of_script(method, script));
                }
            }
            answers
        };
        wait(&format!("{what}: the front end answers as the node"), || {
            self.stage.work();
            let right = questions(&mut theirs, &self.scripts);
            (right[0]["height"] == height && questions(&mut ours, &self.scripts) == right).then_some(())
        });
        wait(&format!("{what}: notifications have come"), || {
            self.subscriber.catch_up();
            let header = theirs.result("blockchain.headers.subscribe", &json!([]));
            let mut status = |script| (scripthash(script), theirs.of_script("subscribe", script));
            let statuses: BTreeMap<String, Value> = self.scripts.iter().map(|script| status(script)).collect();
            (self.subscriber.header == header && self.subscriber.statuses == statuses).then_some(())
        });
        let expected = Expected { payments: &self.payments, height, hash: &hash };
        let balance = json!({"confirmed": expected.confirmed(), "unconfirmed": expected.unconfirmed()});
        for script in &self.scripts {
            assert_eq!(ours.of_script("get_balance", script), balance, "{what}");
        }
        self.bdk.check(what, &expected);
        if let Some(program) = &mut self.program {
            program.check(what, &expected);
        }
    }

    /// One payment comes by the front end, one by a node; a block has both.
    fn payments_arrive(&mut self) -> (usize, usize, OutPoint) {
        self.check(WRITER, "at the start");
        let coin = self.stage.coin();
        let tx = self.payment(coin, 300_000_000);
        self.bdk.broadcast(&tx);
        let first = self.list(&tx, 300_000_000);
        for node in self.stage.nodes() {
            // Both have it, but the call ends when the first one does.
            let txid = json!([tx.txid().to_string()]).to_string();
            wait("a broadcast goes to both nodes", || {
                node.server.call("getmempoolentry", &txid).body.contains("\"error\":null").then_some(())
            });
        }
        let (second, coin) = self.pay(100_000_000, &[0, 1]);
        self.check(WRITER, "two payments in the mempool");
        let height = self.mine(1);
        self.copy(1, 0);
        self.payments[first].place = Place::Block(height);
        self.payments[second].place = Place::Block(height);
        self.check(WRITER, "two payments in a block");
        (first, second, coin)
    }

    fn copy(&mut self, from: usize, to: usize) {
        let nodes = self.stage.nodes();
        copy_blocks(&nodes[from], &nodes[to]);
    }

    /// A longer branch lacks the first payment, and spends the coin of the second one elsewhere.
    fn a_reorganisation(&mut self, first: usize, second: usize, coin: OutPoint) {
        let (double, _) = pay(&[(coin, 5_000_000_000, 1)], &[9], 90_000);
        let node = &self.stage.nodes()[1].server;
        let tip = node.result("getbestblockhash", "[]");
        node.result("invalidateblock", &json!([tip]).to_string());
        let to = format!("raw({})", to_hex(&script(9)));
        node.result("generateblock", &json!([to, [to_hex(&double.encode())]]).to_string());
        node.result("generateblock", &json!([to, []]).to_string());
        // The writer has both branches, and takes the longer one.
        self.copy(1, 0);
        self.payments[first].place = Place::Mempool;
        self.payments[second].place = Place::Nowhere;
        self.check(WRITER, "a reorganisation");
        let height = self.mine(WRITER);
        self.copy(0, 1);
        self.payments[first].place = Place::Block(height);
        self.check(WRITER, "in a block again");
    }

    /// The node that is followed ends. Nothing is notified but what comes from the other one.
    fn the_followed_node_ends(&mut self) {
        let gone = self.stage.followed().unwrap();
        let stays = 1 - gone;
        self.subscriber.catch_up();
        self.stage.nodes()[gone].server.kill();
        wait("the other node is followed", || (self.stage.followed() == Some(stays)).then_some(()));
        let what = format!("without node {gone}");
        self.check_nothing_came();
        self.check(stays, &what);
        let (payment, _) = self.pay(50_000_000, &[stays]);
        self.check(stays, &format!("{what}, a payment"));
        if gone == WRITER {
            // There are no blocks without it.
            self.stage.nodes()[gone].start_again();
        }
        let height = self.mine(stays);
        if gone == WRITER {
            self.copy(stays, gone);
        }
        self.payments[payment].place = Place::Block(height);
        self.check(stays, &format!("{what}, a block"));
        if gone != WRITER {
            self.stage.nodes()[gone].start_again();
            self.copy(stays, gone);
        }
        assert_eq!(self.stage.followed(), Some(stays), "a node that answers is not left for one that is back");
    }

    fn check_nothing_came(&mut self) {
        assert_eq!(self.subscriber.catch_up(), 0, "another node has the same mempool, so nothing changes for wallets");
    }

    /// The wallet sends.
    fn the_wallet_pays(&mut self) {
        let Some(program) = &self.program else { return };
        let wallet = &program.wallet;
        // It would spend a payment that no node has.
        for payment in self.payments.iter().filter(|payment| payment.place == Place::Nowhere) {
            wallet.run(&["removelocaltx", &payment.txid]);
        }
        let to = wallet.run(&["createnewaddress"]);
        let signed = wallet.run(&["payto", &to, "0.5", "--fee", "0.00001"]);
        let txid = wallet.run(&["broadcast", &signed]);
        let nodes = self.stage.nodes();
        wait("both nodes have it", || {
            nodes.iter().all(|node| node.server.result("getrawmempool", "[]") == json!([txid])).then_some(())
        });
        wallet.wait("its payment is unconfirmed", |wallet| wallet.height_of(&txid) == Some(0));
        crate::indexes::mine(&nodes[1].server, 1, 9);
        copy_blocks(&nodes[1], &nodes[0]);
        let height = i64::try_from(nodes[0].height()).unwrap();
        let mut headers = Wallet::connect(self.stage.electrum(), "1.6");
        wait("the front end has the block", || {
            self.stage.work();
            let found = headers.result("blockchain.headers.subscribe", &json!([]));
            (found["height"] == height).then_some(())
        });
        wallet.wait("its payment is confirmed", |wallet| wallet.height_of(&txid) == Some(height));
    }
}

/// Tells the story from the beginning to the end. The nodes have the same chain and mempool.
pub(crate) fn tell(stage: &mut impl Stage) {
    let mut story = Story::begin(stage);
    let (first, second, coin) = story.payments_arrive();
    story.a_reorganisation(first, second, coin);
    // Twice, so that each of the nodes ends once.
    story.the_followed_node_ends();
    story.the_followed_node_ends();
    story.the_wallet_pays();
}
