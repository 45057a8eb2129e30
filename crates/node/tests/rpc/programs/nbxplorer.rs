//! What NBXplorer asks, the block explorer of BTCPay Server: as a peer on the white list it follows headers, blocks
//! and the mempool, and by RPC it asks about them. NBXplorer itself needs .NET and Postgres; the calls and messages
//! here are those of its sources.
//!
//! They were read in `NBXplorer/Backend/Indexer.cs` (commit 0d0af3b7) and `Controllers/MainController.cs`, in
//! `RPCClientExtensions.cs` and `Broadcaster.cs`, and for its start in `ScanRPCCapabilitiesAsync` of NBitcoin. As a
//! peer it sends `version`, `verack`, `sendheaders`, `getheaders`, `getdata` and `pong`, and nothing else: no
//! `mempool`, no compact blocks, no `wtxidrelay`, so that transactions are announced by txid.

use super::live_on;
use crate::chain::Pair;
use crate::compare::Comparison;
use crate::http::send;
use crate::server::Server;
use lydian_consensus::{Chain, Params};
use lydian_oracle::{build, free_port, or_skip};
use lydian_primitives::{BlockHash, RawBlock, Transaction, Txid, to_hex};
use lydian_wire::message::{PROTOCOL_VERSION, Version, WTXID_RELAY_VERSION};
use lydian_wire::{Endpoint, Inv, InvType, Locator, Message, Services, Transport};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::time::Duration;

/// Blocks that are requested at a time.
const BLOCKS_AT_ONCE: usize = 10;

/// Longer than a node takes for one message on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// Its calls to a node.
struct Rpc {
    port: u16,
    authorization: String,
}

impl Rpc {
    fn of(server: &Server) -> Rpc {
        Rpc { port: server.port, authorization: server.authorization() }
    }

    fn post(&self, body: &Value) -> Value {
        let body = body.to_string();
        let (authorization, length) = (&self.authorization, body.len());
        let head = format!(
            "POST / HTTP/1.1\r\nHost: x\r\nAuthorization: Basic {authorization}\r\nContent-Length: {length}\r\n\r\n"
        );
        serde_json::from_str(&send(self.port, [head, body].concat().as_bytes()).unwrap().body).unwrap()
    }

    /// As NBitcoin writes it.
    fn request(id: usize, (method, params): &(&str, Value)) -> Value {
        json!({"jsonrpc": "1.0", "id": id, "method": method, "params": params})
    }

    /// The result, or the error.
    fn answer(&self, method: &str, params: Value) -> Value {
        let answer = self.post(&Rpc::request(0, &(method, params)));
        if answer["error"].is_null() { answer["result"].clone() } else { answer["error"].clone() }
    }

    /// The answers to calls in one batch.
    fn batch(&self, calls: &[(&str, Value)]) -> Vec<Value> {
        let calls = calls.iter().enumerate().map(|(id, call)| Rpc::request(id, call)).collect();
        self.post(&Value::Array(calls)).as_array().unwrap().clone()
    }
}

/// Two addresses that are valid on regtest, of version 0 and 1.
const ADDRESSES: [&str; 2] = [
    "bcrt1qqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqdku202",
    "bcrt1p0xlxvlhemja6c4dqv22uapctqupfhlxm9h8z3k2e72q4k9hcz7vqc8gma6",
];

/// The peer's side of a connection.
struct Node {
    stream: TcpStream,
    transport: Transport,
    services: Services,
}

impl Node {
    fn connect(port: u16, user_agent: &str) -> Node {
        let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let transport = Transport::v1(Params::new(Chain::Regtest).magic);
        let mut node = Node { stream, transport, services: Services::NONE };
        node.send(&Message::Version(Box::new(Version {
            version: WTXID_RELAY_VERSION - 1,
            services: Services::NONE,
            time: 1_750_000_000,
            receiver_services: Services::NONE,
            receiver: Endpoint::default(),
            nonce: u64::from(port),
            user_agent: user_agent.as_bytes().to_vec(),
            start_height: 0,
            relay: true,
        })));
        let mut seen = (false, false);
        while seen != (true, true) {
            match node.receive() {
                Message::Version(version) => {
                    assert_eq!(version.version, PROTOCOL_VERSION);
                    node.services = version.services;
                    node.send(&Message::Verack);
                    seen.0 = true;
                }
                Message::Verack => seen.1 = true,
                _ => {}
            }
        }
        node.send(&Message::SendHeaders);
        node
    }

    fn send(&mut self, message: &Message) {
        self.transport.send_message(message);
        self.stream.write_all(&self.transport.take_output()).unwrap();
    }

