//! What the tests of the Electrum server share: [`Wallet`], a client that speaks the protocol, and [`Model`], the right
//! answers, computed from nothing but answers of Core's RPC.

use crate::server::Server;
use lydian_hash::sha256;
use lydian_primitives::{Txid, hex, to_hex};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::time::Duration;

/// A wallet's connection.
pub(crate) struct Wallet {
    pub(crate) stream: BufReader<TcpStream>,
    pub(crate) version: String,
    pub(crate) next: u64,
    /// Notifications that came before answers.
    pub(crate) notices: Vec<Value>,
}

impl Wallet {
    pub(crate) fn connect(port: u16, version: &str) -> Wallet {
        let mut wallet = Wallet::open(port);
        let agreed = wallet.result("server.version", &json!(["test", [version, version]]));
        assert_eq!(agreed[1], version);
        wallet.version = version.to_owned();
        wallet
    }

    pub(crate) fn open(port: u16) -> Wallet {
        let stream = (0..2_400).find_map(|_| {
            let stream = TcpStream::connect(("127.0.0.1", port)).ok();
            if stream.is_none() {
                std::thread::sleep(Duration::from_millis(25));
            }
            stream
        });
        let stream = stream.unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        stream.set_nodelay(true).unwrap();
        Wallet { stream: BufReader::new(stream), version: "1.4".to_owned(), next: 0, notices: Vec::new() }
    }

    pub(crate) fn send(&mut self, line: &[u8]) {
        // In one piece: the server may end the connection after the first.
        self.stream.get_mut().write_all(&[line, b"\n"].concat()).unwrap();
    }

    /// The next line; null at the end of the stream.
    pub(crate) fn line(&mut self) -> Value {
        let mut line = String::new();
        match self.stream.read_line(&mut line).unwrap_or(0) {
            0 => Value::Null,
            _ => serde_json::from_str(&line).unwrap(),
        }
    }

    pub(crate) fn call(&mut self, method: &str, params: &Value) -> Value {
        self.next += 1;
        let id = self.next;
        self.send(json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string().as_bytes());
        loop {
            let line = self.line();
            assert!(!line.is_null(), "the server ended the connection, or does not answer {method}");
            match line.get("id") {
                Some(found) => {
                    assert_eq!(*found, id);
                    return line;
                }
                None => self.notices.push(line),
            }
        }
    }

    pub(crate) fn result(&mut self, method: &str, params: &Value) -> Value {
        let answer = self.call(method, params);
        assert!(answer.get("error").is_none(), "{method} {params}: {answer}");
        answer["result"].clone()
    }

    pub(crate) fn error(&mut self, method: &str, params: &Value) -> (i64, String) {
        let answer = self.call(method, params);
        let error = &answer["error"];
        let code = error["code"].as_i64().unwrap_or_else(|| panic!("{method} {params}: {answer}"));
        (code, error["message"].as_str().unwrap().to_owned())
    }

    pub(crate) fn is_new(&self) -> bool {
        self.version == "1.7"
    }

    /// A question about a script, as this version asks it.
    pub(crate) fn of_script(&mut self, question: &str, script: &[u8]) -> Value {
        if self.is_new() {
            return self.result(&format!("blockchain.scriptpubkey.{question}"), &json!([to_hex(script)]));
        }
        self.result(&format!("blockchain.scripthash.{question}"), &json!([scripthash(script)]))
    }

    /// The list in an answer.
    pub(crate) fn list(&mut self, question: &str, script: &[u8]) -> Value {
        let answer = self.of_script(question, script);
        let name = if question == "listunspent" { "utxos" } else { "history" };
        if self.is_new() { answer[name].clone() } else { answer }
    }
}

pub(crate) fn scripthash(script: &[u8]) -> String {
    Txid(sha256(script)).to_string()
}

/// What Core knows: blocks with their transactions, and the mempool.
pub(crate) struct Model {
    pub(crate) headers: Vec<String>,
    pub(crate) hashes: Vec<String>,
    pub(crate) roots: Vec<String>,
    /// Txids of each block.
    pub(crate) blocks: Vec<Vec<String>>,
    pub(crate) scripts: BTreeMap<String, Script>,
}

