//! The calls of `bcli`, the plugin through which Core Lightning reads the chain: it runs `bitcoin-cli` for each, and
//! reads its output and exit code. `lydian-cli` on Lydian must print what `bitcoin-cli` on Core prints.
//!
//! The calls are those of `plugins/bcli.c` of Core Lightning, read at commit 8894455c (after 23.11): `getnetworkinfo`
//! at the start; `getchaininfo`, `getrawblockbyheight`, `estimatefees`, `getutxout` and `sendrawtransaction` later.
//! There the arguments are on the command line. Later versions pass them by `-stdin`, since long transactions did not
//! fit (ElementsProject/lightning: issue 8634), and set `-rpcclienttimeout`; each call is made in both ways.

use super::{OURS, Pair, run_client};
use crate::server::Server;
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::time::Duration;

/// Targets and modes of `estimatefee_params`.
const ESTIMATES: &[[&str; 2]] =
    &[["2", "CONSERVATIVE"], ["6", "ECONOMICAL"], ["12", "ECONOMICAL"], ["100", "ECONOMICAL"]];

/// Fields that the plugin reads of these answers; of all others it takes the whole output.
const READ: &[(&str, &[&str])] = &[
    ("getnetworkinfo", &["localrelay"]),
    ("getblockchaininfo", &["chain", "headers", "blocks", "initialblockdownload"]),
    ("getmempoolinfo", &["mempoolminfee", "minrelaytxfee"]),
    ("estimatesmartfee", &["feerate"]),
    ("gettxout", &["value", "scriptPubKey"]),
];

/// How the plugin passes the arguments and its password: as in 8894455c, and as in later versions.
#[derive(Clone, Copy, Debug)]
enum Way {
    Words,
    Stdin,
}

/// Both clients, each with its own node.
struct Plugin<'a> {
    pair: &'a Pair,
    lydian: &'a Server,
    core: &'a Server,
}

/// What the plugin makes of a call: the exit code and what it reads.
type Reading = (Option<i32>, String);

impl Plugin<'_> {
    /// One client on one node; the output and the errors come through one pipe in the plugin.
    fn reading(&self, client: &Path, server: &Server, way: Way, words: &[&str]) -> Reading {
        let (options, input) = way.command_line(server, words);
        let output = run_client(client, &options, &input, self.pair.home.path());
        let all = output.stdout + &output.stderr;
        let read = READ.iter().find(|(method, _)| *method == words[0] && output.code == Some(0) && !all.is_empty());
        let Some((_, fields)) = read else { return (output.code, all) };
        let answer: Value = serde_json::from_str(&all).unwrap();
        let fields: Vec<String> = fields.iter().map(|field| format!("{field} {}", answer[*field])).collect();
        (output.code, fields.join(", "))
    }

    /// The same call to both, in one way.
    fn call_in(&self, way: Way, words: &[&str]) -> Reading {
        let ours = self.reading(Path::new(OURS), self.lydian, way, words);
        assert_eq!(ours, self.reading(&self.pair.theirs, self.core, way, words), "{way:?} {words:?}");
        ours
    }

    /// The same call to both in both ways, with the same outcome.
    fn call(&self, words: &[&str]) -> Reading {
        let reading = self.call_in(Way::Words, words);
        assert_eq!(self.call_in(Way::Stdin, words), reading, "{words:?}");
        reading
    }

    fn text(&self, words: &[&str]) -> String {
        let (code, text) = self.call(words);
        assert_eq!(code, Some(0), "{words:?}: {text}");
        text.trim_end().to_owned()
    }
}

