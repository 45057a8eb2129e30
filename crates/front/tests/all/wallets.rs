//! An Electrum server whose notifier is late: a wallet that subscribes gets the status of the history that it could
//! have read before, and every wallet is notified once the notifier has looked.

use crate::draft::Shape;
use crate::faults::grow;
use crate::world::{FULL, World};
use lydian_electrum::{Clock, Identity, Live, Server, Settings as ServerSettings};
use lydian_hash::sha256;
use lydian_index::ScriptHash;
use lydian_primitives::{BlockHash, OutPoint, Transaction, Txid, to_hex};
use lydian_query::{
    CallError, Calls, FeeRow, NodeChain, NodeIndex, NodePool, Pool, PoolFees, PoolScript, PoolTotals, PoolTouched,
    Query, QueryError, ScriptIndex, Settings, Source,
};
use lydian_serve::{Event, Log};
use lydian_stdx::Current;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// The mempool of a node, which says nothing of what it touched while it is told so.
#[derive(Debug)]
struct Late {
    own: NodePool,
    is_late: AtomicBool,
}

impl Pool for Late {
    fn of_script(&self, script: &ScriptHash) -> Result<PoolScript, QueryError> {
        self.own.of_script(script)
    }

    fn spenders(&self, outpoints: &[OutPoint]) -> Vec<Option<(Txid, bool)>> {
        self.own.spenders(outpoints)
    }

    fn transaction(&self, txid: &Txid) -> Option<(Arc<Transaction>, bool)> {
        self.own.transaction(txid)
    }

    fn fees(&self) -> PoolFees {
        self.own.fees()
    }

    fn estimate(&self, target: u32, is_conservative: bool) -> Option<i64> {
        self.own.estimate(target, is_conservative)
    }

    fn totals(&self) -> PoolTotals {
        self.own.totals()
    }

    fn txids(&self) -> Vec<Txid> {
        self.own.txids()
    }

    fn chunks(&self) -> Vec<(i64, i64)> {
        self.own.chunks()
    }

    fn recent(&self, count: usize) -> Vec<FeeRow> {
        self.own.recent(count)
    }

    fn take_touched(&self) -> Result<PoolTouched, QueryError> {
        match self.is_late.load(Ordering::SeqCst) {
            true => Err(QueryError::Moving),
            false => self.own.take_touched(),
        }
    }

    fn wait(&self, timeout: Duration) {
        self.own.wait(timeout);
    }

    fn wait_for(&self, tip: &BlockHash) {
        self.own.wait_for(tip);
    }
}

#[derive(Debug)]
struct Nothing;

impl Calls for Nothing {
    fn call(&self, method: &str, _: &str) -> Result<String, CallError> {
        Err(CallError { code: -32_601, message: method.to_owned() })
    }
}

impl Log for Nothing {
    fn event(&self, _: &Event<'_>) {}
}

impl Clock for Nothing {
    fn now(&self) -> Duration {
        Duration::ZERO
    }

    fn thread_cpu(&self) -> Duration {
        Duration::ZERO
    }
}

struct Wallet {
    stream: BufReader<TcpStream>,
    next: u64,
    /// The script that it watches, and the status that it knows.
    script: String,
    status: Value,
}

impl Wallet {
    fn open(address: SocketAddr) -> Wallet {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        let mut wallet = Wallet { stream: BufReader::new(stream), next: 0, script: String::new(), status: Value::Null };
        wallet.ask("server.version", &json!(["test", "1.4"]));
        wallet
    }

    /// Reads a line; a notification is noted, and `None`.
    fn line(&mut self) -> Option<Value> {
        let mut line = String::new();
        self.stream.read_line(&mut line).unwrap();
        let mut value: Value = serde_json::from_str(&line).unwrap();
        if value["method"] == "blockchain.scripthash.subscribe" {
            // One of a script that it has left may be on its way.
            if value["params"][0] == self.script.as_str() {
                self.status = value["params"][1].take();
            }
            return None;
        }
        Some(value)
    }

    fn ask(&mut self, method: &str, params: &Value) -> Value {
        self.next += 1;
        let line = format!("{}\n", json!({"id": self.next, "method": method, "params": params}));
        self.stream.get_mut().write_all(line.as_bytes()).unwrap();
        loop {
            if let Some(mut answer) = self.line() {
                assert_eq!(answer["id"], self.next, "{answer}");
                return answer["result"].take();
            }
        }
    }

