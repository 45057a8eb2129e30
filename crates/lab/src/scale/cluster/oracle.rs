//! The right answers: what the node's own Electrum server answers about each script, after each change of the chain
//! and of the mempool.
//!
//! Input: scripts, a connection to the node. Output: for an answer of another server, whether the node has given it,
//! and how long ago it was replaced. A script has a list of states, one for each change that touched it. Invariant: an
//! answer is right only if the node gave it, at the present state of the script or at an earlier one. Cost: 300 bytes
//! for each state.

use crate::electrum::client::{Client, ClientError, Fault, request, result_of};
use crate::electrum::compare::{Digest, Order};
use crate::electrum::protocol::{ScriptQuery, status_of};
use crate::error::LabError;
use crate::runs::system;
use lydian_chains::targets::Target;
use lydian_hash::sha256;
use lydian_stdx::IgnorePoison;
use serde_json::{Value, json};
use std::collections::HashSet;
use std::sync::RwLock;
use std::time::{Duration, Instant};

/// Of each script, so many transactions are asked for with their Merkle branches.
const TRANSACTIONS: usize = 3;
/// Headers that are asked for.
const HEADERS: u32 = 500;

/// A question about a script.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum About {
    Status,
    Script(ScriptQuery),
}

pub const ABOUT: [About; 4] = [
    About::Status,
    About::Script(ScriptQuery::Balance),
    About::Script(ScriptQuery::History),
    About::Script(ScriptQuery::Utxos),
];

impl About {
    pub fn method(self) -> String {
        match self {
            About::Status => "blockchain.scripthash.subscribe".to_owned(),
            About::Script(query) => query.method("1.6"),
        }
    }

    pub fn place(self) -> usize {
        ABOUT.iter().position(|about| *about == self).unwrap_or(0)
    }

    fn content(self, result: &Value) -> Result<[u8; 32], Fault> {
        match self {
            About::Status => Ok(sha256(result.to_string().as_bytes())),
            About::Script(query) => Ok(Digest::of(&query.canonical(result)?, query.order()).content),
        }
    }
}

/// The answers about a script between two changes.
#[derive(Clone, Debug)]
struct State {
    status: Value,
    /// As received, and as digests of their content, in the order of [`ABOUT`].
    raw: [[u8; 32]; 4],
    content: [[u8; 32]; 4],
    /// When the node had answered otherwise.
    replaced: Option<Instant>,
}

/// A question whose answer does not change.
#[derive(Clone, Debug)]
pub struct Fixed {
    pub method: &'static str,
    pub request: Vec<u8>,
    raw: [u8; 32],
    content: [u8; 32],
}

impl Fixed {
    /// Whether this is the node's answer.
    pub fn is_right(&self, line: &[u8]) -> bool {
        let same = |result: Value| sha256(result.to_string().as_bytes()) == self.content;
        sha256(line) == self.raw || result_of(line).is_ok_and(same)
    }
}

/// What is known of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The answer of this state of the script; if it was replaced before the question was sent, since when.
    Known { state: usize, stale: Option<Duration> },
    /// The node has not given it: it may still do so.
    Unknown { content: [u8; 32] },
    /// It is no answer to the question.
    None,
}

#[derive(Debug)]
pub struct Oracle {
    pub targets: Vec<Target>,
    /// The requests about each script, in the order of [`ABOUT`].
    requests: Vec<[Vec<u8>; 4]>,
    states: Vec<RwLock<Vec<State>>>,
    pub transactions: Vec<Fixed>,
    pub headers: Vec<Fixed>,
    /// Height and header of each block that is or was the tip during the load.
    tips: RwLock<HashSet<(u32, String)>>,
}

