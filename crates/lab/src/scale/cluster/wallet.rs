//! Clients that behave like wallets: one connection each, session after session.
//!
//! Input: the address of the balancer, the right answers. Output: for each request the phase, the kind, the time from
//! the first try to the answer, and what the answer was. A session subscribes to the headers and to some scripts, asks
//! for history, balance and coins of each, for transactions with their Merkle branches, and for headers: 70 requests.
//! If a connection ends, the client connects again, repeats the request, and begins a new session. Invariants: every
//! answer is judged; a request is answered, failed, or cut off by the end. Cost: one thread for each client.

use super::oracle::{ABOUT, About, Fixed, Oracle, Verdict};
use crate::electrum::client::{Client, Fault, Place, request, result_of};
use crate::electrum::protocol::ScriptQuery;
use crate::runs::system;
use lydian_chains::rng::Random;
use serde::Serialize;
use serde_json::json;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Scripts of a session: with four questions each, and what follows, 70 requests.
const SCRIPTS: usize = 12;
const TRANSACTIONS: usize = 14;
const HEADERS: usize = 6;
/// A session's handshake and its subscription to the headers.
pub const REQUESTS: usize = SCRIPTS * ABOUT.len() + TRANSACTIONS + HEADERS + 2;
/// A request that has no answer for so long, with all its repetitions, has failed.
pub const PATIENCE: Duration = Duration::from_secs(30);
/// Before the next try to connect.
const AGAIN: Duration = Duration::from_millis(50);
/// Answers of a client that may wait for the node to give them too.
const UNKNOWN_MAX: usize = 1_000;
/// Bytes of an answer that a message has.
const SAID_BYTES: usize = 400;
/// Transactions of the histories whose time is a figure of its own.
const LONG: std::ops::RangeInclusive<u32> = 300..=999;

/// What was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    Connect,
    Headers,
    Subscribe,
    Balance,
    History,
    LongHistory,
    Coins,
    Transaction,
    Header,
}

impl Kind {
    pub const ALL: [Kind; 9] = [
        Kind::Connect,
        Kind::Headers,
        Kind::Subscribe,
        Kind::Balance,
        Kind::History,
        Kind::LongHistory,
        Kind::Coins,
        Kind::Transaction,
        Kind::Header,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Kind::Connect => "connection with handshake",
            Kind::Headers => "subscription to headers",
            Kind::Subscribe => "subscription to a script",
            Kind::Balance => "balance",
            Kind::History => "history",
            Kind::LongHistory => "history, 300 to 999 transactions",
            Kind::Coins => "coins",
            Kind::Transaction => "transaction or its Merkle branch",
            Kind::Header => "header",
        }
    }

    fn of(about: About, transactions: u32) -> Kind {
        match about {
            About::Status => Kind::Subscribe,
            About::Script(ScriptQuery::Balance) => Kind::Balance,
            About::Script(ScriptQuery::Utxos) => Kind::Coins,
            About::Script(ScriptQuery::History) if LONG.contains(&transactions) => Kind::LongHistory,
            About::Script(ScriptQuery::History) => Kind::History,
        }
    }
}

/// What all clients share.
#[derive(Debug)]
pub struct Market<'a> {
    pub oracle: &'a Oracle,
    /// Of the balancer.
    pub place: Place,
    /// Between two requests of a client.
    pub pause: Duration,
    /// The number of the phase.
    pub phase: AtomicUsize,
    pub is_over: AtomicBool,
}

/// A request that was answered.
#[derive(Clone, Copy, Debug)]
pub struct Sample {
    pub phase: usize,
    pub kind: Kind,
    pub milliseconds: f64,
    /// When it was answered.
    pub at: Instant,
}

/// What went otherwise than it should, in one phase.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Trouble {
    /// Requests that were answered by an error, or not at all.
    pub failed: u64,
    /// Tries after a connection ended or was refused.
    pub repeated: u64,
    pub moving: u64,
    /// Answers that the node never gave.
    pub wrong: u64,
    /// Answers that the node gave until before the question was sent, and the longest time before.
    pub stale: u64,
    pub stale_max: Duration,
    /// Answers of an earlier state than one before them on the same connection.
    pub back: u64,
    pub example: Option<String>,
}

/// What one client saw.
#[derive(Debug, Default)]
pub struct Seen {
    pub samples: Vec<Sample>,
    /// By phase.
    pub trouble: Vec<Trouble>,
    unknown: Vec<Unknown>,
}

/// An answer that the node may still give.
#[derive(Debug)]
struct Unknown {
    phase: usize,
    script: usize,
    about: About,
    content: [u8; 32],
    asked: Instant,
    /// The end of the answer, where the newest entries of a history are.
    said: String,
}

