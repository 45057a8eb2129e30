//! Real answers of every method, compared with their descriptions by the node itself (`-rpcdoccheck`): each field that
//! occurs is described with its type, and each field that is not optional occurs. An answer that differs is an error.

use crate::electrum_model::Wallet;
use crate::locate::{read, testdata};
use crate::server::Server;
use lydian_rpc::table::METHODS;
use serde_json::Value;
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

/// A node, and the methods that it has answered.
struct Described {
    node: Server,
    answered: RefCell<BTreeSet<String>>,
}

impl Described {
    fn ask(&self, method: &str, params: &str) -> Value {
        let result = self.node.result(method, params);
        self.answered.borrow_mut().insert(method.to_owned());
        result
    }

    fn ask_all(&self, calls: &[(&str, &str)]) {
        for (method, params) in calls {
            self.ask(method, params);
        }
    }
}

/// Every call fails.
const NEVER_ANSWERED: &[&str] = &["generate"];

#[test]
fn every_answer_is_as_described() {
    let port = lydian_oracle::free_port().unwrap();
    let bind = format!("-bind=127.0.0.1:{port}");
    let options = [
        "-listen=1",
        &bind,
        "-prune=1",
        "-fastprune",
        "-vbparams=testdummy:0:9999999999",
        "-acceptnonstdtxn=1",
        "-blockfilterindex",
    ];
    let node = Server::lydian("described", &options);
    let peer = Server::lydian("described-peer", &[]);
    let mut described = Described { node, answered: RefCell::default() };
    chain(&described);
    mempool(&described);
    network(&described, &peer, port);
    others(&described);
    described.ask("stop", "[]");
    assert_eq!(described.node.wait(), Some(0));
    let mut answered = described.answered.into_inner();
    answered.extend(electrum());
    let names = METHODS.iter().map(|method| method.name);
    let missing: Vec<&str> = names.filter(|name| !answered.contains(*name)).collect();
    assert_eq!(missing, NEVER_ANSWERED);
}

/// Calls about a chain with every kind of answer: blocks in all details, with a spent output and a witness.
fn chain(described: &Described) {
    described.ask("setmocktime", "[1700000000]");
    let made = described.ask("generatetodescriptor", "[150,\"raw(51)\"]");
    described.ask("generatetoaddress", "[1,\"bcrt1qw508d6qejxtdg4y5r3zarvary0c5xw7kygt080\"]");
    let first = described.ask("getblock", &format!("[{}]", made[0]));
    described.ask("getblockfilter", &format!("[{}]", made[0]));
    described.ask("getdescriptoractivity", &format!("[[{}],[\"raw(51)\"]]", made[0]));
    let txid = first["tx"][0].as_str().unwrap();
    let reversed: String = (0..32).rev().map(|byte| &txid[2 * byte..2 * byte + 2]).collect();
    // Spends the first coinbase and leaves a fee of 10,000 satoshis.
    let spend = format!("0200000001{reversed}0000000000ffffffff01f0ca052a01000000015100000000");
    let block = described.ask("generateblock", &format!("[\"raw(51)\",[\"{spend}\"]]"));
    let side = described.ask("generateblock", "[\"raw(52)\",[],false]");
    described.ask("generatetodescriptor", "[1,\"raw(51)\"]");
    described.ask("submitheader", &format!("[\"{}\"]", &side["hex"].as_str().unwrap()[..160]));
    let hash = &block["hash"];
    for details in ["", ",0", ",2", ",3"] {
        described.ask("getblock", &format!("[{hash}{details}]"));
        described.ask("getblock", &format!("[{}{details}]", made[0]));
    }
    let full = described.ask("getblock", &format!("[{hash},3]"));
    assert_eq!(full["tx"][1]["vin"][0]["prevout"]["height"], 1);
    assert_eq!(full["tx"][1]["fee"].as_f64(), Some(0.0001));
    described.ask("gettxout", &format!("[{},0]", full["tx"][1]["txid"]));
    described.ask("gettxout", &format!("[\"{txid}\",0]"));
    let spending = &full["tx"][1]["txid"];
    for details in 0..3 {
        described.ask("getrawtransaction", &format!("[{spending},{details},{hash}]"));
    }
    let proof = described.ask("gettxoutproof", &format!("[[{spending}]]"));
    assert_eq!(&described.ask("verifytxoutproof", &format!("[{proof}]"))[0], spending);
    let unsigned = described.ask("createrawtransaction", &format!("[[{{\"txid\":{spending},\"vout\":0}}],{{}}]"));
    described.ask("combinerawtransaction", &format!("[[{unsigned},{unsigned}]]"));
    for method in ["getblockheader", "getblockstats", "getdeploymentinfo", "preciousblock"] {
        described.ask(method, &format!("[{hash}]"));
    }
    described.ask("getblockheader", &format!("[{hash},false]"));
    described.ask("getblockstats", &format!("[{hash},[\"txs\",\"blockhash\",\"feerate_percentiles\"]]"));
    described.ask("waitforblock", &format!("[{hash},10]"));
    described.ask("invalidateblock", &format!("[{hash}]"));
    described.ask("getchaintips", "[]");
    described.ask("reconsiderblock", &format!("[{hash}]"));
    let raw = described.ask("getblock", &format!("[{hash},0]"));
    assert_eq!(described.ask("submitblock", &format!("[{raw}]")), "duplicate");
    described.ask("submitblock", &format!("[{}]", side["hex"]));
    described.ask_all(&[
        ("getbestblockhash", "[]"),
        ("getblockchaininfo", "[]"),
        ("getblockcount", "[]"),
        ("getblockhash", "[1]"),
        ("getchainstates", "[]"),
        ("getchaintips", "[]"),
        ("getchaintxstats", "[]"),
        ("getchaintxstats", "[0]"),
        ("getdeploymentinfo", "[]"),
        ("getdifficulty", "[]"),
        ("getmininginfo", "[]"),
        ("getnetworkhashps", "[]"),
        ("gettxoutsetinfo", "[]"),
        ("gettxoutsetinfo", "[\"muhash\"]"),
        ("gettxoutsetinfo", "[\"none\"]"),
        ("scantxoutset", "[\"start\",[\"raw(51)\"]]"),
        ("scantxoutset", "[\"status\"]"),
        ("scantxoutset", "[\"abort\"]"),
        ("scanblocks", "[\"start\",[\"raw(51)\"]]"),
        ("scanblocks", "[\"status\"]"),
        ("scanblocks", "[\"abort\"]"),
        ("pruneblockchain", "[1]"),
        ("verifychain", "[]"),
        ("waitforblockheight", "[1,10]"),
        ("waitfornewblock", "[10]"),
    ]);
}