    fn subscribe(&mut self, script: &str) {
        script.clone_into(&mut self.script);
        self.status = self.ask("blockchain.scripthash.subscribe", &json!([script]));
    }

    /// The status of the history.
    fn of_history(&mut self, script: &str) -> Value {
        let history = self.ask("blockchain.scripthash.get_history", &json!([script]));
        let entry = |entry: &Value| format!("{}:{}:", entry["tx_hash"].as_str().unwrap(), entry["height"]);
        let text: String = history.as_array().unwrap().iter().map(entry).collect();
        if text.is_empty() { Value::Null } else { json!(to_hex(&sha256(text.as_bytes()))) }
    }

    fn wait_for(&mut self, status: &Value) {
        while self.status != *status {
            assert_eq!(self.line(), None);
        }
    }
}

#[test]
fn a_subscription_is_not_older_than_a_history() {
    let mut world = World::new(71, FULL);
    let shape = Shape { txs: 2, fresh_percent: 30, fan_percent: 0, has_witness: false };
    let mut maker = grow(&mut world, 71, shape, 106);
    let (engine, mempool, reader) = world.parts();
    let chain = Arc::new(NodeChain::new(&engine));
    let pool = Arc::new(Late { own: NodePool::new(&mempool, &engine), is_late: AtomicBool::new(false) });
    let index = Arc::new(NodeIndex::new(reader, Arc::clone(&chain) as Arc<_>, &engine)) as Arc<dyn ScriptIndex>;
    let query = Query::new(Settings { chain, index: Ok(index), pool: Arc::clone(&pool) as Arc<dyn Pool> });
    let query = Arc::new(query);
    let source = Source { query: Arc::clone(&query), prompt: query, calls: Arc::new(Nothing), is_remote: false };
    let identity = Identity { name: "test".to_owned(), genesis: world.params.genesis_hash, chain: world.params.chain };
    let settings = ServerSettings {
        addresses: vec![SocketAddr::from((Ipv4Addr::LOCALHOST, 0))],
        tls: None,
        allowed: Vec::new(),
        proxies: Vec::new(),
        identity,
        live: Current::new(Live::default()),
        clock: Arc::new(Nothing),
        origin: None,
    };
    let server = Server::start(source, settings, Arc::new(Nothing), |_| {}).unwrap();
    let address = server.addresses()[0];
    let mut submit = || loop {
        let Some(tx) = maker.unconfirmed(&world.chain, &world.pool) else { continue };
        let script = ScriptHash::of(tx.view().output(0).script_pubkey);
        if world.submit(tx) {
            return script;
        }
    };
    let mut wallets: Vec<Wallet> = (0..3).map(|_| Wallet::open(address)).collect();
    for round in 0..4 {
        // Watched before it is used in the mempool.
        let mut written = submit().0;
        written.reverse();
        let script = to_hex(&written);
        wallets[0].subscribe(&script);
        let first = wallets[0].status.clone();
        assert_ne!(first, Value::Null);
        pool.is_late.store(true, Ordering::SeqCst);
        let mut others = 0;
        while wallets[1].of_history(&script) == first {
            submit();
            others += 1;
            assert!(others < 1_000, "round {round}: no transaction pays to the script");
        }
        // The notifier does not know it, and the first wallet does not.
        let now = wallets[1].of_history(&script);
        wallets[1].subscribe(&script);
        assert_eq!(wallets[1].status, now);
        wallets[2].subscribe(&script);
        assert_eq!(wallets[2].status, now);
        // Nor does a second subscription of the same session.
        wallets[1].subscribe(&script);
        assert_eq!(wallets[1].status, now);
        assert_eq!(wallets[0].status, first);
        pool.is_late.store(false, Ordering::SeqCst);
        for wallet in &mut wallets {
            wallet.wait_for(&now);
            assert_eq!(wallet.of_history(&script), now);
            assert_eq!(wallet.status, now);
            wallet.ask("blockchain.scripthash.unsubscribe", &json!([script]));
        }
    }
}