impl Seen {
    fn trouble(&mut self, phase: usize) -> &mut Trouble {
        if self.trouble.len() <= phase {
            self.trouble.resize(phase + 1, Trouble::default());
        }
        &mut self.trouble[phase]
    }

    fn wrong(&mut self, phase: usize, what: &str) {
        let trouble = self.trouble(phase);
        trouble.wrong += 1;
        trouble.example.get_or_insert_with(|| what.to_owned());
    }

    fn stale(&mut self, phase: usize, stale: Option<Duration>) {
        let Some(stale) = stale else { return };
        let trouble = self.trouble(phase);
        trouble.stale += 1;
        trouble.stale_max = trouble.stale_max.max(stale);
    }

    /// The end: the node has given its last answers.
    pub fn finish(&mut self, oracle: &Oracle) {
        for Unknown { phase, script, about, content, asked, said } in std::mem::take(&mut self.unknown) {
            match oracle.judge_content(script, about, content, asked) {
                Verdict::Known { stale, .. } => self.stale(phase, stale),
                Verdict::Unknown { .. } | Verdict::None => {
                    let name = oracle.targets.get(script).map_or("", |target| target.scripthash.as_str());
                    self.wrong(phase, &format!("{} of {name}: an answer that ends with {said}", about.method()));
                }
            }
        }
    }
}

/// Runs one client until the end.
pub fn run(market: &Market<'_>, number: u32) -> Seen {
    let mut random = Random::new(u64::from(number), "scale cluster");
    let mut wallet = Wallet { market, client: None, connections: 0, seen: Seen::default() };
    while !wallet.is_over() {
        wallet.session(&mut random);
    }
    wallet.seen
}

struct Wallet<'a> {
    market: &'a Market<'a>,
    client: Option<Client>,
    /// How many there were.
    connections: u64,
    seen: Seen,
}

/// An answer with what is needed to judge it.
struct Answer {
    line: Vec<u8>,
    phase: usize,
    /// When the try that was answered was sent.
    asked: Instant,
}