/// What the chain and the mempool have of a script.
#[derive(Clone, Default)]
pub(crate) struct Script {
    pub(crate) script: Vec<u8>,
    pub(crate) confirmed: Vec<(u64, String)>,
    /// Height 0 or -1, txid, fee.
    pub(crate) pool: BTreeSet<(i64, String, i64)>,
    pub(crate) coins: Vec<(u64, String, u64, i64)>,
    pub(crate) balance: (i64, i64),
}

pub(crate) fn satoshis(value: &Value) -> i64 {
    // The shortest decimal number that is this one, with at most eight digits behind the point.
    let (whole, rest) = format!("{:.8}", value.as_f64().unwrap())
        .split_once('.')
        .map(|(whole, rest)| (whole.to_owned(), rest.to_owned()))
        .unwrap();
    whole.parse::<i64>().unwrap() * 100_000_000 + rest.parse::<i64>().unwrap()
}

impl Model {
    pub(crate) fn of(core: &Server) -> Model {
        let mut model = Model {
            headers: Vec::new(),
            hashes: Vec::new(),
            roots: Vec::new(),
            blocks: Vec::new(),
            scripts: BTreeMap::new(),
        };
        // Each output by its outpoint: script, value, height; and whether it is spent.
        let mut outputs: BTreeMap<(String, u64), (String, i64, u64)> = BTreeMap::new();
        let mut order: Vec<(String, u64)> = Vec::new();
        let tip = core.result("getblockcount", "[]").as_u64().unwrap();
        for height in 0..=tip {
            let hash = core.result("getblockhash", &format!("[{height}]"));
            model.headers.push(text(&core.result("getblockheader", &format!("[{hash},false]"))));
            let block = core.result("getblock", &format!("[{hash},2]"));
            model.hashes.push(text(&hash));
            model.roots.push(text(&block["merkleroot"]));
            let txs = block["tx"].as_array().unwrap();
            model.blocks.push(txs.iter().map(|tx| text(&tx["txid"])).collect());
            if height == 0 {
                continue;
            }
            for tx in txs {
                let txid = text(&tx["txid"]);
                for input in inputs(tx) {
                    let (script, ..) = outputs.remove(&input).unwrap();
                    model.touch(&script, height, &txid);
                }
                for (vout, script, value) in paid(tx) {
                    let hash = scripthash(&script);
                    model.scripts.entry(hash.clone()).or_default().script = script;
                    model.touch(&hash, height, &txid);
                    outputs.insert((txid.clone(), vout), (hash, value, height));
                    order.push((txid.clone(), vout));
                }
            }
        }
        let pool = Model::pool(core);
        let in_pool: BTreeSet<String> = pool.iter().map(|(tx, ..)| text(&tx["txid"])).collect();
        let mut pooled: BTreeMap<(String, u64), (String, i64, i64)> = BTreeMap::new();
        for (tx, ..) in &pool {
            for (vout, script, value) in paid(tx) {
                let height = if inputs(tx).iter().any(|(txid, _)| in_pool.contains(txid)) { -1 } else { 0 };
                let hash = scripthash(&script);
                model.scripts.entry(hash.clone()).or_default().script = script;
                pooled.insert((text(&tx["txid"]), vout), (hash, value, height));
            }
        }
        let mut spent = BTreeSet::new();
        for (tx, fee) in &pool {
            let txid = text(&tx["txid"]);
            let is_chained = inputs(tx).iter().any(|(txid, _)| in_pool.contains(txid));
            let entry = (if is_chained { -1 } else { 0 }, txid.clone(), *fee);
            for input in inputs(tx) {
                let (script, value) = match outputs.get(&input) {
                    Some((script, value, _)) => (script.clone(), *value),
                    None => (pooled[&input].0.clone(), pooled[&input].1),
                };
                let of = model.scripts.get_mut(&script).unwrap();
                of.pool.insert(entry.clone());
                of.balance.1 -= value;
                spent.insert(input);
            }
            for (vout, ..) in paid(tx) {
                let (script, value, _) = pooled[&(txid.clone(), vout)].clone();
                let of = model.scripts.get_mut(&script).unwrap();
                of.pool.insert(entry.clone());
                of.balance.1 += value;
            }
        }
        for outpoint in order {
            let Some((script, value, height)) = outputs.get(&outpoint) else { continue };
            let of = model.scripts.get_mut(script).unwrap();
            of.balance.0 += value;
            if !spent.contains(&outpoint) {
                of.coins.push((*height, outpoint.0, outpoint.1, *value));
            }
        }
        let mut left: Vec<_> = pooled.into_iter().filter(|(outpoint, _)| !spent.contains(outpoint)).collect();
        left.sort_by_key(|((txid, vout), (_, _, height))| (-height, txid.clone(), *vout));
        for ((txid, vout), (script, value, _)) in left {
            model.scripts.get_mut(&script).unwrap().coins.push((0, txid, vout, value));
        }
        model
    }