impl Oracle {
    /// Asks the node about everything.
    pub fn new(client: &mut Client, targets: &[Target], height: u32) -> Result<Oracle, LabError> {
        let requests = |target: &Target| ABOUT.map(|about| request(&about.method(), &json!([target.scripthash])));
        let mut oracle = Oracle {
            targets: targets.to_vec(),
            requests: targets.iter().map(requests).collect(),
            states: Vec::new(),
            transactions: Vec::new(),
            headers: Vec::new(),
            tips: RwLock::default(),
        };
        let tip = client.call("blockchain.headers.subscribe", &json!([]))?;
        oracle.expect_tip(height, tip["hex"].as_str().unwrap_or_default());
        for script in 0..targets.len() {
            let (state, history) = oracle.ask(client, script)?;
            oracle.states.push(RwLock::new(vec![state]));
            let entries = history.as_array().map(Vec::as_slice).unwrap_or_default();
            for entry in entries.iter().step_by((entries.len() / TRANSACTIONS).max(1)).take(TRANSACTIONS) {
                let (txid, at) = (&entry["tx_hash"], &entry["height"]);
                oracle.transactions.push(fixed(client, "blockchain.transaction.get", &json!([txid]))?);
                oracle.transactions.push(fixed(client, "blockchain.transaction.get_merkle", &json!([txid, at]))?);
            }
        }
        let step = usize::try_from(height.div_ceil(HEADERS).max(1)).unwrap_or(1);
        for height in (0..=height).step_by(step) {
            oracle.headers.push(fixed(client, "blockchain.block.header", &json!([height]))?);
        }
        Ok(oracle)
    }

    pub fn request(&self, script: usize, about: About) -> &[u8] {
        self.requests.get(script).map_or(&[], |requests| &requests[about.place()])
    }

    /// A block that nodes are about to get.
    pub fn expect_tip(&self, height: u32, header: &str) {
        self.tips.write().ignore_poison().insert((height, header.to_owned()));
    }

    /// Whether this is the answer to a subscription to headers.
    pub fn is_tip(&self, result: &Value) -> bool {
        let height = result["height"].as_u64().and_then(|height| u32::try_from(height).ok());
        let tip = height.zip(result["hex"].as_str().map(str::to_owned));
        tip.is_some_and(|tip| self.tips.read().ignore_poison().contains(&tip))
    }

    /// The script changed: asks the node again. Returns its status before and now.
    pub fn update(&self, client: &mut Client, script: usize) -> Result<(Value, Value), LabError> {
        let (state, _) = self.ask(client, script)?;
        let (mut before, now) = (Value::Null, state.status.clone());
        if let Some(states) = self.states.get(script) {
            let mut states = states.write().ignore_poison();
            if let Some(last) = states.last_mut() {
                last.replaced = Some(system::now());
                before = last.status.clone();
            }
            states.push(state);
        }
        Ok((before, now))
    }

    fn ask(&self, client: &mut Client, script: usize) -> Result<(State, Value), LabError> {
        let mut state = State { status: Value::Null, raw: [[0; 32]; 4], content: [[0; 32]; 4], replaced: None };
        let mut history = Value::Null;
        for about in ABOUT {
            let method = about.method();
            let line = client.ask(&method, self.request(script, about))?.line.to_vec();
            let failed = |fault: Fault| ClientError { server: "lydian".to_owned(), method: method.clone(), fault };
            let result = result_of(&line).map_err(failed)?;
            state.raw[about.place()] = sha256(&line);
            state.content[about.place()] = about.content(&result).map_err(failed)?;
            if about == About::Script(ScriptQuery::History) {
                history = ScriptQuery::History.canonical(&result).map_err(failed)?;
            }
        }
        // A server keeps the statuses of subscribed scripts, and finds out a moment after its history that one changed.
        let status = About::Status.place();
        state.status = status_of(&history).map_or(Value::Null, Value::from);
        let content = About::Status.content(&state.status);
        let content = content.unwrap_or(state.content[status]);
        if content != state.content[status] {
            (state.content[status], state.raw[status]) = (content, [0; 32]);
        }
        Ok((state, history))
    }

    /// Judges an answer to a question that was sent at `asked`.
    pub fn judge(&self, script: usize, about: About, line: &[u8], asked: Instant) -> Verdict {
        let raw = sha256(line);
        if let Some(known) = self.find(script, |state| state.raw[about.place()] == raw, asked) {
            return known;
        }
        match result_of(line).and_then(|result| about.content(&result)) {
            Ok(content) => self.judge_content(script, about, content, asked),
            Err(_) => Verdict::None,
        }
    }