/// Calls about transactions in the mempool: a parent and its child, one more, and one that is refused.
fn mempool(described: &Described) {
    let address = "bcrt1qw508d6qejxtdg4y5r3zarvary0c5xw7kygt080";
    let spend = |height: u32, value: &str| {
        let hash = described.ask("getblockhash", &format!("[{height}]"));
        let txid = described.ask("getblock", &format!("[{hash}]"))["tx"][0].clone();
        let outputs = format!("[{{\"{address}\":{value}}},{{\"data\":\"00\"}}]");
        described.ask("createrawtransaction", &format!("[[{{\"txid\":{txid},\"vout\":0}}],{outputs}]"))
    };
    let (first, second, dear) = (spend(2, "49.9999"), spend(3, "49.9998"), spend(4, "60"));
    described.ask("testmempoolaccept", &format!("[[{first},{second},{dear}]]"));
    described.ask("testmempoolaccept", &format!("[[{first}]]"));
    let txid = described.ask("sendrawtransaction", &format!("[{first}]"));
    let package = described.ask("submitpackage", &format!("[[{second}]]"));
    assert_eq!(package["package_msg"], "success");
    described.ask("submitpackage", &format!("[[{dear}]]"));
    described.ask("prioritisetransaction", &format!("[{txid},0,1000]"));
    for method in ["getmempoolancestors", "getmempooldescendants"] {
        described.ask(method, &format!("[{txid}]"));
        described.ask(method, &format!("[{txid},true]"));
    }
    described.ask("getmempoolcluster", &format!("[{txid}]"));
    described.ask("getmempoolentry", &format!("[{txid}]"));
    described.ask("gettxout", &format!("[{txid},0]"));
    let outputs = format!("[{{\"txid\":{txid},\"vout\":0}},{{\"txid\":{txid},\"vout\":1}}]");
    described.ask("gettxspendingprevout", &format!("[{outputs},{{\"return_spending_tx\":true}}]"));
    described.ask_all(&[
        ("getblocktemplate", "[{\"rules\":[\"segwit\"]}]"),
        ("getmempoolfeeratediagram", "[]"),
        ("getmempoolinfo", "[]"),
        ("getprioritisedtransactions", "[]"),
        ("estimatesmartfee", "[6]"),
        ("estimaterawfee", "[6]"),
        ("getrawmempool", "[]"),
        ("getrawmempool", "[true]"),
        ("getrawmempool", "[false,true]"),
    ]);
    let file = described.ask("savemempool", "[]")["filename"].clone();
    described.ask("importmempool", &format!("[{file}]"));
    described.ask("generatetodescriptor", "[1,\"raw(51)\"]");
    described.ask("getmininginfo", "[]");
}