    /// The mempool's transactions with their fees.
    pub(crate) fn pool(core: &Server) -> Vec<(Value, i64)> {
        let pool = core.result("getrawmempool", "[true]");
        let txs = pool.as_object().unwrap().iter();
        txs.map(|(txid, entry)| {
            (core.result("getrawtransaction", &format!("[\"{txid}\",1]")), satoshis(&entry["fees"]["base"]))
        })
        .collect()
    }

    pub(crate) fn touch(&mut self, script: &str, height: u64, txid: &str) {
        let script = self.scripts.get_mut(script).unwrap();
        if script.confirmed.last().is_none_or(|(_, last)| last != txid) {
            script.confirmed.push((height, txid.to_owned()));
        }
    }

    pub(crate) fn statuses(&self) -> BTreeMap<String, Value> {
        self.scripts.iter().map(|(hash, script)| (hash.clone(), script.status())).collect()
    }
}

pub(crate) fn text(value: &Value) -> String {
    value.as_str().unwrap().to_owned()
}

pub(crate) fn inputs(tx: &Value) -> Vec<(String, u64)> {
    let inputs = tx["vin"].as_array().unwrap().iter().filter(|input| input.get("txid").is_some());
    inputs.map(|input| (text(&input["txid"]), input["vout"].as_u64().unwrap())).collect()
}

/// The outputs that can be spent.
pub(crate) fn paid(tx: &Value) -> Vec<(u64, Vec<u8>, i64)> {
    let outputs = tx["vout"].as_array().unwrap().iter().map(|output| {
        let script = hex(output["scriptPubKey"]["hex"].as_str().unwrap()).unwrap();
        (output["n"].as_u64().unwrap(), script, satoshis(&output["value"]))
    });
    outputs.filter(|(_, script, _)| script.first() != Some(&0x6a) && script.len() <= 10_000).collect()
}

impl Script {
    pub(crate) fn pool(&self) -> Vec<Value> {
        let mut pool: Vec<_> = self.pool.iter().collect();
        pool.sort_by_key(|(height, txid, _)| (-height, txid.clone()));
        pool.into_iter().map(|(height, txid, fee)| json!({"fee": fee, "height": height, "tx_hash": txid})).collect()
    }

    pub(crate) fn history(&self) -> Vec<Value> {
        let confirmed = self.confirmed.iter().map(|(height, txid)| json!({"height": height, "tx_hash": txid}));
        confirmed.chain(self.pool()).collect()
    }

    pub(crate) fn status(&self) -> Value {
        let entry = |entry: &Value| format!("{}:{}:", entry["tx_hash"].as_str().unwrap(), entry["height"]);
        let all: String = self.history().iter().map(entry).collect();
        if all.is_empty() { Value::Null } else { to_hex(&sha256(all.as_bytes())).into() }
    }

    pub(crate) fn coins(&self) -> Vec<Value> {
        let coin = |(height, txid, vout, value): &(u64, String, u64, i64)| json!({"height": height, "tx_hash": txid, "tx_pos": vout, "value": value});
        self.coins.iter().map(coin).collect()
    }
}

/// Compares every answer about a script with the model.
pub(crate) fn check_script(wallet: &mut Wallet, script: &Script) {
    let of = &script.script;
    let label = scripthash(of);
    assert_eq!(wallet.list("get_history", of), Value::from(script.history()), "history of {label}");
    assert_eq!(wallet.list("listunspent", of), Value::from(script.coins()), "coins of {label}");
    assert_eq!(wallet.list("get_mempool", of), Value::from(script.pool()), "mempool of {label}");
    let (confirmed, unconfirmed) = script.balance;
    let balance = json!({"confirmed": confirmed, "unconfirmed": unconfirmed});
    assert_eq!(wallet.of_script("get_balance", of), balance, "balance of {label}");
    assert_eq!(wallet.of_script("subscribe", of), script.status(), "status of {label}");
}
