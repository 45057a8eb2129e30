//! The load of many connections at once, each with one open query at a time.
//!
//! Input: a place, queries for balance, history and UTXO list of scripts with their earlier answers, a number of
//! connections, seconds. Output: requests, errors, percentiles. All connections are established before the clock
//! starts; a query that is open when time is up is waited for. An answer that differs from the earlier one is an error.
//! Scripts are chosen at random, with the connection number as the seed. Cost: one thread per connection. Must never:
//! count an answer that was not compared.

use super::client::{Client, Place, request, result_of};
use super::compare::Digest;
use super::protocol::{SCRIPT_QUERIES, ScriptQuery, script_params};
use super::queries::{Answers, squeezed, to_microseconds};
use crate::runs::system;
use lydian_chains::rng::Random;
use lydian_chains::targets::Target;
use lydian_hash::sha256;
use lydian_report::electrum::percentile;
use lydian_report::electrum::results::Load;
use lydian_report::results::rounded;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

/// A thread only reads and writes, so its stack is small.
const STACK_BYTES: usize = 256 << 10;
/// Errors after which a connection stops.
const ERRORS_MAX: u64 = 10;
const GATE_POLL: Duration = Duration::from_millis(1);

/// One query, ready to be sent.
#[derive(Debug)]
struct Question {
    query: ScriptQuery,
    request: Vec<u8>,
    raw: [u8; 32],
    digest: Digest,
}

/// The queries for all connections.
#[derive(Debug)]
pub struct Questions {
    method: [String; 3],
    all: Vec<Question>,
}

impl Questions {
    /// Queries for the scripts with at most this number of transactions, since one large history would dominate the
    /// figure. Only queries that were answered before.
    pub fn new(targets: &[Target], answers: &[Answers; 3], protocol: &str, transactions_max: u32) -> Questions {
        let method = SCRIPT_QUERIES.map(|query| query.method(protocol));
        let mut all = Vec::new();
        for (index, target) in targets.iter().enumerate().filter(|(_, target)| target.transactions <= transactions_max)
        {
            let params = script_params(target, protocol);
            for ((query, method), answers) in SCRIPT_QUERIES.into_iter().zip(&method).zip(answers) {
                let known =
                    answers.raw.get(index).copied().flatten().zip(answers.digests.get(index).cloned().flatten());
                if let Some((raw, digest)) = known {
                    all.push(Question { query, request: request(method, &params), raw, digest });
                }
            }
        }
        Questions { method, all }
    }

    fn method(&self, query: ScriptQuery) -> &str {
        &self.method[match query {
            ScriptQuery::Balance => 0,
            ScriptQuery::History => 1,
            ScriptQuery::Utxos => 2,
        }]
    }
}

/// The figures of one connection.
#[derive(Debug, Default)]
struct Part {
    milliseconds: Vec<f64>,
    errors: u64,
    seconds: f64,
    first_error: Option<String>,
}

/// Stays closed until all connections are established.
#[derive(Debug, Default)]
struct Gate {
    waiting: AtomicUsize,
    is_open: AtomicBool,
}

impl Gate {
    fn pass(&self) {
        self.waiting.fetch_add(1, Ordering::AcqRel);
        while !self.is_open.load(Ordering::Acquire) {
            thread::sleep(GATE_POLL);
        }
    }

    /// Every thread arrives here, because a connection attempt ends within its timeout.
    fn open_for(&self, threads: usize) {
        while self.waiting.load(Ordering::Acquire) < threads {
            thread::sleep(GATE_POLL);
        }
        self.is_open.store(true, Ordering::Release);
    }
}