    /// The same for an answer that was unknown before.
    pub fn judge_content(&self, script: usize, about: About, content: [u8; 32], asked: Instant) -> Verdict {
        let is_same = |state: &State| state.content[about.place()] == content;
        self.find(script, is_same, asked).unwrap_or(Verdict::Unknown { content })
    }

    /// The last state with the answer.
    fn find(&self, script: usize, is_same: impl Fn(&State) -> bool, asked: Instant) -> Option<Verdict> {
        let states = self.states.get(script)?.read().ignore_poison();
        let (at, state) = states.iter().enumerate().rev().find(|(_, state)| is_same(state))?;
        let stale = state.replaced.and_then(|replaced| asked.checked_duration_since(replaced));
        Some(Verdict::Known { state: at, stale: stale.filter(|stale| !stale.is_zero()) })
    }
}

fn fixed(client: &mut Client, method: &'static str, params: &Value) -> Result<Fixed, LabError> {
    let request = request(method, params);
    let line = client.ask(method, &request)?.line.to_vec();
    let failed = |fault| ClientError { server: "lydian".to_owned(), method: method.to_owned(), fault };
    let content = Digest::of(&result_of(&line).map_err(failed)?, Order::Counts).content;
    Ok(Fixed { method, request, raw: sha256(&line), content })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(result: &Value) -> Vec<u8> {
        json!({"jsonrpc": "2.0", "id": 0, "result": result}).to_string().into_bytes()
    }

    #[test]
    fn an_answer_is_right_if_the_node_gave_it_and_stale_if_that_is_past() {
        let balance = |confirmed: u32| json!({"confirmed": confirmed, "unconfirmed": 0});
        let about = About::Script(ScriptQuery::Balance);
        let state = |confirmed: u32, replaced: Option<Instant>| {
            let mut state = State { status: Value::Null, raw: [[0; 32]; 4], content: [[0; 32]; 4], replaced };
            state.raw[about.place()] = sha256(&line(&balance(confirmed)));
            state.content[about.place()] = about.content(&balance(confirmed)).unwrap();
            state
        };
        let now = system::now();
        let asked = now + Duration::from_secs(10);
        let oracle = Oracle {
            targets: Vec::new(),
            requests: Vec::new(),
            states: vec![RwLock::new(vec![
                state(1, Some(now + Duration::from_secs(4))),
                state(2, Some(now + Duration::from_secs(11))),
                state(3, None),
            ])],
            transactions: Vec::new(),
            headers: Vec::new(),
            tips: RwLock::default(),
        };
        let tip = |height: u32, hex: &str| oracle.is_tip(&json!({"height": height, "hex": hex}));
        oracle.expect_tip(7, "aa");
        assert!(tip(7, "aa") && !tip(8, "aa") && !tip(7, "ab") && !oracle.is_tip(&json!({"height": 7})));
        let judge = |line: &[u8]| oracle.judge(0, about, line, asked);
        assert_eq!(judge(&line(&balance(3))), Verdict::Known { state: 2, stale: None });
        assert_eq!(judge(&line(&balance(2))), Verdict::Known { state: 1, stale: None }, "replaced after the question");
        let stale = Some(Duration::from_secs(6));
        assert_eq!(judge(&line(&balance(1))), Verdict::Known { state: 0, stale });
        // Another spelling of the same content.
        let spaced = br#"{"id": 0, "result": {"unconfirmed": 0, "confirmed": 3}}"#;
        assert_eq!(judge(spaced), Verdict::Known { state: 2, stale: None });
        let unknown = about.content(&balance(4)).unwrap();
        assert_eq!(judge(&line(&balance(4))), Verdict::Unknown { content: unknown });
        assert_eq!(judge(&line(&json!({"confirmed": 3}))), Verdict::None);
        assert_eq!(judge(b"{}"), Verdict::None);
    }
}