/// Calls about peers, with one of them connected.
fn network(described: &Described, peer: &Server, port: u16) {
    let address = format!("\"127.0.0.1:{port}\"");
    peer.result("addnode", &format!("[{address},\"onetry\"]"));
    let began = Instant::now();
    let is_connected = |server: &Server| server.result("getpeerinfo", "[]")[0]["bytesrecv_per_msg"]["verack"].is_u64();
    while !is_connected(peer) || !is_connected(&described.node) {
        assert!(began.elapsed() < Duration::from_secs(60), "the two connect");
        std::thread::sleep(Duration::from_millis(20));
    }
    let id = described.ask("getpeerinfo", "[]")[0]["id"].clone();
    let side = described.ask("generateblock", "[\"raw(53)\",[],false]");
    described.ask("generatetodescriptor", "[1,\"raw(51)\"]");
    described.ask("submitheader", &format!("[\"{}\"]", &side["hex"].as_str().unwrap()[..160]));
    described.ask("getblockfrompeer", &format!("[{},{id}]", side["hash"]));
    described.ask("sendmsgtopeer", &format!("[{id},\"ping\",\"0000000000000000\"]"));
    described.ask("addnode", "[\"127.0.0.1:1\",\"add\"]");
    described.ask("addconnection", "[\"127.0.0.1:1\",\"feeler\",false]");
    described.ask_all(&[
        ("addpeeraddress", "[\"1.2.3.4\",8333]"),
        ("addpeeraddress", "[\"1.2.3.4\",8333]"),
        ("getaddednodeinfo", "[]"),
        ("getaddrmaninfo", "[]"),
        ("getconnectioncount", "[]"),
        ("getnettotals", "[]"),
        ("getnetworkinfo", "[]"),
        ("getnodeaddresses", "[0]"),
        ("getorphantxs", "[2]"),
        ("getrawaddrman", "[]"),
        ("ping", "[]"),
        ("setban", "[\"10.0.0.0/8\",\"add\"]"),
        ("listbanned", "[]"),
        ("clearbanned", "[]"),
        ("setnetworkactive", "[true]"),
    ]);
    described.ask("disconnectnode", &format!("[\"\",{id}]"));
}

/// Calls about wallets, with two of them connected, of a node with the index that they need.
fn electrum() -> BTreeSet<String> {
    let port = lydian_oracle::free_port().unwrap();
    let bind = format!("-electrumbind=127.0.0.1:{port}");
    let options = ["-electrum", &bind, "-electrumtlsbind=0", "-electrumwsbind=0"];
    let described = Described { node: Server::lydian("described-electrum", &options), answered: RefCell::default() };
    let _wallet = Wallet::connect(port, "1.4");
    let mut early = Wallet::open(port);
    early.result("server.ping", &Value::Array(Vec::new()));
    let sessions = described.ask("listelectrumsessions", "[]");
    assert_eq!(sessions.as_array().map(Vec::len), Some(2));
    described.ask("disconnectelectrumsession", &format!("[{}]", sessions[1]["id"]));
    described.ask_all(&[
        ("setelectrumban", "[\"10.0.0.0/8\",\"add\"]"),
        ("listelectrumbans", "[]"),
        ("clearelectrumbans", "[]"),
    ]);
    described.answered.into_inner()
}

/// Transactions that are created, signed with too few keys and with enough, and decoded.
fn raw_transactions(described: &Described) {
    let address = "bcrt1qw508d6qejxtdg4y5r3zarvary0c5xw7kygt080";
    let txid = "11".repeat(32);
    let input = format!("{{\"txid\":\"{txid}\",\"vout\":0}}");
    let tx = described.ask("createrawtransaction", &format!("[[{input}],[{{\"{address}\":1}}]]"));
    described.ask("decoderawtransaction", &format!("[{tx}]"));
    let spent = format!(
        "{{\"txid\":\"{txid}\",\"vout\":0,\"scriptPubKey\":\"0014751e76e8199196d454941c45d1b3a323f1433bd6\",\"amount\":1}}"
    );
    let none = described.ask("signrawtransactionwithkey", &format!("[{tx},[],[{spent}]]"));
    assert_eq!(none["complete"], false);
    // The private key 1.
    let key = "\"cMahea7zqjxrtgAbB7LSGbcQUr1uX1ojuat9jZodMN87JcbXMTcA\"";
    let signed = described.ask("signrawtransactionwithkey", &format!("[{tx},[{key}],[{spent}]]"));
    assert_eq!(signed["complete"], true);
    described.ask("decoderawtransaction", &format!("[{}]", signed["hex"]));
}