impl Way {
    /// The options and arguments of the client, and what it is sent. The password is that of the cookie.
    fn command_line(self, server: &Server, words: &[&str]) -> (Vec<String>, String) {
        let cookie = fs::read_to_string(server.folder.join("regtest/.cookie")).unwrap();
        let (user, password) = cookie.trim().split_once(':').unwrap();
        let (method, arguments) = words.split_first().unwrap();
        let mut options = vec!["-regtest".to_owned(), format!("-datadir={}", server.folder.display())];
        if matches!(self, Way::Stdin) {
            options.push("-rpcclienttimeout=60".to_owned());
        }
        options.push("-rpcconnect=127.0.0.1".to_owned());
        options.push(format!("-rpcport={}", server.port));
        options.push(format!("-rpcuser={user}"));
        options.push("-stdinrpcpass".to_owned());
        match self {
            Way::Words => {
                options.extend(words.iter().map(|word| (*word).to_owned()));
                (options, password.to_owned())
            }
            Way::Stdin => {
                options.extend(["-stdin".to_owned(), (*method).to_owned()]);
                let lines = [password].iter().chain(arguments).map(|line| format!("{line}\n")).collect();
                (options, lines)
            }
        }
    }
}

/// Two nodes with the same chain.
fn servers(pair: &Pair, lydian: &Path) -> [Server; 2] {
    let core = pair.theirs.with_file_name("bitcoind");
    let options = ["-par=2", "-printtoconsole=0", "-listen=0", "-connect=0", "-acceptnonstdtxn"];
    let servers = [lydian, &core].map(|program| Server::with(program, &options));
    for server in &servers {
        for words in [&["setmocktime", "1750000000"][..], &["generatetodescriptor", "110", "raw(51)"]] {
            let made = run_client(Path::new(OURS), &server.words(words), "", pair.home.path());
            assert_eq!(made.code, Some(0), "{made:?}");
        }
    }
    servers
}

#[test]
fn bcli_of_core_lightning_reads_the_same() {
    let Some(lydian) = super::lydian("bcli_of_core_lightning_reads_the_same") else { return };
    let Some(pair) = Pair::new("cli-bcli") else { return };
    let [lydian, core] = servers(&pair, &lydian);
    let plugin = Plugin { pair: &pair, lydian: &lydian, core: &core };
    // init: a version of at least 22.0, and transactions are relayed.
    assert_eq!(plugin.text(&["getnetworkinfo"]), "localrelay true");
    let version =
        run_client(Path::new(OURS), &lydian.words(&["-rpcwaittimeout=30", "getnetworkinfo"]), "", pair.home.path());
    let version: Value = serde_json::from_str(&version.stdout).unwrap();
    assert!(version["version"].as_u64().unwrap() >= 220_000);
    // getchaininfo.
    assert!(plugin.text(&["getblockchaininfo"]).contains("headers 110, blocks 110"));
    // getrawblockbyheight; a height above the tip is exit code 8, for which the plugin answers null.
    for height in ["0", "1", "110"] {
        let hash = plugin.text(&["getblockhash", height]);
        assert_eq!(hash.len(), 64);
        assert!(plugin.text(&["getblock", &hash, "0"]).len() > 160);
    }
    assert_eq!(plugin.call(&["getblockhash", "111"]).0, Some(8));
    // estimatefees.
    plugin.text(&["getmempoolinfo"]);
    for [target, mode] in ESTIMATES {
        // Success without a feerate, for which the plugin reports no estimates.
        assert_eq!(plugin.text(&["estimatesmartfee", target, mode]), "feerate null");
    }
    // sendrawtransaction, with `allowhighfees` (a second argument of 0) and without; again; and one without coins.
    let hash = plugin.text(&["getblockhash", "1"]);
    let block: Value = serde_json::from_str(&plugin.text(&["getblock", &hash, "1"])).unwrap();
    let coin = block["tx"][0].as_str().unwrap().to_owned();
    let spend = |address: &str, amount: &str| {
        let inputs = format!("[{{\"txid\":\"{coin}\",\"vout\":0}}]");
        plugin.text(&["createrawtransaction", &inputs, &format!("[{{\"{address}\":{amount}}}]")])
    };
    let address = "bcrt1qft5p2uhsdcdc3l2ua4ap5qqfg4pjaqlp250x7us7a8qqhrxrxfsqseac85";
    let expensive = spend(address, "1");
    let (code, text) = plugin.call(&["sendrawtransaction", &expensive]);
    assert_eq!(code, Some(25), "{text}");
    let sent = plugin.text(&["sendrawtransaction", &expensive, "0"]);
    assert_eq!(sent.len(), 64);
    assert_eq!(plugin.text(&["sendrawtransaction", &expensive, "0"]), sent);
    assert_ne!(plugin.call(&["sendrawtransaction", &spend(address, "2"), "0"]).0, Some(0));
    assert_eq!(plugin.call(&["sendrawtransaction", "00", "0"]).0, Some(22));
    // getutxout: an output, one of the mempool, one that is spent there, one that never was.
    assert!(plugin.text(&["gettxout", &sent, "0"]).starts_with("value 1"));
    assert_eq!(plugin.call(&["gettxout", &coin, "0"]), (Some(0), String::new()));
    assert_eq!(plugin.call(&["gettxout", &"11".repeat(32), "7"]), (Some(0), String::new()));
    // A transaction in the chain: exit code 27. (The plugin means to take it for success, and compares it with -27.)
    let made = plugin.call_in(Way::Words, &["generatetodescriptor", "1", "raw(51)"]);
    assert_eq!(made.0, Some(0), "{made:?}");
    assert_eq!(plugin.call(&["sendrawtransaction", &expensive, "0"]).0, Some(27));
    assert!(plugin.text(&["getblockchaininfo"]).contains("headers 111, blocks 111"));
}