    /// The next message; pings are answered.
    fn receive(&mut self) -> Message {
        loop {
            while let Some(received) = self.transport.next_message() {
                match Message::decode_owned(&received.command, received.payload).unwrap() {
                    Message::Ping(nonce) => self.send(&Message::Pong(nonce)),
                    message => return message,
                }
            }
            let mut bytes = vec![0; 1 << 16];
            let size = self.stream.read(&mut bytes).unwrap();
            assert!(size > 0, "the node has disconnected");
            self.transport.receive(&bytes[..size]).unwrap();
        }
    }

    /// The kind for a block or a transaction with its witnesses.
    fn with_witness(&self, kind: InvType) -> InvType {
        assert!(self.services.contains(Services::WITNESS));
        InvType(kind.0 | 1 << 30)
    }
}

/// The program on one node.
struct Explorer {
    node: Node,
    user_agent: String,
    /// The blocks of its chain from height 0 on.
    chain: Vec<BlockHash>,
    /// Transactions that it has, from the mempool or from blocks.
    known: BTreeSet<Txid>,
    /// Announced blocks.
    announced: BTreeSet<BlockHash>,
}

fn hash(value: &Value) -> BlockHash {
    value.as_str().unwrap().parse().unwrap()
}

/// These fields of an answer.
fn fields(answer: &Value, names: &[&str]) -> String {
    names.iter().map(|name| format!("{name} {}", answer[*name])).collect::<Vec<_>>().join(", ")
}

impl Explorer {
    /// Connects, as at its start; returns what it learned by that.
    fn start(rpc: &Rpc, port: u16) -> (Explorer, Vec<String>) {
        let user_agent = format!("NBXplorer-{port}");
        let node = Node::connect(port, &user_agent);
        let genesis = hash(&rpc.answer("getblockhash", json!([0])));
        let explorer =
            Explorer { node, user_agent, chain: vec![genesis], known: BTreeSet::new(), announced: BTreeSet::new() };
        let mut lines = explorer.about_node(rpc);
        let probes = ["scantxoutset", "signrawtransactionwithkey", "testmempoolaccept", "estimatesmartfee"];
        let mut calls: Vec<(&str, Value)> = probes.iter().map(|method| (*method, json!(["random"]))).collect();
        calls.push(("generatetoaddress", json!(["random"])));
        calls.extend(ADDRESSES.map(|address| ("validateaddress", json!([address]))));
        for ((method, _), answer) in calls.iter().zip(rpc.batch(&calls)) {
            // The words of a wrong number of arguments are the help.
            lines.push(format!("{method}: {} {}", answer["error"]["code"], answer["result"]["isvalid"]));
        }
        lines.push(format!("txindex: {}", rpc.answer("getindexinfo", json!(["txindex"]))));
        lines.push(format!("createwallet: {}", rpc.answer("createwallet", json!([""]))["code"]));
        let scanned = json!(["start", [{"desc": "raw(51)"}, {"desc": format!("addr({})", ADDRESSES[0])}]]);
        let scan = rpc.answer("scantxoutset", scanned);
        lines.push(format!("scan: {}", fields(&scan, &["success", "txouts", "height", "bestblock", "total_amount"])));
        (explorer, lines)
    }

    /// Status of the node, and of the connection to it.
    fn about_node(&self, rpc: &Rpc) -> Vec<String> {
        let result = |method| rpc.answer(method, json!([]));
        let peers = result("getpeerinfo");
        let peer = peers.as_array().unwrap().iter().find(|peer| peer["subver"] == self.user_agent.as_str()).unwrap();
        let permissions = peer["permissions"].as_array().unwrap();
        assert!(permissions.contains(&json!("noban")), "it is on the white list: {peer}");
        let chain = ["headers", "blocks", "mediantime", "initialblockdownload", "bestblockhash"];
        let pool = ["size", "bytes", "mempoolminfee", "minrelaytxfee", "incrementalrelayfee"];
        let mut lines = vec![
            format!("chain: {}", fields(&result("getblockchaininfo"), &chain)),
            format!(
                "network: {}",
                fields(&result("getnetworkinfo"), &["relayfee", "incrementalfee", "localaddresses"])
            ),
            format!("peer: {}", fields(peer, &["permissions", "inbound", "version", "relaytxes", "synced_headers"])),
            format!("pool: {}", fields(&result("getmempoolinfo"), &pool)),
        ];
        for target in [1, 6, 25] {
            let estimate = rpc.answer("estimatesmartfee", json!([target, "CONSERVATIVE"]));
            lines.push(format!("fee for {target}: {estimate}"));
        }
        lines
    }