fn psbts(described: &Described) {
    let input = format!("{{\"txid\":\"{}\",\"vout\":0}}", "07".repeat(32));
    let other = format!("{{\"txid\":\"{}\",\"vout\":0}}", "08".repeat(32));
    let output = "{\"data\":\"00\"}";
    let [first, second] =
        [input, other].map(|input| described.ask("createpsbt", &format!("[[{input}],[{output}],0,true,2,0]")));
    let version_2 = described.ask("createpsbt", "[[],[]]");
    for method in ["decodepsbt", "analyzepsbt", "finalizepsbt", "utxoupdatepsbt"] {
        described.ask(method, &format!("[{first}]"));
        described.ask(method, &format!("[{version_2}]"));
    }
    described.ask("joinpsbts", &format!("[[{first},{second}]]"));
    described.ask("combinepsbt", &format!("[[{first},{first}]]"));
    described.ask("converttopsbt", "[\"02000000000000000000\"]");
    described.ask("descriptorprocesspsbt", &format!("[{first},[]]"));
    described.ask("descriptorprocesspsbt", &format!("[{version_2},[]]"));
    // PSBTs with every field.
    let vectors: Value = serde_json::from_slice(&read(&testdata("vectors/core/rpc_psbt.json"))).unwrap();
    for psbt in vectors["valid"].as_array().unwrap() {
        for method in ["decodepsbt", "analyzepsbt", "finalizepsbt"] {
            described.ask(method, &format!("[{psbt}]"));
        }
    }
}

/// Calls that depend on nothing.
fn others(described: &Described) {
    let key = "0279be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798";
    raw_transactions(described);
    psbts(described);
    let nested = format!("21{key}ad53b2");
    for script in ["", "51", &format!("21{key}ac"), &format!("0014{}", "22".repeat(20)), "6a0411223344", &nested] {
        described.ask("decodescript", &format!("[\"{script}\"]"));
    }
    let tree = "wpkh(tpubD6NzVbkrYhZ4XgiXtGrdW5XDAPFCL9h7we1vwNCpn8tGbBcgfVYjXyhWo4E1xkh56hjod1RhGjxbaTLV3X4FyWuejifB9jusQ46QzG87VKp";
    for descriptor in [format!("{tree}/7)"), format!("{tree}/<0;1>)")] {
        let info = described.ask("getdescriptorinfo", &format!("[\"{descriptor}\"]"));
        let checksum = info["checksum"].as_str().unwrap();
        described.ask("deriveaddresses", &format!("[\"{descriptor}#{checksum}\"]"));
    }
    // Legacy with an uncompressed key, which is warned of, and bech32.
    let long = format!("04{}483ada7726a3c4655da4fbfc0e1108a8fd17b448a68554199c47d08ffb10d4b8", &key[2..]);
    for key in [&long, key] {
        described.ask("createmultisig", &format!("[1,[\"{key}\"],\"bech32\"]"));
    }
    let secret = "cMahea7zqjxrtgAbB7LSGbcQUr1uX1ojuat9jZodMN87JcbXMTcA";
    let signature = described.ask("signmessagewithprivkey", &format!("[\"{secret}\",\"x\"]"));
    let address = "mrCDrCybB6J1vRfbwM5hemdJz73FwDBC8r";
    assert_eq!(described.ask("verifymessage", &format!("[\"{address}\",{signature},\"x\"]")), true);
    described.ask_all(&[
        ("echo", "[1,null,{\"a\":[]}]"),
        ("echoipc", "[\"x\"]"),
        ("echojson", "[true]"),
        ("getindexinfo", "[]"),
        ("getmemoryinfo", "[]"),
        ("getrpcinfo", "[]"),
        ("getzmqnotifications", "[]"),
        ("help", "[]"),
        ("help", "[\"getblock\"]"),
        ("help", "[\"dump_all_command_conversions\"]"),
        ("logging", "[]"),
        ("mockscheduler", "[1]"),
        ("syncwithvalidationinterfacequeue", "[]"),
        ("uptime", "[]"),
        ("validateaddress", "[\"bcrt1qw508d6qejxtdg4y5r3zarvary0c5xw7kygt080\"]"),
        ("validateaddress", "[\"bcrt1qw508d6qejxtdg4y5r3zarvary0c5xw7kygt081\"]"),
        ("validateaddress", "[\"mfWxJ45yp2SFn7UciZyNpvDKrzbhyfKrY8\"]"),
    ]);
}