impl Wallet<'_> {
    fn is_over(&self) -> bool {
        self.market.is_over.load(Ordering::Relaxed)
    }

    /// The number of the phase.
    fn phase(&self) -> usize {
        self.market.phase.load(Ordering::Relaxed)
    }

    /// One session; it ends early if its connection does.
    fn session(&mut self, random: &mut Random) {
        self.client = None;
        let headers = request("blockchain.headers.subscribe", &json!([]));
        let Some(answer) = self.ask(Kind::Headers, "blockchain.headers.subscribe", &headers) else { return };
        if !result_of(&answer.line).is_ok_and(|tip| self.market.oracle.is_tip(&tip)) {
            let said = end_of(&answer.line);
            self.seen.wrong(answer.phase, &format!("blockchain.headers.subscribe: an answer that ends with {said}"));
        }
        let connection = self.connections;
        let oracle = self.market.oracle;
        let scripts: Vec<usize> = (0..SCRIPTS).map(|_| random.index(oracle.targets.len())).collect();
        // The last state of each script on this connection, for each question.
        let mut states = vec![[0_usize; 4]; scripts.len()];
        for about in ABOUT {
            for (script, states) in scripts.iter().zip(&mut states) {
                self.about(*script, about, &mut states[about.place()]);
                if self.is_over() || self.connections != connection {
                    return;
                }
            }
        }
        let some = |all: &'_ [Fixed], count: usize, random: &mut Random| -> Vec<usize> {
            (0..count).filter(|_| !all.is_empty()).map(|_| random.index(all.len())).collect()
        };
        let transactions = some(&oracle.transactions, TRANSACTIONS, random);
        let headers = some(&oracle.headers, HEADERS, random);
        let transactions = transactions.iter().map(|at| (Kind::Transaction, &oracle.transactions[*at]));
        for (kind, fixed) in transactions.chain(headers.iter().map(|at| (Kind::Header, &oracle.headers[*at]))) {
            let Some(answer) = self.ask(kind, fixed.method, &fixed.request) else { return };
            if !fixed.is_right(&answer.line) {
                self.seen.wrong(answer.phase, &String::from_utf8_lossy(&fixed.request));
            }
            if self.connections != connection {
                return;
            }
        }
    }

    fn about(&mut self, script: usize, about: About, last: &mut usize) {
        let oracle = self.market.oracle;
        let transactions = oracle.targets.get(script).map_or(0, |target| target.transactions);
        let kind = Kind::of(about, transactions);
        let connection = self.connections;
        let Some(answer) = self.ask(kind, &about.method(), oracle.request(script, about)) else { return };
        let Answer { line, phase, asked } = answer;
        match oracle.judge(script, about, &line, asked) {
            Verdict::Known { state, stale } => {
                self.seen.stale(phase, stale);
                if state < *last && self.connections == connection {
                    self.seen.trouble(phase).back += 1;
                }
                *last = state;
            }
            Verdict::Unknown { content } if self.seen.unknown.len() < UNKNOWN_MAX => {
                let said = end_of(&line);
                self.seen.unknown.push(Unknown { phase, script, about, content, asked, said });
            }
            Verdict::Unknown { .. } | Verdict::None => {
                let name = oracle.targets.get(script).map_or("", |target| target.scripthash.as_str());
                let said = end_of(&line);
                self.seen.wrong(phase, &format!("{} of {name}: an answer that ends with {said}", about.method()));
            }
        }
    }

    /// Asks until there is an answer. `None` if there is none: the request failed, or the run is over.
    fn ask(&mut self, kind: Kind, method: &str, request: &[u8]) -> Option<Answer> {
        thread::sleep(self.market.pause);
        let start = system::now();
        loop {
            if self.is_over() {
                return None;
            }
            let phase = self.phase();
            if start.elapsed() > PATIENCE {
                return self.fail(phase, format!("{method}: no answer within {} s", PATIENCE.as_secs()));
            }
            if !self.connect(phase) {
                continue;
            }
            let asked = system::now();
            let answer = self.client.as_mut()?.ask(method, request).map(|answer| answer.line.to_vec());
            match answer {
                Ok(line) => {
                    match refusal(&line) {
                        Some(fault) if is_moving(&fault) => {
                            self.seen.trouble(phase).moving += 1;
                            thread::sleep(AGAIN);
                            continue;
                        }
                        Some(fault) => return self.fail(phase, format!("{method}: {fault}")),
                        None => {}
                    }
                    let milliseconds = start.elapsed().as_secs_f64() * 1e3;
                    // What began before a failure and was held up by it counts with the failure.
                    let phase = self.phase();
                    self.seen.samples.push(Sample { phase, kind, milliseconds, at: system::now() });
                    return Some(Answer { line, phase, asked });
                }
                Err(_) => {
                    self.client = None;
                    // The failure ended the connection.
                    let phase = self.phase();
                    self.seen.trouble(phase).repeated += 1;
                }
            }
        }
    }

    fn fail(&mut self, phase: usize, reason: String) -> Option<Answer> {
        let trouble = self.seen.trouble(phase);
        trouble.failed += 1;
        trouble.example.get_or_insert(reason);
        None
    }

    /// Whether there is a connection.
    fn connect(&mut self, phase: usize) -> bool {
        if self.client.is_some() {
            return true;
        }
        let start = system::now();
        match Client::connect(&self.market.place) {
            Ok(client) => {
                let milliseconds = start.elapsed().as_secs_f64() * 1e3;
                let kind = Kind::Connect;
                self.seen.samples.push(Sample { phase, kind, milliseconds, at: system::now() });
                self.client = Some(client);
                self.connections += 1;
                true
            }
            Err(_) => {
                self.seen.trouble(phase).repeated += 1;
                thread::sleep(AGAIN);
                false
            }
        }
    }
}

/// Blocks leave the chain just now, and the server asks for another try.
fn is_moving(fault: &Fault) -> bool {
    matches!(fault, Fault::Refused { message, .. } if message.ends_with("being reorganised: try again"))
}

/// The end of a line, for messages.
fn end_of(line: &[u8]) -> String {
    String::from_utf8_lossy(line.get(line.len().saturating_sub(SAID_BYTES)..).unwrap_or(line)).into_owned()
}

/// The error of an answer that is one. An answer is parsed only if its beginning has the word.
fn refusal(line: &[u8]) -> Option<Fault> {
    const WORD: &[u8] = b"\"error\"";
    const LOOK_BYTES: usize = 256;
    let head = line.get(..LOOK_BYTES).unwrap_or(line);
    let may_be = head.windows(WORD.len()).any(|window| window == WORD);
    if may_be { result_of(line).err() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_has_seventy_requests() {
        assert_eq!(REQUESTS, 70);
    }

    #[test]
    fn only_a_reorganisation_is_waited_for() {
        let fault = |message: &str| {
            let error = json!({"jsonrpc": "2.0", "id": 0, "error": {"code": 1, "message": message}});
            refusal(error.to_string().as_bytes()).unwrap()
        };
        assert!(is_moving(&fault("the chain is being reorganised: try again")));
        assert!(!is_moving(&fault("the store does not answer: try again")));
        assert!(refusal(br#"{"jsonrpc": "2.0", "id": 0, "result": []}"#).is_none());
    }
}
