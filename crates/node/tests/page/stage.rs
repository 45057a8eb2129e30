//! A node with its page, and a browser that looks at it.

use crate::server::Server;
use lydian_browser::{Browser, BrowserError, Page};
use lydian_hash::sha256;
use lydian_oracle::free_port;
use lydian_primitives::build::{MutBlock, MutInput, MutOutput, MutTx};
use lydian_primitives::{Amount, Header, OutPoint, RawBlock, hex, to_hex};
use serde_json::{Value, json};
use std::process::{Command, Output};
use std::time::{Duration, Instant};

/// Longer than anything here takes on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);

/// What happens in the node is on the page within this time (issue: 2 s).
pub(crate) const SOON: Duration = Duration::from_secs(2);

/// A name that is this machine only in the browser of the tests.
pub(crate) const OTHER_NAME: &str = "rebound.example";

/// The node and the browser.
pub(crate) struct Stage {
    pub(crate) browser: Browser,
    pub(crate) server: Server,
    /// The port of the page.
    pub(crate) port: u16,
}

impl Stage {
    /// `None`: this machine has no browser.
    pub(crate) fn start(name: &str, options: &[&str]) -> Option<Stage> {
        let browser = Browser::start(&[OTHER_NAME, "localhost"]).unwrap()?;
        let port = free_port().unwrap();
        let own = format!("-pageport={port}");
        let server = Server::lydian(name, &[&["-page", own.as_str()], options].concat());
        Some(Stage { browser, server, port })
    }