/// Runs the load; the second value is the first error in words. `None` if no query was answered, or if there is nothing
/// to query.
pub fn load(
    place: &Place,
    questions: &Questions,
    connections: u32,
    duration: Duration,
    interrupted: &AtomicBool,
) -> (Option<Load>, Option<String>) {
    if questions.all.is_empty() {
        return (None, Some("no script was answered before".to_owned()));
    }
    let gate = Gate::default();
    let parts: Vec<Part> = thread::scope(|scope| {
        let mut threads = Vec::new();
        let mut parts = Vec::new();
        for number in 0..connections {
            let gate = &gate;
            let work = move || connection(place, questions, number, duration, gate, interrupted);
            match thread::Builder::new().stack_size(STACK_BYTES).spawn_scoped(scope, work) {
                Ok(thread) => threads.push(thread),
                Err(error) => parts.push(Part::lost(error.to_string())),
            }
        }
        gate.open_for(threads.len());
        let join = |thread: thread::ScopedJoinHandle<'_, Part>| thread.join();
        parts
            .extend(threads.into_iter().map(|one| join(one).unwrap_or_else(|_| Part::lost("its thread ended".into()))));
        parts
    });
    let first_error = parts.iter().find_map(|part| part.first_error.clone());
    (summary(connections, parts), first_error)
}

fn connection(
    place: &Place,
    questions: &Questions,
    number: u32,
    duration: Duration,
    gate: &Gate,
    interrupted: &AtomicBool,
) -> Part {
    let client = Client::connect(place);
    gate.pass();
    let start = system::now();
    let mut client = match client {
        Ok(client) => client,
        Err(error) => return Part::lost(error.to_string()),
    };
    let mut part = Part::default();
    let mut random = Random::new(u64::from(number), "electrum load");
    while start.elapsed() < duration && !interrupted.load(Ordering::Relaxed) && part.errors < ERRORS_MAX {
        let question = &questions.all[random.index(questions.all.len())];
        let asked = client.ask(questions.method(question.query), &question.request);
        let said = asked.map(|answer| (answer.milliseconds, is_same(question, answer.line)));
        let reason = match said {
            Ok((milliseconds, Ok(()))) => {
                part.milliseconds.push(milliseconds);
                continue;
            }
            Ok((_, Err(reason))) => reason,
            Err(error) => error.to_string(),
        };
        part.fail(reason);
        // It is unknown which query the next line would answer.
        match Client::connect(place) {
            Ok(again) => client = again,
            Err(_) => break,
        }
    }
    part.seconds = start.elapsed().as_secs_f64();
    part
}

/// Equal to the earlier answer: byte for byte except for whitespace, otherwise after parsing.
fn is_same(question: &Question, line: &[u8]) -> Result<(), String> {
    if sha256(&squeezed(line)) == question.raw {
        return Ok(());
    }
    let canonical = result_of(line).and_then(|result| question.query.canonical(&result));
    let canonical = canonical.map_err(|fault| fault.to_string())?;
    match Digest::of(&canonical, question.query.order()).content == question.digest.content {
        true => Ok(()),
        false => Err(format!("another {} than before", question.query.name())),
    }
}

impl Part {
    fn lost(reason: String) -> Part {
        Part { errors: 1, first_error: Some(reason), ..Part::default() }
    }

    fn fail(&mut self, reason: String) {
        self.errors += 1;
        self.first_error.get_or_insert(reason);
    }
}

#[allow(clippy::cast_precision_loss, reason = "requests of some seconds lie far below 2^52")]
fn summary(connections: u32, parts: Vec<Part>) -> Option<Load> {
    let errors = parts.iter().map(|part| part.errors).sum();
    let seconds = parts.iter().map(|part| part.seconds).fold(0.0, f64::max);
    let mut all: Vec<f64> = parts.into_iter().flat_map(|part| part.milliseconds).collect();
    all.sort_by(f64::total_cmp);
    let at = |per_cent| percentile(&all, per_cent).map(to_microseconds);
    Some(Load {
        connections,
        requests: all.len() as u64,
        errors,
        seconds: rounded(seconds),
        per_second: rounded(if seconds > 0.0 { all.len() as f64 / seconds } else { 0.0 }),
        p50_ms: at(50)?,
        p90_ms: at(90)?,
        p99_ms: at(99)?,
        max_ms: at(100)?,
    })
}