/// `getrawblockbyheight` on a node that deleted the block: the plugin lists the peers and asks each for it.
#[test]
fn bcli_fetches_a_pruned_block_from_a_peer() {
    let Some(program) = super::lydian("bcli_fetches_a_pruned_block_from_a_peer") else { return };
    let Some(pair) = Pair::new("cli-bcli-pruned") else { return };
    let port = lydian_oracle::free_port().unwrap();
    let core = pair.theirs.with_file_name("bitcoind");
    let full = Server::with(&core, &["-par=2", "-printtoconsole=0", "-listen", &format!("-bind=127.0.0.1:{port}")]);
    let ask = |server: &Server, words: &[&str]| {
        let output = run_client(Path::new(OURS), &server.words(words), "", pair.home.path());
        (output.code, (output.stdout + &output.stderr).trim_end().to_owned())
    };
    assert_eq!(ask(&full, &["generatetodescriptor", "700", "raw(51)"]).0, Some(0));
    let connect = format!("-connect=127.0.0.1:{port}");
    let options = ["-par=2", "-printtoconsole=0", "-listen=0", "-prune=1", "-fastprune", &connect];
    let pruned = Server::with(&program, &options);
    let wait = |what: &str, is_so: &dyn Fn() -> bool| {
        let is_so = |_| {
            std::thread::sleep(Duration::from_millis(50));
            is_so()
        };
        assert!((0..2_400).any(is_so), "{what} within two minutes");
    };
    wait("the sync", &|| ask(&pruned, &["getblockcount"]).1 == "700");
    assert_eq!(ask(&pruned, &["pruneblockchain", "400"]).0, Some(0));
    // The steps of the plugin.
    let (code, hash) = ask(&pruned, &["getblockhash", "1"]);
    assert_eq!(code, Some(0));
    let (code, text) = ask(&pruned, &["getblock", &hash, "0"]);
    assert_eq!(code, Some(1), "{text}");
    let peers: Value = serde_json::from_str(&ask(&pruned, &["getpeerinfo"]).1).unwrap();
    let id = peers[0]["id"].to_string();
    let (code, text) = ask(&pruned, &["getblockfrompeer", &hash, &id]);
    assert_eq!((code, text.replace(['\n', ' '], "").as_str()), (Some(0), "{}"));
    wait("the block", &|| ask(&pruned, &["getblock", &hash, "0"]).0 == Some(0));
    assert_eq!(ask(&pruned, &["getblock", &hash, "0"]), ask(&full, &["getblock", &hash, "0"]));
}