    /// The origin of the page.
    pub(crate) fn origin(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// A fresh link, as `lydian page` prints it.
    pub(crate) fn link(&self) -> String {
        let output = ask_for_link(&self.server, &[&format!("-pageport={}", self.port)]);
        assert!(output.status.success(), "{output:?}");
        let link = String::from_utf8(output.stdout).unwrap().trim().to_owned();
        assert!(link.starts_with(&format!("{}/#", self.origin())), "{link}");
        link
    }

    /// A tab that has logged in by a link.
    pub(crate) fn enter(&self) -> Page {
        let page = self.browser.page().unwrap();
        page.set_size(1_440, 900, 1.0).unwrap();
        page.open(&self.link()).unwrap();
        wait_for_login(&page);
        page
    }

    /// A call of an RPC method; the test fails on an error.
    pub(crate) fn call(&self, method: &str, params: &Value) -> Value {
        self.server.result(method, &params.to_string())
    }

    /// Mines blocks that pay to the script of a number.
    pub(crate) fn mine(&self, count: u32, number: u8) -> Vec<String> {
        let descriptor = format!("raw({})", to_hex(&script(number)));
        let hashes = self.call("generatetodescriptor", &json!([count, descriptor]));
        hashes.as_array().unwrap().iter().map(|hash| hash.as_str().unwrap().to_owned()).collect()
    }

    /// The coinbase output of a height, which pays to the script of a number.
    pub(crate) fn coin(&self, height: u32, number: u8) -> Coin {
        let hash = self.call("getblockhash", &json!([height]));
        let tx = self.call("getblock", &json!([hash, 2]))["tx"][0].clone();
        let value = (tx["vout"][0]["value"].as_f64().unwrap() * 1e8).round();
        #[allow(clippy::cast_possible_truncation, reason = "at most 21 million coins")]
        let value = value as i64;
        Coin { prevout: OutPoint { txid: tx["txid"].as_str().unwrap().parse().unwrap(), vout: 0 }, value, number }
    }

    /// Mines a block with this text in its coinbase.
    pub(crate) fn mine_with_text(&self, text: &[u8]) -> String {
        self.submit(|coinbase| coinbase.inputs[0].script_sig.extend_from_slice(text), &Value::Null)
    }

    /// Sends a block that pays itself a satoshi too much.
    pub(crate) fn submit_rich(&self) -> String {
        self.submit(|coinbase| coinbase.outputs[0].value.0 += 1, &json!("bad-cb-amount"))
    }

    /// Sends a block with a changed coinbase, and returns its hash. `answer`: of `submitblock`.
    fn submit(&self, change: impl FnOnce(&mut MutTx), answer: &Value) -> String {
        let made = self.call("generateblock", &json!([format!("raw({})", to_hex(&script(1))), [], false]));
        let bytes = hex(made["hex"].as_str().unwrap()).unwrap();
        let block = RawBlock::new(bytes.clone()).parse().unwrap();
        let mut block = MutBlock {
            header: Header::parse(&bytes[..80].try_into().unwrap()),
            txs: block.txs().map(MutTx::from).collect(),
        };
        change(&mut block.txs[0]);
        block.seal_merkle_root();
        // A hash below 2^255 is proof of work on regtest.
        while block.header.hash().0[31] > 0x7e {
            block.header.nonce += 1;
        }
        assert_eq!(self.call("submitblock", &json!([to_hex(&block.encode())])), *answer);
        block.header.hash().to_string()
    }
}

/// `lydian page` for a running node, with the options of its page.
pub(crate) fn ask_for_link(server: &Server, options: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lydian"));
    command.arg(format!("-datadir={}", server.folder.display())).arg("-regtest");
    command.args(options).arg("page").output().unwrap()
}

/// Opens a panel by its name in the navigation, and waits until it has data.
pub(crate) fn go(page: &Page, panel: &str) {
    page.evaluate(&format!("location.hash = '#/{panel}'")).unwrap();
    let is_shown = format!("document.querySelector('main .panel.{panel}')?.childElementCount > 0");
    page.wait_until(&is_shown, PATIENCE).unwrap_or_else(|error| panic!("{panel}: {error}"));
}

/// Searches in the explorer, and waits until the panel is drawn anew: what is waited for next is of this search.
/// `submit`: presses the key or the button.
pub(crate) fn search(page: &Page, text: &str, submit: impl FnOnce(&Page) -> Result<(), BrowserError>) {
    page.evaluate("document.querySelector('main .panel').dataset.before = ''").unwrap();
    page.fill("#explorer-search", text).unwrap();
    submit(page).unwrap();
    let is_new = "document.querySelector('main .panel:not([data-before])')";
    page.wait_until(is_new, PATIENCE).unwrap_or_else(|error| panic!("{text}: {error}"));
}

/// The panels in the navigation.
pub(crate) fn panels(page: &Page) -> Vec<String> {
    let names =
        page.evaluate("[...document.querySelectorAll('#nav a[data-panel]')].map((one) => one.dataset.panel)").unwrap();
    let names: Vec<String> = names.as_array().unwrap().iter().map(|name| name.as_str().unwrap().to_owned()).collect();
    assert!(names.len() > 1, "{names:?}");
    names
}

/// Waits until a promise resolves to true; each try makes a new one.
pub(crate) fn wait_for_promise(page: &Page, what: &str, script: &str) {
    let began = Instant::now();
    while page.evaluate(script).unwrap() != true {
        assert!(began.elapsed() < PATIENCE, "{what}: {script}");
        page.listen(Duration::from_millis(200)).unwrap();
    }
}

pub(crate) fn wait_for_login(page: &Page) {
    page.wait_until("document.querySelector('#nav a[data-panel]')", PATIENCE).unwrap();
}

/// Whether the page asks for a login.
pub(crate) const ASKS: &str = "document.querySelector('main .login form') !== null";

/// No error on the console, no exception, no request to another origin.
pub(crate) fn expect_no_problems(page: &Page, what: &str) {
    let problems = page.take_problems().unwrap();
    assert!(problems.is_empty(), "{what}: {problems:#?}");
}

/// An output of [`script`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Coin {
    prevout: OutPoint,
    value: i64,
    number: u8,
}

/// P2WSH of OP_1 to OP_16, which needs no signature.
pub(crate) fn script(number: u8) -> Vec<u8> {
    [&[0x00, 0x20][..], &sha256(&[0x50 + number])].concat()
}

/// A transaction that spends a coin, and the coins that it makes. `number`: of the script that is paid.
pub(crate) fn pay(coin: Coin, outputs: u8, number: u8, fee: i64) -> (MutTx, Vec<Coin>) {
    let witness = vec![vec![0x50 + coin.number]];
    let input = MutInput { prevout: coin.prevout, script_sig: Vec::new(), sequence: 0xffff_fffd, witness };
    let value = (coin.value - fee) / i64::from(outputs);
    let output = || MutOutput { value: Amount(value), script_pubkey: script(number) };
    let outputs = (0..outputs).map(|_| output()).collect();
    let tx = MutTx { version: 2, inputs: vec![input], outputs, lock_time: 0 };
    let txid = tx.txid();
    let coins = (0..).zip(&tx.outputs).map(|(vout, _)| Coin { prevout: OutPoint { txid, vout }, value, number });
    let coins = coins.collect();
    (tx, coins)
}

/// The hex that `sendrawtransaction` takes.
pub(crate) fn raw(tx: &MutTx) -> String {
    to_hex(&tx.encode())
}