    /// The blocks of its chain, from the tip on in growing distances.
    fn locator(&self) -> Locator {
        let tip = self.chain.len() - 1;
        let distances = (0..=20).chain((1..).map(|power| 20 << power).take_while(|distance| *distance <= tip));
        let hashes = distances.filter_map(|distance| Some(self.chain[tip.checked_sub(distance)?]));
        Locator { hashes: hashes.collect(), stop: BlockHash([0; 32]) }
    }

    /// Takes note of a message that was not asked for.
    fn take(&mut self, message: Message, txs: &mut Vec<Vec<u8>>) {
        match message {
            Message::Headers(headers) => self.announced.extend(headers.iter().map(|header| header.hash())),
            Message::Inv(items) => {
                let blocks = items.iter().filter(|item| item.kind.is_gen_block());
                self.announced.extend(blocks.map(|item| BlockHash(item.hash)));
                assert!(items.iter().all(|item| item.kind != InvType::WTX), "transactions are named by txid");
                let txs = items.into_iter().filter(|item| item.kind == InvType::TX);
                let kind = self.node.with_witness(InvType::TX);
                let wanted: Vec<Inv> = txs.map(|item| Inv { kind, ..item }).collect();
                if !wanted.is_empty() {
                    self.node.send(&Message::GetData(wanted));
                }
            }
            Message::Tx(bytes) => txs.push(bytes),
            _ => {}
        }
    }

    /// Follows the chain to the node's tip. Returns a line for each new block.
    fn follow(&mut self, rpc: &Rpc, is_first: bool, txs: &mut Vec<Vec<u8>>) -> Vec<String> {
        let tip = hash(&rpc.answer("getbestblockhash", json!([])));
        // A new tip is announced without being asked for.
        while !is_first && self.chain.last() != Some(&tip) && !self.announced.contains(&tip) {
            let message = self.node.receive();
            self.take(message, txs);
        }
        let mut lines = Vec::new();
        while self.chain.last() != Some(&tip) {
            let locator = self.locator();
            self.node.send(&Message::GetHeaders(locator));
            let headers = loop {
                match self.node.receive() {
                    Message::Headers(headers) => break headers,
                    other => self.take(other, txs),
                }
            };
            // An announcement may come first; it is followed as well.
            let hashes: Vec<BlockHash> = headers.iter().map(|header| header.hash()).collect();
            for hashes in hashes.chunks(BLOCKS_AT_ONCE) {
                lines.extend(self.fetch(rpc, hashes, txs));
            }
        }
        lines
    }

    /// Asks RPC where blocks are, and the peer for the blocks themselves.
    fn fetch(&mut self, rpc: &Rpc, hashes: &[BlockHash], txs: &mut Vec<Vec<u8>>) -> Vec<String> {
        let calls: Vec<(&str, Value)> =
            hashes.iter().map(|hash| ("getblockheader", json!([hash.to_string()]))).collect();
        let places = rpc.batch(&calls);
        let kind = self.node.with_witness(InvType::BLOCK);
        self.node.send(&Message::GetData(hashes.iter().map(|hash| Inv::block(kind, *hash)).collect()));
        let mut lines = Vec::new();
        for (hash, place) in hashes.iter().zip(places) {
            let bytes = loop {
                match self.node.receive() {
                    Message::Block(bytes) => break bytes,
                    other => self.take(other, txs),
                }
            };
            let stored = rpc.answer("getblock", json!([hash.to_string(), 0]));
            assert_eq!(stored, to_hex(&bytes).as_str(), "the block has its witnesses");
            let block = RawBlock::new(bytes).parse().unwrap();
            assert_eq!(block.hash(), *hash, "blocks come in the order of the request");
            let height = usize::try_from(place["result"]["height"].as_u64().unwrap()).unwrap();
            let parent = self.chain.get(height - 1);
            assert_eq!(parent, Some(&block.header().prev_block), "at {height}");
            self.chain.truncate(height);
            self.chain.push(*hash);
            self.known.extend(block.txs().map(|tx| tx.txid()));
            let place =
                fields(&place["result"], &["height", "confirmations", "previousblockhash", "time", "merkleroot"]);
            let count = block.tx_count();
            lines.push(format!("block {hash}: {place}, {count} transactions"));
            if let Some(tx) = block.txs().nth(1) {
                let again = rpc.answer("sendrawtransaction", json!([to_hex(tx.bytes())]));
                lines.push(format!("{} again: {again}", tx.txid()));
            }
        }
        lines
    }

    /// Receives the transactions of the mempool that it does not have. Returns a line for each.
    fn take_pool(&mut self, rpc: &Rpc, mut txs: Vec<Vec<u8>>) -> Vec<String> {
        let pool = rpc.answer("getrawmempool", json!([]));
        let pool: BTreeSet<Txid> =
            pool.as_array().unwrap().iter().map(|txid| txid.as_str().unwrap().parse().unwrap()).collect();
        let mut missing: BTreeSet<Txid> = pool.difference(&self.known).copied().collect();
        let mut lines = Vec::new();
        loop {
            for bytes in txs.drain(..) {
                let tx = Transaction::parse(bytes.clone()).unwrap();
                let txid = tx.view().txid();
                self.known.insert(txid);
                if missing.remove(&txid) {
                    lines.push(format!("tx {txid} {}", to_hex(&bytes)));
                }
            }
            if missing.is_empty() {
                break;
            }
            let message = self.node.receive();
            self.take(message, &mut txs);
        }
        // Transactions are announced in any order.
        lines.sort_unstable();
        lines.extend(pool.iter().flat_map(|txid| about_tx(rpc, *txid)));
        lines
    }
}

/// What it asks about a transaction of the mempool: when a wallet looks at it, and when it is sent again.
fn about_tx(rpc: &Rpc, txid: Txid) -> Vec<String> {
    let txid = txid.to_string();
    let tx = rpc.answer("getrawtransaction", json!([txid, true]));
    let entry = rpc.answer("getmempoolentry", json!([txid]));
    let again = rpc.answer("testmempoolaccept", json!([[tx["hex"]]]));
    let outputs = tx["vout"].as_array().unwrap().len();
    let calls: Vec<(&str, Value)> = (0..outputs).map(|vout| ("gettxout", json!([txid, vout, true]))).collect();
    let unspent: Vec<String> = rpc.batch(&calls).iter().map(|answer| answer["result"].to_string()).collect();
    let psbt = rpc.answer("createpsbt", json!([[{"txid": txid, "vout": 0}], {ADDRESSES[0]: 0.01}]));
    let updated = rpc.answer("utxoupdatepsbt", json!([psbt]));
    vec![
        format!("{txid}: {}", fields(&tx, &["hex", "blockhash", "confirmations"])),
        format!("{txid}: {}", fields(&entry, &["vsize", "weight", "time", "fees", "depends", "spentby"])),
        format!("{txid} again: {again}"),
        format!("{txid} unspent: {}", unspent.join(" ")),
        format!("{txid} spent by a PSBT: {updated}"),
    ]
}

/// The proof of the tip's first transaction, and what it proves.
fn proof(rpc: &Rpc) -> String {
    let tip = rpc.answer("getbestblockhash", json!([]));
    let coinbase = &rpc.answer("getblock", json!([tip]))["tx"][0];
    let proof = rpc.answer("gettxoutproof", json!([[coinbase], tip]));
    format!("proof {proof} of {}", rpc.answer("verifytxoutproof", json!([proof])))
}

#[test]
fn nbxplorer_sees_the_same() {
    let test = "nbxplorer_sees_the_same";
    let Some(built) = or_skip(test, build::locate()) else { return };
    let [ours, cores] = [(); 2].map(|()| free_port().unwrap());
    let own = |port: u16| ["-listen=1".to_owned(), format!("-bind=127.0.0.1:{port}"), "-discover=0".to_owned()];
    let start = |port: u16, make: &dyn Fn(&[&str]) -> Server| {
        let own = own(port);
        let own: Vec<&str> = own.iter().map(String::as_str).collect();
        make(&[super::OPTIONS, &["-whitelist=127.0.0.1"], &own].concat())
    };
    let pair = Pair {
        lydian: start(ours, &|options| Server::lydian(test, options)),
        core: start(cores, &|options| Server::core(&built.bitcoind, test, options)),
        built,
        comparison: Comparison::default(),
    };
    let port_of_lydian = pair.lydian.port;
    live_on(pair, |server| {
        let (rpc, port) = (Rpc::of(server), if server.port == port_of_lydian { ours } else { cores });
        let mut explorer = None;
        Box::new(move || {
            let is_first = explorer.is_none();
            let mut lines = Vec::new();
            let explorer = explorer.get_or_insert_with(|| {
                let (explorer, first) = Explorer::start(&rpc, port);
                lines = first;
                explorer
            });
            let mut txs = Vec::new();
            lines.extend(explorer.follow(&rpc, is_first, &mut txs));
            lines.extend(explorer.take_pool(&rpc, txs));
            lines.extend(explorer.about_node(&rpc));
            lines.push(proof(&rpc));
            lines
        })
    });
}
